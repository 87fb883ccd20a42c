//! What does the world of a random life look like?
//!
//! Small enough that a life takes a fraction of a second, and of everything that decides about replacing
//! something: two processors, unequal machines, full and empty nodes, workloads of all kinds, and people's
//! words about how many, when and how.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::dice::Dice;

/// Mid-November, on a Monday: nothing here depends on it but schedules.
const EPOCH: &str = "2026-11-16T00:00:00Z";

/// Images and what runs on them, by processor.
const PROCESSORS: [Processor; 2] = [
    Processor {
        word: "arm64",
        in_names: "arm64",
        types: &[("m7g.large", 1900, 6500), ("m7g.xlarge", 3900, 14000), ("c7g.large", 1900, 2900)],
    },
    Processor {
        word: "amd64",
        in_names: "x86_64",
        types: &[("m7i.large", 1900, 6500), ("m7i.xlarge", 3900, 14000), ("c7i.large", 1900, 2900)],
    },
];

struct Processor {
    word: &'static str,
    in_names: &'static str,
    /// Name, and about how many thousandths of a processor and MiB there are for pods.
    types: &'static [(&'static str, u64, u64)],
}

/// A world that was drawn, and what the rest of the life has to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// As `Scenario::read` takes it.
    pub text: String,
    pub replicas: u8,
    pub pools: Vec<String>,
    /// Node and claim.
    pub nodes: Vec<(String, String)>,
    /// Namespace and name of each `PodDisruptionBudget`.
    pub pdbs: Vec<(String, String)>,
    pub types: Vec<String>,
    /// Images that are published when the life goes on: their names.
    pub to_publish: Vec<String>,
    /// By `group/name` of the class: what its nodes may run in the end, by id.
    pub expected: BTreeMap<String, BTreeSet<String>>,
}

/// How the new image comes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Arrival {
    /// It is there, and old enough.
    There,
    /// It is there, and will be old enough some minutes after the start.
    Ripens,
    Published,
}

pub(super) fn draw(dice: &mut Dice) -> Drawn {
    let mut drawing = Drawing::new(dice.fork("draw"));
    drawing.people();
    drawing.pools();
    drawing.workloads();
    drawing.finish()
}

struct Drawing {
    dice: Dice,
    start: Timestamp,
    arrival: Arrival,
    documents: Vec<Value>,
    images: Vec<Value>,
    fleet: Vec<Value>,
    minimum_age: Option<&'static str>,
    drawn: Drawn,
    /// By pool: thousandths of processors and MiB that workloads may use.
    room: BTreeMap<String, (u64, u64)>,
}

impl Drawing {
    fn new(mut dice: Dice) -> Self {
        let epoch: Timestamp = EPOCH.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let hours = i64::try_from(dice.below(7 * 24)).unwrap_or(0);
        let start = epoch.saturating_add(SignedDuration::from_hours(hours)).unwrap_or(epoch);
        let arrival = *dice
            .pick(&[Arrival::There, Arrival::There, Arrival::Ripens, Arrival::Published])
            .unwrap_or(&Arrival::There);
        let minimum_age = match arrival {
            Arrival::There => dice.chance(500).then_some("7d"),
            Arrival::Ripens => Some("7d"),
            // What appears later counts from then: it would ripen after the life.
            Arrival::Published => None,
        };
        let replicas = u8::try_from(dice.between(1, 3)).unwrap_or(1);
        let drawn = Drawn {
            text: String::new(),
            replicas,
            pools: Vec::new(),
            nodes: Vec::new(),
            pdbs: Vec::new(),
            types: Vec::new(),
            to_publish: Vec::new(),
            expected: BTreeMap::new(),
        };
        Self {
            dice,
            start,
            arrival,
            documents: Vec::new(),
            images: Vec::new(),
            fleet: Vec::new(),
            minimum_age,
            drawn,
            room: BTreeMap::new(),
        }
    }

