//! The answer for people.

use std::fmt::Write as _;

use jiff::Timestamp;
use nodemolt_core::resolve::{Next, Refusal};
use nodemolt_fit::capacity::{self, Amounts};
use nodemolt_fit::instance_type::InstanceType;
use nodemolt_fit::{Quantity, label, type_labels};

use super::{Bootable, ImageSaid, Item, Story};
use crate::output::{Look, Mark, Table, length, minute, relative};

/// What everybody looks for first; devices follow by name.
const FIRST: [&str; 4] =
    [capacity::CPU, capacity::MEMORY, capacity::EPHEMERAL_STORAGE, capacity::PODS];

pub(super) fn list(story: &Story<'_>, look: Look, wide: bool, with_headers: bool) -> String {
    let mut headers = vec!["TYPE", "ARCH", "VCPU", "MEMORY", "PODS", "GPUS"];
    if wide {
        headers.extend(["ACCELERATORS", "CPU-MAKER", "MHZ", "NETWORK-MBPS", "EBS-MBPS"]);
        headers.extend(["LOCAL-GB", "HYPERVISOR"]);
    }
    headers.extend(["ALLOCATABLE-CPU", "ALLOCATABLE-MEMORY"]);
    if wide {
        headers.push("ALLOCATABLE-STORAGE");
    }
    if story.with_images {
        headers.push("IMAGE");
    }
    let mut table = Table::new(&headers);
    for item in &story.items {
        let it = item.it;
        let allocatable = |name: &str| amount(&item.offer.allocatable, name);
        let labelled = |key: &str| {
            let value = item.labels.iter().find(|it| it.key == key)?.value.clone();
            value.filter(|it| !it.is_empty())
        };
        let cell = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![
            it.name.clone(),
            cell(it.kubernetes_arch().map(str::to_owned)),
            it.vcpus.to_string(),
            memory(it),
            amount(&item.offer.capacity, capacity::PODS),
            cell(gpus(it)),
        ];
        if wide {
            cells.extend([
                cell(accelerators(it)),
                cell(labelled(label::CPU_MANUFACTURER)),
                cell(it.clock_mhz.map(|it| it.to_string())),
                cell(labelled(label::NETWORK_BANDWIDTH)),
                cell(labelled(label::EBS_BANDWIDTH)),
                cell(
                    it.instance_store.as_ref().and_then(|it| it.total_gb).map(|it| it.to_string()),
                ),
                cell(labelled(label::HYPERVISOR)),
            ]);
        }
        cells.extend([allocatable(capacity::CPU), allocatable(capacity::MEMORY)]);
        if wide {
            cells.push(allocatable(capacity::EPHEMERAL_STORAGE));
        }
        if story.with_images {
            cells.push(image_cell(item, look, wide));
        }
        table.row(cells);
    }
    table.print(with_headers)
}

pub(super) fn pages(story: &Story<'_>, look: Look) -> String {
    let pages: Vec<String> = story.items.iter().map(|it| page(story, it, look)).collect();
    pages.join("\n\n")
}

fn page(story: &Story<'_>, item: &Item<'_>, look: Look) -> String {
    let mut text = about(story, item.it);
    text.push('\n');
    text.push_str(&labels(item));
    text.push('\n');
    text.push_str(&resources(item));
    if story.with_images {
        text.push('\n');
        text.push_str(&images(story, item, look));
    }
    text
}

/// One fact per line, the name of the fact first.
fn facts(facts: &[(&str, String)]) -> String {
    facts.iter().fold(String::new(), |mut all, (name, value)| {
        let _ = writeln!(all, "{name:<9} {value}");
        all
    })
}

