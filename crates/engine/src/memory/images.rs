//! Which images does EC2 have, as far as we were told?
//!
//! The catalog, and when each query was asked. What the catalog cannot know after a restart comes back from
//! the objects that remember it. What one answer lacks is believed to be gone when another, a while later, lacks it,
//! too: EC2's lists are consistent in the end, and a fleet is dear.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::catalog::{
    Appeared, Catalog, ImageQuery, Lacking, Observation, Outcome, Presence, Query, Sighting,
    merge_doubting,
};
use nodemolt_core::explain::Unanswered;
use nodemolt_core::image::{AccountId, Date, Image, ImageId, State};
use nodemolt_core::seen::Remembered;

use super::{after, wait_after};
use crate::decide::questions::IMAGES_EVERY;

const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Clone, Default)]
pub(crate) struct Images {
    pub(crate) catalog: Catalog,
    /// Counts what has changed in it, so that whoever has read it knows when to read again.
    pub(crate) version: u64,
    tried: BTreeMap<Query, Tried>,
    /// What a complete answer has lacked, and since when: it is not believed to be gone yet.
    lacked: BTreeMap<Subject, Timestamp>,
    /// Images that we remember and that no answer has listed since this process began.
    unseen: BTreeSet<ImageId>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Image(ImageId),
    Parameter(String),
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
        let observation = Observation { seen_at, ..observation };
        let doubted = self.doubt(&observation, now);
        let known = std::mem::take(&mut self.catalog);
        let named = if parameters { Some(known.parameters.clone()) } else { None };
        let (catalog, changes) = merge_doubting(known, observation, &doubted);
        self.catalog = catalog;
        let images = &self.catalog.images;
        self.unseen.retain(|it| images.get(it).is_some_and(unseen));
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

    /// What an answer lacks for the first time, or not for long enough.
    fn doubt(&mut self, observation: &Observation, now: Timestamp) -> Lacking {
        for it in &observation.images {
            self.lacked.remove(&Subject::Image(it.id.clone()));
        }
        for it in &observation.parameters {
            self.lacked.remove(&Subject::Parameter(it.name.clone()));
        }
        let mut lacking = self.catalog.lacking(observation);
        let mut doubted = |it: Subject| {
            let since = *self.lacked.entry(it.clone()).or_insert(now);
            let doubted = now < after(since, IMAGES_EVERY);
            if !doubted {
                self.lacked.remove(&it);
            }
            doubted
        };
        lacking.images.retain(|it| doubted(Subject::Image(it.clone())));
        lacking.parameters.retain(|it| doubted(Subject::Parameter(it.clone())));
        lacking
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

    /// Puts back what was remembered: of images that EC2 lists, what EC2 does not tell; and those that it does not list.
    pub(crate) fn recall(
        &mut self,
        remembered: &BTreeMap<ImageId, Remembered>,
        region: &str,
        now: Timestamp,
    ) {
        for (id, memory) in remembered {
            let withdrawn = memory.withdrawn.as_ref();
            let withdrawn = withdrawn.filter(|it| !self.catalog.takes_back(id, it, now)).cloned();
            let known = self.catalog.images.get(id).and_then(|it| it.withdrawn.as_ref());
            let returned = known.is_some_and(|it| {
                let since = it.at.zip(memory.returned).is_some_and(|(at, back)| at <= back);
                since || self.catalog.takes_back(id, it, now)
            });
            let Some(sighting) = self.catalog.images.get_mut(id) else {
                let Some(sighting) = tombstone(memory, region) else { continue };
                if unseen(&sighting) {
                    self.unseen.insert(id.clone());
                }
                self.catalog.images.insert(id.clone(), sighting);
                self.version += 1;
                continue;
            };
            let older = match (memory.first_seen, sighting.first_seen) {
                (Some(theirs), Some(ours)) => theirs < ours,
                (Some(_), None) => true,
                (None, _) => false,
            };
            let mut changed = older;
            if older {
                sighting.first_seen = memory.first_seen;
                sighting.appeared = memory.appeared.unwrap_or(sighting.appeared);
            }
            if returned {
                sighting.withdrawn = None;
                changed = true;
            }
            if sighting.withdrawn.is_none() && withdrawn.is_some() {
                sighting.withdrawn = withdrawn;
                changed = true;
            }
            self.version += u64::from(changed);
        }
    }

    /// An image that one of these queries would list, that we remember, and that is missing from too few answers to be
    /// gone.
    pub(crate) fn in_doubt(
        &self,
        queries: &BTreeSet<Query>,
        account: Option<&AccountId>,
        now: Timestamp,
    ) -> Option<&ImageId> {
        self.unseen.iter().find(|it| {
            let sighting = self.catalog.images.get(*it).filter(|it| unseen(it));
            sighting.is_some_and(|it| {
                queries.iter().any(|query| match query {
                    Query::Images(query) => query.would_list(&it.image, account, now),
                    Query::Parameters(_) | Query::Untold => false,
                })
            })
        })
    }

    /// Whether an image that nobody has ever seen was asked for by its id, twice and a while apart.
    pub(crate) fn known_absent(&self, id: &ImageId) -> bool {
        self.catalog.answers.iter().any(|(query, answered)| {
            let by_id = matches!(query, Query::Images(query) if query.ids.contains(id));
            let answers = answered.first_complete.zip(answered.last_complete);
            by_id && answers.is_some_and(|(first, last)| after(first, IMAGES_EVERY) <= last)
        })
    }
}

/// Remembered as there, and listed by no answer yet.
fn unseen(sighting: &Sighting) -> bool {
    sighting.last_seen.is_none() && sighting.presence == Presence::Listed
}

/// An image that we know by what is remembered alone. It may not boot, whatever it was, until EC2 lists it.
fn tombstone(memory: &Remembered, region: &str) -> Option<Sighting> {
    let looks = memory.looks.as_ref()?;
    // Whatever lists it again lists it here.
    let region = Some(region.to_owned());
    let ids = [memory.image.clone()].into();
    let query = Query::Images(ImageQuery { region, ids, ..ImageQuery::default() });
    let image = Image {
        owner: memory.first_owner.clone(),
        owner_alias: looks.owner_alias.clone(),
        state: State::Other(NOT_SEEN.to_owned()),
        created: looks.created.map_or(Date::Missing, Date::At),
        architecture: looks.architecture.clone(),
        ..Image::new(memory.image.clone(), looks.name.clone())
    };
    Some(Sighting {
        first_seen: memory.first_seen,
        seen_by: [query.to_string()].into(),
        appeared: memory.appeared.unwrap_or(Appeared::WithFirstAnswer),
        presence: match memory.not_listed_since {
            Some(since) => Presence::NotListed { since },
            None => Presence::Listed,
        },
        withdrawn: memory.withdrawn.clone(),
        ..Sighting::of(image)
    })
}

/// In the place of a state of EC2's.
const NOT_SEEN: &str = "remembered";

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
