//! Does a hand look once more before it disturbs anybody?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::catalog::{Observation, Query};
use nodemolt_core::drain::{self, Pdb, PodId, Protection, UnhealthyPods};
use nodemolt_core::launch::Template;
use nodemolt_core::policy::LabelSelector;
use nodemolt_core::replace::{Phase, Successor};
use nodemolt_core::seen::{DISRUPTED_TAINT, Kind, MachineId, NetworkAsk, Readiness, View};
use nodemolt_engine::port::{
    Cloud, CloudError, LaunchError, LaunchRequest, Launched, Machine, Network, Object, Offered,
};
use nodemolt_engine::record::Pause;
use nodemolt_engine::{Act, Done, Errand, Intent, perform};
use nodemolt_fit::taint::{Effect, Taint};
use support::{OLD_IMAGE, Still, World, config, now_or_never};

/// Nobody asks EC2 here.
struct NoCloud;

impl Cloud for NoCloud {
    async fn ask(&self, _: &Query) -> Observation {
        unreachable!("it is no question")
    }

    async fn offered(&self) -> Result<Offered, CloudError> {
        unreachable!("it is no question")
    }

    async fn network(&self, _: &NetworkAsk) -> Result<Network, CloudError> {
        unreachable!("it is no question")
    }

    async fn prepare(&self, _: &Template) -> Result<(), CloudError> {
        unreachable!("nothing is launched")
    }

    async fn launch(&self, _: &LaunchRequest) -> Result<Launched, LaunchError> {
        unreachable!("nothing is launched")
    }

    async fn machines(&self) -> Result<Vec<Machine>, CloudError> {
        unreachable!("it is no question")
    }

    async fn terminate(&self, _: &MachineId) -> Result<(), CloudError> {
        unreachable!("nothing ends")
    }
}

const OLD: &str = "uid-node-00000";

/// A replacement of the first of three nodes, granted and in this phase; the second one takes over.
fn world(phase: Phase) -> World {
    let mut world = World::new(3, 1, &[OLD_IMAGE]);
    for _ in 0..4 {
        world.turn();
        world.pass(1);
    }
    {
        let mut records = world.cluster.records.borrow_mut();
        let (claim, uid) = ("claim-node-00001".to_owned(), Some("uid-node-00001".to_owned()));
        let record = records.replacements.get_mut(OLD).unwrap();
        record.replacement.phase = phase;
        record.replacement.successors = vec![Successor { claim, uid }];
        let mut view = world.cluster.view.borrow_mut();
        let node = view.nodes.get_mut("node-00000").unwrap();
        node.cordoned_by = Some(OLD.to_owned());
        node.fit.taints.push(Taint::new(DISRUPTED_TAINT, "", Effect::NoSchedule));
    }
    world.written();
    world
}

fn act(world: &World, errand: Errand, voluntary: bool) -> Act {
    Act {
        intent: Intent::Node("node-00000".to_owned()),
        errand,
        epoch: world.cluster.records.borrow().ledger.epoch,
        decided_at: world.now,
        leads_until: world.now + SignedDuration::from_secs(10),
        voluntary,
        allowed: SignedDuration::from_mins(1),
    }
}

fn cordon(world: &World) -> Errand {
    let view = world.cluster.view.borrow();
    let node = &view.nodes["node-00000"];
    let (name, uid, revision) = (node.name.clone(), node.uid.clone(), node.revision.clone());
    let homes = ["node-00002".to_owned()].into();
    Errand::Cordon { replacement: OLD.to_owned(), node: Object { name, uid, revision }, homes }
}

fn delete_successor(_: &World) -> Errand {
    let (claim, uid) = ("claim-node-00001".to_owned(), "uid-node-00001".to_owned());
    Errand::DeleteSuccessor { replacement: OLD.to_owned(), claim, uid }
}

fn delete_old(_: &World) -> Errand {
    let claim = "claim-node-00000".to_owned();
    Errand::DeleteOld { replacement: OLD.to_owned(), claim, uid: OLD.to_owned() }
}

fn evict(_: &World) -> Errand {
    let pod = PodId {
        namespace: "shop".to_owned(),
        name: "web-00000-0".to_owned(),
        uid: "uid-web-00000-0".to_owned(),
    };
    Errand::Evict { replacement: OLD.to_owned(), pod }
}

/// Past its budget, as is recorded.
fn force(world: &World) -> Errand {
    let Errand::Evict { replacement, pod } = evict(world) else { unreachable!() };
    let mut records = world.cluster.records.borrow_mut();
    let record = records.replacements.get_mut(OLD).unwrap();
    let drain = record.drain.get_or_insert_default();
    drain.forced.push((pod.clone(), "the drain limit".to_owned()));
    Errand::DeletePod { replacement, pod, grace_seconds: 30 }
}

