//! What does a leader know that has just begun, and what does one answer of EC2 prove?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use nodemolt_core::drift::Drift;
use nodemolt_core::image::{Image, State};
use nodemolt_core::replace::{Because, Phase, Replacement};
use nodemolt_engine::port::Leadership;
use nodemolt_engine::{Done, Errand, Memory, Turn};
use nodemolt_fit::Quantity;
use nodemolt_fit::pod::Demand;
use nodemolt_fit::pool::NODES;
use support::{NEW_IMAGE, OLD_IMAGE, POOL, World, errands, id};

/// A little more than lies between two answers about images.
const REFRESH: i64 = 301;

/// Somebody else leads, with nothing in memory.
fn take_over(world: &mut World) {
    world.memory = Memory::default();
    lead(world, 2);
}

fn lead(world: &mut World, transitions: u64) {
    let until = world.now + SignedDuration::from_hours(1000);
    world.memory.lead(&Leadership::Leads { until, transitions });
}

/// The answers about all nodes, in a word, over a few turns. The same word twice is told once.
fn told(world: &mut World) -> String {
    let mut all: Vec<&str> = Vec::new();
    for _ in 0..6 {
        let turn = world.turn();
        world.pass(1);
        for drift in turn.picture.drifts.values() {
            let answer = match drift {
                Drift::InSync => "in sync",
                Drift::Drifted { .. } => "drifted",
                Drift::Unknown(_) => "unknown",
            };
            if all.last() != Some(&answer) {
                all.push(answer);
            }
        }
    }
    all.join(", ")
}

/// Everything is asked again.
fn refresh(world: &mut World) {
    world.pass(REFRESH);
    world.turn();
    world.pass(1);
}

fn hide(world: &mut World) -> Image {
    world.images.pop().unwrap()
}

#[test]
fn what_one_answer_lacks_drifts_nobody() {
    let mut world = World::new(2, 2, &[NEW_IMAGE]);
    assert_eq!(told(&mut world), "unknown, in sync");
    let newest = hide(&mut world);
    refresh(&mut world);
    assert_eq!(told(&mut world), "in sync");
    // It was a list that lagged.
    world.images.push(newest);
    refresh(&mut world);
    assert_eq!(told(&mut world), "in sync");
    // What two lack that follow each other is gone.
    hide(&mut world);
    refresh(&mut world);
    assert_eq!(told(&mut world), "in sync");
    refresh(&mut world);
    assert_eq!(told(&mut world), "drifted");
}

#[test]
fn nor_where_it_is_the_first_of_a_new_leader() {
    let mut world = World::new(2, 2, &[NEW_IMAGE]);
    told(&mut world);
    let newest = hide(&mut world);
    take_over(&mut world);
    assert_eq!(told(&mut world), "unknown");
    world.images.push(newest);
    refresh(&mut world);
    assert_eq!(told(&mut world), "in sync");
}

/// Of an image that nobody remembers it is known that nodes run it.
#[test]
fn nor_where_nobody_has_ever_seen_it() {
    let mut world = World::new(2, 2, &[NEW_IMAGE]);
    hide(&mut world);
    assert_eq!(told(&mut world), "unknown");
    refresh(&mut world);
    assert_eq!(told(&mut world), "drifted");
}

#[test]
fn what_is_gone_is_gone_for_whoever_leads() {
    let mut world = World::new(2, 2, &[NEW_IMAGE]);
    told(&mut world);
    hide(&mut world);
    for _ in 0..2 {
        refresh(&mut world);
        told(&mut world);
    }
    let known = world.cluster.view.borrow().images[&id(NEW_IMAGE)].clone();
    assert!(known.not_listed_since.is_some() && known.withdrawn.is_some(), "{known:?}");
    take_over(&mut world);
    assert_eq!(told(&mut world), "unknown, drifted", "there is nothing to wait for");
}

