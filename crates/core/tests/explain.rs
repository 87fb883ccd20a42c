//! What do we tell people?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

#[path = "support/fleet.rs"]
mod fleet;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleet::{ago, at, drain, minutes, node, now, pdb, pod};
use jiff::SignedDuration;
use nodemolt_core::budget::{
    Act, Amount, ClassRule, Concurrency, Grant, GrantKind, Grants, Limits, Standing, Unavailable,
    Unit, Unreadable, measure,
};
use nodemolt_core::drain::{
    AtLimit, DO_NOT_DISRUPT, Drain, Homeless, Owner, Pdb, Pod, Protection, Refused,
};
use nodemolt_core::drift::{Direction, Divergence, Drift, Missing};
use nodemolt_core::explain::{
    ClassTold, Doubted, Kept, Newer, Orphan, RecordTold, Story, SuccessorTold, World, doubted,
    explain, explain_fleet, explain_gone, explain_pod, explain_pool, relative, stuck,
};
use nodemolt_core::node::{ImageRef, Running};
use nodemolt_core::place::{Placement, Placements};
use nodemolt_core::plan::{Fleet, Node, Pending, PoolState, Reach, UnderWay, WaitFor, plan};
use nodemolt_core::replace::{Because, Cause, Old, Order, Phase, Replacement, Step, Wait};
use nodemolt_core::resolve::Refusal;
use nodemolt_core::wanted::NoImage;

type Change = Box<dyn Fn(&mut Told)>;

/// Reasons, and the kinds of what they name.
type Named<'a> = &'a [(&'static str, &'static str)];

#[derive(Default)]
struct Told {
    fleet: Fleet,
    limits: Limits,
    grants: Grants,
    running: BTreeMap<String, Running>,
    drifts: BTreeMap<String, Drift>,
    replacements: BTreeMap<String, Replacement>,
    records: BTreeMap<String, RecordTold>,
    steps: BTreeMap<String, Step>,
    drains: Vec<Drain>,
    classes: BTreeMap<String, ClassTold>,
    successors: BTreeMap<String, SuccessorTold>,
    doubted: Doubted,
}

fn image(digits: &str, name: &str, age_days: i64) -> ImageRef {
    let dated = Some(ago(SignedDuration::from_hours(24 * age_days)));
    ImageRef {
        id: format!("ami-{digits:0>8}").parse().unwrap(),
        name: Some(name.to_owned()),
        dated,
    }
}

impl Told {
    /// A node that runs an old image.
    fn with(mut self, name: &str, it: Node) -> Self {
        let from = image("a1", "al2023-v20260610", 52);
        let to = image("b2", "al2023-v20260722", 10);
        let mut running = Running::of(name, "uid", it.created_at);
        running.instance_type = Some("m7g.large".to_owned());
        running.image = Some(from.clone());
        let first = Divergence::Image { from, to, direction: Direction::Upgrade };
        let drift = match &it.wish {
            Some(_) => Drift::Drifted { first, more: Vec::new(), unchecked: Vec::new() },
            None => Drift::InSync,
        };
        self.running.insert(name.to_owned(), running);
        self.drifts.insert(name.to_owned(), drift);
        self.fleet.nodes.insert(name.to_owned(), it);
        self
    }

    /// One that is being emptied since three minutes.
    fn draining(mut self, name: &str, pods: Vec<Pod>) -> Self {
        let mut it = node("web", "a", pods.clone());
        it.under_way = Some(UnderWay { phase: Phase::Draining, since: ago(minutes(3)) });
        self = self.with(name, it);
        let grant = Grant { kind: GrantKind::Replacement, since: ago(minutes(9)) };
        self.grants.open.insert(name.to_owned(), grant);
        let old = Old { node: name.to_owned(), claim: name.to_owned(), claim_uid: "u".to_owned() };
        let successors = vec!["web-x7k2p".to_owned()];
        let begun = Replacement::begin(
            old,
            Cause::Drift,
            Order::SuccessorFirst,
            AtLimit::Skip,
            successors,
            ago(minutes(9)),
        );
        let draining = Replacement {
            phase: Phase::Draining,
            since: ago(minutes(3)),
            because: Because::PlacementHolds,
            ..begun
        };
        self.replacements.insert(name.to_owned(), draining);
        self.drains.push(Drain { since: ago(minutes(3)), ..drain(name, pods) });
        self
    }

