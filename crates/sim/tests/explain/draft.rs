//! What does the world look like before anything is wrong in it?
//!
//! Two to four nodes of one pool run an old image, and a newer one is there: without something in the way
//! all of them would be replaced.

use jiff::{SignedDuration, Timestamp};
use nodemolt_sim::dice::Dice;
use nodemolt_sim::{Scenario, World};
use serde_json::{Value, json};

pub(crate) const OLD_IMAGE: &str = "ami-0000000a";
pub(crate) const NEW_IMAGE: &str = "ami-0000000b";

pub(crate) struct Draft {
    pub(crate) seed: u64,
    pub(crate) dice: Dice,
    pub(crate) start: Timestamp,
    pub(crate) pool: String,
    pub(crate) class: String,
    pub(crate) policy: String,
    pub(crate) namespace: String,
    pub(crate) app: String,
    pub(crate) nodes: Vec<String>,
    pub(crate) instance_type: &'static str,
    pub(crate) arch: &'static str,
    pub(crate) age_hours: i64,
    pub(crate) class_spec: Value,
    pub(crate) pool_spec: Value,
    /// Of the policy; none if it is `null`.
    pub(crate) rollout: Value,
    pub(crate) replicas: usize,
    pub(crate) pod: Value,
    pub(crate) pod_annotations: Value,
    pub(crate) documents: Vec<Value>,
    /// Those that the class selects are made where none are written.
    pub(crate) subnets: Vec<Value>,
    pub(crate) new_image_there: bool,
}

impl Draft {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed).fork("explain");
        let mut pick = |from: &[&str]| (*dice.pick(from).unwrap()).to_owned();
        let pool = pick(&["web", "data", "batch", "general-purpose"]);
        let class = pick(&["general", "hardened", "default"]);
        let policy = pick(&["calm", "all", "production"]);
        let namespace = pick(&["shop", "payments", "default", "team-a"]);
        let app = pick(&["cart", "api", "worker", "ledger-db"]);
        let (arch, instance_type) = *dice
            .pick(&[("arm64", "m7g.large"), ("arm64", "m7g.xlarge"), ("amd64", "m7i.large")])
            .unwrap();
        let start: Timestamp = "2026-11-16T00:00:00Z".parse().unwrap();
        let start =
            start + SignedDuration::from_mins(i64::try_from(dice.below(7 * 24 * 60)).unwrap());
        let count = dice.between(2, 4);
        let nodes = (0..count).map(|it| format!("{pool}-node-{it}")).collect();
        let discovery = json!([{"tags": {"nodemolt.dev/discovery": "blue"}}]);
        let class_spec = json!({
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "role": "nodemolt-node",
            "subnetSelectorTerms": discovery,
            "securityGroupSelectorTerms": discovery,
        });
        let pool_spec = json!({
            "template": {"spec": {
                "nodeClassRef": {"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": class},
                "requirements": [
                    {"key": "kubernetes.io/arch", "operator": "In", "values": [arch]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [instance_type]},
                ],
                "expireAfter": "Never",
            }},
            "disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]},
        });
        let replicas = usize::try_from(dice.between(count, 2 * count)).unwrap();
        let grace = dice.between(1, 20);
        let pod = json!({
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "main", "image": "app:1",
                "resources": {"requests": {"cpu": "300m", "memory": "256Mi"}}}],
        });
        let age_hours = i64::try_from(dice.between(10 * 24, 40 * 24)).unwrap();
        Self {
            seed,
            dice,
            start,
            pool,
            class,
            policy,
            namespace,
            app,
            nodes,
            instance_type,
            arch,
            age_hours,
            class_spec,
            pool_spec,
            rollout: Value::Null,
            replicas,
            pod,
            pod_annotations: json!({}),
            documents: Vec::new(),
            subnets: Vec::new(),
            new_image_there: true,
        }
    }

    /// As many at once as there are nodes.
    pub(crate) fn all_at_once(&mut self) {
        self.rollout["concurrency"] = json!(self.nodes.len());
    }

    pub(crate) fn document(&mut self, version: &str, kind: &str, metadata: &Value, spec: &Value) {
        let whole =
            json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
        self.documents.push(whole);
    }

    pub(crate) fn image_name(&self, release: &str) -> String {
        let arch = if self.arch == "amd64" { "x86_64" } else { self.arch };
        format!("amazon-eks-node-al2023-{arch}-standard-1.35-{release}")
    }

    fn text(&self) -> String {
        let days = |count: i64| self.start - SignedDuration::from_hours(24 * count);
        let old = self.image_name("v20260901");
        let mut images =
            vec![json!({"name": old, "id": OLD_IMAGE, "created": days(60).to_string()})];
        if self.new_image_there {
            let name = self.image_name("v20261101");
            images.push(json!({"name": name, "id": NEW_IMAGE, "created": days(10).to_string()}));
        }
        let simulation = json!({
            "apiVersion": "nodemolt.dev/sim", "kind": "Simulation",
            "start": self.start.to_string(), "kubernetes": "1.35", "images": images,
            "subnets": self.subnets,
            "fleet": [{"pool": self.pool, "nodes": self.nodes.len(), "instanceType": self.instance_type,
                "image": old, "age": format!("{}h", self.age_hours), "names": self.nodes}],
        });
        let object = |version: &str, kind: &str, metadata: Value, spec: &Value| json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
        let mut all = vec![
            simulation,
            object(
                "nodemolt.dev/v1alpha1",
                "EC2NodeClass",
                json!({"name": self.class}),
                &self.class_spec,
            ),
            object("karpenter.sh/v1", "NodePool", json!({"name": self.pool}), &self.pool_spec),
        ];
        if !self.rollout.is_null() {
            let spec = json!({"rollout": self.rollout});
            all.push(object(
                "nodemolt.dev/v1alpha1",
                "ImagePolicy",
                json!({"name": self.policy}),
                &spec,
            ));
        }
        let labels = json!({"app": self.app});
        let metadata = json!({"labels": labels, "annotations": self.pod_annotations});
        let spec = json!({"replicas": self.replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": self.pod}});
        let called = json!({"name": self.app, "namespace": self.namespace});
        if self.replicas > 0 {
            all.push(object("apps/v1", "Deployment", called, &spec));
        }
        all.extend(self.documents.iter().cloned());
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        all.join("\n---\n")
    }

    pub(crate) fn begin(&self) -> World {
        let text = self.text();
        let scenario = Scenario::read("draft", &text).unwrap_or_else(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            panic!("{}\n{text}", all.join("\n"))
        });
        World::new(&scenario, self.seed).unwrap_or_else(|it| panic!("{it}\n{text}"))
    }
}
