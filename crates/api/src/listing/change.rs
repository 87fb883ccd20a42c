//! Was this pod made from that template?
//!
//! `template as it was written × pod that runs → whether it would ask for the same`
//!
//! An API server adds to what is written: containers that webhooks inject, tolerations, requests of a `LimitRange`.
//! So a pod may have more than its template. What the template says, the pod must have as it is written there.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Affinity, Container, Pod, PodSpec, PodTemplateSpec, ResourceRequirements, Toleration,
    TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use nodemolt_fit::Quantity;

/// Tolerations of such taints are added to every pod.
const ADDED: &str = "node.kubernetes.io/";
const SCHEDULER: &str = "default-scheduler";

pub(super) fn made_from(template: &PodTemplateSpec, pod: &Pod) -> bool {
    let empty = PodSpec::default();
    let written = template.spec.as_ref().unwrap_or(&empty);
    let runs = pod.spec.as_ref().unwrap_or(&empty);
    let labels = template.metadata.as_ref().and_then(|it| it.labels.as_ref());
    let theirs = pod.metadata.labels.as_ref();
    labels
        .into_iter()
        .flatten()
        .all(|(key, value)| theirs.and_then(|it| it.get(key)) == Some(value))
        && same_containers(&written.containers, &runs.containers)
        && same_containers(
            written.init_containers.as_deref().unwrap_or_default(),
            runs.init_containers.as_deref().unwrap_or_default(),
        )
        && asks_the_same(written, runs)
}

/// Whether a template that an API server has admitted is this one: it asks for the same, and runs the same images.
pub(super) fn written_alike(template: &PodTemplateSpec, admitted: &PodTemplateSpec) -> bool {
    let pod = Pod {
        metadata: admitted.metadata.clone().unwrap_or_default(),
        spec: admitted.spec.clone(),
        status: None,
    };
    let images = |it: &PodTemplateSpec| -> BTreeMap<String, Option<String>> {
        let spec = it.spec.iter();
        let all =
            spec.flat_map(|it| it.containers.iter().chain(it.init_containers.iter().flatten()));
        all.map(|it| (it.name.clone(), it.image.clone())).collect()
    };
    made_from(template, &pod) && images(template) == images(admitted)
}

fn same_containers(written: &[Container], run: &[Container]) -> bool {
    written.iter().all(|it| {
        run.iter().find(|other| other.name == it.name).is_some_and(|other| {
            same_requests(it.resources.as_ref(), other.resources.as_ref())
                && host_ports(it) == host_ports(other)
        })
    })
}

/// What is asked for, with limits where nothing else is written. What the template leaves open others may have filled in.
fn same_requests(
    written: Option<&ResourceRequirements>,
    run: Option<&ResourceRequirements>,
) -> bool {
    let run = asked(run);
    asked(written).into_iter().all(|(name, amount)| {
        let there = run.get(name).map(|it| it.0.parse::<Quantity>());
        match (amount.0.parse::<Quantity>(), there) {
            (Ok(amount), Some(Ok(there))) => amount == there,
            // What cannot be read is told elsewhere.
            (Err(_), _) | (_, Some(Err(_))) => true,
            (Ok(amount), None) => amount == Quantity::ZERO,
        }
    })
}

fn asked(of: Option<&ResourceRequirements>) -> BTreeMap<&str, &WireQuantity> {
    let limits = of.and_then(|it| it.limits.as_ref()).into_iter().flatten();
    let requests = of.and_then(|it| it.requests.as_ref()).into_iter().flatten();
    limits.chain(requests).map(|(name, amount)| (name.as_str(), amount)).collect()
}

fn host_ports(of: &Container) -> BTreeSet<i32> {
    of.ports.iter().flatten().filter_map(|it| it.host_port).collect()
}

