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
type Workload<'a> = (&'a str, &'a str, &'a str);

pub(super) struct Together<'a> {
    fleet: &'a Fleet,
    now: Timestamp,
    /// For each budget that selects pods that are about to move, on how many nodes and the first.
    spoken_for: BTreeMap<(&'a str, &'a str), (usize, &'a str)>,
    /// For each workload that has pods there, how many and on which node.
    shared: BTreeMap<Workload<'a>, (usize, &'a str)>,
    totals: Totals<'a>,
}

/// How many pods each workload has at all. Counted when it is first needed, since most plans start nobody,
/// and at first only of those that are about to move: there are a few of them among a fleet's thousands.
enum Totals<'a> {
    Uncounted,
    Moving(BTreeMap<Workload<'a>, usize>),
    All(BTreeMap<Workload<'a>, usize>),
}

impl<'a> Together<'a> {
    pub(super) fn new(fleet: &'a Fleet, pdbs: &Pdbs<'a>, now: Timestamp) -> Self {
        let mut all = Self {
            fleet,
            now,
            spoken_for: BTreeMap::new(),
            shared: BTreeMap::new(),
            totals: Totals::Uncounted,
        };
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

    pub(super) fn conflict(&mut self, name: &str, node: &Node, pdbs: &Pdbs<'_>) -> Option<WaitFor> {
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
    fn last_replicas(&mut self, name: &str, node: &Node) -> Option<WaitFor> {
        let mut here: BTreeMap<Workload<'_>, usize> = BTreeMap::new();
        for pod in remaining(&node.pods, self.now) {
            if let Some(workload) = workload(pod)
                && self.shared.contains_key(&workload)
            {
                *here.entry(workload).or_default() += 1;
            }
        }
        if here.is_empty() {
            return None;
        }
        self.count(&here);
        let (Totals::Moving(totals) | Totals::All(totals)) = &self.totals else { return None };
        here.into_iter().find_map(|(workload, own)| {
            let (moving, on) = self.shared.get(&workload).copied()?;
            let total = totals.get(&workload).copied().unwrap_or(0);
            let (namespace, kind, called) = workload;
            (on != name && total <= moving + own).then(|| WaitFor::SharedWorkload {
                workload: format!("{kind} {namespace}/{called}"),
                node: on.to_owned(),
            })
        })
    }

    /// Whose pods are asked for is counted from here on.
    fn count(&mut self, asked: &BTreeMap<Workload<'_>, usize>) {
        let pods = self.fleet.nodes.values().flat_map(|it| remaining(&it.pods, self.now));
        let pods = pods.filter_map(workload);
        match &self.totals {
            Totals::All(_) => {}
            Totals::Moving(counted) if asked.keys().all(|it| counted.contains_key(it)) => {}
            Totals::Uncounted => {
                let mut totals: BTreeMap<_, usize> =
                    self.shared.keys().map(|it| (*it, 0)).collect();
                for workload in pods {
                    if let Some(total) = totals.get_mut(&workload) {
                        *total += 1;
                    }
                }
                self.totals = Totals::Moving(totals);
            }
            // Others move since: whoever asks for one more asks for all.
            Totals::Moving(_) => {
                let mut totals: BTreeMap<_, usize> = BTreeMap::new();
                for workload in pods {
                    *totals.entry(workload).or_default() += 1;
                }
                self.totals = Totals::All(totals);
            }
        }
    }
}

fn key(pdb: &Pdb) -> (&str, &str) {
    (&pdb.namespace, &pdb.name)
}

fn workload(pod: &Pod) -> Option<Workload<'_>> {
    match &pod.owner {
        Owner::Workload { kind, name } => Some((&pod.id.namespace, kind, name)),
        Owner::Nobody | Owner::DaemonSet | Owner::Mirror => None,
    }
}
