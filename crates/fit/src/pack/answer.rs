//! Where did each pod go, and if nowhere, why?
//!
//! `packing = placed + unplaced`, each pod once; new nodes are among the homes

use std::{fmt, sync::Arc};

use crate::{
    capacity::Amounts,
    pod::{HostPort, PodId},
    pool::Price,
    quantity::Quantity,
    requirement::Written,
    taint::Taint,
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packing {
    /// In the order of placing: each was possible where those before it had been placed.
    pub placed: Vec<Placed>,
    pub new_nodes: Vec<NewNode>,
    /// In the order of their ids.
    pub unplaced: Vec<Unplaced>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub pod: PodId,
    pub home: Home,
    /// Preferences that the home does not meet.
    pub relaxed: Vec<Preference>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// A node that exists, by name.
    Node(String),
    /// By its place in `Packing::new_nodes`.
    New(usize),
}

/// A node to be launched. Whichever of its machines comes, its pods fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNode {
    pub pool: String,
    /// In the order of placing.
    pub pods: Vec<PodId>,
    /// The cheapest first. Those whose price nobody knows come last, by name.
    pub machines: Arc<Vec<Choice>>,
    /// What the claim must carry, by key: the pool's own words, narrowed to what the pods need.
    /// Nodes for which it is the same share it, and the machines.
    pub requirements: Arc<Vec<Written>>,
    /// Of all its pods, without those of `DaemonSet`s.
    pub requests: Amounts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub machine: String,
    /// Of the cheapest offering that will do.
    pub price: Option<Price>,
}

/// Something that a pod would like. `at` is its place in the list of the pod's demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preference {
    /// Nodes without taints of the effect `PreferNoSchedule`.
    UntaintedNode,
    Spread {
        at: usize,
    },
    NodeAffinity {
        at: usize,
    },
    PodAntiAffinity {
        at: usize,
    },
    PodAffinity {
        at: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplaced {
    pub pod: PodId,
    pub why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// By name: it waits for whoever set them.
    Gated(Vec<String>),
    /// It asks for something that we have no picture of.
    Unmodelled(Vec<String>),
    /// `None`: there is neither a node nor a pool.
    NoPlace { nearest: Option<Miss> },
}

/// The place with the fewest obstacles. Were they gone, the pod would fit there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    pub place: Place,
    /// Of the nearest place never empty, save where no node will ever do.
    pub obstacles: Vec<Obstacle>,
}

/// How every place stood to one pod when its turn came; where it has none, in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// Nodes that stay, then pools, as one more node of them. No obstacles: it could go there.
    pub places: Vec<Miss>,
    /// New nodes that were opened before, by their places in `Packing::new_nodes`.
    pub opened: Vec<(usize, Opened)>,
}

/// Whether a new node that was opened for others would have taken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Opened {
    WouldDo,
    /// No machine that it can be has the room.
    Full,
    /// It does not go together with what the node is, or with who is there.
    Unsuited,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A node that exists.
    Node(String),
    /// Another node of this pool.
    Pool(String),
}

/// What would have to change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// The pod does not tolerate it.
    Taint(Taint),
    /// The pod's selector or affinity asks for it.
    Label(Written),
    /// The same, where the pool would allow it and none of its machines can be had with it.
    NotOffered(Written),
    /// A volume of the pod cannot be reached from there.
    VolumeElsewhere {
        handle: String,
        /// What a node has to have so that it can be reached, by the first of its terms.
        asks: Vec<Written>,
    },
    /// No node reaches all of these volumes of the pod at once.
    VolumesApart {
        handles: Vec<String>,
    },
    /// A CSI driver cannot attach so many.
    VolumesFull {
        driver: String,
        over: u64,
    },
    /// So much more is needed.
    Short {
        resource: String,
        by: Quantity,
    },
    /// The whole node has too little, whoever is on it.
    TooSmall {
        resource: String,
        by: Quantity,
    },
    /// All who must be on one node need so much more than any machine of the pool has.
    TooLargeTogether {
        /// How many they are, and what they ask for.
        pods: usize,
        requests: Amounts,
        resource: String,
        by: Quantity,
    },
    /// What the node says cannot be read: why.
    Unread(String),
    /// The pool launches no nodes for pods: why.
    Idle(String),
    HostPortTaken(HostPort),
    /// There is no label by which the pod wants to be near or spread.
    LacksTopology {
        key: String,
    },
    /// Nobody it must be near is there.
    NobodyNear {
        key: String,
        /// Who that would be: what it selects. Only of the nearest place.
        whom: Option<String>,
    },
    /// Somebody it must stay away from is there.
    TooNear {
        key: String,
        /// The first of them. Only of the nearest place, save daemons of new nodes.
        who: Option<PodId>,
    },
    /// Somebody is there who must stay away from it.
    Unwelcome {
        key: String,
        who: Option<PodId>,
    },
    /// There would be more than allowed above the emptiest domain.
    Skewed {
        key: String,
        skew: u32,
        max: u32,
    },
    /// No machine of the pool has these labels and this room at once.
    NoSuchMachine,
    /// There are machines, but none can be had now where the pod may go.
    NoCapacity,
    /// There are machines, but no image boots on those that would do.
    NoImage,
    /// Fewer different machines would remain than the pool demands.
    MinValues {
        key: String,
        have: u32,
        need: u32,
    },
    /// So much more would be allowed to exist.
    PoolLimit {
        resource: String,
        by: Quantity,
    },
}

