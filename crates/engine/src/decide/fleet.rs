//! What runs, and does it still match?
//!
//! `nodes × claims × pods × machines × wanted → fleet, running, drift`
//!
//! A node is read again only if it, its claim, its pods, its machine or what it should be has changed:
//! looking at ten thousand nodes that stay as they are costs ten thousand comparisons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_core::budget::{Member, Standing, Unavailable};
use nodemolt_core::drain::{Owner, PodPhase, Protection, Stays, stays};
use nodemolt_core::drift::{Drift, Missing, drift};
use nodemolt_core::image::ImageId;
use nodemolt_core::node::{ImageRef, Instance, Running};
use nodemolt_core::place::daemons;
use nodemolt_core::plan::{Fleet, Node};
use nodemolt_core::seen::{
    self, Claim, DISRUPTED_TAINT, Kind, MachineId, Mark, Readiness, Revision, Stage,
};
use nodemolt_core::wanted::{NoImage, Wanted};
use nodemolt_fit::capacity::{Amounts, CPU};
use nodemolt_fit::taint::Taint;
use nodemolt_fit::{self as fit, Operator, Quantity, Written, label};

use super::along::Along;
use super::{Sight, pools};
use crate::memory::{Listed, Memory};
use crate::port::{Machine, NewClaim};

/// What was read of nodes, kept from turn to turn.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// Of each node among `rooms`, in the same order. `None`: it is to be read again.
    from: Vec<Option<From>>,
    /// The list of machines that was looked at last.
    machines: Option<Arc<Listed>>,
    fleet: Arc<Fleet>,
    running: Arc<BTreeMap<String, Running>>,
    drifts: Arc<BTreeMap<String, Drift>>,
    /// Nodes with their pods, by name; then claims that are on their way.
    pub(crate) rooms: Vec<fit::node::Node>,
    /// So many of `rooms` are nodes.
    pub(crate) nodes: usize,
    /// One pod of every `DaemonSet`, and which reading of them this is.
    pub(crate) daemons: (Vec<fit::pod::Pod>, u64),
}

/// What a reading was made from. Pointers: the same value is the same pointer.
#[derive(Debug)]
struct From {
    uid: String,
    revision: Revision,
    claim: Option<(String, Revision)>,
    pods: Option<Mark>,
    machine: Option<Arc<Machine>>,
    wanted: Option<Arc<Wanted>>,
    /// Of the catalog: what an image is called.
    catalog: u64,
    daemons: u64,
}

impl From {
    /// Whether this is the machine of that id.
    fn has(&self, machine: Option<&MachineId>) -> bool {
        self.machine.as_ref().map(|it| &it.id) == machine
    }

    fn still(&self, node: &seen::Node, other: &Parts<'_>) -> bool {
        let same_claim = match (&self.claim, other.claim) {
            (None, None) => true,
            (Some((uid, revision)), Some(claim)) => {
                *uid == claim.uid && *revision == claim.revision
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        same_claim
            && self.revision == node.revision
            && self.uid == node.uid
            && self.pods.as_ref() == other.pods
            && same(self.machine.as_ref(), other.machine)
            && same(self.wanted.as_ref(), other.wanted)
            && self.catalog == other.catalog
            && self.daemons == other.daemons
    }
}

fn same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// What is known of a node beside itself.
struct Parts<'a> {
    claim: Option<&'a Claim>,
    pods: Option<&'a Mark>,
    machine: Option<&'a Arc<Machine>>,
    wanted: Option<&'a Arc<Wanted>>,
    catalog: u64,
    daemons: u64,
}

/// Whether every node of a pool is born with this annotation: then it says nothing about one of them.
pub(crate) fn bears(pool: &seen::Pool, annotation: &str) -> bool {
    pool.template.annotations.get(annotation).is_some_and(|it| it != "false")
}

/// Whether we are the ones that move this claim's node.
pub(crate) fn ours(sight: &Sight<'_>, claim: &Claim) -> bool {
    sight.looks_after(claim)
}

impl Readings {
    pub(crate) fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    pub(crate) fn fleet_mut(&mut self) -> &mut Fleet {
        Arc::make_mut(&mut self.fleet)
    }

