//! Did something follow from what nobody knows?
//!
//! By our own view: a replica that was answered nothing in full since it began grants nothing, and none grants a
//! node that runs what it should, whatever it could not ask. And by its own: of which nodes it does not know
//! whether they match it says after each turn; none of them is granted in that turn, and none is
//! disturbed while that lasts, unless its replacement had begun before or a person wants it gone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::read;
use super::wish::{self, Answers, Wanted, Wish};
use super::world::{DISRUPTED_TAINT, World, grants, has_taint, known};
use super::{Found, Law, Setting};
use crate::trace::{Actor, Fact, Step, Turned};

#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// By replica: since when it does not know of a node.
    unknown: BTreeMap<u8, BTreeMap<String, Timestamp>>,
    /// By replica: what it granted in the turn that goes on.
    granted: BTreeMap<u8, BTreeSet<String>>,
}

impl Doubt {
    pub(super) fn see(
        &mut self,
        world: &World,
        setting: &Setting,
        answers: &Answers,
        step: &Step,
        found: &mut Found,
    ) {
        match (&step.fact, step.by) {
            (Fact::Turned(turned), Actor::Operator(replica)) => {
                // It leads, has nodes to decide about, and could not ask everything.
                let decides = turned.writes > 0 || turned.commands > 0 || !turned.wished.is_empty();
                if decides && answers.in_doubt(replica, step.at) {
                    found.premise(Law::Doubt);
                }
                self.turned(world, replica, turned, step, found);
            }
            // The turn that went on is over, and nobody tells what it decided.
            (Fact::Replica { number, state: _ }, _) => {
                self.unknown.remove(number);
                self.granted.remove(number);
            }
            (Fact::Stored { resource, object, .. }, Actor::Operator(replica)) => {
                match resource.kind {
                    "DisruptionLedger" => {
                        // After somebody deleted it, it is written anew from the records. And what arrives late
                        // was decided when something else was known.
                        let anew = world.ledger.lost() && !world.replacements.is_empty();
                        if anew || world.sent_at(step) < step.at {
                            return;
                        }
                        let news = grants(object).into_iter().filter(|(holder, it)| {
                            it.takes_slot() && !world.ledger.grants.contains_key(holder)
                        });
                        let nodes: BTreeSet<String> = news.map(|(_, it)| it.node).collect();
                        for node in &nodes {
                            for_nothing(world, setting, answers, replica, node, step, found);
                        }
                        self.granted.entry(replica).or_default().extend(nodes);
                    }
                    "Node" => self.cordoned(world, replica, object, step, found),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn turned(
        &mut self,
        world: &World,
        replica: u8,
        turned: &Turned,
        step: &Step,
        found: &mut Found,
    ) {
        let granted = self.granted.remove(&replica).unwrap_or_default();
        if !turned.unknown.is_empty() {
            found.premise(Law::Doubt);
        }
        for node in &turned.unknown {
            let asked = asked_for(world, node, step.at);
            if granted.contains(node) && !asked {
                let what = format!("node {node} was granted, and nobody knows whether it matches");
                found.broken(Law::Doubt, step.at, what);
            }
        }
        let before = self.unknown.remove(&replica).unwrap_or_default();
        let now = turned
            .unknown
            .iter()
            .map(|node| (node.clone(), before.get(node).copied().unwrap_or(step.at)));
        self.unknown.insert(replica, now.collect());
    }

    fn cordoned(&self, world: &World, replica: u8, node: &Value, step: &Step, found: &mut Found) {
        let name = read::name(node);
        let Some(since) = self.unknown.get(&replica).and_then(|it| it.get(name)) else { return };
        let before = world.nodes.get(name);
        let news = has_taint(node, DISRUPTED_TAINT)
            && before.is_some_and(|it| !has_taint(&it.object, DISRUPTED_TAINT));
        let holder = world.claim_of(name).map(|it| read::uid(&it.object));
        // What had begun when it was known may go on.
        let begun = holder.is_some_and(|it| world.ledger.grants.contains_key(it));
        if news && known(*since, world.sent_at(step)) && !begun && !asked_for(world, name, step.at)
        {
            let what = format!("node {name} was cordoned, and nobody knows whether it matches");
            found.broken(Law::Doubt, step.at, what);
        }
    }
}

/// Whether a node was granted that nothing speaks against, or by a replica that can know of nothing.
fn for_nothing(
    world: &World,
    setting: &Setting,
    answers: &Answers,
    replica: u8,
    node: &str,
    step: &Step,
    found: &mut Found,
) {
    if asked_for(world, node, step.at) {
        return;
    }
    if answers.nothing(replica) {
        let what =
            format!("node {node} was granted, and replica {replica} was answered nothing yet");
        found.broken(Law::Doubt, step.at, what);
        return;
    }
    let wish = wish::of_node(world, setting, &mut Wanted::default(), node, step.at);
    // What changed since it was answered it cannot know of, nor what changed a moment ago.
    let current = answers.since(replica, step.at).is_some_and(|it| it > world.told_after());
    if wish == Wish::None && current && known(world.choice_changed_at, step.at) {
        let what = format!("node {node} was granted, and runs what it should");
        found.broken(Law::Doubt, step.at, what);
    }
}

/// A person deleted it or asked for another, or it has reached its age: then it need not be known.
fn asked_for(world: &World, node: &str, now: Timestamp) -> bool {
    const ASKED: &str = "nodemolt.dev/upgrade-requested-at";
    let object = world.nodes.get(node).map(|it| &it.object);
    let claim = world.claim_of(node);
    let pool = object
        .and_then(|it| read::label(it, super::world::POOL_LABEL))
        .and_then(|it| world.others.get("NodePool")?.get(it))
        .map(|it| &it.object);
    let claimed = claim.map(|it| &it.object);
    let asked = [object, claimed, pool]
        .into_iter()
        .flatten()
        .any(|it| read::annotation(it, ASKED).is_some());
    let deleting = claim.is_some_and(|it| it.deleting_since.is_some())
        || object.is_some_and(|it| read::deleting(it).is_some());
    let expired = claimed.is_some_and(|it| {
        let age = read::text(it, &["spec", "expireAfter"])
            .and_then(read::duration)
            .filter(|it| *it >= wish::LIFE_MIN);
        let made = read::time(it, &["metadata", "creationTimestamp"]);
        age.zip(made).is_some_and(|(age, made)| now.duration_since(made) >= age)
    });
    asked || deleting || expired
}
