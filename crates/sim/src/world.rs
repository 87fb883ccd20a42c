//! What happens next?
//!
//! `scenario × seed × acts → trace`
//!
//! One queue of events, ordered by time and then by when they were put in. Whoever begins the same
//! scenario with the same seed and acts the same way at the same times gets the same trace, to the hash.

mod acts;
mod apply;
mod begin;
mod calls;
mod look;
mod machines;
mod tell;
mod victims;
mod weather;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::resources::{WATCHED, watched};
use nodemolt_cluster::transport::Resource;
use nodemolt_engine::Config;

use crate::desk::{CallId, Desk, Wire};
use crate::dice::Dice;
use crate::executor::{Executor, ProcessId};
use crate::faults::{Side, Writing};
use crate::kube::{Kube, KubeEvent};
use crate::laws::{Laws, Setting, TraceHash, Violation};
use crate::length;
use crate::region::{Happened, Region, RegionEvent};
use crate::replica::{LocalClock, News, Process, ProcessEvent, after};
use crate::scenario::{Scenario, Simulation};
use crate::trace::{Actor, Fact, ReplicaState, Step, Trace};
use apply::Applied;
use calls::{Coming, Travelling};
use weather::Weather;

pub use tell::{failure, last_lines, line, what, who};

/// A region, a cluster and the replicas that keep it.
pub struct World {
    simulation: Simulation,
    clock: Rc<Cell<Timestamp>>,
    queue: BTreeMap<(Timestamp, u64), Event>,
    queued: u64,
    /// Events delivered and calls made.
    steps: u64,
    kube: Rc<RefCell<Kube>>,
    region: Region,
    dice: Throws,
    executor: Executor,
    desk: Desk,
    travelling: BTreeMap<CallId, Travelling>,
    coming: BTreeMap<CallId, Coming>,
    replicas: Vec<Replica>,
    processes: u32,
    weather: Weather,
    /// What people applied last, by what the object is called.
    applied: BTreeMap<String, Applied>,
    source: Trace,
    trace: Vec<Step>,
    /// So many steps before the first of `trace` were let go.
    dropped: usize,
    /// So many are kept at least; `None` for all of them.
    keeps: Option<usize>,
    hash: TraceHash,
    laws: Option<Box<Laws>>,
    broken: Vec<Broken>,
    struck: Struck,
}

/// What has gone wrong indeed, and not only been asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Struck {
    pub faults: usize,
    /// How often somebody crashed or stood still at a write: of which kind, and where.
    pub writes: BTreeMap<(Writing, Side), u32>,
}

/// One source of chance for each thing, so that a new fault does not change what has nothing to do with it.
#[derive(Debug)]
struct Throws {
    kube: Dice,
    region: Dice,
    travel: Dice,
    watch: Dice,
    weather: Dice,
}

#[derive(Debug)]
struct Replica {
    process: Option<Process>,
    /// It stands still until then.
    frozen_until: Option<Timestamp>,
    wrong_by: SignedDuration,
}

#[derive(Debug, Clone)]
enum Event {
    Kube(KubeEvent),
    Region(RegionEvent),
    /// A call reaches whom it is for.
    Arrives(CallId),
    /// An answer reaches who asked.
    Returns(CallId),
    Process(ProcessId, ProcessEvent),
    /// A replica starts a process.
    Starts(u8),
    Thaws(u8),
    FaultEnds(u64),
}

/// A law was broken, by this step of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub step: usize,
    pub violation: Violation,
}

/// Why a scenario cannot begin: what the API server said to its objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct LoadError(pub Vec<String>);

/// Why an act was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{told}")]
pub struct ActError {
    pub told: String,
    /// Whom it was about is not there, or not any more.
    pub gone: bool,
    /// Words name who or what is not there, as against what is there and cannot be done to it.
    pub mistyped: bool,
}

impl ActError {
    fn gone(told: String) -> Self {
        Self { told, gone: true, mistyped: true }
    }

    /// It never was there.
    fn unknown(told: String) -> Self {
        Self { told, gone: false, mistyped: true }
    }
}

