//! Who starts, who waits, why?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

#[path = "support/fleet.rs"]
mod fleet;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet::{ago, drifted, labels, minutes, node, now, pdb, pod};
use jiff::SignedDuration;
use nodemolt_core::budget::{
    Act, Amount, ClassRule, Closed, Concurrency, Dates, Days, DisruptionBudget, Grant, GrantKind,
    Grants, Hours, Keep, Limits, PoolBudget, Schedule, Standing, Unavailable, When, Window,
    Windows, measure, zone,
};
use nodemolt_core::drain::{
    AtLimit, BarePods, DO_NOT_DISRUPT, DO_NOT_EVICT, Homeless, Owner, Pdbs, Pod, PodPhase,
    Protection,
};
use nodemolt_core::fit::Quantity;
use nodemolt_core::fit::pack::{Miss, Obstacle, Place, Why};
use nodemolt_core::place::{Placement, Placements};
use nodemolt_core::plan::{
    Dry, Fleet, Hand, More, NextTry, Node, Plan, PoolState, Reach, Spread, Unable, Unasked,
    UnderWay, Unfollowed, UsedUp, WaitFor, expected, held_at_once, held_by_people, in_the_way,
    plan,
};
use nodemolt_core::replace::{Because, Cause, Order, Phase};
use nodemolt_core::wanted::NoImage;
use proptest::prelude::*;
use proptest::sample::select;

type Change<'a> = Box<dyn Fn(&mut World) + 'a>;

/// How many nodes, how many of them at once, and how many minutes.
type Told = (usize, usize, i64);

/// A world, and where everybody's pods would go.
#[derive(Debug, Clone, Default)]
struct World {
    fleet: Fleet,
    placements: Placements,
    reach: Reach,
    grants: Grants,
    limits: Limits,
}

impl World {
    fn of(nodes: impl IntoIterator<Item = (&'static str, Node)>) -> Self {
        let mut world = Self::default();
        for (name, it) in nodes {
            world.placements.of.insert(name.to_owned(), spare());
            world.fleet.nodes.insert(name.to_owned(), it);
        }
        world
    }

    fn plan(&self) -> Plan {
        plan(&self.fleet, &self.placements, &self.reach, &self.grants, &self.limits, now())
    }

    fn starts(&self) -> Vec<String> {
        self.plan().start.into_iter().map(|it| it.node).collect()
    }

    fn node(&mut self, name: &str) -> &mut Node {
        self.fleet.nodes.get_mut(name).unwrap()
    }

    /// So many at once for the class `web`.
    fn at_once(mut self, count: u32) -> Self {
        self.rule().concurrency = Some(Ok(Concurrency::Of(Amount::Count(count))));
        self
    }

    fn rule(&mut self) -> &mut ClassRule {
        self.limits.classes.entry("web".to_owned()).or_insert_with(|| ClassRule::of("prod"))
    }
}

fn spare() -> Placement {
    Placement::Spare { on: BTreeSet::new() }
}

fn successors(count: usize) -> Placement {
    Placement::Successors { new: (0..count).collect() }
}

fn placed_pod() -> nodemolt_core::fit::pod::PodId {
    nodemolt_core::fit::pod::PodId { namespace: "shop".into(), name: "p".into() }
}

/// Nearest is a new node of the pool `web`, but for this.
fn unplaced(obstacle: Option<Obstacle>) -> Placement {
    let place = Place::Pool("web".to_owned());
    let nearest = obstacle.map(|it| Miss { place, obstacles: vec![it] });
    Placement::Unplaced { pod: placed_pod(), why: Why::NoPlace { nearest } }
}

fn unmodelled() -> Placement {
    let (pod, what) = (placed_pod(), vec!["DRA".to_owned()]);
    Placement::Unmodelled { pod, what, kin: Some(0), new: BTreeSet::new() }
}

fn web(name: &str) -> Pod {
    pod("shop", name, "web")
}

/// It holds everybody, people included.
fn none_of_all() -> DisruptionBudget {
    DisruptionBudget {
        name: "all".to_owned(),
        selectors: vec![labels("")],
        keep: Ok(Keep::MaxUnavailable(Amount::Count(0))),
        gates_controller: true,
        gates_people: true,
    }
}

fn one(pods: Vec<Pod>) -> World {
    World::of([("n1", node("web", "a", pods))])
}

/// Everything that the issue names, each with the words that a person gets.
#[test]
fn a_node_waits_for_something_with_a_name() {
    let held = |annotation| Some(Protection { annotation, until: None, unread: None });
    let windows = Windows {
        zone: zone("Europe/Berlin").unwrap(),
        allow: Some(vec![Window {
            when: When::Days {
                days: Days::ALL,
                hours: Hours { from: "22:00".parse().unwrap(), to: "05:00".parse().ok() },
            },
            dates: Dates::default(),
            reason: Some("nightly".to_owned()),
        }]),
        forbid: Vec::new(),
    };
    let unplaced = |obstacle: Option<Obstacle>| -> Change<'_> {
        Box::new(move |it| {
            it.placements.of.insert("n1".to_owned(), self::unplaced(obstacle.clone()));
        })
    };
    let cases: Vec<(Change<'_>, &str)> = vec![
        (
            Box::new(|it| it.grants.locked = Some("two machines for one claim".to_owned())),
            "`nodemolt unlock`: two machines for one claim",
        ),
        (
            Box::new(|it| it.grants.paused = Some("by ops since 11:00".to_owned())),
            "`nodemolt resume`: paused, by ops since 11:00",
        ),
        (
            Box::new(|it| {
                it.fleet.pools.insert(
                    "web".to_owned(),
                    PoolState {
                        hand: Hand::Watch { by: "Karpenter".to_owned() },
                        ..PoolState::default()
                    },
                );
            }),
            "Karpenter, which moves the nodes of this pool",
        ),
        (
            Box::new(|it| {
                it.node("n1").wish.as_mut().unwrap().no_image =
                    Some(NoImage::because("ami-0a is too young"));
            }),
            "an image for its successor: ami-0a is too young",
        ),
        (
            Box::new(|it| it.node("n1").protection = held(DO_NOT_DISRUPT)),
            "a person: node n1 says `karpenter.sh/do-not-disrupt`",
        ),
        (
            Box::new(|it| {
                Arc::make_mut(&mut it.node("n1").pods[0]).protection = held(DO_NOT_EVICT);
            }),
            "a person: pod shop/p says `karpenter.sh/do-not-evict`",
        ),
        (
            Box::new(|it| Arc::make_mut(&mut it.node("n1").pods[0]).owner = Owner::Nobody),
            "a person: pod shop/p has no controller and would be lost",
        ),
        (
            Box::new(|it| it.fleet.pdbs = vec![pdb("shop", "web", "web", 0)].into()),
            "pod shop/p: PodDisruptionBudget `web` allows no disruption now (namespace shop)",
        ),
        (
            Box::new(|it| {
                it.fleet.pdbs = vec![pdb("shop", "a", "web", 1), pdb("shop", "b", "web", 1)].into();
            }),
            "pod shop/p: several PodDisruptionBudgets match it: `a`, `b` (namespace shop)",
        ),
        (
            Box::new(|it| {
                it.fleet.homeless.insert(
                    "web".to_owned(),
                    Homeless { pod: web("q").id, since: ago(minutes(6)) },
                );
            }),
            "pod shop/q, which was moved and is pending since 2026-08-03T11:54:00Z",
        ),
        (
            Box::new(|it| {
                it.node("n1").next_try = Some(NextTry {
                    at: ago(minutes(-30)),
                    failed_at: ago(minutes(30)),
                    because: Because::NeverRegistered { claim: "new".to_owned() },
                });
            }),
            "its next try at 2026-08-03T12:30:00Z: `new` did not join in 15m",
        ),
        (
            Box::new(|it| {
                it.fleet.pools.insert(
                    "web".to_owned(),
                    PoolState {
                        back_off: Some((
                            ago(minutes(-3)),
                            "InsufficientInstanceCapacity".to_owned(),
                        )),
                        ..PoolState::default()
                    },
                );
            }),
            "capacity for NodePool `web`, tried again at 2026-08-03T12:03:00Z: InsufficientInstanceCapacity",
        ),
        (
            Box::new(|it| {
                it.rule().minimum_lifetime = minutes(60);
                it.node("n1").created_at = ago(minutes(20));
            }),
            "its minimum lifetime (ImagePolicy `prod`), until 2026-08-03T12:40:00Z",
        ),
        (
            Box::new(|it| it.rule().windows = Some(Ok(windows.clone()))),
            "the windows of ImagePolicy `prod`, open at 2026-08-03T20:00:00Z (nightly)",
        ),
        (
            Box::new(|it| {
                it.reach.more.insert(
                    "web".to_owned(),
                    More { nodes: 0, because: "canary soaks until 13:00".to_owned() },
                );
                it.node("n1").wish.as_mut().unwrap().to_candidate = true;
            }),
            "the rollout: canary soaks until 13:00",
        ),
        (
            Box::new(|it| {
                it.grants.open.insert(
                    "n0".to_owned(),
                    Grant { kind: GrantKind::Replacement, since: ago(minutes(3)) },
                );
                it.fleet
                    .nodes
                    .insert("n0".to_owned(), Node { wish: None, ..node("web", "a", vec![]) });
            }),
            "the cluster's one slot: 1 of 1 in use by n0 since 2026-08-03T11:57:00Z",
        ),
        (
            Box::new(|it| {
                let mut n0 = Node { wish: None, ..node("web", "a", vec![]) };
                n0.member.standing = Standing::Unavailable(Unavailable::NotReady);
                it.fleet.nodes.insert("n0".to_owned(), n0);
            }),
            "the cluster's one slot: 1 of 1 in use by n0 (not ready)",
        ),
        (
            Box::new(|it| {
                it.limits.disruption_budgets = vec![DisruptionBudget {
                    name: "all".to_owned(),
                    selectors: vec![labels("")],
                    keep: Ok(Keep::MinAvailable(Amount::Count(1))),
                    gates_controller: true,
                    gates_people: false,
                }];
            }),
            "NodeDisruptionBudget `all`, which allows none: it keeps at least 1 available, of 1",
        ),
        (
            unplaced(Some(Obstacle::PoolLimit {
                resource: "cpu".to_owned(),
                by: Quantity::from_units(2),
            })),
            "room in the limits of NodePool `web` (cpu, 2 more) for pod shop/p",
        ),
        (unplaced(None), "a place for pod shop/p: there is neither a node nor a pool"),
        (
            unplaced(Some(Obstacle::NoCapacity)),
            "capacity for NodePool `web`: nearest is a new node of pool web: no machine that would do can be had now",
        ),
    ];
    for (change, expected) in cases {
        let mut world = one(vec![web("p")]);
        assert_eq!(world.starts(), ["n1"], "nothing holds it");
        change(&mut world);
        let plan = world.plan();
        assert!(plan.start.is_empty(), "{expected}");
        let waiting = &plan.waiting["n1"];
        assert_eq!(waiting.first.to_string(), expected);
        assert!(waiting.more.is_empty(), "{:?}", waiting.more);
    }
}

