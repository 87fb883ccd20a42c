//! How does a pod leave?
//!
//! Through the eviction API, with its UID and its grace period, from a node that we cordoned, and so that its
//! budget is kept by our own count. A pod that is deleted past all that was recorded before. One that would come
//! right back is not evicted, and ends with its machine as if it were.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::budget::paused;
use super::machines::live;
use super::read::{self, at, items, text};
use super::succession::forced;
use super::world::{Pod, World, known, must_move};
use super::{CALL_TAKES, Complaint, Found, Law, Setting, protection};
use crate::trace::{Actor, Fact, Step};

/// What a pod has that does not say.
const GRACE_DEFAULT: i64 = 30;

/// Docs say: a drain goes on for at least so long after the last pod has left, unless a policy says how long.
const DRAIN_LIMIT_MIN: SignedDuration = SignedDuration::from_mins(5);

/// Times in objects are whole seconds, and those of a turn are of its beginning.
const EARLY_BY: SignedDuration = SignedDuration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Eviction {
    /// Pods that we let go, before anybody said how.
    going: Vec<Going>,
    /// By UID: since when a pod says that it must not be disturbed.
    protected: BTreeMap<String, Timestamp>,
    /// By node: when a pod last left that had to.
    left_at: BTreeMap<String, Timestamp>,
    /// How far behind some clock has ever been: it may have written down when something began.
    slowest_clock: SignedDuration,
}

#[derive(Debug)]
struct Going {
    at: Timestamp,
    explained: bool,
    object: Rc<Value>,
    node: Option<String>,
    healthy: bool,
}

impl Eviction {
    pub(super) fn see(&mut self, world: &World, setting: &Setting, step: &Step, found: &mut Found) {
        self.slowest_clock = self.slowest_clock.max(setting.slowest_clock);
        if !self.going.is_empty() {
            self.overdue(step.at, found);
        }
        for pod in world.ended_by(step) {
            found.premise(Law::Eviction);
            self.ended(world, pod, step, found);
        }
        let ours = matches!(step.by, Actor::Operator(_));
        match (&step.fact, ours) {
            (Fact::Stored { resource, object, .. }, _) if resource.kind == "Pod" => {
                self.protect(object, step.at);
                if ours && read::deleting(object).is_some() {
                    self.go(world, object, step.at);
                }
            }
            (Fact::Removed { resource, last }, _) if resource.kind == "Pod" => {
                self.protected.remove(read::uid(last));
                if let Some(node) = text(last, &["spec", "nodeName"])
                    && must_move(last, step.at)
                {
                    self.left_at.insert(node.to_owned(), step.at);
                }
                if ours {
                    self.go(world, last, step.at);
                }
            }
            (Fact::Evicted { namespace, pod, uid, grace_seconds, code: 201 }, true) => {
                found.premise(Law::Eviction);
                let asked = Asked { uid: uid.as_deref(), grace: *grace_seconds };
                let Some(leaving) = self.leaving(world, namespace, pod) else { return };
                self.evicted(world, &leaving, asked, step, found);
            }
            (Fact::PodDeleted { namespace, pod, uid, grace_seconds }, true) => {
                found.premise(Law::Eviction);
                let asked = Asked { uid: uid.as_deref(), grace: *grace_seconds };
                let Some(leaving) = self.leaving(world, namespace, pod) else { return };
                self.deleted(world, &leaving, asked, step, found);
            }
            (_, _) => {}
        }
    }

    fn protect(&mut self, pod: &Value, now: Timestamp) {
        if protection::said(pod) {
            self.protected.entry(read::uid(pod).to_owned()).or_insert(now);
        } else if !self.protected.is_empty() {
            self.protected.remove(read::uid(pod));
        }
    }

    /// One call makes several facts at one moment, in either order; how it was asked must be among them.
    fn overdue(&mut self, now: Timestamp, found: &mut Found) {
        for it in self.going.extract_if(.., |it| it.at < now).filter(|it| !it.explained) {
            let pod = &it.object;
            let what = format!(
                "pod {}/{} went, and neither was evicted nor deleted by name",
                read::namespace(pod),
                read::name(pod)
            );
            found.broken(Law::Eviction, it.at, what);
        }
    }

