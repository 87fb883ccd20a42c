//! How does one of us run?
//!
//! The driver around the engine, as the operator's own: a turn at most once a second, hands beside it, the
//! lease apart from both, and eyes that are fed by a watch per kind. Nothing in here knows what the
//! engine decides.
//!
//! A process that crashes is dropped with all of this, and its replica starts another one.

mod watch;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::Adapter;
use nodemolt_cluster::transport::Resource;
use nodemolt_engine::port::{Cluster as _, ClusterError, Leadership};
use nodemolt_engine::{
    Act, Clock, Config, Done, Errand, Hands, Intent, Memory, ObserveError, Turn,
};

use crate::desk::Wire;
use crate::executor::{Executor, ProcessId, TaskId};
use watch::Watch;

/// The engine is woken at most this often.
const TURNS_APART: SignedDuration = SignedDuration::from_secs(1);

/// A third of what a lease lasts: two renewals may fail.
const RENEWALS_APART: SignedDuration = SignedDuration::from_secs(5);

/// A watch says this often that there is nothing new.
const BOOKMARKS_APART: SignedDuration = SignedDuration::from_secs(10);

/// What is due in a process, and when by the world's clock.
pub(crate) type Due = Vec<(Timestamp, ProcessEvent)>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProcessEvent {
    Turn,
    Renew,
    /// The lease may have run out.
    Expire,
    /// A hand has had its time.
    GiveUp(Intent, TaskId),
    Bookmarks,
    Deliver(Resource),
}

/// The time as a process knows it: the world's, and how wrong its clock is.
#[derive(Debug, Clone)]
pub(crate) struct LocalClock {
    world: Rc<Cell<Timestamp>>,
    wrong_by: Rc<Cell<SignedDuration>>,
}

impl LocalClock {
    pub(crate) fn new(world: Rc<Cell<Timestamp>>, wrong_by: SignedDuration) -> Self {
        Self { world, wrong_by: Rc::new(Cell::new(wrong_by)) }
    }

    pub(crate) fn set_wrong_by(&self, wrong_by: SignedDuration) {
        self.wrong_by.set(wrong_by);
    }
}

impl Clock for LocalClock {
    fn now(&self) -> Timestamp {
        after(self.world.get(), self.wrong_by.get())
    }
}

pub(crate) fn after(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// What a future of ours came to.
enum Finished {
    Turn(Box<Memory>, Result<Box<Turn>, ObserveError>),
    Hand(Intent, Box<Done>),
    Renewal(Result<Leadership, ClusterError>),
}

/// What the world should know of what a process did.
#[derive(Debug)]
pub(crate) enum News {
    Turned(Box<Turn>),
    Leads,
    Follows,
}

struct Flying {
    task: TaskId,
    act: Rc<Act>,
}

/// One life of one replica.
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pub(crate) number: u8,
    pub(crate) clock: LocalClock,
    adapter: Rc<Adapter<Wire>>,
    config: Rc<Config>,
    /// A turn has it where it is not here.
    memory: Option<Box<Memory>>,
    /// What came while a turn had it.
    backlog: Vec<(Rc<Act>, Done)>,
    hands: Hands,
    flying: BTreeMap<Intent, Flying>,
    turning: Option<TaskId>,
    turn_due: Option<Timestamp>,
    turned_at: Option<Timestamp>,
    wakes_at: Option<Timestamp>,
    /// Something has changed since the last turn began.
    stirred: bool,
    renewing: bool,
    /// By its own clock.
    leads_until: Option<Timestamp>,
    told_leadership: Option<Leadership>,
    watches: BTreeMap<Resource, Watch>,
    finished: Rc<RefCell<Vec<Finished>>>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Process")
            .field("number", &self.number)
            .field("leads_until", &self.leads_until)
            .finish_non_exhaustive()
    }
}

impl Process {
    pub(crate) fn new(
        number: u8,
        wire: Wire,
        config: Config,
        kubernetes: nodemolt_core::lookup::Minor,
        clock: LocalClock,
    ) -> Self {
        let id = wire.process;
        let adapter = Adapter::new(wire);
        adapter.kubernetes(kubernetes);
        Self {
            id,
            number,
            clock,
            adapter: Rc::new(adapter),
            config: Rc::new(config),
            memory: Some(Box::default()),
            backlog: Vec::new(),
            hands: Hands::default(),
            flying: BTreeMap::new(),
            turning: None,
            turn_due: None,
            turned_at: None,
            wakes_at: None,
            stirred: false,
            renewing: false,
            leads_until: None,
            told_leadership: None,
            watches: watch::all(),
            finished: Rc::default(),
        }
    }

