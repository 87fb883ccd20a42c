//! How is an image found without looking at all of them?
//!
//! One pass over the catalog, then every question touches only what it is about: names by their
//! beginning, tags by key and value, releases by flavour. A thousand classes ask the same catalog.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use jiff::Timestamp;
use nodemolt_fit::Family;

use super::{Appeared, Because, Catalog, Outcome, Parameter, Presence, Query, Sighting, Withdrawn};
use crate::ask::{ParameterName, Term};
use crate::image::{AccountId, ImageId, NamePattern, State};
use crate::lookup::{self, Flavour, Minor, Release};
use crate::policy::Subject;
use crate::resolve::rank;

/// A catalog, shelved.
#[derive(Debug)]
pub struct Index<'a> {
    pub catalog: &'a Catalog,
    pub now: Timestamp,
    kept: Vec<Kept<'a>>,
    names: Names,
    by_tag: BTreeMap<&'a str, Tagged<'a>>,
    releases: BTreeMap<Flavour, Vec<(usize, String)>>,
    publishers: BTreeMap<Family, BTreeSet<AccountId>>,
    by_arn: BTreeMap<&'a str, &'a Parameter>,
}

/// An image on its shelf, with what had to be computed from the rest of the catalog.
#[derive(Debug)]
pub struct Kept<'a> {
    pub sighting: &'a Sighting,
    /// By which it is ordered and ages. None where the date is missing, unreadable or still to come.
    pub dated: Option<Timestamp>,
    /// The date is known and lies in the future.
    pub from_the_future: bool,
    pub withdrawn: Option<Withdrawn>,
    /// The release it claims to be.
    pub release: Option<(Flavour, String)>,
    /// What every question begins with, out of the image itself: an image is large and lies anywhere,
    /// these lie beside each other.
    pub(crate) brief: Brief<'a>,
    /// Read when somebody asks for it, which for most images nobody does.
    kubelet: OnceLock<Option<Minor>>,
}

/// The images that have a tag, whatever its value, with the value.
#[derive(Debug, Default)]
struct Tagged<'a> {
    all: Vec<(&'a str, usize)>,
    /// Sorted when somebody asks for a value: most tags are never asked for, and some of them (a commit,
    /// a build's number) are different on every image.
    by_value: OnceLock<BTreeMap<String, Vec<usize>>>,
}

/// So many values tell whether a tag is rare enough to be followed.
const SAMPLE: usize = 200;

impl Tagged<'_> {
    /// By a sample: where it is wrong, more images are looked at than need be, and no others are found.
    fn about_how_many(&self, wanted: Option<&NamePattern>) -> usize {
        let Some(pattern) = wanted else { return self.all.len() };
        let step = self.all.len().div_ceil(SAMPLE).max(1);
        let sample = self.all.iter().step_by(step);
        sample.filter(|(value, _)| pattern.matches(value)).count() * step
    }

    fn with(&self, wanted: Option<&NamePattern>) -> Vec<usize> {
        let Some(pattern) = wanted else { return self.all.iter().map(|(_, at)| *at).collect() };
        let by_value = self.by_value.get_or_init(|| {
            let mut by_value: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (value, at) in &self.all {
                match by_value.get_mut(*value) {
                    Some(images) => images.push(*at),
                    None => {
                        by_value.insert((*value).to_owned(), vec![*at]);
                    }
                }
            }
            by_value
        });
        if !pattern.wild() {
            // A pattern without wildcards is still a pattern: `a\*` means `a*`.
            return by_value.get(&pattern.prefix()).cloned().unwrap_or_default();
        }
        let matching = by_value.iter().filter(|(value, _)| pattern.matches(value));
        matching.flat_map(|(_, images)| images.iter().copied()).collect()
    }
}

