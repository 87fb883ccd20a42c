//! Generates what is generated.

mod instance_types;

use std::path::Path;

use clap::{Parser, Subcommand, ValueEnum};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Writes generated files anew.
    Generate { what: Generated },
}

#[derive(Clone, Copy, ValueEnum)]
enum Generated {
    /// The table of EC2 instance types.
    Types,
}

fn main() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    match Arguments::parse().verb {
        Verb::Generate { what: Generated::Types } => instance_types::generate(root),
    }
}
