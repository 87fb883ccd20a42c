//! What does a user see?
//!
//! Each folder under `tests/goldens` is a case: `cmd` is what is typed after `nodemolt`, run in a copy of
//! that folder and of the files beside it; `expected.txt` is exit code, stdout and stderr. `SNAPSHOTS=overwrite cargo test` writes them
//! anew; then read the difference.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod crds;
mod images;
mod scenarios;
mod seed_examples;
mod shuffled;
mod simulated;
mod types;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn resolve_answers_as_expected() {
    check("resolve");
}

#[test]
fn launch_renders_as_expected() {
    check("launch");
}

#[test]
fn user_data_is_rendered_compared_and_linted_as_expected() {
    check("userdata");
}

#[test]
fn manifests_are_validated_as_expected() {
    check("validate");
}

#[test]
fn pods_are_packed_as_expected() {
    check("pack");
}

#[test]
fn simulated_worlds_answer_as_expected() {
    check("sim");
}

/// A `console` block of the README is a command and what it prints. They are run here, so that what a
/// new user reads first is true.
#[test]
fn the_readme_shows_what_really_comes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let mut updated = String::new();
    let mut rest = readme.as_str();
    let mut blocks = 0;
    while let Some(at) = rest.find("```console\n$ nodemolt ") {
        let start = at + "```console\n".len();
        let block_end = start + rest[start..].find("```").unwrap();
        let line_end = start + rest[start..].find('\n').unwrap();
        let typed = rest[start..line_end].strip_prefix("$ nodemolt ").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
            .args(words(typed))
            .current_dir(&root)
            .output()
            .unwrap();
        updated.push_str(&rest[..=line_end]);
        updated.push_str(&String::from_utf8(output.stdout).unwrap());
        rest = &rest[block_end..];
        blocks += 1;
    }
    updated.push_str(rest);
    assert!(blocks > 0, "the README has no transcript");
    if std::env::var_os("SNAPSHOTS").is_some_and(|it| it == "overwrite") {
        std::fs::write(root.join("README.md"), &updated).unwrap();
    }
    assert!(updated == readme, "the README is not true:\n{updated}");
}

/// Runs every case of a folder and names all that differ.
fn check(folder: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(folder);
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.join("cmd").is_file())
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "no cases in {}", root.display());
    let mut differing = String::new();
    for case in &cases {
        let shown = run(case);
        let golden = case.join("expected.txt");
        if std::env::var_os("SNAPSHOTS").is_some_and(|it| it == "overwrite") {
            std::fs::write(&golden, &shown).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if expected != shown {
            let name = case.file_name().unwrap().to_string_lossy();
            let _ = writeln!(differing, "── {name}\nexpected:\n{expected}\nfound:\n{shown}");
        }
    }
    assert!(differing.is_empty(), "{differing}");
}

/// One command or several, one to a line; a line may end in `> FILE`, below a folder of its own.
fn run(case: &Path) -> String {
    // Folders run beside each other, and two may have a case of one name.
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("cli")
        .join(case.parent().and_then(Path::file_name).unwrap())
        .join(case.file_name().unwrap());
    let _ = std::fs::remove_dir_all(&scratch);
    copy(case, &scratch);
    for beside in std::fs::read_dir(case.parent().unwrap()).unwrap() {
        let beside = beside.unwrap().path();
        if beside.is_file() {
            std::fs::copy(&beside, scratch.join(beside.file_name().unwrap())).unwrap();
        }
    }
    let mut shown = String::new();
    for line in std::fs::read_to_string(case.join("cmd")).unwrap().lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (typed, file) = match line.split_once(" > ") {
            Some((typed, file)) => (typed, Some(file.trim())),
            None => (line, None),
        };
        let output = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
            .args(words(typed))
            .current_dir(&scratch)
            .env("XDG_STATE_HOME", &scratch)
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let _ = writeln!(shown, "$ nodemolt {line}");
        match file {
            Some(file) => std::fs::write(scratch.join(file), stdout).unwrap(),
            None => shown.push_str(&stdout),
        }
        let stderr = String::from_utf8(output.stderr).unwrap();
        if !stderr.is_empty() {
            let _ = write!(shown, "── stderr\n{stderr}");
        }
        let _ = writeln!(shown, "── exit {}\n", output.status.code().unwrap_or(-1));
    }
    // Where that is, is of this machine.
    shown.replace(&scratch.display().to_string(), "~")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, target).unwrap();
        }
    }
}

/// Words between blanks; quotes keep blanks together. `EXAMPLES/` is the repository's folder of them.
fn words(line: &str) -> Vec<String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                words.extend(Some(std::mem::take(&mut word)).filter(|it| !it.is_empty()));
            }
            other => word.push(other),
        }
    }
    words.extend(Some(word).filter(|it| !it.is_empty()));
    words
        .into_iter()
        .map(|it| match it.strip_prefix("EXAMPLES/") {
            Some(rest) => examples.join(rest).display().to_string(),
            None => it,
        })
        .collect()
}
