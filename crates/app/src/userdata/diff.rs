//! What would change on the node?
//!
//! `text × text → parts and keys that differ, and then the lines`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nodemolt_core::bootstrap::{mime, user_part};
use serde::Serialize;
use similar::{Algorithm, DiffOp, DiffTag, TextDiff, capture_diff_slices};

use super::keys::{self, Part, Stands};
use super::{Cluster, Prepared, read_text, tell_once};
use crate::cli::{self, Format, PlainFormat};
use crate::input;
use crate::output::{self, Answer, Exit, Failure, Look};

pub(crate) fn run(verb: &cli::UserdataDiff, look: Look) -> Result<Answer, Failure> {
    let named = [&verb.before, &verb.after].into_iter().chain(super::files_of(&verb.boot));
    input::read_stdin_once(named)?;
    let mut talk = String::new();
    let before = side(&verb.before, &verb.boot, &mut talk)?;
    let after = side(&verb.after, &verb.boot, &mut talk)?;
    let compared = Compared::new(verb, &before, &after);
    let data = match verb.output {
        PlainFormat::Text => compared.print(look),
        PlainFormat::Json => output::serialize(Format::Json, &compared)?,
    };
    let exit = if compared.differ && verb.detailed_exitcode { Exit::Differs } else { Exit::Done };
    Ok(Answer { data, talk, exit })
}

/// Both sides, compared.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Compared {
    api_version: &'static str,
    kind: &'static str,
    /// As they were typed.
    before: String,
    after: String,
    differ: bool,
    /// In meaning.
    differences: Vec<Difference>,
    /// And line by line, as `diff -u` has it; boundaries of MIME are called `BOUNDARY`.
    lines: String,
}

impl Compared {
    fn new(verb: &cli::UserdataDiff, before: &str, after: &str) -> Self {
        let (one, other) = (without_boundary(before), without_boundary(after));
        let (from, to) = (verb.before.display().to_string(), verb.after.display().to_string());
        let lines = TextDiff::from_lines(one.as_str(), other.as_str());
        let lines = lines.unified_diff().context_radius(3).header(&from, &to).to_string();
        let differ = before != after;
        Self {
            api_version: "nodemolt.dev/cli/v1",
            kind: "UserDataDiff",
            before: from,
            after: to,
            differ,
            differences: if differ { differences(before, after) } else { Vec::new() },
            lines,
        }
    }

    fn print(&self, look: Look) -> String {
        if !self.differ {
            return "no differences\n".to_owned();
        }
        let mut data = String::new();
        for it in &self.differences {
            let _ = writeln!(data, "{}", look.plain(&it.print()));
        }
        data.push('\n');
        if self.lines.is_empty() {
            data.push_str("the lines differ in MIME boundaries only\n");
        }
        data.push_str(&self.lines);
        data
    }
}

/// A class is rendered; anything else was: as text, as base64 (of ours, or of EC2's), or as our JSON.
fn side(path: &Path, boot: &cli::Boot, talk: &mut String) -> Result<String, Failure> {
    let text = read_text(path)?;
    if !text.lines().any(names_a_class) {
        let (text, form) = unpacked(text);
        if let Some(form) = form {
            let _ =
                writeln!(talk, "note: `{}` is {form}: compared is what it holds", path.display());
        }
        return Ok(text);
    }
    let files: [PathBuf; 1] = [path.to_owned()];
    let prepared = Prepared::read(&files, boot, Cluster::Needed, "compared")
        .map_err(|it| Failure { talk: format!("{talk}{}", it.talk), ..it })?;
    let (user_data, told) = prepared
        .rendered("compared")
        .map_err(|it| Failure { talk: format!("{talk}{}", it.talk), ..it })?;
    // What concerns both is told once.
    tell_once(talk, &told);
    Ok(user_data.text)
}

