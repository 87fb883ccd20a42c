//! What takes over from a node?
//!
//! A claim for each new node that placing found; or, where its pods are not modelled or the old node goes
//! first, one of the same kind. Names are made from what they are for, so that a second one is a conflict.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use nodemolt_core::place::kin::own_kind;
use nodemolt_core::place::{Placement, Placements};
use nodemolt_core::seen::{Claim, Node, Pool};
use nodemolt_core::wanted::{PoolTemplate, pinned};
use nodemolt_fit::capacity::Amounts;
use nodemolt_fit::pack::{Home, NewNode};
use nodemolt_fit::pool::Machine;
use nodemolt_fit::{Quantity, Requirements, Vocabulary, Written, label};
use sha2::{Digest, Sha256};

use super::{Sight, pools};
use crate::memory::Memory;
use crate::port::NewClaim;

/// So much of a pool's name stands in a claim's: nodes may be called after it, and names are short.
const POOL_LETTERS_MAX: usize = 40;

/// Told apart by replacement, try and number.
pub(crate) fn name_of(pool: &str, replacement: &str, try_number: u32, at: usize) -> String {
    let digest = Sha256::digest(format!("{replacement}/{try_number}/{at}"));
    let mut short = String::new();
    for byte in digest.iter().take(5) {
        let _ = write!(short, "{byte:02x}");
    }
    let pool: String = pool.chars().take(POOL_LETTERS_MAX).collect();
    format!("{}-{short}", pool.trim_end_matches(['-', '.']))
}

/// The successors of one node, without their names. None if its pool or class is not known.
pub(crate) fn of_placement(
    sight: &Sight<'_>,
    placement: Option<&Placement>,
    placements: &Placements,
    taken: &mut BTreeSet<usize>,
    old: &Old<'_>,
) -> Vec<NewClaim> {
    // The pool is kept at its number, whatever pods need.
    if let Some(pool) = old.pool.filter(|it| it.replicas.is_some()) {
        return in_its_place(sight, pool, placement, placements, taken, old);
    }
    match placement {
        // One that serves two nodes is made for the first.
        Some(Placement::Successors { new }) => untaken(sight, new, placements, taken),
        // It goes all the same: those of its pods that can have a place get one.
        Some(Placement::Unplaced { .. }) => {
            untaken(sight, &old.new_homes(sight, placements), placements, taken)
        }
        Some(Placement::Unmodelled { kin, new, .. }) => {
            let mut claims: Vec<NewClaim> = kin_of(sight, *kin, placements, old);
            taken.extend(kin);
            claims.extend(untaken(sight, new, placements, taken));
            claims
        }
        // It goes all the same, and nobody knows yet what its pool can launch.
        Some(Placement::NoKin { limit: None, .. }) if old.has_pods && old.machines.is_none() => {
            old.same_kind(sight).into_iter().collect()
        }
        // It goes first; whoever has pods needs a place for them afterwards.
        None if old.has_pods => old.same_kind(sight).into_iter().collect(),
        Some(Placement::Spare { .. } | Placement::NoKin { .. }) | None => Vec::new(),
    }
}

/// What placing made of one of its kind; where nobody asked placing for one, what its pool makes of it.
fn kin_of(
    sight: &Sight<'_>,
    kin: Option<usize>,
    placements: &Placements,
    old: &Old<'_>,
) -> Vec<NewClaim> {
    let kin = kin.and_then(|it| of_new_node(sight, placements.new_nodes.get(it)?));
    kin.or_else(|| old.same_kind(sight)).into_iter().collect()
}

fn untaken(
    sight: &Sight<'_>,
    new: &BTreeSet<usize>,
    placements: &Placements,
    taken: &mut BTreeSet<usize>,
) -> Vec<NewClaim> {
    let new = new.iter().filter(|it| taken.insert(**it));
    new.filter_map(|it| of_new_node(sight, placements.new_nodes.get(*it)?)).collect()
}

/// One of a pool that is kept at a number: what packing made of it, if pods are to go there. And whatever
/// other pools launch for its pods.
fn in_its_place(
    sight: &Sight<'_>,
    pool: &Pool,
    placement: Option<&Placement>,
    placements: &Placements,
    taken: &mut BTreeSet<usize>,
    old: &Old<'_>,
) -> Vec<NewClaim> {
    let new = match placement {
        Some(Placement::Successors { new }) => new.clone(),
        Some(Placement::Unmodelled { kin, new, .. }) => {
            let mut claims = kin_of(sight, *kin, placements, old);
            taken.extend(kin);
            claims.extend(untaken(sight, new, placements, taken));
            return claims;
        }
        Some(Placement::Unplaced { .. }) => old.new_homes(sight, placements),
        Some(Placement::Spare { .. } | Placement::NoKin { .. }) | None => BTreeSet::new(),
    };
    let of_pool = |it: &usize| placements.new_nodes.get(*it).is_some_and(|it| it.pool == pool.name);
    // Each of them was opened for one that leaves, and they are all the same to those.
    let all = new.iter().copied().chain(0..placements.new_nodes.len());
    let own = all.filter(of_pool).find(|it| taken.insert(*it));
    let own = own.and_then(|it| of_new_node(sight, placements.new_nodes.get(it)?));
    let mut claims: Vec<NewClaim> = own.or_else(|| old.same_kind(sight)).into_iter().collect();
    let others: BTreeSet<usize> = new.into_iter().filter(|it| !of_pool(it)).collect();
    claims.extend(untaken(sight, &others, placements, taken));
    claims
}

