//! What does the world look like, by the trace alone?
//!
//! Kept up with each step, and only where the step changed it. Objects stay as they came, shared with the
//! trace; beside them stands what time has to be kept of.

mod hearing;
mod kept;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::transport::Resource;
use serde_json::Value;

use super::read::{self, at, items, text};
use super::said::{key, line_of, other_members, same_words, says_same};
use super::{CALL_TAKES, KNOWN_AFTER};
use crate::trace::{Actor, Fact, Image, Machine, Step};
use hearing::Hearing;
pub(super) use kept::{Claim, Grant, Kept, Ledger, Lost, Node, Pod};

pub(super) const DISRUPTED_TAINT: &str = "karpenter.sh/disrupted";
pub(super) const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";
pub(super) const CORDONED_BY: &str = "nodemolt.dev/cordoned-by";
pub(super) const POOL_LABEL: &str = "karpenter.sh/nodepool";

/// A pod that should be gone for so long is not waited for.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(1);

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Timestamp,
    /// Before the first replica began nothing was news to anybody.
    begun: bool,
    pub(super) nodes: BTreeMap<String, Node>,
    /// Nodes that are gone, as they were last, and since when.
    pub(super) gone: BTreeMap<String, (Timestamp, Rc<Value>)>,
    /// By namespace and name.
    pub(super) pods: BTreeMap<String, BTreeMap<String, Pod>>,
    on: BTreeMap<String, BTreeSet<(String, String)>>,
    /// By UID of the owner: how many of its pods are healthy.
    running: BTreeMap<String, i64>,
    /// Pods that have no node, by namespace and name.
    nowhere: BTreeSet<(String, String)>,
    /// By UID of the owner, since when we have asked pods of it to go.
    pub(super) moved: BTreeMap<String, Timestamp>,
    /// Pods that others than we ended lately.
    pub(super) lost: VecDeque<Lost>,
    /// By UID.
    pub(super) claims: BTreeMap<String, Claim>,
    /// By UID, the claims that have not come as far as they go.
    on_their_way: BTreeSet<String>,
    /// By the name of the node, the UID of the claim.
    claim_of: BTreeMap<String, String>,
    /// By the name of the node, the class of a claim that is gone.
    class_was: BTreeMap<String, String>,
    /// Every UID that a claim ever had.
    pub(super) claims_ever: BTreeSet<String>,
    pub(super) machines: BTreeMap<String, Rc<Machine>>,
    pub(super) ledger: Ledger,
    pub(super) replacements: BTreeMap<String, Rc<Value>>,
    /// All other kinds that some law reads, by kind and name.
    pub(super) others: BTreeMap<&'static str, BTreeMap<String, Kept>>,
    /// When something was last written that says how many nodes may go and when.
    pub(super) limits_changed_at: Timestamp,
    /// When it last changed which nodes some limit is for.
    pub(super) members_changed_at: Timestamp,
    /// When something last changed by which images are chosen.
    pub(super) choice_changed_at: Timestamp,
    /// Whose call arrived last that was held up on its way, when, and since when it was to happen.
    held_up: Option<(Actor, Timestamp, Timestamp)>,
    pub(super) hearing: Hearing,
    /// Some pointer names another image than the newest: only who reads pointers knows what is wanted then.
    pub(super) pointer_moved: bool,
    /// Of what is gone, by kind and name, when it went.
    removed_at: BTreeMap<(&'static str, String), Timestamp>,
    pub(super) images: BTreeMap<String, Image>,
    /// Images that came when others of their kind were known already, and when.
    pub(super) appeared: BTreeMap<String, Timestamp>,
    /// By class and image: until when some claim ran it.
    pub(super) in_use: BTreeMap<(String, String), Timestamp>,
}

/// Whose changes change how many nodes may go, and when.
const LIMITS: [&str; 4] = ["NodeDisruptionBudget", "ImagePolicy", "NodePool", "EC2NodeClass"];

/// By whose words images are chosen.
const CHOICE: [&str; 4] = ["ImagePolicy", "ImageQuarantine", "EC2NodeClass", "NodePool"];

/// What nobody decides anything by.
pub(super) const NOISE: [&str; 3] = ["Lease", "Event", "CSINode"];

