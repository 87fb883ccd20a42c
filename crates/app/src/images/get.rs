//! What is known of this image?

use std::fmt::Write as _;

use jiff::Timestamp;
use nodemolt_core::catalog::{Appeared, Catalog, Kept};
use nodemolt_core::image::{Date, ImageId, NamePattern};

use super::item::{ImageList, Item};
use super::shelf::{Naming, Publisher, Shelf};
use super::{lines, state, warn};
use crate::cli::{Format, ImagesGet};
use crate::input::{self, ReadCatalog};
use crate::output::{Answer, Exit, Failure, Look, minute, relative, serialize};

/// More proposals are a list and not a hint.
const NEAREST_MAX: usize = 3;
/// Of the characters of an id this many may differ in one that was meant: people drop or swap a digit,
/// and any two ids share most of their first ones.
const DISTANCE_MAX: usize = 6;

pub(super) fn run(verb: &ImagesGet, look: Look) -> Result<Answer, Failure> {
    let ReadCatalog { catalog: whole, warnings } = input::read_catalog(&verb.catalog)?;
    let catalog = match verb.at {
        Some(at) => whole.clone().as_of(at),
        None => whole.clone(),
    };
    let shelf = Shelf::new(&catalog, input::moment(verb.at));
    let mut talk = warn(&warnings);
    let mut exit = Exit::Done;
    let mut found: Vec<&Kept<'_>> = Vec::new();
    for id in &verb.ids {
        match shelf.index.get(id) {
            Some(kept) if found.iter().any(|it| it.id() == kept.id()) => {}
            Some(kept) => found.push(kept),
            None => {
                talk.push_str(&unknown(id, &whole, &shelf));
                exit = Exit::Failed;
            }
        }
    }
    let data = match verb.output {
        Format::Name => lines(found.iter().map(|it| it.id().as_str())),
        Format::Json | Format::Yaml => {
            let items = found.iter().map(|it| Item::of(it, &shelf)).collect();
            serialize(verb.output, &ImageList::new(items, shelf.index.now))?
        }
        Format::Table | Format::Wide => {
            let pages: Vec<String> = found.iter().map(|it| page(it, &shelf, look)).collect();
            pages.join("\n")
        }
    };
    Ok(Answer { data, talk, exit })
}

fn unknown(id: &ImageId, whole: &Catalog, shelf: &Shelf<'_>) -> String {
    let mut text = format!("error: {id} is not in the catalog\n");
    if let Some(created) = whole.images.get(id).and_then(|it| it.image.created.at()) {
        let _ = writeln!(
            text,
            "hint: it was created on {} UTC, after the moment that --at asks about",
            minute(created)
        );
        return text;
    }
    if let Some(naming) = shelf.namings(id).first() {
        let _ = writeln!(
            text,
            "hint: {} names it, but no file describes it; `aws ec2 describe-images --image-ids {id}` would",
            naming.parameter
        );
        return text;
    }
    let mut near: Vec<(usize, &ImageId)> = shelf
        .index
        .all()
        .map(|it| (strsim::damerau_levenshtein(id.as_str(), it.id().as_str()), it.id()))
        .filter(|(distance, _)| *distance <= DISTANCE_MAX)
        .collect();
    near.sort_unstable();
    if near.is_empty() {
        let known = shelf.index.len();
        let _ = writeln!(
            text,
            "hint: `nodemolt images list` with the same files shows the {known} that are"
        );
        return text;
    }
    for (_, near) in near.into_iter().take(NEAREST_MAX) {
        let name = whole.images.get(near).map_or("", |it| it.image.name.as_str());
        let _ = writeln!(text, "hint: did you mean {near} ({})?", name.escape_debug());
    }
    text
}

/// Label and text, one under the other.
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, label: &str, text: &str) {
        let _ = writeln!(self.text, "{label:<13}{text}");
    }

    /// The first under the label, the others under the first.
    fn lines(&mut self, label: &str, texts: impl IntoIterator<Item = String>) {
        for (at, text) in texts.into_iter().enumerate() {
            self.line(if at == 0 { label } else { "" }, &text);
        }
    }

    fn maybe(&mut self, label: &str, text: Option<String>) {
        if let Some(text) = text {
            self.line(label, &text);
        }
    }
}

fn page(kept: &Kept<'_>, shelf: &Shelf<'_>, look: Look) -> String {
    let now = shelf.index.now;
    let sighting = kept.sighting;
    let image = &sighting.image;
    let show = |it: &str| state::printable(it, look);
    let name = show(&image.name);
    let mut page = Page { text: String::new() };

    page.line("image", image.id.as_str());
    page.line("name", if image.name.is_empty() { "-" } else { &name });
    page.maybe("description", image.description.as_deref().map(show));
    page.maybe("release", release(kept, shelf, look));
    page.line("state", &state::state(kept, shelf, look));
    page.maybe(
        "withdrawn",
        kept.withdrawn.as_ref().map(|mark| {
            let because = show(&state::because(mark, image.created.at()));
            match mark.at {
                Some(at) => format!("{}: {because}", moment(at, now)),
                None => because,
            }
        }),
    );
    page.line("owner", &owner(kept, shelf, look));
    page.line("created", &created(kept, now, look));
    page.maybe("dated", dated(kept, now));
    page.maybe("deprecated", date(&image.deprecated, now, look));
    page.line("first seen", &first_seen(kept, now));
    page.maybe("last seen", sighting.last_seen.map(|it| moment(it, now)));
    page.lines("seen by", sighting.seen_by.iter().map(|it| show(it)));
    page.line("needs", &needs(kept, look));
    page.maybe(
        "copy of",
        image.source.as_ref().map(|source| match &image.source_region {
            Some(region) => format!("{source} in {}", show(region)),
            None => source.to_string(),
        }),
    );
    if image.allowed == Some(false) {
        page.line("allowed", "no: the account's Allowed AMIs setting excludes it");
    }
    page.lines("product", image.product_codes.iter().map(|it| show(it)));
    let patterns = |all: &[NamePattern]| {
        let all: Vec<&str> = all.iter().map(NamePattern::as_str).collect();
        (!all.is_empty()).then(|| show(&all.join(", ")))
    };
    page.maybe("only on", patterns(&image.supported_types));
    page.maybe("not on", patterns(&image.unsupported_types));
    page.lines("named by", namings(shelf.namings(&image.id), look));
    let told = image.public_parameters.iter().filter(|path| {
        let in_catalog = |it: &Naming| it.parameter == **path;
        !shelf.namings(&image.id).iter().any(in_catalog)
    });
    page.lines("EC2 reports", told.map(|it| show(it)));
    page.lines("tags", image.tags.iter().map(|(key, value)| show(&format!("{key}={value}"))));
    page.text
}

