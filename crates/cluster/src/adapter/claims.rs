//! What stands on a claim?

use std::collections::BTreeMap;

use jiff::SignedDuration;
use nodemolt_api::attempt::{self, ATTEMPT, SUCCESSOR_OF};
use nodemolt_api::into_node::{CLASS_STAMP, TEMPLATE_STAMP, stamp_text};
use nodemolt_core::seen::{Attempt, FINALIZER, Revision, Stage};
use nodemolt_engine::port::{ClaimState, ClusterError, Condition, NewClaim, Object};
use nodemolt_fit::capacity::Amounts;
use nodemolt_fit::taint::Taint;
use nodemolt_fit::{Written, label};
use serde_json::{Map, Value, json};

use super::Adapter;
use super::call::{object, revision};
use super::nodes::{strings, wire_taint};
use super::status::conditions;
use crate::resources::CLAIM;
use crate::transport::{Request, Subresource, Transport, Verb};

impl<T: Transport> Adapter<T> {
    pub(super) async fn make_claim(&self, new: &NewClaim) -> Result<String, ClusterError> {
        let request = Request::of(Verb::Create, CLAIM).body(claim(new));
        let made = self.call(&request).await?.body;
        match made["metadata"]["uid"].as_str() {
            Some(uid) => Ok(uid.to_owned()),
            None => Err(ClusterError::Unreadable {
                object: format!("NodeClaim {}", new.name),
                message: "it was made without a UID".to_owned(),
            }),
        }
    }

    pub(super) async fn note_attempt(
        &self,
        claim: &Object,
        attempt: &Attempt,
    ) -> Result<Revision, ClusterError> {
        // That revision is of that UID: no other object ever had it.
        let mut patch = json!({"metadata": {"annotations": {ATTEMPT: attempt::text(attempt)}}});
        if !self.seen_held(claim) {
            let found = self.get_same(CLAIM, &claim.name, &claim.uid).await?;
            let mut finalizers = strings(&found["metadata"]["finalizers"]);
            if !finalizers.iter().any(|it| it == FINALIZER) {
                finalizers.push(FINALIZER.to_owned());
                patch["metadata"]["finalizers"] = finalizers.into();
            }
        }
        let written = self.patch(CLAIM, None, &claim.name, &claim.revision, patch).await?;
        Ok(revision(&written))
    }

    /// Whether ours was on that very revision.
    fn seen_held(&self, claim: &Object) -> bool {
        let eyes = self.eyes.borrow();
        let seen = eyes.view().claims.get(&claim.name);
        seen.is_some_and(|it| it.uid == claim.uid && it.revision == claim.revision && it.held)
    }

    /// Status and metadata are two writes. Both are safe to repeat, and what stands there already is not
    /// written.
    pub(super) async fn note_claim(
        &self,
        claim: &Object,
        state: &ClaimState,
    ) -> Result<Revision, ClusterError> {
        let found = self.get_same(CLAIM, &claim.name, &claim.uid).await?;
        let mut at = revision(&found);
        if at != claim.revision {
            return Err(ClusterError::Conflict(format!("NodeClaim {}", claim.name)));
        }
        let status = changed(&found["status"], status(&found["status"], state));
        if !status.is_empty() {
            let patch = json!({"status": status});
            let part = Some(Subresource::Status);
            at = revision(&*self.patch(CLAIM, part, &claim.name, &at, patch).await?);
        }
        let mut annotations = Map::new();
        for (key, stamp) in
            [(CLASS_STAMP, &state.class_stamp), (TEMPLATE_STAMP, &state.template_stamp)]
        {
            if let Some(stamp) = stamp {
                annotations.insert(key.to_owned(), stamp_text(stamp).into());
            }
        }
        let mut labels = Map::new();
        for (key, value) in &state.labels {
            labels.insert(key.clone(), value.clone().into());
        }
        let annotations = changed(&found["metadata"]["annotations"], annotations);
        let labels = changed(&found["metadata"]["labels"], labels);
        if !annotations.is_empty() || !labels.is_empty() {
            let patch = json!({"metadata": {"annotations": annotations, "labels": labels}});
            at = revision(&*self.patch(CLAIM, None, &claim.name, &at, patch).await?);
        }
        Ok(at)
    }

    pub(super) async fn end_claim(&self, name: &str, uid: &str) -> Result<(), ClusterError> {
        self.delete(Request::of(Verb::Delete, CLAIM).named(name), uid, json!({})).await
    }
}

