//! Does a claim get one machine, and only one?

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use nodemolt_core::claim::ATTEMPTS_MAX;
use nodemolt_core::drain::{self, Owner};
use nodemolt_core::explain::Kept;
use nodemolt_core::launch::STATIC_VERSION;
use nodemolt_core::policy::{Quarantine, Which};
use nodemolt_core::replace::{Old, OldSeen, SuccessorSeen};
use nodemolt_core::seen::{
    Complaint, DISRUPTED_TAINT, Kind, MachineId, ObjectName, Readiness, Stage,
};
use nodemolt_core::wanted::{Beside, Purpose};
use nodemolt_fit::taint::{Effect, Taint};
use nodemolt_fit::{Quantity, Written, label};

use super::{ClaimDone, Deed, Launch, MARKED_FOR, old_seen, successor_seen, token};
use crate::port::{LaunchError, MachineState};
use world::{GOOD, NEWER, Next, World, at, image, offered, requirement, stamp, wants};

const SECONDS: fn(i64) -> SignedDuration = SignedDuration::from_secs;
const MINUTES: fn(i64) -> SignedDuration = SignedDuration::from_mins;

type Changes = fn(&mut World);
type Comes = fn(&World);

fn no_capacity() -> Next {
    Next::Fail(LaunchError::NoCapacity(vec![("c5.large".to_owned(), "eu-west-1a".to_owned())]))
}

/// The launch that is decided now.
#[track_caller]
fn launch(world: &mut World) -> Launch {
    let acts = world.decide().acts;
    match acts.into_iter().next().map(|it| it.deed) {
        Some(Deed::Launch(launch)) => *launch,
        other => panic!("no launch, but {other:?}"),
    }
}

/// Type, zone and subnet of each choice, in order.
fn choices(launch: &Launch) -> Vec<String> {
    let told = |it: &nodemolt_core::seen::Choice| {
        format!("{} {} {}", it.instance_type, it.zone.trim_start_matches("eu-west-"), it.subnet)
    };
    launch.attempt.request.choices.iter().map(told).collect()
}

#[test]
fn a_life_from_claim_to_nothing() {
    let mut world = World::new();
    world.turn();
    assert_eq!(
        world.heard(),
        ["record attempt 1", "prepare for ami-0000000a", "launch uid-web-1-1", "write Launched"]
    );
    let claim = world.claim();
    assert_eq!(claim.machine, Some(MachineId("i-1".to_owned())));
    assert_eq!(claim.image, Some(image(GOOD)));
    assert_eq!(claim.labels[label::INSTANCE_TYPE], "c5.large");
    assert_eq!(claim.labels[label::ARCH], "amd64");
    assert_eq!(claim.labels["team"], "web");
    assert!(claim.capacity.contains_key("memory"));
    assert_eq!(
        successor_seen(&world.view.borrow(), &claim, at(0)),
        SuccessorSeen::Launched { pods: 0 }
    );

    assert_eq!(world.turn(), [], "it waits for its node");
    world.join("n1", "i-1");
    world.turn();
    assert_eq!(world.heard(), ["register n1 example.com/note", "write Registered"]);
    assert_eq!(world.turn(), [], "the node is not ready");
    world.edit_node("n1", |it| it.ready = Readiness::Ready);
    world.pass(SECONDS(10));
    world.turn();
    assert_eq!(world.heard(), ["register n1", "write Initialized"]);
    world.list();
    world.pass(SECONDS(60));
    world.list();
    let quiet = world.decide();
    assert!(quiet.acts.is_empty() && quiet.steps.is_empty(), "{quiet:?}");
    let seen = successor_seen(&world.view.borrow(), &world.claim(), at(0));
    assert!(matches!(seen, SuccessorSeen::Ready { pods: 0, .. }), "{seen:?}");

    // A person deletes the node.
    world.run_pod("p1", "n1");
    let now = world.now.get();
    world.edit_node("n1", |it| it.deleting_since = Some(now));
    world.turn();
    assert_eq!(world.heard(), ["delete claim web-1"]);
    world.pass(SECONDS(10));
    assert_eq!(world.turn(), [], "nobody has cordoned it");
    let taint = Taint::new(DISRUPTED_TAINT, "", Effect::NoSchedule);
    world.edit_node("n1", |it| it.fit.taints.push(taint));
    assert_eq!(world.turn(), [], "a pod is there");
    let key = world.view.borrow().pods.iter().next().map(nodemolt_core::seen::Pod::key);
    world.view.borrow_mut().pods.remove(&key.unwrap());
    world.turn();
    assert_eq!(world.heard(), ["terminate i-1"]);
    world.pass(SECONDS(10));
    assert_eq!(world.turn(), [], "it was told to go, and is not told again at once");
    world.list();
    assert_eq!(world.turn(), [], "it goes");
    world.end_machine("i-1");
    world.list();
    world.turn();
    world.turn();
    assert_eq!(world.heard(), ["release node n1", "release claim web-1"]);
    assert_eq!(world.turn(), []);
    let old =
        Old { node: "n1".to_owned(), claim: "web-1".to_owned(), claim_uid: "uid-web-1".to_owned() };
    assert_eq!(old_seen(&world.view.borrow(), &old, "uid-web-1", at(0)), OldSeen::Gone);
}

