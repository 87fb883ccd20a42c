//! How do we compare with who does the same elsewhere?
//!
//! `cargo xtask bench pack`: Karpenter's own scheduling benchmark, built here from its Go module, and our
//! packing of the very same pods, one after the other in one run; then ours alone, up to 100,000 pods. Both
//! packings go to the checker of our tests, which shares no line with what packs.
//!
//! What is measured is the call alone: neither the making of pods nor of instance types. Karpenter runs in
//! as many threads as it likes, so its time on the processor is more than that on the wall; ours has one.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::Deserialize;

use crate::cargo;

const MODULE: &str = "sigs.k8s.io/karpenter";
const VERSION: &str = "v1.14.1";
const PACKAGE: &str = "pkg/controllers/provisioning/scheduling";
/// So many times less time on the processor than Karpenter takes is the target.
const LESS_CPU: f64 = 50.0;
/// What we put beside Karpenter's benchmark, in this repository and there.
const OUR_FILE: &str = "xtask/go/bench-pack/nodemolt_peer_test.go";
const CASES: [(usize, &str); 6] = [
    (500, "diverse"),
    (1_000, "diverse"),
    (2_000, "diverse"),
    (5_000, "diverse"),
    (4_000, "preferences"),
    // The same pods, and Karpenter told to ignore what they prefer.
    (4_000, "ignored"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Packing pods, beside Karpenter's own benchmark; needs Go
    Pack,
}

/// What either side says of one case.
#[derive(Debug, Clone, Copy)]
struct Measured {
    pods: usize,
    nodes: usize,
    unplaced: usize,
    wall: f64,
    cpu: f64,
    peak_mib: f64,
}

pub(crate) fn bench(root: &Path, what: What, check: bool) -> Result<()> {
    match what {
        What::Pack => pack(root, check),
    }
}

fn pack(root: &Path, check: bool) -> Result<()> {
    let folder = root.join("target/bench-pack");
    fs::create_dir_all(&folder).context("could not make room below target")?;
    let ours = build_ours(root)?;
    let peer = build_peer(root, &folder)?;
    println!("{MODULE} {VERSION} and nodemolt, one run; {}\n", load());
    println!(
        "{:<18} {:>7} {:>7} | {:>9} {:>9} {:>5} | {:>9} {:>9} {:>5} | {:>7} {:>8}",
        "", "nodes", "nodes", "wall s", "CPU s", "MiB", "wall s", "CPU s", "MiB", "CPU", "memory"
    );
    println!(
        "{:<18} {:>7} {:>7} | {:>25} | {:>25} | {:>7} {:>8}",
        "pods", "theirs", "ours", "theirs", "ours", "ratio", "ratio"
    );
    let (mut verdicts, mut missed) = (Vec::new(), Vec::new());
    for (pods, mix) in CASES {
        let file = folder.join(format!("{mix}-{pods}.pods"));
        let answer = folder.join(format!("{mix}-{pods}.answer"));
        let theirs = run(
            Command::new(&peer)
                .args([
                    "-test.run",
                    "^TestNodemoltPeer$",
                    "-test.count",
                    "1",
                    "-test.timeout",
                    "30m",
                ])
                .current_dir(peer_package(&folder))
                .env("PEER_PODS", pods.to_string())
                .env("PEER_MIX", mix)
                .env("PEER_FILE", &file)
                .env("PEER_ANSWER", &answer),
            "peer ",
        )?;
        let ours = run(Command::new(&ours).args([&file, &answer]), "ours ")?;
        ensure!(
            theirs.measured.pods == pods && ours.measured.pods == pods,
            "both should have packed {pods} pods"
        );
        let name = format!("{pods} {mix}");
        print_row(&name, theirs.measured, ours.measured);
        let faults = Faults::read(&ours.said)?;
        let found = misses(theirs.measured, ours.measured, &faults);
        missed.extend(found.into_iter().map(|it| format!("{name}: {it}")));
        verdicts.push((name, faults.told()));
    }
    println!("\nwhat the checker says\n");
    for (name, verdict) in verdicts {
        println!("{name:<18} {verdict}");
    }
    println!("\nours alone ({})\n", load());
    let mut alone = cargo::cargo(root);
    alone.args(["bench", "--quiet", "--locked", "-p", "nodemolt-fit", "--bench", "pack"]);
    if check {
        alone.args(["--", "--check"]);
    }
    let status = alone.status().context("could not start cargo")?;
    println!();
    for miss in &missed {
        println!("miss: {miss}");
    }
    if missed.is_empty() {
        println!(
            "pass: {LESS_CPU}× less time on the processor, no more nodes, no pod less, and ours are valid"
        );
    }
    ensure!(status.success(), "the benchmark of packing ended with {status}");
    ensure!(!check || missed.is_empty(), "a target was missed: {}", missed.join("; "));
    Ok(())
}

/// The targets that one case misses.
fn misses(theirs: Measured, ours: Measured, faults: &Faults) -> Vec<String> {
    let mut misses = Vec::new();
    let ratio = theirs.cpu / ours.cpu.max(1e-6);
    if ratio < LESS_CPU {
        misses.push(format!("{ratio:.0}× less time on the processor, {LESS_CPU}× is the target"));
    }
    if ours.nodes > theirs.nodes {
        misses.push(format!("{} nodes here, {} there", ours.nodes, theirs.nodes));
    }
    if ours.unplaced > theirs.unplaced {
        misses
            .push(format!("without a place are {} here, {} there", ours.unplaced, theirs.unplaced));
    }
    if faults.ours > 0 {
        misses.push(format!("the checker finds {} faults in ours", faults.ours));
    }
    misses
}

fn print_row(name: &str, theirs: Measured, ours: Measured) {
    println!(
        "{name:<18} {:>7} {:>7} | {:>9.3} {:>9.3} {:>5.0} | {:>9.4} {:>9.4} {:>5.0} | {:>6.0}× {:>7.1}×{}",
        theirs.nodes,
        ours.nodes,
        theirs.wall,
        theirs.cpu,
        theirs.peak_mib,
        ours.wall,
        ours.cpu,
        ours.peak_mib,
        theirs.cpu / ours.cpu.max(1e-6),
        theirs.peak_mib / ours.peak_mib.max(1.0),
        match (theirs.unplaced, ours.unplaced) {
            (0, 0) => String::new(),
            (theirs, ours) => format!("   without a place: {theirs} there, {ours} here"),
        }
    );
}

/// How busy the machine is: what others do only ever adds to what is measured.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZeroUsize::get);
    match text.split(' ').next() {
        Some(load) if !load.is_empty() => format!("{cores} cores, load {load}"),
        _ => format!("{cores} cores"),
    }
}

