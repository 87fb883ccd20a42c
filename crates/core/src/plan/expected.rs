//! How long does all of it take?
//!
//! `those that go × budgets × windows × how long one took → how many, how many at once, how long`
//!
//! It is gone through as it would go if each replacement took as long as they took here so far: whoever has room
//! begins, a batch is followed by its cooldown, and nobody begins while a window is closed. Left out is what nobody
//! knows: what a person has to lift, and whoever waits for it; what fails and is tried again; what changes meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{Fleet, Plan, WaitFor, Waiting};
use crate::budget::{
    Act, BudgetId, ClassRule, Limits, Measured, Member, Opening, PoolBudget, Room, Unit,
    Unreadable, UsedBy, pool_allows,
};
use crate::replace::Phase;

/// How long all of this takes, if it goes on as it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    pub nodes: usize,
    /// The most that go at the same time.
    pub at_once: usize,
    pub duration: SignedDuration,
}

impl Expected {
    /// `4 nodes, 2 at once`.
    pub fn whom(&self) -> String {
        let noun = if self.nodes == 1 { "node" } else { "nodes" };
        format!("{} {noun}, {} at once", self.nodes, self.at_once)
    }
}

/// So many beginnings and ends are gone through; what comes after goes on as they went. Calendars are slow.
const STEPS_MAX: usize = 200;

/// `None` before anything was measured, and where nobody goes whom time or progress lets go. Those that are `stuck`
/// have begun, and no time lets them go on: they keep what they have, and whoever counts on them waits.
pub fn expected(
    fleet: &Fleet,
    plan: &Plan,
    rooms: &Measured,
    limits: &Limits,
    stuck: &BTreeSet<String>,
    now: Timestamp,
) -> Option<Expected> {
    let round = round(fleet)?;
    let mut course = Course::of(rooms, limits, stuck, round, now);
    let going: BTreeSet<&str> =
        plan.under_way.iter().chain(plan.start.iter().map(|it| &it.node)).map(|it| &**it).collect();
    let member = |name: &str| fleet.nodes.get(name).map(|it| &it.member);
    for name in plan.under_way.difference(stuck) {
        // What it uses is in the rooms already.
        course.starts(Vec::new(), usize::from(member(name).is_some()), now);
    }
    for start in &plan.start {
        let Some(member) = member(&start.node) else { continue };
        let needs = course.needs(rooms, &start.node, member);
        course.starts(needs, 1, now);
    }
    let mut shared: BTreeMap<Shared<'_>, usize> = BTreeMap::new();
    for name in &plan.order {
        let waiting = plan.waiting.get(name).filter(|it| in_time(it, stuck));
        let Some((waiting, member)) = waiting.zip(member(name)) else { continue };
        let mut needs = course.needs(rooms, name, member);
        for (what, by) in waiting.all().filter_map(sharing) {
            let slot = *shared.entry(what).or_insert_with(|| {
                let slot = course.slots.len();
                course.slots.push(Slot::one());
                if going.contains(by) {
                    course.starts(vec![(slot, 1)], 0, now);
                }
                slot
            });
            needs.push((slot, 1));
        }
        course.waits(member.class.as_deref(), needs);
    }
    course.run(now)
}

/// How long one replacement takes: the sum of its phases, each as it was measured. `None` before that.
pub fn round(fleet: &Fleet) -> Option<SignedDuration> {
    [Phase::Launching, Phase::Joining, Phase::Settling, Phase::Draining, Phase::Terminating]
        .into_iter()
        .try_fold(SignedDuration::ZERO, |sum, it| {
            let phase = *fleet.pace.get(&it)?;
            Some(sum.saturating_add(phase.max(SignedDuration::ZERO)))
        })
}

/// Whether time that is known and others' progress let it go.
fn in_time(waiting: &Waiting, stuck: &BTreeSet<String>) -> bool {
    let counts_on_stuck = |it: &WaitFor| sharing(it).is_some_and(|(_, by)| stuck.contains(by));
    waiting.all().all(|it| {
        if counts_on_stuck(it) {
            return false;
        }
        let timed = matches!(it, WaitFor::Window { .. } | WaitFor::Budget(_));
        it.lifted_by_progress() || (timed && it.ends_at().is_some())
    })
}

