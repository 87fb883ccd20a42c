//! The answer for people.
//!
//! Who has no place comes first, with what would have to change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use nodemolt_fit::capacity::{Amounts, CPU, MEMORY};
use nodemolt_fit::pod::PodId;
use nodemolt_fit::pool::Price;
use nodemolt_fit::prices::decimal;
use nodemolt_fit::{Written, label};

use super::market::Known;
use super::story::{New, PodSaid, Story};
use crate::output::{Look, Mark, Table, printable};

/// Types of a new node that are named, where not all are wanted.
pub(super) const TYPES_SHOWN: usize = 3;
const TYPES_SHOWN_WIDE: usize = 12;

pub(super) fn page(story: &Story, look: Look, wide: bool, headers: bool) -> String {
    let mut text = String::new();
    let all = story.pods.len();
    let left = story.unplaced_count();
    if left > 0 {
        let line = match (left, all) {
            (_, 1) => "the pod has no place".to_owned(),
            (1, all) => format!("1 of {all} pods has no place"),
            (left, all) => format!("{left} of {all} pods have no place"),
        };
        let _ = writeln!(text, "{}\n", look.mark(Mark::Refused, &line));
        text.push_str(&unplaced(story, wide, headers));
        text.push('\n');
    } else {
        let line = match all {
            0 => "no pod needs a place".to_owned(),
            1 => "the pod has a place".to_owned(),
            all => format!("all {all} pods have a place"),
        };
        let _ = writeln!(text, "{}\n", look.mark(Mark::Good, &line));
    }
    if !story.placements.is_empty() {
        let _ = writeln!(text, "nodes that leave");
        text.push_str(&leaves(story, headers));
        text.push('\n');
    }
    if !story.new_nodes.is_empty() {
        let _ = writeln!(text, "new nodes");
        text.push_str(&new_nodes(story, wide, headers));
        text.push('\n');
    }
    if !story.stays.is_empty() {
        let _ = writeln!(text, "nodes that stay");
        text.push_str(&stays(story, wide, headers));
        text.push('\n');
    }
    if wide && left < all {
        let _ = writeln!(text, "who goes where");
        text.push_str(&placed(story, headers));
        text.push('\n');
    }
    text.push_str(&sum(story));
    text
}

fn unplaced(story: &Story, wide: bool, headers: bool) -> String {
    let mut table = Table::new(&["POD", "PODS", "OWNER", "LEAVES", "WHY"]);
    for group in &story.unplaced {
        let mut row = |pods: &[usize], first: &PodSaid| {
            table.row(vec![
                printable(&first.id.to_string()),
                pods.len().to_string(),
                printable(group.workload.as_deref().unwrap_or("-")),
                printable(&left(pods.iter().map(|it| &story.pods[*it]))),
                printable(&group.sentence),
            ]);
        };
        if wide {
            for at in &group.pods {
                row(&[*at], &story.pods[*at]);
            }
        } else if let Some(first) = group.pods.first() {
            row(&group.pods, &story.pods[*first]);
        }
    }
    table.print(headers)
}

/// The nodes that they leave, each once.
fn left<'s>(pods: impl Iterator<Item = &'s PodSaid>) -> String {
    let nodes: BTreeSet<&str> = pods.filter_map(|it| it.origin.leaves.as_deref()).collect();
    if nodes.is_empty() {
        return "-".to_owned();
    }
    let more = if nodes.len() > TYPES_SHOWN { ",…" } else { "" };
    let shown: Vec<&str> = nodes.into_iter().take(TYPES_SHOWN).collect();
    format!("{}{more}", shown.join(","))
}

fn leaves(story: &Story, headers: bool) -> String {
    let mut table = Table::new(&["NODE", "PODS", "ANSWER", "SUCCESSORS", "WHY"]);
    for it in &story.placements {
        table.row(vec![
            printable(&it.node),
            it.pods.to_string(),
            it.answer().to_owned(),
            it.successors().map_or("-".to_owned(), |it| it.to_string()),
            printable(&it.sentence(story)),
        ]);
    }
    table.print(headers)
}

fn new_nodes(story: &Story, wide: bool, headers: bool) -> String {
    let priced = matches!(story.prices, Known::Priced { .. });
    let show_zones = wide || story.zones.matter;
    let mut columns = vec!["NODE", "COUNT", "POOL"];
    if show_zones {
        columns.push("ZONE");
    }
    if story.ways_matter() {
        columns.push("CAPACITY");
    }
    columns.extend(["PODS", "CPU", "MEMORY", "TYPES"]);
    columns.push(if priced { "CHEAPEST" } else { "SMALLEST" });
    if priced {
        columns.push("PER HOUR");
    }
    if wide {
        columns.push("REQUIREMENTS");
    }
    let mut table = Table::new(&columns);
    for (node, alike) in alike(&story.new_nodes, wide) {
        let shown = if wide { TYPES_SHOWN_WIDE } else { TYPES_SHOWN };
        let mut cells = vec![node.name.clone(), alike.to_string(), printable(&node.pool)];
        if show_zones {
            let zones = node.zones();
            cells.push(if zones.is_empty() { "-".to_owned() } else { printable(&zones.join(",")) });
        }
        if story.ways_matter() {
            let ways = node.ways();
            cells.push(if ways.is_empty() { "-".to_owned() } else { printable(&ways.join(",")) });
        }
        cells.extend([
            node.pods.len().to_string(),
            amount(&node.requests, CPU),
            amount(&node.requests, MEMORY),
            node.machines.len().to_string(),
            machines(node, priced, shown),
        ]);
        if priced {
            cells.push(money(node.price));
        }
        if wide {
            let all: Vec<String> = node.requirements.iter().map(requirement).collect();
            cells.push(printable(&all.join("; ")));
        }
        table.row(cells);
    }
    table.print(headers)
}

