//! Which pods of `DaemonSet`s are still to come, and whom can nobody place before they are there?
//!
//! A node that has just come has room that its daemons will take. And a pod that looks at daemons beyond its
//! own node cannot be foreseen: nobody knows on which nodes they will be by then.

use std::sync::Arc;

use nodemolt_fit::{
    label,
    node::Node,
    pod::{Demand, Pod, PodTerm},
};

use super::terms::{meant, reaches};

/// Whether the node gets a pod of such a `DaemonSet`.
pub fn runs_on(daemon: &Demand, node: &Node) -> bool {
    let selected =
        daemon.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    let terms = daemon.node_terms.as_ref();
    let admitted = terms.is_none_or(|it| it.iter().any(|it| it.admits(&node.name, &node.labels)));
    let standing = node.standing_taints();
    let mut taints = standing.iter().filter(|it| it.effect.binding());
    selected && admitted && taints.all(|it| it.tolerated_by(&daemon.tolerations))
}

/// The pod that the node will get. It belongs to the node.
pub fn to_come(daemon: &Pod, node: &Node) -> Pod {
    let called = format!("{}#{}", daemon.name, node.name);
    Pod { tied: true, ..Pod::new(&daemon.namespace, &called, &daemon.demand) }
}

/// What a pod asks of daemons on other nodes than its own, or they of it.
pub fn unforeseen(pod: &Pod, daemons: &[Pod]) -> Vec<String> {
    let demand = &pod.demand;
    let mut what = Vec::new();
    let mut tell = |daemon: &Pod, how: String| {
        what.push(format!(
            "the pods of the DaemonSet {}, {how}, on nodes that are still to come",
            daemon.id()
        ));
    };
    for daemon in daemons {
        for term in avoiding(pod, daemon) {
            tell(daemon, format!("which it must avoid within {}", term.topology_key));
        }
        for term in avoiding(daemon, pod) {
            tell(daemon, format!("which must avoid it within {}", term.topology_key));
        }
        for spread in demand.spread.iter().filter(|it| it.required) {
            let counted = spread.selector.with_own(&spread.match_label_keys, &[], &demand.labels);
            if daemon.namespace.name == pod.namespace.name
                && !counted.asks_nothing()
                && counted.selects(&daemon.demand.labels)
            {
                tell(daemon, format!("which its spread over {} counts", spread.topology_key));
            }
        }
    }
    what
}

/// The terms by which one must avoid the other beyond its own node. There a daemon is seen, whether it is there or will come.
fn avoiding<'p>(one: &'p Pod, other: &Pod) -> impl Iterator<Item = &'p PodTerm> {
    let wider = one.demand.anti_affinity.iter();
    let wider = wider.filter(|it| label::normalise(&it.topology_key) != label::HOSTNAME);
    wider.filter(move |term| {
        reaches(term, &one.namespace, &other.namespace)
            && meant(term, &one.demand.labels).selects(&other.demand.labels)
    })
}

/// The same pod, and what nobody can foresee of it said.
#[must_use]
pub fn judged(pod: &Pod, daemons: &[Pod]) -> Pod {
    let what = if daemons.is_empty() { Vec::new() } else { unforeseen(pod, daemons) };
    if what.is_empty() {
        return pod.clone();
    }
    let mut demand = Demand::clone(&pod.demand);
    demand.unmodelled.extend(what);
    demand.unmodelled.sort();
    demand.unmodelled.dedup();
    Pod { demand: Arc::new(demand), ..pod.clone() }
}
