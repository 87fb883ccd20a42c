//! How does a rule see an object?
//!
//! `schema × JSON → CEL value`
//!
//! By the schema, as the server does it: a `number` is a double even where it is written `1`, a
//! date-time is a timestamp, members are called by their escaped names and keys of maps by their own.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use kube::core::cel::cel::{
    Value, functions,
    objects::{Key, Map},
};
use nodemolt_fit::go_duration;
use serde_json::{Number, Value as Json};

use crate::admission::{
    format::Check,
    schema::{Additional, ListKind, Node},
};

/// Words that are CEL's own.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// `self`, or `oldSelf`. `ordered` puts lists whose order means nothing into one order.
pub(super) fn read(node: &Node, value: &Json, resource: bool, ordered: bool) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) if node.types == ["number"] => {
            Value::Float(number.as_f64().unwrap_or(f64::NAN))
        }
        Json::Number(number) => plain_number(number),
        Json::String(text) => read_text(node, text),
        Json::Array(items) => {
            let item = |it: &Json| match &node.items {
                Some(below) => read(below, it, below.embedded, ordered),
                None => unknown(it),
            };
            let mut items: Vec<&Json> = items.iter().collect();
            if ordered {
                match &node.list {
                    ListKind::Atomic => {}
                    ListKind::Set => items.sort_by_key(ToString::to_string),
                    ListKind::Map(keys) => items.sort_by_key(|it| {
                        let parts: Vec<_> = keys.iter().map(|key| it.get(key.as_str())).collect();
                        serde_json::to_string(&parts).unwrap_or_default()
                    }),
                }
            }
            Value::List(Arc::new(items.into_iter().map(item).collect()))
        }
        Json::Object(members) => read_members(node, members, resource, ordered, |_| true),
    }
}

/// Of an object only those members that are asked for, by the names that rules have for them.
pub(super) fn read_members(
    node: &Node,
    members: &serde_json::Map<String, Json>,
    resource: bool,
    ordered: bool,
    asked: impl Fn(&str) -> bool,
) -> Value {
    let mut map = HashMap::with_capacity(members.len());
    for (key, value) in members {
        let named = node.properties.get(key);
        let (name, below) = match (named, &node.additional) {
            (Some(below), _) => (escape(key), Some(below)),
            (None, Additional::Like(below)) => (Cow::from(key), Some(&**below)),
            (None, Additional::Anything) => (Cow::from(key), None),
            (None, Additional::Unnamed | Additional::Forbidden) => (escape(key), None),
        };
        if !asked(&name) {
            continue;
        }
        let value = match below {
            // Of its metadata a rule sees what an object is called, and nothing else.
            _ if resource && key == "metadata" => name_only(members),
            Some(below) => read(below, value, below.embedded, ordered),
            None => unknown(value),
        };
        map.insert(Key::String(Arc::new(name.into_owned())), value);
    }
    Value::Map(Map { map: Arc::new(map) })
}

fn read_text(node: &Node, text: &str) -> Value {
    let plain = || Value::String(Arc::new(text.to_owned()));
    let Some(format) = &node.format else { return plain() };
    match format.check {
        Check::DateTime | Check::Date => {
            let full = if format.check == Check::Date {
                format!("{text}T00:00:00Z")
            } else {
                text.to_owned()
            };
            functions::timestamp(Arc::new(full)).unwrap_or_else(|_| plain())
        }
        Check::Duration if go_duration(text).is_some() => {
            functions::duration(Arc::new(text.to_owned())).unwrap_or_else(|_| plain())
        }
        Check::Byte => decode(text).map_or_else(plain, |it| Value::Bytes(Arc::new(it))),
        Check::Duration
        | Check::Number
        | Check::Regex(_)
        | Check::Ipv4
        | Check::Ipv6
        | Check::Cidr
        | Check::Uri
        | Check::Email
        | Check::LongName
        | Check::Anything => plain(),
    }
}

fn name_only(members: &serde_json::Map<String, Json>) -> Value {
    let metadata = members.get("metadata");
    let mut map = HashMap::new();
    for field in ["name", "generateName"] {
        if let Some(text) = metadata.and_then(|it| it.get(field)).and_then(Json::as_str) {
            map.insert(Key::from(field), Value::String(Arc::new(text.to_owned())));
        }
    }
    Value::Map(Map { map: Arc::new(map) })
}

fn plain_number(number: &Number) -> Value {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => Value::Int(whole),
        (None, Some(float)) if float.fract() == 0.0 && float.abs() < 9.0e15 =>
        {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "whole and small, as was just seen"
            )]
            Value::Int(float as i64)
        }
        (None, float) => Value::Float(float.unwrap_or(f64::NAN)),
    }
}

/// What no schema describes.
fn unknown(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Arc::new(text.clone())),
        Json::Array(items) => Value::List(Arc::new(items.iter().map(unknown).collect())),
        Json::Object(members) => {
            let map = members
                .iter()
                .map(|(key, value)| (Key::String(Arc::new(key.clone())), unknown(value)))
                .collect();
            Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// How many values there are, which is what a copy costs.
pub(super) fn weight(value: &Json) -> u64 {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => 1,
        Json::String(text) => 1 + u64::try_from(text.len() / 64).unwrap_or(u64::MAX),
        Json::Array(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Json::Object(members) => 1 + members.values().map(weight).sum::<u64>(),
    }
}

/// The name by which a rule calls a member.
pub(super) fn escape(name: &str) -> Cow<'_, str> {
    if RESERVED.contains(&name) {
        return format!("__{name}__").into();
    }
    if !name.contains("__") && !name.contains(['.', '-', '/']) {
        return name.into();
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
        .into()
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |it: u8| match it {
        b'A'..=b'Z' => Some(it - b'A'),
        b'a'..=b'z' => Some(it - b'a' + 26),
        b'0'..=b'9' => Some(it - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0u32;
        for byte in four {
            bits = bits << 6 | u32::from(digit(*byte)?);
        }
        bits <<= 6 * (4 - four.len());
        let whole = bits.to_be_bytes();
        bytes.extend_from_slice(&whole[1..four.len().max(1)]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_called_by_their_escaped_names() {
        for (name, escaped) in [
            ("namespace", "__namespace__"),
            ("x-prop", "x__dash__prop"),
            ("redact__d", "redact__underscores__d"),
            ("a_b", "a_b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("role", "role"),
        ] {
            assert_eq!(escape(name), escaped);
        }
    }

    #[test]
    fn bytes_are_decoded() {
        for (text, bytes) in
            [("aGk=", Some(&b"hi"[..])), ("aGkh", Some(b"hi!")), ("", Some(b"")), ("a", None)]
        {
            assert_eq!(decode(text).as_deref(), bytes);
        }
    }
}
