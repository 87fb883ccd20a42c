//! Does this tree say an object of this kind?
//!
//! `tree × type → object, or everything that is wrong with it`
//!
//! The wire structs derive `Deserialize`; serde tells us each struct's fields, so the tree is
//! checked against the very types it becomes, and there is no second schema to keep in step.
//! serde stops at the first wrong value. We note it, leave it out and read again, until nothing is
//! wrong any more or there is nothing left to leave out.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};

use crate::problem::{Finding, Place, nearest, quoted};

use super::{
    path::Path,
    scalar::Number,
    tree::{Content, Entry, NodeId, Tree},
};

/// Wrong values per object. Each costs one more reading; who has more will read again anyway.
const WRONG_VALUES_MAX: usize = 20;

/// What is said of a field that the type does not have.
pub(crate) const UNKNOWN_FIELD: &str = "unknown field";
/// What k8s-openapi calls an amount.
const QUANTITY: &str = "Quantity";

/// The object, if nothing is wrong with it, and what is wrong or odd, in the order of the text.
pub(crate) fn decode<T: DeserializeOwned>(tree: &Tree, root: NodeId) -> (Option<T>, Vec<Found>) {
    decode_without(&[], tree, root)
}

/// The same, as if the fields of these names at the top had not been written.
pub(crate) fn decode_without<T: DeserializeOwned>(
    unread: &[&str],
    tree: &Tree,
    root: NodeId,
) -> (Option<T>, Vec<Found>) {
    let unread: BTreeSet<NodeId> =
        unread.iter().filter_map(|it| tree.entry(root, it)).map(|it| it.value).collect();
    let unread_count = unread.len();
    let walk = Walk { tree, left_out: RefCell::new(unread), found: RefCell::default() };
    let mut object = None;
    for _ in 0..WRONG_VALUES_MAX {
        let at = At { walk: &walk, node: root, path: &Path::Root, region: Region::Top };
        match T::deserialize(at).map_err(|it| it.at(root, &Path::Root)) {
            Ok(it) => {
                object = Some(it);
                break;
            }
            Err(wrong) => {
                let Some((node, field)) = wrong.at else { break };
                let place = walk.tree.node(node).place.clone();
                if !wrong.consequence {
                    walk.note(
                        place,
                        Finding { hint: wrong.hint, ..Finding::error(field, wrong.message) },
                    );
                }
                // What is left out already cannot be wrong again; nor is there more than the root.
                if node == root || !walk.left_out.borrow_mut().insert(node) {
                    break;
                }
            }
        }
    }
    let complete = walk.left_out.borrow().len() == unread_count;
    (object.filter(|_| complete), walk.found.into_inner().into_values().collect())
}

struct Walk<'t> {
    tree: &'t Tree,
    left_out: RefCell<BTreeSet<NodeId>>,
    /// By place and field: each reading finds the same unknown fields again.
    found: RefCell<BTreeMap<(usize, usize, String), Found>>,
}

type Found = (Place, Finding);

impl Walk<'_> {
    fn note(&self, place: Place, finding: Finding) {
        let key = (place.line, place.column, finding.field.clone());
        self.found.borrow_mut().entry(key).or_insert((place, finding));
    }
}

/// How strictly we read: people write the spec, machines write the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Region {
    Top,
    Metadata,
    Spec,
    Status,
}

#[derive(Clone, Copy)]
struct At<'t, 'p> {
    walk: &'t Walk<'t>,
    node: NodeId,
    path: &'p Path<'p>,
    region: Region,
}

#[derive(Debug)]
pub(crate) struct Wrong {
    at: Option<(NodeId, String)>,
    message: String,
    hint: Option<String>,
    /// It only follows from what was left out.
    consequence: bool,
    missing: Option<&'static str>,
}

impl Wrong {
    fn new(message: String) -> Self {
        Self { at: None, message, hint: None, consequence: false, missing: None }
    }

    fn at(self, node: NodeId, path: &Path<'_>) -> Self {
        Self { at: self.at.or_else(|| Some((node, path.to_string()))), ..self }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        // serde calls it a unit value.
        if unexpected == de::Unexpected::Unit {
            return Self::new(format!("expected {expected}, found null"));
        }
        Self::new(format!("expected {expected}, found {unexpected}"))
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("expected {expected}, found {unexpected}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let hint = match nearest(variant, expected) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write one of {}", expected.join(", ")),
        };
        Self { hint: Some(hint), ..Self::new(format!("{} is not known here", quoted(variant))) }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { missing: Some(field), ..Self::new(format!("`{field}` is missing")) }
    }
}

