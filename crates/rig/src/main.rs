//! How does a developer get a control plane to play with?
//!
//! `cargo xtask rig` runs this: it starts one, says how to use it, and ends it on Ctrl-C.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::Parser;
use nodemolt_rig::{Parts, Rig, Tool, karpenter, programs};

/// Starts a real Kubernetes control plane on loopback, until you stop it
#[derive(Debug, Parser)]
#[command(name = "cargo xtask rig", version)]
struct Arguments {
    /// Only build what is missing, and say where it is
    #[arg(long)]
    build: bool,
    /// Run no controller manager and no scheduler
    #[arg(long)]
    bare: bool,
    /// Install the CRDs of this file, and wait until they are served (repeatable)
    #[arg(long, value_name = "FILE")]
    crds: Vec<PathBuf>,
    /// Apply this file once the server is ready (repeatable)
    #[arg(long, value_name = "FILE")]
    apply: Vec<PathBuf>,
    /// Install Karpenter's own CRDs, as a cluster with Karpenter on AWS has them
    #[arg(long)]
    karpenter_crds: bool,
    /// End by itself after so many hours
    #[arg(long, value_name = "N", default_value_t = 12)]
    hours: u32,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.build { build() } else { run(&arguments) }
}

fn build() -> Result<ExitCode> {
    for (tool, path) in programs(&Tool::ALL)? {
        println!("{:<26}{}", tool.name(), path.display());
    }
    for crd in karpenter::crds()?.into_iter().chain(karpenter::core_crds()?) {
        println!("{:<26}{}", format!("karpenter {}", karpenter::VERSION), crd.file);
    }
    Ok(ExitCode::SUCCESS)
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lifetime = Duration::from_hours(u64::from(arguments.hours));
    let parts = if arguments.bare { Parts::default() } else { Parts::all() };
    let rig = Rig::start(Parts { lifetime, ..parts })?;
    if arguments.karpenter_crds {
        for crd in karpenter::crds()? {
            rig.apply_crds(&crd.yaml).with_context(|| format!("could not apply {}", crd.file))?;
        }
    }
    for file in &arguments.crds {
        rig.apply_crds(&read(file)?)
            .with_context(|| format!("could not apply {}", file.display()))?;
    }
    for file in &arguments.apply {
        let said = rig.apply(&read(file)?);
        eprint!("{}", said.with_context(|| format!("could not apply {}", file.display()))?);
    }

    let version = rig.kubectl(&["version"])?.stdout;
    print!("{}", String::from_utf8_lossy(&version));
    let kubectl = nodemolt_rig::program(Tool::Kubectl)?;
    println!("API server at {}", rig.url());
    println!("logs in {}", rig.folder().display());
    println!();
    println!("  export KUBECONFIG={}", rig.kubeconfig().display());
    println!("  {} get namespaces", kubectl.display());
    println!();
    println!("Ctrl-C ends it; it ends by itself in {} h.", arguments.hours);
    // Caught only from here on. Before, it ends us at once, and the guardian ends what we had started.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(tokio::signal::ctrl_c()).context("could not wait for Ctrl-C")?;
    eprintln!("stopping");
    drop(rig);
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))
}
