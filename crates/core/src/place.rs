//! Where would its pods go?
//!
//! `fleet × the nodes that leave → a placement of each`
//!
//! All nodes that leave are considered together, with every pod that is pending: two replacements
//! can then not count on the same room, and a pod of one cannot take the place that a pod of the
//! other needs. Nodes to be launched may serve several of those that leave. Whoever is under way has its
//! place before a newcomer is looked at, and keeps it whoever comes: what was launched for the one is not
//! given to the other.

pub mod daemons;
mod stay;
mod terms;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_fit::{
    Quantity,
    capacity::Amounts,
    label,
    node::Node,
    pack::{Home, NewNode, Packing, Why, pack},
    pod::{Pod, PodId},
    pool::{Machine, NODES, Pool},
};

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
    /// is reached, or nothing that the pool asks for is to be had.
    NoKin { pool: String, limit: Option<String> },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placements {
    /// By the name of the node that leaves. A name that the fleet does not know has none.
    pub of: BTreeMap<String, Placement>,
    /// For all of them and for pending pods.
    pub new_nodes: Vec<NewNode>,
    /// Of every pod that has to move or is pending, and has a home.
    pub homes: BTreeMap<PodId, Home>,
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
    let followed = BTreeMap::new();
    let launchable = Launchable { pools: &fleet.pools, kept: &[], followed: &followed };
    place_leaving(&mut nodes, launchable, &fleet.pending)
}

/// The same for those that are marked as leaving: for whoever has the nodes at hand, as they are many. They
/// are given back as they were.
pub fn place_leaving(
    nodes: &mut [Node],
    launchable: Launchable<'_>,
    pending: &[Pod],
) -> Placements {
    let mut placements = Placements::default();
    let mut kin = Kin::new(launchable);
    let mut leave_now = Vec::new();
    let mut moving: BTreeMap<String, Vec<PodId>> = BTreeMap::new();
    let mut strange = Vec::new();
    for (at, node) in nodes.iter().enumerate().filter(|(_, it)| it.leaving) {
        let leave: Vec<&Pod> = node.pods.iter().filter(|it| !it.tied).collect();
        let unforeseen = unmodelled(&leave);
        if unforeseen.is_some() {
            strange.push(at);
        }
        if let Some(placement) = kin.follow(node, unforeseen.is_some()).or(unforeseen) {
            placements.of.insert(node.name.clone(), placement);
            continue;
        }
        moving.insert(node.name.clone(), leave.iter().map(|it| it.id()).collect());
        let order = launchable.followed.get(&node.name).map_or(NEWCOMER, |it| it.order());
        leave_now.extend(leave.into_iter().map(|it| Pod { order, ..it.clone() }));
    }
    let mut pods: Vec<Pod> =
        pending.iter().map(|it| Pod { order: PENDING, ..it.clone() }).collect();
    pods.extend(stay::together(leave_now, nodes));
    for it in &mut pods {
        it.terminating = false;
    }
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
    let packing = pack(&pods, nodes, &kin.pools);
    for (at, node) in closed {
        nodes[at] = node;
    }
    for (name, pods) in moving {
        placements.of.insert(name, placement(&pods, &packing));
    }
    placements.homes = packing.placed.into_iter().map(|it| (it.pod, it.home)).collect();
    placements.new_nodes = packing.new_nodes;
    placements
}

/// Those that have to be followed by one of their own kind, and what that leaves for others.
struct Kin<'a> {
    launchable: Launchable<'a>,
    /// What packing may open, the heaviest first.
    pools: Vec<Pool>,
    /// Of pools that are kept at a number.
    used: BTreeMap<&'a str, Amounts>,
}

impl<'a> Kin<'a> {
    fn new(launchable: Launchable<'a>) -> Self {
        let used = launchable.kept.iter().map(|it| (it.name.as_str(), it.used.clone()));
        Self { launchable, pools: launchable.pools.to_vec(), used: used.collect() }
    }

