//! Is every example of the five proposals on the page, and does our validator say what the page says?
//!
//! `docs/seed-examples.md` is read by people and run here, on the command line (`crates/app`) and on a
//! real API server (`e2e`).

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

#[path = "seed_examples/page.rs"]
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nodemolt_api::admission::Validator;
use nodemolt_api::crd;
use nodemolt_api::file::{self, Source, raw};
use nodemolt_api::problem::Severity;
use serde_json::Value;

use page::{Block, Verdict};

/// How many examples each proposal has: fenced blocks, manifests that lost their fence, and fragments
/// of a manifest in the running text. Counted by hand; the page must have a heading for each.
const EXAMPLES: [(u8, usize); 5] = [(0, 2), (1, 7), (2, 4), (3, 5), (4, 11)];

fn blocks() -> (Vec<String>, Vec<Block>) {
    let text = std::fs::read_to_string(page::path(env!("CARGO_MANIFEST_DIR"))).unwrap();
    page::read(&text)
}

#[test]
fn every_example_of_the_five_proposals_has_a_verdict() {
    let (headings, blocks) = blocks();
    let expected: Vec<String> = EXAMPLES
        .iter()
        .flat_map(|(seed, count)| (1..=*count).map(move |it| format!("{seed}.{it}")))
        .collect();
    assert_eq!(headings, expected, "one heading for each, in order");
    let judged: BTreeSet<&str> = blocks
        .iter()
        .filter(|it| it.verdict != Verdict::Input)
        .map(|it| it.example.as_str())
        .collect();
    let silent: Vec<&String> = headings.iter().filter(|it| !judged.contains(it.as_str())).collect();
    assert!(silent.is_empty(), "nothing is run for {silent:?}");
}

/// What had to be changed in the proposals, and is shown refused before it is shown applied.
#[test]
fn every_mistake_that_people_copy_is_shown_with_its_answer() {
    let (_, blocks) = blocks();
    let refused: String = blocks
        .iter()
        .filter(|it| !matches!(it.verdict, Verdict::Applied | Verdict::Status))
        .map(|it| it.text.as_str())
        .collect();
    for mistake in [
        "\nkubernetesVersion: 1.21.2",
        "identityRef: <blah>",
        "maxUnavailable: 30",
        "provider:",
        "selector:",
        "imageLookupOrg: 728748729",
        "latest: true",
        "binpacking:",
        "elasticGpuSpecifications:",
        "v1beta1",
    ] {
        assert!(refused.contains(mistake), "no block that is refused has {mistake:?}");
    }
    let applied: String = blocks
        .iter()
        .filter(|it| it.verdict == Verdict::Applied)
        .map(|it| it.text.as_str())
        .collect();
    assert!(applied.contains("karpenter.sh/provisioner-name"), "it is read as the pool's name");
}

#[test]
fn our_validator_says_what_the_page_says() {
    let validators = validators();
    let (_, blocks) = blocks();
    let mut wrong = String::new();
    let mut asked = 0;
    for block in &blocks {
        match judge(block, &validators) {
            Ok(objects) => asked += objects,
            Err(why) => {
                let _ = writeln!(wrong, "{}: {why}", block.place());
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(asked > EXAMPLES.len(), "{asked} objects");
}

type Validators = BTreeMap<(String, String), Validator>;

/// By `apiVersion` and kind.
fn validators() -> Validators {
    let mut found = BTreeMap::new();
    for crd in crd::all() {
        let definition = (crd.definition)();
        for version in definition.spec.versions.iter().filter(|it| it.served) {
            let key = (format!("{}/{}", crd.group, version.name), crd.kind.to_owned());
            found.insert(key, Validator::new(&definition).unwrap());
        }
    }
    found
}

fn kind(object: &Value) -> Option<(String, String)> {
    let text = |field: &str| object.get(field)?.as_str().map(str::to_owned);
    Some((text("apiVersion")?, text("kind")?))
}

/// How many objects were judged as the page says, or what is different.
fn judge(block: &Block, validators: &Validators) -> Result<usize, String> {
    let source = Source { name: block.example.clone(), text: block.text.clone() };
    let objects: Vec<Value> = raw::objects(&source).into_iter().map(|it| it.value).collect();
    let known: Vec<(&Value, &Validator)> =
        objects.iter().filter_map(|it| Some((it, validators.get(&kind(it)?)?))).collect();
    let all_known = !objects.is_empty() && known.len() == objects.len();
    match &block.verdict {
        Verdict::Applied | Verdict::Status => {
            if !all_known {
                return Err("holds something that is not served".to_owned());
            }
            for (object, validator) in &known {
                taken(object, validator, block.verdict == Verdict::Status)?;
            }
            // The strict door agrees, so that every verb reads it, too.
            let (_, problems) = file::read(&source);
            match problems.iter().find(|it| it.severity == Severity::Error) {
                Some(problem) => Err(format!("is not read: {problem}")),
                None => Ok(known.len()),
            }
        }
        // What the controller says to it is the command line's.
        Verdict::Unusable(_) => {
            let [(object, validator)] = known[..] else {
                return Err("is not one object that is served".to_owned());
            };
            taken(object, validator, false).map(|()| 1)
        }
        Verdict::Refused(parts) => {
            let [(object, validator)] = known[..] else {
                return Err("is not one object that is served".to_owned());
            };
            let said = refusals(object, validator);
            let missing: Vec<&String> =
                parts.iter().filter(|part| !said.contains(part.as_str())).collect();
            if missing.is_empty() {
                return Ok(1);
            }
            Err(format!("we do not say {missing:?} but\n{said}"))
        }
        Verdict::NotServed => {
            let named = objects.iter().filter(|it| kind(it).is_some()).count();
            if named == 0 || named != objects.len() || !known.is_empty() {
                return Err("is served, or is not an object".to_owned());
            }
            Ok(named)
        }
        Verdict::NoObject => match objects.iter().find_map(kind) {
            Some(kind) => Err(format!("is an object: {kind:?}")),
            None => Ok(0),
        },
        // The command line's.
        Verdict::Input | Verdict::Parameter(_) | Verdict::Command { .. } => Ok(0),
    }
}

fn taken(object: &Value, validator: &Validator, with_status: bool) -> Result<(), String> {
    let outcome = validator.create(object);
    let stored = outcome.verdict.map_err(|causes| format!("is refused: {causes:?}"))?;
    if !outcome.unknown.is_empty() {
        return Err(format!("unknown fields: {:?}", outcome.unknown));
    }
    if !with_status {
        return Ok(());
    }
    // As it came back, with the status that people see.
    let mut changed = stored.clone();
    changed["status"] = object.get("status").ok_or("has no status")?.clone();
    let outcome = validator.update_status(&stored, &changed);
    let stored = outcome.verdict.map_err(|causes| format!("its status is refused: {causes:?}"))?;
    if stored.get("status") != object.get("status") {
        return Err(format!("its status is stored as {:?}", stored.get("status")));
    }
    Ok(())
}

/// As the server tells it to kubectl: where a field is unknown it says nothing else.
fn refusals(object: &Value, validator: &Validator) -> String {
    let outcome = validator.create(object);
    let mut said = String::new();
    for field in &outcome.unknown {
        let _ = writeln!(said, "unknown field {field:?}");
    }
    if outcome.unknown.is_empty() {
        for cause in outcome.causes() {
            let _ = writeln!(said, "{cause}");
        }
    }
    said
}
