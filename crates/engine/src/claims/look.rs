//! What is seen of a claim's machine, its node and its pods?
//!
//! Machines are known by the claim's UID in their tags and by the id that was written down, never by what
//! a node says of itself.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::DisruptionBudget;
use nodemolt_core::claim::{
    Because, CORDONED_WITHIN, CallSeen, ClaimStep, DRAIN_AT_LEAST, Gate, LISTS_APART, MachineSeen,
    NODE_LOST_AFTER, NodesSeen, SHOWN_AFTER, Seen, Wait, forced_at, gave_up, launched_at, ready_by,
};
use nodemolt_core::drain;
use nodemolt_core::replace::{JOIN_DEADLINE, Old, OldSeen, SuccessorSeen};
use nodemolt_core::seen::{Claim, Kind, MachineId, Node, ObjectName, Readiness, Stage, View};
use nodemolt_fit::label;

use super::act::token;
use super::memory::unreadable;
use super::orphans::works_on;
use super::state::CLAIM_UID_TAG;
use super::{Known, Listed};
use crate::port::{Machine, MachineState};

/// Everything by what it is looked up by, once for a turn.
pub(super) struct Eyes<'a> {
    view: &'a View,
    known: &'a Known<'a>,
    /// By the claim's UID, of the last list and of the one before. Few turns ask.
    tagged: OnceCell<[Tagged<'a>; 2]>,
    /// By machine. Most claims know their node by name.
    nodes: OnceCell<BTreeMap<&'a MachineId, Vec<&'a Node>>>,
    pods_readable: bool,
}

type Tagged<'a> = BTreeMap<&'a str, Vec<&'a Machine>>;

fn by_uid(listed: Option<Listed<'_>>) -> Tagged<'_> {
    let mut all: Tagged<'_> = BTreeMap::new();
    for it in listed.into_iter().flat_map(|it| it.0.values()) {
        if let Some(uid) = it.tags.get(CLAIM_UID_TAG) {
            all.entry(uid).or_default().push(it);
        }
    }
    all
}

fn by_machine(view: &View) -> BTreeMap<&MachineId, Vec<&Node>> {
    let mut nodes: BTreeMap<&MachineId, Vec<&Node>> = BTreeMap::new();
    for node in view.nodes.values() {
        if let Some(machine) = &node.machine {
            nodes.entry(machine).or_default().push(node);
        }
    }
    nodes
}

/// The node that a claim has become, if it is there and has the claim's machine.
pub(super) fn settled<'a>(view: &'a View, claim: &Claim) -> Option<&'a Node> {
    let node = view.nodes.get(claim.node.as_ref()?)?;
    (node.machine.is_some() && node.machine == claim.machine).then_some(node)
}

impl<'a> Eyes<'a> {
    pub(super) fn new(view: &'a View, known: &'a Known<'a>) -> Self {
        Self {
            view,
            known,
            tagged: OnceCell::new(),
            nodes: OnceCell::new(),
            pods_readable: !view.unreadable.keys().any(|it| it.kind == Kind::Pod),
        }
    }

