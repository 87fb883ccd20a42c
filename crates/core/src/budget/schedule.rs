//! When does it begin, and when is it over?
//!
//! `cron × duration × zone × now → active until, or next at`
//!
//! A schedule is active while one of its beginnings lies in `(now − duration, now]`: what begins at nine
//! and lasts an hour is over at ten. Cron's times are times on a wall: a beginning in the hour that
//! summer time skips comes an hour later; one in the hour that it repeats comes once, and twice for what forbids.

use std::fmt;
use std::str::FromStr;

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousTimestamp, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use crate::image::shorten;

/// What summer time may move a beginning by, and more. Looked back over in zones only.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(3);

/// Beginnings that run into each other are followed so far; after that it counts as never over.
const CHAIN_MAX: usize = 512;

/// Past this year there is no calendar left to search in.
const YEAR_MAX: i16 = 9900;

/// A cron expression of five fields, or one of Karpenter's macros.
#[derive(Debug, Clone)]
pub struct Cron {
    text: String,
    table: Crontab,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseCronError {
    #[error(
        "`{text}` is not a schedule: {because}; write the five fields of cron, for example `0 22 * * 1-5`"
    )]
    Unreadable { text: String, because: String },
    #[error("`{text}` names a date that never comes")]
    NeverComes { text: String },
}

impl Cron {
    /// The first beginning after this, on the same wall.
    fn next_after(&self, wall: DateTime) -> Option<DateTime> {
        if wall.year() > YEAR_MAX {
            return None;
        }
        // Cron knows walls only: ours is taken for that of UTC, where each hour comes once.
        let instant = wall.to_zoned(TimeZone::UTC).ok()?.timestamp();
        self.table.find_next(MakeTimestamp(instant)).ok().map(|it| it.datetime())
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Cron {}

impl fmt::Display for Cron {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.text)
    }
}

impl FromStr for Cron {
    type Err = ParseCronError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |because: &str| ParseCronError::Unreadable {
            text: shorten(text),
            because: because.to_owned(),
        };
        let fields = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            written => written,
        };
        if fields.starts_with('@') {
            return Err(refuse("it is none of Karpenter's macros"));
        }
        // A sixth field would be a time zone, looked up where we must not look.
        let parts: Vec<&str> = fields.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts[..] else {
            return Err(refuse("it has not five fields"));
        };
        let whole = [
            star(minute, "*"),
            star(hour, "*"),
            star(day, "1-31"),
            star(month, "*"),
            star(weekday, "0-6"),
        ]
        .join(" ");
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let table = cronexpr::parse_crontab_with(&whole, options)
            .map_err(|_| refuse("cron does not understand it"))?;
        let cron = Self { text: text.trim().to_owned(), table };
        let some_leap_year = DateTime::constant(2028, 1, 1, 0, 0, 0, 0);
        if cron.next_after(some_leap_year).is_none() {
            return Err(ParseCronError::NeverComes { text: shorten(text) });
        }
        Ok(cron)
    }
}

/// What Go's cron, which Karpenter reads with, means by a star: `?` is one too, and `*/2` is none when it
/// comes to whether day of the month and day of the week must both match, or either.
fn star(field: &str, whole: &str) -> String {
    let field = if field == "?" { "*" } else { field };
    match field.strip_prefix("*/") {
        Some(step) if step != "1" && whole != "*" => format!("{whole}/{step}"),
        Some(_) | None => field.to_owned(),
    }
}

/// When it begins, and how long it lasts each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub cron: Cron,
    pub duration: SignedDuration,
}

/// The days on which something may begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dates {
    /// None before this.
    pub first: Option<Date>,
    /// None after this.
    pub last: Option<Date>,
}

/// What a schedule says of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Until then; `None` if each time runs into the next.
    Active { until: Option<Timestamp> },
    /// Again then; `None` if never.
    Inactive { next: Option<Timestamp> },
}

