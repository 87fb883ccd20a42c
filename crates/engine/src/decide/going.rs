//! What is the next step of each replacement that is under way?
//!
//! `records × what is seen of their parts → records as they should stand, and the commands of their phases`
//!
//! Drains are looked at together: budgets of pods know no replacements. What a phase asks for is asked for
//! as long as it lasts, and only after the phase stands in the record.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::Limits;
use nodemolt_core::drain::{
    BarePods, Drain, Evict, Forced, Held, Hold, How, evictions, limit_ends_at, remaining,
};
use nodemolt_core::replace::{
    Because, Cause, Command, JOIN_DEADLINE, OldSeen, Phase, PlacementSeen, Replacement, STEADY_FOR,
    Seen, Step, Successor, SuccessorSeen, asks, next,
};
use nodemolt_core::seen::{self, Claim, Kind, Stage};

use super::placing::Table;
use super::successors;
use super::{Sight, Wake};
use crate::act::{Errand, Intent};
use crate::claims::{old_seen, successor_seen};
use crate::memory::{Memory, after};
use crate::port::{MachineState, NewClaim, Object};
use crate::record::{DrainRecord, Recorded};

/// EC2's notice before it takes a spot machine away.
const INTERRUPTION_NOTICE: SignedDuration = SignedDuration::from_mins(2);

/// A claim that we have made may not be seen for as long as a watch may lag.
const UNSEEN_FOR: SignedDuration = SignedDuration::from_mins(1);

/// So many pods that hold a drain are named in the record.
const HELD_MAX: usize = 10;

/// So many owners of pods that leave are recorded: more than a node has pods.
const MOVED_MAX: usize = 500;

/// One that is under way.
pub(crate) struct Going {
    /// As it should stand.
    pub(crate) recorded: Recorded,
    pub(crate) changed: bool,
    pub(crate) step: Step,
    pub(crate) drain: Option<Drain>,
    pub(crate) errands: Vec<(Intent, Errand)>,
}

impl Going {
    pub(crate) fn voluntary(&self) -> bool {
        self.recorded.replacement.cause.voluntary()
    }
}

struct Looked<'a> {
    record: &'a Recorded,
    /// With its successors' UIDs, as far as they are known by now.
    replacement: Replacement,
    seen: Seen,
    drain: Option<Drain>,
}

pub(crate) fn go_on(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    limits: &Limits,
    wake: &mut Wake,
) -> Vec<Going> {
    memory.drafts.retain(|name, _| sight.successors.contains_key(name.as_str()));
    let open = sight.records.replacements.values().filter(|it| !it.replacement.phase.ended());
    let mut looked: Vec<Looked<'_>> =
        open.map(|it| look(memory, sight, table, limits, it)).collect();
    decide_places(memory, sight, table, &mut looked);
    let drains: Vec<Drain> = looked.iter().filter_map(|it| it.drain.clone()).collect();
    let pdbs = &table.readings.fleet().pdbs;
    let (evict, held) = evictions(&drains, pdbs, sight.now);
    for it in &held {
        wake.at(it.again_at);
    }
    let mut going = Vec::new();
    for it in &mut looked {
        limit(it, &held, sight.now, wake);
        let step = next(&it.replacement, &it.seen, sight.now);
        going.push(record(memory, sight, it, step, &held, wake));
    }
    for it in &mut going {
        let pods = evict.iter().filter(|pod| pod.node == it.recorded.replacement.old.node);
        let pods: Vec<&Evict> = pods.collect();
        command(memory, sight, table, it, &pods, wake);
    }
    leftovers(sight, &mut going);
    going
}

