//! What is an AL2023 node told?
//!
//! `user's parts × settings → MIME, our NodeConfig last`
//!
//! nodeadm merges the `NodeConfig`s of a document in their order, so ours comes last: maps merge key by
//! key, lists are replaced, flags are appended. A list of taints would so cost the user theirs: we carry
//! it into ours. A flag beats every config: one for something that is ours is refused. And one
//! `NodeConfig` that nodeadm cannot decode costs all of them, so the user's is read here first.

use nodemolt_fit::Family;
use serde_json::{Map, Value, json};

use super::identity::{self, shown};
use super::mime::{self, Part};
use super::{
    Kubelet, MergeConflict, Place, Provenance, Remark, Settings, Source, Taint, UserData, UserPart,
    kubelet, yaml,
};

mod flags;
mod node_config;
mod parts;
mod values;

use node_config::Theirs;
pub(crate) use node_config::reservations;

pub const NODE_CONFIG: &str = "application/node.eks.aws";
const API_VERSION: &str = "node.eks.aws/v1alpha1";
const KIND: &str = "NodeConfig";

/// The document for the node, or everything that speaks against it.
pub fn render(settings: &Settings, user: UserPart<'_>) -> Result<UserData, MergeConflict> {
    // What we rendered ourselves is not repeated, so that rendering again changes nothing. Ours carries
    // the user's taints, so it is known by what comes of the parts before it.
    if let Ok(mut read) = parts::read(user)
        && let Some((last, _)) = read.parts.pop()
        && last.body.starts_with(OURS_BEGINS)
        && let Ok(rendered) = assemble(settings, Ok(read))
        && rendered.parts.last() == Some(&last)
    {
        return Ok(rendered.finish());
    }
    assemble(settings, parts::read(user)).map(Assembled::finish)
}

/// How our `NodeConfig` begins.
const OURS_BEGINS: &str = "# NodeConfig by nodemolt\n";

/// The user's parts and ours, last.
#[derive(Debug)]
struct Assembled {
    parts: Vec<Part>,
    ours: Ours,
    remarks: Vec<Remark>,
}

impl Assembled {
    fn finish(self) -> UserData {
        let provenance = provenance(&self.parts, &self.ours);
        UserData { text: mime::compose(&self.parts), provenance, remarks: self.remarks }
    }
}

fn assemble(
    settings: &Settings,
    read: Result<parts::Read, Remark>,
) -> Result<Assembled, MergeConflict> {
    let mut refused = identity::check(settings);
    let mut remarks =
        kubelet::check(&settings.kubelet, Family::Al2023).unwrap_or_else(|conflict| {
            refused.extend(conflict.remarks);
            Vec::new()
        });
    let cidr = settings.cluster.service_cidr.as_deref().unwrap_or_default();
    if cidr.is_empty() {
        let hint = "`aws eks describe-cluster` has it under kubernetesNetworkConfig";
        let message = "is missing; AL2023 finds the cluster's DNS by it";
        refused.push(Remark::of_field("cluster.serviceCidr", message).with_hint(hint));
    }

    let mut parts = Vec::new();
    let mut theirs = Theirs::default();
    match read {
        Ok(read) => {
            refused.extend(read.refused);
            remarks.extend(read.remarks);
            for (part, node_config) in read.parts {
                if let Some(node_config) = node_config {
                    let checked = node_config::check(&node_config);
                    refused.extend(checked.refused);
                    remarks.extend(checked.remarks);
                    theirs.merge(node_config);
                }
                parts.push(part);
            }
        }
        Err(remark) => refused.push(remark),
    }

    let mut ours = ours(settings, cidr);
    theirs.compare(&ours.config, &mut remarks);
    carry_taints(&theirs, settings, &mut ours, &mut remarks);
    refused.append(&mut theirs.refused);
    remarks.append(&mut theirs.remarks);
    refused.extend(theirs.together(&settings.kubelet));
    flags::judge(&theirs.flags, &ours, &mut refused, &mut remarks);
    if !refused.is_empty() {
        return Err(MergeConflict { remarks: refused, warnings: remarks });
    }

    let body = format!("{OURS_BEGINS}{}", yaml::write(&ours.document));
    parts.push(Part::new(NODE_CONFIG, body));
    Ok(Assembled { parts, ours, remarks })
}

/// Our `NodeConfig`, and the same as paths with who said them.
#[derive(Debug)]
struct Ours {
    document: Value,
    /// Every value below `spec`, for comparison with the user's.
    config: Vec<(Vec<String>, Value, Source)>,
    /// Of `registerWithTaints`, item by item.
    taint_sources: Vec<Source>,
    labels: Option<String>,
}

fn ours(settings: &Settings, cidr: &str) -> Ours {
    let cluster = &settings.cluster;
    let mut config = Vec::new();
    let mut say = |path: &[&str], value: Value, source| {
        let path = path.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        config.push((path, value, source));
    };
    for (name, text) in [
        ("apiServerEndpoint", cluster.endpoint.as_str()),
        ("certificateAuthority", &cluster.certificate_authority),
        ("cidr", cidr),
        ("name", &cluster.name),
    ] {
        say(&["cluster", name], text.into(), Source::Nodemolt);
    }
    if settings.instance_store_raid0 {
        say(&["instance", "localStorage", "strategy"], "RAID0".into(), Source::Class);
    }
    for (name, value) in of_class(&settings.kubelet) {
        leaves(&["kubelet", "config", &name], value, Source::Class, &mut say);
    }
    if settings.kubelet.cluster_dns.is_empty() && !cluster.dns.is_empty() {
        let servers = cluster.dns.iter().map(|it| Value::String(it.to_string())).collect();
        say(&["kubelet", "config", "clusterDNS"], servers, Source::Nodemolt);
    }
    let labels = identity::registered_labels(&settings.labels)
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(",");

    let mut spec = Value::Object(Map::new());
    for (path, value, _) in &config {
        insert(&mut spec, path, value.clone());
    }
    let mut document = json!({ "apiVersion": API_VERSION, "kind": KIND, "spec": spec });
    let labels = (!labels.is_empty()).then_some(labels);
    if let Some(labels) = &labels {
        let path = ["spec", "kubelet", "flags"].map(str::to_owned);
        insert(&mut document, &path, json!([format!("--node-labels={labels}")]));
    }
    Ours { document, config, taint_sources: Vec::new(), labels }
}

