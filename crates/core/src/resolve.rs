//! Which image should a new node boot, and where?
//!
//! `catalog × ask × policy × setting × now → resolution`
//!
//! Resolving cannot fail. Every image that matches a term is accounted for: it is chosen, or it is
//! refused for a reason that a person can act on. "Nothing was chosen" is an answer, not an error.

mod candidates;
mod gates;
mod machines;
mod refusal;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_fit::Requirements;

pub use machines::{Hardware, Machine, Machines, Miss, Pool, shown};
pub use refusal::{Counted, DeprecatedRule, OwnerRule, Refusal, UnknownDate};

use crate::ask::Ask;
use crate::catalog::{Index, Kept, Outcome, Query, ReadValueError};
use crate::image::{AccountId, ImageId};
use crate::lookup::Minor;
use crate::policy::{AgeFloor, Policy};
use candidates::{Candidate, Finder, Found};
use machines::{Fitting, Telling};

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
    /// The best of the candidates that a rule holds back.
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

/// Why a term, or a part of it, led nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    KubernetesUnknown,
    UnsupportedAlias(String),
    CouldNotAsk { what: String, outcome: Outcome, since: Timestamp },
    NotThere { what: String, since: Timestamp },
    NotInCatalog { path: String },
    NeedsHistory { parameter: String, modified: Timestamp },
    BadValue { parameter: String, error: ReadValueError },
    ImageUnknown { id: ImageId, via: Option<String> },
    ReleaseUnknown { alias: String, kubernetes: Minor, version: String, published: Vec<String> },
    MatchedNothing,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KubernetesUnknown => {
                write!(
                    out,
                    "an alias follows the cluster's version; pass --kubernetes, for example 1.35"
                )
            }
            Self::UnsupportedAlias(message) => out.write_str(message),
            Self::CouldNotAsk { what, outcome, since } => {
                write!(
                    out,
                    "could not ask for {what}: {outcome} on {since}, and it was never answered before"
                )
            }
            Self::NotThere { what, since } => write!(out, "{what} is not there since {since}"),
            Self::NotInCatalog { path } => write!(
                out,
                "the catalog does not hold {path}; add the output of `aws ssm get-parameters --names {path}`"
            ),
            Self::NeedsHistory { parameter, modified } => write!(
                out,
                "{parameter} was last written on {modified}, after the moment asked for; add the output of `aws ssm get-parameter-history --name {parameter}`"
            ),
            Self::BadValue { parameter, error } => {
                write!(out, "the value of {parameter} is refused as a whole: {error}")
            }
            Self::ImageUnknown { id, via: None } => write!(
                out,
                "the catalog does not hold {id}; add the output of `aws ec2 describe-images --image-ids {id}`"
            ),
            Self::ImageUnknown { id, via: Some(via) } => write!(
                out,
                "{via} names {id}, which the catalog does not hold; add the output of `aws ec2 describe-images --image-ids {id}`"
            ),
            Self::ReleaseUnknown { alias, kubernetes, version, published } => {
                write!(out, "{alias} is not in the catalog for Kubernetes {kubernetes}")?;
                let near = published.iter().find(|it| it.trim_start_matches('v') == version);
                match (near, published.first()) {
                    (Some(near), _) => write!(out, "; did you mean {near}?"),
                    (None, Some(newest)) => write!(out, "; the newest there is {newest}"),
                    (None, None) => Ok(()),
                }
            }
            Self::MatchedNothing => write!(out, "the term matches no image of the catalog"),
        }
    }
}

