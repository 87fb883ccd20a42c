//! What does a pool say on the wire?
//!
//! Karpenter's `NodePool` v1, exactly and never more: whoever installed it keeps it.

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use nodemolt_fit::label;
use serde::{Deserialize, Serialize};

use crate::{
    crd::{self, Crd, schema},
    imagepolicy::read_schedule,
    meta::{Condition, Object, Quantity, WireRequirement},
    problem::{Finding, Severity, nearest, quoted},
    requirement,
};

/// The kind's name.
pub const KIND: &str = "NodePool";
/// Karpenter's group and version; also what v1beta1 is shown as.
pub const KARPENTER_V1: &str = "karpenter.sh/v1";
/// How the API server is told of it. Whoever installed it keeps it.
pub const CRD: Crd = Crd {
    name: "nodepools.karpenter.sh",
    group: "karpenter.sh",
    kind: KIND,
    standalone_only: true,
    definition: || crd::finish(NodePoolObject::crd()),
};

/// Nodes of one sort: what they are, how many there may be, and when they may go.
pub type NodePool = Object<NodePoolSpec, NodePoolStatus>;

/// What the pool's nodes are, how many there may be, and when they may go.
#[derive(
    CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize,
)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    root = "NodePoolObject",
    status = "NodePoolStatus",
    derive = "PartialEq",
    doc = "Nodes of one sort: what they are, how many there may be, and when they may go. Nodes are \
           made for pods that fit nowhere else.",
    category = "karpenter",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn(
        name = "NodeClass",
        type_ = "string",
        json_path = ".spec.template.spec.nodeClassRef.name"
    ),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.resources.cpu", priority = 1),
    printcolumn(
        name = "Memory",
        type_ = "string",
        json_path = ".status.resources.memory",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "has(self.replicas) == has(oldSelf.replicas)",
        "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes",
    ),
    validation = (
        "!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))",
        "only 'limits.nodes' is supported on static NodePools",
    ),
    validation = (
        "!has(self.replicas) || !has(self.weight)",
        "'weight' is not supported on static NodePools",
    ),
)]
pub struct NodePoolSpec {
    /// What each node of the pool is: its labels, taints, requirements and class. A change here makes
    /// the pool's nodes drift, save one of `requirements` that they still meet.
    pub template: NodeClaimTemplate,
    /// When nodes may be removed of our own accord, and how many at a time. Unset, empty and
    /// underutilized nodes at once, a tenth of the pool at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"consolidateAfter": "0s"}))]
    pub disruption: Option<Disruption>,
    /// How much the pool's nodes may have of each resource, all together. Where one is reached no
    /// node is added. Unset, there is no limit. Example: `{cpu: 1000, memory: 1000Gi, nodes: 50}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub limits: Option<BTreeMap<String, Quantity>>,
    /// 1 to 100. Where several pools suit a pod the heaviest is tried first. Unset, 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// How many nodes there always are, whatever pods need. With it the pool is static: it takes no
    /// `weight`, of `limits` only `nodes`, and cannot become dynamic again. `kubectl scale` sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// What each node of the pool is.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplate {
    /// Labels and annotations that each node is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// What each node is.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations that each node is given.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMeta {
    /// Labels of each node, for pods to select. Keys under `karpenter.sh` are taken, save
    /// `karpenter.sh/capacity-type`; under `karpenter.k8s.aws` there are only those that nodes on AWS
    /// have. Example: `{team: payments}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::template_labels")]
    #[x_kube(
        validation = (
            r#"self.all(x, x in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !x.find("^([^/]+)").endsWith("karpenter.sh"))"#,
            r#"label domain "karpenter.sh" is restricted"#,
        ),
        validation = (
            r#"self.all(x, x != "karpenter.sh/nodepool")"#,
            r#"label "karpenter.sh/nodepool" is restricted"#,
        ),
        validation = (
            r#"self.all(x, x != "kubernetes.io/hostname")"#,
            r#"label "kubernetes.io/hostname" is restricted"#,
        ),
        validation = (
            r#"self.all(x, x in ["karpenter.k8s.aws/instance-tenancy", "karpenter.k8s.aws/capacity-reservation-type", "karpenter.k8s.aws/capacity-reservation-id", "karpenter.k8s.aws/capacity-reservation-interruptible", "karpenter.k8s.aws/capacity-reservation-interruptible", "karpenter.k8s.aws/ec2nodeclass", "karpenter.k8s.aws/instance-encryption-in-transit-supported", "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-hypervisor", "karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-generation", "karpenter.k8s.aws/instance-local-nvme", "karpenter.k8s.aws/instance-size", "karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/instance-cpu-manufacturer", "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz", "karpenter.k8s.aws/instance-memory", "karpenter.k8s.aws/instance-ebs-bandwidth", "karpenter.k8s.aws/instance-network-bandwidth", "karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-manufacturer", "karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-gpu-memory", "karpenter.k8s.aws/instance-accelerator-name", "karpenter.k8s.aws/instance-accelerator-manufacturer", "karpenter.k8s.aws/instance-accelerator-count", "karpenter.k8s.aws/instance-capability-flex", "karpenter.k8s.aws/placement-group-id", "karpenter.k8s.aws/placement-group-partition"] || !x.find("^([^/]+)").endsWith("karpenter.k8s.aws"))"#,
            r#"label domain "karpenter.k8s.aws" is restricted"#,
        ),
    )]
    pub labels: BTreeMap<String, String>,
    /// Annotations of each node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "granular"))]
    pub annotations: BTreeMap<String, String>,
}

