//! How does a node come and go?
//!
//! ```text
//! runs ─▶ joins ─▶ Ready ─▶ set up          silent ─50 s─▶ Unknown ─5 min─▶ its pods are deleted
//!                   ▲  │                                      │
//!                   └──┴ flaps                                └─ machine gone ─▶ Node deleted ─▶ pods removed
//! ```
//!
//! Heartbeats are not stored: a kubelet that speaks is one that nobody marks as lost.

use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::pod_life::set_condition;
use super::{Due, Fate, Kube, KubeEvent, NewMachine, OnMachine, after};
use crate::api_server::Key;
use crate::dice::Dice;
use crate::json::{at, items, set, stamp, text};
use crate::kinds;
use crate::selector::{condition, ready};
use crate::trace::Actor;

/// `--node-monitor-grace-period` of the controller manager.
const SILENT_FOR: SignedDuration = SignedDuration::from_secs(50);
/// How long the collector of pods waits after a node has gone, to be sure.
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// A machine, and how far it has come.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) spec: NewMachine,
    pub(super) runs: bool,
    /// Its kubelet does.
    speaks: bool,
    /// The UID of the Node that it registered.
    node: Option<String>,
    ready_once: bool,
}

impl Machine {
    pub(super) fn new(spec: NewMachine) -> Self {
        Self { spec, runs: true, speaks: true, node: None, ready_once: false }
    }
}

impl Kube {
    /// Whether a kubelet works for this node.
    pub(super) fn speaks(&self, node: &str) -> bool {
        let Some(found) = self.server.get(kinds::NODE, "", node) else { return false };
        let uid = text(found, &["metadata", "uid"]);
        let machine = self.kubelets.get(node).and_then(|it| self.machines.get(it));
        machine.is_some_and(|it| it.runs && it.speaks && it.node.as_deref() == Some(uid))
    }

    /// The machine whose Node this is, by id.
    pub fn machine_of(&self, node: &str) -> Option<&str> {
        self.kubelets.get(node).map(String::as_str)
    }

    pub(super) fn on_machine(
        &mut self,
        id: &str,
        what: OnMachine,
        now: Timestamp,
        dice: &mut Dice,
    ) -> Due {
        let Some(machine) = self.machines.get(id) else { return Vec::new() };
        let (fate, works) = (machine.spec.fate, machine.runs && machine.speaks);
        match what {
            OnMachine::Joins if works && machine.node.is_none() => self.join(id, now, dice),
            OnMachine::Ready if works && fate != Fate::NeverReady => self.be_ready(id, now, dice),
            OnMachine::Unready if works && fate == Fate::Flaps => self.be_unready(id, now, dice),
            OnMachine::SetUp if works && fate != Fate::NeverSetUp => {
                self.set_up(id, now);
                Vec::new()
            }
            OnMachine::FallsSilent if matches!(fate, Fate::FallsSilentAfter(_)) => {
                self.fall_silent(id, now)
            }
            OnMachine::Speaks => self.speak(id, now, dice),
            OnMachine::CountsAsLost if !works => self.count_as_lost(id, now, dice),
            OnMachine::Removed if !machine.runs => {
                if let Some(node) = self.node_of(id) {
                    // It is there: it was just read.
                    let _ = self.delete(Actor::Controllers, kinds::NODE, &node, None, now);
                }
                self.forget(id);
                Vec::new()
            }
            OnMachine::Joins
            | OnMachine::Ready
            | OnMachine::Unready
            | OnMachine::SetUp
            | OnMachine::FallsSilent
            | OnMachine::CountsAsLost
            | OnMachine::Removed => Vec::new(),
        }
    }

    fn forget(&mut self, id: &str) {
        if let Some(machine) = self.machines.remove(id)
            && self.machine_of(&machine.spec.node_name) == Some(id)
        {
            self.kubelets.remove(&machine.spec.node_name);
        }
    }

    /// The Node that this machine registered, if it is still that one.
    fn node_of(&self, id: &str) -> Option<Rc<Value>> {
        let machine = self.machines.get(id)?;
        let node = self.server.get(kinds::NODE, "", &machine.spec.node_name)?;
        let uid = text(node, &["metadata", "uid"]);
        (machine.node.as_deref() == Some(uid)).then(|| Rc::clone(node))
    }

