//! Does a node wait for something that only somebody else lifts?
//!
//! What a replica says is not believed: the annotation must be on that pod, the budget must allow nothing by our
//! own count, the limit must be reached. What time or our own progress lifts excuses nobody.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::image::Rules;
use super::packing::{HOSTNAME, admits};
use super::read::{self, at, items, text};
use super::said::line_of;
use super::settling::{held, open};
use super::world::{Kept, POOL_LABEL, Pod, World, ends_with_machine, must_move};
use super::{Setting, budget, protection};
use crate::trace::{Image, WaitsFor};

/// Whether the world bears out that this node waits for it, for as long as nobody else does something.
pub(super) fn lasts(
    world: &World,
    setting: &Setting,
    node: &str,
    wait: &WaitsFor,
    now: Timestamp,
) -> bool {
    let named = wait.namespace.as_deref().zip(wait.name.as_deref());
    let pod = named.and_then(|(namespace, name)| world.pod(namespace, name)).map(|it| &*it.object);
    let on_node = pod.is_some_and(|it| text(it, &["spec", "nodeName"]) == Some(node));
    match wait.reason {
        "Locked" => world.ledger.object.as_ref().is_some_and(|it| budget::locked(it)),
        "Paused" => world.ledger.paused_since.is_some(),
        "OtherHand" => world.class_of(node).is_some_and(|it| !it.starts_with("nodemolt.dev/")),
        "NoImage" => no_image(world, setting, node, now),
        "ProtectedNode" => {
            let claim = world.claim_of(node).map(|it| &it.object);
            let node = world.nodes.get(node).map(|it| &it.object);
            [claim, node].into_iter().flatten().any(|it| protection::holds(it, now))
        }
        "ProtectedPod" => on_node && pod.is_some_and(|it| protection::holds(it, now)),
        "BarePod" => on_node && pod.is_some_and(|it| bare(world, node, it)),
        "PodDisruptionBudget" => match named {
            Some((namespace, name)) => {
                let key = format!("{namespace}/{name}");
                let pdb = world.others.get("PodDisruptionBudget").and_then(|it| it.get(&key));
                pdb.is_some_and(|it| allows_nothing(world, node, &it.object, now))
            }
            None => wait.name.as_deref().is_some_and(|it| ends(world, it)),
        },
        // Whether it is our fault that it has no place is another law's to say.
        "HomelessPod" => pod.is_some_and(|it| at(it, &["spec", "nodeName"]).is_none()),
        "MinimumLifetime" => young(world, node, now),
        // In which budgets one counts that is gone and bore labels of its own nobody can know for sure.
        "NoCapacity" => goes_first(world, node) && !unfollowed(world).is_empty(),
        "Limit" => {
            let nodes = nodes_apart(world, node, now).max(1);
            wait.name.as_deref().is_some_and(|it| reached(world, it, node, nodes))
        }
        "Succession" => {
            let old = world
                .replacements
                .values()
                .find(|it| text(it, &["spec", "nodeName"]) == wait.name.as_deref() && open(it));
            old.is_some_and(|it| counts_on(world, it, node) && held(world, it, now))
        }
        "SharedBudget" | "SharedWorkload" => {
            let mut records = world.replacements.values();
            let first = |it: &Value| text(it, &["spec", "nodeName"]) == wait.behind.as_deref();
            records.any(|it| first(it) && open(it) && held(world, it, now))
                || wait.name.as_deref().is_some_and(|it| last_ready(world, node, it))
        }
        _ => false,
    }
}

