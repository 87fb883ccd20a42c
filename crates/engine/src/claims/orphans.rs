//! Which machines does no claim stand for?
//!
//! `machines × claims → those to end, or a report`
//!
//! A machine that our claims do not know may be one that nobody wants, or the claims may be wrong: a list
//! that is late, an object that could not be read, a cluster that was restored from yesterday. So it has
//! to be old enough, in two complete lists, against claims that are current; and if they are many, a
//! person looks first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::claim::LISTS_APART;
use nodemolt_core::seen::{Claim, Kind, View};

use super::Known;
use super::act::{ClaimAct, Deed, token};
use super::look::Eyes;
use super::state::{CLAIM_TAG, CLAIM_UID_TAG};
use crate::port::Machine;

/// No machine is an orphan before: its claim's record may be on its way.
pub const ORPHAN_AGE: SignedDuration = SignedDuration::from_mins(5);

/// Answers that are older say nothing about now.
const CURRENT_FOR: SignedDuration = SignedDuration::from_mins(2);

/// So many are removed without asking; of a large fleet, this share.
const AT_ONCE: usize = 2;
const AT_ONCE_PERCENT: usize = 5;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Orphans {
    pub remove: Vec<ClaimAct>,
    /// More than may be removed at once: by machine, and why each is one. A person has to look.
    pub too_many: BTreeMap<String, String>,
}

pub(super) fn find(view: &View, known: &Known<'_>, eyes: &Eyes<'_>, now: Timestamp) -> Orphans {
    let mut orphans = Orphans::default();
    let Some((machines, last)) = known.machines else { return orphans };
    let Some((_, first)) = known.machines_before else { return orphans };
    let Some(claims) = view.fresh.get(&Kind::Claim).copied() else { return orphans };
    let current = |at: Timestamp| now.duration_since(at) <= CURRENT_FOR;
    let apart = last.duration_since(first) >= LISTS_APART;
    // Claims must be at least as new as the list that has the machine.
    if !current(last) || !current(claims) || !apart || claims < first {
        return orphans;
    }
    let by_uid: BTreeMap<&str, &Claim> =
        view.claims.values().map(|it| (it.uid.as_str(), it)).collect();
    let unreadable: BTreeSet<&str> = view
        .unreadable
        .keys()
        .filter(|it| it.kind == Kind::Claim)
        .map(|it| it.name.as_str())
        .collect();
    let live: Vec<&Machine> = machines
        .values()
        .map(Arc::as_ref)
        .filter(|it| it.state.live() && it.tags.contains_key(CLAIM_UID_TAG))
        .collect();
    let mut found: Vec<(&Machine, String)> = Vec::new();
    for machine in &live {
        let young = now.duration_since(machine.launched_at) < ORPHAN_AGE;
        let name = machine.tags.get(CLAIM_TAG).map_or("", String::as_str);
        if young || unreadable.contains(name) || !eyes.in_both(&machine.id) {
            continue;
        }
        let uid = machine.tags.get(CLAIM_UID_TAG).map_or("", String::as_str);
        let why = match by_uid.get(uid) {
            None => Some(format!("no NodeClaim has the UID {uid}; it was made for `{name}`")),
            Some(claim) => surplus(claim, machine),
        };
        found.extend(why.map(|it| (*machine, it)));
    }
    let share = live.len().saturating_mul(AT_ONCE_PERCENT) / 100;
    if found.len() > share.max(AT_ONCE) {
        let told = found.into_iter().map(|(machine, why)| (machine.id.0.clone(), why));
        orphans.too_many = told.collect();
        return orphans;
    }
    let remove = found
        .into_iter()
        .filter(|(machine, _)| known.memory.rests_until(&machine.id.0, now).is_none());
    orphans.remove = remove.map(|(machine, because)| act(machine, because)).collect();
    orphans
}

/// A second machine for one claim: made by a call that was answered after its attempt was proved empty.
fn surplus(claim: &Claim, machine: &Machine) -> Option<String> {
    let has = claim.machine.as_ref()?;
    let this = claim.attempt.as_ref().map(|it| token(&claim.uid, it.number));
    // What was written down may be older than the attempt that it is from.
    let other = *has != machine.id && (machine.token.is_none() || machine.token != this);
    other.then(|| format!("NodeClaim {} has machine {}", claim.name, has.0))
}

fn act(machine: &Machine, because: String) -> ClaimAct {
    ClaimAct {
        key: machine.id.0.clone(),
        claim: None,
        deed: Deed::RemoveOrphan { machine: machine.id.clone(), because },
    }
}
