//! Where would the pods of those who leave go?
//!
//! All who leave are placed together with every pod that is pending, so that no two count on the same
//! room. Packing is the dearest part of a turn: it is done only for nodes that nothing else holds, and
//! what it found to be impossible is believed for a while.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{Act, Grants, Limits, Measured, measure};
use nodemolt_core::drain::PodPhase;
use nodemolt_core::place::{Placement, Placements, place_leaving};
use nodemolt_core::plan::{Plan, Reach, plan};
use nodemolt_core::replace::{Phase, PlacementSeen};
use nodemolt_fit::pod::Pod;
use nodemolt_fit::pool::Pool;

use super::Sight;
use super::fleet::Readings;
use super::pools;
use crate::memory::{Memory, after};

/// So often one turn looks for somebody who can start. The next turn goes on from there.
const ROUNDS_MAX: usize = 6;

/// A pod that has no place gets none within seconds, unless a node comes; then it is looked at again.
const BELIEVED_FOR: SignedDuration = SignedDuration::from_mins(1);

/// Nodes whose pods had no place, and until when that is believed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdicts(BTreeMap<String, (Placement, Timestamp)>);

/// What there is to place pods on.
pub(crate) struct Table<'r> {
    pub(crate) readings: &'r mut Readings,
    /// Made when first needed.
    pools: Option<Vec<Pool>>,
    pending: Vec<Pod>,
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
        let pending = pending.map(|it| it.fit.clone()).collect();
        Self { readings, pools: None, pending }
    }

    fn place(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        leaving: &BTreeSet<String>,
        places: Places,
    ) -> Placements {
        if places == Places::All && self.pools.is_none() {
            self.pools = Some(pools::launching(memory, sight));
        }
        let rooms = &mut self.readings.rooms;
        let mut closed = Vec::new();
        for (at, room) in rooms.iter_mut().enumerate() {
            room.leaving = leaving.contains(&room.name);
            if places == Places::Ready && !room.initialised && !room.unschedulable {
                room.unschedulable = true;
                closed.push(at);
            }
        }
        let launched = match places {
            Places::All => self.pools.as_deref().unwrap_or_default(),
            Places::Ready => &[],
        };
        let placements = place_leaving(rooms, launched, &self.pending);
        for room in rooms.iter_mut() {
            room.leaving = false;
        }
        for at in closed {
            rooms[at].unschedulable = false;
        }
        placements
    }

    /// The placement of one node, as if it left now beside those that are going.
    pub(crate) fn place_one(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        node: &str,
    ) -> Placements {
        let mut leaving = leaving(sight);
        leaving.insert(node.to_owned());
        self.place(memory, sight, &leaving, Places::All)
    }

    /// Where pending pods go, beside those of nodes that are going.
    pub(crate) fn place_pending(&mut self, memory: &mut Memory, sight: &Sight<'_>) -> Placements {
        self.place(memory, sight, &leaving(sight), Places::All)
    }

    /// Whether the pods of these nodes have a place on nodes that are ready: decided again right before
    /// their cordon. By node.
    pub(crate) fn place_again(
        &mut self,
        memory: &mut Memory,
        sight: &Sight<'_>,
        nodes: &BTreeMap<String, bool>,
    ) -> BTreeMap<String, PlacementSeen> {
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
        let placements = self.place(memory, sight, &leaving, Places::Ready);
        let answer = |(node, has_successors): (&String, &bool)| {
            let seen = match placements.of.get(node) {
                // There was nothing to launch, so successors are not said.
                None | Some(Placement::Successors { .. }) => PlacementSeen::NotDecided,
                Some(Placement::Spare { .. }) => PlacementSeen::Holds,
                // What cannot be modelled goes to a node of the same kind, which is ready now.
                Some(Placement::Unmodelled { .. }) if *has_successors => PlacementSeen::Holds,
                Some(Placement::Unmodelled { pod, what }) => PlacementSeen::Lost {
                    pod: pod.to_string(),
                    because: format!("it asks for what is not modelled: {}", what.join(", ")),
                },
                Some(Placement::Unplaced { pod, why }) => {
                    PlacementSeen::Lost { pod: pod.to_string(), because: why.to_string() }
                }
            };
            (node.clone(), seen)
        };
        nodes.iter().map(answer).collect()
    }
}

/// Nodes that are going already: neither their room nor their pods count where they are.
fn leaving(sight: &Sight<'_>) -> BTreeSet<String> {
    let mut leaving = BTreeSet::new();
    for it in sight.records.replacements.values() {
        let replacement = &it.replacement;
        match replacement.phase {
            Phase::Launching
            | Phase::Joining
            | Phase::Settling
            | Phase::Draining
            | Phase::Terminating => {
                leaving.insert(replacement.old.node.clone());
            }
            // Its successors go, unless pods run there.
            Phase::Retreating => {
                for successor in &replacement.successors {
                    let claim = sight.view.claims.get(&successor.claim);
                    let node = claim.and_then(|it| it.node.as_ref());
                    let name = node.unwrap_or(&successor.claim);
                    if !sight.view.pods.on(name).any(|it| !it.fit.tied) {
                        leaving.insert(name.clone());
                    }
                }
            }
            Phase::Done | Phase::Failed | Phase::Skipped | Phase::Kept | Phase::Cancelled => {}
        }
    }
    leaving
}

/// Who starts, who waits, and where the pods of those who start would go.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) rooms: Measured,
    pub(crate) placements: Placements,
}

pub(crate) fn plan_all(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    grants: &Grants,
    limits: &Limits,
) -> Planned {
    let now = sight.now;
    memory.verdicts.0.retain(|_, (_, until)| now < *until);
    let believed = |verdicts: &Verdicts| -> BTreeMap<String, Placement> {
        verdicts.0.iter().map(|(node, (it, _))| (node.clone(), it.clone())).collect()
    };
    let mut placements = Placements { of: believed(&memory.verdicts), ..Placements::default() };
    let gone = leaving(sight);
    let mut considered: BTreeSet<String> = BTreeSet::new();
    let mut decided =
        plan(table.readings.fleet(), &placements, &Reach::default(), grants, limits, now);
    for _ in 0..ROUNDS_MAX {
        if decided.consider.is_empty() {
            break;
        }
        considered.extend(decided.consider.iter().cloned());
        let all: BTreeSet<String> = gone.union(&considered).cloned().collect();
        placements = table.place(memory, sight, &all, Places::All);
        for node in &considered {
            if let Some(it @ Placement::Unplaced { .. }) = placements.of.get(node) {
                memory.verdicts.0.insert(node.clone(), (it.clone(), after(now, BELIEVED_FOR)));
            }
        }
        // Who cannot go stays, and takes nobody's place in the next round.
        considered.retain(|it| !memory.verdicts.0.contains_key(it));
        placements.of.extend(believed(&memory.verdicts));
        decided = plan(table.readings.fleet(), &placements, &Reach::default(), grants, limits, now);
    }
    let members = table.readings.fleet().members();
    let rooms = measure(members, limits, grants, Act::Replace, now);
    Planned { plan: decided, rooms, placements }
}
