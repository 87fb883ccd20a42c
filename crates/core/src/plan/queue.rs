//! Who is asked first?
//!
//! Who goes anyway; then whom a person asked for; then pools of which no replacement has failed lately; then
//! the oldest wish; then where fewest are under way, by zone; then who is easiest to empty; then the name. Zones fill as nodes
//! start, so the order is found while the plan is made.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::fleet::Stirring;
use super::{Fleet, Node, Wish};
use crate::drain::moving;
use crate::replace::Cause;

/// How urgent, failures of the pool, wished since. Who is equal in this is told apart by zone.
type Rank = (u8, u32, Timestamp);

#[derive(Debug, Clone)]
pub(super) struct Queue<'a> {
    /// For each rank the waiting nodes of each zone, the easiest last.
    ranks: BTreeMap<Rank, BTreeMap<Option<&'a str>, Vec<Entry<'a>>>>,
    /// How many are under way in each zone.
    zones: BTreeMap<Option<&'a str>, usize>,
}

/// With how many pods have to move.
type Entry<'a> = (usize, Stirring<'a>, &'a Wish);

impl<'a> Queue<'a> {
    pub(super) fn new(fleet: &'a Fleet, stirring: &[Stirring<'a>], now: Timestamp) -> Self {
        let mut queue = Self { ranks: BTreeMap::new(), zones: BTreeMap::new() };
        for it in stirring.iter().copied() {
            let node = it.node;
            if node.under_way.is_some() {
                queue.started(node);
            }
            let Some(wish) = &node.wish else { continue };
            let urgency = match wish.cause {
                Cause::Deleted | Cause::Interrupted => 0,
                Cause::Asked => 1,
                Cause::Drift | Cause::Expiry => 2,
            };
            let state = node.member.pool.as_ref().and_then(|it| fleet.pools.get(it));
            let failures = state.filter(|_| urgency == 2).map_or(0, |it| it.failures);
            let zones = queue.ranks.entry((urgency, failures, wish.since)).or_default();
            let known = it.burden.and_then(|it| it.moving);
            let pods = known.unwrap_or_else(|| moving(&node.pods, now).count());
            zones.entry(node.zone.as_deref()).or_default().push((pods, it, wish));
        }
        for entries in queue.ranks.values_mut().flat_map(BTreeMap::values_mut) {
            entries.sort_by_key(|(pods, it, _)| std::cmp::Reverse((*pods, it.name)));
        }
        queue
    }

    pub(super) fn next(&mut self) -> Option<(Stirring<'a>, &'a Wish)> {
        let mut rank = self.ranks.first_entry()?;
        let zones = rank.get_mut();
        let load = |zone: Option<&str>| self.zones.get(&zone).copied().unwrap_or(0);
        let best = zones
            .iter()
            .filter_map(|(zone, entries)| {
                entries.last().map(|it| (load(*zone), it.0, it.1.name, *zone))
            })
            .min()
            .map(|(_, _, _, zone)| zone)?;
        let entries = zones.get_mut(&best)?;
        let (_, stirring, wish) = entries.pop()?;
        if entries.is_empty() {
            zones.remove(&best);
        }
        if zones.is_empty() {
            rank.remove();
        }
        Some((stirring, wish))
    }

    pub(super) fn started(&mut self, node: &'a Node) {
        *self.zones.entry(node.zone.as_deref()).or_default() += 1;
    }
}
