//! Which parts does a MIME document have, and how are parts put into one?
//!
//! `text → parts`, and `parts → text`
//!
//! Reading takes nothing away: headers stay as they were written, bodies byte for byte, a multipart
//! within is one part. Composing derives the boundary from the parts, so that it occurs in none of
//! them: with a fixed boundary a user's part can swallow ours.

use sha2::{Digest, Sha256};

use super::identity::{glimpse, shown};
use super::{Place, Remark, hex};

pub const SHELL: &str = "text/x-shellscript";

/// One part: its headers in order, and its body.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// Name, and everything after the colon as written: the space, folded lines and all.
    pub headers: Vec<(String, String)>,
    /// Without the line break that belongs to the delimiter behind it.
    pub body: String,
}

/// A document as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multipart {
    /// `multipart/mixed`, in lower case.
    pub content_type: String,
    pub parts: Vec<Found>,
    /// What readers will pass over: text before the first part, text after the last.
    pub remarks: Vec<Remark>,
}

/// A part, and where it stands in the document. Lines count from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub part: Part,
    /// The line of the delimiter before it.
    pub line: usize,
    pub body_line: usize,
}

impl Part {
    /// A part with one header.
    pub fn new(content_type: &str, body: impl Into<String>) -> Self {
        Self {
            headers: vec![("Content-Type".to_owned(), format!(" {content_type}"))],
            body: body.into(),
        }
    }

    /// The same part under a file name. Cloud-init runs scripts in the order of these.
    #[must_use]
    pub fn named(mut self, filename: &str) -> Self {
        let value = format!(" attachment; filename=\"{filename}\"");
        self.headers.push(("Content-Disposition".to_owned(), value));
        self
    }

    /// The value of the first header of this name, in any case, on one line.
    pub fn header(&self, name: &str) -> Option<String> {
        let (_, value) = self.headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name))?;
        Some(unfold(value))
    }

    /// In lower case and without parameters; `text/plain` where none is written.
    pub fn content_type(&self) -> String {
        self.header("Content-Type")
            .map_or_else(|| "text/plain".to_owned(), |it| media_type(&it).to_ascii_lowercase())
    }

    /// As cloud-init finds it: of the disposition, else the name of the type.
    pub fn filename(&self) -> Option<String> {
        let of = |header: &str, name: &str| parameter(&self.header(header)?, name);
        of("Content-Disposition", "filename").or_else(|| of("Content-Type", "name"))
    }

    pub fn multipart(&self) -> bool {
        self.content_type().starts_with("multipart/")
    }
}

/// Is this MIME? Its own headers decide, in any case. Blank lines may stand before them.
pub fn looks_like_mime(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    text.split('\n')
        .map_while(|line| match line.chars().next() {
            Some(' ' | '\t') => Some(""),
            _ => header_name(line),
        })
        .any(|name| ["mime-version", "content-type"].iter().any(|it| name.eq_ignore_ascii_case(it)))
}

/// Reads a multipart document. What a reader on the node would lose or guess is refused, with its line.
pub fn read(text: &str) -> Result<Multipart, Remark> {
    let mut reader = Reader { lines: lines(text), at: 0 };
    // Other readers take a leading blank line for the end of all headers. We write the head anew, so
    // here nothing is lost by passing over it.
    while reader.here().is_some_and(|it| it.text.trim().is_empty()) {
        reader.at += 1;
    }
    let headers = reader.headers("the document", None)?;
    let head = Part { headers, body: String::new() };
    let Some(content_type) = head.header("Content-Type") else {
        return Err(Remark::new(Place::Whole, "has MIME headers, and no Content-Type among them")
            .with_hint("add `Content-Type: multipart/mixed; boundary=\"…\"`"));
    };
    if !head.multipart() {
        let found = shown(media_type(&content_type));
        let message = format!("is MIME of type `{found}`, not multipart");
        return Err(Remark::new(reader.place_of("content-type"), message).with_hint(
            "write the script alone, without headers, or as a part of multipart/mixed",
        ));
    }
    let boundary = parameter(&content_type, "boundary").map(|it| it.trim_end().to_owned());
    let Some(boundary) = boundary.filter(|it| !it.is_empty()) else {
        return Err(Remark::new(
            reader.place_of("content-type"),
            "is multipart without a boundary",
        )
        .with_hint("write `Content-Type: multipart/mixed; boundary=\"…\"`"));
    };
    let (parts, remarks) = reader.parts(&boundary)?;
    Ok(Multipart { content_type: head.content_type(), parts, remarks })
}

