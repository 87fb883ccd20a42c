//! What was checked, and what was found wrong?

use std::{iter::Sum, ops::Add};

use anyhow::Result;

/// One named check and what it found; nothing found is good.
#[derive(Debug)]
pub(crate) struct Check {
    pub name: &'static str,
    pub findings: Vec<String>,
}

impl Check {
    /// A check that could not be made is a finding too: silence would look like success.
    pub(crate) fn of(name: &'static str, findings: Result<Vec<String>>) -> Self {
        let findings = findings.unwrap_or_else(|error| vec![format!("could not check: {error:#}")]);
        Self { name, findings }
    }
}

/// How many passed and how many failed: tests of a test program, or checks of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub passed: usize,
    pub failed: usize,
}

impl Tally {
    pub(crate) fn of(checks: &[Check]) -> Self {
        let failed = checks.iter().filter(|it| !it.findings.is_empty()).count();
        Self { passed: checks.len() - failed, failed }
    }

    pub(crate) fn total(self) -> usize {
        self.passed + self.failed
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), Add::add)
    }
}
