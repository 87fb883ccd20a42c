//! Is the story true?
//!
//! What was put into the world is known; everything else that a story names must be seen in the objects of
//! the API server. Nothing here asks the engine.

use std::collections::BTreeSet;

use nodemolt_core::explain::{Cause, Story, explain, explain_pod, explain_pool};
use nodemolt_sim::trace::Fact;
use nodemolt_sim::{World, kinds};
use serde_json::Value;

use crate::rooms::{self, holds};
use crate::wrong::{Holds, Injected, Object, granted};

/// How many nodes were held, and what is wrong with their stories.
pub(crate) fn check(world: &World, injected: &Injected) -> (usize, Vec<String>) {
    let picture = world.picture().unwrap();
    let held = held(world, &injected.holds);
    let mut wrong = Vec::new();
    if held.is_empty() {
        wrong.push("nobody is held".to_owned());
    }
    if injected.expected.is_empty() && injected.words.len() < 2 {
        wrong.push("nothing was put there".to_owned());
    }
    let mut later = 0;
    for node in &held {
        let Some(story) = explain(&picture.world(), node, picture.at) else {
            wrong.push(format!("there is no story of {node}"));
            continue;
        };
        // While others of its workload are moved nobody looks for places for it.
        let in_turn = |it: &Cause| {
            let meant = injected.expected.contains(&name_of(it));
            it.reason == "SharedWorkload" && !meant && real(world, node, it)
        };
        if !story.causes.is_empty() && story.causes.iter().all(in_turn) {
            later += 1;
            continue;
        }
        let told = lacks(&story, injected);
        if !told.is_empty() {
            wrong.push(format!("{}\nsays of\n{story}{:?}", told.join("\n"), story.causes));
        }
        let pool = picture.fleet.nodes[node].member.pool.clone().unwrap();
        let of_pool = explain_pool(&picture.world(), &pool, picture.at).unwrap();
        let told = unnamed(&of_pool, injected);
        if !told.is_empty() {
            wrong.push(format!("{}\nsays of\n{of_pool}", told.join("\n")));
        }
    }
    let looked_at = later < held.len();
    let pods = injected.expected.iter().filter(|it| it.0 == "Pod" && looked_at);
    for (_, namespace, name) in pods {
        match explain_pod(&picture.world(), namespace, name, picture.at) {
            Some(story) if story.to_string().contains("holds") => {}
            Some(story) => wrong.push(format!("the pod does not say what it holds\n{story}")),
            None => wrong.push(format!("there is no story of pod {namespace}/{name}")),
        }
    }
    for node in picture.fleet.nodes.keys() {
        let Some(story) = explain(&picture.world(), node, picture.at) else { continue };
        for cause in &story.causes {
            if !put_there(cause, injected) && !real(world, node, cause) {
                wrong.push(format!("{cause:?} is not so\n{story}"));
            }
        }
        if story.next.is_empty() {
            wrong.push(format!("nothing happens next\n{story}"));
        }
    }
    (held.len() - later, wrong)
}

fn name_of(cause: &Cause) -> Object {
    (cause.named.kind.to_owned(), cause.named.namespace.clone(), cause.named.name.clone())
}

fn unnamed(story: &Story, injected: &Injected) -> Vec<String> {
    let named: BTreeSet<Object> = story.causes.iter().map(name_of).collect();
    let missing = injected.expected.iter().filter(|it| !named.contains(*it));
    missing.map(|it| format!("{it:?} is not named")).collect()
}

fn lacks(story: &Story, injected: &Injected) -> Vec<String> {
    let mut wrong = unnamed(story, injected);
    let text = story.to_string();
    for word in &injected.words {
        if !text.contains(word.as_str()) {
            wrong.push(format!("`{word}` is not said"));
        }
    }
    if let Some(at) = injected.ends_at {
        let said = story
            .causes
            .iter()
            .any(|it| injected.expected.contains(&name_of(it)) && it.ends_at == Some(at));
        if !said {
            wrong.push(format!("that it ends at {at} is not said"));
        }
    }
    // Whoever is named is read, too.
    for (_, _, name) in injected.expected.iter().filter(|it| it.0 != "DisruptionLedger") {
        if !text.contains(name.as_str()) {
            wrong.push(format!("`{name}` cannot be read"));
        }
    }
    wrong
}

fn put_there(cause: &Cause, injected: &Injected) -> bool {
    let name = name_of(cause);
    injected.expected.contains(&name) || injected.allowed.contains(&name)
}

