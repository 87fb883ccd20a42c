//! What becomes of a cluster to which anything may happen?
//!
//! `seed → scenario, acts and faults → report`
//!
//! Each seed draws a world of its own: nodes of unequal sizes, workloads with and without budgets, people
//! who write limits and change their minds, and a swarm of faults: not all kinds in every life, since some
//! hide others. First everything goes wrong while the laws are checked at every step; then nothing more does,
//! and the world has to settle; then it has to be quiet for half an hour.

mod images;
mod scenario;
mod script;
mod workloads;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jiff::{SignedDuration, Timestamp};

use crate::act::Act;
use crate::dice::Dice;
use crate::faults::{Fault, Side, Writing};
use crate::laws::{Law, Violation};
use crate::scenario::Scenario;
use crate::world::{World, last_lines, line};

pub use scenario::Drawn;

/// Faults and people are at work for so long.
const UNREST: SignedDuration = SignedDuration::from_mins(50);

/// When everything must have settled after that. A node that fails twice waits three hours in all.
const SETTLES_WITHIN: SignedDuration = SignedDuration::from_hours(12);

/// How often it is looked at whether it has.
const LOOK_EVERY: SignedDuration = SignedDuration::from_mins(10);

const QUIET_FOR: SignedDuration = SignedDuration::from_mins(30);

/// What is printed of the end of a life that broke a law.
const LAST_STEPS: usize = 20;

/// One life, before it is lived.
#[derive(Debug, Clone, PartialEq)]
pub struct Life {
    pub seed: u64,
    pub world: Drawn,
    /// By the time since the start; sorted.
    pub script: Vec<(SignedDuration, Act)>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub seed: u64,
    pub nodes: usize,
    /// That struck, of those that were drawn.
    pub faults: usize,
    /// At which writes, and where, somebody crashed or stood still.
    pub writes: BTreeSet<(Writing, Side)>,
    /// Acts of people and publishers that were done.
    pub acts: usize,
    /// Replacements that came to a good end.
    pub completed: u64,
    pub premises: BTreeMap<Law, u64>,
    pub violations: Vec<Violation>,
    pub steps: u64,
    pub hash: u64,
    /// Every node ended on the image that it should run.
    pub matched: bool,
    /// How often nothing could be said about a pod's place.
    pub undecided: u64,
    /// How long it took to settle, if it did.
    pub settled_after: Option<SignedDuration>,
    /// The last lines before the first violation.
    pub tail: Vec<String>,
}

impl Life {
    pub fn draw(seed: u64) -> Self {
        let dice = Dice::new(seed);
        let world = scenario::draw(&mut dice.fork("scenario"));
        let script = script::draw(&world, UNREST, &mut dice.fork("script"));
        Self { seed, world, script }
    }

    /// As many as were drawn.
    pub fn faults(&self) -> usize {
        self.script.iter().filter(|(_, it)| matches!(it, Act::Fault(_))).count()
    }

    /// Lives it. An error is a scenario that the API server does not take, or a life that broke off.
    pub fn run(seed: u64) -> Result<Report, String> {
        Self::draw(seed).live()
    }

    pub fn live(&self) -> Result<Report, String> {
        self.live_in(|world| world.keep_only(LAST_STEPS), None).map(|(_, report)| report)
    }

    /// The same, with the world at its end: whoever wants to see every step.
    pub fn watched(&self) -> Result<(World, Report), String> {
        self.watched_until(None)
    }

    /// Only so far, if it lives for so long.
    pub fn watched_until(&self, until: Option<Timestamp>) -> Result<(World, Report), String> {
        self.live_in(|_| (), until)
    }

    fn live_in(
        &self,
        prepare: impl FnOnce(&mut World),
        until: Option<Timestamp>,
    ) -> Result<(World, Report), String> {
        let scenario = Scenario::read("life", &self.world.text).map_err(|problems| {
            problems.iter().fold(String::new(), |mut all, it| {
                let _ = writeln!(all, "{it}");
                all
            })
        })?;
        let mut world = World::new(&scenario, self.seed).map_err(|it| it.to_string())?;
        prepare(&mut world);
        // Whatever it dies of, the steps until then are what its reader needs.
        let lived = catch_unwind(AssertUnwindSafe(|| self.pass(&mut world, until)));
        let broken_off = |told: &str| {
            let again = self.again();
            format!("{again}  it broke off: {told}\n{}", last_lines(&world, LAST_STEPS))
        };
        match lived {
            Ok(Ok(lived)) => {
                let report = self.report(&mut world, &lived);
                Ok((world, report))
            }
            Ok(Err(told)) => Err(broken_off(&told)),
            Err(panicked) => Err(broken_off(words_of(panicked.as_ref()))),
        }
    }

