//! Each law has lives told by hand that break it, and only it; and there is one that breaks none.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::BTreeSet;

use nodemolt_sim::laws::{Law, Laws, Violation, hash_of, same_life};
use nodemolt_sim::trace::{Actor, Fact};
use serde_json::json;

#[path = "laws/tale.rs"]
mod tale;

use tale::{NEW, OLD, Tale, US, begun, sound};

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
        Law::Partition,
        Law::Quiet,
        Law::Budget,
        Law::Succession,
        Law::NoOrphansNoTwins,
        Law::Settling,
        Law::Image,
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

/// What happens, which law that breaks, and the life up to there.
type Case = (&'static str, Law, fn() -> Tale);

const CASES: &[Case] = &[
    ("a node that should go is forgotten", Law::Partition, || {
        let mut tale = begun();
        tale.turn(&["n1", "n2"], |it| it.waits = vec![Tale::waits("n2")]);
        tale
    }),
    ("a node starts and waits", Law::Partition, || {
        let mut tale = begun();
        tale.turn(&["n1"], |it| {
            it.starts = vec!["n1".to_owned()];
            it.waits = vec![Tale::waits("n1")];
        });
        tale
    }),
    ("a node waits for nothing that has a name", Law::Partition, || {
        let mut tale = begun();
        tale.turn(&["n1"], |it| it.waits = vec![("n1".to_owned(), Vec::new())]);
        tale
    }),
    ("the ledger is written although all is in sync", Law::Quiet, || {
        let mut tale = sound();
        tale.ledger(&[], 1);
        tale.turn(&[], |_| ());
        tale
    }),
    ("a status is written again and again", Law::Quiet, || {
        let mut tale = sound();
        for round in 0..2 {
            tale.change(US, "NodePool", "/web", |it| it["status"] = json!({"nodes": round}));
            tale.turn(&[], |_| ());
        }
        tale
    }),
    ("an act is asked for although all is in sync", Law::Quiet, || {
        let mut tale = sound();
        tale.turn(&[], |it| it.commands = 1);
        tale
    }),
    ("decisions go to and fro", Law::Quiet, || {
        let mut tale = begun();
        for round in 0..3 {
            tale.turn(&["n1"], |it| {
                it.waits = vec![Tale::waits("n1")];
                it.waits[0].1[0].name = (round == 1).then(|| "other".to_owned());
            });
            tale.wait(1);
        }
        tale.turn(&[], |_| ());
        tale
    }),
    ("a node is granted that nobody knows enough of", Law::Doubt, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.turn(&[], |it| it.unknown = vec!["n1".to_owned()]);
        tale.record("n1", "Cancelled");
        tale.ledger(&[], 1);
        tale
    }),
    ("two nodes are granted, and there is one slot", Law::Budget, || {
        let mut tale = begun();
        tale.ledger(&["n1", "n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("a node is granted while another is not ready", Law::Budget, || {
        let mut tale = begun();
        tale.node(Actor::Kubelet, "n2", false, &json!([]));
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the selected nodes are to stay", Law::Budget, || {
        let mut tale = begun();
        let spec = json!({"labelSelectors": [{"team": "shop"}], "minAvailable": "70%"});
        let budget = json!({"metadata": {"name": "most"}, "spec": spec});
        tale.store(Actor::Person, "NodeDisruptionBudget", "", budget);
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the pool allows none at this time of the day", Law::Budget, || {
        let mut tale = begun();
        let budgets = json!([{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}]);
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["disruption"]["budgets"] = budgets;
        });
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the class has used up its share of processors", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] = json!({"concurrency": "40%", "unit": "CPU"});
        });
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&["n1", "n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the window is closed", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] =
                json!({"windows": {"allow": [{"from": "22:00", "to": "05:00"}]}});
        });
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the class rests", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] = json!({"cooldown": "1h"});
        });
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale.wait(1200);
        tale.ledger(&["n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("everything is paused", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "DisruptionLedger", "/cluster", |it| {
            it["spec"] = json!({"pause": {"reason": "a sale"}});
        });
        tale.change(US, "DisruptionLedger", "/cluster", |it| {
            it["status"]["grants"] = json!([{"holder": "claim-n1", "nodeName": "n1", "kind": "Replacement", "epoch": 1}]);
        });
        tale.change(US, "DisruptionLedger", "/cluster", |it| it["status"]["grants"] = json!([]));
        tale
    }),
    ("a node is cordoned without a grant", Law::Budget, || {
        let mut tale = begun();
        tale.record("n1", "Launching");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.emptied();
        tale.ended();
        tale
    }),
    ("the successor is not ready for long enough", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.node(Actor::Kubelet, "s1", false, &json!([]));
        tale.node(Actor::Kubelet, "s1", true, &json!([]));
        tale.wait(10);
        tale.cordoned("n1");
        tale.emptied();
        tale.ended();
        tale
    }),
    ("the pods that must move do not fit anywhere", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.change(Actor::Kubelet, "Node", "/s1", |it| {
            it["status"]["allocatable"]["cpu"] = json!("500m");
        });
        tale.cordoned("n1");
        tale.emptied();
        tale.ended();
        tale
    }),
    ("a claim ends while a pod is on its node", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.end_claim(US, "n1");
        tale.emptied();
        tale.ended();
        tale
    }),
    ("one claim has two machines", Law::NoOrphansNoTwins, || {
        let mut tale = sound();
        tale.machine_for("i-twin", "s1", NEW, "running");
        tale
    }),
    ("one token made two machines", Law::NoOrphansNoTwins, || {
        let mut tale = sound();
        tale.machine_for("i-twin", "s1", NEW, "terminated");
        let mut again = tale.steps.last().unwrap().clone();
        let Fact::Machine(machine) = &mut again.fact else { panic!("the last is a machine") };
        "i-second".clone_into(&mut machine.id);
        tale.steps.push(again);
        tale
    }),
    ("a machine is left over", Law::NoOrphansNoTwins, || {
        let mut tale = sound();
        tale.machine_for("i-left", "nobody", NEW, "running");
        tale
    }),
    ("a replacement does not end", Law::Settling, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale
    }),
    ("a grant is never given back", Law::Settling, || {
        let mut tale = sound();
        tale.ledger(&["n2"], 1);
        tale
    }),
    ("a node waits for what has room", Law::Settling, || {
        let mut tale = sound();
        tale.turn(&["n2"], |it| it.waits = vec![Tale::waits("n2")]);
        tale
    }),
    ("a node runs another image, and nothing is said of it", Law::Settling, || {
        let mut tale = sound();
        tale.claim_status(Actor::Fate, "n2", "ami-0000000c");
        tale
    }),
    ("an image is too young", Law::Image, || {
        let mut tale = begun();
        tale.image("ami-0000000c", "al2023-v3", 2);
        tale.claim(US, "s1");
        tale.tell(
            US,
            Fact::LaunchAsked {
                token: "t".to_owned(),
                machine: Some("i-s1".to_owned()),
                made: true,
                error: None,
            },
        );
        tale.machine("s1", "ami-0000000c", "pending");
        tale
    }),
    ("an image is in quarantine", Law::Image, || {
        let mut tale = begun();
        let spec = json!({"version": "v2", "reason": "crashes"});
        let quarantine = json!({"metadata": {"name": "bad"}, "spec": spec});
        tale.store(Actor::Person, "ImageQuarantine", "", quarantine);
        tale.wait(120);
        tale.launched();
        tale
    }),
    ("an image is somebody else's", Law::Image, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["owners"] = json!(["210987654321"]);
        });
        tale.wait(120);
        tale.launched();
        tale
    }),
    ("a pod is evicted without its UID", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.evict("web-n1", None, None);
        tale
    }),
    ("a pod gets less than its grace period", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.evict("web-n1", Some("pod-web-n1"), Some(1));
        tale
    }),
    ("an eviction leaves fewer than the budget wants", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.pod("web-n2", Some("n2"), false);
        tale.wait(120);
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale
    }),
    ("a protected pod is evicted", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.change(Actor::Person, "Pod", "shop/web-n1", |it| {
            it["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        });
        tale.wait(120);
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale
    }),
    ("a pod is evicted from a node that nobody cordoned", Law::Eviction, || {
        let mut tale = begun();
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale
    }),
    ("a pod is deleted, and nobody asked for force", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        let (pod, uid) = ("web-n1".to_owned(), Some("pod-web-n1".to_owned()));
        let namespace = "shop".to_owned();
        tale.tell(US, Fact::PodDeleted { namespace, pod, uid, grace_seconds: Some(30) });
        tale
    }),
    ("a pod goes, and nobody said how", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.remove(US, "Pod", "shop/web-n1");
        tale.pod("web-s1", Some("s1"), true);
        tale.wait(1);
        tale.turn(&[], |_| ());
        tale
    }),
    ("we change a pool", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(US, "NodePool", "/web", |it| it["spec"]["weight"] = json!(10));
        tale
    }),
    ("we set what belongs to people on a node", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(US, "Node", "/n1", |it| it["spec"]["unschedulable"] = json!(true));
        tale
    }),
    ("we take somebody's taint away", Law::UsersWords, || {
        let mut tale = begun();
        let taint = json!([{"key": "gpu", "effect": "NoSchedule"}]);
        tale.change(Actor::Person, "Node", "/n1", |it| it["spec"]["taints"] = taint);
        tale.change(US, "Node", "/n1", |it| it["spec"]["taints"] = json!([]));
        tale
    }),
    ("we take a pause away", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(Actor::Person, "DisruptionLedger", "/cluster", |it| {
            it["spec"] = json!({"pause": {"reason": "a sale"}});
        });
        tale.change(US, "DisruptionLedger", "/cluster", |it| it["spec"] = json!({}));
        tale
    }),
    ("we remove a policy", Law::UsersWords, || {
        let mut tale = begun();
        tale.remove(US, "ImagePolicy", "/all");
        tale
    }),
    ("a pod that we moved does not run", Law::Home, || {
        let mut tale = sound();
        tale.pod("web-s1", Some("s1"), false);
        tale
    }),
    ("a stranger's machine is ended", Law::OwnMachines, || {
        let mut tale = sound();
        tale.tell(US, Fact::TerminateAsked { machine: "i-stranger".to_owned() });
        tale
    }),
    ("a machine is ended that its claim still wants", Law::OwnMachines, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.tell(US, Fact::TerminateAsked { machine: "i-s1".to_owned() });
        tale.record("n1", "Failed");
        tale.ledger(&[], 1);
        tale
    }),
    ("a leader writes after a later one", Law::Epoch, || {
        let mut tale = begun();
        tale.ledger(&[], 3);
        tale.ledger(&[], 2);
        tale
    }),
    ("a cordon is left behind", Law::CordonUndone, || {
        let mut tale = drained_until_eviction();
        tale.record("n1", "Skipped");
        tale.ledger(&[], 1);
        tale
    }),
];

/// Everything is as it should be, and the pods of `n1` are about to go. What comes of it is told as kept.
fn drained_until_eviction() -> Tale {
    let mut tale = begun();
    tale.granted("n1");
    tale.launched();
    tale.joined();
    tale.cordoned("n1");
    tale.wait(1);
    tale
}

#[test]
fn each_law_has_lives_that_break_it_and_only_it() {
    let mut wrong = Vec::new();
    for (what, law, life) in CASES {
        let mut tale = life();
        match law {
            Law::Eviction => tale.settle(),
            Law::Partition => tale.turn(&[], |_| ()),
            _ => {}
        }
        let (_, broken) = judge(&tale);
        let laws: BTreeSet<Law> = broken.iter().map(|it| it.law).collect();
        if laws != BTreeSet::from([*law]) {
            wrong.push(format!("{what} ({law}): {broken:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