    fn tell<T>(&self, ask: impl FnOnce(&World<'_>) -> T) -> T {
        let limits = &self.limits;
        let spare = || Placement::Spare { on: BTreeSet::new() };
        let of = self.fleet.nodes.keys().map(|it| (it.clone(), spare())).collect();
        let placements = Placements { of, ..Placements::default() };
        let plan = plan(&self.fleet, &placements, &Reach::default(), &self.grants, limits, now());
        let members = self.fleet.nodes.iter().map(|(name, it)| (name.as_str(), &it.member));
        let rooms = measure(members, limits, &self.grants, Act::Replace, now());
        ask(&World {
            fleet: &self.fleet,
            plan: &plan,
            rooms: &rooms,
            limits,
            running: &self.running,
            drifts: &self.drifts,
            replacements: &self.replacements,
            records: &self.records,
            steps: &self.steps,
            drains: &self.drains,
            classes: &self.classes,
            successors: &self.successors,
            doubted: &self.doubted,
        })
    }

    fn node(&self, name: &str) -> Story {
        self.tell(|world| explain(world, name, now())).unwrap()
    }
}

fn check(story: &Story, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    let text = story.to_string();
    let found: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(found, expected, "\n{text}");
}

fn web(name: &str) -> Pod {
    pod("shop", name, "web")
}

#[test]
fn a_node_that_waits_says_for_whom() {
    let told = Told::default()
        .with("n1", node("web", "eu-west-1a", vec![]))
        .draining("n0", vec![pod("shop", "db-0", "db")]);
    check(
        &told.node("n1"),
        "
        node     n1   pool web   m7g.large   eu-west-1a   up 41d
        class    web
        runs     ami-000000a1   al2023-v20260610   52d old
        wants    ami-000000b2   al2023-v20260722   10d old
        drift    image ami-000000a1 → ami-000000b2 (upgrade)
        plan     waiting for the cluster's one slot: 1 of 1 in use by n0 since 2026-08-03T11:51:00Z (9m ago)
        next     starts when n0 is done
        ",
    );
    assert_eq!(told.node("n1").causes[0].named.kind, "DisruptionLedger");
}

/// Decision 0040: the slot stays taken, and whoever waits for it is told what is behind it.
#[test]
fn who_waits_behind_a_drain_that_is_held_is_told_what_holds_it() {
    let mut told = Told::default()
        .with("n1", node("other", "eu-west-1a", vec![]))
        .draining("n0", vec![web("p")]);
    told.fleet.pdbs = vec![pdb("shop", "web", "web", 0)].into();
    let story = told.node("n1");
    let told = story.to_string();
    assert!(
        told.contains(
            "in use by n0 since 2026-08-03T11:51:00Z (9m ago); n0 itself waits for pod shop/p: PodDisruptionBudget `web` allows no disruption now"
        ),
        "{told}"
    );
    assert!(story.next.starts_with("starts when n0 is done; a NodeDisruptionBudget that selects it, or `rollout.concurrency`"), "{told}");
    let behind = &story.causes[0].used_by[0].waits_for[0].named;
    assert_eq!(
        (behind.kind, behind.namespace.as_str(), behind.name.as_str()),
        ("PodDisruptionBudget", "shop", "web")
    );
}

#[test]
fn a_drain_that_is_held_names_the_budget() {
    let mut told = Told::default()
        .draining("n0", vec![web("p"), Pod { owner: Owner::DaemonSet, ..web("log") }]);
    told.fleet.pdbs = vec![pdb("shop", "web", "web", 0)].into();
    let story = told.node("n0");
    check(
        &story,
        "
        node     n0   pool web   m7g.large   a   up 41d
        class    web
        runs     ami-000000a1   al2023-v20260610   52d old
        wants    ami-000000b2   al2023-v20260722   10d old
        drift    image ami-000000a1 → ami-000000b2 (upgrade)
        plan     draining since 2026-08-03T11:57:00Z (3m) (drift): every pod has a place on a ready node
        successor web-x7k2p
        pod shop/p: PodDisruptionBudget `web` allows no disruption now (3 healthy, 3 wanted)
        next     the drain limit ends at 2026-08-03T12:02:00Z (in 2m): then it is uncordoned, and tried again 1h later
        ",
    );
    let named = &story.causes[0].named;
    assert_eq!(
        (named.kind, named.namespace.as_str(), named.name.as_str()),
        ("PodDisruptionBudget", "shop", "web")
    );
    let pod = told.tell(|world| explain_pod(world, "shop", "p", now())).unwrap();
    check(
        &pod,
        "
        pod      shop/p
        node     n0
        drain    PodDisruptionBudget `web` allows no disruption now (3 healthy, 3 wanted)
        next     leaves when that is lifted; else node n0 is left alone at 2026-08-03T12:02:00Z (in 2m): it is uncordoned, and tried again 1h later
        ",
    );
    let daemon = told.tell(|world| explain_pod(world, "shop", "log", now())).unwrap();
    assert_eq!(
        (daemon.facts[2].text.as_str(), daemon.next.as_str()),
        ("stays with the node: of a DaemonSet", "nothing to do")
    );
}

/// Whatever holds a node, its object is named, so that a person can go there.
#[test]
fn causes_name_their_objects() {
    let held = Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None });
    let cases: Vec<(Change, [&str; 3])> = vec![
        (
            Box::new(|it| it.fleet.pdbs = vec![pdb("shop", "web", "web", 0)].into()),
            ["PodDisruptionBudget", "shop", "web"],
        ),
        (
            Box::new(move |it| {
                Arc::make_mut(&mut it.fleet.nodes.get_mut("n1").unwrap().pods[0]).protection =
                    held.clone();
            }),
            ["Pod", "shop", "p"],
        ),
        (
            Box::new(|it| {
                Arc::make_mut(&mut it.fleet.nodes.get_mut("n1").unwrap().pods[0]).owner =
                    Owner::Nobody;
            }),
            ["Pod", "shop", "p"],
        ),
        (
            Box::new(|it| {
                Arc::make_mut(&mut it.fleet.nodes.get_mut("n1").unwrap().pods[0])
                    .namespace_terminating = true;
            }),
            ["Namespace", "", "shop"],
        ),
        (
            Box::new(|it| {
                it.fleet.homeless.insert(
                    "web".to_owned(),
                    Homeless { pod: web("q").id, since: ago(minutes(7)) },
                );
            }),
            ["Pod", "shop", "q"],
        ),
        (
            Box::new(|it| it.grants.paused = Some("by ops".to_owned())),
            ["DisruptionLedger", "", "cluster"],
        ),
    ];
    for (change, expected) in cases {
        let mut told = Told::default().with("n1", node("web", "a", vec![web("p")]));
        change(&mut told);
        let story = told.node("n1");
        let named = &story.causes[0].named;
        assert_eq!([named.kind, &named.namespace, &named.name], expected, "{story}");
        assert!(
            story.to_string().contains(expected[2]) || expected[0] == "DisruptionLedger",
            "{story}"
        );
    }
}

#[test]
fn who_is_fine_or_unknown_says_so() {
    let fine = Node { wish: None, ..node("web", "a", vec![web("p")]) };
    let mut told = Told::default().with("n1", fine);
    let text = told.node("n1").to_string();
    assert!(
        text.contains("drift    in sync\nplan     stays as it is\nnext     nothing to do\n"),
        "{text}"
    );
    told.drifts.insert("n1".to_owned(), Drift::Unknown(Missing::RunningImage));
    let text = told.node("n1").to_string();
    assert!(text.contains("drift    unknown: we miss which image it runs\n"), "{text}");
    assert!(text.ends_with("next     nothing, until we know which image it runs\n"), "{text}");
    assert_eq!(told.tell(|world| explain(world, "nobody", now())), None);
    let pod = told.tell(|world| explain_pod(world, "shop", "p", now())).unwrap();
    assert_eq!(pod.next, "nothing to do");
    assert_eq!(told.tell(|world| explain_pod(world, "shop", "nobody", now())), None);
}