#[test]
fn all_reasons_are_told_and_those_of_people_come_first() {
    let mut world = one(vec![web("p"), web("q")]);
    world.grants.paused = Some("by ops".to_owned());
    world.fleet.pdbs = vec![pdb("shop", "web", "web", 0)].into();
    world.rule().minimum_lifetime = SignedDuration::MAX;
    let plan = world.plan();
    let reasons: Vec<&str> = plan.waiting["n1"].all().map(WaitFor::reason).collect();
    assert_eq!(reasons, ["Paused", "PodDisruptionBudget", "MinimumLifetime"]);
}

/// Whoever reads of the slot first waits for it, and nothing would come of that.
#[test]
fn a_limit_is_told_before_the_slot_and_a_budget_of_nothing_before_time() {
    let mut world = World::of([("n1", node("web", "a", vec![])), ("n2", node("web", "b", vec![]))]);
    world.node("n1").under_way = Some(UnderWay { phase: Phase::Draining, since: ago(minutes(3)) });
    let grant = Grant { kind: GrantKind::Replacement, since: ago(minutes(3)) };
    world.grants.open.insert("n1".to_owned(), grant);
    let limit = Placement::NoKin {
        pool: "web".to_owned(),
        limit: Some(("cpu".to_owned(), Quantity::from_units(2))),
    };
    world.placements.of.insert("n2".to_owned(), limit);
    let reasons = |world: &World| -> Vec<&'static str> {
        world.plan().waiting["n2"].all().map(WaitFor::reason).collect()
    };
    assert_eq!(reasons(&world), ["Limit", "Budget"]);
    world.rule().minimum_lifetime = SignedDuration::MAX;
    assert_eq!(reasons(&world), ["Limit", "MinimumLifetime", "Budget"]);
    world.placements.of.insert("n2".to_owned(), spare());
    world.limits.disruption_budgets = vec![none_of_all()];
    assert_eq!(reasons(&world), ["Budget", "MinimumLifetime"]);
}

#[test]
fn a_deadline_lifts_what_pods_say_and_not_what_the_node_says() {
    let mut world = one(vec![web("p")]);
    world.fleet.pdbs = vec![pdb("shop", "web", "web", 0)].into();
    Arc::make_mut(&mut world.node("n1").pods[0]).protection =
        Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None });
    assert!(world.starts().is_empty());
    world.node("n1").has_deadline = true;
    assert_eq!(world.starts(), ["n1"]);
    world.node("n1").protection =
        Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None });
    assert!(world.starts().is_empty());
}

#[test]
fn a_protection_that_nobody_can_read_is_told_with_what_was_written() {
    let unread = Some("banana".to_owned());
    let protection = Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread });
    let plan = one(vec![Pod { protection, ..web("p") }]).plan();
    assert_eq!(
        plan.waiting["n1"].first.to_string(),
        "a person: pod shop/p says `karpenter.sh/do-not-disrupt: banana`, which cannot be read and so protects"
    );
}

/// Nobody evicts those; but they end with the machine, and so Karpenter counts them, too.
#[test]
fn protected_pods_hold_their_node_though_they_would_stay_with_it() {
    let protection = Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None });
    let held = || Pod { protection: protection.clone(), ..web("p") };
    for (what, pod, starts) in [
        ("it tolerates the cordon", Pod { tolerates_cordon: true, ..held() }, false),
        ("of a DaemonSet", Pod { owner: Owner::DaemonSet, ..held() }, false),
        ("a mirror pod", Pod { owner: Owner::Mirror, ..held() }, false),
        ("it has finished", Pod { phase: PodPhase::Finished, ..held() }, true),
        ("it goes", Pod { ends_at: Some(now() + minutes(1)), ..held() }, true),
        ("nothing said", Pod { tolerates_cordon: true, ..web("p") }, true),
    ] {
        let mut world = one(vec![pod]);
        assert_eq!(!world.starts().is_empty(), starts, "{what}");
        let held =
            held_by_people(&world.fleet, &Pdbs::new(&world.fleet.pdbs), &world.limits, "n1", now());
        assert_eq!(held.is_none(), starts, "{what}: right before the cordon it is asked again");
        world.node("n1").has_deadline = true;
        assert_eq!(world.starts(), ["n1"], "{what}, with a deadline");
    }
}

