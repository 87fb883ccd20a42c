//! Where would the pods of those who leave go?
//!
//! All who leave are placed together with every pod that is pending, so that no two count on the same
//! room. Packing is the dearest part of a turn: it is done only for nodes that nothing else holds, and
//! what it found to be impossible is believed for a while.

mod foreseen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{DisruptionBudget, Grants, Limits, Measured, Room};
use nodemolt_core::drain::{PodPhase, moves};
use nodemolt_core::place::{
    Followed, Launchable, Placement, Placements, Turn, daemons, place_leaving,
};
use nodemolt_core::plan::{Fleet, Node, Plan, Planner, Reach, WaitFor};
use nodemolt_core::replace::{Phase, PlacementSeen, Successor};
use nodemolt_core::seen;
use nodemolt_fit::pack::{Home, Site};
use nodemolt_fit::pod::{Pod, PodId};
use nodemolt_fit::pool::Machine;

pub(crate) use foreseen::foresee;

use super::Sight;
use super::coming::{Anew, coming, counts};
use super::fleet::{Readings, claimed};
use super::pools::{self, FIRST_ANSWERS_WITHIN, Launching};
use super::successors::Old;
use crate::memory::{Memory, after};
use crate::port::NewClaim;

/// So often one turn looks for somebody who can start. The next turn goes on from there.
const ROUNDS_MAX: usize = 6;

/// When the next turn goes on: at once, where a pool has not had its chance yet; else before long.
const NEXT_POOL_AFTER: SignedDuration = SignedDuration::from_secs(1);
const NEXT_NODE_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// A pod that has no place gets none within seconds, unless a node comes; then it is looked at again.
const BELIEVED_FOR: SignedDuration = SignedDuration::from_mins(1);

/// Nodes that had no place to go to, and until when that is believed: at least until all others of their
/// pool were looked at, else the first few would be looked at again and again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdicts {
    of: BTreeMap<String, (Placement, Timestamp)>,
    /// Pools that a verdict was found for, while others have not had their chance.
    passed: BTreeSet<String>,
    /// Pools with nodes that nobody has looked at.
    unseen: BTreeSet<String>,
}

/// What there is to place pods on.
pub(crate) struct Table<'r> {
    pub(crate) readings: &'r mut Readings,
    /// Made when first needed.
    pools: Option<Launching>,
    pending: Vec<Pod>,
    /// Those looked at that are followed by one of their kind, as a budget counts on it.
    heirs: BTreeSet<String>,
    /// Nodes that leave, and what they use of limits is free.
    released: BTreeSet<String>,
}

/// One that could be cordoned now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cordonable {
    /// Its successors are there.
    pub(crate) followed: bool,
    /// It may wait for better room than nodes that are to be replaced themselves.
    pub(crate) waits: bool,
}

/// Which places count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    /// Those that are there, those that are on their way, and those that could be launched.
    All,
    /// Only nodes that could take a pod this moment.
    Ready,
}

impl<'r> Table<'r> {
    pub(crate) fn new(sight: &Sight<'_>, readings: &'r mut Readings) -> Self {
        let pending = sight.view.pods.nowhere().filter(|it| {
            it.drain.phase == PodPhase::Pending && it.drain.ends_at.is_none() && !it.fit.tied
        });
        let pending = pending.chain(to_come_again(sight));
        debug_assert!(readings.tells_who_fades(), "whoever is to be replaced is marked as that");
        let daemons = &readings.daemons.0;
        let pending = pending.map(|it| daemons::judged(&it.fit, daemons)).collect();
        let (heirs, released) = (BTreeSet::new(), BTreeSet::new());
        Self { readings, pools: None, pending, heirs, released }
    }

    fn place(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        leaving: &BTreeSet<String>,
        places: Places,
    ) -> Placements {
        self.place_but(memory, sight, leaving, places, Anew::Nothing)
    }

