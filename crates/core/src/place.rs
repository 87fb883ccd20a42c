//! Where would its pods go?
//!
//! `fleet × the nodes that leave → a placement of each`
//!
//! All nodes that leave are considered together, with every pod that is pending: two replacements
//! can then not count on the same room, and a pod of one cannot take the place that a pod of the
//! other needs. Nodes to be launched may serve several of those that leave. Whoever is under way has its
//! place before a newcomer is looked at, and keeps it whoever comes: what was launched for the one is not
//! given to the other. Pending pods that fit now are bound before anybody leaves.

pub mod daemons;
mod kin;
mod now;
mod stay;
pub mod terms;

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_fit::{
    Quantity,
    capacity::Amounts,
    node::Node,
    pack::{Home, NewNode, Packing, Placed, Why, pack},
    pod::{Pod, PodId},
    pool::Pool,
};

use self::kin::Kin;

/// Everything that pods could be on, and the pods that are on nothing yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    pub nodes: Vec<Node>,
    pub pools: Vec<Pool>,
    pub pending: Vec<Pod>,
}

/// What becomes of the pods of a node that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// They fit on nodes that stay: these. None, if it has no pods that have to move.
    Spare { on: BTreeSet<String> },
    /// They need new nodes, by their places in `Placements::new_nodes`; never empty.
    Successors { new: BTreeSet<usize> },
    /// This pod, and perhaps others, would have no home.
    Unplaced { pod: PodId, why: Why },
    /// This pod asks for something that we have no picture of. Its node needs a successor of its own
    /// kind, and is never spare; where its other pods go is not looked at.
    Unmodelled { pod: PodId, what: Vec<String> },
    /// It has to be followed by one of its own kind, and its pool cannot launch one: this limit of the pool
    /// would have to be so much higher, or nothing that the pool asks for is to be had.
    NoKin { pool: String, limit: Option<(String, Quantity)> },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placements {
    /// By the name of the node that leaves. A name that the fleet does not know has none.
    pub of: BTreeMap<String, Placement>,
    /// For all of them and for pending pods.
    pub new_nodes: Vec<NewNode>,
    /// Of every pod that has to move or is pending, and has a home.
    pub homes: BTreeMap<PodId, Home>,
    /// Of those that have none: why.
    pub homeless: BTreeMap<PodId, Why>,
    /// Pools of which a node was looked at and cannot go: the others come first now.
    pub passed: BTreeSet<String>,
}

/// What could be launched for those who leave.
#[derive(Debug, Clone, Copy)]
pub struct Launchable<'a> {
    pub pools: &'a [Pool],
    /// Pools that are kept at a number: none is launched for pods, and each of their nodes that leaves is
    /// followed by one of its kind.
    pub kept: &'a [Pool],
    /// Nodes that leave and whose successors were asked for already, and whose turn comes when. All others
    /// come after them, and pods that are pending before: the scheduler does not wait for us.
    pub followed: &'a BTreeMap<String, Turn>,
    /// Nodes that leave and are followed by one of their kind, whatever their pods need: a budget counts on
    /// as many as there are.
    pub heirs: &'a BTreeSet<String>,
}

/// In which order the pods of nodes that leave get their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// Its pods are asked to leave by now.
    Emptied,
    /// It has successors.
    Succeeded,
    /// It counts on the room that others leave.
    Spare,
}

/// Of those that are pending, and of newcomers.
const PENDING: u8 = 0;
const NEWCOMER: u8 = u8::MAX;

impl Turn {
    fn order(self) -> u8 {
        match self {
            Self::Emptied => 1,
            Self::Succeeded => 2,
            Self::Spare => 3,
        }
    }
}

/// Where the pods of these nodes would go, if all of them left. Nodes that the fleet itself calls
/// leaving are among them.
pub fn place(leaving: &BTreeSet<String>, fleet: &Fleet) -> Placements {
    let leaves =
        |it: &Node| Node { leaving: it.leaving || leaving.contains(&it.name), ..it.clone() };
    let mut nodes: Vec<Node> = fleet.nodes.iter().map(leaves).collect();
    let (followed, heirs) = (BTreeMap::new(), BTreeSet::new());
    let launchable =
        Launchable { pools: &fleet.pools, kept: &[], followed: &followed, heirs: &heirs };
    place_leaving(&mut nodes, launchable, &fleet.pending)
}

/// The same for those that are marked as leaving: for whoever has the nodes at hand, as they are many. They
/// are given back as they were.
pub fn place_leaving(
    nodes: &mut [Node],
    launchable: Launchable<'_>,
    pending: &[Pod],
) -> Placements {
    let ask = |pods: &[Pod], nodes: &[Node], pools: &[Pool]| (pack(pods, nodes, pools), ());
    let Asked { of, packing, told: _ } = place_asking(nodes, launchable, pending, ask);
    let homes = packing.placed.into_iter().map(|it| (it.pod, it.home)).collect();
    let homeless = packing.unplaced.into_iter().map(|it| (it.pod, it.why)).collect();
    let new_nodes = packing.new_nodes;
    Placements { of, new_nodes, homes, homeless, passed: BTreeSet::new() }
}

