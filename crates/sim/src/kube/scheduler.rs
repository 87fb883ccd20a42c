//! Which node gets this pod?
//!
//! `pods without a node × nodes → bindings`
//!
//! One pod at a time, the most important first, onto the emptiest node that can take it. Its own reading of
//! resources, taints, affinity, spread and volumes, apart from `fit`: what nodemolt believes will fit is
//! found out here.

mod room;
mod terms;

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::room::{Room, Wants};
pub(super) use self::terms::node_wanted;
use super::pod_life::set_condition;
use super::{Due, Kube};
use crate::api_server::{ApiServer, Key};
use crate::dice::Dice;
use crate::json::{at, items, set, text, whole};
use crate::kinds;
use crate::selector::condition;
use crate::trace::Actor;

#[derive(Debug, Default)]
pub(super) struct Scheduler {
    dirty: bool,
    pending: bool,
    /// What pods request, by UID: read once.
    wants: BTreeMap<String, Rc<Wants>>,
}

impl Scheduler {
    pub(super) fn room_changed(&mut self) {
        self.dirty = true;
    }

    pub(super) fn forget(&mut self, uid: &str) {
        self.wants.remove(uid);
    }

    pub(super) fn wakes(&mut self, waiting: bool) -> bool {
        let wakes = self.dirty && waiting && !self.pending;
        self.pending |= wakes;
        wakes
    }

    fn wants(&mut self, pod: &Value) -> Rc<Wants> {
        let uid = text(pod, &["metadata", "uid"]);
        if let Some(known) = self.wants.get(uid) {
            return Rc::clone(known);
        }
        let read = Rc::new(Wants::of(pod));
        self.wants.insert(uid.to_owned(), Rc::clone(&read));
        read
    }
}

impl Kube {
    pub(super) fn on_schedule(&mut self, now: Timestamp, dice: &mut Dice) -> Due {
        self.scheduler.pending = false;
        self.scheduler.dirty = false;
        let mut waiting: Vec<(i64, String, Key, Rc<Value>)> = self
            .server
            .pods_nowhere()
            .filter(|(_, it)| at(it, &["metadata", "deletionTimestamp"]).is_none())
            .filter(|(_, it)| items(it, &["spec", "schedulingGates"]).is_empty())
            .filter(|(_, it)| text(it, &["spec", "schedulerName"]) == "default-scheduler")
            .map(|(key, it)| {
                let priority = whole(it, &["spec", "priority"]).unwrap_or(0);
                let made = text(it, &["metadata", "creationTimestamp"]).to_owned();
                (-priority, made, key.clone(), Rc::clone(it))
            })
            .collect();
        waiting.sort_by(|a, b| (a.0, &a.1, &a.2).cmp(&(b.0, &b.1, &b.2)));
        if waiting.is_empty() {
            return Vec::new();
        }
        let mut rooms = self.rooms();
        let mut offers = Offers::default();
        for (_, _, key, pod) in waiting {
            self.place(&key, &pod, &mut rooms, &mut offers, now, dice);
        }
        // What was just bound made no room for anybody.
        Vec::new()
    }

    fn rooms(&mut self) -> Vec<Room> {
        // In the order of their names.
        let nodes: Vec<Rc<Value>> =
            self.server.all(kinds::NODE).map(|(_, it)| Rc::clone(it)).collect();
        let mut rooms = Vec::with_capacity(nodes.len());
        for node in nodes {
            let mut room = Room::of(node);
            let pods: Vec<Rc<Value>> = self.server.pods_on(room.name()).cloned().collect();
            for pod in pods {
                let wants = self.scheduler.wants(&pod);
                room.take(pod, &wants);
            }
            rooms.push(room);
        }
        rooms
    }

    fn place(
        &mut self,
        key: &Key,
        pod: &Rc<Value>,
        rooms: &mut [Room],
        offers: &mut Offers,
        now: Timestamp,
        dice: &mut Dice,
    ) {
        let wants = self.scheduler.wants(pod);
        let topology = terms::Topology::of(pod, rooms);
        offers.begin(pod, &wants, rooms.len());
        let mut best: Option<(Score, usize)> = None;
        for index in terms::named_rooms(pod, rooms) {
            let room = &rooms[index];
            let Some((soft, alike, full)) = offers.of(index, pod, &wants, room) else { continue };
            if !topology.admits(room) || !volumes_reach(&self.server, pod, room) {
                continue;
            }
            let score = (soft, alike, full, dice.next());
            if best.as_ref().is_none_or(|(it, _)| score < *it) {
                best = Some((score, index));
            }
        }
        let Some((_, index)) = best else {
            if condition(pod, "PodScheduled") != "False" {
                self.server.alter(Actor::Scheduler, kinds::POD, key, now, |it| {
                    set_condition(it, "PodScheduled", "False", "Unschedulable", now);
                });
            }
            return;
        };
        let node = rooms[index].name().to_owned();
        self.bind_claims(pod, &rooms[index], now);
        self.server.alter(Actor::Scheduler, kinds::POD, key, now, |it| {
            set(it, &["spec", "nodeName"], json!(node));
            set_condition(it, "PodScheduled", "True", "", now);
        });
        if let Some(bound) = self.server.get(kinds::POD, &key.namespace, &key.name) {
            rooms[index].take(Rc::clone(bound), &wants);
        }
    }

