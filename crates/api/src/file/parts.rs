//! Which parts of a text are read one after the other?
//!
//! JSON may stand behind JSON with nothing between: `kubectl` takes that, and YAML does not.

use serde::de::IgnoredAny;

use crate::problem::Place;

/// The parts of such a text, or all of it.
pub(super) fn parts(text: &str) -> Vec<&str> {
    if !text.trim_start().starts_with('{') {
        return vec![text];
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut parts = Vec::new();
    let mut begin = 0;
    while let Some(Ok(_)) = stream.next() {
        let end = stream.byte_offset();
        parts.push(&text[begin..end]);
        begin = end;
    }
    if parts.len() < 2 {
        return vec![text];
    }
    // Whatever comes after the last one is told as it would be without those before.
    if !text[begin..].trim().is_empty() {
        parts.push(&text[begin..]);
    }
    parts
}

/// How far a part stands from the beginning of the text.
#[derive(Debug, Default)]
pub(super) struct Shift {
    line: usize,
    /// In the first line.
    column: usize,
    bytes: usize,
}

impl Shift {
    pub(super) fn none(&self) -> bool {
        self.bytes == 0
    }

    /// Over a part that was read.
    pub(super) fn pass(&mut self, part: &str) {
        match part.rfind('\n') {
            None => self.column += part.chars().count(),
            Some(last) => {
                self.line += part.matches('\n').count();
                self.column = part[last + 1..].chars().count();
            }
        }
        self.bytes += part.len();
    }

    pub(super) fn place(&self, place: &mut Place) {
        if place.line == 1 {
            place.column += self.column;
        }
        place.line += self.line;
        place.span = place.span.take().map(|it| it.start + self.bytes..it.end + self.bytes);
    }
}
