//! How does a world come to be in a cluster, and what does the scheduler say to a pod in it?
//!
//! Every world has the cluster for itself and is removed after it: nodes of another world would change what a spread
//! counts. The scheduler looks through watches and is late by a moment. So nothing is asked before the canary is
//! bound, which was made after all others; see `worlds::canary`.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use futures_util::{
    StreamExt as _, TryStreamExt as _,
    future::{ready, try_join_all},
    stream::select,
};
use http::{Method, Request};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::{
    Api, Client, Resource,
    api::{WatchEvent, WatchParams},
};
use nodemolt_fit::{node::Node, pod};
use serde_json::{Value, json};

use crate::{
    wire,
    worlds::{CANARY, Case, NAMESPACES},
};

const NODES: &str = "/api/v1/nodes";
const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
/// Where the scheduler says which node it chose before the volume is there.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The scheduler answers within milliseconds, if it gets to run.
const ANSWERED_WITHIN: Duration = Duration::from_mins(1);
/// Longer than anybody waits for these pods to end: they stay as long as the world.
const TERMINATING_SECONDS: u32 = 3_600;

pub(crate) struct Cluster {
    client: Client,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Found { node: String },
    Refused { because: String },
}

impl Cluster {
    pub(crate) async fn new(client: Client) -> Self {
        let cluster = Self { client };
        for (path, object) in wire::lasting(&NAMESPACES) {
            cluster.create(&path, &object).await.unwrap();
        }
        cluster
    }

    /// Makes the world, and returns when the scheduler has seen it.
    pub(crate) async fn build(&self, case: &Case) -> Result<(), kube::Error> {
        let (canary, nodes): (Vec<&Node>, Vec<&Node>) =
            case.nodes.iter().partition(|it| it.name == CANARY);
        let waiting = |it: &pod::Volume| case.waiting.as_ref() == Some(&it.handle);
        let pods = nodes.iter().flat_map(|it| &it.pods).chain(&case.asked);
        let mut claims: BTreeMap<(&str, &str), &pod::Volume> = BTreeMap::new();
        for (pod, volume) in pods.flat_map(|pod| pod.demand.volumes.iter().map(move |it| (pod, it)))
        {
            claims.insert((&pod.namespace.name, &volume.handle), volume);
        }
        let mut first = Vec::new();
        for ((namespace, _), volume) in claims {
            if waiting(volume) {
                first.push((CLASSES.to_owned(), wire::storage_class(volume)));
                first.push((claims_of(namespace), wire::waiting_claim(volume, namespace)));
            } else {
                first.push((VOLUMES.to_owned(), wire::volume(volume, namespace)));
                first.push((claims_of(namespace), wire::bound_claim(volume, namespace)));
            }
        }
        for node in &nodes {
            first.push((CSI_NODES.to_owned(), wire::csi_node(node)));
            first.push((NODES.to_owned(), wire::node(node)));
        }
        try_join_all(first.iter().map(|(path, object)| self.create(path, object))).await?;

        let running = nodes.iter().flat_map(|node| node.pods.iter().map(move |pod| (node, pod)));
        let running = running.enumerate().map(|(way, (node, pod))| self.run(node, pod, way));
        try_join_all(running).await?;

        for node in canary {
            self.create(NODES, &wire::node(node)).await?;
            for pod in &node.pods {
                let namespace = &*pod.namespace.name;
                for volume in &pod.demand.volumes {
                    self.create(VOLUMES, &wire::volume(volume, namespace)).await?;
                    self.create(&claims_of(namespace), &wire::bound_claim(volume, namespace))
                        .await?;
                }
                // As long as it does not see all of this, it says no.
                let found = |it: &Answer| matches!(it, Answer::Found { .. });
                self.ask_until(pod, CANARY, 0, found).await?;
            }
        }
        Ok(())
    }

    /// Puts a pod on its node, past the scheduler.
    async fn run(&self, node: &Node, pod: &pod::Pod, way: usize) -> Result<(), kube::Error> {
        let path = pods_of(&pod.namespace.name);
        self.create(&path, &wire::pod(pod, &pod.name, Some(&node.name), way)).await?;
        if pod.terminating {
            let path = format!("{path}/{}", pod.name);
            self.delete(&path, TERMINATING_SECONDS).await?;
        }
        Ok(())
    }