/// Of each pool the last node that went first and whose successor did not come, if nobody of the pool has come up since.
pub(super) fn unfollowed(world: &World) -> Vec<Unfollowed<'_>> {
    let failed = |it: &&Value| {
        let of = |key: &str| text(it, &["status", key]);
        of("phase") == Some("Failed")
            && of("order") == Some("DeleteFirst")
            && !matches!(of("cause"), Some("Delete" | "Interruption"))
            && !text(it, &["spec", "nodeClaim", "uid"])
                .is_some_and(|it| world.claims.contains_key(it))
    };
    let mut last: BTreeMap<&str, Unfollowed<'_>> = BTreeMap::new();
    for it in world.replacements.values().map(|it| &**it).filter(failed) {
        let Some(at) = read::time(it, &["status", "phaseSince"]) else { continue };
        let begun = read::time(it, &["metadata", "creationTimestamp"]).unwrap_or(at);
        let named = text(it, &["spec", "nodePool"]).zip(text(it, &["spec", "nodeName"]));
        let Some((pool, node)) = named else { continue };
        let given_up = Unfollowed { pool, node, begun, at };
        let known = last.entry(pool).or_insert(given_up);
        if known.at < at {
            *known = given_up;
        }
    }
    let came = |last: &Unfollowed<'_>, claim: &Value| {
        let mut conditions = items(claim, &["status", "conditions"]);
        read::label(claim, POOL_LABEL) == Some(last.pool)
            && read::deleting(claim).is_none()
            && conditions.any(|it| {
                text(it, &["type"]) == Some("Initialized")
                    && text(it, &["status"]) == Some("True")
                    && read::time(it, &["lastTransitionTime"]).is_some_and(|it| it > last.at)
            })
    };
    last.retain(|_, last| !world.claims.values().any(|it| came(last, &it.object)));
    last.into_values().collect()
}

/// Whether a policy says that this node goes before anybody follows it.
pub(super) fn goes_first(world: &World, node: &str) -> bool {
    let class = world.class_of(node);
    let rollout = class.as_ref().and_then(|it| world.rollout_of(it));
    rollout.is_some_and(|it| text(it, &["replacement"]) == Some("DeleteFirst"))
}

/// Whether what would follow this node boots the same as what did not come: it is of the same pool or class.
pub(super) fn alike(world: &World, last: &Unfollowed<'_>, node: &str) -> bool {
    let pool = world.nodes.get(node).and_then(|it| read::label(&it.object, POOL_LABEL));
    let class = world.last_class_of(node);
    pool == Some(last.pool) || (class.is_some() && class == world.last_class_of(last.node))
}

/// A node that went first and that nobody followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unfollowed<'a> {
    pool: &'a str,
    pub(super) node: &'a str,
    /// When it was begun to be replaced.
    pub(super) begun: Timestamp,
    /// When that was given up.
    pub(super) at: Timestamp,
}

/// Whether all pods of a workload that are ready are on this node, and one that we moved is not: only whoever looks after
/// the workload can mend that.
fn last_ready(world: &World, node: &str, workload: &str) -> bool {
    let Some((kind, (namespace, name))) =
        workload.split_once(' ').and_then(|(kind, it)| Some((kind, it.split_once('/')?)))
    else {
        return false;
    };
    let own = |it: &&Pod| {
        read::controller(&it.object).is_some_and(|it| (it.0, it.1) == (kind, name))
            && read::deleting(&it.object).is_none()
    };
    let pods = world.pods.get(namespace).into_iter().flat_map(BTreeMap::values).filter(own);
    let (ready, not): (Vec<&Pod>, Vec<&Pod>) = pods.partition(|it| it.healthy);
    let here = |it: &&Pod| text(&it.object, &["spec", "nodeName"]) == Some(node);
    let moved = |it: &&Pod| {
        let owner = read::controller(&it.object).map_or("", |it| it.2);
        let made = read::time(&it.object, &["metadata", "creationTimestamp"]);
        world.moved.get(owner).zip(made).is_some_and(|(from, made)| made >= *from)
    };
    !ready.is_empty() && ready.iter().all(here) && not.iter().any(moved)
}

/// Whether only people could let this pod leave its node: it is protected, nobody would start it again, or its
/// budget allows nothing.
pub(super) fn keeps(world: &World, node: &str, pod: &Pod, now: Timestamp) -> bool {
    let deadline = world
        .claim_of(node)
        .is_some_and(|it| at(&it.object, &["spec", "terminationGracePeriod"]).is_some());
    let mut budgets = world.all("PodDisruptionBudget").map(|it| &it.1.object);
    !deadline
        && (protection::holds(&pod.object, now)
            || bare(world, node, &pod.object)
            || budgets.any(|it| refuses(world, node, it, pod, now)))
}

/// Nobody would start it again, and nobody said that it may go all the same.
fn bare(world: &World, node: &str, pod: &Value) -> bool {
    let class = world.class_of(node);
    let rollout = class.as_deref().and_then(|it| world.rollout_of(it));
    read::controller(pod).is_none()
        && rollout.and_then(|it| text(it, &["barePods"])) != Some("Evict")
}

