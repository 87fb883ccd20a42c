//! Each law has lives told by hand that break it, and only it; and there is one that breaks none.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::SignedDuration;
use nodemolt_sim::laws::{Law, Laws, Violation, hash_of, same_life};
use nodemolt_sim::trace::{Actor, Fact, ReplicaState};
use serde_json::json;

#[path = "laws/cases.rs"]
mod cases;
#[path = "laws/tale.rs"]
mod tale;

use cases::{
    CASES, bound_to_its_machine, cordoned_late, evicted_late, granted_after_the_end_of,
    held_for_people, paused_before_cordon, rebuilt, told_late,
};
use tale::{NEW, OLD, Tale, US, begun, latest, sound};

/// Of the whole life, and at rest in the end.
fn judge(tale: &Tale) -> (Laws, Vec<Violation>) {
    let mut laws = Laws::default();
    laws.expect("nodemolt.dev/general", BTreeSet::from([OLD.to_owned(), NEW.to_owned()]));
    let mut broken: Vec<Violation> = tale.steps.iter().flat_map(|it| laws.see(it)).collect();
    broken.extend(laws.at_rest(tale.now));
    (laws, broken)
}

#[test]
fn a_sound_life_breaks_no_law() {
    let (laws, broken) = judge(&sound());
    assert_eq!(broken, []);
    let premises = laws.premises();
    for law in [
        Law::Quiet,
        Law::Budget,
        Law::Succession,
        Law::NoOrphansNoTwins,
        Law::Settling,
        Law::Eviction,
        Law::UsersWords,
        Law::Home,
        Law::OwnMachines,
        Law::CordonUndone,
    ] {
        assert!(premises.contains_key(&law), "the sound life says nothing about: {law}");
    }
    assert!(!premises.contains_key(&Law::Halt));
}

/// What was begun comes to an end: nothing else is to be complained of.
fn finished(law: Law, mut tale: Tale) -> Tale {
    if law == Law::Eviction {
        tale.settle();
    } else if law == Law::Partition {
        tale.turn(&[], |_| ());
    }
    tale
}

#[test]
fn a_slot_is_free_when_the_old_machine_is_gone() {
    let (_, broken) = judge(&granted_after_the_end_of("SuccessorFirst", false));
    assert_eq!(broken, []);
    // A person deleted it, say, and whoever follows is not there yet.
    let (_, broken) = judge(&granted_after_the_end_of("SuccessorFirst", true));
    assert!(broken.iter().any(|it| it.law == Law::Budget), "{broken:#?}");
}

/// Where the old node goes first its grant outlives it and its claim: in the budget that it was taken from.
#[test]
fn a_grant_counts_in_its_own_class_after_its_node_has_gone() {
    let granted_beside = |other: &str| {
        let mut tale = begun();
        tale.change(Actor::Person, "EC2NodeClass", "/general", |it| {
            it["metadata"]["labels"] = json!({"goes": "first"});
        });
        let selector = json!({"matchLabels": {"goes": "first"}});
        let rollout = json!({"concurrency": 1, "replacement": "DeleteFirst"});
        tale.store(Actor::Person, "EC2NodeClass", "", json!({"metadata": {"name": "plain"}}));
        tale.store(
            Actor::Person,
            "ImagePolicy",
            "",
            json!({"metadata": {"name": "first"}, "spec": {"classSelector": selector, "rollout": rollout}}),
        );
        tale.change(Actor::Fate, "NodeClaim", "/n3", |it| {
            it["spec"]["nodeClassRef"]["name"] = json!("plain");
        });
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["disruption"]["budgets"] = json!([{"nodes": "100%"}]);
        });
        tale.wait(120);
        tale.granted("n1");
        tale.change(US, "Replacement", "/claim-n1", |it| {
            it["status"]["order"] = json!("DeleteFirst");
        });
        tale.machine("n1", OLD, "terminated");
        tale.remove(US, "NodeClaim", "/n1");
        tale.remove(US, "Node", "/n1");
        tale.wait(120);
        tale.ledger(&["n1", other], 1);
        let mut broken = judge(&tale).1;
        broken.retain(|it| it.law == Law::Budget);
        broken
    };
    assert_eq!(granted_beside("n3"), []);
    assert_eq!(granted_beside("n2").len(), 1);
}

