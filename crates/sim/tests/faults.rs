//! Does every fault go wrong, and does the world get over it?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use nodemolt_core::plan::WaitFor;
use nodemolt_sim::faults::{Side, Writing};
use nodemolt_sim::trace::{Actor, Fact, ReplicaState, Step};
use nodemolt_sim::world::{last_lines, line};
use nodemolt_sim::{Act, World, kinds};
use serde_json::{Value, json};
use support::{NEW, act, begin, hours, images, mins, pods_with_a_home, scenario, text};

/// Issue 7: a node was cordoned again in the turn in which it was found that pods had come to it: where those would go nobody
/// had asked, and they had no place.
#[test]
fn a_node_to_which_pods_came_back_is_not_cordoned_before_they_have_a_place() {
    let mut world = begin(1);
    world.run(mins(2));
    act(&mut world, &format!("publish {NEW}"));
    let terminating = |world: &World| {
        let all = world.objects(kinds::REPLACEMENT);
        all.iter().any(|it| it["status"]["phase"] == "Terminating")
    };
    act(&mut world, "fault crash leader before-send terminate for 10m");
    for _ in 0..1200 {
        world.run(SignedDuration::from_secs(1));
        if terminating(&world) {
            break;
        }
    }
    assert!(terminating(&world), "{}", last_lines(&world, 40));
    act(&mut world, "untaint @leaving");
    let leaving = leaving(&world);
    // Bigger than all that is free elsewhere.
    let pod = format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: late, namespace: default}}, spec: {{replicas: 1, \
         selector: {{matchLabels: {{app: late}}}}, template: {{metadata: {{labels: {{app: late}}}}, spec: {{nodeName: {leaving}, \
         containers: [{{name: c, image: 'x:1', resources: {{requests: {{cpu: 1700m, memory: 1Gi}}}}}}]}}}}}}}}"
    );
    act(&mut world, &format!("apply {}", serde_json::to_string(&pod).unwrap()));
    world.check_laws();
    world.run(hours(2));
    let broken: Vec<_> = world.violations().iter().map(|it| it.violation.to_string()).collect();
    assert_eq!(broken, Vec::<String>::new(), "{}", last_lines(&world, 60));
    let evicted =
        |it: &Step| matches!(&it.fact, Fact::Evicted { pod, .. } if pod.starts_with("late"));
    let late = world.objects(kinds::POD);
    let late = late.iter().find(|it| it["metadata"]["labels"]["app"] == "late").unwrap();
    let moved = world.trace().iter().any(evicted);
    assert!(!moved || late["spec"]["nodeName"].is_string(), "{}", last_lines(&world, 60));
}

/// The old node of the replacement that is under way.
fn leaving(world: &World) -> String {
    let all = world.objects(kinds::REPLACEMENT);
    let open = all.iter().find(|it| it["status"]["phase"] == "Terminating").unwrap();
    open["spec"]["nodeName"].as_str().unwrap().to_owned()
}

/// Issue 7: what a person protects in the middle of its replacement is left alone within seconds.
#[test]
fn who_protects_a_node_in_the_middle_of_it_is_heard() {
    let mut world = begin(1);
    world.check_laws();
    world.run(mins(2));
    act(&mut world, &format!("publish {NEW}"));
    let evictions = |world: &World| {
        world.trace().iter().filter(|it| matches!(it.fact, Fact::Evicted { code: 201, .. })).count()
    };
    for _ in 0..1200 {
        world.run(SignedDuration::from_secs(1));
        if evictions(&world) > 0 {
            break;
        }
    }
    act(&mut world, "annotate node @leaving karpenter.sh/do-not-disrupt=true");
    world.run(SignedDuration::from_secs(10));
    let before = evictions(&world);
    assert!(before > 0, "{}", last_lines(&world, 40));
    world.run(hours(3));
    let protected =
        |it: &Value| it["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"].is_string();
    let nodes = world.objects(kinds::NODE);
    let node = nodes.iter().find(|it| protected(it)).unwrap();
    assert!(node["spec"]["taints"].as_array().is_none_or(Vec::is_empty), "{node}");
    let name = &node["metadata"]["name"];
    let all = world.objects(kinds::REPLACEMENT);
    let record = all.iter().find(|it| it["spec"]["nodeName"] == *name).unwrap();
    let phase = record["status"]["phase"].as_str().unwrap();
    assert!(matches!(phase, "Skipped" | "Kept"), "{phase}");
    assert_eq!(record["status"]["reason"]["word"], "Protected");
    let broken: Vec<_> = world.violations().iter().map(|it| it.violation.to_string()).collect();
    assert_eq!(broken, Vec::<String>::new(), "{}", last_lines(&world, 60));
}