fn look<'a>(
    memory: &Memory,
    sight: &Sight<'_>,
    table: &Table<'_>,
    limits: &Limits,
    record: &'a Recorded,
) -> Looked<'a> {
    let now = sight.now;
    let mut replacement = record.replacement.clone();
    let mut successors = BTreeMap::new();
    for it in &mut replacement.successors {
        let (uid, seen) = look_at_successor(memory, sight, &record.name, it);
        it.uid = uid;
        successors.insert(it.claim.clone(), seen);
    }
    let old = old_seen(sight.view, &replacement.old, &record.name, now);
    let ledger = &sight.records.ledger;
    let mut wanted = still_wanted(table, &replacement);
    // Nothing was disturbed yet, and nobody has granted it: it begins anew when there is room.
    let granted = ledger.grants.contains_key(&record.name);
    let untouched =
        matches!(replacement.phase, Phase::Launching | Phase::Joining | Phase::Settling);
    if !granted && untouched && replacement.holds_grant(&old) {
        wanted = Some(false);
    }
    let seen = Seen {
        old,
        successors,
        placement: PlacementSeen::NotDecided,
        drain_limit: None,
        wanted,
        halted: ledger.pause.is_some() || ledger.locked().is_some(),
    };
    let drain = drain(sight, table, limits, record, &seen);
    Looked { record, replacement, seen, drain }
}

fn look_at_successor(
    memory: &Memory,
    sight: &Sight<'_>,
    replacement: &str,
    successor: &Successor,
) -> (Option<String>, SuccessorSeen) {
    let made = memory.made.get(&successor.claim);
    let claim = sight.view.claims.get(&successor.claim);
    let ours = |it: &Claim| match &successor.uid {
        Some(uid) => it.uid == *uid,
        None => it.successor_of.as_deref() == Some(replacement),
    };
    match claim {
        Some(claim) if ours(claim) => {
            let died = died(memory, claim);
            let seen = died.unwrap_or_else(|| successor_seen(sight.view, claim, sight.now));
            (Some(claim.uid.clone()), seen)
        }
        // Somebody else's has the name: ours cannot be made.
        Some(_) => (successor.uid.clone(), SuccessorSeen::Gone),
        None if unreadable(sight, &successor.claim) => {
            (successor.uid.clone(), SuccessorSeen::Unknown)
        }
        None => match (&successor.uid, made) {
            (uid, Some((made_uid, at))) => {
                let uid = Some(uid.clone().unwrap_or_else(|| made_uid.clone()));
                let lags = sight.now < after(*at, UNSEEN_FOR);
                (uid, if lags { SuccessorSeen::Unknown } else { SuccessorSeen::Gone })
            }
            // Recorded as made, so it was seen: it is gone.
            (Some(uid), None) => (Some(uid.clone()), SuccessorSeen::Gone),
            (None, None) => (None, SuccessorSeen::Unasked),
        },
    }
}

/// Told apart from a deletion as long as nobody has deleted it: afterwards its machine ends by that.
fn died(memory: &Memory, claim: &Claim) -> Option<SuccessorSeen> {
    let machine = memory.machines.value()?.get(claim.machine.as_ref()?)?;
    let ended = matches!(machine.state, MachineState::ShuttingDown | MachineState::Terminated);
    let node = claim.node.clone().unwrap_or_else(|| claim.name.clone());
    (ended && claim.deleting_since.is_none()).then_some(SuccessorSeen::Died { node })
}

fn unreadable(sight: &Sight<'_>, claim: &str) -> bool {
    sight.view.unreadable.keys().any(|it| it.kind == Kind::Claim && it.name == claim)
}

/// Whether the old node still has to go. `None` if we cannot tell.
fn still_wanted(table: &Table<'_>, replacement: &Replacement) -> Option<bool> {
    use nodemolt_core::drift::Drift;
    if !replacement.cause.voluntary() {
        return Some(true);
    }
    let node = table.readings.fleet().nodes.get(&replacement.old.node)?;
    if node.wish.is_some() {
        return Some(true);
    }
    match table.readings.drifts().get(&replacement.old.node) {
        Some(Drift::InSync) => Some(false),
        Some(Drift::Drifted { .. } | Drift::Unknown(_)) | None => None,
    }
}

