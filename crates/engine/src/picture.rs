//! What can be told of it all?
//!
//! `view × records × memory → picture`, without any write: whoever only looks sees the same picture as
//! the turn that acts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_core::budget::{Apart, Condition, Limits, Measured};
use nodemolt_core::drain::Drain;
use nodemolt_core::drift::Drift;
use nodemolt_core::explain::{
    ClassTold, Doubted, RecordTold, SuccessorTold, World, stuck, windows_unread,
};
use nodemolt_core::node::Running;
use nodemolt_core::plan::{Fleet, Plan, expected};
use nodemolt_core::replace::{Replacement, Step};
use nodemolt_core::seen::{Claim, Kind, ObjectName, Stage, View};

use crate::Config;
use crate::act::Question;
use crate::claims;
use crate::decide::fleet::Readings;
use crate::decide::going::Going;
use crate::decide::placing::foresee;
use crate::decide::{Sight, decide};
use crate::memory::Memory;
use crate::port::Records;
use crate::record::Recorded;
use crate::status;

/// All that stories are told from, at one moment.
#[derive(Debug, Clone)]
pub struct Picture {
    pub at: Timestamp,
    pub fleet: Arc<Fleet>,
    pub plan: Plan,
    pub rooms: Measured,
    /// By node.
    pub running: Arc<BTreeMap<String, Running>>,
    pub drifts: Arc<BTreeMap<String, Drift>>,
    /// By node: open ones, and the last one that ended.
    pub replacements: BTreeMap<String, Replacement>,
    /// By node: what the same record says for people.
    pub records: BTreeMap<String, RecordTold>,
    pub steps: BTreeMap<String, Step>,
    pub drains: Vec<Drain>,
    /// By claim: those of replacements, and whatever else is on its way.
    pub successors: Arc<BTreeMap<String, SuccessorTold>>,
    pub limits: Limits,
    /// Classes, pools, claims, nodes, policies and quarantines that cannot be read, each with why.
    pub unreadable: Vec<String>,
    /// Policies that are for no class, or whose `rollout` another one stands before; pools whose nodes do
    /// not expire as was written.
    pub idle: Vec<String>,
    /// By class: what is known of its images, and what is not.
    pub classes: BTreeMap<String, ClassTold>,
    /// What a person has to look at.
    pub doubted: Doubted,
    /// The clock of whoever leads and the API server's, where they are too far apart.
    pub apart: Option<Apart>,
}

impl Picture {
    pub(crate) fn new(
        sight: &Sight<'_>,
        readings: &Readings,
        plan: Plan,
        rooms: Measured,
        going: &[Going],
        limits: Limits,
    ) -> Self {
        let mut replacements: BTreeMap<String, Replacement> = BTreeMap::new();
        let mut records: BTreeMap<String, RecordTold> = BTreeMap::new();
        for it in sight.records.replacements.values() {
            let rank = |it: &Replacement| (!it.phase.ended(), it.since);
            let node = &it.replacement.old.node;
            if replacements.get(node).is_none_or(|known| rank(known) < rank(&it.replacement)) {
                replacements.insert(node.clone(), it.replacement.clone());
                records.insert(node.clone(), record(sight, it));
            }
        }
        let steps =
            going.iter().map(|it| (it.recorded.replacement.old.node.clone(), it.step.clone()));
        Self {
            at: sight.now,
            successors: Arc::clone(sight.roll.successors()),
            fleet: Arc::clone(readings.fleet()),
            plan,
            rooms,
            running: Arc::clone(readings.running()),
            drifts: Arc::clone(readings.drifts()),
            replacements,
            records,
            steps: steps.collect(),
            drains: going.iter().filter_map(|it| it.drain.clone()).collect(),
            limits,
            unreadable: unreadable(sight.view),
            idle: [
                status::idle_policies(sight),
                status::short_lived_pools(sight),
                status::pools_born_drifted(sight),
            ]
            .concat(),
            classes: BTreeMap::new(),
            doubted: Doubted::default(),
            apart: None,
        }
    }