/// What a person should know although an answer was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    RequirementIgnored {
        term: usize,
        image: ImageId,
        key: String,
        wanted: String,
        inferred: String,
    },
    KubeletUnknown {
        image: ImageId,
        name: String,
    },
    LooksLikePreRelease {
        image: ImageId,
        name: String,
    },
    Deprecated {
        image: ImageId,
        since: Option<Timestamp>,
    },
    TermsOverlap {
        terms: (usize, usize),
        types: usize,
        example: String,
    },
    LastGoodValue {
        parameter: String,
        error: ReadValueError,
        id: ImageId,
    },
    LastKnown {
        what: String,
        outcome: Outcome,
        since: Timestamp,
    },
    PointerNotInCatalog {
        path: String,
    },
    NoSuchInUse {
        image: ImageId,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RequirementIgnored { term, image, key, wanted, inferred } => write!(
                out,
                "term {}: `{key}` {wanted} contradicts what {image} itself requires ({inferred}), which stands",
                term + 1
            ),
            Self::KubeletUnknown { image, name } => write!(
                out,
                "the kubelet version of {image} ({name}) is not known, so it was not compared with the API server's"
            ),
            Self::LooksLikePreRelease { image, name } => {
                write!(out, "a wildcard chose {image} ({name}), which looks like a pre-release")
            }
            Self::Deprecated { image, since: Some(since) } => {
                write!(
                    out,
                    "{image} is deprecated since {since} and was chosen for want of another"
                )
            }
            Self::Deprecated { image, since: None } => {
                write!(
                    out,
                    "{image} has a deprecation date that cannot be read and was chosen for want of another"
                )
            }
            Self::TermsOverlap { terms: (a, b), types, example } => write!(
                out,
                "terms {} and {} overlap on {types} instance type{}, for example {example}; the first of the chosen images wins there",
                a + 1,
                b + 1,
                if *types == 1 { "" } else { "s" }
            ),
            Self::LastGoodValue { parameter, error, id } => write!(
                out,
                "the newest value of {parameter} is refused as a whole ({error}); the last good one stands: {id}"
            ),
            Self::LastKnown { what, outcome, since } => write!(
                out,
                "could not ask for {what} ({outcome} on {since}); what was known before stands"
            ),
            Self::PointerNotInCatalog { path } => write!(
                out,
                "the catalog does not hold {path}, so the newest release of the history stands for the recommended one"
            ),
            Self::NoSuchInUse { image } => {
                write!(out, "{image} is in use and no term matches it")
            }
        }
    }
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
    /// The chosen image that comes nearest, and all that stands between.
    Nothing { nearest: Option<(ImageId, Arc<[Miss]>)> },
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
    choice.held.sort_by_cached_key(|it| {
        (index.get(&it.id).map(rank), it.requirements.written(vocabulary))
    });
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
        types,
        warnings,
    }
}

/// What the requirement sets ended with.
struct Choice {
    chosen: Vec<Chosen>,
    held: Vec<Held>,
    /// For each candidate, the best of the images that beat it in one of its sets.
    beaten_by: Vec<Option<usize>>,
    /// For each candidate, whether it won at least one of its sets.
    won: Vec<bool>,
}

