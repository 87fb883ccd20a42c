//! What do developers run besides the compiler?
//!
//! `cargo verify` (everything CI runs), `cargo demo` (the product on the simulator),
//! `cargo xtask generate` (the files that are generated, never written) and `cargo xtask rig` (a real
//! control plane to try things on).

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

mod verify;
mod tools;
mod edges;
mod tidy;
mod demo;
mod rig;
mod bench;
mod generate;
mod examples;
mod instance_types;
mod karpenter;
mod limits;
mod prices;
mod reference;
mod cargo;
mod check;

/// Runs nodemolt's checks, its demo and its generators.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check everything, exactly as CI does
    Verify {
        /// Leave out the parts that take long: properties, generated, rig and e2e
        #[arg(long)]
        quick: bool,
    },
    /// Fetch what the tests run beside us, and tell what cannot be had
    Tools,
    /// Watch a fleet being replaced on the simulator
    Demo {
        /// Ask the shipped examples instead: which image would these classes boot, and why not the newer one?
        #[arg(long)]
        images: bool,
    },
    /// Measure, and compare with who does the same elsewhere
    Bench {
        /// What to measure
        #[arg(value_enum)]
        what: bench::What,
        /// Fail where a target is missed
        #[arg(long)]
        check: bool,
    },
    /// Write the files that are generated
    Generate {
        /// The types need pip and a network, karpenter, the limits and the prices need Go and a network; the others need nothing
        #[arg(value_enum, default_value_t = generate::What::Own)]
        what: generate::What,
    },
    /// Start a real Kubernetes control plane on loopback, until you stop it; see `--help` of its own
    #[command(disable_help_flag = true)]
    Rig {
        /// Passed on: `--build`, `--bare`, `--apply FILE`, `--karpenter-crds`, `--hours N`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> Result<ExitCode> {
    let root = root()?;
    match Arguments::parse().task {
        Task::Verify { quick } => Ok(verify::verify(&root, quick)),
        Task::Tools => Ok(verify::tools()),
        Task::Demo { images } => demo::demo(&root, images),
        Task::Bench { what, check } => bench::bench(&root, what, check).map(|()| ExitCode::SUCCESS),
        Task::Generate { what } => generate::generate(&root, what).map(|()| ExitCode::SUCCESS),
        Task::Rig { arguments } => rig::rig(&root, &arguments),
    }
}

/// The workspace's folder, wherever in it cargo was called.
fn root() -> Result<PathBuf> {
    // Asked at run time and not with `env!`: a binary from a shared target folder may have been
    // compiled in another checkout.
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("cannot find the workspace: run this through cargo, as `cargo xtask`")?;
    let root = PathBuf::from(own).parent().map(PathBuf::from);
    root.context("cannot find the workspace: xtask's own folder has no parent")
}