fn asks_the_same(written: &PodSpec, run: &PodSpec) -> bool {
    let empty = BTreeMap::new();
    let selects = written.node_selector.as_ref().unwrap_or(&empty);
    let selected = run.node_selector.as_ref().unwrap_or(&empty);
    let selected_alike = match &written.runtime_class_name {
        None => selects == selected,
        // The class may select nodes, too.
        Some(_) => selects.iter().all(|(key, value)| selected.get(key) == Some(value)),
    };
    let scheduler = |it: &PodSpec| {
        let named = it.scheduler_name.as_deref().filter(|it| !it.is_empty());
        named.unwrap_or(SCHEDULER).to_owned()
    };
    let class = written.priority_class_name.as_ref();
    selected_alike
        && written.runtime_class_name == run.runtime_class_name
        && class.is_none_or(|it| run.priority_class_name.as_ref() == Some(it))
        && scheduler(written) == scheduler(run)
        && written.host_network.unwrap_or(false) == run.host_network.unwrap_or(false)
        && same_affinity(written.affinity.as_ref(), run.affinity.as_ref())
        && same_spread(
            written.topology_spread_constraints.as_deref().unwrap_or_default(),
            run.topology_spread_constraints.as_deref().unwrap_or_default(),
        )
        && same_tolerations(
            written.tolerations.as_deref().unwrap_or_default(),
            run.tolerations.as_deref().unwrap_or_default(),
        )
        && claims(written).is_subset(&claims(run))
}

fn claims(of: &PodSpec) -> BTreeSet<&str> {
    let volumes = of.volumes.iter().flatten();
    volumes
        .filter_map(|it| Some(it.persistent_volume_claim.as_ref()?.claim_name.as_str()))
        .collect()
}

/// An API server writes what `matchLabelKeys` mean into the selectors: then those cannot be compared.
fn same_affinity(written: Option<&Affinity>, run: Option<&Affinity>) -> bool {
    let empty = Affinity::default();
    let (written, run) = (written.unwrap_or(&empty), run.unwrap_or(&empty));
    let text = |it: &Affinity| serde_json::to_string(it).unwrap_or_default();
    let merged = text(written).contains("atchLabelKeys\":[\"");
    let nodes = |it: &Affinity| it.node_affinity.clone().unwrap_or_default();
    nodes(written) == nodes(run)
        && (merged || (pods_near(written) == pods_near(run) && pods_far(written) == pods_far(run)))
}

fn pods_near(of: &Affinity) -> k8s_openapi::api::core::v1::PodAffinity {
    of.pod_affinity.clone().unwrap_or_default()
}

fn pods_far(of: &Affinity) -> k8s_openapi::api::core::v1::PodAntiAffinity {
    of.pod_anti_affinity.clone().unwrap_or_default()
}

fn same_spread(written: &[TopologySpreadConstraint], run: &[TopologySpreadConstraint]) -> bool {
    let bare = |all: &[TopologySpreadConstraint]| -> Vec<TopologySpreadConstraint> {
        let all = all.iter().cloned().map(|it| {
            let merged = it.match_label_keys.as_ref().is_some_and(|it| !it.is_empty());
            let label_selector = it.label_selector.clone().filter(|_| !merged);
            TopologySpreadConstraint { label_selector, ..it }
        });
        all.collect()
    };
    bare(written) == bare(run)
}

fn same_tolerations(written: &[Toleration], run: &[Toleration]) -> bool {
    let all = |of: &[Toleration]| -> Vec<Toleration> {
        let added = |it: &&Toleration| it.key.as_deref().is_some_and(|it| it.starts_with(ADDED));
        let full = |it: &Toleration| {
            let operator = it.operator.clone().filter(|it| !it.is_empty());
            Toleration { operator: operator.or(Some("Equal".to_owned())), ..it.clone() }
        };
        of.iter().filter(|it| !added(it)).map(full).collect()
    };
    let (written, run) = (all(written), all(run));
    // For an extended resource the taint of that name may be tolerated, too.
    let of_resource = |it: &Toleration| {
        it.value.is_none() && it.key.as_deref().is_some_and(|it| it.contains('/'))
    };
    written.iter().all(|it| run.contains(it))
        && run.iter().all(|it| written.contains(it) || of_resource(it))
}
