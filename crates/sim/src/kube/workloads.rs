//! Are there as many pods as there should be?
//!
//! The controllers of Deployments, `ReplicaSets`, `StatefulSets`, Jobs and `DaemonSets`, the collector of what
//! nobody owns, and the one that empties namespaces. They keep no status of their own objects but a Job's:
//! nobody in here reads another.

mod daemons;
mod numbered;

use std::collections::BTreeSet;
use std::rc::Rc;

use jiff::Timestamp;
use nodemolt_cluster::transport::Resource;
use serde_json::{Value, json};

use super::{Due, Kube};
use crate::api_server::Key;
use crate::json::{at, items, set, stamp, text, whole};
use crate::kinds;
use crate::selector::ready;
use crate::trace::Actor;

/// The kinds that are looked after here.
pub(super) const KINDS: [Resource; 5] =
    [kinds::DEPLOYMENT, kinds::REPLICA_SET, kinds::STATEFUL_SET, kinds::JOB, kinds::DAEMON_SET];

const TEMPLATE_HASH: &str = "pod-template-hash";

#[derive(Debug, Default)]
pub(super) struct Workloads {
    dirty: BTreeSet<(Resource, Key)>,
    orphans: BTreeSet<(Resource, Key)>,
    /// Other nodes: daemons have to look.
    nodes: bool,
    pending: bool,
    /// Pods of jobs whose work counts already, by UID.
    counted: BTreeSet<String>,
}

impl Workloads {
    pub(super) fn look_at(&mut self, resource: Resource, key: Key) {
        if KINDS.contains(&resource) || resource == kinds::NAMESPACE {
            self.dirty.insert((resource, key));
        }
    }

    pub(super) fn maybe_orphaned(&mut self, resource: Resource, key: Key) {
        self.orphans.insert((resource, key));
    }

    pub(super) fn nodes_changed(&mut self) {
        self.nodes = true;
    }

    pub(super) fn wakes(&mut self) -> bool {
        let something = self.nodes || !self.dirty.is_empty() || !self.orphans.is_empty();
        let wakes = something && !self.pending;
        self.pending |= wakes;
        wakes
    }
}

impl Kube {
    pub(super) fn on_workloads(&mut self, now: Timestamp) -> Due {
        self.workloads.pending = false;
        for (resource, key) in std::mem::take(&mut self.workloads.orphans) {
            self.collect(resource, &key, now);
        }
        let mut dirty = std::mem::take(&mut self.workloads.dirty);
        if std::mem::take(&mut self.workloads.nodes) {
            let daemons = self.server.all(kinds::DAEMON_SET).map(|(key, _)| key.clone());
            dirty.extend(daemons.map(|it| (kinds::DAEMON_SET, it)));
        }
        for (resource, key) in dirty {
            let Some(object) = self.server.get(resource, &key.namespace, &key.name).cloned() else {
                continue;
            };
            let going = at(&object, &["metadata", "deletionTimestamp"]).is_some();
            if resource == kinds::NAMESPACE {
                if going {
                    self.empty_namespace(&key.name, now);
                }
            } else if going {
                // Its pods go when it has gone.
            } else if resource == kinds::DEPLOYMENT {
                self.deploy(&object, now);
            } else if resource == kinds::REPLICA_SET {
                self.replicate(&object, now);
            } else if resource == kinds::STATEFUL_SET {
                self.number_pods(&object, now);
            } else if resource == kinds::JOB {
                self.work_off(&object, now);
            } else if resource == kinds::DAEMON_SET {
                self.daemons(&object, now);
            }
        }
        Vec::new()
    }

    /// What has owners, of whom none is left, goes.
    fn collect(&mut self, resource: Resource, key: &Key, now: Timestamp) {
        let Some(object) = self.server.get(resource, &key.namespace, &key.name).cloned() else {
            return;
        };
        let owners = items(&object, &["metadata", "ownerReferences"]);
        let known = |it: &Value| self.server.with_uid(text(it, &["uid"])).is_some();
        let going = at(&object, &["metadata", "deletionTimestamp"]).is_some();
        if !going && !owners.is_empty() && !owners.iter().any(known) {
            // It is there and has this UID: it was just read.
            let _ = self.delete(Actor::Controllers, resource, &object, None, now);
        }
    }

