//! What a node is told, case by case: `tests/bootstrap/<case>/in.txt` and `out.txt`.
//!
//! Before the line `---` stand family and settings, behind it the user's part. Our own scripts are shown
//! whole where a case says so, else by their names: a golden fits a screen. `SNAPSHOTS=overwrite cargo
//! test` writes what is true now.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use nodemolt_core::bootstrap::mime;
use nodemolt_core::bootstrap::{Placement, Remark, Settings, Source, UserPart, render};
use nodemolt_core::fit::Family;

use crate::settings;

const FAMILIES: [&str; 3] = ["al2-", "windows-", "custom-"];

#[test]
fn every_case_comes_out_as_written() {
    let mut wrong = Vec::new();
    for case in cases() {
        let shown = show(&fs::read_to_string(case.join("in.txt")).unwrap());
        let golden = case.join("out.txt");
        if std::env::var_os("SNAPSHOTS").is_some_and(|it| it == "overwrite") {
            fs::write(&golden, &shown).unwrap();
        }
        if fs::read_to_string(&golden).unwrap_or_default() != shown {
            wrong.push(format!("{}:\n{shown}", name(&case)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn cases() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/bootstrap");
    let mut cases: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| FAMILIES.iter().any(|family| name(it).starts_with(family)))
        .collect();
    cases.sort();
    assert!(cases.len() >= 20, "there are {} cases", cases.len());
    cases
}

/// What is rendered in all cases that are not refused. A custom image's is not ours.
pub(crate) fn texts() -> Vec<String> {
    let rendered = cases().into_iter().filter_map(|it| {
        let case = Case::read(&fs::read_to_string(it.join("in.txt")).unwrap());
        if case.family == Family::Custom {
            return None;
        }
        Some(render(case.family, &case.settings, UserPart(&case.user)).ok()?.text)
    });
    rendered.collect()
}

fn name(case: &std::path::Path) -> String {
    case.file_name().unwrap().to_string_lossy().into_owned()
}

struct Case {
    family: Family,
    settings: Settings,
    user: String,
    /// Our own scripts are shown, too.
    whole: bool,
}

impl Case {
    fn read(input: &str) -> Self {
        let (head, user) = input.split_once("---\n").unwrap();
        let mut settings = settings();
        let (mut family, mut whole) = (None, false);
        let mut user = user.to_owned();
        for line in head.lines() {
            match line.split_once(": ").unwrap() {
                ("family", it) => family = it.parse::<Family>().ok(),
                ("placement", "BetweenBootstrapAndKubelet") => {
                    settings.placement = Placement::BetweenBootstrapAndKubelet;
                }
                ("raid0", "true") => settings.instance_store_raid0 = true,
                ("taint", it) => it.clone_into(&mut settings.taints[0].effect),
                ("show", "whole") => whole = true,
                ("repeat", it) => user = user.repeat(it.parse().unwrap()),
                other => panic!("{other:?} is no setting of a case"),
            }
        }
        Self { family: family.unwrap(), settings, user, whole }
    }
}

fn show(input: &str) -> String {
    let Case { family, settings, user, whole } = Case::read(input);
    let mut shown = String::new();
    match render(family, &settings, UserPart(&user)) {
        Ok(user_data) => {
            let again = render(family, &settings, UserPart(&user_data.text)).unwrap();
            assert_eq!(again.text, user_data.text, "rendering again changes nothing");
            let text = if whole { user_data.text.clone() } else { shorten(&user_data.text) };
            write!(shown, "{text}=====\n{}\n", user_data.digest()).unwrap();
            for it in &user_data.provenance {
                let source = match it.source {
                    Source::User => "user",
                    Source::Class => "class",
                    Source::Nodemolt => "nodemolt",
                };
                writeln!(shown, "{}: {source}", it.what).unwrap();
            }
            user_data.remarks.iter().for_each(|it| say(&mut shown, "warning", it));
        }
        Err(conflict) => conflict.remarks.iter().for_each(|it| say(&mut shown, "refused", it)),
    }
    shown
}

fn say(shown: &mut String, how: &str, remark: &Remark) {
    writeln!(shown, "{how}: {remark}").unwrap();
    if let Some(hint) = &remark.hint {
        writeln!(shown, "  hint: {hint}").unwrap();
    }
}

/// Without the bodies of our own scripts.
fn shorten(text: &str) -> String {
    let Ok(document) = mime::read(text) else { return text.to_owned() };
    let ours = |it: &str| it.contains("-nodemolt-");
    document.parts.iter().filter(|it| it.part.filename().is_some_and(|it| ours(&it))).fold(
        text.to_owned(),
        |text, it| {
            let lines = it.part.body.lines().count();
            text.replace(&it.part.body, &format!("({lines} lines of ours)\n"))
        },
    )
}
