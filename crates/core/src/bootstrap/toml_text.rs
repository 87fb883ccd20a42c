//! What does the user's TOML say, and where?
//!
//! `text → document with places`, if both parsers take it
//!
//! `toml_edit` keeps comments, order and spelling, and reads TOML 1.1. Bottlerocket reads TOML 1.0 with
//! `toml` 0.8, so that parser has the last word: what only the newer one takes would be lost on the node.

use std::fmt::Write as _;
use std::ops::Range;

use toml_edit::{Document, Item, TableLike, Value};

use super::{Place, Provenance, Remark, Source};

/// The document, or the place where it breaks.
pub(crate) fn read(text: &str) -> Result<Document<String>, Remark> {
    let place =
        |span: Option<Range<usize>>| span.map_or(Place::Whole, |it| Place::of_byte(text, it.start));
    let document = Document::parse(text.to_owned()).map_err(|error| {
        let message = format!("cannot be read as TOML: {}", one_line(error.message()));
        let remark = Remark::new(place(error.span()), message);
        match mistaken_for(text) {
            Some(kind) => remark.with_hint(format!("Bottlerocket takes settings, not {kind}")),
            None => remark,
        }
    })?;
    toml::from_str::<toml::Table>(text).map_err(|error| {
        let message = format!("is newer than TOML 1.0: {}", one_line(error.message()));
        Remark::new(place(error.span()), message)
            .with_hint("Bottlerocket reads TOML 1.0 and would ignore all of it")
    })?;
    Ok(document)
}

/// What people paste into the wrong family.
fn mistaken_for(text: &str) -> Option<&'static str> {
    let start = text.trim_start();
    let starts =
        |it: &str| start.get(..it.len()).is_some_and(|start| start.eq_ignore_ascii_case(it));
    if starts("#!") {
        Some("a script")
    } else if starts("MIME-Version:") || starts("Content-Type:") {
        Some("MIME")
    } else if starts("#cloud-config") {
        Some("cloud-config")
    } else if starts("apiVersion:") || starts("---") || starts("{") {
        Some("YAML")
    } else {
        None
    }
}

fn one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join(", ")
}

/// The item at `path`, if everything on the way is a table.
pub(crate) fn find<'a>(root: &'a dyn TableLike, path: &[&str]) -> Option<&'a Item> {
    let (first, rest) = path.split_first()?;
    let item = root.get(first)?;
    if rest.is_empty() { Some(item) } else { find(item.as_table_like()?, rest) }
}

/// Where the last part of `path` that exists is written.
pub(crate) fn place(document: &Document<String>, path: &[&str]) -> Place {
    let mut table: Option<&dyn TableLike> = Some(document.as_table());
    let mut found = None;
    for part in path {
        let Some((key, item)) = table.and_then(|it| it.get_key_value(part)) else { break };
        found = key.span().or_else(|| item.span()).or(found);
        table = item.as_table_like();
    }
    found.map_or(Place::Whole, |it| Place::of_byte(document.raw(), it.start))
}

/// `a.b."c/d"`: a path as TOML would write it.
pub(crate) fn dotted(path: &[impl AsRef<str>]) -> String {
    let bare = |it: &str| {
        !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
    };
    let mut text = String::new();
    for part in path.iter().map(AsRef::as_ref) {
        if !text.is_empty() {
            text.push('.');
        }
        if bare(part) {
            text.push_str(part);
        } else {
            let _ = write!(text, "{part:?}"); // Writing to a string cannot fail.
        }
    }
    text
}

/// Every key of the document in the order of its text, each with its source.
pub(crate) fn provenance(
    document: &Document<String>,
    source: &dyn Fn(&str) -> Source,
) -> Vec<Provenance> {
    let mut found = Vec::new();
    walk(document.as_table(), "", &mut found);
    found.sort();
    found
        .into_iter()
        .map(|(_, what)| {
            let source = source(&what);
            Provenance { what, source }
        })
        .collect()
}

fn walk(table: &dyn TableLike, path: &str, found: &mut Vec<(usize, String)>) {
    for (name, item) in table.iter() {
        let name = dotted(&[name]);
        let path = if path.is_empty() { name } else { format!("{path}.{name}") };
        let start = |item: &Item| item.span().map_or(usize::MAX, |it| it.start);
        match item {
            Item::ArrayOfTables(tables) => {
                for (index, table) in tables.iter().enumerate() {
                    walk(table, &format!("{path}[{index}]"), found);
                }
            }
            Item::Value(Value::Array(items)) if items.len() > 1 => {
                for (index, item) in items.iter().enumerate() {
                    let start = item.span().map_or(usize::MAX, |it| it.start);
                    found.push((start, format!("{path}[{index}]")));
                }
            }
            Item::None | Item::Value(_) | Item::Table(_) => match item.as_table_like() {
                Some(table) if !table.is_empty() => walk(table, &path, found),
                Some(_) | None => found.push((start(item), path)),
            },
        }
    }
}
