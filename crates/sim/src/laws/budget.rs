//! Was there room for each grant, and a grant for each cordon?
//!
//! `unavailable ∪ granted ≤ what is allowed`, in every budget that the node is in, counted after the write

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use nodemolt_core::seen::Kind;
use serde_json::Value;

use super::excuse::{Unfollowed, alike, goes_first, unfollowed};
use super::read::{self, at, items, text};
use super::said::other_members;
use super::settling::open;
use super::succession::of_this_try;
use super::world::{
    Claim, DISRUPTED_TAINT, Grant, Kept, POOL_LABEL, World, grants, has_taint, known, must_move,
};
use super::{Found, KNOWN_AFTER, Law, Setting, calendar};
use crate::trace::{Actor, Step};

/// What a pause may take to reach a hand that is at work.
const PAUSED_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// From the beginning of a turn, whose time is written down, until what it writes is stored.
const TURN_TAKES: SignedDuration = SignedDuration::from_secs(30);

/// The grants of each class since its last rest, for cooldowns.
#[derive(Debug, Default)]
pub(super) struct Budget {
    batches: BTreeMap<String, Batch>,
}

#[derive(Debug, Default)]
struct Batch {
    started: u64,
    open: BTreeSet<String>,
    /// And how slow a clock may have been that wrote this down.
    last_ended: Option<(Timestamp, SignedDuration)>,
}

/// One budget: its name, who is in it, and what it allows of so many.
struct Room<'a> {
    name: String,
    unit: Unit,
    member: Box<dyn Fn(&str) -> bool + 'a>,
    allows: Box<dyn Fn(i128) -> i128 + 'a>,
    /// A share lets one go although it is larger.
    at_least_one: bool,
    /// Who is in it stands in labels of nodes.
    by_labels: bool,
}

/// Who is held back by a budget, and so who does not count against them.
#[derive(Clone, Copy, PartialEq)]
enum Whom {
    Us,
    /// Others that are only to be deleted do not count before it is their turn.
    People,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Nodes,
    Cpu,
}

impl Budget {
    pub(super) fn see_ledger(
        &mut self,
        world: &World,
        setting: &Setting,
        ledger: &Value,
        step: &Step,
        found: &mut Found,
    ) {
        let granted = grants(ledger);
        self.close(world, setting, &granted, step.at);
        if !matches!(step.by, Actor::Operator(_)) {
            return;
        }
        // After somebody deleted it, it is written anew from the records: nothing in it is new.
        if world.ledger.lost() && !world.replacements.is_empty() {
            return;
        }
        let fresh = granted.iter().filter(|it| !world.ledger.grants.contains_key(it.0));
        let (people, fresh): (Vec<_>, Vec<(&String, &Grant)>) = fresh.partition(|it| it.1.passes());
        for (_, grant) in people.into_iter().filter(|it| it.1.kind == "Delete") {
            let sent_at = world.sent_at(step);
            if missed_by_nobody(world, &grant.node, sent_at) {
                continue;
            }
            for room in disruption_rooms(world, &grant.node, Whom::People, sent_at) {
                found.premise(Law::Budget);
                if let Some(what) = overdrawn(world, &room, grant, &granted, Whom::People, sent_at)
                {
                    found.broken(Law::Budget, step.at, what);
                }
            }
        }
        for (holder, grant) in fresh {
            if let Some(why) = stopped(ledger) {
                let what = format!("node {} was granted although {why}", grant.node);
                found.broken(Law::Budget, step.at, what);
            }
            let sent_at = world.sent_at(step);
            let rooms = rooms(world, setting, grant, sent_at);
            // Of what was written a moment ago nobody need know; of all else, everybody.
            if !rooms.is_empty() {
                found.premise(Law::Budget);
            }
            for room in rooms {
                if let Some(what) = overdrawn(world, &room, grant, &granted, Whom::Us, sent_at) {
                    found.broken(Law::Budget, step.at, what);
                }
            }
            if let Some(what) = closed_window(world, setting, grant, sent_at) {
                found.broken(Law::Budget, step.at, what);
            }
            if let Some(what) = goes_for_nothing(world, setting, grant, sent_at) {
                found.broken(Law::Budget, step.at, what);
            }
            if let Some(what) = self.rests(world, holder, grant, sent_at) {
                found.broken(Law::Budget, step.at, what);
            }
        }
    }

