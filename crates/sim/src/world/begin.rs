//! How does a world come to be?
//!
//! Images are published, classes and pools applied, and nodes launched as if we had launched them, each
//! at its own time in the past, through the same adapter that writes them later. Then workloads are
//! applied and find their places, and only then do we start.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::Adapter;
use nodemolt_core::seen::{Attempt, Choice, FrozenRequest, MachineId, Revision, Stage, View};
use nodemolt_core::wanted::pinned;
use nodemolt_engine::claims::{
    CLAIM_TAG, CLAIM_UID_TAG, INITIALIZED_LABEL, REGISTERED_LABEL, token,
};
use nodemolt_engine::port::{
    ClaimState, Cluster as _, ClusterError, Condition, NewClaim, NewNodeState, Object,
};
use nodemolt_fit::{label, type_labels};
use serde_json::Value;

use super::look::Direct;
use super::weather::Weather;
use super::{Event, LoadError, Replica, Struck, Throws, World};
use crate::act::Publication;
use crate::api_server::ApiServer;
use crate::desk::Desk;
use crate::dice::Dice;
use crate::executor::{Executor, at_once};
use crate::json::text;
use crate::kinds;
use crate::kube::{Fate, Kube};
use crate::laws::TraceHash;
use crate::region::{NewMachine, Region, Written};
use crate::replica::after;
use crate::scenario::{Group, Scenario, Simulation};
use crate::trace::{Actor, Trace};

/// So long before the start workloads are applied: time to be scheduled and to become ready.
const WARM_UP: SignedDuration = SignedDuration::from_mins(10);

/// What runs on nodes, or guards what does. Everything else is there before the first node.
const WORKLOADS: [&str; 7] =
    ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "PodDisruptionBudget"];

pub(super) fn begin(scenario: &Scenario, seed: u64) -> Result<World, LoadError> {
    let simulation = &scenario.simulation;
    let oldest = simulation.fleet.iter().map(|it| it.age).max().unwrap_or(SignedDuration::ZERO);
    let dawn = after(simulation.start, -(oldest + WARM_UP + SignedDuration::from_hours(1)));
    let mut world = empty(simulation, seed, dawn);
    world.kube.borrow_mut().set_boot(simulation.boot.joins, simulation.boot.ready);
    let mut problems = Vec::new();

    let mut images: Vec<&Publication> = simulation.images.iter().collect();
    images.sort_by_key(|it| it.created);
    for image in images {
        if let Err(told) = world.region.publish(image, dawn) {
            problems.push(told);
        }
    }
    let workload = |it: &Value| WORKLOADS.contains(&text(it, &["kind"]));
    let placed = || scenario.objects.iter().zip(&scenario.places);
    for (object, place) in placed().filter(|(it, _)| !workload(it)) {
        let applied = world.apply_object(Actor::Person, object.clone());
        problems.extend(applied.err().map(|it| format!("{place}: {it}")));
    }
    world.settle();
    if problems.is_empty() {
        problems = world.found_fleet();
        // They begin with the kind and the name of what is to be mended.
        for problem in &mut problems {
            let about = placed().find(|(it, _)| {
                let rest = problem.strip_prefix(&named(it));
                rest.is_some_and(|it| it.starts_with([' ', ':']))
            });
            if let Some((_, place)) = about {
                problem.insert_str(0, &format!("{place}: "));
            }
        }
    }
    world.run_until(after(simulation.start, -WARM_UP));
    for (object, place) in placed().filter(|(it, _)| workload(it)) {
        let applied = world.apply_object(Actor::Person, object.clone());
        problems.extend(applied.err().map(|it| format!("{place}: {it}")));
    }
    if !problems.is_empty() {
        return Err(LoadError(problems));
    }
    world.run_until(simulation.start);
    for number in 0..simulation.replicas {
        world.put(simulation.start, Event::Starts(number));
    }
    Ok(world)
}

