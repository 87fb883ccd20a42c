//! How does a resolution read?

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;

use super::view::{
    CandidateView, ClassView, ImageView, RefusalView, ResolutionList, TypeView, short_key,
};
use crate::output::{Look, Mark, Table, age, minute, printable, relative};

/// The ids of what was chosen, each once, in the order in which they are tried.
pub(super) fn names(list: &ResolutionList) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for chosen in list.items.iter().flat_map(|it| &it.chosen) {
        if !seen.contains(&chosen.image.id.as_str()) {
            seen.push(&chosen.image.id);
        }
    }
    seen.push("");
    seen.join("\n")
}

pub(super) fn table(
    list: &ResolutionList,
    look: Look,
    wide: bool,
    headers: bool,
    show_types: bool,
) -> String {
    let mut columns =
        vec!["CLASS", "IMAGE", "NAME", "ARCH", "CREATED (UTC)", "AGE", "TYPES", "FOR", "STATE"];
    if wide {
        columns.extend(["RELEASE", "OWNER", "TERMS", "HARDWARE", "NEXT"]);
    }
    let mut table = Table::new(&columns);
    for class in &list.items {
        for row in class_rows(class, list.at, look, wide) {
            table.row(row);
        }
    }
    let mut text = table.print(headers);
    if show_types || wide || list.items.iter().any(|it| it.types_asked_by_name) {
        text.push('\n');
        text.push_str(&types_table(list, look, headers));
    }
    text
}