/// Whether the objects say so of this node, though nobody meant it. What the story itself says is no proof.
fn real(world: &World, node: &str, cause: &Cause) -> bool {
    let named = &cause.named;
    match (named.kind, cause.reason) {
        ("DisruptionLedger" | "NodePool" | "ImagePolicy", "Budget") => {
            rooms::full(world, node, named.kind, &named.name)
                && rooms::users_told(world, node, &cause.text)
        }
        ("Node", "Succession" | "SharedWorkload") => {
            named.name != node && granted(world).contains(&named.name)
        }
        // One that came in the place of another, and is not ready yet.
        ("Pod", "SharedWorkload") => {
            let pod = |it: &Value| {
                it["metadata"]["namespace"] == named.namespace.as_str()
                    && it["metadata"]["name"] == named.name.as_str()
            };
            let ready = |it: &Value| {
                let all = it["status"]["conditions"].as_array();
                let ready = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
                all.into_iter().flatten().any(ready)
            };
            world.objects(kinds::POD).iter().any(|it| pod(it) && !ready(it))
        }
        ("PodDisruptionBudget", "SharedBudget") => {
            let on = |it: &str| selects(world, &named.namespace, &named.name, it);
            on(node) && granted(world).iter().any(|it| it != node)
        }
        ("PodDisruptionBudget", "PodDisruptionBudget") => {
            let allows = |it: &Value| it["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) > 0;
            let budget = budget(world, &named.namespace, &named.name);
            budget.is_some_and(|it| !allows(&it))
                && selects(world, &named.namespace, &named.name, node)
        }
        ("NodeClaim", "Launch" | "Registration" | "Readiness" | "Steadiness") => {
            succeeds(world, &named.name, node) && stage(world, &named.name) == Some(cause.reason)
        }
        // EC2 and SSM are asked about images by patterns and ids that nobody wrote; that they do not
        // answer was put there.
        ("SSMParameter", "CouldNotAsk") => throttled(world, "ssm"),
        ("Image", "CouldNotAsk") => throttled(world, "ec2"),
        ("Image", "NoImage") => throttled(world, "ec2") || throttled(world, "ssm"),
        _ => false,
    }
}

/// Whether somebody has let it be throttled, and that has not ended.
fn throttled(world: &World, whom: &str) -> bool {
    let mut now = false;
    for step in world.trace() {
        if let Fact::Fault { what } = &step.fact {
            now |= what.starts_with(&format!("throttle {whom}"));
        }
        now &= !matches!(step.fact, Fact::FaultsEnd);
    }
    now
}

/// Whether this claim was made for this node, by the record of its replacement.
fn succeeds(world: &World, claim: &str, node: &str) -> bool {
    world.objects(kinds::REPLACEMENT).iter().any(|it| {
        let successors = it["status"]["successors"].as_array().into_iter().flatten();
        it["spec"]["nodeName"] == node && successors.into_iter().any(|it| it["name"] == claim)
    })
}

/// What a claim has still before it, by its conditions and its node's.
fn stage(world: &World, claim: &str) -> Option<&'static str> {
    let all = world.objects(kinds::CLAIM);
    let claim = all.iter().find(|it| it["metadata"]["name"] == claim)?;
    let nodes = world.objects(kinds::NODE);
    let node = nodes.iter().find(|it| it["metadata"]["name"] == claim["status"]["nodeName"]);
    Some(match node {
        _ if !holds(claim, "Launched") => "Launch",
        None => "Registration",
        Some(_) if !holds(claim, "Registered") => "Registration",
        Some(node) if !holds(node, "Ready") || !holds(claim, "Initialized") => "Readiness",
        Some(_) => "Steadiness",
    })
}

fn budget(world: &World, namespace: &str, name: &str) -> Option<Value> {
    let all = world.objects(kinds::PDB);
    let found = all
        .iter()
        .find(|it| it["metadata"]["name"] == name && it["metadata"]["namespace"] == namespace);
    found.map(|it| Value::clone(it))
}

/// Whether this `PodDisruptionBudget` selects a pod on this node.
fn selects(world: &World, namespace: &str, name: &str, node: &str) -> bool {
    let Some(budget) = budget(world, namespace, name) else { return false };
    let labels = budget["spec"]["selector"]["matchLabels"].as_object().cloned().unwrap_or_default();
    world.objects(kinds::POD).iter().any(|it| {
        let of = &it["metadata"]["labels"];
        it["spec"]["nodeName"] == node
            && it["metadata"]["namespace"] == namespace
            && labels.iter().all(|(key, value)| of[key] == *value)
    })
}

/// The nodes that have been there from the beginning and are held by what was put there.
fn held(world: &World, holds: &Holds) -> Vec<String> {
    let granted = granted(world);
    let nodes = world.objects(kinds::NODE);
    let names = nodes.iter().filter_map(|it| it["metadata"]["name"].as_str());
    let old = names.filter(|it| it.contains("-node-")).map(str::to_owned);
    match holds {
        Holds::Ungranted => old.filter(|it| !granted.contains(it)).collect(),
        Holds::All => old.collect(),
        Holds::Granted => old.filter(|it| granted.contains(it)).collect(),
        Holds::Node(name) => old.filter(|it| it == name).collect(),
        Holds::PodsOf(namespace, prefix) => {
            let pods = world.objects(kinds::POD);
            let theirs = pods.iter().filter(|it| {
                let name = it["metadata"]["name"].as_str().unwrap_or_default();
                it["metadata"]["namespace"] == namespace.as_str()
                    && name.starts_with(prefix.as_str())
            });
            let on: BTreeSet<String> = theirs
                .filter_map(|it| Value::as_str(&it["spec"]["nodeName"]))
                .map(str::to_owned)
                .collect();
            old.filter(|it| on.contains(it)).collect()
        }
    }
}
