//! What can go wrong?
//!
//! `words ↔ fault`
//!
//! Each fault has the words that `nodemolt sim fault` takes, and random lives draw the same ones: what a
//! life did wrong can be typed. A fault without a length lasts until `end`.

mod read;

use std::fmt;

use jiff::SignedDuration;
use nodemolt_core::seen::Kind;

use crate::length;

pub use read::ParseFaultError;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process is gone with all that it remembers; another starts in its place after `down`.
    Crash {
        whom: Whom,
        when: Moment,
        down: SignedDuration,
    },
    /// The process stands still and does not know it. A leader's lease runs out meanwhile, so there are
    /// two who believe that they lead when it goes on. Before a write is sent, it has looked for the last
    /// time whether it may, and the write goes out when somebody else has led for long.
    Freeze {
        whom: Whom,
        when: Moment,
        lasts: SignedDuration,
    },
    /// Its clock is wrong by this much; negative is behind.
    Skew {
        whom: Whom,
        seconds: i64,
    },
    /// Of a hundred requests this many never arrive.
    LoseRequests {
        percent: u8,
        lasts: Lasts,
    },
    /// Of a hundred answers this many never arrive, although it was done.
    LoseAnswers {
        percent: u8,
        lasts: Lasts,
    },
    /// Of a hundred requests this many arrive, and are done, so much after they were sent, whether or not
    /// anybody still waits.
    LateRequests {
        percent: u8,
        by: SignedDuration,
        lasts: Lasts,
    },
    LateAnswers {
        percent: u8,
        by: SignedDuration,
        lasts: Lasts,
    },
    Throttle {
        whom: Counterpart,
        lasts: Lasts,
    },
    /// Lists are as they were so long ago: machines and images of EC2, parameters of SSM.
    Stale {
        whom: Counterpart,
        by: SignedDuration,
        lasts: Lasts,
    },
    /// Before this many of a hundred writes somebody else has just written the same object.
    Conflicts {
        percent: u8,
        lasts: Lasts,
    },
    /// Of a hundred evictions of pods with a budget this many are given up: the API server could not write to
    /// the budget for conflicts. The pod stays.
    EvictionsGiveUp {
        percent: u8,
        lasts: Lasts,
    },
    /// Of a hundred machines that are asked for this many come twice, with the same token and tags.
    Twins {
        percent: u8,
        lasts: Lasts,
    },
    /// EC2 has none of this type, in this zone; of any type or in any zone where none is named.
    NoCapacity {
        instance_type: Option<String>,
        zone: Option<String>,
        lasts: Lasts,
    },
    /// Machines that are launched meanwhile never become nodes.
    NeverJoins {
        lasts: Lasts,
    },
    /// Machines that are launched meanwhile become nodes that are never ready.
    NeverReady {
        lasts: Lasts,
    },
    NodeDies {
        node: String,
    },
    NodeFlaps {
        node: String,
        lasts: Lasts,
    },
    /// This `PodDisruptionBudget` allows nothing meanwhile.
    PdbNever {
        namespace: String,
        name: String,
        lasts: Lasts,
    },
    WatchLag {
        kind: Option<Kind>,
        by: SignedDuration,
        lasts: Lasts,
    },
    /// The next list of EC2 that has this image, subnet or security group in it lacks it, as if it were not there.
    ListsLack {
        id: String,
    },
    /// What is not told yet is never told; the watch begins anew with a list.
    WatchDrop {
        kind: Option<Kind>,
    },
    /// Nothing more goes wrong.
    End,
}

/// `None`: until `end`.
pub type Lasts = Option<SignedDuration>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    Replica(u8),
    /// Whoever leads when it happens.
    Leader,
}

/// Where in its life it happens to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    Now,
    /// At its next write of this kind, or of any.
    At(Side, Option<Writing>),
}

/// Of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It was about to be sent.
    BeforeSend,
    /// It was sent and done, and not answered yet.
    AfterSend,
    /// Its answer was received, and not used yet.
    AfterAnswer,
}

/// What a process writes. The lease is none of it: it is renewed every few seconds, and would draw every
/// blow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writing {
    Ledger,
    /// A `Replacement`.
    Record,
    Claim,
    Template,
    Launch,
    /// Our taint on a node, or taking it off.
    Cordon,
    Evict,
    Terminate,
    /// Anything else about a node: its registration, its end.
    Node,
    /// What is remembered of images.
    Image,
    Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counterpart {
    Ec2,
    Ssm,
    Kubernetes,
}