    /// No grant, no cordon; and none in a pause or a lock.
    pub(super) fn see_node(world: &World, node: &Value, step: &Step, found: &mut Found) {
        let name = read::name(node);
        let before = world.nodes.get(name);
        let news = has_taint(node, DISRUPTED_TAINT)
            && before.is_some_and(|it| !has_taint(&it.object, DISRUPTED_TAINT));
        if !news || !matches!(step.by, Actor::Operator(_)) {
            return;
        }
        let holder = world.claim_of(name).map(|it| read::uid(&it.object));
        let ledger = &world.ledger;
        let grant = holder.and_then(|it| ledger.grants.get(it));
        let sent_at = world.sent_at(step);
        let just_ended =
            holder.and_then(|it| ledger.ended.get(it)).is_some_and(|it| !known(*it, sent_at));
        if grant.is_none() && !just_ended {
            let what = format!("node {name} was cordoned and has no grant");
            found.broken(Law::Budget, step.at, what);
        }
        if paused(world, name, sent_at) {
            let what = format!("node {name} was cordoned in a pause or a lock");
            found.broken(Law::Budget, step.at, what);
        }
    }

    fn close(
        &mut self,
        world: &World,
        setting: &Setting,
        granted: &BTreeMap<String, Grant>,
        now: Timestamp,
    ) {
        for batch in self.batches.values_mut() {
            for holder in batch.open.extract_if(.., |it| !granted.contains_key(it)) {
                batch.last_ended = Some((now, setting.slowest_clock));
                // Whoever died before it made the record has started nothing.
                if !world.ever_recorded(&holder) {
                    batch.started = batch.started.saturating_sub(1);
                }
            }
        }
    }

    /// After a batch nothing starts until all of it has ended and the cooldown is over.
    fn rests(
        &mut self,
        world: &World,
        holder: &str,
        grant: &Grant,
        now: Timestamp,
    ) -> Option<String> {
        let class = world.class_of(&grant.node).filter(|_| grant.takes_slot())?;
        let rollout = world.rollout_of(&class)?;
        let cooldown = text(rollout, &["cooldown"]).and_then(read::duration)?;
        if cooldown.is_zero() || unit(rollout) == Unit::Cpu {
            return None;
        }
        let batch = self.batches.entry(class.clone()).or_default();
        // When a batch ended is written down by a clock that may be slow, at the beginning of a turn.
        let over = batch.last_ended.is_none_or(|(at, slow)| {
            let rested = cooldown.saturating_sub(slow).saturating_sub(TURN_TAKES);
            now.duration_since(at) >= rested
        });
        if batch.open.is_empty() && over {
            *batch = Batch::default();
        }
        let total = count(world, |it| world.class_of(it).as_deref() == Some(class.as_str()));
        let whole = amount(at(rollout, &["batchMaximum"]), total)
            .or_else(|| concurrency(rollout, total))
            .unwrap_or(1);
        let full = i128::from(batch.started) >= whole;
        batch.started += 1;
        batch.open.insert(holder.to_owned());
        (full && !anew(world, &class, now)).then(|| {
            format!("node {} was granted in the cooldown of its class {class}", grant.node)
        })
    }
}

