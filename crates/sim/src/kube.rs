//! What happens in a cluster by itself?
//!
//! `event × now × dice → writes to the API server, and later events`
//!
//! Controllers of workloads and budgets, the scheduler, kubelets, and whoever looks after silent nodes. Each
//! looks at what changed since it last looked, some time after it changed. Whoever drives this keeps the
//! events that it is given and hands each back at its time; after every request of somebody else it calls
//! [`Kube::heard`].

mod budgets;
mod node_life;
mod pace;
mod pod_life;
mod scheduler;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::transport::{Refusal, Resource, Verb};
use serde_json::{Value, json};

use self::budgets::Budgets;
use self::node_life::Machine;
use self::pace::Pace;
use self::scheduler::Scheduler;
use self::workloads::Workloads;
use crate::api_server::{ApiServer, Key, Touched, request};
use crate::dice::Dice;
use crate::json::{at, items, members, text};
use crate::kinds;
use crate::selector::{ready, selects};
use crate::trace::Actor;

/// What is due, and when.
pub type Due = Vec<(Timestamp, KubeEvent)>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KubeEvent {
    /// Deployments, `StatefulSets`, Jobs, `DaemonSets` and namespaces are looked after.
    Workloads,
    /// `PodDisruptionBudgets` are counted again.
    Budgets,
    /// Pods without a node are given one.
    Schedule,
    /// Nodes that are silent, and the pods on them; what nobody owns any more.
    Nodes,
    /// Something on a machine.
    Machine { id: String, what: OnMachine },
    /// Something in a pod: of this UID, or nothing happens.
    Pod { key: Key, uid: String, what: InPod },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnMachine {
    /// Its kubelet registers a Node.
    Joins,
    /// The kubelet says that it is ready.
    Ready,
    /// The kubelet says that it is not.
    Unready,
    /// An agent takes the startup taints away.
    SetUp,
    /// Its kubelet says nothing any more, and what runs there runs on.
    FallsSilent,
    /// Its kubelet speaks again.
    Speaks,
    /// Nobody has heard from it for so long that it counts as unknown.
    CountsAsLost,
    /// The cloud does not know the machine any more, so its Node is deleted.
    Removed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InPod {
    /// Its containers run.
    Runs,
    /// It is ready.
    Ready,
    /// A job's work is done.
    Completes,
    /// Its containers have ended after it was deleted.
    Stops,
    /// It has stayed on a bad node for as long as it tolerates that.
    TakenOff,
}

/// A machine that runs, as far as its kubelet is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMachine {
    /// `i-0123456789abcdef0`.
    pub id: String,
    pub instance_type: String,
    pub zone: String,
    /// What the user data tells the kubelet to write onto its Node, beside what it knows itself.
    pub labels: BTreeMap<String, String>,
    /// With the unregistered taint and the startup taints, as `key`, `value`, `effect`.
    pub taints: Vec<(String, String, String)>,
    /// Which of them an agent takes away, by key.
    pub startup_taints: Vec<String>,
    pub node_name: String,
    pub image: String,
    /// `v1.36.2`.
    pub kubelet_version: String,
    /// `arm64` or `amd64`.
    pub architecture: String,
    /// By name of the resource, as Kubernetes writes amounts.
    pub allocatable: BTreeMap<String, String>,
    pub capacity: BTreeMap<String, String>,
    /// What goes wrong with it.
    pub fate: Fate,
}

/// What becomes of a machine that was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    #[default]
    Well,
    NeverJoins,
    /// Joins, and never says that it is ready.
    NeverReady,
    /// Ready, and its startup taints stay.
    NeverSetUp,
    /// Ready and not ready by turns.
    Flaps,
    /// The kubelet stops this long after it was ready; the machine runs on.
    FallsSilentAfter(SignedDuration),
}

/// Something goes wrong, or right again, in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KubeFault {
    /// What becomes of a machine that runs already: a node that is ready may fall silent or flap.
    Machine { id: String, fate: Fate },
    /// So many times what they take otherwise: controllers, scheduler, kubelets.
    Slowness { times: u32 },
    /// Pods of this workload take this long to stop, whatever they are asked.
    StopsSlowly { namespace: String, prefix: String, takes: SignedDuration },
    /// Pods whose name begins so never become ready.
    NeverReady { namespace: String, prefix: String },
    /// All of it is over: silent kubelets speak, machines do well, nothing is slow.
    Over,
}