/// Kind and name, as problems say them; a colon or a word follows.
fn named(object: &Value) -> String {
    format!("{} {}", text(object, &["kind"]), text(object, &["metadata", "name"]))
}

fn empty(simulation: &Simulation, seed: u64, dawn: Timestamp) -> World {
    let source = Trace::default();
    let dice = Dice::new(seed);
    let server = ApiServer::new(source.clone(), dawn);
    let replica = || Replica { process: None, frozen_until: None, wrong_by: SignedDuration::ZERO };
    World {
        clock: Rc::new(Cell::new(dawn)),
        queue: BTreeMap::new(),
        queued: 0,
        steps: 0,
        kube: Rc::new(RefCell::new(Kube::new(server))),
        region: Region::new(simulation, source.clone()),
        dice: Throws {
            kube: dice.fork("kube"),
            region: dice.fork("region"),
            travel: dice.fork("travel"),
            watch: dice.fork("watch"),
            weather: dice.fork("weather"),
        },
        executor: Executor::default(),
        desk: Desk::default(),
        travelling: BTreeMap::new(),
        coming: BTreeMap::new(),
        replicas: (0..simulation.replicas).map(|_| replica()).collect(),
        processes: 0,
        weather: Weather::default(),
        applied: BTreeMap::new(),
        source,
        trace: Vec::new(),
        dropped: 0,
        keeps: None,
        hash: TraceHash::default(),
        laws: None,
        broken: Vec::new(),
        struck: Struck::default(),
        simulation: simulation.clone(),
    }
}

impl World {
    /// The nodes that run already, oldest first.
    fn found_fleet(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        let adapter = self.onlooker();
        let written = Written {
            subnets: !self.simulation.subnets.is_empty(),
            security_groups: !self.simulation.security_groups.is_empty(),
        };
        for class in adapter.view().classes.values() {
            self.region.provide(&class.network, written);
        }
        for (name, complaints) in &adapter.view().unreadable {
            for it in complaints {
                let kind = name.kind.as_str();
                problems.push(format!("{kind} {}: {}: {}", name.name, it.field, it.message));
            }
        }
        // Who needs what cannot be read would only be told that it is not there.
        if !problems.is_empty() {
            return problems;
        }
        let mut groups = self.simulation.fleet.clone();
        groups.sort_by_key(|it| std::cmp::Reverse(it.age));
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for group in &groups {
            let born = after(self.simulation.start, -group.age);
            self.run_until(born.min(after(self.simulation.start, -WARM_UP)));
            for at in 0..group.nodes {
                let count = counts.entry(group.pool.clone()).or_default();
                let claim = format!("{}-{count}", group.pool);
                *count += 1;
                // Classes and pools stay as they are until somebody acts.
                if let Err(told) = self.found_node(&adapter, group, at, &claim) {
                    problems.push(told);
                    return problems;
                }
                self.settle();
            }
        }
        problems
    }