fn class_rows(class: &ClassView, now: Timestamp, look: Look, wide: bool) -> Vec<Vec<String>> {
    let cells = |image: &ImageView, types: String, state: String, for_what: &str| {
        vec![
            class.class.clone(),
            image.id.clone(),
            printable(&image.name),
            image.architecture.clone(),
            created(image),
            age(image.created, now),
            types,
            for_what.to_owned(),
            state,
        ]
    };
    let more = |image: &ImageView, terms: &[usize], hardware: &[String], next: String| {
        let terms: Vec<String> = terms.iter().map(ToString::to_string).collect();
        vec![
            image.release.clone().unwrap_or_else(|| "-".to_owned()),
            image.owner.clone().unwrap_or_else(|| "?".to_owned()),
            if terms.is_empty() { "-".to_owned() } else { terms.join(",") },
            if hardware.is_empty() { "-".to_owned() } else { hardware.join(", ") },
            next,
        ]
    };
    let mut rows = Vec::new();
    for chosen in &class.chosen {
        let state = match (chosen.only_in_use, chosen.deprecated) {
            (true, _) => look.mark(Mark::Careful, "in use"),
            (false, true) => look.mark(Mark::Careful, "deprecated"),
            (false, false) => look.mark(Mark::Good, "chosen"),
        };
        let types = chosen.instance_type_count.to_string();
        let mut row = cells(&chosen.image, types, state, &chosen.for_what);
        if wide {
            let next = chosen
                .next
                .as_ref()
                .map_or_else(|| "-".to_owned(), |it| format!("{} {}", it.id, it.eligible_at));
            row.extend(more(&chosen.image, &chosen.terms, &chosen.hardware, next));
        }
        rows.push(row);
    }
    for held in &class.held {
        let state = verdict(&held.refusal, now, look);
        let mut row = cells(&held.image, "0".to_owned(), state, &held.for_what);
        if wide {
            row.extend(more(&held.image, &[], &[], "-".to_owned()));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        let mut row: Vec<String> = std::iter::repeat_n("-".to_owned(), 9).collect();
        row[0].clone_from(&class.class);
        row[8] = look.mark(Mark::Refused, "no image matches");
        if wide {
            row.extend(std::iter::repeat_n("-".to_owned(), 5));
        }
        rows.push(row);
    }
    rows
}

fn types_table(list: &ResolutionList, look: Look, headers: bool) -> String {
    let mut table = Table::new(&["CLASS", "POOL", "TYPE", "IMAGE", "NAME", "STATE"]);
    for class in &list.items {
        for answer in &class.instance_types {
            let (image, name, state) = type_cells(answer, list.at, look);
            let pool = answer.pool.clone().unwrap_or_else(|| "-".to_owned());
            table.row(vec![class.class.clone(), pool, answer.name.clone(), image, name, state]);
        }
    }
    table.print(headers)
}

fn type_cells(answer: &TypeView, now: Timestamp, look: Look) -> (String, String, String) {
    let dash = || "-".to_owned();
    if let Some(image) = &answer.image {
        let name = answer.image_name.as_deref().map_or_else(dash, printable);
        return (image.clone(), name, look.mark(Mark::Good, "boots"));
    }
    if let Some(held) = &answer.held_back {
        return (dash(), dash(), verdict(&held.refusal, now, look));
    }
    (dash(), dash(), format!("{}: {}", look.mark(Mark::Refused, "no image"), misses(answer)))
}

fn misses(answer: &TypeView) -> String {
    if answer.in_no_pool {
        return "no pool of the class would launch this type".to_owned();
    }
    let Some(nearest) = &answer.nearest else { return "none was chosen".to_owned() };
    let misses: Vec<String> = nearest
        .misses
        .iter()
        .map(|it| {
            format!("{} is {}, {} needs {}", short_key(&it.what), it.has, nearest.image, it.needs)
        })
        .collect();
    misses.join("; ")
}

/// Glyph, word and reason of a refusal, with the date when it ends said twice.
fn verdict(refusal: &RefusalView, now: Timestamp, look: Look) -> String {
    let mark = match (refusal.reason, refusal.held, refusal.until) {
        ("Superseded", ..) => look.mark(Mark::Passed, "superseded"),
        (_, true, Some(_)) => look.mark(Mark::Waiting, "held"),
        (_, true, None) => look.mark(Mark::Refused, "held"),
        (_, false, _) => look.mark(Mark::Refused, "refused"),
    };
    let message = refusal.message.strip_prefix("superseded ").unwrap_or(&refusal.message);
    let message = printable(message);
    match refusal.until {
        Some(until) => format!("{mark} {message} ({})", relative(until, now)),
        None => format!("{mark} {message}"),
    }
}

fn created(image: &ImageView) -> String {
    image.created.map_or_else(|| "?".to_owned(), minute)
}

/// Every candidate of every term, then what follows for instance types.
pub(super) fn explain(list: &ResolutionList, look: Look, wide: bool) -> String {
    let mut text = String::new();
    for (at, class) in list.items.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        explain_class(&mut text, class, list.at, look, wide);
    }
    text
}

fn explain_class(text: &mut String, class: &ClassView, now: Timestamp, look: Look, wide: bool) {
    let _ = write!(text, "class {}   {}", class.class, class.family);
    if let Some(kubernetes) = &class.kubernetes {
        let _ = write!(text, "   Kubernetes {kubernetes}");
    }
    let floor = &class.minimum_age;
    if floor.age == "0h" && floor.from == "class" {
        let _ = write!(text, "   no minimum age");
    } else if floor.age == "0h" {
        let _ = write!(text, "   no minimum age ({})", floor.from);
    } else {
        let _ = write!(text, "   minimum age {} ({})", floor.age, floor.from);
    }
    if !class.policies.is_empty() {
        let _ = write!(text, "   policies {}", class.policies.join(", "));
    }
    if !class.in_use.is_empty() {
        let _ = write!(text, "   in use {}", class.in_use.join(", "));
    }
    let _ = writeln!(text, "   at {now}");

    for term in &class.terms {
        let _ = writeln!(text, "\nterm {}: {}", term.term, term.asks);
        for problem in &term.problems {
            let _ = writeln!(text, "  {} {problem}", look.mark(Mark::Careful, "problem:"));
        }
        if term.candidates.is_empty() {
            continue;
        }
        text.push_str(&candidates_table(&term.candidates, class, now, look, wide).print(true));
    }

    let _ = writeln!(
        text,
        "\nwhat nodes would boot, in the order in which an instance type tries the images"
    );
    let mut table = Table::new(&["IMAGE", "NAME", "ARCH", "AGE", "TYPES", "FOR", "STATE"]);
    for mut row in class_rows(class, now, look, false) {
        row.remove(4);
        row.remove(0);
        table.row(row);
    }
    text.push_str(&table.print(true));

    explain_types(text, class, now, look, wide);
    for warning in &class.warnings {
        let _ = writeln!(text, "{} {}", look.mark(Mark::Careful, "careful:"), printable(warning));
    }
    let _ = writeln!(text, "{}", next_line(class, now));
}

