//! Which image should a new node boot, and where?
//!
//! `catalog × ask × policy × setting × now → resolution`
//!
//! Resolving cannot fail. Every image that matches a term is accounted for: it is chosen, or it is
//! refused for a reason that a person can act on. "Nothing was chosen" is an answer, not an error.

mod candidates;
mod choose;
mod gates;
mod machines;
mod per_type;
mod refusal;
mod told;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_fit::Requirements;

pub use machines::{Hardware, Machine, Machines, Miss, Pool, shown};
pub use refusal::{Counted, DeprecatedRule, OwnerRule, Refusal, UnknownDate};
pub use told::{Problem, Warning};

use crate::ask::Ask;
use crate::catalog::{Index, Kept, Outcome, Query};
use crate::image::{AccountId, ImageId};
use crate::lookup::Minor;
use crate::policy::{AgeFloor, Policy};
use candidates::{Candidate, Finder, Found};
use choose::{account, choose};
use per_type::answer_types;
use told::{overlaps, sort_and_dedupe, worth_knowing, worth_telling};

/// Where and for what is resolved.
#[derive(Debug)]
pub struct Setting<'a> {
    pub kubernetes: Option<Minor>,
    pub account: Option<AccountId>,
    pub machines: &'a Machines,
    pub types: TypesAsked,
    /// The pools of this class. None means that nothing is known of pools.
    pub pools: Vec<Pool>,
    /// What nodes of this class run already: exempt from age, and from age only.
    pub in_use: BTreeSet<ImageId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypesAsked {
    /// Whatever there is; that some type has no image is then no failure.
    Any,
    /// These, each of which must have one.
    Named(BTreeSet<String>),
}

/// What the ask chose, and what it refused.
#[derive(Debug)]
pub struct Resolution {
    /// The images that may boot, in the order in which an instance type tries them.
    pub chosen: Vec<Chosen>,
    /// Every other image that a term matched.
    pub refused: BTreeMap<ImageId, Refused>,
    pub terms: Vec<TermReport>,
    /// Requirement sets that had candidates and got no image.
    pub held: Vec<Held>,
    /// Those of them of which no rule of ours holds the best back: it is not there any more.
    pub lost: Vec<Held>,
    pub types: Vec<TypeAnswer>,
    pub warnings: Vec<Warning>,
    pub minimum_age: AgeFloor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub id: ImageId,
    pub name: String,
    pub version: Option<String>,
    pub dated: Option<Timestamp>,
    pub requirements: Requirements,
    pub hardware: Hardware,
    pub terms: Vec<usize>,
    pub deprecated: bool,
    /// Too young, and chosen only because nodes run it already and nothing else may boot.
    pub only_in_use: bool,
    /// What will take its place, and when, if nothing else happens.
    pub next: Option<Next>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    pub id: ImageId,
    pub name: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub name: String,
    pub version: Option<String>,
    pub dated: Option<Timestamp>,
    pub refusal: Refusal,
    /// Whatever else speaks against it.
    pub also: Vec<Refusal>,
    pub in_use: bool,
    pub terms: Vec<usize>,
}

impl Refused {
    /// When all that stops it has ended, if all of it ends by itself.
    pub fn ends_at(&self) -> Option<Timestamp> {
        let mut last = self.refusal.ends_at()?;
        for also in &self.also {
            last = last.max(also.ends_at()?);
        }
        Some(last)
    }
}

/// A set of requirements without an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub requirements: Requirements,
    pub hardware: Hardware,
    /// The best of the candidates that a rule holds back, or that cannot be used at all.
    pub id: ImageId,
    pub refusal: Refusal,
    pub next: Option<Next>,
}

#[derive(Debug)]
pub struct TermReport {
    pub text: String,
    pub problems: Vec<Problem>,
    /// Best first.
    pub verdicts: Vec<(ImageId, Verdict)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Chosen,
    Refused(Refusal, Vec<Refusal>),
}

/// One instance type's answer, for one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeAnswer {
    pub pool: Option<String>,
    /// Shared by all answers: there are many, and few names.
    pub instance_type: Arc<str>,
    pub boots: Boots,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boots {
    /// Position in `chosen`.
    Image(usize),
    /// A rule holds back the image that it would boot; position in `held`.
    HeldBack(usize),
    /// The chosen image that comes nearest, and all that stands between; and the one that it would boot if that
    /// could be used, by its position in `lost`.
    Nothing { nearest: Option<(ImageId, Arc<[Miss]>)>, lost: Option<usize> },
}

