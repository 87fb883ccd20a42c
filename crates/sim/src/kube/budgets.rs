//! How many pods may leave now?
//!
//! The controller of `PodDisruptionBudgets`, after Kubernetes' own `controller/disruption`: what it counts is
//! a moment old, and an eviction that was let through and not seen yet stands in `disruptedPods`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::pod_life::set_condition;
use super::{Due, Kube, KubeEvent, after};
use crate::api_server::{Key, set_disruption_allowed};
use crate::json::{at, items, members, remove, set, stamp, text, whole};
use crate::kinds;
use crate::selector::ready;
use crate::trace::Actor;

/// A pod that was let go and has not gone by then stays, and counts again.
const DISRUPTED_FOR: SignedDuration = SignedDuration::from_mins(2);

#[derive(Debug, Default)]
pub(super) struct Budgets {
    dirty: BTreeSet<Key>,
    pending: bool,
    /// When a pod that was let go counts again.
    later: BTreeSet<(Timestamp, Key)>,
}

impl Budgets {
    pub(super) fn look_at(&mut self, key: Key) {
        self.dirty.insert(key);
    }

    pub(super) fn wakes(&mut self) -> bool {
        let wakes = !self.dirty.is_empty() && !self.pending;
        self.pending |= wakes;
        wakes
    }
}

/// What there should be.
struct Wished {
    expected: i64,
    desired: i64,
}

impl Kube {
    pub(super) fn on_budgets(&mut self, now: Timestamp) -> Due {
        self.budgets.pending = false;
        let mut due = Vec::new();
        let mut keys = std::mem::take(&mut self.budgets.dirty);
        while self.budgets.later.first().is_some_and(|(at, _)| *at <= now) {
            keys.extend(self.budgets.later.pop_first().map(|(_, key)| key));
        }
        for key in keys {
            if let Some(again_at) = self.count(&key, now)
                && self.budgets.later.insert((again_at, key))
            {
                due.push((again_at, KubeEvent::Budgets));
            }
        }
        due
    }

    /// Counts one budget again; the time at which the answer changes by itself, if it does.
    fn count(&mut self, key: &Key, now: Timestamp) -> Option<Timestamp> {
        let budget = self.server.get(kinds::PDB, &key.namespace, &key.name)?.clone();
        let selector = at(&budget, &["spec", "selector"]);
        let pods: Vec<_> = self.server.pods_selected(&key.namespace, selector).cloned().collect();
        let mut disrupted: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for (name, since) in members(&budget, &["status", "disruptedPods"]) {
            let there = pods.iter().find(|it| text(it, &["metadata", "name"]) == name);
            let going = |it: &&Rc<Value>| at(it, &["metadata", "deletionTimestamp"]).is_some();
            let since: Option<Timestamp> = since.as_str().and_then(|it| it.parse().ok());
            if let (Some(pod), Some(since)) = (there, since)
                && !going(&pod)
                && after(since, DISRUPTED_FOR) > now
            {
                disrupted.insert(name, since);
            }
        }
        let healthy = pods
            .iter()
            .filter(|it| at(it, &["metadata", "deletionTimestamp"]).is_none())
            .filter(|it| !disrupted.contains_key(text(it, &["metadata", "name"])))
            .filter(|it| ready(it))
            .count();
        let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
        let wished = self.wished(&budget, &pods);
        let held: Map<String, Value> =
            disrupted.iter().map(|(name, since)| ((*name).to_owned(), stamp(*since))).collect();
        let generation = whole(&budget, &["metadata", "generation"]).unwrap_or(1);
        self.server.alter(Actor::Controllers, kinds::PDB, key, now, |it| {
            // Who does not know how many there should be lets nobody go.
            let Some(Wished { expected, desired }) = wished else {
                set(it, &["status", "disruptionsAllowed"], json!(0));
                set_condition(it, "DisruptionAllowed", "False", "SyncFailed", now);
                return;
            };
            let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
            set(it, &["status", "currentHealthy"], json!(healthy));
            set(it, &["status", "desiredHealthy"], json!(desired));
            set(it, &["status", "expectedPods"], json!(expected));
            set(it, &["status", "disruptionsAllowed"], json!(allowed));
            set(it, &["status", "observedGeneration"], json!(generation));
            if held.is_empty() {
                remove(it, &["status", "disruptedPods"]);
            } else {
                set(it, &["status", "disruptedPods"], Value::Object(held));
            }
            set_disruption_allowed(it, allowed > 0, now);
        });
        disrupted.values().map(|since| after(*since, DISRUPTED_FOR)).min()
    }

    fn wished(&self, budget: &Value, pods: &[Rc<Value>]) -> Option<Wished> {
        let there = i64::try_from(pods.len()).unwrap_or(i64::MAX);
        if let Some(most) = at(budget, &["spec", "maxUnavailable"]) {
            let expected = self.wanted_by_controllers(pods)?;
            let most = scaled(most, expected)?;
            return Some(Wished { expected, desired: (expected - most).max(0) });
        }
        let Some(least) = at(budget, &["spec", "minAvailable"]) else {
            return Some(Wished { expected: there, desired: 0 });
        };
        if least.is_string() {
            let expected = self.wanted_by_controllers(pods)?;
            return Some(Wished { expected, desired: scaled(least, expected)? });
        }
        Some(Wished { expected: there, desired: least.as_i64()? })
    }

    /// How many pods the controllers of these want together. `None`: one of them does not say.
    fn wanted_by_controllers(&self, pods: &[Rc<Value>]) -> Option<i64> {
        let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
        for pod in pods {
            let owners = items(pod, &["metadata", "ownerReferences"]);
            let mut controllers =
                owners.iter().filter(|it| at(it, &["controller"]) == Some(&Value::Bool(true)));
            // A pod without any counts for nothing here.
            let Some(controller) = controllers.next() else { continue };
            let (resource, owner) = self.server.with_uid(text(controller, &["uid"]))?;
            let above = items(owner, &["metadata", "ownerReferences"])
                .iter()
                .find(|it| text(it, &["kind"]) == "Deployment")
                .and_then(|it| self.server.with_uid(text(it, &["uid"])));
            let owner = match above {
                Some((_, deployment)) => deployment,
                None if [kinds::REPLICA_SET, kinds::STATEFUL_SET].contains(&resource) => owner,
                None => return None,
            };
            let replicas = whole(owner, &["spec", "replicas"]).unwrap_or(1);
            wanted.insert(text(owner, &["metadata", "uid"]).to_owned(), replicas);
        }
        Some(wanted.values().sum())
    }
}

/// A number, or a percentage of the whole, rounded up: both bounds are.
fn scaled(value: &Value, of: i64) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let percent: i64 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    Some(percent.checked_mul(of)?.checked_add(99)? / 100)
}
