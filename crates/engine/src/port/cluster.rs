//! What does the engine ask of Kubernetes?

use std::collections::BTreeMap;
use std::ops::Deref;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget;
use nodemolt_core::catalog::{Appeared, Withdrawn};
use nodemolt_core::drain::{self, PodId};
use nodemolt_core::image::{AccountId, ImageId};
use nodemolt_core::node::Stamp;
use nodemolt_core::seen::{
    Attempt, ClassKey, Looks, MachineId, Node, Remembered, Revision, Stage, Subject, View,
};
use nodemolt_fit::Written;
use nodemolt_fit::capacity::Amounts;
use nodemolt_fit::taint::Taint;

use super::Remedy;
use crate::record::{Ledger, Recorded};

/// Kubernetes.
///
/// Every write names what it was decided on: a revision, or a UID. Nothing here tries a destructive call
/// twice; a late answer is a lost one. No method waits longer than its caller's deadline: dropping the
/// future gives up the answer, not the act.
#[expect(async_fn_in_trait, reason = "the engine runs on one thread; its futures are never sent")]
pub trait Cluster {
    /// What watches have told so far. For the eyes only: it may lag, each kind for itself. Never held
    /// across an `await`.
    fn view(&self) -> impl Deref<Target = View>;

    /// Ledger and all Replacements that have not ended, and those that have and may be opened again, read
    /// from the API server now.
    ///
    /// Guarantee: at least as new as every write that was answered before the call, and the ledger not older than
    /// any of the Replacements: an epoch that stands in it had begun no later than the last write to them.
    async fn records(&self) -> Result<Records, ClusterError>;

    /// The pods that are bound to a node of this name, read from the API server now: right before something
    /// is taken away that they would go with. Whether there is such a node does not matter.
    ///
    /// Guarantee: the whole list, at least as new as every write that was answered before the call. One
    /// pod that cannot be read is [`ClusterError::Unreadable`], and never one less.
    async fn pods_on(&self, node: &str) -> Result<Vec<drain::Pod>, ClusterError>;

    /// The node of this name, read from the API server now. `None`: there is none.
    ///
    /// Guarantee: as for [`Cluster::pods_on`].
    async fn node(&self, name: &str) -> Result<Option<Node>, ClusterError>;

    /// Writes the ledger's status: creates it where `revision` is `None`, else replaces exactly that
    /// revision. `pause` and `released_lock` are people's words and are never written.
    ///
    /// Guarantee: of two writes against one revision at most one succeeds; an epoch never goes back.
    async fn write_ledger(&self, ledger: &Ledger) -> Result<Revision, ClusterError>;

    /// Creates a Replacement, or writes its status against its revision. Creation and first status are
    /// two writes: one that has no status yet is read as begun, as it was decided, and not granted.
    async fn write_replacement(&self, record: &Recorded) -> Result<Revision, ClusterError>;

    /// Ended ones go after a time.
    async fn delete_replacement(&self, name: &str, revision: &Revision)
    -> Result<(), ClusterError>;

    /// Makes a claim with our finalizer on it. A claim of that name is a [`ClusterError::Exists`].
    async fn create_claim(&self, claim: &NewClaim) -> Result<String, ClusterError>;

    /// Writes the attempt onto the claim, against the revision that it was decided on. Before the call.
    ///
    /// Guarantee: our finalizer is on the claim afterwards, whoever made it: none goes before its machine.
    async fn record_attempt(
        &self,
        claim: &Object,
        attempt: &Attempt,
    ) -> Result<Revision, ClusterError>;

    /// What became of the machine: status, labels and stamps of a claim.
    async fn write_claim(
        &self,
        claim: &Object,
        state: &ClaimState,
    ) -> Result<Revision, ClusterError>;

    /// Asks for the end of a claim. Succeeds if it is being deleted, too; [`ClusterError::Absent`] if no
    /// claim of that name has that UID.
    async fn delete_claim(&self, name: &str, uid: &str) -> Result<(), ClusterError>;

