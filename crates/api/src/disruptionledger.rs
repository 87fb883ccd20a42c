//! What has been granted, by whom, and is everything stopped?
//!
//! One object for the whole cluster: all grants of a turn are one compare-and-swap, so two leaders
//! at once cannot exceed a budget. What people ask for stands in the spec, what nodemolt does in the
//! status; both change one resource version.

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    crd::{self, Crd},
    meta::{Condition, Object},
    problem::{Finding, quoted},
    shape, time,
};

/// The kind's name.
pub const KIND: &str = "DisruptionLedger";
/// Our group and version.
pub const NODEMOLT_V1ALPHA1: &str = "nodemolt.dev/v1alpha1";
/// The one object's name.
pub const NAME: &str = "cluster";

/// Fields that are served and that this version does not act upon, with the reason.
pub const IGNORED_FIELDS: &[(&str, &str)] = &[(
    "spec",
    "this version answers questions and replaces no nodes; there is nothing to pause before it does",
)];

/// How the kind is declared to the API server.
pub const CRD: Crd = Crd {
    name: "disruptionledgers.nodemolt.dev",
    group: "nodemolt.dev",
    kind: KIND,
    standalone_only: false,
    definition: || crd::finish(DisruptionLedgerObject::crd()),
};

/// What is granted in this cluster.
pub type DisruptionLedger = Object<DisruptionLedgerSpec, DisruptionLedgerStatus>;

/// What people ask of nodemolt as a whole.
#[derive(
    CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize,
)]
#[kube(
    group = "nodemolt.dev",
    version = "v1alpha1",
    kind = "DisruptionLedger",
    plural = "disruptionledgers",
    root = "DisruptionLedgerObject",
    status = "DisruptionLedgerStatus",
    derive = "PartialEq",
    doc = "DisruptionLedger lists which nodes nodemolt may disturb now. There is one, named `cluster`. People pause nodemolt here, and release its lock; nodemolt writes the rest.",
    category = "nodemolt",
    shortname = "ledger",
    printcolumn(
        name = "Granted",
        type_ = "integer",
        json_path = ".status.granted",
        description = "How many grants there are"
    ),
    printcolumn(
        name = "Epoch",
        type_ = "integer",
        json_path = ".status.epoch",
        description = "Counts the leaders"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = ".spec.pause.reason",
        description = "Why people have paused nodemolt; nothing means that it is not paused"
    ),
    printcolumn(
        name = "Locked",
        type_ = "string",
        json_path = ".status.lock.reason",
        description = "Why nodemolt has stopped itself; nothing means that it has not"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether nodes may be replaced"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why, in a word"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = ("self.metadata.name == 'cluster'", "there is one ledger for the whole cluster: name it `cluster`"),
    validation = (
        "!has(oldSelf.status) || !has(oldSelf.status.lock) || (has(self.status) && has(self.status.lock) && self.status.lock.id == oldSelf.status.lock.id) || (has(self.spec.releasedLock) && self.spec.releasedLock == oldSelf.status.lock.id)",
        "the lock holds until a person has released it: write its id into `spec.releasedLock`, or run `nodemolt unlock`"
    ),
    validation = ("!has(oldSelf.status) || has(self.status)", "the status cannot be removed: delete the ledger, and nodemolt writes another one from its records")
)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionLedgerSpec {
    /// Stops all voluntary disruption in the cluster for as long as it is there. What has begun goes
    /// on to where it is safe. `nodemolt pause` writes it, `nodemolt resume` removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// The `id` of the lock in the status that a person has looked at and released. `nodemolt unlock`
    /// writes it. A later lock has another id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub released_lock: Option<String>,
}

/// Why everything is paused.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// Why. It is shown to whoever waits.
    #[schemars(schema_with = "shape::sentence")]
    pub reason: String,
    /// Who paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub by: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::moment")]
    pub since: Option<String>,
}

