//! Who starts, who waits, why?
//!
//! `fleet × placements × reach × grants × limits × now → start + waiting: every node that should go`
//!
//! Drift, expiry and what people ask for go through this one door, and so will emptiness, consolidation
//! and room for pending pods: each is a wish about a node, asks the same rooms ([`crate::budget::Act`])
//! and gets the same two answers. A node that waits waits for something with a name; all of its reasons
//! are told, the one first that only a person can lift. Waiting takes nothing, so a pool that cannot
//! go on holds nobody else; and one whose replacements fail comes after those that have not tried.

mod expected;
mod fleet;
mod queue;
mod spread;
mod together;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

pub use expected::{Expected, expected, round};
pub use fleet::{
    Dry, Fleet, Hand, NextTry, Node, Pending, PoolState, Recurs, Unable, Unasked, UnderWay,
    Unfollowed, UsedUp, Wish,
};
pub use waiting::{WaitFor, Waiting, in_the_way, lacks, not_followed};
use waiting::{no_kin, no_place, unfollowed};

use crate::budget::{
    Act, BudgetId, ClassRule, Counted, Grants, Limits, Measured, Member, Opening, Unheard,
};
use crate::drain::{
    Answer, AtLimit, BarePods, Homeless, Owner, Pdbs, Pod, PodPhase, moves, moving, with_machine,
};
use crate::place::{Placement, Placements};
use crate::replace::{Cause, Order};
use fleet::Stirring;
use queue::Queue;
use spread::Burden;
pub use spread::Spread;
use together::Together;

/// How many more nodes of a class may carry the candidate. A class that is missing has no bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    pub more: BTreeMap<String, More>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct More {
    pub nodes: usize,
    /// What the next ones wait for: a wave, a gate.
    pub because: String,
}

/// Every node that should go is in exactly one of `start`, `waiting` and `under_way`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they were found room for.
    pub start: Vec<Start>,
    pub waiting: BTreeMap<String, Waiting>,
    /// Those that start and those that wait, in the order in which they were asked.
    pub order: Vec<String>,
    pub under_way: BTreeSet<String>,
    /// Those that wait for their placement only, and whose pool is not passed over: place them, all
    /// together, and plan again.
    pub consider: Vec<String>,
    pub expected: Option<Expected>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub node: String,
    pub cause: Cause,
    pub order: Order,
    /// `None` where the old node goes first.
    pub placement: Option<Placement>,
    /// The budgets that it takes a place in.
    pub takes: Vec<BudgetId>,
}

/// A node without a placement was not considered yet: [`Plan::consider`] says which to look at. One whose
/// pod is not modelled gets one successor of its own kind, and starts.
pub fn plan(
    fleet: &Fleet,
    placements: &Placements,
    reach: &Reach,
    grants: &Grants,
    limits: &Limits,
    now: Timestamp,
) -> Plan {
    let planner = Planner::new(fleet, grants, limits, now);
    let mut plan = planner.plan(placements, reach);
    plan.expected = expected(fleet, &plan, planner.rooms(), limits, &BTreeSet::new(), now);
    plan
}

/// What every plan of one moment begins with: placements are found a few at a time, and with each of them
/// it is planned again.
#[derive(Debug)]
pub struct Planner<'a> {
    fleet: &'a Fleet,
    grants: &'a Grants,
    limits: &'a Limits,
    now: Timestamp,
    rooms: Measured,
    /// `None` in most turns of most fleets: nobody should go, and nothing has to be looked at.
    wished: Option<Wished<'a>>,
}

#[derive(Debug)]
struct Wished<'a> {
    openings: BTreeMap<&'a str, Opening>,
    pdbs: Pdbs<'a>,
    together: Together<'a>,
    queue: Queue<'a>,
}

impl<'a> Planner<'a> {
    pub fn new(fleet: &'a Fleet, grants: &'a Grants, limits: &'a Limits, now: Timestamp) -> Self {
        let counted = Counted::new(fleet.members(), limits, grants, Act::Replace);
        Self::counted(fleet, &counted, grants, limits, now)
    }

