//! Was a law broken?
//!
//! `trace → violations, and how often each law could have been broken at all`
//!
//! The laws of the design, on what has happened and never on what the engine thinks of it: own readers, own
//! model of the world, own arithmetic. Most are looked at after every step; a few hold only when faults
//! have stopped, and are looked at then. A law that never had anything to say proves nothing, so each
//! counts how often its premise was true.
//!
//! Whoever acts on watches acts on what was so a moment ago. What others did is held against us only when
//! it was so for [`KNOWN_AFTER`]; what we wrote ourselves, against one revision, at once.

mod budget;
mod calendar;
mod determinism;
mod doubt;
mod epoch;
mod eviction;
mod excuse;
mod home;
mod image;
mod limits;
mod machines;
mod packing;
mod partition;
mod protection;
mod quiet;
mod read;
mod said;
mod settling;
mod succession;
mod wish;
mod words;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};

pub use determinism::{TraceHash, hash_of, same_life};

use crate::faults::Fault;
use crate::trace::{Fact, Step};
use world::World;

/// A view may be half a minute old when somebody acts on it, and a call takes its time.
pub const KNOWN_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// What is asked right before an act may be so old when the act is done: ten seconds are waited for the answer to
/// the question, and the call travels for two at most. Assumption 21.
const CALL_TAKES: SignedDuration = SignedDuration::from_secs(15);

/// The laws by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// 1. Every node that should go starts, is under way, or waits for something with a name.
    Partition,
    /// 2. Same seed, same trace.
    Determinism,
    /// 3. An unchanged world is decided about in one way; a world in sync gets no write and no command.
    Quiet,
    /// 4. What is not known leads to nothing.
    Doubt,
    /// 5. A grant is written only while there is room for it. No grant, no cordon. No claim past limits.
    Budget,
    /// 6. No cordon before every pod has a place on a ready node, no end of a machine before they left.
    Succession,
    /// 7. One live machine per claim; at rest every machine belongs to somebody.
    NoOrphansNoTwins,
    /// 8. When faults stop every replacement ends, and the fleet matches.
    Settling,
    /// 9. What policy refuses does not boot.
    Image,
    /// 10. Every pod leaves through the eviction API, with its UID, its budget and its grace period.
    Eviction,
    /// 11. What people wrote stays as they wrote it.
    UsersWords,
    /// 12. A halt is a halt. It waits for whoever judges images: nothing is checked and nothing counted.
    Halt,
    /// 13. When faults stop every pod that we moved runs again.
    Home,
    /// S8. Only machines that we launched are ended, and none that a claim still wants.
    OwnMachines,
    /// S21. No leader writes or acts after a later one, and nobody who is none.
    Epoch,
    /// S23. A node that people protect is neither granted nor cordoned.
    Protection,
    /// S22. At rest every node that we cordoned is gone or uncordoned.
    CordonUndone,
}

impl Law {
    /// All that are checked.
    pub const CHECKED: [Self; 16] = [
        Self::Partition,
        Self::Determinism,
        Self::Quiet,
        Self::Doubt,
        Self::Budget,
        Self::Succession,
        Self::NoOrphansNoTwins,
        Self::Settling,
        Self::Image,
        Self::Eviction,
        Self::UsersWords,
        Self::Home,
        Self::OwnMachines,
        Self::Epoch,
        Self::Protection,
        Self::CordonUndone,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Determinism => "determinism",
            Self::Quiet => "quiet",
            Self::Doubt => "doubt",
            Self::Budget => "budget",
            Self::Succession => "succession",
            Self::NoOrphansNoTwins => "no orphans, no twins",
            Self::Settling => "settling",
            Self::Image => "age, owner, quarantine",
            Self::Eviction => "eviction",
            Self::UsersWords => "the user's words",
            Self::Halt => "halt",
            Self::Home => "home",
            Self::OwnMachines => "own machines",
            Self::Epoch => "epoch",
            Self::Protection => "protection",
            Self::CordonUndone => "cordon undone",
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

/// A law was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub law: Law,
    pub at: Timestamp,
    /// By what, with names.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}: {}", self.at, self.law, self.what)
    }
}

