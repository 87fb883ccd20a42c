//! Nodes, pods and budgets for tests, with as few words as possible.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{Member, Standing};
use nodemolt_core::drain::{
    AtLimit, BarePods, Drain, Owner, Pdb, Pod, PodId, PodPhase, Tier, UnhealthyPods,
};
use nodemolt_core::plan::{Node, Wish};
use nodemolt_core::policy::LabelSelector;
use nodemolt_core::replace::Cause;

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|it| panic!("{text}: {it}"))
}

/// A Monday, at noon.
pub(crate) fn now() -> Timestamp {
    at("2026-08-03T12:00:00Z")
}

pub(crate) fn minutes(minutes: i64) -> SignedDuration {
    SignedDuration::from_mins(minutes)
}

pub(crate) fn ago(length: SignedDuration) -> Timestamp {
    now() - length
}

pub(crate) fn labels(text: &str) -> BTreeMap<String, String> {
    let pair = |it: &str| {
        let (key, value) = it.split_once('=').unwrap_or_else(|| panic!("{it} is no label"));
        (key.to_owned(), value.to_owned())
    };
    text.split_whitespace().map(pair).collect()
}

/// An available node of a pool, whose class has the pool's name.
pub(crate) fn member(pool: &str) -> Member {
    Member {
        pool: Some(pool.to_owned()),
        class: Some(pool.to_owned()),
        labels: labels(&format!("karpenter.sh/nodepool={pool}")),
        cpu_millis: 4000,
        standing: Standing::Available,
        surge: false,
        taken_from: std::collections::BTreeSet::new(),
    }
}

/// A running, ready pod of a Deployment that has the labels `app=APP`.
pub(crate) fn pod(namespace: &str, name: &str, app: &str) -> Pod {
    Pod {
        id: PodId {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: format!("uid-{namespace}-{name}"),
        },
        labels: labels(&format!("app={app}")),
        phase: PodPhase::Running,
        ready: true,
        owner: Owner::Workload { kind: "ReplicaSet".to_owned(), name: app.to_owned() },
        tier: Tier::Ordinary,
        tolerates_cordon: false,
        protection: None,
        grace: SignedDuration::from_secs(30),
        ends_at: None,
        namespace_terminating: false,
    }
}

/// Healthy, observed, and it allows so many.
pub(crate) fn pdb(namespace: &str, name: &str, app: &str, allowed: i32) -> Pdb {
    Pdb {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        selector: Some(LabelSelector {
            labels: labels(&format!("app={app}")),
            expressions: Vec::new(),
        }),
        generation: 1,
        observed_generation: 1,
        disruptions_allowed: allowed,
        current_healthy: 3,
        desired_healthy: 3 - allowed.max(0),
        unhealthy_pods: UnhealthyPods::IfHealthyBudget,
        disrupted_pods: BTreeMap::new(),
    }
}

pub(crate) fn drain(node: &str, pods: Vec<Pod>) -> Drain {
    Drain {
        node: node.to_owned(),
        since: ago(minutes(1)),
        last_left_at: None,
        pods: pods.into_iter().map(Arc::new).collect(),
        limit: None,
        at_limit: AtLimit::Skip,
        deadline: None,
        machine_goes: false,
        decided: false,
        ending: false,
        bare_pods: BarePods::Wait,
        hindered: None,
    }
}

/// Drifted two days ago, as all the others.
pub(crate) fn drifted() -> Wish {
    Wish {
        cause: Cause::Drift,
        since: ago(SignedDuration::from_hours(48)),
        no_image: None,
        by_name: true,
        unread: None,
        to_candidate: false,
        recurs: None,
    }
}

/// A node that has drifted and that nothing holds.
pub(crate) fn node(pool: &str, zone: &str, pods: Vec<Pod>) -> Node {
    Node {
        member: member(pool),
        zone: Some(zone.to_owned()),
        created_at: ago(SignedDuration::from_hours(1000)),
        wish: Some(drifted()),
        protection: None,
        protected_by_claim: None,
        pods: pods.into_iter().map(Arc::new).collect(),
        has_deadline: false,
        next_try: None,
        under_way: None,
        succeeds: None,
        leads_back: false,
    }
}