/// It goes first, and one of its pool or class has gone so already that nobody follows; or one that counts in a budget with
/// it, which has no room beside that empty place. Whoever asks for it by name wants that tried, and with another image
/// it may be another matter.
fn goes_for_nothing(
    world: &World,
    setting: &Setting,
    grant: &Grant,
    now: Timestamp,
) -> Option<String> {
    const ASKED: &str = "nodemolt.dev/upgrade-requested-at";
    let class = world.class_of(&grant.node).filter(|_| grant.takes_slot())?;
    if !goes_first(world, &grant.node) || anew(world, &class, now) {
        return None;
    }
    let node = world.nodes.get(&grant.node).map(|it| &it.object);
    let claim = world.claim_of(&grant.node).map(|it| &it.object);
    let asked = [node, claim].into_iter().flatten();
    let asked = asked.filter_map(|it| read::time(it, &["metadata", "annotations", ASKED])).max();
    let mut lost = unfollowed(world);
    lost.retain(|it| {
        known(it.at, now)
            && world.choice_changed_at < it.begun
            && asked.is_none_or(|asked| asked <= it.at)
    });
    let kin = lost.iter().find(|it| alike(world, it, &grant.node));
    let full = || lost.first().filter(|_| full_beside(world, setting, &grant.node, &lost, now));
    let before = kin.or_else(full)?.node;
    Some(format!("node {} was granted to go first, and nobody has followed {before}", grant.node))
}

/// Whether people have paused everything, or one of us has locked it, and this node does not go whatever we do: nobody who is deleted waits
/// for the end of a pause.
pub(super) fn paused(world: &World, node: &str, now: Timestamp) -> bool {
    let claim = world.claim_of(node);
    let grant = claim.and_then(|it| world.ledger.grants.get(read::uid(&it.object)));
    let node = world.nodes.get(node);
    let goes = claim.is_some_and(|it| it.deleting_since.is_some())
        || node.is_some_and(|it| read::deleting(&it.object).is_some());
    world.ledger.halted_since.is_some_and(|it| now.duration_since(it) > PAUSED_AFTER)
        && grant.is_some_and(|it| !it.passes())
        && !goes
}

fn stopped(ledger: &Value) -> Option<&'static str> {
    if at(ledger, &["spec", "pause"]).is_some() {
        return Some("people have paused everything");
    }
    locked(ledger).then_some("the ledger is locked")
}

pub(super) fn locked(ledger: &Value) -> bool {
    let lock = text(ledger, &["status", "lock", "id"]);
    lock.is_some() && text(ledger, &["spec", "releasedLock"]) != lock
}

/// Whether a node could be granted now, as far as budgets and windows go.
pub(super) fn room_for(world: &World, setting: &Setting, node: &str, now: Timestamp) -> bool {
    let grant = replacing(node);
    let mut granted = world.ledger.grants.clone();
    granted.insert(String::new(), grant.clone());
    let overdrawn = |it: &Room<'_>| overdrawn(world, it, &grant, &granted, Whom::Us, now).is_some();
    !rooms(world, setting, &grant, now).iter().any(overdrawn)
        && closed_window(world, setting, &grant, now).is_none()
}

/// Whether a budget has no room for a node beside those who are gone and whom nobody has followed. Which labels one had that
/// is gone nobody has written down, so budgets that go by those are left out.
fn full_beside(
    world: &World,
    setting: &Setting,
    node: &str,
    lost: &[Unfollowed<'_>],
    now: Timestamp,
) -> bool {
    let grant = replacing(node);
    let mut granted = world.ledger.grants.clone();
    granted.insert(String::new(), grant.clone());
    granted.extend(lost.iter().map(|it| (format!("lost {}", it.node), replacing(it.node))));
    let rooms = rooms(world, setting, &grant, now);
    let mut rooms =
        rooms.iter().filter(|room| !room.by_labels && lost.iter().any(|it| (room.member)(it.node)));
    rooms.any(|it| overdrawn(world, it, &grant, &granted, Whom::Us, now).is_some())
}

fn replacing(node: &str) -> Grant {
    Grant { node: node.to_owned(), kind: "Replacement".to_owned(), epoch: 0 }
}

/// The budget that lets a node not go for ever, because nodes that had to stay went without another in their place.
pub(super) fn used_up<'a>(world: &'a World, node: &str) -> Option<&'a str> {
    let used_up = |budget: &Value| {
        let member = |it: &str| labels_of(world, it).is_some_and(|it| selected(budget, it));
        let keeps = at(budget, &["spec", "minAvailable"]).is_some();
        let total = count(world, member);
        keeps
            && member(node)
            && gates(budget, Whom::Us)
            && disruption_budget(budget, total) == 0
            && went_alone(world, member).is_some_and(|it| disruption_budget(budget, total + it) > 0)
    };
    world.all("NodeDisruptionBudget").find(|it| used_up(&it.1.object)).map(|it| it.0)
}

