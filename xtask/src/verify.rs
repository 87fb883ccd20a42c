//! Is everything in order?
//!
//! `cargo verify` runs every part, whatever the earlier ones said, and ends with one table. A part
//! that cannot be had has failed; a part that is left out says so. CI runs exactly this.

use std::{
    fmt::Write as _,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::{
    cargo::{self, Metadata, Ran},
    check::{Check, Tally},
    edges, generate, rig, tidy, tools,
};

/// In the order in which they run: the quick ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Tools,
    Format,
    Lints,
    Edges,
    Tidy,
    Unit,
    Properties,
    Cli,
    Generated,
    Rig,
    EndToEnd,
    Scheduler,
    Contract,
    Lives,
}

const PARTS: [Part; 14] = [
    Part::Tools,
    Part::Format,
    Part::Lints,
    Part::Edges,
    Part::Tidy,
    Part::Unit,
    Part::Properties,
    Part::Cli,
    Part::Generated,
    Part::Rig,
    Part::EndToEnd,
    Part::Scheduler,
    Part::Contract,
    Part::Lives,
];

/// Test targets of this name, in any crate, are the part `properties`.
const PROPERTIES: &str = "properties";
/// And of this name the part `cli`.
const CLI: &str = "cli";
/// And of this name the part `e2e`.
const END_TO_END: &str = "e2e";
/// And of this name the part `scheduler`.
const SCHEDULER: &str = "scheduler";
/// And of this name the part `contract`.
const CONTRACT: &str = "contract";
/// And of this name the part `lives`.
const LIVES: &str = "lives";
const PARTS_OF_THEIR_OWN: [&str; 6] = [PROPERTIES, CLI, END_TO_END, SCHEDULER, CONTRACT, LIVES];

pub(crate) fn verify(root: &Path, quick: bool) -> ExitCode {
    let mut rows = Vec::new();
    for part in PARTS {
        if quick && part.left_out_if_quick() {
            rows.push(Row { part, ran: None });
            continue;
        }
        eprintln!("── {}", part.name());
        let started_at = Instant::now();
        let tally = run(part, root).unwrap_or_else(|error| {
            eprintln!("{}: {error:#}", part.name());
            Tally { passed: 0, failed: 1 }
        });
        rows.push(Row { part, ran: Some((tally, started_at.elapsed())) });
    }

    let sum: Tally = rows.iter().filter_map(|it| it.ran).map(|(tally, _)| tally).sum();
    print!("\n{}\n{} passed, {} failed\n", table(&rows), sum.passed, sum.failed);
    if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The part `tools` alone, for whoever runs `cargo test` by hand.
pub(crate) fn tools() -> ExitCode {
    let tally = report(&tools::tools());
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Format => "format",
            Self::Lints => "lints",
            Self::Edges => "edges",
            Self::Tidy => "tidy",
            Self::Unit => "unit",
            Self::Properties => "properties",
            Self::Cli => "cli",
            Self::Generated => "generated",
            Self::Rig => "rig",
            Self::EndToEnd => "e2e",
            Self::Scheduler => "scheduler",
            Self::Contract => "contract",
            Self::Lives => "lives",
        }
    }

    fn left_out_if_quick(self) -> bool {
        matches!(
            self,
            Self::Properties
                | Self::Generated
                | Self::Rig
                | Self::EndToEnd
                | Self::Scheduler
                | Self::Contract
                | Self::Lives
        )
    }
}

/// Tests that say something worth reading, on lines that begin with their name.
fn telling_tests(root: &Path, name: &str) -> Result<Tally> {
    let (ran, tally) = run_tests(root, &["--test", name, "--", "--nocapture"])?;
    let said = ran.lines.iter().filter(|it| it.starts_with(&format!("{name}: ")));
    said.for_each(|it| println!("{it}"));
    some_tests(tally)
}

fn run(part: Part, root: &Path) -> Result<Tally> {
    match part {
        Part::Tools => Ok(report(&tools::tools())),
        Part::Format => one_command(root, &["fmt", "--all", "--check"]),
        Part::Lints => one_command(
            root,
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        ),
        Part::Edges => Ok(report(&edges::edges(&cargo::metadata(root)?))),
        Part::Tidy => Ok(report(&tidy::tidy(root))),
        Part::Unit => {
            let named = other_test_targets(&cargo::metadata(root)?);
            let mut targets = vec!["--lib", "--bins"];
            targets.extend(named.iter().flat_map(|it| ["--test", it]));
            // Cargo runs documentation tests only on their own.
            let tally = tests(root, &targets)? + tests(root, &["--doc"])?;
            some_tests(tally)
        }
        Part::Properties => some_tests(tests(root, &["--test", PROPERTIES])?),
        Part::Cli => some_tests(tests(root, &["--test", CLI])?),
        Part::Generated => Ok(report(&generate::current(root)?)),
        // Apart from the tests that use it: the first time Go needs minutes, and the table should say for what.
        Part::Rig => one_command(root, &[&rig::RUN[..], &["--build"]].concat()),
        Part::EndToEnd => some_tests(tests(root, &["--test", END_TO_END])?),
        // In how many worlds it agreed, and about what, is worth a look each time.
        Part::Scheduler => telling_tests(root, SCHEDULER),
        Part::Contract => telling_tests(root, CONTRACT),
        Part::Lives => telling_tests(root, LIVES),
    }
}

