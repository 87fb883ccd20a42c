//! Which pods may leave?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

#[path = "support/fleet.rs"]
mod fleet;

use std::collections::{BTreeMap, BTreeSet};

use fleet::{ago, drain, labels, minutes, now, pdb, pod};
use jiff::{SignedDuration, Timestamp};
use nodemolt_core::drain::{
    AllPdbs, AtLimit, BarePods, DO_NOT_DISRUPT, DO_NOT_EVICT, Drain, Evict, Forced, Held, Hold,
    How, LIMIT_FLOOR, Moved, Owner, Pdb, Pdbs, Pod, PodPhase, Protection, Refused, Tier,
    UnhealthyPods, evictions, homeless, limit_ends_at, protection, remaining,
};
use nodemolt_core::policy::LabelSelector;
use proptest::prelude::*;

const SECOND: SignedDuration = SignedDuration::from_secs(1);

fn web(name: &str) -> Pod {
    pod("shop", name, "web")
}

/// Each pod with what becomes of it.
fn told(drains: &[Drain], pdbs: &[Pdb]) -> BTreeMap<String, String> {
    let (evict, held) = evictions(drains, &pdbs.to_vec().into(), now());
    let evict = evict.into_iter().map(|Evict { pod, how, .. }| {
        let text = match how {
            How::Evict => "evicted".to_owned(),
            How::WithMachine { forced: None } => "ends with the machine".to_owned(),
            How::WithMachine { forced: Some(because) } => {
                format!("ends with the machine: {because:?}")
            }
            How::Delete { grace_seconds, because: Forced::Deadline } => {
                format!("deleted, {grace_seconds}s, deadline")
            }
            How::Delete { grace_seconds, because: Forced::DrainLimit } => {
                format!("deleted, {grace_seconds}s, limit")
            }
        };
        (pod.name, text)
    });
    let held = held.into_iter().map(|Held { pod, why, again_at, .. }| {
        let again = again_at.map(|it| format!(" +{}s", it.duration_since(now()).as_secs()));
        let text = match why {
            Hold::Stays(stays) => format!("{stays:?}"),
            Hold::Refused(refused) => format!("{} {refused}", refused.code()),
            Hold::Protected(it) => it.annotation.to_owned(),
            Hold::UnderWay { pdb } => format!("under way by {pdb}"),
            other @ (Hold::Terminating | Hold::Bare | Hold::AfterOthers) => format!("{other:?}"),
        };
        (pod.name, text + again.as_deref().unwrap_or(""))
    });
    evict.chain(held).collect()
}

fn alone(pod: Pod, pdbs: &[Pdb]) -> String {
    let name = pod.id.name.clone();
    told(&[drain("old", vec![pod])], pdbs).remove(&name).unwrap()
}