/// How many of them we let go that nothing followed. `None` if some went in another way: then it may be that.
fn went_alone(world: &World, member: impl Fn(&str) -> bool) -> Option<i128> {
    let done = |it: &&Value| {
        let cause = text(it, &["status", "cause"]);
        text(it, &["status", "phase"]) == Some("Done")
            && !matches!(cause, Some("Delete" | "Interruption"))
    };
    let followed = |record: &Value| {
        items(record, &["status", "successors"]).any(|it| {
            let claim = text(it, &["uid"]).and_then(|it| world.claims.get(it));
            let node = claim.and_then(|it| text(&it.object, &["status", "nodeName"]));
            node.is_none_or(&member)
        })
    };
    let mut alone = 0;
    for name in world.gone.keys().filter(|it| member(it)) {
        let mut records = world.replacements.values().map(|it| &**it).filter(done);
        let record = records.find(|it| text(it, &["spec", "nodeName"]) == Some(name))?;
        alone += i128::from(!followed(record));
    }
    Some(alone)
}

/// Whether a person who has deleted a node waits for nobody else.
pub(super) fn room_for_people(world: &World, node: &str, now: Timestamp) -> bool {
    if missed_by_nobody(world, node, now) {
        return true;
    }
    let holder = world.claim_of(node).map_or("", |it| read::uid(&it.object)).to_owned();
    let grant = Grant { node: node.to_owned(), kind: "Delete".to_owned(), epoch: 0 };
    let mut granted = world.ledger.grants.clone();
    granted.insert(holder, grant.clone());
    let rooms = disruption_rooms(world, node, Whom::People, now);
    !rooms.iter().any(|it| overdrawn(world, it, &grant, &granted, Whom::People, now).is_some())
}

/// We ask for the end of a machine whose claim a person has deleted: where a budget holds people, not before it is
/// granted, whatever else would end it.
pub(super) fn see_terminate(world: &World, machine: &str, step: &Step, found: &mut Found) {
    let seen = world.machines.get(machine).filter(|it| it.state == "running");
    let claim = seen.and_then(|it| world.claim_of_machine(it));
    let claim = claim.filter(|it| it.deleted_by == Some(Actor::Person));
    let Some(claim) = claim.filter(|_| matches!(step.by, Actor::Operator(_))) else { return };
    let name = text(&claim.object, &["status", "nodeName"]).unwrap_or_default();
    let holder = read::uid(&claim.object);
    let ledger = &world.ledger;
    let granted = ledger.grants.contains_key(holder) || ledger.ended.contains_key(holder);
    if granted
        || !world.nodes.get(name).is_some_and(|it| it.ready)
        || missed_by_nobody(world, name, world.sent_at(step))
    {
        return;
    }
    if let Some(room) = disruption_rooms(world, name, Whom::People, world.sent_at(step)).first() {
        let what = format!(
            "machine {machine} of node {name} was ended without a grant, and {} holds people",
            room.name
        );
        found.broken(Law::Budget, step.at, what);
    }
}

/// Whether a node was never set up, or takes a place that another still has; and bears no pod that everybody must know of and that
/// would have to go elsewhere.
fn missed_by_nobody(world: &World, node: &str, now: Timestamp) -> bool {
    let set_up = |it: &Claim| read::condition(&it.object, "Initialized");
    let mut bears = world.pods_on(node).filter(|it| must_move(&it.object, now));
    world.claim_of(node).is_some_and(|it| !set_up(it) || beside_another(world, it))
        && !bears.any(|it| known(it.bound_at, now))
}

