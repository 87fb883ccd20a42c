//! Who could not be bound where it was placed, once all new nodes are there?
//!
//! `state × where it began → per kind, how many`
//!
//! A domain exists as soon as a node does. Who was placed by what is counted in the domains that there were may find an empty one
//! when it comes: a successor stands before anybody moves to it, or to anywhere else. Only who is pending, goes to a node that
//! exists and needs nobody on a new one for that is bound before.

use std::collections::BTreeSet;

use super::state::{Domain, Stage, State, Step};

/// Domains that will be there: from whose turn on, what is counted in them, and the domain.
pub(super) type Foreseen = BTreeSet<(u8, usize, usize)>;

/// The turn of those that are pending.
pub(super) const PENDING: u8 = 0;

impl State<'_, '_> {
    /// The domains in which new nodes are.
    pub(super) fn foreseen(&self) -> Foreseen {
        let mut foreseen = Foreseen::new();
        for (turn, place) in self.opened_for() {
            let met = self.met_by(place).into_iter();
            foreseen.extend(met.map(|(counter, domain)| (turn, counter, domain)));
        }
        foreseen
    }

    /// New nodes, and for whose turn they were opened: earlier ones do not wait for them.
    fn opened_for(&self) -> impl Iterator<Item = (u8, usize)> {
        let sites = self.world.sites.len();
        let turn = |pods: &[usize]| pods.iter().map(|it| self.world.pods[*it].order).min();
        let nodes = self.open.iter().enumerate();
        nodes.filter_map(move |(at, it)| Some((turn(&it.pods)?, sites + at)))
    }

    /// Per kind, how many could not be bound. Nothing is looked at where no domain came too late for anybody, and nobody is bound
    /// before who was placed after.
    pub(super) fn unsettled(&self, begin: &Self) -> Vec<usize> {
        let world = self.world;
        let mut unsettled = vec![0; world.kinds.len()];
        if !self.late && !self.overtaken() {
            return unsettled;
        }
        let mut kinds = vec![0; world.pods.len()];
        for (at, kind) in world.kinds.iter().enumerate() {
            kind.pods.iter().for_each(|it| kinds[*it] = at);
        }
        let turn = |it: &Step| world.pods[it.pod].order;
        let turns: BTreeSet<u8> = self.placed.iter().map(turn).collect();
        let mut again = self.counting_from(begin);
        for now in turns {
            let mut left: Vec<&Step> = self.placed.iter().filter(|it| turn(it) == now).collect();
            if now == PENDING {
                // No new node is there yet, nor anybody who goes there.
                let exists = |it: &Step| it.place < world.sites.len();
                again
                    .bind(&mut left, &kinds, |state, kind, it| exists(it) && state.binds(kind, it));
            }
            for (_, place) in self.opened_for().filter(|(turn, _)| *turn == now) {
                for (counter, domain) in self.met_by(place) {
                    again.foresee(counter, domain);
                }
            }
            again.bind(&mut left, &kinds, Self::binds);
            for it in left {
                unsettled[kinds[it.pod]] += 1;
                again.count_in(kinds[it.pod], it.place);
            }
        }
        unsettled
    }

    /// Binds whoever can be. Who comes levels a spread for others: go round until nobody comes any more.
    fn bind(
        &mut self,
        left: &mut Vec<&Step>,
        kinds: &[usize],
        possible: impl Fn(&Self, usize, &Step) -> bool,
    ) {
        loop {
            let before = left.len();
            left.retain(|it| {
                let kind = kinds[it.pod];
                let bound = possible(self, kind, it);
                if bound {
                    self.count_in(kind, it.place);
                }
                !bound
            });
            if left.len() == before {
                break;
            }
        }
    }

    /// Whether somebody who is pending was placed on a node that exists after another on a new one: he is bound before.
    fn overtaken(&self) -> bool {
        let sites = self.world.sites.len();
        let pending = |it: &&Step| self.world.pods[it.pod].order == PENDING;
        let mut steps = self.placed.iter().filter(pending).skip_while(|it| it.place < sites);
        steps.any(|it| it.place < sites)
    }

    fn binds(&self, kind: usize, step: &Step) -> bool {
        self.level(kind, step) && self.accompanied(kind, step)
    }

    /// Whether all its spreads allow one more there.
    fn level(&self, kind: usize, step: &Step) -> bool {
        let world = self.world;
        world.kinds[kind].musts.spreads.iter().all(|check| {
            let key = world.counters.all[check.counter].key;
            let Domain::In(domain) = self.keys[key].of[step.place] else { return true };
            let there = self.counts[check.counter].of(domain);
            self.limit(check, Stage::Real).is_some_and(|limit| there <= limit)
        })
    }

    /// Whether those are there whom it must be near.
    fn accompanied(&self, kind: usize, step: &Step) -> bool {
        let checks = &self.world.kinds[kind].musts;
        // It may have come along with the node.
        let brought =
            |pool: usize| self.world.kinds[kind].brings.get(pool).is_some_and(|it| !it.is_empty());
        checks.beside
            || self.opened(step.place).is_some_and(|it| brought(it.pool))
            || self.first_of_its_own(checks)
            || checks.near.iter().all(|it| {
                let key = self.world.counters.all[*it].key;
                let Domain::In(domain) = self.keys[key].of[step.place] else { return false };
                self.counts[*it].of(domain) > 0
            })
    }
}