/// What is required, what is requested, and what is asked for.
type Case<'a> = (&'a str, Vec<Written>, &'a [(&'a str, i64)], &'a [&'a str]);

#[test]
fn the_cheapest_that_fit_are_asked_for() {
    let only = |capacity: &str| vec![requirement(label::CAPACITY_TYPE, &[capacity])];
    let cases: [Case<'_>; 7] = [
        (
            "on-demand",
            only("on-demand"),
            &[],
            &[
                "c5.large 1a subnet-a2",
                "c5.large 1b subnet-b1",
                "m5.large 1a subnet-a2",
                "m5.large 1b subnet-b1",
                "m5.xlarge 1a subnet-a2",
                "m5.xlarge 1b subnet-b1",
            ],
        ),
        (
            "spot by its own prices, all of them below on-demand or not",
            only("spot"),
            &[],
            &["m5.large 1a subnet-a2", "c5.large 1b subnet-b1", "m5.large 1b subnet-b1"],
        ),
        (
            "spot, without those that are dearer than on-demand",
            vec![requirement(label::CAPACITY_TYPE, &["spot", "on-demand"])],
            &[],
            &["m5.large 1a subnet-a2", "c5.large 1b subnet-b1"],
        ),
        ("reserved before all", Vec::new(), &[], &["m5.xlarge 1b subnet-b1"]),
        (
            "a type and a zone, by old names too",
            vec![
                requirement(label::CAPACITY_TYPE, &["on-demand"]),
                requirement("beta.kubernetes.io/instance-type", &["m5.large"]),
                requirement(label::ZONE, &["eu-west-1b"]),
            ],
            &[],
            &["m5.large 1b subnet-b1"],
        ),
        (
            "what its pods need",
            only("on-demand"),
            &[("cpu", 3)],
            &["m5.xlarge 1a subnet-a2", "m5.xlarge 1b subnet-b1"],
        ),
        (
            "a GPU where one is asked for",
            only("on-demand"),
            &[("nvidia.com/gpu", 1)],
            &["g5.2xlarge 1a subnet-a2", "g5.2xlarge 1b subnet-b1"],
        ),
    ];
    for (name, requirements, requests, expected) in cases {
        let mut world = World::new();
        world.edit(|it| {
            it.requirements = requirements;
            let amount = |(name, it): &(&str, i64)| ((*name).to_owned(), Quantity::from_units(*it));
            it.requests = requests.iter().map(amount).collect();
        });
        assert_eq!(choices(&launch(&mut world)), expected, "{name}");
    }
}

#[test]
fn a_request_says_whose_the_machine_is() {
    let mut world = World::new();
    let launch = launch(&mut world);
    let tags = &launch.attempt.request.tags;
    for (key, value) in [
        ("kubernetes.io/cluster/blue", "owned"),
        ("eks:eks-cluster-name", "blue"),
        ("karpenter.sh/nodepool", "web"),
        ("karpenter.sh/nodeclaim", "web-1"),
        ("nodemolt.dev/nodeclaim-uid", "uid-web-1"),
    ] {
        assert_eq!(tags.get(key).map(String::as_str), Some(value), "{key}");
    }
    let template = launch.templates.first().unwrap();
    assert_eq!(launch.templates.len(), 1, "one image, one template");
    assert!(launch.attempt.request.choices.iter().all(|it| it.template == template.name()));
    assert_eq!(template.instance_profile, "nodes");
    let told = template.user_data.as_deref().unwrap();
    assert!(told.contains("karpenter.sh/capacity-type=on-demand"), "{told}");
    assert!(told.contains("karpenter.sh/unregistered"), "{told}");
    assert_eq!(token("u", 2), "u-2");
}

