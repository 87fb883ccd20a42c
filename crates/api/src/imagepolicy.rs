//! Which images do the people in charge allow?
//!
//! `classes × words → what holds for them`, beside what the classes say themselves
//!
//! The user's words: the operator never writes them. Every restriction only ever narrows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{LabelSelector, ObjectMeta};

pub use check::check;

mod check;

/// The kind's name.
pub const KIND: &str = "ImagePolicy";
/// Our group and version.
pub const NODEMOLT_V1ALPHA1: &str = "nodemolt.dev/v1alpha1";

/// What holds for the images of the classes it selects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImagePolicy {
    /// [`NODEMOLT_V1ALPHA1`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Its name and labels.
    pub metadata: ObjectMeta,
    /// What a person asks for.
    pub spec: ImagePolicySpec,
    /// What a controller answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// What a person asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImagePolicySpec {
    /// For which classes. Absent, for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_selector: Option<LabelSelector>,
    /// Whose images may boot: accounts, `self`, `amazon` or `aws-marketplace`. Absent, anyone's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owners: Option<Vec<String>>,
    /// Which images may boot. Absent, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_images: Option<AllowedImages>,
    /// How old an image must be. A floor: a class may ask for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_age: Option<String>,
    /// From when an image's age counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_from: Option<AgeFrom>,
    /// Whether an image that a class names by id must be old enough too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_ids: Option<PinnedIds>,
    /// Whether an image that its owner gave up may boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated_images: Option<DeprecatedImages>,
    /// Images that need not be old enough, for a while and for a reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<PolicyException>,
    /// How an image spreads. Kept as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Value>,
}

/// Images that may boot: any that is named either way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowedImages {
    /// By id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// By name, with EC2's `*` and `?`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// From when an image's age counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgeFrom {
    /// From its creation, or from when we first saw it if that is later.
    CreationOrFirstSeen,
    /// From its creation.
    Creation,
}

/// What holds for an image that a class names by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PinnedIds {
    /// It must be old enough, as any other.
    HeldByAge,
    /// It need not be old enough.
    ExemptFromAge,
}

/// What holds for an image that its owner gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeprecatedImages {
    /// It boots only if there is no other.
    LastChoice,
    /// It never boots.
    Forbidden,
}

/// An image that need not be old enough, for a while and for a reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyException {
    /// Its id, or a pattern of its name with EC2's `*` and `?`.
    pub image: String,
    /// Why. It is shown wherever the exception is used.
    pub reason: String,
    /// Until when: a time such as `2026-08-01T12:00:00Z`, or a date, whose start in UTC is meant.
    pub until: String,
}
