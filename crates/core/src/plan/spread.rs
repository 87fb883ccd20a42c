//! On which nodes are the pods of a workload, and what of a node's pods can hold it?
//!
//! A fleet has hundreds of thousands of pods, of which few change between two plans: whoever keeps a fleet
//! keeps this with it, and nobody has to look at all pods to count those of one workload, nor at all pods of a node that
//! waits for something else. Workloads and nodes have numbers here: what is asked in every plan for every node that
//! should go is asked by those.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

use super::Node;
use super::together::{Workload, workload};
use crate::drain::{AllPdbs, Owner, Pdbs, Places, Pod, PodPhase, moving, stays_for_good};

/// What is known of pods, by workload and by node.
#[derive(Debug, Clone, Default)]
pub struct Spread {
    numbers: BTreeMap<String, usize>,
    /// By number.
    workloads: Vec<Somewhere>,
    /// Numbers that nobody has any more.
    unused: Vec<usize>,
    burdens: BTreeMap<Arc<str>, Burden>,
    /// So many nodes were numbered.
    nodes: usize,
    unused_nodes: Vec<usize>,
    /// By which it is found which budgets select a node's pods.
    places: Option<Arc<Places>>,
}

#[derive(Debug, Clone, Default)]
struct Somewhere {
    key: String,
    /// The numbers of nodes that have pods of it, and whether one of those is ready and stays so.
    on: BTreeMap<usize, bool>,
}

/// What of a node's pods decides in every plan whether it may go.
#[derive(Debug, Clone)]
pub(super) struct Burden {
    node: usize,
    /// Of all of its pods.
    workloads: Vec<usize>,
    /// Of those that move, whatever time it is; and perhaps of others, where it depends on the time who moves.
    movers: Vec<usize>,
    /// How many move, where that does not depend on the time.
    pub(super) moving: Option<usize>,
    /// Nothing but a budget can hold its pods.
    plain: bool,
    /// Found when somebody asks.
    budgets: OnceLock<Budgets>,
}

/// Those that select pods of a node that move; and perhaps others, where it depends on the time who moves.
#[derive(Debug, Clone)]
pub(super) struct Budgets {
    pub(super) all: Vec<usize>,
    /// Some pod has more than one.
    several: bool,
}

/// Numbers that were marked.
#[derive(Debug, Clone, Default)]
pub(super) struct Marked(Vec<u64>);

impl Marked {
    pub(super) fn insert(&mut self, number: usize) {
        let at = number / 64;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        if let Some(bits) = self.0.get_mut(at) {
            *bits |= 1 << (number % 64);
        }
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|it| it & (1 << (number % 64)) != 0)
    }
}

/// By what is known, whatever its numbers.
impl PartialEq for Spread {
    fn eq(&self, other: &Self) -> bool {
        self.told() == other.told()
    }
}

impl Eq for Spread {}

impl Spread {
    /// A node has come, or has these pods from now on.
    pub fn join(&mut self, node: &str, pods: &[Arc<Pod>]) {
        self.leave(node);
        let number = self.unused_nodes.pop().unwrap_or_else(|| {
            self.nodes += 1;
            self.nodes - 1
        });
        // Whether one of them serves, and whether one moves.
        let mut serve: BTreeMap<Workload<'_>, (bool, bool)> = BTreeMap::new();
        for pod in pods {
            if let Some(workload) = workload(pod) {
                let serves = pod.ready && pod.ends_at.is_none() && pod.phase != PodPhase::Finished;
                let known = serve.entry(workload).or_default();
                *known = (known.0 | serves, known.1 | !stays_for_good(pod));
            }
        }
        let mut workloads = Vec::with_capacity(serve.len());
        let mut movers = Vec::with_capacity(serve.len());
        for (workload, (serves, moves)) in serve {
            let at = self.numbered(key(workload));
            workloads.push(at);
            movers.extend(moves.then_some(at));
            if let Some(it) = self.workloads.get_mut(at) {
                it.on.insert(number, serves);
            }
        }
        // Who was told to go is stuck some time later.
        let timeless = pods.iter().all(|it| it.ends_at.is_none());
        let burden = Burden {
            node: number,
            workloads,
            movers,
            moving: timeless.then(|| moving(pods, Timestamp::UNIX_EPOCH).count()),
            plain: pods.iter().all(|it| plain(it)),
            budgets: OnceLock::new(),
        };
        self.burdens.insert(node.into(), burden);
    }

