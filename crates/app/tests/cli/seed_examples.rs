//! `docs/seed-examples.md` on the command line: what `validate` says to its manifests, and what its commands
//! print. `SNAPSHOTS=overwrite cargo test` writes that anew; then read the difference.

#[path = "../../../api/tests/seed_examples/page.rs"]
mod page;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use page::{Block, Verdict};
use serde_json::{Value, json};

use crate::words;

fn page_path() -> PathBuf {
    page::path(env!("CARGO_MANIFEST_DIR"))
}

/// A folder of its own, with the examples of the repository in it.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("seed-examples").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let examples = page_path().parent().unwrap().join("../examples").canonicalize().unwrap();
    std::os::unix::fs::symlink(examples, folder.join("examples")).unwrap();
    folder
}

/// Exit code, and what was printed: data, then talk.
fn run(arguments: &[String], folder: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap();
    let mut said = String::from_utf8(output.stdout).unwrap();
    said.push_str(&String::from_utf8(output.stderr).unwrap());
    (output.status.code().unwrap_or(-1), said)
}

#[test]
fn validate_says_what_the_page_says() {
    let folder = scratch("validate");
    let (_, blocks) = page::read(&std::fs::read_to_string(page_path()).unwrap());
    let manifests: Vec<&Block> = blocks.iter().filter(|it| it.language == "yaml").collect();
    let file = |it: &Block| format!("manifests/{}.yaml", it.line);
    std::fs::create_dir(folder.join("manifests")).unwrap();
    for block in &manifests {
        std::fs::write(folder.join(file(block)), &block.text).unwrap();
    }
    // All at once: most of the time goes into reading our own definitions.
    let (exit, said) = run(&words("validate -f manifests -o json"), &folder);
    assert_eq!(exit, 1, "{said}");
    let report: Value = serde_json::from_str(&said).unwrap();
    let mut wrong = String::new();
    for block in manifests {
        let (refused, told) = findings(&report, &file(block));
        let agrees = match &block.verdict {
            Verdict::Applied | Verdict::Status => !refused,
            Verdict::Refused(parts) | Verdict::Unusable(parts) => {
                refused && parts.iter().all(|it| told.contains(it))
            }
            Verdict::NotServed => {
                told.contains("is not served") || told.contains("is not read here")
            }
            Verdict::NoObject => refused,
            Verdict::Input | Verdict::Parameter(_) | Verdict::Command { .. } => true,
        };
        if !agrees {
            let _ = writeln!(wrong, "{}: {told}", block.place());
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Whether there is an error in a file, and all that is said of it.
fn findings(report: &Value, file: &str) -> (bool, String) {
    let objects = report["objects"].as_array().unwrap();
    let of_objects = objects.iter().flat_map(|it| it["findings"].as_array().unwrap());
    let all = of_objects.chain(report["findings"].as_array().unwrap());
    let mut refused = false;
    let mut told = String::new();
    for finding in all.filter(|it| it["file"] == file) {
        refused |= finding["severity"] == "error";
        let text = |member: &str| finding[member].as_str().unwrap_or_default().to_owned();
        let _ = writeln!(told, "{}: {}", text("field"), text("message"));
    }
    (refused, told)
}

#[test]
fn the_commands_of_the_page_print_what_it_shows() {
    let folder = scratch("commands");
    let text = std::fs::read_to_string(page_path()).unwrap();
    let (_, blocks) = page::read(&text);
    let mut updated = String::new();
    let mut written = 0;
    let mut wrong = String::new();
    for block in &blocks {
        put(block, &folder);
        let Verdict::Command { exit: expected } = block.verdict else { continue };
        let typed = block.text.lines().next().unwrap_or_default();
        let command = typed.strip_prefix("$ nodemolt ").expect("a command of ours");
        let (exit, said) = run(&words(command), &folder);
        if exit != expected {
            let _ = writeln!(wrong, "{}: exit {exit}\n{said}", block.place());
        }
        updated.push_str(&text[written..block.start]);
        let _ = write!(updated, "{typed}\n{said}");
        written = block.start + block.text.len();
    }
    updated.push_str(&text[written..]);
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(written > 0, "the page has no command");
    if std::env::var_os("SNAPSHOTS").is_some_and(|it| it == "overwrite") {
        std::fs::write(page_path(), &updated).unwrap();
    }
    assert!(updated == text, "the page is not true:\n{updated}");
}

/// Where the commands below find it.
fn put(block: &Block, folder: &Path) {
    let Some(file) = &block.file else { return };
    let text = match &block.verdict {
        // As `aws ssm get-parameters` prints it.
        Verdict::Parameter(name) => json!({
            "Parameters": [{
                "Name": name,
                "Type": "String",
                "Value": block.text.trim_end(),
                "Version": 1,
                "LastModifiedDate": "2026-10-16T06:11:17.000000+00:00",
            }],
            "InvalidParameters": [],
        })
        .to_string(),
        Verdict::Applied
        | Verdict::Status
        | Verdict::Refused(_)
        | Verdict::Unusable(_)
        | Verdict::NotServed
        | Verdict::NoObject
        | Verdict::Input
        | Verdict::Command { .. } => block.text.clone(),
    };
    std::fs::write(folder.join(file), text).unwrap();
}
