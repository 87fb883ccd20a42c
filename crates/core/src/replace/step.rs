//! Which arrow does a replacement take?
//!
//! Deadlines fire on what was seen, never on what could not be found out. Success is looked for before
//! any deadline: a machine that came late has come.

use jiff::{SignedDuration, Timestamp};

use super::{
    Because, OldSeen, Phase, PlacementSeen, Replacement, Seen, Step, Successor, SuccessorSeen, Wait,
};
use crate::drain::AtLimit;

/// A request for a fleet is answered in seconds; attempts with fewer and fewer choices take minutes.
pub const LAUNCH_DEADLINE: SignedDuration = SignedDuration::from_mins(15);

/// The slowest image we boot joins in four minutes. One that needs fifteen is not coming; so thinks
/// Karpenter too.
pub const JOIN_DEADLINE: SignedDuration = SignedDuration::from_mins(15);

/// Karpenter waits for ever. Drivers and startup taints take minutes.
pub const READY_DEADLINE: SignedDuration = SignedDuration::from_mins(15);

/// Whoever lives no longer than a successor takes to come would be followed for ever. Few images join and are ready in
/// less than this. An `expireAfter` that is shorter counts as `Never`, and is told; a longer one is a person's word.
pub const LIFE_MIN: SignedDuration = SignedDuration::from_mins(5);

/// How long a successor must have been ready without a break before pods are sent there.
pub const STEADY_FOR: SignedDuration = SignedDuration::from_secs(30);

/// For a successor that is ready, and not, and ready; and for pods that have lost their place.
pub const SETTLE_DEADLINE: SignedDuration = SignedDuration::from_mins(15);

/// A successor that is not ready for so long in the middle of a drain is lost; and so is one that was not ready again and again
/// for so long, and never ready for so long in between.
pub const LOST_DEADLINE: SignedDuration = SignedDuration::from_mins(15);

pub fn next(replacement: &Replacement, seen: &Seen, now: Timestamp) -> Step {
    let view = View { replacement, seen, now };
    match replacement.phase {
        Phase::Launching => view.launching(),
        Phase::Joining => view.joining(),
        Phase::Settling => view.settling(),
        Phase::Draining => view.draining(),
        Phase::Terminating => view.terminating(),
        Phase::Retreating => view.retreating(),
        Phase::Done | Phase::Failed | Phase::Skipped | Phase::Kept | Phase::Cancelled => {
            view.stay(Wait::Nothing)
        }
    }
}

/// Whether pods may be asked to leave now: from a node that is cordoned and that nobody protects, while nothing is halted
/// and every successor is ready. Whoever goes anyway does not wait for any of it.
pub fn evicts(replacement: &Replacement, seen: &Seen, now: Timestamp) -> bool {
    let view = View { replacement, seen, now };
    let cordoned = matches!(seen.old, OldSeen::Present { cordoned: true, .. });
    let free = || {
        let followed = replacement.deletes_first() || view.unready().is_none();
        followed && !seen.halted && seen.people.is_none()
    };
    replacement.phase == Phase::Draining && cordoned && (view.leaving() || free())
}

#[derive(Clone, Copy)]
struct View<'a> {
    replacement: &'a Replacement,
    seen: &'a Seen,
    now: Timestamp,
}

fn go(phase: Phase, because: Because) -> Step {
    Step { phase, because }
}

fn retreat(because: Because) -> Step {
    go(Phase::Retreating, because)
}

impl<'a> View<'a> {
    fn stay(self, wait: Wait) -> Step {
        go(self.replacement.phase, Because::WaitsFor(wait))
    }

    fn waited(self, deadline: SignedDuration) -> bool {
        self.now.duration_since(self.replacement.since) > deadline
    }

    fn successors(self) -> impl Iterator<Item = (&'a str, &'a SuccessorSeen)> {
        self.replacement.successors.iter().map(move |it| {
            (it.claim.as_str(), self.seen.successors.get(&it.claim).unwrap_or(not_listed(it)))
        })
    }

