//! How is an instance type written on one line?
//!
//! `types ⇄ rows of cells between tabs`
//!
//! A cell that is empty was not in the source. Lists have commas, the parts of a device colons;
//! network cards that are alike share an entry (`0-31:2:100000:100000` is 32 cards). Writing and
//! reading stand side by side so that they cannot disagree, and a test goes both ways.

use std::{fmt, str::FromStr};

use super::Types;
use crate::instance_type::{
    Accelerator, Ebs, Gpu, InstanceStore, InstanceType, Network, NetworkCard, NeuronDevice,
};

pub const COLUMNS: [&str; 35] = [
    "name",
    "vcpus",
    "memory_mib",
    "architectures",
    "cpu_manufacturer",
    "clock_mhz",
    "hypervisor",
    "bare_metal",
    "cards:interfaces:baseline_mbps:peak_mbps",
    "default_card",
    "interfaces_max",
    "ipv4_per_interface",
    "ipv6_per_interface",
    "efa_interfaces_max",
    "ena",
    "encryption_in_transit",
    "network_performance",
    "ebs_optimised",
    "ebs_baseline_mbps",
    "ebs_max_mbps",
    "ebs_nvme",
    "ebs_attachments_max",
    "ebs_attachments_share",
    "store_total_gb",
    "store_nvme",
    "gpus:manufacturer:count:memory_mib",
    "neuron_devices:count:cores:memory_mib",
    "inference_accelerators:manufacturer:count:memory_mib",
    "media_accelerators:manufacturer:count:memory_mib",
    "fpgas:manufacturer:count:memory_mib",
    "boot_modes",
    "nitro_tpm",
    "nitro_tpm_versions",
    "root_devices",
    "virtualisation",
];

/// A list that the source gave and left empty.
const NONE_OF_THEM: &str = "-";

/// Lines that begin with `#` are for people.
pub fn read(text: &str) -> Result<Types, ReadTableError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| read_row(line, index + 1))
        .collect()
}

/// One line per type, in order of their names, without a header.
pub fn write(types: &Types) -> Result<String, WriteTableError> {
    let mut body = String::new();
    for it in types.iter() {
        let cells = write_row(it).ok_or_else(|| WriteTableError { name: it.name.clone() })?;
        body.push_str(&cells.join("\t"));
        body.push('\n');
    }
    Ok(body)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadTableError {
    pub line: usize,
    pub column: &'static str,
    pub value: String,
}

impl fmt::Display for ReadTableError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, value } = self;
        write!(out, "line {line} of the table of instance types: cannot read {column} `{value}`")
    }
}

impl std::error::Error for ReadTableError {}

/// A name holds a tab, a comma or a colon, and would be read back as something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteTableError {
    pub name: String,
}

impl fmt::Display for WriteTableError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "cannot write instance type `{}` as a row: a word has a separator", self.name)
    }
}

impl std::error::Error for WriteTableError {}

// Reading.

/// The cells of one row, taken from left to right.
struct Cells<'a> {
    line: usize,
    cells: std::iter::Zip<std::slice::Iter<'static, &'static str>, std::str::Split<'a, char>>,
}

type Read<T> = Result<T, ReadTableError>;

