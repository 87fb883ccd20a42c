//! Where would its pods go?
//!
//! `fleet × the nodes that leave → a placement of each`
//!
//! All nodes that leave are considered together, with every pod that is pending: two replacements
//! can then not count on the same room, and a pod of one cannot take the place that a pod of the
//! other needs. Nodes to be launched may serve several of those that leave. Whoever is under way has its
//! place before a newcomer is looked at, and keeps it whoever comes: what was launched for the one is not
//! given to the other. Pending pods that fit now are bound before anybody leaves. Pods of a node that is replaced
//! because we want it to be go to nodes that stay or to new ones; to one that is to be replaced itself only
//! where there is nothing else.

pub mod daemons;
pub mod kin;
mod now;
mod stay;
pub mod terms;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use nodemolt_fit::{
    Quantity,
    capacity::Amounts,
    label,
    node::Node,
    pack::{Home, NewNode, Packing, Placed, Site, Unplaced, Why, pack_onto},
    pod::{Pod, PodId},
    pool::Pool,
};

use self::kin::{Kin, Trusted};

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
    /// kind, and is never spare. All of its other pods have a place.
    Unmodelled {
        pod: PodId,
        what: Vec<String>,
        /// The one of its own kind, by its place in `Placements::new_nodes`. `None`: what follows was decided before.
        kin: Option<usize>,
        /// Other new nodes that its pods need.
        new: BTreeSet<usize>,
    },
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
    pub followed: &'a BTreeMap<String, Followed>,
    /// Nodes that leave and are followed by one of their kind, whatever their pods need: a budget counts on
    /// as many as there are.
    pub heirs: &'a BTreeSet<String>,
}

/// One that leaves and whose successors were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    pub turn: Turn,
    /// Its successors, as the fleet calls them. `None`: which they are is decided again.
    pub by: Option<BTreeSet<String>>,
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
    let mut nodes: Vec<Site> = fleet.nodes.iter().map(leaves).map(Site::new).collect();
    let (followed, heirs) = (BTreeMap::new(), BTreeSet::new());
    let launchable =
        Launchable { pools: &fleet.pools, kept: &[], followed: &followed, heirs: &heirs };
    place_leaving(&mut nodes, launchable, &fleet.pending)
}

/// The same for those that are marked as leaving: for whoever has the nodes at hand, as they are many. They
/// are given back as they were.
pub fn place_leaving(
    nodes: &mut [Site],
    launchable: Launchable<'_>,
    pending: &[Pod],
) -> Placements {
    let ask = |pods: &[Pod], nodes: &[Site], pools: &[Pool]| (pack_onto(pods, nodes, pools), ());
    let Asked { of, packing, .. } = place_asking(nodes, launchable, pending, ask);
    let homes = packing.placed.into_iter().map(|it| (it.pod, it.home)).collect();
    let homeless = packing.unplaced.into_iter().map(|it| (it.pod, it.why)).collect();
    let new_nodes = packing.new_nodes;
    Placements { of, new_nodes, homes, homeless, passed: BTreeSet::new() }
}

/// What packing said, and what that means for each node that leaves.
#[derive(Debug)]
pub struct Asked<T> {
    pub of: BTreeMap<String, Placement>,
    /// Of each that leaves and has to be followed by one of its own kind for a pod's sake: the pod, and what nobody can foresee.
    pub unforeseen: BTreeMap<String, (PodId, Vec<String>)>,
    /// Of all pods but those that nobody can foresee on nodes that leave, and those of nodes that would have to be followed
    /// by one of their own kind and cannot be.
    pub packing: Packing,
    /// Whatever else was asked: of pods that are bound before anybody leaves, where somebody is asked for such, and
    /// then of the others.
    pub told: Vec<T>,
}