/// On a pod: how long it takes to become ready once it runs, as `30s`; `never`.
pub const READY_AFTER: &str = "sim.nodemolt.dev/ready-after";
/// On a pod: how long it takes to stop once it is asked. It is ended when its grace period is.
pub const STOPS_AFTER: &str = "sim.nodemolt.dev/stops-after";
/// On a pod of a job: how long its work takes.
pub const TAKES: &str = "sim.nodemolt.dev/takes";

/// How annotations begin that speak to the simulator.
const TO_US: &str = "sim.nodemolt.dev/";

/// What of these an object says for its pods and nobody can read: where, and why.
pub(crate) fn unreadable_pace(object: &Value) -> Option<(String, String)> {
    for place in
        [&["metadata", "annotations"][..], &["spec", "template", "metadata", "annotations"]]
    {
        for (key, said) in members(object, place) {
            if let Some(told) = said.as_str().and_then(|it| unreadable_word(key, it)) {
                return Some((format!("{}.{key}", place.join(".")), told));
            }
        }
    }
    None
}

/// Why an annotation that speaks to the simulator says nothing to it.
pub(crate) fn unreadable_word(key: &str, said: &str) -> Option<String> {
    if !key.starts_with(TO_US) {
        return None;
    }
    if ![READY_AFTER, STOPS_AFTER, TAKES].contains(&key) {
        return Some(format!(
            "the simulator knows no such annotation; write {READY_AFTER}, {STOPS_AFTER} or {TAKES}"
        ));
    }
    if key == READY_AFTER && said == "never" {
        return None;
    }
    crate::length::read(said).err()
}

/// Everything that runs in the cluster but nodemolt.
#[derive(Debug)]
pub struct Kube {
    pub server: ApiServer,
    pace: Pace,
    machines: BTreeMap<String, Machine>,
    /// By name of the node, the id of the machine that registered it last.
    kubelets: BTreeMap<String, String>,
    /// Names of nodes that are gone while pods are still on them, and since when.
    lost_nodes: BTreeMap<String, Timestamp>,
    workloads: Workloads,
    budgets: Budgets,
    scheduler: Scheduler,
}

impl Kube {
    pub fn new(mut server: ApiServer) -> Self {
        server.begin_feed();
        Self {
            server,
            pace: Pace::default(),
            machines: BTreeMap::new(),
            kubelets: BTreeMap::new(),
            lost_nodes: BTreeMap::new(),
            workloads: Workloads::default(),
            budgets: Budgets::default(),
            scheduler: Scheduler::default(),
        }
    }

    /// How long machines take from running to joining, and from joining to being ready: a third less or
    /// more. What is `None` stays as it is.
    pub fn set_boot(&mut self, joins: Option<SignedDuration>, ready: Option<SignedDuration>) {
        let about = |it: SignedDuration| {
            let millis = i64::try_from(it.as_millis()).unwrap_or(i64::MAX / 4);
            (millis / 3 * 2, millis / 3 * 4)
        };
        if let Some(joins) = joins {
            self.pace.joins = about(joins);
        }
        if let Some(ready) = ready {
            self.pace.becomes_ready = about(ready);
        }
    }

    /// What is due happens.
    pub fn on(&mut self, event: &KubeEvent, now: Timestamp, dice: &mut Dice) -> Due {
        let mut due = match event {
            KubeEvent::Workloads => self.on_workloads(now),
            KubeEvent::Budgets => self.on_budgets(now),
            KubeEvent::Schedule => self.on_schedule(now, dice),
            KubeEvent::Nodes => self.on_nodes(now),
            KubeEvent::Machine { id, what } => self.on_machine(id, *what, now, dice),
            KubeEvent::Pod { key, uid, what } => self.on_pod(key, uid, *what, now, dice),
        };
        due.extend(self.heard(now, dice));
        due
    }

    /// What others have written sets things going. To be called after each request of theirs.
    pub fn heard(&mut self, now: Timestamp, dice: &mut Dice) -> Due {
        let mut due = Vec::new();
        for touched in self.server.take_touched() {
            self.note(&touched, now, dice, &mut due);
        }
        if self.workloads.wakes() {
            due.push((self.pace.controllers(now, dice), KubeEvent::Workloads));
        }
        if self.budgets.wakes() {
            due.push((self.pace.controllers(now, dice), KubeEvent::Budgets));
        }
        let waiting = self.server.pods_nowhere().next().is_some();
        if self.scheduler.wakes(waiting) {
            due.push((self.pace.scheduler(now, dice), KubeEvent::Schedule));
        }
        due
    }

