//! Will Bottlerocket take the user's settings, and what do they reserve?
//!
//! `user's TOML → what is wrong with it`, and `→ reserved resources and eviction thresholds`
//!
//! One setting of the wrong type and Bottlerocket drops the whole document, ours included. So the keys
//! that we merge with are checked here, each with its place; of the others we know nothing and say
//! nothing.

use std::collections::BTreeMap;

use toml_edit::{Document, Item, TableLike, Value};

use super::super::identity::{self, shown};
use super::super::kubelet as rules;
use super::super::toml_text::{self, dotted, find, place};
use super::super::{Kubelet, MergeConflict, Remark, Taint, UserPart};

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    /// Text, or a list of texts.
    Texts,
    Natural,
    /// Bottlerocket writes percents as text.
    Percent,
    Flag,
    /// Key to text.
    Map(Rule),
    Taints,
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    Label,
    Threshold,
    Grace,
    Reserved,
}

/// The keys of `settings.kubernetes` that we may write.
const KEYS: [(&str, Kind); 16] = [
    ("api-server", Kind::Text),
    ("cluster-certificate", Kind::Text),
    ("cluster-name", Kind::Text),
    ("cluster-dns-ip", Kind::Texts),
    ("max-pods", Kind::Natural),
    ("eviction-max-pod-grace-period", Kind::Natural),
    ("image-gc-high-threshold-percent", Kind::Percent),
    ("image-gc-low-threshold-percent", Kind::Percent),
    ("cpu-cfs-quota-enforced", Kind::Flag),
    ("eviction-hard", Kind::Map(Rule::Threshold)),
    ("eviction-soft", Kind::Map(Rule::Threshold)),
    ("eviction-soft-grace-period", Kind::Map(Rule::Grace)),
    ("kube-reserved", Kind::Map(Rule::Reserved)),
    ("system-reserved", Kind::Map(Rule::Reserved)),
    ("node-labels", Kind::Map(Rule::Label)),
    ("node-taints", Kind::Taints),
];

pub(super) fn check(
    document: &Document<String>,
    refused: &mut Vec<Remark>,
    remarks: &mut Vec<Remark>,
) {
    let before = refused.len();
    for (name, _) in document.iter().filter(|(name, _)| *name != "settings") {
        let message = format!("`{}` is outside of `settings`", dotted(&[name]));
        let hint = "Bottlerocket reads nothing outside of `settings`";
        remarks.push(Remark::new(place(document, &[name]), message).with_hint(hint));
    }
    for path in
        [&["settings"][..], &["settings", "kubernetes"], &["settings", "bootstrap-commands"]]
    {
        if let Some(item) = find(document.as_table(), path)
            && item.as_table_like().is_none()
        {
            let message = format!("`{}` must be a table, not {}", dotted(path), kind_of(item));
            refused.push(Remark::new(place(document, path), message));
        }
    }
    for (name, kind) in &KEYS {
        let path = ["settings", "kubernetes", name];
        let Some(item) = find(document.as_table(), &path) else { continue };
        let mut refuse = |more: &[&str], problem: String| {
            let path = [&path[..], more].concat();
            refused.push(Remark::new(place(document, &path), problem));
        };
        match kind {
            Kind::Map(rule) => check_map(&path, item, *rule, &mut refuse),
            Kind::Taints => check_taints(&path, item, &mut refuse),
            Kind::Text | Kind::Texts | Kind::Natural | Kind::Percent | Kind::Flag => {
                if let Some(wanted) = misfit(*kind, item) {
                    let name = dotted(&path);
                    // Of the right kind, and out of range.
                    let numeric = matches!(kind, Kind::Natural | Kind::Percent);
                    let number = item.as_integer().filter(|_| numeric);
                    let found = number.map_or(kind_of(item).to_owned(), |it| it.to_string());
                    refuse(&[], format!("`{name}` must be {wanted}, not {found}"));
                }
            }
        }
    }
    refused[before..].sort_by(|a, b| a.place.cmp(&b.place));
    warn_of_unusual(document, remarks);
}

