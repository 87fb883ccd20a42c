//! What becomes of the pods of nodes that leave?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_core::place::{
    Fleet, Followed, Launchable, Placement, Placements, Turn, place, place_leaving,
};
use nodemolt_fit::node::Node;
use nodemolt_fit::pack::{Home, Site, Why};
use nodemolt_fit::pod::{Demand, Namespace, Pod, PodTerm, Spread, Volume};
use nodemolt_fit::pool::{Machine, NODES, Offering, Pool};
use nodemolt_fit::selector::{Labels, NodeTerm, Selector};
use nodemolt_fit::taint::{Effect, Taint};
use nodemolt_fit::{Operator, Quantity, Written, label};

fn amounts(cpu: i64) -> BTreeMap<String, Quantity> {
    let all = [("cpu", cpu), ("memory", cpu << 32), ("pods", 30)];
    all.map(|(name, amount)| (name.to_owned(), Quantity::from_units(amount))).into()
}

fn demand(app: &str, cpu: i64) -> Demand {
    Demand {
        labels: Labels::from([("app".to_owned(), app.to_owned())]),
        requests: BTreeMap::from([("cpu".to_owned(), Quantity::from_units(cpu))]),
        ..Demand::default()
    }
}

/// Away from pods of the other application, node by node.
fn away_from(other: &str, demand: Demand) -> Demand {
    let term = PodTerm {
        topology_key: label::HOSTNAME.to_owned(),
        selector: Selector::labels([("app", other)]),
        ..PodTerm::default()
    };
    Demand { anti_affinity: vec![term], ..demand }
}

fn pods(demand: &Demand, count: usize) -> Vec<Pod> {
    let (namespace, demand) = (Arc::new(Namespace::named("shop")), Arc::new(demand.clone()));
    let name = |at| format!("{}-{at}", demand.labels["app"]);
    (0..count).map(|at| Pod::new(&namespace, &name(at), &demand)).collect()
}

fn node(name: &str, cpu: i64, pods: Vec<Pod>) -> Node {
    Node {
        name: name.to_owned(),
        labels: Labels::from([(label::HOSTNAME.to_owned(), name.to_owned())]),
        allocatable: amounts(cpu),
        initialised: true,
        pods,
        ..Node::default()
    }
}

/// Machines of 4 and 8 CPUs. Limits are in nodes.
fn pool(nodes_max: Option<i64>, used: i64) -> Pool {
    let machine = |cpu: i64| Machine {
        name: format!("m5.{cpu}"),
        labels: BTreeMap::from([(label::INSTANCE_TYPE.to_owned(), vec![format!("m5.{cpu}")])]),
        capacity: amounts(cpu),
        allocatable: amounts(cpu),
        offerings: vec![Offering::new("a", "on-demand", None)],
        ..Machine::default()
    };
    let limit = |it: i64| (NODES.to_owned(), Quantity::from_units(it));
    Pool {
        name: "default".to_owned(),
        limits: nodes_max.map(limit).into_iter().collect(),
        used: BTreeMap::from([limit(used)]),
        machines: Arc::new(vec![machine(4), machine(8)]),
        ..Pool::default()
    }
}

fn leave(names: &[&str], fleet: &Fleet) -> Placements {
    place(&names.iter().map(|it| (*it).to_owned()).collect(), fleet)
}

fn by(turn: Turn) -> Followed {
    Followed { turn, by: Some(BTreeSet::new()) }
}

fn home<'a>(placements: &'a Placements, pod: &Pod) -> &'a Home {
    &placements.homes[&pod.id()]
}

/// Nodes A and B, whose pods must stay apart, and limits that may or may not allow a third node.
/// In seed 3 both are replaced at once, the pods of A take the successor of B, and those of B have no
/// home where the limits forbid a node C.
fn apart(nodes_max: i64) -> Fleet {
    Fleet {
        nodes: vec![
            node("A", 8, pods(&away_from("b", demand("a", 1)), 4)),
            node("B", 8, pods(&away_from("a", demand("b", 1)), 4)),
        ],
        pools: vec![pool(Some(nodes_max), 2)],
        pending: Vec::new(),
    }
}

#[test]
fn two_nodes_whose_pods_must_stay_apart_get_a_successor_each() {
    for nodes_max in [4, 5] {
        let fleet = apart(nodes_max);
        let both = leave(&["A", "B"], &fleet);
        let [Placement::Successors { new: of_a }, Placement::Successors { new: of_b }] =
            [&both.of["A"], &both.of["B"]]
        else {
            panic!("{:?}", both.of)
        };
        assert!(of_a.is_disjoint(of_b) && of_a.len() == 1 && of_b.len() == 1, "{:?}", both.of);
        assert_eq!(both.new_nodes.len(), 2, "a node C is never needed");
        assert_eq!(both.homes.len(), 8, "no pod without a home");
    }
}

