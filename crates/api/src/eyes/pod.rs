//! What does a pod say, whole?
//!
//! What of its demands cannot be read is no reason not to see the pod: it is there, on its node. It counts
//! as one that nobody can place.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Pod as WirePod, PodSpec, PodStatus};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use nodemolt_core::drain::{self, Owner, Pdb, PodId, PodPhase, Tier, UnhealthyPods};
use nodemolt_core::seen::DISRUPTED_TAINT;
use nodemolt_fit::pod::Demand;
use nodemolt_fit::taint::{Effect, Taint};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Visitor};
use serde_json::Value;

use super::read::{Broken, complaints, protected};
use crate::into_core::{Reader, read_selector};
use crate::listing::around::Around;
use crate::listing::device;
use crate::listing::owners::controller;
use crate::listing::pod::{Asked, demand, doubted};
use crate::listing::reader;
use crate::listing::world::{put_up_with_all, stays_behind};
use crate::listing::{name, namespace};
use crate::meta;

const DAEMON_SET: &str = "DaemonSet";
const SYSTEM_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];
/// The API server's own default.
const GRACE_SECONDS: i64 = 30;

/// Fields of a pod that our types do not have, and that may decide where it goes.
pub(super) fn unknown_fields(object: &Value) -> Vec<String> {
    static KNOWN: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let mut known = Vec::new();
        // It fails, and has named the fields before.
        let _ = PodSpec::deserialize(Fields(&mut known));
        known.sort_unstable();
        known
    });
    let written = object["spec"].as_object().into_iter().flatten();
    let unknown = written
        .filter(|(key, value)| !value.is_null() && KNOWN.binary_search(&key.as_str()).is_err());
    let mut unknown: Vec<String> = unknown.map(|(key, _)| key.clone()).collect();
    let given = device::GIVEN.split('.').try_fold(object, |at, key| at.get(key));
    unknown.extend(given.filter(|it| !it.is_null()).map(|_| device::GIVEN.to_owned()));
    unknown
}