fn protected(view: &mut View) {
    let node = view.nodes.get_mut("node-00000").unwrap();
    let annotation = drain::DO_NOT_DISRUPT;
    node.protection = Some(Protection { annotation, until: None, unread: None });
}

fn protected_and_empty(view: &mut View) {
    no_pods(view);
    protected(view);
}

fn no_pods(view: &mut View) {
    let nodes = ["node-00000", "node-00001"].into_iter();
    let all: Vec<_> =
        nodes.flat_map(|it| view.pods.on(it)).map(nodemolt_core::seen::Pod::key).collect();
    for pod in &all {
        drop(view.pods.remove(pod));
    }
}

fn uncordoned(view: &mut View) {
    view.nodes.get_mut("node-00000").unwrap().fit.taints.clear();
}

fn uncordoned_and_empty(view: &mut View) {
    no_pods(view);
    uncordoned(view);
}

fn another_machine(view: &mut View) {
    let node = view.nodes.get_mut("node-00000").unwrap();
    node.machine = Some(MachineId("i-another".to_owned()));
}

fn silent_nodes(view: &mut View) {
    let heard = view.fresh.get_mut(&Kind::Node).unwrap();
    *heard -= SignedDuration::from_secs(91);
}

fn silent_pdbs(view: &mut View) {
    no_pods(view);
    let heard = view.fresh.get_mut(&Kind::Pdb).unwrap();
    *heard -= SignedDuration::from_secs(91);
}

fn silent_budgets(view: &mut View) {
    let heard = view.fresh.get_mut(&Kind::DisruptionBudget).unwrap();
    *heard -= SignedDuration::from_secs(91);
}

/// Of three pods that would end with their machines one may.
fn one_may_end(view: &mut View) {
    let pods: Vec<_> = view.pods.iter().cloned().collect();
    for mut pod in pods {
        let drain = drain::Pod { tolerates_cordon: true, ..(*pod.drain).clone() };
        pod.drain = Arc::new(drain);
        view.pods.insert(pod);
    }
    let pdb = Pdb {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        selector: Some(LabelSelector::default()),
        generation: 1,
        observed_generation: 1,
        disruptions_allowed: 1,
        current_healthy: 3,
        desired_healthy: 2,
        unhealthy_pods: UnhealthyPods::IfHealthyBudget,
        disrupted_pods: BTreeMap::new(),
    };
    view.pdbs.insert(("shop".to_owned(), "web".to_owned()), Arc::new(pdb));
}

/// And one of the others did, and nobody has cleared it away.
fn one_has_ended(view: &mut View) {
    one_may_end(view);
    view.nodes.remove("node-00002");
}

type Case<'a> = (&'a str, Phase, fn(&World) -> Errand, bool, fn(&mut View), Option<&'a str>);