fn drain(
    sight: &Sight<'_>,
    table: &Table<'_>,
    limits: &Limits,
    record: &Recorded,
    seen: &Seen,
) -> Option<Drain> {
    let replacement = &record.replacement;
    // Before the cordon a pod that leaves would come right back.
    let (Phase::Draining, OldSeen::Present { cordoned: true, .. }) = (replacement.phase, &seen.old)
    else {
        return None;
    };
    let node = table.readings.fleet().nodes.get(&replacement.old.node)?;
    let claim = sight.claim(&replacement.old.claim, &replacement.old.claim_uid);
    let rule = node.member.class.as_ref().and_then(|it| limits.classes.get(it));
    let known = record.drain.as_ref();
    let since = known.and_then(|it| it.cordoned_at).unwrap_or(sight.now);
    let grace = claim.and_then(|it| it.termination_grace_period);
    let from = claim.and_then(|it| it.deleting_since).map_or(since, |it| it.min(since));
    let mut deadline = grace.map(|it| after(from, it));
    if replacement.cause == Cause::Interrupted {
        let taken_at = after(replacement.since, INTERRUPTION_NOTICE);
        deadline = Some(deadline.map_or(taken_at, |it| it.min(taken_at)));
    }
    Some(Drain {
        node: replacement.old.node.clone(),
        since,
        last_left_at: known.and_then(|it| it.last_left_at),
        pods: node.pods.clone(),
        limit: rule.and_then(|it| it.drain_limit),
        at_limit: replacement.at_limit,
        deadline,
        bare_pods: rule.map_or(BarePods::Wait, |it| it.bare_pods),
    })
}

/// Placement is decided again for those that could be cordoned now.
fn decide_places(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    looked: &mut [Looked<'_>],
) {
    let steady = |it: &SuccessorSeen| match it {
        SuccessorSeen::Ready { since, .. } => sight.now.duration_since(*since) >= STEADY_FOR,
        SuccessorSeen::Unknown
        | SuccessorSeen::Unasked
        | SuccessorSeen::Launching { .. }
        | SuccessorSeen::Launched
        | SuccessorSeen::Registered { .. }
        | SuccessorSeen::NotReady { .. }
        | SuccessorSeen::Died { .. }
        | SuccessorSeen::Deleting
        | SuccessorSeen::Gone => false,
    };
    let about_to = |it: &Looked<'_>| {
        it.replacement.phase == Phase::Settling
            && !it.seen.halted
            && it.seen.wanted != Some(false)
            && it.seen.successors.values().all(steady)
    };
    let nodes: BTreeMap<String, bool> = looked
        .iter()
        .filter(|it| about_to(it))
        .map(|it| (it.replacement.old.node.clone(), !it.replacement.successors.is_empty()))
        .collect();
    let places = table.place_again(memory, sight, &nodes);
    for it in looked {
        if let Some(place) = places.get(&it.replacement.old.node) {
            it.seen.placement = place.clone();
        }
    }
}

fn limit(looked: &mut Looked<'_>, held: &[Held], now: Timestamp, wake: &mut Wake) {
    let Some(drain) = &looked.drain else { return };
    let Some(ends_at) = limit_ends_at(drain, now) else {
        wake.at(drain.deadline);
        return;
    };
    wake.at(Some(ends_at));
    let first = held.iter().find(|it| it.node == drain.node && holds(&it.why).is_some());
    let pod = first.map(|it| it.pod.to_string());
    let pod = pod.or_else(|| remaining(&drain.pods, now).next().map(|it| it.id.to_string()));
    looked.seen.drain_limit = pod.map(|it| (ends_at, it));
}

/// What a person should know of a pod that may not leave.
fn holds(why: &Hold) -> Option<String> {
    match why {
        Hold::Protected(protection) => Some(format!("it says `{}`", protection.annotation)),
        Hold::Bare => Some("it has no controller and would be lost".to_owned()),
        Hold::Refused(refused) => Some(refused.to_string()),
        Hold::Stays(_) | Hold::Terminating | Hold::UnderWay { .. } | Hold::AfterOthers => None,
    }
}

