//! What kind of thing did the user write?
//!
//! `user's part → MIME parts, some of them NodeConfigs`
//!
//! YAML that speaks of a `NodeConfig` is one. The rest is as everywhere: MIME stays what it is, with all
//! its headers, and anything else becomes one part, typed as cloud-init would type it.

use super::super::mime::{self, Found, Part};
use super::super::user_part::{self, Kind};
use super::super::yaml::{self, Content, Node};
use super::super::{Place, Remark, UserPart};
use super::{NODE_CONFIG, moved};

/// Deeper MIME is not looked into for `NodeConfig`s that nobody would see.
const DEPTH_MAX: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) parts: Vec<(Part, Option<NodeConfig>)>,
    pub(super) remarks: Vec<Remark>,
}

/// A `NodeConfig` of the user, and by how many lines its places are moved.
#[derive(Debug)]
pub(super) struct NodeConfig {
    pub(super) root: Node,
    pub(super) lines: usize,
}

pub(super) fn read(user: UserPart<'_>) -> Result<Read, Remark> {
    let mut read = Read::default();
    let Some(text) = user.text() else { return Ok(read) };
    let kind = Kind::of(text);
    if kind == Kind::Plain && speaks_of_node_config(text) {
        let part = Part::new(NODE_CONFIG, text);
        let node_config = node_config(&part, 0)?;
        read.parts.push((part, Some(node_config)));
        return Ok(read);
    }
    if kind == Kind::CloudConfig && speaks_of_node_config(text) {
        let message = "a `#cloud-config` is no NodeConfig; nodeadm does not read it";
        let hint = "remove the first line, or write both as parts of MIME";
        read.remarks.push(Remark::new(Place::Whole, message).with_hint(hint));
    }
    let user_parts = user_part::read(text)?;
    read.remarks.extend(user_parts.remarks);
    for Found { part, line, body_line } in user_parts.parts {
        let node_config = if part.content_type() == NODE_CONFIG {
            Some(node_config(&part, body_line - 1)?)
        } else {
            None
        };
        let place = Place::UserPart { line, column: 1 };
        hidden_node_config(&part, &place, DEPTH_MAX, &mut read.remarks);
        read.parts.push((part, node_config));
    }
    Ok(read)
}

/// Whether the text has a key of a `NodeConfig` at the left margin, be its YAML whole or broken.
fn speaks_of_node_config(text: &str) -> bool {
    let keys = ["apiVersion:", "kind:", "spec:", "\"apiVersion\":", "\"kind\":", "\"spec\":"];
    let json = text.trim_start().starts_with('{');
    text.lines().any(|line| {
        let line = if json { line.trim_start_matches([' ', '\t', '{']) } else { line };
        keys.iter().any(|it| line.starts_with(it))
    })
}

fn node_config(part: &Part, lines: usize) -> Result<NodeConfig, Remark> {
    let at_start = moved(Place::UserPart { line: 1, column: 1 }, lines);
    let body = user_part::decoded(part).and_then(|it| String::from_utf8(it).ok());
    let body = body.ok_or_else(|| {
        Remark::new(at_start.clone(), "the NodeConfig is encoded, and cannot be read here")
            .with_hint("write it as plain text")
    })?;
    let roots = yaml::read(&body).map_err(|it| Remark { place: moved(it.place, lines), ..it })?;
    let empty = |it: &Node| it.content == Content::Null;
    if let Some(second) = roots.iter().skip(1).find(|it| !empty(it)) {
        let place = moved(second.at.into(), lines);
        let hint = "nodeadm reads the first alone; write each as its own part of MIME";
        return Err(Remark::new(place, "is a second YAML document").with_hint(hint));
    }
    match roots.into_iter().next() {
        Some(root) if !empty(&root) => Ok(NodeConfig { root, lines }),
        Some(_) | None => Err(Remark::new(at_start, "the NodeConfig is empty")
            .with_hint("leave it out: nodeadm would refuse the whole document for it")),
    }
}

/// nodeadm looks at the top level only.
fn hidden_node_config(part: &Part, place: &Place, depth: usize, remarks: &mut Vec<Remark>) {
    let Some(Ok(inner)) = mime::read_within(part) else { return };
    for found in inner.parts {
        if found.part.content_type() == NODE_CONFIG {
            let message = "has a NodeConfig within; nodeadm looks at the outer parts alone";
            let hint = "move it out of the inner multipart";
            remarks.push(Remark::new(place.clone(), message).with_hint(hint));
        } else if depth > 0 {
            hidden_node_config(&found.part, place, depth - 1, remarks);
        }
    }
}
