//! How does the AWS command line print images and parameters?
//!
//! The members in its order, and only those that AWS sends: what is not known of an image is
//! absent from its answer, not empty.

use jiff::civil::DateTime;
use serde::Serialize;

use super::dice::{Dice, ec2_id};

/// The one region of the examples.
pub(crate) const REGION: &str = "us-west-2";
/// The account that `self` means in the examples.
pub(crate) const OWN_ACCOUNT: &str = "111122223333";

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ImagesAnswer {
    pub(crate) images: Vec<Image>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
#[expect(clippy::struct_field_names, reason = "the members are called as EC2 calls them")]
pub(crate) struct Image {
    pub(crate) platform_details: &'static str,
    pub(crate) usage_operation: &'static str,
    pub(crate) block_device_mappings: Vec<BlockDevice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) ena_support: bool,
    pub(crate) hypervisor: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image_owner_alias: Option<&'static str>,
    pub(crate) name: String,
    pub(crate) root_device_name: &'static str,
    pub(crate) root_device_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sriov_net_support: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<Tag>,
    pub(crate) virtualization_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) boot_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tpm_support: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deprecation_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) imds_support: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_image_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source_image_region: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image_allowed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_ssm_parameter_name: Option<String>,
    pub(crate) image_id: String,
    pub(crate) image_location: String,
    pub(crate) state: &'static str,
    pub(crate) owner_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) creation_date: Option<String>,
    pub(crate) public: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) product_codes: Vec<ProductCode>,
    pub(crate) architecture: &'static str,
    pub(crate) image_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<&'static str>,
}

impl Image {
    /// A Linux image of today with one disk, available, private and without an opinion on how it
    /// boots. What is different about an image is said where it is made.
    pub(crate) fn linux(
        owner_id: &'static str,
        name: String,
        architecture: &'static str,
        created_at: DateTime,
    ) -> Self {
        let of = format!("{owner_id}/{name}");
        Self {
            platform_details: "Linux/UNIX",
            usage_operation: "RunInstances",
            block_device_mappings: vec![BlockDevice::of(&of, "/dev/xvda", 20, "gp3")],
            description: None,
            ena_support: true,
            hypervisor: "xen",
            image_owner_alias: None,
            root_device_name: "/dev/xvda",
            root_device_type: "ebs",
            sriov_net_support: Some("simple"),
            tags: Vec::new(),
            virtualization_type: "hvm",
            boot_mode: None,
            tpm_support: None,
            deprecation_time: None,
            imds_support: Some("v2.0"),
            source_image_id: None,
            source_image_region: None,
            image_allowed: None,
            public_ssm_parameter_name: None,
            image_id: ec2_id("ami", &of),
            image_location: of,
            name,
            state: "available",
            owner_id,
            creation_date: Some(ec2_time(created_at)),
            public: false,
            product_codes: Vec::new(),
            architecture,
            image_type: "machine",
            platform: None,
        }
    }

    /// Public under an alias. EC2 deprecates public images two years after their creation.
    #[must_use]
    pub(crate) fn public_as(mut self, alias: &'static str, created_at: DateTime) -> Self {
        self.public = true;
        self.image_owner_alias = Some(alias);
        self.image_location = format!("{alias}/{}", self.name);
        self.deprecation_time = Some(ec2_time(two_years_after(created_at)));
        self
    }

    #[must_use]
    pub(crate) fn tagged(mut self, tags: &[(&'static str, &str)]) -> Self {
        self.tags.extend(tags.iter().map(|(key, value)| Tag { key, value: (*value).to_owned() }));
        self
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct BlockDevice {
    device_name: &'static str,
    ebs: Ebs,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Ebs {
    delete_on_termination: bool,
    snapshot_id: String,
    volume_size: u32,
    volume_type: &'static str,
    encrypted: bool,
}

impl BlockDevice {
    pub(crate) fn of(
        image: &str,
        device_name: &'static str,
        volume_size: u32,
        volume_type: &'static str,
    ) -> Self {
        let snapshot_id = ec2_id("snap", &format!("{image} {device_name}"));
        let ebs = Ebs {
            delete_on_termination: true,
            snapshot_id,
            volume_size,
            volume_type,
            encrypted: false,
        };
        Self { device_name, ebs }
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Tag {
    key: &'static str,
    value: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ProductCode {
    pub(crate) product_code_id: &'static str,
    pub(crate) product_code_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ParametersAnswer {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) invalid_parameters: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Parameter {
    pub(crate) name: String,
    #[serde(rename = "Type")]
    pub(crate) kind: &'static str,
    pub(crate) value: String,
    pub(crate) version: usize,
    pub(crate) last_modified_date: String,
    #[serde(rename = "ARN")]
    pub(crate) arn: String,
    pub(crate) data_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct HistoryAnswer {
    pub(crate) parameters: Vec<PastParameter>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct PastParameter {
    pub(crate) name: String,
    #[serde(rename = "Type")]
    pub(crate) kind: &'static str,
    pub(crate) last_modified_date: String,
    pub(crate) value: String,
    pub(crate) version: usize,
    pub(crate) labels: Vec<String>,
    pub(crate) tier: &'static str,
    pub(crate) policies: Vec<String>,
    pub(crate) data_type: &'static str,
}

/// `2026-11-12T09:14:03.000Z`
pub(crate) fn ec2_time(at: DateTime) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

/// `2026-11-12T10:01:22.115000+00:00`
pub(crate) fn ssm_time(at: DateTime) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// Some moment of `20261112`: builds start in the night, and end when they end.
pub(crate) fn during(day: &str, of: &str) -> DateTime {
    let date = jiff::civil::Date::strptime("%Y%m%d", day).expect("our own dates are dates");
    let second = 5 * 3600 + Dice::of(of).below(11 * 3600);
    date.at(0, 0, 0, 0).saturating_add(jiff::SignedDuration::from_secs(second))
}

fn two_years_after(at: DateTime) -> DateTime {
    at.saturating_add(jiff::Span::new().years(2))
}
