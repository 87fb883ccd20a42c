//! What does a `#cloud-config` do to the boot?
//!
//! `YAML → what a person should know`
//!
//! Cloud-init drops one that it cannot read, with a line in a log that nobody sees. And some keys decide
//! whether the scripts beside it run at all.

use super::yaml::{self, Content, Node};
use super::{Place, Remark};

/// Keys that stand in the way of the scripts, ours among them.
const UNTIMELY: [(&str, &str); 3] = [
    (
        "cloud_final_modules",
        "decides which modules run at last; without `scripts-user` no script runs",
    ),
    ("cloud_init_modules", "decides which modules run; without the usual ones a node may not join"),
    ("power_state", "turns the machine off or reboots it when cloud-init is done"),
];

/// Whether it has commands of its own, and what there is to say. `line` is where the body begins.
pub(crate) fn read(body: &str, line: usize) -> (bool, Vec<Remark>) {
    let moved = |place: Place| match place {
        Place::UserPart { line: at, column } => Place::UserPart { line: line + at - 1, column },
        Place::Field(_) | Place::Label(_) | Place::Taint(_) | Place::Whole => {
            Place::UserPart { line, column: 1 }
        }
    };
    let roots = match yaml::read(body) {
        Ok(roots) => roots,
        Err(remark) => {
            let why = remark.message;
            let message = format!("{why}; cloud-init drops a `#cloud-config` that it cannot read");
            let hint = remark.hint.unwrap_or_else(|| "write it as YAML".to_owned());
            return (false, vec![Remark::new(moved(remark.place), message).with_hint(hint)]);
        }
    };
    let Some(root) = roots.first() else { return (false, Vec::new()) };
    match &root.content {
        Content::Map(_) => {}
        Content::Null => return (false, Vec::new()),
        Content::Bool(_) | Content::Number(_) | Content::Text(_) | Content::List(_) => {
            let message = "a `#cloud-config` is a map; cloud-init drops anything else";
            return (false, vec![Remark::new(moved(root.at.into()), message)]);
        }
    }
    let remark = |(key, message): &(&str, &str)| {
        let node = root.get(key)?;
        Some(Remark::new(moved(node.at.into()), format!("`{key}` {message}")))
    };
    (root.get("runcmd").is_some(), UNTIMELY.iter().filter_map(remark).collect())
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
