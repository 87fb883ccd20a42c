//! What do people read of a life?

use std::borrow::Cow;
use std::fmt::Write as _;

use nodemolt_core::budget::BudgetId;
use nodemolt_core::catalog::Query;
use nodemolt_core::drain::{PodId, Refused};
use nodemolt_core::drift::Drift;
use nodemolt_core::image::NamePattern;
use nodemolt_core::plan::{Unable, Unasked, UsedUp, WaitFor};
use nodemolt_engine::Turn;
use serde_json::Value;

use crate::replica::commands;
use crate::trace::{Actor, Fact, ReplicaState, Step, Turned, WaitsFor};

/// What a turn decided about whom.
pub(super) fn turned(turn: &Turn) -> Turned {
    let picture = &turn.picture;
    let wished = picture.fleet.nodes.iter().filter(|(_, it)| it.wish.is_some());
    let unknown = picture.drifts.iter().filter(|(_, it)| matches!(it, Drift::Unknown(_)));
    let acts = turn.acts.iter().filter(|it| commands(it)).count();
    Turned {
        wished: wished.map(|(name, _)| name.clone()).collect(),
        starts: picture.plan.start.iter().map(|it| it.node.clone()).collect(),
        under_way: picture.plan.under_way.iter().cloned().collect(),
        waits: picture
            .plan
            .waiting
            .iter()
            .map(|(name, it)| (name.clone(), it.all().map(waits_for).collect()))
            .collect(),
        unknown: unknown.map(|(name, _)| name.clone()).collect(),
        writes: turn.writes,
        commands: u32::try_from(acts).unwrap_or(u32::MAX),
    }
}

/// What a node waits for, by what people would have to look at.
fn waits_for(it: &WaitFor) -> WaitsFor {
    let pod = |pod: &PodId| ("Pod", Some(pod.namespace.clone()), Some(pod.name.clone()));
    let named = |kind: &'static str, name: &str| (kind, None, Some(name.to_owned()));
    let nobody = |kind: &'static str| (kind, None, None);
    let (kind, namespace, name) = match it {
        WaitFor::Record { name, .. } => named("Replacement", name),
        WaitFor::News { kind, .. } => nobody(kind),
        WaitFor::Unlock { .. } => nobody("Lock"),
        WaitFor::Resume { .. } => nobody("Pause"),
        WaitFor::Clock(_) => nobody("Clock"),
        WaitFor::OtherHand { by } => named("Controller", by),
        WaitFor::Image(_) => nobody("Image"),
        WaitFor::ProtectedNode { .. } => nobody("Node"),
        WaitFor::ProtectedPod { pod: it, .. }
        | WaitFor::BarePod { pod: it }
        | WaitFor::HomelessPod { pod: it, .. }
        | WaitFor::Place { pod: it, .. } => pod(it),
        WaitFor::Pdb { pod: it, refused } => match budget_of(refused) {
            Some(pdb) => {
                let name = pdb.rsplit_once('/').map_or(pdb, |(_, name)| name);
                ("PodDisruptionBudget", Some(it.namespace.clone()), Some(name.to_owned()))
            }
            None => named("Namespace", &it.namespace),
        },
        WaitFor::Recurs(recurs) => named("NodeClaim", &recurs.claim),
        WaitFor::NextTry { .. } => nobody("NextTry"),
        WaitFor::Capacity { .. } => nobody("Capacity"),
        WaitFor::Lifetime { .. } => nobody("Lifetime"),
        WaitFor::Window { policy, .. } => named("ImagePolicy", policy),
        WaitFor::Reach { .. } => nobody("Rollout"),
        WaitFor::SharedBudget { pdb, pod, .. } => {
            let name = pdb.rsplit_once('/').map_or(pdb.as_str(), |(_, name)| name);
            ("PodDisruptionBudget", Some(pod.namespace.clone()), Some(name.to_owned()))
        }
        WaitFor::Succession { node } => named("Node", node),
        WaitFor::SharedWorkload { workload, .. } => named("Workload", workload),
        WaitFor::Budget(shortage) => match &shortage.id {
            BudgetId::Serial => nobody("Budget"),
            BudgetId::Disruption { name } => named("NodeDisruptionBudget", name),
            BudgetId::Class { policy, .. } => named("ImagePolicy", policy),
            BudgetId::Pool { name } => named("NodePool", name),
        },
        WaitFor::Limit { pool, .. } => named("NodePool", pool),
        WaitFor::Addresses(dry) => named("EC2NodeClass", &dry.class),
        WaitFor::Class(Unable { class, .. })
        | WaitFor::Answer(Unasked { class, .. })
        | WaitFor::Reservation(UsedUp { class, .. }) => named("EC2NodeClass", class),
        WaitFor::Consideration => nobody("Consideration"),
    };
    let (reason, kind) = (it.reason(), kind.to_owned());
    WaitsFor { reason, kind, namespace, name, behind: behind(it), sentence: it.to_string() }
}

