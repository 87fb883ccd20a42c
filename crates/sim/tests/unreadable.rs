//! What the API server takes and nobody can read: what do people see of it?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_cluster::transport::Resource;
use nodemolt_core::explain::explain;
use nodemolt_sim::world::last_lines;
use nodemolt_sim::{Act, World, kinds};
use serde_json::Value;
use support::{NEW, OLD, act, begin, images, mins};

/// Both select nothing.
const BUDGET: &str = "apiVersion: karpenter.sh/v1alpha1\nkind: NodeDisruptionBudget\nmetadata: {name: slow}\n\
    spec: {labelSelectors: [{team: nobody}], maxUnavailable: 0}\n";
const POLICY: &str = "apiVersion: nodemolt.dev/v1alpha1\nkind: ImagePolicy\nmetadata: {name: strict}\n\
    spec: {classSelector: {matchLabels: {team: nobody}}, minimumAge: 7d}\n";

fn apply(world: &mut World, manifest: &str) {
    let act = Act::Apply { manifest: manifest.to_owned() };
    world.act(&act).unwrap_or_else(|it| panic!("{it}"));
}

/// Status, reason and message of a condition, as `kubectl get -o yaml` would show them.
fn condition(world: &World, resource: Resource, name: &str, kind: &str) -> [String; 3] {
    let all = world.objects(resource);
    let object = all.iter().find(|it| it["metadata"]["name"] == name).unwrap();
    let conditions: &[Value] = object["status"]["conditions"].as_array().map_or(&[], Vec::as_slice);
    let found = conditions.iter().find(|it| it["type"] == kind);
    let found = found.unwrap_or_else(|| panic!("{name} has no {kind}: {object:#}"));
    assert_eq!(found["observedGeneration"], object["metadata"]["generation"]);
    ["status", "reason", "message"].map(|it| found[it].as_str().unwrap().to_owned())
}

/// The pool of the world, with other budgets.
fn pool(budgets: &str) -> String {
    let text = support::text();
    let pool = text.split("---\n").find(|it| it.contains("kind: NodePool")).unwrap();
    let (before, _) = pool.split_once("    budgets:\n").unwrap();
    format!("{before}    budgets:\n{budgets}")
}

#[test]
fn budgets_of_a_pool_that_cannot_be_read_hold_everybody_and_say_so() {
    let mut world = begin(5);
    // The schema asks for five words, and sixty-one is one.
    apply(
        &mut world,
        &pool("      - nodes: \"1\"\n        schedule: \"61 * * * *\"\n        duration: 1h\n"),
    );
    act(&mut world, &format!("publish {NEW}"));
    world.run(mins(60));
    assert_eq!(images(&world), [OLD, OLD], "{}", last_lines(&world, 20));
    let [status, reason, message] = condition(&world, kinds::POOL, "web", "Accepted");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Unreadable"));
    assert!(message.contains("spec.disruption.budgets[0].schedule"), "{message}");
    let picture = world.picture().unwrap();
    let warnings = picture.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("NodePool `web`"), "{warnings:?}");
    let story = explain(&picture.world(), "node-0", picture.at).unwrap().to_string();
    assert!(story.contains("the budgets of NodePool `web`, which cannot be read"), "{story}");

    apply(&mut world, &pool("      - nodes: \"1\"\n"));
    world.run(mins(120));
    assert_eq!(condition(&world, kinds::POOL, "web", "Accepted")[0], "True");
    assert_eq!(images(&world), [NEW, NEW], "{}", last_lines(&world, 60));
}

#[test]
fn windows_of_a_policy_that_cannot_be_read_are_shut_and_say_so() {
    let mut world = begin(6);
    apply(
        &mut world,
        "apiVersion: nodemolt.dev/v1alpha1\nkind: ImagePolicy\nmetadata: {name: nights}\nspec:\n  \
         rollout:\n    windows:\n      timeZone: Mars/Olympus\n      allow:\n        - {from: \"22:00\", to: \"06:00\"}\n",
    );
    world.run(mins(2));
    let warnings = world.picture().unwrap().warnings();
    let windows = "ImagePolicy `nights`: nothing may start until its windows can be read: ";
    assert!(warnings.iter().any(|it| it.starts_with(windows)), "nobody waits yet: {warnings:?}");
    act(&mut world, &format!("publish {NEW}"));
    // A day has every hour.
    world.run(mins(24 * 60));
    assert_eq!(images(&world), [OLD, OLD], "{}", last_lines(&world, 20));
    let [status, reason, message] = condition(&world, kinds::POLICY, "nights", "Ready");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Unreadable"));
    assert!(message.contains("Mars/Olympus"), "{message}");
}

#[test]
fn selectors_that_match_nothing_say_so() {
    let mut world = begin(8);
    apply(&mut world, BUDGET);
    apply(&mut world, POLICY);
    world.run(mins(5));
    for (resource, name) in [(kinds::DISRUPTION_BUDGET, "slow"), (kinds::POLICY, "strict")] {
        let [status, reason, _] = condition(&world, resource, name, "Ready");
        assert_eq!((status.as_str(), reason.as_str()), ("False", "SelectsNothing"), "{name}");
    }
    let warnings = world.picture().unwrap().warnings();
    let policy = "ImagePolicy `strict`: its selector matches no class";
    assert_eq!(warnings, [policy, "NodeDisruptionBudget `slow` selects no node"]);
}

/// Whether a condition stands on it yet.
fn told(world: &World, resource: Resource) -> bool {
    world.objects(resource).iter().any(|it| it["status"]["conditions"].is_array())
}

#[test]
fn each_kind_is_told_with_a_lag_of_its_own() {
    let mut world = begin(9);
    world.run(mins(2));
    act(&mut world, "fault watch-lag 10m NodeDisruptionBudget");
    // The budget first; and it is heard of last.
    apply(&mut world, BUDGET);
    world.run(mins(1));
    apply(&mut world, POLICY);
    world.run(mins(2));
    assert!(told(&world, kinds::POLICY), "{}", last_lines(&world, 20));
    assert!(!told(&world, kinds::DISRUPTION_BUDGET));
    world.run(mins(10));
    assert!(told(&world, kinds::DISRUPTION_BUDGET), "{}", last_lines(&world, 20));
}