    /// The same for whoever has counted all members already.
    pub fn counted(
        fleet: &'a Fleet,
        counted: &Counted,
        grants: &'a Grants,
        limits: &'a Limits,
        now: Timestamp,
    ) -> Self {
        let rooms = counted.measure(limits, grants, Act::Replace, now);
        let stirring = fleet.stirring();
        let wished = stirring.iter().any(|it| it.node.wish.is_some()).then(|| {
            let pdbs = Pdbs::new(&fleet.pdbs);
            // Once for each class: calendars are slow to look through, and nodes are many.
            let openings =
                limits.classes.iter().map(|(class, it)| (class.as_str(), it.opening(now)));
            Wished {
                openings: openings.collect(),
                together: Together::new(fleet, &stirring, &pdbs, now),
                pdbs,
                queue: Queue::new(fleet, &stirring, now),
            }
        });
        Self { fleet, grants, limits, now, rooms, wished }
    }

    /// What every budget says, before anybody starts.
    pub fn rooms(&self) -> &Measured {
        &self.rooms
    }

    pub fn into_rooms(self) -> Measured {
        self.rooms
    }

    /// Without how long it takes: that is for whoever tells of it ([`expected`]).
    pub fn plan(&self, placements: &Placements, reach: &Reach) -> Plan {
        let Some(wished) = &self.wished else { return Plan::default() };
        let mut desk = Desk {
            openings: &wished.openings,
            fleet: self.fleet,
            placements,
            grants: self.grants,
            limits: self.limits,
            now: self.now,
            together: wished.together.clone(),
            pdbs: &wished.pdbs,
            rooms: self.rooms.clone(),
            reach: reach.clone(),
        };
        let mut plan = Plan::default();
        let mut queue = wished.queue.clone();
        while let Some((stirring, wish)) = queue.next() {
            let Stirring { name, node, .. } = stirring;
            if node.under_way.is_some() {
                plan.under_way.insert(name.to_owned());
                continue;
            }
            plan.order.push(name.to_owned());
            match desk.decide(stirring, wish) {
                Decided::Starts(start) => {
                    queue.started(node);
                    plan.start.push(start);
                }
                Decided::Considers(waiting) => {
                    queue.started(node);
                    plan.consider.push(name.to_owned());
                    plan.waiting.insert(name.to_owned(), waiting);
                }
                Decided::Waits(waiting) => {
                    plan.waiting.insert(name.to_owned(), waiting);
                }
            }
        }
        let wished = || self.fleet.nodes.values().filter(|it| it.wish.is_some()).count();
        let answered = plan.start.len() + plan.waiting.len() + plan.under_way.len();
        debug_assert_eq!(answered, wished(), "no node may be forgotten");
        plan
    }
}

enum Decided {
    Starts(Start),
    /// It waits for a look at its pods, and has its turn now.
    Considers(Waiting),
    Waits(Waiting),
}

/// Where the decisions of one plan are made: what is left of everything, after those before.
struct Desk<'a, 'p> {
    fleet: &'a Fleet,
    placements: &'p Placements,
    grants: &'a Grants,
    limits: &'a Limits,
    now: Timestamp,
    openings: &'p BTreeMap<&'a str, Opening>,
    pdbs: &'p Pdbs<'a>,
    rooms: Measured,
    reach: Reach,
    together: Together<'a>,
}