/// Whether an open Replacement counts on a claim, and the old node is there or has gone with a grant that still stands: either way
/// the budget is short of nobody by this one's end.
fn beside_another(world: &World, claim: &Claim) -> bool {
    let uid = read::uid(&claim.object);
    world.replacements.iter().any(|(holder, record)| {
        let old = text(record, &["spec", "nodeName"]);
        let stands = old.is_some_and(|it| world.nodes.contains_key(it))
            || world.ledger.grants.contains_key(holder);
        let mut successors = items(record, &["status", "successors"]);
        open(record)
            && stands
            && successors.any(|it| of_this_try(record, it) && text(it, &["uid"]) == Some(uid))
    })
}

/// Whether it was said lately how the nodes of a class are replaced, or for which classes that is.
fn anew(world: &World, class: &str, now: Timestamp) -> bool {
    !known(world.members_changed_at, now) || world.policies_of(class).any(|it| it.1.lately(now))
}

/// Every `NodeDisruptionBudget` that holds somebody for a node and that everybody knows of.
fn disruption_rooms<'a>(world: &'a World, node: &str, whom: Whom, now: Timestamp) -> Vec<Room<'a>> {
    let mut rooms = Vec::new();
    for (name, budget) in world.all("NodeDisruptionBudget") {
        let object = &budget.object;
        let member = move |it: &str| labels_of(world, it).is_some_and(|it| selected(object, it));
        let old = budget.before.as_deref().filter(|_| budget.lately(now));
        let old = old.filter(|it| !other_members(it, object));
        // It is new, or for other nodes or people now: nobody need know.
        if budget.lately(now) && old.is_none() {
            continue;
        }
        if member(node) && gates(object, whom) {
            rooms.push(Room {
                name: format!("NodeDisruptionBudget {name}"),
                unit: Unit::Nodes,
                member: Box::new(member),
                allows: Box::new(move |total| {
                    let allowed = old.map_or(0, |it| disruption_budget(it, total));
                    allowed.max(disruption_budget(object, total))
                }),
                at_least_one: false,
                by_labels: true,
            });
        }
    }
    rooms
}

/// Whom a budget holds back: us, unless it says otherwise. An empty list is none.
fn gates(budget: &Value, whom: Whom) -> bool {
    let mut gates = items(budget, &["spec", "gates"]).filter_map(Value::as_str).peekable();
    match whom {
        Whom::Us => gates.peek().is_none() || gates.any(|it| it == "Controller"),
        Whom::People => gates.any(|it| it == "People"),
    }
}

