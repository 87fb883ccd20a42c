//! Will nodeadm take the user's `NodeConfig`, and what does it say?
//!
//! `NodeConfig → what is wrong`, `NodeConfigs → what they say together`
//!
//! What nodeadm cannot decode is refused, with its line: it would lose every `NodeConfig` of the
//! document. Keys that we do not know warn, for a newer nodeadm may know them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::identity::{self, shown};
use super::super::kubelet::{self as rules, FIELDS, nearest};
use super::super::yaml::{Content, Entry, Node};
use super::super::{Kubelet, MergeConflict, Place, Remark, Source, Taint, UserPart, base64};
use super::flags::{self, Flag};
use super::parts::{self, NodeConfig};
use super::{API_VERSION, KIND, moved, values};

/// What must stand somewhere. Null may stand everywhere: it says nothing.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Anything,
    Text,
    Base64,
    Flag,
    Natural,
    Texts,
    /// Key to this.
    MapOf(&'static Shape),
    ListOf(&'static Shape),
    /// These keys; others warn.
    Map(&'static [(&'static str, Shape)]),
    /// The kubelet's own, of which we know the names, and the shape of those that we set.
    KubeletConfig,
}

const NODE_CONFIG: Shape = Shape::Map(&[
    ("apiVersion", Shape::Text),
    ("kind", Shape::Text),
    ("metadata", Shape::MapOf(&Shape::Anything)),
    ("spec", SPEC),
    ("status", Shape::Anything),
]);

const SPEC: Shape = Shape::Map(&[
    (
        "cluster",
        Shape::Map(&[
            ("apiServerEndpoint", Shape::Text),
            ("certificateAuthority", Shape::Base64),
            ("cidr", Shape::Text),
            ("enableOutpost", Shape::Flag),
            ("id", Shape::Text),
            ("name", Shape::Text),
        ]),
    ),
    (
        "containerd",
        Shape::Map(&[("baseRuntimeSpec", Shape::MapOf(&Shape::Anything)), ("config", Shape::Text)]),
    ),
    ("featureGates", Shape::MapOf(&Shape::Flag)),
    (
        "instance",
        Shape::Map(&[
            ("environment", Shape::MapOf(&Shape::MapOf(&Shape::Text))),
            (
                "localStorage",
                Shape::Map(&[
                    ("disabledMounts", Shape::Texts),
                    ("mountPath", Shape::Text),
                    ("strategy", Shape::Text),
                ]),
            ),
            ("network", Shape::Map(&[("domains", Shape::Texts), ("nameservers", Shape::Texts)])),
            (
                "storage",
                Shape::Map(&[(
                    "volumes",
                    Shape::ListOf(&Shape::Map(&[
                        ("device", Shape::Text),
                        ("fsType", Shape::Text),
                        ("mountTargets", Shape::Texts),
                    ])),
                )]),
            ),
        ]),
    ),
    (
        "kubelet",
        Shape::Map(&[
            ("config", Shape::KubeletConfig),
            ("flags", Shape::Texts),
            ("maxPodsExpression", Shape::Text),
        ]),
    ),
]);

const TAINT: Shape = Shape::Map(&[
    ("effect", Shape::Text),
    ("key", Shape::Text),
    ("timeAdded", Shape::Anything),
    ("value", Shape::Text),
]);

/// The fields that we read or write ourselves.
const KUBELET_SHAPES: [(&str, Shape); 14] = [
    ("clusterDNS", Shape::Texts),
    ("maxPods", Shape::Natural),
    ("podsPerCore", Shape::Natural),
    ("systemReserved", Shape::MapOf(&Shape::Text)),
    ("kubeReserved", Shape::MapOf(&Shape::Text)),
    ("evictionHard", Shape::MapOf(&Shape::Text)),
    ("evictionSoft", Shape::MapOf(&Shape::Text)),
    ("evictionSoftGracePeriod", Shape::MapOf(&Shape::Text)),
    ("evictionMinimumReclaim", Shape::MapOf(&Shape::Text)),
    ("evictionMaxPodGracePeriod", Shape::Natural),
    ("imageGCHighThresholdPercent", Shape::Natural),
    ("imageGCLowThresholdPercent", Shape::Natural),
    ("cpuCFSQuota", Shape::Flag),
    ("registerWithTaints", Shape::ListOf(&TAINT)),
];

