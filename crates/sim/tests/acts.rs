//! Does the world do what people do to it?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_core::plan::WaitFor;
use nodemolt_sim::world::last_lines;
use nodemolt_sim::{Act, World, kinds};
use serde_json::Value;
use support::{NEW, OLD, act, begin, hours, images, mins, pods_with_a_home, scenario, text};

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

/// As `kubectl` and a real API server refuse it: nothing of it is taken.
#[test]
fn what_a_server_could_not_read_is_not_applied() {
    let mut world = begin(1);
    let deployment = |spec: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, \
             spec: {{selector: {{matchLabels: {{app: a}}}}, {spec}}}}}"
        )
    };
    let template =
        |spec: &str| format!("template: {{metadata: {{labels: {{app: a}}}}, spec: {{{spec}}}}}");
    let good = template("containers: [{name: a, image: a}]");
    let pod = |spec: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, \
             spec: {{containers: [{{name: a, image: a}}], {spec}}}}}"
        )
    };
    let demands = |resources: &str| {
        template(&format!("containers: [{{name: a, image: a, resources: {resources}}}]"))
    };
    for (manifest, field, told) in [
        (deployment(&format!("replicas: \"6\", {good}")), "spec.replicas", "`6`"),
        (deployment(&format!("replicas: 1.5, {good}")), "spec.replicas", "`1.5`"),
        (deployment(&format!("replicas: true, {good}")), "spec.replicas", "`true`"),
        (deployment(&format!("replcas: 3, {good}")), "spec.replcas", "did you mean `replicas`?"),
        (
            deployment(&template("containers: {}")),
            "spec.template.spec.containers",
            "expected a list",
        ),
        (
            deployment(&template("containers: []")),
            "spec.template.spec.containers",
            "there is no container",
        ),
        (
            deployment(&demands("{requests: {cpu: 2}, limits: {cpu: 1}}")),
            "containers[0].resources.requests.cpu",
            "`2` is more than its limit, `1`",
        ),
        (pod("hostNetwork: \"yes\""), "spec.hostNetwork", "`yes`"),
        (pod("priority: high"), "spec.priority", "`high`"),
        (pod("tolerations: {a: b}"), "spec.tolerations", "expected a list"),
        (pod("nodeSelector: {team: 1}"), "spec.nodeSelector.team", "`1`"),
        (
            "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: web}, spec: {wieght: 3}}"
                .to_owned(),
            "spec.wieght",
            "did you mean `weight`?",
        ),
    ] {
        let refused = world.act(&Act::Apply { manifest: manifest.clone() }).unwrap_err();
        let whole = refused.to_string();
        let name = if manifest.contains("NodePool") { "NodePool web" } else { "default/a" };
        let all = [name, field, told].iter().all(|it| whole.contains(it));
        assert!(all && !refused.mistyped, "{manifest}: {whole}");
    }
    let fits = demands("{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1000m}}");
    world.act(&Act::Apply { manifest: deployment(&fits) }).unwrap();
}

/// What the server and others have filled in stays, and what a person has taken back goes.
#[test]
fn an_apply_changes_what_it_says_and_no_more() {
    let mut world = begin(1);
    let pod = |more: &str| Act::Apply {
        manifest: format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: a, labels: {{app: a}}{more}}}\n\
             spec: {{containers: [{{name: a, image: a}}], tolerations: [{{key: b, operator: Exists}}]}}"
        ),
    };
    let stored = |world: &World| {
        let all = world.objects(kinds::POD);
        let found = all.iter().find(|it| it["metadata"]["name"] == "a").unwrap();
        let mut found = Value::clone(found);
        found["metadata"]["resourceVersion"].take();
        found
    };
    world.act(&pod("")).unwrap();
    world.run(mins(1));
    let before = stored(&world);
    assert!(before["spec"]["nodeName"].is_string(), "{before}");
    for more in ["", ", annotations: {mine: \"1\"}", ""] {
        world.act(&pod(more)).unwrap();
        let there = stored(&world)["metadata"]["annotations"]["mine"].is_string();
        assert_eq!(there, !more.is_empty());
        act(&mut world, "annotate pod a theirs=1");
    }
    act(&mut world, "annotate pod default/a theirs-");
    assert_eq!(stored(&world), before);
}

#[test]
fn time_ends_and_nobody_runs_past_it() {
    let late = text().replacen("start: 2026-08-01T00:00:00Z", "start: 9999-12-29T12:00:00Z", 1);
    let mut world = World::new(&scenario(&late), 1).unwrap();
    act(&mut world, "run 1m");
    let refused = world.act(&"run 12h".parse().unwrap()).unwrap_err().to_string();
    assert!(refused.contains("9999-12-30T00:00:00Z"), "{refused}");
    act(&mut world, "run 1m");
    world.run(hours(100));
    assert_eq!(world.now().to_string(), "9999-12-30T00:00:00Z");
}

/// What is not there was mistyped; what is there and cannot be done was not.
#[test]
fn who_is_not_there_is_told_from_what_cannot_be_done() {
    let mut world = begin(1);
    act(&mut world, &format!("publish {NEW}"));
    act(&mut world, &format!("deregister {NEW}"));
    let gone = ["enable", "disable", "deprecate", "deregister", "unshare"];
    let gone = gone.map(|it| (format!("{it} {NEW}"), true));
    let others = [
        ("deprecate nope", true),
        ("move /nowhere nope", true),
        ("fault node-dies nope", true),
        ("fault node-dies @banana", true),
        ("fault node-dies @successor", true),
        ("fault crash leader", true),
        ("delete pod shop/nope", true),
        ("annotate pod nope a=b", true),
        ("annotate unicorn a a=b", true),
        ("annotate node node-0 sim.nodemolt.dev/takes=soon", false),
    ];
    let others = others.map(|(line, mistyped)| (line.to_owned(), mistyped));
    for (line, mistyped) in gone.into_iter().chain(others) {
        let refused = world.act(&line.parse().unwrap()).unwrap_err();
        assert_eq!(refused.mistyped, mistyped, "{line}: {refused}");
    }
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
