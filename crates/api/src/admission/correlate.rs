//! Which old value is this the successor of?
//!
//! Members of objects by their name, items of a list by their keys where the list is a map, and other
//! items of nothing: nobody knows which of them moved.

use std::collections::BTreeMap;

use serde_json::Value;

use super::schema::{ListKind, Node};

/// The old value, where there is one that can be compared.
pub(crate) type Before<'v> = Option<&'v Value>;

/// The old items of a list, by their keys.
#[derive(Debug)]
pub(crate) struct Items<'v> {
    keys: &'v [String],
    by_key: Option<BTreeMap<String, &'v Value>>,
}

impl<'v> Items<'v> {
    pub(crate) fn of(node: &'v Node, before: Before<'v>) -> Self {
        let (ListKind::Map(keys), Some(Value::Array(items))) = (&node.list, before) else {
            return Self { keys: &[], by_key: None };
        };
        let mut by_key = BTreeMap::new();
        for item in items {
            // Of two with the same key the server takes the first.
            by_key.entry(key(item, keys)).or_insert(item);
        }
        Self { keys, by_key: Some(by_key) }
    }

    pub(crate) fn before(&self, item: &Value) -> Before<'v> {
        self.by_key.as_ref()?.get(&key(item, self.keys)).copied()
    }
}

fn key(item: &Value, keys: &[String]) -> String {
    let parts: Vec<&Value> =
        keys.iter().map(|it| item.get(it.as_str()).unwrap_or(&Value::Null)).collect();
    serde_json::to_string(&parts).unwrap_or_default()
}

/// Whether nothing changed. Lists that are maps may be in another order.
pub(crate) fn same(node: &Node, value: &Value, old: &Value) -> bool {
    match (value, old) {
        (Value::Array(items), Value::Array(olds)) => {
            if items.len() != olds.len() {
                return false;
            }
            let (ListKind::Map(_), Some(schema)) = (&node.list, &node.items) else {
                return value == old;
            };
            let before = Items::of(node, Some(old));
            items.iter().all(|it| before.before(it).is_some_and(|old| same(schema, it, old)))
        }
        (Value::Object(members), Value::Object(olds)) => {
            members.len() == olds.len()
                && members.iter().all(|(name, it)| match (node.member(name), olds.get(name)) {
                    (Some(schema), Some(old)) => same(schema, it, old),
                    // What no schema describes the server cannot follow, and takes for changed.
                    (None, _) | (_, None) => false,
                })
        }
        _ => value == old,
    }
}
