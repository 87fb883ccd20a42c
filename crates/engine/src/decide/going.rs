//! What is the next step of each replacement that is under way?
//!
//! `records × what is seen of their parts → records as they should stand, and the commands of their phases`
//!
//! Drains are looked at together: budgets of pods know no replacements. What a phase asks for is asked for
//! as long as it lasts, and only after the phase stands in the record.

mod draft;
mod emptying;
mod leftovers;
mod widen;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::Limits;
use nodemolt_core::drain::{Drain, Evict, Held, Pdbs, evictions};
use nodemolt_core::plan::{WaitFor, held_at_once, held_by_people, protected_node};
use nodemolt_core::replace::{
    Because, Command, JOIN_DEADLINE, LOST_DEADLINE, OldSeen, Phase, PlacementSeen, Replacement,
    STEADY_FOR, Seen, Step, Successor, SuccessorSeen, asks, next,
};
use nodemolt_core::seen::{Claim, Kind};

pub(crate) use draft::Draft;
pub(crate) use leftovers::{abandoned, stray_cordons};

use super::coming::{self, UNSEEN_FOR};
use super::placing::{Cordonable, Table};
use super::successors::{further, named};
use super::{Sight, Wake};
use crate::act::{Errand, Intent};
use crate::claims::{old_seen, successor_seen};
use crate::memory::{Memory, after};
use crate::port::MachineState;
use crate::record::Recorded;
use draft::draft;
use emptying::{drain, drain_record, empty, ends_by_force, limit, lingering};
use leftovers::{leftovers, object, removable, remove};
use widen::{makes_way, widened};

/// Room that was there a moment ago may come again: a node that blinks, a pod that is still leaving.
const MORE_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// So long pods wait for room on a node that is on its way, where one that is to be replaced itself has some. Less than
/// what gives up a replacement: then the room that there is has to do.
const BETTER_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// Whoever has come to a node that was to end has a place, or not: that is decided in the next turn.
const CORDON_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// A replacement whose successors others use up does not launch for ever: so many in all, or twice as many
/// as it has pods.
const SUCCESSORS_MAX: usize = 4;

/// However many pods it has: what others take away again and again is not bought for ever. A record holds a hundred.
const SUCCESSORS_IN_ALL_MAX: usize = 20;

/// One that is under way.
pub(crate) struct Going {
    /// As it should stand.
    pub(crate) recorded: Recorded,
    pub(crate) changed: bool,
    pub(crate) step: Step,
    pub(crate) drain: Option<Drain>,
    pub(crate) errands: Vec<(Intent, Errand)>,
    /// Nodes that its pods are to go to, if that was decided in this turn.
    homes: BTreeSet<String>,
    /// Whether it may be cordoned was not decided in this turn.
    unasked: bool,
    /// Pods that nobody evicts and that may not end with the machine now.
    pub(crate) lingering: usize,
    /// It goes, whatever becomes of us.
    leaves_anyway: bool,
}

impl Going {
    /// A pause or a lock holds it. Not if somebody has deleted the node, whatever it was replaced for.
    pub(crate) fn voluntary(&self) -> bool {
        !self.leaves_anyway
    }
}

struct Looked<'a> {
    record: &'a Recorded,
    /// With its successors' UIDs, as far as they are known by now.
    replacement: Replacement,
    seen: Seen,
    drain: Option<Drain>,
    /// It may be cordoned in this turn: what people say was asked anew, and where its pods would go is decided anew.
    before_cordon: bool,
    /// Of one that goes first: a budget that does not let all of its pods go at once, which they need not if they have
    /// room elsewhere.
    not_all: Option<WaitFor>,
    /// Nodes that its pods are to go to, if that was decided in this turn.
    homes: BTreeSet<String>,
}

