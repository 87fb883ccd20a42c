//! What is in a cluster, and what would be put into it?
//!
//! `what kubectl prints + manifests → listing → world`
//!
//! Two kinds of text come through here. What `kubectl get … -o yaml` prints was admitted by an API
//! server: its defaults are filled in, and a field that we do not know is one of a newer Kubernetes.
//! A manifest was written by a person: defaults are still to be applied, and a field that nobody knows
//! is misspelt. An object that has a uid is of the first kind. Where there are both of one object, the manifest is what
//! shall be, and stands in for the live one.

mod change;
mod claim;
pub mod class;
pub(crate) mod around;
pub(crate) mod device;
mod doubt;
pub(crate) mod limit;
pub(crate) mod node;
pub(crate) mod owners;
pub(crate) mod pod;
pub(crate) mod pool;
pub(crate) mod reader;
mod refused;
mod slim;
mod terms;
pub(crate) mod volume;
pub(crate) mod workload;
pub(crate) mod world;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::{
        LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplateSpec,
        ReplicationController,
    },
    node::v1::RuntimeClass,
    scheduling::v1::PriorityClass,
    storage::v1::{CSIDriver, CSINode, StorageClass, VolumeAttachment},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::de::DeserializeOwned;

use crate::{
    file::{self, Located, Object, Others, Source, decode::UNKNOWN_FIELD},
    problem::{Finding, Place, Problem, Severity, nearest, quoted},
};

pub use self::{
    pool::pool,
    world::{Origin, World},
};

/// What some ten thousand live pods take. More of them fit into several files.
pub const LISTING_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Everything that was read, by kind.
#[derive(Debug, Default)]
pub struct Listing {
    pods: Vec<Located<Listed>>,
    nodes: Vec<Located<Node>>,
    workloads: Vec<Located<Workload>>,
    namespaces: BTreeMap<String, Namespace>,
    volumes: BTreeMap<String, PersistentVolume>,
    claims: BTreeMap<(String, String), PersistentVolumeClaim>,
    storage_classes: BTreeMap<String, StorageClass>,
    csi_nodes: BTreeMap<String, CSINode>,
    csi_drivers: BTreeMap<String, CSIDriver>,
    /// Which volumes are attached to a node, by the names of their objects.
    attachments: BTreeMap<String, BTreeSet<String>>,
    /// Extended resources that are devices, with the class that gives them out.
    device_classes: BTreeMap<String, String>,
    priority_classes: BTreeMap<String, PriorityClass>,
    runtime_classes: BTreeMap<String, RuntimeClass>,
    /// By namespace, in the order of their names.
    limit_ranges: BTreeMap<String, BTreeMap<String, Vec<limit::OfContainers>>>,
    /// Kinds that say nothing about where pods fit, and how many of each there were.
    pub ignored: BTreeMap<String, usize>,
    /// Kinds that are not read and make pods, and how many of each there were.
    pub makers: BTreeMap<String, usize>,
    /// What people should know about how this was read.
    pub notes: Vec<String>,
    /// Live workloads for which a manifest stands in.
    before: Vec<Located<Workload>>,
    /// Kind, namespace and name of whatever was read, with its uid.
    seen: BTreeMap<Key, Option<String>>,
    /// How many pods, nodes and workloads a person has written.
    written: usize,
}