/// Issue 7: they end with the machine as if they were evicted.
#[test]
fn budgets_of_pods_that_tolerate_the_cordon_hold_their_node() {
    for (allowed, starts) in [(0, false), (1, true)] {
        let mut world = one(vec![Pod { tolerates_cordon: true, ..web("p") }]);
        world.fleet.pdbs = vec![pdb("shop", "web", "web", allowed)].into();
        assert_eq!(!world.starts().is_empty(), starts, "{allowed}");
        let held =
            held_by_people(&world.fleet, &Pdbs::new(&world.fleet.pdbs), &world.limits, "n1", now());
        assert_eq!(held.is_none(), starts, "right before the cordon it is asked again");
    }
}

/// Issue 7: they were cordoned and given up for ever, as both end with one machine and their budget lets one go.
#[test]
fn those_that_end_with_one_machine_wait_until_all_of_them_may() {
    let bound = |name: &str| Pod { tolerates_cordon: true, ..web(name) };
    for (what, pods, allowed, starts) in [
        ("both end at once", vec![bound("p"), bound("q")], 1, false),
        ("both may", vec![bound("p"), bound("q")], 2, true),
        ("one leaves before", vec![bound("p"), web("q")], 1, true),
        ("both leave one after the other", vec![web("p"), web("q")], 1, true),
    ] {
        let mut world = one(pods);
        world.fleet.pdbs = vec![pdb("shop", "web", "web", allowed)].into();
        assert_eq!(!world.starts().is_empty(), starts, "{what}");
        let held =
            held_by_people(&world.fleet, &Pdbs::new(&world.fleet.pdbs), &world.limits, "n1", now());
        assert_eq!(held.is_none(), starts, "{what}: right before the cordon it is asked again");
        if !starts {
            assert_eq!(
                world.plan().waiting["n1"].first.to_string(),
                "pod shop/q: PodDisruptionBudget `web` lets 1 go now, and more of its pods have to go at once \
                 (namespace shop)"
            );
        }
        // Whoever says so passes the budget in the end.
        world.rule().at_limit = AtLimit::Force;
        assert_eq!(world.starts(), ["n1"], "{what}, by force");
    }
}

/// Seeds 407 and 726: some pods had left and found no room before the node was empty, and the others waited for them.
#[test]
fn who_goes_first_waits_until_all_of_its_pods_may_go_or_have_room() {
    for (what, placement, allowed, waits) in [
        ("all may", None, 2, None),
        ("nobody has looked for room", None, 1, Some("Consideration")),
        ("there is none", Some(unplaced(None)), 1, Some("PodDisruptionBudget")),
        ("only on a new node", Some(successors(1)), 1, Some("PodDisruptionBudget")),
        ("there is", Some(Placement::Spare { on: BTreeSet::new() }), 1, None),
    ] {
        let mut world = one(vec![web("p"), web("q")]);
        world.rule().order = Order::DeleteFirst;
        world.fleet.pdbs = vec![pdb("shop", "web", "web", allowed)].into();
        world.placements.of.clear();
        world.placements.of.extend(placement.map(|it| ("n1".to_owned(), it)));
        let plan = world.plan();
        let first = plan.waiting.get("n1").map(|it| it.first.reason());
        assert_eq!(first, waits, "{what}");
        assert_eq!(plan.consider.is_empty(), waits != Some("Consideration"), "{what}");
        let order = plan.start.first().map(|it| (it.order, it.placement.is_none()));
        let expected = waits.is_none().then_some((Order::DeleteFirst, true));
        assert_eq!(order, expected, "{what}");
        let held =
            held_at_once(&world.fleet, &Pdbs::new(&world.fleet.pdbs), "n1", AtLimit::Skip, now());
        assert_eq!(
            held.is_some(),
            allowed < 2,
            "{what}: it is asked again right before the cordon"
        );
    }
}

#[test]
fn who_asks_by_name_passes_young_age_and_an_older_failure() {
    let mut world = one(vec![]);
    world.rule().minimum_lifetime = SignedDuration::MAX;
    let failed = NextTry {
        at: ago(minutes(-30)),
        failed_at: ago(minutes(30)),
        because: Because::NoLongerWanted,
    };
    world.node("n1").next_try = Some(failed);
    assert!(world.starts().is_empty());
    let wish = world.node("n1").wish.as_mut().unwrap();
    (wish.cause, wish.since) = (Cause::Asked, ago(minutes(10)));
    assert_eq!(world.starts(), ["n1"]);
    world.node("n1").wish.as_mut().unwrap().since = ago(minutes(40));
    assert!(world.starts().is_empty(), "it was asked for before the failure");
}

#[test]
fn asked_then_oldest_then_spread_then_easiest_then_name() {
    let with = |zone, pods: usize, since: i64| {
        let pods = (0..pods)
            .map(|it| pod("shop", &format!("{zone}{pods}{it}"), &format!("{zone}{pods}")))
            .collect();
        let mut it = node("web", zone, pods);
        it.wish.as_mut().unwrap().since = ago(minutes(since));
        it
    };
    let mut world = World::of([
        ("n1", with("a", 5, 100)),
        ("n2", with("a", 1, 100)),
        ("n3", with("b", 9, 100)),
        ("n4", with("c", 2, 100)),
        ("n5", with("a", 0, 50)),
        ("n6", with("b", 0, 10)),
        ("n7", with("a", 3, 999)),
    ])
    .at_once(10);
    world.node("n6").wish.as_mut().unwrap().cause = Cause::Asked;
    // n6 is asked for (zone b), n7 is oldest (zone a). Then c, which has none; then of a and b, one each,
    // the easier node; and so on.
    assert_eq!(world.starts(), ["n6", "n7", "n4", "n2", "n3", "n1", "n5"]);
    assert_eq!(world.clone().at_once(2).starts(), ["n6", "n7"]);
    // Whoever waits is asked all the same; nobody starts, so zones stay as they are.
    world.grants.paused = Some("by ops".to_owned());
    assert_eq!(world.plan().order, ["n6", "n7", "n2", "n4", "n1", "n3", "n5"]);
}

#[test]
fn a_pool_that_cannot_go_on_starves_nobody() {
    let mut bad = node("bad", "a", vec![]);
    bad.wish.as_mut().unwrap().since = ago(minutes(9999));
    let mut world = World::of([("b1", bad.clone()), ("b2", bad), ("n1", node("web", "a", vec![]))]);
    assert_eq!(world.starts(), ["b1"], "the oldest wish gets the one slot");
    let failing = PoolState { failures: 1, ..PoolState::default() };
    world.fleet.pools.insert("bad".to_owned(), failing);
    assert_eq!(world.starts(), ["n1"], "whoever has not failed comes first");
    world.fleet.pools.get_mut("bad").unwrap().failures = 0;
    world.fleet.pools.get_mut("bad").unwrap().back_off = Some((ago(minutes(-5)), "ICE".to_owned()));
    assert_eq!(world.starts(), ["n1"], "waiting takes nothing");
}

