//! Which worlds is the scheduler asked about, and what do we say?
//!
//! `number → world + pods to ask about`, and `world × pod → the nodes that would do`
//!
//! The worlds are those on which packing is checked by brute force, made such that an API server takes them. Each
//! number has a kind of constraint as its theme: worlds are rolled until the theme decides about one of the pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use nodemolt_fit::{
    Quantity,
    node::Node,
    pack::{Home, pack},
    pod::{Demand, Namespace, Pod, PodTerm, Volume},
    selector::Selector,
    taint::{Effect, Taint, Tolerated, Toleration},
};

use crate::{
    generated::{CONSTRAINTS, Dice, Size, Without, World, labels, world},
    strange,
};

const SIZE: Size = Size { pods: 12, nodes: 6, pools: 0, machines: 1, asks: 22 };
/// So many rolls for a world in which the theme decides; rare kinds need some hundred.
const ROLLS_MAX: u64 = 3_000;
/// The name of the node, the pod and its volume by which the scheduler shows how far it has seen.
pub(crate) const CANARY: &str = "canary";
/// The namespaces of all worlds, with their team.
pub(crate) const NAMESPACES: [(&str, &str); 2] = [("one", "x"), ("two", "y")];

/// The kinds of constraint that can decide whether there is a node for a pod. The others of `CONSTRAINTS` are
/// preferences, which are in the worlds and must not decide, and what is said of pools.
const KINDS: [&str; 25] = [
    "requests",
    "extended resources",
    "number of pods",
    "node selector",
    "node affinity",
    "taints",
    "tolerations",
    "cordons",
    "pod affinity",
    "pod anti-affinity",
    "anti-affinity of running pods",
    "namespaces of terms",
    "namespace selectors",
    "matchLabelKeys of terms",
    "mismatchLabelKeys",
    "spread",
    "minDomains",
    "matchLabelKeys of spreads",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "terminating pods",
    "host ports",
    "topology of volumes",
    "attach limits",
    "gates",
];

/// A world in which everybody is where we placed him, save those who are asked about.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) number: u64,
    pub(crate) theme: &'static str,
    /// With the pods that run there, and those that we placed.
    pub(crate) nodes: Vec<Node>,
    /// Each is asked about alone, in this order.
    pub(crate) asked: Vec<Pod>,
    /// The volume of the last one whose claim waits for its first consumer.
    pub(crate) waiting: Option<String>,
}

/// The kinds of constraint, each with how to take it out of a world.
pub(crate) fn kinds() -> impl Iterator<Item = &'static Without> {
    CONSTRAINTS.iter().filter(|it| KINDS.contains(&it.0))
}

pub(crate) fn case(number: u64) -> Case {
    let theme = kinds().nth(usize::try_from(number).unwrap() % KINDS.len()).unwrap();
    let mut last = None;
    for roll in 0..ROLLS_MAX {
        let case = rolled(number, roll, theme.0);
        // Smaller ones have little to say: three nodes and the canary, somebody who was placed and somebody who was not.
        if case.nodes.len() < 4 || case.asked.len() < 2 {
            continue;
        }
        if case.asked.iter().any(|it| case.decides(theme, it)) {
            return case;
        }
        last = Some(case);
    }
    last.expect("some world has three nodes")
}

fn rolled(number: u64, roll: u64, theme: &'static str) -> Case {
    let seed = number * ROLLS_MAX + roll;
    let mut world = world(seed, SIZE);
    strange::stretch(&mut world, seed);
    acceptable(&mut world);
    let World { pods, mut nodes, .. } = world;
    let packing = pack(&pods, &nodes, &[]);
    let homes: BTreeMap<String, &str> = packing
        .placed
        .iter()
        .filter_map(|it| match &it.home {
            Home::Node(name) => Some((it.pod.to_string(), name.as_str())),
            Home::New(_) => None,
        })
        .collect();
    let placed = |it: &Pod| homes.contains_key(&it.id().to_string());

    // One that we placed, one that we did not, and anyone.
    let mut dice = Dice(seed);
    let mut order: Vec<&Pod> = pods.iter().collect();
    dice.shuffle(&mut order);
    let first_two = [order.iter().find(|it| placed(it)), order.iter().find(|it| !placed(it))];
    let mut asked: Vec<Pod> = Vec::new();
    for pod in first_two.into_iter().flatten().chain(order.last()) {
        if asked.iter().all(|it| it.id() != pod.id()) {
            asked.push(Pod::clone(pod));
        }
    }
    dice.shuffle(&mut asked);
    for pod in pods.iter().filter(|pod| asked.iter().all(|it| it.id() != pod.id())) {
        if let Some(home) = homes.get(&pod.id().to_string()) {
            nodes.iter_mut().filter(|it| it.name == *home).for_each(|it| it.pods.push(pod.clone()));
        }
    }
    let waiting = waiting(&nodes, &asked).filter(|_| dice.percent(50));
    nodes.push(canary());
    Case { number, theme, nodes, asked, waiting }
}

