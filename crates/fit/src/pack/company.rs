//! Who has to follow this pod, and where would they find room?
//!
//! `kind of pod × who is left → room on its node, domains to be shunned`
//!
//! Where the first of a group goes, all must go who have to be near it: on its node, or in its zone. So
//! the first looks for a place where they have room, too. Where some were stranded all the same, the next
//! attempt starts that group elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    measure::Needs,
    state::{Domain, State},
    topology::PoolKey,
};

#[derive(Debug, Default)]
pub(super) struct Company {
    /// What those need who have to be on one node with it.
    pub(super) needs: Needs,
    /// Labels, and their domains where the others would not find a place.
    pub(super) shun: Vec<(usize, usize)>,
}

/// Where groups were started in vain: what counts them, and the domain.
pub(super) type InVain = BTreeSet<(usize, usize)>;

impl State<'_, '_> {
    /// Those who have to follow a pod of this kind, if it is the first of them.
    pub(super) fn company(
        &self,
        kind: usize,
        left: &[Vec<usize>],
        vain: &InVain,
        begun: &Self,
    ) -> Company {
        let mut company = Company::default();
        let mut on_its_node: BTreeSet<usize> = BTreeSet::new();
        for counter in &self.world.kinds[kind].starts {
            let key = self.world.counters.all[*counter].key;
            let from = (*counter, 0)..=(*counter, usize::MAX);
            let total = self.counts[*counter].total;
            if total == begun.counts[*counter].total {
                company.shun.extend(vain.range(from).map(|(_, domain)| (key, *domain)));
            }
            if total > 0 {
                continue;
            }
            // Nobody gives way to those whose turn comes later.
            let turn = self.world.kinds[kind].order;
            let followers = self.world.followers.get(counter).into_iter().flatten().copied();
            let followers = followers.filter(|it| self.world.kinds[*it].order <= turn);
            if self.world.keys[key].fine() {
                on_its_node.extend(followers.filter(|it| self.together(kind, *it)));
            } else {
                let followers: Vec<usize> = followers.collect();
                let cramped = self.cramped(key, kind, &followers, left);
                company.shun.extend(cramped.into_iter().map(|it| (key, it)));
            }
        }
        company.needs = self.needs_of(kind, &on_its_node.into_iter().collect::<Vec<_>>(), left);
        company
    }

    /// In how many domains those are whom a pod of this kind has to be near.
    pub(super) fn begun(&self, kind: usize) -> u64 {
        let near = self.world.kinds[kind].musts.near.iter();
        near.map(|it| self.counts[*it].taken_domains).sum()
    }

    /// Whether both may go to one node, as far as labels and taints are concerned: for who cannot come no room is kept.
    fn together(&self, one: usize, other: usize) -> bool {
        let world = self.world;
        let (first, second) = (&world.kinds[one], &world.kinds[other]);
        let tolerated = [first.tolerance, second.tolerance].map(|it| &world.tolerances[it]);
        let mut sites = world.required[first.required].sites.clone();
        sites.and(&world.required[second.required].sites);
        for it in &tolerated {
            sites.and(&it.sites);
        }
        let launches = |pool: usize| {
            tolerated.iter().all(|it| it.pools.has(pool))
                && !world.ways(one, pool).is_empty()
                && !world.ways(other, pool).is_empty()
        };
        !sites.empty() || (0..world.pools.len()).any(launches)
    }

    /// What all of them need who are left, without the pod itself.
    fn needs_of(&self, kind: usize, followers: &[usize], left: &[Vec<usize>]) -> Needs {
        let mut needs: BTreeMap<usize, i64> = BTreeMap::new();
        for at in followers {
            let others = left[*at].len().saturating_sub(usize::from(*at == kind));
            let others = i64::try_from(others).unwrap_or(i64::MAX);
            for (resource, amount) in &self.world.kinds[*at].needs {
                let sum = needs.entry(*resource).or_default();
                *sum = sum.saturating_add(amount.saturating_mul(others));
            }
        }
        needs.into_iter().filter(|(_, amount)| *amount > 0).collect()
    }

    /// The domains that have less room for the followers than another, if not even room for all.
    fn cramped(
        &self,
        key: usize,
        kind: usize,
        followers: &[usize],
        left: &[Vec<usize>],
    ) -> Vec<usize> {
        let needs = self.needs_of(kind, followers, left);
        if needs.is_empty() {
            return Vec::new();
        }
        let domains = self.world.keys[key].domains.len();
        let mut room = vec![vec![0_i64; needs.len()]; domains];
        let hosts = |site: usize| {
            followers.iter().any(|at| {
                let kind = &self.world.kinds[*at];
                self.world.required[kind.required].sites.has(site)
                    && self.world.tolerances[kind.tolerance].sites.has(site)
            })
        };
        for site in (0..self.world.sites.len()).filter(|it| hosts(*it)) {
            let Domain::In(domain) = self.keys[key].of[site] else { continue };
            for (sum, (resource, _)) in room[domain].iter_mut().zip(&needs) {
                *sum = sum.saturating_add(self.free(site)[*resource].max(0));
            }
        }
        for pool in 0..self.world.pools.len() {
            for domain in self.launched_in(key, pool, followers) {
                room[domain].fill(i64::MAX);
            }
        }
        // In thousandths of what is needed: of which there is least.
        let share = |room: &Vec<i64>| {
            let each = room.iter().zip(&needs).map(|(room, (_, need))| {
                i128::from(*room).saturating_mul(1000) / i128::from(*need).max(1)
            });
            each.min().unwrap_or(0).min(1000)
        };
        let shares: Vec<i128> = room.iter().map(share).collect();
        let most = shares.iter().copied().max().unwrap_or(0);
        (0..domains).filter(|it| shares[*it] < most).collect()
    }

    /// The domains in which the pool could launch a node for one of them.
    fn launched_in(&self, key: usize, pool: usize, followers: &[usize]) -> Vec<usize> {
        let exhausted = |it: &super::template::Left| it.nodes.is_some_and(|it| it < 1);
        let tolerates = |at: &&usize| {
            let tolerance = self.world.kinds[**at].tolerance;
            self.world.tolerances[tolerance].pools.has(pool)
        };
        if matches!(self.world.keys[key].by_pool[pool], PoolKey::Absent)
            || self.left[pool].as_ref().is_some_and(exhausted)
        {
            return Vec::new();
        }
        let mut domains: Vec<usize> = Vec::new();
        for at in followers.iter().filter(tolerates) {
            for way in self.world.ways(*at, pool) {
                domains.extend(self.options(key, pool, way));
            }
        }
        domains
    }

    /// Where those were started whom this kind had to follow and could not. Of nodes that exist: a new one is made
    /// to measure.
    pub(super) fn started_in_vain(&self, kind: usize, begun: &Self) -> InVain {
        let mut vain = InVain::new();
        for counter in &self.world.kinds[kind].musts.near {
            let known = self.world.keys[self.world.counters.all[*counter].key].domains.len();
            let begun = &begun.counts[*counter];
            let count = &self.counts[*counter];
            let started = (0..known).filter(|it| count.of(*it) > 0 && begun.of(*it) == 0);
            vain.extend(started.map(|domain| (*counter, domain)));
        }
        vain
    }
}
