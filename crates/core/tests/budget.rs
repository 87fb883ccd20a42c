//! How many at once, and when?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

#[path = "support/fleet.rs"]
mod fleet;

use std::collections::{BTreeMap, BTreeSet};

use fleet::{ago, at, labels, member, minutes, now};
use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{
    Act, Amount, BudgetId, ClassRule, Closed, Concurrency, Condition, DisruptionBudget, Grant,
    GrantKind, Grants, Keep, Limits, Measured, Member, PoolBudget, Reason, Schedule, Standing,
    Unavailable, Unit, Unreadable, Windows, measure,
};
use proptest::prelude::*;

type Members = BTreeMap<String, Member>;

fn nodes(count: usize, pool: &str) -> Members {
    (0..count).map(|it| (format!("{pool}-{it:04}"), member(pool))).collect()
}

fn measured(members: &Members, limits: &Limits, grants: &Grants, act: Act) -> Measured {
    measure(members.iter().map(|(name, it)| (name.as_str(), it)), limits, grants, act, now())
}

/// Grants one after the other until no room is left; says who got one.
fn granted(members: &Members, limits: &Limits, grants: &Grants, act: Act) -> Vec<String> {
    let mut rooms = measured(members, limits, grants, act);
    let mut all = Vec::new();
    for (name, member) in members {
        if rooms.shortages(name, member, false).is_empty() && !grants.open.contains_key(name) {
            rooms.take(name, member, now());
            all.push(name.clone());
        }
    }
    all
}

fn count(members: &Members, limits: &Limits) -> usize {
    granted(members, limits, &Grants::default(), Act::Replace).len()
}

fn disruption(name: &str, selectors: &[&str], keep: &str) -> DisruptionBudget {
    let (what, amount) = keep.split_once(' ').unwrap();
    let keep = match (what, amount.parse::<Amount>()) {
        ("min", Ok(amount)) => Ok(Keep::MinAvailable(amount)),
        ("max", Ok(amount)) => Ok(Keep::MaxUnavailable(amount)),
        (_, error) => Err(Unreadable(format!("{error:?}"))),
    };
    DisruptionBudget {
        name: name.to_owned(),
        selectors: selectors.iter().map(|it| labels(it)).collect(),
        keep,
        gates_controller: true,
        gates_people: false,
    }
}

fn only(budgets: Vec<DisruptionBudget>) -> Limits {
    Limits { disruption_budgets: budgets, ..Limits::default() }
}

