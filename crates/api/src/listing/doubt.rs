//! Do the files tell all that a pod asks about other pods?
//!
//! `pod × namespaces × daemons → what nobody can foresee`
//!
//! Two things are easily left out of the files or not there yet: the labels of a namespace, which a
//! `namespaceSelector` asks for, and the pods that a `DaemonSet` will put on nodes that are still to
//! come. A pod that depends on either is told about and not placed by guess.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use nodemolt_core::place::{daemons, terms::meant};
use nodemolt_fit::{
    pod::{Demand, NAMESPACE_NAME, Namespace, Pod, PodTerm},
    selector::{Labels, Selector},
};

use super::{Listing, world::World};
use crate::problem::quoted;

pub(super) struct Doubts {
    /// Labels of pods in namespaces that are not in the files.
    strangers: BTreeMap<Arc<str>, BTreeSet<Labels>>,
    /// Pods that stay and must be away from pods of namespaces that they select.
    shunning: Vec<(Arc<Namespace>, Arc<Demand>)>,
    /// Daemons that new nodes would get.
    daemons: Vec<Pod>,
    /// Namespaces that were asked about.
    missed: BTreeSet<Arc<str>>,
}

impl Doubts {
    pub(super) fn new(listing: &Listing, world: &World, daemons_come: bool) -> Self {
        let stay = world.nodes.iter().filter(|it| !it.leaving).flat_map(|it| &it.pods);
        let mut strangers: BTreeMap<Arc<str>, BTreeSet<Labels>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut shunning = Vec::new();
        for (pod, stays) in stay.map(|it| (it, true)).chain(world.pods.iter().map(|it| (it, false)))
        {
            let key = (Arc::as_ptr(&pod.namespace), Arc::as_ptr(&pod.demand), stays);
            if !seen.insert(key) {
                continue;
            }
            if !listing.namespaces.contains_key(&*pod.namespace.name) {
                let labels = strangers.entry(Arc::clone(&pod.namespace.name)).or_default();
                labels.insert(pod.demand.labels.clone());
            }
            if stays && pod.demand.anti_affinity.iter().any(asks_for_labels) {
                shunning.push((Arc::clone(&pod.namespace), Arc::clone(&pod.demand)));
            }
        }
        for daemon in &world.daemons {
            if !listing.namespaces.contains_key(&*daemon.namespace.name) {
                let labels = strangers.entry(Arc::clone(&daemon.namespace.name)).or_default();
                labels.insert(daemon.demand.labels.clone());
            }
        }
        let daemons = if daemons_come { world.daemons.clone() } else { Vec::new() };
        Self { strangers, shunning, daemons, missed: BTreeSet::new() }
    }

    /// What the pod asks, or is asked, that the files do not tell.
    pub(super) fn about(&mut self, pod: &Pod) -> Vec<String> {
        let demand = &pod.demand;
        let mut unknown: BTreeSet<Arc<str>> = BTreeSet::new();
        for term in demand.affinity.iter().chain(&demand.anti_affinity) {
            let meant = meant(term, &demand.labels);
            let open = self.strangers.iter().filter(|(namespace, labels)| {
                hangs_on(term, namespace) && labels.iter().any(|it| meant.selects(it))
            });
            unknown.extend(open.map(|(namespace, _)| Arc::clone(namespace)));
        }
        if self.strangers.contains_key(&pod.namespace.name) {
            let shunned = self.shunning.iter().any(|(_, other)| {
                other.anti_affinity.iter().any(|term| {
                    hangs_on(term, &pod.namespace.name)
                        && meant(term, &other.labels).selects(&demand.labels)
                })
            });
            unknown.extend(shunned.then(|| Arc::clone(&pod.namespace.name)));
        }
        let mut what: Vec<String> = unknown
            .iter()
            .map(|it| {
                format!("the labels of the namespace {}, which is not in the files", quoted(it))
            })
            .collect();
        self.missed.extend(unknown);
        what.extend(daemons::unforeseen(pod, &self.daemons));
        what
    }

    pub(super) fn note(&self) -> Option<String> {
        let first = self.missed.first()?;
        Some(format!(
            "namespaces that a namespaceSelector asks about are not in the files, such as {first}: add what `kubectl get namespaces -o yaml` prints"
        ))
    }
}

/// Whether only the labels of namespaces tell whom the term means. Their names are known.
fn asks_for_labels(term: &PodTerm) -> bool {
    match &term.namespace_selector {
        Some(Selector::All(all)) => all.iter().any(|it| it.key != NAMESPACE_NAME),
        Some(Selector::Nothing) | None => false,
    }
}

/// Whether the unknown labels of this namespace decide.
fn hangs_on(term: &PodTerm, namespace: &str) -> bool {
    asks_for_labels(term) && !term.namespaces.iter().any(|it| it == namespace)
}
