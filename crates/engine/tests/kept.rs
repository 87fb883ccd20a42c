//! Does what is kept from turn to turn come to the same as what is worked out anew?
//!
//! A fleet is written to at random, as watches tell of it. Each turn is taken twice: by a memory that keeps what it has
//! worked out, and by one that knows the same and has worked out nothing.
#![allow(clippy::unwrap_used, reason = "a broken test should stop")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{Amount, DisruptionBudget, Keep};
use nodemolt_core::drain::{Pdb, PodPhase, UnhealthyPods};
use nodemolt_core::policy::LabelSelector;
use nodemolt_core::seen::{Claim, Kind, Node, ObjectName, Pod, Readiness, Revision, Stage, View};
use nodemolt_engine::port::MachineState;
use nodemolt_engine::{Act, Errand, Turn};
use nodemolt_fit::pod::{Demand, Volume};
use support::{Fake, NEW_IMAGE, OLD_IMAGE, POOL, World, id};

const NODES: usize = 12;
const STEPS: usize = 60;
const SEEDS: u64 = 12;
const DRIVER: &str = "ebs.csi.aws.com";

/// Small numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

#[test]
fn what_is_kept_comes_to_the_same_as_what_is_worked_out_anew() {
    for seed in 0..SEEDS {
        let mut dice = Dice(seed);
        let workload = |pod: usize| format!("web-{}", pod % 7);
        let mut world =
            World::with_workloads(NODES, 3, &[OLD_IMAGE, NEW_IMAGE, NEW_IMAGE], workload);
        let mut away = Vec::new();
        world.turn();
        for step in 0..STEPS {
            for _ in 0..dice.below(3) {
                write(&mut world, &mut dice, &mut away);
            }
            world.pass([1, 1, 5, 40, 400][dice.below(5)]);
            let mut anew = copied(&world);
            let (kept, told) = (world.turn_alone(), anew.turn_alone());
            same(&kept, &told, &format!("seed {seed}, step {step}"));
            let written = (world.cluster.told.take(), anew.cluster.told.take());
            assert_eq!(written.0, written.1, "seed {seed}, step {step}");
            world.answer_all(&kept);
        }
    }
}

/// A `CSINode` tells how many volumes a node can attach: what is known of the node is another thing then, and its revision is not.
#[test]
fn what_others_put_into_a_node_is_read_without_a_new_revision() {
    let mut world = World::with_workloads(NODES, 3, &[OLD_IMAGE, NEW_IMAGE, NEW_IMAGE], |pod| {
        format!("web-{}", pod % 7)
    });
    let nobody = DisruptionBudget {
        name: "nobody".to_owned(),
        selectors: vec![BTreeMap::new()],
        keep: Ok(Keep::MaxUnavailable(Amount::Count(0))),
        gates_controller: true,
        gates_people: false,
    };
    {
        let mut view = world.cluster.view.borrow_mut();
        view.budgets.insert(nobody.name.clone(), nobody);
        let pods: Vec<Pod> = view.pods.iter().cloned().collect();
        for mut pod in pods {
            let volume = Volume {
                handle: format!("vol-{}", pod.fit.name),
                driver: Some(DRIVER.to_owned()),
                reach: None,
                own: false,
            };
            let demand = Demand { volumes: vec![volume], ..(*pod.fit.demand).clone() };
            pod.fit.demand = Arc::new(demand);
            view.pods.insert(pod);
        }
    }
    world.settle();
    {
        let mut view = world.cluster.view.borrow_mut();
        view.budgets.clear();
        let names: Vec<String> = view.nodes.keys().cloned().collect();
        for name in names {
            let node = view.nodes.get_mut(&name).unwrap();
            node.fit.volume_limits = [(DRIVER.to_owned(), 3)].into();
        }
    }
    world.pass(1);
    let mut anew = copied(&world);
    let (kept, told) = (world.turn_alone(), anew.turn_alone());
    same(&kept, &told, "with fewer volumes");
    // No node can attach more than it has, so they need new ones.
    let makes = |it: &Act| matches!(it.errand, Errand::MakeClaim { .. });
    assert!(kept.acts.iter().any(makes), "{:?}", kept.picture.plan);
}

fn copied(world: &World) -> World {
    let cluster = Fake::default();
    *cluster.view.borrow_mut() = world.cluster.view.borrow().clone();
    *cluster.records.borrow_mut() = world.cluster.records.borrow().clone();
    World {
        cluster,
        memory: world.memory.copied(),
        now: world.now,
        images: world.images.clone(),
        machines: world.machines.clone(),
        offered: world.offered.clone(),
    }
}

fn same(kept: &Turn, anew: &Turn, when: &str) {
    let (one, other) = (&kept.picture, &anew.picture);
    assert_eq!(one.fleet.nodes, other.fleet.nodes, "{when}");
    assert_eq!(one.fleet, other.fleet, "{when}");
    assert_eq!(one.plan, other.plan, "{when}");
    assert_eq!(one.rooms, other.rooms, "{when}");
    assert_eq!(one.running, other.running, "{when}");
    assert_eq!(one.drifts, other.drifts, "{when}");
    assert_eq!(format!("{:?}", one.successors), format!("{:?}", other.successors), "{when}");
    assert_eq!(format!("{:?}", one.doubted), format!("{:?}", other.doubted), "{when}");
    assert_eq!(format!("{:?}", kept.acts), format!("{:?}", anew.acts), "{when}");
    assert_eq!(kept.writes, anew.writes, "{when}");
    // Whoever has resolved a class before does so again sooner. Nobody oversleeps.
    let wakes = |it: &Turn| it.wake_at.unwrap_or(Timestamp::MAX);
    assert!(wakes(kept) <= wakes(anew), "{when}: {:?} {:?}", kept.wake_at, anew.wake_at);
}

