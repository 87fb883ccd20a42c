//! Is what people wrote understood, and what is not refused?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_sim::world::last_lines;
use nodemolt_sim::{Scenario, World, kinds};
use support::{hours, mins, scenario, text};

#[test]
fn every_mistake_is_named_with_its_line_and_what_to_write() {
    let good = text();
    scenario(&good);
    for (from, to, field, told) in [
        ("start: 2026-08-01T00:00:00Z", "start: soon", "start", "`soon`"),
        ("start: 2026-08-01T00:00:00Z", "start: 9999-12-31", "start", "before 9999-12-30"),
        ("start: 2026-08-01T00:00:00Z", "begin: 2026-08-01", "begin", "begin"),
        ("kubernetes: \"1.33\"", "kubernetes: \"one\"", "kubernetes", "`one`"),
        ("kubernetes: \"1.33\"", "replicas: 4", "replicas", "1 to 3"),
        ("kubernetes: \"1.33\"", "replicas: many", "replicas", "many"),
        ("kubernetes: \"1.33\"", "replicas: -1", "replicas", "from 1 to 3"),
        ("kubernetes: \"1.33\"", "region: EU Central", "region", "` ` may not be in it"),
        ("kubernetes: \"1.33\"", "zones: [\"a b\"]", "zones[0]", "such as `eu-central-1a`"),
        (
            "kubernetes: \"1.33\"",
            "subnets: [{id: subnet-1, zone: eu-central-1a, freeAddresses: 99999999999}]",
            "subnets[0].freeAddresses",
            "from 0 to 4294967295",
        ),
        (
            "kubernetes: \"1.33\"",
            "subnets: [{id: subnet-1, zone: eu-central-1a}]",
            "fleet[0].zones",
            "there is no subnet in eu-central-1b",
        ),
        (
            "kubernetes: \"1.33\"",
            "reservations: [{id: \"ä\", instanceType: m7g.large, zone: eu-central-1a, count: 1}]",
            "reservations[0].id",
            "`ä` may not be in it",
        ),
        (
            "    created: 2026-06-10",
            "    created: 2026-06-10\n    parameters: [\"\"]",
            "images[0].parameters[0]",
            "without spaces",
        ),
        (
            "        name: general\n      requirements",
            "        name: special\n      requirements",
            "spec.template.spec.nodeClassRef.name",
            "write the EC2NodeClass into this file",
        ),
        ("kubernetes: \"1.33\"", "zones: []\nboot: {joins: never}", "boot.joins", "`never`"),
        ("kubernetes: \"1.33\"", "types: [m7g.huge]", "types[0]", "m7g.huge"),
        ("    created: 2026-06-10", "    created: 10 June", "images[0].created", "10 June"),
        ("    created: 2026-06-10", "    createt: 2026-06-10", "images[0].createt", "createt"),
        ("  - pool: web", "  - pool: web2", "fleet[0].pool", "web2"),
        ("    nodes: 2", "    nodes: 20000", "fleet[0].nodes", "20000"),
        ("    nodes: 2", "    nodes: -1", "fleet[0].nodes", "from 0 to 10000"),
        (
            "    instanceType: m7g.large",
            "    instanceType: m7g.big",
            "fleet[0].instanceType",
            "m7g.big",
        ),
        (
            "    instanceType: m7g.large",
            "    instanceType: m7i.large",
            "fleet[0].instanceType",
            "which is for arm64",
        ),
        ("kubernetes: \"1.33\"", "kubernetes: 1.33", "kubernetes", "write it in quotes"),
        ("kubernetes: \"1.33\"", "boot: 1m", "boot", "a mapping of fields to values"),
        ("kubernetes: \"1.33\"", "region: \"\"", "region", "a region has a name"),
        ("kubernetes: \"1.33\"", "zones: [\"\"]", "zones[0]", "a zone has a name"),
        ("    age: 20d", "    age: old", "fleet[0].age", "`old`"),
        ("    age: 20d", "    zones: [mars]", "fleet[0].zones", "mars"),
        ("    image: amazon", "    image: umazon", "fleet[0].image", "umazon"),
        ("    age: 20d", "    capacityType: free", "fleet[0].capacityType", "`free`"),
        ("kubernetes: \"1.33\"", "zones: [a, b, a]", "zones[2]", "`a` is there twice"),
        ("    age: 20d", "    reservation: cr-1", "fleet[0].reservation", "`cr-1`"),
        ("kubernetes: \"1.33\"", "boot: {later: {m9.x: 5m}}", "boot.later.m9.x", "`m9.x`"),
        ("kubernetes: \"1.33\"", "boot: {runs: -5s}", "boot.runs", "negative"),
        (
            "kind: Deployment\nmetadata:\n",
            "kind: Deployment\nmetadata:\n  annotations: {sim.nodemolt.dev/stops-after: -3s}\n",
            "metadata.annotations.sim.nodemolt.dev/stops-after",
            "negative",
        ),
        (
            "kind: Deployment\nmetadata:\n",
            "kind: Deployment\nmetadata:\n  annotations: {sim.nodemolt.dev/raedy-after: 3s}\n",
            "metadata.annotations.sim.nodemolt.dev/raedy-after",
            "write sim.nodemolt.dev/ready-after",
        ),
        ("start: 2026-08-01T00:00:00Z", "start: 9999-12-30T12:00:00Z", "start", "time ends here"),
        ("    created: 2026-06-10", "    created: 2026-09-01", "images[0].created", "later"),
        ("kubernetes: \"1.33\"", "types: [m99.huge]", "types[0]", "`nodemolt types`"),
        ("kubernetes: \"1.33\"", "types: [m7g.large, m7g.large]", "types[1]", "there twice"),
        ("kubernetes: \"1.33\"", "cluster: \"a\\u001b[31m\"", "cluster", "control character"),
        ("    age: 20d", "    age: 20", "fleet[0].age", "such as `20d`"),
        ("    age: 20d", "    age: \"20\"", "fleet[0].age", "`20d`"),
        ("    nodes: 2", "    nodes: 1", "fleet[0].names", "2 names for 1 nodes"),
        (
            "    age: 20d",
            "    capacityType: reserved",
            "fleet[0].capacityType",
            "which reservation",
        ),
        (
            "kubernetes: \"1.33\"",
            "subnets: [{id: \"\", zone: eu-central-1a}]",
            "subnets[0].id",
            "no id of a subnet",
        ),
        (
            "kubernetes: \"1.33\"",
            "securityGroups: [{id: sg-1}, {id: sg-1}]",
            "securityGroups[1].id",
            "there twice",
        ),
        ("apiVersion: apps/v1\n", "apiVersion: apps/v1beta1\n", "apiVersion", "apps/v1"),
        ("kind: Deployment\n", "kind: Deploymnt\n", "kind", "served are Node, Pod"),
        (
            "        kind: EC2NodeClass\n",
            "        kind: Foo\n",
            "spec.template.spec.nodeClassRef.kind",
            "`Foo`",
        ),
        ("  replicas: 4", "  replicas: \"6\"", "spec.replicas", "write it without quotes"),
        ("  replicas: 4", "  replcas: 4", "spec.replcas", "did you mean `replicas`?"),
        (
            "kind: Deployment\nmetadata:\n  name: shop\n",
            "kind: Deployment\nmetadata:\n  name: 1\n",
            "metadata.name",
            "quote it",
        ),
        ("apiVersion: nodemolt.dev/sim", "apiVersion: nodemolt.dev/v9", "apiVersion", "v9"),
        ("  role: nodemolt-node", "  rolle: nodemolt-node", "spec.rolle", "rolle"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        let problems = Scenario::read("bad.yaml", &bad).unwrap_err();
        let found = problems.iter().find(|it| {
            let whole = format!("{it} {}", it.hint.as_deref().unwrap_or_default());
            it.field == field && whole.contains(told)
        });
        let all: Vec<String> = problems.iter().map(|it| format!("{it} ({:?})", it.hint)).collect();
        assert!(found.is_some_and(|it| it.line > 0), "{to}:\n{}", all.join("\n"));
    }
}

/// What is said of an image that cannot be read would send people after what is right.
#[test]
fn one_mistake_in_an_image_is_one_problem() {
    let name = "  - name: amazon-eks-node-al2023-arm64-standard-1.33-v20260610\n";
    for (line, field) in [
        ("id: ami-xyz", "images[0].id"),
        ("owner: \"12\"", "images[0].owner"),
        ("architecture: mips", "images[0].architecture"),
        ("parameters: [\"a b\"]", "images[0].parameters[0]"),
    ] {
        let bad = text().replacen(name, &format!("{name}    {line}\n"), 1);
        assert_ne!(bad, text());
        let problems = Scenario::read("bad.yaml", &bad).unwrap_err();
        let fields: Vec<&str> = problems.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, [field], "{line}");
    }
    let bad = text().replacen("created: 2026-06-10", "created: soon", 1);
    assert_eq!(Scenario::read("bad.yaml", &bad).unwrap_err().len(), 1);
}

