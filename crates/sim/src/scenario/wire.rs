//! What does the document of kind `Simulation` say?

mod images;
mod fleet;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use nodemolt_api::problem::Finding;
use nodemolt_fit::Types;
use serde::Deserialize;
use serde_json::Value;

use super::{Boot, Group, Reservation, SecurityGroup, Simulation, Subnet};
use crate::act::{Publication, read_time};
use crate::json::in_words;
use crate::length;
use fleet::Known;
use images::{image, one_id_each};

/// Small and middling machines of both processors: what EC2 offers here where nobody says.
const USUAL_TYPES: [&str; 14] = [
    "m7g.medium",
    "m7g.large",
    "m7g.xlarge",
    "m7g.2xlarge",
    "c7g.large",
    "r7g.large",
    "m7i.large",
    "m7i.xlarge",
    "m7i.2xlarge",
    "c7i.large",
    "r7i.large",
    "m6i.large",
    "t3.medium",
    "t4g.medium",
];

/// Of nodes where nobody says: halfway to where a `NodePool` that says nothing lets its nodes expire.
const AGE: &str = "14d";

const REPLICAS_MAX: u8 = 3;
/// What the engine's own benchmark goes up to.
const NODES_MAX: u32 = 10_000;
/// Kubernetes' bound for the value of a label, which regions, zones and reservations are on nodes.
const LABEL_MAX: usize = 63;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wire {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(default, rename = "metadata")]
    _metadata: Metadata,
    start: String,
    kubernetes: Option<String>,
    region: Option<String>,
    account: Option<String>,
    cluster: Option<String>,
    zones: Option<Vec<String>>,
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    images: Vec<WireImage>,
    #[serde(default)]
    fleet: Vec<WireGroup>,
    #[serde(default)]
    subnets: Vec<WireSubnet>,
    #[serde(default)]
    security_groups: Vec<WireSecurityGroup>,
    #[serde(default)]
    reservations: Vec<WireReservation>,
    replicas: Option<u8>,
    #[serde(default)]
    boot: WireBoot,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    #[serde(rename = "name")]
    _name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireImage {
    name: String,
    id: Option<String>,
    created: String,
    architecture: Option<String>,
    owner: Option<String>,
    #[serde(default)]
    parameters: Vec<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    behaviour: Option<WireBehaviour>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WireBehaviour {
    Good,
    Stillborn,
    NeverReady,
    Flapping,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireGroup {
    pool: String,
    nodes: u32,
    instance_type: String,
    zones: Option<Vec<String>>,
    image: String,
    age: Option<String>,
    #[serde(default)]
    names: Vec<String>,
    capacity_type: Option<String>,
    reservation: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireSubnet {
    id: String,
    zone: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    free_addresses: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireSecurityGroup {
    id: String,
    name: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireReservation {
    id: String,
    instance_type: String,
    zone: String,
    count: u32,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireBoot {
    runs: Option<String>,
    joins: Option<String>,
    ready: Option<String>,
    #[serde(default)]
    later: BTreeMap<String, String>,
}

pub(super) fn read(value: &Value, pools: &BTreeSet<String>) -> Result<Simulation, Vec<Finding>> {
    let wire: Wire = serde_path_to_error::deserialize(value).map_err(|error| {
        let field = error.path().to_string();
        let field = if field == "." { String::new() } else { field };
        let told = error.into_inner().to_string();
        let told = in_words(&told);
        let number = told.contains("expected a string") && !told.contains("map");
        let last = field.rsplit('.').next();
        let length = last == Some("age") || field.starts_with("boot.");
        let told = match last {
            Some("replicas") => told.replace("from 0 to 255", &format!("from 1 to {REPLICAS_MAX}")),
            Some("nodes") => {
                told.replace(&format!("from 0 to {}", u32::MAX), &format!("from 0 to {NODES_MAX}"))
            }
            Some(_) | None => told,
        };
        let hint = if number && length {
            "write a length of time with its unit, such as `20d` or `90s`"
        } else if number {
            "write it in quotes"
        } else if told.contains("expected a whole number from") {
            "write a number in that range, without quotes"
        } else {
            "the fields of a Simulation are in docs/simulator.md"
        };
        vec![Finding::error(field, told).hint(hint)]
    })?;
    let mut found = Vec::new();
    obeyed(value, "", &mut found);
    let simulation = check(wire, pools, &mut found);
    if found.is_empty() { Ok(simulation) } else { Err(found) }
}

/// What a terminal would obey instead of showing it, anywhere.
fn obeyed(value: &Value, at: &str, found: &mut Vec<Finding>) {
    let mut refuse = |text: &str| {
        if text.chars().any(char::is_control) {
            let message = format!("`{}` has a control character", text.escape_debug());
            found.push(Finding::error(at, message).hint("write it without"));
        }
    };
    match value {
        Value::String(text) => refuse(text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                obeyed(item, &format!("{at}[{index}]"), found);
            }
        }
        Value::Object(members) => {
            // Those of tags and of types.
            for key in members.keys() {
                refuse(key);
            }
            for (key, member) in members {
                let under = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                obeyed(member, &under, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Ids by which others name something: with something in them, and each once.
fn ids<'i>(
    field: &str,
    what: &str,
    all: impl Iterator<Item = &'i String>,
    found: &mut Vec<Finding>,
) {
    let mut known = BTreeSet::new();
    for (at, id) in all.enumerate() {
        let at = format!("{field}[{at}].id");
        if id.is_empty() || id.contains(char::is_whitespace) {
            let message = format!("`{id}` is no id of a {what}");
            found.push(Finding::error(at, message).hint("write one without spaces"));
        } else if !known.insert(id) {
            let message = format!("`{id}` is there twice");
            found.push(Finding::error(at, message).hint(format!("give each {what} its own id")));
        }
    }
}

/// Why it cannot be the value of a label, of so many characters at most.
fn no_label(text: &str, longest: usize) -> Option<String> {
    let odd =
        text.chars().find(|it| !(it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.')));
    let ends = |it: char| it.is_ascii_alphanumeric();
    match odd {
        Some(it) => Some(format!("`{}` may not be in it", it.escape_debug())),
        None if text.len() > longest => {
            Some(format!("its {} characters are more than {longest}", text.len()))
        }
        None if !(text.starts_with(ends) && text.ends_with(ends)) => {
            Some("it begins and ends with a letter or a digit".to_owned())
        }
        None => None,
    }
}

/// What nodes bear as a label: it is told here, where it was written, and not there, where nobody wrote it.
fn on_labels(
    text: &str,
    what: &str,
    longest: usize,
    example: &str,
    at: String,
    found: &mut Vec<Finding>,
) {
    if let Some(wrong) = no_label(text, longest) {
        let message = format!("`{}` is no {what}: {wrong}", shortened(text));
        let hint = format!("nodes have it as a label: write one such as `{example}`");
        found.push(Finding::error(at, message).hint(hint));
    }
}

/// Enough of it to be known again.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LABEL_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Zones that are written. None of them would be another thing than nothing written.
fn or_none(
    zones: Option<Vec<String>>,
    at: String,
    found: &mut Vec<Finding>,
) -> Option<Vec<String>> {
    if zones.as_ref().is_some_and(Vec::is_empty) {
        let finding = Finding::error(at, "there is no zone in it".to_owned());
        found.push(finding.hint("write some, or leave it out: then it is all of them"));
    }
    zones.filter(|it| !it.is_empty())
}

fn check(wire: Wire, pools: &BTreeSet<String>, found: &mut Vec<Finding>) -> Simulation {
    let start = or_tell(read_time(&wire.start).and_then(before_the_end), "start", found);
    let kubernetes = wire.kubernetes.as_deref().unwrap_or("1.35");
    let kubernetes =
        or_tell(kubernetes.parse().map_err(|it: ParseMinor| it.to_string()), "kubernetes", found);
    let account = wire.account.as_deref().unwrap_or("111122223333");
    let account =
        or_tell(account.parse().map_err(|it: ParseAccount| it.to_string()), "account", found);
    let region = wire.region.unwrap_or_else(|| "eu-central-1".to_owned());
    if region.trim().is_empty() {
        let finding = Finding::error("region", "a region has a name");
        found.push(finding.hint("write one, such as eu-central-1, or leave it out"));
    } else {
        // A letter more makes a zone of it.
        let (longest, field) = (LABEL_MAX - 1, "region".to_owned());
        on_labels(&region, "name of a region", longest, "eu-central-1", field, found);
    }
    let zones_written = wire.zones.is_some();
    let zones = or_none(wire.zones, "zones".to_owned(), found)
        .unwrap_or_else(|| ["a", "b", "c"].map(|it| format!("{region}{it}")).to_vec());
    for (at, zone) in zones.iter().enumerate() {
        if zones.iter().take(at).any(|it| it == zone) {
            let message = format!("`{zone}` is there twice");
            let finding = Finding::error(format!("zones[{at}]"), message);
            found.push(finding.hint("write each zone once"));
        }
        if zone.trim().is_empty() {
            let finding = Finding::error(format!("zones[{at}]"), "a zone has a name");
            found.push(finding.hint("write one, such as eu-central-1a"));
        } else if zones_written {
            let field = format!("zones[{at}]");
            on_labels(zone, "name of a zone", LABEL_MAX, "eu-central-1a", field, found);
        }
    }
    let types = types(&wire.types, found);
    ids("subnets", "subnet", wire.subnets.iter().map(|it| &it.id), found);
    ids("securityGroups", "security group", wire.security_groups.iter().map(|it| &it.id), found);
    ids("reservations", "reservation", wire.reservations.iter().map(|it| &it.id), found);
    for (at, it) in wire.reservations.iter().enumerate().filter(|(_, it)| !it.id.is_empty()) {
        let (example, field) = ("cr-0123456789abcdef0", format!("reservations[{at}].id"));
        if !it.id.contains(char::is_whitespace) {
            on_labels(&it.id, "id of a reservation", LABEL_MAX, example, field, found);
        }
    }
    let reserved: BTreeSet<String> = wire.reservations.iter().map(|it| it.id.clone()).collect();
    let mut doubted = BTreeSet::new();
    let mut images: Vec<Publication> = Vec::new();
    for (at, it) in wire.images.into_iter().enumerate() {
        let before = found.len();
        images.push(image(it, start, &format!("images[{at}]"), found));
        if found.len() > before {
            doubted.insert(at);
        }
    }
    one_id_each(&images, &doubted, found);
    let subnet_zones: BTreeSet<String> = wire.subnets.iter().map(|it| it.zone.clone()).collect();
    let mut known = Known {
        pools,
        zones: &zones,
        types: &types,
        images: &images,
        doubted: &doubted,
        subnet_zones: &subnet_zones,
        reserved: &reserved,
        names: BTreeSet::new(),
        found,
    };
    let fleet: Vec<Group> = wire
        .fleet
        .into_iter()
        .enumerate()
        .filter_map(|(at, it)| known.group(it, &format!("fleet[{at}]")))
        .collect();
    let subnets = wire.subnets.into_iter().enumerate().map(|(at, it)| {
        known.zone(&it.zone, &format!("subnets[{at}].zone"));
        let free_addresses = it.free_addresses.unwrap_or(4_000);
        Subnet { id: it.id, zone: it.zone, tags: it.tags, free_addresses }
    });
    let subnets = subnets.collect();
    let security_groups = wire.security_groups.into_iter().map(|it| {
        let name = it.name.unwrap_or_else(|| it.id.clone());
        SecurityGroup { id: it.id, name, tags: it.tags }
    });
    let security_groups = security_groups.collect();
    let reservations = wire.reservations.into_iter().enumerate().map(|(at, it)| {
        known.zone(&it.zone, &format!("reservations[{at}].zone"));
        known.instance_type(&it.instance_type, &format!("reservations[{at}].instanceType"));
        let WireReservation { id, instance_type, zone, count, tags } = it;
        Reservation { id, instance_type, zone, count, tags }
    });
    let reservations = reservations.collect();
    for name in wire.boot.later.keys() {
        known.instance_type(name, &format!("boot.later.{name}"));
    }
    let replicas = wire.replicas.unwrap_or(1);
    if !(1..=REPLICAS_MAX).contains(&replicas) {
        let message = format!("`{replicas}` is no number of replicas");
        let hint = format!("write a number from 1 to {REPLICAS_MAX}");
        found.push(Finding::error("replicas", message).hint(hint));
    }
    let mut length = |field: &str, text: Option<String>| {
        text.and_then(|it| or_tell(length::read(&it), &format!("boot.{field}"), found))
    };
    let boot = Boot {
        runs: length("runs", wire.boot.runs).unwrap_or(Boot::default().runs),
        joins: length("joins", wire.boot.joins),
        ready: length("ready", wire.boot.ready),
        later: (wire.boot.later.into_iter())
            .filter_map(|(name, text)| {
                let by = length(&format!("later.{name}"), Some(text))?;
                Some((name, by))
            })
            .collect(),
    };
    // Where something was unreadable the findings tell, and nobody sees these.
    let nobody = "000000000000".parse().expect("twelve digits");
    Simulation {
        start: start.unwrap_or_default(),
        kubernetes: kubernetes.unwrap_or(nodemolt_core::lookup::Minor { major: 1, minor: 35 }),
        region,
        account: account.unwrap_or(nobody),
        cluster: wire.cluster.unwrap_or_else(|| "simulated".to_owned()),
        zones,
        types,
        images,
        fleet,
        subnets,
        security_groups,
        reservations,
        replicas,
        boot,
    }
}

type ParseMinor = nodemolt_core::lookup::ParseMinorError;
type ParseAccount = nodemolt_core::image::ParseAccountIdError;
type ParseImage = nodemolt_core::image::ParseImageIdError;

fn before_the_end(start: Timestamp) -> Result<Timestamp, String> {
    if start < length::LAST {
        return Ok(start);
    }
    Err(format!(
        "{start} is no time to begin: time ends here at {}; write an earlier one",
        length::LAST
    ))
}

fn or_tell<T>(read: Result<T, String>, field: &str, found: &mut Vec<Finding>) -> Option<T> {
    match read {
        Ok(it) => Some(it),
        Err(told) => {
            found.push(Finding::error(field, told));
            None
        }
    }
}

fn types(written: &[String], found: &mut Vec<Finding>) -> BTreeSet<String> {
    let shipped = Types::shipped();
    if written.is_empty() {
        let there = |it: &&&str| shipped.find(it).is_ok();
        return USUAL_TYPES.iter().filter(there).map(|it| (*it).to_owned()).collect();
    }
    for (at, name) in written.iter().enumerate() {
        let field = format!("types[{at}]");
        if shipped.find(name).is_err() {
            let message = format!("`{name}` is no instance type that this program knows");
            let hint = "`nodemolt types` lists those that it knows";
            found.push(Finding::error(field, message).hint(hint));
        } else if written.iter().take(at).any(|it| it == name) {
            let message = format!("`{name}` is there twice");
            found.push(Finding::error(field, message).hint("write each type once"));
        }
    }
    written.iter().cloned().collect()
}
