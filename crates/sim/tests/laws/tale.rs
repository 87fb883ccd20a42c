//! How is a life told by hand?
//!
//! A small cluster: three nodes of one pool, three pods of one workload with a budget, and a replacement
//! told act by act. A broken life leaves one act out, or tells it too early.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::transport::Resource;
use nodemolt_sim::trace::{Actor, Fact, Image, Machine, ReplicaState, Step, Turned, WaitsFor};
use serde_json::{Value, json};

pub(crate) const US: Actor = Actor::Operator(0);
pub(crate) const OLD: &str = "ami-0000000a";
pub(crate) const NEW: &str = "ami-0000000b";

pub(crate) struct Tale {
    pub(crate) steps: Vec<Step>,
    pub(crate) now: Timestamp,
    objects: BTreeMap<(&'static str, String), Rc<Value>>,
    /// What people wrote of how many and when.
    pub(crate) policy: Value,
}

fn resource(kind: &'static str) -> Resource {
    let (group, version, plural, namespaced) = match kind {
        "Node" => ("", "v1", "nodes", false),
        "Pod" => ("", "v1", "pods", true),
        "ReplicaSet" => ("apps", "v1", "replicasets", true),
        "PodDisruptionBudget" => ("policy", "v1", "poddisruptionbudgets", true),
        "NodePool" => ("karpenter.sh", "v1", "nodepools", false),
        "NodeClaim" => ("karpenter.sh", "v1", "nodeclaims", false),
        "NodeDisruptionBudget" => ("karpenter.sh", "v1alpha1", "nodedisruptionbudgets", false),
        "EC2NodeClass" => ("nodemolt.dev", "v1alpha1", "ec2nodeclasses", false),
        "ImagePolicy" => ("nodemolt.dev", "v1alpha1", "imagepolicies", false),
        "ImageQuarantine" => ("nodemolt.dev", "v1alpha1", "imagequarantines", false),
        "AWSImage" => ("infrastructure.cluster.x-k8s.io", "v1beta1", "awsimages", false),
        "Replacement" => ("nodemolt.dev", "v1alpha1", "replacements", false),
        "DisruptionLedger" => ("nodemolt.dev", "v1alpha1", "disruptionledgers", false),
        other => panic!("{other} is in no tale"),
    };
    Resource { group, version, kind, plural, namespaced }
}

/// One life: three nodes that run the old image, and a replica that has begun to turn. Which image is wanted
/// only who asks EC2 knows.
pub(crate) fn begun() -> Tale {
    begun_with(&json!({"amiFamily": "AL2023"}), [OLD, OLD, OLD])
}

/// The same with the newest image for all: `n1` runs another.
pub(crate) fn latest() -> Tale {
    begun_with(&json!({"amiSelectorTerms": [{"alias": "al2023@latest"}]}), [OLD, NEW, NEW])
}

fn begun_with(class: &Value, images: [&str; 3]) -> Tale {
    let mut tale = Tale {
        steps: Vec::new(),
        now: "2026-11-02T09:00:00Z".parse().unwrap(),
        objects: BTreeMap::new(),
        policy: json!({"minimumAge": "7d", "owners": ["123456789012"]}),
    };
    tale.image(OLD, "al2023-v1", 90);
    tale.image(NEW, "al2023-v2", 10);
    tale.store(
        Actor::Person,
        "EC2NodeClass",
        "",
        json!({"metadata": {"name": "general"}, "spec": class}),
    );
    tale.store(Actor::Person, "NodePool", "", json!({"metadata": {"name": "web"}, "spec": {"disruption": {"budgets": [{"nodes": "50%"}]}}}));
    let selector = json!({"matchLabels": {"app": "web"}});
    tale.store(Actor::Person, "ReplicaSet", "shop", json!({"metadata": {"name": "web", "namespace": "shop", "uid": "rs-web"}, "spec": {"replicas": 3}}));
    tale.store(Actor::Person, "PodDisruptionBudget", "shop", json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": selector}, "status": {"desiredHealthy": 2, "currentHealthy": 3, "disruptionsAllowed": 1}}));
    for (name, image) in ["n1", "n2", "n3"].into_iter().zip(images) {
        tale.claim(Actor::Fate, name);
        tale.machine(name, image, "running");
        tale.claim_status(Actor::Fate, name, image);
        tale.node(Actor::Fate, name, true, &json!([]));
        tale.pod(&format!("web-{name}"), Some(name), true);
    }
    let policy = tale.policy.clone();
    tale.store(
        Actor::Person,
        "ImagePolicy",
        "",
        json!({"metadata": {"name": "all"}, "spec": policy}),
    );
    tale.tell(US, Fact::Replica { number: 0, state: ReplicaState::Started });
    tale.tell(US, Fact::Replica { number: 0, state: ReplicaState::Leads });
    tale.ledger(&[], 1);
    tale.wait(20);
    tale.answered("Parameters", true);
    tale.wait(120);
    tale
}

/// A whole replacement of `n1` by `s1`, as it should be, and an hour of rest.
pub(crate) fn sound() -> Tale {
    let mut tale = begun();
    tale.turn(&["n1"], |it| it.starts = vec!["n1".to_owned()]);
    tale.granted("n1");
    tale.launched();
    tale.joined();
    tale.cordoned("n1");
    tale.emptied();
    tale.ended();
    tale.rested();
    tale
}

impl Tale {
    pub(crate) fn tell(&mut self, by: Actor, fact: Fact) {
        self.steps.push(Step { at: self.now, by, fact });
    }

    pub(crate) fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(crate) fn store(&mut self, by: Actor, kind: &'static str, namespace: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let key = (kind, format!("{namespace}/{name}"));
        let object = Rc::new(object);
        let old = self.objects.insert(key, Rc::clone(&object));
        self.tell(by, Fact::Stored { resource: resource(kind), object, old });
    }

    /// The object as it is, changed.
    pub(crate) fn change(
        &mut self,
        by: Actor,
        kind: &'static str,
        key: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let mut object = Value::clone(&self.objects[&(kind, key.to_owned())]);
        change(&mut object);
        let namespace = key.split_once('/').map_or("", |it| it.0).to_owned();
        self.store(by, kind, &namespace, object);
    }

    pub(crate) fn remove(&mut self, by: Actor, kind: &'static str, key: &str) {
        let last = self.objects.remove(&(kind, key.to_owned())).unwrap();
        self.tell(by, Fact::Removed { resource: resource(kind), last });
    }

    pub(crate) fn image(&mut self, id: &str, name: &str, days_old: i64) {
        let image = Image {
            id: id.to_owned(),
            name: name.to_owned(),
            owner: Some("123456789012".to_owned()),
            owner_alias: None,
            created_at: Some(self.now - SignedDuration::from_hours(24 * days_old)),
            launchable: true,
            deprecated: false,
        };
        self.tell(Actor::Publisher, Fact::Image(image));
    }

    pub(crate) fn answered(&mut self, question: &str, complete: bool) {
        let (question, about) = (question.to_owned(), question.to_owned());
        self.tell(US, Fact::Answered { question, about, complete });
    }

    pub(crate) fn replica(&mut self, number: u8, state: ReplicaState) {
        self.tell(Actor::Operator(number), Fact::Replica { number, state });
    }

    pub(crate) fn claim(&mut self, by: Actor, name: &str) {
        let class = json!({"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "general"});
        let made = self.now.to_string();
        let object = json!({"metadata": {"name": name, "uid": format!("claim-{name}"), "creationTimestamp": made, "labels": {"karpenter.sh/nodepool": "web"}}, "spec": {"nodeClassRef": class}});
        self.store(by, "NodeClaim", "", object);
    }

    pub(crate) fn claim_status(&mut self, by: Actor, name: &str, image: &str) {
        let initialized = json!([{"type": "Initialized", "status": "True"}]);
        let status = json!({"nodeName": name, "imageID": image, "providerID": format!("aws:///a/i-{name}"), "conditions": initialized});
        self.change(by, "NodeClaim", &format!("/{name}"), |it| it["status"] = status);
    }

    pub(crate) fn machine(&mut self, name: &str, image: &str, state: &'static str) {
        self.machine_for(&format!("i-{name}"), name, image, state);
    }

    pub(crate) fn machine_for(&mut self, id: &str, claim: &str, image: &str, state: &'static str) {
        let tags = [
            ("kubernetes.io/cluster/shop", "owned".to_owned()),
            ("karpenter.sh/nodeclaim", claim.to_owned()),
            ("nodemolt.dev/claim-uid", format!("claim-{claim}")),
        ];
        let machine = Machine {
            id: id.to_owned(),
            token: format!("token-{id}"),
            state,
            image: image.to_owned(),
            instance_type: "m7g.large".to_owned(),
            zone: "a".to_owned(),
            tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            node: None,
        };
        self.tell(Actor::Cloud, Fact::Machine(machine));
    }

    pub(crate) fn node(&mut self, by: Actor, name: &str, ready: bool, taints: &Value) {
        let ready = if ready { "True" } else { "False" };
        let object = json!({
            "metadata": {"name": name, "uid": format!("node-{name}"), "labels": {"karpenter.sh/nodepool": "web", "team": "shop"}},
            "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}], "capacity": {"cpu": "2"}, "allocatable": {"cpu": "1900m", "memory": "7Gi", "pods": "29"}},
        });
        self.store(by, "Node", "", object);
    }

    pub(crate) fn pod(&mut self, name: &str, node: Option<&str>, ready: bool) {
        let owner =
            json!([{"kind": "ReplicaSet", "name": "web", "uid": "rs-web", "controller": true}]);
        let ready_word = if ready { "True" } else { "False" };
        let phase = if ready { "Running" } else { "Pending" };
        let requests = json!({"cpu": "1", "memory": "1Gi"});
        let object = json!({
            "metadata": {"name": name, "namespace": "shop", "uid": format!("pod-{name}"), "labels": {"app": "web"}, "ownerReferences": owner},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30, "containers": [{"resources": {"requests": requests}}]},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready_word}]},
        });
        self.store(Actor::Kubelet, "Pod", "shop", object);
    }