    fn go(&mut self, world: &World, pod: &Rc<Value>, now: Timestamp) {
        let known = world.pod(read::namespace(pod), read::name(pod));
        let known = known.filter(|it| read::uid(&it.object) == read::uid(pod));
        let Some(known) = known else { return };
        if known.evicted || read::deleting(&known.object).is_some() {
            return;
        }
        self.going.push(Going {
            at: now,
            explained: false,
            object: Rc::clone(&known.object),
            node: known.node.clone(),
            healthy: known.healthy,
        });
    }

    /// The pod as it was before it was asked to go.
    fn leaving(&mut self, world: &World, namespace: &str, name: &str) -> Option<Leaving> {
        let same = |it: &Value| read::namespace(it) == namespace && read::name(it) == name;
        if let Some(going) = self.going.iter_mut().find(|it| same(&it.object)) {
            going.explained = true;
            let (object, node) = (Rc::clone(&going.object), going.node.clone());
            return Some(Leaving { object, node, healthy: going.healthy });
        }
        let pod = world.pod(namespace, name)?;
        let object = Rc::clone(&pod.object);
        Some(Leaving { object, node: pod.node.clone(), healthy: pod.healthy })
    }

    fn evicted(
        &self,
        world: &World,
        leaving: &Leaving,
        asked: Asked<'_>,
        step: &Step,
        found: &mut Found,
    ) {
        let pod = &leaving.object;
        let mut said = complaint(pod, "evicted", asked, step, found);
        if let Some(grace) = asked.grace.filter(|it| *it < own_grace(pod)) {
            said.broken(&format!("with {grace} s of grace, and has {} s", own_grace(pod)));
        }
        if self.protects(pod, world.sent_at(step)) {
            said.broken("although it says that it must not be disturbed");
        }
        match read::controller(pod) {
            None if !bare_pods_go(world, leaving) => {
                said.broken("although nothing would start it again");
            }
            Some(("DaemonSet" | "Node", _, _)) => {
                said.broken("although it belongs to its node");
            }
            Some(_) | None => {}
        }
        if let Some(node) =
            leaving.node.as_deref().filter(|it| !cordoned(world, it, world.sent_at(step)))
        {
            said.broken(&format!("from node {node}, which we had not cordoned"));
        }
        if leaving.node.as_ref().is_some_and(|it| paused(world, it, world.sent_at(step))) {
            said.broken("in a pause or a lock");
        }
        for pdb in budgets(world, pod) {
            let left = healthy(world, pdb, pod, step.at);
            let desired = read::number(pdb, &["status", "desiredHealthy"]).unwrap_or(0);
            if leaving.healthy && left < desired {
                said.broken(&format!(
                    "and leaves {left} of the {desired} that PodDisruptionBudget {} wants",
                    read::name(pdb)
                ));
            }
        }
    }

    /// Whether it says that it must not be disturbed, and everybody must know.
    fn protects(&self, pod: &Value, now: Timestamp) -> bool {
        let since = self.protected.get(read::uid(pod));
        since.is_some_and(|it| known(*it, now)) && protection::holds(pod, now)
    }

