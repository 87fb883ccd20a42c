//! What does this text say, and where does it say it?
//!
//! `text → documents`, each a tree of nodes with their places
//!
//! We build the tree from the parser's events ourselves, because serde's path through YAML stops at
//! the first mistake and forgets where an unknown field stood. An alias is an edge to the node it
//! names, not a copy: a bomb costs nothing to hold, and is refused by its weight before anyone
//! walks it.

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};

use crate::problem::{Finding, Place, quoted};

use super::parts::{Shift, parts};
use super::scalar;

/// Deeper than any Kubernetes object we read (a class has 8 levels, managed fields some 20), and
/// shallow enough to be walked by recursion.
const DEPTH_MAX: usize = 64;
/// A file without aliases weighs at most two units for each of its bytes. What weighs more than
/// the largest file may is an alias that repeats itself.
const WEIGHT_MAX: usize = 2 * super::FILE_BYTES_MAX;
/// Entries that `<<` copies in one document, all together.
const MERGED_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(usize);

/// One document. Nodes refer to each other by id; what is read comes before what holds it, so there are no
/// cycles.
#[derive(Debug, PartialEq)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    pub(crate) root: NodeId,
    /// How many of the first items of a list were handed out by themselves, and are not in here.
    pub(crate) handed_out: usize,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) content: Content,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    Null,
    /// The text tells `yes` from `true`.
    Bool(bool, String),
    /// The text tells `012` from `10`.
    Number(scalar::Number, String),
    Text(String),
    List(Vec<NodeId>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) value: NodeId,
}

/// A document, or as much of it as could be read, and what is wrong with its YAML.
#[derive(Debug)]
pub(crate) struct Document {
    /// Absent where the document breaks off.
    pub(crate) tree: Option<Tree>,
    pub(crate) defects: Vec<(Place, Finding)>,
}

/// What a text is read into, one after the other.
pub(crate) enum Piece {
    /// An item of a list that is not read to its end yet: a list of a hundred thousand is never held as a whole.
    Item {
        tree: Tree,
        index: usize,
    },
    Document(Document),
}

impl Tree {
    /// A place, and nothing that was written there.
    pub(crate) fn bare(place: Place) -> Self {
        let node = Node { place, content: Content::Null };
        Self { nodes: vec![node], root: NodeId(0), handed_out: 0 }
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    pub(crate) fn entry(&self, map: NodeId, key: &str) -> Option<&Entry> {
        match &self.node(map).content {
            Content::Map(entries) => entries.iter().find(|it| it.key == key),
            Content::Null
            | Content::Bool(..)
            | Content::Number(..)
            | Content::Text(_)
            | Content::List(_) => None,
        }
    }

    pub(crate) fn text(&self, map: NodeId, key: &str) -> Option<&str> {
        match &self.node(self.entry(map, key)?.value).content {
            Content::Text(text) => Some(text),
            Content::Null
            | Content::Bool(..)
            | Content::Number(..)
            | Content::List(_)
            | Content::Map(_) => None,
        }
    }

    /// The place of `field`, or of the nearest thing around it that was written.
    pub(crate) fn locate(&self, root: NodeId, field: &str) -> Place {
        let (mut node, mut place) = (root, &self.node(root).place);
        for segment in segments(field) {
            let next = match &self.node(node).content {
                Content::Map(entries) => {
                    entries.iter().find(|it| it.key == segment).map(|it| (it.value, &it.place))
                }
                Content::List(items) => segment
                    .parse::<usize>()
                    .ok()
                    .and_then(|it| items.get(it))
                    .map(|it| (*it, &self.node(*it).place)),
                Content::Null | Content::Bool(..) | Content::Number(..) | Content::Text(_) => None,
            };
            match next {
                Some(next) => (node, place) = next,
                None => break,
            }
        }
        place.clone()
    }
}

/// `a.b[0].c[x.y/z]` as `a`, `b`, `0`, `c`, `x.y/z`.
fn segments(field: &str) -> Vec<&str> {
    let mut rest = field;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (segment, after) = if let Some(inside) = rest.strip_prefix('[') {
            inside.split_once(']').unwrap_or((inside, ""))
        } else {
            rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()))
        };
        found.push(segment);
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    found
}

