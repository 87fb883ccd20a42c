//! How does a pod come and go?
//!
//! ```text
//! made ─▶ bound ─▶ Running ─▶ Ready ─▶ asked to leave ─▶ gone
//! ```
//!
//! From `bound` on it is its kubelet that says so: where none speaks, a pod stays what it was, however long
//! it has been asked to leave.

use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Due, InPod, Kube, KubeEvent, after};
use crate::api_server::Key;
use crate::dice::Dice;
use crate::json::{at, items, set, stamp, text, time, whole};
use crate::kinds;
use crate::selector::{condition, ready, tolerates};
use crate::trace::Actor;

impl Kube {
    /// A pod is there, or is another than it was.
    pub(super) fn pod_changed(
        &mut self,
        old: Option<&Rc<Value>>,
        new: &Rc<Value>,
        now: Timestamp,
        dice: &mut Dice,
        due: &mut Due,
    ) {
        let node = text(new, &["spec", "nodeName"]);
        if node.is_empty() {
            return;
        }
        let grace = |it: &Rc<Value>| whole(it, &["metadata", "deletionGracePeriodSeconds"]);
        if at(new, &["metadata", "deletionTimestamp"]).is_some() {
            if old.and_then(grace) != grace(new) || old.is_none() {
                self.stop(new, now, dice, due);
            }
        } else if old.is_none_or(|it| text(it, &["spec", "nodeName"]) != node) {
            self.start(new, now, dice, due);
        }
    }

    /// The kubelet takes a pod on, if there is one.
    pub(super) fn start(&self, pod: &Rc<Value>, now: Timestamp, dice: &mut Dice, due: &mut Due) {
        let node = text(pod, &["spec", "nodeName"]);
        self.leave_bad_node(pod, now, due);
        if self.speaks(node) {
            due.push((self.pace.pod_runs(now, dice), event(pod, InPod::Runs)));
        }
    }

