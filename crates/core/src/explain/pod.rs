//! What becomes of a pod, and whom does it hold?

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;

use super::cause::held_causes;
use super::story::{self, Cause, Named, Story, both};
use super::{NOTHING_TO_DO, World, asked, blocks, causes, goes_anyway, killed_at, skipped};
use crate::drain::{AtLimit, Homeless, How, PodId, evictions, limit_ends_at};
use crate::plan::{Pending, Waiting};

/// So many moved pods are told of a pool or the fleet.
const MOVED_TOLD_MAX: usize = 3;

/// What a pod does to its node, and what is done about it; or why one that was moved holds others.
pub fn explain_pod(
    world: &World<'_>,
    namespace: &str,
    name: &str,
    now: Timestamp,
) -> Option<Story> {
    let meant = |it: &PodId| it.namespace == namespace && it.name == name;
    let on = world.fleet.nodes.iter().find_map(|(node_name, node)| {
        let pod = node.pods.iter().find(|it| meant(&it.id))?;
        Some((node_name, node, pod))
    });
    let homeless = world.fleet.homeless.iter().find(|(_, it)| meant(&it.pod));
    let Some((node_name, node, pod)) = on else {
        if let Some((pool, homeless)) = homeless {
            return Some(explain_homeless(world, pool, homeless, now));
        }
        let pending = world.fleet.pending.iter().find(|it| meant(&it.pod))?;
        return Some(explain_pending(world, pending, now));
    };
    let mut story = Story::about("pod", &pod.id.to_string());
    story.fact("pod", pod.id.to_string());
    story.fact("node", node_name.clone());
    if let Some((pool, Homeless { since, .. })) = homeless {
        let since = both(*since, now);
        story.fact("pending", format!("since {since}: it was moved here and does not run"));
        story.fact("holds", holds_pool(pool));
    }
    let (evict, held) = evictions(world.drains, &world.fleet.pdbs, now);
    if let Some(held) = held.iter().find(|it| it.pod == pod.id) {
        let all = held_causes(held, world);
        for (place, causes) in all.iter().enumerate() {
            let text = causes.first().map_or(String::new(), |it| it.text.clone());
            story.fact(if place == 0 { "drain" } else { "" }, text);
        }
        let lifted = if all.len() == 1 { "that is lifted" } else { "all of that is lifted" };
        story.next = match (killed_at(world, held, now), held.again_at) {
            (Some(at), _) if blocks(&held.why) => {
                format!("deleted {}, unless {lifted} before", story::when(at, now))
            }
            (_, Some(at)) => format!("looked at again {}", story::when(at, now)),
            (_, None) if blocks(&held.why) => {
                let after = after_limit(world, node_name, now);
                format!("leaves when {lifted}{after}")
            }
            (_, None) => "nothing to do".to_owned(),
        };
        story.causes.extend(all.into_iter().flatten());
    } else if let Some(it) = evict.iter().find(|it| it.pod == pod.id) {
        match it.how {
            How::Evict | How::Delete { .. } => {
                story.fact("drain", "may leave now");
                story.then("it is evicted");
            }
            How::WithMachine { .. } => {
                story.fact("drain", "is not evicted: it tolerates the cordon");
                story.then("it ends with the machine, and starts again elsewhere");
            }
        }
    } else {
        story.fact("drain", "its node is not being emptied");
        let waiting = world.plan.waiting.get(node_name);
        for reason in waiting.into_iter().flat_map(Waiting::all) {
            if reason.pod() == Some(&pod.id) {
                let causes = causes(world, reason, node.member.class.as_deref(), now);
                let text = causes.first().map_or("", |it| it.text.as_str());
                story.fact("holds", format!("its node waits for {text}"));
                story.causes.extend(causes);
            }
        }
        story.next = match (&node.wish, waiting) {
            (None, _) => "nothing to do".to_owned(),
            (Some(_), Some(_)) => {
                format!("`nodemolt explain {node_name}` tells what its node waits for")
            }
            (Some(_), None) => format!("node {node_name} is about to be replaced"),
        };
    }
    Some(story)
}

