//! What would a node of this type offer to pods?
//!
//! `allocatable = capacity − kube-reserved − system-reserved − eviction threshold`
//!
//! Nobody has asked a node: these are the formulas by which Karpenter expects a node's capacity
//! before it exists, so that we agree with it on what fits. The parts are kept apart, because "why
//! only 6.7 of 8 GiB?" is the first thing people ask. All of it is whole-numbered arithmetic.
//!
//! The branch interfaces of security groups for pods (`vpc.amazonaws.com/pod-eni`) are counted whether the VPC CNI is told to
//! use them or not, as Karpenter does: only who uses them asks for them.

use std::collections::BTreeMap;

use crate::{
    family::Family,
    instance_type::{Gpu, InstanceType},
    quantity::Quantity,
    vpc_limits::VpcLimits,
};

pub const CPU: &str = "cpu";
pub const MEMORY: &str = "memory";
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
pub const PODS: &str = "pods";
pub const NVIDIA_GPU: &str = "nvidia.com/gpu";
pub const AMD_GPU: &str = "amd.com/gpu";
pub const GAUDI: &str = "habana.ai/gaudi";
pub const NEURON: &str = "aws.amazon.com/neuron";
pub const NEURON_CORE: &str = "aws.amazon.com/neuroncore";
pub const EFA: &str = "vpc.amazonaws.com/efa";
pub const POD_ENI: &str = "vpc.amazonaws.com/pod-eni";
pub const PRIVATE_IPV4: &str = "vpc.amazonaws.com/PrivateIPv4Address";

/// Signals of `evictionHard` that keep something from pods; the others are only alarms.
pub const MEMORY_AVAILABLE: &str = "memory.available";
pub const NODEFS_AVAILABLE: &str = "nodefs.available";

/// 7.5%: what a hypervisor and a kernel take before Linux counts its memory. Karpenter's default for
/// `--vm-memory-overhead-percent 0.075`.
pub const VM_MEMORY_OVERHEAD_MILLIONTHS: u32 = 75_000;

/// Graviton's kernels set aside this much contiguous memory for devices.
const ARM64_SET_ASIDE_MIB: u64 = 64;
/// What the kubelet needs per pod, and before the first one: EKS' formula for its own images.
const KUBELET_MIB_PER_POD: u64 = 11;
const KUBELET_MIB: u64 = 255;
const KUBELET_STORAGE_GIB: i64 = 1;
/// Millicores up to which each step reaches, and what the kubelet takes of them in hundredths of a
/// percent: 6% of the first core, 1% of the second, 0.5% of the next two, 0.25% of all others.
const KUBELET_CPU_STEPS: [(u64, u64, u64); 4] =
    [(0, 1_000, 600), (1_000, 2_000, 100), (2_000, 4_000, 50), (4_000, u64::MAX, 25)];
/// The kubelet's own defaults for `evictionHard`.
const EVICTION_MEMORY_MIB: i64 = 100;
const EVICTION_STORAGE_MILLIONTHS: u32 = 100_000;
/// The kubelet's default for `maxPods`, where the network sets no limit.
const PODS_WITHOUT_LIMIT: u64 = 110;
/// `aws-node` and `kube-proxy` use the host's network and need no address.
const PODS_ON_HOST_NETWORK: u64 = 2;

/// Everything that a class, and the controller's flags, say about capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    pub family: Family,
    /// `kubelet.maxPods`.
    pub max_pods: Option<u32>,
    /// `kubelet.podsPerCore`; 0 is as good as none.
    pub pods_per_core: Option<u32>,
    /// `kubelet.kubeReserved`: `cpu`, `memory`, `ephemeral-storage`, `pid`.
    pub kube_reserved: BTreeMap<String, Quantity>,
    /// `kubelet.systemReserved`, the same keys.
    pub system_reserved: BTreeMap<String, Quantity>,
    /// `kubelet.evictionHard` by signal.
    pub eviction_hard: BTreeMap<String, Threshold>,
    /// `instanceStorePolicy: RAID0`.
    pub instance_store_raid0: bool,
    /// `blockDeviceMappings`, in their order.
    pub block_devices: Vec<BlockDevice>,
    /// `networkInterfaces`, if the class writes them.
    pub interfaces: Option<WrittenInterfaces>,
    /// The controller's `--reserved-enis`.
    pub reserved_interfaces: u32,
    /// The controller's `--vm-memory-overhead-percent`, times a million.
    pub vm_memory_overhead_millionths: u32,
}