    fn again(&self) -> String {
        format!("seed {}: see it with `nodemolt sim replay --seed {}`\n", self.seed, self.seed)
    }

    fn pass(&self, world: &mut World, until: Option<Timestamp>) -> Result<Lived, String> {
        world.check_laws();
        if let Some(laws) = world.laws() {
            for (class, images) in &self.world.expected {
                laws.expect(class, images.clone());
            }
        }
        let start = world.now();
        let since = |world: &World| world.now().duration_since(start);
        let mut acts = 0;
        let stopped = |acts| Ok(Lived { acts, settled_after: None });
        for (at, act) in &self.script {
            let wait = at.saturating_sub(since(world));
            if !run(world, wait, until) {
                return stopped(acts);
            }
            let done = does(world, act)?;
            acts += usize::from(done && !matches!(act, Act::Fault(_)));
        }
        if !run(world, UNREST.saturating_sub(since(world)), until) {
            return stopped(acts);
        }
        for act in script::healing(&self.script) {
            does(world, &act)?;
        }
        let healed = world.now();
        let mut settled_after = None;
        let mut before = false;
        while world.now().duration_since(healed) < SETTLES_WITHIN {
            if !run(world, LOOK_EVERY, until) {
                return stopped(acts);
            }
            let now = world.now();
            // Whoever waits for a window that opens before the end of the quiet time has not come to its end.
            let settled = world.laws().is_some_and(|it| it.settled(now, QUIET_FOR));
            // Between two replacements there is a moment in which all seems done.
            if settled && before {
                settled_after = Some(now.duration_since(healed));
                break;
            }
            before = settled;
        }
        if !run(world, QUIET_FOR, until) {
            return stopped(acts);
        }
        world.at_rest();
        Ok(Lived { acts, settled_after })
    }

    fn report(&self, world: &mut World, lived: &Lived) -> Report {
        let Lived { acts, settled_after } = *lived;
        let first = world.violations().first().map(|it| it.step);
        let tail = first.map_or_else(Vec::new, |it| {
            let steps = world.trace_until(it);
            steps.iter().rev().take(LAST_STEPS).rev().map(line).collect()
        });
        let violations = world.violations().iter().map(|it| it.violation.clone()).collect();
        let (steps, hash) = (world.steps(), world.hash());
        let struck = world.struck().clone();
        let laws = world.laws();
        Report {
            seed: self.seed,
            nodes: self.world.nodes.len(),
            faults: struck.faults,
            writes: struck.writes.into_keys().collect(),
            acts,
            completed: laws.as_ref().map_or(0, |it| it.completed()),
            matched: laws.as_ref().is_some_and(|it| it.matched()),
            undecided: laws.as_ref().map_or(0, |it| it.undecided()),
            premises: laws.map(|it| it.premises()).unwrap_or_default(),
            violations,
            steps,
            hash,
            settled_after,
            tail,
        }
    }
}

/// What is known when it is over.
struct Lived {
    acts: usize,
    settled_after: Option<SignedDuration>,
}

/// Whether it may go on afterwards: not when it has come to where it is to stop.
fn run(world: &mut World, length: SignedDuration, until: Option<Timestamp>) -> bool {
    let left = until.map(|it| it.duration_since(world.now()).max(SignedDuration::ZERO));
    match left {
        Some(left) if left < length => {
            world.run(left);
            false
        }
        Some(_) | None => {
            world.run(length);
            true
        }
    }
}

/// Whether it was done. What cannot be done any more, since whom it is about is gone, is not done; whatever
/// else is refused was drawn wrongly.
fn does(world: &mut World, act: &Act) -> Result<bool, String> {
    match world.act(act) {
        Ok(_) => Ok(true),
        Err(error) if error.gone => Ok(false),
        Err(error) => Err(format!("`{act}` was refused: {error}")),
    }
}