/// Whether a node is one of those that a Replacement puts in the place of the old one.
fn counts_on(world: &World, record: &Value, node: &str) -> bool {
    let claim = world.claim_of(node).map(|it| read::uid(&it.object));
    read::items(record, &["status", "successors"]).any(|it| text(it, &["uid"]) == claim)
}

/// A namespace that is going.
fn ends(world: &World, namespace: &str) -> bool {
    let known = world.others.get("Namespace").and_then(|it| it.get(namespace));
    known.is_none_or(|it| read::deleting(&it.object).is_some())
}

/// Whether a budget lets some pod of this node not go, by our own count.
fn allows_nothing(world: &World, node: &str, pdb: &Value, now: Timestamp) -> bool {
    let mut pods = world.pods_on(node).filter(|it| must_move(&it.object, now));
    pods.any(|it| refuses(world, node, pdb, it, now))
}

/// Whether a budget does not let this pod of a node go by our own count, or not all of those that have to go at once: they
/// end with the machine, or come back only when it has gone.
fn refuses(world: &World, node: &str, pdb: &Value, pod: &Pod, now: Timestamp) -> bool {
    let selects = |pdb: &Value, pod: &Value| {
        read::namespace(pdb) == read::namespace(pod)
            && read::selects(at(pdb, &["spec", "selector"]), read::labels(pod))
    };
    if !selects(pdb, &pod.object) {
        return false;
    }
    let all = world.pods.get(read::namespace(pdb)).into_iter().flat_map(BTreeMap::values);
    let healthy = all.filter(|it| it.healthy && selects(pdb, &it.object)).count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let desired = read::number(pdb, &["status", "desiredHealthy"]).unwrap_or(0);
    let budgets = world.all("PodDisruptionBudget");
    let several = budgets.filter(|it| selects(&it.1.object, &pod.object)).count() > 1;
    let class = world.class_of(node);
    let rollout = class.as_deref().and_then(|it| world.rollout_of(it));
    let goes_first = rollout.and_then(|it| text(it, &["replacement"])) == Some("DeleteFirst");
    let at_once = |it: &Pod| it.healthy && (goes_first || ends_with_machine(&it.object));
    let go = if at_once(pod) {
        let others = world.pods_on(node).filter(|it| at_once(it) && must_move(&it.object, now));
        others.filter(|it| selects(pdb, &it.object)).count()
    } else {
        usize::from(pod.healthy)
    };
    let left = healthy - i64::try_from(go).unwrap_or(i64::MAX);
    several || left < desired || at(pdb, &["spec", "maxUnavailable"]).is_some_and(zero)
}

fn zero(amount: &Value) -> bool {
    amount.as_i64() == Some(0) || amount.as_str().is_some_and(|it| matches!(it, "0" | "0%"))
}

/// Whether every image that its successor could boot is refused, or there is no class or pool to ask.
fn no_image(world: &World, setting: &Setting, node: &str, now: Timestamp) -> bool {
    let Some(claim) = world.claim_of(node) else { return false };
    let Some(class) = world.class_of(node) else { return false };
    let kept = world.others.get("EC2NodeClass").and_then(|it| it.get(&class));
    let pool = read::label(&claim.object, POOL_LABEL);
    let pool = pool.and_then(|it| world.others.get("NodePool")?.get(it));
    let runs = text(&claim.object, &["status", "imageID"]).and_then(|it| world.images.get(it));
    let (Some(kept), Some(_), Some(runs)) = (kept, pool, runs) else { return true };
    let policies: Vec<(&str, &Kept)> = world.policies_of(&class).collect();
    let quarantines: Vec<(&str, &Kept)> = world.all("ImageQuarantine").collect();
    let rules = Rules {
        class: &class,
        kept: Some(kept),
        policies: &policies,
        quarantines: &quarantines,
        used_is_old_enough: true,
        as_remembered: true,
    };
    let like = |it: &&Image| it.launchable && line_of(&it.name) == line_of(&runs.name);
    let mut all = world.images.values().filter(like);
    all.all(|it| rules.refusal(world, setting, it, now).is_some())
}

