//! Which nodes were decided and cannot be seen yet?
//!
//! `records × drafts × what was asked for a moment ago → claims that no watch has told of`
//!
//! From its decision on a successor, or a node for pods that we moved, is room for pods and counts towards
//! the limits of its pool. Else the next decision, of this turn or of the next, would use the same room
//! again, or launch a second node for the same pods.

use jiff::SignedDuration;
use nodemolt_core::replace::{Phase, SuccessorSeen};

use super::Sight;
use super::going::{Draft, look_at_successor};
use crate::memory::{Memory, after};
use crate::port::NewClaim;
use crate::record::Recorded;

/// A claim that we have made may not be seen for as long as a watch may lag.
pub(crate) const UNSEEN_FOR: SignedDuration = SignedDuration::from_mins(1);

/// Those that nobody needs any more, or that are seen by now.
pub(crate) fn forget(memory: &mut Memory, sight: &Sight<'_>) {
    memory.drafts.retain(|name, _| sight.successors.contains_key(name.as_str()));
    memory.rooms.retain(|name, (_, at)| {
        !sight.view.claims.contains_key(name) && sight.now < after(*at, UNSEEN_FOR)
    });
}

/// What is decided anew, and so is not decided yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anew<'a> {
    Nothing,
    /// The successors of this replacement.
    Replacement(&'a str),
    /// Nodes for pods that we moved, as long as nobody has answered that they were made: what is asked for is
    /// asked for again.
    Rooms,
}

/// All of them, but those that are decided anew.
pub(crate) fn coming(memory: &Memory, sight: &Sight<'_>, anew: Anew<'_>) -> Vec<NewClaim> {
    let unseen = |it: &&NewClaim| !sight.view.claims.contains_key(&it.name);
    let successors = memory.drafts.values().map(Draft::claim);
    let successors = successors.filter(|it| match (anew, it.successor_of.as_deref()) {
        (Anew::Replacement(name), Some(of)) if name == of => false,
        (Anew::Nothing | Anew::Replacement(_) | Anew::Rooms, _) => to_come(memory, sight, it),
    });
    let rooms = memory.rooms.values().map(|(it, _)| it);
    let rooms = rooms.filter(|it| anew != Anew::Rooms || memory.made.contains_key(&it.name));
    successors.chain(rooms).filter(unseen).cloned().collect()
}

/// Whether it counts towards the limits of its pool now: where the old node goes first it takes the place of
/// that, and not before.
pub(crate) fn counts(sight: &Sight<'_>, claim: &NewClaim) -> bool {
    let record = claim.successor_of.as_ref().and_then(|it| sight.records.replacements.get(it));
    let Some(Recorded { replacement, .. }) = record else { return true };
    let old = &replacement.old;
    !replacement.deletes_first() || sight.claim(&old.claim, &old.claim_uid).is_none()
}

/// Whether a successor that is not seen is still to come. One that was there and is not any more has gone.
fn to_come(memory: &Memory, sight: &Sight<'_>, claim: &NewClaim) -> bool {
    // Decided in this turn: it is in no record yet.
    let Some(name) = sight.successors.get(claim.name.as_str()) else { return true };
    let Some(record) = sight.records.replacements.get(*name) else { return true };
    let successor = record.replacement.successors.iter().find(|it| it.claim == claim.name);
    let Some(successor) = successor.filter(|_| record.replacement.phase != Phase::Retreating)
    else {
        return false;
    };
    match look_at_successor(memory, sight, name, successor).1 {
        SuccessorSeen::Unknown | SuccessorSeen::Unasked => true,
        SuccessorSeen::Launching { .. }
        | SuccessorSeen::Launched { .. }
        | SuccessorSeen::Registered { .. }
        | SuccessorSeen::Ready { .. }
        | SuccessorSeen::NotReady { .. }
        | SuccessorSeen::Died { .. }
        | SuccessorSeen::Deleting { .. }
        | SuccessorSeen::Gone => false,
    }
}