impl World {
    pub(super) fn new() -> Self {
        Self {
            now: Timestamp::MIN,
            begun: false,
            nodes: BTreeMap::new(),
            gone: BTreeMap::new(),
            pods: BTreeMap::new(),
            on: BTreeMap::new(),
            running: BTreeMap::new(),
            nowhere: BTreeSet::new(),
            moved: BTreeMap::new(),
            lost: VecDeque::new(),
            claims: BTreeMap::new(),
            on_their_way: BTreeSet::new(),
            claim_of: BTreeMap::new(),
            class_was: BTreeMap::new(),
            claims_ever: BTreeSet::new(),
            machines: BTreeMap::new(),
            ledger: Ledger::default(),
            replacements: BTreeMap::new(),
            others: BTreeMap::new(),
            limits_changed_at: Timestamp::MIN,
            members_changed_at: Timestamp::MIN,
            choice_changed_at: Timestamp::MIN,
            held_up: None,
            hearing: Hearing::default(),
            pointer_moved: false,
            removed_at: BTreeMap::new(),
            images: BTreeMap::new(),
            appeared: BTreeMap::new(),
            in_use: BTreeMap::new(),
        }
    }

    /// Pods that nobody asked to leave and that end with their machine, by this very step of ours: we ask for
    /// the end of a claim, or of a machine whose claim somebody else has deleted.
    pub(super) fn ended_by(&self, step: &Step) -> Vec<&Pod> {
        if !matches!(step.by, Actor::Operator(_)) {
            return Vec::new();
        }
        let claim = match &step.fact {
            Fact::Stored { resource, object, .. } if resource.kind == "NodeClaim" => {
                let before = self.claims.get(read::uid(object));
                before.filter(|it| it.deleting_since.is_none() && read::deleting(object).is_some())
            }
            Fact::TerminateAsked { machine } => {
                let claim = self.machines.get(machine).and_then(|it| self.claim_of_machine(it));
                // A second machine of the claim has a node of its own, if any.
                let own = |it: &&Claim| {
                    let has = text(&it.object, &["status", "providerID"]).map(read::machine_of);
                    has.is_none_or(|it| it == machine)
                };
                claim.filter(own)
            }
            Fact::Stored { .. }
            | Fact::Removed { .. }
            | Fact::Evicted { .. }
            | Fact::PodDeleted { .. }
            | Fact::LaunchAsked { .. }
            | Fact::Answered { .. }
            | Fact::Machine(_)
            | Fact::Published { .. }
            | Fact::Image(_)
            | Fact::Turned(_)
            | Fact::Replica { .. }
            | Fact::Fault { .. }
            | Fact::FaultsEnd
            | Fact::HeldUp { .. }
            | Fact::Refused { .. }
            | Fact::Act { .. } => None,
        };
        let name = claim.and_then(|it| text(&it.object, &["status", "nodeName"]));
        let node = name.and_then(|it| Some((it, self.nodes.get(it)?)));
        // Whoever deletes a node wants its claim gone as well; its machine waits all the same.
        let claim_only = matches!(step.fact, Fact::Stored { .. });
        let node = node.filter(|(_, it)| !claim_only || read::deleting(&it.object).is_none());
        let Some((name, _)) = node else { return Vec::new() };
        let ends = |it: &&Pod| {
            ends_with_machine(&it.object) && !it.evicted && read::deleting(&it.object).is_none()
        };
        self.pods_on(name).filter(ends).collect()
    }

