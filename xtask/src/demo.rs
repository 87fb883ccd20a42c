//! What does nodemolt look like at work?
//!
//! Until the simulator exists the demo asks the shipped examples: a list of command lines, one
//! after the other, as a user would type them.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::cargo;

/// Each with the question it answers.
const COMMANDS: [(&str, &[&str]); 1] = [(
    "which image would class general boot, and why not the newer ones?",
    &[
        "resolve",
        "-f",
        "examples/classes/general.yaml",
        "--catalog",
        "examples/catalog/images.json",
        "--catalog",
        "examples/catalog/parameters.json",
        "--kubernetes",
        "1.35",
        "--at",
        "2026-11-15",
        "--explain",
    ],
)];

/// nodemolt's exit code for "policy holds one back": in a demo an answer like any other.
const HELD: i32 = 3;

pub(crate) fn demo(root: &Path) -> Result<ExitCode> {
    for (question, arguments) in COMMANDS {
        eprintln!("\n# {question}\n$ nodemolt {}\n", arguments.join(" "));
        let status = cargo::cargo(root)
            .args(["run", "--quiet", "--locked", "-p", "nodemolt-app", "--bin", "nodemolt", "--"])
            .args(arguments)
            .status()
            .context("could not start cargo")?;
        match status.code() {
            Some(0 | HELD) => {}
            Some(code) => bail!("`nodemolt {}` ended with exit code {code}", arguments[0]),
            None => bail!("`nodemolt {}` was killed", arguments[0]),
        }
    }
    Ok(ExitCode::SUCCESS)
}
