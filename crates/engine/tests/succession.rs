//! What takes over from a node that has to be followed by one of its kind?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use nodemolt_core::budget::ClassRule;
use nodemolt_core::drain::{DO_NOT_DISRUPT, Protection};
use nodemolt_core::plan::WaitFor;
use nodemolt_core::policy::Rule;
use nodemolt_core::replace::Order;
use nodemolt_core::seen::{PolicySeen, Pool};
use nodemolt_engine::port::NewClaim;
use nodemolt_engine::{Errand, Turn};
use nodemolt_fit::pod::Demand;
use nodemolt_fit::pool::NODES;
use nodemolt_fit::taint::{Effect, Taint};
use nodemolt_fit::{Operator, Quantity, Written, label};
use support::{NEW_IMAGE, OLD_IMAGE, OTHER_TYPE, POOL, TYPE, World, ZONE};

const TEAM: &str = "company.com/team";

fn asks(key: &str, values: &[&str]) -> Written {
    let values = values.iter().map(|it| (*it).to_owned()).collect();
    Written { key: key.to_owned(), operator: Operator::In, values, min_values: None }
}

/// One node with one pod, on this image.
fn one(image: &str) -> World {
    let mut world = World::new(1, 1, &[image]);
    world.offered = vec![TYPE, OTHER_TYPE];
    world
}

/// Nobody can foresee what its pods ask.
fn unmodelled(world: &World) {
    let mut view = world.cluster.view.borrow_mut();
    let pods: Vec<_> = view.pods.on("node-00000").cloned().collect();
    for mut pod in pods {
        let what = vec!["a resource claim".to_owned()];
        pod.fit.demand = Arc::new(Demand { unmodelled: what, ..Demand::clone(&pod.fit.demand) });
        view.pods.insert(pod);
    }
}

fn change_pool(world: &World, change: impl FnOnce(&mut Pool)) {
    let mut view = world.cluster.view.borrow_mut();
    let pool = view.pools.get_mut(POOL).unwrap();
    change(pool);
    pool.fit.requirements.clone_from(&pool.requirements);
    pool.generation += 1;
}

fn made(turn: &Turn) -> Vec<NewClaim> {
    let made = turn.acts.iter().filter_map(|it| {
        if let Errand::MakeClaim { claim, .. } = &it.errand {
            Some(NewClaim::clone(claim))
        } else {
            None
        }
    });
    made.collect()
}

/// The claims that are made within a few turns, or what the node waits for.
fn outcome(world: &mut World) -> Result<Vec<NewClaim>, Box<WaitFor>> {
    for _ in 0..8 {
        let turn = world.turn();
        let claims = made(&turn);
        if !claims.is_empty() {
            return Ok(claims);
        }
        world.pass(1);
    }
    let turn = world.turn();
    Err(Box::new(turn.picture.plan.waiting["node-00000"].first.clone()))
}

fn values(claim: &NewClaim) -> BTreeMap<&str, String> {
    let all = claim.requirements.iter();
    all.map(|it| (label::normalise(&it.key), it.values.join(" "))).collect()
}

#[test]
fn one_of_its_kind_has_what_the_pool_asks_for_now() {
    for (requirement, kept_type, expected) in [
        (asks(TEAM, &["b", "a"]), true, (TEAM, "a b")),
        (asks(label::INSTANCE_TYPE, &[OTHER_TYPE]), false, (label::INSTANCE_TYPE, OTHER_TYPE)),
        (
            asks("beta.kubernetes.io/instance-type", &[OTHER_TYPE]),
            false,
            (label::INSTANCE_TYPE, OTHER_TYPE),
        ),
        (asks(label::SIZE, &["2xlarge"]), false, (label::SIZE, "2xlarge")),
        (asks(label::ZONE, &["eu-central-1b", ZONE]), true, (label::ZONE, ZONE)),
    ] {
        let mut world = one(OLD_IMAGE);
        unmodelled(&world);
        let size = requirement.key == label::SIZE;
        if size {
            let mut view = world.cluster.view.borrow_mut();
            for claim in view.claims.values_mut() {
                claim.labels.insert(label::SIZE.to_owned(), "xlarge".to_owned());
            }
        }
        change_pool(&world, |it| it.requirements = vec![requirement.clone()]);
        let claims = outcome(&mut world).unwrap_or_else(|it| panic!("{requirement:?}: {it:?}"));
        let [claim] = claims.as_slice() else { panic!("{claims:?}") };
        let values = values(claim);
        assert_eq!(values.get(expected.0).map(String::as_str), Some(expected.1), "{values:?}");
        let own = values.get(label::INSTANCE_TYPE).is_some_and(|it| it == TYPE);
        assert_eq!(own, kept_type, "{values:?}");
        assert_eq!(values[label::ZONE], ZONE);
    }
}

