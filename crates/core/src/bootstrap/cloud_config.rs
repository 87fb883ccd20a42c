//! What does a `#cloud-config` do to the boot?
//!
//! `YAML → what a person should know`
//!
//! Cloud-init drops one that it cannot read, with a line in a log that nobody sees. And some keys decide
//! whether the scripts beside it run at all.

use super::mime::Found;
use super::user_part::{self, Kind};
use super::yaml::{self, Content, Node};
use super::{Place, Remark};

/// Keys that may stand in the way of a boot.
const UNTIMELY: [(&str, &str); 2] = [
    ("cloud_init_modules", "decides which modules run; without the usual ones a node may not join"),
    ("power_state", "turns the machine off or reboots it when cloud-init is done"),
];

/// The module that runs scripts, and the list that it stands in.
const RUNS_SCRIPTS: &str = "scripts-user";
const FINAL_MODULES: &str = "cloud_final_modules";

/// What is to be said of one.
#[derive(Debug, Default)]
pub(crate) struct CloudConfig {
    /// Whether it has commands of its own.
    pub(crate) runcmd: bool,
    pub(crate) remarks: Vec<Remark>,
    /// Where it keeps cloud-init from running any script.
    pub(crate) stops_scripts: Option<Remark>,
}

/// `line` is where the body begins.
pub(crate) fn read(body: &str, line: usize) -> CloudConfig {
    let moved = |place: Place| match place {
        Place::UserPart { line: at, column } => Place::UserPart { line: line + at - 1, column },
        Place::Field(_) | Place::Label(_) | Place::Taint(_) | Place::Whole => {
            Place::UserPart { line, column: 1 }
        }
    };
    let only = |remark: Remark| CloudConfig { remarks: vec![remark], ..CloudConfig::default() };
    let roots = match yaml::read(body) {
        Ok(roots) => roots,
        Err(remark) => {
            let why = remark.message;
            let message = format!("{why}; cloud-init drops a `#cloud-config` that it cannot read");
            let hint = remark.hint.unwrap_or_else(|| "write it as YAML".to_owned());
            return only(Remark::new(moved(remark.place), message).with_hint(hint));
        }
    };
    let Some(root) = roots.first() else { return CloudConfig::default() };
    match &root.content {
        Content::Map(_) => {}
        Content::Null => return CloudConfig::default(),
        Content::Bool(_) | Content::Number(_) | Content::Text(_) | Content::List(_) => {
            let message = "a `#cloud-config` is a map; cloud-init drops anything else";
            return only(Remark::new(moved(root.at.into()), message));
        }
    }
    let remark = |(key, message): &(&str, &str)| {
        let node = root.get(key)?;
        Some(Remark::new(moved(node.at.into()), format!("`{key}` {message}")))
    };
    let stops_scripts = root.get(FINAL_MODULES).filter(|it| !runs_scripts(it)).map(|node| {
        let message = format!("`{FINAL_MODULES}` has no `{RUNS_SCRIPTS}`, so no script runs");
        let hint = format!("add `{RUNS_SCRIPTS}` to the list, or leave the list out");
        Remark::new(moved(node.at.into()), message).with_hint(hint)
    });
    CloudConfig {
        runcmd: root.get("runcmd").is_some(),
        remarks: UNTIMELY.iter().filter_map(remark).collect(),
        stops_scripts,
    }
}

/// A module is named as such, or at the head of a list with how often it runs; cloud-init takes an
/// underscore for a dash.
fn runs_scripts(modules: &Node) -> bool {
    let name = |it: &Node| it.text().or_else(|| it.items().first()?.text()).map(str::to_owned);
    let names = modules.items().iter().filter_map(name);
    names.map(|it| it.replace('_', "-")).any(|it| it == RUNS_SCRIPTS)
}

/// The same of each `#cloud-config` in an archive. Its lines are moved by the reader of the archive, so
/// each is told at the line where its entry stands.
pub(crate) fn read_archive(body: &str, line: usize) -> Vec<CloudConfig> {
    let Ok(roots) = yaml::read(body) else { return Vec::new() };
    let entries = roots.first().map_or(&[][..], Node::items);
    let read_entry = |it: &Node| {
        let content = it.text().or_else(|| it.get("content")?.text())?;
        let typed = it.get("type").and_then(Node::text).map(|it| it == "text/cloud-config");
        if !typed.unwrap_or_else(|| content.trim_start().starts_with("#cloud-config")) {
            return None;
        }
        let Place::UserPart { line: at, .. } = it.at.into() else { return None };
        let place = Place::UserPart { line: line + at - 1, column: 1 };
        let mut found = read(content, 1);
        for remark in found.remarks.iter_mut().chain(&mut found.stops_scripts) {
            remark.place = place.clone();
        }
        Some(found)
    };
    entries.iter().filter_map(read_entry).collect()
}

/// Every `#cloud-config` that a part is or holds.
pub(crate) fn all(found: &Found) -> Vec<CloudConfig> {
    let Some(bytes) = user_part::decoded(&found.part) else { return Vec::new() };
    let Ok(body) = String::from_utf8(bytes) else { return Vec::new() };
    // In what is encoded there are no lines to point at.
    let line = if body == found.part.body { found.body_line } else { found.line };
    match Kind::of_part(&found.part) {
        Kind::CloudConfig => vec![read(&body, line)],
        Kind::CloudConfigArchive => read_archive(&body, line),
        Kind::Mime
        | Kind::Shell
        | Kind::CloudConfigJsonp
        | Kind::Include
        | Kind::IncludeOnce
        | Kind::PartHandler
        | Kind::Boothook
        | Kind::Jinja
        | Kind::Plain => Vec::new(),
    }
}

/// The file names in a `#cloud-config-archive`, and by how many lines below its first each stands.
pub(crate) fn names_in_archive(body: &str) -> Vec<(String, usize)> {
    let Ok(roots) = yaml::read(body) else { return Vec::new() };
    let entries = roots.first().map_or(&[][..], Node::items);
    let name = |it: &Node| {
        let node = it.get("filename")?;
        let Place::UserPart { line, .. } = node.at.into() else { return None };
        Some((node.text()?.to_owned(), line - 1))
    };
    entries.iter().filter_map(name).collect()
}
