//! Is every page of `docs/scenarios` true?
//!
//! Each `console` block is typed, in order, in a world of the page's own; what is printed must be what
//! stands there. A `yaml NAME` block is a file of that name. `SNAPSHOTS=overwrite` writes it anew. In the
//! end the world is lived once more with all laws checked.
//!
//! What a page shows is what the product prints, so it cannot say whether the product is right: what
//! `explain` has to name on each of them stands in [`causes`], written by hand.

mod causes;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::words;
use causes::Asked;

/// All that a page may use: the commands that were promised, and two that a page cannot do without, since
/// no other lets a person change an object (decision 0032).
const COMMANDS: [&str; 16] = [
    "sim load",
    "sim publish",
    "sim fault",
    "sim run",
    "sim list",
    "sim replay",
    "sim apply",
    "sim delete",
    "status",
    "drift",
    "plan",
    "explain",
    "upgrade",
    "pause",
    "resume",
    "unlock",
];

#[test]
fn every_scenario_goes_as_its_page_tells() {
    let pages = files("md");
    assert!(!pages.is_empty(), "there are no pages");
    // Two at a time: each command lives its world from the beginning.
    let (left, right) = pages.split_at(pages.len() / 2);
    let wrong = std::thread::scope(|scope| {
        let other = scope.spawn(|| right.iter().filter_map(|it| untrue(it)).collect::<Vec<_>>());
        let mut wrong: Vec<String> = left.iter().filter_map(|it| untrue(it)).collect();
        wrong.extend(other.join().unwrap());
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is not as the page tells, if anything is.
fn untrue(page: &Path) -> Option<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let home = scratch(page);
    let (updated, commands, asked) = lived(&text, &home);
    let name = page.file_stem().unwrap().to_string_lossy().into_owned();
    let needed = format!("sim load {name}");
    assert!(commands.iter().any(|it| it.contains(&needed)), "{name} has no `{needed}`");
    for typed in &commands {
        let one_of = |it: &&str| typed == it || typed.starts_with(&format!("{it} "));
        assert!(COMMANDS.iter().any(one_of), "{name}: a page does not use `{typed}`");
    }
    let wrong = causes::wrong(&name, &asked);
    if !wrong.is_empty() {
        return Some(format!("── {name} names the wrong things:\n{}", wrong.join("\n")));
    }
    let again = nodemolt("sim replay --short", &home);
    if !again.status.success() {
        let told = String::from_utf8_lossy(&again.stderr);
        return Some(format!("── {name} breaks a law:\n{told}"));
    }
    if std::env::var_os("SNAPSHOTS").is_some_and(|it| it == "overwrite") {
        std::fs::write(page, &updated).unwrap();
        return None;
    }
    (updated != text).then(|| format!("── {name} would be:\n{updated}"))
}

#[test]
fn every_scenario_has_its_page() {
    let there = |page: &Path| page.with_extension("md").is_file();
    // The demo tells itself.
    let without: Vec<PathBuf> = files("yaml")
        .into_iter()
        .filter(|it| !there(it) && it.file_stem().is_some_and(|it| it != "demo"))
        .collect();
    assert!(without.is_empty(), "no page: {without:?}");
    let home = scratch(Path::new("list"));
    let listed = nodemolt("sim list", &home);
    let listed = String::from_utf8(listed.stdout).unwrap();
    for file in files("yaml") {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            listed.lines().any(|it| it.starts_with(&format!("{name} "))),
            "{name} is not listed"
        );
    }
}

/// The page with what is really printed, the commands in it, and the stories that were asked for.
fn lived(text: &str, home: &Path) -> (String, Vec<String>, Vec<Asked>) {
    let mut updated = String::new();
    let mut commands = Vec::new();
    let mut asked: Vec<Asked> = Vec::new();
    let mut claims: Vec<String> = Vec::new();
    let mut in_block = false;
    let mut file: Option<(PathBuf, String)> = None;
    for line in text.lines() {
        if let Some((path, content)) = &mut file {
            if line == "```" {
                std::fs::write(path, content).unwrap();
                file = None;
            } else {
                content.push_str(line);
                content.push('\n');
            }
        } else if let Some(name) = line.strip_prefix("```yaml ") {
            file = Some((home.join(name), String::new()));
        } else if in_block {
            if line == "```" {
                in_block = false;
            } else if let Some(typed) = line.strip_prefix("$ nodemolt ") {
                commands.push(typed.to_owned());
                updated.push_str(line);
                updated.push('\n');
                let told = shown(&nodemolt(typed, home));
                claims.extend(causes::claims_made(&told));
                if typed == "explain" || typed.starts_with("explain ") {
                    let story = nodemolt(&format!("{typed} -o json"), home);
                    let story = serde_json::from_slice(&story.stdout).unwrap();
                    let about = typed.strip_prefix("explain").unwrap().trim().to_owned();
                    asked.push(Asked { about, told: told.clone(), story, claims: claims.clone() });
                }
                updated.push_str(&told);
                continue;
            } else {
                continue;
            }
        } else if line == "```console" {
            in_block = true;
        }
        updated.push_str(line);
        updated.push('\n');
    }
    (updated, commands, asked)
}

/// Data; where it failed also why.
fn shown(output: &Output) -> String {
    let mut text = String::from_utf8(output.stdout.clone()).unwrap();
    if !output.status.success() {
        text.push_str(&String::from_utf8(output.stderr.clone()).unwrap());
    }
    text
}

fn nodemolt(typed: &str, home: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nodemolt"))
        .args(words(typed))
        .current_dir(home)
        .env("XDG_STATE_HOME", home)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap()
}

fn scratch(page: &Path) -> PathBuf {
    let home =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios").join(page.file_stem().unwrap());
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home).unwrap();
    home
}

fn files(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios");
    let all = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut found: Vec<PathBuf> =
        all.filter(|it| it.extension().is_some_and(|it| it == extension)).collect();
    found.sort();
    found
}
