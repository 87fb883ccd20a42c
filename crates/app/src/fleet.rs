//! How is the fleet, and why?
//!
//! `world → picture → tables, stories, data`
//!
//! What is told is what the engine itself sees and decides ([`nodemolt_engine::Picture`]); nothing is
//! decided here. Who looks changes nothing.

pub(crate) mod data;
pub(crate) mod named;
pub(crate) mod rows;

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::Unavailable;
use nodemolt_core::drift::Drift;
use nodemolt_core::explain::{self, Story};
use nodemolt_core::plan::Pending;
use nodemolt_engine::Picture;
use nodemolt_sim::act::{Act, Target};
use nodemolt_sim::kinds;

use crate::cli::{self, FleetFormat, Format, StoryFormat};
use crate::output::{Answer, Exit, Failure, Look, Mark, Table, Within, printable, serialize};
use crate::sim::{Opened, do_act};
use crate::terminal::{self, hanging};
use named::{Named, Names};
use rows::{Pool, Row, State};

/// Where the facts of a story begin, right of their labels.
const STORY_INDENT: usize = 9;

pub(crate) fn status(verb: &cli::Status, look: Look) -> Result<Answer, Failure> {
    let (opened, picture) = look_at(&verb.world)?;
    let rows = rows::rows(&picture);
    let names = Names::new(&opened.world, &picture);
    let homeless = rows::homeless(&picture);
    let pools = rows::pools(&rows, &homeless, &names.pools, &picture);
    let halt = Halt::of(&opened);
    let data = match verb.output {
        FleetFormat::Table | FleetFormat::Wide => {
            let wide = verb.output == FleetFormat::Wide;
            let within = Within::terminal();
            // Under the sentence, not under its mark.
            let line = |it: &str| hanging(it, 2, within.columns);
            let mut text = line(&head(&opened));
            if let Some(halt) = &halt {
                text.push_str(&line(&look.mark(Mark::Careful, &halt.text())));
            }
            if let Some(unled) = unled(&opened) {
                text.push_str(&line(&look.mark(Mark::Careful, &unled)));
            }
            text.push('\n');
            text.push_str(&pool_table(&pools, look).print_within(!verb.no_headers, within));
            let shown: Vec<&Row<'_>> = rows.iter().filter(|it| wide || !it.state.quiet()).collect();
            if !shown.is_empty() {
                text.push('\n');
                text.push_str(&node_table(&shown, look).print_within(!verb.no_headers, within));
            }
            text.push_str(&pending_lines(&picture, &homeless, look));
            for it in explain::unanswered(&picture.world(), picture.at) {
                text.push_str(&line(&it));
            }
            for warning in picture.warnings() {
                text.push_str(&line(&look.mark(Mark::Careful, &warning)));
            }
            for story in explain::doubted(&picture.doubted) {
                text.push('\n');
                text.push_str(&hanging(&story.to_string(), STORY_INDENT, within.columns));
            }
            look.plain(&text)
        }
        FleetFormat::Json => serialize(
            Format::Json,
            &data::status(&opened, &picture, &rows, &pools, &homeless, halt.as_ref()),
        )?,
        FleetFormat::Yaml => serialize(
            Format::Yaml,
            &data::status(&opened, &picture, &rows, &pools, &homeless, halt.as_ref()),
        )?,
    };
    Ok(Answer { data, talk: String::new(), exit: Exit::Done })
}

