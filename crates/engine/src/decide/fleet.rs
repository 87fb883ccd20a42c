//! What runs, and does it still match?
//!
//! `nodes × claims × pods × machines × wanted → fleet, running, drift`
//!
//! A node is read again only if it, its claim, its pods, its machine or what it should be has changed:
//! looking at ten thousand nodes that stay as they are costs ten thousand comparisons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_core::budget::{Act, Counted, Grants, Limits, Member, Standing, Unavailable};
use nodemolt_core::drain::{Owner, PodPhase, Protection, Stays, stays, stays_for_good};
use nodemolt_core::drift::{Drift, Missing, drift};
use nodemolt_core::image::ImageId;
use nodemolt_core::node::{ImageRef, Instance, Running};
use nodemolt_core::place::daemons;
use nodemolt_core::plan::{Fleet, Node};
use nodemolt_core::seen::{
    self, Claim, ClassKey, DISRUPTED_TAINT, Kind, Looked, Mark, Readiness, Revision, Stage,
};
use nodemolt_core::wanted::{NoImage, Wanted};
use nodemolt_fit::capacity::{Amounts, CPU};
use nodemolt_fit::pack::Site;
use nodemolt_fit::taint::Taint;
use nodemolt_fit::{self as fit, Operator, Quantity, Written, label};

use super::along::Along;
use super::classes::Boots;
use super::{Sight, pools, wishes};
use crate::claims;
use crate::memory::{Listed, Memory};
use crate::port::{Machine, NewClaim};

/// What was read of nodes, kept from turn to turn.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// Of each node among `rooms`, in the same order. `None`: it is to be read again.
    from: Vec<Option<From>>,
    /// What is the same for all of them.
    around: Option<Around>,
    /// How far nodes, pods on nodes and claims of nodes were looked at.
    looked_at: [Looked; 3],
    /// Those that have changed since the turn before. `None`: that is not known.
    pub(crate) dirty: Option<BTreeSet<String>>,
    /// Those that are to be read again, though nothing has changed.
    again: BTreeSet<String>,
    /// Those of which nobody knows what they should run.
    unwanted: BTreeSet<String>,
    /// Those with a cordon of ours.
    pub(crate) cordoned: BTreeSet<String>,
    /// Names of nodes that have pods, and that are not there or about to go.
    pub(crate) going: BTreeSet<String>,
    /// Counts what has changed of that which budgets look at.
    pub(crate) members: u64,
    /// How budgets counted them, when they were as many changes old.
    counted: Option<(u64, Arc<Counted>)>,
    /// What wishes follow from beside that.
    pub(crate) wishes: wishes::Known,
    fleet: Arc<Fleet>,
    running: Arc<BTreeMap<String, Running>>,
    drifts: Arc<BTreeMap<String, Drift>>,
    /// Nodes with their pods, by name; then claims that are on their way.
    pub(crate) rooms: Vec<Site>,
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

    /// Whether the room is as it would be read by what others put into a node, which has no new revision by that.
    fn room_still(&self, room: &fit::node::Node, node: &seen::Node) -> bool {
        let of_node = self.claim.is_none();
        room.volume_limits == node.fit.volume_limits
            && (!of_node || room.startup_taints == node.fit.startup_taints)
    }
}

/// Whether nothing was read anew.
pub(super) fn same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// What is the same for all nodes.
#[derive(Debug)]
struct Around {
    machines: Option<Arc<Listed>>,
    boots: Boots,
    catalog: u64,
    daemons: u64,
}

impl Around {
    fn new(memory: &Memory, daemons: u64) -> Self {
        Self {
            machines: memory.machines.value().cloned(),
            boots: Boots::of(memory),
            catalog: memory.images.version,
            daemons,
        }
    }

    fn still(&self, other: &Self) -> bool {
        same(self.machines.as_ref(), other.machines.as_ref())
            && self.catalog == other.catalog
            && self.daemons == other.daemons
            && self.boots == other.boots
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

    /// Where a node is among the rooms.
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        self.rooms[..self.nodes].binary_search_by(|it| it.name.as_str().cmp(name)).ok()
    }

    /// The machine of the node that is there, as far as that was read.
    pub(crate) fn machine(&self, at: usize) -> Option<&Arc<Machine>> {
        self.from.get(at)?.as_ref()?.machine.as_ref()
    }