/// A command that is one check in itself.
fn one_command(root: &Path, arguments: &[&str]) -> Result<Tally> {
    let ran = cargo::run(cargo::cargo(root).args(arguments))?;
    if ran.succeeded {
        return Ok(Tally { passed: 1, failed: 0 });
    }
    eprintln!("{}", ran.kept_back());
    Ok(Tally { passed: 0, failed: 1 })
}

/// The tests of these targets, over the whole workspace: always the same set of packages, so that
/// cargo builds nothing twice.
fn tests(root: &Path, targets: &[&str]) -> Result<Tally> {
    run_tests(root, targets).map(|(_, tally)| tally)
}

fn run_tests(root: &Path, targets: &[&str]) -> Result<(Ran, Tally)> {
    let fixed = ["test", "--workspace", "--locked", "--no-fail-fast"];
    let ran = cargo::run(cargo::cargo(root).args(fixed).args(targets))?;
    let mut tally = ran.tests();
    if !ran.succeeded {
        eprintln!("{}", ran.kept_back());
        // It did not compile, or a test program died before it could count.
        tally.failed = tally.failed.max(1);
    }
    Ok((ran, tally))
}

/// A part that ran nothing has shown nothing.
fn some_tests(tally: Tally) -> Result<Tally> {
    anyhow::ensure!(tally.total() > 0, "no tests ran");
    Ok(tally)
}

/// Every `tests/*.rs` that is not a part of its own. Each runs once.
fn other_test_targets(metadata: &Metadata) -> Vec<String> {
    let mut names: Vec<String> = metadata
        .packages
        .iter()
        .flat_map(|it| &it.targets)
        .filter(|it| it.kind.iter().any(|kind| kind == "test"))
        .map(|it| it.name.clone())
        .filter(|it| !PARTS_OF_THEIR_OWN.contains(&it.as_str()))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn report(checks: &[Check]) -> Tally {
    for check in checks {
        for finding in &check.findings {
            eprintln!("{}: {finding}", check.name);
        }
    }
    Tally::of(checks)
}

struct Row {
    part: Part,
    /// Nothing if it was left out.
    ran: Option<(Tally, Duration)>,
}

/// Columns that `awk` can cut.
fn table(rows: &[Row]) -> String {
    let mut table = format!("{:<12}{:>6}{:>9}  outcome\n", "part", "tests", "time");
    for Row { part, ran } in rows {
        let name = part.name();
        match ran {
            None => writeln!(table, "{name:<12}{:>6}{:>9}  left out", "-", "-"),
            Some((tally, time)) => {
                let outcome = if tally.failed == 0 { "passed" } else { "failed" };
                writeln!(table, "{name:<12}{:>6}{:>9}  {outcome}", tally.total(), seconds(*time))
            }
        }
        .expect("a string takes all that is written to it");
    }
    let time = rows.iter().filter_map(|it| it.ran).map(|(_, time)| time).sum();
    let tests: usize = rows.iter().filter_map(|it| it.ran).map(|(tally, _)| tally.total()).sum();
    writeln!(table, "{:<12}{tests:>6}{:>9}", "all", seconds(time))
        .expect("a string takes all that is written to it");
    table
}

fn seconds(time: Duration) -> String {
    format!("{:.1}s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_what_was_left_out() {
        let second = Duration::from_secs(1);
        let rows = [
            Row { part: Part::Unit, ran: Some((Tally { passed: 40, failed: 2 }, second * 3)) },
            Row { part: Part::Properties, ran: None },
            Row { part: Part::Cli, ran: Some((Tally { passed: 7, failed: 0 }, second)) },
        ];
        let lines = [
            "part         tests     time  outcome",
            "unit            42     3.0s  failed",
            "properties       -        -  left out",
            "cli              7     1.0s  passed",
            "all             49     4.0s",
            "",
        ];
        assert_eq!(table(&rows), lines.join("\n"));
    }

    #[test]
    fn a_part_that_ran_nothing_has_failed() {
        assert!(some_tests(Tally::default()).is_err());
    }
}