/// The record as it should stand after a step.
fn record(
    memory: &mut Memory,
    sight: &Sight<'_>,
    looked: &Looked<'_>,
    step: Step,
    held: &[Held],
    wake: &mut Wake,
) -> Going {
    let now = sight.now;
    let Looked { record, replacement, seen, drain } = looked;
    let after_step = replacement.after(step.clone(), now);
    if after_step.phase == replacement.phase {
        for at in due(replacement, seen) {
            wake.at(Some(at));
        }
    } else {
        memory.pace.measure(replacement.phase, now.duration_since(replacement.since));
    }
    let ledger = &sight.records.ledger;
    let granted = ledger.grants.get(&record.name).map(|it| (it.epoch, it.since));
    let holds_grant = after_step.holds_grant(&seen.old);
    let waits_for = match &step {
        Step { phase, because: Because::WaitsFor(wait) } if *phase == replacement.phase => {
            Some(wait.to_string())
        }
        Step { .. } => None,
    };
    let recorded = Recorded {
        grant: if holds_grant { record.grant.or(granted) } else { None },
        drain: drain_record(sight, record, &after_step, seen, drain.as_ref(), held),
        told: crate::record::Told { waits_for, ..record.told.clone() },
        replacement: after_step,
        ..(*record).clone()
    };
    let changed = recorded != **record;
    Going { recorded, changed, step, drain: drain.clone(), errands: Vec::new() }
}

/// When time alone may move it on.
fn due(replacement: &Replacement, seen: &Seen) -> Vec<Timestamp> {
    let mut due: Vec<Timestamp> = seen
        .successors
        .values()
        .filter_map(|it| match it {
            SuccessorSeen::Ready { since, .. } => Some(after(*since, STEADY_FOR)),
            SuccessorSeen::NotReady { since, .. } | SuccessorSeen::Registered { since } => {
                Some(after(*since, JOIN_DEADLINE))
            }
            SuccessorSeen::Unknown
            | SuccessorSeen::Unasked
            | SuccessorSeen::Launching { .. }
            | SuccessorSeen::Launched
            | SuccessorSeen::Died { .. }
            | SuccessorSeen::Deleting
            | SuccessorSeen::Gone => None,
        })
        .collect();
    // All deadlines of phases are equal, and fire when they are over.
    due.push(after(replacement.since, JOIN_DEADLINE + SignedDuration::from_secs(1)));
    due
}

fn drain_record(
    sight: &Sight<'_>,
    record: &Recorded,
    replacement: &Replacement,
    seen: &Seen,
    drain: Option<&Drain>,
    held: &[Held],
) -> Option<DrainRecord> {
    let begun = replacement.phase == Phase::Draining || record.drain.is_some();
    if !begun {
        return None;
    }
    let mut known = record.drain.clone().unwrap_or_default();
    let OldSeen::Present { cordoned, pods, .. } = seen.old else { return Some(known) };
    if !matches!(replacement.phase, Phase::Draining | Phase::Terminating) {
        return Some(known);
    }
    if cordoned && known.cordoned_at.is_none() {
        known.cordoned_at = Some(sight.now);
        known.pods = pods;
    } else if cordoned && pods < known.pods_left {
        known.last_left_at = Some(sight.now);
    }
    known.pods = known.pods.max(pods);
    known.pods_left = pods;
    let node = drain.map(|it| it.node.as_str());
    let named = held.iter().filter(|it| Some(it.node.as_str()) == node);
    for owner in sight.view.pods.on(&replacement.old.node).filter_map(|it| leaves(it, sight.now)) {
        if known.moved.len() < MOVED_MAX {
            known.moved.entry(owner.to_owned()).or_insert(sight.now);
        }
    }
    known.held =
        named.filter_map(|it| Some((it.pod.clone(), holds(&it.why)?))).take(HELD_MAX).collect();
    Some(known)
}