pub(crate) fn go_on(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    limits: &Limits,
    wake: &mut Wake,
) -> Vec<Going> {
    coming::forget(memory, sight);
    watch_steadiness(memory, sight);
    let open = sight.records.replacements.values().filter(|it| !it.replacement.phase.ended());
    let mut looked: Vec<Looked<'_>> = {
        let pdbs = Pdbs::new(&table.readings.fleet().pdbs);
        open.map(|it| look(memory, sight, table, (limits, &pdbs), it)).collect()
    };
    for it in &looked {
        recall(memory, sight, table, it);
    }
    decide_places(memory, sight, table, &mut looked);
    decide_more(memory, sight, table, &mut looked, wake);
    let drains: Vec<Drain> = looked.iter().filter_map(|it| it.drain.clone()).collect();
    let pdbs = &table.readings.fleet().pdbs;
    let (evict, held) = evictions(&drains, pdbs, sight.now);
    for it in &held {
        wake.at(it.again_at);
    }
    let mut going = Vec::new();
    for it in &mut looked {
        wake.at(it.seen.people.as_ref().and_then(WaitFor::ends_at));
        limit(it, &held, sight.now, wake);
        it.seen.lingering = lingering(sight, it, (&evict, &held));
        let step = next(&it.replacement, &it.seen, sight.now);
        going.push(record(memory, sight, it, step, &held, wake));
    }
    for it in &mut going {
        let pods = evict.iter().filter(|pod| pod.node == it.recorded.replacement.old.node);
        let pods: Vec<&Evict> = pods.collect();
        ends_by_force(it, &pods);
        command(memory, sight, table, it, &pods, wake);
    }
    leftovers(sight, &mut going);
    going
}

fn look<'a>(
    memory: &Memory,
    sight: &Sight<'_>,
    table: &Table<'_>,
    (limits, pdbs): (&Limits, &Pdbs<'_>),
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
    let unsteady = successors.keys().filter_map(|it| memory.unsteady.get_key_value(it));
    let unsteady = unsteady.map(|(claim, since)| (claim.clone(), *since)).collect();
    let old = old_seen(sight.view, &replacement.old, &record.name, now);
    let ledger = &sight.records.ledger;
    let wanted = still_wanted(table, &replacement);
    // Where nothing was done yet, and nobody has granted it, it begins anew when there is room.
    let granted = ledger.grants.contains_key(&record.name)
        || !replacement.holds_grant(&old)
        || record.grant_lost(ledger);
    let (node, fleet) = (&replacement.old.node, table.readings.fleet());
    let asks = asks_people(&replacement, &old);
    let people = match asks {
        Some(AsksPeople::All) => held_by_people(fleet, pdbs, limits, node, now),
        Some(AsksPeople::AboutTheNode) => protected_node(fleet, node, now),
        None => None,
    };
    let before_cordon = asks == Some(AsksPeople::All);
    let not_all = if before_cordon && replacement.deletes_first() {
        held_at_once(fleet, pdbs, node, replacement.at_limit, now)
    } else {
        None
    };
    let seen = Seen {
        old,
        successors,
        unsteady,
        placement: PlacementSeen::NotDecided,
        more: Vec::new(),
        people,
        lingering: 0,
        drain_limit: None,
        wanted,
        granted,
        halted: ledger.pause.is_some() || ledger.locked().is_some(),
        locked: ledger.locked().is_some(),
    };
    let drain = drain(memory, sight, table, limits, record, &seen);
    Looked { record, replacement, seen, drain, before_cordon, not_all, homes: BTreeSet::new() }
}

/// What of a node and its pods may hold its replacement now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AsksPeople {
    /// It may be cordoned now, if everything speaks for it: what people say and where its pods would go is asked again.
    All,
    /// Its pods are asked one by one.
    AboutTheNode,
}

fn asks_people(replacement: &Replacement, old: &OldSeen) -> Option<AsksPeople> {
    let uncordoned = matches!(old, OldSeen::Present { cordoned: false, .. });
    let asks = match replacement.phase {
        Phase::Settling => AsksPeople::All,
        Phase::Draining if uncordoned => AsksPeople::All,
        Phase::Draining | Phase::Terminating => AsksPeople::AboutTheNode,
        Phase::Launching
        | Phase::Joining
        | Phase::Retreating
        | Phase::Done
        | Phase::Failed
        | Phase::Skipped
        | Phase::Kept
        | Phase::Cancelled => return None,
    };
    (!replacement.leaves_anyway(old)).then_some(asks)
}

