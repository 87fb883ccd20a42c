//! What do we tell people?
//!
//! `world × node, pool, pod or fleet × now → story`
//!
//! A story is a value: labelled facts, the causes with kind, namespace and name, and what happens next.
//! Text, JSON and HTML show the same one, and compute nothing. Times are given twice: relative for
//! people, absolute for tickets.

mod asked;
mod behind;
mod cause;
mod doubted;
mod gone;
mod lifted;
mod pod;
mod story;
mod stuck;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;

pub use asked::{ClassTold, Newer, Unanswered};
pub use behind::Behind;
pub use cause::causes;
pub use doubted::{Doubted, Kept, Orphan, doubted};
pub use gone::{RecordTold, explain_claim, explain_gone};
pub use pod::explain_pod;
pub use story::{Cause, Fact, Named, Story, User, relative};
pub use stuck::stuck;

use crate::budget::{ClassRule, Limits, Measured, Standing, Unavailable, Unit};
use crate::drain::{AtLimit, Drain, Held, Hold, evictions, forced_at, limit_ends_at};
use crate::drift::{Divergence, Drift};
use crate::node::{ImageRef, Running};
use crate::plan::{Fleet, Node, Plan, WaitFor, Waiting};
use crate::replace::{
    Cause as ReplacedFor, JOIN_DEADLINE, LAUNCH_DEADLINE, Order, Phase, READY_DEADLINE,
    Replacement, SETTLE_DEADLINE, Step, next_try_at,
};
use cause::{held_causes, of_step};
use lifted::{given_back, lifted};
use story::both;

/// So many things that hold nodes are told of a pool or the fleet: a screen is not higher.
const CAUSES_TOLD_MAX: usize = 12;

/// What happens next, where nothing does.
const NOTHING_TO_DO: &str = "nothing to do";

/// All that there is to tell from. What is missing is told as missing.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    pub fleet: &'a Fleet,
    pub plan: &'a Plan,
    pub rooms: &'a Measured,
    pub limits: &'a Limits,
    /// By node.
    pub running: &'a BTreeMap<String, Running>,
    pub drifts: &'a BTreeMap<String, Drift>,
    /// By node: open ones, and the last one that ended.
    pub replacements: &'a BTreeMap<String, Replacement>,
    /// By node: what its record says for people.
    pub records: &'a BTreeMap<String, RecordTold>,
    /// By node: where each open one goes from here, as [`crate::replace::next`] says.
    pub steps: &'a BTreeMap<String, Step>,
    pub drains: &'a [Drain],
    /// By class.
    pub classes: &'a BTreeMap<String, ClassTold>,
    /// By claim: the successors of replacements, and whatever else is on its way.
    pub successors: &'a BTreeMap<String, SuccessorTold>,
    /// What a person has to look at.
    pub doubted: &'a Doubted,
}

impl World<'_> {
    /// Whether a node has joined and is not set up: nobody looks yet whether it matches.
    pub fn starting(&self, node: &str) -> bool {
        let mut on_their_way = self.successors.values().filter(|it| it.on_its_way);
        on_their_way.any(|it| it.node.as_deref() == Some(node))
    }
}

/// What is told of a successor beside its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuccessorTold {
    pub pool: Option<String>,
    pub node: Option<String>,
    pub class: Option<String>,
    /// It takes no pods yet, and will.
    pub on_its_way: bool,
    /// It has a machine.
    pub launched: bool,
    /// Why the last attempt to launch it came to nothing, while it has no machine.
    pub failed: Option<String>,
}