    /// As the last list has it.
    pub(super) fn machine(&self, id: &MachineId) -> Option<&'a Machine> {
        self.known.machines?.0.get(id).map(Arc::as_ref)
    }

    fn machine_before(&self, id: &MachineId) -> Option<&'a Machine> {
        self.known.machines_before?.0.get(id).map(Arc::as_ref)
    }

    pub(super) fn in_neither(&self, id: &MachineId) -> bool {
        self.machine(id).is_none() && self.machine_before(id).is_none()
    }

    pub(super) fn in_both(&self, id: &MachineId) -> bool {
        self.machine(id).is_some() && self.machine_before(id).is_some()
    }

    pub(super) fn seen(&self, claim: &Claim, now: Timestamp) -> Seen<'a> {
        let nodes = self.nodes(claim);
        let pods_left = match (claim.deleting_since, &nodes) {
            (Some(since), _) => {
                let lingering = self.known.lingering.get(&claim.uid).copied().unwrap_or(0);
                let left = self.pods_left(claim, &nodes, later(since, DRAIN_AT_LEAST), now);
                left.map(|it| it + lingering)
            }
            (None, NodesSeen::None { missing_since: Some(since) }) => {
                let bound = own_name(self.view, claim).map_or(0, |it| moving(self.view, it, now));
                self.pods_left(claim, &nodes, *since, now).map(|it| it.max(bound))
            }
            // Who has joined and was not set up in time. Whoever would end with the machine is somebody, too.
            (None, NodesSeen::One(_)) => {
                let late = ready_by(claim).filter(|it| now > *it);
                let heard = late.and_then(|it| self.pods_left(claim, &nodes, it, now));
                heard.map(|_| pods_of(self.view, claim, now))
            }
            (None, _) => None,
        };
        let number = claim.attempt.as_ref().map_or(0, |it| it.number);
        let call = match self.known.memory.refused(&claim.uid, number) {
            Some((why, at)) => CallSeen::Refused { why: why.to_owned(), at },
            None => CallSeen::Free,
        };
        let successor =
            claim.successor_of.as_ref().is_some_and(|it| self.known.open.contains_key(it));
        let withheld_since = self.known.memory.withheld_since(&claim.uid, number);
        let machine = self.machine_of(claim);
        let (gate, second) = (self.gate(claim, now), self.second(claim, now));
        Seen { machine, nodes, call, withheld_since, pods_left, successor, gate, second }
    }

    pub(super) fn gate(&self, claim: &Claim, now: Timestamp) -> Gate {
        let counted_on = self.known.counted_on.contains(&claim.name);
        let granted = self.known.granted.get(&claim.uid).copied();
        gate(self.view, claim, granted, counted_on && pods_of(self.view, claim, now) == 0)
    }

    fn machine_of(&self, claim: &Claim) -> MachineSeen {
        let Some(id) = &claim.machine else { return self.tagged(claim) };
        let ended = |it: &Machine| it.state == MachineState::Terminated;
        if let Some(it) = self.machine(id) {
            return state(it);
        }
        match self.machine_before(id) {
            // It had ended when it was last listed, and EC2 forgets those.
            Some(it) if ended(it) => MachineSeen::Gone,
            before => self.absent(before.is_some()),
        }
    }

    /// Another machine that lives beside the one that a deleted claim had. One on which somebody works is for a person,
    /// and holds nothing.
    fn second(&self, claim: &Claim, now: Timestamp) -> Option<MachineId> {
        let own = claim.machine.as_ref().filter(|_| claim.deleting_since.is_some())?;
        let [last, _] = self.by_tag();
        let others = last.get(claim.uid.as_str()).into_iter().flatten();
        let others = others.filter(|it| it.id != *own && it.state.live());
        let mut idle = others.filter(|it| !works_on(self.view, &it.id, now));
        idle.next().map(|it| it.id.clone())
    }

    fn by_tag(&self) -> &[Tagged<'a>; 2] {
        let lists = [self.known.machines, self.known.machines_before];
        self.tagged.get_or_init(|| lists.map(by_uid))
    }

    /// Whatever has the claim's UID on it.
    fn tagged(&self, claim: &Claim) -> MachineSeen {
        let [last, before] = self.by_tag();
        let all = last.get(claim.uid.as_str()).map_or(&[][..], Vec::as_slice);
        let live = all.iter().filter(|it| it.state.live());
        if let Some(first) = live.min_by_key(|it| (it.launched_at, &it.id)) {
            return MachineSeen::Live(first.id.clone());
        }
        if let Some(it) = all.iter().find(|it| it.state == MachineState::ShuttingDown) {
            return MachineSeen::Ending(it.id.clone());
        }
        // One of an attempt that has ended says nothing about this one.
        let this = claim.attempt.as_ref().map(|it| token(&claim.uid, it.number));
        if all.iter().any(|it| it.token.is_none() || it.token == this) {
            return MachineSeen::Gone;
        }
        let before = before.get(claim.uid.as_str()).map_or(&[][..], Vec::as_slice);
        self.absent(before.iter().any(|it| it.state != MachineState::Terminated))
    }

    fn absent(&self, in_the_list_before: bool) -> MachineSeen {
        match (self.known.machines_before, self.known.machines) {
            (Some((_, first)), Some((_, last))) if first < last && !in_the_list_before => {
                MachineSeen::Absent { first, last }
            }
            (Some(_) | None, Some(_) | None) => MachineSeen::Unknown,
        }
    }

    fn nodes(&self, claim: &Claim) -> NodesSeen<'a> {
        let Some(fresh) = self.view.fresh.get(&Kind::Node) else { return NodesSeen::Unknown };
        let stale = [claim.deleting_since, claim.stages.get(&Stage::Registered).copied()];
        if stale.into_iter().flatten().any(|it| *fresh < it)
            || unreadable(self.view, claim.node.as_deref())
        {
            return NodesSeen::Unknown;
        }
        let Some(machine) = &claim.machine else { return NodesSeen::None { missing_since: None } };
        // Once it was settled which of several it is, others do not unsettle it.
        if let Some(own) = settled(self.view, claim) {
            return NodesSeen::One(own);
        }
        let all = self.nodes.get_or_init(|| by_machine(self.view));
        match all.get(machine).map_or(&[][..], Vec::as_slice) {
            [] => NodesSeen::None { missing_since: self.known.memory.missing_since(&claim.uid) },
            [only] => NodesSeen::One(only),
            several => NodesSeen::Several(several.to_vec()),
        }
    }

    /// By what watches have told since. Whoever ends the machine asks the API server once more.
    fn pods_left(
        &self,
        claim: &Claim,
        nodes: &NodesSeen<'a>,
        since: Timestamp,
        now: Timestamp,
    ) -> Option<usize> {
        let fresh = self.view.fresh.get(&Kind::Pod)?;
        if *fresh < since || !self.pods_readable {
            return None;
        }
        let mut names: Vec<&str> = match nodes {
            NodesSeen::Unknown => return None,
            NodesSeen::None { .. } => Vec::new(),
            NodesSeen::One(node) => vec![&node.name],
            NodesSeen::Several(nodes) => nodes.iter().map(|it| it.name.as_str()).collect(),
        };
        names.extend(own_name(self.view, claim));
        names.sort_unstable();
        names.dedup();
        Some(names.into_iter().map(|it| pods_left(self.view, it, now)).sum())
    }

    /// When a claim that waits should be looked at again, though nothing may happen before.
    pub(super) fn due(&self, claim: &Claim, step: &ClaimStep, now: Timestamp) -> Vec<Timestamp> {
        let at = match &step.because {
            Because::WaitsFor(Wait::Node | Wait::SeveralNodes { .. }) => {
                Some(later(launched_at(claim), JOIN_DEADLINE + SignedDuration::from_secs(1)))
            }
            Because::WaitsFor(Wait::Answer { .. }) => {
                let missing = self.known.memory.missing_since(&claim.uid);
                missing.map(|it| later(it, NODE_LOST_AFTER))
            }
            Because::WaitsFor(Wait::PodsToLeave { .. } | Wait::Cordon { .. }) => {
                let drained = claim.deleting_since.map(|it| later(it, DRAIN_AT_LEAST));
                let forced = forced_at(claim, &self.gate(claim, now));
                let alone = claim.deleting_since.map(|it| later(it, CORDONED_WITHIN));
                return [drained, forced, alone]
                    .into_iter()
                    .flatten()
                    .filter(|it| *it > now)
                    .collect();
            }
            Because::Unproved { .. } => claim.attempt.as_ref().map(|it| {
                let refused = self.known.memory.refused(&claim.uid, it.number).map(|it| it.1);
                let withheld = self.known.memory.withheld_since(&claim.uid, it.number);
                let last = [refused, withheld].into_iter().flatten().max().unwrap_or(now);
                later(it.since.max(last), SHOWN_AFTER + LISTS_APART)
            }),
            Because::WaitsFor(Wait::Start { .. }) => {
                ready_by(claim).map(|it| later(it, SignedDuration::from_secs(1)))
            }
            Because::WaitsFor(
                Wait::Budget { .. }
                | Wait::Termination
                | Wait::SecondMachine { .. }
                | Wait::Nothing,
            )
            | Because::Next
            | Because::AtRest
            | Because::Withheld { .. }
            | Because::NotKnown { .. }
            | Because::GaveUp { .. }
            | Because::NeverJoined
            | Because::NeverReady { .. }
            | Because::NodeDeleted
            | Because::NodeMissing
            | Because::MachineGone => None,
        };
        at.into_iter().filter(|it| *it > now).collect()
    }
}

