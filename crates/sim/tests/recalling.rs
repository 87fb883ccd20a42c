//! Does whoever leads next come to the same answer?
//!
//! The newest release was deregistered, and the fleet has gone back to the one before. What the first leader knew of it
//! the next one has to know, too: the pointer goes on naming it.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_sim::world::last_lines;
use nodemolt_sim::{World, kinds};
use support::{NEW, OLD, act, begin, images, mins};

/// Everybody is on the old release again.
fn gone_back(seed: u64) -> World {
    let mut world = begin(seed);
    act(&mut world, &format!("publish {NEW}"));
    world.run(mins(45));
    assert_eq!(images(&world), [NEW, NEW], "{}", last_lines(&world, 20));
    act(&mut world, &format!("deregister {NEW}"));
    world.run(mins(60));
    assert_eq!(images(&world), [OLD, OLD], "{}", last_lines(&world, 20));
    world
}

#[test]
fn a_node_that_is_deleted_after_a_crash_is_followed_by_one_on_the_old_release() {
    for crash in ["run 10s", "fault crash leader"] {
        let mut world = gone_back(7);
        act(&mut world, crash);
        world.run(mins(10));
        assert_eq!(images(&world), [OLD, OLD], "{crash}: nobody moves");
        let nodes = world.objects(kinds::NODE);
        let first = nodes.first().unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
        act(&mut world, &format!("delete Node {first}"));
        world.run(mins(30));
        assert_eq!(images(&world), [OLD, OLD], "{crash}: {}", last_lines(&world, 20));
        let names = world.objects(kinds::NODE);
        assert!(names.iter().all(|it| it["metadata"]["name"] != first.as_str()), "{crash}");
    }
}