#[test]
fn too_many_choices_are_cut_at_their_price() {
    let mut world = World::new();
    let names: Vec<&str> =
        nodemolt_fit::Types::shipped().iter().map(|it| it.name.as_str()).collect();
    world.offered = Some(offered(&names));
    world.edit(|it| it.requirements.push(requirement(label::ARCH, &["amd64"])));
    let all = launch(&mut world);
    let types: std::collections::BTreeSet<&str> =
        all.attempt.request.choices.iter().map(|it| it.instance_type.as_str()).collect();
    assert!(types.len() <= super::TYPES_MAX && types.len() > 10, "{}", types.len());
    assert!(all.attempt.request.choices.len() <= super::CHOICES_MAX);
    assert_eq!(choices(&all)[0], "c5.large 1a subnet-a2", "known prices first");
}

#[test]
fn min_values_are_kept_or_nothing_is_asked_for() {
    let mut world = World::new();
    let ask = |need| {
        move |it: &mut nodemolt_core::seen::Claim| {
            let mut family = requirement(label::FAMILY, &["m5", "c5", "g5"]);
            family.min_values = Some(need);
            it.requirements = vec![requirement(label::CAPACITY_TYPE, &["on-demand"]), family];
        }
    };
    world.edit(ask(3));
    assert!(choices(&launch(&mut world)).contains(&"g5.2xlarge 1a subnet-a2".to_owned()));
    world.edit(|it| it.requirements[1].min_values = Some(4));
    let decided = world.decide();
    let why = decided.steps["web-1"].because.to_string();
    assert!(why.contains("has 3 of 4 values"), "{why}");
    assert!(!decided.acts.iter().any(|it| matches!(it.deed, Deed::Launch(_))));
}

#[test]
fn an_empty_fleet_is_proved_and_the_next_attempt_goes_elsewhere() {
    let mut world = World::new();
    let c5 = vec![
        ("c5.large".to_owned(), "eu-west-1a".to_owned()),
        ("c5.large".to_owned(), "eu-west-1b".to_owned()),
        ("m5.xlarge".to_owned(), "eu-west-1a".to_owned()),
    ];
    world.edit(|it| {
        it.requirements.push(requirement(label::INSTANCE_TYPE, &["c5.large", "m5.xlarge"]));
    });
    let fail = Next::Fail(LaunchError::NoCapacity(c5.clone()));
    world.next.borrow_mut().extend([fail.clone(), fail]);
    let done = world.turn();
    assert!(matches!(&done[..], [ClaimDone::NoCapacity { .. }]), "{done:?}");
    let heard = world.heard();
    assert_eq!(
        heard,
        [
            "record attempt 1",
            "prepare for ami-0000000a",
            "launch uid-web-1-1",
            "launch uid-web-1-1",
            "list machines",
            "attempt 1 ended: no capacity: c5.large in eu-west-1a, c5.large in eu-west-1b, m5.xlarge in \
             eu-west-1a",
        ]
    );
    // All choices of that attempt rest, also for one who remembers nothing.
    let decided = world.decide();
    let why = decided.steps["web-1"].because.to_string();
    assert!(why.contains("had no capacity, next try at 1970-01-01T00:03:00Z"), "{why}");
    assert_eq!(decided.wake_at, Some(at(3)));
    world.memory = super::Memory::default();
    assert!(!world.decide().acts.iter().any(|it| matches!(it.deed, Deed::Launch(_))));
    // Other claims are told only what had none.
    world.pass(MARKED_FOR);
    let again = launch(&mut world);
    assert_eq!((again.attempt.number, again.recorded), (2, false));
    assert!(again.attempt.last_ended.is_some());
}

#[test]
fn marks_of_one_claim_hold_for_the_next() {
    let mut world = World::new();
    world.next.borrow_mut().extend([no_capacity(), no_capacity()]);
    world.turn();
    world.edit(|it| it.attempt = None);
    assert_eq!(choices(&launch(&mut world))[0], "c5.large 1b subnet-b1");
}

#[test]
fn it_is_given_up_after_some_attempts() {
    let mut world = World::new();
    world.edit(|it| it.successor_of = Some("uid-old".to_owned()));
    world.open.insert("uid-old".to_owned(), Purpose::Wave);
    for _ in 0..100 {
        world.next.borrow_mut().clear();
        world.next.borrow_mut().extend([no_capacity(), no_capacity()]);
        world.turn();
        world.pass(SECONDS(30));
    }
    let launches = world.heard().iter().filter(|it| it.starts_with("record attempt")).count();
    assert_eq!(launches, usize::try_from(ATTEMPTS_MAX).unwrap());
    let seen = successor_seen(&world.view.borrow(), &world.claim(), world.now.get());
    let SuccessorSeen::Launching { gave_up: Some(why) } = seen else { panic!("{seen:?}") };
    assert!(why.starts_with("no capacity"), "{why}");
    assert!(world.claim().deleting_since.is_none(), "its Replacement removes it");
    world.open.clear();
    world.turn();
    assert_eq!(world.heard(), ["delete claim web-1"]);
}

