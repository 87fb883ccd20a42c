//! Which pods and machines does Karpenter's own scheduling benchmark have?
//!
//! After `scheduling_benchmark_test.go` and the fake cloud provider of sigs.k8s.io/karpenter v1.14.1:
//! 400 machines with 5 offerings each, one pool, no nodes; a fifth each of plain pods, pods spread over
//! zones, pods spread over nodes, pods that gather in a zone and pods that want a node of their own.
//! The dice are ours: only the mix is the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodemolt_fit::Quantity;
use nodemolt_fit::label;
use nodemolt_fit::pod::{Demand, Namespace, Pod, PodTerm, Spread, Volume, Weighted};
use nodemolt_fit::pool::{Machine, Offering, Pool, Price};
use nodemolt_fit::requirement::{Operator, Written};
use nodemolt_fit::selector::{Labels, NodeTerm, Selector};

const MACHINES: i64 = 400;
const CPU_MILLIS: [i64; 5] = [100, 250, 500, 1000, 1500];
const MEMORY_MIB: [i64; 6] = [100, 256, 512, 1024, 2048, 4096];
const LETTERS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const OFFERINGS: [(&str, &str); 5] = [
    ("test-zone-1", "spot"),
    ("test-zone-2", "spot"),
    ("test-zone-1", "on-demand"),
    ("test-zone-2", "on-demand"),
    ("test-zone-3", "on-demand"),
];

/// Splitmix64.
pub(crate) struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % u64::try_from(end).unwrap_or(1)).unwrap_or(0)
    }

    fn requests(&mut self) -> BTreeMap<String, Quantity> {
        let cpu = CPU_MILLIS[self.below(CPU_MILLIS.len())];
        let memory = MEMORY_MIB[self.below(MEMORY_MIB.len())];
        BTreeMap::from([
            ("cpu".to_owned(), Quantity::from_millis(cpu)),
            ("memory".to_owned(), Quantity::from_mebibytes(memory)),
        ])
    }

    fn letter(&mut self) -> &'static str {
        LETTERS[self.below(LETTERS.len())]
    }
}

pub(crate) fn pool() -> Pool {
    let machine = |at: i64| {
        let (cpu, gib, pods) = (at + 1, 2 * (at + 1), 10 * (at + 1));
        // 0.1 for each CPU and for each 10^9 bytes, in billionths.
        let price = 100_000_000 * cpu + gib * (1 << 30) / 10;
        let large = cpu > 4 && gib > 8;
        let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut say = |key: &str, values: &[&str]| {
            labels.insert(key.to_owned(), values.iter().map(|it| (*it).to_owned()).collect());
        };
        say(label::INSTANCE_TYPE, &[&format!("fake-it-{at}")]);
        say(label::ARCH, &["amd64"]);
        say(label::OS, &["darwin", "linux", "windows"]);
        say("size", &[if large { "large" } else { "small" }]);
        say("integer", &[&cpu.to_string()]);
        if large {
            say("special", &["optional"]);
        }
        let amounts = |cpu: Quantity, memory: Quantity| {
            BTreeMap::from([
                ("cpu".to_owned(), cpu),
                ("memory".to_owned(), memory),
                ("pods".to_owned(), Quantity::from_units(pods)),
            ])
        };
        let price = u64::try_from(price).ok().map(Price);
        Machine {
            name: format!("fake-it-{at}"),
            labels,
            capacity: amounts(Quantity::from_units(cpu), Quantity::from_gibibytes(gib)),
            // 100m and 10Mi are the kubelet's.
            allocatable: amounts(
                Quantity::from_millis(1000 * cpu - 100),
                Quantity::from_mebibytes(1024 * gib - 10),
            ),
            volume_limits: BTreeMap::new(),
            offerings: OFFERINGS
                .iter()
                .map(|(zone, kind)| Offering::new(zone, kind, price))
                .collect(),
        }
    };
    Pool {
        name: "default".to_owned(),
        limits: BTreeMap::from([
            ("cpu".to_owned(), Quantity::from_units(10_000_000)),
            ("memory".to_owned(), Quantity::from_gibibytes(10_000_000)),
        ]),
        machines: Arc::new((0..MACHINES).map(machine).collect()),
        ..Pool::default()
    }
}

