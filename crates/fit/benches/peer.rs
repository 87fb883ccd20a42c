//! How long does it take to pack the very pods that Karpenter has just packed, and is either packing right?
//!
//! `cargo xtask bench pack` runs this beside Karpenter's own benchmark and gives it that benchmark's pods,
//! one to a line, and its answer, as `xtask/go/bench-pack` writes them. Both answers go to the checker of our
//! tests, which shares no line with what packs.

#[path = "../tests/pack/check.rs"]
#[expect(clippy::unwrap_used, reason = "a broken answer should stop the benchmark")]
mod check;
#[path = "pack/recipe.rs"]
#[expect(dead_code, reason = "the pods come from a file; only the pool is made here")]
mod recipe;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use nodemolt_fit::pack::{Choice, Home, NewNode, Packing, Placed, Unplaced, Why, pack};
use nodemolt_fit::pod::{Demand, Namespace, Pod, PodTerm, Spread, Weighted};
use nodemolt_fit::pool::Pool;
use nodemolt_fit::requirement::{Operator, Written};
use nodemolt_fit::selector::{NodeTerm, Selector};
use nodemolt_fit::{Quantity, label};

/// Which machine each new node turns out to be is rolled so often.
const ROLLS: [usize; 3] = [0, 1, 5];
/// So many faults are told.
const TOLD: usize = 3;

fn main() -> ExitCode {
    let mut arguments = arguments().into_iter();
    let Some(path) = arguments.next() else {
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
    let faults = check::faults(&pods, &[], &pools, &packing, &ROLLS);
    tell("ours", &faults);
    let Some(answer) = arguments.next() else { return ExitCode::SUCCESS };
    let theirs = match read_answer(&answer, &pods, &pools[0]) {
        Ok(theirs) => theirs,
        Err(error) => {
            eprintln!("cannot read the answer in `{answer}`: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Their order is not told: one is looked for. It counts how the worst of the rolls ends.
    let mut faults = check::faults(&pods, &[], &pools, &theirs, &[]);
    if faults.is_empty() {
        let rolls = ROLLS.iter().map(|roll| {
            check::stuck(&pods, &[], &pools, &theirs, (*roll, check::Arrival::WhenAsked))
        });
        faults = rolls.max_by_key(Vec::len).unwrap_or_default();
    }
    tell("theirs", &faults);
    ExitCode::SUCCESS
}

fn tell(whose: &str, faults: &[String]) {
    println!("checked whose={whose} faults={}", faults.len());
    for fault in faults.iter().take(TOLD) {
        println!("fault {whose}: {fault}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a program beside the pure crate, not a part of it")]
fn arguments() -> Vec<String> {
    std::env::args().skip(1).filter(|it| it != "--bench").collect()
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

/// Karpenter's packing in our words. A claim carries the instance types that remain, beside what it requires.
#[expect(clippy::disallowed_methods, reason = "a program beside the pure crate, not a part of it")]
fn read_answer(path: &str, pods: &[Pod], pool: &Pool) -> Result<Packing, String> {
    let text = std::fs::read_to_string(path).map_err(|it| it.to_string())?;
    let mut lines = text.lines();
    let queue = lines.next().and_then(|it| it.strip_prefix("queue=")).ok_or("no queue")?;
    let mut packing = Packing::default();
    let mut homes: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, line) in lines.enumerate() {
        let (node, own) =
            new_node(line, pods, pool).ok_or_else(|| format!("line {}: `{line}`", at + 2))?;
        homes.extend(own.into_iter().map(|it| (it, at)));
        packing.new_nodes.push(node);
    }
    for number in queue.split('|') {
        let number: usize = number.parse().map_err(|_| format!("`{number}` is no number"))?;
        let pod = pods.get(number).ok_or_else(|| format!("there is no pod {number}"))?.id();
        if let Some(at) = homes.get(&number) {
            packing.placed.push(Placed { pod, home: Home::New(*at), relaxed: Vec::new() });
        } else {
            let why = Why::NoPlace { nearest: None };
            packing.unplaced.push(Unplaced { pod, why });
        }
    }
    Ok(packing)
}

fn new_node(line: &str, pods: &[Pod], pool: &Pool) -> Option<(NewNode, Vec<usize>)> {
    let mut own: Vec<usize> = Vec::new();
    let (mut requirements, mut names) = (Vec::new(), Vec::new());
    for word in line.split(' ') {
        let (name, value) = word.split_once('=')?;
        match name {
            "pods" => own = value.split('|').map(|it| it.parse().ok()).collect::<Option<_>>()?,
            "types" => names = value.split('|').map(str::to_owned).collect(),
            "require" => {
                let (key, rest) = value.split_once(':')?;
                let (operator, values) = rest.split_once(':')?;
                requirements.push(Written {
                    key: key.to_owned(),
                    operator: operator.parse().ok()?,
                    values: values.split('|').map(str::to_owned).collect(),
                    min_values: None,
                });
            }
            _ => return None,
        }
    }
    let price = |name: &str| {
        let machine = pool.machines.iter().find(|it| it.name == name)?;
        machine.offerings.iter().filter_map(|it| it.price).min()
    };
    let mut machines: Vec<Choice> =
        names.iter().map(|name| Choice { machine: name.clone(), price: price(name) }).collect();
    machines.sort_by_key(|it| (it.price.is_none(), it.price));
    requirements.retain(|it| it.key != label::INSTANCE_TYPE);
    requirements.push(Written {
        key: label::INSTANCE_TYPE.to_owned(),
        operator: Operator::In,
        values: names,
        min_values: None,
    });
    let node = NewNode {
        pool: pool.name.clone(),
        pods: own.iter().map(|at| Some(pods.get(*at)?.id())).collect::<Option<_>>()?,
        machines: Arc::new(machines),
        requirements: Arc::new(requirements),
        requests: BTreeMap::new(),
    };
    Some((node, own))
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
