//! What does chance say?
//!
//! `seed → the same numbers, always and everywhere`
//!
//! `SplitMix64`: one addition and three multiplications' worth of mixing per number, every seed as good as
//! any other, and nothing that another version of a library could change under a stored seed.

use jiff::SignedDuration;

/// A seeded source of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dice {
    state: u64,
}

/// The golden ratio's odd neighbour; the constants are those of Steele, Lea and Flood (2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Another source that does not disturb this one: what is thrown there leaves no mark here. The same
    /// label gives the same source.
    #[must_use]
    pub fn fork(&self, label: &str) -> Self {
        let mut state = self.state;
        for byte in label.bytes() {
            state = mix(state ^ u64::from(byte)).wrapping_add(STEP);
        }
        Self { state }
    }

    #[expect(
        clippy::should_implement_trait,
        reason = "dice are thrown for something; nobody goes through them"
    )]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Below `end`; nought if that is nought.
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of the product: unbiased to one in 2^64 / end, and without a division.
        let product = u128::from(self.next()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// From `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least.saturating_add(self.below(most.saturating_sub(least).saturating_add(1)))
    }

    /// So many times out of a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of them; `None` of none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let length = u64::try_from(from.len()).unwrap_or(u64::MAX);
        from.get(usize::try_from(self.below(length)).unwrap_or(0))
    }

    /// Between the two, to the millisecond.
    pub fn span(&mut self, least: SignedDuration, most: SignedDuration) -> SignedDuration {
        let millis = |it: SignedDuration| u64::try_from(it.as_millis()).unwrap_or(0);
        let thrown = self.between(millis(least), millis(most).max(millis(least)));
        SignedDuration::from_millis(i64::try_from(thrown).unwrap_or(i64::MAX))
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let bound = u64::try_from(at + 1).unwrap_or(u64::MAX);
            items.swap(at, usize::try_from(self.below(bound)).unwrap_or(at));
        }
    }
}

fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementation for seed 1234567.
    #[test]
    fn the_numbers_are_those_of_the_reference() {
        let mut dice = Dice::new(1_234_567);
        let thrown: Vec<u64> = (0..3).map(|_| dice.next()).collect();
        assert_eq!(
            thrown,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_fork_depends_on_its_label_and_leaves_no_mark() {
        let dice = Dice::new(7);
        let (mut one, mut same, mut other) = (dice.fork("a"), dice.fork("a"), dice.fork("b"));
        let first = one.next();
        assert_eq!(first, same.next());
        assert_ne!(first, other.next());
        assert_eq!(dice, Dice::new(7));
    }

    #[test]
    fn what_is_thrown_stays_within_its_bounds() {
        let mut dice = Dice::new(0);
        assert_eq!(dice.below(0), 0);
        for _ in 0..1000 {
            assert!((3..=5).contains(&dice.between(3, 5)));
            assert_eq!(dice.between(9, 9), 9);
        }
        assert!(!dice.chance(0));
        assert!(dice.chance(1000));
        assert_eq!(dice.pick::<u8>(&[]), None);
    }
}