impl<'a> Desk<'a, '_> {
    fn decide(&mut self, stirring: Stirring<'a>, wish: &Wish) -> Decided {
        let Stirring { name, node, burden } = stirring;
        let class = node.member.class.as_deref();
        let rule = class.and_then(|it| self.limits.classes.get(it));
        let mut reasons = Vec::new();
        if !wish.cause.voluntary() {
            return self.goes_anyway(stirring, wish);
        }
        self.people(name, (node, burden), wish, rule, &mut reasons);
        self.time((name, node), wish, rule, &mut reasons);
        self.progress(stirring, wish, &mut reasons);
        let order = rule.map_or(Order::SuccessorFirst, |it| it.order);
        let placement = self.placements.of.get(name);
        // Whoever goes first is followed when it is empty: pods that have room nowhere else wait for that, and a
        // budget that lets only some of them go would wait for those.
        let not_all = match rule {
            Some(rule) if order == Order::DeleteFirst => {
                not_all(node, rule.at_limit, self.pdbs, self.now)
            }
            Some(_) | None => None,
        };
        match placement {
            _ if order == Order::DeleteFirst => match (not_all, placement) {
                (None, _) | (Some(_), Some(Placement::Spare { .. })) => {}
                (Some(refused), Some(_)) => reasons.push(refused),
                (Some(_), None) if reasons.is_empty() => reasons.push(WaitFor::Consideration),
                (Some(_), None) => {}
            },
            Some(it @ (Placement::Unplaced { .. } | Placement::NoKin { .. })) => {
                reasons.extend(unplaceable(self.fleet, &self.rooms, name, it));
            }
            None if reasons.is_empty() => reasons.push(WaitFor::Consideration),
            Some(
                Placement::Spare { .. }
                | Placement::Successors { .. }
                | Placement::Unmodelled { .. },
            )
            | None => {}
        }
        if let Some(waiting) = Waiting::of(reasons) {
            if waiting.first != WaitFor::Consideration {
                return Decided::Waits(waiting);
            }
            let pool = node.member.pool.as_ref();
            if pool.is_some_and(|it| self.placements.passed.contains(it)) {
                return Decided::Waits(waiting);
            }
            // Its room is kept for it; else everybody would be considered for one slot.
            self.take(stirring, wish);
            return Decided::Considers(waiting);
        }
        let placement = placement.cloned().filter(|_| order == Order::SuccessorFirst);
        self.start(stirring, wish, order, placement)
    }

    fn start(
        &mut self,
        stirring: Stirring<'a>,
        wish: &Wish,
        order: Order,
        placement: Option<Placement>,
    ) -> Decided {
        let Stirring { name, node, .. } = stirring;
        let takes = self.rooms.rooms_of(&node.member).map(|it| it.id.clone()).collect();
        self.take(stirring, wish);
        let (node, cause) = (name.to_owned(), wish.cause);
        Decided::Starts(Start { node, cause, order, placement, takes })
    }

    /// A person deleted it, or its machine is taken away: it passes budgets and counts against them. Only
    /// a `NodeDisruptionBudget` that says so holds people. Its pods get successors where they fit nowhere
    /// else, so somebody must have looked; that nothing fits holds nothing.
    fn goes_anyway(&mut self, stirring: Stirring<'a>, wish: &Wish) -> Decided {
        let Stirring { name, node, .. } = stirring;
        // Who takes over and bears nothing yet is missing to nobody: the place is still the old one's, or its slot stands for it.
        let idle = node.succeeds.is_some() && moving(&node.pods, self.now).next().is_none();
        let gates = match wish.cause {
            Cause::Deleted if !idle => self.rooms.shortages_for_people(name, &node.member),
            Cause::Deleted | Cause::Interrupted | Cause::Drift | Cause::Expiry | Cause::Asked => {
                Vec::new()
            }
        };
        let gates = gates.into_iter().map(|it| WaitFor::Budget(Box::new(it)));
        let mut reasons: Vec<WaitFor> = unread(wish).into_iter().chain(gates).collect();
        let placement = self.placements.of.get(name).cloned();
        let considers = reasons.is_empty() && placement.is_none();
        if considers {
            reasons.push(WaitFor::Consideration);
        }
        match Waiting::of(reasons) {
            Some(waiting) if considers => {
                self.take(stirring, wish);
                Decided::Considers(waiting)
            }
            // Whoever is held has no grant; that it is being deleted counts already.
            Some(waiting) => Decided::Waits(waiting),
            None => self.start(stirring, wish, Order::SuccessorFirst, placement),
        }
    }

    fn take(&mut self, stirring: Stirring<'a>, wish: &Wish) {
        let Stirring { name, node, .. } = stirring;
        self.rooms.take(name, &node.member, self.now);
        self.together.take(stirring, self.pdbs);
        if let Some(more) = self.reach_of(node, wish) {
            more.nodes = more.nodes.saturating_sub(1);
        }
    }

    fn reach_of(&mut self, node: &Node, wish: &Wish) -> Option<&mut More> {
        let class = node.member.class.as_ref().filter(|_| wish.to_candidate)?;
        self.reach.more.get_mut(class)
    }

    /// What only a person can lift.
    fn people(
        &self,
        name: &str,
        (node, burden): (&Node, Option<&Burden>),
        wish: &Wish,
        rule: Option<&ClassRule>,
        reasons: &mut Vec<WaitFor>,
    ) {
        reasons.extend(unread(wish));
        if let Some(law) = &self.grants.locked {
            reasons.push(WaitFor::Unlock { because: law.clone() });
        }
        if let Some(by) = &self.grants.paused {
            reasons.push(WaitFor::Resume { because: by.clone() });
        }
        if let Some(apart) = self.grants.apart {
            reasons.push(WaitFor::Clock(apart));
        }
        let pool = node.member.pool.as_deref();
        let state = pool.and_then(|it| self.fleet.pools.get(it));
        match state.map(|it| &it.hand) {
            None | Some(Hand::Own) => {}
            Some(Hand::Promote { by } | Hand::Watch { by }) => {
                reasons.push(WaitFor::OtherHand { by: by.clone() });
            }
        }
        if let Some(why) = &wish.no_image {
            reasons.push(WaitFor::Image(why.clone()));
        }
        let quiet = quiet(self.fleet, node, burden, self.pdbs);
        held(name, (node, quiet), rule, self.pdbs, self.now, reasons);
        if let Some(homeless) = pool.and_then(|it| self.fleet.homeless.get(it)) {
            let Homeless { pod, since } = homeless.clone();
            reasons.push(WaitFor::HomelessPod { pod, since });
        }
    }

    /// What time lifts.
    fn time(
        &self,
        (name, node): (&str, &Node),
        wish: &Wish,
        rule: Option<&ClassRule>,
        out: &mut Vec<WaitFor>,
    ) {
        let now = self.now;
        if let Some(Unheard { kind, since }) = self.grants.unheard {
            out.push(WaitFor::News { kind, since });
        }
        let asked_after = |it: Timestamp| wish.cause == Cause::Asked && wish.since > it;
        if let Some(next) = &node.next_try
            && now < next.at
            && !asked_after(next.failed_at)
        {
            out.push(WaitFor::NextTry { at: next.at, because: next.because.clone() });
        }
        if let Some(recurs) = wish.recurs.as_ref().filter(|it| now < it.until) {
            out.push(WaitFor::Recurs(recurs.clone()));
        }
        let pool = node.member.pool.as_ref();
        let state = pool.and_then(|it| self.fleet.pools.get_key_value(it));
        if let Some((pool, (until, why))) =
            state.and_then(|(pool, it)| Some((pool, it.back_off.as_ref()?)))
            && now < *until
        {
            let (pool, because) = (pool.clone(), why.clone());
            out.push(WaitFor::Capacity { pool, until: Some(*until), because });
        }
        let Some(rule) = rule else { return };
        if rule.order == Order::DeleteFirst
            && let Some((pool, it)) = state.filter(|(_, it)| it.launches_nothing)
        {
            out.extend(in_the_way(no_kin(pool, None, None), Some(it), node.zone.as_ref()));
        }
        // Whoever asks for one by name after that wants it tried.
        if rule.order == Order::DeleteFirst
            && let Some((pool, it)) = self.unfollowed(name, node)
            && !(wish.by_name && asked_after(it.at))
        {
            out.push(unfollowed(pool, it));
        }
        if rule.order == Order::DeleteFirst
            && let Some((pool, resource)) =
                state.and_then(|(pool, it)| Some((pool, it.over_limit.as_ref()?)))
        {
            out.push(no_kin(pool, Some(resource), None));
        }
        let old_at = node.created_at.saturating_add(rule.minimum_lifetime);
        let old_at = old_at.unwrap_or(Timestamp::MAX);
        // Young nodes are spared churn; whoever asks for one by name means it.
        if now < old_at && !(wish.cause == Cause::Asked && wish.by_name) {
            out.push(WaitFor::Lifetime { policy: rule.policy.clone(), until: old_at });
        }
        let opening = node.member.class.as_ref().and_then(|it| self.openings.get(it.as_str()));
        if let Some(Opening::Closed { opens_at, because }) = opening {
            let policy = rule.policy.clone();
            let (opens_at, because) = (*opens_at, because.clone());
            out.push(WaitFor::Window { policy, opens_at, because });
        }
    }

    /// Who went first and was not followed, where the next one should not go first as well: it is of the same pool or class,
    /// and what would follow it boots the same image; or both are in a budget that has no room beside the place that is empty.
    fn unfollowed(&self, name: &str, node: &Node) -> Option<(&'a String, &'a Unfollowed)> {
        let pools = self.fleet.pools.iter();
        let lost: Vec<_> =
            pools.filter_map(|(pool, it)| Some((pool, it.unfollowed.as_ref()?))).collect();
        if lost.is_empty() {
            return None;
        }
        let Member { pool, class, .. } = &node.member;
        let own = lost.iter().find(|(it, _)| pool.as_ref() == Some(*it));
        let alike = |it: &&(_, &Unfollowed)| class.is_some() && it.1.member.class == *class;
        let full = || {
            let members: Vec<&Member> = lost.iter().map(|(_, it)| &it.member).collect();
            self.rooms.full_beside(name, &node.member, &members).and_then(|it| lost.get(it))
        };
        own.or_else(|| lost.iter().find(alike)).or_else(full).copied()
    }

    /// What our own progress lifts.
    fn progress(&mut self, stirring: Stirring<'_>, wish: &Wish, out: &mut Vec<WaitFor>) {
        let Stirring { name, node, .. } = stirring;
        if let Some(more) = self.reach_of(node, wish)
            && more.nodes == 0
        {
            out.push(WaitFor::Reach { because: more.because.clone() });
        }
        if let Some(node) = &node.succeeds {
            out.push(WaitFor::Succession { node: node.clone() });
        }
        if let Some(shared) = self.together.conflict(stirring, self.pdbs) {
            out.push(shared);
        }
        let shortages = self.rooms.shortages(name, &node.member, node.leads_back);
        out.extend(shortages.into_iter().map(|it| WaitFor::Budget(Box::new(it))));
    }
}