/// One named case per answer of the eviction API.
#[test]
fn the_eviction_api_answers() {
    let no = || pdb("shop", "web", "web", 0);
    let one = || pdb("shop", "web", "web", 1);
    let unready = || Pod { ready: false, ..web("a") };
    let broken = || Pdb { current_healthy: 1, desired_healthy: 2, ..no() };
    for (what, pod, pdbs, expected) in [
        ("no budget", web("a"), vec![], "evicted"),
        ("one allowed", web("a"), vec![one()], "evicted"),
        (
            "none allowed",
            web("a"),
            vec![no()],
            "429 PodDisruptionBudget `web` allows no disruption now",
        ),
        (
            "of another namespace",
            web("a"),
            vec![Pdb { namespace: "other".to_owned(), ..no() }],
            "evicted",
        ),
        ("of other pods", web("a"), vec![pdb("shop", "db", "db", 0)], "evicted"),
        (
            "a selector that says nothing matches all",
            web("a"),
            vec![Pdb { selector: Some(LabelSelector::default()), ..no() }],
            "429 PodDisruptionBudget `web` allows no disruption now",
        ),
        ("no selector matches nothing", web("a"), vec![Pdb { selector: None, ..no() }], "evicted"),
        (
            "two budgets",
            web("a"),
            vec![one(), Pdb { name: "also".to_owned(), ..one() }],
            "500 several PodDisruptionBudgets match it: `also`, `web`",
        ),
        (
            "less than none",
            web("a"),
            vec![pdb("shop", "web", "web", -1)],
            "403 PodDisruptionBudget `web` allows less than none",
        ),
        (
            "spec newer than status",
            web("a"),
            vec![Pdb { generation: 2, ..one() }],
            "429 PodDisruptionBudget `web` was changed and not yet counted anew +10s",
        ),
        (
            "too many under way",
            web("a"),
            vec![Pdb {
                disrupted_pods: (0..2001).map(|it| (format!("p{it}"), now())).collect(),
                ..one()
            }],
            "403 PodDisruptionBudget `web` has too many evictions under way",
        ),
        (
            "as many as it bears",
            web("a"),
            vec![Pdb {
                disrupted_pods: (0..2000).map(|it| (format!("p{it}"), now())).collect(),
                ..one()
            }],
            "evicted",
        ),
        (
            "pending passes even two budgets",
            Pod { phase: PodPhase::Pending, ..web("a") },
            vec![no(), Pdb { name: "also".to_owned(), ..no() }],
            "evicted",
        ),
        (
            "unready, budget healthy without it",
            unready(),
            vec![Pdb { current_healthy: 2, desired_healthy: 2, ..no() }],
            "evicted",
        ),
        (
            "unready, budget not healthy",
            unready(),
            vec![broken()],
            "429 PodDisruptionBudget `web` allows no disruption now",
        ),
        (
            "unready, nothing wanted is not healthy",
            unready(),
            vec![Pdb { current_healthy: 0, desired_healthy: 0, ..no() }],
            "429 PodDisruptionBudget `web` allows no disruption now",
        ),
        (
            "unready, always allowed",
            unready(),
            vec![Pdb { unhealthy_pods: UnhealthyPods::AlwaysAllow, ..broken() }],
            "evicted",
        ),
        (
            "unready passes a stale budget too",
            unready(),
            vec![Pdb { unhealthy_pods: UnhealthyPods::AlwaysAllow, generation: 2, ..broken() }],
            "evicted",
        ),
        (
            "unready, not healthy, but one is allowed",
            unready(),
            vec![Pdb { disruptions_allowed: 1, ..broken() }],
            "evicted",
        ),
        (
            "ready is not unhealthy",
            web("a"),
            vec![Pdb { unhealthy_pods: UnhealthyPods::AlwaysAllow, ..broken() }],
            "429 PodDisruptionBudget `web` allows no disruption now",
        ),
        (
            "its namespace goes",
            Pod { namespace_terminating: true, ..web("a") },
            vec![],
            "403 its namespace is being deleted",
        ),
        (
            "accepted a minute ago",
            web("a"),
            vec![Pdb { disrupted_pods: [("a".to_owned(), ago(minutes(1)))].into(), ..one() }],
            "under way by web +60s",
        ),
        (
            "accepted, and nothing came of it",
            web("a"),
            vec![Pdb { disrupted_pods: [("a".to_owned(), ago(minutes(2)))].into(), ..one() }],
            "evicted",
        ),
    ] {
        assert_eq!(alone(pod, &pdbs), expected, "{what}");
    }
}

#[test]
fn some_pods_stay_and_some_wait_for_a_person() {
    let protected = |annotation, until| Pod {
        protection: Some(Protection { annotation, until, unread: None }),
        ..web("a")
    };
    let ending = |seconds: i64| Pod {
        ends_at: Some(now() + SECOND * i32::try_from(seconds).unwrap()),
        ..web("a")
    };
    for (what, pod, expected) in [
        ("DaemonSet", Pod { owner: Owner::DaemonSet, ..web("a") }, "DaemonSet"),
        ("mirror", Pod { owner: Owner::Mirror, ..web("a") }, "Mirror"),
        ("finished", Pod { phase: PodPhase::Finished, ..web("a") }, "Finished"),
        (
            "it would come right back",
            Pod { tolerates_cordon: true, ..web("a") },
            "ends with the machine",
        ),
        (
            "it would come right back, and is protected",
            Pod { tolerates_cordon: true, ..protected(DO_NOT_DISRUPT, None) },
            "karpenter.sh/do-not-disrupt",
        ),
        (
            "nobody would start it again",
            Pod { tolerates_cordon: true, owner: Owner::Nobody, ..web("a") },
            "Bare",
        ),
        ("bare", Pod { owner: Owner::Nobody, ..web("a") }, "Bare"),
        ("do not disrupt", protected(DO_NOT_DISRUPT, None), "karpenter.sh/do-not-disrupt"),
        ("do not evict", protected(DO_NOT_EVICT, None), "karpenter.sh/do-not-evict"),
        (
            "for another minute",
            protected(DO_NOT_DISRUPT, Some(now() + minutes(1))),
            "karpenter.sh/do-not-disrupt +60s",
        ),
        ("no longer", protected(DO_NOT_DISRUPT, Some(now())), "evicted"),
        ("on its way", ending(10), "Terminating +70s"),
        ("late", ending(-60), "Terminating +0s"),
        ("stuck", ending(-61), "Stuck"),
    ] {
        assert_eq!(alone(pod, &[]), expected, "{what}");
    }
    let mut bare = drain("old", vec![Pod { owner: Owner::Nobody, ..web("a") }]);
    bare.bare_pods = BarePods::Evict;
    assert_eq!(told(&[bare], &[])["a"], "evicted");
}

