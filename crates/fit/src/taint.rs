//! Who may stay away from a node, and who must?
//!
//! `taints × tolerations → the first taint that is not tolerated`

use std::fmt;

/// The taint that a cordoned node carries, whether or not somebody has written it there yet.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Taints that every node has for a while after it was started and that go away by themselves.
const PASSING: [&str; 4] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "karpenter.sh/unregistered",
];
const PASSING_PREFIX: &str = "readiness.k8s.io/";

/// Of nodes that run out of something: of what.
const RUNNING_OUT: [(&str, &str); 3] = [
    ("node.kubernetes.io/memory-pressure", "memory"),
    ("node.kubernetes.io/disk-pressure", "disk"),
    ("node.kubernetes.io/pid-pressure", "process ids"),
];
const UNCONNECTED: &str = "node.kubernetes.io/network-unavailable";
/// Of nodes whose machine is off, or was given up by a person.
const DOWN: [&str; 2] =
    ["node.kubernetes.io/out-of-service", "node.cloudprovider.kubernetes.io/shutdown"];
/// All other conditions of nodes.
const OF_KUBERNETES: &str = "node.kubernetes.io/";
/// Ends of taints that a node has until it is set up.
const YOUNG: [&str; 4] = ["/uninitialized", "/agent-not-ready", "/unregistered", "/not-ready"];
/// Of nodes that somebody is about to remove, in whatever words.
const GOING: [&str; 3] =
    ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"];
const GOING_PREFIX: &str = "aws-node-termination-handler/";

/// Why a node keeps everybody away just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Away {
    Cordoned,
    /// It does not answer, or says itself that it is not well.
    Unwell,
    RunningOut {
        of: &'static str,
    },
    /// Its network is not set up.
    Unconnected,
    /// Its machine is off, or given up.
    Down,
    /// It is not set up yet.
    Young,
    /// Somebody is about to remove it.
    Going,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: Effect,
}

/// What a pod puts up with. Without a key, `Exists` tolerates everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    pub key: Option<String>,
    pub value: Tolerated,
    /// `None`: every effect.
    pub effect: Option<Effect>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tolerated {
    Any,
    Equal(String),
}

impl Effect {
    /// Whether the taint keeps pods away, rather than asking them to.
    pub fn binding(self) -> bool {
        match self {
            Self::NoSchedule | Self::NoExecute => true,
            Self::PreferNoSchedule => false,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

impl Taint {
    pub fn new(key: &str, value: &str, effect: Effect) -> Self {
        Self { key: key.to_owned(), value: value.to_owned(), effect }
    }

    /// Whether a node that has just been started has it for a while.
    pub fn passing(&self) -> bool {
        PASSING.contains(&self.key.as_str()) || self.key.starts_with(PASSING_PREFIX)
    }

    /// Whether it says how the node is, and is not for a pod to tolerate: somebody else takes it away.
    pub fn away(&self) -> Option<Away> {
        let key = self.key.as_str();
        let short = RUNNING_OUT.iter().find(|(it, _)| *it == key);
        if key == UNSCHEDULABLE {
            Some(Away::Cordoned)
        } else if let Some((_, of)) = short {
            Some(Away::RunningOut { of })
        } else if key == UNCONNECTED {
            Some(Away::Unconnected)
        } else if DOWN.contains(&key) {
            Some(Away::Down)
        } else if key.starts_with(OF_KUBERNETES) {
            Some(Away::Unwell)
        } else if GOING.contains(&key) || key.starts_with(GOING_PREFIX) {
            Some(Away::Going)
        } else if YOUNG.iter().any(|it| key.ends_with(it)) || key.starts_with(PASSING_PREFIX) {
            Some(Away::Young)
        } else {
            None
        }
    }

    pub fn tolerated_by(&self, tolerations: &[Toleration]) -> bool {
        tolerations.iter().any(|it| it.tolerates(self))
    }
}

impl Toleration {
    pub fn tolerates(&self, taint: &Taint) -> bool {
        // An empty key is no key, as in Kubernetes.
        let key = self.key.as_deref().filter(|it| !it.is_empty());
        self.effect.is_none_or(|it| it == taint.effect)
            && key.is_none_or(|it| it == taint.key)
            && match &self.value {
                Tolerated::Any => true,
                Tolerated::Equal(value) => *value == taint.value,
            }
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{}", self.effect.name())
    }
}
