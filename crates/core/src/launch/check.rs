//! What would be refused later, by the schema of the class or by EC2?
//!
//! `settings, occasion → findings`, each with the field, the value and what to write instead
//!
//! The schema's rules with its messages, so that who knows the one knows the other. EC2's own ranges
//! stand beside them: the schema lets `iops: 7` pass and a launch fails on it, minutes later.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::bootstrap::USER_DATA_BYTES_MAX;

use super::device::{BlockDevice, Volume};
use super::network::{ConnectionTracking, interfaces};
use super::tags::restricted;
use super::words::{InterfaceKind, Switch, VolumeType, WrittenKind};
use super::{Cpu, Identity, Occasion, PlacementGroup, Settings};

const DEVICES_MAX: usize = 50;
const INTERFACES_MAX: usize = 150;
const HOPS: RangeInclusive<i64> = 1..=64;
const INITIALIZATION_RATES: RangeInclusive<i64> = 100..=300;

/// EC2's limits on tags. Of the 50 that a resource may have four are ours at launch and two later, when
/// the node is known: its name and its claim.
const TAGS_MAX: usize = 44;
const TAG_KEY_CHARS_MAX: usize = 128;
const TAG_VALUE_CHARS_MAX: usize = 256;

/// Something that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// From the class's root, for example `spec.blockDeviceMappings[0].ebs.iops`.
    pub field: String,
    /// With the value that was written.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

impl Finding {
    fn new(field: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { field: field.to_owned(), message: message.into(), remedy: remedy.into() }
    }
}

fn in_range(field: &str, value: i64, range: &RangeInclusive<i64>, unit: &str) -> Option<Finding> {
    let (low, high) = (range.start(), range.end());
    (!range.contains(&value)).then(|| {
        let remedy = format!("write a number from {low} to {high}{unit}");
        Finding::new(field, format!("`{value}` is not between {low} and {high}"), remedy)
    })
}

pub(super) fn check(settings: &Settings) -> Vec<Finding> {
    let mut found = Vec::new();
    check_identity(&settings.identity, &mut found);
    check_tags(settings, &mut found);
    check_devices(&settings.block_devices, &mut found);
    found.extend(in_range(
        "spec.metadataOptions.httpPutResponseHopLimit",
        settings.metadata.hop_limit,
        &HOPS,
        "; 1 keeps pods out, 2 lets them in",
    ));
    if let Some(count) = settings.ip_prefixes.filter(|it| !(0..=i64::from(i32::MAX)).contains(it)) {
        let message = format!("`{count}` is not a number of prefixes");
        found.push(Finding::new("spec.ipPrefixCount", message, "write 0 or more"));
    }
    check_interfaces(settings, &mut found);
    if let Some(tracking) = &settings.connection_tracking {
        check_tracking(tracking, &mut found);
    }
    check_cpu(&settings.cpu, &mut found);
    if let Some(PlacementGroup::Name(name)) = &settings.placement_group
        && name.is_empty()
    {
        let message = "`` is not the name of a placement group";
        let remedy = "write the group's name, or its id as `id`";
        found.push(Finding::new("spec.placementGroupSelector.name", message, remedy));
    }
    found
}

fn check_identity(identity: &Identity, found: &mut Vec<Finding>) {
    let (field, name) = match identity {
        Identity::Role(name) => ("role", name),
        Identity::InstanceProfile(name) => ("instanceProfile", name),
    };
    if name.is_empty() {
        let message = format!("{field} cannot be empty");
        found.push(Finding::new(&format!("spec.{field}"), message, "write its name"));
    }
}

