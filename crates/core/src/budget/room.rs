//! Is there room for one more?
//!
//! A room is one budget at one moment: what it allows, who uses it. Used is what is unavailable for any
//! cause, and what is granted. A node that is unavailable does not count against its own replacement. Shares
//! are of the fleet as it is without those that take over from nodes which are still there.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    Act, Amount, BudgetId, ClassRule, Concurrency, DisruptionBudget, Grants, Keep, Limits, Member,
    Standing, Unavailable, Unit, Unreadable, pool_allows,
};

/// All rooms for one act, and who is in which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    rooms: Vec<Room>,
    /// For each node the places of its rooms.
    of: BTreeMap<String, Vec<usize>>,
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
    /// So many may still begin in the batch that goes on, if batches are counted: whoever is away already
    /// begins all the same.
    batch_left: Option<u64>,
    used_sum: u64,
    broken_sum: u64,
    /// Of those that are being deleted and were not granted it: they are still there.
    deleting_sum: u64,
}

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
    pub used: u64,
    /// Who uses it, in the order of their names.
    pub used_by: Vec<(String, UsedBy)>,
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
    let mut gathered = Gathered::default();
    for (name, member) in members {
        let mut slotted = false;
        for (at, budget) in limits.disruption_budgets.iter().enumerate() {
            if budget.selects(&member.labels) || member.taken_from.contains(&budget.name) {
                gathered.add(Key::Disruption(at), name, member, Unit::Nodes);
                slotted |= budget.gates_controller;
            }
        }
        let rule = member.class.as_ref().and_then(|it| limits.classes.get_key_value(it));
        if let Some((class, rule)) = rule.filter(|_| act.takes_slots()) {
            gathered.add(Key::Class(class), name, member, rule.unit);
            slotted |= rule.concurrency.is_some();
        }
        if act.takes_slots() && !slotted {
            gathered.add(Key::Serial, name, member, Unit::Nodes);
        }
        let pool = member.pool.as_ref().and_then(|it| limits.pools.get_key_value(it));
        if let Some((pool, _)) = pool {
            gathered.add(Key::Pool(pool), name, member, Unit::Nodes);
        }
    }
    for at in 0..limits.disruption_budgets.len() {
        gathered.rooms.entry(Key::Disruption(at)).or_default();
    }
    gathered.measured(limits, grants, act, now)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Disruption(usize),
    Class(&'a str),
    Serial,
    Pool(&'a str),
}

#[derive(Default)]
struct Gathered<'k, 'a> {
    rooms: BTreeMap<Key<'k>, Crowd<'a>>,
}

#[derive(Default)]
struct Crowd<'a> {
    members: Vec<(&'a str, &'a Member)>,
    total: u64,
}

impl<'k, 'a> Gathered<'k, 'a> {
    fn add(&mut self, key: Key<'k>, name: &'a str, member: &'a Member, unit: Unit) {
        let crowd = self.rooms.entry(key).or_default();
        crowd.members.push((name, member));
        // Whoever is outside, or there beside the node that it takes over from, adds nothing to the total;
        // they ask for room and use it like all others.
        if member.standing != Standing::Outside && !member.surge {
            crowd.total = crowd.total.saturating_add(weight(member, unit));
        }
    }

    fn measured(self, limits: &Limits, grants: &Grants, act: Act, now: Timestamp) -> Measured {
        let mut measured = Measured { rooms: Vec::new(), of: BTreeMap::new() };
        for (key, crowd) in self.rooms {
            let Some(mut room) = furnish(key, &crowd, limits, act, now) else { continue };
            for (name, member) in &crowd.members {
                measured.of.entry((*name).to_owned()).or_default().push(measured.rooms.len());
                let by = match (grants.open.get(*name), &member.standing) {
                    (Some(grant), _) => UsedBy::Grant { since: grant.since },
                    (None, Standing::Unavailable(why)) => UsedBy::Unavailable(*why),
                    (None, Standing::Available | Standing::Outside) => continue,
                };
                room.occupy(name, weight(member, room.unit), by);
            }
            if let Key::Class(class) = key
                && let Some(rule) = limits.classes.get(class)
            {
                rest(&mut room, rule, class, grants, now);
            }
            measured.rooms.push(room);
        }
        measured
    }
}

