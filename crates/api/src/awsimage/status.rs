//! What does EC2 say of an image, and may it boot?
//!
//! Everything here can be found out again.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{meta::Condition, shape};

/// What was found out about an image.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AwsImageStatus {
    /// The `metadata.generation` that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// What EC2 said of the image when it was last listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<DescribedImage>,
    /// Whether it is there. `Available`; `Deprecated` or `Disabled` by its owner; `NotVisible`: a
    /// complete answer lacked it, so it is unshared, hidden or gone; `Deregistered`: gone for good;
    /// `Unready`: EC2 is not done with it, or it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::word::<State>")]
    pub state: Option<State>,
    /// Since when it is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub state_since: Option<String>,
    /// When an answer last listed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub last_seen_at: Option<String>,
    /// The queries that have listed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        inner(length(max = 1024)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub seen_by: Vec<String>,
    /// What sort of release it is, for example `al2023/x86_64/nvidia`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub flavour: Option<String>,
    /// Its release, for example `v20261107`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,
    /// The newer image of the same flavour that is taken in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 21))]
    pub superseded_by: Option<String>,
    /// Whether it is the newest of its flavour. Found out, never asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<bool>,
    /// How many nodes run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub nodes: Option<i64>,
    /// `Ready` first: the image may boot where a class asks for it. Else the reason is why not, for
    /// example `Withdrawn`, `Quarantined`, `OwnerChanged` or `NotVisible`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::conditions")]
    pub conditions: Option<Vec<Condition>>,
}

/// Whether an image is there.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It can be launched.
    Available,
    /// Its owner gave it up; it can be launched still.
    Deprecated,
    /// Its owner keeps it from being launched.
    Disabled,
    /// A complete answer lacked it.
    NotVisible,
    /// It is gone for good.
    Deregistered,
    /// EC2 is not done with it, or it failed.
    Unready,
}

/// What EC2 said of an image, in EC2's own words.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedImage {
    /// The image's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub name: Option<String>,
    /// What its owner says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub description: Option<String>,
    /// The account that owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12))]
    pub owner_id: Option<String>,
    /// EC2's word for a group of accounts, for example `amazon`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub owner_alias: Option<String>,
    /// When it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub creation_date: Option<String>,
    /// When it counts as deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub deprecation_time: Option<String>,
    /// `x86_64` or `arm64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub architecture: Option<String>,
    /// `legacy-bios`, `uefi` or `uefi-preferred`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub boot_mode: Option<String>,
    /// `v2.0` where it needs a TPM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub tpm_support: Option<String>,
    /// `windows`, or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub platform: Option<String>,
    /// Whether everyone may launch it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<bool>,
    /// Whether the account's Allowed AMIs setting lets it be launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_allowed: Option<bool>,
    /// The image that it was copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 21))]
    pub source_image_id: Option<String>,
    /// The region of that image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub source_image_region: Option<String>,
    /// Its tags that are visible here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "tags")]
    pub tags: BTreeMap<String, String>,
}

/// EC2's limits: 50 tags, and 256 characters for a value.
fn tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 50,
        "additionalProperties": {"type": "string", "maxLength": 256},
    })
}