    /// All nodes, in the order of their names, each with its machine as far as that was read.
    pub(crate) fn nodes_mut(
        &mut self,
    ) -> impl Iterator<Item = (&String, &mut Node, Option<&Arc<Machine>>)> {
        let nodes = Arc::make_mut(&mut self.fleet).nodes.iter_mut();
        let read = self.from.iter().map(|it| it.as_ref()?.machine.as_ref());
        nodes.zip(read).map(|((name, node), machine)| (name, node, machine))
    }

    pub(crate) fn running(&self) -> &Arc<BTreeMap<String, Running>> {
        &self.running
    }

    pub(crate) fn drifts(&self) -> &Arc<BTreeMap<String, Drift>> {
        &self.drifts
    }

    pub(crate) fn read(&mut self, memory: &Memory, sight: &Sight<'_>) {
        let view = sight.view;
        let fleet = Arc::make_mut(&mut self.fleet);
        let running = Arc::make_mut(&mut self.running);
        let drifts = Arc::make_mut(&mut self.drifts);
        let machines = memory.machines.value();
        let same_list = same(self.machines.as_ref(), machines);
        let daemons = pools::daemons(sight);
        if self.daemons.0 != daemons {
            self.daemons = (daemons, self.daemons.1 + 1);
        }
        let (daemons, daemons_at) = &self.daemons;
        let mut rooms = Vec::with_capacity(view.nodes.len() + 16);
        let mut froms = Vec::with_capacity(view.nodes.len());
        let known = std::mem::take(&mut self.rooms).into_iter().take(self.nodes);
        let mut known = known.zip(std::mem::take(&mut self.from)).peekable();
        let mut claims = Along::new(sight.claims.iter().map(|(name, it)| (*name, *it)));
        let mut marks = Along::new(view.pods.marks());
        let mut gone: Vec<String> = Vec::new();
        for (name, node) in &view.nodes {
            // Both are in the order of names: what comes before has gone.
            while let Some((it, _)) = known.next_if(|(it, _)| it.name < *name) {
                gone.push(it.name);
            }
            let (room, from) = known.next_if(|(it, _)| it.name == *name).unzip();
            let from = from.flatten();
            let claim = claims.at(name);
            let looked_up = || node.machine.as_ref().and_then(|it| machines?.get(it));
            // In one list a machine is the same; a lookup costs more than all that is compared here.
            let machine = match &from {
                Some(it) if same_list && it.has(node.machine.as_ref()) => it.machine.as_ref(),
                Some(_) | None => looked_up(),
            };
            let wanted =
                claim.and_then(|it| memory.classes.get(&it.class)?.wanted.get(it.pool.as_ref()?));
            let parts = Parts {
                claim,
                pods: marks.at(name),
                machine,
                wanted,
                catalog: memory.images.version,
                daemons: *daemons_at,
            };
            if from.as_ref().is_some_and(|it| it.still(node, &parts))
                && let Some(room) = room
            {
                // Why nothing is known changes without the node.
                if wanted.is_none()
                    && let Some(claim) = claim
                    && let Some(Drift::Unknown(Missing::ReplacementImage { because, .. })) =
                        drifts.get_mut(name)
                {
                    *because = not_wanted(memory, claim);
                }
                rooms.push(room);
                froms.push(from);
                continue;
            }
            put_in(fleet, name, read_node(sight, node, claim));
            rooms.push(read_room(sight, node, claim, daemons));
            running.remove(name);
            drifts.remove(name);
            if let Some(claim) = claim.filter(|it| ours(sight, it)) {
                let mut read = read_running(memory, node, claim, machine);
                let pool = claim.pool.as_ref().and_then(|it| view.pools.get(it));
                read.foreign.retain(|it| !pool.is_some_and(|pool| bears(pool, &it.by)));
                drifts.insert(name.clone(), compare(memory, &read, claim, wanted));
                running.insert(name.clone(), read);
            }
            froms.push(Some(From {
                uid: node.uid.clone(),
                revision: node.revision.clone(),
                claim: claim.map(|it| (it.uid.clone(), it.revision.clone())),
                pods: parts.pods.cloned(),
                machine: machine.cloned(),
                wanted: wanted.cloned(),
                catalog: parts.catalog,
                daemons: parts.daemons,
            }));
        }
        gone.extend(known.map(|(it, _)| it.name));
        for name in gone {
            take_out(fleet, &name);
            running.remove(&name);
            drifts.remove(&name);
        }
        self.nodes = rooms.len();
        rooms.extend(on_their_way(sight, daemons));
        self.rooms = rooms;
        self.from = froms;
        self.machines = machines.cloned();
        self.tell_hidden(sight);
    }