/// Absolute for tickets, relative for people.
fn moment(at: Timestamp, now: Timestamp) -> String {
    format!("{} UTC ({})", minute(at), relative(at, now))
}

fn date(date: &Date, now: Timestamp, look: Look) -> Option<String> {
    match date {
        Date::At(at) => Some(moment(*at, now)),
        Date::Missing => None,
        Date::Unreadable(text) => {
            Some(format!("`{}`, which cannot be read", state::printable(text, look)))
        }
    }
}

fn created(kept: &Kept<'_>, now: Timestamp, look: Look) -> String {
    date(&kept.sighting.image.created, now, look).unwrap_or_else(|| "not told by EC2".to_owned())
}

fn dated(kept: &Kept<'_>, now: Timestamp) -> Option<String> {
    let at = kept.dated.filter(|_| state::dated_by_source(kept))?;
    Some(format!("{}: its source's date, by which it is ordered and ages", moment(at, now)))
}

fn release(kept: &Kept<'_>, shelf: &Shelf<'_>, look: Look) -> Option<String> {
    let (flavour, version) = shelf.release(kept.id())?;
    let version = state::printable(version, look);
    Some(format!("{flavour} {version} for Kubernetes {}", flavour.kubernetes))
}

fn owner(kept: &Kept<'_>, shelf: &Shelf<'_>, look: Look) -> String {
    let mut text = state::owner(&kept.sighting.image, look);
    let family =
        shelf.release(kept.id()).and_then(|(flavour, _)| flavour.family.alias_name()).unwrap_or("");
    match shelf.publisher(kept) {
        None => {}
        Some(Publisher::Known) => {
            let _ = write!(text, ", who publishes {family}");
        }
        Some(Publisher::Untold) => {
            let _ = write!(
                text,
                "; who publishes {family} is not told: no public parameter of it is in the catalog"
            );
        }
        Some(Publisher::Stranger) => {
            let _ = write!(text, ", who does not publish {family}: only the name says so");
        }
    }
    text
}

fn first_seen(kept: &Kept<'_>, now: Timestamp) -> String {
    match (kept.sighting.first_seen, kept.sighting.appeared) {
        (None, _) => "not told: no lock file has seen it".to_owned(),
        (Some(at), Appeared::WithFirstAnswer) => {
            format!("{}, with the first answer", moment(at, now))
        }
        (Some(at), Appeared::Later) => {
            format!("{}, after the first complete answer: it counts for its age", moment(at, now))
        }
    }
}

/// What it needs of the machine.
fn needs(kept: &Kept<'_>, look: Look) -> String {
    let image = &kept.sighting.image;
    let architecture = match image.architecture.as_str() {
        "unknown" => "unknown architecture",
        known => known,
    };
    let mut words = vec![architecture.to_owned()];
    words.extend(image.platform.clone());
    words.extend(image.boot_mode.as_ref().map(|it| format!("boot mode {}", it.as_str())));
    words.extend(image.tpm.as_ref().map(|it| format!("TPM {it}")));
    words.extend(image.virtualization.clone());
    words.extend(image.root_device.as_ref().map(|it| format!("{it} root")));
    words.extend(image.ena.filter(|it| !it).map(|_| "no ENA".to_owned()));
    state::printable(&words.join(", "), look)
}

/// When, then who: the names are too long to read past.
fn namings(all: &[Naming], look: Look) -> Vec<String> {
    let unknown = || "unknown".to_owned();
    let when = |it: &Naming| {
        let from = it.from.map_or_else(unknown, minute);
        match &it.ended {
            None => format!("since {from}"),
            Some(ended) => format!("{from} to {}", ended.at.map_or_else(unknown, minute)),
        }
    };
    let width = all.iter().map(|it| when(it).len()).max().unwrap_or(0);
    all.iter()
        .map(|it| {
            let mut text = format!("{:<width$}   {}", when(it), it.parameter);
            // SSM's own way to write a version.
            if let Some(version) = it.version {
                let _ = write!(text, ":{version}");
            }
            match it.ended.as_ref().map(|it| &it.to) {
                None => {}
                Some(Some(to)) => {
                    let _ = write!(text, ", then {to}");
                }
                Some(None) => text.push_str(", then the parameter was gone"),
            }
            state::printable(&text, look)
        })
        .collect()
}
