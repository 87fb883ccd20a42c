//! Who could not be bound where it was placed, once all new nodes are there?
//!
//! `state × where it began → per kind, how many`
//!
//! A domain exists as soon as a node does. Who was placed by what is counted in the domains that there were may find an empty one
//! when it comes: a successor stands before anybody moves to it, or to anywhere else. Only who is pending and goes to a node that
//! exists is bound before.

use std::collections::BTreeSet;

use super::state::{Domain, Stage, State, Step};

/// Domains that will be there: from whose turn on, what is counted in them, and the domain.
pub(super) type Foreseen = BTreeSet<(u8, usize, usize)>;

/// The turn of those that are pending.
const PENDING: u8 = 0;

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

    /// Per kind, how many could not be bound. Nothing is looked at where no domain came too late for anybody.
    pub(super) fn unsettled(&self, begin: &Self) -> Vec<usize> {
        let world = self.world;
        let mut unsettled = vec![0; world.kinds.len()];
        if !self.late {
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
            for (_, place) in self.opened_for().filter(|(turn, _)| *turn == now) {
                for (counter, domain) in self.met_by(place) {
                    again.foresee(counter, domain);
                }
            }
            let mut left: Vec<&Step> = self.placed.iter().filter(|it| turn(it) == now).collect();
            // Who comes levels a spread for others: go round until nobody comes any more.
            loop {
                let before = left.len();
                left.retain(|it| {
                    let bound = again.level(kinds[it.pod], it);
                    if bound {
                        again.count_in(kinds[it.pod], it.place);
                    }
                    !bound
                });
                if left.len() == before {
                    break;
                }
            }
            for it in left {
                unsettled[kinds[it.pod]] += 1;
                again.count_in(kinds[it.pod], it.place);
            }
        }
        unsettled
    }

    /// Whether all its spreads allow one more there.
    fn level(&self, kind: usize, step: &Step) -> bool {
        let world = self.world;
        if world.pods[step.pod].order == PENDING && step.place < world.sites.len() {
            return true;
        }
        world.kinds[kind].musts.spreads.iter().all(|check| {
            let key = world.counters.all[check.counter].key;
            let Domain::In(domain) = self.keys[key].of[step.place] else { return true };
            let there = self.counts[check.counter].of(domain);
            self.limit(check, Stage::Real).is_some_and(|limit| there <= limit)
        })
    }
}