    /// Classes and policies.
    fn people(&mut self) {
        let discovery = json!([{"tags": {"nodemolt.dev/discovery": "blue"}}]);
        let mut spec = json!({
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "role": "nodemolt-node",
            "subnetSelectorTerms": discovery,
            "securityGroupSelectorTerms": discovery,
        });
        let by_class = self.dice.chance(300);
        if let Some(age) = self.minimum_age.filter(|_| by_class) {
            spec["amiMinimumAge"] = json!(age);
        }
        self.document("nodemolt.dev/v1alpha1", "EC2NodeClass", json!({"name": "general"}), spec);
        let age = self.minimum_age.filter(|_| !by_class);
        if age.is_none() && self.dice.chance(300) {
            return;
        }
        let mut policy = json!({});
        if let Some(age) = age {
            policy["minimumAge"] = json!(age);
        }
        if self.dice.chance(500) {
            policy["owners"] = json!(["amazon"]);
        }
        if self.dice.chance(600) {
            policy["rollout"] = self.rollout();
        }
        self.document("nodemolt.dev/v1alpha1", "ImagePolicy", json!({"name": "all"}), policy);
    }

    fn rollout(&mut self) -> Value {
        let mut rollout = json!({});
        if self.dice.chance(650) {
            let choices = [
                (json!(1), None),
                (json!(2), None),
                (json!(3), None),
                (json!("25%"), None),
                (json!("Parallel"), None),
                (json!("30%"), Some("CPU")),
                (json!("Parallel"), Some("CPU")),
            ];
            if let Some((concurrency, unit)) = self.dice.pick(&choices) {
                rollout["concurrency"] = concurrency.clone();
                if let Some(unit) = unit {
                    rollout["unit"] = json!(unit);
                }
            }
        }
        if self.dice.chance(150) {
            rollout["cooldown"] = json!("2m");
        }
        if self.dice.chance(250) {
            let actions = [json!("Skip"), json!("Wait"), json!("Force")];
            rollout["drainLimitAction"] = self.one_of(&actions);
        }
        if self.dice.chance(300) {
            rollout["barePods"] = json!("Evict");
        }
        if self.dice.chance(60) {
            rollout["replacement"] = json!("DeleteFirst");
        }
        if self.dice.chance(120) {
            rollout["windows"] = json!({"allow": [{"schedule": "@hourly", "duration": "40m"}]});
        }
        rollout
    }

    fn one_of(&mut self, choices: &[Value]) -> Value {
        self.dice.pick(choices).cloned().unwrap_or_default()
    }

    fn pools(&mut self) {
        let mut left = self.dice.between(8, 14);
        let names = ["web", "data", "batch"];
        let count = usize::try_from(self.dice.between(1, 3)).unwrap_or(1);
        let mut processors = BTreeSet::new();
        for (at, name) in names.into_iter().take(count).enumerate() {
            let others = u64::try_from(count - at - 1).unwrap_or(0);
            let nodes = if others == 0 { left } else { self.dice.between(2, left - 2 * others) };
            left -= nodes;
            let which = usize::try_from(self.dice.below(2)).unwrap_or(0);
            processors.insert(which);
            self.pool(name, &PROCESSORS[which], nodes);
        }
        for which in processors {
            self.publish(&PROCESSORS[which]);
        }
    }

