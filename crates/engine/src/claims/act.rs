//! What is done about a claim, and what came of it?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::launch::Template;
use nodemolt_core::policy::{Quarantine, Rule};
use nodemolt_core::seen::{Attempt, Claim, Class, ClassKey, Kind, MachineId, ObjectName, View};
use nodemolt_fit::capacity::Amounts;

use crate::port::{
    ClaimState, CloudError, ClusterError, LaunchError, Launched, NewNodeState, Object, Remedy,
};

/// The client token: the same attempt again is the same machine.
pub fn token(uid: &str, attempt: u32) -> String {
    format!("{uid}-{attempt}")
}

/// One act. Each is safe to repeat, and each reads again what it stands on.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimAct {
    /// The claim's name; of a machine without one, its id. At most one act of a key is in flight.
    pub key: String,
    /// Name and UID. None for a machine without one.
    pub claim: Option<(String, String)>,
    pub deed: Deed,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// Record the attempt, if it is not recorded; make the templates; make the call; write what came.
    Launch(Box<Launch>),
    EndAttempt {
        claim: Object,
        attempt: Box<Attempt>,
    },
    Write {
        claim: Object,
        state: Box<ClaimState>,
    },
    /// For people only: why there is no machine.
    Tell {
        claim: Object,
        state: Box<ClaimState>,
        said: String,
    },
    /// The node, and then what stands on the claim.
    Register {
        claim: Object,
        node: Object,
        node_state: Box<NewNodeState>,
        state: Box<ClaimState>,
    },
    DeleteClaim {
        because: String,
        /// It is deleted because this node is missing, by name: whether it is so is asked right before.
        missing: Option<String>,
        /// It is deleted because nobody is on its node: whether that is so is asked right before.
        idle: bool,
    },
    DeleteNode {
        name: String,
        uid: String,
    },
    Terminate {
        machine: MachineId,
        /// From then on pods are not waited for.
        forced_at: Option<Timestamp>,
    },
    ReleaseNode {
        node: Object,
    },
    ReleaseClaim {
        claim: Object,
    },
    /// A machine that no claim stands for.
    RemoveOrphan {
        machine: MachineId,
        because: String,
    },
}

impl Deed {
    /// What it is, in a word for people; and what tells it from the next step of the same claim.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Launch(_) => "launch",
            Self::EndAttempt { .. } => "end attempt",
            Self::Write { .. } => "write",
            Self::Tell { .. } => "tell",
            Self::Register { .. } => "register",
            Self::DeleteClaim { .. } => "delete claim",
            Self::DeleteNode { .. } => "delete node",
            Self::Terminate { .. } => "terminate",
            Self::ReleaseNode { .. } => "release node",
            Self::ReleaseClaim { .. } => "release claim",
            Self::RemoveOrphan { .. } => "remove orphan",
        }
    }
}

impl ClaimAct {
    pub(super) fn of(claim: &Claim, deed: Deed) -> Self {
        let key = claim.name.clone();
        Self { claim: Some((key.clone(), claim.uid.clone())), key, deed }
    }

    /// Whether a lock of the whole cluster holds it back: what others cannot wait for goes on.
    pub fn voluntary(&self) -> bool {
        matches!(self.deed, Deed::RemoveOrphan { .. })
    }
}

/// One call for a machine, with all that it needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    pub claim: Object,
    pub class: ClassKey,
    pub attempt: Attempt,
    /// It stands on the claim already.
    pub recorded: bool,
    /// Those that the choices name. Of a recorded attempt only those that can still be made.
    pub templates: Vec<Template>,
    /// By instance type: what is written if it becomes one.
    pub types: BTreeMap<String, OfType>,
    /// On which the choice of images stands. Other rules right before the call: no call.
    pub rules: Arc<Rules>,
}

/// What a claim says once its type is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfType {
    pub labels: BTreeMap<String, String>,
    pub capacity: Amounts,
    pub allocatable: Amounts,
}

