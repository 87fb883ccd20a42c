//! Is there room for one more?
//!
//! A room is one budget at one moment: what it allows, who uses it. Used is what is unavailable for any
//! cause, and what is granted. A node that is unavailable does not count against its own replacement. Shares
//! are of the fleet as it is without those that take over from nodes which are still there.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jiff::{SignedDuration, Timestamp};

use super::{
    Act, Amount, BudgetId, ClassRule, Concurrency, DisruptionBudget, Grant, Grants, Keep, Limits,
    Member, Standing, Unavailable, Unit, Unreadable, pool_allows,
};

/// All rooms for one act, and who is in which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    rooms: Vec<Room>,
    budgets: Budgets,
    /// For each budget the place of its room, if it has one.
    room_of: Vec<Option<usize>>,
}

/// One budget at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub id: BudgetId,
    pub unit: Unit,
    /// Of all nodes that it is about, in its unit.
    pub total: u64,
    pub allowed: u64,
    /// A share lets one go even where a node is more than the share.
    pub at_least_one: bool,
    pub used: BTreeMap<String, Use>,
    /// When time alone changes what it allows.
    pub opens_at: Option<Timestamp>,
    /// No start before this: a cooldown.
    pub rests_until: Option<Timestamp>,
    pub condition: Option<Condition>,
    pub gates_controller: bool,
    pub gates_people: bool,
    /// What has to stay available, of one that says so.
    pub keeps: Option<Amount>,
    /// So many may still begin in the batch that goes on, if batches are counted: whoever is away already
    /// begins all the same.
    batch_left: Option<u64>,
    /// How many that is of a whole batch, and how long it rests after it.
    batch: Option<(u64, SignedDuration)>,
    used_sum: u64,
    broken_sum: u64,
    /// Of those that are being deleted and were not granted it: they are still there.
    deleting_sum: u64,
    named: Named,
}

/// Those who use a room, as they are told to whoever is not one of them: found when somebody asks.
#[derive(Debug, Clone, Default)]
struct Named(OnceLock<Arc<[(String, UsedBy)]>>);

/// It follows from who uses the room, asked for or not.
impl PartialEq for Named {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Named {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// In the room's unit.
    pub weight: u64,
    pub by: UsedBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedBy {
    Grant { since: Timestamp },
    Unavailable(Unavailable),
}

/// What a person should know of a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Its selector matches no node: probably not what was meant.
    SelectsNothing,
    /// It counts as zero.
    Unreadable(Unreadable),
}

/// Why there is no room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    pub id: BudgetId,
    pub unit: Unit,
    pub allowed: u64,
    /// So many have to stay available, and so many there are, where that is why it allows none.
    pub keeps: Option<(u64, u64)>,
    pub used: u64,
    /// Who uses it, in the order of their names: shared by all that wait for it, as they are many.
    pub used_by: Arc<[(String, UsedBy)]>,
    /// When time alone may change it: a budget's schedule or a cooldown.
    pub opens_at: Option<Timestamp>,
    pub resting: bool,
    pub unreadable: Option<Unreadable>,
}

/// Those who use a room are named up to here.
const NAMED_MAX: usize = 10;

/// What every budget says now. Costs one look at each node for each `NodeDisruptionBudget`.
pub fn measure<'a>(
    members: impl IntoIterator<Item = (&'a str, &'a Member)>,
    limits: &Limits,
    grants: &Grants,
    act: Act,
    now: Timestamp,
) -> Measured {
    Counted::new(members, limits, grants, act).measure(limits, grants, act, now)
}

/// Whom each budget is about: what of its room does not change with the time.
#[derive(Debug)]
pub struct Counted {
    budgets: Budgets,
    open: BTreeMap<String, Grant>,
    /// Of each budget.
    crowds: Vec<Crowd>,
}