/// What packing said, and what that means for each node that leaves.
#[derive(Debug)]
pub struct Asked<T> {
    pub of: BTreeMap<String, Placement>,
    /// Of all pods but those of nodes that are followed by one of their own kind.
    pub packing: Packing,
    /// Whatever else was asked: of pods that are bound before anybody leaves, where somebody is asked for such, and
    /// then of the others.
    pub told: Vec<T>,
}

/// The same for whoever wants to know more than where pods go: how packing is asked is theirs to say, what it is asked
/// is not.
pub fn place_asking<T>(
    nodes: &mut [Node],
    launchable: Launchable<'_>,
    pending: &[Pod],
    mut ask: impl FnMut(&[Pod], &[Node], &[Pool]) -> (Packing, T),
) -> Asked<T> {
    let mut pods: Vec<Pod> =
        pending.iter().map(|it| Pod { order: PENDING, terminating: false, ..it.clone() }).collect();
    let (mut bound, mut told) = (Vec::new(), Vec::new());
    if let Some((now, of_now)) = now::bound(&pods, nodes, launchable.pools, &mut ask) {
        bound = now;
        told.push(of_now);
    }
    let guests = welcome(&bound, &mut pods, nodes);
    let mut of = BTreeMap::new();
    let mut kin = Kin::new(launchable);
    let mut leave_now = Vec::new();
    let mut moving: BTreeMap<String, Vec<PodId>> = BTreeMap::new();
    let mut strange = Vec::new();
    for (at, node) in nodes.iter().enumerate().filter(|(_, it)| it.leaving) {
        let leave: Vec<&Pod> = node.pods.iter().filter(|it| !it.tied).collect();
        let unforeseen = unmodelled(&leave).or_else(|| stay::torn(&leave, nodes));
        if unforeseen.is_some() {
            strange.push(at);
        }
        if let Some(placement) = kin.follow(node, unforeseen.is_some()).or(unforeseen) {
            of.insert(node.name.clone(), placement);
            continue;
        }
        moving.insert(node.name.clone(), leave.iter().map(|it| it.id()).collect());
        let order = launchable.followed.get(&node.name).map_or(NEWCOMER, |it| it.order());
        leave_now.extend(leave.into_iter().map(|it| Pod { order, ..it.clone() }));
    }
    let leave_now = stay::together(leave_now, nodes);
    pods.extend(leave_now.into_iter().map(|it| Pod { terminating: false, ..it }));
    // Nobody knows when such a pod goes, so it keeps away whom it keeps away; and the node is no place.
    let closed: Vec<(usize, Node)> = strange
        .into_iter()
        .map(|at| {
            let closed = Node {
                leaving: false,
                unschedulable: true,
                allocatable: Amounts::new(),
                ..nodes[at].clone()
            };
            (at, std::mem::replace(&mut nodes[at], closed))
        })
        .collect();
    let (mut packing, of_others) = ask(&pods, nodes, &kin.pools);
    told.push(of_others);
    for (at, node) in closed {
        nodes[at] = node;
    }
    for (at, count) in guests {
        let there = nodes[at].pods.len().saturating_sub(count);
        nodes[at].pods.truncate(there);
    }
    packing.placed.splice(0..0, bound);
    for (name, pods) in moving {
        of.insert(name, placement(&pods, &packing));
    }
    Asked { of, packing, told }
}

/// Let those who are bound run where they are bound, instead of looking for a place for them. How many more each node has.
fn welcome(bound: &[Placed], pods: &mut Vec<Pod>, nodes: &mut [Node]) -> BTreeMap<usize, usize> {
    let mut guests: BTreeMap<usize, usize> = BTreeMap::new();
    if bound.is_empty() {
        return guests;
    }
    let by_name: BTreeMap<String, usize> =
        nodes.iter().enumerate().map(|(at, it)| (it.name.clone(), at)).collect();
    let homes: BTreeMap<&PodId, &Home> = bound.iter().map(|it| (&it.pod, &it.home)).collect();
    pods.retain(|pod| {
        let Some(Home::Node(name)) = homes.get(&pod.id()) else { return true };
        let Some(at) = by_name.get(name) else { return true };
        nodes[*at].pods.push(pod.clone());
        *guests.entry(*at).or_default() += 1;
        false
    });
    guests
}

fn unmodelled(pods: &[&Pod]) -> Option<Placement> {
    let strange = pods.iter().filter(|it| !it.demand.unmodelled.is_empty());
    let pod = strange.min_by_key(|it| it.id())?;
    Some(Placement::Unmodelled { pod: pod.id(), what: pod.demand.unmodelled.clone() })
}

fn placement(pods: &[PodId], packing: &Packing) -> Placement {
    let own: BTreeSet<&PodId> = pods.iter().collect();
    // The unplaced are in the order of their ids.
    if let Some(it) = packing.unplaced.iter().find(|it| own.contains(&it.pod)) {
        return Placement::Unplaced { pod: it.pod.clone(), why: it.why.clone() };
    }
    let (mut on, mut new) = (BTreeSet::new(), BTreeSet::new());
    for it in packing.placed.iter().filter(|it| own.contains(&it.pod)) {
        match &it.home {
            Home::Node(name) => {
                on.insert(name.clone());
            }
            Home::New(at) => {
                new.insert(*at);
            }
        }
    }
    if new.is_empty() { Placement::Spare { on } } else { Placement::Successors { new } }
}