    /// Takes our finalizer off a claim whose machine is gone. Ours only.
    async fn release_claim(&self, claim: &Object) -> Result<(), ClusterError>;

    /// What registering means for a node: labels, taints and finalizer, and the unregistered taint goes.
    async fn register_node(&self, node: &Object, state: &NewNodeState) -> Result<(), ClusterError>;

    /// Our taint and the name of the Replacement, together. Nothing else of the node changes;
    /// `spec.unschedulable` is people's. Repeating it changes nothing.
    async fn cordon(&self, node: &Object, replacement: &str) -> Result<(), ClusterError>;

    /// Takes back what [`Cluster::cordon`] did, only if that Replacement did it.
    async fn uncordon(&self, node: &Object, replacement: &str) -> Result<(), ClusterError>;

    async fn delete_node(&self, name: &str, uid: &str) -> Result<(), ClusterError>;

    /// Takes our finalizer off a node.
    async fn release_node(&self, node: &Object) -> Result<(), ClusterError>;

    /// The eviction API, with the pod's UID and its own grace period. Never tried again by itself.
    async fn evict(&self, pod: &PodId) -> Result<EvictAnswer, ClusterError>;

    /// Past budgets and protections, after that was recorded. With the UID; at least one second.
    async fn delete_pod(&self, pod: &PodId, grace_seconds: i64) -> Result<(), ClusterError>;

    /// Remembers an image, before it is used. What was remembered is never taken back.
    async fn remember(&self, image: &NewMemory) -> Result<(), ClusterError>;

    /// What people read of a class, a pool, a budget or a policy. Nothing is decided by it.
    ///
    /// Guarantee: [`ClusterError::Absent`] for another object of that name, [`ClusterError::Conflict`] for another
    /// generation than the one that it was found out for. What stands there already is not written again.
    async fn write_status(&self, status: &Status) -> Result<(), ClusterError>;

    /// Takes or renews the lease, by compare-and-swap. `me` tells replicas apart.
    ///
    /// Expected flow: every five seconds. One who follows takes a lease that it has seen unchanged for its
    /// duration, of which no look counts for more than that.
    async fn lead(&self, me: &str, now: Timestamp) -> Result<Leadership, ClusterError>;
}

/// Ledger and records, read now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    pub ledger: Ledger,
    /// By name.
    pub replacements: BTreeMap<String, Recorded>,
    /// Records that could not be read, by name, and why. They hold what they held.
    pub unreadable: BTreeMap<String, String>,
    /// The API server's Date.
    pub server_time: Option<Timestamp>,
}

/// An object, told apart from a later one of the same name, at one revision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    pub name: String,
    pub uid: String,
    pub revision: Revision,
}

/// A claim to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewClaim {
    pub name: String,
    pub pool: String,
    /// The pool's UID: the claim is owned by it.
    pub pool_uid: String,
    pub class: ClassKey,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub requirements: Vec<Written>,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
    pub requests: Amounts,
    pub termination_grace_period: Option<SignedDuration>,
    /// `None`: never.
    pub expire_after: Option<SignedDuration>,
    pub class_stamp: Stamp,
    pub template_stamp: Stamp,
    /// The Replacement that it is made for, by name.
    pub successor_of: Option<String>,
}

/// What is known of a claim's machine. Only what is `Some` or listed is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimState {
    pub machine: Option<MachineId>,
    /// Stands in the provider id.
    pub zone: Option<String>,
    pub image: Option<ImageId>,
    pub node: Option<String>,
    pub capacity: Amounts,
    pub allocatable: Amounts,
    /// Added; none is taken away.
    pub labels: BTreeMap<String, String>,
    pub stages: BTreeMap<Stage, Condition>,
    /// Other conditions, by type: `Ready`, `Drifted`, `Launched` when it is not.
    pub conditions: Vec<Condition>,
    /// In place of those of another version of ours.
    pub class_stamp: Option<Stamp>,
    pub template_stamp: Option<Stamp>,
}