/// Who dies between grant and record has started nothing, and a lost ledger does not know of it.
#[test]
fn a_grant_that_was_never_recorded_fills_no_batch() {
    for recorded in [true, false] {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] = json!({"cooldown": "1h"});
        });
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        if recorded {
            tale.record("n1", "Done");
        }
        tale.ledger(&[], 1);
        tale.wait(1200);
        tale.ledger(&["n2"], 1);
        tale.ledger(&[], 1);
        let broken = judge(&tale).1;
        assert_eq!(!broken.is_empty(), recorded, "{broken:#?}");
    }
}

/// Whom a budget holds back it says itself: one that is for people only holds them, and not us.
#[test]
fn a_budget_holds_back_whom_it_says() {
    let mut tale = begun();
    tale.budget(&json!(["People"]));
    tale.change(Actor::Person, "NodeDisruptionBudget", "/one", |it| {
        it["spec"]["maxUnavailable"] = json!(0);
    });
    tale.wait(120);
    tale.ledger(&["n1"], 1);
    tale.ledger(&[], 1);
    assert_eq!(judge(&tale).1, []);
    // One that says nothing of people lets them pass.
    let mut tale = begun();
    tale.budget(&json!(["Controller"]));
    tale.grants(&[("n2", "Replacement")]);
    tale.grants(&[("n2", "Replacement"), ("n1", "Delete")]);
    tale.ledger(&[], 1);
    assert_eq!(judge(&tale).1, []);
}

#[test]
fn a_ledger_that_is_rebuilt_grants_nothing_new() {
    let mut tale = rebuilt();
    tale.ledger(&[], 2);
    assert_eq!(judge(&tale).1, []);
}

/// A process stands still after it has looked, or its call is slow: what it knew when it sent it counts.
#[test]
fn what_arrives_late_is_judged_by_when_it_was_sent() {
    let mut evicted = evicted_late(31);
    evicted.settle();
    for tale in [cordoned_late(31), evicted, told_late(46)] {
        assert_eq!(judge(&tale).1, []);
    }
}

/// Seed 922 of an earlier draw: a pod came onto the node while watches told of pods a minute late.
#[test]
fn who_came_a_moment_ago_is_not_missed_at_a_cordon() {
    for (seconds, fine) in [(30, true), (90, false)] {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.pod("web-too", Some("n1"), true);
        tale.wait(seconds);
        tale.cordoned("n1");
        tale.settle();
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Succession), !fine, "after {seconds} s: {laws:?}");
    }
}

/// Seed 1525 of an earlier draw: a person took the taint off a node in a pause, and its claim was going.
#[test]
fn who_goes_anyway_is_cordoned_in_a_pause() {
    let mut tale = paused_before_cordon();
    tale.end_claim(Actor::Person, "n1");
    tale.cordon("n1");
    tale.emptied();
    tale.resumed();
    tale.ended();
    assert_eq!(judge(&tale).1, []);
}

/// Seed 1435 of an earlier draw: nobody whose clock is behind can tell how old an image is that has just come, and
/// so which one is wanted. When its time has come it can.
#[test]
fn an_image_of_the_future_is_not_held_against_a_slow_clock() {
    let mut tale = latest();
    tale.tell(Actor::Fate, Fact::Fault { what: "skew operator-0 -516".to_owned() });
    tale.turn(&["n1"], |it| it.waits = vec![Tale::waits("n1")]);
    tale.wait(720);
    tale.image("ami-0000000c", "al2023-v3", 0);
    for (seconds, fine) in [(62, true), (600, false)] {
        tale.answered("Parameters", true);
        tale.wait(seconds);
        tale.turn(&[], |it| it.unknown = vec!["n1".to_owned()]);
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Partition), !fine, "after {seconds} s: {laws:?}");
    }
}