/// The text that a node gets, and what it was wrapped in.
fn unpacked(text: String) -> (String, Option<&'static str>) {
    if let Some(inner) = user_part::text_in_base64(&text) {
        return (inner, Some("base64"));
    }
    let json = serde_json::from_str::<serde_json::Value>(&text).ok();
    let json =
        json.filter(|it| it["kind"] == "UserData" && it["apiVersion"] == "nodemolt.dev/cli/v1");
    match json.as_ref().and_then(|it| it["text"].as_str()) {
        Some(inner) => (inner.to_owned(), Some("JSON of `render`")),
        None => (text, None),
    }
}

/// `kind: EC2NodeClass`, in YAML or JSON.
fn names_a_class(line: &str) -> bool {
    let plain: String = line.chars().filter(|it| !it.is_whitespace()).collect();
    let plain = plain.split('#').next().unwrap_or_default();
    plain.contains("\"kind\":\"EC2NodeClass\"")
        || plain.trim_start_matches('-').replace(['"', '\''], "") == "kind:EC2NodeClass"
}

/// A boundary follows from the content, so it differs whenever anything does.
fn without_boundary(text: &str) -> String {
    let Some(boundary) = Some(text).filter(|it| mime::looks_like_mime(it)).and_then(|it| {
        let (_, rest) = it.split_once("boundary=\"")?;
        rest.split_once('"').map(|(boundary, _)| boundary)
    }) else {
        return text.to_owned();
    };
    if boundary.is_empty() { text.to_owned() } else { text.replace(boundary, "BOUNDARY") }
}

/// One part or key that is not the same.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Difference {
    part: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(flatten)]
    change: Change,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "camelCase")]
enum Change {
    Added {
        #[serde(skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    Removed {
        #[serde(skip_serializing_if = "Option::is_none")]
        before: Option<String>,
    },
    Changed {
        before: String,
        after: String,
    },
    /// A text without keys: how many lines came and went.
    Lines {
        added: usize,
        removed: usize,
    },
}

impl Difference {
    fn print(&self) -> String {
        let what = match &self.key {
            Some(key) => format!("{} {key}", self.part),
            None => self.part.clone(),
        };
        let with = |value: &Option<String>| {
            let value = value.as_deref().filter(|it| !it.is_empty());
            value.map(|it| format!(": {it}")).unwrap_or_default()
        };
        match &self.change {
            Change::Added { after } => format!("+ {what}{}", with(after)),
            Change::Removed { before } => format!("- {what}{}", with(before)),
            Change::Changed { before, after } => format!("~ {what}: {before} → {after}"),
            Change::Lines { added, removed } => {
                format!("~ {what}: lines added {added}, removed {removed}")
            }
        }
    }
}

fn differences(before: &str, after: &str) -> Vec<Difference> {
    let (before, after) = (keys::read(before), keys::read(after));
    let mut found = Vec::new();
    // What is the same stays; between, parts of one type and name are one part that changed.
    for op in capture_diff_slices(Algorithm::Myers, &before, &after) {
        if op.tag() == DiffTag::Equal {
            continue;
        }
        let (olds, news) = (op.old_range(), op.new_range());
        let called = |parts: &[Part]| parts.iter().map(|it| it.called.clone()).collect::<Vec<_>>();
        let names = (called(&before[olds.clone()]), called(&after[news.clone()]));
        for inner in capture_diff_slices(Algorithm::Myers, &names.0, &names.1) {
            let (old, new) = (inner.old_range(), inner.new_range());
            let old = olds.start + old.start..olds.start + old.end;
            let new = news.start + new.start..news.start + new.end;
            if let DiffOp::Equal { .. } = inner {
                for (one, other) in old.zip(new) {
                    changed(&before[one], other, &after[other], &mut found);
                }
                continue;
            }
            for at in old {
                let part = part_name(at, &before[at]);
                let change = Change::Removed { before: None };
                found.push(Difference { part, key: None, change });
            }
            for at in new {
                let part = part_name(at, &after[at]);
                let change = Change::Added { after: None };
                found.push(Difference { part, key: None, change });
            }
        }
    }
    found
}

fn part_name(at: usize, part: &Part) -> String {
    match part.stands {
        Stands::Alone => part.called.clone(),
        Stands::AmongParts => format!("part {} ({})", at + 1, part.called),
    }
}