fn weight(member: &Member, unit: Unit) -> u64 {
    match unit {
        Unit::Nodes => 1,
        Unit::Cpu => member.cpu_millis,
    }
}

/// What a budget allows of so many. `None`: it allows anything.
fn furnish(
    key: Key<'_>,
    crowd: &Crowd<'_>,
    limits: &Limits,
    act: Act,
    now: Timestamp,
) -> Option<Room> {
    let total = crowd.total;
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
        batch_left: None,
        used_sum: 0,
        broken_sum: 0,
        deleting_sum: 0,
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
            if crowd.members.is_empty() && condition.is_none() {
                condition = Some(Condition::SelectsNothing);
            }
            let DisruptionBudget { gates_controller, gates_people, .. } = *budget;
            Some(Room { condition, gates_controller, gates_people, ..empty(id, allowed) })
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
    let left = match &rule.batch_max {
        // Sizes of what has gone are not known any more: a batch goes at once, then.
        _ if rule.unit == Unit::Cpu && started > open => 0,
        _ if rule.unit == Unit::Cpu => return,
        Some(Ok(amount)) => amount.at_most(room.total).saturating_sub(started),
        Some(Err(_)) => 0,
        // A batch is what goes at once: one, or what the policy says.
        None if rule.concurrency.is_none() => 1_u64.saturating_sub(started),
        None => room.allowed.saturating_sub(started),
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

    pub fn used_sum(&self) -> u64 {
        self.used_sum
    }

    fn occupy(&mut self, name: &str, weight: u64, by: UsedBy) {
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
        let others = self.used.iter().filter(|(it, used)| it.as_str() != name && !passes(used.by));
        Some(Shortage {
            id: self.id.clone(),
            unit: self.unit,
            allowed: if batch_full { self.allowed.min(used) } else { self.allowed },
            used,
            used_by: others.take(NAMED_MAX).map(|(it, used)| (it.clone(), used.by)).collect(),
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

    pub fn rooms_of(&self, node: &str) -> impl Iterator<Item = &Room> {
        self.of.get(node).into_iter().flatten().filter_map(|it| self.rooms.get(*it))
    }

    /// Every budget that has no room for this node now. `leads_back`: it runs a candidate that was
    /// halted, and what the candidate broke must not hold the way back.
    pub fn shortages(&self, node: &str, member: &Member, leads_back: bool) -> Vec<Shortage> {
        let whom = if leads_back { Whom::Back } else { Whom::Us };
        self.rooms_of(node)
            .filter(|it| it.gates_controller)
            .filter_map(|it| it.shortage(node, weight(member, it.unit), whom))
            .collect()
    }

    /// Those `NodeDisruptionBudgets` that a person who deletes this node has to wait for. Another one that
    /// is being deleted and waits as well holds nobody: two would wait for each other for ever.
    pub fn shortages_for_people(&self, node: &str, member: &Member) -> Vec<Shortage> {
        self.rooms_of(node)
            .filter(|it| it.gates_people)
            .filter_map(|it| it.shortage(node, weight(member, it.unit), Whom::People))
            .collect()
    }

    /// Count a grant that is about to be written.
    pub fn take(&mut self, node: &str, member: &Member, now: Timestamp) {
        for at in self.of.get(node).into_iter().flatten() {
            if let Some(room) = self.rooms.get_mut(*at) {
                let weight = weight(member, room.unit);
                room.occupy(node, weight, UsedBy::Grant { since: now });
                room.batch_left = room.batch_left.map(|it| it.saturating_sub(1));
            }
        }
    }
}