type Key = (&'static str, String, String);

/// A pod that exists, or that a person would create.
#[derive(Debug)]
struct Listed {
    pod: Pod,
    /// Fields that our types do not have: of its spec, and [`device::GIVEN`].
    unknown: Vec<String>,
}

/// Something that stands for pods.
#[derive(Debug)]
struct Workload {
    kind: &'static str,
    meta: ObjectMeta,
    template: PodTemplateSpec,
    copies: Copies,
    /// Whether it says itself how many there should be.
    counted: bool,
    /// Fields of the template's spec that our types do not have.
    unknown: Vec<String>,
    /// Labels that its pods must have.
    selects: BTreeMap<String, String>,
    /// Labels that its pods get beside those of the template, where no API server has written them there yet.
    adds: BTreeMap<String, String>,
    /// Of a Job whose pods have numbers: which are still to be completed.
    indexes: Option<Indexes>,
}

/// Numbers from 0 on, without those that are done.
#[derive(Debug, Clone, Default, PartialEq)]
struct Indexes {
    count: usize,
    /// From and to, both included.
    done: Vec<(usize, usize)>,
}

impl Indexes {
    fn open(&self) -> impl Iterator<Item = usize> {
        let done = |at: usize| self.done.iter().any(|(from, to)| (*from..=*to).contains(&at));
        (0..self.count).filter(move |it| !done(*it))
    }
}

impl Workload {
    fn new(
        kind: &'static str,
        meta: ObjectMeta,
        template: PodTemplateSpec,
        copies: Copies,
    ) -> Self {
        let (selects, adds) = (BTreeMap::new(), BTreeMap::new());
        Self {
            kind,
            meta,
            template,
            copies,
            counted: false,
            unknown: Vec::new(),
            selects,
            adds,
            indexes: None,
        }
    }

    fn counted(self, replicas: Option<i32>) -> Self {
        Self { counted: replicas.is_some(), ..self }
    }

    fn selecting(self, selector: Option<LabelSelector>) -> Self {
        Self { selects: selector.and_then(|it| it.match_labels).unwrap_or_default(), ..self }
    }
}

/// How many pods there should be.
#[derive(Debug, Clone, PartialEq)]
enum Copies {
    Alike(usize),
    /// One on every node that they tolerate and select.
    OnEveryNode,
    /// With numbers in their names, from this one on, and claims of their own.
    Numbered {
        count: usize,
        from: usize,
        claims: Vec<PersistentVolumeClaim>,
    },
}

impl Copies {
    /// How many, where that is not up to the nodes.
    fn count(&self) -> usize {
        match self {
            Self::OnEveryNode => 0,
            Self::Alike(count) | Self::Numbered { count, .. } => *count,
        }
    }
}

impl Workload {
    /// Whether there should be a pod of this name.
    fn names(&self, pod: &str) -> bool {
        let Copies::Numbered { count, from, .. } = &self.copies else { return false };
        let number = pod.strip_prefix(name(&self.meta)).and_then(|it| it.strip_prefix('-'));
        let number = number.and_then(|it| it.parse::<usize>().ok());
        number.is_some_and(|it| (*from..from.saturating_add(*count)).contains(&it))
    }
}

const CRON_JOB: &str = "CronJob";
const DAEMON_SET: &str = "DaemonSet";
const LIMIT_RANGE: &str = "LimitRange";
/// Of Argo Rollouts: a Deployment with another way to change.
const ROLLOUT: &str = "Rollout";
/// The label by which a `ReplicaSet` knows its pods, and that of one that a Rollout made.
const TEMPLATE_HASH: &str = "pod-template-hash";
const ROLLOUT_HASH: &str = "rollouts-pod-template-hash";
/// The label of a Job's pod that has a number.
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// In a value that stands for one which only a cluster could tell. No label can have it.
const MADE_UP: char = '#';

/// Where kinds that make pods say what those are: of most operators, of Volcano.
const OF_PODS: [&str; 4] = [
    "spec.template.spec.containers",
    "spec.podTemplate.spec.containers",
    "spec.jobTemplate.spec.template.spec.containers",
    "spec.tasks",
];

/// Kinds that are read, with the versions in which they are.
const KINDS: [(&str, &str); 21] = [
    ("Pod", "v1"),
    ("Node", "v1"),
    ("Namespace", "v1"),
    (LIMIT_RANGE, "v1"),
    ("PersistentVolume", "v1"),
    ("PersistentVolumeClaim", "v1"),
    ("ReplicationController", "v1"),
    ("Deployment", "apps/v1"),
    ("ReplicaSet", "apps/v1"),
    ("StatefulSet", "apps/v1"),
    ("DaemonSet", "apps/v1"),
    ("Job", "batch/v1"),
    (CRON_JOB, "batch/v1"),
    (ROLLOUT, "argoproj.io/v1alpha1"),
    ("StorageClass", "storage.k8s.io/v1"),
    ("CSINode", "storage.k8s.io/v1"),
    ("CSIDriver", "storage.k8s.io/v1"),
    ("VolumeAttachment", "storage.k8s.io/v1"),
    ("PriorityClass", "scheduling.k8s.io/v1"),
    ("RuntimeClass", "node.k8s.io/v1"),
    // Read by the door for our own kinds; here so that a list of them is known to be one.
    ("NodePool", "karpenter.sh/v1"),
];

impl Listing {
    /// Adds what a file says. Classes, pools and other kinds of ours are handed back.
    pub fn read(&mut self, source: &Source) -> (Vec<Located<Object>>, Vec<Problem>) {
        file::read_up_to(source, LISTING_BYTES_MAX, Some(self))
    }

    /// Names of the nodes, in their order.
    pub fn node_names(&self) -> Vec<&str> {
        let names = self.nodes.iter().filter_map(|it| it.value.metadata.name.as_deref());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names
    }

    /// Whether it is known how many volumes the node can attach.
    pub fn knows_volume_limits(&self, node: &str) -> bool {
        self.csi_nodes.contains_key(node)
    }

    /// How many pods, nodes and workloads people have written: only of those will more be said by line.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Whether there is anything that could be packed.
    pub fn without_pods(&self) -> bool {
        self.pods.is_empty()
            && self.workloads.iter().all(|it| it.value.copies == Copies::OnEveryNode)
    }

    fn take<T: DeserializeOwned>(
        &mut self,
        kind: &'static str,
        at: &Located<()>,
        meta: impl FnOnce(&T) -> &ObjectMeta,
    ) -> Taken<T> {
        let (value, found) = at.decode::<T>();
        let unknown = unknown_in_spec(&found, kind);
        let Some(value) = value else {
            let found = judge(found, false);
            return Taken { value: None, found, unknown, stood_in_for: false };
        };
        let meta = meta(&value);
        let mut found = judge(found, meta.uid.is_some());
        let key = (kind, namespace(meta).to_owned(), name(meta).to_owned());
        if key.2.is_empty() {
            let finding = Finding::error("metadata.name", "is missing");
            found.push((at.locate("metadata"), finding));
        } else if let Some(before) = self.seen.get(&key).cloned() {
            let called = meta.namespace.iter().chain([&key.2]).map(String::as_str);
            let called = called.collect::<Vec<_>>().join("/");
            let stands_in = format!("{kind} {called} as it was written stands in for the live one");
            match (before, &meta.uid) {
                // One object in two files: what was read first holds.
                (Some(before), Some(uid)) if before == *uid => {
                    return Taken { value: None, found, unknown, stood_in_for: false };
                }
                (None, Some(_)) => {
                    self.notes.push(stands_in);
                    return Taken { value: Some(value), found, unknown, stood_in_for: true };
                }
                (Some(_), None) => {
                    self.notes.push(stands_in);
                    self.forget(&key);
                    self.seen.insert(key, None);
                }
                (before, _) => {
                    let message = format!("{kind} {} was read before", quoted(name(meta)));
                    let hint = if before.is_some() {
                        "its uid is another one: the files are of two clusters, or of two times"
                    } else {
                        "leave one of the two out"
                    };
                    let finding = Finding::error("metadata.name", message).hint(hint);
                    found.push((at.locate("metadata.name"), finding));
                }
            }
        } else {
            self.seen.insert(key, meta.uid.clone());
        }
        let sound = found.iter().all(|(_, it)| it.severity != Severity::Error);
        Taken { value: sound.then_some(value), found, unknown, stood_in_for: false }
    }
}

impl Listing {
    /// What a manifest stands in for.
    fn forget(&mut self, (kind, of, called): &Key) {
        let meant = |it: &ObjectMeta| namespace(it) == of && name(it) == called;
        self.pods.retain(|it| *kind != "Pod" || !meant(&it.value.pod.metadata));
        self.nodes.retain(|it| *kind != "Node" || !meant(&it.value.metadata));
        self.device_classes.retain(|_, class| *kind != device::KIND || class != called);
        let all = std::mem::take(&mut self.workloads).into_iter();
        let (gone, kept): (Vec<_>, Vec<_>) =
            all.partition(|it| it.value.kind == *kind && meant(&it.value.meta));
        self.workloads = kept;
        self.before.extend(gone);
    }
}

struct Taken<T> {
    value: Option<T>,
    found: Vec<(Place, Finding)>,
    unknown: Vec<String>,
    /// A manifest of it was read before.
    stood_in_for: bool,
}

impl<T> Taken<T> {
    fn then(self, keep: impl FnOnce(T)) -> Vec<(Place, Finding)> {
        if let Some(value) = self.value.filter(|_| !self.stood_in_for) {
            keep(value);
        }
        self.found
    }
}

/// Whether a person has written it.
fn written<T>(taken: &Taken<T>, meta: impl FnOnce(&T) -> &ObjectMeta) -> bool {
    taken.value.as_ref().is_some_and(|it| meta(it).uid.is_none())
}

/// Names of the unknown fields that stand right in the spec of a pod, where they may decide where it goes.
fn unknown_in_spec(found: &[(Place, Finding)], kind: &str) -> Vec<String> {
    let spec = if kind == "Pod" { "spec" } else { spec_of_pods(kind) };
    let unknown = found.iter().filter(|(_, it)| it.message == UNKNOWN_FIELD);
    let in_spec = unknown.filter_map(|(_, it)| {
        let inside = it.field.strip_prefix(spec)?.strip_prefix('.')?;
        Some(inside).filter(|it| !it.contains(['.', '[']))
    });
    in_spec.map(str::to_owned).collect()
}

/// The kind that was meant, where there is none of this name in that group and version.
fn misspelt(kind: &str, api_version: &str) -> Option<&'static str> {
    let of_version = KINDS.iter().filter(|(_, version)| *version == api_version);
    let kinds: Vec<&'static str> = of_version.map(|(kind, _)| *kind).collect();
    nearest(kind, &kinds)
}

