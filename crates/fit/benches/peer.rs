//! How long does it take to pack the very pods that Karpenter has just packed?
//!
//! `cargo xtask bench pack` runs this beside Karpenter's own benchmark and gives it that benchmark's pods,
//! one to a line, as `xtask/go/bench-pack` writes them.

#[path = "pack/recipe.rs"]
#[expect(dead_code, reason = "the pods come from a file; only the pool is made here")]
mod recipe;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use nodemolt_fit::Quantity;
use nodemolt_fit::pack::{Home, pack};
use nodemolt_fit::pod::{Demand, Namespace, Pod, PodTerm, Spread, Weighted};
use nodemolt_fit::requirement::{Operator, Written};
use nodemolt_fit::selector::{NodeTerm, Selector};

fn main() -> ExitCode {
    let Some(path) = argument() else {
        // `cargo bench` runs every program; this one has nothing to do alone.
        return ExitCode::SUCCESS;
    };
    let pods = match read(&path) {
        Ok(pods) => pods,
        Err(error) => {
            eprintln!("cannot read the pods of `{path}`: {error}");
            return ExitCode::FAILURE;
        }
    };
    let pools = [recipe::pool()];
    let (cpu, wall) = (clock::on_processor(), clock::on_wall());
    let packing = pack(&pods, &[], &pools);
    let (cpu, wall) =
        (clock::on_processor().saturating_sub(cpu), clock::on_wall().saturating_sub(wall));
    let used = packing.placed.iter().filter(|it| matches!(it.home, Home::New(_))).count();
    println!(
        "ours pods={} nodes={} unplaced={} wall={} cpu={} peak={}",
        pods.len(),
        packing.new_nodes.len(),
        pods.len() - used,
        seconds(wall),
        seconds(cpu),
        peak_mib().unwrap_or(0),
    );
    ExitCode::SUCCESS
}

#[expect(clippy::disallowed_methods, reason = "a program beside the pure crate, not a part of it")]
fn argument() -> Option<String> {
    std::env::args().skip(1).find(|it| it != "--bench")
}

fn seconds(time: Duration) -> String {
    format!("{:.6}", time.as_secs_f64())
}

#[expect(clippy::disallowed_methods, reason = "a program beside the pure crate, not a part of it")]
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / 1024)
}

#[expect(clippy::disallowed_methods, reason = "a program beside the pure crate, not a part of it")]
fn read(path: &str) -> Result<Vec<Pod>, String> {
    let text = std::fs::read_to_string(path).map_err(|it| it.to_string())?;
    let namespace = Arc::new(Namespace::named("default"));
    text.lines()
        .enumerate()
        .map(|(at, line)| {
            let demand = demand(line).ok_or_else(|| format!("line {}: `{line}`", at + 1))?;
            Ok(Pod::new(&namespace, &format!("pod-{at:06}"), &Arc::new(demand)))
        })
        .collect()
}

fn demand(line: &str) -> Option<Demand> {
    let mut demand = Demand::default();
    for word in line.split(' ') {
        let (name, value) = word.split_once('=')?;
        match name {
            "cpu" => {
                let amount = Quantity::from_millis(value.parse().ok()?);
                demand.requests.insert(name.to_owned(), amount);
            }
            "memory" => {
                let amount = Quantity::from_bytes(value.parse().ok()?);
                demand.requests.insert(name.to_owned(), amount);
            }
            "label" => {
                let (key, value) = value.split_once(':')?;
                demand.labels.insert(key.to_owned(), value.to_owned());
            }
            "spread" => {
                let PodTerm { topology_key, selector, .. } = term(value)?;
                demand.spread.push(Spread { topology_key, selector, ..Spread::default() });
            }
            "near" => demand.affinity.push(term(value)?),
            "away" => demand.anti_affinity.push(term(value)?),
            "rather-away" => {
                let (weight, rest) = value.split_once(':')?;
                let weight = weight.parse().ok()?;
                demand.preferred_anti_affinity.push(Weighted { weight, term: term(rest)? });
            }
            "rather-on" => {
                let (weight, rest) = value.split_once(':')?;
                let (key, values) = rest.split_once(':')?;
                let written = Written {
                    key: key.to_owned(),
                    operator: Operator::In,
                    values: values.split('|').map(str::to_owned).collect(),
                    min_values: None,
                };
                let weight = weight.parse().ok()?;
                let term = NodeTerm::labels(vec![written]);
                demand.preferred_nodes.push(Weighted { weight, term });
            }
            _ => return None,
        }
    }
    Some(demand)
}

/// `kubernetes.io/hostname:app:nginx`.
fn term(text: &str) -> Option<PodTerm> {
    let (topology_key, label) = text.split_once(':')?;
    let selector = Selector::labels([label.split_once(':')?]);
    Some(PodTerm { topology_key: topology_key.to_owned(), selector, ..PodTerm::default() })
}

mod clock {
    use std::time::Duration;

    #[cfg(unix)]
    use rustix::time::{ClockId, Timespec, clock_gettime};

    #[cfg(unix)]
    pub(crate) fn on_processor() -> Duration {
        duration(clock_gettime(ClockId::ProcessCPUTime))
    }

    #[cfg(unix)]
    pub(crate) fn on_wall() -> Duration {
        duration(clock_gettime(ClockId::Monotonic))
    }

    #[cfg(unix)]
    fn duration(time: Timespec) -> Duration {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::from_secs(seconds)
            + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
    }

    /// Karpenter's half measures itself by a call that only Unix has; so there is no comparison elsewhere.
    #[cfg(not(unix))]
    pub(crate) fn on_processor() -> Duration {
        Duration::ZERO
    }

    #[cfg(not(unix))]
    pub(crate) fn on_wall() -> Duration {
        Duration::ZERO
    }
}
