//! Does nothing happen where there is nothing to do?
//!
//! A world is quiet when nobody but us has changed anything for a while. Then a replica that says that all is
//! in sync writes nothing and asks for nothing; what it tells people it may correct once, since time alone
//! can make an image old enough. All is not in sync while a claim has not come as far as it goes, nor while a pod that
//! we moved has no node: a machine that is not to be had is asked for again and again. And in a world that nobody changes
//! at all, decisions do not go to and fro: time lifts a wait once, and does not take that back a moment later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::said::deed;
use super::world::World;
use super::{Found, KNOWN_AFTER, Law, read};
use crate::faults::Fault;
use crate::trace::{Actor, Fact, Step, Turned, WaitsFor};

/// Everybody has heard of everything by then, questions that are asked now and then included.
const QUIET_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// Three decisions within this time, of which the first and the last agree, are a to and fro.
const TO_AND_FRO: SignedDuration = SignedDuration::from_mins(1);

/// What is written for people to read; nothing is decided by it.
const TOLD: [&str; 6] = [
    "EC2NodeClass",
    "NodePool",
    "NodeDisruptionBudget",
    "ImagePolicy",
    "ImageQuarantine",
    "AWSImage",
];

#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// When others last changed something.
    disturbed_at: Option<Timestamp>,
    /// By when every replica has heard of all that anybody changed.
    heard_at: Option<Timestamp>,
    /// Watches that tell late: until when what changes is told late, and by how much.
    late: Vec<(Timestamp, SignedDuration)>,
    /// By replica: what it did since its last turn, while all was quiet.
    done: BTreeMap<u8, Vec<String>>,
    /// What was told in this quiet time.
    told: BTreeSet<String>,
    /// By replica: its last decisions in an unchanged world.
    decided: BTreeMap<u8, VecDeque<(Timestamp, Decision)>>,
    /// Something is still to come, as of the last step.
    unsettled: bool,
    /// Until when watches may be silent, and tell again, though nothing happens.
    silent_until: Option<Timestamp>,
}

/// Kind and name of what is waited for.
type Named = (String, Option<String>);

/// A decision without its sentences, which hold times.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decision {
    starts: Vec<String>,
    under_way: Vec<String>,
    waits: Vec<(String, Vec<Named>)>,
}

impl Decision {
    /// Where the two differ, the first that is found.
    fn unlike(&self, other: &Self) -> String {
        let names = |it: &[Named]| {
            let all = it.iter().map(|(kind, name)| match name {
                Some(name) => format!("{kind} {name}"),
                None => kind.clone(),
            });
            all.collect::<Vec<_>>().join(", ")
        };
        let pairs = self.waits.iter().zip(&other.waits);
        let mut unlike = pairs.filter(|(one, other)| one != other);
        match unlike.next() {
            Some(((node, waits), (_, between))) => {
                format!(
                    "{node} waits for [{}], between them for [{}]",
                    names(waits),
                    names(between)
                )
            }
            None => format!(
                "{} start and {} are under way, between them {} and {}",
                self.starts.len(),
                self.under_way.len(),
                other.starts.len(),
                other.under_way.len()
            ),
        }
    }
}

impl Quiet {
    /// Right after the step.
    pub(super) fn see(&mut self, world: &World, step: &Step, changed: bool, found: &mut Found) {
        if let Fact::Fault { what } = &step.fact {
            self.silent_until = Some(Timestamp::MAX);
            self.late.extend(late(what, step.at));
        }
        if let Fact::FaultsEnd = &step.fact {
            self.late.clear();
            self.silent_until = step.at.checked_add(KNOWN_AFTER.saturating_add(TO_AND_FRO)).ok();
        }
        self.judge(step, changed, found);
        if changed {
            self.unsettled = world.unsettled();
        }
    }

    fn judge(&mut self, step: &Step, changed: bool, found: &mut Found) {
        match (&step.fact, step.by) {
            (Fact::Turned(turned), Actor::Operator(replica)) => {
                self.turned(replica, turned, step, found);
            }
            (_, Actor::Operator(replica)) => self.acted(replica, step, changed),
            (_, _) if changed => {
                self.disturbed_at = Some(step.at);
                self.changed(step.at);
                self.done.clear();
                self.told.clear();
                self.decided.clear();
            }
            (_, _) => {}
        }
    }

