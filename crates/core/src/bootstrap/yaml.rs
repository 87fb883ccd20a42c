//! What does the user's YAML say, and where? And how is ours written?
//!
//! `text → tree with places`, and `value → text`
//!
//! Read as the node reads it, which is YAML 1.1 (`yes` is true, `012` is ten), from the parser's events:
//! a place for every key, and an end to aliases that repeat without end. Written so that YAML 1.1 and
//! 1.2 read the same: what could be anything but a string is quoted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Number, Value};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::identity::shown;
use super::{Place, Remark};

/// Deeper than any kubelet setting, and shallow enough to be walked by recursion.
const DEPTH_MAX: usize = 64;
/// User data has at most 16,384 bytes. What has more nodes than this repeats itself by aliases.
const NODES_MAX: usize = 50_000;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) content: Content,
}

/// Line and column, both from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: At,
    pub(crate) value: Node,
}

impl From<At> for Place {
    fn from(At { line, column }: At) -> Self {
        Self::UserPart { line, column }
    }
}

impl Node {
    /// What a map says under this key; `None` where it says nothing, or null.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|it| &it.value).filter(|it| it.content != Content::Null)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|it| it.key == key)
    }

    pub(crate) fn at_path(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Map(entries) => entries,
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::List(_) => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Node] {
        match &self.content {
            Content::List(items) => items,
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::Map(_) => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::List(_)
            | Content::Map(_) => None,
        }
    }

    pub(crate) fn value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(it) => Value::Bool(*it),
            Content::Number(it) => Value::Number(it.clone()),
            Content::Text(it) => Value::String(it.clone()),
            Content::List(items) => items.iter().map(Self::value).collect(),
            Content::Map(entries) => {
                entries.iter().map(|it| (it.key.clone(), it.value.value())).collect()
            }
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match &self.content {
            Content::Null => "nothing",
            Content::Bool(_) => "true or false",
            Content::Number(_) => "a number",
            Content::Text(_) => "text",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }
}

/// The roots of all documents in the text, or the place where it breaks.
pub(crate) fn read(text: &str) -> Result<Vec<Node>, Remark> {
    let options = serde_saphyr::granit_parser::options! { emit_comments: false };
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut roots = Vec::new();
    let mut builder = Builder::default();
    loop {
        match parser.next_event() {
            None | Some(Ok((Event::StreamEnd, _))) => return Ok(roots),
            Some(Ok((Event::DocumentEnd, span))) => {
                let empty = Node { at: at(span), content: Content::Null };
                roots.push(builder.root.take().unwrap_or(empty));
                builder.anchors.clear();
            }
            Some(Ok((event, span))) => builder.take(event, at(span))?,
            Some(Err(error)) => return Err(broken(text, &error)),
        }
    }
}

fn broken(text: &str, error: &ScanError) -> Remark {
    let marker = error.marker();
    let place = At { line: marker.line().max(1), column: marker.col() + 1 };
    let remark = Remark::new(place.into(), format!("cannot be read as YAML: {}", error.info()));
    let line = text.lines().nth(place.line - 1).unwrap_or_default();
    if line.trim_start_matches(' ').starts_with('\t') {
        return remark.with_hint("indent with spaces; YAML does not take tabs");
    }
    remark
}

fn at(span: Span) -> At {
    At { line: span.start.line().max(1), column: span.start.col() + 1 }
}

#[derive(Debug, Default)]
struct Builder {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
}

#[derive(Debug)]
struct Open {
    at: At,
    anchor: usize,
    inside: Inside,
}

#[derive(Debug)]
enum Inside {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, merged: Vec<Node>, key: Option<(String, At, bool)> },
}

