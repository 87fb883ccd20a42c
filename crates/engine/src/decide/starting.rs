//! Who begins, with what record and what grant?
//!
//! The grant stands in the ledger before the record is made, the record before its claims. A node whose
//! last try has ended opens the same record again.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{BudgetId, GrantKind, Limits};
use nodemolt_core::drain::{AtLimit, moving};
use nodemolt_core::drift::{Divergence, Drift};
use nodemolt_core::plan::Start;
use nodemolt_core::replace::{Cause, Old, Order, Phase, Replacement};

use super::Sight;
use super::going::Draft;
use super::homes;
use super::placing::{Planned, Table, heir};
use super::pools;
use super::successors::{self, named, of_placement};
use crate::memory::{Memory, after};
use crate::port::NewClaim;
use crate::record::{DrainRecord, Granted, Lasting, Recorded, Told};

/// Ended ones are read by people for a week, and are then in the way.
const ENDED_KEPT_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);
const ENDED_KEPT_MAX: usize = 1000;

/// One that begins.
pub(crate) struct Begun {
    pub(crate) recorded: Recorded,
    pub(crate) granted: Granted,
    /// Its successors, in the order of the record.
    pub(crate) claims: Vec<NewClaim>,
}

pub(crate) fn begin(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &Table<'_>,
    planned: &Planned,
    limits: &Limits,
) -> Vec<Begun> {
    let mut taken = BTreeSet::new();
    let mut begun: Vec<Begun> = Vec::new();
    for it in &planned.plan.start {
        begun.extend(begin_one(memory, sight, table, (planned, limits), it, &mut taken));
    }
    for it in begun.iter().flat_map(|it| &it.claims) {
        // What was decided blindly is decided again when EC2 has answered.
        if pools::known(memory, sight, Some(&it.pool)) {
            memory.drafts.insert(it.name.clone(), Draft::of(sight, it.clone()));
        }
    }
    begun
}

fn begin_one(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &Table<'_>,
    (planned, limits): (&Planned, &Limits),
    start: &Start,
    taken: &mut BTreeSet<usize>,
) -> Option<Begun> {
    let now = sight.now;
    let claim = sight.claim_of(&start.node)?;
    // A record that cannot be read holds what it held: nobody begins beside it.
    if sight.records.unreadable.contains_key(&claim.uid) {
        return None;
    }
    let node = table.readings.fleet().nodes.get(&start.node)?;
    let pool = claim.pool.as_ref().and_then(|it| sight.view.pools.get(it));
    let has_pods = moving(&node.pods, now).next().is_some();
    let seen = sight.view.nodes.get(&start.node);
    let old = successors::Old::new(memory, sight, pool, claim, seen, has_pods);
    let mut claims =
        of_placement(sight, start.placement.as_ref(), &planned.placements, taken, &old);
    let (fleet, rooms) = (table.readings.fleet(), &planned.rooms);
    if planned.unfollowed.as_ref() != Some(&start.node) {
        claims.extend(heir(memory, sight, fleet, rooms, limits, &start.node, &claims));
    }
    let known = sight.records.replacements.get(&claim.uid);
    let try_number = known.map_or(1, |it| it.replacement.tries.saturating_add(1));
    let claims = named(claims, &claim.uid, try_number, 0);
    let names: Vec<String> = claims.iter().map(|it| it.name.clone()).collect();
    let class = sight.view.classes.get(&claim.class);
    let rule = class.and_then(|it| super::limits::rules(sight, it).next());
    let at_limit = match start.cause {
        // It goes, whatever becomes of us: there is nothing to go back to.
        Cause::Deleted | Cause::Interrupted => AtLimit::Wait,
        Cause::Drift | Cause::Expiry | Cause::Asked => rule.map_or(AtLimit::Skip, |it| it.at_limit),
    };
    let replacement = match known {
        Some(known) if known.replacement.phase.ended() => {
            let again = known.replacement.again(start.cause, names, now);
            reopened(&again, start.order, at_limit)
        }
        Some(_) => return None,
        None => {
            let old = Old {
                node: start.node.clone(),
                claim: claim.name.clone(),
                claim_uid: claim.uid.clone(),
            };
            Replacement::begin(old, start.cause, start.order, at_limit, names, now)
        }
    };
    let granted = Granted {
        node: start.node.clone(),
        pool: claim.pool.clone(),
        cpu_millis: Some(node.member.cpu_millis),
        taken_from: start
            .takes
            .iter()
            .filter_map(BudgetId::disruption)
            .map(str::to_owned)
            .collect(),
        kind: match start.cause {
            Cause::Deleted => GrantKind::Deleted,
            Cause::Interrupted => GrantKind::Interrupted,
            Cause::Drift | Cause::Expiry | Cause::Asked => GrantKind::Replacement,
        },
        epoch: sight.records.ledger.epoch,
        since: now,
    };
    // Whom an earlier try has moved still needs a place.
    let moved = known.and_then(|it| it.drain.as_ref()).map(|it| it.moved.clone());
    let drain = (replacement.phase == Phase::Draining || moved.is_some())
        .then(|| DrainRecord { moved: moved.unwrap_or_default(), ..DrainRecord::default() });
    let recorded = Recorded {
        name: claim.uid.clone(),
        revision: known.and_then(|it| it.revision.clone()),
        pool: claim.pool.clone(),
        replacement,
        grant: Some((granted.epoch, granted.since)),
        drain,
        told: told(table, &start.node, now),
    };
    Some(Begun { recorded, granted, claims })
}

