//! Which pods need a home, and who is already where?
//!
//! `listing × leaving nodes → pods to be packed + nodes with who is on them + daemons`
//!
//! A workload stands for as many pods as it should have. Pods of it that are in the files count towards
//! that number; what is missing is made from its template, under names that no real pod can have
//! (`web#1`), save for a `StatefulSet`, whose names are known.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod as WirePod, PodSpec};
use nodemolt_core::place::daemons;
use nodemolt_fit::{
    Quantity, Written,
    capacity::Amounts,
    label,
    node::Node,
    pod::{Demand, Namespace, Pod, PodId},
    pool::{NODES, Pool},
    selector::Labels,
    taint::{Effect, Taint},
};

use super::{
    COMPLETION_INDEX, CRON_JOB, Copies, DAEMON_SET, Listing, Workload,
    around::Volumes,
    change::made_from,
    claim::{self, Claims},
    doubt::Doubts,
    name, namespace,
    node::{self, about_to_leave, unready},
    owners,
    owners::{Owners, controller, ended, targeted},
    pod::{Asked, demand, doubted, exists, with_labels},
    reader::Reader,
    refused, spec_of_pods, volume,
    workload::COPIES_MAX,
};
use crate::{
    file::Located,
    nodeclaim::NodeClaim,
    problem::{Finding, Problem, Severity},
};

/// Workloads whose pods are replaced when their template changes.
const REPLACED: [&str; 5] =
    ["Deployment", "ReplicaSet", "ReplicationController", super::ROLLOUT, "StatefulSet"];
/// What a port has where nothing is written.
const TCP: &str = "TCP";
/// Static pods show up as these.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
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
    /// One pod of every `DaemonSet`, as each node gets it.
    pub daemons: Vec<Pod>,
    /// Where each pod of `pods` comes from, and each that runs on a node that stays.
    pub origins: BTreeMap<PodId, Origin>,
    /// What people know a bound volume by: its claim and its object, by what makes it one volume.
    pub volumes: BTreeMap<String, String>,
    /// Of each pool with nodes: what they have, those that leave included, and how many they are.
    pub used: BTreeMap<String, Amounts>,
    /// Of each pool, machines that were asked for and not launched yet: what each has to be. They are not in `used`,
    /// save as nodes, as nobody knows which they will be.
    pub unlaunched: BTreeMap<String, Vec<Vec<Written>>>,
    /// Pods in the files that are not packed and run on no node that stays: why, in words.
    pub left_out: BTreeMap<PodId, String>,
    /// What people should know about how this was read.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// `Deployment web`, of a pod that a workload stands for or owns.
    pub workload: Option<String>,
    /// The node that it has to leave.
    pub leaves: Option<String>,
    /// It belongs to its node, and goes with it.
    pub tied: bool,
}

impl World {
    /// `leaving` are names of nodes. Pools say which taints of their nodes will go away.
    pub fn new(
        listing: &Listing,
        leaving: &BTreeSet<String>,
        pools: &[Pool],
        claims: &[NodeClaim],
    ) -> Result<Self, Vec<Problem>> {
        let owners = Owners::new(listing);
        let mut builder = Builder {
            listing,
            volumes: Volumes::new(listing, &owners),
            owners,
            namespaces: BTreeMap::new(),
            demands: BTreeSet::new(),
            leaving: leaving.clone(),
            for_windows: BTreeSet::new(),
            changed: BTreeSet::new(),
            outdated: BTreeMap::new(),
            surplus: BTreeMap::new(),
            world: Self::default(),
            problems: Vec::new(),
        };
        let nodes: BTreeMap<&str, Option<&str>> = listing
            .nodes
            .iter()
            .map(|it| &it.value)
            .map(|it| {
                (name(&it.metadata), it.spec.as_ref().and_then(|it| it.provider_id.as_deref()))
            })
            .collect();
        let claims = Claims::new(claims, &nodes);
        builder.name_volumes();
        builder.daemons();
        builder.nodes(pools, &claims);
        builder.claims(&claims);
        builder.attachments();
        builder.find_changes();
        builder.find_surplus();
        builder.pods();
        builder.copies();
        builder.note_windows();
        builder.expect_daemons();
        builder.doubts(!pools.is_empty());
        if builder.problems.is_empty() { Ok(builder.world) } else { Err(builder.problems) }
    }
}

