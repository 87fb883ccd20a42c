//! Which image may not boot, whatever anyone else says?
//!
//! One object per image, name or version, so that what one person or we ourselves halted is not
//! undone by someone else's file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    meta::{ObjectMeta, one_or_many},
    problem::Finding,
    time,
};

/// The kind's name.
pub const KIND: &str = "ImageQuarantine";
/// Our group and version.
pub const NODEMOLT_V1ALPHA1: &str = "nodemolt.dev/v1alpha1";

/// Images that may not boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageQuarantine {
    /// [`NODEMOLT_V1ALPHA1`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Its name and labels.
    pub metadata: ObjectMeta,
    /// Which images, and why.
    pub spec: ImageQuarantineSpec,
    /// What a controller answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// Which images, and why. Exactly one of `id`, `name` and `version`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageQuarantineSpec {
    /// The image itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// All images of this name, with EC2's `*` and `?`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All images of this version, for example `v20260722`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why. It is shown wherever the image is refused.
    pub reason: String,
    /// What it is based on: links, events. One string is taken too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "one_or_many")]
    pub evidence: Option<Vec<String>>,
    /// Until when. Absent, until someone removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// What has to hold between the fields.
pub fn check(quarantine: &ImageQuarantine) -> Vec<Finding> {
    let ImageQuarantineSpec { id, name, version, reason, evidence: _, expires_at } =
        &quarantine.spec;
    let mut found = Vec::new();
    let subjects = [("id", id), ("name", name), ("version", version)];
    let named: Vec<&str> =
        subjects.iter().filter(|(_, value)| value.is_some()).map(|(field, _)| *field).collect();
    if named.len() != 1 {
        let got = if named.is_empty() { "none".to_owned() } else { named.join(" and ") };
        let finding = Finding::error(
            "spec",
            format!("expected exactly one of id, name and version, got {got}"),
        );
        found.push(finding.hint("write one object for each"));
    }
    for (field, value) in subjects {
        if value.as_deref().is_some_and(|it| it.trim().is_empty()) {
            found.push(Finding::error(format!("spec.{field}"), "cannot be empty"));
        }
    }
    if reason.trim().is_empty() {
        let finding = Finding::error("spec.reason", "cannot be empty");
        found.push(finding.hint("say why the image may not boot: others will read it"));
    }
    if let Some(text) = expires_at {
        found.extend(time::check("spec.expiresAt", text));
    }
    found
}
