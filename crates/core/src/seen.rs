//! What does the cluster look like?
//!
//! `watches → view`
//!
//! Everything that decides reads the cluster from here: each object was read once, when it came, into
//! values of this crate. Kinds are no common snapshot: each has its own freshness. An object that could
//! not be read stands in `unreadable` under its own name, and nothing is concluded from its absence.

mod kept;
mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_fit::capacity::{Amounts, NodeSettings};
use nodemolt_fit::pod::{Demand, Namespace};
use nodemolt_fit::taint::Taint;
use nodemolt_fit::{self as fit, Written};

pub use kept::{Changes, Kept, Looked};
pub use pods::{Mark, Pod, PodKey, Pods};

use crate::ask::Ask;
use crate::bootstrap::{OfClass, OfPool};
use crate::budget::{ClassRule, DisruptionBudget, PoolBudget, Unreadable};
use crate::catalog::{Appeared, Withdrawn};
use crate::drain::{Pdb, Protection};
use crate::image::{AccountId, Architecture, Image, ImageId};
use crate::launch::Settings;
use crate::lookup::Minor;
use crate::node::{Foreign, Stamp};
use crate::policy::{Quarantine, Rule};
use crate::wanted::PoolTemplate;

/// On a claim or a pool: a person asked that it be replaced, at this time. `nodemolt upgrade` writes it.
pub const UPGRADE_ANNOTATION: &str = "nodemolt.dev/upgrade-requested-at";

/// On a node: the name of the `Replacement` that cordoned it. Without it a cordon is not ours.
pub const CORDONED_BY_ANNOTATION: &str = "nodemolt.dev/cordoned-by";

/// The taint that our cordon is, with `NoSchedule`; Karpenter's own.
pub const DISRUPTED_TAINT: &str = "karpenter.sh/disrupted";

/// Set by the node itself at boot and removed by us when it is registered.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";

/// Karpenter's own, so that either can take over from the other.
pub const FINALIZER: &str = "karpenter.sh/termination";

/// The group of the class that is always ours.
pub const OWN_CLASS_GROUP: &str = "nodemolt.dev";

/// What watches have told so far.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Up to when each kind is known to be current. A kind that is missing was never listed.
    pub fresh: BTreeMap<Kind, Timestamp>,
    /// The API server's last word on what time it is.
    pub server_time: Option<Timestamp>,
    /// The API server's version.
    pub kubernetes: Option<Minor>,
    pub classes: BTreeMap<ClassKey, Class>,
    pub pools: BTreeMap<String, Pool>,
    pub claims: Kept<String, Claim>,
    pub nodes: Kept<String, Node>,
    pub pods: Pods,
    /// By namespace and name.
    pub pdbs: Kept<(String, String), Arc<Pdb>>,
    pub budgets: BTreeMap<String, DisruptionBudget>,
    pub policies: BTreeMap<String, PolicySeen>,
    pub quarantines: BTreeMap<String, Quarantine>,
    /// Of every `DaemonSet`: what each node gets that it tolerates and selects.
    pub daemons: BTreeMap<(String, String), Arc<Demand>>,
    pub namespaces: BTreeMap<String, Arc<Namespace>>,
    /// The catalog's memory.
    pub images: BTreeMap<ImageId, Remembered>,
    pub unreadable: BTreeMap<ObjectName, Vec<Complaint>>,
    /// What people read a status on, whether it can be read or not.
    pub subjects: BTreeMap<Subject, Identity>,
}

/// An object of people's that we write a status on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Class(ClassKey),
    Pool(String),
    DisruptionBudget(String),
    Policy(String),
}

/// Which one of that name, and which version of what was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    pub uid: String,
    pub generation: i64,
    /// Of a pool, the class that it names: it tells whose pool it is where nothing else can be read.
    pub class: Option<ClassKey>,
}

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Class,
    Pool,
    Claim,
    Node,
    Pod,
    Namespace,
    DaemonSet,
    Pdb,
    DisruptionBudget,
    Policy,
    Quarantine,
    Image,
    Replacement,
    Ledger,
    /// Bound and unbound volumes, their classes, and what nodes can attach.
    Storage,
}

/// An object, by what people call it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName {
    pub kind: Kind,
    /// Empty for what belongs to the whole cluster.
    pub namespace: String,
    pub name: String,
}

/// Why an object cannot be read, by field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    pub field: String,
    pub message: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() || self.field == "." {
            return out.write_str(&self.message);
        }
        write!(out, "{}: {}", self.field, self.message)
    }
}

impl Subject {
    /// As it stands in [`View::unreadable`].
    pub fn object(&self) -> ObjectName {
        let (kind, name) = match self {
            Self::Class(key) => (Kind::Class, key.to_string()),
            Self::Pool(name) => (Kind::Pool, name.clone()),
            Self::DisruptionBudget(name) => (Kind::DisruptionBudget, name.clone()),
            Self::Policy(name) => (Kind::Policy, name.clone()),
        };
        ObjectName { kind, namespace: String::new(), name }
    }
}