/// What the policy says now counts, and not what it said at the last try.
fn reopened(again: &Replacement, order: Order, at_limit: AtLimit) -> Replacement {
    let names = again.successors.iter().map(|it| it.claim.clone()).collect();
    let begun =
        Replacement::begin(again.old.clone(), again.cause, order, at_limit, names, again.since);
    Replacement { tries: again.tries, failures: again.failures, ..begun }
}

fn told(table: &Table<'_>, node: &str, now: Timestamp) -> Told {
    let running = table.readings.running().get(node);
    let drift = table.readings.drifts().get(node);
    let divergences: Vec<Divergence> =
        drift.into_iter().flat_map(Drift::divergences).cloned().collect();
    let image = divergences.iter().find_map(|it| {
        if let Divergence::Image { to, .. } = it { Some(to.id.clone()) } else { None }
    });
    Told {
        lasting: divergences.iter().filter_map(Lasting::of).collect(),
        divergences,
        running_image: running.and_then(|it| it.image.as_ref()).map(|it| it.id.clone()),
        wanted_image: image,
        started_at: Some(now),
        waits_for: None,
    }
}

/// Ended ones that nobody needs: old ones, and the oldest where there are too many. One that failed is
/// kept while its claim is there: it says when to try again. So is one whose pods are not ready elsewhere yet: it says from
/// where they came.
pub(crate) fn to_forget(memory: &Memory, sight: &Sight<'_>) -> Vec<Recorded> {
    let mut ended: Vec<&Recorded> = sight
        .records
        .replacements
        .values()
        .filter(|it| it.replacement.phase.ended() && it.grant.is_none())
        .filter(|it| {
            let old = &it.replacement.old;
            !it.replacement.phase.failed() || sight.claim(&old.claim, &old.claim_uid).is_none()
        })
        .collect();
    ended.sort_by_key(|it| (it.replacement.since, &it.name));
    let too_many = ended.len().saturating_sub(ENDED_KEPT_MAX);
    let old = |it: &Recorded| after(it.replacement.since, ENDED_KEPT_FOR) <= sight.now;
    let mut forgotten =
        ended.iter().enumerate().filter(|(at, it)| *at < too_many || old(it)).peekable();
    if forgotten.peek().is_none() {
        return Vec::new();
    }
    let unsettled = homes::unsettled(sight);
    // While nobody has followed one that went first, that holds the others of its pool.
    let last = sight.view.pools.values().filter_map(|it| pools::unfollowed(memory, sight, it));
    let unfollowed: BTreeSet<&str> = last.map(|it| it.name.as_str()).collect();
    let needed = |it: &Recorded| {
        unfollowed.contains(it.name.as_str())
            || unsettled.iter().any(|(_, node)| *node == it.replacement.old.node)
    };
    forgotten.filter(|(_, it)| !needed(it)).map(|(_, it)| (*it).clone()).collect()
}
