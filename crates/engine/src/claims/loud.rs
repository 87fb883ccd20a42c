//! Which claims have to be looked at?
//!
//! Nearly all are at rest: their machine runs, their node is there, nothing is lacking. Such a one stays at rest until
//! itself, its node, a list of machines or what cannot be read has changed; time alone does not move it. All others
//! are looked at in every turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_core::seen::{Claim, Kind, Looked, MachineId, View};

use super::Here;
use crate::decide::roll::Roll;
use crate::memory::Listed;

/// Kept from turn to turn. At first that is all of them.
#[derive(Debug, Default)]
pub(crate) struct Loud {
    /// How far claims and nodes were looked at.
    looked_at: (Looked, Looked),
    /// The last list of machines, and the one before.
    lists: [Option<(Arc<Listed>, Timestamp)>; 2],
    groups: Vec<String>,
    nodes_fresh: Option<Timestamp>,
    /// Something could not be read.
    hidden: bool,
    /// Claims that were not at rest, or may not be any more. `None`: all.
    claims: Option<BTreeSet<String>>,
    pub(super) strangers: Option<Strangers>,
    /// Nodes that are being deleted. `None`: nobody has looked.
    leaving: Option<BTreeSet<String>>,
}

/// Of the last list of machines.
#[derive(Debug)]
pub(super) struct Strangers {
    /// So many run and are ours.
    pub(super) live: usize,
    /// Those of them that no claim stands for, or one that has another.
    pub(super) nobodys: Vec<MachineId>,
}

/// A list of machines that is shared, and when it was asked for.
type Shared<'a> = Option<(&'a Arc<Listed>, Timestamp)>;

impl Loud {
    /// Once in a turn, before deciding.
    pub(crate) fn look(&mut self, view: &View, roll: &Roll, here: &Here, lists: [Shared<'_>; 2]) {
        let fresh = view.fresh.get(&Kind::Node).copied();
        let hidden = !view.unreadable.is_empty();
        let same_list =
            |one: &Option<(Arc<Listed>, Timestamp)>, other: Shared<'_>| match (one, other) {
                (None, None) => true,
                (Some((one, at)), Some((other, then))) => Arc::ptr_eq(one, other) && *at == then,
                (Some(_), None) | (None, Some(_)) => false,
            };
        let same = !hidden
            && !self.hidden
            && fresh.is_some()
            && self.nodes_fresh <= fresh
            && self.groups == here.groups
            && self.lists.iter().zip(lists).all(|(one, other)| same_list(one, other));
        let claims = view.claims.changes().since(&self.looked_at.0).filter(|_| same);
        let nodes = view.nodes.changes().since(&self.looked_at.1);
        if let (Some(claims), Some(nodes), Some(loud)) = (claims, nodes, &mut self.claims) {
            for name in claims {
                loud.insert(name.clone());
                self.strangers = None;
            }
            for node in nodes {
                loud.extend(roll.claims_of(node).cloned());
                if let Some(leaving) = &mut self.leaving {
                    if view.nodes.get(node).is_some_and(|it| it.deleting_since.is_some()) {
                        leaving.insert(node.clone());
                    } else {
                        leaving.remove(node);
                    }
                }
            }
        } else {
            (self.claims, self.strangers, self.leaving) = (None, None, None);
        }
        self.looked_at = (view.claims.changes().looked(), view.nodes.changes().looked());
        self.lists = lists.map(|it| it.map(|(list, at)| (Arc::clone(list), at)));
        self.groups.clone_from(&here.groups);
        (self.nodes_fresh, self.hidden) = (fresh, hidden);
    }

    /// In the order of their names.
    pub(crate) fn claims<'v>(&self, view: &'v View) -> Vec<(&'v String, &'v Claim)> {
        match &self.claims {
            Some(loud) => loud.iter().filter_map(|it| view.claims.get_key_value(it)).collect(),
            None => view.claims.iter().collect(),
        }
    }

    /// After deciding: all others are at rest.
    pub(super) fn stay(&mut self, claims: BTreeSet<String>) {
        self.claims = Some(claims);
    }

    /// Nodes that are being deleted, by name.
    pub(super) fn leaving(&mut self, view: &View) -> &BTreeSet<String> {
        self.leaving.get_or_insert_with(|| {
            let leaving = view.nodes.iter().filter(|(_, it)| it.deleting_since.is_some());
            leaving.map(|(name, _)| name.clone()).collect()
        })
    }
}