/// Every document of the text. Reading goes on after a broken one.
pub(crate) fn documents(text: &str) -> Vec<Document> {
    let mut all = Vec::new();
    pieces(text, false, &mut |piece| {
        match piece {
            Piece::Document(document) => all.push(document),
            Piece::Item { .. } => {}
        }
        true
    });
    all
}

/// The same, each as soon as it is read; items of lists by themselves, if asked for. `take` says whether to go on.
pub(crate) fn pieces(text: &str, items_apart: bool, take: &mut dyn FnMut(Piece) -> bool) {
    let mut shift = Shift::default();
    for part in parts(text) {
        let go_on = yaml_pieces(part, items_apart, &mut |mut piece| {
            let tree = match &mut piece {
                Piece::Item { tree, .. } => Some(tree),
                Piece::Document(Document { tree, defects }) => {
                    for (place, _) in defects {
                        shift.place(place);
                    }
                    tree.as_mut()
                }
            };
            if let Some(tree) = tree {
                tree.shift(&shift);
                tree.complete_items(tree.root);
            }
            take(piece)
        });
        if !go_on {
            return;
        }
        shift.pass(part);
    }
}

impl Tree {
    fn shift(&mut self, shift: &Shift) {
        if shift.none() {
            return;
        }
        for node in &mut self.nodes {
            shift.place(&mut node.place);
            if let Content::Map(entries) = &mut node.content {
                for entry in entries {
                    shift.place(&mut entry.place);
                }
            }
        }
    }

    /// Items of a list that says of what it is need not say it themselves: the API server's own answers
    /// do not.
    fn complete_items(&mut self, list: NodeId) {
        let Some(kind) = self.text(list, "kind").and_then(|it| it.strip_suffix("List")) else {
            return;
        };
        let kind = kind.to_owned();
        let version = self.text(list, "apiVersion").map(ToOwned::to_owned);
        let Some(items) = self.entry(list, "items").map(|it| it.value) else { return };
        let Content::List(items) = &self.node(items).content else { return };
        for item in items.clone() {
            if kind.is_empty() {
                self.complete_items(item);
            } else if let Some(version) = &version
                && self.entry(item, "kind").is_none()
            {
                self.add_text(item, "kind", &kind);
                self.add_text(item, "apiVersion", version);
            }
        }
    }

    /// An entry that nobody wrote stands where its map does.
    fn add_text(&mut self, map: NodeId, key: &str, value: &str) {
        if self.entry(map, key).is_some() {
            return;
        }
        let id = NodeId(self.nodes.len());
        let place = self.node(map).place.clone();
        let Content::Map(entries) = &mut self.nodes[map.0].content else { return };
        entries.push(Entry { key: key.to_owned(), place: place.clone(), value: id });
        self.nodes.push(Node { place, content: Content::Text(value.to_owned()) });
    }
}

/// Whether to go on.
fn yaml_pieces(text: &str, items_apart: bool, take: &mut dyn FnMut(Piece) -> bool) -> bool {
    let options = serde_saphyr::granit_parser::options! { emit_comments: false };
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut broken_documents = 0;
    // A long file may weigh more than a short one, and still not more than its length allows.
    let weight_max = WEIGHT_MAX.max(text.len().saturating_mul(2));
    let fresh = || Builder { weight_max, items_apart, ..Builder::default() };
    let mut builder = fresh();
    loop {
        let stop = match parser.next_event() {
            None | Some(Ok((Event::StreamEnd, _))) => return true,
            Some(Ok((Event::DocumentEnd, _))) => {
                let document = std::mem::replace(&mut builder, fresh()).finish();
                if !take(Piece::Document(document)) {
                    return false;
                }
                continue;
            }
            Some(Ok((event, span))) => builder.take(event, span).err(),
            Some(Err(error)) => Some(syntax(text, &error)),
        };
        if let Some(tree) = builder.ready.take() {
            let index = builder.handed_out.saturating_sub(1);
            if !take(Piece::Item { tree, index }) {
                return false;
            }
        }
        if let Some(defect) = stop {
            let mut broken = std::mem::replace(&mut builder, fresh());
            broken.defects.push(defect);
            if !take(Piece::Document(Document { tree: None, defects: broken.defects })) {
                return false;
            }
            broken_documents += 1;
            if broken_documents > super::PROBLEMS_MAX
                || !matches!(parser.proceed_next_document(), Ok(true))
            {
                return true;
            }
        }
    }
}