/// Per requirement set the best image.
fn choose(index: &Index<'_>, candidates: &[Candidate<'_>], setting: &Setting<'_>) -> Choice {
    let mut sets: BTreeMap<&Requirements, Vec<usize>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        for set in candidate.sets.iter() {
            sets.entry(set).or_default().push(at);
        }
    }
    let mut choice = Choice {
        chosen: Vec::new(),
        held: Vec::new(),
        beaten_by: vec![None; candidates.len()],
        won: vec![false; candidates.len()],
    };
    for (requirements, mut members) in sets {
        members.sort_by_cached_key(|it| {
            let candidate = &candidates[*it];
            let kept = index.at(candidate.image);
            let deprecated = kept.brief.deprecated;
            // Whoever is refused for age comes last, whatever else speaks for it: it stays only where
            // nothing else may boot.
            (!candidate.refusals.is_empty(), deprecated, rank(kept), candidate.term)
        });
        let mut winners: Vec<(usize, Hardware)> = Vec::new();
        for at in &members {
            let candidate = &candidates[*at];
            if !eligible(candidate, index, setting) {
                continue;
            }
            let image = &index.at(candidate.image).sighting.image;
            let better = winners.iter().find(|(winner, theirs)| {
                candidates[*winner].image == candidate.image || theirs.covers_image(image)
            });
            match better {
                Some((winner, _)) if candidates[*winner].image == candidate.image => {
                    choice.won[*at] = true;
                }
                Some((winner, _)) => {
                    // Of those that beat it in its sets the best is told, whichever set comes first.
                    let by = candidates[*winner].image;
                    let told = choice.beaten_by[*at].get_or_insert(by);
                    if rank(index.at(by)) < rank(index.at(*told)) {
                        *told = by;
                    }
                }
                None => {
                    choice.won[*at] = true;
                    winners.push((*at, Hardware::of(image)));
                }
            }
        }
        // Whoever is only waiting for age, and would come before what was chosen.
        let next = |than: Option<usize>| upcoming(index, candidates, &members, &winners, than);
        for (at, hardware) in &winners {
            let candidate = &candidates[*at];
            let kept = index.at(candidate.image);
            let mut terms: Vec<usize> = members
                .iter()
                .map(|it| &candidates[*it])
                .filter(|it| it.image == candidate.image)
                .map(|it| it.term)
                .collect();
            terms.sort_unstable();
            terms.dedup();
            choice.chosen.push(Chosen {
                id: kept.id().clone(),
                name: kept.name().to_owned(),
                version: candidate.version.as_deref().map(str::to_owned),
                dated: kept.dated,
                requirements: requirements.clone(),
                hardware: hardware.clone(),
                terms,
                deprecated: kept.brief.deprecated,
                only_in_use: !candidate.refusals.is_empty(),
                next: next(Some(*at)),
            });
        }
        if winners.is_empty()
            && let Some(held) = members
                .iter()
                .map(|it| &candidates[*it])
                .find(|it| !it.refusals.is_empty() && it.refusals.iter().all(Refusal::held))
        {
            let kept = index.at(held.image);
            choice.held.push(Held {
                requirements: requirements.clone(),
                hardware: Hardware::of(&kept.sighting.image),
                id: kept.id().clone(),
                refusal: held.refusals[0].clone(),
                next: next(None),
            });
        }
    }
    choice
}

/// An image in use is exempt from age, and from age only.
fn eligible(candidate: &Candidate<'_>, index: &Index<'_>, setting: &Setting<'_>) -> bool {
    candidate.refusals.is_empty()
        || candidate.refusals.iter().all(Refusal::spares_what_is_in_use)
            && setting.in_use.contains(index.at(candidate.image).id())
}

/// The first of the too young that will be old enough, of those that would then be chosen.
fn upcoming(
    index: &Index<'_>,
    candidates: &[Candidate<'_>],
    members: &[usize],
    winners: &[(usize, Hardware)],
    than: Option<usize>,
) -> Option<Next> {
    let best = than.map(|it| &candidates[it]);
    let image = |it: &Candidate<'_>| &index.at(it.image).sighting.image;
    let order = |it: &Candidate<'_>| {
        let kept = index.at(it.image);
        (kept.sighting.image.deprecated_by(index.now), rank(kept))
    };
    members
        .iter()
        .map(|it| &candidates[*it])
        // Few are only waiting; what follows is asked of those alone.
        .filter_map(|it| {
            let mut at = None;
            for refusal in &it.refusals {
                at = at.max(Some(refusal.ends_at()?));
            }
            at.map(|at| (at, it))
        })
        .filter(|(_, it)| {
            best.is_none_or(|best| {
                // An image in use that is still too young is succeeded by itself, or by what is better.
                let better = !best.refusals.is_empty() || order(it) < order(best);
                better && machines::covers(image(it), image(best))
            })
        })
        // Nor will it be chosen while something better boots wherever it does.
        .filter(|(_, it)| {
            !winners.iter().any(|(winner, theirs)| {
                let winner = &candidates[*winner];
                winner.refusals.is_empty()
                    && order(winner) <= order(it)
                    && theirs.covers_image(image(it))
            })
        })
        .min_by_key(|(at, it)| (*at, order(it)))
        .map(|(at, it)| {
            let kept = index.at(it.image);
            Next { id: kept.id().clone(), name: kept.name().to_owned(), at }
        })
}