/// Why a node is, or is not, replaced. `None` if there is no such node.
pub fn explain(world: &World<'_>, name: &str, now: Timestamp) -> Option<Story> {
    let Some(node) = world.fleet.nodes.get(name) else { return doubted::lost(world, name) };
    let mut story = Story::about("node", name);
    head(&mut story, world, name, node, now);
    gone::tell_deleted(&mut story, world, name, now);
    if let Some(drift) = world.drifts.get(name) {
        tell_drift(&mut story, drift);
    }
    tell_wish(&mut story, node, now);
    tell_away(&mut story, world, name);
    let told = node.member.class.as_ref().and_then(|it| world.classes.get(it));
    let replacement = world.replacements.get(name);
    if let Some(replacement) = replacement.filter(|it| !it.phase.ended()) {
        tell_replacement(&mut story, world, replacement, now);
    } else if let Some(waiting) = world.plan.waiting.get(name) {
        tell_last(&mut story, replacement, now);
        tell_waiting(&mut story, world, node, waiting, now);
    } else if let Some(start) = world.plan.start.iter().find(|it| it.node == name) {
        story.fact("plan", format!("starts now ({})", start.cause.as_str()));
        story.then("a successor is launched, if its pods need one");
    } else {
        stays(&mut story, world, name, node, now);
    }
    let rule = node.member.class.as_ref().and_then(|it| world.limits.classes.get(it));
    if let Some(unread) = rule.and_then(windows_unread) {
        story.fact("policy", unread);
    }
    if let Some(told) = told {
        let told = (node.member.class.as_deref(), told);
        asked::tell(&mut story, told, world.running.get(name), world.drifts.get(name), now);
    }
    doubted::tell(&mut story, world, name);
    Some(story)
}

/// Why a node is not available though nobody replaces it: others wait for it, and it may be fine otherwise.
pub fn away(world: &World<'_>, name: &str) -> Option<Unavailable> {
    let node = world.fleet.nodes.get(name)?;
    let replaced = world.replacements.get(name).is_some_and(|it| !it.phase.ended());
    match node.member.standing {
        Standing::Unavailable(Unavailable::Deleting) | Standing::Outside | Standing::Available => {
            None
        }
        Standing::Unavailable(why) => Some(why).filter(|_| !replaced),
    }
}

fn tell_away(story: &mut Story, world: &World<'_>, name: &str) {
    let Some(why) = away(world, name) else { return };
    let text = match why {
        Unavailable::Cordoned => {
            "cordoned, and not by us (`spec.unschedulable`, or a taint of others)"
        }
        Unavailable::NotReady | Unavailable::BrokenByCandidate | Unavailable::Deleting => {
            why.as_str()
        }
    };
    story.fact("away", format!("{text}: it uses a place in each of its budgets"));
}

/// That the windows of a policy open for nobody, since nobody can read them.
pub fn windows_unread(rule: &ClassRule) -> Option<String> {
    let unread = rule.windows.as_ref()?.as_ref().err()?;
    let policy = &rule.policy;
    Some(format!(
        "ImagePolicy `{policy}`: nothing may start until its windows can be read: {}",
        unread.0
    ))
}

/// Nothing is done about it.
fn stays(story: &mut Story, world: &World<'_>, name: &str, node: &Node, now: Timestamp) {
    if gone::tell_left_over(story, world, name, now) {
        return;
    }
    // Whoever has a claim that is on its way needs none of those that cannot be read.
    if world.starting(name) {
        story.fact("plan", "stays as it is: it has joined, and is not set up yet");
        story.next = format!(
            "given up {READY_DEADLINE:#} after it joined, unless it is set up by then or somebody runs on it"
        );
        return;
    }
    let ours = node.member.pool.is_some() && !world.drifts.contains_key(name);
    let unread = ours && doubted::tell_unread(story, world);
    story.fact("plan", "stays as it is");
    if unread {
        return;
    }
    story.next = match world.drifts.get(name) {
        Some(Drift::Unknown(missing)) => {
            let class = node.member.class.as_deref();
            let told = class.and_then(|it| world.classes.get(it));
            let causes = asked::unknown(missing, (class, told), world.running.get(name));
            let ends_at = causes.iter().find_map(|it| it.ends_at);
            story.causes.extend(causes);
            match ends_at {
                Some(at) => format!("looked at again {}", story::when(at, now)),
                None => format!("nothing, until we know {missing}"),
            }
        }
        Some(Drift::InSync | Drift::Drifted { .. }) | None => match away(world, name) {
            Some(Unavailable::Cordoned) => {
                format!("`kubectl uncordon {name}`, if it is to take pods again")
            }
            Some(_) | None => NOTHING_TO_DO.to_owned(),
        },
    };
}