    /// As if some of what was decided were not decided yet.
    fn place_but(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        leaving: &BTreeSet<String>,
        places: Places,
        anew: Anew<'_>,
    ) -> Placements {
        let known = self.readings.rooms.len();
        if places == Places::All {
            let coming = coming(memory, sight, anew);
            let launching = self.pools.get_or_insert_with(|| pools::launching(memory, sight));
            let counted: Vec<&NewClaim> = coming.iter().filter(|it| counts(sight, it)).collect();
            launching.count(&counted);
            launching.release(sight, self.released.iter().map(String::as_str));
            let daemons = &self.readings.daemons.0;
            let rooms = coming.iter().map(|it| claimed(it.into(), daemons).into());
            let rooms: Vec<Site> = rooms.collect();
            self.readings.rooms.extend(rooms);
        }
        let nodes = self.readings.nodes;
        let rooms = &mut self.readings.rooms;
        let mut closed = Vec::new();
        if places == Places::Ready {
            let set_up = |it: &Site| it.initialised || it.closed;
            closed.extend((0..rooms.len()).filter(|at| !set_up(&rooms[*at])));
            for at in &closed {
                rooms[*at].set_closed(true);
            }
        }
        let left: Vec<usize> = called(rooms, nodes, leaving.iter().map(String::as_str));
        for at in &left {
            rooms[*at].set_leaving(true);
        }
        let nothing = Launching::default();
        let launching = match places {
            Places::All => self.pools.as_ref().unwrap_or(&nothing),
            Places::Ready => &nothing,
        };
        let followed = followed(sight, anew);
        let launchable = Launchable {
            pools: &launching.for_pods,
            kept: &launching.kept,
            followed: &followed,
            heirs: &self.heirs,
        };
        let placements = place_leaving(rooms, launchable, &self.pending);
        for at in left {
            rooms[at].set_leaving(false);
        }
        for at in closed {
            rooms[at].set_closed(false);
        }
        rooms.truncate(known);
        placements
    }

    /// The placement of one node, as if it left now beside those that are going, and nothing was decided for
    /// it yet.
    pub(crate) fn place_one(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        node: &str,
        replacement: &str,
    ) -> Placements {
        let mut leaving = leaving(sight);
        leaving.insert(node.to_owned());
        self.place_but(memory, sight, &leaving, Places::All, Anew::Replacement(replacement))
    }

    /// Whether a successor may be made now: what was decided before may be more than its pool allows today.
    /// Of several that are to come the first by name goes first.
    pub(crate) fn affords(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        claim: &NewClaim,
    ) -> bool {
        let mut coming = coming(memory, sight, Anew::Nothing);
        coming.retain(|it| it.name < claim.name && counts(sight, it));
        let launching = self.pools.get_or_insert_with(|| pools::launching(memory, sight));
        launching.affords(claim, &coming)
    }

    /// Where those that are pending go, beside the pods of nodes that are going.
    pub(crate) fn place_pending(&mut self, memory: &mut Memory, sight: &Sight<'_>) -> Placements {
        self.place_but(memory, sight, &leaving(sight), Places::All, Anew::Rooms)
    }

    /// Where the pods of nodes that are going would go, and nothing is decided anew.
    pub(crate) fn place_those_going(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
    ) -> Placements {
        self.place(memory, sight, &leaving(sight), Places::All)
    }