/// All tags of all images, in the order of the images.
fn shelve_tags(catalog: &Catalog) -> BTreeMap<&str, Tagged<'_>> {
    let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
    let mut shelves: Vec<(&str, Tagged<'_>)> = Vec::new();
    // Most images have the same tags: the second tag of one is the second of the next.
    let mut likely: Vec<usize> = Vec::new();
    for (at, sighting) in catalog.images.values().enumerate() {
        for (place, (key, value)) in sighting.image.tags.iter().enumerate() {
            let guess = likely.get(place).copied().filter(|it| shelves[*it].0 == key);
            let shelf = guess.unwrap_or_else(|| {
                let shelf = *keys.entry(key).or_insert_with(|| {
                    shelves.push((key, Tagged::default()));
                    shelves.len() - 1
                });
                likely.resize(likely.len().max(place + 1), shelf);
                likely[place] = shelf;
                shelf
            });
            shelves[shelf].1.all.push((value, at));
        }
    }
    shelves.into_iter().collect()
}

/// The first characters as one number: most names differ there, and numbers are compared where they are.
/// Who is equal in this may still differ behind it.
fn beginning(name: &str) -> u128 {
    let mut bytes = [0; 16];
    let length = name.len().min(bytes.len());
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    u128::from_be_bytes(bytes)
}

/// All names in one text, sorted, so that a pattern that begins with a wildcard is sought in one go.
#[derive(Debug)]
struct Names {
    text: String,
    /// Where each name begins in the text, and whose it is.
    starts: Vec<(usize, usize)>,
}

/// To look into so few names is quicker than to look for them.
const SOUGHT_MIN: usize = 2000;

/// Stands behind each name.
const END: char = '\0';

impl Names {
    fn new(sorted: &[(u128, &str, usize)]) -> Self {
        let bytes = sorted.iter().map(|(_, name, _)| name.len() + END.len_utf8()).sum();
        let mut names =
            Self { text: String::with_capacity(bytes), starts: Vec::with_capacity(sorted.len()) };
        for (_, name, at) in sorted {
            names.starts.push((names.text.len(), *at));
            names.text.push_str(name);
            names.text.push(END);
        }
        names
    }

    fn end(&self, place: usize) -> usize {
        self.starts.get(place + 1).map_or(self.text.len(), |(start, _)| *start)
    }

    fn name(&self, place: usize) -> &str {
        &self.text[self.starts[place].0..self.end(place) - END.len_utf8()]
    }

    /// Names are sought where there are at least so many to look into.
    fn matching(&self, pattern: &NamePattern, sought_min: usize) -> Vec<usize> {
        let prefix = pattern.prefix();
        let first = partition(0..self.starts.len(), |it| self.name(it) < prefix.as_str());
        let last =
            partition(first..self.starts.len(), |it| self.name(it).starts_with(prefix.as_str()));
        let mut found = Vec::new();
        let mut check = |place: usize| {
            if pattern.matches(self.name(place)) {
                found.push(self.starts[place].1);
            }
        };
        let telling = pattern.longest_part();
        if telling.is_empty() || telling.contains(END) || last - first < sought_min {
            (first..last).for_each(check);
            return found;
        }
        // Every name that matches has this part in it; what has it may still not match.
        let end = self.starts.get(last).map_or(self.text.len(), |(start, _)| *start);
        let mut from = self.starts[first].0;
        while let Some(at) = self.text[from..end].find(telling.as_str()) {
            let place = self.starts.partition_point(|(start, _)| *start <= from + at) - 1;
            check(place);
            from = self.end(place);
        }
        found
    }
}

