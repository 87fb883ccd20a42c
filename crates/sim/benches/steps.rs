//! How quickly does a world go on, with all laws looked at?
//!
//! `cargo bench -p nodemolt-sim --bench steps` prints it; with `-- --check` it fails if a target is missed.
//! A step is an event that was delivered or a call that was made; ticks of clocks do not count. Every node
//! drifts and is replaced, some answers are lost, a leader crashes, and at the end all is quiet for an hour.
#![allow(clippy::unwrap_used, reason = "a benchmark may stop")]

use std::time::Duration;

use jiff::SignedDuration;
use nodemolt_sim::{Scenario, World};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Nodes, and how many steps a second there should be.
const TARGETS: [(u64, f64); 2] = [(12, 20_000.0), (100, 5_000.0)];

const NODES_PER_WORKLOAD: u64 = 4;
const PODS_PER_NODE: u64 = 8;
const TRIES: u64 = 3;

fn main() {
    let check = std::env::args().any(|it| it == "--check");
    println!(
        "{:>6} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8}",
        "nodes", "simulated", "replaced", "steps", "CPU s", "steps/s", "target"
    );
    let mut missed = false;
    for (nodes, target) in TARGETS {
        // The quickest of several: whatever else runs here only adds.
        let lived = (0..TRIES).map(|seed| live(nodes, seed));
        let best = lived.max_by(|one, other| one.pace().total_cmp(&other.pace())).unwrap();
        let (Lived { simulated, replaced, steps, took }, pace) = (&best, best.pace());
        let (hours, took) = (simulated.as_hours(), took.as_secs_f64());
        println!(
            "{nodes:>6} {hours:>8}h {replaced:>9} {steps:>9} {took:>9.2} {pace:>10.0} {target:>8.0}"
        );
        missed |= pace < target;
    }
    if check && missed {
        eprintln!("missed: there are fewer steps in a second than there should be");
        std::process::exit(1);
    }
}

struct Lived {
    simulated: SignedDuration,
    replaced: u64,
    steps: u64,
    took: Duration,
}

impl Lived {
    #[expect(clippy::cast_precision_loss, reason = "steps are far fewer than 2^52")]
    fn pace(&self) -> f64 {
        self.steps as f64 / self.took.as_secs_f64()
    }
}

fn live(nodes: u64, seed: u64) -> Lived {
    let scenario = Scenario::read("steps", &text(nodes)).unwrap();
    let mut world = World::new(&scenario, seed).unwrap();
    world.check_laws();
    // Whatever happened while the world came to be is not in the time, and so not in the steps.
    let (start, before, begun) = (world.now(), world.steps(), processor_time());
    // At first nobody leads.
    let crash = "fault crash leader for 10s";
    for act in ["fault lose-answers 5% for 20m", "run 1m", crash, "run 1h"] {
        world.act(&act.parse().unwrap()).unwrap();
    }
    // Until all are replaced and it was quiet for an hour.
    for _ in 0..12 {
        let replaced = world.laws().unwrap().completed();
        world.run(SignedDuration::from_hours(1));
        let after = world.laws().unwrap().completed();
        if after == replaced && after >= nodes {
            break;
        }
    }
    Lived {
        took: processor_time().saturating_sub(begun),
        simulated: world.now().duration_since(start),
        replaced: world.laws().unwrap().completed(),
        steps: world.steps() - before,
    }
}

fn text(nodes: u64) -> String {
    let name = |version: &str| format!("amazon-eks-node-al2023-arm64-standard-1.35-{version}");
    let discovery = json!([{"tags": {"nodemolt.dev/discovery": "blue"}}]);
    let mut documents = vec![
        json!({
            "apiVersion": "nodemolt.dev/sim", "kind": "Simulation",
            "start": "2026-11-16T00:00:00Z", "kubernetes": "1.35", "replicas": 2,
            "images": [
                {"name": name("v20260901"), "id": "ami-0000000a", "created": "2026-09-01T00:00:00Z"},
                {"name": name("v20261101"), "id": "ami-0000000b", "created": "2026-11-01T00:00:00Z"},
            ],
            "fleet": [{
                "pool": "web", "nodes": nodes, "instanceType": "m7g.xlarge",
                "image": name("v20260901"), "age": "30d",
            }],
        }),
        json!({
            "apiVersion": "nodemolt.dev/v1alpha1", "kind": "EC2NodeClass",
            "metadata": {"name": "general"},
            "spec": {
                "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodemolt-node",
                "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery,
            },
        }),
        json!({
            "apiVersion": "nodemolt.dev/v1alpha1", "kind": "ImagePolicy",
            "metadata": {"name": "all"}, "spec": {"rollout": {"concurrency": "10%"}},
        }),
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "web"},
            "spec": {
                "template": {"spec": {
                    "nodeClassRef":
                        {"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "general"},
                    "requirements": [
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
                        {
                            "key": "node.kubernetes.io/instance-type", "operator": "In",
                            "values": ["m7g.xlarge"],
                        },
                    ],
                    "expireAfter": "Never",
                }},
                "disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]},
            },
        }),
    ];
    for at in 0..nodes / NODES_PER_WORKLOAD {
        documents.extend(workload(&format!("app-{at}")));
    }
    let texts: Vec<String> = documents.iter().map(ToString::to_string).collect();
    texts.join("\n---\n")
}

fn workload(name: &str) -> [Value; 2] {
    let labels = json!({"app": name});
    let metadata = json!({"name": name, "namespace": "apps"});
    let requests = json!({"cpu": "250m", "memory": "512Mi"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {
            "replicas": NODES_PER_WORKLOAD * PODS_PER_NODE,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [
                {"name": "main", "image": "app:1", "resources": {"requests": requests}},
            ]}},
        },
    });
    let pdb = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata,
        "spec": {"maxUnavailable": "25%", "selector": {"matchLabels": labels}},
    });
    [deployment, pdb]
}

#[cfg(unix)]
fn processor_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(not(unix))]
fn processor_time() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}