#[test]
fn pods_of_the_system_leave_when_all_others_have() {
    let critical = || Pod { tier: Tier::System, ..web("dns") };
    let held = || Pod {
        protection: Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None }),
        ..web("a")
    };
    let ending = || Pod { ends_at: Some(now()), ..web("a") };
    let daemon = || Pod { owner: Owner::DaemonSet, ..web("a") };
    for (what, first, expected) in [
        ("an ordinary one", web("a"), "AfterOthers"),
        ("one that is held", held(), "AfterOthers"),
        ("one that is ending", ending(), "AfterOthers"),
        ("one that stays anyway", daemon(), "evicted"),
    ] {
        assert_eq!(told(&[drain("old", vec![critical(), first])], &[])["dns"], expected, "{what}");
    }
}

#[test]
fn two_drains_do_not_count_on_the_same_disruption() {
    let mut first = drain("n1", vec![web("a"), web("b")]);
    let second = drain("n2", vec![web("c"), web("d")]);
    let no = "429 PodDisruptionBudget `web` allows no disruption now";
    for (allowed, expected) in [
        (0, [no, no, no, no]),
        (1, ["evicted", no, no, no]),
        (3, ["evicted", "evicted", "evicted", no]),
        (9, ["evicted"; 4]),
    ] {
        let all = told(&[second.clone(), first.clone()], &[pdb("shop", "web", "web", allowed)]);
        assert_eq!(all.values().map(String::as_str).collect::<Vec<_>>(), expected, "{allowed}");
    }
    // The older drain comes first, so that one of them gets done.
    first.since = now();
    let all = told(&[first, second], &[pdb("shop", "web", "web", 1)]);
    assert_eq!((all["a"].as_str(), all["c"].as_str()), (no, "evicted"));
}

#[test]
fn a_termination_grace_period_deletes_just_in_time() {
    let held = || Pod {
        protection: Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None }),
        grace: SECOND * 60,
        ..web("a")
    };
    // By claims that are deleted: their machine ends then.
    for (left, pod, expected) in [
        (61, held(), "karpenter.sh/do-not-disrupt +1s"),
        (60, held(), "deleted, 60s, deadline"),
        (59, held(), "deleted, 59s, deadline"),
        (1, held(), "deleted, 1s, deadline"),
        (-100, held(), "deleted, 1s, deadline"),
        (-100, Pod { owner: Owner::DaemonSet, ..held() }, "DaemonSet"),
        (10, Pod { grace: SignedDuration::ZERO, ..held() }, "karpenter.sh/do-not-disrupt +10s"),
        (0, Pod { grace: SignedDuration::ZERO, ..held() }, "deleted, 1s, deadline"),
        (30, Pod { tier: Tier::System, ..held() }, "deleted, 30s, deadline"),
        (
            i64::MAX / 4_000_000_000,
            Pod { grace: SignedDuration::MAX, ..web("a") },
            "deleted, 2305843009s, deadline",
        ),
    ] {
        let mut drain = drain("old", vec![pod, Pod { grace: SignedDuration::ZERO, ..web("b") }]);
        drain.deadline = Some(now().saturating_add(SignedDuration::from_secs(left)).unwrap());
        drain.machine_goes = true;
        let pdbs = [pdb("shop", "web", "web", 0)];
        assert_eq!(told(&[drain], &pdbs)["a"], expected, "{left}s left");
    }
    // Before that the machine waits, so nobody is hurried.
    for (left, expected) in [
        (61, "karpenter.sh/do-not-disrupt +1s"),
        (59, "deleted, 60s, deadline"),
        (-1000, "deleted, 60s, deadline"),
    ] {
        let mut drain = drain("old", vec![held()]);
        drain.deadline = Some(now() + SignedDuration::from_secs(left));
        assert_eq!(told(&[drain], &[])["a"], expected, "{left}s left");
    }
}