/// EC2 lets many images have one name, and none one id.
#[test]
fn images_of_one_name_are_told_apart_by_their_ids() {
    let name = "amazon-eks-node-al2023-arm64-standard-1.33-v20260610";
    let also = |line: &str| text().replacen("images:\n", &format!("images:\n  - {line}\n"), 1);
    let id = "ami-0123456789abcdef0";
    let twice = also(&format!("{{name: {name}, id: {id}, created: 2026-06-01}}"));
    for (bad, field, told) in [
        (twice.clone(), "fleet[0].image", "2 images are called"),
        (also(&format!("{{name: {name}, created: 2026-06-01}}")), "images[1].name", "two images"),
        (
            also(&format!(
                "{{name: a, id: {id}, created: 2026-06-01}}\n  - {{name: b, id: {id}, created: 2026-06-01}}"
            )),
            "images[1].id",
            "is the id of `a` already",
        ),
    ] {
        let problems = Scenario::read("bad.yaml", &bad).unwrap_err();
        let found = problems.iter().find(|it| it.field == field && it.message.contains(told));
        assert!(found.is_some_and(|it| it.hint.is_some()), "{field}: {problems:#?}");
    }
    let good = twice.replacen(&format!("    image: {name}"), &format!("    image: {id}"), 1);
    World::new(&scenario(&good), 1).unwrap_or_else(|it| panic!("{it}"));
}

