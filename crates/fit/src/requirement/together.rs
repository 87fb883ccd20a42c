//! Can a machine with these labels serve someone who asks for those?
//!
//! `offered × asked → compatible, or the keys that clash`
//!
//! Requirements on different labels do not know of each other, so they are kept by key and compared
//! key by key. A key that nobody mentions allows anything.

use std::{collections::BTreeSet, fmt};

use super::{Operator, Requirement, Written};
use crate::vocabulary::{Key, Value, Vocabulary};

/// What several labels must be together. Sorted by key; each key once.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements(Vec<(Key, Requirement)>);

/// What to make of a label that is asked for and that the offering side does not define.
#[derive(Clone, Copy)]
pub enum Undefined<'a> {
    /// It is absent: the node exists, and its labels are known.
    Denied,
    /// For these keys it may yet become any value: the node does not exist. Else it is absent.
    Allowed(&'a dyn Fn(Key) -> bool),
}

/// A label on which the two sides cannot agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    pub key: Key,
    pub have: Option<Requirement>, // None: the offering side does not define it.
    pub asked: Requirement,
}

/// A label of which the machines considered offer too few different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinValuesShort {
    pub key: Key,
    pub have: u32,
    pub need: u32,
}

impl Requirements {
    pub fn new() -> Self {
        Self::default()
    }

    /// What a person wrote, taken together. See `Requirement::read`.
    pub fn read(written: &[Written], vocabulary: &Vocabulary) -> Self {
        let mut all = Self::new();
        for it in written {
            all.add(vocabulary.key(&it.key), &Requirement::read(it, vocabulary));
        }
        all
    }

    /// What a person can read, sorted by key. A key that allows anything is still a key that is
    /// defined, and is told from one that is not by `NotIn` without a value.
    pub fn written(&self, vocabulary: &Vocabulary) -> Vec<Written> {
        let mut all = Vec::new();
        for (key, requirement) in self.iter() {
            let key = vocabulary.key_text(key);
            let before = all.len();
            all.extend(requirement.written(&key, vocabulary));
            if all.len() == before {
                all.push(Written {
                    key: key.as_ref().to_owned(),
                    operator: Operator::NotIn,
                    values: Vec::new(),
                    min_values: None,
                });
            }
        }
        all.sort_by(|left, right| left.key.cmp(&right.key)); // Stable: a key's own order stays.
        all
    }

    pub fn get(&self, key: Key) -> Option<&Requirement> {
        self.place(key).ok().and_then(|at| self.0.get(at)).map(|(_, requirement)| requirement)
    }

    /// Put in place of what is there.
    pub fn set(&mut self, key: Key, requirement: Requirement) {
        match self.place(key) {
            Ok(at) => self.0[at].1 = requirement,
            Err(at) => self.0.insert(at, (key, requirement)),
        }
    }

    /// Demand this besides what is there.
    pub fn add(&mut self, key: Key, requirement: &Requirement) {
        match self.place(key) {
            Ok(at) => self.0[at].1 = self.0[at].1.intersect(requirement),
            Err(at) => self.0.insert(at, (key, requirement.clone())),
        }
    }

    /// What both demand.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let mut both = self.clone();
        for (key, requirement) in other.iter() {
            both.add(key, requirement);
        }
        both
    }

    /// In the order of keys, which is that of their first use and not that of their texts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Key, &Requirement)> {
        self.0.iter().map(|(key, requirement)| (*key, requirement))
    }

    /// Whether no machine at all could have such labels.
    pub fn nothing(&self) -> bool {
        self.iter().any(|(_, requirement)| requirement.nothing())
    }

    /// Whether `other` is met by whatever meets this.
    pub fn within(&self, other: &Self) -> bool {
        self.nothing()
            || other.against(self).all(|(_, theirs, ours)| match ours {
                Some(ours) => ours.within(theirs),
                None => Requirement::anything().within(theirs),
            })
    }

    /// Whether a machine that offers this can serve who asks for that, and if not, a key that stands
    /// in the way.
    pub fn compatible(&self, asked: &Self, undefined: Undefined<'_>) -> Result<(), Box<Clash>> {
        self.clashing(asked, undefined).next().map_or(Ok(()), |it| Err(Box::new(it)))
    }

    /// `compatible`, for who does not need to know why. Allocates nothing.
    pub fn compatible_with(&self, asked: &Self, undefined: Undefined<'_>) -> bool {
        asked.against(self).all(|(key, asked, have)| agree(key, have, asked, undefined))
    }

    /// Every key that stands in the way, in the order of keys.
    pub fn clashes(&self, asked: &Self, undefined: Undefined<'_>) -> Vec<Clash> {
        self.clashing(asked, undefined).collect()
    }

    fn clashing<'a>(
        &'a self,
        asked: &'a Self,
        undefined: Undefined<'a>,
    ) -> impl Iterator<Item = Clash> {
        asked
            .against(self)
            .filter(move |(key, asked, have)| !agree(*key, *have, asked, undefined))
            .map(|(key, asked, have)| Clash { key, have: have.cloned(), asked: asked.clone() })
    }

    /// The keys whose `min_values` these machines do not reach. A value counts if a machine lists
    /// it and it is allowed here; what a machine only bounds or excludes has no values to count.
    pub fn min_values_short<'a>(
        &self,
        machines: impl IntoIterator<Item = &'a Self>,
    ) -> Vec<MinValuesShort> {
        let mut counted: Vec<(Key, &Requirement, u32, BTreeSet<Value>)> = self
            .iter()
            .filter_map(|(key, it)| Some((key, it, it.min_values()?, BTreeSet::new())))
            .collect();
        if counted.is_empty() {
            return Vec::new();
        }
        for machine in machines {
            for (key, allowed, _, seen) in &mut counted {
                let listed = machine.get(*key).and_then(Requirement::listed).unwrap_or_default();
                seen.extend(listed.iter().filter(|it| allowed.admits(**it)));
            }
        }
        counted
            .into_iter()
            .map(|(key, _, need, seen)| (key, need, u32::try_from(seen.len()).unwrap_or(u32::MAX)))
            .filter(|(_, need, have)| have < need)
            .map(|(key, need, have)| MinValuesShort { key, have, need })
            .collect()
    }

    fn place(&self, key: Key) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |(it, _)| *it)
    }

    /// Each of our keys, beside what the other side has for it. Both are sorted, so one walk does.
    fn against<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (Key, &'a Requirement, Option<&'a Requirement>)> {
        let mut rest = other.0.as_slice();
        self.iter().map(move |(key, requirement)| {
            while let [(it, _), tail @ ..] = rest
                && *it < key
            {
                rest = tail;
            }
            let beside = rest.first().filter(|(it, _)| *it == key).map(|(_, beside)| beside);
            (key, requirement, beside)
        })
    }
}

fn agree(
    key: Key,
    have: Option<&Requirement>,
    asked: &Requirement,
    undefined: Undefined<'_>,
) -> bool {
    match (have, undefined) {
        (Some(have), _) => have.intersects(asked),
        (None, Undefined::Allowed(may_become)) if may_become(key) => !asked.nothing(),
        (None, Undefined::Allowed(_) | Undefined::Denied) => asked.admits_absent(),
    }
}

impl FromIterator<(Key, Requirement)> for Requirements {
    fn from_iter<I: IntoIterator<Item = (Key, Requirement)>>(pairs: I) -> Self {
        let mut all = Self::new();
        for (key, requirement) in pairs {
            all.add(key, &requirement);
        }
        all
    }
}

impl fmt::Debug for Undefined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "Denied",
            Self::Allowed(_) => "Allowed(…)",
        })
    }
}
