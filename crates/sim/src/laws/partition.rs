//! Is every node that should go accounted for?
//!
//! It starts, it is under way, or it waits for something that has a name and is there; and only one of these. Who
//! should go is found out here as well, without asking the engine: by people's words and by what EC2
//! has.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::seen::Kind;

use super::wish::{self, Answers, Wanted, Wish};
use super::world::{World, known};
use super::{Found, Law, Setting, excuse};
use crate::trace::{Actor, Fact, ReplicaState, Step, Turned};

/// A watch may lag for a minute and a half without a fault that says more, and what images there are is looked at twice a minute.
const HEARD_AFTER: SignedDuration = SignedDuration::from_mins(3);

/// By whose objects it is known that a node should go.
const WISHES_REST_ON: [Kind; 6] =
    [Kind::Node, Kind::Claim, Kind::Pool, Kind::Class, Kind::Policy, Kind::Quarantine];

/// Our own look at all nodes costs more than everything else here.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Partition {
    /// By replica that leads: when its turns were last compared with the world.
    looked_at: BTreeMap<u8, Timestamp>,
    /// By node: since when it should go, and why.
    wishes: BTreeMap<String, (Wish, Timestamp)>,
}

impl Partition {
    /// Right before the step.
    pub(super) fn see(
        &mut self,
        world: &World,
        setting: &Setting,
        answers: &Answers,
        step: &Step,
        found: &mut Found,
    ) {
        match (&step.fact, step.by) {
            (Fact::Replica { number, state }, _) => match state {
                ReplicaState::Leads => {
                    self.looked_at.insert(*number, step.at);
                }
                ReplicaState::Started | ReplicaState::Follows | ReplicaState::Crashed => {
                    self.looked_at.remove(number);
                }
            },
            (Fact::Turned(turned), Actor::Operator(replica)) => {
                agree(turned, step, found);
                let due = self
                    .looked_at
                    .get_mut(&replica)
                    .filter(|it| step.at.duration_since(**it) >= LOOK_EVERY);
                if let Some(looked_at) = due {
                    *looked_at = step.at;
                    let since = answers.since(replica, step.at);
                    // What somebody who has begun to lead remembers and is not told of it believes gone when two
                    // answers lack it, however late those come: until then it may say that it does not know.
                    let doubts = !answers.twice(replica, step.at);
                    self.compare(world, setting, (since, doubts), turned, step, found);
                }
            }
            _ => {}
        }
    }

    fn compare(
        &mut self,
        world: &World,
        setting: &Setting,
        (answered_since, doubts): (Option<Timestamp>, bool),
        turned: &Turned,
        step: &Step,
        found: &mut Found,
    ) {
        let now = step.at;
        let mut wanted = Wanted::default();
        let before = std::mem::take(&mut self.wishes);
        for name in world.nodes.keys() {
            let wish = wish::of_node(world, setting, &mut wanted, name, now);
            if matches!(wish, Wish::None | Wish::Untold) {
                continue;
            }
            let since = before.get(name).filter(|it| it.0 == wish).map_or(now, |it| it.1);
            self.wishes.insert(name.clone(), (wish, since));
        }
        if wanted.refused {
            found.premise(Law::Image);
        }
        let heard = |since: Timestamp| {
            now.duration_since(since) > HEARD_AFTER
                && world.hearing.told_by(&WISHES_REST_ON, since) < now
        };
        let slow = |it: Timestamp| it.saturating_add(setting.slowest_clock).unwrap_or(it);
        // What images there are it must have been told since that last changed; one answer may lead to one
        // more question. And to a clock that is behind, an image that has just come is of the future.
        let told = answered_since.is_some_and(|it| it > world.told_after() && known(it, now))
            && known(slow(world.choice_changed_at), now);
        let said = |node: &String| {
            turned.starts.contains(node)
                || turned.under_way.contains(node)
                || turned.waits.iter().any(|it| it.0 == *node)
        };
        for (node, (wish, since)) in &self.wishes {
            let in_doubt = doubts && turned.unknown.contains(node);
            if !heard(slow(*since)) || (*wish == Wish::Image && (!told || in_doubt)) {
                continue;
            }
            found.premise(Law::Partition);
            if !said(node) {
                let why = match wish {
                    Wish::Person => "a person wants it gone",
                    Wish::Expired => "it has expired",
                    Wish::Image | Wish::None | Wish::Untold => "it runs another image",
                };
                let what = format!(
                    "node {node} should go since {since}: {why}, and nothing is said of it"
                );
                found.broken(Law::Partition, now, what);
            }
        }
        for (node, waits) in &turned.waits {
            for it in waits.iter().filter(|it| !excuse::exists(world, it, HEARD_AFTER)) {
                let what = format!("node {node} waits for what is not there: {}", it.sentence);
                found.broken(Law::Partition, now, what);
            }
        }
    }
}

/// Whether a turn agrees with itself.
fn agree(turned: &Turned, step: &Step, found: &mut Found) {
    let Turned { wished, starts, under_way, waits, unknown: _, writes: _, commands: _ } = turned;
    if wished.is_empty() {
        return;
    }
    let mut said: BTreeMap<&str, u32> = BTreeMap::new();
    let waiting = waits.iter().map(|(node, _)| node);
    for node in starts.iter().chain(under_way).chain(waiting) {
        *said.entry(node).or_default() += 1;
    }
    for node in wished {
        if !said.contains_key(node.as_str()) {
            let what = format!("node {node} should go, and nothing is said of it");
            found.broken(Law::Partition, step.at, what);
        }
    }
    for (node, _) in said.iter().filter(|(_, times)| **times > 1) {
        let what = format!("more than one thing is said of node {node}");
        found.broken(Law::Partition, step.at, what);
    }
    for (node, reasons) in waits {
        let named = !reasons.is_empty()
            && reasons.iter().all(|it| !it.kind.is_empty() && !it.sentence.is_empty());
        if !named {
            let what = format!("node {node} waits for something without a name");
            found.broken(Law::Partition, step.at, what);
        }
    }
}
