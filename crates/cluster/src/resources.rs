//! Which kinds do we touch, and where are they?

use nodemolt_api::eyes::Watched;

use crate::transport::Resource;

const fn of(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Resource {
    Resource { group, version, kind, plural, namespaced: false }
}

const fn namespaced(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Resource {
    Resource { group, version, kind, plural, namespaced: true }
}

pub const OWN_CLASS: Resource = of("nodemolt.dev", "v1alpha1", "EC2NodeClass", "ec2nodeclasses");
pub const KARPENTER_CLASS: Resource =
    of("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses");
pub const POOL: Resource = of("karpenter.sh", "v1", "NodePool", "nodepools");
pub const CLAIM: Resource = of("karpenter.sh", "v1", "NodeClaim", "nodeclaims");
pub const NODE: Resource = of("", "v1", "Node", "nodes");
pub const POD: Resource = namespaced("", "v1", "Pod", "pods");
pub const NAMESPACE: Resource = of("", "v1", "Namespace", "namespaces");
pub const DAEMON_SET: Resource = namespaced("apps", "v1", "DaemonSet", "daemonsets");
pub const PDB: Resource = namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
pub const DISRUPTION_BUDGET: Resource =
    of("karpenter.sh", "v1alpha1", "NodeDisruptionBudget", "nodedisruptionbudgets");
pub const POLICY: Resource = of("nodemolt.dev", "v1alpha1", "ImagePolicy", "imagepolicies");
pub const QUARANTINE: Resource =
    of("nodemolt.dev", "v1alpha1", "ImageQuarantine", "imagequarantines");
pub const IMAGE: Resource =
    of("infrastructure.cluster.x-k8s.io", "v1beta1", "AWSImage", "awsimages");
pub const REPLACEMENT: Resource = of("nodemolt.dev", "v1alpha1", "Replacement", "replacements");
pub const LEDGER: Resource =
    of("nodemolt.dev", "v1alpha1", "DisruptionLedger", "disruptionledgers");
pub const VOLUME: Resource = of("", "v1", "PersistentVolume", "persistentvolumes");
pub const VOLUME_CLAIM: Resource =
    namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
pub const STORAGE_CLASS: Resource = of("storage.k8s.io", "v1", "StorageClass", "storageclasses");
pub const CSI_NODE: Resource = of("storage.k8s.io", "v1", "CSINode", "csinodes");
/// Not watched: whoever leads reads it and writes it.
pub const LEASE: Resource = namespaced("coordination.k8s.io", "v1", "Lease", "leases");

/// What is watched, and what the eyes call it.
pub const WATCHED: [(Resource, Watched); 19] = [
    (OWN_CLASS, Watched::OwnClass),
    (KARPENTER_CLASS, Watched::KarpenterClass),
    (POOL, Watched::Pool),
    (CLAIM, Watched::Claim),
    (NODE, Watched::Node),
    (POD, Watched::Pod),
    (NAMESPACE, Watched::Namespace),
    (DAEMON_SET, Watched::DaemonSet),
    (PDB, Watched::Pdb),
    (DISRUPTION_BUDGET, Watched::DisruptionBudget),
    (POLICY, Watched::Policy),
    (QUARANTINE, Watched::Quarantine),
    (IMAGE, Watched::Image),
    (REPLACEMENT, Watched::Replacement),
    (LEDGER, Watched::Ledger),
    (VOLUME, Watched::Volume),
    (VOLUME_CLAIM, Watched::VolumeClaim),
    (STORAGE_CLASS, Watched::StorageClass),
    (CSI_NODE, Watched::CsiNode),
];

/// What the eyes call it; `None` for what nobody watches.
pub fn watched(resource: Resource) -> Option<Watched> {
    // By the word that differs most: this is asked for every word of every watch.
    let mut all = WATCHED.iter();
    all.find(|(it, _)| it.kind == resource.kind && *it == resource).map(|(_, watched)| *watched)
}
