//! Which images are there, by flavour?

use std::cmp::Reverse;
use std::fmt::Write as _;

use nodemolt_core::catalog::Kept;
use nodemolt_core::fit::Family;
use nodemolt_core::image::NamePattern;
use nodemolt_core::lookup::{self, Flavour, Minor};

use super::item::{ImageList, Item};
use super::shelf::Shelf;
use super::{lines, state, warn};
use crate::cli::{Format, ImagesList};
use crate::input::{self, ReadCatalog};
use crate::output::{Answer, Exit, Failure, Look, Table, minute, serialize};

pub(super) fn run(verb: &ImagesList, look: Look) -> Result<Answer, Failure> {
    let wanted = verb.flavour.as_deref().map(read_wanted).transpose()?;
    let ReadCatalog { catalog, warnings } = input::read_catalog(&verb.catalog)?;
    let catalog = match verb.at {
        Some(at) => catalog.as_of(at),
        None => catalog,
    };
    let shelf = Shelf::new(&catalog, input::moment(verb.at));
    let pattern = verb.name.as_deref().map(NamePattern::new);
    let mut found: Vec<&Kept<'_>> = shelf
        .index
        .all()
        .filter(|it| pattern.as_ref().is_none_or(|pattern| pattern.matches(it.name())))
        .filter(|it| verb.kubernetes.is_none_or(|k| shelf.kubernetes(it) == Some(k)))
        .filter(|it| {
            let release = shelf.release(it.id()).map(|(flavour, _)| flavour);
            wanted.as_ref().is_none_or(|wanted| wanted.matches(release))
        })
        .collect();
    found.sort_by_cached_key(|it| order(it, &shelf));

    let mut talk = warn(&warnings);
    if found.is_empty() {
        let all = catalog.images.len();
        let _ = writeln!(talk, "no image matches; the catalog has {all}");
    }
    let data = match verb.output {
        Format::Name => lines(found.iter().map(|it| it.id().as_str())),
        Format::Json | Format::Yaml => {
            let items = found.iter().map(|it| Item::of(it, &shelf)).collect();
            serialize(verb.output, &ImageList::new(items, shelf.index.now))?
        }
        Format::Table => tables(&found, &shelf, false, !verb.no_headers, look),
        Format::Wide => tables(&found, &shelf, true, !verb.no_headers, look),
    };
    Ok(Answer { data, talk, exit: Exit::Done })
}

/// Which flavours are to be shown.
#[derive(Debug)]
enum Wanted {
    Flavour(String),
    Family(Family),
    /// `-`: what is no release of a known family.
    Others,
}

impl Wanted {
    fn matches(&self, release: Option<&Flavour>) -> bool {
        match self {
            Self::Flavour(name) => release.is_some_and(|it| it.to_string() == *name),
            Self::Family(family) => release.is_some_and(|it| it.family == *family),
            Self::Others => release.is_none(),
        }
    }
}

/// A flavour that nobody publishes would list nothing, and nobody would know why.
fn read_wanted(text: &str) -> Result<Wanted, Failure> {
    if text == "-" {
        return Ok(Wanted::Others);
    }
    let (family, rest) = match text.split_once('/') {
        Some((family, rest)) => (family, Some(rest)),
        None => (text, None),
    };
    let family = Family::from_alias_name(family)
        .map_err(|it| Failure::usage(format!("--flavour: {it}")).hint("`-` lists all others"))?;
    if rest.is_none() {
        return Ok(Wanted::Family(family));
    }
    let any = Minor { major: 1, minor: 0 };
    let names: Vec<String> = lookup::flavours(family, any).map(|it| it.to_string()).collect();
    if names.iter().any(|it| it == text) {
        return Ok(Wanted::Flavour(text.to_owned()));
    }
    Err(Failure::usage(format!("--flavour: `{text}` is not published"))
        .hint(format!("known are {}", names.join(", "))))
}

/// Flavour and Kubernetes version, then the newest first and the undated last.
fn order(kept: &Kept<'_>, shelf: &Shelf<'_>) -> impl Ord + use<> {
    // `(absent, value)`: what has none comes last.
    fn last_if_absent<T>(it: Option<T>) -> (bool, Option<T>) {
        (it.is_none(), it)
    }
    let flavour = shelf.release(kept.id()).map(|(flavour, _)| {
        let Flavour { family, processor, track, kubernetes: _ } = *flavour;
        (family, processor, track)
    });
    (
        last_if_absent(flavour),
        last_if_absent(shelf.kubernetes(kept)),
        Reverse(kept.dated),
        Reverse(kept.name().to_owned()),
        kept.id().clone(),
    )
}

/// Releases, and below them what is no release of a known family, with its name for want of one.
fn tables(found: &[&Kept<'_>], shelf: &Shelf<'_>, wide: bool, headers: bool, look: Look) -> String {
    let (releases, others): (Vec<&Kept<'_>>, Vec<&Kept<'_>>) =
        found.iter().partition(|it| shelf.release(it.id()).is_some());
    let mut text = String::new();
    if !releases.is_empty() {
        text.push_str(&table("RELEASE", &releases, shelf, wide, look).print(headers));
    }
    if !others.is_empty() {
        if headers && !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&table("NAME", &others, shelf, wide, look).print(headers));
    }
    text
}

fn table(
    called: &'static str,
    found: &[&Kept<'_>],
    shelf: &Shelf<'_>,
    wide: bool,
    look: Look,
) -> Table {
    let mut headers =
        vec!["FLAVOUR", "KUBERNETES", called, "IMAGE", "CREATED (UTC)", "AGE", "STATE"];
    // What is called by its name needs no second column for it.
    let name_apart = wide && called != "NAME";
    if name_apart {
        headers.push("NAME");
    }
    if wide {
        headers.extend(["OWNER", "FIRST SEEN (UTC)", "SOURCE", "ARCH"]);
    }
    let mut table = Table::new(&headers);
    for kept in found {
        let image = &kept.sighting.image;
        let or_dash = |it: Option<String>| it.unwrap_or_else(|| "-".to_owned());
        let release = shelf.release(&image.id);
        let name = state::printable(&image.name, look);
        let name = if name.is_empty() { "-".to_owned() } else { name };
        let mut row = vec![
            or_dash(release.map(|(flavour, _)| flavour.to_string())),
            or_dash(shelf.kubernetes(kept).map(|it| it.to_string())),
            release.map_or_else(|| name.clone(), |(_, it)| state::printable(it, look)),
            image.id.to_string(),
            state::created(kept),
            state::age(kept, shelf.index.now),
            state::state(kept, shelf, look),
        ];
        if name_apart {
            row.push(name);
        }
        if wide {
            row.extend([
                state::owner(image, look),
                or_dash(kept.sighting.first_seen.map(minute)),
                or_dash(image.source.as_ref().map(ToString::to_string)),
                state::printable(image.architecture.as_str(), look),
            ]);
        }
        table.row(row);
    }
    table
}
