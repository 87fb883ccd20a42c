//! Is anything in a list twice that may be there only once?

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    cause::Cause,
    place::Place,
    schema::{ListKind, Node},
};

pub(crate) fn check(node: &Node, value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    walk(node, value, Place::Root, &mut causes);
    causes
}

fn walk(node: &Node, value: &Value, place: Place<'_>, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                if let Some(below) = node.properties.get(key) {
                    walk(below, value, Place::Member(&place, key), causes);
                } else if let Some(below) = node.member(key) {
                    walk(below, value, Place::Key(&place, key), causes);
                }
            }
        }
        Value::Array(items) => {
            match &node.list {
                ListKind::Atomic => {}
                ListKind::Set => {
                    for index in repeated(items.iter().map(Value::to_string)) {
                        let field = Place::Item(&place, index).field();
                        causes.push(Cause::duplicate(field, &items[index]));
                    }
                }
                ListKind::Map(keys) => map(items, keys, place, causes),
            }
            if let Some(below) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    walk(below, item, Place::Item(&place, index), causes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn map(items: &[Value], keys: &[String], place: Place<'_>, causes: &mut Vec<Cause>) {
    let odd = items.iter().position(|it| !it.is_object() && !it.is_null());
    if let Some(index) = odd {
        let detail = "must be an object for an array of list-type map";
        causes.push(Cause::invalid(Place::Item(&place, index).field(), &items[index], detail));
        return;
    }
    let named = |item: &Value| {
        let mut named = Map::new();
        for key in keys {
            if let Some(value) = item.get(key.as_str()) {
                named.insert(key.clone(), value.clone());
            }
        }
        Value::Object(named)
    };
    for index in repeated(items.iter().map(|it| named(it).to_string())) {
        causes.push(Cause::duplicate(Place::Item(&place, index).field(), &named(&items[index])));
    }
}

/// The second of those that are alike; a third is not told.
fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut second = Vec::new();
    for (index, text) in texts.enumerate() {
        let times = seen.entry(text).or_default();
        *times += 1;
        if *times == 2 {
            second.push(index);
        }
    }
    second
}