#[test]
fn where_the_limits_allow_one_successor_only_one_node_can_go_at_a_time() {
    let fleet = apart(3);
    for (leaving, stays) in [("A", "B"), ("B", "A")] {
        let one = leave(&[leaving], &fleet);
        assert!(matches!(&one.of[leaving], Placement::Successors { new } if new.len() == 1));
        assert!(!one.homes.values().any(|it| *it == Home::Node(stays.to_owned())));
    }
    // Both at once are seen to be one too many, before anything happens: one pod has no home by name.
    let both = leave(&["A", "B"], &fleet);
    let unplaced = both.of.values().filter(|it| matches!(it, Placement::Unplaced { .. })).count();
    assert_eq!(unplaced, 1, "{:?}", both.of);
}

#[test]
fn the_third_node_takes_those_it_may_and_the_others_get_a_successor() {
    // On C is a pod of `b`, so it is no place for those of A; those of B fit beside it.
    let mut fleet = apart(9);
    fleet.nodes.push(node("C", 8, pods(&demand("b", 1), 1)));
    fleet.nodes[2].pods[0].name = "b-on-c".into();
    let both = leave(&["A", "B"], &fleet);
    assert!(matches!(&both.of["A"], Placement::Successors { new } if new.len() == 1));
    assert_eq!(both.of["B"], Placement::Spare { on: BTreeSet::from(["C".to_owned()]) });
}

#[test]
fn two_replacements_never_count_on_the_same_room() {
    // C has room for the pods of A or for those of B. Each alone is spare, both are not.
    let fleet = Fleet {
        nodes: vec![
            node("A", 4, pods(&demand("a", 3), 1)),
            node("B", 4, pods(&demand("b", 3), 1)),
            node("C", 4, Vec::new()),
        ],
        pools: Vec::new(),
        pending: Vec::new(),
    };
    for alone in ["A", "B"] {
        assert!(matches!(leave(&[alone], &fleet).of[alone], Placement::Spare { .. }));
    }
    let both = leave(&["A", "B"], &fleet);
    let spare = both.of.values().filter(|it| matches!(it, Placement::Spare { .. })).count();
    let unplaced = both.of.values().filter(|it| matches!(it, Placement::Unplaced { .. })).count();
    assert_eq!((spare, unplaced), (1, 1), "{:?}", both.of);
}

#[test]
fn room_that_pending_pods_need_is_not_spare() {
    let mut fleet = Fleet {
        nodes: vec![node("A", 4, pods(&demand("a", 3), 1)), node("C", 4, Vec::new())],
        pools: vec![pool(None, 2)],
        pending: Vec::new(),
    };
    let on_c = Home::Node("C".to_owned());
    assert_eq!(
        leave(&["A"], &fleet).of["A"],
        Placement::Spare { on: BTreeSet::from(["C".to_owned()]) }
    );
    fleet.pending = pods(&Demand { priority: 7, ..demand("urgent", 2) }, 1);
    let with_pending = leave(&["A"], &fleet);
    assert_eq!(*home(&with_pending, &fleet.pending[0]), on_c);
    assert!(matches!(&with_pending.of["A"], Placement::Successors { new } if new.len() == 1));
}

/// The scheduler binds who is pending now, while those that are to leave still run: it does not put them where there is a
/// place only once those have gone, and so takes the room that they were to have.
#[test]
fn who_is_pending_is_bound_before_anybody_leaves() {
    let zoned = |it: Node, zone: &str| {
        let mut labels = it.labels.clone();
        labels.insert(label::ZONE.to_owned(), zone.to_owned());
        Node { labels, ..it }
    };
    let term = |other: &str| PodTerm {
        topology_key: label::ZONE.to_owned(),
        selector: Selector::labels([("app", other)]),
        ..PodTerm::default()
    };
    let away = |other: &str, it: Demand| Demand { anti_affinity: vec![term(other)], ..it };
    let near = |other: &str, it: Demand| Demand { affinity: vec![term(other)], ..it };
    let spread = |it: Demand| {
        let selector = Selector::labels([("app", "web")]);
        let topology_key = label::ZONE.to_owned();
        let over_zones = Spread { topology_key, selector, ..Spread::default() };
        Demand { spread: vec![over_zones], ..it }
    };
    let cases = [
        // Who leaves is alone in its zone until it is gone, or wants to be.
        (away("new", demand("old", 3)), demand("new", 2), "C"),
        (demand("old", 3), away("old", demand("new", 2)), "C"),
        (spread(demand("web", 3)), spread(demand("web", 1)), "C"),
        // And who has to be near it finds it where it is.
        (away("other", demand("old", 2)), near("old", demand("new", 1)), "B"),
    ];
    for (leaves, pends, on) in cases {
        let mut fleet = Fleet {
            nodes: vec![
                zoned(node("A", 8, pods(&leaves, 1)), "a"),
                zoned(node("B", 2, Vec::new()), "a"),
                zoned(node("C", 3, Vec::new()), "b"),
            ],
            pools: Vec::new(),
            pending: Vec::new(),
        };
        if on == "B" {
            fleet.nodes[2].pods = pods(&demand("other", 1), 1);
        }
        assert!(matches!(leave(&["A"], &fleet).of["A"], Placement::Spare { .. }), "{on}");
        fleet.pending = pods(&pends, 1);
        fleet.pending[0].name = "pends".into();
        let placements = leave(&["A"], &fleet);
        assert_eq!(*home(&placements, &fleet.pending[0]), Home::Node(on.to_owned()));
        let of = &placements.of["A"];
        assert!(matches!(of, Placement::Unplaced { .. }), "{on}: {of:?}");
    }
}

