//! What has this name, if names are asked for in their order?
//!
//! Nodes, their claims, their pods and what was read of them are all kept by name. Who goes through one of
//! them walks along the others: to look each up from the root would cost most of a turn that changes nothing.

use std::iter::Peekable;

pub(crate) struct Along<I: Iterator> {
    rest: Peekable<I>,
}

impl<'a, V, I: Iterator<Item = (&'a str, V)>> Along<I> {
    /// In the order of names.
    pub(crate) fn new(all: impl IntoIterator<IntoIter = I>) -> Self {
        Self { rest: all.into_iter().peekable() }
    }

    /// No name may be asked for after one that comes later.
    pub(crate) fn at(&mut self, name: &str) -> Option<V> {
        while self.rest.next_if(|(it, _)| *it < name).is_some() {}
        self.rest.next_if(|(it, _)| *it == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Along;

    #[test]
    fn it_finds_what_a_map_would_find() {
        let map: BTreeMap<&str, u8> = [("b", 1), ("d", 2), ("e", 3)].into();
        let mut along = Along::new(map.iter().map(|(name, it)| (*name, *it)));
        for name in ["a", "b", "c", "e", "f"] {
            assert_eq!(along.at(name), map.get(name).copied(), "{name}");
        }
    }
}