    /// For [`nodemolt_core::explain`].
    pub fn world(&self) -> World<'_> {
        World {
            fleet: &self.fleet,
            plan: &self.plan,
            rooms: &self.rooms,
            limits: &self.limits,
            running: &self.running,
            drifts: &self.drifts,
            replacements: &self.replacements,
            records: &self.records,
            steps: &self.steps,
            drains: &self.drains,
            classes: &self.classes,
            successors: &self.successors,
            doubted: &self.doubted,
        }
    }

    /// What people wrote and what does not work as they meant it, a sentence each; and a clock that is wrong.
    pub fn warnings(&self) -> Vec<String> {
        let rooms = self.rooms.rooms().iter().filter_map(|room| match &room.condition {
            Some(Condition::SelectsNothing) => Some(format!("{} selects no node", room.id)),
            Some(Condition::Unreadable(why)) => {
                Some(format!("{}: nothing may go until it can be read: {}", room.id, why.0))
            }
            None => room.kept().map(|(keeps, of)| {
                format!("{} allows none: it keeps at least {keeps} available, of {of}", room.id)
            }),
        });
        // One policy may be for several classes.
        let rules = self.limits.classes.values();
        let windows: BTreeSet<String> = rules.filter_map(windows_unread).collect();
        let clock = self.clock_told().map(|it| format!("{it}; nothing begins until they agree"));
        let told = self.unreadable.iter().chain(&self.idle).cloned();
        clock.into_iter().chain(told).chain(rooms).chain(windows).collect()
    }

    /// How far the clock of whoever leads is from the API server's, if it is too far.
    pub fn clock_told(&self) -> Option<String> {
        self.apart.map(Apart::words)
    }

    /// Nodes that do not match, or of which that is not known, by name.
    pub fn drifting(&self) -> impl Iterator<Item = (&str, &Drift)> {
        let drifts = self.drifts.iter().filter(|(_, it)| **it != Drift::InSync);
        drifts.map(|(name, it)| (name.as_str(), it))
    }
}

fn record(sight: &Sight<'_>, it: &Recorded) -> RecordTold {
    let old = &it.replacement.old;
    let claim = sight.claim(&old.claim, &old.claim_uid);
    let parted = claim.filter(|it| claims::parted(sight.view, it));
    let node = sight.view.nodes.get(&old.node);
    let left_over = node.filter(|it| claims::left_over(it, sight.claim_of(&old.node)));
    RecordTold {
        node_finalizers: left_over.map(|it| it.finalizers.clone()).unwrap_or_default(),
        finalizers: parted.map(|it| it.finalizers.clone()).unwrap_or_default(),
        pool: it.pool.clone(),
        running_image: it.told.running_image.clone(),
        wanted_image: it.told.wanted_image.clone(),
    }
}

pub(crate) fn successor(claim: &Claim) -> SuccessorTold {
    let attempt = claim.attempt.as_ref().filter(|_| claim.machine.is_none());
    let failed = attempt.and_then(|it| it.ended.clone().or_else(|| it.last_ended.clone()));
    SuccessorTold {
        pool: claim.pool.clone(),
        node: claim.node.clone(),
        class: Some(claim.class.to_string()),
        on_its_way: on_its_way(claim),
        launched: claim.machine.is_some(),
        failed,
    }
}

pub(crate) fn on_its_way(claim: &Claim) -> bool {
    claim.deleting_since.is_none() && !claim.stages.contains_key(&Stage::Initialized)
}

fn unreadable(view: &View) -> Vec<String> {
    let ours = |it: &&ObjectName| match it.kind {
        Kind::Class | Kind::Pool | Kind::Policy | Kind::Quarantine | Kind::Claim | Kind::Node => {
            true
        }
        // It has its room, which says so.
        Kind::DisruptionBudget
        | Kind::Pod
        | Kind::Namespace
        | Kind::DaemonSet
        | Kind::Pdb
        | Kind::Image
        | Kind::Replacement
        | Kind::Ledger
        | Kind::Storage => false,
    };
    let all = view.unreadable.keys().filter(ours);
    all.filter_map(|it| view.why_unreadable(it.kind, &it.name)).collect()
}

pub(crate) fn unread_claims(view: &View) -> BTreeMap<String, String> {
    let claims = view.unreadable.keys().filter(|it| it.kind == Kind::Claim);
    claims
        .filter_map(|it| Some((it.name.clone(), view.why_unreadable(it.kind, &it.name)?)))
        .collect()
}

/// The picture as a turn would see it now. Nothing is written, and nothing is asked.
pub fn look(
    memory: &mut Memory,
    config: &Config,
    view: &View,
    records: &Records,
    now: Timestamp,
) -> Picture {
    let sight = Sight::new(memory, config, view, records, now);
    let mut picture = decide(memory, &sight).picture;
    foresee(memory, &sight, &mut picture);
    let stuck = stuck(&picture.world(), now);
    let Picture { fleet, plan, rooms, limits, .. } = &picture;
    picture.plan.expected = expected(fleet, plan, rooms, limits, &stuck, now);
    picture
}

/// What the picture lacks now. Whoever only looks asks these, tells the memory ([`Memory::done`]) and
/// looks again: an answer may lead to another question.
pub fn lacks(
    memory: &mut Memory,
    config: &Config,
    view: &View,
    records: &Records,
    now: Timestamp,
) -> Vec<Question> {
    let sight = Sight::new(memory, config, view, records, now);
    decide(memory, &sight).questions
}