/// Every image that a term matched, once; and every verdict of every term.
#[expect(clippy::type_complexity, reason = "two answers of one pass")]
fn account(
    index: &Index<'_>,
    mut candidates: Vec<Candidate<'_>>,
    choice: &Choice,
    setting: &Setting<'_>,
) -> (BTreeMap<ImageId, Refused>, Vec<Vec<(ImageId, Verdict)>>) {
    let terms = candidates.iter().map(|it| it.term + 1).max().unwrap_or(0);
    let mut numbers = vec![0; terms];
    for candidate in &candidates {
        numbers[candidate.term] += 1;
    }
    let mut verdicts: Vec<Vec<(usize, Verdict)>> =
        numbers.into_iter().map(Vec::with_capacity).collect();
    // By position, which is the order of ids: what stands behind the last one is new.
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|it| candidates[*it].image);
    let mut refused: Vec<(ImageId, Refused)> = Vec::with_capacity(candidates.len());
    let chosen: BTreeSet<&ImageId> = choice.chosen.iter().map(|it| &it.id).collect();
    for at in order {
        let candidate = &mut candidates[at];
        let kept = index.at(candidate.image);
        let verdict = if choice.won[at] {
            Verdict::Chosen
        } else {
            // They stand in the order of the gates.
            let mut all = std::mem::take(&mut candidate.refusals).into_iter();
            match (all.next(), choice.beaten_by[at]) {
                (Some(first), _) => Verdict::Refused(first, all.collect()),
                (None, Some(by)) => {
                    let by = index.at(by).id().clone();
                    Verdict::Refused(Refusal::Superseded { by }, Vec::new())
                }
                // Unreachable by construction: who is eligible has won or was beaten.
                (None, None) => Verdict::Chosen,
            }
        };
        if let Verdict::Refused(refusal, also) = &verdict
            && !chosen.contains(kept.id())
        {
            if refused.last().is_none_or(|(last, _)| last != kept.id()) {
                let first = Refused {
                    name: kept.name().to_owned(),
                    version: candidate.version.take().map(Cow::into_owned),
                    dated: kept.dated,
                    refusal: refusal.clone(),
                    also: also.clone(),
                    in_use: setting.in_use.contains(kept.id()),
                    terms: Vec::new(),
                };
                refused.push((kept.id().clone(), first));
            }
            let Some((_, entry)) = refused.last_mut() else { continue };
            if refusal.gate() > entry.refusal.gate() {
                entry.refusal = refusal.clone();
                entry.also.clone_from(also);
            }
            if !entry.terms.contains(&candidate.term) {
                entry.terms.push(candidate.term);
            }
        }
        verdicts[candidate.term].push((candidate.image, verdict));
    }
    let refused = refused.into_iter().collect();
    let verdicts = verdicts
        .into_iter()
        .map(|mut all| {
            // A variant may refuse what another chooses; a term says of an image only the best.
            all.sort_by_cached_key(|(image, verdict)| {
                (rank(index.at(*image)), matches!(verdict, Verdict::Refused(..)))
            });
            all.dedup_by(|b, a| a.0 == b.0);
            all.into_iter().map(|(image, it)| (index.at(image).id().clone(), it)).collect()
        })
        .collect();
    (refused, verdicts)
}

/// The pools by name, with what each adds to a node; one without anything where none is known.
fn pools_of<'a>(setting: &'a Setting<'_>) -> Vec<(Option<&'a str>, Option<Requirements>)> {
    if setting.pools.is_empty() {
        return vec![(None, None)];
    }
    let mut pools: Vec<&Pool> = setting.pools.iter().collect();
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    let vocabulary = &setting.machines.vocabulary;
    pools.iter().map(|it| (Some(it.name.as_str()), Some(it.read(vocabulary)))).collect()
}

