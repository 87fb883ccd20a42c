//! How are the values of the model written for an API server?

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_fit::{
    Quantity, Written,
    node::Node,
    pod::{Demand, InitContainer, Pod, PodTerm, Volume, requests},
    selector::{NodeTerm, Selector},
    taint::{Tolerated, Toleration},
};
use serde_json::{Map, Value, json};

use crate::worlds::CANARY;

type Amounts = BTreeMap<String, Quantity>;

/// Pods of this runtime class need more than their containers.
pub(crate) const RUNTIME: &str = "heavy";
const OVERHEAD_CPU_MILLIS: i64 = 100;
const OVERHEAD_MEMORY_MIB: i64 = 64;
/// Ways to write a pod that requests the same as a whole.
const WAYS: usize = 7;
const PRIORITY_MIN: i32 = -1;
const PRIORITY_MAX: i32 = 2;

/// What every world needs: path and object.
pub(crate) fn lasting(namespaces: &[(&str, &str)]) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = namespaces
        .iter()
        .map(|(name, team)| {
            let object = json!({ "metadata": { "name": name, "labels": { "team": team } } });
            ("/api/v1/namespaces".to_owned(), object)
        })
        .collect();
    // Nobody pushes anybody away: that is what the priority class of a pod says, not the pod.
    for priority in PRIORITY_MIN..=PRIORITY_MAX {
        let object = json!({
            "metadata": { "name": priority_class(priority) },
            "value": priority, "preemptionPolicy": "Never",
        });
        all.push(("/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(), object));
    }
    let overhead = amounts(&overhead());
    let object = json!({
        "metadata": { "name": RUNTIME }, "handler": RUNTIME, "overhead": { "podFixed": overhead },
    });
    all.push(("/apis/node.k8s.io/v1/runtimeclasses".to_owned(), object));
    all
}

pub(crate) fn node(node: &Node) -> Value {
    // With the taint that the controller manager gives to a cordoned node.
    let taints: Vec<Value> = node
        .standing_taints()
        .iter()
        .map(|it| json!({ "key": it.key, "value": it.value, "effect": it.effect.name() }))
        .collect();
    let room = amounts(&node.allocatable);
    json!({
        "metadata": { "name": node.name, "labels": node.labels },
        "spec": { "taints": taints, "unschedulable": node.unschedulable },
        "status": { "capacity": room, "allocatable": room },
    })
}

pub(crate) fn csi_node(node: &Node) -> Value {
    let drivers: Vec<Value> = node
        .volume_limits
        .iter()
        .map(|(name, limit)| json!({ "name": name, "nodeID": node.name, "topologyKeys": [], "allocatable": { "count": limit } }))
        .collect();
    json!({ "metadata": { "name": node.name }, "spec": { "drivers": drivers } })
}

/// The volume behind a claim. The same volume can be claimed in each namespace.
pub(crate) fn volume(volume: &Volume, namespace: &str) -> Value {
    let mut spec = json!({
        "capacity": { "storage": "1Gi" },
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "claimRef": { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": volume.handle },
    });
    match &volume.driver {
        Some(driver) => spec["csi"] = json!({ "driver": driver, "volumeHandle": volume.handle }),
        None => {
            spec["nfs"] = json!({ "server": "127.0.0.1", "path": format!("/{}", volume.handle) });
        }
    }
    if let Some(terms) = &volume.reach {
        spec["nodeAffinity"] = json!({ "required": node_selector(terms) });
    }
    json!({ "metadata": { "name": volume_name(volume, namespace) }, "spec": spec })
}

/// A claim that is bound, as the controller manager leaves it.
pub(crate) fn bound_claim(volume: &Volume, namespace: &str) -> Value {
    let mut claim = claim(volume, namespace, "");
    claim["metadata"]["annotations"] = json!({ "pv.kubernetes.io/bind-completed": "yes" });
    claim["spec"]["volumeName"] = json!(volume_name(volume, namespace));
    claim
}

/// A claim whose volume will be made where its first consumer is.
pub(crate) fn waiting_claim(volume: &Volume, namespace: &str) -> Value {
    claim(volume, namespace, &volume.handle)
}

/// The class of such a claim.
pub(crate) fn storage_class(volume: &Volume) -> Value {
    let provisioner = volume.driver.as_deref().unwrap_or("example.com/unlimited");
    let mut class = json!({
        "metadata": { "name": volume.handle },
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    if let Some(terms) = &volume.reach {
        // Here, and only here, nothing may be said twice.
        let terms: BTreeSet<Vec<(&str, BTreeSet<&String>)>> = terms
            .iter()
            .map(|term| {
                term.labels.iter().map(|it| (&*it.key, it.values.iter().collect())).collect()
            })
            .collect();
        let expression =
            |(key, values): &(&str, BTreeSet<&String>)| json!({ "key": key, "values": values });
        let topology = |it: &Vec<_>| json!({ "matchLabelExpressions": it.iter().map(expression).collect::<Vec<_>>() });
        class["allowedTopologies"] = terms.iter().map(topology).collect();
    }
    class
}

fn claim(volume: &Volume, namespace: &str, class: &str) -> Value {
    json!({
        "metadata": { "name": volume.handle, "namespace": namespace },
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": class,
        },
    })
}

fn volume_name(volume: &Volume, namespace: &str) -> String {
    format!("{namespace}-{}", volume.handle)
}

/// `way` chooses how its requests are written.
pub(crate) fn pod(pod: &Pod, name: &str, node: Option<&str>, way: usize) -> Value {
    let demand = &*pod.demand;
    let mut spec = containers(demand, way);
    spec["schedulerName"] = json!("default-scheduler");
    spec["priorityClassName"] = json!(priority_class(demand.priority));
    spec["nodeSelector"] = json!(demand.node_selector);
    spec["tolerations"] = demand.tolerations.iter().map(toleration).collect();
    spec["affinity"] = affinity(demand);
    spec["topologySpreadConstraints"] = spreads(demand);
    spec["volumes"] = demand
        .volumes
        .iter()
        .map(|it| json!({ "name": it.handle, "persistentVolumeClaim": { "claimName": it.handle } }))
        .collect();
    spec["schedulingGates"] = demand.gates.iter().map(|it| json!({ "name": it })).collect();
    if let Some(node) = node {
        spec["nodeName"] = json!(node);
    }
    if name == CANARY {
        let only = json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [CANARY] }] }]);
        spec["affinity"]["nodeAffinity"] = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": only } });
    }
    json!({ "metadata": { "name": name, "namespace": &*pod.namespace.name, "labels": demand.labels }, "spec": spec })
}