    /// Returns whether anything changed that somebody may decide by.
    pub(super) fn apply(&mut self, step: &Step) -> bool {
        self.now = self.now.max(step.at);
        let name =
            |it: &&Pod| (read::namespace(&it.object).to_owned(), read::name(&it.object).to_owned());
        let ended: Vec<(String, String)> = self.ended_by(step).iter().map(name).collect();
        for (namespace, pod) in ended {
            self.mark_evicted(&namespace, &pod, step.by);
        }
        match &step.fact {
            Fact::Stored { resource, object, old: _ } => self.store(*resource, object, step),
            Fact::Removed { resource, last } => self.remove(*resource, last, step),
            Fact::Evicted { namespace, pod, code, .. } => {
                if *code == 201 {
                    self.mark_evicted(namespace, pod, step.by);
                }
                false
            }
            Fact::PodDeleted { namespace, pod, .. } => {
                self.mark_evicted(namespace, pod, step.by);
                false
            }
            Fact::Machine(machine) => {
                let seen = self.machines.get(&machine.id);
                let changed = seen.is_none_or(|it| **it != *machine);
                if changed {
                    self.machines.insert(machine.id.clone(), Rc::new(machine.clone()));
                }
                changed
            }
            Fact::Image(image) => {
                self.store_image(image, step.at);
                true
            }
            Fact::Replica { .. } => {
                self.begun = true;
                true
            }
            Fact::Published { what } => {
                self.choice_changed_at = step.at;
                self.pointer_moved |= self.points_back(what);
                true
            }
            Fact::Fault { what } => {
                self.hearing.learn(what, step.at);
                true
            }
            Fact::FaultsEnd => {
                self.hearing.faults_end(step.at);
                true
            }
            Fact::HeldUp { since } => {
                self.held_up = Some((step.by, step.at, *since));
                false
            }
            Fact::Act { .. } => true,
            Fact::LaunchAsked { .. }
            | Fact::TerminateAsked { .. }
            | Fact::Answered { .. }
            | Fact::Turned(_)
            | Fact::Refused { .. } => false,
        }
    }

    fn store(&mut self, resource: Resource, object: &Rc<Value>, step: &Step) -> bool {
        match resource.kind {
            "Node" => self.store_node(object, step.at),
            "Pod" => self.store_pod(object, step),
            "NodeClaim" => self.store_claim(object, step),
            "Replacement" => {
                self.replacements.insert(read::name(object).to_owned(), Rc::clone(object));
                true
            }
            "DisruptionLedger" => self.store_ledger(object, step.at),
            kind if NOISE.contains(&kind) => false,
            kind => {
                let key = key(resource, object);
                let objects = self.others.entry(kind).or_default();
                let kept = objects.remove(&key);
                let same = kept.as_ref().is_some_and(|it| says_same(&it.object, object));
                let moved = kept.as_ref().is_none_or(|it| other_members(&it.object, object));
                let (since, before) = match kept {
                    Some(it) if same => (it.since, it.before),
                    Some(it) if self.begun => (step.at, Some(it.object)),
                    None if self.begun => (step.at, None),
                    Some(_) | None => (Timestamp::MIN, None),
                };
                objects.insert(key, Kept { object: Rc::clone(object), since, before });
                if !same && self.begun {
                    self.said_anew(kind, moved, step.at);
                }
                true
            }
        }
    }

    /// When what happens in this step was sent. A process that stands still after it has looked, or whose call is
    /// slow, no law can forbid that the call arrives: whoever sent it knew what was so then.
    pub(super) fn sent_at(&self, step: &Step) -> Timestamp {
        match self.held_up {
            Some((by, arrived_at, since)) if by == step.by && arrived_at == step.at => since,
            Some(_) | None => step.at,
        }
    }

    /// An answer that comes after this tells what may boot now: one that was on its way when something changed does not.
    pub(super) fn told_after(&self) -> Timestamp {
        let changed_at = self.choice_changed_at.max(self.hearing.stale_until());
        changed_at.saturating_add(CALL_TAKES).unwrap_or(Timestamp::MAX)
    }

    /// What people wrote has changed, and with it perhaps for whom it is.
    fn said_anew(&mut self, kind: &str, moved: bool, now: Timestamp) {
        if LIMITS.contains(&kind) {
            self.limits_changed_at = now;
            if moved {
                self.members_changed_at = now;
            }
        }
        if CHOICE.contains(&kind) {
            self.choice_changed_at = now;
        }
    }

    /// The first time that it is told of counts: whoever asks cannot have seen it before.
    fn store_image(&mut self, image: &Image, now: Timestamp) {
        self.choice_changed_at = now;
        let like = |it: &Kept| {
            let id = text(&it.object, &["spec", "image", "ref", "id"]);
            let known = id.and_then(|it| self.images.get(it));
            known.is_some_and(|it| line_of(&it.name) == line_of(&image.name))
        };
        // Whoever has remembered one of them has had a complete answer, and this one was not in it.
        let later =
            !self.images.contains_key(&image.id) && self.all("AWSImage").any(|it| like(it.1));
        if later {
            self.appeared.insert(image.id.clone(), now);
        }
        self.images.insert(image.id.clone(), image.clone());
    }

