//! Does the tree keep the house rules that no compiler knows?
//!
//! `files → findings`, one small function per rule. What each rule is for stands in
//! `docs/STYLE.md`; the rules are few on purpose, because a reader's judgement beats them.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::check::Check;

mod assumptions;
mod purity;

/// A text file of the repository.
#[derive(Debug)]
struct Source {
    /// From the root, with `/`.
    path: String,
    text: String,
}

pub(crate) fn tidy(root: &Path) -> Vec<Check> {
    let sources = match sources(root) {
        Ok(sources) => sources,
        Err(error) => return vec![Check::of("tree", Err(error))],
    };
    vec![
        Check { name: "architecture", findings: unnamed_in_architecture(&sources) },
        Check { name: "module files", findings: mod_files(&sources) },
        Check { name: "module docs", findings: undocumented_modules(&sources) },
        Check { name: "machine paths", findings: machine_paths(&sources) },
        Check { name: "open ends", findings: open_ends_without_issue(&sources) },
        Check { name: "type names", findings: empty_type_names(&sources) },
        Check { name: "decisions", findings: incomplete_decisions(&sources) },
        Check { name: "assumptions", findings: assumptions::held_by_nothing(&sources) },
        Check { name: "purity rules", findings: differing_purity_rules(&sources) },
        Check::of("purity", purity::unbarred(root)),
    ]
}

/// The code map must lead to every crate and to every stage of the story.
fn unnamed_in_architecture(sources: &[Source]) -> Vec<String> {
    const PAGE: &str = "docs/ARCHITECTURE.md";
    let Some(page) = sources.iter().find(|it| it.path == PAGE) else {
        return vec![format!("{PAGE} is missing")];
    };
    let mut names: Vec<String> = Vec::new();
    for source in sources {
        let Some(path) = source.path.strip_prefix("crates/") else { continue };
        if let Some((name, "Cargo.toml")) = path.split_once('/') {
            names.push(format!("crates/{name}"));
        }
        let module = path.strip_prefix("core/src/").and_then(|it| it.strip_suffix(".rs"));
        names.extend(module.filter(|it| *it != "lib").map(str::to_owned));
    }
    names
        .into_iter()
        .filter(|it| !page.text.contains(&format!("`{it}`")))
        .map(|it| format!("{PAGE} does not name `{it}`"))
        .collect()
}

fn mod_files(sources: &[Source]) -> Vec<String> {
    sources
        .iter()
        // What tests share has no other place: `tests/support.rs` would be a test itself.
        .filter(|it| it.path.ends_with("/mod.rs") && !it.path.contains("/tests/"))
        .map(|it| format!("{}: write `foo.rs` beside `foo/`, not `foo/mod.rs`", it.path))
        .collect()
}

fn undocumented_modules(sources: &[Source]) -> Vec<String> {
    sources
        .iter()
        .filter(|it| is_rust(it) && it.path.starts_with("crates/") && it.path.contains("/src/"))
        .filter(|it| !it.text.starts_with("//!"))
        .map(|it| format!("{}: a module opens with its question, as `//!`", it.path))
        .collect()
}

/// Folders of somebody's machine: what stands there exists nowhere else.
fn machine_paths(sources: &[Source]) -> Vec<String> {
    // Put together here, so that this file is not its own first finding.
    let folders = ["home", "Users", "root", "work"].map(|it| format!("/{it}/"));
    // The login of Amazon's images is the same on every machine.
    let everywhere = concat!("/", "home/", "ec2-user");
    lines(
        sources,
        |_| true,
        |line| {
            let line = line.replace(everywhere, "");
            let folder = folders.iter().find(|folder| {
                line.match_indices(folder.as_str()).any(|(at, _)| {
                    // Inside a longer path or an address it is no machine's folder.
                    !line[..at].ends_with(|it: char| it.is_alphanumeric() || "._-/}>".contains(it))
                })
            })?;
            Some(format!("`{folder}` is a path of one machine"))
        },
    )
}