/// One name in two groups is two classes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassKey {
    pub group: String,
    pub name: String,
}

impl ClassKey {
    pub fn own(name: &str) -> Self {
        Self { group: OWN_CLASS_GROUP.to_owned(), name: name.to_owned() }
    }
}

/// As it stands in `plan`, `budget` and what people read.
impl fmt::Display for ClassKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group == OWN_CLASS_GROUP {
            write!(out, "{}", self.name)
        } else {
            write!(out, "{}.{}", self.name, self.group)
        }
    }
}

/// An `EC2NodeClass`, whole.
#[derive(Debug, Clone)]
pub struct Class {
    pub key: ClassKey,
    pub uid: String,
    pub generation: i64,
    pub ask: Ask,
    pub launch: Settings,
    pub boot: OfClass,
    /// What its nodes offer of a machine.
    pub offers: NodeSettings,
    pub network: NetworkAsk,
    pub deleting: bool,
}

/// Which subnets, groups and reservations a class selects: any term, all fields of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkAsk {
    pub subnets: Vec<Selects>,
    pub security_groups: Vec<Selects>,
    pub reservations: Vec<Selects>,
}

/// One term. What is absent does not matter; a tag without a value matches any.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selects {
    pub id: Option<String>,
    pub name: Option<String>,
    pub owner: Option<String>,
    pub tags: BTreeMap<String, Option<String>>,
}

/// A `NodePool`, whole.
#[derive(Debug, Clone)]
pub struct Pool {
    pub name: String,
    pub uid: String,
    pub generation: i64,
    pub class: ClassKey,
    pub template: PoolTemplate,
    pub requirements: Vec<Written>,
    pub boot: OfPool,
    /// Without machines, daemons and what is used: those are known elsewhere.
    pub fit: fit::pool::Pool,
    pub budgets: Vec<Result<PoolBudget, Unreadable>>,
    /// Nodes are kept at this number, whatever pods need.
    pub replicas: Option<u32>,
    pub upgrade_asked_at: Option<Timestamp>,
    pub deleting: bool,
}

/// A `NodeClaim`: the only launch intent, and the life of one machine.
#[derive(Debug, Clone)]
pub struct Claim {
    pub name: String,
    pub uid: String,
    /// Which version of the object this is; a write names it.
    pub revision: Revision,
    pub pool: Option<String>,
    pub class: ClassKey,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub created_at: Timestamp,
    pub deleting_since: Option<Timestamp>,
    /// Ours is on it: it does not go before its machine has.
    pub held: bool,
    /// Of others: it does not go before they are taken off, and that is not for us to do.
    pub finalizers: Vec<String>,
    pub requirements: Vec<Written>,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
    /// What the pods that it was made for need.
    pub requests: Amounts,
    pub termination_grace_period: Option<SignedDuration>,
    /// `None`: never.
    pub expire_after: Option<SignedDuration>,
    pub attempt: Option<Attempt>,
    pub machine: Option<MachineId>,
    pub node: Option<String>,
    pub image: Option<ImageId>,
    pub capacity: Amounts,
    pub allocatable: Amounts,
    /// Its conditions that are true, and since when.
    pub stages: BTreeMap<Stage, Timestamp>,
    pub class_stamp: Option<Stamp>,
    pub template_stamp: Option<Stamp>,
    pub foreign: Vec<Foreign>,
    pub protection: Option<Protection>,
    pub upgrade_asked_at: Option<Timestamp>,
    /// The `Replacement` that it was made for, by name.
    pub successor_of: Option<String>,
}

/// How far a machine has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Launched,
    Registered,
    Initialized,
}

/// The version of an object, as the API server calls it. Only equality means anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub String);

/// A machine, as the cloud calls it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineId(pub String);

/// One call for a machine, recorded on its claim before it is made. The claim's UID and the number make
/// the client token, so the same attempt again is the same machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// From one on.
    pub number: u32,
    pub since: Timestamp,
    /// All that the call says, frozen: a token that comes with other parameters is an error.
    pub request: FrozenRequest,
    /// Why the attempt before this one ended, if there was one.
    pub last_ended: Option<String>,
    /// This attempt is proved to have made nothing, and why.
    pub ended: Option<String>,
}

/// What a request for a fleet says beside its token.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrozenRequest {
    /// `on-demand`, `spot` or `reserved`.
    pub capacity_type: String,
    /// In the order of preference.
    pub choices: Vec<Choice>,
    pub context: Option<String>,
    /// On the machine and its volumes. With the cluster, the pool, the claim and its UID.
    pub tags: BTreeMap<String, String>,
}

