//! How long does each phase take here?

use std::collections::BTreeMap;

use jiff::SignedDuration;
use nodemolt_core::replace::Phase;

/// A new measurement weighs one in so many.
const WEIGHT: i32 = 4;

#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    phases: BTreeMap<Phase, SignedDuration>,
}

impl Pace {
    /// A phase has ended after so long.
    pub(crate) fn measure(&mut self, phase: Phase, took: SignedDuration) {
        let mean = self.phases.entry(phase).or_insert(took);
        let step = took.saturating_sub(*mean).checked_div(WEIGHT).unwrap_or(SignedDuration::ZERO);
        *mean = mean.saturating_add(step);
    }

    pub(crate) fn phases(&self) -> &BTreeMap<Phase, SignedDuration> {
        &self.phases
    }
}