impl From<String> for ActError {
    fn from(told: String) -> Self {
        Self { told, gone: false, mistyped: false }
    }
}

impl World {
    pub fn new(scenario: &Scenario, seed: u64) -> Result<Self, LoadError> {
        begin::begin(scenario, seed)
    }

    /// Not beyond [`length::LAST`]: behind that times can no longer be counted, and everything that is to happen
    /// later would happen there, for ever.
    pub fn run(&mut self, length: SignedDuration) {
        let until = after(self.now(), length);
        self.run_until(until.min(length::LAST));
    }

    pub fn now(&self) -> Timestamp {
        self.clock.get()
    }

    /// Everything that has happened, in order; or the end of it, after [`Self::keep_only`].
    pub fn trace(&self) -> &[Step] {
        &self.trace
    }

    /// From now on only so many of the last steps are kept, and all from shortly before a law is broken: a
    /// long life that nobody looks at again fits into a processor's memory.
    pub fn keep_only(&mut self, steps: usize) {
        self.keeps = Some(steps);
    }

    /// What is kept of the trace up to this step and with it, by the number that [`Broken`] has.
    pub fn trace_until(&self, step: usize) -> &[Step] {
        let end = (step + 1).saturating_sub(self.dropped);
        &self.trace[..end.min(self.trace.len())]
    }

    /// The number that the next step will have.
    fn next_step(&self) -> usize {
        self.dropped + self.trace.len()
    }

    /// Of all steps so far.
    pub fn hash(&self) -> u64 {
        self.hash.value()
    }