    /// Volumes that wait for their first pod come to be where that pod goes.
    fn bind_claims(&mut self, pod: &Value, room: &Room, now: Timestamp) {
        let namespace = text(pod, &["metadata", "namespace"]);
        let zone = text(&room.node, &["metadata", "labels", "topology.kubernetes.io/zone"]);
        for name in claims(pod) {
            let Some(claim) = self.server.get(kinds::VOLUME_CLAIM, namespace, name).cloned() else {
                continue;
            };
            if !text(&claim, &["spec", "volumeName"]).is_empty() {
                continue;
            }
            let volume = format!("pvc-{}", text(&claim, &["metadata", "uid"]));
            let terms = json!([{ "matchExpressions": [
                { "key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone] },
            ] }]);
            let body = json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": volume },
                "spec": {
                    "csi": { "driver": "ebs.csi.aws.com", "volumeHandle": format!("vol-{volume}") },
                    "claimRef": { "namespace": namespace, "name": name },
                    "nodeAffinity": { "required": { "nodeSelectorTerms": terms } },
                },
                "status": { "phase": "Bound" },
            });
            self.create(Actor::Controllers, kinds::VOLUME, body, now);
            let key = Key::new(namespace, name);
            self.server.alter(Actor::Controllers, kinds::VOLUME_CLAIM, &key, now, |it| {
                set(it, &["spec", "volumeName"], json!(volume));
                set(it, &["status", "phase"], json!("Bound"));
            });
        }
    }
}

/// Less is better: taints that ask to stay away, pods of the same owner, how full it would be in thousandths;
/// then chance.
type Score = (usize, usize, i128, u64);

/// What each node by itself has for the pods of one owner, which are alike and come one after the other: it is
/// found out anew only where one of them went. Else a large fleet is looked at from end to end for every pod.
#[derive(Debug, Default)]
struct Offers {
    /// For whom.
    pod: Option<(Rc<Value>, Rc<Wants>)>,
    /// By node: how many pods were there then, and all of the score but chance.
    known: Vec<Option<(usize, Option<Offer>)>>,
}

type Offer = (usize, usize, i128);

impl Offers {
    /// Whose turn it is. What is known stays if it is another one of the same.
    fn begin(&mut self, pod: &Rc<Value>, wants: &Rc<Wants>, rooms: usize) {
        let alike = self.pod.as_ref().is_some_and(|(known, wanted)| {
            owner(pod).is_some()
                && owner(known) == owner(pod)
                && wanted == wants
                && at(known, &["spec"]) == at(pod, &["spec"])
        });
        if !alike {
            self.known.clear();
            self.known.resize(rooms, None);
        }
        self.pod = Some((Rc::clone(pod), Rc::clone(wants)));
    }

    /// `None` where it does not let the pod in.
    fn of(&mut self, index: usize, pod: &Value, wants: &Wants, room: &Room) -> Option<Offer> {
        let there = room.pods.len();
        if let Some(Some((then, offer))) = self.known.get(index)
            && *then == there
        {
            return *offer;
        }
        let offer = room.admits(pod, wants).then(|| offer(pod, wants, room));
        if let Some(known) = self.known.get_mut(index) {
            *known = Some((there, offer));
        }
        offer
    }
}

fn offer(pod: &Value, wants: &Wants, room: &Room) -> Offer {
    let own = owner(pod);
    let alike = match own {
        Some(_) => room.pods.iter().filter(|it| owner(it) == own).count(),
        None => 0,
    };
    (room.soft_taints(pod), alike, room.full(wants))
}

/// The UID of the first that it is owned by.
fn owner(pod: &Value) -> Option<&str> {
    items(pod, &["metadata", "ownerReferences"]).first().map(|it| text(it, &["uid"]))
}

/// The claims that a pod mounts, by name.
fn claims(pod: &Value) -> impl Iterator<Item = &str> {
    items(pod, &["spec", "volumes"])
        .iter()
        .map(|it| text(it, &["persistentVolumeClaim", "claimName"]))
        .filter(|it| !it.is_empty())
}

/// Whether all that it mounts can be had there. A claim that is not there cannot.
fn volumes_reach(server: &ApiServer, pod: &Value, room: &Room) -> bool {
    let namespace = text(pod, &["metadata", "namespace"]);
    claims(pod).all(|name| {
        let Some(claim) = server.get(kinds::VOLUME_CLAIM, namespace, name) else { return false };
        let volume = text(claim, &["spec", "volumeName"]);
        if volume.is_empty() {
            return true;
        }
        let Some(volume) = server.get(kinds::VOLUME, "", volume) else { return false };
        let path = ["spec", "nodeAffinity", "required", "nodeSelectorTerms"];
        at(volume, &path).is_none() || terms::any_node_term(items(volume, &path), &room.node)
    })
}