/// The first of each kind, and how many there are of it. Of thousands of nodes few differ.
fn alike(nodes: &[New], each: bool) -> Vec<(&New, usize)> {
    let mut groups: Vec<(&New, usize)> = Vec::new();
    let mut known = BTreeMap::new();
    for node in nodes {
        // Nodes that can be the same share what is said of them.
        let same = (Arc::as_ptr(&node.machines), Arc::as_ptr(&node.requirements));
        let amounts = (&node.pool, node.pods.len(), amount(&node.requests, CPU));
        let key = (same, amounts, amount(&node.requests, MEMORY));
        if let Some(at) = known.get(&key).filter(|_| !each) {
            let group: &mut (&New, usize) = &mut groups[*at];
            group.1 += 1;
        } else {
            known.insert(key, groups.len());
            groups.push((node, 1));
        }
    }
    groups
}

/// All types are in JSON; here a few of them say enough.
fn requirement(written: &Written) -> String {
    let more = written.values.len().saturating_sub(TYPES_SHOWN_WIDE);
    if written.key != label::INSTANCE_TYPE || more == 0 {
        return written.to_string();
    }
    let mut shown = written.clone();
    shown.values.truncate(TYPES_SHOWN_WIDE);
    shown.values.push(format!("… {more} more"));
    shown.to_string()
}

/// Where prices are known, nothing is called cheap that has none.
pub(super) fn machines(node: &New, priced: bool, shown: usize) -> String {
    let known = if priced { node.machines.len() - node.unpriced } else { node.machines.len() };
    if known == 0 {
        return "-".to_owned();
    }
    let known_first = node.machines.iter().take(known.min(shown));
    let names: Vec<&str> = known_first.map(|it| it.machine.as_str()).collect();
    let more = if known > shown { ",…" } else { "" };
    printable(&format!("{}{more}", names.join(",")))
}

fn amount(amounts: &Amounts, name: &str) -> String {
    amounts.get(name).map_or("0".to_owned(), ToString::to_string)
}

fn money(price: Option<Price>) -> String {
    price.map_or("-".to_owned(), decimal)
}

fn stays(story: &Story, wide: bool, headers: bool) -> String {
    let show_zones = wide || story.zones.matter;
    let columns: &[&str] =
        if show_zones { &["NODE", "ZONE", "PODS", "WHICH"] } else { &["NODE", "PODS", "WHICH"] };
    let mut table = Table::new(columns);
    for node in &story.stays {
        let mut cells = vec![printable(&node.name)];
        if show_zones {
            cells.push(printable(node.zone.as_deref().unwrap_or("-")));
        }
        cells.push(node.pods.len().to_string());
        cells.push(printable(&names(&node.pods, if wide { usize::MAX } else { TYPES_SHOWN })));
        table.row(cells);
    }
    table.print(headers)
}

fn names(pods: &[PodId], shown: usize) -> String {
    let names: Vec<String> = pods.iter().take(shown).map(ToString::to_string).collect();
    let more = if pods.len() > shown { ",…" } else { "" };
    format!("{}{more}", names.join(","))
}

fn placed(story: &Story, headers: bool) -> String {
    let mut table = Table::new(&["POD", "OWNER", "LEAVES", "GOES TO", "ZONE", "DOES WITHOUT"]);
    for pod in &story.pods {
        let Some(home) = &pod.home else { continue };
        table.row(vec![
            printable(&pod.id.to_string()),
            printable(pod.origin.workload.as_deref().unwrap_or("-")),
            printable(pod.origin.leaves.as_deref().unwrap_or("-")),
            printable(&story.home(home)),
            printable(story.zone(home).unwrap_or("-")),
            if pod.relaxed.is_empty() {
                "-".to_owned()
            } else {
                printable(&pod.relaxed.join("; "))
            },
        ]);
    }
    table.print(headers)
}

/// The last lines: how many went where, what it costs, or why nobody knows.
fn sum(story: &Story) -> String {
    let on_new: usize = story.new_nodes.iter().map(|it| it.pods.len()).sum();
    let on_old = story.pods.len() - story.unplaced_count() - on_new;
    let mut parts = Vec::new();
    if on_old > 0 {
        let nodes = counted(story.stays.len(), "node");
        let stay = if story.stays.len() == 1 { "stays" } else { "stay" };
        parts.push(format!("{} on {nodes} that {stay}", counted(on_old, "pod")));
    }
    let nodes = counted(story.new_nodes.len(), "new node");
    if on_new > 0 {
        parts.push(format!("{} on {nodes}", counted(on_new, "pod")));
    } else if !story.new_nodes.is_empty() {
        parts.push(format!("{nodes} for pods that nobody can foresee"));
    }
    if parts.is_empty() {
        return "nothing is placed\n".to_owned();
    }
    let mut text = format!("placed: {}", parts.join(", "));
    if story.new_nodes.is_empty() {
        text.push('\n');
        return text;
    }
    match (&story.prices, story.total) {
        (Known::Priced { currency, whence }, Some(total)) => {
            let _ = writeln!(text, ", {} {} per hour ({whence})", decimal(total), currency.code());
        }
        (Known::Priced { whence, .. }, None) => {
            let _ = writeln!(text, "\nno sum: some new nodes have no price ({whence})");
        }
        (Known::Unpriced(why), _) => {
            let _ = writeln!(text, "\nno prices: {why}");
        }
    }
    for note in story.price_notes() {
        let _ = writeln!(text, "{note}");
    }
    text
}

pub(super) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
