//! Did a leader act after a later one?
//!
//! Whoever raised the ledger's epoch leads. When another has raised it further, the earlier one has lost: what it had
//! begun may still arrive, for as long as a call takes or is held up, and nothing after that. Who never raised it acts
//! never.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::read;
use super::said::deed;
use super::world::{World, grants};
use super::{CALL_TAKES, Found, Law};
use crate::trace::{Actor, Fact, ReplicaState, Step};

#[derive(Debug, Default)]
pub(super) struct Epoch {
    /// By replica that is alive: the epoch that it has raised the ledger to.
    of: BTreeMap<u8, i64>,
    /// The epoch of the process before, and when that ended.
    ended: BTreeMap<u8, (i64, Timestamp)>,
    /// Who raised it last, to what, and when.
    stands: Option<(u8, i64, Timestamp)>,
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
        if let Fact::Removed { resource, .. } = &step.fact
            && resource.kind == "DisruptionLedger"
            && world.replacements.is_empty()
        {
            // Without a record nobody can know who leads: it begins anew.
            *self = Self::default();
        }
        let Actor::Operator(replica) = step.by else { return };
        if let Fact::Stored { resource, object, .. } = &step.fact
            && resource.kind == "DisruptionLedger"
        {
            // It is made first, and says who leads with its first status.
            if read::number(object, &["status", "epoch"]).is_none() {
                return;
            }
            self.raised(world, replica, object, step, found);
            ledger(world, object, step, found);
        }
        let Some(act) = deed(&step.fact) else { return };
        // What a process had sent before it ended, or before another led, still arrives. That it does no harm is
        // for the other laws to say.
        let sent_at = world.sent_at(step);
        let ended =
            self.ended.get(&replica).filter(|it| sent_at.duration_since(it.1) <= CALL_TAKES);
        let own = self.of.get(&replica).or(ended.map(|it| &it.0));
        match (own, self.stands) {
            (Some(own), Some((by, epoch, since)))
                if *own < epoch && sent_at.duration_since(since) > CALL_TAKES =>
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
        if epoch <= world.ledger.epoch {
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

fn ledger(world: &World, ledger: &Value, step: &Step, found: &mut Found) {
    let epoch = read::number(ledger, &["status", "epoch"]).unwrap_or(0);
    if epoch < world.ledger.epoch {
        let what = format!("the ledger's epoch went from {} back to {epoch}", world.ledger.epoch);
        found.broken(Law::Epoch, step.at, what);
    }
    // A ledger that somebody deleted is written anew from the records, with the epochs of their grants.
    if world.ledger.lost() {
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