#[test]
fn a_withdrawal_that_was_taken_back_stays_so() {
    for disabled in [true, false] {
        let mut world = World::new(2, 2, &[NEW_IMAGE]);
        told(&mut world);
        let image = hide(&mut world);
        if disabled {
            world.images.push(Image { state: State::Disabled, ..image.clone() });
        }
        for _ in 0..2 {
            refresh(&mut world);
            told(&mut world);
        }
        assert_eq!(told(&mut world), "drifted");
        world.images.retain(|it| it.id == id(OLD_IMAGE));
        world.images.push(image);
        refresh(&mut world);
        assert_eq!(told(&mut world), "in sync");
        let known = world.cluster.view.borrow().images[&id(NEW_IMAGE)].clone();
        assert!(known.withdrawn.is_none() && known.returned.is_some(), "{known:?}");
        take_over(&mut world);
        assert_eq!(told(&mut world), "unknown, in sync");
        world.written();
        refresh(&mut world);
        assert_eq!(told(&mut world), "in sync");
        assert!(world.written().is_empty(), "a world in sync is written to never");
    }
}

/// One who led, followed and leads again has old answers in memory.
#[test]
fn what_was_heard_in_an_earlier_term_proves_nothing() {
    let mut world = World::new(2, 2, &[NEW_IMAGE]);
    let newest = hide(&mut world);
    for claim in world.cluster.view.borrow_mut().claims.values_mut() {
        claim.image = Some(id(OLD_IMAGE));
    }
    assert_eq!(told(&mut world), "unknown, in sync");
    world.memory.lead(&Leadership::Follows { leader: "operator-1".to_owned() });
    world.turn();
    // Another leader finds the new image and moves the fleet to it.
    world.images.push(newest);
    for claim in world.cluster.view.borrow_mut().claims.values_mut() {
        claim.image = Some(id(NEW_IMAGE));
    }
    lead(&mut world, 3);
    assert_eq!(told(&mut world), "unknown, in sync");
}

/// A node with pods that fit nowhere else, and a replacement of it whose successor was decided. With its claim, as it
/// would be made.
fn followed() -> World {
    first_followed(1)
}

/// So many nodes with a pod on each, and a successor of the first is about to be made.
fn first_followed(nodes: usize) -> World {
    let mut world = World::new(nodes, nodes, &[OLD_IMAGE]);
    for _ in 0..8 {
        let turn = world.turn();
        world.pass(1);
        if makes(&turn) {
            return world;
        }
    }
    panic!("nobody follows: {:?}", world.cluster.records.borrow().replacements);
}

fn makes(turn: &Turn) -> bool {
    errands(turn).iter().any(|it| it == "make a claim")
}

/// The successor is made, and no watch tells of it.
fn make(world: &mut World) {
    let turn = world.turn();
    let made = turn.acts.iter().find(|it| matches!(it.errand, Errand::MakeClaim { .. })).unwrap();
    world.memory.done(made, Done::Made(Ok("uid-successor".to_owned())), world.now);
    world.pass(1);
    world.turn();
    let uid = replacement(world).successors[0].uid.clone();
    assert_eq!(uid.as_deref(), Some("uid-successor"), "it stands in the record");
}

fn replacement(world: &World) -> Replacement {
    let records = world.cluster.records.borrow();
    records.replacements.values().next().unwrap().replacement.clone()
}

#[test]
fn a_new_leader_makes_nobody_before_ec2_has_answered() {
    let mut world = followed();
    take_over(&mut world);
    let blind = world.turn_alone();
    assert!(!makes(&blind), "{:?}", errands(&blind));
    world.answer_all(&blind);
    world.pass(1);
    let made = (0..4).any(|_| {
        let turn = world.turn();
        world.pass(1);
        makes(&turn)
    });
    assert!(made, "{:?}", replacement(&world));
}

/// Seed 10030: a budget counted on one of its pool, and whoever led next found another pool that its pods could be in.
#[test]
fn a_new_leader_makes_a_successor_in_the_pool_that_was_decided() {
    let mut world = followed();
    {
        let mut view = world.cluster.view.borrow_mut();
        let mut other = view.pools.get(POOL).unwrap().clone();
        "heavier".clone_into(&mut other.name);
        "heavier".clone_into(&mut other.fit.name);
        "uid-heavier".clone_into(&mut other.uid);
        other.fit.weight = 100;
        view.pools.insert(other.name.clone(), other);
    }
    take_over(&mut world);
    let made = (0..6).find_map(|_| {
        let turn = world.turn();
        world.pass(1);
        turn.acts.into_iter().find_map(|it| {
            let Errand::MakeClaim { claim, .. } = it.errand else { return None };
            Some(claim.pool)
        })
    });
    assert_eq!(made.as_deref(), Some(POOL), "{:?}", replacement(&world));
}

