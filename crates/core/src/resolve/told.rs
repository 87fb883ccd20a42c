//! What is said of a resolution beside its answer?
//!
//! `terms × choice → problems + warnings`, each in words that a person can act on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use super::choose::Choice;
use super::per_type::{asked, pools_of};
use super::{Chosen, Setting, candidates};
use crate::ask::Ask;
use crate::catalog::{Index, Outcome, ReadValueError};
use crate::image::ImageId;
use crate::lookup::Minor;

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

/// A requirement that leads nowhere is told of the images that it was meant to narrow, and not of all
/// the releases before them.
pub(super) fn worth_telling(warning: &Warning, choice: &Choice) -> bool {
    let Warning::RequirementIgnored { image, .. } = warning else { return true };
    choice
        .chosen
        .iter()
        .map(|it| &it.id)
        .chain(choice.held.iter().map(|it| &it.id))
        .any(|it| it == image)
}

/// What the chosen ones give reason to say.
pub(super) fn worth_knowing(
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
pub(super) fn overlaps(chosen: &[Chosen], setting: &Setting<'_>) -> Vec<Warning> {
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

pub(super) fn sort_and_dedupe(warnings: &mut Vec<Warning>) {
    warnings.sort_by_cached_key(ToString::to_string);
    warnings.dedup();
}
