//! How is something said about a user's part, or about a setting?
//!
//! Small words for [`Remark`], and where in a text a byte stands.

use std::{error, fmt};

use super::{MergeConflict, Place, Remark};

impl Place {
    /// The place of a byte in the user's part, counted in characters from one.
    pub fn of_byte(text: &str, byte: usize) -> Self {
        let mut end = byte.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self::UserPart { line, column }
    }
}

impl Remark {
    /// About a field of the class, the pool or the cluster.
    pub fn of_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Place::Field(field.into()), message)
    }
}

impl fmt::Display for MergeConflict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, remark) in self.remarks.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(out, "{separator}{remark}")?;
        }
        Ok(())
    }
}

impl error::Error for MergeConflict {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let text = "a\nbü\nc";
        let place = |line, column| Place::UserPart { line, column };
        assert_eq!(Place::of_byte(text, 0), place(1, 1));
        assert_eq!(Place::of_byte(text, 2), place(2, 1));
        assert_eq!(Place::of_byte(text, 4), place(2, 2), "inside of a character");
        assert_eq!(Place::of_byte(text, 5), place(2, 3));
        assert_eq!(Place::of_byte(text, 99), place(3, 2));
    }
}
