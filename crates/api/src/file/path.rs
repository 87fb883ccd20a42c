//! How is a field called?
//!
//! `spec.amiSelectorTerms[0].tags[aws:name]`, as Kubernetes calls it in its own errors.

use std::fmt;

/// The way from an object's root to a field, held on the stack of whoever walks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'p> {
    Root,
    Field(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Field(parent, key) => f.write_str(&join(&parent.to_string(), key)),
        }
    }
}

/// A key that would read as several, such as a label's, stands in brackets.
pub(crate) fn join(parent: &str, key: &str) -> String {
    const CHARS_MAX: usize = 80;
    let name = !key.is_empty()
        && key.chars().count() <= CHARS_MAX
        && key.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'$'));
    if !name {
        let shown: String = key.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
        return format!("{parent}[{shown}]");
    }
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}
