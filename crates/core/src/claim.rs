//! How far has a machine come, and what is its next step?
//!
//! `claim × what we see × now → phase, what it waits for, and one command at most`
//!
//! ```text
//! Asked ─▶ Asking ─▶ Joining ─▶ Starting ─▶ Running        made, and nobody needs to do anything
//!   ▲        │          │           │          │
//!   └────────┤          │           │          │           nothing was made, proved: the next attempt
//!            ▼          ▼           ▼          ▼
//!          GaveUp   Condemned ◀─────┴──────────┘           never joined, node deleted, machine gone
//!            │          │
//! deleted    └──────────┴──▶ Emptying ─▶ Ending ─▶ Parting ─▶ (no claim any more)
//! ```
//!
//! The phase is read off the claim and never recorded beside it: the attempt, the machine, the stages and
//! the deletion stand on the claim itself. So a command belongs to a phase by construction, and is asked
//! again until what it was for is seen. One at a time: whatever comes next waits for the record of what
//! was before.
//!
//! Absence is no proof by itself. A machine is gone when EC2 says so, or when two complete lists, some
//! time apart and long after it was asked for, do not have it. What could not be found out moves nothing;
//! it allows one thing only, to ask for the recorded attempt again, which is how one finds out.

mod step;

use std::fmt;

use jiff::{SignedDuration, Timestamp};

pub use step::{initialised, next};

use crate::replace::READY_DEADLINE;
use crate::seen::{Claim, MachineId, Node, Stage};

/// With fewer and fewer choices each. Then it is given up, and whoever wants the node decides again.
pub const ATTEMPTS_MAX: u32 = 5;

/// EC2 may not show a machine for this long after it was asked for. Its own guide says minutes.
pub const SHOWN_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Two lists that lack a machine prove something if they are so far apart.
pub const LISTS_APART: SignedDuration = SignedDuration::from_secs(30);

/// A node that was there and is missing for so long was deleted.
pub const NODE_LOST_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Karpenter's own: what was just bound to a node that is about to go must have time to be seen.
pub const DRAIN_AT_LEAST: SignedDuration = SignedDuration::from_secs(5);

/// A successor that is removed waits so long for somebody to cordon it.
pub const CORDONED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// What is seen of a claim's parts.
#[derive(Debug, Clone)]
pub struct Seen<'a> {
    pub machine: MachineSeen,
    pub nodes: NodesSeen<'a>,
    pub call: CallSeen,
    /// Since when the call is withheld without a break, as far as we remember. It may have been made at any
    /// time before.
    pub withheld_since: Option<Timestamp>,
    /// On its node, that must leave before the machine may go; before it is deleted also those that would end with
    /// it. `None`: not known since it was deleted, or not asked.
    pub pods_left: Option<usize>,
    /// It takes the place of another node, and its Replacement has the deadlines.
    pub successor: bool,
    pub gate: Gate,
    /// Of a claim that is deleted: another machine with its UID that lives, and on which nobody works.
    pub second: Option<MachineId>,
}

/// Whether a `NodeDisruptionBudget` that people wait for, too, lets a node go that somebody has deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// There is none.
    None,
    /// It was granted then. Before that nobody could leave, so time counts from there.
    Open { since: Timestamp },
    /// Not yet: neither its pods nor its machine.
    Closed { budget: String },
}

impl Seen<'_> {
    /// Nothing is known, and nothing speaks against a call.
    pub const UNKNOWN: Self = Self {
        machine: MachineSeen::Unknown,
        nodes: NodesSeen::Unknown,
        call: CallSeen::Free,
        withheld_since: None,
        pods_left: None,
        successor: false,
        gate: Gate::None,
        second: None,
    };
}

/// The machine with the claim's UID on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineSeen {
    /// We could not ask, or asked before it was asked for.
    Unknown,
    /// In neither of two complete lists, from these times. Whether that proves anything is decided here.
    Absent { first: Timestamp, last: Timestamp },
    /// It costs money: pending, running or stopped.
    Live(MachineId),
    /// It was told to go.
    Ending(MachineId),
    /// EC2 says that it has ended.
    Gone,
}