fn later(since: Timestamp, length: SignedDuration) -> Timestamp {
    since.saturating_add(length).unwrap_or(Timestamp::MAX)
}

fn state(machine: &Machine) -> MachineSeen {
    match machine.state {
        MachineState::Pending | MachineState::Running | MachineState::Stopped => {
            MachineSeen::Live(machine.id.clone())
        }
        MachineState::ShuttingDown => MachineSeen::Ending(machine.id.clone()),
        MachineState::Terminated => MachineSeen::Gone,
    }
}

/// The node that a claim has become, by name, unless another machine has the name by now.
pub(crate) fn own_name<'a>(view: &View, claim: &'a Claim) -> Option<&'a str> {
    let name = claim.node.as_deref()?;
    let another = |it: &Node| it.machine.is_some() && it.machine != claim.machine;
    (!view.nodes.get(name).is_some_and(another)).then_some(name)
}

/// Whether people who delete this claim's node wait for a `NodeDisruptionBudget`, and since when it is granted. `idle`: an open
/// replacement counts on it, and it bears no pods. Nobody misses it then: the place is still the old node's, or its slot stands for
/// it. And that replacement may wait for its end, and keep the very slot that it would have to wait for.
pub(crate) fn gate(view: &View, claim: &Claim, granted: Option<Timestamp>, idle: bool) -> Gate {
    let node = settled(view, claim).filter(|_| !idle && claim.deleting_since.is_some());
    let Some(node) = node else { return Gate::None };
    let gates = |it: &&DisruptionBudget| it.gates_people && it.selects(&node.fit.labels);
    match (view.budgets.values().find(gates), granted) {
        (None, _) => Gate::None,
        (Some(_), Some(since)) => Gate::Open { since },
        (Some(budget), None) => Gate::Closed { budget: budget.name.clone() },
    }
}

