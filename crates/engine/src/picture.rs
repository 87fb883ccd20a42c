//! What can be told of it all?
//!
//! `view × records × memory → picture`, without any write: whoever only looks sees the same picture as
//! the turn that acts.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_core::budget::Measured;
use nodemolt_core::drain::Drain;
use nodemolt_core::drift::Drift;
use nodemolt_core::explain::World;
use nodemolt_core::node::Running;
use nodemolt_core::plan::{Fleet, Plan};
use nodemolt_core::replace::{Replacement, Step};
use nodemolt_core::seen::View;

use crate::Config;
use crate::memory::Memory;
use crate::port::Records;

/// All that stories are told from, at one moment.
#[derive(Debug, Clone)]
pub struct Picture {
    pub at: Timestamp,
    pub fleet: Arc<Fleet>,
    pub plan: Plan,
    pub rooms: Measured,
    /// By node.
    pub running: Arc<BTreeMap<String, Running>>,
    pub drifts: Arc<BTreeMap<String, Drift>>,
    /// By node: open ones, and the last one that ended.
    pub replacements: BTreeMap<String, Replacement>,
    pub steps: BTreeMap<String, Step>,
    pub drains: Vec<Drain>,
}

impl Picture {
    /// For [`nodemolt_core::explain`].
    pub fn world(&self) -> World<'_> {
        World {
            fleet: &self.fleet,
            plan: &self.plan,
            rooms: &self.rooms,
            running: &self.running,
            drifts: &self.drifts,
            replacements: &self.replacements,
            steps: &self.steps,
            drains: &self.drains,
        }
    }
}

/// The picture as a turn would see it now. Nothing is written.
pub fn look(
    _memory: &mut Memory,
    _config: &Config,
    _view: &View,
    _records: &Records,
    now: Timestamp,
) -> Picture {
    let fleet = Fleet::default();
    let grants = nodemolt_core::budget::Grants::default();
    let limits = nodemolt_core::budget::Limits::default();
    let act = nodemolt_core::budget::Act::Replace;
    Picture {
        at: now,
        rooms: nodemolt_core::budget::measure([], &limits, &grants, act, now),
        fleet: Arc::new(fleet),
        plan: Plan::default(),
        running: Arc::default(),
        drifts: Arc::default(),
        replacements: BTreeMap::new(),
        steps: BTreeMap::new(),
        drains: Vec::new(),
    }
}
