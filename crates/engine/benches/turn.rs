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
const TRIES: usize = 9;
const TARGET: Duration = Duration::from_millis(150);
const SLOPE_MAX: f64 = 1.1;

fn main() {
    let check = std::env::args().any(|it| it == "--check");
    let mut images = vec![NEW_IMAGE; 9];
    images.push(OLD_IMAGE);
    println!("{:>7} {:>10} {:>10} {:>10} {:>10}", "nodes", "first", "calm", "changing", "places");
    let mut rows = Vec::new();
    for nodes in [1_000, 3_000, 10_000] {
        let mut world = World::new(nodes, PODS, &images);
        let first = measured(|| drop(world.turn()));
        // The ledger, answers, memories of images: then the first replacement begins.
        let mut places = Duration::ZERO;
        for _ in 0..6 {
            world.pass(1);
            places = places.max(measured(|| drop(world.turn())));
        }
        let calm = quickest(|| {
            world.pass(1);
            measured(|| drop(world.turn()))
        });
        let changing = quickest(|| {
            world.pass(1);
            for (at, node) in world.cluster.view.borrow_mut().nodes.values_mut().enumerate() {
                if at % 100 == 0 {
                    node.revision = Revision(format!("{}x", node.revision.0));
                }
            }
            measured(|| drop(world.turn()))
        });
        println!("{nodes:>7} {first:>10.1?} {calm:>10.1?} {changing:>10.1?} {places:>10.1?}");
        rows.push((nodes, calm, changing));
    }
    let slope = |of: fn(&(usize, Duration, Duration)) -> Duration| {
        let (least, most) = (rows.first().unwrap(), rows.last().unwrap());
        #[expect(clippy::cast_precision_loss, reason = "thousands of nodes")]
        let ratio = most.0 as f64 / least.0 as f64;
        (of(most).as_secs_f64() / of(least).as_secs_f64()).ln() / ratio.ln()
    };
    let (calm, changing) = (slope(|it| it.1), slope(|it| it.2));
    println!("log-log slope: calm {calm:.2}, changing {changing:.2}");
    let worst = rows.last().map_or(Duration::ZERO, |it| it.2);
    let missed = worst > TARGET || calm > SLOPE_MAX || changing > SLOPE_MAX;
    if check && missed {
        eprintln!("missed: at most {TARGET:?} at 10,000 nodes and a slope of {SLOPE_MAX}");
        std::process::exit(1);
    }
}

fn quickest(mut of: impl FnMut() -> Duration) -> Duration {
    (0..TRIES).map(|_| of()).min().unwrap_or_default()
}

fn measured(work: impl FnOnce()) -> Duration {
    let before = processor_time();
    work();
    processor_time().saturating_sub(before)
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