impl<'t> At<'t, '_> {
    fn content(&self) -> &'t Content {
        &self.walk.tree.node(self.node).content
    }

    /// The value is of the wrong type; a number or boolean where a string belongs lacks quotes.
    fn mismatch(&self, expected: &str) -> Wrong {
        let (found, hint) = match self.content() {
            Content::Null => ("nothing".to_owned(), None),
            Content::Bool(_, text) => {
                (format!("the boolean {}", quoted(text)), Some(self.quote(text)))
            }
            Content::Number(_, text) => {
                (format!("the number {}", quoted(text)), Some(self.quote(text)))
            }
            Content::Text(text) => (format!("the string {}", quoted(text)), None),
            Content::List(_) => ("a list".to_owned(), None),
            Content::Map(_) => ("a map".to_owned(), None),
        };
        let hint = match expected {
            "a string" => hint,
            "a list" => Some("write each item on its own line after `- `".to_owned()),
            "a whole number" => match self.content() {
                Content::Text(text) if text.parse::<i64>().is_ok() => {
                    Some(format!("write it without quotes: {text}"))
                }
                Content::Null
                | Content::Bool(..)
                | Content::Number(..)
                | Content::Text(_)
                | Content::List(_)
                | Content::Map(_) => None,
            },
            _ => None,
        };
        Wrong { hint, ..Wrong::new(format!("expected {expected}, found {found}")) }
            .at(self.node, self.path)
    }

    fn quote(&self, text: &str) -> String {
        let digits = text.bytes().all(|it| it.is_ascii_digit());
        // A length of time without its unit is not mended by quotes.
        if matches!(self.path, Path::Field(_, "amiMinimumAge" | "minimumAge")) {
            let example = if digits { text } else { "7" };
            return format!("write the length with its unit, for example `{example}d`");
        }
        let mut hint = format!("quote it: \"{text}\"");
        if digits && text.len() > 1 && text.starts_with('0') {
            hint.push_str("; without quotes YAML drops the leading zero or reads it as octal");
        }
        hint
    }

    fn child<'p>(&self, node: NodeId, path: &'p Path<'p>, region: Region) -> At<'t, 'p> {
        At { walk: self.walk, node, path, region }
    }

    fn note_unknown(&self, entry: &Entry, fields: &'static [&'static str]) {
        // Guessing what was meant is not free; nobody reads the hundredth guess.
        if self.walk.found.borrow().len() >= super::PROBLEMS_MAX {
            return;
        }
        let path = Path::Field(self.path, &entry.key);
        let hint = match nearest(&entry.key, fields) {
            _ if RETIRED.contains(&entry.key.to_ascii_lowercase().as_str()) => {
                "AWS has retired it, and every launch with it fails; take an instance type that has a GPU \
                 or an accelerator (docs/decisions/0013)"
                    .to_owned()
            }
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the fields here are {}", fields.join(", ")),
        };
        let finding = Finding::error(path.to_string(), UNKNOWN_FIELD).hint(hint);
        self.walk.note(entry.place.clone(), finding);
    }
}

/// Elastic GPUs and elastic inference, in lower case.
const RETIRED: [&str; 2] = ["elasticgpuspecifications", "elasticinferenceaccelerators"];

