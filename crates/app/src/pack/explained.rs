//! The answer about one pod, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nodemolt_fit::Quantity;
use nodemolt_fit::pack::Home;
use nodemolt_fit::pod::Demand;
use serde::Serialize;

use super::account::{Found, Named, Seen, Stands, groups};
use super::data::{Obstacle, obstacles};
use super::page::{TYPES_SHOWN, counted, machines};
use super::remedy;
use super::story::{PodSaid, Story};
use crate::output::{Look, Mark, Table, printable};

/// For people.
pub(super) fn page(
    story: &Story,
    found: &Found<'_>,
    said: Option<&PodSaid>,
    places: &[Seen],
    look: Look,
    (wide, headers): (bool, bool),
) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let owner = said.and_then(|it| it.origin.workload.clone());
    let owner = owner.map(|it| format!("   owner {it}")).unwrap_or_default();
    lines.push(("pod", format!("{}{owner}", found.id())));
    if let Some(node) = said.and_then(|it| it.origin.leaves.as_ref()) {
        lines.push(("leaves", format!("node {node}")));
    }
    if let Some(demand) = found.demand() {
        asks(demand, &mut lines);
    }
    let mark = if said.is_some_and(PodSaid::homeless) { Mark::Refused } else { Mark::Good };
    lines.push(("answer", look.mark(mark, &printable(&sentence(story, found, said)))));
    for it in said.iter().flat_map(|it| &it.relaxed) {
        lines.push(("without", it.clone()));
    }
    let mut text = String::new();
    for (name, line) in lines {
        // The mark has colours in it and was made printable before.
        let line = if name == "answer" { line } else { printable(&line) };
        let _ = writeln!(text, "{name:<9}{line}");
    }
    if !places.is_empty() {
        let _ = writeln!(text, "\nevery place, as it stood when its turn came");
        text.push_str(&table(places, wide, headers));
    }
    text
}

fn asks(demand: &Demand, lines: &mut Vec<(&str, String)>) {
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
        let terms = it.reach.iter().flatten().flat_map(|it| &it.labels).map(ToString::to_string);
        let terms: Vec<String> = terms.collect();
        let where_to = if terms.is_empty() { "everywhere".to_owned() } else { terms.join(" or ") };
        lines.push(("volume", format!("{} reachable {where_to}", it.handle)));
    }
}

fn table(places: &[Seen], wide: bool, headers: bool) -> String {
    let mut table = Table::new(&["WHAT", "COUNT", "WHICH", "HOW IT STANDS"]);
    for group in groups(places) {
        let shown = if wide { usize::MAX } else { TYPES_SHOWN };
        let more = if group.names.len() > shown { ",…" } else { "" };
        let names: Vec<&str> = group.names.iter().take(shown).map(String::as_str).collect();
        table.row(vec![
            group.what.to_owned(),
            group.names.len().to_string(),
            printable(&format!("{}{more}", names.join(","))),
            printable(&group.sentence),
        ]);
    }
    table.print(headers)
}

fn sentence(story: &Story, found: &Found<'_>, said: Option<&PodSaid>) -> String {
    match found {
        Found::Running { node, .. } => format!("runs on node {node}, which stays"),
        Found::LeftOut { why, .. } => format!("is not packed: {why}"),
        Found::Packed(_) => {
            let home = said.and_then(|it| it.home.as_ref());
            let why = said.and_then(|it| it.why.as_ref());
            match (home, why) {
                (Some(home), _) => format!("goes to {}", told_home(story, home)),
                (None, Some(why)) => format!("no place: {}", remedy::sentence(why)),
                (None, None) => {
                    let node = said.and_then(PodSaid::follows).unwrap_or_default();
                    format!(
                        "goes with the successor of node {node}, which will be of the same kind"
                    )
                }
            }
        }
    }
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

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Account<'s> {
    api_version: &'static str,
    kind: &'static str,
    pod: Pod<'s>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<&'s BTreeMap<String, Quantity>>,
    /// `Placed`, `WithSuccessor`, `NoPlace`, `Gated`, `Unmodelled`, `Running` or `LeftOut`.
    answer: &'static str,
    message: String,
    /// Where it goes, or runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    does_without: &'s [String],
    places: Vec<Place<'s>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pod<'s> {
    namespace: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaves: Option<&'s str>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Place<'s> {
    /// One of these three.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_node: Option<&'s str>,
    /// `Home`, `WouldDo`, `InTheWay`, `Full`, `Unsuited`, `Leaves` or `LaunchesNone`.
    stands: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'s str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    obstacles: Vec<Obstacle>,
}

/// For programs.
pub(super) fn account<'s>(
    story: &'s Story,
    found: &'s Found<'_>,
    said: Option<&'s PodSaid>,
    places: &'s [Seen],
) -> Account<'s> {
    let id = found.id();
    let (answer, node) = match found {
        Found::Running { node, .. } => ("Running", Some((*node).to_owned())),
        Found::LeftOut { .. } => ("LeftOut", None),
        Found::Packed(_) => match said.map(|it| (&it.home, &it.why)) {
            Some((Some(home), _)) => ("Placed", Some(story.home(home))),
            Some((None, Some(why))) => (remedy::reason(why), None),
            Some((None, None)) => ("WithSuccessor", None),
            None => ("NoPlace", None),
        },
    };
    Account {
        api_version: "nodemolt.dev/cli/v1",
        kind: "PodAccount",
        pod: Pod {
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
            owner: said.and_then(|it| it.origin.workload.as_deref()),
            leaves: said.and_then(|it| it.origin.leaves.as_deref()),
        },
        requests: found.demand().map(|it| &it.requests),
        answer,
        message: sentence(story, found, said),
        node,
        does_without: said.map_or(&[], |it| &it.relaxed),
        places: places.iter().map(place).collect(),
    }
}

fn place(seen: &Seen) -> Place<'_> {
    let mut place = Place { stands: seen.stands.word(), ..Place::default() };
    match &seen.place {
        Named::Node(name) => place.node = Some(name),
        Named::Pool(name) => place.pool = Some(name),
        Named::New(name) => place.new_node = Some(name),
    }
    match &seen.stands {
        Stands::InTheWay(miss) => place.obstacles = obstacles(miss),
        Stands::LaunchesNone(why) => place.message = Some(why),
        Stands::Home | Stands::WouldDo | Stands::Full | Stands::Unsuited | Stands::Leaves => {}
    }
    place
}