    /// Leaves a new pod to the scheduler, under this name, and returns what becomes of it.
    pub(crate) async fn ask(
        &self,
        pod: &pod::Pod,
        name: &str,
        way: usize,
    ) -> Result<Answer, kube::Error> {
        self.ask_until(pod, name, way, |_| true).await
    }

    async fn ask_until(
        &self,
        pod: &pod::Pod,
        name: &str,
        way: usize,
        enough: impl Fn(&Answer) -> bool,
    ) -> Result<Answer, kube::Error> {
        let namespace = &*pod.namespace.name;
        let made = self.create(&pods_of(namespace), &wire::pod(pod, name, None, way)).await?;
        let made: Pod = serde_json::from_value(made).map_err(kube::Error::SerdeError)?;
        if let Some(answer) = answer(&made).filter(&enough) {
            return Ok(answer);
        }
        let since = made.metadata.resource_version.unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let named = WatchParams::default().fields(&format!("metadata.name={name}"));
        let answers =
            seen(pods.watch(&named, &since).await?).try_filter_map(async |it| Ok(answer(&it)));
        let chosen = seen(claims.watch(&WatchParams::default(), &since).await?)
            .try_filter_map(async |it| Ok(selected_node(&it)));
        let answers = select(answers.boxed(), chosen.boxed());
        let mut answers = pin!(answers.try_filter(|it| ready(enough(it))));
        match tokio::time::timeout(ANSWERED_WITHIN, answers.try_next()).await {
            Ok(Ok(Some(answer))) => Ok(answer),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) | Err(_) => panic!("the scheduler says nothing to {namespace}/{name}"),
        }
    }

    pub(crate) async fn forget(&self, pod: &pod::Pod, name: &str) -> Result<(), kube::Error> {
        self.delete(&format!("{}/{name}", pods_of(&pod.namespace.name)), 0).await
    }

    /// Removes everything that belongs to one world.
    pub(crate) async fn clear(&self) -> Result<(), kube::Error> {
        try_join_all(NAMESPACES.map(|(it, _)| pods_of(it)).iter().map(|it| self.delete(it, 0)))
            .await?;
        let claims = NAMESPACES.map(|(it, _)| claims_of(it));
        let others = [NODES, CSI_NODES, VOLUMES, CLASSES];
        let all = claims.iter().map(String::as_str).chain(others);
        try_join_all(all.map(|it| self.delete(it, 0))).await.map(drop)
    }

    async fn create(&self, path: &str, object: &Value) -> Result<Value, kube::Error> {
        self.send(Method::POST, path, object).await
    }

    /// One object, or all of a kind.
    async fn delete(&self, path: &str, grace_seconds: u32) -> Result<(), kube::Error> {
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace_seconds });
        self.send(Method::DELETE, path, &options).await.map(drop)
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

/// The objects that a watch tells of, and its errors.
fn seen<K: Resource + Clone>(
    events: impl futures_util::Stream<Item = Result<WatchEvent<K>, kube::Error>>,
) -> impl futures_util::Stream<Item = Result<K, kube::Error>> {
    events.try_filter_map(async |it| match it {
        WatchEvent::Added(it) | WatchEvent::Modified(it) => Ok(Some(it)),
        WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => Ok(None),
        WatchEvent::Error(error) => Err(kube::Error::Api(error)),
    })
}

/// What has become of a pod. Errors of the scheduler itself are no answer: it tries again.
fn answer(pod: &Pod) -> Option<Answer> {
    if let Some(node) = pod.spec.as_ref().and_then(|it| it.node_name.clone()) {
        return Some(Answer::Found { node });
    }
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|it| it.type_ == "PodScheduled")?;
    let refused = matches!(scheduled.reason.as_deref(), Some("Unschedulable" | "SchedulingGated"));
    let because = scheduled.message.clone().unwrap_or_default();
    refused.then_some(Answer::Refused { because })
}

fn selected_node(claim: &PersistentVolumeClaim) -> Option<Answer> {
    let node = claim.metadata.annotations.as_ref()?.get(SELECTED_NODE)?.clone();
    Some(Answer::Found { node })
}

fn pods_of(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

fn claims_of(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims")
}
