//! What room does a node have, by its own account?

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node as WireNode;
use k8s_openapi::api::storage::v1::CSINode;
use nodemolt_fit::{label, node::Node, taint::Taint};

use super::{name, reader::Reader};

/// Set to `true` by Karpenter when a node is ready and its startup taints are gone.
const INITIALISED: &str = "karpenter.sh/initialized";
/// On a node that Karpenter has started and not met yet; the labels come later.
const UNREGISTERED: &str = "karpenter.sh/unregistered";
/// Karpenter is about to remove the node; the second is what it said before v1.
const DISRUPTED: [&str; 2] = ["karpenter.sh/disrupted", "karpenter.sh/disruption"];
/// What the node controller puts on nodes that do not answer.
const UNREADY: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

pub(crate) fn node(
    wire: &WireNode,
    csi: Option<&CSINode>,
    startup_taints: &BTreeMap<String, Vec<Taint>>,
    reader: &mut Reader,
) -> Node {
    let labels = wire.metadata.labels.clone().unwrap_or_default();
    let spec = wire.spec.as_ref();
    let allocatable = wire.status.as_ref().and_then(|it| it.allocatable.as_ref());
    if allocatable.is_none() {
        let message = "is missing, and nothing else says what fits on the node";
        let hint = "give the node as `kubectl get node -o yaml` prints it";
        reader.refuse_with("status.allocatable", message.to_owned(), hint);
    }
    let mut taints = Vec::new();
    let written = spec.and_then(|it| it.taints.as_ref());
    for (at, it) in written.into_iter().flatten().enumerate() {
        let field = format!("spec.taints[{at}]");
        taints.extend(reader.taint(&field, &it.key, it.value.as_deref(), &it.effect));
    }
    let pool = labels.get(label::NODEPOOL).cloned();
    let startup_taints = pool.as_ref().and_then(|it| startup_taints.get(it)).cloned();
    Node {
        name: name(&wire.metadata).to_owned(),
        // Who has no pool was not started by Karpenter, and nobody marks it.
        initialised: (pool.is_none() || labels.get(INITIALISED).is_some_and(|it| it == "true"))
            && !taints.iter().any(|it| it.key == UNREGISTERED),
        pool,
        labels,
        taints,
        startup_taints: startup_taints.unwrap_or_default(),
        unschedulable: spec.and_then(|it| it.unschedulable).unwrap_or(false),
        leaving: false,
        allocatable: reader.amounts("status.allocatable", allocatable),
        volume_limits: csi.map(volume_limits).unwrap_or_default(),
        ..Node::default()
    }
}

/// How many volumes each driver can attach.
pub(crate) fn volume_limits(csi: &CSINode) -> BTreeMap<String, u32> {
    let drivers = csi.spec.drivers.iter().filter_map(|it| {
        let count = it.allocatable.as_ref()?.count?;
        Some((it.name.clone(), u32::try_from(count).ok()?))
    });
    drivers.collect()
}

/// Why the node will not be there, if it says so itself.
pub(crate) fn about_to_leave(wire: &WireNode) -> Option<&'static str> {
    if wire.metadata.deletion_timestamp.is_some() {
        return Some("it is being deleted");
    }
    let taints = wire.spec.iter().flat_map(|it| it.taints.iter().flatten());
    let disrupted = taints.into_iter().any(|it| DISRUPTED.contains(&it.key.as_str()));
    disrupted.then_some("Karpenter is about to remove it")
}

/// What its condition `Ready` says, if not `True`, on a node that has no taint for it.
pub(super) fn unready(wire: &WireNode) -> Option<&str> {
    let conditions = wire.status.iter().flat_map(|it| it.conditions.iter().flatten());
    let ready = conditions.into_iter().find(|it| it.type_ == "Ready" && it.status != "True")?;
    let mut taints = wire.spec.iter().flat_map(|it| it.taints.iter().flatten());
    let told = taints.any(|it| UNREADY.contains(&it.key.as_str()));
    (!told).then_some(ready.status.as_str())
}