    /// A node has gone, or has its pods no longer.
    pub fn leave(&mut self, node: &str) {
        let Some(burden) = self.burdens.remove(node) else { return };
        for at in burden.workloads {
            let Some(it) = self.workloads.get_mut(at) else { continue };
            it.on.remove(&burden.node);
            if it.on.is_empty() {
                self.numbers.remove(&std::mem::take(&mut it.key));
                self.unused.push(at);
            }
        }
        self.unused_nodes.push(burden.node);
    }

    /// These are the budgets of pods from now on.
    pub fn select(&mut self, pdbs: &AllPdbs) {
        let places = pdbs.places();
        if self.places.as_ref().is_some_and(|it| Arc::ptr_eq(it, places)) {
            return;
        }
        self.places = Some(Arc::clone(places));
        for it in self.burdens.values_mut() {
            it.budgets = OnceLock::new();
        }
    }

    fn numbered(&mut self, key: String) -> usize {
        if let Some(at) = self.numbers.get(&key) {
            return *at;
        }
        let new = Somewhere { key: key.clone(), on: BTreeMap::new() };
        let at = if let Some(at) = self.unused.pop() {
            if let Some(it) = self.workloads.get_mut(at) {
                *it = new;
            }
            at
        } else {
            self.workloads.push(new);
            self.workloads.len() - 1
        };
        self.numbers.insert(key, at);
        at
    }

    pub(super) fn burden(&self, node: &str) -> Option<&Burden> {
        self.burdens.get(node)
    }

    pub(super) fn number(&self, workload: Workload<'_>) -> Option<usize> {
        self.numbers.get(&key(workload)).copied()
    }

    /// Whether a workload has a pod that is ready, on another node than this one and those.
    pub(super) fn serves(&self, workload: usize, node: usize, leaving: &Marked) -> bool {
        let mut on = self.workloads.get(workload).into_iter().flat_map(|it| &it.on);
        on.any(|(it, serves)| *serves && *it != node && !leaving.has(*it))
    }

    /// The budgets of a node's pods. `None`: those are not the budgets that it was told of.
    pub(super) fn budgets<'s>(
        &self,
        burden: &'s Burden,
        node: &Node,
        pdbs: &Pdbs<'_>,
    ) -> Option<&'s Budgets> {
        let same = self.places.as_ref().is_some_and(|it| Arc::ptr_eq(it, pdbs.places()));
        same.then(|| burden.budgets.get_or_init(|| Budgets::of(node, pdbs)))
    }

    fn told(&self) -> BTreeMap<(&str, &str), bool> {
        let names: BTreeMap<usize, &str> =
            self.burdens.iter().map(|(name, it)| (it.node, name.as_ref())).collect();
        let of = |at: &usize| self.workloads.get(*at).into_iter().flat_map(|it| &it.on);
        let told = self.numbers.iter().flat_map(|(key, at)| of(at).map(move |it| (key, it)));
        told.filter_map(|(key, (node, serves))| Some(((key.as_str(), *names.get(node)?), *serves)))
            .collect()
    }
}

impl Burden {
    pub(super) fn node(&self) -> usize {
        self.node
    }

    /// Of those that move, and perhaps of others.
    pub(super) fn movers(&self) -> &[usize] {
        &self.movers
    }

    /// Whether nothing holds its pods, by these budgets. Where that is not sure they have to be looked at.
    pub(super) fn quiet(&self, budgets: &Budgets, pdbs: &Pdbs<'_>) -> bool {
        self.plain && !budgets.several && budgets.all.iter().all(|it| pdbs.lets_one_go(*it))
    }
}

impl Budgets {
    fn of(node: &Node, pdbs: &Pdbs<'_>) -> Self {
        let (mut all, mut several) = (BTreeSet::new(), false);
        for pod in node.pods.iter().filter(|it| !stays_for_good(it)) {
            let places = pdbs.places_of(pod);
            several |= places.len() > 1;
            all.extend(places);
        }
        Self { all: all.into_iter().collect(), several }
    }
}

/// Nothing but a budget can hold it.
fn plain(pod: &Pod) -> bool {
    let owned = matches!(pod.owner, Owner::Workload { .. });
    let asked = owned && !pod.tolerates_cordon && !pod.namespace_terminating;
    pod.protection.is_none() && (stays_for_good(pod) || asked)
}

/// No part of it can have a slash but the last.
fn key((namespace, kind, name): Workload<'_>) -> String {
    format!("{namespace}/{kind}/{name}")
}