impl Counted {
    pub fn new<'a>(
        members: impl IntoIterator<Item = (&'a str, &'a Member)>,
        limits: &Limits,
        grants: &Grants,
        act: Act,
    ) -> Self {
        let budgets = Budgets::of(limits, act);
        let mut crowds: Vec<Crowd> = Vec::new();
        crowds.resize_with(budgets.len(), Crowd::default);
        for (name, member) in members {
            let by = match (grants.open.get(name), &member.standing) {
                (Some(grant), _) => Some(UsedBy::Grant { since: grant.since }),
                (None, Standing::Unavailable(why)) => Some(UsedBy::Unavailable(*why)),
                (None, Standing::Available | Standing::Outside) => None,
            };
            budgets.each_about(member, |at, unit| crowds[at].add(name, member, unit, by));
        }
        Self { budgets, open: grants.open.clone(), crowds }
    }

    /// Whether the same members would be counted in the same way.
    pub fn still(&self, limits: &Limits, grants: &Grants, act: Act) -> bool {
        self.open == grants.open && self.budgets == Budgets::of(limits, act)
    }

    /// What every budget says at this moment.
    pub fn measure(&self, limits: &Limits, grants: &Grants, act: Act, now: Timestamp) -> Measured {
        let budgets = self.budgets.clone();
        let mut measured = Measured { rooms: Vec::new(), room_of: Vec::new(), budgets };
        for (at, crowd) in self.crowds.iter().enumerate() {
            let room = measured.budgets.key(at).and_then(|key| {
                let mut room = furnish(key, crowd, limits, act, now)?;
                for (name, weight, by) in &crowd.users {
                    room.occupy(name, *weight, *by);
                }
                if let Key::Class(class) = key
                    && let Some(rule) = limits.classes.get(class)
                {
                    rest(&mut room, rule, class, grants, now);
                }
                Some(room)
            });
            measured.room_of.push(room.is_some().then_some(measured.rooms.len()));
            measured.rooms.extend(room);
        }
        measured
    }
}

/// All budgets, in the order of their rooms: which of them a node is in follows from what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Budgets {
    disruption: Vec<DisruptionBudget>,
    /// With the unit of each, and whether it says how many at once. In the order of their names.
    classes: Vec<(String, Unit, bool)>,
    /// In the order of their names.
    pools: Vec<String>,
    slots: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key<'a> {
    Disruption(usize),
    Class(&'a str),
    Serial,
    Pool(&'a str),
}

impl Budgets {
    fn of(limits: &Limits, act: Act) -> Self {
        let class = |(name, rule): (&String, &ClassRule)| {
            (name.clone(), rule.unit, rule.concurrency.is_some())
        };
        Self {
            disruption: limits.disruption_budgets.clone(),
            classes: limits.classes.iter().map(class).collect(),
            pools: limits.pools.keys().cloned().collect(),
            slots: act.takes_slots(),
        }
    }

    /// Those of classes, then the cluster's one slot, then those of pools.
    fn len(&self) -> usize {
        self.disruption.len() + self.classes.len() + 1 + self.pools.len()
    }

    fn key(&self, at: usize) -> Option<Key<'_>> {
        if at < self.disruption.len() {
            return Some(Key::Disruption(at));
        }
        let at = at - self.disruption.len();
        if let Some((class, _, _)) = self.classes.get(at) {
            return Some(Key::Class(class));
        }
        match at - self.classes.len() {
            0 => Some(Key::Serial),
            at => self.pools.get(at - 1).map(|it| Key::Pool(it)),
        }
    }

    fn each_about(&self, member: &Member, mut about: impl FnMut(usize, Unit)) {
        let mut slotted = false;
        for (at, budget) in self.disruption.iter().enumerate() {
            if budget.selects(&member.labels) || member.taken_from.contains(&budget.name) {
                about(at, Unit::Nodes);
                slotted |= budget.gates_controller;
            }
        }
        let first = self.disruption.len();
        let class = member.class.as_ref().filter(|_| self.slots);
        let class =
            class.and_then(|it| self.classes.binary_search_by(|known| known.0.cmp(it)).ok());
        if let Some(at) = class {
            let (_, unit, concurrency) = self.classes[at];
            about(first + at, unit);
            slotted |= concurrency;
        }
        let first = first + self.classes.len();
        // One of no pool and without a claim is moved by nobody of us: only what selects it counts it.
        let stranger = member.pool.is_none() && member.class.is_none();
        if self.slots && !slotted && !stranger {
            about(first, Unit::Nodes);
        }
        let pool = member.pool.as_ref().and_then(|it| self.pools.binary_search(it).ok());
        if let Some(at) = pool {
            about(first + 1 + at, Unit::Nodes);
        }
    }
}