impl NodeSettings {
    /// A class that sets nothing.
    pub fn of(family: Family) -> Self {
        Self {
            family,
            max_pods: None,
            pods_per_core: None,
            kube_reserved: BTreeMap::new(),
            system_reserved: BTreeMap::new(),
            eviction_hard: BTreeMap::new(),
            instance_store_raid0: false,
            block_devices: Vec::new(),
            interfaces: None,
            reserved_interfaces: 0,
            vm_memory_overhead_millionths: VM_MEMORY_OVERHEAD_MILLIONTHS,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// Of the node's capacity. All of it (100%) switches the threshold off, as in the kubelet.
    Share {
        millionths: u32,
    },
    Fixed(Quantity),
}

impl Threshold {
    /// `7.5%`. `None` for everything else, also for more than 100%; a quantity is for the caller to
    /// read.
    pub fn from_percent(text: &str) -> Option<Self> {
        let number = text.strip_suffix('%')?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
            return None;
        }
        // A percent is ten thousand millionths; finer fractions than its fourth digit are cut off.
        let fraction: u32 = format!("{fraction:0<4}").get(..4)?.parse().ok()?;
        let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let millionths = whole.checked_mul(10_000)?.checked_add(fraction)?;
        (millionths <= 1_000_000).then_some(Self::Share { millionths })
    }

    fn of(self, capacity: Quantity) -> Quantity {
        match self {
            Self::Share { millionths: 1_000_000.. } => Quantity::ZERO,
            Self::Share { millionths } => capacity.share(millionths),
            Self::Fixed(amount) => amount,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockDevice {
    /// `/dev/xvda`.
    pub device_name: Option<String>,
    pub root_volume: bool,
    /// A volume from a snapshot has its size from there, and the class may give none.
    pub size: Option<Quantity>,
}

/// How many of the interfaces that a class writes are for EFA only and carry no addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenInterfaces {
    pub efa_only: u32,
    /// Those of them on network card 0, where they take the place of one with addresses.
    pub efa_only_on_card_0: u32,
}

/// Amounts by the names of resources. Devices that a type does not have are not listed.
pub type Amounts = BTreeMap<String, Quantity>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOffer {
    pub capacity: Amounts,
    pub kube_reserved: Amounts,
    pub system_reserved: Amounts,
    pub eviction: Amounts,
    pub allocatable: Amounts,
}

pub fn offer(it: &InstanceType, settings: &NodeSettings) -> NodeOffer {
    let pods = pods(it, settings);
    let memory = memory(it, settings.vm_memory_overhead_millionths);
    let storage = ephemeral_storage(it, settings);

    let mut capacity = Amounts::from([
        (CPU.to_owned(), Quantity::from_units(it.vcpus.into())),
        (MEMORY.to_owned(), memory),
        (EPHEMERAL_STORAGE.to_owned(), storage),
        (PODS.to_owned(), Quantity::from_units(number(pods))),
    ]);
    for (name, count) in devices(it, settings) {
        if count > 0 {
            capacity.insert(name.to_owned(), Quantity::from_units(count));
        }
    }

    let mut kube_reserved = kubelet_share(it, settings, pods);
    kube_reserved.extend(settings.kube_reserved.clone());
    let system_reserved = settings.system_reserved.clone();
    let eviction = eviction(memory, storage, settings);

    let allocatable = capacity
        .iter()
        .map(|(name, amount)| {
            let taken = [&kube_reserved, &system_reserved, &eviction];
            let rest = taken.iter().filter_map(|it| it.get(name)).fold(*amount, |rest, taken| {
                // A negative reservation is a mistake of the class and must not add capacity.
                rest.less((*taken).max(Quantity::ZERO))
            });
            (name.clone(), rest)
        })
        .collect();
    NodeOffer { capacity, kube_reserved, system_reserved, eviction, allocatable }
}

/// How many pods the kubelet admits.
fn pods(it: &InstanceType, settings: &NodeSettings) -> u64 {
    let family = settings.family;
    let count = match settings.max_pods {
        Some(written) => written.into(),
        None if family.limits_pods_by_interfaces() => {
            pods_by_interfaces(it, settings, settings.reserved_interfaces)
        }
        None => PODS_WITHOUT_LIMIT,
    };
    match settings.pods_per_core {
        Some(per_core @ 1..) if family.honours_pods_per_core() => {
            count.min(u64::from(per_core) * u64::from(it.vcpus))
        }
        Some(_) | None => count,
    }
}

/// How many pods get an address. The first address of each interface is the interface's own.
fn pods_by_interfaces(it: &InstanceType, settings: &NodeSettings, reserved: u32) -> u64 {
    let efa_only = settings.interfaces.map_or(0, |it| it.efa_only_on_card_0);
    let interfaces = it
        .network
        .card_of_pods()
        .map_or(0, |it| it.interfaces_max)
        .saturating_sub(reserved)
        .saturating_sub(efa_only);
    if interfaces == 0 {
        return 0;
    }
    let addresses = it.network.ipv4_per_interface.saturating_sub(1);
    u64::from(interfaces) * u64::from(addresses) + PODS_ON_HOST_NETWORK
}

/// What Linux will count, by estimate.
fn memory(it: &InstanceType, overhead_millionths: u32) -> Quantity {
    let arm64 = it.kubernetes_arch() == Some("arm64");
    let set_aside = if arm64 { ARM64_SET_ASIDE_MIB } else { 0 };
    // The share is rounded up to whole MiB, so it is taken of MiB and not of bytes.
    let mib = Quantity::from_units(number(it.memory_mib.saturating_sub(set_aside)));
    let rest = mib.less(mib.share(overhead_millionths)).ceil_units();
    Quantity::from_mebibytes(i64::try_from(rest).unwrap_or(i64::MAX))
}

/// Where pods' files go: the disks inside the machine, or the volume that holds them.
fn ephemeral_storage(it: &InstanceType, settings: &NodeSettings) -> Quantity {
    let store_gb = it.instance_store.as_ref().and_then(|it| it.total_gb);
    if let (true, Some(gb)) = (settings.instance_store_raid0, store_gb) {
        return Quantity::from_gigabytes(number(gb));
    }
    let devices = &settings.block_devices;
    let root = devices.iter().find(|it| it.root_volume);
    let of_family = match settings.family.ephemeral_device() {
        Some(name) => devices.iter().find(|it| it.device_name.as_deref() == Some(name)),
        None => devices.last(),
    };
    root.and_then(|it| it.size)
        .or_else(|| of_family.and_then(|it| it.size))
        .unwrap_or_else(|| Quantity::from_gibibytes(settings.family.default_volume_gib().into()))
        .max(Quantity::ZERO)
}

/// What the kubelet keeps for itself if the class does not say.
fn kubelet_share(it: &InstanceType, settings: &NodeSettings, pods: u64) -> Amounts {
    // Reserved interfaces lower the pods and not what is kept for them; images compute this at boot
    // from the type alone.
    let counted = if settings.family.reserves_memory_by_interfaces() {
        pods_by_interfaces(it, settings, 0)
    } else {
        pods
    };
    let memory_mib = counted.saturating_mul(KUBELET_MIB_PER_POD).saturating_add(KUBELET_MIB);
    Amounts::from([
        (CPU.to_owned(), Quantity::from_millis(number(kubelet_millicores(it.vcpus)))),
        (MEMORY.to_owned(), Quantity::from_mebibytes(number(memory_mib))),
        (EPHEMERAL_STORAGE.to_owned(), Quantity::from_gibibytes(KUBELET_STORAGE_GIB)),
    ])
}

/// What no machine has is as good as the most that can be held.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Each step is cut to whole millicores by itself, not their sum.
fn kubelet_millicores(vcpus: u32) -> u64 {
    let millicores = u64::from(vcpus) * 1000;
    KUBELET_CPU_STEPS
        .iter()
        .map(|(from, to, permyriad)| millicores.min(*to).saturating_sub(*from) * permyriad / 10_000)
        .sum()
}

/// Karpenter computes the shares with floats and is a byte higher now and then; ours are exact.
fn eviction(memory: Quantity, storage: Quantity, settings: &NodeSettings) -> Amounts {
    let written = |signal: &str| settings.eviction_hard.get(signal).copied();
    let for_memory = written(MEMORY_AVAILABLE)
        .unwrap_or(Threshold::Fixed(Quantity::from_mebibytes(EVICTION_MEMORY_MIB)));
    let for_storage = written(NODEFS_AVAILABLE)
        .unwrap_or(Threshold::Share { millionths: EVICTION_STORAGE_MILLIONTHS });
    Amounts::from([
        (MEMORY.to_owned(), for_memory.of(memory)),
        (EPHEMERAL_STORAGE.to_owned(), for_storage.of(storage)),
    ])
}

/// What device plugins and the VPC resource controller will announce.
fn devices(it: &InstanceType, settings: &NodeSettings) -> [(&'static str, i64); 8] {
    let gpus_of = |manufacturer: &str| -> i64 {
        let theirs = |gpu: &&Gpu| {
            gpu.manufacturer.as_deref().is_some_and(|it| it.eq_ignore_ascii_case(manufacturer))
        };
        it.gpus.iter().filter(theirs).map(|it| i64::from(it.count)).sum()
    };
    let neuron_cores = it
        .neuron_devices
        .iter()
        .map(|it| i64::from(it.count) * i64::from(it.cores_per_device.unwrap_or(0)))
        .sum();
    // The interfaces that a class writes are all that the node gets.
    let efas = match settings.interfaces {
        Some(written) => written.efa_only,
        None => it.network.efa_interfaces_max.unwrap_or(0),
    };
    let limits = VpcLimits::of_type(&it.name);
    // The first is the interface's own. Windows runs on amd64 only.
    let of_windows = settings.family.windows() && it.kubernetes_arch() == Some("amd64");
    let addresses = limits.filter(|_| of_windows).map_or(0, |it| it.ipv4_per_interface);
    let addresses = i64::from(addresses.saturating_sub(1));
    [
        (NVIDIA_GPU, gpus_of("nvidia")),
        (AMD_GPU, gpus_of("amd")),
        (GAUDI, gpus_of("habana")),
        (NEURON, it.neuron_devices.iter().map(|it| i64::from(it.count)).sum()),
        (NEURON_CORE, neuron_cores),
        (EFA, efas.into()),
        (POD_ENI, limits.map_or(0, |it| it.branch_interfaces.into())),
        (PRIVATE_IPV4, addresses),
    ]
}
