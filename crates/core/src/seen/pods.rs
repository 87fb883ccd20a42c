//! Which pods are there, and where?
//!
//! Found by name, by node, by whose they are, and by not having a node, without looking at all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_fit as fit;

use super::Changes;
use crate::drain;

/// Namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodKey {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

/// A pod, as far as it decides where it may be and when it may leave.
#[derive(Debug, Clone)]
pub struct Pod {
    pub drain: Arc<drain::Pod>,
    pub fit: fit::pod::Pod,
    pub node: Option<String>,
    pub created_at: Timestamp,
    /// The UID of whoever would start it again.
    pub owner_uid: Option<String>,
}

impl Pod {
    pub fn key(&self) -> PodKey {
        PodKey { namespace: Arc::clone(&self.fit.namespace.name), name: Arc::clone(&self.fit.name) }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Pods {
    all: BTreeMap<PodKey, Arc<Pod>>,
    on: BTreeMap<String, OnNode>,
    nowhere: BTreeSet<PodKey>,
    /// Those that do not run yet, on a node or not.
    pending: BTreeSet<PodKey>,
    /// Those that do not serve, and have not finished.
    unready: BTreeSet<PodKey>,
    /// By the UID of whoever would start them again.
    of_owner: BTreeMap<String, BTreeSet<PodKey>>,
    changed: Mark,
    changes: Changes<PodKey>,
    /// Nodes that pods have come to or gone from.
    changes_on: Changes<String>,
}

#[derive(Debug, Clone, Default)]
struct OnNode {
    /// The same values as among all: whoever looks at a node need not look each of them up.
    pods: BTreeMap<PodKey, Arc<Pod>>,
    changed: Mark,
}

/// Equal as long as nothing has changed, and never again after. So whoever has read some pods knows
/// without looking at them whether to read them again.
#[derive(Debug, Clone, Default)]
pub struct Mark(Arc<()>);

impl PartialEq for Mark {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Mark {}

impl Pods {
    /// In place of one of the same name, if there is one.
    pub fn insert(&mut self, pod: Pod) {
        let (key, pod) = (pod.key(), Arc::new(pod));
        self.remove(&key);
        match &pod.node {
            Some(node) => {
                let there = self.on.entry(node.clone()).or_default();
                there.pods.insert(key.clone(), Arc::clone(&pod));
                there.changed = Mark::default();
                self.changes_on.note(node.clone());
            }
            None => {
                self.nowhere.insert(key.clone());
            }
        }
        if pod.drain.phase == drain::PodPhase::Pending {
            self.pending.insert(key.clone());
        }
        if !pod.drain.ready && pod.drain.phase != drain::PodPhase::Finished {
            self.unready.insert(key.clone());
        }
        if let Some(owner) = &pod.owner_uid {
            match self.of_owner.get_mut(owner) {
                Some(own) => own.insert(key.clone()),
                None => self.of_owner.entry(owner.clone()).or_default().insert(key.clone()),
            };
        }
        self.changed = Mark::default();
        self.changes.note(key.clone());
        self.all.insert(key, pod);
    }

    pub fn remove(&mut self, key: &PodKey) -> Option<Arc<Pod>> {
        let pod = self.all.remove(key)?;
        self.pending.remove(key);
        self.unready.remove(key);
        if let Some(owner) = &pod.owner_uid
            && let Some(own) = self.of_owner.get_mut(owner)
        {
            own.remove(key);
            if own.is_empty() {
                self.of_owner.remove(owner);
            }
        }
        self.changed = Mark::default();
        self.changes.note(key.clone());
        match &pod.node {
            Some(node) => {
                self.changes_on.note(node.clone());
                if let Some(there) = self.on.get_mut(node) {
                    there.pods.remove(key);
                    there.changed = Mark::default();
                    if there.pods.is_empty() {
                        self.on.remove(node);
                    }
                }
            }
            None => {
                self.nowhere.remove(key);
            }
        }
        Some(pod)
    }

    pub fn get(&self, key: &PodKey) -> Option<&Pod> {
        self.all.get(key).map(AsRef::as_ref)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Pod> {
        self.all.values().map(AsRef::as_ref)
    }

    /// By name.
    pub fn on(&self, node: &str) -> impl Iterator<Item = &Pod> {
        self.on.get(node).into_iter().flat_map(|it| it.pods.values()).map(AsRef::as_ref)
    }

    /// Of a node's pods; `None` while it has none.
    pub fn mark(&self, node: &str) -> Option<&Mark> {
        self.on.get(node).map(|it| &it.changed)
    }

    /// Of each node that has pods, in the order of their names.
    pub fn marks(&self) -> impl Iterator<Item = (&str, &Mark)> {
        self.on.iter().map(|(node, it)| (node.as_str(), &it.changed))
    }

    /// Of all pods.
    pub fn mark_of_all(&self) -> &Mark {
        &self.changed
    }

    /// Who has come, gone or changed.
    pub fn changes(&self) -> &Changes<PodKey> {
        &self.changes
    }

    /// Nodes that have other pods, or some that have changed.
    pub fn changes_on(&self) -> &Changes<String> {
        &self.changes_on
    }

    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Pod> {
        let first = PodKey { namespace: namespace.into(), name: "".into() };
        let there = self.all.range(first..);
        there.take_while(move |(it, _)| *it.namespace == *namespace).map(|(_, it)| it.as_ref())
    }

    /// Those that do not run yet, on a node or not.
    pub fn pending(&self) -> impl Iterator<Item = &Pod> {
        self.pending.iter().filter_map(|it| self.get(it))
    }

    /// Those that do not serve, and have not finished.
    pub fn unready(&self) -> impl Iterator<Item = &Pod> {
        self.unready.iter().filter_map(|it| self.get(it))
    }

    /// Those that one controller would start again, by its UID.
    pub fn of_owner(&self, uid: &str) -> impl ExactSizeIterator<Item = &PodKey> {
        const NONE: &BTreeSet<PodKey> = &BTreeSet::new();
        self.of_owner.get(uid).unwrap_or(NONE).iter()
    }

    /// Those that no node has.
    pub fn nowhere(&self) -> impl Iterator<Item = &Pod> {
        self.nowhere.iter().filter_map(|it| self.get(it))
    }
}
