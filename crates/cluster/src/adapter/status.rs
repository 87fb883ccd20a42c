//! What do people read?
//!
//! Nothing is decided by it. Against the generation that it was found out for; what stands there already
//! is not written again.

use nodemolt_core::budget::{self, Unit};
use nodemolt_core::seen::{ClassKey, Subject};
use nodemolt_engine::port::{ClassStatus, ClusterError, Condition, Status};
use serde_json::{Map, Value, json};

use super::Adapter;
use super::call::{revision, sentence, word};
use super::claims::requirement;
use crate::resources::{DISRUPTION_BUDGET, KARPENTER_CLASS, OWN_CLASS, POLICY, POOL};
use crate::transport::{Resource, Subresource, Transport};

/// The schemas' limits.
const LISTED_MAX: usize = 1000;
const NAMED_MAX: usize = 100;

impl<T: Transport> Adapter<T> {
    pub(super) async fn tell(&self, status: &Status) -> Result<(), ClusterError> {
        match status {
            Status::Class(class) => {
                let known = (class.uid.as_str(), class.generation);
                let (resource, wanted) = (of_group(&class.key), of_class(class));
                self.tell_of(resource, &class.key.name, known, &class.conditions, wanted).await
            }
            Status::Pool { name, uid, generation, nodes, resources, conditions } => {
                let wire = |(name, it): (&String, &_)| (name.clone(), Value::from(format!("{it}")));
                let resources: Map<String, Value> = resources.iter().map(wire).collect();
                let wanted = fields(json!({"nodes": nodes, "resources": resources}));
                self.tell_of(POOL, name, (uid, *generation), conditions, wanted).await
            }
            Status::DisruptionBudget { name, uid, generation, room, conditions } => {
                let known = (uid.as_str(), *generation);
                self.tell_of(DISRUPTION_BUDGET, name, known, conditions, of_room(room)).await
            }
            Status::Policy { name, uid, generation, classes, conditions } => {
                let wanted = fields(json!({"classes": classes}));
                self.tell_of(POLICY, name, (uid, *generation), conditions, wanted).await
            }
            Status::Unreadable { subject, uid, generation, conditions } => {
                let (resource, name) = match subject {
                    Subject::Class(key) => (of_group(key), &key.name),
                    Subject::Pool(name) => (POOL, name),
                    Subject::DisruptionBudget(name) => (DISRUPTION_BUDGET, name),
                    Subject::Policy(name) => (POLICY, name),
                };
                self.tell_of(resource, name, (uid, *generation), conditions, Map::new()).await
            }
        }
    }

    async fn tell_of(
        &self,
        resource: Resource,
        name: &str,
        (uid, generation): (&str, i64),
        told: &[Condition],
        wanted: Map<String, Value>,
    ) -> Result<(), ClusterError> {
        let found = self.get_same(resource, name, uid).await?;
        if found["metadata"]["generation"].as_i64() != Some(generation) {
            return Err(ClusterError::Conflict(format!("{} {name}", resource.kind)));
        }
        let mut wanted = wanted;
        if !told.is_empty() {
            let all = conditions(&found["status"]["conditions"], told, Some(generation));
            wanted.insert("conditions".to_owned(), all);
        }
        // Karpenter's pools have no place for it but their conditions.
        if resource != POOL {
            wanted.insert("observedGeneration".to_owned(), generation.into());
        }
        wanted.retain(|key, value| found["status"][key] != *value);
        if wanted.is_empty() {
            return Ok(());
        }
        let patch = json!({"status": wanted});
        let part = Some(Subresource::Status);
        self.patch(resource, part, name, &revision(&found), patch).await.map(drop)
    }
}

fn of_group(key: &ClassKey) -> Resource {
    if key.group == OWN_CLASS.group { OWN_CLASS } else { KARPENTER_CLASS }
}

fn of_class(class: &ClassStatus) -> Map<String, Value> {
    let images = class.images.as_ref().map(|all| {
        listed(all, |(id, name, requirements)| {
            let requirements: Vec<Value> = requirements.iter().map(requirement).collect();
            json!({"id": id.to_string(), "name": name, "requirements": requirements})
        })
    });
    let subnets = class.subnets.as_ref().map(|all| {
        listed(all, |(id, zone, zone_id)| {
            let mut wire = json!({"id": id, "zone": zone});
            if let Some(zone_id) = zone_id {
                wire["zoneID"] = zone_id.clone().into();
            }
            wire
        })
    });
    let groups = class.security_groups.as_ref().map(|all| {
        listed(all, |(id, name)| {
            let mut wire = json!({"id": id});
            if let Some(name) = name {
                wire["name"] = name.clone().into();
            }
            wire
        })
    });
    // What is not known is not touched.
    [("amis", images), ("subnets", subnets), ("securityGroups", groups)]
        .into_iter()
        .filter_map(|(field, all)| Some((field.to_owned(), all?)))
        .collect()
}

fn listed<T>(all: &[T], wire: impl FnMut(&T) -> Value) -> Value {
    all.iter().take(LISTED_MAX).map(wire).collect::<Vec<Value>>().into()
}

fn of_room(room: &budget::Room) -> Map<String, Value> {
    let names: Vec<&String> = room.used.keys().take(NAMED_MAX).collect();
    let mut status = Map::new();
    // The fields count nodes.
    if room.unit == Unit::Nodes {
        let used = room.used.len() as u64;
        status = fields(json!({
            "nodes": room.total,
            "currentAvailable": room.total.saturating_sub(used),
            "desiredAvailable": room.total.saturating_sub(room.allowed),
            "disruptionsAllowed": room.allowed.saturating_sub(used),
        }));
    }
    let names = if names.is_empty() { Value::Null } else { json!(names) };
    status.insert("unavailableNodes".to_owned(), names);
    status
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

/// What is told, in place of what stood there of the same types; others' stay. The time is that of the
/// last change of a status.
pub(super) fn conditions(there: &Value, told: &[Condition], generation: Option<i64>) -> Value {
    let mut all: Vec<Value> = there.as_array().cloned().unwrap_or_default();
    for condition in told {
        let status = match condition.status {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let at = all.iter().position(|it| it["type"] == *condition.kind);
        let same = at.map(|it| &all[it]).filter(|it| it["status"] == status);
        let since = same.map(|it| it["lastTransitionTime"].clone()).filter(Value::is_string);
        let mut wire = json!({
            "type": condition.kind,
            "status": status,
            "reason": word(&condition.reason),
            "message": sentence(&condition.message),
            // Kubernetes' `Time` has seconds only.
            "lastTransitionTime": since.unwrap_or_else(|| format!("{:.0}", condition.since).into()),
        });
        if let Some(generation) = generation {
            wire["observedGeneration"] = generation.into();
        }
        match at {
            Some(at) => all[at] = wire,
            None => all.push(wire),
        }
    }
    // `Ready` first.
    all.sort_by_key(|it| it["type"] != "Ready");
    all.into()
}