    fn found_node(
        &mut self,
        onlooker: &Adapter<Direct>,
        group: &Group,
        at: u32,
        claim: &str,
    ) -> Result<(), String> {
        let now = self.now();
        let adapter = Adapter::new(Direct::writing(Rc::clone(&self.kube), Actor::Fate, now));
        let (new, class_network, context, family) = {
            let view = onlooker.view();
            let new = new_claim(&view, group, claim)?;
            let class = view.classes.get(&new.class);
            let class = class.ok_or_else(|| {
                format!("NodePool {}: there is no EC2NodeClass {}", group.pool, new.class)
            })?;
            (new, class.network.clone(), class.launch.context.clone(), class.ask.family)
        };
        let class_name = new.class.name.clone();
        let uid = done(adapter.create_claim(&new))?;

        let image = self.region.find_image(&group.image)?;
        let zones = group.zones.len().max(1);
        let zone = group.zones.get(usize::try_from(at).unwrap_or(0) % zones).cloned();
        let zone = zone.unwrap_or_default();
        let network = self.region.network(&class_network);
        let subnet = network.subnets.iter().find(|it| it.zone == zone);
        let subnet = subnet
            .map(|it| it.id.clone())
            .ok_or_else(|| {
                format!(
                    "EC2NodeClass {class_name} selects no subnet in {zone}, where nodes of the fleet are; write one with its tags into `subnets`, or other `zones` for those nodes"
                )
            })?;
        let choice = Choice {
            template: String::new(),
            image: image.clone(),
            instance_type: group.instance_type.clone(),
            zone: zone.clone(),
            subnet,
        };
        let cluster = &self.simulation.cluster;
        let tags: BTreeMap<String, String> = [
            (format!("kubernetes.io/cluster/{cluster}"), "owned".to_owned()),
            ("eks:eks-cluster-name".to_owned(), cluster.clone()),
            (label::NODEPOOL.to_owned(), group.pool.clone()),
            (label::NODECLASS.to_owned(), class_name),
            (CLAIM_TAG.to_owned(), claim.to_owned()),
            (CLAIM_UID_TAG.to_owned(), uid.clone()),
        ]
        .into();
        let attempt = Attempt {
            number: 1,
            since: now,
            request: FrozenRequest {
                capacity_type: group.capacity_type.clone(),
                choices: vec![choice.clone()],
                context,
                tags: tags.clone(),
            },
            last_ended: None,
            ended: None,
        };
        let object = self.object(kinds::CLAIM, claim)?;
        done(adapter.record_attempt(&object, &attempt))?;
        let token = token(&uid, 1);
        let machine = NewMachine {
            token: &token,
            choice: &choice,
            capacity_type: &group.capacity_type,
            tags: tags.clone(),
            security_groups: network.security_groups.keys().cloned().collect(),
            reservation: group.reservation.clone(),
            placement_group: None,
        };
        let launched = self.region.start(machine, now, &mut self.dice.region);
        let id = launched.machine.0.clone();
        let name = group.names.get(usize::try_from(at).unwrap_or(usize::MAX));
        self.region.settle(&id, name.map(String::as_str), now, &tags, now);

        self.join(&adapter, &new, &id, family, now)
    }