/// Where a workload has the spec of its pods.
fn spec_of_pods(kind: &str) -> &'static str {
    if kind == CRON_JOB { "spec.jobTemplate.spec.template.spec" } else { "spec.template.spec" }
}

/// What an unknown field means depends on who wrote it; and nothing is said about empty ones, of which
/// kubectl's own output is full.
fn judge(found: Vec<(Place, Finding)>, live: bool) -> Vec<(Place, Finding)> {
    let told = found.into_iter().filter_map(|(place, finding)| {
        let unknown = finding.message == UNKNOWN_FIELD;
        if finding.severity != Severity::Error || (unknown && live) {
            return None;
        }
        let misspelt = finding.hint.as_deref().is_some_and(|it| it.starts_with("did you mean"));
        let finding = if unknown && !misspelt {
            Finding { severity: Severity::Warning, hint: None, ..finding }
        } else {
            finding
        };
        Some((place, finding))
    });
    told.collect()
}

impl Others for Listing {
    fn read(&mut self, kind: &str, api_version: &str, at: Located<()>) -> Vec<(Place, Finding)> {
        if kind == device::KIND && api_version.starts_with(device::GROUP) {
            let taken = self.take(device::KIND, &at, |it: &device::DeviceClass| &it.metadata);
            return taken.then(|it| self.device_classes.extend(it.gives_out()));
        }
        let Some((known, version)) = KINDS.iter().find(|(it, _)| *it == kind) else {
            if let Some(near) = misspelt(kind, api_version) {
                let message = format!("{} is not a kind of {api_version}", quoted(kind));
                let finding =
                    Finding::error("kind", message).hint(format!("did you mean `{near}`?"));
                return vec![(at.locate("kind"), finding)];
            }
            self.pass_over(kind, api_version, &at);
            return Vec::new();
        };
        if *version != api_version {
            let group = |it: &str| it.split_once('/').map(|(group, _)| group.to_owned());
            // Groups of custom kinds have a dot in their names. Those without one are Kubernetes' own.
            let custom = group(api_version).is_some_and(|it| it.contains('.'));
            if custom && group(version) != group(api_version) {
                // Somebody else's kind of the same name.
                self.pass_over(kind, api_version, &at);
                return Vec::new();
            }
            let message =
                format!("{} is not a version of {kind} that is read", quoted(api_version));
            let finding = Finding::error("apiVersion", message).hint(format!("write {version}"));
            return vec![(at.locate("apiVersion"), finding)];
        }
        match *known {
            "Pod" => {
                let mut taken = self.take(known, &at, |it: &Pod| &it.metadata);
                let mut unknown = std::mem::take(&mut taken.unknown);
                unknown.extend(at.written(device::GIVEN).then(|| device::GIVEN.to_owned()));
                self.written += usize::from(written(&taken, |it| &it.metadata));
                taken.then(|pod| {
                    let live = pod.metadata.uid.is_some();
                    let pod = if live { slim::pod(pod) } else { pod };
                    let at = if live { at.without_text() } else { at };
                    self.pods.push(at.map(|()| Listed { pod, unknown }));
                })
            }
            "Node" => {
                let taken = self.take(known, &at, |it: &Node| &it.metadata);
                self.written += usize::from(written(&taken, |it| &it.metadata));
                taken.then(|it| {
                    let live = it.metadata.uid.is_some();
                    let at = if live { at.without_text() } else { at };
                    let node = if live { slim::node(it) } else { it };
                    self.nodes.push(at.map(|()| node));
                })
            }
            "Namespace" => {
                let taken = self.take(known, &at, |it: &Namespace| &it.metadata);
                taken.then(|it| drop(self.namespaces.insert(name(&it.metadata).to_owned(), it)))
            }
            LIMIT_RANGE => {
                let taken = self.take(known, &at, |it: &LimitRange| &it.metadata);
                self.limit_range(taken, &at)
            }
            "PersistentVolume" => {
                let taken = self.take(known, &at, |it: &PersistentVolume| &it.metadata);
                taken.then(|it| {
                    self.volumes.insert(name(&it.metadata).to_owned(), it);
                })
            }
            "PersistentVolumeClaim" => {
                let taken = self.take(known, &at, |it: &PersistentVolumeClaim| &it.metadata);
                taken.then(|it| {
                    let key = (namespace(&it.metadata).to_owned(), name(&it.metadata).to_owned());
                    self.claims.insert(key, it);
                })
            }
            "StorageClass" => {
                let taken = self.take(known, &at, |it: &StorageClass| &it.metadata);
                taken.then(|it| {
                    self.storage_classes.insert(name(&it.metadata).to_owned(), it);
                })
            }
            "CSINode" => {
                let taken = self.take(known, &at, |it: &CSINode| &it.metadata);
                taken.then(|it| drop(self.csi_nodes.insert(name(&it.metadata).to_owned(), it)))
            }
            "CSIDriver" => {
                let taken = self.take(known, &at, |it: &CSIDriver| &it.metadata);
                taken.then(|it| drop(self.csi_drivers.insert(name(&it.metadata).to_owned(), it)))
            }
            "VolumeAttachment" => {
                let taken = self.take(known, &at, |it: &VolumeAttachment| &it.metadata);
                taken.then(|VolumeAttachment { spec, .. }| {
                    let on_node = self.attachments.entry(spec.node_name).or_default();
                    on_node.extend(spec.source.persistent_volume_name);
                })
            }
            "PriorityClass" => {
                let taken = self.take(known, &at, |it: &PriorityClass| &it.metadata);
                taken.then(|it| {
                    self.priority_classes.insert(name(&it.metadata).to_owned(), it);
                })
            }
            "RuntimeClass" => {
                let taken = self.take(known, &at, |it: &RuntimeClass| &it.metadata);
                taken.then(|it| {
                    self.runtime_classes.insert(name(&it.metadata).to_owned(), it);
                })
            }
            "DaemonSet" => {
                let taken = self.take(known, &at, |it: &DaemonSet| &it.metadata);
                self.stands_for_pods(taken, at, workload::daemon_set)
            }
            "Deployment" => {
                let taken = self.take(known, &at, |it: &Deployment| &it.metadata);
                self.stands_for_pods(taken, at, workload::deployment)
            }
            "ReplicaSet" => {
                let taken = self.take(known, &at, |it: &ReplicaSet| &it.metadata);
                self.stands_for_pods(taken, at, workload::replica_set)
            }
            "StatefulSet" => {
                let taken = self.take(known, &at, |it: &StatefulSet| &it.metadata);
                self.stands_for_pods(taken, at, workload::stateful_set)
            }
            "ReplicationController" => {
                let taken = self.take(known, &at, |it: &ReplicationController| &it.metadata);
                self.stands_for_pods(taken, at, workload::replication_controller)
            }
            "Job" => {
                let taken = self.take(known, &at, |it: &Job| &it.metadata);
                self.stands_for_pods(taken, at, workload::job)
            }
            CRON_JOB => {
                let taken = self.take(known, &at, |it: &CronJob| &it.metadata);
                self.stands_for_pods(taken, at, workload::cron_job)
            }
            ROLLOUT => {
                let taken = self.take(known, &at, |it: &workload::Rollout| &it.metadata);
                if taken.value.as_ref().is_some_and(workload::Rollout::refers) {
                    *self.makers.entry("Rollout with a workloadRef".to_owned()).or_default() += 1;
                    return taken.found;
                }
                self.stands_for_pods(taken, at, workload::rollout)
            }
            _ => Vec::new(),
        }
    }
}

