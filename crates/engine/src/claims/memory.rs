//! What do claims remember that would only cost time to learn again?
//!
//! Where there was no capacity, what EC2 refused, which node is missing since when, who failed and rests.
//! All of it may be lost at any moment.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::seen::{Claim, Kind, MachineId, ObjectName, Stage, View};

use super::act::{ClaimAct, ClaimDone, Deed};
use super::look::settled;
use crate::port::Remedy;

/// Karpenter's own: capacity comes and goes within minutes.
pub const MARKED_FOR: SignedDuration = SignedDuration::from_mins(3);

/// The rest after a first failure; it doubles with each.
const REST_FIRST: SignedDuration = SignedDuration::from_secs(1);
const REST_MAX: SignedDuration = SignedDuration::from_mins(1);
/// After what only a person can lift.
const REST_REFUSED: SignedDuration = SignedDuration::from_mins(1);

/// What was done is not done again for so long: it may be on its way to our eyes.
const SEEN_WITHIN: SignedDuration = SignedDuration::from_secs(5);
/// And a machine that was told to go is seen to go by the next list.
const ENDED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Where there was no capacity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub capacity_type: String,
    pub instance_type: String,
    pub zone: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Until when each mark holds.
    marks: BTreeMap<Mark, Timestamp>,
    /// By the claim's UID: the attempt that was refused, why and when.
    refused: BTreeMap<String, (u32, String, Timestamp)>,
    /// By the claim's UID: the attempt whose call is withheld, and since when. Who has just begun knows of no
    /// time before.
    withheld: BTreeMap<String, (u32, Timestamp)>,
    /// By UID: claims of which an attempt has ended, and of whose choices none is left to try now.
    pub(crate) nowhere: BTreeSet<String>,
    /// By the claim's UID: since when its node is missing.
    missing: BTreeMap<String, Timestamp>,
    /// By the claim's UID: what was last told about it.
    told: BTreeMap<String, String>,
    /// By key: how often it failed in a row, and when it may be tried again.
    rests: BTreeMap<String, (u32, Timestamp)>,
    /// By key: what was done last, and until when it is not done again.
    done: BTreeMap<String, (&'static str, Timestamp)>,
}

impl Memory {
    /// Once in a turn, before deciding: what is missing, and what need not be remembered any more.
    pub fn look(&mut self, view: &View, now: Timestamp) {
        self.look_at(view, view.claims.values(), now);
    }

