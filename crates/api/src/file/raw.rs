//! What did they write, before anyone decides what it means?
//!
//! `text → objects as JSON`, each with its places
//!
//! The strict door reads objects into structs and keeps what is sound. Whoever asks what the API server
//! would say needs the others, too.

use std::sync::Arc;

use serde_json::{Map, Number, Value};

use super::tree::{self, Content, NodeId, Tree};
use super::{FILE_BYTES_MAX, Located, Source, scalar, under};
use crate::problem::{Finding, Place, Problem};

/// Objects in one file beyond this are a generated file, and another hundred findings help nobody.
const OBJECTS_MAX: usize = 10_000;

/// Every object of a file, lists taken apart, in the order of the text. Documents that are not YAML, or
/// not one object, are left out: [`super::read`] tells what is wrong with them.
pub fn objects(source: &Source) -> Vec<Located<Value>> {
    let mut found = Vec::new();
    if source.text.len() > FILE_BYTES_MAX {
        return found;
    }
    for document in tree::documents(&source.text) {
        // What repeats a key, or itself a million times, is not walked.
        let (Some(tree), true) = (document.tree, document.defects.is_empty()) else { continue };
        let tree = Arc::new(tree);
        object(source, &tree, tree.root, "", &mut found);
    }
    found
}

/// What keeps documents out of [`objects`]: theirs who are none of ours, too.
pub fn problems(source: &Source) -> Vec<Problem> {
    if source.text.len() > FILE_BYTES_MAX {
        let message = format!("is longer than the {} MiB of a file", FILE_BYTES_MAX / 1024 / 1024);
        let finding = Finding::error("", message).hint("split the file");
        return vec![Problem::new(&source.name, Place::START, finding)];
    }
    let mut found = Vec::new();
    for document in tree::documents(&source.text) {
        let problem = |(place, finding)| Problem::new(&source.name, place, finding);
        found.extend(document.defects.into_iter().map(problem));
        let Some(tree) = document.tree else { continue };
        let node = tree.node(tree.root);
        if !matches!(node.content, Content::Map(_) | Content::Null) {
            let finding = Finding::error("", "expected an object with apiVersion and kind");
            found.push(problem((node.place.clone(), finding)));
        }
    }
    found
}

fn object(
    source: &Source,
    tree: &Arc<Tree>,
    root: NodeId,
    prefix: &str,
    found: &mut Vec<Located<Value>>,
) {
    if !matches!(tree.node(root).content, Content::Map(_)) || found.len() >= OBJECTS_MAX {
        return;
    }
    if tree.text(root, "kind").is_some_and(|it| it.ends_with("List"))
        && let Some(items) = tree.entry(root, "items")
    {
        match &tree.node(items.value).content {
            Content::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let prefix = under(prefix, format!("items[{index}]"));
                    object(source, tree, *item, &prefix, found);
                }
                return;
            }
            // As Go writes a list of nothing.
            Content::Null => return,
            Content::Bool(..) | Content::Number(..) | Content::Text(_) | Content::Map(_) => {}
        }
    }
    found.push(Located {
        value: json(tree, root),
        file: source.name.clone(),
        tree: Arc::clone(tree),
        root,
        prefix: prefix.to_owned(),
        moves: &[],
    });
}

impl Located<Value> {
    /// The first and the last line on which something of it begins.
    pub fn lines(&self) -> (usize, usize) {
        let first = self.tree.node(self.root).place.line;
        (first, last_line(&self.tree, self.root).max(first))
    }
}

fn last_line(tree: &Tree, id: NodeId) -> usize {
    let node = tree.node(id);
    let below = match &node.content {
        Content::List(items) => items.iter().map(|it| last_line(tree, *it)).max(),
        Content::Map(entries) => {
            entries.iter().map(|it| it.place.line.max(last_line(tree, it.value))).max()
        }
        Content::Null | Content::Bool(..) | Content::Number(..) | Content::Text(_) => None,
    };
    below.unwrap_or_default().max(node.place.line)
}

/// The tree is no deeper than the door allows, so this may recurse.
fn json(tree: &Tree, id: NodeId) -> Value {
    match &tree.node(id).content {
        Content::Null => Value::Null,
        Content::Bool(flag, _) => Value::Bool(*flag),
        Content::Number(number, text) => match *number {
            scalar::Number::Negative(it) => Value::from(it),
            scalar::Number::Natural(it) => Value::from(it),
            // What JSON has no number for stays the text that it was.
            scalar::Number::Real(it) => {
                Number::from_f64(it).map_or_else(|| Value::String(text.clone()), Value::Number)
            }
        },
        Content::Text(text) => Value::String(text.clone()),
        Content::List(items) => Value::Array(items.iter().map(|it| json(tree, *it)).collect()),
        Content::Map(entries) => {
            let members: Map<String, Value> =
                entries.iter().map(|it| (it.key.clone(), json(tree, it.value))).collect();
            Value::Object(members)
        }
    }
}