    /// It ends with its machine, by what we ask for now.
    fn ended(&self, world: &World, pod: &Pod, step: &Step, found: &mut Found) {
        let name = pod.node.as_deref().unwrap_or_default();
        let claim = world.claim_of(name).zip(world.nodes.get(name));
        let Some((claim, node)) = claim else { return };
        let record = world.replacements.get(read::uid(&claim.object));
        let chosen = forced(world, claim, node, step.at)
            || record.is_some_and(|it| recorded_force(it, &pod.object));
        // Nobody could know of who came a moment ago.
        let sent_at = world.sent_at(step);
        if chosen || !known(pod.bound_at, sent_at) {
            return;
        }
        // A claim is deleted for good. Whoever goes to its node all the same, past the taint, goes along.
        if read::deleting(&claim.object).is_some_and(|it| it < pod.bound_at) {
            return;
        }
        // It has ended already: somebody else, or EC2, took the machine away.
        let machine = text(&claim.object, &["status", "providerID"]).map(read::machine_of);
        if machine.and_then(|it| world.machines.get(it)).is_some_and(|it| !live(it)) {
            return;
        }
        let called = format!("{}/{}", read::namespace(&pod.object), read::name(&pod.object));
        let of = format!("pod {called} ends with node {name}");
        let mut said = Complaint { found, law: Law::Eviction, at: step.at, of };
        if self.protects(&pod.object, sent_at)
            && at(&claim.object, &["spec", "terminationGracePeriod"]).is_none()
        {
            said.broken("although it says that it must not be disturbed");
        }
        for pdb in budgets(world, &pod.object).filter(|_| pod.healthy) {
            let others = world.ended_by(step);
            let beside = others.iter().filter(|it| {
                read::uid(&it.object) < read::uid(&pod.object)
                    && it.healthy
                    && read::selects(at(pdb, &["spec", "selector"]), read::labels(&it.object))
            });
            let beside = i64::try_from(beside.count()).unwrap_or(i64::MAX);
            let left = healthy(world, pdb, &pod.object, step.at) - beside;
            let desired = read::number(pdb, &["status", "desiredHealthy"]).unwrap_or(0);
            if left < desired {
                said.broken(&format!(
                    "and leaves {left} of the {desired} that PodDisruptionBudget {} wants",
                    read::name(pdb)
                ));
            }
        }
    }

    /// Past its budget, and by name.
    fn deleted(
        &self,
        world: &World,
        leaving: &Leaving,
        asked: Asked<'_>,
        step: &Step,
        found: &mut Found,
    ) {
        let pod = &leaving.object;
        let mut said = complaint(pod, "deleted", asked, step, found);
        if asked.grace.is_some_and(|it| it < 1) {
            said.broken("at once");
        }
        let claim = leaving.node.as_deref().and_then(|it| world.claim_of(it));
        let record = claim.and_then(|it| world.replacements.get(read::uid(&it.object)));
        if !record.is_some_and(|it| recorded_force(it, pod)) {
            said.broken("and that was not recorded before");
        }
        // Somebody must have chosen that: a deadline on the claim, or a policy that forces.
        if record.and_then(|it| text(it, &["status", "cause"])) == Some("Interruption") {
            return;
        }
        let (Some(name), Some(claim)) = (leaving.node.as_deref(), claim) else { return };
        let class = world.class_of(name);
        let rollout = class.as_deref().and_then(|it| world.rollout_of(it));
        let force = |it: Option<&str>| it == Some("Force");
        let forces = force(rollout.and_then(|it| text(it, &["drainLimitAction"])))
            || force(record.and_then(|it| text(it, &["status", "drainLimitAction"])));
        let deadline = text(&claim.object, &["spec", "terminationGracePeriod"]);
        let cordoned = world.nodes.get(name).and_then(|it| it.cordoned.as_ref()).map(|it| it.1);
        let now = world.sent_at(step).saturating_add(self.early_by()).unwrap_or(step.at);
        if let Some(lasts) = deadline.and_then(read::duration) {
            // Its grace period is just what is left.
            let begun = [claim.deleting_since, cordoned].into_iter().flatten().min();
            let from = lasts.saturating_sub(SignedDuration::from_secs(own_grace(pod)));
            if begun.is_none_or(|it| now.duration_since(it) < from) {
                said.broken("before the time that its node has left");
            }
        } else if !forces && deadline.is_none() {
            said.broken("and nobody asked for force");
        } else if deadline.is_none()
            && self.too_early(world, name, rollout, cordoned, world.sent_at(step))
        {
            said.broken("before the drain limit was reached");
        }
    }

    fn early_by(&self) -> SignedDuration {
        EARLY_BY.saturating_add(self.slowest_clock)
    }

