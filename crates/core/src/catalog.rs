//! What images are there, and since when?
//!
//! `catalog × observation → catalog`
//!
//! An observation is a query and its outcome. "Could not ask" removes nothing. "Is not there" removes
//! only what that very query would have listed. An answer whose query nobody told adds and never removes.

mod index;
mod parameter;
mod query;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_fit::Family;

pub use index::{Index, Kept};
pub use parameter::{
    Parameter, ParameterValue, ReadValueError, VALUE_BYTES_MAX, Value, check_image_requirement,
    read_value,
};
pub use query::{ImageQuery, Outcome, ParameterQuery, ParseQueryError, Query};

use crate::image::{AccountId, Architecture, Date, Image, ImageId, State};
use crate::lookup;

/// Deprecated, disabled or unshared sooner than this after its creation, an image was withdrawn and did
/// not just grow old: publishers keep a release for months, and pull a bad one within days or weeks.
pub const WITHDRAWN_EARLY: SignedDuration = SignedDuration::from_hours(90 * 24);

/// All images and parameters we have seen, and what we asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    pub images: BTreeMap<ImageId, Sighting>,
    pub parameters: BTreeMap<String, Parameter>,
    pub answers: BTreeMap<Query, Answered>,
    /// Publishers that are known from what `as_of` has cut away.
    publishers: BTreeMap<Family, BTreeSet<AccountId>>,
}

/// An image and what we remember about it that EC2 does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub image: Image,
    pub first_seen: Option<Timestamp>,
    /// The queries that have listed it, as people write them.
    pub seen_by: BTreeSet<String>,
    pub appeared: Appeared,
    pub last_seen: Option<Timestamp>,
    pub presence: Presence,
    pub withdrawn: Option<Withdrawn>,
}

impl Sighting {
    /// Seen in a file of which we know neither when it was written nor what was asked.
    pub fn of(image: Image) -> Self {
        Self {
            image,
            first_seen: None,
            seen_by: BTreeSet::new(),
            appeared: Appeared::WithFirstAnswer,
            last_seen: None,
            presence: Presence::Listed,
            withdrawn: None,
        }
    }

    pub fn standing(&self, now: Timestamp) -> Standing {
        match (&self.presence, &self.image.state) {
            (Presence::NotListed { since }, _) => Standing::NotVisible { since: *since },
            (Presence::Gone { since }, _) => Standing::Deregistered { since: Some(*since) },
            (Presence::Listed, State::Deregistered) => Standing::Deregistered { since: None },
            (Presence::Listed, State::Disabled) => Standing::Disabled,
            (Presence::Listed, State::Other(word)) => Standing::Unready(word.clone()),
            (Presence::Listed, State::Available) if self.image.deprecated_by(now) => {
                Standing::Deprecated { since: self.image.deprecated.at() }
            }
            (Presence::Listed, State::Available) => Standing::Available,
        }
    }

    /// Whether an answer from this region has listed it. A region says nothing about another's images.
    fn seen_in(&self, region: Option<&str>) -> bool {
        self.seen_by.is_empty() && region.is_none()
            || self.seen_by.iter().any(|text| {
                let asked = text.parse::<Query>().ok();
                asked.as_ref().and_then(Query::region) == region
            })
    }

    /// Withdrawn by now, as far as this image alone can tell. The pointers may know more.
    pub fn withdrawn_by(&self, now: Timestamp) -> Option<Withdrawn> {
        if let Some(mark) = self.withdrawn.as_ref().filter(|it| it.at.is_none_or(|at| at <= now)) {
            return Some(mark.clone());
        }
        match (self.image.created.at(), self.image.deprecated.at()) {
            (Some(created), Some(deprecated))
                if deprecated <= now && early(created, deprecated) =>
            {
                Some(Withdrawn { at: Some(deprecated), because: Because::DeprecatedEarly })
            }
            _ => None,
        }
    }
}

fn early(created: Timestamp, ended: Timestamp) -> bool {
    ended.duration_since(created) < WITHDRAWN_EARLY
}

