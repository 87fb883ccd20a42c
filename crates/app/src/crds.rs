//! Which definitions does a cluster need?

use std::fmt::Write as _;

use nodemolt_api::crd::{self, Crd, print};
use nodemolt_api::file::{Source, raw};
use nodemolt_api::lockdown;
use serde_json::{Value, json};

use crate::cli::{CrdFormat, Crds};
use crate::output::{Answer, Exit, Failure};

pub(crate) fn run(verb: &Crds) -> Result<Answer, Failure> {
    let data = if verb.policies {
        policies(verb.output)
    } else {
        let chosen = chosen(&verb.only, verb.standalone)?;
        match verb.output {
            CrdFormat::Yaml => print::yaml(&chosen),
            CrdFormat::Json => print::json(&chosen),
        }
        .map_err(anyhow::Error::from)?
    };
    Ok(Answer { data, talk: String::new(), exit: Exit::Done })
}

/// As they are written, with what they say about themselves; or as one JSON object that holds them all.
fn policies(output: CrdFormat) -> String {
    let mut data = String::new();
    for (_, text) in lockdown::POLICIES {
        let _ = write!(data, "---\n{text}");
    }
    match output {
        CrdFormat::Yaml => data,
        CrdFormat::Json => {
            let source = Source { name: String::new(), text: data };
            let items: Vec<Value> = raw::objects(&source).into_iter().map(|it| it.value).collect();
            format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": items}))
        }
    }
}

/// The definitions that were asked for: by kind, plural, short name or whole name.
fn chosen(only: &[String], standalone: bool) -> Result<Vec<Crd>, Failure> {
    let all = crd::all();
    let printed = |it: &&Crd| standalone || !it.standalone_only;
    if only.is_empty() {
        return Ok(all.iter().filter(printed).copied().collect());
    }
    let mut chosen: Vec<Crd> = Vec::new();
    for word in only {
        let meant: Vec<&Crd> = all.iter().filter(|it| called(it, word)).collect();
        if meant.is_empty() {
            let mut kinds: Vec<&str> = all.iter().map(|it| it.kind).collect();
            kinds.sort_unstable();
            kinds.dedup();
            let failure = Failure::usage(format!("`{word}` is not a kind that is served"));
            return Err(failure.hint(format!("served are {}", kinds.join(", "))));
        }
        let found: Vec<Crd> = meant.iter().copied().filter(printed).copied().collect();
        if found.is_empty() {
            let failure = Failure::usage(format!("`{word}` is Karpenter's where it is installed"));
            return Err(failure.hint("pass --standalone for a cluster without Karpenter"));
        }
        chosen.extend(found);
    }
    chosen.sort_by_key(|it| (it.standalone_only, it.name));
    chosen.dedup_by_key(|it| it.name);
    Ok(chosen)
}

fn called(crd: &Crd, word: &str) -> bool {
    let plural = crd.name.split('.').next().unwrap_or_default();
    let names = [crd.name, plural, crd.kind];
    names.iter().any(|it| it.eq_ignore_ascii_case(word))
        || (crd.definition)().spec.names.short_names.iter().flatten().any(|it| it == word)
}
