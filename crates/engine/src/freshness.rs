//! How old may be what we rest on?
//!
//! Watches say nothing when they are dead. So each kind carries the time when it was last heard of, and
//! nobody is disturbed while a kind that speaks for it has been silent for too long: a successor may have
//! died since. Quiet kinds are heard of by bookmarks.

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::seen::{Kind, View};

/// An API server sends a bookmark about every minute, to watches of which nothing else can be told.
pub(crate) const HEARD_WITHIN: SignedDuration = SignedDuration::from_secs(90);

/// What says that a node may be disturbed: who is on it, and who takes them.
pub(crate) const DISTURBING: [Kind; 3] = [Kind::Claim, Kind::Node, Kind::Pod];

/// What says that a machine may be launched, and from which image.
pub(crate) const LAUNCHING: [Kind; 4] = [Kind::Claim, Kind::Class, Kind::Policy, Kind::Quarantine];

/// The first of these kinds that has not been heard of for too long, if one has not.
///
/// By the clock that the watches are heard by, or by the kind that was heard of last: whoever decides has
/// the lesser of two clocks, and that one may be behind the watches'.
pub(crate) fn silent(view: &View, kinds: &[Kind], now: Timestamp) -> Option<String> {
    let newest = view.fresh.values().copied().max().map_or(now, |it| it.max(now));
    kinds.iter().find_map(|kind| {
        let Some(heard) = view.fresh.get(kind) else {
            return Some(format!("{} was never listed", kind.as_str()));
        };
        let silent = newest.duration_since(*heard);
        (silent > HEARD_WITHIN)
            .then(|| format!("no watch has told of {} for {} s", kind.as_str(), silent.as_secs()))
    })
}