/// A volume that only the last of those asked about uses.
fn waiting(nodes: &[Node], asked: &[Pod]) -> Option<String> {
    let (last, others) = asked.split_last()?;
    let others = nodes.iter().flat_map(|it| &it.pods).chain(others);
    let used: BTreeSet<&String> =
        others.flat_map(|it| &it.demand.volumes).map(|it| &it.handle).collect();
    last.demand.volumes.iter().map(|it| &it.handle).find(|it| !used.contains(it)).cloned()
}

impl Case {
    /// The nodes that would do for this pod, by our own reckoning.
    pub(crate) fn homes(&self, pod: &Pod) -> BTreeSet<String> {
        homes(&self.nodes, pod)
    }

    /// Whether there is a node only because of this kind of constraint, or none because of it.
    pub(crate) fn decides(&self, (_, take_out): &Without, pod: &Pod) -> bool {
        let nodes = self.nodes.clone();
        let mut without = World { pods: vec![pod.clone()], nodes, pools: Vec::new() };
        take_out(&mut without);
        placed(&without.nodes, &without.pods[0]) != placed(&self.nodes, pod)
    }
}

pub(crate) fn placed(nodes: &[Node], pod: &Pod) -> bool {
    !pack(std::slice::from_ref(pod), nodes, &[]).placed.is_empty()
}

fn homes(nodes: &[Node], pod: &Pod) -> BTreeSet<String> {
    let fits = |only: &Node| {
        let mut nodes = nodes.to_vec();
        // A node without room for a pod takes nobody, and still counts for affinity and spread.
        for node in nodes.iter_mut().filter(|it| it.name != only.name) {
            node.allocatable.insert("pods".to_owned(), Quantity::ZERO);
        }
        placed(&nodes, pod)
    };
    nodes.iter().filter(|it| fits(it)).map(|it| it.name.clone()).collect()
}

/// What the generator has for other tests goes, and what an API server would refuse.
fn acceptable(world: &mut World) {
    world.pools.clear();
    let mut volumes = BTreeMap::new();
    for node in &mut world.nodes {
        // What Karpenter knows of a node, and the scheduler does not.
        node.initialised = true;
        node.leaving = false;
        node.startup_taints.clear();
        node.set_aside.clear();
        node.taints.retain(|it| !it.passing());
        for pod in &mut node.pods {
            let demand = Arc::make_mut(&mut pod.demand);
            demand.gates.clear();
            acceptable_demand(demand, &mut volumes);
        }
    }
    for pod in &mut world.pods {
        acceptable_demand(Arc::make_mut(&mut pod.demand), &mut volumes);
    }
}

type Volumes = BTreeMap<String, Volume>;

fn acceptable_demand(demand: &mut Demand, volumes: &mut Volumes) {
    demand.unmodelled.clear();
    let (near, away) = (&mut demand.preferred_affinity, &mut demand.preferred_anti_affinity);
    let preferred = near.iter_mut().chain(away).map(|it| &mut it.term);
    let terms = demand.affinity.iter_mut().chain(&mut demand.anti_affinity).chain(preferred);
    terms.for_each(acceptable_term);
    let mut seen = BTreeSet::new();
    demand.spread.retain(|it| seen.insert((it.topology_key.clone(), it.required)));
    for spread in &mut demand.spread {
        if !spread.required {
            spread.min_domains = None;
        }
        if spread.selector == Selector::Nothing {
            spread.match_label_keys.clear();
        }
    }
    for volume in &mut demand.volumes {
        // One volume is the same for all who use it, and each has its claim already.
        volume.own = false;
        *volume = volumes.entry(volume.handle.clone()).or_insert_with(|| volume.clone()).clone();
    }
    let mut seen = BTreeSet::new();
    demand.volumes.retain(|it| seen.insert(it.handle.clone()));
}

fn acceptable_term(term: &mut PodTerm) {
    if term.selector == Selector::Nothing {
        term.match_label_keys.clear();
        term.mismatch_label_keys.clear();
    }
}

/// A node on which there is room for one pod only, and that pod. When the scheduler has put it there, it has seen
/// everything that was made before the two. It has no labels, so that nobody counts what is on it.
pub(crate) fn canary() -> Node {
    let namespace = Namespace::new(NAMESPACES[0].0, labels(&[("team", NAMESPACES[0].1)]));
    let taint = Taint::new(CANARY, "", Effect::NoSchedule);
    let demand = Demand {
        tolerations: vec![Toleration {
            key: Some(CANARY.to_owned()),
            value: Tolerated::Any,
            effect: None,
        }],
        volumes: vec![Volume { handle: CANARY.to_owned(), driver: None, reach: None, own: false }],
        ..Demand::default()
    };
    Node {
        name: CANARY.to_owned(),
        taints: vec![taint],
        initialised: true,
        allocatable: BTreeMap::from([("pods".to_owned(), Quantity::from_units(1))]),
        pods: vec![Pod::new(&Arc::new(namespace), CANARY, &Arc::new(demand))],
        ..Node::default()
    }
}