fn head(story: &mut Story, world: &World<'_>, name: &str, node: &Node, now: Timestamp) {
    let running = world.running.get(name);
    let mut words = vec![name.to_owned()];
    words.extend(node.member.pool.as_ref().map(|it| format!("pool {it}")));
    words.extend(running.and_then(|it| it.instance_type.clone()));
    words.extend(node.zone.clone());
    words.push(format!("up {}", relative(now.duration_since(node.created_at))));
    story.fact("node", words.join("   "));
    if let Some(class) = &node.member.class {
        story.fact("class", class.clone());
    }
    if let Some(image) = running.and_then(|it| it.image.as_ref()) {
        story.fact("runs", image_text(image, now));
    }
    let wants = world.drifts.get(name).into_iter().flat_map(Drift::divergences);
    for divergence in wants {
        if let Divergence::Image { to, .. } = divergence {
            story.fact("wants", image_text(to, now));
        }
    }
}

fn image_text(image: &ImageRef, now: Timestamp) -> String {
    let mut words = vec![image.id.to_string()];
    words.extend(image.name.clone());
    words.extend(image.dated.map(|it| format!("{} old", relative(now.duration_since(it)))));
    words.join("   ")
}

fn tell_drift(story: &mut Story, drift: &Drift) {
    match drift {
        Drift::InSync => story.fact("drift", "in sync"),
        Drift::Unknown(missing) => story.fact("drift", format!("unknown: we miss {missing}")),
        Drift::Drifted { first, more, unchecked } => {
            story.fact("drift", first.to_string());
            for it in more {
                story.fact("", it.to_string());
            }
            for it in unchecked {
                story.fact("", format!("not compared: {it}"));
            }
        }
    }
}

/// Why it is to go, where that is not what it differs in.
fn tell_wish(story: &mut Story, node: &Node, now: Timestamp) {
    let Some(wish) = &node.wish else { return };
    let since = both(wish.since, now);
    match wish.cause {
        ReplacedFor::Expiry => story.fact("expired", since),
        ReplacedFor::Asked if wish.by_name => {
            story.fact("asked", format!("for by a person, by its name: {since}"));
        }
        ReplacedFor::Asked => {
            story.fact("asked", format!("for by a person, with its pool: {since}"));
        }
        ReplacedFor::Interrupted => story.fact("machine", format!("ended, as EC2 says: {since}")),
        ReplacedFor::Drift | ReplacedFor::Deleted => {}
    }
}

fn tell_waiting(
    story: &mut Story,
    world: &World<'_>,
    node: &Node,
    waiting: &Waiting,
    now: Timestamp,
) {
    let behind = Behind::of(world, now);
    for (place, reason) in waiting.all().enumerate() {
        let causes = behind.causes(world, reason, node.member.class.as_deref(), now);
        let text = causes.first().map_or("", |it| it.text.as_str());
        story.fact(if place == 0 { "plan" } else { "" }, format!("waiting for {text}"));
        story.causes.extend(causes);
        if let WaitFor::HomelessPod { pod, .. } = reason {
            pod::tell_lacks(story, world, pod, now);
        }
    }
    story.next = after_all(world, node, waiting, now);
    if let Some(remedy) = behind.remedy(waiting, node.member.class.as_deref()) {
        let _ = write!(story.next, "; {remedy}");
    }
}