    /// Since when an image is remembered, by the word of whoever wrote it down; but not from later than that was written.
    pub(super) fn remembered_since(&self, image: &str) -> Option<Timestamp> {
        let mut all = self.all("AWSImage").map(|it| it.1);
        let of_image =
            |it: &&Kept| text(&it.object, &["spec", "image", "ref", "id"]) == Some(image);
        let kept = all.find(of_image)?;
        let seen = read::time(&kept.object, &["spec", "memory", "firstSeenAt"])?;
        let written = read::time(&kept.object, &["metadata", "creationTimestamp"])?;
        Some(seen.min(written))
    }

    /// `parameter X says ami-…`, and there is a newer one of its line.
    fn points_back(&self, what: &str) -> bool {
        let Some(id) = what.strip_prefix("parameter ").and_then(|it| it.rsplit_once(" says "))
        else {
            return false;
        };
        let Some(named) = self.images.get(id.1) else { return true };
        let newer = |it: &&Image| {
            line_of(&it.name) == line_of(&named.name)
                && (it.created_at, &it.name, &it.id) > (named.created_at, &named.name, &named.id)
        };
        // Parameters of one release name it for ever.
        let pointer = !id.0.contains(named.name.rsplit('-').next().unwrap_or_default());
        pointer && self.images.values().any(|it| newer(&it))
    }

    fn store_node(&mut self, object: &Rc<Value>, now: Timestamp) -> bool {
        let name = read::name(object);
        self.gone.remove(name);
        let ready = read::condition(object, "Ready");
        let before = self.nodes.get(name);
        let unchanged = before.is_some_and(|it| {
            it.ready == ready
                && same_words(&it.object, object)
                && read::deleting(&it.object) == read::deleting(object)
        });
        let ever_ready = ready || before.is_some_and(|it| it.ever_ready);
        let since = before.filter(|it| it.ready == ready).map_or(now, |it| it.since);
        let disrupted = has_taint(object, DISRUPTED_TAINT);
        let away = (ever_ready && !ready)
            || disrupted
            || read::flag(object, &["spec", "unschedulable"])
            || read::deleting(object).is_some();
        let away_since = away.then(|| before.and_then(|it| it.away_since).unwrap_or(now));
        let by = read::annotation(object, CORDONED_BY).filter(|_| disrupted);
        let was = before.and_then(|it| it.cordoned.clone());
        let cordoned = by.map(|by| match was.as_ref() {
            Some((other, since)) if other == by => (by.to_owned(), *since),
            Some(_) | None => (by.to_owned(), now),
        });
        let taken_back = was.is_some() && cordoned.is_none();
        let uncordoned_at =
            if taken_back { Some(now) } else { before.and_then(|it| it.uncordoned_at) };
        let node = Node {
            object: Rc::clone(object),
            ready,
            since,
            ever_ready,
            away_since,
            cordoned,
            uncordoned_at,
        };
        self.nodes.insert(name.to_owned(), node);
        !unchanged
    }

    fn store_pod(&mut self, object: &Rc<Value>, step: &Step) -> bool {
        let (namespace, name) = (read::namespace(object), read::name(object));
        let node = text(object, &["spec", "nodeName"]).map(str::to_owned);
        let healthy = read::condition(object, "Ready") && read::deleting(object).is_none();
        let before = self.pods.get(namespace).and_then(|it| it.get(name));
        let before = before.filter(|it| read::uid(&it.object) == read::uid(object));
        let phase = |it: &Value| text(it, &["status", "phase"]).map(str::to_owned);
        let unchanged = before.is_some_and(|it| {
            it.node == node
                && it.healthy == healthy
                && phase(&it.object) == phase(object)
                && same_words(&it.object, object)
        });
        let bound_at = before.filter(|it| it.node == node).map_or(step.at, |it| it.bound_at);
        let healthy_changed_at =
            before.filter(|it| it.healthy == healthy).map_or(step.at, |it| it.healthy_changed_at);
        let evicted = before.is_some_and(|it| it.evicted);
        let ever_healthy = healthy || before.is_some_and(|it| it.ever_healthy);
        if before.is_none_or(|it| it.node != node) {
            self.leave_node(namespace, name);
            let there = match &node {
                Some(node) => self.on.entry(node.clone()).or_default(),
                None => &mut self.nowhere,
            };
            there.insert((namespace.to_owned(), name.to_owned()));
        }
        let pod = Pod {
            object: Rc::clone(object),
            node,
            bound_at,
            healthy,
            healthy_changed_at,
            ever_healthy,
            evicted,
        };
        self.count(object, healthy, 1);
        let there = self.pods.entry(namespace.to_owned()).or_default();
        if let Some(before) = there.insert(name.to_owned(), pod) {
            self.count(&before.object, before.healthy, -1);
        }
        !unchanged
    }

