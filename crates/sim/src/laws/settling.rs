//! Has everything come to an end, now that nothing goes wrong any more?

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::read::{self, items, text};
use super::words::FINALIZER;
use super::world::{Pod, World, class_key, must_move};
use super::{Found, Law, Setting, budget, excuse};
use crate::trace::{Actor, Fact, ReplicaState, Step, WaitsFor};

/// Every other phase is an end.
const OPEN: [&str; 6] =
    ["Launching", "Joining", "Settling", "Draining", "Terminating", "Retreating"];

#[derive(Debug, Default)]
pub(super) struct Settling {
    /// By class, the images that its nodes should run in the end.
    expected: BTreeMap<String, BTreeSet<String>>,
    /// Of whom the last turn of a leader said that they wait, and for what.
    waiting: BTreeMap<String, Vec<WaitsFor>>,
    leads: BTreeSet<u8>,
    replaced: bool,
    cordoned: bool,
    completed: u64,
}

impl Settling {
    pub(super) fn expect(&mut self, class: &str, images: BTreeSet<String>) {
        self.expected.insert(class.to_owned(), images);
    }

    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// Right before the step.
    pub(super) fn see(&mut self, world: &World, step: &Step) {
        match (&step.fact, step.by) {
            (Fact::Turned(turned), Actor::Operator(replica)) if self.leads.contains(&replica) => {
                self.waiting = turned.waits.iter().cloned().collect();
            }
            (Fact::Replica { number, state }, _) => match state {
                ReplicaState::Leads => {
                    self.leads.insert(*number);
                }
                ReplicaState::Started | ReplicaState::Follows | ReplicaState::Crashed => {
                    self.leads.remove(number);
                }
            },
            (Fact::Stored { resource, object, .. }, Actor::Operator(_)) => match resource.kind {
                "Replacement" => {
                    self.replaced = true;
                    let done = |it: &Value| text(it, &["status", "phase"]) == Some("Done");
                    let before = world.replacements.get(read::name(object));
                    if done(object) && !before.is_some_and(|it| done(it)) {
                        self.completed += 1;
                    }
                }
                "Node" => {
                    self.cordoned |= read::annotation(object, super::world::CORDONED_BY).is_some();
                }
                _ => {}
            },
            _ => {}
        }
    }

    pub(super) fn at_rest(
        &self,
        world: &World,
        setting: &Setting,
        now: Timestamp,
        found: &mut Found,
    ) {
        if self.replaced {
            found.premise(Law::Settling);
        }
        if self.cordoned {
            found.premise(Law::CordonUndone);
        }
        for (name, record) in &world.replacements {
            if open(record) && !held(world, record, now) {
                let node = text(record, &["spec", "nodeName"]).unwrap_or(name);
                let phase = text(record, &["status", "phase"]).unwrap_or("not begun");
                let what = format!("the replacement of {node} has not ended: {phase}");
                found.broken(Law::Settling, now, what);
            }
        }
        for (holder, grant) in &world.ledger.grants {
            if !world.replacements.get(holder).is_some_and(|it| open(it)) {
                let what = format!("node {} holds a grant for nothing", grant.node);
                found.broken(Law::Settling, now, what);
            }
        }
        for (node, waits) in &self.waiting {
            let lasting = waits.iter().any(|it| excuse::lasts(world, setting, node, it, now));
            let lasting = lasting || batch_held(world, node, now);
            if !lasting && room_for(world, setting, node, now) {
                let said: Vec<&str> = waits.iter().map(|it| it.sentence.as_str()).collect();
                let what = format!("node {node} still waits for {}", said.join("; "));
                found.broken(Law::Settling, now, what);
            }
            if let Some(name) = budget::used_up(world, node).filter(|_| !lasting)
                && !excuse::pool_is_full(world, node)
            {
                let what = format!(
                    "node {node} waits for NodeDisruptionBudget {name}, and others went without another in their place"
                );
                found.broken(Law::Settling, now, what);
            }
        }
        self.match_images(world, now, found);
        deleted(world, now, found);
        for (name, node) in &world.nodes {
            let Some((by, _)) = &node.cordoned else { continue };
            if !world.replacements.get(by).is_some_and(|it| open(it)) {
                let what = format!("node {name} is still cordoned, and its replacement has ended");
                found.broken(Law::CordonUndone, now, what);
            }
        }
    }