/// Whatever goes wrong for half an hour while two nodes are replaced: some time after it has ended both
/// are, and every pod has a home.
#[test]
fn the_world_gets_over_every_fault() {
    for (seed, fault) in (0..).zip([
        "crash leader",
        "crash operator-0 before-send",
        "crash operator-0 after-send for 1m",
        "crash operator-0 after-answer",
        "freeze leader for 1m",
        "skew operator-0 -300",
        "lose-requests 20%",
        "lose-answers 20%",
        "crash operator-0 before-send launch",
        "crash operator-0 after-send launch",
        "crash operator-0 after-answer ledger",
        "crash operator-0 after-send record",
        "crash operator-0 before-send cordon",
        "crash operator-0 after-send evict",
        "crash operator-0 before-send terminate",
        "freeze leader before-send ledger for 1m",
        "freeze leader after-answer claim for 1m",
        "late-requests 20% by 40s",
        "late-answers 30% by 5s",
        "stale ec2 2m",
        "stale ssm 2m",
        "no-capacity in eu-central-1a for 20m",
        "throttle ec2",
        "throttle ssm",
        "throttle kubernetes for 5m",
        "conflicts 30%",
        "evictions-give-up 50%",
        "twins 100%",
        "no-capacity for 20m",
        "never-joins",
        "never-ready",
        "node-flaps node-1 for 20m",
        "watch-lag 20s",
        "watch-drop",
        "lists-lack subnet-00000000000001111",
        "lists-lack sg-00000000000001111",
    ]) {
        let mut world = begin(seed);
        world.run(mins(2));
        act(&mut world, &format!("publish {NEW}"));
        world.run(mins(1));
        act(&mut world, &format!("fault {fault}"));
        world.run(mins(30));
        act(&mut world, "fault end");
        let over_it = |world: &World| images(world) == [NEW, NEW] && pods_with_a_home(world) == 4;
        let patience = world.now() + hours(4);
        while world.now() < patience && !over_it(&world) {
            world.run(mins(5));
        }
        assert_eq!(images(&world), [NEW, NEW], "{fault}\n{}", last_lines(&world, 40));
        assert_eq!(pods_with_a_home(&world), 4, "{fault}\n{}", last_lines(&world, 40));
    }
}

/// Seed 2486: what two lists lack is gone, by assumption 29, and a list lacked an image that the one before had lacked.
#[test]
fn what_one_list_lacks_the_next_one_has() {
    let mut world = begin(1);
    world.run(mins(2));
    for _ in 0..15 {
        act(&mut world, "fault lists-lack subnet-00000000000001111");
        world.run(mins(3));
    }
    let answers: Vec<bool> = world
        .trace()
        .iter()
        .filter_map(|it| {
            let Fact::Answered { question, complete, .. } = &it.fact else { return None };
            (question == "subnets and groups").then_some(*complete)
        })
        .collect();
    assert!(answers.contains(&false), "{answers:?}");
    assert!(answers.windows(2).all(|it| it[0] || it[1]), "{answers:?}");
}

#[test]
fn a_leader_that_stood_still_believes_that_it_leads_beside_another() {
    let text = text().replace("kubernetes: \"1.33\"", "kubernetes: \"1.33\"\nreplicas: 2");
    let mut world = World::new(&scenario(&text), 5).unwrap();
    world.run(mins(2));
    act(&mut world, "fault freeze leader for 1m");
    world.run(mins(2));
    let states: Vec<(u8, ReplicaState)> = world
        .trace()
        .iter()
        .filter_map(|it| {
            let Fact::Replica { number, state } = &it.fact else { return None };
            Some((*number, *state))
        })
        .filter(|(_, it)| matches!(it, ReplicaState::Leads | ReplicaState::Follows))
        .collect();
    let (first, second) = match states.as_slice() {
        [(first, ReplicaState::Leads), (second, ReplicaState::Leads), rest @ ..] => {
            assert_eq!(rest, [(*first, ReplicaState::Follows)]);
            (*first, *second)
        }
        other => panic!("{other:?}\n{}", last_lines(&world, 40)),
    };
    assert_ne!(first, second);
}

