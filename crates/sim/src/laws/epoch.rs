//! Did a leader write after a later one?

use serde_json::Value;

use super::read;
use super::world::{World, grants};
use super::{Found, Law};
use crate::trace::{Actor, Step};

pub(super) fn see(world: &World, ledger: &Value, step: &Step, found: &mut Found) {
    if !matches!(step.by, Actor::Operator(_)) {
        return;
    }
    let epoch = read::number(ledger, &["status", "epoch"]).unwrap_or(0);
    if epoch > 1 {
        found.premise(Law::Epoch);
    }
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
