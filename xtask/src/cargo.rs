//! How do we run cargo, and what did its tests say?
//!
//! Every child's output is kept and shown only if it failed, save the lines that CI counts.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::{self, Sender},
    thread,
};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::check::Tally;

/// What a finished child left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub succeeded: bool,
    /// Both streams, line by line as they came.
    pub lines: Vec<String>,
}

impl Ran {
    /// The sum of all `test result:` lines.
    pub(crate) fn tests(&self) -> Tally {
        self.lines.iter().filter_map(|it| read_test_result(it)).sum()
    }

    /// What was not passed on yet. Whoever counts result lines must see each once.
    pub(crate) fn kept_back(&self) -> String {
        let lines = self.lines.iter().filter(|it| read_test_result(it).is_none());
        lines.map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// The cargo that runs us, so that a child never meets another toolchain.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

/// Runs to the end. `test result:` lines are passed on at once.
pub(crate) fn run(command: &mut Command) -> Result<Ran> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start {}", command.get_program().display()))?;

    let (sender, receiver) = mpsc::channel();
    let readers = [
        child.stdout.take().map(|it| pass_lines(it, sender.clone())),
        child.stderr.take().map(|it| pass_lines(it, sender)),
    ];
    let mut lines = Vec::new();
    for line in receiver {
        if read_test_result(&line).is_some() {
            println!("{line}");
        }
        lines.push(line);
    }
    for reader in readers.into_iter().flatten() {
        reader.join().expect("a thread that only reads lines does not panic");
    }
    let status = child.wait().context("could not wait for cargo")?;
    Ok(Ran { succeeded: status.success(), lines })
}

fn pass_lines(stream: impl Read + Send + 'static, lines: Sender<String>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        // A test may print bytes that are no text; they must not end the reading.
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
            if lines.send(text).is_err() {
                return;
            }
        }
    })
}

/// `test result: ok. 12 passed; 0 failed; …`, if the line is one.
fn read_test_result(line: &str) -> Option<Tally> {
    let counts = line.strip_prefix("test result: ")?;
    let count = |word: &str| {
        let before = counts.split(';').find_map(|it| it.trim().strip_suffix(word))?;
        before.split_whitespace().last()?.parse().ok()
    };
    Some(Tally { passed: count(" passed")?, failed: count(" failed")? })
}

/// The part of `cargo metadata` that we look at.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub name: String,
    pub dependencies: Vec<Dependency>,
    pub targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub name: String,
    /// Nothing for a normal one, else `dev` or `build`.
    pub kind: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub name: String,
    pub kind: Vec<String>,
}

/// The packages of the workspace, without what they take from outside.
pub(crate) fn metadata(root: &Path) -> Result<Metadata> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--locked"];
    let output = cargo(root).args(arguments).output().context("could not start cargo metadata")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    serde_json::from_slice(&output.stdout).context("cannot read the answer of cargo metadata")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_result_lines_are_counted() {
        let line = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 1 filtered out";
        assert_eq!(read_test_result(line), Some(Tally { passed: 3, failed: 2 }));
        assert_eq!(read_test_result("test the_result ... ok"), None);
        assert_eq!(read_test_result("test result: who knows"), None);
    }
}
