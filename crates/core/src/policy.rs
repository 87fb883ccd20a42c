//! What may boot at all?
//!
//! Policies are the platform team's words: owners, allowed images, a floor for the age, dated exceptions.
//! Quarantines stand apart from them, so that nobody undoes a halt by applying a policy again. Where
//! several policies select one class every restriction holds.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::ask::{Age, Owner};
use crate::image::{Image, ImageId, NamePattern};
use crate::lookup;

/// All policies and quarantines there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    pub rules: Vec<Rule>,
    pub quarantines: Vec<Quarantine>,
}

impl Policy {
    /// What holds for a class with these labels, in the order of the policies' names.
    pub fn for_class(&self, labels: &BTreeMap<String, String>) -> Ruling<'_> {
        let mut rules: Vec<&Rule> =
            self.rules.iter().filter(|it| it.classes.matches(labels)).collect();
        rules.sort_by(|a, b| a.name.cmp(&b.name));
        let mut quarantines: Vec<&Quarantine> = self.quarantines.iter().collect();
        quarantines.sort_by(|a, b| a.name.cmp(&b.name));
        Ruling { rules, quarantines }
    }
}

/// One `ImagePolicy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub name: String,
    pub classes: LabelSelector,
    /// `None` leaves owners to the terms. An empty list allows nobody.
    pub owners: Option<BTreeSet<Owner>>,
    /// `None` means any image of these owners.
    pub allowed: Option<AllowedImages>,
    pub minimum_age: Age,
    pub age_from: Option<AgeFrom>,
    pub pinned_ids: Option<PinnedIds>,
    pub deprecated: Option<DeprecatedImages>,
    pub exceptions: Vec<Exception>,
}

impl Rule {
    /// A policy that restricts nothing yet.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            classes: LabelSelector::default(),
            owners: None,
            allowed: None,
            minimum_age: Age::NONE,
            age_from: None,
            pinned_ids: None,
            deprecated: None,
            exceptions: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedImages {
    pub ids: BTreeSet<ImageId>,
    pub names: BTreeSet<NamePattern>,
}

impl AllowedImages {
    pub fn admits(&self, image: &Image) -> bool {
        self.admits_so_called(&image.id, &image.name)
    }

    pub(crate) fn admits_so_called(&self, id: &ImageId, name: &str) -> bool {
        self.ids.contains(id) || self.names.iter().any(|it| it.matches(name))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgeFrom {
    /// The later of creation and, for images that appeared after the first complete answer, first seen.
    CreationOrFirstSeen,
    Creation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinnedIds {
    HeldByAge,
    ExemptFromAge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeprecatedImages {
    LastChoice,
    Forbidden,
}

/// Lifts the minimum age and the withdrawal for an image, until a date, for a reason. It lifts nothing
/// else: owners, allowed images and quarantines hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    pub image: Which,
    pub reason: String,
    pub until: Timestamp,
}

/// Which images a quarantine or an exception speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    Id(ImageId),
    Name(NamePattern),
    /// Of a release, as the image's name tells it: `v20261107`, `1.52.*`. Of a name that is nobody's release,
    /// the word that looks like one.
    Version(NamePattern),
}

impl Which {
    pub fn matches(&self, image: &Image) -> bool {
        self.speaks_of(&Subject::of(image))
    }

    fn speaks_of(&self, subject: &Subject<'_>) -> bool {
        match self {
            Self::Id(id) => id == subject.id,
            Self::Name(pattern) => pattern.matches(subject.name),
            Self::Version(pattern) => {
                let version = subject.version.unwrap_or_else(|| own_version(subject.name));
                // Both spellings of a Bottlerocket version are in use.
                let bare = version.trim_start_matches('v');
                pattern.matches(bare)
                    || pattern.may_begin_with('v') && pattern.matches(&format!("v{bare}"))
            }
        }
    }
}

/// What a name that follows no known pattern says of its version: its last word that begins with `v` and a
/// digit, or else its last word. To hold an image too many costs less than to boot one that was held.
fn own_version(name: &str) -> &str {
    let words = || name.rsplit(['-', '_', '/', ' ', ':']);
    let numbered = |it: &&str| {
        it.strip_prefix('v').is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()))
    };
    words().find(numbered).or_else(|| words().next()).unwrap_or(name)
}

/// What an image is called, and the version that its name tells, read once for all who ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) id: &'a ImageId,
    pub(crate) name: &'a str,
    pub(crate) version: Option<&'a str>,
}

impl<'a> Subject<'a> {
    pub(crate) fn of(image: &'a Image) -> Self {
        let version = lookup::named(&image.name).map(|(_, version)| version);
        Self { id: &image.id, name: &image.name, version }
    }
}

/// One `ImageQuarantine`: we refuse this image until told otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    pub name: String,
    pub image: Which,
    pub reason: String,
    pub evidence: Vec<String>,
    pub expires_at: Option<Timestamp>,
}