/// The parts of a multipart within, with lines counted in its body. Nothing where it is no multipart.
pub fn read_within(part: &Part) -> Option<Result<Multipart, Remark>> {
    let content_type = part.header("Content-Type").filter(|_| part.multipart())?;
    let boundary = parameter(&content_type, "boundary").map(|it| it.trim_end().to_owned());
    let Some(boundary) = boundary.filter(|it| !it.is_empty()) else {
        return Some(Err(Remark::new(Place::Whole, "is multipart without a boundary")));
    };
    let parts = Reader { lines: lines(&part.body), at: 0 }.parts(&boundary);
    let content_type = part.content_type();
    Some(parts.map(|(parts, remarks)| Multipart { content_type, parts, remarks }))
}

/// Writes a multipart document. The same parts give the same bytes.
pub fn compose(parts: &[Part]) -> String {
    let boundary = boundary(parts);
    let mut text = String::from("MIME-Version: 1.0\n");
    text.push_str("Content-Type: multipart/mixed; boundary=\"");
    text.push_str(&boundary);
    text.push_str("\"\n\n");
    for part in parts {
        text.push_str("--");
        text.push_str(&boundary);
        text.push('\n');
        for (name, value) in &part.headers {
            text.push_str(name);
            text.push(':');
            text.push_str(value);
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&part.body);
        // A carriage return at the end of a body would be taken for half of the delimiter's break.
        text.push_str(if part.body.ends_with('\r') { "\r\n" } else { "\n" });
    }
    text.push_str("--");
    text.push_str(&boundary);
    text.push_str("--\n");
    text
}

/// A digest of the parts, taken again until it occurs nowhere in them, be it at a line's start or not:
/// readers differ in what they call a line.
fn boundary(parts: &[Part]) -> String {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    };
    for part in parts {
        for (name, value) in &part.headers {
            add(name);
            add(value);
        }
        add("");
        add(&part.body);
    }
    let mut digest = digest.finalize();
    loop {
        let boundary = format!("nodemolt-{}", hex(&digest[..12]));
        let occurs = parts.iter().any(|part| {
            part.body.contains(&boundary)
                || part
                    .headers
                    .iter()
                    .any(|(name, value)| name.contains(&boundary) || value.contains(&boundary))
        });
        if !occurs {
            return boundary;
        }
        digest = Sha256::digest(digest);
    }
}

#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    number: usize,
    /// Without its ending.
    text: &'a str,
    ending: &'a str,
    /// Where it begins in the document.
    start: usize,
    document: &'a str,
}

fn lines(document: &str) -> Vec<Line<'_>> {
    // A mark of the byte order says nothing in UTF-8, and stands in nobody's way.
    let marked = document.len() - document.trim_start_matches('\u{feff}').len();
    let mut start = marked;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(document[marked..].split_inclusive('\n')) {
        let text = without_break(line);
        found.push(Line { number, text, ending: &line[text.len()..], start, document });
        start += line.len();
    }
    found
}

fn without_break(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |it| it.strip_suffix('\r').unwrap_or(it))
}

