//! Who is bound before anybody leaves?
//!
//! `pending pods × nodes as they stand → those that the scheduler binds at once, and where`
//!
//! The scheduler waits for nobody: who fits now is bound now, while those that are to leave still run. Until they are gone
//! they keep others away, draw them near and weigh in every spread, so what will be free once they have left is not what a
//! pending pod takes today; and what it takes today is not there for them any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use nodemolt_fit::{
    pack::{Home, Packing, Placed, Site},
    pod::{Demand, Namespace, Pod, PodTerm},
    pool::Pool,
};

use super::terms::all_mean;

/// Those who are bound, in the order of binding, and whatever else was asked. `None`: who leaves makes no difference to
/// who is pending.
pub(super) fn bound<T>(
    pending: &[Pod],
    nodes: &mut [Site],
    pools: &[Pool],
    ask: &mut impl FnMut(&[Pod], &[Site], &[Pool]) -> (Packing, T),
) -> Option<(Vec<Placed>, T)> {
    if !concerned(pending, nodes) {
        return None;
    }
    // They stand as they are, and are no place: whoever went there would have to leave as well.
    let mut stood: Vec<(usize, Site)> = Vec::new();
    for (at, node) in nodes.iter_mut().enumerate().filter(|(_, it)| it.leaving) {
        stood.push((at, node.clone()));
        node.edit(|it| {
            it.leaving = false;
            it.allocatable.clear();
        });
    }
    // With what could be launched: a group that needs a new node does not begin on an old one.
    let (packing, told) = ask(pending, nodes, pools);
    for (at, node) in stood {
        nodes[at] = node;
    }
    let mut placed = packing.placed;
    placed.retain(|it| matches!(it.home, Home::Node(_)));
    Some((placed, told))
}

/// Whether anybody who leaves can be in the way of one who is pending, or the other way round. Room alone is the same
/// before and after: nobody goes to a node that leaves.
fn concerned(pending: &[Pod], nodes: &[Site]) -> bool {
    let looks = |it: &Demand| {
        let near_or_away = !it.affinity.is_empty() || !it.anti_affinity.is_empty();
        near_or_away || it.spread.iter().any(|it| it.required)
    };
    let mut leave = nodes.iter().filter(|it| it.leaving).flat_map(|it| &it.pods);
    let somebody = leave.clone().next().is_some();
    !pending.is_empty()
        && somebody
        && (pending.iter().any(|it| looks(&it.demand))
            || leave.clone().any(|it| !it.demand.anti_affinity.is_empty())
            || drawn(&mut leave, pending))
}

/// Whether anybody who leaves has to be near one who is pending: where that is bound now it will be there already.
fn drawn<'p>(leave: &mut impl Iterator<Item = &'p Pod>, pending: &[Pod]) -> bool {
    // Pods of one controller share their demand.
    let mut known: BTreeSet<(*const Namespace, *const Demand)> = BTreeSet::new();
    leave.filter(|it| !it.demand.affinity.is_empty()).any(|pod| {
        let terms: Vec<&PodTerm> = pod.demand.affinity.iter().collect();
        known.insert((Arc::as_ptr(&pod.namespace), Arc::as_ptr(&pod.demand)))
            && pending.iter().any(|it| all_mean(&terms, pod, it))
    })
}