    fn alter_node(
        &mut self,
        by: Actor,
        name: &str,
        now: Timestamp,
        change: impl FnOnce(&mut Value),
    ) {
        self.server.alter(by, kinds::NODE, &Key::new("", name), now, change);
    }

    fn join(&mut self, id: &str, now: Timestamp, dice: &mut Dice) -> Due {
        let Some(machine) = self.machines.get(id) else { return Vec::new() };
        let spec = machine.spec.clone();
        let name = spec.node_name.clone();
        self.create(Actor::Kubelet, kinds::NODE, node_object(&spec), now);
        self.alter_node(Actor::Kubelet, &name, now, |node| {
            if at(node, &["status", "capacity"]).is_none() {
                set(node, &["status"], node_status(&spec));
                set_condition(node, "Ready", "False", "KubeletNotReady", now);
            }
        });
        let node = self.server.get(kinds::NODE, "", &name);
        let uid = node.map(|it| text(it, &["metadata", "uid"]).to_owned());
        if let Some(machine) = self.machines.get_mut(id) {
            machine.node = uid;
        }
        self.kubelets.insert(name.clone(), id.to_owned());
        let mut due = Vec::new();
        if spec.fate != Fate::NeverReady {
            due.push(on(self.pace.readiness(now, dice), id, OnMachine::Ready));
        }
        self.resync(&name, now, dice, &mut due);
        due
    }

    fn be_ready(&mut self, id: &str, now: Timestamp, dice: &mut Dice) -> Due {
        let Some(node) = self.node_of(id) else { return Vec::new() };
        let name = text(&node, &["metadata", "name"]).to_owned();
        self.alter_node(Actor::Kubelet, &name, now, |it| {
            set_condition(it, "Ready", "True", "KubeletReady", now);
        });
        self.alter_node(Actor::Controllers, &name, now, |it| {
            drop_taints(it, |key| key == NOT_READY || key == UNREACHABLE);
        });
        let Some(machine) = self.machines.get_mut(id) else { return Vec::new() };
        let first = !std::mem::replace(&mut machine.ready_once, true);
        let (fate, startup) = (machine.spec.fate, !machine.spec.startup_taints.is_empty());
        let mut due = Vec::new();
        if startup && fate != Fate::NeverSetUp {
            due.push(on(self.pace.set_up(now, dice), id, OnMachine::SetUp));
        }
        match fate {
            Fate::Flaps => due.push(on(self.pace.flap(now, dice), id, OnMachine::Unready)),
            Fate::FallsSilentAfter(wait) if first => {
                due.push(on(after(now, wait), id, OnMachine::FallsSilent));
            }
            Fate::FallsSilentAfter(_)
            | Fate::Well
            | Fate::NeverJoins
            | Fate::NeverReady
            | Fate::NeverSetUp => {}
        }
        self.resync(&name, now, dice, &mut due);
        due
    }

    fn be_unready(&mut self, id: &str, now: Timestamp, dice: &mut Dice) -> Due {
        let Some(node) = self.node_of(id) else { return Vec::new() };
        let name = text(&node, &["metadata", "name"]).to_owned();
        self.alter_node(Actor::Kubelet, &name, now, |it| {
            set_condition(it, "Ready", "False", "KubeletNotReady", now);
        });
        self.alter_node(Actor::Controllers, &name, now, |it| add_taints(it, NOT_READY, now));
        self.pods_unready(&name, now);
        vec![on(self.pace.flap(now, dice), id, OnMachine::Ready)]
    }

    fn set_up(&mut self, id: &str, now: Timestamp) {
        let (Some(node), Some(machine)) = (self.node_of(id), self.machines.get(id)) else { return };
        let startup = machine.spec.startup_taints.clone();
        self.alter_node(Actor::Kubelet, text(&node, &["metadata", "name"]), now, |it| {
            drop_taints(it, |key| startup.iter().any(|it| it == key));
        });
    }

