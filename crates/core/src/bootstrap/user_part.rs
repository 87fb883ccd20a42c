//! What did a person write as user data?
//!
//! `text → kind`, and `text → MIME parts`
//!
//! Cloud-init goes by how a text begins, and so do we. Nothing is changed: what a node would stumble
//! over is said, with its line.

use super::identity::{glimpse, shown};
use super::mime::{self, Found, Part};
use super::{Place, Remark, base64, cloud_config, quoted_printable};

/// Parts within parts within parts: nobody means that.
const DEPTH_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Mime,
    /// Begins with `#!`.
    Shell,
    CloudConfig,
    CloudConfigArchive,
    CloudConfigJsonp,
    Include,
    IncludeOnce,
    PartHandler,
    Boothook,
    /// `## template: jinja`; what it renders is only known on the node.
    Jinja,
    /// Anything else. Alone it is taken for a script.
    Plain,
}

/// Longest first, as cloud-init tries them.
const BEGINNINGS: [(&str, Kind); 9] = [
    ("#cloud-config-archive", Kind::CloudConfigArchive),
    ("#cloud-config-jsonp", Kind::CloudConfigJsonp),
    ("## template: jinja", Kind::Jinja),
    ("#cloud-boothook", Kind::Boothook),
    ("#cloud-config", Kind::CloudConfig),
    ("#include-once", Kind::IncludeOnce),
    ("#part-handler", Kind::PartHandler),
    ("#include", Kind::Include),
    ("#!", Kind::Shell),
];

impl Kind {
    pub fn of(text: &str) -> Self {
        if mime::looks_like_mime(text) { Self::Mime } else { Self::of_beginning(text) }
    }

    fn of_beginning(text: &str) -> Self {
        let start: String = text.trim_start().chars().take(32).collect();
        let start = start.to_ascii_lowercase();
        BEGINNINGS
            .iter()
            .find(|(beginning, _)| start.starts_with(beginning))
            .map_or(Self::Plain, |(_, kind)| *kind)
    }

    /// Of a part: its type decides; where that says nothing, how it begins.
    pub fn of_part(part: &Part) -> Self {
        let content_type = part.content_type();
        match content_type.as_str() {
            // Headers of MIME within a body are looked at by nobody.
            "text/plain" | "text/x-not-multipart" => Self::of_beginning(&part.body),
            _ if part.multipart() => Self::Mime,
            it => [
                Self::Shell,
                Self::CloudConfig,
                Self::CloudConfigArchive,
                Self::CloudConfigJsonp,
                Self::Include,
                Self::IncludeOnce,
                Self::PartHandler,
                Self::Boothook,
                Self::Jinja,
            ]
            .into_iter()
            .find(|kind| kind.content_type() == it)
            .unwrap_or(Self::Plain),
        }
    }

    /// What a part of this kind is typed as.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Mime => "multipart/mixed",
            Self::Shell | Self::Plain => mime::SHELL,
            Self::CloudConfig => "text/cloud-config",
            Self::CloudConfigArchive => "text/cloud-config-archive",
            Self::CloudConfigJsonp => "text/cloud-config-jsonp",
            Self::Include => "text/x-include-url",
            Self::IncludeOnce => "text/x-include-once-url",
            Self::PartHandler => "text/part-handler",
            Self::Boothook => "text/cloud-boothook",
            Self::Jinja => "text/jinja2",
        }
    }
}

/// A user's text as parts, and what there is to say about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserParts {
    pub parts: Vec<Found>,
    /// What a node could not make anything of.
    pub refused: Vec<Remark>,
    pub remarks: Vec<Remark>,
}

/// MIME as its parts; anything else as one part, typed as what it is.
pub fn read(text: &str) -> Result<UserParts, Remark> {
    let kind = Kind::of(text);
    if kind == Kind::Plain
        && let Some(remark) = hidden_mime(text)
    {
        return Err(remark);
    }
    let (parts, remarks) = if kind == Kind::Mime {
        let document = mime::read(text)?;
        (document.parts, document.remarks)
    } else {
        let part = Found { part: wrap(text), line: 1, body_line: 1 };
        (vec![part], remarks_on_alone(text))
    };
    let mut read = UserParts { parts, refused: Vec::new(), remarks };
    for found in &read.parts {
        // What is wrong with a multipart is for whoever asks for its leaves.
        for leaf in leaves(found).unwrap_or_default() {
            read.refused.extend(broken_encoding(&leaf));
            read.remarks.extend(remarks_on(&leaf));
        }
    }
    Ok(read)
}

