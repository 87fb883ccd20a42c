//! Which of them?
//!
//! `a set of small numbers = words of 64 bits`, so that sets are compared a word at a time

use smallvec::SmallVec;

const WORD: usize = 64;

/// Numbers that were never put in are not in: a set is as long as its largest number needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bits(SmallVec<[u64; 8]>);

impl Bits {
    /// All numbers below `count`.
    pub(super) fn below(count: usize) -> Self {
        let mut all = Self(SmallVec::from_elem(u64::MAX, count.div_ceil(WORD)));
        if let (Some(last), 1..) = (all.0.last_mut(), count % WORD) {
            *last = (1 << (count % WORD)) - 1;
        }
        all
    }

    pub(super) fn insert(&mut self, number: usize) {
        let word = number / WORD;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % WORD);
    }

    pub(super) fn remove(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / WORD) {
            *word &= !(1 << (number % WORD));
        }
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.word(number / WORD) >> (number % WORD) & 1 == 1
    }

    pub(super) fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub(super) fn empty(&self) -> bool {
        self.0.iter().all(|it| *it == 0)
    }

    pub(super) fn and(&mut self, other: &Self) {
        for (at, word) in self.0.iter_mut().enumerate() {
            *word &= other.word(at);
        }
    }

    pub(super) fn or(&mut self, other: &Self) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(left, right)| left & right != 0)
    }

    /// Whether the other has all of these.
    pub(super) fn inside(&self, other: &Self) -> bool {
        self.0.iter().enumerate().all(|(at, word)| word & !other.word(at) == 0)
    }

    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(|it| *it = 0);
    }

    /// In ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| ones(*word).map(move |bit| at * WORD + bit))
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut all = Self::default();
        for it in numbers {
            all.insert(it);
        }
        all
    }
}

/// The places of the ones in a word, ascending.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = first(word)?;
        word &= word - 1;
        Some(bit)
    })
}

/// The place of the lowest one.
pub(super) fn first(word: u64) -> Option<usize> {
    (word != 0).then(|| usize::try_from(word.trailing_zeros()).unwrap_or(0))
}

/// How many words it takes to hold numbers below `count`.
pub(super) fn words(count: usize) -> usize {
    count.div_ceil(WORD)
}

/// The number at the beginning of a word.
pub(super) fn start(word: usize) -> usize {
    word * WORD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in_and_nothing_else() {
        for count in [0, 1, 63, 64, 65, 128, 700] {
            let all = Bits::below(count);
            assert_eq!(all.iter().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
            assert!(!all.has(count));
            assert_eq!(all.empty(), count == 0);
        }
        let mut few: Bits = [3, 64, 900].into_iter().collect();
        assert!(few.meets(&Bits::below(4)) && !few.meets(&Bits::below(3)));
        assert!(few.inside(&Bits::below(901)) && !few.inside(&Bits::below(900)));
        few.remove(64);
        few.remove(5000);
        let mut more = Bits::below(2);
        more.or(&few);
        assert_eq!(more.iter().collect::<Vec<_>>(), [0, 1, 3, 900]);
        more.and(&Bits::below(64));
        assert_eq!(more.iter().collect::<Vec<_>>(), [0, 1, 3]);
    }
}
