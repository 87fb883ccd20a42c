//! What is granted, by whom, and does that agree with the records?
//!
//! One compare-and-swap for all grants of a turn, so two leaders at once cannot exceed a budget: one of
//! them loses, reads again and decides again. A grant is given back only after its record says so, and one
//! without a record is given back after a while: nothing is done without a record.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{Closed, GrantKind};
use nodemolt_core::replace::{Because, Cause, Old, Phase, Replacement};
use sha2::{Digest, Sha256};

use crate::decide::starting::Begun;
use crate::memory::after;
use crate::port::Records;
use crate::record::{Granted, Ledger, Lock, Pause, Recorded};

/// A record that was being made when somebody died may still come.
const RECORD_COMES_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// What has ended is kept at least so long, and longer where a cooldown is.
const CLOSED_KEPT_FOR: SignedDuration = SignedDuration::from_hours(1);
const CLOSED_KEPT_MAX: usize = 1000;

/// The schema's limit.
const GRANTS_MAX: usize = 2000;

/// The ledger of a new leader: with the next epoch, and rebuilt from the records if it was lost. A ledger
/// without a status is lost, too: whoever made it died before its second write; and so is one that is
/// older than a record. What held in the one that we read last holds on: whoever deletes the ledger has not said that
/// anything may go on.
pub(crate) fn raised(
    records: &Records,
    known: Option<u64>,
    (paused, locked): (Option<&Pause>, Option<&Lock>),
    class_of_pool: impl Fn(Option<&str>) -> String,
    now: Timestamp,
) -> Ledger {
    let mut ledger = records.ledger.clone();
    let recorded = records.replacements.values().filter_map(|it| it.grant).map(|(epoch, _)| epoch);
    let recorded = recorded.max().unwrap_or(0);
    let lost = ledger.revision.is_none() || ledger.epoch == 0 || ledger.epoch < recorded;
    let newest = recorded.max(known.unwrap_or(0)).max(ledger.epoch);
    ledger.epoch = newest.saturating_add(1);
    // How far a ledger had counted that is lost may be known to nobody, and who led by it may still be at work. Time
    // counts faster than leaders do.
    if lost && !(records.replacements.is_empty() && records.unreadable.is_empty()) {
        ledger.epoch = ledger.epoch.max(u64::try_from(now.as_second()).unwrap_or(0));
    }
    if lost {
        let open = records.replacements.values().filter(|it| !it.replacement.phase.ended());
        for (it, granted) in open.filter_map(|it| Some((it, granted(it)?))) {
            ledger.grants.entry(it.name.clone()).or_insert(granted);
        }
        // And what has ended: a class rests, whoever lost the ledger.
        let ended = records.replacements.values().filter(|it| it.replacement.phase.ended());
        let ended = ended.map(|it| closed(it, class_of_pool(it.pool.as_deref())));
        let missing = |it: &Closed| {
            let same = |other: &Closed| other.node == it.node && other.since == it.since;
            !it.class.is_empty() && !ledger.closed.iter().any(same)
        };
        let missing: Vec<Closed> = ended.filter(missing).collect();
        ledger.closed.extend(missing);
        ledger.closed.sort_by(|a, b| (a.ended_at, &a.node).cmp(&(b.ended_at, &b.node)));
        // What they held is lost with it, so nothing may be granted beside them before a person has looked.
        let hidden: Vec<&str> = records.unreadable.keys().map(String::as_str).collect();
        let hidden = (!hidden.is_empty()).then(|| {
            let hidden = hidden.join(", ");
            format!("the ledger was lost while Replacements cannot be read: {hidden}")
        });
        let paused = paused.filter(|_| ledger.pause.is_none()).map(|it| {
            let by = it.by.as_ref().map(|it| format!(" by {it}")).unwrap_or_default();
            format!(
                "the ledger was deleted, and with it the pause{by}: {}; `nodemolt pause` before \
                 `nodemolt unlock` keeps it",
                it.reason
            )
        });
        let locked = locked.map(|it| it.reason.clone());
        let reasons: Vec<String> = locked.into_iter().chain(hidden).chain(paused).collect();
        if !reasons.is_empty() && ledger.locked().is_none() {
            let reason = reasons.join("; ");
            ledger.lock = Some(Lock { id: short(&reason), reason, since: now });
        }
    }
    ledger
}

/// Grants that somebody took out of the ledger while the records go on with them. They are written again, and count
/// until then.
pub(crate) fn lost(records: &Records) -> impl Iterator<Item = Granted> {
    let lost = records.replacements.values().filter(|it| it.grant_lost(&records.ledger));
    lost.filter_map(granted)
}

/// The grant that a record says it has.
fn granted(record: &Recorded) -> Option<Granted> {
    record.grant.map(|(epoch, since)| of_record(record, epoch, since))
}

/// The grant that a record had until it ended.
fn closed(record: &Recorded, class: String) -> Closed {
    let ended_at = record.replacement.since;
    let since = record.told.started_at.unwrap_or(ended_at);
    Closed { class, node: record.replacement.old.node.clone(), since, ended_at }
}

fn of_record(record: &Recorded, epoch: u64, since: Timestamp) -> Granted {
    Granted {
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
    }
}

/// What a turn may write.
pub(crate) struct Settled {
    pub(crate) ledger: Ledger,
    /// Of those that begin, by name, who is granted.
    pub(crate) granted: BTreeSet<String>,
}

