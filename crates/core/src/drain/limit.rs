//! How long may a drain go on without a pod leaving?
//!
//! `sum of the grace periods that are left, and at least five minutes, since the last pod left`
//!
//! Seed 3's sum is for the worst case: one pod at a time, each as slowly as it may. The clock starts
//! anew with each pod that leaves, else every budget with slow pods would time out; and when pods may leave
//! again after a break, for nothing could leave meanwhile. Where there is a
//! `terminationGracePeriod` that one rules, and there is no limit.

use jiff::{SignedDuration, Timestamp};

use super::{Drain, moving};

/// Short grace periods say nothing about how long a budget takes to allow the next pod.
pub const LIMIT_FLOOR: SignedDuration = SignedDuration::from_mins(5);

/// `None` where something else ends the drain, or where the sum is so long that it never ends.
pub fn limit_ends_at(drain: &Drain, now: Timestamp) -> Option<Timestamp> {
    if drain.deadline.is_some() {
        return None;
    }
    let since = drain.last_left_at.map_or(drain.since, |it| it.max(drain.since));
    let limit = drain.limit.unwrap_or_else(|| {
        let left = moving(&drain.pods, now).map(|it| match it.ends_at {
            Some(ends_at) => ends_at.duration_since(since),
            None => it.grace,
        });
        left.map(|it| it.max(SignedDuration::ZERO))
            .fold(SignedDuration::ZERO, SignedDuration::saturating_add)
            .max(LIMIT_FLOOR)
    });
    since.checked_add(limit).ok()
}
