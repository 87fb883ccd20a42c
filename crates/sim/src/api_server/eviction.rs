//! May this pod be asked to leave?
//!
//! The server's side of the eviction API, written from Kubernetes' own `registry/core/pod/storage/eviction.go`
//! and not from what nodemolt believes of it, so that the two can disagree.

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::transport::Refusal;
use serde_json::{Value, json};

use super::delete::Options;
use super::{ApiServer, Call, Key, kind_of, refuse};
use crate::json::{at, items, members, remove, set, stamp, text, whole};
use crate::kinds;
use crate::selector;
use crate::trace::Fact;

/// More of them are waiting to be confirmed than a budget can hold.
const DISRUPTED_PODS_MAX: usize = 2000;
/// How long to wait for a budget whose controller lags.
const PROCESSED_SECONDS: i64 = 10;
const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// What was asked.
#[derive(Debug)]
pub(super) struct Asked {
    namespace: String,
    pod: String,
    options: Options,
    pub(super) dry_run: bool,
}

/// What a budget says to it.
enum Budgeted {
    /// It may go without taking a place, for as long as it is not ready.
    Unhealthy,
    May,
}

impl Asked {
    pub(super) fn read(call: &Call<'_>) -> Result<Self, Refusal> {
        let none = Value::Null;
        let body = call.request.body.as_ref().unwrap_or(&none);
        if text(body, &["metadata", "name"]) != call.name() {
            return Err(refuse::bad_request("name in URL does not match name in Eviction object"));
        }
        let namespace = text(body, &["metadata", "namespace"]);
        if !namespace.is_empty() && namespace != call.namespace() {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(refuse::bad_request(message));
        }
        let options = Options::read(at(body, &["deleteOptions"]));
        Ok(Self {
            namespace: call.namespace().to_owned(),
            pod: call.name().to_owned(),
            dry_run: options.dry_run,
            options,
        })
    }

    pub(super) fn fact(&self, answer: &Result<(), Refusal>) -> Fact {
        let code = match answer {
            Ok(()) => 201,
            Err(Refusal::Status { code, .. }) => *code,
            Err(Refusal::NoAnswer(_)) => 504,
        };
        Fact::Evicted {
            namespace: self.namespace.clone(),
            pod: self.pod.clone(),
            uid: self.options.uid.clone(),
            grace_seconds: self.options.grace_seconds,
            code,
        }
    }
}

impl ApiServer {
    pub(super) fn evict(&mut self, call: &Call<'_>, asked: &Asked) -> Result<(), Refusal> {
        self.namespace_open(call, call.name())?;
        let pod = self.current(call)?;
        let ended = ["Succeeded", "Failed"].contains(&text(&pod, &["status", "phase"]));
        let deleting = at(&pod, &["metadata", "deletionTimestamp"]).is_some();
        if ended || deleting || text(&pod, &["status", "phase"]) == "Pending" {
            // Nobody counts on it. Nothing comes between in here, so the revision need not be pinned.
            return self.mark_and_delete(call, asked);
        }
        let budgeted = self.ask_budget(call, asked, &pod)?;
        let gone = self.mark_and_delete(call, asked);
        match (gone, budgeted) {
            (Err(Refusal::Status { code: 409, .. }), Budgeted::Unhealthy)
                if asked.options.revision.is_none() =>
            {
                // The server pins the revision of a pod that is not ready, and cannot tell that conflict
                // from one about the UID.
                Err(lags())
            }
            (gone, Budgeted::May | Budgeted::Unhealthy) => gone,
        }
    }

