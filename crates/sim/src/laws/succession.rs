//! Did every pod have a place before it had to go?
//!
//! At a cordon of ours: all successors are ready for long enough, each pod that must move fits on some node that
//! is there, and all of them together need no more than is free. At the end of a claim or a machine:
//! nobody who must move is left. Recorded exceptions pass.

use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::read::{self, at, items, text};
use super::world::{
    CORDONED_BY, Claim, DISRUPTED_TAINT, Node, Pod, World, has_taint, known, must_move,
};
use super::{Found, Law};
use crate::trace::{Actor, Step};

/// How long a successor must have been ready. Times in objects are whole seconds, which may be earlier.
const STEADY_FOR: SignedDuration = SignedDuration::from_secs(28);

/// Processor and memory in thousandths, and pods.
#[derive(Debug, Clone, Copy, Default)]
struct Amounts {
    cpu: i128,
    memory: i128,
    pods: i128,
}

impl Amounts {
    fn fits(self, free: Self) -> bool {
        self.cpu <= free.cpu && self.memory <= free.memory && self.pods <= free.pods
    }

    fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            memory: self.memory + other.memory,
            pods: self.pods + other.pods,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            cpu: (self.cpu - other.cpu).max(0),
            memory: (self.memory - other.memory).max(0),
            pods: (self.pods - other.pods).max(0),
        }
    }
}

pub(super) fn see_cordon(world: &World, node: &Value, step: &Step, found: &mut Found) {
    let name = read::name(node);
    let Some(before) = world.nodes.get(name) else { return };
    let news = has_taint(node, DISRUPTED_TAINT) && !has_taint(&before.object, DISRUPTED_TAINT);
    if !news || !matches!(step.by, Actor::Operator(_)) || excepted(world, name, node) {
        return;
    }
    let leaving: Vec<&Pod> = moving(world, name, step.at).collect();
    if !leaving.is_empty() {
        found.premise(Law::Succession);
    }
    let record = read::annotation(node, CORDONED_BY).and_then(|it| world.replacements.get(it));
    let Some(record) = record else {
        let what = format!("node {name} was cordoned for a Replacement that is not there");
        found.broken(Law::Succession, step.at, what);
        return;
    };
    for successor in items(record, &["status", "successors"]).filter(|it| of_this_try(record, it)) {
        if let Some(why) = unready(world, successor, step.at) {
            let claim = text(successor, &["name"]).unwrap_or_default();
            let what = format!("node {name} was cordoned, and its successor {claim} {why}");
            found.broken(Law::Succession, step.at, what);
        }
    }
    no_room(world, name, &leaving, step, found);
}

/// Somebody else decided that it goes, or said that it goes first.
fn excepted(world: &World, name: &str, node: &Value) -> bool {
    let claim = world.claim_of(name);
    let deleted =
        read::deleting(node).is_some() || claim.is_some_and(|it| it.deleting_since.is_some());
    let record = claim.and_then(|it| world.replacements.get(read::uid(&it.object)));
    let cause = record.and_then(|it| text(it, &["status", "cause"]));
    let order = record.and_then(|it| text(it, &["status", "order"]));
    let class = world.class_of(name);
    let rollout = class.as_deref().and_then(|it| world.rollout_of(it));
    let delete_first = [order, rollout.and_then(|it| text(it, &["replacement"]))]
        .into_iter()
        .any(|it| it == Some("DeleteFirst"));
    deleted || matches!(cause, Some("Delete" | "Interruption")) || delete_first
}

/// Those of earlier tries may be anything by now.
fn of_this_try(record: &Value, successor: &Value) -> bool {
    let own = read::number(successor, &["try"]);
    own.is_none() || own == read::number(record, &["status", "try"])
}

fn unready(world: &World, successor: &Value, now: Timestamp) -> Option<String> {
    let claim = text(successor, &["uid"]).and_then(|it| world.claims.get(it));
    let Some(claim) = claim else { return Some("has no claim".to_owned()) };
    let node = text(&claim.object, &["status", "nodeName"]).and_then(|it| world.nodes.get(it));
    let Some(node) = node else { return Some("is no node".to_owned()) };
    if !node.ready {
        // That it broke a moment ago nobody could know.
        let known = !node.ever_ready || known(node.since, now);
        return known.then(|| "is not ready".to_owned());
    }
    let steady = now.duration_since(node.since);
    (steady < STEADY_FOR).then(|| format!("is ready for {steady:#} only"))
}

fn moving<'a>(world: &'a World, node: &str, now: Timestamp) -> impl Iterator<Item = &'a Pod> {
    world.pods_on(node).filter(move |it| must_move(&it.object, now))
}

fn no_room(world: &World, name: &str, leaving: &[&Pod], step: &Step, found: &mut Found) {
    if leaving.is_empty() {
        return;
    }
    let places: Vec<(&Node, Amounts)> = world
        .nodes
        .iter()
        .filter(|(it, node)| {
            it.as_str() != name
                && node.ever_ready
                && node.away_since.is_none_or(|it| !known(it, step.at))
        })
        .map(|(it, node)| (node, free(world, it, node, step.at)))
        .collect();
    let whole = places.iter().fold(Amounts::default(), |sum, (_, free)| sum.plus(*free));
    let wanted = leaving.iter().fold(Amounts::default(), |sum, it| sum.plus(requests(&it.object)));
    if !wanted.fits(whole) {
        let what = format!(
            "node {name} was cordoned, and its {} pods need more than is free",
            leaving.len()
        );
        found.broken(Law::Succession, step.at, what);
        return;
    }
    for pod in leaving {
        let asks = requests(&pod.object);
        let room = places.iter().any(|(node, free)| asks.fits(*free) && admits(node, &pod.object));
        if !room {
            let (namespace, pod) = (read::namespace(&pod.object), read::name(&pod.object));
            let what =
                format!("node {name} was cordoned, and pod {namespace}/{pod} fits nowhere else");
            found.broken(Law::Succession, step.at, what);
        }
    }
}