fn changed(before: &Part, at: usize, after: &Part, found: &mut Vec<Difference>) {
    let name = part_name(at, after);
    let all = before.keys.keys().chain(after.keys.keys());
    let all: std::collections::BTreeSet<&String> = all.collect();
    for key in all {
        let change = match (before.keys.get(key), after.keys.get(key)) {
            (Some(one), Some(other)) if one == other => continue,
            (Some(one), Some(other)) => {
                Change::Changed { before: one.clone(), after: other.clone() }
            }
            (Some(one), None) => Change::Removed { before: Some(one.clone()) },
            (None, Some(other)) => Change::Added { after: Some(other.clone()) },
            (None, None) => continue,
        };
        found.push(Difference { part: name.clone(), key: Some(key.clone()), change });
    }
    if before.rest != after.rest {
        let lines = TextDiff::from_lines(before.rest.as_str(), after.rest.as_str());
        let count = |tag| lines.iter_all_changes().filter(|it| it.tag() == tag).count();
        let (added, removed) =
            (count(similar::ChangeTag::Insert), count(similar::ChangeTag::Delete));
        let change = Change::Lines { added, removed };
        found.push(Difference { part: name, key: None, change });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(before: &str, after: &str) -> Vec<String> {
        differences(before, after).iter().map(Difference::print).collect()
    }

    fn mime(parts: &[(&str, &str)]) -> String {
        let parts = parts.iter().map(|(kind, body)| mime::Part::new(kind, *body));
        mime::compose(&parts.collect::<Vec<_>>())
    }

    #[test]
    fn a_class_is_told_from_a_text() {
        for line in
            ["kind: EC2NodeClass  # ours", "- kind: 'EC2NodeClass'", r#"{"kind":"EC2NodeClass"}"#]
        {
            assert!(names_a_class(line), "{line}");
        }
        for line in ["kind: NodeConfig", "# kind: EC2NodeClass", "echo kind: EC2NodeClass"] {
            assert!(!names_a_class(line), "{line}");
        }
    }

    #[test]
    fn what_was_rendered_is_found_in_whatever_it_was_wrapped() {
        let text = "MIME-Version: 1.0\nContent-Type: multipart/mixed\n";
        let base64 = nodemolt_core::bootstrap::base64::encode(text.as_bytes());
        let json = serde_json::json!({
            "apiVersion": "nodemolt.dev/cli/v1", "kind": "UserData", "text": text,
        });
        assert_eq!(unpacked(text.to_owned()), (text.to_owned(), None));
        assert_eq!(unpacked(format!("{base64}\n")), (text.to_owned(), Some("base64")));
        let (found, form) = unpacked(json.to_string());
        assert_eq!((found.as_str(), form.is_some()), (text, true));
        let other = r#"{"kind": "UserData"}"#;
        assert_eq!(unpacked(other.to_owned()), (other.to_owned(), None));
    }

    #[test]
    fn a_part_that_stays_is_not_paired_with_a_new_one() {
        let shell = "text/x-shellscript";
        let before = mime(&[(shell, "#!/bin/sh\na")]);
        let after = mime(&[(shell, "#!/bin/sh\nnew"), (shell, "#!/bin/sh\na")]);
        assert_eq!(said(&before, &after), ["+ part 1 (text/x-shellscript)"]);
        assert_eq!(said(&after, &before), ["- part 1 (text/x-shellscript)"]);
        assert_eq!(said(&before, &before), [""; 0]);
    }

    #[test]
    fn flags_differ_one_by_one() {
        let script = |labels: &str, taints: &str| {
            format!(
                "x --kubelet-extra-args '--node-labels=\"{labels}\" --register-with-taints=\"{taints}\"'"
            )
        };
        assert_eq!(
            said(&script("a=1,b=2", "t=v:NoSchedule"), &script("a=1,b=3", "t:NoExecute")),
            [
                "~ text --node-labels b: 2 → 3",
                "+ text --register-with-taints t: NoExecute",
                "- text --register-with-taints t=v: NoSchedule",
            ]
        );
    }
}