/// Every budget that holds for a node and that everybody knows of. Where its own object was changed lately,
/// what it allowed before is good enough.
fn rooms<'a>(world: &'a World, setting: &Setting, grant: &Grant, now: Timestamp) -> Vec<Room<'a>> {
    let node = grant.node.as_str();
    let mut rooms = disruption_rooms(world, node, Whom::Us, now);
    // Which of them hold is not known to all: a node may have had the cluster's slot a moment ago.
    let settled = known(world.members_changed_at, now);
    if grant.takes_slot() && settled {
        let class = world.class_of(node);
        let by_class = class.and_then(|it| Some((world.rollout_of(&it)?, it)));
        if let Some((rollout, class)) = by_class
            && at(rollout, &["concurrency"]).is_some()
        {
            let says =
                |it: &Kept| it.lately(now) && at(&it.object, &["spec", "rollout"]) == Some(rollout);
            let old = world
                .policies_of(&class)
                .find(|it| says(it.1))
                .and_then(|it| at(it.1.before.as_deref()?, &["spec", "rollout"]))
                .filter(|it| unit(it) == unit(rollout));
            let unit = unit(rollout);
            let share = |key: &str| at(rollout, &[key]).is_none_or(|it| it.as_i64().is_none());
            rooms.push(Room {
                name: format!("concurrency of class {class}"),
                unit,
                member: Box::new(move |it| {
                    world.last_class_of(it).as_deref() == Some(class.as_str())
                        && (world.claim_of(it).is_some() || has_pool(world, it))
                }),
                allows: Box::new(move |total| {
                    let allowed = old.map_or(0, |it| class_allows(it, total));
                    allowed.max(class_allows(rollout, total))
                }),
                at_least_one: unit == Unit::Cpu && share("concurrency"),
                by_labels: false,
            });
        }
        if rooms.is_empty() {
            rooms.push(Room {
                name: "the cluster's one slot".to_owned(),
                unit: Unit::Nodes,
                member: Box::new(move |it| without_slot(world, it)),
                allows: Box::new(|_| 1),
                at_least_one: false,
                by_labels: false,
            });
        }
    }
    let pool = labels_of(world, node).and_then(|it| it.get(POOL_LABEL)).and_then(Value::as_str);
    if let Some(pool) = pool
        && let Some(kept) = world.others.get("NodePool").and_then(|it| it.get(pool))
    {
        // A slow clock learns late that a budget's time has come, or that it is over.
        let late =
            now.saturating_sub(KNOWN_AFTER.saturating_add(setting.slowest_clock)).unwrap_or(now);
        let reason = if grant.takes_slot() { "Drifted" } else { "Empty" };
        let old = kept.before.as_deref().filter(|_| kept.lately(now));
        rooms.push(Room {
            name: format!("budgets of NodePool {pool}"),
            unit: Unit::Nodes,
            member: Box::new(move |it| {
                labels_of(world, it).and_then(|it| it.get(POOL_LABEL)).and_then(Value::as_str)
                    == Some(pool)
            }),
            allows: Box::new(move |total| {
                let at_time = |it| pool_allows(&kept.object, reason, total, it);
                let before = old.map_or(0, |it| {
                    pool_allows(it, reason, total, now).max(pool_allows(it, reason, total, late))
                });
                at_time(now).max(at_time(late)).max(before)
            }),
            at_least_one: false,
            by_labels: true,
        });
    }
    rooms
}

/// What is used after the write, if it is more than the budget.
fn overdrawn(
    world: &World,
    room: &Room<'_>,
    grant: &Grant,
    granted: &BTreeMap<String, Grant>,
    whom: Whom,
    now: Timestamp,
) -> Option<String> {
    let held = granted.iter().filter(|(holder, _)| !given_back(world, holder));
    let mut used: BTreeSet<&str> =
        held.map(|(_, it)| it.node.as_str()).filter(|it| (room.member)(it)).collect();
    for (name, node) in &world.nodes {
        let claim = world.claim_of(name);
        let going = claim.and_then(|it| it.deleting_since);
        let deleted = going.is_some() || read::deleting(&node.object).is_some();
        let (away, going) = if whom == Whom::People && deleted {
            ((node.ever_ready && !node.ready).then_some(node.since), None)
        } else {
            (node.away_since, going)
        };
        let away = away.is_some_and(|it| world.hearing.heard(Kind::Node, it, now))
            || going.is_some_and(|it| world.hearing.heard(Kind::Claim, it, now));
        // A stranger's node is counted in the whole, and who it is away for is not our business.
        if away && claim.is_some() && (room.member)(name) {
            used.insert(name);
        }
    }
    let there = |at: Timestamp| !world.hearing.heard(Kind::Node, at, now);
    let lately = world.gone.iter().filter(|(_, (at, _))| there(*at)).map(|it| it.0);
    let members: Vec<&str> = world
        .nodes
        .keys()
        .chain(lately)
        .map(String::as_str)
        .filter(|it| (room.member)(it))
        .collect();
    let surge = surge(world);
    let over = |weight: &dyn Fn(&str) -> i128| {
        let counted = members.iter().filter(|it| !surge.contains(*it));
        let total = counted.map(|it| weight(it)).sum::<i128>();
        let taken = used.iter().map(|it| weight(it)).sum::<i128>();
        let allowed = (room.allows)(total);
        let alone = room.at_least_one && used.len() == 1 && allowed > 0;
        (taken > allowed && !alone).then_some((taken, allowed))
    };
    let (taken, allowed) = match room.unit {
        Unit::Nodes => over(&|_| 1)?,
        // Whether a processor is counted that the system keeps for itself is not said anywhere.
        Unit::Cpu => {
            over(&|it| cpu(world, it, "capacity")).and(over(&|it| cpu(world, it, "allocatable")))?
        }
    };
    let names: Vec<&str> = used.into_iter().collect();
    Some(format!(
        "node {} was granted: {} allows {allowed}, and {taken} are used by {}",
        grant.node,
        room.name,
        names.join(", ")
    ))
}

