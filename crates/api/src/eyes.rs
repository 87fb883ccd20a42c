//! What do watches tell?
//!
//! `JSON objects, one by one → view`
//!
//! Each object is read once, when it comes. One that cannot be read stands under its own name in
//! `unreadable`, with what is wrong: nothing is concluded from it being away.

mod claim;
mod node;
mod ours;
mod pod;
mod read;
mod storage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Namespace as WireNamespace, Node as WireNode, PersistentVolume, PersistentVolumeClaim,
    Pod as WirePod,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use nodemolt_core::drain;
use nodemolt_core::lookup::Minor;
use nodemolt_core::seen::{
    ClassKey, Complaint, Kind, Node, ObjectName, Pod, PodKey, Subject, View,
};
use nodemolt_fit as fit;
use nodemolt_fit::pod::{Demand, Namespace};
use serde_json::Value;

use self::read::{Broken, decode};
use self::storage::{Storage, Surroundings};
use crate::listing::node::volume_limits;

/// After so many new demands those that nobody has any more are dropped.
const DEMANDS_SWEPT_AFTER: usize = 1024;
const TERMINATING: &str = "Terminating";

/// A resource that is watched. Several may tell of one [`Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    OwnClass,
    KarpenterClass,
    Pool,
    Claim,
    Node,
    Pod,
    Namespace,
    DaemonSet,
    Pdb,
    DisruptionBudget,
    Policy,
    Quarantine,
    Image,
    Replacement,
    Ledger,
    Volume,
    VolumeClaim,
    StorageClass,
    CsiNode,
}

/// Namespace, empty for what belongs to the whole cluster, and name.
type Key = (String, String);

/// Keeps a [`View`] current.
#[derive(Debug, Default)]
pub struct Eyes {
    view: View,
    /// Up to when each resource is known to be current.
    fresh: [Option<Timestamp>; Watched::ALL.len()],
    /// What stands in `unreadable`.
    broken: BTreeSet<(Watched, Key)>,
    storage: Storage,
    /// Equal demands are held once: a thousand pods of one controller ask for one thing.
    demands: BTreeSet<Arc<Demand>>,
    demands_added: usize,
    /// Namespaces of pods that were told of before their namespace.
    strangers: BTreeMap<String, Arc<Namespace>>,
    terminating: BTreeSet<String>,
    /// By name: the image that it is about, which may be another.
    images: BTreeMap<String, nodemolt_core::image::ImageId>,
}

/// What a node says that was asked for by itself, without what is known elsewhere.
pub fn read_node_now(object: &Value) -> Result<Node, Vec<Complaint>> {
    node::node(&decode::<WireNode>(object)?)
}

impl Eyes {
    pub fn view(&self) -> &View {
        &self.view
    }

