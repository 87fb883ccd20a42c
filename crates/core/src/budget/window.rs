//! May replacements start now, and if not, when?
//!
//! `allow × forbid × zone × now → open until, or closed until`
//!
//! Open is what some window of `allow` covers, where there are any, and no window of `forbid`. Times are
//! times on a wall in a zone that the rules of summer time are known of: they come with the program, so
//! that a window means the same on every machine.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use super::schedule::{Activity, Dates, Schedule};
use crate::image::shorten;

/// How many windows that follow each other are walked through for an answer.
const STEPS_MAX: usize = 100;

/// Two weeks and a day on either side.
const DAYS_MAX: i32 = 16;

/// When replacements may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    pub zone: TimeZone,
    /// `None` allows at any time; an empty list at none.
    pub allow: Option<Vec<Window>>,
    pub forbid: Vec<Window>,
}

/// A time that comes again, or once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    pub when: When,
    pub dates: Dates,
    /// What it is for, for whoever waits for it.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    Days { days: Days, hours: Hours },
    Schedule(Schedule),
}

/// Days of the week; Monday comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days(pub [bool; 7]);

impl Days {
    pub const ALL: Self = Self([true; 7]);

    pub fn of(days: impl IntoIterator<Item = Weekday>) -> Self {
        let mut all = [false; 7];
        for day in days {
            all[usize::from(day.to_monday_zero_offset().unsigned_abs())] = true;
        }
        Self(all)
    }

    fn contains(self, day: Weekday) -> bool {
        self.0[usize::from(day.to_monday_zero_offset().unsigned_abs())]
    }
}

/// From when to when. An end that is not after the beginning is on the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    pub from: Time,
    /// `None` is midnight at the day's end.
    pub to: Option<Time>,
}

impl Hours {
    pub const ALL: Self = Self { from: Time::midnight(), to: None };
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of a time zone; write one of the IANA database, for example Europe/Berlin or UTC"
)]
pub struct ParseZoneError(pub String);

/// By its name in the IANA database that comes with the program.
pub fn zone(name: &str) -> Result<TimeZone, ParseZoneError> {
    TimeZoneDatabase::bundled().get(name).map_err(|_| ParseZoneError(shorten(name)))
}

/// Whether replacements may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// Until then; `None` if nothing known ends it.
    Open { until: Option<Timestamp> },
    /// From then on they may; `None` if never again, or not within the years that were looked at.
    Closed { opens_at: Option<Timestamp>, because: Option<String> },
}

impl Windows {
    pub fn at(&self, now: Timestamp) -> Opening {
        if let Some(closed) = self.closed(now) {
            return Opening::Closed { opens_at: self.next_open(now), because: closed.because };
        }
        Opening::Open { until: self.next_closed(now) }
    }

    fn closed(&self, at: Timestamp) -> Option<Closed> {
        for window in &self.forbid {
            if let Activity::Active { until } = window.at(&self.zone, Twice::Last, at) {
                return Some(Closed { until, because: window.reason.clone() });
            }
        }
        let allow = self.allow.as_ref()?;
        let mut next: Option<Timestamp> = None;
        let mut because = None;
        for window in allow {
            match window.at(&self.zone, Twice::First, at) {
                Activity::Active { .. } => return None,
                Activity::Inactive { next: None } => {}
                Activity::Inactive { next: Some(begin) } => {
                    if next.is_none_or(|it| begin < it) {
                        next = Some(begin);
                        because.clone_from(&window.reason);
                    }
                }
            }
        }
        Some(Closed { until: next, because })
    }

    fn next_open(&self, now: Timestamp) -> Option<Timestamp> {
        let mut at = now;
        for _ in 0..STEPS_MAX {
            match self.closed(at) {
                None => return Some(at),
                Some(Closed { until, .. }) => at = until.filter(|it| *it > at)?,
            }
        }
        None
    }

    fn next_closed(&self, now: Timestamp) -> Option<Timestamp> {
        let mut end = None;
        let earlier = |end: &mut Option<Timestamp>, at: Timestamp| {
            if end.is_none_or(|it| at < it) {
                *end = Some(at);
            }
        };
        for window in &self.forbid {
            if let Activity::Inactive { next: Some(begin) } =
                window.at(&self.zone, Twice::Last, now)
            {
                earlier(&mut end, begin);
            }
        }
        if self.allow.is_none() {
            return end;
        }
        let mut at = now;
        for _ in 0..STEPS_MAX {
            match self.covered_until(at) {
                Covered::Not => {
                    earlier(&mut end, at);
                    break;
                }
                Covered::Always => break,
                Covered::Until(until) if until <= at => break,
                Covered::Until(until) => at = until,
            }
        }
        end
    }

