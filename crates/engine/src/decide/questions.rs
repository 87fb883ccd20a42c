//! What has to be asked of EC2 now?
//!
//! Everything by a slow clock: a world in sync costs a handful of calls in five minutes, however many
//! nodes there are. While something is under way machines are asked for more often.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use nodemolt_core::catalog::Query;

use super::{Sight, Wake};
use crate::act::Question;
use crate::memory::Memory;

/// A release every few days, and a gate that counts in days: five minutes are soon enough. Karpenter's.
pub(crate) const IMAGES_EVERY: SignedDuration = SignedDuration::from_mins(5);

/// Somebody waits for a machine to come or to go, and two lists prove that one is gone.
pub(crate) const MACHINES_BUSY_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// Only to find what nobody asked for, and what was changed behind our back.
pub(crate) const MACHINES_CALM_EVERY: SignedDuration = SignedDuration::from_mins(5);

/// Types appear a few times a year, and prices change by the day.
pub(crate) const OFFERED_EVERY: SignedDuration = SignedDuration::from_hours(1);

/// People change subnets and groups by hand, and wait for what comes of it. Free addresses change too.
pub(crate) const NETWORK_EVERY: SignedDuration = SignedDuration::from_mins(5);

pub(crate) fn due(
    memory: &mut Memory,
    sight: &Sight<'_>,
    queries: &BTreeSet<Query>,
    wake: &mut Wake,
) -> Vec<Question> {
    let now = sight.now;
    let mut due = Vec::new();
    // Most are not due: those are not even written down.
    let mut ask = |question: &dyn Fn() -> Question, at: jiff::Timestamp| {
        if at <= now {
            due.push(question());
        } else {
            wake.at(Some(at));
        }
    };
    for query in queries {
        let at = memory.images.due_at(query, IMAGES_EVERY);
        ask(&|| Question::Images(query.clone()), at);
    }
    let networks: BTreeSet<_> = sight.classes().map(|(_, it)| &it.network).collect();
    memory.networks.retain(|it, _| networks.contains(it));
    for network in networks {
        let at = memory
            .networks
            .get(network)
            .map_or(jiff::Timestamp::MIN, |it| it.due_at(NETWORK_EVERY));
        ask(&|| Question::Network(network.clone()), at);
    }
    if sight.classes().next().is_some() {
        ask(&|| Question::Offered, memory.offered.due_at(OFFERED_EVERY));
    }
    // A cluster that has none of our classes has none of our machines either, but it may have had.
    if sight.classes().next().is_some() || !sight.view.claims.is_empty() {
        let every = if busy(sight) { MACHINES_BUSY_EVERY } else { MACHINES_CALM_EVERY };
        ask(&|| Question::Machines, memory.machines.due_at(every));
    }
    due
}

fn busy(sight: &Sight<'_>) -> bool {
    sight.records.replacements.values().any(|it| !it.replacement.phase.ended())
        || sight.roll.unsettled(sight.view).next().is_some()
}
