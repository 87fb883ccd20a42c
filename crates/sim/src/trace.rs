//! What has happened?
//!
//! Everything that changes the simulated world leaves one fact, in order, and nothing else does: who reads
//! the facts knows the world. Laws are checked on them, the hash of a life is made of them, and the last
//! twenty are printed when a law is broken.

use std::cell::RefCell;
use std::rc::Rc;

use jiff::Timestamp;
use nodemolt_cluster::transport::Resource;
use serde_json::Value;

/// Where facts are written, by everybody into one: a clone writes into the same.
#[derive(Debug, Clone, Default)]
pub struct Trace(Rc<RefCell<Vec<Step>>>);

impl Trace {
    pub fn push(&self, step: Step) {
        self.0.borrow_mut().push(step);
    }

    /// Before a step that is there already: what was asked comes before what came of it.
    pub fn insert(&self, at: usize, step: Step) {
        let mut steps = self.0.borrow_mut();
        let at = at.min(steps.len());
        steps.insert(at, step);
    }

    /// Those that nobody has taken yet.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// All that happened since it was last asked.
    pub fn take(&self) -> Vec<Step> {
        std::mem::take(&mut self.0.borrow_mut())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub at: Timestamp,
    pub by: Actor,
    pub fact: Fact,
}

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// nodemolt, by the number of the replica.
    Operator(u8),
    Person,
    /// The kubelet, and whatever else runs on a node.
    Kubelet,
    Scheduler,
    /// Controllers of workloads, of `PodDisruptionBudgets`, of nodes; garbage collection.
    Controllers,
    Cloud,
    /// Whoever publishes images.
    Publisher,
    /// The simulator itself: faults, and the end of faults.
    Fate,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// An object is stored in the API server, new or changed.
    Stored {
        resource: Resource,
        object: Rc<Value>,
        old: Option<Rc<Value>>,
    },
    /// An object is gone from it.
    Removed {
        resource: Resource,
        last: Rc<Value>,
    },
    /// The eviction API was asked.
    Evicted {
        namespace: String,
        pod: String,
        /// The precondition, if there was one.
        uid: Option<String>,
        grace_seconds: Option<i64>,
        /// 201, 404, 409, 429, 500, 403, 504.
        code: u16,
    },
    /// A pod was deleted, and not through the eviction API.
    PodDeleted {
        namespace: String,
        pod: String,
        uid: Option<String>,
        grace_seconds: Option<i64>,
    },
    /// EC2 was asked for a machine, and answered (whether or not the answer arrives).
    LaunchAsked {
        token: String,
        /// The machine that there is with this token now; `None` for an empty fleet or an error.
        machine: Option<String>,
        /// Whether this call made it.
        made: bool,
        error: Option<String>,
    },
    TerminateAsked {
        machine: String,
    },
    /// A question to EC2 or SSM came back to the replica that asked it, or did not.
    Answered {
        /// In the words of whoever asked: the same question has the same words.
        question: String,
        /// What it is about, for people. It says no more than the question, so no hash is made of it.
        about: String,
        /// In full; else it was refused, throttled or lost, or something was left out that should be in it.
        complete: bool,
    },
    /// A machine, new or changed.
    Machine(Machine),
    /// An image or a parameter was published, moved, deprecated, disabled, unshared or deregistered.
    Published {
        what: String,
    },
    /// An image as EC2 has it now: when it is published, and whenever that changes. The laws about what may
    /// boot read it.
    Image(Image),
    /// A replica has turned: what it decided about whom.
    Turned(Turned),
    /// A replica began or ended; it leads or does not.
    Replica {
        number: u8,
        state: ReplicaState,
    },
    /// A fault was switched on, in words that `nodemolt sim fault` takes.
    Fault {
        what: String,
    },
    /// From here on nothing more goes wrong.
    FaultsEnd,
    /// What this replica does next, at this moment, it wanted to do earlier: it stood still, or its call was slow.
    HeldUp {
        since: Timestamp,
    },
    /// One of us wanted to write what somebody else had written meanwhile, and nothing was written.
    Refused {
        what: String,
        why: String,
    },
    /// A person did something, in the words of the command line.
    Act {
        what: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub id: String,
    pub token: String,
    /// `pending`, `running`, `shutting-down`, `terminated`.
    pub state: &'static str,
    pub image: String,
    pub instance_type: String,
    pub zone: String,
    /// With our cluster, the claim and its UID.
    pub tags: std::collections::BTreeMap<String, String>,
    pub node: Option<String>,
}

/// An image, as far as somebody may refuse it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub id: String,
    pub name: String,
    /// Twelve digits.
    pub owner: Option<String>,
    /// EC2's word for a group of owners: `amazon`.
    pub owner_alias: Option<String>,
    pub created_at: Option<Timestamp>,
    /// Neither disabled nor deregistered nor unshared.
    pub launchable: bool,
    pub deprecated: bool,
}

/// For the laws that look at decisions: names of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turned {
    /// Drifted, expired or asked for.
    pub wished: Vec<String>,
    pub starts: Vec<String>,
    pub under_way: Vec<String>,
    /// Each with what it waits for: why, kind, namespace and name where it has them, and the sentence.
    pub waits: Vec<(String, Vec<WaitsFor>)>,
    /// Of which we do not know whether they match.
    pub unknown: Vec<String>,
    /// Of objects, the lease apart.
    pub writes: u32,
    /// Acts that would change the world; questions do not.
    pub commands: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitsFor {
    /// The word that scripts rely on: `Budget`, `NoPlace`.
    pub reason: &'static str,
    /// Of what people would have to look at.
    pub kind: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    /// The node that goes before it, where that is what it waits for.
    pub behind: Option<String>,
    pub sentence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplicaState {
    Started,
    Leads,
    Follows,
    Crashed,
}