/// Of a pod that must leave: the UID of who starts it again.
fn leaves(pod: &seen::Pod, now: Timestamp) -> Option<&str> {
    pod.owner_uid.as_deref().filter(|_| nodemolt_core::drain::stays(&pod.drain, now).is_none())
}

/// What its phase wants done. Pods that are deleted by force stand in the record first.
fn command(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    going: &mut Going,
    evict: &[&Evict],
    wake: &mut Wake,
) {
    let ledger = &sight.records.ledger;
    let halted = ledger.pause.is_some() || ledger.locked().is_some();
    let replacement = going.recorded.replacement.clone();
    let name = going.recorded.name.clone();
    let may_disturb = !(halted && replacement.cause.voluntary());
    let node = sight.view.nodes.get(&replacement.old.node);
    let object = node.map(|it| Object {
        name: it.name.clone(),
        uid: it.uid.clone(),
        revision: it.revision.clone(),
    });
    let cordoned = node.is_some_and(|it| it.cordoned_by.as_deref() == Some(name.as_str()));
    for command in asks(replacement.phase, &replacement) {
        match command {
            Command::Launch { claim } => {
                if let Some(draft) = draft(memory, sight, table, &going.recorded, &claim) {
                    let claim = Box::new(draft);
                    let intent = Intent::Claim(claim.name.clone());
                    let replacement = name.clone();
                    going.errands.push((intent, Errand::MakeClaim { replacement, claim }));
                }
            }
            Command::Cordon { node } => {
                if let Some(object) = object.clone().filter(|_| may_disturb && !cordoned) {
                    let errand = Errand::Cordon { replacement: name.clone(), node: object };
                    going.errands.push((Intent::Node(node), errand));
                }
            }
            Command::Evict { .. } => {
                if may_disturb {
                    empty(memory, sight, going, evict, wake);
                }
            }
            Command::Terminate { claim, uid } => {
                let there = sight.claim(&claim, &uid).is_some_and(|it| it.deleting_since.is_none());
                if there && may_disturb {
                    let intent = Intent::Claim(claim.clone());
                    let replacement = name.clone();
                    going.errands.push((intent, Errand::DeleteOld { replacement, claim, uid }));
                }
            }
            Command::Uncordon { node } => {
                if let Some(object) = object.clone().filter(|_| cordoned) {
                    let errand = Errand::Uncordon { replacement: name.clone(), node: object };
                    going.errands.push((Intent::Node(node), errand));
                }
            }
            Command::RemoveSuccessor { claim } => {
                let known = replacement.successors.iter().find(|it| it.claim == claim);
                let uid = known.and_then(|it| it.uid.as_deref());
                let there = uid.and_then(|it| sight.claim(&claim, it));
                if let Some(there) = there.filter(|it| removable(sight, it)) {
                    going.errands.push(remove(&name, there));
                }
            }
        }
    }
}

/// Nobody runs there whom we would have to move a second time.
fn removable(sight: &Sight<'_>, claim: &Claim) -> bool {
    let node = claim.node.as_deref().unwrap_or(&claim.name);
    let mut pods = sight.view.pods.on(node);
    claim.deleting_since.is_none()
        && !pods.any(|it| nodemolt_core::drain::stays(&it.drain, sight.now).is_none())
}

fn remove(replacement: &str, claim: &Claim) -> (Intent, Errand) {
    let errand = Errand::DeleteSuccessor {
        replacement: replacement.to_owned(),
        claim: claim.name.clone(),
        uid: claim.uid.clone(),
    };
    (Intent::Claim(claim.name.clone()), errand)
}

