//! What does a pod ask for?
//!
//! `pod spec + what the API server would add → demand`
//!
//! What a pod asks that the packing has no picture of goes into `unmodelled`, in words: such a pod is
//! told about and never placed by guess.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, PersistentVolumeClaim, PodSpec, PodStatus, ResourceRequirements,
};
use nodemolt_fit::{
    capacity::{Amounts, CPU, MEMORY},
    pod::{Demand, HostPort, InitContainer, requests},
    selector::Labels,
    taint::{Effect, Taint, Tolerated, Toleration},
};

use super::{around::Around, device, limit, reader::Reader, volume};
use crate::problem::quoted;

/// Under this name every `DeviceClass` is an extended resource, too.
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// What a kubelet says of a resize that no waiting will make possible.
pub(super) const RESIZE_PENDING: &str = "PodResizePending";
const INFEASIBLE: &str = "Infeasible";
const DEFAULT_SCHEDULER: &str = "default-scheduler";
const ALWAYS: &str = "Always";
/// Fields of a pod that are newer than the types we read with and do not decide where it goes.
const HARMLESS: [&str; 1] = ["hostnameOverride"];
/// Classes that every cluster has.
const BUILT_IN_PRIORITIES: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
/// What the API server lets every pod put up with for five minutes, unless the pod says otherwise.
const TOLERATED_FOR_A_WHILE: [&str; 2] =
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// A pod, or a template of pods, with what is known around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) labels: &'a Labels,
    pub(crate) spec: &'a PodSpec,
    pub(crate) status: Option<&'a PodStatus>,
    /// Where the spec stands: `spec` or `spec.template.spec`.
    pub(crate) field: &'a str,
    /// Whether an API server has filled in its defaults.
    pub(crate) admitted: bool,
    /// Fields of the spec that our types do not have.
    pub(crate) unknown: &'a [String],
    /// Whether it is a template of several pods of which nobody knows the names.
    pub(crate) nameless: bool,
    /// Claims of its own, by the name of the volume: those of a `StatefulSet`.
    pub(crate) own_claims: &'a [(String, &'a PersistentVolumeClaim)],
}

pub(crate) fn demand(around: &dyn Around, asked: &Asked<'_>, reader: &mut Reader) -> Demand {
    let Asked { spec, field, .. } = *asked;
    let mut demand = Demand {
        labels: asked.labels.clone(),
        requests: pod_requests(around, asked, reader),
        node_selector: spec.node_selector.clone().unwrap_or_default(),
        host_ports: host_ports(spec, field, reader),
        ..Demand::default()
    };
    demand.priority = priority(around, spec, &mut demand.unmodelled);
    if let Some(affinity) = &spec.affinity {
        reader.affinity(&format!("{field}.affinity"), affinity, &mut demand);
    }
    for (at, it) in spec.tolerations.iter().flatten().enumerate() {
        let field = format!("{field}.tolerations[{at}]");
        demand.tolerations.extend(reader.toleration(&field, it, &mut demand.unmodelled));
    }
    for (at, it) in spec.topology_spread_constraints.iter().flatten().enumerate() {
        let field = format!("{field}.topologySpreadConstraints[{at}]");
        demand.spread.push(reader.spread(&field, it));
    }
    let gates = spec.scheduling_gates.iter().flatten();
    demand.gates = gates.map(|it| it.name.clone()).collect();
    if !asked.admitted {
        admit(around, asked, &mut demand, reader);
    }
    volume::of_pod(around, asked, &mut demand);
    given_out(around, &mut demand);
    strange(asked, &mut demand.unmodelled);
    demand
}

/// Extended resources that are devices: which node has one left is in resource slices, not on the node.
fn given_out(around: &dyn Around, demand: &mut Demand) {
    for name in demand.requests.keys() {
        let class = name.strip_prefix(DEVICE_CLASS).or_else(|| around.device_class(name));
        if let Some(class) = class {
            demand.unmodelled.push(format!(
                "the resource {}, which the DeviceClass {} gives out",
                quoted(name),
                quoted(class)
            ));
        }
    }
}

/// What nothing here stands for.
fn strange(asked: &Asked<'_>, unmodelled: &mut Vec<String>) {
    let spec = asked.spec;
    if let Some(other) = spec.scheduler_name.as_deref()
        && !other.is_empty()
        && other != DEFAULT_SCHEDULER
    {
        unmodelled.push(format!("the scheduler {}", quoted(other)));
    }
    for claim in spec.resource_claims.iter().flatten() {
        unmodelled.push(format!("the resource claim {}", quoted(&claim.name)));
    }
    for field in asked.unknown.iter().filter(|it| !HARMLESS.contains(&it.as_str())) {
        unmodelled.push(if field == device::GIVEN {
            format!("the device that it was given ({field})")
        } else {
            format!("the field {}", quoted(&format!("spec.{field}")))
        });
    }
    unmodelled.sort();
    unmodelled.dedup();
}

