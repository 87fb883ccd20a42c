//! Is this a point in time?
//!
//! People write `2026-08-01` or `2026-08-01T12:00:00Z`; a time without its zone is nobody's.

use jiff::{Timestamp, civil::Date};

use crate::problem::{Finding, quoted};

pub(crate) fn check(field: &str, text: &str) -> Option<Finding> {
    if text.parse::<Timestamp>().is_ok() || (text.len() == 10 && text.parse::<Date>().is_ok()) {
        return None;
    }
    let message = format!("{} is not a date or a time with its zone", quoted(text));
    Some(Finding::error(field, message).hint("write it as `2026-08-01` or `2026-08-01T12:00:00Z`"))
}