/// Whether first seen says anything about an image's age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Appeared {
    /// It was there when we first got a complete answer: we do not know how long it had been there.
    WithFirstAnswer,
    /// It came later, before our eyes.
    Later,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    Listed,
    /// A complete answer lacked it. It may be unshared, disallowed, hidden or deregistered.
    NotListed {
        since: Timestamp,
    },
    /// Our own account's answer lacked it, disabled ones included: it is gone.
    Gone {
        since: Timestamp,
    },
}

impl Presence {
    pub fn absent_since(&self) -> Option<Timestamp> {
        match self {
            Self::Listed => None,
            Self::NotListed { since } | Self::Gone { since } => Some(*since),
        }
    }
}

/// An image's state, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Available,
    Deprecated {
        since: Option<Timestamp>,
    },
    Disabled,
    NotVisible {
        since: Timestamp,
    },
    Deregistered {
        since: Option<Timestamp>,
    },
    /// EC2 says `pending`, `failed` or the like.
    Unready(String),
}

impl Standing {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Available => "Available",
            Self::Deprecated { .. } => "Deprecated",
            Self::Disabled => "Disabled",
            Self::NotVisible { .. } => "NotVisible",
            Self::Deregistered { .. } => "Deregistered",
            Self::Unready(_) => "Unready",
        }
    }
}

/// Taken back by its publisher. Being superseded by a newer release is no withdrawal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawn {
    pub at: Option<Timestamp>,
    pub because: Because,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// A parameter that named it was moved to an older image.
    PointerMovedBack {
        parameter: String,
        to: ImageId,
    },
    DeprecatedEarly,
    DisabledEarly,
    UnsharedEarly,
    /// It stands on a list of recalls. Only whoever wrote that takes it back.
    Recalled,
}

/// What became of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answered {
    pub first_complete: Option<Timestamp>,
    pub last_complete: Option<Timestamp>,
    pub last: Option<(Outcome, Timestamp)>,
}

/// One answer, or the lack of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub asked: Query,
    pub outcome: Outcome,
    /// When it was seen; unknown for a file that does not say.
    pub seen_at: Option<Timestamp>,
    /// Who asked, for `owner=self`.
    pub account: Option<AccountId>,
    pub images: Vec<Image>,
    pub parameters: Vec<Parameter>,
}

impl Observation {
    /// What stands in a file, with nothing known about how it came to be.
    pub fn plain(images: Vec<Image>, parameters: Vec<Parameter>) -> Self {
        Self {
            asked: Query::Untold,
            outcome: Outcome::Complete,
            seen_at: None,
            account: None,
            images,
            parameters,
        }
    }
}

/// What an observation changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Appeared(ImageId),
    /// It is listed again after it was not.
    Returned(ImageId),
    /// Two answers disagree about it; these members differ, and the later answer stands.
    Differs(ImageId, Vec<&'static str>),
    NotListed(ImageId),
    Gone(ImageId),
    Withdrawn(ImageId, Because),
    /// Two answers give one version of a parameter different values; the later answer stands.
    ParameterDiffers(String),
    ParameterGone(String),
}

/// What a complete answer lacks although its query would have listed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lacking {
    pub images: BTreeSet<ImageId>,
    pub parameters: BTreeSet<String>,
}

/// Adds what was seen to what is known.
pub fn merge(known: Catalog, seen: Observation) -> (Catalog, Vec<Change>) {
    merge_doubting(known, seen, &Lacking::default())
}