impl Builder {
    fn take(&mut self, event: Event<'_>, at: At) -> Result<(), Remark> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), at)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.push(at, anchor, Inside::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, _) => {
                let inside = Inside::Map { entries: Vec::new(), merged: Vec::new(), key: None };
                self.push(at, anchor, inside)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    let node = Node { at, ..node.clone() };
                    self.count(count(&node), at)?;
                    self.put(node)
                }
                None => Err(Remark::new(at.into(), "the alias names nothing that is finished")),
            },
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::DocumentEnd
            | Event::Anchor(..)
            | Event::UnresolvedAlias(_)
            | Event::Comment(..)
            // What a newer parser may add.
            | _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        at: At,
    ) -> Result<(), Remark> {
        let plain = style == ScalarStyle::Plain && tag.is_none();
        if let Some(Open { inside: Inside::Map { key: key @ None, .. }, .. }) = self.open.last_mut()
        {
            if plain && matches!(text, "" | "~" | "null" | "Null" | "NULL") {
                return Err(Remark::new(at.into(), "a key is missing before the `:`"));
            }
            *key = Some((text.to_owned(), at, plain && text == "<<"));
            return Ok(());
        }
        let content = match tag.map(Tag::core_suffix) {
            None if plain => resolve(text),
            None | Some(Some("str")) => Content::Text(text.to_owned()),
            Some(Some("null" | "bool" | "int" | "float")) => resolve(text),
            Some(Some(_) | None) => {
                return Err(Remark::new(at.into(), "has a tag that is not known here"));
            }
        };
        self.count(1, at)?;
        self.finish(Node { at, content }, anchor)
    }

    fn push(&mut self, at: At, anchor: usize, inside: Inside) -> Result<(), Remark> {
        if let Some(Open { inside: Inside::Map { key: None, .. }, .. }) = self.open.last() {
            return Err(Remark::new(at.into(), "a key must be text"));
        }
        if self.open.len() >= DEPTH_MAX {
            let message = format!("is nested deeper than {DEPTH_MAX} levels");
            return Err(Remark::new(at.into(), message));
        }
        self.count(1, at)?;
        self.open.push(Open { at, anchor, inside });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Remark> {
        let Some(Open { at, anchor, inside }) = self.open.pop() else { return Ok(()) };
        let content = match inside {
            Inside::List(items) => Content::List(items),
            Inside::Map { mut entries, merged, .. } => {
                for base in merged {
                    let bases =
                        if base.items().is_empty() { vec![base] } else { base.items().into() };
                    for entry in bases.iter().flat_map(Node::entries) {
                        if !entries.iter().any(|it| it.key == entry.key) {
                            self.count(count(&entry.value), at)?;
                            entries.push(entry.clone());
                        }
                    }
                }
                Content::Map(entries)
            }
        };
        self.finish(Node { at, content }, anchor)
    }

    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Remark> {
        if anchor != 0 {
            self.count(count(&node), node.at)?;
            self.anchors.insert(anchor, node.clone());
        }
        self.put(node)
    }

    fn put(&mut self, node: Node) -> Result<(), Remark> {
        if self.open.len() + depth(&node) > DEPTH_MAX {
            let message = format!("is nested deeper than {DEPTH_MAX} levels");
            return Err(Remark::new(node.at.into(), message));
        }
        match self.open.last_mut().map(|it| &mut it.inside) {
            None => self.root = Some(node),
            Some(Inside::List(items)) => items.push(node),
            Some(Inside::Map { entries, merged, key }) => match key.take() {
                Some((_, _, true)) => merged.push(node),
                Some((key, at, false)) => {
                    if let Some(first) = entries.iter().find(|it| it.key == key) {
                        let line = first.at.line;
                        let message =
                            format!("`{}` is written twice, first on line {line}", shown(&key));
                        return Err(
                            Remark::new(at.into(), message).with_hint("keep one of the two")
                        );
                    }
                    entries.push(Entry { key, at, value: node });
                }
                None => return Err(Remark::new(node.at.into(), "a key must be text")),
            },
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize, at: At) -> Result<(), Remark> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > NODES_MAX {
            let message = "its aliases repeat more than user data can hold";
            return Err(Remark::new(at.into(), message));
        }
        Ok(())
    }
}

fn count(node: &Node) -> usize {
    1 + node.items().iter().map(count).sum::<usize>()
        + node.entries().iter().map(|it| count(&it.value)).sum::<usize>()
}

fn depth(node: &Node) -> usize {
    let items = node.items().iter().map(depth);
    let entries = node.entries().iter().map(|it| depth(&it.value));
    match &node.content {
        Content::List(_) | Content::Map(_) => 1 + items.chain(entries).max().unwrap_or(0),
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => 0,
    }
}

