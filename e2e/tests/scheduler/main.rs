//! Does the real scheduler find a node exactly if packing says so?
//!
//! Random worlds on a real control plane: everybody is put where packing placed him, save a few pods, each of which is
//! then left to kube-scheduler alone. It must find a node if we know one, one of those that we know, and none if we
//! know none.
//!
//! `NODEMOLT_SCHEDULER_WORLDS` says how many worlds, `NODEMOLT_SCHEDULER_FIRST` the number of the first.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]
#![allow(
    clippy::disallowed_methods,
    reason = "the length of a run is no matter of the code under test"
)]

#[path = "../../../crates/fit/tests/pack/worlds.rs"]
#[allow(dead_code, reason = "what is said of pools is not for the scheduler")]
mod generated;

mod cluster;
mod known;
mod readback;
mod strange;
mod wire;
mod worlds;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use cluster::{Answer, Cluster};
use nodemolt_fit::{pack::pack, pod::Pod};
use nodemolt_rig::{Parts, Rig};
use worlds::{Case, case, kinds};

/// As many as fit into a minute on two busy cores.
const WORLDS: u64 = 40;
/// The scheduler learns of some things a moment later than we do: whoever disagrees is asked twice.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
struct Tally {
    found: usize,
    refused: usize,
    asked_again: usize,
    decided: BTreeMap<&'static str, usize>,
    differences: Vec<String>,
}

#[tokio::test]
async fn the_scheduler_finds_a_node_exactly_if_packing_does() {
    let (first, worlds) =
        (number("NODEMOLT_SCHEDULER_FIRST", 0), number("NODEMOLT_SCHEDULER_WORLDS", WORLDS));
    let rig = Rig::start(Parts { scheduler: true, ..Parts::default() }).unwrap();
    let cluster = Cluster::new(rig.client().await.unwrap()).await;
    let mut tally = Tally { decided: kinds().map(|it| (it.0, 0)).collect(), ..Tally::default() };
    let started_at = Instant::now();
    for number in first..first + worlds {
        let case = case(number);
        tally.world(&cluster, &case).await.unwrap_or_else(|it| panic!("world {number}: {it}"));
    }
    tally.print(worlds, started_at.elapsed());
    known_difference(&cluster).await.unwrap();
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n\n"));
    // Each kind of constraint is the theme of so many worlds.
    let least = usize::try_from(worlds).unwrap() / tally.decided.len();
    let few: Vec<_> = tally.decided.iter().filter(|it| *it.1 < least).collect();
    assert!(few.is_empty(), "these decide too rarely: {few:?}");
}

#[test]
fn what_the_scheduler_is_asked_about_is_read_as_it_was_meant() {
    let worlds = number("NODEMOLT_SCHEDULER_WORLDS", WORLDS);
    let differences: Vec<String> =
        (0..worlds).flat_map(|it| readback::differences(&case(it))).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// The worlds leave this out. It is asked each time, so that we hear of it when it is mended.
async fn known_difference(cluster: &Cluster) -> Result<(), kube::Error> {
    let case = known::misread_namespaces();
    cluster.build(&case).await?;
    for pod in &case.asked {
        assert!(case.homes(pod).is_empty(), "by the documentation there is none");
        let answer = cluster.ask(pod, &pod.name, 0).await?;
        let mended =
            "the scheduler follows the documentation now: let `strange` have such selectors";
        assert!(matches!(answer, Answer::Found { .. }), "{mended}: {answer:?}");
    }
    cluster.clear().await
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let Some(text) = std::env::var_os(variable) else { return otherwise };
    let number = text.to_str().and_then(|it| it.parse().ok());
    number.unwrap_or_else(|| panic!("{variable} is no number: {}", text.display()))
}

impl Tally {
    async fn world(&mut self, cluster: &Cluster, case: &Case) -> Result<(), kube::Error> {
        cluster.build(case).await?;
        for (at, pod) in case.asked.iter().enumerate() {
            for kind in kinds().filter(|it| case.decides(it, pod)) {
                *self.decided.entry(kind.0).or_default() += 1;
            }
            self.ask(cluster, case, pod, at).await?;
        }
        cluster.clear().await
    }

    async fn ask(
        &mut self,
        cluster: &Cluster,
        case: &Case,
        pod: &Pod,
        at: usize,
    ) -> Result<(), kube::Error> {
        let homes = case.homes(pod);
        assert_eq!(worlds::placed(&case.nodes, pod), !homes.is_empty(), "world {}", case.number);
        let agrees = |answer: &Answer| match answer {
            Answer::Found { node } => homes.contains(node),
            Answer::Refused { .. } => homes.is_empty(),
        };
        let mut answer = self.answer(cluster, pod, &format!("{}-asked", pod.name), at).await?;
        if !agrees(&answer) {
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
            self.asked_again += 1;
            answer = self.answer(cluster, pod, &format!("{}-again", pod.name), at).await?;
        }
        match &answer {
            Answer::Found { .. } => self.found += 1,
            Answer::Refused { .. } => self.refused += 1,
        }
        if !agrees(&answer) {
            let why = pack(std::slice::from_ref(pod), &case.nodes, &[]).unplaced;
            let why: Vec<String> = why.iter().map(|it| it.why.to_string()).collect();
            self.differences.push(format!(
                "world {} ({}), pod {}: the scheduler says {answer:?}, we say {homes:?} {why:?}\n{}\non\n{}",
                case.number,
                case.theme,
                pod.id(),
                wire::pod(pod, &pod.name, None, at),
                told(case),
            ));
        }
        Ok(())
    }

    async fn answer(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        name: &str,
        way: usize,
    ) -> Result<Answer, kube::Error> {
        let answer = cluster.ask(pod, name, way).await?;
        cluster.forget(pod, name).await?;
        Ok(answer)
    }

    fn print(&self, worlds: u64, time: Duration) {
        let rows = [
            ("worlds", usize::try_from(worlds).unwrap()),
            ("pods asked about", self.found + self.refused),
            ("node found", self.found),
            ("no node found", self.refused),
            ("asked twice", self.asked_again),
            ("differences", self.differences.len()),
            ("seconds", usize::try_from(time.as_secs()).unwrap()),
        ];
        // `cargo verify` passes lines on that begin like this.
        for (name, count) in rows {
            println!("scheduler: {name:<42}{count:>5}");
        }
        for (kind, count) in &self.decided {
            println!("scheduler: decided by {kind:<31}{count:>5}");
        }
    }
}

/// A world in lines: each node, and below it the pods there.
fn told(case: &Case) -> String {
    let mut lines = Vec::new();
    for node in &case.nodes {
        lines.push(wire::node(node).to_string());
        lines.extend(node.pods.iter().map(|it| {
            let terminating = if it.terminating { " terminating" } else { "" };
            format!("   {}{terminating}", wire::pod(it, &it.name, Some(&node.name), 0))
        }));
    }
    lines.join("\n")
}
