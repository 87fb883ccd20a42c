//! Who is on a node, how is a pod asked to leave, and what is the answer?

use nodemolt_core::drain::{self, PodId};
use nodemolt_engine::port::{ClusterError, EvictAnswer};
use serde_json::json;

use super::Adapter;
use super::call::{error, of_another, unreadable};
use crate::resources::POD;
use crate::transport::{Refusal, Request, Subresource, Transport, Verb};

/// Why the eviction API says 429; the same code without it comes from a server that has too much to do.
const BUDGET_CAUSE: &str = "DisruptionBudget";
const TERMINATING_CAUSE: &str = "NamespaceTerminating";
const SEVERAL: &str = "more than one PodDisruptionBudget";

impl<T: Transport> Adapter<T> {
    /// Without a `resourceVersion` the answer is as new as the store itself.
    pub(super) async fn list_pods(&self, node: &str) -> Result<Vec<drain::Pod>, ClusterError> {
        let options = json!({"fieldSelector": format!("spec.nodeName={node}")});
        let answer = self.call(&Request::of(Verb::List, POD).body(options)).await?;
        let (items, _) = answer.whole_list().map_err(|it| error("the list of pods", it))?;
        let eyes = self.eyes.borrow();
        let read = |it: &std::rc::Rc<serde_json::Value>| {
            eyes.read_pod_now(it).map_err(|why| unreadable("Pod", it, &why))
        };
        items.iter().map(read).collect()
    }

    pub(super) async fn ask_to_leave(&self, pod: &PodId) -> Result<EvictAnswer, ClusterError> {
        // Without a grace period of ours the pod's own counts.
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        });
        let request = of(Verb::Create, pod).body(eviction);
        let request = Request { subresource: Some(Subresource::Eviction), ..request };
        match self.send(&request).await {
            Ok(_) => Ok(EvictAnswer::Accepted),
            Err(refusal) => answer(pod, refusal),
        }
    }

    pub(super) async fn end_pod(
        &self,
        pod: &PodId,
        grace_seconds: i64,
    ) -> Result<(), ClusterError> {
        // None would take it from the API server while it still runs.
        let options = json!({"gracePeriodSeconds": grace_seconds.max(1)});
        self.delete(of(Verb::Delete, pod), &pod.uid, options).await
    }
}

fn of(verb: Verb, pod: &PodId) -> Request {
    Request::of(verb, POD).within(&pod.namespace).named(&pod.name)
}

fn answer(pod: &PodId, refusal: Refusal) -> Result<EvictAnswer, ClusterError> {
    let Refusal::Status { code, message, causes, retry_after, .. } = &refusal else {
        return Err(error(&format!("Pod {pod}"), refusal));
    };
    let message = message.clone();
    let because = |cause: &str| causes.iter().any(|it| it == cause);
    match code {
        404 => Ok(EvictAnswer::Gone),
        409 if of_another(&message) => Ok(EvictAnswer::Another),
        429 if because(BUDGET_CAUSE) || message.contains("disruption budget") => {
            Ok(EvictAnswer::Held { retry_after: *retry_after, message })
        }
        500 if message.contains(SEVERAL) => Ok(EvictAnswer::SeveralBudgets { message }),
        403 => {
            let namespace_terminating = because(TERMINATING_CAUSE);
            Ok(EvictAnswer::Forbidden { namespace_terminating, message })
        }
        _ => Err(error(&format!("Pod {pod}"), refusal)),
    }
}