/// What each node is.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["nodeClassRef", "requirements"]))]
pub struct NodeClaimTemplateSpec {
    /// Taints that each node has for as long as it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Option<Vec<Taint>>,
    /// Taints that each node starts with and that something else takes away once the node is ready
    /// for pods, such as the agent of a network. Pods need not tolerate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// What each node must be, by its labels; all must hold. `[]` leaves everything open. Example:
    /// `{key: kubernetes.io/arch, operator: In, values: [arm64]}`.
    #[serde(default)]
    #[schemars(schema_with = "schema::pool_requirements")]
    pub requirements: Vec<WireRequirement>,
    /// The class that nodes boot by: which image, which network, which settings. Group and kind stay
    /// what they are; the name may change, and then the nodes drift.
    #[x_kube(
        validation = ("self.group == oldSelf.group", "nodeClassRef.group is immutable"),
        validation = ("self.kind == oldSelf.kind", "nodeClassRef.kind is immutable"),
    )]
    pub node_class_ref: NodeClassRef,
    /// How long a node's end may take once it has begun. After that pods are removed whatever their
    /// budgets say. Unset, a node waits for its pods for ever. Hours, minutes and seconds: `48h`, `1h30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION))]
    pub termination_grace_period: Option<String>,
    /// How old a node may get before it is replaced, in hours, minutes and seconds, or `Never`.
    /// Unset, 720h, which is 30 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION_OR_NEVER), extend("default" = "720h"))]
    pub expire_after: Option<String>,
}

/// The class that a node boots by.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassRef {
    /// The class's API group, without a version: `karpenter.k8s.aws` or `nodemolt.dev`.
    #[schemars(regex(pattern = "^[^/]*$"))]
    #[x_kube(validation = ("self != ''", "group may not be empty"))]
    pub group: String,
    /// The class's kind: `EC2NodeClass`.
    #[x_kube(validation = ("self != ''", "kind may not be empty"))]
    pub kind: String,
    /// The class's name.
    #[x_kube(validation = ("self != ''", "name may not be empty"))]
    pub name: String,
}

/// Keeps pods away that do not tolerate it.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// The taint's name, for example `nvidia.com/gpu`.
    #[schemars(length(min = 1), regex(pattern = schema::QUALIFIED_NAME))]
    pub key: String,
    /// The taint's value, for pods that tolerate some values and not others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::QUALIFIED_NAME))]
    pub value: Option<String>,
    /// What happens to pods that do not tolerate it. `NoSchedule`: none is added.
    /// `PreferNoSchedule`: none is added while there is room elsewhere. `NoExecute`: those that run
    /// are evicted, too.
    #[schemars(extend("enum" = ["NoSchedule", "PreferNoSchedule", "NoExecute"]))]
    pub effect: String,
    /// When it was put on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub time_added: Option<String>,
}

