//! What are the labels called by which nodes are told apart?
//!
//! Constants for every label that we read or write, the old names that mean the same thing, and which
//! of them a machine has before it runs (its type decides them) or only by where and how it was bought.

pub const ARCH: &str = "kubernetes.io/arch";
pub const OS: &str = "kubernetes.io/os";
pub const HOSTNAME: &str = "kubernetes.io/hostname";
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
pub const REGION: &str = "topology.kubernetes.io/region";
pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const ZONE_ID: &str = "topology.k8s.aws/zone-id";
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
pub const NODEPOOL: &str = "karpenter.sh/nodepool";
pub const NODECLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
pub const CAPACITY_RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
pub const CAPACITY_RESERVATION_TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
pub const CAPACITY_RESERVATION_INTERRUPTIBLE: &str =
    "karpenter.k8s.aws/capacity-reservation-interruptible";
pub const TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
pub const PLACEMENT_GROUP_ID: &str = "karpenter.k8s.aws/placement-group-id";
pub const PLACEMENT_GROUP_PARTITION: &str = "karpenter.k8s.aws/placement-group-partition";

pub const HYPERVISOR: &str = "karpenter.k8s.aws/instance-hypervisor";
pub const ENCRYPTION_IN_TRANSIT: &str =
    "karpenter.k8s.aws/instance-encryption-in-transit-supported";
pub const CATEGORY: &str = "karpenter.k8s.aws/instance-category";
pub const CAPABILITY_FLEX: &str = "karpenter.k8s.aws/instance-capability-flex";
pub const FAMILY: &str = "karpenter.k8s.aws/instance-family";
pub const GENERATION: &str = "karpenter.k8s.aws/instance-generation";
pub const LOCAL_NVME: &str = "karpenter.k8s.aws/instance-local-nvme";
pub const SIZE: &str = "karpenter.k8s.aws/instance-size";
pub const CPU: &str = "karpenter.k8s.aws/instance-cpu";
pub const CPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-cpu-manufacturer";
pub const CPU_CLOCK_MHZ: &str = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
pub const MEMORY: &str = "karpenter.k8s.aws/instance-memory";
pub const EBS_BANDWIDTH: &str = "karpenter.k8s.aws/instance-ebs-bandwidth";
pub const NETWORK_BANDWIDTH: &str = "karpenter.k8s.aws/instance-network-bandwidth";
pub const GPU_NAME: &str = "karpenter.k8s.aws/instance-gpu-name";
pub const GPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-gpu-manufacturer";
pub const GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
pub const GPU_MEMORY: &str = "karpenter.k8s.aws/instance-gpu-memory";
pub const ACCELERATOR_NAME: &str = "karpenter.k8s.aws/instance-accelerator-name";
pub const ACCELERATOR_MANUFACTURER: &str = "karpenter.k8s.aws/instance-accelerator-manufacturer";
pub const ACCELERATOR_COUNT: &str = "karpenter.k8s.aws/instance-accelerator-count";

/// Old names, and the one we use. Users still write the old ones in requirements and selectors.
const ALIASES: [(&str, &str); 7] = [
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("topology.ebs.csi.aws.com/zone", ZONE),
    ("karpenter.sh/provisioner-name", NODEPOOL),
];

/// The name we use for what `key` means.
pub fn normalise(key: &str) -> &str {
    ALIASES.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new)
}

/// Labels that a node has by where and how it was bought. An image has no opinion on them.
const BY_OFFERING: [&str; 10] = [
    ZONE,
    ZONE_ID,
    REGION,
    CAPACITY_TYPE,
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    TENANCY,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
];

/// Whether the label is decided by the offering (zone, capacity type, …) and not by the type.
pub fn by_offering(key: &str) -> bool {
    BY_OFFERING.contains(&normalise(key))
}

/// What a term of node affinity calls a node's name.
pub const NAME_FIELD: &str = "metadata.name";
/// Groups whose labels are not for people to give, save those that are known.
const GUARDED: [&str; 2] = ["karpenter.sh", "karpenter.k8s.aws"];

/// Whether no pool can be written such that its nodes have another value: each node has its own name, it is of the
/// pool that it is of, and what controllers write on their nodes is theirs.
pub fn not_for_pools(key: &str) -> bool {
    let key = normalise(key);
    if [HOSTNAME, NODEPOOL, NAME_FIELD].contains(&key) {
        return true;
    }
    let known = key == NODECLASS || by_offering(key) || by_type(key);
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    !known && GUARDED.iter().any(|it| domain.ends_with(it))
}

/// Labels that every instance type either has or is known to lack.
pub const BY_TYPE: [&str; 25] = [
    ARCH,
    OS,
    INSTANCE_TYPE,
    WINDOWS_BUILD,
    HYPERVISOR,
    ENCRYPTION_IN_TRANSIT,
    CATEGORY,
    CAPABILITY_FLEX,
    FAMILY,
    GENERATION,
    LOCAL_NVME,
    SIZE,
    CPU,
    CPU_MANUFACTURER,
    CPU_CLOCK_MHZ,
    MEMORY,
    EBS_BANDWIDTH,
    NETWORK_BANDWIDTH,
    GPU_NAME,
    GPU_MANUFACTURER,
    GPU_COUNT,
    GPU_MEMORY,
    ACCELERATOR_NAME,
    ACCELERATOR_MANUFACTURER,
    ACCELERATOR_COUNT,
];

/// Whether the instance type (and the class) decides the label, so that absence means absence.
pub fn by_type(key: &str) -> bool {
    BY_TYPE.contains(&normalise(key))
}
