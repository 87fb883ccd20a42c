//! What is a node that no machine stands behind?
//!
//! A Node object with everything a kubelet would say of itself. Alone it is enough for the scheduler; the
//! controller manager also wants to hear from it, and that is what `kubelets` are for.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, Taint};
use kube::{
    Client,
    api::{Api, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::kubelets;

/// Nodes with this label are ours; `kubelets` leave all others alone.
pub const LABEL: &str = "rig.nodemolt.dev/kubelet";

/// What is to be said about a node. The default is the size of an `m7g.large`.
#[derive(Debug, Clone)]
pub struct NodeShape {
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// `aws:///eu-central-1a/i-0123456789abcdef0`, where somebody will look for the machine.
    pub provider_id: Option<String>,
    pub cpu: String,
    pub memory: String,
    pub pods_max: u32,
}

impl Default for NodeShape {
    fn default() -> Self {
        Self {
            labels: BTreeMap::new(),
            taints: Vec::new(),
            provider_id: None,
            cpu: "1930m".to_owned(),
            memory: "6846Mi".to_owned(),
            pods_max: 29,
        }
    }
}

/// Registers a node, Ready at once.
pub async fn add(client: &Client, name: &str, shape: &NodeShape) -> Result<Node, kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &node(name, shape)).await?;
    let status = json!({ "status": status(name, shape) });
    nodes.patch_status(name, &PatchParams::default(), &Patch::Strategic(status)).await
}

fn node(name: &str, shape: &NodeShape) -> Node {
    let mut labels = shape.labels.clone();
    labels.insert(LABEL.to_owned(), "rig".to_owned());
    labels.entry("kubernetes.io/hostname".to_owned()).or_insert_with(|| name.to_owned());
    labels.entry("kubernetes.io/os".to_owned()).or_insert_with(|| "linux".to_owned());
    labels.entry("kubernetes.io/arch".to_owned()).or_insert_with(|| "arm64".to_owned());
    let mut node = Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Node::default()
    };
    let spec = node.spec.get_or_insert_default();
    spec.provider_id.clone_from(&shape.provider_id);
    spec.taints = (!shape.taints.is_empty()).then(|| shape.taints.clone());
    node
}

fn status(name: &str, shape: &NodeShape) -> Value {
    let room = json!({
        "cpu": shape.cpu,
        "memory": shape.memory,
        "pods": shape.pods_max.to_string(),
        "ephemeral-storage": "20Gi",
    });
    json!({
        "capacity": room,
        "allocatable": room,
        "addresses": [{ "type": "Hostname", "address": name }],
        "nodeInfo": {
            "architecture": "arm64",
            "bootID": "", "machineID": "", "systemUUID": "", "kernelVersion": "",
            "containerRuntimeVersion": "none://0",
            "kubeProxyVersion": "",
            "kubeletVersion": crate::KUBERNETES_VERSION,
            "operatingSystem": "linux",
            "osImage": "rig",
        },
        "conditions": kubelets::node_conditions(true),
    })
}

/// Puts a pod on a node, as a scheduler does.
pub async fn bind(
    client: &Client,
    namespace: &str,
    pod: &str,
    node: &str,
) -> Result<(), kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let binding = Binding {
        metadata: ObjectMeta { name: Some(pod.to_owned()), ..ObjectMeta::default() },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    pods.create_subresource::<_, Value>("binding", pod, &PostParams::default(), &binding)
        .await
        .map(drop)
}