pub(crate) fn drift(verb: &cli::Drift, look: Look) -> Result<Answer, Failure> {
    let (opened, picture) = look_at(&verb.world)?;
    let mut rows = rows::rows(&picture);
    rows.retain(|it| !it.gone);
    if let Some(about) = &verb.about {
        match Names::new(&opened.world, &picture).find(about)? {
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
                match rows.len() {
                    0 => "there are no nodes\n".to_owned(),
                    1 => "1 node, in sync\n".to_owned(),
                    all => format!("{all} nodes, all in sync\n"),
                }
            } else {
                let table = drift_table(&shown, look);
                look.plain(&table.print_within(!verb.no_headers, Within::terminal()))
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
    let (opened, picture) = look_at(&verb.world)?;
    let rows = rows::in_order(&picture);
    let homeless = rows::homeless(&picture);
    let data = match verb.output {
        FleetFormat::Table | FleetFormat::Wide => {
            let mut text = if rows.is_empty() {
                "nothing to replace\n".to_owned()
            } else {
                let wide = verb.output == FleetFormat::Wide;
                let table = plan_table(&rows, wide, look);
                table.print_within(!verb.no_headers, Within::terminal())
            };
            text.push_str(&pending_lines(&picture, &homeless, look));
            text.push_str(&expected(&picture));
            if let Some(unled) = unled(&opened) {
                let columns = Within::terminal().columns;
                text.push_str(&hanging(&look.mark(Mark::Careful, &unled), 2, columns));
            }
            look.plain(&text)
        }
        FleetFormat::Json => {
            serialize(Format::Json, &data::plan(&opened, &picture, &rows, &homeless))?
        }
        FleetFormat::Yaml => {
            serialize(Format::Yaml, &data::plan(&opened, &picture, &rows, &homeless))?
        }
    };
    let some = !rows.is_empty() || !homeless.is_empty();
    let exit = if some && verb.detailed_exitcode { Exit::Differs } else { Exit::Done };
    Ok(Answer { data, talk: String::new(), exit })
}

/// How long it takes, and of how many nobody knows: what people hold has no length.
fn expected(picture: &Picture) -> String {
    let plan = &picture.plan;
    let there = plan.under_way.iter().filter(|it| picture.fleet.nodes.contains_key(*it));
    let all = there.count() + plan.start.len() + plan.waiting.len();
    match plan.expected {
        Some(it) => {
            let left = match all.saturating_sub(it.nodes) {
                0 => String::new(),
                1 => "; 1 more is not counted: it waits for people, or until a time of its own"
                    .to_owned(),
                left => format!(
                    "; {left} more are not counted: they wait for people, or until a time of their own"
                ),
            };
            format!("expected: {}, about {}{left}\n", it.whom(), explain::relative(it.duration))
        }
        // Before anything was measured nobody knows of anybody.
        None if all == 0 || nodemolt_core::plan::round(&picture.fleet).is_none() => String::new(),
        None => "expected: no duration is foreseen for what they wait for\n".to_owned(),
    }
}

pub(crate) fn explain(verb: &cli::Explain, look: Look) -> Result<Answer, Failure> {
    let (opened, picture) = look_at(&verb.world)?;
    let mut story = match &verb.about {
        None => fleet_story(&opened, &picture),
        Some(about) => {
            let names = Names::new(&opened.world, &picture);
            let there = names.there(about)?.and_then(|it| story(&opened, &picture, &it));
            let story = there.or_else(|| names.claim_or_gone(&picture, about));
            story.ok_or_else(|| names.unknown(about))?
        }
    };
    if let Some(text) = unled(&opened).filter(|_| verb.about.is_some()) {
        story.facts.push(explain::Fact { label: "leader", text });
    }
    let data = match verb.output {
        StoryFormat::Text => {
            look.plain(&hanging(&story.to_string(), STORY_INDENT, terminal::columns()))
        }
        StoryFormat::Json => serialize(Format::Json, &data::story(&picture, &story))?,
        StoryFormat::Yaml => serialize(Format::Yaml, &data::story(&picture, &story))?,
    };
    Ok(Answer { data, talk: String::new(), exit: Exit::Done })
}

fn story(opened: &Opened, picture: &Picture, named: &Named) -> Option<Story> {
    let (world, now) = (picture.world(), picture.at);
    match named {
        Named::Node(node) => explain::explain(&world, node, now),
        Named::Pool(pool) => explain::explain_pool(&world, pool, now).map(|mut story| {
            let halt = Halt::of(opened).map(|it| it.text());
            story.facts.extend(halt.map(|text| explain::Fact { label: "halt", text }));
            story
        }),
        Named::Pod { namespace, name } => explain::explain_pod(&world, namespace, name, now)
            .or_else(|| named::bystander(&opened.world, namespace, name)),
    }
}

/// With who leads: after a crash, or when two believe that they do, people ask that first.
fn fleet_story(opened: &Opened, picture: &Picture) -> Story {
    let mut story = explain::explain_fleet(&picture.world(), picture.at);
    let halt = Halt::of(opened).map(|it| ("halt", it.text()));
    let leader = ("leader", unled(opened).unwrap_or_else(|| leader(opened)));
    let clock = picture.clock_told().map(|it| ("clock", it));
    for (label, text) in [leader].into_iter().chain(clock).chain(halt) {
        story.facts.push(explain::Fact { label, text });
    }
    story
}

/// Since when nobody leads, if nobody does: what was decided then is all that there is to tell.
fn unled(opened: &Opened) -> Option<String> {
    let leases = opened.world.objects(kinds::LEASE);
    let spec = leases.iter().find_map(|it| it.pointer("/spec"))?;
    let renewed: Timestamp = spec.get("renewTime")?.as_str()?.parse().ok()?;
    let lasts = SignedDuration::from_secs(spec.get("leaseDurationSeconds")?.as_i64()?);
    let holder = spec.get("holderIdentity").and_then(|it| it.as_str()).filter(|it| !it.is_empty());
    // Replicas go by when they saw it change, whatever its holder's clock says.
    let wrong_by = holder.map(|it| opened.world.clock_wrong_by(it)).unwrap_or_default();
    let renewed = renewed.saturating_sub(wrong_by).unwrap_or(renewed);
    let over = renewed.saturating_add(lasts).unwrap_or(Timestamp::MAX) < opened.world.now();
    (over || holder.is_none()).then(|| {
        let last = holder.map(|it| format!("; {it} led last")).unwrap_or_default();
        let renewed = Timestamp::from_second(renewed.as_second()).unwrap_or(renewed);
        format!("nobody leads since {renewed}{last}: nothing goes on until somebody does")
    })
}

/// By the lease, which is all that a cluster knows of it; the ledger counts the leaders.
fn leader(opened: &Opened) -> String {
    let leases = opened.world.objects(kinds::LEASE);
    let holder = leases.iter().find_map(|it| it.pointer("/spec/holderIdentity")?.as_str());
    let ledgers = opened.world.objects(kinds::LEDGER);
    let epoch = ledgers.first().and_then(|it| it.pointer("/status/epoch")?.as_u64());
    match (holder.filter(|it| !it.is_empty()), epoch) {
        (None, _) => "none yet".to_owned(),
        (Some(holder), None) => holder.to_owned(),
        (Some(holder), Some(epoch)) => format!("{holder}   epoch {epoch}"),
    }
}

pub(crate) fn upgrade(verb: &cli::Upgrade) -> Result<Answer, Failure> {
    // Who is not named is found when it happens.
    let anybody = match verb.about.split_once('/') {
        None => verb.about.starts_with('@').then(|| Target::Node(verb.about.clone())),
        Some((_, name)) if name.starts_with('@') => verb.about.parse().ok(),
        Some(_) => None,
    };
    if let Some(target) = anybody {
        return do_act(&verb.world, &Act::Upgrade(target));
    }
    let (opened, picture) = look_at(&verb.world)?;
    let target = match Names::new(&opened.world, &picture).find(&verb.about)? {
        Named::Node(node) => Target::Node(node),
        Named::Pool(pool) => {
            let of =
                |it: &nodemolt_core::plan::Node| it.member.pool.as_deref() == Some(pool.as_str());
            if !picture.fleet.nodes.values().any(of) {
                return Err(Failure::new(format!("pool `{pool}` has no nodes"))
                    .hint("there is nothing to replace in it"));
            }
            Target::Pool(pool)
        }
        Named::Pod { .. } => {
            return Err(Failure::usage(format!("`{}` is a pod", verb.about))
                .hint("nodes are replaced, not pods; name a node or a pool"));
        }
    };
    let starting = match &target {
        Target::Node(node) => picture.world().starting(node),
        Target::Pool(_) => false,
    };
    let mut answer = do_act(&verb.world, &Act::Upgrade(target))?;
    if starting {
        let node = &verb.about;
        let _ = writeln!(
            answer.talk,
            "{node} is not set up yet: it is replaced once it is, or given up"
        );
    }
    Ok(answer)
}

pub(crate) fn pause(verb: &cli::Pause) -> Result<Answer, Failure> {
    if verb.reason.trim().is_empty() {
        return Err(Failure::usage("--reason is empty").hint("whoever waits is told; write why"));
    }
    if let Some(at) = verb.reason.chars().position(char::is_control) {
        let message =
            format!("--reason is no line of plain text: its character {} is none", at + 1);
        return Err(Failure::usage(message).hint(
            "it is told in one line: write it without line breaks, tabs and control characters",
        ));
    }
    do_act(&verb.world, &Act::Pause { reason: verb.reason.clone() })
}

pub(crate) fn resume(verb: &cli::Resume) -> Result<Answer, Failure> {
    // The world is asked whether it is paused, as a script may ask twice.
    let paused = Halt::of(&Opened::open(&verb.world)?).and_then(|it| it.paused);
    if paused.is_none() {
        let data = "it is not paused: there is nothing to resume\n".to_owned();
        return Ok(Answer { data, talk: String::new(), exit: Exit::Done });
    }
    do_act(&verb.world, &Act::Resume)
}

pub(crate) fn unlock(verb: &cli::Unlock) -> Result<Answer, Failure> {
    let locked = Halt::of(&Opened::open(&verb.world)?).and_then(|it| it.locked);
    if locked.is_none() {
        let data = "it is not locked: there is nothing to release\n".to_owned();
        return Ok(Answer { data, talk: String::new(), exit: Exit::Done });
    }
    do_act(&verb.world, &Act::Unlock)
}

fn look_at(asked: &cli::WorldPath) -> Result<(Opened, Picture), Failure> {
    let opened = Opened::open(asked)?;
    let picture = opened.world.picture().map_err(Failure::new)?;
    Ok((opened, picture))
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
        printable(&simulation.cluster),
        printable(&opened.file.name),
        opened.file.seed,
        simulation.kubernetes,
        printable(&simulation.region),
        opened.world.now()
    )
}

/// One line for each pod that was moved and has no node: it is not over for those.
fn pending_lines(picture: &Picture, homeless: &[&Pending], look: Look) -> String {
    let mut text = String::new();
    for it in homeless {
        let story =
            explain::explain_pod(&picture.world(), &it.pod.namespace, &it.pod.name, picture.at);
        let since = explain::relative(picture.at.duration_since(it.since));
        let from = it.from_nodes.join(", ");
        let mut line = format!("pod {} was moved from {from} and is pending for {since}", it.pod);
        if let Some(cause) = story.as_ref().and_then(|it| it.causes.first()) {
            let _ = write!(line, ": waits for {}", cause.text);
        }
        let _ = writeln!(text, "{}", look.mark(Mark::Careful, &line));
    }
    text
}

pub(crate) fn pool_table(pools: &[Pool<'_>], look: Look) -> Table {
    let mut table = Table::new(&[
        "POOL", "CLASS", "NODES", "IN SYNC", "DRIFTED", "UNKNOWN", "GOING", "WAITING", "STATE",
    ]);
    for it in pools {
        let state = if it.gone {
            look.mark(Mark::Careful, "its NodePool does not exist")
        } else if it.going > 0 {
            look.mark(Mark::Waiting, "replacing")
        } else if it.pending > 0 {
            look.mark(Mark::Careful, "moved pods pending")
        } else if it.nodes == 0 {
            look.mark(Mark::Passed, "no nodes")
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

/// Without what kind of machine it is, and where: what it waits for is what one looks at.
pub(crate) fn short_node_table(rows: &[&Row<'_>], look: Look) -> Table {
    let mut table = Table::new(&["NODE", "POOL", "IMAGE", "UP", "STATE"]);
    for it in rows {
        let (node, pool) = (it.node.to_owned(), it.pool.unwrap_or("-").to_owned());
        table.row(vec![node, pool, it.image(), it.up.clone(), state(it, look)]);
    }
    table
}

/// What fits into the smallest window.
pub(crate) fn node_states(rows: &[&Row<'_>], look: Look) -> Table {
    let mut table = Table::new(&["NODE", "STATE"]);
    for it in rows {
        table.row(vec![it.node.to_owned(), state(it, look)]);
    }
    table
}

fn state(row: &Row<'_>, look: Look) -> String {
    match &row.state {
        State::Fine => look.mark(Mark::Good, "current"),
        State::Away(Unavailable::Cordoned) => look
            .mark(Mark::Careful, "current, but cordoned, and not by us: it counts in its budgets"),
        State::Away(why) => {
            let why = format!("current, but {}: it counts in its budgets", why.as_str());
            look.mark(Mark::Careful, &why)
        }
        State::NotOurs => look.mark(Mark::Passed, "no NodeClaim of ours"),
        State::LeftOver(finalizers) => look.mark(
            Mark::Passed,
            &format!("its machine has ended; the Node is held by finalizer `{finalizers}`"),
        ),
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
            None => (
                look.mark(Mark::Careful, "unknown"),
                vec!["there is no claim of ours that can be read".to_owned()],
            ),
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
