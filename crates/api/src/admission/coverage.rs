//! Which demands of a schema has no case tried?
//!
//! `schema × cases and their answers → demands without an accepted or a refused case`
//!
//! A rule that no case breaks may never have worked. Plain limits and required members need no author: an
//! object that breaks each of them is built from the schema, and is a case like the others.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    cases::{Answer, Case, Expected, ExpectedCause},
    schema::{Additional, Node},
};

/// Something that a schema asks for at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    /// `spec.terms[*].id`; `[key]` stands for any key of a map.
    pub path: String,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// With the part of its message by which it is known.
    Rule {
        told: String,
        transition: bool,
    },
    Choice,
    Pattern(String),
    /// Of the member with this name.
    Default(String),
}

impl std::fmt::Display for Demand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if self.path.is_empty() { "the object" } else { &self.path };
        match &self.what {
            What::Rule { told, .. } => write!(f, "{path}: rule {told:?}"),
            What::Choice => write!(f, "{path}: enum"),
            What::Pattern(pattern) => write!(f, "{path}: pattern {pattern}"),
            What::Default(name) => write!(f, "{path}: default of {name}"),
        }
    }
}

/// All that needs a case, below `spec` and at the root. What a controller writes is not asked for.
pub fn demands(root: &Node) -> Vec<Demand> {
    let mut demands = Vec::new();
    root.walk(&mut |path, node| {
        if path == "status" || path.starts_with("status.") {
            return;
        }
        let mut ask = |what| demands.push(Demand { path: path.to_owned(), what });
        for rule in &node.rules {
            let told = rule.message.clone().unwrap_or_else(|| rule.text.clone());
            ask(What::Rule { told, transition: rule.transition });
        }
        if !node.choices.is_empty() {
            ask(What::Choice);
        }
        // Karpenter has patterns on lists, where they match nothing and refuse nothing.
        let text = node.types.is_empty() || node.types.contains(&"string");
        if let Some((pattern, _)) = node.pattern.as_ref().filter(|_| text) {
            ask(What::Pattern(pattern.clone()));
        }
        for (name, member) in &node.properties {
            if member.default.is_some() {
                ask(What::Default(name.clone()));
            }
        }
    });
    demands.sort();
    demands.dedup();
    demands
}

/// What a set of cases has shown.
#[derive(Debug, Default)]
pub struct Shown {
    /// Places at which something stood in an object that was taken; with true, in an update.
    stood: BTreeSet<(String, bool)>,
    /// Causes, with their places as the schema calls them.
    refused: BTreeSet<(String, String)>,
    /// Members that were not sent, and were there.
    filled: BTreeSet<String>,
    /// Members that have a default and were sent.
    said: BTreeSet<String>,
}

impl Shown {
    pub fn add(&mut self, root: &Node, case: &Case, answer: &Answer) {
        match answer {
            Ok(stored) => {
                let stored = if case.status { &case.object } else { stored };
                stand(root, stored, "", &mut |path| {
                    self.stood.insert((path.to_owned(), false));
                    if case.old.is_some() {
                        self.stood.insert((path.to_owned(), true));
                    }
                });
                fill(root, &case.object, stored, "", self);
            }
            Err(causes) => {
                for (field, message) in causes {
                    self.refused.insert((named(root, field), message.clone()));
                }
            }
        }
    }

