//! What kind of thing did the user write?
//!
//! `user's part → MIME parts, some of them NodeConfigs`
//!
//! YAML that speaks of a `NodeConfig` is one. The rest is as everywhere: MIME stays what it is, with all
//! its headers, and anything else becomes one part, typed as cloud-init would type it.

use super::super::mime::{self, Part};
use super::super::user_part::{self, Kind};
use super::super::yaml::{self, Content, Node};
use super::super::{Place, Remark, UserPart, base64, cloud_config, media_type, quoted_printable};
use super::{NODE_CONFIG, moved};

/// Deeper MIME is not looked into for `NodeConfig`s that nobody would see.
const DEPTH_MAX: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) parts: Vec<(Part, Option<NodeConfig>)>,
    pub(super) refused: Vec<Remark>,
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
    if kind == Kind::Plain
        && let Some(remark) = user_part::hidden_mime(text)
    {
        return Err(remark);
    }
    if kind == Kind::Plain && speaks_of_node_config(text) {
        let part = Part::new(NODE_CONFIG, text);
        let (node_config, remark) = node_config(&part, 0)?;
        read.remarks.extend(remark);
        read.parts.push((part, Some(node_config)));
        return Ok(read);
    }
    if kind == Kind::CloudConfig && speaks_of_node_config(text) {
        let message = "a `#cloud-config` is no NodeConfig; nodeadm does not read it";
        let hint = "remove the first line, or write both as parts of MIME";
        read.remarks.push(Remark::new(Place::Whole, message).with_hint(hint));
    }
    let user_parts = user_part::read(text)?;
    read.refused.extend(user_parts.refused);
    read.remarks.extend(user_parts.remarks);
    let mut all = Vec::new();
    for found in user_parts.parts {
        match user_part::leaves(&found) {
            Ok(leaves) => all.extend(leaves),
            Err(remark) => read.refused.push(remark),
        }
        let place = Place::UserPart { line: found.line, column: 1 };
        let written = found.part.header("Content-Type").filter(|it| !it.is_empty());
        if let Some(problem) = written.and_then(|it| media_type::problem(&it)) {
            let message =
                format!("the Content-Type {problem}; nodeadm then drops the whole document");
            let hint = "write it like `text/x-shellscript; charset=\"us-ascii\"`";
            read.refused.push(Remark::new(place.clone(), message).with_hint(hint));
        }
        hidden_node_config(&found.part, &place, DEPTH_MAX, &mut read.remarks);
        let mut node_config = None;
        if found.part.content_type() == NODE_CONFIG {
            match self::node_config(&found.part, found.body_line - 1) {
                Ok((it, remark)) => {
                    node_config = Some(it);
                    read.remarks.extend(remark);
                }
                Err(remark) => read.refused.push(remark),
            }
        }
        read.parts.push((found.part, node_config));
    }
    // nodeadm is no script: the node joins, but what the user wrote does not run.
    let stopping = all.iter().flat_map(cloud_config::all).filter_map(|it| it.stops_scripts);
    read.remarks.extend(stopping);
    read.remarks.extend(user_part::same_names(&all, 0));
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

/// As nodeadm comes to it: Go undoes quoted-printable by itself, and images since May 2024 take base64 and
/// gzip, whatever the headers say. What gzip holds cannot be checked here, so it is refused.
fn node_config(part: &Part, lines: usize) -> Result<(NodeConfig, Option<Remark>), Remark> {
    let at_start = moved(Place::UserPart { line: 1, column: 1 }, lines);
    let refused = |message: &str| {
        Remark::new(at_start.clone(), message).with_hint("write the NodeConfig as plain text")
    };
    let encoding = part.header("Content-Transfer-Encoding").unwrap_or_default();
    let quoted = encoding.eq_ignore_ascii_case("quoted-printable");
    let bytes = if quoted {
        let message = "the NodeConfig is not quoted-printable, as its header says";
        quoted_printable::decode(&part.body).ok_or_else(|| refused(message))?
    } else {
        part.body.clone().into_bytes()
    };
    let packed = std::str::from_utf8(&bytes).ok().and_then(base64::decode);
    let packed = packed.filter(|it| !it.is_empty());
    let remark = packed.is_some().then(|| {
        let message = "the NodeConfig is base64, which only images since May 2024 read";
        Remark::new(at_start.clone(), message).with_hint("write it as plain text")
    });
    let bytes = packed.unwrap_or(bytes);
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(refused("the NodeConfig is gzip, and cannot be checked here"));
    }
    let body = String::from_utf8(bytes).map_err(|_| refused("the NodeConfig is not UTF-8 text"))?;
    if body.trim_start().starts_with("#!") {
        let hint = "write `Content-Type: text/x-shellscript` above it";
        let message = "is a script, and its type says that it is a NodeConfig";
        return Err(Remark::new(at_start, message).with_hint(hint));
    }
    let roots = yaml::read(&body).map_err(|it| Remark { place: moved(it.place, lines), ..it })?;
    let empty = |it: &Node| it.content == Content::Null;
    if let Some(second) = roots.iter().skip(1).find(|it| !empty(it)) {
        let place = moved(second.at.into(), lines);
        let hint = "nodeadm reads the first alone; write each as its own part of MIME";
        return Err(Remark::new(place, "is a second YAML document").with_hint(hint));
    }
    match roots.into_iter().next() {
        Some(root) if !empty(&root) => Ok((NodeConfig { root, lines }, remark)),
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
