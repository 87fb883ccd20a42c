//! What is the next step?
//!
//! `replacement × what we see × now → phase, and because of what`, and `phase → commands`
//!
//! ```text
//! SuccessorFirst  Launching ─▶ Joining ─▶ Settling ◀─▶ Draining ◀─▶ Terminating ─▶ Done
//!                     │           │          │           │              │          ▲
//! DeleteFirst         │           │  Settling ◀─▶ Draining ─▶ Terminating ─▶ Launching ─▶ Joining ─▶ Done
//!                     │           │          │           │
//! deleted by others   └───────────┴──────────┴──▶ Draining ─▶ Terminating ─▶ Done, or Joining first
//!                     │           │          │           │
//! anything fails      └───────────┴──────────┴───────────┴──▶ Retreating ─▶ Failed | Skipped | Kept | Cancelled
//! ```
//!
//! The old node is untouched until `Draining`, and `Draining` is entered only when nobody protects it and
//! its pods have a place on a ready node, decided again right before. Where it is not cordoned (a leader
//! died in between, somebody took the taint away) that is decided anew, and what does not hold any more
//! leads back to `Settling`. A place that others have taken meanwhile is made anew: from `Settling` a
//! replacement goes back to `Launching` with one successor more, if that would help. Pods leave only while every successor is ready ([`evicts`]). From
//! `Terminating` there is no way back but to `Draining`: a pod may have come that must leave first. Commands belong to phases, never to the arrows between
//! them: what an arrow asks for once can be lost, what a phase asks for is asked again. `Unknown` moves
//! nothing.

mod because;
mod step;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

pub use because::{Because, Wait};
pub use step::{
    JOIN_DEADLINE, LAUNCH_DEADLINE, LIFE_MIN, LOST_DEADLINE, READY_DEADLINE, SETTLE_DEADLINE,
    STEADY_FOR, evicts, next,
};

use crate::drain::AtLimit;
use crate::plan::WaitFor;

/// The wait after a first failure; it doubles with each.
const BACK_OFF_FIRST: SignedDuration = SignedDuration::from_hours(1);
const BACK_OFF_MAX: SignedDuration = SignedDuration::from_hours(24);

/// One old node and its successors, as it stands in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    pub old: Old,
    pub cause: Cause,
    pub order: Order,
    pub at_limit: AtLimit,
    /// From one on.
    pub tries: u32,
    /// So many of them have failed. One that nobody wanted any more has not: it says nothing about the next.
    pub failures: u32,
    /// None where the pods have room elsewhere.
    pub successors: Vec<Successor>,
    pub phase: Phase,
    /// When the phase began.
    pub since: Timestamp,
    /// Why the phase began.
    pub because: Because,
}

/// The node that goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Old {
    pub node: String,
    pub claim: String,
    pub claim_uid: String,
}

/// A claim of ours that takes over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Successor {
    pub claim: String,
    /// Known once it was made; it is never made twice.
    pub uid: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    Drift,
    Expiry,
    /// A person asked for it.
    Asked,
    /// A person deleted the node: it goes, whatever becomes of us.
    Deleted,
    /// The machine is taken away.
    Interrupted,
}