fn young(world: &World, node: &str, now: Timestamp) -> bool {
    let class = world.class_of(node);
    let rollout = class.as_deref().and_then(|it| world.rollout_of(it));
    let least = rollout.and_then(|it| text(it, &["minimumLifetime"])).and_then(read::duration);
    let made = world
        .claim_of(node)
        .and_then(|it| read::time(&it.object, &["metadata", "creationTimestamp"]));
    let age = made.map_or(SignedDuration::MAX, |it| now.duration_since(it));
    least.is_some_and(|it| age < it)
}

/// Whether its pool may not have another node like this one.
pub(super) fn pool_is_full(world: &World, node: &str) -> bool {
    let object = world.nodes.get(node).map(|it| &it.object);
    let pool = object.and_then(|it| read::label(it, POOL_LABEL));
    pool.is_some_and(|it| reached(world, it, node, 1))
}

/// How many new nodes the pods of this one need at least because they are to be spread over nodes. As long as it stands it
/// is one of those, without any of them in the end: so each other takes no more than the skew that is allowed.
fn nodes_apart(world: &World, node: &str, now: Timestamp) -> i128 {
    let leave =
        || world.pods_on(node).filter(|it| must_move(&it.object, now)).map(|it| &*it.object);
    let count = |many: usize| i128::try_from(many).unwrap_or(i128::MAX);
    let needs = |pod: &Value, spread: &Value| {
        let alike = |it: &Value| {
            read::namespace(it) == read::namespace(pod)
                && read::deleting(it).is_none()
                && read::selects(at(spread, &["labelSelector"]), read::labels(it))
        };
        let most = i128::from(read::number(spread, &["maxSkew"]).unwrap_or(1).max(1));
        let others = world.nodes.iter().filter(|it| it.0 != node && admits(&it.1.object, pod));
        let rooms = others.map(|(name, _)| {
            let there = world.pods_on(name).filter(|it| alike(&it.object)).count();
            (most - count(there)).max(0)
        });
        let left = count(leave().filter(|it| alike(it)).count()) - rooms.sum::<i128>();
        (left.max(0) + most - 1) / most
    };
    let spread = |it: &&Value| {
        text(it, &["whenUnsatisfiable"]) == Some("DoNotSchedule")
            && text(it, &["topologyKey"]) == Some(HOSTNAME)
            && text(it, &["nodeTaintsPolicy"]) != Some("Honor")
    };
    let all = leave().flat_map(|pod| {
        let spreads = items(pod, &["spec", "topologySpreadConstraints"]).filter(spread);
        spreads.map(move |it| needs(pod, it))
    });
    all.max().unwrap_or(0)
}

/// Whether so many nodes more would be more than a pool may have: one like this; or of several each as small as the smallest
/// that it has.
fn reached(world: &World, pool: &str, node: &str, nodes: i128) -> bool {
    let kept = world.others.get("NodePool").and_then(|it| it.get(pool));
    let limits = kept.and_then(|it| at(&it.object, &["spec", "limits"])?.as_object());
    let has = |node: &Value, resource: &str| match resource {
        "nodes" => 1000,
        _ => read::quantity(at(node, &["status", "capacity", resource])),
    };
    limits.into_iter().flatten().any(|(resource, limit)| {
        let members =
            || world.nodes.values().filter(|it| read::label(&it.object, POOL_LABEL) == Some(pool));
        let used: i128 = members().map(|it| has(&it.object, resource)).sum();
        let least = members().map(|it| has(&it.object, resource)).min().unwrap_or(0);
        let like = world.nodes.get(node).map_or(0, |it| has(&it.object, resource));
        let more = like.max(least.saturating_mul(nodes));
        used + more > read::quantity(Some(limit))
    })
}

/// Whether what is named is there, or was until a moment ago.
pub(super) fn exists(world: &World, wait: &WaitsFor, within: SignedDuration) -> bool {
    let (Some(kind), Some(name)) = (KINDS.iter().find(|it| **it == wait.kind), &wait.name) else {
        return true;
    };
    world.there(kind, wait.namespace.as_deref(), name, within)
}

/// Kinds of which there are objects.
const KINDS: [&str; 5] =
    ["Pod", "PodDisruptionBudget", "NodeDisruptionBudget", "ImagePolicy", "NodePool"];
