//! What is asked of the world, and what came of it?
//!
//! A turn decides acts and waits for none. Hands perform them beside it, one at a time for each intent,
//! and what came of an act is one more observation.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::catalog::{Observation, Query};
use nodemolt_core::drain::PodId;
use nodemolt_core::seen::NetworkAsk;

use crate::claims::{ClaimAct, ClaimDone};
use crate::port::{
    CloudError, ClusterError, EvictAnswer, Machine, Network, NewClaim, Object, Offered,
};

/// What an act is about. At most one act of an intent is in flight.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intent {
    Ask(Question),
    /// By name: the claim, its machine and the node that it becomes.
    Claim(String),
    /// By name: the taint of a node that is replaced.
    Node(String),
    /// By UID.
    Pod(String),
}

/// What EC2 is asked. Asking changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Images or parameters.
    Images(Query),
    Offered,
    Network(NetworkAsk),
    Machines,
}

/// One act, decided at a time, on what was known then.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    pub intent: Intent,
    pub errand: Errand,
    /// Of the leader that decided it: in another one's time it is not performed.
    pub epoch: u64,
    pub decided_at: Timestamp,
    /// When our lease ends unless it is renewed: not performed after this.
    pub leads_until: Timestamp,
    /// A pause or a lock holds it back.
    pub voluntary: bool,
    /// How long it may take. Whoever runs the hands drops [`crate::perform`] after this, and says
    /// [`Done::Late`]: that gives up the answer and not the act.
    pub allowed: SignedDuration,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Errand {
    Ask(Question),
    /// A successor, for a Replacement by name.
    MakeClaim {
        replacement: String,
        claim: Box<NewClaim>,
    },
    Cordon {
        replacement: String,
        node: Object,
        /// The nodes that its pods are to go to, by name.
        homes: BTreeSet<String>,
    },
    Uncordon {
        replacement: String,
        node: Object,
    },
    Evict {
        replacement: String,
        pod: PodId,
    },
    /// Past budgets and protections, as the Replacement records.
    DeletePod {
        replacement: String,
        pod: PodId,
        grace_seconds: i64,
    },
    /// Of the old node, by name and UID; its finalizer takes the machine with it.
    DeleteOld {
        replacement: String,
        claim: String,
        uid: String,
    },
    /// A node for pods that we moved and that found no place.
    MakeRoom {
        claim: Box<NewClaim>,
    },
    /// The life of a claim and of its machine.
    Claim(Box<ClaimAct>),
    /// Of a successor that nobody needs.
    DeleteSuccessor {
        replacement: String,
        claim: String,
        uid: String,
    },
}

/// What came of an act.
#[derive(Debug, Clone)]
pub enum Done {
    Observed(Box<Observation>),
    Offered(Result<Box<Offered>, CloudError>),
    Network(Result<Network, CloudError>),
    Machines(Result<Vec<Machine>, CloudError>),
    /// A claim, with its UID.
    Made(Result<String, ClusterError>),
    Written(Result<(), ClusterError>),
    Evicted(Result<EvictAnswer, ClusterError>),
    Claim(ClaimDone),
    /// It was not begun: right before, something spoke against it.
    Withheld(String),
    /// No answer came in time. It may have happened all the same.
    Late,
}