    fn count(&mut self, pod: &Value, healthy: bool, by: i64) {
        if let Some((_, _, owner)) = read::controller(pod).filter(|_| healthy) {
            *self.running.entry(owner.to_owned()).or_default() += by;
        }
    }

    /// How many pods of a workload are healthy.
    pub(super) fn running_of(&self, owner: &str) -> i64 {
        self.running.get(owner).copied().unwrap_or(0)
    }

    fn leave_node(&mut self, namespace: &str, name: &str) {
        let Some(pod) = self.pods.get(namespace).and_then(|it| it.get(name)) else { return };
        let there = match &pod.node {
            Some(node) => self.on.get_mut(node),
            None => Some(&mut self.nowhere),
        };
        if let Some(there) = there {
            there.remove(&(namespace.to_owned(), name.to_owned()));
        }
    }

    fn store_claim(&mut self, object: &Rc<Value>, step: &Step) -> bool {
        let uid = read::uid(object);
        self.claims_ever.insert(uid.to_owned());
        let before = self.claims.get(uid);
        let deleting = read::deleting(object).is_some();
        let deleting_since =
            before.and_then(|it| it.deleting_since).or_else(|| deleting.then_some(step.at));
        let deleted_by =
            before.and_then(|it| it.deleted_by).or_else(|| deleting.then_some(step.by));
        if let Some(node) = text(object, &["status", "nodeName"]) {
            self.claim_of.insert(node.to_owned(), uid.to_owned());
        }
        if let Some(image) = text(object, &["status", "imageID"]) {
            let class = class_key(object, &["spec", "nodeClassRef"]);
            self.in_use.insert((class, image.to_owned()), Timestamp::MAX);
        }
        if read::condition(object, "Initialized") {
            self.on_their_way.remove(uid);
        } else {
            self.on_their_way.insert(uid.to_owned());
        }
        let claim = Claim { object: Rc::clone(object), deleting_since, deleted_by };
        self.claims.insert(uid.to_owned(), claim);
        true
    }

    fn store_ledger(&mut self, object: &Rc<Value>, now: Timestamp) -> bool {
        let grants = grants(object);
        for holder in self.ledger.grants.keys().filter(|it| !grants.contains_key(*it)) {
            self.ledger.ended.insert(holder.clone(), now);
        }
        let paused = at(object, &["spec", "pause"]).is_some();
        self.ledger.paused_since = paused.then(|| self.ledger.paused_since.unwrap_or(now));
        let halted = paused || super::budget::locked(object);
        self.ledger.halted_since = halted.then(|| self.ledger.halted_since.unwrap_or(now));
        self.ledger.epoch =
            self.ledger.epoch.max(read::number(object, &["status", "epoch"]).unwrap_or(0));
        self.ledger.grants = grants;
        self.ledger.object = Some(Rc::clone(object));
        true
    }