impl Schedule {
    /// At this moment, where the wall is in this zone.
    pub fn at(&self, zone: &TimeZone, dates: Dates, now: Timestamp) -> Activity {
        self.read_as(zone, dates, now, AmbiguousTimestamp::compatible)
    }

    /// The same for what must not be missed: a beginning that comes twice begins twice.
    pub fn at_both(&self, zone: &TimeZone, dates: Dates, now: Timestamp) -> Activity {
        let last = self.read_as(zone, dates, now, AmbiguousTimestamp::later);
        match (self.at(zone, dates, now), last) {
            (Activity::Active { until: one }, Activity::Active { until: other }) => {
                Activity::Active { until: one.zip(other).map(|(one, other)| one.max(other)) }
            }
            (active @ Activity::Active { .. }, Activity::Inactive { .. })
            | (Activity::Inactive { .. }, active @ Activity::Active { .. }) => active,
            (Activity::Inactive { next: one }, Activity::Inactive { next: other }) => {
                Activity::Inactive { next: [one, other].into_iter().flatten().min() }
            }
        }
    }

    fn read_as(
        &self,
        zone: &TimeZone,
        dates: Dates,
        now: Timestamp,
        meant: fn(AmbiguousTimestamp) -> Result<Timestamp, jiff::Error>,
    ) -> Activity {
        if self.duration <= SignedDuration::ZERO {
            return Activity::Inactive { next: None };
        }
        let since = now.saturating_sub(self.duration).unwrap_or(Timestamp::MIN);
        let mut beginnings = self.beginnings(zone, since, dates, meant);
        let first = beginnings.next();
        let Some(mut last) = first.filter(|it| *it <= now) else {
            return Activity::Inactive { next: first };
        };
        let end = |begin: Timestamp| begin.saturating_add(self.duration).unwrap_or(Timestamp::MAX);
        for _ in 0..CHAIN_MAX {
            match beginnings.next() {
                Some(begin) if begin <= end(last) => last = begin,
                Some(_) | None => return Activity::Active { until: Some(end(last)) },
            }
        }
        Activity::Active { until: None }
    }