#[test]
fn a_pool_and_the_fleet_are_counted() {
    let mut told = Told::default()
        .draining("n0", vec![])
        .with("n1", node("web", "a", vec![]))
        .with("n2", node("web", "b", vec![]))
        .with("d1", node("db", "b", vec![pod("shop", "db-0", "db")]));
    told.fleet.nodes.get_mut("d1").unwrap().protection =
        Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None });
    told.fleet.pools.insert("web".to_owned(), PoolState::default());
    for phase in
        [Phase::Launching, Phase::Joining, Phase::Settling, Phase::Draining, Phase::Terminating]
    {
        told.fleet.pace.insert(phase, minutes(2));
    }
    check(
        &told.tell(|world| explain_pool(world, "web", now())).unwrap(),
        "
        pool     web
        nodes    3   3 drifted   0 unknown
        going    n0   draining since 2026-08-03T11:57:00Z (3m)
        waiting  2, for example n1: for the cluster's one slot: 1 of 1 in use by n0 since 2026-08-03T11:51:00Z (9m ago)
        next     3 nodes, 1 at once: about 30m more
        ",
    );
    check(
        &told.tell(|world| explain_fleet(world, now())),
        "
        nodes    4   4 drifted   0 unknown
        going    n0   draining since 2026-08-03T11:57:00Z (3m)
        waiting  3, for example d1: for the cluster's one slot: 1 of 1 in use by n0 since 2026-08-03T11:51:00Z (9m ago)
        waiting  1, for example d1: for a person: node d1 says `karpenter.sh/do-not-disrupt`
        budget   the cluster's one slot: 1 of 1 nodes in use
        next     3 nodes, 1 at once: about 30m more
        ",
    );
    assert_eq!(told.tell(|world| explain_pool(world, "nobody", now())), None);
    let empty = Told::default();
    assert_eq!(empty.tell(|world| explain_fleet(world, now())).next, "nothing to do");
}

#[test]
fn processors_in_use_are_told_in_the_unit_of_both() {
    let mut told = Told::default().draining("n0", vec![]);
    let concurrency = Some(Ok(Concurrency::Of(Amount::Count(2))));
    let rule = ClassRule { unit: Unit::Cpu, concurrency, ..ClassRule::of("prod") };
    told.limits.classes.insert("web".to_owned(), rule);
    let text = told.tell(|world| explain_fleet(world, now())).to_string();
    let used = told.fleet.nodes["n0"].member.cpu_millis;
    let said = format!("for class `web`: {used}m of 2000m processors in use\n");
    assert!(text.contains(&said), "{text}");
}

/// Two images, one quarantine: a node is one that stays, and not two.
#[test]
fn who_stays_is_counted_once_for_each_object_that_holds_images_back() {
    let mut told = Told::default();
    for name in ["n1", "n2"] {
        told = told.with(name, Node { wish: None, ..node("web", "a", vec![]) });
    }
    let quarantined = |digits: &str, age_days, by: &str| Newer {
        image: image(digits, "al2023-v20260730", age_days),
        architecture: None,
        refusal: Refusal::Quarantined {
            by: by.to_owned(),
            because: "it breaks".to_owned(),
            until: None,
        },
    };
    let newer =
        vec![quarantined("c3", 1, "all"), quarantined("c4", 2, "all"), quarantined("c5", 3, "one")];
    told.classes.insert("web".to_owned(), ClassTold { newer, ..ClassTold::default() });
    let story = told.tell(|world| explain_fleet(world, now()));
    let staying = story.facts.iter().filter(|it| it.label == "staying");
    let counts: Vec<&str> = staying.filter_map(|it| it.text.split(':').next()).collect();
    assert_eq!(counts, ["2, for example n1", "2, for example n1"], "{story}");
}

/// Whoever lifts what is told first must not be told of the next only then.
#[test]
fn all_that_holds_a_pod_is_told_before_and_while_its_node_is_drained() {
    let says = Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None });
    let protected = Pod { protection: says.clone(), ..web("p") };
    let bare = Pod { owner: Owner::Nobody, ..web("p") };
    let both = Pod { protection: says, ..bare.clone() };
    let (pod, budget) = ("Pod", "PodDisruptionBudget");
    let cases: [(Pod, i32, Named<'_>); 5] = [
        (web("p"), 0, &[("PodDisruptionBudget", budget)]),
        (protected.clone(), 1, &[("ProtectedPod", pod)]),
        (protected, 0, &[("ProtectedPod", pod), ("PodDisruptionBudget", budget)]),
        (bare, 0, &[("BarePod", pod), ("PodDisruptionBudget", budget)]),
        (both, 0, &[("ProtectedPod", pod), ("BarePod", pod), ("PodDisruptionBudget", budget)]),
    ];
    for (it, allowed, expected) in cases {
        let waits = Told::default().with("n0", node("web", "a", vec![it.clone()]));
        let drains = Told::default().draining("n0", vec![it]);
        for mut told in [waits, drains] {
            told.fleet.pdbs = vec![pdb("shop", "web", "web", allowed)].into();
            let of_pod = told.tell(|world| explain_pod(world, "shop", "p", now())).unwrap();
            for story in [told.node("n0"), of_pod] {
                let found: Vec<(&str, &str)> =
                    story.causes.iter().map(|it| (it.reason, it.named.kind)).collect();
                assert_eq!(found, expected, "{story}");
                for cause in &story.causes {
                    assert!(story.to_string().contains(&cause.text), "{story}");
                }
            }
        }
    }
}

#[test]
fn a_pool_that_has_no_part_in_it_has_nothing_to_do() {
    let mut told = Told::default().draining("n0", vec![]);
    let in_sync = Node { wish: None, ..node("db", "b", vec![]) };
    told = told.with("d1", in_sync);
    for pool in ["db", "night"] {
        told.fleet.pools.insert(pool.to_owned(), PoolState::default());
    }
    for phase in
        [Phase::Launching, Phase::Joining, Phase::Settling, Phase::Draining, Phase::Terminating]
    {
        told.fleet.pace.insert(phase, minutes(2));
    }
    check(
        &told.tell(|world| explain_pool(world, "db", now())).unwrap(),
        "
        pool     db
        nodes    1   0 drifted   0 unknown
        next     nothing to do
        ",
    );
    check(
        &told.tell(|world| explain_pool(world, "night", now())).unwrap(),
        "
        pool     night
        nodes    0   0 drifted   0 unknown
        next     nothing to do
        ",
    );
    assert_eq!(told.tell(|world| explain_pool(world, "none", now())), None);
}