/// Nodes that say they are this machine.
#[derive(Debug, Clone)]
pub enum NodesSeen<'a> {
    /// Nodes were not listed, or not since the claim changed.
    Unknown,
    None {
        /// Since when it is missing, of a node that was there.
        missing_since: Option<Timestamp>,
    },
    One(&'a Node),
    /// Which of them it is cannot be told, so it is none.
    Several(Vec<&'a Node>),
}

/// Whether the machine may be asked for, and what became of it when it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallSeen {
    Free,
    /// What has to be known for it is not known.
    Unknown {
        about: String,
    },
    /// Something speaks against it now: its image may not boot any more, no machine fits, all are marked.
    Withheld(String),
    /// EC2 refused the recorded attempt, then. That alone does not prove that nothing was made before.
    Refused {
        why: String,
        at: Timestamp,
    },
}

/// Where a claim is, what it waits for, and what it wants done for as long as it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimStep {
    pub phase: Phase,
    pub because: Because,
    pub asks: Option<Command>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// An attempt is to be recorded.
    Asked,
    /// An attempt is recorded, and nobody knows what became of it.
    Asking,
    /// No other attempt will be made.
    GaveUp,
    /// There is a machine, and no node yet.
    Joining,
    /// The node is there and not set up.
    Starting,
    Running,
    /// The claim is to be deleted.
    Condemned,
    /// Deleted: pods leave.
    Emptying,
    /// Deleted: the machine goes.
    Ending,
    /// The machine is gone: the objects may go.
    Parting,
}

impl Phase {
    pub const ALL: [Self; 10] = [
        Self::Asked,
        Self::Asking,
        Self::GaveUp,
        Self::Joining,
        Self::Starting,
        Self::Running,
        Self::Condemned,
        Self::Emptying,
        Self::Ending,
        Self::Parting,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked for",
            Self::Asking => "asking",
            Self::GaveUp => "given up",
            Self::Joining => "joining",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Condemned => "condemned",
            Self::Emptying => "emptying",
            Self::Ending => "ending",
            Self::Parting => "parting",
        }
    }
}

/// One act that a phase asks of the world. Each is safe to repeat.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// Choose, record the attempt of this number, and make the call.
    Attempt {
        number: u32,
    },
    /// Make the call of the recorded attempt again.
    Call {
        number: u32,
    },
    /// Record that the attempt made nothing.
    EndAttempt {
        number: u32,
        why: String,
    },
    /// Write down the machine that was found by its tags.
    Adopt {
        machine: MachineId,
    },
    /// Labels, taints and finalizer of the node; then the stage.
    Register {
        node: String,
    },
    Initialise {
        node: String,
    },
    DeleteClaim,
    DeleteNode {
        node: String,
        uid: String,
    },
    Terminate {
        machine: MachineId,
    },
    ReleaseNode {
        node: String,
        uid: String,
    },
    ReleaseClaim,
}