/// All of it has to end: what others use, what ends last by itself, and the rest.
fn after_all(world: &World<'_>, node: &Node, waiting: &Waiting, now: Timestamp) -> String {
    // By name: what is waited for of each.
    let mut others: BTreeMap<String, String> = BTreeMap::new();
    let mut not_before: Option<Timestamp> = None;
    let (mut lifts, mut rest): (Vec<String>, usize) = (Vec::new(), 0);
    for reason in waiting.all() {
        match (reason, reason.ends_at()) {
            (_, Some(at)) => not_before = not_before.max(Some(at)),
            // One that allows nobody allows nobody when those who use it are back.
            (WaitFor::Budget(shortage), None)
                if shortage.allowed > 0 && !shortage.used_by.is_empty() =>
            {
                others.extend(
                    shortage.used_by.iter().map(|(node, by)| (node.clone(), given_back(node, by))),
                );
            }
            (WaitFor::SharedWorkload { pod: Some(pod), .. }, None) => {
                others.insert(format!("pod {pod}"), "is ready".to_owned());
            }
            (WaitFor::SharedWorkload { workload, missing: true, .. }, None) => {
                others.insert(format!("a pod of {workload}"), "is back and ready".to_owned());
            }
            (
                WaitFor::Succession { node }
                | WaitFor::SharedBudget { node, .. }
                | WaitFor::SharedWorkload { node, pod: None, .. },
                None,
            ) => {
                others.insert(node.clone(), "is done".to_owned());
            }
            (_, None) => match lifted(world, node, reason) {
                Some(it) if lifts.contains(&it) => {}
                Some(it) => lifts.push(it),
                None => rest += 1,
            },
        }
    }
    let others: Vec<(String, String)> = others.into_iter().collect();
    if others.is_empty() && lifts.is_empty() {
        match (not_before, rest) {
            (Some(at), 0) => return format!("looked at again {}", story::when(at, now)),
            (None, 1) => return "starts when that is lifted".to_owned(),
            (None, _) => return "starts when all of that is lifted".to_owned(),
            (Some(_), _) => {}
        }
    }
    let mut parts = Vec::new();
    match others.as_slice() {
        [] => {}
        [(name, so)] => parts.push(format!("when {name} {so}")),
        several if several.iter().all(|it| it.1 == "is done") => {
            let names: Vec<&str> = several.iter().map(|it| it.0.as_str()).collect();
            parts.push(format!("when enough of {} are done", names.join(", ")));
        }
        several => {
            let told: Vec<String> =
                several.iter().map(|(name, so)| format!("{name} {so}")).collect();
            parts.push(format!("when enough of this is so: {}", told.join("; ")));
        }
    }
    parts.extend(lifts);
    if rest > 0 {
        parts.push("when the rest of that is lifted".to_owned());
    }
    parts.extend(not_before.map(|at| format!("not before {}", both(at, now))));
    format!("starts {}", parts.join(", and "))
}

fn tell_replacement(
    story: &mut Story,
    world: &World<'_>,
    replacement: &Replacement,
    now: Timestamp,
) {
    let since = story::ago(replacement.since, now);
    let Replacement { phase, cause: why, because, .. } = replacement;
    story.fact("plan", format!("{} since {since} ({}): {because}", phase.as_str(), why.as_str()));
    for successor in &replacement.successors {
        let told = world.successors.get(&successor.claim);
        let mut text = format!("successor {}", successor.claim);
        if let Some(node) = told.and_then(|it| it.node.as_ref()) {
            let _ = write!(text, " (node {node})");
        }
        if let Some(why) = told.and_then(|it| it.failed.as_ref()) {
            let _ = write!(text, ": not launched so far: {why}");
        }
        story.fact("", text);
    }
    let node = &replacement.old.node;
    let (_, held) = evictions(world.drains, &world.fleet.pdbs, now);
    tell_held(story, world, node, &held, now);
    let drain = world.drains.iter().find(|it| it.node == *node);
    let limit = drain.and_then(|it| limit_ends_at(it, now));
    let deadline = drain.and_then(|it| it.deadline);
    let step = world.steps.get(node);
    let held = !story.causes.is_empty();
    tell_hindered(story, drain, now);
    let goes_anyway = goes_anyway(world, replacement);
    story.causes.extend(step_cause(world, node));
    tell_order(story, world, replacement);
    if let Some(at) = deadline.filter(|_| held) {
        story.next = at_deadline(at, *why, now);
        return;
    }
    story.next = match (limit, step) {
        (limit, _) if held && (limit.is_some() || goes_anyway) => {
            at_limit(limit.filter(|_| !goes_anyway), replacement, now)
        }
        (_, Some(step)) if step.phase == *phase => waits(step, replacement, now),
        (_, Some(step)) => format!("{}: {}", step.phase.as_str(), step.because),
        (_, None) => format!("goes on from {}", phase.as_str()),
    };
}