impl Line<'_> {
    fn remark(&self, message: impl Into<String>) -> Remark {
        Remark::new(Place::UserPart { line: self.number, column: 1 }, message)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delimiter {
    Opens,
    Closes,
}

/// `--boundary` opens a part and `--boundary--` closes the last; white space may follow.
fn delimiter(line: &str, boundary: &str) -> Option<Delimiter> {
    let rest = line.strip_prefix("--")?.strip_prefix(boundary)?;
    match rest.trim_end_matches([' ', '\t']) {
        "" => Some(Delimiter::Opens),
        "--" => Some(Delimiter::Closes),
        _ => None,
    }
}

struct Reader<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn here(&self) -> Option<Line<'a>> {
        self.lines.get(self.at).copied()
    }

    /// The headers from here on; afterwards we are behind the blank line that ends them.
    fn headers(
        &mut self,
        of: &str,
        boundary: Option<&str>,
    ) -> Result<Vec<(String, String)>, Remark> {
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut line_break = "\n";
        while let Some(line) = self.here() {
            if let Some(before) = line.text.find('\r') {
                let column = line.text[..before].chars().count() + 1;
                let place = Place::UserPart { line: line.number, column };
                return Err(Remark::new(place, "has a carriage return within a header")
                    .with_hint("end lines with a line feed: for some readers the line ends here"));
            }
            self.at += 1;
            let delimits = boundary.is_some_and(|it| delimiter(line.text, it).is_some());
            if line.text.is_empty() {
                return Ok(headers);
            } else if line.text.starts_with([' ', '\t']) {
                if line.text.trim().is_empty() {
                    return Err(line
                        .remark("has white space and so continues the header above")
                        .with_hint("make the line empty: that ends the headers"));
                }
                let Some((_, value)) = headers.last_mut() else {
                    return Err(line
                        .remark("begins with white space, as if it continued a header")
                        .with_hint("begin headers and delimiters in the first column"));
                };
                value.push_str(line_break);
                value.push_str(line.text);
            } else if let Some(name) = header_name(line.text).filter(|_| !delimits) {
                headers.push((name.to_owned(), line.text[name.len() + 1..].to_owned()));
            } else {
                return Err(no_header(line, of, headers.is_empty()));
            }
            line_break = line.ending;
        }
        Err(self.stops_short(&format!("within the headers of {of}"), boundary))
    }

    fn parts(&mut self, boundary: &str) -> Result<(Vec<Found>, Vec<Remark>), Remark> {
        let (mut parts, mut remarks) = (Vec::new(), Vec::new());
        let unread = |line: Line<'_>, where_: &str| {
            line.remark(format!("stands {where_}, and is never read"))
                .with_hint("put it into a part, or leave it out")
        };
        let preamble = self.skip_to_delimiter(boundary);
        remarks.extend(preamble.map(|it| unread(it, "before the first delimiter")));
        loop {
            let Some(opened) = self.here() else {
                return Err(self.stops_short("before its first part", Some(boundary)));
            };
            self.at += 1;
            if delimiter(opened.text, boundary) == Some(Delimiter::Closes) {
                break;
            }
            // Karpenter's own examples end so: a delimiter that opens, and nothing behind it.
            let rest = &self.lines[self.at..];
            if !parts.is_empty() && rest.iter().all(|it| it.text.trim().is_empty()) {
                let hint = format!("end the document with `--{}--`", shown(boundary));
                remarks.push(opened.remark("opens a part that never comes").with_hint(hint));
                return Ok((parts, remarks));
            }
            let of = format!("part {}", parts.len() + 1);
            let headers = self.headers(&of, Some(boundary))?;
            let Some(first) = self.here() else {
                return Err(self.stops_short(&format!("within {of}"), Some(boundary)));
            };
            self.skip_to_delimiter(boundary);
            let Some(closed) = self.here() else {
                return Err(self.stops_short(&format!("within {of}"), Some(boundary)));
            };
            let body = without_break(&closed.document[first.start..closed.start]).to_owned();
            let part = Part { headers, body };
            parts.push(Found { part, line: opened.number, body_line: first.number });
        }
        if parts.is_empty() {
            return Err(Remark::new(Place::Whole, "is multipart without a part")
                .with_hint("leave `userData` out"));
        }
        let epilogue = self.lines[self.at..].iter().find(|it| !it.text.trim().is_empty());
        remarks.extend(epilogue.map(|it| unread(*it, "after the closing delimiter")));
        Ok((parts, remarks))
    }

    /// The first line that is not blank, of those passed over.
    fn skip_to_delimiter(&mut self, boundary: &str) -> Option<Line<'a>> {
        let mut passed = None;
        while let Some(line) = self.here().filter(|it| delimiter(it.text, boundary).is_none()) {
            if passed.is_none() && !line.text.trim().is_empty() {
                passed = Some(line);
            }
            self.at += 1;
        }
        passed
    }

    fn stops_short(&self, where_: &str, boundary: Option<&str>) -> Remark {
        let place = self.lines.last().map_or(Place::Whole, |it| Place::UserPart {
            line: it.number,
            column: it.text.chars().count() + 1,
        });
        Remark::new(place, format!("stops short {where_}")).with_hint(match boundary {
            Some(it) => format!("end the document with the line `--{}--`", shown(it)),
            None => "end the headers with a blank line".to_owned(),
        })
    }

    /// Where a header of the document stands.
    fn place_of(&self, name: &str) -> Place {
        let named =
            |it: &&Line<'_>| header_name(it.text).is_some_and(|it| it.eq_ignore_ascii_case(name));
        self.lines
            .iter()
            .find(named)
            .map_or(Place::Whole, |it| Place::UserPart { line: it.number, column: 1 })
    }
}

