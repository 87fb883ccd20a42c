//! What is kept of an object, and what is added to it?
//!
//! `schema × what was sent → what is validated`
//!
//! In the server's order: members that the schema does not name go, then nulls that may not be, then
//! defaults come. Each walks at most as deep as the schema does, save where it keeps what it does not
//! know; there the caller has bounded the depth.

use serde_json::Value;

use super::{place::Place, schema::Node};

const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes what the schema does not name, and says what that was.
pub(crate) fn prune(node: &Node, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_at(Some(node), object, Place::Root, true, &mut unknown);
    unknown.sort();
    unknown
}

fn prune_at(
    node: Option<&Node>,
    value: &mut Value,
    place: Place<'_>,
    resource: bool,
    unknown: &mut Vec<String>,
) {
    let keeps = node.is_some_and(|it| it.preserves_unknown);
    match value {
        Value::Object(members) => {
            let mut gone = Vec::new();
            for (key, value) in members.iter_mut() {
                let at = Place::Member(&place, key);
                if resource && META.contains(&key.as_str()) {
                    continue;
                }
                let Some(node) = node else {
                    gone.push(key.clone());
                    continue;
                };
                let named = node.properties.get(key);
                if named.is_some() || node.has_additional() {
                    let below = named.or_else(|| node.member(key));
                    // `additionalProperties: true` says nothing about what is below.
                    prune_at(below, value, at, below.is_some_and(|it| it.embedded), unknown);
                } else if !keeps {
                    gone.push(key.clone());
                }
            }
            for key in gone {
                members.remove(&key);
                unknown.push(Place::Member(&place, &key).to_string());
            }
        }
        Value::Array(items) => {
            let below = node.and_then(|it| it.items.as_deref());
            // Where everything is kept and nothing is said about items, they are kept whole.
            if keeps && below.is_none() {
                return;
            }
            let embedded = below.is_some_and(|it| it.embedded);
            for (index, item) in items.iter_mut().enumerate() {
                prune_at(below, item, Place::Item(&place, index), embedded, unknown);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes nulls where nothing nullable is and no default waits.
pub(crate) fn drop_nulls(node: Option<&Node>, value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, value| {
                let below = node.and_then(|it| it.member(key));
                !(value.is_null() && below.is_some_and(|it| !it.nullable && it.default.is_none()))
            });
            for (key, value) in members.iter_mut() {
                drop_nulls(node.and_then(|it| it.member(key)), value);
            }
        }
        Value::Array(items) => {
            let below = node.and_then(|it| it.items.as_deref());
            for item in items {
                drop_nulls(below, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fills in what was not said.
pub(crate) fn fill(node: &Node, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, below) in &node.properties {
                let Some(default) = &below.default else { continue };
                let open = members.get(name).is_none_or(|it| it.is_null() && !below.nullable);
                if open {
                    members.insert(name.clone(), default.clone());
                }
            }
            for (key, value) in members.iter_mut() {
                if let Some(below) = node.member(key) {
                    if value.is_null()
                        && !below.nullable
                        && !node.properties.contains_key(key)
                        && let Some(default) = &below.default
                    {
                        *value = default.clone();
                    }
                    fill(below, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(below) = &node.items else { return };
            for item in items {
                if item.is_null()
                    && !below.nullable
                    && let Some(default) = &below.default
                {
                    *item = default.clone();
                }
                fill(below, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
