//! Could these words about a rollout ever come true?
//!
//! `rollout → what it means to core, and everything that is wrong with it`
//!
//! What the schema checks is checked here again for files; and what only a calendar knows: zones,
//! dates, schedules.

use jiff::SignedDuration;
use jiff::civil::{Date, Time, Weekday};
use nodemolt_core::budget::{
    Amount, ClassRule, Concurrency, Cron, Dates, Days, Hours, ParseCronError, Schedule, Unit,
    Unreadable, When, Window, Windows, zone,
};
use nodemolt_core::drain::{AtLimit, BarePods};
use nodemolt_core::replace::Order;

use crate::{
    meta::IntOrString,
    nodedisruptionbudget::amount,
    problem::{Finding, Severity, quoted},
};

use super::{Day, Rollout};

const PARALLEL: &str = "Parallel";

pub(crate) fn check(field: &str, rollout: &Rollout) -> Vec<Finding> {
    let mut found = Vec::new();
    let _ = read(field, "", rollout, &mut found);
    found
}

/// What a rollout means. Nothing starts by words that cannot be read: where a value has no place for
/// "unreadable" of its own, it is `concurrency` that says so.
pub(crate) fn read(
    field: &str,
    policy: &str,
    rollout: &Rollout,
    found: &mut Vec<Finding>,
) -> ClassRule {
    let Rollout {
        concurrency,
        unit,
        batch_maximum,
        cooldown,
        minimum_node_lifetime,
        drain_limit,
        drain_limit_action,
        replacement,
        bare_pods,
        windows,
    } = rollout;
    let at = |name: &str| format!("{field}.{name}");
    let by_cpu = *unit == Some(super::Unit::Cpu);
    let mut rule = ClassRule::of(policy);
    rule.unit = if by_cpu { Unit::Cpu } else { Unit::Nodes };
    rule.concurrency = concurrency.as_ref().map(|it| {
        if *it == IntOrString::String(PARALLEL.to_owned()) {
            return Ok(Concurrency::Parallel);
        }
        told(found, share(&at("concurrency"), it, by_cpu).map(Concurrency::Of))
    });
    rule.batch_max =
        batch_maximum.as_ref().map(|it| told(found, share(&at("batchMaximum"), it, by_cpu)));
    let mut lengths = [None; 3];
    for (index, (name, text)) in [
        ("cooldown", cooldown),
        ("minimumNodeLifetime", minimum_node_lifetime),
        ("drainLimit", drain_limit),
    ]
    .into_iter()
    .enumerate()
    {
        let Some(text) = text else { continue };
        match told(found, length(&at(name), text)) {
            Ok(length) => lengths[index] = Some(length),
            Err(unreadable) => rule.concurrency = Some(Err(unreadable)),
        }
    }
    let [cooldown, minimum_lifetime, drain_limit] = lengths;
    rule.cooldown = cooldown.unwrap_or_default();
    rule.minimum_lifetime = minimum_lifetime.unwrap_or_default();
    rule.drain_limit = drain_limit;
    rule.at_limit = drain_limit_action.map_or(AtLimit::Skip, AtLimit::from);
    rule.order = replacement.map_or(Order::SuccessorFirst, Order::from);
    rule.bare_pods = match bare_pods {
        None | Some(super::BarePods::Wait) => BarePods::Wait,
        Some(super::BarePods::Evict) => BarePods::Evict,
    };
    rule.windows = windows.as_ref().map(|it| {
        let mut wrong = Vec::new();
        let read = read_windows(&at("windows"), it, &mut wrong);
        let first = wrong.iter().find(|it| it.severity == Severity::Error).map(unreadable);
        found.extend(wrong);
        match (first, read) {
            (Some(unreadable), _) => Err(unreadable),
            (None, Some(windows)) => Ok(windows),
            (None, None) => Err(Unreadable(format!("{}: cannot be read", at("windows")))),
        }
    });
    rule
}

/// Core's word for it, with the path and the remedy.
pub(crate) fn unreadable(finding: &Finding) -> Unreadable {
    let Finding { field, message, hint, .. } = finding;
    Unreadable(match hint {
        Some(hint) => format!("{field}: {message}; {hint}"),
        None => format!("{field}: {message}"),
    })
}

fn told<T>(found: &mut Vec<Finding>, read: Result<T, Finding>) -> Result<T, Unreadable> {
    read.map_err(|finding| {
        let unreadable = unreadable(&finding);
        found.push(finding);
        unreadable
    })
}

/// An amount, which is a share where processors are counted.
fn share(field: &str, written: &IntOrString, by_cpu: bool) -> Result<Amount, Finding> {
    let amount = amount(field, written)?;
    if by_cpu && matches!(amount, Amount::Count(_)) {
        let finding = Finding::error(field, "is not a share, as `unit: CPU` needs");
        return Err(finding.hint("write a percentage, for example 10%"));
    }
    Ok(amount)
}

