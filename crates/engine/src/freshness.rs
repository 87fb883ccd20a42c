//! How old may be what we rest on?
//!
//! Watches say nothing when they are dead. So each kind carries the time when it was last heard of, and
//! nobody is disturbed while a kind that speaks for it has been silent for too long: a successor may have
//! died since. Quiet kinds are heard of by bookmarks.

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::Unheard;
use nodemolt_core::seen::{Kind, View};

/// An API server sends a bookmark about every minute, to watches of which nothing else can be told.
pub(crate) const HEARD_WITHIN: SignedDuration = SignedDuration::from_secs(90);

/// What says that a node may be disturbed: who is on it, and who takes them.
pub(crate) const DISTURBING: [Kind; 3] = [Kind::Claim, Kind::Node, Kind::Pod];

/// What says that pods may end with their machine: no API server asks their budgets for us.
pub(crate) const ENDING: [Kind; 4] = [Kind::Claim, Kind::Node, Kind::Pod, Kind::Pdb];

/// What says that a node may be granted, and cordoned: how many at once and when, and whom people hold.
pub(crate) const GRANTING: [Kind; 7] = [
    Kind::Claim,
    Kind::Node,
    Kind::Pod,
    Kind::Pdb,
    Kind::DisruptionBudget,
    Kind::Pool,
    Kind::Policy,
];

/// What says that a machine may be launched, and from which image.
pub(crate) const LAUNCHING: [Kind; 4] = [Kind::Claim, Kind::Class, Kind::Policy, Kind::Quarantine];

/// The first of these kinds that has not been heard of for too long, if one has not.
///
/// By the clock that the watches are heard by, or by the kind that was heard of last: whoever decides has
/// the lesser of two clocks, and that one may be behind the watches'.
pub(crate) fn unheard(view: &View, kinds: &[Kind], now: Timestamp) -> Option<Unheard> {
    let newest = newest(view, now);
    let too_long = |since: Timestamp| newest.duration_since(since) > HEARD_WITHIN;
    kinds.iter().find_map(|kind| {
        let since = view.fresh.get(kind).copied();
        since.is_none_or(too_long).then(|| Unheard { kind: kind.as_str(), since })
    })
}

/// The same in words.
pub(crate) fn silent(view: &View, kinds: &[Kind], now: Timestamp) -> Option<String> {
    let Unheard { kind, since } = unheard(view, kinds, now)?;
    Some(match since {
        None => format!("{kind} was never listed"),
        Some(since) => {
            let silent = newest(view, now).duration_since(since).as_secs();
            format!("no watch has told of {kind} for {silent} s")
        }
    })
}

fn newest(view: &View, now: Timestamp) -> Timestamp {
    view.fresh.values().copied().max().map_or(now, |it| it.max(now))
}
