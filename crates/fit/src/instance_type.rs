//! What is one EC2 instance type?
//!
//! `instance type = what the machine has + what an image must bring to boot on it`
//!
//! Plain data with one source: the members of `aws ec2 describe-instance-types`. What a source does
//! not say is `None` (or, for devices, an empty list) and is never filled in by a guess. Words such
//! as `x86_64`, `legacy-bios` or `required` are EC2's own and are kept as they came.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceType {
    /// `m5.large`.
    pub name: String,
    /// The default number; a launch may switch some off, which Karpenter does not do.
    pub vcpus: u32,
    pub memory_mib: u64,
    /// All of them, in the source's order: `t2.micro` says `i386, x86_64`.
    pub architectures: Vec<String>,
    pub cpu_manufacturer: Option<String>,
    /// Sustained, not the burst. The ten oldest types have none.
    pub clock_mhz: Option<u64>,
    /// `nitro` or `xen`; bare metal has none.
    pub hypervisor: Option<String>,
    pub bare_metal: Option<bool>,
    pub network: Network,
    pub ebs: Ebs,
    pub instance_store: Option<InstanceStore>,
    pub gpus: Vec<Gpu>,
    pub neuron_devices: Vec<NeuronDevice>,
    /// EC2 lists AWS Inferentia here a second time; the others are Qualcomm's.
    pub inference_accelerators: Vec<Accelerator>,
    pub media_accelerators: Vec<Accelerator>,
    pub fpgas: Vec<Accelerator>,
    /// `legacy-bios`, `uefi`.
    pub boot_modes: Option<Vec<String>>,
    pub nitro_tpm: Option<bool>,
    /// `2.0`. Empty where there is no TPM.
    pub nitro_tpm_versions: Vec<String>,
    /// `ebs`, `instance-store`.
    pub root_devices: Option<Vec<String>>,
    /// `hvm`, `paravirtual`.
    pub virtualisation: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// As marketed: `Up to 10 Gigabit`, `4x 100 Gigabit`, `Moderate`.
    pub performance: Option<String>,
    pub cards: Vec<NetworkCard>,
    pub default_card: u32,
    /// Over all cards.
    pub interfaces_max: Option<u32>,
    pub ipv4_per_interface: u32,
    pub ipv6_per_interface: Option<u32>,
    /// Zero means that the type is known to have no EFA.
    pub efa_interfaces_max: Option<u32>,
    /// `required`, `supported` or `unsupported`.
    pub ena: Option<String>,
    pub encryption_in_transit: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkCard {
    pub index: u32,
    pub interfaces_max: u32,
    pub baseline_mbps: Option<u64>,
    pub peak_mbps: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ebs {
    /// `default`, `supported` or `unsupported`.
    pub optimised: Option<String>,
    pub baseline_mbps: Option<u64>,
    pub max_mbps: Option<u64>,
    /// `required`, `supported` or `unsupported`.
    pub nvme: Option<String>,
    /// How many volumes can be attached, those of the machine itself included.
    pub attachments_max: Option<u32>,
    /// `shared`, if network interfaces beyond the first take from that number, else `dedicated`.
    pub attachments_share: Option<String>,
}

/// The disks inside the machine. Old types have some that are not `NVMe`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceStore {
    /// Decimal gigabytes, over all disks.
    pub total_gb: Option<u64>,
    /// `required`, `supported` or `unsupported`.
    pub nvme: Option<String>,
}

/// One kind of GPU in the machine. A fraction of one (`g6f`) has the count 0 and is a GPU all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    pub name: Option<String>,
    pub manufacturer: Option<String>,
    pub count: u32,
    pub memory_mib: Option<u64>,
}

/// AWS's own: Inferentia and Trainium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeuronDevice {
    pub name: Option<String>,
    pub count: u32,
    pub cores_per_device: Option<u32>,
    pub memory_mib: Option<u64>,
}

/// Inference cards, media transcoders and FPGAs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accelerator {
    pub name: Option<String>,
    pub manufacturer: Option<String>,
    pub count: u32,
    pub memory_mib: Option<u64>,
}

impl InstanceType {
    /// The architecture in Kubernetes' words. Macs and the like have none.
    pub fn kubernetes_arch(&self) -> Option<&'static str> {
        self.architectures.iter().find_map(|it| match it.as_str() {
            "x86_64" => Some("amd64"),
            "arm64" => Some("arm64"),
            _ => None,
        })
    }
}

impl Network {
    /// The card that a node's pods get their addresses on.
    pub fn card_of_pods(&self) -> Option<&NetworkCard> {
        self.cards.iter().find(|it| it.index == self.default_card)
    }
}
