//! How many nodes may be away at once?
//!
//! `nodes by their labels × a number or a share → how many may go now`
//!
//! For nodes what a `PodDisruptionBudget` is for pods, and in its words, so that nobody has to learn
//! new ones.

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use nodemolt_core::budget::Amount;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    crd::{self, Crd},
    meta::{Condition, IntOrString, Object},
    problem::{Finding, quoted},
    shape,
};

/// The kind's name.
pub const KIND: &str = "NodeDisruptionBudget";
/// The group and version of the proposal.
pub const KARPENTER_V1ALPHA1: &str = "karpenter.sh/v1alpha1";

/// Fields that are served and that this version does not act upon, with the reason.
pub const IGNORED_FIELDS: &[(&str, &str)] = &[(
    "spec",
    "this version answers questions and replaces no nodes; the budget holds once it does",
)];

/// How the kind is declared to the API server.
pub const CRD: Crd = Crd {
    name: "nodedisruptionbudgets.karpenter.sh",
    group: "karpenter.sh",
    kind: KIND,
    standalone_only: false,
    definition: || crd::finish(NodeDisruptionBudgetObject::crd()),
};

/// How many of the selected nodes may be away at once.
pub type NodeDisruptionBudget = Object<NodeDisruptionBudgetSpec, NodeDisruptionBudgetStatus>;

/// How many of the selected nodes may be away at once. Write exactly one of `minAvailable` and
/// `maxUnavailable`.
#[derive(
    CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize,
)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeDisruptionBudget",
    plural = "nodedisruptionbudgets",
    root = "NodeDisruptionBudgetObject",
    status = "NodeDisruptionBudgetStatus",
    derive = "PartialEq",
    doc = "NodeDisruptionBudget limits how many of the nodes that it selects may be away at once: for nodes what a PodDisruptionBudget is for pods. Where several select a node, all of them hold.",
    category = "nodemolt",
    category = "karpenter",
    shortname = "ndb",
    printcolumn(
        name = "Min-Available",
        type_ = "string",
        json_path = ".spec.minAvailable",
        description = "How many nodes must stay"
    ),
    printcolumn(
        name = "Max-Unavailable",
        type_ = "string",
        json_path = ".spec.maxUnavailable",
        description = "How many nodes may be away"
    ),
    printcolumn(
        name = "Nodes",
        type_ = "integer",
        json_path = ".status.nodes",
        description = "How many nodes it selects"
    ),
    printcolumn(
        name = "Allowed",
        type_ = "integer",
        json_path = ".status.disruptionsAllowed",
        description = "How many more nodes may go now"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether it is read and holds"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why, in a word"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(validation = (
    "has(self.minAvailable) != has(self.maxUnavailable)",
    "write exactly one of `minAvailable` (so many nodes stay) and `maxUnavailable` (so many may go)"
))]
#[serde(rename_all = "camelCase")]
pub struct NodeDisruptionBudgetSpec {
    /// Which nodes: those that carry all the labels of at least one entry. `{}` selects every node.
    /// `karpenter.sh/provisioner-name` is read as today's `karpenter.sh/nodepool`.
    #[schemars(schema_with = "label_selectors")]
    pub label_selectors: Vec<BTreeMap<String, String>>,
    /// How many of them must stay available: a number such as `3`, or a share such as `70%`, which is
    /// rounded up. `100%` lets none go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::number_or_percent")]
    pub min_available: Option<IntOrString>,
    /// How many of them may be unavailable: a number such as `1`, or a share such as `5%`, which is
    /// rounded down but gives at least one. `0` lets none go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::number_or_percent")]
    pub max_unavailable: Option<IntOrString>,
    /// Whom it holds back. `Controller`: nodemolt itself. `People`: a node that a person deletes waits
    /// too. Whoever is not named counts against the budget and is not held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 2),
        extend("default" = ["Controller"], "x-kubernetes-list-type" = "set")
    )]
    pub gates: Option<Vec<Gate>>,
}

/// Whom a budget holds back.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gate {
    /// nodemolt itself.
    Controller,
    /// Whoever deletes a node by hand.
    People,
}

/// What the budget allows now.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDisruptionBudgetStatus {
    /// The `metadata.generation` that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// How many nodes it selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub nodes: Option<i64>,
    /// How many of them are available now: ready, not going, cordoned by nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub current_available: Option<i64>,
    /// How many of them must be available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub desired_available: Option<i64>,
    /// How many more may go now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub disruptions_allowed: Option<i64>,
    /// The nodes that use the budget now, the first hundred by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(max = 253)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub unavailable_nodes: Vec<String>,
    /// `Ready` first: the budget is read and selects nodes. Reason `SelectsNothing`: no node carries
    /// these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::conditions")]
    pub conditions: Option<Vec<Condition>>,
}

fn label_selectors(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 50,
        "items": shape::labels(generator),
        "x-kubernetes-list-type": "atomic",
    })
}

/// What has to hold between the fields.
pub fn check(budget: &NodeDisruptionBudget) -> Vec<Finding> {
    let NodeDisruptionBudgetSpec { label_selectors, min_available, max_unavailable, gates } =
        &budget.spec;
    let mut found = Vec::new();
    if min_available.is_some() == max_unavailable.is_some() {
        let got = if min_available.is_some() { "both" } else { "none" };
        let message = format!("expected exactly one of minAvailable and maxUnavailable, got {got}");
        let hint = "minAvailable keeps that many nodes, maxUnavailable lets that many go at once";
        found.push(Finding::error("spec", message).hint(hint));
    }
    if label_selectors.is_empty() {
        let finding = Finding::error("spec.labelSelectors", "selects no nodes");
        found.push(finding.hint("write `- {}` for all of them"));
    }
    for (index, labels) in label_selectors.iter().enumerate() {
        if labels.contains_key("karpenter.sh/provisioner-name") {
            let field = format!("spec.labelSelectors[{index}]");
            let message = "`karpenter.sh/provisioner-name` is read as `karpenter.sh/nodepool`";
            let finding = Finding::warning(field, message);
            found.push(finding.hint("write `karpenter.sh/nodepool`, which nodes carry today"));
        }
    }
    for (field, written) in
        [("spec.minAvailable", min_available), ("spec.maxUnavailable", max_unavailable)]
    {
        found.extend(written.as_ref().and_then(|it| amount(field, it).err()));
    }
    if gates.as_ref().is_some_and(Vec::is_empty) {
        let finding = Finding::error("spec.gates", "holds nobody back");
        found.push(finding.hint("write `[Controller]` or `[Controller, People]`"));
    }
    found
}

/// A number or a share, never negative.
pub(crate) fn amount(field: &str, written: &IntOrString) -> Result<Amount, Finding> {
    let text = written.to_string();
    text.parse().map_err(|_| {
        let message =
            format!("{} is neither a number nor a percentage from 0% to 100%", quoted(&text));
        Finding::error(field, message).hint("write a number such as 3, or a share such as 10%")
    })
}
