//! Does a whole life go as it should?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use jiff::SignedDuration;
use nodemolt_sim::trace::{Actor, Fact};
use nodemolt_sim::world::{last_lines, line};
use nodemolt_sim::{World, kinds};
use support::{NEW, OLD, act, begin, hours, images, mins, pods_with_a_home};

#[test]
fn a_world_begins_with_its_nodes_and_their_pods() {
    let world = begin(1);
    assert_eq!(world.now(), world.simulation().start);
    let names: Vec<String> = world
        .objects(kinds::NODE)
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["node-0", "node-1"]);
    assert_eq!(pods_with_a_home(&world), 4);
    let born = world.simulation().start - SignedDuration::from_hours(20 * 24);
    for claim in world.objects(kinds::CLAIM) {
        assert_eq!(claim["metadata"]["creationTimestamp"], born.to_string());
    }
}

#[test]
fn a_world_in_sync_is_left_alone() {
    let mut world = begin(3);
    world.run(mins(5));
    let before = world.trace().len();
    world.run(hours(1));
    assert_eq!(written_by_us(&world, before), Vec::<String>::new());
}

#[test]
fn both_nodes_are_replaced_one_after_the_other_and_then_it_is_quiet() {
    let mut world = begin(7);
    world.run(mins(10));
    assert_eq!(images(&world), [OLD, OLD]);
    act(&mut world, &format!("publish {NEW}"));
    let mut at_once = 0;
    for _ in 0..120 {
        world.run(mins(1));
        let deleting = world.objects(kinds::CLAIM);
        let deleting = deleting.iter().filter(|it| it["metadata"]["deletionTimestamp"].is_string());
        at_once = at_once.max(deleting.count());
    }
    assert_eq!(images(&world), [NEW, NEW], "{}", last_lines(&world, 60));
    assert!(at_once <= 1, "one at a time, and {at_once} were");
    assert_eq!(pods_with_a_home(&world), 4);
    let before = world.trace().len();
    world.run(hours(1));
    assert_eq!(written_by_us(&world, before), Vec::<String>::new());
    assert_eq!(images(&world), [NEW, NEW]);
}

/// Whoever wakes the engine: a watch, a hand that is done, a time that has come.
#[test]
fn the_engine_turns_at_most_once_a_second() {
    let mut world = begin(7);
    act(&mut world, &format!("publish {NEW}"));
    world.run(mins(20));
    let turns = world.trace().iter().filter(|it| matches!(it.fact, Fact::Turned(_)));
    let turns: Vec<_> = turns.map(|it| it.at).collect();
    assert!(turns.len() > 60, "{} turns", turns.len());
    // A turn is told when it ends, and how long it takes differs; but the one after the next begins at
    // least a second after the end of this one.
    for it in turns.windows(3) {
        let apart = it[2].duration_since(it[0]);
        assert!(apart >= SignedDuration::from_secs(1), "{} and {}", it[0], it[2]);
    }
}

#[test]
fn the_same_seed_is_the_same_life_and_another_is_another() {
    let hash = |seed| {
        let mut world = begin(seed);
        act(&mut world, &format!("publish {NEW}"));
        act(&mut world, "fault lose-answers 10% for 10m");
        act(&mut world, "fault crash leader after-send");
        world.run(mins(30));
        (world.hash(), world.steps())
    };
    assert_eq!(hash(11), hash(11));
    assert_ne!(hash(11).0, hash(12).0);
}

/// What we wrote after that step, the lease apart: that is renewed for ever.
fn written_by_us(world: &World, after: usize) -> Vec<String> {
    world.trace()[after..]
        .iter()
        .filter(|it| matches!(it.by, Actor::Operator(_)))
        .filter(|it| {
            let lease =
                matches!(&it.fact, Fact::Stored { resource, .. } if *resource == kinds::LEASE);
            let idle = matches!(&it.fact, Fact::Turned(turned) if turned.writes == 0);
            let asked = matches!(it.fact, Fact::Answered { .. } | Fact::Replica { .. });
            !lease && !idle && !asked
        })
        .map(line)
        .collect()
}
