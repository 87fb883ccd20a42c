//! On which nodes are the pods of a workload?
//!
//! A fleet has hundreds of thousands of pods, of which few change between two plans: whoever keeps a fleet
//! keeps this with it, and nobody has to look at all pods to count those of one workload.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::together::{Workload, workload};
use crate::drain::Pod;

/// By workload, the nodes that have pods of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spread {
    nodes: BTreeMap<String, BTreeSet<Arc<str>>>,
}

impl Spread {
    /// A node has come, or has these pods from now on.
    pub fn join(&mut self, node: &str, pods: &[Arc<Pod>]) {
        let node: Arc<str> = node.into();
        for workload in workloads(pods) {
            self.nodes.entry(key(workload)).or_default().insert(Arc::clone(&node));
        }
    }

    /// A node has gone, or has these pods no longer.
    pub fn leave(&mut self, node: &str, pods: &[Arc<Pod>]) {
        for workload in workloads(pods) {
            let key = key(workload);
            if let Some(nodes) = self.nodes.get_mut(&key) {
                nodes.remove(node);
                if nodes.is_empty() {
                    self.nodes.remove(&key);
                }
            }
        }
    }

    pub(super) fn of(&self, workload: Workload<'_>) -> impl Iterator<Item = &str> {
        self.nodes.get(&key(workload)).into_iter().flatten().map(AsRef::as_ref)
    }
}

fn workloads(pods: &[Arc<Pod>]) -> BTreeSet<Workload<'_>> {
    pods.iter().filter_map(|it| workload(it)).collect()
}

/// No part of it can have a slash but the last.
fn key((namespace, kind, name): Workload<'_>) -> String {
    format!("{namespace}/{kind}/{name}")
}
