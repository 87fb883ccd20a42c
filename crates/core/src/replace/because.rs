//! Why does it stand where it stands?

use std::fmt;

use super::{JOIN_DEADLINE, LAUNCH_DEADLINE, LOST_DEADLINE, READY_DEADLINE, SETTLE_DEADLINE};
use crate::plan::WaitFor;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    Begun,
    WaitsFor(Wait),
    SuccessorsLaunched,
    SuccessorsReady,
    PlacementHolds,
    /// The old node is not cordoned, and what was decided before does not hold now.
    DecideAgain,
    Drained,
    OldGone,
    OldDeleted,
    PodsCameBack {
        pods: usize,
    },
    NoLongerWanted,
    /// The ledger does not list it, and nothing was done for it yet.
    NotGranted,
    LaunchGaveUp {
        claim: String,
        why: String,
    },
    LaunchTooSlow {
        claim: String,
    },
    NeverRegistered {
        claim: String,
    },
    NeverReady {
        claim: String,
    },
    Flapping {
        claim: String,
    },
    SuccessorGone {
        claim: String,
    },
    SuccessorLost {
        claim: String,
    },
    SuccessorDied {
        claim: String,
        node: String,
    },
    NoPlaceAnyMore {
        pod: String,
        because: String,
    },
    /// A person has closed the successor's node for pods, and one of them has no place elsewhere.
    SuccessorCordoned {
        pod: String,
        claim: String,
        node: String,
    },
    /// What a person would have had to lift: a protection, a budget of pods.
    HeldBack {
        pod: Option<String>,
        why: String,
    },
    /// Somebody said in the middle of it that the old node must not be disturbed.
    Protected {
        why: String,
    },
    DrainLimit {
        pod: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    Launch {
        claim: String,
    },
    Registration {
        claim: String,
    },
    Readiness {
        claim: String,
    },
    /// Ready, but not for long enough.
    Steadiness {
        claim: String,
    },
    /// Nobody has looked yet.
    Placement,
    Place {
        pod: String,
        because: String,
    },
    /// Somebody's cordon on a successor, which was to take this pod.
    SuccessorUncordoned {
        pod: String,
        claim: String,
        node: String,
    },
    /// What only a person can lift.
    Person(Box<WaitFor>),
    Cordon {
        node: String,
    },
    PodsToLeave {
        pods: usize,
    },
    Termination,
    /// Our taint is still there.
    Uncordon {
        node: String,
    },
    /// A successor that nobody needs is still there.
    Removal {
        claim: String,
    },
    Pause,
    Unlock,
    /// What we could not find out.
    Answer {
        about: String,
    },
    Nothing,
}

impl fmt::Display for Because {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begun => write!(out, "it has begun"),
            Self::WaitsFor(wait) => write!(out, "waits for {wait}"),
            Self::SuccessorsLaunched => write!(out, "its successors are launched"),
            Self::SuccessorsReady => write!(out, "its successors are ready"),
            Self::PlacementHolds => write!(out, "every pod has a place on a ready node"),
            Self::DecideAgain => {
                write!(out, "the old node is not cordoned: whether it may be is decided again")
            }
            Self::Drained => write!(out, "every pod that must leave has left"),
            Self::OldGone => write!(out, "the old machine is gone"),
            Self::OldDeleted => write!(out, "somebody deleted the old node"),
            Self::PodsCameBack { pods } => write!(out, "{pods} pods came that must leave first"),
            Self::NoLongerWanted => write!(out, "the old node matches again"),
            Self::NotGranted => write!(out, "the ledger has no grant for it"),
            Self::LaunchGaveUp { claim, why } => write!(out, "`{claim}` could not launch: {why}"),
            Self::LaunchTooSlow { claim } => {
                write!(out, "`{claim}` did not launch in {LAUNCH_DEADLINE:#}")
            }
            Self::NeverRegistered { claim } => {
                write!(out, "`{claim}` did not join in {JOIN_DEADLINE:#}")
            }
            Self::NeverReady { claim } => {
                write!(out, "`{claim}` did not become ready in {READY_DEADLINE:#}")
            }
            Self::Flapping { claim } => {
                write!(out, "for {SETTLE_DEADLINE:#} `{claim}` did not stay ready")
            }
            Self::SuccessorGone { claim } => write!(out, "`{claim}` was deleted"),
            Self::SuccessorLost { claim } => {
                write!(out, "`{claim}` was not ready for {LOST_DEADLINE:#}")
            }
            Self::SuccessorDied { claim, node } => {
                write!(out, "the machine of its successor {node} (`{claim}`) has ended")
            }
            Self::NoPlaceAnyMore { pod, because } => {
                write!(out, "pod {pod} has no place any more: {because}")
            }
            Self::SuccessorCordoned { pod, claim, node } => {
                write!(
                    out,
                    "for {SETTLE_DEADLINE:#} somebody's cordon was on its successor {node} (`{claim}`), and pod {pod} has no place elsewhere"
                )
            }
            Self::Protected { why } => write!(out, "it stopped in the middle for {why}"),
            Self::HeldBack { pod: _, why } => {
                write!(out, "for {SETTLE_DEADLINE:#} it waited for {why}")
            }
            Self::DrainLimit { pod } => write!(out, "pod {pod} did not leave in time"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launch { claim } => write!(out, "`{claim}` to launch"),
            Self::Registration { claim } => write!(out, "`{claim}` to join"),
            Self::Readiness { claim } => write!(out, "`{claim}` to become ready"),
            Self::Steadiness { claim } => write!(out, "`{claim}` to stay ready"),
            Self::Placement => write!(out, "a place for every pod"),
            Self::Place { pod, because } => write!(out, "a place for pod {pod}: {because}"),
            Self::SuccessorUncordoned { pod, claim, node } => {
                write!(
                    out,
                    "its successor {node} (`{claim}`) to be uncordoned: somebody has cordoned it, and pod {pod} has no place elsewhere"
                )
            }
            Self::Person(reason) => write!(out, "{reason}"),
            Self::Cordon { node } => write!(out, "node {node} to be cordoned"),
            Self::PodsToLeave { pods } => write!(out, "{pods} pods to leave"),
            Self::Termination => write!(out, "the old machine to go"),
            Self::Uncordon { node } => write!(out, "our taint on node {node} to go"),
            Self::Removal { claim } => write!(out, "`{claim}`, which nobody needs, to go"),
            Self::Pause => write!(out, "the pause to end (`nodemolt resume`)"),
            Self::Unlock => write!(out, "the lock to be released (`nodemolt unlock`)"),
            Self::Answer { about } => write!(out, "an answer about {about}"),
            Self::Nothing => write!(out, "nothing"),
        }
    }
}
