//! Whom did a person mean who is not there?
//!
//! `act × world → what is probably meant, and who is there`

use nodemolt_sim::{Act, Fault, World, kinds};
use serde_json::Value;

use super::nearest;

/// So many are named; of more only how many.
const NAMED: usize = 5;

/// How to say it right: the name that is nearest, and how to see the others.
pub(super) fn hint(world: &World, act: &Act) -> Option<String> {
    let (kind, name) = asked(act)?;
    let Some(resource) = kinds::called(&kind).find(|it| fits(act, it.namespaced)) else {
        let fit = || kinds::ALL.into_iter().filter(|it| fits(act, it.namespaced)).map(|it| it.kind);
        let mut all: Vec<&str> = fit().collect();
        // One kind may be served in two groups.
        all.dedup();
        return Some(match nearest(&kind, fit()) {
            Some(near) => format!("is `{near}` meant?"),
            None => format!("write one of {}", all.join(", ")),
        });
    };
    let names: Vec<String> = world.objects(resource).iter().map(|it| full_name(it)).collect();
    let all = if resource == kinds::NODE {
        "`nodemolt status -o wide` lists all nodes".to_owned()
    } else {
        there(resource.kind, &names)
    };
    // The one that is there and is not fit for it is not what was mistyped.
    let near = nearest(&name, names.iter().map(String::as_str)).filter(|it| *it != name);
    Some(match near {
        Some(near) => format!("is `{near}` meant? {all}"),
        None => all,
    })
}

/// Whether it can be done to a kind that lives in namespaces, or not.
fn fits(act: &Act, namespaced: bool) -> bool {
    !(matches!(act, Act::Hold { .. }) && namespaced)
}

/// Kind and name of whom an act is about; with the namespace where its kind lives in one.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others name nobody")]
fn asked(act: &Act) -> Option<(String, String)> {
    let node = |name: &String| Some((kinds::NODE.kind.to_owned(), name.clone()));
    match act {
        Act::Cordon { node: name }
        | Act::Uncordon { node: name }
        | Act::Untaint { node: name }
        | Act::Fault(Fault::NodeDies { node: name } | Fault::NodeFlaps { node: name, .. }) => {
            node(name)
        }
        Act::Hold { kind, name } => Some((kind.clone(), name.clone())),
        Act::Annotate { kind, namespace, name, .. } | Act::Delete { kind, namespace, name } => {
            let narrow = kinds::called(kind).next().is_some_and(|it| it.namespaced);
            let namespace = namespace.as_deref().unwrap_or("default");
            let full = if narrow { format!("{namespace}/{name}") } else { name.clone() };
            Some((kind.clone(), full))
        }
        Act::Fault(Fault::PdbNever { namespace, name, .. }) => {
            Some((kinds::PDB.kind.to_owned(), format!("{namespace}/{name}")))
        }
        _ => None,
    }
}

fn there(kind: &str, names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    match (names.len(), names.len().saturating_sub(NAMED)) {
        (0, _) => format!("there is no {kind} at all"),
        (1, _) => format!("the only {kind} is {}", first.join(", ")),
        (_, 0) => format!("of kind {kind} there are {}", first.join(", ")),
        (_, more) => format!("of kind {kind} there are {} and {more} more", first.join(", ")),
    }
}

fn full_name(object: &Value) -> String {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str);
    let name = text("/metadata/name").unwrap_or_default();
    match text("/metadata/namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}