#[test]
fn who_goes_before_a_successor_comes_says_by_whose_word() {
    let mut told = Told::default().draining("n0", vec![]);
    let replacement = told.replacements.get_mut("n0").unwrap();
    *replacement = Replacement { order: Order::DeleteFirst, ..replacement.clone() };
    let class = told.fleet.nodes["n0"].member.class.clone().unwrap();
    let order = "it was begun so";
    let said = told.node("n0");
    assert!(said.to_string().contains(order) && said.causes.is_empty(), "{said}");
    told.limits
        .classes
        .insert(class, ClassRule { order: Order::DeleteFirst, ..ClassRule::of("full") });
    let said = told.node("n0");
    let named: Vec<(&str, &str)> =
        said.causes.iter().map(|it| (it.named.kind, it.named.name.as_str())).collect();
    assert_eq!(named, [("ImagePolicy", "full")], "{said}");
    assert!(said.to_string().contains("ImagePolicy `full` says `replacement: DeleteFirst`"));
}

#[test]
fn a_replacement_says_what_it_waits_for() {
    let mut told = Told::default().draining("n0", vec![]);
    assert_eq!(told.node("n0").next, "goes on from draining");
    let step = |phase, because| BTreeMap::from([("n0".to_owned(), Step { phase, because })]);
    let wait = Wait::Readiness { claim: "web-x7k2p".to_owned() };
    told.steps = step(Phase::Draining, Because::WaitsFor(wait));
    assert_eq!(told.node("n0").next, "waits for `web-x7k2p` to become ready");
    told.steps = step(Phase::Terminating, Because::Drained);
    assert_eq!(told.node("n0").next, "terminating: every pod that must leave has left");
    // What it waits for has a name, and explain leads there.
    let protection = Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None };
    let because = "no room".to_owned();
    for (wait, expected) in [
        (Wait::Place { pod: "shop/p".to_owned(), because }, ["NoPlace", "Pod", "shop", "p"]),
        (
            Wait::Person(Box::new(WaitFor::ProtectedPod { pod: web("q").id, protection })),
            ["ProtectedPod", "Pod", "shop", "q"],
        ),
        (
            Wait::Person(Box::new(WaitFor::Pdb {
                pod: web("q").id,
                refused: Refused::NoneAllowed { pdb: "web".to_owned() },
            })),
            ["PodDisruptionBudget", "PodDisruptionBudget", "shop", "web"],
        ),
        (
            Wait::SuccessorUncordoned {
                pod: "shop/p".to_owned(),
                claim: "web-x".to_owned(),
                node: "n9".to_owned(),
            },
            ["SuccessorCordoned", "Node", "", "n9"],
        ),
        (Wait::Cordon { node: "n0".to_owned() }, ["Cordon", "Node", "", "n0"]),
        (Wait::Uncordon { node: "n0".to_owned() }, ["Uncordon", "Node", "", "n0"]),
        (Wait::Removal { claim: "web-x".to_owned() }, ["Removal", "NodeClaim", "", "web-x"]),
    ] {
        told.steps = step(Phase::Draining, Because::WaitsFor(wait.clone()));
        let story = told.node("n0");
        let cause = &story.causes[0];
        let named = &cause.named;
        assert_eq!([cause.reason, named.kind, &named.namespace, &named.name], expected);
        assert_eq!(story.next, format!("waits for {wait}"));
    }
}

#[test]
fn a_node_that_is_gone_says_when_and_by_whom_it_was_replaced() {
    let mut told = Told::default().draining("n0", vec![]).with("n1", node("web", "a", vec![]));
    let of = |told: &Told, name: &str| told.tell(|world| explain_gone(world, name, now()));
    told.running.get_mut("n0").unwrap().claim = "web-0".to_owned();
    let replacement = told.replacements.get_mut("n0").unwrap();
    replacement.old.claim = "web-0".to_owned();
    // It is there.
    assert_eq!((of(&told, "n0"), of(&told, "web-0"), of(&told, "n1")), (None, None, None));
    told.fleet.nodes.remove("n0");
    told.running.remove("n0");
    let under_way = of(&told, "n0").unwrap().to_string();
    assert!(under_way.contains("plan     draining since"), "{under_way}");
    let replacement = told.replacements.get_mut("n0").unwrap();
    replacement.phase = Phase::Done;
    let image = |digits| Some(image(digits, "", 0).id);
    let record = RecordTold {
        pool: Some("web".to_owned()),
        running_image: image("a1"),
        wanted_image: image("b2"),
        finalizers: Vec::new(),
        node_finalizers: Vec::new(),
    };
    told.records.insert("n0".to_owned(), record);
    let coming = SuccessorTold { node: Some("n9".to_owned()), ..SuccessorTold::default() };
    told.successors.insert("web-x7k2p".to_owned(), coming);
    let expected = "
        node     n0   pool web   gone
        claim    web-0
        replaced at 2026-08-03T11:57:00Z (3m ago) by n9 (`web-x7k2p`), because it had drifted
        image    ami-000000a1 → ami-000000b2
        next     nothing to do";
    check(&of(&told, "n0").unwrap(), expected);
    check(&of(&told, "web-0").unwrap(), expected);
    assert_eq!(of(&told, "n2"), None);
    // Its claim is not gone, and nobody here waits for that.
    let record = told.records.get_mut("n0").unwrap();
    record.finalizers = vec!["example.com/backup".to_owned()];
    let story = of(&told, "n0").unwrap();
    let said = "still there, held by finalizer `example.com/backup`";
    assert_eq!(story.causes.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), [said]);
    assert!(story.to_string().contains(said), "{story}");
}

