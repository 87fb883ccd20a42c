//! Does a whole life go as it should?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use jiff::SignedDuration;
use nodemolt_sim::world::line;
use nodemolt_sim::{Act, Scenario, World, kinds};
use serde_json::Value;

fn scenario() -> Scenario {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios/two-nodes.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    Scenario::read("two-nodes.yaml", &text).unwrap_or_else(|problems| {
        panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

fn begin(seed: u64) -> World {
    World::new(&scenario(), seed).unwrap_or_else(|it| panic!("{it}"))
}

fn pods_with_a_home(world: &World) -> usize {
    let ready = |it: &Value| {
        it["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|it| it["type"] == "Ready" && it["status"] == "True")
    };
    world.objects(kinds::POD).iter().filter(|it| ready(it)).count()
}

#[test]
fn a_world_begins_with_its_nodes_and_their_pods() {
    let world = begin(1);
    assert_eq!(world.now(), world.simulation().start);
    let names: Vec<String> = world
        .objects(kinds::NODE)
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    for step in world.trace() {
        println!("{}", line(step));
    }
    assert_eq!(names, ["node-0", "node-1"]);
    assert_eq!(pods_with_a_home(&world), 4);
}

#[test]
fn both_nodes_are_replaced_one_after_the_other_and_then_it_is_quiet() {
    let mut world = begin(7);
    world.check_laws();
    world.run(SignedDuration::from_mins(10));
    let publish: Act =
        "publish amazon-eks-node-al2023-arm64-standard-1.33-v20260730".parse().unwrap();
    println!("{}", world.act(&publish).unwrap());
    world.run(SignedDuration::from_hours(3));
    for step in world.trace() {
        if !line(step).contains("Lease") {
            println!("{}", line(step));
        }
    }
    let images: Vec<Value> = world
        .objects(kinds::CLAIM)
        .iter()
        .map(|it| it["status"]["imageID"].clone())
        .collect();
    println!("{images:?}");
    world.at_rest();
    for it in world.violations() {
        println!("{}", it.violation);
    }
    panic!("see");
}
