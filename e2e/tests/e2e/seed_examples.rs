//! Does a real API server say what `docs/seed-examples.md` says?

#[path = "../../../crates/api/tests/seed_examples/page.rs"]
mod page;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nodemolt_rig::{Parts, Rig};
use page::{Block, Verdict};
use serde_json::Value;

#[test]
fn the_examples_of_the_five_proposals_are_taken_or_refused_as_the_page_says() {
    // A control plane of its own: no other test's objects have these names, or these kinds.
    let rig = Rig::start(Parts::default()).unwrap();
    rig.apply_crds(&definitions()).unwrap();
    let text = std::fs::read_to_string(page::path(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (_, blocks) = page::read(&text);
    let mut wrong = String::new();
    let mut taken = 0;
    for block in &blocks {
        match judge(&rig, block) {
            Ok(()) => taken += usize::from(block.verdict == Verdict::Applied),
            Err(why) => {
                let _ = writeln!(wrong, "{}: {why}", block.place());
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(taken > 10, "{taken} blocks were applied");
}

/// Ours, and those that are ours where Karpenter is not installed.
fn definitions() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds");
    let mut files: Vec<PathBuf> = [root.clone(), root.join("standalone")]
        .iter()
        .flat_map(|it| std::fs::read_dir(it).unwrap())
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "yaml"))
        .collect();
    files.sort();
    let texts: Vec<String> = files.iter().map(|it| std::fs::read_to_string(it).unwrap()).collect();
    texts.join("\n---\n")
}

fn judge(rig: &Rig, block: &Block) -> Result<(), String> {
    match &block.verdict {
        Verdict::Applied | Verdict::Unusable(_) => {
            ask(rig, &["apply", "--dry-run=server", "-f", "-"], block)?;
            // As a controller of GitOps would.
            ask(rig, &["apply", "--server-side", "--dry-run=server", "-f", "-"], block)
        }
        Verdict::Status => {
            ask(rig, &["create", "-f", "-"], block)?;
            ask(rig, &["replace", "--subresource=status", "-f", "-"], block)?;
            let output = rig.kubectl_with(&["get", "-o=json", "-f", "-"], &block.text).unwrap();
            ask(rig, &["delete", "-f", "-"], block)?;
            let stored: Value = serde_json::from_slice(&output.stdout).unwrap();
            // What is read from standard input might be many, so the answer is a list.
            let status = &stored["items"][0]["status"];
            let images = status["amis"].as_array().map_or(0, Vec::len);
            if images == 0 || images != block.text.matches("\n    - id: ").count() {
                return Err(format!("its status is {status}"));
            }
            Ok(())
        }
        Verdict::Refused(parts) => {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            refuse(rig, block, &parts).map(|_| ())
        }
        Verdict::NotServed => refuse(rig, block, &["no matches for kind"]).map(|_| ()),
        Verdict::NoObject => {
            let said = refuse(rig, block, &["error: "])?;
            if said.contains("Error from server") {
                return Err(format!("it got as far as the server: {said}"));
            }
            Ok(())
        }
        // The command line's.
        Verdict::Input | Verdict::Parameter(_) | Verdict::Command { .. } => Ok(()),
    }
}

fn ask(rig: &Rig, arguments: &[&str], block: &Block) -> Result<(), String> {
    let output = rig.kubectl_with(arguments, &block.text).unwrap();
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("kubectl {}: {said}", arguments.join(" ")))
}

/// What kubectl said, which has all of these parts.
fn refuse(rig: &Rig, block: &Block, parts: &[&str]) -> Result<String, String> {
    // Not `apply`, which first asks for an object of that name and fails by itself where there is none.
    let arguments = ["create", "--dry-run=server", "-f", "-"];
    let output = rig.kubectl_with(&arguments, &block.text).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let missing: Vec<&&str> = parts.iter().filter(|it| !said.contains(**it)).collect();
    if output.status.success() || !missing.is_empty() {
        return Err(format!("kubectl does not say {missing:?} but {said:?}"));
    }
    Ok(said.into_owned())
}
