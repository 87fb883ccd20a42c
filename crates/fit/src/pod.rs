//! What does a pod ask of the node it runs on?
//!
//! `pod = who it is + its demand`
//!
//! Plain values: whoever reads manifests makes them, and what a manifest says that is not here has to
//! go into `unmodelled`. Pods of one controller can share one demand; pods whose demands are equal are
//! packed as one kind whether they share it or not.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    capacity::{Amounts, CPU, MEMORY},
    quantity::Quantity,
    selector::{Labels, NodeTerm, Selector},
    taint::Toleration,
};

/// The label that every namespace has, with its name.
pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
const HUGE_PAGES: &str = "hugepages-";
/// The address that stands for every address of a node.
const EVERY_ADDRESS: &str = "0.0.0.0";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    pub name: Arc<str>,
    pub labels: Labels,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub name: Arc<str>,
    pub namespace: Arc<Namespace>,
    pub demand: Arc<Demand>,
    /// It is being deleted. It still takes room, and topology spread does not count it any more.
    pub terminating: bool,
    /// It belongs to its node and goes away with it: of a `DaemonSet`, or started by the kubelet.
    pub tied: bool,
    /// Whose turn it is: all of a lower number are placed before any of a higher one, whatever their
    /// priority, and so stay where they are when others are added. Of no meaning on a node.
    pub order: u8,
    /// It moves because somebody wants it to, and once if that can be: a new node is opened for it before it
    /// goes to one that is to be replaced itself. Of no meaning on a node.
    pub moves_once: bool,
    /// The pool of the node that it leaves: of those that are equally heavy that one launches for it first. Of no
    /// meaning on a node.
    pub pool: Option<Arc<str>>,
}

/// Everything about a pod that decides where it may run.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Demand {
    pub labels: Labels,
    /// Higher is placed first.
    pub priority: i32,
    /// Of the whole pod, see [`requests`]. One pod is counted by itself and not written here.
    pub requests: Amounts,
    pub node_selector: Labels,
    /// Required node affinity: one of the terms must admit the node. `None`: not written.
    pub node_terms: Option<Vec<NodeTerm>>,
    pub preferred_nodes: Vec<Weighted<NodeTerm>>,
    pub tolerations: Vec<Toleration>,
    pub affinity: Vec<PodTerm>,
    pub anti_affinity: Vec<PodTerm>,
    pub preferred_affinity: Vec<Weighted<PodTerm>>,
    pub preferred_anti_affinity: Vec<Weighted<PodTerm>>,
    pub spread: Vec<Spread>,
    pub host_ports: Vec<HostPort>,
    pub volumes: Vec<Volume>,
    /// Names of scheduling gates. While there is one, the pod waits for whoever set it.
    pub gates: Vec<String>,
    /// What the pod asks that nothing here stands for, in words. Such a pod is never placed.
    pub unmodelled: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weighted<T> {
    pub weight: i32,
    pub term: T,
}

/// Which pods, within what. Near them or away from them is said by where it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTerm {
    pub topology_key: String,
    pub selector: Selector,
    /// By name. Neither these nor a selector: the pod's own namespace.
    pub namespaces: Vec<String>,
    /// `None`: not written.
    pub namespace_selector: Option<Selector>,
    pub match_label_keys: Vec<String>,
    pub mismatch_label_keys: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spread {
    pub topology_key: String,
    pub max_skew: u32,
    pub required: bool, // `DoNotSchedule`; else `ScheduleAnyway`.
    pub selector: Selector,
    pub match_label_keys: Vec<String>,
    pub min_domains: Option<u32>,
    /// Whether nodes that the pod's own selector and affinity exclude are left out. Default: yes.
    pub honour_node_affinity: bool,
    /// Whether nodes whose taints the pod does not tolerate are left out. Default: no.
    pub honour_taints: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Empty: every address.
    pub address: String,
    /// Empty: TCP.
    pub protocol: String,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Volume {
    /// What makes it one volume: two pods on one node that use it attach it once.
    pub handle: String,
    /// The CSI driver that attaches it, if attachments are limited.
    pub driver: Option<String>,
    /// Where it can be reached: for a bound volume its own node affinity, for an unbound one the
    /// topologies of its storage class. One of the terms must admit the node. `None`: everywhere.
    pub reach: Option<Vec<NodeTerm>>,
    /// It is still to be made, for its pod alone: a pod that is alike attaches another one, whatever the handle.
    pub own: bool,
}

/// A container that runs before the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitContainer {
    pub requests: Amounts,
    /// `restartPolicy: Always`: it stays, and is called a sidecar.
    pub sidecar: bool,
}