/// What a node has left, without pods that came too lately to be known of.
fn free(world: &World, name: &str, node: &Node, now: Timestamp) -> Amounts {
    let has =
        |resource: &str| read::quantity(at(&node.object, &["status", "allocatable", resource]));
    let all = Amounts { cpu: has("cpu"), memory: has("memory"), pods: has("pods") / 1000 };
    let finished =
        |it: &&Pod| matches!(text(&it.object, &["status", "phase"]), Some("Succeeded" | "Failed"));
    world
        .pods_on(name)
        .filter(|it| !finished(it) && known(it.bound_at, now))
        .filter(|it| read::deleting(&it.object).is_none())
        .fold(all, |left, it| left.minus(requests(&it.object)))
}

fn requests(pod: &Value) -> Amounts {
    let of = |container: &Value, resource: &str| {
        read::quantity(at(container, &["resources", "requests", resource]))
    };
    let sum = |resource: &str| {
        items(pod, &["spec", "containers"]).map(|it| of(it, resource)).sum::<i128>()
    };
    Amounts { cpu: sum("cpu"), memory: sum("memory"), pods: 1 }
}

/// Taints and the plain selector; what else a pod may say is left to the scheduler.
fn admits(node: &Node, pod: &Value) -> bool {
    let selector = at(pod, &["spec", "nodeSelector"]).and_then(Value::as_object);
    let labels = read::labels(&node.object);
    let selected = selector.is_none_or(|it| {
        it.iter().all(|(key, value)| labels.and_then(|it| it.get(key)) == Some(value))
    });
    selected
        && items(&node.object, &["spec", "taints"]).all(|it| {
            let word = |key| text(it, &[key]).unwrap_or_default();
            // Ours may have come a moment ago; the filter before has looked at it.
            word("key") == DISRUPTED_TAINT
                || word("effect") == "PreferNoSchedule"
                || read::tolerates(pod, word("key"), word("value"), word("effect"))
        })
}

/// We ask for the end of a claim.
pub(super) fn see_claim(world: &World, claim: &Value, step: &Step, found: &mut Found) {
    let before = world.claims.get(read::uid(claim));
    let news =
        read::deleting(claim).is_some() && before.is_some_and(|it| it.deleting_since.is_none());
    if !news || !matches!(step.by, Actor::Operator(_)) {
        return;
    }
    let name = read::name(claim);
    // Who deleted the node has decided; that its claim follows ends nothing yet. Its machine's end is seen.
    let node = text(claim, &["status", "nodeName"]).and_then(|it| world.nodes.get(it));
    if node.is_some_and(|it| read::deleting(&it.object).is_some()) {
        return;
    }
    if let Some(before) = before {
        still_there(world, before, &format!("claim {name} was deleted"), step, found);
    }
}

/// We ask for the end of a machine.
pub(super) fn see_terminate(world: &World, machine: &str, step: &Step, found: &mut Found) {
    if !matches!(step.by, Actor::Operator(_)) {
        return;
    }
    let claim = world.machines.get(machine).and_then(|it| world.claim_of_machine(it));
    if let Some(claim) = claim {
        still_there(world, claim, &format!("machine {machine} was ended"), step, found);
    }
}

fn still_there(world: &World, claim: &Claim, act: &str, step: &Step, found: &mut Found) {
    let Some(name) = text(&claim.object, &["status", "nodeName"]) else { return };
    let Some(node) = world.nodes.get(name) else { return };
    if gone(world, claim) || forced(world, claim, node, step.at) {
        return;
    }
    found.premise(Law::Succession);
    // Nobody could know of who came a moment ago.
    let left = moving(world, name, step.at).find(|it| known(it.bound_at, step.at));
    if let Some(pod) = left {
        let (namespace, pod) = (read::namespace(&pod.object), read::name(&pod.object));
        let what = format!("{act} while pod {namespace}/{pod} was on node {name}");
        found.broken(Law::Succession, step.at, what);
    }
}

/// Its machine is not there any more, so nobody is left on it.
fn gone(world: &World, claim: &Claim) -> bool {
    let machine = text(&claim.object, &["status", "providerID"]).map(read::machine_of);
    let seen = machine.and_then(|it| world.machines.get(it));
    seen.is_some_and(|it: &Rc<_>| matches!(it.state, "shutting-down" | "terminated"))
}

/// An interruption, or a `terminationGracePeriod` that is over.
fn forced(world: &World, claim: &Claim, node: &Node, now: Timestamp) -> bool {
    let record = world.replacements.get(read::uid(&claim.object));
    let interrupted = record.and_then(|it| text(it, &["status", "cause"])) == Some("Interruption");
    let grace = text(&claim.object, &["spec", "terminationGracePeriod"]).and_then(read::duration);
    let begun = [claim.deleting_since, node.cordoned.as_ref().map(|it| it.1)];
    let over = grace
        .is_some_and(|grace| begun.into_iter().flatten().any(|it| now.duration_since(it) >= grace));
    interrupted || over
}