fn open_ends_without_issue(sources: &[Source]) -> Vec<String> {
    let word = concat!("TO", "DO");
    let code = |it: &Source| {
        [".rs", ".toml", ".yaml", ".sh"].iter().any(|ending| it.path.ends_with(ending))
    };
    lines(sources, code, |line| {
        let (_, after) = line.split_once(word)?;
        let number = after.strip_prefix("(#").and_then(|it| it.split_once(')'));
        let numbered = number.is_some_and(|(it, _)| it.parse::<u32>().is_ok());
        (!numbered).then(|| format!("write {word}(#12) with the issue's number, or an issue"))
    })
}

/// Names that say nothing about the thing.
const EMPTY_ENDINGS: [&str; 7] =
    ["Manager", "Handler", "Helper", "Util", "Info", "Data", "Service"];
/// EC2's own word for the text a machine is given at boot.
const NOT_EMPTY: [&str; 1] = ["UserData"];

fn empty_type_names(sources: &[Source]) -> Vec<String> {
    lines(sources, is_rust, |line| {
        let name = declared_type(line)?;
        let ending = EMPTY_ENDINGS.iter().find(|it| name.ends_with(**it))?;
        let meant = NOT_EMPTY.contains(&name);
        (!meant).then(|| format!("`{name}`: `{ending}` says nothing; name the thing"))
    })
}

/// The name after `struct`, `enum`, `trait` or `type` at the start of a declaration.
fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let keyword = words.find(|it| !it.starts_with("pub"))?;
    if !["struct", "enum", "trait", "type"].contains(&keyword) {
        return None;
    }
    let name = words.next()?;
    name.split(|it: char| !it.is_alphanumeric() && it != '_').next()
}

const SECTIONS: [&str; 4] =
    ["## Context", "## Decision", "## Consequences", "## What would change our mind"];

fn incomplete_decisions(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for page in sources.iter().filter(|it| it.path.starts_with("docs/decisions/")) {
        let headings: Vec<&str> = page.text.lines().filter(|it| it.starts_with("## ")).collect();
        if headings != SECTIONS {
            findings.push(format!("{}: its sections are {}", page.path, SECTIONS.join(", ")));
        }
        let number = page.path.trim_start_matches("docs/decisions/").split('-').next();
        if !number.is_some_and(|it| it.len() == 4 && it.bytes().all(|it| it.is_ascii_digit())) {
            findings.push(format!("{}: the name begins with four digits", page.path));
        }
    }
    findings
}

/// Clippy reads one file per crate; the two pure crates must be barred from the same things.
fn differing_purity_rules(sources: &[Source]) -> Vec<String> {
    let rules = |path: &str| sources.iter().find(|it| it.path == path).map(|it| &it.text);
    match (rules("crates/fit/clippy.toml"), rules("crates/core/clippy.toml")) {
        (Some(fit), Some(core)) if fit == core => Vec::new(),
        (Some(_), Some(_)) => vec!["clippy.toml of fit and core differ".to_owned()],
        _ => vec!["fit or core has no clippy.toml".to_owned()],
    }
}

fn is_rust(source: &Source) -> bool {
    Path::new(&source.path).extension().is_some_and(|it| it == "rs")
}

/// `path:line: finding` for every line that has one.
fn lines(
    sources: &[Source],
    wanted: impl Fn(&Source) -> bool,
    find: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|it| wanted(it)) {
        for (number, line) in (1..).zip(source.text.lines()) {
            findings.extend(find(line).map(|it| format!("{}:{number}: {it}", source.path)));
        }
    }
    findings
}

/// Every text file below the root, in order of path, without what git and cargo keep there.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    collect(root, "", &mut sources)?;
    if sources.is_empty() {
        bail!("there are no files");
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}

