//! Worlds to try things on.

#![allow(dead_code, reason = "each test uses some of it")]
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use jiff::SignedDuration;
use nodemolt_sim::world::last_lines;
use nodemolt_sim::{Act, Scenario, World, kinds};
use serde_json::Value;

pub(crate) const OLD: &str = "amazon-eks-node-al2023-arm64-standard-1.33-v20260610";
pub(crate) const NEW: &str = "amazon-eks-node-al2023-arm64-standard-1.33-v20260730";

pub(crate) fn text() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios/two-nodes.yaml");
    std::fs::read_to_string(file).unwrap()
}

pub(crate) fn scenario(text: &str) -> Scenario {
    Scenario::read("two-nodes.yaml", text).unwrap_or_else(|problems| {
        panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

pub(crate) fn begin(seed: u64) -> World {
    World::new(&scenario(&text()), seed).unwrap_or_else(|it| panic!("{it}"))
}

pub(crate) fn act(world: &mut World, line: &str) -> String {
    let act: Act = line.parse().unwrap_or_else(|it| panic!("{it}"));
    world.act(&act).unwrap_or_else(|it| panic!("{it}\n{}", last_lines(world, 20)))
}

pub(crate) fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

pub(crate) fn mins(mins: i64) -> SignedDuration {
    SignedDuration::from_mins(mins)
}

/// The names of the images that claims run, in order.
pub(crate) fn images(world: &World) -> Vec<String> {
    let name = |it: &Value| {
        let id = it["status"]["imageID"].as_str().unwrap_or("none");
        let image = id.parse().ok().and_then(|it| world.region().image(&it));
        image.map_or_else(|| id.to_owned(), |it| it.name.clone())
    };
    let mut all: Vec<String> = world.objects(kinds::CLAIM).iter().map(|it| name(it)).collect();
    all.sort();
    all
}

pub(crate) fn pods_with_a_home(world: &World) -> usize {
    let ready = |it: &Value| {
        let conditions = it["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
    };
    world.objects(kinds::POD).iter().filter(|it| ready(it)).count()
}
