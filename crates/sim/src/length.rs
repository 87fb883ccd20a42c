//! How long?
//!
//! People write `90s`, `1h30m`, `8d` or `2w`; a day has 24 hours here, because simulated days do.

use std::fmt::Write as _;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

/// Longer than anybody simulates, short enough that no sum of a few overflows.
pub(crate) const LONGEST: SignedDuration = SignedDuration::from_hours(100 * 366 * 24);

/// The last moment of any world, 9999-12-30T00:00:00Z: most of a day before those that can be counted end, so that
/// what is planned for a little later has a time of its own.
pub const LAST: Timestamp = Timestamp::constant(253_402_128_000, 0);

pub fn read(text: &str) -> Result<SignedDuration, String> {
    let wrong = || {
        if !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit()) {
            format!(
                "`{text}` has no unit; write it with one, like `{text}s`, `{text}m` or `{text}d`"
            )
        } else {
            format!("`{text}` is no length of time; write it like `90s`, `1h30m` or `8d`")
        }
    };
    // Of digits beyond all counting only the first is of interest: is it a length at all?
    let long = || format!("`{text}` is more than a hundred years; write less");
    let span: Span = text.parse().map_err(|_| if beyond(text) { long() } else { wrong() })?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    if length.is_negative() {
        return Err(format!("`{text}` is negative; write a length of time like `90s`"));
    }
    if length > LONGEST {
        return Err(long());
    }
    Ok(length)
}

/// Whether it would be read if its numbers were smaller.
fn beyond(text: &str) -> bool {
    let mut small = String::new();
    for character in text.chars() {
        // Of each number one digit.
        if !(character.is_ascii_digit() && small.ends_with(|it: char| it.is_ascii_digit())) {
            small.push(character);
        }
    }
    let span = small.parse::<Span>().ok();
    span.is_some_and(|it| it.to_duration(SpanRelativeTo::days_are_24_hours()).is_ok())
}

/// The shortest form that reads back as the same.
pub fn write(length: SignedDuration) -> String {
    let mut rest = length.as_secs();
    let mut text = String::new();
    for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        let count = rest / seconds;
        rest %= seconds;
        if count > 0 {
            // Nothing fails to be written into a text.
            let _ = write!(text, "{count}{unit}");
        }
    }
    let milliseconds = length.subsec_millis();
    if milliseconds > 0 {
        let _ = write!(text, "{milliseconds}ms");
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for (text, written) in [
            ("90s", "1m30s"),
            ("1h30m", "1h30m"),
            ("8d", "8d"),
            ("2w", "14d"),
            ("0s", "0s"),
            ("1s500ms", "1s500ms"),
        ] {
            let length = read(text).unwrap();
            assert_eq!(write(length), written, "{text}");
            assert_eq!(read(written).unwrap(), length, "{text}");
        }
    }

    #[test]
    fn what_is_too_long_is_a_length() {
        for text in ["200000d", "9999999w", "900000000000h", "99999999999999999999999s"] {
            let told = read(text).unwrap_err();
            assert!(told.contains("more than a hundred years"), "{text}: {told}");
        }
    }

    #[test]
    fn what_is_no_length_says_what_to_write() {
        for text in ["", "soon", "1", "-5m", "1y", "200000d"] {
            let told = read(text).unwrap_err();
            assert!(told.contains("write"), "{text}: {told}");
        }
    }
}