/// What two nodes may not touch at once, whatever budgets say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shared<'a> {
    Pdb(&'a str),
    Workload(&'a str),
    Successor(&'a str),
}

/// And the node that has it now.
fn sharing(reason: &WaitFor) -> Option<(Shared<'_>, &str)> {
    if let WaitFor::SharedBudget { pdb, node, .. } = reason {
        Some((Shared::Pdb(pdb), node))
    } else if let WaitFor::SharedWorkload { workload, node, .. } = reason {
        Some((Shared::Workload(workload), node))
    } else if let WaitFor::Succession { node } = reason {
        Some((Shared::Successor(node), node))
    } else {
        None
    }
}

/// The place of a slot, and how much of it.
type Needs = Vec<(usize, u64)>;

/// How it goes on from one moment.
struct Course<'a> {
    round: SignedDuration,
    slots: Vec<Slot<'a>>,
    gates: BTreeMap<&'a str, (&'a ClassRule, Opening)>,
    /// Those that are alike, in the order in which the first of each was asked.
    groups: Vec<Group<'a>>,
    known: BTreeMap<(Option<&'a str>, Needs), usize>,
    /// By when they end: what they give back, and how many nodes that is.
    runs: BTreeMap<Timestamp, Vec<(Needs, usize)>>,
    going: usize,
}

struct Group<'a> {
    class: Option<&'a str>,
    needs: Needs,
    waiting: usize,
}

impl<'a> Course<'a> {
    fn of(
        rooms: &Measured,
        limits: &'a Limits,
        stuck: &BTreeSet<String>,
        round: SignedDuration,
        now: Timestamp,
    ) -> Self {
        let gates = limits.classes.iter();
        let gates = gates.map(|(class, rule)| (class.as_str(), (rule, rule.opening(now))));
        let mut course = Self {
            round,
            slots: rooms.rooms().iter().map(|it| Slot::of(it, limits)).collect(),
            gates: gates.collect(),
            groups: Vec::new(),
            known: BTreeMap::new(),
            runs: BTreeMap::new(),
            going: 0,
        };
        // Whoever was granted a place gives it back; whoever has it for another reason may keep it for ever.
        for (slot, room) in rooms.rooms().iter().enumerate() {
            for (name, used) in &room.used {
                if matches!(used.by, UsedBy::Grant { .. }) && !stuck.contains(name) {
                    course.ends(vec![(slot, used.weight)], 0, now);
                }
            }
        }
        course
    }

    /// What it takes when it begins. Whoever is away already does not count against itself.
    fn needs(&mut self, rooms: &Measured, name: &str, member: &Member) -> Needs {
        let needs = rooms.needs(member);
        for (slot, weight) in &needs {
            if rooms.rooms()[*slot].used.contains_key(name) {
                self.slots[*slot].used = self.slots[*slot].used.saturating_sub(*weight);
            }
        }
        needs
    }

    fn waits(&mut self, class: Option<&'a str>, needs: Needs) {
        let at = *self.known.entry((class, needs)).or_insert_with_key(|(class, needs)| {
            self.groups.push(Group { class: *class, needs: needs.clone(), waiting: 0 });
            self.groups.len() - 1
        });
        self.groups[at].waiting += 1;
    }

    fn starts(&mut self, needs: Needs, nodes: usize, now: Timestamp) {
        for (slot, weight) in &needs {
            self.slots[*slot].take(*weight);
        }
        self.ends(needs, nodes, now);
    }

    fn ends(&mut self, needs: Needs, nodes: usize, now: Timestamp) {
        self.going += nodes;
        let at = now.saturating_add(self.round).unwrap_or(Timestamp::MAX);
        self.runs.entry(at).or_default().push((needs, nodes));
    }

    fn run(mut self, now: Timestamp) -> Option<Expected> {
        let (mut at, mut last, mut done, mut at_once, mut over) = (now, now, 0, 0, false);
        for _ in 0..STEPS_MAX {
            self.begin(at);
            at_once = at_once.max(self.going);
            let ends = self.runs.keys().next().copied();
            let Some(next) = ends.into_iter().chain(self.opens(at)).min() else {
                over = true;
                break;
            };
            at = next;
            for (needs, nodes) in self.runs.remove(&at).into_iter().flatten() {
                for (slot, weight) in needs {
                    self.slots[slot].give_back(weight, at);
                }
                if nodes > 0 {
                    (last, done, self.going) = (at, done + nodes, self.going - nodes);
                }
            }
        }
        if done == 0 {
            return None;
        }
        let mut expected = Expected { nodes: done, at_once, duration: last.duration_since(now) };
        // Whoever waits when nothing happens any more waits for what no time lifts.
        if !over {
            let left = self.groups.iter().map(|it| it.waiting).sum::<usize>() + self.going;
            expected.nodes += left;
            let whole = |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
            let seconds = expected.duration.as_secs().saturating_mul(whole(expected.nodes));
            expected.duration = SignedDuration::from_secs(seconds / whole(done));
        }
        Some(expected)
    }

    /// Whoever has room now.
    fn begin(&mut self, at: Timestamp) {
        self.slots.iter_mut().for_each(|it| it.wait(at));
        for group in 0..self.groups.len() {
            while self.groups[group].waiting > 0 && self.fits(group, at) {
                self.groups[group].waiting -= 1;
                self.starts(self.groups[group].needs.clone(), 1, at);
            }
        }
    }