/// Of releases that one newer has superseded, the first few say enough; `-o wide` lists them all.
const SUPERSEDED_SHOWN: usize = 4;

fn candidates_table(
    candidates: &[CandidateView],
    class: &ClassView,
    now: Timestamp,
    look: Look,
    wide: bool,
) -> Table {
    let mut sorted: Vec<&CandidateView> = candidates.iter().collect();
    sorted.sort_by(|a, b| a.image.flavour.cmp(&b.image.flavour));
    // A release is named by its flavour and version already.
    let named = wide || candidates.iter().any(|it| it.image.flavour.is_none());
    let mut headers = vec!["FLAVOUR", "RELEASE", "IMAGE", "CREATED (UTC)", "AGE", "VERDICT"];
    if named {
        headers.insert(3, "NAME");
    }
    let mut table = Table::new(&headers);
    let mut add = |mut row: Vec<String>| {
        if !named {
            row.remove(3);
        }
        table.row(row);
    };
    let mut at = 0;
    while let Some(candidate) = sorted.get(at) {
        let alike = sorted[at..].iter().take_while(|it| superseded_alike(candidate, it)).count();
        if wide || alike <= SUPERSEDED_SHOWN + 1 {
            add(candidate_row(candidate, class, now, look));
            at += 1;
            continue;
        }
        for shown in &sorted[at..at + SUPERSEDED_SHOWN] {
            add(candidate_row(shown, class, now, look));
        }
        let rest = &sorted[at + SUPERSEDED_SHOWN..at + alike];
        let mut row = candidate_row(rest[0], class, now, look);
        row[1] = format!("{} older", rest.len());
        row[2] = "…".into();
        row[3] = "…".into();
        row[5] = format!("{}+", age(rest[0].image.created, now));
        row[6].push_str("; -o wide lists them");
        add(row);
        at += alike;
    }
    table
}

/// Whether both are nothing but older than the same chosen image, in one line of releases.
fn superseded_alike(a: &CandidateView, b: &CandidateView) -> bool {
    let by = |it: &CandidateView| {
        let refusal = it.refusal.as_ref().filter(|it| it.reason == "Superseded")?;
        it.also.is_empty().then(|| refusal.message.clone())
    };
    a.image.flavour == b.image.flavour && by(a).is_some() && by(a) == by(b)
}

fn candidate_row(
    candidate: &CandidateView,
    class: &ClassView,
    now: Timestamp,
    look: Look,
) -> Vec<String> {
    let image = &candidate.image;
    let told = match &candidate.refusal {
        None => {
            let chosen = class.chosen.iter().find(|it| it.image.id == image.id);
            let exception = chosen.and_then(|it| it.exception.as_ref());
            let reason = match (chosen, exception) {
                (Some(chosen), _) if chosen.only_in_use => {
                    "in use: not old enough, and nothing else may boot".to_owned()
                }
                (_, Some(exception)) => {
                    let until = relative(exception.until, now);
                    let reason = printable(&exception.reason);
                    format!("by exception until {} ({until}): {reason}", exception.until)
                }
                (Some(chosen), None) if chosen.deprecated => {
                    "deprecated, and nothing better for its set".to_owned()
                }
                (_, None) => "newest that passes every rule".to_owned(),
            };
            format!("{} {reason}", look.mark(Mark::Good, "CHOSEN"))
        }
        Some(refusal) => {
            let mut told = verdict(refusal, now, look);
            for also in &candidate.also {
                let _ = write!(told, "; also {}", also.message);
            }
            if class.in_use.contains(&image.id) {
                told.push_str("; in use");
            }
            told
        }
    };
    vec![
        image.flavour.clone().unwrap_or_else(|| image.architecture.clone()),
        image.release.clone().unwrap_or_else(|| "-".to_owned()),
        image.id.clone(),
        printable(&image.name),
        created(image),
        age(image.created, now),
        told,
    ]
}

