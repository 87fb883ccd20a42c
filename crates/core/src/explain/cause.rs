//! What holds it, and where would a person go?
//!
//! Each cause has the kind, the namespace and the name of the object that holds: the one that was written,
//! broken or used up, not the one that suffers from it.

use jiff::Timestamp;

use super::World;
use super::lifted::figures;
use super::story::{Cause, Named, User, both};
use crate::budget::{BudgetId, Unavailable, UsedBy};
use crate::drain::{Held, Hold, KEEP_A_NUMBER, PodId, Refused, Stays};
use crate::plan::{Unable, Unasked, UsedUp, WaitFor};
use crate::replace::{Because, Wait};
use crate::wanted::NoImage;

/// All that one reason names; `class` is that of the node that waits. Never none.
pub fn causes(
    world: &World<'_>,
    reason: &WaitFor,
    class: Option<&str>,
    now: Timestamp,
) -> Vec<Cause> {
    let mut text = reason.words(&|at| both(at, now));
    if let WaitFor::Pdb { pod, refused } = reason
        && let Some(figures) = figures(world, refused, pod)
    {
        text.push_str(": ");
        text.push_str(&figures);
    }
    let named = match reason {
        WaitFor::Pdb { pod, refused } => refusing(refused, pod),
        WaitFor::Answer(it) => it.calls.iter().map(|it| Named::cluster("AWSCall", it)).collect(),
        WaitFor::Reservation(it) => {
            let all = it.reservations.iter();
            all.map(|it| Named::cluster("CapacityReservation", it)).collect()
        }
        // Either may be lifted: the limit, or what makes it matter.
        WaitFor::Limit { counted_by: Some(budget), .. } => {
            vec![named(reason, class), Named::cluster("NodeDisruptionBudget", budget)]
        }
        WaitFor::Record { .. }
        | WaitFor::News { .. }
        | WaitFor::Unlock { .. }
        | WaitFor::Resume { .. }
        | WaitFor::Clock(_)
        | WaitFor::OtherHand { .. }
        | WaitFor::Image(_)
        | WaitFor::ProtectedNode { .. }
        | WaitFor::ProtectedPod { .. }
        | WaitFor::BarePod { .. }
        | WaitFor::HomelessPod { .. }
        | WaitFor::Recurs(_)
        | WaitFor::NextTry { .. }
        | WaitFor::Capacity { .. }
        | WaitFor::Lifetime { .. }
        | WaitFor::Window { .. }
        | WaitFor::Reach { .. }
        | WaitFor::Succession { .. }
        | WaitFor::SharedBudget { .. }
        | WaitFor::SharedWorkload { .. }
        | WaitFor::Budget(_)
        | WaitFor::Limit { counted_by: None, .. }
        | WaitFor::Place { .. }
        | WaitFor::Addresses(_)
        | WaitFor::Class(_)
        | WaitFor::Consideration => vec![named(reason, class)],
    };
    let cause = |named| Cause {
        reason: reason.reason(),
        named,
        text: text.clone(),
        ends_at: reason.ends_at(),
        used_by: users(reason),
    };
    named.into_iter().map(cause).collect()
}

fn users(reason: &WaitFor) -> Vec<User> {
    let WaitFor::Budget(shortage) = reason else { return Vec::new() };
    let user = |(node, by): &(String, UsedBy)| {
        let (reason, since) = match by {
            UsedBy::Grant { since } => ("Replaced", Some(*since)),
            UsedBy::Unavailable(why) => (unavailable(*why), None),
        };
        User { node: node.clone(), reason, since, waits_for: Vec::new() }
    };
    shortage.used_by.iter().map(user).collect()
}

fn unavailable(why: Unavailable) -> &'static str {
    match why {
        Unavailable::NotReady => "NotReady",
        Unavailable::BrokenByCandidate => "BrokenByCandidate",
        Unavailable::Cordoned => "Cordoned",
        Unavailable::Deleting => "Deleting",
    }
}