/// MIME below a comment is none: its headers must come first.
pub(crate) fn hidden_mime(text: &str) -> Option<Remark> {
    let mut line = 1;
    let mut rest = text;
    while let Some((first, after)) = rest.split_once('\n') {
        let comment = first.trim_end_matches('\r');
        if !comment.trim().is_empty() && !comment.starts_with('#') {
            break;
        }
        (line, rest) = (line + 1, after);
    }
    (line > 1 && mime::looks_like_mime(rest)).then(|| {
        at(line, "is MIME behind a comment, and cloud-init sees no MIME there")
            .with_hint("begin with the headers of MIME; put comments into its parts")
    })
}

/// Base64 that is none: nobody knows what the node would make of it.
fn broken_encoding(found: &Found) -> Option<Remark> {
    let encoding = found.part.header("Content-Transfer-Encoding")?;
    let broken = encoding.eq_ignore_ascii_case("base64") && from_base64(&found.part.body).is_none();
    broken.then(|| {
        at(found.body_line, "is not base64, as its `Content-Transfer-Encoding` says")
            .with_hint("write the part as plain text without that header, or encode it again")
    })
}

/// One part around a text that is none. Beyond ASCII its bytes are sent as base64: as text they reach a
/// script only where cloud-init runs on Python 2.
pub fn wrap(text: &str) -> Part {
    let content_type = Kind::of(text).content_type();
    if text.is_ascii() {
        return Part::new(&format!("{content_type}; charset=\"us-ascii\""), text);
    }
    let mut part = Part::new(
        &format!("{content_type}; charset=\"utf-8\""),
        base64::encode_lines(text.as_bytes()),
    );
    part.headers.push(("Content-Transfer-Encoding".to_owned(), " base64".to_owned()));
    part
}

/// A part's body as the node will have it; nothing where its encoding cannot be undone here.
pub fn decoded(part: &Part) -> Option<Vec<u8>> {
    match part.header("Content-Transfer-Encoding").map(|it| it.to_ascii_lowercase()).as_deref() {
        None | Some("7bit" | "8bit" | "binary") => Some(part.body.clone().into_bytes()),
        Some("base64") => from_base64(&part.body),
        Some("quoted-printable") => quoted_printable::decode(&part.body),
        Some(_) => None,
    }
}

/// Every part that is no multipart, also those within: cloud-init takes them all.
pub fn leaves(found: &Found) -> Result<Vec<Found>, Remark> {
    let mut leaves = Vec::new();
    collect_leaves(found, 0, &mut leaves)?;
    Ok(leaves)
}

fn collect_leaves(found: &Found, depth: usize, leaves: &mut Vec<Found>) -> Result<(), Remark> {
    let Some(within) = mime::read_within(&found.part) else {
        leaves.push(found.clone());
        return Ok(());
    };
    if depth == DEPTH_MAX {
        let message = format!("has multiparts within multiparts, deeper than {DEPTH_MAX}");
        return Err(at(found.line, message).with_hint("put the parts side by side"));
    }
    let shift = |line: usize| line + found.body_line - 1;
    let within = within.map_err(|remark| {
        let line = match remark.place {
            Place::UserPart { line, .. } => shift(line),
            Place::Field(_) | Place::Label(_) | Place::Taint(_) | Place::Whole => found.line,
        };
        Remark { hint: remark.hint, ..at(line, format!("the multipart within {}", remark.message)) }
    })?;
    for inner in within.parts {
        let inner = Found { line: shift(inner.line), body_line: shift(inner.body_line), ..inner };
        collect_leaves(&inner, depth + 1, leaves)?;
    }
    Ok(())
}

/// The name that cloud-init gives a script's file: of what is written it keeps some characters only.
pub fn file_name(part: &Part) -> Result<Option<String>, String> {
    let extended = |header: &str| {
        part.header(header).is_some_and(|it| it.to_ascii_lowercase().contains("name*"))
    };
    if extended("Content-Disposition") || extended("Content-Type") {
        return Err("has a file name in RFC 2231's form; write `filename=\"…\"`".to_owned());
    }
    let Some(written) = part.filename().filter(|it| !it.is_empty()) else { return Ok(None) };
    kept_name(&written).map(Some)
}

/// What is left of a name.
pub fn kept_name(written: &str) -> Result<String, String> {
    let kept = |it: &char| it.is_ascii_alphanumeric() || "_-.()".contains(*it);
    let name: String = written.replace('/', "_").chars().filter(kept).collect();
    if name.is_empty() || name == "." || name == ".." {
        return Err(format!("`{}` leaves no name for a file", shown(written)));
    }
    Ok(name)
}