impl fmt::Display for Preference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UntaintedNode => f.write_str("a node without PreferNoSchedule taints"),
            Self::Spread { at } => write!(f, "topologySpreadConstraints[{at}]"),
            Self::NodeAffinity { at } => write!(f, "preferred nodeAffinity[{at}]"),
            Self::PodAntiAffinity { at } => write!(f, "preferred podAntiAffinity[{at}]"),
            Self::PodAffinity { at } => write!(f, "preferred podAffinity[{at}]"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node {name}"),
            Self::Pool(name) => write!(f, "a new node of pool {name}"),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taint(taint) => write!(f, "taint {taint} is not tolerated"),
            Self::Label(asked) => write!(f, "it asks for {asked}"),
            Self::NotOffered(asked) => write!(f, "no machine can be had with {asked}"),
            Self::VolumeElsewhere { handle, asks: _ } => {
                write!(f, "volume {handle} is elsewhere")
            }
            Self::VolumesApart { handles } => {
                write!(f, "no node reaches volumes {} at once", handles.join(", "))
            }
            Self::TooSmall { resource, by } => {
                write!(f, "the whole node has {by} too little {resource}")
            }
            Self::TooLargeTogether { pods, resource, by, requests: _ } => {
                write!(f, "{by} more {resource} needed for all {pods} that must be on one node")
            }
            Self::Unread(why) => write!(f, "the node cannot be read: {why}"),
            Self::Idle(why) => write!(f, "the pool launches no nodes for pods: {why}"),
            Self::VolumesFull { driver, over } => {
                write!(f, "{driver} can attach {over} volumes too few")
            }
            Self::Short { resource, by } => write!(f, "{by} more {resource} needed"),
            Self::HostPortTaken(port) => write!(f, "host port {port} is taken"),
            Self::LacksTopology { key } => write!(f, "there is no label {key}"),
            Self::NobodyNear { key, whom } => {
                let whom = whom.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
                write!(f, "no pod that it must be near{whom} is in this {key}")
            }
            Self::TooNear { key, who } => {
                let who = who.as_ref().map_or_else(String::new, |it| format!(", {it},"));
                write!(f, "a pod that it must avoid{who} is in this {key}")
            }
            Self::Unwelcome { key, who } => {
                let who = who.as_ref().map_or_else(String::new, |it| format!(", {it},"));
                write!(f, "a pod in this {key}{who} must avoid it")
            }
            Self::Skewed { key, skew, max } => {
                write!(f, "the skew over {key} would be {skew}, at most {max} is allowed")
            }
            Self::NoSuchMachine => f.write_str("no machine has these labels and this room at once"),
            Self::NoCapacity => f.write_str("no machine that would do can be had now"),
            Self::NoImage => f.write_str("no image boots on the machines that would do"),
            Self::MinValues { key, have, need } => {
                write!(f, "{have} different values of {key} would remain, {need} are demanded")
            }
            Self::PoolLimit { resource, by } => {
                write!(f, "the pool's limit of {resource} would have to be {by} higher")
            }
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gated(gates) => write!(f, "waits for scheduling gates: {}", gates.join(", ")),
            Self::Unmodelled(what) => {
                write!(f, "asks for what is not modelled: {}", what.join(", "))
            }
            Self::NoPlace { nearest: None } => f.write_str("there is neither a node nor a pool"),
            Self::NoPlace { nearest: Some(Miss { place, obstacles }) } => {
                let all: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
                write!(f, "nearest is {place}: {}", all.join("; "))
            }
        }
    }
}