    /// All members as budgets count them: again only if one of them, or a budget, is another.
    pub(crate) fn counted(&mut self, limits: &Limits, grants: &Grants) -> Arc<Counted> {
        let known = self.counted.take().filter(|(members, it)| {
            *members == self.members && it.still(limits, grants, Act::Replace)
        });
        let counted = known.map_or_else(
            || Arc::new(Counted::new(self.fleet.members(), limits, grants, Act::Replace)),
            |(_, it)| it,
        );
        self.counted = Some((self.members, Arc::clone(&counted)));
        counted
    }

    pub(crate) fn running(&self) -> &Arc<BTreeMap<String, Running>> {
        &self.running
    }

    pub(crate) fn drifts(&self) -> &Arc<BTreeMap<String, Drift>> {
        &self.drifts
    }

    pub(crate) fn read(&mut self, memory: &Memory, sight: &Sight<'_>) {
        let view = sight.view;
        let daemons = pools::daemons(sight);
        if self.daemons.0 != daemons {
            self.daemons = (daemons, self.daemons.1 + 1);
        }
        let around = Around::new(memory, self.daemons.1);
        let known = self.around.take().filter(|it| it.still(&around));
        self.rooms.truncate(self.nodes);
        // Whoever has so much to do walks through all of them.
        let few = |it: &BTreeSet<String>| it.len() <= 100 + view.nodes.len() / 20;
        self.dirty = self.changed(sight).filter(|it| known.is_some() && few(it));
        match std::mem::take(&mut self.dirty) {
            Some(dirty) => {
                for name in &dirty {
                    self.read_one(memory, sight, &around, name);
                }
                self.dirty = Some(dirty);
            }
            None => self.read_all(memory, sight, &around),
        }
        self.nodes = self.rooms.len();
        let on_their_way: Vec<Site> = on_their_way(sight, &self.daemons.0).map(Site::new).collect();
        self.rooms.extend(on_their_way);
        self.around = Some(around);
        self.looked_at = [
            view.nodes.changes().looked(),
            view.pods.changes_on().looked(),
            sight.roll.nodes().looked(),
        ];
        self.tell_unwanted(memory, sight);
        self.tell_hidden(sight);
    }

    /// Whether each room says what the plan is told of its node.
    pub(crate) fn tells_who_fades(&self) -> bool {
        let fades = |it: &Site| self.fleet.nodes.get(&it.name).is_some_and(Node::fades);
        self.rooms[..self.nodes].iter().all(|it| it.fades == fades(it))
    }

    /// Nodes that have changed, or whose pods or claims have. `None`: nobody knows.
    fn changed(&mut self, sight: &Sight<'_>) -> Option<BTreeSet<String>> {
        let view = sight.view;
        let [nodes, pods, claims] = &self.looked_at;
        let nodes = view.nodes.changes().since(nodes)?;
        let pods = view.pods.changes_on().since(pods)?;
        let claims = sight.roll.nodes().since(claims)?;
        let again = std::mem::take(&mut self.again);
        Some(nodes.chain(pods).chain(claims).cloned().chain(again).collect())
    }

    /// Every node that is there. Those that are as they were are passed over.
    fn read_all(&mut self, memory: &Memory, sight: &Sight<'_>, around: &Around) {
        let view = sight.view;
        self.again.clear();
        self.cordoned.clear();
        let known: Vec<Site> = std::mem::take(&mut self.rooms);
        let mut known = known.into_iter().zip(std::mem::take(&mut self.from)).peekable();
        self.rooms.reserve(view.nodes.len() + 16);
        self.from.reserve(view.nodes.len());
        let mut gone: Vec<String> = Vec::new();
        for (name, node) in &view.nodes {
            // Both are in the order of names: what comes before has gone.
            while let Some((it, _)) = known.next_if(|(it, _)| it.name < *name) {
                gone.push(it.name.clone());
            }
            let known = known.next_if(|(it, _)| it.name == *name);
            let (room, from) = known.map_or((None, None), |(room, from)| {
                let from = from.filter(|it| it.room_still(&room, node));
                (Some(room), from)
            });
            let (from, read) = self.look_at(memory, sight, around, node, from);
            self.rooms.extend(read.or(room));
            self.from.push(Some(from));
        }
        gone.extend(known.map(|(it, _)| it.name.clone()));
        for name in gone {
            self.forget(&name);
        }
        let mut nodes = Along::new(view.nodes.iter().map(|(name, it)| (name.as_str(), it)));
        let mut goes = |name: &str| nodes.at(name).is_none_or(|it| it.deleting_since.is_some());
        let going = view.pods.marks().map(|it| it.0).filter(|it| goes(it));
        self.going = going.map(str::to_owned).collect();
    }

