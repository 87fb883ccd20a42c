//! Durations, as a person writes them, against models that share no code with the readers.
//!
//! What else is fuzzed stands beside its laws: TOML and `NodeConfig`s in `bootstrap_conf`, MIME and
//! quoting in `bootstrap_shell`, requirements and quantities in `fit`.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::BTreeMap;

use nodemolt_core::ask::Age;
use nodemolt_core::bootstrap::{Kubelet, kubelet};
use nodemolt_core::fit::Family;
use proptest::{collection::vec, prelude::*, sample::select};

#[path = "../../fit/tests/support/fuzz.rs"]
mod fuzz;

const SCRAPS: [&str; 36] = [
    "0",
    "1",
    "7",
    "00",
    "36",
    "60",
    "100",
    "5270",
    "36600",
    "52704000",
    "99999999999999999999",
    "9223372036854775807",
    "9223372036854775808",
    "2562047",
    "w",
    "d",
    "h",
    "m",
    "s",
    "ms",
    "us",
    "µs",
    "μs",
    "ns",
    "M",
    "mo",
    "days",
    "P",
    "T",
    ".",
    ".5",
    "-",
    "+",
    " ",
    "e3",
    "१",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => fuzz::like("([0-9]{1,4}w)?([0-9]{1,5}d)?([0-9]{1,6}h)?([0-9]{1,9}m)?"),
        4 => fuzz::like("[-+]?([0-9]{0,4}(\\.[0-9]{0,12})?(h|m|s|ms|us|µs|ns)){1,4}"),
        1 => fuzz::like("-?9223372036854775[0-9]{3}ns|-?92233720368547(75[0-9])?\\.[0-9]{0,6}(s|ms|us)"),
        4 => vec(select(&SCRAPS[..]), 0..7).prop_map(|it| it.concat()),
        1 => fuzz::like("(?s).{0,12}"),
    ]
}

/// Numbers and what stands behind each, or nothing where the text is made otherwise.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for it in text.chars() {
        let number = it.is_ascii_digit() || it == '.';
        match pairs.last_mut() {
            Some((numbers, unit)) if number && unit.is_empty() => numbers.push(it),
            Some((_, unit)) if !number => unit.push(it),
            _ if number => pairs.push((it.to_string(), String::new())),
            _ => return None,
        }
    }
    pairs.iter().all(|(_, unit)| !unit.is_empty()).then_some(pairs).filter(|it| !it.is_empty())
}

/// Minutes: units in falling order, a century at most.
fn age(text: &str) -> Option<i64> {
    let mut minutes = 0_i64;
    let mut smaller_than = i64::MAX;
    for (number, unit) in pairs(text)? {
        let size = match unit.as_str() {
            "w" => 10_080,
            "d" => 1_440,
            "h" => 60,
            "m" => 1,
            _ => return None,
        };
        if size >= smaller_than {
            return None;
        }
        smaller_than = size;
        minutes = number.parse::<i64>().ok()?.checked_mul(size)?.checked_add(minutes)?;
    }
    (minutes <= 36_600 * 1_440).then_some(minutes)
}

/// Nanoseconds as Go counts them: in 64 bits, what is finer cut off part by part.
fn go(text: &str) -> Option<i128> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Some(0);
    }
    let mut nanos = 0;
    for (number, unit) in pairs(unsigned)? {
        let size: i128 = match unit.as_str() {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let read = |it: &str| if it.is_empty() { Some(0) } else { it.parse::<i128>().ok() };
        // What is finer than a nanosecond of an hour does not count.
        let fraction = &fraction[..fraction.len().min(18)];
        let parts = 10_i128.pow(u32::try_from(fraction.len()).unwrap());
        nanos += read(whole)?.checked_mul(size)? + read(fraction)? * size / parts;
    }
    let negative = text.starts_with('-');
    let nanos_max = i128::from(i64::MAX) + i128::from(negative);
    (nanos <= nanos_max).then_some(if negative { -nanos } else { nanos })
}

proptest! {
    #![proptest_config(fuzz::config(20_000))]

    #[test]
    fn an_age_is_what_the_model_says(text in text()) {
        let read = text.parse::<Age>();
        let minutes = read.as_ref().ok().map(|it| it.duration().as_mins());
        prop_assert_eq!(minutes, age(&text));
        match read {
            Ok(read) => prop_assert_eq!(read.to_string().parse::<Age>(), Ok(read)),
            Err(error) => {
                let said = error.to_string();
                prop_assert!(said.contains("is not an age"));
                if let Some((_, instead)) = said.rsplit_once("; did you mean `") {
                    prop_assert!(age(instead.trim_end_matches("`?")).is_some(), "{said}");
                }
            }
        }
    }

    #[test]
    fn a_grace_period_is_what_go_reads(text in text()) {
        let signal = || "memory.available".to_owned();
        let told = Kubelet {
            eviction_soft: BTreeMap::from([(signal(), "5%".to_owned())]),
            eviction_soft_grace_period: BTreeMap::from([(signal(), text.clone())]),
            ..Kubelet::default()
        };
        let said = kubelet::check(&told, Family::Al2023).map_err(|it| it.remarks[0].message.clone());
        match go(&text) {
            Some(0..) => prop_assert_eq!(said, Ok(vec![])),
            Some(_) => prop_assert_eq!(said, Err("can't be a negative duration".to_owned())),
            None => prop_assert!(said.unwrap_err().ends_with("must be a duration")),
        }
    }
}
