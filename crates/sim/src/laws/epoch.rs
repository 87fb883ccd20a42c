//! Did a leader act after a later one?
//!
//! Whoever raised the ledger's epoch leads. When another has raised it further, the earlier one has lost: what it had
//! begun may still arrive, for as long as a call takes or is held up, and nothing after that. Who never raised it acts
//! never.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::read;
use super::world::{NOISE, World, grants};
use super::{Found, Law};
use crate::trace::{Actor, Fact, ReplicaState, Step};

/// The epoch is read, then the call is made: ten seconds are waited for the answer to the one, and the other
/// travels for two at most. Assumption 21.
const CALL_TAKES: SignedDuration = SignedDuration::from_secs(15);

#[derive(Debug, Default)]
pub(super) struct Epoch {
    /// By replica that is alive: the epoch that it has raised the ledger to.
    of: BTreeMap<u8, i64>,
    /// The epoch of the process before, and when that ended.
    ended: BTreeMap<u8, (i64, Timestamp)>,
    /// Who raised it last, to what, and when.
    stands: Option<(u8, i64, Timestamp)>,
    /// Whose call arrives at this moment, though it was decided upon long before. No law can forbid that to a
    /// process that stood still after it had looked; that it does no harm is for the other laws to say.
    held_up: Option<(u8, Timestamp)>,
}

impl Epoch {
    /// Right before the step.
    pub(super) fn see(&mut self, world: &World, step: &Step, found: &mut Found) {
        if let Fact::Replica { number, state: ReplicaState::Started | ReplicaState::Crashed } =
            &step.fact
            && let Some(epoch) = self.of.remove(number)
        {
            self.ended.insert(*number, (epoch, step.at));
        }
        let Actor::Operator(replica) = step.by else { return };
        if let Fact::Stored { resource, object, .. } = &step.fact
            && resource.kind == "DisruptionLedger"
        {
            self.raised(world, replica, object, step, found);
            ledger(world, object, step, found);
        }
        if let Fact::HeldUp { .. } = &step.fact {
            self.held_up = Some((replica, step.at));
        }
        if self.held_up == Some((replica, step.at)) {
            return;
        }
        let Some(act) = act(&step.fact) else { return };
        // What a process had sent before it ended still arrives.
        let ended =
            self.ended.get(&replica).filter(|it| step.at.duration_since(it.1) <= CALL_TAKES);
        let own = self.of.get(&replica).or(ended.map(|it| &it.0));
        match (own, self.stands) {
            (Some(own), Some((by, epoch, since)))
                if *own < epoch && step.at.duration_since(since) > CALL_TAKES =>
            {
                let what = format!(
                    "replica {replica} of epoch {own} {act}, and replica {by} leads in epoch {epoch} since {since}"
                );
                found.broken(Law::Epoch, step.at, what);
            }
            (None, Some(_)) => {
                let what = format!("replica {replica} {act}, and has no epoch");
                found.broken(Law::Epoch, step.at, what);
            }
            (Some(_), _) | (None, None) => {}
        }
    }

    fn raised(
        &mut self,
        world: &World,
        replica: u8,
        ledger: &Value,
        step: &Step,
        found: &mut Found,
    ) {
        let epoch = read::number(ledger, &["status", "epoch"]).unwrap_or(0);
        // A ledger that was deleted is written anew by whoever leads, in its own epoch.
        let anew = world.ledger.object.is_none() && epoch >= world.ledger.epoch;
        if epoch <= world.ledger.epoch && !anew {
            return;
        }
        // Somebody is alive who led until now, and may not have heard.
        if self.of.iter().any(|(other, own)| *other != replica && *own < epoch) {
            found.premise(Law::Epoch);
        }
        self.of.insert(replica, epoch);
        self.stands = Some((replica, epoch, step.at));
    }
}

/// What a replica did to the world, if it did: nobody decides by leases and events.
fn act(fact: &Fact) -> Option<String> {
    match fact {
        Fact::Stored { resource, object, .. } if !NOISE.contains(&resource.kind) => {
            Some(format!("wrote {} {}", resource.kind, read::name(object)))
        }
        Fact::Removed { resource, last } if !NOISE.contains(&resource.kind) => {
            Some(format!("removed {} {}", resource.kind, read::name(last)))
        }
        Fact::Evicted { namespace, pod, code: 201, .. } => {
            Some(format!("evicted {namespace}/{pod}"))
        }
        Fact::PodDeleted { namespace, pod, .. } => Some(format!("deleted pod {namespace}/{pod}")),
        Fact::LaunchAsked { token, .. } => Some(format!("launched with {token}")),
        Fact::TerminateAsked { machine } => Some(format!("ended {machine}")),
        Fact::Stored { .. }
        | Fact::Removed { .. }
        | Fact::Evicted { .. }
        | Fact::Answered { .. }
        | Fact::Machine(_)
        | Fact::Published { .. }
        | Fact::Image(_)
        | Fact::Turned(_)
        | Fact::Replica { .. }
        | Fact::Fault { .. }
        | Fact::FaultsEnd
        | Fact::HeldUp { .. }
        | Fact::Refused { .. }
        | Fact::Act { .. } => None,
    }
}

fn ledger(world: &World, ledger: &Value, step: &Step, found: &mut Found) {
    let epoch = read::number(ledger, &["status", "epoch"]).unwrap_or(0);
    if epoch < world.ledger.epoch {
        let what = format!("the ledger's epoch went from {} back to {epoch}", world.ledger.epoch);
        found.broken(Law::Epoch, step.at, what);
    }
    // A ledger that somebody deleted is written anew from the records, with the epochs of their grants.
    if world.ledger.object.is_none() {
        return;
    }
    for (holder, grant) in grants(ledger) {
        if !world.ledger.grants.contains_key(&holder) && grant.epoch != epoch {
            let what = format!(
                "node {} was granted in epoch {}, the ledger's is {epoch}",
                grant.node, grant.epoch
            );
            found.broken(Law::Epoch, step.at, what);
        }
    }
}
