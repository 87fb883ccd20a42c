//! Did every pod have a place before it had to go?
//!
//! At a cordon of ours: all successors are ready for long enough, and the pods that must move fit on nodes that
//! are there, all at once and beside those that we moved before. At the end of a claim or a machine: nobody who
//! must move is left. Recorded exceptions pass.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::packing::{Amounts, Packed, Place, pack, says_more};
use super::read::{self, at, items, text};
use super::world::{
    CORDONED_BY, Claim, DISRUPTED_TAINT, Node, Pod, World, has_taint, known, must_leave, must_move,
};
use super::{CALL_TAKES, Found, Law};
use crate::trace::{Actor, Step};

/// How long a successor must have been ready. Times in objects are whole seconds, which may be earlier.
const STEADY_FOR: SignedDuration = SignedDuration::from_secs(28);

pub(super) fn see_cordon(world: &World, node: &Value, step: &Step, found: &mut Found) {
    let name = read::name(node);
    let Some(before) = world.nodes.get(name) else { return };
    let news = has_taint(node, DISRUPTED_TAINT) && !has_taint(&before.object, DISRUPTED_TAINT);
    if !news || !matches!(step.by, Actor::Operator(_)) || excepted(world, name, node) {
        return;
    }
    // Nobody could know of who came a moment ago.
    let sent_at = world.sent_at(step);
    let leaving: Vec<&Pod> =
        moving(world, name, step.at).filter(|it| known(it.bound_at, sent_at)).collect();
    if !leaving.is_empty() {
        found.premise(Law::Succession);
    }
    let by = read::annotation(node, CORDONED_BY);
    let record = by.and_then(|it| world.replacements.get(it));
    let Some(record) = record else {
        // Somebody deleted it a moment ago.
        if by.is_some_and(|it| world.lately_removed("Replacement", it, sent_at)) {
            return;
        }
        let what = format!("node {name} was cordoned for a Replacement that is not there");
        found.broken(Law::Succession, step.at, what);
        return;
    };
    for successor in items(record, &["status", "successors"]).filter(|it| of_this_try(record, it)) {
        if let Some(why) = unready(world, successor, sent_at) {
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
pub(super) fn of_this_try(record: &Value, successor: &Value) -> bool {
    let own = read::number(successor, &["try"]);
    own.is_none() || own == read::number(record, &["status", "try"])
}

fn unready(world: &World, successor: &Value, now: Timestamp) -> Option<String> {
    let claim = text(successor, &["uid"]).and_then(|it| world.claims.get(it));
    let Some(claim) = claim else { return Some("has no claim".to_owned()) };
    let node = text(&claim.object, &["status", "nodeName"]).and_then(|it| world.nodes.get(it));
    let Some(node) = node else { return Some("is no node".to_owned()) };
    if !node.ready {
        // It is asked right before; that it broke after that nobody could know.
        let known = !node.ever_ready || now.duration_since(node.since) > CALL_TAKES;
        return known.then(|| "is not ready".to_owned());
    }
    // It came back after this was sent, so it was there before, or nobody could know.
    let steady = now.duration_since(node.since);
    (SignedDuration::ZERO..STEADY_FOR)
        .contains(&steady)
        .then(|| format!("is ready for {steady:#} only"))
}

fn moving<'a>(world: &'a World, node: &str, now: Timestamp) -> impl Iterator<Item = &'a Pod> {
    world.pods_on(node).filter(move |it| must_move(&it.object, now))
}

/// Whether all pods that leave have a place at once, beside those that we moved before and that have none yet,
/// and those that are still to leave other nodes.
fn no_room(world: &World, name: &str, leaving: &[&Pod], step: &Step, found: &mut Found) {
    let now = world.sent_at(step);
    let places = places(world, name, now);
    let own = modelled(leaving.iter().map(|it| &*it.object), found);
    if own.is_empty() {
        return;
    }
    let alone = pack(&own, &places);
    let told = match &alone {
        Packed::Not(Some(pod)) => format!("pod {pod} fits nowhere else"),
        Packed::Not(None) => format!("its {} pods need more than is free", own.len()),
        Packed::Fit | Packed::Unsure => String::new(),
    };
    if !told.is_empty() {
        let what = format!("node {name} was cordoned, and {told}");
        found.broken(Law::Succession, step.at, what);
        return;
    }
    let before = modelled(moved_before(world, name, now), found);
    // Where those have no place themselves this node does not take it from them.
    if before.is_empty() || alone == Packed::Unsure || pack(&before, &places) != Packed::Fit {
        found.undecided += u64::from(alone == Packed::Unsure);
        return;
    }
    let all: Vec<&Value> = before.iter().chain(&own).copied().collect();
    match pack(&all, &places) {
        Packed::Fit => {}
        Packed::Unsure => found.undecided += 1,
        Packed::Not(_) => {
            let what = format!(
                "node {name} was cordoned, and its {} pods have no place beside the {} that we moved before",
                own.len(),
                before.len()
            );
            found.broken(Law::Succession, step.at, what);
        }
    }
}

/// Those whose words are all read here; the others are counted and nothing is said of them.
fn modelled<'a>(pods: impl Iterator<Item = &'a Value>, found: &mut Found) -> Vec<&'a Value> {
    let (more, plain): (Vec<&Value>, Vec<&Value>) = pods.partition(|it| says_more(it));
    found.undecided += u64::try_from(more.len()).unwrap_or(u64::MAX);
    plain
}