    /// A pod of nobody or of a `DaemonSet`, on `n1`.
    pub(crate) fn other_pod(&mut self, owner: Option<&str>) {
        self.pod("other", Some("n1"), true);
        self.change(Actor::Kubelet, "Pod", "shop/other", |it| {
            it["metadata"]["labels"] = json!({"app": "other"});
            it["metadata"]["ownerReferences"] = owner.map_or(
                json!([]),
                |it| json!([{"kind": it, "name": "other", "uid": "other", "controller": true}]),
            );
            it["spec"]["containers"] = json!([]);
        });
    }

    /// From now on this pod tolerates everything, our cordon included.
    pub(crate) fn tolerant(&mut self, pod: &str) {
        self.change(Actor::Person, "Pod", &format!("shop/{pod}"), |it| {
            it["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
        });
        self.wait(120);
    }

    /// We delete the pod of `n1` when the drain limit is reached; whether that was recorded before.
    pub(crate) fn delete(&mut self, uid: Option<&str>, grace_seconds: i64, recorded: bool) {
        self.wait(300);
        self.delete_now(uid, grace_seconds, recorded);
    }

    /// We delete the pod of `n1`.
    pub(crate) fn delete_now(&mut self, uid: Option<&str>, grace_seconds: i64, recorded: bool) {
        if recorded {
            let forced = json!([{"namespace": "shop", "name": "web-n1", "uid": "pod-web-n1"}]);
            self.change(US, "Replacement", "/claim-n1", |it| {
                it["status"]["drain"] = json!({"forced": forced});
            });
        }
        self.change(US, "Replacement", "/claim-n1", |it| {
            it["status"]["drainLimitAction"] = json!("Force");
        });
        let (namespace, pod) = ("shop".to_owned(), "web-n1".to_owned());
        let (uid, grace_seconds) = (uid.map(str::to_owned), Some(grace_seconds));
        self.tell(US, Fact::PodDeleted { namespace, pod, uid, grace_seconds });
    }

    pub(crate) fn ledger(&mut self, nodes: &[&str], epoch: i64) {
        self.ledger_by(US, nodes, epoch);
    }

    /// The ledger as it is, with these grants: node and what for.
    pub(crate) fn grants(&mut self, nodes: &[(&str, &str)]) {
        let grants: Vec<Value> = nodes
            .iter()
            .map(|(node, kind)| json!({"holder": format!("claim-{node}"), "nodeName": node, "kind": kind, "epoch": 1}))
            .collect();
        self.change(US, "DisruptionLedger", "/cluster", |it| {
            it["status"]["grants"] = json!(grants);
        });
    }

    /// A budget for all three nodes, which everybody knows of: one may be away.
    pub(crate) fn budget(&mut self, gates: &Value) {
        let spec =
            json!({"labelSelectors": [{"team": "shop"}], "maxUnavailable": 1, "gates": gates});
        let budget = json!({"metadata": {"name": "one"}, "spec": spec});
        self.store(Actor::Person, "NodeDisruptionBudget", "", budget);
        self.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["disruption"]["budgets"] = json!([{"nodes": "100%"}]);
        });
        self.wait(120);
    }

    /// A person writes an annotation, and everybody knows of it.
    pub(crate) fn annotated(
        &mut self,
        kind: &'static str,
        key: &str,
        annotation: &str,
        word: &str,
    ) {
        self.change(Actor::Person, kind, key, |it| {
            it["metadata"]["annotations"] = json!({annotation: word});
        });
        self.wait(120);
    }

    pub(crate) fn ledger_by(&mut self, by: Actor, nodes: &[&str], epoch: i64) {
        let grants: Vec<Value> = nodes
            .iter()
            .map(|it| json!({"holder": format!("claim-{it}"), "nodeName": it, "kind": "Replacement", "epoch": epoch}))
            .collect();
        let object = json!({"metadata": {"name": "cluster"}, "spec": {}, "status": {"epoch": epoch, "grants": grants}});
        self.store(by, "DisruptionLedger", "", object);
    }

    pub(crate) fn record(&mut self, node: &str, phase: &str) {
        let successors = json!([{"name": "s1", "uid": "claim-s1", "try": 1}]);
        let object = json!({
            "metadata": {"name": format!("claim-{node}")},
            "spec": {"nodeClaim": {"name": node, "uid": format!("claim-{node}")}, "nodeName": node},
            "status": {"phase": phase, "cause": "Drift", "try": 1, "successors": successors},
        });
        self.store(US, "Replacement", "", object);
    }

    pub(crate) fn granted(&mut self, node: &str) {
        self.ledger(&[node], 1);
        self.record(node, "Launching");
    }

    pub(crate) fn launched(&mut self) {
        self.launched_with(NEW);
    }

    pub(crate) fn launched_with(&mut self, image: &str) {
        self.launching(image);
        self.wait(30);
        self.machine("s1", image, "running");
        self.claim_status(US, "s1", image);
    }

    pub(crate) fn launching(&mut self, image: &str) {
        self.claim(US, "s1");
        self.wait(2);
        let token = "token-i-s1".to_owned();
        self.tell(
            US,
            Fact::LaunchAsked { token, machine: Some("i-s1".to_owned()), made: true, error: None },
        );
        self.machine("s1", image, "pending");
    }

    /// EC2 has made the machine of `s1` twice.
    pub(crate) fn twin(&mut self) {
        let made = |it: &Step| matches!(&it.fact, Fact::Machine(it) if it.id == "i-s1");
        let at = self.steps.iter().position(made).unwrap();
        let mut twin = self.steps[at].clone();
        let Fact::Machine(machine) = &mut twin.fact else { panic!("it is a machine") };
        "i-twin".clone_into(&mut machine.id);
        self.steps.insert(at + 1, twin);
    }

    /// People pause everything.
    pub(crate) fn paused(&mut self) {
        self.change(Actor::Person, "DisruptionLedger", "/cluster", |it| {
            it["spec"] = json!({"pause": {"reason": "a sale"}});
        });
    }

    /// What comes next at this moment was sent so long before.
    pub(crate) fn held_up(&mut self, by_seconds: i64) {
        let since = self.now - SignedDuration::from_secs(by_seconds);
        self.tell(US, Fact::HeldUp { since });
    }

    /// People lift their pause.
    pub(crate) fn resumed(&mut self) {
        self.change(Actor::Person, "DisruptionLedger", "/cluster", |it| it["spec"] = json!({}));
    }

    /// It joins, is ready, and stays so.
    pub(crate) fn joined(&mut self) {
        self.node(
            Actor::Kubelet,
            "s1",
            false,
            &json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]),
        );
        self.node(US, "s1", false, &json!([]));
        self.wait(20);
        self.node(Actor::Kubelet, "s1", true, &json!([]));
        self.wait(31);
    }

    pub(crate) fn cordoned(&mut self, node: &str) {
        self.record(node, "Draining");
        self.cordon(node);
    }

    pub(crate) fn cordon(&mut self, node: &str) {
        let by = format!("claim-{node}");
        self.change(US, "Node", &format!("/{node}"), |it| {
            it["spec"]["taints"] =
                json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
            it["metadata"]["annotations"] = json!({"nodemolt.dev/cordoned-by": by});
        });
    }

    /// The pod of `n1` is evicted, and runs again on the successor.
    pub(crate) fn emptied(&mut self) {
        self.wait(1);
        self.evict("web-n1", Some("pod-web-n1"), None);
        self.gone("web-n1");
        self.pod("web-s1", None, false);
        self.pod("web-s1", Some("s1"), false);
        self.wait(5);
        self.pod("web-s1", Some("s1"), true);
    }

    pub(crate) fn evict(&mut self, pod: &str, uid: Option<&str>, grace_seconds: Option<i64>) {
        let (namespace, uid) = ("shop".to_owned(), uid.map(str::to_owned));
        self.tell(
            US,
            Fact::Evicted { namespace, pod: pod.to_owned(), uid, grace_seconds, code: 201 },
        );
        let ends_at = (self.now + SignedDuration::from_secs(30)).to_string();
        self.change(US, "Pod", &format!("shop/{pod}"), |it| {
            it["metadata"]["deletionTimestamp"] = json!(ends_at);
        });
    }

    pub(crate) fn gone(&mut self, pod: &str) {
        self.wait(10);
        self.remove(Actor::Kubelet, "Pod", &format!("shop/{pod}"));
    }

    pub(crate) fn end_claim(&mut self, by: Actor, name: &str) {
        let now = self.now.to_string();
        self.change(by, "NodeClaim", &format!("/{name}"), |it| {
            it["metadata"]["deletionTimestamp"] = json!(now);
        });
    }

    /// The old claim, its machine and its node go; the grant is given back.
    pub(crate) fn ended(&mut self) {
        self.record("n1", "Terminating");
        self.end_claim(US, "n1");
        self.wait(1);
        self.tell(US, Fact::TerminateAsked { machine: "i-n1".to_owned() });
        self.machine("n1", OLD, "shutting-down");
        self.wait(30);
        self.machine("n1", OLD, "terminated");
        self.remove(US, "NodeClaim", "/n1");
        self.remove(US, "Node", "/n1");
        self.record("n1", "Done");
        self.ledger(&[], 1);
    }

    /// What was begun is given up, and the pods run again: nothing is left to complain of in the end.
    pub(crate) fn settle(&mut self) {
        for name in ["web-n1", "web-n2", "web-n3"] {
            if self.objects.contains_key(&("Pod", format!("shop/{name}"))) {
                self.pod(name, Some(&name[4..]), true);
            }
        }
        if self.objects.contains_key(&("Replacement", "/claim-n1".to_owned())) {
            self.record("n1", "Skipped");
            self.change(US, "Node", "/n1", |it| {
                it["spec"]["taints"] = json!([]);
                it["metadata"]["annotations"] = json!({});
            });
            self.ledger(&[], 1);
        }
    }

    pub(crate) fn rested(&mut self) {
        for _ in 0..6 {
            self.turn(&[], |_| ());
            self.wait(600);
        }
    }

    pub(crate) fn turn(&mut self, wished: &[&str], say: impl FnOnce(&mut Turned)) {
        let wished: Vec<String> = wished.iter().map(|it| (*it).to_owned()).collect();
        let mut turned = Turned { wished, ..Turned::default() };
        say(&mut turned);
        self.tell(US, Fact::Turned(turned));
    }

    /// Three turns, of which the first and the last agree.
    pub(crate) fn goes_to_and_fro(&mut self) {
        for round in 0..3 {
            self.turn(&["n1"], |it| {
                it.waits = vec![Tale::waits("n1")];
                it.waits[0].1[0].name = (round == 1).then(|| "other".to_owned());
            });
            self.wait(1);
        }
    }

    /// Whoever waits for something with a name.
    pub(crate) fn waits_for(
        node: &str,
        reason: &'static str,
        kind: &str,
        name: &str,
    ) -> (String, Vec<WaitsFor>) {
        let namespace = matches!(kind, "Pod" | "PodDisruptionBudget").then(|| "shop".to_owned());
        let (kind, sentence) = (kind.to_owned(), format!("{kind} {name}"));
        let wait = WaitsFor {
            reason,
            kind,
            namespace,
            name: Some(name.to_owned()),
            behind: None,
            sentence,
        };
        (node.to_owned(), vec![wait])
    }

    /// Whoever waits for another node to go first.
    pub(crate) fn waits_behind(node: &str, first: &str) -> (String, Vec<WaitsFor>) {
        let (kind, name) = ("PodDisruptionBudget", "web");
        let (node, mut waits) = Self::waits_for(node, "SharedBudget", kind, name);
        waits[0].behind = Some(first.to_owned());
        (node, waits)
    }

    /// Whoever waits, for the one slot.
    pub(crate) fn waits(node: &str) -> (String, Vec<WaitsFor>) {
        let sentence = "the cluster's one slot".to_owned();
        let kind = "Budget".to_owned();
        let wait = WaitsFor { reason: "Budget", kind, sentence, ..WaitsFor::default() };
        (node.to_owned(), vec![wait])
    }
}
