//! Is it told what keeps a pool from launching anything, and does nobody hold a slot for it?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_core::plan::WaitFor;
use nodemolt_sim::world::last_lines;
use nodemolt_sim::{World, kinds};
use support::{NEW, act, images, mins, scenario, text};

/// Whoever goes needs a node in its place.
fn full(text: &str) -> String {
    text.replace("cpu: 500m", "cpu: 800m")
}

fn without_policy() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios/full-reservation.yaml");
    let whole = std::fs::read_to_string(file).unwrap();
    let documents = whole.split("---\n").filter(|it| !it.contains("kind: ImagePolicy"));
    documents.collect::<Vec<_>>().join("---\n").replace("cpu: 500m", "cpu: 1500m")
}

/// The class of a world, changed.
fn class(text: &str, from: &str, to: &str) -> String {
    let class = text.split("---\n").find(|it| it.contains("kind: EC2NodeClass")).unwrap();
    assert!(class.contains(from), "{class}");
    format!("apply {}", serde_json::to_string(&class.replace(from, to)).unwrap())
}

/// Issue 7: the nearest node was told to be too small, a pod to have no place; and each node of the pool held the slot for a quarter
/// of an hour.
#[test]
fn what_keeps_a_pool_from_launching_is_named_and_holds_no_slot() {
    let plain = full(&text());
    let publish = || format!("publish {NEW}");
    let groups = "securityGroupSelectorTerms:\n    - tags:\n        nodemolt.dev/discovery: blue";
    let no_groups = class(&plain, groups, &groups.replace("blue", "green"));
    let other = class(&plain, "role: nodemolt-node", "role: nodemolt-node\n  tags: {team: a}");
    let other = other.replace("discovery: blue", "discovery: Blue");
    for (what, world, acts, reason, named) in [
        (
            "a reservation that is used up",
            without_policy(),
            vec![publish()],
            "ReservationUsedUp",
            "cr-0123",
        ),
        (
            "no security group",
            plain.clone(),
            vec![no_groups, publish()],
            "ClassCannotLaunch",
            "general",
        ),
        (
            "EC2 that does not answer",
            plain.clone(),
            // What has changed is the class: of images nothing has to be asked.
            vec!["fault throttle ec2".to_owned(), other],
            "CouldNotAsk",
            "ec2:DescribeSubnets",
        ),
    ] {
        let mut world =
            World::new(&scenario(&world), 1).unwrap_or_else(|it| panic!("{what}: {it}"));
        world.run(mins(2));
        for it in acts {
            act(&mut world, &it);
        }
        world.run(mins(20));
        let told = last_lines(&world, 40);
        let picture = world.picture().unwrap();
        let drifts: Vec<_> = picture.drifts.values().collect();
        assert!(!picture.plan.waiting.is_empty(), "{what}: {drifts:?}\n{told}");
        for (node, waiting) in &picture.plan.waiting {
            let all: Vec<&str> = waiting.all().map(WaitFor::reason).collect();
            assert!(all.contains(&reason), "{what}: {node} waits for {all:?}\n{told}");
            let words: Vec<String> = waiting.all().map(ToString::to_string).collect();
            assert!(words.iter().any(|it| it.contains(named)), "{what}: {words:?}");
        }
        assert_eq!(world.objects(kinds::REPLACEMENT).len(), 0, "{what}\n{told}");
    }
    // And when it is mended they go.
    let mut world = World::new(&scenario(&plain), 1).unwrap();
    act(&mut world, &class(&plain, groups, &groups.replace("blue", "green")));
    act(&mut world, &publish());
    world.run(mins(20));
    act(&mut world, &class(&plain, "role: nodemolt-node", "role: nodemolt-node"));
    world.run(mins(60));
    assert_eq!(images(&world), [NEW, NEW], "{}", last_lines(&world, 60));
}