struct Builder<'l> {
    listing: &'l Listing,
    volumes: Volumes<'l>,
    owners: Owners<'l>,
    namespaces: BTreeMap<&'l str, Arc<Namespace>>,
    demands: BTreeSet<Arc<Demand>>,
    leaving: BTreeSet<String>,
    /// Pods and workloads for Windows that do not select its nodes.
    for_windows: BTreeSet<String>,
    /// Workloads whose pods will ask for something else than those that run.
    changed: BTreeSet<owners::Key<'l>>,
    /// The same where only pods tell: those that are unlike what was written, by their workload.
    outdated: BTreeMap<owners::Key<'l>, BTreeSet<&'l str>>,
    /// Pods beyond the number that was written for their workload.
    surplus: BTreeMap<owners::Key<'l>, BTreeSet<&'l str>>,
    world: World,
    problems: Vec<Problem>,
}

impl<'l> Builder<'l> {
    /// What is merely odd does not stop the answer.
    fn tell<T>(&mut self, at: &Located<T>, reader: Reader) {
        for problem in reader.found.into_iter().map(|it| at.problem(it)) {
            if problem.severity == Severity::Error {
                self.problems.push(problem);
                continue;
            }
            let hint = problem.hint.as_ref().map(|it| format!("; {it}")).unwrap_or_default();
            let note = format!("{problem}{hint}");
            if !self.world.notes.contains(&note) {
                self.world.notes.push(note);
            }
        }
    }

