//! Which files are generated, and are they current?
//!
//! What can be made again from this repository alone is compared byte for byte by `cargo verify`.
//! The tables of instance types and prices come from packages outside: tests in `fit` check their
//! headers.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::{check::Check, examples, instance_types, prices};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// The catalog under examples/catalog
    Examples,
    /// The table of EC2 instance types
    Types,
    /// The table of EC2's prices on demand
    Prices,
    /// All of them
    All,
}

pub(crate) fn generate(root: &Path, what: What) -> Result<()> {
    match what {
        What::Examples => write(root, &examples::render()),
        What::Types => instance_types::generate(root),
        What::Prices => prices::generate(root),
        What::All => write(root, &examples::render())
            .and_then(|()| instance_types::generate(root))
            .and_then(|()| prices::generate(root)),
    }
}

/// One check per generated file: its bytes are what would be written now.
pub(crate) fn current(root: &Path) -> Vec<Check> {
    examples::render()
        .iter()
        .map(|(path, text)| {
            let found = match fs::read_to_string(root.join(path)) {
                Ok(there) if there == *text => Vec::new(),
                Ok(_) => vec![format!("{path} is stale: run `cargo xtask generate examples`")],
                Err(error) => vec![format!("could not read {path}: {error}")],
            };
            Check { name: "generated", findings: found }
        })
        .collect()
}

fn write(root: &Path, files: &BTreeMap<&'static str, String>) -> Result<()> {
    for (path, text) in files {
        let file = root.join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("could not make room for {path}"))?;
        }
        fs::write(&file, text).with_context(|| format!("could not write {path}"))?;
        eprintln!("{path}: {} lines", text.lines().count());
    }
    Ok(())
}