/// What comes may not do for them any more: then nobody is cordoned, and the pod is named.
#[test]
fn nobody_goes_where_one_of_its_kind_would_not_do() {
    let tainted = |it: &mut Pool| {
        let (key, value) = ("dedicated".to_owned(), String::new());
        it.fit.taints = vec![Taint { key, value, effect: Effect::NoSchedule }];
    };
    let relabelled = |it: &mut Pool| {
        it.requirements = vec![asks(TEAM, &["b"])];
    };
    let changes: [&dyn Fn(&mut Pool); 2] = [&tainted, &relabelled];
    for (change, selects) in changes.into_iter().zip([false, true]) {
        let mut world = one(OLD_IMAGE);
        unmodelled(&world);
        if selects {
            let mut view = world.cluster.view.borrow_mut();
            let pods: Vec<_> = view.pods.on("node-00000").cloned().collect();
            for mut pod in pods {
                let mut demand = Demand::clone(&pod.fit.demand);
                demand.node_selector.insert(TEAM.to_owned(), "a".to_owned());
                pod.fit.demand = Arc::new(demand);
                view.pods.insert(pod);
            }
        }
        change_pool(&world, change);
        match outcome(&mut world) {
            Err(waits) => assert!(matches!(*waits, WaitFor::Place { .. }), "{waits:?}"),
            Ok(claims) => panic!("{claims:?}"),
        }
    }
}

/// Issue 7: what is launched now has not drifted when it comes.
#[test]
fn a_new_node_has_one_value_of_what_its_pool_lists() {
    let mut world = one(OLD_IMAGE);
    unmodelled(&world);
    let tenancy = asks(label::TENANCY, &["default", "dedicated"]);
    change_pool(&world, |it| it.requirements = vec![asks(TEAM, &["b", "a"]), tenancy]);
    let claims = outcome(&mut world).unwrap();
    assert_eq!(claims[0].labels[TEAM], "a");
    assert!(!claims[0].labels.contains_key(label::TENANCY), "EC2 decides it");
}

/// A pool that asks for other machines than its nodes are: they are replaced, whoever says that they should.
#[test]
fn nodes_of_a_kind_that_is_not_asked_for_any_more_are_replaced() {
    for expired in [false, true] {
        let mut world = one(NEW_IMAGE);
        world.settle();
        if expired {
            let mut view = world.cluster.view.borrow_mut();
            for claim in view.claims.values_mut() {
                claim.expire_after = Some(jiff::SignedDuration::from_hours(1));
            }
        }
        change_pool(&world, |it| it.requirements = vec![asks(label::INSTANCE_TYPE, &[OTHER_TYPE])]);
        let claims = outcome(&mut world).unwrap();
        assert_eq!(values(&claims[0])[label::INSTANCE_TYPE], OTHER_TYPE);
    }
}

/// A successor would be expired before it is there, and so would its own.
#[test]
fn who_would_be_followed_for_ever_does_not_expire() {
    let minutes = jiff::SignedDuration::from_mins;
    for (lives, goes) in [(minutes(0), false), (minutes(4), false), (minutes(5), true)] {
        let mut world = one(NEW_IMAGE);
        world.settle();
        for claim in world.cluster.view.borrow_mut().claims.values_mut() {
            claim.expire_after = Some(lives);
        }
        let turn = world.turn();
        assert_eq!(turn.picture.fleet.nodes.values().any(|it| it.wish.is_some()), goes, "{lives}");
        change_pool(&world, |it| it.template.expire_after = Some(lives));
        let warnings = world.turn().picture.warnings();
        let told = warnings.iter().any(|it| it.contains("counts as `Never`"));
        assert_eq!(told, !goes, "{lives}: {warnings:?}");
    }
}

