//! How is the fleet, and why?
//!
//! `world → picture → tables, stories, data`
//!
//! What is told is what the engine itself sees and decides ([`nodemolt_engine::Picture`]); nothing is
//! decided here. Who looks changes nothing.

pub(crate) mod rows;
mod data;

use std::fmt::Write as _;

use nodemolt_core::drift::Drift;
use nodemolt_core::explain::{self, Story};
use nodemolt_engine::Picture;
use nodemolt_sim::act::{Act, Target};
use nodemolt_sim::kinds;

use crate::cli::{self, FleetFormat, Format, StoryFormat};
use crate::output::{Answer, Exit, Failure, Look, Mark, Table, serialize};
use crate::sim::{Opened, do_act, nearest};
use rows::{Pool, Row, State};

pub(crate) fn status(verb: &cli::Status, look: Look) -> Result<Answer, Failure> {
    let (opened, picture) = look_at(&verb.world)?;
    let rows = rows::rows(&picture);
    let pools = rows::pools(&rows);
    let halt = Halt::of(&opened);
    let data = match verb.output {
        FleetFormat::Table | FleetFormat::Wide => {
            let wide = verb.output == FleetFormat::Wide;
            let mut text = head(&opened);
            if let Some(halt) = &halt {
                let _ = writeln!(text, "{}", look.mark(Mark::Careful, &halt.text()));
            }
            text.push('\n');
            text.push_str(&pool_table(&pools, look).print(!verb.no_headers));
            let shown: Vec<&Row<'_>> =
                rows.iter().filter(|it| wide || it.state != State::Fine).collect();
            if !shown.is_empty() {
                text.push('\n');
                text.push_str(&node_table(&shown, look).print(!verb.no_headers));
            }
            for line in explain::unanswered(&picture.world(), picture.at) {
                let _ = writeln!(text, "{line}");
            }
            for warning in picture.warnings() {
                let _ = writeln!(text, "{}", look.mark(Mark::Careful, &warning));
            }
            look.plain(&text)
        }
        FleetFormat::Json => {
            serialize(Format::Json, &data::status(&opened, &picture, &rows, &pools, halt.as_ref()))?
        }
        FleetFormat::Yaml => {
            serialize(Format::Yaml, &data::status(&opened, &picture, &rows, &pools, halt.as_ref()))?
        }
    };
    Ok(Answer { data, talk: String::new(), exit: Exit::Done })
}

pub(crate) fn drift(verb: &cli::Drift, look: Look) -> Result<Answer, Failure> {
    let (_, picture) = look_at(&verb.world)?;
    let mut rows = rows::rows(&picture);
    if let Some(about) = &verb.about {
        match target(&picture, about)? {
            Named::Node(node) => rows.retain(|it| it.node == node),
            Named::Pool(pool) => rows.retain(|it| it.pool == Some(pool.as_str())),
            Named::Pod { .. } => {
                return Err(Failure::usage(format!("`{about}` is a pod"))
                    .hint("pods do not drift; name a node or a pool"));
            }
        }
    }
    let named = verb.about.is_some() || verb.output == FleetFormat::Wide;
    let data = match verb.output {
        FleetFormat::Table | FleetFormat::Wide => {
            let shown: Vec<&Row<'_>> =
                rows.iter().filter(|it| named || it.drift != Some(&Drift::InSync)).collect();
            if shown.is_empty() {
                format!("{} nodes, all in sync\n", rows.len())
            } else {
                look.plain(&drift_table(&shown, look).print(!verb.no_headers))
            }
        }
        FleetFormat::Json => serialize(Format::Json, &data::drift(&picture, &rows))?,
        FleetFormat::Yaml => serialize(Format::Yaml, &data::drift(&picture, &rows))?,
    };
    let drifted = rows.iter().any(|it| it.drift.is_some_and(Drift::drifted));
    let exit = if drifted && verb.detailed_exitcode { Exit::Differs } else { Exit::Done };
    Ok(Answer { data, talk: String::new(), exit })
}