/// What is granted. nodemolt writes it, each time against the version that it has read.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = (
    "!has(oldSelf.epoch) || (has(self.epoch) && self.epoch >= oldSelf.epoch)",
    "the epoch went back: a newer leader has written since, read the ledger again"
))]
#[x_kube(validation = (
    "!has(self.grants) || self.grants.all(it, has(self.epoch) && it.epoch <= self.epoch)",
    "a grant is of a later epoch than the ledger: write both together"
))]
#[x_kube(validation = (
    "(has(self.granted) ? self.granted : 0) == (has(self.grants) ? size(self.grants) : 0)",
    "`granted` is not the number of grants: write both together"
))]
#[serde(rename_all = "camelCase")]
pub struct DisruptionLedgerStatus {
    /// The `metadata.generation` that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Counts the leaders. It never goes back: who writes an earlier one is not the leader any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub epoch: Option<i64>,
    /// How many grants there are, for whoever only looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub granted: Option<i64>,
    /// Which nodes may be disturbed now. No grant, no cordon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 2000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["holder"])
    )]
    pub grants: Vec<Grant>,
    /// Grants that were given back a short while ago, which cooldowns count from: the newest thousand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub closed: Vec<ClosedGrant>,
    /// Why nodemolt stopped itself: its own records contradict each other. It holds until a person
    /// names its id in `spec.releasedLock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// `Ready` first: nodes may be replaced. Reasons `Paused` and `Locked` say why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::conditions")]
    pub conditions: Option<Vec<Condition>>,
}

/// One node that may be disturbed.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The UID of the old node's claim, which is the name of its Replacement, too.
    #[schemars(length(min = 1, max = 63))]
    pub holder: String,
    /// What for. `Delete` and `Interruption` are granted over the budget if need be.
    #[schemars(schema_with = "shape::word::<GrantKind>")]
    pub kind: GrantKind,
    /// The epoch of the leader that granted it.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// Since when.
    #[schemars(schema_with = "shape::time")]
    pub since: String,
    /// The node's name, by which budgets count it. Its claim's, where it never became a node.
    #[schemars(length(min = 1, max = 253))]
    pub node_name: String,
    /// The node's pool, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node_pool: Option<String>,
    /// Thousandths of the node's processors, by which budgets with `unit: CPU` count it once it is gone.
    #[serde(default, rename = "nodeCPUMillis", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_cpu_millis: Option<i64>,
    /// The `NodeDisruptionBudget`s that it takes a place in, by which they count it once the node is gone
    /// and its labels with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(min = 1, max = 253)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub disruption_budgets: Vec<String>,
}

/// What a node may be disturbed for.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantKind {
    /// It is replaced: for drift, for expiry, or because a person asked.
    Replacement,
    /// A person deleted it.
    Delete,
    /// EC2 takes the machine away.
    Interruption,
    /// Nothing runs on it.
    Emptiness,
    /// Fewer nodes could do the work.
    Consolidation,
}

/// A grant that was given back.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClosedGrant {
    /// The node's name.
    #[schemars(length(min = 1, max = 253))]
    pub node_name: String,
    /// The node's class, whose cooldown it counts for.
    #[schemars(length(min = 1, max = 253))]
    pub node_class: String,
    /// Since when it was granted.
    #[schemars(schema_with = "shape::time")]
    pub since: String,
    /// When it was given back.
    #[schemars(schema_with = "shape::time")]
    pub ended_at: String,
}

/// Why nodemolt stopped itself.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lock {
    /// Tells one lock from the next.
    #[schemars(length(min = 1, max = 63))]
    pub id: String,
    /// What contradicts what, by name.
    #[schemars(schema_with = "shape::sentence")]
    pub reason: String,
    /// Since when.
    #[schemars(schema_with = "shape::time")]
    pub since: String,
}

/// What has to hold between the fields.
pub fn check(ledger: &DisruptionLedger) -> Vec<Finding> {
    let mut found = Vec::new();
    let name = &ledger.metadata.name;
    if name != NAME {
        let message = format!("{} is not the ledger: there is one for the cluster", quoted(name));
        found.push(Finding::error("metadata.name", message).hint("name it `cluster`"));
    }
    if ledger.spec.pause.as_ref().is_some_and(|it| it.reason.trim().is_empty()) {
        let finding = Finding::error("spec.pause.reason", "cannot be empty");
        found.push(finding.hint("say why: it is shown to whoever waits"));
    }
    let since = ledger.spec.pause.as_ref().and_then(|it| it.since.as_ref());
    found.extend(since.and_then(|it| time::check("spec.pause.since", it)));
    found
}
