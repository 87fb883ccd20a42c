//! Would two replacements hurt the same workload?
//!
//! Two nodes whose pods share a budget that allows one disruption would both be cordoned, and one of them
//! for nothing. And a workload without a budget may have all of its pods on the two of them. The second
//! node waits for the first: until its pods are gone, and until those that came in their place are ready, however
//! long that takes. Whoever has no pod of the workload that is ready has none to lose, and does not wait.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::spread::{Burden, Marked};
use super::waiting::WaitFor;
use super::{Fleet, Node, Spread};
use crate::drain::{Owner, Pdbs, Pod, PodId, moving};

/// Namespace, kind and name.
pub(super) type Workload<'a> = (&'a str, &'a str, &'a str);

#[derive(Debug, Clone)]
pub(super) struct Together<'a> {
    fleet: &'a Fleet,
    now: Timestamp,
    /// For each budget that selects pods that are about to move, on how many nodes and the first. By its place.
    spoken_for: BTreeMap<usize, (usize, &'a str)>,
    /// For each workload that has pods on a node that is emptied, or that has not got over it yet.
    shared: BTreeMap<Workload<'a>, Moved<'a>>,
    /// Nodes that are emptied, or will be.
    leaving: BTreeSet<&'a str>,
    /// The last two by their numbers, where all of them have one.
    marks: Option<Marks<'a>>,
}

#[derive(Debug, Clone)]
struct Marks<'a> {
    spread: &'a Spread,
    /// Those that are shared, and perhaps others.
    shared: Marked,
    leaving: Marked,
}

/// From where pods are moved, or were.
#[derive(Debug, Clone, Copy)]
struct Moved<'a> {
    node: &'a str,
    /// The one that came in the place of another and is not ready, where nothing else is left to wait for:
    /// the node may be gone long since.
    pod: Option<&'a PodId>,
    /// Nobody came in the place of those that left.
    missing: bool,
}

impl<'a> Together<'a> {
    pub(super) fn new(
        fleet: &'a Fleet,
        stirring: &[(&'a str, &'a Node)],
        pdbs: &Pdbs<'a>,
        now: Timestamp,
    ) -> Self {
        let missing = fleet.missing.iter().filter_map(|(pod, node)| {
            Some((workload(pod)?, Moved { node, pod: None, missing: true }))
        });
        // A pod that is there and not ready says more, and takes the place of one that is not.
        let unready = fleet.unsettled.iter().filter_map(|(pod, node)| {
            Some((workload(pod)?, Moved { node, pod: Some(&pod.id), missing: false }))
        });
        let shared: BTreeMap<Workload<'_>, Moved<'_>> = missing.chain(unready).collect();
        let marks = fleet.spread.as_ref().map(|spread| {
            let mut marks = Marks { spread, shared: Marked::default(), leaving: Marked::default() };
            for number in shared.keys().filter_map(|it| spread.number(*it)) {
                marks.shared.insert(number);
            }
            marks
        });
        let (spoken_for, leaving) = (BTreeMap::new(), BTreeSet::new());
        let mut all = Self { fleet, now, spoken_for, shared, leaving, marks };
        for (name, node) in stirring.iter().copied().filter(|(_, it)| it.under_way.is_some()) {
            all.take(name, node, pdbs);
        }
        all
    }

    pub(super) fn take(&mut self, name: &'a str, node: &'a Node, pdbs: &Pdbs<'a>) {
        self.leaving.insert(name);
        self.marks = self.marks.take().and_then(|mut marks| {
            let burden = marks.spread.burden(name)?;
            marks.leaving.insert(burden.node());
            for workload in burden.workloads() {
                marks.shared.insert(workload);
            }
            Some(marks)
        });
        let mut budgets = BTreeSet::new();
        for pod in moving(&node.pods, self.now) {
            budgets.extend(pdbs.places_of(pod));
            if let Some(workload) = workload(pod) {
                // Whoever is under way holds more than who was, and is tried again.
                let moved = Moved { node: name, pod: None, missing: false };
                let known = self.shared.entry(workload).or_insert(moved);
                if known.node == name || !self.leaving.contains(known.node) {
                    *known = moved;
                }
            }
        }
        for budget in budgets {
            let (nodes, _) = self.spoken_for.entry(budget).or_insert((0, name));
            *nodes += 1;
        }
    }