/// What a node lacks whose pods have no place, or that could not be followed by one of its kind.
pub fn unplaceable(
    fleet: &Fleet,
    rooms: &Measured,
    name: &str,
    placement: &Placement,
) -> Vec<WaitFor> {
    let Some(node) = fleet.nodes.get(name) else { return Vec::new() };
    let state = node.member.pool.as_ref().and_then(|it| fleet.pools.get(it));
    let (lacks, state) = match placement {
        Placement::Unplaced { pod, why } => (no_place(name, (node, kept(state)), pod, why), state),
        Placement::NoKin { pool, limit } => {
            let counted_by = counted_by(rooms, node).filter(|_| !kept(state));
            let lacks = no_kin(pool, limit.as_ref().map(|(it, _)| it), counted_by);
            (lacks, fleet.pools.get(pool))
        }
        Placement::Spare { .. } | Placement::Successors { .. } | Placement::Unmodelled { .. } => {
            return Vec::new();
        }
    };
    in_the_way(lacks, state, node.zone.as_ref())
}

/// The budget for whose sake a node is followed by one of its kind, whatever its pods need: it keeps so many. Of a pool
/// that is kept at a number that is why.
fn counted_by(rooms: &Measured, node: &Node) -> Option<String> {
    let room = rooms.rooms_of(&node.member).find(|it| it.counts_heirs())?;
    match &room.id {
        BudgetId::Disruption { name } => Some(name.clone()),
        BudgetId::Serial | BudgetId::Class { .. } | BudgetId::Pool { .. } => None,
    }
}

