//! What runs in a cluster by itself: whole lives of pods and nodes.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]
#![allow(clippy::wildcard_enum_match_arm, reason = "some facts are looked for among all")]
#![allow(clippy::needless_pass_by_value, reason = "cases read better without ampersands")]

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::transport::{Refusal, Request, Resource, Subresource, Verb};
use nodemolt_sim::api_server::ApiServer;
use nodemolt_sim::dice::Dice;
use nodemolt_sim::kinds::{
    CLAIM, DAEMON_SET, DEPLOYMENT, JOB, NAMESPACE, NODE, PDB, POD, STATEFUL_SET, VOLUME,
};
use nodemolt_sim::kube::{Due, Fate, Kube, KubeEvent, KubeFault, NewMachine};
use nodemolt_sim::trace::{Actor, Fact, Step, Trace};
use serde_json::{Value, json};

const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// The least that can drive a cluster.
struct Drive {
    kube: Kube,
    dice: Dice,
    now: Timestamp,
    queue: BTreeMap<(Timestamp, u64), KubeEvent>,
    number: u64,
    steps: Vec<Step>,
    trace: Trace,
}

impl Drive {
    fn new(seed: u64) -> Self {
        let trace = Trace::default();
        let kube = Kube::new(ApiServer::new(trace.clone(), START));
        let mut drive = Self {
            kube,
            dice: Dice::new(seed),
            now: START,
            queue: BTreeMap::new(),
            number: 0,
            steps: Vec::new(),
            trace,
        };
        drive.create(NAMESPACE, json!({ "metadata": { "name": "shop" } }));
        drive
    }

    fn keep(&mut self, due: Due) {
        for (at, event) in due {
            assert!(at >= self.now, "{event:?} is due before it was asked for");
            self.number += 1;
            self.queue.insert((at, self.number), event);
        }
        self.steps.extend(self.trace.take());
    }

    fn run(&mut self, seconds: i64) {
        let until = self.now + SignedDuration::from_secs(seconds);
        while let Some(entry) = self.queue.first_entry().filter(|it| it.key().0 <= until) {
            let ((at, _), event) = entry.remove_entry();
            self.now = at;
            let due = self.kube.on(&event, at, &mut self.dice);
            self.keep(due);
        }
        self.now = until;
    }

    fn machine(&mut self, number: u32, zone: &str, fate: Fate) {
        let machine = NewMachine { fate, ..machine(number, zone) };
        let due = self.kube.machine_runs(machine, self.now, &mut self.dice);
        self.keep(due);
    }

    fn standing(&mut self, number: u32, zone: &str) {
        let machine = NewMachine { taints: Vec::new(), ..machine(number, zone) };
        let due = self.kube.machine_stands(machine, self.now, &mut self.dice);
        self.keep(due);
    }

    fn send(
        &mut self,
        verb: Verb,
        resource: Resource,
        name: Option<&str>,
        subresource: Option<Subresource>,
        body: Value,
    ) -> Result<Value, Refusal> {
        let request = Request {
            verb,
            resource,
            subresource,
            namespace: resource.namespaced.then(|| "shop".to_owned()),
            name: name.map(str::to_owned),
            body: Some(body),
        };
        let answer = self.kube.server.handle(Actor::Person, &request, self.now);
        let due = self.kube.heard(self.now, &mut self.dice);
        self.keep(due);
        answer.map(|it| Value::clone(&it.body))
    }

    fn create(&mut self, resource: Resource, body: Value) -> Value {
        self.send(Verb::Create, resource, None, None, body).unwrap()
    }

    fn delete(&mut self, resource: Resource, name: &str) {
        self.send(Verb::Delete, resource, Some(name), None, json!({})).unwrap();
    }

    fn patch(&mut self, resource: Resource, name: &str, body: Value) {
        self.send(Verb::MergePatch, resource, Some(name), None, body).unwrap();
    }

    fn evict(&mut self, pod: &str) -> Result<Value, Refusal> {
        let body = json!({ "kind": "Eviction", "metadata": { "name": pod } });
        self.send(Verb::Create, POD, Some(pod), Some(Subresource::Eviction), body)
    }