/// The first place that is not so, where all before it are.
fn partition(places: std::ops::Range<usize>, so: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (places.start, places.end);
    while low < high {
        let middle = low.midpoint(high);
        if so(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Some of what an image says.
#[derive(Debug)]
pub(crate) struct Brief<'a> {
    pub(crate) id: ImageId,
    pub(crate) name: &'a str,
    /// The version that its name tells, whatever its processor.
    pub(crate) version: Option<&'a str>,
    pub(crate) owner: Option<AccountId>,
    pub(crate) owner_alias: Option<&'a str>,
    /// Kubernetes' word.
    pub(crate) architecture: Option<&'static str>,
    pub(crate) allowed: Option<bool>,
    /// Its standing is one in which images boot.
    pub(crate) bootable: bool,
    pub(crate) deprecated: bool,
    /// When it was first seen, where it came before our eyes.
    pub(crate) seen_later: Option<Timestamp>,
}

impl<'a> Index<'a> {
    pub(super) fn new(catalog: &'a Catalog, now: Timestamp) -> Self {
        let moved_back = catalog.moves_back();
        // Many images and few words: each is read where it was first seen.
        let mut aliases: BTreeSet<&'a str> = BTreeSet::new();
        let kept: Vec<Kept<'a>> = catalog
            .images
            .values()
            .map(|sighting| keep(catalog, sighting, &moved_back, &mut aliases, now))
            .collect();

        let mut by_name: Vec<(u128, &str, usize)> = kept
            .iter()
            .enumerate()
            .map(|(at, it)| (beginning(it.brief.name), it.brief.name, at))
            .collect();
        by_name.sort_unstable();

        let mut index = Self {
            catalog,
            now,
            kept,
            names: Names::new(&by_name),
            by_tag: shelve_tags(catalog),
            releases: BTreeMap::new(),
            publishers: catalog.find_publishers(),
            by_arn: catalog
                .parameters
                .values()
                .filter_map(|it| it.arn.as_deref().map(|arn| (arn, it)))
                .collect(),
        };
        index.find_releases();
        index
    }

    /// The history of every flavour: by name, by the public parameters that EC2 reports on the image, by
    /// versioned paths, and by what the pointer named before.
    fn find_releases(&mut self) {
        let mut found: BTreeSet<(Flavour, usize, String)> = BTreeSet::new();
        for (at, kept) in self.kept.iter().enumerate() {
            if let Some((flavour, version)) = &kept.release {
                found.insert((*flavour, at, version.clone()));
            }
            for path in &kept.sighting.image.public_parameters {
                if let Some((flavour, release)) = lookup::read_path(path) {
                    found.insert((flavour, at, kept.version_or(&release)));
                }
            }
        }
        for parameter in self.catalog.parameters.values() {
            let Some((flavour, release)) = lookup::read_path(&parameter.name) else { continue };
            for id in parameter.values().filter_map(super::ParameterValue::image) {
                if let Some(at) = self.position(&id) {
                    found.insert((flavour, at, self.kept[at].version_or(&release)));
                }
            }
        }
        let mut releases: BTreeMap<Flavour, Vec<(usize, String)>> = BTreeMap::new();
        for (flavour, at, version) in found {
            let line = releases.entry(flavour).or_default();
            match line.last_mut() {
                // A version says more than a name that stands for one.
                Some((last, known)) if *last == at => {
                    if *known == self.kept[at].brief.name {
                        *known = version;
                    }
                }
                Some(_) | None => line.push((at, version)),
            }
        }
        // What a public parameter names is a release, whatever the image is called.
        for (flavour, line) in &releases {
            for (at, version) in line {
                self.kept[*at].release.get_or_insert_with(|| (*flavour, version.clone()));
            }
        }
        for line in releases.values_mut() {
            line.sort_by_key(|(at, _)| rank(&self.kept[*at]));
        }
        self.releases = releases;
    }

    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub fn all(&self) -> impl Iterator<Item = &Kept<'a>> {
        self.kept.iter()
    }

    pub fn at(&self, position: usize) -> &Kept<'a> {
        &self.kept[position]
    }

    pub fn position(&self, id: &ImageId) -> Option<usize> {
        self.kept.binary_search_by(|it| it.brief.id.cmp(id)).ok()
    }

    pub fn get(&self, id: &ImageId) -> Option<&Kept<'a>> {
        self.position(id).map(|it| &self.kept[it])
    }

    pub fn named(&self, pattern: &NamePattern) -> Vec<usize> {
        self.names.matching(pattern, SOUGHT_MIN)
    }

    /// Images that have all the tags of a term, found by the tag that the fewest images have.
    pub fn tagged(&self, term: &Term) -> Vec<usize> {
        let mut fewest: Option<(usize, &Tagged<'_>, Option<&NamePattern>)> = None;
        for (key, wanted) in &term.tags {
            let Some(tagged) = self.by_tag.get(key.as_str()) else { return Vec::new() };
            let about = tagged.about_how_many(wanted.as_ref());
            if fewest.is_none_or(|(it, ..)| about < it) {
                fewest = Some((about, tagged, wanted.as_ref()));
            }
        }
        let mut found = fewest.map_or_else(Vec::new, |(_, tagged, wanted)| tagged.with(wanted));
        found.retain(|it| term.tags_match(&self.kept[*it].sighting.image));
        found.sort_unstable();
        found
    }

    /// Everything that is or claims to be a release of this flavour, best first.
    pub fn releases(&self, flavour: &Flavour) -> &[(usize, String)] {
        self.releases.get(flavour).map_or(&[], Vec::as_slice)
    }

    /// Whether the image's owner has published releases of this family.
    pub fn published_by(&self, family: Family, kept: &Kept<'_>) -> bool {
        kept.brief
            .owner
            .as_ref()
            .is_some_and(|it| self.publishers.get(&family).is_some_and(|all| all.contains(it)))
    }

    pub fn publishers(&self, family: Family) -> impl Iterator<Item = &AccountId> {
        self.publishers.get(&family).into_iter().flatten()
    }

    pub fn parameter(&self, name: &ParameterName) -> Option<&'a Parameter> {
        // A shared parameter is somebody else's: its name may stand in our account for another thing.
        if name.account().is_some() {
            let arn = name.to_string();
            let bare = match name.pick {
                crate::ask::Pick::Newest => arn.as_str(),
                crate::ask::Pick::Version(_) | crate::ask::Pick::Label(_) => {
                    arn.rsplit_once(':').map_or(arn.as_str(), |(bare, _)| bare)
                }
            };
            if let Some(found) = self.by_arn.get(bare) {
                return Some(found);
            }
            return self.catalog.parameters.get(name.name()).filter(|it| it.arn.is_none());
        }
        self.catalog.parameters.get(name.name())
    }

    /// Whether the last try to read this parameter failed, and how. Of two queries at one moment the one
    /// that was answered counts.
    pub fn unasked(&self, name: &str) -> Option<(Outcome, Timestamp)> {
        self.catalog
            .answers
            .iter()
            .filter(|(query, _)| match query {
                Query::Parameters(query) => query.would_list(name),
                Query::Images(_) | Query::Untold => false,
            })
            .filter_map(|(_, answered)| answered.last)
            .max_by_key(|(outcome, at)| (*at, Reverse(*outcome)))
            .filter(|(outcome, _)| *outcome != Outcome::Complete)
    }
}