impl Command {
    /// Whether it takes something away. What could not be found out never leads to one of these.
    pub fn destroys(&self) -> bool {
        match self {
            Self::DeleteClaim
            | Self::DeleteNode { .. }
            | Self::Terminate { .. }
            | Self::ReleaseNode { .. }
            | Self::ReleaseClaim => true,
            Self::Attempt { .. }
            | Self::Call { .. }
            | Self::EndAttempt { .. }
            | Self::Adopt { .. }
            | Self::Register { .. }
            | Self::Initialise { .. } => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// Its command says it all.
    Next,
    /// It is where it should be.
    AtRest,
    /// Nothing can be asked for now.
    Withheld {
        why: String,
    },
    /// What a call needs is not known.
    NotKnown {
        about: String,
    },
    GaveUp {
        attempts: u32,
        why: String,
    },
    /// The attempt was refused or may not be repeated, and that it made nothing is not proved yet.
    Unproved {
        why: String,
    },
    NeverJoined,
    /// It joined, and was never set up.
    NeverReady {
        lacks: Lacks,
    },
    NodeDeleted,
    /// Nobody was seen to delete it: it is not there any more.
    NodeMissing,
    MachineGone,
    WaitsFor(Wait),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// What we could not find out.
    Answer {
        about: About,
    },
    Node,
    SeveralNodes {
        nodes: Vec<String>,
    },
    /// For the node to be set up: what is still in the way.
    Start {
        lacks: Lacks,
    },
    /// Whoever drains it has not begun.
    Cordon {
        node: String,
    },
    PodsToLeave {
        pods: usize,
    },
    /// A `NodeDisruptionBudget` that people wait for.
    Budget {
        budget: String,
    },
    /// The machine was told to go.
    Termination,
    /// A second machine of its making, which nobody would know to be its own without it.
    SecondMachine {
        machine: MachineId,
    },
    /// Of the node, by somebody else's finalizer. Ours is off.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    Machine,
    Nodes,
    Pods,
}

/// What keeps a node from being set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lacks {
    Readiness,
    /// A taint that somebody will take away, by key.
    Taint(String),
    /// A resource that its pods ask for, by name.
    Resource(String),
}

/// Why no other attempt will be made, if none will.
pub fn gave_up(claim: &Claim) -> Option<&str> {
    let attempt = claim.attempt.as_ref().filter(|_| claim.machine.is_none())?;
    attempt.ended.as_deref().filter(|_| attempt.number >= ATTEMPTS_MAX)
}

/// When the machine of a deleted claim ends, whoever is left on it: where it has a `terminationGracePeriod` and nothing holds
/// those who delete it.
pub fn forced_at(claim: &Claim, gate: &Gate) -> Option<Timestamp> {
    let (deleted, grace) = claim.deleting_since.zip(claim.termination_grace_period)?;
    let begun = match gate {
        Gate::None => deleted,
        Gate::Open { since } => deleted.max(*since),
        Gate::Closed { .. } => return None,
    };
    Some(begun.saturating_add(grace).unwrap_or(Timestamp::MAX))
}

/// When the machine was asked for, as far as the claim tells.
pub fn launched_at(claim: &Claim) -> Timestamp {
    let attempt = claim.attempt.as_ref().map(|it| it.since);
    claim.stages.get(&Stage::Launched).copied().or(attempt).unwrap_or(claim.created_at)
}

/// Of a claim whose node has joined and is not set up: by when it should be.
pub fn ready_by(claim: &Claim) -> Option<Timestamp> {
    let joined = claim.stages.get(&Stage::Registered)?;
    let set_up = claim.stages.contains_key(&Stage::Initialized);
    (!set_up).then(|| joined.saturating_add(READY_DEADLINE).unwrap_or(Timestamp::MAX))
}

impl fmt::Display for Because {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Next | Self::AtRest => write!(out, "nothing is in the way"),
            Self::Withheld { why } => write!(out, "no machine can be asked for: {why}"),
            Self::NotKnown { about } => write!(out, "no machine is asked for: {about}"),
            Self::GaveUp { attempts, why } => {
                write!(out, "given up after {attempts} attempts: {why}")
            }
            Self::Unproved { why } => {
                write!(out, "whether the last attempt made nothing is not proved yet: {why}")
            }
            Self::NeverJoined => {
                write!(out, "no node joined in {:#}", crate::replace::JOIN_DEADLINE)
            }
            Self::NeverReady { lacks } => {
                write!(
                    out,
                    "it was not set up in {READY_DEADLINE:#}: it waited for {}",
                    Wait::Start { lacks: lacks.clone() }
                )
            }
            Self::NodeDeleted => write!(out, "its node was deleted"),
            Self::NodeMissing => write!(out, "its node is not there any more"),
            Self::MachineGone => write!(out, "its machine is gone"),
            Self::WaitsFor(wait) => write!(out, "waits for {wait}"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer { about: About::Machine } => write!(out, "EC2 to tell of its machine"),
            Self::Answer { about: About::Nodes } => write!(out, "a fresh list of nodes"),
            Self::Answer { about: About::Pods } => write!(out, "a fresh list of pods"),
            Self::Node => write!(out, "its node to join"),
            Self::SeveralNodes { nodes } => {
                write!(out, "one of its nodes to go: {} have one machine id", nodes.join(", "))
            }
            Self::Start { lacks: Lacks::Readiness } => write!(out, "its node to be ready"),
            Self::Start { lacks: Lacks::Taint(key) } => write!(out, "taint {key} to go"),
            Self::Start { lacks: Lacks::Resource(name) } => write!(out, "its node to offer {name}"),
            Self::Cordon { node } => write!(out, "node {node} to be cordoned"),
            Self::PodsToLeave { pods: 1 } => write!(out, "1 pod to leave"),
            Self::PodsToLeave { pods } => write!(out, "{pods} pods to leave"),
            Self::Budget { budget } => write!(out, "NodeDisruptionBudget `{budget}`"),
            Self::Termination => write!(out, "its machine to end"),
            Self::SecondMachine { machine } => {
                write!(out, "its second machine {} to end", machine.0)
            }
            Self::Nothing => write!(out, "nothing"),
        }
    }
}
