//! Which number stands for this text?
//!
//! `text ⇄ key`, `text ⇄ value`
//!
//! Labels are compared millions of times and read rarely, so each text is kept once and everything
//! else works on numbers. The numbers mean something only beside the vocabulary that gave them, and
//! they follow the order of asking: whatever people see is sorted by text, never by number.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::{Arc, PoisonError, RwLock},
};

use crate::label;

/// Every text met so far. Shared by reference between whoever decides together.
#[derive(Debug, Default)]
pub struct Vocabulary {
    keys: RwLock<Texts>,
    values: RwLock<Texts>,
}

/// The name of a label, by its present name: the old one and the new one are one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u32);

/// The value of a label, and the integer it spells, so that bounds need no vocabulary.
#[derive(Debug, Clone, Copy)]
pub struct Value {
    id: u32,
    spells_integer: bool,
    number: i64, // Zero unless `spells_integer`. Not an `Option`, which would be half as large again.
}

impl Vocabulary {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn key(&self, text: &str) -> Key {
        Key(intern(&self.keys, label::normalise(text)))
    }

    pub fn value(&self, text: &str) -> Value {
        let id = intern(&self.values, text);
        let number = integer(text);
        Value { id, spells_integer: number.is_some(), number: number.unwrap_or(0) }
    }

    /// The text of a key. One that another vocabulary gave reads as `?`, or as something else.
    pub fn key_text(&self, key: Key) -> Arc<str> {
        text(&self.keys, key.0)
    }

    /// The text of a value. One that another vocabulary gave reads as `?`, or as something else.
    pub fn value_text(&self, value: Value) -> Arc<str> {
        text(&self.values, value.id)
    }
}

impl Value {
    /// The integer it spells. Canonical decimals only: `05`, `+5` and `-0` spell none, or a range
    /// of integers would admit endlessly many texts and nobody could tell when it is used up.
    pub fn integer(self) -> Option<i64> {
        self.spells_integer.then_some(self.number)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.cmp(&other.id)
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    canonical.then(|| text.parse().ok()).flatten()
}

/// Both ways. Texts are never taken out, so an index stays true once it was handed out.
#[derive(Debug, Default)]
struct Texts {
    by_text: BTreeMap<Arc<str>, u32>,
    by_id: Vec<Arc<str>>,
}

// A panic elsewhere cannot leave a text half interned in a way that matters: the vector grows before
// the map, so at worst a number stands for nothing. A poisoned lock is therefore as good as any.
fn intern(texts: &RwLock<Texts>, text: &str) -> u32 {
    let known = texts.read().unwrap_or_else(PoisonError::into_inner).by_text.get(text).copied();
    if let Some(id) = known {
        return id;
    }
    let mut texts = texts.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(id) = texts.by_text.get(text) {
        return *id; // Someone was faster, between the two locks.
    }
    let id = u32::try_from(texts.by_id.len()).expect("memory ends before four billion texts");
    let shared: Arc<str> = text.into();
    texts.by_id.push(Arc::clone(&shared));
    texts.by_text.insert(shared, id);
    id
}

fn text(texts: &RwLock<Texts>, id: u32) -> Arc<str> {
    let texts = texts.read().unwrap_or_else(PoisonError::into_inner);
    usize::try_from(id)
        .ok()
        .and_then(|it| texts.by_id.get(it).cloned())
        .unwrap_or_else(|| "?".into())
}
