//! Is `no` a word or a refusal?
//!
//! `plain text → null, boolean, number or string`
//!
//! As kubectl reads it, which is YAML 1.1: `yes`, `on` and `y` are booleans, `012` is ten, and a
//! date is a string. A manifest must not mean one thing here and another in the cluster.

use serde_saphyr::granit_parser::{ScalarStyle, Tag};

use crate::problem::{Finding, quoted};

use super::tree::Content;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Negative(i64),
    Natural(u64),
    Real(f64),
}

pub(crate) fn resolve(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
) -> Result<Content, String> {
    let string = || Content::Text(text.to_owned());
    let Some(tag) = tag else {
        return Ok(if style == ScalarStyle::Plain { plain(text) } else { string() });
    };
    let known = match tag.core_suffix() {
        Some("str") => return Ok(string()),
        Some("bool") => matches!(plain(text), Content::Bool(..)),
        Some("int" | "float") => matches!(plain(text), Content::Number(..)),
        Some("null") => matches!(plain(text), Content::Null),
        // The bare `!` says: not resolved, hence a string.
        None if tag.original() == "!" => return Ok(string()),
        Some(_) | None => {
            return Err(format!("the tag {} is not known here", quoted(&tag.original())));
        }
    };
    if known {
        Ok(plain(text))
    } else {
        Err(format!("{} is not what its tag {} says", quoted(text), quoted(&tag.original())))
    }
}

/// A key is its text. Only where kubectl would silently write another text is it refused.
pub(crate) fn key(text: &str, style: ScalarStyle) -> Result<(), Finding> {
    if style != ScalarStyle::Plain {
        return Ok(());
    }
    match plain(text) {
        Content::Null => {
            Err(Finding::error("", "a key is missing before the `:`")
                .hint("write `\"\"` or a name"))
        }
        Content::Bool(value, _) if text != value.to_string() => {
            let message = format!("the key {} reads as `{value}`", quoted(text));
            Err(Finding::error("", message).hint(format!("quote it: \"{text}\"")))
        }
        Content::Bool(..)
        | Content::Number(..)
        | Content::Text(_)
        | Content::List(_)
        | Content::Map(_) => Ok(()),
    }
}

fn plain(text: &str) -> Content {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Content::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => {
            Content::Bool(true, text.to_owned())
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => {
            Content::Bool(false, text.to_owned())
        }
        _ => number(text)
            .map_or_else(|| Content::Text(text.to_owned()), |it| Content::Number(it, text.into())),
    }
}

fn number(text: &str) -> Option<Number> {
    // No number is longer; a long text that starts with a digit is a string.
    const BYTES_MAX: usize = 64;
    if !text.starts_with(['+', '-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        || text.len() > BYTES_MAX
    {
        return None;
    }
    match text.trim_start_matches(['+', '-']) {
        ".inf" | ".Inf" | ".INF" => return Some(Number::Real(f64::INFINITY)),
        ".nan" | ".NaN" | ".NAN" => return Some(Number::Real(f64::NAN)),
        _ => {}
    }
    let bare = text.replace('_', "");
    whole(&bare).or_else(|| real(&bare))
}

fn whole(text: &str) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(digits) = lower.strip_prefix("0x") {
        (16, digits)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (8, digits)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (2, digits)
    } else if let Some(digits) = lower.strip_prefix('0').filter(|it| !it.is_empty()) {
        (8, digits)
    } else {
        (10, lower.as_str())
    };
    // `from_str_radix` would take a second sign.
    if digits.is_empty() || !digits.chars().all(|it| it.is_digit(radix)) {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        0_i64.checked_sub_unsigned(size).map(Number::Negative)
    } else {
        Some(Number::Natural(size))
    }
}

fn real(text: &str) -> Option<Number> {
    // Rust also reads `1e`, `infinity` and `nan`; YAML's numbers are digits, a point, an exponent.
    let mantissa_end = text.find(['e', 'E']).unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(mantissa_end);
    let digits = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let well_formed = digits.bytes().any(|it| it.is_ascii_digit())
        && digits.bytes().all(|it| it.is_ascii_digit() || it == b'.')
        && digits.matches('.').count() <= 1;
    let exponent = exponent.get(1..).map(|it| it.strip_prefix(['+', '-']).unwrap_or(it));
    let exponent_well_formed =
        exponent.is_none_or(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()));
    (well_formed && exponent_well_formed).then(|| text.parse().ok()).flatten().map(Number::Real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_means_what_kubectl_takes_it_for() {
        let natural = |value| Some(Number::Natural(value));
        for (text, expected) in [
            ("0", natural(0)),
            ("12", natural(12)),
            ("+12", natural(12)),
            ("1_000", natural(1000)),
            ("012", natural(10)),
            ("0o17", natural(15)),
            ("0x1F", natural(31)),
            ("0b101", natural(5)),
            ("18446744073709551615", natural(u64::MAX)),
            ("-9223372036854775808", Some(Number::Negative(i64::MIN))),
            ("018", Some(Number::Real(18.0))),
            ("1.5", Some(Number::Real(1.5))),
            (".5", Some(Number::Real(0.5))),
            ("5.", Some(Number::Real(5.0))),
            ("1e3", Some(Number::Real(1000.0))),
            ("-.inf", Some(Number::Real(f64::INFINITY))),
            ("2w", None),
            ("7d", None),
            ("10%", None),
            ("1.2.3", None),
            ("10.0.0.10", None),
            ("2026-08-01", None),
            ("12:30", None),
            ("--1", None),
            ("1e", None),
            ("0x", None),
            ("-", None),
            (".", None),
            ("infinity", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}