    /// The same where all other claims are at rest: their nodes are there.
    pub(crate) fn look_at<'v>(
        &mut self,
        view: &View,
        claims: impl Iterator<Item = &'v Claim>,
        now: Timestamp,
    ) {
        self.marks.retain(|_, until| *until > now);
        self.done.retain(|_, (_, until)| *until > now);
        if !self.refused.is_empty() || !self.told.is_empty() {
            let uids: BTreeSet<&str> = view.claims.values().map(|it| it.uid.as_str()).collect();
            self.refused.retain(|uid, _| uids.contains(uid.as_str()));
            self.told.retain(|uid, _| uids.contains(uid.as_str()));
        }
        // A machine without a claim has its id for a key, and is forgotten in time.
        let forget = now.saturating_sub(REST_MAX * 10).unwrap_or(Timestamp::MIN);
        self.rests.retain(|key, (_, at)| view.claims.contains_key(key) || *at > forget);

        let Some(listed) = view.fresh.get(&Kind::Node).copied() else { return };
        // Most claims know their node by name.
        let there: OnceCell<BTreeSet<&MachineId>> = OnceCell::new();
        let all = || view.nodes.values().filter_map(|it| it.machine.as_ref()).collect();
        let mut missing = BTreeMap::new();
        for claim in claims {
            let Some(registered) = claim.stages.get(&Stage::Registered) else { continue };
            let Some(machine) = &claim.machine else { continue };
            if settled(view, claim).is_some()
                || there.get_or_init(all).contains(machine)
                || listed <= *registered
                || unreadable(view, claim.node.as_deref())
            {
                continue;
            }
            let since = self.missing.get(&claim.uid).copied().unwrap_or(listed);
            missing.insert(claim.uid.clone(), since);
        }
        self.missing = missing;
    }

    /// After deciding: whose call is withheld now. What is not withheld any more is forgotten, for it may
    /// be called.
    pub fn withhold(&mut self, now_withheld: &BTreeMap<String, u32>, now: Timestamp) {
        let known = std::mem::take(&mut self.withheld);
        let since = |uid: &String, number: u32| {
            let same = known.get(uid).filter(|it| it.0 == number);
            same.map_or(now, |it| it.1)
        };
        let all = now_withheld.iter();
        self.withheld =
            all.map(|(uid, number)| (uid.clone(), (*number, since(uid, *number)))).collect();
    }

    pub(super) fn withheld_since(&self, uid: &str, attempt: u32) -> Option<Timestamp> {
        self.withheld.get(uid).filter(|it| it.0 == attempt).map(|it| it.1)
    }

    /// What came of an act is one more observation.
    pub fn learn(&mut self, act: &ClaimAct, done: &ClaimDone, now: Timestamp) {
        let uid = act.claim.as_ref().map(|(_, uid)| uid.clone()).unwrap_or_default();
        match done {
            ClaimDone::NoCapacity { capacity_type, choices } => {
                let until = now.saturating_add(MARKED_FOR).unwrap_or(Timestamp::MAX);
                for (instance_type, zone) in choices {
                    let mark = Mark {
                        capacity_type: capacity_type.clone(),
                        instance_type: instance_type.clone(),
                        zone: zone.clone(),
                    };
                    self.marks.insert(mark, until);
                }
            }
            ClaimDone::Refused { attempt, why } => {
                // The first time counts: each later one would put the proof off.
                let known = self.refused.get(&uid).is_some_and(|it| it.0 == *attempt);
                if !known {
                    self.refused.insert(uid.clone(), (*attempt, why.clone(), now));
                }
            }
            ClaimDone::Done
            | ClaimDone::Launched(_)
            | ClaimDone::Nothing(_)
            | ClaimDone::Withheld(_)
            | ClaimDone::Launch(_)
            | ClaimDone::Cloud(_)
            | ClaimDone::Cluster(_)
            | ClaimDone::Late => {}
        }
        if let (Deed::Tell { said, .. }, None) = (&act.deed, done.remedy()) {
            self.told.insert(uid, said.clone());
        }
        if done.remedy().is_none() {
            let within = match &act.deed {
                Deed::Terminate { .. } | Deed::RemoveOrphan { .. } => ENDED_WITHIN,
                Deed::Launch(_)
                | Deed::EndAttempt { .. }
                | Deed::Write { .. }
                | Deed::Tell { .. }
                | Deed::Register { .. }
                | Deed::DeleteClaim { .. }
                | Deed::DeleteNode { .. }
                | Deed::ReleaseNode { .. }
                | Deed::ReleaseClaim { .. } => SEEN_WITHIN,
            };
            let until = now.saturating_add(within).unwrap_or(Timestamp::MAX);
            self.done.insert(act.key.clone(), (act.deed.word(), until));
        }
        self.rest(act, done, now);
    }

    fn rest(&mut self, act: &ClaimAct, done: &ClaimDone, now: Timestamp) {
        let first = match done.remedy() {
            // What was proved empty is tried elsewhere at once.
            None | Some(Remedy::TryElsewhere) if !matches!(done, ClaimDone::Launch(_)) => {
                self.rests.remove(&act.key);
                return;
            }
            None | Some(Remedy::TryElsewhere | Remedy::TryAgain | Remedy::DecideAgain) => {
                REST_FIRST
            }
            Some(Remedy::AskPerson) => REST_REFUSED,
        };
        let failures = self.rests.get(&act.key).map_or(0, |it| it.0);
        let doubled = first.checked_mul(1 << failures.min(6)).unwrap_or(REST_MAX).min(REST_MAX);
        let rest = doubled.max(done.retry_after().unwrap_or_default());
        let until = now.saturating_add(rest).unwrap_or(Timestamp::MAX);
        self.rests.insert(act.key.clone(), (failures.saturating_add(1), until));
    }

    /// Until when this is not done under this key: it was done just now, or the last act has failed.
    pub(super) fn rests_until(&self, key: &str, deed: &Deed, now: Timestamp) -> Option<Timestamp> {
        let failed = self.rests.get(key).map(|it| it.1);
        let done = self.done.get(key).filter(|(word, _)| *word == deed.word()).map(|it| it.1);
        failed.max(done).filter(|it| *it > now)
    }

    /// When the next mark fades.
    pub(super) fn next_mark_ends(&self, now: Timestamp) -> Option<Timestamp> {
        self.marks.values().copied().filter(|it| *it > now).min()
    }

    /// Where there was no capacity, and until when that counts.
    pub fn marks(&self) -> impl Iterator<Item = (&Mark, Timestamp)> {
        self.marks.iter().map(|(mark, until)| (mark, *until))
    }

    /// All marks that hold.
    pub(crate) fn marked(&self, now: Timestamp) -> BTreeSet<Mark> {
        self.marks.iter().filter(|(_, until)| **until > now).map(|(mark, _)| mark.clone()).collect()
    }

    pub(super) fn marked_until(&self, mark: &Mark, now: Timestamp) -> Option<Timestamp> {
        self.marks.get(mark).copied().filter(|it| *it > now)
    }

    pub(super) fn refused(&self, uid: &str, attempt: u32) -> Option<(&str, Timestamp)> {
        let (number, why, at) = self.refused.get(uid)?;
        (*number == attempt).then_some((why.as_str(), *at))
    }

    pub(super) fn missing_since(&self, uid: &str) -> Option<Timestamp> {
        self.missing.get(uid).copied()
    }

    pub(super) fn told(&self, uid: &str, said: &str) -> bool {
        self.told.get(uid).is_some_and(|it| it == said)
    }
}

/// Whether a node of that name came and could not be read.
pub(super) fn unreadable(view: &View, node: Option<&str>) -> bool {
    node.is_some_and(|name| {
        let name = name.to_owned();
        view.unreadable.contains_key(&ObjectName {
            kind: Kind::Node,
            namespace: String::new(),
            name,
        })
    })
}
