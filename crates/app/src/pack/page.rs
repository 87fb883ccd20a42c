//! The answer for people.
//!
//! Who has no place comes first, with what would have to change.

use std::fmt::Write as _;

use nodemolt_api::listing::World;
use nodemolt_fit::capacity::{Amounts, CPU, MEMORY};
use nodemolt_fit::label;
use nodemolt_fit::pack::Home;
use nodemolt_fit::pod::PodId;
use nodemolt_fit::pool::Price;
use nodemolt_fit::prices::decimal;

use super::market::Known;
use super::remedy;
use super::story::{New, PodSaid, Story};
use crate::output::{Look, Mark, Table, printable};

/// Types of a new node that are named, where not all are wanted.
const TYPES_SHOWN: usize = 3;
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
                printable(first.origin.leaves.as_deref().unwrap_or("-")),
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
    let mut columns = vec!["NODE", "POOL", "PODS", "CPU", "MEMORY", "TYPES"];
    columns.push(if priced { "CHEAPEST" } else { "SMALLEST" });
    if priced {
        columns.push("PER HOUR");
    }
    if wide {
        columns.push("REQUIREMENTS");
    }
    let mut table = Table::new(&columns);
    for node in &story.new_nodes {
        let shown = if wide { TYPES_SHOWN_WIDE } else { TYPES_SHOWN };
        let mut cells = vec![
            node.name.clone(),
            printable(&node.pool),
            node.pods.len().to_string(),
            amount(&node.requests, CPU),
            amount(&node.requests, MEMORY),
            node.machines.len().to_string(),
            machines(node, priced, shown),
        ];
        if priced {
            cells.push(money(node.price));
        }
        if wide {
            // The types have a column of their own.
            let others = node.requirements.iter().filter(|it| it.key != label::INSTANCE_TYPE);
            let all: Vec<String> = others.map(ToString::to_string).collect();
            cells.push(printable(&all.join("; ")));
        }
        table.row(cells);
    }
    table.print(headers)
}

/// Where prices are known, nothing is called cheap that has none.
fn machines(node: &New, priced: bool, shown: usize) -> String {
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
    let mut table = Table::new(&["NODE", "PODS", "WHICH"]);
    for node in &story.stays {
        table.row(vec![
            printable(&node.name),
            node.pods.len().to_string(),
            printable(&names(&node.pods, if wide { usize::MAX } else { TYPES_SHOWN })),
        ]);
    }
    table.print(headers)
}

fn names(pods: &[PodId], shown: usize) -> String {
    let names: Vec<String> = pods.iter().take(shown).map(ToString::to_string).collect();
    let more = if pods.len() > shown { ",…" } else { "" };
    format!("{}{more}", names.join(","))
}

fn placed(story: &Story, headers: bool) -> String {
    let mut table = Table::new(&["POD", "OWNER", "LEAVES", "GOES TO", "DOES WITHOUT"]);
    for pod in &story.pods {
        let Some(home) = &pod.home else { continue };
        table.row(vec![
            printable(&pod.id.to_string()),
            printable(pod.origin.workload.as_deref().unwrap_or("-")),
            printable(pod.origin.leaves.as_deref().unwrap_or("-")),
            printable(&story.home(home)),
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
    if on_new > 0 {
        let nodes = counted(story.new_nodes.len(), "new node");
        parts.push(format!("{} on {nodes}", counted(on_new, "pod")));
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
    let unpriced: usize = story.new_nodes.iter().map(|it| it.unpriced).max().unwrap_or(0);
    if story.total.is_some() && unpriced > 0 {
        let _ = writeln!(
            text,
            "up to {unpriced} of a node's types have no price here, and may be cheaper"
        );
    }
    if story.total.is_some() && story.spot_unpriced {
        let _ = writeln!(
            text,
            "these are prices on demand; spot is allowed too, and its prices are not known"
        );
    }
    text
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Everything about one pod.
pub(super) fn pod(story: &Story, pod: &PodSaid, world: &World, look: Look) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let owner = pod.origin.workload.clone().unwrap_or_else(|| "nobody".to_owned());
    lines.push(("pod", format!("{}   owner {owner}", pod.id)));
    if let Some(node) = &pod.origin.leaves {
        lines.push(("leaves", format!("node {node}")));
    }
    let asked = world.pods.iter().find(|it| it.id() == pod.id).map(|it| &it.demand);
    if let Some(demand) = asked {
        let amounts: Vec<String> =
            demand.requests.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
        let amounts = if amounts.is_empty() { "nothing".to_owned() } else { amounts.join("   ") };
        lines.push(("requests", amounts));
        for (key, value) in &demand.node_selector {
            lines.push(("selects", format!("{key}={value}")));
        }
        let terms = demand.node_terms.iter().flatten();
        for (at, term) in terms.enumerate() {
            let all = term.labels.iter().chain(&term.fields).map(ToString::to_string);
            let all: Vec<String> = all.collect();
            lines.push((if at == 0 { "nodes" } else { "or" }, all.join(" and ")));
        }
        for it in &demand.spread {
            let must = if it.required { "must" } else { "would like to" };
            let line =
                format!("{must} be spread over {}, skew at most {}", it.topology_key, it.max_skew);
            lines.push(("spread", line));
        }
        for it in &demand.affinity {
            lines.push(("near", format!("pods in the same {}", it.topology_key)));
        }
        for it in &demand.anti_affinity {
            lines.push(("away", format!("from pods in the same {}", it.topology_key)));
        }
        for it in &demand.volumes {
            let terms =
                it.reach.iter().flatten().flat_map(|it| &it.labels).map(ToString::to_string);
            let terms: Vec<String> = terms.collect();
            let where_to =
                if terms.is_empty() { "everywhere".to_owned() } else { terms.join(" or ") };
            lines.push(("volume", format!("{} reachable {where_to}", it.handle)));
        }
    }
    match (&pod.home, &pod.why) {
        (Some(home), _) => {
            let line = format!("goes to {}", told_home(story, home));
            lines.push(("answer", look.mark(Mark::Good, &printable(&line))));
            for it in &pod.relaxed {
                lines.push(("without", it.clone()));
            }
        }
        (None, Some(why)) => {
            let line = format!("no place: {}", remedy::sentence(why));
            lines.push(("answer", look.mark(Mark::Refused, &printable(&line))));
        }
        (None, None) => {}
    }
    let mut text = String::new();
    for (name, line) in lines {
        // The mark has colours in it and was made printable before.
        let line = if name == "answer" { line } else { printable(&line) };
        let _ = writeln!(text, "{name:<9}{line}");
    }
    text
}

fn told_home(story: &Story, home: &Home) -> String {
    match home {
        Home::Node(name) => format!("node {name}"),
        Home::New(at) => match story.new_nodes.get(*at) {
            Some(node) => format!(
                "{}, a new node of pool {} with {}; {} will do, such as {}",
                node.name,
                node.pool,
                counted(node.pods.len(), "pod"),
                counted(node.machines.len(), "type"),
                machines(node, false, TYPES_SHOWN),
            ),
            None => "a new node".to_owned(),
        },
    }
}