    fn fault(&mut self, fault: &KubeFault) {
        let due = self.kube.fault(fault, self.now, &mut self.dice);
        self.keep(due);
    }

    fn pods(&self) -> Vec<Value> {
        self.kube.server.all(POD).map(|(_, it)| (**it).clone()).collect()
    }

    /// Names of nodes of the pods that are ready.
    fn ready_on(&self) -> Vec<String> {
        let ready = self.pods().into_iter().filter(|it| holds(it, "Ready", "True"));
        let on = ready.map(|it| it["spec"]["nodeName"].as_str().unwrap().to_owned());
        let mut on: Vec<String> = on.collect();
        on.sort();
        on
    }

    fn node(&self, number: u32) -> Option<Value> {
        let name = format!("node-{number}");
        self.kube.server.get(NODE, "", &name).map(|it| (**it).clone())
    }

    fn uid(&self, pod: &str) -> String {
        let pod = self.kube.server.get(POD, "shop", pod).unwrap();
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    }
}

fn machine(number: u32, zone: &str) -> NewMachine {
    let amounts = |cpu: &str| {
        let said = [("cpu", cpu), ("memory", "7Gi"), ("pods", "29")];
        said.into_iter().map(|(name, amount)| (name.to_owned(), amount.to_owned())).collect()
    };
    NewMachine {
        id: format!("i-{number:017x}"),
        instance_type: "m7g.large".to_owned(),
        zone: zone.to_owned(),
        labels: BTreeMap::new(),
        taints: vec![(
            "startup.example.com/network".to_owned(),
            String::new(),
            "NoSchedule".to_owned(),
        )],
        startup_taints: vec!["startup.example.com/network".to_owned()],
        node_name: format!("node-{number}"),
        image: "ami-0123456789abcdef0".to_owned(),
        kubelet_version: "v1.36.2".to_owned(),
        architecture: "arm64".to_owned(),
        allocatable: amounts("1930m"),
        capacity: amounts("2"),
        fate: Fate::Well,
    }
}

fn template(cpu: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [
            { "name": "main", "resources": { "requests": { "cpu": cpu, "memory": "64Mi" } } },
        ] },
    })
}

fn workload(name: &str, replicas: u32, template: Value) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "shop" },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": "web" } },
            "template": template,
        },
    })
}

fn holds(object: &Value, condition: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == condition && it["status"] == status)
}

#[test]
fn a_machine_becomes_a_node_that_is_ready_and_set_up() {
    let mut drive = Drive::new(1);
    drive.machine(1, "eu-central-1a", Fate::Well);
    drive.run(15);
    assert_eq!(drive.node(1), None);
    drive.run(120);
    let node = drive.node(1).unwrap();
    assert!(holds(&node, "Ready", "True"), "{node}");
    assert_eq!(node["spec"].get("taints"), None);
    assert_eq!(node["spec"]["providerID"], "aws:///eu-central-1a/i-00000000000000001");
    assert_eq!(node["metadata"]["labels"]["topology.kubernetes.io/zone"], "eu-central-1a");
    assert_eq!(node["metadata"]["labels"]["topology.kubernetes.io/region"], "eu-central-1");
    assert_eq!(node["status"]["allocatable"]["cpu"], "1930m");
    assert_eq!(drive.kube.machine_of("node-1"), Some("i-00000000000000001"));
    let settled = drive.steps.len();
    drive.run(86_400);
    assert_eq!(drive.steps.len(), settled, "a world at rest writes nothing");
}

#[test]
fn each_fate_of_a_machine_is_told_apart() {
    let silent = Fate::FallsSilentAfter(SignedDuration::from_secs(60));
    for (fate, there, status, tainted) in [
        (Fate::Well, true, "True", false),
        (Fate::NeverJoins, false, "", false),
        (Fate::NeverReady, true, "False", true),
        (Fate::NeverSetUp, true, "True", true),
        (silent, true, "Unknown", true),
    ] {
        let mut drive = Drive::new(2);
        drive.machine(1, "eu-central-1a", fate);
        drive.run(600);
        let node = drive.node(1);
        assert_eq!(node.is_some(), there, "{fate:?}");
        if let Some(node) = node {
            assert!(holds(&node, "Ready", status), "{fate:?}: {node}");
            assert_eq!(node["spec"].get("taints").is_some(), tainted, "{fate:?}: {node}");
        }
        // And all of them are well when faults are over.
        drive.fault(&KubeFault::Over);
        drive.run(600);
        let node = drive.node(1).unwrap();
        assert!(holds(&node, "Ready", "True"), "{fate:?}: {node}");
        assert_eq!(node["spec"].get("taints"), None, "{fate:?}: {node}");
    }
}