/// The same; but what is in doubt stays as it was, though the answer lacks it.
pub fn merge_doubting(
    known: Catalog,
    seen: Observation,
    doubted: &Lacking,
) -> (Catalog, Vec<Change>) {
    let mut catalog = known;
    let mut changes = Vec::new();
    let Observation { asked, outcome, seen_at, account, images, parameters } = seen;
    let asked_as = asked.to_string();

    let before = catalog.familiar();
    let mut listed = BTreeSet::new();
    for image in images {
        listed.insert(image.id.clone());
        if catalog.images.contains_key(&image.id) {
            changes.extend(catalog.see_again(image, seen_at, &asked_as));
        } else {
            changes.push(Change::Appeared(image.id.clone()));
            let appeared = catalog.appears(&image, &asked, seen_at, account.as_ref(), &before);
            let mut sighting = Sighting {
                first_seen: seen_at,
                last_seen: seen_at,
                appeared,
                ..Sighting::of(image)
            };
            if seen_at.is_some() {
                sighting.seen_by.insert(asked_as.clone());
            }
            sighting.mark_if_disabled(seen_at);
            if let Some(since) =
                catalog.lacked_since(&sighting.image, &asked, seen_at, account.as_ref())
            {
                sighting.vanish(since);
            }
            catalog.images.insert(sighting.image.id.clone(), sighting);
        }
    }

    let mut named = BTreeSet::new();
    for parameter in parameters {
        named.insert(parameter.name.clone());
        changes.extend(catalog.see_parameter(parameter, seen_at));
    }

    if let (Outcome::Complete, Some(at)) = (&outcome, seen_at) {
        let answer = Answer { asked: &asked, account: account.as_ref(), listed, named, at };
        changes.extend(catalog.miss(&answer, doubted));
    }
    if let Some(at) = seen_at {
        let answered = catalog.answers.entry(asked).or_default();
        if outcome == Outcome::Complete {
            answered.first_complete = Some(answered.first_complete.map_or(at, |it| it.min(at)));
            answered.last_complete = Some(answered.last_complete.map_or(at, |it| it.max(at)));
        }
        if answered.last.as_ref().is_none_or(|(_, last)| *last <= at) {
            answered.last = Some((outcome, at));
        }
    }
    changes.extend(catalog.note_moves_back());
    (catalog, changes)
}

/// A complete answer, by what it lists.
struct Answer<'a> {
    asked: &'a Query,
    account: Option<&'a AccountId>,
    listed: BTreeSet<ImageId>,
    named: BTreeSet<String>,
    at: Timestamp,
}

/// Owner, kind of name and processor of images that we know: an answer with such an image evidently
/// asked about its kind.
type Familiar = BTreeSet<(Option<AccountId>, String, Architecture)>;

