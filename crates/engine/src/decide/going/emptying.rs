//! How is a node emptied, and since when?
//!
//! `record × what is seen of it → drain`, and what stands in the record about it
//!
//! Limits and deadlines count the time in which pods could leave: a pause, a successor that is not ready, an
//! operator that was not there and an API server that did not answer are not held against them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::Limits;
use nodemolt_core::claim::forced_at;
use nodemolt_core::drain::{
    self, BarePods, Drain, Evict, Forced, Held, Hold, How, Pod, PodId, limit_ends_at, lingers,
    moves, moving,
};
use nodemolt_core::replace::{Cause, OldSeen, Phase, Replacement, Seen, evicts};
use nodemolt_core::seen::{self, Kind};

use super::{Going, Looked};
use crate::act::{Errand, Intent};
use crate::claims;
use crate::decide::placing::Table;
use crate::decide::{Sight, Wake};
use crate::freshness::{DISTURBING, silent};
use crate::memory::{Memory, after};
use crate::record::{DrainRecord, Recorded};

/// EC2's notice before it takes a spot machine away.
const INTERRUPTION_NOTICE: SignedDuration = SignedDuration::from_mins(2);

/// So many pods that hold a drain are named in the record.
const HELD_MAX: usize = 10;

/// So many owners of pods that leave are recorded: more than a node has pods.
const MOVED_MAX: usize = 500;

/// How a node is emptied now. `None` while no pod may be asked to leave.
pub(super) fn drain(
    memory: &Memory,
    sight: &Sight<'_>,
    table: &Table<'_>,
    limits: &Limits,
    record: &Recorded,
    seen: &Seen,
) -> Option<Drain> {
    let replacement = &record.replacement;
    // Who ends with the machine takes from its budget for as long as it is there.
    let ends = replacement.phase == Phase::Terminating;
    if !ends && !evicts(replacement, seen, sight.now) {
        return None;
    }
    // Hands withhold what disturbs while watches are silent.
    let voluntary = !replacement.leaves_anyway(&seen.old);
    if !ends && voluntary && silent(sight.view, &DISTURBING, sight.now).is_some() {
        return None;
    }
    let with_machine = |it: &&Arc<Pod>| !ends || drain::with_machine(it, sight.now);
    let node = table.readings.fleet().nodes.get(&replacement.old.node)?;
    let claim = sight.claim(&replacement.old.claim, &replacement.old.claim_uid);
    let rule = node.member.class.as_ref().and_then(|it| limits.classes.get(it));
    let known = record.drain.as_ref();
    let (_, evicting_since) = evicting(memory, sight, record);
    let grace = claim.and_then(|it| it.termination_grace_period);
    let deleted_at = claim.and_then(|it| it.deleting_since);
    // From its deletion on the machine ends then, whatever becomes of us. Before that only the time counts
    // in which pods could leave.
    let mut deadline = match claim.filter(|_| deleted_at.is_some()) {
        Some(claim) => {
            let granted = sight.records.ledger.grants.get(&record.name).map(|it| it.since);
            forced_at(claim, &claims::gate(sight.view, claim, granted, false))
        }
        None => grace.map(|it| after(evicting_since, it)),
    };
    let interrupted = replacement.cause == Cause::Interrupted;
    if interrupted {
        let taken_at = after(replacement.since, INTERRUPTION_NOTICE);
        deadline = Some(deadline.map_or(taken_at, |it| it.min(taken_at)));
    }
    Some(Drain {
        node: replacement.old.node.clone(),
        since: known.and_then(|it| it.cordoned_at).unwrap_or(sight.now),
        last_left_at: known.and_then(|it| it.last_left_at).max(Some(evicting_since)),
        pods: node.pods.iter().filter(with_machine).cloned().collect(),
        limit: rule.and_then(|it| it.drain_limit),
        at_limit: replacement.at_limit,
        deadline,
        machine_goes: interrupted || deleted_at.is_some(),
        decided: ends,
        ending: ends && deleted_at.is_some(),
        bare_pods: rule.map_or(BarePods::Wait, |it| it.bare_pods),
        hindered: memory.hindered_by(&record.name),
    })
}

/// Since when pods are asked to leave without a break, and by which leader: what another one wrote down
/// ended with it, and nobody knows when.
fn evicting(memory: &Memory, sight: &Sight<'_>, record: &Recorded) -> (u64, Timestamp) {
    let epoch = sight.records.ledger.epoch;
    let known = record.drain.as_ref().and_then(|it| it.evicting).filter(|it| it.0 == epoch);
    let Some((_, since)) = known else { return (epoch, sight.now) };
    let hindered = memory.hindered_at(&record.name).map_or(since, |it| it.min(sight.now));
    (epoch, since.max(hindered))
}