/// How long a process is down if nobody says: about what a pod needs to start again.
pub const DOWN: SignedDuration = SignedDuration::from_secs(10);

impl Fault {
    /// One line per fault, for help and for errors.
    pub const WORDS: [&str; 22] = [
        "crash WHOM [before-send|after-send|after-answer [WRITE]] [for LENGTH]",
        "freeze WHOM [before-send|after-send|after-answer [WRITE]] for LENGTH",
        "skew WHOM [+|-]SECONDS",
        "lose-requests PERCENT% [for LENGTH]",
        "lose-answers PERCENT% [for LENGTH]",
        "late-requests PERCENT% by LENGTH [for LENGTH]",
        "late-answers PERCENT% by LENGTH [for LENGTH]",
        "throttle ec2|ssm|kubernetes [for LENGTH]",
        "stale ec2|ssm LENGTH [for LENGTH]",
        "conflicts PERCENT% [for LENGTH]",
        "evictions-give-up PERCENT% [for LENGTH]",
        "twins PERCENT% [for LENGTH]",
        "no-capacity [TYPE] [in ZONE] [for LENGTH]",
        "never-joins [for LENGTH]",
        "never-ready [for LENGTH]",
        "node-dies NODE",
        "node-flaps NODE [for LENGTH]",
        "pdb-never NAMESPACE/NAME [for LENGTH]",
        "watch-lag LENGTH [KIND] [for LENGTH]",
        "watch-drop [KIND]",
        "lists-lack ID",
        "end",
    ];

    /// How long it lasts. `None` for what has happened at once, and what lasts until `end`.
    pub fn lasts(&self) -> Lasts {
        match self {
            Self::Freeze { lasts, .. } => Some(*lasts),
            Self::LoseRequests { lasts, .. }
            | Self::LoseAnswers { lasts, .. }
            | Self::LateRequests { lasts, .. }
            | Self::LateAnswers { lasts, .. }
            | Self::Throttle { lasts, .. }
            | Self::Stale { lasts, .. }
            | Self::Conflicts { lasts, .. }
            | Self::EvictionsGiveUp { lasts, .. }
            | Self::Twins { lasts, .. }
            | Self::NoCapacity { lasts, .. }
            | Self::NeverJoins { lasts }
            | Self::NeverReady { lasts }
            | Self::NodeFlaps { lasts, .. }
            | Self::PdbNever { lasts, .. }
            | Self::WatchLag { lasts, .. } => *lasts,
            Self::Crash { .. }
            | Self::Skew { .. }
            | Self::NodeDies { .. }
            | Self::WatchDrop { .. }
            | Self::ListsLack { .. }
            | Self::End => None,
        }
    }
}

impl Counterpart {
    pub const ALL: [Self; 3] = [Self::Ec2, Self::Ssm, Self::Kubernetes];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Ssm => "ssm",
            Self::Kubernetes => "kubernetes",
        }
    }
}

impl Side {
    pub const ALL: [Self; 3] = [Self::BeforeSend, Self::AfterSend, Self::AfterAnswer];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeSend => "before-send",
            Self::AfterSend => "after-send",
            Self::AfterAnswer => "after-answer",
        }
    }
}

impl Writing {
    pub const ALL: [Self; 11] = [
        Self::Ledger,
        Self::Record,
        Self::Claim,
        Self::Template,
        Self::Launch,
        Self::Cordon,
        Self::Evict,
        Self::Terminate,
        Self::Node,
        Self::Image,
        Self::Status,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Record => "record",
            Self::Claim => "claim",
            Self::Template => "template",
            Self::Launch => "launch",
            Self::Cordon => "cordon",
            Self::Evict => "evict",
            Self::Terminate => "terminate",
            Self::Node => "node",
            Self::Image => "image",
            Self::Status => "status",
        }
    }
}

/// With the blank before it.
impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => Ok(()),
            Self::At(side, None) => write!(out, " {}", side.as_str()),
            Self::At(side, Some(what)) => write!(out, " {} {}", side.as_str(), what.as_str()),
        }
    }
}

impl fmt::Display for Whom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replica(number) => write!(out, "operator-{number}"),
            Self::Leader => write!(out, "leader"),
        }
    }
}

