//! Which images does EC2 have, as far as we were told?
//!
//! The catalog, and when each query was asked. What the catalog cannot know after a restart comes back
//! from the objects that remember it, once, when an image is first met.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::catalog::{Catalog, Observation, Outcome, Query, merge};
use nodemolt_core::explain::Unanswered;
use nodemolt_core::image::ImageId;
use nodemolt_core::seen::Remembered;

use super::{after, wait_after};

const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Clone, Default)]
pub(crate) struct Images {
    pub(crate) catalog: Catalog,
    /// Counts what has changed in it, so that whoever has read it knows when to read again.
    pub(crate) version: u64,
    tried: BTreeMap<Query, Tried>,
    /// Whose memory was put back.
    recalled: BTreeSet<ImageId>,
}

/// The last time that a query was asked.
#[derive(Debug, Clone, Copy)]
struct Tried {
    at: Timestamp,
    failures: u32,
    /// The first failure since it was last answered in full.
    failing_since: Option<Timestamp>,
    /// What became of it. `None`: no answer came.
    outcome: Option<Outcome>,
}

impl Images {
    pub(crate) fn observe(&mut self, query: &Query, observation: Observation, now: Timestamp) {
        let outcome = observation.outcome;
        let complete = outcome == Outcome::Complete;
        let news = |it: &Catalog| it.answers.get(query).and_then(|it| it.first_complete);
        let before = news(&self.catalog);
        let parameters = !observation.parameters.is_empty();
        // When it was seen is ours to say: a port need not have a clock.
        let seen_at = observation.seen_at.or(Some(now));
        let known = std::mem::take(&mut self.catalog);
        let named = if parameters { Some(known.parameters.clone()) } else { None };
        let (catalog, changes) = merge(known, Observation { seen_at, ..observation });
        self.catalog = catalog;
        let moved = named.is_some_and(|it| it != self.catalog.parameters);
        if !changes.is_empty() || moved || before != news(&self.catalog) {
            self.version += 1;
        }
        if complete {
            let outcome = Some(outcome);
            let tried = Tried { at: now, failures: 0, failing_since: None, outcome };
            self.tried.insert(query.clone(), tried);
        } else {
            self.failed(query, Some(outcome), now);
        }
    }

    pub(crate) fn missed(&mut self, query: &Query, now: Timestamp) {
        self.failed(query, None, now);
    }

    fn failed(&mut self, query: &Query, outcome: Option<Outcome>, now: Timestamp) {
        let before = self.tried.get(query);
        let failures = before.map_or(0, |it| it.failures).saturating_add(1);
        let failing_since = before.and_then(|it| it.failing_since).or(Some(now));
        self.tried.insert(query.clone(), Tried { at: now, failures, failing_since, outcome });
    }

    /// What is to be told of a query that was not answered when it was asked last, or was never asked.
    pub(crate) fn unanswered(&self, query: &Query, every: SignedDuration) -> Option<Unanswered> {
        let answered_at = self.catalog.answers.get(query).and_then(|it| it.last_complete);
        let tried = self.tried.get(query);
        if tried.map_or(answered_at.is_some(), |it| it.failing_since.is_none()) {
            return None;
        }
        let because = match tried.map(|it| it.outcome) {
            None => "it was not asked yet".to_owned(),
            Some(None) => "no answer came in time".to_owned(),
            Some(Some(outcome)) => outcome.to_string(),
        };
        let again_at = tried.map(|_| self.due_at(query, every));
        let since = tried.and_then(|it| it.failing_since);
        let (whom, kind, names) = subject(query);
        Some(Unanswered { whom, kind, names, because, since, again_at, answered_at })
    }

    pub(crate) fn due_at(&self, query: &Query, every: SignedDuration) -> Timestamp {
        match self.tried.get(query) {
            None => Timestamp::MIN,
            Some(Tried { at, failures: 0, .. }) => after(*at, every),
            Some(Tried { at, failures, .. }) => {
                after(*at, wait_after(failures - 1, RETRY_FIRST, every))
            }
        }
    }

    /// Whether it was answered in full at least once.
    pub(crate) fn answered(&self, query: &Query) -> bool {
        self.catalog.answers.get(query).is_some_and(|it| it.first_complete.is_some())
    }

    /// Puts back what was remembered of images that this process has met only now.
    pub(crate) fn recall(&mut self, remembered: &BTreeMap<ImageId, Remembered>) {
        for (id, memory) in remembered {
            if self.recalled.contains(id) {
                continue;
            }
            let Some(sighting) = self.catalog.images.get_mut(id) else { continue };
            self.recalled.insert(id.clone());
            let older = match (memory.first_seen, sighting.first_seen) {
                (Some(theirs), Some(ours)) => theirs < ours,
                (Some(_), None) => true,
                (None, _) => false,
            };
            let mut changed = false;
            if older {
                sighting.first_seen = memory.first_seen;
                sighting.appeared = memory.appeared.unwrap_or(sighting.appeared);
                changed = true;
            }
            if sighting.withdrawn.is_none() && memory.withdrawn.is_some() {
                sighting.withdrawn.clone_from(&memory.withdrawn);
                changed = true;
            }
            self.version += u64::from(changed);
        }
    }
}

/// Who was asked, and for what: kind and names.
fn subject(query: &Query) -> (&'static str, &'static str, Vec<String>) {
    match query {
        Query::Parameters(asked) => {
            let names = asked.names.iter().chain(&asked.paths).cloned().collect();
            ("AWS SSM", "SSMParameter", names)
        }
        Query::Images(asked) => {
            let ids = asked.ids.iter().map(ToString::to_string);
            let names = asked.names.iter().map(|it| it.as_str().to_owned());
            let parameters = asked.public_parameters.iter().cloned();
            ("Amazon EC2", "Image", ids.chain(names).chain(parameters).collect())
        }
        Query::Untold => ("a file", "Image", Vec::new()),
    }
}
