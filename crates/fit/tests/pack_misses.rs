//! Is what would have to change told rightly, and do groups start where all have room?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use nodemolt_fit::node::Node;
use nodemolt_fit::pack::{Home, Obstacle, Packing, Why, pack};
use nodemolt_fit::pod::{Demand, Namespace, Pod, PodTerm, Spread, Volume};
use nodemolt_fit::pool::{Machine, Offering, Pool, Price};
use nodemolt_fit::requirement::{Operator, Written};
use nodemolt_fit::selector::{NodeTerm, Selector};
use nodemolt_fit::taint::{Effect, Taint};
use nodemolt_fit::{Quantity, label};

fn cpu(millis: i64) -> BTreeMap<String, Quantity> {
    let many = Quantity::from_units(99);
    [("cpu".to_owned(), Quantity::from_millis(millis)), ("pods".to_owned(), many)].into()
}

fn node(name: &str, zone: &str, millis: i64) -> Node {
    let labels = [(label::HOSTNAME, name), (label::ZONE, zone)];
    Node {
        name: name.to_owned(),
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        allocatable: cpu(millis),
        initialised: true,
        ..Node::default()
    }
}

fn asks(app: &str, millis: i64) -> Demand {
    let mut requests = cpu(millis);
    requests.remove("pods");
    let labels = [("app".to_owned(), app.to_owned())].into();
    Demand { labels, requests, ..Demand::default() }
}

fn near(app: &str, key: &str) -> Vec<PodTerm> {
    let selector = Selector::labels([("app", app)]);
    vec![PodTerm { topology_key: key.to_owned(), selector, ..PodTerm::default() }]
}

fn pods(name: &str, demand: Demand, count: usize) -> Vec<Pod> {
    let (namespace, demand) = (Arc::new(Namespace::named("shop")), Arc::new(demand));
    (0..count).map(|at| Pod::new(&namespace, &format!("{name}-{at}"), &demand)).collect()
}

fn pool(millis: i64, offerings: Vec<Offering>) -> Pool {
    let machine = Machine {
        name: "m.large".to_owned(),
        labels: [(label::INSTANCE_TYPE.to_owned(), vec!["m.large".to_owned()])].into(),
        allocatable: cpu(millis),
        capacity: cpu(millis),
        offerings,
        ..Machine::default()
    };
    Pool { name: "default".to_owned(), machines: Arc::new(vec![machine]), ..Pool::default() }
}

fn bought(zone: &str, available: bool) -> Offering {
    Offering { available, ..Offering::new(zone, "on-demand", Some(Price(5))) }
}

fn obstacles(packing: &Packing) -> Vec<Obstacle> {
    match &packing.unplaced.first().unwrap().why {
        Why::NoPlace { nearest: Some(miss) } => miss.obstacles.clone(),
        other @ (Why::Gated(_) | Why::Unmodelled(_) | Why::NoPlace { .. }) => panic!("{other}"),
    }
}

#[test]
fn a_group_starts_on_the_node_that_has_room_for_all() {
    let own = Demand { affinity: near("g", label::HOSTNAME), ..asks("g", 100) };
    let nodes = [node("n1", "a", 150), node("n2", "a", 4000)];
    let packing = pack(&pods("g", own, 3), &nodes, &[]);
    assert_eq!(packing.unplaced, []);
}

#[test]
fn a_group_starts_in_the_zone_that_has_room_for_all() {
    let own = Demand { affinity: near("g", label::ZONE), ..asks("g", 100) };
    let nodes = [node("n1", "a", 150), node("n2", "b", 150), node("n3", "b", 150)];
    let packing = pack(&pods("g", own, 2), &nodes, &[]);
    assert_eq!(packing.unplaced, []);
}

#[test]
fn who_is_followed_goes_where_the_others_have_room_and_leaves_it_to_them() {
    let leader = asks("db", 100);
    let follower = Demand { affinity: near("db", label::HOSTNAME), ..asks("web", 100) };
    let nodes = [node("n1", "a", 150), node("n2", "a", 500)];
    let all = [pods("db", leader, 2), pods("web", follower, 4)].concat();
    let packing = pack(&all, &nodes, &[]);
    assert_eq!(packing.unplaced, [], "{packing:?}");
}

