//! What is granted, by whom, and does that agree with the records?
//!
//! One compare-and-swap for all grants of a turn, so two leaders at once cannot exceed a budget: one of
//! them loses, reads again and decides again. A grant is given back only after its record says so, and one
//! without a record is given back after a while: nothing is done without a record.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{Closed, GrantKind};
use nodemolt_core::replace::{Cause, Phase};
use sha2::{Digest, Sha256};

use crate::decide::starting::Begun;
use crate::memory::after;
use crate::port::Records;
use crate::record::{Granted, Ledger, Lock, Recorded};

/// A record that was being made when somebody died may still come.
const RECORD_COMES_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// What has ended is kept at least so long, and longer where a cooldown is.
const CLOSED_KEPT_FOR: SignedDuration = SignedDuration::from_hours(1);
const CLOSED_KEPT_MAX: usize = 1000;

/// The ledger of a new leader: with the next epoch, and rebuilt from the records if it was lost.
pub(crate) fn raised(records: &Records, known: Option<u64>) -> Ledger {
    let mut ledger = records.ledger.clone();
    let recorded = records.replacements.values().filter_map(|it| it.grant).map(|(epoch, _)| epoch);
    let last = recorded.chain(known).max().unwrap_or(0).max(ledger.epoch);
    ledger.epoch = last.saturating_add(1);
    if ledger.revision.is_none() {
        ledger.grants = records
            .replacements
            .values()
            .filter(|it| !it.replacement.phase.ended())
            .filter_map(|it| Some((it.name.clone(), granted(it)?)))
            .collect();
    }
    ledger
}

/// The grant that a record says it has.
fn granted(record: &Recorded) -> Option<Granted> {
    let (epoch, since) = record.grant?;
    Some(Granted {
        node: record.replacement.old.node.clone(),
        pool: record.pool.clone(),
        cpu_millis: None,
        taken_from: BTreeSet::new(),
        kind: match record.replacement.cause {
            Cause::Deleted => GrantKind::Deleted,
            Cause::Interrupted => GrantKind::Interrupted,
            Cause::Drift | Cause::Expiry | Cause::Asked => GrantKind::Replacement,
        },
        epoch,
        since,
    })
}

/// The ledger after a turn's records are written: what has ended is given back, what begins is granted.
pub(crate) fn settled(
    records: &Records,
    begun: &[Begun],
    cooldown_max: SignedDuration,
    class_of_pool: impl Fn(Option<&str>) -> String,
    now: Timestamp,
) -> Ledger {
    let mut ledger = records.ledger.clone();
    let holds = |holder: &String, grant: &Granted| {
        if records.unreadable.contains_key(holder) {
            return true;
        }
        match records.replacements.get(holder) {
            Some(it) => !it.replacement.phase.ended() && it.grant.is_some(),
            None => grant.epoch == ledger.epoch && now < after(grant.since, RECORD_COMES_WITHIN),
        }
    };
    let (kept, ended): (BTreeMap<_, _>, BTreeMap<_, _>) =
        records.ledger.grants.clone().into_iter().partition(|(holder, it)| holds(holder, it));
    ledger.grants = kept;
    // Whose pool is gone has no class whose cooldown it could count for.
    let classed = ended.into_values().map(|it| (class_of_pool(it.pool.as_deref()), it));
    ledger.closed.extend(
        classed.filter(|(class, _)| !class.is_empty()).map(|(class, it)| Closed {
            class,
            node: it.node,
            since: it.since,
            ended_at: now,
        }),
    );
    let kept_for = cooldown_max.max(CLOSED_KEPT_FOR);
    // Only together with something else: that time passes alone is no reason to write.
    let changed = ledger.grants.len() != records.ledger.grants.len() || !begun.is_empty();
    if changed {
        ledger.closed.retain(|it| now < after(it.ended_at, kept_for));
        let too_many = ledger.closed.len().saturating_sub(CLOSED_KEPT_MAX);
        ledger.closed.drain(..too_many);
    }
    for it in records.replacements.values().filter(|it| disturbs(it)) {
        if let Some(granted) = granted(it) {
            // It is we who say so now, whoever granted it first.
            let granted = Granted { epoch: ledger.epoch, ..granted };
            ledger.grants.entry(it.name.clone()).or_insert(granted);
        }
    }
    for it in begun {
        ledger.grants.insert(it.recorded.name.clone(), it.granted.clone());
    }
    ledger.lock = lock(records, now);
    ledger
}

/// What is disturbed already is so, granted or not; the ledger must say it.
fn disturbs(record: &Recorded) -> bool {
    matches!(record.replacement.phase, Phase::Draining | Phase::Terminating)
}

/// The lock that should stand: a new contradiction locks, a person's word releases, and what is released
/// and contradicts nothing any more is taken away.
fn lock(records: &Records, now: Timestamp) -> Option<Lock> {
    let standing = records.ledger.lock.clone();
    let Some(reason) = contradiction(records) else {
        let released = standing.as_ref().map(|it| &it.id) == records.ledger.released_lock.as_ref();
        return standing.filter(|_| !released);
    };
    let id = short(&reason);
    match standing {
        Some(lock) if lock.id == id => Some(lock),
        // A person has looked at this one already.
        standing if records.ledger.released_lock.as_ref() == Some(&id) => standing,
        Some(_) | None => Some(Lock { id, reason, since: now }),
    }
}

fn short(text: &str) -> String {
    let mut short = String::new();
    for byte in Sha256::digest(text).iter().take(6) {
        let _ = write!(short, "{byte:02x}");
    }
    short
}

/// What our own records say that cannot be. What others can break is none of these.
pub(crate) fn contradiction(records: &Records) -> Option<String> {
    let ledger = &records.ledger;
    let future = |what: &str, name: &str, epoch: u64| {
        (epoch > ledger.epoch).then(|| {
            format!(
                "{what} {name} was granted in epoch {epoch}, and the ledger is in {}",
                ledger.epoch
            )
        })
    };
    for (holder, grant) in &ledger.grants {
        if let Some(why) = future("grant", holder, grant.epoch) {
            return Some(why);
        }
    }
    let mut nodes: BTreeMap<&str, &str> = BTreeMap::new();
    let mut successors: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, it) in &records.replacements {
        let replacement = &it.replacement;
        if replacement.phase.ended() {
            continue;
        }
        if let Some(why) = it.grant.and_then(|(epoch, _)| future("Replacement", name, epoch)) {
            return Some(why);
        }
        if *name != replacement.old.claim_uid {
            return Some(format!(
                "Replacement {name} is about claim {} with another UID",
                replacement.old.claim
            ));
        }
        if let Some(other) = nodes.insert(&replacement.old.node, name) {
            let node = &replacement.old.node;
            return Some(format!("Replacements {other} and {name} are both open for node {node}"));
        }
        for successor in &replacement.successors {
            if let Some(other) = successors.insert(&successor.claim, name) {
                let claim = &successor.claim;
                return Some(format!(
                    "Replacements {other} and {name} both have successor {claim}"
                ));
            }
        }
    }
    let old: BTreeSet<&str> = records
        .replacements
        .values()
        .filter(|it| !it.replacement.phase.ended() && it.replacement.cause.voluntary())
        .map(|it| it.replacement.old.claim.as_str())
        .collect();
    let both = successors.iter().find(|(claim, _)| old.contains(*claim));
    both.map(|(claim, name)| format!("{claim} is replaced while Replacement {name} counts on it"))
}