fn read_windows(
    field: &str,
    windows: &super::Windows,
    found: &mut Vec<Finding>,
) -> Option<Windows> {
    let super::Windows { time_zone, allow, forbid } = windows;
    let name = time_zone.as_deref().unwrap_or("UTC");
    let zone = zone(name).ok();
    if zone.is_none() {
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
    let mut read = |list: &[super::Window], name: &str| {
        let each =
            |(index, window)| read_window(&format!("{field}.{name}[{index}]"), window, found);
        list.iter().enumerate().map(each).collect()
    };
    Some(Windows {
        allow: allow.as_ref().map(|it| read(it, "allow")),
        forbid: read(forbid.as_deref().unwrap_or_default(), "forbid"),
        zone: zone?,
    })
}

/// Whatever is wrong with it stands in `found`, and then the answer means nothing.
fn read_window(field: &str, window: &super::Window, found: &mut Vec<Finding>) -> Window {
    let super::Window { days, from, to, schedule, duration, first_date, last_date, reason } =
        window;
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
    if days.as_ref().is_some_and(Vec::is_empty) {
        let finding = Finding::error(format!("{field}.days"), "names no day");
        found.push(finding.hint("name one, or remove it for every day"));
    }
    let from = from.as_ref().map(|it| time_of_day(&format!("{field}.from"), it, false));
    let to = to.as_ref().map(|it| time_of_day(&format!("{field}.to"), it, true));
    let cron = schedule.as_ref().map(|it| cron(&format!("{field}.schedule"), it));
    let lasts = duration.as_ref().map(|it| length(&format!("{field}.duration"), it));
    let hours = Hours {
        from: kept(found, from).flatten().unwrap_or(Hours::ALL.from),
        to: kept(found, to).unwrap_or(Hours::ALL.to),
    };
    let (cron, lasts) = (kept(found, cron), kept(found, lasts));
    let first = first_date.as_ref().map(|it| date(&format!("{field}.firstDate"), it));
    let last = last_date.as_ref().map(|it| date(&format!("{field}.lastDate"), it));
    let dates = Dates { first: kept(found, first), last: kept(found, last) };
    if dates.first.zip(dates.last).is_some_and(|(first, last)| first > last) {
        let message = "`lastDate` is before `firstDate`";
        found.push(Finding::error(field, message).hint("swap them"));
    }
    let days = days.as_ref().map_or(Days::ALL, |it| Days::of(it.iter().copied().map(weekday)));
    let when = match cron.zip(lasts) {
        Some((cron, duration)) => When::Schedule(Schedule { cron, duration }),
        None => When::Days { days, hours },
    };
    Window { when, dates, reason: reason.clone() }
}

fn kept<T>(found: &mut Vec<Finding>, read: Option<Result<T, Finding>>) -> Option<T> {
    read.and_then(|it| it.map_err(|finding| found.push(finding)).ok())
}

fn weekday(day: Day) -> Weekday {
    match day {
        Day::Mon => Weekday::Monday,
        Day::Tue => Weekday::Tuesday,
        Day::Wed => Weekday::Wednesday,
        Day::Thu => Weekday::Thursday,
        Day::Fri => Weekday::Friday,
        Day::Sat => Weekday::Saturday,
        Day::Sun => Weekday::Sunday,
    }
}

fn date(field: &str, text: &str) -> Result<Date, Finding> {
    text.parse().ok().filter(|_| text.len() == 10).ok_or_else(|| {
        let finding = Finding::error(field, format!("{} is not a date", quoted(text)));
        finding.hint("write it as 2026-12-20")
    })
}

/// Nothing is the midnight at the day's end, where that may be written.
fn time_of_day(field: &str, text: &str, midnight: bool) -> Result<Option<Time>, Finding> {
    if midnight && text == "24:00" {
        return Ok(None);
    }
    let read = text.split_once(':').and_then(|(hours, minutes)| {
        let two = |it: &str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit());
        let sound = two(hours) && two(minutes);
        Time::new(hours.parse().ok()?, minutes.parse().ok()?, 0, 0).ok().filter(|_| sound)
    });
    read.map(Some).ok_or_else(|| {
        let message = format!("{} is not a time of the day", quoted(text));
        Finding::error(field, message).hint("write hours and minutes in quotes: \"22:00\"")
    })
}

pub(crate) fn cron(field: &str, text: &str) -> Result<Cron, Finding> {
    text.parse().map_err(|error| match error {
        ParseCronError::NeverComes { .. } => {
            let message = format!("{} names a date that never comes", quoted(text));
            Finding::error(field, message).hint("mind how many days that month has")
        }
        ParseCronError::Unreadable { .. } => {
            let message = format!("{} is not a schedule", quoted(text));
            Finding::error(field, message).hint("write cron's five fields, such as `0 22 * * 1-5`")
        }
    })
}

/// Weeks, days, hours, minutes and seconds, in this order, each at most once.
fn length(field: &str, text: &str) -> Result<SignedDuration, Finding> {
    const UNITS: [(char, i64); 5] =
        [('w', 7 * 86_400), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
    let read = || {
        let (mut rest, mut units, mut seconds) = (text, UNITS.iter(), 0_i64);
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            let unit = tail.chars().next().filter(|_| digits <= 9)?;
            let (_, size) = units.find(|(it, _)| *it == unit)?;
            // Nine digits of weeks are far from the end of an i64.
            seconds = seconds.checked_add(number.parse::<i64>().ok()?.checked_mul(*size)?)?;
            rest = &tail[unit.len_utf8()..];
        }
        (!text.is_empty()).then(|| SignedDuration::from_secs(seconds))
    };
    read().ok_or_else(|| {
        let message = format!("{} is not a length of time", quoted(text));
        Finding::error(field, message).hint("write it like 90s, 30m, 1h30m or 7d")
    })
}
