//! Could these words about a rollout ever come true?
//!
//! What the schema checks is checked here again for files; and what only a calendar knows: zones,
//! dates, schedules.

use jiff::{civil, tz};
use nodemolt_core::budget::{Cron, ParseCronError};

use crate::{
    meta::IntOrString,
    nodedisruptionbudget::amount,
    problem::{Finding, quoted},
};

use super::{Rollout, Unit, Window, Windows};

pub(crate) fn check(field: &str, rollout: &Rollout) -> Vec<Finding> {
    let Rollout {
        concurrency,
        unit,
        batch_maximum,
        cooldown,
        minimum_node_lifetime,
        drain_limit,
        drain_limit_action: _,
        replacement: _,
        bare_pods: _,
        windows,
    } = rollout;
    let mut found = Vec::new();
    let parallel = IntOrString::String("Parallel".to_owned());
    for (name, written) in [("concurrency", concurrency), ("batchMaximum", batch_maximum)] {
        let at = format!("{field}.{name}");
        let Some(written) = written else { continue };
        if name == "concurrency" && *written == parallel {
            continue;
        }
        let share = matches!(written, IntOrString::String(text) if text.ends_with('%'));
        if let Some(finding) = amount(&at, Some(written)) {
            found.push(finding);
        } else if *unit == Some(Unit::Cpu) && !share {
            let finding = Finding::error(at, "is not a share, as `unit: CPU` needs");
            found.push(finding.hint("write a percentage, for example 10%"));
        }
    }
    for (name, text) in [
        ("cooldown", cooldown),
        ("minimumNodeLifetime", minimum_node_lifetime),
        ("drainLimit", drain_limit),
    ] {
        found.extend(text.iter().find_map(|it| length(&format!("{field}.{name}"), it)));
    }
    if let Some(windows) = windows {
        found.extend(check_windows(&format!("{field}.windows"), windows));
    }
    found
}

fn check_windows(field: &str, windows: &Windows) -> Vec<Finding> {
    let Windows { time_zone, allow, forbid } = windows;
    let mut found = Vec::new();
    if let Some(name) = time_zone
        && tz::TimeZoneDatabase::bundled().get(name).is_err()
    {
        let message = format!("{} is not a time zone", quoted(name));
        let finding = Finding::error(format!("{field}.timeZone"), message);
        found.push(finding.hint("write its name in the IANA database, such as Europe/Berlin"));
    }
    if allow.is_none() && forbid.is_none() {
        let finding = Finding::error(field, "names no window");
        found.push(finding.hint("write `allow` or `forbid`, or remove it"));
    }
    if allow.as_ref().is_some_and(Vec::is_empty) {
        let message = "an empty list allows no time at all: nothing is ever replaced";
        found.push(Finding::warning(format!("{field}.allow"), message));
    }
    for (list, name) in [(allow, "allow"), (forbid, "forbid")] {
        for (index, window) in list.iter().flatten().enumerate() {
            found.extend(check_window(&format!("{field}.{name}[{index}]"), window));
        }
    }
    found
}

fn check_window(field: &str, window: &Window) -> Vec<Finding> {
    let Window { days, from, to, schedule, duration, first_date, last_date, reason: _ } = window;
    let mut found = Vec::new();
    let said = days.is_some() || from.is_some() || schedule.is_some();
    if !said && first_date.is_none() && last_date.is_none() && to.is_none() && duration.is_none() {
        let finding = Finding::error(field, "says no time");
        found.push(finding.hint("write days, from and to, schedule and duration, or dates"));
    }
    let together = [("from", from, "to", to), ("schedule", schedule, "duration", duration)];
    for (one, is_one, other, is_other) in together {
        if is_one.is_some() != is_other.is_some() {
            let message = format!("`{one}` and `{other}` belong together");
            found.push(Finding::error(field, message).hint("write both"));
        }
    }
    if from.is_some() && from == to {
        let finding = Finding::error(field, "`from` and `to` are the same");
        found.push(finding.hint("remove both for the whole day"));
    }
    if schedule.is_some() && (days.is_some() || from.is_some()) {
        let finding = Finding::error(field, "`schedule` already says when");
        found.push(finding.hint("remove it, or remove `days`, `from` and `to`"));
    }
    found.extend(from.iter().find_map(|it| time_of_day(&format!("{field}.from"), it, false)));
    found.extend(to.iter().find_map(|it| time_of_day(&format!("{field}.to"), it, true)));
    found.extend(schedule.iter().find_map(|it| cron(&format!("{field}.schedule"), it)));
    found.extend(duration.iter().find_map(|it| length(&format!("{field}.duration"), it)));
    let mut dates = Vec::new();
    for (name, text) in [("firstDate", first_date), ("lastDate", last_date)] {
        let Some(text) = text else { continue };
        match text.parse::<civil::Date>() {
            Ok(date) if text.len() == 10 => dates.push(date),
            Ok(_) | Err(_) => {
                let message = format!("{} is not a date", quoted(text));
                let finding = Finding::error(format!("{field}.{name}"), message);
                found.push(finding.hint("write it as 2026-12-20"));
            }
        }
    }
    if matches!(dates.as_slice(), [first, last] if first > last) {
        let message = "`lastDate` is before `firstDate`";
        found.push(Finding::error(field, message).hint("swap them"));
    }
    found
}

fn time_of_day(field: &str, text: &str, midnight: bool) -> Option<Finding> {
    let read = text.split_once(':').filter(|(hours, minutes)| {
        let two = |it: &str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit());
        two(hours) && two(minutes) && *hours <= "23" && *minutes <= "59"
    });
    if read.is_some() || (midnight && text == "24:00") {
        return None;
    }
    let message = format!("{} is not a time of the day", quoted(text));
    Some(Finding::error(field, message).hint("write hours and minutes in quotes: \"22:00\""))
}

/// Nothing, where it is a schedule.
pub(crate) fn cron(field: &str, text: &str) -> Option<Finding> {
    let Err(error) = text.parse::<Cron>() else { return None };
    if let ParseCronError::NeverComes { .. } = error {
        let message = format!("{} names a date that never comes", quoted(text));
        return Some(Finding::error(field, message).hint("mind how many days that month has"));
    }
    let message = format!("{} is not a schedule", quoted(text));
    Some(Finding::error(field, message).hint("write cron's five fields, such as `0 22 * * 1-5`"))
}

/// Weeks, days, hours, minutes and seconds, in this order, each at most once.
fn length(field: &str, text: &str) -> Option<Finding> {
    let mut rest = text;
    let mut units = "wdhms".chars();
    let mut read = !text.is_empty();
    while read && !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = rest[digits..].chars().next();
        read = (1..=9).contains(&digits)
            && unit.is_some_and(|unit| units.by_ref().any(|it| it == unit));
        rest = rest.get(digits + 1..).unwrap_or_default();
    }
    if read {
        return None;
    }
    let message = format!("{} is not a length of time", quoted(text));
    Some(Finding::error(field, message).hint("write it like 90s, 30m, 1h30m or 7d"))
}
