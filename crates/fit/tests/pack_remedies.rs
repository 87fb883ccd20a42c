//! Does it help to do what would have to change?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

#[path = "pack/worlds.rs"]
#[expect(dead_code, reason = "only worlds are drawn here")]
mod worlds;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_fit::Quantity;
use nodemolt_fit::node::Node;
use nodemolt_fit::pack::{Miss, Obstacle, Packing, Place, Why, follow, pack};
use nodemolt_fit::pod::{Demand, PodId};
use nodemolt_fit::pool::{Machine, Pool};
use nodemolt_fit::requirement::Written;
use worlds::{Size, TINY, USUAL, World, world};

fn packed(world: &World) -> Packing {
    pack(&world.pods, &world.nodes, &world.pools)
}

fn nearest(packing: &Packing, pod: &PodId) -> Option<Miss> {
    let unplaced = packing.unplaced.iter().find(|it| it.pod == *pod)?;
    match &unplaced.why {
        Why::NoPlace { nearest } => nearest.clone(),
        Why::Gated(_) | Why::Unmodelled(_) => None,
    }
}

fn each_demand(world: &mut World, change: impl Fn(&mut Demand)) {
    let daemons = world.pools.iter_mut().flat_map(|it| it.daemons.iter_mut());
    let running = world.nodes.iter_mut().flat_map(|it| it.pods.iter_mut());
    for pod in world.pods.iter_mut().chain(running).chain(daemons) {
        change(Arc::make_mut(&mut pod.demand));
    }
}

fn without(demand: &mut Demand, asked: &Written) {
    demand
        .node_selector
        .retain(|key, value| *key != asked.key || asked.values != std::slice::from_ref(value));
    for term in demand.node_terms.iter_mut().flatten() {
        term.labels.retain(|it| it != asked);
        term.fields.retain(|it| it != asked);
    }
    let empty =
        |it: &nodemolt_fit::selector::NodeTerm| it.labels.is_empty() && it.fields.is_empty();
    if demand.node_terms.iter().flatten().any(empty) {
        demand.node_terms = None;
    }
}

fn more(amounts: &mut BTreeMap<String, Quantity>, name: &str, by: Quantity) {
    let amount = amounts.entry(name.to_owned()).or_default();
    *amount = amount.saturating_add(by);
}

fn each_machine(pool: &mut Pool, change: impl Fn(&mut Machine)) {
    Arc::make_mut(&mut pool.machines).iter_mut().for_each(change);
}

/// Make the change that is told, for this pod and at this place. Whether anybody could.
fn lift(world: &mut World, pod: &PodId, place: &Place, obstacle: &Obstacle) -> bool {
    let named = |it: &&mut Node| *place == Place::Node(it.name.clone());
    let drawn = |it: &&mut Pool| *place == Place::Pool(it.name.clone());
    let node = world.nodes.iter_mut().find(named);
    let pool = world.pools.iter_mut().find(drawn);
    let own = world.pods.iter_mut().find(|it| it.id() == *pod).unwrap();
    let demand: &mut Demand = Arc::make_mut(&mut own.demand);
    match obstacle {
        Obstacle::Taint(taint) if taint.away().is_some() => {
            if let Some(node) = node {
                node.taints.retain(|it| it != taint);
                (node.unschedulable, node.closed) = (false, false);
            }
            if let Some(pool) = pool {
                pool.taints.retain(|it| it != taint);
            }
        }
        Obstacle::Taint(taint) => {
            let value = nodemolt_fit::taint::Tolerated::Equal(taint.value.clone());
            let key = Some(taint.key.clone());
            let effect = Some(taint.effect);
            demand.tolerations.push(nodemolt_fit::taint::Toleration { key, value, effect });
        }
        Obstacle::Label(asked) | Obstacle::NotOffered(asked) => without(demand, asked),
        Obstacle::VolumeElsewhere { handle, .. } => {
            demand
                .volumes
                .iter_mut()
                .filter(|it| it.handle == *handle)
                .for_each(|it| it.reach = None);
        }
        Obstacle::VolumesApart { handles } => {
            let meant = demand.volumes.iter_mut().filter(|it| handles.contains(&it.handle));
            meant.for_each(|it| it.reach = None);
        }
        Obstacle::VolumesFull { driver, over } => {
            let over = u32::try_from(*over).unwrap();
            let raise = |it: &mut BTreeMap<String, u32>| *it.get_mut(driver).unwrap() += over;
            if let Some(node) = node {
                raise(&mut node.volume_limits);
            }
            if let Some(pool) = pool {
                each_machine(pool, |it| raise(&mut it.volume_limits));
            }
        }
        Obstacle::Short { resource, by } | Obstacle::TooSmall { resource, by } => {
            if let Some(node) = node {
                more(&mut node.allocatable, resource, *by);
            }
            if let Some(pool) = pool {
                each_machine(pool, |it| more(&mut it.allocatable, resource, *by));
            }
        }
        Obstacle::TooLargeTogether { resource, by, .. } => {
            each_machine(pool.unwrap(), |it| more(&mut it.allocatable, resource, *by));
        }
        Obstacle::HostPortTaken(port) => demand.host_ports.retain(|it| it != port),
        Obstacle::LacksTopology { key } => {
            demand.spread.retain(|it| it.topology_key != *key);
            demand.affinity.retain(|it| it.topology_key != *key);
        }
        Obstacle::NobodyNear { key, .. } => demand.affinity.retain(|it| it.topology_key != *key),
        Obstacle::TooNear { key, .. } => {
            demand.anti_affinity.retain(|it| it.topology_key != *key);
        }
        Obstacle::Unwelcome { key, .. } => {
            let key = key.clone();
            each_demand(world, |it| it.anti_affinity.retain(|it| it.topology_key != key));
        }
        Obstacle::Skewed { key, skew, .. } => {
            let meant = demand.spread.iter_mut().filter(|it| it.topology_key == *key);
            meant.for_each(|it| it.max_skew = it.max_skew.max(*skew));
        }
        Obstacle::NoCapacity => {
            let pool = pool.unwrap();
            each_machine(pool, |it| {
                it.offerings.iter_mut().for_each(|it| it.available = true);
                it.offerings.iter_mut().for_each(|it| it.remaining = it.remaining.map(|_| 99));
            });
        }
        Obstacle::NoImage => each_machine(pool.unwrap(), |it| {
            it.offerings.iter_mut().for_each(|it| it.imageless = false);
        }),
        Obstacle::MinValues { key, have, .. } => {
            let all = pool.unwrap().requirements.iter_mut().filter(|it| it.key == *key);
            all.for_each(|it| it.min_values = it.min_values.map(|need| need.min(*have)));
        }
        Obstacle::PoolLimit { resource, by } => more(&mut pool.unwrap().limits, resource, *by),
        Obstacle::Idle(_) => pool.unwrap().idle = None,
        Obstacle::Unread(_) | Obstacle::NoSuchMachine => return false,
    }
    true
}