fn check_tags(settings: &Settings, found: &mut Vec<Finding>) {
    let tags = &settings.tags;
    if tags.len() > TAGS_MAX {
        let message = format!("has {} tags, must have at most {TAGS_MAX}", tags.len());
        let remedy = "a resource has at most 50 tags, and 6 of them are ours";
        found.push(Finding::new("spec.tags", message, remedy));
    }
    for (key, value) in tags {
        let field = tag_field(key);
        if key.is_empty() {
            let remedy = "give the tag a key, or remove it";
            found.push(Finding::new("spec.tags", "empty tag keys aren't supported", remedy));
        } else if let Some(restricted) = restricted(key) {
            let message = format!("tag contains a restricted tag matching {restricted}");
            let remedy = format!(
                "remove it: this tag says whose the machine is, and `{}` is not for a class to say",
                shown(value)
            );
            found.push(Finding::new(&field, message, remedy));
        } else if key.get(..4).is_some_and(|it| it.eq_ignore_ascii_case("aws:")) {
            let message = format!("`{}` is a key that only AWS may write", shown(key));
            found.push(Finding::new(&field, message, "use a key that does not begin with `aws:`"));
        }
        for (what, text, max) in
            [("key", key, TAG_KEY_CHARS_MAX), ("value", value, TAG_VALUE_CHARS_MAX)]
        {
            let count = text.chars().count();
            if count > max {
                let message = format!("its {what} `{}` has {count} characters", shown(text));
                found.push(Finding::new(&field, message, format!("EC2 takes at most {max}")));
            }
        }
    }
}

/// A key that would read as several fields stands in brackets, as Kubernetes writes it.
fn tag_field(key: &str) -> String {
    let plain = key.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-'));
    if plain && !key.is_empty() {
        format!("spec.tags.{key}")
    } else {
        format!("spec.tags[{}]", shown(key))
    }
}

/// What a person wrote, cut to what fits on a line and with nothing in it that moves the cursor.
fn shown(text: &str) -> String {
    crate::image::shorten(text).escape_debug().to_string()
}

fn check_devices(devices: &[BlockDevice], found: &mut Vec<Finding>) {
    let list = "spec.blockDeviceMappings";
    if devices.len() > DEVICES_MAX {
        let message = format!("has {} items, must have at most {DEVICES_MAX}", devices.len());
        found.push(Finding::new(list, message, "remove the ones that no node needs"));
    }
    let mut names = BTreeSet::new();
    for (at, device) in devices.iter().enumerate() {
        let field = format!("{list}[{at}]");
        match device.name.as_deref() {
            // The schema requires neither a name nor a volume; Karpenter panics without them.
            None | Some("") => {
                let remedy = "write the device as the image calls it, for example `/dev/xvda`";
                let field = format!("{field}.deviceName");
                found.push(Finding::new(&field, "no device is named", remedy));
            }
            Some(name) if !names.insert(name) => {
                let message = format!("`{}` is mapped twice", shown(name));
                let remedy = "keep one of the two mappings";
                found.push(Finding::new(&format!("{field}.deviceName"), message, remedy));
            }
            Some(_) => {}
        }
        let field = format!("{field}.ebs");
        if let Some(volume) = &device.volume {
            check_volume(&field, volume, found);
        } else {
            let remedy = "write `ebs` with a volumeSize or a snapshotID, or remove the mapping";
            found.push(Finding::new(&field, "nothing says what the volume is", remedy));
        }
    }
}

/// What EC2 says each type of volume can be. `None` is whatever the image or EC2 chooses, so only what
/// no type admits is wrong.
struct Limits {
    gib: RangeInclusive<i64>,
    iops: Option<RangeInclusive<i64>>,
    throughput: Option<RangeInclusive<i64>>,
}

/// The documentation of EC2's `EbsBlockDevice`, service model 2016-11-15.
fn limits(kind: Option<VolumeType>) -> Limits {
    let (gib, iops, throughput) = match kind {
        Some(VolumeType::Standard) => (1..=1_024, None, None),
        Some(VolumeType::Gp2) => (1..=16_384, None, None),
        Some(VolumeType::Gp3) => (1..=65_536, Some(3_000..=80_000), Some(125..=2_000)),
        Some(VolumeType::Io1) => (4..=16_384, Some(100..=64_000), None),
        Some(VolumeType::Io2) => (4..=65_536, Some(100..=256_000), None),
        Some(VolumeType::Sc1 | VolumeType::St1) => (125..=16_384, None, None),
        None => (1..=65_536, Some(100..=256_000), Some(125..=2_000)),
    };
    Limits { gib, iops, throughput }
}

