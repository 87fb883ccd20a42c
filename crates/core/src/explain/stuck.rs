//! Whom does no time let go on?
//!
//! `what has begun × what it waits for → those of which nobody knows when they are done`
//!
//! Where people stopped it, or hold a pod, a duration would be a guess. A budget that lets nobody go at the moment is
//! not that: mostly the next pod is ready soon. It is, once that takes longer than a whole replacement took here.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{World, blocks, killed_at};
use crate::drain::{Held, Hold, evictions};
use crate::plan::{WaitFor, Waiting, round};
use crate::replace::{Because, Wait};

/// By node: those that are being replaced, and those that have gone whose pods are still not ready elsewhere.
pub fn stuck(world: &World<'_>, now: Timestamp) -> BTreeSet<String> {
    // Before anything was measured nobody is late.
    let round = round(world.fleet).unwrap_or(SignedDuration::MAX);
    let (_, held) = evictions(world.drains, &world.fleet.pdbs, now);
    let under_way = world.plan.under_way.iter().filter(|node| {
        let step = world.steps.get(*node);
        let stopped = step.is_some_and(|it| stopped(&it.because));
        let late = || long_since(world, node, round, now);
        stopped || held.iter().filter(|it| it.node == **node).any(|it| holds(world, it, &late, now))
    });
    let waiting = world.plan.waiting.values().flat_map(Waiting::all);
    let unready = waiting.filter_map(|it| {
        let WaitFor::SharedWorkload { node, pod: Some(_), .. } = it else { return None };
        long_since(world, node, round, now).then_some(node)
    });
    under_way.chain(unready).cloned().collect()
}

/// Whether it is so since longer than all of one took.
fn long_since(world: &World<'_>, node: &str, round: SignedDuration, now: Timestamp) -> bool {
    let record = world.replacements.get(node);
    record.is_some_and(|it| now.duration_since(it.since) > round)
}

fn holds(world: &World<'_>, held: &Held, late: &dyn Fn() -> bool, now: Timestamp) -> bool {
    if !blocks(&held.why) || killed_at(world, held, now).is_some() {
        return false;
    }
    match held.why {
        Hold::Protected(_) | Hold::Bare => held.again_at.is_none(),
        Hold::Refused(_) => late(),
        Hold::Stays(_) | Hold::Terminating | Hold::UnderWay { .. } | Hold::AfterOthers => false,
    }
}

/// By people, or for want of what only they can give.
fn stopped(because: &Because) -> bool {
    let Because::WaitsFor(wait) = because else { return false };
    match wait {
        Wait::Pause
        | Wait::Unlock
        | Wait::Person(_)
        | Wait::Place { .. }
        | Wait::SuccessorUncordoned { .. } => true,
        Wait::Launch { .. }
        | Wait::Registration { .. }
        | Wait::Readiness { .. }
        | Wait::Steadiness { .. }
        | Wait::Cordon { .. }
        | Wait::Uncordon { .. }
        | Wait::Removal { .. }
        | Wait::Placement
        | Wait::PodsToLeave { .. }
        | Wait::Termination
        | Wait::Answer { .. }
        | Wait::Nothing => false,
    }
}