    fn beginnings<'a>(
        &'a self,
        zone: &'a TimeZone,
        after: Timestamp,
        dates: Dates,
        meant: fn(AmbiguousTimestamp) -> Result<Timestamp, jiff::Error>,
    ) -> impl Iterator<Item = Timestamp> + 'a {
        let utc = *zone == TimeZone::UTC;
        let back = if utc { SignedDuration::ZERO } else { LOOK_BACK };
        let from = after.saturating_sub(back).unwrap_or(Timestamp::MIN);
        let mut wall = zone.to_datetime(from);
        if let Some(first) = dates.first {
            // Whatever begins at midnight is looked for after the minute before.
            let eve = first.to_datetime(Time::midnight()).saturating_sub(1.minute());
            wall = wall.max(eve);
        }
        std::iter::from_fn(move || {
            loop {
                wall = self.cron.next_after(wall)?;
                if dates.last.is_some_and(|it| wall.date() > it) {
                    return None;
                }
                let begin = meant(zone.to_ambiguous_timestamp(wall)).ok()?;
                if begin > after {
                    return Some(begin);
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZoneDatabase;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn said(cron: &str, duration: &str, zone: &str, now: &str) -> String {
        let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
        let duration = duration.parse().unwrap();
        match (Schedule { cron: cron.parse().unwrap(), duration }).at(
            &zone,
            Dates::default(),
            at(now),
        ) {
            Activity::Active { until: None } => "active for ever".to_owned(),
            Activity::Active { until: Some(until) } => format!("active until {until}"),
            Activity::Inactive { next: None } => "never".to_owned(),
            Activity::Inactive { next: Some(next) } => format!("next at {next}"),
        }
    }

    #[test]
    fn a_schedule_is_active_from_its_beginning_and_no_longer_than_it_lasts() {
        for (cron, duration, zone, now, expected) in [
            ("0 9 * * *", "8h", "UTC", "2026-08-03T08:59:59Z", "next at 2026-08-03T09:00:00Z"),
            ("0 9 * * *", "8h", "UTC", "2026-08-03T09:00:00Z", "active until 2026-08-03T17:00:00Z"),
            ("0 9 * * *", "8h", "UTC", "2026-08-03T16:59:59Z", "active until 2026-08-03T17:00:00Z"),
            ("0 9 * * *", "8h", "UTC", "2026-08-03T17:00:00Z", "next at 2026-08-04T09:00:00Z"),
            ("@daily", "24h", "UTC", "2026-08-03T17:00:00Z", "active for ever"),
            ("@weekly", "1h", "UTC", "2026-08-03T17:00:00Z", "next at 2026-08-09T00:00:00Z"),
            ("@hourly", "10m", "UTC", "2026-08-03T17:10:00Z", "next at 2026-08-03T18:00:00Z"),
            ("@yearly", "1h", "UTC", "2026-08-03T17:10:00Z", "next at 2027-01-01T00:00:00Z"),
            ("@monthly", "1h", "UTC", "2026-08-03T17:10:00Z", "next at 2026-09-01T00:00:00Z"),
            // Overlapping beginnings are one activity: Monday's runs into Tuesday's.
            (
                "0 0 * * 1,2",
                "30h",
                "UTC",
                "2026-08-03T01:00:00Z",
                "active until 2026-08-05T06:00:00Z",
            ),
            // `?` is a star, and a step is not: either the even days or Mondays.
            ("0 0 ? * MON", "1h", "UTC", "2026-08-04T17:00:00Z", "next at 2026-08-10T00:00:00Z"),
            ("0 0 */2 * MON", "1h", "UTC", "2026-08-04T17:00:00Z", "next at 2026-08-05T00:00:00Z"),
            ("0 0 29 2 *", "1h", "UTC", "2026-08-04T17:00:00Z", "next at 2028-02-29T00:00:00Z"),
            // A wall in Berlin: summer, the night that skips an hour, the night that repeats one.
            (
                "0 22 * * *",
                "1h",
                "Europe/Berlin",
                "2026-08-03T19:59:00Z",
                "next at 2026-08-03T20:00:00Z",
            ),
            (
                "30 2 * * *",
                "1h",
                "Europe/Berlin",
                "2026-03-29T00:59:00Z",
                "next at 2026-03-29T01:30:00Z",
            ),
            (
                "30 2 * * *",
                "20m",
                "Europe/Berlin",
                "2026-10-25T00:31:00Z",
                "active until 2026-10-25T00:50:00Z",
            ),
            (
                "30 2 * * *",
                "20m",
                "Europe/Berlin",
                "2026-10-25T01:31:00Z",
                "next at 2026-10-26T01:30:00Z",
            ),
            ("0 9 * * *", "0s", "UTC", "2026-08-03T09:00:00Z", "never"),
        ] {
            assert_eq!(said(cron, duration, zone, now), expected, "{cron} for {duration} at {now}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in [
            "",
            "@every 5m",
            "@reboot",
            "@fortnightly",
            "* * * *",
            "0 0 * * * UTC",
            "61 * * * *",
            "0 24 * * *",
            "0 0 30 2 *",
            "a b c d e",
            "0 0 * * *\u{0}",
            "H * * * *",
            "*/0 * * * *",
        ] {
            assert!(text.parse::<Cron>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_end_of_time_is_no_panic() {
        let schedule =
            Schedule { cron: "0 0 29 2 *".parse().unwrap(), duration: SignedDuration::MAX };
        for now in [Timestamp::MIN, Timestamp::MAX, at("2026-08-03T00:00:00Z")] {
            let _ = schedule.at(&TimeZone::UTC, Dates::default(), now);
        }
        let short = Schedule { duration: SignedDuration::from_hours(1), ..schedule };
        assert_eq!(
            short.at(&TimeZone::UTC, Dates::default(), Timestamp::MAX),
            Activity::Inactive { next: None }
        );
    }
}