#[derive(Debug, Default)]
struct Tally {
    followed: usize,
    vague: usize,
    in_vain: Vec<String>,
}

fn tally(size: Size, seeds: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let world = world(seed, size);
        let before = packed(&world);
        let mut told: BTreeSet<String> = BTreeSet::new();
        for unplaced in &before.unplaced {
            let Some(miss) = nearest(&before, &unplaced.pod) else { continue };
            // One of those of which the same is told.
            if miss.obstacles.is_empty() || !told.insert(format!("{miss:?}")) {
                continue;
            }
            let mut changed = world.clone();
            let mut all = miss.obstacles.iter();
            if !all.all(|it| lift(&mut changed, &unplaced.pod, &miss.place, it)) {
                tally.vague += 1;
                continue;
            }
            tally.followed += 1;
            let after = packed(&changed);
            let more = after.placed.len() > before.placed.len();
            let Some(next) = nearest(&after, &unplaced.pod).filter(|_| !more) else { continue };
            let said = |miss: &Miss| {
                let all = miss.obstacles.iter().map(ToString::to_string).collect::<Vec<_>>();
                format!("{}: {}", miss.place, all.join("; "))
            };
            let told = format!("{}, told {}, then {}", unplaced.pod, said(&miss), said(&next));
            tally.in_vain.push(format!("world {seed}: {told}"));
        }
    }
    tally
}

/// What is told to be in the way is all that is in the way: whoever lifts it has a place for the pod, or for another one that
/// took it first.
#[test]
fn whoever_lifts_what_is_in_the_way_has_placed_a_pod() {
    for (size, seeds) in [(TINY, 2_000), (USUAL, 300)] {
        let Tally { followed, vague, in_vain } = tally(size, seeds);
        println!("{size:?}: {followed} followed, {vague} vague, {} in vain", in_vain.len());
        assert!(in_vain.len() * 100 <= 5 * followed, "{}", in_vain.join("\n"));
    }
}

/// What is told to several is done once for all of them, as `nodemolt pack` tries it before it says how many that helps.
#[test]
fn whoever_does_for_all_what_is_told_to_all_has_placed_a_pod() {
    for (size, seeds) in [(TINY, 2_000), (USUAL, 300)] {
        let (mut followed, mut in_vain) = (0, Vec::new());
        for seed in 0..seeds {
            let world = world(seed, size);
            let before = packed(&world);
            let mut groups: BTreeMap<String, (Miss, BTreeSet<PodId>)> = BTreeMap::new();
            for unplaced in &before.unplaced {
                let Some(miss) = nearest(&before, &unplaced.pod) else { continue };
                let group = groups.entry(format!("{miss:?}")).or_insert((miss, BTreeSet::new()));
                group.1.insert(unplaced.pod.clone());
            }
            for (miss, who) in groups.into_values().filter(|it| !it.0.obstacles.is_empty()) {
                let World { mut pods, mut nodes, mut pools } = world.clone();
                if !follow(&miss, &who, &mut pods, &mut nodes, &mut pools) {
                    continue;
                }
                followed += 1;
                let after = pack(&pods, &nodes, &pools);
                let more = after.placed.len() > before.placed.len();
                if !more && !after.placed.iter().any(|it| who.contains(&it.pod)) {
                    in_vain.push(format!("world {seed}: {who:?}: {miss:?}"));
                }
            }
        }
        println!("{size:?}: {followed} followed for all, {} in vain", in_vain.len());
        assert!(followed > 100, "{followed}");
        assert!(in_vain.len() * 100 <= 5 * followed, "{}", in_vain.join("\n"));
    }
}
