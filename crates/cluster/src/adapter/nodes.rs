//! What changes on a node, and what stays?
//!
//! Taints and finalizers are lists that the kubelet, the controllers and people write to. They are read
//! right before the write, which names what was read: whoever comes in between makes it a conflict.

use nodemolt_api::eyes;
use nodemolt_core::seen::{
    CORDONED_BY_ANNOTATION, DISRUPTED_TAINT, FINALIZER, Node, UNREGISTERED_TAINT,
};
use nodemolt_engine::port::{ClusterError, NewNodeState, Object};
use nodemolt_fit::taint::{Effect, Taint};
use serde_json::{Map, Value, json};

use super::Adapter;
use super::call::{revision, unreadable};
use crate::resources::NODE;
use crate::transport::{Request, Resource, Transport, Verb};

/// On a node, beside [`CORDONED_BY_ANNOTATION`]: the taint was there before us, and stays when we go.
const CORDON_FOUND_ANNOTATION: &str = "nodemolt.dev/cordon-found";
/// The node was started with its taints, and whoever took one away meant it.
const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
const REGISTERED: &str = "karpenter.sh/registered";

impl<T: Transport> Adapter<T> {
    pub(super) async fn read_node(&self, name: &str) -> Result<Option<Node>, ClusterError> {
        match self.get(NODE, name).await {
            Ok(found) => eyes::read_node_now(&found)
                .map(Some)
                .map_err(|why| unreadable("Node", &found, &why)),
            Err(ClusterError::Absent(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn close(&self, node: &Object, replacement: &str) -> Result<(), ClusterError> {
        let found = self.get_same(NODE, &node.name, &node.uid).await?;
        let mut taints = taints(&found);
        let tainted = taints.iter().any(is_ours);
        let by = annotation(&found, CORDONED_BY_ANNOTATION);
        if tainted && by == Some(replacement) {
            return Ok(());
        }
        let mut annotations = Map::new();
        annotations.insert(CORDONED_BY_ANNOTATION.to_owned(), replacement.into());
        if !tainted {
            taints.push(json!({"key": DISRUPTED_TAINT, "effect": Effect::NoSchedule.name()}));
            annotations.insert(CORDON_FOUND_ANNOTATION.to_owned(), Value::Null);
        } else if by.is_none() {
            annotations.insert(CORDON_FOUND_ANNOTATION.to_owned(), "true".into());
        }
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"taints": taints}});
        self.patch(NODE, None, &node.name, &revision(&found), patch).await.map(drop)
    }

    pub(super) async fn open(&self, node: &Object, replacement: &str) -> Result<(), ClusterError> {
        let found = self.get_same(NODE, &node.name, &node.uid).await?;
        if annotation(&found, CORDONED_BY_ANNOTATION) != Some(replacement) {
            return Ok(());
        }
        let mut patch = json!({"metadata": {"annotations": {
            CORDONED_BY_ANNOTATION: null,
            CORDON_FOUND_ANNOTATION: null,
        }}});
        if annotation(&found, CORDON_FOUND_ANNOTATION).is_none() {
            let mut taints = taints(&found);
            taints.retain(|it| !is_ours(it));
            patch["spec"] = json!({"taints": some(taints)});
        }
        self.patch(NODE, None, &node.name, &revision(&found), patch).await.map(drop)
    }

    pub(super) async fn register(
        &self,
        node: &Object,
        state: &NewNodeState,
    ) -> Result<(), ClusterError> {
        let found = self.get_same(NODE, &node.name, &node.uid).await?;
        if found["metadata"]["deletionTimestamp"].is_string() {
            return Err(ClusterError::Conflict(format!("Node {} (it goes)", node.name)));
        }
        let mut patch = json!({"metadata": {}});
        let metadata = &mut patch["metadata"];
        let mut labels = state.labels.clone();
        labels.insert(REGISTERED.to_owned(), "true".to_owned());
        for (part, wanted) in [("labels", &labels), ("annotations", &state.annotations)] {
            for (key, value) in wanted {
                // What the node says itself stays.
                if !found["metadata"][part][key].is_string() {
                    metadata[part][key] = value.clone().into();
                }
            }
        }
        let mut finalizers = strings(&found["metadata"]["finalizers"]);
        if !finalizers.iter().any(|it| it == FINALIZER) {
            finalizers.push(FINALIZER.to_owned());
            metadata["finalizers"] = finalizers.into();
        }
        let (claim, uid) = &state.owner;
        let mut owners = list(&found["metadata"]["ownerReferences"]);
        if !owners.iter().any(|it| it["uid"] == uid.as_str()) {
            owners.push(json!({
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "name": claim,
                "uid": uid,
                "blockOwnerDeletion": true,
            }));
            metadata["ownerReferences"] = owners.into();
        }
        let before = taints(&found);
        let mut after = before.clone();
        after.retain(|it| it["key"] != UNREGISTERED_TAINT);
        if found["metadata"]["labels"][DO_NOT_SYNC_TAINTS] != "true" {
            for taint in &state.taints {
                let same =
                    |it: &Value| it["key"] == *taint.key && it["effect"] == taint.effect.name();
                if !after.iter().any(same) {
                    after.push(wire_taint(taint));
                }
            }
        }
        if after != before {
            patch["spec"] = json!({"taints": some(after)});
        }
        if patch == json!({"metadata": {}}) {
            return Ok(());
        }
        self.patch(NODE, None, &node.name, &revision(&found), patch).await.map(drop)
    }

    pub(super) async fn end_node(&self, name: &str, uid: &str) -> Result<(), ClusterError> {
        self.delete(Request::of(Verb::Delete, NODE).named(name), uid, json!({})).await
    }

    /// Takes our finalizer off, and nobody else's.
    pub(super) async fn release(
        &self,
        resource: Resource,
        object: &Object,
    ) -> Result<(), ClusterError> {
        let found = match self.get_same(resource, &object.name, &object.uid).await {
            // It is done, then.
            Err(ClusterError::Absent(_)) => return Ok(()),
            found => found?,
        };
        let before = strings(&found["metadata"]["finalizers"]);
        let after: Vec<String> = before.iter().filter(|it| *it != FINALIZER).cloned().collect();
        if after.len() == before.len() {
            return Ok(());
        }
        let after = if after.is_empty() { Value::Null } else { after.into() };
        let patch = json!({"metadata": {"finalizers": after}});
        self.patch(resource, None, &object.name, &revision(&found), patch).await.map(drop)
    }
}

/// An empty list is written as none, as the API server itself does.
fn some(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { list.into() }
}

pub(super) fn wire_taint(taint: &Taint) -> Value {
    let mut wire = json!({"key": taint.key, "effect": taint.effect.name()});
    if !taint.value.is_empty() {
        wire["value"] = taint.value.clone().into();
    }
    wire
}

fn is_ours(taint: &Value) -> bool {
    taint["key"] == DISRUPTED_TAINT && taint["effect"] == Effect::NoSchedule.name()
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

fn taints(node: &Value) -> Vec<Value> {
    list(&node["spec"]["taints"])
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

pub(super) fn strings(value: &Value) -> Vec<String> {
    list(value).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
