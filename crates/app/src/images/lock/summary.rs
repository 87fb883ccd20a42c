//! What did this answer change?
//!
//! Told to people beside the lock file; programs compare the lock files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use nodemolt_core::catalog::{
    Appeared, Catalog, Change, Outcome, ParameterValue, Query, Withdrawn,
};
use nodemolt_core::image::ImageId;

use super::super::state;
use crate::output::{Look, minute};

/// A list longer than this is looked at in the lock file.
const SHOWN_MAX: usize = 10;

/// What changed, and the answer that changed it.
pub(super) fn tell(
    before: &Catalog,
    after: &Catalog,
    changes: &[Change],
    (asked, outcome, seen_at): (&Query, Outcome, Timestamp),
    look: Look,
) -> String {
    let mut lines = Lines { text: String::new(), look };
    let at = minute(seen_at);
    match asked {
        Query::Untold => {
            lines
                .line("asked", &format!("not told, so nothing is taken as gone; seen on {at} UTC"));
        }
        Query::Images(_) | Query::Parameters(_) => {
            lines.line("asked", &format!("{asked}: {outcome}, on {at} UTC"));
        }
    }
    let heading = lines.text.len();
    let name = |id: &ImageId| match after.images.get(id) {
        Some(it) => format!("{id} {}", it.image.name),
        None => id.to_string(),
    };
    let found = Found::of(changes);

    // The first answer brings everything; a list of it would say nothing.
    let first = before.images.is_empty();
    let appeared = found.appeared.iter().map(|id| {
        let later = after.images.get(*id).is_some_and(|it| it.appeared == Appeared::Later);
        let counts =
            if later { ", after the first complete answer: first seen counts" } else { "" };
        format!("{}{counts}", name(id))
    });
    if first {
        lines.group("appeared", "image", appeared.len(), []);
    } else {
        lines.group("appeared", "image", appeared.len(), appeared);
    }
    let returned = found.returned.iter().map(|id| name(id));
    lines.group("returned", "image", returned.len(), returned);
    let vanished = found.not_listed.iter().map(|id| format!("{}: not listed any more", name(id)));
    let vanished = vanished
        .chain(
            found
                .gone
                .iter()
                .map(|id| format!("{}: not there any more, disabled ones included", name(id))),
        )
        .collect::<Vec<_>>();
    lines.group("vanished", "image", vanished.len(), vanished);
    withdrawals(before, after, seen_at, &mut lines);
    let differs =
        found.differs.iter().map(|(id, members)| format!("{}: {}", name(id), members.join(", ")));
    lines.group("changed", "image", differs.len(), differs);
    let sooner: Vec<String> = after
        .images
        .iter()
        .filter_map(|(id, now)| {
            let was = before.images.get(id)?.first_seen?;
            let is = now.first_seen.filter(|it| *it < was)?;
            Some(format!("{}: first seen on {} UTC", name(id), minute(is)))
        })
        .collect();
    lines.group("sooner", "image", sooner.len(), sooner);
    parameters(before, after, &found, &mut lines);

    if lines.text.len() == heading {
        lines.line("unchanged", "what was known stands");
    }
    let answers = after.answers.keys().filter(|it| **it != Query::Untold).count();
    lines.line(
        "known",
        &format!(
            "{}, {}, {}",
            count(after.images.len(), "image"),
            count(after.parameters.len(), "parameter"),
            count(answers, "question")
        ),
    );
    lines.text
}

/// The changes, each image once.
#[derive(Default)]
struct Found<'a> {
    appeared: BTreeSet<&'a ImageId>,
    returned: BTreeSet<&'a ImageId>,
    not_listed: BTreeSet<&'a ImageId>,
    gone: BTreeSet<&'a ImageId>,
    differs: BTreeMap<&'a ImageId, &'a [&'static str]>,
    parameters_gone: BTreeSet<&'a str>,
    parameters_differ: BTreeSet<&'a str>,
}