impl Cause {
    pub fn voluntary(self) -> bool {
        match self {
            Self::Drift | Self::Expiry | Self::Asked => true,
            Self::Deleted | Self::Interrupted => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drift => "drift",
            Self::Expiry => "expiry",
            Self::Asked => "asked for",
            Self::Deleted => "deleted",
            Self::Interrupted => "interrupted",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    SuccessorFirst,
    /// There is no room for one more: a full capacity reservation.
    DeleteFirst,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Launching,
    Joining,
    Settling,
    Draining,
    Terminating,
    Retreating,
    Done,
    /// The successor did not come; the old node stays.
    Failed,
    /// The old node could not be emptied; it stays.
    Skipped,
    /// It failed, and a successor that already runs pods stays as an ordinary node.
    Kept,
    /// Nobody wants it any more.
    Cancelled,
}

impl Phase {
    pub const ALL: [Self; 11] = [
        Self::Launching,
        Self::Joining,
        Self::Settling,
        Self::Draining,
        Self::Terminating,
        Self::Retreating,
        Self::Done,
        Self::Failed,
        Self::Skipped,
        Self::Kept,
        Self::Cancelled,
    ];

    pub fn ended(self) -> bool {
        match self {
            Self::Launching
            | Self::Joining
            | Self::Settling
            | Self::Draining
            | Self::Terminating
            | Self::Retreating => false,
            Self::Done | Self::Failed | Self::Skipped | Self::Kept | Self::Cancelled => true,
        }
    }

    /// Ended, and the old node is still to be replaced: later.
    pub fn failed(self) -> bool {
        matches!(self, Self::Failed | Self::Skipped | Self::Kept)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launching => "launching",
            Self::Joining => "joining",
            Self::Settling => "settling",
            Self::Draining => "draining",
            Self::Terminating => "terminating",
            Self::Retreating => "retreating",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Kept => "kept",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Replacement {
    /// A record to be written together with its grant, before anything is done.
    pub fn begin(
        old: Old,
        cause: Cause,
        order: Order,
        at_limit: AtLimit,
        successors: Vec<String>,
        now: Timestamp,
    ) -> Self {
        let phase = match (cause.voluntary(), order) {
            (true, Order::SuccessorFirst) => Phase::Launching,
            (true, Order::DeleteFirst) | (false, _) => Phase::Draining,
        };
        let successors = successors.into_iter().map(|claim| Successor { claim, uid: None });
        Self {
            old,
            cause,
            order,
            at_limit,
            tries: 1,
            failures: 0,
            successors: successors.collect(),
            phase,
            since: now,
            because: Because::Begun,
        }
    }

    /// The next try of one that has ended: the same record, opened again.
    #[must_use]
    pub fn again(&self, cause: Cause, successors: Vec<String>, now: Timestamp) -> Self {
        let begun =
            Self::begin(self.old.clone(), cause, self.order, self.at_limit, successors, now);
        Self { tries: self.tries.saturating_add(1), failures: self.failures, ..begun }
    }

    /// What is recorded after a step: the clock of a phase starts when it begins, and not again.
    #[must_use]
    pub fn after(&self, step: Step, now: Timestamp) -> Self {
        if step.phase == self.phase {
            return self.clone();
        }
        let failures = self.failures.saturating_add(u32::from(step.phase.failed()));
        Self { phase: step.phase, because: step.because, since: now, failures, ..self.clone() }
    }

    /// Whether its grant is held: until the old machine is gone, or it has ended. Where the old one went
    /// first, for whatever reason, the room it left is part of the disturbance until the successor is there.
    pub fn holds_grant(&self, old: &OldSeen) -> bool {
        let followed = *old == OldSeen::Gone && self.successors.is_empty();
        !self.phase.ended() && (!followed || self.deletes_first())
    }

    /// When to try again, if it has failed.
    pub fn next_try_at(&self) -> Option<Timestamp> {
        self.phase.failed().then(|| next_try_at(self.failures, self.since))
    }

    /// The old node goes before its successor comes, because a policy said so.
    pub fn deletes_first(&self) -> bool {
        self.cause.voluntary() && self.order == Order::DeleteFirst
    }

    /// The old node goes without us, so there is no retreat and nothing holds it: it is taken away, or
    /// somebody has deleted it, whatever it was replaced for at first.
    pub fn leaves_anyway(&self, old: &OldSeen) -> bool {
        !self.cause.voluntary() || matches!(old, OldSeen::Present { deleting: true, .. })
    }
}

/// An hour after the first failure, two after the second, and so on up to a day.
pub fn next_try_at(failures: u32, ended_at: Timestamp) -> Timestamp {
    let doublings = failures.saturating_sub(1).min(16);
    let wait = BACK_OFF_FIRST.checked_mul(1 << doublings).unwrap_or(BACK_OFF_MAX).min(BACK_OFF_MAX);
    ended_at.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// What is seen of a replacement's parts. Two enums, so that nothing can be ready and absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub old: OldSeen,
    /// By the name of the claim.
    pub successors: BTreeMap<String, SuccessorSeen>,
    /// By the name of the claim: since when, in this drain, a successor is now ready and now not, as far as anybody remembers.
    pub unsteady: BTreeMap<String, Timestamp>,
    pub placement: PlacementSeen,
    /// Further successors that could be launched, where pods have lost their place: their claims.
    pub more: Vec<String>,
    /// What a person would have to lift before a replacement of this node could start now; once it is cordoned only
    /// what protects the node itself.
    pub people: Option<WaitFor>,
    /// Pods that nobody evicts and that may not end with the machine now.
    pub lingering: usize,
    /// When the drain limit ends, and the pod that holds the drain.
    pub drain_limit: Option<(Timestamp, String)>,
    /// Whether the old node still has to go. `None` if we cannot tell.
    pub wanted: Option<bool>,
    /// Whether its grant stands in the ledger, or will again; or it needs none.
    pub granted: bool,
    /// A pause or a lock: nothing is cordoned, evicted or terminated.
    pub halted: bool,
    /// It is a lock, whether there is a pause as well or not.
    pub locked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OldSeen {
    Unknown,
    Present {
        /// Somebody has deleted it.
        deleting: bool,
        /// With our taint and our name on it.
        cordoned: bool,
        /// That must leave first.
        pods: usize,
    },
    /// Its machine is gone, and so is its claim.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuccessorSeen {
    Unknown,
    /// There is no such claim, and there was none.
    Unasked,
    Launching {
        /// Every attempt failed and no other will be made.
        gave_up: Option<String>,
    },
    Launched {
        pods: usize,
    },
    Registered {
        since: Timestamp,
        pods: usize,
    },
    Ready {
        since: Timestamp,
        pods: usize,
    },
    NotReady {
        since: Timestamp,
        pods: usize,
    },
    /// Its machine has ended under it, by EC2's own word, and nobody had deleted it.
    Died {
        node: String,
    },
    /// With pods it is being emptied, which may take as long as their budgets say.
    Deleting {
        pods: usize,
    },
    Gone,
}

/// Whether the pods still have a place, now that the successors are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementSeen {
    NotDecided,
    Holds,
    Lost {
        pod: String,
        because: String,
    },
    /// Lost, and a successor that is there for it takes no pods: somebody has cordoned its node.
    Cordoned {
        pod: String,
        claim: String,
        node: String,
    },
}

/// Where to go from here. The same phase again means that it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub phase: Phase,
    pub because: Because,
}

/// One act that a phase asks of the world. Each is safe to repeat.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// Make the claim, if no claim of that name was ever made.
    Launch {
        claim: String,
    },
    Cordon {
        node: String,
    },
    /// Let those pods go that `drain::evictions` says.
    Evict {
        node: String,
    },
    /// Delete the claim; its finalizer takes the machine with it. Not while pods remain that must leave.
    Terminate {
        claim: String,
        uid: String,
    },
    /// Take away our own taint, and no other.
    Uncordon {
        node: String,
    },
    /// Delete the claim of a successor, if no pod runs there.
    RemoveSuccessor {
        claim: String,
    },
}

/// What a phase wants done, for as long as it lasts.
pub fn asks(phase: Phase, replacement: &Replacement) -> Vec<Command> {
    let node = || replacement.old.node.clone();
    let launches = replacement
        .successors
        .iter()
        .filter(|it| it.uid.is_none())
        .map(|it| Command::Launch { claim: it.claim.clone() });
    let uncordon = || Command::Uncordon { node: node() };
    match phase {
        // Where an earlier try, or a cordon that was late, has left our taint, it goes.
        Phase::Launching | Phase::Joining => launches.chain([uncordon()]).collect(),
        // Beside that it waits for time to pass and for a place.
        Phase::Settling => vec![uncordon()],
        Phase::Draining => {
            let first = [Command::Cordon { node: node() }, Command::Evict { node: node() }];
            let beside = (!replacement.deletes_first()).then_some(launches);
            first.into_iter().chain(beside.into_iter().flatten()).collect()
        }
        Phase::Terminating => vec![
            Command::Cordon { node: node() },
            Command::Terminate {
                claim: replacement.old.claim.clone(),
                uid: replacement.old.claim_uid.clone(),
            },
        ],
        Phase::Retreating => {
            let remove = |it: &Successor| Command::RemoveSuccessor { claim: it.claim.clone() };
            std::iter::once(uncordon()).chain(replacement.successors.iter().map(remove)).collect()
        }
        Phase::Done | Phase::Failed | Phase::Skipped | Phase::Kept | Phase::Cancelled => Vec::new(),
    }
}
