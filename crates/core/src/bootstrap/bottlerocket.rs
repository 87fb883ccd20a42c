//! What is a Bottlerocket node told?
//!
//! `user's TOML ⊕ ours → TOML`
//!
//! Bottlerocket reads one document of settings, so the user's and ours become one. Where both name a
//! key, ours stands and the user is told; every other key of theirs stays as they wrote it, with its
//! comments, also those that we do not know. We change only what differs, so merging again changes
//! nothing.

use std::collections::BTreeMap;

use nodemolt_fit::Family;
use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::identity::{self, shown};
use super::toml_text::{self, dotted, find, place};
use super::{
    Kubelet, MergeConflict, Place, Remark, Settings, Source, Taint, UserData, UserPart, kubelet,
};

mod user;

pub(crate) use user::reservations;

/// The first release whose `ephemeral-storage bind` knows by itself what to bind.
const BINDS_BY_ITSELF: (u32, u32) = (1, 46);
const MOUNT_INSTANCE_STORAGE: &str = "000-mount-instance-storage";
const LEGACY_DIRECTORIES: [&str; 3] = ["/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"];

/// The document for the node, or everything that speaks against it.
pub fn render(settings: &Settings, user: UserPart<'_>) -> Result<UserData, MergeConflict> {
    let mut refused = identity::check(settings);
    let mut remarks =
        kubelet::check(&settings.kubelet, Family::Bottlerocket).unwrap_or_else(|conflict| {
            refused.extend(conflict.remarks);
            Vec::new()
        });
    let text = user.text().unwrap_or_default();
    let document = match toml_text::read(text) {
        Ok(document) => document,
        Err(remark) => {
            refused.push(remark);
            return Err(MergeConflict { remarks: refused, warnings: remarks });
        }
    };
    user::check(&document, &mut refused, &mut remarks);
    refused.extend(user::together(&document, &settings.kubelet));
    if !refused.is_empty() {
        return Err(MergeConflict { remarks: refused, warnings: remarks });
    }
    let (text, ours) = merge(&document, settings, &mut remarks)?;
    finish(text, &ours, remarks)
}

/// One key of ours, below the document's root.
#[derive(Debug)]
struct Ours {
    path: Vec<String>,
    value: Value,
    source: Source,
}

fn merge(
    user: &Document<String>,
    settings: &Settings,
    remarks: &mut Vec<Remark>,
) -> Result<(String, BTreeMap<String, Source>), MergeConflict> {
    let mut merged = user.clone().into_mut();
    let mut sources = BTreeMap::new();
    for Ours { path, value, source } in ours(settings) {
        let parts = path.iter().map(String::as_str).collect::<Vec<_>>();
        let name = dotted(&path);
        if let Some(theirs) = find(user.as_table(), &parts)
            && !same(theirs, &value)
        {
            remarks.push(overridden(place(user, &parts), &name, &value, source));
        }
        put(&mut merged, &parts, value).map_err(|()| in_the_way(user, &parts))?;
        sources.insert(name, source);
    }
    for (key, taints) in by_key(&settings.taints) {
        let path = ["settings", "kubernetes", "node-taints", key];
        let theirs = find(user.as_table(), &path).map(user::taints_of).unwrap_or_default();
        let joined = join_taints(&theirs, &taints, &place(user, &path), remarks);
        let name = dotted(&path);
        for (index, (_, source)) in joined.iter().enumerate() {
            let what = if joined.len() > 1 { format!("{name}[{index}]") } else { name.clone() };
            sources.insert(what, *source);
        }
        // A user's entry that already says all of ours keeps its spelling.
        if joined.iter().map(|(it, _)| it).ne(theirs.iter()) {
            let written = find(merged.as_table(), &path).and_then(Item::as_array);
            let values = extended(written.cloned().unwrap_or_default(), joined);
            put(&mut merged, &path, values.into()).map_err(|()| in_the_way(user, &path))?;
        }
    }
    let mut text = merged.to_string();
    // What has comments alone has them first, as they were written.
    // In comments the parser reads both line ends and writes one.
    let comments = merged.trailing().as_str().unwrap_or_default().replace("\r\n", "\n");
    if user.as_table().is_empty() && !comments.trim().is_empty() {
        merged.set_trailing("");
        let line_end = if comments.ends_with('\n') { "" } else { "\n" };
        text = format!("{comments}{line_end}{merged}");
    }
    Ok((text, sources))
}

/// The list as the user wrote it, comments and all, with these values in it.
fn extended(mut list: Array, values: Vec<(String, Source)>) -> Array {
    let lines = list.trailing().as_str().is_some_and(|it| it.contains('\n'));
    for (index, (value, _)) in values.into_iter().enumerate() {
        if let Some(known) = list.get_mut(index) {
            if known.as_str() != Some(&value) {
                let decor = known.decor().clone();
                *known = value.into();
                *known.decor_mut() = decor;
            }
        } else if lines && list.trailing_comma() {
            // What stands behind the last comma, a comment perhaps, belongs to the value before it.
            let behind = list.trailing().as_str().unwrap_or("\n").to_owned();
            list.push_formatted(Value::from(value).decorated(format!("{behind}  "), ""));
            list.set_trailing("\n");
        } else {
            list.push(value);
        }
    }
    list
}