    /// Where a class or a pool cannot be read, that is why nothing is known of its nodes.
    fn tell_hidden(&mut self, sight: &Sight<'_>) {
        let hiding = |it: &seen::ObjectName| matches!(it.kind, Kind::Class | Kind::Pool);
        if !sight.view.unreadable.keys().any(hiding) {
            return;
        }
        let nodes = &self.rooms[..self.nodes];
        for (name, drift) in Arc::make_mut(&mut self.drifts) {
            let Drift::Unknown(Missing::ReplacementImage { because, .. }) = drift else { continue };
            let claim = sight.claims.get(name.as_str());
            if let Some(hidden) = claim.and_then(|it| sight.hidden(it)) {
                *because = hidden;
                // Tomorrow it may be another reason.
                if let Ok(at) = nodes.binary_search_by(|it| it.name.as_str().cmp(name)) {
                    self.from[at] = None;
                }
            }
        }
    }
}

fn put_in(fleet: &mut Fleet, name: &str, node: Node) {
    let spread = fleet.spread.get_or_insert_default();
    let before = fleet.nodes.get(name).map_or(&[][..], |it| &it.pods);
    let same = before.len() == node.pods.len()
        && before.iter().zip(&node.pods).all(|(one, other)| Arc::ptr_eq(one, other));
    if !same {
        spread.leave(name, before);
        spread.join(name, &node.pods);
    }
    fleet.nodes.insert(name.to_owned(), node);
}

fn take_out(fleet: &mut Fleet, name: &str) {
    if let Some(node) = fleet.nodes.remove(name)
        && let Some(spread) = &mut fleet.spread
    {
        spread.leave(name, &node.pods);
    }
}

fn read_node(sight: &Sight<'_>, node: &seen::Node, claim: Option<&Claim>) -> Node {
    let pods = sight.view.pods.on(&node.name).map(|it| Arc::clone(&it.drain)).collect();
    let labels = &node.fit.labels;
    let cpu = node.fit.allocatable.get(CPU).copied().unwrap_or(Quantity::ZERO);
    // Of two that protect it, whichever holds longer; without an end is longest.
    let of_claim = claim.and_then(|it| it.protection.as_ref());
    let length = |it: Option<&Protection>| it.map(|it| it.until.unwrap_or(Timestamp::MAX));
    let longer = |it: Option<&Protection>| length(it) > length(node.protection.as_ref());
    Node {
        member: Member {
            pool: claim
                .and_then(|it| it.pool.clone())
                .or_else(|| labels.get(label::NODEPOOL).cloned()),
            class: claim.map(|it| it.class.to_string()),
            labels: labels.clone(),
            cpu_millis: millis(cpu),
            standing: standing(node, claim),
            // By the records, which change without the node.
            surge: false,
            taken_from: BTreeSet::new(),
        },
        zone: labels.get(label::ZONE).cloned(),
        created_at: claim.map_or(node.created_at, |it| it.created_at),
        wish: None,
        protected_by_claim: claim
            .filter(|it| longer(it.protection.as_ref()))
            .map(|it| it.name.clone()),
        protection: of_claim.filter(|it| longer(Some(it))).or(node.protection.as_ref()).cloned(),
        pods,
        has_deadline: claim.is_some_and(|it| it.termination_grace_period.is_some()),
        next_try: None,
        under_way: None,
        succeeds: None,
        leads_back: false,
    }
}

fn millis(cpu: Quantity) -> u64 {
    u64::try_from(cpu.ceil_millis()).unwrap_or(0)
}

/// A node that is not set up yet is missing to nobody.
fn standing(node: &seen::Node, claim: Option<&Claim>) -> Standing {
    let set_up = claim.is_none_or(|it| it.stages.contains_key(&Stage::Initialized));
    if !set_up {
        return Standing::Outside;
    }
    let deleting =
        node.deleting_since.is_some() || claim.is_some_and(|it| it.deleting_since.is_some());
    let cordoned =
        node.fit.unschedulable || node.fit.taints.iter().any(|it| it.key == DISRUPTED_TAINT);
    // Whoever is away already is not only about to go.
    if cordoned {
        Standing::Unavailable(Unavailable::Cordoned)
    } else if node.ready != Readiness::Ready {
        Standing::Unavailable(Unavailable::NotReady)
    } else if deleting {
        Standing::Unavailable(Unavailable::Deleting)
    } else {
        Standing::Available
    }
}

fn read_running(
    memory: &Memory,
    node: &seen::Node,
    claim: &Claim,
    machine: Option<&Arc<Machine>>,
) -> Running {
    let image = claim.image.as_ref().or(machine.map(|it| &it.image));
    let mut labels = claim.labels.clone();
    labels.extend(node.fit.labels.clone());
    Running {
        claim: claim.name.clone(),
        claim_uid: claim.uid.clone(),
        pool: claim.pool.clone(),
        instance_type: labels.get(label::INSTANCE_TYPE).cloned(),
        image: image.map(|it| image_ref(memory, it)),
        labels,
        class_stamp: claim.class_stamp.clone(),
        template_stamp: claim.template_stamp.clone(),
        instance: machine.map(|it| Instance {
            security_groups: it.security_groups.clone(),
            subnet: it.subnet.clone(),
            reservation: it.reservation.clone(),
            placement_group: it.placement_group.clone(),
        }),
        kubelet: node.kubelet,
        foreign: claim.foreign.clone(),
        created_at: claim.created_at,
    }
}

pub(crate) fn image_ref(memory: &Memory, id: &ImageId) -> ImageRef {
    let catalog = &memory.images.catalog;
    ImageRef {
        id: id.clone(),
        name: catalog.images.get(id).map(|it| it.image.name.clone()),
        dated: catalog.dated(id),
    }
}

fn compare(
    memory: &Memory,
    running: &Running,
    claim: &Claim,
    wanted: Option<&Arc<Wanted>>,
) -> Drift {
    match wanted {
        Some(wanted) => drift(running, wanted),
        None => Drift::Unknown(Missing::ReplacementImage {
            instance_type: running.instance_type.clone().unwrap_or_else(|| "it".to_owned()),
            because: not_wanted(memory, claim),
        }),
    }
}

/// Why nothing is known of what the node of a claim should run.
fn not_wanted(memory: &Memory, claim: &Claim) -> NoImage {
    let Some(pool) = &claim.pool else { return NoImage::because("it belongs to no NodePool") };
    match memory.classes.get(&claim.class).map(|it| &it.outcome) {
        Some(Err(why)) => why.clone(),
        Some(Ok(_)) => NoImage::because(format!(
            "class `{}` is not looked after for a NodePool `{pool}`",
            claim.class
        )),
        None => NoImage::because(format!("there is no class `{}`", claim.class)),
    }
}

/// A node as a place for pods: with those that are on it, and none that are on their way out for good.
fn read_room(
    sight: &Sight<'_>,
    node: &seen::Node,
    claim: Option<&Claim>,
    daemons: &[fit::pod::Pod],
) -> fit::node::Node {
    let set_up = claim.is_none_or(|it| it.stages.contains_key(&Stage::Initialized));
    let there = sight.view.pods.on(&node.name).filter(|it| it.drain.phase != PodPhase::Finished);
    let pods = there.map(|it| {
        // What stays when the node goes needs no other place.
        let tied = matches!(stays(&it.drain, sight.now), Some(Stays::DaemonSet | Stays::Mirror));
        fit::pod::Pod { tied: it.fit.tied || tied, ..daemons::judged(&it.fit, daemons) }
    });
    let going =
        node.deleting_since.is_some() || claim.is_some_and(|it| it.deleting_since.is_some());
    let mut room = fit::node::Node {
        pool: claim.and_then(|it| it.pool.clone()).or_else(|| node.fit.pool.clone()),
        initialised: set_up,
        startup_taints: claim
            .map_or_else(|| node.fit.startup_taints.clone(), |it| it.startup_taints.clone()),
        // Nobody is sent to a node that does not answer, or that goes.
        closed: going || (set_up && node.ready != Readiness::Ready),
        leaving: false,
        pods: pods.collect(),
        ..node.fit.clone()
    };
    let own: Vec<(&str, &str)> = sight
        .view
        .pods
        .on(&node.name)
        .filter(|it| it.drain.owner == Owner::DaemonSet && it.drain.phase != PodPhase::Finished)
        .map(|it| (it.drain.id.namespace.as_str(), it.drain.id.name.as_str()))
        .collect();
    let missing = daemons.iter().filter(|it| {
        !own.iter()
            .any(|(namespace, name)| *namespace == &*it.namespace.name && made_by(&it.name, name))
    });
    let to_come: Vec<fit::pod::Pod> = missing
        .filter(|it| daemons::runs_on(&it.demand, &room))
        .map(|it| daemons::to_come(it, &room))
        .collect();
    room.pods.extend(to_come);
    room
}

/// Names that are made from another end in a dash and five letters, and are cut to have room for those.
fn made_by(daemon: &str, pod: &str) -> bool {
    let Some((base, _)) = pod.rsplit_once('-') else { return false };
    base == daemon || (base.len() >= MADE_FROM_MAX && daemon.starts_with(base))
}

/// The API server's: 63 letters, less five that are made up, less the dash.
const MADE_FROM_MAX: usize = 57;

/// Claims that are no nodes yet. One whose machine is not known has room for what it was made for.
fn on_their_way<'a>(
    sight: &'a Sight<'_>,
    daemons: &'a [fit::pod::Pod],
) -> impl Iterator<Item = fit::node::Node> + 'a {
    let unseen = sight.view.claims.values().filter(|it| {
        it.deleting_since.is_none()
            && it.node.as_ref().is_none_or(|node| !sight.view.nodes.contains_key(node))
            && !it.stages.contains_key(&Stage::Initialized)
    });
    unseen.map(|it| claimed(it.into(), daemons))
}