    /// A whole list: what is not in it is not there.
    pub fn listed<'o>(
        &mut self,
        of: Watched,
        objects: impl IntoIterator<Item = &'o Value>,
        now: Timestamp,
    ) {
        let objects: Vec<&Value> = objects.into_iter().collect();
        let there: BTreeSet<Key> = objects.iter().filter_map(|it| key(it)).collect();
        for gone in self.known(of) {
            if !there.contains(&gone) {
                self.remove(of, &gone);
            }
        }
        for object in objects {
            self.applied(of, object);
        }
        self.current(of, now);
    }

    /// Made or changed.
    pub fn applied(&mut self, of: Watched, object: &Value) {
        let Some(key) = key(object) else { return };
        match self.take(of, &key, object) {
            Ok(()) => {
                if self.broken.remove(&(of, key.clone())) {
                    self.view.unreadable.remove(&of.name(&key));
                }
            }
            Err(complaints) => {
                self.remove(of, &key);
                self.view.unreadable.insert(of.name(&key), complaints);
                self.broken.insert((of, key.clone()));
            }
        }
        if let Some(subject) = of.subject(&key) {
            self.view.subjects.insert(subject, read::identity(object));
        }
    }

    /// Gone; as it was last.
    pub fn deleted(&mut self, of: Watched, object: &Value) {
        if let Some(key) = key(object) {
            self.remove(of, &key);
        }
    }

    fn take(&mut self, of: Watched, key: &Key, object: &Value) -> Result<(), Broken> {
        let name = || key.1.clone();
        match of {
            Watched::OwnClass | Watched::KarpenterClass => {
                let mut class = ours::class(&decode(object)?)?;
                class.key = of.class(key);
                self.view.classes.insert(class.key.clone(), class);
            }
            Watched::Pool => {
                let pool = ours::pool(&decode(object)?)?;
                let own = |it: &&Node| {
                    it.fit.pool.as_ref() == Some(&pool.name)
                        && it.fit.startup_taints != pool.fit.startup_taints
                };
                let own = self.view.nodes.values().filter(own).map(|it| it.name.clone());
                for name in own.collect::<Vec<_>>() {
                    if let Some(node) = self.view.nodes.get_mut(&name) {
                        node.fit.startup_taints.clone_from(&pool.fit.startup_taints);
                    }
                }
                self.view.pools.insert(name(), pool);
            }
            Watched::Claim => {
                let claim = claim::claim(&decode(object)?)?;
                self.view.claims.insert(name(), claim);
            }
            Watched::Node => {
                let mut node = node::node(&decode::<WireNode>(object)?)?;
                let pool = node.fit.pool.as_ref().and_then(|it| self.view.pools.get(it));
                if let Some(pool) = pool {
                    node.fit.startup_taints.clone_from(&pool.fit.startup_taints);
                }
                if let Some(limits) = self.storage.limits.get(&node.name) {
                    node.fit.volume_limits.clone_from(limits);
                }
                self.view.nodes.insert(name(), node);
            }
            Watched::Pod => self.pod(object)?,
            Watched::Namespace => self.namespace(&decode(object)?),
            Watched::DaemonSet => {
                let wire: DaemonSet = decode(object)?;
                let unknown = pod::unknown_fields(&object["spec"]["template"]);
                let around = Surroundings { storage: &self.storage, nodes: &self.view.nodes };
                let demand = pod::daemon(&around, &wire, &unknown);
                let demand = self.shared(demand);
                self.view.daemons.insert(key.clone(), demand);
            }
            Watched::Pdb => {
                let pdb = pod::pdb(&decode::<PodDisruptionBudget>(object)?)?;
                self.view.pdbs.insert(key.clone(), Arc::new(pdb));
            }
            Watched::DisruptionBudget => {
                let budget = ours::budget(&decode(object)?);
                self.view.budgets.insert(name(), budget);
            }
            Watched::Policy => {
                let policy = ours::policy(&decode(object)?)?;
                self.view.policies.insert(name(), policy);
            }
            Watched::Quarantine => {
                let quarantine = ours::quarantine(&decode(object)?)?;
                self.view.quarantines.insert(name(), quarantine);
            }
            Watched::Image => {
                let image = ours::image(&decode(object)?)?;
                // One object for each image: nothing is remembered by one of another name. And one that has an
                // image's name and is about another is in the way.
                if image.image.to_string() == key.1 {
                    self.images.insert(name(), image.image.clone());
                    self.view.images.insert(image.image.clone(), image);
                } else if key.1.parse::<nodemolt_core::image::ImageId>().is_ok() {
                    let message = format!("is {}, which is not its name", image.image);
                    return Err(vec![Complaint { field: "spec.image.ref.id".to_owned(), message }]);
                }
            }
            // Read from the API server right before they are acted upon, and never from here.
            Watched::Replacement | Watched::Ledger => {}
            Watched::Volume => {
                let volume: PersistentVolume = decode(object)?;
                let before = self.storage.volumes.insert(name(), volume);
                let same = before.is_some_and(|it| {
                    self.storage.volumes.get(&key.1).is_some_and(|now| {
                        now.spec == it.spec && now.metadata.labels == it.metadata.labels
                    })
                });
                if !same {
                    self.again(&self.storage.of_volume(&key.1));
                }
            }
            Watched::VolumeClaim => {
                let claim: PersistentVolumeClaim = decode(object)?;
                let of = self.storage.claims.entry(key.0.clone()).or_default();
                of.insert(name(), claim);
                self.again(&self.storage.of_claim(&key.0, &key.1));
            }
            Watched::StorageClass => {
                let class: StorageClass = decode(object)?;
                self.storage.classes.insert(name(), class);
                self.again(&self.storage.all());
            }
            Watched::CsiNode => {
                let limits = volume_limits(&decode::<CSINode>(object)?);
                if let Some(node) = self.view.nodes.get_mut(&key.1) {
                    node.fit.volume_limits.clone_from(&limits);
                }
                self.storage.limits.insert(name(), limits);
            }
        }
        Ok(())
    }

    fn remove(&mut self, of: Watched, key: &Key) {
        let (namespace, name) = key;
        if self.broken.remove(&(of, key.clone())) {
            self.view.unreadable.remove(&of.name(key));
        }
        if let Some(subject) = of.subject(key) {
            self.view.subjects.remove(&subject);
        }
        match of {
            Watched::OwnClass | Watched::KarpenterClass => {
                self.view.classes.remove(&of.class(key));
            }
            Watched::Pool => drop(self.view.pools.remove(name)),
            Watched::Claim => drop(self.view.claims.remove(name)),
            Watched::Node => drop(self.view.nodes.remove(name)),
            Watched::Pod => {
                let key = pod_key(namespace, name);
                self.view.pods.remove(&key);
                let again = self.storage.forget(&key);
                self.again(&again);
            }
            Watched::Namespace => {
                self.view.namespaces.remove(name);
                self.terminating.remove(name);
                self.renamed(name);
            }
            Watched::DaemonSet => drop(self.view.daemons.remove(key)),
            Watched::Pdb => drop(self.view.pdbs.remove(key)),
            Watched::DisruptionBudget => drop(self.view.budgets.remove(name)),
            Watched::Policy => drop(self.view.policies.remove(name)),
            Watched::Quarantine => drop(self.view.quarantines.remove(name)),
            Watched::Image => {
                if let Some(image) = self.images.remove(name) {
                    self.view.images.remove(&image);
                }
            }
            Watched::Replacement | Watched::Ledger => {}
            Watched::Volume => {
                self.storage.volumes.remove(name);
                self.again(&self.storage.of_volume(name));
            }
            Watched::VolumeClaim => {
                if let Some(claims) = self.storage.claims.get_mut(namespace) {
                    claims.remove(name);
                }
                self.again(&self.storage.of_claim(namespace, name));
            }
            Watched::StorageClass => {
                self.storage.classes.remove(name);
                self.again(&self.storage.all());
            }
            Watched::CsiNode => {
                self.storage.limits.remove(name);
                if let Some(node) = self.view.nodes.get_mut(name) {
                    node.fit.volume_limits.clear();
                }
            }
        }
    }

    /// What a pod says that was asked for by itself. Nothing is kept of it: watches have their own order.
    pub fn read_pod_now(&self, object: &Value) -> Result<drain::Pod, Vec<Complaint>> {
        let wire: WirePod = decode(object)?;
        let unknown = pod::unknown_fields(object);
        let around = Surroundings { storage: &self.storage, nodes: &self.view.nodes };
        let demand = pod::demand_of(&around, &wire, &unknown);
        let terminating = self.terminating.contains(crate::listing::namespace(&wire.metadata));
        Ok(pod::drain_of(&wire, &demand, terminating))
    }

    /// What is there of a resource, as far as we know.
    fn known(&self, of: Watched) -> Vec<Key> {
        let plain = |name: &String| (String::new(), name.clone());
        let view = &self.view;
        let mut known: Vec<Key> = match of {
            Watched::OwnClass | Watched::KarpenterClass => {
                let all = view.classes.keys().filter(|it| **it == of.class(&plain(&it.name)));
                all.map(|it| plain(&it.name)).collect()
            }
            Watched::Pool => view.pools.keys().map(plain).collect(),
            Watched::Claim => view.claims.keys().map(plain).collect(),
            Watched::Node => view.nodes.keys().map(plain).collect(),
            Watched::Pod => {
                let keys = view.pods.iter().map(Pod::key);
                keys.map(|it| (it.namespace.to_string(), it.name.to_string())).collect()
            }
            Watched::Namespace => view.namespaces.keys().map(plain).collect(),
            Watched::DaemonSet => view.daemons.keys().cloned().collect(),
            Watched::Pdb => view.pdbs.keys().cloned().collect(),
            Watched::DisruptionBudget => view.budgets.keys().map(plain).collect(),
            Watched::Policy => view.policies.keys().map(plain).collect(),
            Watched::Quarantine => view.quarantines.keys().map(plain).collect(),
            Watched::Image => self.images.keys().map(plain).collect(),
            Watched::Replacement | Watched::Ledger => Vec::new(),
            Watched::Volume => self.storage.volumes.keys().map(plain).collect(),
            Watched::VolumeClaim => {
                let all = self.storage.claims.iter();
                all.flat_map(|(namespace, claims)| {
                    claims.keys().map(|it| (namespace.clone(), it.clone()))
                })
                .collect()
            }
            Watched::StorageClass => self.storage.classes.keys().map(plain).collect(),
            Watched::CsiNode => self.storage.limits.keys().map(plain).collect(),
        };
        known.extend(self.broken.iter().filter(|(it, _)| *it == of).map(|(_, key)| key.clone()));
        known
    }

    fn pod(&mut self, object: &Value) -> Result<(), Broken> {
        let wire: WirePod = decode(object)?;
        let Some((namespace, name)) = key(object) else { return Ok(()) };
        if wire.metadata.uid.is_none() {
            let complaint =
                |it: &str| Complaint { field: it.to_owned(), message: "is missing".into() };
            return Err(vec![complaint("metadata.uid")]);
        }
        let unknown = pod::unknown_fields(object);
        let again = self.storage.note(&pod_key(&namespace, &name), &wire, &unknown);
        self.read_pod(&wire, &unknown);
        self.again(&again);
        Ok(())
    }

    fn read_pod(&mut self, wire: &WirePod, unknown: &[String]) {
        let around = Surroundings { storage: &self.storage, nodes: &self.view.nodes };
        let demand = pod::demand_of(&around, wire, unknown);
        let demand = self.shared(demand);
        let of = crate::listing::namespace(&wire.metadata);
        let namespace = self.known_namespace(of);
        let drain = pod::drain_of(wire, &demand, self.terminating.contains(of));
        let bound = wire.spec.as_ref().and_then(|it| it.node_name.clone());
        self.view.pods.insert(Pod {
            drain: Arc::new(drain),
            fit: fit::pod::Pod {
                terminating: wire.metadata.deletion_timestamp.is_some(),
                tied: pod::tied(wire),
                ..fit::pod::Pod::new(&namespace, crate::listing::name(&wire.metadata), &demand)
            },
            node: bound.filter(|it| !it.is_empty()),
            created_at: pod::created_at(wire),
            owner_uid: pod::owner_uid(wire),
        });
    }

    /// Pods whose volumes have changed.
    fn again(&mut self, pods: &BTreeSet<PodKey>) {
        for key in pods {
            if let Some((wire, unknown)) = self.storage.pod(key).cloned() {
                self.read_pod(&wire, &unknown);
            }
        }
    }

    fn known_namespace(&mut self, name: &str) -> Arc<Namespace> {
        if let Some(known) = self.view.namespaces.get(name) {
            return Arc::clone(known);
        }
        let entry = self.strangers.entry(name.to_owned());
        Arc::clone(entry.or_insert_with(|| Arc::new(Namespace::named(name))))
    }

    fn namespace(&mut self, wire: &WireNamespace) {
        let name = crate::listing::name(&wire.metadata);
        let labels = wire.metadata.labels.clone().unwrap_or_default();
        let phase = wire.status.as_ref().and_then(|it| it.phase.as_deref());
        let goes = wire.metadata.deletion_timestamp.is_some() || phase == Some(TERMINATING);
        let new = Namespace::new(name, labels);
        let known = self.view.namespaces.get(name);
        if known.is_some_and(|it| **it == new) && self.terminating.contains(name) == goes {
            return;
        }
        if goes {
            self.terminating.insert(name.to_owned());
        } else {
            self.terminating.remove(name);
        }
        self.strangers.remove(name);
        self.view.namespaces.insert(name.to_owned(), Arc::new(new));
        self.renamed(name);
    }

    /// Its pods refer to it as it is now.
    fn renamed(&mut self, name: &str) {
        let namespace = self.known_namespace(name);
        let terminating = self.terminating.contains(name);
        let theirs: Vec<PodKey> =
            self.view.pods.iter().map(Pod::key).filter(|it| *it.namespace == *name).collect();
        for key in theirs {
            if let Some(pod) = self.view.pods.remove(&key) {
                let mut pod = Arc::unwrap_or_clone(pod);
                pod.fit.namespace = Arc::clone(&namespace);
                let drain =
                    drain::Pod { namespace_terminating: terminating, ..(*pod.drain).clone() };
                pod.drain = Arc::new(drain);
                self.view.pods.insert(pod);
            }
        }
    }

    fn shared(&mut self, demand: Demand) -> Arc<Demand> {
        if let Some(known) = self.demands.get(&demand) {
            return Arc::clone(known);
        }
        self.demands_added += 1;
        if self.demands_added > DEMANDS_SWEPT_AFTER.max(self.demands.len()) {
            self.demands_added = 0;
            self.demands.retain(|it| Arc::strong_count(it) > 1);
        }
        let demand = Arc::new(demand);
        self.demands.insert(Arc::clone(&demand));
        demand
    }

    /// Nothing new up to now.
    pub fn current(&mut self, of: Watched, now: Timestamp) {
        self.fresh[of.place()] = Some(now);
        let kind = of.kind();
        let all = Watched::ALL.iter().zip(&self.fresh).filter(|(it, _)| it.kind() == kind);
        // As fresh as the stalest of those that tell of it; one that told nothing yet is staler than all.
        let stalest = all.map(|(_, fresh)| *fresh).min().flatten();
        if let Some(stalest) = stalest {
            self.view.fresh.insert(kind, stalest);
        }
    }

    /// The API server's word on what time it is.
    pub fn server_time(&mut self, now: Timestamp) {
        self.view.server_time = Some(now);
    }

    pub fn kubernetes(&mut self, version: Minor) {
        self.view.kubernetes = Some(version);
    }
}

