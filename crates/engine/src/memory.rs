//! What do we know that would only cost time to learn again?
//!
//! Answers of EC2 with their times and outcomes, back-off, paces, and what was read of objects that have
//! not changed since. All of it may be lost at any moment: what would cost safety has an object of its own.

use jiff::Timestamp;

use crate::act::{Act, Done};
use crate::port::Leadership;

/// May be lost at any time, which costs only delay.
#[derive(Debug, Default)]
pub struct Memory {
    leads: bool,
}

impl Memory {
    /// What the lease says. Who does not lead decides nothing and has no acts.
    pub fn lead(&mut self, leadership: &Leadership) {
        self.leads = matches!(leadership, Leadership::Leads { .. });
    }

    pub fn leads(&self) -> bool {
        self.leads
    }

    /// What came of an act is one more observation.
    pub fn done(&mut self, _act: &Act, _done: Done, _now: Timestamp) {}
}