fn kept(state: Option<&PoolState>) -> bool {
    state.is_some_and(|it| it.kept)
}

/// A record that cannot be read holds what it held: nobody begins beside it, and nobody else waits for a slot that it
/// would never use.
fn unread(wish: &Wish) -> Option<WaitFor> {
    let (name, because) = wish.unread.clone()?;
    Some(WaitFor::Record { name, because })
}

/// What a person would have to lift on a node and its pods before its replacement may start; asked again
/// right before its cordon. `None` too if there is no such node.
pub fn held_by_people(
    fleet: &Fleet,
    pdbs: &Pdbs<'_>,
    limits: &Limits,
    name: &str,
    now: Timestamp,
) -> Option<WaitFor> {
    let node = fleet.nodes.get(name)?;
    let rule = node.member.class.as_ref().and_then(|it| limits.classes.get(it));
    let mut reasons = Vec::new();
    let burden = fleet.spread.as_ref().and_then(|it| it.burden(name));
    let quiet = quiet(fleet, node, burden, pdbs);
    held(name, (node, quiet), rule, pdbs, now, &mut reasons);
    reasons.into_iter().next()
}

/// What protects a node itself, or its claim, whatever its pods say: asked for as long as it is there. `None` too if
/// there is no such node.
pub fn protected_node(fleet: &Fleet, name: &str, now: Timestamp) -> Option<WaitFor> {
    protected(name, fleet.nodes.get(name)?, now)
}