/// What our half says of both packings: `checked whose=… faults=…`, and the first faults.
struct Faults {
    ours: usize,
    theirs: usize,
    examples: Vec<String>,
}

impl Faults {
    fn read(said: &str) -> Result<Self> {
        let faults = |whose: &str| {
            let start = format!("checked whose={whose} ");
            let line = said.lines().find_map(|it| it.strip_prefix(&start));
            let line = line.with_context(|| format!("{whose} was not checked: {said}"))?;
            let count = line.strip_prefix("faults=").and_then(|it| it.parse::<usize>().ok());
            count.with_context(|| format!("cannot understand `{line}`"))
        };
        let examples = said.lines().filter_map(|it| it.strip_prefix("fault "));
        Ok(Self {
            ours: faults("ours")?,
            theirs: faults("theirs")?,
            examples: examples.map(str::to_owned).collect(),
        })
    }

    fn told(&self) -> String {
        let word = |count: usize| match count {
            0 => "valid".to_owned(),
            1 => "1 pod could not be bound there".to_owned(),
            _ => format!("{count} pods could not be bound there"),
        };
        let mut text = format!("theirs: {}; ours: {}", word(self.theirs), word(self.ours));
        for fault in &self.examples {
            text.push_str("\n                     ");
            text.push_str(fault);
        }
        text
    }
}

struct Ran {
    measured: Measured,
    said: String,
}

