//! Which node will a claim become?
//!
//! `claims × nodes in the files → nodes that will be, what they take of their pools' limits`
//!
//! A machine that was launched is a node that has not come up yet: pods that wait were perhaps the
//! reason for launching it, and another machine for them would be one too many.

use std::collections::BTreeMap;

use nodemolt_fit::{
    Quantity, Written,
    capacity::Amounts,
    label,
    node::Node,
    taint::{Effect, Taint},
};

use crate::{meta, nodeclaim::NodeClaim, nodepool};

const IN: &str = "In";

/// Claims by what became of them.
#[derive(Debug, Default)]
pub(super) struct Claims<'c> {
    /// No node in the files is theirs.
    pub(super) on_their_way: Vec<&'c NodeClaim>,
    /// Names of nodes whose claims are being deleted.
    pub(super) going: Vec<String>,
}

impl<'c> Claims<'c> {
    /// Nodes are known by name and by machine: a claim learns the name late.
    pub(super) fn new(claims: &'c [NodeClaim], nodes: &BTreeMap<&str, Option<&str>>) -> Self {
        let by_machine: BTreeMap<&str, &str> =
            nodes.iter().filter_map(|(name, machine)| Some(((*machine)?, *name))).collect();
        let mut sorted = Self::default();
        for claim in claims {
            let status = claim.status.as_ref();
            let named = status.and_then(|it| it.node_name.as_deref());
            let machine = status.and_then(|it| it.provider_id.as_deref());
            let known = named.filter(|it| nodes.contains_key(*it));
            let node = known.or_else(|| machine.and_then(|it| by_machine.get(it).copied()));
            match node {
                None => sorted.on_their_way.push(claim),
                Some(node) if claim.metadata.deletion_timestamp.is_some() => {
                    sorted.going.push(node.to_owned());
                }
                Some(_) => {}
            }
        }
        sorted.on_their_way.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        sorted
    }
}

pub(super) fn pool(claim: &NodeClaim) -> Option<&String> {
    claim.metadata.labels.get(label::NODEPOOL)
}

/// What counts against the limits of its pool.
pub(super) fn capacity(claim: &NodeClaim) -> Amounts {
    amounts(claim.status.as_ref().and_then(|it| it.capacity.as_ref()))
}

/// The name of its node, once the kubelet has said it.
pub(super) fn registered(claim: &NodeClaim) -> Option<&str> {
    let name = claim.status.as_ref().and_then(|it| it.node_name.as_deref());
    name.filter(|it| !it.is_empty())
}

/// Of a claim of which nobody knows yet which machine it will be: what the machine has to be. What cannot be read
/// leaves more machines open.
pub(super) fn still_open(claim: &NodeClaim) -> Option<Vec<Written>> {
    let goes = claim.metadata.deletion_timestamp.is_some();
    let read = claim.spec.requirements.iter().filter_map(|it| {
        let operator = it.operator.parse().ok()?;
        let (key, values) = (label::normalise(&it.key).to_owned(), it.values.clone());
        Some(Written { key, operator, values, min_values: None })
    });
    (!goes && capacity(claim).is_empty()).then(|| read.collect())
}

/// The node that will be, or that is there and not in the files. `None`: it will not, or nobody knows yet what it will offer.
pub(super) fn node(claim: &NodeClaim) -> Option<Node> {
    if claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let allocatable = amounts(claim.status.as_ref()?.allocatable.as_ref());
    if allocatable.is_empty() {
        return None;
    }
    let name = registered(claim).unwrap_or(&claim.metadata.name);
    let mut labels = claim.metadata.labels.clone();
    for it in &claim.spec.requirements {
        if let (IN, [only]) = (it.operator.as_str(), it.values.as_slice()) {
            labels.entry(label::normalise(&it.key).to_owned()).or_insert_with(|| only.clone());
        }
    }
    // It will have a name of its own. Which one nobody knows; that nobody else has it is known.
    labels.insert(label::HOSTNAME.to_owned(), name.to_owned());
    let startup = taints(claim.spec.startup_taints.as_ref());
    let mut all = taints(claim.spec.taints.as_ref());
    all.extend(startup.iter().cloned());
    Some(Node {
        name: name.to_owned(),
        pool: pool(claim).cloned(),
        labels,
        taints: all,
        startup_taints: startup,
        allocatable,
        ..Node::default()
    })
}

/// What a controller wrote is not for a person to correct: what cannot be read is left out.
fn amounts(wire: Option<&BTreeMap<String, meta::Quantity>>) -> Amounts {
    let all = wire.into_iter().flatten();
    let read = all.filter_map(|(name, it)| Some((name.clone(), it.0.parse::<Quantity>().ok()?)));
    read.filter(|(_, it)| !it.negative()).collect()
}

fn taints(wire: Option<&Vec<nodepool::Taint>>) -> Vec<Taint> {
    let read = wire.into_iter().flatten().filter_map(|it| {
        let effect = match it.effect.as_str() {
            "NoSchedule" => Effect::NoSchedule,
            "PreferNoSchedule" => Effect::PreferNoSchedule,
            "NoExecute" => Effect::NoExecute,
            _ => return None,
        };
        Some(Taint::new(&it.key, it.value.as_deref().unwrap_or_default(), effect))
    });
    read.collect()
}