    /// How many events were delivered and calls made. An answer is part of its call; turns, and the
    /// ticks of clocks, do not count.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn struck(&self) -> &Struck {
        &self.struck
    }

    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Checks the laws from now on, and on what has happened already.
    pub fn check_laws(&mut self) {
        let mut laws = Laws::new(Setting {
            account: Some(self.simulation.account.to_string()),
            ..Setting::default()
        });
        for (number, step) in self.trace.iter().enumerate() {
            let found = laws.see(step).into_iter();
            self.broken.extend(found.map(|violation| Broken { step: number, violation }));
        }
        self.laws = Some(Box::new(laws));
    }

    pub fn laws(&mut self) -> Option<&mut Laws> {
        self.laws.as_deref_mut()
    }

    /// Checks what must be so when faults have stopped and enough time has passed.
    pub fn at_rest(&mut self) {
        let (now, step) = (self.now(), self.next_step().saturating_sub(1));
        let found = self.laws.as_mut().map(|it| it.at_rest(now)).unwrap_or_default();
        self.broken.extend(found.into_iter().map(|violation| Broken { step, violation }));
    }

    /// The laws that were broken so far, if they are checked.
    pub fn violations(&self) -> &[Broken] {
        &self.broken
    }

    fn run_until(&mut self, until: Timestamp) {
        self.settle();
        while let Some(entry) = self.queue.first_entry()
            && entry.key().0 <= until
        {
            let ((at, _), event) = entry.remove_entry();
            // What was due before the world began is due now.
            self.clock.set(at.max(self.now()));
            self.happen(event);
            self.settle();
        }
        self.clock.set(until.max(self.now()));
    }

    fn happen(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Kube(event) => {
                self.steps += 1;
                let due = self.kube.borrow_mut().on(&event, now, &mut self.dice.kube);
                self.put_kube(due);
            }
            Event::Region(event) => {
                self.steps += 1;
                let (happened, due) = self.region.on(&event, now);
                self.put_region(due);
                match happened {
                    None => {}
                    Some(Happened::Runs(machine)) => self.machine_runs(&machine),
                    Some(Happened::Ended(machine)) => {
                        let dice = &mut self.dice.kube;
                        let due = self.kube.borrow_mut().machine_gone(&machine, now, dice);
                        self.put_kube(due);
                    }
                }
            }
            Event::Arrives(call) => {
                self.steps += 1;
                self.arrive(call);
            }
            Event::Returns(call) => self.bring_back(call),
            Event::Process(process, event) => self.process_event(process, event),
            Event::Starts(number) => self.start_process(number),
            Event::Thaws(number) => {
                if let Some(replica) = self.replicas.get_mut(usize::from(number))
                    && replica.frozen_until.is_some_and(|it| it <= now)
                {
                    replica.frozen_until = None;
                }
            }
            Event::FaultEnds(fault) => self.lift(fault),
        }
    }

    fn process_event(&mut self, id: ProcessId, event: ProcessEvent) {
        let now = self.now();
        let Some(at) = self
            .replicas
            .iter()
            .position(|it| it.process.as_ref().is_some_and(|process| process.id == id))
        else {
            return;
        };
        if let Some(until) = self.replicas[at].frozen_until {
            self.put(until, Event::Process(id, event));
            return;
        }
        let Some(process) = self.replicas[at].process.as_mut() else { return };
        let mut due = Vec::new();
        let mut news = Vec::new();
        match &event {
            ProcessEvent::Bookmarks => due.push(process.bookmarks(now)),
            ProcessEvent::Deliver(resource) => {
                self.steps += 1;
                let more = process.deliver(*resource, &self.kube.borrow().server);
                due.extend(process.stir(now));
                if more {
                    let at = self.weather.hears_at(*resource, now, &mut self.dice.watch);
                    due.push((at, event.clone()));
                }
            }
            ProcessEvent::Turn
            | ProcessEvent::Renew
            | ProcessEvent::Expire
            | ProcessEvent::GiveUp(..) => {
                (due, news) = process.on(&event, &mut self.executor, now);
            }
        }
        let number = process.number;
        if let ProcessEvent::Deliver(resource) = event {
            self.forget_told(resource);
        }
        for (at, event) in due {
            self.put(at, Event::Process(id, event));
        }
        self.tell_news(number, news);
    }

    /// The API server need not remember what every process has heard of.
    fn forget_told(&mut self, resource: Resource) {
        let processes = self.replicas.iter().filter_map(|it| it.process.as_ref());
        let told = processes.filter_map(|it| it.told(resource)).min();
        if let Some(told) = told {
            self.kube.borrow_mut().server.forget_until(resource, told);
        }
    }

    /// Everything that can go on without time passing goes on.
    fn settle(&mut self) {
        loop {
            let frozen: Vec<ProcessId> = self
                .replicas
                .iter()
                .filter(|it| it.frozen_until.is_some())
                .filter_map(|it| it.process.as_ref().map(|it| it.id))
                .collect();
            let mut moved = self.executor.run(|it| frozen.contains(&it));
            for number in 0..self.replicas.len() {
                moved |= self.collect(number);
            }
            for (call, process, what) in self.desk.take() {
                moved = true;
                self.depart(call, process, what);
            }
            self.take_steps();
            if !moved {
                return;
            }
        }
    }

    fn collect(&mut self, at: usize) -> bool {
        let now = self.now();
        let Some(process) = self.replicas.get_mut(at).and_then(|it| it.process.as_mut()) else {
            return false;
        };
        let (id, number) = (process.id, process.number);
        let (due, news) = process.collect(&mut self.executor, now);
        let moved = !due.is_empty() || !news.is_empty();
        for (at, event) in due {
            self.put(at, Event::Process(id, event));
        }
        self.tell_news(number, news);
        moved
    }

    fn tell_news(&mut self, number: u8, news: Vec<News>) {
        for it in news {
            let fact = match it {
                News::Turned(turn) => Fact::Turned(tell::turned(&turn)),
                News::Leads => Fact::Replica { number, state: ReplicaState::Leads },
                News::Follows => Fact::Replica { number, state: ReplicaState::Follows },
            };
            self.tell(Actor::Operator(number), fact);
        }
    }

    /// What has happened goes to whoever watches: the laws at once, processes some time later.
    fn take_steps(&mut self) {
        for step in self.source.take() {
            self.hash.add(&step);
            let number = self.next_step();
            if let Some(laws) = &mut self.laws {
                let found = laws.see(&step).into_iter();
                self.broken.extend(found.map(|violation| Broken { step: number, violation }));
            }
            if let Fact::Stored { resource, .. } | Fact::Removed { resource, .. } = &step.fact {
                self.announce(*resource);
            }
            self.trace.push(step);
            // In one go, and not step by step.
            if let Some(keeps) = self.keeps.filter(|_| self.broken.is_empty())
                && self.trace.len() >= keeps.saturating_mul(2)
            {
                let ends = self.trace.len() - keeps;
                self.trace.drain(..ends);
                self.dropped += ends;
            }
        }
    }

    fn announce(&mut self, resource: Resource) {
        let now = self.now();
        if watched(resource).is_none() {
            self.kube.borrow_mut().server.compact(resource);
            return;
        }
        let revision = self.kube.borrow().server.revision();
        let mut due = Vec::new();
        for process in self.replicas.iter_mut().filter_map(|it| it.process.as_mut()) {
            if process.hears_of(resource, revision) {
                let at = self.weather.hears_at(resource, now, &mut self.dice.watch);
                due.push((at, Event::Process(process.id, ProcessEvent::Deliver(resource))));
            }
        }
        for (at, event) in due {
            self.put(at, event);
        }
    }

    fn start_process(&mut self, number: u8) {
        let now = self.now();
        let Some(replica) = self.replicas.get_mut(usize::from(number)) else { return };
        if replica.process.is_some() {
            return;
        }
        self.processes += 1;
        let id = ProcessId(self.processes);
        let wire = Wire { desk: self.desk.clone(), process: id };
        let clock = LocalClock::new(Rc::clone(&self.clock), replica.wrong_by);
        let config = config(&self.simulation, number);
        let process = Process::new(number, wire, config, self.simulation.kubernetes, clock);
        let begins = Process::begins(now);
        replica.process = Some(process);
        for (at, event) in begins {
            self.put(at, Event::Process(id, event));
        }
        self.tell(Actor::Operator(number), Fact::Replica { number, state: ReplicaState::Started });
        for (resource, _) in WATCHED {
            self.announce(resource);
        }
    }

    /// The process is gone, and all that it had in mind.
    fn crash(&mut self, number: u8, down: SignedDuration) {
        let now = self.now();
        let Some(replica) = self.replicas.get_mut(usize::from(number)) else { return };
        let Some(process) = replica.process.take() else { return };
        replica.frozen_until = None;
        self.executor.kill(process.id);
        self.tell(Actor::Operator(number), Fact::Replica { number, state: ReplicaState::Crashed });
        self.put(after(now, down), Event::Starts(number));
    }

    fn put(&mut self, at: Timestamp, event: Event) {
        self.queued += 1;
        self.queue.insert((at, self.queued), event);
    }

    fn put_kube(&mut self, due: crate::kube::Due) {
        for (at, event) in due {
            self.put(at, Event::Kube(event));
        }
    }

    fn put_region(&mut self, due: crate::region::Due) {
        for (at, event) in due {
            self.put(at, Event::Region(event));
        }
    }

    fn tell(&mut self, by: Actor, fact: Fact) {
        self.source.push(Step { at: self.now(), by, fact });
    }
}

impl fmt::Debug for World {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("World")
            .field("now", &self.now())
            .field("queue", &self.queue.len())
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// What a replica is told when it starts.
fn config(simulation: &Simulation, number: u8) -> Config {
    use nodemolt_core::bootstrap::{Cluster, IpFamily};
    Config {
        me: format!("operator-{number}"),
        cluster: Cluster {
            name: simulation.cluster.clone(),
            endpoint: "https://kubernetes.sim.internal".to_owned(),
            // "simulated", in base64.
            certificate_authority: "c2ltdWxhdGVk".to_owned(),
            service_cidr: Some("10.100.0.0/16".to_owned()),
            dns: Vec::new(),
            ip_family: IpFamily::V4,
        },
        region: simulation.region.clone(),
        account: Some(simulation.account.clone()),
        // Nobody else moves nodes in here.
        groups: [nodemolt_engine::KARPENTER_CLASS_GROUP.to_owned()].into(),
    }
}