/// What a pod requests as a whole: its containers and sidecars together, or the init container that
/// needs most at its time, whichever is more; what is written for the pod itself instead of that, and
/// the overhead of its runtime class on top.
pub fn requests(
    containers: &[Amounts],
    init_containers: &[InitContainer],
    pod: &Amounts,
    overhead: &Amounts,
) -> Amounts {
    let mut together = Amounts::new();
    for container in containers {
        add(&mut together, container);
    }
    let (mut sidecars, mut at_start) = (Amounts::new(), Amounts::new());
    for container in init_containers {
        let during = if container.sidecar {
            add(&mut together, &container.requests);
            add(&mut sidecars, &container.requests);
            sidecars.clone()
        } else {
            let mut during = sidecars.clone();
            add(&mut during, &container.requests);
            during
        };
        raise(&mut at_start, &during);
    }
    raise(&mut together, &at_start);
    for (name, amount) in pod {
        if name == CPU || name == MEMORY || name.starts_with(HUGE_PAGES) {
            together.insert(name.clone(), *amount);
        }
    }
    add(&mut together, overhead);
    together
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.entry(name.clone()).or_insert(Quantity::ZERO);
        *sum = sum.saturating_add(*amount);
    }
}

fn raise(total: &mut Amounts, to: &Amounts) {
    for (name, amount) in to {
        let most = total.entry(name.clone()).or_insert(*amount);
        *most = (*most).max(*amount);
    }
}

impl Pod {
    pub fn new(namespace: &Arc<Namespace>, name: &str, demand: &Arc<Demand>) -> Self {
        Self {
            name: name.into(),
            namespace: Arc::clone(namespace),
            demand: Arc::clone(demand),
            terminating: false,
            tied: false,
            order: 0,
            moves_once: false,
            pool: None,
        }
    }

    pub fn id(&self) -> PodId {
        PodId { namespace: Arc::clone(&self.namespace.name), name: Arc::clone(&self.name) }
    }
}

impl Demand {
    /// Whether anybody may look for a place at all.
    pub fn placeable(&self) -> bool {
        self.gates.is_empty() && self.unmodelled.is_empty()
    }
}

impl Namespace {
    /// With the label that the API server gives to every namespace.
    pub fn new(name: &str, labels: Labels) -> Self {
        let mut labels = labels;
        labels.insert(NAMESPACE_NAME.to_owned(), name.to_owned());
        Self { name: name.into(), labels }
    }

    /// A namespace of which nothing else is known.
    pub fn named(name: &str) -> Self {
        Self::new(name, BTreeMap::new())
    }
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            topology_key: String::new(),
            max_skew: 1,
            required: true,
            selector: Selector::Nothing,
            match_label_keys: Vec::new(),
            min_domains: None,
            honour_node_affinity: true,
            honour_taints: false,
        }
    }
}

impl HostPort {
    /// Whether one node cannot have both.
    pub fn conflicts(&self, other: &Self) -> bool {
        let protocol = |it: &Self| match it.protocol.as_str() {
            "" => "TCP".to_owned(),
            written => written.to_owned(),
        };
        let everywhere = |it: &Self| it.address.is_empty() || it.address == EVERY_ADDRESS;
        self.port == other.port
            && self.port != 0
            && protocol(self) == protocol(other)
            && (everywhere(self) || everywhere(other) || self.address == other.address)
    }
}

impl fmt::Display for PodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.address.is_empty() {
            write!(f, "{}:", self.address)?;
        }
        write!(f, "{}", self.port)?;
        if !self.protocol.is_empty() {
            write!(f, "/{}", self.protocol)?;
        }
        Ok(())
    }
}