impl<'a> Cells<'a> {
    fn take<T>(&mut self, read: impl FnOnce(&'a str) -> Option<T>) -> Read<T> {
        let (column, cell) =
            self.cells.next().map_or(("a cell", ""), |(column, cell)| (*column, cell));
        let value = || cell.chars().take(80).collect();
        read(cell).ok_or_else(|| ReadTableError { line: self.line, column, value: value() })
    }

    fn number<T: FromStr>(&mut self) -> Read<T> {
        self.take(|it| it.parse().ok())
    }

    fn maybe_number<T: FromStr>(&mut self) -> Read<Option<T>> {
        self.take(maybe_number)
    }

    fn maybe_text(&mut self) -> Read<Option<String>> {
        self.take(|it| Some(maybe_text(it)))
    }

    fn maybe_flag(&mut self) -> Read<Option<bool>> {
        self.take(|it| match it {
            "" => Some(None),
            "y" => Some(Some(true)),
            "n" => Some(Some(false)),
            _ => None,
        })
    }

    fn maybe_list(&mut self) -> Read<Option<Vec<String>>> {
        self.take(|it| {
            Some(match it {
                "" => None,
                NONE_OF_THEM => Some(Vec::new()),
                _ => Some(it.split(',').map(str::to_owned).collect()),
            })
        })
    }

    fn devices<T>(&mut self, read: impl Fn([&'a str; 4]) -> Option<T>) -> Read<Vec<T>> {
        self.take(|it| each(it).map(|entry| read(parts(entry)?)).collect())
    }

    fn accelerators(&mut self) -> Read<Vec<Accelerator>> {
        self.devices(|[name, manufacturer, count, memory]| {
            Some(Accelerator {
                name: maybe_text(name),
                manufacturer: maybe_text(manufacturer),
                count: count.parse().ok()?,
                memory_mib: maybe_number(memory)?,
            })
        })
    }
}

fn read_row(row: &str, line: usize) -> Read<InstanceType> {
    let count = row.split('\t').count();
    if count != COLUMNS.len() {
        return Err(ReadTableError {
            line,
            column: "the number of cells",
            value: count.to_string(),
        });
    }
    let mut cells = Cells { line, cells: COLUMNS.iter().zip(row.split('\t')) };
    // Each cell is taken from where the last one ended: what follows stands in the order of the
    // columns, also inside the struct expressions, which Rust evaluates as they are written.
    let name = cells.take(maybe_text)?;
    let vcpus = cells.number()?;
    let memory_mib = cells.number()?;
    let architectures = cells.maybe_list()?.unwrap_or_default();
    let cpu_manufacturer = cells.maybe_text()?;
    let clock_mhz = cells.maybe_number()?;
    let hypervisor = cells.maybe_text()?;
    let bare_metal = cells.maybe_flag()?;
    let cards = cells.take(read_cards)?;
    let network = Network {
        cards,
        default_card: cells.number()?,
        interfaces_max: cells.maybe_number()?,
        ipv4_per_interface: cells.number()?,
        ipv6_per_interface: cells.maybe_number()?,
        efa_interfaces_max: cells.maybe_number()?,
        ena: cells.maybe_text()?,
        encryption_in_transit: cells.maybe_flag()?,
        performance: cells.maybe_text()?,
    };
    let ebs = Ebs {
        optimised: cells.maybe_text()?,
        baseline_mbps: cells.maybe_number()?,
        max_mbps: cells.maybe_number()?,
        nvme: cells.maybe_text()?,
        attachments_max: cells.maybe_number()?,
        attachments_share: cells.maybe_text()?,
    };
    let store = InstanceStore { total_gb: cells.maybe_number()?, nvme: cells.maybe_text()? };
    let instance_store = (store.total_gb.is_some() || store.nvme.is_some()).then_some(store);
    let gpus = cells.devices(|[name, manufacturer, count, memory]| {
        Some(Gpu {
            name: maybe_text(name),
            manufacturer: maybe_text(manufacturer),
            count: count.parse().ok()?,
            memory_mib: maybe_number(memory)?,
        })
    })?;
    let neuron_devices = cells.devices(|[name, count, cores, memory]| {
        Some(NeuronDevice {
            name: maybe_text(name),
            count: count.parse().ok()?,
            cores_per_device: maybe_number(cores)?,
            memory_mib: maybe_number(memory)?,
        })
    })?;
    Ok(InstanceType {
        name,
        vcpus,
        memory_mib,
        architectures,
        cpu_manufacturer,
        clock_mhz,
        hypervisor,
        bare_metal,
        network,
        ebs,
        instance_store,
        gpus,
        neuron_devices,
        inference_accelerators: cells.accelerators()?,
        media_accelerators: cells.accelerators()?,
        fpgas: cells.accelerators()?,
        boot_modes: cells.maybe_list()?,
        nitro_tpm: cells.maybe_flag()?,
        nitro_tpm_versions: cells.maybe_list()?.unwrap_or_default(),
        root_devices: cells.maybe_list()?,
        virtualisation: cells.maybe_list()?,
    })
}

fn maybe_text(cell: &str) -> Option<String> {
    (!cell.is_empty()).then(|| cell.to_owned())
}

#[expect(clippy::option_option, reason = "the outer one is failure, the inner one absence")]
fn maybe_number<T: FromStr>(cell: &str) -> Option<Option<T>> {
    if cell.is_empty() { Some(None) } else { cell.parse().ok().map(Some) }
}

fn each(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(',').filter(|it| !it.is_empty())
}

fn parts(entry: &str) -> Option<[&str; 4]> {
    entry.split(':').collect::<Vec<_>>().try_into().ok()
}

fn read_cards(cell: &str) -> Option<Vec<NetworkCard>> {
    let mut cards = Vec::new();
    for entry in each(cell) {
        let [indices, interfaces, baseline, peak] = parts(entry)?;
        let (first, last) = indices.split_once('-').unwrap_or((indices, indices));
        let (first, last): (u8, u8) = (first.parse().ok()?, last.parse().ok()?);
        for index in first..=last {
            cards.push(NetworkCard {
                index: index.into(),
                interfaces_max: interfaces.parse().ok()?,
                baseline_mbps: maybe_number(baseline)?,
                peak_mbps: maybe_number(peak)?,
            });
        }
    }
    Some(cards)
}

// Writing. `None` where a word has a separator in it.

fn write_row(it: &InstanceType) -> Option<[String; COLUMNS.len()]> {
    let InstanceType {
        name,
        vcpus,
        memory_mib,
        architectures,
        cpu_manufacturer,
        clock_mhz,
        hypervisor,
        bare_metal,
        network,
        ebs,
        instance_store,
        gpus,
        neuron_devices,
        inference_accelerators,
        media_accelerators,
        fpgas,
        boot_modes,
        nitro_tpm,
        nitro_tpm_versions,
        root_devices,
        virtualisation,
    } = it;
    let Network {
        performance,
        cards,
        default_card,
        interfaces_max,
        ipv4_per_interface,
        ipv6_per_interface,
        efa_interfaces_max,
        ena,
        encryption_in_transit,
    } = network;
    let Ebs { optimised, baseline_mbps, max_mbps, nvme, attachments_max, attachments_share } = ebs;
    let gpus: Option<Vec<String>> = gpus
        .iter()
        .map(|Gpu { name, manufacturer, count, memory_mib }| {
            device(name.as_ref(), &text(manufacturer.as_ref())?, count, *memory_mib)
        })
        .collect();
    let neuron_devices: Option<Vec<String>> = neuron_devices
        .iter()
        .map(|NeuronDevice { name, count, cores_per_device, memory_mib }| {
            device(name.as_ref(), &count.to_string(), &number(*cores_per_device), *memory_mib)
        })
        .collect();
    Some([
        text(Some(name))?,
        vcpus.to_string(),
        memory_mib.to_string(),
        list(Some(architectures))?,
        text(cpu_manufacturer.as_ref())?,
        number(*clock_mhz),
        text(hypervisor.as_ref())?,
        flag(*bare_metal),
        write_cards(cards),
        default_card.to_string(),
        number(*interfaces_max),
        ipv4_per_interface.to_string(),
        number(*ipv6_per_interface),
        number(*efa_interfaces_max),
        text(ena.as_ref())?,
        flag(*encryption_in_transit),
        text(performance.as_ref())?,
        text(optimised.as_ref())?,
        number(*baseline_mbps),
        number(*max_mbps),
        text(nvme.as_ref())?,
        number(*attachments_max),
        text(attachments_share.as_ref())?,
        number(instance_store.as_ref().and_then(|it| it.total_gb)),
        text(instance_store.as_ref().and_then(|it| it.nvme.as_ref()))?,
        gpus?.join(","),
        neuron_devices?.join(","),
        write_accelerators(inference_accelerators)?,
        write_accelerators(media_accelerators)?,
        write_accelerators(fpgas)?,
        list(boot_modes.as_ref())?,
        flag(*nitro_tpm),
        if nitro_tpm_versions.is_empty() { String::new() } else { list(Some(nitro_tpm_versions))? },
        list(root_devices.as_ref())?,
        list(virtualisation.as_ref())?,
    ])
}

fn word(text: &str) -> Option<&str> {
    let plain = !text.is_empty()
        && text != NONE_OF_THEM
        && !text.starts_with('#')
        && !text.contains(|it: char| it.is_control() || it == ',' || it == ':');
    plain.then_some(text)
}

fn text(it: Option<&String>) -> Option<String> {
    it.map_or(Some(String::new()), |it| word(it).map(str::to_owned))
}

fn number<T: ToString>(it: Option<T>) -> String {
    it.map(|it| it.to_string()).unwrap_or_default()
}

fn flag(it: Option<bool>) -> String {
    it.map_or("", |it| if it { "y" } else { "n" }).to_owned()
}

fn list(it: Option<&Vec<String>>) -> Option<String> {
    match it {
        None => Some(String::new()),
        Some(words) if words.is_empty() => Some(NONE_OF_THEM.to_owned()),
        Some(words) => {
            words.iter().map(|it| word(it)).collect::<Option<Vec<_>>>().map(|it| it.join(","))
        }
    }
}

fn device(
    name: Option<&String>,
    second: &str,
    third: &impl ToString,
    memory_mib: Option<u64>,
) -> Option<String> {
    Some([text(name)?, second.to_owned(), third.to_string(), number(memory_mib)].join(":"))
}

fn write_accelerators(accelerators: &[Accelerator]) -> Option<String> {
    let entries: Option<Vec<String>> = accelerators
        .iter()
        .map(|Accelerator { name, manufacturer, count, memory_mib }| {
            device(name.as_ref(), &text(manufacturer.as_ref())?, count, *memory_mib)
        })
        .collect();
    Some(entries?.join(","))
}

fn write_cards(cards: &[NetworkCard]) -> String {
    let alike = |left: &NetworkCard, right: &NetworkCard| {
        NetworkCard { index: right.index, ..left.clone() } == *right
            && left.index.checked_add(1) == Some(right.index)
    };
    cards
        .chunk_by(alike)
        .filter_map(|run| Some((run.first()?, run.last()?)))
        .map(|(first, last)| {
            let mut entry = first.index.to_string();
            if last.index != first.index {
                entry.push('-');
                entry.push_str(&last.index.to_string());
            }
            let NetworkCard { index: _, interfaces_max, baseline_mbps, peak_mbps } = first;
            let (baseline, peak) = (number(*baseline_mbps), number(*peak_mbps));
            format!("{entry}:{interfaces_max}:{baseline}:{peak}")
        })
        .collect::<Vec<_>>()
        .join(",")
}