    /// How long those of `allow` that cover a moment last.
    fn covered_until(&self, at: Timestamp) -> Covered {
        let mut covered = Covered::Not;
        for window in self.allow.iter().flatten() {
            match (window.at(&self.zone, Twice::First, at), covered) {
                (Activity::Active { until: None }, _) => return Covered::Always,
                (Activity::Active { until: Some(until) }, Covered::Until(it)) if until <= it => {}
                (Activity::Active { until: Some(until) }, _) => covered = Covered::Until(until),
                (Activity::Inactive { .. }, _) => {}
            }
        }
        covered
    }
}

/// Which of two is meant where a time comes twice, as the night is an hour longer. In doubt nothing is
/// replaced: what is allowed ends with the first, what is forbidden with the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twice {
    First,
    Last,
}

struct Closed {
    until: Option<Timestamp>,
    because: Option<String>,
}

#[derive(Clone, Copy)]
enum Covered {
    Not,
    Until(Timestamp),
    Always,
}

impl Window {
    fn at(&self, zone: &TimeZone, twice: Twice, now: Timestamp) -> Activity {
        match &self.when {
            When::Schedule(schedule) => match twice {
                Twice::First => schedule.at(zone, self.dates, now),
                Twice::Last => schedule.at_both(zone, self.dates, now),
            },
            When::Days { days, hours } => self.on_days(*days, *hours, zone, twice, now),
        }
    }

    /// Weeks are all the same, so two of them tell everything.
    fn on_days(
        &self,
        days: Days,
        hours: Hours,
        zone: &TimeZone,
        twice: Twice,
        now: Timestamp,
    ) -> Activity {
        let today = zone.to_datetime(now).date();
        let mut until: Option<Timestamp> = None;
        let mut day = today.yesterday().unwrap_or(today).max(self.dates.first.unwrap_or(Date::MIN));
        for _ in 0..DAYS_MAX {
            if self.dates.last.is_some_and(|it| day > it) {
                return until.map_or(Activity::Inactive { next: None }, |it| Activity::Active {
                    until: Some(it),
                });
            }
            if days.contains(day.weekday())
                && let Some((begin, end)) = hours.on(day, zone, twice)
                && end > now
            {
                match until {
                    // Nights that touch are one: whole days, say, of Saturday and Sunday.
                    None if begin <= now => until = Some(end),
                    None => return Activity::Inactive { next: Some(begin) },
                    Some(it) if begin <= it => until = Some(end.max(it)),
                    Some(it) => return Activity::Active { until: Some(it) },
                }
            }
            match day.tomorrow() {
                Ok(next) => day = next,
                Err(_) => break,
            }
        }
        match (until, self.dates.last) {
            (None, _) => Activity::Inactive { next: None },
            (Some(_), None) => Activity::Active { until: None },
            // It never stops, before the last day.
            (Some(_), Some(last)) => {
                Activity::Active { until: hours.on(last, zone, twice).map(|(_, end)| end) }
            }
        }
    }
}