#[test]
fn a_lost_answer_makes_no_second_machine() {
    let mut world = World::new();
    world.next.borrow_mut().push_back(Next::Lose);
    let done = world.turn();
    assert!(matches!(&done[..], [ClaimDone::Launch(LaunchError::Unanswered(_))]), "{done:?}");
    world.pass(SECONDS(2));
    world.turn();
    assert_eq!(world.machines.borrow().len(), 1);
    assert_eq!(world.claim().machine, Some(MachineId("i-1".to_owned())));
    let heard = world.heard();
    assert_eq!(heard.iter().filter(|it| *it == "record attempt 1").count(), 1, "{heard:?}");
}

#[test]
fn a_machine_that_nobody_wrote_down_is_found_by_its_tags() {
    let mut world = World::new();
    world.conflict.set(true);
    world.turn();
    assert_eq!(world.claim().machine, None);
    world.pass(SECONDS(2));
    world.list();
    // Not even a quarantine of its image lets a machine be forgotten.
    world.wanted = None;
    world.heard();
    world.turn();
    assert_eq!(world.heard(), ["write Launched"]);
    assert_eq!(world.claim().machine, Some(MachineId("i-1".to_owned())));
    assert!(world.claim().capacity.contains_key("cpu"));
}

#[test]
fn a_rule_that_changes_in_between_stops_the_call() {
    let mut world = World::new();
    let acts = world.decide().acts;
    let quarantine = Quarantine {
        name: "bad".to_owned(),
        image: Which::Id(image(GOOD)),
        reason: "it crashes".to_owned(),
        evidence: Vec::new(),
        expires_at: None,
    };
    world.view.borrow_mut().quarantines.insert("bad".to_owned(), quarantine);
    let done = world.perform(&acts[0]);
    assert!(matches!(&done, ClaimDone::Withheld(why) if why.contains("may boot")), "{done:?}");
    assert_eq!(world.heard(), Vec::<String>::new(), "nothing was even recorded");

    let mut world = World::new();
    let acts = world.decide().acts;
    world.view.borrow_mut().classes.values_mut().for_each(|it| it.generation = 2);
    assert!(matches!(world.perform(&acts[0]), ClaimDone::Withheld(_)));
    let mut world = World::new();
    let acts = world.decide().acts;
    world.edit(|it| it.deleting_since = Some(at(0)));
    assert!(matches!(world.perform(&acts[0]), ClaimDone::Withheld(_)));
}

#[test]
fn an_attempt_whose_image_may_not_boot_any_more_is_proved_empty_first() {
    let mut world = World::new();
    world.next.borrow_mut().push_back(Next::Fail(LaunchError::Unanswered("lost".to_owned())));
    world.turn();
    world.heard();
    world.wanted = Some(wants(NEWER));
    for _ in 0..8 {
        world.pass(MINUTES(1));
        world.list();
        world.turn();
    }
    let heard = world.heard();
    let launches: Vec<&String> = heard.iter().filter(|it| !it.starts_with("write")).collect();
    assert_eq!(
        launches,
        [
            "attempt 1 ended: ami-0000000a may not boot on c5.large any more: ami-0000000b is wanted now",
            "record attempt 2",
            "prepare for ami-0000000b",
            "launch uid-web-1-2",
        ]
    );
    assert_eq!(world.claim().image, Some(image(NEWER)));
}

#[test]
fn a_first_call_that_is_refused_has_made_nothing() {
    let mut world = World::new();
    let refused = || Next::Fail(LaunchError::Refused("quota".to_owned()));
    world.next.borrow_mut().extend([refused(), refused()]);
    assert_eq!(world.turn(), [ClaimDone::Nothing("EC2 refuses: quota".to_owned())]);
    assert_eq!(world.claim().attempt.unwrap().ended.as_deref(), Some("EC2 refuses: quota"));

    // One that was called before may have: only lists can tell.
    let mut world = World::new();
    world.next.borrow_mut().push_back(Next::Fail(LaunchError::Unanswered("lost".to_owned())));
    world.turn();
    world.pass(SECONDS(2));
    world.next.borrow_mut().push_back(refused());
    assert!(matches!(&world.turn()[..], [ClaimDone::Refused { attempt: 1, .. }]));
    world.pass(MINUTES(2));
    world.list();
    world.pass(MINUTES(2));
    world.list();
    world.turn();
    assert_eq!(world.claim().attempt.unwrap().ended, None);
    world.pass(MINUTES(2));
    world.list();
    world.pass(MINUTES(1));
    world.list();
    world.turn();
    assert_eq!(world.claim().attempt.unwrap().ended.as_deref(), Some("EC2 refuses: quota"));
}

