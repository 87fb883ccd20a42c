//! Did we change what people wrote?
//!
//! Of what people write we touch the status and our finalizer. A node is shared: our taint and our two
//! annotations come and go, and labels are added when it registers. What else is there stays, whoever's name
//! it bears: people write `karpenter.sh/do-not-disrupt` and `nodemolt.dev/upgrade-requested-at` as
//! well, and `spec.unschedulable` and a taint like ours may be somebody else's.

use serde_json::{Map, Value};

use nodemolt_cluster::transport::Resource;

use super::read::{self, at, items, text};
use super::world::{CORDONED_BY, DISRUPTED_TAINT, UNREGISTERED_TAINT, has_taint};
use super::{Complaint, Found, Law};
use crate::trace::{Actor, Step};

/// What people write, and nobody makes, changes or removes for them.
const PEOPLES: [&str; 13] = [
    "EC2NodeClass",
    "NodePool",
    "ImagePolicy",
    "NodeDisruptionBudget",
    "PodDisruptionBudget",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "Namespace",
    "PriorityClass",
    "PersistentVolumeClaim",
];

/// The taint was there before our cordon, and stays after it.
const CORDON_FOUND: &str = "nodemolt.dev/cordon-found";

/// What we write on nodes, change, and take away again. Nothing else on anything that people write.
const OURS: [&str; 2] = [CORDONED_BY, CORDON_FOUND];

pub(super) const FINALIZER: &str = "karpenter.sh/termination";

pub(super) fn see_stored(
    resource: Resource,
    object: &Value,
    old: Option<&Value>,
    step: &Step,
    found: &mut Found,
) {
    if !matches!(step.by, Actor::Operator(_)) {
        return;
    }
    let kind = resource.kind;
    let peoples = PEOPLES.contains(&kind);
    if !peoples && !matches!(kind, "Node" | "Pod" | "DisruptionLedger" | "ImageQuarantine") {
        return;
    }
    found.premise(Law::UsersWords);
    let of = format!("{kind} {}:", read::name(object));
    let mut said = Complaint { found, law: Law::UsersWords, at: step.at, of };
    let Some(old) = old else {
        if peoples {
            said.broken("people write these, and we made one");
        }
        return;
    };
    if kind == "Node" {
        node(object, old, &mut said);
    } else {
        if at(object, &["spec"]) != at(old, &["spec"]) {
            said.broken("its spec was changed");
        }
        if changed(object, old, "labels", true) {
            said.broken("its labels were changed");
        }
        if changed(object, old, "annotations", true) {
            said.broken("its annotations were changed");
        }
    }
    if others_finalizers(object) != others_finalizers(old) {
        said.broken("finalizers that are not ours were changed");
    }
}

pub(super) fn see_removed(resource: Resource, last: &Value, step: &Step, found: &mut Found) {
    let peoples = PEOPLES.contains(&resource.kind) || resource.kind == "ImageQuarantine";
    // Somebody deleted it, and the last finalizer was ours.
    let released = read::deleting(last).is_some();
    if matches!(step.by, Actor::Operator(_)) && peoples && !released {
        let what = format!("{} {} was removed", resource.kind, read::name(last));
        found.broken(Law::UsersWords, step.at, what);
    }
}

fn node(object: &Value, old: &Value, said: &mut Complaint<'_>) {
    let unschedulable = |it: &Value| read::flag(it, &["spec", "unschedulable"]);
    if unschedulable(object) != unschedulable(old) {
        said.broken("spec.unschedulable was changed");
    }
    // The write that registers it brings what its pool says.
    let registers = has_taint(old, UNREGISTERED_TAINT) && !has_taint(object, UNREGISTERED_TAINT);
    let (before, after) = (others_taints(old), others_taints(object));
    if before.iter().any(|it| !after.contains(it)) || (!registers && before != after) {
        said.broken("taints that are not ours were changed");
    }
    let found_there = has_taint(old, DISRUPTED_TAINT)
        && (read::annotation(old, CORDONED_BY).is_none()
            || read::annotation(old, CORDON_FOUND).is_some());
    if found_there && !has_taint(object, DISRUPTED_TAINT) {
        said.broken("a taint like ours was taken away, and was somebody else's");
    }
    let taken = |field: &str| {
        fields(old, field)
            .iter()
            .any(|(key, _)| !ours(key) && !fields(object, field).contains_key(*key))
    };
    if taken("labels") || changed(object, old, "labels", false) {
        said.broken("its labels were changed");
    }
    if taken("annotations") || changed(object, old, "annotations", false) {
        said.broken("its annotations were changed");
    }
}

fn others_taints(node: &Value) -> Vec<&Value> {
    items(node, &["spec", "taints"])
        .filter(|it| !matches!(text(it, &["key"]), Some(DISRUPTED_TAINT | UNREGISTERED_TAINT)))
        .collect()
}

fn others_finalizers(object: &Value) -> Vec<&str> {
    let all = items(object, &["metadata", "finalizers"]).filter_map(Value::as_str);
    all.filter(|it| *it != FINALIZER).collect()
}

fn ours(key: &str) -> bool {
    OURS.contains(&key)
}

fn fields<'a>(object: &'a Value, field: &str) -> std::collections::BTreeMap<&'a str, &'a Value> {
    let map: Option<&Map<String, Value>> =
        at(object, &["metadata", field]).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, it)| (key.as_str(), it)).collect()
}

/// Whether somebody else's keys have other values. With `whole` none may come or go either.
fn changed(object: &Value, old: &Value, field: &str, whole: bool) -> bool {
    let (before, after) = (fields(old, field), fields(object, field));
    let differs = before
        .iter()
        .filter(|(key, _)| !ours(key))
        .any(|(key, value)| after.get(key).is_some_and(|it| it != value));
    let came_or_went = || {
        before.keys().any(|it| !ours(it) && !after.contains_key(it))
            || after.keys().any(|it| !ours(it) && !before.contains_key(it))
    };
    differs || (whole && came_or_went())
}