pub(crate) fn plan(verb: &cli::Plan, look: Look) -> Result<Answer, Failure> {
    let (_, picture) = look_at(&verb.world)?;
    let rows = rows::in_order(&picture);
    let data = match verb.output {
        FleetFormat::Table | FleetFormat::Wide => {
            let mut text = if rows.is_empty() {
                "nothing to replace\n".to_owned()
            } else {
                let wide = verb.output == FleetFormat::Wide;
                plan_table(&rows, wide, look).print(!verb.no_headers)
            };
            if let Some(it) = picture.plan.expected {
                let _ = writeln!(
                    text,
                    "expected: {} nodes, {} at once, about {}",
                    it.nodes,
                    it.at_once,
                    explain::relative(it.duration)
                );
            }
            look.plain(&text)
        }
        FleetFormat::Json => serialize(Format::Json, &data::plan(&picture, &rows))?,
        FleetFormat::Yaml => serialize(Format::Yaml, &data::plan(&picture, &rows))?,
    };
    let some = !rows.is_empty();
    let exit = if some && verb.detailed_exitcode { Exit::Differs } else { Exit::Done };
    Ok(Answer { data, talk: String::new(), exit })
}

pub(crate) fn explain(verb: &cli::Explain, look: Look) -> Result<Answer, Failure> {
    let (_, picture) = look_at(&verb.world)?;
    let story = match &verb.about {
        None => explain::explain_fleet(&picture.world(), picture.at),
        Some(about) => story(&picture, &target(&picture, about)?, about)?,
    };
    let data = match verb.output {
        StoryFormat::Text => look.plain(&story.to_string()),
        StoryFormat::Json => serialize(Format::Json, &story)?,
        StoryFormat::Yaml => serialize(Format::Yaml, &story)?,
    };
    Ok(Answer { data, talk: String::new(), exit: Exit::Done })
}

fn story(picture: &Picture, named: &Named, asked: &str) -> Result<Story, Failure> {
    let (world, now) = (picture.world(), picture.at);
    let story = match named {
        Named::Node(node) => explain::explain(&world, node, now),
        Named::Pool(pool) => explain::explain_pool(&world, pool, now),
        Named::Pod { namespace, name } => explain::explain_pod(&world, namespace, name, now),
    };
    story.ok_or_else(|| unknown(picture, asked))
}

pub(crate) fn upgrade(verb: &cli::Upgrade) -> Result<Answer, Failure> {
    let (_, picture) = look_at(&verb.world)?;
    let target = match target(&picture, &verb.about)? {
        Named::Node(node) => Target::Node(node),
        Named::Pool(pool) => Target::Pool(pool),
        Named::Pod { .. } => {
            return Err(Failure::usage(format!("`{}` is a pod", verb.about))
                .hint("nodes are replaced, not pods; name a node or a pool"));
        }
    };
    do_act(&verb.world, &Act::Upgrade(target))
}

pub(crate) fn pause(verb: &cli::Pause) -> Result<Answer, Failure> {
    if verb.reason.trim().is_empty() {
        return Err(Failure::usage("--reason is empty").hint("whoever waits is told; write why"));
    }
    do_act(&verb.world, &Act::Pause { reason: verb.reason.clone() })
}

pub(crate) fn resume(verb: &cli::Resume) -> Result<Answer, Failure> {
    do_act(&verb.world, &Act::Resume)
}

pub(crate) fn unlock(verb: &cli::Unlock) -> Result<Answer, Failure> {
    do_act(&verb.world, &Act::Unlock)
}

fn look_at(asked: &cli::WorldPath) -> Result<(Opened, Picture), Failure> {
    let opened = Opened::open(asked)?;
    let picture = opened.world.picture().map_err(Failure::new)?;
    Ok((opened, picture))
}

/// Whom a person means.
enum Named {
    Node(String),
    Pool(String),
    Pod { namespace: String, name: String },
}