/// Scripts of one name, given or counted: `before` is how many parts of ours come first.
pub fn same_names(leaves: &[Found], before: usize) -> Vec<Remark> {
    let mut names: Vec<String> = Vec::new();
    let mut remarks = Vec::new();
    for (number, leaf) in (before + 1..).zip(leaves) {
        if !matches!(Kind::of_part(&leaf.part), Kind::Shell | Kind::Jinja) {
            continue;
        }
        let Ok(name) = file_name(&leaf.part) else { continue };
        let name = name.unwrap_or_else(|| format!("part-{number:03}"));
        if names.contains(&name) {
            let message = format!("is the second part named `{}`", shown(&name));
            let hint = "give each its own name: cloud-init keeps the last one only";
            remarks.push(at(leaf.line, message).with_hint(hint));
        }
        names.push(name);
    }
    remarks
}

fn at(line: usize, message: impl Into<String>) -> Remark {
    Remark::new(Place::UserPart { line, column: 1 }, message)
}

/// What only a text that stands alone can be.
fn remarks_on_alone(text: &str) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if text.starts_with("\u{1f}\u{8b}") {
        remarks.push(
            at(1, "looks like gzip that was read as text; its bytes are lost")
                .with_hint("write it uncompressed"),
        );
    } else if let Some(inner) = looks_like_base64(text) {
        remarks.push(
            at(1, format!("looks like base64 of {inner}; a node would run the letters themselves"))
                .with_hint("write it as plain text: it is encoded when it is sent"),
        );
    }
    if !text.is_ascii() {
        let place = Place::of_byte(text, text.find(|it: char| !it.is_ascii()).unwrap_or_default());
        let message = "is not all ASCII, and is sent as base64 so that cloud-init keeps it";
        remarks.push(Remark::new(place, message));
    }
    remarks
}

fn remarks_on(found: &Found) -> Vec<Remark> {
    let Found { part, body_line, .. } = found;
    let mut remarks = Vec::new();
    let kind = Kind::of_part(part);
    // A type that cloud-init does not know is for another reader.
    if kind == Kind::Plain && part.content_type() != "text/plain" {
        return remarks;
    }
    let encoded = part.header("Content-Transfer-Encoding");
    let encoded =
        encoded.is_some_and(|it| !matches!(&*it.to_ascii_lowercase(), "7bit" | "8bit" | "binary"));
    let Some(bytes) = decoded(part) else {
        if broken_encoding(found).is_some() {
            return remarks;
        }
        let message = "is not what its `Content-Transfer-Encoding` says, or that is none we know";
        let hint = "write the part as plain text, or as base64";
        remarks.push(at(*body_line, message).with_hint(hint));
        return remarks;
    };
    let Ok(body) = String::from_utf8(bytes) else { return remarks };
    remarks.extend(cloud_config::all(found).into_iter().flat_map(|it| it.remarks));
    if let Some(byte) = body.find(|it: char| !it.is_ascii()).filter(|_| !encoded) {
        let Place::UserPart { line, column } = Place::of_byte(&body, byte) else { return remarks };
        let place = Place::UserPart { line: line + body_line - 1, column };
        let message = "is not ASCII; cloud-init garbles it in a part that is sent as text";
        remarks.push(Remark::new(place, message).with_hint(
            "send the part as base64 (`Content-Transfer-Encoding: base64`), or write ASCII",
        ));
    }
    if kind == Kind::Plain {
        let message = "has no type and no beginning that cloud-init knows, and is passed over";
        let hint = "write `Content-Type: text/x-shellscript` above it";
        remarks.push(at(*body_line, message).with_hint(hint));
    }
    if !matches!(kind, Kind::Shell | Kind::Boothook) {
        return remarks;
    }
    if kind == Kind::Shell && !body.starts_with("#!") {
        let seen = glimpse(body.lines().next().unwrap_or_default());
        let message = if body.trim_start_matches('\u{feff}').trim_start().starts_with("#!") {
            "has something before its `#!`, so the kernel finds no interpreter".to_owned()
        } else {
            format!("a script begins with `#!`, not with `{seen}`; cloud-init may not run it")
        };
        remarks.push(at(*body_line, message).with_hint("begin it with `#!/bin/bash`"));
    }
    // Cloud-init turns the line ends of a script into Unix's, but only if the first line has them.
    let ends: Vec<bool> = body.split_inclusive('\n').map(|it| it.ends_with("\r\n")).collect();
    if let Some(line) = ends.iter().position(|it| *it).filter(|it| *it > 0) {
        remarks.push(
            at(body_line + line, "ends in a carriage return, which becomes part of the command")
                .with_hint("end all lines alike"),
        );
    }
    remarks
}