/// Since when successors of nodes that are being emptied are now ready and now not. Whoever was ready for long enough since
/// is steady again.
fn watch_steadiness(memory: &mut Memory, sight: &Sight<'_>) {
    let all = sight.records.replacements.values();
    let emptied = all.filter(|it| it.replacement.phase == Phase::Draining);
    let mut unsteady = BTreeMap::new();
    let successors = emptied
        .flat_map(|record| record.replacement.successors.iter().map(move |it| (&record.name, it)));
    for (name, it) in successors {
        let known = memory.unsteady.get(&it.claim).copied();
        let since = match look_at_successor(memory, sight, name, it).1 {
            SuccessorSeen::NotReady { since, .. } => Some(known.map_or(since, |it| it.min(since))),
            SuccessorSeen::Ready { since, .. } => {
                known.filter(|_| sight.now < after(since, LOST_DEADLINE))
            }
            SuccessorSeen::Unknown => known,
            SuccessorSeen::Unasked
            | SuccessorSeen::Launching { .. }
            | SuccessorSeen::Launched { .. }
            | SuccessorSeen::Registered { .. }
            | SuccessorSeen::Died { .. }
            | SuccessorSeen::Deleting { .. }
            | SuccessorSeen::Gone => None,
        };
        unsteady.extend(since.map(|since| (it.claim.clone(), since)));
    }
    memory.unsteady = unsteady;
}

pub(crate) fn look_at_successor(
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
            let record = sight.records.replacements.get(replacement);
            let given_up = record.is_some_and(|it| it.replacement.phase == Phase::Retreating);
            let died = died(memory, claim, given_up);
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
            // Recorded as made; but whoever made it may have led until a moment ago, and our watch may lag.
            (Some(uid), None) => {
                let began = memory.began_at;
                let lags = began.is_none_or(|it| sight.now < after(it, UNSEEN_FOR));
                let seen = if lags { SuccessorSeen::Unknown } else { SuccessorSeen::Gone };
                (Some(uid.clone()), seen)
            }
            (None, None) => (None, SuccessorSeen::Unasked),
        },
    }
}