/// Those that a budget is about.
#[derive(Debug, Default)]
struct Crowd {
    members: usize,
    total: u64,
    users: Vec<(String, u64, UsedBy)>,
}

impl Crowd {
    fn add(&mut self, name: &str, member: &Member, unit: Unit, by: Option<UsedBy>) {
        self.members += 1;
        let weight = weight(member, unit);
        // Whoever is outside, or there beside the node that it takes over from, adds nothing to the total;
        // they ask for room and use it like all others.
        if member.standing != Standing::Outside && !member.surge {
            self.total = self.total.saturating_add(weight);
        }
        self.users.extend(by.map(|it| (name.to_owned(), weight, it)));
    }
}

fn weight(member: &Member, unit: Unit) -> u64 {
    match unit {
        Unit::Nodes => 1,
        Unit::Cpu => member.cpu_millis,
    }
}

/// What a budget allows of so many. `None`: it allows anything, or is about nobody.
fn furnish(key: Key<'_>, crowd: &Crowd, limits: &Limits, act: Act, now: Timestamp) -> Option<Room> {
    let total = crowd.total;
    if crowd.members == 0 && !matches!(key, Key::Disruption(_)) {
        return None;
    }
    let empty = |id, allowed| Room {
        id,
        unit: Unit::Nodes,
        total,
        allowed,
        at_least_one: false,
        used: BTreeMap::new(),
        opens_at: None,
        rests_until: None,
        condition: None,
        gates_controller: true,
        gates_people: false,
        keeps: None,
        batch_left: None,
        batch: None,
        used_sum: 0,
        broken_sum: 0,
        deleting_sum: 0,
        named: Named::default(),
    };
    match key {
        Key::Serial => Some(empty(BudgetId::Serial, 1)),
        Key::Disruption(at) => {
            let budget = limits.disruption_budgets.get(at)?;
            let id = BudgetId::Disruption { name: budget.name.clone() };
            let (allowed, mut condition) = match &budget.keep {
                Ok(Keep::MaxUnavailable(amount)) => (amount.at_most(total), None),
                Ok(Keep::MinAvailable(amount)) => {
                    (total.saturating_sub(amount.at_least(total)), None)
                }
                Err(unreadable) => (0, Some(Condition::Unreadable(unreadable.clone()))),
            };
            if crowd.members == 0 && condition.is_none() {
                condition = Some(Condition::SelectsNothing);
            }
            let DisruptionBudget { gates_controller, gates_people, .. } = *budget;
            let keeps = match &budget.keep {
                Ok(Keep::MinAvailable(amount)) => Some(*amount),
                Ok(Keep::MaxUnavailable(_)) | Err(_) => None,
            };
            Some(Room { condition, gates_controller, gates_people, keeps, ..empty(id, allowed) })
        }
        Key::Class(class) => {
            let rule = limits.classes.get(class)?;
            let id = BudgetId::Class { policy: rule.policy.clone(), class: class.to_owned() };
            let (allowed, condition) = match class_allows(rule, total) {
                Ok(allowed) => (allowed, None),
                Err(unreadable) => (0, Some(Condition::Unreadable(unreadable))),
            };
            let share = !matches!(rule.concurrency, Some(Ok(Concurrency::Of(Amount::Count(_)))));
            // It has the cluster's slot, and nothing to rest from: there is no such room.
            if allowed == u64::MAX && !rule.cooldown.is_positive() {
                return None;
            }
            let at_least_one = rule.unit == Unit::Cpu && share && allowed > 0;
            Some(Room { unit: rule.unit, at_least_one, condition, ..empty(id, allowed) })
        }
        Key::Pool(name) => {
            let budgets = limits.pools.get(name)?;
            let (allowed, opens_at, unreadable) = pool_allows(budgets, act, total, now)?;
            let condition = unreadable.map(Condition::Unreadable);
            let id = BudgetId::Pool { name: name.to_owned() };
            Some(Room { opens_at, condition, ..empty(id, allowed) })
        }
    }
}

