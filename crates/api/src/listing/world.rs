//! Which pods need a home, and who is already where?
//!
//! `listing × leaving nodes → pods to be packed + nodes with who is on them + daemons`
//!
//! A workload stands for as many pods as it should have. Pods of it that are in the files count towards
//! that number; what is missing is made from its template, under names that no real pod can have
//! (`web#1`), save for a `StatefulSet`, whose names are known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod as WirePod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use nodemolt_fit::{
    Quantity,
    capacity::{Amounts, PODS},
    node::Node,
    pod::{Demand, Namespace, Pod, PodId},
    pool::{NODES, Pool},
    selector::Labels,
    taint::{Effect, Taint},
};

use super::{
    Copies, Listing, Workload,
    doubt::Doubts,
    name, namespace,
    node::{self, about_to_leave},
    pod::{Asked, demand, exists, with_labels},
    reader::Reader,
    volume::Volumes,
};
use crate::{file::Located, problem::Problem};

/// Static pods show up as these.
const MIRROR: &str = "kubernetes.io/config.mirror";
const TEMPLATE_HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const DAEMON_SET: &str = "DaemonSet";
/// What the controller of `DaemonSet`s lets its pods put up with.
const DAEMONS_TOLERATE: [(&str, Effect); 6] = [
    ("node.kubernetes.io/not-ready", Effect::NoExecute),
    ("node.kubernetes.io/unreachable", Effect::NoExecute),
    ("node.kubernetes.io/disk-pressure", Effect::NoSchedule),
    ("node.kubernetes.io/memory-pressure", Effect::NoSchedule),
    ("node.kubernetes.io/pid-pressure", Effect::NoSchedule),
    ("node.kubernetes.io/unschedulable", Effect::NoSchedule),
];
const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";

/// What there is to pack, and onto what.
#[derive(Debug, Default)]
pub struct World {
    pub pods: Vec<Pod>,
    pub nodes: Vec<Node>,
    pub daemons: Vec<Daemon>,
    /// Where each pod of `pods` comes from.
    pub origins: BTreeMap<PodId, Origin>,
    /// Of each pool with nodes: what they have, those that leave included, and how many they are.
    pub used: BTreeMap<String, Amounts>,
    /// What people should know about how this was read.
    pub notes: Vec<String>,
}

/// Pods that every node gets.
#[derive(Debug, Clone)]
pub struct Daemon {
    pub name: String,
    pub namespace: Arc<Namespace>,
    pub demand: Arc<Demand>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// `Deployment web`, of a pod that a workload stands for or owns.
    pub workload: Option<String>,
    /// The node that it has to leave.
    pub leaves: Option<String>,
}

impl World {
    /// `leaving` are names of nodes. Pools say which taints of their nodes will go away.
    pub fn new(
        listing: &Listing,
        leaving: &BTreeSet<String>,
        pools: &[Pool],
    ) -> Result<Self, Vec<Problem>> {
        let owners = Owners::new(listing);
        let mut builder = Builder {
            listing,
            volumes: Volumes::new(listing, &owners),
            owners,
            namespaces: BTreeMap::new(),
            demands: BTreeSet::new(),
            leaving: leaving.clone(),
            world: Self::default(),
            problems: Vec::new(),
        };
        builder.daemons();
        builder.nodes(pools);
        builder.pods();
        builder.copies();
        let daemons_to_come = builder.set_aside();
        builder.doubts(daemons_to_come || !pools.is_empty());
        if builder.problems.is_empty() { Ok(builder.world) } else { Err(builder.problems) }
    }
}

/// A pod that will not run again takes no room.
pub(super) fn ended(pod: &WirePod) -> bool {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

struct Builder<'l> {
    listing: &'l Listing,
    volumes: Volumes<'l>,
    owners: Owners<'l>,
    namespaces: BTreeMap<&'l str, Arc<Namespace>>,
    demands: BTreeSet<Arc<Demand>>,
    leaving: BTreeSet<String>,
    world: World,
    problems: Vec<Problem>,
}

impl<'l> Builder<'l> {
    fn tell<T>(&mut self, at: &Located<T>, reader: Reader) {
        self.problems.extend(reader.found.into_iter().map(|it| at.problem(it)));
    }