    fn pool(&mut self, name: &str, processor: &Processor, nodes: u64) {
        let types: Vec<&str> = processor.types.iter().map(|it| it.0).collect();
        let expires = self.dice.chance(150);
        let mut template = json!({
            "nodeClassRef": {"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "general"},
            "requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "kubernetes.io/arch", "operator": "In", "values": [processor.word]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
            ],
            "expireAfter": if expires { "720h" } else { "Never" },
        });
        if self.dice.chance(80) {
            template["terminationGracePeriod"] = json!("10m");
        }
        let mut budgets = match self.dice.below(4) {
            0 => json!([{"nodes": "1"}]),
            1 => json!([{"nodes": "50%"}]),
            2 => json!([{"nodes": "100%"}]),
            _ => json!([{"nodes": "2", "reasons": ["Drifted"]}]),
        };
        if self.dice.chance(150)
            && let Some(all) = budgets.as_array_mut()
        {
            all.push(json!({"nodes": "0", "schedule": "*/20 * * * *", "duration": "5m"}));
        }
        let disruption = json!({"consolidateAfter": "Never", "budgets": budgets});
        let spec = json!({"template": {"spec": template}, "disruption": disruption});
        self.document("karpenter.sh/v1", "NodePool", json!({"name": name}), spec);
        self.group(name, processor, nodes, expires);
        if self.dice.chance(250) {
            let amounts = [
                json!({"maxUnavailable": 1}),
                json!({"maxUnavailable": 2}),
                json!({"maxUnavailable": "30%"}),
                json!({"minAvailable": "60%"}),
            ];
            let mut spec = self.one_of(&amounts);
            spec["labelSelectors"] = json!([{"karpenter.sh/nodepool": name}]);
            let kind = "NodeDisruptionBudget";
            self.document("karpenter.sh/v1alpha1", kind, json!({"name": name}), spec);
        }
        self.drawn.pools.push(name.to_owned());
    }

    /// The nodes of a pool, of one type or of two.
    fn group(&mut self, pool: &str, processor: &Processor, nodes: u64, expires: bool) {
        let old = format!("amazon-eks-node-al2023-{}-standard-1.35-v20260901", processor.in_names);
        let first = if nodes > 2 && self.dice.chance(600) {
            self.dice.between(1, nodes - 1)
        } else {
            nodes
        };
        let mut at = 0;
        for count in [first, nodes - first].into_iter().filter(|it| *it > 0) {
            let Some((instance_type, cpu, memory)) = self.dice.pick(processor.types).copied()
            else {
                continue;
            };
            let names: Vec<String> =
                (at..at + count).map(|it| format!("{pool}-node-{it}")).collect();
            let claims = (at..at + count).map(|it| format!("{pool}-{it}"));
            self.drawn.nodes.extend(names.iter().cloned().zip(claims));
            at += count;
            // Of those that expire, some do in the middle of the life.
            let age = if expires { "719h50m" } else { "30d" };
            self.fleet.push(json!({
                "pool": pool, "nodes": count, "instanceType": instance_type,
                "image": old, "age": age, "names": names,
            }));
            let room = self.room.entry(pool.to_owned()).or_default();
            room.0 += cpu * count;
            room.1 += memory * count;
            self.drawn.types.push(instance_type.to_owned());
        }
    }

    /// The image that the nodes run, and the one that they should.
    fn publish(&mut self, processor: &Processor) {
        let name = |version: &str| {
            format!("amazon-eks-node-al2023-{}-standard-1.35-{version}", processor.in_names)
        };
        let id = |digit: char| {
            format!("ami-{}{digit}", if processor.word == "arm64" { "0000000" } else { "1000000" })
        };
        let days = |count: i64| SignedDuration::from_hours(24 * count);
        let before =
            |age: SignedDuration| self.start.saturating_sub(age).unwrap_or(self.start).to_string();
        self.images
            .push(json!({"name": name("v20260901"), "id": id('a'), "created": before(days(60))}));
        let class = "nodemolt.dev/general".to_owned();
        match self.arrival {
            Arrival::There => {
                let created = before(days(10));
                self.images
                    .push(json!({"name": name("v20261101"), "id": id('b'), "created": created}));
            }
            Arrival::Ripens => {
                let created = before(days(7) - SignedDuration::from_mins(7));
                self.images
                    .push(json!({"name": name("v20261101"), "id": id('b'), "created": created}));
            }
            Arrival::Published => {
                self.drawn.to_publish.push(format!("{} --id {}", name("v20261101"), id('b')));
            }
        }
        self.drawn.expected.entry(class).or_default().insert(id('b'));
    }