#[test]
fn the_drain_limit_is_the_sum_of_grace_periods_since_the_last_pod_left() {
    let graced =
        |name: &str, minutes: i64| Pod { grace: SignedDuration::from_mins(minutes), ..web(name) };
    let limit = |pods: Vec<Pod>, since: i64, left: Option<i64>, written: Option<i64>| {
        let mut drain = drain("old", pods);
        drain.since = ago(minutes(since));
        drain.last_left_at = left.map(|it| ago(minutes(it)));
        drain.limit = written.map(minutes);
        limit_ends_at(&drain, now()).map(|it| it.duration_since(now()).as_mins())
    };
    let two = || vec![graced("a", 10), graced("b", 20)];
    for (what, found, expected) in [
        ("the sum", limit(two(), 1, None, None), Some(29)),
        ("the floor", limit(vec![web("a")], 1, None, None), Some(4)),
        ("nothing to wait for", limit(vec![], 1, None, None), Some(4)),
        ("anew with each pod", limit(two(), 100, Some(3), None), Some(27)),
        ("a clock that was behind", limit(two(), 1, Some(50), None), Some(29)),
        ("as written", limit(two(), 1, None, Some(2)), Some(1)),
        (
            "those that stay do not count",
            limit(vec![Pod { owner: Owner::DaemonSet, ..graced("a", 60) }], 1, None, None),
            Some(4),
        ),
        (
            "what is left of one that goes",
            limit(
                vec![Pod { ends_at: Some(now() + minutes(9)), ..graced("a", 60) }],
                1,
                None,
                None,
            ),
            Some(9),
        ),
        (
            "sums saturate",
            limit(
                vec![
                    Pod { grace: SignedDuration::MAX, ..web("a") },
                    Pod { grace: SignedDuration::MAX, ..web("b") },
                ],
                1,
                None,
                None,
            ),
            None,
        ),
        (
            "a negative one is none",
            limit(
                vec![Pod { grace: SignedDuration::MIN, ..web("a") }, graced("b", 7)],
                1,
                None,
                None,
            ),
            Some(6),
        ),
    ] {
        assert_eq!(found, expected, "{what}");
    }
    let mut deadline = drain("old", two());
    deadline.deadline = Some(now());
    assert_eq!(limit_ends_at(&deadline, now()), None, "another rule ends it");
    assert_eq!(LIMIT_FLOOR, minutes(5));
}

#[test]
fn force_deletes_at_the_end_of_the_limit_and_not_before() {
    let pdbs = [pdb("shop", "web", "web", 0)];
    let refused = "429 PodDisruptionBudget `web` allows no disruption now";
    for (at_limit, since, expected) in [
        (AtLimit::Force, 4, refused),
        (AtLimit::Force, 5, "deleted, 30s, limit"),
        (AtLimit::Wait, 500, refused),
        (AtLimit::Skip, 500, refused),
    ] {
        let mut drain = drain("old", vec![web("a")]);
        drain.at_limit = at_limit;
        drain.since = ago(minutes(since));
        assert_eq!(told(&[drain], &pdbs)["a"], expected, "{at_limit:?} after {since}m");
    }
}

