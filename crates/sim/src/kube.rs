//! What happens in a cluster by itself?
//!
//! `event × now × dice → writes to the API server, and later events`
//!
//! Controllers of workloads and budgets, the scheduler, kubelets, and whoever looks after silent nodes. Each
//! looks at what changed since it last looked, some time after it changed. Whoever drives this keeps the
//! events that it is given and hands each back at its time; after every request of somebody else it calls
//! [`Kube::heard`].

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::api_server::{ApiServer, Key};
use crate::dice::Dice;

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
    /// An agent takes the startup taints away.
    SetUp,
    /// Its kubelet says nothing any more, and what runs there runs on.
    FallsSilent,
    /// Its kubelet speaks again.
    Speaks,
    /// Nobody has heard from it for so long that it counts as unknown.
    CountsAsLost,
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
    /// What becomes of a machine that runs already.
    Machine { id: String, fate: Fate },
    /// So many times what they take otherwise: controllers, scheduler, kubelets.
    Slowness { times: u32 },
    /// Pods of this workload take this long to stop, whatever they are asked.
    StopsSlowly { namespace: String, prefix: String, takes: SignedDuration },
    /// All of it is over: silent kubelets speak, machines do well, nothing is slow.
    Over,
}

/// Everything that runs in the cluster but nodemolt.
#[derive(Debug)]
pub struct Kube {
    pub server: ApiServer,
}

impl Kube {
    pub fn new(server: ApiServer) -> Self {
        Self { server }
    }

    /// What is due happens.
    pub fn on(&mut self, _event: &KubeEvent, _now: Timestamp, _dice: &mut Dice) -> Due {
        Vec::new()
    }

    /// What others have written sets things going. To be called after each request of theirs.
    pub fn heard(&mut self, _now: Timestamp, _dice: &mut Dice) -> Due {
        Vec::new()
    }

    /// A machine runs: its kubelet will join, if nothing goes wrong.
    pub fn machine_runs(&mut self, _machine: NewMachine, _now: Timestamp, _dice: &mut Dice) -> Due {
        Vec::new()
    }

    /// A machine is gone, and with it everything that ran there. Its Node object stays until somebody
    /// notices.
    pub fn machine_gone(&mut self, _id: &str, _now: Timestamp, _dice: &mut Dice) -> Due {
        Vec::new()
    }

    pub fn fault(&mut self, _fault: &KubeFault, _now: Timestamp, _dice: &mut Dice) -> Due {
        Vec::new()
    }
}
