//! Where do ids and times of day come from?
//!
//! From the name of the thing they belong to. So an image that is added changes no other one, and
//! the difference between two versions of the catalog is what really changed.

/// Any number would do. This one is the day of the first catalog.
const SEED: u64 = 20_261_115;

/// Splitmix64: eight lines, well spread, the same on every machine.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// FNV-1a of the name, started with our seed.
    pub(crate) fn of(name: &str) -> Self {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        let hash = name
            .bytes()
            .fold(OFFSET ^ SEED, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
        Self(hash)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, and without, `end`.
    pub(crate) fn below(&mut self, end: i64) -> i64 {
        let rolled = i64::try_from(self.roll() >> 1).expect("63 bits fit");
        rolled % end
    }
}

/// `ami-0…`, `snap-0…`: today's ids of EC2 all begin with a zero and have 17 digits.
pub(crate) fn ec2_id(kind: &str, of: &str) -> String {
    format!("{kind}-0{:016x}", Dice::of(&format!("{kind} {of}")).roll())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_rolls_what_its_author_published() {
        // The first numbers from state 1234567, as in the reference program's test vector.
        let mut dice = Dice(1_234_567);
        assert_eq!(dice.roll(), 6_457_827_717_110_365_317);
        assert_eq!(dice.roll(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn names_decide() {
        assert_eq!(ec2_id("ami", "one"), ec2_id("ami", "one"));
        assert_ne!(ec2_id("ami", "one"), ec2_id("ami", "two"));
    }
}
