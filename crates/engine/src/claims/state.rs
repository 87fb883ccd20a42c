//! What stands on a claim and its node, as far as it has come?

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodemolt_core::claim::Because;
use nodemolt_core::launch::STATIC_VERSION;
use nodemolt_core::node::{ImageRef, Instance, Running, Stamp};
use nodemolt_core::seen::{Claim, Node, Stage, View};
use nodemolt_core::wanted::TEMPLATE_VERSION;
use nodemolt_fit::capacity::Amounts;
use nodemolt_fit::label;

use super::Known;
use super::act::{Launch, OfType};
use super::choose::of_type;
use crate::port::{ClaimState, Condition, Launched, Machine, NewNodeState, Object};

/// On a machine: the claim that it was made for, by name, as Karpenter writes it.
pub const CLAIM_TAG: &str = "karpenter.sh/nodeclaim";

/// And by UID, which tells it from a later one of the same name. Without it a machine is not ours to end.
pub const CLAIM_UID_TAG: &str = "nodemolt.dev/nodeclaim-uid";

pub const REGISTERED_LABEL: &str = "karpenter.sh/registered";
pub const INITIALIZED_LABEL: &str = "karpenter.sh/initialized";

/// What a claim carries for its controller, and its node has no use for.
const NOT_FOR_NODES: [&str; 5] = [
    "nodemolt.dev/",
    "karpenter.k8s.aws/",
    "compatibility.karpenter.",
    "kubectl.kubernetes.io/",
    "karpenter.sh/nodepool-hash",
];

fn condition(kind: &str, message: String, since: Timestamp) -> Condition {
    Condition { kind: kind.to_owned(), status: Some(true), reason: kind.to_owned(), message, since }
}

fn stage(stage: Stage, now: Timestamp) -> (Stage, Condition) {
    let kind = match stage {
        Stage::Launched => "Launched",
        Stage::Registered => "Registered",
        Stage::Initialized => "Initialized",
    };
    (stage, condition(kind, String::new(), now))
}

/// The machine that a call was answered with.
pub(super) fn launched(launch: &Launch, answer: &Launched, now: Timestamp) -> ClaimState {
    let of_type = launch.types.get(&answer.instance_type).cloned().unwrap_or_default();
    let found = Found {
        instance_type: &answer.instance_type,
        zone: &answer.zone,
        capacity_type: &answer.capacity_type,
    };
    ClaimState {
        machine: Some(answer.machine.clone()),
        image: Some(answer.image.clone()),
        stages: [stage(Stage::Launched, now)].into(),
        ..found.state(of_type)
    }
}

/// The machine that was found by its tags.
pub(super) fn of_machine(
    view: &View,
    known: &Known<'_>,
    claim: &Claim,
    machine: &Machine,
    now: Timestamp,
) -> ClaimState {
    let class = view.classes.get(&claim.class);
    let kind = known.offered.and_then(|it| it.types.find(&machine.instance_type).ok());
    let of_type = class.zip(kind).map(|(class, kind)| of_type(kind, class)).unwrap_or_default();
    let found = Found {
        instance_type: &machine.instance_type,
        zone: &machine.zone,
        capacity_type: &machine.capacity_type,
    };
    let mut state = found.state(of_type);
    // Labels that people wrote stay as they are.
    state.labels.retain(|key, _| !claim.labels.contains_key(key));
    state.machine = Some(machine.id.clone());
    state.image = Some(machine.image.clone());
    if !claim.stages.contains_key(&Stage::Launched) {
        state.stages = [stage(Stage::Launched, now)].into();
    }
    state
}

struct Found<'a> {
    instance_type: &'a str,
    zone: &'a str,
    capacity_type: &'a str,
}

impl Found<'_> {
    fn state(&self, of_type: OfType) -> ClaimState {
        let OfType { mut labels, capacity, allocatable } = of_type;
        for (key, value) in [
            (label::INSTANCE_TYPE, self.instance_type),
            (label::ZONE, self.zone),
            (label::CAPACITY_TYPE, self.capacity_type),
        ] {
            labels.insert(key.to_owned(), value.to_owned());
        }
        let zone = Some(self.zone.to_owned());
        ClaimState { zone, capacity, allocatable, labels, ..ClaimState::default() }
    }
}

pub(super) fn node_object(node: &Node) -> Object {
    Object { name: node.name.clone(), uid: node.uid.clone(), revision: node.revision.clone() }
}

