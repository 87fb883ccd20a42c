//! How many of a budget's pods really serve?
//!
//! `PodDisruptionBudgets × pods × nodes → the same budgets, that allow no more than that`
//!
//! Who ends with a machine is not evicted, so no API server takes it from its budget. Its pod stands there as healthy as
//! it was, until somebody clears it away, which is minutes after its node has gone and our record with it; and what a budget says
//! may be older than that. So wherever somebody is about to leave, the pods of its budget are counted here: those that are ready, on
//! a node that is there, and that nobody has let go.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use nodemolt_core::drain::{self, Pdb, Selecting};
use nodemolt_core::seen::{Kind, Node, ObjectName, Pod, View};

/// All budgets; those that select one of these pods as they are counted.
pub(crate) fn pdbs<'p>(
    view: &View,
    leaving: impl Iterator<Item = &'p drain::Pod>,
    now: Timestamp,
) -> Vec<Pdb> {
    if view.pdbs.is_empty() {
        return Vec::new();
    }
    let selecting = Selecting::new(view.pdbs.values());
    let mut serve: BTreeMap<usize, usize> = BTreeMap::new();
    for at in leaving.flat_map(|it| selecting.of(it)) {
        serve.insert(at, 0);
    }
    let budget = |at: &usize| selecting.all().get(*at).copied();
    let namespaces: BTreeSet<&str> =
        serve.keys().filter_map(budget).map(|it| it.namespace.as_str()).collect();
    for it in namespaces.into_iter().flat_map(|it| view.pods.in_namespace(it)) {
        let pod = &it.drain;
        if !pod.ready || pod.ends_at.is_some() || ended(view, it) {
            continue;
        }
        for at in selecting.of(pod) {
            if let Some(serve) = serve.get_mut(&at)
                && budget(&at).is_some_and(|it| !it.lets_go(pod, now))
            {
                *serve = serve.saturating_add(1);
            }
        }
    }
    let all = selecting.all().iter().enumerate();
    all.map(|(at, pdb)| serve.get(&at).map_or_else(|| (*pdb).clone(), |it| pdb.counting(*it)))
        .collect()
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
