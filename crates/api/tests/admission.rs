//! Are objects judged as the API server judges them?
//!
//! `tests/oddity` is a kind made of the keywords that say what is admitted, with what a real API server said
//! to each of its cases: there our validator must say the same, word for word. `tests/admission` has the
//! cases of the kinds that we serve, which e2e runs on a real server too.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use nodemolt_api::admission::Validator;
use nodemolt_api::admission::cases::{self, Answer, Case, Expected};
use nodemolt_api::admission::coverage::{self, Shown};
use serde_json::{Value, json};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn oddity() -> Validator {
    let text = std::fs::read_to_string(tests().join("oddity/crd.yaml")).unwrap();
    let crd: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
    Validator::new(&crd).unwrap()
}

/// What a real server said, as the recorded case has it.
fn recorded(case: &Case) -> Answer {
    match &case.expected {
        Expected::Accepted { reads } => Ok(reads.clone().unwrap()),
        Expected::Refused { causes, .. } => {
            Err(causes.iter().map(|it| (it.field.clone(), it.message.clone())).collect())
        }
    }
}

#[test]
fn an_oddity_is_judged_word_for_word_as_a_real_server_did() {
    let validator = oddity();
    let text = std::fs::read_to_string(tests().join("oddity/cases.yaml")).unwrap();
    let (_, cases) = cases::read(&text).unwrap();
    let mut differing = String::new();
    for case in &cases {
        let ours = cases::ask(&validator, case);
        let theirs = recorded(case);
        if let Err(why) = cases::agree(&ours, &theirs) {
            let _ = writeln!(differing, "{}: {why}", case.name);
        } else if let (Ok(ours), Ok(theirs)) = (&ours, &theirs)
            && ours != theirs
        {
            let _ =
                writeln!(differing, "{}: we store\n    {ours}\n  they\n    {theirs}", case.name);
        }
    }
    assert!(differing.is_empty(), "\n{differing}");
    assert!(cases.len() > 100, "{} cases", cases.len());
}

/// Of an object only those members are read that a rule or its message names; by whatever name, and all of them
/// where the object as a whole is looked at.
#[test]
fn a_rule_sees_what_it_looks_at_and_so_does_its_message() {
    let members = json!({
        "a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"},
        "x-y": {"type": "integer"},
    });
    let part = |rules: Value| {
        let members = members.clone();
        json!({"type": "object", "properties": members, "x-kubernetes-validations": rules})
    };
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "looks.test.nodemolt.dev"},
        "spec": {
            "group": "test.nodemolt.dev", "scope": "Cluster",
            "names": {"kind": "Look", "plural": "looks"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {
                    "named": part(json!([
                        {"rule": "self.a != 'no'", "messageExpression": "'b is ' + self.b"},
                        {"rule": "self.x__dash__y > 0", "message": "x-y"},
                        {"rule": "!has(self.c) || oldSelf.c == self.c", "message": "c"},
                    ])),
                    "whole": part(json!([
                        {"rule": "size(self) == 2", "message": "size"},
                        {"rule": "self.a == 'a'", "message": "a"},
                    ])),
                }},
            }}],
        },
    }))
    .unwrap();
    let validator = Validator::new(&crd).unwrap().trusting();
    let object = |named: Value, whole: Value| {
        json!({
            "apiVersion": "test.nodemolt.dev/v1", "kind": "Look", "metadata": {"name": "one"},
            "named": named, "whole": whole,
        })
    };
    let told = |outcome: &nodemolt_api::admission::Outcome| {
        outcome.causes().iter().map(|it| it.message.clone()).collect::<Vec<_>>().join("; ")
    };
    let good = object(json!({"a": "a", "b": "b", "c": "c", "x-y": 1}), json!({"a": "a", "b": "b"}));
    let stored = validator.create(&good).verdict.unwrap_or_else(|it| panic!("{it:?}"));
    let bad = object(json!({"a": "no", "b": "b", "c": "d", "x-y": 0}), json!({"a": "b"}));
    let made = told(&validator.create(&bad));
    for word in ["b is b", "x-y", "size", ": a"] {
        assert!(made.contains(word), "{word}: {made}");
    }
    let mut changed = bad;
    changed["metadata"] = stored["metadata"].clone();
    let changed = told(&validator.update(&stored, &changed));
    for word in ["b is b", "x-y", ": c", "size", ": a"] {
        assert!(changed.contains(word), "{word}: {changed}");
    }
}

/// A kind that we serve, and the folder of its cases.
struct Kind {
    name: String,
    validator: Validator,
    folder: PathBuf,
    /// The group and version in which the folder's objects are written, and ours.
    written: String,
    version: String,
}

fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for crd in nodemolt_api::crd::all() {
        let definition = (crd.definition)();
        let plural = definition.spec.names.plural.clone();
        let storage = definition.spec.versions.iter().find(|it| it.storage).unwrap();
        let version = format!("{}/{}", crd.group, storage.name);
        // One spec in two groups has its cases once.
        let written = match crd.kind {
            "EC2NodeClass" => "karpenter.k8s.aws/v1".to_owned(),
            _ => version.clone(),
        };
        let folder = tests().join("admission").join(&written).join(&plural);
        let validator =
            Validator::new(&definition).unwrap_or_else(|it| panic!("{}: {it}", crd.name));
        kinds.push(Kind { name: crd.name.to_owned(), validator, folder, written, version });
    }
    kinds
}