#[test]
fn a_node_that_somebody_deleted_says_so() {
    let mut it = node("web", "a", vec![]);
    let wish = it.wish.as_mut().unwrap();
    (wish.cause, wish.since) = (Cause::Deleted, ago(minutes(9)));
    let told = Told::default().with("n0", it);
    let deleted = "deleted  by somebody, 2026-08-03T11:51:00Z (9m ago)";
    let story = told.node("n0").to_string();
    assert!(story.contains(deleted), "{story}");
    // What we have emptied is deleted by ourselves.
    let mut told = Told::default().draining("n0", vec![]);
    let wish = told.fleet.nodes.get_mut("n0").unwrap().wish.as_mut().unwrap();
    (wish.cause, wish.since) = (Cause::Deleted, ago(minutes(9)));
    assert!(told.node("n0").to_string().contains(deleted));
    told.replacements.get_mut("n0").unwrap().phase = Phase::Terminating;
    assert!(!told.node("n0").to_string().contains("deleted  "));
}

#[test]
fn a_pod_without_a_node_says_whether_it_was_moved() {
    let mut told = Told::default().with("n1", node("web", "a", vec![web("p")]));
    let pending = |name: &str, moved_from: Option<&str>| Pending {
        pod: web(name).id,
        since: ago(minutes(2)),
        moved_from: moved_from.map(str::to_owned),
        from_nodes: moved_from.iter().map(|_| "n0".to_owned()).collect(),
        lacks: Vec::new(),
    };
    told.fleet.pending = vec![pending("q", Some("web")), pending("r", None)];
    let of = |told: &Told, name: &str| told.tell(|world| explain_pod(world, "shop", name, now()));
    let moved = of(&told, "q").unwrap().to_string();
    assert!(moved.contains("it was moved from NodePool `web`"), "{moved}");
    let other = of(&told, "r").unwrap().to_string();
    assert!(other.contains("not because of us"), "{other}");
    assert_eq!(of(&told, "s"), None);
    // What is on its way for it has a name, and why it has not come.
    let coming = SuccessorTold {
        pool: Some("web".to_owned()),
        on_its_way: true,
        failed: Some("EC2 has no capacity".to_owned()),
        ..SuccessorTold::default()
    };
    told.successors.insert("web-x".to_owned(), coming.clone());
    told.successors
        .insert("api-x".to_owned(), SuccessorTold { pool: Some("api".to_owned()), ..coming });
    let fleet = told.tell(|world| explain_fleet(world, now()));
    let pool = told.tell(|world| explain_pool(world, "web", now())).unwrap();
    for story in [of(&told, "q").unwrap(), fleet, pool] {
        let line = "waits for NodeClaim `web-x` to launch: EC2 has no capacity";
        let told = story.to_string();
        assert!(told.contains(line) && !told.contains("api-x"), "{told}");
        let named: Vec<_> =
            story.causes.iter().map(|it| (it.named.kind, &*it.named.name)).collect();
        assert_eq!(named, [("NodeClaim", "web-x")], "{told}");
    }
    assert!(!of(&told, "r").unwrap().to_string().contains("web-x"));
    // One that has a node and does not run there holds its pool as well.
    let stuck = Homeless { pod: web("p").id, since: ago(minutes(7)) };
    told.fleet.homeless.insert("web".to_owned(), stuck);
    let stuck = of(&told, "p").unwrap().to_string();
    assert!(stuck.contains("it was moved here and does not run"), "{stuck}");
}

#[test]
fn lengths_of_time_are_short_to_read() {
    for (seconds, expected) in [
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3600, "1h"),
        (3660, "1h1m"),
        (86_400, "1d"),
        (90_000, "1d1h"),
        (41 * 86_400 + 5000, "41d"),
        (-120, "2m"),
        (i64::MIN, "106751991167300d"),
    ] {
        assert_eq!(relative(SignedDuration::from_secs(seconds)), expected);
    }
    assert_eq!(at("2026-08-03T12:00:00Z"), now());
}

/// What may be a mistake of ours is left alone, and told until somebody has looked.
#[test]
fn what_is_left_for_a_person_is_told_with_what_to_do() {
    let orphan = |node: Option<&str>, kept| Orphan {
        because: "no NodeClaim `web-9` has the UID u9".to_owned(),
        node: node.map(str::to_owned),
        kept,
    };
    let mut told = Told::default().with("n1", node("web", "a", Vec::new()));
    told.fleet.nodes.get_mut("n1").unwrap().wish = None;
    told.drifts.remove("n1");
    told.doubted.machines.insert("i-1".to_owned(), orphan(Some("n1"), Kept::Works));
    told.doubted.missing = [("web-2", "n2"), ("web-3", "n3")]
        .map(|(claim, node)| (claim.to_owned(), node.to_owned()))
        .into();
    let there = told.tell(|it| explain(it, "n1", now())).unwrap();
    assert_eq!(there.causes.last().unwrap().named.name, "i-1");
    let text = there.to_string();
    assert!(text.contains("orphan   i-1 (node n1): no NodeClaim `web-9`"), "{text}");
    assert!(text.contains("its node is ready or has pods"), "{text}");
    assert!(there.next.contains("kubectl drain n1"), "{text}");

    let missing = told.tell(|it| explain(it, "n3", now())).unwrap();
    assert_eq!(missing.causes[0].named.name, "web-3");
    let text = missing.to_string();
    assert!(text.contains("its node n3 is missing; it is not deleted: 2 are missing"), "{text}");
    assert!(missing.next.contains("kubectl delete nodeclaim web-3"), "{text}");
    assert_eq!(told.tell(|it| explain(it, "n4", now())), None);

    let fleet = told.tell(|it| explain_fleet(it, now()));
    let named: Vec<&str> = fleet.causes.iter().map(|it| it.named.name.as_str()).collect();
    assert_eq!(named, ["i-1", "web-2", "web-3"]);
    assert!(fleet.next.contains("kubectl drain n1"), "{fleet}");

    for (kept, because) in [
        (Kept::Several(40), "there are 40 of them at once"),
        (Kept::NoOthers, "there are no other machines"),
    ] {
        let many = (0..40).map(|at| (format!("i-{at:02}"), orphan(None, kept)));
        let all = doubted(&Doubted { machines: many.collect(), ..Doubted::default() });
        let [story] = &all[..] else { panic!("{all:?}") };
        let text = story.to_string();
        assert!(text.contains(because) && text.contains("and 28 more"), "{text}");
        assert_eq!((story.causes.len(), story.facts.len()), (40, 13));
        assert!(story.next.ends_with("terminate-instances --instance-ids i-00`"), "{text}");
    }
    assert_eq!(doubted(&Doubted::default()), []);
}