/// A slot is free again when the old machine is gone, also before somebody has written that down; where the
/// old one goes first, for whatever reason, when the successor is there.
fn given_back(world: &World, holder: &str) -> bool {
    let record = world.replacements.get(holder);
    let first = record.and_then(|it| text(it, &["status", "order"])) == Some("DeleteFirst");
    let ready = |successor: &Value| {
        let claim = text(successor, &["uid"]).and_then(|it| world.claims.get(it));
        let node = claim.and_then(|it| text(&it.object, &["status", "nodeName"]));
        node.and_then(|it| world.nodes.get(it)).is_some_and(|it| it.ready)
    };
    let mut successors = record.into_iter().flat_map(|it| items(it, &["status", "successors"]));
    if first || (record.is_some_and(|it| open(it)) && !successors.all(ready)) {
        return false;
    }
    let mut own =
        world.machines.values().filter(|it| it.tags.values().any(|it| it == holder)).peekable();
    own.peek().is_some() && own.all(|it| it.state == "terminated")
}

fn closed_window(
    world: &World,
    setting: &Setting,
    grant: &Grant,
    now: Timestamp,
) -> Option<String> {
    let class = world.class_of(&grant.node).filter(|_| grant.takes_slot())?;
    let windows = at(world.rollout_of(&class)?, &["windows"])?;
    if anew(world, &class, now) {
        return None;
    }
    let late = now.saturating_sub(KNOWN_AFTER.saturating_add(setting.slowest_clock)).ok()?;
    let closed = !calendar::open(windows, now) && !calendar::open(windows, late);
    closed.then(|| format!("node {} was granted outside the windows of class {class}", grant.node))
}

fn without_slot(world: &World, node: &str) -> bool {
    let labels = labels_of(world, node);
    let budgeted = world
        .all("NodeDisruptionBudget")
        .filter(|(_, it)| gates(&it.object, Whom::Us))
        .any(|(_, it)| labels.is_some_and(|of| selected(&it.object, of)));
    let own = world.last_class_of(node).and_then(|it| world.rollout_of(&it).cloned());
    !budgeted && own.is_none_or(|it| at(&it, &["concurrency"]).is_none())
}

/// Of a node whose claim is gone nobody else knows the class without its pool.
fn has_pool(world: &World, node: &str) -> bool {
    let pool = labels_of(world, node).and_then(|it| it.get(POOL_LABEL)).and_then(Value::as_str);
    pool.is_some_and(|it| world.others.get("NodePool").is_some_and(|all| all.contains_key(it)))
}

type Labels = serde_json::Map<String, Value>;

fn labels_of<'a>(world: &'a World, node: &str) -> Option<&'a Labels> {
    let object = world.nodes.get(node).map(|it| &it.object);
    read::labels(object.or_else(|| world.gone.get(node).map(|it| &it.1))?)
}

fn selected(budget: &Value, labels: &Labels) -> bool {
    items(budget, &["spec", "labelSelectors"]).filter_map(Value::as_object).any(|it| {
        it.iter().all(|(key, value)| {
            let of_old = key == "karpenter.sh/provisioner-name";
            labels.get(key) == Some(value) || (of_old && labels.get(POOL_LABEL) == Some(value))
        })
    })
}