/// Its pods are deleted in time, whatever holds them.
fn at_deadline(at: Timestamp, why: ReplacedFor, now: Timestamp) -> String {
    let when = story::when(at, now);
    match why {
        ReplacedFor::Interrupted => {
            format!("its machine is taken away {when}, with whoever is left")
        }
        ReplacedFor::Drift | ReplacedFor::Expiry | ReplacedFor::Asked | ReplacedFor::Deleted => {
            format!(
                "whoever is left is deleted, to be gone {when}: its terminationGracePeriod ends"
            )
        }
    }
}

/// That nobody answers whether pods may leave.
fn tell_hindered(story: &mut Story, drain: Option<&Drain>, now: Timestamp) {
    let Some((drain, (since, why))) = drain.and_then(|it| Some((it, it.hindered.as_ref()?))) else {
        return;
    };
    let since = both(*since, now);
    let text = format!("its pods cannot be asked to leave since {since}: {why}");
    story.fact("", text.clone());
    story.causes.push(Cause {
        reason: "CouldNotAsk",
        named: Named::cluster("Node", &drain.node),
        text,
        ends_at: None,
        used_by: Vec::new(),
    });
}

/// What becomes of a drain that is held, and when. Whoever deleted the node waits for no limit.
fn at_limit(limit: Option<Timestamp>, replacement: &Replacement, now: Timestamp) -> String {
    let Some(at) = limit else {
        return "it leaves when that is lifted: it was deleted, so no drain limit ends this"
            .to_owned();
    };
    let when = story::when(at, now);
    match replacement.at_limit {
        AtLimit::Wait if at <= now => {
            format!(
                "waits until that is lifted: the drain limit ended {when}, and its policy says to wait"
            )
        }
        AtLimit::Wait => format!("the drain limit ends {when}, and its policy says to wait on"),
        AtLimit::Force if at <= now => format!("the drain limit ended {when}"),
        AtLimit::Force => format!("the drain limit ends {when}, and then its pods are deleted"),
        AtLimit::Skip if at <= now => {
            format!("the drain limit ended {when}: {}", skipped(replacement))
        }
        AtLimit::Skip => format!("the drain limit ends {when}: then {}", skipped(replacement)),
    }
}

/// What follows a drain limit that gives up.
fn skipped(replacement: &Replacement) -> String {
    let failures = replacement.failures.saturating_add(1);
    let after = next_try_at(failures, Timestamp::UNIX_EPOCH).duration_since(Timestamp::UNIX_EPOCH);
    format!("it is uncordoned, and tried again {} later", relative(after))
}

/// That it goes before there is a successor was somebody's word: whose?
fn tell_order(story: &mut Story, world: &World<'_>, replacement: &Replacement) {
    if replacement.order != Order::DeleteFirst || !replacement.cause.voluntary() {
        return;
    }
    let class = world.fleet.nodes.get(&replacement.old.node).map(|it| &it.member);
    let class = class.or_else(|| world.fleet.gone.get(&replacement.old.node));
    let class = class.and_then(|it| it.class.as_ref());
    // Whoever said so may have changed their mind since.
    let rule = class.and_then(|it| world.limits.classes.get(it));
    let text = match rule.filter(|it| it.order == Order::DeleteFirst) {
        Some(rule) => {
            let text = format!("ImagePolicy `{}` says `replacement: DeleteFirst`", rule.policy);
            story.causes.push(Cause {
                reason: "DeleteFirst",
                named: Named::cluster("ImagePolicy", &rule.policy),
                text: text.clone(),
                ends_at: None,
                used_by: Vec::new(),
            });
            text
        }
        None => "it was begun so".to_owned(),
    };
    story.fact("order", format!("the old node goes before its successor comes: {text}"));
}

