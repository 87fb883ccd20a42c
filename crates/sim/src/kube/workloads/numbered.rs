//! Which pod of a `StatefulSet` is next?
//!
//! Each has a number and a name of its own and never has two of them at once: the next is made when the one
//! before is ready, and one that went is made again, with another UID, when it has really gone.

use std::rc::Rc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::Kube;
use super::{active, owned_by, pod_from};
use crate::json::{at, items, set, text, whole};
use crate::kinds;
use crate::selector::ready;
use crate::trace::Actor;

impl Kube {
    pub(super) fn number_pods(&mut self, owner: &Rc<Value>, now: Timestamp) {
        let wanted = whole(owner, &["spec", "replicas"]).unwrap_or(1).max(0);
        let in_order = text(owner, &["spec", "podManagementPolicy"]) != "Parallel";
        let (namespace, name) =
            (text(owner, &["metadata", "namespace"]), text(owner, &["metadata", "name"]));
        for number in 0..wanted {
            let own = format!("{name}-{number}");
            match self.server.get(kinds::POD, namespace, &own).cloned() {
                None => {
                    self.make_claims(owner, number, now);
                    self.create(Actor::Controllers, kinds::POD, numbered_pod(owner, number), now);
                }
                // Ended, and not because somebody asked: it is made anew.
                Some(pod)
                    if !active(&pod) && at(&pod, &["metadata", "deletionTimestamp"]).is_none() =>
                {
                    // It is there and has this UID: it was just read.
                    let _ = self.delete(Actor::Controllers, kinds::POD, &pod, None, now);
                }
                Some(pod) if active(&pod) && ready(&pod) => continue,
                Some(_) => {}
            }
            if in_order {
                return;
            }
        }
        self.shrink(owner, wanted, now);
    }

    /// The highest number goes first, one at a time.
    fn shrink(&mut self, owner: &Rc<Value>, wanted: i64, now: Timestamp) {
        let prefix = format!("{}-", text(owner, &["metadata", "name"]));
        let number = |pod: &Value| -> i64 {
            let name = text(pod, &["metadata", "name"]);
            name.strip_prefix(&prefix).and_then(|it| it.parse().ok()).unwrap_or(-1)
        };
        let pods = self.server.pods_of(text(owner, &["metadata", "uid"]));
        let surplus = pods.filter(|it| number(it) >= wanted).max_by_key(|it| number(it)).cloned();
        if let Some(pod) = surplus.filter(|it| active(it)) {
            // It is there and has this UID: it was just read.
            let _ = self.delete(Actor::Controllers, kinds::POD, &pod, None, now);
        }
    }

    fn make_claims(&mut self, owner: &Rc<Value>, number: i64, now: Timestamp) {
        for template in items(owner, &["spec", "volumeClaimTemplates"]) {
            let namespace = text(owner, &["metadata", "namespace"]);
            let body = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": { "namespace": namespace, "name": claim_name(owner, template, number) },
                "spec": at(template, &["spec"]).cloned().unwrap_or_else(|| json!({})),
                "status": { "phase": "Pending" },
            });
            // One that is there already is the pod's own from before.
            self.create(Actor::Controllers, kinds::VOLUME_CLAIM, body, now);
        }
    }
}

fn claim_name(owner: &Value, template: &Value, number: i64) -> String {
    let of = text(template, &["metadata", "name"]);
    format!("{of}-{}-{number}", text(owner, &["metadata", "name"]))
}

fn numbered_pod(owner: &Value, number: i64) -> Value {
    let mut pod = pod_from(owner);
    let name = format!("{}-{number}", text(owner, &["metadata", "name"]));
    set(&mut pod, &["metadata", "labels", "statefulset.kubernetes.io/pod-name"], json!(name));
    set(
        &mut pod,
        &["metadata", "labels", "apps.kubernetes.io/pod-index"],
        json!(number.to_string()),
    );
    set(&mut pod, &["metadata", "name"], json!(name));
    set(&mut pod, &["metadata", "ownerReferences"], json!([owned_by(owner)]));
    let claims = items(owner, &["spec", "volumeClaimTemplates"]);
    if !claims.is_empty() {
        let mut volumes = items(&pod, &["spec", "volumes"]).to_vec();
        volumes.extend(claims.iter().map(|template| {
            let claim = claim_name(owner, template, number);
            json!({
                "name": text(template, &["metadata", "name"]),
                "persistentVolumeClaim": { "claimName": claim },
            })
        }));
        set(&mut pod, &["spec", "volumes"], Value::Array(volumes));
    }
    pod
}
