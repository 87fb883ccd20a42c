//! What do programs read about a fleet?

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodemolt_core::drift::{Divergence, Drift, Sides};
use nodemolt_core::explain::{self, Cause, Fact, Story};
use nodemolt_core::plan::Pending;
use nodemolt_engine::Picture;
use serde::Serialize;

use super::Halt;
use super::rows::{self, Pool, Row, State};
use crate::sim::Opened;

pub(crate) const VERSION: &str = "nodemolt.dev/cli/v1";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status<'p> {
    api_version: &'static str,
    kind: &'static str,
    at: Timestamp,
    scenario: &'p str,
    seed: u64,
    cluster: &'p str,
    /// Its version, as `1.33`.
    kubernetes: String,
    region: &'p str,
    paused: Option<&'p str>,
    locked: Option<&'p str>,
    /// What people wrote and what does not work as they meant it.
    warnings: Vec<String>,
    /// What a person has to look at.
    doubted: Vec<Story>,
    pools: Vec<PoolStatus<'p>>,
    nodes: Vec<Node<'p>>,
    /// Pods that were moved and have no node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_pods: Vec<PendingPod<'p>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PendingPod<'p> {
    namespace: &'p str,
    name: &'p str,
    since: Timestamp,
    /// The pool and the node that its like were moved from; several where that is not known.
    pool: Option<&'p str>,
    moved_from: &'p [String],
    /// What it lacks, or what is on its way for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for: Vec<Cause>,
}

fn pending<'p>(picture: &Picture, pods: &[&'p Pending]) -> Vec<PendingPod<'p>> {
    let told = pods.iter().map(|it| PendingPod {
        namespace: &it.pod.namespace,
        name: &it.pod.name,
        since: it.since,
        pool: it.moved_from.as_deref(),
        moved_from: &it.from_nodes,
        waits_for: explain::explain_pod(
            &picture.world(),
            &it.pod.namespace,
            &it.pod.name,
            picture.at,
        )
        .map_or_else(Vec::new, |it| it.causes),
    });
    told.collect()
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PoolStatus<'p> {
    name: Option<&'p str>,
    class: Option<&'p str>,
    nodes: usize,
    in_sync: usize,
    drifted: usize,
    unknown: usize,
    going: usize,
    waiting: usize,
    /// Pods that were moved from it and have no node.
    #[serde(skip_serializing_if = "none")]
    pending: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn none(count: &usize) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn not(so: &bool) -> bool {
    !*so
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Node<'p> {
    /// In a plan: its place among those that are not replaced yet, in the order in which they are asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<usize>,
    name: &'p str,
    /// It is there no more, and its replacement is not over; or nothing of it but the object is there.
    #[serde(skip_serializing_if = "not")]
    gone: bool,
    pool: Option<&'p str>,
    class: Option<&'p str>,
    instance_type: Option<&'p str>,
    zone: Option<&'p str>,
    image: Option<String>,
    image_name: Option<&'p str>,
    /// How long it has been there; nothing of one that is gone.
    up_seconds: Option<i64>,
    /// `InSync`, `Drifted` or `Unknown`.
    drift: &'static str,
    divergences: Vec<Differs>,
    /// What would have to be known.
    missing: Vec<String>,
    cause: Option<&'static str>,
    /// `Current`, `NotOurs`, `LeftOver`, `Unknown`, `Drifted`, `Starts`, `Going` or `Waits`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'p str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    successors: Vec<&'p str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for: Vec<Cause>,
}

/// One difference: what differs, what is, what should be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Differs {
    /// A word that scripts can rely on.
    reason: &'static str,
    /// `Image`, `Class` with the field, `Label` with the key and so on.
    field: String,
    old: Option<String>,
    new: Option<String>,
    /// Of images: `upgrade`, `downgrade` or `sideways`.
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    text: String,
}

fn differs(drift: Option<&Drift>) -> Vec<Differs> {
    let all = drift.into_iter().flat_map(Drift::divergences);
    let one = |it: &Divergence| {
        let Sides { of, from, to } = it.sides();
        let direction = match it {
            Divergence::Image { direction, .. } => Some(direction.as_str()),
            Divergence::UserData { .. }
            | Divergence::Class { .. }
            | Divergence::PoolTemplate { .. }
            | Divergence::Requirement { .. }
            | Divergence::InstanceTypeGone { .. }
            | Divergence::SecurityGroups { .. }
            | Divergence::Subnet { .. }
            | Divergence::Reservation { .. }
            | Divergence::PlacementGroup { .. }
            | Divergence::KubernetesSkew { .. }
            | Divergence::Foreign(_) => None,
        };
        let (reason, text) = (it.reason(), rows::divergence(it));
        Differs { reason, field: of, old: from, new: to, direction, text }
    };
    all.map(one).collect()
}

/// What `explain` tells.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told<'p> {
    api_version: &'static str,
    kind: &'static str,
    at: Timestamp,
    /// `node`, `pool`, `pod`, `claim` or `fleet`.
    about: &'static str,
    name: &'p str,
    facts: &'p [Fact],
    /// Of a node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    divergences: Vec<Differs>,
    causes: &'p [Cause],
    next: &'p str,
}