/// Seed 1268 of an earlier draw: the old node's drain waited for a person, and nothing was said of the successor,
/// whose image had been taken back.
#[test]
fn a_successor_stays_until_the_replacement_that_counts_on_it_is_over() {
    let on = || node("web", "a", Vec::new());
    let mut world = World::of([("n1", on()), ("n2", on())]).at_once(5);
    world.node("n1").under_way = Some(UnderWay { phase: Phase::Draining, since: ago(minutes(3)) });
    world.node("n2").succeeds = Some("n1".to_owned());
    assert!(world.starts().is_empty());
    assert_eq!(
        world.plan().waiting["n2"].first.to_string(),
        "node n1: its replacement is not over and counts on this one"
    );
}

#[test]
fn two_replacements_of_one_workload_wait_for_each_other() {
    let on = |pods: &[&str]| node("web", "a", pods.iter().map(|it| web(it)).collect());
    let world = World::of([("n1", on(&["a"])), ("n2", on(&["b"]))]).at_once(5);
    let plan = world.plan();
    assert_eq!(plan.start.len(), 1, "all pods of a workload would move at once");
    assert_eq!(
        plan.waiting["n2"].first.to_string(),
        "node n1: the other pods of ReplicaSet shop/web are moved from there"
    );
    // A third pod that stays makes it fine.
    let mut three =
        World::of([("n1", on(&["a"])), ("n2", on(&["b"])), ("n3", on(&["c"]))]).at_once(5);
    three.node("n3").wish = None;
    assert_eq!(three.starts(), ["n1", "n2"]);
    // A budget that allows one disruption is spoken for by the first, as long as its pod is there.
    three.fleet.pdbs = vec![pdb("shop", "web", "web", 1)].into();
    let plan = three.plan();
    assert_eq!(plan.start[0].node, "n1");
    assert_eq!(
        plan.waiting["n2"].first.to_string(),
        "node n1: PodDisruptionBudget `shop/web` of pod shop/b is spoken for there"
    );
    three.fleet.pdbs = vec![pdb("shop", "web", "web", 2)].into();
    assert_eq!(three.starts(), ["n1", "n2"]);
    three.node("n1").under_way = Some(UnderWay { phase: Phase::Draining, since: ago(minutes(3)) });
    three.fleet.pdbs = vec![pdb("shop", "web", "web", 1)].into();
    assert!(three.starts().is_empty());
    assert_eq!(three.plan().under_way, BTreeSet::from(["n1".to_owned()]));
    // Issue 7: a node was named that had gone long since. What is waited for is the pod that came.
    let mut after = World::of([("n2", on(&["b"]))]).at_once(5);
    after.fleet.unsettled = vec![(Arc::new(web("a2")), "n1".to_owned())];
    let waits = &after.plan().waiting["n2"].first;
    let came = "pod shop/a2 to be ready: it came in the place of one on node n1, and ReplicaSet shop/web has no \
                other that is ready elsewhere";
    assert_eq!((waits.to_string().as_str(), waits.pod()), (came, Some(&web("a2").id)));
    // Whoever has no pod of it that is ready has none to lose.
    let mut broken = after.clone();
    broken.node("n2").pods = vec![Arc::new(Pod { ready: false, ..web("b") })];
    assert_eq!(broken.starts(), ["n2"]);
    // Nor has one that has none of it at all.
    after.fleet.nodes.insert("n3".to_owned(), on(&[]));
    after.placements.of.insert("n3".to_owned(), spare());
    assert_eq!(after.starts(), ["n3"]);
    after.fleet.nodes.remove("n3");
    // One that did not come back at all counts like one that is not ready; of both, that which is there is named.
    after.fleet.missing = vec![(Arc::new(web("b")), "n0".to_owned())];
    assert_eq!(after.plan().waiting["n2"].first.pod(), Some(&web("a2").id));
    let mut lost = after.clone();
    lost.fleet.unsettled.clear();
    assert_eq!(
        lost.plan().waiting["n2"].first.to_string(),
        "a pod of ReplicaSet shop/web to come back: none came in the place of what left node n0, and it has no \
         other that is ready elsewhere"
    );
    // While the node is still being emptied it is that.
    after.fleet.nodes.insert("n1".to_owned(), on(&["a"]));
    after.node("n1").under_way = Some(UnderWay { phase: Phase::Draining, since: ago(minutes(3)) });
    assert_eq!(after.plan().waiting["n2"].first.pod(), None);
}

#[test]
fn only_those_with_room_are_considered() {
    let mut world = World::of([("n1", node("web", "a", vec![])), ("n2", node("web", "b", vec![]))]);
    world.placements.of.clear();
    let plan = world.plan();
    assert_eq!(plan.consider, ["n1"]);
    assert_eq!(plan.waiting["n1"].first, WaitFor::Consideration);
    assert_eq!(plan.waiting["n2"].first.reason(), "Budget");
    // It has no place: the next one is considered.
    world.placements.of.insert("n1".to_owned(), unplaced(None));
    assert_eq!(world.plan().consider, ["n2"]);
    world.placements.of.insert("n2".to_owned(), successors(2));
    assert_eq!(world.starts(), ["n2"]);
    // What the model does not know gets one successor just like its node, and starts.
    world.placements.of.insert("n1".to_owned(), unmodelled());
    assert_eq!(world.starts(), ["n1"]);
}

#[test]
fn where_the_old_node_goes_first_nobody_asks_for_room() {
    let mut world = one(vec![web("p")]);
    world.placements.of.clear();
    world.rule().order = Order::DeleteFirst;
    let plan = world.plan();
    assert_eq!(
        (plan.start.len(), plan.start[0].order, &plan.start[0].placement),
        (1, Order::DeleteFirst, &None)
    );
}

#[test]
fn a_grant_is_used_until_it_is_given_back_though_its_node_has_gone() {
    let mut world = one(Vec::new());
    assert_eq!(world.starts().len(), 1, "alone it starts");
    let mut member = world.fleet.nodes.values().next().unwrap().member.clone();
    member.standing = Standing::Outside;
    let grant = Grant { kind: GrantKind::Replacement, since: ago(minutes(3)) };
    world.grants.open.insert("gone".to_owned(), grant);
    world.fleet.gone.insert("gone".to_owned(), member);
    assert_eq!(world.starts(), [""; 0]);
}

