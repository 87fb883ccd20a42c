//! What do we tell people?
//!
//! `world × node, pool, pod or fleet × now → story`
//!
//! A story is a value: labelled facts, the causes with kind, namespace and name, and what happens next.
//! Text, JSON and HTML show the same one, and compute nothing. Times are given twice: relative for
//! people, absolute for tickets.

mod story;

use std::collections::BTreeMap;

use jiff::Timestamp;

pub use story::{Cause, Fact, Named, Story, relative};

use crate::budget::{BudgetId, Measured, Shortage, Unit, UsedBy};
use crate::drain::{Drain, Held, Hold, Pdb, PodId, Refused, Stays, evictions, limit_ends_at};
use crate::drift::{Divergence, Drift};
use crate::node::{ImageRef, Running};
use crate::plan::{Fleet, Node, Plan, WaitFor, Waiting};
use crate::replace::{Replacement, Step};

/// All that there is to tell from. What is missing is told as missing.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    pub fleet: &'a Fleet,
    pub plan: &'a Plan,
    pub rooms: &'a Measured,
    /// By node.
    pub running: &'a BTreeMap<String, Running>,
    pub drifts: &'a BTreeMap<String, Drift>,
    /// By node: open ones, and the last one that ended.
    pub replacements: &'a BTreeMap<String, Replacement>,
    /// By node: where each open one goes from here, as [`crate::replace::next`] says.
    pub steps: &'a BTreeMap<String, Step>,
    pub drains: &'a [Drain],
}

/// Why a node is, or is not, replaced. `None` if there is no such node.
pub fn explain(world: &World<'_>, name: &str, now: Timestamp) -> Option<Story> {
    let node = world.fleet.nodes.get(name)?;
    let mut story = Story::about("node", name);
    head(&mut story, world, name, node, now);
    if let Some(drift) = world.drifts.get(name) {
        tell_drift(&mut story, drift);
    }
    let replacement = world.replacements.get(name);
    if let Some(replacement) = replacement.filter(|it| !it.phase.ended()) {
        tell_replacement(&mut story, world, replacement, now);
    } else if let Some(waiting) = world.plan.waiting.get(name) {
        tell_waiting(&mut story, waiting, now);
    } else if let Some(start) = world.plan.start.iter().find(|it| it.node == name) {
        story.fact("plan", format!("starts now ({})", start.cause.as_str()));
        story.then("a successor is launched, if its pods need one");
    } else {
        story.fact("plan", "stays as it is");
        story.next = match world.drifts.get(name) {
            Some(Drift::Unknown(missing)) => format!("nothing, until we know {missing}"),
            Some(Drift::InSync | Drift::Drifted { .. }) | None => "nothing to do".to_owned(),
        };
    }
    Some(story)
}

fn head(story: &mut Story, world: &World<'_>, name: &str, node: &Node, now: Timestamp) {
    let running = world.running.get(name);
    let mut words = vec![name.to_owned()];
    words.extend(node.member.pool.as_ref().map(|it| format!("pool {it}")));
    words.extend(running.and_then(|it| it.instance_type.clone()));
    words.extend(node.zone.clone());
    words.push(format!("up {}", relative(now.duration_since(node.created_at))));
    story.fact("node", words.join("   "));
    if let Some(class) = &node.member.class {
        story.fact("class", class.clone());
    }
    if let Some(image) = running.and_then(|it| it.image.as_ref()) {
        story.fact("runs", image_text(image, now));
    }
    let wants = world.drifts.get(name).into_iter().flat_map(Drift::divergences);
    for divergence in wants {
        if let Divergence::Image { to, .. } = divergence {
            story.fact("wants", image_text(to, now));
        }
    }
}

fn image_text(image: &ImageRef, now: Timestamp) -> String {
    let mut words = vec![image.id.to_string()];
    words.extend(image.name.clone());
    words.extend(image.dated.map(|it| format!("{} old", relative(now.duration_since(it)))));
    words.join("   ")
}

fn tell_drift(story: &mut Story, drift: &Drift) {
    match drift {
        Drift::InSync => story.fact("drift", "in sync"),
        Drift::Unknown(missing) => story.fact("drift", format!("unknown: we miss {missing}")),
        Drift::Drifted { first, more, unchecked } => {
            story.fact("drift", first.to_string());
            for it in more {
                story.fact("", it.to_string());
            }
            for it in unchecked {
                story.fact("", format!("not compared: {it}"));
            }
        }
    }
}