#[test]
fn a_node_that_flaps_is_ready_and_not_by_turns() {
    let mut drive = Drive::new(3);
    drive.machine(1, "eu-central-1a", Fate::Flaps);
    drive.run(3600);
    let turns = drive
        .steps
        .iter()
        .filter(|it| {
            let Fact::Stored { resource: NODE, object, old: Some(old) } = &it.fact else {
                return false;
            };
            holds(object, "Ready", "True") != holds(old, "Ready", "True")
        })
        .count();
    assert!(turns > 10, "{turns}");
}

#[test]
fn a_pod_lives_from_its_creation_to_its_end() {
    let mut drive = Drive::new(4);
    drive.create(DEPLOYMENT, workload("web", 1, template("100m")));
    drive.run(60);
    let pod = drive.pods().pop().unwrap();
    assert!(holds(&pod, "PodScheduled", "False"), "nowhere to go: {pod}");
    assert_eq!(pod["status"]["phase"], "Pending");
    drive.standing(1, "eu-central-1a");
    drive.run(60);
    let pod = drive.pods().pop().unwrap();
    assert_eq!(pod["spec"]["nodeName"], "node-1");
    assert_eq!(pod["status"]["phase"], "Running");
    assert!(holds(&pod, "Ready", "True"));

    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    drive.evict(&name).unwrap();
    let going = drive.kube.server.get(POD, "shop", &name).unwrap();
    assert!(going["metadata"].get("deletionTimestamp").is_some());
    drive.run(60);
    let pods = drive.pods();
    assert_eq!(pods.len(), 1);
    assert_ne!(pods[0]["metadata"]["name"], name.as_str());
    assert!(holds(&pods[0], "Ready", "True"));
    // Who did what, in the order in which it happened to the first pod.
    let mut lived: Vec<(Actor, &str)> = Vec::new();
    for step in &drive.steps {
        let what = match &step.fact {
            Fact::Stored { object, old: None, .. } if object["metadata"]["name"] == *name => "made",
            Fact::Stored { object, old: Some(old), .. } if object["metadata"]["name"] == *name => {
                match (&old["status"]["phase"], &object["status"]["phase"]) {
                    _ if old["spec"].get("nodeName").is_none()
                        && object["spec"].get("nodeName").is_some() =>
                    {
                        "bound"
                    }
                    (before, after) if before != after => "runs",
                    _ if holds(object, "Ready", "True") && !holds(old, "Ready", "True") => "ready",
                    _ => continue,
                }
            }
            Fact::Evicted { pod, .. } if *pod == name => "evicted",
            Fact::Removed { last, .. } if last["metadata"]["name"] == *name => "gone",
            _ => continue,
        };
        lived.push((step.by, what));
    }
    let expected = [
        (Actor::Controllers, "made"),
        (Actor::Scheduler, "bound"),
        (Actor::Kubelet, "runs"),
        (Actor::Kubelet, "ready"),
        (Actor::Person, "evicted"),
        (Actor::Kubelet, "gone"),
    ];
    assert_eq!(lived, expected);
}

#[test]
fn a_deployment_follows_its_number_and_its_template() {
    let mut drive = Drive::new(5);
    for number in 1..=3 {
        drive.standing(number, "eu-central-1a");
    }
    drive.create(DEPLOYMENT, workload("web", 6, template("100m")));
    drive.run(60);
    let on = drive.ready_on();
    assert_eq!(on, ["node-1", "node-1", "node-2", "node-2", "node-3", "node-3"], "spread");
    drive.patch(DEPLOYMENT, "web", json!({ "spec": { "replicas": 2 } }));
    drive.run(60);
    assert_eq!(drive.ready_on().len(), 2);
    let before: Vec<Value> = drive.pods().iter().map(|it| it["metadata"]["uid"].clone()).collect();
    drive.patch(DEPLOYMENT, "web", json!({ "spec": { "template": template("200m") } }));
    drive.run(120);
    assert_eq!(drive.ready_on().len(), 2);
    assert!(drive.pods().iter().all(|it| !before.contains(&it["metadata"]["uid"])));
    drive.delete(DEPLOYMENT, "web");
    drive.run(120);
    assert_eq!(drive.pods().len(), 0);
}

