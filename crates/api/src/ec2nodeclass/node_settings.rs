//! What does a class say about what its nodes offer?
//!
//! `class → node settings`, or all that cannot be understood in it
//!
//! Karpenter's rules on `spec.kubelet`, as far as they concern capacity, in its words. Karpenter
//! finds out in the controller; here it is told with the line.

use std::collections::BTreeMap;

use nodemolt_fit::{
    Family, Quantity,
    capacity::{BlockDevice, NodeSettings, Threshold, WrittenInterfaces},
};

use crate::{
    file::path,
    meta::IntOrString,
    problem::{Finding, nearest, quoted},
};

use super::{BlockDeviceMapping, EC2NodeClass, EC2NodeClassSpec, Kubelet, NetworkInterface};

const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];

const SIGNALS: [&str; 6] = [
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];

/// What an expression of Karpenter may speak of.
const VARIABLES: [&str; 6] =
    ["instance_type", "vcpus", "memory_mib", "default_enis", "ips_per_eni", "max_pods"];

const NEGATIVE_QUANTITY: &str = "can't be a negative resource quantity";

impl TryFrom<&EC2NodeClass> for NodeSettings {
    type Error = Vec<Finding>;

    /// What the controller's flags say is as without them.
    fn try_from(class: &EC2NodeClass) -> Result<Self, Self::Error> {
        let spec = &class.spec;
        let mut reader = Reader { found: Vec::new() };
        let mut settings = Self::of(reader.family(spec));
        if let Some(kubelet) = &spec.kubelet {
            reader.kubelet(kubelet, &mut settings);
        }
        settings.instance_store_raid0 = reader.raid0(spec.instance_store_policy.as_deref());
        let mappings = spec.block_device_mappings.as_deref().unwrap_or_default();
        settings.block_devices = reader.block_devices(mappings);
        // An empty list was written, too: such a node gets no interface for EFA.
        settings.interfaces = spec.network_interfaces.as_deref().map(|it| reader.interfaces(it));
        if reader.found.is_empty() { Ok(settings) } else { Err(reader.found) }
    }
}

/// Reads on where something cannot be understood, so that all of it is told at once.
struct Reader {
    found: Vec<Finding>,
}

impl Reader {
    fn refuse(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.found.push(Finding::error(field, message));
    }

    fn refuse_with(&mut self, field: &str, message: String, hint: impl Into<String>) {
        self.found.push(Finding::error(field, message).hint(hint));
    }

    fn family(&mut self, spec: &EC2NodeClassSpec) -> Family {
        if let Some(written) = &spec.ami_family {
            return written.parse().unwrap_or_else(|error: nodemolt_fit::family::UnknownFamily| {
                self.refuse("spec.amiFamily", error.to_string());
                Family::Custom
            });
        }
        // What is wrong with an alias is told where the images are read.
        let alias = spec.terms().iter().find_map(|it| it.alias.as_deref());
        alias
            .and_then(|it| Family::from_alias_name(it.split('@').next()?).ok())
            .unwrap_or(Family::Custom)
    }

    fn kubelet(&mut self, kubelet: &Kubelet, settings: &mut NodeSettings) {
        settings.max_pods = kubelet.max_pods.as_ref().and_then(|it| self.max_pods(it));
        settings.pods_per_core =
            kubelet.pods_per_core.and_then(|it| self.count("spec.kubelet.podsPerCore", it.into()));
        let mut reserved = |name: &str, written: &Option<BTreeMap<String, String>>| {
            let field = format!("spec.kubelet.{name}");
            written.as_ref().map(|it| self.reserved(&field, it)).unwrap_or_default()
        };
        settings.kube_reserved = reserved("kubeReserved", &kubelet.kube_reserved);
        settings.system_reserved = reserved("systemReserved", &kubelet.system_reserved);
        for (signal, text) in kubelet.eviction_hard.iter().flatten() {
            if let Some(threshold) = self.threshold(signal, text) {
                settings.eviction_hard.insert(signal.clone(), threshold);
            }
        }
    }

    fn max_pods(&mut self, written: &IntOrString) -> Option<u32> {
        let field = "spec.kubelet.maxPods";
        match written {
            IntOrString::Int(number) => self.count(field, *number),
            IntOrString::String(text) => {
                if let Ok(number) = text.trim().parse::<i64>() {
                    return self.count(field, number);
                }
                let message = if text.trim().is_empty() {
                    "cannot be empty".to_owned()
                } else {
                    not_evaluated(text)
                };
                self.refuse_with(field, message, "write a whole number, such as `110`");
                None
            }
        }
    }

    fn count(&mut self, field: &str, number: i64) -> Option<u32> {
        if number < 0 {
            self.refuse(field, format!("`{number}` can't be negative"));
            return None;
        }
        let count = u32::try_from(number).ok();
        if count.is_none() {
            self.refuse(field, format!("`{number}` is more than {}", u32::MAX));
        }
        count
    }