/// Plain text as YAML 1.1 takes it.
fn resolve(text: &str) -> Content {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Content::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => {
            Content::Bool(true)
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => {
            Content::Bool(false)
        }
        _ => number(text).map_or_else(|| Content::Text(text.to_owned()), Content::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let starts = |it: char| it.is_ascii_digit() || matches!(it, '+' | '-' | '.');
    // No number is longer; a long text that starts with a digit is text.
    if text.len() > 64 || !text.starts_with(starts) {
        return None;
    }
    let bare = text.replace('_', "");
    let (negative, digits) = match bare.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, bare.strip_prefix('+').unwrap_or(&bare)),
    };
    let (radix, whole) = match digits.get(..2) {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some(start) if start.starts_with('0') => (8, &digits[1..]),
        Some(_) | None => (10, digits),
    };
    if !whole.is_empty() && whole.chars().all(|it| it.is_digit(radix)) {
        let size = u64::from_str_radix(whole, radix).ok()?;
        return if negative {
            0_i64.checked_sub_unsigned(size).map(Number::from)
        } else {
            Some(size.into())
        };
    }
    let real = digits.bytes().all(|it| it.is_ascii_digit() || b".eE+-".contains(&it))
        && digits.bytes().any(|it| it.is_ascii_digit());
    Number::from_f64(bare.parse::<f64>().ok().filter(|_| real)?)
}

/// The value as a YAML document: keys sorted, lists below their key.
pub(crate) fn write(value: &Value) -> String {
    let mut text = String::new();
    block(&mut text, value, 0);
    text
}

fn block(out: &mut String, value: &Value, indent: usize) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map.iter().collect::<BTreeMap<_, _>>() {
                let _ = write!(out, "{pad}{}:", text(key));
                match value {
                    Value::Object(map) if !map.is_empty() => {
                        out.push('\n');
                        block(out, value, indent + 2);
                    }
                    Value::Array(items) if !items.is_empty() => {
                        out.push('\n');
                        block(out, value, indent);
                    }
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_)
                    | Value::Object(_) => {
                        let _ = writeln!(out, " {}", scalar(value));
                    }
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(&mut inner, item, indent + 2);
                let _ = write!(out, "{pad}- {}", inner.get(indent + 2..).unwrap_or_default());
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            let _ = writeln!(out, "{pad}{}", scalar(value));
        }
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => it.to_string(),
        Value::String(it) => text(it),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// Bare where no reader could take it for anything but text, else in double quotes.
fn text(text: &str) -> String {
    let harmless = |it: char| it.is_ascii_alphanumeric() || "+/=._:-".contains(it);
    let word = matches!(resolve(text), Content::Text(_)) && number(text).is_none();
    if word
        && text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text.chars().all(harmless)
        && !text.ends_with(':')
    {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for char in text.chars() {
        let _ = match char {
            '"' | '\\' => write!(quoted, "\\{char}"),
            '\n' => write!(quoted, "\\n"),
            '\t' => write!(quoted, "\\t"),
            ' '..='~' => write!(quoted, "{char}"),
            // Line breaks that only YAML 1.1 knows are among these.
            _ if u32::from(char) <= 0xffff => write!(quoted, "\\u{:04x}", u32::from(char)),
            _ => write!(quoted, "\\U{:08x}", u32::from(char)),
        };
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        read(text).unwrap()[0].value()
    }

    #[test]
    fn plain_text_means_what_the_node_takes_it_for() {
        for (text, expected) in [
            ("yes", Value::Bool(true)),
            ("off", Value::Bool(false)),
            ("~", Value::Null),
            ("012", 10.into()),
            ("0x1F", 31.into()),
            ("-5", (-5).into()),
            ("1_000", 1000.into()),
            ("1.5", 1.5.into()),
            ("10%", "10%".into()),
            ("100Mi", "100Mi".into()),
            ("2026-08-01", "2026-08-01".into()),
            ("10.0.0.1", "10.0.0.1".into()),
            ("'yes'", "yes".into()),
            ("!!str 5", "5".into()),
            (".inf", ".inf".into()),
            ("1e", "1e".into()),
        ] {
            assert_eq!(value(&format!("a: {text}"))["a"], expected, "{text}");
        }
    }

    #[test]
    fn what_would_never_end_is_refused() {
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                    c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
                    e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n";
        assert!(read(bomb).unwrap_err().message.contains("repeat"));
        assert!(read(&"[".repeat(500)).is_err());
        assert!(read("a: 1\na: 2\n").unwrap_err().message.contains("twice"));
        assert_eq!(value("x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\n")["y"]["a"], 1);
    }

    #[test]
    fn what_we_write_is_read_again() {
        for text in ["yes", "012", "a: b", "#x", "", "1e5", "a:", "\u{2028}\u{1f600}\u{7f}\r", "-"]
        {
            let tree = serde_json::json!({"k": text, text: [[1, [text]], {"a": {}, "b": []}, 2.5]});
            assert_eq!(value(&write(&tree)), tree, "{}", write(&tree));
        }
    }
}