fn class(rule: ClassRule) -> Limits {
    Limits { classes: BTreeMap::from([("web".to_owned(), rule)]), ..Limits::default() }
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a rule holds")]
fn concurrency(text: &str) -> Option<Result<Concurrency, Unreadable>> {
    Some(match text {
        "Parallel" => Ok(Concurrency::Parallel),
        _ => text.parse().map(Concurrency::Of).map_err(|_| Unreadable(text.to_owned())),
    })
}

fn pool_budget(nodes: &str, schedule: &str, reasons: &[Reason]) -> Result<PoolBudget, Unreadable> {
    let schedule = schedule.split_once('|').map(|(cron, duration)| {
        let cron = cron.parse().map_err(|_| Unreadable(cron.to_owned()))?;
        Ok(Schedule { cron, duration: duration.parse().unwrap() })
    });
    Ok(PoolBudget {
        nodes: nodes.parse().map_err(|_| Unreadable(nodes.to_owned()))?,
        schedule: schedule.transpose()?,
        reasons: Some(reasons.iter().copied().collect::<BTreeSet<_>>()).filter(|it| !it.is_empty()),
    })
}

fn granted_to(names: &[&str], since: Timestamp) -> Grants {
    let grant = Grant { kind: GrantKind::Replacement, since };
    let open = names.iter().map(|it| ((*it).to_owned(), grant.clone())).collect();
    Grants { open, ..Grants::default() }
}

/// Decision 0038: it is broken for reasons of its own, and nobody of us moves it.
#[test]
fn a_node_of_nobody_is_counted_only_where_a_budget_selects_it() {
    let mut members = nodes(3, "web");
    let standing = Standing::Unavailable(Unavailable::Cordoned);
    let of = |pool: Option<&str>, class: Option<&str>| Member {
        pool: pool.map(str::to_owned),
        class: class.map(str::to_owned),
        standing: standing.clone(),
        ..member("web")
    };
    for (pool, class, expected) in [
        (None, None, 1),
        (Some("web"), None, 0),
        (None, Some("web"), 0),
        (Some("web"), Some("web"), 0),
    ] {
        members.insert("stranger".to_owned(), of(pool, class));
        let ours = |limits: &Limits| {
            let all = granted(&members, limits, &Grants::default(), Act::Replace);
            all.iter().filter(|it| *it != "stranger").count()
        };
        assert_eq!(ours(&Limits::default()), expected, "{pool:?} {class:?}");
        // Its labels are those of the others.
        let selects = only(vec![disruption("a", &["karpenter.sh/provisioner-name=web"], "max 1")]);
        assert_eq!(ours(&selects), 0, "{pool:?} {class:?}");
    }
}

#[test]
fn the_figures_of_the_seed() {
    let old_label = "karpenter.sh/provisioner-name=web";
    let policy = |concurrency| ClassRule { concurrency, ..ClassRule::of("all") };
    for (what, of, limits, expected) in [
        ("serial", 10, Limits::default(), 1),
        (
            "serial equals maxUnavailable 1",
            10,
            only(vec![disruption("a", &[old_label], "max 1")]),
            1,
        ),
        ("all but 70 % of 10", 10, only(vec![disruption("a", &[old_label], "min 70%")]), 3),
        ("maxUnavailable 2 of 4", 4, only(vec![disruption("a", &[old_label], "max 2")]), 2),
        ("5 % of 1,000", 1000, class(policy(concurrency("Parallel"))), 50),
        ("5 % of 20", 20, class(policy(concurrency("Parallel"))), 1),
        ("5 % of fewer", 3, class(policy(concurrency("Parallel"))), 1),
        ("5 % of 1,000 as a budget", 1000, only(vec![disruption("a", &[old_label], "max 5%")]), 50),
        ("minAvailable 10 % of 10", 10, only(vec![disruption("a", &[old_label], "min 10%")]), 9),
        ("minAvailable may give none", 10, only(vec![disruption("a", &[old_label], "min 95%")]), 0),
        ("maxUnavailable 30 of 10", 10, only(vec![disruption("a", &[old_label], "max 30")]), 10),
        ("zero is zero", 10, only(vec![disruption("a", &[old_label], "max 0%")]), 0),
        (
            "what cannot be read is zero",
            10,
            only(vec![disruption("a", &[old_label], "max ten")]),
            0,
        ),
    ] {
        assert_eq!(count(&nodes(of, "web"), &limits), expected, "{what}");
    }
}

/// Issue 7: whoever goes without a successor makes the fleet smaller, and what has to stay may be all of it.
#[test]
fn a_budget_counts_on_successors_before_it_would_let_nobody_go() {
    for (keep, of, counts, spares_one) in [
        ("min 70%", 10, false, true),
        ("min 70%", 5, true, true),
        ("min 70%", 6, false, true),
        ("min 70%", 4, true, false),
        ("min 7", 10, true, true),
        ("min 7", 8, true, false),
        ("min 7", 100, true, true),
        ("min 1", 2, true, false),
        ("min 0", 2, false, true),
        ("min 10%", 100, false, true),
        ("max 1", 2, false, true),
        ("max 0", 2, false, true),
        ("max 50%", 2, false, true),
        ("min ten", 10, false, true),
    ] {
        let selector = "karpenter.sh/nodepool=web";
        let limits = only(vec![disruption("a", &[selector], keep)]);
        let rooms = measured(&nodes(of, "web"), &limits, &Grants::default(), Act::Replace);
        let [room] = rooms.rooms() else { panic!("{:?}", rooms.rooms()) };
        let said = (room.counts_heirs(), room.spares_one());
        assert_eq!(said, (counts, spares_one), "{keep} of {of}");
    }
}

/// Seed 3's unequal nodes, m5.large to m5.16xlarge, with one processor of overhead each: a budget by
/// count may move 94 % of the work at once, one by processors may not.
#[test]
fn unequal_nodes_under_a_count_and_under_a_share_of_processors() {
    let mut members = nodes(4, "web");
    for (member, cpu) in members.values_mut().zip([63_000, 31_000, 7_000, 1_000]) {
        member.cpu_millis = cpu;
    }
    let by = |unit, figure: &str| {
        class(ClassRule { unit, concurrency: concurrency(figure), ..ClassRule::of("all") })
    };
    let share = |limits: &Limits| {
        let moved = granted(&members, limits, &Grants::default(), Act::Replace);
        let cpu: u64 = moved.iter().map(|it| members[it].cpu_millis).sum();
        (moved.len(), cpu * 100 / 102_000)
    };
    assert_eq!(share(&by(Unit::Nodes, "2")), (2, 92));
    assert_eq!(share(&by(Unit::Nodes, "50%")), (2, 92));
    // The largest goes alone, though it is more than the share: else it would never go.
    assert_eq!(share(&by(Unit::Cpu, "10%")), (1, 61));
    assert_eq!(share(&by(Unit::Cpu, "70%")), (3, 69), "the largest and what still fits beside it");
    assert_eq!(share(&by(Unit::Cpu, "0%")), (0, 0));
    // A plain number is a number of processors, and nothing is rounded.
    assert_eq!(share(&by(Unit::Cpu, "8")), (2, 7));
}

#[test]
fn nodes_that_a_budget_selects_use_it_in_place_of_the_clusters_slot() {
    let mut members = nodes(10, "web");
    members.extend(nodes(10, "db"));
    let web = "karpenter.sh/nodepool=web";
    let some = |limits: &Limits, pool: &str| {
        let all = granted(&members, limits, &Grants::default(), Act::Replace);
        all.iter().filter(|it| it.starts_with(pool)).count()
    };
    let limits = only(vec![disruption("a", &[web], "max 3")]);
    assert_eq!((some(&limits, "web"), some(&limits, "db")), (3, 1));
    // All that select a node hold, whoever is tighter; a list of maps is their union.
    let both = only(vec![
        disruption("a", &[web, "karpenter.sh/nodepool=db"], "max 4"),
        disruption("b", &[web], "max 2"),
    ]);
    assert_eq!((some(&both, "web"), some(&both, "db")), (0, 4), "by name, db comes first");
    let apart = only(vec![
        disruption("a", &["karpenter.sh/nodepool=db"], "max 4"),
        disruption("b", &[web], "max 2"),
    ]);
    assert_eq!((some(&apart, "web"), some(&apart, "db")), (2, 4));
    // A class of its own, and a budget beside it: both hold.
    let rule = ClassRule { concurrency: concurrency("5"), ..ClassRule::of("all") };
    let own = Limits { disruption_budgets: Vec::new(), ..class(rule.clone()) };
    assert_eq!((some(&own, "web"), some(&own, "db")), (5, 1));
    let held = Limits { disruption_budgets: limits.disruption_budgets.clone(), ..class(rule) };
    assert_eq!(some(&held, "web"), 3);
    // An empty map selects everything, an empty list nothing.
    assert_eq!(count(&members, &only(vec![disruption("a", &[""], "max 7")])), 7);
    let nothing = only(vec![disruption("a", &[], "max 7")]);
    assert_eq!(count(&members, &nothing), 1);
    let rooms = measured(&members, &nothing, &Grants::default(), Act::Replace);
    let told: Vec<_> = rooms.rooms().iter().filter_map(|it| it.condition.clone()).collect();
    assert_eq!(told, [Condition::SelectsNothing]);
}

#[test]
fn a_pools_budgets_only_tighten() {
    let rule = ClassRule { concurrency: concurrency("6"), ..ClassRule::of("all") };
    let with = |budgets: &[Result<PoolBudget, Unreadable>]| Limits {
        pools: BTreeMap::from([("web".to_owned(), budgets.to_vec())]),
        ..class(rule.clone())
    };
    let day = "0 9 * * *|8h"; // It is noon.
    let night = "0 22 * * *|8h";
    for (what, budgets, expected) in [
        ("none at all", vec![], 6),
        ("10 % of 20", vec![pool_budget("10%", "", &[])], 2),
        ("never more than others allow", vec![pool_budget("100%", "", &[])], 6),
        ("the least of all", vec![pool_budget("5", "", &[]), pool_budget("3", "", &[])], 3),
        ("rounded down, and at least one", vec![pool_budget("1%", "", &[])], 1),
        ("zero", vec![pool_budget("0", "", &[])], 0),
        ("not its hours", vec![pool_budget("0", night, &[])], 6),
        ("its hours", vec![pool_budget("0", day, &[])], 0),
        ("another reason", vec![pool_budget("0", "", &[Reason::Empty])], 6),
        ("its reason", vec![pool_budget("2", "", &[Reason::Empty, Reason::Drifted])], 2),
        ("one that cannot be read", vec![pool_budget("5", "", &[]), pool_budget("x", "", &[])], 0),
        ("a schedule that cannot be read", vec![pool_budget("5", "@never|1h", &[])], 0),
        ("unreadable, though for another reason", vec![pool_budget("?", "", &[Reason::Empty])], 0),
    ] {
        assert_eq!(count(&nodes(20, "web"), &with(&budgets)), expected, "{what}");
    }
}

#[test]
fn emptiness_takes_no_slot_but_keeps_the_budgets() {
    let members = nodes(20, "web");
    let empties =
        |limits: &Limits| granted(&members, limits, &Grants::default(), Act::RemoveEmpty).len();
    assert_eq!(empties(&Limits::default()), 20);
    let rule = ClassRule { concurrency: concurrency("2"), ..ClassRule::of("all") };
    assert_eq!(empties(&class(rule)), 20, "a class's concurrency is for replacing");
    assert_eq!(empties(&only(vec![disruption("a", &[""], "min 90%")])), 2);
    let pools = |budget| BTreeMap::from([("web".to_owned(), vec![budget])]);
    let held = Limits { pools: pools(pool_budget("4", "", &[Reason::Empty])), ..Limits::default() };
    assert_eq!(empties(&held), 4);
    let other = Limits { pools: pools(pool_budget("4", "", &[Reason::Drifted])), ..held };
    assert_eq!(empties(&other), 20);
}

#[test]
fn whoever_is_unavailable_counts_but_not_against_its_own_replacement() {
    let mut members = nodes(4, "web");
    let break_it = |members: &mut Members, name: &str, why| {
        members.get_mut(name).unwrap().standing = Standing::Unavailable(why);
    };
    break_it(&mut members, "web-0002", Unavailable::NotReady);
    let serial = Limits::default();
    assert_eq!(granted(&members, &serial, &Grants::default(), Act::Replace), ["web-0002"]);
    let rooms = measured(&members, &serial, &Grants::default(), Act::Replace);
    let shortage = &rooms.shortages("web-0000", &members["web-0000"], false)[0];
    assert_eq!((shortage.used, shortage.allowed), (1, 1));
    assert_eq!(shortage.used_by[0].0, "web-0002");
    // One that is not in the cluster yet counts neither as there nor as missing.
    members.get_mut("web-0002").unwrap().standing = Standing::Outside;
    assert_eq!(granted(&members, &serial, &Grants::default(), Act::Replace), ["web-0000"]);
    // An open grant counts, once, whether its node is there or not.
    let grants = granted_to(&["web-0001"], ago(minutes(3)));
    assert!(granted(&members, &serial, &grants, Act::Replace).is_empty());
    break_it(&mut members, "web-0001", Unavailable::Cordoned);
    let two = only(vec![disruption("a", &[""], "max 2")]);
    assert_eq!(granted(&members, &two, &grants, Act::Replace).len(), 1);
}

/// Each successor that has come would let another node go, until all are in replacement.
#[test]
fn a_share_does_not_grow_with_its_own_surge() {
    let mut members = nodes(4, "web");
    for name in ["next-0", "next-1"] {
        let next = Member { surge: true, ..member("web") };
        members.insert(name.to_owned(), next);
    }
    let grants = granted_to(&["web-0000", "web-0001"], ago(minutes(3)));
    let half = ClassRule { concurrency: concurrency("50%"), ..ClassRule::of("all") };
    let of_pool = |amount: &str| Limits {
        pools: BTreeMap::from([("web".to_owned(), vec![pool_budget(amount, "", &[])])]),
        ..class(ClassRule { concurrency: concurrency("9"), ..ClassRule::of("all") })
    };
    for limits in [
        class(half.clone()),
        class(ClassRule { unit: Unit::Cpu, ..half }),
        only(vec![disruption("a", &[""], "max 50%")]),
        only(vec![disruption("a", &[""], "min 50%")]),
        only(vec![disruption("a", &[""], "min 2")]),
        of_pool("50%"),
    ] {
        let rooms = measured(&members, &limits, &grants, Act::Replace);
        let short = rooms.shortages("web-0002", &members["web-0002"], false);
        assert_eq!(short.len(), 1, "{limits:?}");
        assert_eq!(short[0].used, short[0].allowed, "{limits:?}");
        // One of the old ones has gone: its successor stands for it, and so there is room for one.
        let mut later = members.clone();
        later.remove("web-0000");
        later.get_mut("next-0").unwrap().surge = false;
        let grants = granted_to(&["web-0001"], ago(minutes(3)));
        assert_eq!(granted(&later, &limits, &grants, Act::Replace).len(), 1, "{limits:?}");
    }
    // Who does not work counts, whoever it is.
    members.get_mut("next-0").unwrap().standing = Standing::Unavailable(Unavailable::NotReady);
    let limits = only(vec![disruption("a", &[""], "max 3")]);
    let rooms = measured(&members, &limits, &grants, Act::Replace);
    assert_eq!(rooms.shortages("web-0002", &members["web-0002"], false).len(), 1);
}

#[test]
fn what_the_candidate_broke_does_not_hold_the_way_back() {
    let mut members = nodes(5, "web");
    for name in ["web-0001", "web-0002", "web-0003"] {
        members.get_mut(name).unwrap().standing =
            Standing::Unavailable(Unavailable::BrokenByCandidate);
    }
    let rooms = measured(&members, &Limits::default(), &Grants::default(), Act::Replace);
    let free = |name: &str, back| rooms.shortages(name, &members[name], back).is_empty();
    assert!(free("web-0001", true), "it runs the candidate, and goes back");
    assert!(free("web-0000", true));
    assert!(!free("web-0000", false), "for everything else they are broken nodes");
    // What was granted still counts.
    let grants = granted_to(&["web-0002"], ago(minutes(3)));
    let rooms = measured(&members, &Limits::default(), &grants, Act::Replace);
    assert!(!rooms.shortages("web-0001", &members["web-0001"], true).is_empty());
}

#[test]
fn people_are_gated_only_by_budgets_that_say_so() {
    let mut members = nodes(3, "web");
    members.get_mut("web-0000").unwrap().standing = Standing::Unavailable(Unavailable::Deleting);
    let mut limits = only(vec![disruption("a", &[""], "max 1"), disruption("b", &[""], "max 1")]);
    limits.disruption_budgets[1].gates_people = true;
    // Two that are deleted, and neither has begun to go: they do not wait for each other.
    let rooms = measured(&members, &limits, &Grants::default(), Act::Replace);
    assert!(rooms.shortages_for_people("web-0001", &members["web-0001"]).is_empty());
    let grants = granted_to(&["web-0000"], ago(minutes(3)));
    let rooms = measured(&members, &limits, &grants, Act::Replace);
    assert_eq!(rooms.shortages_for_people("web-0001", &members["web-0001"]).len(), 1);
    members.get_mut("web-0000").unwrap().standing = Standing::Unavailable(Unavailable::Cordoned);
    let rooms = measured(&members, &limits, &Grants::default(), Act::Replace);
    let people = rooms.shortages_for_people("web-0001", &members["web-0001"]);
    assert_eq!(people.len(), 1);
    assert_eq!(people[0].id.to_string(), "NodeDisruptionBudget `b`");
    assert_eq!(rooms.shortages("web-0001", &members["web-0001"], false).len(), 2);
    // One that nobody counts on yet is missing to nobody.
    members.get_mut("web-0002").unwrap().standing = Standing::Outside;
    let rooms = measured(&members, &limits, &Grants::default(), Act::Replace);
    assert!(rooms.shortages_for_people("web-0002", &members["web-0002"]).is_empty());
    assert_eq!(rooms.shortages_for_people("web-0001", &members["web-0001"]).len(), 1);
    members.get_mut("web-0002").unwrap().standing = Standing::Available;
    // A budget for people alone holds nobody else, and leaves the node to what holds it without one.
    limits.disruption_budgets[1].gates_controller = false;
    limits.disruption_budgets.remove(0);
    let rooms = measured(&members, &limits, &Grants::default(), Act::Replace);
    assert_eq!(rooms.shortages_for_people("web-0001", &members["web-0001"]).len(), 1);
    let ours = rooms.shortages("web-0001", &members["web-0001"], false);
    assert_eq!(ours.iter().map(|it| &it.id).collect::<Vec<_>>(), [&BudgetId::Serial]);
}

/// A node that went first is gone with its labels; the budgets that it takes a place in are known by name.
#[test]
fn one_that_is_gone_counts_where_it_was_granted() {
    let mut members = nodes(3, "web");
    let mut gone = Member { standing: Standing::Outside, ..member("web") };
    gone.labels.clear();
    members.insert("gone".to_owned(), gone);
    let limits = only(vec![disruption("a", &["karpenter.sh/nodepool=web"], "max 1")]);
    let grants = granted_to(&["gone"], ago(minutes(3)));
    for (taken_from, free) in [(None, true), (Some("a".to_owned()), false)] {
        members.get_mut("gone").unwrap().taken_from = taken_from.into_iter().collect();
        let rooms = measured(&members, &limits, &grants, Act::Replace);
        assert_eq!(rooms.shortages("web-0001", &members["web-0001"], false).is_empty(), free);
    }
}

#[test]
fn after_a_batch_comes_a_cooldown() {
    let members = nodes(20, "web");
    let rule = |batch: &str, figure: &str| ClassRule {
        concurrency: concurrency(figure),
        batch_max: (!batch.is_empty())
            .then(|| batch.parse().map_err(|_| Unreadable(String::new()))),
        cooldown: minutes(10),
        ..ClassRule::of("all")
    };
    let closed = |node: &str, began: i64, ended: i64| Closed {
        node: node.to_owned(),
        class: "web".to_owned(),
        since: ago(minutes(began)),
        ended_at: ago(minutes(ended)),
    };
    for (what, batch, figure, open, past, expected) in [
        ("a fresh batch", "3", "10", vec![], vec![], 3),
        ("the rest of a batch", "3", "10", vec![], vec![closed("a", 9, 5)], 2),
        ("the rest of one that goes on", "3", "10", vec!["web-0000"], vec![closed("a", 9, 5)], 1),
        ("no more before all have ended", "2", "10", vec!["web-0000"], vec![closed("a", 9, 5)], 0),
        ("nor before they have rested", "1", "10", vec![], vec![closed("a", 19, 9)], 0),
        ("rested", "1", "10", vec![], vec![closed("a", 19, 10)], 1),
        (
            "an earlier batch is over",
            "2",
            "10",
            vec![],
            vec![closed("a", 60, 50), closed("b", 20, 5)],
            1,
        ),
        (
            "without a batch: what goes at once",
            "",
            "2",
            vec![],
            vec![closed("a", 9, 5), closed("b", 9, 4)],
            0,
        ),
        ("parallel without figures", "", "Parallel", vec![], vec![closed("a", 9, 5)], 0),
    ] {
        let limits = class(rule(batch, figure));
        let mut grants = granted_to(&open, ago(minutes(8)));
        grants.closed = past;
        assert_eq!(granted(&members, &limits, &grants, Act::Replace).len(), expected, "{what}");
    }
    // Whoever is broken is no exception: that it does not count against itself gives it no place in a batch.
    let mut broken = members.clone();
    broken.get_mut("web-0005").unwrap().standing = Standing::Unavailable(Unavailable::NotReady);
    let mut grants = granted_to(&["web-0000"], ago(minutes(8)));
    grants.closed = vec![closed("a", 9, 5)];
    let full = class(rule("2", "10"));
    assert_eq!(granted(&broken, &full, &grants, Act::Replace), Vec::<String>::new());
    let limits = class(rule("1", "10"));
    let grants = Grants { closed: vec![closed("a", 19, 9)], ..Grants::default() };
    let rooms = measured(&members, &limits, &grants, Act::Replace);
    let shortage = &rooms.shortages("web-0000", &members["web-0000"], false)[0];
    assert!(shortage.resting);
    assert_eq!(shortage.opens_at, Some(ago(minutes(-1))));
    // A class that says no number has the cluster's one slot, and its cooldown all the same.
    let serial = class(ClassRule { concurrency: None, ..rule("", "1") });
    assert_eq!(granted(&members, &serial, &Grants::default(), Act::Replace).len(), 1);
    assert_eq!(granted(&members, &serial, &grants, Act::Replace).len(), 0);
}

#[test]
fn a_room_says_when_it_opens() {
    let members = nodes(20, "web");
    // It is noon. Issue 7: where one that has not begun yet goes on, the end of the first was told.
    for (schedules, expected) in [
        (&["0 9 * * *|8h", "0 10 * * *|9h"][..], Some("2026-08-03T19:00:00Z")),
        (&["0 9 * * *|8h", "0 16 * * *|4h"], Some("2026-08-03T20:00:00Z")),
        (&["0 9 * * *|8h", "0 17 * * *|4h"], Some("2026-08-03T21:00:00Z")),
        (&["0 9 * * *|8h", "1 17 * * *|4h"], Some("2026-08-03T17:00:00Z")),
        (&["0 9 * * *|8h", "0 16 * * *|4h", "0 19 * * *|3h"], Some("2026-08-03T22:00:00Z")),
        (&["0 9 * * *|12h", "0 21 * * *|12h"], None),
    ] {
        let budgets = schedules.iter().map(|it| pool_budget("0", it, &[])).collect();
        let limits =
            Limits { pools: BTreeMap::from([("web".to_owned(), budgets)]), ..Limits::default() };
        let rooms = measured(&members, &limits, &Grants::default(), Act::Replace);
        let shortages = rooms.shortages("web-0000", &members["web-0000"], false);
        assert_eq!(shortages[0].opens_at, expected.map(at), "{schedules:?}");
    }
    let unreadable = ClassRule {
        windows: Some(Err(Unreadable("no such zone".to_owned()))),
        ..ClassRule::of("all")
    };
    assert!(matches!(
        unreadable.opening(now()),
        nodemolt_core::budget::Opening::Closed { opens_at: None, because: Some(_) }
    ));
    let open = Windows {
        zone: nodemolt_core::budget::zone("UTC").unwrap(),
        allow: None,
        forbid: Vec::new(),
    };
    let rule = ClassRule { windows: Some(Ok(open)), ..ClassRule::of("all") };
    assert!(matches!(rule.opening(now()), nodemolt_core::budget::Opening::Open { until: None }));
}

// ---- laws ----

prop_compose! {
    fn some_member()(
        pool in 0..3_usize,
        cpu in 0..64_u64,
        standing in 0..6_usize,
    ) -> Member {
        let standing = match standing {
            0 => Standing::Outside,
            1 => Standing::Unavailable(Unavailable::NotReady),
            2 => Standing::Unavailable(Unavailable::Cordoned),
            _ => Standing::Available,
        };
        let pool = ["web", "db", "gpu"][pool];
        Member { cpu_millis: cpu * 1000, standing, ..member(pool) }
    }
}

fn some_amount() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..6_u32).prop_map(|it| it.to_string()),
        (0..101_u32).prop_map(|it| format!("{it}%"))
    ]
}