#[test]
fn a_template_that_somebody_removed_is_made_again() {
    let mut world = World::new();
    let name = launch(&mut world).templates[0].name();
    world.next.borrow_mut().push_back(Next::Fail(LaunchError::NoSuchTemplate(name.clone())));
    assert!(matches!(&world.turn()[..], [ClaimDone::Launched(_)]));
    let prepared = world.heard().iter().filter(|it| it.starts_with("prepare")).count();
    assert_eq!(prepared, 2);

    // One that cannot be made any more ends its attempt, once that is proved.
    let mut world = World::new();
    let gone = || Next::Fail(LaunchError::NoSuchTemplate(name.clone()));
    world.next.borrow_mut().extend([gone(), gone()]);
    assert!(matches!(&world.turn()[..], [ClaimDone::Nothing(_)]));
}

#[test]
fn doubt_leads_to_nothing() {
    let blind: [fn(&mut World); 5] = [
        |it| it.offered = None,
        |it| it.network = None,
        |it| it.wanted = None,
        |it| {
            let name = ObjectName {
                kind: Kind::Policy,
                namespace: String::new(),
                name: "strict".to_owned(),
            };
            let complaint = Complaint { field: "spec".to_owned(), message: "no".to_owned() };
            it.view.borrow_mut().unreadable.insert(name, vec![complaint]);
        },
        |it| {
            it.edit(|it| it.class.group = "karpenter.k8s.aws".to_owned());
        },
    ];
    for (at, blind) in blind.into_iter().enumerate() {
        let mut world = World::new();
        blind(&mut world);
        assert_eq!(world.turn(), [], "case {at}");
    }
    // A machine that lists do not have yet, under a claim that waits for its node.
    let mut world = World::new();
    world.turn();
    world.machines.borrow_mut().clear();
    world.list();
    world.pass(MINUTES(1));
    world.list();
    assert_eq!(world.turn(), []);
}

/// A world with `live` machines of claims that are there, and one for each of `strays`.
fn with_strays(strays: &[&str]) -> World {
    let mut world = World::new();
    world.turn();
    let model = world.machines.borrow().values().next().cloned().unwrap();
    for uid in strays {
        let mut stray = model.clone();
        stray.id = MachineId(format!("i-stray-{uid}"));
        stray.token = Some(token(uid, 1));
        stray.tags.insert(super::CLAIM_UID_TAG.to_owned(), (*uid).to_owned());
        stray.tags.insert(super::CLAIM_TAG.to_owned(), format!("of-{uid}"));
        world.machines.borrow_mut().insert(stray.id.clone(), stray);
    }
    world.list();
    world.pass(MINUTES(4));
    world.join("n1", "i-1");
    world.turn();
    world.heard();
    world
}

#[test]
fn what_nobody_stands_for_is_removed_late_and_only_with_proof() {
    let ends = |world: &mut World| -> Vec<String> {
        world.turn();
        world.heard().into_iter().filter(|it| it.starts_with("terminate")).collect()
    };
    let mut world = with_strays(&["x"]);
    world.list();
    assert_eq!(ends(&mut world), Vec::<String>::new(), "too young");
    world.pass(MINUTES(1));
    world.list();
    assert_eq!(ends(&mut world), ["terminate i-stray-x"]);

    let mut world = with_strays(&["x"]);
    world.pass(MINUTES(1));
    let early = world.now.get() - MINUTES(1);
    world.lists.clear();
    world.lists.push((BTreeMap::new(), early));
    world.list();
    assert_eq!(ends(&mut world), Vec::<String>::new(), "in one list only");

    let mut world = with_strays(&["x"]);
    world.pass(MINUTES(1));
    world.list();
    world.view.borrow_mut().fresh.insert(Kind::Claim, at(0));
    assert_eq!(ends(&mut world), Vec::<String>::new(), "claims are not current");

    let mut world = with_strays(&["x"]);
    world.pass(MINUTES(1));
    world.list();
    let name = ObjectName { kind: Kind::Claim, namespace: String::new(), name: "of-x".to_owned() };
    world.view.borrow_mut().unreadable.insert(name, Vec::new());
    assert_eq!(ends(&mut world), Vec::<String>::new(), "its claim cannot be read");

    // Who does somebody's work, or is not alone, or is all there is: a person looks first.
    let spared: [(&[&str], Changes); 5] = [
        (&["x", "y"], |_| {}),
        (&["x"], |it| {
            it.join("n-x", "i-stray-x");
            it.edit_node("n-x", |it| {
                it.ready = Readiness::Ready;
                it.fit.taints.clear();
            });
        }),
        (&["x"], |it| {
            it.join("n-x", "i-stray-x");
            it.run_pod("p1", "n-x");
        }),
        (&["x"], |it| {
            it.machines.borrow_mut().remove(&MachineId("i-1".to_owned()));
            it.list();
            it.pass(SECONDS(40));
            it.list();
        }),
        (&["x"], |it| {
            it.join("n-x", "i-stray-x");
            it.run_hidden_pod("p1", "n-x");
        }),
    ];
    for (at, (strays, spare)) in spared.into_iter().enumerate() {
        let mut world = with_strays(strays);
        world.pass(MINUTES(1));
        world.list();
        spare(&mut world);
        // What no watch has told of is found by the hand.
        let kept = |world: &mut World| -> Vec<Kept> {
            world.decide().orphans.kept.into_values().map(|it| it.kept).collect()
        };
        let told = match at {
            0 => vec![Kept::Several(2); 2],
            1 | 2 => vec![Kept::Works],
            3 => vec![Kept::NoOthers],
            _ => Vec::new(),
        };
        assert_eq!(kept(&mut world), told, "case {at}");
        assert_eq!(ends(&mut world), Vec::<String>::new(), "case {at}");
        // Machines are listed every five minutes, and people look in between.
        world.pass(MINUTES(4));
        assert_eq!(kept(&mut world), told, "case {at}, later");
    }
}