/// How many pods on a node must leave before it may go.
fn pods_left(view: &View, node: &str, now: Timestamp) -> usize {
    view.pods.on(node).filter(|it| drain::stays(&it.drain, now).is_none()).count()
}

/// How many would need another place: those that end with the machine, too.
fn moving(view: &View, node: &str, now: Timestamp) -> usize {
    view.pods.on(node).filter(|it| drain::moves(&it.drain, now)).count()
}

/// The same for all nodes that a claim has become.
pub fn pods_of(view: &View, claim: &Claim, now: Timestamp) -> usize {
    nodes_of(view, claim).iter().map(|it| moving(view, it, now)).sum()
}

/// The names of all nodes that a claim has become, before it was settled which of them is its own, too.
pub(crate) fn nodes_of(view: &View, claim: &Claim) -> BTreeSet<String> {
    let machine = |it: &&Node| it.machine.is_some() && it.machine == claim.machine;
    let names = view.nodes.values().filter(machine).map(|it| it.name.as_str());
    let own = own_name(view, claim).unwrap_or(&claim.name);
    names.chain([own]).map(str::to_owned).collect()
}

/// Whether all that we held of a claim has gone: its machine, its node and our finalizer. What is left is held by others.
pub(crate) fn parted(view: &View, claim: &Claim) -> bool {
    let left = |it: &Node| it.held || it.deleting_since.is_none();
    claim.deleting_since.is_some() && !claim.held && !settled(view, claim).is_some_and(left)
}