    fn namespace(&mut self, called: &'l str) -> Arc<Namespace> {
        let listed = self.listing.namespaces.get(called);
        let labels = listed.and_then(|it| it.metadata.labels.clone()).unwrap_or_default();
        let entry = self.namespaces.entry(called);
        Arc::clone(entry.or_insert_with(|| Arc::new(Namespace::new(called, labels))))
    }

    /// Equal demands are held once: a thousand pods of one controller ask for one thing.
    fn shared(&mut self, demand: Demand) -> Arc<Demand> {
        if let Some(known) = self.demands.get(&demand) {
            return Arc::clone(known);
        }
        let demand = Arc::new(demand);
        self.demands.insert(Arc::clone(&demand));
        demand
    }

    fn daemons(&mut self) {
        let sets = self.listing.workloads.iter();
        for at in sets.filter(|it| it.value.copies == Copies::OnEveryNode) {
            let set = &at.value;
            let labels = with_labels(template_labels(set), &[]);
            let mut demand = self.of_template(at, name(&set.meta), &labels, &[]);
            let mut tolerated = DAEMONS_TOLERATE.to_vec();
            let spec = set.template.spec.as_ref();
            if spec.is_some_and(|it| it.host_network.unwrap_or(false)) {
                tolerated.push((NETWORK_UNAVAILABLE, Effect::NoSchedule));
            }
            let more = tolerated.into_iter().map(|(key, effect)| exists(key, effect));
            demand.tolerations.extend(more);
            let demand = self.shared(demand);
            let name = format!("{}/{}", namespace(&set.meta), name(&set.meta));
            let namespace = self.namespace(namespace(&set.meta));
            self.world.daemons.push(Daemon { name, namespace, demand });
        }
    }

    fn nodes(&mut self, pools: &[Pool]) {
        let startup: BTreeMap<String, Vec<Taint>> =
            pools.iter().map(|it| (it.name.clone(), it.startup_taints.clone())).collect();
        for at in &self.listing.nodes {
            let mut reader = Reader::default();
            let csi = self.listing.csi_nodes.get(name(&at.value.metadata));
            let mut node = node::node(&at.value, csi, &startup, &mut reader);
            if let Some(why) = about_to_leave(&at.value)
                && self.leaving.insert(node.name.clone())
            {
                self.world.notes.push(format!("node {} counts as leaving: {why}", node.name));
            }
            node.leaving = self.leaving.contains(&node.name);
            if let Some(pool) = &node.pool {
                let capacity = at.value.status.as_ref().and_then(|it| it.capacity.as_ref());
                let capacity = reader.amounts("status.capacity", capacity);
                let used = self.world.used.entry(pool.clone()).or_default();
                add(used, &capacity);
                add(used, &Amounts::from([(NODES.to_owned(), Quantity::from_units(1))]));
            }
            self.tell(at, reader);
            self.world.nodes.push(node);
        }
        self.world.nodes.sort_by(|left, right| left.name.cmp(&right.name));
    }

    fn pods(&mut self) {
        let mut elsewhere: BTreeSet<&str> = BTreeSet::new();
        let mut on_their_way = 0;
        let mut without_node = 0;
        for at in &self.listing.pods {
            let wire = &at.value.pod;
            if ended(wire) {
                continue;
            }
            let bound = wire.spec.as_ref().and_then(|it| it.node_name.as_deref());
            let home = bound.filter(|it| !it.is_empty());
            let terminating = wire.metadata.deletion_timestamp.is_some();
            let node =
                home.map(|home| self.world.nodes.binary_search_by(|it| it.name.as_str().cmp(home)));
            let leaves = home.filter(|it| self.leaving.contains(*it));
            match (node, leaves) {
                (Some(Err(_)), None) => {
                    elsewhere.extend(home);
                    without_node += 1;
                    continue;
                }
                // It goes with its node: another comes with the next one, or its owner has made it.
                (_, Some(_)) if terminating || stays_behind(wire) => continue,
                (None, _) if terminating => continue,
                (None, _) if targeted(wire).is_some_and(|it| self.leaving.contains(it)) => continue,
                (Some(Ok(_) | Err(_)) | None, _) => {}
            }
            let demand = self.of_pod(at);
            let demand = self.shared(demand);
            let namespace = self.namespace(namespace(&wire.metadata));
            let pod = Pod { terminating, ..Pod::new(&namespace, name(&wire.metadata), &demand) };
            match node {
                Some(Ok(node)) if leaves.is_none() => {
                    on_their_way += usize::from(terminating);
                    self.world.nodes[node].pods.push(pod);
                }
                Some(Ok(_) | Err(_)) | None => {
                    let workload = self.owners.of(&wire.metadata);
                    let workload = workload.map(Workload::told).or_else(|| {
                        controller(&wire.metadata).map(|it| format!("{} {}", it.kind, it.name))
                    });
                    let origin = Origin { workload, leaves: leaves.map(str::to_owned) };
                    self.world.origins.insert(pod.id(), origin);
                    self.world.pods.push(pod);
                }
            }
        }
        if without_node > 0 {
            let example = elsewhere.first().copied().unwrap_or_default();
            let note = format!(
                "pods on nodes that are not in the files, such as {example}, are left out: {without_node}"
            );
            self.world.notes.push(note);
        }
        if on_their_way > 0 {
            let note =
                format!("pods that are being deleted, whose room is not free yet: {on_their_way}");
            self.world.notes.push(note);
        }
    }

