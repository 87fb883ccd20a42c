//! What is the kubelet told?
//!
//! The twelve settings that Karpenter understands, and the others as they came: the map is open, as in
//! Karpenter's coming release, and the rules of today's fields still hold.

use std::{borrow::Cow, collections::BTreeMap};

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::{
    crd::schema,
    meta::{IntOrString, open_struct},
};

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

impl JsonSchema for Kubelet {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Kubelet".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Understood::json_schema(generator);
        schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        schema
    }
}

/// The schema of what is understood. Never held: [`Kubelet`] is what is read.
#[derive(KubeSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "has(self.imageGCHighThresholdPercent) && has(self.imageGCLowThresholdPercent) ?  self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent  : true",
        "imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",
    ),
    validation = (
        "has(self.evictionSoft) ? self.evictionSoft.all(e, has(self.evictionSoftGracePeriod) && (e in self.evictionSoftGracePeriod)):true",
        "evictionSoft OwnerKey does not have a matching evictionSoftGracePeriod",
    ),
    validation = (
        "has(self.evictionSoftGracePeriod) ? self.evictionSoftGracePeriod.all(e, has(self.evictionSoft) && (e in self.evictionSoft)):true",
        "evictionSoftGracePeriod OwnerKey does not have a matching evictionSoft",
    ),
)]
struct Understood {
    /// Addresses of the cluster's DNS servers. Unset, found in the cluster. Example: `[10.100.0.10]`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "clusterDNS")]
    #[schemars(length(max = 20), inner(length(max = 256)))]
    cluster_dns: Option<Vec<String>>,
    /// How many pods fit on a node, at least 0. Unset, as many as the network of its type has addresses
    /// for. Example: `110`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "max_pods")]
    max_pods: Option<IntOrString>,
    /// How many pods fit per core, at least 0; `maxPods` is the most. Unset or 0, no such limit.
    /// Bottlerocket does not take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pods_per_core: Option<i32>,
    /// What the system keeps for itself, of cpu, memory, ephemeral-storage and pid. Example:
    /// `{cpu: 100m, memory: 100Mi}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::reserved")]
    #[x_kube(
        validation = (
            "self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')",
            "valid keys for systemReserved are ['cpu','memory','ephemeral-storage','pid']",
        ),
        validation = (
            "self.all(x, !self[x].startsWith('-'))",
            "systemReserved value cannot be a negative resource quantity",
        ),
    )]
    system_reserved: Option<BTreeMap<String, String>>,
    /// What Kubernetes keeps for itself, of cpu, memory, ephemeral-storage and pid. Unset, as the node's
    /// type needs. Example: `{cpu: 200m, memory: 500Mi}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::reserved")]
    #[x_kube(
        validation = (
            "self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')",
            "valid keys for kubeReserved are ['cpu','memory','ephemeral-storage','pid']",
        ),
        validation = (
            "self.all(x, !self[x].startsWith('-'))",
            "kubeReserved value cannot be a negative resource quantity",
        ),
    )]
    kube_reserved: Option<BTreeMap<String, String>>,
    /// When pods are evicted at once: less than this is left. A percentage or an amount. Example:
    /// `{memory.available: 5%, nodefs.available: 10%}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::thresholds")]
    #[x_kube(
        validation = (
            "self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])",
            "valid keys for evictionHard are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']",
        ),
        validation = (
            "self.all(x, self[x] != '' && !self[x].startsWith('-'))",
            "evictionHard value cannot be empty or a negative resource quantity",
        ),
    )]
    eviction_hard: Option<BTreeMap<String, String>>,
    /// When pods are evicted after a while: less than this is left for `evictionSoftGracePeriod`, which
    /// has the same keys. Example: `{memory.available: 500Mi}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::thresholds")]
    #[x_kube(
        validation = (
            "self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])",
            "valid keys for evictionSoft are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']",
        ),
        validation = (
            "self.all(x, self[x] != '' && !self[x].startsWith('-'))",
            "evictionSoft value cannot be empty or a negative resource quantity",
        ),
    )]
    eviction_soft: Option<BTreeMap<String, String>>,
    /// For how long less must be left before pods are evicted, with the keys of `evictionSoft`. Example:
    /// `{memory.available: 1m30s}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::grace_periods")]
    #[x_kube(
        validation = (
            "self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])",
            "valid keys for evictionSoftGracePeriod are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']",
        ),
    )]
    eviction_soft_grace_period: Option<BTreeMap<String, String>>,
    /// The longest that an evicted pod may take to end, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eviction_max_pod_grace_period: Option<i32>,
    /// How full the disk is, in percent, when unused container images are removed, 0 to 100. More than
    /// `imageGCLowThresholdPercent`. Unset, 85.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "imageGCHighThresholdPercent"
    )]
    #[schemars(range(min = 0, max = 100))]
    image_gc_high_threshold_percent: Option<i32>,
    /// How full the disk may stay, in percent, when unused container images are removed, 0 to 100.
    /// Unset, 80.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "imageGCLowThresholdPercent"
    )]
    #[schemars(range(min = 0, max = 100))]
    image_gc_low_threshold_percent: Option<i32>,
    /// Whether CPU limits of containers are enforced. Unset, yes.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "cpuCFSQuota")]
    cpu_cfs_quota: Option<bool>,
}

/// Karpenter's coming release takes an expression here, too; today's rule is for numbers.
fn max_pods(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
        "minimum": 0,
        "maximum": i32::MAX,
        "maxLength": 1024,
    })
}