    /// The kubelet stops what was asked to leave, if there is one.
    pub(super) fn stop(&self, pod: &Rc<Value>, now: Timestamp, dice: &mut Dice, due: &mut Due) {
        if self.speaks(text(pod, &["spec", "nodeName"])) {
            let grace = whole(pod, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
            let grace = SignedDuration::from_secs(grace.max(0));
            let stops = self.pace.pod_stops(pod, grace, now, dice);
            due.push((stops, event(pod, InPod::Stops)));
        }
    }

    /// What a kubelet that speaks again finds: what it should run, and what has been asked to leave.
    pub(super) fn resync(&self, node: &str, now: Timestamp, dice: &mut Dice, due: &mut Due) {
        for pod in self.server.pods_on(node) {
            if at(pod, &["metadata", "deletionTimestamp"]).is_some() {
                self.stop(pod, now, dice, due);
            } else if text(pod, &["status", "phase"]) == "Pending" {
                self.start(pod, now, dice, due);
            } else if !ready(pod)
                && text(pod, &["status", "phase"]) == "Running"
                && let Some(ready_at) = self.pace.pod_ready(pod, now, dice)
            {
                due.push((ready_at, event(pod, InPod::Ready)));
            }
        }
    }

    /// Whoever could not become ready can now.
    pub(super) fn heal_pods(&self, now: Timestamp, dice: &mut Dice) -> Due {
        let mut due = Vec::new();
        let nodes: Vec<&str> =
            self.machines.values().map(|it| it.spec.node_name.as_str()).collect();
        for node in nodes.into_iter().filter(|it| self.speaks(it)) {
            self.resync(node, now, dice, &mut due);
        }
        due
    }

    pub(super) fn on_pod(
        &mut self,
        key: &Key,
        uid: &str,
        what: InPod,
        now: Timestamp,
        dice: &mut Dice,
    ) -> Due {
        let Some(pod) = self.server.get(kinds::POD, &key.namespace, &key.name).cloned() else {
            return Vec::new();
        };
        if text(&pod, &["metadata", "uid"]) != uid {
            return Vec::new();
        }
        if what == InPod::TakenOff {
            return self.take_off(&pod, now);
        }
        if !self.speaks(text(&pod, &["spec", "nodeName"])) {
            return Vec::new();
        }
        let going = at(&pod, &["metadata", "deletionTimestamp"]).is_some();
        let phase = text(&pod, &["status", "phase"]);
        match what {
            InPod::Runs if !going && phase == "Pending" => self.run(&pod, now, dice),
            InPod::Ready if !going && phase == "Running" && !ready(&pod) => {
                self.server.alter(Actor::Kubelet, kinds::POD, key, now, |it| {
                    set_condition(it, "Ready", "True", "", now);
                });
                Vec::new()
            }
            InPod::Completes if !going && phase == "Running" => {
                self.server.alter(Actor::Kubelet, kinds::POD, key, now, |it| {
                    set(it, &["status", "phase"], json!("Succeeded"));
                    set_condition(it, "Ready", "False", "PodCompleted", now);
                });
                Vec::new()
            }
            InPod::Stops if going => {
                // Somebody else may have ended it in between.
                let _ = self.delete(Actor::Kubelet, kinds::POD, &pod, Some(0), now);
                Vec::new()
            }
            InPod::Runs | InPod::Ready | InPod::Completes | InPod::Stops | InPod::TakenOff => {
                Vec::new()
            }
        }
    }

    fn run(&mut self, pod: &Rc<Value>, now: Timestamp, dice: &mut Dice) -> Due {
        self.server.alter(Actor::Kubelet, kinds::POD, &Key::of(pod), now, |it| {
            set(it, &["status", "phase"], json!("Running"));
            set(it, &["status", "startTime"], stamp(now));
            set_condition(it, "Ready", "False", "ContainersNotReady", now);
        });
        let mut due = Vec::new();
        if let Some(ready_at) = self.pace.pod_ready(pod, now, dice) {
            due.push((ready_at, event(pod, InPod::Ready)));
        }
        let owners = items(pod, &["metadata", "ownerReferences"]);
        if owners.iter().any(|it| text(it, &["kind"]) == "Job") {
            due.push((self.pace.work(pod, now, dice), event(pod, InPod::Completes)));
        }
        due
    }

    /// Whoever does not put up with what its node has become leaves when its patience ends.
    pub(super) fn leave_bad_node(&self, pod: &Rc<Value>, now: Timestamp, due: &mut Due) {
        let node = self.server.get(kinds::NODE, "", text(pod, &["spec", "nodeName"]));
        if let Some(leaves_at) = node.and_then(|it| patience_ends(pod, it, now)) {
            due.push((leaves_at.max(now), event(pod, InPod::TakenOff)));
        }
    }

    fn take_off(&mut self, pod: &Rc<Value>, now: Timestamp) -> Due {
        let node = self.server.get(kinds::NODE, "", text(pod, &["spec", "nodeName"]));
        let Some(leaves_at) = node.and_then(|it| patience_ends(pod, it, now)) else {
            return Vec::new();
        };
        if leaves_at > now {
            return vec![(leaves_at, event(pod, InPod::TakenOff))];
        }
        if at(pod, &["metadata", "deletionTimestamp"]).is_none() {
            // It is there and has this UID: it was just read.
            let _ = self.delete(Actor::Controllers, kinds::POD, pod, None, now);
        }
        Vec::new()
    }
}

/// When a pod has to leave its node because of taints; `None`: never.
fn patience_ends(pod: &Value, node: &Value, now: Timestamp) -> Option<Timestamp> {
    let taints = items(node, &["spec", "taints"]);
    let ends =
        taints.iter().filter(|it| text(it, &["effect"]) == "NoExecute").filter_map(|taint| {
            let since = time(taint, &["timeAdded"]).unwrap_or(now);
            let tolerations = items(pod, &["spec", "tolerations"]);
            let mut patience = Some(SignedDuration::ZERO);
            for it in tolerations.iter().filter(|it| tolerates(it, taint)) {
                let seconds = whole(it, &["tolerationSeconds"]).map(SignedDuration::from_secs);
                // The most patient of them, of which one without an end is the most.
                patience = match (patience, seconds) {
                    (Some(before), Some(seconds)) => Some(before.max(seconds)),
                    (None, _) | (_, None) => None,
                };
            }
            patience.map(|it| after(since, it))
        });
    ends.min()
}

pub(super) fn event(pod: &Value, what: InPod) -> KubeEvent {
    KubeEvent::Pod { key: Key::of(pod), uid: text(pod, &["metadata", "uid"]).to_owned(), what }
}

/// Sets one of an object's conditions; since when it holds changes only with what it says.
pub(super) fn set_condition(
    object: &mut Value,
    kind: &str,
    status: &str,
    reason: &str,
    now: Timestamp,
) {
    let since = if condition(object, kind) == status {
        items(object, &["status", "conditions"])
            .iter()
            .find(|it| text(it, &["type"]) == kind)
            .and_then(|it| at(it, &["lastTransitionTime"]).cloned())
    } else {
        None
    };
    let mut new = json!({
        "type": kind, "status": status, "lastTransitionTime": since.unwrap_or_else(|| stamp(now)),
    });
    if !reason.is_empty() {
        new["reason"] = json!(reason);
    }
    let mut conditions = items(object, &["status", "conditions"]).to_vec();
    match conditions.iter_mut().find(|it| text(it, &["type"]) == kind) {
        Some(there) => *there = new,
        None => conditions.push(new),
    }
    set(object, &["status", "conditions"], Value::Array(conditions));
}