fn pod_key(namespace: &str, name: &str) -> PodKey {
    PodKey { namespace: namespace.into(), name: name.into() }
}

/// `None` for what has no name: there is nothing to call it by.
fn key(object: &Value) -> Option<Key> {
    let meta = object.get("metadata")?;
    let name = meta.get("name")?.as_str().filter(|it| !it.is_empty())?;
    let namespace = meta.get("namespace").and_then(Value::as_str).unwrap_or_default();
    Some((namespace.to_owned(), name.to_owned()))
}

impl Watched {
    pub const ALL: [Self; 19] = [
        Self::OwnClass,
        Self::KarpenterClass,
        Self::Pool,
        Self::Claim,
        Self::Node,
        Self::Pod,
        Self::Namespace,
        Self::DaemonSet,
        Self::Pdb,
        Self::DisruptionBudget,
        Self::Policy,
        Self::Quarantine,
        Self::Image,
        Self::Replacement,
        Self::Ledger,
        Self::Volume,
        Self::VolumeClaim,
        Self::StorageClass,
        Self::CsiNode,
    ];

    /// In [`Self::ALL`], which is in the order of the variants.
    fn place(self) -> usize {
        self as usize
    }

    pub fn kind(self) -> Kind {
        match self {
            Self::OwnClass | Self::KarpenterClass => Kind::Class,
            Self::Pool => Kind::Pool,
            Self::Claim => Kind::Claim,
            Self::Node => Kind::Node,
            Self::Pod => Kind::Pod,
            Self::Namespace => Kind::Namespace,
            Self::DaemonSet => Kind::DaemonSet,
            Self::Pdb => Kind::Pdb,
            Self::DisruptionBudget => Kind::DisruptionBudget,
            Self::Policy => Kind::Policy,
            Self::Quarantine => Kind::Quarantine,
            Self::Image => Kind::Image,
            Self::Replacement => Kind::Replacement,
            Self::Ledger => Kind::Ledger,
            Self::Volume | Self::VolumeClaim | Self::StorageClass | Self::CsiNode => Kind::Storage,
        }
    }