impl Index<'_> {
    /// Questions about images that were never answered in full: what they would have listed is not known
    /// to be absent.
    pub fn unanswered(&self) -> impl Iterator<Item = (&Query, Outcome, Timestamp)> {
        self.catalog.answers.iter().filter_map(|(query, answered)| match (query, answered.last) {
            (Query::Images(_), Some((outcome, at))) if answered.first_complete.is_none() => {
                Some((query, outcome, at))
            }
            _ => None,
        })
    }
}

impl<'a> Kept<'a> {
    pub fn name(&self) -> &'a str {
        self.brief.name
    }

    pub fn id(&self) -> &'a ImageId {
        &self.sighting.image.id
    }

    /// The kubelet's minor, where the image says it.
    pub fn kubelet(&self) -> Option<Minor> {
        *self.kubelet.get_or_init(|| {
            let known = || self.release.as_ref().map(|(flavour, _)| flavour.kubernetes);
            lookup::kubelet_of(&self.sighting.image).or_else(known)
        })
    }

    pub(crate) fn subject(&self) -> Subject<'_> {
        // A release may be known by its parameter alone.
        let known = || self.release.as_ref().map(|(_, version)| version.as_str());
        let version = self.brief.version.or_else(known);
        Subject { id: &self.brief.id, name: self.brief.name, version }
    }

    fn version_or(&self, release: &Release) -> String {
        match (&self.release, release) {
            (Some((_, version)), _) | (None, Release::Version(version)) => version.clone(),
            (None, Release::Recommended) => self.name().to_owned(),
        }
    }
}

