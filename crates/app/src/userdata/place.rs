//! Where in the class's file does this stand?
//!
//! `place in the user's part × the file → file:line:column`
//!
//! A user's part that is written as a block (`userData: |`) stands in the file line by line, so that a
//! place in it is a place in the file. Written otherwise, only its beginning is.

use nodemolt_api::file::{Located, Object};
use nodemolt_core::bootstrap::Place;

/// A class with the text it was read from.
#[derive(Debug)]
pub(crate) struct Written {
    class: Located<Object>,
    text: String,
}

const FIELD: &str = "spec.userData";

impl Written {
    pub(crate) fn new(class: Located<Object>, text: String) -> Self {
        Self { class, text }
    }

    /// `class.yaml:14:5: userData:3:5`, or a field with its line; no line where the class has none.
    pub(crate) fn shown(&self, place: &Place, user: &str) -> String {
        match place {
            Place::UserPart { line, column } => {
                let shown = format!("userData:{line}:{column}");
                match self.in_file(*line, *column, user) {
                    Some((line, column)) => format!("{}:{line}:{column}: {shown}", self.class.file),
                    None => self.of_field(FIELD, &shown),
                }
            }
            Place::Field(field) if field.starts_with("spec.") => self.of_field(field, field),
            Place::Field(field) => field.clone(),
            Place::Whole => self.of_field(FIELD, "userData"),
        }
    }

    fn of_field(&self, field: &str, shown: &str) -> String {
        let at = self.class.locate(field);
        format!("{}:{}:{}: {shown}", self.class.file, at.line, at.column)
    }

    /// Only where the line of the file is the line of the part, but for what it is indented by.
    pub(crate) fn in_file(&self, line: usize, column: usize, user: &str) -> Option<(usize, usize)> {
        let key = self.class.locate(FIELD).line;
        let head = self.text.lines().nth(key.checked_sub(1)?)?;
        let (_, style) = head.split_once(':')?;
        if !style.trim_start().starts_with('|') {
            return None;
        }
        let at = key.checked_add(line)?;
        let found = self.text.lines().nth(at - 1)?;
        // One line behind the last is where a part that stops short is told.
        let theirs = user.lines().nth(line.checked_sub(1)?).unwrap_or_default();
        let indent = found.strip_suffix(theirs)?;
        indent.chars().all(|it| it == ' ').then(|| (at, indent.len() + column))
    }
}