    fn class(self, key: &Key) -> ClassKey {
        let group = if self == Self::KarpenterClass {
            "karpenter.k8s.aws"
        } else {
            nodemolt_core::seen::OWN_CLASS_GROUP
        };
        ClassKey { group: group.to_owned(), name: key.1.clone() }
    }

    /// What people read a status on.
    fn subject(self, key: &Key) -> Option<Subject> {
        let name = || key.1.clone();
        match self {
            Self::OwnClass | Self::KarpenterClass => Some(Subject::Class(self.class(key))),
            Self::Pool => Some(Subject::Pool(name())),
            Self::DisruptionBudget => Some(Subject::DisruptionBudget(name())),
            Self::Policy => Some(Subject::Policy(name())),
            Self::Claim
            | Self::Node
            | Self::Pod
            | Self::Namespace
            | Self::DaemonSet
            | Self::Pdb
            | Self::Quarantine
            | Self::Image
            | Self::Replacement
            | Self::Ledger
            | Self::Volume
            | Self::VolumeClaim
            | Self::StorageClass
            | Self::CsiNode => None,
        }
    }

    /// What people call the object. Several resources tell of one kind.
    fn name(self, key: &Key) -> ObjectName {
        let (namespace, name) = key.clone();
        let name = match self {
            Self::OwnClass | Self::KarpenterClass => self.class(key).to_string(),
            Self::StorageClass => format!("StorageClass {name}"),
            Self::CsiNode => format!("CSINode {name}"),
            Self::VolumeClaim => format!("PersistentVolumeClaim {name}"),
            Self::Pool
            | Self::Claim
            | Self::Node
            | Self::Pod
            | Self::Namespace
            | Self::DaemonSet
            | Self::Pdb
            | Self::DisruptionBudget
            | Self::Policy
            | Self::Quarantine
            | Self::Image
            | Self::Replacement
            | Self::Ledger
            | Self::Volume => name,
        };
        ObjectName { kind: self.kind(), namespace, name }
    }
}
