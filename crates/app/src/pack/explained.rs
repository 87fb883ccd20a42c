//! The answer about one pod, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nodemolt_api::listing::{Origin, World};
use nodemolt_fit::pack::Home;
use nodemolt_fit::pod::Demand;
use nodemolt_fit::{Quantity, label};
use serde::Serialize;

use super::Talk;
use super::account::{Found, Named, Seen, Stands, groups};
use super::data::{Caveats, Obstacle, obstacles};
use super::page::{TYPES_SHOWN, counted, machines};
use super::remedy;
use super::story::{PodSaid, Story, volume};
use crate::output::{Look, Mark, Table, printable};

/// For people.
pub(super) fn page(
    story: &Story,
    (found, world): (&Found<'_>, &World),
    said: Option<&PodSaid>,
    places: &[Seen],
    look: Look,
    (wide, headers): (bool, bool),
) -> String {
    let origin = world.origins.get(&found.id());
    let mut lines: Vec<(&str, String)> = Vec::new();
    let owner = origin.and_then(|it| it.workload.clone());
    let owner = owner.map(|it| format!("   owner {it}")).unwrap_or_default();
    lines.push(("pod", format!("{}{owner}", found.id())));
    if let Some(node) = origin.and_then(|it| it.leaves.as_ref()) {
        lines.push(("leaves", format!("node {node}")));
    }
    if let Found::Running { node, .. } = found {
        let pool = node.pool.as_ref().map_or("   no pool".to_owned(), |it| format!("   pool {it}"));
        let zone = node.labels.get(label::ZONE).map(|it| format!("   zone {it}"));
        lines.push(("runs on", format!("node {}{pool}{}", node.name, zone.unwrap_or_default())));
    }
    if let Some(demand) = found.demand() {
        asks(demand, world, &mut lines);
    }
    let running = matches!(found, Found::Running { .. });
    let refused = said.is_some_and(PodSaid::homeless) && !running;
    let mark = if refused { Mark::Refused } else { Mark::Good };
    lines.push(("answer", look.mark(mark, &printable(&sentence(story, found, origin, said)))));
    if let Some((_, _, told)) = if_moved(story, found, said) {
        lines.push(("moved", format!("if it had to move: {told}")));
    }
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
        let when = if running { "if it had to move" } else { "as it stood when its turn came" };
        let _ = writeln!(text, "\nevery place, {when}");
        text.push_str(&table(places, wide, headers));
    }
    text
}

fn asks(demand: &Demand, world: &World, lines: &mut Vec<(&str, String)>) {
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
        let least = it.min_domains.map(|it| format!(", at least {it} of them"));
        let line = format!(
            "{must} be spread over {}, skew at most {}{}",
            it.topology_key,
            it.max_skew,
            least.unwrap_or_default()
        );
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
        let called = volume(&it.handle, world);
        lines.push(("volume", format!("{called} reachable {where_to}")));
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

fn sentence(
    story: &Story,
    found: &Found<'_>,
    origin: Option<&Origin>,
    said: Option<&PodSaid>,
) -> String {
    match found {
        Found::Running { node, .. } if origin.is_some_and(|it| it.tied) => {
            format!("runs on node {}, belongs to it and goes with it", node.name)
        }
        Found::Running { node, .. } => format!("runs on node {}, which stays", node.name),
        Found::LeftOut { why, .. } => format!("is not packed: {why}"),
        Found::Packed(_) => went(story, said).1,
    }
}

/// What becomes of a pod that is looked for a place for: in one word, and in a sentence.
fn went(story: &Story, said: Option<&PodSaid>) -> (&'static str, String) {
    let Some(said) = said else { return ("NoPlace", "no place".to_owned()) };
    match (&said.home, &said.why) {
        (Some(home), _) => ("Placed", format!("goes to {}", told_home(story, home))),
        (None, Some(why)) => {
            let told = said.no_place().unwrap_or_default();
            (remedy::reason(why), format!("no place: {told}"))
        }
        (None, None) => ("NoPlace", "no place".to_owned()),
    }
}

/// Of a pod that runs: what would become of it, had it to leave its node alone.
fn if_moved(
    story: &Story,
    found: &Found<'_>,
    said: Option<&PodSaid>,
) -> Option<(&'static str, Option<String>, String)> {
    let said = said.filter(|_| matches!(found, Found::Running { .. }))?;
    let (answer, told) = went(story, Some(said));
    Some((answer, said.home.as_ref().map(|it| story.home(it)), told))
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
    /// `Placed`, `NoPlace`, `Gated`, `Unmodelled`, `Running` or `LeftOut`.
    answer: &'static str,
    message: String,
    /// Where it goes, or runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// Of that node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'s str>,
    /// Of a pod that runs: where it would go if it had to leave its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    if_moved: Option<IfMoved>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    does_without: &'s [String],
    places: Vec<Place<'s>>,
    #[serde(flatten)]
    caveats: Caveats<'s>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct IfMoved {
    /// `Placed`, `NoPlace`, `Gated` or `Unmodelled`.
    answer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    message: String,
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
    /// `Home`, `RunsThere`, `WouldDo`, `InTheWay`, `Full`, `Unsuited`, `Leaves` or `LaunchesNone`.
    stands: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'s str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    obstacles: Vec<Obstacle>,
}

/// For programs.
pub(super) fn account<'s>(
    story: &'s Story,
    (found, world): (&'s Found<'_>, &'s World),
    said: Option<&'s PodSaid>,
    places: &'s [Seen],
    talk: &'s Talk,
) -> Account<'s> {
    let id = found.id();
    let origin = world.origins.get(&id);
    let (answer, node, zone) = match found {
        Found::Running { node, .. } => {
            let zone = node.labels.get(label::ZONE).map(String::as_str);
            ("Running", Some(node.name.clone()), zone)
        }
        Found::LeftOut { .. } => ("LeftOut", None, None),
        Found::Packed(_) => {
            let home = said.and_then(|it| it.home.as_ref());
            let zone = home.and_then(|it| story.zone(it));
            (went(story, said).0, home.map(|it| story.home(it)), zone)
        }
    };
    Account {
        api_version: "nodemolt.dev/cli/v1",
        kind: "PodAccount",
        pod: Pod {
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
            owner: origin.and_then(|it| it.workload.as_deref()),
            leaves: origin.and_then(|it| it.leaves.as_deref()),
        },
        requests: found.demand().map(|it| &it.requests),
        answer,
        message: sentence(story, found, origin, said),
        pool: node.as_ref().and_then(|name| {
            let old = world.nodes.iter().find(|it| it.name == *name);
            let new = story.new_nodes.iter().find(|it| it.name == *name);
            old.and_then(|it| it.pool.as_deref()).or(new.map(|it| it.pool.as_str()))
        }),
        node,
        zone,
        if_moved: if_moved(story, found, said).map(|(answer, node, message)| IfMoved {
            answer,
            node,
            message,
        }),
        does_without: said.map_or(&[], |it| &it.relaxed),
        places: places.iter().map(place).collect(),
        caveats: Caveats::of(talk),
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
        Stands::Home
        | Stands::RunsThere
        | Stands::WouldDo
        | Stands::Full
        | Stands::Unsuited
        | Stands::Leaves => {}
    }
    place
}
