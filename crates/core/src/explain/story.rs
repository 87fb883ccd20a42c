//! How is it written down?
//!
//! One line per fact, the label in front; columns that `awk` can cut; the last line says what happens
//! next.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::drain::PodId;

/// What there is to say about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    /// `node`, `pool`, `pod` or `fleet`.
    pub about: &'static str,
    pub name: String,
    pub facts: Vec<Fact>,
    /// What holds it, the first one first.
    pub causes: Vec<Cause>,
    pub next: String,
}

/// An empty label goes on with the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    pub label: &'static str,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// A word that scripts can rely on.
    pub reason: &'static str,
    /// Where to go.
    pub named: Named,
    pub text: String,
    pub ends_at: Option<Timestamp>,
    /// Of a budget: who has its places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<User>,
}

/// Who uses a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    pub node: String,
    /// `Replaced`, or why it is not available: `NotReady` and so on.
    pub reason: &'static str,
    /// When its place was granted; of others nobody knows.
    pub since: Option<Timestamp>,
    /// What holds its drain, if something does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<Cause>,
}

/// Kind, namespace and name of an object; empty where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
}

impl Named {
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    pub(super) fn cluster(kind: &'static str, name: &str) -> Self {
        Self { kind, namespace: String::new(), name: name.to_owned() }
    }

    pub(super) fn in_namespace(kind: &'static str, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(super) fn of(kind: &'static str, pod: &PodId) -> Self {
        Self::in_namespace(kind, &pod.namespace, &pod.name)
    }
}

impl Story {
    pub(super) fn about(about: &'static str, name: &str) -> Self {
        let name = name.to_owned();
        Self { about, name, facts: Vec::new(), causes: Vec::new(), next: String::new() }
    }

    pub(super) fn fact(&mut self, label: &'static str, text: impl Into<String>) {
        self.facts.push(Fact { label, text: text.into() });
    }

    pub(super) fn then(&mut self, next: &str) {
        next.clone_into(&mut self.next);
    }
}

impl fmt::Display for Story {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Fact { label, text } in &self.facts {
            writeln!(out, "{label:<8} {text}")?;
        }
        writeln!(out, "{:<8} {}", "next", self.next)
    }
}

/// The two largest units: `41d`, `2h5m`, `30s`.
pub fn relative(length: SignedDuration) -> String {
    let seconds = length.as_secs().unsigned_abs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, 0) => format!("{hours}h"),
        (0, hours, minutes) => format!("{hours}h{minutes}m"),
        (1..7, 1.., _) => format!("{days}d{hours}h"),
        (days, _, _) => format!("{days}d"),
    }
}

/// `at 2026-08-06T00:00:00Z (in 5d)`.
pub(super) fn when(at: Timestamp, now: Timestamp) -> String {
    let (at, length) = (whole(at), at.duration_since(now));
    if length.is_negative() {
        format!("at {at} ({} ago)", relative(length))
    } else {
        format!("at {at} (in {})", relative(length))
    }
}

/// `2026-08-06T00:00:00Z (in 5d)`: absolute for tickets, relative for people.
pub(super) fn both(at: Timestamp, now: Timestamp) -> String {
    let (at, length) = (whole(at), at.duration_since(now));
    if length.is_positive() {
        format!("{at} (in {})", relative(length))
    } else {
        format!("{at} ({} ago)", relative(length))
    }
}

/// `2026-08-06T00:00:00Z (5d)`.
pub(super) fn ago(since: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", whole(since), relative(now.duration_since(since)))
}

/// Nobody reads parts of a second.
fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