/// What the laws have to know beside the trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting {
    /// The account that `self` means.
    pub account: Option<String>,
    /// How far behind the slowest clock of a replica is. It learns of a time so much later.
    pub slowest_clock: SignedDuration,
}

impl Setting {
    /// Of `skew leader -600`, that some clock is behind.
    fn learn(&mut self, fault: &str) {
        if let Ok(Fault::Skew { seconds, .. }) = fault.parse() {
            let behind = SignedDuration::from_secs(seconds.saturating_neg());
            self.slowest_clock = self.slowest_clock.max(behind);
        }
    }
}

/// All laws, with the world as the trace tells it.
#[derive(Debug)]
pub struct Laws {
    setting: Setting,
    world: World,
    found: Found,
    answers: wish::Answers,
    partition: partition::Partition,
    quiet: quiet::Quiet,
    doubt: doubt::Doubt,
    budget: budget::Budget,
    limits: limits::Limits,
    machines: machines::Machines,
    image: image::Images,
    eviction: eviction::Eviction,
    settling: settling::Settling,
    home: home::Home,
    epoch: epoch::Epoch,
    protection: protection::Protection,
}

impl Default for Laws {
    fn default() -> Self {
        Self::new(Setting::default())
    }
}

impl Laws {
    pub fn new(setting: Setting) -> Self {
        Self {
            setting,
            world: World::new(),
            found: Found::default(),
            answers: wish::Answers::default(),
            partition: partition::Partition::default(),
            quiet: quiet::Quiet::default(),
            doubt: doubt::Doubt::default(),
            budget: budget::Budget::default(),
            limits: limits::Limits::default(),
            machines: machines::Machines::default(),
            image: image::Images::default(),
            eviction: eviction::Eviction::default(),
            settling: settling::Settling::default(),
            home: home::Home::default(),
            epoch: epoch::Epoch::default(),
            protection: protection::Protection::default(),
        }
    }

    /// The next step of the life.
    pub fn see(&mut self, step: &Step) -> Vec<Violation> {
        let Self { setting, world, found, .. } = self;
        // Against the world as it was right before.
        self.eviction.see(world, setting, step, found);
        self.protection.see(world, step, found);
        match &step.fact {
            Fact::Stored { resource, object, old } => {
                match resource.kind {
                    "DisruptionLedger" => {
                        self.budget.see_ledger(world, setting, object, step, found);
                    }
                    "Node" => {
                        budget::Budget::see_node(world, object, step, found);
                        succession::see_cordon(world, object, step, found);
                    }
                    "NodeClaim" => {
                        succession::see_claim(world, object, step, found);
                        self.limits.see_claim(world, object, step, found);
                    }
                    _ => {}
                }
                words::see_stored(*resource, object, old.as_deref(), step, found);
            }
            Fact::Removed { resource, last } => words::see_removed(*resource, last, step, found),
            Fact::TerminateAsked { machine } => {
                budget::see_terminate(world, machine, step, found);
                succession::see_terminate(world, machine, step, found);
                self.machines.see_terminate(world, machine, step, found);
            }
            Fact::LaunchAsked { machine, made, .. } => {
                self.machines.see_launch(machine.as_deref(), *made, step, found);
                self.image.see_launch(world, setting, machine.as_deref(), *made, step, found);
            }
            Fact::Machine(machine) => {
                self.machines.see_machine(world, machine, step, found);
                self.image.see_machine(world, setting, machine, step, found);
            }
            Fact::Fault { what } => setting.learn(what),
            // All clocks are right again. What a slow one wrote before is remembered where it matters.
            Fact::FaultsEnd => setting.slowest_clock = SignedDuration::ZERO,
            Fact::Evicted { .. }
            | Fact::PodDeleted { .. }
            | Fact::Answered { .. }
            | Fact::Published { .. }
            | Fact::Image(_)
            | Fact::Turned(_)
            | Fact::Replica { .. }
            | Fact::HeldUp { .. }
            | Fact::Refused { .. }
            | Fact::Act { .. } => {}
        }
        self.epoch.see(world, step, found);
        self.partition.see(world, setting, &self.answers, step, found);
        self.doubt.see(world, setting, &self.answers, step, found);
        self.answers.see(step);
        self.settling.see(world, step);
        self.home.see(world, step);
        let changed = world.apply(step);
        self.quiet.see(world, step, changed, found);
        std::mem::take(&mut found.violations)
    }