pub(super) fn registered_node(claim: &Claim) -> NewNodeState {
    let mut labels = claim.labels.clone();
    labels.insert(REGISTERED_LABEL.to_owned(), "true".to_owned());
    let own = |key: &str| NOT_FOR_NODES.iter().any(|it| key.starts_with(it)) || ours(key);
    let annotations = claim.annotations.iter().filter(|(key, _)| !own(key));
    NewNodeState {
        labels,
        annotations: annotations.map(|(key, value)| (key.clone(), value.clone())).collect(),
        taints: claim.taints.iter().chain(&claim.startup_taints).cloned().collect(),
        owner: (claim.name.clone(), claim.uid.clone()),
    }
}

/// `drift.nodemolt.dev/…` and the like.
fn ours(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| domain.ends_with(".nodemolt.dev"))
}

/// Nothing but the label: a taint that somebody took away does not come back.
pub(super) fn initialised_node(claim: &Claim) -> NewNodeState {
    NewNodeState {
        labels: [(INITIALIZED_LABEL.to_owned(), "true".to_owned())].into(),
        annotations: BTreeMap::new(),
        taints: Vec::new(),
        owner: (claim.name.clone(), claim.uid.clone()),
    }
}

pub(super) fn registered(claim: &Claim, node: &Node, now: Timestamp) -> ClaimState {
    let node = Some(node.name.clone()).filter(|it| Some(it) != claim.node.as_ref());
    ClaimState { node, stages: [stage(Stage::Registered, now)].into(), ..ClaimState::default() }
}

pub(super) fn initialised(claim: &Claim, node: &Node, now: Timestamp) -> ClaimState {
    // What a real node offers is better known than what its type promises.
    let measured: Amounts =
        node.fit.allocatable.iter().map(|(name, it)| (name.clone(), *it)).collect();
    ClaimState {
        allocatable: if measured == claim.allocatable { Amounts::new() } else { measured },
        stages: [stage(Stage::Initialized, now)].into(),
        conditions: vec![condition("Ready", String::new(), now)],
        ..ClaimState::default()
    }
}

/// Why there is no machine, for people.
pub(super) fn not_launched(because: &Because, now: Timestamp) -> Option<ClaimState> {
    let (status, reason) = match because {
        Because::Withheld { .. } => (None, "NothingToLaunch"),
        Because::Unproved { .. } => (None, "LaunchFailed"),
        Because::GaveUp { .. } => (Some(false), "LaunchFailed"),
        // A question that is on its way is no news.
        Because::NotKnown { .. }
        | Because::Next
        | Because::AtRest
        | Because::NeverJoined
        | Because::NeverReady { .. }
        | Because::NodeDeleted
        | Because::NodeMissing
        | Because::MachineGone
        | Because::WaitsFor(_) => return None,
    };
    let message: String = because.to_string().chars().take(300).collect();
    let kind = "Launched".to_owned();
    let condition = Condition { kind, status, reason: reason.to_owned(), message, since: now };
    Some(ClaimState { conditions: vec![condition], ..ClaimState::default() })
}

/// Whether a stamp is of another version of ours.
pub(super) fn stale_stamps(claim: &Claim) -> bool {
    let stale = |stamp: &Option<Stamp>, version: &str| {
        stamp.as_ref().is_some_and(|it| it.version() != version.trim_end_matches(':'))
    };
    stale(&claim.class_stamp, STATIC_VERSION) || stale(&claim.template_stamp, TEMPLATE_VERSION)
}

pub(super) fn running(claim: &Claim, machine: Option<&Machine>) -> Running {
    Running {
        pool: claim.pool.clone(),
        instance_type: claim.labels.get(label::INSTANCE_TYPE).cloned(),
        image: claim.image.clone().map(|id| ImageRef { id, name: None, dated: None }),
        labels: claim.labels.clone(),
        class_stamp: claim.class_stamp.clone(),
        template_stamp: claim.template_stamp.clone(),
        instance: machine.map(|it| Instance {
            security_groups: it.security_groups.clone(),
            subnet: it.subnet.clone(),
            reservation: it.reservation.clone(),
            placement_group: it.placement_group.clone(),
        }),
        foreign: claim.foreign.clone(),
        ..Running::of(&claim.name, &claim.uid, claim.created_at)
    }
}