fn protected(name: &str, node: &Node, now: Timestamp) -> Option<WaitFor> {
    let protection = node.protection.clone().filter(|it| it.holds(now))?;
    let (node, claim) = (name.to_owned(), node.protected_by_claim.clone());
    Some(WaitFor::ProtectedNode { node, claim, protection })
}

/// A budget that does not let all pods of a node go at once, as they have to where it goes before others come and
/// they have no room elsewhere. `None` too if there is no such node.
pub fn held_at_once(
    fleet: &Fleet,
    pdbs: &Pdbs<'_>,
    name: &str,
    at_limit: AtLimit,
    now: Timestamp,
) -> Option<WaitFor> {
    not_all(fleet.nodes.get(name)?, at_limit, pdbs, now)
}

fn not_all(node: &Node, at_limit: AtLimit, pdbs: &Pdbs<'_>, now: Timestamp) -> Option<WaitFor> {
    let forced = node.has_deadline || at_limit == AtLimit::Force;
    let pods = moving(&node.pods, now).filter(|it| !forced && it.ends_at.is_none());
    let (pod, refused) = pdbs.not_all(pods)?;
    Some(WaitFor::Pdb { pod: pod.id.clone(), refused })
}

/// Whether it is known without a look at them that nothing holds a node's pods.
fn quiet(fleet: &Fleet, node: &Node, burden: Option<&Burden>, pdbs: &Pdbs<'_>) -> bool {
    fleet.spread.as_ref().zip(burden).is_some_and(|(spread, burden)| {
        spread.budgets(burden, node, pdbs).is_some_and(|it| burden.quiet(it, pdbs))
    })
}

fn held(
    name: &str,
    (node, quiet): (&Node, bool),
    rule: Option<&ClassRule>,
    pdbs: &Pdbs<'_>,
    now: Timestamp,
    reasons: &mut Vec<WaitFor>,
) {
    reasons.extend(protected(name, node, now));
    if quiet {
        return;
    }
    let bare = rule.map_or(BarePods::Wait, |it| it.bare_pods);
    // A budget is told with the first of its pods; the others would say the same.
    let mut told = BTreeSet::new();
    let active = |it: &&Arc<Pod>| it.ends_at.is_none() && it.phase != PodPhase::Finished;
    for pod in node.pods.iter().filter(active) {
        let protection = pod.protection.as_ref().filter(|it| it.holds(now));
        if let Some(protection) = protection
            && !node.has_deadline
        {
            // Of those too that nobody evicts: they end with the machine. So it is with Karpenter.
            let protection = protection.clone();
            reasons.push(WaitFor::ProtectedPod { pod: pod.id.clone(), protection });
        }
        if !moves(pod, now) {
            // Nobody asks whether it may leave.
            continue;
        }
        if pod.owner == Owner::Nobody && bare == BarePods::Wait {
            reasons.push(WaitFor::BarePod { pod: pod.id.clone() });
        }
        if !node.has_deadline
            && let Answer::Refused(refused) = pdbs.answer(pod)
            && told.insert((&pod.id.namespace, refused.to_string()))
        {
            reasons.push(WaitFor::Pdb { pod: pod.id.clone(), refused });
        }
    }
    // Those that end with the machine end all at once, unless somebody chose that they are forced in the end.
    let forced = node.has_deadline || rule.is_some_and(|it| it.at_limit == AtLimit::Force);
    let end = node.pods.iter().filter(active).filter(|it| !forced && with_machine(it, now));
    if let Some((pod, refused)) = pdbs.not_all(end.map(AsRef::as_ref)) {
        reasons.push(WaitFor::Pdb { pod: pod.id.clone(), refused });
    }
}