    pub(super) fn fall_silent(&mut self, id: &str, now: Timestamp) -> Due {
        let Some(machine) = self.machines.get_mut(id) else { return Vec::new() };
        machine.speaks = false;
        vec![on(after(now, SILENT_FOR), id, OnMachine::CountsAsLost)]
    }

    fn speak(&mut self, id: &str, now: Timestamp, dice: &mut Dice) -> Due {
        let Some(machine) = self.machines.get_mut(id) else { return Vec::new() };
        if !machine.runs || machine.speaks {
            return Vec::new();
        }
        machine.speaks = true;
        let joined = machine.node.is_some();
        let what = if joined { OnMachine::Ready } else { OnMachine::Joins };
        self.on_machine(id, what, now, dice)
    }

    /// Nobody has heard from it: the node is unknown, and its pods are not ready for anybody.
    fn count_as_lost(&mut self, id: &str, now: Timestamp, dice: &mut Dice) -> Due {
        let gone = self.machines.get(id).is_some_and(|it| !it.runs);
        let Some(node) = self.node_of(id) else {
            if gone {
                self.forget(id);
            }
            return Vec::new();
        };
        let name = text(&node, &["metadata", "name"]).to_owned();
        self.alter_node(Actor::Controllers, &name, now, |it| {
            set_condition(it, "Ready", "Unknown", "NodeStatusUnknown", now);
            drop_taints(it, |key| key == NOT_READY);
            add_taints(it, UNREACHABLE, now);
        });
        self.pods_unready(&name, now);
        if gone {
            return vec![on(self.pace.cloud_notices(now, dice), id, OnMachine::Removed)];
        }
        Vec::new()
    }

    fn pods_unready(&mut self, node: &str, now: Timestamp) {
        let pods: Vec<Key> =
            self.server.pods_on(node).filter(|it| ready(it)).map(|it| Key::of(it)).collect();
        for key in pods {
            self.server.alter(Actor::Controllers, kinds::POD, &key, now, |it| {
                set_condition(it, "Ready", "False", "NodeNotReady", now);
            });
        }
    }

    /// Another fate from now on; one that does well catches up with what it has missed.
    pub(super) fn change_fate(
        &mut self,
        id: &str,
        fate: Fate,
        now: Timestamp,
        dice: &mut Dice,
    ) -> Due {
        let Some(machine) = self.machines.get_mut(id) else { return Vec::new() };
        let before = std::mem::replace(&mut machine.spec.fate, fate);
        let (joined, speaks) = (machine.node.is_some(), machine.speaks);
        match fate {
            Fate::Well if !speaks => vec![on(now, id, OnMachine::Speaks)],
            Fate::Well => match before {
                Fate::Well => Vec::new(),
                Fate::NeverJoins if !joined => vec![on(now, id, OnMachine::Joins)],
                Fate::NeverJoins
                | Fate::NeverReady
                | Fate::NeverSetUp
                | Fate::Flaps
                | Fate::FallsSilentAfter(_) => {
                    let ready_at = self.pace.readiness(now, dice);
                    vec![on(ready_at, id, OnMachine::Ready)]
                }
            },
            Fate::Flaps if joined => vec![on(now, id, OnMachine::Unready)],
            Fate::FallsSilentAfter(wait) => vec![on(after(now, wait), id, OnMachine::FallsSilent)],
            Fate::NeverJoins | Fate::NeverReady | Fate::NeverSetUp | Fate::Flaps => Vec::new(),
        }
    }

    /// A node is there, or is another than it was, or is gone.
    pub(super) fn note_node(
        &mut self,
        old: Option<&Rc<Value>>,
        new: Option<&Rc<Value>>,
        now: Timestamp,
        dice: &mut Dice,
        due: &mut Due,
    ) {
        let Some(either) = new.or(old) else { return };
        let name = text(either, &["metadata", "name"]).to_owned();
        if old.map(|it| matters(it)) == new.map(|it| matters(it)) {
            return;
        }
        self.scheduler.room_changed();
        self.workloads.nodes_changed();
        let Some(new) = new else {
            if self.server.pods_on(&name).next().is_some() {
                self.lost_nodes.insert(name, now);
                due.push((after(now, QUARANTINE), KubeEvent::Nodes));
            }
            return;
        };
        self.lost_nodes.remove(&name);
        let executes = |it: &Rc<Value>| -> Vec<String> {
            let taints = items(it, &["spec", "taints"]).iter();
            let bad = taints.filter(|it| text(it, &["effect"]) == "NoExecute");
            bad.map(|it| text(it, &["key"]).to_owned()).collect()
        };
        let bad = executes(new);
        if !bad.is_empty() && old.map(executes).as_ref() != Some(&bad) {
            for pod in self.server.pods_on(&name) {
                self.leave_bad_node(pod, now, due);
            }
        }
        if old.is_none() {
            self.resync(&name, now, dice, due);
        }
    }