/// What the API server and its admission would add to what a person wrote.
fn admit(around: &dyn Around, asked: &Asked<'_>, demand: &mut Demand, reader: &mut Reader) {
    let spec = asked.spec;
    for key in TOLERATED_FOR_A_WHILE {
        let taint = Taint::new(key, "", Effect::NoExecute);
        if !taint.tolerated_by(&demand.tolerations) {
            demand.tolerations.push(exists(key, Effect::NoExecute));
        }
    }
    let Some(class) = &spec.runtime_class_name else { return };
    let Some(class) = around.runtime_class(class) else {
        let what =
            format!("the RuntimeClass {}, {}", quoted(class), around.missing("runtimeclasses"));
        demand.unmodelled.push(what);
        return;
    };
    // Already added where the person wrote an overhead.
    if spec.overhead.is_none()
        && let Some(overhead) = &class.overhead
    {
        let mut broken = Reader::default();
        let more = broken.amounts("overhead.podFixed", overhead.pod_fixed.as_ref());
        if !broken.found.is_empty() {
            reader
                .refuse(format!("{}.runtimeClassName", asked.field), "its overhead is unreadable");
        }
        demand.requests =
            requests(std::slice::from_ref(&demand.requests), &[], &Amounts::new(), &more);
    }
    if let Some(scheduling) = &class.scheduling {
        demand.node_selector.extend(scheduling.node_selector.clone().unwrap_or_default());
        for it in scheduling.tolerations.iter().flatten() {
            demand.tolerations.extend(reader.toleration(
                &format!("{}.runtimeClassName", asked.field),
                it,
                &mut demand.unmodelled,
            ));
        }
    }
}

/// What could not be read of something that exists is not for a person to correct: nobody can foresee it.
pub(crate) fn doubted(mut demand: Demand, reader: Reader) -> Demand {
    if !reader.found.is_empty() {
        let told = reader.found.into_iter().map(|it| format!("{}: {}", it.field, it.message));
        demand.unmodelled.extend(told);
        demand.unmodelled.sort();
        demand.unmodelled.dedup();
    }
    demand
}

pub(crate) fn exists(key: &str, effect: Effect) -> Toleration {
    Toleration { key: Some(key.to_owned()), value: Tolerated::Any, effect: Some(effect) }
}

fn priority(around: &dyn Around, spec: &PodSpec, unmodelled: &mut Vec<String>) -> i32 {
    if let Some(written) = spec.priority {
        return written;
    }
    let Some(name) = spec.priority_class_name.as_deref().filter(|it| !it.is_empty()) else {
        return around.default_priority();
    };
    let built_in = BUILT_IN_PRIORITIES.iter().find(|(it, _)| *it == name);
    let known = around.priority(name).or(built_in.map(|(_, value)| *value));
    known.unwrap_or_else(|| {
        let what =
            format!("the PriorityClass {}, {}", quoted(name), around.missing("priorityclasses"));
        unmodelled.push(what);
        0
    })
}

fn pod_requests<'a>(around: &dyn Around, asked: &Asked<'a>, reader: &mut Reader) -> Amounts {
    let Asked { spec, field, .. } = *asked;
    let status = asked.status;
    let resized = !status.is_some_and(stays_as_it_is);
    let of = |all: Option<&'a Vec<ContainerStatus>>| Running { all, resized };
    let running = of(status.and_then(|it| it.container_statuses.as_ref()));
    let mut containers = Vec::new();
    for (at, it) in spec.containers.iter().enumerate() {
        let field = format!("{field}.containers[{at}]");
        containers.push(container_requests(&field, it, running, reader));
    }
    let running = of(status.and_then(|it| it.init_container_statuses.as_ref()));
    let mut before = Vec::new();
    for (at, it) in spec.init_containers.iter().flatten().enumerate() {
        let field = format!("{field}.initContainers[{at}]");
        before.push(InitContainer {
            requests: container_requests(&field, it, running, reader),
            sidecar: sidecar(it),
        });
    }
    let overhead = reader.amounts(&format!("{field}.overhead"), spec.overhead.as_ref());
    let mut of_pod = Amounts::new();
    if let Some(written) = &spec.resources {
        let field = format!("{field}.resources");
        of_pod = reader.amounts(&format!("{field}.requests"), written.requests.as_ref());
        let limits = reader.amounts(&format!("{field}.limits"), written.limits.as_ref());
        let together = requests(&containers, &before, &Amounts::new(), &Amounts::new());
        // A limit of the whole pod is its request where neither it nor a container requests.
        for (name, limit) in limits {
            if !together.contains_key(&name) {
                of_pod.entry(name).or_insert(limit);
            }
        }
    }
    if !asked.admitted {
        limit_containers(around, asked, &mut containers, &mut before, reader);
    }
    requests(&containers, &before, &of_pod, &overhead)
}

