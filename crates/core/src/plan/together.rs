//! Would two replacements hurt the same workload?
//!
//! Two nodes whose pods share a budget that allows one disruption would both be cordoned, and one of them
//! for nothing. And a workload without a budget may have all of its pods on the two of them. The second
//! node waits for the first: until its pods are gone, and until those that came in their place are ready, however
//! long that takes. Whoever has no pod of the workload that is ready has none to lose, and does not wait.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::fleet::Stirring;
use super::spread::Marked;
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
    shared: Shared<'a>,
    /// Nodes that are emptied, or will be.
    leaving: BTreeSet<&'a str>,
}

#[derive(Debug, Clone)]
enum Shared<'a> {
    /// By their numbers: every node that should go has one, and so have the workloads of its pods.
    Numbered(Numbered<'a>),
    Named(BTreeMap<Workload<'a>, Moved<'a>>),
}

#[derive(Debug, Clone)]
struct Numbered<'a> {
    spread: &'a Spread,
    moved: BTreeMap<usize, Moved<'a>>,
    /// Which of them are in there.
    marked: Marked,
    /// Nodes that are emptied, or will be.
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
        stirring: &[Stirring<'a>],
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
        let named: BTreeMap<Workload<'_>, Moved<'_>> = missing.chain(unready).collect();
        let known = stirring.iter().all(|it| it.burden.is_some());
        let shared = match fleet.spread.as_ref().filter(|_| known) {
            Some(spread) => Shared::Numbered(Numbered::new(spread, &named)),
            None => Shared::Named(named),
        };
        let (spoken_for, leaving) = (BTreeMap::new(), BTreeSet::new());
        let mut all = Self { fleet, now, spoken_for, shared, leaving };
        for it in stirring.iter().filter(|it| it.node.under_way.is_some()) {
            all.take(*it, pdbs);
        }
        all
    }

    /// One of those that should go is emptied.
    pub(super) fn take(&mut self, Stirring { name, node, burden }: Stirring<'a>, pdbs: &Pdbs<'a>) {
        self.leaving.insert(name);
        // Whoever is under way holds more than who was, and is tried again.
        let moved = Moved { node: name, pod: None, missing: false };
        let held = |known: &Moved<'_>, leaving: &BTreeSet<&str>| {
            known.node != name && leaving.contains(known.node)
        };
        if let (Shared::Numbered(it), Some(burden)) = (&mut self.shared, burden) {
            it.leaving.insert(burden.node());
        }
        let spread = self.numbered().map(|it| it.spread);
        // Where time decides nothing of its pods they need not be looked at.
        let timeless = burden.filter(|it| it.moving.is_some());
        let budgets = spread.zip(timeless).and_then(|(it, burden)| it.budgets(burden, node, pdbs));
        let mut spoken_for = |budget: usize| {
            let (nodes, _) = self.spoken_for.entry(budget).or_insert((0, name));
            *nodes += 1;
        };
        if let (Shared::Numbered(shared), Some(burden), Some(budgets)) =
            (&mut self.shared, timeless, budgets)
        {
            budgets.all.iter().copied().for_each(&mut spoken_for);
            for workload in burden.movers() {
                shared.take(*workload, moved, |it| held(it, &self.leaving));
            }
            return;
        }
        let mut budgets = BTreeSet::new();
        for pod in moving(&node.pods, self.now) {
            budgets.extend(pdbs.places_of(pod));
            let Some(workload) = workload(pod) else { continue };
            match &mut self.shared {
                Shared::Numbered(shared) => {
                    if let Some(number) = shared.spread.number(workload) {
                        shared.take(number, moved, |it| held(it, &self.leaving));
                    }
                }
                Shared::Named(shared) => {
                    let known = shared.entry(workload).or_insert(moved);
                    if !held(known, &self.leaving) {
                        *known = moved;
                    }
                }
            }
        }
        budgets.into_iter().for_each(spoken_for);
    }

    pub(super) fn conflict(
        &self,
        Stirring { name, node, burden }: Stirring<'_>,
        pdbs: &Pdbs<'_>,
    ) -> Option<WaitFor> {
        let numbered = self.numbered().zip(burden);
        let budgets = || numbered.and_then(|(it, burden)| it.spread.budgets(burden, node, pdbs));
        // Most nodes share nothing, and their pods need not be looked at to know it.
        let may_share = || budgets().is_none_or(|it| it.all.iter().any(|at| self.spent(*at, pdbs)));
        let may_be_last = || {
            numbered.is_none_or(|(it, burden)| {
                let mut shared = burden.movers().iter().filter(|at| it.marked.has(**at));
                shared.any(|at| !it.spread.serves(*at, burden.node(), &it.leaving))
            })
        };
        let looks = !node.has_deadline && !self.spoken_for.is_empty() && may_share();
        let shared = if looks { self.shares_budget(node, pdbs) } else { None };
        shared.or_else(|| if may_be_last() { self.last_replicas(name, node) } else { None })
    }

    fn numbered(&self) -> Option<&Numbered<'a>> {
        match &self.shared {
            Shared::Numbered(it) => Some(it),
            Shared::Named(_) => None,
        }
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
            let Moved { node, pod, missing } = *match &self.shared {
                Shared::Numbered(it) => it.moved.get(&it.spread.number(of)?)?,
                Shared::Named(it) => it.get(&of)?,
            };
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
        let known = self.numbered().and_then(|it| {
            let node = it.spread.burden(name)?.node();
            let workload = it.spread.number(of)?;
            Some(it.spread.serves(workload, node, &it.leaving))
        });
        known
            .unwrap_or_else(|| self.fleet.nodes.iter().any(|(it, node)| stays(it) && has_one(node)))
    }
}

impl<'a> Numbered<'a> {
    /// A workload without a number has no pods on any node, and so none that could be its last.
    fn new(spread: &'a Spread, named: &BTreeMap<Workload<'a>, Moved<'a>>) -> Self {
        let numbers = named.iter().filter_map(|(of, it)| Some((spread.number(*of)?, *it)));
        let moved: BTreeMap<usize, Moved<'a>> = numbers.collect();
        let mut marked = Marked::default();
        for it in moved.keys() {
            marked.insert(*it);
        }
        Self { spread, moved, marked, leaving: Marked::default() }
    }

    fn take(&mut self, workload: usize, moved: Moved<'a>, held: impl Fn(&Moved<'a>) -> bool) {
        self.marked.insert(workload);
        let known = self.moved.entry(workload).or_insert(moved);
        if !held(known) {
            *known = moved;
        }
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
