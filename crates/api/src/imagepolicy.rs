//! Which images do the people in charge allow?
//!
//! `classes × words → what holds for them`, beside what the classes say themselves
//!
//! The user's words: the operator never writes them. Every restriction only ever narrows.

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    crd::{self, Crd},
    meta::{Condition, LabelSelector, Object},
    shape,
};

pub use check::check;
pub use rollout::{
    BarePods, Day, DrainLimitAction, ReplacementOrder, Rollout, Unit, Window, Windows,
};
pub(crate) use rollout::{read as read_rollout, read_schedule, unreadable};

mod check;
mod rollout;

/// The kind's name.
pub const KIND: &str = "ImagePolicy";
/// Our group and version.
pub const NODEMOLT_V1ALPHA1: &str = "nodemolt.dev/v1alpha1";

/// Fields that are served and that this version does not act upon, with the reason.
pub const IGNORED_FIELDS: &[(&str, &str)] = &[(
    "spec.rollout",
    "this version answers questions and replaces no nodes; what is written here counts once it does",
)];

/// How the kind is declared to the API server.
pub const CRD: Crd = Crd {
    name: "imagepolicies.nodemolt.dev",
    group: "nodemolt.dev",
    kind: KIND,
    standalone_only: false,
    definition: || crd::finish(ImagePolicyObject::crd()),
};

/// What holds for the images of the classes it selects.
pub type ImagePolicy = Object<ImagePolicySpec, ImagePolicyStatus>;

/// What may boot on the nodes of the classes it selects, and how those nodes are replaced. Where
/// several policies select a class, every restriction holds.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "nodemolt.dev",
    version = "v1alpha1",
    kind = "ImagePolicy",
    plural = "imagepolicies",
    root = "ImagePolicyObject",
    status = "ImagePolicyStatus",
    derive = "PartialEq",
    doc = "ImagePolicy says which images may boot on the nodes of the classes it selects, and how those nodes are replaced. It is written by people only. Where several policies select a class, every restriction holds.",
    category = "nodemolt",
    shortname = "imgpol",
    printcolumn(
        name = "Owners",
        type_ = "string",
        json_path = ".spec.owners",
        description = "Whose images may boot"
    ),
    printcolumn(
        name = "Minimum-Age",
        type_ = "string",
        json_path = ".spec.minimumAge",
        description = "How old an image must be"
    ),
    printcolumn(
        name = "Concurrency",
        type_ = "string",
        json_path = ".spec.rollout.concurrency",
        description = "How many nodes may be in replacement at once"
    ),
    printcolumn(
        name = "Classes",
        type_ = "integer",
        json_path = ".status.classes",
        description = "How many classes it selects"
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
#[serde(rename_all = "camelCase")]
pub struct ImagePolicySpec {
    /// For which classes, by the labels of the EC2NodeClass. Absent or empty, for all. Who may write
    /// a class may write its labels: a policy that must hold for everyone has no selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::label_selector")]
    pub class_selector: Option<LabelSelector>,
    /// Whose images may boot: accounts of 12 digits, `self`, `amazon`, `aws-marketplace` or
    /// `aws-backup-vault`. What counts is the owner that EC2 reports. Absent, anyone's that a class
    /// asks for; an empty list allows nobody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::owners")]
    pub owners: Option<Vec<String>>,
    /// Which images may boot: those that are named here by id or by name. Absent, any of the owners'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_images: Option<AllowedImages>,
    /// How old an image must be, for example `7d`, `36h` or `2w`. A floor: a class may ask for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::age")]
    pub minimum_age: Option<String>,
    /// From when an image's age counts. `CreationOrFirstSeen`: from its creation, or from when it
    /// first appeared here if that is later. `Creation`: from its creation. Absent, the former,
    /// unless another policy says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<AgeFrom>")]
    pub age_from: Option<AgeFrom>,
    /// Whether an image that a class names by id must be old enough too: `HeldByAge` or
    /// `ExemptFromAge`. Absent, it must.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<PinnedIds>")]
    pub pinned_ids: Option<PinnedIds>,
    /// Whether an image that its owner deprecated may boot. `LastChoice`: only if there is no other.
    /// `Forbidden`: never. Absent, the former.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<DeprecatedImages>")]
    pub deprecated_images: Option<DeprecatedImages>,
    /// Images that need not be old enough, and may boot although they were withdrawn, for a while and
    /// for a reason: a fix that cannot wait. Owners, allowed images and quarantines hold for them, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub exceptions: Vec<PolicyException>,
    /// How the nodes of the selected classes are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
}

/// Images that may boot: any that is named either way. At least one must be named.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = (
    "(has(self.ids) && size(self.ids) > 0) || (has(self.names) && size(self.names) > 0)",
    "names no image, so none could boot: name one under `ids` or `names`, or remove `allowedImages`"
))]
#[serde(rename_all = "camelCase")]
pub struct AllowedImages {
    /// By id, for example `ami-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "shape::image_ids")]
    pub ids: Vec<String>,
    /// By name, with EC2's `*` (any characters) and `?` (one or none), for example
    /// `amazon-eks-node-al2023-*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "shape::name_patterns")]
    pub names: Vec<String>,
}

/// From when an image's age counts.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgeFrom {
    /// From its creation, or from when we first saw it if that is later.
    CreationOrFirstSeen,
    /// From its creation.
    Creation,
}

/// What holds for an image that a class names by its id.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PinnedIds {
    /// It must be old enough, as any other.
    HeldByAge,
    /// It need not be old enough.
    ExemptFromAge,
}

/// What holds for an image that its owner gave up.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeprecatedImages {
    /// It boots only if there is no other.
    LastChoice,
    /// It never boots.
    Forbidden,
}

/// An image that need not be old enough, for a while and for a reason.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyException {
    /// Its id, or a pattern of its name with EC2's `*` and `?`.
    #[schemars(schema_with = "shape::id_or_name_pattern")]
    pub image: String,
    /// Why. It is shown wherever the exception is used.
    #[schemars(schema_with = "shape::sentence")]
    pub reason: String,
    /// Until when: a time such as `2026-08-01T12:00:00Z`, or a date, whose start in UTC is meant.
    #[schemars(schema_with = "shape::moment")]
    pub until: String,
}

/// What the operator found out about a policy.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImagePolicyStatus {
    /// The `metadata.generation` that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// How many classes it selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub classes: Option<i64>,
    /// `Ready` first: the policy is read and holds. `PoliciesOverlap`: another policy selects the
    /// same class, and its `rollout` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::conditions")]
    pub conditions: Option<Vec<Condition>>,
}
