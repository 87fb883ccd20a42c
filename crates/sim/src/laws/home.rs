//! Do the pods that we moved run again?

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::read::{self, text};
use super::world::World;
use super::{Found, Law};
use crate::trace::{Actor, Fact, Step};

/// Who starts pods again, and says how many.
const WORKLOADS: [&str; 3] = ["Deployment", "ReplicaSet", "StatefulSet"];

#[derive(Debug, Default)]
pub(super) struct Home {
    /// UIDs of the owners of pods that we asked to go.
    moved: BTreeSet<String>,
    /// By UID of the owner: how many of its pods went otherwise, for which nobody makes room yet.
    lost: BTreeMap<String, i64>,
}

impl Home {
    /// Right before the step.
    pub(super) fn see(&mut self, world: &World, step: &Step) {
        let ours = matches!(step.by, Actor::Operator(_));
        let gone = match &step.fact {
            Fact::Evicted { namespace, pod, code: 201, .. } if ours => world.pod(namespace, pod),
            Fact::PodDeleted { namespace, pod, .. } if ours => world.pod(namespace, pod),
            Fact::Removed { resource, last } if resource.kind == "Pod" => {
                let pod = world.pod(read::namespace(last), read::name(last));
                if pod.is_some_and(|it| !it.evicted)
                    && let Some((_, _, owner)) = read::controller(last)
                {
                    *self.lost.entry(owner.to_owned()).or_default() += 1;
                }
                None
            }
            Fact::Stored { .. }
            | Fact::Removed { .. }
            | Fact::Evicted { .. }
            | Fact::PodDeleted { .. }
            | Fact::LaunchAsked { .. }
            | Fact::TerminateAsked { .. }
            | Fact::Machine(_)
            | Fact::Published { .. }
            | Fact::Image(_)
            | Fact::Turned(_)
            | Fact::Replica { .. }
            | Fact::Fault { .. }
            | Fact::FaultsEnd
            | Fact::Refused { .. }
            | Fact::Act { .. } => None,
        };
        if let Some((_, _, owner)) = gone.and_then(|it| read::controller(&it.object)) {
            self.moved.insert(owner.to_owned());
        }
    }

    pub(super) fn at_rest(&self, world: &World, now: Timestamp, found: &mut Found) {
        if self.moved.is_empty() {
            return;
        }
        found.premise(Law::Home);
        let mut running: BTreeMap<&str, i64> = BTreeMap::new();
        for pod in world.pods.values().flat_map(BTreeMap::values).filter(|it| it.healthy) {
            if let Some((_, _, owner)) = read::controller(&pod.object) {
                *running.entry(owner).or_default() += 1;
            }
        }
        for (kind, workload) in
            WORKLOADS.iter().flat_map(|kind| world.all(kind).map(move |it| (kind, it.1)))
        {
            let workload = &workload.object;
            let uid = read::uid(workload);
            if !self.moved.contains(uid) || read::deleting(workload).is_some() {
                continue;
            }
            let wanted = read::number(workload, &["spec", "replicas"]).unwrap_or(1);
            let there = running.get(uid).copied().unwrap_or(0);
            let excused = self.lost.get(uid).copied().unwrap_or(0);
            if wanted - there > excused {
                let namespace = text(workload, &["metadata", "namespace"]).unwrap_or_default();
                let what = format!(
                    "{kind} {namespace}/{} has {there} of {wanted} pods, and we moved some",
                    read::name(workload)
                );
                found.broken(Law::Home, now, what);
            }
        }
    }
}
