//! How long is this, as Go writes lengths of time?
//!
//! `1h30m → nanoseconds`
//!
//! What `time.ParseDuration` takes, and nothing else: pools, kubelets and the API server's formats are
//! all written in it.

/// Below this a digit is nothing, even of an hour; and so many fit.
const FRACTION_DIGITS_MAX: usize = 18;

/// Nanoseconds of `1h30m`, `-1.5s`, `0`. As Go reads it, also in what is too long (some 292 years) and in
/// what is too short: what is finer than a nanosecond is cut off.
pub fn go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0_u64;
    while !rest.is_empty() {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (number, after) = rest.split_at(end);
        let unit_end =
            after.find(|it: char| it.is_ascii_digit() || it == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let nanos_per_unit = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        nanos = nanos.checked_add(part(number, nanos_per_unit)?)?;
        rest = after;
    }
    if negative { 0_i64.checked_sub_unsigned(nanos) } else { i64::try_from(nanos).ok() }
}

/// `1`, `1.5`, `.5` or `5.` of a unit, in whole nanoseconds.
fn part(number: &str, nanos_per_unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits = fraction.chars().take(FRACTION_DIGITS_MAX).filter_map(|it| it.to_digit(10));
    let (over, under) = digits
        .fold((0_u128, 1_u128), |(over, under), digit| (over * 10 + u128::from(digit), under * 10));
    let finer = u64::try_from(over * u128::from(nanos_per_unit) / under).ok()?;
    whole.checked_mul(nanos_per_unit)?.checked_add(finer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, nanos) in [
            ("0", 0),
            ("+0", 0),
            ("-0", 0),
            ("-0s", 0),
            ("-0.9ns", 0),
            ("1s", 1_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("300ms", 300_000_000),
            ("1m5s", 65_000_000_000),
            ("1µs", 1_000),
            ("1μs2us", 3_000),
            ("-1h30m", -5_400_000_000_000),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(go_duration(text), Some(nanos), "{text}");
        }
        for text in [
            "",
            "-",
            "1",
            "s",
            "1d",
            ".s",
            "1.2.3s",
            "1s ",
            "--1s",
            "9999999999h",
            "9223372036854775808ns",
            "1s1",
        ] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }
}
