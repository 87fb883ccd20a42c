//! Does nothing happen where there is nothing to do?
//!
//! A world is quiet when nobody but us has changed anything for a while. Then a replica that says that all is
//! in sync writes nothing and asks for nothing; what it tells people it may correct once, since time alone
//! can make an image old enough. And in a world that nobody changes at all, decisions do not go to and
//! fro: time lifts a wait once, and does not take that back a moment later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::said::deed;
use super::{Found, Law, read};
use crate::trace::{Actor, Fact, Step, Turned};

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
    /// When anybody last did.
    changed_at: Option<Timestamp>,
    /// By replica: what it did since its last turn, while all was quiet.
    done: BTreeMap<u8, Vec<String>>,
    /// What was told in this quiet time.
    told: BTreeSet<String>,
    /// By replica: its last decisions in an unchanged world.
    decided: BTreeMap<u8, VecDeque<(Timestamp, Decision)>>,
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

impl Quiet {
    pub(super) fn see(&mut self, step: &Step, changed: bool, found: &mut Found) {
        match (&step.fact, step.by) {
            (Fact::Turned(turned), Actor::Operator(replica)) => {
                self.turned(replica, turned, step, found);
            }
            (_, Actor::Operator(replica)) => self.acted(replica, step, changed),
            (_, _) if changed => {
                self.disturbed_at = Some(step.at);
                self.changed_at = Some(step.at);
                self.done.clear();
                self.told.clear();
                self.decided.clear();
            }
            (_, _) => {}
        }
    }

    fn quiet(&self, now: Timestamp) -> bool {
        self.disturbed_at.is_some_and(|it| now.duration_since(it) > QUIET_AFTER)
    }

    fn acted(&mut self, replica: u8, step: &Step, changed: bool) {
        if changed {
            self.changed_at = Some(step.at);
            self.decided.clear();
        }
        if !self.quiet(step.at) {
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
            && turned.starts.is_empty();
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
        let reasons = |it: &[crate::trace::WaitsFor]| {
            it.iter().map(|it| (it.kind.clone(), it.name.clone())).collect()
        };
        let decision = Decision {
            starts: turned.starts.clone(),
            under_way: turned.under_way.clone(),
            waits: turned.waits.iter().map(|(node, it)| (node.clone(), reasons(it))).collect(),
        };
        let known =
            self.changed_at.is_some_and(|it| step.at.duration_since(it) > super::KNOWN_AFTER);
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
            let what = format!("replica {replica} decides to and fro in an unchanged world");
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