/// When nodes may be removed of our own accord, and how many at a time.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["consolidateAfter"]))]
pub struct Disruption {
    /// How long after the last pod came or went a node may be consolidated, in hours, minutes and
    /// seconds; `Never` switches that off. Example: `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION_OR_NEVER))]
    pub consolidate_after: Option<String>,
    /// Which nodes may be consolidated. `WhenEmpty`: those without pods.
    /// `WhenEmptyOrUnderutilized`: also those whose pods fit elsewhere for less. `Balanced`: of those,
    /// only where the saving is worth the disruption. Unset, `WhenEmptyOrUnderutilized`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "enum" = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"],
        "default" = "WhenEmptyOrUnderutilized",
    ))]
    pub consolidation_policy: Option<String>,
    /// How many nodes of the pool may go at a time. Where several budgets apply the smallest holds.
    /// Unset, 10% of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 50),
        extend("default" = [{"nodes": "10%"}], "x-kubernetes-list-type" = "atomic")
    )]
    #[x_kube(validation = (
        "self.all(x, has(x.schedule) == has(x.duration))",
        "'schedule' must be set with 'duration'",
    ))]
    pub budgets: Option<Vec<Budget>>,
}

/// How many nodes may go at a time, always or in a window.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["nodes"]))]
pub struct Budget {
    /// A number of nodes or a percentage of the pool, as a string: `"5"`, `"10%"`. `"0"` lets none go.
    #[serde(default = "ten_percent")]
    #[schemars(regex(pattern = "^((100|[0-9]{1,2})%|[0-9]+)$"), extend("default" = "10%"))]
    pub nodes: String,
    /// When the budget begins to apply: five fields of cron, or a word such as `@daily`. Always UTC.
    /// Stands together with `duration`. Unset, it always applies. Example: `0 9 * * mon-fri`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
    ))]
    pub schedule: Option<String>,
    /// For how long the budget applies, from each time of `schedule`, in hours and minutes: `8h`, `1h30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"))]
    pub duration: Option<String>,
    /// For which removals the budget is: `Underutilized`, `Empty`, `Drifted`. Unset, for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::disruption_reasons")]
    pub reasons: Option<Vec<String>>,
}

/// The schema's own default.
pub(crate) fn ten_percent() -> String {
    "10%".to_owned()
}

/// What the controller found out about the pool.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// How much of each resource the pool's nodes have, all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub resources: Option<BTreeMap<String, Quantity>>,
    /// How many nodes the pool has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub nodes: Option<i64>,
    /// The generation of the class that the pool's health was judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// Whether the pool can make nodes, and why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Option<Vec<Condition>>,
}

/// What has to hold before the pool's nodes and class can be understood.
pub fn check(pool: &NodePool) -> Vec<Finding> {
    let template = &pool.spec.template;
    let NodeClaimTemplateSpec { requirements, node_class_ref, .. } = &template.spec;
    // An API server took it: a key that we do not know is one of a newer Karpenter.
    let live = pool.metadata.uid.is_some();
    let mut found = Vec::new();
    for (index, it) in requirements.iter().enumerate() {
        let field = format!("spec.template.spec.requirements[{index}]");
        found.extend(requirement::check(&field, it));
        if !live {
            found.extend(restricted(&format!("{field}.key"), &it.key));
        }
    }
    let labels = template.metadata.iter().flat_map(|it| it.labels.keys()).filter(|_| !live);
    for key in labels {
        found.extend(restricted(&format!("spec.template.metadata.labels.{key}"), key));
    }
    found.extend(node_class_ref.check("spec.template.spec.nodeClassRef"));
    found.extend(useless(&pool.spec, requirements, live));
    found
}