/// Seed 1035 of an earlier draw: EC2 did not answer for eight minutes when somebody began to lead, and what it remembered
/// was missing from the first answer that came. It knows when another one lacks it, five minutes later.
#[test]
fn who_has_begun_to_lead_may_doubt_until_it_was_answered_twice() {
    for (answers, fine) in [(1, true), (2, false)] {
        let mut tale = latest();
        tale.replica(0, ReplicaState::Follows);
        tale.replica(0, ReplicaState::Leads);
        tale.answered("Parameters", false);
        tale.turn(&[], |it| it.unknown = vec!["n1".to_owned()]);
        tale.wait(660);
        for _ in 0..answers {
            tale.turn(&[], |it| it.unknown = vec!["n1".to_owned()]);
            tale.answered("Parameters", true);
            tale.wait(310);
        }
        tale.turn(&[], |it| it.unknown = vec!["n1".to_owned()]);
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Partition), !fine, "{answers} answers: {laws:?}");
    }
}

/// Seed 1101 of an earlier draw: a watch that lagged told nothing for a minute and a half, and then told again. Where nothing
/// goes wrong no watch is silent, and no clock is wrong.
#[test]
fn that_there_is_no_news_comes_and_goes_only_where_something_goes_wrong() {
    for (fault, reason, kind, fine) in [
        ("watch-lag 1m28s NodeClaim", "NoNews", "NodeClaim", true),
        ("", "NoNews", "NodeClaim", false),
        ("skew operator-0 +300", "ClocksApart", "Clock", true),
        ("", "ClocksApart", "Clock", false),
    ] {
        let mut tale = begun();
        if fine {
            tale.tell(Actor::Fate, Fact::Fault { what: fault.to_owned() });
            tale.wait(120);
        }
        for silent in [false, true, false] {
            tale.turn(&["n1"], |it| {
                it.waits = vec![Tale::waits("n1")];
                let (_, no_news) = Tale::waits_for("n1", reason, kind, "");
                it.waits[0].1.extend(no_news.into_iter().filter(|_| silent));
            });
            tale.wait(1);
        }
        tale.turn(&[], |_| ());
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Quiet), !fine, "{laws:?}");
    }
}

/// Seed 2362: a person deleted a node that a budget for people keeps, and it waits for that one, whatever we might do. One
/// that holds us only holds no person.
#[test]
fn who_was_deleted_waits_for_the_budgets_that_hold_people() {
    for (gates, fine) in [("People", true), ("Controller", false)] {
        let mut tale = sound();
        tale.budget(&json!([gates]));
        tale.change(Actor::Person, "NodeDisruptionBudget", "/one", |it| {
            it["spec"]["maxUnavailable"] = json!(0);
        });
        tale.wait(120);
        tale.end_claim(Actor::Person, "n2");
        tale.turn(&["n2"], |it| {
            it.waits = vec![Tale::waits_for("n2", "Budget", "NodeDisruptionBudget", "one")];
        });
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.is_empty(), fine, "{gates}: {laws:?}");
    }
}

/// Lives 4713, 4748, 17045, 19783 and 19924: a person deleted a successor before a pod had come to it. The place that it would have
/// taken is still the old node's, or stands in the ledger.
#[test]
fn a_successor_without_pods_is_missed_by_nobody_while_its_replacement_is_open() {
    type Change = fn(&mut Tale);
    let cases: [(&str, Change, bool); 6] = [
        ("the old one is there", |_| (), true),
        ("it bears a pod", |it| it.pod("web-s1", Some("s1"), true), false),
        ("its replacement has ended", |it| it.record("n1", "Failed"), false),
        (
            "it is of an earlier try",
            |it| it.change(US, "Replacement", "/claim-n1", |it| it["status"]["try"] = json!(2)),
            false,
        ),
        ("the old one is gone", |it| it.remove(US, "Node", "/n1"), true),
        (
            "and its slot is free",
            |it| {
                it.remove(US, "Node", "/n1");
                it.ledger(&[], 1);
            },
            false,
        ),
    ];
    for (what, change, fine) in cases {
        let mut tale = begun();
        tale.budget(&json!(["People"]));
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.record("n1", "Retreating");
        change(&mut tale);
        tale.wait(120);
        tale.end_claim(Actor::Person, "s1");
        tale.wait(61);
        tale.tell(US, Fact::TerminateAsked { machine: "i-s1".to_owned() });
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Budget), !fine, "{what}: {laws:?}");
    }
}

