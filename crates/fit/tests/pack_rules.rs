//! Which rules does packing follow, one at a time?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use nodemolt_fit::node::Node;
use nodemolt_fit::pack::{Home, Obstacle, Packing, Preference, Why, pack};
use nodemolt_fit::pod::{
    Demand, HostPort, InitContainer, Namespace, Pod, PodTerm, Spread, Volume, Weighted, requests,
};
use nodemolt_fit::pool::{Machine, Offering, Pool, Price};
use nodemolt_fit::requirement::{Operator, Written};
use nodemolt_fit::selector::{Labels, NodeTerm, Selector};
use nodemolt_fit::taint::{Effect, Taint, Tolerated, Toleration};
use nodemolt_fit::{Quantity, label};

fn written(key: &str, operator: Operator, values: &[&str]) -> Written {
    let values = values.iter().map(|it| (*it).to_owned()).collect();
    Written { key: key.to_owned(), operator, values, min_values: None }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn amounts(text: &str) -> BTreeMap<String, Quantity> {
    let pair = |it: &str| {
        let (name, amount) = it.split_once('=').unwrap();
        (name.to_owned(), amount.parse().unwrap())
    };
    text.split_whitespace().map(pair).collect()
}

fn demand(text: &str) -> Demand {
    Demand { labels: labels(&[("app", "web")]), requests: amounts(text), ..Demand::default() }
}

fn pods(demand: Demand, count: usize) -> Vec<Pod> {
    let (namespace, demand) = (Arc::new(Namespace::named("shop")), Arc::new(demand));
    (0..count).map(|at| Pod::new(&namespace, &format!("web-{at}"), &demand)).collect()
}

fn node(name: &str, zone: &str, room: &str) -> Node {
    Node {
        name: name.to_owned(),
        labels: labels(&[(label::HOSTNAME, name), (label::ZONE, zone)]),
        allocatable: amounts(room),
        initialised: true,
        ..Node::default()
    }
}

fn machine(name: &str, room: &str, zones: &[&str], price: Option<u64>) -> Machine {
    let capacity = amounts(room);
    Machine {
        name: name.to_owned(),
        labels: BTreeMap::from([(label::INSTANCE_TYPE.to_owned(), vec![name.to_owned()])]),
        allocatable: capacity.clone(),
        capacity,
        offerings: zones.iter().map(|it| Offering::new(it, "spot", price.map(Price))).collect(),
        ..Machine::default()
    }
}

fn pool(machines: Vec<Machine>) -> Pool {
    Pool { name: "default".to_owned(), machines: Arc::new(machines), ..Pool::default() }
}

fn three_zones() -> Pool {
    let zones = ["a", "b", "c"];
    pool(vec![
        machine("small", "cpu=2 memory=4Gi pods=10", &zones, Some(2)),
        machine("large", "cpu=8 memory=16Gi pods=40", &zones, Some(8)),
    ])
}

fn term(key: &str, app: &str) -> PodTerm {
    PodTerm {
        topology_key: key.to_owned(),
        selector: Selector::labels([("app", app)]),
        ..PodTerm::default()
    }
}

fn spread(key: &str) -> Spread {
    Spread {
        topology_key: key.to_owned(),
        selector: Selector::labels([("app", "web")]),
        ..Spread::default()
    }
}

fn on(packing: &Packing) -> Vec<String> {
    let name = |it: &Home| match it {
        Home::Node(name) => name.clone(),
        Home::New(at) => format!("new {at}"),
    };
    packing.placed.iter().map(|it| name(&it.home)).collect()
}

/// Why the only pod has no place on the only node.
fn refused(demand: Demand, node: &Node) -> String {
    let packing = pack(&pods(demand, 1), std::slice::from_ref(node), &[]);
    packing.unplaced.first().map_or("placed".to_owned(), |it| it.why.to_string())
}

#[test]
fn what_is_in_the_way_is_said_in_words() {
    let usual = || node("n", "a", "cpu=1 memory=1Gi pods=2");
    let with = |pod: Pod| Node { pods: vec![pod], ..usual() };
    let other = |demand: Demand| pods(demand, 1).remove(0);
    let one = || demand("cpu=1");
    let port = HostPort { address: String::new(), protocol: String::new(), port: 80 };
    let ports = || Demand { host_ports: vec![port.clone()], ..demand("cpu=100m") };
    let averse = |key| Demand { anti_affinity: vec![term(key, "web")], ..demand("cpu=100m") };
    let elsewhere = vec![NodeTerm::labels(vec![written(label::ZONE, Operator::In, &["b"])])];
    let volume = |reach, driver: Option<&str>| Demand {
        volumes: vec![Volume {
            handle: "vol-1".to_owned(),
            driver: driver.map(str::to_owned),
            reach,
            own: false,
        }],
        ..demand("cpu=100m")
    };
    let no_driver = Node { volume_limits: BTreeMap::from([("ebs".to_owned(), 0)]), ..usual() };
    let attached = |handle: &str| Node {
        volume_limits: BTreeMap::from([("ebs".to_owned(), 1)]),
        attached: vec![Volume {
            handle: handle.to_owned(),
            driver: Some("ebs".to_owned()),
            reach: None,
            own: false,
        }],
        ..usual()
    };
    let tainted = Node { taints: vec![Taint::new("gpu", "yes", Effect::NoExecute)], ..usual() };
    let cases: Vec<(Demand, Node, &str)> = vec![
        (one(), usual(), "placed"),
        (demand("cpu=1500m"), usual(), "the whole node has 500m too little cpu"),
        (demand("memory=1536Mi"), usual(), "the whole node has 512Mi too little memory"),
        (demand("example.com/gpu=2"), usual(), "2 more example.com/gpu needed"),
        (one(), Node { allocatable: amounts("cpu=9"), ..usual() }, "1 more pods needed"),
        (one(), Node { set_aside: amounts("cpu=200m"), ..usual() }, "200m more cpu needed"),
        (one(), tainted, "taint gpu=yes:NoExecute is not tolerated"),
        (
            one(),
            Node { unschedulable: true, ..usual() },
            "taint node.kubernetes.io/unschedulable:NoSchedule is not tolerated",
        ),
        (
            Demand { node_selector: labels(&[("disk", "ssd")]), ..one() },
            usual(),
            "it asks for disk In [ssd]",
        ),
        (
            Demand { node_terms: Some(elsewhere.clone()), ..one() },
            usual(),
            "it asks for topology.kubernetes.io/zone In [b]",
        ),
        (volume(Some(elsewhere), None), usual(), "volume vol-1 is elsewhere"),
        (volume(None, Some("ebs")), no_driver, "ebs can attach 1 volumes too few"),
        (volume(None, Some("ebs")), attached("vol-0"), "ebs can attach 1 volumes too few"),
        (volume(None, Some("ebs")), attached("vol-1"), "placed"),
        (ports(), with(other(ports())), "host port 80 is taken"),
        (
            averse(label::HOSTNAME),
            with(other(demand("cpu=100m"))),
            "a pod that it must avoid, shop/web-0, is in this kubernetes.io/hostname",
        ),
        (
            demand("cpu=100m"),
            with(other(averse(label::ZONE))),
            "a pod in this topology.kubernetes.io/zone, shop/web-0, must avoid it",
        ),
        (
            Demand { affinity: vec![term(label::ZONE, "db")], ..one() },
            usual(),
            "no pod that it must be near (app In [db]) is in this topology.kubernetes.io/zone",
        ),
        (Demand { spread: vec![spread("rack")], ..one() }, usual(), "there is no label rack"),
        (
            Demand {
                spread: vec![Spread { min_domains: Some(2), ..spread(label::ZONE) }],
                ..demand("cpu=100m")
            },
            with(other(demand("cpu=100m"))),
            "the skew over topology.kubernetes.io/zone would be 2, at most 1 is allowed",
        ),
        (
            Demand { gates: vec!["quota".to_owned()], ..one() },
            usual(),
            "waits for scheduling gates: quota",
        ),
        (
            Demand { unmodelled: vec!["a claim".to_owned()], ..one() },
            usual(),
            "asks for what is not modelled: a claim",
        ),
    ];
    for (demand, node, expected) in cases {
        let of_itself =
            ["placed", "waits for", "asks for what"].iter().any(|it| expected.starts_with(it));
        let at = if of_itself { "" } else { "nearest is node n: " };
        assert_eq!(refused(demand, &node), format!("{at}{expected}"));
    }
    let nothing = pack(&pods(one(), 1), &[], &[]);
    assert_eq!(nothing.unplaced[0].why, Why::NoPlace { nearest: None });
}

#[test]
fn a_pod_requests_what_it_needs_at_its_worst_moment() {
    let init = |text: &str, sidecar| InitContainer { requests: amounts(text), sidecar };
    let cases = [
        ("cpu=1", vec![], "", "", "cpu=1"),
        ("cpu=1", vec![init("cpu=3", false)], "", "", "cpu=3"),
        // A sidecar that started before adds to the init container that follows, and to the pod.
        ("cpu=1", vec![init("cpu=1", true), init("cpu=3", false)], "", "", "cpu=4"),
        ("cpu=3", vec![init("cpu=2", false), init("cpu=1", true)], "", "", "cpu=4"),
        (
            "cpu=1 memory=1Gi",
            vec![init("memory=2Gi", false)],
            "",
            "cpu=250m",
            "cpu=1250m memory=2Gi",
        ),
        // What the pod says itself stands for its containers; extended resources it cannot say.
        ("cpu=1 x.com/y=1", vec![], "cpu=5 x.com/y=7", "cpu=1", "cpu=6 x.com/y=1"),
    ];
    for (container, init, pod, overhead, expected) in cases {
        let found = requests(&[amounts(container)], &init, &amounts(pod), &amounts(overhead));
        assert_eq!(found, amounts(expected), "{container} with {init:?}");
    }
}

#[test]
fn startup_taints_keep_nobody_away_until_the_node_is_set_up() {
    let taint = Taint::new("cni", "", Effect::NoSchedule);
    let mut starting = node("n", "a", "cpu=1 pods=9");
    starting.taints =
        vec![taint.clone(), Taint::new("node.kubernetes.io/not-ready", "", Effect::NoExecute)];
    starting.startup_taints = vec![taint];
    starting.initialised = false;
    assert_eq!(refused(demand("cpu=1"), &starting), "placed");
    starting.initialised = true;
    assert_ne!(refused(demand("cpu=1"), &starting), "placed");
}

#[test]
fn the_first_of_a_group_may_start_it_and_the_others_follow() {
    let nodes = |room: &str| [node("n1", "a", "cpu=2 pods=9"), node("n2", "b", room)];
    let gather = Demand { affinity: vec![term(label::ZONE, "web")], ..demand("cpu=1") };
    let packing = pack(&pods(gather.clone(), 4), &nodes("cpu=9 pods=9"), &[]);
    assert_eq!(on(&packing), ["n2"; 4], "there all have room");
    let packing = pack(&pods(gather, 4), &nodes("cpu=1 pods=9"), &[]);
    assert_eq!(on(&packing), ["n1", "n1"], "the other two would have to be in another zone");
    assert_eq!(packing.unplaced.len(), 2);
}

#[test]
fn the_zone_of_a_node_that_leaves_is_there_until_it_is_gone() {
    let spreading = Demand { spread: vec![spread(label::ZONE)], ..demand("cpu=500m") };
    let mut stays = node("b", "b", "cpu=8 memory=16Gi pods=40");
    stays.pods = pods(spreading.clone(), 2);
    let leaves = Node { leaving: true, ..node("a", "a", "cpu=8 memory=16Gi pods=40") };
    let moving: Vec<Pod> = pods(spreading.clone(), 4).split_off(2);
    let zones = pool(vec![machine("large", "cpu=8 memory=16Gi pods=40", &["a", "b"], Some(8))]);
    // Both would make four in one zone and none in the other, which the scheduler still sees.
    let packing = pack(&moving, &[stays.clone(), leaves.clone()], &[zones]);
    let on_new = packing.placed.iter().filter(|it| matches!(it.home, Home::New(_))).count();
    assert!(packing.unplaced.is_empty() && on_new == 2, "{packing:?}");
    let packing = pack(&moving, &[stays.clone(), leaves.clone()], &[]);
    assert_eq!(packing.unplaced.len(), 2, "{packing:?}");
    // Whoever looks at taints does not see a node that is cordoned.
    let looks =
        Demand { spread: vec![Spread { honour_taints: true, ..spread(label::ZONE) }], ..spreading };
    let packing = pack(&pods(looks, 4).split_off(2), &[stays, leaves], &[]);
    assert!(packing.unplaced.is_empty(), "{packing:?}");
}

#[test]
fn pods_are_spread_over_zones_that_have_no_node_yet() {
    let spreading = Demand { spread: vec![spread(label::ZONE)], ..demand("cpu=500m") };
    let packing = pack(&pods(spreading, 9), &[], &[three_zones()]);
    let zones: Vec<&Written> = packing
        .new_nodes
        .iter()
        .flat_map(|it| it.requirements.iter().filter(|it| it.key == label::ZONE))
        .collect();
    assert_eq!(zones.iter().map(|it| it.values[0].as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(packing.new_nodes.iter().all(|it| it.pods.len() == 3));
}

#[test]
fn where_a_zone_cannot_be_had_the_others_are_filled_as_the_scheduler_would() {
    // No machine of zone c is large enough, so it can never hold one.
    let zones = pool(vec![
        machine("small", "cpu=1 pods=9", &["c"], None),
        machine("large", "cpu=8 pods=9", &["a", "b"], None),
    ]);
    let spreading = Demand { spread: vec![spread(label::ZONE)], ..demand("cpu=2") };
    let packing = pack(&pods(spreading, 6), &[], &[zones]);
    assert!(packing.unplaced.is_empty());
    assert_eq!(packing.new_nodes.iter().map(|it| it.pods.len()).collect::<Vec<_>>(), [3, 3]);
}

/// A new node is a domain as soon as it stands, and it stands before anybody moves: who could have been the second in his zone
/// while there was no other cannot be once there is. Who is pending is bound before.
#[test]
fn a_new_node_is_a_domain_before_anybody_moves() {
    let gpu = Taint::new("gpu", "", Effect::NoSchedule);
    let tolerations =
        vec![Toleration { key: Some("gpu".to_owned()), value: Tolerated::Any, effect: None }];
    let mut pool = pool(vec![machine("large", "cpu=8 pods=9", &["b"], None)]);
    pool.taints = vec![gpu];
    let spreading = Demand { spread: vec![spread(label::ZONE)], ..demand("cpu=2") };
    let needy = Demand { labels: Labels::new(), tolerations, ..demand("cpu=1") };
    let needy = Demand { node_selector: labels(&[(label::ZONE, "b")]), ..needy };
    let mut all = pods(spreading, 2);
    all.extend(pods(needy, 1).into_iter().map(|it| Pod { name: "needy".into(), ..it }));
    let nodes = [node("n", "a", "cpu=8 pods=9")];
    for (order, unplaced) in [(0, 0), (1, 1)] {
        for it in &mut all {
            it.order = order;
        }
        let packing = pack(&all, &nodes, std::slice::from_ref(&pool));
        assert_eq!(packing.new_nodes.len(), 1);
        assert_eq!(packing.unplaced.len(), unplaced, "{:?}", packing.unplaced);
    }
    // Whoever comes later is nobody's concern before.
    all[2].order = 2;
    assert_eq!(pack(&all, &nodes, std::slice::from_ref(&pool)).unplaced, []);
}

/// Seed 5171: its volume keeps a pod in a zone, and another one needs a new node, wherever that is. In the third zone it would be a
/// domain without any of the first, which could not be where it must then.
#[test]
fn a_new_node_is_not_where_it_would_keep_others_from_their_zone() {
    let there = vec![NodeTerm::labels(vec![written(label::ZONE, Operator::In, &["a"])])];
    let (handle, reach) = ("vol-1".to_owned(), Some(there));
    let bound = Volume { handle, driver: None, reach, own: false };
    let spreading = Demand { spread: vec![spread(label::ZONE)], ..demand("cpu=100m") };
    let mut running = pods(spreading.clone(), 4);
    let in_b = Node { pods: running.split_off(2), ..node("b", "b", "cpu=200m pods=9") };
    let in_a = Node { pods: running.split_off(1), ..node("a", "a", "cpu=100m pods=9") };
    let mut moving = pods(Demand { volumes: vec![bound], ..spreading }, 1);
    moving.extend(pods(Demand { labels: Labels::new(), ..demand("cpu=1") }, 5).split_off(4));
    let packing = pack(&moving, &[in_a, in_b], &[three_zones()]);
    assert!(packing.unplaced.is_empty(), "{packing:?}");
}

/// Who is pending waits for a new node, too, if it is the second domain that he must have. Once it is there, so are the others.
#[test]
fn who_needs_a_new_node_as_a_domain_is_not_bound_before() {
    let apart = Spread { min_domains: Some(2), ..spread(label::HOSTNAME) };
    let spreading = Demand { spread: vec![apart], ..demand("cpu=500m") };
    let only = |pool: &str| labels(&[("kind", pool)]);
    let any = Toleration { key: None, value: Tolerated::Any, effect: None };
    let large = Demand { node_selector: only("x"), ..demand("cpu=1900m") };
    let needy = Demand { labels: Labels::new(), node_selector: only("y"), ..demand("cpu=100m") };
    let needy = Demand { tolerations: vec![any], ..needy };
    let named = |demand, name: &'static str| {
        pods(demand, 1).into_iter().map(move |it| Pod { name: name.into(), ..it })
    };
    let all: Vec<Pod> = named(large, "large")
        .chain(named(spreading, "spread"))
        .chain(named(needy, "needy"))
        .collect();
    let pools = ["x", "y"].map(|it| {
        let of = pool(vec![machine("m", "cpu=2 pods=9", &["a"], None)]);
        Pool { name: it.to_owned(), labels: only(it), ..of }
    });
    let [x, y] = pools;
    let y = Pool { taints: vec![Taint::new("gpu", "", Effect::NoSchedule)], ..y };
    let mut exists = node("n", "a", "cpu=1 pods=9");
    exists.pods = pods(demand("cpu=100m"), 1);
    let packing = pack(&all, &[exists], &[x, y]);
    let home =
        |name: &str| packing.placed.iter().find(|it| &*it.pod.name == name).map(|it| &it.home);
    // Two are empty when he comes: where he went before has one already.
    assert!(matches!(home("spread"), Some(Home::New(_))), "{packing:?}");
    assert_eq!(packing.placed.len(), 3);
}

#[test]
fn a_preference_chooses_between_nodes_and_buys_none_for_each_pod() {
    let apart = |key| Demand {
        preferred_anti_affinity: vec![Weighted { weight: 1, term: term(key, "web") }],
        ..demand("cpu=1")
    };
    let nodes = [node("n1", "a", "cpu=4 pods=9"), node("n2", "a", "cpu=4 pods=9")];
    let packing = pack(&pods(apart(label::HOSTNAME), 4), &nodes, &[three_zones()]);
    assert_eq!(on(&packing), ["n1", "n2", "n1", "n1"]);
    let relaxed: Vec<usize> = packing.placed.iter().map(|it| it.relaxed.len()).collect();
    assert_eq!(relaxed, [0, 0, 1, 1]);
    assert_eq!(packing.placed[2].relaxed, [Preference::PodAntiAffinity { at: 0 }]);
    // Without nodes: a machine per zone is worth it, a machine per pod is not.
    assert_eq!(pack(&pods(apart(label::ZONE), 4), &[], &[three_zones()]).new_nodes.len(), 3);
    assert_eq!(pack(&pods(apart(label::HOSTNAME), 4), &[], &[three_zones()]).new_nodes.len(), 1);
}

#[test]
fn a_light_preference_is_kept_where_a_heavy_one_cannot_be_had() {
    let prefer = |weight, zone| Weighted {
        weight,
        term: NodeTerm::labels(vec![written(label::ZONE, Operator::In, &[zone])]),
    };
    let preferred_nodes = vec![prefer(1, "b"), prefer(50, "nowhere")];
    let packing =
        pack(&pods(Demand { preferred_nodes, ..demand("cpu=1") }, 1), &[], &[three_zones()]);
    assert_eq!(packing.placed[0].relaxed, [Preference::NodeAffinity { at: 1 }]);
    let zone = packing.new_nodes[0].requirements.iter().find(|it| it.key == label::ZONE).unwrap();
    assert_eq!(zone.values, ["b"]);
}

#[test]
fn the_cheapest_machine_comes_first_and_the_unpriced_last() {
    let zones = ["a"];
    let machines = vec![
        machine("cheap-but-small", "cpu=1 pods=9", &zones, Some(1)),
        machine("dear", "cpu=8 pods=9", &zones, Some(9)),
        machine("unpriced", "cpu=8 pods=9", &zones, None),
        machine("fair", "cpu=4 pods=9", &zones, Some(4)),
    ];
    let packing = pack(&pods(demand("cpu=2"), 2), &[], &[pool(machines)]);
    let names: Vec<&str> = packing.new_nodes[0].machines.iter().map(|it| &*it.machine).collect();
    assert_eq!(names, ["fair", "dear", "unpriced"]);
    assert_eq!(packing.new_nodes[0].requests, amounts("cpu=4"));
}

/// A stricter limit never places more: what it allows is allowed without it, too.
#[test]
fn where_a_limit_does_not_serve_all_zones_pods_are_spread_over_fewer() {
    let zones = ["a", "b", "c"];
    let sizes = [("s", 2), ("m", 4), ("l", 8), ("xl", 12), ("xxl", 16)];
    let machines = sizes.map(|(name, cpu)| {
        machine(name, &format!("cpu={cpu} memory={}Gi pods=40", 4 * cpu), &zones, Some(cpu))
    });
    let spreading = || Demand { spread: vec![spread(label::ZONE)], ..demand("cpu=1500m") };
    let left = |limits: &str| {
        let limited = Pool { limits: amounts(limits), ..pool(machines.to_vec()) };
        pack(&pods(spreading(), 12), &[], &[limited]).unplaced.len()
    };
    assert_eq!(left("cpu=24"), 0);
    // One zone with 16 and 4.
    assert_eq!(left("cpu=20"), 0);
    // Two zones, or one: 12 and 8 in any case.
    assert!(left("cpu=20 nodes=2") <= 1);
    assert!(left("cpu=20 memory=64Gi nodes=2") >= left("cpu=20 memory=64Gi"));
}

#[test]
fn limits_hold_whichever_machine_is_launched() {
    let mut limited = three_zones();
    limited.limits = amounts("cpu=12");
    limited.used = amounts("cpu=2");
    // Two nodes of 2 CPUs, or one of 8 and one of 2: 10 are left.
    let packing = pack(&pods(demand("cpu=1500m"), 3), &[], &[limited.clone()]);
    assert!(packing.unplaced.is_empty());
    let largest = |it: &nodemolt_fit::pack::NewNode| {
        if it.machines.iter().any(|it| it.machine == "large") { 8 } else { 2 }
    };
    assert!(packing.new_nodes.iter().map(largest).sum::<i64>() <= 10, "{:?}", packing.new_nodes);
    limited.limits = amounts("cpu=3");
    let packing = pack(&pods(demand("cpu=1500m"), 1), &[], &[limited]);
    assert_eq!(
        packing.unplaced[0].why.to_string(),
        "nearest is a new node of pool default: the pool's limit of cpu would have to be 1 higher"
    );
}

#[test]
fn reserved_capacity_is_promised_once() {
    let mut reserved = machine("r", "cpu=2 pods=9", &[], None);
    let mut offering = Offering::new("a", "reserved", Some(Price(0)));
    offering.labels.insert(label::CAPACITY_RESERVATION_ID.to_owned(), "cr-1".to_owned());
    offering.remaining = Some(1);
    reserved.offerings = vec![offering];
    let packing = pack(&pods(demand("cpu=2"), 2), &[], &[pool(vec![reserved])]);
    assert_eq!((packing.new_nodes.len(), packing.unplaced.len()), (1, 1));
}

#[test]
fn the_important_come_first_and_the_heavy_pool_too() {
    let namespace = Arc::new(Namespace::named("shop"));
    let vip = Arc::new(Demand { priority: 10, ..demand("cpu=1") });
    let all = [pods(demand("cpu=2"), 1), vec![Pod::new(&namespace, "vip", &vip)]].concat();
    let packing = pack(&all, &[node("n", "a", "cpu=2 pods=9")], &[]);
    assert_eq!(&*packing.placed[0].pod.name, "vip");
    let heavy = Pool { name: "heavy".to_owned(), weight: 5, ..three_zones() };
    let packing = pack(&all, &[], &[three_zones(), heavy]);
    assert!(packing.new_nodes.iter().all(|it| it.pool == "heavy"));
}

/// Nothing that an object can say makes it stumble; every pod is still accounted for.
#[test]
fn no_object_is_too_strange() {
    let huge: Quantity = "9e40".parse().unwrap();
    let odd_amounts = |amount: Quantity| {
        ["cpu", "memory", "pods", "", "nodes"].map(|it| (it.to_owned(), amount)).into()
    };
    let empty = written("", Operator::In, &[]);
    let junk = written(label::HOSTNAME, Operator::Gt, &["x", "y"]);
    let mut strange = Vec::new();
    for amount in [huge, Quantity::from_units(-5), Quantity::ZERO] {
        for (skew, domains) in [(0, None), (u32::MAX, Some(u32::MAX)), (1, Some(0))] {
            strange.push(Demand {
                requests: odd_amounts(amount),
                node_terms: Some(vec![NodeTerm::default(), NodeTerm::labels(vec![junk.clone()])]),
                ..Demand::default()
            });
            strange.push(Demand {
                requests: odd_amounts(amount),
                spread: vec![
                    Spread { max_skew: skew, min_domains: domains, ..spread("") },
                    Spread { max_skew: skew, min_domains: domains, ..spread(label::HOSTNAME) },
                ],
                affinity: vec![PodTerm::default()],
                anti_affinity: vec![PodTerm { selector: Selector::everything(), ..term("", "") }],
                host_ports: vec![HostPort {
                    address: "::".to_owned(),
                    protocol: "?".to_owned(),
                    port: 0,
                }],
                volumes: vec![Volume {
                    handle: String::new(),
                    driver: Some(String::new()),
                    reach: Some(vec![]),
                    own: true,
                }],
                preferred_nodes: vec![Weighted {
                    weight: i32::MIN,
                    term: NodeTerm::labels(vec![empty.clone()]),
                }],
                priority: i32::MIN,
                ..Demand::default()
            });
            strange.push(Demand {
                spread: vec![Spread { max_skew: skew, ..spread(label::ZONE) }],
                labels: labels(&[("app", "web")]),
                priority: i32::MAX,
                ..Demand::default()
            });
        }
    }
    let all: Vec<Pod> = strange.into_iter().flat_map(|it| pods(it, 3)).collect();
    for amount in [huge, Quantity::from_units(-5), Quantity::from_units(4)] {
        let nodes: Vec<Node> = (0..3)
            .map(|_| Node {
                allocatable: odd_amounts(amount),
                set_aside: odd_amounts(huge),
                pods: all.iter().take(4).cloned().collect(),
                ..Node::default()
            })
            .chain([Node { allocatable: odd_amounts(huge), ..node("n", "", "pods=9") }])
            .collect();
        let bare = Machine {
            allocatable: odd_amounts(amount),
            capacity: odd_amounts(amount),
            ..Machine::default()
        };
        let twice = Machine {
            offerings: vec![
                Offering::new("", "", None),
                Offering::new("", "", Some(Price(u64::MAX))),
            ],
            labels: BTreeMap::from([
                (String::new(), vec![]),
                ("k".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
            ]),
            ..bare.clone()
        };
        let mut demanding = empty.clone();
        demanding.min_values = Some(u32::MAX);
        let pools = [
            Pool {
                machines: Arc::new(vec![bare.clone(), twice.clone(), twice.clone()]),
                ..Pool::default()
            },
            Pool {
                limits: odd_amounts(amount),
                used: odd_amounts(huge),
                ..pool(vec![twice.clone()])
            },
            Pool {
                limits: odd_amounts(huge),
                requirements: vec![demanding],
                ..pool(vec![twice.clone()])
            },
            Pool {
                limits: odd_amounts(huge),
                requirements: vec![written("k", Operator::Lt, &["-1"])],
                ..pool(vec![twice])
            },
        ];
        let packing = pack(&all, &nodes, &pools);
        assert_eq!(packing.placed.len() + packing.unplaced.len(), all.len());
    }
}

/// A value of a label begins with a letter or a digit: nothing is below zero.
#[test]
fn no_label_is_below_zero() {
    let ranked =
        Pool { requirements: vec![written("rank", Operator::Exists, &[])], ..three_zones() };
    for (bound, placed) in [("-5", 0), ("0", 0), ("1", 1), ("7", 1)] {
        let labels = vec![written("rank", Operator::Lt, &[bound])];
        let node_terms = Some(vec![NodeTerm { labels, fields: Vec::new() }]);
        let low = Demand { node_terms, ..demand("cpu=1") };
        let packing = pack(&pods(low, 1), &[], std::slice::from_ref(&ranked));
        assert_eq!(packing.placed.len(), placed, "{bound}: {packing:?}");
    }
}

#[test]
fn a_node_that_exists_is_used_as_the_scheduler_would_use_it() {
    // A third zone could be opened, but the scheduler only sees the two that have nodes.
    let mut nodes = [node("n1", "a", "cpu=2 pods=9"), node("n2", "b", "cpu=2 pods=9")];
    for node in &mut nodes {
        node.pods = pods(demand("cpu=1"), 1);
    }
    let spreading = Demand { spread: vec![spread(label::ZONE)], ..demand("cpu=1") };
    let packing = pack(&pods(spreading, 3), &nodes, &[three_zones()]);
    assert_eq!(on(&packing), ["n1", "n2", "new 0"]);
}

fn daemon(selector: &[(&str, &str)]) -> Pod {
    let demand = Demand {
        labels: labels(&[("app", "agent")]),
        node_selector: labels(selector),
        ..Demand::default()
    };
    Pod::new(&Arc::new(Namespace::named("shop")), "agent", &Arc::new(demand))
}

#[test]
fn who_must_be_near_a_daemon_gets_a_node_that_brings_it_along() {
    for key in [label::HOSTNAME, label::ZONE] {
        let near = Demand { affinity: vec![term(key, "agent")], ..demand("cpu=500m") };
        let everywhere = Pool { daemons: vec![daemon(&[])], ..three_zones() };
        let packing = pack(&pods(near.clone(), 4), &[], std::slice::from_ref(&everywhere));
        assert_eq!(on(&packing), ["new 0"; 4], "{key}: {:?}", packing.unplaced);

        // Only the large one gets the daemon, so it must be that.
        let selector = [(label::INSTANCE_TYPE, "large")];
        let on_large = Pool { daemons: vec![daemon(&selector)], ..three_zones() };
        let packing = pack(&pods(near.clone(), 1), &[], &[on_large]);
        let machines: Vec<&str> =
            packing.new_nodes[0].machines.iter().map(|it| it.machine.as_str()).collect();
        assert_eq!(machines, ["large"], "{key}");

        // And where nobody like that comes, it has no place.
        let packing = pack(&pods(near, 1), &[], &[three_zones()]);
        assert_eq!(packing.placed.len(), 0, "{key}");
    }
}

#[test]
fn too_few_kinds_of_machines_are_said_to_be_that() {
    let mut kinds = written(label::INSTANCE_TYPE, Operator::Exists, &[]);
    kinds.min_values = Some(2);
    let pool = Pool { requirements: vec![kinds], ..three_zones() };
    // The small one has no room, so that one kind remains.
    let packing = pack(&pods(demand("cpu=3"), 1), &[], &[pool]);
    let Why::NoPlace { nearest: Some(miss) } = &packing.unplaced[0].why else { panic!() };
    let key = label::INSTANCE_TYPE.to_owned();
    assert_eq!(miss.obstacles, [Obstacle::MinValues { key, have: 1, need: 2 }]);

    // Zones are counted as the pool admits them for these machines, whichever a pod selects.
    for (zones, need, placed) in [(["a", "b"], 2, 1), (["a", "z"], 2, 0)] {
        let mut zones = written(label::ZONE, Operator::In, &zones);
        zones.min_values = Some(need);
        let pool = Pool { requirements: vec![zones], ..three_zones() };
        let in_a = Demand { node_selector: labels(&[(label::ZONE, "a")]), ..demand("cpu=1") };
        assert_eq!(pack(&pods(in_a, 1), &[], &[pool]).placed.len(), placed);
    }
}

/// What is said of the only pod that has no place, or where it went.
fn told(demand: Demand, nodes: &[Node], pool: Pool) -> String {
    let packing = pack(&pods(demand, 1), nodes, &[pool]);
    match packing.unplaced.first() {
        Some(it) => it.why.to_string(),
        None => on(&packing).concat(),
    }
}

#[test]
fn a_volume_of_its_own_is_another_one_for_every_pod() {
    let volume = |own| Volume {
        handle: "scratch".to_owned(),
        driver: Some("ebs".to_owned()),
        reach: None,
        own,
    };
    let asks = |volumes: &[Volume]| Demand { volumes: volumes.to_vec(), ..demand("cpu=1m") };
    let limits = BTreeMap::from([("ebs".to_owned(), 5)]);
    let room = "cpu=4 memory=4Gi pods=100";
    let with_limits = |it: Machine| Machine { volume_limits: limits.clone(), ..it };
    let machines = vec![with_limits(machine("m", room, &["a"], None))];
    for (volumes, placed) in [
        (vec![volume(false)], 9),
        (vec![volume(true)], 5),
        (vec![volume(true), volume(true)], 2),
        (vec![volume(true), volume(false)], 4),
    ] {
        let pods = pods(asks(&volumes), 9);
        let node = Node { volume_limits: limits.clone(), ..node("n", "a", room) };
        assert_eq!(pack(&pods, &[node], &[]).placed.len(), placed, "{volumes:?}");
        let packing = pack(&pods, &[], &[pool(machines.clone())]);
        assert_eq!(packing.new_nodes.len(), 9_usize.div_ceil(placed), "{volumes:?}");
    }
    // Those of pods that run already are attached, too.
    let running = pods(asks(&[volume(true)]), 2);
    let node = Node { volume_limits: limits, pods: running, ..node("n", "a", room) };
    let more = pods(asks(&[volume(true)]), 9).split_off(2);
    assert_eq!(pack(&more, &[node], &[]).placed.len(), 3);
}

#[test]
fn what_is_nearest_at_a_pool_is_what_the_pod_may_have_there() {
    let sized = |name: &str, cpu: &str, zones: &[&str]| {
        machine(name, &format!("cpu={cpu} memory=64Gi pods=40"), zones, None)
    };
    let both = || vec![sized("small", "2", &["a", "b"]), sized("large", "16", &["a", "b"])];
    let limited = |limit: &str, used: &str| Pool {
        limits: amounts(limit),
        used: amounts(used),
        ..pool(both())
    };
    let of_type =
        |name| Demand { node_selector: labels(&[(label::INSTANCE_TYPE, name)]), ..demand("cpu=1") };
    let in_a = NodeTerm::labels(vec![written(label::ZONE, Operator::In, &["a"])]);
    let volume = Volume {
        handle: "v".to_owned(),
        driver: None,
        reach: Some(vec![in_a.clone()]),
        own: false,
    };
    let apart = |key| Demand { anti_affinity: vec![term(key, "web")], ..demand("cpu=1") };
    let web = pods(demand("cpu=1"), 1);
    let there = Node { pods: web, ..node("n", "a", "cpu=1 memory=1Gi pods=1") };
    let empty = NodeTerm::default();
    let in_c = NodeTerm::labels(vec![written(label::ZONE, Operator::In, &["c"])]);
    let many = |limit| {
        let kinds =
            Written { min_values: Some(2), ..written(label::INSTANCE_TYPE, Operator::Exists, &[]) };
        Pool { requirements: vec![kinds], ..limited(limit, "cpu=0") }
    };
    for (demand, nodes, pool, expected) in [
        // The limit is that of the machine that it selects, not of the smallest.
        (
            of_type("large"),
            vec![],
            limited("cpu=16", "cpu=12"),
            "nearest is a new node of pool default: the pool's limit of cpu would have to be 12 higher",
        ),
        (of_type("small"), vec![], limited("cpu=16", "cpu=12"), "new 0"),
        // A node in b would do for the others, and its volume is in a.
        (
            Demand { volumes: vec![volume], ..apart(label::ZONE) },
            vec![there.clone()],
            pool(both()),
            "nearest is a new node of pool default: a pod that it must avoid is in this topology.kubernetes.io/zone",
        ),
        (apart(label::ZONE), vec![there], pool(both()), "new 0"),
        // A term that asks nothing is not the nearest.
        (
            Demand { node_terms: Some(vec![empty.clone(), in_c.clone()]), ..demand("cpu=1") },
            vec![],
            pool(both()),
            "nearest is a new node of pool default: no machine can be had with topology.kubernetes.io/zone In [c]",
        ),
        (
            Demand { node_terms: Some(vec![empty, in_c]), ..demand("cpu=1") },
            vec![node("n", "a", "cpu=1 pods=1")],
            pool(vec![]),
            "nearest is node n: it asks for topology.kubernetes.io/zone In [c]",
        ),
        // Two machines must remain, and the second is too large.
        (
            demand("cpu=1"),
            vec![],
            many("cpu=10"),
            "nearest is a new node of pool default: the pool's limit of cpu would have to be 6 higher",
        ),
        (demand("cpu=1"), vec![], many("cpu=16"), "new 0"),
    ] {
        assert_eq!(told(demand, &nodes, pool), expected);
    }
}

#[test]
fn a_daemon_of_one_zone_is_in_the_way_there_only() {
    let port = HostPort { address: String::new(), protocol: String::new(), port: 80 };
    let ports = || Demand { host_ports: vec![port.clone()], ..demand("cpu=1") };
    let daemon = |selector: &[(&str, &str)]| {
        let demand = Demand { node_selector: labels(selector), ..ports() };
        Pod::new(&Arc::new(Namespace::named("kube-system")), "proxy", &Arc::new(demand))
    };
    let with = |selector: &[(&str, &str)], zones: &[&str]| {
        let machines = vec![
            machine("small", "cpu=4 pods=9", zones, None),
            machine("large", "cpu=8 pods=9", zones, None),
        ];
        Pool { daemons: vec![daemon(selector)], ..pool(machines) }
    };
    let taken = "nearest is a new node of pool default: host port 80 is taken";
    let zone_a: &[(&str, &str)] = &[(label::ZONE, "a")];
    let small_in_a: &[(&str, &str)] = &[(label::ZONE, "a"), (label::INSTANCE_TYPE, "small")];
    for (pool, zone) in [
        (with(&[], &["a", "b"]), Err(taken)),
        (with(zone_a, &["a"]), Err(taken)),
        (with(zone_a, &["a", "b"]), Ok("b")),
        // Either another zone, or another machine in the same one.
        (with(small_in_a, &["a", "b"]), Ok("b")),
        (with(small_in_a, &["a"]), Ok("a")),
    ] {
        let packing = pack(&pods(ports(), 1), &[], std::slice::from_ref(&pool));
        match (zone, packing.new_nodes.as_slice()) {
            (Ok(zone), [new]) => {
                let of_zone = new.requirements.iter().find(|it| it.key == label::ZONE).unwrap();
                assert_eq!(of_zone.values, [zone]);
                let small = new.machines.iter().any(|it| it.machine == "small");
                assert_eq!(small, zone == "b", "{:?}", new.machines);
            }
            (Ok(zone), new) => panic!("{zone}: {new:?}"),
            (Err(why), _) => assert_eq!(packing.unplaced[0].why.to_string(), why),
        }
    }
}

#[test]
fn a_daemon_of_one_zone_takes_its_share_there_only() {
    let zones = ["a", "b", "c"];
    let small = machine("small", "cpu=2 pods=10", &zones, None);
    let daemon = |cpu: &str, zone: &str| {
        let selector = labels(&[(label::ZONE, zone)]);
        let demand = Demand { node_selector: selector, ..demand(cpu) };
        Pod::new(&Arc::new(Namespace::named("kube-system")), zone, &Arc::new(demand))
    };
    let all = || vec![daemon("cpu=1", "a"), daemon("cpu=1500m", "b")];
    let pool = Pool { daemons: all(), ..pool(vec![small]) };
    for (cpu, expected) in [
        ("cpu=500m", Ok(&zones[..])),
        ("cpu=1", Ok(&["a"][..])),
        ("cpu=2", Ok(&["c"])),
        ("cpu=2500m", Err("nearest is a new node of pool default: 500m more cpu needed")),
    ] {
        let packing = pack(&pods(demand(cpu), 1), &[], std::slice::from_ref(&pool));
        match (expected, packing.new_nodes.as_slice()) {
            (Ok(zones), [new]) => {
                let of_zone = new.requirements.iter().find(|it| it.key == label::ZONE).unwrap();
                assert_eq!(of_zone.values, zones, "{cpu}");
            }
            (Ok(zones), new) => panic!("{cpu}: {zones:?} {new:?}"),
            (Err(why), _) => assert_eq!(packing.unplaced[0].why.to_string(), why),
        }
    }
    // It goes on being filled by what there is in its zone.
    let packing = pack(&pods(demand("cpu=1"), 4), &[], std::slice::from_ref(&pool));
    assert_eq!(packing.unplaced, []);
    let in_a = Demand { node_selector: labels(&[(label::ZONE, "a")]), ..demand("cpu=2") };
    let packing = pack(&pods(in_a, 1), &[], &[pool]);
    assert_eq!(packing.placed, [], "in that zone it has no room");
}

#[test]
fn those_who_must_be_on_one_node_start_where_all_of_them_have_room() {
    let together = Demand { affinity: vec![term(label::HOSTNAME, "web")], ..demand("cpu=1") };
    let all = pods(together.clone(), 3);
    let small = || node("a", "a", "cpu=1 memory=1Gi pods=9");
    let large = node("b", "a", "cpu=3 memory=1Gi pods=9");
    assert_eq!(on(&pack(&all, &[small(), large.clone()], &[])), ["b"; 3]);
    assert_eq!(on(&pack(&all, &[small()], &[three_zones()])), ["new 0"; 3]);
    // Of those that cannot be together, most.
    assert_eq!(on(&pack(&pods(together.clone(), 7), &[small(), large.clone()], &[])), ["b"; 3]);
    // Others of the group count, whatever they ask for.
    let mut mixed = pods(together.clone(), 2);
    let second = Demand { requests: amounts("cpu=500m"), ..together.clone() };
    mixed.extend(
        pods(second, 2).into_iter().map(|it| Pod { name: format!("{}-b", it.name).into(), ..it }),
    );
    let nodes = [node("a", "a", "cpu=2 pods=9"), large.clone()];
    assert_eq!(on(&pack(&mixed, &nodes, &[])), ["b"; 4]);
    // Where one of them runs the others have to be, room or not.
    let mut taken = small();
    taken.pods = pods(together, 1);
    taken.allocatable = amounts("cpu=2 pods=9");
    taken.pods[0].name = "first".into();
    assert_eq!(on(&pack(&all, &[taken, large], &[])), ["a"]);
}

/// kube-scheduler 1.36 takes such a selector in a pod's own terms for all namespaces; the documentation does not.
#[test]
fn a_selector_that_a_namespace_without_labels_meets_is_read_as_carefully_as_can_be() {
    let team = |name: &str, team: &str| Arc::new(Namespace::new(name, labels(&[("team", team)])));
    let (own, other) = (team("own", "x"), team("other", "y"));
    let not = |team| Some(Selector::All(vec![written("team", Operator::NotIn, &[team])]));
    let meant = |team| PodTerm { namespace_selector: not(team), ..term(label::ZONE, "web") };
    let away = |team| Demand { anti_affinity: vec![meant(team)], ..demand("cpu=1") };
    let near = |team| Demand { affinity: vec![meant(team)], ..demand("cpu=1") };
    let web = Arc::new(Demand { labels: labels(&[("app", "web")]), ..Demand::default() });
    for (demand, runs_in, placed) in [
        (away("x"), &other, false),
        (away("y"), &own, false),
        // By the documentation it may be there; to the scheduler it is too near.
        (away("x"), &own, false),
        (near("x"), &other, true),
        // To the scheduler it may be there; by the documentation nobody is near.
        (near("x"), &own, false),
    ] {
        let runs = vec![Pod::new(runs_in, "web", &web)];
        let node = Node { pods: runs, ..node("n", "a", "cpu=4 pods=9") };
        let asked = Pod::new(&own, "asks", &Arc::new(demand.clone()));
        let packing = pack(&[asked], &[node], &[]);
        assert_eq!(packing.unplaced.is_empty(), placed, "{demand:?}");
    }
    // Whoever of the two comes first.
    for priority in [-1, 1] {
        let asked = Pod::new(&own, "asks", &Arc::new(Demand { priority, ..away("x") }));
        let packing =
            pack(&[asked, Pod::new(&own, "web", &web)], &[node("n", "a", "cpu=4 pods=9")], &[]);
        assert_eq!(packing.placed.len(), 1, "{priority}");
    }
    // By the documentation it is the first of its own. The scheduler takes another one for its own, on a full node.
    for (runs_in, placed) in [(None, true), (Some(&other), false)] {
        let runs = runs_in.map(|it| Pod::new(it, "web", &web));
        let full = Node { pods: runs.into_iter().collect(), ..node("m", "a", "pods=1") };
        let asked = Pod::new(&own, "asks", &Arc::new(near("y")));
        let packing = pack(&[asked], &[full, node("n", "b", "cpu=4 pods=9")], &[]);
        assert_eq!(packing.unplaced.is_empty(), placed, "{runs_in:?}");
    }
}

/// The pods of a `StatefulSet` differ in labels that nobody asks for, and in claims of their own.
#[test]
fn pods_that_differ_in_what_nobody_asks_for_go_where_alike_pods_go() {
    let numbered = |at: usize, mentioned: bool| {
        let mut it = demand("cpu=1");
        it.labels.insert("pod-name".to_owned(), format!("db-{at}"));
        it.volumes = vec![Volume {
            handle: format!("data-{at}"),
            driver: Some("ebs".to_owned()),
            reach: None,
            own: true,
        }];
        if mentioned {
            // Now somebody does ask: each avoids the one that is called like it.
            let same = vec!["pod-name".to_owned()];
            it.anti_affinity =
                vec![PodTerm { match_label_keys: same, ..term(label::HOSTNAME, "web") }];
        }
        it
    };
    for mentioned in [false, true] {
        let namespace = Arc::new(Namespace::named("shop"));
        // Two of each name, so that the label matters where it is asked for.
        let all: Vec<Pod> = (0..8)
            .map(|at| {
                Pod::new(&namespace, &format!("db-{at}"), &Arc::new(numbered(at / 2, mentioned)))
            })
            .collect();
        let nodes = ["m", "n"].map(|it| node(it, "a", "cpu=8 pods=9"));
        let packing = pack(&all, &nodes, &[]);
        let on_m = on(&packing).iter().filter(|it| *it == "m").count();
        assert_eq!((packing.unplaced.len(), on_m), (0, if mentioned { 4 } else { 8 }));
    }
}

#[test]
fn what_only_a_limit_keeps_out_may_come_once_others_have_given_back() {
    let of = |name: &str, family: &str, room: &str| {
        let mut it = machine(name, &format!("{room} pods=9"), &["a"], None);
        it.labels.insert("family".to_owned(), vec![family.to_owned()]);
        it
    };
    let machines = vec![
        of("wide", "one", "cpu=2 memory=64"),
        of("tall", "one", "cpu=4 memory=8"),
        of("small", "two", "cpu=2 memory=8"),
        of("large", "two", "cpu=4 memory=32"),
    ];
    let limits = amounts("cpu=100 memory=80 nodes=2");
    let pool = Pool { limits, ..pool(machines) };
    let asks = |priority: i32, family: &str, cpu: &str| {
        let node_selector = labels(&[("family", family)]);
        let demand = Demand { priority, node_selector, ..demand(&format!("cpu={cpu}")) };
        let pod = pods(demand, 1).remove(0);
        Pod { name: format!("p-{priority}").as_str().into(), ..pod }
    };
    // The third makes the first node large, for which there is room when the fourth has made the second tall.
    let all = [asks(4, "two", "1"), asks(3, "one", "1"), asks(2, "two", "2"), asks(1, "one", "2")];
    let packing = pack(&all, &[], &[pool]);
    assert_eq!(packing.unplaced, [], "{packing:?}");
    assert_eq!(packing.new_nodes.len(), 2);
}

/// Whatever their size, number and priority: who comes later takes nobody's place.
#[test]
fn who_has_a_place_keeps_it_when_others_are_added_after_it() {
    let early = pods(demand("cpu=2"), 1);
    let late = (0..3).map(|at| {
        let demand = Demand { priority: 7, ..demand("cpu=3") };
        let pod = pods(demand, 1).remove(0);
        Pod { name: format!("a-{at}").as_str().into(), order: 1, ..pod }
    });
    let all: Vec<Pod> = late.chain(early.clone()).collect();
    let packing = pack(&all, &[node("only", "a", "cpu=3 memory=9 pods=9")], &[]);
    let placed: Vec<_> = packing.placed.iter().map(|it| it.pod.clone()).collect();
    assert_eq!(placed, [early[0].id()], "{packing:?}");
}

#[test]
fn nobody_is_sent_to_a_closed_node_whatever_he_tolerates() {
    let anything = Toleration { key: None, value: Tolerated::Any, effect: None };
    for (tolerates, closed, placed) in [(true, true, 0), (true, false, 1), (false, false, 0)] {
        let tolerations = if tolerates { vec![anything.clone()] } else { Vec::new() };
        let pod = pods(Demand { tolerations, ..demand("cpu=1") }, 1);
        let only = node("only", "a", "cpu=3 memory=9 pods=9");
        let only = Node { unschedulable: true, closed, ..only };
        let packing = pack(&pod, &[only], &[]);
        assert_eq!(packing.placed.len(), placed, "{packing:?}");
    }
}
