//! How long does everything take?
//!
//! Ranges are those of an ordinary EKS cluster, on the quick side: a node in about a minute, a pod in a few
//! seconds, controllers within a second or two.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Names, READY_AFTER, STOPS_AFTER, TAKES, Whom, after, meant, told_duration};
use crate::dice::Dice;

#[derive(Debug)]
pub(super) struct Pace {
    /// So many times slower than usual.
    pub(super) times: u32,
    /// From running to joining, and from joining to being ready, in milliseconds.
    pub(super) joins: (i64, i64),
    pub(super) becomes_ready: (i64, i64),
    pub(super) stops_slowly: BTreeMap<Whom, SignedDuration>,
    pub(super) never_ready: Names,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            times: 1,
            joins: (20_000, 70_000),
            becomes_ready: (5_000, 20_000),
            stops_slowly: BTreeMap::new(),
            never_ready: Names::new(),
        }
    }
}

impl Pace {
    fn later(&self, now: Timestamp, dice: &mut Dice, least: i64, most: i64) -> Timestamp {
        let millis = SignedDuration::from_millis;
        let thrown = dice.span(millis(least), millis(most));
        let times = i32::try_from(self.times).unwrap_or(i32::MAX);
        after(now, thrown.checked_mul(times).unwrap_or(thrown))
    }

    pub(super) fn controllers(&self, now: Timestamp, dice: &mut Dice) -> Timestamp {
        self.later(now, dice, 50, 1_500)
    }

    pub(super) fn scheduler(&self, now: Timestamp, dice: &mut Dice) -> Timestamp {
        self.later(now, dice, 20, 800)
    }

    pub(super) fn boot(&self, now: Timestamp, dice: &mut Dice) -> Timestamp {
        self.later(now, dice, self.joins.0, self.joins.1)
    }

    /// From joining to being ready: the network plugin comes up.
    pub(super) fn readiness(&self, now: Timestamp, dice: &mut Dice) -> Timestamp {
        self.later(now, dice, self.becomes_ready.0, self.becomes_ready.1)
    }

    /// Faults are over; how long machines take is no fault.
    pub(super) fn healed(&self) -> Self {
        Self { joins: self.joins, becomes_ready: self.becomes_ready, ..Self::default() }
    }

    pub(super) fn set_up(&self, now: Timestamp, dice: &mut Dice) -> Timestamp {
        self.later(now, dice, 3_000, 15_000)
    }

    pub(super) fn flap(&self, now: Timestamp, dice: &mut Dice) -> Timestamp {
        self.later(now, dice, 30_000, 180_000)
    }

    pub(super) fn cloud_notices(&self, now: Timestamp, dice: &mut Dice) -> Timestamp {
        self.later(now, dice, 5_000, 15_000)
    }

    /// Image pulls included.
    pub(super) fn pod_runs(&self, now: Timestamp, dice: &mut Dice) -> Timestamp {
        self.later(now, dice, 1_000, 6_000)
    }

    /// `None`: never.
    pub(super) fn pod_ready(
        &self,
        pod: &Value,
        now: Timestamp,
        dice: &mut Dice,
    ) -> Option<Timestamp> {
        let said = crate::json::text(pod, &["metadata", "annotations", READY_AFTER]);
        if said == "never" || self.never_ready.iter().any(|it| meant(it, pod)) {
            return None;
        }
        Some(match told_duration(pod, READY_AFTER) {
            Some(told) => after(now, told),
            None => self.later(now, dice, 500, 8_000),
        })
    }

    pub(super) fn work(&self, pod: &Value, now: Timestamp, dice: &mut Dice) -> Timestamp {
        match told_duration(pod, TAKES) {
            Some(told) => after(now, told),
            None => self.later(now, dice, 60_000, 600_000),
        }
    }

    /// When a pod has stopped that was asked to; after its grace period it is ended.
    pub(super) fn pod_stops(
        &self,
        pod: &Value,
        grace: SignedDuration,
        now: Timestamp,
        dice: &mut Dice,
    ) -> Timestamp {
        let slow = self.stops_slowly.iter().find(|(whom, _)| meant(whom, pod)).map(|(_, it)| *it);
        let own = match slow.or_else(|| told_duration(pod, STOPS_AFTER)) {
            Some(told) => after(now, told),
            None => self.later(now, dice, 300, 5_000),
        };
        own.min(after(now, grace))
    }
}
