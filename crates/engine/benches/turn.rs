//! What does a turn cost on the processor, and how does that grow with the fleet?
//!
//! `cargo bench -p nodemolt-engine --bench turn` prints it; with `-- --check` it fails if a target is
//! missed. Nodes have 20 pods each, and a tenth of them has drifted.
#![allow(clippy::unwrap_used, reason = "a benchmark may stop")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use nodemolt_core::seen::Revision;
use support::{NEW_IMAGE, OLD_IMAGE, World};

const PODS: usize = 20;
/// Pods of each workload, each on another node.
const REPLICAS: usize = 10;
const TRIES: usize = 9;
/// A new world for each of these: what happens once happens to it no second time.
const BEGINNINGS: usize = 3;
const TARGET: Duration = Duration::from_millis(150);
const SLOPE_MAX: f64 = 1.1;

/// What is measured, in the order of a world's first turns.
const TURNS: [&str; 5] = ["first", "read", "start", "calm", "changing"];

fn main() {
    let check = std::env::args().any(|it| it == "--check");
    print!("{:>7}", "nodes");
    for it in TURNS {
        print!(" {it:>10}");
    }
    println!();
    let mut rows = Vec::new();
    for nodes in [1_000, 3_000, 10_000] {
        let took = turns(nodes);
        print!("{nodes:>7}");
        for it in &took {
            print!(" {it:>10.1?}");
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
        print!(" {it:>10.2}");
    }
    println!();
    // The first two happen once in a process's life, or when all that EC2 says has changed.
    let steady = most.1.iter().zip(&slopes).skip(2);
    let missed = steady.filter(|(took, slope)| **took > TARGET || **slope > SLOPE_MAX).count();
    if check && missed > 0 {
        eprintln!("missed: at most {TARGET:?} at 10,000 nodes and a slope of {SLOPE_MAX}");
        std::process::exit(1);
    }
}

/// In the order of [`TURNS`].
fn turns(nodes: usize) -> [Duration; 5] {
    let mut images = vec![NEW_IMAGE; 9];
    images.push(OLD_IMAGE);
    let mut least = [Duration::MAX; 5];
    for _ in 0..BEGINNINGS {
        let workloads = nodes * PODS / REPLICAS;
        let workload = |pod: usize| format!("web-{:05}", pod % workloads);
        let mut world = World::with_workloads(nodes, PODS, &images, workload);
        // Nothing is known of EC2; it is asked.
        least[0] = least[0].min(one(&mut world));
        // All answers are there, and every node is compared with what it should be.
        world.pass(1);
        least[1] = least[1].min(one(&mut world));
        // Until the first replacement is placed and recorded.
        for _ in 0..10 {
            let before = world.cluster.records.borrow().replacements.len();
            world.pass(1);
            let took = one(&mut world);
            if world.cluster.records.borrow().replacements.len() > before {
                least[2] = least[2].min(took);
                break;
            }
        }
        assert_ne!(least[2], Duration::MAX, "nothing was ever begun");
        for _ in 0..TRIES {
            world.pass(1);
            least[3] = least[3].min(one(&mut world));
            // One node in a hundred has been written to.
            world.pass(1);
            for node in world.cluster.view.borrow_mut().nodes.values_mut().step_by(100) {
                node.revision = Revision(format!("{}x", node.revision.0));
            }
            least[4] = least[4].min(one(&mut world));
        }
    }
    least
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