/// Of what is wanted, what does not stand there.
fn changed(there: &Value, wanted: Map<String, Value>) -> Map<String, Value> {
    wanted.into_iter().filter(|(key, value)| there[key] != *value).collect()
}

fn status(there: &Value, state: &ClaimState) -> Map<String, Value> {
    let mut wanted = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            wanted.insert(key.to_owned(), value);
        }
    };
    set("nodeName", state.node.clone().map(Value::from));
    set("imageID", state.image.as_ref().map(|it| it.to_string().into()));
    let zone = state.zone.as_deref().unwrap_or_default();
    let provider = state.machine.as_ref().map(|it| format!("aws:///{zone}/{}", it.0));
    // Without its zone it is known by its end, and what stands there says more.
    let known = there["providerID"].as_str().filter(|_| zone.is_empty());
    let provider = match (provider, known) {
        (Some(new), Some(old)) if old.rsplit('/').next() == new.rsplit('/').next() => None,
        (provider, _) => provider,
    };
    set("providerID", provider.map(Value::from));
    set("capacity", amounts(&state.capacity));
    set("allocatable", amounts(&state.allocatable));
    let stages = state.stages.iter().map(|(stage, it)| {
        let kind = match stage {
            Stage::Launched => "Launched",
            Stage::Registered => "Registered",
            Stage::Initialized => "Initialized",
        };
        Condition { kind: kind.to_owned(), ..it.clone() }
    });
    let told: Vec<Condition> = stages.chain(state.conditions.iter().cloned()).collect();
    if !told.is_empty() {
        set("conditions", Some(conditions(&there["conditions"], &told, None)));
    }
    wanted
}

fn amounts(amounts: &Amounts) -> Option<Value> {
    let wire = |(name, amount): (&String, &_)| (name.clone(), Value::from(format!("{amount}")));
    (!amounts.is_empty()).then(|| amounts.iter().map(wire).collect::<Map<_, _>>().into())
}

fn claim(new: &NewClaim) -> Value {
    let mut labels = new.labels.clone();
    labels.insert(label::NODEPOOL.to_owned(), new.pool.clone());
    let mut annotations: BTreeMap<String, String> = new.annotations.clone();
    annotations.insert(CLASS_STAMP.to_owned(), stamp_text(&new.class_stamp));
    annotations.insert(TEMPLATE_STAMP.to_owned(), stamp_text(&new.template_stamp));
    if let Some(replacement) = &new.successor_of {
        annotations.insert(SUCCESSOR_OF.to_owned(), replacement.clone());
    }
    let mut claim = object(CLAIM, &new.name);
    claim["metadata"]["labels"] = json!(labels);
    claim["metadata"]["annotations"] = json!(annotations);
    claim["metadata"]["finalizers"] = json!([FINALIZER]);
    claim["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "name": new.pool,
        "uid": new.pool_uid,
        "blockOwnerDeletion": true,
    }]);
    let requirements: Vec<Value> = new.requirements.iter().map(requirement).collect();
    let mut spec = json!({
        "nodeClassRef": {
            "group": new.class.group,
            "kind": "EC2NodeClass",
            "name": new.class.name,
        },
        "requirements": requirements,
        "expireAfter": new.expire_after.map_or("Never".to_owned(), length),
    });
    let taints = |all: &[Taint]| -> Value { all.iter().map(wire_taint).collect() };
    if !new.taints.is_empty() {
        spec["taints"] = taints(&new.taints);
    }
    if !new.startup_taints.is_empty() {
        spec["startupTaints"] = taints(&new.startup_taints);
    }
    if let Some(requests) = amounts(&new.requests) {
        spec["resources"]["requests"] = requests;
    }
    if let Some(period) = new.termination_grace_period {
        spec["terminationGracePeriod"] = length(period).into();
    }
    claim["spec"] = spec;
    claim
}

pub(super) fn requirement(written: &Written) -> Value {
    let Written { key, operator, values, min_values } = written;
    let mut wire = json!({"key": key, "operator": operator.name()});
    if !values.is_empty() {
        wire["values"] = values.clone().into();
    }
    if let Some(least) = min_values {
        wire["minValues"] = (*least).into();
    }
    wire
}

/// In seconds, which the schema takes and everybody reads the same.
fn length(it: SignedDuration) -> String {
    format!("{}s", it.as_secs().max(0))
}