/// What a node has once it is registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewNodeState {
    /// Added; what the node says itself stays.
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// Added, unless the node says that its taints are there already.
    pub taints: Vec<Taint>,
    /// The claim that owns it, with its UID.
    pub owner: (String, String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvictAnswer {
    /// It will go.
    Accepted,
    /// There is no such pod.
    Gone,
    /// There is one of that name, with another UID.
    Another,
    /// 429: a budget holds it, or its controller lags.
    Held { retry_after: Option<SignedDuration>, message: String },
    /// 500: several budgets match, which only a person can lift.
    SeveralBudgets { message: String },
    /// 403: a status that makes no sense, or a namespace that is being deleted.
    Forbidden { namespace_terminating: bool, message: String },
}

/// A memory to be made or added to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    /// As it stands, if it does.
    pub known: Option<Remembered>,
    pub image: ImageId,
    pub region: Option<String>,
    pub first_seen: Option<Timestamp>,
    pub appeared: Option<Appeared>,
    pub first_owner: Option<AccountId>,
    pub looks: Option<Looks>,
    pub withdrawn: Option<Withdrawn>,
    /// The withdrawal that stands there was taken back, as was noticed then.
    pub returned: Option<Timestamp>,
    pub not_listed_since: Option<Timestamp>,
}

/// What people read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Class(ClassStatus),
    Pool {
        name: String,
        uid: String,
        generation: i64,
        nodes: u64,
        resources: Amounts,
        conditions: Vec<Condition>,
    },
    DisruptionBudget {
        name: String,
        uid: String,
        generation: i64,
        room: budget::Room,
        conditions: Vec<Condition>,
    },
    Policy {
        name: String,
        uid: String,
        generation: i64,
        /// How many it selects.
        classes: u64,
        conditions: Vec<Condition>,
    },
    /// Of what cannot be read: that, and nothing else.
    Unreadable {
        subject: Subject,
        uid: String,
        generation: i64,
        conditions: Vec<Condition>,
    },
}

/// What a class resolves to. What is `None` is not known now: what stands there stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassStatus {
    pub key: ClassKey,
    pub uid: String,
    pub generation: i64,
    /// Id, name, and what its nodes must be.
    pub images: Option<Vec<(ImageId, String, Vec<Written>)>>,
    /// Id, zone, zone id.
    pub subnets: Option<Vec<(String, String, Option<String>)>>,
    /// Id and name.
    pub security_groups: Option<Vec<(String, Option<String>)>>,
    pub conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: String,
    /// `None` is `Unknown`.
    pub status: Option<bool>,
    pub reason: String,
    pub message: String,
    pub since: Timestamp,
}

/// Whether this replica leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    Leads {
        /// It has to renew before that.
        until: Timestamp,
        /// How often the lease has changed hands: greater than any leader's before.
        transitions: u64,
    },
    Follows {
        leader: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    #[error("the API server did not answer: {0}")]
    Unreachable(String),
    #[error("the API server asks to wait")]
    Throttled { retry_after: Option<SignedDuration> },
    #[error("{0} was changed in between")]
    Conflict(String),
    #[error("{0} exists already")]
    Exists(String),
    #[error("{0} is not there")]
    Absent(String),
    #[error("not allowed: {0}")]
    Forbidden(String),
    #[error("the API server refuses {object}: {message}")]
    Invalid { object: String, message: String },
    #[error("{object} cannot be read: {message}")]
    Unreadable { object: String, message: String },
}

impl ClusterError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable(_) | Self::Throttled { .. } => Remedy::TryAgain,
            Self::Conflict(_) | Self::Exists(_) | Self::Absent(_) => Remedy::DecideAgain,
            Self::Forbidden(_) | Self::Invalid { .. } | Self::Unreadable { .. } => {
                Remedy::AskPerson
            }
        }
    }
}