/// What becomes of its node where it does not leave in time.
fn after_limit(world: &World<'_>, node: &str, now: Timestamp) -> String {
    let open = world.replacements.get(node).filter(|it| !it.phase.ended());
    let Some(open) = open.filter(|it| !goes_anyway(world, it)) else { return String::new() };
    let drain = world.drains.iter().find(|it| it.node == node);
    let ends_at = drain.and_then(|it| limit_ends_at(it, now));
    let Some(at) = ends_at.filter(|_| open.at_limit == AtLimit::Skip) else { return String::new() };
    format!("; else node {node} is left alone {}: {}", story::when(at, now), skipped(open))
}

fn explain_homeless(world: &World<'_>, pool: &str, homeless: &Homeless, now: Timestamp) -> Story {
    let Homeless { pod, since } = homeless;
    let mut story = Story::about("pod", &pod.to_string());
    story.fact("pod", pod.to_string());
    story.fact("node", "none");
    story.fact("pending", format!("since {}: it was moved and has no place", both(*since, now)));
    tell_lacks(&mut story, world, pod, now);
    story.fact("holds", holds_pool(pool));
    tell_room(&mut story, world, &|it| it == pool, now);
    story.then("when it has a place the pool goes on");
    story
}

fn holds_pool(pool: &str) -> String {
    format!("nodes of NodePool `{pool}`: none begins to be replaced")
}

/// One that holds nobody, or not yet.
fn explain_pending(world: &World<'_>, pending: &Pending, now: Timestamp) -> Story {
    let Pending { pod, since, moved_from, from_nodes: _, lacks: _ } = pending;
    let mut story = Story::about("pod", &pod.to_string());
    story.fact("pod", pod.to_string());
    story.fact("node", "none");
    let since = both(*since, now);
    if let Some(pool) = moved_from {
        story.fact("pending", format!("since {since}: it was moved from NodePool `{pool}`"));
        tell_lacks(&mut story, world, pod, now);
        tell_room(&mut story, world, &|it| it == pool, now);
        story.then("the scheduler finds it a place, or it gets a node where none has room");
    } else {
        story.fact("pending", format!("since {since}: not because of us"));
        story.then("nothing to do: nodes are made only for pods that were moved");
    }
    story
}

/// Pods that were moved from such pools and have no node, and what is on its way for them.
pub(super) fn tell_moved(
    story: &mut Story,
    world: &World<'_>,
    of: &dyn Fn(&str) -> bool,
    now: Timestamp,
) {
    // One that has a node and does not run there counts, too.
    let held = world.fleet.homeless.iter().map(|(pool, it)| (&it.pod, it.since, pool));
    let moved = world.fleet.pending.iter();
    let moved = moved.filter_map(|it| Some((&it.pod, it.since, it.moved_from.as_ref()?)));
    let mut all: Vec<_> = held.chain(moved).filter(|(_, _, pool)| of(pool)).collect();
    all.sort_by_key(|(pod, since, _)| (*since, *pod));
    all.dedup_by_key(|(pod, _, _)| *pod);
    for (pod, since, pool) in all.iter().take(MOVED_TOLD_MAX) {
        let since = both(*since, now);
        story.fact("pending", format!("pod {pod} since {since}: moved from NodePool `{pool}`"));
        tell_lacks(story, world, pod, now);
    }
    let more = all.len().saturating_sub(MOVED_TOLD_MAX);
    if more > 0 {
        story.fact("", format!("and {more} others"));
    }
    if !all.is_empty() && story.next == NOTHING_TO_DO {
        story.then("nothing more to do, once those pods have a place");
    }
    let pools: BTreeSet<&str> = all.iter().map(|(_, _, pool)| pool.as_str()).collect();
    tell_room(story, world, &|it| pools.contains(it), now);
}