    /// Whether pods of this node were asked to leave for less than the drain limit, or one has left since that
    /// everybody must know of.
    fn too_early(
        &self,
        world: &World,
        node: &str,
        rollout: Option<&Value>,
        cordoned: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        // What it was a moment ago may have been shorter.
        if !known(world.limits_changed_at, now) {
            return false;
        }
        let limit = rollout.and_then(|it| text(it, &["drainLimit"])).and_then(read::duration);
        let limit = limit.unwrap_or(DRAIN_LIMIT_MIN);
        let short = |it: Timestamp| now.duration_since(it).saturating_add(self.early_by()) < limit;
        cordoned.is_none_or(short)
            || self.left_at.get(node).is_some_and(|it| known(*it, now) && short(*it))
    }
}

/// The pod that leaves, as it was before.
struct Leaving {
    object: Rc<Value>,
    node: Option<String>,
    healthy: bool,
}

#[derive(Clone, Copy)]
struct Asked<'a> {
    uid: Option<&'a str>,
    grace: Option<i64>,
}

/// What is said of a pod that was asked to go, by name and by what never comes again.
fn complaint<'f>(
    pod: &Value,
    what: &str,
    asked: Asked<'_>,
    step: &Step,
    found: &'f mut Found,
) -> Complaint<'f> {
    let of = format!("pod {}/{} was {what}", read::namespace(pod), read::name(pod));
    let mut said = Complaint { found, law: Law::Eviction, at: step.at, of };
    if asked.uid != Some(read::uid(pod)) {
        said.broken("without its UID");
    }
    said
}

fn own_grace(pod: &Value) -> i64 {
    read::number(pod, &["spec", "terminationGracePeriodSeconds"]).unwrap_or(GRACE_DEFAULT)
}

/// Whether it stands in a Replacement that a pod goes past its budget.
fn recorded_force(record: &Value, pod: &Value) -> bool {
    items(record, &["status", "drain", "forced"]).any(|it| match text(it, &["uid"]) {
        Some(uid) => uid == read::uid(pod),
        None => {
            text(it, &["namespace"]) == Some(read::namespace(pod))
                && text(it, &["name"]) == Some(read::name(pod))
        }
    })
}

fn bare_pods_go(world: &World, leaving: &Leaving) -> bool {
    let class = leaving.node.as_deref().and_then(|it| world.class_of(it));
    // Who said so a moment ago is believed.
    let lately = !known(world.limits_changed_at, world.now);
    let rollout = class.as_deref().and_then(|it| world.rollout_of(it));
    lately || rollout.and_then(|it| text(it, &["barePods"])) == Some("Evict")
}

/// Whether a node takes no pods by our cordon, or did when that was last asked: right before the act.
fn cordoned(world: &World, node: &str, now: Timestamp) -> bool {
    let Some(node) = world.nodes.get(node) else { return true };
    let lately = node.uncordoned_at.is_some_and(|it| now.duration_since(it) <= CALL_TAKES);
    node.cordoned.is_some() || lately
}

/// The budgets that select a pod.
fn budgets<'a>(world: &'a World, pod: &'a Value) -> impl Iterator<Item = &'a Value> {
    world.all("PodDisruptionBudget").map(|(_, it)| &*it.object).filter(|it| {
        read::namespace(it) == read::namespace(pod)
            && read::selects(at(it, &["spec", "selector"]), read::labels(pod))
    })
}

/// How many healthy pods a budget has without this one, and without those that we asked to go. What others
/// ended a moment ago nobody could know.
fn healthy(world: &World, pdb: &Value, leaving: &Value, now: Timestamp) -> i64 {
    let selector = at(pdb, &["spec", "selector"]);
    let counts = |it: &&Pod| !it.evicted && (it.healthy || !known(it.healthy_changed_at, now));
    let there = world.pods.get(read::namespace(pdb)).into_iter().flat_map(BTreeMap::values);
    let there = there
        .filter(|it| read::uid(&it.object) != read::uid(leaving))
        .filter(counts)
        .filter(|it| read::selects(selector, read::labels(&it.object)))
        .count();
    let lost = world
        .lost
        .iter()
        .filter(|it| !known(it.at, now) && read::namespace(&it.object) == read::namespace(pdb))
        .filter(|it| read::selects(selector, read::labels(&it.object)))
        .count();
    i64::try_from(there + lost).unwrap_or(i64::MAX)
}