    /// One that has changed, has come or has gone.
    fn read_one(&mut self, memory: &Memory, sight: &Sight<'_>, around: &Around, name: &String) {
        let known = self.rooms.binary_search_by(|it| it.name.cmp(name));
        let node = sight.view.nodes.get(name);
        match (known, node) {
            (Ok(at), Some(node)) => {
                let room = &self.rooms[at];
                let from = self.from[at].take().filter(|it| it.room_still(room, node));
                let (from, read) = self.look_at(memory, sight, around, node, from);
                self.from[at] = Some(from);
                if let Some(room) = read {
                    self.rooms[at] = room;
                }
            }
            (Err(at), Some(node)) => {
                if let (from, Some(room)) = self.look_at(memory, sight, around, node, None) {
                    self.rooms.insert(at, room);
                    self.from.insert(at, Some(from));
                }
            }
            (Ok(at), None) => {
                self.rooms.remove(at);
                self.from.remove(at);
                self.forget(name);
            }
            (Err(_), None) => {}
        }
        let goes = node.is_none_or(|it| it.deleting_since.is_some());
        if goes && sight.view.pods.mark(name).is_some() {
            self.going.insert(name.clone());
        } else {
            self.going.remove(name);
        }
    }

    /// From what it is read now, and the room that it is if that has to be read again.
    fn look_at(
        &mut self,
        memory: &Memory,
        sight: &Sight<'_>,
        around: &Around,
        node: &seen::Node,
        from: Option<From>,
    ) -> (From, Option<Site>) {
        let name = &node.name;
        let claim = sight.claim_of(name);
        let machines = around.machines.as_ref();
        let machine = node.machine.as_ref().and_then(|it| machines?.get(it));
        let wanted = claim.and_then(|it| around.boots.of_pool(&it.class, it.pool.as_ref()?));
        let parts = Parts {
            claim,
            pods: sight.view.pods.mark(name),
            machine,
            wanted,
            catalog: around.catalog,
            daemons: around.daemons,
        };
        if node.cordoned_by.is_some() {
            self.cordoned.insert(name.clone());
        } else {
            self.cordoned.remove(name);
        }
        if let Some(from) = from.filter(|it| it.still(node, &parts)) {
            return (from, None);
        }
        let member = put_in(Arc::make_mut(&mut self.fleet), name, read_node(sight, node, claim));
        self.members += u64::from(member);
        let room = read_room(sight, node, claim, &self.daemons.0);
        let (running, drifts) = (Arc::make_mut(&mut self.running), Arc::make_mut(&mut self.drifts));
        running.remove(name);
        drifts.remove(name);
        self.unwanted.remove(name);
        if let Some(claim) = claim.filter(|it| ours(sight, it)) {
            let mut read = read_running(memory, node, claim, machine);
            let pool = claim.pool.as_ref().and_then(|it| sight.view.pools.get(it));
            read.foreign.retain(|it| !pool.is_some_and(|pool| bears(pool, &it.by)));
            drifts.insert(name.clone(), compare(memory, sight, (&read, claim), wanted));
            running.insert(name.clone(), read);
            if wanted.is_none() {
                self.unwanted.insert(name.clone());
            }
        }
        let from = From {
            uid: node.uid.clone(),
            revision: node.revision.clone(),
            claim: claim.map(|it| (it.uid.clone(), it.revision.clone())),
            pods: parts.pods.cloned(),
            machine: machine.cloned(),
            wanted: wanted.cloned(),
            catalog: parts.catalog,
            daemons: parts.daemons,
        };
        (from, Some(room.into()))
    }

    fn forget(&mut self, name: &str) {
        take_out(Arc::make_mut(&mut self.fleet), name);
        Arc::make_mut(&mut self.running).remove(name);
        Arc::make_mut(&mut self.drifts).remove(name);
        self.unwanted.remove(name);
        self.cordoned.remove(name);
        self.members += 1;
    }

    /// Why nothing is known of a node changes without it.
    fn tell_unwanted(&mut self, memory: &Memory, sight: &Sight<'_>) {
        if self.unwanted.is_empty() {
            return;
        }
        let drifts = Arc::make_mut(&mut self.drifts);
        for name in &self.unwanted {
            if let Some(claim) = sight.claim_of(name)
                && let Some(Drift::Unknown(Missing::ReplacementImage { because, .. })) =
                    drifts.get_mut(name)
            {
                *because = not_wanted(memory, sight, claim);
            }
        }
    }