/// How the last try ended, if it did not come to a good end.
fn tell_last(story: &mut Story, replacement: Option<&Replacement>, now: Timestamp) {
    let Some(last) = replacement.filter(|it| it.phase.failed()) else { return };
    let ended = format!("{} at {}: {}", last.phase.as_str(), both(last.since, now), last.because);
    story.fact("last", ended);
    if last.phase == Phase::Kept {
        let names: Vec<&str> = last.successors.iter().map(|it| it.claim.as_str()).collect();
        let names = names.join(", ");
        story.fact("", format!("pods of it run on its successor, which stays: {names}"));
    }
}

/// The pods that hold its drain.
fn tell_held(story: &mut Story, world: &World<'_>, node: &str, held: &[Held], now: Timestamp) {
    for held in held.iter().filter(|it| it.node == *node && blocks(&it.why)) {
        let at = killed_at(world, held, now);
        let at = at.map_or(String::new(), |it| format!("; deleted {}", story::when(it, now)));
        for causes in held_causes(held, world) {
            let text = causes.first().map_or("", |it| it.text.as_str());
            story.fact("", format!("pod {}: {text}{at}", held.pod));
            story.causes.extend(causes);
        }
    }
}

/// When a pod is deleted that is held until then.
fn killed_at(world: &World<'_>, held: &Held, now: Timestamp) -> Option<Timestamp> {
    let drain = world.drains.iter().find(|it| it.node == held.node)?;
    let at_deadline = forced_at(drain.pods.iter().find(|it| it.id == held.pod)?, drain);
    let at_limit = || limit_ends_at(drain, now).filter(|_| drain.at_limit == AtLimit::Force);
    at_deadline.or_else(at_limit)
}

/// Whether somebody has deleted its node, whatever it was replaced for at first: no drain limit ends that.
fn goes_anyway(world: &World<'_>, replacement: &Replacement) -> bool {
    let node = world.fleet.nodes.get(&replacement.old.node);
    let wish = node.and_then(|it| it.wish.as_ref()).map(|it| it.cause);
    [Some(replacement.cause), wish].contains(&Some(ReplacedFor::Deleted))
}

/// What an open replacement waits for now, for a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Going {
    pub because: String,
    /// The first of them is what `because` says, unless it waits for itself.
    pub causes: Vec<Cause>,
}

/// `None` where no replacement of the node is open.
pub fn going(world: &World<'_>, node: &str, now: Timestamp) -> Option<Going> {
    let replacement = world.replacements.get(node).filter(|it| !it.phase.ended())?;
    let (_, held) = evictions(world.drains, &world.fleet.pdbs, now);
    let mut story = Story::about("node", node);
    tell_held(&mut story, world, node, &held, now);
    let step = world.steps.get(node).filter(|it| it.phase == replacement.phase);
    let because = match (story.facts.as_slice(), step) {
        ([first], _) => format!("waits for {}", first.text),
        ([first, more @ ..], _) => format!("waits for {} (and {} more)", first.text, more.len()),
        ([], Some(step)) => match step_cause(world, node) {
            Some(cause) => format!("waits for {}", cause.text),
            None => step.because.to_string(),
        },
        ([], None) => replacement.because.to_string(),
    };
    let mut causes = story.causes;
    causes.extend(step_cause(world, node));
    Some(Going { because, causes })
}

/// What its next step waits for, and why that has not come.
fn step_cause(world: &World<'_>, node: &str) -> Option<Cause> {
    let cause = of_step(&world.steps.get(node)?.because)?;
    let failed = world.successors.get(&cause.named.name).and_then(|it| it.failed.as_ref());
    Some(match failed {
        Some(why) => Cause { text: format!("{}: {why}", cause.text), ..cause },
        None => cause,
    })
}