    fn remove(&mut self, resource: Resource, last: &Rc<Value>, step: &Step) -> bool {
        let name = read::name(last);
        if !NOISE.contains(&resource.kind) {
            self.removed_at.insert((resource.kind, key(resource, last)), step.at);
        }
        match resource.kind {
            "Node" => {
                self.nodes.remove(name);
                self.gone.insert(name.to_owned(), (step.at, Rc::clone(last)));
            }
            "Pod" => {
                let namespace = read::namespace(last);
                self.leave_node(namespace, name);
                let pod = self.pods.get_mut(namespace).and_then(|it| it.remove(name));
                if let Some(pod) = &pod {
                    self.count(&pod.object, pod.healthy, -1);
                }
                if pod.is_some_and(|it| !it.evicted) {
                    self.lost.push_back(Lost { at: step.at, object: Rc::clone(last) });
                }
                let early = |it: &Lost| step.at.duration_since(it.at) > KNOWN_AFTER;
                while self.lost.front().is_some_and(early) {
                    self.lost.pop_front();
                }
            }
            "NodeClaim" => {
                if let Some(node) = text(last, &["status", "nodeName"]) {
                    let class = class_key(last, &["spec", "nodeClassRef"]);
                    self.class_was.insert(node.to_owned(), class);
                }
                self.on_their_way.remove(read::uid(last));
                if let Some(claim) = self.claims.remove(read::uid(last))
                    && let Some(image) = text(&claim.object, &["status", "imageID"])
                {
                    self.no_longer_used(&claim, image, step.at);
                }
            }
            "Replacement" => {
                self.replacements.remove(name);
            }
            "DisruptionLedger" => {
                let mut ended = std::mem::take(&mut self.ledger.ended);
                ended.extend(self.ledger.grants.keys().map(|it| (it.clone(), step.at)));
                // Without a record nobody can know how far it had counted.
                let epoch = if self.replacements.is_empty() { 0 } else { self.ledger.epoch };
                self.ledger = Ledger { epoch, ended, ..Ledger::default() };
            }
            kind if NOISE.contains(&kind) => return false,
            kind => {
                self.said_anew(kind, true, step.at);
                self.others.entry(kind).or_default().remove(&key(resource, last));
            }
        }
        true
    }

    fn no_longer_used(&mut self, gone: &Claim, image: &str, now: Timestamp) {
        let class = class_key(&gone.object, &["spec", "nodeClassRef"]);
        let another = self.claims.values().any(|it| {
            text(&it.object, &["status", "imageID"]) == Some(image)
                && class_key(&it.object, &["spec", "nodeClassRef"]) == class
        });
        if !another {
            self.in_use.insert((class, image.to_owned()), now);
        }
    }

    fn mark_evicted(&mut self, namespace: &str, pod: &str, by: Actor) {
        if matches!(by, Actor::Operator(_))
            && let Some(pod) = self.pods.get_mut(namespace).and_then(|it| it.get_mut(pod))
        {
            pod.evicted = true;
            if let Some((_, _, owner)) = read::controller(&pod.object) {
                self.moved.entry(owner.to_owned()).or_insert(self.now);
            }
        }
    }

    /// Whether something is there, or was within this time.
    pub(super) fn there(
        &self,
        kind: &'static str,
        namespace: Option<&str>,
        name: &str,
        within: SignedDuration,
    ) -> bool {
        let key = namespace.map_or_else(|| name.to_owned(), |it| format!("{it}/{name}"));
        let now = match kind {
            "Node" => self.nodes.contains_key(name),
            "Pod" => self.pod(namespace.unwrap_or_default(), name).is_some(),
            _ => self.others.get(kind).is_some_and(|it| it.contains_key(&key)),
        };
        let went = self.removed_at.get(&(kind, key));
        now || went.is_some_and(|it| self.now.duration_since(*it) <= within)
    }

    /// Whether something without a namespace went so lately that nobody need know.
    pub(super) fn lately_removed(&self, kind: &'static str, name: &str, now: Timestamp) -> bool {
        self.removed_at.get(&(kind, name.to_owned())).is_some_and(|it| !known(*it, now))
    }

    /// Whether there is a Replacement of this name, or ever was.
    pub(super) fn ever_recorded(&self, name: &str) -> bool {
        self.replacements.contains_key(name)
            || self.removed_at.contains_key(&("Replacement", name.to_owned()))
    }

    pub(super) fn pod(&self, namespace: &str, name: &str) -> Option<&Pod> {
        self.pods.get(namespace)?.get(name)
    }

    pub(super) fn pods_on(&self, node: &str) -> impl Iterator<Item = &Pod> {
        let there = self.on.get(node).into_iter().flatten();
        there.filter_map(|(namespace, name)| self.pod(namespace, name))
    }

    /// Whether some claim has not come as far as it goes, or some pod that we moved waits for a node.
    pub(super) fn unsettled(&self) -> bool {
        let moved = |(namespace, name): &(String, String)| {
            let pod = self.pod(namespace, name);
            let owner = pod.and_then(|it| read::controller(&it.object));
            owner.is_some_and(|it| self.moved.contains_key(it.2))
        };
        !self.on_their_way.is_empty() || self.nowhere.iter().any(moved)
    }

