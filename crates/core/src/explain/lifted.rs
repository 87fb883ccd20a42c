//! What has to happen before it starts?
//!
//! `reason × what is around it → when that is so, in the words of whoever could do it`

use super::World;
use crate::budget::UsedBy;
use crate::drain::{AllPdbs, Pdb, PodId, Refused};
use crate::plan::{Dry, Node, Unable, UsedUp, WaitFor};

/// `when …`, or `after …`. `None` where no more is to be said than that it ends.
pub(super) fn lifted(world: &World<'_>, node: &Node, reason: &WaitFor) -> Option<String> {
    Some(match reason {
        WaitFor::Record { name, .. } => format!("when Replacement `{name}` can be read"),
        WaitFor::Unlock { .. } => "after `nodemolt unlock`".to_owned(),
        WaitFor::Resume { .. } => "after `nodemolt resume`".to_owned(),
        WaitFor::Clock(_) => "when the clocks agree".to_owned(),
        WaitFor::Image(_) => "when there is an image for its successor".to_owned(),
        WaitFor::ProtectedNode { node, claim, protection } => {
            let whose = match claim {
                Some(claim) => format!("NodeClaim {claim}"),
                None => format!("node {node}"),
            };
            format!("when `{}` is taken off {whose}", protection.annotation)
        }
        WaitFor::ProtectedPod { pod, protection } => {
            format!("when `{}` is taken off pod {pod}, or the pod is gone", protection.annotation)
        }
        WaitFor::BarePod { pod } => {
            let rule = node.member.class.as_ref().and_then(|it| world.limits.classes.get(it));
            let policy = rule.map_or_else(
                || "an ImagePolicy for its class".to_owned(),
                |it| format!("ImagePolicy `{}`", it.policy),
            );
            format!("when pod {pod} is deleted, or {policy} says `barePods: Evict`")
        }
        WaitFor::Pdb { pod, refused } => return refused_lifted(world, pod, refused),
        WaitFor::HomelessPod { pod, .. } => format!("when pod {pod} has a place"),
        WaitFor::Limit { pool, resource, .. } => {
            format!("when `limits` of NodePool `{pool}` has more {resource}, or less of it is used")
        }
        WaitFor::Place { pod, .. } => format!("when there is a place for pod {pod}"),
        WaitFor::Addresses(Dry { class, subnets, .. }) if subnets.is_empty() => {
            format!("when EC2NodeClass `{class}` selects a subnet in a zone that its pool asks for")
        }
        WaitFor::Addresses(Dry { class, .. }) => {
            format!(
                "when a subnet of EC2NodeClass `{class}` has a free address, or it selects another one"
            )
        }
        WaitFor::Class(Unable { class, .. }) => {
            format!("when EC2NodeClass `{class}` says something that can be launched")
        }
        WaitFor::Answer(_) => "when Amazon EC2 has answered".to_owned(),
        WaitFor::Reservation(UsedUp { reservations, .. }) => {
            format!("when something is left of {}", reservations.join(", "))
        }
        WaitFor::OtherHand { .. }
        | WaitFor::News { .. }
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
        | WaitFor::Consideration => return None,
    })
}

fn refused_lifted(world: &World<'_>, pod: &PodId, refused: &Refused) -> Option<String> {
    if let Refused::SeveralBudgets { .. } = refused {
        return Some(format!("when only one PodDisruptionBudget matches pod {pod}"));
    }
    let Refused::NoneAllowed { .. } = refused else { return None };
    let pdb = found(refused, pod, &world.fleet.pdbs)?;
    let name = format!("PodDisruptionBudget `{}/{}`", pdb.namespace, pdb.name);
    Some(if never_allows(world, pdb) {
        format!("when {name} wants fewer healthy, or has more pods than it wants")
    } else {
        // One more than it wants lets one go.
        let lacks = i64::from(pdb.desired_healthy) + 1 - i64::from(pdb.current_healthy);
        match lacks {
            ..=0 => return None,
            1 => format!("when one more pod of {name} is healthy"),
            lacks => format!("when {lacks} more pods of {name} are healthy"),
        }
    })
}

/// The one that refuses a pod, if it is one.
pub(super) fn found<'a>(refused: &Refused, pod: &PodId, pdbs: &'a AllPdbs) -> Option<&'a Pdb> {
    let name = refused.pdb()?;
    pdbs.iter().find(|it| it.name == name && it.namespace == pod.namespace)
}

/// How many are healthy and how many have to be: what it refuses by.
pub(super) fn figures(world: &World<'_>, refused: &Refused, pod: &PodId) -> Option<String> {
    let pdb = found(refused, pod, &world.fleet.pdbs)?;
    let (healthy, wanted) = (pdb.current_healthy, pdb.desired_healthy);
    let never = matches!(refused, Refused::NoneAllowed { .. }) && never_allows(world, pdb);
    let so = if never { ": it never allows one" } else { "" };
    Some(format!("{healthy} healthy, {wanted} wanted{so}"))
}

/// All its pods are there and healthy, and it wants all of them: `minAvailable: 100%`, `maxUnavailable: 0` and the
/// like. Where one is on its way, nobody can tell.
fn never_allows(world: &World<'_>, pdb: &Pdb) -> bool {
    let on_nodes = world.fleet.nodes.values().flat_map(|it| &it.pods);
    let mut count = 0;
    for pod in on_nodes.filter(|it| pdb.selects(it)) {
        if !pod.ready || pod.ends_at.is_some() {
            return false;
        }
        count += 1;
    }
    let pending = world.fleet.pending.iter().any(|it| it.pod.namespace == pdb.namespace);
    !pending && pdb.current_healthy == count && pdb.desired_healthy >= count && count > 0
}

/// What gives back a place that a node uses without being replaced.
pub(super) fn given_back(node: &str, by: &UsedBy) -> String {
    use crate::budget::Unavailable;
    match by {
        UsedBy::Grant { .. } => "is done".to_owned(),
        UsedBy::Unavailable(Unavailable::Cordoned) => {
            format!("takes pods again: `kubectl uncordon {node}`")
        }
        UsedBy::Unavailable(Unavailable::NotReady | Unavailable::BrokenByCandidate) => {
            "is ready again".to_owned()
        }
        UsedBy::Unavailable(Unavailable::Deleting) => "is gone".to_owned(),
    }
}