/// Why a pod that was moved gets no node.
pub(super) fn tell_lacks(story: &mut Story, world: &World<'_>, pod: &PodId, now: Timestamp) {
    let pending = world.fleet.pending.iter().find(|it| it.pod.uid == pod.uid);
    for lacks in pending.into_iter().flat_map(|it| &it.lacks) {
        let causes = causes(world, lacks, None, now);
        let text = causes.first().map_or("", |it| it.text.as_str());
        story.fact("", format!("waits for {text}"));
        for cause in causes {
            if !story.causes.contains(&cause) {
                story.causes.push(cause);
            }
        }
    }
}

/// Pods of a node that has gone which are still without another.
pub(super) fn tell_left_behind(story: &mut Story, world: &World<'_>, node: &str, now: Timestamp) {
    let of_node = |it: &&Pending| it.from_nodes.iter().any(|it| it == node);
    let mut all: Vec<&Pending> = world.fleet.pending.iter().filter(of_node).collect();
    all.sort_by_key(|it| (it.since, &it.pod));
    for it in all.iter().take(MOVED_TOLD_MAX) {
        let since = both(it.since, now);
        let others = it.from_nodes.iter().filter(|it| *it != node);
        let mut text = format!("pod {} since {since}: it was moved from there", it.pod);
        for other in others {
            let _ = write!(text, " or from {other}");
        }
        story.fact("pending", text);
        tell_lacks(story, world, &it.pod, now);
    }
    let more = all.len().saturating_sub(MOVED_TOLD_MAX);
    if more > 0 {
        story.fact("", format!("and {more} others"));
    }
    if let Some(first) = all.first() {
        story.next = format!("`nodemolt explain {}` tells what is done about it", first.pod);
    }
}

/// What is on its way in the pools that pods were moved from, and why it has not come.
fn tell_room(story: &mut Story, world: &World<'_>, of: &dyn Fn(&str) -> bool, now: Timestamp) {
    let coming = world
        .successors
        .iter()
        .filter(|(_, it)| it.on_its_way && it.pool.as_deref().is_some_and(of));
    for (place, (claim, told)) in coming.enumerate() {
        let text = match (&told.failed, &told.node) {
            (Some(why), _) => format!("NodeClaim `{claim}` to launch: {why}"),
            (None, Some(node)) => format!("node {node} (`{claim}`) to be ready"),
            (None, None) if told.launched => format!("NodeClaim `{claim}` to join"),
            (None, None) => format!("NodeClaim `{claim}` to launch"),
        };
        story.fact(if place == 0 { "room" } else { "" }, format!("waits for {text}"));
        let reason = if told.launched { "Registration" } else { "Launch" };
        let named = Named::cluster("NodeClaim", claim);
        let known = story.causes.iter().any(|it| it.named == named);
        if !known {
            story.causes.push(Cause { reason, named, text, ends_at: None, used_by: Vec::new() });
        }
        // Whoever does not answer is why nothing is launched.
        let class = told.class.as_ref().filter(|_| !told.launched);
        if let Some((class, told)) = class.and_then(|it| world.classes.get_key_value(it)) {
            asked::tell_class(story, class, told, now);
        }
    }
    // Between two attempts there may be no claim; what EC2 said stands.
    for (pool, state) in world.fleet.pools.iter().filter(|(pool, _)| of(pool)) {
        let Some((at, said)) = state.back_off.as_ref().filter(|(at, _)| *at > now) else {
            continue;
        };
        let text = format!("capacity for NodePool `{pool}`: {said}");
        story.fact("room", format!("waits for {text}; asked again {}", story::when(*at, now)));
        let named = Named::cluster("NodePool", pool);
        let (reason, ends_at) = ("Capacity", Some(*at));
        story.causes.push(Cause { reason, named, text, ends_at, used_by: Vec::new() });
    }
}