/// Both have sent what they decided; what the first sends when it goes on changes nothing.
#[test]
fn a_leader_that_stood_still_before_it_wrote_the_ledger_is_refused() {
    let text = text().replace("kubernetes: \"1.33\"", "kubernetes: \"1.33\"\nreplicas: 2");
    let mut world = World::new(&scenario(&text), 5).unwrap();
    world.check_laws();
    world.run(mins(2));
    act(&mut world, "fault freeze leader before-send ledger for 1m");
    act(&mut world, &format!("publish {NEW}"));
    world.run(mins(10));
    let leaders: Vec<u8> = world.trace().iter().filter_map(leads).collect();
    let [first, second, ..] = leaders[..] else { panic!("{leaders:?}") };
    assert_ne!(first, second);
    let refused = world.trace().iter().filter(|it| {
        it.by == Actor::Operator(first)
            && matches!(&it.fact, Fact::Refused { what, .. } if what.starts_with("DisruptionLedger"))
    });
    assert_eq!(refused.count(), 1, "{}", last_lines(&world, 60));
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

fn leads(step: &Step) -> Option<u8> {
    let Fact::Replica { number, state: ReplicaState::Leads } = &step.fact else { return None };
    Some(*number)
}

/// The process dies where the words say, and not at the next renewal of its lease.
#[test]
fn a_crash_waits_for_its_moment_and_another_process_goes_on() {
    for side in Side::ALL {
        for wrote in Writing::ALL {
            let what = format!("{} {}", side.as_str(), wrote.as_str());
            let mut world = begin(2);
            // Images are remembered and templates made when they are first needed.
            act(&mut world, &format!("fault crash leader {what} for 30s"));
            world.run(mins(1));
            act(&mut world, &format!("publish {NEW}"));
            world.run(mins(20));
            let of = |wanted: ReplicaState| {
                let is =
                    |it: &&Step| matches!(it.fact, Fact::Replica { state, .. } if state == wanted);
                world.trace().iter().filter(is).count()
            };
            assert_eq!(of(ReplicaState::Crashed), 1, "{what}\n{}", last_lines(&world, 20));
            assert_eq!(of(ReplicaState::Started), 2, "{what}");
            let struck = &world.struck().writes;
            assert_eq!(struck.keys().collect::<Vec<_>>(), [&(wrote, side)], "{what}");
        }
    }
}

/// A machine that was made and not told of, and that lists do not show yet, is asked for again with the same
/// token.
#[test]
fn a_crash_after_a_launch_was_sent_makes_no_second_machine() {
    let mut world = begin(2);
    world.run(mins(5));
    act(&mut world, "fault crash leader after-send launch for 30s");
    act(&mut world, "fault stale ec2 4m for 8m");
    act(&mut world, &format!("publish {NEW}"));
    world.run(mins(6));
    let asked: Vec<(&str, bool)> = world
        .trace()
        .iter()
        .filter_map(|it| {
            let Fact::LaunchAsked { token, made, .. } = &it.fact else { return None };
            Some((token.as_str(), *made))
        })
        .collect();
    let [(first, true), (again, false), ..] = asked[..] else { panic!("{asked:?}") };
    assert_eq!(first, again);
}

/// A late request is done when nobody waits for it any more: here, when nobody is left who could.
#[test]
fn a_late_request_takes_effect_late() {
    let mut late = Vec::new();
    for seed in 0..8 {
        let mut world = begin(seed);
        world.run(mins(2));
        act(&mut world, "fault late-requests 30% by 40s for 1m");
        world.run(mins(1));
        act(&mut world, "fault crash operator-0 for 10m");
        let alone = world.now();
        world.run(mins(5));
        let ours = world.trace().iter().filter(|it| matches!(it.by, Actor::Operator(_)));
        let written = ours
            .filter(|it| matches!(it.fact, Fact::Stored { .. } | Fact::Refused { .. }))
            .filter(|it| it.at > alone);
        late.extend(written.map(|it| it.at.duration_since(alone).as_secs()));
    }
    assert!(!late.is_empty() && late.iter().all(|it| *it <= 41), "{late:?}");
}

#[test]
fn somebody_is_chosen_when_it_happens() {
    let mut world = begin(1);
    let gone = |world: &mut World, line: &str| {
        let act: Act = line.parse().unwrap();
        world.act(&act).map_err(|it| it.gone)
    };
    world.run(mins(2));
    assert_eq!(gone(&mut world, "fault node-dies @successor"), Err(true));
    assert_eq!(gone(&mut world, "delete nodeclaim @leaving"), Err(true));
    assert_eq!(gone(&mut world, "fault node-dies @nobody"), Err(false));
    assert_eq!(gone(&mut world, "delete unicorn @any"), Err(false));
    act(&mut world, "upgrade node/node-0");
    let found = |world: &World| {
        let told: Vec<String> = world.trace().iter().map(line).collect();
        told.iter().any(|it| it.contains("upgrade node/node-0"))
    };
    assert!(found(&world));
    world.run(mins(2));
    act(&mut world, "fault node-flaps @leaving for 1s");
    let told: Vec<String> = world.trace().iter().map(line).collect();
    assert!(told.iter().any(|it| it.contains("fault: node-flaps node-0 for 1s")));
}

#[test]
fn what_cannot_be_struck_is_named() {
    let mut world = begin(1);
    for (words, told) in [
        ("crash operator-2", "there is no operator-2"),
        ("node-dies node-9", "node-9"),
        ("node-flaps node-9", "node-9"),
        ("pdb-never default/cart", "default/cart"),
    ] {
        let act: Act = format!("fault {words}").parse().unwrap();
        let refused = world.act(&act).unwrap_err().to_string();
        assert!(refused.contains(told), "{words}: {refused}");
    }
}

#[test]
fn a_dead_nodes_machine_is_gone() {
    let mut world = begin(1);
    world.run(mins(2));
    act(&mut world, "fault node-dies node-1");
    world.run(mins(3));
    let told: Vec<String> = world.trace().iter().map(line).collect();
    assert!(told.iter().any(|it| it.contains("is terminated")), "{}", told.join("\n"));
}

/// Its codes, in order.
fn evictions(world: &World) -> Vec<u16> {
    let codes = world.trace().iter().filter_map(|it| {
        let Fact::Evicted { code, .. } = &it.fact else { return None };
        Some(*code)
    });
    codes.collect()
}

/// Pods that could not be asked have not refused: their node is given up neither meanwhile nor afterwards,
/// though the limit of its drain is five minutes.
#[test]
fn an_eviction_that_the_api_server_gives_up_is_not_held_against_the_pod() {
    let mut world = begin(3);
    world.check_laws();
    let pdb = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "default", "name": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "shop"}}},
    });
    act(&mut world, &format!("apply {}", Value::from(pdb.to_string())));
    world.run(mins(2));
    act(&mut world, "fault evictions-give-up 100% for 25m");
    act(&mut world, &format!("publish {NEW}"));
    world.run(mins(24));
    let given_up = evictions(&world);
    assert!(given_up.len() > 5, "{given_up:?}\n{}", last_lines(&world, 60));
    assert_eq!(given_up.iter().filter(|it| **it != 504).count(), 0, "{given_up:?}");
    world.run(mins(20));
    let phases: Vec<String> = world.trace().iter().map(line).collect();
    let skipped = phases.iter().find(|it| it.contains("retreating") || it.contains("skipped"));
    assert_eq!(skipped, None, "{}", last_lines(&world, 60));
    assert_eq!(images(&world), [NEW, NEW], "{}", last_lines(&world, 60));
    assert_eq!(pods_with_a_home(&world), 4);
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