#[test]
fn annotations_protect() {
    let started = ago(minutes(30));
    let read = |text: &str, started_at| protection(&labels(text), started_at);
    let held = |annotation, until| Some(Protection { annotation, until, unread: None });
    let unread = |annotation, word: &str| {
        Some(Protection { annotation, until: None, unread: Some(word.to_owned()) })
    };
    assert_eq!(read("", Some(started)), None);
    assert_eq!(read("karpenter.sh/do-not-disrupt=true", None), held(DO_NOT_DISRUPT, None));
    assert_eq!(read("karpenter.sh/do-not-evict=true", None), held(DO_NOT_EVICT, None));
    for nothing in ["false", ""] {
        assert_eq!(read(&format!("karpenter.sh/do-not-evict={nothing}"), None), None);
        assert_eq!(read(&format!("karpenter.sh/do-not-disrupt={nothing}"), None), None);
    }
    assert_eq!(read("karpenter.sh/do-not-disrupt=0s", Some(started)), None);
    let hour = Some(started + minutes(60));
    assert_eq!(read("karpenter.sh/do-not-disrupt=1h", Some(started)), held(DO_NOT_DISRUPT, hour));
    assert_eq!(read("karpenter.sh/do-not-disrupt=1h", None), held(DO_NOT_DISRUPT, None));
    // Nobody knows what these mean; that somebody meant something is known.
    for wrong in ["yes", "True", "-1h", "1d", "banana"] {
        let said = read(&format!("karpenter.sh/do-not-disrupt={wrong}"), Some(started));
        assert_eq!(said, unread(DO_NOT_DISRUPT, wrong));
    }
    for wrong in ["True", "1h"] {
        let said = read(&format!("karpenter.sh/do-not-evict={wrong}"), Some(started));
        assert_eq!(said, unread(DO_NOT_EVICT, wrong));
    }
    let years = "karpenter.sh/do-not-disrupt=2562047h";
    assert!(read(years, Some(Timestamp::MAX)).unwrap().holds(Timestamp::MAX));
}

#[test]
fn a_moved_pod_without_a_place_is_told_after_five_minutes() {
    let moved = |pool: &str, name: &str, pending: Option<i64>| Moved {
        nodes: vec!["n0".to_owned()],
        pool: pool.to_owned(),
        pod: web(name).id,
        pending_since: pending.map(|it| ago(SECOND * i32::try_from(it).unwrap())),
    };
    let all = [
        moved("web", "young", Some(299)),
        moved("web", "b", Some(300)),
        moved("web", "oldest", Some(900)),
        moved("db", "running", None),
        moved("gpu", "young", Some(10)),
    ];
    let found = homeless(&all, now());
    let names: Vec<_> =
        found.iter().map(|(pool, it)| (pool.as_str(), it.pod.name.as_str())).collect();
    assert_eq!(names, [("web", "oldest")]);
}

// ---- laws ----

fn some_pod() -> impl Strategy<Value = Pod> {
    (
        (0..2_usize, 0..3_usize, 0..60_usize, 0..6_usize, any::<bool>()),
        (0..8_usize, any::<bool>(), any::<bool>(), -200..200_i64, any::<bool>()),
    )
        .prop_map(
            |((namespace, app, name, owner, ready), (phase, critical, held, ends, ending))| {
                let mut it =
                    pod(["a", "b"][namespace], &format!("p{name}"), ["web", "db", "dns"][app]);
                it.owner = match owner {
                    0 => Owner::DaemonSet,
                    1 => Owner::Mirror,
                    2 => Owner::Nobody,
                    _ => it.owner,
                };
                it.phase = match phase {
                    0 => PodPhase::Pending,
                    1 => PodPhase::Finished,
                    2 => PodPhase::Unknown,
                    _ => PodPhase::Running,
                };
                it.ready = ready;
                it.tier = if critical && app == 2 { Tier::System } else { Tier::Ordinary };
                it.protection = (held && ends > 100).then_some(Protection {
                    annotation: DO_NOT_DISRUPT,
                    until: None,
                    unread: None,
                });
                it.ends_at = (ending && ends < 0)
                    .then(|| now() + SECOND * i32::try_from(ends + 100).unwrap());
                it
            },
        )
}

fn some_pdb() -> impl Strategy<Value = Pdb> {
    (0..2_usize, 0..3_usize, 0..3_usize, -1..4_i32, any::<bool>(), 0..3_i32).prop_map(
        |(namespace, app, name, allowed, stale, healthy)| {
            let name = format!("pdb{name}");
            let mut it = pdb(["a", "b"][namespace], &name, ["web", "db", "dns"][app], allowed);
            it.generation = i64::from(stale) + 1;
            it.current_healthy = healthy;
            it.desired_healthy = 2;
            it
        },
    )
}