/// A line `WHO pods=… nodes=… …` of the program's answer, and all of it.
fn run(command: &mut Command, who: &str) -> Result<Ran> {
    let output = command.output().with_context(|| format!("could not start {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!(
            "{command:?} ended with {}: {said}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let line = said.lines().find_map(|it| it.strip_prefix(who));
    let line = line.with_context(|| format!("{command:?} did not say what it measured: {said}"))?;
    let words: BTreeMap<&str, f64> = line
        .split(' ')
        .filter_map(|it| it.split_once('='))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect();
    let number = |name: &str| {
        words.get(name).copied().with_context(|| format!("`{name}` is missing in `{line}`"))
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of pods")]
    let count = |name: &str| number(name).map(|it| it as usize);
    let measured = Measured {
        pods: count("pods")?,
        nodes: count("nodes")?,
        unplaced: count("unplaced")?,
        wall: number("wall")?,
        cpu: number("cpu")?,
        peak_mib: number("peak")?,
    };
    Ok(Ran { measured, said })
}

/// The program, built as it would be shipped.
fn build_ours(root: &Path) -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        executable: Option<PathBuf>,
    }

    let output = cargo::cargo(root)
        .args(["bench", "--no-run", "--locked", "-p", "nodemolt-fit", "--bench", "peer"])
        .args(["--message-format", "json"])
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("could not start cargo")?;
    ensure!(output.status.success(), "our half could not be built");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|it| serde_json::from_str::<Message>(it).ok());
    messages.filter_map(|it| it.executable).next_back().context("cargo did not say what it built")
}

fn peer_package(folder: &Path) -> PathBuf {
    folder.join("karpenter").join(PACKAGE)
}

/// Karpenter's benchmark, from a copy of its module in which our file stands beside it.
fn build_peer(root: &Path, folder: &Path) -> Result<PathBuf> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Module {
        dir: PathBuf,
    }

    let copy = folder.join("karpenter");
    if !copy.join("go.mod").is_file() {
        let output = Command::new("go")
            .args(["mod", "download", "-json", &format!("{MODULE}@{VERSION}")])
            .output()
            .context("could not start `go`, of which 1.26 or newer is needed")?;
        ensure!(
            output.status.success(),
            "could not download {MODULE}@{VERSION}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let module: Module =
            serde_json::from_slice(&output.stdout).context("cannot understand what `go` said")?;
        copy_folder(&module.dir, &copy)?;
    }
    let beside = peer_package(folder).join("nodemolt_peer_test.go");
    fs::copy(root.join(OUR_FILE), &beside)
        .context("could not put our file beside the benchmark")?;
    let program = folder.join("peer.test");
    eprintln!("building Karpenter's benchmark; minutes at first");
    let status = Command::new("go")
        .args(["test", "-c", "-tags", "test_performance", "-o"])
        .arg(&program)
        .arg(format!("./{PACKAGE}"))
        .current_dir(&copy)
        .status()
        .context("could not start `go`")?;
    ensure!(status.success(), "Karpenter's benchmark could not be built");
    Ok(program)
}

/// Without the permissions: those of Go's cache forbid to write.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("could not make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("could not list {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            let bytes = fs::read(entry.path())?;
            fs::write(&target, bytes)
                .with_context(|| format!("could not write {}", target.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_can_be_missed() {
        let measured = |nodes, unplaced, cpu| Measured {
            pods: 500,
            nodes,
            unplaced,
            wall: cpu,
            cpu,
            peak_mib: 1.0,
        };
        let valid = || Faults { ours: 0, theirs: 3, examples: Vec::new() };
        let theirs = measured(100, 0, 5.0);
        for (ours, faults, missed) in [
            (measured(100, 0, 0.1), valid(), 0),
            (measured(99, 0, 0.001), valid(), 0),
            (measured(100, 0, 0.101), valid(), 1),
            (measured(101, 0, 0.1), valid(), 1),
            (measured(100, 1, 0.1), valid(), 1),
            (measured(100, 0, 0.1), Faults { ours: 1, ..valid() }, 1),
        ] {
            assert_eq!(misses(theirs, ours, &faults).len(), missed, "{ours:?}");
        }
    }
}