fn tell_waiting(story: &mut Story, waiting: &Waiting, now: Timestamp) {
    for (place, reason) in waiting.all().enumerate() {
        let cause = cause(reason);
        story.fact(if place == 0 { "plan" } else { "" }, format!("waiting for {}", cause.text));
        story.causes.push(cause);
    }
    story.next = match (&waiting.first, waiting.first.ends_at()) {
        (WaitFor::Budget(shortage), _) => after_shortage(shortage, now),
        (_, Some(at)) => format!("looked at again {}", story::when(at, now)),
        (_, None) => "starts when that is lifted".to_owned(),
    };
}

fn after_shortage(shortage: &Shortage, now: Timestamp) -> String {
    match (shortage.used_by.first(), shortage.opens_at) {
        (_, Some(at)) => format!("looked at again {}", story::when(at, now)),
        (Some((node, UsedBy::Grant { .. })), None) => format!("starts when {node} is done"),
        (Some((node, UsedBy::Unavailable(_))), None) => {
            format!("starts when {node} is available again")
        }
        (None, None) => "starts when the budget allows more".to_owned(),
    }
}

fn tell_replacement(
    story: &mut Story,
    world: &World<'_>,
    replacement: &Replacement,
    now: Timestamp,
) {
    let since = story::ago(replacement.since, now);
    let Replacement { phase, cause: why, because, .. } = replacement;
    story.fact("plan", format!("{} since {since} ({}): {because}", phase.as_str(), why.as_str()));
    for successor in &replacement.successors {
        story.fact("", format!("successor {}", successor.claim));
    }
    let node = &replacement.old.node;
    let (_, held) = evictions(world.drains, &world.fleet.pdbs, now);
    for held in held.iter().filter(|it| it.node == *node && blocks(&it.why)) {
        let cause = held_cause(held, &world.fleet.pdbs);
        story.fact("", format!("pod {}: {}", held.pod, cause.text));
        story.causes.push(cause);
    }
    let drain = world.drains.iter().find(|it| it.node == *node);
    let limit = drain.and_then(|it| limit_ends_at(it, now));
    let step = world.steps.get(node);
    story.next = match (limit, step) {
        (Some(at), _) if !story.causes.is_empty() => {
            format!("the drain limit ends {}", story::when(at, now))
        }
        (_, Some(step)) if step.phase == *phase => step.because.to_string(),
        (_, Some(step)) => format!("{}: {}", step.phase.as_str(), step.because),
        (_, None) => format!("goes on from {}", phase.as_str()),
    };
}

fn blocks(hold: &Hold) -> bool {
    match hold {
        Hold::Stays(_) | Hold::Terminating | Hold::UnderWay { .. } | Hold::AfterOthers => false,
        Hold::Protected(_) | Hold::Bare | Hold::Refused(_) => true,
    }
}

/// Where a person would go to lift it.
pub fn cause(reason: &WaitFor) -> Cause {
    let text = reason.to_string();
    let named = match reason {
        WaitFor::Unlock { .. } | WaitFor::Resume { .. } => {
            Named::cluster("DisruptionLedger", "cluster")
        }
        WaitFor::OtherHand { by } => Named::cluster("Controller", by),
        WaitFor::ProtectedPod { pod, .. }
        | WaitFor::BarePod { pod }
        | WaitFor::HomelessPod { pod, .. }
        | WaitFor::Place { pod, .. } => Named::of("Pod", pod),
        WaitFor::Pdb { pod, refused } => match refused.pdb() {
            Some(pdb) => Named::in_namespace("PodDisruptionBudget", &pod.namespace, pdb),
            None => Named::cluster("Namespace", &pod.namespace),
        },
        WaitFor::SharedBudget { pdb, .. } => {
            let (namespace, name) = pdb.split_once('/').unwrap_or(("", pdb));
            Named::in_namespace("PodDisruptionBudget", namespace, name)
        }
        WaitFor::SharedWorkload { node, .. } => Named::cluster("Node", node),
        WaitFor::Window { policy, .. } => Named::cluster("ImagePolicy", policy),
        WaitFor::Budget(shortage) => budget_name(&shortage.id),
        WaitFor::Limit { pool, .. } => Named::cluster("NodePool", pool),
        WaitFor::Image { .. }
        | WaitFor::ProtectedNode { .. }
        | WaitFor::NextTry { .. }
        | WaitFor::Capacity { .. }
        | WaitFor::Lifetime { .. }
        | WaitFor::Reach { .. }
        | WaitFor::Consideration => Named::nothing(),
    };
    Cause { reason: reason.reason(), named, text, ends_at: reason.ends_at() }
}

