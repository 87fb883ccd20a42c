//! What is kept of something that exists?
//!
//! `object as kubectl prints it → the same without what nobody here asks about`
//!
//! A cluster has a hundred thousand pods, and most of what is written of each (environment, probes, mounts, who wrote which
//! field) does not say where it fits.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Node, NodeStatus, Pod, PodSpec, PodStatus, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::world::MIRROR;

pub(super) fn pod(pod: Pod) -> Pod {
    let annotations = pod.metadata.annotations.unwrap_or_default();
    let mirror: BTreeMap<String, String> =
        annotations.into_iter().filter(|(key, _)| key == MIRROR).collect();
    let annotations = (!mirror.is_empty()).then_some(mirror);
    Pod {
        metadata: ObjectMeta { annotations, managed_fields: None, ..pod.metadata },
        spec: pod.spec.map(spec),
        status: pod.status.map(status),
    }
}

pub(super) fn node(node: Node) -> Node {
    let status = node.status.map(|it| NodeStatus {
        allocatable: it.allocatable,
        capacity: it.capacity,
        conditions: it.conditions,
        ..NodeStatus::default()
    });
    Node { metadata: ObjectMeta { managed_fields: None, ..node.metadata }, status, ..node }
}

fn spec(spec: PodSpec) -> PodSpec {
    PodSpec {
        containers: containers(spec.containers),
        init_containers: spec.init_containers.map(containers),
        ephemeral_containers: None,
        volumes: spec.volumes.map(volumes),
        dns_config: None,
        host_aliases: None,
        image_pull_secrets: None,
        readiness_gates: None,
        security_context: None,
        ..spec
    }
}

fn containers(all: Vec<Container>) -> Vec<Container> {
    let slim = all.into_iter().map(|it| Container {
        name: it.name,
        ports: it.ports,
        resources: it.resources,
        restart_policy: it.restart_policy,
        ..Container::default()
    });
    slim.collect()
}

/// What is made of texts, or is the node's own, is everywhere.
fn volumes(all: Vec<Volume>) -> Vec<Volume> {
    let everywhere = |it: &Volume| {
        it.config_map.is_some()
            || it.secret.is_some()
            || it.projected.is_some()
            || it.downward_api.is_some()
            || it.empty_dir.is_some()
            || it.host_path.is_some()
    };
    let mut kept: Vec<Volume> = all.into_iter().filter(|it| !everywhere(it)).collect();
    kept.shrink_to_fit();
    kept
}

fn status(status: PodStatus) -> PodStatus {
    PodStatus {
        phase: status.phase,
        conditions: status.conditions.map(|all| {
            let mut kept: Vec<_> =
                all.into_iter().filter(|it| it.type_ == super::pod::RESIZE_PENDING).collect();
            kept.shrink_to_fit();
            kept
        }),
        container_statuses: status.container_statuses.map(statuses),
        init_container_statuses: status.init_container_statuses.map(statuses),
        ..PodStatus::default()
    }
}

fn statuses(all: Vec<ContainerStatus>) -> Vec<ContainerStatus> {
    // Only a status that knows of resizing is asked.
    let resizable = all.into_iter().filter(|it| it.resources.is_some());
    let slim = resizable.map(|it| ContainerStatus {
        name: it.name,
        resources: it.resources,
        allocated_resources: it.allocated_resources,
        ..ContainerStatus::default()
    });
    slim.collect()
}
