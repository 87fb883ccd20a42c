//! Which kinds does the simulated API server serve?

use nodemolt_cluster::transport::Resource;

pub const NODE: Resource = wide("", "v1", "Node", "nodes");
pub const POD: Resource = narrow("", "v1", "Pod", "pods");
pub const NAMESPACE: Resource = wide("", "v1", "Namespace", "namespaces");
pub const VOLUME: Resource = wide("", "v1", "PersistentVolume", "persistentvolumes");
pub const VOLUME_CLAIM: Resource =
    narrow("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
pub const PDB: Resource = narrow("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
pub const DAEMON_SET: Resource = narrow("apps", "v1", "DaemonSet", "daemonsets");
pub const DEPLOYMENT: Resource = narrow("apps", "v1", "Deployment", "deployments");
pub const REPLICA_SET: Resource = narrow("apps", "v1", "ReplicaSet", "replicasets");
pub const STATEFUL_SET: Resource = narrow("apps", "v1", "StatefulSet", "statefulsets");
pub const JOB: Resource = narrow("batch", "v1", "Job", "jobs");
pub const STORAGE_CLASS: Resource = wide("storage.k8s.io", "v1", "StorageClass", "storageclasses");
pub const CSI_NODE: Resource = wide("storage.k8s.io", "v1", "CSINode", "csinodes");
pub const LEASE: Resource = narrow("coordination.k8s.io", "v1", "Lease", "leases");
pub const PRIORITY_CLASS: Resource =
    wide("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses");

pub const CLASS: Resource = wide("nodemolt.dev", "v1alpha1", "EC2NodeClass", "ec2nodeclasses");
/// The same kind for manifests of Karpenter, where that is not installed.
pub const KARPENTER_CLASS: Resource =
    wide("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses");
pub const POOL: Resource = wide("karpenter.sh", "v1", "NodePool", "nodepools");
pub const CLAIM: Resource = wide("karpenter.sh", "v1", "NodeClaim", "nodeclaims");
pub const DISRUPTION_BUDGET: Resource =
    wide("karpenter.sh", "v1alpha1", "NodeDisruptionBudget", "nodedisruptionbudgets");
pub const POLICY: Resource = wide("nodemolt.dev", "v1alpha1", "ImagePolicy", "imagepolicies");
pub const QUARANTINE: Resource =
    wide("nodemolt.dev", "v1alpha1", "ImageQuarantine", "imagequarantines");
pub const REPLACEMENT: Resource = wide("nodemolt.dev", "v1alpha1", "Replacement", "replacements");
pub const LEDGER: Resource =
    wide("nodemolt.dev", "v1alpha1", "DisruptionLedger", "disruptionledgers");
/// Served in other versions, too; all are stored as one.
pub const IMAGE: Resource =
    wide("infrastructure.cluster.x-k8s.io", "v1beta1", "AWSImage", "awsimages");

/// So many of [`ALL`] are Kubernetes' own.
pub const BUILT_IN: usize = 15;

/// The versions of [`IMAGE`].
pub const IMAGE_VERSIONS: [&str; 3] = ["v1alpha3", "v1alpha4", "v1beta1"];

/// All of them. Those of Kubernetes itself first.
pub const ALL: [Resource; 25] = [
    NODE,
    POD,
    NAMESPACE,
    VOLUME,
    VOLUME_CLAIM,
    PDB,
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    JOB,
    STORAGE_CLASS,
    CSI_NODE,
    LEASE,
    PRIORITY_CLASS,
    CLASS,
    KARPENTER_CLASS,
    POOL,
    CLAIM,
    DISRUPTION_BUDGET,
    POLICY,
    QUARANTINE,
    REPLACEMENT,
    LEDGER,
    IMAGE,
];

/// What belongs to the whole cluster.
const fn wide(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Resource {
    Resource { group, version, kind, plural, namespaced: false }
}

/// What lives in a namespace.
const fn narrow(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Resource {
    Resource { group, version, kind, plural, namespaced: true }
}

/// Whether it is one of Kubernetes' own.
pub fn is_built_in(resource: Resource) -> bool {
    ALL.iter().take(BUILT_IN).any(|it| *it == resource)
}

/// `apiVersion`, as objects write it.
pub fn api_version(resource: Resource) -> String {
    if resource.group.is_empty() {
        resource.version.to_owned()
    } else {
        format!("{}/{}", resource.group, resource.version)
    }
}

/// The kind that an object says it is; `None` for one that is not served.
pub fn of_object(api_version: &str, kind: &str) -> Option<Resource> {
    let (group, _) = api_version.split_once('/').unwrap_or(("", api_version));
    ALL.into_iter().find(|it| it.group == group && it.kind == kind)
}

/// The kinds that people mean by this word: one, or several of a name.
pub fn called(word: &str) -> impl Iterator<Item = Resource> {
    ALL.into_iter().filter(move |it| {
        it.kind.eq_ignore_ascii_case(word) || it.plural.eq_ignore_ascii_case(word)
    })
}