/// Where a person would go to lift it.
fn named(reason: &WaitFor, class: Option<&str>) -> Named {
    match reason {
        WaitFor::Unlock { .. } | WaitFor::Resume { .. } => {
            Named::cluster("DisruptionLedger", "cluster")
        }
        WaitFor::Record { name, .. } => Named::cluster("Replacement", name),
        WaitFor::OtherHand { by } => Named::cluster("Controller", by),
        WaitFor::Image(why) => no_image(why, class),
        WaitFor::ProtectedNode { claim: Some(claim), .. } => Named::cluster("NodeClaim", claim),
        WaitFor::ProtectedNode { node, claim: None, .. }
        | WaitFor::Succession { node }
        | WaitFor::SharedWorkload { node, pod: None, missing: false, .. } => {
            Named::cluster("Node", node)
        }
        WaitFor::SharedWorkload { workload, pod: None, missing: true, .. } => of_workload(workload),
        WaitFor::ProtectedPod { pod, .. }
        | WaitFor::BarePod { pod }
        | WaitFor::HomelessPod { pod, .. }
        | WaitFor::SharedWorkload { pod: Some(pod), .. }
        | WaitFor::Place { pod, .. } => Named::of("Pod", pod),
        WaitFor::Pdb { pod, .. } => Named::cluster("Namespace", &pod.namespace),
        WaitFor::SharedBudget { pdb, .. } => {
            let (namespace, name) = pdb.split_once('/').unwrap_or(("", pdb));
            Named::in_namespace("PodDisruptionBudget", namespace, name)
        }
        WaitFor::Lifetime { policy, .. } | WaitFor::Window { policy, .. } => {
            Named::cluster("ImagePolicy", policy)
        }
        WaitFor::Budget(shortage) => budget_name(&shortage.id),
        WaitFor::Capacity { pool, .. } | WaitFor::Limit { pool, .. } => {
            Named::cluster("NodePool", pool)
        }
        WaitFor::Addresses(dry) => of_class(&dry.class),
        WaitFor::Class(Unable { class, .. })
        | WaitFor::Answer(Unasked { class, .. })
        | WaitFor::Reservation(UsedUp { class, .. }) => of_class(class),
        WaitFor::Recurs(recurs) => Named::cluster("NodeClaim", &recurs.claim),
        WaitFor::NextTry { because, .. } => of_because(because),
        WaitFor::Reach { .. } => class.map_or_else(Named::nothing, of_class),
        WaitFor::News { .. } | WaitFor::Clock(_) | WaitFor::Consideration => Named::nothing(),
    }
}

/// By its kind, namespace and name, as it is written.
fn of_workload(workload: &str) -> Named {
    let (kind, name) = workload.split_once(' ').unwrap_or(("", workload));
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let kind = KEEP_A_NUMBER.iter().find(|it| **it == kind).copied().unwrap_or("Workload");
    Named::in_namespace(kind, namespace, name)
}

pub(super) fn of_class(class: &str) -> Named {
    Named::cluster("EC2NodeClass", class)
}

pub(super) fn no_image(why: &NoImage, class: Option<&str>) -> Named {
    match &why.object {
        Some((kind, name)) if !name.is_empty() => Named::cluster(kind, name),
        Some(_) | None => class.map_or_else(Named::nothing, of_class),
    }
}

/// The budgets that refuse, or the namespace that goes.
fn refusing(refused: &Refused, pod: &PodId) -> Vec<Named> {
    let budget = |name: &str| Named::in_namespace("PodDisruptionBudget", &pod.namespace, name);
    match refused {
        Refused::NamespaceTerminating => vec![Named::cluster("Namespace", &pod.namespace)],
        Refused::SeveralBudgets { pdbs } => pdbs.iter().map(|it| budget(it)).collect(),
        Refused::Stale { pdb }
        | Refused::NoneAllowed { pdb }
        | Refused::NotAll { pdb, .. }
        | Refused::Negative { pdb }
        | Refused::TooManyDisrupted { pdb } => vec![budget(pdb)],
    }
}

fn budget_name(id: &BudgetId) -> Named {
    match id {
        BudgetId::Serial => Named::cluster("DisruptionLedger", "cluster"),
        BudgetId::Disruption { name } => Named::cluster("NodeDisruptionBudget", name),
        BudgetId::Class { policy, .. } => Named::cluster("ImagePolicy", policy),
        BudgetId::Pool { name } => Named::cluster("NodePool", name),
    }
}

/// What an ended try failed at.
fn of_because(because: &Because) -> Named {
    match because {
        Because::LaunchGaveUp { claim, .. }
        | Because::LaunchTooSlow { claim }
        | Because::NeverRegistered { claim }
        | Because::NeverReady { claim }
        | Because::Flapping { claim }
        | Because::SuccessorGone { claim }
        | Because::SuccessorLost { claim } => Named::cluster("NodeClaim", claim),
        Because::SuccessorDied { node, .. } | Because::SuccessorCordoned { node, .. } => {
            Named::cluster("Node", node)
        }
        Because::NoPlaceAnyMore { pod, .. }
        | Because::DrainLimit { pod }
        | Because::HeldBack { pod: Some(pod), .. } => of_pod(pod),
        Because::WaitsFor(wait) => of_wait(wait).map_or_else(Named::nothing, |(_, it)| it),
        Because::Begun
        | Because::SuccessorsLaunched
        | Because::SuccessorsReady
        | Because::PlacementHolds
        | Because::DecideAgain
        | Because::HeldBack { pod: None, .. }
        | Because::Protected { .. }
        | Because::Drained
        | Because::OldGone
        | Because::OldDeleted
        | Because::PodsCameBack { .. }
        | Because::NoLongerWanted
        | Because::NotGranted => Named::nothing(),
    }
}

