//! As which claim is a successor made?
//!
//! As it was decided when the replacement began; but only while pool and class say the same as then. Who has forgotten that
//! decides again, in the same pool: that one stands in its name.

use std::collections::BTreeSet;

use nodemolt_core::drain::Moved;

use super::widen::takes_place;
use crate::decide::placing::Table;
use crate::decide::{Sight, homes, pools, successors};
use crate::memory::Memory;
use crate::port::NewClaim;
use crate::record::Recorded;

/// A claim that was decided and perhaps not made yet.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    claim: NewClaim,
    from: From,
}

/// UID and generation of pool and class.
type From = (Option<(String, i64)>, Option<(String, i64)>);

impl Draft {
    pub(crate) fn of(sight: &Sight<'_>, claim: NewClaim) -> Self {
        let from = from(sight, &claim);
        Self { claim, from }
    }

    pub(crate) fn claim(&self) -> &NewClaim {
        &self.claim
    }

    fn current(&self, sight: &Sight<'_>) -> bool {
        self.from == from(sight, &self.claim)
    }
}

fn from(sight: &Sight<'_>, claim: &NewClaim) -> From {
    let pool = sight.view.pools.get(&claim.pool);
    let class = sight.view.classes.get(&claim.class);
    (
        pool.map(|it| (it.uid.clone(), it.generation)),
        class.map(|it| (it.uid.clone(), it.generation)),
    )
}

/// The claim of a successor as it was decided; decided again if that was forgotten, or if pool or class have
/// been changed since: a node with an old stamp would have drifted when it is born.
pub(super) fn draft(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    recorded: &Recorded,
    name: &str,
) -> Option<NewClaim> {
    if let Some(known) = memory.drafts.get(name).filter(|it| it.current(sight)) {
        return Some(known.claim.clone());
    }
    let replacement = &recorded.replacement;
    let at = replacement.successors.iter().position(|it| it.claim == name)?;
    let old = &replacement.old;
    // What is decided before EC2 has answered is decided blindly, and would stand.
    if !pools::known(memory, sight, recorded.pool.as_deref()) {
        return None;
    }
    let placements = table.place_one(memory, sight, &old.node, &recorded.name);
    let claim = sight.claim(&old.claim, &old.claim_uid);
    let pool = recorded.pool.as_ref().and_then(|it| sight.view.pools.get(it));
    let mut found = Vec::new();
    if let Some(claim) = claim {
        let node = sight.view.nodes.get(&old.node);
        let old = successors::Old::new(memory, sight, pool, claim, node, true);
        let placement = placements.of.get(&replacement.old.node);
        let mut taken = BTreeSet::new();
        found = successors::of_placement(sight, placement, &placements, &mut taken, &old);
        if found.len() <= at {
            found.extend(old.same_kind(sight));
        }
        // Packing may prefer another pool today; but a budget may count on one of the pool that was decided.
        let (record, tries) = (&recorded.name, replacement.tries);
        let decided = |it: &NewClaim| successors::name_of(&it.pool, record, tries, at) == name;
        if !found.get(at).is_some_and(decided) {
            let known = found.iter().find(|it| decided(it)).cloned();
            if let Some(known) = known.or_else(|| old.same_kind(sight).filter(decided)) {
                found.splice(at.min(found.len()).., [known]);
            }
        }
    } else if let Some(pool) = pool {
        // The old one is gone: what its pods need is seen by those that are pending.
        found = successors::for_pending(sight, &placements, pool);
        // Whatever the pool gives comes last there. It is no help to pods that wait and could not run on it.
        let own = |it: &Moved| it.nodes.contains(&old.node);
        if found.len() == 1 && takes_place(replacement, &recorded.name, name, pool) {
            let waits = homes::moved(sight).iter().any(own);
            found.truncate(usize::from(!waits));
        }
    }
    // Of those that were added later it is forgotten what they were for: they are like the last.
    let last = found.len().checked_sub(1)?;
    let mut draft = found.into_iter().nth(at.min(last))?;
    name.clone_into(&mut draft.name);
    draft.successor_of = Some(recorded.name.clone());
    memory.drafts.insert(name.to_owned(), Draft::of(sight, draft.clone()));
    Some(draft)
}
