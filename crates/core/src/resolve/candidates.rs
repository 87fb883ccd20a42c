//! Which images does a term lead to?
//!
//! `catalog × term → candidates`, each with what it requires of a node and with what speaks against it
//! so far (that it is not the release asked for). Policy and age come after.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use nodemolt_fit::{Family, Requirement, Requirements, Vocabulary, Written, label};

use super::{Problem, Refusal, Setting, Warning, refusal::OwnerRule};
use crate::ask::{Alias, AliasVersion, ParameterName, Term};
use crate::catalog::{Index, Kept, Parameter, ReadValueError, Value, read_value};
use crate::image::Image;
use crate::lookup::{self, Flavour, Minor, Release};

/// An image that a term matched.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub image: usize,
    pub term: usize,
    /// What nodes it may become; two sets where one image serves two variants. Most candidates of a term
    /// have the same.
    pub sets: Rc<[Requirements]>,
    /// The release it is, where the term speaks of releases.
    pub version: Option<Cow<'a, str>>,
    pub refusals: Vec<Refusal>,
    /// A deprecated image is the last choice here; in the history of an alias it is none at all.
    pub may_be_deprecated: bool,
    /// Found as a release, by an alias or by a public path: then one that was deprecated early is
    /// withdrawn, and not just the last choice.
    pub as_release: bool,
    /// A pinned id may be exempt from age, if policy says so.
    pub pinned_by_id: bool,
}

/// Everything found out about one term.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    pub candidates: Vec<Candidate<'a>>,
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
}

pub(super) struct Finder<'a> {
    pub index: &'a Index<'a>,
    pub setting: &'a Setting<'a>,
    pub vocabulary: &'a Vocabulary,
}

