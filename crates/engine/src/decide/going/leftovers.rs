//! What is left of what was begun and given up?
//!
//! Successors that nobody needs and that run nobody, and cordons that no open Replacement stands for.

use std::collections::BTreeSet;

use nodemolt_core::replace::Phase;
use nodemolt_core::seen::{Claim, Node, Stage};

use super::Going;
use crate::act::{Errand, Intent};
use crate::claims::pods_of;
use crate::decide::Sight;
use crate::port::Object;

/// Nobody runs there whom we would have to move a second time.
pub(super) fn removable(sight: &Sight<'_>, claim: &Claim) -> bool {
    claim.deleting_since.is_none() && pods_of(sight.view, claim, sight.now) == 0
}

pub(super) fn remove(replacement: &str, claim: &Claim) -> (Intent, Errand) {
    let errand = Errand::DeleteSuccessor {
        replacement: replacement.to_owned(),
        claim: claim.name.clone(),
        uid: claim.uid.clone(),
    };
    (Intent::Claim(claim.name.clone()), errand)
}

/// Claims that were made for a replacement and came too late: it has ended, or has others by now.
pub(super) fn leftovers(sight: &Sight<'_>, going: &mut [Going]) {
    for claim in sight.roll.unsettled(sight.view) {
        let Some(name) = &claim.successor_of else { continue };
        if claim.stages.contains_key(&Stage::Initialized) {
            continue;
        }
        let open = going.iter_mut().find(|it| it.recorded.name == *name);
        let Some(open) = open else { continue };
        let listed = open.recorded.replacement.successors.iter().any(|it| it.claim == claim.name);
        if !listed && removable(sight, claim) {
            open.errands.push(remove(name, claim));
        }
    }
}

/// Claims whose replacement has ended without them, or was deleted. They belong to nobody's phase, so they
/// are told apart. One that was set up is an ordinary node by now.
pub(crate) fn abandoned(sight: &Sight<'_>) -> Vec<(Intent, Errand)> {
    let late = sight.roll.unsettled(sight.view).filter_map(|claim| {
        let name = claim.successor_of.as_deref()?;
        let over = match sight.records.replacements.get(name) {
            Some(it) => {
                matches!(it.replacement.phase, Phase::Failed | Phase::Skipped | Phase::Cancelled)
            }
            // It was written before its claims were made.
            None => !sight.records.unreadable.contains_key(name),
        };
        let set_up = claim.stages.contains_key(&Stage::Initialized);
        (over && !set_up && removable(sight, claim)).then(|| remove(name, claim))
    });
    late.collect()
}

/// Nodes with a cordon of ours whose Replacement has ended or was deleted: nobody else takes it away.
pub(crate) fn stray_cordons(
    sight: &Sight<'_>,
    cordoned: &BTreeSet<String>,
) -> Vec<(Intent, Errand)> {
    let nodes = cordoned.iter().filter_map(|it| sight.view.nodes.get(it));
    let stray = nodes.filter_map(|node| {
        let name = node.cordoned_by.as_ref()?;
        let open = match sight.records.replacements.get(name) {
            Some(it) => !it.replacement.phase.ended(),
            None => sight.records.unreadable.contains_key(name),
        };
        // Whoever goes is cordoned again a moment later, and what has no claim any more is on its way out.
        let claim = sight.claim_of(&node.name)?;
        let goes = node.deleting_since.is_some() || claim.deleting_since.is_some();
        if open || goes {
            return None;
        }
        let errand = Errand::Uncordon { replacement: name.clone(), node: object(node) };
        Some((Intent::Node(node.name.clone()), errand))
    });
    stray.collect()
}

pub(super) fn object(node: &Node) -> Object {
    let Node { name, uid, revision, .. } = node;
    Object { name: name.clone(), uid: uid.clone(), revision: revision.clone() }
}
