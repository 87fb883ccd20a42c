//! What if there is no machine of its kind, and the old one is gone?
//!
//! A claim says what it may become, and that does not change. So one that was made after the old node's kind, and for which EC2
//! had nothing, gives its place to one that may become whatever the pool and the pods that wait ask for. That
//! is made when the first is gone: never two for one place.

use nodemolt_core::replace::{Replacement, Successor};
use nodemolt_core::seen::{Claim, Pool, Stage};

use crate::claims::parted;
use crate::decide::Sight;
use crate::decide::successors::name_of;
use crate::memory::Memory;

/// Numbers of those that take the place of others begin here: far above all that are made at first.
const WIDENED_FROM: usize = 1000;

/// Puts another into the place of each successor that has nowhere to go. Once: the other one may go anywhere.
pub(super) fn widened(
    memory: &Memory,
    sight: &Sight<'_>,
    record: &str,
    replacement: &mut Replacement,
) {
    let tries = replacement.tries;
    for (at, successor) in replacement.successors.iter_mut().enumerate() {
        let claim = successor.uid.as_ref().and_then(|it| sight.claim(&successor.claim, it));
        let Some(claim) = claim.filter(|it| nowhere(memory, it)) else { continue };
        let pool = claim.pool.as_deref().unwrap_or_default();
        if name_of(pool, record, tries, at) == claim.name {
            let claim = name_of(pool, record, tries, WIDENED_FROM + at);
            *successor = Successor { claim, uid: None };
        }
    }
}

/// Whether a successor of this name is there in the place of another.
pub(super) fn takes_place(
    replacement: &Replacement,
    record: &str,
    name: &str,
    pool: &Pool,
) -> bool {
    let at = replacement.successors.iter().position(|it| it.claim == name);
    at.is_some_and(|at| name_of(&pool.name, record, replacement.tries, WIDENED_FROM + at) == name)
}

/// Whether an attempt of it was proved empty, and nothing is left that it could try now.
fn nowhere(memory: &Memory, claim: &Claim) -> bool {
    let ended = claim.attempt.as_ref().is_some_and(|it| it.ended.is_some());
    let waits = claim.machine.is_none() && claim.deleting_since.is_none();
    ended && waits && memory.claims.nowhere.contains(&claim.uid)
}

/// One that gave its place to another of this replacement, and that is still there.
pub(super) fn makes_way<'a>(
    sight: &Sight<'a>,
    record: &str,
    replacement: &Replacement,
) -> Option<&'a Claim> {
    let Replacement { successors, tries, .. } = replacement;
    let claims = sight.view.claims.values();
    let mut unlisted = claims
        .filter(|it| it.successor_of.as_deref() == Some(record))
        .filter(|it| !successors.iter().any(|listed| listed.claim == it.name))
        .filter(|it| !it.stages.contains_key(&Stage::Initialized) && !parted(sight.view, it));
    unlisted.find(|it| {
        let pool = it.pool.as_deref().unwrap_or_default();
        successors.iter().enumerate().any(|(at, successor)| {
            it.name == name_of(pool, record, *tries, at)
                && successor.claim == name_of(pool, record, *tries, WIDENED_FROM + at)
        })
    })
}