#[test]
fn a_pod_that_nobody_has_a_picture_of_is_named() {
    let mut strange = demand("strange", 1);
    strange.unmodelled = vec!["a resource claim".to_owned()];
    let mut fleet = Fleet {
        nodes: vec![
            node("A", 4, [pods(&strange, 1), pods(&demand("a", 1), 1)].concat()),
            node("C", 4, Vec::new()),
        ],
        pools: vec![pool(None, 2)],
        pending: Vec::new(),
    };
    fleet.nodes[0].pool = Some("default".to_owned());
    let placements = leave(&["A"], &fleet);
    let what = vec!["a resource claim".to_owned()];
    let (pod, new) = (fleet.nodes[0].pods[0].id(), BTreeSet::new());
    assert_eq!(placements.of["A"], Placement::Unmodelled { pod, what, kin: Some(0), new });
    assert_eq!(*home(&placements, &fleet.nodes[0].pods[1]), Home::Node("C".to_owned()));
}

/// A node of 8 CPUs in zone `a`, with a pod that nobody can foresee and with these.
fn with_a_strange_one(strange: Demand, others: Vec<Pod>) -> Node {
    let unmodelled = vec!["a resource claim".to_owned()];
    let strange = Demand { unmodelled, ..strange };
    let mut old = node("A", 8, [pods(&strange, 1), others].concat());
    old.pool = Some("default".to_owned());
    let own = [
        (label::INSTANCE_TYPE, "m5.8"),
        (label::ZONE, "a"),
        (label::CAPACITY_TYPE, "on-demand"),
        ("team", "x"),
    ];
    old.labels.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
    old
}

/// With nodes that are labelled `team: x`, in zones `a` and `b`.
fn labelled_pool() -> Pool {
    let mut labelled = pool(None, 1);
    labelled.labels.insert("team".to_owned(), "x".to_owned());
    for machine in Arc::make_mut(&mut labelled.machines) {
        machine.offerings.push(Offering::new("b", "on-demand", None));
    }
    labelled
}

fn only(key: &str, value: &str) -> Written {
    let (key, values) = (key.to_owned(), vec![value.to_owned()]);
    Written { key, operator: Operator::In, values, min_values: None }
}

fn on_a_disk_in(zone: &str, demand: Demand) -> Demand {
    let reach = vec![NodeTerm { labels: vec![only(label::ZONE, zone)], fields: Vec::new() }];
    let disk = Volume {
        driver: Some("ebs".to_owned()),
        handle: "vol-1".to_owned(),
        reach: Some(reach),
        own: false,
    };
    Demand { volumes: vec![disk], ..demand }
}

fn selecting(key: &str, value: &str, demand: Demand) -> Demand {
    let node_selector = Labels::from([(key.to_owned(), value.to_owned())]);
    Demand { node_selector, ..demand }
}

