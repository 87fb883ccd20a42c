//! Would nodeadm read this type of a part?
//!
//! `Content-Type → what Go's reader says against it`
//!
//! nodeadm reads the type of every part with Go's `mime.ParseMediaType`, and gives up the whole document
//! at the first that it cannot read: ours with it. Python, and so cloud-init, reads nearly anything.

use std::collections::BTreeMap;

/// What is wrong with it, in one line; nothing where Go takes it.
pub(crate) fn problem(value: &str) -> Option<&'static str> {
    let kind = value.split(';').next().unwrap_or_default();
    if let Some(problem) = kind_problem(&kind.trim().to_lowercase()) {
        return Some(problem);
    }
    let mut rest = value[kind.len()..].trim_start();
    let mut seen = BTreeMap::new();
    while !rest.is_empty() {
        let Some((name, parameter, after)) = parameter(rest) else {
            // A semicolon at the end is passed over.
            return (rest.trim() != ";").then_some("has a parameter that is not `name=value`");
        };
        if seen.get(&name).is_some_and(|it| *it != parameter) {
            return Some("has a parameter twice");
        }
        seen.insert(name, parameter);
        rest = after.trim_start();
    }
    None
}

fn kind_problem(kind: &str) -> Option<&'static str> {
    let (first, rest) = token(kind);
    if first.is_empty() {
        return Some("has no type");
    }
    if rest.is_empty() {
        return None;
    }
    let Some(rest) = rest.strip_prefix('/') else {
        return Some("has no slash behind the first word");
    };
    let (second, rest) = token(rest);
    if second.is_empty() {
        return Some("has nothing behind the slash");
    }
    (!rest.is_empty()).then_some("has something behind the type that is no parameter")
}

/// `; name=value`, and what follows.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let (name, rest) = token(text.strip_prefix(';')?.trim_start());
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    if name.is_empty() {
        return None;
    }
    let name = name.to_lowercase();
    if let Some(quoted) = rest.strip_prefix('"') {
        let (value, rest) = quoted_value(quoted)?;
        return Some((name, value, rest));
    }
    let (value, rest) = token(rest);
    (!value.is_empty()).then(|| (name, value.to_owned(), rest))
}

/// Up to the closing quote. A backslash counts only before what is special.
fn quoted_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\r' | '\n' => return None,
            '\\' => match chars.next_if(|(_, it)| SPECIAL.contains(*it)) {
                Some((_, special)) => value.push(special),
                None => value.push('\\'),
            },
            other => value.push(other),
        }
    }
    None
}

/// RFC 2045's, which end a token.
const SPECIAL: &str = "()<>@,;:\\\"/[]?=";

fn token(text: &str) -> (&str, &str) {
    let ends = |it: char| !it.is_ascii_graphic() || SPECIAL.contains(it);
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn what_go_refuses_is_told() {
        for value in [
            "text/x-shellscript",
            "text",
            "Text/X-Shellscript ; Charset=\"us-ascii\"",
            "text/plain; a=b;",
            "text/plain; a=\"\"",
            "text/plain; a=b; a=b",
            "text/plain; name=\"a \\\"b\\\" ü\"",
            "text/plain; title*0=a; title*1=b",
        ] {
            assert_eq!(problem(value), None, "{value}");
        }
        for value in [
            "",
            ";",
            "\"text/x-shellscript\"",
            "text/x-shellscript; charset",
            "text/x-shellscript; charset=us-ascii; charset=utf-8",
            "text/x-shellscript, charset=\"us-ascii\"",
            "text/x-shellscript; charset=\"us-ascii",
            "text/x-shellscript (comment)",
            "text/x-shellscript; name=a b",
            "text/x-shellscript;;",
            "text/x-shellscript; =a",
            "text/x-shellscript; a=",
            "text /plain",
            "text/",
        ] {
            assert!(problem(value).is_some(), "{value}");
        }
    }
}