fn syntax(text: &str, error: &ScanError) -> (Place, Finding) {
    let marker = error.marker();
    let place = Place {
        line: marker.line(),
        column: marker.col() + 1,
        span: marker.byte_offset().map(|it| it..it),
    };
    let before = marker.byte_offset().and_then(|it| text.get(..it)).unwrap_or_default();
    let line = &text[before.rfind('\n').map_or(0, |it| it + 1)..];
    let indentation = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    if *error.kind() == ErrorKind::RecursionLimitExceeded {
        return (place, too_deep(""));
    }
    let finding = Finding::error("", format!("cannot be read as YAML: {}", error.info()));
    let line = line.split('\n').next().unwrap_or_default();
    let finding = if indentation.contains('\t') {
        finding.hint("indent with spaces; YAML does not take tabs")
    } else if line.contains("{{") {
        finding.hint("this is a template: give what `helm template` makes of it")
    } else {
        finding
    };
    (place, finding)
}

fn place(span: Span) -> Place {
    Place { line: span.start.line(), column: span.start.col() + 1, span: span.byte_range() }
}

#[derive(Debug, Default)]
struct Builder {
    weight_max: usize,
    nodes: Vec<Node>,
    /// Of each node, with all that aliases repeat below it.
    sizes: Vec<Size>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, NodeId>,
    merged: usize,
    root: Option<NodeId>,
    defects: Vec<(Place, Finding)>,
    /// Whether items of a list are handed out as soon as they are read. Not any more once something has a name by which
    /// others could refer to it.
    items_apart: bool,
    handed_out: usize,
    /// Where the nodes of the item begin that is being read.
    item_from: Option<usize>,
    ready: Option<Tree>,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    weight: usize,
    depth: usize,
}

/// A list or map whose end has not come yet.
#[derive(Debug)]
struct Open {
    place: Place,
    anchor: usize,
    inside: Inside,
}

#[derive(Debug)]
enum Inside {
    List(Vec<NodeId>),
    Map { entries: Vec<Entry>, known: BTreeMap<String, usize>, merges: Vec<NodeId>, key: Key },
}

#[derive(Debug)]
enum Key {
    /// The next node is a key.
    Awaited,
    /// The next node is this key's value.
    Read(String, Place),
    /// The next node is merged into the map.
    Merge,
    /// The key was no good, or came twice: its value is dropped.
    Refused,
}

