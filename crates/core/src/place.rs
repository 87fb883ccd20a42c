//! Where would its pods go?
//!
//! `fleet × the nodes that leave → a placement of each`
//!
//! All nodes that leave are considered together, with every pod that is pending: two replacements
//! can then not count on the same room, and a pod of one cannot take the place that a pod of the
//! other needs. Nodes to be launched may serve several of those that leave.

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_fit::{
    Quantity, label,
    node::Node,
    pack::{Home, NewNode, Packing, Why, pack},
    pod::{Pod, PodId},
    pool::{NODES, Pool},
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
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placements {
    /// By the name of the node that leaves. A name that the fleet does not know has none.
    pub of: BTreeMap<String, Placement>,
    /// For all of them and for pending pods.
    pub new_nodes: Vec<NewNode>,
    /// Of every pod that has to move or is pending, and has a home.
    pub homes: BTreeMap<PodId, Home>,
}

/// Where the pods of these nodes would go, if all of them left. Nodes that the fleet itself calls
/// leaving are among them.
pub fn place(leaving: &BTreeSet<String>, fleet: &Fleet) -> Placements {
    let leaves =
        |it: &Node| Node { leaving: it.leaving || leaving.contains(&it.name), ..it.clone() };
    let nodes: Vec<Node> = fleet.nodes.iter().map(leaves).collect();
    place_leaving(&nodes, &fleet.pools, &fleet.pending)
}

/// The same for those that are marked as leaving: for whoever has the nodes at hand, as they are many.
pub fn place_leaving(nodes: &[Node], pools: &[Pool], pending: &[Pod]) -> Placements {
    let mut placements = Placements::default();
    let mut moving: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for node in nodes.iter().filter(|it| it.leaving) {
        let pods: Vec<&Pod> = node.pods.iter().filter(|it| !it.tied).collect();
        match unmodelled(&pods) {
            Some(placement) => {
                placements.of.insert(node.name.clone(), placement);
            }
            None => {
                moving.insert(&node.name, pods);
            }
        }
    }
    let pods: Vec<Pod> = pending
        .iter()
        .chain(moving.values().flatten().copied())
        .cloned()
        .map(|it| Pod { terminating: false, ..it })
        .collect();
    let strange = nodes.iter().filter(|it| placements.of.contains_key(&it.name));
    let pools = with_own_kind(pools, strange);
    let packing = pack(&pods, nodes, &pools);
    for (name, pods) in moving {
        placements.of.insert(name.to_owned(), placement(&pods, &packing));
    }
    placements.homes = packing.placed.into_iter().map(|it| (it.pod, it.home)).collect();
    placements.new_nodes = packing.new_nodes;
    placements
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
        let one = (NODES.to_owned(), Quantity::from_units(1));
        for (name, amount) in takes.into_iter().chain([one]) {
            let used = pool.used.entry(name).or_default();
            *used = used.saturating_add(amount);
        }
    }
    pools
}

/// What a packing of all pods says of the node that these leave.
pub fn outcome(pods: &[&Pod], packing: &Packing) -> Placement {
    unmodelled(pods).unwrap_or_else(|| placement(pods, packing))
}

fn unmodelled(pods: &[&Pod]) -> Option<Placement> {
    let strange = pods.iter().filter(|it| !it.demand.unmodelled.is_empty());
    let pod = strange.min_by_key(|it| it.id())?;
    Some(Placement::Unmodelled { pod: pod.id(), what: pod.demand.unmodelled.clone() })
}

fn placement(pods: &[&Pod], packing: &Packing) -> Placement {
    let own: BTreeSet<PodId> = pods.iter().map(|it| it.id()).collect();
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
