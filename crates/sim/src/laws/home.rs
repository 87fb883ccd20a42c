//! Do the pods that we moved run again?

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

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
    /// By UID of the owner: how many of its pods are missing, since they went and no other was ready since.
    missing: BTreeMap<String, Missing>,
}

#[derive(Debug, Default)]
struct Missing {
    /// We asked them to go.
    moved: i64,
    /// They went otherwise: nobody makes room for those yet.
    lost: i64,
}

impl Home {
    /// Right before the step.
    pub(super) fn see(&mut self, world: &World, step: &Step) {
        let ours = matches!(step.by, Actor::Operator(_));
        let ended = world.ended_by(step).into_iter().filter_map(|it| read::controller(&it.object));
        for (_, _, owner) in ended {
            self.moved.insert(owner.to_owned());
            self.missing.entry(owner.to_owned()).or_default().moved += 1;
        }
        let gone = match (&step.fact, ours) {
            (
                Fact::Evicted { namespace, pod, code: 201, .. }
                | Fact::PodDeleted { namespace, pod, .. },
                true,
            ) => world.pod(namespace, pod),
            (Fact::Removed { resource, last }, _) if resource.kind == "Pod" => {
                let pod = world.pod(read::namespace(last), read::name(last));
                if pod.is_some_and(|it| !it.evicted)
                    && let Some((_, _, owner)) = read::controller(last)
                    && !whole(world, owner, 0)
                {
                    self.missing.entry(owner.to_owned()).or_default().lost += 1;
                }
                None
            }
            (Fact::Stored { resource, object, .. }, _) if resource.kind == "Pod" => {
                self.runs_again(world, object);
                None
            }
            (_, _) => None,
        };
        if let Some((_, _, owner)) = gone.and_then(|it| read::controller(&it.object)) {
            self.moved.insert(owner.to_owned());
            self.missing.entry(owner.to_owned()).or_default().moved += 1;
        }
    }

    /// A pod that is ready for the first time takes the place of one that we moved, if there is such a one, or
    /// of one that was lost. When all are there nobody is missing.
    fn runs_again(&mut self, world: &World, pod: &Value) {
        let Some((_, _, owner)) = read::controller(pod) else { return };
        let Some(missing) = self.missing.get_mut(owner) else { return };
        let before = world.pod(read::namespace(pod), read::name(pod));
        let first =
            before.is_none_or(|it| !it.ever_healthy || read::uid(&it.object) != read::uid(pod));
        if !first || !read::condition(pod, "Ready") || read::deleting(pod).is_some() {
            return;
        }
        if missing.moved > 0 {
            missing.moved -= 1;
        } else {
            missing.lost = (missing.lost - 1).max(0);
        }
        if whole(world, owner, 1) {
            *missing = Missing::default();
        }
    }

    pub(super) fn at_rest(&self, world: &World, now: Timestamp, found: &mut Found) {
        if self.moved.is_empty() {
            return;
        }
        found.premise(Law::Home);
        for (kind, workload) in
            WORKLOADS.iter().flat_map(|kind| world.all(kind).map(move |it| (kind, it.1)))
        {
            let workload = &workload.object;
            let uid = read::uid(workload);
            if !self.moved.contains(uid) || read::deleting(workload).is_some() {
                continue;
            }
            let wanted = read::number(workload, &["spec", "replicas"]).unwrap_or(1);
            let there = world.running_of(uid);
            let excused = self.missing.get(uid).map_or(0, |it| it.lost);
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

/// Whether as many pods of a workload run as it wants, with some more than are told of yet.
fn whole(world: &World, owner: &str, more: i64) -> bool {
    let there = world.running_of(owner).saturating_add(more);
    let mut workloads = WORKLOADS.iter().flat_map(|kind| world.all(kind));
    workloads.find(|(_, it)| read::uid(&it.object) == owner).is_some_and(|(_, it)| {
        there >= read::number(&it.object, &["spec", "replicas"]).unwrap_or(1)
    })
}