    /// Pods of nodes that are gone are removed: nobody else will say that they have ended.
    pub(super) fn on_nodes(&mut self, now: Timestamp) -> Due {
        let over: Vec<String> = self
            .lost_nodes
            .iter()
            .filter(|(_, since)| after(**since, QUARANTINE) <= now)
            .map(|(name, _)| name.clone())
            .collect();
        for name in over {
            self.lost_nodes.remove(&name);
            let pods: Vec<Rc<Value>> = self.server.pods_on(&name).cloned().collect();
            for pod in pods {
                // They are there: they were just read.
                let _ = self.delete(Actor::Controllers, kinds::POD, &pod, Some(0), now);
            }
        }
        Vec::new()
    }
}

/// What of a node decides who may be there.
fn matters(node: &Value) -> (Option<&Value>, Option<&Value>, &str) {
    (at(node, &["spec"]), at(node, &["metadata", "labels"]), condition(node, "Ready"))
}

fn on(at: Timestamp, id: &str, what: OnMachine) -> (Timestamp, KubeEvent) {
    (at, KubeEvent::Machine { id: id.to_owned(), what })
}

fn drop_taints(node: &mut Value, goes: impl Fn(&str) -> bool) {
    let taints = items(node, &["spec", "taints"]);
    let stay: Vec<Value> = taints.iter().filter(|it| !goes(text(it, &["key"]))).cloned().collect();
    if stay.len() == taints.len() {
        return;
    }
    if stay.is_empty() {
        crate::json::remove(node, &["spec", "taints"]);
    } else {
        set(node, &["spec", "taints"], Value::Array(stay));
    }
}

/// Keeps pods away, and takes them off after a while.
fn add_taints(node: &mut Value, key: &str, now: Timestamp) {
    let mut taints = items(node, &["spec", "taints"]).to_vec();
    for effect in ["NoSchedule", "NoExecute"] {
        let there = |it: &Value| text(it, &["key"]) == key && text(it, &["effect"]) == effect;
        if !taints.iter().any(there) {
            taints.push(json!({ "key": key, "effect": effect, "timeAdded": stamp(now) }));
        }
    }
    set(node, &["spec", "taints"], Value::Array(taints));
}

/// What a kubelet registers.
fn node_object(spec: &NewMachine) -> Value {
    let region = spec.zone.trim_end_matches(|it: char| it.is_ascii_lowercase());
    let mut labels: Map<String, Value> = [
        ("kubernetes.io/hostname", spec.node_name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", &spec.architecture),
        ("node.kubernetes.io/instance-type", &spec.instance_type),
        ("topology.kubernetes.io/zone", &spec.zone),
        ("topology.kubernetes.io/region", region),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), json!(value)))
    .collect();
    labels.extend(spec.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
    let taints: Vec<Value> = spec
        .taints
        .iter()
        .map(|(key, value, effect)| {
            let mut taint = json!({ "key": key, "effect": effect });
            if !value.is_empty() {
                taint["value"] = json!(value);
            }
            taint
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": spec.node_name, "labels": labels },
        "spec": { "providerID": format!("aws:///{}/{}", spec.zone, spec.id), "taints": taints },
    })
}

fn node_status(spec: &NewMachine) -> Value {
    json!({
        "capacity": spec.capacity,
        "allocatable": spec.allocatable,
        "nodeInfo": {
            "kubeletVersion": spec.kubelet_version, "architecture": spec.architecture,
            "operatingSystem": "linux", "osImage": spec.image,
        },
    })
}