    fn reserved(
        &mut self,
        field: &str,
        written: &BTreeMap<String, String>,
    ) -> BTreeMap<String, Quantity> {
        let mut read = BTreeMap::new();
        for (resource, text) in written {
            let at = path::join(field, resource);
            if !RESERVABLE.contains(&resource.as_str()) {
                let message = format!(
                    "{} isn't a reservable resource, must be one of {}",
                    quoted(resource),
                    RESERVABLE.join(", ")
                );
                self.unknown_key(&at, message, resource, &RESERVABLE);
                continue;
            }
            if text.contains('(') || VARIABLES.iter().any(|it| text.contains(it)) {
                self.refuse_with(&at, not_evaluated(text), "write a quantity, such as `500Mi`");
                continue;
            }
            if let Some(quantity) = self.quantity(&at, text) {
                read.insert(resource.clone(), quantity);
            }
        }
        read
    }

    fn threshold(&mut self, signal: &str, text: &str) -> Option<Threshold> {
        let field = path::join("spec.kubelet.evictionHard", signal);
        if !SIGNALS.contains(&signal) {
            let message = format!(
                "{} isn't a valid eviction signal, must be one of {}",
                quoted(signal),
                SIGNALS.join(", ")
            );
            self.unknown_key(&field, message, signal, &SIGNALS);
            return None;
        }
        if text.ends_with('%') {
            let share = Threshold::from_percent(text);
            if share.is_none() {
                let message = format!("{} must be a percentage from 0 to 100", quoted(text));
                self.refuse_with(&field, message, "write it like `5%` or `7.5%`");
            }
            return share;
        }
        match text.parse::<Quantity>() {
            Ok(quantity) if quantity.negative() => {
                self.refuse(field, format!("{} {NEGATIVE_QUANTITY}", quoted(text)));
                None
            }
            Ok(quantity) => Some(Threshold::Fixed(quantity)),
            Err(error) => {
                let message =
                    format!("{} must be a percentage or a resource quantity", quoted(text));
                self.refuse_with(&field, message, error.to_string());
                None
            }
        }
    }

    fn quantity(&mut self, field: &str, text: &str) -> Option<Quantity> {
        match text.parse::<Quantity>() {
            // Karpenter looks at the sign alone, so it refuses `-0` as well.
            Ok(quantity) if quantity.negative() || text.starts_with('-') => {
                self.refuse(field, format!("{} {NEGATIVE_QUANTITY}", quoted(text)));
                None
            }
            Ok(quantity) => Some(quantity),
            Err(error) => {
                self.refuse(field, error.to_string());
                None
            }
        }
    }

    fn unknown_key(&mut self, field: &str, message: String, key: &str, known: &[&str]) {
        let finding = Finding::error(field, message);
        self.found.push(match nearest(key, known) {
            Some(near) => finding.hint(format!("did you mean `{near}`?")),
            None => finding,
        });
    }

    fn raid0(&mut self, policy: Option<&str>) -> bool {
        if let Some(other) = policy.filter(|it| *it != "RAID0") {
            let message = format!("{} is not a policy for local disks", quoted(other));
            self.refuse_with("spec.instanceStorePolicy", message, "write `RAID0` or remove it");
        }
        policy == Some("RAID0")
    }

    fn block_devices(&mut self, mappings: &[BlockDeviceMapping]) -> Vec<BlockDevice> {
        let roots = mappings.iter().filter(|it| it.root_volume == Some(true)).count();
        if roots > 1 {
            let message = "must have only one blockDeviceMappings with rootVolume";
            self.refuse("spec.blockDeviceMappings", message);
        }
        let mut devices = Vec::new();
        for (at, mapping) in mappings.iter().enumerate() {
            let field = format!("spec.blockDeviceMappings[{at}].ebs.volumeSize");
            let size = mapping.ebs.as_ref().and_then(|it| it.volume_size.as_deref());
            devices.push(BlockDevice {
                device_name: mapping.device_name.clone(),
                root_volume: mapping.root_volume == Some(true),
                size: size.and_then(|it| self.volume_size(&field, it)),
            });
        }
        devices
    }

    fn volume_size(&mut self, field: &str, text: &str) -> Option<Quantity> {
        let size = self.quantity(field, text)?;
        if size.zero() {
            let hint = "write a size such as `20Gi`";
            self.refuse_with(field, format!("{} is no size for a volume", quoted(text)), hint);
            return None;
        }
        Some(size)
    }

    fn interfaces(&mut self, written: &[NetworkInterface]) -> WrittenInterfaces {
        let mut counted = WrittenInterfaces::default();
        for (at, interface) in written.iter().enumerate() {
            let field = format!("spec.networkInterfaces[{at}]");
            if interface.network_card_index < 0 {
                let message = format!("`{}` can't be negative", interface.network_card_index);
                self.refuse(format!("{field}.networkCardIndex"), message);
            }
            match interface.interface_type.as_str() {
                "interface" => {}
                "efa-only" => {
                    counted.efa_only += 1;
                    counted.efa_only_on_card_0 += u32::from(interface.network_card_index == 0);
                }
                other => {
                    let message = format!("{} is not a type of interface", quoted(other));
                    let hint = "write `interface` or `efa-only`";
                    self.refuse_with(&format!("{field}.interfaceType"), message, hint);
                }
            }
        }
        counted
    }
}

fn not_evaluated(text: &str) -> String {
    format!("{} is an expression, and expressions are not evaluated in this version", quoted(text))
}
