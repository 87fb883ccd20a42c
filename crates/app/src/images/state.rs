//! How is an image's state told to people?

use jiff::Timestamp;
use nodemolt_core::catalog::{Because, Kept, Standing, Withdrawn};
use nodemolt_core::image::{Date, Image};

use super::shelf::{Publisher, Role, Shelf};
use crate::output::{Look, Mark, length, minute};

/// Glyph and word of its state, and beside it whatever else decides if it boots.
pub(super) fn state(kept: &Kept<'_>, shelf: &Shelf<'_>, look: Look) -> String {
    let mut marks = vec![standing(&kept.sighting.standing(shelf.index.now), look)];
    if let Some(mark) = &kept.withdrawn {
        marks.push(look.mark(Mark::Refused, &format!("withdrawn{}", on_day(mark.at))));
    }
    if shelf.named_by(kept.id(), Role::Recommends).next().is_some() {
        marks.push(look.mark(Mark::Good, "recommended"));
    }
    marks.extend(shelf.named_by(kept.id(), Role::Names).map(|it| {
        let parameter = printable(it, look);
        look.mark(Mark::Passed, &format!("in {parameter}"))
    }));
    if shelf.publisher(kept) == Some(Publisher::Stranger) {
        marks.push(look.mark(Mark::Careful, "not by its publisher"));
    }
    if kept.sighting.image.allowed == Some(false) {
        marks.push(look.mark(Mark::Refused, "not allowed"));
    }
    match &kept.sighting.image.created {
        Date::Missing => marks.push(look.mark(Mark::Careful, "undated")),
        Date::Unreadable(text) => {
            let text = printable(text, look);
            marks.push(look.mark(Mark::Careful, &format!("unreadable date `{text}`")));
        }
        Date::At(_) if kept.from_the_future => {
            marks.push(look.mark(Mark::Careful, "from the future"));
        }
        Date::At(_) if dated_by_source(kept) => marks.push(look.mark(Mark::Passed, "copy")),
        Date::At(_) => {}
    }
    marks.join(", ")
}

pub(super) fn standing(standing: &Standing, look: Look) -> String {
    match standing {
        Standing::Available => look.mark(Mark::Good, "available"),
        Standing::Deprecated { since } => {
            look.mark(Mark::Passed, &format!("deprecated{}", on_day(*since)))
        }
        Standing::Disabled => look.mark(Mark::Refused, "disabled"),
        Standing::NotVisible { since } => {
            look.mark(Mark::Careful, &format!("not visible{}", on_day(Some(*since))))
        }
        Standing::Deregistered { since } => {
            look.mark(Mark::Refused, &format!("deregistered{}", on_day(*since)))
        }
        Standing::Unready(word) => {
            let word = printable(word, look);
            look.mark(Mark::Waiting, &format!("unready ({word})"))
        }
    }
}

/// ` 2026-11-08`; a day says enough in a column.
fn on_day(at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |it| format!(" {}", it.strftime("%Y-%m-%d")))
}

/// Whether its source says how old it is.
pub(super) fn dated_by_source(kept: &Kept<'_>) -> bool {
    kept.dated.is_some() && kept.dated != kept.sighting.image.created.at()
}

/// Why an image counts as withdrawn, in a sentence that goes on from "withdrawn: ".
pub(super) fn because(mark: &Withdrawn, created: Option<Timestamp>) -> String {
    let after = match (created, mark.at) {
        (Some(created), Some(at)) => {
            format!("{} after its creation", length(at.duration_since(created)))
        }
        _ => "soon after its creation".to_owned(),
    };
    match &mark.because {
        Because::PointerMovedBack { parameter, to } => {
            format!("{parameter} was moved back to the older {to}")
        }
        Because::DeprecatedEarly => format!("deprecated {after}"),
        Because::DisabledEarly => format!("disabled {after}"),
        Because::UnsharedEarly => format!("not listed any more, {after}"),
        Because::Recalled => "it stands on a list of recalls".to_owned(),
    }
}

pub(super) fn created(kept: &Kept<'_>) -> String {
    match &kept.sighting.image.created {
        Date::At(at) => minute(*at),
        Date::Missing => "unknown".to_owned(),
        Date::Unreadable(_) => "unreadable".to_owned(),
    }
}

pub(super) fn age(kept: &Kept<'_>, now: Timestamp) -> String {
    match (kept.dated, kept.sighting.image.created.at()) {
        (Some(dated), _) => length(now.duration_since(dated)),
        // It is not there yet, by its own account.
        (None, Some(created)) => format!("-{}", length(created.duration_since(now))),
        (None, None) => "?".to_owned(),
    }
}

/// What others wrote, without what would move the cursor or paint the screen.
pub(super) fn printable(text: &str, look: Look) -> String {
    look.plain(&crate::output::printable(text))
}

/// `602401143452 (amazon)`.
pub(super) fn owner(image: &Image, look: Look) -> String {
    let owner = image.owner.as_ref().map_or("-", |it| it.as_str());
    match &image.owner_alias {
        Some(alias) => format!("{owner} ({})", printable(alias, look)),
        None => owner.to_owned(),
    }
}