impl Listing {
    /// Counts what is not read, by what it may mean for pods.
    fn pass_over(&mut self, kind: &str, api_version: &str, at: &Located<()>) {
        let makes_pods = OF_PODS.iter().any(|it| at.written(it));
        // Its name alone may be that of a kind which is read, or mean something else.
        let doubtful = makes_pods || KINDS.iter().any(|(it, _)| *it == kind);
        let called = if doubtful { format!("{kind} of {api_version}") } else { kind.to_owned() };
        let list = if makes_pods { &mut self.makers } else { &mut self.ignored };
        *list.entry(called).or_default() += 1;
    }

    fn limit_range(&mut self, taken: Taken<LimitRange>, at: &Located<()>) -> Vec<(Place, Finding)> {
        let Taken { value, mut found, stood_in_for, .. } = taken;
        let Some(range) = value.filter(|_| !stood_in_for) else { return found };
        let mut reader = reader::Reader::default();
        let (containers, others) = limit::read(&range, &mut reader);
        found.extend(reader.found.into_iter().map(|it| (at.locate(&it.field), it)));
        let meta = &range.metadata;
        if !others.is_empty() {
            self.notes.push(format!(
                "LimitRange {}/{}: only what it gives to containers, and their min and max, are looked at, not {}",
                namespace(meta),
                name(meta),
                others.join(", ")
            ));
        }
        let of = self.limit_ranges.entry(namespace(meta).to_owned()).or_default();
        of.insert(name(meta).to_owned(), containers);
        found
    }

    fn stands_for_pods<T>(
        &mut self,
        taken: Taken<T>,
        at: Located<()>,
        read: impl FnOnce(T) -> Result<Workload, Finding>,
    ) -> Vec<(Place, Finding)> {
        let Taken { value, mut found, unknown, stood_in_for } = taken;
        match value.map(read) {
            None => {}
            Some(Ok(workload)) => {
                let live = workload.meta.uid.is_some();
                self.written += usize::from(!live);
                let at = if live { at.without_text() } else { at };
                let list = if stood_in_for { &mut self.before } else { &mut self.workloads };
                list.push(at.map(|()| Workload { unknown, ..workload }));
            }
            Some(Err(finding)) => {
                let problem = (at.locate(&finding.field), finding);
                found.push(problem);
            }
        }
        found
    }
}

pub(crate) fn name(meta: &ObjectMeta) -> &str {
    meta.name.as_deref().or(meta.generate_name.as_deref()).unwrap_or_default()
}

/// Where nothing is written, kubectl's own default.
pub(crate) fn namespace(meta: &ObjectMeta) -> &str {
    meta.namespace.as_deref().filter(|it| !it.is_empty()).unwrap_or("default")
}