    /// What a workload should have and what the files do not show.
    fn copies(&mut self) {
        let listing = self.listing;
        for at in &listing.workloads {
            let workload = &at.value;
            if self.owners.spoken_for(workload) {
                continue;
            }
            let there = self.owners.pods_of(workload);
            match &workload.copies {
                Copies::OnEveryNode => {}
                Copies::Alike(count) => {
                    let missing = count.saturating_sub(there.len());
                    if missing > 0 {
                        let hash = self.owners.template_hash(workload);
                        let more = hash.map(|it| (TEMPLATE_HASH, it));
                        let labels = with_labels(template_labels(workload), more.as_slice());
                        let called = name(&workload.meta);
                        let demand = self.of_template(at, called, &labels, &[]);
                        let demand = self.shared(demand);
                        for number in 1..=missing {
                            self.copy(workload, &format!("{called}#{number}"), &demand);
                        }
                    }
                }
                Copies::Numbered { count, from, claims } => {
                    for number in *from..from.saturating_add(*count) {
                        let called = format!("{}-{number}", name(&workload.meta));
                        if there.contains(called.as_str()) {
                            continue;
                        }
                        let demand = self.numbered(at, &called, number, claims);
                        self.copy(workload, &called, &demand);
                    }
                }
            }
        }
    }

    fn numbered(
        &mut self,
        at: &Located<Workload>,
        called: &str,
        number: usize,
        claims: &[PersistentVolumeClaim],
    ) -> Arc<Demand> {
        let labels = with_labels(
            template_labels(&at.value),
            &[
                ("statefulset.kubernetes.io/pod-name", called),
                ("apps.kubernetes.io/pod-index", &number.to_string()),
            ],
        );
        let claims: Vec<(String, &PersistentVolumeClaim)> =
            claims.iter().map(|it| (format!("{}-{called}", name(&it.metadata)), it)).collect();
        let demand = self.of_template(at, called, &labels, &claims);
        self.shared(demand)
    }

    fn copy(&mut self, workload: &'l Workload, called: &str, demand: &Arc<Demand>) {
        let namespace = self.namespace(namespace(&workload.meta));
        let pod = Pod::new(&namespace, called, demand);
        let origin = Origin { workload: Some(workload.told()), leaves: None };
        self.world.origins.insert(pod.id(), origin);
        self.world.pods.push(pod);
    }

    fn of_pod(&mut self, at: &Located<super::Listed>) -> Demand {
        let wire = &at.value.pod;
        let empty = (Labels::new(), PodSpec::default());
        let mut reader = Reader::default();
        let asked = Asked {
            namespace: namespace(&wire.metadata),
            name: name(&wire.metadata),
            labels: wire.metadata.labels.as_ref().unwrap_or(&empty.0),
            spec: wire.spec.as_ref().unwrap_or(&empty.1),
            status: wire.status.as_ref(),
            field: "spec",
            admitted: wire.metadata.uid.is_some(),
            unknown: &at.value.unknown,
            own_claims: &[],
        };
        let demand = demand(self.listing, &self.volumes, &asked, &mut reader);
        self.tell(at, reader);
        demand
    }