/// How many pods that nobody evicts may not end with the machine now. Before anybody has looked, all of them; and
/// who ends by force, until that is recorded.
pub(super) fn lingering(
    sight: &Sight<'_>,
    looked: &Looked<'_>,
    (evict, held): (&[Evict], &[Held]),
) -> usize {
    let old = &looked.replacement.old;
    let node = &old.node;
    let machine = sight.claim(&old.claim, &old.claim_uid).and_then(|it| it.machine.as_ref());
    let named = sight.view.nodes.get(node).and_then(|it| it.machine.as_ref());
    if named.is_some_and(|it| Some(it) != machine) {
        return 0; // Another one has taken its name.
    }
    let pods = sight.view.pods.on(node);
    let record = looked.record.drain.as_ref();
    let forced = |pod: &PodId| record.is_some_and(|it| it.forced.iter().any(|(it, _)| it == pod));
    let ends = |it: &&seen::Pod| drain::with_machine(&it.drain, sight.now);
    let decided = looked.replacement.phase == Phase::Terminating;
    if !decided && looked.drain.is_none() {
        return pods.filter(ends).count();
    }
    // What their budgets say is not known any more.
    if !decided && silent(sight.view, &[Kind::Pdb], sight.now).is_some() {
        return pods.filter(ends).filter(|it| !forced(&it.drain.id)).count();
    }
    let held = |it: &&seen::Pod| {
        let id = &it.drain.id;
        let mut all = held.iter().filter(|held| held.pod.uid == id.uid);
        let by_force = |it: &Evict| matches!(it.how, How::WithMachine { forced: Some(_) });
        let unrecorded = || evict.iter().any(|it| it.pod.uid == id.uid && by_force(it));
        !forced(id) && (all.any(|held| lingers(&it.drain, &held.why, sight.now)) || unrecorded())
    };
    pods.filter(held).count()
}

pub(super) fn limit(looked: &mut Looked<'_>, held: &[Held], now: Timestamp, wake: &mut Wake) {
    let Some(drain) = &looked.drain else { return };
    let Some(ends_at) = limit_ends_at(drain, now) else {
        wake.at(drain.deadline);
        return;
    };
    wake.at(Some(ends_at));
    let first = held.iter().find(|it| it.node == drain.node && holds(&it.why).is_some());
    let pod = first.map(|it| it.pod.to_string());
    let pod = pod.or_else(|| moving(&drain.pods, now).next().map(|it| it.id.to_string()));
    looked.seen.drain_limit = pod.map(|it| (ends_at, it));
}

/// What a person should know of a pod that may not leave.
fn holds(why: &Hold) -> Option<String> {
    match why {
        Hold::Protected(protection) => Some(format!("it says {protection}")),
        Hold::Bare => Some("it has no controller and would be lost".to_owned()),
        Hold::Refused(refused) => Some(refused.to_string()),
        Hold::Stays(_) | Hold::Terminating | Hold::UnderWay { .. } | Hold::AfterOthers => None,
    }
}

pub(super) fn drain_record(
    memory: &Memory,
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
    let evicts = drain.filter(|_| record.replacement.phase == Phase::Draining);
    known.evicting = evicts.map(|_| evicting(memory, sight, record));
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

/// Of a pod that leaves, or ends with the machine: the UID of who starts it again.
fn leaves(pod: &seen::Pod, now: Timestamp) -> Option<&str> {
    pod.owner_uid.as_deref().filter(|_| moves(&pod.drain, now))
}

pub(super) fn empty(
    memory: &Memory,
    sight: &Sight<'_>,
    going: &mut Going,
    evict: &[&Evict],
    wake: &mut Wake,
) {
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
            How::WithMachine { .. } => continue,
            How::Delete { grace_seconds, because } => {
                force(going, pod, *because);
                Errand::DeletePod { replacement, pod: pod.clone(), grace_seconds: *grace_seconds }
            }
        };
        going.errands.push((Intent::Pod(pod.uid.clone()), errand));
    }
}

/// Whoever ends with the machine past its budget or its protection.
pub(super) fn ends_by_force(going: &mut Going, evict: &[&Evict]) {
    for it in evict {
        if let How::WithMachine { forced: Some(because) } = it.how {
            force(going, &it.pod, because);
        }
    }
}

/// What passes a budget or a protection stands in the record first.
fn force(going: &mut Going, pod: &PodId, because: Forced) {
    let why = match because {
        Forced::Deadline => "its node's deadline",
        Forced::DrainLimit => "the drain limit, by the policy's choice",
    };
    let record = going.recorded.drain.get_or_insert_with(DrainRecord::default);
    if !record.forced.iter().any(|(it, _)| it == pod) {
        record.forced.push((pod.clone(), why.to_owned()));
        going.changed = true;
    }
}