#[test]
fn who_is_deleted_by_a_person_passes_budgets_and_counts_against_them() {
    let mut world = World::of([
        ("n1", node("web", "a", vec![web("p")])),
        ("n2", node("web", "b", vec![])),
        ("n3", node("web", "c", vec![])),
    ]);
    world.node("n3").wish.as_mut().unwrap().cause = Cause::Deleted;
    world.node("n3").member.standing = Standing::Unavailable(Unavailable::Deleting);
    world.grants.paused = Some("by ops".to_owned());
    assert_eq!(world.starts(), ["n3"], "a pause does not hold people");
    world.grants.paused = None;
    let plan = world.plan();
    assert_eq!(plan.start.len(), 1);
    assert_eq!(plan.waiting["n1"].first.reason(), "Budget", "it has the one slot now");
    // That its pods fit nowhere holds nothing; nobody has looked yet: somebody must.
    world.placements.of.insert("n3".to_owned(), unplaced(None));
    assert_eq!(world.starts(), ["n3"]);
    world.placements.of.remove("n3");
    assert_eq!(world.plan().consider, ["n3"]);
    world.placements.of.insert("n3".to_owned(), spare());
    // A budget may gate people too, if it says so; an interruption waits for nobody.
    world.limits.disruption_budgets = vec![none_of_all()];
    let plan = world.plan();
    let none = "NodeDisruptionBudget `all`, which allows none";
    assert_eq!(plan.waiting["n3"].first.to_string(), none);
    assert_eq!(plan.waiting["n1"].first.to_string(), none);
    assert_eq!(plan.order, ["n3", "n2", "n1"], "it is asked first, whether it goes or not");
    // One that takes over from another and bears nothing yet is missing to nobody.
    world.node("n3").succeeds = Some("n1".to_owned());
    assert_eq!(world.starts(), ["n3"]);
    world.node("n3").pods = vec![web("q").into()];
    assert_eq!(world.plan().waiting["n3"].first.to_string(), none);
    (world.node("n3").succeeds, world.node("n3").pods) = (None, Vec::new());
    // Whoever is held has no grant, and did not get one just now.
    world.limits.disruption_budgets[0].keep = Ok(Keep::MaxUnavailable(Amount::Count(1)));
    world.node("n2").member.standing = Standing::Unavailable(Unavailable::NotReady);
    let plan = world.plan();
    let all = "NodeDisruptionBudget `all`: 1 of 1 nodes in use by n2 (not ready)";
    assert_eq!(plan.waiting["n3"].first.to_string(), all);
    let all =
        "NodeDisruptionBudget `all`: 2 of 1 nodes in use by n2 (not ready), n3 (being deleted)";
    assert_eq!(plan.waiting["n1"].first.to_string(), all);
    world.node("n3").wish.as_mut().unwrap().cause = Cause::Interrupted;
    assert_eq!(world.starts(), ["n3"]);
}

/// Once a node of a pool has no place to go to, the others of its pool wait until all pools had a look.
#[test]
fn a_pool_that_has_no_room_starves_no_other() {
    let mut world = World::of([
        ("a1", node("stuck", "a", vec![])),
        ("a2", node("stuck", "a", vec![])),
        ("b1", node("web", "a", vec![])),
    ]);
    world.placements.of.clear();
    world.placements.of.insert("a1".to_owned(), unplaced(None));
    assert_eq!(world.plan().consider, ["a2"]);
    world.placements.passed.insert("stuck".to_owned());
    let plan = world.plan();
    assert_eq!(plan.consider, ["b1"]);
    assert_eq!(plan.waiting["a2"].first.reason(), "Consideration");
}

/// A static pool was told to have a limit that nobody had written.
#[test]
fn pods_that_do_not_fit_on_the_one_that_follows_wait_for_a_place_and_for_no_limit() {
    let mut world = one(vec![web("p")]);
    let by = Quantity::from_units(1);
    let full = Obstacle::PoolLimit { resource: "nodes".to_owned(), by };
    world.placements.of.insert("n1".to_owned(), unplaced(Some(full)));
    for (kept, reason) in [(false, "Limit"), (true, "NoPlace")] {
        world.fleet.pools.entry("web".to_owned()).or_default().kept = kept;
        let first = world.plan().waiting["n1"].first.clone();
        assert_eq!(first.reason(), reason);
        assert_eq!(first.to_string().contains("`replicas`"), kept, "{first}");
    }
}

#[test]
fn who_needs_one_of_its_own_kind_waits_for_it_by_name() {
    let mut world = one(vec![]);
    let no_kin = |limit: Option<&str>| {
        let limit = limit.map(|it| (it.to_owned(), Quantity::from_units(1)));
        Placement::NoKin { pool: "web".to_owned(), limit }
    };
    world.placements.of.insert("n1".to_owned(), no_kin(Some("cpu")));
    assert_eq!(
        world.plan().waiting["n1"].first.to_string(),
        "room in the limits of NodePool `web` (cpu) for its successor"
    );
    let keep = Ok(Keep::MinAvailable(Amount::Count(1)));
    world.limits.disruption_budgets = vec![DisruptionBudget { keep, ..none_of_all() }];
    let counted = "room in the limits of NodePool `web` (cpu) for its successor, on which NodeDisruptionBudget `all` counts";
    assert!(world.plan().waiting["n1"].all().any(|it| it.to_string() == counted));
    world.limits.disruption_budgets.clear();
    let nothing =
        "capacity for NodePool `web`: nothing that it asks for is offered and has an image";
    world.placements.of.insert("n1".to_owned(), no_kin(None));
    assert_eq!(world.plan().waiting["n1"].first.to_string(), nothing);
    // One that would go first, and be followed by none.
    world.rule().order = Order::DeleteFirst;
    assert_eq!(world.starts(), ["n1"]);
    world.fleet.pools.entry("web".to_owned()).or_default().launches_nothing = true;
    assert_eq!(world.plan().waiting["n1"].first.to_string(), nothing);
}

/// Full subnets are why nothing can be launched: alone where none is left, behind the rest where one of the node's own zone
/// is full, and not at all where a limit alone would do.
#[test]
fn subnets_without_a_free_address_are_named() {
    let subnet = |zone: &str| (format!("subnet-{zone}"), zone.to_owned());
    let kin = "capacity for NodePool `web`: nothing that it asks for is offered and has an image";
    let limit = "room in the limits of NodePool `web` (cpu) for its successor";
    let both = "free addresses in the subnets of EC2NodeClass `general`: subnet-a (a), subnet-b (b) have none";
    let one_of = "a free address in subnet subnet-a (a) of EC2NodeClass `general`";
    let none = "a subnet: EC2NodeClass `general` selects none where its pool may launch";
    for (subnets, everywhere, limited, expected) in [
        (vec!["a", "b"], true, false, vec![both]),
        (vec!["a", "b"], true, true, vec![both, limit]),
        (vec![], true, false, vec![none]),
        (vec!["a", "b"], false, false, vec![kin, one_of]),
        (vec!["b"], false, false, vec![kin]),
        (vec!["a"], false, true, vec![limit]),
    ] {
        let mut world = one(vec![]);
        world.node("n1").zone = Some("a".to_owned());
        let limit = limited.then(|| ("cpu".to_owned(), Quantity::from_units(1)));
        let no_kin = Placement::NoKin { pool: "web".to_owned(), limit };
        world.placements.of.insert("n1".to_owned(), no_kin);
        let subnets = subnets.into_iter().map(subnet).collect();
        let dry = Dry { class: "general".to_owned(), subnets, everywhere };
        world.fleet.pools.entry("web".to_owned()).or_default().dry = Some(dry);
        let told: Vec<String> = world.plan().waiting["n1"].all().map(ToString::to_string).collect();
        assert_eq!(told, expected);
    }
}

/// Where old nodes go first, nobody goes while the last that went has no successor; who asks for one by name tries it.
#[test]
fn nobody_goes_first_while_nobody_has_followed_the_last_one() {
    let mut world = one(vec![]);
    world.rule().order = Order::DeleteFirst;
    assert_eq!(world.starts(), ["n1"]);
    let last = Unfollowed {
        node: "n0".to_owned(),
        member: world.node("n1").member.clone(),
        at: ago(minutes(5)),
        because: Because::NeverReady { claim: "web-1".to_owned() },
    };
    world.fleet.pools.entry("web".to_owned()).or_default().unfollowed = Some(last);
    let told = world.plan().waiting["n1"].first.to_string();
    assert!(told.contains("n0 went first and nobody has followed it"), "{told}");
    for (by_name, since, starts) in
        [(true, minutes(1), true), (true, minutes(9), false), (false, minutes(1), false)]
    {
        let wish = world.node("n1").wish.as_mut().unwrap();
        (wish.cause, wish.by_name, wish.since) = (Cause::Asked, by_name, ago(since));
        assert_eq!(!world.starts().is_empty(), starts, "{by_name} {since}");
    }
    // Whoever is replaced with its successor first hurts nobody.
    world.rule().order = Order::SuccessorFirst;
    world.placements.of.insert("n1".to_owned(), Placement::Spare { on: BTreeSet::new() });
    assert_eq!(world.starts(), ["n1"]);
}