/// Told apart from a deletion as long as nobody has deleted it: afterwards its machine ends by that. What was
/// deleted after EC2 had said so was deleted because of it; but whoever has given up waits only for it to go.
fn died(memory: &Memory, claim: &Claim, given_up: bool) -> Option<SuccessorSeen> {
    let (listed, at) = memory.machines.last()?;
    let machine = listed.get(claim.machine.as_ref()?)?;
    let ended = matches!(machine.state, MachineState::ShuttingDown | MachineState::Terminated);
    let node = claim.node.clone().unwrap_or_else(|| claim.name.clone());
    let before = claim.deleting_since.is_none_or(|it| at < it && !given_up);
    (ended && before).then_some(SuccessorSeen::Died { node })
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

/// Of successors that are recorded and not seen it is known what they will be, whoever decided them: they
/// are room for pods, and count towards the limits of their pools.
fn recall(memory: &mut Memory, sight: &Sight<'_>, table: &mut Table<'_>, looked: &Looked<'_>) {
    if looked.replacement.phase == Phase::Retreating {
        return;
    }
    for (claim, seen) in &looked.seen.successors {
        // One that an earlier leader has made, and that our watch has not told of yet, comes all the same.
        let unseen = *seen == SuccessorSeen::Unknown && !unreadable(sight, claim);
        let to_come = *seen == SuccessorSeen::Unasked || unseen;
        // What takes the place of one that has nowhere to go is decided when that is no room any more.
        let in_its_way = makes_way(sight, &looked.record.name, &looked.replacement);
        let waits = in_its_way.is_some_and(|it| it.deleting_since.is_none());
        if to_come && !waits && !memory.drafts.contains_key(claim) {
            draft(memory, sight, table, looked.record, claim);
        }
    }
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
        | SuccessorSeen::Launched { .. }
        | SuccessorSeen::Registered { .. }
        | SuccessorSeen::NotReady { .. }
        | SuccessorSeen::Died { .. }
        | SuccessorSeen::Deleting { .. }
        | SuccessorSeen::Gone => false,
    };
    let about_to = |it: &Looked<'_>| {
        let first = it.replacement.deletes_first();
        it.before_cordon
            && (!first || it.not_all.is_some())
            && it.seen.people.is_none()
            && !it.seen.halted
            && it.seen.wanted != Some(false)
            && (first || it.seen.successors.values().all(steady))
    };
    let follows =
        |it: &Looked<'_>| !it.replacement.deletes_first() && !it.replacement.successors.is_empty();
    let cordonable = |it: &Looked<'_>| {
        let Replacement { phase, since, .. } = &it.replacement;
        let waits = *phase == Phase::Settling && sight.now < after(*since, BETTER_WITHIN);
        // One of its kind that somebody keeps closed takes nobody.
        let closed = || closed_successor(sight, &it.replacement).is_some();
        Cordonable { followed: follows(it) && !closed(), waits }
    };
    let nodes: BTreeMap<String, Cordonable> = looked
        .iter()
        .filter(|it| about_to(it))
        .map(|it| (it.replacement.old.node.clone(), cordonable(it)))
        .collect();
    // Their successors are ready, and they will follow in a moment, or when a person lets them.
    let follow = looked.iter().filter(|it| {
        let all_ready = || it.seen.successors.values().all(ready);
        let has_successors = !it.replacement.successors.is_empty();
        it.replacement.phase == Phase::Settling && has_successors && all_ready()
    });
    let follow = follow.map(|it| it.replacement.old.node.clone()).collect();
    let places = table.place_again(memory, sight, &nodes, &follow);
    for it in looked {
        let place = places.get(&it.replacement.old.node);
        if it.replacement.deletes_first() {
            if place.map(|it| &it.0) != Some(&PlacementSeen::Holds) {
                it.seen.people = it.seen.people.take().or(it.not_all.take());
            }
        } else if let Some((place, homes)) = place {
            it.homes.clone_from(homes);
            it.seen.placement = match place {
                PlacementSeen::Lost { pod, .. } => {
                    cordoned_successor(sight, &it.replacement, pod).unwrap_or_else(|| place.clone())
                }
                PlacementSeen::NotDecided
                | PlacementSeen::Holds
                | PlacementSeen::Cordoned { .. } => place.clone(),
            };
        }
    }
}

/// A pod that has no place while a person keeps the successor's node closed lacks that node, and not the
/// room that others do not have.
fn cordoned_successor(
    sight: &Sight<'_>,
    replacement: &Replacement,
    pod: &str,
) -> Option<PlacementSeen> {
    let (claim, node) = closed_successor(sight, replacement)?;
    Some(PlacementSeen::Cordoned { pod: pod.to_owned(), claim, node })
}

/// The first successor that somebody has cordoned, and its node.
fn closed_successor(sight: &Sight<'_>, replacement: &Replacement) -> Option<(String, String)> {
    replacement.successors.iter().find_map(|it| {
        let node = sight.view.claims.get(&it.claim)?.node.clone()?;
        let closed = sight.view.nodes.get(&node)?.fit.unschedulable;
        closed.then(|| (it.claim.clone(), node))
    })
}

fn ready(successor: &SuccessorSeen) -> bool {
    matches!(successor, SuccessorSeen::Ready { .. })
}

