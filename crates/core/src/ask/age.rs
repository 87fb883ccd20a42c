//! How old must an image be?
//!
//! Weeks, days, hours and minutes, in this order, each at most once: `2w`, `7d`, `36h`, `1w3d12h`. A day
//! is 24 hours. Months and bare numbers are refused with the fix proposed, because tools disagree on
//! whether `7` means days, minutes or seconds, and nobody knows how long a month is.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

use crate::image::shorten;

/// A length of time, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Age {
    minutes: i64,
}

/// The units in the order in which they may stand.
const UNITS: [(char, i64); 4] = [('w', 7 * 24 * 60), ('d', 24 * 60), ('h', 60), ('m', 1)];

/// A century. Longer is a slip of the keyboard, and keeps sums of times in range.
const MINUTES_MAX: i64 = 100 * 366 * 24 * 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseAgeError {
    text: String,
    because: String,
    instead: Option<String>,
}

impl std::error::Error for ParseAgeError {}

impl fmt::Display for ParseAgeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` is not an age: {}", self.text, self.because)?;
        match &self.instead {
            Some(instead) => write!(out, "; did you mean `{instead}`?"),
            None => write!(out, "; write it like `2w`, `7d`, `36h` or `1w3d12h`"),
        }
    }
}

impl Age {
    pub const NONE: Self = Self { minutes: 0 };

    pub fn from_hours(hours: u32) -> Self {
        Self { minutes: i64::from(hours) * 60 }
    }

    pub fn none(self) -> bool {
        self.minutes == 0
    }

    pub fn duration(self) -> SignedDuration {
        SignedDuration::from_mins(self.minutes)
    }

    /// When something of that date is this old. The end of time where there is no such moment.
    pub fn after(self, since: Timestamp) -> Timestamp {
        since.saturating_add(self.duration()).unwrap_or(Timestamp::MAX)
    }
}

impl FromStr for Age {
    type Err = ParseAgeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut minutes: i64 = 0;
        let mut rest = text;
        let mut units = UNITS.iter();
        let refuse = || explain(text);
        if text.is_empty() {
            return Err(refuse());
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            let unit = tail.chars().next().ok_or_else(refuse)?;
            let (_, size) = units.find(|(it, _)| *it == unit).ok_or_else(refuse)?;
            let number: i64 = number.parse().map_err(|_| refuse())?;
            minutes = number
                .checked_mul(*size)
                .and_then(|it| it.checked_add(minutes))
                .filter(|it| *it <= MINUTES_MAX)
                .ok_or_else(refuse)?;
            rest = &tail[unit.len_utf8()..];
        }
        Ok(Self { minutes })
    }
}

/// A form that means exactly this.
impl fmt::Display for Age {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.minutes == 0 {
            return out.pad("0h");
        }
        let mut text = String::new();
        let mut left = self.minutes;
        // `7d`, not `1w`, and `10d`, not `1w3d`: people count in days until weeks come out even.
        let (_, week) = UNITS[0];
        let even = left % week == 0 && left / week > 1;
        for (unit, size) in UNITS.into_iter().skip(usize::from(!even)) {
            if left / size > 0 {
                write!(text, "{}{unit}", left / size)?;
                left %= size;
            }
        }
        out.pad(&text)
    }
}

/// What is wrong with it, and what was probably meant.
fn explain(text: &str) -> ParseAgeError {
    let error = |because: &str, instead: Option<String>| ParseAgeError {
        text: shorten(text),
        because: because.to_owned(),
        instead: instead.filter(|it| it.parse::<Age>().is_ok()),
    };
    let trimmed = text.trim();
    let lower = trimmed.to_ascii_lowercase();
    if trimmed.is_empty() {
        return error("it is empty", None);
    }
    if let Some(positive) = trimmed.strip_prefix('-') {
        return error("it is negative", Some(positive.to_owned()));
    }
    if trimmed.bytes().all(|it| it.is_ascii_digit()) {
        return error("it has no unit", Some(format!("{trimmed}d")));
    }
    if trimmed.contains(['.', ',']) {
        return error("fractions are not taken", None);
    }
    let parts = numbers_and_words(&lower);
    if parts.iter().any(|(number, _)| *number > MINUTES_MAX) {
        return error("it is longer than a century", None);
    }
    if parts.iter().any(|(_, word)| word.starts_with("mo") || word.starts_with('y'))
        || (trimmed.contains('M') && !lower.starts_with('p'))
    {
        let days = parts.iter().try_fold(0_i64, |sum, (number, word)| {
            let days = match word.as_str() {
                it if it.starts_with("mo") || it == "m" => 30,
                it if it.starts_with('y') => 365,
                it if it.starts_with('w') => 7,
                it if it.starts_with('d') => 1,
                _ => return None,
            };
            number.checked_mul(days)?.checked_add(sum)
        });
        return error("months and years have no fixed length", days.map(|it| format!("{it}d")));
    }
    if parts.is_empty() {
        return error("it has no number", None);
    }
    // Whatever else it is, if its words are units it can be written in order.
    let mut sums = [Some(0_i64); 4];
    let mut seconds = false;
    for (number, word) in &parts {
        let unit = match word.as_str() {
            "w" | "week" | "weeks" | "wk" | "wks" => 0,
            "d" | "day" | "days" => 1,
            "h" | "hour" | "hours" | "hr" | "hrs" => 2,
            "m" | "min" | "mins" | "minute" | "minutes" => 3,
            "s" | "sec" | "secs" | "second" | "seconds" => {
                seconds = true;
                continue;
            }
            _ => return error("its units are w, d, h and m", None),
        };
        sums[unit] = sums[unit].and_then(|it| it.checked_add(*number));
    }
    let instead: Option<String> = UNITS
        .iter()
        .zip(sums)
        .map(|((unit, _), sum)| {
            sum.map(|it| if it == 0 { String::new() } else { format!("{it}{unit}") })
        })
        .collect();
    let instead = instead.filter(|it| it != text && !it.is_empty());
    let because = if seconds {
        "seconds are finer than an age is counted"
    } else if lower.starts_with('p') {
        "ISO 8601 durations are not taken"
    } else if instead.is_none() {
        "it is longer than a century"
    } else {
        "units stand as w, d, h, m, in this order, each once, with nothing between"
    };
    error(because, instead)
}

/// `P1W3DT12H`, `7 days`, `3d1w` as numbers and the words behind them.
fn numbers_and_words(text: &str) -> Vec<(i64, String)> {
    let mut parts: Vec<(i64, String)> = Vec::new();
    let mut number: Option<i64> = None;
    let mut word = String::new();
    for character in text.chars().chain([' ']) {
        if let Some(digit) = character.to_digit(10) {
            if let Some(value) = number.filter(|_| !word.is_empty()) {
                parts.push((value, std::mem::take(&mut word)));
                number = None;
            }
            let so_far = if word.is_empty() { number.unwrap_or(0) } else { 0 };
            word.clear();
            number = Some(so_far.saturating_mul(10).saturating_add(i64::from(digit)));
        } else if character.is_alphabetic() && number.is_some() {
            // ISO's T stands between days and hours and means nothing by itself.
            word.push(character);
        } else if let Some(value) = number.filter(|_| !word.is_empty()) {
            parts.push((value, std::mem::take(&mut word)));
            number = None;
        }
    }
    for (_, word) in &mut parts {
        if word.len() == 2 && word.ends_with('t') {
            word.pop();
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Age;

    #[test]
    fn what_is_taken_and_what_is_proposed() {
        for (text, expected) in [
            ("2w", Ok("2w")),
            ("7d", Ok("7d")),
            ("36h", Ok("1d12h")),
            ("1w3d12h", Ok("10d12h")),
            ("90m", Ok("1h30m")),
            ("0h", Ok("0h")),
            ("0d", Ok("0h")),
            ("7", Err("`7` is not an age: it has no unit; did you mean `7d`?")),
            ("-7d", Err("`-7d` is not an age: it is negative; did you mean `7d`?")),
            ("3 months", Err("months and years have no fixed length; did you mean `90d`?")),
            ("1mo", Err("did you mean `30d`?")),
            ("1M", Err("did you mean `30d`?")),
            ("1y", Err("did you mean `365d`?")),
            ("3d1w", Err("did you mean `1w3d`?")),
            ("7d7d", Err("did you mean `14d`?")),
            ("7 days", Err("did you mean `7d`?")),
            ("7D", Err("did you mean `7d`?")),
            ("P7D", Err("did you mean `7d`?")),
            ("P1DT12H", Err("did you mean `1d12h`?")),
            ("90s", Err("seconds are finer")),
            ("", Err("it is empty")),
            ("soon", Err("it has no number")),
            ("1.5d", Err("is not an age")),
            ("99999999999999999999w", Err("is not an age")),
            ("w", Err("is not an age")),
            ("7x", Err("its units are w, d, h and m")),
        ] {
            match (text.parse::<Age>(), expected) {
                (Ok(age), Ok(shown)) => assert_eq!(age.to_string(), shown, "{text}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{text}: {error}");
                }
                (answer, _) => panic!("{text}: {answer:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn an_age_is_read_as_it_is_shown(minutes in 0_i64..super::MINUTES_MAX) {
            let age = Age { minutes };
            prop_assert_eq!(age.to_string().parse::<Age>(), Ok(age));
        }

        #[test]
        fn no_text_panics_and_every_proposal_is_taken(text in "\\PC{0,20}|[0-9wdhmsPTMy .-]{0,12}") {
            if let Err(error) = text.parse::<Age>()
                && let Some(instead) = &error.instead
            {
                prop_assert!(instead.parse::<Age>().is_ok());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
