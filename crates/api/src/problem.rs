//! What is wrong with what a person wrote, and where?
//!
//! `finding + place → problem`
//!
//! A check on a wire object knows the field and the remedy, never the line: the same check serves
//! files and a cluster. The file door adds the line.

use std::{fmt, ops::Range};

/// How bad it is. Only an `Error` keeps an object out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing changes.
    Note,
    /// The object is read, and may mean something else than was intended.
    Warning,
    /// The object is not read.
    Error,
}

/// Something about one field, not yet tied to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// From the object's root, for example `spec.amiSelectorTerms[0].owner`.
    pub field: String,
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl Finding {
    pub fn error(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, field: field.into(), message: message.into(), hint: None }
    }

    pub fn warning(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(field, message) }
    }

    pub fn note(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(field, message) }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Where something stands in a text. Line and column count from one, the column in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
    /// In bytes of the text.
    pub span: Option<Range<usize>>,
}

impl Place {
    /// The first character, for what concerns the whole text.
    pub const START: Self = Self { line: 1, column: 1, span: None };
}

/// A finding with its place. Shown as `file:line:column: field: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// In bytes of the file's text.
    pub span: Option<Range<usize>>,
    /// Empty where the problem concerns no field, such as a missing bracket.
    pub field: String,
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(file: &str, place: Place, finding: Finding) -> Self {
        let Finding { severity, field, message, hint } = finding;
        let Place { line, column, span } = place;
        Self { severity, file: file.to_owned(), line, column, span, field, message, hint }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// The words among `known` that `word` was probably meant to be: one, or none.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // Words beyond this length are not misspellings, and comparing them is quadratic.
    const WORD_BYTES_MAX: usize = 64;
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    known
        .iter()
        .map(|it| (strsim::damerau_levenshtein(&lower, &it.to_lowercase()), *it))
        .filter(|(distance, it)| *distance <= 1.max(it.len().min(word.len()) / 3))
        .min()
        .map(|(_, it)| it)
}

/// Text that a person typed, in backticks, cut to what fits on a line.
pub(crate) fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let mut shown: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    // `escape_debug` is for control characters; quotes read better as they were typed.
    shown = shown.replace("\\\"", "\"").replace("\\'", "'");
    if text.chars().nth(CHARS_MAX).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}
