//! What does a leader know that has just begun, and what does one answer of EC2 prove?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use jiff::SignedDuration;
use nodemolt_core::drift::Drift;
use nodemolt_core::image::{Image, State};
use nodemolt_engine::Memory;
use nodemolt_engine::port::Leadership;
use support::{NEW_IMAGE, OLD_IMAGE, World, id};

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
    let mut words: Vec<&str> = Vec::new();
    for _ in 0..6 {
        let turn = world.turn();
        world.pass(1);
        for drift in turn.picture.drifts.values() {
            let word = match drift {
                Drift::InSync => "in sync",
                Drift::Drifted { .. } => "drifted",
                Drift::Unknown(_) => "unknown",
            };
            if words.last() != Some(&word) {
                words.push(word);
            }
        }
    }
    words.join(", ")
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