    pub(super) fn claim_of(&self, node: &str) -> Option<&Claim> {
        self.claims.get(self.claim_of.get(node)?)
    }

    /// The claim that a machine was launched for, if it is still there.
    pub(super) fn claim_of_machine(&self, machine: &Machine) -> Option<&Claim> {
        self.claims.get(self.claim_uid_of(machine)?)
    }

    /// Some tag of a machine is the UID of its claim.
    pub(super) fn claim_uid_of<'a>(&self, machine: &'a Machine) -> Option<&'a str> {
        machine.tags.values().map(String::as_str).find(|it| self.claims_ever.contains(*it))
    }

    pub(super) fn all(&self, kind: &str) -> impl Iterator<Item = (&str, &Kept)> {
        self.others.get(kind).into_iter().flatten().map(|(name, it)| (name.as_str(), it))
    }

    /// `group/name` of a node's class.
    pub(super) fn class_of(&self, node: &str) -> Option<String> {
        Some(class_key(&self.claim_of(node)?.object, &["spec", "nodeClassRef"]))
    }

    /// And of one whose claim is gone: the class that it had. A grant may outlive both.
    pub(super) fn last_class_of(&self, node: &str) -> Option<String> {
        self.class_of(node).or_else(|| self.class_was.get(node).cloned())
    }

    /// The policies that select a class, by name.
    pub(super) fn policies_of(&self, class: &str) -> impl Iterator<Item = (&str, &Kept)> {
        let class = self.others.get("EC2NodeClass").and_then(|it| it.get(class));
        self.all("ImagePolicy").filter(move |(_, policy)| {
            let selector = at(&policy.object, &["spec", "classSelector"]);
            let labels = class.and_then(|it| read::labels(&it.object));
            selector.is_none() || read::selects(selector, labels)
        })
    }

    /// How the nodes of a class are replaced: the first policy by name that says so.
    pub(super) fn rollout_of(&self, class: &str) -> Option<&Value> {
        self.policies_of(class).find_map(|(_, it)| at(&it.object, &["spec", "rollout"]))
    }
}

/// Whether it has been so for long enough that everybody must know.
pub(super) fn known(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) > KNOWN_AFTER
}

/// Whether a pod needs another place when its node goes.
pub(super) fn must_move(pod: &Value, now: Timestamp) -> bool {
    let stuck = read::deleting(pod).is_some_and(|it| now.duration_since(it) > STUCK_AFTER);
    !of_its_node(pod) && (!stuck || ends_with_machine(pod))
}

/// Whether a pod has to leave before its node may go.
pub(super) fn must_leave(pod: &Value, now: Timestamp) -> bool {
    must_move(pod, now) && !ends_with_machine(pod)
}

/// Whether nobody asks it to leave, since it would come right back: it ends with the machine.
pub(super) fn ends_with_machine(pod: &Value) -> bool {
    !of_its_node(pod)
        && read::controller(pod).is_some()
        && read::tolerates(pod, DISRUPTED_TAINT, "", "NoSchedule")
}

/// It belongs to its node, or has finished.
fn of_its_node(pod: &Value) -> bool {
    let daemon =
        read::controller(pod).is_some_and(|(kind, _, _)| matches!(kind, "DaemonSet" | "Node"));
    let mirror = read::annotation(pod, "kubernetes.io/config.mirror").is_some();
    let finished = matches!(text(pod, &["status", "phase"]), Some("Succeeded" | "Failed"));
    daemon || mirror || finished
}

pub(super) fn has_taint(node: &Value, key: &str) -> bool {
    items(node, &["spec", "taints"]).any(|it| text(it, &["key"]) == Some(key))
}

pub(super) fn class_key(object: &Value, path: &[&str]) -> String {
    let reference = at(object, path).unwrap_or(&Value::Null);
    let word = |key| text(reference, &[key]).unwrap_or_default();
    format!("{}/{}", word("group"), word("name"))
}

pub(super) fn grants(ledger: &Value) -> BTreeMap<String, Grant> {
    items(ledger, &["status", "grants"])
        .map(|it| {
            let word = |key| text(it, &[key]).unwrap_or_default().to_owned();
            let epoch = read::number(it, &["epoch"]).unwrap_or(0);
            (word("holder"), Grant { node: word("nodeName"), kind: word("kind"), epoch })
        })
        .collect()
}
