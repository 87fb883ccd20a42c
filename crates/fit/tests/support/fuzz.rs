//! How often does a fuzz target run?
//!
//! As often as it says, times `NODEMOLT_FUZZ`. The long run takes the same targets as every day's.

#![allow(
    clippy::disallowed_methods,
    reason = "the length of a run is no matter of the code under test"
)]
#![allow(dead_code, reason = "no target needs all of it")]
#![allow(clippy::unwrap_used, reason = "a broken pattern should stop the test")]

use proptest::string::{RegexGeneratorStrategy, string_regex};
use proptest::test_runner::Config;

pub(crate) fn config(cases: u32) -> Config {
    let default = Config::default();
    Config {
        cases: cases.saturating_mul(times()),
        max_global_rejects: default.max_global_rejects.saturating_mul(times()),
        max_local_rejects: default.max_local_rejects.saturating_mul(times()),
        failure_persistence: None,
        ..default
    }
}

/// Once, unless the environment asks for more.
pub(crate) fn times() -> u32 {
    let Some(text) = std::env::var_os("NODEMOLT_FUZZ") else { return 1 };
    let times = text.to_str().and_then(|it| it.parse().ok());
    assert!(times.is_some_and(|it| it > 0), "NODEMOLT_FUZZ is no number: {}", text.display());
    times.unwrap_or(1)
}

/// Read once: a pattern that stands as a strategy by itself is read anew for every case.
pub(crate) fn like(pattern: &str) -> RegexGeneratorStrategy<String> {
    string_regex(pattern).unwrap()
}
