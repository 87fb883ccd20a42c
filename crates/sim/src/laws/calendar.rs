//! Is it time?
//!
//! By looking at every minute that a schedule could have begun in: slow, plain, and asked for only when a
//! grant is written.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};
use serde_json::Value;

use super::read::{at, duration, items, text};

/// Whether a schedule has begun and is not over.
pub(super) fn active(
    schedule: &str,
    lasts: SignedDuration,
    zone: &TimeZone,
    now: Timestamp,
) -> bool {
    began(schedule, lasts, zone, now).next().is_some()
}

/// When each turn of a schedule began that is not over.
fn began<'a>(
    schedule: &'a str,
    lasts: SignedDuration,
    zone: &'a TimeZone,
    now: Timestamp,
) -> impl Iterator<Item = Zoned> + 'a {
    let second = now.as_second();
    let first = second - second.rem_euclid(60);
    let minutes = lasts.as_secs() / 60 + 1;
    (0..minutes)
        .filter_map(move |back| Timestamp::from_second(first - back * 60).ok())
        .filter(move |it| now.duration_since(*it) < lasts)
        .map(move |it| it.to_zoned(zone.clone()))
        .filter(move |it| {
            begins(schedule, it.datetime())
                || skipped(it).is_some_and(|earlier| begins(schedule, earlier))
        })
}

/// The time on the wall that summer time skipped and that is made up for in this minute.
fn skipped(minute: &Zoned) -> Option<DateTime> {
    let zone = minute.time_zone();
    // No zone of today skips anything else.
    [30, 60].into_iter().find_map(|by: i64| {
        let earlier = minute.datetime().checked_sub(by.minutes()).ok()?;
        let AmbiguousOffset::Gap { before, after } = zone.to_ambiguous_timestamp(earlier).offset()
        else {
            return None;
        };
        (i64::from(after.seconds() - before.seconds()) == by * 60).then_some(earlier)
    })
}

/// Whether a cron expression of five fields, or one of its words, begins in this minute.
fn begins(schedule: &str, minute: DateTime) -> bool {
    let expression = match schedule {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        other => other,
    };
    let fields: Vec<&str> = expression.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = fields[..] else { return false };
    let weekday = i64::from(minute.weekday().to_sunday_zero_offset());
    let by_day = holds(days, i64::from(minute.day()), (1, 31));
    let by_weekday =
        holds(weekdays, weekday, (0, 7)) || (weekday == 0 && holds(weekdays, 7, (0, 7)));
    // Either will do where both are said.
    let day = if days.starts_with('*') || weekdays.starts_with('*') {
        by_day && by_weekday
    } else {
        by_day || by_weekday
    };
    holds(minutes, i64::from(minute.minute()), (0, 59))
        && holds(hours, i64::from(minute.hour()), (0, 23))
        && holds(months, i64::from(minute.month()), (1, 12))
        && day
}

fn holds(field: &str, value: i64, (least, most): (i64, i64)) -> bool {
    field.split(',').any(|part| {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let Some(step) = step.parse::<i64>().ok().filter(|it| *it > 0) else { return false };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (Some(least), Some(most)),
            Some((from, to)) => (word(from), word(to)),
            None if part.contains('/') => (word(range), Some(most)),
            None => (word(range), word(range)),
        };
        let (Some(from), Some(to)) = (from, to) else { return false };
        (from..=to).contains(&value) && (value - from) % step == 0
    })
}

fn word(written: &str) -> Option<i64> {
    const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let lower = written.to_ascii_lowercase();
    let among = |words: &[&str], first: i64| {
        words
            .iter()
            .position(|it| *it == lower)
            .and_then(|it| i64::try_from(it).ok())
            .map(|it| it + first)
    };
    written.parse().ok().or_else(|| among(&WEEKDAYS, 0)).or_else(|| among(&MONTHS, 1))
}

/// Whether a policy's windows let a replacement start.
pub(super) fn open(windows: &Value, now: Timestamp) -> bool {
    let zone = text(windows, &["timeZone"]).unwrap_or("UTC");
    // What cannot be read lets nothing start.
    let Ok(zone) = TimeZone::get(zone) else { return false };
    let allowed = at(windows, &["allow"]).is_none()
        || items(windows, &["allow"]).any(|it| covers(it, &zone, now));
    allowed && !items(windows, &["forbid"]).any(|it| covers(it, &zone, now))
}