fn about(story: &Story<'_>, it: &InstanceType) -> String {
    let class = match &story.class {
        Some(class) => format!("{class}, family {}", story.family),
        None => format!("none, family {} with its defaults", story.family),
    };
    let mut cpu = format!("{} × {}", it.vcpus, it.architectures.join(" or "));
    let details = [it.cpu_manufacturer.clone(), it.clock_mhz.map(|it| format!("{it} MHz"))];
    let details: Vec<String> = details.into_iter().flatten().collect();
    if !details.is_empty() {
        let _ = write!(cpu, ", {}", details.join(", "));
    }
    if it.kubernetes_arch().is_none() {
        cpu.push_str(" (no Kubernetes node has this architecture)");
    }
    let mut all =
        vec![("type", it.name.clone()), ("class", class), ("cpu", cpu), ("memory", memory(it))];
    all.extend(gpus(it).map(|gpus| ("gpus", gpus)));
    all.extend(accelerators(it).map(|it| ("others", it)));
    all.push(("network", network(it)));
    all.extend(disks(it).map(|disks| ("disks", disks)));
    facts(&all)
}

fn network(it: &InstanceType) -> String {
    let mut words = Vec::new();
    words.extend(it.network.performance.clone());
    if it.network.cards.len() > 1 {
        words.push(format!("{} cards", it.network.cards.len()));
    }
    if let Some(card) = it.network.card_of_pods() {
        words.push(format!(
            "for pods {} interfaces × {} addresses",
            card.interfaces_max, it.network.ipv4_per_interface
        ));
    }
    words.join(", ")
}

fn disks(it: &InstanceType) -> Option<String> {
    let store = it.instance_store.as_ref()?;
    let nvme = if store.nvme.as_deref() == Some("unsupported") { "" } else { " NVMe" };
    Some(format!("{} GB{nvme} inside", store.total_gb?))
}

fn memory(it: &InstanceType) -> String {
    Quantity::from_mebibytes(i64::try_from(it.memory_mib).unwrap_or(i64::MAX)).to_string()
}

/// `4×a10g`; a part of one is `<1×l4`.
fn counted(count: u32, name: Option<&str>, otherwise: &str) -> String {
    let name = name.unwrap_or(otherwise).to_lowercase().replace(' ', "-");
    if count == 0 { format!("<1×{name}") } else { format!("{count}×{name}") }
}

fn gpus(it: &InstanceType) -> Option<String> {
    let all = it.gpus.iter().map(|gpu| {
        let otherwise = gpu.manufacturer.as_deref().unwrap_or("gpu");
        counted(gpu.count, gpu.name.as_deref(), otherwise)
    });
    joined(&all.collect::<Vec<_>>())
}

fn accelerators(it: &InstanceType) -> Option<String> {
    let mut all: Vec<String> = it
        .neuron_devices
        .iter()
        .map(|it| counted(it.count, it.name.as_deref(), "neuron"))
        .collect();
    // EC2 lists Inferentia a second time.
    let inference = it.inference_accelerators.iter().filter(|_| it.neuron_devices.is_empty());
    let others = inference.chain(&it.media_accelerators).chain(&it.fpgas);
    all.extend(others.map(|it| counted(it.count, it.name.as_deref(), "accelerator")));
    joined(&all)
}

fn joined(all: &[String]) -> Option<String> {
    (!all.is_empty()).then(|| all.join("+"))
}

fn labels(item: &Item<'_>) -> String {
    let mut table = Table::new(&["LABEL", "VALUE"]);
    let (present, absent): (Vec<_>, Vec<_>) = item.labels.iter().partition(|it| it.value.is_some());
    for type_labels::TypeLabel { key, value } in present.into_iter().chain(absent) {
        let value = match value.as_deref() {
            None => "<none>",
            Some("") => "\"\"",
            Some(value) => value,
        };
        table.row(vec![(*key).to_owned(), value.to_owned()]);
    }
    table.print(true)
}

