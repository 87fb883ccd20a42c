//! What does a claim say on the wire?
//!
//! Karpenter's `NodeClaim` v1, exactly and never more: whoever installed it keeps it. A claim is one
//! machine that somebody wants, and what became of it. Controllers write claims, people read them.

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{
    crd::{self, Crd, schema},
    meta::{Condition, Object, Quantity, WireRequirement},
    nodepool::{NodeClassRef, Taint},
    problem::Finding,
    requirement,
};

/// The kind's name.
pub const KIND: &str = "NodeClaim";
/// Karpenter's group and version.
pub const KARPENTER_V1: &str = "karpenter.sh/v1";
/// How the API server is told of it. Whoever installed it keeps it.
pub const CRD: Crd = Crd {
    name: "nodeclaims.karpenter.sh",
    group: "karpenter.sh",
    kind: KIND,
    standalone_only: true,
    definition: || crd::finish(NodeClaimObject::crd()),
};

/// One machine that somebody wants, and what became of it.
pub type NodeClaim = Object<NodeClaimSpec, NodeClaimStatus>;

/// What the machine must be. Never changes: another machine is another claim.
#[derive(
    CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize,
)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    root = "NodeClaimObject",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    doc = "One machine that is wanted, and what became of it. Controllers write claims; deleting one \
           drains its node and ends its machine.",
    category = "karpenter",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = r".metadata.labels.node\.kubernetes\.io/instance-type"
    ),
    printcolumn(
        name = "Capacity",
        type_ = "string",
        json_path = r".metadata.labels.karpenter\.sh/capacity-type"
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = r".metadata.labels.topology\.kubernetes\.io/zone"
    ),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ImageID", type_ = "string", json_path = ".status.imageID", priority = 1),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.providerID", priority = 1),
    printcolumn(
        name = "NodePool",
        type_ = "string",
        json_path = r".metadata.labels.karpenter\.sh/nodepool",
        priority = 1
    ),
    printcolumn(
        name = "NodeClass",
        type_ = "string",
        json_path = ".spec.nodeClassRef.name",
        priority = 1
    ),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Drifted")].status"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["nodeClassRef", "requirements"]))]
#[x_kube(validation = ("self == oldSelf", "spec is immutable"))]
pub struct NodeClaimSpec {
    /// Taints that the node has for as long as it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Option<Vec<Taint>>,
    /// Taints that the node starts with and that something else takes away once it is ready for pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the node must be, by its labels; all must hold. Among them are the instance types that
    /// would do, cheapest first.
    #[serde(default)]
    #[schemars(schema_with = "schema::claim_requirements")]
    pub requirements: Vec<WireRequirement>,
    /// What the pods that the node is for need, all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<NodeClaimResources>,
    /// The class that the node boots by: which image, which network, which settings.
    pub node_class_ref: NodeClassRef,
    /// How long the node's end may take once it has begun. After that pods are removed whatever their
    /// budgets say. Unset, it waits for its pods for ever. Hours, minutes and seconds: `48h`, `1h30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION))]
    pub termination_grace_period: Option<String>,
    /// How old the node may get before it is replaced, in hours, minutes and seconds, or `Never`.
    /// Unset, 720h, which is 30 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION_OR_NEVER), extend("default" = "720h"))]
    pub expire_after: Option<String>,
}

/// What the pods that a node is for need.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimResources {
    /// At least so much of each resource, for example `{cpu: 3500m, memory: 7Gi, pods: "12"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub requests: Option<BTreeMap<String, Quantity>>,
}

/// What became of the machine.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The node that the machine became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The machine, as the cloud calls it: `aws:///us-east-1a/i-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "providerID")]
    pub provider_id: Option<String>,
    /// The image that the machine booted, for example `ami-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "imageID")]
    pub image_id: Option<String>,
    /// How much of each resource the machine has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// How much of that is for pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub allocatable: Option<BTreeMap<String, Quantity>>,
    /// How far the machine has come, whether it drifted, and why it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::terse_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When a pod last came to the node or left it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_pod_event_time: Option<String>,
}

/// What has to hold before the claim can be understood.
pub fn check(claim: &NodeClaim) -> Vec<Finding> {
    let NodeClaimSpec { requirements, node_class_ref, .. } = &claim.spec;
    let mut found = Vec::new();
    for (index, it) in requirements.iter().enumerate() {
        found.extend(requirement::check(&format!("spec.requirements[{index}]"), it));
    }
    found.extend(node_class_ref.check("spec.nodeClassRef"));
    found
}