/// What it waits for, and when it stops waiting.
fn waits(step: &Step, replacement: &Replacement, now: Timestamp) -> String {
    let patience = match replacement.phase {
        Phase::Launching => Some(LAUNCH_DEADLINE),
        Phase::Joining => Some(JOIN_DEADLINE),
        Phase::Settling => Some(SETTLE_DEADLINE),
        Phase::Draining
        | Phase::Terminating
        | Phase::Retreating
        | Phase::Done
        | Phase::Failed
        | Phase::Skipped
        | Phase::Kept
        | Phase::Cancelled => None,
    };
    let ends_at = patience.and_then(|it| replacement.since.checked_add(it).ok());
    match ends_at.filter(|_| of_step(&step.because).is_some_and(|it| it.reason != "Halted")) {
        Some(at) => format!("{}, until {}", step.because, both(at, now)),
        None => step.because.to_string(),
    }
}

fn blocks(hold: &Hold) -> bool {
    match hold {
        Hold::Stays(_) | Hold::Terminating | Hold::UnderWay { .. } | Hold::AfterOthers => false,
        Hold::Protected(_) | Hold::Bare | Hold::Refused(_) => true,
    }
}

/// How far a pool is. `None` if there is none, and no node is of it.
pub fn explain_pool(world: &World<'_>, pool: &str, now: Timestamp) -> Option<Story> {
    let of_pool = |it: &Node| it.member.pool.as_deref() == Some(pool);
    // One that cannot be read is there, and limits whoever is of it.
    let written = world.fleet.pools.contains_key(pool) || world.limits.pools.contains_key(pool);
    if !written && !world.fleet.nodes.values().any(of_pool) {
        return None;
    }
    let mut story = Story::about("pool", pool);
    let gone = "   it does not exist: it was deleted, or is not written yet";
    story.fact("pool", format!("{pool}{}", if written { "" } else { gone }));
    tell_many(&mut story, world, &of_pool, now);
    pod::tell_moved(&mut story, world, &|it| it == pool, now);
    Some(story)
}

/// How far everything is.
pub fn explain_fleet(world: &World<'_>, now: Timestamp) -> Story {
    let mut story = Story::about("fleet", "");
    tell_many(&mut story, world, &|_| true, now);
    pod::tell_moved(&mut story, world, &|_| true, now);
    for room in world.rooms.rooms() {
        // A class without a figure of its own has the cluster's slot.
        if room.allowed < u64::MAX {
            let used = room.used_sum();
            let said = match room.allowed {
                0 => format!("{} allows none", room.id),
                allowed => match room.unit {
                    Unit::Nodes => format!("{}: {used} of {allowed} nodes in use", room.id),
                    Unit::Cpu => format!("{}: {used}m of {allowed}m processors in use", room.id),
                },
            };
            story.fact("budget", said);
        }
    }
    doubted::tell_all(&mut story, world);
    story
}

/// One line for each class whose images could not be asked for, or of which nothing is known.
pub fn unanswered(world: &World<'_>, now: Timestamp) -> Vec<String> {
    world.classes.iter().flat_map(|(class, it)| asked::lines(class, it, now)).collect()
}