/// Whether a node is there only by finalizers of others: it is deleted, ours is off, and so its machine has ended. Of one
/// that is of no pool nobody knows that.
pub(crate) fn left_over(node: &Node, claim: Option<&Claim>) -> bool {
    let parted = |it: &Claim| it.deleting_since.is_some() && !it.held;
    let own = claim.map_or_else(|| node.fit.labels.contains_key(label::NODEPOOL), parted);
    node.deleting_since.is_some() && !node.held && !node.finalizers.is_empty() && own
}

/// What a Replacement sees of its old node. Its claim goes last, so a claim that is not there any more, or only by
/// somebody else's finalizer, means that all of it is gone.
pub fn old_seen(view: &View, old: &Old, replacement: &str, now: Timestamp) -> OldSeen {
    let unreadable = |kind, name: &str| {
        let name = name.to_owned();
        view.unreadable.contains_key(&ObjectName { kind, namespace: String::new(), name })
    };
    if !view.fresh.contains_key(&Kind::Claim) || unreadable(Kind::Claim, &old.claim) {
        return OldSeen::Unknown;
    }
    let claim = view.claims.get(&old.claim).filter(|it| it.uid == old.claim_uid);
    let Some(claim) = claim.filter(|it| !parted(view, it)) else { return OldSeen::Gone };
    if unreadable(Kind::Node, &old.node) || view.unreadable.keys().any(|it| it.kind == Kind::Pod) {
        return OldSeen::Unknown;
    }
    let named = view.nodes.get(&old.node);
    // A node of that name with another machine is another node, and so are the pods on it.
    let node = named.filter(|it| it.machine.is_none() || it.machine == claim.machine);
    let another = named.is_some() && node.is_none();
    OldSeen::Present {
        deleting: claim.deleting_since.is_some()
            || node.is_some_and(|it| it.deleting_since.is_some()),
        cordoned: node.is_some_and(|it| it.cordoned_for(replacement)),
        pods: if another { 0 } else { pods_left(view, &old.node, now) },
    }
}

/// What a Replacement sees of a successor whose claim is there. Whether one that is not there was never
/// made or is gone is told by its record.
pub fn successor_seen(view: &View, claim: &Claim, now: Timestamp) -> SuccessorSeen {
    if parted(view, claim) {
        return SuccessorSeen::Gone;
    }
    if claim.deleting_since.is_some() {
        return SuccessorSeen::Deleting { pods: pods_of(view, claim, now) };
    }
    if claim.machine.is_none() {
        let gave_up = gave_up(claim).map(str::to_owned);
        return SuccessorSeen::Launching { gave_up };
    }
    let (registered, initialised) =
        (claim.stages.get(&Stage::Registered), claim.stages.get(&Stage::Initialized));
    let (registered, initialised) = match (registered, initialised) {
        (None, _) => return SuccessorSeen::Launched { pods: pods_of(view, claim, now) },
        (Some(since), None) => {
            let (since, pods) = (*since, pods_of(view, claim, now));
            return SuccessorSeen::Registered { since, pods };
        }
        (Some(registered), Some(initialised)) => (*registered, *initialised),
    };
    let node = claim.node.as_ref().and_then(|it| view.nodes.get(it));
    let Some(node) = node.filter(|it| it.machine == claim.machine) else {
        return SuccessorSeen::Unknown;
    };
    let pods = moving(view, &node.name, now);
    let since = node.ready_since.unwrap_or(registered);
    match node.ready {
        Readiness::Ready => SuccessorSeen::Ready { since: since.max(initialised), pods },
        Readiness::NotReady | Readiness::Unknown => SuccessorSeen::NotReady { since, pods },
    }
}
