//! Does this text match, as Go would say?
//!
//! `pattern of Go → regex`
//!
//! The API server's patterns and its `matches` are RE2. Rust's crate speaks almost the same language;
//! where it does not, a schema would quietly mean something else: `\d` is ASCII there and Unicode here,
//! and `[a&&b]` is four characters there and an intersection here.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use regex::{Regex, RegexBuilder};

/// Ten times what the largest pattern of the CRDs that we know compiles to.
const COMPILED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Patterns that rules put together at run time are not worth remembering for ever.
const REMEMBERED_MAX: usize = 1_000;

/// Compiles a pattern of Go's `regexp`.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(pattern))
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| error.to_string())
}

/// The same for rules, which ask again and again. It is shared: a copy of a regex begins without what the
/// first one has found out while it was used.
pub(crate) fn remembered(pattern: &str) -> Result<Arc<Regex>, String> {
    static KNOWN: LazyLock<Mutex<BTreeMap<String, Arc<Regex>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = known.get(pattern) {
        return Ok(Arc::clone(regex));
    }
    let regex = Arc::new(compile(pattern)?);
    if known.len() >= REMEMBERED_MAX {
        known.clear();
    }
    known.insert(pattern.to_owned(), Arc::clone(&regex));
    Ok(regex)
}

/// Rust's words for what a Go pattern says.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str("[\\t\\n\\f\\r ]"),
                Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
                Some('b') => out.push_str("(?-u:\\b)"),
                Some('B') => out.push_str("(?-u:\\B)"),
                Some('Q') => quoted(&mut rest, &mut out),
                Some(escaped) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => out.push('\\'),
            },
            '[' => class(&mut rest, &mut out),
            '{' => {
                let ahead: String = rest.clone().take_while(|it| *it != '}').collect();
                let closed = rest.clone().any(|it| it == '}');
                // Go reads a brace that counts nothing as itself.
                if !(closed && counts(&ahead)) {
                    out.push('\\');
                }
                out.push('{');
            }
            other => out.push(other),
        }
    }
    out
}

/// `3`, `3,` or `3,5`.
fn counts(inside: &str) -> bool {
    let number = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    match inside.split_once(',') {
        None => number(inside),
        Some((least, most)) => number(least) && (most.is_empty() || number(most)),
    }
}

/// `\Q…\E`: everything in between is itself.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let mut text = String::new();
    while let Some(character) = rest.next() {
        if character == '\\' && rest.peek() == Some(&'E') {
            rest.next();
            break;
        }
        text.push(character);
    }
    out.push_str(&regex::escape(&text));
}

/// What stands in brackets, up to the closing one.
fn class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    out.push('[');
    if rest.peek() == Some(&'^') {
        rest.next();
        out.push('^');
    }
    let mut first = true;
    while let Some(character) = rest.next() {
        match character {
            // The first one is itself.
            ']' if first => out.push_str("\\]"),
            ']' => {
                out.push(']');
                return;
            }
            '[' if rest.peek() == Some(&':') => {
                out.push('[');
                for inside in rest.by_ref() {
                    out.push(inside);
                    if inside == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str("\\["),
            // Doubled, these are set operations in Rust.
            '&' | '~' => {
                out.push('\\');
                out.push(character);
            }
            '-' if rest.peek() == Some(&'-') => {
                // A range that ends in a dash; or, in the first place, one that begins with it.
                if !first {
                    rest.next();
                    out.push('-');
                }
                out.push_str("\\-");
            }
            '\\' => match rest.next() {
                Some('d') => out.push_str("0-9"),
                Some('w') => out.push_str("0-9A-Za-z_"),
                Some('s') => out.push_str("\\t\\n\\f\\r "),
                Some('D') => out.push_str("[^0-9]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
                Some(escaped) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => out.push('\\'),
            },
            other => out.push(other),
        }
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_to_go() {
        let cases = [
            // Unanchored, as OpenAPI has it.
            ("b", "abc", true),
            ("^b", "abc", false),
            // ASCII only.
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^\w+$", "é", false),
            (r"^[\w.]+$", "é", false),
            (r"^[\w.-]+$", "a.b-c", true),
            (r"^\s$", "\u{a0}", false),
            (r"^[^\s]$", "\u{a0}", true),
            (r"^[\D]$", "x", true),
            (r"^[\D]$", "1", false),
            // Not set operations.
            (r"^[a&&b]+$", "a&b", true),
            (r"^[a~~b]+$", "a~b", true),
            (r"^[+--]+$", ",", true),
            (r"^[--/]+$", ".", true),
            (r"^[[]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[:alpha:]_]+$", "a_b", true),
            // Braces that count, and braces that do not.
            (r"^a{2}$", "aa", true),
            (r"^a{2,}$", "aaa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^\$\{x$", "${x", true),
            (r"^{a$", "{a", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            // Not the end of a line.
            (r"^a$", "a\n", false),
            (r"^.$", "\n", false),
            (r"^.$", "é", true),
            (r"\bfoo\b", "a foo b", true),
        ];
        for (pattern, text, matches) in cases {
            let regex = compile(pattern).unwrap();
            assert_eq!(regex.is_match(text), matches, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn a_pattern_that_go_would_not_take_is_an_error_and_not_a_panic() {
        for pattern in
            ["(", "[", "[a", "a**", "\\", "(?<", "\\Q", "[\\", "[[:", "{", "x{1001}{1001}{99}"]
        {
            let _ = compile(pattern);
        }
        assert!(compile("(").is_err());
    }
}
