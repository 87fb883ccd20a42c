//! Which instance types does an answer of `aws ec2 describe-instance-types` describe?
//!
//! `{"InstanceTypes": […], "NextToken": …} → instance types, and whether these were all`
//!
//! Needed are the name and what a node's capacity follows from: vCPUs, memory, architectures and the
//! network's limits. Everything else may be missing (or `null`, as `--query` prints what it did not
//! find) and then stays unsaid.

use nodemolt_fit::instance_type::{
    Accelerator, Ebs, Gpu, InstanceStore, InstanceType, Network, NetworkCard, NeuronDevice,
};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceTypesAnswer {
    /// In the order of the answer; a name may come twice.
    pub types: Vec<InstanceType>,
    /// False if the answer has a `NextToken`: there were more, on a page that we were not given.
    pub complete: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadInstanceTypesError {
    #[error("instance types are not JSON")]
    NotJson(#[source] serde_json::Error),

    #[error(
        "instance types are not an answer of `aws ec2 describe-instance-types`: no list \
         `InstanceTypes`"
    )]
    NoList,

    #[error("{place}: `{member}` is missing")]
    Missing { place: Place, member: String },

    /// Without a member, the whole entry.
    #[error("{place}: {}is `{value}` and not {wanted}", subject(member))]
    Unreadable { place: Place, member: String, value: String, wanted: &'static str },
}

/// Where in the answer: `InstanceTypes[3] (m5.large)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub index: usize,
    pub name: Option<String>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "InstanceTypes[{}]", self.index)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(out, " ({name})"))
    }
}

/// Windows shells put one before everything they save.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub fn read(bytes: &[u8]) -> Result<InstanceTypesAnswer, ReadInstanceTypesError> {
    let json = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let answer: Value = serde_json::from_slice(json).map_err(ReadInstanceTypesError::NotJson)?;
    let Some(list) = answer.get("InstanceTypes").and_then(Value::as_array) else {
        return Err(ReadInstanceTypesError::NoList);
    };
    let types = list.iter().enumerate().map(read_type).collect::<Result<_, _>>()?;
    let complete = answer.get("NextToken").is_none_or(|it| it.is_null() || it == "");
    Ok(InstanceTypesAnswer { types, complete })
}

fn read_type((index, json): (usize, &Value)) -> Reading<InstanceType> {
    let place = &Place {
        index,
        name: json
            .get("InstanceType")
            .and_then(Value::as_str)
            .filter(|it| plain_name(it))
            .map(str::to_owned),
    };
    let all = Member { place, path: String::new(), json: Some(json) };
    let processor = all.at("ProcessorInfo")?;
    Ok(InstanceType {
        name: all.at("InstanceType")?.needed()?.name()?,
        vcpus: all.at("VCpuInfo")?.at("DefaultVCpus")?.needed()?.number()?,
        memory_mib: all.at("MemoryInfo")?.at("SizeInMiB")?.needed()?.number()?,
        architectures: processor.at("SupportedArchitectures")?.needed()?.words()?,
        cpu_manufacturer: processor.at("Manufacturer")?.maybe(Member::text)?,
        clock_mhz: processor.at("SustainedClockSpeedInGhz")?.maybe(Member::thousandths)?,
        hypervisor: all.at("Hypervisor")?.maybe(Member::text)?,
        bare_metal: all.at("BareMetal")?.maybe(Member::flag)?,
        network: read_network(&all.at("NetworkInfo")?)?,
        ebs: read_ebs(&all.at("EbsInfo")?)?,
        instance_store: all.at("InstanceStorageInfo")?.maybe(|store| {
            Ok(InstanceStore {
                total_gb: store.at("TotalSizeInGB")?.maybe(Member::number)?,
                nvme: store.at("NvmeSupport")?.maybe(Member::text)?,
            })
        })?,
        gpus: all.at("GpuInfo")?.at("Gpus")?.each(|it| {
            let Accelerator { name, manufacturer, count, memory_mib } = read_accelerator(it)?;
            Ok(Gpu { name, manufacturer, count, memory_mib })
        })?,
        neuron_devices: all.at("NeuronInfo")?.at("NeuronDevices")?.each(|it| {
            Ok(NeuronDevice {
                name: it.at("Name")?.maybe(Member::text)?,
                count: it.at("Count")?.needed()?.number()?,
                cores_per_device: it.at("CoreInfo")?.at("Count")?.maybe(Member::number)?,
                memory_mib: it.at("MemoryInfo")?.at("SizeInMiB")?.maybe(Member::number)?,
            })
        })?,
        inference_accelerators: all
            .at("InferenceAcceleratorInfo")?
            .at("Accelerators")?
            .each(read_accelerator)?,
        media_accelerators: all
            .at("MediaAcceleratorInfo")?
            .at("Accelerators")?
            .each(read_accelerator)?,
        fpgas: all.at("FpgaInfo")?.at("Fpgas")?.each(read_accelerator)?,
        boot_modes: all.at("SupportedBootModes")?.maybe(Member::words)?,
        nitro_tpm: all.at("NitroTpmSupport")?.maybe(Member::supported)?,
        nitro_tpm_versions: all
            .at("NitroTpmInfo")?
            .at("SupportedVersions")?
            .maybe(Member::words)?
            .unwrap_or_default(),
        root_devices: all.at("SupportedRootDeviceTypes")?.maybe(Member::words)?,
        virtualisation: all.at("SupportedVirtualizationTypes")?.maybe(Member::words)?,
    })
}

