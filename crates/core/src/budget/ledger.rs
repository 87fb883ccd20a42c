//! Who may be disturbed now, by whose word, and who was a short while ago?
//!
//! The one record that every grant is written in, all of a turn at once. What is decided looks at less
//! of it: [`Grants`].

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Closed, Grant, GrantKind, Grants};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Counts the leaders; it never goes back.
    pub epoch: u64,
    /// By the UID of the old node's claim.
    pub grants: BTreeMap<String, Granted>,
    /// Of replacements that have ended, as far back as the longest cooldown.
    pub closed: Vec<Closed>,
    pub pause: Option<Pause>,
    /// That nobody has released.
    pub lock: Option<Lock>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The node's name; its claim's, where it never became a node.
    pub node: String,
    pub pool: Option<String>,
    /// Thousandths of its processors when it was granted: the node may be gone before the grant is.
    /// `None` if nobody knows.
    pub cpu_millis: Option<u64>,
    /// The `NodeDisruptionBudgets` that it takes a place in: its labels go with the node.
    pub taken_from: BTreeSet<String>,
    pub kind: GrantKind,
    /// Of the leader that granted it.
    pub epoch: u64,
    pub since: Timestamp,
}

/// A person stopped everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub reason: String,
    pub by: Option<String>,
    pub since: Option<Timestamp>,
}

/// We stopped ourselves: our own records contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Tells one lock from the next.
    pub id: String,
    pub reason: String,
    pub since: Timestamp,
}

impl Ledger {
    /// What budgets and plans look at.
    pub fn grants(&self) -> Grants {
        let mut open: BTreeMap<String, Grant> = BTreeMap::new();
        for granted in self.grants.values() {
            let grant = Grant { kind: granted.kind, since: granted.since };
            // A name may come again while the grant of its first bearer is open: the older one holds.
            open.entry(granted.node.clone())
                .and_modify(|it| {
                    if grant.since < it.since {
                        *it = grant.clone();
                    }
                })
                .or_insert(grant);
        }
        Grants {
            open,
            closed: self.closed.clone(),
            paused: self.pause.as_ref().map(|it| match &it.by {
                Some(by) => format!("{by}: {}", it.reason),
                None => it.reason.clone(),
            }),
            locked: self.lock.as_ref().map(|it| it.reason.clone()),
            unheard: None,
            apart: None,
        }
    }
}
