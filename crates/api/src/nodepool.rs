//! What does a pool say on the wire?
//!
//! Karpenter's `NodePool` v1, exactly and never more: whoever installed it keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    meta::{ObjectMeta, Quantity, WireRequirement, open_struct},
    problem::Finding,
    requirement,
};

/// The kind's name.
pub const KIND: &str = "NodePool";
/// Karpenter's group and version; also what v1beta1 is shown as.
pub const KARPENTER_V1: &str = "karpenter.sh/v1";

/// Nodes of one sort: what they are, how many there may be, and when they may go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePool {
    /// [`KARPENTER_V1`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Its name and labels.
    pub metadata: ObjectMeta,
    /// What a person asks for.
    pub spec: NodePoolSpec,
    /// What a controller answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodePoolStatus>,
}

/// What a person asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// What each node is.
    pub template: NodeClaimTemplate,
    /// When nodes may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// How much there may be of each resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<BTreeMap<String, Quantity>>,
    /// 1 to 100: heavier pools are tried first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
    /// How many nodes there always are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
}

/// What each node is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplate {
    /// What is pinned to each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// What each node is.
    pub spec: NodeClaimTemplateSpec,
}

/// What is pinned to each node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMeta {
    /// Labels of the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What each node is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Taints that stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else takes away once the node is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the node must be.
    #[serde(default)]
    pub requirements: Vec<WireRequirement>,
    /// The class it boots by.
    pub node_class_ref: NodeClassRef,
    /// How long its end may take. Unset, forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<String>,
    /// How old it may get, or `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<String>,
}

/// The class that nodes boot by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassRef {
    /// Its group: Karpenter's or ours.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Keeps pods away that do not tolerate it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// When it was put on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// When nodes may go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long after the last pod came or went, or `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate_after: Option<String>,
    /// `WhenEmpty`, `WhenEmptyOrUnderutilized` or `Balanced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation_policy: Option<String>,
    /// How many at a time. All that apply hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<Budget>>,
}

/// How many nodes may go at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// A number or a percentage, always as a string.
    #[serde(default = "ten_percent")]
    pub nodes: String,
    /// When it applies, in cron's words and UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// For how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// For which reasons: `Underutilized`, `Empty`, `Drifted`. Unset, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Vec<String>>,
}

/// The CRD's own default.
fn ten_percent() -> String {
    "10%".to_owned()
}

open_struct! {
    /// What a controller answered. Kept as it came.
    pub struct NodePoolStatus {}
}

/// What has to hold before the pool's nodes and class can be understood.
pub fn check(pool: &NodePool) -> Vec<Finding> {
    let NodeClaimTemplateSpec { requirements, node_class_ref, .. } = &pool.spec.template.spec;
    let mut found = Vec::new();
    for (index, it) in requirements.iter().enumerate() {
        let field = format!("spec.template.spec.requirements[{index}]");
        found.extend(requirement::check(&field, it));
    }
    let NodeClassRef { group, kind, name } = node_class_ref;
    for (field, value) in [("group", group), ("kind", kind), ("name", name)] {
        if value.is_empty() {
            let field = format!("spec.template.spec.nodeClassRef.{field}");
            found.push(Finding::error(field, "cannot be empty"));
        }
    }
    if group.contains('/') {
        let group = group.split('/').next().unwrap_or_default();
        found.push(
            Finding::error("spec.template.spec.nodeClassRef.group", "a group has no version")
                .hint(format!("write `{group}`")),
        );
    }
    found
}
