//! Which labels would a node of this type have?
//!
//! `instance type × family → each label of the type, or its known absence`
//!
//! The answer has an entry for every label that a type decides. `None` is knowledge, too: it means
//! that no such node will ever have the label, so that `DoesNotExist` holds. Labels that come from
//! where and how a node is bought (zone, capacity type, …) are not here.
//!
//! This is what Karpenter expects of a node, with two deviations. It drops all labels of GPUs and
//! accelerators when EC2 lists more than one kind, and such a type would then be taken for one
//! without; we keep the sum of the counts, and the manufacturer if there is only one. And it has the
//! network's bandwidth from a table of its own; we derive it, see [`network_bandwidth_mbps`].

use crate::{family::Family, instance_type::InstanceType, label};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeLabel {
    pub key: &'static str,
    /// `None`: known to be absent. An empty text is a value; bare metal has an empty hypervisor.
    pub value: Option<String>,
}

pub fn labels(it: &InstanceType, family: Family) -> Vec<TypeLabel> {
    let arch = it.kubernetes_arch();
    let (category, generation) = category_and_generation(&it.name).unzip();
    let (family_name, size) = family_and_size(&it.name).unzip();
    let flex = it.name.split('.').next().is_some_and(|it| it.contains("-flex"));
    let gpus: Vec<Device<'_>> = it
        .gpus
        .iter()
        .map(|it| Device {
            name: it.name.as_deref(),
            manufacturer: it.manufacturer.as_deref(),
            count: it.count,
        })
        .collect();
    let accelerators = accelerators(it);
    let gpu_memory = match it.gpus.as_slice() {
        [only] => only.memory_mib,
        _ => None,
    };
    let local_nvme = it
        .instance_store
        .as_ref()
        .filter(|it| it.nvme.as_deref() != Some("unsupported"))
        .and_then(|it| it.total_gb);
    let ebs_mbps = it.ebs.max_mbps.filter(|_| it.ebs.optimised.as_deref() == Some("default"));

    let entries: [(&'static str, Option<String>); 25] = [
        (label::INSTANCE_TYPE, Some(it.name.clone())),
        (label::ARCH, arch.map(str::to_owned)),
        (label::OS, operating_system(arch, family).map(str::to_owned)),
        (label::WINDOWS_BUILD, family.windows_build().map(str::to_owned)),
        (label::CATEGORY, category),
        (label::GENERATION, generation),
        (label::FAMILY, family_name),
        (label::SIZE, size),
        (label::CAPABILITY_FLEX, Some(flex.to_string())),
        (label::CPU, Some(it.vcpus.to_string())),
        (label::CPU_MANUFACTURER, it.cpu_manufacturer.as_deref().map(lower_kebab)),
        // Karpenter writes an unknown clock speed as 0.
        (label::CPU_CLOCK_MHZ, Some(it.clock_mhz.unwrap_or(0).to_string())),
        (label::MEMORY, Some(it.memory_mib.to_string())),
        (label::HYPERVISOR, Some(it.hypervisor.clone().unwrap_or_default())),
        (label::ENCRYPTION_IN_TRANSIT, decimal(it.network.encryption_in_transit)),
        (label::EBS_BANDWIDTH, decimal(ebs_mbps)),
        (label::NETWORK_BANDWIDTH, decimal(network_bandwidth_mbps(it))),
        (label::LOCAL_NVME, decimal(local_nvme)),
        (label::GPU_NAME, name_of_only(&gpus)),
        (label::GPU_MANUFACTURER, manufacturer_of_all(&gpus)),
        (label::GPU_COUNT, count_of_all(&gpus)),
        (label::GPU_MEMORY, decimal(gpu_memory)),
        (label::ACCELERATOR_NAME, name_of_only(&accelerators)),
        (label::ACCELERATOR_MANUFACTURER, manufacturer_of_all(&accelerators)),
        (label::ACCELERATOR_COUNT, count_of_all(&accelerators)),
    ];
    entries.into_iter().map(|(key, value)| TypeLabel { key, value }).collect()
}

/// The bandwidth that the type sustains, if its description says it without doubt.
///
/// Where the marketed performance names no figure (`Moderate`), neither do we, as Karpenter. With one
/// card, its baseline. With several, EC2 gives some cards the bandwidth of all (`c6in.32xlarge` has
/// 200 Gbps and two cards of 200), so only the marketed total is certain: `600 Gigabit`,
/// `4x 100 Gigabit`.
pub fn network_bandwidth_mbps(it: &InstanceType) -> Option<u64> {
    let figure = it.network.performance.as_deref()?.strip_suffix(" Gigabit")?;
    match it.network.cards.as_slice() {
        [] => None,
        [only] => only.baseline_mbps,
        [_, _, ..] => {
            let (times, gigabits) = figure.split_once("x ").unwrap_or(("1", figure));
            times.parse::<u64>().ok()?.checked_mul(gigabits.parse().ok()?)?.checked_mul(1000)
        }
    }
}

/// Windows runs on amd64 only. On arm64 its nodes have no operating system, and hence no pods.
fn operating_system(arch: Option<&str>, family: Family) -> Option<&'static str> {
    match (family.windows(), arch) {
        (false, _) => Some("linux"),
        (true, Some("amd64")) => Some("windows"),
        (true, _) => None,
    }
}