/// What the limit ranges of the namespace give to containers that ask for nothing.
fn limit_containers(
    around: &dyn Around,
    asked: &Asked<'_>,
    containers: &mut [Amounts],
    before: &mut [InitContainer],
    reader: &mut Reader,
) {
    let ranges = around.limit_ranges(asked.namespace);
    if ranges.is_empty() {
        return;
    }
    let Asked { spec, field, .. } = *asked;
    let mut give = |of: &str, at: usize, container: &Container, requests: &mut Amounts| {
        let (field, had) = (format!("{field}.{of}[{at}]"), std::mem::take(requests));
        *requests = limit::apply(&ranges, &field, container, had, reader);
    };
    for (at, (it, requests)) in spec.containers.iter().zip(containers).enumerate() {
        give("containers", at, it, requests);
    }
    for (at, (it, init)) in spec.init_containers.iter().flatten().zip(before).enumerate() {
        give("initContainers", at, it, &mut init.requests);
    }
}

/// Whether it will not be resized as its spec wishes, on this node.
fn stays_as_it_is(status: &PodStatus) -> bool {
    status.conditions.iter().flatten().any(|it| {
        it.type_ == RESIZE_PENDING
            && it.status == "True"
            && it.reason.as_deref() == Some(INFEASIBLE)
    })
}

/// What the kubelet says of the containers.
#[derive(Debug, Clone, Copy)]
struct Running<'a> {
    all: Option<&'a Vec<ContainerStatus>>,
    /// Whether what the spec asks for may still come.
    resized: bool,
}

fn sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some(ALWAYS)
}

/// What a container requests; what it has a limit for and does not request, it requests as much of. A
/// container that is being resized has what it has until it has what it asks for, and only that if it cannot be.
fn container_requests(
    field: &str,
    container: &Container,
    running: Running<'_>,
    reader: &mut Reader,
) -> Amounts {
    let field = format!("{field}.resources");
    let mut amounts = written_requests(&field, container.resources.as_ref(), reader);
    let status = running.all.into_iter().flatten().find(|it| it.name == container.name);
    // Like kube-scheduler: only a status that knows of resizing is asked.
    if let Some((status, told)) = status.and_then(|it| Some((it, it.resources.as_ref()?))) {
        // What a kubelet says is not for a person to correct.
        let mut unread = Reader::default();
        let given = told.requests.as_ref();
        if !running.resized {
            amounts.remove(CPU);
            amounts.remove(MEMORY);
        }
        for given in [given, status.allocated_resources.as_ref()] {
            for (name, amount) in unread.amounts("", given) {
                if name == CPU || name == MEMORY {
                    let most = amounts.entry(name).or_insert(amount);
                    *most = (*most).max(amount);
                }
            }
        }
    }
    amounts
}

fn written_requests(
    field: &str,
    written: Option<&ResourceRequirements>,
    reader: &mut Reader,
) -> Amounts {
    let Some(written) = written else { return Amounts::new() };
    let mut amounts = reader.amounts(&format!("{field}.requests"), written.requests.as_ref());
    for (name, limit) in reader.amounts(&format!("{field}.limits"), written.limits.as_ref()) {
        amounts.entry(name).or_insert(limit);
    }
    amounts
}

/// Ports of the node that the pod takes. With the node's network, every port of a container is one.
fn host_ports(spec: &PodSpec, field: &str, reader: &mut Reader) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().flatten().enumerate();
    let sidecars = sidecars.filter(|(_, it)| sidecar(it)).map(|it| ("initContainers", it));
    let containers = spec.containers.iter().enumerate().map(|it| ("containers", it));
    let mut taken = Vec::new();
    for (of, (at, container)) in containers.chain(sidecars) {
        for (nth, port) in container.ports.iter().flatten().enumerate() {
            let own = port.host_port.filter(|it| *it != 0).map(|it| ("hostPort", it));
            let network = spec.host_network.unwrap_or(false);
            let shared = network.then_some(("containerPort", port.container_port));
            let Some((name, number)) = own.or(shared).filter(|(_, it)| *it != 0) else { continue };
            let Ok(number) = u16::try_from(number) else {
                let field = format!("{field}.{of}[{at}].ports[{nth}].{name}");
                let hint = "write a number from 1 to 65535";
                reader.refuse_with(&field, format!("`{number}` is not a port"), hint);
                continue;
            };
            taken.push(HostPort {
                address: port.host_ip.clone().unwrap_or_default(),
                protocol: port.protocol.clone().unwrap_or_default(),
                port: number,
            });
        }
    }
    taken.sort_unstable();
    taken.dedup();
    taken
}

/// Labels that a controller adds to those of its template.
pub(super) fn with_labels(
    labels: Option<&BTreeMap<String, String>>,
    more: &[(&str, &str)],
) -> Labels {
    let mut all = labels.cloned().unwrap_or_default();
    all.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    all
}