/// The same for whoever wants to know more than where pods go: how packing is asked is theirs to say, what it is asked
/// is not.
pub fn place_asking<T>(
    nodes: &mut [Site],
    launchable: Launchable<'_>,
    pending: &[Pod],
    mut ask: impl FnMut(&[Pod], &[Site], &[Pool]) -> (Packing, T),
) -> Asked<T> {
    let mut pods: Vec<Pod> = pending
        .iter()
        .map(|it| Pod { order: PENDING, moves_once: false, terminating: false, ..it.clone() })
        .collect();
    let (mut bound, mut told) = (Vec::new(), Vec::new());
    if let Some((now, of_now)) = now::bound(&pods, nodes, launchable.pools, &mut ask) {
        bound = now;
        told.push(of_now);
    }
    let guests = welcome(&bound, &mut pods, nodes);
    let mut kin = Kin::new(launchable);
    let (leavers, moving) = leavers(nodes, launchable);
    if leavers.iter().any(|it| kin.limited(&nodes[it.at], it.unforeseen.is_some())) {
        // The limits are theirs first whose turn is before.
        let early = moving.iter().filter(|it| it.order < NEWCOMER);
        let early: Vec<Pod> = pods.iter().chain(early).cloned().collect();
        if !early.is_empty() {
            kin.after(&pack_onto(&early, nodes, &kin.pools).new_nodes);
        }
    }
    let mut of = BTreeMap::new();
    let mut trusting = Trusting::default();
    let mut stay = BTreeSet::new();
    for it in &leavers {
        let (node, others) = (&nodes[it.at], &moving[it.moving.clone()]);
        match &it.unforeseen {
            None => {
                if let Some(placement) = kin.follow(node) {
                    of.insert(node.name.clone(), placement);
                    continue;
                }
            }
            Some((pod, _)) => match kin.trust(node, (&it.strange, others), pod, it.order) {
                Ok(trusted) => pods.extend(trusting.take(&node.name, trusted, others)),
                Err(placement) => {
                    // One that cannot be followed stays, with all of its pods; and those who are torn have no place that is sure.
                    let goes = matches!(placement, Placement::Unplaced { .. });
                    let goes = goes && !it.strange.is_empty();
                    of.insert(node.name.clone(), placement);
                    if !goes {
                        stay.insert(it.at);
                        continue;
                    }
                }
            },
        }
        pods.extend(others.iter().cloned());
    }
    let closed = close(&leavers, &stay, nodes);
    let (mut packing, of_others) = ask(&pods, nodes, &kin.pools);
    told.push(of_others);
    for (at, node) in closed {
        nodes[at] = node;
    }
    for (at, count) in guests {
        nodes[at].edit(|it| it.pods.truncate(it.pods.len().saturating_sub(count)));
    }
    packing.placed.splice(0..0, bound);
    let (kins, lost) = trusting.reveal(&mut packing);
    let found = Found::of(&packing);
    for it in &leavers {
        let name = &nodes[it.at].name;
        let ids: BTreeSet<PodId> = moving[it.moving.clone()].iter().map(Pod::id).collect();
        let decided = || match &it.unforeseen {
            None => found.placement(&ids),
            Some(unforeseen) => {
                let mut strange = it.strange.iter().map(Pod::id);
                let lost = strange.find_map(|pod| Some((lost.get(&pod)?.clone(), pod)));
                match lost {
                    Some((why, pod)) => Placement::Unplaced { pod, why },
                    None => unmodelled(unforeseen, kins.get(name).copied(), &ids, &found),
                }
            }
        };
        of.entry(name.clone()).or_insert_with(decided);
    }
    let unforeseen = leavers.into_iter();
    let unforeseen = unforeseen.filter_map(|it| Some((nodes[it.at].name.clone(), it.unforeseen?)));
    Asked { of, unforeseen: unforeseen.collect(), packing, told }
}

/// One that leaves.
struct Leaver {
    /// Its place in the list of nodes.
    at: usize,
    order: u8,
    /// The pod that stands for what nobody can foresee here, and what that is.
    unforeseen: Option<(PodId, Vec<String>)>,
    /// Pods of which nobody has a picture.
    strange: Vec<Pod>,
    /// The others that move, by their places among all of those.
    moving: Range<usize>,
}

/// Those that leave, and all of their pods that move and are modelled.
fn leavers(nodes: &[Site], launchable: Launchable<'_>) -> (Vec<Leaver>, Vec<Pod>) {
    let (mut leavers, mut moving) = (Vec::new(), Vec::new());
    for (at, node) in nodes.iter().enumerate().filter(|(_, it)| it.leaving) {
        let mut leave: Vec<&Pod> = node.pods.iter().filter(|it| !it.tied).collect();
        // Who is named is the same in whichever order they were read.
        leave.sort_by_cached_key(|it| it.id());
        let first = leave.iter().find(|it| !it.demand.unmodelled.is_empty());
        let unforeseen = first.map(|it| (it.id(), it.demand.unmodelled.clone()));
        let unforeseen = unforeseen.or_else(|| stay::torn(&leave, nodes));
        let followed = launchable.followed.get(&node.name);
        let order = followed.map_or(NEWCOMER, |it| it.turn.order());
        let (foreseen, strange): (Vec<&Pod>, Vec<&Pod>) =
            leave.into_iter().partition(|it| it.demand.unmodelled.is_empty());
        let begin = moving.len();
        // One that goes for good reasons of its own asks for no more than a place.
        let moves_once = node.fades;
        let pool: Option<Arc<str>> = node.labels.get(label::NODEPOOL).map(|it| it.as_str().into());
        let moved = |it: &Pod| Pod { order, moves_once, pool: pool.clone(), ..it.clone() };
        moving.extend(foreseen.into_iter().map(moved));
        let strange = strange.into_iter().cloned().collect();
        leavers.push(Leaver { at, order, unforeseen, strange, moving: begin..moving.len() });
    }
    let mut moving = stay::together(moving, nodes);
    for it in &mut moving {
        it.terminating = false;
    }
    (leavers, moving)
}

/// Pods that nobody can foresee, while others stand for them.
#[derive(Default)]
struct Trusting {
    /// Who stands for whom.
    meant: BTreeMap<PodId, PodId>,
    /// What comes, by the node that it follows, and the pods of that which are foreseen.
    kins: BTreeMap<String, (Pool, BTreeSet<PodId>)>,
}