/// A map is said key by key: so much of it is ours, and the rest of it may be the user's.
fn leaves(
    path: &[&str],
    value: Value,
    source: Source,
    say: &mut impl FnMut(&[&str], Value, Source),
) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                leaves(&[path, &[&key]].concat(), value, source, say);
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => say(path, value, source),
    }
}

/// Writes `value` below `root`, making maps on the way.
fn insert(root: &mut Value, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *root = value;
        return;
    };
    if !root.is_object() {
        *root = Value::Object(Map::new());
    }
    if let Value::Object(map) = root {
        insert(map.entry(first.clone()).or_insert(Value::Null), rest, value);
    }
}

/// The class's kubelet settings under the kubelet's own names, the open ones with them.
fn of_class(kubelet: &Kubelet) -> Map<String, Value> {
    let Kubelet {
        cluster_dns,
        max_pods,
        pods_per_core,
        system_reserved,
        kube_reserved,
        eviction_hard,
        eviction_soft,
        eviction_soft_grace_period,
        eviction_max_pod_grace_period,
        image_gc_high_threshold_percent,
        image_gc_low_threshold_percent,
        cpu_cfs_quota,
        rest,
    } = kubelet;
    let mut all = rest.clone();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            all.insert(name.to_owned(), value);
        }
    };
    set("clusterDNS", (!cluster_dns.is_empty()).then(|| json!(cluster_dns)));
    set("maxPods", max_pods.map(Value::from));
    set("podsPerCore", pods_per_core.map(Value::from));
    set("evictionMaxPodGracePeriod", eviction_max_pod_grace_period.map(Value::from));
    set("imageGCHighThresholdPercent", image_gc_high_threshold_percent.map(Value::from));
    set("imageGCLowThresholdPercent", image_gc_low_threshold_percent.map(Value::from));
    set("cpuCFSQuota", cpu_cfs_quota.map(Value::from));
    for (name, map) in [
        ("systemReserved", system_reserved),
        ("kubeReserved", kube_reserved),
        ("evictionHard", eviction_hard),
        ("evictionSoft", eviction_soft),
        ("evictionSoftGracePeriod", eviction_soft_grace_period),
    ] {
        set(name, (!map.is_empty()).then(|| json!(map)));
    }
    all
}

/// The user's list would be replaced by ours: so ours holds theirs, too.
fn carry_taints(theirs: &Theirs, settings: &Settings, ours: &mut Ours, remarks: &mut Vec<Remark>) {
    if settings.taints.is_empty() {
        return;
    }
    let mut list = Vec::new();
    for (taint, raw, place) in &theirs.taints {
        let same_place = |it: &&Taint| it.key == taint.key && it.effect == taint.effect;
        match settings.taints.iter().find(same_place) {
            None => {
                list.push(raw.clone());
                ours.taint_sources.push(Source::User);
            }
            Some(known) if known.clashes(taint) => {
                let message = format!("the taint `{taint}` is set by nodemolt to `{known}`");
                let hint = "a node has one taint for each key and effect; remove it here";
                remarks.push(Remark::new(place.clone(), message).with_hint(hint));
            }
            Some(_) => {}
        }
    }
    for (index, taint) in settings.taints.iter().enumerate() {
        if settings.taints[..index].contains(taint) {
            continue;
        }
        let mut item = json!({ "effect": taint.effect, "key": taint.key });
        if let Some(value) = &taint.value {
            item["value"] = value.as_str().into();
        }
        list.push(item);
        ours.taint_sources.push(Source::Nodemolt);
    }
    let path = ["spec", "kubelet", "config", "registerWithTaints"].map(str::to_owned);
    insert(&mut ours.document, &path, list.into());
}

fn provenance(parts: &[Part], ours: &Ours) -> Vec<Provenance> {
    let mut found = Vec::new();
    for (number, part) in (1..).zip(parts) {
        let source = if number == parts.len() { Source::Nodemolt } else { Source::User };
        let what = format!("part {number} ({})", shown(&part.content_type()));
        found.push(Provenance { what, source });
    }
    let mut keys = ours
        .config
        .iter()
        .map(|(path, _, source)| (node_config::field(path), *source))
        .collect::<Vec<_>>();
    let taints = "spec.kubelet.config.registerWithTaints";
    let items = ours.taint_sources.iter().enumerate();
    keys.extend(items.map(|(index, source)| (format!("{taints}[{index}]"), *source)));
    keys.extend(ours.labels.iter().map(|_| ("spec.kubelet.flags[0]".to_owned(), Source::Nodemolt)));
    keys.sort();
    found.extend(keys.into_iter().map(|(what, source)| Provenance { what, source }));
    found
}

/// The place of a part's line in the whole of the user's part.
fn moved(place: Place, lines: usize) -> Place {
    match place {
        Place::UserPart { line, column } => Place::UserPart { line: line + lines, column },
        Place::Field(_) | Place::Label(_) | Place::Taint(_) | Place::Whole => place,
    }
}