/// Lives 3623 and 4737: a person asked for a pool while watches told of pools five minutes late, and twice that where something
/// else was on its way.
#[test]
fn what_no_watch_has_told_yet_is_held_against_nobody() {
    for (fault, before, seconds, fine) in [
        ("watch-lag 5m NodePool", 60, 640, true),
        ("watch-lag 5m NodePool", 60, 700, false),
        ("watch-lag 5m NodePool for 2m", 60, 400, true),
        ("watch-lag 5m NodePool for 2m", 60, 440, false),
        ("watch-lag 5m NodePool", -90, 240, false),
        ("watch-lag 5m PodDisruptionBudget", 60, 240, false),
    ] {
        let mut tale = begun();
        let fault = Fact::Fault { what: fault.to_owned() };
        let late = before < 0;
        if !late {
            tale.tell(Actor::Fate, fault.clone());
            tale.wait(before);
        }
        let asked = tale.now.to_string();
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["metadata"]["annotations"] = json!({"nodemolt.dev/upgrade-requested-at": asked});
        });
        tale.turn(&[], |_| ());
        if late {
            tale.wait(-before);
            tale.tell(Actor::Fate, fault);
            tale.wait(before);
        }
        tale.wait(seconds);
        tale.turn(&[], |_| ());
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Partition), !fine, "after {seconds} s: {laws:?}");
    }
}

/// Life 12117: an image was published between the look that EC2 took and the answer that told of it. The next one was five
/// minutes away.
#[test]
fn an_answer_that_was_on_its_way_tells_of_nothing_new() {
    for (seconds, fine) in [(0, true), (16, false)] {
        let mut tale = latest();
        tale.image(NEW, "al2023-v2", 10);
        tale.wait(seconds);
        tale.answered("Parameters", true);
        tale.turn(&[], |_| ());
        tale.wait(240);
        tale.turn(&[], |_| ());
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Partition), !fine, "after {seconds} s: {laws:?}");
    }
}

/// Seed 10: a node that stopped being ready between the question and the cordon, and got Kubernetes' taint in the same moment.
#[test]
fn a_taint_that_comes_with_the_loss_of_a_node_is_known_as_late_as_that() {
    for (seconds, fine) in [(0, true), (20, false)] {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        let taint = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
        tale.node(Actor::Kubelet, "s1", false, &taint);
        tale.wait(seconds);
        tale.cordoned("n1");
        tale.settle();
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Succession), !fine, "{seconds}: {laws:?}");
    }
}

/// Lives 5495, 8707 and 9320: a node was cordoned or not ready a minute ago, and watches told of nodes later than that.
/// Nobody can tell such a watch from one that has nothing to tell, before it is silent for too long.
#[test]
fn who_is_away_is_known_when_its_watch_has_told() {
    for (fault, waited, fine) in [
        ("lose-requests 1%", 60, true),
        ("lose-requests 1%", 61, false),
        ("watch-lag 80s", 75, true),
        ("watch-lag 80s Node", 75, true),
        ("watch-lag 80s Pod", 75, false),
        // A change that was on its way is told first.
        ("watch-lag 80s", 175, true),
        ("watch-lag 80s", 176, false),
        // It is silent by then, and nothing begins.
        ("watch-lag 10m", 195, true),
        ("watch-lag 10m", 196, false),
        // It was over before.
        ("watch-lag 20s for 1s", 61, false),
    ] {
        let mut tale = begun();
        tale.tell(Actor::Fate, Fact::Fault { what: fault.to_owned() });
        tale.wait(30);
        tale.node(Actor::Kubelet, "n2", false, &json!([]));
        tale.wait(waited);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Budget), !fine, "{fault}, {waited} s: {laws:?}");
    }
}

