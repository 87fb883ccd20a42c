//! What kind of thing did the user write?
//!
//! `user's part → MIME parts, some of them NodeConfigs`
//!
//! MIME stays what it is, with all its headers. Anything else becomes one part, typed as cloud-init
//! would type it; YAML that speaks of a `NodeConfig` is one; and what remains is a script.

use super::super::identity::shown;
use super::super::mime::{self, Part, SHELL};
use super::super::yaml::{self, Content, Node};
use super::super::{Place, Remark, UserPart, base64};
use super::{NODE_CONFIG, moved};

/// How cloud-init tells what a text is. The longer of two words that begin alike comes first.
const KINDS: [(&str, &str); 10] = [
    ("#!", SHELL),
    ("#cloud-config-archive", "text/cloud-config-archive"),
    ("#cloud-config-jsonp", "text/cloud-config-jsonp"),
    ("#cloud-config", "text/cloud-config"),
    ("#cloud-boothook", "text/cloud-boothook"),
    ("#include-once", "text/x-include-once-url"),
    ("#include", "text/x-include-url"),
    ("#part-handler", "text/part-handler"),
    ("#upstart-job", "text/upstart-job"),
    ("## template: jinja", "text/jinja2"),
];

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
    if mime::looks_like_mime(text) {
        let multipart = mime::read(text)?;
        read.remarks.extend(multipart.remarks);
        for found in multipart.parts {
            let lines = found.body_line - 1;
            let part = found.part;
            let node_config = if part.content_type() == NODE_CONFIG {
                Some(node_config(&part, lines)?)
            } else {
                None
            };
            let place = Place::UserPart { line: found.line, column: 1 };
            hidden_node_config(&part, &place, DEPTH_MAX, &mut read.remarks);
            if part.content_type() == SHELL {
                read.remarks.extend(no_interpreter(&part.body, lines));
            }
            read.parts.push((part, node_config));
        }
        return Ok(read);
    }
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let kind = KINDS.iter().find(|(word, _)| start.starts_with(word)).map(|(_, kind)| *kind);
    if let Some(kind) = kind {
        if kind == "text/cloud-config" && speaks_of_node_config(text) {
            let message = "a `#cloud-config` is no NodeConfig; nodeadm does not read it";
            let hint = "remove the first line, or write both as parts of MIME";
            read.remarks.push(Remark::new(Place::Whole, message).with_hint(hint));
        }
        read.parts.push((Part::new(&typed(kind), text), None));
    } else if speaks_of_node_config(text) {
        let part = Part::new(NODE_CONFIG, text);
        let node_config = node_config(&part, 0)?;
        read.parts.push((part, Some(node_config)));
    } else {
        read.remarks.extend(no_interpreter(text, 0));
        read.parts.push((Part::new(&typed(SHELL), text), None));
    }
    Ok(read)
}

fn typed(kind: &str) -> String {
    format!("{kind}; charset=\"utf-8\"")
}

fn no_interpreter(body: &str, lines: usize) -> Option<Remark> {
    (!body.starts_with("#!")).then(|| {
        let place = moved(Place::UserPart { line: 1, column: 1 }, lines);
        let hint = "begin it with `#!/bin/bash`; without, it does not run";
        Remark::new(place, "the script does not say what runs it").with_hint(hint)
    })
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
    let encoding = part.header("Content-Transfer-Encoding").unwrap_or_default();
    let body = match encoding.to_ascii_lowercase().as_str() {
        "" | "7bit" | "8bit" | "binary" => part.body.clone(),
        "base64" => base64::decode(part.body.trim())
            .and_then(|it| String::from_utf8(it).ok())
            .ok_or_else(|| {
                Remark::new(at_start.clone(), "the NodeConfig cannot be read as base64 of text")
                    .with_hint("write it as plain text")
            })?,
        _ => {
            let message = format!("the NodeConfig is encoded as `{}`", shown(&encoding));
            return Err(Remark::new(at_start, message).with_hint("write it as plain text"));
        }
    };
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
    let Some(content_type) = part.header("Content-Type").filter(|_| part.multipart()) else {
        return;
    };
    let Ok(inner) = mime::read(&format!("Content-Type: {content_type}\n\n{}", part.body)) else {
        return;
    };
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