/// Its claim is hidden among those that nobody can read: that is not "nothing to do".
#[test]
fn a_node_whose_claim_cannot_be_read_names_it() {
    let mut told = Told::default().with("n1", node("web", "a", Vec::new()));
    told.fleet.nodes.get_mut("n1").unwrap().wish = None;
    let unread = "NodeClaim `web-1` cannot be read: spec.expireAfter: `banana`".to_owned();
    told.doubted.unread.insert("web-1".to_owned(), unread.clone());
    // Whoever has a claim is none of those.
    told.drifts.insert("n1".to_owned(), Drift::InSync);
    let story = told.tell(|it| explain(it, "n1", now())).unwrap();
    assert_eq!((story.next.as_str(), story.causes.len()), ("nothing to do", 0), "{story}");

    told.drifts.remove("n1");
    let story = told.tell(|it| explain(it, "n1", now())).unwrap();
    assert!(story.to_string().contains(&unread), "{story}");
    assert_eq!(story.next, "nothing, until NodeClaim `web-1` can be read");
    let [cause] = &story.causes[..] else { panic!("{:?}", story.causes) };
    assert_eq!((cause.named.kind, cause.named.name.as_str()), ("NodeClaim", "web-1"));

    // One that is starting has a claim that can be read.
    let node = Some("n1".to_owned());
    let starts = SuccessorTold { node, on_its_way: true, ..SuccessorTold::default() };
    told.successors.insert("web-2".to_owned(), starts);
    let story = told.tell(|it| explain(it, "n1", now())).unwrap();
    assert!(story.to_string().contains("it has joined, and is not set up yet"), "{story}");
    assert!(story.causes.is_empty() && !story.to_string().contains(&unread), "{story}");
    told.successors.clear();

    // A stranger's node is none of ours.
    told.fleet.nodes.get_mut("n1").unwrap().member.pool = None;
    let story = told.tell(|it| explain(it, "n1", now())).unwrap();
    assert_eq!(story.next, "nothing to do");
}

/// Issue 7: it was not said why a node goes that matches, nor that its machine had ended.
#[test]
fn who_goes_for_another_reason_than_drift_says_so() {
    for (cause, by_name, expected) in [
        (Cause::Expiry, false, "expired  2026-08-03T11:51:00Z (9m ago)"),
        (
            Cause::Asked,
            true,
            "asked    for by a person, by its name: 2026-08-03T11:51:00Z (9m ago)",
        ),
        (
            Cause::Asked,
            false,
            "asked    for by a person, with its pool: 2026-08-03T11:51:00Z (9m ago)",
        ),
        (Cause::Interrupted, false, "machine  ended, as EC2 says: 2026-08-03T11:51:00Z (9m ago)"),
    ] {
        let mut it = node("web", "a", vec![]);
        let wish = it.wish.as_mut().unwrap();
        (wish.cause, wish.since, wish.by_name) = (cause, ago(minutes(9)), by_name);
        let story = Told::default().with("n0", it).node("n0").to_string();
        assert!(story.contains(expected), "{story}");
    }
    // We delete what stands for a machine that has ended.
    let mut told = Told::default().draining("n0", vec![]);
    let wish = told.fleet.nodes.get_mut("n0").unwrap().wish.as_mut().unwrap();
    (wish.cause, wish.since) = (Cause::Deleted, ago(minutes(9)));
    told.replacements.get_mut("n0").unwrap().cause = Cause::Interrupted;
    let story = told.node("n0").to_string();
    assert!(!story.contains("deleted  "), "{story}");
}

/// Issue 7: two budgets of one pod were two lines that said the same.
#[test]
fn what_holds_is_told_once_however_much_it_names() {
    let mut told = Told::default()
        .with("n1", node("web", "a", vec![web("p")]))
        .with("n2", node("web", "a", vec![web("q")]));
    told.fleet.pdbs = vec![pdb("shop", "one", "web", 1), pdb("shop", "two", "web", 1)].into();
    let story = told.tell(|world| explain_pool(world, "web", now())).unwrap();
    let text = story.to_string();
    assert_eq!(text.matches("waiting  2, for example n1").count(), 1, "{text}");
    let named: Vec<&str> = story.causes.iter().map(|it| it.named.name.as_str()).collect();
    assert_eq!(named, ["one", "two"], "{text}");
}

/// Issue 7: with a `terminationGracePeriod` nobody said when a pod that is held is deleted.
#[test]
fn a_deadline_is_told_of_whoever_is_held_until_then() {
    let mut told = Told::default().draining("n0", vec![web("p")]);
    told.fleet.pdbs = vec![pdb("shop", "web", "web", 0)].into();
    told.drains[0].deadline = Some(now() + minutes(10));
    let grace = told.drains[0].pods[0].grace;
    let killed = (now() + minutes(10) - grace).to_string();
    let node = told.node("n0");
    let held = node.facts.iter().find(|it| it.text.starts_with("pod shop/p")).unwrap();
    assert!(held.text.contains(&format!("; deleted at {killed}")), "{node}");
    assert!(node.next.contains("to be gone at 2026-08-03T12:10:00Z (in 10m)"), "{node}");
    let pod = told.tell(|world| explain_pod(world, "shop", "p", now())).unwrap();
    assert!(pod.next.starts_with(&format!("deleted at {killed}")), "{pod}");
    // Nor which error it is that no pod can be asked.
    let why = "the API server did not answer: timeout".to_owned();
    told.drains[0].hindered = Some((ago(minutes(4)), why.clone()));
    let node = told.node("n0");
    let said =
        format!("its pods cannot be asked to leave since 2026-08-03T11:56:00Z (4m ago): {why}");
    assert!(node.to_string().contains(&said), "{node}");
    assert!(node.causes.iter().any(|it| it.reason == "CouldNotAsk" && it.text == said));
}