/// Life 5495: a late watch told of a cordon that was taken back long before. That is asked right before an eviction.
#[test]
fn nobody_leaves_a_node_whose_cordon_was_taken_back() {
    for (seconds, fine) in [(15, true), (16, false)] {
        let mut tale = begun();
        tale.tell(Actor::Fate, Fact::Fault { what: "watch-lag 83s Node".to_owned() });
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.node(US, "n1", true, &json!([]));
        tale.wait(seconds);
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale.settle();
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Eviction), !fine, "after {seconds} s: {laws:?}");
    }
}

/// Life 8206: whoever made the claim had not heard yet that a person had changed the pool. Its node has drifted since it
/// was born, although it runs the newest image.
#[test]
fn who_was_made_by_old_words_may_have_drifted() {
    for (fault, waited, fine) in [
        ("lose-requests 1%", 60, true),
        ("lose-requests 1%", 61, false),
        ("watch-lag 35s NodePool", 130, true),
        ("watch-lag 35s NodePool", 131, false),
        ("watch-lag 35s Pod", 61, false),
    ] {
        let mut tale = latest();
        tale.tell(Actor::Fate, Fact::Fault { what: fault.to_owned() });
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["template"] = json!({"spec": {"expireAfter": "Never"}});
        });
        tale.wait(waited);
        tale.claim(US, "n4");
        tale.machine("n4", NEW, "running");
        tale.claim_status(US, "n4", NEW);
        tale.node(Actor::Kubelet, "n4", true, &json!([]));
        tale.answered("Parameters", true);
        tale.wait(300);
        tale.ledger(&["n4"], 1);
        tale.ledger(&[], 1);
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Doubt), !fine, "{fault}, {waited} s: {laws:?}");
    }
}

/// Life 5268: a grant was on its way for some milliseconds when the lease of its sender ran out. That one knew what it
/// was answered while it led; who leads anew knows nothing of it, and who was answered nothing never did.
#[test]
fn what_was_sent_before_the_lease_ran_out_is_judged_by_what_was_known_then() {
    use ReplicaState::{Crashed, Follows, Leads, Started};
    let cases: [(&[ReplicaState], bool); 6] = [
        (&[Follows], true),
        (&[Crashed], true),
        (&[Follows, Leads], false),
        (&[Crashed, Started, Leads], false),
        (&[Follows, Leads, Follows], false),
        (&[Started, Leads, Crashed], false),
    ];
    for (states, fine) in cases {
        let mut tale = begun();
        for state in states {
            tale.replica(0, *state);
        }
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Doubt), !fine, "{states:?}: {laws:?}");
    }
    // Nor may it have granted what it knew to be as it should.
    for (node, fine) in [("n1", true), ("n2", false)] {
        let mut tale = latest();
        tale.replica(0, Follows);
        tale.ledger(&[node], 1);
        tale.ledger(&[], 1);
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Doubt), !fine, "{node}: {laws:?}");
    }
}

/// Decision 0038: whoever has no claim is moved by nobody of us.
#[test]
fn a_node_of_nobody_uses_no_slot() {
    for (name, fine) in [("stranger", true), ("n2", false)] {
        let mut tale = begun();
        tale.node(Actor::Kubelet, name, true, &json!([]));
        tale.node(Actor::Kubelet, name, false, &json!([]));
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(laws.contains(&Law::Budget), !fine, "{name}: {laws:?}");
    }
}