#[test]
fn a_group_gets_a_new_node_where_no_node_has_room_for_all() {
    let own = Demand { affinity: near("g", label::HOSTNAME), ..asks("g", 100) };
    let nodes = [node("n1", "a", 150)];
    let pools = [pool(2000, vec![bought("a", true)])];
    let packing = pack(&pods("g", own, 3), &nodes, &pools);
    assert_eq!((packing.unplaced.len(), packing.new_nodes.len()), (0, 1));
    assert!(packing.placed.iter().all(|it| it.home == Home::New(0)));
}

#[test]
fn what_cannot_be_had_just_now_is_told_as_that() {
    let in_a = |demand: Demand| {
        let node_selector = [(label::ZONE.to_owned(), "a".to_owned())].into();
        Demand { node_selector, ..demand }
    };
    // In one of the zones, and then at all.
    for (demand, other) in [(in_a(asks("x", 100)), true), (asks("x", 100), false)] {
        let pools = [pool(2000, vec![bought("a", false), bought("b", other)])];
        let packing = pack(&pods("p", demand, 1), &[], &pools);
        assert_eq!(obstacles(&packing), [Obstacle::NoCapacity]);
    }
    // More would not help who is too large.
    let pools = [pool(2000, vec![bought("a", false), bought("b", true)])];
    let packing = pack(&pods("p", asks("x", 3000), 1), &[], &pools);
    let by = Quantity::from_millis(1000);
    assert_eq!(obstacles(&packing), [Obstacle::Short { resource: "cpu".to_owned(), by }]);
}

#[test]
fn what_no_image_boots_on_is_no_place_and_told_as_that() {
    let imageless = |zone| Offering { imageless: true, ..bought(zone, true) };
    let small = pool(1000, vec![bought("a", true)]);
    let large = pool(4000, vec![imageless("a")]);
    // The only machine, and the only one that is large enough.
    let both = small.machines.iter().cloned().chain(large.machines.iter().map(|it| {
        let name = "large".to_owned();
        Machine { name, ..it.clone() }
    }));
    let both = Pool { machines: Arc::new(both.collect()), ..small.clone() };
    for pools in [[large], [both]] {
        let packing = pack(&pods("p", asks("x", 2000), 1), &[], &pools);
        assert_eq!(obstacles(&packing), [Obstacle::NoImage]);
    }
    // With an image there is still no capacity of it.
    let neither = Offering { available: false, ..imageless("a") };
    let packing = pack(&pods("p", asks("x", 100), 1), &[], &[pool(1000, vec![neither])]);
    assert_eq!(obstacles(&packing), [Obstacle::NoImage]);
}

#[test]
fn a_pool_that_launches_none_is_no_place_and_says_why() {
    let why = "it is not ready".to_owned();
    let idle = Pool { idle: Some(why.clone()), ..pool(2000, vec![bought("a", true)]) };
    let packing = pack(&pods("p", asks("x", 100), 1), &[], &[idle]);
    assert_eq!(obstacles(&packing), [Obstacle::Idle(why)]);
}

#[test]
fn too_small_and_busy_are_told_apart() {
    let mut busy = node("n1", "a", 4000);
    busy.pods = pods("runs", asks("y", 3500), 1);
    let by = Quantity::from_millis(500);
    let packing = pack(&pods("p", asks("x", 1000), 1), &[busy], &[]);
    assert_eq!(obstacles(&packing), [Obstacle::Short { resource: "cpu".to_owned(), by }]);
    let packing = pack(&pods("p", asks("x", 1000), 1), &[node("n1", "a", 500)], &[]);
    assert_eq!(obstacles(&packing), [Obstacle::TooSmall { resource: "cpu".to_owned(), by }]);
    let unread = Node { unread: Some("why".to_owned()), ..node("n1", "a", 0) };
    let packing = pack(&pods("p", asks("x", 1000), 1), &[unread], &[]);
    assert_eq!(obstacles(&packing), [Obstacle::Unread("why".to_owned())]);
}

#[test]
fn volumes_of_two_zones_are_never_reached_together() {
    let volume = |handle: &str, zone: &str| Volume {
        handle: handle.to_owned(),
        driver: None,
        reach: Some(vec![NodeTerm::labels(vec![Written {
            key: label::ZONE.to_owned(),
            operator: Operator::In,
            values: vec![zone.to_owned()],
            min_values: None,
        }])]),
        own: false,
    };
    let demand = Demand { volumes: vec![volume("v", "a"), volume("w", "b")], ..asks("x", 100) };
    let pools = [pool(2000, vec![bought("a", true), bought("b", true)])];
    let packing = pack(&pods("p", demand, 1), &[node("n1", "a", 2000)], &pools);
    let handles = vec!["v".to_owned(), "w".to_owned()];
    assert_eq!(obstacles(&packing), [Obstacle::VolumesApart { handles }]);
}

