//! Which pods of `DaemonSet`s are still to come, and whom can nobody place before they are there?
//!
//! A node that has just come has room that its daemons will take. And a pod that looks at daemons beyond its
//! own node cannot be foreseen: nobody knows on which nodes they will be by then.

use std::sync::Arc;

use nodemolt_fit::{
    label,
    node::Node,
    pod::{Demand, Pod},
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

/// What a pod asks of daemons on other nodes than its own.
pub fn unforeseen(pod: &Pod, daemons: &[Pod]) -> Vec<String> {
    let demand = &pod.demand;
    let mut what = Vec::new();
    for term in demand.anti_affinity.iter().filter(|it| it.topology_key != label::HOSTNAME) {
        let meant = meant(term, &demand.labels);
        let avoided = daemons.iter().filter(|it| {
            reaches(term, &pod.namespace, &it.namespace) && meant.selects(&it.demand.labels)
        });
        what.extend(avoided.map(|it| {
            let within = &term.topology_key;
            format!("the pods of the DaemonSet {}, which it must avoid within {within}", it.name)
        }));
    }
    for spread in demand.spread.iter().filter(|it| it.required) {
        let counted = spread.selector.with_own(&spread.match_label_keys, &[], &demand.labels);
        let theirs = daemons.iter().filter(|it| {
            it.namespace.name == pod.namespace.name
                && !counted.asks_nothing()
                && counted.selects(&it.demand.labels)
        });
        what.extend(theirs.map(|it| {
            let over = &spread.topology_key;
            format!("the pods of the DaemonSet {}, which its spread over {over} counts", it.name)
        }));
    }
    what
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