/// Four pools of one class were emptied one after the other under one slot, and so would those of two classes be.
#[test]
fn a_node_that_nobody_followed_holds_those_of_other_pools_who_would_boot_the_same_or_count_beside_it()
 {
    for (class, slots, held) in [
        // What would follow it boots the same image, however many may go at once.
        ("web", 3, true),
        // The cluster's one slot is empty until somebody follows.
        ("batch", 0, true),
        // A budget of its own has a place beside the one that is empty, or has none.
        ("batch", 2, false),
        ("batch", 1, true),
    ] {
        let mut world = one(vec![]);
        world.rule().order = Order::DeleteFirst;
        let mut rule = ClassRule::of("batch");
        rule.order = Order::DeleteFirst;
        world.limits.classes.insert("batch".to_owned(), rule);
        let member = world.node("n1").member.clone();
        let n1 = &mut world.node("n1").member;
        (n1.pool, n1.class) = (Some("batch".to_owned()), Some(class.to_owned()));
        if slots > 0 {
            let keep = Ok(Keep::MaxUnavailable(Amount::Count(slots)));
            let budget = DisruptionBudget { keep, gates_people: false, ..none_of_all() };
            world.limits.disruption_budgets.push(budget);
        }
        world.fleet.pools.entry("batch".to_owned()).or_default();
        assert_eq!(world.starts(), ["n1"], "{class} {slots}");
        let because = Because::NeverReady { claim: "web-1".to_owned() };
        let last = Unfollowed { node: "n0".to_owned(), member, at: ago(minutes(5)), because };
        world.fleet.pools.entry("web".to_owned()).or_default().unfollowed = Some(last);
        assert_eq!(world.starts().is_empty(), held, "{class} {slots}");
        if held {
            let told = world.plan().waiting["n1"].first.to_string();
            assert!(told.contains("n0 went first and nobody has followed it"), "{told}");
        }
        // Whoever is followed before it goes takes no place that is not there.
        for rule in world.limits.classes.values_mut() {
            rule.order = Order::SuccessorFirst;
        }
        assert_eq!(world.starts(), ["n1"], "{class} {slots}");
    }
}

#[test]
fn only_who_is_asked_for_by_name_passes_the_minimum_lifetime() {
    let mut world = one(vec![]);
    world.node("n1").created_at = ago(minutes(5));
    world.rule().minimum_lifetime = minutes(60);
    for (cause, by_name, starts) in
        [(Cause::Drift, false, false), (Cause::Asked, false, false), (Cause::Asked, true, true)]
    {
        let wish = world.node("n1").wish.as_mut().unwrap();
        (wish.cause, wish.by_name) = (cause, by_name);
        assert_eq!(world.starts().len() == 1, starts, "{cause:?} {by_name}");
    }
}

#[test]
fn bare_pods_go_where_the_policy_says_so() {
    let mut world = one(vec![Pod { owner: Owner::Nobody, ..web("p") }]);
    assert!(world.starts().is_empty());
    world.rule().bare_pods = BarePods::Evict;
    assert_eq!(world.starts(), ["n1"]);
}

#[test]
fn the_reach_of_a_candidate_is_kept_but_not_for_the_way_back() {
    let mut world = World::of([
        ("n1", node("web", "a", vec![])),
        ("n2", node("web", "b", vec![])),
        ("n3", node("web", "c", vec![])),
    ])
    .at_once(3);
    for name in ["n1", "n2"] {
        world.node(name).wish.as_mut().unwrap().to_candidate = true;
    }
    world.reach.more.insert("web".to_owned(), More { nodes: 1, because: "wave 1".to_owned() });
    assert_eq!(world.starts(), ["n1", "n3"]);
}

#[test]
fn the_expected_duration_is_what_was_measured() {
    let mut world = World::of([
        ("n1", node("web", "a", vec![])),
        ("n2", node("web", "b", vec![])),
        ("n3", node("web", "c", vec![])),
    ]);
    assert_eq!(world.plan().expected, None, "nothing was measured");
    for (phase, length) in [
        (Phase::Launching, 1),
        (Phase::Joining, 2),
        (Phase::Settling, 1),
        (Phase::Draining, 5),
        (Phase::Terminating, 1),
    ] {
        world.fleet.pace.insert(phase, minutes(length));
    }
    let serial = world.plan().expected.unwrap();
    assert_eq!((serial.nodes, serial.at_once, serial.duration), (3, 1, minutes(30)));
    let two = world.clone().at_once(2).plan().expected.unwrap();
    assert_eq!((two.nodes, two.at_once, two.duration), (3, 2, minutes(20)));
    // Who waits for a person is not counted.
    world.node("n3").protection =
        Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None });
    assert_eq!(world.plan().expected.unwrap().nodes, 2);
    world.fleet.nodes.values_mut().for_each(|it| it.wish = None);
    assert_eq!(world.plan().expected, None);
}