impl Catalog {
    /// Puts another catalog's memory beside this one. Where both know an image, the one that was seen
    /// later stands, or else the one that is given later; what either remembers is kept.
    pub fn join(&mut self, other: Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (id, theirs) in other.images {
            let Some(ours) = self.images.remove(&id) else {
                self.images.insert(id, theirs);
                continue;
            };
            let differing = differing(&ours.image, &theirs.image);
            if !differing.is_empty() {
                changes.push(Change::Differs(id.clone(), differing));
            }
            let newer_is_ours = match (ours.last_seen, theirs.last_seen) {
                (Some(ours), Some(theirs)) => ours > theirs,
                _ => false,
            };
            let (older, newer) = if newer_is_ours { (theirs, ours) } else { (ours, theirs) };
            // Of two first sights the earlier one is the truth, with what was known about it.
            let (first_seen, appeared) = match (older.first_seen, newer.first_seen) {
                (Some(a), Some(b)) if b < a => (Some(b), newer.appeared),
                (Some(a), _) => (Some(a), older.appeared),
                (None, b) => (b, newer.appeared),
            };
            let seen_by = older.seen_by.union(&newer.seen_by).cloned().collect();
            // Absent stands until it was listed later; a file that does not say when it was written
            // cannot bring a vanished image back.
            let presence = match (older.presence.absent_since(), newer.presence.absent_since()) {
                (Some(since), None) if newer.last_seen.is_none_or(|it| it < since) => {
                    older.presence
                }
                (None, Some(since)) if older.last_seen.is_some_and(|it| it >= since) => {
                    older.presence
                }
                _ => newer.presence,
            };
            // Who shares or enables it again has taken the withdrawal back, here as in `merge`.
            let returned = presence == Presence::Listed && newer.image.state == State::Available;
            let taken_back = |mark: &Withdrawn| {
                returned
                    && matches!(mark.because, Because::DisabledEarly | Because::UnsharedEarly)
                    && newer.last_seen.is_some_and(|seen| mark.at.is_none_or(|at| at < seen))
            };
            let withdrawn = newer.withdrawn.or(older.withdrawn.filter(|it| !taken_back(it)));
            let joined = Sighting {
                image: newer.image,
                first_seen,
                seen_by,
                appeared,
                last_seen: older.last_seen.max(newer.last_seen),
                presence,
                withdrawn,
            };
            self.images.insert(id, joined);
        }
        for (name, theirs) in other.parameters {
            let ours = self.parameters.get(&name).map(|it| it.gone);
            let gone = match (ours, theirs.gone) {
                (None, theirs) => theirs,
                (Some(None), None) => None,
                (Some(Some(a)), Some(b)) => Some(a.min(b)),
                // Who has asked since knows better.
                (Some(None), Some(gone)) => Some(gone).filter(|gone| {
                    answered_about(&self.answers, &name).is_none_or(|it| it < *gone)
                }),
                (Some(Some(gone)), None) => Some(gone).filter(|gone| {
                    answered_about(&other.answers, &name).is_none_or(|it| it < *gone)
                }),
            };
            changes.extend(self.see_parameter(theirs, None));
            if let Some(known) = self.parameters.get_mut(&name) {
                known.gone = gone.filter(|it| !known.written_after(*it));
            }
        }
        for (query, theirs) in other.answers {
            let ours = self.answers.entry(query).or_default();
            ours.first_complete = match (ours.first_complete, theirs.first_complete) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            ours.last_complete = ours.last_complete.max(theirs.last_complete);
            let later = match (&ours.last, &theirs.last) {
                (Some((_, a)), Some((_, b))) => b >= a,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if later {
                ours.last = theirs.last;
            }
        }
        changes
    }

    /// The catalog as it was: later images do not exist, and later values were not yet written.
    #[must_use]
    pub fn as_of(mut self, at: Timestamp) -> Self {
        // Who publishes a family was so before, too, though the image that proves it is younger.
        self.publishers = self.find_publishers();
        self.images.retain(|_, it| {
            // What came before our eyes later was not to be had then, whatever its own date says.
            if it.appeared == Appeared::Later && it.first_seen.is_some_and(|seen| seen > at) {
                return false;
            }
            // One without a date was there when it was first seen, for all we know.
            it.image.created.at().or(it.first_seen).is_none_or(|since| since <= at)
        });
        for sighting in self.images.values_mut() {
            if let Presence::NotListed { since } | Presence::Gone { since } = sighting.presence
                && since > at
            {
                sighting.presence = Presence::Listed;
            }
        }
        for parameter in self.parameters.values_mut() {
            parameter.forget_after(at);
        }
        self.answers.retain(|_, answered| {
            answered.first_complete = answered.first_complete.filter(|it| *it <= at);
            answered.last_complete =
                answered.last_complete.filter(|it| *it <= at).or(answered.first_complete);
            answered.last = answered.last.filter(|(_, it)| *it <= at);
            answered.last.is_some() || answered.first_complete.is_some()
        });
        self
    }

    pub fn index(&self, now: Timestamp) -> Index<'_> {
        Index::new(self, now)
    }

    /// Who has published a release of a family: the owners of images that its public parameters name or
    /// have named. A look-alike name alone proves nothing.
    pub(crate) fn find_publishers(&self) -> BTreeMap<Family, BTreeSet<AccountId>> {
        let mut publishers = self.publishers.clone();
        let mut found = |family: Family, image: &Image| {
            if let Some(owner) = &image.owner {
                publishers.entry(family).or_default().insert(owner.clone());
            }
        };
        for parameter in self.parameters.values() {
            let Some((flavour, _)) = lookup::read_path(&parameter.name) else { continue };
            for id in parameter.values().filter_map(ParameterValue::image) {
                if let Some(sighting) = self.images.get(&id) {
                    found(flavour.family, &sighting.image);
                }
            }
        }
        for sighting in self.images.values() {
            for path in &sighting.image.public_parameters {
                if let Some((flavour, _)) = lookup::read_path(path) {
                    found(flavour.family, &sighting.image);
                }
            }
        }
        publishers
    }