fn read_network(network: &Member<'_>) -> Reading<Network> {
    network.at("NetworkCards")?.needed()?;
    let efa_supported = network.at("EfaSupported")?.maybe(Member::flag)?;
    let efa_interfaces_max =
        network.at("EfaInfo")?.at("MaximumEfaInterfaces")?.maybe(Member::number)?;
    Ok(Network {
        performance: network.at("NetworkPerformance")?.maybe(Member::text)?,
        cards: network.at("NetworkCards")?.each(|card| {
            Ok(NetworkCard {
                index: card.at("NetworkCardIndex")?.needed()?.number()?,
                interfaces_max: card.at("MaximumNetworkInterfaces")?.needed()?.number()?,
                baseline_mbps: card.at("BaselineBandwidthInGbps")?.maybe(Member::thousandths)?,
                peak_mbps: card.at("PeakBandwidthInGbps")?.maybe(Member::thousandths)?,
            })
        })?,
        // Answers from before the member existed mean the first card.
        default_card: network.at("DefaultNetworkCardIndex")?.maybe(Member::number)?.unwrap_or(0),
        interfaces_max: network.at("MaximumNetworkInterfaces")?.maybe(Member::number)?,
        ipv4_per_interface: network.at("Ipv4AddressesPerInterface")?.needed()?.number()?,
        ipv6_per_interface: network.at("Ipv6AddressesPerInterface")?.maybe(Member::number)?,
        efa_interfaces_max: match efa_supported {
            Some(false) => Some(0),
            Some(true) | None => efa_interfaces_max,
        },
        ena: network.at("EnaSupport")?.maybe(Member::text)?,
        encryption_in_transit: network.at("EncryptionInTransitSupported")?.maybe(Member::flag)?,
    })
}

fn read_ebs(ebs: &Member<'_>) -> Reading<Ebs> {
    let optimised = ebs.at("EbsOptimizedInfo")?;
    Ok(Ebs {
        optimised: ebs.at("EbsOptimizedSupport")?.maybe(Member::text)?,
        baseline_mbps: optimised.at("BaselineBandwidthInMbps")?.maybe(Member::number)?,
        max_mbps: optimised.at("MaximumBandwidthInMbps")?.maybe(Member::number)?,
        nvme: ebs.at("NvmeSupport")?.maybe(Member::text)?,
        attachments_max: ebs.at("MaximumEbsAttachments")?.maybe(Member::number)?,
        attachments_share: ebs.at("AttachmentLimitType")?.maybe(Member::text)?,
    })
}

fn read_accelerator(it: &Member<'_>) -> Reading<Accelerator> {
    Ok(Accelerator {
        name: it.at("Name")?.maybe(Member::text)?,
        manufacturer: it.at("Manufacturer")?.maybe(Member::text)?,
        count: it.at("Count")?.needed()?.number()?,
        memory_mib: it.at("MemoryInfo")?.at("SizeInMiB")?.maybe(Member::number)?,
    })
}

type Reading<T> = Result<T, ReadInstanceTypesError>;

/// A place in the JSON that knows how it was reached, so that an error can say so.
struct Member<'a> {
    place: &'a Place,
    path: String,
    json: Option<&'a Value>,
}