/// Settings by which a node may not become the one that is waited for. They are the user's to set.
const UNUSUAL: [(&str, &str); 3] = [
    ("hostname-override", "gives the node a name by which the cluster may not let it in"),
    ("provider-id", "stands over what Bottlerocket knows of the machine"),
    ("standalone-mode", "decides whether the node joins a cluster at all"),
];

fn warn_of_unusual(document: &Document<String>, remarks: &mut Vec<Remark>) {
    for (name, what) in UNUSUAL {
        let path = ["settings", "kubernetes", name];
        let item = find(document.as_table(), &path);
        if item.is_some_and(|it| it.as_bool() != Some(false)) {
            let message = format!("`{}` {what}", dotted(&path));
            remarks.push(Remark::new(place(document, &path), message).with_hint("remove it"));
        }
    }
}

fn misfit(kind: Kind, item: &Item) -> Option<&'static str> {
    let text = || item.as_str().is_some();
    let texts = || item.as_array().is_some_and(|it| it.iter().all(|it| it.as_str().is_some()));
    let natural = |max: i64| item.as_integer().is_some_and(|it| (0..=max).contains(&it));
    let (fits, wanted) = match kind {
        Kind::Text => (text(), "text"),
        Kind::Texts => (text() || texts(), "text or a list of texts"),
        Kind::Natural => (natural(i64::from(i32::MAX)), "a whole number from 0"),
        Kind::Percent => (text() || natural(100), "text"),
        Kind::Flag => (item.as_bool().is_some(), "true or false"),
        Kind::Map(_) | Kind::Taints => (item.as_table_like().is_some(), "a table"),
    };
    (!fits).then_some(wanted)
}

fn check_map(path: &[&str], item: &Item, rule: Rule, refuse: &mut dyn FnMut(&[&str], String)) {
    let Some(table) = item.as_table_like() else {
        let name = dotted(path);
        return refuse(&[], format!("`{name}` must be a table, not {}", kind_of(item)));
    };
    for (key, item) in table.iter() {
        let name = dotted(&[path, &[key]].concat());
        let Some(text) = item.as_str() else {
            refuse(&[key], format!("`{name}` must be text, not {}", kind_of(item)));
            continue;
        };
        let problem = match rule {
            Rule::Label => identity::label_key_problem(key)
                .or_else(|| identity::label_value_problem(text))
                .or_else(|| {
                    let message = "is in a domain of Kubernetes, and a kubelet that is told to set it \
                                   does not start";
                    identity::stops_kubelet(key).then(|| message.to_owned())
                }),
            Rule::Threshold => {
                rules::signal_problem(key).or_else(|| rules::threshold_problem(text))
            }
            Rule::Grace => rules::signal_problem(key).or_else(|| rules::grace_problem(text)),
            Rule::Reserved => {
                rules::resource_problem(key).or_else(|| rules::reserved_value_problem(text))
            }
        };
        if let Some(problem) = problem {
            refuse(&[key], format!("`{name}`: {problem}"));
        }
    }
}

fn check_taints(path: &[&str], item: &Item, refuse: &mut dyn FnMut(&[&str], String)) {
    let Some(table) = item.as_table_like() else {
        let name = dotted(path);
        return refuse(&[], format!("`{name}` must be a table, not {}", kind_of(item)));
    };
    for (key, item) in table.iter() {
        let name = dotted(&[path, &[key]].concat());
        if misfit(Kind::Texts, item).is_some()
            || item.as_array().is_some_and(toml_edit::Array::is_empty)
        {
            let message = format!("`{name}` must be `value:Effect` or a list of them");
            refuse(&[key], message);
            continue;
        }
        let mut effects = Vec::new();
        for text in taints_of(item) {
            let Some((value, effect)) = text.rsplit_once(':') else {
                refuse(&[key], format!("`{name}`: `{}` must be `value:Effect`", shown(&text)));
                continue;
            };
            let (key_, value, effect) = (key.to_owned(), value.to_owned(), effect.to_owned());
            let taint = Taint { key: key_, value: Some(value), effect };
            if let Some(problem) = identity::taint_problem(&taint) {
                refuse(&[key], format!("`{name}`: {problem}"));
            } else if effects.contains(&taint.effect) {
                let effect = &taint.effect;
                refuse(&[key], format!("`{name}`: a node has one taint of effect `{effect}` here"));
            }
            effects.push(taint.effect);
        }
    }
}