    /// What it begins with.
    pub(crate) fn begins(now: Timestamp) -> Due {
        vec![(now, ProcessEvent::Renew), (after(now, BOOKMARKS_APART), ProcessEvent::Bookmarks)]
    }

    pub(crate) fn leads(&self) -> bool {
        self.leads_until.is_some_and(|until| self.clock.now() < until)
    }

    /// What counts as now for all that is decided and remembered. The lease alone goes by the local clock.
    fn now(&self) -> Timestamp {
        nodemolt_engine::now(self.clock.now(), self.adapter.view().server_time)
    }

    /// What it knows, unless it is turning.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.memory.as_deref()
    }

    pub(crate) fn on(
        &mut self,
        event: &ProcessEvent,
        executor: &mut Executor,
        now: Timestamp,
    ) -> (Due, Vec<News>) {
        let mut due = Vec::new();
        let mut news = Vec::new();
        match event {
            ProcessEvent::Turn => {
                // One that an earlier one was put before is of no account any more.
                if self.turn_due.is_some_and(|it| it <= now) {
                    self.turn_due = None;
                    self.begin_turn(executor, now);
                }
            }
            ProcessEvent::Renew => {
                self.begin_renewal(executor);
                due.push((after(now, RENEWALS_APART), ProcessEvent::Renew));
            }
            ProcessEvent::Expire => {
                if self.leads_until.is_some() && !self.leads() {
                    self.resign(executor, &mut news);
                }
            }
            ProcessEvent::GiveUp(intent, task) => {
                if self.flying.get(intent).is_some_and(|it| it.task == *task) {
                    executor.cancel(*task);
                    self.land(intent, Done::Late);
                }
            }
            // The world has the objects, and calls `deliver` and `bookmarks`.
            ProcessEvent::Bookmarks | ProcessEvent::Deliver(_) => {}
        }
        self.next_turn(now, &mut due);
        (due, news)
    }

    /// Takes in what its futures came to.
    pub(crate) fn collect(&mut self, executor: &mut Executor, now: Timestamp) -> (Due, Vec<News>) {
        let mut due = Vec::new();
        let mut news = Vec::new();
        let finished = std::mem::take(&mut *self.finished.borrow_mut());
        for it in finished {
            match it {
                Finished::Turn(memory, result) => {
                    self.turning = None;
                    self.memory = Some(memory);
                    self.remember();
                    match result {
                        Ok(turn) => self.turned(turn, executor, now, &mut due, &mut news),
                        // What was missing comes by a watch, or by asking again.
                        Err(_) => self.stirred = true,
                    }
                }
                Finished::Hand(intent, done) => self.land(&intent, *done),
                Finished::Renewal(result) => {
                    self.renewing = false;
                    self.renewed(result, executor, now, &mut due, &mut news);
                }
            }
        }
        self.next_turn(now, &mut due);
        (due, news)
    }

    fn turned(
        &mut self,
        mut turn: Box<Turn>,
        executor: &mut Executor,
        now: Timestamp,
        due: &mut Due,
        news: &mut Vec<News>,
    ) {
        // What is due by the engine's time is due as much later by the world's.
        let wait = |it: Timestamp| it.duration_since(turn.at).max(TURNS_APART);
        self.wakes_at = turn.wake_at.map(|it| after(now, wait(it)));
        if self.leads() {
            for act in &turn.acts {
                self.perform(act.clone(), executor, now, due);
            }
        } else {
            turn.acts.clear();
        }
        news.push(News::Turned(turn));
    }

    fn begin_turn(&mut self, executor: &mut Executor, now: Timestamp) {
        if self.turning.is_some() || !self.leads() {
            return;
        }
        let Some(mut memory) = self.memory.take() else { return };
        self.hands.turn();
        self.stirred = false;
        self.wakes_at = None;
        self.turned_at = Some(now);
        let (config, adapter) = (Rc::clone(&self.config), Rc::clone(&self.adapter));
        let finished = Rc::clone(&self.finished);
        let (clock, at) = (self.clock.clone(), self.now());
        let task = executor.spawn(self.id, async move {
            let result = nodemolt_engine::turn(&mut memory, &config, &*adapter, &clock, at).await;
            let result = result.map(Box::new);
            finished.borrow_mut().push(Finished::Turn(memory, result));
        });
        self.turning = Some(task);
    }

    fn perform(&mut self, act: Act, executor: &mut Executor, now: Timestamp, due: &mut Due) {
        if !self.hands.begin(&act.intent) {
            return;
        }
        let act = Rc::new(act);
        let (config, adapter) = (Rc::clone(&self.config), Rc::clone(&self.adapter));
        let (clock, finished, errand) =
            (self.clock.clone(), Rc::clone(&self.finished), Rc::clone(&act));
        let task = executor.spawn(self.id, async move {
            let cloud = adapter.transport();
            let done = nodemolt_engine::perform(&errand, &config, cloud, &*adapter, &clock).await;
            finished.borrow_mut().push(Finished::Hand(errand.intent.clone(), Box::new(done)));
        });
        due.push((after(now, act.allowed), ProcessEvent::GiveUp(act.intent.clone(), task)));
        self.flying.insert(act.intent.clone(), Flying { task, act });
    }

    fn land(&mut self, intent: &Intent, done: Done) {
        let Some(Flying { act, .. }) = self.flying.remove(intent) else { return };
        self.hands.finish(intent);
        self.backlog.push((act, done));
        self.stirred = true;
        self.remember();
    }

    fn remember(&mut self) {
        let now = self.now();
        let Some(memory) = self.memory.as_deref_mut() else { return };
        for (act, done) in self.backlog.drain(..) {
            memory.done(&act, done, now);
        }
        if let Some(leadership) = self.told_leadership.take() {
            memory.lead(&leadership);
        }
    }

    fn begin_renewal(&mut self, executor: &mut Executor) {
        if std::mem::replace(&mut self.renewing, true) {
            return;
        }
        let (config, adapter) = (Rc::clone(&self.config), Rc::clone(&self.adapter));
        let finished = Rc::clone(&self.finished);
        let now = self.clock.now();
        executor.spawn(self.id, async move {
            let result = adapter.lead(&config.me, now).await;
            finished.borrow_mut().push(Finished::Renewal(result));
        });
    }

    fn renewed(
        &mut self,
        result: Result<Leadership, ClusterError>,
        executor: &mut Executor,
        now: Timestamp,
        due: &mut Due,
        news: &mut Vec<News>,
    ) {
        match result {
            Ok(Leadership::Leads { until, transitions }) => {
                if self.leads_until.is_none() {
                    news.push(News::Leads);
                    self.stirred = true;
                }
                self.leads_until = Some(until);
                self.told_leadership = Some(Leadership::Leads { until, transitions });
                let left = until.duration_since(self.clock.now());
                due.push((after(now, left.max(SignedDuration::ZERO)), ProcessEvent::Expire));
                self.remember();
            }
            Ok(leadership @ Leadership::Follows { .. }) => {
                self.told_leadership = Some(leadership);
                if self.leads_until.is_some() {
                    self.resign(executor, news);
                }
            }
            // The lease that we have runs on, and out.
            Err(_) => {}
        }
    }

    /// Who does not lead has no hands, and whatever was remembered is old by the time it leads again.
    fn resign(&mut self, executor: &mut Executor, news: &mut Vec<News>) {
        self.leads_until = None;
        for (_, flying) in std::mem::take(&mut self.flying) {
            executor.cancel(flying.task);
        }
        if let Some(task) = self.turning.take() {
            executor.cancel(task);
        }
        self.hands = Hands::default();
        self.backlog.clear();
        self.wakes_at = None;
        self.memory = Some(Box::default());
        news.push(News::Follows);
    }

    /// Puts the next turn on the calendar, if there is a reason for one.
    fn next_turn(&mut self, now: Timestamp, due: &mut Due) {
        let wanted = if self.stirred { Some(now) } else { self.wakes_at };
        let Some(wanted) = wanted else { return };
        // Looked at after every event: what is on the calendar by then is not put there again.
        if self.turn_due.is_some_and(|it| it <= wanted.max(now)) {
            return;
        }
        if self.turning.is_some() || !self.leads() {
            return;
        }
        let earliest = self.turned_at.map_or(now, |it| after(it, TURNS_APART));
        let at = wanted.max(earliest).max(now);
        if self.turn_due.is_none_or(|it| at < it) {
            self.turn_due = Some(at);
            due.push((at, ProcessEvent::Turn));
        }
    }
}

/// Whether an act changes the world, or merely asks.
pub(crate) fn commands(act: &Act) -> bool {
    !matches!(act.errand, Errand::Ask(_))
}