#[test]
fn a_successor_that_a_watch_has_not_told_a_new_leader_of_is_not_gone() {
    let mut world = followed();
    make(&mut world);
    take_over(&mut world);
    for _ in 0..50 {
        world.turn();
        world.pass(1);
        assert_eq!(replacement(&world).phase, Phase::Launching, "{:?}", replacement(&world));
    }
    // It never comes.
    for _ in 0..20 {
        world.turn();
        world.pass(1);
    }
    let because = Because::SuccessorGone { claim: replacement(&world).successors[0].claim.clone() };
    assert_eq!(replacement(&world).because, because);
}

#[test]
fn a_grant_that_somebody_took_out_of_the_ledger_is_written_again() {
    let mut world = followed();
    make(&mut world);
    let granted = world.cluster.records.borrow().ledger.grants.clone();
    world.cluster.records.borrow_mut().ledger.grants.clear();
    world.turn();
    assert_eq!(replacement(&world).phase, Phase::Launching, "{:?}", replacement(&world));
    let again = world.cluster.records.borrow().ledger.grants.clone();
    let told = |it: &std::collections::BTreeMap<String, nodemolt_engine::record::Granted>| {
        it.iter().map(|(name, it)| (name.clone(), it.node.clone(), it.since)).collect::<Vec<_>>()
    };
    assert_eq!(told(&again), told(&granted));
}

/// For one for which nothing was done yet the place may be somebody else's by now. It begins anew.
#[test]
fn without_a_grant_nothing_is_begun_and_that_is_told() {
    let mut world = followed();
    world.cluster.records.borrow_mut().ledger.grants.clear();
    world.turn();
    assert_eq!(replacement(&world).because, Because::NotGranted);
    assert_eq!(replacement(&world).because.to_string(), "the ledger has no grant for it");
}

/// Nobody else gets the place of one whose grant is about to be written again.
#[test]
fn nobody_begins_in_the_place_of_a_grant_that_was_lost() {
    let mut world = first_followed(3);
    make(&mut world);
    world.cluster.records.borrow_mut().ledger.grants.clear();
    for _ in 0..5 {
        world.turn();
        world.pass(1);
        let records = world.cluster.records.borrow();
        assert_eq!(records.ledger.grants.len(), 1);
        assert_eq!(records.replacements.len(), 1);
    }
}

/// Two nodes that a person deletes. The successor of one of them is made; then the pool may have no other.
#[test]
fn what_an_earlier_leader_has_made_counts_towards_the_limit_before_it_is_seen() {
    let mut world = World::new(2, 1, &[OLD_IMAGE]);
    world.turn();
    {
        let mut view = world.cluster.view.borrow_mut();
        let pods: Vec<_> = view.pods.iter().cloned().collect();
        for mut pod in pods {
            let unmodelled = vec!["a resource claim".to_owned()];
            pod.fit.demand = Arc::new(Demand { unmodelled, ..Demand::clone(&pod.fit.demand) });
            view.pods.insert(pod);
        }
        let since = world.now;
        for claim in view.claims.values_mut() {
            claim.deleting_since = Some(since);
        }
    }
    let mut asked = BTreeSet::new();
    for _ in 0..5 {
        let turn = world.turn();
        for act in &turn.acts {
            let Errand::MakeClaim { claim, .. } = &act.errand else { continue };
            asked.insert(claim.name.clone());
            if asked.first() == Some(&claim.name) {
                let uid = format!("uid-{}", claim.name);
                world.memory.done(act, Done::Made(Ok(uid)), world.now);
            }
        }
        world.pass(1);
    }
    assert_eq!(asked.len(), 2, "{:?}", world.cluster.records.borrow().replacements);
    let limit = Quantity::from_units(3);
    let mut view = world.cluster.view.borrow_mut();
    view.pools.get_mut(POOL).unwrap().fit.limits.insert(NODES.to_owned(), limit);
    drop(view);
    take_over(&mut world);
    for _ in 0..20 {
        let turn = world.turn();
        world.pass(1);
        assert!(!makes(&turn), "{:?}", errands(&turn));
    }
}
