//! Which image may not boot, whatever anyone else says?
//!
//! One object per image, name or version, so that what one person or we ourselves halted is not
//! undone by someone else's file.

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{
    crd::{self, Crd},
    meta::{Condition, Object, one_or_many},
    problem::Finding,
    shape, time,
};

/// The kind's name.
pub const KIND: &str = "ImageQuarantine";
/// Our group and version.
pub const NODEMOLT_V1ALPHA1: &str = "nodemolt.dev/v1alpha1";

/// How the kind is declared to the API server.
pub const CRD: Crd = Crd {
    name: "imagequarantines.nodemolt.dev",
    group: "nodemolt.dev",
    kind: KIND,
    standalone_only: false,
    definition: || crd::finish(ImageQuarantineObject::crd()),
};

/// Images that may not boot.
pub type ImageQuarantine = Object<ImageQuarantineSpec, ImageQuarantineStatus>;

/// Which images, and why. Write exactly one of `id`, `name` and `version`.
#[derive(
    CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize,
)]
#[kube(
    group = "nodemolt.dev",
    version = "v1alpha1",
    kind = "ImageQuarantine",
    plural = "imagequarantines",
    root = "ImageQuarantineObject",
    status = "ImageQuarantineStatus",
    derive = "PartialEq",
    doc = "ImageQuarantine keeps images from booting, whatever a class or a policy says: one object for each image, name or version, written by a person or by nodemolt itself. Removing it, or its expiry, lets them boot again.",
    category = "nodemolt",
    shortname = "imgq",
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".spec['id','name','version']",
        description = "Which images: an id, a pattern of names, or a version"
    ),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".spec.reason",
        description = "Why they may not boot"
    ),
    printcolumn(
        name = "Expires",
        type_ = "string",
        json_path = ".spec.expiresAt",
        description = "Until when; nothing means until it is removed"
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
        description = "Why, in a word: an expired one holds nothing back"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(validation = (
    "[has(self.id), has(self.name), has(self.version)].filter(it, it).size() == 1",
    "write exactly one of `id`, `name` and `version`: one object for each"
))]
#[serde(rename_all = "camelCase")]
pub struct ImageQuarantineSpec {
    /// The image itself, for example `ami-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::image_id")]
    pub id: Option<String>,
    /// All images of this name, with EC2's `*` (any characters) and `?` (one or none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::name_pattern")]
    pub name: Option<String>,
    /// All images of this version, for example `v20260722` or `1.52.*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::name_pattern")]
    pub version: Option<String>,
    /// Why. It is shown wherever the image is refused.
    #[schemars(schema_with = "shape::sentence")]
    pub reason: String,
    /// What it is based on: links, events, measurements.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "one_or_many")]
    #[schemars(
        length(max = 50),
        inner(length(max = 1024)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub evidence: Option<Vec<String>>,
    /// Until when: a time such as `2026-08-01T12:00:00Z`, or a date, whose start in UTC is meant.
    /// Absent, until someone removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::moment")]
    pub expires_at: Option<String>,
}

/// What the operator found out about a quarantine.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageQuarantineStatus {
    /// The `metadata.generation` that this was found out for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// How many known images it keeps from booting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub images: Option<i64>,
    /// How many nodes run one of them now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub nodes: Option<i64>,
    /// `Ready` first: the quarantine is read and holds. Reason `Expired`: it does not hold any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::conditions")]
    pub conditions: Option<Vec<Condition>>,
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
        let any = |it: &str| it.contains('*') && it.bytes().all(|it| matches!(it, b'*' | b'?'));
        if field != "id" && value.as_deref().is_some_and(any) {
            let message = format!("is the {field} of every image: no node could be launched");
            let hint = "name what they have in common, or pause nodemolt in the DisruptionLedger";
            found.push(Finding::warning(format!("spec.{field}"), message).hint(hint));
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