/// Which node it waits for.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others wait for no node")]
fn behind(it: &WaitFor) -> Option<String> {
    match it {
        WaitFor::Succession { node }
        | WaitFor::SharedBudget { node, .. }
        | WaitFor::SharedWorkload { node, .. } => Some(node.clone()),
        _ => None,
    }
}

fn budget_of(refused: &Refused) -> Option<&str> {
    match refused {
        Refused::NamespaceTerminating => None,
        Refused::SeveralBudgets { pdbs } => pdbs.first().map(String::as_str),
        Refused::Stale { pdb }
        | Refused::NoneAllowed { pdb }
        | Refused::NotAll { pdb, .. }
        | Refused::Negative { pdb }
        | Refused::TooManyDisrupted { pdb } => Some(pdb),
    }
}

/// What people call them.
pub fn who(by: Actor) -> Cow<'static, str> {
    match by {
        Actor::Operator(number) => Cow::Owned(format!("operator-{number}")),
        Actor::Person => Cow::Borrowed("a person"),
        Actor::Kubelet => Cow::Borrowed("kubelet"),
        Actor::Scheduler => Cow::Borrowed("scheduler"),
        Actor::Controllers => Cow::Borrowed("controllers"),
        Actor::Cloud => Cow::Borrowed("EC2"),
        Actor::Publisher => Cow::Borrowed("publisher"),
        Actor::Fate => Cow::Borrowed("fate"),
    }
}

/// What a question is about, in the words of who publishes and owns. A question can name a hundred things: the first
/// tells which it was.
pub(super) fn about(query: &Query) -> String {
    let (kind, owners, names): (_, Vec<String>, Vec<String>) = match query {
        Query::Untold => return "whatever there is".to_owned(),
        Query::Images(it) => {
            let ids = it.ids.iter().map(ToString::to_string);
            let names = it.names.iter().map(|it| it.as_str().to_owned());
            let tags = it.tags.iter().map(|(key, value)| {
                format!("tagged {key}={}", value.as_ref().map_or("*", NamePattern::as_str))
            });
            let public = it.public_parameters.iter().map(|it| format!("named by {it}"));
            let asked = ids.chain(names).chain(tags).chain(public).collect();
            ("images", it.owners.iter().map(ToString::to_string).collect(), asked)
        }
        Query::Parameters(it) => {
            let below = it.paths.iter().map(|it| format!("below {it}"));
            ("parameters", Vec::new(), it.names.iter().cloned().chain(below).collect())
        }
    };
    let mut told = kind.to_owned();
    if let Some(first) = names.first() {
        let _ = write!(told, " {first}");
    }
    if names.len() > 1 {
        let _ = write!(told, " and {} more", names.len() - 1);
    }
    if !owners.is_empty() {
        let _ = write!(told, " of {}", owners.join(", "));
    }
    told
}

/// One step as one line.
pub fn line(step: &Step) -> String {
    format!("{}  {:<12} {}", step.at, who(step.by), what(step))
}

