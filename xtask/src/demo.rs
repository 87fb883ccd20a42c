//! What does nodemolt look like at work?
//!
//! `nodemolt demo` shows a fleet being replaced on the simulator. With `--images` the shipped examples
//! are asked: a list of command lines, one after the other, as a user would type them.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::cargo;

/// Each with the question it answers. `CATALOG` stands for the shipped catalog of 15 November 2026.
const COMMANDS: [(&str, &str); 6] = [
    (
        "the newest release is three days old and the class wants a week: what boots, and why not the newer ones?",
        "resolve -f examples/classes/general.yaml CATALOG --kubernetes 1.35 --at 2026-11-15 --explain",
    ),
    (
        "my GPU image is named by an SSM parameter with requirements: on which types does which image boot?",
        "resolve -f examples/classes/ml.yaml CATALOG --account 111122223333 --kubernetes 1.35 --at 2026-11-15 --explain",
    ),
    (
        "somebody else published an image of the same name: does it win?",
        "resolve -f examples/classes/golden.yaml CATALOG --account 111122223333 --kubernetes 1.35 --at 2026-11-15 --explain",
    ),
    (
        "this class pins a release that was recalled: may it boot?",
        "resolve -f examples/classes/pinned.yaml CATALOG --kubernetes 1.35 --at 2026-11-15",
    ),
    (
        "does an AMD GPU get the NVIDIA image?",
        "resolve alias=al2023@latest CATALOG --min-age 7d --kubernetes 1.35 --at 2026-11-15 --types examples/types/amd-and-gaudi.json --instance-types g4ad.xlarge,g6.xlarge",
    ),
    (
        "what would a node of this type offer?",
        "types get m7g.large -f examples/classes/general.yaml CATALOG --kubernetes 1.35 --at 2026-11-15",
    ),
];

const CATALOG: &str =
    "--catalog examples/catalog/images.json --catalog examples/catalog/parameters.json";

/// nodemolt's exit codes for "no image for what was asked" and "policy holds one back": in a demo answers
/// like any other.
const NO_MATCH: i32 = 1;
const HELD: i32 = 3;

pub(crate) fn demo(root: &Path, images: bool) -> Result<ExitCode> {
    if images { ask(root) } else { live(root) }
}

fn live(root: &Path) -> Result<ExitCode> {
    let status = nodemolt(root).arg("demo").status().context("could not start cargo")?;
    match status.code() {
        Some(0) => Ok(ExitCode::SUCCESS),
        Some(code) => bail!("`nodemolt demo` ended with exit code {code}"),
        None => bail!("`nodemolt demo` was killed"),
    }
}

fn nodemolt(root: &Path) -> std::process::Command {
    let mut command = cargo::cargo(root);
    command.args(["run", "--quiet", "--locked", "-p", "nodemolt-app", "--bin", "nodemolt", "--"]);
    command
}

fn ask(root: &Path) -> Result<ExitCode> {
    for (question, line) in COMMANDS {
        let line = line.replace("CATALOG", CATALOG);
        eprintln!("\n# {question}\n$ nodemolt {line}\n");
        let status =
            nodemolt(root).args(line.split(' ')).status().context("could not start cargo")?;
        match status.code() {
            Some(0 | NO_MATCH | HELD) => {}
            Some(code) => bail!("`nodemolt {line}` ended with exit code {code}"),
            None => bail!("`nodemolt {line}` was killed"),
        }
    }
    eprintln!(
        "\nNext: examples/README.md has more questions, docs/resolving.md says how answers are found."
    );
    Ok(ExitCode::SUCCESS)
}
