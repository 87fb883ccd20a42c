//! How many of a budget's pods really serve?
//!
//! `PodDisruptionBudgets × pods × nodes → the same budgets, that allow no more than that`
//!
//! Who ends with a machine is not evicted, so no API server takes it from its budget. Its pod stands there as healthy as
//! it was, until somebody clears it away, which is minutes after its node has gone and our record with it; and what a budget says
//! may be older than that. So wherever somebody is about to leave, the pods of its budget are counted here: those that are ready, on
//! a node that is there, and that nobody has let go.

use jiff::Timestamp;
use nodemolt_core::drain::{self, Pdb};
use nodemolt_core::seen::{Kind, Node, ObjectName, Pod, View};

/// All budgets; those that select one of these pods as they are counted.
pub(crate) fn pdbs<'p>(
    view: &View,
    leaving: impl Iterator<Item = &'p drain::Pod>,
    now: Timestamp,
) -> Vec<Pdb> {
    let mut all: Vec<(&Pdb, bool)> = view.pdbs.values().map(|it| (it, false)).collect();
    for pod in leaving.filter(|_| !view.pdbs.is_empty()) {
        for (pdb, counts) in all.iter_mut().filter(|(_, counts)| !counts) {
            *counts = pdb.selects(pod);
        }
    }
    let counted = |(pdb, counts): (&Pdb, bool)| {
        if counts { pdb.counting(serve(view, pdb, now)) } else { pdb.clone() }
    };
    all.into_iter().map(counted).collect()
}

fn serve(view: &View, pdb: &Pdb, now: Timestamp) -> usize {
    let serves = |it: &&Pod| {
        let pod = &it.drain;
        let healthy = pod.ready && pod.ends_at.is_none();
        healthy && pdb.selects(pod) && !pdb.lets_go(pod, now) && !ended(view, it)
    };
    view.pods.in_namespace(&pdb.namespace).filter(serves).count()
}

/// Whether the machine that a pod is on has gone: its node is not there, or only by somebody else's finalizer. What cannot be
/// read is there.
pub(crate) fn ended(view: &View, pod: &Pod) -> bool {
    let Some(name) = &pod.node else { return false };
    if let Some(node) = view.nodes.get(name) {
        return node.deleting_since.is_some() && !claimed(view, node);
    }
    let (namespace, name) = (String::new(), name.clone());
    !view.unreadable.contains_key(&ObjectName { kind: Kind::Node, namespace, name })
}

/// Whether a claim holds this node's machine: it goes last, but for what others hold.
fn claimed(view: &View, node: &Node) -> bool {
    let mut held = view.claims.values().filter(|it| it.held || it.deleting_since.is_none());
    node.machine.is_some() && held.any(|it| it.machine == node.machine)
}