fn containers(demand: &Demand, way: usize) -> Value {
    let all = &demand.requests;
    // What can be cut in parts, and what cannot.
    let part = |of: i64| -> Amounts {
        let cut = |name: &str, amount: &Quantity| match name {
            "cpu" => Quantity::from_millis(i64::try_from(amount.ceil_millis()).unwrap() / of),
            "memory" => Quantity::from_bytes(i64::try_from(amount.ceil_units()).unwrap() / of),
            _ => Quantity::ZERO,
        };
        let parts = all.iter().map(|(name, amount)| (name.clone(), cut(name, amount)));
        parts.filter(|(_, amount)| !amount.zero()).collect()
    };
    let rest: Amounts = all
        .iter()
        .filter(|(name, _)| !["cpu", "memory"].contains(&name.as_str()))
        .map(|(name, amount)| (name.clone(), *amount))
        .collect();
    let with_rest = |mut it: Amounts| {
        it.extend(rest.clone());
        it
    };
    let (half, quarter) = (part(2), part(4));
    let init = |requests: Amounts| InitContainer { requests, sidecar: false };
    let sidecar = |requests: Amounts| InitContainer { requests, sidecar: true };
    let less = less_overhead(all);
    let nothing = Amounts::new;
    let (main, before, whole, more) = match (way % WAYS, less) {
        (1, _) => (vec![with_rest(half.clone()), half], vec![], nothing(), nothing()),
        (2, _) => (vec![with_rest(half.clone())], vec![sidecar(half)], nothing(), nothing()),
        (3, _) => (vec![half], vec![init(all.clone())], nothing(), nothing()),
        (4, _) => {
            let before = vec![sidecar(half.clone()), init(with_rest(half))];
            (vec![quarter], before, nothing(), nothing())
        }
        (5, _) => (vec![with_rest(half)], vec![], part(1), nothing()),
        (6, Some(less)) => (vec![less], vec![], nothing(), overhead()),
        _ => (vec![all.clone()], vec![], nothing(), nothing()),
    };
    let asks = |it: &Amounts| -> Amounts {
        it.iter().filter(|(_, it)| !it.zero()).map(|(name, it)| (name.clone(), *it)).collect()
    };
    let sum = requests(&main, &before, &whole, &more);
    assert_eq!(asks(&sum), asks(all), "way {way}");

    let container = |name: String, amounts: &Amounts| json!({ "name": name, "image": "none", "resources": resources(amounts) });
    let mut main: Vec<Value> =
        main.iter().enumerate().map(|(at, it)| container(format!("main-{at}"), it)).collect();
    let before: Vec<Value> = before
        .iter()
        .enumerate()
        .map(|(at, it)| {
            let mut container = container(format!("before-{at}"), &it.requests);
            if it.sidecar {
                container["restartPolicy"] = json!("Always");
            }
            container
        })
        .collect();
    main[0]["ports"] = demand
        .host_ports
        .iter()
        .map(|it| {
            let mut opened = json!({ "containerPort": it.port, "hostPort": it.port });
            if !it.address.is_empty() {
                opened["hostIP"] = json!(it.address);
            }
            if !it.protocol.is_empty() {
                opened["protocol"] = json!(it.protocol);
            }
            opened
        })
        .collect();
    let mut spec = json!({ "containers": main, "initContainers": before });
    if !whole.is_empty() {
        spec["resources"] = json!({ "requests": amounts(&whole) });
    }
    if !more.is_empty() {
        spec["runtimeClassName"] = json!(RUNTIME);
    }
    spec
}