/// Nodes that are there beside the one that they take over from: the whole is what it is without them.
fn surge(world: &World) -> BTreeSet<&str> {
    let there = |it: &Value| {
        text(it, &["spec", "nodeName"]).is_some_and(|old| world.nodes.contains_key(old))
    };
    let beside = world.replacements.values().filter(|it| open(it) && there(it));
    let successors = beside.flat_map(|record| {
        items(record, &["status", "successors"]).filter(move |it| of_this_try(record, it))
    });
    let nodes = successors.filter_map(|successor| {
        let (uid, name) = (text(successor, &["uid"]), text(successor, &["name"]));
        let claim = world.claims.values().find(|it| {
            uid == Some(read::uid(&it.object)) || name == Some(read::name(&it.object))
        })?;
        text(&claim.object, &["status", "nodeName"])
    });
    nodes.collect()
}

fn count(world: &World, member: impl Fn(&str) -> bool) -> i128 {
    let surge = surge(world);
    let members =
        world.nodes.keys().filter(|it| member(it) && !surge.contains(it.as_str())).count();
    i128::try_from(members).unwrap_or(i128::MAX)
}

fn cpu(world: &World, node: &str, of: &str) -> i128 {
    let object = world.nodes.get(node).map(|it| &it.object);
    let object = object.or_else(|| world.gone.get(node).map(|it| &it.1));
    read::quantity(object.and_then(|it| at(it, &["status", of, "cpu"])))
}

fn unit(rollout: &Value) -> Unit {
    if text(rollout, &["unit"]) == Some("CPU") { Unit::Cpu } else { Unit::Nodes }
}

/// What may be gone: a number, or a share that rounds down and gives one unless zero is written. `None` if
/// nothing is written; what cannot be read is zero.
fn amount(written: Option<&Value>, total: i128) -> Option<i128> {
    let written = written?;
    if let Some(number) = written.as_i64() {
        return Some(i128::from(number));
    }
    let word = written.as_str().unwrap_or_default();
    Some(match word.strip_suffix('%') {
        Some("0" | "00") => 0,
        Some(share) => share.parse::<i128>().map_or(0, |it| (total * it / 100).max(1)),
        None => word.parse().unwrap_or(0),
    })
}

fn concurrency(rollout: &Value, total: i128) -> Option<i128> {
    let written = at(rollout, &["concurrency"])?;
    if written.as_str() == Some("Parallel") {
        let batch = amount(at(rollout, &["batchMaximum"]), total);
        return Some(batch.unwrap_or_else(|| (total * 5 / 100).max(1)));
    }
    amount(Some(written), total)
}

fn class_allows(rollout: &Value, total: i128) -> i128 {
    let own = concurrency(rollout, total).unwrap_or(1);
    amount(at(rollout, &["batchMaximum"]), total).map_or(own, |it| it.min(own))
}

fn disruption_budget(budget: &Value, total: i128) -> i128 {
    if let Some(most) = amount(at(budget, &["spec", "maxUnavailable"]), total) {
        return most;
    }
    let Some(least) = at(budget, &["spec", "minAvailable"]) else { return 0 };
    let share =
        least.as_str().and_then(|it| it.strip_suffix('%')).and_then(|it| it.parse::<i128>().ok());
    let stay = match share {
        // What must stay rounds up.
        Some(share) => (total * share + 99) / 100,
        None => amount(Some(least), total).unwrap_or(total),
    };
    (total - stay).max(0)
}

fn pool_allows(pool: &Value, reason: &str, total: i128, now: Timestamp) -> i128 {
    items(pool, &["spec", "disruption", "budgets"])
        .filter(|it| {
            at(it, &["reasons"]).is_none()
                || items(it, &["reasons"]).any(|word| word.as_str() == Some(reason))
        })
        .filter(|it| match (text(it, &["schedule"]), text(it, &["duration"])) {
            (Some(schedule), Some(lasts)) => read::duration(lasts)
                .is_none_or(|lasts| calendar::active(schedule, lasts, &TimeZone::UTC, now)),
            (Some(_) | None, _) => true,
        })
        .map(|it| amount(at(it, &["nodes"]), total).unwrap_or(0))
        .min()
        .unwrap_or(i128::MAX)
}