/// A key that the CRD refuses, with its words: Karpenter gives such labels itself, or no node has them.
fn restricted(field: &str, key: &str) -> Option<Finding> {
    let domain = key.split('/').next().unwrap_or_default();
    let refused = |what: &str| Finding::error(field, format!("label {what} is restricted"));
    if [label::NODEPOOL, label::HOSTNAME].contains(&key) {
        return Some(refused(&format!("\"{key}\"")));
    }
    if domain.ends_with("karpenter.sh") && key != label::CAPACITY_TYPE {
        return Some(refused("domain \"karpenter.sh\""));
    }
    if domain.ends_with("karpenter.k8s.aws") && !schema::AWS_LABELS.contains(&key) {
        let finding = refused("domain \"karpenter.k8s.aws\"");
        return Some(match nearest(key, &schema::AWS_LABELS) {
            Some(near) => finding.hint(format!("did you mean `{near}`?")),
            None => finding,
        });
    }
    None
}

/// What the API server takes and nobody can use: told, and no reason to refuse the pool.
fn useless(spec: &NodePoolSpec, requirements: &[WireRequirement], live: bool) -> Vec<Finding> {
    const CAPACITY_TYPES: [&str; 3] = ["on-demand", "spot", "reserved"];
    let mut found = Vec::new();
    for (name, amount) in spec.limits.iter().flatten() {
        if amount.0.parse::<nodemolt_fit::Quantity>().is_ok_and(nodemolt_fit::Quantity::negative) {
            let message =
                format!("{} is less than nothing: no node can be made", quoted(&amount.0));
            let finding = Finding::warning(format!("spec.limits.{name}"), message);
            found.push(finding.hint("write how much the pool may have, or 0 for none"));
        }
    }
    let budgets = spec.disruption.iter().flat_map(|it| it.budgets.iter().flatten());
    for (index, budget) in budgets.enumerate() {
        let field = format!("spec.disruption.budgets[{index}].schedule");
        let read = budget.schedule.as_deref().map(|it| read_schedule(&field, it));
        if let Some(Err(finding)) = read {
            found.push(Finding { severity: Severity::Warning, ..finding });
        }
    }
    for (index, it) in requirements.iter().enumerate() {
        let field = format!("spec.template.spec.requirements[{index}]");
        if it.key == label::CAPACITY_TYPE && matches!(it.operator.as_str(), "In" | "NotIn") {
            for (at, word) in it.values.iter().enumerate() {
                if CAPACITY_TYPES.contains(&word.as_str()) {
                    continue;
                }
                let message = format!("{} is not a capacity type", quoted(word));
                let hint = match nearest(word, &CAPACITY_TYPES) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("write one of {}", CAPACITY_TYPES.join(", ")),
                };
                let finding = Finding::warning(format!("{field}.values[{at}]"), message);
                found.push(finding.hint(hint));
            }
        }
        // Of one that a person has written it is refused.
        if live
            && it.key.starts_with("karpenter.k8s.aws/instance-")
            && it.key != label::TENANCY
            && !label::BY_TYPE.contains(&it.key.as_str())
        {
            let message = format!("no instance type has the label {}", quoted(&it.key));
            let finding = Finding::warning(format!("{field}.key"), message);
            found.push(match nearest(&it.key, &label::BY_TYPE) {
                Some(near) => finding.hint(format!("did you mean `{near}`?")),
                None => finding,
            });
        }
    }
    found
}

impl NodeClassRef {
    /// What is wrong with the reference at `field`.
    pub(crate) fn check(&self, field: &str) -> Vec<Finding> {
        let Self { group, kind, name } = self;
        let mut found = Vec::new();
        for (part, value) in [("group", group), ("kind", kind), ("name", name)] {
            if value.is_empty() {
                found.push(Finding::error(format!("{field}.{part}"), "cannot be empty"));
            }
        }
        if group.contains('/') {
            let group = group.split('/').next().unwrap_or_default();
            found.push(
                Finding::error(format!("{field}.group"), "a group has no version")
                    .hint(format!("write `{group}`")),
            );
        }
        found
    }
}