    /// A late watch tells one change after the other as they came, so that what was undone long ago seems to happen and to
    /// be undone when the world stands still: who hears it decides to and fro, and is right.
    fn changed(&mut self, now: Timestamp) {
        let late = self.late.iter().filter(|(until, _)| now <= *until).map(|(_, by)| *by).max();
        let heard_after = KNOWN_AFTER.saturating_add(late.unwrap_or_default());
        let heard_at = now.saturating_add(heard_after).unwrap_or(Timestamp::MAX);
        self.heard_at = self.heard_at.max(Some(heard_at));
    }

    fn quiet(&self, now: Timestamp) -> bool {
        self.disturbed_at.is_some_and(|it| now.duration_since(it) > QUIET_AFTER)
    }

    fn acted(&mut self, replica: u8, step: &Step, changed: bool) {
        if changed {
            self.changed(step.at);
            self.decided.clear();
        }
        if !self.quiet(step.at) || self.unsettled {
            return;
        }
        if let Fact::Stored { resource, object, .. } = &step.fact
            && TOLD.contains(&resource.kind)
            && self.told.insert(format!("{} {}", resource.kind, read::name(object)))
        {
            return;
        }
        let Some(what) = deed(&step.fact) else { return };
        self.done.entry(replica).or_default().push(what);
    }

    fn turned(&mut self, replica: u8, turned: &Turned, step: &Step, found: &mut Found) {
        let done = self.done.remove(&replica).unwrap_or_default();
        let in_sync = turned.wished.is_empty()
            && turned.under_way.is_empty()
            && turned.unknown.is_empty()
            && turned.starts.is_empty()
            && !self.unsettled;
        if in_sync && self.quiet(step.at) {
            found.premise(Law::Quiet);
            if let Some(first) = done.first() {
                let what = format!("all is in sync, and replica {replica} {first}");
                found.broken(Law::Quiet, step.at, what);
            } else if turned.commands > 0 {
                let what = format!(
                    "all is in sync, and replica {replica} asks for {} acts",
                    turned.commands
                );
                found.broken(Law::Quiet, step.at, what);
            }
        }
        self.decide(replica, turned, step, found);
    }

    fn decide(&mut self, replica: u8, turned: &Turned, step: &Step, found: &mut Found) {
        // Docs say: of what a watch has not told for a while there is no news. That is so of who listens, and not of the
        // world, and only where something goes wrong. So it is of whoever's clock is wrong.
        let silent = self.silent_until.is_some_and(|it| step.at <= it);
        let reasons = |it: &[WaitsFor]| {
            let of_world =
                it.iter().filter(|it| !(silent && matches!(it.reason, "NoNews" | "ClocksApart")));
            of_world.map(|it| (it.kind.clone(), it.name.clone())).collect()
        };
        let decision = Decision {
            starts: turned.starts.clone(),
            under_way: turned.under_way.clone(),
            waits: turned.waits.iter().map(|(node, it)| (node.clone(), reasons(it))).collect(),
        };
        let known = self.heard_at.is_some_and(|it| step.at > it);
        if !known {
            self.decided.remove(&replica);
            return;
        }
        let before = self.decided.entry(replica).or_default();
        if let [.., (first_at, first), (_, last)] = before.make_contiguous()
            && *first == decision
            && *last != decision
            && step.at.duration_since(*first_at) <= TO_AND_FRO
        {
            let meanwhile = decision.unlike(last);
            let what =
                format!("replica {replica} decides to and fro in an unchanged world: {meanwhile}");
            found.broken(Law::Quiet, step.at, what);
        }
        if before.back().is_some_and(|(_, last)| *last == decision) {
            return;
        }
        before.push_back((step.at, decision));
        if before.len() > 2 {
            before.pop_front();
        }
    }
}

/// Of a fault that makes watches late: until when, and by how much.
fn late(fault: &str, now: Timestamp) -> Option<(Timestamp, SignedDuration)> {
    let Ok(Fault::WatchLag { by, lasts, .. }) = fault.parse() else { return None };
    let until = now.saturating_add(lasts.unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX);
    Some((until, by))
}