/// Issue 7: of a node that a person had deleted it was said that its pods had room elsewhere, and nowhere what
/// they lacked.
#[test]
fn pods_that_a_node_has_left_behind_say_what_they_lack() {
    let mut told = Told::default().draining("n0", vec![]).with("n1", node("web", "a", vec![]));
    told.fleet.nodes.remove("n0");
    let replacement = told.replacements.get_mut("n0").unwrap();
    (replacement.cause, replacement.phase) = (Cause::Deleted, Phase::Done);
    replacement.successors.clear();
    let gone = |told: &Told| told.tell(|world| explain_gone(world, "n0", now())).unwrap();
    let said = "by none, because it was deleted: by somebody, or since its machine had ended";
    assert!(gone(&told).to_string().contains(said), "{}", gone(&told));
    let lacks = WaitFor::Limit {
        pod: Some(web("q").id),
        pool: "web".to_owned(),
        resource: "cpu".to_owned(),
        by: "2".parse().ok(),
        counted_by: None,
    };
    let homeless = Homeless { pod: web("q").id, since: ago(minutes(7)) };
    told.fleet.homeless.insert("web".to_owned(), homeless);
    told.fleet.pending = vec![Pending {
        pod: web("q").id,
        since: ago(minutes(7)),
        moved_from: Some("web".to_owned()),
        from_nodes: vec!["n0".to_owned()],
        lacks: vec![lacks],
    }];
    let pod = told.tell(|world| explain_pod(world, "shop", "q", now())).unwrap();
    let pool = told.tell(|world| explain_pool(world, "web", now())).unwrap();
    for story in [gone(&told), told.node("n1"), pod, pool] {
        let text = story.to_string();
        let line = "waits for room in the limits of NodePool `web` (cpu, 2 more) for pod shop/q";
        assert_eq!(text.matches(line).count(), 1, "{text}");
        let limit = |it: &&nodemolt_core::explain::Cause| it.reason == "Limit";
        let limit = story.causes.iter().find(limit).unwrap();
        assert_eq!((limit.named.kind, limit.named.name.as_str()), ("NodePool", "web"));
    }
    told.fleet.pending[0].from_nodes = vec!["n3".to_owned(), "n0".to_owned()];
    let said = "it was moved from there or from n3\n";
    assert!(gone(&told).to_string().contains(said), "{}", gone(&told));
}