    fn old_gone(self) -> bool {
        self.seen.old == OldSeen::Gone
    }

    /// It goes without us: there is no retreat.
    fn leaving(self) -> bool {
        self.replacement.leaves_anyway(&self.seen.old)
    }

    fn unready(self) -> Option<&'a str> {
        self.successors().find(|(_, it)| !matches!(it, SuccessorSeen::Ready { .. })).map(|it| it.0)
    }

    /// What is the same before the cordon: somebody else moved first, or a successor will not come.
    fn before_cordon(self) -> Option<Step> {
        if self.seen.old == OldSeen::Unknown {
            return Some(self.stay(Wait::Answer { about: "the old node".to_owned() }));
        }
        if self.leaving() && !self.old_gone() {
            return Some(go(Phase::Draining, Because::OldDeleted));
        }
        if self.seen.wanted == Some(false) && !self.old_gone() {
            return Some(retreat(Because::NoLongerWanted));
        }
        // Once the old one is gone there is nothing left to be granted.
        if !self.seen.granted && !self.old_gone() {
            return Some(retreat(Because::NotGranted));
        }
        self.successors().find_map(|(claim, it)| {
            let claim = claim.to_owned();
            match it {
                SuccessorSeen::Gone | SuccessorSeen::Deleting { .. } => {
                    Some(retreat(Because::SuccessorGone { claim }))
                }
                SuccessorSeen::Died { node } => {
                    Some(retreat(Because::SuccessorDied { claim, node: node.clone() }))
                }
                SuccessorSeen::Launching { gave_up: Some(why) } => {
                    Some(retreat(Because::LaunchGaveUp { claim, why: why.clone() }))
                }
                SuccessorSeen::Unknown
                | SuccessorSeen::Unasked
                | SuccessorSeen::Launching { gave_up: None }
                | SuccessorSeen::Launched { .. }
                | SuccessorSeen::Registered { .. }
                | SuccessorSeen::Ready { .. }
                | SuccessorSeen::NotReady { .. } => None,
            }
        })
    }

    fn launching(self) -> Step {
        if let Some(step) = self.before_cordon() {
            return step;
        }
        for (claim, it) in self.successors() {
            let claim = claim.to_owned();
            match it {
                SuccessorSeen::Unknown => return self.stay(Wait::Answer { about: claim }),
                SuccessorSeen::Unasked | SuccessorSeen::Launching { .. } => {
                    if self.waited(LAUNCH_DEADLINE) {
                        return retreat(Because::LaunchTooSlow { claim });
                    }
                    return self.stay(Wait::Launch { claim });
                }
                SuccessorSeen::Launched { .. }
                | SuccessorSeen::Registered { .. }
                | SuccessorSeen::Ready { .. }
                | SuccessorSeen::NotReady { .. }
                | SuccessorSeen::Died { .. }
                | SuccessorSeen::Deleting { .. }
                | SuccessorSeen::Gone => {}
            }
        }
        go(Phase::Joining, Because::SuccessorsLaunched)
    }

    fn joining(self) -> Step {
        if let Some(step) = self.before_cordon() {
            return step;
        }
        let late = |since: Timestamp| {
            self.now.duration_since(since.max(self.replacement.since)) > READY_DEADLINE
        };
        for (claim, it) in self.successors() {
            let claim = claim.to_owned();
            match it {
                SuccessorSeen::Ready { .. }
                | SuccessorSeen::Died { .. }
                | SuccessorSeen::Deleting { .. }
                | SuccessorSeen::Gone => {}
                SuccessorSeen::Unknown => return self.stay(Wait::Answer { about: claim }),
                SuccessorSeen::Unasked
                | SuccessorSeen::Launching { .. }
                | SuccessorSeen::Launched { .. } => {
                    if self.waited(JOIN_DEADLINE) {
                        return retreat(Because::NeverRegistered { claim });
                    }
                    return self.stay(Wait::Registration { claim });
                }
                SuccessorSeen::Registered { since, .. } | SuccessorSeen::NotReady { since, .. } => {
                    if late(*since) {
                        return retreat(Because::NeverReady { claim });
                    }
                    return self.stay(Wait::Readiness { claim });
                }
            }
        }
        if self.old_gone() {
            return go(Phase::Done, Because::SuccessorsReady);
        }
        go(Phase::Settling, Because::SuccessorsReady)
    }

    fn settling(self) -> Step {
        if let Some(step) = self.before_cordon() {
            return step;
        }
        if self.old_gone() {
            return self.after_gone();
        }
        if self.seen.halted {
            return self.stay(self.halt());
        }
        match self.lacking() {
            None if self.replacement.deletes_first() => go(Phase::Draining, Because::Begun),
            None => go(Phase::Draining, Because::PlacementHolds),
            Some((Wait::Place { .. }, Some(lost))) if !self.seen.more.is_empty() => {
                go(Phase::Launching, lost)
            }
            Some((_, Some(given_up))) if self.waited(SETTLE_DEADLINE) => retreat(given_up),
            Some((wait, _)) => self.stay(wait),
        }
    }

    /// What is missing before the old node may be cordoned; and why that is given up, if it does not come.
    /// What could not be found out is never given up.
    fn lacking(self) -> Option<(Wait, Option<Because>)> {
        let deletes_first = self.replacement.deletes_first();
        if !deletes_first && let Some(unsteady) = self.unsteady() {
            return Some(unsteady);
        }
        // Its class was deleted, say: what nobody knows to be needed disturbs nobody.
        if self.seen.wanted.is_none() {
            let about = "whether it still has to go".to_owned();
            let why = format!("an answer about {about}");
            return Some((Wait::Answer { about }, Some(Because::HeldBack { pod: None, why })));
        }
        if let Some(reason) = &self.seen.people {
            let pod = reason.pod().map(ToString::to_string);
            let given_up = Because::HeldBack { pod, why: reason.to_string() };
            return Some((Wait::Person(Box::new(reason.clone())), Some(given_up)));
        }
        match &self.seen.placement {
            _ if deletes_first => None,
            PlacementSeen::Holds => None,
            PlacementSeen::NotDecided => Some((Wait::Placement, None)),
            PlacementSeen::Lost { pod, because } => {
                let (pod, because) = (pod.clone(), because.clone());
                let wait = Wait::Place { pod: pod.clone(), because: because.clone() };
                Some((wait, Some(Because::NoPlaceAnyMore { pod, because })))
            }
            PlacementSeen::Cordoned { pod, claim, node } => {
                let (pod, claim, node) = (pod.clone(), claim.clone(), node.clone());
                let given_up = Because::SuccessorCordoned {
                    pod: pod.clone(),
                    claim: claim.clone(),
                    node: node.clone(),
                };
                Some((Wait::SuccessorUncordoned { pod, claim, node }, Some(given_up)))
            }
        }
    }

    /// A successor that is not ready, or not for long enough.
    fn unsteady(self) -> Option<(Wait, Option<Because>)> {
        let steady = |since: Timestamp| self.now.duration_since(since) >= STEADY_FOR;
        self.successors().find_map(|(claim, it)| {
            let claim = claim.to_owned();
            match it {
                SuccessorSeen::Unknown => Some((Wait::Answer { about: claim }, None)),
                SuccessorSeen::Ready { since, .. } if steady(*since) => None,
                SuccessorSeen::Ready { .. }
                | SuccessorSeen::NotReady { .. }
                | SuccessorSeen::Registered { .. }
                | SuccessorSeen::Launched { .. }
                | SuccessorSeen::Launching { .. }
                | SuccessorSeen::Unasked
                | SuccessorSeen::Died { .. }
                | SuccessorSeen::Deleting { .. }
                | SuccessorSeen::Gone => {
                    let given_up = Because::Flapping { claim: claim.clone() };
                    Some((Wait::Steadiness { claim }, Some(given_up)))
                }
            }
        })
    }

    fn draining(self) -> Step {
        let (pods, cordoned) = match self.seen.old {
            OldSeen::Unknown => {
                return self.stay(Wait::Answer { about: "the old node".to_owned() });
            }
            OldSeen::Gone => return self.after_gone(),
            OldSeen::Present { pods, cordoned, .. } => (pods, cordoned),
        };
        let leaving = self.leaving();
        if !leaving && let Some(step) = self.not_now(cordoned) {
            return step;
        }
        let pods = pods + self.seen.lingering;
        if pods == 0 {
            return go(Phase::Terminating, Because::Drained);
        }
        if let Some((ends_at, pod)) = &self.seen.drain_limit
            && *ends_at <= self.now
            && !leaving
            && self.replacement.at_limit == AtLimit::Skip
        {
            return retreat(Because::DrainLimit { pod: pod.clone() });
        }
        self.stay(Wait::PodsToLeave { pods })
    }

    /// Why a node that could stay is not emptied now, if it is not.
    fn not_now(self, cordoned: bool) -> Option<Step> {
        if self.seen.halted {
            return Some(self.stay(self.halt()));
        }
        let successor_first = !self.replacement.deletes_first();
        if successor_first && let Some(lost) = self.lost_successor() {
            return Some(retreat(lost));
        }
        if !cordoned {
            // Nothing has left yet, or somebody took the taint away and pods come back: whether it may be
            // cordoned is decided in this same moment, and not by what was true when the phase began.
            if self.seen.wanted == Some(false) || !self.seen.granted || self.lacking().is_some() {
                return Some(go(Phase::Settling, Because::DecideAgain));
            }
            let node = self.replacement.old.node.clone();
            return Some(self.stay(Wait::Cordon { node }));
        }
        // Whoever says in the middle of it that the node must not be disturbed does not want the rest either.
        if let Some(protected) = &self.seen.people {
            return Some(retreat(Because::Protected { why: protected.to_string() }));
        }
        let unready = self.unready().filter(|_| successor_first);
        unready.map(|claim| self.stay(Wait::Readiness { claim: claim.to_owned() }))
    }

    fn lost_successor(self) -> Option<Because> {
        self.successors().find_map(|(claim, it)| {
            let claim = claim.to_owned();
            match it {
                SuccessorSeen::Gone | SuccessorSeen::Deleting { .. } => {
                    Some(Because::SuccessorGone { claim })
                }
                SuccessorSeen::Died { node } => {
                    Some(Because::SuccessorDied { claim, node: node.clone() })
                }
                SuccessorSeen::NotReady { since, .. } | SuccessorSeen::Registered { since, .. } => {
                    let over = |it: &Timestamp| self.now.duration_since(*it) > LOST_DEADLINE;
                    // Each time pods have to wait, and all clocks of the drain begin anew: else it would never end.
                    let flaps = self.seen.unsteady.get(&claim).is_some_and(over);
                    if !over(since) && flaps {
                        return Some(Because::Flapping { claim });
                    }
                    over(since).then_some(Because::SuccessorLost { claim })
                }
                // It was there when the drain began, so its claim was made anew behind our back.
                SuccessorSeen::Unasked
                | SuccessorSeen::Launching { .. }
                | SuccessorSeen::Launched { .. } => {
                    self.waited(LOST_DEADLINE).then_some(Because::SuccessorLost { claim })
                }
                SuccessorSeen::Ready { .. } | SuccessorSeen::Unknown => None,
            }
        })
    }

    fn terminating(self) -> Step {
        let successor_first = !self.leaving() && !self.replacement.deletes_first();
        match self.seen.old {
            OldSeen::Gone => self.after_gone(),
            OldSeen::Present { pods, .. } if pods > 0 => {
                go(Phase::Draining, Because::PodsCameBack { pods })
            }
            OldSeen::Present { deleting: false, .. } if self.seen.lingering > 0 => {
                go(Phase::Draining, Because::PodsCameBack { pods: self.seen.lingering })
            }
            // Somebody took the taint away: pods may come at any moment.
            OldSeen::Present { cordoned: false, .. } if successor_first => {
                go(Phase::Draining, Because::DecideAgain)
            }
            // Nobody ends it who is told not to disturb it.
            OldSeen::Present { deleting: false, .. }
                if self.seen.people.is_some() && !self.leaving() =>
            {
                go(Phase::Draining, Because::DecideAgain)
            }
            // Nobody has deleted it, and nobody does now.
            OldSeen::Present { deleting: false, .. } if self.seen.halted && !self.leaving() => {
                self.stay(self.halt())
            }
            OldSeen::Unknown | OldSeen::Present { .. } => self.stay(Wait::Termination),
        }
    }

    /// What holds everything.
    fn halt(self) -> Wait {
        if self.seen.locked { Wait::Unlock } else { Wait::Pause }
    }

    /// The old machine is gone: it is over once the successors are there.
    fn after_gone(self) -> Step {
        if self.unready().is_none() {
            return go(Phase::Done, Because::OldGone);
        }
        let launched = self
            .successors()
            .all(|(_, it)| !matches!(it, SuccessorSeen::Unasked | SuccessorSeen::Launching { .. }));
        let phase = if launched { Phase::Joining } else { Phase::Launching };
        go(phase, Because::OldGone)
    }

    fn retreating(self) -> Step {
        match self.seen.old {
            OldSeen::Unknown => {
                return self.stay(Wait::Answer { about: "the old node".to_owned() });
            }
            OldSeen::Present { deleting: false, cordoned: true, .. } => {
                return self.stay(Wait::Uncordon { node: self.replacement.old.node.clone() });
            }
            OldSeen::Gone | OldSeen::Present { .. } => {}
        }
        let mut kept = false;
        for (claim, it) in self.successors() {
            let claim = claim.to_owned();
            match it {
                SuccessorSeen::Unknown => return self.stay(Wait::Answer { about: claim }),
                // Whoever deleted it empties it; that has a record of its own and need not hold this one.
                SuccessorSeen::Deleting { pods: 1.. }
                | SuccessorSeen::Gone
                | SuccessorSeen::Unasked => {}
                SuccessorSeen::Ready { pods: 1.., .. }
                | SuccessorSeen::NotReady { pods: 1.., .. }
                | SuccessorSeen::Registered { pods: 1.., .. }
                | SuccessorSeen::Launched { pods: 1.. } => kept = true,
                SuccessorSeen::Launching { .. }
                | SuccessorSeen::Launched { .. }
                | SuccessorSeen::Registered { .. }
                | SuccessorSeen::Ready { .. }
                | SuccessorSeen::NotReady { .. }
                | SuccessorSeen::Died { .. }
                | SuccessorSeen::Deleting { .. } => return self.stay(Wait::Removal { claim }),
            }
        }
        let phase = match &self.replacement.because {
            _ if kept => Phase::Kept,
            Because::DrainLimit { .. } | Because::HeldBack { .. } | Because::Protected { .. } => {
                Phase::Skipped
            }
            Because::NoLongerWanted | Because::NotGranted => Phase::Cancelled,
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
            | Because::SuccessorDied { .. }
            | Because::NoPlaceAnyMore { .. }
            | Because::SuccessorCordoned { .. } => Phase::Failed,
        };
        // What ended it is why it was given up, not that the cleaning is done.
        go(phase, self.replacement.because.clone())
    }
}

/// A claim that was made and is not in the list was not found out about; one that was never made is not
/// there.
fn not_listed(successor: &Successor) -> &'static SuccessorSeen {
    if successor.uid.is_some() { &SuccessorSeen::Unknown } else { &SuccessorSeen::Unasked }
}
