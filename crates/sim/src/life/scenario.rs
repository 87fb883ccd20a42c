//! What does the world of a random life look like?
//!
//! Small enough that a life takes a fraction of a second, and of everything that decides about replacing
//! something: two processors, unequal machines, full and empty nodes, workloads of all kinds, and people's
//! words about how many, when and how.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::images::{Arrival, Line, Plot, Publisher};
use crate::dice::Dice;

/// Mid-November, on a Monday: nothing here depends on it but schedules.
const EPOCH: &str = "2026-11-16T00:00:00Z";

const ZONES: [&str; 3] = ["eu-central-1a", "eu-central-1b", "eu-central-1c"];

/// What is made for what the class selects: a subnet in each zone, and a security group.
const NETWORK: [&str; 4] = [
    "subnet-00000000000001111",
    "subnet-00000000000002222",
    "subnet-00000000000003333",
    "sg-00000000000001111",
];

/// What a class is edited to say at boot.
const USER_DATA: &str = "#!/bin/sh\necho hello\n";

/// Images and what runs on them, by processor.
const PROCESSORS: [Processor; 2] = [
    Processor {
        word: "arm64",
        in_names: "arm64",
        digit: '0',
        types: &[("m7g.large", 1900, 6500), ("m7g.xlarge", 3900, 14000), ("c7g.large", 1900, 2900)],
    },
    Processor {
        word: "amd64",
        in_names: "x86_64",
        digit: '1',
        types: &[("m7i.large", 1900, 6500), ("m7i.xlarge", 3900, 14000), ("c7i.large", 1900, 2900)],
    },
];

struct Processor {
    word: &'static str,
    in_names: &'static str,
    digit: char,
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
    pub zones: Vec<String>,
    pub start: Timestamp,
    /// What EC2 lists: images, subnets, a security group.
    pub listed: Vec<String>,
    /// Images are one's own: their names tell no version.
    pub own_images: bool,
    /// What publishers do when the life goes on: since the start, and in the words of acts.
    pub publishing: Vec<(SignedDuration, String)>,
    /// What people may apply meanwhile: pools and the class, each with something else in it.
    pub edits: Vec<String>,
    /// By `group/name` of the class: what its nodes may run in the end, by id.
    pub expected: BTreeMap<String, BTreeSet<String>>,
}

pub(super) fn draw(dice: &mut Dice) -> Drawn {
    let mut drawing = Drawing::new(dice.fork("draw"));
    drawing.people();
    drawing.pools();
    drawing.workloads();
    drawing.finish()
}

