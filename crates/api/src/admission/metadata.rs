//! Is the metadata sound?
//!
//! The one part of an object that no CRD describes. The server reads it into its own struct: what it
//! does not know is dropped, and what has the wrong type is no object at all.

use serde_json::{Map, Value};

use super::{cause::Cause, names};

/// All annotations of an object together, names and values.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Whole,
    Flag,
    Time,
    Texts,
    TextMap,
    Owners,
    /// The server's own; looked at by nobody here.
    Kept,
}

const FIELDS: [(&str, Shape); 15] = [
    ("name", Shape::Text),
    ("generateName", Shape::Text),
    ("namespace", Shape::Text),
    ("selfLink", Shape::Text),
    ("uid", Shape::Text),
    ("resourceVersion", Shape::Text),
    ("generation", Shape::Whole),
    ("creationTimestamp", Shape::Time),
    ("deletionTimestamp", Shape::Time),
    ("deletionGracePeriodSeconds", Shape::Whole),
    ("labels", Shape::TextMap),
    ("annotations", Shape::TextMap),
    ("ownerReferences", Shape::Owners),
    ("finalizers", Shape::Texts),
    ("managedFields", Shape::Kept),
];

const OWNER: [(&str, Shape); 6] = [
    ("apiVersion", Shape::Text),
    ("kind", Shape::Text),
    ("name", Shape::Text),
    ("uid", Shape::Text),
    ("controller", Shape::Flag),
    ("blockOwnerDeletion", Shape::Flag),
];

/// Drops what the server does not know and what is empty; says what was not known.
pub(crate) fn coerce(object: &mut Map<String, Value>) -> Result<Vec<String>, Cause> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    if metadata.is_null() {
        object.remove("metadata");
        return Ok(Vec::new());
    }
    let mut unknown = Vec::new();
    read(metadata, "metadata", "ObjectMeta", &FIELDS, &mut unknown)?;
    Ok(unknown)
}

fn read(
    value: &mut Value,
    path: &str,
    name: &str,
    fields: &[(&str, Shape)],
    unknown: &mut Vec<String>,
) -> Result<(), Cause> {
    let found = word(value);
    let Value::Object(members) = value else {
        let message = format!("json: cannot unmarshal {found} into Go value of type v1.{name}");
        return Err(Cause::malformed(path, message));
    };
    let mut gone = Vec::new();
    for (key, value) in members.iter_mut() {
        let path = || format!("{path}.{key}");
        let Some((_, shape)) = fields.iter().find(|(it, _)| it == key) else {
            unknown.push(path());
            gone.push(key.clone());
            continue;
        };
        if value.is_null() {
            gone.push(key.clone());
            continue;
        }
        let wrong = |value: &Value, wanted: &str| {
            let found = word(value);
            let message = format!(
                "json: cannot unmarshal {found} into Go struct field {name}.{key} of type {wanted}"
            );
            Cause::malformed(path(), message)
        };
        match shape {
            Shape::Text if !value.is_string() => return Err(wrong(value, "string")),
            Shape::Whole if !value.is_i64() => return Err(wrong(value, "int64")),
            Shape::Flag if !value.is_boolean() => return Err(wrong(value, "bool")),
            Shape::Text | Shape::Whole | Shape::Flag | Shape::Kept => {}
            Shape::Time => {
                let Value::String(text) = &*value else { return Err(wrong(value, "string")) };
                if text.parse::<jiff::Timestamp>().is_err() {
                    let message = format!(
                        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
                    );
                    return Err(Cause::malformed(path(), message));
                }
            }
            Shape::Texts => {
                let Value::Array(items) = &*value else { return Err(wrong(value, "[]string")) };
                if let Some(odd) = items.iter().find(|it| !it.is_string()) {
                    return Err(wrong(odd, "string"));
                }
            }
            Shape::TextMap => {
                let Value::Object(entries) = value else {
                    return Err(wrong(value, "map[string]string"));
                };
                for entry in entries.values_mut() {
                    if entry.is_null() {
                        *entry = Value::String(String::new());
                    }
                    if !entry.is_string() {
                        return Err(wrong(entry, "string"));
                    }
                }
            }
            Shape::Owners => {
                let Value::Array(items) = value else {
                    return Err(wrong(value, "[]v1.OwnerReference"));
                };
                for (index, item) in items.iter_mut().enumerate() {
                    let path = format!("{}[{index}]", path());
                    read(item, &path, "OwnerReference", &OWNER, unknown)?;
                }
            }
        }
        let empty = match &*value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(entries) => entries.is_empty(),
            Value::Number(number) => *shape == Shape::Whole && number.as_i64() == Some(0),
            Value::Null | Value::Bool(_) => false,
        };
        if empty && name == "ObjectMeta" {
            gone.push(key.clone());
        }
    }
    for key in gone {
        members.remove(&key);
    }
    Ok(())
}

fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn text<'v>(metadata: Option<&'v Value>, field: &str) -> &'v str {
    metadata.and_then(|it| it.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// What a new object may be called.
pub(crate) fn check_new(metadata: Option<&Value>, namespaced: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let field = |name: &str| format!("metadata.{name}");
    let (name, generate) = (text(metadata, "name"), text(metadata, "generateName"));
    let as_value = |it: &str| Value::String(it.to_owned());
    if !generate.is_empty() {
        // What is appended makes a trailing dash an inner one.
        let masked = match generate.strip_suffix('-') {
            Some(stem) if !stem.is_empty() => format!("{stem}a"),
            Some(_) | None => generate.to_owned(),
        };
        for wrong in names::subdomain(&masked) {
            causes.push(Cause::invalid(field("generateName"), &as_value(generate), &wrong));
        }
    }
    if name.is_empty() && generate.is_empty() {
        causes.push(Cause::required(field("name"), "name or generateName is required"));
    } else if !name.is_empty() {
        for wrong in names::subdomain(name) {
            causes.push(Cause::invalid(field("name"), &as_value(name), &wrong));
        }
    }
    let namespace = text(metadata, "namespace");
    if namespaced && namespace.is_empty() {
        causes.push(Cause::required(field("namespace"), ""));
    } else if namespaced {
        for wrong in names::label(namespace) {
            causes.push(Cause::invalid(field("namespace"), &as_value(namespace), &wrong));
        }
    } else if !namespace.is_empty() {
        causes.push(Cause::forbidden(field("namespace"), "not allowed on this type"));
    }
    causes.extend(check_common(metadata));
    for finalizer in finalizers(metadata) {
        for wrong in names::qualified(finalizer) {
            causes.push(Cause::invalid(field("finalizers"), &as_value(finalizer), &wrong));
        }
    }
    causes
}

/// What may not change.
pub(crate) fn check_change(metadata: Option<&Value>, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let deleting = old.and_then(|it| it.get("deletionTimestamp")).is_some();
    let known = finalizers(old);
    let added: Vec<&str> =
        finalizers(metadata).into_iter().filter(|it| !known.contains(it)).collect();
    if deleting && !added.is_empty() {
        let list: Vec<String> = added.iter().map(|it| super::go::quote(it)).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            list.join(", ")
        );
        causes.push(Cause::forbidden("metadata.finalizers", &detail));
    }
    for name in ["name", "namespace", "uid"] {
        let (now, before) = (text(metadata, name), text(old, name));
        // What the caller left out the server fills in before it looks.
        if now != before && !(now.is_empty() && name != "name") {
            let field = format!("metadata.{name}");
            causes.push(Cause::invalid(
                field,
                &Value::String(now.to_owned()),
                "field is immutable",
            ));
        }
    }
    causes.extend(check_common(metadata));
    causes
}

/// What is wrong with the labels and annotations of anything that has some; `at` is where they stand.
pub fn check_words(metadata: Option<&Value>, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let entries = |field: &str| metadata.and_then(|it| it.get(field)).and_then(Value::as_object);
    let labels = || format!("{at}.labels");
    for (key, value) in entries("labels").into_iter().flatten() {
        for wrong in names::qualified(key) {
            causes.push(Cause::invalid(labels(), &Value::String(key.clone()), &wrong));
        }
        for wrong in names::label_value(value.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(labels(), value, &wrong));
        }
    }
    let annotations = || format!("{at}.annotations");
    let mut bytes = 0;
    for (key, value) in entries("annotations").into_iter().flatten() {
        for wrong in names::qualified(&key.to_lowercase()) {
            let key = Value::String(key.clone());
            causes.push(Cause::invalid(annotations(), &key, &wrong));
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        causes.push(Cause::too_long(annotations(), 262_144));
    }
    causes
}

fn check_common(metadata: Option<&Value>) -> Vec<Cause> {
    let mut causes = check_words(metadata, "metadata");
    let owners = metadata.and_then(|it| it.get("ownerReferences")).and_then(Value::as_array);
    for owner in owners.into_iter().flatten() {
        for (member, detail) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(Some(owner), member).is_empty() {
                let field = format!("metadata.ownerReferences.{member}");
                causes.push(Cause::invalid(field, &Value::String(String::new()), detail));
            }
        }
    }
    causes
}

fn finalizers(metadata: Option<&Value>) -> Vec<&str> {
    let list = metadata.and_then(|it| it.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Finalizers that the server takes, and warns of.
pub(crate) fn warnings(metadata: Option<&Value>, old: Option<&Value>) -> Vec<String> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let known = finalizers(old);
    finalizers(metadata)
        .into_iter()
        .filter(|it| !known.contains(it) && !it.contains('/') && !STANDARD.contains(it))
        .map(|it| {
            let path = if it.contains('.') { " including a path (/)" } else { "" };
            format!(
                "metadata.finalizers: {it:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            )
        })
        .collect()
}