/// What has gone and may come back.
type Away = Vec<Node>;

fn write(world: &mut World, dice: &mut Dice, away: &mut Away) {
    let now = world.now;
    let name = format!("node-{:05}", dice.below(NODES));
    let (what, more) = (dice.below(21), dice.below(3));
    if what == 0 {
        let machine = world.machines.iter_mut().find(|it| it.id.0 == format!("i-{name}"));
        machine.unwrap().state =
            [MachineState::ShuttingDown, MachineState::Terminated, MachineState::Running][more];
        return;
    }
    if what == 1 {
        let mut records = world.cluster.records.borrow_mut();
        records.unreadable.clear();
        if more == 0 {
            records.unreadable.insert(format!("uid-{name}"), "nobody can read it".to_owned());
        }
        return;
    }
    let mut view = world.cluster.view.borrow_mut();
    let view = &mut *view;
    match what {
        2 => drop(view.images.remove(&id(NEW_IMAGE))),
        3 => {
            let (kind, named) = [
                (Kind::Pool, POOL.to_owned()),
                (Kind::Image, NEW_IMAGE.to_owned()),
                (Kind::Class, view.classes.keys().next().unwrap().to_string()),
            ][more]
                .clone();
            let object = ObjectName { kind, namespace: String::new(), name: named };
            if view.unreadable.remove(&object).is_none() {
                view.unreadable.insert(object, Vec::new());
            }
        }
        4 => node(view, &name, |it| it.ready = [Readiness::Ready, Readiness::NotReady][more % 2]),
        5 => node(view, &name, |it| it.fit.unschedulable = more > 0),
        6 => node(view, &name, |it| it.deleting_since = (more == 0).then_some(now)),
        7 => node(view, &name, |it| it.cordoned_by = (more == 0).then(|| format!("uid-{name}"))),
        8 => node(view, &name, |it| it.upgrade_asked_at = (more == 0).then_some(now)),
        9 => away.extend(view.nodes.remove(&name)),
        10 => {
            if let Some(node) = away.pop() {
                view.nodes.insert(node.name.clone(), node);
            }
        }
        11 => claim(view, &name, |it| it.deleting_since = (more == 0).then_some(now)),
        12 => claim(view, &name, |it| {
            it.expire_after = (more > 0).then(|| {
                let age = now.duration_since(it.created_at);
                age + SignedDuration::from_secs([0, 30, 500][more])
            });
        }),
        13 => claim(view, &name, |it| it.image = Some(id([OLD_IMAGE, NEW_IMAGE][more % 2]))),
        14 => claim(view, &name, |it| {
            if more == 0 {
                it.stages.remove(&Stage::Initialized);
            } else {
                it.stages.insert(Stage::Initialized, now);
            }
        }),
        15 => claim(view, &name, |it| it.node = (more > 0).then(|| name.clone())),
        16 => {
            let asked = (more == 0).then_some(now);
            view.pools.get_mut(POOL).unwrap().upgrade_asked_at = asked;
        }
        17 | 18 => pod(view, &name, dice, more),
        _ => budget(view, dice, more),
    }
}

fn node(view: &mut View, name: &str, edit: impl FnOnce(&mut Node)) {
    if let Some(mut node) = view.nodes.get(name).cloned() {
        edit(&mut node);
        node.revision = Revision(format!("{}x", node.revision.0));
        view.nodes.insert(name.to_owned(), node);
    }
}

fn claim(view: &mut View, node: &str, edit: impl FnOnce(&mut Claim)) {
    let name = format!("claim-{node}");
    if let Some(mut claim) = view.claims.get(&name).cloned() {
        edit(&mut claim);
        claim.revision = Revision(format!("{}x", claim.revision.0));
        view.claims.insert(name, claim);
    }
}

/// One of a node's pods leaves, gets ready or not, or moves.
fn pod(view: &mut View, node: &str, dice: &mut Dice, more: usize) {
    let there: Vec<Pod> = view.pods.on(node).cloned().collect();
    if there.is_empty() {
        return;
    }
    let mut pod = there[dice.below(there.len())].clone();
    let mut drain = (*pod.drain).clone();
    match more {
        0 => {
            view.pods.remove(&pod.key());
            return;
        }
        1 => drain.ready = !drain.ready,
        _ => {
            let other = format!("node-{:05}", dice.below(NODES + 1));
            pod.node = (dice.below(3) > 0).then_some(other);
            drain.phase = if pod.node.is_some() { PodPhase::Running } else { PodPhase::Pending };
        }
    }
    pod.drain = Arc::new(drain);
    view.pods.insert(pod);
}

/// A budget comes, goes, or its controller has counted.
fn budget(view: &mut View, dice: &mut Dice, more: usize) {
    let name = format!("web-{}", dice.below(7));
    let key = ("shop".to_owned(), name.clone());
    if more == 0 {
        view.pdbs.remove(&key);
        return;
    }
    let of = if dice.below(4) == 0 { "web-0".to_owned() } else { name.clone() };
    let labels: BTreeMap<String, String> = [("app".to_owned(), of)].into();
    let allowed = i32::try_from(dice.below(4)).unwrap();
    let pdb = Pdb {
        namespace: key.0.clone(),
        name,
        selector: Some(LabelSelector { labels, ..LabelSelector::default() }),
        generation: 1,
        observed_generation: 1,
        disruptions_allowed: allowed,
        current_healthy: 5,
        desired_healthy: 5 - allowed,
        unhealthy_pods: UnhealthyPods::IfHealthyBudget,
        disrupted_pods: BTreeMap::new(),
    };
    view.pdbs.insert(key, Arc::new(pdb));
}