/// `2.0` and `1e2` are whole numbers: `kubectl` sends 2 and 100.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked right before")]
fn whole(value: f64) -> Option<i64> {
    /// Up to here every whole number is a double of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

macro_rules! whole_numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            match self.content() {
                Content::Number(Number::Natural(value), _) => visitor.visit_u64(*value),
                Content::Number(Number::Negative(value), _) => visitor.visit_i64(*value),
                Content::Number(Number::Real(value), _) => match whole(*value) {
                    Some(value) => visitor.visit_i64(value),
                    None => Err(self.mismatch("a whole number")),
                },
                Content::Null
                | Content::Bool(..)
                | Content::Text(_)
                | Content::List(_)
                | Content::Map(_) => Err(self.mismatch("a whole number")),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for At<'_, '_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.content() {
            Content::Null => visitor.visit_unit(),
            Content::Bool(value, _) => visitor.visit_bool(*value),
            Content::Number(Number::Natural(value), _) => visitor.visit_u64(*value),
            Content::Number(Number::Negative(value), _) => visitor.visit_i64(*value),
            Content::Number(Number::Real(value), _) if value.is_finite() => match whole(*value) {
                Some(value) => visitor.visit_i64(value),
                None => visitor.visit_f64(*value),
            },
            Content::Number(Number::Real(_), _) => Err(self.mismatch("a finite number")),
            Content::Text(text) => visitor.visit_str(text),
            Content::List(items) => visitor.visit_seq(Items { at: self, nodes: items, next: 0 }),
            Content::Map(entries) => visitor.visit_map(Entries::open(self, entries)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.content() {
            Content::Bool(value, _) => visitor.visit_bool(*value),
            Content::Null
            | Content::Number(..)
            | Content::Text(_)
            | Content::List(_)
            | Content::Map(_) => Err(self.mismatch("true or false")),
        }
    }

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.content() {
            Content::Text(text) => visitor.visit_str(text),
            Content::Null
            | Content::Bool(..)
            | Content::Number(..)
            | Content::List(_)
            | Content::Map(_) => Err(self.mismatch("a string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if matches!(self.content(), Content::Null) {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        // `cpu: 2` is an amount for the API server, and the types of k8s-openapi hold a text.
        if let (QUANTITY, Content::Number(_, text)) = (name, self.content()) {
            return visitor.visit_newtype_struct(text.as_str().into_deserializer());
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.content() {
            Content::List(items) => visitor.visit_seq(Items { at: self, nodes: items, next: 0 }),
            Content::Null
            | Content::Bool(..)
            | Content::Number(..)
            | Content::Text(_)
            | Content::Map(_) => Err(self.mismatch("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.content() {
            Content::Map(entries) => visitor.visit_map(Entries::open(self, entries)),
            Content::Null
            | Content::Bool(..)
            | Content::Number(..)
            | Content::Text(_)
            | Content::List(_) => Err(self.mismatch("a map")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let Content::Map(entries) = self.content() else { return Err(self.mismatch("a map")) };
        visitor.visit_map(Entries::of_struct(self, entries, fields)).map_err(|mut wrong| {
            if let (None, Some(field)) = (&wrong.at, wrong.missing) {
                let left_out = self.walk.left_out.borrow();
                wrong.consequence =
                    entries.iter().any(|it| it.key == field && left_out.contains(&it.value));
            }
            wrong.at(self.node, self.path)
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.content() {
            Content::Text(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Content::Null
            | Content::Bool(..)
            | Content::Number(..)
            | Content::List(_)
            | Content::Map(_) => Err(self.mismatch("a string")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

struct Items<'t, 'p> {
    at: At<'t, 'p>,
    nodes: &'t [NodeId],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        while let Some(item) = self.nodes.get(self.next) {
            let path = Path::Item(self.at.path, self.next);
            self.next += 1;
            if !self.at.walk.left_out.borrow().contains(item) {
                let child = self.at.child(*item, &path, self.at.region);
                return seed.deserialize(child).map(Some).map_err(|it| it.at(*item, &path));
            }
        }
        Ok(None)
    }
}

struct Entries<'t, 'p> {
    at: At<'t, 'p>,
    left: std::slice::Iter<'t, Entry>,
    /// A struct has fields, any other map has none of its own.
    fields: Option<&'static [&'static str]>,
    value: Option<&'t Entry>,
}

impl<'t, 'p> Entries<'t, 'p> {
    fn open(at: At<'t, 'p>, entries: &'t [Entry]) -> Self {
        Self { at, left: entries.iter(), fields: None, value: None }
    }

    fn of_struct(at: At<'t, 'p>, entries: &'t [Entry], fields: &'static [&'static str]) -> Self {
        Self { at, left: entries.iter(), fields: Some(fields), value: None }
    }

    /// Whether a struct should hear of this entry.
    fn concerns(&self, entry: &Entry, fields: &'static [&'static str]) -> bool {
        let region = self.at.region;
        if !fields.contains(&entry.key.as_str()) {
            if region != Region::Status {
                self.at.note_unknown(entry, fields);
            }
            return false;
        }
        // For the API server a field without a value is no field. People may have meant more.
        if matches!(self.at.walk.tree.node(entry.value).content, Content::Null) {
            if region == Region::Spec {
                let path = Path::Field(self.at.path, &entry.key);
                let finding = Finding::warning(path.to_string(), "is empty and counts as absent")
                    .hint("give it a value or remove it");
                self.at.walk.note(entry.place.clone(), finding);
            }
            return false;
        }
        true
    }

    /// Whether a map should have this entry. The API server drops those without a value.
    fn holds(&self, entry: &Entry) -> bool {
        let empty = matches!(self.at.walk.tree.node(entry.value).content, Content::Null);
        if empty && self.at.region == Region::Spec {
            let path = Path::Field(self.at.path, &entry.key);
            let finding = Finding::warning(path.to_string(), "is empty and counts as absent")
                .hint("give it a value or remove it");
            self.at.walk.note(entry.place.clone(), finding);
            return false;
        }
        true
    }

    /// The beginning of a name stands for the name that the API server makes of it.
    fn key(&self, entry: &'t Entry) -> &'t str {
        let named =
            || self.at.walk.tree.text(self.at.node, "name").is_some_and(|it| !it.is_empty());
        let metadata = self.fields.is_some() && self.at.region == Region::Metadata;
        if metadata && entry.key == "generateName" && !named() { "name" } else { &entry.key }
    }

    fn region(&self, key: &str) -> Region {
        match (self.at.region, key) {
            (Region::Top, "metadata") => Region::Metadata,
            (Region::Top, "status") => Region::Status,
            (Region::Top, _) => Region::Spec,
            (region @ (Region::Metadata | Region::Spec | Region::Status), _) => region,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        while let Some(entry) = self.left.next() {
            let known = match self.fields {
                Some(fields) => self.concerns(entry, fields),
                None => self.holds(entry),
            };
            if known && !self.at.walk.left_out.borrow().contains(&entry.value) {
                self.value = Some(entry);
                return seed.deserialize(self.key(entry).into_deserializer()).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let Some(entry) = self.value.take() else {
            return Err(Wrong::new("a value was asked for before its key".to_owned()));
        };
        let path = Path::Field(self.at.path, &entry.key);
        let child = self.at.child(entry.value, &path, self.region(&entry.key));
        seed.deserialize(child).map_err(|it| it.at(entry.value, &path))
    }
}
