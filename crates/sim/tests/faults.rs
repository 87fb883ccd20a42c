//! Does every fault go wrong, and does the world get over it?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_sim::trace::{Fact, ReplicaState};
use nodemolt_sim::world::{last_lines, line};
use nodemolt_sim::{Act, World};
use support::{NEW, act, begin, hours, images, mins, pods_with_a_home, scenario, text};

/// Whatever goes wrong for half an hour while two nodes are replaced: some time after it has ended both
/// are, and every pod has a home.
#[test]
fn the_world_gets_over_every_fault() {
    for (seed, fault) in (0..).zip([
        "crash leader",
        "crash operator-0 before-send",
        "crash operator-0 after-send for 1m",
        "crash operator-0 after-answer",
        "freeze leader for 1m",
        "skew operator-0 -300",
        "lose-requests 20%",
        "lose-answers 20%",
        "late-answers 30% by 5s",
        "throttle ec2",
        "throttle ssm",
        "throttle kubernetes for 5m",
        "conflicts 30%",
        "no-capacity for 20m",
        "never-joins",
        "never-ready",
        "node-flaps node-1 for 20m",
        "watch-lag 20s",
        "watch-drop",
    ]) {
        let mut world = begin(seed);
        world.run(mins(2));
        act(&mut world, &format!("publish {NEW}"));
        world.run(mins(1));
        act(&mut world, &format!("fault {fault}"));
        world.run(mins(30));
        act(&mut world, "fault end");
        let over_it = |world: &World| images(world) == [NEW, NEW] && pods_with_a_home(world) == 4;
        let patience = world.now() + hours(4);
        while world.now() < patience && !over_it(&world) {
            world.run(mins(5));
        }
        assert_eq!(images(&world), [NEW, NEW], "{fault}\n{}", last_lines(&world, 40));
        assert_eq!(pods_with_a_home(&world), 4, "{fault}\n{}", last_lines(&world, 40));
    }
}

#[test]
fn a_leader_that_stood_still_believes_that_it_leads_beside_another() {
    let text = text().replace("kubernetes: \"1.33\"", "kubernetes: \"1.33\"\nreplicas: 2");
    let mut world = World::new(&scenario(&text), 5).unwrap();
    world.run(mins(2));
    act(&mut world, "fault freeze leader for 1m");
    world.run(mins(2));
    let states: Vec<(u8, ReplicaState)> = world
        .trace()
        .iter()
        .filter_map(|it| {
            let Fact::Replica { number, state } = &it.fact else { return None };
            Some((*number, *state))
        })
        .filter(|(_, it)| matches!(it, ReplicaState::Leads | ReplicaState::Follows))
        .collect();
    let (first, second) = match states.as_slice() {
        [(first, ReplicaState::Leads), (second, ReplicaState::Leads), rest @ ..] => {
            assert_eq!(rest, [(*first, ReplicaState::Follows)]);
            (*first, *second)
        }
        other => panic!("{other:?}\n{}", last_lines(&world, 40)),
    };
    assert_ne!(first, second);
}

#[test]
fn a_crash_waits_for_its_moment_and_another_process_goes_on() {
    for moment in ["before-send", "after-send", "after-answer"] {
        let mut world = begin(2);
        world.run(mins(5));
        act(&mut world, &format!("fault crash leader {moment} for 30s"));
        act(&mut world, &format!("publish {NEW}"));
        world.run(mins(5));
        let of = |wanted: ReplicaState| {
            let is = |it: &&nodemolt_sim::trace::Step| matches!(it.fact, Fact::Replica { state, .. } if state == wanted);
            world.trace().iter().filter(is).count()
        };
        assert_eq!(of(ReplicaState::Crashed), 1, "{moment}");
        assert_eq!(of(ReplicaState::Started), 2, "{moment}");
    }
}

#[test]
fn what_cannot_be_struck_is_named() {
    let mut world = begin(1);
    for (words, told) in [
        ("crash operator-2", "there is no operator-2"),
        ("node-dies node-9", "node-9"),
        ("node-flaps node-9", "node-9"),
        ("pdb-never default/cart", "default/cart"),
    ] {
        let act: Act = format!("fault {words}").parse().unwrap();
        let refused = world.act(&act).unwrap_err().to_string();
        assert!(refused.contains(told), "{words}: {refused}");
    }
}

#[test]
fn a_dead_nodes_machine_is_gone() {
    let mut world = begin(1);
    world.run(mins(2));
    act(&mut world, "fault node-dies node-1");
    world.run(mins(3));
    let told: Vec<String> = world.trace().iter().map(line).collect();
    assert!(told.iter().any(|it| it.contains("is terminated")), "{}", told.join("\n"));
}