/// A claim, seen or only decided, as far as it will be a place for pods.
#[derive(Clone, Copy)]
pub(crate) struct Claimed<'a> {
    name: &'a str,
    pool: Option<&'a str>,
    labels: &'a BTreeMap<String, String>,
    requirements: &'a [Written],
    taints: &'a [Taint],
    startup_taints: &'a [Taint],
    requests: &'a Amounts,
    allocatable: Option<&'a Amounts>,
}

impl<'a> std::convert::From<&'a Claim> for Claimed<'a> {
    fn from(it: &'a Claim) -> Self {
        Self {
            name: &it.name,
            pool: it.pool.as_deref(),
            labels: &it.labels,
            requirements: &it.requirements,
            taints: &it.taints,
            startup_taints: &it.startup_taints,
            requests: &it.requests,
            allocatable: Some(&it.allocatable).filter(|it| !it.is_empty()),
        }
    }
}

impl<'a> std::convert::From<&'a NewClaim> for Claimed<'a> {
    fn from(it: &'a NewClaim) -> Self {
        Self {
            name: &it.name,
            pool: Some(&it.pool),
            labels: &it.labels,
            requirements: &it.requirements,
            taints: &it.taints,
            startup_taints: &it.startup_taints,
            requests: &it.requests,
            allocatable: None,
        }
    }
}

