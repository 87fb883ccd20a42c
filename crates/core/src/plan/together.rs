//! Would two replacements hurt the same workload?
//!
//! Two nodes whose pods share a budget that allows one disruption would both be cordoned, and one of them
//! for nothing. And a workload without a budget may have all of its pods on the two of them. The second
//! node waits for the first.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::waiting::WaitFor;
use super::{Fleet, Node};
use crate::drain::{Owner, Pdb, Pdbs, Pod, remaining};

/// Namespace, kind and name.
pub(super) type Workload<'a> = (&'a str, &'a str, &'a str);

pub(super) struct Together<'a> {
    fleet: &'a Fleet,
    now: Timestamp,
    /// For each budget that selects pods that are about to move, on how many nodes and the first.
    spoken_for: BTreeMap<(&'a str, &'a str), (usize, &'a str)>,
    /// For each workload that has pods there, how many and on which node.
    shared: BTreeMap<Workload<'a>, (usize, &'a str)>,
}

impl<'a> Together<'a> {
    pub(super) fn new(fleet: &'a Fleet, pdbs: &Pdbs<'a>, now: Timestamp) -> Self {
        let mut all = Self { fleet, now, spoken_for: BTreeMap::new(), shared: BTreeMap::new() };
        for (name, node) in fleet.nodes.iter().filter(|(_, it)| it.under_way.is_some()) {
            all.take(name, node, pdbs);
        }
        all
    }

    pub(super) fn take(&mut self, name: &'a str, node: &'a Node, pdbs: &Pdbs<'a>) {
        let mut budgets = BTreeSet::new();
        for pod in remaining(&node.pods, self.now) {
            budgets.extend(pdbs.matching(pod).map(|(it, _)| key(it)));
            if let Some(workload) = workload(pod) {
                let (pods, _) = self.shared.entry(workload).or_insert((0, name));
                *pods += 1;
            }
        }
        for budget in budgets {
            let (nodes, _) = self.spoken_for.entry(budget).or_insert((0, name));
            *nodes += 1;
        }
    }

    pub(super) fn conflict(&self, name: &str, node: &Node, pdbs: &Pdbs<'_>) -> Option<WaitFor> {
        let shared = if node.has_deadline { None } else { self.shares_budget(node, pdbs) };
        shared.or_else(|| self.last_replicas(name, node))
    }

    /// A budget whose disruptions are all spoken for by nodes that are emptied already.
    fn shares_budget(&self, node: &Node, pdbs: &Pdbs<'_>) -> Option<WaitFor> {
        if self.spoken_for.is_empty() {
            return None;
        }
        remaining(&node.pods, self.now).find_map(|pod| {
            pdbs.matching(pod).find_map(|(pdb, left)| {
                let (nodes, first) = self.spoken_for.get(&key(pdb))?;
                let spent = i64::from(left) <= i64::try_from(*nodes).unwrap_or(i64::MAX);
                spent.then(|| WaitFor::SharedBudget {
                    pdb: format!("{}/{}", pdb.namespace, pdb.name),
                    pod: pod.id.clone(),
                    node: (*first).to_owned(),
                })
            })
        })
    }

    /// A workload that would have no pod on a node that stays.
    fn last_replicas(&self, name: &str, node: &Node) -> Option<WaitFor> {
        let mut here: BTreeMap<Workload<'_>, usize> = BTreeMap::new();
        for pod in remaining(&node.pods, self.now) {
            if let Some(workload) = workload(pod)
                && self.shared.contains_key(&workload)
            {
                *here.entry(workload).or_default() += 1;
            }
        }
        here.into_iter().find_map(|(workload, own)| {
            let (moving, on) = self.shared.get(&workload).copied()?;
            let (namespace, kind, called) = workload;
            (on != name && !self.has_more_than(moving + own, workload)).then(|| {
                WaitFor::SharedWorkload {
                    workload: format!("{kind} {namespace}/{called}"),
                    node: on.to_owned(),
                }
            })
        })
    }

    /// Whether a workload has more pods than so many, wherever they are.
    fn has_more_than(&self, count: usize, of: Workload<'_>) -> bool {
        let nodes = &self.fleet.nodes;
        let theirs = |node: &'a Node| {
            remaining(&node.pods, self.now).filter(move |pod| workload(pod) == Some(of))
        };
        match &self.fleet.spread {
            Some(spread) => {
                let there = spread.of(of).filter_map(|it| nodes.get(it));
                there.flat_map(theirs).nth(count).is_some()
            }
            None => nodes.values().flat_map(theirs).nth(count).is_some(),
        }
    }
}

fn key(pdb: &Pdb) -> (&str, &str) {
    (&pdb.namespace, &pdb.name)
}

pub(super) fn workload(pod: &Pod) -> Option<Workload<'_>> {
    match &pod.owner {
        Owner::Workload { kind, name } => Some((&pod.id.namespace, kind, name)),
        Owner::Nobody | Owner::DaemonSet | Owner::Mirror => None,
    }
}
