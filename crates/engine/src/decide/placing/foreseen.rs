//! What would hold those whose turn has not come?
//!
//! `plan × the placement of each alone → the plan, with what it could not know`
//!
//! Packing is dear, so a turn that acts places nobody before its turn. Whoever only looks is told more: that a node starts
//! when others are done is not said of one whose pods have no place then either.

use nodemolt_core::place::Placement;
use nodemolt_core::plan::{Plan, WaitFor, unplaceable};
use nodemolt_core::replace::Order;
use nodemolt_fit::pod::{Pod, PodId};

use super::{Places, Sight, Table, heir, leaving, no_way, voluntary};
use crate::decide::pools;
use crate::memory::Memory;
use crate::picture::Picture;

/// So many nodes are looked at, in the order in which they would be asked: of a large fleet nobody reads all.
const FORESEEN_MAX: usize = 64;

/// So many pending pods are left out one by one, to find the one in whose place another would fit.
const PENDING_MAX: usize = 8;

/// Tells each node that waits what it lacks for its own pods, as if all that are under way were done.
pub(crate) fn foresee(memory: &mut Memory, sight: &Sight<'_>, picture: &mut Picture) {
    let mut readings = std::mem::take(&mut memory.readings);
    let mut table = Table::new(sight, &mut readings);
    table.released = leaving(sight);
    let mut unlooked: Vec<String> = picture.plan.order.clone();
    unlooked.retain(|it| foreseeable(memory, sight, picture, it));
    for name in unlooked.iter().take(FORESEEN_MAX) {
        let Some(placement) = table.place_next(memory, sight, name) else { continue };
        let mut lacks = unplaceable(&picture.fleet, &picture.rooms, name, &placement);
        lacks.retain(of_a_place);
        if let Some(waiting) = picture.plan.waiting.get_mut(name) {
            waiting.add(lacks);
        }
    }
    let mut placeless: Vec<String> = picture.plan.order.clone();
    placeless.retain(|it| lacks_place(&picture.plan, it));
    for name in placeless.iter().take(FORESEEN_MAX) {
        if let Some(pending) = table.behind(memory, sight, name) {
            tell_behind(&mut picture.plan, name, &pending);
        }
    }
    drop(table);
    memory.readings = readings;
}

/// One that nobody has placed, and that goes when its pods have a place.
fn foreseeable(memory: &mut Memory, sight: &Sight<'_>, picture: &Picture, name: &str) -> bool {
    let Picture { plan, fleet, rooms, limits, .. } = picture;
    let (Some(waiting), Some(node)) = (plan.waiting.get(name), fleet.nodes.get(name)) else {
        return false;
    };
    let rule = node.member.class.as_ref().and_then(|it| limits.classes.get(it));
    let told = |it: &WaitFor| {
        of_a_place(it)
            || matches!(
                it,
                WaitFor::Consideration
                    | WaitFor::Image(_)
                    | WaitFor::OtherHand { .. }
                    | WaitFor::Capacity { .. }
            )
    };
    voluntary(node)
        && rule.is_none_or(|it| it.order == Order::SuccessorFirst)
        && !waiting.all().any(told)
        && heir(memory, sight, fleet, rooms, limits, name, &[]).is_none()
}

fn of_a_place(reason: &WaitFor) -> bool {
    matches!(reason, WaitFor::Place { .. } | WaitFor::Limit { .. } | WaitFor::Addresses(_))
}

fn lacks_place(plan: &Plan, name: &str) -> bool {
    let waiting = plan.waiting.get(name);
    waiting.is_some_and(|it| it.all().any(|it| matches!(it, WaitFor::Place { .. })))
}

/// What was nearest says nothing of it: the place is there, and somebody else's.
fn tell_behind(plan: &mut Plan, name: &str, pending: &PodId) {
    let Some(waiting) = plan.waiting.get_mut(name) else { return };
    for it in std::iter::once(&mut waiting.first).chain(&mut waiting.more) {
        if let WaitFor::Place { because, .. } = it {
            *because = format!(
                "pod {pending}, which is pending, comes first and takes the one that there would be"
            );
        }
    }
}

impl Table<'_> {
    /// The placement of one node beside those that are under way, which have given back what they use of limits.
    fn place_next(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        name: &str,
    ) -> Option<Placement> {
        let mut leaving = self.released.clone();
        leaving.insert(name.to_owned());
        let mut placements = self.place(memory, sight, &leaving, Places::All);
        placements.of.remove(name)
    }

    /// A pending pod without which the pods of this node would have a place.
    fn behind(&mut self, memory: &mut Memory, sight: &Sight<'_>, name: &str) -> Option<PodId> {
        let pending = std::mem::take(&mut self.pending);
        let mut first = pending.first().map(Pod::id);
        let mut fits =
            |table: &mut Self| table.place_next(memory, sight, name).is_some_and(|it| !no_way(&it));
        if first.is_some() && fits(self) {
            for at in 0..pending.len().min(PENDING_MAX) {
                self.pending.clone_from(&pending);
                let one = self.pending.remove(at);
                if fits(self) {
                    first = Some(one.id());
                    break;
                }
            }
        } else {
            first = None;
        }
        self.pending = pending;
        first
    }
}

impl pools::Launching {
    /// As if the nodes of these names had gone already.
    pub(super) fn release<'a>(&mut self, sight: &Sight<'_>, gone: impl Iterator<Item = &'a str>) {
        for claim in gone.filter_map(|it| sight.claim_of(it)) {
            let mut pools = self.for_pods.iter_mut().chain(&mut self.kept);
            if let Some(pool) = pools.find(|it| Some(&it.name) == claim.pool.as_ref()) {
                pools::take_one(&mut pool.used, &claim.capacity);
            }
        }
    }
}