    /// Whether every node runs what it should in the end, whatever it waits for.
    pub(super) fn matched(&self, world: &World) -> bool {
        world.claims.values().map(|it| &it.object).all(|claim| {
            let class = class_key(claim, &["spec", "nodeClassRef"]);
            let image = text(claim, &["status", "imageID"]);
            let expected = self.expected.get(&class);
            expected.is_none_or(|it| image.is_none_or(|image| it.contains(image)))
        })
    }

    fn match_images(&self, world: &World, now: Timestamp, found: &mut Found) {
        for claim in world.claims.values().map(|it| &it.object) {
            let class = class_key(claim, &["spec", "nodeClassRef"]);
            let Some(expected) = self.expected.get(&class) else { continue };
            let (Some(image), Some(node)) =
                (text(claim, &["status", "imageID"]), text(claim, &["status", "nodeName"]))
            else {
                continue;
            };
            let under_way = world.replacements.get(read::uid(claim)).is_some_and(|it| open(it));
            if !expected.contains(image) && !self.waiting.contains_key(node) && !under_way {
                let what = format!("node {node} runs {image}, and nothing is said of it");
                found.broken(Law::Settling, now, what);
            }
        }
    }
}

/// Whether budgets and windows have room for a node: for whoever wants it gone. A person who has deleted it passes those that
/// hold us, and waits for those that hold people.
fn room_for(world: &World, setting: &Setting, node: &str, now: Timestamp) -> bool {
    if world.claim_of(node).is_some_and(|it| it.deleting_since.is_some()) {
        budget::room_for_people(world, node, now)
    } else {
        budget::room_for(world, setting, node, now)
    }
}

pub(super) fn open(record: &Value) -> bool {
    text(record, &["status", "phase"]).is_none_or(|it| OPEN.contains(&it))
}

/// With a cooldown nobody starts before all of a batch have ended, and one of them waits for people.
fn batch_held(world: &World, node: &str, now: Timestamp) -> bool {
    let Some(class) = world.class_of(node) else { return false };
    let rests = world.rollout_of(&class).is_some_and(|it| text(it, &["cooldown"]).is_some());
    let of_class = |record: &Value| {
        let other = text(record, &["spec", "nodeName"]).and_then(|it| world.class_of(it));
        other.as_ref() == Some(&class)
    };
    rests && world.replacements.values().any(|it| open(it) && of_class(it) && held(world, it, now))
}

/// A drain that waits for people, as people asked, because of a pod that only they let go: it may last.
pub(super) fn held(world: &World, record: &Value, now: Timestamp) -> bool {
    let status = |key: &str| text(record, &["status", key]);
    let paused = world.ledger.paused_since.is_some();
    let claim = text(record, &["spec", "nodeClaim", "uid"]).and_then(|it| world.claims.get(it));
    let waits = status("drainLimitAction") == Some("Wait")
        || matches!(status("cause"), Some("Delete" | "Interruption"))
        || claim.is_some_and(|it| it.deleting_since.is_some());
    let node = text(record, &["spec", "nodeName"]).unwrap_or_default();
    let mut pods = world.pods_on(node).filter(|it| must_move(&it.object, now));
    let kept = |it: &Pod| excuse::keeps(world, node, it, now);
    status("phase") == Some("Draining") && (paused || (waits && pods.any(kept)))
}

/// Whoever was deleted is gone in the end, unless only people could let it go.
fn deleted(world: &World, now: Timestamp, found: &mut Found) {
    for (uid, claim) in &world.claims {
        let Some(since) = claim.deleting_since else { continue };
        let record = world.replacements.get(uid);
        let node = text(&claim.object, &["status", "nodeName"]);
        let waits = record.is_some_and(|it| open(it) && held(world, it, now))
            || node.is_some_and(|it| !budget::room_for_people(world, it, now))
            || foreign_only(&claim.object);
        if !waits {
            let name = read::name(&claim.object);
            let what = format!("claim {name} was deleted at {since}, and is still there");
            found.broken(Law::Settling, now, what);
        }
    }
    for (name, node) in world.nodes.iter().filter(|it| read::deleting(&it.1.object).is_some()) {
        // With a claim that goes it is told of that one.
        let goes = world.claim_of(name).is_some_and(|it| it.deleting_since.is_some());
        if !goes && !foreign_only(&node.object) {
            let what = format!("node {name} was deleted, and is still there");
            found.broken(Law::Settling, now, what);
        }
    }
}

/// We have let it go, and somebody else has not.
fn foreign_only(object: &Value) -> bool {
    let mut finalizers =
        items(object, &["metadata", "finalizers"]).filter_map(Value::as_str).peekable();
    finalizers.peek().is_some() && finalizers.all(|it| it != FINALIZER)
}
