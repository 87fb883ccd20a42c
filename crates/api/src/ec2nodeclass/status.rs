//! What does a class answer?
//!
//! Karpenter's fields, and ours: which generation it speaks of, how old the images are, and which were
//! refused. Read as it comes: what a controller left out must not hide the rest.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{
    crd::schema,
    meta::{Condition, WireRequirement},
};

/// What the controller found out about the class.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassStatus {
    /// The `metadata.generation` that all of this speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The images that new nodes boot, the newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub amis: Option<Vec<StatusAmi>>,
    /// Images that matched and may not boot, with the reason, the newest 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    pub refused_images: Option<Vec<RefusedImage>>,
    /// How many images were refused for each reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::counts")]
    pub refused_counts: Option<BTreeMap<String, i64>>,
    /// The subnets that the selectors found, those with the most free addresses first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub subnets: Option<Vec<StatusSubnet>>,
    /// The security groups that the selectors found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub security_groups: Option<Vec<StatusSecurityGroup>>,
    /// The capacity reservations that the selectors found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub capacity_reservations: Option<Vec<StatusCapacityReservation>>,
    /// The instance profile that nodes have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// Whether nodes can be launched, and why not. `Ready` first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Option<Vec<Condition>>,
}

/// One image that new nodes boot.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["id", "requirements"]))]
pub struct StatusAmi {
    /// The image: `ami-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The image's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When the image was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Option<String>,
    /// What nodes must be for it to suit them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::found_requirements")]
    pub requirements: Option<Vec<WireRequirement>>,
    /// Whether its owner gave it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
}

/// One image that matched and may not boot.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["id", "reason"]))]
pub struct RefusedImage {
    /// The image: `ami-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The image's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why, in one word: `TooYoung`, `Quarantined`, `Superseded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32_768))]
    pub message: Option<String>,
    /// When that ends, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub until: Option<String>,
}

/// One subnet that was found.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["id", "zone"]))]
pub struct StatusSubnet {
    /// The subnet: `subnet-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its zone as this account calls it: `eu-central-1a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Its zone as all accounts call it: `euc1-az2`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "zoneID")]
    pub zone_id: Option<String>,
}

/// One security group that was found.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["id"]))]
pub struct StatusSecurityGroup {
    /// The group: `sg-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The group's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One capacity reservation that was found.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend(
    "required" = ["availabilityZone", "id", "instanceMatchCriteria", "instanceType", "ownerID"]
))]
pub struct StatusCapacityReservation {
    /// The zone that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// When it ends. Unset, when somebody ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub end_time: Option<String>,
    /// The reservation: `cr-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^cr-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// Who may use it: any instance that matches (`open`), or those that name it (`targeted`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["open", "targeted"]))]
    pub instance_match_criteria: Option<String>,
    /// The instance type that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Whether its owner may take it back at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruptible: Option<bool>,
    /// The account that owns it.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "ownerID")]
    #[schemars(regex(pattern = "^[0-9]{12}$"))]
    pub owner_id: Option<String>,
    /// An ordinary one (`default`), or one for a fixed time (`capacity-block`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["default", "capacity-block"], "default" = "default"))]
    pub reservation_type: Option<String>,
    /// Whether it is still good (`active`), or ends so soon that nothing is launched into it any more
    /// (`expiring`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["active", "expiring"], "default" = "active"))]
    pub state: Option<String>,
}