/// A turn that began before the answer came decides as if it had not come.
#[test]
fn an_eviction_that_was_accepted_is_not_asked_for_again() {
    for seed in 0..10 {
        let mut world = begin(seed);
        world.run(mins(2));
        act(&mut world, &format!("publish {NEW}"));
        world.run(mins(20));
        let mut accepted: Vec<&str> = Vec::new();
        for step in world.trace() {
            if let Fact::Evicted { uid: Some(uid), code: 201, .. } = &step.fact {
                assert!(!accepted.contains(&uid.as_str()), "{seed}: {}", line(step));
                accepted.push(uid);
            }
        }
        assert!(accepted.len() >= 4, "{seed}: {accepted:?}");
    }
}

/// The second one joins and keeps everybody away, as no claim registers it; the claim has the first.
#[test]
fn of_two_machines_for_one_claim_the_second_ends() {
    let mut world = begin(4);
    world.check_laws();
    world.run(mins(2));
    act(&mut world, "fault twins 100%");
    act(&mut world, &format!("publish {NEW}"));
    world.run(mins(40));
    let mut by_token: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut live: BTreeSet<&str> = BTreeSet::new();
    for step in world.trace() {
        if let Fact::Machine(it) = &step.fact {
            by_token.entry(&it.token).or_default().insert(&it.id);
            match it.state {
                "terminated" | "shutting-down" => live.remove(it.id.as_str()),
                _ => live.insert(&it.id),
            };
        }
    }
    assert!(by_token.values().any(|it| it.len() == 2), "{}", last_lines(&world, 40));
    assert_eq!(images(&world), [NEW, NEW], "{}", last_lines(&world, 60));
    assert_eq!(live.len(), 2, "{live:?}\n{}", last_lines(&world, 60));
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

fn phases(world: &World) -> Vec<String> {
    let all = world.objects(nodemolt_sim::kinds::REPLACEMENT);
    all.iter().map(|it| it["status"]["phase"].as_str().unwrap_or_default().to_owned()).collect()
}

/// How many claims there ever were.
fn claims_made(world: &World) -> usize {
    let named = world.trace().iter().filter_map(|it| {
        let Fact::Stored { resource, object, .. } = &it.fact else { return None };
        object["metadata"]["name"].as_str().filter(|_| resource.kind == "NodeClaim")
    });
    named.collect::<BTreeSet<_>>().len()
}

fn waits(world: &World) -> BTreeSet<&'static str> {
    let picture = world.picture().unwrap();
    picture.plan.waiting.values().flat_map(|it| it.all().map(WaitFor::reason)).collect()
}