fn labels(key: &str, value: &str) -> Labels {
    Labels::from([(key.to_owned(), value.to_owned())])
}

fn term(key: &str, label: (&str, &str)) -> PodTerm {
    PodTerm {
        topology_key: key.to_owned(),
        selector: Selector::labels([label]),
        ..PodTerm::default()
    }
}

pub(crate) fn diverse(count: usize) -> Vec<Pod> {
    let mut dice = Dice(42);
    let namespace = Arc::new(Namespace::named("default"));
    let part = count / 5;
    (0..count)
        .map(|at| {
            let requests = dice.requests();
            let mut demand = Demand { requests, ..Demand::default() };
            match at.checked_div(part).unwrap_or(5) {
                kind @ (1 | 2) => {
                    demand.labels = labels("my-label", dice.letter());
                    demand.spread = vec![Spread {
                        topology_key: [label::ZONE, label::HOSTNAME][kind - 1].to_owned(),
                        selector: Selector::labels([("my-label", dice.letter())]),
                        ..Spread::default()
                    }];
                }
                3 => {
                    let letter = dice.letter();
                    demand.labels = labels("my-affininity", letter);
                    demand.affinity = vec![term(label::ZONE, ("my-affininity", letter))];
                }
                4 => {
                    demand.labels = labels("app", "nginx");
                    demand.anti_affinity = vec![term(label::HOSTNAME, ("app", "nginx"))];
                }
                _ => demand.labels = labels("my-label", dice.letter()),
            }
            Pod::new(&namespace, &format!("pod-{at:06}"), &Arc::new(demand))
        })
        .collect()
}

pub(crate) fn preferring(count: usize) -> Vec<Pod> {
    let namespace = Arc::new(Namespace::named("default"));
    let nginx = ("app", "nginx");
    let zone = Written {
        key: label::ZONE.to_owned(),
        operator: Operator::In,
        values: vec!["test-zone-1".to_owned()],
        min_values: None,
    };
    let demand = Arc::new(Demand {
        labels: labels("app", "nginx"),
        requests: Dice(42).requests(),
        preferred_nodes: vec![Weighted { weight: 1, term: NodeTerm::labels(vec![zone]) }],
        preferred_anti_affinity: vec![
            Weighted { weight: 10, term: term(label::ZONE, nginx) },
            Weighted { weight: 1, term: term(label::HOSTNAME, nginx) },
        ],
        ..Demand::default()
    });
    (0..count).map(|at| Pod::new(&namespace, &format!("pod-{at:06}"), &demand)).collect()
}

/// Pods of one `StatefulSet`: each has its own name in a label, and a claim that is made for it alone. Karpenter's
/// benchmark has none of them; clusters do.
#[allow(dead_code, reason = "the half that runs beside Karpenter has no such pods")]
pub(crate) fn numbered(count: usize) -> Vec<Pod> {
    let namespace = Arc::new(Namespace::named("default"));
    let requests = Dice(42).requests();
    let pod = |at: usize| {
        let name = format!("db-{at}");
        let mut labels = labels("app", "db");
        labels.insert("statefulset.kubernetes.io/pod-name".to_owned(), name.clone());
        let volume = Volume {
            handle: "data".to_owned(),
            driver: Some("ebs.csi.aws.com".to_owned()),
            reach: None,
            own: true,
        };
        let demand = Demand {
            labels,
            requests: requests.clone(),
            spread: vec![Spread {
                topology_key: label::ZONE.to_owned(),
                selector: Selector::labels([("app", "db")]),
                ..Spread::default()
            }],
            volumes: vec![volume],
            ..Demand::default()
        };
        Pod::new(&namespace, &name, &Arc::new(demand))
    };
    (0..count).map(pod).collect()
}