    fn familiar(&self) -> Familiar {
        let untold = self.answers.get(&Query::Untold).and_then(|it| it.first_complete);
        if untold.is_none() {
            return Familiar::new();
        }
        let untold = Query::Untold.to_string();
        self.images
            .values()
            .filter(|it| it.seen_by.contains(&untold))
            .map(|it| kind_of(&it.image))
            .collect()
    }

    /// Did an earlier complete answer lack this image although it would have listed it?
    fn appears(
        &self,
        image: &Image,
        asked: &Query,
        seen_at: Option<Timestamp>,
        account: Option<&AccountId>,
        familiar: &Familiar,
    ) -> Appeared {
        let Some(seen_at) = seen_at else { return Appeared::WithFirstAnswer };
        let lacked = self.answers.iter().any(|(query, answered)| {
            answered.first_complete.filter(|it| *it < seen_at).is_some_and(|then| match query {
                Query::Untold => familiar.contains(&kind_of(image)),
                Query::Images(query) => {
                    query.region.as_deref() == asked.region()
                        && query.would_list(image, account, then)
                }
                Query::Parameters(_) => false,
            })
        });
        if lacked { Appeared::Later } else { Appeared::WithFirstAnswer }
    }

    /// Whether a later complete answer than the one that lists it lacked it: answers may come late.
    fn lacked_since(
        &self,
        image: &Image,
        asked: &Query,
        seen_at: Option<Timestamp>,
        account: Option<&AccountId>,
    ) -> Option<Timestamp> {
        let seen_at = seen_at?;
        let later = self.answers.iter().filter_map(|(query, answered)| {
            let Query::Images(query) = query else { return None };
            let at = answered.last_complete.filter(|it| *it > seen_at)?;
            let lacked =
                query.region.as_deref() == asked.region() && query.would_list(image, account, at);
            lacked.then_some(at)
        });
        later.min()
    }