/// What decides which images may boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    quarantines: BTreeMap<String, Quarantine>,
    policies: BTreeMap<String, Rule>,
    classes: BTreeMap<ClassKey, ClassRules>,
    /// Those that could not be read, by kind and name.
    unreadable: BTreeSet<(Kind, String)>,
}

/// Which version of a class it is, and the labels that policies select it by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClassRules {
    uid: String,
    generation: i64,
    labels: BTreeMap<String, String>,
}

impl Rules {
    pub fn of(view: &View) -> Self {
        let policies = view.policies.iter().map(|(name, it)| (name.clone(), it.rule.clone()));
        let classes = view.classes.iter().map(|(key, it)| (key.clone(), ClassRules::of(it)));
        Self {
            quarantines: view.quarantines.clone(),
            policies: policies.collect(),
            classes: classes.collect(),
            unreadable: unreadable_rules(view),
        }
    }

    /// Whether what may boot for this class is decided by the same words as then.
    pub fn same_for(&self, class: &ClassKey, now: &View) -> bool {
        let policies = now.policies.iter().map(|(name, it)| (name, &it.rule));
        let here = now.classes.get(class).filter(|it| !it.deleting).map(ClassRules::of);
        self.quarantines == now.quarantines
            && self.policies.iter().eq(policies)
            && here.is_some()
            && here.as_ref() == self.classes.get(class)
            && self.unreadable == unreadable_rules(now)
    }
}

impl ClassRules {
    fn of(class: &Class) -> Self {
        Self {
            uid: class.uid.clone(),
            generation: class.generation,
            labels: class.ask.labels.clone(),
        }
    }
}

fn unreadable_rules(view: &View) -> BTreeSet<(Kind, String)> {
    let rules = |it: &&ObjectName| matches!(it.kind, Kind::Policy | Kind::Quarantine | Kind::Class);
    view.unreadable.keys().filter(rules).map(|it| (it.kind, it.name.clone())).collect()
}

/// What came of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimDone {
    /// It is done, or was done before.
    Done,
    Launched(Launched),
    /// The fleet is empty, by the token twice and by the tags; that stands on the claim.
    NoCapacity {
        capacity_type: String,
        /// Instance type and zone.
        choices: Vec<(String, String)>,
    },
    /// EC2 refused a first call, twice, and no machine has the claim's UID; that stands on the claim.
    Nothing(String),
    /// EC2 refused this attempt; that it made nothing is still to be proved.
    Refused {
        attempt: u32,
        why: String,
    },
    /// It was not begun: right before, something spoke against it.
    Withheld(String),
    Launch(LaunchError),
    Cloud(CloudError),
    Cluster(ClusterError),
    /// No answer came in time. It may have happened all the same.
    Late,
}

impl ClaimDone {
    /// What to do about it, where it was not done.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Done | Self::Launched(_) => None,
            Self::NoCapacity { .. } => Some(Remedy::TryElsewhere),
            Self::Nothing(_) | Self::Refused { .. } => Some(Remedy::AskPerson),
            Self::Withheld(_) => Some(Remedy::DecideAgain),
            Self::Launch(error) => Some(error.remedy()),
            Self::Cloud(error) => Some(error.remedy()),
            Self::Cluster(error) => Some(error.remedy()),
            Self::Late => Some(Remedy::TryAgain),
        }
    }

    /// How long somebody asked us to wait.
    pub fn retry_after(&self) -> Option<SignedDuration> {
        match self {
            Self::Launch(LaunchError::Throttled { retry_after })
            | Self::Cloud(CloudError::Throttled { retry_after })
            | Self::Cluster(ClusterError::Throttled { retry_after }) => *retry_after,
            Self::Launch(_)
            | Self::Cloud(_)
            | Self::Cluster(_)
            | Self::Done
            | Self::Launched(_)
            | Self::NoCapacity { .. }
            | Self::Nothing(_)
            | Self::Refused { .. }
            | Self::Withheld(_)
            | Self::Late => None,
        }
    }
}