/// Seed 1973 of an earlier draw: EC2 had no machine for a pod that was moved, and was asked again while nothing else
/// happened. Nobody asks for one that is there.
#[test]
fn a_machine_that_is_not_to_be_had_is_asked_for_again() {
    let asked = |tale: &mut Tale| {
        let (token, error) = ("token-more".to_owned(), Some("no capacity".to_owned()));
        tale.change(US, "NodeClaim", "/more", |it| {
            it["metadata"]["annotations"] = json!({"nodemolt.dev/attempt": "{}"});
        });
        tale.tell(US, Fact::LaunchAsked { token, machine: None, made: false, error });
        tale.turn(&[], |it| it.commands = 1);
    };
    let mut tale = sound();
    tale.claim(US, "more");
    tale.turn(&[], |it| it.wished = vec!["n2".to_owned()]);
    let sound = tale.steps.len();
    let quiet = |tale: &Tale| {
        let mut laws = Laws::default();
        let (before, after) = tale.steps.split_at(sound);
        for it in before {
            laws.see(it);
        }
        after.iter().flat_map(|it| laws.see(it)).filter(|it| it.law == Law::Quiet).count()
    };
    asked(&mut tale);
    tale.wait(600);
    asked(&mut tale);
    // It is given up, and that is an end, too.
    tale.end_claim(US, "more");
    tale.remove(US, "NodeClaim", "/more");
    tale.turn(&[], |_| ());
    assert_eq!(quiet(&tale), 0);
    tale.turn(&[], |it| it.commands = 1);
    assert_eq!(quiet(&tale), 1);
}

/// Seed 424: a watch told of a budget's ups and downs when they were minutes old, and whoever had begun to lead meanwhile
/// decided by each of them. Once all of it is told nothing excuses a to and fro.
#[test]
fn who_hears_of_old_changes_decides_by_them() {
    for (fault, waited, excused) in [
        ("watch-lag 5m PodDisruptionBudget for 1m", 240, true),
        ("watch-lag 5m for 1m", 240, true),
        ("watch-lag 5m", 240, true),
        ("watch-lag 5m PodDisruptionBudget for 1m", 361, false),
        ("watch-lag 30s for 1m", 240, false),
        ("lose-requests 10% for 1m", 240, false),
    ] {
        let mut tale = begun();
        tale.tell(Actor::Fate, Fact::Fault { what: fault.to_owned() });
        tale.wait(waited);
        tale.goes_to_and_fro();
        let broken = judge(&tale).1;
        let goes_to_and_fro = broken.iter().any(|it| it.law == Law::Quiet);
        assert_eq!(goes_to_and_fro, !excused, "{fault}, {waited} s: {broken:#?}");
    }
}

/// Seed 1776 of this draw: a pod that tolerates everything ran on the second machine that EC2 had made. Who belongs to a
/// node keeps no machine.
#[test]
fn a_machine_of_nobody_stays_while_somebody_works_there() {
    for (owner, stays) in [(Some("StatefulSet"), true), (None, true), (Some("DaemonSet"), false)] {
        let mut tale = sound();
        tale.machine_for("i-left", "nobody", NEW, "running");
        tale.node(Actor::Kubelet, "left", true, &json!([]));
        tale.change(Actor::Kubelet, "Node", "/left", |it| {
            it["spec"]["providerID"] = json!("aws:///eu-central-1a/i-left");
        });
        tale.pod("on-left", Some("left"), true);
        tale.change(Actor::Kubelet, "Pod", "shop/on-left", |it| {
            let owners =
                owner.map(|it| json!({"kind": it, "name": "o", "uid": "o", "controller": true}));
            it["metadata"]["ownerReferences"] = json!(owners.into_iter().collect::<Vec<_>>());
        });
        let broken = judge(&tale).1;
        let left = broken.iter().any(|it| it.law == Law::NoOrphansNoTwins);
        assert_eq!(left, !stays, "{owner:?}: {broken:#?}");
    }
}