    /// Of the pod's budgets; and takes its place there.
    fn ask_budget(
        &mut self,
        call: &Call<'_>,
        asked: &Asked,
        pod: &Value,
    ) -> Result<Budgeted, Refusal> {
        let budgets = self.budgets_of(pod);
        let key = match budgets.as_slice() {
            [] => return Ok(Budgeted::May),
            [one] => one.clone(),
            [_, _, ..] => {
                let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(refuse::status(500, "", message));
            }
        };
        let Some(budget) = self.get(kinds::PDB, &key.namespace, &key.name).cloned() else {
            return Ok(Budgeted::May);
        };
        let count = |field: &str| whole(&budget, &["status", field]).unwrap_or(0);
        if !selector::ready(pod) {
            let always = text(&budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
            let (healthy, desired) = (count("currentHealthy"), count("desiredHealthy"));
            if always || (healthy >= desired && desired > 0) {
                return Ok(Budgeted::Unhealthy);
            }
        }
        let generation = whole(&budget, &["metadata", "generation"]).unwrap_or(0);
        if count("observedGeneration") < generation {
            return Err(lags());
        }
        let nonsense = |why| Err(refuse::forbidden("poddisruptionbudget.policy", &key.name, why));
        let allowed = count("disruptionsAllowed");
        if allowed < 0 {
            return nonsense("pdb disruptions allowed is negative");
        }
        if members(&budget, &["status", "disruptedPods"]).count() > DISRUPTED_PODS_MAX {
            return nonsense(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            );
        }
        if allowed == 0 {
            let refusal = refuse::status(429, "TooManyRequests", VIOLATES);
            return Err(refuse::with(refusal, "DisruptionBudget", 0));
        }
        if std::mem::take(&mut self.gives_up) {
            // After twenty tries, as the server has it.
            let message = format!(
                "Timeout: couldn't update PodDisruptionBudget \"{}\" due to conflicts",
                key.name
            );
            let retry_after = Some(SignedDuration::from_secs(PROCESSED_SECONDS));
            let (reason, causes) = ("Timeout".to_owned(), Vec::new());
            return Err(Refusal::Status { code: 504, reason, message, causes, retry_after });
        }
        if !asked.dry_run {
            let mut less = (*budget).clone();
            set(&mut less, &["status", "disruptionsAllowed"], json!(allowed - 1));
            if allowed == 1 {
                set_disruption_allowed(&mut less, false, call.now);
            }
            set(&mut less, &["status", "disruptedPods", &asked.pod], stamp(call.now));
            if let Some(kind) = kind_of(kinds::PDB) {
                self.put(call.by, kind, less, call.now);
            }
        }
        Ok(Budgeted::May)
    }

    /// Says why it goes, then lets it go. The preconditions are looked at here, after the budget was asked:
    /// an eviction of another pod of that name costs the budget a place until its controller looks again.
    fn mark_and_delete(&mut self, call: &Call<'_>, asked: &Asked) -> Result<(), Refusal> {
        let pod = self.current(call)?;
        asked.options.check(call, &pod)?;
        if asked.dry_run {
            return self.delete_with(call, &asked.options).map(drop);
        }
        if selector::condition(&pod, "DisruptionTarget") != "True" {
            let mut told = (*pod).clone();
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastTransitionTime": stamp(call.now),
            });
            let others = items(&pod, &["status", "conditions"]).iter();
            let mut conditions: Vec<Value> =
                others.filter(|it| text(it, &["type"]) != "DisruptionTarget").cloned().collect();
            conditions.push(condition);
            set(&mut told, &["status", "conditions"], Value::Array(conditions));
            self.put(call.by, call.kind, told, call.now);
        }
        // What was asked was looked at; the revision is another by now.
        let options = Options { revision: None, ..asked.options.clone() };
        self.delete_with(call, &options).map(drop)
    }

    /// The budgets that select it.
    fn budgets_of(&self, pod: &Value) -> Vec<Key> {
        let namespace = text(pod, &["metadata", "namespace"]);
        self.all_in(kinds::PDB, namespace)
            .filter(|(_, it)| selector::selects(at(it, &["spec", "selector"]), pod))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

fn lags() -> Refusal {
    let refusal = refuse::status(429, "TooManyRequests", VIOLATES);
    refuse::with(refusal, "DisruptionBudget", PROCESSED_SECONDS)
}

/// The condition that people read.
pub(crate) fn set_disruption_allowed(budget: &mut Value, allowed: bool, now: Timestamp) {
    let (status, reason) =
        if allowed { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let before = items(budget, &["status", "conditions"])
        .iter()
        .find(|it| text(it, &["type"]) == "DisruptionAllowed")
        .cloned();
    let since = match &before {
        Some(before) if text(before, &["status"]) == status => {
            at(before, &["lastTransitionTime"]).cloned().unwrap_or_else(|| stamp(now))
        }
        Some(_) | None => stamp(now),
    };
    let condition = json!({
        "type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
        "lastTransitionTime": since,
        "observedGeneration": whole(budget, &["status", "observedGeneration"]).unwrap_or(0),
    });
    remove(budget, &["status", "conditions"]);
    set(budget, &["status", "conditions"], json!([condition]));
}