    /// A machine runs: its kubelet will join, if nothing goes wrong.
    pub fn machine_runs(&mut self, machine: NewMachine, now: Timestamp, dice: &mut Dice) -> Due {
        let (id, fate) = (machine.id.clone(), machine.fate);
        self.machines.insert(id.clone(), Machine::new(machine));
        if fate == Fate::NeverJoins {
            return Vec::new();
        }
        let what = OnMachine::Joins;
        vec![(self.pace.boot(now, dice), KubeEvent::Machine { id, what })]
    }

    /// A machine that has run for long, at the beginning of a world: its Node is ready from the start, and
    /// is made unless somebody has made it already.
    pub fn machine_stands(&mut self, machine: NewMachine, now: Timestamp, dice: &mut Dice) -> Due {
        let id = machine.id.clone();
        let startup = machine.startup_taints.clone();
        self.machines.insert(id.clone(), Machine::new(machine));
        let mut due = self.on_machine(&id, OnMachine::Joins, now, dice);
        // What follows is done now and not later.
        due.retain(|(_, it)| !matches!(it, KubeEvent::Machine { .. }));
        due.extend(self.on_machine(&id, OnMachine::Ready, now, dice));
        if !startup.is_empty() {
            due.extend(self.on_machine(&id, OnMachine::SetUp, now, dice));
        }
        due.extend(self.heard(now, dice));
        due
    }

    /// A machine is gone, and with it everything that ran there. Its Node object stays until somebody
    /// notices.
    pub fn machine_gone(&mut self, id: &str, now: Timestamp, dice: &mut Dice) -> Due {
        let Some(machine) = self.machines.get_mut(id) else { return Vec::new() };
        machine.runs = false;
        let mut due = self.fall_silent(id, now);
        due.extend(self.heard(now, dice));
        due
    }

    pub fn fault(&mut self, fault: &KubeFault, now: Timestamp, dice: &mut Dice) -> Due {
        let mut due = Vec::new();
        match fault {
            KubeFault::Machine { id, fate } => due = self.change_fate(id, *fate, now, dice),
            KubeFault::Slowness { times } => self.pace.times = (*times).max(1),
            KubeFault::StopsSlowly { namespace, prefix, takes } => {
                let whom = (namespace.clone(), prefix.clone());
                self.pace.stops_slowly.insert(whom, *takes);
            }
            KubeFault::NeverReady { namespace, prefix } => {
                self.pace.never_ready.insert((namespace.clone(), prefix.clone()));
            }
            KubeFault::Over => {
                self.pace = self.pace.healed();
                let ids: Vec<String> = self.machines.keys().cloned().collect();
                for id in ids {
                    due.extend(self.change_fate(&id, Fate::Well, now, dice));
                }
                due.extend(self.heal_pods(now, dice));
            }
        }
        due.extend(self.heard(now, dice));
        due
    }

