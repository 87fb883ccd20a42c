//! What became of it?
//!
//! `records × name of a node or a claim that is not there any more → story`
//!
//! Records of replacements outlive the nodes that they are about; whoever asks for one that has gone is
//! told when, for what and by whom it was replaced.

use jiff::Timestamp;

use super::story::{self, Cause as Holds, Named, Story, both};
use super::{World, pod, tell_replacement};
use crate::image::ImageId;
use crate::replace::{Because, Cause, Phase, Replacement};

/// What stands in a record for people, beside what is decided by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordTold {
    pub pool: Option<String>,
    pub running_image: Option<ImageId>,
    pub wanted_image: Option<ImageId>,
    /// Of others, that hold the claim of a node that has gone.
    pub finalizers: Vec<String>,
    /// Of others, that hold the node itself, though its machine has ended.
    pub node_finalizers: Vec<String>,
}

/// Of a node that is gone, by its name or its claim's. `None` if no record tells of it.
pub fn explain_gone(world: &World<'_>, name: &str, now: Timestamp) -> Option<Story> {
    let replacement = world.replacements.values().find(|it| gone(world, it, name))?;
    let old = &replacement.old;
    let told = world.records.get(&old.node);
    let mut story = Story::about("node", &old.node);
    let mut words = vec![old.node.clone()];
    words.extend(told.and_then(|it| it.pool.as_ref()).map(|it| format!("pool {it}")));
    words.push("gone".to_owned());
    story.fact("node", words.join("   "));
    if old.claim != old.node {
        story.fact("claim", old.claim.clone());
    }
    if !replacement.phase.ended() {
        tell_replacement(&mut story, world, replacement, now);
        return Some(story);
    }
    let at = story::when(replacement.since, now);
    if replacement.phase == Phase::Done {
        let by = successors(world, replacement);
        story.fact("replaced", format!("{at} {by}, because {}", why(replacement.cause)));
    } else {
        let Replacement { phase, because, .. } = replacement;
        story.fact("last", format!("{} {at}: {because}", phase.as_str()));
        story.fact("", how_it_went(replacement));
    }
    if let Some((from, to)) =
        told.and_then(|it| it.running_image.as_ref().zip(it.wanted_image.as_ref()))
    {
        story.fact("image", format!("{from} → {to}"));
    }
    let finalizers = told.map_or(&[][..], |it| it.finalizers.as_slice());
    if finalizers.is_empty() {
        story.then("nothing to do");
    } else {
        tell_finalizers(&mut story, "NodeClaim", &old.claim, finalizers);
    }
    pod::tell_left_behind(&mut story, world, &old.node, now);
    Some(story)
}

/// Of one whose replacement came to no good end: whether the node had gone by then.
fn how_it_went(replacement: &Replacement) -> &'static str {
    if !replacement.cause.voluntary() {
        return "the node itself had gone";
    }
    match &replacement.because {
        // These hold what is there, and it was left alone.
        Because::NoPlaceAnyMore { .. }
        | Because::SuccessorCordoned { .. }
        | Because::HeldBack { .. }
        | Because::Protected { .. }
        | Because::DrainLimit { .. }
        | Because::NoLongerWanted
        | Because::NotGranted => "and it went later, by no replacement of ours",
        // The successor is asked for once the old node has gone.
        Because::LaunchGaveUp { .. }
        | Because::LaunchTooSlow { .. }
        | Because::NeverRegistered { .. }
        | Because::NeverReady { .. }
            if replacement.deletes_first() =>
        {
            "the node itself had gone, as it goes before its successor comes"
        }
        Because::Begun
        | Because::WaitsFor(_)
        | Because::SuccessorsLaunched
        | Because::SuccessorsReady
        | Because::PlacementHolds
        | Because::DecideAgain
        | Because::Drained
        | Because::OldGone
        | Because::OldDeleted
        | Because::PodsCameBack { .. }
        | Because::LaunchGaveUp { .. }
        | Because::LaunchTooSlow { .. }
        | Because::NeverRegistered { .. }
        | Because::NeverReady { .. }
        | Because::Flapping { .. }
        | Because::SuccessorGone { .. }
        | Because::SuccessorLost { .. }
        | Because::SuccessorDied { .. } => "the node itself is gone by now",
    }
}

/// Of a node that is there only because finalizers of others keep it: its machine has ended. Whether it is one.
pub(super) fn tell_left_over(
    story: &mut Story,
    world: &World<'_>,
    name: &str,
    now: Timestamp,
) -> bool {
    let finalizers = world.records.get(name).map_or(&[][..], |it| it.node_finalizers.as_slice());
    let replacement = world.replacements.get(name).filter(|it| it.phase == Phase::Done);
    let Some(replacement) = replacement.filter(|_| !finalizers.is_empty()) else { return false };
    let (at, by) = (story::when(replacement.since, now), successors(world, replacement));
    story.fact("replaced", format!("{at} {by}, because {}", why(replacement.cause)));
    tell_finalizers(story, "Node", name, finalizers);
    true
}

