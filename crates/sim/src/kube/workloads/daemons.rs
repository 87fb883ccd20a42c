//! Which nodes get a pod of a `DaemonSet`?
//!
//! Every one that its pods select and put up with; they go where they are sent, whether there is room or
//! not.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::{Kube, scheduler};
use super::{active, pod_from};
use crate::json::{at, items, set, text};
use crate::kinds;
use crate::selector::tolerates;
use crate::trace::Actor;

/// What the controller lets its pods put up with, and for ever.
const PATIENT_WITH: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

impl Kube {
    pub(super) fn daemons(&mut self, owner: &Rc<Value>, now: Timestamp) {
        let pod = daemon(owner);
        let mut there: BTreeMap<String, Vec<Rc<Value>>> = BTreeMap::new();
        for it in self.server.pods_of(text(owner, &["metadata", "uid"])).filter(|it| active(it)) {
            let node = text(it, &["spec", "nodeName"]).to_owned();
            there.entry(node).or_default().push(Rc::clone(it));
        }
        let nodes: Vec<Rc<Value>> =
            self.server.all(kinds::NODE).map(|(_, it)| Rc::clone(it)).collect();
        for node in nodes {
            let name = text(&node, &["metadata", "name"]).to_owned();
            let wanted = scheduler::node_wanted(&pod, &node);
            let starts = wanted && open(&pod, &node, &["NoSchedule", "NoExecute"]);
            let stays = wanted && open(&pod, &node, &["NoExecute"]);
            let here = there.remove(&name).unwrap_or_default();
            if here.is_empty() && starts && at(&node, &["metadata", "deletionTimestamp"]).is_none()
            {
                let mut new = pod.clone();
                set(&mut new, &["spec", "nodeName"], json!(name));
                self.create(Actor::Controllers, kinds::POD, new, now);
            }
            let keeps = usize::from(stays);
            for surplus in here.into_iter().skip(keeps) {
                // It is there and has this UID: it was just read.
                let _ = self.delete(Actor::Controllers, kinds::POD, &surplus, None, now);
            }
        }
    }
}

fn daemon(owner: &Value) -> Value {
    let mut pod = pod_from(owner);
    let prefix = format!("{}-", text(owner, &["metadata", "name"]));
    set(&mut pod, &["metadata", "generateName"], json!(prefix));
    let mut tolerations = items(&pod, &["spec", "tolerations"]).to_vec();
    for (key, effect) in PATIENT_WITH {
        tolerations.push(json!({ "key": key, "operator": "Exists", "effect": effect }));
    }
    set(&mut pod, &["spec", "tolerations"], Value::Array(tolerations));
    pod
}

fn open(pod: &Value, node: &Value, effects: &[&str]) -> bool {
    let tolerations = items(pod, &["spec", "tolerations"]);
    items(node, &["spec", "taints"])
        .iter()
        .filter(|it| effects.contains(&text(it, &["effect"])))
        .all(|taint| tolerations.iter().any(|it| tolerates(it, taint)))
}