fn overridden(place: Place, name: &str, value: &Value, source: Source) -> Remark {
    let of_store = name.contains(MOUNT_INSTANCE_STORAGE);
    let (who, hint) = match source {
        Source::Class if of_store => {
            ("the class", "change `spec.instanceStorePolicy` of the class, or remove it here")
        }
        Source::Class => ("the class", "change `spec.kubelet` of the class, or remove it here"),
        Source::Nodemolt | Source::User => ("nodemolt", "remove it here"),
    };
    let message = format!("`{name}` is set by {who} to {}; yours is not used", shown_value(value));
    Remark::new(place, message).with_hint(hint)
}

fn shown_value(value: &Value) -> String {
    shown(value.clone().decorated("", "").to_string().trim())
}

fn in_the_way(user: &Document<String>, path: &[&str]) -> MergeConflict {
    let message = format!("stands where `{}` must stand", dotted(path));
    Remark::new(place(user, path), message).into()
}

/// The parser that the node uses has the last word on what we wrote, too.
fn finish(
    text: String,
    ours: &BTreeMap<String, Source>,
    remarks: Vec<Remark>,
) -> Result<UserData, MergeConflict> {
    let document = toml_text::read(&text).map_err(|error| {
        let message = format!("cannot be merged into one document: {}", error.message);
        MergeConflict::from(Remark::new(Place::Whole, message))
    })?;
    let source = |what: &str| {
        let inner = what.rfind('[').map(|it| &what[..it]);
        let found = ours.get(what).or_else(|| inner.and_then(|it| ours.get(it)));
        found.copied().unwrap_or(Source::User)
    };
    let provenance = toml_text::provenance(&document, &source);
    Ok(UserData { text, provenance, remarks })
}

/// Everything that we say, in the order in which a fresh document has it. Taints come apart.
fn ours(settings: &Settings) -> Vec<Ours> {
    let cluster = &settings.cluster;
    let kubernetes = |path: &[&str], value: Value, source| Ours {
        path: ["settings", "kubernetes"].iter().chain(path).map(|it| (*it).to_owned()).collect(),
        value,
        source,
    };
    let mut ours = vec![
        kubernetes(&["api-server"], cluster.endpoint.as_str().into(), Source::Nodemolt),
        kubernetes(
            &["cluster-certificate"],
            cluster.certificate_authority.as_str().into(),
            Source::Nodemolt,
        ),
        kubernetes(&["cluster-name"], cluster.name.as_str().into(), Source::Nodemolt),
    ];
    if let Some(address) = settings.kubelet.cluster_dns.first() {
        ours.push(kubernetes(&["cluster-dns-ip"], address.as_str().into(), Source::Class));
    } else if let Some(address) = cluster.dns.first() {
        let address = address.to_string();
        ours.push(kubernetes(&["cluster-dns-ip"], address.into(), Source::Nodemolt));
    }
    for (path, value) in of_class(&settings.kubelet) {
        ours.push(kubernetes(&path, value, Source::Class));
    }
    for (key, value) in identity::registered_labels(&settings.labels) {
        ours.push(kubernetes(&["node-labels", key], value.into(), Source::Nodemolt));
    }
    if settings.instance_store_raid0 {
        let command = |name: &str, value: Value| Ours {
            path: ["settings", "bootstrap-commands", MOUNT_INSTANCE_STORAGE, name]
                .map(str::to_owned)
                .into(),
            value,
            source: Source::Class,
        };
        let commands = mount_commands(settings.release.as_deref());
        ours.push(command("commands", commands.into()));
        ours.push(command("essential", true.into()));
        ours.push(command("mode", "always".into()));
    }
    ours
}

/// The class's kubelet settings under Bottlerocket's names: plain keys first, then tables.
fn of_class(kubelet: &Kubelet) -> Vec<(Vec<&str>, Value)> {
    let Kubelet {
        cluster_dns: _,
        max_pods,
        pods_per_core: _, // Refused for this family.
        system_reserved,
        kube_reserved,
        eviction_hard,
        eviction_soft,
        eviction_soft_grace_period,
        eviction_max_pod_grace_period,
        image_gc_high_threshold_percent,
        image_gc_low_threshold_percent,
        cpu_cfs_quota,
        rest: _, // Refused for this family.
    } = kubelet;
    let percent = |it: i32| Value::from(it.to_string());
    let plain = [
        ("max-pods", max_pods.map(|it| i64::from(it).into())),
        (
            "eviction-max-pod-grace-period",
            eviction_max_pod_grace_period.map(|it| i64::from(it).into()),
        ),
        ("image-gc-high-threshold-percent", image_gc_high_threshold_percent.map(percent)),
        ("image-gc-low-threshold-percent", image_gc_low_threshold_percent.map(percent)),
        ("cpu-cfs-quota-enforced", cpu_cfs_quota.map(Value::from)),
    ];
    let tables = [
        ("eviction-hard", eviction_hard),
        ("eviction-soft", eviction_soft),
        ("eviction-soft-grace-period", eviction_soft_grace_period),
        ("kube-reserved", kube_reserved),
        ("system-reserved", system_reserved),
    ];
    let plain = plain.into_iter().filter_map(|(name, value)| Some((vec![name], value?)));
    let tables = tables.into_iter().flat_map(|(name, map)| {
        map.iter().map(move |(key, value)| (vec![name, key.as_str()], value.as_str().into()))
    });
    plain.chain(tables).collect()
}