/// One way to get the machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    /// The launch template, whose name is the digest of its content.
    pub template: String,
    pub image: ImageId,
    pub instance_type: String,
    pub zone: String,
    pub subnet: String,
}

/// A `Node`.
#[derive(Debug, Clone)]
pub struct Node {
    pub name: String,
    pub uid: String,
    pub revision: Revision,
    /// With its labels, its taints and what it offers; without its pods.
    pub fit: fit::node::Node,
    pub created_at: Timestamp,
    pub deleting_since: Option<Timestamp>,
    /// Ours is on it.
    pub held: bool,
    /// Of others: it does not go before they are taken off, and that is not for us to do.
    pub finalizers: Vec<String>,
    pub machine: Option<MachineId>,
    /// What its condition `Ready` says.
    pub ready: Readiness,
    /// Of its conditions: type, and since when it is what it is.
    pub ready_since: Option<Timestamp>,
    pub kubelet: Option<Minor>,
    /// The `Replacement` that cordoned it, by name. A cordon without one belongs to somebody else. That the
    /// taint is still there is another thing: [`Node::cordoned_for`].
    pub cordoned_by: Option<String>,
    pub protection: Option<Protection>,
    pub upgrade_asked_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    Ready,
    NotReady,
    /// The kubelet has not said anything for a while.
    Unknown,
}

/// An `ImagePolicy`, with how a rollout goes where it says so.
#[derive(Debug, Clone)]
pub struct PolicySeen {
    pub rule: Rule,
    pub rollout: Option<ClassRule>,
}

/// What only we remember of an image: an `AWSImage`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    pub image: ImageId,
    pub revision: Revision,
    pub first_seen: Option<Timestamp>,
    pub appeared: Option<Appeared>,
    pub first_owner: Option<AccountId>,
    /// What it was like: by this it is still known when EC2 does not list it any more.
    pub looks: Option<Looks>,
    /// As long as nobody has taken it back.
    pub withdrawn: Option<Withdrawn>,
    /// When a withdrawal was last taken back.
    pub returned: Option<Timestamp>,
    /// Since when EC2 does not list it.
    pub not_listed_since: Option<Timestamp>,
}

/// By what an image is found and ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    pub name: String,
    /// EC2's word for a group of accounts.
    pub owner_alias: Option<String>,
    pub architecture: Architecture,
    pub created: Option<Timestamp>,
}

impl Looks {
    pub fn of(image: &Image) -> Self {
        Self {
            name: image.name.clone(),
            owner_alias: image.owner_alias.clone(),
            architecture: image.architecture.clone(),
            created: image.created.at(),
        }
    }
}

impl Node {
    /// Whether it is cordoned for a `Replacement`: by its name and by the taint. Whoever took the taint away
    /// has let pods in again.
    pub fn cordoned_for(&self, replacement: &str) -> bool {
        let taint = |it: &Taint| it.key == DISRUPTED_TAINT && it.effect.binding();
        self.cordoned_by.as_deref() == Some(replacement) && self.fit.taints.iter().any(taint)
    }
}

impl View {
    /// Why an object that belongs to the whole cluster cannot be read, if it cannot.
    pub fn why_unreadable(&self, kind: Kind, name: &str) -> Option<String> {
        let object = ObjectName { kind, namespace: String::new(), name: name.to_owned() };
        let complaints = self.unreadable.get(&object)?;
        let why = complaints.first().map(|it| format!(": {it}")).unwrap_or_default();
        Some(format!("{} `{name}` cannot be read{why}", kind.as_str()))
    }

    /// Whether everything that deciding needs was listed at least once.
    pub fn complete(&self) -> Result<(), BTreeSet<Kind>> {
        let missing: BTreeSet<Kind> =
            Kind::ALL.into_iter().filter(|it| !self.fresh.contains_key(it)).collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

impl Kind {
    pub const ALL: [Self; 15] = [
        Self::Class,
        Self::Pool,
        Self::Claim,
        Self::Node,
        Self::Pod,
        Self::Namespace,
        Self::DaemonSet,
        Self::Pdb,
        Self::DisruptionBudget,
        Self::Policy,
        Self::Quarantine,
        Self::Image,
        Self::Replacement,
        Self::Ledger,
        Self::Storage,
    ];

    /// As people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Class => "EC2NodeClass",
            Self::Pool => "NodePool",
            Self::Claim => "NodeClaim",
            Self::Node => "Node",
            Self::Pod => "Pod",
            Self::Namespace => "Namespace",
            Self::DaemonSet => "DaemonSet",
            Self::Pdb => "PodDisruptionBudget",
            Self::DisruptionBudget => "NodeDisruptionBudget",
            Self::Policy => "ImagePolicy",
            Self::Quarantine => "ImageQuarantine",
            Self::Image => "AWSImage",
            Self::Replacement => "Replacement",
            Self::Ledger => "DisruptionLedger",
            Self::Storage => "PersistentVolume",
        }
    }
}