/// Issue 7: each step came late by as much as the clock was ahead, and successors that were ready were given up for it.
#[test]
fn a_wrong_clock_neither_delays_nor_burns_what_is_under_way() {
    for (seed, skew) in (0..).zip([600, 1000, 3600, 50, -50, -600, -1000, -3600]) {
        let mut world = begin(seed);
        world.check_laws();
        world.run(mins(2));
        act(&mut world, &format!("publish {NEW}"));
        while phases(&world).is_empty() {
            world.run(jiff::SignedDuration::from_secs(5));
        }
        let known = claims_made(&world);
        act(&mut world, &format!("fault skew operator-0 {skew:+}"));
        world.run(mins(11));
        let told = last_lines(&world, 60);
        let of_first = &phases(&world)[0];
        assert_eq!(of_first, "Done", "{skew}\n{told}");
        // Nothing that was under way was given up, and by a clock that is wrong nothing else has begun.
        if !(-60..=60_i64).contains(&skew) {
            assert_eq!(phases(&world), ["Done"], "{skew}\n{told}");
            assert_eq!(waits(&world), BTreeSet::from(["ClocksApart"]), "{skew}");
            let way = if skew > 0 { "ahead of" } else { "behind" };
            let warnings = world.picture().unwrap().warnings();
            assert!(warnings.iter().any(|it| it.contains(way)), "{skew}: {warnings:?}");
        }
        act(&mut world, "fault end");
        world.run(mins(15));
        let told = last_lines(&world, 60);
        assert_eq!(phases(&world), ["Done", "Done"], "{skew}\n{told}");
        assert_eq!(images(&world), [NEW, NEW], "{skew}\n{told}");
        assert!(claims_made(&world) <= known.max(3) + 1, "{skew}\n{told}");
        assert_eq!(world.picture().unwrap().warnings(), Vec::<String>::new());
        assert!(world.violations().is_empty(), "{skew}: {:?}", world.violations());
    }
}

/// A clock that was wrong when somebody began to look is known to be wrong before anything begins.
#[test]
fn nothing_begins_by_a_clock_that_is_known_to_be_wrong() {
    for (seed, skew) in (0..).zip([61, 86_400, -75, -86_400]) {
        let mut world = begin(seed);
        world.check_laws();
        act(&mut world, &format!("fault skew operator-0 {skew:+}"));
        world.run(mins(2));
        act(&mut world, &format!("publish {NEW}"));
        world.run(mins(30));
        let told = last_lines(&world, 40);
        assert_eq!(phases(&world), Vec::<String>::new(), "{skew}\n{told}");
        assert_eq!(waits(&world), BTreeSet::from(["ClocksApart"]), "{skew}\n{told}");
        assert!(world.violations().is_empty(), "{skew}: {:?}", world.violations());
    }
}