fn tell_many(story: &mut Story, world: &World<'_>, of: &dyn Fn(&Node) -> bool, now: Timestamp) {
    let nodes: BTreeMap<&String, &Node> =
        world.fleet.nodes.iter().filter(|(_, it)| of(it)).collect();
    let drift = |what: fn(&Drift) -> bool| {
        nodes.keys().filter_map(|it| world.drifts.get(*it)).filter(|it| what(it)).count()
    };
    let unknown = drift(|it| matches!(it, Drift::Unknown(_)));
    let drifted = drift(Drift::drifted);
    story.fact("nodes", format!("{}   {drifted} drifted   {unknown} unknown", nodes.len()));
    let under_way = world.plan.under_way.iter().filter(|it| nodes.contains_key(it));
    let (_, held) = evictions(world.drains, &world.fleet.pdbs, now);
    for name in under_way {
        if let Some(it) = world.replacements.get(name) {
            let since = story::ago(it.since, now);
            story.fact("going", format!("{name}   {} since {since}", it.phase.as_str()));
            tell_held(story, world, name, &held, now);
            story.causes.extend(step_cause(world, name));
        }
    }
    for start in world.plan.start.iter().filter(|it| nodes.contains_key(&it.node)) {
        story.fact("start", format!("{}   {}", start.node, start.cause.as_str()));
    }
    let waiting: Vec<_> =
        world.plan.waiting.iter().filter(|(name, _)| nodes.contains_key(name)).collect();
    // One line for each thing that holds, not for each kind: whoever reads it goes there.
    // What names several, as two budgets of one pod, is one thing.
    let mut held = BTreeMap::new();
    let behind = Behind::of(world, now);
    for (name, it) in &waiting {
        let class = nodes.get(name).and_then(|it| it.member.class.as_deref());
        // A node counts once for each.
        let mut counted = BTreeSet::new();
        for causes in it.all().map(|it| behind.causes(world, it, class, now)) {
            let Some(first) = causes.first() else { continue };
            let named: Vec<Named> = causes.iter().map(|it| it.named.clone()).collect();
            let key = (first.reason, named);
            if counted.insert(key.clone()) {
                held.entry(key).or_insert((0_usize, *name, causes)).0 += 1;
            }
        }
    }
    let mut held: Vec<_> = held.into_values().collect();
    held.sort_by_key(|it| std::cmp::Reverse(it.0));
    let more = held.len().saturating_sub(CAUSES_TOLD_MAX);
    for (count, name, causes) in held.into_iter().take(CAUSES_TOLD_MAX) {
        let text = causes.first().map_or("", |it| it.text.as_str());
        story.fact("waiting", format!("{count}, for example {name}: for {text}"));
        story.causes.extend(causes);
    }
    if more > 0 {
        story
            .fact("", format!("and for {more} other things: `nodemolt plan -o wide` has them all"));
    }
    asked::tell_staying(story, world, &nodes);
    let classes = nodes.values().filter_map(|it| it.member.class.as_ref());
    let classes: BTreeSet<&String> = classes.collect();
    for class in classes {
        if let Some(unread) = world.limits.classes.get(class).and_then(windows_unread) {
            story.fact("policy", unread);
        }
        if let Some(told) = world.classes.get(class) {
            asked::tell_class(story, class, told, now);
        }
    }
    let names: BTreeSet<String> = nodes.keys().map(|it| (*it).clone()).collect();
    let first_change = waiting.iter().filter_map(|(_, it)| it.first.ends_at()).min();
    let stuck = stuck(world, now);
    // How long all of it takes is nothing to those that have no part in it.
    let starts = world.plan.start.iter().any(|it| names.contains(&it.node));
    let has_part = starts || !waiting.is_empty() || !world.plan.under_way.is_disjoint(&names);
    story.next = match (world.plan.expected.filter(|_| has_part), first_change) {
        (Some(it), change) => {
            let all = format!("{}: about {} more", it.whom(), relative(it.duration));
            // Where nobody goes there is a time when somebody may.
            match change.filter(|_| !starts && world.plan.under_way.is_disjoint(&names)) {
                Some(at) => format!("looked at again {}; {all}", story::when(at, now)),
                None => all,
            }
        }
        (None, Some(at)) => format!("looked at again {}", story::when(at, now)),
        (None, None) if world.plan.under_way.intersection(&names).any(|it| !stuck.contains(it)) => {
            "goes on with those that are being replaced".to_owned()
        }
        (None, None) if !world.plan.under_way.is_disjoint(&names) => {
            "goes on when what they wait for is lifted".to_owned()
        }
        (None, None) if waiting.is_empty() && !story.next.is_empty() => story.next.clone(),
        (None, None) if waiting.is_empty() && unknown > 0 => {
            "nothing, until it is known what they should run".to_owned()
        }
        (None, None) if waiting.is_empty() => NOTHING_TO_DO.to_owned(),
        (None, None) => "goes on when what they wait for is lifted".to_owned(),
    };
}