type Stop = (Place, Finding);

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), place(span))
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), "seq", &place(span));
                self.push(place(span), anchor, Inside::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_tag(tag.as_deref(), "map", &place(span));
                let inside = Inside::Map {
                    entries: Vec::new(),
                    known: BTreeMap::new(),
                    merges: Vec::new(),
                    key: Key::Awaited,
                };
                self.push(place(span), anchor, inside)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => {
                if let Some(id) = self.anchors.get(&anchor) {
                    self.put(*id);
                    return Ok(());
                }
                let place = place(span);
                let field = self.field();
                self.defect(place.clone(), Finding::error(field, "the alias names what it is in"));
                let id = self.add(place, Content::Null, Size { weight: 1, depth: 0 })?;
                self.put(id);
                Ok(())
            }
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

    fn finish(self) -> Document {
        let handed_out = self.handed_out;
        let tree = self.root.map(|root| Tree { nodes: self.nodes, root, handed_out });
        Document { tree, defects: self.defects }
    }

    fn push(&mut self, place: Place, anchor: usize, inside: Inside) -> Result<(), Stop> {
        if self.open.len() >= DEPTH_MAX {
            return Err((place, too_deep(&self.field())));
        }
        if self.in_items() {
            self.item_from = Some(self.nodes.len());
        }
        self.open.push(Open { place, anchor, inside });
        Ok(())
    }

    /// Whether what comes next is an item of a list, right below the document.
    fn in_items(&self) -> bool {
        let [top, list] = self.open.as_slice() else { return false };
        let named =
            matches!(&top.inside, Inside::Map { key: Key::Read(key, _), .. } if key == "items");
        named && matches!(list.inside, Inside::List(_))
    }

    /// Hands out the item that was just read, if it says what it is or its list has said so before.
    fn hand_out(&mut self, item: NodeId) -> bool {
        if !self.items_apart || !self.in_items() {
            return false;
        }
        let Some(from) = self.item_from.take() else { return false };
        let Content::Map(entries) = &self.nodes[item.0].content else { return false };
        let says = |key: &str| entries.iter().any(|it| it.key == key);
        let (own, of_list) = (says("kind") && says("apiVersion"), self.list_says());
        if !own && of_list.is_none() {
            // Its list will say it in the end.
            self.items_apart = false;
            return false;
        }
        let mut nodes = self.nodes.split_off(from);
        self.sizes.truncate(from);
        for node in &mut nodes {
            match &mut node.content {
                Content::List(items) => items.iter_mut().for_each(|it| it.0 -= from),
                Content::Map(entries) => entries.iter_mut().for_each(|it| it.value.0 -= from),
                Content::Null | Content::Bool(..) | Content::Number(..) | Content::Text(_) => {}
            }
        }
        let mut tree = Tree { nodes, root: NodeId(item.0 - from), handed_out: 0 };
        if let Some((kind, version)) = of_list.filter(|_| !own) {
            tree.add_text(tree.root, "kind", &kind);
            tree.add_text(tree.root, "apiVersion", &version);
        }
        self.handed_out += 1;
        self.ready = Some(tree);
        true
    }

    /// Of which kind and version the items of the list are, where it says so before them.
    fn list_says(&self) -> Option<(String, String)> {
        let Inside::Map { entries, .. } = &self.open.first()?.inside else { return None };
        let text = |key: &str| {
            let entry = entries.iter().find(|it| it.key == key)?;
            match &self.nodes.get(entry.value.0)?.content {
                Content::Text(text) => Some(text.clone()),
                Content::Null
                | Content::Bool(..)
                | Content::Number(..)
                | Content::List(_)
                | Content::Map(_) => None,
            }
        };
        let kind = text("kind")?.strip_suffix("List").filter(|it| !it.is_empty())?.to_owned();
        Some((kind, text("apiVersion")?))
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        place: Place,
    ) -> Result<(), Stop> {
        if let Some(Open { inside: Inside::Map { key: key @ Key::Awaited, .. }, .. }) =
            self.open.last_mut()
            && tag.is_none()
            && anchor == 0
        {
            if style == ScalarStyle::Plain && text == "<<" {
                *key = Key::Merge;
                return Ok(());
            }
            match scalar::key(text, style) {
                Ok(()) => {
                    self.key(text, place);
                    return Ok(());
                }
                Err(finding) => {
                    *key = Key::Refused;
                    let field = self.field();
                    self.defect(place, Finding { field, ..finding });
                    return Ok(());
                }
            }
        }
        let content = scalar::resolve(text, style, tag).unwrap_or_else(|message| {
            let field = self.field();
            self.defect(place.clone(), Finding::error(field, message));
            Content::Null
        });
        let id = self.add(place, content, Size { weight: 1 + text.len(), depth: 0 })?;
        self.remember(anchor, id);
        self.put(id);
        Ok(())
    }

    fn key(&mut self, text: &str, place: Place) {
        let Some(Open { inside: Inside::Map { known, key, .. }, .. }) = self.open.last_mut() else {
            return;
        };
        if let Some(line) = known.get(text).copied() {
            *key = Key::Refused;
            let field = super::path::join(&self.field(), text);
            let message = format!("is written twice, first on line {line}");
            let finding = Finding::error(field, message).hint("keep one of the two");
            self.defect(place, finding);
            return;
        }
        known.insert(text.to_owned(), place.line);
        *key = Key::Read(text.to_owned(), place);
    }

    fn close(&mut self) -> Result<(), Stop> {
        let Some(Open { place, anchor, inside }) = self.open.pop() else { return Ok(()) };
        let content = match inside {
            Inside::List(items) => Content::List(items),
            Inside::Map { mut entries, known, merges, .. } => {
                self.merge(&mut entries, known, &merges, &place)?;
                Content::Map(entries)
            }
        };
        let mut size = Size { weight: 1, depth: 1 };
        let mut grow = |child: &NodeId, key: usize| {
            let Size { weight, depth } = self.sizes[child.0];
            size.weight = size.weight.saturating_add(weight).saturating_add(key);
            size.depth = size.depth.max(depth.saturating_add(1));
        };
        match &content {
            Content::List(items) => items.iter().for_each(|it| grow(it, 0)),
            Content::Map(entries) => entries.iter().for_each(|it| grow(&it.value, it.key.len())),
            Content::Null | Content::Bool(..) | Content::Number(..) | Content::Text(_) => {}
        }
        let id = self.add(place, content, size)?;
        self.remember(anchor, id);
        if !self.hand_out(id) {
            self.put(id);
        }
        Ok(())
    }

    /// `<<: *base`: what the map does not say itself comes from the base, the first base first.
    fn merge(
        &mut self,
        entries: &mut Vec<Entry>,
        mut known: BTreeMap<String, usize>,
        merges: &[NodeId],
        place: &Place,
    ) -> Result<(), Stop> {
        for merge in merges {
            let bases = match &self.nodes[merge.0].content {
                Content::List(items) => items.clone(),
                Content::Null
                | Content::Bool(..)
                | Content::Number(..)
                | Content::Text(_)
                | Content::Map(_) => vec![*merge],
            };
            for base in bases {
                let Content::Map(more) = &self.nodes[base.0].content else {
                    let finding =
                        Finding::error(self.field(), "`<<` takes a map or a list of maps");
                    self.defect(self.nodes[base.0].place.clone(), finding);
                    continue;
                };
                self.merged = self.merged.saturating_add(more.len());
                if self.merged > MERGED_MAX {
                    return Err(Self::too_heavy(place.clone()));
                }
                for entry in more {
                    if known.insert(entry.key.clone(), entry.place.line).is_none() {
                        entries.push(entry.clone());
                    }
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, place: Place, content: Content, size: Size) -> Result<NodeId, Stop> {
        if size.weight > self.weight_max {
            return Err(Self::too_heavy(place));
        }
        if size.depth > DEPTH_MAX {
            return Err((place, too_deep(&self.field())));
        }
        self.nodes.push(Node { place, content });
        self.sizes.push(size);
        Ok(NodeId(self.nodes.len() - 1))
    }

    fn remember(&mut self, anchor: usize, id: NodeId) {
        if anchor != 0 {
            self.items_apart = false;
            self.anchors.insert(anchor, id);
        }
    }

    /// Hands a finished node to whatever is open around it.
    fn put(&mut self, id: NodeId) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(id);
            return;
        };
        match &mut open.inside {
            Inside::List(items) => items.push(id),
            Inside::Map { entries, merges, key, .. } => {
                match std::mem::replace(key, Key::Awaited) {
                    Key::Read(key, place) => entries.push(Entry { key, place, value: id }),
                    Key::Merge => merges.push(id),
                    Key::Refused => {}
                    Key::Awaited => {
                        // Anchors and tags on keys are rare enough to come through here.
                        let node = &self.nodes[id.0];
                        if let Content::Text(text) = &node.content {
                            let (text, place) = (text.clone(), node.place.clone());
                            self.key(&text, place);
                            return;
                        }
                        *key = Key::Refused;
                        let place = node.place.clone();
                        let finding = Finding::error(self.field(), "a key must be a string")
                            .hint("if this is a template, give what `helm template` makes of it");
                        self.defect(place, finding);
                    }
                }
            }
        }
    }

    fn defect(&mut self, place: Place, finding: Finding) {
        if self.defects.len() < super::PROBLEMS_MAX {
            self.defects.push((place, finding));
        }
    }

    /// The path to what is being read.
    fn field(&self) -> String {
        let mut field = String::new();
        for open in &self.open {
            match &open.inside {
                Inside::List(items) => field = format!("{field}[{}]", items.len()),
                Inside::Map { key: Key::Read(key, _), .. } => {
                    field = super::path::join(&field, key);
                }
                Inside::Map { .. } => {}
            }
        }
        field
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, expected: &str, place: &Place) {
        if let Some(tag) = tag
            && tag.core_suffix() != Some(expected)
        {
            let message = format!("the tag {} is not known here", quoted(&tag.original()));
            self.defect(place.clone(), Finding::error(self.field(), message));
        }
    }

    fn too_heavy(place: Place) -> Stop {
        let message = "its aliases repeat more than any file may hold";
        (place, Finding::error("", message).hint("write out what the aliases stand for"))
    }
}

fn too_deep(field: &str) -> Finding {
    // The path to the 65th level is of no use to anyone.
    const CHARS_MAX: usize = 80;
    let mut shown: String = field.chars().take(CHARS_MAX).collect();
    if shown.len() < field.len() {
        shown.push('…');
    }
    Finding::error(shown, format!("is nested deeper than {DEPTH_MAX} levels"))
}