#[test]
fn a_stateful_set_goes_one_by_one_and_keeps_names_and_places() {
    let mut drive = Drive::new(6);
    drive.standing(1, "eu-central-1a");
    drive.standing(2, "eu-central-1b");
    let mut body = workload("db", 3, template("100m"));
    body["spec"]["volumeClaimTemplates"] = json!([{ "metadata": { "name": "data" }, "spec": {} }]);
    drive.create(STATEFUL_SET, body);
    drive.run(120);
    let names: Vec<Value> = drive.pods().iter().map(|it| it["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["db-0", "db-1", "db-2"]);
    // One is made only when the one before was ready.
    let mut ready = 0;
    for step in &drive.steps {
        if let Fact::Stored { resource: POD, object, old } = &step.fact {
            match old {
                None => assert_eq!(object["metadata"]["name"], format!("db-{ready}")),
                Some(old) if holds(object, "Ready", "True") && !holds(old, "Ready", "True") => {
                    ready += 1;
                }
                Some(_) => {}
            }
        }
    }
    assert_eq!(drive.kube.server.all(VOLUME).count(), 3);

    let (uid, node) = (drive.uid("db-1"), drive.pods()[1]["spec"]["nodeName"].clone());
    drive.evict("db-1").unwrap();
    drive.run(120);
    assert_ne!(drive.uid("db-1"), uid);
    let again = drive.pods()[1].clone();
    assert!(holds(&again, "Ready", "True"));
    assert_eq!(again["spec"]["nodeName"], node, "its volume is in that zone");
    // It was gone before it was made again.
    let mut there = false;
    for step in &drive.steps {
        match &step.fact {
            Fact::Stored { resource: POD, object, old: None }
                if object["metadata"]["name"] == "db-1" =>
            {
                assert!(!there);
                there = true;
            }
            Fact::Removed { resource: POD, last } if last["metadata"]["name"] == "db-1" => {
                there = false;
            }
            _ => {}
        }
    }
    drive.patch(STATEFUL_SET, "db", json!({ "spec": { "replicas": 1 } }));
    drive.run(120);
    assert_eq!(drive.pods().len(), 1);
}

#[test]
fn a_job_works_until_it_is_done_even_if_it_is_evicted() {
    let mut drive = Drive::new(7);
    drive.standing(1, "eu-central-1a");
    let mut body = workload("sum", 0, template("100m"));
    body["spec"]["completions"] = json!(2);
    body["spec"]["template"]["metadata"]["annotations"] =
        json!({ "sim.nodemolt.dev/takes": "60s" });
    drive.create(JOB, body);
    drive.run(30);
    let name = drive.pods()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    drive.evict(&name).unwrap();
    drive.run(600);
    let job = drive.kube.server.get(JOB, "shop", "sum").unwrap();
    assert_eq!(job["status"]["succeeded"], 2);
    assert!(job["status"].get("completionTime").is_some());
    assert!(drive.pods().iter().all(|it| it["status"]["phase"] == "Succeeded"));
}

#[test]
fn a_daemon_is_on_every_node_that_it_puts_up_with() {
    let mut drive = Drive::new(8);
    drive.standing(1, "eu-central-1a");
    drive.standing(2, "eu-central-1a");
    drive.patch(
        NODE,
        "node-2",
        json!({ "spec": { "taints": [{ "key": "gpu", "effect": "NoSchedule" }] } }),
    );
    drive.create(DAEMON_SET, workload("agent", 0, template("10m")));
    drive.run(60);
    assert_eq!(drive.ready_on(), ["node-1"]);
    drive.machine(3, "eu-central-1a", Fate::Well);
    drive.run(180);
    assert_eq!(drive.ready_on(), ["node-1", "node-3"]);
    // A cordon does not drive it away.
    drive.patch(NODE, "node-1", json!({ "spec": { "unschedulable": true } }));
    drive.run(60);
    assert_eq!(drive.ready_on(), ["node-1", "node-3"]);
}

/// Where the second pod of two may be, given the first on node-1 in zone a; nodes 2 in a, 3 in b.
#[test]
fn the_scheduler_keeps_taints_cordons_spread_and_distance() {
    let anti = |key: &str| {
        json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": key, "labelSelector": { "matchLabels": { "app": "web" } } },
        ] } } })
    };
    let near = json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "topology.kubernetes.io/zone", "labelSelector": { "matchLabels": { "app": "web" } } },
    ] } } });
    let spread = json!({ "topologySpreadConstraints": [{
        "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } },
    }] });
    let zone_b = json!({ "nodeSelector": { "topology.kubernetes.io/zone": "eu-central-1b" } });
    let by_name = json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchFields": [
            { "key": "metadata.name", "operator": "In", "values": ["node-2"] },
        ] }],
    } } } });
    let taint = json!({ "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] } });
    let cordon = json!({ "spec": { "unschedulable": true } });
    let large = json!({ "containers": [{ "name": "main", "resources": { "requests": { "cpu": "1900m" } } }] });
    let nothing = json!({});
    for (what, spec, change, may) in [
        ("anything", &nothing, None, vec!["node-1", "node-2", "node-3"]),
        ("apart by node", &anti("kubernetes.io/hostname"), None, vec!["node-2", "node-3"]),
        ("apart by zone", &anti("topology.kubernetes.io/zone"), None, vec!["node-3"]),
        ("near", &near, None, vec!["node-1", "node-2"]),
        ("spread", &spread, None, vec!["node-3"]),
        ("zone", &zone_b, None, vec!["node-3"]),
        ("by name", &by_name, None, vec!["node-2"]),
        ("large", &large, None, vec!["node-2", "node-3"]),
        ("zone, tainted", &zone_b, Some(("node-3", &taint)), vec![]),
        ("zone, cordoned", &zone_b, Some(("node-3", &cordon)), vec![]),
        ("spread, cordoned", &spread, Some(("node-3", &cordon)), vec![]),
    ] {
        for seed in 0..5 {
            let mut drive = Drive::new(seed);
            for (number, zone) in [(1, "eu-central-1a"), (2, "eu-central-1a"), (3, "eu-central-1b")]
            {
                drive.standing(number, zone);
            }
            let pod = |name: &str, spec: &Value| {
                let mut pod = template("100m");
                pod["metadata"]["name"] = json!(name);
                for (key, value) in spec.as_object().unwrap() {
                    pod["spec"][key] = value.clone();
                }
                pod
            };
            let first = json!({ "nodeSelector": { "kubernetes.io/hostname": "node-1" } });
            drive.create(POD, pod("first", &first));
            drive.run(30);
            if let Some((node, change)) = change {
                drive.patch(NODE, node, change.clone());
            }
            drive.create(POD, pod("second", spec));
            drive.run(30);
            let second = drive.kube.server.get(POD, "shop", "second").unwrap();
            let on = second["spec"]["nodeName"].as_str();
            match on {
                Some(on) => assert!(may.contains(&on), "{what}: on {on}"),
                None => assert!(may.is_empty(), "{what}: nowhere"),
            }
        }
    }
}

#[test]
fn a_budget_counts_and_gives_a_place_back_that_was_not_used() {
    let mut drive = Drive::new(9);
    drive.standing(1, "eu-central-1a");
    let mut slow = template("10m");
    slow["metadata"]["annotations"] = json!({ "sim.nodemolt.dev/stops-after": "20s" });
    drive.create(DEPLOYMENT, workload("web", 4, slow));
    let selector = json!({ "matchLabels": { "app": "web" } });
    let budget = json!({ "metadata": { "name": "web" }, "spec": { "maxUnavailable": "25%", "selector": selector } });
    drive.create(PDB, budget);
    drive.run(60);
    let status =
        |drive: &Drive| drive.kube.server.get(PDB, "shop", "web").unwrap()["status"].clone();
    let counted = |it: &Value| {
        [
            "expectedPods",
            "desiredHealthy",
            "currentHealthy",
            "disruptionsAllowed",
            "observedGeneration",
        ]
        .map(|field| it[field].as_i64().unwrap())
    };
    assert_eq!(counted(&status(&drive)), [4, 3, 4, 1, 1]);
    let names: Vec<String> =
        drive.pods().iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    drive.evict(&names[0]).unwrap();
    assert_eq!(status(&drive)["disruptionsAllowed"], 0);
    assert!(drive.evict(&names[1]).is_err());
    drive.run(3);
    assert!(drive.evict(&names[1]).is_err(), "the next is not ready yet");
    drive.run(60);
    assert_eq!(counted(&status(&drive)), [4, 3, 4, 1, 1]);

    // A place that was taken for a pod that does not go is given back after two minutes.
    let body = json!({
        "kind": "Eviction", "metadata": { "name": names[2] },
        "deleteOptions": { "preconditions": { "uid": "another" } },
    });
    drive.send(Verb::Create, POD, Some(&names[2]), Some(Subresource::Eviction), body).unwrap_err();
    drive.run(110);
    assert_eq!(status(&drive)["disruptionsAllowed"], 0);
    drive.run(15);
    assert_eq!(counted(&status(&drive)), [4, 3, 4, 1, 1]);
    // A change of what is wanted is seen a little later.
    drive.patch(PDB, "web", json!({ "spec": { "maxUnavailable": 2 } }));
    assert_eq!(status(&drive)["observedGeneration"], 1);
    drive.run(5);
    assert_eq!(counted(&status(&drive)), [4, 2, 4, 2, 2]);
}

#[test]
fn pods_of_a_machine_that_died_are_made_again_elsewhere() {
    let mut drive = Drive::new(10);
    drive.standing(1, "eu-central-1a");
    drive.create(DEPLOYMENT, workload("web", 3, template("100m")));
    drive.create(DAEMON_SET, workload("agent", 0, template("10m")));
    drive.run(60);
    drive.standing(2, "eu-central-1a");
    drive.run(60);
    assert_eq!(drive.ready_on().len(), 5);
    let due = drive.kube.machine_gone("i-00000000000000001", drive.now, &mut drive.dice);
    drive.keep(due);
    drive.run(40);
    assert!(holds(&drive.node(1).unwrap(), "Ready", "True"), "nobody has noticed");
    drive.run(12);
    assert!(holds(&drive.node(1).unwrap(), "Ready", "Unknown"));
    assert_eq!(drive.ready_on(), ["node-2"], "its pods are not ready for anybody");
    drive.run(180);
    assert_eq!(drive.node(1), None);
    assert_eq!(drive.ready_on(), ["node-2"; 4]);
    assert_eq!(drive.pods().len(), 4);
}

#[test]
fn pods_leave_a_silent_node_after_five_minutes_and_go_when_it_speaks() {
    let mut drive = Drive::new(11);
    drive.standing(1, "eu-central-1a");
    drive.create(DEPLOYMENT, workload("web", 1, template("100m")));
    drive.run(60);
    drive.standing(2, "eu-central-1a");
    let id = "i-00000000000000001".to_owned();
    let fate = Fate::FallsSilentAfter(SignedDuration::ZERO);
    drive.fault(&KubeFault::Machine { id: id.clone(), fate });
    drive.run(300);
    assert!(drive.pods().iter().all(|it| it["metadata"].get("deletionTimestamp").is_none()));
    drive.run(60);
    assert_eq!(drive.ready_on(), ["node-2"]);
    assert_eq!(drive.pods().len(), 2, "nobody confirms that the first has ended");
    drive.run(3600);
    assert_eq!(drive.pods().len(), 2);
    drive.fault(&KubeFault::Machine { id, fate: Fate::Well });
    drive.run(60);
    assert_eq!(drive.pods().len(), 1);
    assert!(holds(&drive.node(1).unwrap(), "Ready", "True"));
}

#[test]
fn what_nobody_owns_and_what_is_in_a_namespace_that_goes_is_collected() {
    let mut drive = Drive::new(12);
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "c" },
        "spec": {
            "nodeClassRef": { "group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "g" },
            "requirements": [],
        },
    });
    let uid = drive.create(CLAIM, claim)["metadata"]["uid"].clone();
    drive.standing(1, "eu-central-1a");
    let owner =
        json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c", "uid": uid });
    drive.patch(NODE, "node-1", json!({ "metadata": { "ownerReferences": [owner] } }));
    drive.create(DEPLOYMENT, workload("web", 2, template("10m")));
    drive.run(60);
    assert_eq!(drive.ready_on().len(), 2);
    drive.delete(NAMESPACE, "shop");
    drive.run(120);
    assert_eq!(drive.pods().len(), 0);
    assert!(drive.kube.server.get(NAMESPACE, "", "shop").is_none());
    drive.delete(CLAIM, "c");
    drive.run(10);
    assert_eq!(drive.node(1), None);
}