    /// Where a class or a pool cannot be read, that is why nothing is known of its nodes.
    fn tell_hidden(&mut self, sight: &Sight<'_>) {
        let hiding = |it: &seen::ObjectName| matches!(it.kind, Kind::Class | Kind::Pool);
        if !sight.view.unreadable.keys().any(hiding) {
            return;
        }
        let rooms = &self.rooms[..self.nodes];
        for (name, drift) in Arc::make_mut(&mut self.drifts) {
            let Drift::Unknown(Missing::ReplacementImage { because, .. }) = drift else { continue };
            if let Some(hidden) = sight.claim_of(name).and_then(|it| sight.hidden(it)) {
                *because = hidden;
                // Tomorrow it may be another reason.
                if let Ok(at) = rooms.binary_search_by(|it| it.name.as_str().cmp(name)) {
                    self.from[at] = None;
                    self.again.insert(name.clone());
                }
            }
        }
    }
}

/// Whether it is another member for budgets.
fn put_in(fleet: &mut Fleet, name: &str, node: Node) -> bool {
    let spread = fleet.spread.get_or_insert_default();
    let before = fleet.nodes.get(name).map_or(&[][..], |it| &it.pods);
    let same = before.len() == node.pods.len()
        && before.iter().zip(&node.pods).all(|(one, other)| Arc::ptr_eq(one, other));
    if !same || !fleet.nodes.contains_key(name) {
        spread.join(name, &node.pods);
    }
    let another = fleet.nodes.get(name).is_none_or(|it| it.member != node.member);
    fleet.nodes.insert(name.to_owned(), node);
    another
}

fn take_out(fleet: &mut Fleet, name: &str) {
    fleet.nodes.remove(name);
    if let Some(spread) = &mut fleet.spread {
        spread.leave(name);
    }
    if let Some(astir) = &mut fleet.astir {
        astir.remove(name);
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
            standing: standing(sight, node, claim),
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

/// A node that is not set up yet is missing to nobody while it bears no pods that would have to leave, and neither is one
/// whose machine has ended and that others keep.
fn standing(sight: &Sight<'_>, node: &seen::Node, claim: Option<&Claim>) -> Standing {
    let set_up = claim.is_none_or(|it| it.stages.contains_key(&Stage::Initialized));
    // Whether a pod that should be gone is stuck time alone tells, and nobody looks again for that.
    let bears = |it: &seen::Pod| !stays_for_good(&it.drain);
    if claims::left_over(node, claim) || !(set_up || sight.view.pods.on(&node.name).any(bears)) {
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
    sight: &Sight<'_>,
    (running, claim): (&Running, &Claim),
    wanted: Option<&Arc<Wanted>>,
) -> Drift {
    match wanted {
        Some(wanted) => drift(running, wanted),
        None => Drift::Unknown(Missing::ReplacementImage {
            instance_type: running.instance_type.clone().unwrap_or_else(|| "it".to_owned()),
            because: not_wanted(memory, sight, claim),
        }),
    }
}

/// Why nothing is known of what the node of a claim should run.
pub(crate) fn not_wanted(memory: &Memory, sight: &Sight<'_>, claim: &Claim) -> NoImage {
    let Some(pool) = &claim.pool else { return NoImage::because("it belongs to no NodePool") };
    let no_class = |class: &ClassKey, because: String| {
        let object = Some(("EC2NodeClass", class.name.clone()));
        NoImage { because, object, until: None }
    };
    match memory.classes.get(&claim.class).map(|it| &it.outcome) {
        Some(Err(why)) => why.clone(),
        Some(Ok(_)) => {
            let named = sight.view.pools.get(pool).map(|it| &it.class);
            let gone = |class: &&ClassKey| !sight.view.classes.contains_key(*class);
            if let Some(class) = named.filter(gone) {
                let because = format!(
                    "there is no EC2NodeClass `{class}`, which NodePool `{pool}` names now"
                );
                return no_class(class, because);
            }
            let because = match named {
                Some(_) => {
                    format!("NodePool `{pool}` is of another class than `{}` now", claim.class)
                }
                None => format!("NodePool `{pool}` does not exist any more"),
            };
            NoImage { because, object: Some(("NodePool", pool.clone())), until: None }
        }
        None => no_class(&claim.class, format!("there is no EC2NodeClass `{}`", claim.class)),
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
    let unseen = sight.roll.unsettled(sight.view).filter(|it| {
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
