//! Is every packing right, and does every constraint count?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

#[path = "pack/check.rs"]
mod check;
#[path = "pack/crowds.rs"]
mod crowds;
#[path = "pack/exhaust.rs"]
mod exhaust;
#[path = "pack/worlds.rs"]
mod worlds;

use std::collections::BTreeMap;

use check::Arrival::{Awaited, First, WhenAsked};
use nodemolt_fit::pack::{Home, Opened, Packing, Place, Site, explain, pack};
use worlds::{CONSTRAINTS, Dice, TINY, USUAL, World, world};

const WORLDS: u64 = 10_000;
/// How often each kind of constraint must decide where pods go.
const DECIDING: usize = 100;

fn packed(world: &World) -> Packing {
    pack(&world.pods, &world.nodes, &world.pools)
}

fn homes(packing: &Packing) -> BTreeMap<String, Home> {
    packing.placed.iter().map(|it| (it.pod.to_string(), it.home.clone())).collect()
}

#[test]
fn no_packing_breaks_a_rule() {
    let mut broken = Vec::new();
    for seed in 0..WORLDS {
        let world = world(seed, USUAL);
        let packing = packed(&world);
        let faults = check::faults(&world.pods, &world.nodes, &world.pools, &packing, &[0, 1, 5]);
        if !faults.is_empty() {
            broken.push(format!("world {seed}: {}", faults.join("\n    ")));
        }
        if broken.len() > 5 {
            break;
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Packings of which only the homes are known are judged, too: those of Karpenter, in `cargo xtask bench pack`.
#[test]
fn a_right_packing_is_right_in_some_order_and_a_wrong_one_in_none() {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..500 {
        let world = world(seed, USUAL);
        let mut packing = packed(&world);
        let stuck = |it: &Packing| {
            check::stuck(&world.pods, &world.nodes, &world.pools, it, (1, WhenAsked))
        };
        assert_eq!(stuck(&packing), Vec::<String>::new(), "world {seed}");
        packing.placed.reverse();
        right += usize::from(stuck(&packing).is_empty());
        // All on one node that exists: what asks for room or for distance cannot be bound there.
        let Some(first) = world.nodes.iter().find(|it| !it.leaving) else { continue };
        for it in &mut packing.placed {
            it.home = Home::Node(first.name.clone());
        }
        wrong += usize::from(packing.placed.len() > 20 && stuck(&packing).is_empty());
    }
    // Going round from the wrong end does not always find one.
    assert!(right > 400, "an order was found in {right} worlds");
    assert_eq!(wrong, 0, "all pods on one node would be right");
}

/// A new node is a domain to be spread over as soon as it stands, and successors stand before anybody moves.
#[test]
fn hardly_anybody_who_moves_is_stuck_once_all_new_nodes_are_there() {
    let (mut all, mut stuck) = (0, Vec::new());
    for seed in 0..3_000 {
        let mut world = world(seed, USUAL);
        for it in &mut world.pods {
            it.order = 1;
        }
        let packing = packed(&world);
        let (pods, nodes, pools) = (&world.pods, &world.nodes, &world.pools);
        let told = check::stuck(pods, nodes, pools, &packing, (1, First));
        all += packing.placed.len();
        stuck.extend(told.into_iter().map(|it| format!("world {seed}: {it}")));
    }
    println!("{} of {all} pods are stuck", stuck.len());
    assert!(stuck.len() * 10_000 <= all, "{} of {all} pods:\n{}", stuck.len(), stuck.join("\n"));
}

/// Who is pending is bound to a node that exists before any new one is there, unless it needs one of those: as a domain to be
/// spread over, or for who is there.
#[test]
fn hardly_anybody_who_is_pending_is_stuck_once_all_new_nodes_are_there() {
    let (mut all, mut stuck) = (0, Vec::new());
    for seed in 0..WORLDS {
        let world = world(seed, USUAL);
        let packing = packed(&world);
        let (pods, nodes, pools) = (&world.pods, &world.nodes, &world.pools);
        let told = check::stuck(pods, nodes, pools, &packing, (1, Awaited));
        all += packing.placed.len();
        stuck.extend(told.into_iter().map(|it| format!("world {seed}: {it}")));
    }
    println!("{} of {all} pods are stuck", stuck.len());
    assert!(stuck.len() * 10_000 <= all, "{} of {all} pods:\n{}", stuck.len(), stuck.join("\n"));
}

#[test]
fn every_kind_of_constraint_decides_where_pods_go() {
    let mut decided: BTreeMap<&str, usize> = CONSTRAINTS.iter().map(|it| (it.0, 0)).collect();
    for seed in 0..WORLDS {
        let world = world(seed, USUAL);
        let mut before: Option<Packing> = None;
        for (name, take_out) in CONSTRAINTS {
            let count = decided.get_mut(name).unwrap();
            if *count >= DECIDING {
                continue;
            }
            let mut without = world.clone();
            take_out(&mut without);
            let before = before.get_or_insert_with(|| packed(&world));
            let after = packed(&without);
            *count += usize::from(homes(before) != homes(&after));
        }
    }
    let few: Vec<_> = decided.iter().filter(|(_, count)| **count < DECIDING).collect();
    assert!(few.is_empty(), "these decide too rarely: {few:?}");
}

#[test]
fn the_order_of_input_does_not_matter() {
    for seed in 0..1_000 {
        let world = world(seed, USUAL);
        let before = packed(&world);
        let mut shuffled = world.clone();
        let mut dice = Dice(seed);
        dice.shuffle(&mut shuffled.pods);
        dice.shuffle(&mut shuffled.nodes);
        dice.shuffle(&mut shuffled.pools);
        for node in &mut shuffled.nodes {
            dice.shuffle(&mut node.pods);
        }
        for pool in &mut shuffled.pools {
            let machines: &mut Vec<_> = std::sync::Arc::make_mut(&mut pool.machines);
            dice.shuffle(machines);
        }
        assert_eq!(before, packed(&shuffled), "world {seed}");
    }
}

#[test]
fn hardly_a_pod_is_left_that_could_have_been_placed() {
    let (mut searched, mut pods, mut needless) = (0, 0, 0);
    let mut seeds = Vec::new();
    for seed in 0..6_000 {
        let world = world(seed, TINY);
        let packing = packed(&world);
        let placed = packing.placed.len();
        // Where all that may be placed are placed, nothing can be better.
        let placeable = world
            .pods
            .iter()
            .filter(|it| it.demand.gates.is_empty() && it.demand.unmodelled.is_empty());
        let most = if placed == placeable.count() { Some(placed) } else { exhaust::most(&world) };
        let Some(most) = most else { continue };
        searched += 1;
        pods += world.pods.len();
        if most > placed {
            needless += most - placed;
            seeds.push(seed);
        }
    }
    println!("{searched} worlds, {pods} pods, {needless} needlessly unplaced, in {seeds:?}");
    assert!(searched > 4_000, "only {searched} worlds could be searched");
    assert!(needless * 100 <= pods, "{needless} of {pods} pods, in worlds {seeds:?}");
}

/// The same where room is short and pods cling to each other, which greedy packing does badly.
#[test]
fn hardly_a_pod_that_must_be_near_others_is_left_that_could_have_been_placed() {
    for crowd in crowds::ALL {
        let (mut pods, mut needless, mut seeds) = (0, 0, Vec::new());
        for seed in 0..1_500 {
            let world = crowds::world(seed, crowd);
            let packing = packed(&world);
            let faults = check::faults(&world.pods, &world.nodes, &world.pools, &packing, &[0]);
            assert_eq!(faults, Vec::<String>::new(), "{crowd:?}, world {seed}");
            let placed = packing.placed.len();
            pods += world.pods.len();
            let most =
                if placed == world.pods.len() { Some(placed) } else { exhaust::most(&world) };
            let most = most.unwrap_or_else(|| panic!("{crowd:?}, world {seed} is too large"));
            if most > placed {
                needless += most - placed;
                seeds.push(seed);
            }
        }
        println!("{crowd:?}: {pods} pods, {needless} needlessly unplaced, in {seeds:?}");
        assert!(
            needless * 100 <= pods,
            "{crowd:?}: {needless} of {pods} pods, in worlds {seeds:?}"
        );
    }
}

/// The same where some are more important than others: none of those is left for the sake of one that is not, and none of
/// the others for the way in which they were placed.
#[test]
fn hardly_a_pod_is_left_that_its_priority_leaves_room_for() {
    for crowd in crowds::ALL {
        let (mut pods, mut needless, mut seeds) = (0, 0, Vec::new());
        for seed in 0..1_500 {
            let world = crowds::ranked(seed, crowd);
            let packing = packed(&world);
            let faults = check::faults(&world.pods, &world.nodes, &world.pools, &packing, &[0]);
            assert_eq!(faults, Vec::<String>::new(), "{crowd:?}, world {seed}");
            pods += world.pods.len();
            if packing.unplaced.is_empty() {
                continue;
            }
            let most = exhaust::most_by_priority(&world);
            let most = most.unwrap_or_else(|| panic!("{crowd:?}, world {seed} is too large"));
            let mut placed: BTreeMap<_, usize> = BTreeMap::new();
            for pod in &world.pods {
                let has = packing.placed.iter().any(|it| it.pod == pod.id());
                *placed.entry(std::cmp::Reverse(pod.demand.priority)).or_default() +=
                    usize::from(has);
            }
            let lacking =
                most.iter().zip(placed.values()).map(|(most, has)| most.saturating_sub(*has));
            let lacking: usize = lacking.sum();
            if lacking > 0 {
                needless += lacking;
                seeds.push(seed);
            }
        }
        println!("{crowd:?}: {pods} pods, {needless} needlessly unplaced, in {seeds:?}");
        assert!(
            needless * 100 <= pods,
            "{crowd:?}: {needless} of {pods} pods, in worlds {seeds:?}"
        );
    }
}

/// Greedy packing promises less than one would think: a node more can lead a pod to a place where it
/// is in the way of two others. That must stay rare.
#[test]
fn another_empty_node_hardly_ever_places_fewer_pods() {
    let (mut worse, mut tried) = (Vec::new(), 0);
    for seed in 0..2_000 {
        let mut world = world(seed, USUAL);
        let before = packed(&world).placed.len();
        let Some(mut more) = world.nodes.first().cloned() else { continue };
        more.name = "node-more".to_owned();
        more.labels.insert("kubernetes.io/hostname".to_owned(), more.name.clone());
        more.pods.clear();
        more.leaving = false;
        world.nodes.push(more);
        tried += 1;
        if packed(&world).placed.len() < before {
            worse.push(seed);
        }
    }
    println!("{} of {tried} worlds place fewer pods with a node more: {worse:?}", worse.len());
    assert!(worse.len() * 100 <= 2 * tried, "{} of {tried} worlds: {worse:?}", worse.len());
}

/// An account of a pod and its packing tell the same story: who has a place has nothing in its way
/// there, and who has none has something in its way everywhere.
#[test]
fn the_account_of_a_pod_agrees_with_its_packing() {
    let (mut placed, mut left, mut new) = (0, 0, 0);
    for seed in 0..600 {
        let world = world(seed, USUAL);
        let at = usize::try_from(seed).unwrap() % world.pods.len().max(1);
        let Some(pod) = world.pods.get(at) else { continue };
        let sites: Vec<Site> = world.nodes.iter().cloned().map(Site::new).collect();
        let (packing, account) = explain(&world.pods, &sites, &world.pools, &pod.id());
        assert_eq!(packing, packed(&world), "world {seed}");
        let Some(account) = account else {
            assert!(!pod.demand.gates.is_empty() || !pod.demand.unmodelled.is_empty());
            continue;
        };
        let stay = world.nodes.iter().filter(|it| !it.leaving).count();
        let nodes = account.places.iter().filter(|it| matches!(it.place, Place::Node(_))).count();
        assert_eq!(nodes, stay, "world {seed}: a node is forgotten");
        let free = |place: &Place| {
            account.places.iter().any(|it| it.place == *place && it.obstacles.is_empty())
        };
        match packing.placed.iter().find(|it| it.pod == pod.id()).map(|it| &it.home) {
            None => {
                left += 1;
                let open = account.places.iter().find(|it| it.obstacles.is_empty());
                // A term without expressions admits no node, and nothing can be done about it.
                let hopeless = |it: &nodemolt_fit::selector::NodeTerm| {
                    it.labels.is_empty() && it.fields.is_empty()
                };
                let terms = pod.demand.node_terms.iter().flatten();
                assert!(
                    open.is_none()
                        || terms.clone().any(hopeless)
                        || pod.demand.node_terms == Some(Vec::new()),
                    "world {seed}: {open:?} would do"
                );
                assert!(
                    account.opened.iter().all(|(_, it)| *it != Opened::WouldDo),
                    "world {seed}"
                );
            }
            Some(Home::Node(name)) => {
                placed += 1;
                assert!(free(&Place::Node(name.clone())), "world {seed}: not on {name}");
            }
            Some(Home::New(at)) => {
                new += 1;
                let pool = Place::Pool(packing.new_nodes[*at].pool.clone());
                let opened = account.opened.contains(&(*at, Opened::WouldDo));
                assert!(opened || free(&pool), "world {seed}: neither {at} nor {pool}");
                let nodes = |it: &&nodemolt_fit::pack::Miss| matches!(it.place, Place::Node(_));
                let mut nodes = account.places.iter().filter(nodes);
                assert!(nodes.all(|it| !it.obstacles.is_empty()), "world {seed}: a node would do");
            }
        }
    }
    println!("{placed} on nodes, {new} on new ones, {left} nowhere");
    assert!(placed > 100 && new > 50 && left > 100, "{placed} {new} {left}");
}