    /// Who has to look again because of a change.
    fn note(&mut self, touched: &Touched, now: Timestamp, dice: &mut Dice, due: &mut Due) {
        let Touched { resource, old, new } = touched;
        let Some(either) = new.as_ref().or(old.as_ref()) else { return };
        if *resource == kinds::POD {
            self.note_pod(old.as_ref(), new.as_ref(), now, dice, due);
        } else if *resource == kinds::NODE {
            self.note_node(old.as_ref(), new.as_ref(), now, dice, due);
        } else if *resource == kinds::PDB {
            let counts = |it: &Rc<Value>, than: &Rc<Value>| {
                [["metadata", "generation"], ["status", "disruptedPods"]]
                    .iter()
                    .all(|path| at(it, path) == at(than, path))
            };
            let same = old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| counts(old, new));
            if new.is_some() && !same {
                self.budgets.look_at(Key::of(either));
            }
        } else if workloads::KINDS.contains(resource) {
            if old.as_deref().map(wished) != new.as_deref().map(wished) {
                self.workloads.look_at(*resource, Key::of(either));
                self.note_budgets(text(either, &["metadata", "namespace"]));
            }
        } else if *resource == kinds::NAMESPACE
            && at(either, &["metadata", "deletionTimestamp"]).is_some()
        {
            self.workloads.look_at(*resource, Key::of(either));
        }
        self.note_owners(old.as_deref(), new.as_deref());
        // A namespace that is going goes when its last object has.
        if new.is_none() && resource.namespaced {
            let namespace = text(either, &["metadata", "namespace"]);
            if let Some(found) = self.server.get(kinds::NAMESPACE, "", namespace)
                && at(found, &["metadata", "deletionTimestamp"]).is_some()
            {
                self.workloads.look_at(kinds::NAMESPACE, Key::new("", namespace));
            }
        }
    }

    /// What may have no owner any more.
    fn note_owners(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), None) => {
                let gone = text(old, &["metadata", "uid"]);
                for (resource, object) in self.server.owned_by(gone) {
                    self.workloads.maybe_orphaned(resource, Key::of(&object));
                }
            }
            (None, Some(new)) => {
                let owners = items(new, &["metadata", "ownerReferences"]);
                let known = |it: &Value| self.server.with_uid(text(it, &["uid"])).is_some();
                if !owners.is_empty() && !owners.iter().any(known) {
                    let said = (text(new, &["apiVersion"]), text(new, &["kind"]));
                    if let Some(resource) = kinds::of_object(said.0, said.1) {
                        self.workloads.maybe_orphaned(resource, Key::of(new));
                    }
                }
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    fn note_pod(
        &mut self,
        old: Option<&Rc<Value>>,
        new: Option<&Rc<Value>>,
        now: Timestamp,
        dice: &mut Dice,
        due: &mut Due,
    ) {
        let Some(either) = new.or(old) else { return };
        if old.map(|it| counts(it)) != new.map(|it| counts(it)) {
            for owner in items(either, &["metadata", "ownerReferences"]) {
                if let Some((resource, owner)) = self.server.with_uid(text(owner, &["uid"])) {
                    self.workloads.look_at(resource, Key::of(owner));
                }
            }
            let namespace = text(either, &["metadata", "namespace"]);
            let selecting: Vec<Key> = self
                .server
                .all_in(kinds::PDB, namespace)
                .filter(|(_, it)| {
                    let selector = at(it, &["spec", "selector"]);
                    [old, new].into_iter().flatten().any(|pod| selects(selector, pod))
                })
                .map(|(key, _)| key.clone())
                .collect();
            for key in selecting {
                self.budgets.look_at(key);
            }
        }
        match new {
            None => {
                self.scheduler.forget(text(either, &["metadata", "uid"]));
                self.scheduler.room_changed();
            }
            Some(new) => {
                if old.is_none() {
                    self.scheduler.room_changed();
                }
                self.pod_changed(old, new, now, dice, due);
            }
        }
    }

    /// Budgets count pods by what their controllers want.
    fn note_budgets(&mut self, namespace: &str) {
        let keys: Vec<Key> =
            self.server.all_in(kinds::PDB, namespace).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.budgets.look_at(key);
        }
    }

    /// Makes an object. That it exists already, or that its namespace is going, is no wonder.
    fn create(&mut self, by: Actor, resource: Resource, body: Value, now: Timestamp) -> bool {
        let namespace = text(&body, &["metadata", "namespace"]).to_owned();
        let request = request(Verb::Create, resource, Some(&namespace), None, Some(body));
        self.server.handle(by, &request, now).is_ok()
    }

    fn delete(
        &mut self,
        by: Actor,
        resource: Resource,
        object: &Value,
        grace_seconds: Option<i64>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let key = Key::of(object);
        let mut options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1",
            "preconditions": { "uid": text(object, &["metadata", "uid"]) },
        });
        if let Some(seconds) = grace_seconds {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        let (namespace, name) = (Some(key.namespace.as_str()), Some(key.name.as_str()));
        let request = request(Verb::Delete, resource, namespace, name, Some(options));
        self.server.handle(by, &request, now).map(drop)
    }
}

/// What controllers of workloads look at.
fn wished(object: &Value) -> (bool, Option<&Value>) {
    (at(object, &["metadata", "deletionTimestamp"]).is_some(), at(object, &["spec"]))
}

/// What of a pod others count.
fn counts(pod: &Value) -> (bool, bool, &str, Option<&Value>) {
    let going = at(pod, &["metadata", "deletionTimestamp"]).is_some();
    (going, ready(pod), text(pod, &["status", "phase"]), at(pod, &["metadata", "labels"]))
}

/// Adds without a panic at the end of time.
fn after(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// An annotation that says how long something takes.
fn told_duration(object: &Value, annotation: &str) -> Option<SignedDuration> {
    crate::length::read(text(object, &["metadata", "annotations", annotation])).ok()
}

/// Whom a fault is about: everything in a namespace whose name begins so.
type Whom = (String, String);

fn meant(whom: &Whom, object: &Value) -> bool {
    text(object, &["metadata", "namespace"]) == whom.0
        && text(object, &["metadata", "name"]).starts_with(&whom.1)
}

type Names = BTreeSet<Whom>;