fn some_drains() -> impl Strategy<Value = Vec<Drain>> {
    prop::collection::vec((prop::collection::vec(some_pod(), 0..12), 0..20_i64, 0..4_usize), 0..5)
        .prop_map(|all| {
            let mut seen = BTreeSet::new();
            all.into_iter()
                .enumerate()
                .map(|(at, (mut pods, since, rule))| {
                    pods.retain(|it| seen.insert(it.id.clone()));
                    let mut it = drain(&format!("n{at}"), pods);
                    it.since = ago(minutes(since));
                    it.deadline = (rule == 0).then(|| now() + minutes(1));
                    it.at_limit = if rule == 1 { AtLimit::Force } else { AtLimit::Skip };
                    it
                })
                .collect()
        })
}

proptest! {
    /// Law 1 and law 10: every pod is answered once; whoever leaves through the API has room in its one
    /// budget, with all the others that leave; nobody is deleted but where that was allowed.
    #[test]
    fn every_pod_is_answered_and_no_budget_is_overdrawn(
        drains in some_drains(),
        pdbs in prop::collection::vec(some_pdb(), 0..6),
    ) {
        let pdbs: Vec<Pdb> = pdbs
            .into_iter()
            .map(|it| ((it.namespace.clone(), it.name.clone()), it))
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .collect();
        let (evict, held) = evictions(&drains, &pdbs.clone().into(), now());
        let mut answered: Vec<_> =
            evict.iter().map(|it| &it.pod).chain(held.iter().map(|it| &it.pod)).collect();
        let mut asked: Vec<_> = drains.iter().flat_map(|it| &it.pods).map(|it| &it.id).collect();
        answered.sort();
        asked.sort();
        prop_assert_eq!(answered, asked);

        let pods: BTreeMap<_, _> =
            drains.iter().flat_map(|it| it.pods.iter().map(move |pod| (&pod.id, (it, pod)))).collect();
        let mut used: BTreeMap<(&str, &str), i32> = BTreeMap::new();
        for it in &evict {
            let (drain, pod) = pods[&it.pod];
            prop_assert!(!matches!(pod.owner, Owner::DaemonSet | Owner::Mirror));
            if let How::Delete { grace_seconds, .. } = it.how {
                prop_assert!(drain.deadline.is_some() || drain.at_limit == AtLimit::Force);
                prop_assert!(grace_seconds >= 1);
                continue;
            }
            prop_assert!(pod.protection.is_none() && pod.owner != Owner::Nobody);
            let of: Vec<&Pdb> = pdbs.iter().filter(|pdb| {
                pdb.namespace == pod.id.namespace && pdb.selector.as_ref().unwrap().matches(&pod.labels)
            }).collect();
            if pod.phase == PodPhase::Pending { continue; }
            prop_assert!(of.len() < 2, "two budgets");
            if let [pdb] = of[..] {
                let healthy = pdb.current_healthy >= pdb.desired_healthy;
                if pod.ready || !healthy {
                    *used.entry((&pdb.namespace, &pdb.name)).or_default() += 1;
                }
            }
        }
        for pdb in &pdbs {
            let used = used.get(&(pdb.namespace.as_str(), pdb.name.as_str())).copied().unwrap_or(0);
            prop_assert!(used <= pdb.disruptions_allowed.max(0));
            prop_assert!(used == 0 || pdb.observed_generation >= pdb.generation);
        }
    }

    /// Law 2, and law 3: shuffled or asked again, the same.
    #[test]
    fn order_does_not_matter(
        mut drains in some_drains(),
        mut pdbs in prop::collection::vec(some_pdb(), 0..4),
    ) {
        let names: BTreeSet<_> = pdbs.iter().map(|it| (&it.namespace, &it.name)).collect();
        prop_assume!(names.len() == pdbs.len());
        let once = evictions(&drains, &pdbs.clone().into(), now());
        drains.reverse();
        for it in &mut drains {
            it.pods.reverse();
        }
        pdbs.reverse();
        prop_assert_eq!(once, evictions(&drains, &pdbs.clone().into(), now()));
    }

    /// What must leave is what is not told to stay.
    #[test]
    fn who_stays_is_not_waited_for(pods in prop::collection::vec(some_pod(), 0..20)) {
        let left = remaining(&pods, now()).count();
        let mut seen = BTreeSet::new();
        let pods: Vec<Pod> = pods.into_iter().filter(|it| seen.insert(it.id.clone())).collect();
        let (_, held) = evictions(&[drain("n", pods.clone())], &AllPdbs::default(), now());
        let stay = held.iter().filter(|it| matches!(it.why, Hold::Stays(_))).count();
        prop_assert_eq!(remaining(&pods, now()).count() + stay, pods.len());
        prop_assert!(left >= pods.len() - stay);
    }
}