/// What it would be, where the text is base64 of something that a node could read.
pub fn looks_like_base64(text: &str) -> Option<&'static str> {
    let bytes = from_base64(text).filter(|it| it.len() >= BYTES_MIN)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Some("gzip");
    }
    readable(bytes).map(|_| "text")
}

/// Shorter than this, a word may look like base64 by chance.
const BYTES_MIN: usize = 12;

/// And that text.
pub fn text_in_base64(text: &str) -> Option<String> {
    from_base64(text).filter(|it| it.len() >= BYTES_MIN).and_then(readable)
}

fn readable(bytes: Vec<u8>) -> Option<String> {
    let readable = |it: char| !it.is_control() || matches!(it, '\n' | '\r' | '\t');
    String::from_utf8(bytes).ok().filter(|it| it.chars().all(readable))
}

/// White space is passed over, as mail has it.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    base64::decode(&text.split_ascii_whitespace().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_it_begins_with() {
        for (text, kind) in [
            ("#!/bin/sh", Kind::Shell),
            ("\n#!/bin/sh", Kind::Shell),
            ("#Cloud-Config\n", Kind::CloudConfig),
            ("#cloud-config-archive\n", Kind::CloudConfigArchive),
            ("#include-once\nhttps://x", Kind::IncludeOnce),
            ("#include https://x", Kind::Include),
            ("#part-handler\n", Kind::PartHandler),
            ("## template: jinja\n#cloud-config\n", Kind::Jinja),
            ("#cloud-boothook\n", Kind::Boothook),
            ("echo hello", Kind::Plain),
            ("# comment", Kind::Plain),
            ("mime-version: 1.0\n", Kind::Mime),
        ] {
            assert_eq!(Kind::of(text), kind, "{text:?}");
        }
    }

    fn said(text: &str) -> Vec<String> {
        read(text).unwrap().remarks.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_a_node_would_stumble_over_is_said() {
        assert_eq!(said("#!/bin/sh\necho\n"), [""; 0]);
        assert_eq!(said("#!/bin/sh\r\necho\r\n"), [""; 0], "cloud-init converts it");
        assert_eq!(
            said("echo hello\n"),
            [
                "userData:1:1: a script begins with `#!`, not with `echo…`; cloud-init may not run it"
            ]
        );
        assert_eq!(
            said("\n#!/bin/sh\n"),
            ["userData:1:1: has something before its `#!`, so the kernel finds no interpreter"]
        );
        assert_eq!(
            said("#!/bin/sh\nx\r\n"),
            ["userData:2:1: ends in a carriage return, which becomes part of the command"]
        );
        assert_eq!(
            said("IyEvYmluL3NoCmVjaG8gaGVsbG8K"),
            [
                "userData:1:1: looks like base64 of text; a node would run the letters themselves",
                "userData:1:1: a script begins with `#!`, not with `IyEvYmluL3No…`; \
                 cloud-init may not run it"
            ]
        );
        assert_eq!(
            said("#!/bin/sh\necho ä\n"),
            ["userData:2:6: is not all ASCII, and is sent as base64 so that cloud-init keeps it"]
        );
    }

    #[test]
    fn what_is_not_ascii_travels_as_base64() {
        let text = "#!/bin/sh\necho äöü €\n";
        let part = wrap(text);
        assert!(part.body.is_ascii());
        assert_eq!(decoded(&part), Some(text.as_bytes().to_vec()));
    }

    #[test]
    fn leaves_are_found_at_any_depth_up_to_a_limit() {
        let mut part = Part::new("text/x-shellscript", "#!/bin/sh").named("deep.sh");
        for depth in 0..12 {
            let found = Found { part: part.clone(), line: 1, body_line: 1 };
            let leaves = leaves(&found);
            if depth <= DEPTH_MAX {
                assert_eq!(leaves.unwrap()[0].part.filename().as_deref(), Some("deep.sh"));
            } else {
                assert!(leaves.is_err());
            }
            let text = mime::compose(&[part]);
            let (head, body) = text.split_once("\n\n").unwrap();
            let content_type = head.split_once("Content-Type: ").unwrap().1;
            part = Part::new(content_type, body);
        }
    }
}
