//! Did we change what people wrote?
//!
//! Of what people write we touch the status, our finalizer, and annotations under our own names. A node is
//! shared: our taint and our annotations come and go, labels are added when it registers, and
//! `spec.unschedulable` is people's.

use serde_json::{Map, Value};

use nodemolt_cluster::transport::Resource;

use super::read::{self, at, items, text};
use super::world::{DISRUPTED_TAINT, UNREGISTERED_TAINT, has_taint};
use super::{Found, Law};
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

/// Beginnings of keys that are ours or Karpenter's, and not people's.
const OURS: [&str; 4] = ["nodemolt.dev/", "karpenter.sh/", "karpenter.k8s.aws/", "kubernetes.io/"];

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
    let mut broken = |what: &str| {
        let what = format!("{kind} {}: {what}", read::name(object));
        found.broken(Law::UsersWords, step.at, what);
    };
    let Some(old) = old else {
        if peoples {
            broken("people write these, and we made one");
        }
        return;
    };
    if kind == "Node" {
        node(object, old, &mut broken);
    } else {
        if at(object, &["spec"]) != at(old, &["spec"]) {
            broken("its spec was changed");
        }
        if changed(object, old, "labels", true) {
            broken("its labels were changed");
        }
        if changed(object, old, "annotations", true) {
            broken("its annotations were changed");
        }
    }
    found.premise(Law::UsersWords);
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

fn node(object: &Value, old: &Value, broken: &mut impl FnMut(&str)) {
    let unschedulable = |it: &Value| read::flag(it, &["spec", "unschedulable"]);
    if unschedulable(object) != unschedulable(old) {
        broken("spec.unschedulable was changed");
    }
    // The write that registers it brings what its pool says.
    let registers = has_taint(old, UNREGISTERED_TAINT) && !has_taint(object, UNREGISTERED_TAINT);
    if !registers && others_taints(object) != others_taints(old) {
        broken("taints that are not ours were changed");
    }
    let taken = |field: &str| {
        fields(old, field)
            .iter()
            .any(|(key, _)| !ours(key) && !fields(object, field).contains_key(*key))
    };
    if taken("labels") || changed(object, old, "labels", false) {
        broken("its labels were changed");
    }
    if taken("annotations") || changed(object, old, "annotations", false) {
        broken("its annotations were changed");
    }
}

fn others_taints(node: &Value) -> Vec<&Value> {
    items(node, &["spec", "taints"])
        .filter(|it| !matches!(text(it, &["key"]), Some(DISRUPTED_TAINT | UNREGISTERED_TAINT)))
        .collect()
}

fn ours(key: &str) -> bool {
    OURS.iter().any(|it| key.starts_with(it))
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