pub(crate) fn claimed(claim: Claimed<'_>, daemons: &[fit::pod::Pod]) -> fit::node::Node {
    let mut labels = claim.labels.clone();
    for it in claim.requirements {
        if let (Operator::In, [only]) = (it.operator, it.values.as_slice()) {
            labels.entry(it.key.clone()).or_insert_with(|| only.clone());
        }
    }
    // It will have a name of its own. Which one nobody knows; that nobody else has it is known.
    labels.insert(label::HOSTNAME.to_owned(), claim.name.to_owned());
    let allocatable = claim.allocatable.cloned().unwrap_or_else(|| {
        let mut made_for = claim.requests.clone();
        let pods = Quantity::from_units(PODS_ASSUMED);
        made_for.entry(fit::capacity::PODS.to_owned()).or_insert(pods);
        made_for
    });
    let mut room = fit::node::Node {
        name: claim.name.to_owned(),
        pool: claim.pool.map(str::to_owned),
        labels,
        taints: claim.taints.to_vec(),
        startup_taints: claim.startup_taints.to_vec(),
        initialised: false,
        allocatable,
        ..fit::node::Node::default()
    };
    // What it was made for has its daemons taken off already.
    let known = claim.allocatable.is_some();
    let come = daemons.iter().filter(|it| known && daemons::runs_on(&it.demand, &room));
    let come: Vec<fit::pod::Pod> = come.map(|it| daemons::to_come(it, &room)).collect();
    room.pods = come;
    room
}

/// The kubelet's own default.
const PODS_ASSUMED: i64 = 110;