/// The whole answer in one word, for exit codes and conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    Found,
    HeldBack,
    NoMatch,
}

impl Resolution {
    pub fn answer(&self, asked: &TypesAsked) -> Answer {
        let any = |what: fn(&Boots) -> bool| self.types.iter().any(|it| what(&it.boots));
        if any(|it| matches!(it, Boots::HeldBack(_))) {
            return Answer::HeldBack;
        }
        let unfit = match asked {
            TypesAsked::Named(_) => any(|it| matches!(it, Boots::Nothing { .. })),
            TypesAsked::Any => !self.types.is_empty() && !any(|it| matches!(it, Boots::Image(_))),
        };
        if self.chosen.is_empty() && !self.held.is_empty() {
            Answer::HeldBack
        } else if self.chosen.is_empty() || unfit {
            Answer::NoMatch
        } else {
            Answer::Found
        }
    }
}

/// By which the best image comes first: newest, then greater name, then smaller id. One without a date
/// that can be believed comes last.
pub(crate) fn rank<'a>(
    kept: &Kept<'a>,
) -> (Reverse<Option<Timestamp>>, Reverse<&'a str>, &'a ImageId) {
    (Reverse(kept.dated), Reverse(kept.name()), kept.id())
}

pub fn resolve(index: &Index<'_>, ask: &Ask, policy: &Policy, setting: &Setting<'_>) -> Resolution {
    let ruling = policy.for_class(&ask.labels);
    let vocabulary = &setting.machines.vocabulary;
    let finder = Finder { index, setting, vocabulary };

    let mut warnings = Vec::new();
    let mut reports = Vec::new();
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    for (at, term) in ask.terms.iter().enumerate() {
        let Found { candidates: found, mut problems, warnings: told } = finder.find(at, term);
        warnings.extend(told);
        let absent = problems.iter().all(|it| matches!(it, Problem::ImageUnknown { .. }));
        if found.is_empty() && absent {
            // Not in the catalog may mean that nobody answered.
            let what = |(query, outcome, since): (&Query, Outcome, Timestamp)| {
                Problem::CouldNotAsk { what: query.to_string(), outcome, since }
            };
            problems.extend(index.unanswered().map(what));
        }
        if found.is_empty() && problems.is_empty() {
            problems.push(Problem::MatchedNothing);
        }
        reports.push(TermReport { text: term.to_string(), problems, verdicts: Vec::new() });
        candidates::append(&mut candidates, found);
    }
    for candidate in &mut candidates {
        gates::refuse(candidate, index, ask, &ruling, setting);
    }

    let mut choice = choose(index, &candidates, setting);
    // Requirements themselves are ordered by when their words were first met; people's words are not.
    choice.chosen.sort_by_cached_key(|it| {
        let kept = index.get(&it.id);
        (it.only_in_use, it.deprecated, kept.map(rank), it.requirements.written(vocabulary))
    });
    for held in [&mut choice.held, &mut choice.lost] {
        held.sort_by_cached_key(|it| {
            (index.get(&it.id).map(rank), it.requirements.written(vocabulary))
        });
    }
    let types = answer_types(&choice, setting);
    warnings.retain(|it| worth_telling(it, &choice));
    for id in &setting.in_use {
        if !candidates.iter().any(|it| index.at(it.image).id() == id) {
            warnings.push(Warning::NoSuchInUse { image: id.clone() });
        }
    }
    warnings.extend(worth_knowing(index, ask, setting, &choice.chosen));
    warnings.extend(overlaps(&choice.chosen, setting));
    sort_and_dedupe(&mut warnings);

    let (refused, verdicts) = account(index, candidates, &choice, setting);
    for (report, verdicts) in reports.iter_mut().zip(verdicts) {
        report.verdicts = verdicts;
    }
    Resolution {
        minimum_age: ruling.minimum_age(ask.minimum_age),
        chosen: choice.chosen,
        refused,
        terms: reports,
        held: choice.held,
        lost: choice.lost,
        types,
        warnings,
    }
}
