//! How many pods can be placed at all? Every way is tried.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use nodemolt_fit::pod::Pod;

use crate::check::{Standing, admits, cordoned, launched, standing};
use crate::worlds::World;

/// Beyond these nobody waits for the answer.
const WAYS_MAX: usize = 60_000;

struct Search<'a> {
    pods: Vec<&'a Pod>,
    /// Nodes that exist first.
    places: Vec<Standing<'a>>,
    existing: usize,
    /// Nodes that are drained. Nobody goes there, and they are there to be spread over.
    leaving: Vec<Standing<'a>>,
    /// The pool of each place that does not exist, and how much CPU it takes of it.
    pools: Vec<(usize, i128)>,
    left: Vec<(Option<i128>, Option<i128>)>,
    seen: BTreeSet<Vec<Option<usize>>>,
    /// Of each pod, whose turn it is: the more important first.
    rank: Vec<usize>,
    /// By rank, how many have a place.
    best: Vec<usize>,
}

/// The most pods that can be placed, one after the other, each where the scheduler would have it
/// then. `None`: too many ways.
pub(crate) fn most(world: &World) -> Option<usize> {
    searched(world, |_| 0).map(|it| it.iter().sum())
}

/// By priority, the highest first: the most that can be placed of those, and then of the others. `None`: too many ways.
pub(crate) fn most_by_priority(world: &World) -> Option<Vec<usize>> {
    let ranks: BTreeSet<_> = world.pods.iter().map(|it| Reverse(it.demand.priority)).collect();
    let rank = |pod: &Pod| ranks.iter().position(|it| it.0 == pod.demand.priority).unwrap();
    searched(world, rank)
}

fn searched(world: &World, rank: impl Fn(&Pod) -> usize) -> Option<Vec<usize>> {
    let mut places: Vec<Standing<'_>> =
        world.nodes.iter().filter(|it| !it.leaving).map(standing).collect();
    let leaving = world.nodes.iter().filter(|it| it.leaving).map(cordoned).collect();
    let existing = places.len();
    let mut pools = Vec::new();
    let mut left = Vec::new();
    for (at, pool) in world.pools.iter().enumerate() {
        let rest = |name: &str| {
            let used = pool.used.get(name).copied().unwrap_or_default();
            pool.limits.get(name).map(|it| it.saturating_sub(used).ceil_millis())
        };
        left.push((rest("cpu"), rest("nodes").map(|it| it / 1000)));
        // What forbids single machines is left to the other tests.
        let reserved =
            pool.machines.iter().flat_map(|it| &it.offerings).any(|it| it.remaining.is_some());
        if reserved || !pool.requirements.is_empty() {
            return None;
        }
        for machine in pool.machines.iter() {
            let mut zones = BTreeSet::new();
            for offering in machine.offerings.iter().filter(|it| it.available) {
                // Nobody in these worlds asks how a machine was bought.
                if !zones.insert(offering.labels.get("topology.kubernetes.io/zone")) {
                    continue;
                }
                for copy in 0..world.pods.len().min(3) {
                    let name = format!("{}-{}-{}-{copy}", pool.name, machine.name, zones.len());
                    places.push(launched(pool, machine, offering, &name, &BTreeMap::new()));
                    pools.push((at, machine.capacity["cpu"].ceil_millis()));
                }
            }
        }
    }
    let placeable = |it: &&Pod| it.demand.gates.is_empty() && it.demand.unmodelled.is_empty();
    let pods: Vec<&Pod> = world.pods.iter().filter(placeable).collect();
    let start = vec![None; pods.len()];
    let rank: Vec<usize> = pods.iter().map(|it| rank(it)).collect();
    let nobody =
        vec![0; world.pods.iter().map(|it| it.demand.priority).collect::<BTreeSet<_>>().len()];
    let (seen, best) = (BTreeSet::new(), nobody.clone());
    let mut search = Search { pods, places, existing, leaving, pools, left, seen, rank, best };
    search.go_on(&start, &nobody).then_some(search.best)
}

impl Search<'_> {
    /// Whether everything was tried.
    fn go_on(&mut self, homes: &[Option<usize>], placed: &[usize]) -> bool {
        if placed > self.best.as_slice() {
            self.best = placed.to_vec();
        }
        if self.best.iter().sum::<usize>() == self.pods.len() {
            return true;
        }
        if !self.seen.insert(homes.to_vec()) {
            return true;
        }
        if self.seen.len() > WAYS_MAX {
            return false;
        }
        // Only nodes that somebody is on are there.
        let mut numbers = Vec::new();
        let mut standing = Vec::new();
        for (at, place) in self.places.iter().enumerate() {
            let guests: Vec<&Pod> = (0..self.pods.len())
                .filter(|pod| homes[*pod] == Some(at))
                .map(|pod| self.pods[pod])
                .collect();
            if at < self.existing || !guests.is_empty() {
                let mut place = place.clone();
                place.pods.extend(guests);
                numbers.push(at);
                standing.push(place);
            }
        }
        standing.extend(self.leaving.iter().cloned());
        for pod in (0..self.pods.len()).filter(|it| homes[*it].is_none()) {
            for at in 0..self.places.len() {
                let there = numbers.iter().position(|it| *it == at);
                let fine = match there {
                    Some(there) => {
                        admits(&standing, there, self.pods[pod], at >= self.existing).is_ok()
                    }
                    None => {
                        self.affordable(at, &numbers) && {
                            standing.push(self.places[at].clone());
                            let fine = admits(&standing, standing.len() - 1, self.pods[pod], true);
                            standing.pop();
                            fine.is_ok()
                        }
                    }
                };
                if fine {
                    let mut next = homes.to_vec();
                    next[pod] = Some(at);
                    let mut with_it = placed.to_vec();
                    with_it[self.rank[pod]] += 1;
                    if !self.go_on(&next, &with_it) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Whether one more node stays within the limits of its pool.
    fn affordable(&self, at: usize, there: &[usize]) -> bool {
        let (pool, takes) = self.pools[at - self.existing];
        let same = there.iter().filter_map(|it| it.checked_sub(self.existing));
        let same: Vec<i128> =
            same.map(|it| self.pools[it]).filter(|it| it.0 == pool).map(|it| it.1).collect();
        let (cpu, nodes) = self.left[pool];
        cpu.is_none_or(|it| same.iter().sum::<i128>() + takes <= it)
            && nodes.is_none_or(|it| i128::try_from(same.len()).unwrap() < it)
    }
}