/// Found by an attack: twelve minutes were expected of four nodes whose next batch had to wait for an hour.
#[test]
fn the_expected_duration_has_what_is_known_to_hold_them() {
    let daily = |allow: Vec<&str>| Windows {
        zone: zone("UTC").unwrap(),
        allow: Some(
            allow
                .into_iter()
                .map(|to| Window {
                    when: When::Days {
                        days: Days::ALL,
                        hours: Hours { from: "22:00".parse().unwrap(), to: to.parse().ok() },
                    },
                    dates: Dates::default(),
                    reason: None,
                })
                .collect(),
        ),
        forbid: Vec::new(),
    };
    let (short, never) = (daily(vec!["22:15"]), daily(vec![]));
    let batches = |world: &mut World, at_once: u32, batch: Option<u32>| {
        world.rule().concurrency = Some(Ok(Concurrency::Of(Amount::Count(at_once))));
        world.rule().batch_max = batch.map(|it| Ok(Amount::Count(it)));
        world.rule().cooldown = minutes(60);
    };
    let pool_budget = |cron: Option<&str>, count| {
        let schedule = cron.map(|it| Schedule {
            cron: it.parse().unwrap(),
            duration: SignedDuration::from_hours(8),
        });
        Ok(PoolBudget { nodes: Amount::Count(count), schedule, reasons: None })
    };
    // One takes ten minutes.
    let cases: Vec<(&str, Change<'_>, Option<Told>)> = vec![
        ("one slot", Box::new(|_| {}), Some((5, 1, 50))),
        ("two at once, then a rest", Box::new(|it| batches(it, 2, None)), Some((5, 2, 150))),
        (
            "a batch is more than goes at once",
            Box::new(|it| batches(it, 2, Some(3))),
            Some((5, 2, 90)),
        ),
        (
            "it rests now",
            Box::new(|it| {
                it.rule().cooldown = minutes(60);
                it.grants.closed.push(Closed {
                    node: "n0".to_owned(),
                    class: "web".to_owned(),
                    since: ago(minutes(20)),
                    ended_at: ago(minutes(10)),
                });
            }),
            Some((5, 1, 50 + 10 + 4 * 70)),
        ),
        (
            "a quarter of an hour a day, in ten hours",
            Box::new(|it| it.rule().windows = Some(Ok(short.clone()))),
            Some((5, 1, 10 * 60 + 2 * 24 * 60 + 10)),
        ),
        ("no window", Box::new(|it| it.rule().windows = Some(Ok(never.clone()))), None),
        (
            "the pool lets none go in working hours, and two later",
            Box::new(|it| {
                let budgets = vec![pool_budget(Some("0 9 * * *"), 0), pool_budget(None, 2)];
                it.limits.pools.insert("web".to_owned(), budgets);
                batches(it, 5, None);
                it.rule().cooldown = SignedDuration::ZERO;
            }),
            Some((5, 2, 5 * 60 + 30)),
        ),
        (
            "pods of one budget, which lets one go",
            Box::new(|it| {
                it.fleet.pdbs = vec![pdb("shop", "web", "web", 1)].into();
                for (name, node) in &mut it.fleet.nodes {
                    node.pods = vec![Arc::new(web(&format!("{name}-p")))];
                }
                batches(it, 5, None);
                it.rule().cooldown = SignedDuration::ZERO;
            }),
            Some((5, 1, 50)),
        ),
        (
            "who is away itself",
            Box::new(|it| {
                it.node("n1").member.standing = Standing::Unavailable(Unavailable::NotReady);
            }),
            Some((5, 1, 50)),
        ),
        (
            "who has the slot for no replacement may keep it",
            Box::new(|it| {
                let mut broken = node("web", "a", vec![]);
                broken.wish = None;
                broken.member.standing = Standing::Unavailable(Unavailable::NotReady);
                it.fleet.nodes.insert("n0".to_owned(), broken);
            }),
            None,
        ),
        (
            "many",
            Box::new(|it| {
                for number in 6..=1000 {
                    let name = format!("n{number}");
                    it.placements.of.insert(name.clone(), spare());
                    it.fleet.nodes.insert(name, node("web", "a", vec![]));
                }
            }),
            Some((1000, 1, 10_000)),
        ),
    ];
    for (what, change, expected) in cases {
        let all = ["n1", "n2", "n3", "n4", "n5"].map(|it| (it, node("web", "a", vec![])));
        let mut world = World::of(all);
        for phase in
            [Phase::Launching, Phase::Joining, Phase::Settling, Phase::Draining, Phase::Terminating]
        {
            world.fleet.pace.insert(phase, minutes(2));
        }
        change(&mut world);
        let found = world.plan().expected.map(|it| (it.nodes, it.at_once, it.duration));
        let expected = expected.map(|(nodes, at_once, it)| (nodes, at_once, minutes(it)));
        assert_eq!(found, expected, "{what}");
    }
}

/// Found by an attack: four minutes were expected while everything was paused.
#[test]
fn whoever_is_stuck_has_no_duration_nor_has_whoever_counts_on_it() {
    let mut world = World::of(["n1", "n2", "n3"].map(|it| (it, node("web", "a", vec![]))));
    for phase in
        [Phase::Launching, Phase::Joining, Phase::Settling, Phase::Draining, Phase::Terminating]
    {
        world.fleet.pace.insert(phase, minutes(2));
    }
    world.node("n1").under_way = Some(UnderWay { phase: Phase::Draining, since: ago(minutes(3)) });
    let grant = Grant { kind: GrantKind::Replacement, since: ago(minutes(9)) };
    world.grants.open.insert("n1".to_owned(), grant);
    let told = |world: &World, stuck: &[&str]| {
        let plan = world.plan();
        let members = world.fleet.members();
        let rooms = measure(members, &world.limits, &world.grants, Act::Replace, now());
        let stuck: BTreeSet<String> = stuck.iter().map(|it| (*it).to_owned()).collect();
        let found = expected(&world.fleet, &plan, &rooms, &world.limits, &stuck, now());
        found.map(|it| (it.nodes, it.at_once, it.duration))
    };
    assert_eq!(told(&world, &[]), Some((3, 1, minutes(30))));
    assert_eq!(told(&world, &["n1"]), None, "it has the slot that the others wait for");
    let two = world.at_once(2);
    assert_eq!(told(&two, &[]), Some((3, 2, minutes(20))));
    assert_eq!(told(&two, &["n1"]), Some((2, 1, minutes(20))), "the other slot is free");
}

// ---- laws ----

fn some_node() -> impl Strategy<Value = Node> {
    let pods = prop::collection::vec((0..30_usize, 0..3_usize, any::<bool>(), 0..9_usize), 0..4);
    (select(vec!["web", "db"]), select(vec!["a", "b"]), pods, 0..12_usize, 0..3_i64, 0..6_usize)
        .prop_map(|(pool, zone, pods, state, since, wish)| {
            let pods = pods
                .into_iter()
                .map(|(name, app, ready, odd)| {
                    let mut it = pod("shop", &format!("p{name}"), ["web", "db", "dns"][app]);
                    it.ready = ready;
                    match odd {
                        0 => it.owner = Owner::Nobody,
                        1 => it.owner = Owner::DaemonSet,
                        2 => {
                            it.protection = Some(Protection {
                                annotation: DO_NOT_DISRUPT,
                                until: None,
                                unread: None,
                            });
                        }
                        _ => {}
                    }
                    it
                })
                .collect();
            let mut it = node(pool, zone, pods);
            let wished = it.wish.as_mut().unwrap();
            wished.since = ago(minutes(since * 10));
            match state {
                0 => it.member.standing = Standing::Unavailable(Unavailable::NotReady),
                1 => it.under_way = Some(UnderWay { phase: Phase::Draining, since: now() }),
                2 => it.has_deadline = true,
                3 => {
                    it.next_try = Some(NextTry {
                        at: ago(minutes(-9)),
                        failed_at: now(),
                        because: Because::NoLongerWanted,
                    });
                }
                4 => it.member.standing = Standing::Outside,
                _ => {}
            }
            match wish {
                0 => it.wish = None,
                1 => it.wish.as_mut().unwrap().cause = Cause::Asked,
                2 => it.wish.as_mut().unwrap().no_image = Some(NoImage::because("none")),
                _ => {}
            }
            it
        })
}