    fn fits(&mut self, group: usize, at: Timestamp) -> bool {
        let group = &self.groups[group];
        if !group.needs.iter().all(|(slot, weight)| self.slots[*slot].takes(*weight)) {
            return false;
        }
        let gate = group.class.and_then(|it| self.gates.get_mut(it));
        let Some((rule, opening)) = gate else { return true };
        let (Opening::Open { until } | Opening::Closed { opens_at: until, .. }) = opening;
        if until.is_some_and(|it| it <= at) {
            *opening = rule.opening(at);
        }
        matches!(opening, Opening::Open { .. })
    }

    /// When time lets the next one begin who waits for that.
    fn opens(&self, now: Timestamp) -> Option<Timestamp> {
        let waiting = self.groups.iter().filter(|it| it.waiting > 0);
        let times = waiting.flat_map(|it| {
            let slots = it.needs.iter().filter_map(|(slot, _)| self.slots[*slot].opens());
            let gate = it.class.and_then(|it| self.gates.get(it)).and_then(|it| match &it.1 {
                Opening::Closed { opens_at, .. } => *opens_at,
                Opening::Open { .. } => None,
            });
            slots.chain(gate)
        });
        // Nobody looks at a window that has opened before there is room.
        times.filter(|it| *it > now).min()
    }
}

/// What a pool says of itself.
type Budgets<'a> = &'a [Result<PoolBudget, Unreadable>];

/// A budget, as it is used up and given back.
struct Slot<'a> {
    allowed: u64,
    at_least_one: bool,
    used: u64,
    batch: Option<Batch>,
    /// Of a pool whose schedule holds it until then: its budgets, and of how many nodes.
    closed: Option<(Timestamp, Budgets<'a>, u64)>,
}

/// So many begin, all of them end, and then there is a rest.
struct Batch {
    size: u64,
    left: u64,
    cooldown: SignedDuration,
    /// Sizes of what has gone are not known any more: it all goes at once.
    at_once: bool,
    open: u64,
    rests_until: Option<Timestamp>,
}

impl<'a> Slot<'a> {
    fn one() -> Self {
        Self { allowed: 1, at_least_one: false, used: 0, batch: None, closed: None }
    }

    fn of(room: &Room, limits: &'a Limits) -> Self {
        let granted = |it: &&crate::budget::Use| matches!(it.by, UsedBy::Grant { .. });
        let batch = room.batch().map(|(size, left, cooldown)| Batch {
            size,
            left,
            cooldown,
            at_once: room.unit == Unit::Cpu,
            open: u64::try_from(room.used.values().filter(granted).count()).unwrap_or(u64::MAX),
            rests_until: room.rests_until,
        });
        let pool =
            if let BudgetId::Pool { name } = &room.id { limits.pools.get(name) } else { None };
        let closed = room.opens_at.zip(pool).map(|(at, it)| (at, it.as_slice(), room.total));
        let (allowed, at_least_one) = (room.allowed, room.at_least_one);
        Self { allowed, at_least_one, used: room.used_sum(), batch, closed }
    }

    fn takes(&self, weight: u64) -> bool {
        let rests = self.batch.as_ref().is_some_and(|it| it.left == 0 || it.rests_until.is_some());
        let fits = self.used.saturating_add(weight) <= self.allowed
            || (self.at_least_one && self.used == 0);
        fits && !rests
    }

    fn take(&mut self, weight: u64) {
        self.used = self.used.saturating_add(weight);
        if let Some(batch) = &mut self.batch {
            batch.left = batch.left.saturating_sub(1);
            batch.open += 1;
        }
    }

    fn give_back(&mut self, weight: u64, at: Timestamp) {
        self.used = self.used.saturating_sub(weight);
        let Some(batch) = &mut self.batch else { return };
        batch.open = batch.open.saturating_sub(1);
        if batch.at_once {
            batch.left = 0;
        }
        if batch.open == 0 && batch.left == 0 {
            let until = at.saturating_add(batch.cooldown).unwrap_or(Timestamp::MAX);
            batch.rests_until = Some(until);
        }
    }

    /// What time has done by then.
    fn wait(&mut self, at: Timestamp) {
        if let Some((_, pool, total)) = self.closed.filter(|it| it.0 <= at) {
            let then = pool_allows(pool, Act::Replace, total, at);
            let (allowed, until) = then.map_or((u64::MAX, None), |it| (it.0, it.1));
            self.allowed = allowed;
            self.closed = until.filter(|it| *it > at).map(|it| (it, pool, total));
        }
        if let Some(batch) = &mut self.batch
            && batch.rests_until.is_some_and(|it| it <= at)
        {
            (batch.left, batch.rests_until) = (batch.size, None);
        }
    }

    fn opens(&self) -> Option<Timestamp> {
        let rest = self.batch.as_ref().and_then(|it| it.rests_until);
        rest.into_iter().chain(self.closed.map(|it| it.0)).min()
    }
}
