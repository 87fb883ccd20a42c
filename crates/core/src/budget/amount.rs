//! How many is that, of so many?
//!
//! Rounding favours fewer disruptions. What may be gone rounds down, but gives at least one unless zero
//! is written: a share that never lets anything go is a trap in a small pool. What must stay rounds up,
//! and may leave nothing that can go.

use std::fmt;
use std::str::FromStr;

use crate::image::shorten;

/// A number, or a share of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Amount {
    Count(u32),
    /// From 0 to 100.
    Percent(Percent),
}

/// From 0 to 100. Holding one means it was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a number nor a share from `0%` to `100%`; write it like `3` or `10%`")]
pub struct ParseAmountError(pub String);

impl Percent {
    pub fn new(percent: u8) -> Option<Self> {
        (percent <= 100).then_some(Self(percent))
    }
}

impl Amount {
    pub const ONE: Self = Self::Count(1);

    /// Seed 3's figure for those who switch parallel on and say no more.
    pub const BATCH_DEFAULT: Self = Self::Percent(Percent(5));

    pub fn zero(self) -> bool {
        matches!(self, Self::Count(0) | Self::Percent(Percent(0)))
    }

    /// As a bound on what may be gone.
    pub fn at_most(self, total: u64) -> u64 {
        match self {
            Self::Count(count) => u64::from(count),
            Self::Percent(Percent(0)) => 0,
            Self::Percent(Percent(percent)) => (share(total, percent) / 100).max(1),
        }
    }

    /// As a bound on what must stay.
    pub fn at_least(self, total: u64) -> u64 {
        match self {
            Self::Count(count) => u64::from(count),
            Self::Percent(Percent(percent)) => share(total, percent).div_ceil(100),
        }
    }
}

/// In hundredths; a fleet is never so large that this saturates, but a figure from a file may be.
fn share(total: u64, percent: u8) -> u64 {
    total.saturating_mul(u64::from(percent))
}

impl FromStr for Amount {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseAmountError(shorten(text));
        let digits = text.strip_suffix('%').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
            return Err(refuse());
        }
        if digits.len() == text.len() {
            return digits.parse().map(Self::Count).map_err(|_| refuse());
        }
        digits.parse().ok().and_then(Percent::new).map(Self::Percent).ok_or_else(refuse)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(out, "{count}"),
            Self::Percent(Percent(percent)) => write!(out, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_favours_fewer_disruptions() {
        // (written, of, may be gone, must stay)
        for (written, of, at_most, at_least) in [
            ("70%", 10, 7, 7),
            ("5%", 1000, 50, 50),
            ("5%", 20, 1, 1),
            ("5%", 19, 1, 1),
            ("5%", 39, 1, 2),
            ("5%", 1, 1, 1),
            ("0%", 1000, 0, 0),
            ("0", 1000, 0, 0),
            ("100%", 7, 7, 7),
            ("33%", 10, 3, 4),
            ("3", 2, 3, 3),
            ("1%", 0, 1, 0),
            ("100%", u64::MAX, u64::MAX / 100, u64::MAX / 100 + 1),
        ] {
            let amount: Amount = written.parse().unwrap();
            assert_eq!(amount.at_most(of), at_most, "at most {written} of {of}");
            assert_eq!(amount.at_least(of), at_least, "at least {written} of {of}");
            assert_eq!(amount.to_string().parse(), Ok(amount));
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "%", "-1", "101%", "1.5%", "ten", "4294967296", "1 %", "+3", "10%%"] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
    }
}