fn no_header(line: Line<'_>, of: &str, first: bool) -> Remark {
    let seen = glimpse(line.text);
    if first {
        line.remark(format!("`{seen}` is no header, and {of} begins with headers"))
            .with_hint("write `Name: value`, or a blank line where there are no headers")
    } else {
        line.remark(format!("`{seen}` follows the headers of {of} without a blank line"))
            .with_hint("put a blank line before it: that ends the headers")
    }
}

/// The name of a header that begins here: a token and a colon.
fn header_name(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
    (!name.is_empty() && name.bytes().all(token)).then_some(name)
}

/// On one line, without the white space around it.
fn unfold(value: &str) -> String {
    value.replace(['\r', '\n'], "").trim().to_owned()
}

fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or("").trim()
}

/// A parameter of a header: `boundary` of `multipart/mixed; boundary="…"`. The first of a name counts.
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut rest = value.split_once(';')?.1;
    loop {
        let (key, after) = rest.split_once('=')?;
        // A word without a value, as in `; attachment; filename=…`.
        if let Some((_, later)) = key.split_once(';') {
            rest = &rest[key.len() - later.len()..];
            continue;
        }
        let after = after.trim_start();
        let (found, later) = match after.strip_prefix('"') {
            Some(quoted) => read_quoted(quoted),
            None => match after.split_once(';') {
                Some((found, later)) => (found.trim().to_owned(), later),
                None => (after.trim().to_owned(), ""),
            },
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(found);
        }
        rest = later.trim_start().trim_start_matches(';');
    }
}