fn explain_types(text: &mut String, class: &ClassView, now: Timestamp, look: Look, wide: bool) {
    if class.instance_types.is_empty() {
        return;
    }
    let _ = writeln!(text);
    let boots = class.instance_types.iter().filter(|it| it.image.is_some()).count();
    let all = class.instance_types.len();
    let noun = if all == 1 { "instance type has" } else { "instance types have" };
    let _ = writeln!(text, "{boots} of {all} {noun} an image");
    if class.types_asked_by_name || wide {
        let mut table = Table::new(&["POOL", "TYPE", "IMAGE", "NAME", "STATE"]);
        for answer in &class.instance_types {
            let (image, name, state) = type_cells(answer, now, look);
            let pool = answer.pool.clone().unwrap_or_else(|| "-".to_owned());
            table.row(vec![pool, answer.name.clone(), image, name, state]);
        }
        text.push_str(&table.print(true));
        return;
    }
    // Of the others, one line for each reason.
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for answer in class.instance_types.iter().filter(|it| it.image.is_none()) {
        let (_, _, mut state) = type_cells(answer, now, look);
        if let Some(held) = &answer.held_back {
            let _ = write!(state, " ({})", held.image);
        }
        reasons.entry(state).or_default().push(&answer.name);
    }
    for (reason, types) in reasons {
        const SHOWN: usize = 4;
        let more = types.len().saturating_sub(SHOWN);
        let shown = types[..types.len().min(SHOWN)].join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "  {reason}: {shown}{more}");
    }
}

/// What happens next, if nobody does anything.
fn next_line(class: &ClassView, now: Timestamp) -> String {
    let next = class
        .chosen
        .iter()
        .filter_map(|it| it.next.as_ref())
        .chain(class.held.iter().filter_map(|it| it.next.as_ref()))
        .min_by_key(|it| (it.eligible_at, it.id.clone()));
    match (next, class.answer) {
        (Some(next), _) => format!(
            "next: {} ({}) becomes eligible at {} ({})",
            next.id,
            printable(&next.name),
            next.eligible_at,
            relative(next.eligible_at, now)
        ),
        (None, "HeldBack") => "next: nothing, until a rule changes".to_owned(),
        (None, "NoMatch") => "next: nothing, until the terms or the catalog change".to_owned(),
        (None, _) => "next: nothing is waiting; a newer release will take its place".to_owned(),
    }
}

/// What to say beside the data.
pub(super) fn talk(list: &ResolutionList, explained: bool) -> String {
    let mut text = String::new();
    for class in &list.items {
        if !explained {
            for term in &class.terms {
                for problem in &term.problems {
                    let _ = writeln!(
                        text,
                        "note: class `{}`, term {}: {problem}",
                        class.class, term.term
                    );
                }
            }
            for warning in &class.warnings {
                let _ = writeln!(text, "warning: class `{}`: {}", class.class, printable(warning));
            }
            if class.answer != "Found" || class.chosen.iter().any(|it| it.next.is_some()) {
                let _ = writeln!(text, "class `{}`: {}", class.class, next_line(class, list.at));
            }
        }
        match class.answer {
            "HeldBack" => {
                let _ = writeln!(
                    text,
                    "class `{}`: a rule holds an image back; `--explain` accounts for every candidate",
                    class.class
                );
            }
            "NoMatch" => {
                let _ = writeln!(
                    text,
                    "class `{}`: no image for what was asked; `--explain` accounts for every candidate",
                    class.class
                );
            }
            _ => {}
        }
    }
    text
}