/// By a call that came late, with a token of its own; or by EC2, which made two with one. That its node is up
/// says nothing: nobody registers it, so nobody runs there.
#[test]
fn a_second_machine_of_a_claim_that_has_one_is_removed() {
    for number in [7, 1] {
        let second = || {
            let world = with_strays(&["uid-web-1"]);
            world.machines.borrow_mut().values_mut().for_each(|it| {
                it.tags.insert(super::CLAIM_TAG.to_owned(), "web-1".to_owned());
                if it.id.0 != "i-1" {
                    it.token = Some(token("uid-web-1", number));
                }
            });
            world.join("n-2", "i-stray-uid-web-1");
            world.edit_node("n-2", |it| it.ready = Readiness::Ready);
            world.pass(MINUTES(1));
            world
        };
        let ends = |world: &mut World| {
            world.list();
            world.turn();
            let heard = world.heard().into_iter();
            heard.filter(|it| it.starts_with("terminate")).collect::<Vec<_>>()
        };
        assert_eq!(ends(&mut second()), ["terminate i-stray-uid-web-1"], "attempt {number}");

        let mut world = second();
        world.run_pod("p1", "n-2");
        assert_eq!(ends(&mut world), Vec::<String>::new(), "attempt {number}: a pod is on it");

        // What the claim has may be gone, and then nobody knows which one is to stay.
        let mut world = second();
        world.machines.borrow_mut().get_mut(&MachineId("i-1".to_owned())).unwrap().state =
            MachineState::ShuttingDown;
        assert_eq!(ends(&mut world), Vec::<String>::new(), "attempt {number}: its own one ends");
    }
}

/// Seed 3680: EC2 made two machines for each of two claims that were given up a moment later. Without the claims nobody knew
/// whose the others were, and of two strangers nobody ends one without asking.
#[test]
fn a_claim_that_is_deleted_goes_after_all_of_its_machines() {
    for works in [false, true] {
        let mut world = with_strays(&["uid-web-1"]);
        for it in world.machines.borrow_mut().values_mut() {
            it.tags.insert(super::CLAIM_TAG.to_owned(), "web-1".to_owned());
        }
        world.join("n-2", "i-stray-uid-web-1");
        if works {
            world.run_pod("p1", "n-2");
        }
        let now = world.now.get();
        world.edit_node("n1", |it| it.deleting_since = Some(now));
        world.edit(|it| it.deleting_since = Some(now));
        world.end_machine("i-1");
        let mut heard = Vec::new();
        for _ in 0..5 {
            world.pass(SECONDS(40));
            world.list();
            world.turn();
            heard.extend(world.heard());
        }
        let ends = |it: &String| it.starts_with("terminate") || it.starts_with("release");
        heard.retain(ends);
        let (node, claim) = ("release node n1", "release claim web-1");
        let expected = if works {
            // What a person has to look at holds no claim.
            vec![node, claim]
        } else {
            vec![node, "terminate i-stray-uid-web-1", claim]
        };
        assert_eq!(heard, expected, "works: {works}");
    }
}

#[test]
fn a_machine_whose_labels_were_never_written_gets_all_of_them_before_its_node_does() {
    let mut world = World::new();
    world.turn();
    world.list();
    world.edit(|it| drop(it.labels.remove(label::FAMILY)));
    world.join("n1", "i-1");
    world.pass(SECONDS(10));
    world.heard();
    world.turn();
    assert_eq!(world.claim().labels.get(label::FAMILY).map(String::as_str), Some("c5"));
    assert_eq!(world.heard(), ["write"], "its node is not registered before");
    world.pass(SECONDS(10));
    world.turn();
    let view = world.view.borrow();
    assert_eq!(view.nodes["n1"].fit.labels.get(label::FAMILY).map(String::as_str), Some("c5"));
}