    fn empty_namespace(&mut self, namespace: &str, now: Timestamp) {
        let mut left = false;
        for resource in kinds::ALL.into_iter().filter(|it| it.namespaced) {
            let inside: Vec<Rc<Value>> =
                self.server.all_in(resource, namespace).map(|(_, it)| Rc::clone(it)).collect();
            for object in inside {
                if at(&object, &["metadata", "deletionTimestamp"]).is_none() {
                    // It is there and has this UID: it was just read.
                    let _ = self.delete(Actor::Controllers, resource, &object, None, now);
                }
            }
            left |= self.server.all_in(resource, namespace).next().is_some();
        }
        if !left {
            self.server.end_namespace(namespace, Actor::Controllers, now);
        }
    }

    /// One `ReplicaSet` per template. The older ones shrink to nothing once the newest is ready.
    fn deploy(&mut self, deployment: &Rc<Value>, now: Timestamp) {
        let (namespace, name) =
            (text(deployment, &["metadata", "namespace"]), text(deployment, &["metadata", "name"]));
        let replicas = whole(deployment, &["spec", "replicas"]).unwrap_or(1);
        let mut template = at(deployment, &["spec", "template"]).cloned().unwrap_or_default();
        let hash = hash_of(&template);
        let own = format!("{name}-{hash}");
        set(&mut template, &["metadata", "labels", TEMPLATE_HASH], json!(hash));
        let Some(newest) = self.server.get(kinds::REPLICA_SET, namespace, &own).cloned() else {
            let mut selector = at(deployment, &["spec", "selector"]).cloned().unwrap_or_default();
            set(&mut selector, &["matchLabels", TEMPLATE_HASH], json!(hash));
            let labels = at(&template, &["metadata", "labels"]).cloned();
            let body = json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {
                    "name": own, "namespace": namespace, "labels": labels,
                    "ownerReferences": [owned_by(deployment)],
                },
                "spec": { "replicas": replicas, "selector": selector, "template": template },
            });
            self.create(Actor::Controllers, kinds::REPLICA_SET, body, now);
            return;
        };
        self.scale(&newest, replicas, now);
        let uid = text(&newest, &["metadata", "uid"]);
        let ready = self.server.pods_of(uid).filter(|it| active(it) && ready(it)).count();
        if i64::try_from(ready).unwrap_or(i64::MAX) < replicas {
            return;
        }
        for (resource, older) in self.server.owned_by(text(deployment, &["metadata", "uid"])) {
            if resource == kinds::REPLICA_SET && text(&older, &["metadata", "name"]) != own {
                self.scale(&older, 0, now);
            }
        }
    }

    fn scale(&mut self, set_of: &Value, replicas: i64, now: Timestamp) {
        let key = Key::of(set_of);
        self.server.alter(Actor::Controllers, kinds::REPLICA_SET, &key, now, |it| {
            set(it, &["spec", "replicas"], json!(replicas));
        });
    }

    fn replicate(&mut self, replica_set: &Rc<Value>, now: Timestamp) {
        let uid = text(replica_set, &["metadata", "uid"]);
        let mut there: Vec<Rc<Value>> =
            self.server.pods_of(uid).filter(|it| active(it)).cloned().collect();
        let wanted = whole(replica_set, &["spec", "replicas"]).unwrap_or(1).max(0);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        for _ in there.len()..wanted {
            let mut pod = pod_from(replica_set);
            let prefix = format!("{}-", text(replica_set, &["metadata", "name"]));
            set(&mut pod, &["metadata", "generateName"], json!(prefix));
            if !self.create(Actor::Controllers, kinds::POD, pod, now) {
                break;
            }
        }
        if there.len() > wanted {
            // Whoever is worth least goes first: without a node, not ready, the youngest.
            there.sort_by_cached_key(|it| {
                let bound = !text(it, &["spec", "nodeName"]).is_empty();
                let made = text(it, &["metadata", "creationTimestamp"]).to_owned();
                (!bound, !ready(it), made, Key::of(it))
            });
        }
        while there.len() > wanted {
            let Some(surplus) = there.pop() else { break };
            // It is there and has this UID: it was just read.
            let _ = self.delete(Actor::Controllers, kinds::POD, &surplus, None, now);
        }
        // While there are older ones, their end depends on this one's pods.
        for owner in items(replica_set, &["metadata", "ownerReferences"]) {
            let Some((kinds::DEPLOYMENT, owner)) = self.server.with_uid(text(owner, &["uid"]))
            else {
                continue;
            };
            let key = Key::of(owner);
            let sets = self.server.owned_by(text(owner, &["metadata", "uid"]));
            if sets.len() > 1 {
                self.deploy_again(&key, now);
            }
        }
    }

    fn deploy_again(&mut self, key: &Key, now: Timestamp) {
        let found = self.server.get(kinds::DEPLOYMENT, &key.namespace, &key.name).cloned();
        if let Some(deployment) = found {
            self.deploy(&deployment, now);
        }
    }

    fn work_off(&mut self, job: &Rc<Value>, now: Timestamp) {
        let uid = text(job, &["metadata", "uid"]);
        let pods: Vec<Rc<Value>> = self.server.pods_of(uid).cloned().collect();
        let mut done = whole(job, &["status", "succeeded"]).unwrap_or(0);
        for pod in pods.iter().filter(|it| text(it, &["status", "phase"]) == "Succeeded") {
            let uid = text(pod, &["metadata", "uid"]).to_owned();
            done += i64::from(self.workloads.counted.insert(uid));
        }
        let completions = whole(job, &["spec", "completions"]).unwrap_or(1);
        self.server.alter(Actor::Controllers, kinds::JOB, &Key::of(job), now, |it| {
            if done > 0 {
                set(it, &["status", "succeeded"], json!(done));
            }
            if done >= completions && at(it, &["status", "completionTime"]).is_none() {
                set(it, &["status", "completionTime"], stamp(now));
            }
        });
        let parallel = whole(job, &["spec", "parallelism"]).unwrap_or(1);
        let active = i64::try_from(pods.iter().filter(|it| active(it)).count()).unwrap_or(0);
        for _ in active..parallel.min(completions - done) {
            let mut pod = pod_from(job);
            let prefix = format!("{}-", text(job, &["metadata", "name"]));
            set(&mut pod, &["metadata", "generateName"], json!(prefix));
            set(&mut pod, &["spec", "restartPolicy"], json!("Never"));
            if !self.create(Actor::Controllers, kinds::POD, pod, now) {
                break;
            }
        }
    }
}

/// Whether a pod counts for its controller: it has not ended and is not going.
fn active(pod: &Value) -> bool {
    at(pod, &["metadata", "deletionTimestamp"]).is_none()
        && !["Succeeded", "Failed"].contains(&text(pod, &["status", "phase"]))
}

fn owned_by(owner: &Value) -> Value {
    json!({
        "apiVersion": text(owner, &["apiVersion"]), "kind": text(owner, &["kind"]),
        "name": text(owner, &["metadata", "name"]), "uid": text(owner, &["metadata", "uid"]),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// A pod of this workload, without a name.
fn pod_from(workload: &Value) -> Value {
    let template = at(workload, &["spec", "template"]).cloned().unwrap_or_default();
    let mut metadata = json!({
        "namespace": text(workload, &["metadata", "namespace"]),
        "ownerReferences": [owned_by(workload)],
    });
    for field in ["labels", "annotations"] {
        if let Some(said) = at(&template, &["metadata", field]) {
            metadata[field] = said.clone();
        }
    }
    let spec = at(&template, &["spec"]).cloned().unwrap_or_else(|| json!({}));
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

/// FNV-1a of the text: the same template has the same name, in every run.
fn hash_of(template: &Value) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in template.to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{:010x}", hash >> 24)
}