fn overhead() -> Amounts {
    BTreeMap::from([
        ("cpu".to_owned(), Quantity::from_millis(OVERHEAD_CPU_MILLIS)),
        ("memory".to_owned(), Quantity::from_mebibytes(OVERHEAD_MEMORY_MIB)),
    ])
}

/// What remains for the containers, if there is that much.
fn less_overhead(all: &Amounts) -> Option<Amounts> {
    let mut less = all.clone();
    for (name, overhead) in overhead() {
        let rest = less.get(&name)?.checked_sub(overhead).filter(|it| !it.negative())?;
        less.insert(name, rest);
    }
    Some(less)
}

/// Of extended resources nobody may be given more than he requests.
fn resources(of: &Amounts) -> Value {
    let extended: Amounts = of
        .iter()
        .filter(|(name, _)| name.contains('/'))
        .map(|(name, amount)| (name.clone(), *amount))
        .collect();
    json!({ "requests": amounts(of), "limits": amounts(&extended) })
}

fn amounts(of: &Amounts) -> Value {
    of.iter()
        .map(|(name, amount)| (name.clone(), json!(amount.to_string())))
        .collect::<Map<_, _>>()
        .into()
}

fn affinity(demand: &Demand) -> Value {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let mut nodes = Map::new();
    if let Some(terms) = &demand.node_terms {
        nodes.insert(REQUIRED.to_owned(), node_selector(terms));
    }
    let preferred = demand.preferred_nodes.iter();
    let preferred =
        preferred.map(|it| json!({ "weight": it.weight, "preference": node_term(&it.term) }));
    nodes.insert(PREFERRED.to_owned(), preferred.collect());
    let pods = |required: &[PodTerm], preferred: &[nodemolt_fit::pod::Weighted<PodTerm>]| {
        let weighted = |it: &nodemolt_fit::pod::Weighted<PodTerm>| json!({ "weight": it.weight, "podAffinityTerm": pod_term(&it.term) });
        json!({
            REQUIRED: required.iter().map(pod_term).collect::<Vec<_>>(),
            PREFERRED: preferred.iter().map(weighted).collect::<Vec<_>>(),
        })
    };
    json!({
        "nodeAffinity": nodes,
        "podAffinity": pods(&demand.affinity, &demand.preferred_affinity),
        "podAntiAffinity": pods(&demand.anti_affinity, &demand.preferred_anti_affinity),
    })
}

fn spreads(demand: &Demand) -> Value {
    let policy = |honour: bool| if honour { "Honor" } else { "Ignore" };
    demand
        .spread
        .iter()
        .map(|it| {
            let mut spread = json!({
                "topologyKey": it.topology_key,
                "maxSkew": it.max_skew,
                "whenUnsatisfiable": if it.required { "DoNotSchedule" } else { "ScheduleAnyway" },
                "matchLabelKeys": it.match_label_keys,
                "nodeAffinityPolicy": policy(it.honour_node_affinity),
                "nodeTaintsPolicy": policy(it.honour_taints),
            });
            insert_selector(&mut spread, "labelSelector", &it.selector);
            if let Some(least) = it.min_domains {
                spread["minDomains"] = json!(least);
            }
            spread
        })
        .collect()
}

fn pod_term(term: &PodTerm) -> Value {
    let mut written = json!({
        "topologyKey": term.topology_key,
        "namespaces": term.namespaces,
        "matchLabelKeys": term.match_label_keys,
        "mismatchLabelKeys": term.mismatch_label_keys,
    });
    insert_selector(&mut written, "labelSelector", &term.selector);
    if let Some(selector) = &term.namespace_selector {
        insert_selector(&mut written, "namespaceSelector", selector);
    }
    written
}

fn insert_selector(into: &mut Value, name: &str, selector: &Selector) {
    if let Selector::All(all) = selector {
        into[name] = json!({ "matchExpressions": expressions(all) });
    }
}

fn node_selector(terms: &[NodeTerm]) -> Value {
    json!({ "nodeSelectorTerms": terms.iter().map(node_term).collect::<Vec<_>>() })
}

fn node_term(term: &NodeTerm) -> Value {
    json!({ "matchExpressions": expressions(&term.labels), "matchFields": expressions(&term.fields) })
}

fn expressions(all: &[Written]) -> Value {
    let expression = |it: &Written| json!({ "key": it.key, "operator": it.operator.name(), "values": it.values });
    all.iter().map(expression).collect()
}

fn toleration(toleration: &Toleration) -> Value {
    let mut written = Map::new();
    if let Some(key) = &toleration.key {
        written.insert("key".to_owned(), json!(key));
    }
    match &toleration.value {
        Tolerated::Any => written.insert("operator".to_owned(), json!("Exists")),
        Tolerated::Equal(value) => written.insert("value".to_owned(), json!(value)),
    };
    if let Some(effect) = toleration.effect {
        written.insert("effect".to_owned(), json!(effect.name()));
    }
    written.into()
}

fn priority_class(priority: i32) -> String {
    format!("level-{}", priority - PRIORITY_MIN)
}