#[test]
fn pods_that_are_slow_to_stop_or_never_ready_are_so_until_faults_are_over() {
    let mut drive = Drive::new(13);
    drive.standing(1, "eu-central-1a");
    let (namespace, prefix) = ("shop".to_owned(), "web-".to_owned());
    let takes = SignedDuration::from_hours(1);
    drive.fault(&KubeFault::NeverReady { namespace: namespace.clone(), prefix: prefix.clone() });
    drive.fault(&KubeFault::StopsSlowly { namespace, prefix, takes });
    drive.create(DEPLOYMENT, workload("web", 1, template("100m")));
    drive.create(DEPLOYMENT, workload("other", 1, template("100m")));
    drive.run(300);
    assert_eq!(drive.ready_on().len(), 1);
    let web = |drive: &Drive| -> Vec<String> {
        let names = drive.pods().into_iter();
        let names = names.map(|it| it["metadata"]["name"].as_str().unwrap().to_owned());
        names.filter(|it| it.starts_with("web-")).collect()
    };
    let name = web(&drive).pop().unwrap();
    drive.evict(&name).unwrap();
    drive.run(29);
    assert!(web(&drive).contains(&name), "it is still stopping");
    drive.run(2);
    assert!(!web(&drive).contains(&name), "its grace period is over");
    drive.fault(&KubeFault::Over);
    drive.run(60);
    assert_eq!(drive.ready_on().len(), 2);
}

