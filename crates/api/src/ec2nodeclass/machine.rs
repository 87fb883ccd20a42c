//! What is a node made of: volumes, network interfaces, metadata service, processor?

#![expect(clippy::struct_field_names, reason = "the fields are called what people write")]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// A whole number of Gi, Ti, G or T, up to 64 TB. Karpenter's pattern also takes a bare `Ti`, which is
/// no size, and not `18Ti`, which is one.
const VOLUME_SIZE: &str = "^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]|[1-4][0-9]|5[0-8])Ti|([1-9]|[1-5][0-9]|6[0-4])T)$";

/// One volume.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// The device as the image calls it: `/dev/xvda` for the first disk of AL2 and AL2023, `/dev/xvdb`
    /// for the data disk of Bottlerocket, `/dev/sda1` for Windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub device_name: Option<String>,
    /// Whether pods' files and container images are on this volume, so that its size counts as the
    /// node's storage. At most one has it. Unset, the family knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<bool>,
    /// The volume of EBS that the device is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = (
            "has(self.snapshotID) || has(self.volumeSize)",
            "snapshotID or volumeSize must be defined",
        ),
        validation = (
            "!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
            "snapshotID must be set when volumeInitializationRate is set",
        ),
    )]
    pub ebs: Option<Ebs>,
}

/// A volume of EBS.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ebs {
    /// Whether the volume goes when its machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether the volume is encrypted. Where the account encrypts by default it is anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Operations per second: gp3 3000 to 80000, io1 100 to 64000, io2 100 to 256000. Other types take
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// MiB per second, 125 to 2000. Only gp3 takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// The KMS key to encrypt with: its id, alias or ARN. Needs `encrypted: true`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "kmsKeyID")]
    #[schemars(length(max = 2048))]
    pub kms_key_id: Option<String>,
    /// The snapshot that the volume starts from: `snap-0123456789abcdef0`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "snapshotID")]
    #[schemars(length(max = 1024))]
    pub snapshot_id: Option<String>,
    /// MiB per second while the volume is filled from its snapshot, 100 to 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub volume_initialization_rate: Option<i32>,
    /// How large the volume is: 1Gi to 59000Gi, 1Ti to 58Ti, 1G to 64000G or 1T to 64T.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = VOLUME_SIZE))]
    pub volume_size: Option<String>,
    /// What sort of volume it is. gp3 for most; io1 and io2 need `iops`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"]))]
    pub volume_type: Option<String>,
}

/// One network interface.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The network card that it is on, from 0.
    #[schemars(range(min = 0))]
    pub network_card_index: i32,
    /// Its place on the card, from 0. The first interface is 0 on card 0.
    #[schemars(range(min = 0))]
    pub device_index: i32,
    /// `interface`: with an address. `efa-only`: an Elastic Fabric Adapter without one.
    #[schemars(extend("enum" = ["interface", "efa-only"]))]
    pub interface_type: String,
}

/// How the instance metadata service answers.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// Whether the service answers at all. Unset, `enabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["enabled", "disabled"], "default" = "enabled"))]
    pub http_endpoint: Option<String>,
    /// Whether the service answers over IPv6, too. Unset, `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "httpProtocolIPv6")]
    #[schemars(extend("enum" = ["enabled", "disabled"], "default" = "disabled"))]
    pub http_protocol_ipv6: Option<String>,
    /// How many hops a token travels, 1 to 64. With 1, the default, only the node itself gets one; 2
    /// lets pods have the node's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    pub http_put_response_hop_limit: Option<i64>,
    /// `required`, the default: only with a token, which is version 2 of the service. `optional`: also without one,
    /// which any request that a pod can be tricked into may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["required", "optional"], "default" = "required"))]
    pub http_tokens: Option<String>,
}

/// When idle connections are forgotten, in seconds. At least one is set.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTracking {
    /// Seconds after which an idle TCP connection is forgotten, 60 to 432000, which is five days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 432_000))]
    pub tcp_established_timeout: Option<i32>,
    /// Seconds after which an idle UDP flow with more than one request is forgotten, 60 to 180.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 180))]
    pub udp_stream_timeout: Option<i32>,
    /// Seconds after which any other idle UDP flow is forgotten, 30 to 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 60))]
    pub udp_timeout: Option<i32>,
}

/// What of the processor is switched on.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// How many cores, at least 1, as the instance type allows. Stands together with `threadsPerCore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub core_count: Option<i32>,
    /// Threads of each core: 1 switches hyper-threading off, 2 leaves it on. Stands together with
    /// `coreCount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2))]
    pub threads_per_core: Option<i32>,
    /// Whether AMD's SEV-SNP encrypts the machine's memory. Only some types of AMD have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["enabled", "disabled"]))]
    pub amd_sev_snp: Option<String>,
    /// Whether virtual machines can run inside the node. Only some types have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["enabled", "disabled"]))]
    pub nested_virtualization: Option<String>,
}