/// What happened in it, without when and by whom.
pub fn what(step: &Step) -> String {
    match &step.fact {
        Fact::Stored { resource, object, old } => {
            let verb = if old.is_some() { "changes" } else { "makes" };
            let told = told(object, old.as_deref());
            format!("{verb} {} {}{told}", resource.kind, name(object))
        }
        Fact::Removed { resource, last } => format!("{} {} is gone", resource.kind, name(last)),
        Fact::Evicted { namespace, pod, code, .. } => format!("evicts {namespace}/{pod}: {code}"),
        Fact::PodDeleted { namespace, pod, .. } => format!("deletes pod {namespace}/{pod}"),
        Fact::LaunchAsked { token, machine, made, error } => match (machine, error) {
            (Some(machine), _) if *made => format!("launches {machine} with token {token}"),
            (Some(machine), _) => format!("asks again with token {token}: {machine}"),
            (None, Some(error)) => format!("asks with token {token} for a machine: {error}"),
            (None, None) => format!("asks with token {token} for a machine: none"),
        },
        Fact::TerminateAsked { machine } => format!("terminates {machine}"),
        Fact::Answered { question: _, about, complete } => {
            let answer = if *complete { "answered" } else { "not answered" };
            format!("asks for {about}: {answer}")
        }
        Fact::Machine(it) => format!(
            "machine {} is {}: {} in {} with {}",
            it.id, it.state, it.instance_type, it.zone, it.image
        ),
        Fact::Image(it) => format!(
            "image {} ({}) {}{}",
            it.id,
            it.name,
            if it.launchable { "can be launched" } else { "cannot be launched" },
            if it.deprecated { ", deprecated" } else { "" }
        ),
        Fact::Turned(it) => format!(
            "turns: {} wished, {} start, {} under way, {} wait, {} unknown, {} writes, {} commands",
            it.wished.len(),
            it.starts.len(),
            it.under_way.len(),
            it.waits.len(),
            it.unknown.len(),
            it.writes,
            it.commands
        ),
        Fact::Replica { number, state } => {
            let state = match state {
                ReplicaState::Started => "starts",
                ReplicaState::Leads => "leads",
                ReplicaState::Follows => "does not lead any more",
                ReplicaState::Crashed => "crashes",
            };
            format!("operator-{number} {state}")
        }
        Fact::Fault { what } => format!("fault: {what}"),
        Fact::FaultsEnd => "nothing more goes wrong".to_owned(),
        Fact::HeldUp { since } => format!("does what it wanted to do at {since}"),
        Fact::Refused { what, why } => format!("wants to write {what} and is refused: {why}"),
        Fact::Act { what } | Fact::Published { what } => what.clone(),
    }
}

fn name(object: &Value) -> String {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str);
    let name = text("/metadata/name").unwrap_or("?");
    match text("/metadata/namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

/// What changed, where that is one word.
fn told(object: &Value, old: Option<&Value>) -> String {
    let changed = |at: &str| {
        let new = object.pointer(at);
        let same = old.is_some_and(|old| old.pointer(at) == new);
        if same { None } else { new.and_then(Value::as_str).map(str::to_owned) }
    };
    let mut told = Vec::new();
    // Its time of deletion is when its grace is over.
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let deleted = match grace {
        Some(1..) => "is being deleted, and may stay until",
        Some(_) | None => "is being deleted since",
    };
    for (word, at) in [
        (deleted, "/metadata/deletionTimestamp"),
        ("phase", "/status/phase"),
        ("on", "/spec/nodeName"),
        ("held by", "/spec/holderIdentity"),
    ] {
        if let Some(value) = changed(at) {
            told.push(format!("{word} {value}"));
        }
    }
    if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) }
}

/// The last steps before now, each in a line: what a life that failed prints.
pub fn last_lines(world: &super::World, count: usize) -> String {
    lines(world.trace(), count)
}

/// The last of these steps, each in a line.
fn lines(steps: &[Step], count: usize) -> String {
    let first = steps.len().saturating_sub(count);
    steps[first..].iter().map(line).collect::<Vec<_>>().join("\n")
}

/// So many events are told of a life in which a law was broken.
const EVENTS_TOLD: usize = 20;

/// What is printed when a seed breaks a law: which, the last events up to then, and how to see it again.
pub fn failure(world: &super::World, replay: &str) -> Option<String> {
    let first = world.violations().first()?;
    let mut text = String::new();
    for it in world.violations() {
        // Nothing fails to be written into a text.
        let _ = writeln!(text, "broken: {}", it.violation);
    }
    let events = lines(world.trace_until(first.step), EVENTS_TOLD);
    let _ = writeln!(text, "the last {EVENTS_TOLD} events before the first:\n{events}");
    let _ = writeln!(text, "to see it again: {replay}");
    Some(text)
}
