//! How much of a resource?
//!
//! `an amount = thousandths, a whole number of them`
//!
//! Cores are counted in millicores, bytes and pods in whole units; thousandths hold both exactly and
//! can be subtracted without asking which. This is the seam to quantities in Kubernetes' format:
//! whoever reads or prints `1930m` or `7Gi` converts there, and the arithmetic here stays whole.

/// Never below zero in what [`crate::capacity`] answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount {
    thousandths: i128,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Amount {
    pub const ZERO: Self = Self { thousandths: 0 };

    pub const fn from_thousandths(thousandths: i128) -> Self {
        Self { thousandths }
    }

    /// Cores in their usual unit: 1930 for `1930m`.
    pub fn from_millicores(millicores: impl Into<i128>) -> Self {
        Self { thousandths: millicores.into() }
    }

    /// Bytes, pods, devices, whole cores.
    pub fn from_units(units: impl Into<i128>) -> Self {
        Self { thousandths: units.into().saturating_mul(1000) }
    }

    pub fn from_mib(mib: u64) -> Self {
        Self::from_units(i128::from(mib) * i128::from(MIB))
    }

    pub fn from_gib(gib: u64) -> Self {
        Self::from_units(i128::from(gib) * i128::from(GIB))
    }

    /// Decimal gigabytes, in which disks are sold.
    pub fn from_gb(gb: u64) -> Self {
        Self::from_units(i128::from(gb) * 1_000_000_000)
    }

    pub const fn in_thousandths(self) -> i128 {
        self.thousandths
    }

    /// Rounded up, as Kubernetes does when it needs whole bytes or pods.
    pub const fn in_units(self) -> i128 {
        let whole = self.thousandths.div_euclid(1000);
        if self.thousandths.rem_euclid(1000) == 0 { whole } else { whole + 1 }
    }

    /// What remains, and nothing if more was taken than there was.
    #[must_use]
    pub const fn less(self, taken: Self) -> Self {
        let rest = self.thousandths.saturating_sub(taken.thousandths);
        Self { thousandths: if rest < 0 { 0 } else { rest } }
    }

    /// This many millionths of the amount, rounded up to whole units.
    #[must_use]
    pub fn share(self, millionths: u32) -> Self {
        /// Millionths of thousandths in one unit.
        const UNIT: i128 = 1_000_000_000;
        let product = self.thousandths.saturating_mul(millionths.into());
        let whole = product.div_euclid(UNIT);
        let up = i128::from(product.rem_euclid(UNIT) != 0);
        Self::from_units(whole + up)
    }
}