fn budget_name(id: &BudgetId) -> Named {
    match id {
        BudgetId::Serial => Named::cluster("DisruptionLedger", "cluster"),
        BudgetId::Disruption { name } => Named::cluster("NodeDisruptionBudget", name),
        BudgetId::Class { policy, .. } => Named::cluster("ImagePolicy", policy),
        BudgetId::Pool { name } => Named::cluster("NodePool", name),
    }
}

fn held_cause(held: &Held, pdbs: &[Pdb]) -> Cause {
    let (reason, named, text) = match &held.why {
        Hold::Refused(refused) => {
            let named = match refused.pdb() {
                Some(pdb) => Named::in_namespace("PodDisruptionBudget", &held.pod.namespace, pdb),
                None => Named::cluster("Namespace", &held.pod.namespace),
            };
            ("PodDisruptionBudget", named, refused_text(refused, &held.pod, pdbs))
        }
        Hold::Protected(protection) => {
            let text = format!("says `{}`", protection.annotation);
            ("ProtectedPod", Named::of("Pod", &held.pod), text)
        }
        Hold::Bare => (
            "BarePod",
            Named::of("Pod", &held.pod),
            "has no controller and would be lost".to_owned(),
        ),
        Hold::UnderWay { pdb } => (
            "Eviction",
            Named::in_namespace("PodDisruptionBudget", &held.pod.namespace, pdb),
            "its eviction was accepted".to_owned(),
        ),
        Hold::Terminating => {
            ("Terminating", Named::of("Pod", &held.pod), "is on its way".to_owned())
        }
        Hold::AfterOthers => {
            ("AfterOthers", Named::of("Pod", &held.pod), "leaves after all others".to_owned())
        }
        Hold::Stays(stays) => ("Stays", Named::of("Pod", &held.pod), stays_text(*stays).to_owned()),
    };
    Cause { reason, named, text, ends_at: held.again_at }
}

fn stays_text(stays: Stays) -> &'static str {
    match stays {
        Stays::DaemonSet => "stays with the node: of a DaemonSet",
        Stays::Mirror => "stays with the node: a mirror pod",
        Stays::Finished => "stays with the node: finished",
        Stays::ToleratesCordon => "stays with the node: it tolerates the cordon",
        Stays::Stuck => "should be gone, and goes with the machine",
    }
}

fn refused_text(refused: &Refused, pod: &PodId, pdbs: &[Pdb]) -> String {
    let matching =
        |it: &&Pdb| Some(it.name.as_str()) == refused.pdb() && it.namespace == pod.namespace;
    match pdbs.iter().find(matching) {
        Some(pdb) => {
            format!("{refused} ({} healthy, {} wanted)", pdb.current_healthy, pdb.desired_healthy)
        }
        None => refused.to_string(),
    }
}

/// What a pod does to its node, and what is done about it.
pub fn explain_pod(
    world: &World<'_>,
    namespace: &str,
    name: &str,
    now: Timestamp,
) -> Option<Story> {
    let (node_name, node, pod) = world.fleet.nodes.iter().find_map(|(node_name, node)| {
        let pod = node.pods.iter().find(|it| it.id.namespace == namespace && it.id.name == name)?;
        Some((node_name, node, pod))
    })?;
    let mut story = Story::about("pod", &pod.id.to_string());
    story.fact("pod", pod.id.to_string());
    story.fact("node", node_name.clone());
    let (evict, held) = evictions(world.drains, &world.fleet.pdbs, now);
    if let Some(held) = held.iter().find(|it| it.pod == pod.id) {
        let cause = held_cause(held, &world.fleet.pdbs);
        story.fact("drain", cause.text.clone());
        story.next = match held.again_at {
            Some(at) => format!("looked at again {}", story::when(at, now)),
            None if blocks(&held.why) => "leaves when that is lifted".to_owned(),
            None => "nothing to do".to_owned(),
        };
        story.causes.push(cause);
    } else if evict.iter().any(|it| it.pod == pod.id) {
        story.fact("drain", "may leave now");
        story.then("it is evicted");
    } else {
        story.fact("drain", "its node is not being emptied");
        let waiting = world.plan.waiting.get(node_name);
        for reason in waiting.into_iter().flat_map(Waiting::all) {
            let cause = cause(reason);
            if speaks_of(reason, &pod.id) {
                story.fact("holds", format!("its node waits for {}", cause.text));
                story.causes.push(cause);
            }
        }
        story.next = match (&node.wish, waiting) {
            (None, _) => "nothing to do".to_owned(),
            (Some(_), Some(_)) => format!("see node {node_name}"),
            (Some(_), None) => format!("node {node_name} is about to be replaced"),
        };
    }
    Some(story)
}

