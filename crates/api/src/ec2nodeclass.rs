//! What does a class say on the wire?
//!
//! Karpenter's `EC2NodeClass` v1, whole, and four things of ours: `amiMinimumAge`, `requirements` of
//! a selector term, `userDataPlacement`, and the rest of `cpuOptions`.
//!
//! Values are kept as they were written. What has to hold between them is in [`check`]; what they
//! mean is for the core to say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::{IntOrString, ObjectMeta, WireRequirement, open_struct};

pub use check::check;

mod check;
mod node_settings;

/// The kind's name.
pub const KIND: &str = "EC2NodeClass";
/// Karpenter's group and version; also what v1beta1 is shown as.
pub const KARPENTER_V1: &str = "karpenter.k8s.aws/v1";
/// Our group and version, with the same fields.
pub const NODEMOLT_V1ALPHA1: &str = "nodemolt.dev/v1alpha1";

/// What new nodes boot, and with which settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClass {
    /// [`KARPENTER_V1`] or [`NODEMOLT_V1ALPHA1`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Its name and labels.
    pub metadata: ObjectMeta,
    /// What a person asks for.
    pub spec: EC2NodeClassSpec,
    /// What a controller answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<EC2NodeClassStatus>,
}

/// What a person asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassSpec {
    /// Where nodes may be. A subnet that any term matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_selector_terms: Option<Vec<SubnetSelectorTerm>>,
    /// Which security groups nodes have: all that any term matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_group_selector_terms: Option<Vec<SecurityGroupSelectorTerm>>,
    /// Which capacity reservations nodes may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_reservation_selector_terms: Option<Vec<CapacityReservationSelectorTerm>>,
    /// Which placement group nodes start in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether nodes have a public address. Unset, the subnet decides.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "associatePublicIPAddress")]
    pub associate_public_ip_address: Option<bool>,
    /// How many address prefixes the primary interface has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_prefix_count: Option<i32>,
    /// Which images nodes may boot: those that any term matches. Absent, the family's newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_selector_terms: Option<Vec<AmiSelectorTerm>>,
    /// How old an image must be before nodes boot it, for example `7d` or `2w`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_minimum_age: Option<String>,
    /// Who the image is built by, hence how a node is told to join. An alias says it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<String>,
    /// What the node runs or reads at its first boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// Where `userData` stands relative to what we tell the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data_placement: Option<String>,
    /// The IAM role of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The instance profile of nodes, in place of `role`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// Tags on everything launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Settings of the kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<Kubelet>,
    /// The volumes of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// `RAID0`: what to do with local disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<String>,
    /// The network interfaces of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// Whether metrics come every minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// How pods and processes reach the instance metadata service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<MetadataOptions>,
    /// When idle connections are forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_tracking: Option<ConnectionTracking>,
    /// What of the processor is switched on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
    /// A context that EC2 Fleet takes along, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

impl EC2NodeClassSpec {
    /// The terms that were written, if any.
    pub fn terms(&self) -> &[AmiSelectorTerm] {
        self.ami_selector_terms.as_deref().unwrap_or_default()
    }

    /// The alias that a family without terms stands for, for example `al2@latest`.
    pub fn implied_alias(&self) -> Option<String> {
        let family = self.ami_family.as_deref()?;
        let known = FAMILIES.iter().find(|(_, name)| *name == family);
        match &self.ami_selector_terms {
            Some(_) => None,
            None => known.map(|(alias, _)| format!("{alias}@latest")),
        }
    }
}

/// The families that have an alias: as an alias says it, and as `amiFamily` says it.
pub(crate) const FAMILIES: [(&str, &str); 6] = [
    ("al2", "AL2"),
    ("al2023", "AL2023"),
    ("bottlerocket", "Bottlerocket"),
    ("windows2019", "Windows2019"),
    ("windows2022", "Windows2022"),
    ("windows2025", "Windows2025"),
];

/// One way to select images. All fields of a term must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AmiSelectorTerm {
    /// A family and a version, for example `al2023@latest` or `bottlerocket@v1.20.4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Tags of the image. The value `*` matches any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The image itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The image's name, not its tag `Name`. `*` and `?` are EC2's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whose image: an account, `self`, `amazon` or `aws-marketplace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The name or ARN of a parameter that holds the image's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssm_parameter: Option<String>,
    /// What nodes must be for these images to suit them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<WireRequirement>,
}

/// One way to select subnets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubnetSelectorTerm {
    /// Tags of the subnet. The value `*` matches any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The subnet itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// One way to select security groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupSelectorTerm {
    /// Tags of the group. The value `*` matches any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The group itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The group's name, not its tag `Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One way to select capacity reservations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservationSelectorTerm {
    /// Tags of the reservation. The value `*` matches any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The reservation itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The account that owns it.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "ownerID")]
    pub owner_id: Option<String>,
    /// `open` or `targeted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<String>,
}