/// The ledger after a turn's records are written: what has ended is given back, what begins is granted.
/// `there` tells whether the old claim of a record is seen.
pub(crate) fn settled(
    records: &Records,
    begun: &[Begun],
    cooldown_max: SignedDuration,
    class_of_pool: impl Fn(Option<&str>) -> String,
    there: impl Fn(&Old) -> bool,
    now: Timestamp,
) -> Settled {
    let mut ledger = records.ledger.clone();
    let holds = |holder: &String, grant: &Granted| {
        if records.unreadable.contains_key(holder) {
            return true;
        }
        match records.replacements.get(holder) {
            Some(it) => !it.replacement.phase.ended() && (it.grant.is_some() || without_status(it)),
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
    ledger.lock = lock(records, &contradictions(records, &there), now);
    let holds = |it: &&Recorded| goes_anyway(it, &there) || it.grant_lost(&records.ledger);
    for it in records.replacements.values().filter(holds) {
        // It is we who say so now, whoever granted it first.
        let since = it.grant.map_or(now, |(_, since)| since);
        let granted = of_record(it, ledger.epoch, since);
        if ledger.grants.len() < GRANTS_MAX {
            ledger.grants.entry(it.name.clone()).or_insert(granted);
        }
    }
    // Who goes anyway comes first. Who locks itself grants nothing voluntary in the same breath.
    let locked = ledger.locked().is_some();
    let voluntary = |it: &&Begun| it.recorded.replacement.cause.voluntary();
    let (ours, theirs): (Vec<&Begun>, Vec<&Begun>) = begun.iter().partition(voluntary);
    let mut granted = BTreeSet::new();
    for it in theirs.into_iter().chain(ours.into_iter().filter(|_| !locked)) {
        let name = &it.recorded.name;
        if ledger.grants.len() < GRANTS_MAX || ledger.grants.contains_key(name) {
            ledger.grants.insert(name.clone(), it.granted.clone());
            granted.insert(name.clone());
        }
    }
    Settled { ledger, granted }
}

/// Whether its first status was never written: such a one says nothing about its grant.
fn without_status(record: &Recorded) -> bool {
    let Replacement { phase, because, .. } = &record.replacement;
    let first = matches!(phase, Phase::Launching | Phase::Draining);
    record.grant.is_none() && first && *because == Because::Begun
}

/// What goes without us needs its grant, or nobody drains it.
fn goes_anyway(record: &Recorded, there: impl Fn(&Old) -> bool) -> bool {
    let Replacement { phase, cause, old, .. } = &record.replacement;
    !cause.voluntary() && !phase.ended() && there(old)
}

/// The lock that should stand. One holds as it is until a person has released it; what they have looked
/// at locks nobody again; and what is released and contradicts nothing any more is taken away.
fn lock(records: &Records, found: &[String], now: Timestamp) -> Option<Lock> {
    let standing = records.ledger.lock.clone();
    if records.ledger.locked().is_some() {
        return standing;
    }
    if found.is_empty() {
        return None;
    }
    let looked_at = |it: &String| standing.as_ref().is_some_and(|lock| lock.reason.contains(it));
    let reason = found.join("; ");
    let id = short(&reason);
    if found.iter().all(looked_at) || records.ledger.released_lock.as_ref() == Some(&id) {
        return standing;
    }
    Some(Lock { id, reason, since: now })
}

fn short(text: &str) -> String {
    let mut short = String::new();
    for byte in Sha256::digest(text).iter().take(6) {
        let _ = write!(short, "{byte:02x}");
    }
    short
}

/// What our own records say that cannot be, all of it. What others can break is none of these.
fn contradictions(records: &Records, there: impl Fn(&Old) -> bool) -> Vec<String> {
    let ledger = &records.ledger;
    let future = |what: &str, name: &str, epoch: u64| {
        (epoch > ledger.epoch).then(|| {
            format!(
                "{what} {name} was granted in epoch {epoch}, and the ledger is in {}",
                ledger.epoch
            )
        })
    };
    let grants = ledger.grants.iter();
    let mut found: Vec<String> =
        grants.filter_map(|(holder, it)| future("grant", holder, it.epoch)).collect();
    let mut nodes: BTreeMap<&str, &str> = BTreeMap::new();
    let mut successors: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, it) in &records.replacements {
        let replacement = &it.replacement;
        if replacement.phase.ended() {
            continue;
        }
        found.extend(it.grant.and_then(|(epoch, _)| future("Replacement", name, epoch)));
        if *name != replacement.old.claim_uid {
            found.push(format!(
                "Replacement {name} is about claim {} with another UID",
                replacement.old.claim
            ));
        }
        // A name is given again: one whose claim is gone is about a node that is gone, too.
        if there(&replacement.old)
            && let Some(other) = nodes.insert(&replacement.old.node, name)
        {
            let node = &replacement.old.node;
            found.push(format!("Replacements {other} and {name} are both open for node {node}"));
        }
        for successor in &replacement.successors {
            if let Some(other) = successors.insert(&successor.claim, name) {
                let claim = &successor.claim;
                found.push(format!("Replacements {other} and {name} both have successor {claim}"));
            }
        }
    }
    let old: BTreeSet<&str> = records
        .replacements
        .values()
        .filter(|it| !it.replacement.phase.ended() && it.replacement.cause.voluntary())
        .map(|it| it.replacement.old.claim.as_str())
        .collect();
    let both = successors.iter().filter(|(claim, _)| old.contains(*claim));
    found.extend(
        both.map(|(claim, name)| {
            format!("{claim} is replaced while Replacement {name} counts on it")
        }),
    );
    found
}