/// What is wrong with one `NodeConfig`, and what a person should know.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) refused: Vec<Remark>,
    pub(super) remarks: Vec<Remark>,
    lines: usize,
}

pub(super) fn check(node_config: &NodeConfig) -> Checked {
    let root = &node_config.root;
    let mut checked = Checked { lines: node_config.lines, ..Checked::default() };
    for (key, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        match root.get(key) {
            None => {
                let message = format!("the NodeConfig has no `{key}`");
                let hint = format!("write `{key}: {expected}`");
                checked.refused.push(checked.remark(root, message).with_hint(hint));
            }
            Some(node) if node.text() != Some(expected) => {
                let message = format!("`{key}` must be `{expected}`");
                checked.refused.push(checked.remark(node, message));
            }
            Some(_) => {}
        }
    }
    checked.shape(root, NODE_CONFIG, "");
    if let Some(config) = root.at_path(&["spec", "kubelet", "config"]) {
        checked.rules(config);
    }
    values::check(root, &mut checked);
    checked
}

impl Checked {
    pub(super) fn remark(&self, node: &Node, message: impl Into<String>) -> Remark {
        Remark::new(moved(node.at.into(), self.lines), message)
    }

    fn shape(&mut self, node: &Node, shape: Shape, field: &str) {
        let wanted = match (shape, &node.content) {
            (Shape::Anything, _)
            | (_, Content::Null)
            | (Shape::Text, Content::Text(_))
            | (Shape::Flag, Content::Bool(_)) => return,
            (Shape::Base64, Content::Text(text)) => {
                if base64::decode(text).is_some() {
                    return;
                }
                "base64"
            }
            (Shape::Natural, Content::Number(number)) => {
                if number.as_u64().is_some_and(|it| i32::try_from(it).is_ok()) {
                    return;
                }
                "a whole number from 0"
            }
            (Shape::Texts, Content::List(items)) => {
                return self.items(items, Shape::Text, field);
            }
            (Shape::ListOf(inner), Content::List(items)) => {
                return self.items(items, *inner, field);
            }
            (Shape::MapOf(inner), Content::Map(entries)) => {
                for entry in entries {
                    self.shape(&entry.value, *inner, &join(field, &entry.key));
                }
                return;
            }
            (Shape::Map(known), Content::Map(entries)) => {
                return self.keys(entries, known, field);
            }
            (Shape::KubeletConfig, Content::Map(entries)) => {
                return self.kubelet(entries, field);
            }
            (Shape::Text, _) => "text",
            (Shape::Base64, _) => "base64 text",
            (Shape::Flag, _) => "true or false",
            (Shape::Natural, _) => "a whole number from 0",
            (Shape::Texts | Shape::ListOf(_), _) => "a list",
            (Shape::MapOf(_) | Shape::Map(_) | Shape::KubeletConfig, _) => "a map",
        };
        let field = if field.is_empty() { KIND } else { field };
        let message = match (&node.content, wanted) {
            (Content::Text(_), "base64") => format!("`{field}` must be base64"),
            _ => format!("`{field}` must be {wanted}, not {}", node.kind()),
        };
        let remark = self.remark(node, message);
        let quotable =
            wanted == "text" && matches!(node.content, Content::Number(_) | Content::Bool(_));
        self.refused.push(if quotable { remark.with_hint("put it in quotes") } else { remark });
    }

    fn items(&mut self, items: &[Node], inner: Shape, field: &str) {
        for (index, item) in items.iter().enumerate() {
            self.shape(item, inner, &format!("{field}[{index}]"));
        }
    }