/// `m` and `5` of `m5.large`; `u` and `1` of `u-6tb1.56xlarge`; neither of `mac-m4.metal`.
fn category_and_generation(name: &str) -> Option<(String, String)> {
    let (category, rest) = split_while(name, |it| it.is_ascii_lowercase());
    let after_size = rest.strip_prefix('-').and_then(|it| {
        let (terabytes, rest) = split_while(it, |it| it.is_ascii_digit());
        rest.strip_prefix("tb").filter(|_| !terabytes.is_empty())
    });
    let (generation, rest) = split_while(after_size.unwrap_or(rest), |it| it.is_ascii_digit());
    let whole = !category.is_empty() && !generation.is_empty() && rest.contains('.');
    whole.then(|| (category.to_owned(), generation.to_owned()))
}

fn split_while(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|it| !wanted(it)).unwrap_or(text.len()))
}

fn family_and_size(name: &str) -> Option<(String, String)> {
    let (family, size) = name.split_once('.').filter(|(_, size)| !size.contains('.'))?;
    Some((family.to_owned(), size.to_owned()))
}

struct Device<'a> {
    name: Option<&'a str>,
    manufacturer: Option<&'a str>,
    count: u32,
}

/// Neuron devices; where there are none, other inference cards. EC2 lists Inferentia as both.
fn accelerators(it: &InstanceType) -> Vec<Device<'_>> {
    if it.neuron_devices.is_empty() {
        return it
            .inference_accelerators
            .iter()
            .map(|it| Device {
                name: it.name.as_deref(),
                manufacturer: it.manufacturer.as_deref(),
                count: it.count,
            })
            .collect();
    }
    it.neuron_devices
        .iter()
        .map(|it| Device { name: it.name.as_deref(), manufacturer: Some("aws"), count: it.count })
        .collect()
}

fn name_of_only(devices: &[Device<'_>]) -> Option<String> {
    match devices {
        [only] => only.name.map(lower_kebab),
        _ => None,
    }
}

fn manufacturer_of_all(devices: &[Device<'_>]) -> Option<String> {
    let (first, others) = devices.split_first()?;
    let alike = others.iter().all(|it| it.manufacturer == first.manufacturer);
    first.manufacturer.filter(|_| alike).map(lower_kebab)
}

fn count_of_all(devices: &[Device<'_>]) -> Option<String> {
    let count: u64 = devices.iter().map(|it| u64::from(it.count)).sum();
    (!devices.is_empty()).then(|| count.to_string())
}

fn lower_kebab(text: &str) -> String {
    text.to_lowercase().replace(' ', "-")
}

fn decimal<T: ToString>(value: Option<T>) -> Option<String> {
    value.map(|it| it.to_string())
}
