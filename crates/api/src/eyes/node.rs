//! What does a node say, whole?

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as WireNode, NodeCondition};
use nodemolt_core::seen::{CORDONED_BY_ANNOTATION, FINALIZER, Node, Readiness, Revision};

use super::read::{Broken, complaints, machine, protected, upgrade_asked_at};
use crate::listing::node::{about_to_leave, node as fit_node};
use crate::listing::reader::Reader;

/// Startup taints and volume limits are known elsewhere, and are put in by whoever knows them.
pub(super) fn node(wire: &WireNode) -> Result<Node, Broken> {
    let mut reader = Reader::default();
    let mut fit = fit_node(wire, None, &BTreeMap::new(), &mut reader);
    // A kubelet that has just registered says later what it offers.
    let offers = wire.status.as_ref().is_some_and(|it| it.allocatable.is_some());
    reader.found.retain(|it| offers || it.field != "status.allocatable");
    if !reader.found.is_empty() {
        return Err(complaints(reader.found));
    }
    fit.leaving = about_to_leave(wire).is_some();
    let meta = &wire.metadata;
    let none = BTreeMap::new();
    let annotations = meta.annotations.as_ref().unwrap_or(&none);
    let created_at = meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |it| it.0);
    let status = wire.status.as_ref();
    let conditions = status.into_iter().flat_map(|it| it.conditions.iter().flatten());
    let ready = conditions.into_iter().find(|it| it.type_ == "Ready");
    let kubelet = status.and_then(|it| it.node_info.as_ref()).map(|it| &it.kubelet_version);
    let (ours, finalizers): (Vec<String>, Vec<String>) =
        meta.finalizers.iter().flatten().cloned().partition(|it| it == FINALIZER);
    Ok(Node {
        name: fit.name.clone(),
        uid: meta.uid.clone().unwrap_or_default(),
        revision: Revision(meta.resource_version.clone().unwrap_or_default()),
        fit,
        created_at,
        deleting_since: meta.deletion_timestamp.as_ref().map(|it| it.0),
        held: !ours.is_empty(),
        finalizers,
        machine: machine(wire.spec.as_ref().and_then(|it| it.provider_id.as_deref())),
        ready: readiness(ready),
        ready_since: ready.and_then(|it| it.last_transition_time.as_ref()).map(|it| it.0),
        kubelet: kubelet.and_then(|it| it.parse().ok()),
        cordoned_by: annotations.get(CORDONED_BY_ANNOTATION).cloned(),
        protection: protected(annotations, Some(created_at)),
        upgrade_asked_at: upgrade_asked_at(annotations),
    })
}

/// One that has said nothing yet has not been ready.
fn readiness(ready: Option<&NodeCondition>) -> Readiness {
    match ready.map(|it| it.status.as_str()) {
        Some("True") => Readiness::Ready,
        Some("Unknown") => Readiness::Unknown,
        Some(_) | None => Readiness::NotReady,
    }
}