fn some_world() -> impl Strategy<Value = World> {
    let placements = prop::collection::vec(0..5_usize, 12);
    (
        prop::collection::vec(some_node(), 0..12),
        placements,
        prop::option::of(0..5_u32),
        prop::collection::vec((0..3_usize, -1..3_i32), 0..3),
        0..12_usize,
    )
        .prop_map(|(nodes, placements, concurrency, pdbs, state)| {
            let mut world = World::default();
            for (at, (it, placement)) in nodes.into_iter().zip(placements).enumerate() {
                let name = format!("n{at:02}");
                let placement = match placement {
                    0 => Some(spare()),
                    1 => Some(successors(1)),
                    2 => None,
                    3 => Some(unmodelled()),
                    _ => Some(unplaced(None)),
                };
                if it.under_way.is_some() {
                    let grant = Grant { kind: GrantKind::Replacement, since: now() };
                    world.grants.open.insert(name.clone(), grant);
                }
                world.placements.of.extend(placement.map(|it| (name.clone(), it)));
                world.fleet.nodes.insert(name, it);
            }
            if let Some(count) = concurrency {
                world = world.at_once(count);
            }
            world.fleet.pdbs = pdbs
                .into_iter()
                .enumerate()
                .map(|(at, (app, allowed))| {
                    pdb("shop", &format!("pdb{at}"), ["web", "db", "dns"][app], allowed)
                })
                .collect::<Vec<_>>()
                .into();
            match state {
                0 => world.grants.paused = Some("x".to_owned()),
                1 => world.grants.locked = Some("x".to_owned()),
                2 => {
                    let homeless = Homeless { pod: web("q").id, since: now() };
                    world.fleet.homeless.insert("web".to_owned(), homeless);
                }
                _ => {}
            }
            world
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Law 1: every node that should go starts, waits for something named, or is under way; nobody else
    /// is mentioned.
    #[test]
    fn every_node_is_accounted_for(world in some_world()) {
        let plan = world.plan();
        let mut all: Vec<&String> = plan.start.iter().map(|it| &it.node)
            .chain(plan.waiting.keys()).chain(&plan.under_way).collect();
        all.sort();
        let wished: Vec<&String> = world.fleet.nodes.iter()
            .filter(|(_, it)| it.wish.is_some()).map(|(name, _)| name).collect();
        prop_assert_eq!(all, wished);
        for waiting in plan.waiting.values() {
            for reason in waiting.all() {
                prop_assert!(!reason.to_string().is_empty() && !reason.reason().is_empty());
            }
        }
    }

    /// Whoever keeps where pods are, through whatever came and went, gets the plan of whoever does not.
    #[test]
    fn where_pods_are_kept_decides_nothing(world in some_world(), gone in some_world()) {
        let mut spread = Spread::default();
        for (name, it) in &gone.fleet.nodes {
            spread.join(name, &it.pods);
        }
        let mut emptied = spread.clone();
        for name in gone.fleet.nodes.keys() {
            emptied.leave(name);
        }
        prop_assert_eq!(&emptied, &Spread::default());
        // Whoever comes gets the numbers of who has gone, while others of those are still there.
        let late = gone.fleet.nodes.keys().count() / 2;
        for name in gone.fleet.nodes.keys().skip(late) {
            spread.leave(name);
        }
        spread.select(&gone.fleet.pdbs);
        for (name, it) in &world.fleet.nodes {
            spread.join(name, &it.pods);
        }
        for name in gone.fleet.nodes.keys().take(late) {
            if !world.fleet.nodes.contains_key(name) {
                spread.leave(name);
            }
        }
        let mut keeper = world.clone();
        keeper.fleet.spread = Some(spread);
        prop_assert_eq!(keeper.plan(), world.plan());
        // By other budgets than it was told of, and by its own.
        if let Some(spread) = &mut keeper.fleet.spread {
            spread.select(&keeper.fleet.pdbs);
        }
        prop_assert_eq!(keeper.plan(), world.plan());
        prop_assert_eq!(keeper.plan(), world.plan());
    }

    /// Laws 3, 4, 5 and 6 as far as a plan goes: deciding twice decides the same; a halted world starts
    /// nobody; nobody starts without an image or a place; slots are kept.
    #[test]
    fn a_plan_keeps_the_laws(world in some_world()) {
        let plan = world.plan();
        prop_assert_eq!(&plan, &world.plan());
        if world.grants.paused.is_some() || world.grants.locked.is_some() {
            prop_assert!(plan.start.is_empty() && plan.consider.is_empty());
        }
        let own = world.limits.classes.contains_key("web");
        let mut slots: BTreeMap<bool, BTreeSet<&String>> = BTreeMap::new();
        for (name, it) in &world.fleet.nodes {
            let away = matches!(it.member.standing, Standing::Unavailable(_)) || it.under_way.is_some();
            if away {
                slots.entry(own && it.member.class.as_deref() == Some("web")).or_default().insert(name);
            }
        }
        for start in &plan.start {
            let it = &world.fleet.nodes[&start.node];
            prop_assert!(it.wish.as_ref().unwrap().no_image.is_none());
            let placed = matches!(
                world.placements.of.get(&start.node),
                Some(
                    Placement::Spare { .. }
                        | Placement::Successors { .. }
                        | Placement::Unmodelled { .. }
                )
            );
            prop_assert!(placed);
            prop_assert!(it.pods.iter().all(|pod| pod.owner != Owner::Nobody));
            let mine = own && it.member.class.as_deref() == Some("web");
            let used = slots.entry(mine).or_default();
            let others = used.iter().filter(|name| ***name != start.node).count();
            let allowed = match &world.limits.classes.get("web").and_then(|it| it.concurrency.clone()) {
                Some(Ok(Concurrency::Of(Amount::Count(count)))) if mine => *count as usize,
                _ => 1,
            };
            prop_assert!(others < allowed, "{}: {others} of {allowed}", start.node);
            used.insert(&start.node);
        }
    }

    /// A world in sync starts nobody and waits for nothing.
    #[test]
    fn a_world_in_sync_is_quiet(mut world in some_world()) {
        for it in world.fleet.nodes.values_mut() {
            (it.wish, it.under_way) = (None, None);
        }
        prop_assert_eq!(world.plan(), Plan::default());
    }

    /// One more node that waits changes nobody else's answer to start.
    #[test]
    fn waiting_takes_nothing(mut world in some_world()) {
        let before = world.starts();
        let mut late = Node { pods: vec![], ..node("web", "zz", vec![]) };
        late.protection = Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None });
        late.wish = Some(drifted());
        world.fleet.nodes.insert("a0".to_owned(), late);
        prop_assert_eq!(before, world.starts());
    }
}

/// Issue 7: of a pod that was moved, "no free address" was told in the place of a limit or an image that it lacked as well.
#[test]
fn full_subnets_hide_no_limit_and_no_image() {
    let dry = |everywhere| {
        let subnets = vec![("subnet-1".to_owned(), "a".to_owned())];
        Dry { class: "general".to_owned(), subnets, everywhere }
    };
    let (pool, resource) = ("web".to_owned(), "cpu".to_owned());
    let limit =
        WaitFor::Limit { pod: None, pool: pool.clone(), resource, by: None, counted_by: None };
    let image = WaitFor::Image(NoImage::because("quarantined"));
    let room = WaitFor::Capacity { pool, until: None, because: "none".to_owned() };
    let (class, general) = (String::from, || "general".to_owned());
    let full = |everywhere| PoolState { dry: Some(dry(everywhere)), ..PoolState::default() };
    let unable = Unable { class: general(), because: class("no security group") };
    let unasked = Unasked {
        class: general(),
        calls: vec![class("ec2:DescribeSubnets")],
        because: class("throttled"),
        again_at: None,
    };
    let used_up = UsedUp { class: general(), reservations: vec![class("cr-1")] };
    // What holds all that the pool could launch, from what nobody knows to what is full.
    let all = [
        (full(true), WaitFor::Addresses(dry(true))),
        (
            PoolState { used_up: Some(used_up.clone()), ..PoolState::default() },
            WaitFor::Reservation(used_up.clone()),
        ),
        (
            PoolState { unable: Some(unable.clone()), used_up: Some(used_up), ..full(true) },
            WaitFor::Class(unable.clone()),
        ),
        (
            PoolState { unasked: Some(unasked.clone()), unable: Some(unable), ..full(true) },
            WaitFor::Answer(unasked),
        ),
    ];
    for (lacks, stays) in [(limit, true), (image, true), (room, false)] {
        for (state, first) in all.clone() {
            let both = if stays { vec![first, lacks.clone()] } else { vec![first] };
            assert_eq!(in_the_way(lacks.clone(), Some(&state), None), both);
        }
        // Elsewhere there is one, and a pod without a node is bound to no zone.
        assert_eq!(in_the_way(lacks.clone(), Some(&full(false)), None), vec![lacks.clone()]);
        assert_eq!(in_the_way(lacks.clone(), None, None), vec![lacks]);
    }
}
