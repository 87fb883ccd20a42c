//! Does `nodemolt pack` read in the objects what was meant by them?
//!
//! `world → objects for the API server → listing → world`
//!
//! The scheduler is asked about objects, and packing about values: what stands between the two is the reader of
//! manifests. So the very objects are read again, and the demands must be the same.

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_api::{
    file::Source,
    listing::{Listing, World},
};
use nodemolt_fit::{
    pod::{Demand, Pod, PodTerm, Volume},
    selector::{Labels, Selector},
};
use serde_json::{Value, json};

use crate::{
    wire,
    worlds::{CANARY, Case, NAMESPACES},
};

/// One way to write a pod leaves its overhead to the API server.
const WAYS_WITHOUT_SERVER: usize = 6;

/// Where what was read differs from what was meant.
pub(crate) fn differences(case: &Case) -> Vec<String> {
    let mut listing = Listing::default();
    let text = json!({ "apiVersion": "v1", "kind": "List", "items": objects(case) }).to_string();
    let (_, problems) = listing.read(&Source { name: format!("world {}", case.number), text });
    assert!(problems.is_empty(), "{problems:?}");
    let read =
        World::new(&listing, &BTreeSet::new(), &[], &[]).unwrap_or_else(|it| panic!("{it:?}"));
    let there = read.nodes.iter().flat_map(|it| &it.pods).chain(&read.pods);
    let there: BTreeMap<String, &Pod> = there.map(|it| (it.id().to_string(), it)).collect();
    let mut differences = Vec::new();
    for pod in pods(case) {
        let meant = plain(&pod.demand, Some(&pod.namespace.name));
        let seen = there.get(&pod.id().to_string()).map(|it| plain(&it.demand, None));
        if seen.as_ref() != Some(&meant) {
            differences.push(format!(
                "world {}, {}:\n{meant:?}\nis read as\n{seen:?}",
                case.number,
                pod.id()
            ));
        }
    }
    for node in case.nodes.iter().filter(|it| it.name != CANARY) {
        let seen = read.nodes.iter().find(|it| it.name == node.name);
        let same = seen.is_some_and(|it| {
            it.labels == node.labels
                && it.standing_taints() == node.standing_taints()
                && it.allocatable == node.allocatable
                && it.volume_limits == node.volume_limits
        });
        if !same {
            differences.push(format!("world {}, {node:?}\nis read as\n{seen:?}", case.number));
        }
    }
    differences
}

fn pods(case: &Case) -> impl Iterator<Item = &Pod> {
    let nodes = case.nodes.iter().filter(|it| it.name != CANARY);
    nodes.flat_map(|it| &it.pods).chain(&case.asked)
}

fn objects(case: &Case) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |api: &str, kind: &str, mut object: Value| {
        object["apiVersion"] = json!(api);
        object["kind"] = json!(kind);
        object["metadata"]["uid"] = json!(format!("uid-{}", all.len()));
        all.push(object);
    };
    for (path, object) in wire::lasting(&NAMESPACES) {
        match path.rsplit('/').next() {
            Some("namespaces") => add("v1", "Namespace", object),
            Some("priorityclasses") => add("scheduling.k8s.io/v1", "PriorityClass", object),
            _ => {}
        }
    }
    for node in case.nodes.iter().filter(|it| it.name != CANARY) {
        add("v1", "Node", wire::node(node));
        add("storage.k8s.io/v1", "CSINode", wire::csi_node(node));
        for (way, pod) in node.pods.iter().enumerate() {
            let way = way % WAYS_WITHOUT_SERVER;
            add("v1", "Pod", wire::pod(pod, &pod.name, Some(&node.name), way));
        }
    }
    for (way, pod) in case.asked.iter().enumerate() {
        add("v1", "Pod", wire::pod(pod, &pod.name, None, way % WAYS_WITHOUT_SERVER));
    }
    let mut claims: BTreeMap<(&str, &str), &Volume> = BTreeMap::new();
    for pod in pods(case) {
        let volumes = pod.demand.volumes.iter();
        claims.extend(volumes.map(|it| ((&*pod.namespace.name, it.handle.as_str()), it)));
    }
    for ((namespace, _), volume) in claims {
        add("v1", "PersistentVolume", wire::volume(volume, namespace));
        add("v1", "PersistentVolumeClaim", wire::bound_claim(volume, namespace));
    }
    all
}

/// Without what can be said in several ways. `namespace`: as it was meant, not as it was read.
fn plain(demand: &Demand, namespace: Option<&str>) -> Demand {
    let mut it = demand.clone();
    let own = it.labels.clone();
    it.requests.retain(|_, amount| !amount.zero());
    it.preferred_nodes.retain(|it| !it.term.labels.is_empty() || !it.term.fields.is_empty());
    let (near, away) = (&mut it.preferred_affinity, &mut it.preferred_anti_affinity);
    let preferred = near.iter_mut().chain(away).map(|it| &mut it.term);
    let required = it.affinity.iter_mut().chain(&mut it.anti_affinity);
    required.chain(preferred).for_each(|it| plain_term(it, &own));
    for spread in &mut it.spread {
        spread.selector = spread.selector.with_own(&spread.match_label_keys, &[], &own);
        spread.match_label_keys.clear();
    }
    it.host_ports.sort_unstable();
    it.host_ports.dedup();
    for volume in it.volumes.iter_mut().filter(|it| it.driver.is_none()) {
        // What no driver attaches is known by the name of its volume.
        if let Some(namespace) = namespace {
            volume.handle = format!("{namespace}-{}", volume.handle);
        }
    }
    it.volumes.sort_unstable();
    it.volumes.dedup();
    it
}

fn plain_term(term: &mut PodTerm, own: &Labels) {
    term.selector = term.selector.with_own(&term.match_label_keys, &term.mismatch_label_keys, own);
    term.match_label_keys.clear();
    term.mismatch_label_keys.clear();
    if let Some(Selector::All(all)) = &mut term.namespace_selector {
        all.sort_unstable();
    }
}