/// Where pods have lost the place that was meant for them, and one more node would give them another.
fn decide_more(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    looked: &mut [Looked<'_>],
    wake: &mut Wake,
) {
    let mut placements = None;
    let mut taken = BTreeSet::new();
    for it in looked {
        let lost = matches!(it.seen.placement, PlacementSeen::Lost { .. });
        let OldSeen::Present { pods, .. } = it.seen.old else { continue };
        let Replacement { old, successors, phase, since, tries, .. } = &it.replacement;
        let max = SUCCESSORS_MAX.max(pods.saturating_mul(2)).min(SUCCESSORS_IN_ALL_MAX);
        let wanted = it.seen.wanted == Some(true);
        if !lost || !wanted || *phase != Phase::Settling || successors.len() >= max {
            continue;
        }
        let due = after(*since, MORE_AFTER);
        if sight.now < due {
            wake.at(Some(due));
            continue;
        }
        let placements = placements.get_or_insert_with(|| table.place_those_going(memory, sight));
        let claims = further(sight, &old.node, placements, &mut taken);
        let claims = named(claims, &it.record.name, *tries, successors.len());
        for claim in claims.into_iter().take(max - successors.len()) {
            it.seen.more.push(claim.name.clone());
            memory.drafts.insert(claim.name.clone(), Draft::of(sight, claim));
        }
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
    let Looked { record, replacement, seen, drain, before_cordon: _, homes, not_all: _ } = looked;
    let mut after_step = replacement.after(step.clone(), now);
    if (replacement.phase, step.phase) == (Phase::Settling, Phase::Launching) {
        let more = seen.more.iter().map(|it| Successor { claim: it.clone(), uid: None });
        after_step.successors.extend(more);
    }
    if after_step.phase == Phase::Launching && seen.old == OldSeen::Gone {
        widened(memory, sight, &record.name, &mut after_step);
    }
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
        drain: drain_record(memory, sight, record, &after_step, seen, drain.as_ref(), held),
        told: crate::record::Told { waits_for, ..record.told.clone() },
        replacement: after_step,
        ..(*record).clone()
    };
    let changed = recorded != **record;
    let leaves_anyway = recorded.replacement.leaves_anyway(&seen.old);
    let (drain, errands) = (drain.clone(), Vec::new());
    let (lingering, homes) = (seen.lingering, homes.clone());
    // Nobody has asked yet what speaks against a cordon of one that was to end until now.
    let phases = (replacement.phase, recorded.replacement.phase);
    let unasked = phases == (Phase::Terminating, Phase::Draining);
    if unasked {
        wake.at(Some(after(now, CORDON_AGAIN_AFTER)));
    }
    Going { recorded, changed, step, drain, errands, homes, unasked, lingering, leaves_anyway }
}

/// When time alone may move it on.
fn due(replacement: &Replacement, seen: &Seen) -> Vec<Timestamp> {
    let mut due: Vec<Timestamp> = seen
        .successors
        .values()
        .filter_map(|it| match it {
            SuccessorSeen::Ready { since, .. } => Some(after(*since, STEADY_FOR)),
            SuccessorSeen::NotReady { since, .. } | SuccessorSeen::Registered { since, .. } => {
                Some(after(*since, JOIN_DEADLINE))
            }
            SuccessorSeen::Unknown
            | SuccessorSeen::Unasked
            | SuccessorSeen::Launching { .. }
            | SuccessorSeen::Launched { .. }
            | SuccessorSeen::Died { .. }
            | SuccessorSeen::Deleting { .. }
            | SuccessorSeen::Gone => None,
        })
        .collect();
    // All deadlines of phases are equal, and fire when they are over.
    due.push(after(replacement.since, JOIN_DEADLINE + SignedDuration::from_secs(1)));
    due
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
    let may_disturb = !(halted && going.voluntary());
    let node = sight.view.nodes.get(&replacement.old.node);
    let object = node.map(object);
    let cordoned = node.is_some_and(|it| it.cordoned_for(&name));
    // With the taint or without: our name goes, too.
    let named = node.is_some_and(|it| it.cordoned_by.as_ref() == Some(&name));
    for command in asks(replacement.phase, &replacement) {
        match command {
            // Never two for one place.
            Command::Launch { .. } if makes_way(sight, &name, &replacement).is_some() => {}
            Command::Launch { claim } => {
                let draft = draft(memory, sight, table, &going.recorded, &claim);
                if let Some(draft) = draft.filter(|it| table.affords(memory, sight, it)) {
                    let claim = Box::new(draft);
                    let intent = Intent::Claim(claim.name.clone());
                    let replacement = name.clone();
                    going.errands.push((intent, Errand::MakeClaim { replacement, claim }));
                }
            }
            Command::Cordon { node } => {
                let decided = !going.unasked || going.leaves_anyway;
                let cordons = may_disturb && !cordoned && decided;
                if let Some(object) = object.clone().filter(|_| cordons) {
                    let (replacement, homes) = (name.clone(), going.homes.clone());
                    let errand = Errand::Cordon { replacement, node: object, homes };
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
                if let Some(object) = object.clone().filter(|_| named) {
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