/// One placement group, by name or by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementGroupSelector {
    /// The group's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The group itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// One volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// The device as the image calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// Whether pods' storage is on this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<bool>,
    /// What EBS makes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<Ebs>,
}

/// A volume of EBS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ebs {
    /// Whether it goes with the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether it is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// MiB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// The key it is encrypted with.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "kmsKeyID")]
    pub kms_key_id: Option<String>,
    /// What it starts from.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "snapshotID")]
    pub snapshot_id: Option<String>,
    /// MiB per second while it is filled from its snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_initialization_rate: Option<i32>,
    /// Its size, for example `20Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<String>,
    /// `standard`, `io1`, `io2`, `gp2`, `sc1`, `st1` or `gp3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<String>,
}

/// One network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The card it is on.
    pub network_card_index: i32,
    /// Its place on the card.
    pub device_index: i32,
    /// `interface` or `efa-only`.
    pub interface_type: String,
}

/// How the instance metadata service answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// `enabled` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_endpoint: Option<String>,
    /// `enabled` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "httpProtocolIPv6")]
    pub http_protocol_ipv6: Option<String>,
    /// How many hops its answers travel. Two reach pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_put_response_hop_limit: Option<i64>,
    /// `required` (version 2 only) or `optional`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_tokens: Option<String>,
}

/// When idle connections are forgotten, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTracking {
    /// 60 to 432000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_established_timeout: Option<i32>,
    /// 60 to 180.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_stream_timeout: Option<i32>,
    /// 30 to 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_timeout: Option<i32>,
}

/// What of the processor is switched on. Karpenter has only the last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// How many cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_count: Option<i32>,
    /// 1 switches hyper-threading off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_per_core: Option<i32>,
    /// `enabled` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amd_sev_snp: Option<String>,
    /// `enabled` or `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_virtualization: Option<String>,
}

open_struct! {
    /// Settings of the kubelet: the twelve that Karpenter understands, and the others as they came.
    pub struct Kubelet {
        /// The cluster's DNS servers.
        cluster_dns: Vec<String> = "clusterDNS",
        /// How many pods fit, or an expression for it.
        max_pods: IntOrString = "maxPods",
        /// How many pods fit per core.
        pods_per_core: i32 = "podsPerCore",
        /// What the system keeps.
        system_reserved: BTreeMap<String, String> = "systemReserved",
        /// What Kubernetes keeps.
        kube_reserved: BTreeMap<String, String> = "kubeReserved",
        /// When pods are evicted at once.
        eviction_hard: BTreeMap<String, String> = "evictionHard",
        /// When pods are evicted after a while.
        eviction_soft: BTreeMap<String, String> = "evictionSoft",
        /// After which while.
        eviction_soft_grace_period: BTreeMap<String, String> = "evictionSoftGracePeriod",
        /// The longest grace an evicted pod gets, in seconds.
        eviction_max_pod_grace_period: i32 = "evictionMaxPodGracePeriod",
        /// How full the disk is when unused container images go, in percent.
        image_gc_high_threshold_percent: i32 = "imageGCHighThresholdPercent",
        /// How full it may stay, in percent.
        image_gc_low_threshold_percent: i32 = "imageGCLowThresholdPercent",
        /// Whether CPU limits are enforced.
        cpu_cfs_quota: bool = "cpuCFSQuota",
    }
}

open_struct! {
    /// What a controller answered. What a launch needs is read; the rest is kept.
    pub struct EC2NodeClassStatus {
        /// The images that nodes may boot.
        amis: Vec<StatusAmi> = "amis",
        /// The security groups that the selectors found.
        security_groups: Vec<StatusSecurityGroup> = "securityGroups",
        /// The instance profile that was made for the role.
        instance_profile: String = "instanceProfile",
        /// The capacity reservations that the selectors found.
        capacity_reservations: Vec<StatusCapacityReservation> = "capacityReservations",
    }
}

open_struct! {
    /// One security group that was found.
    pub struct StatusSecurityGroup {
        /// The group.
        id: String = "id",
        /// Its name.
        name: String = "name",
    }
}

open_struct! {
    /// One capacity reservation that was found.
    pub struct StatusCapacityReservation {
        /// The reservation.
        id: String = "id",
        /// `default` or `capacity-block`.
        reservation_type: String = "reservationType",
        /// Whether its owner may take it back at any time.
        interruptible: bool = "interruptible",
    }
}

open_struct! {
    /// One image that nodes may boot.
    pub struct StatusAmi {
        /// The image.
        id: String = "id",
        /// Its name.
        name: String = "name",
        /// What nodes must be for it to suit them.
        requirements: Vec<WireRequirement> = "requirements",
        /// Whether its owner gave it up.
        deprecated: bool = "deprecated",
    }
}
