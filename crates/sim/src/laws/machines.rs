//! Whose is each machine?
//!
//! One live machine per claim at any time, one machine ever per token, unless EC2 itself made two at once; we end
//! only what we launched and what no claim wants; and at rest there is none that belongs to nobody, and no
//! second one of EC2's making.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::read::{self, text};
use super::world::{Node, World};
use super::{Found, Law};
use crate::trace::{Actor, Machine, Step};

#[derive(Debug, Default)]
pub(super) struct Machines {
    /// Live machines by the UID of their claim.
    live: BTreeMap<String, BTreeSet<String>>,
    /// By token, the one machine, and when it was made.
    by_token: BTreeMap<String, (String, Timestamp)>,
    /// Made by EC2 together with the one that was asked for.
    unasked: BTreeSet<String>,
    launched: BTreeSet<String>,
}

pub(super) fn live(machine: &Machine) -> bool {
    matches!(machine.state, "pending" | "running")
}

fn ours(machine: &Machine) -> bool {
    machine.tags.iter().any(|(key, value)| {
        key == "karpenter.sh/nodeclaim"
            || (key.starts_with("kubernetes.io/cluster/") && value == "owned")
    })
}

impl Machines {
    pub(super) fn see_launch(
        &mut self,
        machine: Option<&str>,
        made: bool,
        step: &Step,
        found: &mut Found,
    ) {
        if let Some(machine) = machine.filter(|_| made)
            && matches!(step.by, Actor::Operator(_))
        {
            found.premise(Law::NoOrphansNoTwins);
            self.launched.insert(machine.to_owned());
        }
    }

    pub(super) fn see_machine(
        &mut self,
        world: &World,
        machine: &Machine,
        step: &Step,
        found: &mut Found,
    ) {
        if !machine.token.is_empty() {
            let (first, at) = self
                .by_token
                .entry(machine.token.clone())
                .or_insert_with(|| (machine.id.clone(), step.at));
            if *first != machine.id && *at == step.at {
                self.unasked.insert(machine.id.clone());
            } else if *first != machine.id && !self.unasked.contains(&machine.id) {
                let what = format!("token {} made {first} and {}", machine.token, machine.id);
                found.broken(Law::NoOrphansNoTwins, step.at, what);
            }
        }
        let Some(claim) = world.claim_uid_of(machine) else { return };
        let twins = self.live.entry(claim.to_owned()).or_default();
        if !live(machine) {
            twins.remove(&machine.id);
        } else if twins.insert(machine.id.clone())
            && twins.iter().filter(|it| !self.unasked.contains(*it)).count() > 1
        {
            let names: Vec<&str> = twins.iter().map(String::as_str).collect();
            let what = format!("claim {claim} has the live machines {}", names.join(", "));
            found.broken(Law::NoOrphansNoTwins, step.at, what);
        }
    }

    pub(super) fn see_terminate(
        &mut self,
        world: &World,
        machine: &str,
        step: &Step,
        found: &mut Found,
    ) {
        if !matches!(step.by, Actor::Operator(_)) {
            return;
        }
        found.premise(Law::OwnMachines);
        let seen = world.machines.get(machine);
        if !self.launched.contains(machine) && !seen.is_some_and(|it| ours(it)) {
            let what = format!("machine {machine} was ended and is not ours");
            found.broken(Law::OwnMachines, step.at, what);
            return;
        }
        let Some(seen) = seen.filter(|it| live(it)) else { return };
        let claim = world.claim_of_machine(seen).filter(|it| it.deleting_since.is_none());
        // Of two that EC2 made the claim wants the one that it names, and either before it names one.
        let own =
            |it: &Value| text(it, &["status", "providerID"]).map(read::machine_of) == Some(machine);
        if let Some(claim) = claim
            && (own(&claim.object)
                || self.live.get(read::uid(&claim.object)).is_some_and(|it| it.len() == 1))
        {
            let name = read::name(&claim.object);
            let what = format!("machine {machine} was ended, and claim {name} still wants it");
            found.broken(Law::OwnMachines, step.at, what);
        }
    }
}

impl Machines {
    pub(super) fn at_rest(&self, world: &World, now: Timestamp, found: &mut Found) {
        // A machine whose node is at work is left to a person, whoever made it.
        let works =
            |id: &&String| world.nodes.values().any(|it| it.ready && machine(it) == Some(id));
        for (claim, live) in &self.live {
            if live.len().saturating_sub(live.iter().filter(works).count().max(1)) == 0 {
                continue;
            }
            let names: Vec<&str> = live.iter().map(String::as_str).collect();
            let what = format!("claim {claim} still has the live machines {}", names.join(", "));
            found.broken(Law::NoOrphansNoTwins, now, what);
        }
        left_over(world, now, found);
    }
}

fn machine(node: &Node) -> Option<&str> {
    text(&node.object, &["spec", "providerID"]).map(read::machine_of)
}

/// Whether a pod runs there that does not belong to its node: it tolerates that no claim stands for that.
fn works(world: &World, id: &str) -> bool {
    let nodes = world.nodes.iter().filter(|(_, it)| machine(it) == Some(id));
    let mut pods = nodes.flat_map(|(name, _)| world.pods_on(name));
    pods.any(|it| !matches!(read::controller(&it.object), Some(("DaemonSet" | "Node", _, _))))
}

fn left_over(world: &World, now: Timestamp, found: &mut Found) {
    let owned: BTreeSet<&str> = world
        .claims
        .values()
        .filter_map(|it| text(&it.object, &["status", "providerID"]))
        .map(read::machine_of)
        .collect();
    for machine in world.machines.values().filter(|it| live(it) && ours(it)) {
        let belongs =
            owned.contains(machine.id.as_str()) || world.claim_of_machine(machine).is_some();
        // Docs say: one on which somebody's pod runs is kept and told of, as nobody has asked whether that may go.
        if !belongs && !works(world, &machine.id) {
            let what = format!("machine {} belongs to nobody", machine.id);
            found.broken(Law::NoOrphansNoTwins, now, what);
        }
    }
}