#[test]
fn who_is_in_the_way_is_named() {
    let mut taken = node("n1", "a", 4000);
    taken.pods =
        pods("lonely", Demand { anti_affinity: near("x", label::ZONE), ..asks("y", 1) }, 1);
    let packing = pack(&pods("p", asks("x", 100), 1), std::slice::from_ref(&taken), &[]);
    let who = Some(taken.pods[0].id());
    assert_eq!(obstacles(&packing), [Obstacle::Unwelcome { key: label::ZONE.to_owned(), who }]);
    let shy = Demand { anti_affinity: near("y", label::HOSTNAME), ..asks("z", 100) };
    let packing = pack(&pods("p", shy, 1), std::slice::from_ref(&taken), &[]);
    let who = Some(taken.pods[0].id());
    assert_eq!(obstacles(&packing), [Obstacle::TooNear { key: label::HOSTNAME.to_owned(), who }]);
}

#[test]
fn what_pods_ask_of_machines_is_in_the_claim_and_a_full_reservation_strands_nobody() {
    let mut reserved = Offering::new("a", "reserved", Some(Price(0)));
    reserved.labels.insert(label::CAPACITY_RESERVATION_ID.to_owned(), "cr-1".to_owned());
    reserved.remaining = Some(1);
    let mut pool = pool(1000, vec![bought("a", true), bought("b", true), reserved]);
    let machines = Arc::make_mut(&mut pool.machines);
    machines[0].labels.insert(label::ARCH.to_owned(), vec!["arm64".to_owned()]);
    let node_selector = [(label::ARCH.to_owned(), "arm64".to_owned())].into();
    let demand = Demand { node_selector, ..asks("x", 800) };
    let packing = pack(&pods("p", demand, 2), &[], &[pool]);
    let says = |at: usize, key: &str| {
        let all = packing.new_nodes[at].requirements.iter();
        all.filter(|it| it.key == key).map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    // Which of its choices is had is seen at the launch: reserved first, and what is bought where that is taken.
    assert_eq!(
        says(0, label::CAPACITY_TYPE),
        "karpenter.sh/capacity-type In [on-demand, reserved]"
    );
    assert_eq!(says(0, label::CAPACITY_RESERVATION_ID), "");
    assert_eq!(says(1, label::CAPACITY_TYPE), "karpenter.sh/capacity-type In [on-demand]");
    assert_eq!(says(1, label::ARCH), "kubernetes.io/arch In [arm64]");
}

#[test]
fn what_a_node_says_of_itself_is_not_for_a_pod_to_tolerate() {
    let keys = [
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/out-of-service",
        "node.cloudprovider.kubernetes.io/shutdown",
        "aws-node-termination-handler/spot-itn",
        "karpenter.sh/disruption",
        "node.cilium.io/agent-not-ready",
    ];
    for key in keys {
        let taint = Taint::new(key, "", Effect::NoSchedule);
        assert!(taint.away().is_some(), "{key}");
        // A node that a pod could tolerate is nearer than one that is not for pods now.
        let ill = Node { taints: vec![taint], ..node("n1", "a", 4000) };
        let team = Taint::new("team", "a", Effect::NoSchedule);
        let other = Node { taints: vec![team.clone()], ..node("n2", "a", 4000) };
        let packing = pack(&pods("p", asks("x", 100), 1), &[ill, other], &[]);
        assert_eq!(obstacles(&packing), [Obstacle::Taint(team)], "{key}");
    }
    assert_eq!(Taint::new("dedicated", "gpu", Effect::NoSchedule).away(), None);
}

#[test]
fn a_pool_that_is_asked_for_by_name_is_nearer_than_any_other() {
    let node_selector = [(label::NODEPOOL.to_owned(), "other".to_owned())].into();
    let demand = Demand { node_selector, ..asks("x", 3000) };
    let other = Pool { name: "other".to_owned(), ..pool(2000, vec![bought("a", true)]) };
    // It is too small, closed and full, and all the same the only one that could do.
    let taints = vec![Taint::new("team", "a", Effect::NoSchedule)];
    let limits = [("nodes".to_owned(), Quantity::from_units(0))].into();
    let other = Pool { taints, limits, ..other };
    let pools = [pool(4000, vec![bought("a", true)]), other];
    let packing = pack(&pods("p", demand, 1), &[node("n1", "a", 4000)], &pools);
    let Why::NoPlace { nearest: Some(miss) } = &packing.unplaced[0].why else { panic!() };
    assert_eq!(miss.place.to_string(), "a new node of pool other");
    assert_eq!(miss.obstacles.len(), 3, "{miss:?}");
    for (key, alone) in [
        (label::NODEPOOL, true),
        (label::HOSTNAME, true),
        ("karpenter.sh/initialized", true),
        ("karpenter.k8s.aws/made-up", true),
        (label::CAPACITY_TYPE, false),
        (label::FAMILY, false),
        ("team", false),
    ] {
        assert_eq!(label::not_for_pools(key), alone, "{key}");
    }
}

#[test]
fn of_places_with_the_same_in_the_way_the_one_with_the_least_of_it_is_nearest() {
    // By room: the first by name lacks more.
    let nodes = [node("n1", "a", 200), node("n2", "a", 900), node("n3", "a", 500)];
    let packing = pack(&pods("p", asks("x", 1000), 1), &nodes, &[]);
    let by = Quantity::from_millis(100);
    assert_eq!(obstacles(&packing), [Obstacle::TooSmall { resource: "cpu".to_owned(), by }]);
    // By skew: five are in zone a, one is in b where a node could come, and none is in c, which is cordoned.
    let spread = Spread {
        topology_key: label::ZONE.to_owned(),
        max_skew: 1,
        required: true,
        selector: Selector::labels([("app", "w")]),
        match_label_keys: Vec::new(),
        min_domains: None,
        honour_node_affinity: true,
        honour_taints: false,
    };
    let cordoned = |name, zone| Node { unschedulable: true, ..node(name, zone, 4000) };
    let mut nodes = [node("n1", "a", 4000), cordoned("n2", "b"), cordoned("n3", "c")];
    nodes[0].pods = pods("e", asks("w", 100), 5);
    nodes[1].pods = pods("f", asks("w", 100), 1);
    let pools = [pool(2000, vec![bought("b", true)])];
    let demand = |max_skew| {
        let spread = vec![Spread { max_skew, ..spread.clone() }];
        Demand { spread, ..asks("w", 100) }
    };
    let packing = pack(&pods("p", demand(1), 1), &nodes, &pools);
    let key = label::ZONE.to_owned();
    assert_eq!(obstacles(&packing), [Obstacle::Skewed { key, skew: 2, max: 1 }]);
    assert_eq!(pack(&pods("p", demand(2), 1), &nodes, &pools).unplaced, []);
}

#[test]
fn who_must_be_on_one_node_and_is_too_large_together_is_told_so() {
    let own = Demand { affinity: near("g", label::HOSTNAME), ..asks("g", 1000) };
    let packed = |millis| {
        let pools = [pool(millis, vec![bought("a", true)])];
        pack(&pods("g", own.clone(), 3), &[], &pools)
    };
    let cpu = |millis| Quantity::from_millis(millis);
    let together = Obstacle::TooLargeTogether {
        pods: 3,
        requests: [("cpu".to_owned(), cpu(3000))].into(),
        resource: "cpu".to_owned(),
        by: cpu(1070),
    };
    assert_eq!(obstacles(&packed(1930)), [together]);
    assert_eq!(packed(1930 + 1070).unplaced, []);
    assert_eq!(packed(1930 + 1069).unplaced.len(), 1);
}

#[test]
fn a_daemon_that_is_in_the_way_of_a_new_node_is_named() {
    let shy = Demand { anti_affinity: near("cache", label::HOSTNAME), ..asks("x", 100) };
    let mut pool = pool(2000, vec![bought("a", true)]);
    pool.daemons = pods("cache", asks("cache", 10), 1);
    let who = Some(pool.daemons[0].id());
    let packing = pack(&pods("p", shy, 1), &[], &[pool]);
    assert_eq!(obstacles(&packing), [Obstacle::TooNear { key: label::HOSTNAME.to_owned(), who }]);
}