/// Asks a type for the names of its fields.
struct Fields<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("this is no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.extend(fields);
        Err(Self::Error::custom("only its fields were asked for"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// What it demands of a node.
pub(super) fn demand_of(around: &dyn Around, wire: &WirePod, unknown: &[String]) -> Demand {
    let empty = (BTreeMap::new(), PodSpec::default());
    let mut found = reader::Reader::default();
    let asked = Asked {
        namespace: namespace(&wire.metadata),
        name: name(&wire.metadata),
        labels: wire.metadata.labels.as_ref().unwrap_or(&empty.0),
        spec: wire.spec.as_ref().unwrap_or(&empty.1),
        status: wire.status.as_ref(),
        field: "spec",
        admitted: true,
        unknown,
        nameless: false,
        own_claims: &[],
    };
    let demand = demand(around, &asked, &mut found);
    doubted(demand, found)
}

/// What every node gets that it tolerates and selects.
pub(super) fn daemon(around: &dyn Around, wire: &DaemonSet, unknown: &[String]) -> Demand {
    let empty = (BTreeMap::new(), PodSpec::default());
    let template = wire.spec.as_ref().map(|it| &it.template);
    let spec = template.and_then(|it| it.spec.as_ref());
    let labels = template.and_then(|it| it.metadata.as_ref()).and_then(|it| it.labels.as_ref());
    let mut found = reader::Reader::default();
    let asked = Asked {
        namespace: namespace(&wire.metadata),
        name: name(&wire.metadata),
        labels: labels.unwrap_or(&empty.0),
        spec: spec.unwrap_or(&empty.1),
        status: None,
        field: "spec.template.spec",
        admitted: false,
        unknown,
        nameless: true,
        own_claims: &[],
    };
    let mut demand = demand(around, &asked, &mut found);
    put_up_with_all(&mut demand, spec);
    doubted(demand, found)
}

/// Whether and how it leaves.
pub(super) fn drain_of(wire: &WirePod, demand: &Demand, namespace_terminating: bool) -> drain::Pod {
    let meta = &wire.metadata;
    let spec = wire.spec.as_ref();
    let status = wire.status.as_ref();
    let none = BTreeMap::new();
    let class = spec.and_then(|it| it.priority_class_name.as_deref()).unwrap_or_default();
    let grace = spec.and_then(|it| it.termination_grace_period_seconds).unwrap_or(GRACE_SECONDS);
    let cordon = Taint::new(DISRUPTED_TAINT, "", Effect::NoSchedule);
    let started_at = status.and_then(|it| it.start_time.as_ref()).map(|it| it.0);
    drain::Pod {
        id: PodId {
            namespace: namespace(meta).to_owned(),
            name: name(meta).to_owned(),
            uid: meta.uid.clone().unwrap_or_default(),
        },
        labels: meta.labels.clone().unwrap_or_default(),
        phase: phase(status),
        ready: ready(status),
        owner: owner(wire),
        tier: if SYSTEM_CLASSES.contains(&class) { Tier::System } else { Tier::Ordinary },
        tolerates_cordon: cordon.tolerated_by(&demand.tolerations),
        protection: protected(meta.annotations.as_ref().unwrap_or(&none), started_at),
        grace: SignedDuration::from_secs(grace.max(0)),
        ends_at: meta.deletion_timestamp.as_ref().map(|it| it.0),
        namespace_terminating,
    }
}

fn phase(status: Option<&PodStatus>) -> PodPhase {
    match status.and_then(|it| it.phase.as_deref()) {
        Some("Running") => PodPhase::Running,
        Some("Succeeded" | "Failed") => PodPhase::Finished,
        Some("Pending") | None => PodPhase::Pending,
        Some(_) => PodPhase::Unknown,
    }
}

fn ready(status: Option<&PodStatus>) -> bool {
    let conditions = status.into_iter().flat_map(|it| it.conditions.iter().flatten());
    conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
}

fn owner(wire: &WirePod) -> Owner {
    match controller(&wire.metadata) {
        Some(it) if it.kind == DAEMON_SET => Owner::DaemonSet,
        _ if stays_behind(wire) => Owner::Mirror,
        Some(it) => Owner::Workload { kind: it.kind.clone(), name: it.name.clone() },
        None => Owner::Nobody,
    }
}

/// It goes with its node.
pub(super) fn tied(wire: &WirePod) -> bool {
    stays_behind(wire)
}

pub(super) fn owner_uid(wire: &WirePod) -> Option<String> {
    controller(&wire.metadata).map(|it| it.uid.clone())
}

pub(super) fn created_at(wire: &WirePod) -> Timestamp {
    wire.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |it| it.0)
}

pub(super) fn pdb(wire: &PodDisruptionBudget) -> Result<Pdb, Broken> {
    let mut reader = Reader::new();
    let spec = wire.spec.as_ref();
    let selector = spec.and_then(|it| it.selector.as_ref()).map(|it| {
        let expressions = it.match_expressions.iter().flatten();
        let wire = meta::LabelSelector {
            match_labels: it.match_labels.clone().unwrap_or_default(),
            match_expressions: expressions
                .map(|it| meta::LabelSelectorRequirement {
                    key: it.key.clone(),
                    operator: it.operator.clone(),
                    values: it.values.clone().unwrap_or_default(),
                })
                .collect(),
        };
        read_selector(&mut reader, "spec.selector", &wire)
    });
    let policy = spec.and_then(|it| it.unhealthy_pod_eviction_policy.as_deref());
    let status = wire.status.clone().unwrap_or_default();
    let disrupted = status.disrupted_pods.unwrap_or_default();
    let read = Pdb {
        namespace: namespace(&wire.metadata).to_owned(),
        name: name(&wire.metadata).to_owned(),
        selector,
        generation: wire.metadata.generation.unwrap_or_default(),
        observed_generation: status.observed_generation.unwrap_or_default(),
        disruptions_allowed: status.disruptions_allowed,
        current_healthy: status.current_healthy,
        desired_healthy: status.desired_healthy,
        unhealthy_pods: match policy {
            Some("AlwaysAllow") => UnhealthyPods::AlwaysAllow,
            Some(_) | None => UnhealthyPods::IfHealthyBudget,
        },
        disrupted_pods: disrupted.into_iter().map(|(pod, at)| (pod, at.0)).collect(),
    };
    reader.finish(Some(read)).map_err(complaints)
}