/// How many of a class at once: as many as it says, and no more than a batch has.
fn class_allows(rule: &ClassRule, total: u64) -> Result<u64, Unreadable> {
    let batch = rule.batch_max.clone().transpose()?;
    let amount = match rule.concurrency.clone().transpose()? {
        // Without a word of its own the class has the cluster's slot, and this room is for its rest.
        None => return Ok(batch.filter(|it| it.zero()).map_or(u64::MAX, |_| 0)),
        Some(Concurrency::Of(amount)) => amount,
        Some(Concurrency::Parallel) => batch.unwrap_or(Amount::BATCH_DEFAULT),
    };
    Ok(in_unit(amount, rule.unit, total)
        .min(batch.map_or(u64::MAX, |it| in_unit(it, rule.unit, total))))
}

/// A plain number where processors are counted is a number of processors.
fn in_unit(amount: Amount, unit: Unit, total: u64) -> u64 {
    match (amount, unit) {
        (Amount::Count(count), Unit::Cpu) => u64::from(count).saturating_mul(1000),
        (Amount::Count(_) | Amount::Percent(_), _) => amount.at_most(total),
    }
}

/// After a batch nothing starts until all of it has ended and the cooldown is over.
fn rest(room: &mut Room, rule: &ClassRule, class: &str, grants: &Grants, now: Timestamp) {
    if !rule.cooldown.is_positive() {
        return;
    }
    let after = |it: Timestamp| it.saturating_add(rule.cooldown).unwrap_or(Timestamp::MAX);
    let closed = grants.closed.iter().filter(|it| it.class == class);
    let open = room.used.values().filter_map(|it| match it.by {
        UsedBy::Grant { since } => Some((since, None)),
        UsedBy::Unavailable(_) => None,
    });
    let mut lives: Vec<(Timestamp, Option<Timestamp>)> =
        closed.map(|it| (it.since, Some(it.ended_at))).chain(open).collect();
    lives.sort_unstable();
    // The batch that goes on: those that began before the ones before them had ended and rested.
    let (mut started, mut open, mut last_ended) = (0_u64, 0_u64, None::<Timestamp>);
    for (since, ended_at) in lives {
        if open == 0 && last_ended.is_some_and(|it| since >= after(it)) {
            (started, last_ended) = (0, None);
        }
        started += 1;
        match ended_at {
            None => open += 1,
            Some(_) => last_ended = last_ended.max(ended_at),
        }
    }
    if open == 0 && last_ended.is_none_or(|it| now >= after(it)) {
        started = 0;
    }
    let size = match &rule.batch_max {
        _ if rule.unit == Unit::Cpu => u64::MAX,
        Some(Ok(amount)) => amount.at_most(room.total),
        Some(Err(_)) => 0,
        // A batch is what goes at once: one, or what the policy says.
        None if rule.concurrency.is_none() => 1,
        None => room.allowed,
    };
    room.batch = Some((size, rule.cooldown));
    let left = match rule.unit {
        // Sizes of what has gone are not known any more: a batch goes at once, then.
        Unit::Cpu if started > open => 0,
        Unit::Cpu => return,
        Unit::Nodes => size.saturating_sub(started),
    };
    if left == 0 && open == 0 {
        room.rests_until = last_ended.map(after).filter(|it| *it > now);
    } else {
        room.batch_left = Some(left);
    }
}

/// Who asks for room, and so who does not count against them.
#[derive(Clone, Copy)]
enum Whom {
    Us,
    /// Somebody who leads back from a candidate: what that broke does not count.
    Back,
    /// A person who deletes a node: others that are to be deleted do not count before it is their turn.
    People,
}

impl Room {
    /// How many more, in its unit.
    pub fn free(&self) -> u64 {
        let free = self.allowed.saturating_sub(self.used_sum);
        self.batch_left.map_or(free, |it| free.min(it))
    }