fn keep<'a>(
    catalog: &'a Catalog,
    sighting: &'a Sighting,
    moved_back: &BTreeMap<ImageId, Withdrawn>,
    aliases: &mut BTreeSet<&'a str>,
    now: Timestamp,
) -> Kept<'a> {
    let known = catalog.dated_image(&sighting.image);
    let dated = known.filter(|it| *it <= now);
    let pointers = moved_back.get(&sighting.image.id).filter(|it| it.at.is_none_or(|at| at <= now));
    // What the pointers say now beats what was once noted about them.
    let noted = sighting.withdrawn_by(now);
    let withdrawn = match (pointers, noted) {
        (Some(mark), _) => Some(mark.clone()),
        (None, Some(Withdrawn { because: Because::PointerMovedBack { parameter, .. }, .. }))
            if catalog.parameters.get(&parameter).is_some_and(|it| {
                it.newest().and_then(super::ParameterValue::image).as_ref()
                    == Some(&sighting.image.id)
            }) =>
        {
            None
        }
        (None, noted) => noted,
    };
    let image = &sighting.image;
    let named = lookup::named(&image.name);
    let owner_alias = image.owner_alias.as_deref().map(|alias| {
        aliases.get(alias).copied().unwrap_or_else(|| {
            aliases.insert(alias);
            alias
        })
    });
    let brief = Brief {
        id: image.id.clone(),
        name: &image.name,
        version: named.map(|(_, version)| version),
        owner: image.owner.clone(),
        owner_alias,
        architecture: image.architecture.kubernetes(),
        allowed: image.allowed,
        bootable: sighting.presence == Presence::Listed && image.state == State::Available,
        deprecated: image.deprecated_by(now),
        seen_later: sighting.first_seen.filter(|_| sighting.appeared == Appeared::Later),
    };
    Kept {
        sighting,
        dated,
        from_the_future: known.is_some() && dated.is_none(),
        withdrawn,
        release: named
            .filter(|(flavour, _)| flavour.processor.same_as(&image.architecture))
            .map(|(flavour, version)| (flavour, version.to_owned())),
        brief,
        kubelet: OnceLock::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{NamePattern, Names, beginning};

    proptest! {
        /// Whether names are sought in one text or looked into one by one, the same are found.
        #[test]
        fn seeking_finds_what_looking_finds(
            names in prop::collection::vec("[ab\\x00]{0,20}", 0..30),
            pattern in "[ab*?\\x00]{0,7}",
        ) {
            let pattern = NamePattern::new(&pattern);
            let mut sorted: Vec<(u128, &str, usize)> =
                names.iter().enumerate().map(|(at, it)| (beginning(it), it.as_str(), at)).collect();
            sorted.sort_unstable();
            let plainly: Vec<usize> =
                sorted.iter().filter(|it| pattern.matches(it.1)).map(|it| it.2).collect();
            let shelf = Names::new(&sorted);
            prop_assert_eq!(&shelf.matching(&pattern, 1), &plainly);
            prop_assert_eq!(&shelf.matching(&pattern, usize::MAX), &plainly);
            prop_assert!(sorted.is_sorted_by_key(|it| (it.1, it.2)));
        }
    }
}