    fn see_again(
        &mut self,
        image: Image,
        seen_at: Option<Timestamp>,
        asked_as: &str,
    ) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(sighting) = self.images.get_mut(&image.id) else { return changes };
        // An answer from before the last one tells when it was first seen, and nothing newer.
        let known_until = sighting.last_seen.max(sighting.presence.absent_since());
        let outdated = matches!((seen_at, known_until), (Some(at), Some(last)) if at < last);
        if let Some(at) = seen_at {
            sighting.seen_by.insert(asked_as.to_owned());
            sighting.first_seen = Some(sighting.first_seen.map_or(at, |it| it.min(at)));
            sighting.last_seen = Some(sighting.last_seen.map_or(at, |it| it.max(at)));
        }
        if outdated {
            return changes;
        }
        let differing = differing(&sighting.image, &image);
        if !differing.is_empty() {
            changes.push(Change::Differs(image.id.clone(), differing));
        }
        let was_disabled = sighting.image.state == State::Disabled;
        sighting.image = image;
        if sighting.presence != Presence::Listed && seen_at.is_some() {
            sighting.presence = Presence::Listed;
            changes.push(Change::Returned(sighting.image.id.clone()));
        }
        // Who shares or enables it again has taken the withdrawal back.
        if sighting.presence == Presence::Listed && sighting.image.state == State::Available {
            let undone = sighting.withdrawn.as_ref().is_some_and(|it| {
                matches!(it.because, Because::DisabledEarly | Because::UnsharedEarly)
            });
            if undone && seen_at.is_some() {
                sighting.withdrawn = None;
            }
        }
        if !was_disabled && sighting.mark_if_disabled(seen_at) {
            changes.push(Change::Withdrawn(sighting.image.id.clone(), Because::DisabledEarly));
        }
        changes
    }

    fn see_parameter(&mut self, parameter: Parameter, seen_at: Option<Timestamp>) -> Vec<Change> {
        let name = parameter.name.clone();
        match self.parameters.get_mut(&name) {
            None => {
                self.parameters.insert(name, parameter);
                Vec::new()
            }
            Some(known) => {
                let disagreed = known.learn(parameter);
                // An answer from before it vanished, or from who knows when, does not bring it back.
                let back = |gone: Timestamp| {
                    seen_at.is_some_and(|it| it >= gone) || known.written_after(gone)
                };
                if known.gone.is_some_and(back) {
                    known.gone = None;
                }
                if disagreed { vec![Change::ParameterDiffers(name)] } else { Vec::new() }
            }
        }
    }

    /// What an answer lacks that is known, if it can be believed in what it does not say.
    pub fn lacking(&self, seen: &Observation) -> Lacking {
        let Observation { asked, outcome, seen_at, account, images, parameters } = seen;
        let (Outcome::Complete, Some(at)) = (outcome, *seen_at) else { return Lacking::default() };
        self.lacked_by(&Answer {
            asked,
            account: account.as_ref(),
            listed: images.iter().map(|it| it.id.clone()).collect(),
            named: parameters.iter().map(|it| it.name.clone()).collect(),
            at,
        })
    }

    fn lacked_by(&self, answer: &Answer<'_>) -> Lacking {
        let Answer { asked, account, listed, named, at } = answer;
        let mut lacking = Lacking::default();
        match asked {
            Query::Untold => {}
            Query::Images(query) => {
                let absent = self.images.iter().filter(|(id, sighting)| {
                    sighting.presence == Presence::Listed
                        && !listed.contains(*id)
                        && sighting.seen_in(query.region.as_deref())
                        && sighting.last_seen.is_none_or(|it| it < *at)
                        && query.would_list(&sighting.image, *account, *at)
                });
                lacking.images = absent.map(|(id, _)| id.clone()).collect();
            }
            Query::Parameters(query) => {
                let absent = self.parameters.iter().filter(|(name, parameter)| {
                    !named.contains(*name)
                        && query.would_list(name)
                        && parameter.gone.is_none()
                        && !parameter.written_after(*at)
                        && answered_about(&self.answers, name).is_none_or(|it| it <= *at)
                });
                lacking.parameters = absent.map(|(name, _)| name.clone()).collect();
            }
        }
        lacking
    }

    /// Marks what an answer lacks, save what is in doubt.
    fn miss(&mut self, answer: &Answer<'_>, doubted: &Lacking) -> Vec<Change> {
        let mut changes = Vec::new();
        let lacking = self.lacked_by(answer);
        let Answer { asked, account, listed, at, .. } = answer;
        let (account, at) = (*account, *at);
        if let Query::Images(query) = asked {
            for (id, sighting) in &mut self.images {
                // It came after this answer, which would have listed it.
                if !listed.contains(id)
                    && sighting.first_seen.is_some_and(|it| it > at)
                    && sighting.seen_in(query.region.as_deref())
                    && query.would_list(&sighting.image, account, at)
                {
                    sighting.appeared = Appeared::Later;
                }
            }
            for id in lacking.images.difference(&doubted.images) {
                let Some(sighting) = self.images.get_mut(id) else { continue };
                let own = account.is_some() && sighting.image.owner.as_ref() == account;
                if own && query.include_disabled {
                    sighting.presence = Presence::Gone { since: at };
                    changes.push(Change::Gone(id.clone()));
                } else {
                    sighting.presence = Presence::NotListed { since: at };
                    changes.push(Change::NotListed(id.clone()));
                }
                let created = sighting.image.created.at();
                if sighting.withdrawn.is_none() && created.is_some_and(|it| early(it, at)) {
                    let because = Because::UnsharedEarly;
                    changes.push(Change::Withdrawn(id.clone(), because.clone()));
                    sighting.withdrawn = Some(Withdrawn { at: Some(at), because });
                }
            }
        }
        for name in lacking.parameters.difference(&doubted.parameters) {
            if let Some(parameter) = self.parameters.get_mut(name) {
                parameter.gone = Some(at);
                changes.push(Change::ParameterGone(name.clone()));
            }
        }
        changes
    }

    /// Writes down which images a pointer has left for an older one, so that it is still known when the
    /// parameter's history is not.
    fn note_moves_back(&mut self) -> Vec<Change> {
        let moved: BTreeMap<ImageId, Withdrawn> = self.moves_back();
        let mut changes = Vec::new();
        for (id, sighting) in &mut self.images {
            match (moved.get(id), &sighting.withdrawn) {
                (Some(mark), None) => {
                    changes.push(Change::Withdrawn(id.clone(), mark.because.clone()));
                    sighting.withdrawn = Some(mark.clone());
                }
                // Who points at it again has taken the withdrawal back.
                (
                    None,
                    Some(Withdrawn {
                        because: Because::PointerMovedBack { parameter, .. }, ..
                    }),
                ) if self.parameters.get(parameter).is_some_and(|it| {
                    it.newest().and_then(ParameterValue::image).as_ref() == Some(id)
                }) =>
                {
                    sighting.withdrawn = None;
                }
                _ => {}
            }
        }
        changes
    }

    /// Images that a pointer left for an older one and has not come back to. A parameter of one's own
    /// says so only while no other parameter, one's own or public, still names the image: a step back in
    /// a test environment must not stop production.
    pub(crate) fn moves_back(&self) -> BTreeMap<ImageId, Withdrawn> {
        let mut moved = BTreeMap::new();
        // What parameters name now, and how many of them each.
        let mut named_now: BTreeMap<ImageId, usize> = BTreeMap::new();
        let own = |parameter: &Parameter| !public(&parameter.name);
        let points_at = |parameter: &Parameter| parameter.newest().and_then(ParameterValue::image);
        for id in self.parameters.values().filter_map(points_at) {
            *named_now.entry(id).or_default() += 1;
        }
        for parameter in self.parameters.values() {
            if parameter.values().len() < 2 {
                continue;
            }
            let images: Vec<(&ParameterValue, ImageId)> = parameter
                .values()
                .filter_map(|value| value.image().map(|image| (value, image)))
                .collect();
            for pair in images.windows(2) {
                let [(_, from), (value, to)] = pair else { continue };
                let (Some(left), Some(came)) = (self.dated(from), self.dated(to)) else { continue };
                if came >= left {
                    continue;
                }
                let back_again =
                    images.iter().any(|(later, id)| id == from && later.follows(value));
                let by_itself = usize::from(points_at(parameter).as_ref() == Some(from));
                let still_named =
                    own(parameter) && named_now.get(from).is_some_and(|number| *number > by_itself);
                if !back_again && !still_named {
                    let because = Because::PointerMovedBack {
                        parameter: parameter.name.clone(),
                        to: to.clone(),
                    };
                    moved.insert(from.clone(), Withdrawn { at: value.modified.at(), because });
                }
            }
        }
        moved
    }

    /// Whether a withdrawal of which we know was taken back since: the image is listed again, or enabled, or is no
    /// longer deprecated; or the pointer names it again.
    pub fn takes_back(&self, id: &ImageId, mark: &Withdrawn, now: Timestamp) -> bool {
        let since = |it: Option<Timestamp>| it.is_some_and(|it| mark.at.is_none_or(|at| at < it));
        let there = self.images.get(id).filter(|it| {
            it.presence == Presence::Listed
                && it.image.state == State::Available
                && since(it.last_seen)
        });
        match &mark.because {
            Because::DisabledEarly | Because::UnsharedEarly => there.is_some(),
            Because::DeprecatedEarly => there.is_some_and(|it| !it.image.deprecated_by(now)),
            Because::PointerMovedBack { parameter, .. } => {
                let newest = self.parameters.get(parameter).and_then(Parameter::newest);
                newest.is_some_and(|it| it.image().as_ref() == Some(id) && since(it.modified.at()))
            }
            Because::Recalled => false,
        }
    }

    /// The date by which an image is ordered and ages: its source's, where that is known, because a copy
    /// of an old image is an old image.
    pub fn dated(&self, id: &ImageId) -> Option<Timestamp> {
        self.images.get(id).and_then(|it| self.dated_image(&it.image))
    }

    pub(crate) fn dated_image(&self, image: &Image) -> Option<Timestamp> {
        let mut image = image;
        let mut dated = image.created.at();
        // A chain of copies is short; a circle of them ends here.
        for _ in 0..16 {
            let Some(source) = image.source.as_ref().and_then(|it| self.images.get(it)) else {
                break;
            };
            image = &source.image;
            // A source that is younger than its copy is not its source.
            if let (Some(theirs), Some(ours)) = (image.created.at(), dated)
                && theirs <= ours
            {
                dated = Some(theirs);
            } else {
                break;
            }
        }
        dated
    }
}