/// What is left of a node whose machine has ended, and whose finalizers keep it. It holds nobody.
fn tell_finalizers(story: &mut Story, kind: &'static str, name: &str, finalizers: &[String]) {
    let what = if finalizers.len() == 1 { "finalizer" } else { "finalizers" };
    let text = format!("still there, held by {what} `{}`", finalizers.join("`, `"));
    story.fact(kind, text.clone());
    let (reason, named) = ("Finalizer", Named::cluster(kind, name));
    story.causes.push(Holds { reason, named, text, ends_at: None, used_by: Vec::new() });
    story.then("whoever put them there takes them off; nobody waits for it here");
}

/// Of a claim that is no node yet. `None` if there is none, or it is not on its way.
pub fn explain_claim(world: &World<'_>, claim: &str, now: Timestamp) -> Option<Story> {
    let told = world.successors.get(claim).filter(|it| it.on_its_way)?;
    let mut story = Story::about("claim", claim);
    let mut words = vec![claim.to_owned()];
    words.extend(told.pool.as_ref().map(|it| format!("pool {it}")));
    story.fact("claim", words.join("   "));
    let named = Named::cluster("NodeClaim", claim);
    let poolless = told.pool.is_none().then_some(POOLLESS);
    if let Some(why) = told.failed.as_deref().or(poolless) {
        let text = format!("not launched so far: {why}");
        story.fact("launch", text.clone());
        story.causes.push(Holds {
            reason: "Launch",
            named,
            text,
            ends_at: None,
            used_by: Vec::new(),
        });
    }
    let mut open = world.replacements.values().filter(|it| !it.phase.ended());
    let of = open.find(|it| it.successors.iter().any(|it| it.claim == claim));
    match of {
        Some(it) => {
            let since = story::ago(it.since, now);
            let (old, phase) = (&it.old.node, it.phase.as_str());
            story.fact("for", format!("node {old}, whose replacement is {phase} since {since}"));
            story.next = format!("`nodemolt explain {old}` tells how far that is");
        }
        None if poolless.is_some() => {
            story.then("when it has that label, or is made again with it, its machine is launched");
        }
        None => story.then("it becomes a node once its machine has joined"),
    }
    Some(story)
}

/// What its machine may boot, and what it costs, is decided by pool.
const POOLLESS: &str = "it has no label `karpenter.sh/nodepool`, and nobody launches a machine that belongs to no pool";

fn gone(world: &World<'_>, it: &Replacement, name: &str) -> bool {
    let old = &it.old;
    let there = world.fleet.nodes.contains_key(&old.node);
    // Another may have the node's name by now.
    let same = there && world.running.get(&old.node).is_none_or(|it| it.claim == old.claim);
    (old.node == name && !there) || (old.claim == name && !same)
}

fn successors(world: &World<'_>, replacement: &Replacement) -> String {
    let node = |claim: &str| {
        let known = world.successors.get(claim).and_then(|it| it.node.clone());
        // It may have been replaced itself by now.
        let old = || world.replacements.values().find(|it| it.old.claim == claim);
        known.or_else(|| old().map(|it| it.old.node.clone()))
    };
    let all = replacement.successors.iter().map(|it| match node(&it.claim) {
        Some(node) => format!("{node} (`{}`)", it.claim),
        None => format!("`{}`", it.claim),
    });
    let all: Vec<String> = all.collect();
    if all.is_empty() && replacement.cause.voluntary() {
        "by none: its pods had room elsewhere".to_owned()
    } else if all.is_empty() {
        // It went, whether they had room or not.
        "by none".to_owned()
    } else {
        format!("by {}", all.join(", "))
    }
}

fn why(cause: Cause) -> &'static str {
    match cause {
        Cause::Drift => "it had drifted",
        Cause::Expiry => "it had expired",
        Cause::Asked => "a person asked for it",
        // Whoever removes nodes whose machine has ended is not told from a person.
        Cause::Deleted => "it was deleted: by somebody, or since its machine had ended",
        Cause::Interrupted => "its machine was taken away",
    }
}

/// That somebody has deleted a node that is still there, and when: not told where that was ourselves.
pub(super) fn tell_deleted(story: &mut Story, world: &World<'_>, name: &str, now: Timestamp) {
    let wish = world.fleet.nodes.get(name).and_then(|it| it.wish.as_ref());
    let Some(wish) = wish.filter(|it| it.cause == Cause::Deleted) else { return };
    // By us, who end what we have emptied, and what stands for a machine that has ended.
    let ours = world.replacements.get(name).is_some_and(|it| {
        (it.phase == Phase::Terminating && it.cause != Cause::Deleted)
            || (!it.phase.ended() && it.cause == Cause::Interrupted)
    });
    let claim = world.running.get(name).map(|it| it.claim.as_str());
    let given_up = world.replacements.values().any(|it| {
        it.phase == Phase::Retreating && it.successors.iter().any(|it| Some(&*it.claim) == claim)
    });
    if !ours && !given_up {
        story.fact("deleted", format!("by somebody, {}", both(wish.since, now)));
    }
}
