//! What does a turn cost on the processor, and how does that grow with the fleet?
//!
//! `cargo bench -p nodemolt-engine --bench turn` prints it; with `-- --check` it fails if a target is
//! missed. Nodes have 20 pods each, and every second workload has a `PodDisruptionBudget`. In one fleet a tenth of the nodes has drifted, and one in a hundred is
//! being replaced, as its budget allows; in the other all is in sync.
#![allow(clippy::unwrap_used, reason = "a benchmark may stop")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodemolt_core::budget::{Amount, DisruptionBudget, Keep};
use nodemolt_core::drain::{Pdb, UnhealthyPods};
use nodemolt_core::policy::LabelSelector;
use nodemolt_core::seen::{Node, Revision, View};
use support::{NEW_IMAGE, OLD_IMAGE, World};

/// As in the program that people run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NODES: [usize; 3] = [1_000, 3_000, 10_000];
const PODS: usize = 20;
/// Pods of each workload, each on another node.
const REPLICAS: usize = 10;
const TRIES: usize = 9;
/// A new world for each of these: what happens once happens to it no second time.
const BEGINNINGS: usize = 3;
const TARGET: Duration = Duration::from_millis(150);
const SLOPE_MAX: f64 = 1.1;

/// What is measured. The first two happen once in a process's life, or when all that EC2 says has changed:
/// no target is set for them.
const TURNS: [&str; 7] =
    ["first", "read", "start", "under way", "changing", "in sync", "sync changing"];
const TARGETED: usize = 2;

fn main() {
    let check = std::env::args().any(|it| it == "--check");
    print!("{:>7}", "nodes");
    for it in TURNS {
        print!(" {it:>13}");
    }
    println!();
    let mut rows = Vec::new();
    for nodes in NODES {
        let took: Vec<Duration> = drifting(nodes).into_iter().chain(in_sync(nodes)).collect();
        print!("{nodes:>7}");
        for it in &took {
            print!(" {it:>13.1?}");
        }
        println!();
        rows.push((nodes, took));
    }
    let (least, most) = (rows.first().unwrap(), rows.last().unwrap());
    #[expect(clippy::cast_precision_loss, reason = "thousands of nodes")]
    let ratio = most.0 as f64 / least.0 as f64;
    let slopes: Vec<f64> = (least.1.iter().zip(&most.1))
        .map(|(least, most)| (most.as_secs_f64() / least.as_secs_f64()).ln() / ratio.ln())
        .collect();
    print!("{:>7}", "slope");
    for it in &slopes {
        print!(" {it:>13.2}");
    }
    println!();
    let steady = most.1.iter().zip(&slopes).skip(TARGETED);
    let missed = steady.filter(|(took, slope)| **took > TARGET || **slope > SLOPE_MAX).count();
    if check && missed > 0 {
        eprintln!("missed: at most {TARGET:?} at 10,000 nodes and a slope of {SLOPE_MAX}");
        std::process::exit(1);
    }
}

/// The first five of [`TURNS`].
fn drifting(nodes: usize) -> [Duration; 5] {
    let mut images = vec![NEW_IMAGE; 9];
    images.push(OLD_IMAGE);
    let mut least = [Duration::MAX; 5];
    for _ in 0..BEGINNINGS {
        let mut world = fleet(nodes, &images);
        // Nothing is known of EC2; it is asked.
        least[0] = least[0].min(one(&mut world));
        // All answers are there, and every node is compared with what it should be.
        world.pass(1);
        least[1] = least[1].min(one(&mut world));
        // Until the first replacements are placed and recorded.
        for _ in 0..10 {
            let before = under_way(&world);
            world.pass(1);
            let took = one(&mut world);
            if under_way(&world) > before {
                least[2] = least[2].min(took);
                break;
            }
        }
        assert_eq!(under_way(&world), nodes / 100, "as many as the budget allows have begun");
        [least[3], least[4]] = steady(&mut world, [least[3], least[4]]);
    }
    least
}

/// The last two of [`TURNS`].
fn in_sync(nodes: usize) -> [Duration; 2] {
    let mut world = fleet(nodes, &[NEW_IMAGE]);
    world.settle();
    let took = steady(&mut world, [Duration::MAX; 2]);
    assert_eq!(under_way(&world), 0, "nobody should go");
    took
}

/// A turn in which nothing has changed but the time, and one after a node in a hundred was written to.
fn steady(world: &mut World, known: [Duration; 2]) -> [Duration; 2] {
    let mut least = known;
    for _ in 0..TRIES {
        world.pass(1);
        least[0] = least[0].min(one(world));
        world.pass(1);
        write_some(&mut world.cluster.view.borrow_mut());
        least[1] = least[1].min(one(world));
    }
    least
}

/// As a watch tells of it: whole objects, in the place of those that were there.
fn write_some(view: &mut View) {
    let written: Vec<Node> = view.nodes.values().step_by(100).cloned().collect();
    for node in written {
        let revision = Revision(format!("{}x", node.revision.0));
        view.nodes.insert(node.name.clone(), Node { revision, ..node });
    }
}

fn fleet(nodes: usize, images: &[&str]) -> World {
    let workloads = nodes * PODS / REPLICAS;
    let workload = |pod: usize| format!("web-{:05}", pod % workloads);
    let world = World::with_workloads(nodes, PODS, images, workload);
    let one_in_a_hundred = Amount::Count(u32::try_from(nodes / 100).unwrap());
    let budget = DisruptionBudget {
        name: "all".to_owned(),
        selectors: vec![BTreeMap::new()],
        keep: Ok(Keep::MaxUnavailable(one_in_a_hundred)),
        gates_controller: true,
        gates_people: false,
    };
    let mut view = world.cluster.view.borrow_mut();
    view.budgets.insert(budget.name.clone(), budget);
    for at in (0..workloads).step_by(2) {
        let pdb = pdb(&workload(at));
        view.pdbs.insert((pdb.namespace.clone(), pdb.name.clone()), Arc::new(pdb));
    }
    drop(view);
    world
}

/// Of a workload all of whose pods are ready: two of them may leave at a time.
fn pdb(workload: &str) -> Pdb {
    let selector = LabelSelector {
        labels: [("app".to_owned(), workload.to_owned())].into(),
        ..LabelSelector::default()
    };
    let all = i32::try_from(REPLICAS).unwrap();
    Pdb {
        namespace: "shop".to_owned(),
        name: workload.to_owned(),
        selector: Some(selector),
        generation: 1,
        observed_generation: 1,
        disruptions_allowed: 2,
        current_healthy: all,
        desired_healthy: all - 2,
        unhealthy_pods: UnhealthyPods::IfHealthyBudget,
        disrupted_pods: BTreeMap::new(),
    }
}

fn under_way(world: &World) -> usize {
    world.cluster.records.borrow().replacements.len()
}

/// What the turn takes, without whoever answers it.
fn one(world: &mut World) -> Duration {
    let before = processor_time();
    let turn = world.turn_alone();
    let took = processor_time().saturating_sub(before);
    world.answer_all(&turn);
    took
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
