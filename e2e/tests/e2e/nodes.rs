//! Does the rest of Kubernetes believe in nodes that no machine stands behind?

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Client,
    api::{Api, EvictParams, ListParams, Patch, PatchParams},
};
use nodemolt_rig::{
    Parts, Rig,
    kubelets::{Kubelets, SILENT, UNREADY},
    nodes::{self, NodeShape},
};
use serde_json::{Value, json};

const WEB: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: web, image: web, resources: {requests: {cpu: 100m}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
";

#[tokio::test]
async fn pods_are_scheduled_run_and_are_protected_and_a_silent_node_is_given_up() {
    let rig = Rig::start(Parts::all()).unwrap();
    let kubelets = Kubelets::start(&rig).unwrap();
    let client = rig.client().await.unwrap();
    for name in ["a", "b"] {
        nodes::add(&client, name, &NodeShape::default()).await.unwrap();
    }
    let world = World { client, kubelets };

    rig.apply(WEB).unwrap();
    world.until("both pods run, on a node each", |_, pods| hosts(pods) == ["a", "b"]).await;

    // The budget wants both; so neither may go.
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "default");
    let name = world.pods().await[0].metadata.name.clone().unwrap();
    world.budget_counts().await;
    let refused = pods.evict(&name, &EvictParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(it) if it.code == 429), "{refused:?}");

    // With one that is enough, one may go: it ends, and another comes in its place.
    let budget = r#"{"spec":{"minAvailable":1}}"#;
    rig.kubectl(&["patch", "pdb", "web", "--type=merge", "-p", budget]).unwrap();
    world.until_evicted(&pods, &name).await;
    let another = |pods: &[Pod]| pods.iter().all(|it| it.metadata.name.as_ref() != Some(&name));
    world.until("another has come", |_, pods| another(pods) && hosts(pods) == ["a", "b"]).await;

    // A node that says so is not ready, and one that says nothing is unknown.
    world.annotate("a", &json!({ UNREADY: "" })).await;
    world.until("a is not ready", |nodes, _| ready(nodes, "a") == "False").await;
    world.annotate("a", &json!({ UNREADY: null })).await;
    world.until("a is ready again", |nodes, _| ready(nodes, "a") == "True").await;
    world.annotate("b", &json!({ SILENT: "" })).await;
    world.until("b is given up", |nodes, _| ready(nodes, "b") == "Unknown").await;
    assert_eq!(ready(&world.nodes().await, "a"), "True");
}

#[tokio::test]
async fn a_pod_is_put_on_a_node_without_a_scheduler() {
    let rig = crate::rig();
    let client = rig.client().await.unwrap();
    let name = rig.unique("bound");
    nodes::add(&client, &name, &NodeShape::default()).await.unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
        "spec": { "containers": [{ "name": "one", "image": "one" }] },
    });
    rig.apply(&pod.to_string()).unwrap();
    nodes::bind(&client, "default", &name, &name).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let bound = pods.get(&name).await.unwrap();
    assert_eq!(bound.spec.unwrap().node_name.as_deref(), Some(name.as_str()));
}

struct World {
    client: Client,
    kubelets: Kubelets,
}

impl World {
    async fn nodes(&self) -> Vec<Node> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.list(&ListParams::default()).await.unwrap().items
    }

    async fn pods(&self) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        pods.list(&ListParams::default().labels("app=web")).await.unwrap().items
    }

    async fn annotate(&self, node: &str, annotations: &Value) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        nodes.patch(node, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn until(&self, what: &str, happened: impl Fn(&[Node], &[Pod]) -> bool) {
        let waits_since = Instant::now();
        loop {
            let (nodes, pods) = (self.nodes().await, self.pods().await);
            if happened(&nodes, &pods) {
                return;
            }
            let trouble = self.kubelets.trouble();
            assert!(waits_since.elapsed() < PATIENCE, "not yet: {what}; {trouble:?}\n{pods:#?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Until the controller has seen both pods ready. Before, it refuses everything.
    async fn budget_counts(&self) {
        use k8s_openapi::api::policy::v1::PodDisruptionBudget;
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(self.client.clone(), "default");
        let waits_since = Instant::now();
        loop {
            let status = budgets.get("web").await.unwrap().status.unwrap_or_default();
            if status.current_healthy == 2 {
                return;
            }
            assert!(waits_since.elapsed() < PATIENCE, "{status:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The budget's new words reach its status only after a while, and until then it refuses.
    async fn until_evicted(&self, pods: &Api<Pod>, name: &str) {
        let waits_since = Instant::now();
        while let Err(error) = pods.evict(name, &EvictParams::default()).await {
            assert!(waits_since.elapsed() < PATIENCE, "{error:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Two busy cores share this with other tests.
const PATIENCE: Duration = Duration::from_mins(2);

/// Where the pods are that run and are ready, in order.
fn hosts(pods: &[Pod]) -> Vec<String> {
    let mut hosts: Vec<String> = pods
        .iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none())
        .filter(|it| {
            let conditions = it.status.iter().flat_map(|it| it.conditions.iter().flatten());
            conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
        })
        .filter_map(|it| it.spec.as_ref()?.node_name.clone())
        .collect();
    hosts.sort();
    hosts
}

fn ready(nodes: &[Node], name: &str) -> String {
    let node = nodes.iter().find(|it| it.metadata.name.as_deref() == Some(name));
    let mut conditions = node
        .into_iter()
        .flat_map(|it| it.status.iter())
        .flat_map(|it| it.conditions.iter().flatten());
    conditions.find(|it| it.type_ == "Ready").map(|it| it.status.clone()).unwrap_or_default()
}