fn speaks_of(reason: &WaitFor, id: &PodId) -> bool {
    match reason {
        WaitFor::ProtectedPod { pod, .. }
        | WaitFor::BarePod { pod }
        | WaitFor::Pdb { pod, .. }
        | WaitFor::HomelessPod { pod, .. }
        | WaitFor::SharedBudget { pod, .. }
        | WaitFor::Limit { pod, .. }
        | WaitFor::Place { pod, .. } => pod == id,
        WaitFor::Unlock { .. }
        | WaitFor::Resume { .. }
        | WaitFor::OtherHand { .. }
        | WaitFor::Image { .. }
        | WaitFor::ProtectedNode { .. }
        | WaitFor::NextTry { .. }
        | WaitFor::Capacity { .. }
        | WaitFor::Lifetime { .. }
        | WaitFor::Window { .. }
        | WaitFor::Reach { .. }
        | WaitFor::SharedWorkload { .. }
        | WaitFor::Budget(_)
        | WaitFor::Consideration => false,
    }
}

/// How far a pool is. `None` if no node is of it.
pub fn explain_pool(world: &World<'_>, pool: &str, now: Timestamp) -> Option<Story> {
    let of_pool = |it: &Node| it.member.pool.as_deref() == Some(pool);
    if !world.fleet.nodes.values().any(of_pool) {
        return None;
    }
    let mut story = Story::about("pool", pool);
    story.fact("pool", pool);
    tell_many(&mut story, world, &of_pool, now);
    if let Some(homeless) = world.fleet.homeless.get(pool) {
        story.fact(
            "pending",
            format!("pod {} since {}", homeless.pod, story::ago(homeless.since, now)),
        );
    }
    Some(story)
}

/// How far everything is.
pub fn explain_fleet(world: &World<'_>, now: Timestamp) -> Story {
    let mut story = Story::about("fleet", "");
    tell_many(&mut story, world, &|_| true, now);
    for room in world.rooms.rooms() {
        let unit = match room.unit {
            Unit::Nodes => "nodes",
            Unit::Cpu => "m processors",
        };
        // A class without a figure of its own has the cluster's slot.
        if room.allowed < u64::MAX {
            let used = room.used_sum();
            story.fact("budget", format!("{}: {used} of {} {unit} in use", room.id, room.allowed));
        }
    }
    story
}

fn tell_many(story: &mut Story, world: &World<'_>, of: &dyn Fn(&Node) -> bool, now: Timestamp) {
    let nodes: BTreeMap<&String, &Node> =
        world.fleet.nodes.iter().filter(|(_, it)| of(it)).collect();
    let drift = |what: fn(&Drift) -> bool| {
        nodes.keys().filter_map(|it| world.drifts.get(*it)).filter(|it| what(it)).count()
    };
    let unknown = drift(|it| matches!(it, Drift::Unknown(_)));
    let drifted = drift(Drift::drifted);
    story.fact("nodes", format!("{}   {drifted} drifted   {unknown} unknown", nodes.len()));
    let under_way = world.plan.under_way.iter().filter(|it| nodes.contains_key(it));
    for name in under_way {
        if let Some(it) = world.replacements.get(name) {
            let since = story::ago(it.since, now);
            story.fact("going", format!("{name}   {} since {since}", it.phase.as_str()));
        }
    }
    for start in world.plan.start.iter().filter(|it| nodes.contains_key(&it.node)) {
        story.fact("start", format!("{}   {}", start.node, start.cause.as_str()));
    }
    let waiting: Vec<_> =
        world.plan.waiting.iter().filter(|(name, _)| nodes.contains_key(name)).collect();
    let mut by_reason: BTreeMap<&'static str, (usize, &String, &WaitFor)> = BTreeMap::new();
    for (name, it) in &waiting {
        let (count, _, _) = by_reason.entry(it.first.reason()).or_insert((0, *name, &it.first));
        *count += 1;
    }
    for (_, (count, name, reason)) in by_reason {
        let cause = cause(reason);
        story.fact("waiting", format!("{count}, for example {name}: for {}", cause.text));
        story.causes.push(cause);
    }
    let first_change = waiting.iter().filter_map(|(_, it)| it.first.ends_at()).min();
    story.next = match (world.plan.expected, first_change) {
        (Some(it), _) => format!(
            "{} nodes, {} at once: about {} more",
            it.nodes,
            it.at_once,
            relative(it.duration)
        ),
        (None, Some(at)) => format!("looked at again {}", story::when(at, now)),
        (None, None) if waiting.is_empty() => "nothing to do".to_owned(),
        (None, None) => "goes on when what they wait for is lifted".to_owned(),
    };
}