    /// Whether the pods of these nodes have a place on nodes that are ready: decided again right before
    /// their cordon. By node. Those that follow them have their places first where they have successors;
    /// and what is ready of the successors of all others is for nobody else, nor is a node that is to go itself.
    /// Where only nodes have room that are to be replaced later, and others that will have some are on their way, those are
    /// waited for. With the nodes that take the pods.
    pub(crate) fn place_again(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        nodes: &BTreeMap<String, Cordonable>,
        follow: &BTreeSet<String>,
    ) -> BTreeMap<String, (PlacementSeen, BTreeSet<String>)> {
        if nodes.is_empty() {
            return BTreeMap::new();
        }
        let emptied = sight
            .records
            .replacements
            .values()
            .filter(|it| matches!(it.replacement.phase, Phase::Draining | Phase::Terminating));
        let mut leaving: BTreeSet<String> =
            emptied.map(|it| it.replacement.old.node.clone()).collect();
        leaving.extend(nodes.keys().cloned());
        // Those of one that has given up go, however ready they are.
        leaving.extend(given_up(sight));
        leaving.extend(follow.iter().cloned());
        let spoken_for = spoken_for(sight, &leaving);
        let nodes_known = self.readings.nodes;
        let rooms = &mut self.readings.rooms;
        let mut closed = called(rooms, nodes_known, spoken_for.into_iter());
        closed.retain(|at| !rooms[*at].closed);
        for at in &closed {
            rooms[*at].set_closed(true);
        }
        let placements = self.place(memory, sight, &leaving, Places::Ready);
        for at in closed {
            self.readings.rooms[at].set_closed(false);
        }
        let waiting = self.wait_for_better(memory, sight, nodes, &placements);
        let answer = |(node, it): (&String, &Cordonable)| {
            let seen = match placements.of.get(node) {
                Some(Placement::Spare { .. }) if waiting.contains_key(node) => {
                    let (pod, home) = &waiting[node];
                    let because = format!(
                        "only nodes that are to be replaced themselves have room before `{home}` is ready to take it"
                    );
                    PlacementSeen::Lost { pod: pod.to_string(), because }
                }
                // There was nothing to launch, so successors are not said, and nothing can be lacking.
                None | Some(Placement::Successors { .. } | Placement::NoKin { .. }) => {
                    PlacementSeen::NotDecided
                }
                Some(Placement::Spare { .. }) => PlacementSeen::Holds,
                // What cannot be modelled goes to a node of the same kind, which is ready now.
                Some(Placement::Unmodelled { .. }) if it.followed => PlacementSeen::Holds,
                Some(Placement::Unmodelled { pod, what, .. }) => PlacementSeen::Lost {
                    pod: pod.to_string(),
                    because: format!("it asks for what is not modelled: {}", what.join(", ")),
                },
                Some(Placement::Unplaced { pod, why }) => {
                    PlacementSeen::Lost { pod: pod.to_string(), because: why.to_string() }
                }
            };
            let pods = sight.view.pods.on(node);
            let homes = pods.filter_map(|it| match placements.homes.get(&it.fit.id())? {
                Home::Node(name) => Some(name.clone()),
                Home::New(_) => None,
            });
            (node.clone(), (seen, homes.collect()))
        };
        nodes.iter().map(answer).collect()
    }

    /// Of those whose pods would go to nodes that are to be replaced later: a pod that has a better place once that is
    /// ready, and which that is.
    fn wait_for_better(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        nodes: &BTreeMap<String, Cordonable>,
        ready: &Placements,
    ) -> BTreeMap<String, (PodId, String)> {
        let fleet = Arc::clone(self.readings.fleet());
        let fades = |name: &String| fleet.nodes.get(name).is_some_and(Node::fades);
        let again = |(node, it): &(&String, &Cordonable)| match ready.of.get(*node) {
            Some(Placement::Spare { on }) => it.waits && on.iter().any(fades),
            _ => false,
        };
        let again: Vec<&String> = nodes.iter().filter(again).map(|(node, _)| node).collect();
        if again.is_empty() {
            return BTreeMap::new();
        }
        let later = self.place_those_going(memory, sight);
        let better = |node: &String| {
            let pods = sight.view.pods.on(node).map(|it| it.fit.id());
            let mut pods = pods.filter_map(|pod| {
                let (Home::Node(now), Home::Node(then)) =
                    (ready.homes.get(&pod)?, later.homes.get(&pod)?)
                else {
                    return None;
                };
                (fades(now) && !fades(then)).then(|| (pod, then.clone()))
            });
            pods.next()
        };
        again.into_iter().filter_map(|node| Some((node.clone(), better(node)?))).collect()
    }
}

/// Where the rooms of these names are. So many of the first are nodes, in the order of their names.
fn called<'a>(rooms: &[Site], nodes: usize, names: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let (known, coming) = rooms.split_at(nodes);
    let at = |name: &'a str| {
        let known = known.binary_search_by(|it| it.name.as_str().cmp(name)).ok();
        let coming = (nodes..).zip(coming).filter(move |(_, it)| it.name == name);
        known.into_iter().chain(coming.map(|(at, _)| at))
    };
    names.flat_map(at).collect()
}

