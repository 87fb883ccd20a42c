//! What does a rendered text say, whatever way it is written?
//!
//! `text → parts, each with its keys`
//!
//! MIME has parts; TOML and `NodeConfig` have keys; a script of ours has the kubelet's flags. What is
//! none of these is a text and nothing more.

use std::collections::BTreeMap;

use nodemolt_core::bootstrap::{al2023, mime};
use serde_json::Value;

/// One part of a text, or the whole of one that has none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    /// What it is told from others by: its type, and its name where it has one.
    pub called: String,
    pub stands: Stands,
    pub keys: BTreeMap<String, String>,
    /// What is left of the text when the keys are taken out of it.
    pub rest: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stands {
    Alone,
    AmongParts,
}

pub(crate) fn read(text: &str) -> Vec<Part> {
    if mime::looks_like_mime(text)
        && let Ok(document) = mime::read(text)
    {
        return document.parts.iter().map(|it| of_mime(&it.part)).collect();
    }
    let table = toml::from_str::<toml::Table>(text).ok().filter(|it| !it.is_empty());
    if let Some(value) = table.and_then(|it| serde_json::to_value(it).ok()) {
        let (called, rest) = ("TOML".to_owned(), String::new());
        return vec![Part { called, stands: Stands::Alone, keys: flat(&value), rest }];
    }
    let powershell = text.trim_start().starts_with("<powershell>");
    let called = if powershell { "PowerShell" } else { "text" };
    vec![of_script(called, Stands::Alone, text)]
}

fn of_mime(part: &mime::Part) -> Part {
    let content_type = part.content_type();
    let called = match part.filename() {
        Some(name) => format!("{content_type}, {name}"),
        None => content_type.clone(),
    };
    if content_type == al2023::NODE_CONFIG
        && let Ok(value) = serde_saphyr::from_str::<Value>(&part.body)
    {
        let stands = Stands::AmongParts;
        return Part { called, stands, keys: flat(&value), rest: String::new() };
    }
    of_script(&called, Stands::AmongParts, &part.body)
}

/// What begins the kubelet's flags in our scripts. We put them between single quotes, and have none in
/// them.
const FLAGS_BEGIN: [&str; 2] = ["--kubelet-extra-args '", "-KubeletExtraArgs '"];

fn of_script(called: &str, stands: Stands, body: &str) -> Part {
    let mut part =
        Part { called: called.to_owned(), stands, keys: BTreeMap::new(), rest: body.to_owned() };
    for begin in FLAGS_BEGIN {
        let Some((before, after)) = body.split_once(begin) else { continue };
        let Some((flags, after)) = after.split_once('\'') else { continue };
        for flag in flags.split_whitespace() {
            add_flag(flag, "", &mut part.keys);
        }
        part.rest = format!("{before}{begin}'{after}");
        break;
    }
    part
}

/// `--node-labels="a=b,c=d"` as two keys: what changes is a label, not all of them.
fn add_flag(flag: &str, path: &str, keys: &mut BTreeMap<String, String>) {
    let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
    let value = value.trim_matches('"');
    let name = if path.is_empty() { name.to_owned() } else { format!("{path} {name}") };
    let taints = name.ends_with("--register-with-taints");
    if !taints && !value.contains(['=', '<']) {
        keys.insert(name, value.to_owned());
        return;
    }
    for item in value.split(',') {
        let end = if taints { item.rfind(':') } else { item.find(['=', '<']) };
        let (key, value) = item.split_at(end.unwrap_or(item.len()));
        keys.insert(format!("{name} {key}"), value.trim_start_matches(['=', '<', ':']).to_owned());
    }
}

fn flat(value: &Value) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    flatten("", value, &mut keys);
    keys
}

fn flatten(path: &str, value: &Value, keys: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
                let key = if key.chars().all(plain) { key.clone() } else { format!("\"{key}\"") };
                let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                flatten(&path, value, keys);
            }
        }
        Value::Array(items) if path.ends_with("kubelet.flags") => {
            for item in items {
                let text = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
                add_flag(&text, path, keys);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                keys.insert(format!("{path}[{index}]"), item.to_string());
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            keys.insert(path.to_owned(), value.to_string());
        }
    }
}