impl Trusting {
    /// Those that are to be packed.
    fn take(&mut self, node: &str, trusted: Trusted, others: &[Pod]) -> Vec<Pod> {
        let others = || others.iter().map(Pod::id).collect();
        self.kins.extend(trusted.kin.map(|it| (node.to_owned(), (it, others()))));
        let stand_ins = trusted.stand_ins.into_iter();
        let stand_ins = stand_ins.map(|(pod, meant)| {
            self.meant.insert(pod.id(), meant);
            pod
        });
        stand_ins.collect()
    }

    /// Nobody is told of who only stood for others. By the node that it follows which new node comes for it, and those who
    /// have no place.
    fn reveal(self, packing: &mut Packing) -> (BTreeMap<String, usize>, BTreeMap<PodId, Why>) {
        let stands = |it: &PodId| self.meant.contains_key(it);
        packing.placed.retain(|it| !stands(&it.pod));
        let (lost, unplaced): (Vec<Unplaced>, Vec<Unplaced>) =
            std::mem::take(&mut packing.unplaced).into_iter().partition(|it| stands(&it.pod));
        packing.unplaced = unplaced;
        let lost =
            lost.into_iter().filter_map(|it| Some((self.meant.get(&it.pod)?.clone(), it.why)));
        let mut kins = BTreeMap::new();
        for (at, new) in packing.new_nodes.iter_mut().enumerate() {
            new.pods.retain(|it| !stands(it));
            kins.extend(kin::comes_for(new).map(|node| (node, at)));
        }
        // It comes, though nobody is sent there; but not where somebody has no place, as the node does not go then.
        for (node, (pool, others)) in &self.kins {
            let homeless = |it: &Unplaced| others.contains(&it.pod);
            if kins.contains_key(node) || packing.unplaced.iter().any(homeless) {
                continue;
            }
            if let Some(mut new) = kin::vacant(pool, node) {
                kin::comes_for(&mut new);
                kins.insert(node.clone(), packing.new_nodes.len());
                packing.new_nodes.push(new);
            }
        }
        (kins, lost.collect())
    }
}

/// Nobody knows when a pod goes that nobody can foresee, so it keeps away whom it keeps away; and its node is no place. So it is
/// with all pods of a node that stays. The nodes as they were.
fn close(leavers: &[Leaver], stay: &BTreeSet<usize>, nodes: &mut [Site]) -> Vec<(usize, Site)> {
    let closed = leavers.iter().filter(|it| !it.strange.is_empty() || stay.contains(&it.at));
    let closed = closed.map(|it| {
        let node = &nodes[it.at];
        let stays = |pod: &Pod| stay.contains(&it.at) || !pod.demand.unmodelled.is_empty();
        let closed = Node {
            leaving: false,
            unschedulable: true,
            allocatable: Amounts::new(),
            pods: node.pods.iter().filter(|it| it.tied || stays(it)).cloned().collect(),
            ..Node::clone(node)
        };
        (it.at, std::mem::replace(&mut nodes[it.at], closed.into()))
    });
    closed.collect()
}

/// Let those who are bound run where they are bound, instead of looking for a place for them. How many more each node has.
fn welcome(bound: &[Placed], pods: &mut Vec<Pod>, nodes: &mut [Site]) -> BTreeMap<usize, usize> {
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
        nodes[*at].edit(|it| it.pods.push(pod.clone()));
        *guests.entry(*at).or_default() += 1;
        false
    });
    guests
}

/// The others have a place, or one of them is told of by name.
fn unmodelled(
    (pod, what): &(PodId, Vec<String>),
    kin: Option<usize>,
    pods: &BTreeSet<PodId>,
    found: &Found<'_>,
) -> Placement {
    let mut new = match found.placement(pods) {
        Placement::Successors { new } => new,
        unplaced @ Placement::Unplaced { .. } => return unplaced,
        Placement::Spare { .. } | Placement::Unmodelled { .. } | Placement::NoKin { .. } => {
            BTreeSet::new()
        }
    };
    new.retain(|it| Some(*it) != kin);
    Placement::Unmodelled { pod: pod.clone(), what: what.clone(), kin, new }
}

/// What packing said, by pod: those that leave are many, and each looks for its own.
struct Found<'a> {
    homes: BTreeMap<&'a PodId, &'a Home>,
    lost: BTreeMap<&'a PodId, &'a Why>,
}

impl<'a> Found<'a> {
    fn of(packing: &'a Packing) -> Self {
        Self {
            homes: packing.placed.iter().map(|it| (&it.pod, &it.home)).collect(),
            lost: packing.unplaced.iter().map(|it| (&it.pod, &it.why)).collect(),
        }
    }

    fn placement(&self, own: &BTreeSet<PodId>) -> Placement {
        // The first by its id.
        if let Some((pod, why)) = own.iter().find_map(|it| self.lost.get_key_value(it)) {
            return Placement::Unplaced { pod: (*pod).clone(), why: (*why).clone() };
        }
        let (mut on, mut new) = (BTreeSet::new(), BTreeSet::new());
        for home in own.iter().filter_map(|it| self.homes.get(it)) {
            match home {
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
}