pub(super) fn story<'p>(picture: &Picture, story: &'p Story) -> Told<'p> {
    let Story { about, name, facts, causes, next } = story;
    let drift = picture.drifts.get(name).filter(|_| *about == "node");
    Told {
        api_version: VERSION,
        kind: "Story",
        at: picture.at,
        about,
        name,
        facts,
        divergences: differs(drift),
        causes,
        next,
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeList<'p> {
    api_version: &'static str,
    kind: &'static str,
    at: Timestamp,
    /// Of a plan: what keeps all of it from going on.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
    nodes: Vec<Node<'p>>,
    /// Pods that were moved and have no node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending_pods: Vec<PendingPod<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<Expected>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Expected {
    nodes: usize,
    at_once: usize,
    seconds: i64,
}

pub(super) fn status<'p>(
    opened: &'p Opened,
    picture: &Picture,
    rows: &'p [Row<'_>],
    pools: &'p [Pool<'_>],
    homeless: &[&'p Pending],
    halt: Option<&'p Halt>,
) -> Status<'p> {
    let simulation = opened.world.simulation();
    Status {
        api_version: VERSION,
        kind: "FleetStatus",
        at: opened.world.now(),
        scenario: &opened.file.name,
        seed: opened.file.seed,
        cluster: &simulation.cluster,
        kubernetes: simulation.kubernetes.to_string(),
        region: &simulation.region,
        paused: halt.and_then(|it| it.paused.as_deref()),
        locked: halt.and_then(|it| it.locked.as_deref()),
        warnings: super::unled(opened).into_iter().chain(picture.warnings()).collect(),
        doubted: explain::doubted(&picture.doubted),
        pools: pools.iter().map(pool).collect(),
        nodes: rows.iter().map(node).collect(),
        pending_pods: pending(picture, homeless),
    }
}

pub(super) fn drift<'p>(picture: &Picture, rows: &'p [Row<'_>]) -> NodeList<'p> {
    let nodes = rows.iter().map(node).collect();
    NodeList {
        api_version: VERSION,
        kind: "DriftList",
        at: picture.at,
        warnings: None,
        nodes,
        pending_pods: Vec::new(),
        expected: None,
    }
}

pub(super) fn plan<'p>(
    opened: &Opened,
    picture: &Picture,
    rows: &'p [Row<'_>],
    homeless: &[&'p Pending],
) -> NodeList<'p> {
    let order = &picture.plan.order;
    let ranks: BTreeMap<&str, usize> = order.iter().map(String::as_str).zip(1..).collect();
    let nodes = rows.iter().map(node).map(|it| Node { rank: ranks.get(it.name).copied(), ..it });
    let nodes = nodes.collect();
    let expected = picture.plan.expected.map(|it| Expected {
        nodes: it.nodes,
        at_once: it.at_once,
        seconds: it.duration.as_secs(),
    });
    NodeList {
        api_version: VERSION,
        kind: "Plan",
        at: picture.at,
        warnings: Some(super::unled(opened).into_iter().collect()),
        nodes,
        pending_pods: pending(picture, homeless),
        expected,
    }
}

fn pool<'p>(it: &'p Pool<'_>) -> PoolStatus<'p> {
    let Pool { name, class, gone: _, nodes, in_sync, drifted, unknown, going, waiting, pending } =
        it.clone();
    PoolStatus { name, class, nodes, in_sync, drifted, unknown, going, waiting, pending }
}

fn node<'p>(row: &'p Row<'_>) -> Node<'p> {
    let (drift, missing) = match row.drift {
        Some(Drift::InSync) => ("InSync", Vec::new()),
        Some(Drift::Drifted { unchecked, .. }) => {
            ("Drifted", unchecked.iter().map(ToString::to_string).collect())
        }
        Some(Drift::Unknown(missing)) => ("Unknown", vec![missing.to_string()]),
        None => ("Unknown", Vec::new()),
    };
    let (state, phase, because, successors) = match &row.state {
        State::Fine => ("Current", None, None, Vec::new()),
        State::LeftOver(_) => ("LeftOver", None, None, Vec::new()),
        State::Away(why) => ("Current", None, Some(why.as_str()), Vec::new()),
        State::NotOurs => ("NotOurs", None, None, Vec::new()),
        State::Unknown(_) => ("Unknown", None, None, Vec::new()),
        State::Drifted => ("Drifted", None, None, Vec::new()),
        State::Starts(_) => ("Starts", None, None, Vec::new()),
        State::Going { phase, because, successors, causes: _ } => {
            ("Going", Some(*phase), Some(because.as_str()), successors.clone())
        }
        State::Waits(_) => ("Waits", None, None, Vec::new()),
    };
    let waits_for = match &row.state {
        State::Waits(reasons) => reasons.iter().flatten().cloned().collect(),
        State::Going { causes, .. } => causes.clone(),
        State::Fine
        | State::Away(_)
        | State::NotOurs
        | State::LeftOver(_)
        | State::Unknown(_)
        | State::Drifted
        | State::Starts(_) => Vec::new(),
    };
    Node {
        rank: None,
        name: row.node,
        gone: row.gone,
        pool: row.pool,
        class: row.class,
        instance_type: row.instance_type,
        zone: row.zone,
        image: row.image.map(|it| it.id.to_string()),
        image_name: row.image.and_then(|it| it.name.as_deref()),
        up_seconds: row.up_for.map(|it| it.as_secs()),
        drift,
        divergences: differs(row.drift),
        missing,
        cause: row.cause,
        state,
        phase,
        because,
        successors,
        waits_for,
    }
}