    fn name_volumes(&mut self) {
        for ((namespace, claim), it) in &self.listing.claims {
            let bound = it.spec.as_ref().and_then(|it| it.volume_name.as_ref());
            let Some(volume) = bound.and_then(|it| self.listing.volumes.get(it)) else { continue };
            let object = format!("PersistentVolume {}", name(&volume.metadata));
            let told = format!("claim {namespace}/{claim}, {object}");
            let handle = volume::attached(volume).0.to_owned();
            // Where several claims say that it is theirs, nobody knows whose it is.
            let known = self.world.volumes.entry(handle);
            known.and_modify(|it| it.clone_from(&object)).or_insert(told);
        }
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
            put_up_with_all(&mut demand, set.template.spec.as_ref());
            let demand = self.shared(demand);
            let namespace = self.namespace(namespace(&set.meta));
            self.world.daemons.push(Pod::new(&namespace, name(&set.meta), &demand));
        }
    }

    fn nodes(&mut self, pools: &[Pool], claims: &Claims<'_>) {
        let startup: BTreeMap<String, Vec<Taint>> =
            pools.iter().map(|it| (it.name.clone(), it.startup_taints.clone())).collect();
        for at in &self.listing.nodes {
            let mut reader = Reader::default();
            let csi = self.listing.csi_nodes.get(name(&at.value.metadata));
            let mut node = node::node(&at.value, csi, &startup, &mut reader);
            let claim_goes =
                claims.going.contains(&node.name).then_some("its NodeClaim is being deleted");
            if let Some(why) = about_to_leave(&at.value).or(claim_goes)
                && self.leaving.insert(node.name.clone())
            {
                self.world.notes.push(format!("node {} counts as leaving: {why}", node.name));
            }
            node.leaving = self.leaving.contains(&node.name);
            if !node.leaving
                && let Some(status) = unready(&at.value)
            {
                self.world.notes.push(format!(
                    "node {} says Ready={status} and has no taint for it: pods are placed there, as the scheduler would",
                    node.name
                ));
            }
            if let Some(pool) = &node.pool {
                let capacity = at.value.status.as_ref().and_then(|it| it.capacity.as_ref());
                let capacity = reader.amounts("status.capacity", capacity);
                let used = self.world.used.entry(pool.clone()).or_default();
                add(used, &capacity);
                add(used, &Amounts::from([(NODES.to_owned(), Quantity::from_units(1))]));
            }
            if at.value.metadata.uid.is_some() && !reader.found.is_empty() {
                // What exists is not for a person to correct. Without all that it says, nobody is sent there.
                let told = reader.found.iter().map(|it| format!("{} {}", it.field, it.message));
                let told: Vec<String> = told.collect();
                let sentence =
                    format!("no pod is planned onto node {}: {}", node.name, told.join("; "));
                self.world.notes.push(sentence);
                node.allocatable.clear();
                node.unread = Some(told.join("; "));
            } else {
                self.tell(at, reader);
            }
            self.world.nodes.push(node);
        }
        self.world.nodes.sort_by(|left, right| left.name.cmp(&right.name));
    }

    /// As the scheduler counts them: also those whose pods are gone. What a volume is that is not in the files is not known.
    fn attachments(&mut self) {
        for node in &mut self.world.nodes {
            let names = self.listing.attachments.get(&node.name).into_iter().flatten();
            let volumes = names.filter_map(|it| self.listing.volumes.get(it));
            node.attached = volumes.filter_map(volume::left_attached).collect();
        }
    }

    /// Machines that were asked for and whose nodes are not in the files.
    fn claims(&mut self, claims: &Claims<'_>) {
        let (mut will_be, mut there, mut unknown) = (Vec::new(), Vec::new(), 0_usize);
        for it in &claims.on_their_way {
            if let Some(pool) = claim::pool(it) {
                let used = self.world.used.entry(pool.clone()).or_default();
                add(used, &claim::capacity(it));
                add(used, &Amounts::from([(NODES.to_owned(), Quantity::from_units(1))]));
                let open = claim::still_open(it);
                self.world.unlaunched.entry(pool.clone()).or_default().extend(open);
            }
            let taken = |it: &Node| self.world.nodes.iter().any(|other| other.name == it.name);
            match claim::node(it).filter(|it| !taken(it)) {
                Some(node) => {
                    let registered = claim::registered(it).is_some();
                    let list = if registered { &mut there } else { &mut will_be };
                    list.push(node.name.clone());
                    self.world.nodes.push(node);
                }
                None => unknown += 1,
            }
        }
        self.world.nodes.sort_by(|left, right| left.name.cmp(&right.name));
        if let Some(first) = will_be.first() {
            self.world.notes.push(format!(
                "NodeClaims that were launched, such as {first}, stand for the nodes that they will be: {}",
                will_be.len()
            ));
        }
        if let Some(first) = there.first() {
            self.world.notes.push(format!(
                "nodes that are not in the files, such as {first}, are read from their NodeClaims, with the pods that the files show on them: {}; add what `kubectl get nodes -o yaml` prints",
                there.len()
            ));
        }
        if unknown > 0 {
            self.world.notes.push(format!(
                "NodeClaims that go, or of which nobody knows yet what they will offer, count towards limits, and no pod is planned onto them: {unknown}"
            ));
        }
    }

    /// Why a pod of the files is in none of the lists.
    fn leave_out(&mut self, wire: &WirePod, why: &str) {
        let id = PodId {
            namespace: namespace(&wire.metadata).into(),
            name: name(&wire.metadata).into(),
        };
        self.world.left_out.insert(id, why.to_owned());
    }

    fn pods(&mut self) {
        let mut elsewhere: BTreeSet<&str> = BTreeSet::new();
        let mut on_their_way = 0;
        let mut without_node = 0;
        let mut bare = BTreeSet::new();
        let mut followed: BTreeSet<&str> = BTreeSet::new();
        for at in &self.listing.pods {
            let wire = &at.value.pod;
            if ended(wire) {
                self.leave_out(wire, "it has ended");
                continue;
            }
            let bound = wire.spec.as_ref().and_then(|it| it.node_name.as_deref());
            let home = bound.filter(|it| !it.is_empty());
            let terminating = wire.metadata.deletion_timestamp.is_some();
            let workload = self.owners.of(&wire.metadata);
            if let Some(workload) = workload.filter(|_| terminating)
                && workload.names(name(&wire.metadata))
            {
                followed.insert(name(&wire.metadata));
                self.leave_out(wire, "it is being deleted, and another of its name comes after it");
                continue;
            }
            if let Some(workload) = workload
                && (self.changed.contains(&owners::key(workload))
                    || self.gives_way(workload, name(&wire.metadata)))
            {
                self.leave_out(wire, "it gives way to one of its workload as it was written");
                continue;
            }
            if workload.is_some_and(|it| self.is_surplus(it, name(&wire.metadata))) {
                self.leave_out(wire, "its workload as it was written has fewer pods");
                continue;
            }
            let node =
                home.map(|home| self.world.nodes.binary_search_by(|it| it.name.as_str().cmp(home)));
            let leaves = home.filter(|it| self.leaving.contains(*it));
            match (node, leaves) {
                (Some(Err(_)), None) => {
                    elsewhere.extend(home);
                    without_node += 1;
                    self.leave_out(wire, "its node is not in the files");
                    continue;
                }
                // Another comes with the next node, or its owner has made it.
                (_, Some(_)) if stays_behind(wire) => {
                    self.leave_out(wire, "it belongs to its node, and goes with it");
                    continue;
                }
                (None, _) | (_, Some(_)) if terminating => {
                    self.leave_out(wire, "it is being deleted");
                    continue;
                }
                (None, _) if targeted(wire).is_some_and(|it| self.leaving.contains(it)) => {
                    self.leave_out(wire, "it was made for a node that leaves");
                    continue;
                }
                (Some(Ok(_) | Err(_)) | None, _) => {}
            }
            let demand = self.of_pod(at);
            let demand = self.shared(demand);
            let namespace = self.namespace(namespace(&wire.metadata));
            let pod = Pod { terminating, ..Pod::new(&namespace, name(&wire.metadata), &demand) };
            let workload = self.owners.of(&wire.metadata);
            let workload = workload.map(Workload::told).or_else(|| {
                controller(&wire.metadata).map(|it| format!("{} {}", it.kind, it.name))
            });
            let leaves = leaves.map(str::to_owned);
            let origin = Origin { workload, leaves, tied: stays_behind(wire) };
            match node {
                Some(Ok(node)) if origin.leaves.is_none() => {
                    on_their_way += usize::from(terminating);
                    // One that is being deleted has the name of the one that comes after it.
                    self.world.origins.entry(pod.id()).or_insert(origin);
                    self.world.nodes[node].pods.push(pod);
                }
                Some(Ok(_) | Err(_)) | None => {
                    if origin.leaves.is_some() && origin.workload.is_none() {
                        bare.insert(pod.id());
                    }
                    self.world.origins.insert(pod.id(), origin);
                    self.world.pods.push(pod);
                }
            }
        }
        if let Some(first) = bare.first() {
            self.world.notes.push(format!(
                "pods without an owner do not come back when their node is gone, such as {first}: {}; they are packed as if somebody made them anew",
                bare.len()
            ));
        }
        if without_node > 0 {
            let example = elsewhere.first().copied().unwrap_or_default();
            let note = format!(
                "pods on nodes that are not in the files, such as {example}, are left out: {without_node}"
            );
            self.world.notes.push(note);
        }
        if let Some(first) = followed.first() {
            self.world.notes.push(format!(
                "pods of StatefulSets that are being deleted are left out, such as {first}: {}; those of the same name come when they are gone",
                followed.len()
            ));
        }
        if on_their_way > 0 {
            let note =
                format!("pods that are being deleted, whose room is not free yet: {on_their_way}");
            self.world.notes.push(note);
        }
    }

    /// A manifest whose pods ask for something else than those of the live workload that it stands in for: when it has
    /// been applied, those that run now are gone.
    fn find_changes(&mut self) {
        let listing = self.listing;
        for live in &listing.before {
            let key = owners::key(&live.value);
            let written = listing.workloads.iter().find(|it| owners::key(&it.value) == key);
            let Some(written) = written else { continue };
            if written.value.copies == Copies::OnEveryNode {
                continue;
            }
            let mut ask = |at: &'l Located<Workload>| {
                let labels = with_labels(template_labels(&at.value), &[]);
                let mut demand = self.of_template(at, name(&at.value.meta), &labels, &[]);
                for port in demand.host_ports.iter_mut().filter(|it| it.protocol.is_empty()) {
                    TCP.clone_into(&mut port.protocol);
                }
                demand
            };
            if ask(live) != ask(written) {
                self.changed.insert(key);
                self.note_change(&written.value);
            }
        }
        self.find_outdated();
    }

    /// The same where the live workload is not in the files, and its pods are.
    fn find_outdated(&mut self) {
        let listing = self.listing;
        let known: BTreeSet<owners::Key<'l>> =
            listing.before.iter().map(|it| owners::key(&it.value)).collect();
        for pod in listing.pods.iter().map(|it| &it.value.pod) {
            let Some(workload) = self.owners.of(&pod.metadata) else { continue };
            let written = workload.meta.uid.is_none() && REPLACED.contains(&workload.kind);
            let live = pod.metadata.uid.is_some() && !ended(pod);
            let key = owners::key(workload);
            if written && live && !known.contains(&key) && !made_from(&workload.template, pod) {
                self.outdated.entry(key).or_default().insert(name(&pod.metadata));
            }
        }
        let keys: BTreeSet<owners::Key<'l>> = self.outdated.keys().copied().collect();
        for at in listing.workloads.iter().filter(|it| keys.contains(&owners::key(&it.value))) {
            self.note_change(&at.value);
        }
    }

    /// Pods of workloads for which fewer were written than run: when that has been applied, the rest is gone.
    fn find_surplus(&mut self) {
        let listing = self.listing;
        let mut run: BTreeMap<owners::Key<'l>, (&'l Workload, Vec<&'l WirePod>)> = BTreeMap::new();
        for pod in listing.pods.iter().map(|it| &it.value.pod) {
            let Some(workload) = self.owners.of(&pod.metadata) else { continue };
            let written = workload.meta.uid.is_none() && workload.counted;
            let runs = !ended(pod) && pod.metadata.deletion_timestamp.is_none();
            let key = owners::key(workload);
            let stays =
                !self.changed.contains(&key) && !self.gives_way(workload, name(&pod.metadata));
            if written && runs && stays && pod.metadata.uid.is_some() {
                run.entry(key).or_insert((workload, Vec::new())).1.push(pod);
            }
        }
        for (key, (workload, mut pods)) in run {
            let numbered = matches!(workload.copies, Copies::Numbered { .. });
            let (there, count) = (pods.len(), workload.copies.count());
            if numbered {
                pods.retain(|it| !workload.names(name(&it.metadata)));
            } else {
                pods.sort_by_key(|it| stands(it));
                pods.truncate(there.saturating_sub(count));
            }
            if pods.is_empty() {
                continue;
            }
            let unknown = if numbered { "" } else { "; which of them will go is not known" };
            self.world.notes.push(format!(
                "{there} pods of {} run and {count} were written: {} are left out{unknown}",
                workload.told(),
                pods.len()
            ));
            let names = pods.iter().map(|it| name(&it.metadata));
            self.surplus.insert(key, names.collect());
        }
    }

    fn is_surplus(&self, workload: &'l Workload, pod: &str) -> bool {
        self.surplus.get(&owners::key(workload)).is_some_and(|it| it.contains(pod))
    }

    fn gives_way(&self, workload: &'l Workload, pod: &str) -> bool {
        self.outdated.get(&owners::key(workload)).is_some_and(|it| it.contains(pod))
    }

    fn note_change(&mut self, workload: &Workload) {
        self.world.notes.push(format!(
            "the pods of {} that run are left out: they give way to those that were written, and while both are there they need more room",
            workload.told()
        ));
    }

    /// What a workload should have and what the files do not show.
    fn copies(&mut self) {
        let listing = self.listing;
        let mut runs: BTreeSet<&str> = BTreeSet::new();
        let mut made = 0_usize;
        for at in &listing.workloads {
            let workload = &at.value;
            if self.owners.spoken_for(workload) {
                continue;
            }
            let changed = self.changed.contains(&owners::key(workload));
            let mut there = if changed { BTreeSet::new() } else { self.owners.pods_of(workload) };
            there.retain(|it| !self.gives_way(workload, it) && !self.is_surplus(workload, it));
            // Pods that give way are followed by as many as were written.
            let unchanged = !changed && !self.outdated.contains_key(&owners::key(workload));
            let of_set = if unchanged { self.owners.set_lacks(workload) } else { 0 };
            let missing = workload.copies.count().saturating_sub(there.len()).max(of_set);
            made = made.saturating_add(missing);
            if made > COPIES_MAX {
                let finding = Finding::error(
                    "spec",
                    format!(
                        "with this there are {made} pods to be made, and {COPIES_MAX} are packed at once"
                    ),
                );
                let hint = "leave some workloads out, or ask for fewer replicas";
                self.problems.push(at.problem(finding.hint(hint)));
                return;
            }
            match &workload.copies {
                Copies::OnEveryNode => {}
                Copies::Alike(_) => {
                    if missing > 0 {
                        runs.extend((workload.kind == CRON_JOB).then(|| name(&workload.meta)));
                        self.alike(at, missing);
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
        if let Some(first) = runs.first() {
            self.world.notes.push(format!(
                "CronJobs, such as {first}, stand for the pods of one run each: {}",
                runs.len()
            ));
        }
    }

    /// So many pods of the template, under names that no real pod can have.
    fn alike(&mut self, at: &'l Located<Workload>, missing: usize) {
        let workload = &at.value;
        let hash = self.owners.template_hash(workload);
        let added = workload.adds.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let hash = hash.as_ref().map(|(key, value)| (*key, value.as_str()));
        let more: Vec<(&str, &str)> = added.chain(hash).collect();
        let labels = with_labels(template_labels(workload), &more);
        let called = name(&workload.meta);
        let demand = self.of_template(at, called, &labels, &[]);
        let indexes = self.owners.open_indexes(workload);
        let shared = self.shared(demand.clone());
        for number in 1..=missing {
            let demand = match indexes.get(number - 1) {
                None => Arc::clone(&shared),
                Some(index) => {
                    let index = [(COMPLETION_INDEX, &*index.to_string())];
                    let labels = with_labels(Some(&labels), &index);
                    self.shared(Demand { labels, ..demand.clone() })
                }
            };
            self.copy(workload, &format!("{called}#{number}"), &demand);
        }
    }

    fn note_windows(&mut self) {
        if let Some(first) = self.for_windows.first() {
            self.world.notes.push(format!(
                "the scheduler does not look at spec.os, and a kubelet on Linux refuses pods for Windows: select kubernetes.io/os=windows in {first}"
            ));
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
        let origin = Origin { workload: Some(workload.told()), leaves: None, tied: false };
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
            nameless: false,
            own_claims: &[],
        };
        let demand = demand(&self.volumes, &asked, &mut reader);
        if lost_windows(asked.spec, &demand) {
            self.for_windows.insert(asked.name.to_owned());
        }
        if asked.admitted {
            return doubted(demand, reader);
        }
        without_containers(&asked, &mut reader);
        refused::check(&asked, &mut reader);
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
            field: spec_of_pods(workload.kind),
            admitted: false,
            unknown: &workload.unknown,
            nameless: !matches!(workload.copies, Copies::Numbered { .. }),
            own_claims,
        };
        let demand = demand(&self.volumes, &asked, &mut reader);
        if lost_windows(asked.spec, &demand) {
            self.for_windows.insert(name(&workload.meta).to_owned());
        }
        if workload.meta.uid.is_some() {
            if workload.copies == Copies::OnEveryNode && !reader.found.is_empty() {
                let told = reader.found.iter().map(|it| format!("{} {}", it.field, it.message));
                let told: Vec<String> = told.collect();
                let note = format!("{} is not read in full: {}", workload.told(), told.join("; "));
                self.world.notes.push(note);
            }
            return doubted(demand, reader);
        }
        without_containers(&asked, &mut reader);
        refused::check(&asked, &mut reader);
        // The same template is read for every numbered copy, and told about once.
        reader.found.retain(|it| {
            let problem = at.problem(it.clone());
            !self.problems.contains(&problem)
        });
        self.tell(at, reader);
        demand
    }

    /// Daemons that have not come to a node yet are as good as there.
    fn expect_daemons(&mut self) {
        let sets = self.listing.workloads.iter();
        let sets: Vec<&Workload> =
            sets.map(|it| &it.value).filter(|it| it.copies == Copies::OnEveryNode).collect();
        for (set, daemon) in sets.into_iter().zip(&self.world.daemons) {
            let there = self.owners.nodes_with(set);
            let lacking = |it: &&mut Node| !it.leaving && !there.contains(it.name.as_str());
            for node in self.world.nodes.iter_mut().filter(lacking) {
                if daemons::runs_on(&daemon.demand, node) {
                    node.pods.push(daemons::to_come(daemon, node));
                }
            }
        }
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

/// The API server refuses such a pod; most often its spec stands elsewhere.
fn without_containers(asked: &Asked<'_>, reader: &mut Reader) {
    if asked.spec.containers.is_empty() {
        let hint = "a pod has at least one container";
        reader.refuse_with(&format!("{}.containers", asked.field), "is missing".to_owned(), hint);
    }
}

/// Whether it is for Windows and nothing leads it there.
fn lost_windows(spec: &PodSpec, demand: &Demand) -> bool {
    let terms = demand.node_terms.iter().flatten().flat_map(|it| &it.labels);
    spec.os.as_ref().is_some_and(|it| it.name == "windows")
        && !demand.node_selector.keys().chain(terms.map(|it| &it.key)).any(|it| it == label::OS)
}

/// What the controller of `DaemonSet`s adds to what is written.
pub(crate) fn put_up_with_all(demand: &mut Demand, spec: Option<&PodSpec>) {
    let tolerated = DAEMONS_TOLERATE.into_iter().map(|(key, effect)| exists(key, effect));
    demand.tolerations.extend(tolerated);
    if spec.is_some_and(|it| it.host_network.unwrap_or(false)) {
        demand.tolerations.push(exists(NETWORK_UNAVAILABLE, Effect::NoSchedule));
    }
}

fn template_labels(workload: &Workload) -> Option<&Labels> {
    workload.template.metadata.as_ref().and_then(|it| it.labels.as_ref())
}

/// How firmly a pod stands when its set has too many, as far as the files tell: who has no node, or does not run yet, goes
/// first, then the youngest.
fn stands(pod: &WirePod) -> (bool, bool, Reverse<Option<Timestamp>>, &str) {
    let bound = pod.spec.as_ref().and_then(|it| it.node_name.as_deref());
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    let made_at = pod.metadata.creation_timestamp.as_ref().map(|it| it.0);
    let bound = bound.is_some_and(|it| !it.is_empty());
    (bound, phase == Some("Running"), Reverse(made_at), name(&pod.metadata))
}

/// Daemons and static pods belong to their node and do not move.
pub(crate) fn stays_behind(pod: &WirePod) -> bool {
    let mirror = pod.metadata.annotations.as_ref().is_some_and(|it| it.contains_key(MIRROR));
    mirror || controller(&pod.metadata).is_some_and(|it| it.kind == DAEMON_SET || it.kind == "Node")
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