    fn keys(&mut self, entries: &[Entry], known: &[(&'static str, Shape)], field: &str) {
        for entry in entries {
            let field = join(field, &entry.key);
            if let Some((_, shape)) = known.iter().find(|(key, _)| *key == entry.key) {
                self.shape(&entry.value, *shape, &field);
            } else {
                let known = known.iter().map(|it| it.0).collect::<Vec<_>>();
                self.unknown(entry, &field, &known);
            }
        }
    }

    fn kubelet(&mut self, entries: &[Entry], field: &str) {
        for entry in entries {
            let field = join(field, &entry.key);
            let shape = KUBELET_SHAPES.iter().find(|(key, _)| *key == entry.key);
            if let Some((_, shape)) = shape {
                self.shape(&entry.value, *shape, &field);
            } else if !FIELDS.contains(&entry.key.as_str()) {
                self.unknown(entry, &field, FIELDS);
            } else if let Some(problem) = rules::type_problem(&entry.key, &entry.value.value()) {
                let remark = self.remark(&entry.value, format!("`{field}` {problem}"));
                self.refused.push(remark);
            }
        }
    }

    fn unknown(&mut self, entry: &Entry, field: &str, known: &[&str]) {
        let place = moved(entry.at.into(), self.lines);
        let remark = Remark::new(place, format!("`{field}` is not known to us"));
        self.remarks.push(match nearest(&entry.key, known) {
            Some(near) => remark.with_hint(format!("did you mean `{near}`?")),
            None => remark,
        });
    }

    /// What the kubelet would not start with.
    fn rules(&mut self, config: &Node) {
        let problem = |map: &str, key: &str, value: &str| match map {
            "systemReserved" | "kubeReserved" => {
                rules::resource_problem(key).or_else(|| rules::reserved_value_problem(value))
            }
            "evictionSoftGracePeriod" => {
                rules::signal_problem(key).or_else(|| rules::grace_problem(value))
            }
            _ => rules::signal_problem(key).or_else(|| rules::threshold_problem(value)),
        };
        for name in [
            "systemReserved",
            "kubeReserved",
            "evictionHard",
            "evictionSoft",
            "evictionSoftGracePeriod",
            "evictionMinimumReclaim",
        ] {
            for entry in config.get(name).map_or(&[][..], Node::entries) {
                let Some(text) = entry.value.text() else { continue };
                if let Some(problem) = problem(name, &entry.key, text) {
                    let field = join(&join("spec.kubelet.config", name), &entry.key);
                    let place = moved(entry.at.into(), self.lines);
                    self.refused.push(Remark::new(place, format!("`{field}`: {problem}")));
                }
            }
        }
        let mut seen: Vec<Taint> = Vec::new();
        for item in config.get("registerWithTaints").map_or(&[][..], Node::items) {
            let taint = taint(item);
            let same = |it: &Taint| it.key == taint.key && it.effect == taint.effect;
            let problem = identity::taint_problem(&taint).or_else(|| {
                let message =
                    "a node has one taint for each key and effect, and this is the second";
                seen.iter().any(same).then(|| message.to_owned())
            });
            if let Some(problem) = problem {
                let remark = self.remark(item, format!("`registerWithTaints`: {problem}"));
                self.refused.push(remark);
            }
            seen.push(taint);
        }
        for entry in config.entries() {
            if let Some(problem) = rules::owned(&entry.key, &entry.value.value()) {
                let field = join("spec.kubelet.config", &entry.key);
                let remark = self.remark(&entry.value, format!("`{field}` {problem}"));
                self.refused.push(remark.with_hint("remove it here"));
            }
        }
    }
}

fn taint(item: &Node) -> Taint {
    let text = |key: &str| item.get(key).and_then(Node::text).map(str::to_owned);
    Taint {
        key: text("key").unwrap_or_default(),
        value: text("value"),
        effect: text("effect").unwrap_or_default(),
    }
}

/// `a.b`, or `a[b.c/d]` where the key is not a word.
fn join(field: &str, key: &str) -> String {
    let word = !key.is_empty() && key.bytes().all(|it| it.is_ascii_alphanumeric());
    match (field, word) {
        ("", _) => shown(key),
        (_, true) => format!("{field}.{key}"),
        (_, false) => format!("{field}[{}]", shown(key)),
    }
}

/// The field of a path below `spec`.
pub(super) fn field(path: &[String]) -> String {
    path.iter().fold("spec".to_owned(), |field, key| join(&field, key))
}

/// What the user's `NodeConfig`s say together, the later over the earlier.
#[derive(Debug, Default)]
pub(super) struct Theirs {
    configs: Vec<NodeConfig>,
    pub(super) flags: Vec<Flag>,
    /// What is wrong with those.
    pub(super) refused: Vec<Remark>,
    /// What one of them says in vain.
    pub(super) remarks: Vec<Remark>,
    /// As written, with their places.
    pub(super) taints: Vec<(Taint, Value, Place)>,
}

impl Theirs {
    pub(super) fn merge(&mut self, config: NodeConfig) {
        let NodeConfig { root, lines } = &config;
        let kubelet = root.at_path(&["spec", "kubelet"]);
        let place = |it: &Node| moved(it.at.into(), *lines);
        if let Some(flags) = kubelet.and_then(|it| it.get("flags")) {
            let items = flags.items().iter().filter_map(|it| Some((it.text()?, place(it))));
            let (flags, refused) = flags::read(&items.collect::<Vec<_>>());
            self.flags.extend(flags);
            self.refused.extend(refused);
        }
        // A list replaces the list before it.
        if let Some(taints) = kubelet.and_then(|it| it.at_path(&["config", "registerWithTaints"])) {
            let items = taints.items().iter();
            let later: Vec<_> = items.map(|it| (taint(it), it.value(), place(it))).collect();
            for (lost, _, at) in std::mem::replace(&mut self.taints, later) {
                if !self.taints.iter().any(|(it, _, _)| *it == lost) {
                    let message = format!("the taint `{lost}` is lost to the NodeConfig after it");
                    let hint = "nodeadm replaces lists: write all taints in the last one";
                    self.remarks.push(Remark::new(at, message).with_hint(hint));
                }
            }
        }
        self.configs.push(config);
    }

    /// The value below `spec` that would stand without ours.
    fn find(&self, path: &[&str]) -> Option<(&Node, usize)> {
        self.configs.iter().rev().find_map(|it| {
            let node = it.root.at_path(&["spec"])?.at_path(path)?;
            Some((node, it.lines))
        })
    }

    /// What of theirs will not be used because ours says otherwise.
    pub(super) fn compare(&self, ours: &[(Vec<String>, Value, Source)], remarks: &mut Vec<Remark>) {
        for (path, value, source) in ours {
            let parts = path.iter().map(String::as_str).collect::<Vec<_>>();
            let Some((node, lines)) = self.find(&parts) else { continue };
            // An empty map of ours adds nothing and takes nothing away.
            let silent = value.as_object().is_some_and(serde_json::Map::is_empty);
            if node.value() == *value || value.is_null() || silent {
                continue;
            }
            let (who, hint) = match source {
                Source::Class => ("the class", "change the class, or remove it here"),
                Source::Nodemolt | Source::User => ("nodemolt", "remove it here"),
            };
            let field = field(path);
            let message = format!(
                "`{field}` is set by {who} to {}; yours is not used",
                shown(&value.to_string())
            );
            let place = moved(node.at.into(), lines);
            remarks.push(Remark::new(place, message).with_hint(hint));
        }
    }

    /// What the kubelet would not start with, although neither class nor user is wrong alone.
    pub(super) fn together(&self, class: &Kubelet) -> Vec<Remark> {
        let mut together = rules::Together::of_class(class);
        for (name, flag, separator, map) in [
            ("evictionSoft", "eviction-soft", '<', &mut together.soft),
            ("evictionSoftGracePeriod", "eviction-soft-grace-period", '=', &mut together.grace),
        ] {
            for key in self.texts(name).into_keys() {
                let found = self.find(&["kubelet", "config", name, &key]);
                let place = found.map(|(node, lines)| moved(node.at.into(), lines));
                map.entry(key).or_insert(place.unwrap_or(Place::Whole));
            }
            // A flag replaces the whole map.
            if let Some(flag) = self.flag(flag) {
                let keys = flags::map(&flag.value, separator).into_keys();
                *map = keys.map(|it| (it, flag.place.clone())).collect();
            }
        }
        for (name, percent) in [
            ("imageGCHighThresholdPercent", &mut together.high),
            ("imageGCLowThresholdPercent", &mut together.low),
        ] {
            let found = self.find(&["kubelet", "config", name]);
            let found = found.and_then(|(node, lines)| {
                Some((node.value().as_i64()?, moved(node.at.into(), lines)))
            });
            *percent = percent.take().or(found);
        }
        let mut problems = together.problems();
        problems.extend(self.outpost());
        problems
    }

    /// nodeadm's one rule between two fields.
    fn outpost(&self) -> Option<Remark> {
        let (node, lines) = self.find(&["cluster", "enableOutpost"])?;
        let named = self.find(&["cluster", "id"]).and_then(|(it, _)| it.text());
        let lacking = node.value() == Value::Bool(true) && named.unwrap_or_default().is_empty();
        lacking.then(|| {
            let message = "`spec.cluster.enableOutpost` needs `spec.cluster.id`";
            let hint = "write the id of the cluster on the Outpost: nodeadm refuses it without";
            Remark::new(moved(node.at.into(), lines), message).with_hint(hint)
        })
    }

    /// Texts of a map in `kubelet.config`, merged over all `NodeConfig`s.
    fn texts(&self, name: &str) -> BTreeMap<String, String> {
        let maps = self
            .configs
            .iter()
            .filter_map(|it| it.root.at_path(&["spec", "kubelet", "config", name]));
        let entries = maps.flat_map(Node::entries);
        entries.filter_map(|it| Some((it.key.clone(), it.value.text()?.to_owned()))).collect()
    }

    fn natural(&self, name: &str) -> Option<u32> {
        let (node, _) = self.find(&["kubelet", "config", name])?;
        node.value().as_u64()?.try_into().ok()
    }

    /// The last of this name counts.
    fn flag(&self, name: &str) -> Option<&Flag> {
        self.flags.iter().rev().find(|it| it.name == name)
    }
}

/// The class's settings, and where it has none the user's; the user's flags before both.
pub(crate) fn reservations(class: &Kubelet, user: UserPart<'_>) -> Result<Kubelet, MergeConflict> {
    let read = parts::read(user).map_err(MergeConflict::from)?;
    let (mut theirs, mut refused) = (Theirs::default(), Vec::new());
    refused.extend(read.refused);
    for config in read.parts.into_iter().filter_map(|(_, it)| it) {
        refused.extend(check(&config).refused);
        theirs.merge(config);
    }
    refused.append(&mut theirs.refused);
    let mut effective = class.clone();
    for (map, field, flag, separator) in [
        (&mut effective.kube_reserved, "kubeReserved", "kube-reserved", '='),
        (&mut effective.system_reserved, "systemReserved", "system-reserved", '='),
        (&mut effective.eviction_hard, "evictionHard", "eviction-hard", '<'),
        (&mut effective.eviction_soft, "evictionSoft", "eviction-soft", '<'),
        (
            &mut effective.eviction_soft_grace_period,
            "evictionSoftGracePeriod",
            "eviction-soft-grace-period",
            '=',
        ),
    ] {
        for (key, value) in theirs.texts(field) {
            map.entry(key).or_insert(value);
        }
        // A flag replaces the whole map.
        if let Some(flag) = theirs.flag(flag) {
            *map = flags::map(&flag.value, separator);
            for (key, value) in &*map {
                let problem = match (separator, field) {
                    ('<', _) => {
                        rules::signal_problem(key).or_else(|| rules::threshold_problem(value))
                    }
                    (_, "evictionSoftGracePeriod") => {
                        rules::signal_problem(key).or_else(|| rules::grace_problem(value))
                    }
                    _ => rules::resource_problem(key)
                        .or_else(|| rules::reserved_value_problem(value)),
                };
                let message = |it: String| format!("`--{}`: {it}", flag.name);
                refused.extend(problem.map(|it| Remark::new(flag.place.clone(), message(it))));
            }
        }
    }
    let number = |name: &str| theirs.flag(name).and_then(|it| it.value.parse().ok());
    effective.max_pods =
        number("max-pods").or(class.max_pods).or_else(|| theirs.natural("maxPods"));
    effective.pods_per_core =
        number("pods-per-core").or(class.pods_per_core).or_else(|| theirs.natural("podsPerCore"));
    if refused.is_empty() { Ok(effective) } else { Err(refused.into()) }
}
