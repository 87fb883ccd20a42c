//! Which node is being replaced, by which, and how far is it?
//!
//! Identity in the spec, which never changes; everything else in the status. Its name is the old
//! claim's UID, so a second replacement of one node is a conflict and not a second successor.

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    crd::{self, Crd},
    imagepolicy::{DrainLimitAction, ReplacementOrder},
    meta::{Condition, Object},
    problem::Finding,
    shape,
};

/// The kind's name.
pub const KIND: &str = "Replacement";
/// Our group and version.
pub const NODEMOLT_V1ALPHA1: &str = "nodemolt.dev/v1alpha1";

/// How the kind is declared to the API server.
pub const CRD: Crd = Crd {
    name: "replacements.nodemolt.dev",
    group: "nodemolt.dev",
    kind: KIND,
    standalone_only: false,
    definition: || crd::finish(ReplacementObject::crd()),
};

/// One old node and its successors.
pub type Replacement = Object<ReplacementSpec, ReplacementStatus>;

/// Whose replacement this is. It never changes: a later try reopens the same object.
#[derive(
    CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize,
)]
#[kube(
    group = "nodemolt.dev",
    version = "v1alpha1",
    kind = "Replacement",
    plural = "replacements",
    root = "ReplacementObject",
    status = "ReplacementStatus",
    derive = "PartialEq",
    doc = "Replacement is nodemolt's record of replacing one node: which one, by which successors, how far it is and what it waits for. nodemolt writes it before it acts; people read it.",
    category = "nodemolt",
    shortname = "repl",
    printcolumn(
        name = "Node",
        type_ = "string",
        json_path = ".spec.nodeName",
        description = "The old node"
    ),
    printcolumn(
        name = "Pool",
        type_ = "string",
        json_path = ".spec.nodePool",
        description = "The old node's pool"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Where it stands"
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".status.wantedImage",
        description = "The image that the successors boot"
    ),
    printcolumn(
        name = "Try",
        type_ = "integer",
        json_path = ".status.try",
        description = "Which try it is"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the node is replaced"
    ),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.because",
        description = "Why it stands where it stands"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = ("self.metadata.name == self.spec.nodeClaim.uid", "is not named after the old claim: the name of a Replacement is `spec.nodeClaim.uid`, so that a node has only one")
)]
#[x_kube(validation = (
    "self == oldSelf",
    "cannot be changed: delete the Replacement and let nodemolt write another one"
))]
#[serde(rename_all = "camelCase")]
pub struct ReplacementSpec {
    /// The claim of the old node.
    #[serde(rename = "nodeClaim")]
    pub claim: ClaimReference,
    /// The old node's name. Absent, the claim never became a node.
    #[serde(default, rename = "nodeName", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node: Option<String>,
    /// The pool that the old node belongs to.
    #[serde(default, rename = "nodePool", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pool: Option<String>,
}

/// One `NodeClaim`, told apart from a later one of the same name.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimReference {
    /// The claim's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The claim's UID.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = (
        "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "is not a UID: copy it from the claim's `metadata.uid`"
    ))]
    pub uid: String,
}

/// How far it is.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementStatus {
    /// The `metadata.generation` that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Where it stands. `Launching`: successors are asked for. `Joining`: they boot and register.
    /// `Settling`: they are ready, and have to stay so. `Draining`: the old node is cordoned, its pods
    /// leave. `Terminating`: the old machine goes. `Retreating`: what it began is undone. The end is
    /// `Done`; or the old node stays: `Failed` (no successor came), `Skipped` (it could not be
    /// emptied), `Cancelled` (nobody wants it replaced any more), `Kept` (it failed after pods had
    /// moved to a successor, which stays, too).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<Phase>")]
    pub phase: Option<Phase>,
    /// Since when it stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub phase_since: Option<String>,
    /// Why it stands there, in a sentence: what it waits for, by name, or why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub because: Option<String>,
    /// Why the phase began, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<PhaseReason>,
    /// Why the node is replaced at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<Cause>")]
    pub cause: Option<Cause>,
    /// What comes first, as the policy said when this try began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<ReplacementOrder>")]
    pub order: Option<ReplacementOrder>,
    /// What happens at the end of the drain limit, as the policy said when this try began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<DrainLimitAction>")]
    pub drain_limit_action: Option<DrainLimitAction>,
    /// What differs between the old node and what it should be, one entry for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub divergences: Vec<Divergence>,
    /// Which try it is, from one on.
    #[serde(default, rename = "try", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub try_number: Option<i64>,
    /// How many tries have failed. One that was cancelled has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failures: Option<i64>,
    /// When this try began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub started_at: Option<String>,
    /// When this try ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub ended_at: Option<String>,
    /// When the next try may begin: an hour after a failure, then two, up to a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub next_try_at: Option<String>,
    /// The image that the old node runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 21))]
    pub running_image: Option<String>,
    /// The image that the successors boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 21))]
    pub wanted_image: Option<String>,
    /// The claims that take over, of all tries that still have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub successors: Vec<Successor>,
    /// Its place in the budget, as the ledger has it. Absent before it is granted and after it was
    /// given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantTaken>,
    /// How far the drain is. Absent before the old node is cordoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// `Ready` first: the old node is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::conditions")]
    pub conditions: Option<Vec<Condition>>,
}

/// Where a replacement stands.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Successors are asked for.
    Launching,
    /// They boot and register.
    Joining,
    /// They are ready, and have to stay so for a while.
    Settling,
    /// The old node is cordoned and its pods leave.
    Draining,
    /// The old machine goes.
    Terminating,
    /// What it began is undone.
    Retreating,
    /// The node is replaced.
    Done,
    /// No successor came; the old node stays.
    Failed,
    /// The old node could not be emptied, and stays.
    Skipped,
    /// It failed after pods had moved; their successor stays.
    Kept,
    /// Nobody wants it any more; the old node stays.
    Cancelled,
}