#[test]
fn a_refusal_names_its_budget() {
    assert_eq!(Refused::NamespaceTerminating.pdb(), None);
    assert_eq!(Refused::Stale { pdb: "a".to_owned() }.pdb(), Some("a"));
}

/// Issue 7: they died with the machine, whatever their budget said.
#[test]
fn who_ends_with_the_machine_takes_from_its_budget_when_all_others_have_left() {
    let bound = |name: &str| Pod { tolerates_cordon: true, ..web(name) };
    let at = |node: &str, minutes_ago: i64, pods| Drain {
        since: ago(minutes(minutes_ago)),
        ..drain(node, pods)
    };
    let none = [pdb("shop", "web", "web", 0)];
    let one = [pdb("shop", "web", "web", 1)];
    let refused = "429 PodDisruptionBudget `web` allows no disruption now";
    assert_eq!(told(&[drain("n", vec![bound("a")])], &none)["a"], refused);
    // While others are to leave nobody asks for it, and it takes nothing from them.
    let beside = told(&[drain("n", vec![bound("a"), web("b")])], &one);
    assert_eq!((&*beside["a"], &*beside["b"]), ("ToleratesCordon", "evicted"));
    // Two machines do not count on the same disruption, and whoever began first goes first.
    let two = told(&[at("m", 1, vec![bound("a")]), at("n", 2, vec![bound("b")])], &one);
    let not_all =
        "429 PodDisruptionBudget `web` lets 1 go now, and more of its pods have to go at once";
    assert_eq!((&*two["a"], &*two["b"]), (not_all, "ends with the machine"));
    // On one machine they end together or not at all; and whoever cannot end takes nothing from anybody else.
    let both = at("m", 2, vec![bound("a"), bound("b")]);
    let all = told(&[both.clone(), at("n", 1, vec![web("c")])], &one);
    assert_eq!((&*all["b"], &*all["c"]), (not_all, "evicted"));
    let all = told(&[both, at("n", 1, vec![web("c")])], &[pdb("shop", "web", "web", 2)]);
    assert_eq!((&*all["b"], &*all["c"]), ("ends with the machine", refused));
    // One whose machine ends by now has taken it from everybody.
    let ending = Drain { ending: true, ..at("m", 1, vec![bound("a")]) };
    let two = told(&[ending, at("n", 2, vec![web("b")])], &one);
    assert_eq!((&*two["a"], &*two["b"]), ("ends with the machine", refused));
    // So has one of which that was decided, and whose deletion nobody has told of yet.
    let decided = Drain { decided: true, ..at("m", 1, vec![bound("a")]) };
    let two = told(&[decided, at("n", 2, vec![bound("b")])], &one);
    assert_eq!((&*two["a"], &*two["b"]), ("ends with the machine", not_all));
    // Force and deadlines pass the budget, and are told.
    let force = Drain { at_limit: AtLimit::Force, ..at("n", 60, vec![bound("a")]) };
    assert_eq!(told(&[force], &none)["a"], "ends with the machine: DrainLimit");
    let late = Drain { deadline: Some(now()), ..drain("n", vec![bound("a")]) };
    assert_eq!(told(&[late], &none)["a"], "ends with the machine: Deadline");
}

/// Issue 7: a pod that had ended with its machine counted as healthy until somebody cleared it away.
#[test]
fn a_budget_allows_no_more_than_is_counted() {
    for (allowed, desired, serve, expected) in
        [(1, 2, 3, 1), (1, 2, 2, 0), (1, 2, 0, 0), (0, 2, 9, 0), (-1, 2, 3, -1), (3, 0, 2, 2)]
    {
        let pdb = Pdb { desired_healthy: desired, ..pdb("shop", "web", "web", allowed) };
        let mut all = AllPdbs::from(vec![pdb]);
        all.count(0, serve);
        let left = Pdbs::new(&all).matching(&web("a")).map(|it| it.1).collect::<Vec<_>>();
        assert_eq!(left, [expected], "{allowed} {serve}");
    }
}