    /// Count one more of its kind, if it needs one. The answer, if there can be none.
    fn follow(&mut self, node: &Node, strange: bool) -> Option<Placement> {
        if self.launchable.followed.contains_key(&node.name) {
            return None;
        }
        let own = |it: &Pool| Some(&it.name) == node.pool.as_ref();
        if let Some(pool) = self.launchable.kept.iter().find(|it| own(it)) {
            let used = self.used.entry(&pool.name).or_default();
            let machines = of_kind(pool, node);
            let takes = match affordable(pool, used, &machines) {
                Ok(machine) => &machine.capacity,
                Err(limit) => return Some(Placement::NoKin { pool: pool.name.clone(), limit }),
            };
            let mut limits = pool.limits.clone();
            let one = Quantity::from_units(1);
            let nodes = used.get(NODES).copied().unwrap_or_default();
            limits.insert(NODES.to_owned(), nodes.saturating_add(one));
            let machines = Arc::new(machines.into_iter().cloned().collect());
            // It comes in any case, so that pods go there before another one is launched for them.
            let open =
                Pool { limits, used: used.clone(), machines, weight: u32::MAX, ..pool.clone() };
            if !strange {
                self.pools.push(open);
            }
            add_one(used, takes);
            return None;
        }
        let pool = self.pools.iter_mut().find(|it| own(it)).filter(|_| strange)?;
        let takes = match affordable(pool, &pool.used, &of_kind(pool, node)) {
            Ok(machine) => machine.capacity.clone(),
            Err(limit) => return Some(Placement::NoKin { pool: pool.name.clone(), limit }),
        };
        add_one(&mut pool.used, &takes);
        None
    }
}

/// Machines of its own type, or whatever its pool asks for where that has changed.
fn of_kind<'p>(pool: &'p Pool, node: &Node) -> Vec<&'p Machine> {
    let kind = node.labels.get(label::INSTANCE_TYPE);
    match pool.machines.iter().find(|it| Some(&it.name) == kind) {
        Some(own) => vec![own],
        None => pool.machines.iter().collect(),
    }
}

/// The first that the limits have room for, or what has none; nothing, if there is no machine.
fn affordable<'m>(
    pool: &Pool,
    used: &Amounts,
    machines: &[&'m Machine],
) -> Result<&'m Machine, Option<String>> {
    let over = |machine: &Machine| {
        let over = pool.limits.iter().find(|(name, limit)| {
            let one = if *name == NODES { Some(Quantity::from_units(1)) } else { None };
            let takes = one.or_else(|| machine.capacity.get(*name).copied()).unwrap_or_default();
            let used = used.get(*name).copied().unwrap_or_default();
            used.saturating_add(takes) > **limit
        });
        over.map(|(name, _)| name.clone())
    };
    let mut first = None;
    for machine in machines {
        match over(machine) {
            None => return Ok(machine),
            Some(limit) => first = first.or(Some(limit)),
        }
    }
    Err(first)
}

fn add_one(used: &mut Amounts, takes: &Amounts) {
    let one = (NODES.to_owned(), Quantity::from_units(1));
    for (name, amount) in takes.iter().map(|(name, it)| (name.clone(), *it)).chain([one]) {
        let used = used.entry(name).or_default();
        *used = used.saturating_add(amount);
    }
}

/// A node that leaves and has a pod that nobody can foresee gets a successor of its own kind: that counts towards
/// the limits of its pool, before any other new node does.
pub fn with_own_kind<'n>(pools: &[Pool], strange: impl Iterator<Item = &'n Node>) -> Vec<Pool> {
    let mut pools = pools.to_vec();
    for node in strange {
        let own = |it: &&mut Pool| Some(&it.name) == node.pool.as_ref();
        let Some(pool) = pools.iter_mut().find(own) else { continue };
        let kind = node.labels.get(label::INSTANCE_TYPE);
        let machine = pool.machines.iter().find(|it| Some(&it.name) == kind);
        let takes = machine.map_or_else(|| node.allocatable.clone(), |it| it.capacity.clone());
        add_one(&mut pool.used, &takes);
    }
    pools
}

/// What a packing of all pods says of the node that these leave.
pub fn outcome(pods: &[&Pod], packing: &Packing) -> Placement {
    let ids: Vec<PodId> = pods.iter().map(|it| it.id()).collect();
    unmodelled(pods).unwrap_or_else(|| placement(&ids, packing))
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