impl Hours {
    fn on(self, day: Date, zone: &TimeZone, twice: Twice) -> Option<(Timestamp, Timestamp)> {
        let instant = |it: DateTime| zone.to_ambiguous_timestamp(it).compatible().ok();
        let end_of = |it: DateTime| {
            let at = zone.to_ambiguous_timestamp(it);
            if twice == Twice::Last && at.is_ambiguous() { at.later().ok() } else { instant(it) }
        };
        let next = || day.checked_add(1.day()).ok();
        let end = match self.to {
            None => next()?.to_datetime(Time::midnight()),
            Some(to) if to <= self.from => next()?.to_datetime(to),
            Some(to) => day.to_datetime(to),
        };
        let (begin, end) = (instant(day.to_datetime(self.from))?, end_of(end)?);
        // Summer time may swallow a short window whole; it comes for a minute then, not never.
        Some((begin, end.max(begin.saturating_add(SignedDuration::from_mins(1)).ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Mon,Tue 22:00-05:30 from=2026-12-20 to=2026-12-27`, or `cron 0 22 * * *|8h`.
    fn window(text: &str) -> Window {
        if let Some(text) = text.strip_prefix("cron ") {
            let (cron, duration) = text.split_once('|').unwrap();
            let schedule =
                Schedule { cron: cron.parse().unwrap(), duration: duration.parse().unwrap() };
            let when = When::Schedule(schedule);
            return Window { when, dates: Dates::default(), reason: None };
        }
        let (mut days, mut hours, mut dates) = (Days::ALL, Hours::ALL, Dates::default());
        for word in text.split_whitespace() {
            if let Some(date) = word.strip_prefix("from=") {
                dates.first = Some(date.parse().unwrap());
            } else if let Some(date) = word.strip_prefix("to=") {
                dates.last = Some(date.parse().unwrap());
            } else if let Some((from, to)) = word.split_once('-') {
                let to = (to != "24:00").then(|| to.parse().unwrap());
                hours = Hours { from: from.parse().unwrap(), to };
            } else {
                days = Days::of(word.split(',').map(|it| match it {
                    "Mon" => Weekday::Monday,
                    "Tue" => Weekday::Tuesday,
                    "Wed" => Weekday::Wednesday,
                    "Thu" => Weekday::Thursday,
                    "Fri" => Weekday::Friday,
                    "Sat" => Weekday::Saturday,
                    _ => Weekday::Sunday,
                }));
            }
        }
        Window { when: When::Days { days, hours }, dates, reason: Some(text.to_owned()) }
    }

    fn said(in_zone: &str, allow: Option<&[&str]>, forbid: &[&str], now: &str) -> String {
        let windows = Windows {
            zone: zone(in_zone).unwrap(),
            allow: allow.map(|it| it.iter().map(|it| window(it)).collect()),
            forbid: forbid.iter().map(|it| window(it)).collect(),
        };
        match windows.at(now.parse().unwrap()) {
            Opening::Open { until: None } => "open".to_owned(),
            Opening::Open { until: Some(until) } => format!("open until {until}"),
            Opening::Closed { opens_at: None, .. } => "closed for ever".to_owned(),
            Opening::Closed { opens_at: Some(at), .. } => format!("opens {at}"),
        }
    }

    #[test]
    fn windows_allow_and_forbid_by_the_wall_of_their_zone() {
        let night: Option<&[&str]> = Some(&["Mon,Tue,Wed,Thu 22:00-05:30"]);
        let weekend: Option<&[&str]> = Some(&["Sat,Sun"]);
        for (in_zone, allow, forbid, now, expected) in [
            ("UTC", None, &[][..], "2026-08-03T12:00:00Z", "open"),
            ("UTC", Some(&[][..]), &[], "2026-08-03T12:00:00Z", "closed for ever"),
            // 2026-08-03 is a Monday.
            ("UTC", night, &[], "2026-08-03T21:59:59Z", "opens 2026-08-03T22:00:00Z"),
            ("UTC", night, &[], "2026-08-03T22:00:00Z", "open until 2026-08-04T05:30:00Z"),
            ("UTC", night, &[], "2026-08-04T05:30:00Z", "opens 2026-08-04T22:00:00Z"),
            // Friday's small hours are Thursday's night, and Monday's are nobody's.
            ("UTC", night, &[], "2026-08-07T04:00:00Z", "open until 2026-08-07T05:30:00Z"),
            ("UTC", night, &[], "2026-08-03T04:00:00Z", "opens 2026-08-03T22:00:00Z"),
            ("Europe/Berlin", night, &[], "2026-08-03T19:59:59Z", "opens 2026-08-03T20:00:00Z"),
            ("Europe/Berlin", night, &[], "2026-12-07T20:30:00Z", "opens 2026-12-07T21:00:00Z"),
            ("America/New_York", night, &[], "2026-08-04T01:00:00Z", "opens 2026-08-04T02:00:00Z"),
            ("UTC", weekend, &[], "2026-08-08T10:00:00Z", "open until 2026-08-10T00:00:00Z"),
            ("UTC", weekend, &[], "2026-08-10T00:00:00Z", "opens 2026-08-15T00:00:00Z"),
            // A freeze, and what follows it.
            (
                "UTC",
                None,
                &["from=2026-12-20 to=2026-12-27"],
                "2026-12-19T23:00:00Z",
                "open until 2026-12-20T00:00:00Z",
            ),
            (
                "UTC",
                None,
                &["from=2026-12-20 to=2026-12-27"],
                "2026-12-22T00:00:00Z",
                "opens 2026-12-28T00:00:00Z",
            ),
            (
                "UTC",
                weekend,
                &["from=2026-12-20 to=2026-12-27"],
                "2026-12-22T00:00:00Z",
                "opens 2027-01-02T00:00:00Z",
            ),
            ("UTC", None, &["from=2026-12-20 to=2026-12-27"], "2027-01-01T00:00:00Z", "open"),
            // The night in Berlin that skips an hour is an hour shorter.
            (
                "Europe/Berlin",
                Some(&["Sat 23:00-05:00"][..]),
                &[],
                "2026-03-28T22:30:00Z",
                "open until 2026-03-29T03:00:00Z",
            ),
            // The one that has an hour twice: 2026-10-25, until 01:00Z in summer time.
            (
                "Europe/Berlin",
                None,
                &["Sat 22:00-02:30"],
                "2026-10-24T23:00:00Z",
                "opens 2026-10-25T01:30:00Z",
            ),
            (
                "Europe/Berlin",
                Some(&["Sat 22:00-02:30"][..]),
                &[],
                "2026-10-24T23:00:00Z",
                "open until 2026-10-25T00:30:00Z",
            ),
            // A freeze that begins in that hour begins twice.
            (
                "Europe/Berlin",
                None,
                &["cron 30 2 * * *|40m"],
                "2026-10-25T00:40:00Z",
                "opens 2026-10-25T01:10:00Z",
            ),
            (
                "Europe/Berlin",
                None,
                &["cron 30 2 * * *|40m"],
                "2026-10-25T01:15:00Z",
                "open until 2026-10-25T01:30:00Z",
            ),
            (
                "Europe/Berlin",
                None,
                &["cron 30 2 * * *|40m"],
                "2026-10-25T01:40:00Z",
                "opens 2026-10-25T02:10:00Z",
            ),
            (
                "Europe/Berlin",
                None,
                &["cron 30 2 * * *|90m"],
                "2026-10-25T00:40:00Z",
                "opens 2026-10-25T03:00:00Z",
            ),
            (
                "Europe/Berlin",
                Some(&["02:10-02:50"][..]),
                &[],
                "2026-03-29T01:10:30Z",
                "open until 2026-03-29T01:50:00Z",
            ),
            (
                "UTC",
                Some(&["cron 0 22 * * *|8h", "06:00-07:00"][..]),
                &[],
                "2026-08-03T23:00:00Z",
                "open until 2026-08-04T07:00:00Z",
            ),
            (
                "UTC",
                Some(&["Mon from=2026-01-01 to=2026-02-01"][..]),
                &[],
                "2026-08-03T23:00:00Z",
                "closed for ever",
            ),
            (
                "UTC",
                Some(&["from=2026-08-01 to=2026-12-31"][..]),
                &[],
                "2026-08-03T23:00:00Z",
                "open until 2027-01-01T00:00:00Z",
            ),
            (
                "UTC",
                Some(&["Mon from=2031-01-01"][..]),
                &[],
                "2026-08-03T23:00:00Z",
                "opens 2031-01-06T00:00:00Z",
            ),
            (
                "UTC",
                Some(&["cron 0 22 * * *|8h", "Sun from=2027-01-01"][..]),
                &["from=2026-08-01 to=2026-08-20"],
                "2026-08-03T23:00:00Z",
                "opens 2026-08-21T00:00:00Z",
            ),
            ("UTC", Some(&["00:00-24:00"][..]), &[], "2026-08-03T23:00:00Z", "open"),
        ] {
            assert_eq!(said(in_zone, allow, forbid, now), expected, "{allow:?} {forbid:?} {now}");
        }
    }

    #[test]
    fn the_ends_of_time_are_no_panic() {
        let windows = Windows {
            zone: zone("Europe/Berlin").unwrap(),
            allow: Some(vec![window("Mon 22:00-05:30"), window("cron @daily|1h")]),
            forbid: vec![window("from=9999-12-30")],
        };
        for now in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
            let _ = windows.at(now);
        }
        assert!(zone("Mars/Olympus").is_err());
    }
}