impl<'a> Found<'a> {
    fn of(changes: &'a [Change]) -> Self {
        let mut found = Self::default();
        for change in changes {
            match change {
                Change::Appeared(id) => {
                    found.appeared.insert(id);
                }
                Change::Returned(id) => {
                    found.returned.insert(id);
                }
                Change::Differs(id, members) => {
                    found.differs.insert(id, members);
                }
                Change::NotListed(id) => {
                    found.not_listed.insert(id);
                }
                Change::Gone(id) => {
                    found.gone.insert(id);
                }
                // Told from the catalogs, because dates that pass withdraw too.
                Change::Withdrawn(..) => {}
                Change::ParameterDiffers(name) => {
                    found.parameters_differ.insert(name);
                }
                Change::ParameterGone(name) => {
                    found.parameters_gone.insert(name);
                }
            }
        }
        found
    }
}

fn withdrawals(before: &Catalog, after: &Catalog, seen_at: Timestamp, lines: &mut Lines) {
    // What had already been so when the last answer came is no news.
    let then = before.answers.values().filter_map(|it| it.last).map(|(_, at)| at).max();
    let earlier = withdrawn(before, then.map_or(seen_at, |it| it.min(seen_at)));
    let now = withdrawn(after, seen_at);
    let told: Vec<String> = now
        .iter()
        .filter(|(id, _)| !earlier.contains_key(*id))
        .filter_map(|(id, mark)| {
            let image = &after.images.get(id)?.image;
            let because = state::because(mark, image.created.at());
            Some(format!("{id} {}: {because}", image.name))
        })
        .collect();
    lines.group("withdrawn", "image", told.len(), told);
    let back: Vec<String> = earlier
        .keys()
        .filter(|id| !now.contains_key(*id))
        .filter_map(|id| Some(format!("{id} {}", after.images.get(id)?.image.name)))
        .collect();
    lines.group("taken back", "withdrawal", back.len(), back);
}

fn withdrawn(catalog: &Catalog, at: Timestamp) -> BTreeMap<ImageId, Withdrawn> {
    let index = catalog.index(at);
    index.all().filter_map(|it| it.withdrawn.clone().map(|mark| (it.id().clone(), mark))).collect()
}

fn parameters(before: &Catalog, after: &Catalog, found: &Found<'_>, lines: &mut Lines) {
    let new = after.parameters.keys().filter(|it| !before.parameters.contains_key(*it)).count();
    lines.group("appeared", "parameter", new, []);
    let short = |it: &ParameterValue| {
        it.image().map_or_else(|| "a value that names no image".to_owned(), |it| it.to_string())
    };
    let moved: Vec<String> = after
        .parameters
        .values()
        .filter_map(|now| {
            let was = before.parameters.get(&now.name)?.newest()?;
            let is = now.newest()?;
            (was.text != is.text)
                .then(|| format!("{}: from {} to {}", now.name, short(was), short(is)))
        })
        .collect();
    lines.group("moved", "parameter", moved.len(), moved);
    let older: usize = after
        .parameters
        .values()
        .filter_map(|now| {
            let was = before.parameters.get(&now.name)?;
            let newest_too =
                usize::from(was.newest().map(|it| &it.text) != now.newest().map(|it| &it.text));
            now.values().count().checked_sub(was.values().count() + newest_too)
        })
        .sum();
    lines.group("learned", "older value", older, []);
    let differ = found.parameters_differ.iter().map(|it| {
        format!("{it}: two answers give one version different values; the later answer stands")
    });
    lines.group("disputed", "parameter", differ.len(), differ);
    let gone = found.parameters_gone.iter().map(|it| (*it).to_owned());
    lines.group("vanished", "parameter", gone.len(), gone);
}

struct Lines {
    text: String,
    look: Look,
}

impl Lines {
    fn line(&mut self, label: &str, text: &str) {
        let text = state::printable(text, self.look);
        let _ = writeln!(self.text, "{label:<12}{text}");
    }

    /// How many there are, and the first of them. Nothing, if there are none.
    fn group(
        &mut self,
        label: &str,
        noun: &str,
        all: usize,
        shown: impl IntoIterator<Item = String>,
    ) {
        if all == 0 {
            return;
        }
        self.line(label, &count(all, noun));
        let mut told = 0;
        for text in shown.into_iter().take(SHOWN_MAX) {
            self.line("", &text);
            told += 1;
        }
        if told > 0 && told < all {
            self.line("", &format!("and {} more", all - told));
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
