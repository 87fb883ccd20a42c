//! How many of a budget's pods really serve?
//!
//! `PodDisruptionBudgets × pods × nodes → the same budgets, that allow no more than that`
//!
//! Who ends with a machine is not evicted, so no API server takes it from its budget. Its pod stands there as healthy as
//! it was, until somebody clears it away, which is minutes after its node has gone and our record with it; and what a budget says
//! may be older than that. So wherever somebody is about to leave, the pods of its budget are counted here: those that are ready, on
//! a node that is there, and that nobody has let go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_core::drain::{self, AllPdbs, Selecting};
use nodemolt_core::seen::{Kind, Looked, Mark, Node, ObjectName, Pod, PodKey, View};

/// Which pods each budget selects, kept from turn to turn: pods are hundreds of thousands, and few of them change.
#[derive(Debug, Default)]
pub(crate) struct Selected {
    selecting: Arc<Selecting>,
    /// By the place in [`Selecting::all`].
    pods: Vec<BTreeMap<PodKey, Arc<drain::Pod>>>,
    /// In which of them a pod is.
    of: BTreeMap<PodKey, Vec<usize>>,
    /// In which of them pods of a node are that was asked for, as long as it has the same pods.
    on: BTreeMap<String, (Mark, Vec<usize>)>,
    looked_at: (Looked, Looked),
}

impl Selected {
    /// As the view has them now.
    pub(crate) fn look(&mut self, view: &View) {
        if !self.renewed(view) {
            self.selecting = Arc::new(Selecting::new(view.pdbs.values().cloned()));
            self.pods = vec![BTreeMap::new(); self.selecting.all().len()];
            self.of = BTreeMap::new();
            self.on = BTreeMap::new();
            let namespaces: BTreeSet<&str> = view.pdbs.keys().map(|it| it.0.as_str()).collect();
            for pod in namespaces.into_iter().flat_map(|it| view.pods.in_namespace(it)) {
                self.take_in(pod);
            }
        }
        self.looked_at = (view.pdbs.changes().looked(), view.pods.changes().looked());
    }

    /// Whether it was enough to look at those that have changed.
    fn renewed(&mut self, view: &View) -> bool {
        let (pdbs_at, pods_at) = &self.looked_at;
        let (pdbs, pods) = (view.pdbs.changes().since(pdbs_at), view.pods.changes().since(pods_at));
        let (Some(pdbs), Some(pods)) = (pdbs, pods) else { return false };
        for key in pdbs {
            let known = self.selecting.all().binary_search_by(|it| {
                (it.namespace.as_str(), it.name.as_str()).cmp(&(key.0.as_str(), key.1.as_str()))
            });
            // Who has come, has gone or selects others.
            let (Ok(at), Some(pdb)) = (known, view.pdbs.get(key)) else { return false };
            if !Arc::make_mut(&mut self.selecting).renew(at, pdb) {
                return false;
            }
        }
        for key in pods {
            for at in self.of.remove(key).unwrap_or_default() {
                self.pods[at].remove(key);
            }
            if let Some(pod) = view.pods.get(key) {
                self.take_in(pod);
            }
        }
        true
    }

    fn take_in(&mut self, pod: &Pod) {
        let budgets = self.selecting.of(&pod.drain);
        if budgets.is_empty() {
            return;
        }
        for at in &budgets {
            self.pods[*at].insert(pod.key(), Arc::clone(&pod.drain));
        }
        self.of.insert(pod.key(), budgets);
    }

    /// All budgets; those that select pods on one of these nodes as they are counted. Where no node with pods is gone or
    /// about to be, nobody has ended.
    pub(crate) fn pdbs<'p>(
        &mut self,
        view: &View,
        leaving: impl Iterator<Item = &'p str>,
        some_gone: bool,
        now: Timestamp,
    ) -> AllPdbs {
        let mut all = AllPdbs::new(Arc::clone(&self.selecting));
        if self.pods.is_empty() {
            return all;
        }
        for at in self.of_nodes(view, leaving) {
            let Some(pdb) = self.selecting.all().get(at) else { continue };
            let serves = |(key, pod): &(&PodKey, &Arc<drain::Pod>)| {
                let gone = || some_gone && view.pods.get(key).is_none_or(|it| ended(view, it));
                pod.ready && pod.ends_at.is_none() && !pdb.lets_go(pod, now) && !gone()
            };
            all.count(at, self.pods[at].iter().filter(serves).count());
        }
        all
    }

    fn of_nodes<'p>(
        &mut self,
        view: &View,
        nodes: impl Iterator<Item = &'p str>,
    ) -> BTreeSet<usize> {
        let mut known = std::mem::take(&mut self.on);
        let mut all = BTreeSet::new();
        for node in nodes {
            let Some(mark) = view.pods.mark(node) else { continue };
            if self.on.contains_key(node) {
                continue;
            }
            let same = known.remove_entry(node).filter(|(_, (it, _))| it == mark);
            let (name, budgets) = same.map_or_else(
                || {
                    let pods = view.pods.on(node);
                    let found: BTreeSet<usize> =
                        pods.flat_map(|it| self.selecting.of(&it.drain)).collect();
                    (node.to_owned(), found.into_iter().collect::<Vec<usize>>())
                },
                |(name, (_, budgets))| (name, budgets),
            );
            all.extend(budgets.iter().copied());
            self.on.insert(name, (mark.clone(), budgets));
        }
        all
    }
}

/// The same for whoever looks once: only at the namespaces of those budgets.
pub(crate) fn pdbs<'p>(
    view: &View,
    leaving: impl Iterator<Item = &'p drain::Pod>,
    now: Timestamp,
) -> AllPdbs {
    let selecting = Arc::new(Selecting::new(view.pdbs.values().cloned()));
    let mut serve: BTreeMap<usize, usize> =
        leaving.flat_map(|it| selecting.of(it)).map(|at| (at, 0)).collect();
    let budget = |at: &usize| selecting.all().get(*at);
    let namespaces: BTreeSet<&str> =
        serve.keys().filter_map(budget).map(|it| it.namespace.as_str()).collect();
    for it in namespaces.into_iter().flat_map(|it| view.pods.in_namespace(it)) {
        let pod = &it.drain;
        if !pod.ready || pod.ends_at.is_some() || ended(view, it) {
            continue;
        }
        for at in selecting.of(pod) {
            if let Some(serve) = serve.get_mut(&at)
                && budget(&at).is_some_and(|it| !it.lets_go(pod, now))
            {
                *serve = serve.saturating_add(1);
            }
        }
    }
    let mut all = AllPdbs::new(Arc::clone(&selecting));
    for (at, serve) in serve {
        all.count(at, serve);
    }
    all
}

/// Whether the machine that a pod is on has gone: its node is not there, or only by somebody else's finalizer. What cannot be
/// read is there.
pub(crate) fn ended(view: &View, pod: &Pod) -> bool {
    let Some(name) = &pod.node else { return false };
    if let Some(node) = view.nodes.get(name) {
        return node.deleting_since.is_some() && !claimed(view, node);
    }
    let (namespace, name) = (String::new(), name.clone());
    !view.unreadable.contains_key(&ObjectName { kind: Kind::Node, namespace, name })
}

/// Whether a claim holds this node's machine: it goes last, but for what others hold.
fn claimed(view: &View, node: &Node) -> bool {
    let mut held = view.claims.values().filter(|it| it.held || it.deleting_since.is_none());
    node.machine.is_some() && held.any(|it| it.machine == node.machine)
}
