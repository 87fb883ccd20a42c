//! How would Go print this?
//!
//! The API server's messages quote values with Go's verbs; tools compare them to the letter.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// `%q`.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            other if printable(other) => out.push(other),
            other if u32::from(other) < 0x80 => {
                let _ = write!(out, "\\x{:02x}", u32::from(other));
            }
            other if u32::from(other) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
            other => {
                let _ = write!(out, "\\U{:08x}", u32::from(other));
            }
        }
    }
    out.push('"');
    out
}

/// Rust escapes what it does not print, and Go's idea of printing differs only in marks that combine.
fn printable(character: char) -> bool {
    character == '\''
        || (character == ' ' || !character.is_whitespace())
            && !matches!(character.escape_debug().next(), Some('\\'))
}

/// `%v` of a number: whole numbers without a point, large and small ones with an exponent.
pub(crate) fn number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(float)) => float_text(float),
        (None, None) => number.to_string(),
    }
}

/// `%v` of a float64.
pub(crate) fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{float:e}");
        // Rust writes `1e21`, Go `1e+21`.
        return match text.split_once('e') {
            Some((digits, exponent)) => {
                let (sign, exponent) = match exponent.strip_prefix('-') {
                    Some(exponent) => ('-', exponent),
                    None => ('+', exponent),
                };
                format!("{digits}e{sign}{exponent:0>2}")
            }
            None => text,
        };
    }
    format!("{float}")
}

/// What stands behind `Invalid value: `.
pub(crate) fn bad_value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(it) => number(it),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => json(value),
    }
}

/// As `json.Marshal` writes it, which escapes what HTML would read.
pub(crate) fn json(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// What reading a field of the wrong type fails with.
pub(crate) fn unexpected(path: &str, value: &Value, wanted: &str) -> String {
    let name = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(it) if it.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let shown = plain(value);
    format!("{path} accessor error: {shown} is of the type {name}, expected {wanted}")
}

/// `%v`.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => number(it),
        Value::String(it) => it.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members = members.iter().map(|(key, it)| format!("{key}:{}", plain(it)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
    }
}

/// As it comes back from the server: Go writes `2.0` as `2`.
pub(crate) fn stored(mut value: Value) -> Value {
    store(&mut value);
    value
}

fn store(value: &mut Value) {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "whole and small, as is just seen")]
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9.0e15 => {
                *number = Number::from(float as i64);
            }
            Some(_) | None => {}
        },
        Value::Array(items) => items.iter_mut().for_each(store),
        Value::Object(members) => members.values_mut().for_each(store),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_quoted_as_go_quotes_it() {
        let cases = [
            ("a", r#""a""#),
            ("a\"b\\", r#""a\"b\\""#),
            ("é\n\t\u{7}\u{0}", r#""é\n\t\a\x00""#),
            ("\u{200b}\u{feff}", r#""\u200b\ufeff""#),
            ("it's", r#""it's""#),
            ("\u{7f}", r#""\x7f""#),
        ];
        for (text, quoted) in cases {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn numbers_are_printed_as_go_prints_them() {
        for (value, text) in [
            (json!(3), "3"),
            (json!(1.5), "1.5"),
            (json!(1e21), "1e+21"),
            (json!(1e20), "100000000000000000000"),
            (json!(0.000_01), "1e-05"),
            (json!(-2), "-2"),
        ] {
            assert_eq!(bad_value(&value), text);
        }
    }
}
