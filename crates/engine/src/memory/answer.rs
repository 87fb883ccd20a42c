//! What was answered last, and when is it asked again?
//!
//! A failure takes nothing away: the last good answer stands, with its time. It is asked again sooner, a
//! little later each time.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use nodemolt_core::explain::Unanswered;

use super::after;
use crate::port::CloudError;

/// After a first failure; it doubles, up to what is usual between two questions.
const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(10);

/// Doubling from the first to the longest wait.
pub(crate) fn wait_after(
    failures: u32,
    first: SignedDuration,
    longest: SignedDuration,
) -> SignedDuration {
    first.checked_mul(1 << failures.min(16)).unwrap_or(longest).min(longest)
}

#[derive(Debug, Clone)]
pub(crate) struct Answer<T> {
    last: Option<(Arc<T>, Timestamp)>,
    /// The one before: what is missing from two lists is missing.
    before: Option<(Arc<T>, Timestamp)>,
    tried_at: Option<Timestamp>,
    failed: Option<(String, u32)>,
    /// The first failure since it was last answered.
    failing_since: Option<Timestamp>,
    not_before: Option<Timestamp>,
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        Self {
            last: None,
            before: None,
            tried_at: None,
            failed: None,
            failing_since: None,
            not_before: None,
        }
    }
}

impl<T> Answer<T> {
    pub(crate) fn hear(&mut self, answer: Result<T, CloudError>, now: Timestamp) {
        self.tried_at = Some(now);
        match answer {
            Ok(value) => {
                self.before = self.last.replace((Arc::new(value), now));
                self.failed = None;
                self.failing_since = None;
                self.not_before = None;
            }
            Err(error) => {
                let told = match &error {
                    CloudError::Throttled { retry_after } => *retry_after,
                    CloudError::Unreachable(_) | CloudError::Denied(_) | CloudError::Refused(_) => {
                        None
                    }
                };
                self.not_before = told.map(|it| after(now, it));
                self.fail(error.to_string(), now);
            }
        }
    }

    /// It was asked, and no answer came.
    pub(crate) fn missed(&mut self, now: Timestamp) {
        self.tried_at = Some(now);
        self.fail("no answer came in time".to_owned(), now);
    }

    fn fail(&mut self, why: String, now: Timestamp) {
        self.failing_since.get_or_insert(now);
        let times = self.failed.as_ref().map_or(0, |(_, times)| *times);
        self.failed = Some((why, times.saturating_add(1)));
    }

    pub(crate) fn last(&self) -> Option<(&Arc<T>, Timestamp)> {
        self.last.as_ref().map(|(value, at)| (value, *at))
    }

    pub(crate) fn value(&self) -> Option<&Arc<T>> {
        self.last.as_ref().map(|(value, _)| value)
    }

    /// The good answer before the last.
    pub(crate) fn before(&self) -> Option<(&Arc<T>, Timestamp)> {
        self.before.as_ref().map(|(value, at)| (value, *at))
    }

    /// The same, if it was so much earlier.
    pub(crate) fn before_by(&self, apart: SignedDuration) -> Option<&Arc<T>> {
        let (_, last) = self.last()?;
        self.before().filter(|(_, at)| after(*at, apart) <= last).map(|(value, _)| value)
    }

    /// Why the last try has failed, if it has.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_ref().map(|(why, _)| why.as_str())
    }

    /// What is to be told while it fails: these calls of EC2 were not answered.
    pub(crate) fn unanswered(&self, calls: &[&str], every: SignedDuration) -> Option<Unanswered> {
        let (why, _) = self.failed.as_ref()?;
        Some(Unanswered {
            whom: "Amazon EC2",
            kind: "AWSCall",
            names: calls.iter().map(|it| (*it).to_owned()).collect(),
            because: why.clone(),
            since: self.failing_since,
            again_at: Some(self.due_at(every)),
            answered_at: self.last.as_ref().map(|(_, at)| *at),
        })
    }

    /// When to ask next, if it is asked so often.
    pub(crate) fn due_at(&self, every: SignedDuration) -> Timestamp {
        let Some(tried_at) = self.tried_at else { return Timestamp::MIN };
        let wait = match &self.failed {
            None => every,
            Some((_, times)) => wait_after(times.saturating_sub(1), RETRY_FIRST, every),
        };
        after(tried_at, wait).max(self.not_before.unwrap_or(Timestamp::MIN))
    }
}