/// Some of everything, with things going wrong.
fn life(seed: u64) -> (u64, usize) {
    let mut drive = Drive::new(seed);
    for number in 1..=4 {
        drive.standing(number, ["eu-central-1a", "eu-central-1b"][usize::from(number % 2 == 0)]);
    }
    drive.create(DEPLOYMENT, workload("web", 8, template("100m")));
    drive.create(STATEFUL_SET, workload("db", 3, template("50m")));
    drive.create(DAEMON_SET, workload("agent", 0, template("10m")));
    let selector = json!({ "matchLabels": { "app": "web" } });
    drive.create(
        PDB,
        json!({ "metadata": { "name": "b" }, "spec": { "minAvailable": 5, "selector": selector } }),
    );
    drive.run(90);
    drive.machine(5, "eu-central-1a", Fate::Flaps);
    drive.machine(6, "eu-central-1b", Fate::Well);
    drive.fault(&KubeFault::Slowness { times: 3 });
    for round in 0..20 {
        drive.run(30);
        let pods = drive.pods();
        if let Some(pod) = pods.get(round % pods.len()) {
            let _ = drive.evict(pod["metadata"]["name"].as_str().unwrap());
        }
    }
    let due = drive.kube.machine_gone("i-00000000000000002", drive.now, &mut drive.dice);
    drive.keep(due);
    drive.run(600);
    drive.fault(&KubeFault::Over);
    drive.run(1200);
    let wanted = 8 + 3 + drive.kube.server.all(NODE).count();
    assert_eq!(drive.ready_on().len(), wanted, "seed {seed}");
    let mut hasher = DefaultHasher::new();
    for step in &drive.steps {
        format!("{step:?}").hash(&mut hasher);
    }
    (hasher.finish(), drive.steps.len())
}

#[test]
fn equal_seeds_live_equal_lives() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..8 {
        let one = life(seed);
        assert_eq!(one, life(seed), "seed {seed}");
        assert!(one.1 > 200, "{}", one.1);
        seen.insert(one.0);
    }
    assert_eq!(seen.len(), 8, "other seeds live other lives");
}
