//! Is the bar around the pure crates really there?
//!
//! A misspelt path in `clippy.toml` bars nothing and says nothing. So a throw-away crate under the
//! same rules does each forbidden thing once, and clippy must object to every line.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::cargo;

/// One offence per line. Only the standard library: the crate must build without any other.
const OFFENCES: [&str; 10] = [
    "let _ = std::time::SystemTime::now();",
    "let _ = std::time::Instant::now();",
    "let _ = std::env::var(\"HOME\");",
    "let _ = std::fs::read(\"file\");",
    "let _ = std::fs::File::open(\"file\");",
    "let _ = std::net::TcpStream::connect(\"localhost:1\");",
    "let _ = std::process::Command::new(\"true\");",
    "let _ = std::collections::HashMap::<u8, u8>::new();",
    "let _ = std::hash::RandomState::new();",
    "std::thread::sleep(std::time::Duration::ZERO);",
];

/// The first offence's line in the crate's one file.
const FIRST_LINE: usize = 2;

const MANIFEST: &str = "\
[package]
name = \"purity\"
version = \"0.0.0\"
edition = \"2024\"

[workspace]
";

const LOCK: &str = "\
version = 4

[[package]]
name = \"purity\"
version = \"0.0.0\"
";

/// The offences that clippy let pass.
pub(super) fn unbarred(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("target/purity");
    fs::create_dir_all(folder.join("src")).context("could not make the throw-away crate")?;
    let rules = fs::read_to_string(root.join("crates/core/clippy.toml"))
        .context("could not read crates/core/clippy.toml")?;
    let source = format!("fn main() {{\n{}\n}}\n", OFFENCES.join("\n"));
    let files = [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("clippy.toml", &rules),
        ("src/main.rs", &source),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).with_context(|| format!("could not write {name}"))?;
    }

    let mut clippy = cargo::cargo(&folder);
    clippy.args(["clippy", "--quiet", "--locked", "--offline", "--message-format", "short"]);
    // Its own target folder, or the lock on ours would make it wait for a build that runs beside.
    clippy.env("CARGO_TARGET_DIR", folder.join("target"));
    let ran = cargo::run(&mut clippy)?;
    anyhow::ensure!(ran.succeeded, "clippy failed: {}", ran.lines.join("\n"));
    Ok(passed_over(&ran.lines))
}

fn passed_over(said: &[String]) -> Vec<String> {
    (FIRST_LINE..)
        .zip(OFFENCES)
        .filter(|(number, _)| {
            let place = format!("src/main.rs:{number}:");
            !said.iter().any(|it| it.starts_with(&place) && it.contains("disallowed"))
        })
        .map(|(_, offence)| format!("crates/core/clippy.toml does not bar `{offence}`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_a_finding() {
        let said = ["src/main.rs:2:20: warning: use of a disallowed type `SystemTime`".to_owned()];
        let passed = passed_over(&said);
        assert_eq!(passed.len(), OFFENCES.len() - 1);
        assert!(passed[0].contains("Instant"));
    }
}