    pub(super) fn conflict(
        &self,
        name: &str,
        node: &Node,
        burden: Option<&Burden>,
        pdbs: &Pdbs<'_>,
    ) -> Option<WaitFor> {
        let marks = self.marks.as_ref().zip(burden);
        let budgets = || marks.and_then(|(it, burden)| it.spread.budgets(burden, node, pdbs));
        // Most nodes share nothing, and their pods need not be looked at to know it.
        let may_share = || budgets().is_none_or(|it| it.all.iter().any(|at| self.spent(*at, pdbs)));
        let may_be_last = || {
            marks.is_none_or(|(it, burden)| {
                let mut shared = burden.workloads().filter(|at| it.shared.has(*at));
                shared.any(|at| !it.spread.serves(at, burden.node(), &it.leaving))
            })
        };
        let looks = !node.has_deadline && !self.spoken_for.is_empty() && may_share();
        let shared = if looks { self.shares_budget(node, pdbs) } else { None };
        shared.or_else(|| if may_be_last() { self.last_replicas(name, node) } else { None })
    }

    /// Whether the disruptions that a budget allows are all spoken for.
    fn spent(&self, at: usize, pdbs: &Pdbs<'_>) -> bool {
        self.spoken_for.get(&at).is_some_and(|(nodes, _)| {
            let left = pdbs.left(at).map_or(i64::MAX, i64::from);
            left <= i64::try_from(*nodes).unwrap_or(i64::MAX)
        })
    }

    /// A budget whose disruptions are all spoken for by nodes that are emptied already.
    fn shares_budget(&self, node: &Node, pdbs: &Pdbs<'_>) -> Option<WaitFor> {
        moving(&node.pods, self.now).find_map(|pod| {
            let mut spent = pdbs.places_of(pod).into_iter().filter(|at| self.spent(*at, pdbs));
            let at = spent.next()?;
            let (_, first) = self.spoken_for.get(&at)?;
            let pdb = pdbs.get(at)?;
            Some(WaitFor::SharedBudget {
                pdb: format!("{}/{}", pdb.namespace, pdb.name),
                pod: pod.id.clone(),
                node: (*first).to_owned(),
            })
        })
    }

    /// A workload that would have no pod that is ready on a node that stays, and has one here.
    fn last_replicas(&self, name: &str, node: &Node) -> Option<WaitFor> {
        let here = moving(&node.pods, self.now).filter(|it| serves(it)).filter_map(workload);
        let here: BTreeSet<Workload<'_>> = here.collect();
        here.into_iter().find_map(|of| {
            let Moved { node, pod, missing } = self.shared.get(&of).copied()?;
            let (namespace, kind, called) = of;
            (node != name && !self.serves_elsewhere(name, of)).then(|| WaitFor::SharedWorkload {
                workload: format!("{kind} {namespace}/{called}"),
                node: node.to_owned(),
                pod: pod.cloned(),
                missing,
            })
        })
    }

    /// Whether a workload has a pod that is ready, on another node that stays.
    fn serves_elsewhere(&self, name: &str, of: Workload<'_>) -> bool {
        let stays = |it: &str| it != name && !self.leaving.contains(it);
        let has_one = |node: &Node| {
            let mut ready = moving(&node.pods, self.now).filter(|it| serves(it));
            ready.any(|it| workload(it) == Some(of))
        };
        let known = self.marks.as_ref().and_then(|it| {
            let node = it.spread.burden(name)?.node();
            let workload = it.spread.number(of)?;
            Some(it.spread.serves(workload, node, &it.leaving))
        });
        known
            .unwrap_or_else(|| self.fleet.nodes.iter().any(|(it, node)| stays(it) && has_one(node)))
    }
}

/// It is ready, and stays so.
fn serves(pod: &Pod) -> bool {
    pod.ready && pod.ends_at.is_none()
}

pub(super) fn workload(pod: &Pod) -> Option<Workload<'_>> {
    match &pod.owner {
        Owner::Workload { kind, name } => Some((&pod.id.namespace, kind, name)),
        Owner::Nobody | Owner::DaemonSet | Owner::Mirror => None,
    }
}
