//! Does the world do what people do to it?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_core::plan::WaitFor;
use nodemolt_sim::world::last_lines;
use nodemolt_sim::{Act, World, kinds};
use support::{NEW, OLD, act, begin, hours, images, mins, pods_with_a_home};

fn first_waits(world: &World) -> Vec<WaitFor> {
    let picture = world.picture().unwrap();
    picture.plan.waiting.values().map(|it| it.first.clone()).collect()
}

#[test]
fn a_pause_holds_until_it_is_lifted() {
    let mut world = begin(1);
    world.run(mins(2));
    act(&mut world, "pause the network is being mended");
    act(&mut world, &format!("publish {NEW}"));
    world.run(hours(1));
    assert_eq!(images(&world), [OLD, OLD], "{}", last_lines(&world, 30));
    for wait in first_waits(&world) {
        let told = wait.to_string();
        assert!(told.contains("the network is being mended"), "{told}");
    }
    act(&mut world, "resume");
    world.run(hours(1));
    assert_eq!(images(&world), [NEW, NEW], "{}", last_lines(&world, 30));
}

#[test]
fn a_person_may_ask_for_a_node_or_for_all_of_a_pool() {
    let mut world = begin(1);
    world.run(mins(2));
    let names = |world: &World| -> Vec<String> {
        let nodes = world.objects(kinds::NODE);
        nodes.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    act(&mut world, "upgrade node/node-1");
    world.run(hours(1));
    let one = names(&world);
    assert!(one.contains(&"node-0".to_owned()) && !one.contains(&"node-1".to_owned()), "{one:?}");
    act(&mut world, "upgrade pool/web");
    world.run(hours(1));
    let all = names(&world);
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|it| !one.contains(it)), "{one:?} {all:?}\n{}", last_lines(&world, 30));
    assert_eq!(pods_with_a_home(&world), 4);
}

#[test]
fn objects_are_applied_changed_and_deleted() {
    let mut world = begin(1);
    let manifest = |replicas: u32| {
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: cart, namespace: shop}}\n\
             spec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: cart}}}}\n  \
             template:\n    metadata: {{labels: {{app: cart}}}}\n    spec:\n      containers:\n      \
             - {{name: cart, image: cart}}\n"
        );
        Act::Apply { manifest: text }.to_string()
    };
    act(&mut world, &manifest(1));
    world.run(mins(1));
    assert_eq!(pods_with_a_home(&world), 5);
    act(&mut world, &manifest(3));
    world.run(mins(1));
    assert_eq!(pods_with_a_home(&world), 7);
    act(&mut world, "delete deployment shop/cart");
    world.run(mins(2));
    assert_eq!(pods_with_a_home(&world), 4, "{}", last_lines(&world, 30));
}

#[test]
fn a_persons_cordon_is_no_taint_of_ours() {
    let mut world = begin(1);
    let closed = |world: &World| {
        let nodes = world.objects(kinds::NODE);
        nodes.iter().filter(|it| it["spec"]["unschedulable"] == true).count()
    };
    act(&mut world, "cordon node-0");
    world.run(mins(5));
    assert_eq!(closed(&world), 1);
    act(&mut world, "uncordon node-0");
    world.run(mins(5));
    assert_eq!(closed(&world), 0);
}

#[test]
fn what_cannot_be_done_says_why() {
    let mut world = begin(1);
    for (line, told) in [
        ("upgrade node/node-7", "node-7"),
        ("upgrade pool/none", "none"),
        ("delete Pod nobody", "nobody"),
        ("delete Unicorn x", "Unicorn"),
        ("cordon node-7", "node-7"),
        ("deprecate nothing", OLD),
        ("move /nowhere nothing", "nothing"),
        (&format!("publish {OLD}"), "already"),
        ("apply \"kind: Pod\"", "apiVersion"),
        ("fault no-capacity m7g.lrage", "m7g.large"),
        ("fault no-capacity m7g.large in mars", "eu-central-1a"),
        ("fault crash leader", "nobody leads"),
        ("fault freeze leader for 1m", "nobody leads"),
        ("apply \"apiVersion: v1\\nkind: Unicorn\\nmetadata: {name: x}\"", "Unicorn"),
    ] {
        let act: Act = line.parse().unwrap();
        let refused = world.act(&act).unwrap_err().to_string();
        assert!(refused.contains(told), "{line}: {refused}");
    }
    assert_eq!(act(&mut world, "unlock"), "nothing is locked");
}

#[test]
fn what_another_controller_holds_stays_until_it_lets_go() {
    let mut world = begin(1);
    world.run(mins(2));
    let claims = |world: &World| -> Vec<String> {
        let claims = world.objects(kinds::CLAIM);
        claims.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let held = claims(&world)[0].clone();
    act(&mut world, &format!("hold nodeclaim {held}"));
    act(&mut world, &format!("delete nodeclaim {held}"));
    world.run(hours(1));
    assert!(claims(&world).contains(&held), "{}", last_lines(&world, 30));
    assert_eq!(act(&mut world, "release"), format!("released NodeClaim {held}"));
    world.run(mins(1));
    assert!(!claims(&world).contains(&held), "{}", last_lines(&world, 30));
    assert_eq!(act(&mut world, "release"), "nothing is held");
}

#[test]
fn a_node_is_protected_for_as_long_as_it_says_so() {
    let mut world = begin(1);
    world.run(mins(2));
    act(&mut world, "annotate node node-1 karpenter.sh/do-not-disrupt=true");
    act(&mut world, &format!("publish {NEW}"));
    world.run(hours(1));
    assert_eq!(images(&world), [OLD, NEW], "{}", last_lines(&world, 30));
    act(&mut world, "annotate node node-1 karpenter.sh/do-not-disrupt-");
    world.run(hours(1));
    assert_eq!(images(&world), [NEW, NEW], "{}", last_lines(&world, 30));
}

/// Before anybody has started, and after: whoever looks sees what would be decided.
#[test]
fn whoever_looks_sees_the_plan() {
    let mut world = begin(1);
    act(&mut world, &format!("publish {NEW}"));
    let picture = world.picture().unwrap();
    let wished = picture.fleet.nodes.values().filter(|it| it.wish.is_some()).count();
    assert_eq!((picture.fleet.nodes.len(), wished), (2, 2));
}

#[test]
fn looking_leaves_no_mark() {
    let live = |looks: bool| {
        let mut world = begin(4);
        act(&mut world, &format!("publish {NEW}"));
        for _ in 0..12 {
            world.run(mins(1));
            if looks {
                world.picture().unwrap();
            }
        }
        world.hash()
    };
    assert_eq!(live(true), live(false));
}
