//! How is the rig started for a person?
//!
//! As a program of its own, whose dependencies nobody has to compile for the demo or the checks.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};

use crate::cargo;

/// The arguments of cargo that run it.
pub(crate) const RUN: [&str; 8] =
    ["run", "--quiet", "--locked", "-p", "nodemolt-rig", "--bin", "nodemolt-rig", "--"];

/// nodemolt's own CRDs, once they are generated: every YAML file here is installed before anything else.
const OUR_CRDS: &str = "deploy/crds";

pub(crate) fn rig(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let mut command = cargo::cargo(root);
    command.args(RUN);
    for file in our_crds(root)? {
        command.arg("--crds").arg(file);
    }
    // In our place and not below us: a Ctrl-C must reach it alone, and the shell must wait for it to end.
    let error = command.args(arguments).exec();
    Err(error).context("could not start cargo")
}

fn our_crds(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join(OUR_CRDS);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("could not read {OUR_CRDS}"))? {
        files.push(entry?.path());
    }
    files.retain(|it| it.extension().is_some_and(|it| it == "yaml"));
    files.sort();
    Ok(files)
}