/// The `value:Effect`s of one key. Empty for anything else; `check` has refused that.
pub(super) fn taints_of(item: &Item) -> Vec<String> {
    match item {
        Item::Value(Value::String(text)) => vec![text.value().clone()],
        Item::Value(Value::Array(items)) => {
            items.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect()
        }
        Item::None | Item::Value(_) | Item::Table(_) | Item::ArrayOfTables(_) => Vec::new(),
    }
}

fn kind_of(item: &Item) -> &'static str {
    match item {
        Item::None => "nothing",
        Item::Table(_) | Item::Value(Value::InlineTable(_)) => "a table",
        Item::ArrayOfTables(_) => "a list of tables",
        Item::Value(Value::String(_)) => "text",
        Item::Value(Value::Integer(_)) => "a whole number",
        Item::Value(Value::Float(_)) => "a number with a point",
        Item::Value(Value::Boolean(_)) => "true or false",
        Item::Value(Value::Datetime(_)) => "a date or time",
        Item::Value(Value::Array(_)) => "a list",
    }
}

/// What the kubelet would not start with, although neither class nor user is wrong alone.
pub(super) fn together(document: &Document<String>, class: &Kubelet) -> Vec<Remark> {
    let mut together = rules::Together::of_class(class);
    let path = ["settings", "kubernetes"];
    let Some(table) = find(document.as_table(), &path).and_then(Item::as_table_like) else {
        return Vec::new();
    };
    for (name, map) in
        [("eviction-soft", &mut together.soft), ("eviction-soft-grace-period", &mut together.grace)]
    {
        for key in texts(table, name).into_keys() {
            let at = place(document, &[&path[..], &[name, &key]].concat());
            map.entry(key).or_insert(at);
        }
    }
    for (name, percent) in [
        ("image-gc-high-threshold-percent", &mut together.high),
        ("image-gc-low-threshold-percent", &mut together.low),
    ] {
        let number = table
            .get(name)
            .and_then(|it| it.as_integer().or_else(|| it.as_str()?.trim().parse().ok()));
        if let Some(number) = number.filter(|_| percent.is_none()) {
            *percent = Some((number, place(document, &[&path[..], &[name]].concat())));
        }
    }
    together.problems()
}

/// The class's settings, and where it has none the user's.
pub(crate) fn reservations(class: &Kubelet, user: UserPart<'_>) -> Result<Kubelet, MergeConflict> {
    let document = toml_text::read(user.text().unwrap_or_default()).map_err(MergeConflict::from)?;
    let mut refused = Vec::new();
    check(&document, &mut refused, &mut Vec::new());
    if !refused.is_empty() {
        return Err(refused.into());
    }
    let mut effective = class.clone();
    let kubernetes =
        find(document.as_table(), &["settings", "kubernetes"]).and_then(Item::as_table_like);
    let Some(kubernetes) = kubernetes else { return Ok(effective) };
    for (name, map) in [
        ("kube-reserved", &mut effective.kube_reserved),
        ("system-reserved", &mut effective.system_reserved),
        ("eviction-hard", &mut effective.eviction_hard),
        ("eviction-soft", &mut effective.eviction_soft),
        ("eviction-soft-grace-period", &mut effective.eviction_soft_grace_period),
    ] {
        for (key, value) in texts(kubernetes, name) {
            map.entry(key).or_insert(value);
        }
    }
    let max_pods = kubernetes.get("max-pods").and_then(Item::as_integer);
    effective.max_pods = class.max_pods.or(max_pods.and_then(|it| u32::try_from(it).ok()));
    Ok(effective)
}

fn texts(table: &dyn TableLike, name: &str) -> BTreeMap<String, String> {
    let entries =
        table.get(name).and_then(Item::as_table_like).into_iter().flat_map(|it| it.iter());
    entries.filter_map(|(key, item)| Some((key.to_owned(), item.as_str()?.to_owned()))).collect()
}