proptest! {
    /// Law 5: after every grant, what is unavailable for any cause and what is granted is within each
    /// budget that selects it; the checker counts for itself.
    #[test]
    fn no_grant_ever_exceeds_a_budget(
        members in prop::collection::vec(some_member(), 1..24),
        keeps in prop::collection::vec((any::<bool>(), some_amount(), 0..4_usize), 0..4),
        already in prop::collection::btree_set(0..24_usize, 0..3),
    ) {
        let members: Members =
            members.into_iter().enumerate().map(|(at, it)| (format!("n{at:02}"), it)).collect();
        let selector = |it: usize| ["", "karpenter.sh/nodepool=web", "karpenter.sh/provisioner-name=db", "no=body"][it];
        let budgets: Vec<DisruptionBudget> = keeps
            .iter()
            .enumerate()
            .map(|(at, (min, amount, who))| {
                let what = if *min { "min" } else { "max" };
                disruption(&format!("b{at}"), &[selector(*who)], &format!("{what} {amount}"))
            })
            .collect();
        let names: Vec<String> = already.iter().map(|it| format!("n{it:02}")).collect();
        let open: Vec<&str> =
            names.iter().filter(|it| members.contains_key(*it)).map(String::as_str).collect();
        let grants = granted_to(&open, ago(minutes(3)));
        let limits = only(budgets);
        let new = granted(&members, &limits, &grants, Act::Replace);

        let there = |it: &&String| members[*it].standing != Standing::Outside;
        let busy = |except: &str, upto: usize| -> BTreeSet<&String> {
            members
                .keys()
                .filter(|it| {
                    it.as_str() != except
                        && (matches!(members[*it].standing, Standing::Unavailable(_))
                            || grants.open.contains_key(*it)
                            || new[..upto].contains(it))
                })
                .collect()
        };
        for (upto, node) in new.iter().enumerate() {
            let before = busy(node, upto);
            let mut selected = false;
            for budget in limits.disruption_budgets.iter().filter(|it| it.selects(&members[node].labels)) {
                selected = true;
                let of: Vec<&String> = members.keys().filter(there)
                    .filter(|it| budget.selects(&members[*it].labels)).collect();
                let used =
                    before.iter().filter(|it| budget.selects(&members[**it].labels)).count();
                let total = of.len();
                let allowed = match budget.keep.clone().unwrap() {
                    Keep::MinAvailable(Amount::Count(n)) => total.saturating_sub(n as usize),
                    Keep::MaxUnavailable(Amount::Count(n)) => n as usize,
                    Keep::MinAvailable(percent) => {
                        let percent: usize = percent.to_string().trim_end_matches('%').parse().unwrap();
                        total - (total * percent).div_ceil(100)
                    }
                    Keep::MaxUnavailable(percent) => {
                        let percent: usize = percent.to_string().trim_end_matches('%').parse().unwrap();
                        if percent == 0 { 0 } else { (total * percent / 100).max(1) }
                    }
                };
                prop_assert!(used < allowed, "{node}: {used} of {allowed} in {}", budget.name);
            }
            if !selected {
                let free = |it: &&&String| !limits.disruption_budgets.iter().any(|b| b.selects(&members[**it].labels));
                prop_assert_eq!(before.iter().filter(free).count(), 0, "serial");
            }
        }
    }

    /// Law 2: the order in which nodes and budgets come does not matter.
    #[test]
    fn order_does_not_matter(
        members in prop::collection::vec(some_member(), 1..12),
        amounts in prop::collection::vec(some_amount(), 1..4),
    ) {
        let members: Members =
            members.into_iter().enumerate().map(|(at, it)| (format!("n{at:02}"), it)).collect();
        let budgets: Vec<DisruptionBudget> = amounts
            .iter()
            .enumerate()
            .map(|(at, amount)| disruption(&format!("b{at}"), &[""], &format!("max {amount}")))
            .collect();
        let mut reversed = budgets.clone();
        reversed.reverse();
        let grants = Grants::default();
        prop_assert_eq!(
            granted(&members, &only(budgets), &grants, Act::Replace),
            granted(&members, &only(reversed), &grants, Act::Replace)
        );
    }

    #[test]
    fn no_cooldown_and_no_figure_makes_it_panic(
        cooldown in any::<i64>(), began in any::<i32>(), ended in any::<i32>(), batch in some_amount(),
    ) {
        let rule = ClassRule {
            cooldown: SignedDuration::from_secs(cooldown),
            batch_max: Some(Ok(batch.parse().unwrap())),
            ..ClassRule::of("all")
        };
        let span = |it: i32| Timestamp::from_second(i64::from(it)).unwrap();
        let closed = Closed { node: "a".to_owned(), class: "web".to_owned(), since: span(began), ended_at: span(ended) };
        let grants = Grants { closed: vec![closed], ..Grants::default() };
        let _ = granted(&nodes(3, "web"), &class(rule), &grants, Act::Replace);
    }
}
