//! What takes over from a node?
//!
//! A claim for each new node that placing found; or, where its pods are not modelled or the old node goes
//! first, one of the same kind. Names are made from what they are for, so that a second one is a conflict.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nodemolt_core::place::{Placement, Placements};
use nodemolt_core::seen::{Claim, Node, Pool};
use nodemolt_core::wanted::PoolTemplate;
use nodemolt_fit::capacity::Amounts;
use nodemolt_fit::pack::NewNode;
use nodemolt_fit::{Operator, Quantity, Written, label};
use sha2::{Digest, Sha256};

use super::Sight;
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

/// The successors of one node, without their names. `None` if its pool or class is not known.
pub(crate) fn of_placement(
    sight: &Sight<'_>,
    placement: Option<&Placement>,
    placements: &Placements,
    taken: &mut std::collections::BTreeSet<usize>,
    old: &Old<'_>,
) -> Vec<NewClaim> {
    let fixed = old.pool.is_some_and(|it| it.replicas.is_some());
    match placement {
        // The pool is kept at its number, whatever pods need.
        _ if fixed => old.same_kind(sight).into_iter().collect(),
        Some(Placement::Successors { new }) => new
            .iter()
            // One that serves two nodes is made for the first.
            .filter(|it| taken.insert(**it))
            .filter_map(|it| of_new_node(sight, placements.new_nodes.get(*it)?))
            .collect(),
        Some(Placement::Unmodelled { .. }) => old.same_kind(sight).into_iter().collect(),
        // It goes first; whoever has pods needs a place for them afterwards.
        None if old.has_pods => old.same_kind(sight).into_iter().collect(),
        Some(Placement::Spare { .. } | Placement::Unplaced { .. }) | None => Vec::new(),
    }
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
    pub(crate) pool: Option<&'a Pool>,
    pub(crate) claim: &'a Claim,
    pub(crate) node: Option<&'a Node>,
    /// That must move.
    pub(crate) has_pods: bool,
}

impl Old<'_> {
    /// One more of the same instance type, zone, capacity type and labels.
    pub(crate) fn same_kind(&self, sight: &Sight<'_>) -> Option<NewClaim> {
        let pool = self.pool?;
        let labels = self.node.map_or(&self.claim.labels, |it| &it.fit.labels);
        let mut requirements: BTreeMap<String, Written> = BTreeMap::new();
        let asked = pool.requirements.iter().map(|it| it.key.as_str());
        let own = [label::INSTANCE_TYPE, label::ZONE, label::CAPACITY_TYPE, label::ARCH, label::OS];
        for key in own.into_iter().chain(asked) {
            let key = label::normalise(key);
            if let Some(value) = labels.get(key) {
                let values = vec![value.clone()];
                let operator = Operator::In;
                let written = Written { key: key.to_owned(), operator, values, min_values: None };
                requirements.insert(key.to_owned(), written);
            }
        }
        // What the old node does not have is asked as the pool asks it.
        let mut all: Vec<Written> = requirements.values().cloned().collect();
        let open = pool
            .requirements
            .iter()
            .filter(|it| !requirements.contains_key(label::normalise(&it.key)));
        all.extend(open.cloned());
        claim(sight, pool, all, self.requests(sight))
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
    // What has one value already is known of the node before there is one.
    for it in &requirements {
        if let (Operator::In, [only]) = (it.operator, it.values.as_slice()) {
            labels.entry(it.key.clone()).or_insert_with(|| only.clone());
        }
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

/// With their names, for a replacement.
pub(crate) fn named(claims: Vec<NewClaim>, replacement: &str, try_number: u32) -> Vec<NewClaim> {
    let name = |(at, it): (usize, NewClaim)| NewClaim {
        name: name_of(&it.pool, replacement, try_number, at),
        successor_of: Some(replacement.to_owned()),
        ..it
    };
    claims.into_iter().enumerate().map(name).collect()
}
