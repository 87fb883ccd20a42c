//! What was seen, when, and what does that change?
//!
//! `previous lock × the pages of one answer → lock`
//!
//! The files are the pages of one answer. Only a complete answer to a question that was told says what is
//! not there any more.

mod summary;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use nodemolt_api::answers::{self, Answer as Read};
use nodemolt_core::ask::Owner;
use nodemolt_core::catalog::{
    Catalog, Change, ImageQuery, Observation, Outcome, Parameter, Query, merge,
};
use nodemolt_core::image::{Image, ImageId};

use super::warn;
use crate::cli::ImagesLock;
use crate::input;
use crate::output::{Answer, Exit, Failure, Look, minute};

pub(super) fn run(verb: &ImagesLock, look: Look) -> Result<Answer, Failure> {
    check(verb)?;
    let seen_at = input::moment(verb.seen);
    let asked = verb.asked.clone().unwrap_or(Query::Untold);
    let mut warnings = Vec::new();
    let mut known = match &verb.previous {
        Some(path) => read_previous(path)?,
        None => Catalog::default(),
    };
    let pages = read_pages(&verb.catalog.catalog, &mut known, &mut warnings)?;
    let outcome = verb.outcome.unwrap_or(if pages.unfinished.is_empty() {
        Outcome::Complete
    } else {
        Outcome::Incomplete
    });
    check_answered(verb, &asked, outcome, &pages)?;
    warnings.extend(doubts(verb, &asked, outcome, seen_at, &pages, &known));

    let before = known.clone();
    let (catalog, changes) = see(known, verb, asked.clone(), outcome, seen_at, pages);
    let mut talk = warn(&warnings);
    talk.push_str(&summary::tell(&before, &catalog, &changes, (&asked, outcome, seen_at), look));
    Ok(Answer { data: answers::lock::write(&catalog), talk, exit: Exit::Done })
}

/// What can be said about the words alone.
fn check(verb: &ImagesLock) -> Result<(), Failure> {
    if let Some(Query::Images(ImageQuery { owners, .. })) = &verb.asked
        && owners.contains(&Owner::Own)
        && verb.account.is_none()
    {
        return Err(Failure::usage("--asked says `owner=self`, and nobody said who that is")
            .hint("pass --account with the 12 digits of the account that asked"));
    }
    if let Some(outcome @ (Outcome::Throttled | Outcome::Denied | Outcome::Failed)) = verb.outcome
        && verb.asked.is_none()
    {
        return Err(Failure::usage(format!(
            "--outcome {outcome} says what became of a question, and no question was told"
        ))
        .hint("pass it with --asked, for example --asked owner=amazon,name='amazon-eks-node-*'"));
    }
    let unanswered = verb.outcome.is_some_and(|it| it != Outcome::Complete);
    if verb.catalog.catalog.is_empty() && !unanswered {
        return Err(Failure::usage("no catalog was given, so there is nothing to lock").hint(
            "pass --catalog FILE with the answer; or, if there was none, --asked and --outcome throttled, denied or failed",
        ));
    }
    Ok(())
}

/// Nothing was answered, and that is no answer that nothing is there.
fn check_answered(
    verb: &ImagesLock,
    asked: &Query,
    outcome: Outcome,
    pages: &Pages,
) -> Result<(), Failure> {
    let (about, answered) = match asked {
        Query::Untold => return Ok(()),
        Query::Images(_) => ("images", pages.about_images),
        Query::Parameters(_) => ("parameters", pages.about_parameters),
    };
    if answered || outcome != Outcome::Complete {
        return Ok(());
    }
    let files: Vec<String> =
        verb.catalog.catalog.iter().map(|it| format!("`{}`", it.display())).collect();
    Err(Failure::usage(format!(
        "`{asked}` asks about {about}, and {} no answer about {about}; taken as complete, it would mean that there are none",
        match files.as_slice() {
            [one] => format!("{one} is"),
            many => format!("none of {} is; there is", many.join(", ")),
        }
    ))
    .hint("pass the answer with --catalog, or say with --outcome why there is none"))
}

fn read_previous(path: &Path) -> Result<Catalog, Failure> {
    let shown = path.display();
    let bytes = input::read_bytes(path)?;
    if bytes.is_empty() {
        return Err(Failure::new(format!("the previous lock file `{shown}` is empty")).hint(
            "was the output redirected onto it? A shell empties a file before we can read it; write to another one and move it",
        ));
    }
    match answers::read(&bytes) {
        Ok(Read::Lock(catalog)) => Ok(catalog),
        Ok(Read::Plain(_)) => Err(Failure::new(format!(
            "`{shown}` is an answer of AWS and no lock file"
        ))
        .hint("pass it with --catalog; --previous takes what `nodemolt images lock` has written")),
        Err(error) => {
            Err(Failure::new(format!("cannot use `{shown}` as the previous lock file: {error}")))
        }
    }
}

/// All plain files together.
#[derive(Debug, Default)]
struct Pages {
    images: Vec<Image>,
    parameters: Vec<Parameter>,
    not_there: BTreeSet<String>,
    about_images: bool,
    about_parameters: bool,
    /// The files that said that there was more.
    unfinished: Vec<String>,
    plain: usize,
}