/// Pods that took the place of those that we moved and are nowhere yet, and those that are still to leave nodes
/// that we have cordoned.
fn moved_before<'a>(
    world: &'a World,
    name: &'a str,
    now: Timestamp,
) -> impl Iterator<Item = &'a Value> {
    let all = world.pods.values().flat_map(BTreeMap::values).map(|it| &*it.object);
    let pending = all.filter(move |it| {
        let owner = read::controller(it).and_then(|(_, _, uid)| world.moved.get(uid));
        let came = read::time(it, &["metadata", "creationTimestamp"]);
        at(it, &["spec", "nodeName"]).is_none()
            && read::deleting(it).is_none()
            && must_move(it, now)
            // Times in objects are whole seconds, which may be earlier.
            && owner.zip(came).is_some_and(|(since, came)| {
                came.as_second() >= since.as_second() && known(came, now)
            })
    });
    let others = world.nodes.iter().filter(move |(other, node)| {
        other.as_str() != name && node.cordoned.is_some() && !excepted(world, other, &node.object)
    });
    let to_leave = others
        .flat_map(move |(other, _)| moving(world, other, now))
        .filter(move |it| read::deleting(&it.object).is_none() && known(it.bound_at, now))
        .map(|it| &*it.object);
    pending.chain(to_leave)
}

/// Nodes that take pods, as far as everybody knows.
fn places<'a>(world: &'a World, without: &str, now: Timestamp) -> Vec<Place<'a>> {
    let open = world.nodes.iter().filter(|(it, node)| {
        it.as_str() != without
            && node.ever_ready
            && node.away_since.is_none_or(|it| !known(it, now))
    });
    open.map(|(it, node)| {
        let pods: Vec<&Value> = there(world, it, now).map(|it| &*it.object).collect();
        Place { node: &node.object, free: free(&node.object, &pods), pods }
    })
    .collect()
}

/// Who is on a node, without pods that came too lately to be known of.
fn there<'a>(world: &'a World, name: &str, now: Timestamp) -> impl Iterator<Item = &'a Pod> {
    let finished =
        |it: &Value| matches!(text(it, &["status", "phase"]), Some("Succeeded" | "Failed"));
    world
        .pods_on(name)
        .filter(move |it| !finished(&it.object) && known(it.bound_at, now))
        .filter(|it| read::deleting(&it.object).is_none())
}

fn free(node: &Value, pods: &[&Value]) -> Amounts {
    let has = |resource: &str| read::quantity(at(node, &["status", "allocatable", resource]));
    let all = Amounts { cpu: has("cpu"), memory: has("memory"), pods: has("pods") / 1000 };
    pods.iter().fold(all, |left, it| left.minus(Amounts::of(it)))
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
    // Whoever deletes a node wants its claim gone as well; the machine waits for the pods all the same.
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
    let Some(seen) = world.machines.get(machine) else { return };
    let act = format!("machine {machine} was ended");
    let Some(claim) = world.claim_of_machine(seen) else {
        // Nobody's, as far as claims go. Whoever runs there is somebody's all the same.
        if let Some(name) = seen.node.as_deref().filter(|_| seen.state == "running") {
            found.premise(Law::Succession);
            nobody_left(world, name, &act, step, found);
        }
        return;
    };
    let has = text(&claim.object, &["status", "providerID"]).map(read::machine_of);
    if has.is_none_or(|it| it == machine) {
        still_there(world, claim, &act, step, found);
    } else if let Some(name) = seen.node.as_deref() {
        // The claim has another machine, and its node is that one's.
        nobody_left(world, name, &act, step, found);
    }
}

fn still_there(world: &World, claim: &Claim, act: &str, step: &Step, found: &mut Found) {
    let Some(name) = text(&claim.object, &["status", "nodeName"]) else { return };
    let Some(node) = world.nodes.get(name) else { return };
    if gone(world, claim) || forced(world, claim, node, step.at) {
        return;
    }
    found.premise(Law::Succession);
    nobody_left(world, name, act, step, found);
}

fn nobody_left(world: &World, name: &str, act: &str, step: &Step, found: &mut Found) {
    // Who is there is asked right before; nobody could know of who came after that.
    let sent_at = world.sent_at(step);
    let mut left = world.pods_on(name).filter(|it| must_leave(&it.object, step.at));
    let left = left.find(|it| sent_at.duration_since(it.bound_at) > CALL_TAKES);
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
pub(super) fn forced(world: &World, claim: &Claim, node: &Node, now: Timestamp) -> bool {
    let record = world.replacements.get(read::uid(&claim.object));
    let interrupted = record.and_then(|it| text(it, &["status", "cause"])) == Some("Interruption");
    let grace = text(&claim.object, &["spec", "terminationGracePeriod"]).and_then(read::duration);
    let begun = [claim.deleting_since, node.cordoned.as_ref().map(|it| it.1)];
    let over = grace
        .is_some_and(|grace| begun.into_iter().flatten().any(|it| now.duration_since(it) >= grace));
    interrupted || over
}
