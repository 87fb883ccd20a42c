//! Which images does EC2 have, as far as we were told?
//!
//! The catalog, and when each query was asked. What the catalog cannot know after a restart comes back
//! from the objects that remember it, once, when an image is first met.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::catalog::{Catalog, Observation, Outcome, Query, merge};
use nodemolt_core::image::ImageId;
use nodemolt_core::seen::Remembered;

use super::{after, wait_after};

const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Clone, Default)]
pub(crate) struct Images {
    pub(crate) catalog: Catalog,
    /// Counts what has changed in it, so that whoever has read it knows when to read again.
    pub(crate) version: u64,
    tried: BTreeMap<Query, (Timestamp, u32)>,
    /// Whose memory was put back.
    recalled: BTreeSet<ImageId>,
}

impl Images {
    pub(crate) fn observe(&mut self, query: &Query, observation: Observation, now: Timestamp) {
        let complete = observation.outcome == Outcome::Complete;
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
        let failures = self.tried.get(query).map_or(0, |(_, failures)| *failures);
        let failures = if complete { 0 } else { failures.saturating_add(1) };
        self.tried.insert(query.clone(), (now, failures));
    }

    pub(crate) fn missed(&mut self, query: &Query, now: Timestamp) {
        let failures = self.tried.get(query).map_or(0, |(_, failures)| *failures);
        self.tried.insert(query.clone(), (now, failures.saturating_add(1)));
    }

    pub(crate) fn due_at(&self, query: &Query, every: SignedDuration) -> Timestamp {
        match self.tried.get(query) {
            None => Timestamp::MIN,
            Some((at, 0)) => after(*at, every),
            Some((at, failures)) => after(*at, wait_after(failures - 1, RETRY_FIRST, every)),
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