/// What a panic said.
fn words_of(panicked: &(dyn Any + Send)) -> &str {
    let text = panicked.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panicked.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

/// Many lives, in figures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub lives: usize,
    pub nodes: Vec<usize>,
    pub faults: Vec<usize>,
    /// Lives that completed a replacement.
    pub completed: usize,
    pub replacements: u64,
    /// Lives in which every node ended on the image that it should run.
    pub matched: usize,
    pub undecided: u64,
    pub steps: u64,
    pub acts: usize,
    /// In how many lives somebody crashed or stood still at each kind of write, and where.
    pub writes: BTreeMap<(Writing, Side), usize>,
    /// In how many lives each law could have been broken.
    pub premises: BTreeMap<Law, usize>,
    pub broken: BTreeSet<u64>,
}

impl Tally {
    pub fn add(&mut self, report: &Report) {
        self.lives += 1;
        self.nodes.push(report.nodes);
        self.faults.push(report.faults);
        self.completed += usize::from(report.completed > 0);
        self.replacements += report.completed;
        self.matched += usize::from(report.matched);
        self.undecided += report.undecided;
        self.steps += report.steps;
        self.acts += report.acts;
        for it in &report.writes {
            *self.writes.entry(*it).or_default() += 1;
        }
        for (law, times) in &report.premises {
            if *times > 0 {
                *self.premises.entry(*law).or_default() += 1;
            }
        }
        if !report.violations.is_empty() {
            self.broken.insert(report.seed);
        }
    }

    pub fn median_nodes(&self) -> usize {
        median(&self.nodes)
    }

    pub fn median_faults(&self) -> usize {
        median(&self.faults)
    }
}

fn median(of: &[usize]) -> usize {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// For people, as lines.
impl std::fmt::Display for Tally {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = (self.completed * 100).checked_div(self.lives).unwrap_or(0);
        writeln!(out, "{} lives, {} steps", self.lives, self.steps)?;
        writeln!(out, "nodes in a life, median: {}", self.median_nodes())?;
        writeln!(out, "faults that struck in a life, median: {}", self.median_faults())?;
        writeln!(out, "acts of people and publishers: {}", self.acts)?;
        writeln!(out, "lives that completed a replacement: {} ({share} %)", self.completed)?;
        writeln!(out, "replacements completed: {}", self.replacements)?;
        let share = (self.matched * 100).checked_div(self.lives).unwrap_or(0);
        writeln!(
            out,
            "lives in which every node ended on the expected image: {} ({share} %)",
            self.matched
        )?;
        writeln!(out, "pods whose place the laws could not judge: {}", self.undecided)?;
        writeln!(out, "lives in which one of us crashed or stood still at a write:")?;
        let sides = Side::ALL.map(Side::as_str);
        writeln!(out, "  {:<12} {:>12} {:>12} {:>12}", "", sides[0], sides[1], sides[2])?;
        for wrote in Writing::ALL {
            let lives = |side| self.writes.get(&(wrote, side)).copied().unwrap_or(0);
            let [before, sent, answered] = Side::ALL.map(lives);
            writeln!(out, "  {:<12} {before:>12} {sent:>12} {answered:>12}", wrote.as_str())?;
        }
        writeln!(out, "lives in which a law could have been broken:")?;
        for law in Law::CHECKED.into_iter().filter(|it| *it != Law::Determinism) {
            writeln!(out, "  {law:<24} {}", self.premises.get(&law).copied().unwrap_or(0))?;
        }
        writeln!(out, "lives that broke a law: {}", self.broken.len())
    }
}

impl Report {
    pub fn line(&self) -> String {
        let settled = self.settled_after.map_or_else(|| "never".to_owned(), crate::length::write);
        format!(
            "seed {}: {} nodes, {} faults, {} replaced, settled after {settled}, {} steps, {} violations",
            self.seed,
            self.nodes,
            self.faults,
            self.completed,
            self.steps,
            self.violations.len()
        )
    }

    /// What a person needs who wants to see it again.
    pub fn complaint(&self) -> String {
        let mut told =
            format!("seed {}: see it with `nodemolt sim replay --seed {}`\n", self.seed, self.seed);
        for it in &self.violations {
            let _ = writeln!(told, "  {it}");
        }
        for it in &self.tail {
            let _ = writeln!(told, "    {it}");
        }
        told
    }
}

/// The end of all faults.
fn end() -> Act {
    Act::Fault(Fault::End)
}