/// In the words that are read.
impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash { whom, when, .. } => write!(out, "crash {whom}{when}")?,
            Self::Freeze { whom, when, .. } => write!(out, "freeze {whom}{when}")?,
            Self::Skew { whom, seconds } => write!(out, "skew {whom} {seconds:+}")?,
            Self::LoseRequests { percent, .. } => write!(out, "lose-requests {percent}%")?,
            Self::LoseAnswers { percent, .. } => write!(out, "lose-answers {percent}%")?,
            Self::LateRequests { percent, by, .. } => {
                write!(out, "late-requests {percent}% by {}", length::write(*by))?;
            }
            Self::LateAnswers { percent, by, .. } => {
                write!(out, "late-answers {percent}% by {}", length::write(*by))?;
            }
            Self::Throttle { whom, .. } => write!(out, "throttle {}", whom.as_str())?,
            Self::Stale { whom, by, .. } => {
                write!(out, "stale {} {}", whom.as_str(), length::write(*by))?;
            }
            Self::Conflicts { percent, .. } => write!(out, "conflicts {percent}%")?,
            Self::EvictionsGiveUp { percent, .. } => write!(out, "evictions-give-up {percent}%")?,
            Self::Twins { percent, .. } => write!(out, "twins {percent}%")?,
            Self::NoCapacity { instance_type, zone, .. } => {
                write!(out, "no-capacity")?;
                if let Some(it) = instance_type {
                    write!(out, " {it}")?;
                }
                if let Some(it) = zone {
                    write!(out, " in {it}")?;
                }
            }
            Self::NeverJoins { .. } => write!(out, "never-joins")?,
            Self::NeverReady { .. } => write!(out, "never-ready")?,
            Self::NodeDies { node } => write!(out, "node-dies {node}")?,
            Self::NodeFlaps { node, .. } => write!(out, "node-flaps {node}")?,
            Self::PdbNever { namespace, name, .. } => write!(out, "pdb-never {namespace}/{name}")?,
            Self::WatchLag { kind, by, .. } => {
                write!(out, "watch-lag {}", length::write(*by))?;
                if let Some(kind) = kind {
                    write!(out, " {}", kind.as_str())?;
                }
            }
            Self::WatchDrop { kind } => {
                write!(out, "watch-drop")?;
                if let Some(kind) = kind {
                    write!(out, " {}", kind.as_str())?;
                }
            }
            Self::ListsLack { id } => write!(out, "lists-lack {id}")?,
            Self::End => write!(out, "end")?,
        }
        let lasts = if let Self::Crash { down, .. } = self { Some(*down) } else { self.lasts() };
        match lasts {
            Some(lasts) => write!(out, " for {}", length::write(lasts)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_reads_back_as_it_is_written() {
        for text in [
            "crash operator-1 for 10s",
            "crash leader after-send for 1m",
            "crash leader before-send launch for 10s",
            "freeze leader for 1m",
            "freeze leader before-send ledger for 1m",
            "freeze operator-1 after-answer for 1m",
            "skew operator-0 -600",
            "skew operator-0 +5",
            "lose-requests 10%",
            "lose-answers 5% for 10m",
            "late-answers 100% by 30s for 1h",
            "late-requests 5% by 30s",
            "stale ec2 2m",
            "stale ssm 30s for 10m",
            "throttle ssm for 20m",
            "conflicts 20%",
            "evictions-give-up 20% for 1h",
            "twins 100%",
            "no-capacity",
            "no-capacity m7g.large for 2h",
            "no-capacity in eu-central-1a",
            "no-capacity m7g.large in eu-central-1a for 2h",
            "never-joins",
            "never-ready for 1h",
            "node-dies web-1",
            "node-flaps web-1 for 10m",
            "pdb-never shop/cart for 1h",
            "watch-lag 30s",
            "watch-lag 30s Pod for 10m",
            "watch-drop NodeClaim",
            "watch-drop",
            "lists-lack subnet-00000000000001111",
            "end",
        ] {
            let fault: Fault = text.parse().unwrap_or_else(|it| panic!("{text}: {it}"));
            assert_eq!(fault.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_fault_says_what_to_write() {
        for text in [
            "",
            "explode",
            "crash",
            "crash bob",
            "freeze leader",
            "lose-answers 10",
            "lose-answers 101%",
            "throttle s3",
            "stale kubernetes 1m",
            "stale ec2",
            "crash leader after-send lease",
            "late-requests 5%",
            "no-capacity in",
            "watch-lag 3 Pod",
            "watch-drop Secret",
            "pdb-never cart",
            "lists-lack",
            "end now",
        ] {
            let told = text.parse::<Fault>().unwrap_err().to_string();
            assert!(told.contains("write"), "{text}: {told}");
        }
    }
}