#[test]
fn nobody_is_disturbed_on_old_news() {
    let nothing: fn(&mut View) = |_| {};
    let unready: fn(&mut View) = |it| {
        it.nodes.get_mut("node-00001").unwrap().ready = Readiness::NotReady;
    };
    let home_unready: fn(&mut View) = |it| {
        it.nodes.get_mut("node-00002").unwrap().ready = Readiness::NotReady;
    };
    let home_closed: fn(&mut View) = |it| {
        it.nodes.get_mut("node-00002").unwrap().fit.unschedulable = true;
    };
    let silent_without_pods: fn(&mut View) = |it| {
        no_pods(it);
        silent_nodes(it);
    };
    let forgotten: fn(&mut View) = |it| {
        it.nodes.remove("node-00000");
    };
    let cases: [Case<'_>; 36] = [
        ("who stays", Phase::Draining, cordon, true, home_unready, Some("takes no pods now")),
        ("is closed", Phase::Draining, cordon, true, home_closed, Some("takes no pods now")),
        ("goes anyway", Phase::Draining, cordon, false, home_closed, None),
        ("pods came", Phase::Retreating, delete_successor, false, nothing, Some("1 pods run on")),
        ("none came", Phase::Retreating, delete_successor, false, no_pods, None),
        (
            "none that we heard of",
            Phase::Retreating,
            delete_successor,
            false,
            silent_without_pods,
            Some("told of Node"),
        ),
        ("cordon", Phase::Draining, cordon, true, nothing, None),
        ("later node", Phase::Draining, cordon, true, another_machine, Some("another one by now")),
        ("its successor", Phase::Draining, cordon, true, unready, Some("is not ready")),
        ("it goes anyway", Phase::Draining, cordon, false, unready, None),
        ("no news", Phase::Draining, cordon, true, silent_nodes, Some("told of Node for 91 s")),
        ("no news, it goes", Phase::Draining, cordon, false, silent_nodes, None),
        ("evict", Phase::Draining, evict, true, nothing, None),
        ("a later node's", Phase::Draining, evict, false, another_machine, Some("a later node")),
        // Life 5495: a late watch told of a cordon that we had taken back, and the pod came right back.
        ("taken back", Phase::Draining, evict, true, uncordoned, Some("not cordoned any more")),
        ("it goes", Phase::Draining, evict, false, uncordoned, Some("not cordoned any more")),
        ("its node is gone", Phase::Draining, evict, true, forgotten, None),
        // Issue 7: a pod was deleted past its budget on a node whose cordon a person had taken back.
        ("by force", Phase::Draining, force, true, nothing, None),
        ("not now", Phase::Draining, force, true, uncordoned, Some("not cordoned any more")),
        ("unheard", Phase::Draining, force, true, silent_nodes, Some("told of Node")),
        ("by force, it goes", Phase::Draining, force, false, uncordoned, None),
        // And a person who protects a node in the middle of it is heard at once.
        ("protected", Phase::Draining, evict, true, protected, Some("do-not-disrupt")),
        ("protected too", Phase::Draining, force, true, protected, Some("do-not-disrupt")),
        ("to stay", Phase::Terminating, delete_old, true, protected_and_empty, Some("do-not-di")),
        ("deleted by its owner", Phase::Draining, evict, false, protected, None),
        (
            "pods may come",
            Phase::Terminating,
            delete_old,
            true,
            uncordoned_and_empty,
            Some("not cordoned any more"),
        ),
        ("they may, it goes", Phase::Terminating, delete_old, false, uncordoned_and_empty, None),
        ("another has its name", Phase::Terminating, delete_old, true, another_machine, None),
        ("old news of pods", Phase::Draining, evict, true, silent_nodes, Some("told of Node")),
        ("pods are there", Phase::Terminating, delete_old, true, nothing, Some("1 pods are still")),
        ("they have left", Phase::Terminating, delete_old, true, no_pods, None),
        ("not there yet", Phase::Draining, delete_old, true, no_pods, Some("is draining")),
        ("it may end", Phase::Terminating, delete_old, true, one_may_end, None),
        ("one has", Phase::Terminating, delete_old, true, one_has_ended, Some("no disruption now")),
        (
            "no news of PDBs",
            Phase::Terminating,
            delete_old,
            true,
            silent_pdbs,
            Some("Budget for 91"),
        ),
        ("of budgets", Phase::Draining, cordon, true, silent_budgets, Some("told of NodeDisr")),
    ];
    for (what, phase, errand, voluntary, change, withheld) in cases {
        let world = world(phase);
        let act = act(&world, errand(&world), voluntary);
        change(&mut world.cluster.view.borrow_mut());
        let answer = performed(&world, &act, world.now);
        match (&answer, withheld) {
            (Done::Withheld(why), Some(expected)) => {
                assert!(why.contains(expected), "{what}: {why}");
            }
            (Done::Written(Ok(())) | Done::Evicted(Ok(_)), None) => {}
            (answer, expected) => panic!("{what}: {answer:?} and not {expected:?}"),
        }
        assert_eq!(world.written().is_empty(), withheld.is_some(), "{what}");
    }
}

fn performed(world: &World, act: &Act, now: Timestamp) -> Done {
    let config = config();
    now_or_never(perform(act, &config, &NoCloud, &world.cluster, &Still(now)))
}

#[test]
fn nothing_is_done_for_one_who_leads_no_more_or_was_stopped() {
    let world = world(Phase::Draining);
    let act = act(&world, cordon(&world), true);
    let withheld = |world: &World, now| {
        let done = performed(world, &act, now);
        let Done::Withheld(why) = done else { panic!("{done:?}") };
        why
    };
    assert_eq!(withheld(&world, act.leads_until), "our lease has run out");
    // A clock that was set back does not make old news new.
    let before = world.now - SignedDuration::from_secs(60);
    assert!(withheld(&world, before).contains("is not known any more"));
    world.cluster.records.borrow_mut().ledger.pause =
        Some(Pause { reason: "holiday".to_owned(), by: None });
    assert_eq!(withheld(&world, world.now), "paused: holiday");
    world.cluster.records.borrow_mut().ledger.epoch += 1;
    assert!(withheld(&world, world.now).contains("has begun"));
}