/// Of a first fleet of somebody's own, of which neither the scenario nor the pool says how old it may be.
#[test]
fn a_fleet_without_an_age_does_not_expire_at_once() {
    let text =
        text().replacen("    age: 20d\n", "", 1).replacen("      expireAfter: Never\n", "", 1);
    assert!(!text.contains("age: 20d") && !text.contains("expireAfter"));
    let mut world = World::new(&scenario(&text), 1).unwrap();
    world.run(hours(24));
    let picture = world.picture().unwrap();
    let wishes: Vec<_> = picture.fleet.nodes.values().filter_map(|it| it.wish.as_ref()).collect();
    assert_eq!(wishes, Vec::<&nodemolt_core::plan::Wish>::new());
    assert!(world.objects(nodemolt_sim::kinds::REPLACEMENT).is_empty());
}

#[test]
fn a_text_that_is_none_is_refused() {
    for (text, told) in [
        ("", "no document of kind Simulation"),
        ("kind: [", ""),
        ("- 1", "expected an object"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}", "metadata.name"),
        ("kind: Simulation\nstart: 2026-08-01", "apiVersion: is missing"),
        ("kind: Pod", "apiVersion"),
        (
            "apiVersion: nodemolt.dev/sim\nkind: Simulation\nstart: 2026-08-01\n---\n\
             apiVersion: nodemolt.dev/sim\nkind: Simulation\nstart: 2026-08-01\n",
            "second",
        ),
    ] {
        let problems = Scenario::read("bad.yaml", text).unwrap_err();
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(all.iter().any(|it| it.contains(told)), "{text}: {all:?}");
        let same = |it: &&String| all.iter().filter(|other| other == it).count() > 1;
        assert_eq!(all.iter().find(same), None, "{text}");
    }
}

/// As Go writes it, and `kubectl` reads it.
#[test]
fn a_list_of_nothing_is_nothing() {
    let good = text();
    let with = format!("{good}\n---\napiVersion: v1\nkind: List\nitems: null\n");
    assert_eq!(scenario(&with).objects, scenario(&good).objects);
}

/// A Simulation that cannot be read is not missing.
#[test]
fn a_key_that_is_there_twice_is_told_and_nothing_else() {
    let bad = text().replacen("kubernetes:", "start: 2026-08-02\nkubernetes:", 1);
    let problems = Scenario::read("bad.yaml", &bad).unwrap_err();
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(all.len() == 1 && all[0].contains("start"), "{all:?}");
}

/// What the API server would refuse is told by the object's name.
#[test]
fn what_the_api_server_refuses_does_not_begin() {
    for (from, to, told) in [
        ("consolidateAfter: Never", "consolidateAfter: tomorrow", "web"),
        // Subnets that are written are all that there are.
        (
            "kubernetes: \"1.33\"",
            "subnets: [{id: subnet-1, zone: eu-central-1a, tags: {of: others}}, {id: subnet-2, zone: eu-central-1b}]",
            "EC2NodeClass general selects no subnet in eu-central-1a, where nodes of the fleet are; write one",
        ),
        ("kind: Deployment", "kind: Deplyment", "Deplyment"),
    ] {
        let bad = text().replacen(from, to, 1);
        let refused = match Scenario::read("bad.yaml", &bad) {
            Err(problems) => {
                problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            }
            Ok(scenario) => World::new(&scenario, 1).unwrap_err().to_string(),
        };
        assert!(refused.contains(told), "{to}: {refused}");
    }
}

/// Issue 7: it lacked what its pool asks for, drifted at once, and was replaced with nothing published.
#[test]
fn a_fleet_has_the_labels_that_its_pool_asks_for_and_no_machine_decides() {
    for asked in
        ["operator: Exists", "operator: Gt, values: [\"5\"]", "operator: In, values: [b, a]"]
    {
        let key = "        - key: kubernetes.io/os\n";
        let text =
            text().replace(key, &format!("        - {{key: company.com/y, {asked}}}\n{key}"));
        assert!(text.contains("company.com/y"), "{text}");
        let mut world = World::new(&scenario(&text), 7).unwrap_or_else(|it| panic!("{it}"));
        world.run(mins(5));
        assert_eq!(
            world.objects(kinds::REPLACEMENT).len(),
            0,
            "{asked}\n{}",
            last_lines(&world, 30)
        );
    }
}