/// Issue 7: that it went by no replacement of ours was said of nodes that we had ended ourselves.
#[test]
fn how_a_node_went_is_said_only_where_it_is_known() {
    let claim = || "web-x7k2p".to_owned();
    for (cause, order, because, expected) in [
        (
            Cause::Drift,
            Order::SuccessorFirst,
            Because::DrainLimit { pod: "shop/p".to_owned() },
            "and it went later, by no replacement of ours",
        ),
        (
            Cause::Drift,
            Order::SuccessorFirst,
            Because::SuccessorGone { claim: claim() },
            "the node itself is gone by now",
        ),
        (
            Cause::Drift,
            Order::DeleteFirst,
            Because::NeverRegistered { claim: claim() },
            "the node itself had gone, as it goes before its successor comes",
        ),
        (
            Cause::Deleted,
            Order::SuccessorFirst,
            Because::NeverRegistered { claim: claim() },
            "the node itself had gone\n",
        ),
    ] {
        let mut told = Told::default().draining("n0", vec![]);
        told.fleet.nodes.remove("n0");
        let replacement = told.replacements.get_mut("n0").unwrap();
        (replacement.cause, replacement.order) = (cause, order);
        (replacement.phase, replacement.because) = (Phase::Failed, because);
        let text = told.tell(|world| explain_gone(world, "n0", now())).unwrap().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

/// Found by an attack: one cordoned node stopped every rollout, and was told as fine.
#[test]
fn a_node_that_others_wait_for_says_why_and_they_say_how_it_ends() {
    for (why, says, next, others) in [
        (
            Unavailable::Cordoned,
            "away     cordoned, and not by us (`spec.unschedulable`, or a taint of others): it uses a place in each of its budgets",
            "`kubectl uncordon n0`, if it is to take pods again",
            "starts when n0 takes pods again: `kubectl uncordon n0`",
        ),
        (
            Unavailable::NotReady,
            "away     not ready: it uses a place in each of its budgets",
            "nothing to do",
            "starts when n0 is ready again",
        ),
    ] {
        let mut away = Node { wish: None, ..node("db", "b", vec![]) };
        away.member.standing = Standing::Unavailable(why);
        let told = Told::default().with("n0", away).with("n1", node("web", "a", vec![]));
        let story = told.node("n0");
        assert!(story.to_string().contains(says), "{story}");
        assert_eq!(story.next, next);
        assert_eq!(told.node("n1").next, others);
    }
    // What we have cordoned ourselves is no news.
    let mut told = Told::default().draining("n0", vec![]);
    told.fleet.nodes.get_mut("n0").unwrap().member.standing =
        Standing::Unavailable(Unavailable::Cordoned);
    assert!(!told.node("n0").to_string().contains("away"));
}

/// What a person would have to do stands in the end.
#[test]
fn a_node_that_waits_for_a_person_says_what_would_lift_it() {
    let held = Some(Protection { annotation: DO_NOT_DISRUPT, until: None, unread: None });
    let of_pod = |change: fn(&mut Pod)| -> Change {
        Box::new(move |it| {
            change(Arc::make_mut(&mut it.fleet.nodes.get_mut("n1").unwrap().pods[0]));
        })
    };
    let budget = |healthy, desired| -> Change {
        Box::new(move |it| {
            let one = Pdb {
                current_healthy: healthy,
                desired_healthy: desired,
                ..pdb("shop", "web", "web", 0)
            };
            it.fleet.pdbs = vec![one].into();
        })
    };
    let none = "waiting for pod shop/p: PodDisruptionBudget `web` allows no disruption now (namespace shop): ";
    let cases: Vec<(Change, String, &str)> = vec![
        (
            budget(0, 2),
            format!("{none}0 healthy, 2 wanted"),
            "starts when 3 more pods of PodDisruptionBudget `shop/web` are healthy",
        ),
        (
            budget(2, 2),
            format!("{none}2 healthy, 2 wanted"),
            "starts when one more pod of PodDisruptionBudget `shop/web` is healthy",
        ),
        (
            budget(1, 1),
            format!("{none}1 healthy, 1 wanted: it never allows one"),
            "starts when PodDisruptionBudget `shop/web` wants fewer healthy, or has more pods than it wants",
        ),
        (
            of_pod(|it| it.owner = Owner::Nobody),
            "a person: pod shop/p has no controller".to_owned(),
            "starts when pod shop/p is deleted, or an ImagePolicy for its class says `barePods: Evict`",
        ),
        (
            Box::new(|it| {
                Arc::make_mut(&mut it.fleet.nodes.get_mut("n1").unwrap().pods[0]).owner =
                    Owner::Nobody;
                it.limits.classes.insert("web".to_owned(), ClassRule::of("slowly"));
            }),
            "a person: pod shop/p has no controller".to_owned(),
            "starts when pod shop/p is deleted, or ImagePolicy `slowly` says `barePods: Evict`",
        ),
        (
            Box::new(move |it| it.fleet.nodes.get_mut("n1").unwrap().protection = held.clone()),
            "a person: node n1 says".to_owned(),
            "starts when `karpenter.sh/do-not-disrupt` is taken off node n1",
        ),
        (
            Box::new(|it| it.grants.paused = Some("by ops".to_owned())),
            "paused, by ops".to_owned(),
            "starts after `nodemolt resume`",
        ),
    ];
    for (change, says, next) in cases {
        let mut told = Told::default().with("n1", node("web", "a", vec![web("p")]));
        change(&mut told);
        let story = told.node("n1");
        assert!(story.to_string().contains(&says), "{story}");
        assert_eq!(story.next, next);
    }
}

/// Found by an attack: the pod left when its budget allowed it, and its node was to delete it in a minute.
#[test]
fn a_pod_that_is_forced_says_when() {
    let mut told = Told::default().draining("n0", vec![web("p")]);
    told.fleet.pdbs = vec![pdb("shop", "web", "web", 0)].into();
    told.drains[0].at_limit = AtLimit::Force;
    told.replacements.get_mut("n0").unwrap().at_limit = AtLimit::Force;
    let pod = told.tell(|world| explain_pod(world, "shop", "p", now())).unwrap();
    assert_eq!(pod.next, "deleted at 2026-08-03T12:02:00Z (in 2m), unless that is lifted before");
    let node = told.node("n0");
    let next =
        "the drain limit ends at 2026-08-03T12:02:00Z (in 2m), and then its pods are deleted";
    assert_eq!(node.next, next);
}

#[test]
fn no_time_lets_go_on_what_people_hold() {
    let measured = |mut told: Told| {
        for phase in
            [Phase::Launching, Phase::Joining, Phase::Settling, Phase::Draining, Phase::Terminating]
        {
            told.fleet.pace.insert(phase, minutes(2));
        }
        told
    };
    let drains = |it: Pod| measured(Told::default().draining("n0", vec![it]));
    let found = |told: &Told| told.tell(|world| stuck(world, now())).contains("n0");
    assert!(!found(&drains(web("p"))), "it may leave");
    assert!(found(&drains(Pod { owner: Owner::Nobody, ..web("p") })), "nobody starts it again");
    let mut refused = drains(web("p"));
    refused.fleet.pdbs = vec![pdb("shop", "web", "web", 0)].into();
    assert!(!found(&refused), "the next pod may be ready soon");
    refused.replacements.get_mut("n0").unwrap().since = ago(minutes(11));
    assert!(found(&refused), "it takes longer than a whole replacement did");
    refused.drains[0].at_limit = AtLimit::Force;
    assert!(!found(&refused), "it is deleted in the end");
    let mut paused = drains(web("p"));
    let step = Step { phase: Phase::Draining, because: Because::WaitsFor(Wait::Pause) };
    paused.steps.insert("n0".to_owned(), step);
    assert!(found(&paused));
    paused.fleet.pace.clear();
    assert!(found(&paused), "it does not go on, whether anything was measured or not");
    refused.drains[0].at_limit = AtLimit::Skip;
    assert!(found(&refused));
    refused.fleet.pace.clear();
    assert!(!found(&refused), "nobody is late before anything was measured");
}

/// Found by an attack: nothing was said before somebody waited for it.
#[test]
fn windows_that_nobody_can_read_are_told_before_anybody_waits() {
    let mut told = Told::default().with("n0", Node { wish: None, ..node("web", "a", vec![]) });
    let mut rule = ClassRule::of("mars");
    rule.windows = Some(Err(Unreadable("`Mars/Olympus` is no time zone".to_owned())));
    told.limits.classes.insert("web".to_owned(), rule);
    let says = "policy   ImagePolicy `mars`: nothing may start until its windows can be read: `Mars/Olympus` is no time zone";
    for story in [
        told.node("n0"),
        told.tell(|world| explain_pool(world, "web", now())).unwrap(),
        told.tell(|world| explain_fleet(world, now())),
    ] {
        assert!(story.to_string().contains(says), "{story}");
    }
}

/// Found by an attack: the same nodes were both going and staying, and the pool was never said to be gone.
#[test]
fn who_goes_does_not_stay_and_a_pool_that_is_gone_is_told() {
    let mut told = Told::default().draining("n0", vec![]);
    let because = NoImage::because("NodePool `web` does not exist any more");
    let missing = Missing::ReplacementImage { instance_type: "m7g.large".to_owned(), because };
    told.drifts.insert("n0".to_owned(), Drift::Unknown(missing));
    let story = told.tell(|world| explain_pool(world, "web", now())).unwrap().to_string();
    assert!(story.contains("pool     web   it does not exist"), "{story}");
    assert!(story.contains("going") && !story.contains("staying"), "{story}");
    told.fleet.pools.insert("web".to_owned(), PoolState::default());
    let story = told.tell(|world| explain_pool(world, "web", now())).unwrap().to_string();
    assert!(!story.contains("does not exist"), "{story}");
}