/// Reads the plain files as pages, and joins the lock files among them to what is known.
fn read_pages(
    files: &[std::path::PathBuf],
    known: &mut Catalog,
    warnings: &mut Vec<String>,
) -> Result<Pages, Failure> {
    let mut pages = Pages::default();
    let mut seen: BTreeMap<ImageId, (Image, String)> = BTreeMap::new();
    for path in files {
        let shown = path.display().to_string();
        let plain = match input::read_answer(path)? {
            Read::Lock(other) => {
                let changes = known.join(other);
                warnings.extend(input::disagreements(&changes).map(|it| format!("{shown}: {it}")));
                continue;
            }
            Read::Plain(plain) => plain,
        };
        for image in &plain.images {
            let here = (image.clone(), shown.clone());
            if let Some((other, file)) = seen.insert(image.id.clone(), here)
                && other != *image
            {
                warnings.push(format!(
                    "{shown}: it disagrees with {file} about {}; the later one stands",
                    image.id
                ));
            }
        }
        if !plain.complete {
            pages.unfinished.push(shown);
        }
        pages.images.extend(plain.images);
        pages.parameters.extend(plain.parameters);
        pages.not_there.extend(plain.not_there);
        pages.about_images |= plain.about_images;
        pages.about_parameters |= plain.about_parameters;
        pages.plain += 1;
    }
    Ok(pages)
}

/// What looks as if it was not meant.
fn doubts(
    verb: &ImagesLock,
    asked: &Query,
    outcome: Outcome,
    seen_at: Timestamp,
    pages: &Pages,
    known: &Catalog,
) -> Vec<String> {
    let mut doubts = Vec::new();
    let unfinished = pages.unfinished.join(", ");
    match (verb.outcome, outcome) {
        _ if pages.unfinished.is_empty() => {}
        (Some(Outcome::Complete), _) => doubts.push(format!(
            "{unfinished}: there is a NextToken, but --outcome says that the pages are complete"
        )),
        (None, _) => doubts.push(format!(
            "{unfinished}: there is a NextToken, so the answer is incomplete and nothing is taken as gone; if all pages are given, pass --outcome complete"
        )),
        (Some(_), _) => {}
    }
    let last = known.answers.get(asked).and_then(|it| it.last);
    if let Some((_, last)) = last.filter(|(_, last)| *last > seen_at) {
        doubts.push(format!(
            "this answer is of {} UTC, but `{asked}` was already answered on {} UTC; answers are merged by their time, so the later one stands",
            minute(seen_at),
            minute(last)
        ));
    }
    if let Query::Images(query) = asked {
        let foreign: Vec<&Image> =
            pages.images.iter().filter(|it| !query.asks_for(it, verb.account.as_ref())).collect();
        if let Some(first) = foreign.first() {
            doubts.push(format!(
                "{} of {} images are not what `{asked}` asks for, the first is {} ({}); they are added as if nobody had told the question",
                foreign.len(),
                pages.images.len(),
                first.id,
                first.name.escape_debug()
            ));
        }
    }
    for name in &pages.not_there {
        match asked {
            Query::Parameters(query) if query.would_list(name) => {}
            Query::Parameters(_) => doubts.push(format!(
                "SSM says that {name} is not there, but `{asked}` does not ask for it; what was known of it stands"
            )),
            Query::Untold | Query::Images(_) => doubts.push(format!(
                "SSM says that {name} is not there; pass --asked parameter={name} to write that down"
            )),
        }
    }
    doubts
}

/// Only what the question is about can be missing from the answer; the rest of the files adds.
fn see(
    known: Catalog,
    verb: &ImagesLock,
    asked: Query,
    outcome: Outcome,
    seen_at: Timestamp,
    pages: Pages,
) -> (Catalog, Vec<Change>) {
    let Pages { images, parameters, not_there, unfinished, plain, .. } = pages;
    let observed = |asked: Query, outcome, images, parameters| Observation {
        asked,
        outcome,
        seen_at: Some(seen_at),
        account: verb.account.clone(),
        images,
        parameters,
    };
    // Whatever the question is not about still was there to be seen.
    let aside = |images: Vec<Image>| {
        let told = if unfinished.is_empty() { Outcome::Complete } else { Outcome::Incomplete };
        (!images.is_empty()).then(|| observed(Query::Untold, told, images, Vec::new()))
    };
    let mut observations = Vec::new();
    match &asked {
        // Lock files alone are joined, and nothing was observed.
        Query::Untold if plain == 0 => {}
        Query::Untold => observations.push(observed(asked, outcome, images, parameters)),
        Query::Images(query) => {
            let (asked_for, foreign): (Vec<Image>, Vec<Image>) =
                images.into_iter().partition(|it| query.asks_for(it, verb.account.as_ref()));
            observations.extend(aside(foreign));
            // The values of parameters carry their own dates.
            observations.push(Observation::plain(Vec::new(), parameters));
            observations.push(observed(asked, outcome, asked_for, Vec::new()));
        }
        Query::Parameters(query) => {
            let not_there: Vec<String> =
                not_there.into_iter().filter(|it| query.would_list(it)).collect();
            observations.extend(aside(images));
            observations.push(observed(asked, outcome, Vec::new(), parameters));
            return gone(merge_all(known, observations), &not_there, seen_at);
        }
    }
    merge_all(known, observations)
}

fn merge_all(known: Catalog, observations: Vec<Observation>) -> (Catalog, Vec<Change>) {
    let mut catalog = known;
    let mut changes = Vec::new();
    for seen in observations {
        let (merged, found) = merge(catalog, seen);
        catalog = merged;
        changes.extend(found);
    }
    (catalog, changes)
}

/// SSM's list of names that are not there is an answer even where the rest is incomplete.
fn gone(
    (mut catalog, mut changes): (Catalog, Vec<Change>),
    not_there: &[String],
    seen_at: Timestamp,
) -> (Catalog, Vec<Change>) {
    for name in not_there {
        if let Some(parameter) = catalog.parameters.get_mut(name)
            && parameter.gone.is_none()
            && parameter.newest().is_none_or(|it| it.modified.at().is_none_or(|it| it <= seen_at))
        {
            parameter.gone = Some(seen_at);
            changes.push(Change::ParameterGone(name.clone()));
        }
    }
    (catalog, changes)
}