/// When a question that would have listed this parameter was last answered in full.
fn answered_about(answers: &BTreeMap<Query, Answered>, name: &str) -> Option<Timestamp> {
    answers
        .iter()
        .filter(|(query, _)| match query {
            Query::Parameters(query) => query.would_list(name),
            Query::Images(_) | Query::Untold => false,
        })
        .filter_map(|(_, answered)| answered.last_complete)
        .max()
}

fn public(parameter: &str) -> bool {
    parameter.starts_with("/aws/")
}

impl Sighting {
    /// It was lacking in a complete answer of that time.
    fn vanish(&mut self, since: Timestamp) {
        self.presence = Presence::NotListed { since };
        if self.withdrawn.is_none() && self.image.created.at().is_some_and(|it| early(it, since)) {
            self.withdrawn = Some(Withdrawn { at: Some(since), because: Because::UnsharedEarly });
        }
    }

    /// Marks an image that was disabled soon after its creation. True if that is news.
    fn mark_if_disabled(&mut self, seen_at: Option<Timestamp>) -> bool {
        let (State::Disabled, Some(at), Some(created), None) =
            (&self.image.state, seen_at, self.image.created.at(), &self.withdrawn)
        else {
            return false;
        };
        if early(created, at) {
            self.withdrawn = Some(Withdrawn { at: Some(at), because: Because::DisabledEarly });
        }
        self.withdrawn.is_some()
    }
}