    /// The machine is a node, and claim and node say so.
    fn join(
        &mut self,
        adapter: &Adapter<Direct>,
        new: &NewClaim,
        id: &str,
        family: nodemolt_fit::Family,
        now: Timestamp,
    ) -> Result<(), String> {
        let machine = self.region.machine(id).cloned().ok_or("the machine is gone")?;
        let kind = self.region.types().find(&machine.instance_type).map_err(|it| it.to_string())?;
        let mut labels: BTreeMap<String, String> = type_labels::labels(kind, family)
            .into_iter()
            .filter_map(|it| Some((it.key.to_owned(), it.value.filter(|it| !it.is_empty())?)))
            .collect();
        for (key, value) in [
            (label::INSTANCE_TYPE, &machine.instance_type),
            (label::ZONE, &machine.zone),
            (label::CAPACITY_TYPE, &machine.capacity_type),
        ] {
            labels.insert(key.to_owned(), value.clone());
        }
        if let Some(reservation) = &machine.reservation {
            labels.insert(label::CAPACITY_RESERVATION_ID.to_owned(), reservation.clone());
        }
        // What the pool asks for and no machine decides, as we would have chosen it. What a machine decides is as it is: the
        // fleet may have been launched by other words.
        let undecided = |key: &str| !label::by_type(key) && !label::by_offering(key);
        for (key, value) in pinned(&new.requirements).into_iter().filter(|it| undecided(&it.0)) {
            labels.entry(key).or_insert(value);
        }
        let object = self.object(kinds::CLAIM, &new.name)?;
        let uid = object.uid.clone();
        let claim = self.kube.borrow().server.get(kinds::CLAIM, "", &new.name).cloned();
        let stands = self.new_machine(&machine, claim.as_deref(), Fate::Well);
        let amounts = |all: &BTreeMap<String, String>| {
            all.iter().filter_map(|(name, it)| Some((name.clone(), it.parse().ok()?))).collect()
        };
        let condition = |kind: &str| Condition {
            kind: kind.to_owned(),
            status: Some(true),
            reason: kind.to_owned(),
            message: String::new(),
            since: now,
        };
        let state = ClaimState {
            machine: Some(MachineId(id.to_owned())),
            zone: Some(machine.zone.clone()),
            image: Some(machine.image.clone()),
            node: Some(stands.node_name.clone()),
            capacity: amounts(&stands.capacity),
            allocatable: amounts(&stands.allocatable),
            labels: labels.clone(),
            stages: [
                (Stage::Launched, condition("Launched")),
                (Stage::Registered, condition("Registered")),
                (Stage::Initialized, condition("Initialized")),
            ]
            .into(),
            conditions: vec![condition("Ready")],
            class_stamp: None,
            template_stamp: None,
        };
        done(adapter.write_claim(&object, &state))?;
        let node = stands.node_name.clone();
        let due = self.kube.borrow_mut().machine_stands(stands, now, &mut self.dice.kube);
        self.put_kube(due);
        labels.extend(new.labels.clone());
        labels.insert(label::NODEPOOL.to_owned(), new.pool.clone());
        for key in [REGISTERED_LABEL, INITIALIZED_LABEL] {
            labels.insert(key.to_owned(), "true".to_owned());
        }
        let state = NewNodeState {
            labels,
            annotations: new.annotations.clone(),
            taints: Vec::new(),
            owner: (new.name.clone(), uid),
        };
        let node = self.object(kinds::NODE, &node)?;
        done(adapter.register_node(&node, &state))
    }

    fn object(
        &self,
        resource: nodemolt_cluster::transport::Resource,
        name: &str,
    ) -> Result<Object, String> {
        let kube = self.kube.borrow();
        let found = kube.server.get(resource, "", name);
        let found = found.ok_or_else(|| format!("{} {name} is gone", resource.kind))?;
        let text = |key: &str| found["metadata"][key].as_str().unwrap_or_default().to_owned();
        Ok(Object {
            name: name.to_owned(),
            uid: text("uid"),
            revision: Revision(text("resourceVersion")),
        })
    }
}

fn new_claim(view: &View, group: &Group, claim: &str) -> Result<NewClaim, String> {
    let pool = view.pools.get(&group.pool);
    let pool = pool.ok_or_else(|| format!("there is no NodePool {}", group.pool))?;
    let class = view.classes.get(&pool.class).ok_or_else(|| {
        format!("NodePool {}: there is no EC2NodeClass {}", group.pool, pool.class)
    })?;
    let mut labels = pool.template.labels.clone();
    labels.insert(label::NODECLASS.to_owned(), pool.class.name.clone());
    Ok(NewClaim {
        name: claim.to_owned(),
        pool: pool.name.clone(),
        pool_uid: pool.uid.clone(),
        class: pool.class.clone(),
        labels,
        annotations: pool.template.annotations.clone(),
        requirements: pool.requirements.clone(),
        taints: pool.fit.taints.clone(),
        startup_taints: pool.fit.startup_taints.clone(),
        requests: BTreeMap::new(),
        termination_grace_period: pool.template.termination_grace_period,
        expire_after: pool.template.expire_after,
        class_stamp: class.launch.static_stamp(),
        template_stamp: pool.template.stamp(),
        successor_of: None,
    })
}

/// Nothing has to wait before the world begins.
fn done<T>(future: impl Future<Output = Result<T, ClusterError>>) -> Result<T, String> {
    match at_once(future) {
        Some(result) => result.map_err(|it| it.to_string()),
        None => Err("the API server did not answer".to_owned()),
    }
}