/// The same object in our version.
fn versioned(kind: &Kind, mut object: Value) -> Value {
    if object.get("apiVersion") == Some(&Value::String(kind.written.clone())) {
        object["apiVersion"] = Value::String(kind.version.clone());
    }
    object
}

/// Every case of a kind, with the file it stands in, and the objects that patches are applied to.
fn read_cases(kind: &Kind) -> (Vec<(String, Case)>, Vec<Value>) {
    let mut found = Vec::new();
    let mut bases = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&kind.folder)
        .map(|it| it.map(|it| it.unwrap().path()).collect())
        .unwrap_or_default();
    files.retain(|it| it.extension().is_some_and(|it| it == "yaml"));
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let (base, cases) =
            cases::read(&text).unwrap_or_else(|it| panic!("{}: {it}", file.display()));
        bases.extend(base.map(|it| versioned(kind, it)));
        for case in cases {
            let object = versioned(kind, case.object);
            let old = case.old.map(|it| versioned(kind, it));
            found.push((name.clone(), Case { object, old, ..case }));
        }
    }
    (found, bases)
}

#[test]
fn every_case_of_our_kinds_is_judged_as_it_says() {
    let mut wrong = String::new();
    for kind in kinds() {
        let (cases, bases) = read_cases(&kind);
        for base in &bases {
            for cause in kind.validator.create(base).causes() {
                let _ = writeln!(wrong, "{}: a base is refused: {cause}", kind.name);
            }
        }
        for (file, case) in &cases {
            if let Err(why) = cases::judge(case, &cases::ask(&kind.validator, case)) {
                let _ = writeln!(wrong, "{} {file} `{}` {why}", kind.name, case.name);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Of what a store holds, a validator that trusts it looks at what changed and at nothing else.
#[test]
fn a_store_that_is_trusted_gets_the_same_verdicts() {
    const STORED_MAX: usize = 12;
    let text = std::fs::read_to_string(tests().join("oddity/crd.yaml")).unwrap();
    let crd: CustomResourceDefinition = serde_saphyr::from_str(&text).unwrap();
    let text = std::fs::read_to_string(tests().join("oddity/cases.yaml")).unwrap();
    let (base, cases) = cases::read(&text).unwrap();
    let odd: Vec<Value> = base.into_iter().chain(cases.into_iter().map(|it| it.object)).collect();
    let mut kinds_and_objects = vec![(oddity(), Validator::new(&crd).unwrap().trusting(), odd)];
    for (kind, crd) in kinds().into_iter().zip(nodemolt_api::crd::all()) {
        let trusting = Validator::new(&(crd.definition)()).unwrap().trusting();
        let (cases, bases) = read_cases(&kind);
        let sent = cases.into_iter().flat_map(|(_, it)| [Some(it.object), it.old]).flatten();
        let objects = bases.into_iter().chain(sent).collect();
        kinds_and_objects.push((kind.validator, trusting, objects));
    }
    let mut compared = 0;
    for (plain, trusting, objects) in &kinds_and_objects {
        let whole = |it: &Value| {
            let created = plain.create(it).verdict.ok()?;
            Some(plain.update_status(&created, it).verdict.unwrap_or(created))
        };
        let stored: Vec<Value> = objects.iter().filter_map(whole).take(STORED_MAX).collect();
        for old in &stored {
            for new in objects {
                let mut new = new.clone();
                if new.is_object() {
                    new["metadata"] = old["metadata"].clone();
                }
                assert_eq!(plain.update(old, &new), trusting.update(old, &new), "{old}\n{new}");
                let (one, other) =
                    (plain.update_status(old, &new), trusting.update_status(old, &new));
                assert_eq!(one, other, "status of {old}\n{new}");
                compared += 1;
            }
        }
    }
    assert!(compared > 2_000, "{compared}");
}

#[test]
fn every_demand_of_our_kinds_has_a_case_that_meets_it_and_one_that_does_not() {
    let mut missing = String::new();
    for kind in kinds() {
        let (cases, _) = read_cases(&kind);
        let version = kind.version.rsplit('/').next().unwrap();
        let (_, root) = kind.validator.versions().find(|(name, _)| *name == version).unwrap();
        let mut shown = Shown::default();
        for (_, case) in &cases {
            shown.add(root, case, &cases::ask(&kind.validator, case));
        }
        for demand in coverage::demands(root) {
            if let Some(what) = shown.missing(&demand) {
                let _ = writeln!(missing, "{}: {demand}: {what}", kind.name);
            }
        }
    }
    assert!(missing.is_empty(), "\n{missing}");
}

#[test]
fn every_plain_limit_of_our_kinds_holds() {
    let mut wrong = String::new();
    let mut tried = 0;
    for kind in kinds() {
        let (_, bases) = read_cases(&kind);
        let Some(base) = bases.first() else { continue };
        let version = kind.version.rsplit('/').next().unwrap();
        let (_, root) = kind.validator.versions().find(|(name, _)| *name == version).unwrap();
        for case in coverage::beyond_limits(root, base) {
            tried += 1;
            if let Err(why) = cases::judge(&case, &cases::ask(&kind.validator, &case)) {
                let _ = writeln!(wrong, "{} `{}` {why}", kind.name, case.name);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    println!("{tried} limits");
}