#[test]
fn a_pool_that_is_kept_at_a_number_replaces_its_nodes_within_its_limits() {
    for (limit, follows) in [(None, true), (Some(2), true), (Some(1), false)] {
        let mut world = one(OLD_IMAGE);
        change_pool(&world, |it| {
            it.replicas = Some(1);
            let limit = limit.map(|it| (NODES.to_owned(), Quantity::from_units(it)));
            it.fit.limits = limit.into_iter().collect();
        });
        match outcome(&mut world) {
            Ok(claims) => {
                assert!(follows);
                assert_eq!(claims.len(), 1, "{claims:?}");
                assert_eq!(claims[0].pool, POOL);
            }
            Err(waits) => {
                assert!(!follows, "{waits:?}");
                let WaitFor::Limit { pool, resource, .. } = &*waits else { panic!("{waits:?}") };
                assert_eq!((pool.as_str(), resource.as_str()), (POOL, NODES));
            }
        }
    }
}

#[test]
fn who_would_go_first_and_be_followed_by_none_stays() {
    // There is a subnet in one zone only.
    for (zone, goes) in [(ZONE, true), ("eu-central-1b", false)] {
        let mut world = one(OLD_IMAGE);
        {
            let mut view = world.cluster.view.borrow_mut();
            let rollout = ClassRule { order: Order::DeleteFirst, ..ClassRule::of("first") };
            let rule = Rule::named("first");
            let policy = PolicySeen { rule, rollout: Some(rollout) };
            view.policies.insert("first".to_owned(), policy);
        }
        change_pool(&world, |it| it.requirements = vec![asks(label::ZONE, &[zone])]);
        for _ in 0..6 {
            world.turn();
            world.pass(1);
        }
        let begun = world.cluster.records.borrow().replacements.len();
        assert_eq!(begun == 1, goes, "{zone}");
    }
}

/// Issue 7: the old node went, and nothing that followed it was within the limits any more.
#[test]
fn who_would_go_first_stays_where_the_limits_have_no_room_for_one_in_its_place() {
    for (cpu, goes) in [(4, true), (3, false)] {
        let mut world = one(OLD_IMAGE);
        {
            let mut view = world.cluster.view.borrow_mut();
            let rollout = ClassRule { order: Order::DeleteFirst, ..ClassRule::of("first") };
            let policy = PolicySeen { rule: Rule::named("first"), rollout: Some(rollout) };
            view.policies.insert("first".to_owned(), policy);
            for claim in view.claims.values_mut() {
                claim.capacity.insert("cpu".to_owned(), Quantity::from_units(4));
            }
        }
        change_pool(&world, |it| {
            it.fit.limits.insert("cpu".to_owned(), Quantity::from_units(cpu));
        });
        let mut first = None;
        for _ in 0..6 {
            let turn = world.turn();
            first = turn.picture.plan.waiting.get("node-00000").map(|it| it.first.clone());
            world.pass(1);
        }
        let begun = world.cluster.records.borrow().replacements.len();
        assert_eq!(begun == 1, goes, "{cpu}");
        let (pool, resource) = (POOL.to_owned(), "cpu".to_owned());
        let limit = WaitFor::Limit { pod: None, pool, resource, by: None, counted_by: None };
        assert_eq!(first == Some(limit), !goes, "{first:?}");
    }
}

#[test]
fn of_two_protections_the_longer_one_holds() {
    let at = support::start();
    let ended = Protection {
        annotation: DO_NOT_DISRUPT,
        until: Some(at - jiff::SignedDuration::from_hours(1)),
        unread: None,
    };
    let for_ever = Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None };
    for (of_node, of_claim, by_claim) in
        [(&ended, &for_ever, true), (&for_ever, &ended, false), (&for_ever, &for_ever, false)]
    {
        let mut world = one(OLD_IMAGE);
        {
            let mut view = world.cluster.view.borrow_mut();
            view.nodes.get_mut("node-00000").unwrap().protection = Some(of_node.clone());
            let claim = view.claims.get_mut("claim-node-00000").unwrap();
            claim.protection = Some(of_claim.clone());
        }
        let waits = outcome(&mut world).unwrap_err();
        let WaitFor::ProtectedNode { claim, .. } = &*waits else { panic!("{waits:?}") };
        assert_eq!(claim.is_some(), by_claim);
    }
}
