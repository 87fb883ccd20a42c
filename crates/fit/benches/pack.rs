//! How long does it take to pack the pods of Karpenter's own benchmark, and how does that grow?
//!
//! `cargo bench -p nodemolt-fit --bench pack`, with `-- --check` to fail where a target is missed.
//! `-- 5000` measures that many pods only. See docs/packing.md.

#[path = "pack/recipe.rs"]
mod recipe;

use std::process::ExitCode;
use std::time::Duration;

use nodemolt_fit::pack::pack;
use nodemolt_fit::pod::Pod;

const SIZES: [usize; 9] = [500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 70_000, 100_000];
const PREFERRING: usize = 4_000;
/// Each with its name in a label and a claim of its own.
const NUMBERED: usize = 20_000;

/// Other programs on the machine only ever add to the time: the quickest of a few tries is the nearest.
const TRIES: usize = 3;
const SLOPE_MAX: f64 = 1.1;
const LARGEST_MAX: Duration = Duration::from_mins(1);

struct Measured {
    pods: usize,
    nodes: usize,
    unplaced: usize,
    took: Duration,
    peak_mib: Option<u64>,
}

fn main() -> ExitCode {
    #[expect(
        clippy::disallowed_methods,
        reason = "a program beside the pure crate, not a part of it"
    )]
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let check = arguments.iter().any(|it| it == "--check");
    let sizes: Result<Vec<usize>, _> =
        arguments.iter().filter(|it| *it != "--check").map(|it| it.parse()).collect();
    let sizes = match sizes {
        Ok(sizes) if sizes.is_empty() => SIZES.to_vec(),
        Ok(sizes) => sizes,
        Err(error) => {
            eprintln!("cannot read the arguments: {error}; write --check or numbers of pods");
            return ExitCode::from(64);
        }
    };
    println!(
        "400 machines with 5 offerings, one pool, no nodes; {}; best of {TRIES}\n",
        clock::NAME
    );
    println!("   pods   nodes  unplaced     CPU s  pods/CPU s  peak MiB");
    let preferring = measure(&recipe::preferring(PREFERRING));
    let measured: Vec<Measured> = sizes
        .iter()
        .map(|size| {
            let measured = measure(&recipe::diverse(*size));
            println!("{}", row(&measured));
            measured
        })
        .collect();
    println!("{}  with preferences", row(&preferring));
    println!("{}  of a StatefulSet", row(&measure(&recipe::numbered(NUMBERED))));
    let passed = judge(&measured);
    if check && !passed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn measure(pods: &[Pod]) -> Measured {
    let pools = [recipe::pool()];
    (0..TRIES)
        .map(|_| {
            let started = clock::now();
            let packing = pack(pods, &[], &pools);
            let took = clock::now().saturating_sub(started);
            Measured {
                pods: pods.len(),
                nodes: packing.new_nodes.len(),
                unplaced: packing.unplaced.len(),
                took,
                peak_mib: peak_mib(),
            }
        })
        .min_by_key(|it| it.took)
        .expect("it was tried")
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn row(it: &Measured) -> String {
    let seconds = it.took.as_secs_f64();
    let peak = it.peak_mib.map_or("?".to_owned(), |it| it.to_string());
    let rate = it.pods as f64 / seconds.max(1e-9);
    let (pods, nodes, unplaced) = (it.pods, it.nodes, it.unplaced);
    format!("{pods:>7} {nodes:>7} {unplaced:>9} {seconds:>9.4} {rate:>11.0} {peak:>9}")
}

/// Of the process so far: sizes are measured in ascending order.
#[expect(clippy::disallowed_methods, reason = "a program beside the pure crate, not a part of it")]
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / 1024)
}

fn judge(measured: &[Measured]) -> bool {
    let word = |passed: bool| if passed { "pass" } else { "miss" };
    let slope = slope(measured);
    let flat = measured.len() < 2 || slope <= SLOPE_MAX;
    println!("\n{}: log-log slope {slope:.3}, at most {SLOPE_MAX}", word(flat));
    let all = measured.iter().all(|it| it.unplaced == 0 && it.nodes * 5 <= it.pods.max(5));
    println!("{}: every pod has a place, on a node for every five at most", word(all));
    let quick = measured.last().is_some_and(|it| it.took < LARGEST_MAX);
    println!("{}: the largest below {} s", word(quick), LARGEST_MAX.as_secs());
    flat && all && quick
}

/// Least squares over the logarithms: 1 where ten times the pods take ten times as long.
#[expect(clippy::cast_precision_loss, reason = "sizes are small numbers")]
fn slope(measured: &[Measured]) -> f64 {
    let points: Vec<(f64, f64)> = measured
        .iter()
        .map(|it| ((it.pods as f64).ln(), it.took.as_secs_f64().max(1e-9).ln()))
        .collect();
    let number = points.len() as f64;
    let mean_x = points.iter().map(|it| it.0).sum::<f64>() / number;
    let mean_y = points.iter().map(|it| it.1).sum::<f64>() / number;
    let above: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let below: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    above / below
}

#[cfg(unix)]
mod clock {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    pub(crate) const NAME: &str = "time on the processor, one thread";

    pub(crate) fn now() -> Duration {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(now.tv_nsec).unwrap_or(0))
    }
}

#[cfg(not(unix))]
mod clock {
    use std::sync::LazyLock;
    use std::time::Duration;

    pub(crate) const NAME: &str = "time on the wall, one thread";

    #[expect(clippy::disallowed_types, reason = "a program beside the pure crate")]
    pub(crate) fn now() -> Duration {
        static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }
}