    /// Whether it would let nobody go any more, if all whom it lets go now went without one that follows, and one more: as
    /// many have to stay as there are then. Whoever goes is followed before it comes to that. The one more is for somebody
    /// who cannot be followed before it goes ([`Self::spares_one`]): others, who can be, must not use up its room.
    pub fn counts_heirs(&self) -> bool {
        let left = self.total.saturating_sub(self.allowed);
        let one_less = left.saturating_sub(1).max(1);
        let keeps = self.keeps.filter(|_| self.gates_controller);
        left > 0 && keeps.is_some_and(|it| it.at_least(one_less) >= one_less)
    }

    /// How many have to stay available, and of how many, where that is why it allows none.
    pub fn kept(&self) -> Option<(u64, u64)> {
        let keeps = self.keeps.filter(|_| self.allowed == 0 && self.total > 0);
        keeps.map(|it| (it.at_least(self.total), self.total))
    }

    /// Whether one may go without one that follows, while nobody else goes: it lets others go afterwards.
    pub fn spares_one(&self) -> bool {
        let left = self.total.saturating_sub(1);
        self.used_sum == 0 && self.keeps.is_none_or(|it| it.at_least(left) < left)
    }

    pub fn used_sum(&self) -> u64 {
        self.used_sum
    }

    /// Of one that rests after a batch: how many that is, how many may still begin in this one, and how long it rests.
    pub(crate) fn batch(&self) -> Option<(u64, u64, SignedDuration)> {
        let (size, cooldown) = self.batch?;
        let left = if self.rests_until.is_some() { 0 } else { self.batch_left.unwrap_or(size) };
        Some((size, left, cooldown))
    }

    fn occupy(&mut self, name: &str, weight: u64, by: UsedBy) {
        self.named = Named::default();
        if let Some(before) = self.used.insert(name.to_owned(), Use { weight, by }) {
            self.used_sum = self.used_sum.saturating_sub(before.weight);
            if let Some(sum) = self.sum_of(before.by) {
                *sum = sum.saturating_sub(before.weight);
            }
        }
        self.used_sum = self.used_sum.saturating_add(weight);
        if let Some(sum) = self.sum_of(by) {
            *sum = sum.saturating_add(weight);
        }
    }

    /// Where those are counted that do not hold everybody.
    fn sum_of(&mut self, by: UsedBy) -> Option<&mut u64> {
        match by {
            UsedBy::Unavailable(Unavailable::BrokenByCandidate) => Some(&mut self.broken_sum),
            UsedBy::Unavailable(Unavailable::Deleting) => Some(&mut self.deleting_sum),
            UsedBy::Unavailable(Unavailable::NotReady | Unavailable::Cordoned)
            | UsedBy::Grant { .. } => None,
        }
    }

    fn shortage(&self, name: &str, weight: u64, whom: Whom) -> Option<Shortage> {
        let own = self.used.get(name);
        let own_weight = own.map_or(0, |it| it.weight);
        let (excused, sum) = match whom {
            Whom::Us => (None, 0),
            Whom::Back => (Some(Unavailable::BrokenByCandidate), self.broken_sum),
            Whom::People => (Some(Unavailable::Deleting), self.deleting_sum),
        };
        let passes = |it: UsedBy| excused.is_some_and(|excused| it == UsedBy::Unavailable(excused));
        let own_excused = own.filter(|it| passes(it.by)).map_or(0, |it| it.weight);
        let used = self.used_sum.saturating_sub(own_weight);
        let used = used.saturating_sub(sum.saturating_sub(own_excused));
        let batch_full = self.batch_left == Some(0);
        let fits = !batch_full
            && (used.saturating_add(weight) <= self.allowed || (self.at_least_one && used == 0));
        if fits && self.rests_until.is_none() {
            return None;
        }
        let resting = fits && self.rests_until.is_some();
        let told = || {
            let others = self.used.iter();
            let others = others.filter(|(it, used)| it.as_str() != name && !passes(used.by));
            others.take(NAMED_MAX).map(|(it, used)| (it.clone(), used.by)).collect()
        };
        let used_by = match (own, excused) {
            (None, None) => Arc::clone(self.named.0.get_or_init(told)),
            (Some(_), _) | (_, Some(_)) => told(),
        };
        Some(Shortage {
            id: self.id.clone(),
            unit: self.unit,
            allowed: if batch_full { self.allowed.min(used) } else { self.allowed },
            keeps: self.kept(),
            used,
            used_by,
            opens_at: self.rests_until.or(self.opens_at),
            resting,
            unreadable: match &self.condition {
                Some(Condition::Unreadable(it)) => Some(it.clone()),
                Some(Condition::SelectsNothing) | None => None,
            },
        })
    }
}