    /// What is missing of a demand: a case that is taken, one that is refused, both, or nothing.
    pub fn missing(&self, demand: &Demand) -> Option<&'static str> {
        let path = demand.path.as_str();
        let told = |at: &str, part: &str| {
            self.refused.iter().any(|(field, message)| field == at && message.contains(part))
        };
        let below = |part: &str| {
            // A rule may name a field below its own place.
            self.refused.iter().any(|(field, message)| {
                (field == path || path.is_empty() || field.starts_with(&format!("{path}.")))
                    && message.contains(part)
            })
        };
        let stood = |path: &str, update| self.stood.contains(&(path.to_owned(), update));
        let (taken, refused) = match &demand.what {
            What::Rule { told, transition } => (stood(path, *transition), below(told)),
            What::Choice => (stood(path, false), told(path, "Unsupported value")),
            What::Pattern(pattern) => {
                (stood(path, false), told(path, &format!("should match '{pattern}'")))
            }
            What::Default(name) => {
                let member = joined(path, name);
                return match (self.filled.contains(&member), self.said.contains(&member)) {
                    (true, true) => None,
                    (false, true) => Some("no case leaves it out"),
                    (true, false) => Some("no case says something else"),
                    (false, false) => Some("no case leaves it out, and none says something else"),
                };
            }
        };
        match (taken, refused) {
            (true, true) => None,
            (false, true) => Some("no accepted case"),
            (true, false) => Some("no refused case"),
            (false, false) => Some("no case"),
        }
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Every place at which something stands.
fn stand(node: &Node, value: &Value, path: &str, visit: &mut impl FnMut(&str)) {
    visit(path);
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter().filter(|(_, it)| !it.is_null()) {
                if let Some(below) = node.properties.get(key) {
                    stand(below, value, &joined(path, key), visit);
                } else if let Some(below) = node.member(key) {
                    stand(below, value, &format!("{path}[key]"), visit);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                if let Some(below) = &node.items {
                    stand(below, item, &format!("{path}[*]"), visit);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill(node: &Node, sent: &Value, stored: &Value, path: &str, shown: &mut Shown) {
    match (sent, stored) {
        (sent, Value::Object(stored)) => {
            for (name, value) in stored {
                let Some(below) = node.member(name) else { continue };
                let named = node.properties.contains_key(name);
                let at = if named { joined(path, name) } else { format!("{path}[key]") };
                let sent = sent.get(name).unwrap_or(&Value::Null);
                if below.default.is_some() && named {
                    if sent.is_null() {
                        shown.filled.insert(at.clone());
                    } else if below.default.as_ref() != Some(sent) {
                        shown.said.insert(at.clone());
                    }
                }
                fill(below, sent, value, &at, shown);
            }
        }
        (Value::Array(sent), Value::Array(stored)) => {
            let Some(below) = &node.items else { return };
            for (sent, stored) in sent.iter().zip(stored) {
                fill(below, sent, stored, &format!("{path}[*]"), shown);
            }
        }
        _ => {}
    }
}

/// The place that a cause names, as the schema calls it.
fn named(root: &Node, field: &str) -> String {
    let (mut node, mut rest, mut path) = (root, field, String::new());
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = inside.find(']').unwrap_or(inside.len());
            rest = inside.get(end + 1..).unwrap_or("");
            match (&node.items, &node.additional) {
                (Some(below), _) => {
                    path.push_str("[*]");
                    node = below;
                }
                (None, Additional::Like(below)) => {
                    path.push_str("[key]");
                    node = below;
                }
                (None, Additional::Unnamed | Additional::Forbidden | Additional::Anything) => {
                    return field.to_owned();
                }
            }
            continue;
        }
        let text = rest.strip_prefix('.').unwrap_or(rest);
        let name = node
            .properties
            .keys()
            .filter(|it| {
                let after = text.strip_prefix(it.as_str());
                after.is_some_and(|it| it.is_empty() || it.starts_with(['.', '[']))
            })
            .max_by_key(|it| it.len());
        if let Some(name) = name {
            path = joined(&path, name);
            rest = &text[name.len()..];
            node = &node.properties[name];
        } else if let Additional::Like(below) = &node.additional {
            path.push_str("[key]");
            let plain = below.properties.is_empty() && below.items.is_none();
            let end = if plain { text.len() } else { text.find(['.', '[']).unwrap_or(text.len()) };
            rest = &text[end..];
            node = below;
        } else {
            // A required member that no schema describes, or something else that we cannot follow.
            return joined(&path, text);
        }
    }
    path
}

/// A case for every plain limit and every required member: `base` with a value just beyond it, or
/// without it. Each must be refused at its place; what else such an object breaks is not of interest.
pub fn beyond_limits(root: &Node, base: &Value) -> Vec<Case> {
    let mut cases = Vec::new();
    root.walk(&mut |path, node| {
        if path.starts_with("status") || path.starts_with("metadata") {
            return;
        }
        for name in &node.required {
            // What has a default is never missing.
            if node.properties.get(name).is_none_or(|it| it.default.is_some()) {
                continue;
            }
            let mut object = base.clone();
            let Some((place, at)) = reach(root, &mut object, path) else { continue };
            if let Value::Object(members) = at {
                members.remove(name);
            }
            let told = vec![ExpectedCause {
                field: joined(&place, name),
                message: "Required value".to_owned(),
            }];
            cases.push(Case {
                name: format!("{path}: without {name}"),
                old: None,
                object,
                status: false,
                expected: Expected::Refused { causes: told, more: true },
            });
        }
        let limits = if path.is_empty() { Vec::new() } else { beyond(node) };
        for (what, value, message) in limits {
            let mut object = base.clone();
            let Some(field) = put(root, &mut object, path, value) else { continue };
            let told = vec![ExpectedCause { field, message }];
            cases.push(Case {
                name: format!("{path}: {what}"),
                old: None,
                object,
                status: false,
                expected: Expected::Refused { causes: told, more: true },
            });
        }
    });
    cases
}

/// Values of a megabyte and more are refused for other reasons.
const SIZE_MAX: i64 = 500_000;

fn beyond(node: &Node) -> Vec<(&'static str, Value, String)> {
    let mut values = Vec::new();
    let text = node.types.contains(&"string");
    let repeat = |it: i64| usize::try_from(it).unwrap_or_default();
    if let Some(most) = node.max_length.filter(|it| text && *it < SIZE_MAX) {
        let value = Value::String("a".repeat(repeat(most + 1)));
        values.push(("maxLength", value, format!("may not be more than {most} byte")));
    }
    if let Some(least) = node.min_length.filter(|it| text && *it > 0) {
        let value = Value::String("a".repeat(repeat(least - 1)));
        values.push(("minLength", value, format!("should be at least {least} chars long")));
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounds of integers are whole and small")]
    if node.types == ["integer"] {
        if let Some(bound) = node.maximum {
            let value = Value::from(bound.value as i64 + 1);
            values.push(("maximum", value, "should be less than".to_owned()));
        }
        if let Some(bound) = node.minimum {
            let value = Value::from(bound.value as i64 - 1);
            values.push(("minimum", value, "should be greater than".to_owned()));
        }
    }
    if let (Some(most), Some(items)) =
        (node.max_items.filter(|it| *it < SIZE_MAX / 10), &node.items)
    {
        let value = Value::Array(vec![blank(items); repeat(most + 1)]);
        values.push(("maxItems", value, format!("must have at most {most} item")));
    }
    if let Some(least) = node.min_items.filter(|it| *it > 0) {
        let item = node.items.as_deref().map_or(Value::Null, blank);
        let value = Value::Array(vec![item; repeat(least - 1)]);
        values.push(("minItems", value, format!("should have at least {least} items")));
    }
    if let (Some(most), Additional::Like(like)) =
        (node.max_properties.filter(|it| *it < SIZE_MAX / 10), &node.additional)
    {
        let members: Map<String, Value> =
            (0..=most).map(|it| (format!("k{it}"), blank(like))).collect();
        let message = format!("must have at most {most} item");
        values.push(("maxProperties", Value::Object(members), message));
    }
    if let Some(least) = node.min_properties.filter(|it| *it == 1) {
        let message = format!("should have at least {least} properties");
        values.push(("minProperties", Value::Object(Map::new()), message));
    }
    values
}

/// Something of the right type.
fn blank(node: &Node) -> Value {
    match node.types.first().copied() {
        Some("string") => Value::String("a".to_owned()),
        Some("integer" | "number") => Value::from(1),
        Some("boolean") => Value::Bool(true),
        Some("array") => Value::Array(Vec::new()),
        _ => Value::Object(Map::new()),
    }
}

/// Puts a value at a place, making the way to it; says how the server calls the place.
fn put(root: &Node, object: &mut Value, path: &str, value: Value) -> Option<String> {
    let (field, at) = reach(root, object, path)?;
    *at = value;
    Some(field)
}

fn reach<'o>(root: &Node, object: &'o mut Value, path: &str) -> Option<(String, &'o mut Value)> {
    let mut field = String::new();
    let (mut node, mut at) = (root, object);
    let spaced = path.replace("[*]", ".[*]").replace("[key]", ".[key]");
    for segment in spaced.split('.').filter(|it| !it.is_empty()) {
        let key = match segment {
            "[*]" => {
                node = node.items.as_deref()?;
                field.push_str("[0]");
                if at.as_array().is_none_or(Vec::is_empty) {
                    *at = Value::Array(vec![blank(node)]);
                }
                at = at.get_mut(0)?;
                continue;
            }
            "[key]" => "k",
            name => name,
        };
        node = node.member(key)?;
        field = joined(&field, key);
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let below = blank(node);
        at = at.as_object_mut()?.entry(key).or_insert(below);
    }
    Some((field, at))
}
