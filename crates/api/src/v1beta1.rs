//! What did yesterday's manifests mean?
//!
//! `v1beta1 → v1`, as Karpenter's own conversion did it
//!
//! A class of v1beta1 has a subset of v1's fields with two other defaults. A pool has some fields
//! elsewhere. What has no place in v1 is kept in an annotation, as Karpenter kept it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ec2nodeclass::{self, AmiSelectorTerm, EC2NodeClass},
    meta::{Object, Quantity, WireRequirement},
    nodepool::{
        self, Budget, Disruption, NodeClaimTemplate, NodeClaimTemplateSpec, NodeClassRef,
        NodePoolSpec, NodePoolStatus, Taint, TemplateMeta,
    },
    problem::Finding,
};

/// The class's group and version.
pub const CLASS: &str = "karpenter.k8s.aws/v1beta1";
/// The pool's group and version.
pub const POOL: &str = "karpenter.sh/v1beta1";

/// Karpenter's name for the place where a pool's kubelet settings wait for a class.
pub const KUBELET_ANNOTATION: &str = "compatibility.karpenter.sh/v1beta1-kubelet-conversion";

/// Pods reached the metadata service by default; in v1 they do not.
const HOP_LIMIT: i64 = 2;

/// Where a field of v1 stood in v1beta1, for messages about what was written.
pub(crate) const CLASS_MOVES: [(&str, &str); 1] = [("spec.amiSelectorTerms", "spec.amiFamily")];
pub(crate) const POOL_MOVES: [(&str, &str); 2] = [
    ("spec.template.spec.expireAfter", "spec.disruption.expireAfter"),
    ("spec.template.spec.nodeClassRef.group", "spec.template.spec.nodeClassRef.apiVersion"),
];

/// The class as v1 would say it. A family without terms becomes its alias.
pub fn class(mut class: EC2NodeClass) -> EC2NodeClass {
    ec2nodeclass::KARPENTER_V1.clone_into(&mut class.api_version);
    if let Some(alias) = class.spec.implied_alias() {
        class.spec.ami_selector_terms =
            Some(vec![AmiSelectorTerm { alias: Some(alias), ..AmiSelectorTerm::default() }]);
    }
    let options = class.spec.metadata_options.get_or_insert_default();
    options.http_put_response_hop_limit.get_or_insert(HOP_LIMIT);
    class
}

/// The pool as v1 would say it, and what it could not take along.
pub fn pool(pool: NodePool) -> (nodepool::NodePool, Vec<Finding>) {
    let NodePool { api_version: _, kind, mut metadata, spec, status } = pool;
    let Spec { template, disruption, limits, weight } = spec;
    let TemplateSpec {
        taints,
        startup_taints,
        requirements,
        node_class_ref,
        kubelet,
        resources: _,
        termination_grace_period,
    } = template.spec;

    let mut found = Vec::new();
    if let Some(kubelet) = kubelet {
        let message =
            "kubelet settings belong to the class in v1; of the verbs here only `pack` heeds them";
        found.push(
            Finding::warning("spec.template.spec.kubelet", message)
                .hint("move them to `spec.kubelet` of the EC2NodeClass"),
        );
        metadata.annotations.insert(KUBELET_ANNOTATION.to_owned(), kubelet.to_string());
    }

    let mut expire_after = None;
    let disruption = disruption.map(|it| {
        let BetaDisruption {
            consolidate_after,
            consolidation_policy,
            expire_after: expires,
            budgets,
        } = it;
        expire_after = expires;
        let consolidation_policy = consolidation_policy.map(|it| {
            if it == "WhenUnderutilized" { "WhenEmptyOrUnderutilized".to_owned() } else { it }
        });
        Disruption {
            // v1beta1 had no wait unless one was written.
            consolidate_after: Some(consolidate_after.unwrap_or_else(|| "0s".to_owned())),
            consolidation_policy,
            budgets,
        }
    });

    let spec = NodePoolSpec {
        template: NodeClaimTemplate {
            metadata: template.metadata,
            spec: NodeClaimTemplateSpec {
                taints,
                startup_taints,
                requirements,
                node_class_ref: node_class_ref.into(),
                termination_grace_period,
                expire_after,
            },
        },
        disruption,
        limits,
        weight,
        replicas: None,
    };
    let api_version = nodepool::KARPENTER_V1.to_owned();
    (nodepool::NodePool { api_version, kind, metadata, spec, status }, found)
}

impl From<ClassRef> for NodeClassRef {
    fn from(class: ClassRef) -> Self {
        let ClassRef { api_version, kind, name } = class;
        let api_version = api_version.unwrap_or_else(|| CLASS.to_owned());
        let group = api_version.split('/').next().unwrap_or_default().to_owned();
        Self { group, kind: kind.unwrap_or_else(|| ec2nodeclass::KIND.to_owned()), name }
    }
}

/// A pool as v1beta1 wrote it.
pub type NodePool = Object<Spec, NodePoolStatus>;

/// What a person asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// What each node is.
    pub template: Template,
    /// When nodes may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<BetaDisruption>,
    /// How much there may be of each resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<BTreeMap<String, Quantity>>,
    /// 1 to 100: heavier pools are tried first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// What each node is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// What is pinned to each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// What each node is.
    pub spec: TemplateSpec,
}

/// What each node is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
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
    pub node_class_ref: ClassRef,
    /// Settings of the kubelet, which v1 has in the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<Value>,
    /// Never had a meaning in a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Value>,
    /// How long its end may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<String>,
}

/// The class that nodes boot by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassRef {
    /// Its group and version. Absent, Karpenter's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Its kind. Absent, `EC2NodeClass`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
}

/// When nodes may go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BetaDisruption {
    /// How long after a node is empty, or `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidate_after: Option<String>,
    /// `WhenEmpty` or `WhenUnderutilized`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation_policy: Option<String>,
    /// How old a node may get, or `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<String>,
    /// How many at a time. All that apply hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<Budget>>,
}