/// Pods that ended with a node of ours and that nobody has cleared away yet: in a moment others come in their
/// place, and nobody else counts on the room for those.
fn to_come_again<'a>(sight: &Sight<'a>) -> impl Iterator<Item = &'a seen::Pod> {
    let view = sight.view;
    let old = sight.records.replacements.values().map(|it| it.replacement.old.node.as_str());
    let gone: BTreeSet<&str> = old.filter(|it| !view.nodes.contains_key(*it)).collect();
    let now = sight.now;
    let left = gone.into_iter().flat_map(|it| view.pods.on(it));
    left.filter(move |it| it.drain.ends_at.is_none() && moves(&it.drain, now))
}

/// Nodes that are going already: neither their room nor their pods count where they are.
fn leaving(sight: &Sight<'_>) -> BTreeSet<String> {
    followed(sight, Anew::Nothing).into_keys().chain(given_up(sight)).collect()
}

/// Old nodes whose successors were asked for, and that have not gone; whose turn comes when, and which successors.
fn followed(sight: &Sight<'_>, anew: Anew<'_>) -> BTreeMap<String, Followed> {
    let all = sight.records.replacements.values();
    let going = all.filter_map(|record| {
        let it = &record.replacement;
        let turn = match it.phase {
            Phase::Draining | Phase::Terminating => Turn::Emptied,
            Phase::Launching | Phase::Joining | Phase::Settling if it.successors.is_empty() => {
                Turn::Spare
            }
            Phase::Launching | Phase::Joining | Phase::Settling => Turn::Succeeded,
            Phase::Retreating
            | Phase::Done
            | Phase::Failed
            | Phase::Skipped
            | Phase::Kept
            | Phase::Cancelled => return None,
        };
        let by = it.successors.iter().map(|it| node_of(sight, it).to_owned());
        let by = (anew != Anew::Replacement(&record.name)).then(|| by.collect());
        Some((it.old.node.clone(), Followed { turn, by }))
    });
    going.collect()
}

/// Of those that do not leave with these yet: their successors, where their own pods come first, and the nodes
/// themselves, as who moves there would have to move again.
fn spoken_for<'a>(sight: &'a Sight<'_>, leaving: &BTreeSet<String>) -> BTreeSet<&'a str> {
    let all = sight.records.replacements.values().map(|it| &it.replacement);
    let to_leave = all.filter(|it| {
        let before = matches!(it.phase, Phase::Launching | Phase::Joining | Phase::Settling);
        before && !leaving.contains(&it.old.node)
    });
    let rooms = to_leave.flat_map(|it| {
        let successors = it.successors.iter().map(|it| node_of(sight, it));
        successors.chain([it.old.node.as_str()])
    });
    rooms.collect()
}

/// What its room is called: as its node, if it has one.
fn node_of<'a>(sight: &'a Sight<'_>, successor: &'a Successor) -> &'a str {
    let claim = sight.view.claims.get(&successor.claim);
    claim.and_then(|it| it.node.as_ref()).unwrap_or(&successor.claim)
}

/// Successors of replacements that have given up: they go, unless pods run there.
fn given_up(sight: &Sight<'_>) -> BTreeSet<String> {
    let all = sight.records.replacements.values().map(|it| &it.replacement);
    let retreating = all.filter(|it| it.phase == Phase::Retreating);
    let names = retreating.flat_map(|it| &it.successors).map(|it| node_of(sight, it));
    let empty = names.filter(|it| !sight.view.pods.on(it).any(|it| !it.fit.tied));
    empty.map(str::to_owned).collect()
}

/// Who starts, who waits, and where the pods of those who start would go.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) rooms: Measured,
    pub(crate) placements: Placements,
    /// One that goes without one of its kind, though a budget counts on those.
    pub(crate) unfollowed: Option<String>,
    /// When to go on looking, if not everybody was looked at.
    pub(crate) look_on_at: Option<Timestamp>,
}

