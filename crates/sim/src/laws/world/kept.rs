//! What is kept of each object beside itself?
//!
//! What the trace does not say again: since when something is so, and who was the first to ask for it.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use serde_json::Value;

use super::known;
use crate::laws::read;
use crate::trace::Actor;

#[derive(Debug)]
pub(in super::super) struct Node {
    pub(in super::super) object: Rc<Value>,
    pub(in super::super) ready: bool,
    /// Since when it is ready, or is not.
    pub(in super::super) since: Timestamp,
    /// Who never was is not missed.
    pub(in super::super) ever_ready: bool,
    /// Since when it is away for any cause: not ready, cordoned, going.
    pub(in super::super) away_since: Option<Timestamp>,
    /// Our own cordon, by the name of the Replacement.
    pub(in super::super) cordoned: Option<(String, Timestamp)>,
    /// When our cordon was last taken back.
    pub(in super::super) uncordoned_at: Option<Timestamp>,
}

#[derive(Debug)]
pub(in super::super) struct Pod {
    pub(in super::super) object: Rc<Value>,
    pub(in super::super) node: Option<String>,
    /// Since when it is on that node.
    pub(in super::super) bound_at: Timestamp,
    /// Ready, and nobody has asked it to go.
    pub(in super::super) healthy: bool,
    pub(in super::super) healthy_changed_at: Timestamp,
    pub(in super::super) ever_healthy: bool,
    /// We have asked it to go, or let it end with its machine.
    pub(in super::super) evicted: bool,
}

#[derive(Debug)]
pub(in super::super) struct Lost {
    pub(in super::super) at: Timestamp,
    pub(in super::super) object: Rc<Value>,
}

#[derive(Debug)]
pub(in super::super) struct Claim {
    pub(in super::super) object: Rc<Value>,
    pub(in super::super) deleting_since: Option<Timestamp>,
    /// The first to ask for its end.
    pub(in super::super) deleted_by: Option<Actor>,
}

#[derive(Debug, Default)]
pub(in super::super) struct Ledger {
    pub(in super::super) object: Option<Rc<Value>>,
    pub(in super::super) epoch: i64,
    /// By holder.
    pub(in super::super) grants: BTreeMap<String, Grant>,
    /// Holders whose grant was given back, and when.
    pub(in super::super) ended: BTreeMap<String, Timestamp>,
    pub(in super::super) paused_since: Option<Timestamp>,
    /// Since when a pause or a lock holds everything that nobody else has decided.
    pub(in super::super) halted_since: Option<Timestamp>,
}

impl Ledger {
    /// There is none, or only what is made before its status is written: it is about to be rebuilt.
    pub(in super::super) fn lost(&self) -> bool {
        let epoch = |it: &Rc<Value>| read::number(it, &["status", "epoch"]);
        self.object.as_ref().and_then(epoch).is_none()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Grant {
    pub(in super::super) node: String,
    pub(in super::super) kind: String,
    pub(in super::super) epoch: i64,
}

impl Grant {
    /// For drift, expiry or because a person asked: what takes a slot.
    pub(in super::super) fn takes_slot(&self) -> bool {
        matches!(self.kind.as_str(), "Replacement" | "Drift" | "Expiry" | "Upgrade")
    }

    /// It may go over the budget.
    pub(in super::super) fn passes(&self) -> bool {
        matches!(self.kind.as_str(), "Delete" | "Interruption")
    }
}

#[derive(Debug)]
pub(in super::super) struct Kept {
    pub(in super::super) object: Rc<Value>,
    /// Since when it says what it says.
    pub(in super::super) since: Timestamp,
    /// What it said before that.
    pub(in super::super) before: Option<Rc<Value>>,
}

impl Kept {
    /// It says so only for a moment: whoever acts may not know yet.
    pub(in super::super) fn lately(&self, now: Timestamp) -> bool {
        !known(self.since, now)
    }
}