    /// Faults have stopped, and enough time has passed.
    pub fn at_rest(&mut self, now: Timestamp) -> Vec<Violation> {
        let Self { setting, world, found, .. } = self;
        self.machines.at_rest(world, now, found);
        self.settling.at_rest(world, setting, now, found);
        self.home.at_rest(world, now, found);
        std::mem::take(&mut found.violations)
    }

    /// Whether everything has come to an end, and nothing begins within so long because time alone brings it: a window that
    /// opens, a node that is old enough. Nothing is said of this, and nothing is counted.
    pub fn settled(&self, now: Timestamp, within: SignedDuration) -> bool {
        let mut found = Found::default();
        self.machines.at_rest(&self.world, now, &mut found);
        self.home.at_rest(&self.world, now, &mut found);
        // People write their schedules in minutes.
        for minutes in 0..=within.as_mins() {
            let later = now.saturating_add(SignedDuration::from_mins(minutes)).unwrap_or(now);
            self.settling.at_rest(&self.world, &self.setting, later, &mut found);
            if !found.violations.is_empty() {
                return false;
            }
        }
        true
    }

    /// How many replacements have come to a good end.
    pub fn completed(&self) -> u64 {
        self.settling.completed()
    }

    /// Whether every node runs what [`Self::expect`] says.
    pub fn matched(&self) -> bool {
        self.settling.matched(&self.world)
    }

    /// Whoever made the world knows which images the nodes of a class (`group/name`) should run in the end.
    pub fn expect(&mut self, class: &str, images: BTreeSet<String>) {
        self.settling.expect(class, images);
    }

    /// Which clauses of the laws have spoken, by file and line.
    pub fn clauses(&self) -> &BTreeSet<(&'static str, u32)> {
        &self.found.clauses
    }

    /// How often nothing could be said about a pod's place.
    pub fn undecided(&self) -> u64 {
        self.found.undecided
    }

    /// How often each law could have been broken.
    pub fn premises(&self) -> BTreeMap<Law, u64> {
        self.found.premises.clone()
    }
}

#[derive(Debug, Default)]
struct Found {
    violations: Vec<Violation>,
    premises: BTreeMap<Law, u64>,
    /// Where a law could say nothing, since it would have had to look too long or know too much.
    undecided: u64,
    /// Which clauses have spoken: where in these files.
    clauses: BTreeSet<(&'static str, u32)>,
}

impl Found {
    fn premise(&mut self, law: Law) {
        *self.premises.entry(law).or_default() += 1;
    }

    #[track_caller]
    fn broken(&mut self, law: Law, at: Timestamp, what: String) {
        let clause = std::panic::Location::caller();
        self.clauses.insert((clause.file(), clause.line()));
        self.violations.push(Violation { law, at, what });
    }
}

/// What is said of one thing in several clauses.
struct Complaint<'a> {
    found: &'a mut Found,
    law: Law,
    at: Timestamp,
    /// The beginning of every sentence.
    of: String,
}

impl Complaint<'_> {
    #[track_caller]
    fn broken(&mut self, what: &str) {
        let what = format!("{} {what}", self.of);
        self.found.broken(self.law, self.at, what);
    }
}