/// Those who may go by everything else are looked at, a few at a time. Once one of a pool has no place to
/// go to, the other pools have their chance before the rest of that one.
pub(crate) fn plan_all(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    grants: &Grants,
    limits: &Limits,
) -> Planned {
    let now = sight.now;
    let mut verdicts = std::mem::take(&mut memory.verdicts);
    // What runs stays what it is while it is planned.
    let fleet = Arc::clone(table.readings.fleet());
    verdicts.forget(&fleet, now);
    let counted = table.readings.counted(limits, grants);
    let planner = Planner::counted(&fleet, &counted, grants, limits, now);
    let decide = |placements: &Placements| planner.plan(placements, &Reach::default());
    let mut placements = Placements::default();
    verdicts.tell(&mut placements);
    let gone = leaving(sight);
    let mut considered: BTreeSet<String> = BTreeSet::new();
    let mut decided = decide(&placements);
    let mut all_had_a_chance = false;
    let mut early: BTreeSet<String> = BTreeSet::new();
    let mut unfollowed = None;
    for _ in 0..ROUNDS_MAX {
        if decided.consider.is_empty() && !verdicts.passed.is_empty() {
            // Every pool had its chance: now the others of those whose first ones had no place.
            all_had_a_chance = true;
            verdicts.passed.clear();
            placements.passed.clear();
            decided = decide(&placements);
        }
        if decided.consider.is_empty() {
            break;
        }
        if decided.consider.iter().all(|it| early.contains(it)) {
            break;
        }
        for it in &decided.consider {
            if considered.insert(it.clone())
                && heir(memory, sight, &fleet, planner.rooms(), limits, it, &[]).is_some()
            {
                table.heirs.insert(it.clone());
            }
        }
        let all: BTreeSet<String> = gone.union(&considered).cloned().collect();
        placements = table.place(memory, sight, &all, Places::All);
        // A fleet that is as large as its limits allow gets room for successors by one that goes without.
        let stuck = |it: &&String| {
            let no_kin = matches!(placements.of.get(*it), Some(Placement::NoKin { .. }));
            no_kin && table.heirs.contains(*it) && spared(&fleet, planner.rooms(), it)
        };
        if unfollowed.is_none()
            && let Some(first) = considered.iter().find(stuck)
        {
            table.heirs.remove(first);
            unfollowed = Some(first.clone());
            placements = table.place(memory, sight, &all, Places::All);
        }
        verdicts.learn(&considered, &placements, &fleet, now);
        // Who cannot go stays, and takes nobody's place in the next round.
        considered.retain(|it| !verdicts.of.contains_key(it));
        for it in &considered {
            if placements.of.contains_key(it) && too_early(memory, sight, it) {
                placements.of.remove(it);
                early.insert(it.clone());
            }
        }
        verdicts.tell(&mut placements);
        decided = decide(&placements);
    }
    table.heirs.clear();
    let look_on_at = if all_had_a_chance || decided.consider.is_empty() {
        verdicts.passed.clear();
        NEXT_NODE_AFTER
    } else {
        NEXT_POOL_AFTER
    };
    let unseen = verdicts.look_back(&decided, &fleet, now);
    let look_on_at = unseen.then(|| after(now, look_on_at));
    memory.verdicts = verdicts;
    Planned { plan: decided, rooms: planner.into_rooms(), placements, unfollowed, look_on_at }
}

/// Whether every budget of a node lets others go after it, followed or not.
fn spared(fleet: &Fleet, rooms: &Measured, name: &str) -> bool {
    let node = fleet.nodes.get(name);
    node.is_some_and(|it| rooms.rooms_of(&it.member).all(Room::spares_one))
}