/// What each number allows, and the numbers together do not.
pub(super) fn proportions(settings: &Settings) -> Vec<Finding> {
    let devices = settings.block_devices.iter().enumerate();
    devices
        .filter_map(|(at, it)| Some((at, it.volume.as_ref()?)))
        .flat_map(|(at, it)| ratio_problems(&format!("spec.blockDeviceMappings[{at}].ebs"), it))
        .collect()
}

/// What EC2 admits only in proportion: operations to size, and throughput to operations. Every gp3 has its
/// first 3,000 operations, whatever its size.
fn ratio_problems(field: &str, volume: &Volume) -> Vec<Finding> {
    const GP3_OPERATIONS: i64 = 3_000;
    let (per_gib, always) = match volume.kind {
        Some(VolumeType::Gp3) => (500, GP3_OPERATIONS),
        Some(VolumeType::Io1) => (50, 100),
        Some(VolumeType::Io2) => (1_000, 100),
        Some(VolumeType::Standard | VolumeType::Gp2 | VolumeType::Sc1 | VolumeType::St1) | None => {
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    if let (Some(iops), Some(size)) = (volume.iops, volume.size) {
        let iops_max = (i64::from(size.gib) * per_gib).max(always);
        if iops > iops_max {
            let message = format!("`{iops}` is more than {per_gib} for each of {} GiB", size.gib);
            let remedy = format!("write at most {iops_max}, or a larger volumeSize");
            found.push(Finding::new(&format!("{field}.iops"), message, remedy));
        }
    }
    if let Some(throughput) = volume.throughput.filter(|_| volume.kind == Some(VolumeType::Gp3)) {
        let iops = volume.iops.unwrap_or(GP3_OPERATIONS);
        if throughput.saturating_mul(4) > iops {
            let message = format!("`{throughput}` is more than a quarter of {iops} operations");
            let remedy = format!("write at most {}, or more iops", iops / 4);
            found.push(Finding::new(&format!("{field}.throughput"), message, remedy));
        }
    }
    found
}

/// What EC2 takes or refuses by the type of volume that the image says, or else by its own choice, gp2: it is
/// not known here.
pub(super) fn uncertain(settings: &Settings) -> Vec<Finding> {
    const GP2_GIB_MAX: u32 = 16_384;
    let mut found = Vec::new();
    for (at, device) in settings.block_devices.iter().enumerate() {
        let Some(volume) = device.volume.as_ref().filter(|it| it.kind.is_none()) else { continue };
        let size = volume.size.map(|it| it.gib).filter(|it| *it > GP2_GIB_MAX);
        for (name, value) in [
            ("iops", volume.iops.map(|it| it.to_string())),
            ("throughput", volume.throughput.map(|it| it.to_string())),
            ("volumeSize", size.map(|it| format!("{it}Gi"))),
        ] {
            let Some(value) = value else { continue };
            let field = format!("spec.blockDeviceMappings[{at}].ebs.{name}");
            let message = format!(
                "`{value}` is refused by EC2 where the image does not say another type than gp2"
            );
            found.push(Finding::new(&field, message, "write a volumeType, for example `gp3`"));
        }
    }
    found
}

fn check_volume(field: &str, volume: &Volume, found: &mut Vec<Finding>) {
    let at = |name: &str| format!("{field}.{name}");
    let Limits { gib, iops, throughput } = limits(volume.kind);
    let kind = volume.kind.map_or_else(|| "this volume".to_owned(), |it| format!("`{it}`"));
    match (volume.size, &volume.snapshot) {
        (None, None) => {
            let remedy = "write a volumeSize, for example `20Gi`";
            found.push(Finding::new(field, "snapshotID or volumeSize must be defined", remedy));
        }
        (Some(size), _) if !gib.contains(&i64::from(size.gib)) => {
            let message = format!("`{}Gi` is not a size that {kind} can have", size.gib);
            let remedy = format!("write {}Gi to {}Gi", gib.start(), gib.end());
            found.push(Finding::new(&at("volumeSize"), message, remedy));
        }
        (Some(_), _) | (None, Some(_)) => {}
    }
    for (name, value, range, unit) in [
        ("iops", volume.iops, iops, " operations per second"),
        ("throughput", volume.throughput, throughput, " MiB per second"),
    ] {
        match (value, range) {
            (Some(value), Some(range)) => {
                found.extend(in_range(&at(name), value, &range, unit));
            }
            (Some(value), None) => {
                let message = format!("`{value}` has no meaning for {kind}");
                let remedy = format!("remove {name}, or write `volumeType: gp3`");
                found.push(Finding::new(&at(name), message, remedy));
            }
            (None, _) => {}
        }
    }
    if let Some(kind @ (VolumeType::Io1 | VolumeType::Io2)) = volume.kind
        && volume.iops.is_none()
    {
        let message = format!("`{kind}` needs its operations per second to be said");
        found.push(Finding::new(&at("iops"), message, "write iops, 100 or more"));
    }
    if let Some(key) = &volume.kms_key
        && volume.encrypted != Some(true)
    {
        let message = format!("`{}` is a key for a volume that is not encrypted", shown(key));
        let remedy = "write `encrypted: true`: EC2 refuses a key without it";
        found.push(Finding::new(&at("kmsKeyID"), message, remedy));
    }
    if let Some(rate) = volume.initialization_rate {
        let name = at("volumeInitializationRate");
        found.extend(in_range(&name, rate, &INITIALIZATION_RATES, " MiB per second"));
        if volume.snapshot.is_none() {
            let message = "snapshotID must be set when volumeInitializationRate is set";
            let remedy = format!("remove `volumeInitializationRate: {rate}`, or write snapshotID");
            found.push(Finding::new(&name, message, remedy));
        }
    }
}

fn check_interfaces(settings: &Settings, found: &mut Vec<Finding>) {
    let list = "spec.networkInterfaces";
    let written = &settings.interfaces;
    if written.is_empty() {
        return;
    }
    if written.len() > INTERFACES_MAX {
        let message = format!("has {} items, must have at most {INTERFACES_MAX}", written.len());
        found.push(Finding::new(list, message, "remove the ones that no instance type has"));
    }
    let primary = written
        .iter()
        .any(|it| it.card == 0 && it.device == 0 && it.kind == WrittenKind::Interface);
    if !primary {
        let message = "networkInterfaces must include a primary interface with \
                       interfaceType='interface'";
        let remedy = "add `{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}`";
        found.push(Finding::new(list, message, remedy));
    }
    let message = "networkInterfaces must not have duplicate networkCardIndex and deviceIndex \
                   pairs, and can have at most one efa device per network card";
    let mut places = BTreeSet::new();
    let mut efa_cards = BTreeSet::new();
    for (at, it) in written.iter().enumerate() {
        let field = format!("{list}[{at}]");
        let here = format!("card {} device {}", it.card, it.device);
        for (name, value) in [("networkCardIndex", it.card), ("deviceIndex", it.device)] {
            if !(0..=i64::from(i32::MAX)).contains(&value) {
                let message = format!("`{value}` is not an index");
                found.push(Finding::new(&format!("{field}.{name}"), message, "write 0 or more"));
            }
        }
        if !places.insert((it.card, it.device)) {
            let remedy = format!("{here} is written twice: keep one, or give it another place");
            found.push(Finding::new(&field, message, remedy));
        } else if it.kind == WrittenKind::EfaOnly && !efa_cards.insert(it.card) {
            let remedy = format!("card {} has an `efa-only` already: move {here}", it.card);
            found.push(Finding::new(&field, message, remedy));
        }
    }
}

fn check_tracking(tracking: &ConnectionTracking, found: &mut Vec<Finding>) {
    let ConnectionTracking { tcp_established, udp_stream, udp } = tracking;
    let parent = "spec.connectionTracking";
    if tcp_established.is_none() && udp_stream.is_none() && udp.is_none() {
        let message = "at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must \
                       be set";
        found.push(Finding::new(parent, message, "write one of them, or remove the whole"));
    }
    for (name, value, range) in [
        ("tcpEstablishedTimeout", tcp_established, 60..=432_000),
        ("udpStreamTimeout", udp_stream, 60..=180),
        ("udpTimeout", udp, 30..=60),
    ] {
        let field = format!("{parent}.{name}");
        found.extend(value.and_then(|it| in_range(&field, it, &range, " seconds")));
    }
}

fn check_cpu(cpu: &Cpu, found: &mut Vec<Finding>) {
    let Cpu { cores, threads_per_core, amd_sev_snp, nested_virtualization } = cpu;
    let parent = "spec.cpuOptions";
    let most = 1..=i64::from(i32::MAX);
    let field = format!("{parent}.coreCount");
    found.extend(cores.and_then(|it| in_range(&field, it, &most, ", as the type allows")));
    let field = format!("{parent}.threadsPerCore");
    let unit = "; 1 switches hyper-threading off";
    found.extend(threads_per_core.and_then(|it| in_range(&field, it, &(1..=2), unit)));
    // "You must specify both the number of CPU cores and threads per core": EC2's user guide.
    match (cores, threads_per_core) {
        (Some(cores), None) => {
            let message = format!("`coreCount: {cores}` stands without threadsPerCore");
            let remedy = "write threadsPerCore too, 1 or 2: EC2 takes both or neither";
            found.push(Finding::new(&format!("{parent}.coreCount"), message, remedy));
        }
        (None, Some(threads)) => {
            let message = format!("`threadsPerCore: {threads}` stands without coreCount");
            let remedy = "write coreCount too: EC2 takes both or neither";
            found.push(Finding::new(&format!("{parent}.threadsPerCore"), message, remedy));
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
    if *amd_sev_snp == Some(Switch::Enabled) && *nested_virtualization == Some(Switch::Enabled) {
        let message = "`enabled` together with amdSevSnp: no processor has both";
        let remedy = "keep one: nested virtualisation is Intel's here, SEV-SNP is AMD's";
        found.push(Finding::new(&format!("{parent}.nestedVirtualization"), message, remedy));
    }
}

/// What does not go together with this launch.
pub(super) fn check_occasion(settings: &Settings, occasion: &Occasion) -> Vec<Finding> {
    let mut found = Vec::new();
    let interfaces = interfaces(settings, occasion);
    if settings.public_ip == Some(true) && interfaces.len() > 1 {
        let efa = interfaces.iter().filter(|it| it.kind == InterfaceKind::Efa).count();
        let because = if efa > 0 { " (one for each EFA)" } else { "" };
        let message = format!("`true` on a node with {} interfaces{because}", interfaces.len());
        let remedy = "remove it: EC2 gives a public address only to a node with one interface";
        found.push(Finding::new("spec.associatePublicIPAddress", message, remedy));
    }
    if let Some(partition) = occasion.partition
        && settings.placement_group.is_none()
    {
        let message = format!("partition `{partition}` of no placement group");
        let remedy = "write placementGroupSelector, or ask for no partition";
        found.push(Finding::new("spec.placementGroupSelector", message, remedy));
    }
    let bytes = occasion.user_data.as_ref().map_or(0, String::len);
    if bytes > USER_DATA_BYTES_MAX {
        let message = format!("the rendered user data has {bytes} bytes");
        let remedy = format!("EC2 takes at most {USER_DATA_BYTES_MAX} before base64");
        found.push(Finding::new("spec.userData", message, remedy));
    }
    if occasion.security_groups.is_empty() {
        let message = "no security group is known";
        let remedy = "a node without one would get the network's default group";
        found.push(Finding::new("spec.securityGroupSelectorTerms", message, remedy));
    }
    found
}