    fn of_template(
        &mut self,
        at: &Located<Workload>,
        called: &str,
        labels: &Labels,
        own_claims: &[(String, &PersistentVolumeClaim)],
    ) -> Demand {
        let workload = &at.value;
        let empty = PodSpec::default();
        let mut spec = workload.template.spec.as_ref().unwrap_or(&empty).clone();
        // A volume that is mounted under the name of a claim's template is that claim.
        if let (Copies::Numbered { claims, .. }, Some(volumes)) =
            (&workload.copies, &mut spec.volumes)
        {
            volumes.retain(|it| !claims.iter().any(|claim| name(&claim.metadata) == it.name));
        }
        let mut reader = Reader::default();
        let asked = Asked {
            namespace: namespace(&workload.meta),
            name: called,
            labels,
            spec: &spec,
            status: None,
            field: "spec.template.spec",
            admitted: false,
            unknown: &workload.unknown,
            own_claims,
        };
        let demand = demand(self.listing, &self.volumes, &asked, &mut reader);
        // The same template is read for every numbered copy, and told about once.
        reader.found.retain(|it| {
            let problem = at.problem(it.clone());
            !self.problems.contains(&problem)
        });
        self.tell(at, reader);
        demand
    }

    /// Room for daemons that have not come to a node yet, and whether there are any.
    fn set_aside(&mut self) -> bool {
        let mut some_to_come = false;
        let sets = self.listing.workloads.iter();
        let sets: Vec<&Workload> =
            sets.map(|it| &it.value).filter(|it| it.copies == Copies::OnEveryNode).collect();
        for (set, daemon) in sets.into_iter().zip(&self.world.daemons) {
            let there = self.owners.nodes_with(set);
            let to_come = self.world.nodes.iter_mut().filter(|it| {
                !it.leaving && !there.contains(it.name.as_str()) && may_run(&daemon.demand, it)
            });
            for node in to_come {
                some_to_come = true;
                add(&mut node.set_aside, &daemon.demand.requests);
                add(
                    &mut node.set_aside,
                    &Amounts::from([(PODS.to_owned(), Quantity::from_units(1))]),
                );
            }
        }
        some_to_come
    }

    /// Pods whose terms ask what the files do not tell are not placed by guess.
    fn doubts(&mut self, daemons_come: bool) {
        let mut doubts = Doubts::new(self.listing, &self.world, daemons_come);
        let mut known: BTreeMap<(Arc<str>, *const Demand), Arc<Demand>> = BTreeMap::new();
        let mut pods = std::mem::take(&mut self.world.pods);
        for pod in &mut pods {
            let key = (Arc::clone(&pod.namespace.name), Arc::as_ptr(&pod.demand));
            let judged = known.entry(key).or_insert_with(|| {
                let what = doubts.about(pod);
                if what.is_empty() {
                    return Arc::clone(&pod.demand);
                }
                let mut demand = Demand::clone(&pod.demand);
                demand.unmodelled.extend(what);
                demand.unmodelled.sort();
                demand.unmodelled.dedup();
                self.shared(demand)
            });
            pod.demand = Arc::clone(judged);
        }
        self.world.pods = pods;
        self.world.notes.extend(doubts.note());
    }
}

fn template_labels(workload: &Workload) -> Option<&Labels> {
    workload.template.metadata.as_ref().and_then(|it| it.labels.as_ref())
}

/// Whether the node gets a pod of a `DaemonSet`.
fn may_run(demand: &Demand, node: &Node) -> bool {
    demand.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
        && demand
            .node_terms
            .as_ref()
            .is_none_or(|it| it.iter().any(|it| it.admits(&node.name, &node.labels)))
        && node
            .standing_taints()
            .iter()
            .all(|it| !it.effect.binding() || it.tolerated_by(&demand.tolerations))
}

/// Daemons and static pods belong to their node and do not move.
fn stays_behind(pod: &WirePod) -> bool {
    let mirror = pod.metadata.annotations.as_ref().is_some_and(|it| it.contains_key(MIRROR));
    mirror || controller(&pod.metadata).is_some_and(|it| it.kind == DAEMON_SET || it.kind == "Node")
}

/// The node that a daemon's pod was made for and has not been bound to yet.
fn targeted(pod: &WirePod) -> Option<&str> {
    controller(&pod.metadata).filter(|it| it.kind == DAEMON_SET)?;
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields =
        required.node_selector_terms.iter().flat_map(|it| it.match_fields.iter().flatten());
    fields.flat_map(|it| it.values.iter().flatten()).map(String::as_str).next()
}

fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|it| it.controller == Some(true))
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.entry(name.clone()).or_insert(Quantity::ZERO);
        *sum = sum.saturating_add(*amount);
    }
}

impl Workload {
    fn told(&self) -> String {
        format!("{} {}", self.kind, name(&self.meta))
    }
}

type Key<'l> = (&'l str, &'l str, &'l str);

/// Who owns whom: kind, namespace and name.
pub(super) struct Owners<'l> {
    listing: &'l Listing,
    workloads: BTreeMap<Key<'l>, &'l Workload>,
    /// Pods by the workload in the files that answers for them.
    pods: BTreeMap<Key<'l>, BTreeSet<&'l str>>,
    nodes: BTreeMap<Key<'l>, BTreeSet<&'l str>>,
}

impl<'l> Owners<'l> {
    fn new(listing: &'l Listing) -> Self {
        let all = listing.workloads.iter().map(|it| &it.value);
        let workloads = all.map(|it| (key(it), it)).collect();
        let mut owners = Self { listing, workloads, pods: BTreeMap::new(), nodes: BTreeMap::new() };
        for pod in listing.pods.iter().map(|it| &it.value.pod) {
            let Some(owner) = owners.of(&pod.metadata).map(key) else { continue };
            if ended(pod) {
                continue;
            }
            let bound = pod.spec.as_ref().and_then(|it| it.node_name.as_deref());
            let node = bound.filter(|it| !it.is_empty()).or_else(|| targeted(pod));
            owners.nodes.entry(owner).or_default().extend(node);
            if pod.metadata.deletion_timestamp.is_none() {
                owners.pods.entry(owner).or_default().insert(name(&pod.metadata));
            }
        }
        owners
    }

    /// The workload in the files that answers for this object.
    fn of(&self, meta: &'l ObjectMeta) -> Option<&'l Workload> {
        let owner = controller(meta)?;
        let namespace = namespace(meta);
        let find = |kind: &'l str, called: &'l str| {
            self.workloads.get(&(kind, namespace, called)).copied()
        };
        let direct = find(&owner.kind, &owner.name);
        if owner.kind != "ReplicaSet" {
            return direct;
        }
        let above = match direct {
            Some(set) => controller(&set.meta).and_then(|it| find(&it.kind, &it.name)),
            // `web-5d4f8c7b9` is made by the Deployment `web`.
            None => owner.name.rsplit_once('-').and_then(|(it, _)| find("Deployment", it)),
        };
        above.or(direct)
    }

    /// Whether another workload in the files speaks for this one.
    fn spoken_for(&self, workload: &'l Workload) -> bool {
        self.of(&workload.meta).is_some()
    }

    /// How many pods of it the files do not show. Of daemons, always several.
    pub(super) fn copies_to_come(&self, workload: &'l Workload) -> usize {
        let count = match &workload.copies {
            Copies::OnEveryNode => return 2,
            Copies::Alike(count) | Copies::Numbered { count, .. } => *count,
        };
        if self.spoken_for(workload) {
            return 0;
        }
        count.saturating_sub(self.pods_of(workload).len())
    }

    fn pods_of(&self, workload: &'l Workload) -> BTreeSet<&'l str> {
        self.pods.get(&key(workload)).cloned().unwrap_or_default()
    }

    fn nodes_with(&self, workload: &'l Workload) -> BTreeSet<&'l str> {
        self.nodes.get(&key(workload)).cloned().unwrap_or_default()
    }

    /// The label that tells the newest pods of a `Deployment` from older ones, if it is known.
    fn template_hash(&self, workload: &'l Workload) -> Option<&'l str> {
        let sets = self.listing.workloads.iter().map(|it| &it.value);
        let theirs = sets.filter(|it| {
            it.kind == "ReplicaSet"
                && self.of(&it.meta).is_some_and(|it| std::ptr::eq(it, workload))
        });
        let revision = |it: &&Workload| {
            let written = it.meta.annotations.as_ref().and_then(|it| it.get(REVISION));
            written.and_then(|it| it.parse::<u64>().ok())
        };
        let newest = theirs.max_by_key(|it| (revision(it), name(&it.meta)))?;
        newest.meta.labels.as_ref()?.get(TEMPLATE_HASH).map(String::as_str)
    }
}

fn key(workload: &Workload) -> Key<'_> {
    (workload.kind, namespace(&workload.meta), name(&workload.meta))
}
