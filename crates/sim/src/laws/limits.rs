//! Does a pool stay within its limits?
//!
//! When we make a claim, all claims of its pool together are within what people allow, the old node and its
//! successor both counted. A claim that has no machine yet counts with what it was made for, which is the least
//! that it can come to.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::read::{self, at};
use super::world::{POOL_LABEL, World, known};
use super::{Found, Law};
use crate::trace::{Actor, Step};

#[derive(Debug, Default)]
pub(super) struct Limits {
    /// By UID of the claim: which of us made it, and when.
    made: BTreeMap<String, (Actor, Timestamp)>,
}

impl Limits {
    /// Right before the step.
    pub(super) fn see_claim(
        &mut self,
        world: &World,
        claim: &Value,
        step: &Step,
        found: &mut Found,
    ) {
        let uid = read::uid(claim);
        if !matches!(step.by, Actor::Operator(_)) || world.claims_ever.contains(uid) {
            return;
        }
        self.made.insert(uid.to_owned(), (step.by, step.at));
        let Some(name) = read::label(claim, POOL_LABEL) else { return };
        let Some(pool) = world.others.get("NodePool").and_then(|it| it.get(name)) else { return };
        let limits = at(&pool.object, &["spec", "limits"]).and_then(Value::as_object);
        if pool.lately(world.sent_at(step)) {
            return;
        }
        for (resource, limit) in limits.into_iter().flatten() {
            found.premise(Law::Budget);
            let of_pool = world.claims.values().map(|it| &*it.object).filter(|it| {
                read::label(it, POOL_LABEL) == Some(name)
                    && self.counts(it, step, world.sent_at(step))
            });
            let used: i128 = of_pool.map(|it| amount(it, resource)).sum();
            let (used, limit) = (used + amount(claim, resource), read::quantity(Some(limit)));
            if used > limit {
                let what = format!(
                    "claim {} was made, and pool {name} has {used} thousandths of {resource}, of {limit}",
                    read::name(claim)
                );
                found.broken(Law::Budget, step.at, what);
            }
        }
    }

    /// What whoever acts has made itself it knows; of others it may hear later.
    fn counts(&self, claim: &Value, step: &Step, sent_at: Timestamp) -> bool {
        match self.made.get(read::uid(claim)) {
            Some((by, at)) => (*by == step.by && *at <= sent_at) || known(*at, sent_at),
            None => read::time(claim, &["metadata", "creationTimestamp"])
                .is_none_or(|it| known(it, sent_at)),
        }
    }
}

fn amount(claim: &Value, resource: &str) -> i128 {
    if resource == "nodes" {
        return 1000;
    }
    let has = at(claim, &["status", "capacity", resource]);
    read::quantity(has.or_else(|| at(claim, &["spec", "resources", "requests", resource])))
}