/// A row per resource, a column per part: what is there, what is kept back, what remains.
fn resources(item: &Item<'_>) -> String {
    let offer = &item.offer;
    let parts = [
        &offer.capacity,
        &offer.kube_reserved,
        &offer.system_reserved,
        &offer.eviction,
        &offer.allocatable,
    ];
    let mut names: Vec<&str> = FIRST.to_vec();
    for name in parts.iter().flat_map(|it| it.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names[FIRST.len()..].sort_unstable();
    let mut table = Table::new(&[
        "RESOURCE",
        "CAPACITY",
        "KUBE-RESERVED",
        "SYSTEM-RESERVED",
        "EVICTION",
        "ALLOCATABLE",
    ]);
    for name in names {
        let mut cells = vec![name.to_owned()];
        cells.extend(parts.iter().map(|it| amount(it, name)));
        table.row(cells);
    }
    table.print(true)
}

fn amount(amounts: &Amounts, name: &str) -> String {
    amounts.get(name).map_or_else(|| "-".to_owned(), ToString::to_string)
}

fn image_cell(item: &Item<'_>, look: Look, wide: bool) -> String {
    let Some(bootable) = item.boots_everywhere() else {
        return look.mark(Mark::Careful, "depends on the pool");
    };
    let shown = |image: &ImageSaid| {
        if wide { format!("{} {}", image.id, image.name) } else { image.id.to_string() }
    };
    match bootable {
        Bootable::Image { image, .. } => {
            format!("{} {}", look.mark(Mark::Good, "boots"), shown(image))
        }
        Bootable::HeldBack { image, refusal, .. } => {
            let mark = look.mark(held_mark(refusal), "held back");
            format!("{mark} {} {}", shown(image), refusal.reason())
        }
        Bootable::Nothing { .. } => look.mark(Mark::Refused, "none"),
        Bootable::InNoPool => look.mark(Mark::Passed, "in no pool"),
    }
}

/// What ends by itself is waited for.
fn held_mark(refusal: &Refusal) -> Mark {
    if refusal.ends_at().is_some() { Mark::Waiting } else { Mark::Refused }
}

fn images(story: &Story<'_>, item: &Item<'_>, look: Look) -> String {
    if let Some(bootable) = item.boots_everywhere() {
        let pools: Vec<&str> = item.boots.iter().filter_map(|(it, _)| it.as_deref()).collect();
        let mut all = Vec::new();
        if !pools.is_empty() {
            all.push(("pools", pools.join(", ")));
        }
        all.extend(image_facts(bootable, story.now, look));
        return facts(&all);
    }
    let mut parts = Vec::new();
    for (pool, bootable) in &item.boots {
        let mut all = vec![("pool", pool.clone().unwrap_or_default())];
        all.extend(image_facts(bootable, story.now, look));
        parts.push(facts(&all));
    }
    parts.join("\n")
}

fn image_facts(bootable: &Bootable, now: Timestamp, look: Look) -> Vec<(&'static str, String)> {
    match bootable {
        Bootable::Image { image, next } => {
            let mut all = image_fact(&look.mark(Mark::Good, "boots"), image, now);
            all.extend(next.as_ref().map(|it| ("next", upcoming(it, now))));
            all
        }
        Bootable::HeldBack { image, refusal, next } => {
            let mut all = image_fact(&look.mark(held_mark(refusal), "held back"), image, now);
            all.push(("because", refusal.to_string()));
            all.extend(next.as_ref().map(|it| ("next", upcoming(it, now))));
            all
        }
        Bootable::Nothing { nearest, reasons } => {
            let mut all = vec![("image", look.mark(Mark::Refused, "none"))];
            if let Some((image, misses)) = nearest {
                all.push(("nearest", format!("{} {}", image.id, image.name)));
                all.extend(misses.iter().map(|it| ("because", it.to_string())));
            }
            all.extend(reasons.iter().map(|it| ("because", it.clone())));
            all
        }
        Bootable::InNoPool => vec![
            ("image", look.mark(Mark::Passed, "none")),
            ("because", "no pool of this class would launch this type".to_owned()),
        ],
    }
}

fn image_fact(mark: &str, image: &ImageSaid, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut all = vec![("image", format!("{mark} {}", image.id)), ("name", image.name.clone())];
    all.extend(image.dated.map(|it| {
        ("created", format!("{} UTC, {} old", minute(it), length(now.duration_since(it))))
    }));
    all
}

fn upcoming(next: &Next, now: Timestamp) -> String {
    let Next { id, name, at } = next;
    format!("{}, on {} UTC: {id} {name}", relative(*at, now), minute(*at))
}
