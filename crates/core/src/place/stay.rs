//! Where must those go who may not be apart, while some of them have not left yet?
//!
//! Pods that must be near each other, in one zone say, and that all leave: by the letter the first of them
//! may go anywhere. But it comes back while the others still run where they are, on a node that is cordoned,
//! and so it has to be near those. A group whose zone has no room does not leave it one by one. One that is alone has nobody
//! to be near once it is gone, and may begin anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_fit::{
    Quantity,
    capacity::PODS,
    label,
    node::Node,
    pack::{Site, pack},
    pod::{Demand, Namespace, Pod, PodId, PodTerm},
};

use super::terms::all_mean;

/// Pods that leave, with where they have to stay for the sake of the others. Those that must be on one node
/// with others of their own are left as they are: no place is one until all of them have left, and then any is.
pub(super) fn together(pods: Vec<Pod>, nodes: &[Site]) -> Vec<Pod> {
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

/// The demand of one that all its own terms mean, bound to the one place where its like are, if there are others and all of
/// them are on nodes that leave.
fn held(pod: &Pod, nodes: &[Site]) -> Option<Arc<Demand>> {
    let demand = &pod.demand;
    let terms: Vec<&PodTerm> = demand.affinity.iter().collect();
    if !all_mean(&terms, pod, pod) {
        return None;
    }
    let like = |it: &&Pod| all_mean(&terms, pod, it);
    let (leave, stay): (Vec<&Site>, Vec<&Site>) =
        nodes.iter().filter(|it| it.pods.iter().any(|it| like(&it))).partition(|it| it.leaving);
    // Itself is one of them.
    let others = leave.iter().flat_map(|it| &it.pods).filter(like).nth(1).is_some();
    if !stay.is_empty() || !others {
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

/// Several pods of one node that must be on one node, and some node that stays has room for one of them and not for all:
/// where the first goes is up to the scheduler, and if it goes there the others have no place.
/// The first of the group by its id, if those that leave come in the order of theirs, and what nobody can foresee.
pub(super) fn torn(leave: &[&Pod], nodes: &[Site]) -> Option<(PodId, Vec<String>)> {
    let mut told: BTreeSet<*const Demand> = BTreeSet::new();
    for pod in leave.iter().filter(|it| !it.demand.affinity.is_empty()) {
        if !told.insert(Arc::as_ptr(&pod.demand)) {
            continue;
        }
        let terms: Vec<&PodTerm> = pod.demand.affinity.iter().collect();
        let on_one_node = |it: &&PodTerm| label::normalise(&it.topology_key) == label::HOSTNAME;
        if !terms.iter().any(on_one_node) || !all_mean(&terms, pod, pod) {
            continue;
        }
        let group: Vec<&Pod> =
            leave.iter().copied().filter(|it| all_mean(&terms, pod, it)).collect();
        let stay = nodes.iter().filter(|it| !it.leaving);
        // Where one of them stays the others go, and nowhere else.
        if group.len() < 2
            || stay.clone().any(|it| it.pods.iter().any(|it| all_mean(&terms, pod, it)))
        {
            continue;
        }
        // Of several the first by name, in whichever order they were read.
        let torn_by = stay.filter(|it| only_some_fit(&group, pod, it)).min_by_key(|it| &it.name);
        if let Some(node) = torn_by {
            let what = format!(
                "where the first of {} pods goes that must be on one node: {} has room for some of them only",
                group.len(),
                node.name
            );
            return Some((pod.id(), vec![what]));
        }
    }
    None
}

/// Whether the node would take this one of them, and has no room for all.
fn only_some_fit(group: &[&Pod], one: &Pod, node: &Node) -> bool {
    let used = |name: &str| {
        let pods = node.pods.iter().filter_map(|it| it.demand.requests.get(name));
        pods.chain(node.set_aside.get(name)).fold(Quantity::ZERO, |sum, it| sum.saturating_add(*it))
    };
    let room = |name: &str| {
        let have = node.allocatable.get(name).copied().unwrap_or_default();
        have.saturating_sub(used(name))
    };
    let names: BTreeSet<&String> = group.iter().flat_map(|it| it.demand.requests.keys()).collect();
    let short = names.into_iter().any(|name| {
        let asked = group.iter().filter_map(|it| it.demand.requests.get(name));
        asked.fold(Quantity::ZERO, |sum, it| sum.saturating_add(*it)) > room(name)
    });
    let count = |many: usize| Quantity::from_units(i64::try_from(many).unwrap_or(i64::MAX));
    let pods_max = node.allocatable.get(PODS).copied().unwrap_or_default();
    let crowded = count(node.pods.len().saturating_add(group.len())) > pods_max;
    (short || crowded)
        && pack(std::slice::from_ref(one), std::slice::from_ref(node), &[]).unplaced.is_empty()
}