pub(super) struct Drawing {
    pub(super) dice: Dice,
    pub(super) start: Timestamp,
    pub(super) arrival: Arrival,
    pub(super) publisher: Publisher,
    pub(super) plot: Plot,
    /// A policy says whose images may boot.
    pub(super) owners: bool,
    pub(super) documents: Vec<Value>,
    pub(super) images: Vec<Value>,
    fleet: Vec<Value>,
    pub(super) minimum_age: Option<&'static str>,
    pub(super) drawn: Drawn,
    /// By pool: thousandths of processors and MiB that workloads may use.
    pub(super) room: BTreeMap<String, (u64, u64)>,
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
            // What appears later counts from then: it would ripen after the life, and nothing would happen.
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
            zones: ZONES.map(str::to_owned).to_vec(),
            start,
            listed: NETWORK.map(str::to_owned).to_vec(),
            own_images: false,
            publishing: Vec::new(),
            edits: Vec::new(),
            expected: BTreeMap::new(),
        };
        let own = dice.chance(250);
        let publisher = if own { Publisher::Own } else { Publisher::Amazon };
        let owners = own || dice.chance(400);
        let mut drawing = Self {
            dice,
            start,
            arrival,
            publisher,
            plot: Plot::Nothing,
            owners,
            documents: Vec::new(),
            images: Vec::new(),
            fleet: Vec::new(),
            minimum_age,
            drawn,
            room: BTreeMap::new(),
        };
        drawing.drawn.own_images = own;
        drawing.plot = Plot::draw(&mut drawing);
        drawing
    }

    /// Classes and policies.
    fn people(&mut self) {
        let discovery = json!([{"tags": {"nodemolt.dev/discovery": "blue"}}]);
        let terms = match self.publisher {
            Publisher::Amazon => json!([{"alias": "al2023@latest"}]),
            Publisher::Own => json!([
                {"name": "golden-*", "owner": "self"},
                {"name": "golden-*", "owner": super::images::STRANGER},
            ]),
        };
        let mut spec = json!({
            "amiFamily": "AL2023",
            "amiSelectorTerms": terms,
            "role": "nodemolt-node",
            "subnetSelectorTerms": discovery,
            "securityGroupSelectorTerms": discovery,
        });
        let by_class = self.dice.chance(300);
        if let Some(age) = self.minimum_age.filter(|_| by_class) {
            spec["amiMinimumAge"] = json!(age);
        }
        let class = ("nodemolt.dev/v1alpha1", "EC2NodeClass", json!({"name": "general"}));
        self.document(class.0, class.1, &class.2, &spec);
        for (key, value) in [("tags", json!({"team": "blue"})), ("userData", json!(USER_DATA))] {
            let mut other = spec.clone();
            other[key] = value;
            self.edit(class.0, class.1, &class.2, &other);
        }
        let age = self.minimum_age.filter(|_| !by_class);
        if age.is_none() && !self.owners && self.dice.chance(600) {
            return;
        }
        let mut policy = json!({});
        if let Some(age) = age {
            policy["minimumAge"] = json!(age);
        }
        if self.owners {
            let account = if self.dice.chance(500) { "self" } else { "111122223333" };
            policy["owners"] = match self.publisher {
                Publisher::Amazon => json!(["amazon"]),
                Publisher::Own => json!([account]),
            };
        }
        if self.dice.chance(600) {
            policy["rollout"] = self.rollout();
        }
        self.document("nodemolt.dev/v1alpha1", "ImagePolicy", &json!({"name": "all"}), &policy);
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
            // The longer ones are longer than what anybody is late by.
            let cooldowns = [json!("2m"), json!("2m"), json!("15m"), json!("20m")];
            rollout["cooldown"] = self.one_of(&cooldowns);
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

    pub(super) fn one_of(&mut self, choices: &[Value]) -> Value {
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
            let Processor { in_names, digit, .. } = PROCESSORS[which];
            let architecture = in_names;
            let publisher = self.publisher;
            self.publish(Line { processor: in_names, architecture, digit, publisher });
        }
    }

    fn pool(&mut self, name: &str, processor: &Processor, nodes: u64) {
        let types: Vec<&str> = processor.types.iter().map(|it| it.0).collect();
        let expires = self.dice.chance(150);
        let capacity = if self.dice.chance(150) { "spot" } else { "on-demand" };
        let mut template = json!({
            "nodeClassRef": {"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "general"},
            "requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                {"key": "kubernetes.io/arch", "operator": "In", "values": [processor.word]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
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
        let mut spec = json!({"template": {"spec": template}, "disruption": disruption});
        let cores = self.group(name, processor, nodes, expires, capacity);
        if self.dice.chance(200) {
            // The largest node more than there are, and then some: whoever is replaced finds room.
            spec["limits"] = json!({"cpu": (cores + self.dice.between(4, 8)).to_string()});
        }
        self.document("karpenter.sh/v1", "NodePool", &json!({"name": name}), &spec);
        let mut labelled = spec.clone();
        labelled["template"]["metadata"]["labels"] = json!({"team": "green"});
        let mut narrower = spec;
        let kept = types.get(..2).unwrap_or_default();
        narrower["template"]["spec"]["requirements"][3]["values"] = json!(kept);
        self.edit("karpenter.sh/v1", "NodePool", &json!({"name": name}), &labelled);
        // It does not ask for the type of some of its nodes any more.
        self.edit("karpenter.sh/v1", "NodePool", &json!({"name": name}), &narrower);
        if self.dice.chance(250) {
            let amounts = [
                json!({"maxUnavailable": 1}),
                json!({"maxUnavailable": 2}),
                json!({"maxUnavailable": "30%"}),
                json!({"minAvailable": "60%"}),
            ];
            let mut spec = self.one_of(&amounts);
            spec["labelSelectors"] = json!([{"karpenter.sh/nodepool": name}]);
            if self.dice.chance(350) {
                // People wait as well; or only people do.
                let gates = [json!(["Controller", "People"]), json!(["People"])];
                spec["gates"] = self.one_of(&gates);
            }
            let kind = "NodeDisruptionBudget";
            self.document("karpenter.sh/v1alpha1", kind, &json!({"name": name}), &spec);
        }
        self.drawn.pools.push(name.to_owned());
    }

    /// The nodes of a pool, of one type or of two. How many cores they have.
    fn group(
        &mut self,
        pool: &str,
        processor: &Processor,
        nodes: u64,
        expires: bool,
        capacity: &str,
    ) -> u64 {
        let line = Line {
            processor: processor.in_names,
            architecture: processor.in_names,
            digit: processor.digit,
            publisher: self.publisher,
        };
        let old = line.name('a');
        let mut cores = 0;
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
                "image": old, "age": age, "names": names, "capacityType": capacity,
            }));
            cores += count * (cpu + 100) / 1000;
            let room = self.room.entry(pool.to_owned()).or_default();
            room.0 += cpu * count;
            room.1 += memory * count;
            self.drawn.types.push(instance_type.to_owned());
        }
        cores
    }

    pub(super) fn document(&mut self, version: &str, kind: &str, metadata: &Value, spec: &Value) {
        let document =
            json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
        self.documents.push(document);
    }

    fn edit(&mut self, version: &str, kind: &str, metadata: &Value, spec: &Value) {
        let edit = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
        self.drawn.edits.push(edit.to_string());
    }

    /// JSON is YAML.
    fn finish(self) -> Drawn {
        let simulation = json!({
            "apiVersion": "nodemolt.dev/sim",
            "kind": "Simulation",
            "start": self.start.to_string(),
            "kubernetes": "1.35",
            "replicas": self.drawn.replicas,
            "zones": self.drawn.zones,
            "images": self.images,
            "fleet": self.fleet,
        });
        let text: Vec<String> =
            std::iter::once(&simulation).chain(&self.documents).map(ToString::to_string).collect();
        Drawn { text: text.join("\n---\n"), ..self.drawn }
    }
}