fn covers(window: &Value, zone: &TimeZone, now: Timestamp) -> bool {
    let date = |key: &str| text(window, &[key]).and_then(|it| it.parse::<Date>().ok());
    let (first, last) = (date("firstDate"), date("lastDate"));
    let in_dates =
        |it: Date| first.is_none_or(|first| it >= first) && last.is_none_or(|last| it <= last);
    if let Some(schedule) = text(window, &["schedule"]) {
        let lasts = text(window, &["duration"]).and_then(duration).unwrap_or(SignedDuration::ZERO);
        return began(schedule, lasts, zone, now).any(|it| in_dates(it.date()));
    }
    let today = now.to_zoned(zone.clone()).date();
    let yesterday = today.saturating_sub(1.day());
    [today, yesterday].into_iter().filter(|it| in_dates(*it)).any(|day| {
        let short = format!("{:?}", day.weekday()).chars().take(3).collect::<String>();
        let on_day = at(window, &["days"]).is_none()
            || items(window, &["days"]).any(|it| it.as_str() == Some(&short));
        on_day && span(window, day, zone).is_some_and(|(from, to)| from <= now && now < to)
    })
}

/// From when to when a window lasts that begins on this day.
fn span(window: &Value, day: Date, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
    let next = day.saturating_add(1.day());
    let clock = |key: &str| {
        let written = text(window, &[key])?;
        let (hour, minute) = written.split_once(':')?;
        Some((hour.parse::<i8>().ok()?, minute.parse::<i8>().ok()?))
    };
    let instant = |day: Date, (hour, minute): (i8, i8)| {
        let time = Time::new(hour, minute, 0, 0).ok()?;
        day.to_datetime(time).to_zoned(zone.clone()).ok().map(|it| it.timestamp())
    };
    let (from, to) = (clock("from").unwrap_or((0, 0)), clock("to").unwrap_or((24, 0)));
    let end = match to {
        (24, _) => instant(next, (0, 0))?,
        to if to <= from => instant(next, to)?,
        to => instant(day, to)?,
    };
    Some((instant(day, from)?, end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schedule_is_active_from_each_beginning_for_its_duration() {
        // (schedule, lasts, now, active)
        for (schedule, lasts, now, expected) in [
            ("0 9 * * mon-fri", "8h", "2026-11-16T09:00:00Z", true),
            ("0 9 * * mon-fri", "8h", "2026-11-16T16:59:59Z", true),
            ("0 9 * * mon-fri", "8h", "2026-11-16T17:00:00Z", false),
            ("0 9 * * mon-fri", "8h", "2026-11-15T10:00:00Z", false),
            ("@daily", "10m", "2026-11-16T00:09:00Z", true),
            ("*/15 * * * *", "5m", "2026-11-16T00:21:00Z", false),
            ("0 0 13 * 5", "1h", "2026-11-13T00:30:00Z", true),
            ("0 0 1 * 0", "1h", "2026-11-15T00:30:00Z", true),
        ] {
            let now = now.parse().unwrap();
            let lasts = duration(lasts).unwrap();
            assert_eq!(
                active(schedule, lasts, &TimeZone::UTC, now),
                expected,
                "{schedule} at {now}"
            );
        }
    }

    #[test]
    fn a_window_may_end_on_the_next_day() {
        let night = json!({"timeZone": "Europe/Berlin", "allow": [{"days": ["Mon"], "from": "22:00", "to": "05:30"}]});
        for (now, expected) in [
            ("2026-11-16T20:59:00Z", false),
            ("2026-11-16T21:00:00Z", true),
            ("2026-11-17T04:29:00Z", true),
            ("2026-11-17T04:30:00Z", false),
            ("2026-11-17T22:00:00Z", false),
        ] {
            assert_eq!(open(&night, now.parse().unwrap()), expected, "{now}");
        }
    }

    #[test]
    fn a_freeze_wins() {
        let freeze = json!({"forbid": [{"firstDate": "2026-12-20", "lastDate": "2026-12-31"}]});
        assert!(open(&freeze, "2026-12-19T23:59:00Z".parse().unwrap()));
        assert!(!open(&freeze, "2026-12-31T23:59:00Z".parse().unwrap()));
    }
}