/// Whether it was asked what this type would boot.
fn asked(machine: &Machine, setting: &Setting<'_>) -> bool {
    match &setting.types {
        TypesAsked::Any => machine.for_nodes,
        TypesAsked::Named(names) => names.contains(&*machine.name),
    }
}

/// Per pool and instance type the first image that fits.
fn answer_types(choice: &Choice, setting: &Setting<'_>) -> Vec<TypeAnswer> {
    let machines = setting.machines;
    let pools = pools_of(setting);
    let mut answers = Vec::with_capacity(pools.len() * machines.len());
    for (name, wanted) in &pools {
        let wanted = wanted.as_ref();
        let launched = wanted.map(|it| machines.in_pool(it));
        let chosen: Vec<_> = choice
            .chosen
            .iter()
            .map(|it| machines.fitting(wanted, &it.requirements, &it.hardware))
            .collect();
        let mut nearest = Nearest::new(choice, wanted, machines, &chosen);
        let held: Vec<_> = choice
            .held
            .iter()
            .map(|it| machines.fitting(wanted, &it.requirements, &it.hardware))
            .collect();
        for (at, machine) in machines.iter().enumerate() {
            if !asked(machine, setting) || launched.as_ref().is_some_and(|it| !it.contains(at)) {
                continue;
            }
            let boots = if let Some(first) = chosen.iter().position(|it| it.contains(at)) {
                Boots::Image(first)
            } else if let Some(first) = held.iter().position(|it| it.contains(at)) {
                Boots::HeldBack(first)
            } else {
                Boots::Nothing { nearest: nearest.of(at, machine) }
            };
            answers.push(TypeAnswer {
                pool: name.map(str::to_owned),
                instance_type: Arc::clone(&machine.name),
                boots,
            });
        }
    }
    answers
}

/// The image, and all that stands between.
type NearestImage = Option<(ImageId, Arc<[Miss]>)>;

/// Of the chosen images the first of those of which the least stands between.
struct Nearest<'a> {
    choice: &'a Choice,
    pool: Option<&'a Requirements>,
    machines: &'a Machines,
    fitting: &'a [Fitting],
    telling: Telling<'a>,
    by_name: bool,
    /// What was found last: machines are many, and most miss the same as some other.
    found: VecDeque<(usize, NearestImage)>,
}

/// To look through more than this takes longer than to find it again.
const FOUND_MAX: usize = 16;

impl<'a> Nearest<'a> {
    fn new(
        choice: &'a Choice,
        pool: Option<&'a Requirements>,
        machines: &'a Machines,
        fitting: &'a [Fitting],
    ) -> Self {
        let telling = machines.telling(choice.chosen.iter().map(|it| &it.requirements));
        let by_name = choice.chosen.iter().any(|it| it.hardware.names_types());
        Self { choice, pool, machines, fitting, telling, by_name, found: VecDeque::new() }
    }

    fn of(&mut self, at: usize, machine: &Machine) -> Option<(ImageId, Arc<[Miss]>)> {
        if !self.by_name
            && let Some((_, answer)) =
                self.found.iter().find(|(found, _)| self.telling.alike(*found, at))
        {
            return answer.clone();
        }
        let answer = self.find(at, machine);
        self.found.truncate(FOUND_MAX - 1);
        self.found.push_front((at, answer.clone()));
        answer
    }