/// Karpenter beside us: its claims are its own, unless it was we who asked for their machine.
#[test]
fn whose_class_is_not_ours_is_left_alone_unless_we_asked_for_its_machine() {
    let mut world = World::new();
    world.edit(|it| it.class.group = "karpenter.k8s.aws".to_owned());
    assert_eq!(world.turn(), []);

    let mut world = World::new();
    world.turn();
    world.list();
    world.heard();
    let now = world.now.get();
    // The last class of ours is gone, and a machine is to end.
    world.view.borrow_mut().classes.clear();
    world.edit(|it| {
        it.class.group = "karpenter.k8s.aws".to_owned();
        it.deleting_since = Some(now);
    });
    world.pass(SECONDS(10));
    world.turn();
    assert_eq!(world.heard(), ["terminate i-1"]);
}

#[test]
fn a_machine_without_our_mark_is_nobodys_orphan() {
    let mut world = with_strays(&["x"]);
    for it in world.machines.borrow_mut().values_mut() {
        it.tags.remove(super::CLAIM_UID_TAG);
    }
    world.pass(MINUTES(1));
    world.list();
    world.pass(MINUTES(1));
    world.list();
    assert_eq!(world.decide().orphans, super::Orphans::default());
}

#[test]
fn stamps_of_another_version_are_written_anew() {
    let mut world = World::new();
    world.turn();
    world.join("n1", "i-1");
    world.turn();
    world.edit_node("n1", |it| it.ready = Readiness::Ready);
    world.pass(SECONDS(10));
    world.turn();
    world.list();
    world.heard();
    let ours = stamp(&format!("{STATIC_VERSION}new"));
    let beside = Beside { class_stamp: Some(ours.clone()), ..Beside::default() };
    world.wanted = Some(wants(GOOD).beside(beside));
    world.edit(|it| it.class_stamp = Some(stamp("nodemolt-static/v0:old")));
    world.turn();
    assert_eq!(world.heard(), [format!("write {}", ours.digest)]);
    world.pass(SECONDS(10));
    assert_eq!(world.turn(), []);
    // What has drifted keeps its stamp, or the drift would be forgiven.
    world.edit(|it| it.class_stamp = Some(stamp("nodemolt-static/v0:old")));
    world.wanted =
        Some(wants(NEWER).beside(Beside { class_stamp: Some(ours), ..Beside::default() }));
    assert_eq!(world.turn(), []);
}

#[test]
fn a_node_whose_claim_was_taken_by_force_is_let_go() {
    let mut world = World::new();
    world.turn();
    world.join("n1", "i-1");
    world.turn();
    let now = world.now.get();
    world.edit_node("n1", |it| it.deleting_since = Some(now));
    world.view.borrow_mut().claims.clear();
    world.end_machine("i-1");
    world.list();
    world.pass(MINUTES(1));
    world.list();
    world.heard();
    world.turn();
    assert_eq!(world.heard(), ["release node n1"]);
}

#[test]
fn a_node_that_vanished_takes_its_claim_with_it_after_a_while() {
    let mut world = World::new();
    world.turn();
    world.join("n1", "i-1");
    world.pass(SECONDS(10));
    world.turn();
    world.heard();
    world.pass(SECONDS(10));
    assert!(world.claim().stages.contains_key(&Stage::Registered));
    let node = world.view.borrow_mut().nodes.remove("n1").unwrap();
    world.run_pod("p1", "n1");
    assert_eq!(world.turn(), []);
    world.pass(SECONDS(59));
    assert_eq!(world.turn(), []);
    world.pass(SECONDS(1));
    assert_eq!(world.turn(), [], "whether its machine runs is not known");
    world.list();
    assert_eq!(world.turn(), [], "a pod is bound to it");
    let pod = world.view.borrow().pods.iter().next().map(nodemolt_core::seen::Pod::key);
    world.view.borrow_mut().pods.remove(&pod.unwrap());
    // A list that was not whole: the API server has it.
    world.hidden.borrow_mut().nodes.insert("n1".to_owned(), node);
    assert!(matches!(&world.turn()[..], [ClaimDone::Withheld(why)] if why.contains("is there")));
    world.hidden.take();
    world.pass(MINUTES(1));
    // More than one at once is nothing that people do.
    let twin = nodemolt_core::seen::Claim {
        name: "web-2".to_owned(),
        uid: "uid-web-2".to_owned(),
        machine: Some(MachineId("i-2".to_owned())),
        node: Some("n2".to_owned()),
        ..world.claim()
    };
    let machine = world.machines.borrow().values().next().cloned().unwrap();
    let machine = crate::port::Machine { id: MachineId("i-2".to_owned()), ..machine };
    world.machines.borrow_mut().insert(machine.id.clone(), machine);
    world.add(twin);
    world.list();
    world.decide();
    world.pass(MINUTES(1));
    let decided = world.decide();
    let missing: Vec<(&str, &str)> =
        decided.missing.iter().map(|(claim, node)| (claim.as_str(), node.as_str())).collect();
    assert_eq!(missing, [("web-1", "n1"), ("web-2", "n2")]);
    assert_eq!(world.turn(), []);
    world.view.borrow_mut().claims.remove("web-2");
    world.turn();
    assert_eq!(world.heard(), ["delete claim web-1"]);
}

