//! Would `kubectl apply` take this object of Kubernetes' own kinds?
//!
//! `object × its type → everything that is wrong with it`
//!
//! The types are those of k8s-openapi: as strict as the server about what a value is, and as strict as
//! `kubectl` about fields that there are not. Of what values mean only that is looked at which would give
//! pods that no server lets in.

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::Job,
    coordination::v1::Lease,
    core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod},
    policy::v1::PodDisruptionBudget,
    scheduling::v1::PriorityClass,
    storage::v1::{CSINode, StorageClass},
};
use nodemolt_fit::Quantity;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Located, decode, path, under};
use crate::problem::{Finding, Place, Problem, Severity, quoted};

/// Of which part of an object people say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// All of it; what stands in its status is as if it were not there.
    Whole,
    /// Its status, too.
    Status,
}

/// Everything that is wrong with it. Of a kind that is none of Kubernetes' own, or of another version, nothing.
pub fn problems(object: &Located<Value>, written: Written) -> Vec<Problem> {
    let text = |key: &str| object.value.get(key).and_then(Value::as_str).unwrap_or_default();
    let read = match (text("apiVersion"), text("kind")) {
        ("v1", "Node") => found::<Node>,
        ("v1", "Pod") => found::<Pod>,
        ("v1", "Namespace") => found::<Namespace>,
        ("v1", "PersistentVolume") => found::<PersistentVolume>,
        ("v1", "PersistentVolumeClaim") => found::<PersistentVolumeClaim>,
        ("policy/v1", "PodDisruptionBudget") => found::<PodDisruptionBudget>,
        ("apps/v1", "DaemonSet") => found::<DaemonSet>,
        ("apps/v1", "Deployment") => found::<Deployment>,
        ("apps/v1", "ReplicaSet") => found::<ReplicaSet>,
        ("apps/v1", "StatefulSet") => found::<StatefulSet>,
        ("batch/v1", "Job") => found::<Job>,
        ("storage.k8s.io/v1", "StorageClass") => found::<StorageClass>,
        ("storage.k8s.io/v1", "CSINode") => found::<CSINode>,
        ("coordination.k8s.io/v1", "Lease") => found::<Lease>,
        ("scheduling.k8s.io/v1", "PriorityClass") => found::<PriorityClass>,
        _ => return Vec::new(),
    };
    let mut problems: Vec<Problem> = read(object, written)
        .into_iter()
        .filter(|(_, it)| it.severity == Severity::Error)
        .map(|(place, finding)| {
            let field = under(&object.prefix, finding.field);
            Problem::new(&object.file, place, Finding { field, ..finding })
        })
        .collect();
    if problems.is_empty() {
        problems = meant(&object.value).into_iter().map(|it| object.problem(it)).collect();
    }
    problems
}

fn found<T: DeserializeOwned>(object: &Located<Value>, written: Written) -> Vec<(Place, Finding)> {
    let unread: &[&str] = if written == Written::Status { &[] } else { &["status"] };
    decode::decode_without::<T>(unread, &object.tree, object.root).1
}

/// What containers of its pods ask for and may not have.
fn meant(object: &Value) -> Vec<Finding> {
    let template = object.pointer("/spec/template");
    let (spec, at_spec) = match template {
        Some(template) => (template.get("spec"), "spec.template.spec"),
        None => (object.get("spec"), "spec"),
    };
    let listed = |list: &str| spec.and_then(|it| it.get(list)).and_then(Value::as_array);
    let mut found = Vec::new();
    if template.is_some() && listed("containers").is_none_or(Vec::is_empty) {
        let finding = Finding::error(format!("{at_spec}.containers"), "there is no container");
        found.push(finding.hint("write at least one, with `name` and `image`"));
    }
    for list in ["initContainers", "containers"] {
        for (index, container) in listed(list).into_iter().flatten().enumerate() {
            let amounts = |part: &str| container.pointer(&format!("/resources/{part}"));
            let limits = amounts("limits");
            for (name, request) in
                amounts("requests").and_then(Value::as_object).into_iter().flatten()
            {
                let Some(limit) = limits.and_then(|it| it.get(name)) else { continue };
                let (asked, most) = (written_as(request), written_as(limit));
                let more = match (asked.parse::<Quantity>(), most.parse::<Quantity>()) {
                    (Ok(asked), Ok(most)) => asked > most,
                    // The server says what is wrong with them.
                    (Err(_), _) | (_, Err(_)) => false,
                };
                if more {
                    let field = format!("{at_spec}.{list}[{index}].resources.requests");
                    let message =
                        format!("{} is more than its limit, {}", quoted(&asked), quoted(&most));
                    let finding = Finding::error(path::join(&field, name), message);
                    found.push(finding.hint("write a lower request, or a higher limit"));
                }
            }
        }
    }
    found
}

fn written_as(amount: &Value) -> String {
    amount.as_str().map_or_else(|| amount.to_string(), str::to_owned)
}
