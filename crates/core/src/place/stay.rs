//! Where must those go who may not be apart, while some of them have not left yet?
//!
//! Pods that must be near each other, in one zone say, and that all leave: by the letter the first of them
//! may go anywhere. But it comes back while the others still run where they are, on a node that is cordoned,
//! and so it has to be near those. A group whose zone has no room does not leave it one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_fit::{
    label,
    node::Node,
    pod::{Demand, Namespace, Pod, PodTerm},
};

use super::terms::all_mean;

/// Pods that leave, with where they have to stay for the sake of the others. Those that must be on one node
/// with others of their own are left as they are: a new node takes them all, or none.
pub(super) fn together(pods: Vec<Pod>, nodes: &[Node]) -> Vec<Pod> {
    let mut known: BTreeMap<(*const Namespace, *const Demand), Option<Arc<Demand>>> =
        BTreeMap::new();
    let bound = |pod: Pod| {
        if pod.demand.affinity.is_empty() {
            return pod;
        }
        let key = (Arc::as_ptr(&pod.namespace), Arc::as_ptr(&pod.demand));
        let held = known.entry(key).or_insert_with(|| held(&pod, nodes));
        match held {
            Some(demand) => Pod { demand: Arc::clone(demand), ..pod },
            None => pod,
        }
    };
    pods.into_iter().map(bound).collect()
}

/// The demand of one that all its own terms mean, bound to the one place where its like are, if all of them
/// are on nodes that leave.
fn held(pod: &Pod, nodes: &[Node]) -> Option<Arc<Demand>> {
    let demand = &pod.demand;
    let terms: Vec<&PodTerm> = demand.affinity.iter().collect();
    if !all_mean(&terms, pod, pod) {
        return None;
    }
    let like = |node: &&Node| node.pods.iter().any(|it| all_mean(&terms, pod, it));
    let (leave, stay): (Vec<&Node>, Vec<&Node>) =
        nodes.iter().filter(like).partition(|it| it.leaving);
    if !stay.is_empty() || leave.is_empty() {
        return None;
    }
    let mut bound = Demand::clone(demand);
    for term in terms.iter().filter(|it| label::normalise(&it.topology_key) != label::HOSTNAME) {
        let key = &term.topology_key;
        let domains: BTreeSet<&String> = leave.iter().filter_map(|it| it.labels.get(key)).collect();
        let mut domains = domains.into_iter();
        if let (Some(only), None) = (domains.next(), domains.next()) {
            bound.node_selector.entry(key.clone()).or_insert_with(|| only.clone());
        }
    }
    (bound != **demand).then(|| Arc::new(bound))
}