/// A node before a pool before a pod, unless it says which.
fn target(picture: &Picture, asked: &str) -> Result<Named, Failure> {
    let fleet = &picture.fleet;
    let node = |name: &str| fleet.nodes.contains_key(name).then(|| Named::Node(name.to_owned()));
    let pool = |name: &str| {
        let of = |it: &nodemolt_core::plan::Node| it.member.pool.as_deref() == Some(name);
        fleet.nodes.values().any(of).then(|| Named::Pool(name.to_owned()))
    };
    let pod = |asked: &str| {
        let (namespace, name) = match asked.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, asked),
        };
        let meant = |id: &nodemolt_core::drain::PodId| {
            id.name == name && namespace.is_none_or(|it| it == id.namespace)
        };
        let on_nodes = fleet.nodes.values().flat_map(|it| &it.pods).map(|it| &it.id);
        let homeless = fleet.homeless.values().map(|it| &it.pod);
        let mut found = on_nodes.chain(homeless).filter(|it| meant(it));
        let first = found.next()?;
        // In two namespaces: it has to be said which.
        found
            .next()
            .is_none()
            .then(|| Named::Pod { namespace: first.namespace.clone(), name: first.name.clone() })
    };
    let found = match asked.split_once('/') {
        Some(("node", name)) => node(name),
        Some(("pool", name)) => pool(name),
        Some(("pod", name)) => pod(name),
        Some(_) => pod(asked),
        None => node(asked).or_else(|| pool(asked)).or_else(|| pod(asked)),
    };
    found.ok_or_else(|| unknown(picture, asked))
}

fn unknown(picture: &Picture, asked: &str) -> Failure {
    let failure = Failure::usage(format!("`{asked}` is no node, no pool, and no pod on a node"));
    let nodes = picture.fleet.nodes.keys().map(String::as_str);
    let pools = picture.fleet.nodes.values().filter_map(|it| it.member.pool.as_deref());
    let pods = picture.fleet.nodes.values().flat_map(|it| &it.pods);
    let pods: Vec<String> = pods.map(|it| it.id.to_string()).collect();
    let bare = asked.split_once('/').filter(|(kind, _)| ["node", "pool", "pod"].contains(kind));
    let bare = bare.map_or(asked, |(_, name)| name);
    match nearest(bare, nodes.chain(pools).chain(pods.iter().map(String::as_str))) {
        Some(near) => {
            failure.hint(format!("is `{near}` meant? `nodemolt status -o wide` lists all nodes"))
        }
        None => failure.hint("`nodemolt status -o wide` lists all nodes"),
    }
}

/// What stops everything.
pub(crate) struct Halt {
    pub paused: Option<String>,
    pub locked: Option<String>,
}

impl Halt {
    pub(crate) fn of(opened: &Opened) -> Option<Self> {
        let ledgers = opened.world.objects(kinds::LEDGER);
        let ledger = ledgers.first()?;
        let text = |at: &str| ledger.pointer(at)?.as_str().map(str::to_owned);
        let (paused, locked) = (text("/spec/pause/reason"), text("/status/lock/reason"));
        (paused.is_some() || locked.is_some()).then_some(Self { paused, locked })
    }

    fn text(&self) -> String {
        let paused = self.paused.as_ref().map(|it| format!("paused: {it} (`nodemolt resume`)"));
        let locked = self.locked.as_ref().map(|it| format!("locked: {it} (`nodemolt unlock`)"));
        let both: Vec<String> = [locked, paused].into_iter().flatten().collect();
        both.join("; ")
    }
}

fn head(opened: &Opened) -> String {
    let simulation = opened.world.simulation();
    format!(
        "{} (simulated: {}, seed {})   Kubernetes {}   {}   {}\n",
        simulation.cluster,
        opened.file.name,
        opened.file.seed,
        simulation.kubernetes,
        simulation.region,
        opened.world.now()
    )
}

