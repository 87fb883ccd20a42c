//! What happens next?
//!
//! `scenario × seed × acts → trace`
//!
//! One queue of events, ordered by time and then by when they were put in. Whoever begins the same
//! scenario with the same seed and acts the same way at the same times gets the same trace, to the hash.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use nodemolt_engine::Picture;

use crate::act::Act;
use crate::scenario::Scenario;
use crate::trace::Step;

/// A region, a cluster and the replicas that keep it.
#[derive(Debug)]
pub struct World {
    now: Timestamp,
    trace: Vec<Step>,
    hash: u64,
    watchers: Vec<Box<dyn Watcher>>,
    violations: Vec<Violation>,
}

/// Looks at every step as it happens: the laws do.
pub trait Watcher: fmt::Debug {
    /// `number` counts from zero. Everything that is wrong from this step on, told once.
    fn step(&mut self, number: usize, step: &Step) -> Vec<Violation>;

    /// The life is over. For laws about what must have happened by then.
    fn end(&mut self, now: Timestamp) -> Vec<Violation>;
}

/// A law was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its name.
    pub law: String,
    pub at: Timestamp,
    /// The number of the step that broke it.
    pub step: usize,
    pub message: String,
}

/// Why a scenario cannot begin: what the API server said to its objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct LoadError(pub Vec<String>);

/// Why an act was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ActError(pub String);

impl World {
    pub fn new(scenario: &Scenario, seed: u64) -> Result<Self, LoadError> {
        Ok(Self {
            now: scenario.simulation.start,
            trace: Vec::new(),
            hash: seed,
            watchers: Vec::new(),
            violations: Vec::new(),
        })
    }

    /// Does it now, or as soon as the world can. What came of it, in a sentence for people.
    pub fn act(&mut self, act: &Act) -> Result<String, ActError> {
        if let Act::Run(length) = act {
            self.run(*length);
        }
        Ok(String::new())
    }

    pub fn run(&mut self, length: SignedDuration) {
        self.now = self.now.saturating_add(length).unwrap_or(Timestamp::MAX);
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Everything that has happened, in order.
    pub fn trace(&self) -> &[Step] {
        &self.trace
    }

    /// Of all steps so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// What an engine would see now, were its watches complete.
    pub fn picture(&mut self) -> Option<Picture> {
        None
    }

    /// From now on, and for what has happened already.
    pub fn watch(&mut self, mut watcher: Box<dyn Watcher>) {
        for (number, step) in self.trace.iter().enumerate() {
            self.violations.extend(watcher.step(number, step));
        }
        self.watchers.push(watcher);
    }

    /// Tells the watchers that the life is over.
    pub fn end(&mut self) {
        for watcher in &mut self.watchers {
            self.violations.extend(watcher.end(self.now));
        }
    }

    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}