/// Why a phase began, and of whom that is said.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseReason {
    /// Why, in one word.
    #[schemars(schema_with = "shape::word::<ReasonWord>")]
    pub word: ReasonWord,
    /// The successor that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub claim: Option<String>,
    /// The pod that it is about, with its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub pod: Option<String>,
    /// How many pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub pods: Option<i64>,
    /// What was said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub detail: Option<String>,
}

/// Why a phase began.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReasonWord {
    /// This try began.
    Begun,
    /// All successors are launched.
    SuccessorsLaunched,
    /// All successors are ready.
    SuccessorsReady,
    /// Every pod has a place on a ready node.
    PlacementHolds,
    /// The old node is not cordoned: whether it may be is decided again.
    DecideAgain,
    /// Every pod that must leave has left.
    Drained,
    /// The old machine is gone.
    OldGone,
    /// Somebody deleted the old node.
    OldDeleted,
    /// Pods came that must leave first.
    PodsCameBack,
    /// The old node matches again.
    NoLongerWanted,
    /// The ledger has no grant for it, and nothing was done for it yet.
    NotGranted,
    /// A successor could not be launched.
    LaunchGaveUp,
    /// A successor was not launched in time.
    LaunchTooSlow,
    /// A successor did not join in time.
    NeverRegistered,
    /// A successor was not ready in time.
    NeverReady,
    /// A successor did not stay ready.
    Flapping,
    /// A successor was deleted.
    SuccessorGone,
    /// A successor was not ready for too long.
    SuccessorLost,
    /// The machine of a successor ended.
    SuccessorDied,
    /// A pod has no place any more.
    NoPlaceAnyMore,
    /// Somebody had cordoned a successor, and a pod has no place elsewhere.
    SuccessorCordoned,
    /// A protection or a budget of pods was not lifted in time.
    HeldBack,
    /// Somebody protected the old node after it was cordoned.
    Protected,
    /// A pod did not leave in time.
    DrainLimit,
}

/// Why a node is replaced at all.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// It does not match its class or pool any more.
    Drift,
    /// It is older than its pool allows.
    Expiry,
    /// A person asked for it with `nodemolt upgrade`.
    Upgrade,
    /// A person deleted it.
    Delete,
    /// EC2 takes the machine away.
    Interruption,
}

/// One thing that differs.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Divergence {
    /// What differs, in one word, for example `Image`.
    #[schemars(length(min = 1, max = 63))]
    pub of: String,
    /// What the old node has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub from: Option<String>,
    /// What it should have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub to: Option<String>,
}

/// A claim that takes over.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Successor {
    /// The claim's name, written down before the claim is made.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The claim's UID, once it was made. It is never made twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub uid: Option<String>,
    /// Its node's name, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub node_name: Option<String>,
    /// In which try it was asked for.
    #[serde(default, rename = "try", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub try_number: Option<i64>,
    /// Since when its node is ready, without a break.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub ready_since: Option<String>,
}

/// A place in the budget.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantTaken {
    /// The epoch of the leader that granted it.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// Since when.
    #[schemars(schema_with = "shape::time")]
    pub since: String,
}

/// How far a drain is.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drain {
    /// When the old node was cordoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub cordoned_at: Option<String>,
    /// When the last pod left. The drain limit counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub last_left_at: Option<String>,
    /// Since when pods may leave without a break. A pause, a successor that is not ready and a change of
    /// leaders end it; the drain limit counts from here, too. Absent while none may leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub evicting_since: Option<String>,
    /// The epoch of the leader that has asked them since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub evicting_epoch: Option<i64>,
    /// When the drain limit ends, if no other pod leaves before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub limit_at: Option<String>,
    /// How many pods had to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub pods: Option<i64>,
    /// How many of them are still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub pods_left: Option<i64>,
    /// The pods that may not leave yet, the first fifty, and what each waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub held: Vec<HeldPod>,
    /// Pods that were deleted past their budget or their protection, written down before: the first
    /// five hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "atomic"))]
    pub forced: Vec<ForcedPod>,
    /// Who starts the pods again that leave, the first five hundred: room is made for those of their pods
    /// that come later and find none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "atomic"))]
    pub moved: Vec<MovedOwner>,
}

/// Who starts pods again that left the old node.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MovedOwner {
    /// The UID of the controller, for example of a `ReplicaSet`.
    #[schemars(length(max = 63))]
    pub uid: String,
    /// Since when its pods are asked to leave.
    #[schemars(schema_with = "shape::time")]
    pub since: String,
}

/// A pod that may not leave yet.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldPod {
    /// The pod's namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// The pod's name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// What it waits for, for example the `PodDisruptionBudget` that allows nothing.
    #[schemars(length(max = 1024))]
    pub because: String,
}

/// A pod that was deleted past its budget or its protection.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForcedPod {
    /// The pod's namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// The pod's name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The pod's UID.
    #[schemars(length(max = 63))]
    pub uid: String,
    /// Why.
    #[schemars(length(max = 1024))]
    pub because: String,
}

/// What has to hold between the fields.
pub fn check(replacement: &Replacement) -> Vec<Finding> {
    let uid = &replacement.spec.claim.uid;
    if replacement.metadata.name == *uid {
        return Vec::new();
    }
    let finding = Finding::error("metadata.name", "is not the UID of the old claim");
    vec![finding.hint("nodemolt writes these objects; people read them")]
}