/// For pods that are pending now, in this pool; or whatever the pool gives, if none are.
pub(crate) fn for_pending(
    sight: &Sight<'_>,
    placements: &Placements,
    pool: &Pool,
) -> Vec<NewClaim> {
    let new = placements.new_nodes.iter().filter(|it| it.pool == pool.name);
    let mut found: Vec<NewClaim> = new.filter_map(|it| of_new_node(sight, it)).collect();
    found.extend(claim(sight, pool, pool.requirements.clone(), Amounts::new()));
    found
}

pub(crate) fn of_new_node(sight: &Sight<'_>, new: &NewNode) -> Option<NewClaim> {
    let pool = sight.view.pools.get(&new.pool)?;
    claim(sight, pool, new.requirements.to_vec(), new.requests.clone())
}

/// The node that goes.
pub(crate) struct Old<'a> {
    pool: Option<&'a Pool>,
    claim: &'a Claim,
    node: Option<&'a Node>,
    /// That must move.
    has_pods: bool,
    /// What its pool could launch now. `None`: nobody knows.
    machines: Option<Arc<Vec<Machine>>>,
}

impl<'a> Old<'a> {
    pub(crate) fn new(
        memory: &mut Memory,
        sight: &Sight<'_>,
        pool: Option<&'a Pool>,
        claim: &'a Claim,
        node: Option<&'a Node>,
        has_pods: bool,
    ) -> Self {
        let machines = pool.and_then(|it| pools::could_launch(memory, sight, it));
        Self { pool, claim, node, has_pods, machines }
    }

    /// One more of the same instance type, zone, capacity type and labels, as far as its pool still asks for
    /// such a one: what has drifted is not copied.
    pub(crate) fn same_kind(&self, sight: &Sight<'_>) -> Option<NewClaim> {
        let pool = self.pool?;
        let vocabulary = Vocabulary::new();
        let to_be_had = |asked: &[Written]| {
            let needed = Requirements::read(asked, &vocabulary);
            let can_be = |it: &Machine| pools::can_be(it, &needed, &vocabulary);
            self.machines.as_ref().is_none_or(|it| it.iter().any(can_be))
        };
        let labels = self.node.map_or(&self.claim.labels, |it| &it.fit.labels);
        let asked = own_kind(&pool.requirements, labels, to_be_had);
        claim(sight, pool, asked, self.requests(sight))
    }

    /// New nodes that some of its pods are to go to, whatever becomes of the others.
    fn new_homes(&self, sight: &Sight<'_>, placements: &Placements) -> BTreeSet<usize> {
        let Some(node) = self.node else { return BTreeSet::new() };
        let homes =
            sight.view.pods.on(&node.name).filter_map(|it| placements.homes.get(&it.fit.id()));
        let new = homes.filter_map(|it| match it {
            Home::New(at) => Some(*at),
            Home::Node(_) => None,
        });
        new.collect()
    }

    fn requests(&self, sight: &Sight<'_>) -> Amounts {
        let mut sum = Amounts::new();
        let Some(node) = self.node else { return self.claim.requests.clone() };
        for pod in sight.view.pods.on(&node.name).filter(|it| !it.fit.tied) {
            for (name, amount) in &pod.fit.demand.requests {
                let total = sum.entry(name.clone()).or_insert(Quantity::ZERO);
                *total = total.saturating_add(*amount);
            }
        }
        sum
    }
}

fn claim(
    sight: &Sight<'_>,
    pool: &Pool,
    requirements: Vec<Written>,
    requests: Amounts,
) -> Option<NewClaim> {
    let class = sight.view.classes.get(&pool.class)?;
    let PoolTemplate { labels, annotations, termination_grace_period, expire_after, .. } =
        &pool.template;
    let mut labels = labels.clone();
    for (key, value) in pinned(&requirements) {
        labels.entry(key).or_insert(value);
    }
    labels.insert(label::NODEPOOL.to_owned(), pool.name.clone());
    labels.insert(class.boot.label.clone(), class.boot.name.clone());
    Some(NewClaim {
        name: String::new(),
        pool: pool.name.clone(),
        pool_uid: pool.uid.clone(),
        class: pool.class.clone(),
        labels,
        annotations: annotations.clone(),
        requirements,
        taints: pool.fit.taints.clone(),
        startup_taints: pool.fit.startup_taints.clone(),
        requests,
        termination_grace_period: *termination_grace_period,
        expire_after: *expire_after,
        class_stamp: class.launch.static_stamp(),
        template_stamp: pool.template.stamp(),
        successor_of: None,
    })
}

/// Beside those that it has: for pods of a node under way that need a new node all the same.
pub(crate) fn further(
    sight: &Sight<'_>,
    node: &str,
    placements: &Placements,
    taken: &mut BTreeSet<usize>,
) -> Vec<NewClaim> {
    match placements.of.get(node) {
        Some(Placement::Successors { new } | Placement::Unmodelled { new, .. }) => {
            untaken(sight, new, placements, taken)
        }
        Some(Placement::Spare { .. } | Placement::Unplaced { .. } | Placement::NoKin { .. })
        | None => Vec::new(),
    }
}

/// With their names, for a replacement that has so many already.
pub(crate) fn named(
    claims: Vec<NewClaim>,
    replacement: &str,
    try_number: u32,
    has: usize,
) -> Vec<NewClaim> {
    let name = |(at, it): (usize, NewClaim)| NewClaim {
        name: name_of(&it.pool, replacement, try_number, has + at),
        successor_of: Some(replacement.to_owned()),
        ..it
    };
    claims.into_iter().enumerate().map(name).collect()
}