/// What an open replacement waits for, unless it is for itself.
pub(super) fn of_step(because: &Because) -> Option<Cause> {
    let Because::WaitsFor(wait) = because else { return None };
    let (reason, named) = of_wait(wait)?;
    let ends_at = if let Wait::Person(it) = wait { it.ends_at() } else { None };
    Some(Cause { reason, named, text: wait.to_string(), ends_at, used_by: Vec::new() })
}

/// By its namespace and name, as records have it.
fn of_pod(pod: &str) -> Named {
    let (namespace, name) = pod.split_once('/').unwrap_or(("", pod));
    Named::in_namespace("Pod", namespace, name)
}

fn of_wait(wait: &Wait) -> Option<(&'static str, Named)> {
    match wait {
        Wait::Launch { claim } => Some(("Launch", Named::cluster("NodeClaim", claim))),
        Wait::Registration { claim } => Some(("Registration", Named::cluster("NodeClaim", claim))),
        Wait::Readiness { claim } => Some(("Readiness", Named::cluster("NodeClaim", claim))),
        Wait::Steadiness { claim } => Some(("Steadiness", Named::cluster("NodeClaim", claim))),
        Wait::Pause | Wait::Unlock => {
            Some(("Halted", Named::cluster("DisruptionLedger", "cluster")))
        }
        Wait::Place { pod, .. } => Some(("NoPlace", of_pod(pod))),
        Wait::SuccessorUncordoned { node, .. } => {
            Some(("SuccessorCordoned", Named::cluster("Node", node)))
        }
        Wait::Person(reason) => {
            let budget = if let WaitFor::Pdb { pod, refused } = reason.as_ref() {
                refusing(refused, pod).into_iter().next()
            } else {
                None
            };
            Some((reason.reason(), budget.unwrap_or_else(|| named(reason, None))))
        }
        Wait::Cordon { node } => Some(("Cordon", Named::cluster("Node", node))),
        Wait::Uncordon { node } => Some(("Uncordon", Named::cluster("Node", node))),
        Wait::Removal { claim } => Some(("Removal", Named::cluster("NodeClaim", claim))),
        Wait::Placement
        | Wait::PodsToLeave { .. }
        | Wait::Termination
        | Wait::Answer { .. }
        | Wait::Nothing => None,
    }
}

/// For each thing that holds a pod all that it names: what holds it first, then what would hold it after that. Never
/// none, and none of them is empty.
pub(super) fn held_causes(held: &Held, world: &World<'_>) -> Vec<Vec<Cause>> {
    let all = std::iter::once(&held.why).chain(&held.also);
    all.map(|it| hold_causes(held, it, world)).collect()
}

fn hold_causes(held: &Held, why: &Hold, world: &World<'_>) -> Vec<Cause> {
    let of_pod = || vec![Named::of("Pod", &held.pod)];
    let (reason, named, text) = match why {
        Hold::Refused(refused) => {
            let text = match figures(world, refused, &held.pod) {
                Some(figures) => format!("{refused} ({figures})"),
                None => refused.to_string(),
            };
            ("PodDisruptionBudget", refusing(refused, &held.pod), text)
        }
        Hold::Protected(protection) => ("ProtectedPod", of_pod(), format!("says {protection}")),
        Hold::Bare => ("BarePod", of_pod(), "has no controller and would be lost".to_owned()),
        Hold::UnderWay { pdb } => {
            let budget = Named::in_namespace("PodDisruptionBudget", &held.pod.namespace, pdb);
            ("Eviction", vec![budget], "its eviction was accepted".to_owned())
        }
        Hold::Terminating => ("Terminating", of_pod(), "is on its way".to_owned()),
        Hold::AfterOthers => ("AfterOthers", of_pod(), "leaves after all others".to_owned()),
        Hold::Stays(stays) => ("Stays", of_pod(), stays_text(*stays).to_owned()),
    };
    let cause = |named| Cause {
        reason,
        named,
        text: text.clone(),
        ends_at: held.again_at,
        used_by: Vec::new(),
    };
    named.into_iter().map(cause).collect()
}

fn stays_text(stays: Stays) -> &'static str {
    match stays {
        Stays::DaemonSet => "stays with the node: of a DaemonSet",
        Stays::Mirror => "stays with the node: a mirror pod",
        Stays::Finished => "stays with the node: finished",
        Stays::ToleratesCordon => {
            "ends with the machine: it tolerates the cordon, and would come right back"
        }
        Stays::Stuck => "should be gone, and goes with the machine",
    }
}