pub(crate) fn pool_table(pools: &[Pool<'_>], look: Look) -> Table {
    let mut table = Table::new(&[
        "POOL", "CLASS", "NODES", "IN SYNC", "DRIFTED", "UNKNOWN", "GOING", "WAITING", "STATE",
    ]);
    for it in pools {
        let state = if it.going > 0 {
            look.mark(Mark::Waiting, "replacing")
        } else if it.waiting > 0 {
            look.mark(Mark::Careful, "waiting")
        } else if it.unknown > 0 {
            look.mark(Mark::Careful, "unknown")
        } else if it.drifted > 0 {
            look.mark(Mark::Waiting, "drifted")
        } else {
            look.mark(Mark::Good, "current")
        };
        table.row(vec![
            it.name.unwrap_or("-").to_owned(),
            it.class.unwrap_or("-").to_owned(),
            it.nodes.to_string(),
            it.in_sync.to_string(),
            it.drifted.to_string(),
            it.unknown.to_string(),
            it.going.to_string(),
            it.waiting.to_string(),
            state,
        ]);
    }
    table
}

pub(crate) fn node_table(rows: &[&Row<'_>], look: Look) -> Table {
    let mut table = Table::new(&["NODE", "POOL", "TYPE", "ZONE", "IMAGE", "UP", "STATE"]);
    for it in rows {
        table.row(vec![
            it.node.to_owned(),
            it.pool.unwrap_or("-").to_owned(),
            it.instance_type.unwrap_or("-").to_owned(),
            it.zone.unwrap_or("-").to_owned(),
            it.image(),
            it.up.clone(),
            state(it, look),
        ]);
    }
    table
}

fn state(row: &Row<'_>, look: Look) -> String {
    match &row.state {
        State::Fine => look.mark(Mark::Good, "current"),
        State::Unknown(missing) => look.mark(Mark::Careful, &format!("unknown: we miss {missing}")),
        State::Drifted => look.mark(Mark::Waiting, "drifted"),
        State::Starts(cause) => look.mark(Mark::Waiting, &format!("starts now: {cause}")),
        State::Going { phase, because, .. } => {
            look.mark(Mark::Waiting, &format!("{phase}: {because}"))
        }
        State::Waits(reasons) => {
            let first = reasons.first().map_or("", |it| text(it));
            let more = match reasons.len() {
                0 | 1 => String::new(),
                all => format!(" (and {} more)", all - 1),
            };
            look.mark(Mark::Careful, &format!("waits for {first}{more}"))
        }
    }
}

/// All that one reason names has the same words.
fn text(reason: &[explain::Cause]) -> &str {
    reason.first().map_or("", |it| it.text.as_str())
}

fn drift_table(rows: &[&Row<'_>], look: Look) -> Table {
    let mut table = Table::new(&["NODE", "POOL", "DRIFT", "WHAT"]);
    for it in rows {
        let (mark, lines) = match it.drift {
            Some(Drift::InSync) => (look.mark(Mark::Good, "in sync"), vec![String::new()]),
            Some(Drift::Unknown(missing)) => {
                (look.mark(Mark::Careful, "unknown"), vec![format!("we miss {missing}")])
            }
            Some(Drift::Drifted { first, more, unchecked }) => {
                let mut lines = vec![rows::divergence(first)];
                lines.extend(more.iter().map(rows::divergence));
                lines.extend(unchecked.iter().map(|it| format!("not compared: {it}")));
                (look.mark(Mark::Waiting, "drifted"), lines)
            }
            None => {
                (look.mark(Mark::Careful, "unknown"), vec!["it has no claim of ours".to_owned()])
            }
        };
        for (place, line) in lines.into_iter().enumerate() {
            // The name in every line: `grep` finds all of a node.
            let mark = if place == 0 { mark.clone() } else { String::new() };
            table.row(vec![it.node.to_owned(), it.pool.unwrap_or("-").to_owned(), mark, line]);
        }
    }
    table
}

fn plan_table(rows: &[Row<'_>], wide: bool, look: Look) -> Table {
    let mut table = Table::new(&["NODE", "POOL", "CAUSE", "STATE"]);
    for it in rows {
        let cells = |state: String, place: usize| {
            let cause = if place == 0 { it.cause.unwrap_or("-") } else { "" };
            vec![it.node.to_owned(), it.pool.unwrap_or("-").to_owned(), cause.to_owned(), state]
        };
        if let State::Waits(reasons) = &it.state
            && wide
        {
            for (place, reason) in reasons.iter().enumerate() {
                let text = format!("waits for {}", text(reason));
                table.row(cells(look.mark(Mark::Careful, &text), place));
            }
        } else {
            table.row(cells(state(it, look), 0));
        }
    }
    table
}