    /// Counted before anything is put into words.
    fn find(&self, at: usize, machine: &Machine) -> Option<(ImageId, Arc<[Miss]>)> {
        let Self { choice, pool, machines: Machines { vocabulary, .. }, .. } = *self;
        let (nearest, _) = choice
            .chosen
            .iter()
            .zip(self.fitting)
            // Of two that miss equally much, the one that asks for what this machine has: on a machine
            // with an AMD GPU the NVIDIA image is nearer than the one for machines without a GPU.
            .min_by_key(|(it, fitting)| {
                let met = machines::met(machine, pool, &it.requirements);
                (fitting.misses_number(at, machine, &it.hardware), Reverse(met))
            })?;
        let (asked, hardware) = (&nearest.requirements, &nearest.hardware);
        let misses = machines::misses(machine, pool, asked, hardware, vocabulary);
        Some((nearest.id.clone(), misses.into()))
    }
}

/// A requirement that leads nowhere is told of the images that it was meant to narrow, and not of all
/// the releases before them.
fn worth_telling(warning: &Warning, choice: &Choice) -> bool {
    let Warning::RequirementIgnored { image, .. } = warning else { return true };
    choice
        .chosen
        .iter()
        .map(|it| &it.id)
        .chain(choice.held.iter().map(|it| &it.id))
        .any(|it| it == image)
}

/// What the chosen ones give reason to say.
fn worth_knowing(
    index: &Index<'_>,
    ask: &Ask,
    setting: &Setting<'_>,
    chosen: &[Chosen],
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for choice in chosen {
        let Some(kept) = index.get(&choice.id) else { continue };
        let image = &kept.sighting.image;
        if setting.kubernetes.is_some() && kept.kubelet().is_none() {
            warnings.push(Warning::KubeletUnknown {
                image: image.id.clone(),
                name: image.name.clone(),
            });
        }
        if choice.deprecated {
            warnings.push(Warning::Deprecated {
                image: image.id.clone(),
                since: image.deprecated.at(),
            });
        }
        let floating = choice.terms.iter().filter_map(|it| ask.terms.get(*it)).any(|term| {
            term.alias.is_none()
                && term.id.is_none()
                && term.parameter.is_none()
                && term.name.as_ref().is_none_or(crate::image::NamePattern::wild)
        });
        if floating && candidates::looks_like_pre_release(kept) {
            warnings.push(Warning::LooksLikePreRelease {
                image: image.id.clone(),
                name: image.name.clone(),
            });
        }
    }
    warnings
}

/// Two terms whose images fit the same type: only one of them boots there.
fn overlaps(chosen: &[Chosen], setting: &Setting<'_>) -> Vec<Warning> {
    let terms: BTreeSet<usize> = chosen.iter().flat_map(|it| it.terms.iter().copied()).collect();
    if terms.len() < 2 {
        return Vec::new();
    }
    let mut found: BTreeMap<(usize, usize), BTreeSet<&str>> = BTreeMap::new();
    for (_, pool) in pools_of(setting) {
        let pool = pool.as_ref();
        let launched = pool.map(|it| setting.machines.in_pool(it));
        let fitting: Vec<_> = chosen
            .iter()
            .map(|it| setting.machines.fitting(pool, &it.requirements, &it.hardware))
            .collect();
        for (at, machine) in setting.machines.iter().enumerate() {
            if !asked(machine, setting) || launched.as_ref().is_some_and(|it| !it.contains(at)) {
                continue;
            }
            let fitting: BTreeSet<usize> = chosen
                .iter()
                .zip(&fitting)
                .filter(|(_, fitting)| fitting.contains(at))
                .filter_map(|(it, _)| it.terms.first().copied())
                .collect();
            for first in &fitting {
                for second in fitting.range(first + 1..) {
                    found.entry((*first, *second)).or_default().insert(&machine.name);
                }
            }
        }
    }
    found
        .into_iter()
        .map(|(terms, types)| Warning::TermsOverlap {
            terms,
            types: types.len(),
            example: types.first().map_or_else(String::new, |it| (*it).to_owned()),
        })
        .collect()
}

fn sort_and_dedupe(warnings: &mut Vec<Warning>) {
    warnings.sort_by_cached_key(ToString::to_string);
    warnings.dedup();
}