impl Measured {
    pub fn rooms(&self) -> &[Room] {
        &self.rooms
    }

    pub fn rooms_of(&self, member: &Member) -> impl Iterator<Item = &Room> {
        self.places_of(member).into_iter().filter_map(|it| self.rooms.get(it))
    }

    /// The places of those that we wait for, in [`Self::rooms`], and how much of each it takes.
    pub(crate) fn needs(&self, member: &Member) -> Vec<(usize, u64)> {
        let needs = self.places_of(member).into_iter().filter_map(|at| {
            let room = self.rooms.get(at).filter(|it| it.gates_controller)?;
            Some((at, weight(member, room.unit)))
        });
        needs.collect()
    }

    fn places_of(&self, member: &Member) -> Vec<usize> {
        let mut places = Vec::new();
        self.budgets.each_about(member, |at, _| places.extend(self.room_of[at]));
        places
    }

    /// Every budget that has no room for this node now. `leads_back`: it runs a candidate that was
    /// halted, and what the candidate broke must not hold the way back.
    pub fn shortages(&self, node: &str, member: &Member, leads_back: bool) -> Vec<Shortage> {
        let whom = if leads_back { Whom::Back } else { Whom::Us };
        self.rooms_of(member)
            .filter(|it| it.gates_controller)
            .filter_map(|it| it.shortage(node, weight(member, it.unit), whom))
            .collect()
    }

    /// Those `NodeDisruptionBudgets` that a person who deletes this node has to wait for. Another one that
    /// is being deleted and waits as well holds nobody: two would wait for each other for ever. Whom nobody counts on is
    /// missing to nobody: one that was never set up may go, however few there are.
    pub fn shortages_for_people(&self, node: &str, member: &Member) -> Vec<Shortage> {
        let missed = member.standing != Standing::Outside;
        self.rooms_of(member)
            .filter(|it| it.gates_people && missed)
            .filter_map(|it| it.shortage(node, weight(member, it.unit), Whom::People))
            .collect()
    }

    /// Which of those that are gone and whom nobody follows is in a budget with this node that has no room for it beside them: the
    /// first of them.
    pub fn full_beside(&self, node: &str, member: &Member, gone: &[&Member]) -> Option<usize> {
        let places: Vec<Vec<usize>> = gone.iter().map(|it| self.places_of(it)).collect();
        let full = |at: usize| {
            let room = self.rooms.get(at).filter(|it| it.gates_controller)?;
            let own = room.used.get(node).map_or(0, |it| it.weight);
            let inside = || (0..gone.len()).filter(|it| places[*it].contains(&at));
            let weights = inside().map(|it| weight(gone[it], room.unit));
            let used = weights.fold(room.used_sum.saturating_sub(own), u64::saturating_add);
            let over = used.saturating_add(weight(member, room.unit)) > room.allowed;
            inside().next().filter(|_| over)
        };
        self.places_of(member).into_iter().find_map(full)
    }

    /// Count a grant that is about to be written.
    pub fn take(&mut self, node: &str, member: &Member, now: Timestamp) {
        for at in self.places_of(member) {
            if let Some(room) = self.rooms.get_mut(at) {
                let weight = weight(member, room.unit);
                room.occupy(node, weight, UsedBy::Grant { since: now });
                room.batch_left = room.batch_left.map(|it| it.saturating_sub(1));
            }
        }
    }
}