/// What comes is what the pool launches now. Those who can be foreseen are packed, and of the one who cannot as much is
/// looked at as is known.
#[test]
fn nobody_goes_unseen_with_one_of_the_own_kind() {
    type Change<'c> = &'c dyn Fn(&mut Pool);
    let same = |_: &mut Pool| {};
    let smaller = |it: &mut Pool| it.requirements = vec![only(label::INSTANCE_TYPE, "m5.4")];
    let elsewhere = |it: &mut Pool| it.requirements = vec![only(label::ZONE, "b")];
    let relabelled = |it: &mut Pool| drop(it.labels.insert("team".to_owned(), "y".to_owned()));
    let tainted = |it: &mut Pool| {
        let (key, value) = ("dedicated".to_owned(), String::new());
        it.taints = vec![Taint { key, value, effect: Effect::NoSchedule }];
    };
    let (small, large) = (demand("other", 1), demand("other", 6));
    let none = || demand("strange", 1);
    let cases: [(&str, Demand, Demand, Change<'_>, Option<&str>); 12] = [
        ("as it was", none(), large.clone(), &same, None),
        ("a smaller one will do", none(), small.clone(), &smaller, None),
        ("it is too small for the other", none(), large, &smaller, Some("other-0")),
        (
            "it is too small for itself",
            demand("strange", 6),
            small.clone(),
            &smaller,
            Some("strange-0"),
        ),
        ("a disk", none(), on_a_disk_in("a", small.clone()), &same, None),
        ("a disk elsewhere", none(), on_a_disk_in("a", small.clone()), &elsewhere, Some("other-0")),
        (
            "its own disk elsewhere",
            on_a_disk_in("a", none()),
            small.clone(),
            &elsewhere,
            Some("strange-0"),
        ),
        (
            "a label",
            selecting("team", "x", none()),
            selecting("team", "x", small.clone()),
            &same,
            None,
        ),
        (
            "a label that is gone",
            none(),
            selecting("team", "x", small.clone()),
            &relabelled,
            Some("other-0"),
        ),
        (
            "its own label",
            selecting("team", "x", none()),
            small.clone(),
            &relabelled,
            Some("strange-0"),
        ),
        ("a taint", none(), small.clone(), &tainted, Some("strange-0")),
        ("another zone", none(), small, &elsewhere, None),
    ];
    for (what, strange, other, change, unplaced) in cases {
        let mut pool = labelled_pool();
        change(&mut pool);
        let nodes = vec![with_a_strange_one(strange, pods(&other, 1))];
        let fleet = Fleet { nodes, pools: vec![pool], pending: Vec::new() };
        let placements = leave(&["A"], &fleet);
        match (&placements.of["A"], unplaced) {
            (Placement::Unmodelled { kin: Some(kin), new, .. }, None) => {
                assert!(new.is_empty(), "{what}: {:?}", placements.new_nodes);
                let other = &fleet.nodes[0].pods[1];
                assert_eq!(*home(&placements, other), Home::New(*kin), "{what}");
                let comes = &placements.new_nodes[*kin];
                assert_eq!(comes.pods, [other.id()], "{what}");
                let internal = |it: &Written| it.key.contains("nodemolt");
                assert!(!comes.requirements.iter().any(internal), "{comes:?}");
            }
            (Placement::Unplaced { pod, why }, Some(named)) => {
                assert_eq!(*pod.name, *named, "{what}");
                assert!(!why.to_string().contains("nodemolt"), "{what}: {why}");
            }
            (other, _) => panic!("{what}: {other:?}"),
        }
    }
}

/// It is of the same type, zone and capacity type as long as its pool asks for such a one.
#[test]
fn one_of_the_own_kind_is_told_with_all_that_it_is() {
    let nodes = vec![with_a_strange_one(demand("strange", 1), Vec::new())];
    let fleet = Fleet { nodes, pools: vec![labelled_pool()], pending: Vec::new() };
    let placements = leave(&["A"], &fleet);
    let [comes] = placements.new_nodes.as_slice() else { panic!("{:?}", placements.new_nodes) };
    assert_eq!(comes.machines.iter().map(|it| &*it.machine).collect::<Vec<_>>(), ["m5.8"]);
    for it in [only(label::ZONE, "a"), only(label::CAPACITY_TYPE, "on-demand"), only("team", "x")] {
        assert!(comes.requirements.contains(&it), "{it}: {comes:?}");
    }
    assert_eq!(
        comes.requests["cpu"],
        Quantity::from_units(1),
        "room is kept for who is not foreseen"
    );
}

/// Room is kept for who cannot be foreseen, and who has none beside it goes elsewhere.
#[test]
fn who_has_no_room_with_one_of_the_own_kind_goes_elsewhere() {
    let old = with_a_strange_one(demand("strange", 4), pods(&demand("other", 3), 2));
    for (more, expected) in [(None, 1), (Some(node("C", 4, Vec::new())), 0)] {
        let nodes = [old.clone()].into_iter().chain(more).collect();
        let fleet = Fleet { nodes, pools: vec![labelled_pool()], pending: Vec::new() };
        let placements = leave(&["A"], &fleet);
        let Placement::Unmodelled { kin: Some(_), new, .. } = &placements.of["A"] else {
            panic!("{:?}", placements.of)
        };
        assert_eq!(new.len(), expected, "{:?}", placements.new_nodes);
    }
    // The limits have no room for a further one.
    for (nodes_max, fits) in [(3, true), (2, false)] {
        let limits = BTreeMap::from([(NODES.to_owned(), Quantity::from_units(nodes_max))]);
        let pools = vec![Pool { limits, ..labelled_pool() }];
        let fleet = Fleet { nodes: vec![old.clone()], pools, pending: Vec::new() };
        let of = leave(&["A"], &fleet).of.remove("A").unwrap();
        assert_eq!(matches!(of, Placement::Unmodelled { .. }), fits, "{of:?}");
    }
}

/// Nobody launches one like it.
#[test]
fn who_is_of_no_pool_is_not_followed() {
    let strange = with_a_strange_one(demand("strange", 1), Vec::new());
    let of = |pool: Option<&str>| {
        let nodes = vec![Node { pool: pool.map(str::to_owned), ..strange.clone() }];
        let fleet = Fleet { nodes, pools: vec![labelled_pool()], pending: Vec::new() };
        leave(&["A"], &fleet).of.remove("A").unwrap()
    };
    assert!(matches!(of(Some("default")), Placement::Unmodelled { .. }));
    assert!(matches!(of(None), Placement::Unplaced { .. }));
    let none = Placement::NoKin { pool: "other".to_owned(), limit: None };
    assert_eq!(of(Some("other")), none);
}

/// Pods that are pending have theirs first: what is said to be lacking is then what is lacking.
#[test]
fn the_limits_are_for_pending_pods_before_one_of_a_kind() {
    let strange = with_a_strange_one(demand("strange", 1), Vec::new());
    let limit = |it: i64| BTreeMap::from([(NODES.to_owned(), Quantity::from_units(it))]);
    for (nodes_max, followed) in [(1, false), (2, false), (3, true)] {
        let pools = vec![Pool { limits: limit(nodes_max), used: limit(1), ..labelled_pool() }];
        let pending = pods(&demand("pending", 7), 1);
        let fleet = Fleet { nodes: vec![strange.clone()], pools, pending };
        let placements = leave(&["A"], &fleet);
        assert_eq!(placements.homes.contains_key(&fleet.pending[0].id()), nodes_max > 1);
        let answer = &placements.of["A"];
        if followed {
            assert!(matches!(answer, Placement::Unmodelled { .. }), "{nodes_max}: {answer:?}");
        } else {
            let limit = Some((NODES.to_owned(), Quantity::from_units(1)));
            assert_eq!(*answer, Placement::NoKin { pool: fleet.pools[0].name.clone(), limit });
        }
    }
}

/// Once its successor is there, room on it is kept for who cannot be foreseen.
#[test]
fn a_successor_that_is_there_is_looked_at_like_any_other_node() {
    for (room, strange_has, holds) in [(8, 1, true), (2, 1, false), (8, 7, false)] {
        let others = pods(&demand("other", 2), 1);
        let mut old = with_a_strange_one(demand("strange", strange_has), others);
        old.leaving = true;
        let mut nodes = [old, node("S", room, Vec::new())].map(Site::new);
        let by = Some(BTreeSet::from(["S".to_owned()]));
        let followed = [("A".to_owned(), Followed { turn: Turn::Succeeded, by })].into();
        let launchable =
            Launchable { pools: &[], kept: &[], followed: &followed, heirs: &BTreeSet::new() };
        let placements = place_leaving(&mut nodes, launchable, &[]);
        let of = &placements.of["A"];
        assert_eq!(matches!(of, Placement::Unmodelled { kin: None, .. }), holds, "{of:?}");
        assert_eq!(matches!(of, Placement::Unplaced { .. }), !holds, "{of:?}");
        assert_eq!(nodes[0].pods.len(), 2, "as they were");
    }
}

#[test]
fn a_successor_of_its_own_kind_counts_towards_the_limits() {
    let mut strange = demand("strange", 2);
    strange.unmodelled = vec!["a resource claim".to_owned()];
    // It has no room for the pod of B.
    let of_pool = |mut it: Node| {
        it.labels.insert(label::INSTANCE_TYPE.to_owned(), "m5.4".to_owned());
        Node { pool: Some("default".to_owned()), ..it }
    };
    // A and B exist. A third node may be that for A's own pod, a fourth takes the pod of B.
    for (nodes_max, followed, placed) in [(2, false, false), (3, true, false), (4, true, true)] {
        let fleet = Fleet {
            nodes: vec![
                of_pool(node("A", 4, pods(&strange, 1))),
                of_pool(node("B", 4, pods(&demand("b", 3), 1))),
            ],
            pools: vec![pool(Some(nodes_max), 2)],
            pending: Vec::new(),
        };
        let both = leave(&["A", "B"], &fleet);
        if followed {
            assert!(matches!(both.of["A"], Placement::Unmodelled { .. }));
        } else {
            let limit = Some((NODES.to_owned(), Quantity::from_units(1)));
            assert_eq!(both.of["A"], Placement::NoKin { pool: "default".to_owned(), limit });
        }
        let of_b = matches!(both.of["B"], Placement::Successors { .. });
        assert_eq!(of_b, placed, "{nodes_max}: {:?}", both.of);
    }
}

/// Nobody knows when such a pod goes: until then it keeps away whom it keeps away.
#[test]
fn a_pod_that_nobody_can_foresee_counts_where_it_is() {
    let mut strange = demand("strange", 1);
    strange.unmodelled = vec!["a resource claim".to_owned()];
    let zoned = |it: Node, zone: &str| {
        let mut labels = it.labels.clone();
        labels.insert(label::ZONE.to_owned(), zone.to_owned());
        Node { labels, ..it }
    };
    let mut shy = away_from("strange", demand("shy", 1));
    shy.anti_affinity[0].topology_key = label::ZONE.to_owned();
    let fleet = Fleet {
        nodes: vec![
            zoned(node("A", 8, pods(&strange, 1)), "a"),
            zoned(node("B", 8, pods(&shy, 1)), "b"),
            zoned(node("C", 8, Vec::new()), "a"),
        ],
        pools: Vec::new(),
        pending: Vec::new(),
    };
    let both = leave(&["A", "B"], &fleet);
    assert!(matches!(both.of["B"], Placement::Unplaced { .. }), "{:?}", both.of);
    // And what leaves is no place for others, though it is there.
    let mut fleet = fleet;
    fleet.nodes[1].pods = pods(&demand("b", 1), 1);
    fleet.nodes.pop();
    assert!(matches!(leave(&["A", "B"], &fleet).of["B"], Placement::Unplaced { .. }));
}

/// Pods that must be in one zone, all on one node: the first comes back while the second still runs.
#[test]
fn a_group_that_may_not_be_apart_stays_in_its_zone() {
    let mut close = demand("close", 1);
    close.affinity = vec![PodTerm {
        topology_key: label::ZONE.to_owned(),
        selector: Selector::labels([("app", "close")]),
        ..PodTerm::default()
    }];
    let zoned = |it: Node, zone: &str| {
        let mut labels = it.labels.clone();
        labels.insert(label::ZONE.to_owned(), zone.to_owned());
        Node { labels, ..it }
    };
    let alike = |cpus: i64| {
        let mut pends = pods(&demand("close", cpus), 1);
        pends[0].name = "pends".into();
        pends
    };
    let of_group = || {
        let mut pends = pods(&close, 1);
        pends[0].name = "pends".into();
        pends
    };
    for (count, zone, pending, on) in [
        (2, "a", Vec::new(), Some("C")),
        (2, "b", Vec::new(), None),
        // Alone it has nobody to be near once it is gone.
        (1, "b", Vec::new(), Some("B")),
        (1, "b", of_group(), Some("B")),
        // Who is pending and like them is in the other zone before they leave, if there is room for it now.
        (1, "b", alike(1), Some("B")),
        (2, "b", alike(1), Some("B")),
        (2, "b", alike(9), None),
        (2, "b", of_group(), None),
    ] {
        let told = format!("{count} {zone} {pending:?}");
        let fleet = Fleet {
            nodes: vec![
                zoned(node("A", 8, pods(&close, count)), "a"),
                zoned(node("B", 8, Vec::new()), "b"),
                zoned(node("C", 7, Vec::new()), zone),
            ],
            pools: Vec::new(),
            pending,
        };
        let placements = leave(&["A"], &fleet);
        match on {
            Some(on) => {
                let expected = Placement::Spare { on: BTreeSet::from([on.to_owned()]) };
                assert_eq!(placements.of["A"], expected, "{told}");
            }
            None => assert!(matches!(placements.of["A"], Placement::Unplaced { .. }), "{told}"),
        }
    }
}

/// A pool that is kept at a number launches one for each that leaves, and none for pods.
#[test]
fn a_pool_that_is_kept_at_a_number_launches_one_in_the_place_of_each() {
    let of_pool = |it: Node| Node { pool: Some("default".to_owned()), ..it };
    let full = |name: &str| {
        let mut pods = pods(&demand(name, 3), 1);
        pods[0].name = format!("{name}-0").into();
        let mut full = of_pool(node(name, 4, pods));
        full.labels.insert(label::INSTANCE_TYPE.to_owned(), "m5.4".to_owned());
        full
    };
    let place = |nodes_max: i64, followed: &[&str]| {
        let mut nodes = [full("a"), full("b")].map(Site::new);
        for it in &mut nodes {
            it.set_leaving(true);
        }
        let followed = followed.iter().map(|it| ((*it).to_owned(), by(Turn::Succeeded))).collect();
        let kept = [pool(Some(nodes_max), 2)];
        let launchable =
            Launchable { pools: &[], kept: &kept, followed: &followed, heirs: &BTreeSet::new() };
        let placements = place_leaving(&mut nodes, launchable, &[]);
        assert!(nodes.iter().all(|it| it.leaving && !it.unschedulable), "as they were");
        placements
    };
    let both = place(4, &[]);
    assert!(both.of.values().all(|it| matches!(it, Placement::Successors { .. })), "{:?}", both.of);
    assert_eq!(both.new_nodes.len(), 2);
    let limit = Some((NODES.to_owned(), Quantity::from_units(1)));
    let none = Placement::NoKin { pool: "default".to_owned(), limit };
    assert_eq!(place(3, &[]).of["b"], none);
    assert_eq!(place(2, &[]).of["a"], none);
    // One whose successor was asked for counts among those that exist.
    let one = place(4, &["a"]);
    assert_eq!(one.new_nodes.len(), 1, "{:?}", one.of);
}

#[test]
fn pods_that_belong_to_their_node_need_no_place() {
    let mut daemon = pods(&demand("daemon", 3), 1);
    daemon[0].tied = true;
    let fleet = Fleet { nodes: vec![node("A", 4, daemon)], pools: Vec::new(), pending: Vec::new() };
    assert_eq!(leave(&["A"], &fleet).of["A"], Placement::Spare { on: BTreeSet::new() });
    assert!(leave(&["Z"], &fleet).of.is_empty(), "nobody knows Z");
}

#[test]
fn what_is_in_the_way_is_said() {
    let fleet = Fleet {
        nodes: vec![node("A", 4, pods(&demand("a", 3), 1)), node("C", 2, Vec::new())],
        pools: vec![pool(Some(2), 2)],
        pending: Vec::new(),
    };
    let placements = leave(&["A"], &fleet);
    let Placement::Unplaced { pod, why } = &placements.of["A"] else {
        panic!("{:?}", placements.of)
    };
    assert_eq!(pod.to_string(), "shop/a-0");
    assert!(matches!(why, Why::NoPlace { nearest: Some(_) }));
    assert_eq!(
        why.to_string(),
        "nearest is a new node of pool default: the pool's limit of nodes would have to be 1 higher"
    );
}

/// Pods that must be on one node: where the first of them goes is up to the scheduler, which looks at no other.
#[test]
fn a_group_that_must_be_on_one_node_is_foreseen_only_where_none_has_room_for_a_part() {
    let mut close = demand("close", 1);
    close.affinity = vec![PodTerm {
        topology_key: label::HOSTNAME.to_owned(),
        selector: Selector::labels([("app", "close")]),
        ..PodTerm::default()
    }];
    let a = Node { pool: Some("default".to_owned()), ..node("A", 8, pods(&close, 2)) };
    let fleet = |others: Vec<Node>| Fleet {
        nodes: [vec![a.clone()], others].concat(),
        pools: vec![pool(None, 0)],
        pending: Vec::new(),
    };
    let on = |names: &[&str]| {
        let on = names.iter().map(|it| (*it).to_owned()).collect();
        Placement::Spare { on }
    };
    assert_eq!(leave(&["A"], &fleet(vec![node("B", 2, Vec::new())])).of["A"], on(&["B"]));
    // A node with no room at all is in nobody's way, and one with room for one of them is.
    let full = node("B", 2, pods(&demand("b", 2), 1));
    let placements = leave(&["A"], &fleet(vec![full]));
    assert!(matches!(&placements.of["A"], Placement::Successors { new } if new.len() == 1));
    let some = vec![node("B", 1, Vec::new()), node("C", 8, Vec::new())];
    let shuffled = {
        let mut fleet = fleet(some.iter().rev().cloned().collect());
        fleet.nodes[0].pods.reverse();
        fleet
    };
    let torn = leave(&["A"], &fleet(some));
    assert_eq!(leave(&["A"], &shuffled).of, torn.of);
    let Placement::Unmodelled { pod, what, kin: Some(_), .. } = &torn.of["A"] else {
        panic!("it is guessed where they go: {:?}", torn.of)
    };
    assert_eq!(pod.to_string(), "shop/close-0");
    assert!(what[0].contains("B has room for some of them only"), "{what:?}");
    // By the number of pods as well; and one alone goes anywhere.
    let mut crowded = node("B", 8, Vec::new());
    crowded.allocatable.insert("pods".to_owned(), Quantity::from_units(1));
    let few = leave(&["A"], &fleet(vec![crowded]));
    assert!(matches!(few.of["A"], Placement::Unmodelled { .. }), "{:?}", few.of);
    // Nor does it help them that one of their own kind comes, if that has no room for all.
    let mut small = fleet(vec![node("B", 1, Vec::new())]);
    for machine in Arc::make_mut(&mut small.pools[0].machines) {
        machine.allocatable.insert("cpu".to_owned(), Quantity::from_units(1));
    }
    let placements = leave(&["A"], &small);
    let of = &placements.of["A"];
    assert!(matches!(of, Placement::Unplaced { .. }), "{of:?}");
    assert!(placements.new_nodes.is_empty(), "none comes for nothing: {:?}", placements.new_nodes);
    let mut alone = fleet(vec![node("B", 1, Vec::new())]);
    alone.nodes[0].pods.pop();
    assert_eq!(leave(&["A"], &alone).of["A"], on(&["B"]));
}

/// A machine that cannot be had, or that the pool does not ask for any more, is no successor.
#[test]
fn one_of_its_own_kind_is_what_the_pool_can_launch() {
    let mut strange = demand("strange", 1);
    strange.unmodelled = vec!["a resource claim".to_owned()];
    let leaves = |pool: Pool| {
        let mut old = node("A", 4, pods(&strange, 1));
        old.pool = Some("default".to_owned());
        old.labels.insert(label::INSTANCE_TYPE.to_owned(), "m5.4".to_owned());
        let fleet = Fleet { nodes: vec![old], pools: vec![pool], pending: Vec::new() };
        leave(&["A"], &fleet).of.remove("A").unwrap()
    };
    let limited = |cpu: i64| {
        let limits = BTreeMap::from([("cpu".to_owned(), Quantity::from_units(cpu))]);
        Pool { limits, used: amounts(4), ..pool(None, 1) }
    };
    assert!(matches!(leaves(limited(8)), Placement::Unmodelled { .. }));
    // The smaller one is gone, and the larger one is over the limit by four.
    let mut gone = limited(8);
    Arc::make_mut(&mut gone.machines)[0].offerings[0].available = false;
    let limit = Some(("cpu".to_owned(), Quantity::from_units(4)));
    assert_eq!(leaves(gone.clone()), Placement::NoKin { pool: "default".to_owned(), limit });
    Arc::make_mut(&mut gone.machines)[1].offerings.clear();
    assert_eq!(leaves(gone), Placement::NoKin { pool: "default".to_owned(), limit: None });
}

/// Issue 7: what was launched for one that is under way was given to a newcomer with the same pods, and the
/// first waited for a place until it was given up.
#[test]
fn whoever_is_under_way_keeps_its_place_when_others_come() {
    let full = |name: &str, pod: &str| {
        let mut pods = pods(&demand("web", 3), 1);
        pods[0].name = pod.into();
        Node { leaving: true, ..node(name, 4, pods) }
    };
    // By name the newcomer's pod comes first.
    for (turn, pods) in [(Turn::Emptied, ["b", "a"]), (Turn::Succeeded, ["a", "b"])] {
        let nodes = [full("first", pods[0]), full("newcomer", pods[1]), node("new", 4, Vec::new())];
        let mut nodes = nodes.map(Site::new);
        let pools = [pool(None, 3)];
        let followed = BTreeMap::from([("first".to_owned(), by(turn))]);
        let launchable =
            Launchable { pools: &pools, kept: &[], followed: &followed, heirs: &BTreeSet::new() };
        let placements = place_leaving(&mut nodes, launchable, &[]);
        let spare = Placement::Spare { on: BTreeSet::from(["new".to_owned()]) };
        assert_eq!(placements.of["first"], spare);
        let newcomer = &placements.of["newcomer"];
        assert!(matches!(newcomer, Placement::Successors { .. }), "{newcomer:?}");
    }
    // Whoever has successors comes before one that counts on what is left.
    let mut nodes = [full("a", "a"), full("b", "b"), node("new", 4, Vec::new())].map(Site::new);
    let followed =
        [("a".to_owned(), by(Turn::Spare)), ("b".to_owned(), by(Turn::Succeeded))].into();
    let launchable =
        Launchable { pools: &[], kept: &[], followed: &followed, heirs: &BTreeSet::new() };
    let placements = place_leaving(&mut nodes, launchable, &[]);
    assert!(matches!(placements.of["a"], Placement::Unplaced { .. }), "{:?}", placements.of);
    assert!(matches!(placements.of["b"], Placement::Spare { .. }), "{:?}", placements.of);
}

#[test]
fn who_moves_on_purpose_goes_to_a_node_that_is_replaced_itself_only_where_there_is_nothing_else() {
    let fading = |name: &str, pods: Vec<Pod>| Node { fades: true, ..node(name, 8, pods) };
    let web = pods(&demand("web", 1), 2);
    let fleet = |nodes: Vec<Node>, nodes_max: i64| Fleet {
        nodes,
        pools: vec![pool(Some(nodes_max), 2)],
        pending: Vec::new(),
    };
    // A new node, though the other has room.
    let old = || vec![fading("A", web.clone()), fading("B", Vec::new())];
    let new = leave(&["A"], &fleet(old(), 3));
    assert!(matches!(new.of["A"], Placement::Successors { .. }), "{:?}", new.of);
    assert_eq!(new.new_nodes.len(), 1);
    // One that stays before a new one.
    let stays = node("C", 8, Vec::new());
    let spare = leave(&["A"], &fleet([old(), vec![stays.clone()]].concat(), 4));
    assert_eq!(spare.of["A"], Placement::Spare { on: ["C".to_owned()].into() });
    // Where the limits allow no other, the one that is replaced itself.
    let stuck = leave(&["A"], &fleet(old(), 2));
    assert_eq!(stuck.of["A"], Placement::Spare { on: ["B".to_owned()].into() });
    // What has no place anywhere is still said to have none.
    let full = vec![fading("A", web.clone()), fading("B", pods(&demand("db", 1), 8))];
    let lost = leave(&["A"], &fleet(full, 2));
    assert!(matches!(lost.of["A"], Placement::Unplaced { .. }), "{:?}", lost.of);
    // As many on what stays as have room there.
    let small = vec![fading("A", web.clone()), fading("B", Vec::new()), node("C", 1, Vec::new())];
    let split = leave(&["A"], &fleet(small, 2));
    assert_eq!(split.of["A"], Placement::Spare { on: ["B".to_owned(), "C".to_owned()].into() });
    // A node that goes for other reasons asks for no more than a place.
    let gone = vec![node("A", 8, web), fading("B", Vec::new())];
    let gone = leave(&["A"], &fleet(gone, 3));
    assert_eq!(gone.of["A"], Placement::Spare { on: ["B".to_owned()].into() });
}

#[test]
fn who_is_pending_is_bound_to_whatever_has_room() {
    let old = Node { fades: true, ..node("A", 8, Vec::new()) };
    let pending = pods(&demand("web", 1), 1);
    let fleet = Fleet { nodes: vec![old], pools: vec![pool(None, 1)], pending: pending.clone() };
    let placements = leave(&[], &fleet);
    assert_eq!(home(&placements, &pending[0]), &Home::Node("A".to_owned()));
}

#[test]
fn a_node_is_followed_by_one_of_its_own_pool_unless_another_is_heavier() {
    // Of pools equally heavy the first by name takes pods that come from nowhere; `web` is where these ran.
    let cases = [
        ((0, 0), None, "web"),
        ((5, 5), None, "web"),
        ((5, 0), None, "burst"),
        ((0, 5), None, "web"),
        ((0, 0), Some(1), "burst"),
    ];
    for ((burst, web), of_web, follows) in cases {
        let called = |name: &str, weight, nodes_max| Pool {
            name: name.to_owned(),
            weight,
            ..pool(nodes_max, 1)
        };
        let mut old = node("web-0", 8, pods(&demand("a", 1), 2));
        old.labels.insert(label::NODEPOOL.to_owned(), "web".to_owned());
        let fleet = Fleet {
            nodes: vec![old],
            pools: vec![called("burst", burst, None), called("web", web, of_web)],
            pending: Vec::new(),
        };
        let placements = leave(&["web-0"], &fleet);
        let new: Vec<&str> = placements.new_nodes.iter().map(|it| it.pool.as_str()).collect();
        assert_eq!(new, [follows], "weights {burst} and {web}, limit {of_web:?}");
    }
}