impl Quarantine {
    pub fn holds(&self, image: &Image, now: Timestamp) -> bool {
        self.holds_for(&Subject::of(image), now)
    }

    fn holds_for(&self, subject: &Subject<'_>, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|it| now < it) && self.image.speaks_of(subject)
    }
}

/// Kubernetes' label selector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    pub labels: BTreeMap<String, String>,
    pub expressions: Vec<LabelExpression>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelExpression {
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Exists(String),
    DoesNotExist(String),
}

impl LabelSelector {
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|it| match it {
                LabelExpression::In(key, values) => {
                    labels.get(key).is_some_and(|it| values.contains(it))
                }
                LabelExpression::NotIn(key, values) => {
                    labels.get(key).is_none_or(|it| !values.contains(it))
                }
                LabelExpression::Exists(key) => labels.contains_key(key),
                LabelExpression::DoesNotExist(key) => !labels.contains_key(key),
            })
    }
}

/// The policies and quarantines that hold for one class.
#[derive(Debug, Clone, Default)]
pub struct Ruling<'a> {
    pub rules: Vec<&'a Rule>,
    pub quarantines: Vec<&'a Quarantine>,
}

/// The age that an image must have, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgeFloor {
    pub age: Age,
    /// The policy's name, or none where the class itself asks for it.
    pub policy: Option<String>,
}

impl<'a> Ruling<'a> {
    /// All that hold: the image is free when the last of them has ended.
    pub fn quarantines(
        &self,
        image: &Image,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a Quarantine> {
        self.quarantines.iter().copied().filter(move |it| it.holds(image, now))
    }

    pub(crate) fn quarantines_of(
        &self,
        subject: &Subject<'_>,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a Quarantine> {
        self.quarantines.iter().copied().filter(move |it| it.holds_for(subject, now))
    }

    pub fn exception(&self, image: &Image, now: Timestamp) -> Option<&'a Exception> {
        self.exception_of(&Subject::of(image), now)
    }

    pub(crate) fn exception_of(
        &self,
        subject: &Subject<'_>,
        now: Timestamp,
    ) -> Option<&'a Exception> {
        self.rules.iter().find_map(|it| exception(it, subject, now))
    }

    /// The longest age that anybody demands of this image. A policy's exception lifts that policy's own
    /// floor and the class's wish; another policy's floor stands.
    pub fn age_floor(&self, wish: Age, image: &Image, now: Timestamp) -> AgeFloor {
        let (age, policy) = self.age_floor_of(wish, &Subject::of(image), now);
        AgeFloor { age, policy: policy.map(str::to_owned) }
    }

    pub(crate) fn age_floor_of(
        &self,
        wish: Age,
        of: &Subject<'_>,
        now: Timestamp,
    ) -> (Age, Option<&'a str>) {
        let mut longest = (Age::NONE, None);
        let mut lifted = false;
        for rule in &self.rules {
            if exception(rule, of, now).is_some() {
                lifted = true;
            } else if rule.minimum_age > longest.0 {
                longest = (rule.minimum_age, Some(rule.name.as_str()));
            }
        }
        let own = if lifted { Age::NONE } else { wish };
        if longest.0 > own { longest } else { (own, None) }
    }

    /// What the class is held to when no exception is looked at.
    pub fn minimum_age(&self, wish: Age) -> AgeFloor {
        self.rules.iter().fold(AgeFloor { age: wish, policy: None }, |longest, it| {
            if it.minimum_age > longest.age {
                AgeFloor { age: it.minimum_age, policy: Some(it.name.clone()) }
            } else {
                longest
            }
        })
    }

    /// Creation alone, only where some policy says so and none says otherwise.
    pub fn age_from(&self) -> AgeFrom {
        let said = |what| self.rules.iter().any(|it| it.age_from == Some(what));
        if said(AgeFrom::Creation) && !said(AgeFrom::CreationOrFirstSeen) {
            AgeFrom::Creation
        } else {
            AgeFrom::CreationOrFirstSeen
        }
    }

    /// Only where some policy says so and none says otherwise.
    pub fn pinned_ids_exempt(&self) -> bool {
        let said = |what| self.rules.iter().any(|it| it.pinned_ids == Some(what));
        said(PinnedIds::ExemptFromAge) && !said(PinnedIds::HeldByAge)
    }

    pub fn forbids_deprecated(&self) -> Option<&'a str> {
        let forbidding = |it: &&&Rule| it.deprecated == Some(DeprecatedImages::Forbidden);
        self.rules.iter().find(forbidding).map(|it| it.name.as_str())
    }
}

fn exception<'a>(rule: &'a Rule, of: &Subject<'_>, now: Timestamp) -> Option<&'a Exception> {
    rule.exceptions.iter().find(|it| now < it.until && it.image.speaks_of(of))
}