/// Owner, name without whatever counts, and processor.
fn kind_of(image: &Image) -> (Option<AccountId>, String, Architecture) {
    let stem = match lookup::read_name(&image.name) {
        Some((flavour, _)) => format!("{flavour} {}", flavour.kubernetes),
        None => image
            .name
            .split(['-', '_', '/', ' '])
            .filter(|it| !it.bytes().any(|it| it.is_ascii_digit()))
            .collect::<Vec<_>>()
            .join("-"),
    };
    (image.owner.clone(), stem, image.architecture.clone())
}

/// The members in which two descriptions of one image differ.
fn differing(a: &Image, b: &Image) -> Vec<&'static str> {
    let dates = |a: &Date, b: &Date| a != b;
    [
        ("Name", a.name != b.name),
        ("OwnerId", a.owner != b.owner),
        ("ImageOwnerAlias", a.owner_alias != b.owner_alias),
        ("State", a.state != b.state),
        ("CreationDate", dates(&a.created, &b.created)),
        ("DeprecationTime", dates(&a.deprecated, &b.deprecated)),
        ("Architecture", a.architecture != b.architecture),
        ("BootMode", a.boot_mode != b.boot_mode),
        ("TpmSupport", a.tpm != b.tpm),
        ("VirtualizationType", a.virtualization != b.virtualization),
        ("RootDeviceType", a.root_device != b.root_device),
        ("EnaSupport", a.ena != b.ena),
        ("Tags", a.tags != b.tags),
        ("ProductCodes", a.product_codes != b.product_codes),
        ("ImageAllowed", a.allowed != b.allowed),
        ("SourceImageId", a.source != b.source),
        ("PublicSsmParameterName", a.public_parameters != b.public_parameters),
        (
            "InstanceTypeSpecification",
            a.supported_types != b.supported_types || a.unsupported_types != b.unsupported_types,
        ),
    ]
    .into_iter()
    .filter_map(|(member, differs)| differs.then_some(member))
    .collect()
}