    fn workloads(&mut self) {
        let pools = self.drawn.pools.clone();
        for pool in &pools {
            let room = self.room.get(pool).copied().unwrap_or_default();
            // More than half full, less than all: with room enough that some nodes are spare.
            let share = self.dice.between(30, 65);
            let mut left = (room.0 * share / 100, room.1 * share / 100);
            for at in 0..self.dice.between(2, 5) {
                self.workload(pool, at, &mut left);
            }
        }
        if self.dice.chance(500) {
            self.daemons();
        }
    }

    fn workload(&mut self, pool: &str, at: u64, left: &mut (u64, u64)) {
        let name = format!("{pool}-app-{at}");
        let stateful = self.dice.chance(250);
        let replicas = self.dice.between(1, 4);
        let (cpu, memory) = (100 * self.dice.between(2, 7), 128 * self.dice.between(2, 6));
        if cpu * replicas > left.0 || memory * replicas > left.1 {
            return;
        }
        *left = (left.0 - cpu * replicas, left.1 - memory * replicas);
        let mut metadata = json!({"labels": {"app": name}});
        if self.dice.chance(50) {
            metadata["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        }
        let mut pod = self.pod_spec(cpu, memory);
        if self.dice.chance(700) {
            pod["nodeSelector"] = json!({"karpenter.sh/nodepool": pool});
        }
        let selector = json!({"matchLabels": {"app": name}});
        let called = json!({"name": name, "namespace": "apps"});
        if self.dice.chance(70) {
            // Nobody would start this one again.
            metadata["name"] = json!(name);
            metadata["namespace"] = json!("apps");
            self.document("v1", "Pod", metadata, pod);
            return;
        }
        let mut spec = json!({
            "replicas": replicas,
            "selector": selector,
            "template": {"metadata": metadata, "spec": pod},
        });
        if stateful {
            spec["serviceName"] = json!(name);
            self.document("apps/v1", "StatefulSet", called.clone(), spec);
        } else {
            self.document("apps/v1", "Deployment", called.clone(), spec);
        }
        if self.dice.chance(550) {
            let mut amounts = vec![json!({"maxUnavailable": 1}), json!({"maxUnavailable": "50%"})];
            if replicas > 1 {
                amounts.push(json!({"minAvailable": replicas - 1}));
            }
            let mut spec = self.one_of(&amounts);
            // A budget that never allows anything: its nodes wait for a person.
            if self.dice.chance(60) {
                spec = json!({"maxUnavailable": 0});
            }
            spec["selector"] = selector;
            self.document("policy/v1", "PodDisruptionBudget", called, spec);
            self.drawn.pdbs.push(("apps".to_owned(), name));
        }
    }

    fn pod_spec(&mut self, cpu: u64, memory: u64) -> Value {
        let requests = json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")});
        json!({
            "terminationGracePeriodSeconds": self.dice.between(2, 45),
            "containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}],
        })
    }

    fn daemons(&mut self) {
        let mut pod = self.pod_spec(50, 64);
        pod["tolerations"] = json!([{"operator": "Exists"}]);
        let labels = json!({"app": "agent"});
        let spec = json!({
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        });
        let called = json!({"name": "agent", "namespace": "kube-system"});
        self.document("apps/v1", "DaemonSet", called, spec);
    }

    fn document(&mut self, version: &str, kind: &str, metadata: Value, spec: Value) {
        self.documents
            .push(json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}));
    }

    /// JSON is YAML.
    fn finish(self) -> Drawn {
        let simulation = json!({
            "apiVersion": "nodemolt.dev/sim",
            "kind": "Simulation",
            "start": self.start.to_string(),
            "kubernetes": "1.35",
            "replicas": self.drawn.replicas,
            "images": self.images,
            "fleet": self.fleet,
        });
        let text: Vec<String> =
            std::iter::once(&simulation).chain(&self.documents).map(ToString::to_string).collect();
        Drawn { text: text.join("\n---\n"), ..self.drawn }
    }
}
