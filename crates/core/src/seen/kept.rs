//! What has changed since somebody looked?
//!
//! A fleet has tens of thousands of objects, of which a few change between two turns. Whoever works something out
//! from them asks here which, and looks at no others.

use std::collections::{BTreeMap, VecDeque, btree_map};
use std::ops::Deref;
use std::sync::Arc;

/// So many are remembered. Whoever has not looked for longer looks at everything.
const REMEMBERED_MAX: usize = 16_384;

/// Objects by name, and who of them was written to.
#[derive(Debug, Clone)]
pub struct Kept<K, V> {
    all: BTreeMap<K, V>,
    changes: Changes<K>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), changes: Changes::default() }
    }
}

/// Reading leaves no mark; writing goes by the methods of [`Kept`] alone.
impl<K, V> Deref for Kept<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl<'a, K, V> IntoIterator for &'a Kept<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = btree_map::Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl<K: Ord + Clone, V> Kept<K, V> {
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.changes.note(key.clone());
        self.all.insert(key, value)
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let (key, value) = self.all.remove_entry(key)?;
        self.changes.note(key);
        Some(value)
    }

    /// Whoever asks for it is taken to write to it.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let (known, _) = self.all.get_key_value(key)?;
        self.changes.note(known.clone());
        self.all.get_mut(key)
    }

    /// All are taken to be written to.
    pub fn values_mut(&mut self) -> btree_map::ValuesMut<'_, K, V> {
        self.changes.forget();
        self.all.values_mut()
    }

    pub fn clear(&mut self) {
        self.changes.forget();
        self.all.clear();
    }

    pub fn changes(&self) -> &Changes<K> {
        &self.changes
    }
}

/// Who was written to, in this order.
#[derive(Debug)]
pub struct Changes<K> {
    /// Of this one, and of no copy of it: a copy goes its own way.
    of: Arc<()>,
    /// So many were forgotten before the first of `last`.
    forgotten: u64,
    last: VecDeque<K>,
}

impl<K> Default for Changes<K> {
    fn default() -> Self {
        Self { of: Arc::default(), forgotten: 0, last: VecDeque::new() }
    }
}

impl<K> Clone for Changes<K> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// How far somebody has looked: at first at nothing.
#[derive(Debug, Clone, Default)]
pub struct Looked(Option<(Arc<()>, u64)>);

impl<K> Changes<K> {
    pub fn note(&mut self, key: K) {
        self.last.push_back(key);
        if self.last.len() > REMEMBERED_MAX {
            self.last.pop_front();
            self.forgotten += 1;
        }
    }

    /// Anything may have changed.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    fn count(&self) -> u64 {
        self.forgotten + u64::try_from(self.last.len()).unwrap_or(u64::MAX)
    }

    /// Up to now.
    pub fn looked(&self) -> Looked {
        Looked(Some((Arc::clone(&self.of), self.count())))
    }

    /// Who was written to since then; some perhaps twice. `None`: nobody knows, so it may be anybody.
    pub fn since<'s>(&'s self, then: &Looked) -> Option<impl Iterator<Item = &'s K> + use<'s, K>> {
        // Whoever has looked keeps it alive: no other can be in its place.
        let (_, count) = then.0.as_ref().filter(|(of, _)| Arc::ptr_eq(of, &self.of))?;
        let seen = usize::try_from(count.checked_sub(self.forgotten)?).ok()?;
        Some(self.last.iter().skip(seen))
    }

    /// Whether nobody was written to since then.
    pub fn none_since(&self, then: &Looked) -> bool {
        self.since(then).is_some_and(|mut it| it.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(kept: &Kept<&'static str, u8>, then: &Looked) -> Option<Vec<&'static str>> {
        kept.changes().since(then).map(|it| it.copied().collect())
    }

    #[test]
    fn whoever_looks_again_is_told_who_was_written_to() {
        let mut kept = Kept::default();
        let never = Looked::default();
        assert_eq!(since(&kept, &never), None);
        kept.insert("a", 1);
        let looked = kept.changes().looked();
        assert!(kept.changes().none_since(&looked));
        kept.insert("b", 1);
        kept.remove("a");
        kept.remove("c");
        *kept.get_mut("b").unwrap_or(&mut 0) = 2;
        assert_eq!(since(&kept, &looked), Some(vec!["b", "a", "b"]));
        assert_eq!(since(&kept, &never), None);
        for it in kept.values_mut() {
            *it += 1;
        }
        assert_eq!(since(&kept, &looked), None);
    }

    #[test]
    fn a_copy_goes_its_own_way() {
        let mut kept = Kept::default();
        kept.insert("a", 1);
        let looked = kept.changes().looked();
        let mut copy = kept.clone();
        copy.insert("b", 1);
        assert_eq!(since(&copy, &looked), None);
        assert_eq!(since(&kept, &looked), Some(vec![]));
    }

    #[test]
    fn whoever_was_away_for_too_long_looks_at_everything() {
        let mut kept = Kept::default();
        let looked = kept.changes().looked();
        for _ in 0..REMEMBERED_MAX {
            kept.insert("a", 1);
        }
        assert_eq!(since(&kept, &looked).map(|it| it.len()), Some(REMEMBERED_MAX));
        kept.insert("a", 1);
        assert_eq!(since(&kept, &looked), None);
    }
}