/// Up to the closing quote, or to the end where there is none; and what follows.
fn read_quoted(text: &str) -> (String, &str) {
    let mut found = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (found, &text[at + 1..]),
            '\\' => found.extend(chars.next().map(|(_, it)| it)),
            it => found.push(it),
        }
    }
    (found, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (String, String) {
        let remark = read(text).unwrap_err();
        (remark.to_string(), remark.hint.unwrap_or_default())
    }

    const HEAD: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n";

    #[test]
    fn headers_decide_in_any_case() {
        for text in [
            "MIME-Version: 1.0\n",
            "mime-version: 1.0\n",
            "\n \nContent-Type: multipart/mixed\n",
            "Subject: x\n y\nCONTENT-TYPE: multipart/mixed\n",
            "\u{feff}MIME-Version: 1.0\r\n",
        ] {
            assert!(looks_like_mime(text), "{text:?}");
        }
        for text in [
            "",
            "#!/bin/sh\nMIME-Version: 1.0\n",
            "kind: NodeConfig\n\nMIME-Version: 1\n",
            ":",
            "a b: c",
        ] {
            assert!(!looks_like_mime(text), "{text:?}");
        }
    }

    #[test]
    fn any_boundary_is_read() {
        for head in [
            "boundary=\"==B==\"",
            "boundary===B==",
            "charset=x; Boundary=\"==B==\"; y=z",
            "\n\tboundary=\"==B==\"",
            "attachment;boundary = \"=\\=B==\"",
            "x=\"a;boundary=no\"; boundary=\"==B==\"",
        ] {
            let text =
                format!("Content-Type: Multipart/Mixed; {head}\n\n--==B==\nA:b\n\n x\n--==B==--\n");
            let document = read(&text).unwrap();
            assert_eq!(document.parts.len(), 1, "{head}");
            let part = &document.parts[0].part;
            assert_eq!(part.headers, [("A".to_owned(), "b".to_owned())]);
            assert_eq!(part.body, " x");
        }
    }

    #[test]
    fn what_stops_short_is_refused_with_its_line() {
        let (message, hint) = refused(&format!("{HEAD}--//\n\nexit 0\n"));
        assert_eq!(message, "userData:6:7: stops short within part 1");
        assert_eq!(hint, "end the document with the line `--//--`");
        let (message, _) = refused(&format!("{HEAD}--//\nContent-Type: text/plain\n"));
        assert_eq!(message, "userData:5:25: stops short within the headers of part 1");
        let (message, _) = refused(HEAD);
        assert_eq!(message, "userData:3:1: stops short before its first part");
    }

    #[test]
    fn an_opening_delimiter_at_the_end_is_tolerated_as_karpenter_does() {
        for end in ["--//\n", "--//", "--//  \n\n"] {
            let document = read(&format!("{HEAD}--//\n\nexit 0\n{end}")).unwrap();
            assert_eq!(document.parts[0].part.body, "exit 0");
            assert_eq!(
                document.remarks[0].to_string(),
                "userData:7:1: opens a part that never comes"
            );
        }
    }

    /// Seed 4's own example of the sandwich has this error.
    #[test]
    fn a_script_right_after_its_header_is_refused() {
        let (message, hint) = refused(&format!(
            "{HEAD}--//\nContent-Type: text/x-shellscript\n#!/bin/bash\n\n--//--\n"
        ));
        assert_eq!(
            message,
            "userData:6:1: `#!/bin/bash` follows the headers of part 1 without a blank line"
        );
        assert_eq!(hint, "put a blank line before it: that ends the headers");
        let (message, _) = refused(&format!("{HEAD}--//\n#!/bin/bash\n\n--//--\n"));
        assert_eq!(
            message,
            "userData:5:1: `#!/bin/bash` is no header, and part 1 begins with headers"
        );
        let (message, _) = refused(&format!("{HEAD}--//\nA: b\n  \necho\n--//--\n"));
        assert_eq!(message, "userData:6:1: has white space and so continues the header above");
        let (message, _) = refused(&format!("{HEAD}--//\nA: b\n--//--\n"));
        assert!(message.starts_with("userData:6:1: `--//--` follows"), "{message}");
    }

    #[test]
    fn what_is_no_multipart_is_refused() {
        let (message, _) =
            refused("MIME-Version: 1.0\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n");
        assert_eq!(message, "userData:2:1: is MIME of type `text/x-shellscript`, not multipart");
        let (message, _) = refused("MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n");
        assert_eq!(message, "userData:2:1: is multipart without a boundary");
        let (message, _) = refused("MIME-Version: 1.0\n\n");
        assert_eq!(message, "userData: has MIME headers, and no Content-Type among them");
        let (message, _) = refused(" MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n");
        assert!(message.starts_with("userData:1:1: begins with white space"), "{message}");
        let (message, _) = refused(&format!("{HEAD}--//--\n"));
        assert_eq!(message, "userData: is multipart without a part");
        let (message, _) = refused("MIME-Version: 1.0\rContent-Type: multipart/mixed\n\n");
        assert_eq!(message, "userData:1:18: has a carriage return within a header");
    }

    #[test]
    fn text_that_nobody_reads_is_remarked() {
        let text = format!("{HEAD}\nhello\n--//\n\nx\n--//--\n\nbye\n");
        let shown: Vec<String> =
            read(&text).unwrap().remarks.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "userData:5:1: stands before the first delimiter, and is never read",
                "userData:11:1: stands after the closing delimiter, and is never read"
            ]
        );
    }

    #[test]
    fn a_multipart_within_is_one_part() {
        let inner = "--in\n\none\n--in--\n";
        let text = format!(
            "{HEAD}--//\nContent-Type: multipart/alternative; boundary=in\n\n{inner}\n--//\n\ntwo\n--//--"
        );
        let document = read(&text).unwrap();
        assert_eq!(document.parts.len(), 2);
        assert_eq!(document.parts[0].part.body, inner);
        assert!(document.parts[0].part.multipart());
        assert_eq!((document.parts[1].line, document.parts[1].body_line), (12, 14));
    }

    #[test]
    fn names_are_found_where_cloud_init_looks() {
        let part = Part::new(SHELL, "").named("a.sh");
        assert_eq!(part.filename().as_deref(), Some("a.sh"));
        let part = Part::new("text/X-shellscript; name=b.sh", "");
        assert_eq!(part.filename().as_deref(), Some("b.sh"));
        assert_eq!(part.content_type(), SHELL);
        assert_eq!(Part { headers: vec![], body: String::new() }.content_type(), "text/plain");
    }
}