impl<'a> Finder<'a> {
    pub(super) fn find(&self, at: usize, term: &Term) -> Found<'a> {
        let mut found = Found::default();
        if let Some(alias) = &term.alias {
            self.find_alias(at, term, alias, &mut found);
        } else if let Some(parameter) = &term.parameter {
            self.find_parameter(at, term, parameter, &mut found);
        } else if let Some(id) = &term.id {
            match self.index.position(id) {
                Some(position) => {
                    let mut needs = Needs::of(term);
                    let candidate = self.candidate(at, position, &mut needs, &mut found.warnings);
                    found.candidates.push(candidate);
                }
                None => found.problems.push(Problem::ImageUnknown { id: id.clone(), via: None }),
            }
        } else {
            // These were found by all that the term says.
            let mut positions = match &term.name {
                Some(name) => self.index.named(name),
                None => self.index.tagged(term),
            };
            if term.name.is_some() && !term.tags.is_empty() {
                positions.retain(|it| term.tags_match(&self.index.at(*it).sighting.image));
            }
            let mut needs = Needs::of(term);
            found.candidates.reserve(positions.len());
            for position in positions {
                let candidate = self.candidate(at, position, &mut needs, &mut found.warnings);
                found.candidates.push(candidate);
            }
            return found;
        }
        // What a term says beside its way of finding is ANDed: what does not match was not found.
        found.candidates.retain(|it| self.also_matches(it, term));
        for candidate in &mut found.candidates {
            candidate.pinned_by_id = term.id.is_some();
        }
        found
    }

    fn also_matches(&self, candidate: &Candidate<'_>, term: &Term) -> bool {
        let image = &self.index.at(candidate.image).sighting.image;
        term.id.as_ref().is_none_or(|it| *it == image.id)
            && term.name.as_ref().is_none_or(|it| it.matches(&image.name))
            && term.tags_match(image)
    }

    fn find_alias(&self, at: usize, term: &Term, alias: &Alias, found: &mut Found<'a>) {
        let Some(kubernetes) = self.setting.kubernetes else {
            found.problems.push(Problem::KubernetesUnknown);
            return;
        };
        if let Some(problem) = unsupported(alias.family, kubernetes) {
            found.problems.push(problem);
            return;
        }
        for flavour in lookup::flavours(alias.family, kubernetes) {
            self.find_release(at, term, flavour, &alias.version, found);
        }
        if found.candidates.is_empty()
            && let AliasVersion::Pinned(version) = &alias.version
        {
            found.problems.push(Problem::ReleaseUnknown {
                alias: alias.to_string(),
                kubernetes,
                version: version.clone(),
                published: self.versions(alias.family, kubernetes),
            });
        }
    }

    /// Versions that the catalog has of a family, newest first.
    fn versions(&self, family: Family, kubernetes: Minor) -> Vec<String> {
        let mut all: Vec<_> = lookup::flavours(family, kubernetes)
            .flat_map(|it| self.index.releases(&it).to_vec())
            .filter(|(image, _)| self.index.published_by(family, self.index.at(*image)))
            .map(|(image, version)| (self.index.at(image).dated, version))
            .collect();
        all.sort_by(|a, b| b.cmp(a));
        let mut versions: Vec<String> = Vec::new();
        for (_, version) in all {
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        versions
    }

    fn find_release(
        &self,
        at: usize,
        term: &Term,
        flavour: Flavour,
        version: &AliasVersion,
        found: &mut Found<'a>,
    ) {
        match version {
            AliasVersion::Latest { back } => self.find_latest(at, term, flavour, *back, found),
            AliasVersion::Pinned(version) => self.find_pinned(at, term, flavour, version, found),
        }
    }

    /// One release and no other: by its own parameter, or by the history.
    fn find_pinned(
        &self,
        at: usize,
        term: &Term,
        flavour: Flavour,
        version: &str,
        found: &mut Found<'a>,
    ) {
        let path = flavour.pinned(version).unwrap_or_default();
        if let Some(parameter) = self.index.catalog.parameters.get(&path) {
            let value = Self::value_of(parameter, &path, found);
            if let Some(value) = value {
                self.push_pointed(at, term, flavour, Some(version), &value, &path, found);
            }
            return;
        }
        if let Some((outcome, since)) = self.index.unasked(&path) {
            found.problems.push(Problem::CouldNotAsk { what: path, outcome, since });
            return;
        }
        let mut needs = Needs::of_flavour(term, flavour);
        for (image, known) in self.index.releases(&flavour) {
            if known != version {
                continue;
            }
            let mut candidate = self.candidate(at, *image, &mut needs, &mut found.warnings);
            candidate.version = Some(Cow::Borrowed(known.as_str()));
            self.check_publisher(flavour, &mut candidate);
            found.candidates.push(candidate);
        }
    }

    /// The release that the pointer names, and those before it to fall back to.
    fn find_latest(
        &self,
        at: usize,
        term: &Term,
        flavour: Flavour,
        back: u32,
        found: &mut Found<'a>,
    ) {
        let recommended = self.recommended(flavour, found);
        let mut needs = Needs::of_flavour(term, flavour);
        let line = self.index.releases(&flavour);
        let mut candidates: Vec<Candidate<'a>> = Vec::with_capacity(line.len());
        for (image, version) in line {
            let mut candidate = self.candidate(at, *image, &mut needs, &mut found.warnings);
            candidate.version = Some(Cow::Borrowed(version.as_str()));
            candidate.may_be_deprecated = false;
            self.check_publisher(flavour, &mut candidate);
            let kept = self.index.at(*image);
            let refusal = match recommended {
                Recommended::Image(pointed)
                    if super::rank(kept) < super::rank(self.index.at(pointed)) =>
                {
                    Some(Some(self.index.at(pointed).id().clone()))
                }
                Recommended::Image(_) | Recommended::Newest => None,
                Recommended::Unknown => Some(None),
            };
            // One that the pointer has left for an older one is withdrawn, and says so by itself.
            if let Some(recommended) = refusal
                && kept.withdrawn.is_none()
            {
                candidate.refusals.push(Refusal::NotRecommended { recommended });
            }
            candidates.push(candidate);
        }
        self.step_back(back, &mut candidates);
        append(&mut found.candidates, candidates);
    }

    /// `latest~1`: the release before, counted over releases that are published and not withdrawn.
    fn step_back(&self, back: u32, candidates: &mut [Candidate<'a>]) {
        let mut places: BTreeMap<Cow<'a, str>, usize> = BTreeMap::new();
        let mut wanted: Option<Cow<'a, str>> = None;
        let back_places = usize::try_from(back).unwrap_or(usize::MAX);
        for candidate in candidates.iter() {
            if wanted.is_some() {
                break; // What is older is neither asked for nor newer.
            }
            let kept = self.index.at(candidate.image);
            if let Some(version) = &candidate.version
                && candidate.refusals.is_empty()
                && kept.brief.bootable
                && kept.withdrawn.is_none()
                && !places.contains_key(version)
            {
                if places.len() == back_places {
                    wanted = Some(version.clone());
                }
                places.insert(version.clone(), places.len());
            }
        }
        for candidate in candidates.iter_mut() {
            let place = candidate.version.as_ref().and_then(|it| places.get(it).copied());
            match (place, &wanted) {
                // What was asked for may boot although it is deprecated; what it falls back to may not.
                (Some(_), Some(wanted)) if candidate.version.as_ref() == Some(wanted) => {
                    candidate.may_be_deprecated = true;
                }
                (Some(place), _) if place < back_places => {
                    candidate.refusals.push(Refusal::NewerThanAsked {
                        asked: format!("latest~{back}"),
                        version: wanted.as_deref().map(str::to_owned),
                    });
                }
                _ => {}
            }
        }
    }

    fn recommended(&self, flavour: Flavour, found: &mut Found<'_>) -> Recommended {
        let path = flavour.pointer();
        let Some(parameter) = self.index.catalog.parameters.get(&path) else {
            if let Some((outcome, since)) = self.index.unasked(&path) {
                found.problems.push(Problem::CouldNotAsk { what: path, outcome, since });
                return Recommended::Unknown;
            }
            let history = self.index.releases(&flavour);
            let trusted = history
                .iter()
                .any(|(it, _)| self.index.published_by(flavour.family, self.index.at(*it)));
            if trusted {
                found.warnings.push(Warning::PointerNotInCatalog { path });
                return Recommended::Newest;
            }
            found.problems.push(Problem::NotInCatalog { path });
            return Recommended::Unknown;
        };
        if let Some((outcome, since)) = self.index.unasked(&path) {
            found.warnings.push(Warning::LastKnown { what: path.clone(), outcome, since });
        }
        if let Some(since) = parameter.gone {
            found.problems.push(Problem::NotThere { what: path, since });
            return Recommended::Unknown;
        }
        let Some(value) = Self::value_of(parameter, &path, found) else {
            return Recommended::Unknown;
        };
        let position = self.index.position(&value.id);
        if position.is_none() {
            found.problems.push(Problem::ImageUnknown { id: value.id, via: Some(path) });
        }
        position.map_or(Recommended::Unknown, Recommended::Image)
    }

    fn find_parameter(&self, at: usize, term: &Term, name: &ParameterName, found: &mut Found<'a>) {
        // A known public path is its alias under another name, fallback included.
        if name.pick == crate::ask::Pick::Newest
            && let Some((flavour, release)) = lookup::read_path(name.name())
        {
            let version = match release {
                Release::Recommended => AliasVersion::Latest { back: 0 },
                Release::Version(version) => AliasVersion::Pinned(version),
            };
            self.find_release(at, term, flavour, &version, found);
            let quiet = found.candidates.is_empty() && found.problems.is_empty();
            if quiet {
                found.problems.push(Problem::NotInCatalog { path: name.to_string() });
            }
            return;
        }
        let shown = name.to_string();
        let Some(parameter) = self.index.parameter(name) else {
            found.problems.push(match self.index.unasked(name.name()) {
                Some((outcome, since)) => Problem::CouldNotAsk { what: shown, outcome, since },
                None => Problem::NotInCatalog { path: shown },
            });
            return;
        };
        if let Some((outcome, since)) = self.index.unasked(name.name()) {
            found.warnings.push(Warning::LastKnown { what: shown.clone(), outcome, since });
        }
        if let Some(since) = parameter.gone {
            found.problems.push(Problem::NotThere { what: shown, since });
            return;
        }
        let value = if name.pick == crate::ask::Pick::Newest {
            Self::value_of(parameter, &shown, found)
        } else {
            match parameter.pick(&name.pick).map(|it| read_value(&it.text)) {
                Some(Ok(value)) => Some(value),
                Some(Err(error)) => {
                    found.problems.push(Problem::BadValue { parameter: shown.clone(), error });
                    None
                }
                None => {
                    found.problems.push(Problem::NotInCatalog { path: shown.clone() });
                    None
                }
            }
        };
        let Some(value) = value else { return };
        if name.pick == crate::ask::Pick::Newest {
            self.find_named_before(at, term, parameter, &value, &shown, found);
        }
        match self.index.position(&value.id) {
            None => {
                found.problems.push(Problem::ImageUnknown { id: value.id, via: Some(shown) });
            }
            Some(position) => {
                let mut needs = Needs { parameter: &value.requirements, ..Needs::of(term) };
                let candidate = self.candidate(at, position, &mut needs, &mut found.warnings);
                found.candidates.push(candidate);
            }
        }
    }

    /// A parameter of one's own does not fall back. But where the image that it names may not boot yet,
    /// nodes go on with the one that it named before and that they run already.
    fn find_named_before(
        &self,
        at: usize,
        term: &Term,
        parameter: &Parameter,
        now: &Value,
        shown: &str,
        found: &mut Found<'a>,
    ) {
        let mut seen = vec![now.id.clone()];
        for value in parameter.values().rev().filter_map(|it| read_value(&it.text).ok()) {
            if seen.contains(&value.id) || !self.setting.in_use.contains(&value.id) {
                continue;
            }
            seen.push(value.id.clone());
            let Some(position) = self.index.position(&value.id) else { continue };
            let mut needs = Needs { parameter: &value.requirements, ..Needs::of(term) };
            let mut candidate = self.candidate(at, position, &mut needs, &mut found.warnings);
            candidate
                .refusals
                .push(Refusal::NoLongerNamed { parameter: shown.to_owned(), now: now.id.clone() });
            found.candidates.push(candidate);
        }
    }

    /// The newest value that can be read. A bad newer one is told, and changes nothing.
    fn value_of(parameter: &Parameter, shown: &str, found: &mut Found<'_>) -> Option<Value> {
        if let Some(modified) = parameter.later().filter(|_| parameter.gap()) {
            let parameter = shown.to_owned();
            found.problems.push(Problem::NeedsHistory { parameter, modified });
            return None;
        }
        let mut first_error: Option<ReadValueError> = None;
        for value in parameter.values().rev() {
            match read_value(&value.text) {
                Ok(good) => {
                    if let Some(error) = first_error {
                        found.warnings.push(Warning::LastGoodValue {
                            parameter: shown.to_owned(),
                            error,
                            id: good.id.clone(),
                        });
                    }
                    return Some(good);
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        found.problems.push(match (first_error, parameter.later()) {
            (Some(error), _) => Problem::BadValue { parameter: shown.to_owned(), error },
            (None, Some(modified)) => {
                Problem::NeedsHistory { parameter: shown.to_owned(), modified }
            }
            (None, None) => Problem::NotInCatalog { path: shown.to_owned() },
        });
        None
    }

    #[expect(clippy::too_many_arguments, reason = "each is a different thing, and it is one call")]
    fn push_pointed(
        &self,
        at: usize,
        term: &Term,
        flavour: Flavour,
        version: Option<&str>,
        value: &Value,
        path: &str,
        found: &mut Found<'a>,
    ) {
        match self.index.position(&value.id) {
            None => found
                .problems
                .push(Problem::ImageUnknown { id: value.id.clone(), via: Some(path.to_owned()) }),
            Some(position) => {
                let mut needs = Needs::of_flavour(term, flavour);
                let mut candidate = self.candidate(at, position, &mut needs, &mut found.warnings);
                candidate.version = version.map(|it| Cow::Owned(it.to_owned()));
                found.candidates.push(candidate);
            }
        }
    }

    /// A look-alike name is no release: its owner must be one whose images the family's public
    /// parameters have named. EC2's group `amazon` has other accounts too.
    fn check_publisher(&self, flavour: Flavour, candidate: &mut Candidate<'_>) {
        let kept = self.index.at(candidate.image);
        if !self.index.published_by(flavour.family, kept) {
            candidate.refusals.push(wrong_owner(
                &kept.sighting.image,
                OwnerRule::Publisher {
                    family: flavour.family.alias_name().unwrap_or("custom"),
                    publishers: self.index.publishers(flavour.family).cloned().collect(),
                },
            ));
        }
    }

    fn candidate(
        &self,
        at: usize,
        position: usize,
        needs: &mut Needs<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Candidate<'a> {
        let kept = self.index.at(position);
        let as_release = !needs.variants.is_empty();
        let read = needs.on(kept.brief.architecture, self.vocabulary);
        warnings.extend(read.ignored.iter().map(|it| Warning::RequirementIgnored {
            term: at,
            image: kept.id().clone(),
            key: it.key.clone(),
            wanted: it.wanted.clone(),
            inferred: it.inferred.clone(),
        }));
        Candidate {
            image: position,
            term: at,
            sets: Rc::clone(&read.sets),
            version: kept.release.as_ref().map(|(_, version)| Cow::Borrowed(version.as_str())),
            refusals: Vec::new(),
            may_be_deprecated: true,
            as_release,
            pinned_by_id: false,
        }
    }
}

/// What images require of a node: what is inferred from them, narrowed by the term, or where the term
/// does not speak of a key by the parameter. Read once per architecture, which is all that images of one
/// term differ in.
struct Needs<'a> {
    term: &'a Term,
    variants: Vec<Vec<Written>>,
    parameter: &'a [Written],
    read: Vec<(Option<&'static str>, Read)>,
}

struct Read {
    sets: Rc<[Requirements]>,
    ignored: Vec<Ignored>,
}

/// A requirement of the term that contradicts what is inferred, in words.
struct Ignored {
    key: String,
    wanted: String,
    inferred: String,
}

impl<'a> Needs<'a> {
    fn of(term: &'a Term) -> Self {
        Self { term, variants: Vec::new(), parameter: &[], read: Vec::new() }
    }

    fn of_flavour(term: &'a Term, flavour: Flavour) -> Self {
        let variants = flavour.variants().iter().map(|it| flavour.requirements(*it)).collect();
        Self { variants, ..Self::of(term) }
    }

    fn on(&mut self, architecture: Option<&'static str>, vocabulary: &Vocabulary) -> &Read {
        let known = self.read.iter().position(|(it, _)| *it == architecture);
        let at = known.unwrap_or_else(|| {
            let read = self.read_on(architecture, vocabulary);
            self.read.push((architecture, read));
            self.read.len() - 1
        });
        &self.read[at].1
    }

    fn read_on(&self, architecture: Option<&'static str>, vocabulary: &Vocabulary) -> Read {
        let mut extra = Requirements::read(&self.term.requirements, vocabulary);
        for (key, requirement) in Requirements::read(self.parameter, vocabulary).iter() {
            if extra.get(key).is_none() {
                extra.set(key, requirement.clone());
            }
        }
        let mut inferred = Requirements::new();
        if let Some(word) = architecture {
            let requirement = Requirement::exactly(vocabulary.value(word));
            inferred.set(vocabulary.key(label::ARCH), requirement);
        }
        let mut sets: Vec<Requirements> = if self.variants.is_empty() {
            vec![inferred]
        } else {
            self.variants
                .iter()
                .map(|it| inferred.intersect(&Requirements::read(it, vocabulary)))
                .collect()
        };
        let mut ignored = Vec::new();
        for set in &mut sets {
            for (key, wanted) in extra.iter() {
                let narrowed = set.get(key).map(|inferred| inferred.intersect(wanted));
                match narrowed {
                    None => set.set(key, wanted.clone()),
                    Some(narrowed) if !narrowed.nothing() => set.set(key, narrowed),
                    Some(_) => {
                        let inferred = set.get(key).cloned().unwrap_or_else(Requirement::anything);
                        ignored.push(Ignored {
                            key: vocabulary.key_text(key).to_string(),
                            wanted: super::machines::shown(wanted, vocabulary),
                            inferred: super::machines::shown(&inferred, vocabulary),
                        });
                    }
                }
            }
        }
        sets.sort();
        sets.dedup();
        Read { sets: sets.into(), ignored }
    }
}

/// Puts all behind what is there. The first ones need not be moved.
pub(super) fn append<'a>(all: &mut Vec<Candidate<'a>>, more: Vec<Candidate<'a>>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.extend(more);
    }
}

/// What the pointer of a flavour says.
enum Recommended {
    Image(usize),
    /// There is no pointer in the catalog, but a history: the newest of it.
    Newest,
    Unknown,
}

pub(super) fn wrong_owner(image: &Image, rule: OwnerRule) -> Refusal {
    Refusal::WrongOwner { owner: image.owner.clone(), alias: image.owner_alias.clone(), rule }
}

/// What a family does not do on some Kubernetes versions, in Karpenter's words.
fn unsupported(family: Family, kubernetes: Minor) -> Option<Problem> {
    let at_least = |minor| kubernetes >= Minor { major: 1, minor };
    if family == Family::Al2 && at_least(33) {
        return Some(Problem::UnsupportedAlias(format!(
            "AL2 aliases are no longer supported on EKS 1.33+, and this cluster is {kubernetes}; use al2023@latest"
        )));
    }
    if family == Family::Windows2025 && !at_least(35) {
        return Some(Problem::UnsupportedAlias(format!(
            "Windows Server 2025 requires EKS version 1.35 or higher, current version: {kubernetes}"
        )));
    }
    None
}

/// Words in a name that say: not for everybody yet.
pub(super) fn looks_like_pre_release(kept: &Kept<'_>) -> bool {
    const WORDS: [&str; 12] = [
        "alpha",
        "beta",
        "canary",
        "dev",
        "experimental",
        "nightly",
        "pre",
        "prerelease",
        "preview",
        "rc",
        "snapshot",
        "test",
    ];
    kept.name().to_ascii_lowercase().split(|it: char| !it.is_ascii_alphanumeric()).any(|part| {
        let word = part.trim_end_matches(|it: char| it.is_ascii_digit());
        WORDS.contains(&word)
    })
}
