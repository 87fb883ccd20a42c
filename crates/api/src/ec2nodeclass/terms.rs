//! How does a class select images, subnets, groups and reservations?
//!
//! A list of terms selects what any of them matches; a term matches where all its fields do.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::{crd::schema, meta::WireRequirement};

/// One way to select images. All fields of a term must match.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AmiSelectorTerm {
    /// A family and a version: `al2023@latest`, `al2023@v20260701`, `bottlerocket@v1.44.0`; `latest~1`
    /// is the release before the newest. Stands alone, and finds every variant (arm64, NVIDIA, Neuron)
    /// that the instance types need. Families: al2, al2023, bottlerocket, windows2019, windows2022,
    /// windows2025.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = (
            "self.matches('^[a-zA-Z0-9]+@.+$')",
            "'alias' is improperly formatted, must match the format 'family@version'",
        ),
        validation = (
            "self.split('@')[0] in ['al2','al2023','bottlerocket','windows2019','windows2022','windows2025']",
            "family is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025'",
        ),
        validation = (
            "self.split('@')[0] in ['windows2019','windows2022','windows2025'] ? self.matches('^[^@]*@latest(~[0-9]{1,2})?$') : true",
            "windows families may only specify version 'latest'",
        ),
        validation = (
            "!self.matches('^[a-zA-Z0-9]+@latest.') || self.matches('^[a-zA-Z0-9]+@latest~[0-9]{1,2}$')",
            "'alias' has no such version: write latest, or latest~1 for the release before the newest",
        ),
    )]
    pub alias: Option<String>,
    /// Tags of the image, at most 20; the value `*` matches any. Example: `{environment: production}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::selector_tags")]
    #[x_kube(validation = (
        "self.all(k, k != '' && self[k] != '')",
        "empty tag keys or values aren't supported",
    ))]
    pub tags: Option<BTreeMap<String, String>>,
    /// The image itself: `ami-0123456789abcdef0`. Stands without tags, name and owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^ami-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The image's name, which is not its tag `Name`. `*` stands for any characters and `?` for one or
    /// none. Example: `golden-al2023-*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub name: Option<String>,
    /// Whose image it is: the 12 digits of an account, `self`, `amazon` or `aws-marketplace`. Stands
    /// beside a name or tags. Unset, `self` and `amazon`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self == '' || self.matches('^([0-9]{12}|self|amazon|aws-marketplace|aws-backup-vault)$')",
        "owner is not one that EC2 knows: write the 12 digits of an account in quotes, self, amazon or aws-marketplace",
    ))]
    #[schemars(length(max = 64))]
    pub owner: Option<String>,
    /// The name or the ARN of an SSM parameter that holds the image's id. Example:
    /// `/platform/images/al2023/current`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub ssm_parameter: Option<String>,
    /// What nodes must be for these images to suit them, beside what the image itself demands; at most
    /// 100. Can only narrow. Example: `[{key: karpenter.k8s.aws/instance-gpu-count, operator: Exists}]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::image_requirements")]
    pub requirements: Vec<WireRequirement>,
}

/// One way to select subnets.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubnetSelectorTerm {
    /// Tags of the subnet, at most 20; the value `*` matches any. Example: `{my/discovery: blue}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::selector_tags")]
    #[x_kube(validation = (
        "self.all(k, k != '' && self[k] != '')",
        "empty tag keys or values aren't supported",
    ))]
    pub tags: Option<BTreeMap<String, String>>,
    /// The subnet itself: `subnet-0123456789abcdef0`. Needs no tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^subnet-[0-9a-z]+$"))]
    pub id: Option<String>,
}

/// One way to select security groups.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupSelectorTerm {
    /// Tags of the group, at most 20; the value `*` matches any. Example: `{my/discovery: blue}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::selector_tags")]
    #[x_kube(validation = (
        "self.all(k, k != '' && self[k] != '')",
        "empty tag keys or values aren't supported",
    ))]
    pub tags: Option<BTreeMap<String, String>>,
    /// The group itself: `sg-0123456789abcdef0`. Needs no tags and no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^sg-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The group's name, which is not its tag `Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub name: Option<String>,
}

/// One way to select capacity reservations.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservationSelectorTerm {
    /// Tags of the reservation, at most 20; the value `*` matches any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::selector_tags")]
    #[x_kube(validation = (
        "self.all(k, k != '' && self[k] != '')",
        "empty tag keys or values aren't supported",
    ))]
    pub tags: Option<BTreeMap<String, String>>,
    /// The reservation itself: `cr-0123456789abcdef0`. Needs nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^cr-[0-9a-z]+$"))]
    pub id: Option<String>,
    /// The account that owns it, 12 digits in quotes.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "ownerID")]
    #[schemars(regex(pattern = "^[0-9]{12}$"))]
    pub owner_id: Option<String>,
    /// Who may use the reservation. `open`: any instance that matches it. `targeted`: those that name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["open", "targeted"]))]
    pub instance_match_criteria: Option<String>,
}

/// One placement group, by its name or its id.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementGroupSelector {
    /// The group's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub name: Option<String>,
    /// The group itself: `pg-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = "^pg-[0-9a-z]+$"))]
    pub id: Option<String>,
}