/// Life 7628: two pods that tolerate everything ran on a node that was never ready. Nobody would have evicted them, so it
/// counted as empty, and its claim was deleted past their budget.
#[test]
fn a_node_that_is_never_set_up_is_kept_for_whoever_would_have_to_move() {
    type Pod = Option<fn(&mut drain::Pod)>;
    let gone: &[&str] = &["delete claim web-1"];
    let cases: [(&str, Pod, &[&str]); 4] = [
        ("nobody is there", None, gone),
        ("it belongs to the node", Some(|it| it.owner = Owner::DaemonSet), gone),
        ("it would be evicted", Some(|_| {}), &[]),
        ("it would end with the machine", Some(|it| it.tolerates_cordon = true), &[]),
    ];
    for (what, pod, expected) in cases {
        let mut world = World::new();
        world.turn();
        world.join("n1", "i-1");
        world.turn();
        assert!(world.claim().stages.contains_key(&Stage::Registered));
        if let Some(change) = pod {
            world.run_pod("p1", "n1");
            let mut view = world.view.borrow_mut();
            let mut pod = view.pods.on("n1").next().unwrap().clone();
            change(Arc::make_mut(&mut pod.drain));
            view.pods.insert(pod);
        }
        world.pass(MINUTES(16));
        world.list();
        world.heard();
        // One that no watch has told of is asked for right before.
        world.run_hidden_pod("p2", "n1");
        assert_eq!(world.turn().is_empty(), expected.is_empty(), "{what}");
        assert_eq!(world.heard(), Vec::<String>::new(), "{what}");
        world.hidden.take();
        world.pass(MINUTES(1));
        world.turn();
        assert_eq!(world.heard(), expected, "{what}");
    }
}

#[test]
fn the_end_of_a_machine_waits_for_pods_until_the_last_moment() {
    let mut world = World::new();
    world.turn();
    world.join("n1", "i-1");
    world.turn();
    let now = world.now.get();
    let taint = Taint::new(DISRUPTED_TAINT, "", Effect::NoSchedule);
    world.edit_node("n1", |it| {
        it.fit.taints.push(taint);
        it.deleting_since = Some(now);
    });
    world.edit(|it| it.deleting_since = Some(now));
    world.pass(SECONDS(10));
    world.list();
    world.heard();
    let acts = world.decide().acts;
    assert!(matches!(acts[0].deed, Deed::Terminate { .. }), "{acts:?}");
    // A pod came while the hand was on its way; whether or not a watch has told of it.
    let comes: [(Comes, &str); 3] = [
        (|it| it.run_hidden_pod("p0", "n1"), "1 pods are still to leave"),
        (|it| it.run_pod("p1", "n1"), "1 pods are still to leave"),
        (|it| it.deposed.set(true), "another leads"),
    ];
    for (comes, why) in comes {
        comes(&world);
        let done = world.perform(&acts[0]);
        assert_eq!(done, ClaimDone::Withheld(why.to_owned()));
        assert_eq!(world.heard(), Vec::<String>::new());
        world.hidden.take();
        if why == "another leads" {
            world.deposed.set(false);
        } else {
            let pods: Vec<_> =
                world.view.borrow().pods.iter().map(nodemolt_core::seen::Pod::key).collect();
            for pod in &pods {
                drop(world.view.borrow_mut().pods.remove(pod));
            }
        }
    }
    world.run_hidden_pod("p0", "n1");
    world.edit(|it| it.termination_grace_period = Some(SECONDS(30)));
    world.pass(SECONDS(30));
    world.turn();
    assert_eq!(world.heard(), ["terminate i-1"]);
    assert!(world.machines.borrow().values().all(|it| it.state == MachineState::ShuttingDown));
}