fn collect(folder: &Path, prefix: &str, sources: &mut Vec<Source>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("could not list `{prefix}`"))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("could not list `{prefix}`"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if name == ".git" || name == "target" {
            continue;
        }
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{path}/"), sources)?;
        } else {
            let bytes = fs::read(entry.path()).with_context(|| format!("could not read {path}"))?;
            // What is not text has no lines to be tidy.
            sources.extend(String::from_utf8(bytes).ok().map(|text| Source { path, text }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn count(rule: impl Fn(&[Source]) -> Vec<String>, path: &str, text: &str) -> usize {
        rule(&[source(path, text)]).len()
    }

    #[test]
    fn the_architecture_names_crates_and_stages() {
        let tree = [
            source("crates/core/Cargo.toml", ""),
            source("crates/core/src/lib.rs", ""),
            source("crates/core/src/resolve.rs", ""),
            source("crates/core/src/bootstrap/nodeadm.rs", ""),
            source("docs/ARCHITECTURE.md", "`crates/core` has `resolve`, and that resolves."),
        ];
        let missing = "docs/ARCHITECTURE.md does not name `bootstrap/nodeadm`";
        assert_eq!(unnamed_in_architecture(&tree), [missing]);
    }

    #[test]
    fn a_folder_has_its_module_beside_it() {
        assert_eq!(count(mod_files, "crates/core/src/bootstrap/mod.rs", ""), 1);
        assert_eq!(count(mod_files, "crates/core/src/bootstrap.rs", ""), 0);
    }

    #[test]
    fn a_module_opens_with_its_question() {
        assert_eq!(count(undocumented_modules, "crates/fit/src/label.rs", "use std;"), 1);
        assert_eq!(count(undocumented_modules, "crates/fit/src/label.rs", "//! What?"), 0);
        assert_eq!(count(undocumented_modules, "crates/fit/tests/label.rs", "use std;"), 0);
    }

    #[test]
    fn paths_of_a_machine_are_found_and_addresses_are_not() {
        let somebody = concat!("see /", "home/", "ann/nodemolt");
        let login = concat!("cd /", "home/", "ec2-user");
        let address = concat!("https://example.com/", "work/", "nodemolt");
        assert_eq!(count(machine_paths, "README.md", somebody), 1);
        assert_eq!(count(machine_paths, "README.md", login), 0);
        assert_eq!(count(machine_paths, "README.md", address), 0);
    }

    #[test]
    fn an_open_end_has_an_issue() {
        assert_eq!(count(open_ends_without_issue, "a.rs", concat!("// TO", "DO: later")), 1);
        assert_eq!(count(open_ends_without_issue, "a.rs", concat!("// TO", "DO(#7): sort")), 0);
    }

    #[test]
    fn type_names_say_something() {
        let names = ["pub struct ImageManager {", "pub(crate) enum GpuInfo {", "trait PodHandler:"];
        for name in names {
            assert_eq!(count(empty_type_names, "a.rs", name), 1, "{name}");
        }
        for name in ["pub struct UserData(String);", "struct Manage<T>;", "let data = 1;"] {
            assert_eq!(count(empty_type_names, "a.rs", name), 0, "{name}");
        }
    }

    #[test]
    fn a_decision_has_four_sections_in_order() {
        let whole = SECTIONS.join("\n\n");
        let half = SECTIONS[..2].join("\n\n");
        assert_eq!(count(incomplete_decisions, "docs/decisions/0001-one.md", &whole), 0);
        assert_eq!(count(incomplete_decisions, "docs/decisions/0001-one.md", &half), 1);
        assert_eq!(count(incomplete_decisions, "docs/decisions/one.md", &whole), 1);
    }

    #[test]
    fn the_pure_crates_are_barred_alike() {
        let fit = source("crates/fit/clippy.toml", "a");
        let core = source("crates/core/clippy.toml", "b");
        assert_eq!(differing_purity_rules(&[fit, core]).len(), 1);
        assert_eq!(differing_purity_rules(&[]).len(), 1);
    }
}