/// Seed 3772: EC2 was throttled for nine minutes, and a pod that tolerates everything came to the node meanwhile. Who was
/// there before the claim was deleted is not passed over. Seed 1269 of this draw: the machine had died before.
#[test]
fn who_comes_to_a_node_that_goes_for_good_goes_along() {
    for (came_late, died) in [(false, false), (true, false), (false, true)] {
        let mut tale = bound_to_its_machine();
        tale.pod("web-n2", Some("n2"), false);
        tale.wait(120);
        if came_late {
            tale.remove(Actor::Kubelet, "Pod", "shop/web-n1");
        }
        if died {
            tale.machine("n1", OLD, "shutting-down");
        }
        tale.end_claim(US, "n1");
        tale.wait(10);
        if came_late {
            tale.pod("web-n1", Some("n1"), true);
        }
        tale.wait(540);
        tale.tell(US, Fact::TerminateAsked { machine: "i-n1".to_owned() });
        tale.machine("n1", OLD, "shutting-down");
        let broken = judge(&tale).1;
        let ended = broken.iter().any(|it| it.law == Law::Eviction);
        assert_eq!(ended, !came_late && !died, "{came_late} {died}: {broken:#?}");
    }
}

#[test]
fn each_law_has_lives_that_break_it_and_only_it() {
    let mut wrong = Vec::new();
    for (what, law, life) in CASES {
        let (_, broken) = judge(&finished(*law, life()));
        let laws: BTreeSet<Law> = broken.iter().map(|it| it.law).collect();
        if laws != BTreeSet::from([*law]) {
            wrong.push(format!("{what} ({law}): {broken:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each place in the laws that can complain has a life above in which it does.
#[test]
fn every_clause_has_a_life_that_breaks_it() {
    let mut spoke: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (_, law, life) in CASES {
        for (file, line) in judge(&finished(*law, life())).0.clauses() {
            let name = Path::new(file).file_name().unwrap().to_string_lossy().into_owned();
            spoke.entry(name).or_default().insert(*line);
        }
    }
    let mut silent = Vec::new();
    let laws = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/laws");
    let mut folders = vec![laws];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
            if path.is_dir() { &mut folders } else { &mut files }.push(path);
        }
    }
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, line) in text.lines().enumerate().filter(|it| it.1.contains(".broken(")) {
            let number = u32::try_from(at + 1).unwrap();
            if !spoke.get(&name).is_some_and(|it| it.contains(&number)) {
                silent.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(silent.is_empty(), "no life above breaks\n{}", silent.join("\n"));
}

/// What is said is not believed, and what is so is: these wait for ever, and may.
#[test]
fn a_node_may_wait_for_what_only_people_lift() {
    let protected = |it: &mut serde_json::Value| {
        it["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    };
    let mut tale = sound();
    tale.change(Actor::Person, "Pod", "shop/web-n2", protected);
    tale.turn(&["n2"], |it| {
        it.waits = vec![Tale::waits_for("n2", "ProtectedPod", "Pod", "web-n2")];
    });
    assert_eq!(judge(&tale).1, []);
    let mut tale = sound();
    tale.change(Actor::Person, "PodDisruptionBudget", "shop/web", |it| {
        it["spec"]["maxUnavailable"] = json!(0);
        it["status"]["desiredHealthy"] = json!(3);
    });
    let (why, kind) = ("PodDisruptionBudget", "PodDisruptionBudget");
    tale.turn(&["n2"], |it| it.waits = vec![Tale::waits_for("n2", why, kind, "web")]);
    assert_eq!(judge(&tale).1, []);
    let mut tale = held_for_people();
    tale.turn(&["n2"], |it| it.waits = vec![Tale::waits_behind("n2", "n1")]);
    assert_eq!(judge(&tale).1, []);
    // The only pod that is ready waits for one that was moved, and for nobody's replacement.
    let waits = |ready: bool| {
        let mut tale = sound();
        tale.pod("web-n3", Some("n3"), false);
        tale.pod("web-s1", Some("s1"), ready);
        let made = tale.now.to_string();
        tale.change(Actor::Kubelet, "Pod", "shop/web-s1", |it| {
            it["metadata"]["creationTimestamp"] = json!(made);
        });
        let workload = "ReplicaSet shop/web";
        tale.turn(&["n2"], |it| {
            it.waits = vec![Tale::waits_for("n2", "SharedWorkload", "Workload", workload)];
        });
        judge(&tale).1
    };
    assert!(waits(true).iter().any(|it| it.law == Law::Settling), "it is not the only one");
    assert_eq!(waits(false).iter().filter(|it| it.law == Law::Settling).count(), 0);
}

/// Seed 9456: two pods that are to be spread over nodes, each of which needs one of its own as long as the old node stands. Where
/// they need not be spread, or one is enough, there is room for it.
#[test]
fn pods_that_are_spread_over_nodes_may_need_more_than_the_limits_allow() {
    for (word, pods, fine) in
        [("DoNotSchedule", 2, true), ("DoNotSchedule", 1, false), ("ScheduleAnyway", 2, false)]
    {
        let mut tale = sound();
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["limits"] = json!({"nodes": "4"});
        });
        let all = [("web-n2", "n2"), ("web-too", "n2"), ("web-n3", "n3"), ("web-s1", "s1")];
        for (pod, node) in all.into_iter().filter(|it| pods == 2 || it.0 != "web-too") {
            tale.pod(pod, Some(node), true);
            tale.change(Actor::Kubelet, "Pod", &format!("shop/{pod}"), |it| {
                it["spec"]["topologySpreadConstraints"] = json!([{
                    "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": word,
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }]);
            });
        }
        tale.turn(&["n2"], |it| {
            it.waits = vec![Tale::waits_for("n2", "Limit", "NodePool", "web")];
        });
        let laws: Vec<Law> = judge(&tale).1.iter().map(|it| it.law).collect();
        assert_eq!(!laws.contains(&Law::Settling), fine, "{word}, {pods}: {laws:?}");
    }
}

/// Seed 5718: it looked settled twice while a window was closed that is open most of the time.
#[test]
fn who_waits_for_a_window_that_opens_soon_has_not_settled() {
    for (schedule, settled) in [("0 * * * *", false), ("0 22 * * *", true)] {
        let mut tale = sound();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            let window = json!({"schedule": schedule, "duration": "40m"});
            it["spec"]["rollout"] = json!({"windows": {"allow": [window]}});
        });
        while tale.now.strftime("%M").to_string() != "45" {
            tale.wait(60);
        }
        tale.turn(&["n2"], |it| {
            it.waits = vec![Tale::waits_for("n2", "Window", "ImagePolicy", "all")];
        });
        let (laws, broken) = judge(&tale);
        assert_eq!(broken, [], "the window is closed");
        assert_eq!(laws.settled(tale.now, SignedDuration::from_mins(30)), settled, "{schedule}");
        assert!(laws.settled(tale.now, SignedDuration::from_mins(10)), "{schedule}");
    }
}

#[test]
fn every_law_that_is_checked_has_a_life_that_breaks_it() {
    let broken: BTreeSet<Law> = CASES.iter().map(|(_, law, _)| *law).collect();
    let checked = BTreeSet::from(Law::CHECKED);
    assert_eq!(checked.difference(&broken).collect::<Vec<_>>(), [&Law::Determinism]);
}

#[test]
fn the_same_life_has_the_same_hash_and_another_has_another() {
    let one = hash_of(&sound().steps);
    assert_eq!(same_life(7, one, hash_of(&sound().steps), sound().now), None);
    for step in 0..sound().steps.len() {
        let mut other = sound();
        other.steps.remove(step);
        let broken = same_life(7, one, hash_of(&other.steps), other.now).unwrap();
        assert_eq!(broken.law, Law::Determinism, "without step {step}");
    }
}
