//! Is a budget really used up?
//!
//! Counted from the objects of the API server alone: who belongs to it, how many it allows, and who is away
//! or has a grant. Budgets with a schedule or of an unreadable form are those that a kind puts there, and are
//! not counted here.

use std::collections::BTreeSet;

use nodemolt_sim::{World, kinds};
use serde_json::Value;

use crate::wrong::granted;

/// Whether others use so much of it that this node has no place in it.
pub(crate) fn full(world: &World, node: &str, kind: &str, name: &str) -> bool {
    let members = match kind {
        "NodePool" => members(world, |it| it["metadata"]["labels"][POOL] == name),
        // One policy over all classes, and the cluster's slot: all nodes there are.
        _ => members(world, |_| true),
    };
    // Who is gone and keeps its grant uses it, and is no part of what a share is of.
    let (surge, nodes) = (surge(world), world.objects(kinds::NODE));
    let there = |name: &String| nodes.iter().any(|it| it["metadata"]["name"] == name.as_str());
    let whole = members.iter().filter(|it| !surge.contains(*it) && there(it)).count();
    let allowed = match kind {
        "DisruptionLedger" => Some(1),
        "NodePool" => of_pool(world, name, whole),
        "ImagePolicy" => of_policy(world, name, whole),
        _ => None,
    };
    let used = users(world).into_iter().filter(|it| it != node && members.contains(it)).count();
    allowed.is_some_and(|it| used >= it)
}

/// Whether all whom a sentence calls users of a budget are that: no other node is in it.
pub(crate) fn users_told(world: &World, node: &str, text: &str) -> bool {
    let users = users(world);
    let said = |name: &str| {
        text.split(|it: char| !(it.is_alphanumeric() || it == '-')).any(|it| it == name)
    };
    let all = members(world, |_| true);
    let mut told = all.iter().filter(|it| *it != node && said(it)).peekable();
    told.peek().is_some() && told.all(|it| users.contains(it))
}

const POOL: &str = "karpenter.sh/nodepool";

/// Nodes that are there, and those that are gone and keep their grant.
fn members(world: &World, of: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let nodes = world.objects(kinds::NODE);
    let there = nodes.iter().filter(|it| of(it)).filter_map(|it| it["metadata"]["name"].as_str());
    let mut all: BTreeSet<String> = there.map(str::to_owned).collect();
    let names: BTreeSet<&str> =
        nodes.iter().filter_map(|it| it["metadata"]["name"].as_str()).collect();
    all.extend(granted(world).into_iter().filter(|it| !names.contains(it.as_str())));
    all
}

/// Nodes that are there beside the one that they take over from: of a share the whole is what it is without them.
fn surge(world: &World) -> BTreeSet<String> {
    const ENDED: [&str; 5] = ["Done", "Failed", "Skipped", "Kept", "Cancelled"];
    let (nodes, claims) = (world.objects(kinds::NODE), world.objects(kinds::CLAIM));
    let there = |name: &Value| nodes.iter().any(|it| it["metadata"]["name"] == *name);
    let mut all = BTreeSet::new();
    for record in world.objects(kinds::REPLACEMENT) {
        let ended = record["status"]["phase"].as_str().is_some_and(|it| ENDED.contains(&it));
        if ended || !there(&record["spec"]["nodeName"]) {
            continue;
        }
        let successors = record["status"]["successors"].as_array().into_iter().flatten();
        for successor in successors {
            let claim = claims.iter().find(|it| it["metadata"]["name"] == successor["name"]);
            all.extend(claim.and_then(|it| Some(it["status"]["nodeName"].as_str()?.to_owned())));
        }
    }
    all
}

/// Who has a grant, and who cannot be counted on. A node that is not set up yet is missing to nobody.
fn users(world: &World) -> BTreeSet<String> {
    let mut all = granted(world);
    let claims = world.objects(kinds::CLAIM);
    for node in world.objects(kinds::NODE) {
        let name = &node["metadata"]["name"];
        let claim = claims.iter().find(|it| it["status"]["nodeName"] == *name);
        if claim.is_some_and(|it| !holds(it, "Initialized")) {
            continue;
        }
        let going = |it: &Value| !it["metadata"]["deletionTimestamp"].is_null();
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let closed = node["spec"]["unschedulable"] == true
            || taints.into_iter().any(|it| it["key"] == "karpenter.sh/disrupted");
        let gone = going(&node) || claim.is_some_and(|it| going(it));
        if gone || closed || !holds(&node, "Ready") {
            all.extend(name.as_str().map(str::to_owned));
        }
    }
    all
}

pub(crate) fn holds(object: &Value, kind: &str) -> bool {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().any(|it| it["type"] == kind && it["status"] == "True")
}

/// The least of its budgets that hold always.
fn of_pool(world: &World, name: &str, members: usize) -> Option<usize> {
    let pools = world.objects(kinds::POOL);
    let pool = pools.iter().find(|it| it["metadata"]["name"] == name)?;
    let budgets = pool["spec"]["disruption"]["budgets"].as_array()?;
    let always = budgets.iter().filter(|it| it["schedule"].is_null());
    always.filter_map(|it| amount(&it["nodes"], members)).min()
}

fn of_policy(world: &World, name: &str, members: usize) -> Option<usize> {
    let policies = world.objects(kinds::POLICY);
    let policy = policies.iter().find(|it| it["metadata"]["name"] == name)?;
    amount(&policy["spec"]["rollout"]["concurrency"], members)
}

/// A share is rounded down, and is at least one unless it is nought.
fn amount(written: &Value, of: usize) -> Option<usize> {
    let text = written.as_str().map_or_else(|| written.to_string(), str::to_owned);
    match text.strip_suffix('%') {
        None => text.parse().ok(),
        Some(share) => {
            let share: usize = share.parse().ok()?;
            Some(if share == 0 { 0 } else { (of * share / 100).max(1) })
        }
    }
}