fn empty(memory: &Memory, sight: &Sight<'_>, going: &mut Going, evict: &[&Evict], wake: &mut Wake) {
    let name = going.recorded.name.clone();
    for Evict { pod, how, node: _ } in evict.iter().copied() {
        if let Some((until, _)) =
            memory.evicted.get(&pod.uid).filter(|(until, _)| sight.now < *until)
        {
            wake.at(Some(*until));
            // By force nobody waits for what was asked kindly.
            if *how == How::Evict {
                continue;
            }
        }
        let replacement = name.clone();
        let errand = match how {
            How::Evict => Errand::Evict { replacement, pod: pod.clone() },
            How::Delete { grace_seconds, because } => {
                let why = match because {
                    Forced::Deadline => "its node's deadline",
                    Forced::DrainLimit => "the drain limit, by the policy's choice",
                };
                let record = going.recorded.drain.get_or_insert_with(DrainRecord::default);
                if !record.forced.iter().any(|(it, _)| it == pod) {
                    record.forced.push((pod.clone(), why.to_owned()));
                    going.changed = true;
                }
                Errand::DeletePod { replacement, pod: pod.clone(), grace_seconds: *grace_seconds }
            }
        };
        going.errands.push((Intent::Pod(pod.uid.clone()), errand));
    }
}

/// The claim of a successor as it was decided; decided again if that was forgotten.
fn draft(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    recorded: &Recorded,
    name: &str,
) -> Option<NewClaim> {
    if let Some(known) = memory.drafts.get(name) {
        return Some(known.clone());
    }
    let replacement = &recorded.replacement;
    let at = replacement.successors.iter().position(|it| it.claim == name)?;
    let old = &replacement.old;
    let placements = table.place_one(memory, sight, &old.node);
    let claim = sight.claim(&old.claim, &old.claim_uid);
    let pool = recorded.pool.as_ref().and_then(|it| sight.view.pools.get(it));
    let mut found = Vec::new();
    if let Some(claim) = claim {
        let node = sight.view.nodes.get(&old.node);
        let old = successors::Old::new(memory, sight, pool, claim, node, true);
        let placement = placements.of.get(&replacement.old.node);
        let mut taken = std::collections::BTreeSet::new();
        found = successors::of_placement(sight, placement, &placements, &mut taken, &old);
        if found.len() <= at {
            found.extend(old.same_kind(sight));
        }
    } else if let Some(pool) = pool {
        // The old one is gone: what its pods need is seen by those that are pending.
        found = successors::for_pending(sight, &placements, pool);
    }
    let mut draft = found.into_iter().nth(at)?;
    name.clone_into(&mut draft.name);
    draft.successor_of = Some(recorded.name.clone());
    memory.drafts.insert(name.to_owned(), draft.clone());
    Some(draft)
}

/// Claims that were made for a replacement and came too late: it has ended, or has others by now.
fn leftovers(sight: &Sight<'_>, going: &mut [Going]) {
    for claim in sight.view.claims.values() {
        let Some(name) = &claim.successor_of else { continue };
        if claim.stages.contains_key(&Stage::Initialized) || !removable(sight, claim) {
            continue;
        }
        let open = going.iter_mut().find(|it| it.recorded.name == *name);
        let Some(open) = open else { continue };
        let listed = open.recorded.replacement.successors.iter().any(|it| it.claim == claim.name);
        if !listed {
            open.errands.push(remove(name, claim));
        }
    }
}

/// Claims whose replacement has ended without them. They belong to nobody's phase, so they are told apart.
pub(crate) fn abandoned(sight: &Sight<'_>) -> Vec<(Intent, Errand)> {
    let late = sight.view.claims.values().filter(|claim| {
        let ended = claim.successor_of.as_ref().and_then(|it| sight.records.replacements.get(it));
        let failed = ended.is_some_and(|it| {
            matches!(it.replacement.phase, Phase::Failed | Phase::Skipped | Phase::Cancelled)
        });
        failed && !claim.stages.contains_key(&Stage::Initialized) && removable(sight, claim)
    });
    late.map(|it| remove(it.successor_of.as_deref().unwrap_or_default(), it)).collect()
}