/// One of a node's kind to follow it beside these: where a budget keeps so many available that it would let
/// nobody else go before long, and none of these is one that it selects. A budget that would not select one
/// of its kind either is not helped.
pub(crate) fn heir(
    memory: &mut Memory,
    sight: &Sight<'_>,
    fleet: &Fleet,
    rooms: &Measured,
    limits: &Limits,
    name: &str,
    beside: &[NewClaim],
) -> Option<NewClaim> {
    let node = fleet.nodes.get(name).filter(|it| voluntary(it))?;
    let counting = rooms.rooms_of(&node.member).filter(|it| it.counts_heirs());
    let counting: BTreeSet<&str> = counting.filter_map(|it| it.id.disruption()).collect();
    let budgets = limits.disruption_budgets.iter();
    let mut budgets = budgets.filter(|it| counting.contains(it.name.as_str())).peekable();
    budgets.peek()?;
    let claim = sight.claim_of(name)?;
    let pool = claim.pool.as_ref().and_then(|it| sight.view.pools.get(it));
    let old = Old::new(memory, sight, pool, claim, sight.view.nodes.get(name), false);
    let heir = old.same_kind(sight)?;
    let lacks = |it: &DisruptionBudget| {
        it.selects(&heir.labels) && !beside.iter().any(|beside| it.selects(&beside.labels))
    };
    budgets.any(lacks).then_some(heir)
}

/// Whether nobody could know yet what might be launched in a node's place: EC2 was not asked before a moment
/// ago. Somebody has deleted it, and its pods would be evicted without a successor.
fn too_early(memory: &mut Memory, sight: &Sight<'_>, node: &str) -> bool {
    let young = memory.began_at.is_none_or(|it| sight.now < after(it, FIRST_ANSWERS_WITHIN));
    let claim = sight.claim_of(node);
    let pool = claim.and_then(|it| sight.view.pools.get(it.pool.as_ref()?));
    let nothing = |it: &Arc<Vec<Machine>>| it.is_empty();
    young
        && pool
            .is_some_and(|it| pools::could_launch(memory, sight, it).as_ref().is_none_or(nothing))
}

impl Verdicts {
    /// What is not believed any more. Who goes anyway is always looked at: its pods have to be somewhere.
    fn forget(&mut self, fleet: &Fleet, now: Timestamp) {
        let unseen = &self.unseen;
        self.of.retain(|name, (_, until)| {
            let Some(node) = fleet.nodes.get(name) else { return false };
            let pool = node.member.pool.as_ref();
            voluntary(node) && (now < *until || pool.is_some_and(|it| unseen.contains(it)))
        });
    }

    fn tell(&self, placements: &mut Placements) {
        placements.of.extend(self.of.iter().map(|(node, (it, _))| (node.clone(), it.clone())));
        placements.passed.clone_from(&self.passed);
    }

    fn learn(
        &mut self,
        considered: &BTreeSet<String>,
        placements: &Placements,
        fleet: &Fleet,
        now: Timestamp,
    ) {
        for name in considered {
            let Some(it) = placements.of.get(name).filter(|it| no_way(it)) else { continue };
            let Some(node) = fleet.nodes.get(name).filter(|it| voluntary(it)) else { continue };
            self.of.insert(name.clone(), (it.clone(), after(now, BELIEVED_FOR)));
            self.passed.extend(node.member.pool.clone());
        }
    }

    /// Whether somebody was not looked at.
    fn look_back(&mut self, plan: &Plan, fleet: &Fleet, now: Timestamp) -> bool {
        let passed_over = plan.waiting.iter().filter(|(_, it)| it.first == WaitFor::Consideration);
        let pools = passed_over.filter_map(|(name, _)| fleet.nodes.get(name)?.member.pool.clone());
        let before = std::mem::replace(&mut self.unseen, pools.collect());
        if before.iter().any(|it| !self.unseen.contains(it)) {
            // All of a pool were looked at: the first of them long ago, perhaps.
            for (name, (_, until)) in &mut self.of {
                let pool = fleet.nodes.get(name).and_then(|it| it.member.pool.as_ref());
                if pool.is_some_and(|it| before.contains(it) && !self.unseen.contains(it)) {
                    *until = after(now, BELIEVED_FOR);
                }
            }
        }
        !plan.consider.is_empty() || !self.unseen.is_empty()
    }
}

fn voluntary(node: &Node) -> bool {
    node.wish.as_ref().is_some_and(|it| it.cause.voluntary())
}

/// Whether a node cannot go.
fn no_way(placement: &Placement) -> bool {
    match placement {
        Placement::Unplaced { .. } | Placement::NoKin { .. } => true,
        Placement::Spare { .. } | Placement::Successors { .. } | Placement::Unmodelled { .. } => {
            false
        }
    }
}