fn mount_commands(release: Option<&str>) -> Array {
    let init = Array::from_iter(["apiclient", "ephemeral-storage", "init"]);
    let mut bind = Array::from_iter(["apiclient", "ephemeral-storage", "bind"]);
    if !release.is_some_and(binds_by_itself) {
        bind.push("--dirs");
        bind.extend(LEGACY_DIRECTORIES);
    }
    Array::from_iter([init, bind])
}

/// `1.46.0`, `v1.50.1-abc`, `latest`. What cannot be read is taken for old: the old form still works.
fn binds_by_itself(release: &str) -> bool {
    let mut numbers = release.trim_start_matches('v').split('.').map_while(|it| it.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) >= BINDS_BY_ITSELF,
        _ => release == "latest",
    }
}

fn by_key(taints: &[Taint]) -> BTreeMap<&str, Vec<&Taint>> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for taint in taints {
        found.entry(taint.key.as_str()).or_default().push(taint);
    }
    found
}

/// The user's and ours for one key, as `value:Effect`.
fn join_taints(
    theirs: &[String],
    ours: &[&Taint],
    place: &Place,
    remarks: &mut Vec<Remark>,
) -> Vec<(String, Source)> {
    let mut joined =
        theirs.iter().map(|it| (it.clone(), Source::User)).collect::<Vec<(String, Source)>>();
    for taint in ours {
        let text = format!("{}:{}", taint.worth(), taint.effect);
        let same_effect = |it: &String| it.rsplit_once(':').is_some_and(|it| it.1 == taint.effect);
        match joined.iter_mut().find(|(it, _)| same_effect(it)) {
            None => joined.push((text, Source::Nodemolt)),
            Some((known, source)) => {
                if *known != text {
                    let message = format!(
                        "the taint `{}={known}` is set by nodemolt to `{taint}`",
                        taint.key
                    );
                    let hint = "a node has one taint for each key and effect; remove it here";
                    remarks.push(Remark::new(place.clone(), message).with_hint(hint));
                }
                (*known, *source) = (text, Source::Nodemolt);
            }
        }
    }
    joined
}

fn same(theirs: &Item, ours: &Value) -> bool {
    fn values(theirs: &Value, ours: &Value) -> bool {
        match (theirs, ours) {
            (Value::String(a), Value::String(b)) => a.value() == b.value(),
            (Value::Integer(a), Value::Integer(b)) => a.value() == b.value(),
            (Value::Boolean(a), Value::Boolean(b)) => a.value() == b.value(),
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| values(a, b))
            }
            _ => false, // We write no other kinds.
        }
    }
    theirs.as_value().is_some_and(|theirs| values(theirs, ours))
}

/// Writes one key. Tables on the way are made in the manner of the table around them: an inline table
/// cannot hold one with a header, and a dotted one must not be opened again by a header.
fn put(document: &mut DocumentMut, path: &[&str], value: Value) -> Result<(), ()> {
    let Some((last, tables)) = path.split_last() else { return Err(()) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let mut manner = Manner::Headers;
    for name in tables {
        if !table.contains_key(name) {
            table.insert(name, manner.table());
        }
        let item = table.get_mut(name).ok_or(())?;
        manner = Manner::of(item);
        table = item.as_table_like_mut().ok_or(())?;
    }
    match table.get_mut(last) {
        Some(item) if same(item, &value) => {}
        Some(Item::Value(theirs)) => {
            let decor = theirs.decor().clone();
            *theirs = value;
            *theirs.decor_mut() = decor;
        }
        Some(Item::Table(_) | Item::ArrayOfTables(_)) => return Err(()),
        Some(Item::None) | None => {
            table.insert(last, Item::Value(value));
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Manner {
    Headers,
    Dotted,
    Inline,
}

impl Manner {
    fn of(item: &Item) -> Self {
        match item {
            Item::Table(table) if table.is_dotted() => Self::Dotted,
            Item::Value(_) => Self::Inline,
            Item::Table(_) | Item::ArrayOfTables(_) | Item::None => Self::Headers,
        }
    }

    fn table(self) -> Item {
        let mut table = Table::new();
        match self {
            // Without keys of its own it needs no header.
            Self::Headers => table.set_implicit(true),
            Self::Dotted => table.set_dotted(true),
            Self::Inline => return Item::Value(InlineTable::new().into()),
        }
        Item::Table(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_release_gets_the_old_form() {
        for release in ["1.46.0", "v1.46.0", "1.50.1-abc", "2.0", "latest"] {
            assert!(binds_by_itself(release), "{release}");
        }
        for release in ["1.45.9", "v1.9.0", "1", "", "nightly"] {
            assert!(!binds_by_itself(release), "{release}");
        }
    }
}