impl<'a> Member<'a> {
    /// A member of this one. What is missing has no members; what is no object must not be taken for
    /// an empty one, or a machine with GPUs becomes one without.
    fn at(&self, name: &str) -> Reading<Member<'a>> {
        let json = match self.json {
            None => None,
            Some(Value::Object(members)) => members.get(name).filter(|it| !it.is_null()),
            Some(_) => return Err(self.unreadable("an object")),
        };
        let dot = if self.path.is_empty() { "" } else { "." };
        Ok(Member { place: self.place, path: format!("{}{dot}{name}", self.path), json })
    }

    fn needed(self) -> Reading<Self> {
        match self.json {
            Some(_) => Ok(self),
            None => Err(ReadInstanceTypesError::Missing {
                place: self.place.clone(),
                member: self.path,
            }),
        }
    }

    fn maybe<T>(&self, read: impl FnOnce(&Self) -> Reading<T>) -> Reading<Option<T>> {
        self.json.map(|_| read(self)).transpose()
    }

    /// A list; one that is missing is empty.
    fn each<T>(&self, read: impl Fn(&Member<'a>) -> Reading<T>) -> Reading<Vec<T>> {
        let Some(json) = self.json else { return Ok(Vec::new()) };
        let entries = json.as_array().ok_or_else(|| self.unreadable("a list"))?;
        let entry = |(index, json)| {
            let path = format!("{}[{index}]", self.path);
            Member { place: self.place, path, json: Some(json) }
        };
        entries.iter().enumerate().map(entry).map(|it| read(&it)).collect()
    }

    fn number<T: TryFrom<u64>>(&self) -> Reading<T> {
        self.json
            .and_then(Value::as_u64)
            .and_then(|it| T::try_from(it).ok())
            .ok_or_else(|| self.unreadable("a whole number in its range"))
    }

    /// `3.1` (GHz, Gbps) as 3100 (MHz, Mbps).
    fn thousandths(&self) -> Reading<u64> {
        self.json
            .and_then(Value::as_number)
            .and_then(|it| thousandths(&it.to_string()))
            .ok_or_else(|| self.unreadable("a number in its range"))
    }

    fn flag(&self) -> Reading<bool> {
        self.json.and_then(Value::as_bool).ok_or_else(|| self.unreadable("`true` or `false`"))
    }

    fn supported(&self) -> Reading<bool> {
        match self.json.and_then(Value::as_str) {
            Some("supported") => Ok(true),
            Some("unsupported") => Ok(false),
            _ => Err(self.unreadable("`supported` or `unsupported`")),
        }
    }

    fn text(&self) -> Reading<String> {
        let text = self.json.and_then(Value::as_str).ok_or_else(|| self.unreadable("a text"))?;
        Ok(text.to_owned())
    }

    fn name(&self) -> Reading<String> {
        let name = self.text()?;
        if plain_name(&name) { Ok(name) } else { Err(self.unreadable("a name such as `m5.large`")) }
    }

    fn words(&self) -> Reading<Vec<String>> {
        let words = self.json.and_then(Value::as_array).and_then(|list| {
            list.iter().map(|it| it.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        words.ok_or_else(|| self.unreadable("a list of texts"))
    }

    fn unreadable(&self, wanted: &'static str) -> ReadInstanceTypesError {
        ReadInstanceTypesError::Unreadable {
            place: self.place.clone(),
            member: self.path.clone(),
            value: shorten(self.json.map(Value::to_string).unwrap_or_default()),
            wanted,
        }
    }
}

/// A decimal number times a thousand, rounded. Digit by digit, so that no rounding of floats gets in.
fn thousandths(decimal: &str) -> Option<u64> {
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    if !fraction.bytes().all(|it| it.is_ascii_digit()) {
        return None; // 1e300 and the like.
    }
    let digit = |place: usize| fraction.as_bytes().get(place).map_or(0, |it| u64::from(it - b'0'));
    let below_one = digit(0) * 100 + digit(1) * 10 + digit(2) + u64::from(digit(3) >= 5);
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(below_one)
}

/// Whether it can stand in a label and on a line of output.
fn plain_name(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-'))
}

fn subject(member: &str) -> String {
    if member.is_empty() { String::new() } else { format!("`{member}` ") }
}

fn shorten(mut text: String) -> String {
    const CHARS_MAX: usize = 60;
    if let Some((end, _)) = text.char_indices().nth(CHARS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}
