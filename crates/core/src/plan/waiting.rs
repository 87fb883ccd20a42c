//! What does a node wait for?
//!
//! Each has the name of what holds it, so that a person can go there.

use std::fmt;

use jiff::Timestamp;

use crate::budget::{BudgetId, Shortage, Unit, UsedBy};
use crate::drain::{PodId, Protection, Refused};

/// All that a node waits for: never nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub first: WaitFor,
    pub more: Vec<WaitFor>,
}

impl Waiting {
    pub(super) fn of(reasons: Vec<WaitFor>) -> Option<Self> {
        let mut reasons = reasons.into_iter();
        reasons.next().map(|first| Self { first, more: reasons.collect() })
    }

    pub fn all(&self) -> impl Iterator<Item = &WaitFor> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitFor {
    // A person lifts these.
    Unlock {
        because: String,
    },
    Resume {
        because: String,
    },
    /// Another controller moves the nodes of this pool.
    OtherHand {
        by: String,
    },
    Image {
        because: String,
    },
    ProtectedNode {
        protection: Protection,
    },
    ProtectedPod {
        pod: PodId,
        protection: Protection,
    },
    BarePod {
        pod: PodId,
    },
    Pdb {
        pod: PodId,
        refused: Refused,
    },
    /// A pod that we moved has no place.
    HomelessPod {
        pod: PodId,
        since: Timestamp,
    },
    // Time lifts these.
    NextTry {
        at: Timestamp,
        because: String,
    },
    Capacity {
        until: Option<Timestamp>,
        because: String,
    },
    Lifetime {
        until: Timestamp,
    },
    Window {
        policy: String,
        opens_at: Option<Timestamp>,
        because: Option<String>,
    },
    // Our own progress lifts these.
    Reach {
        because: String,
    },
    SharedBudget {
        pdb: String,
        pod: PodId,
        node: String,
    },
    SharedWorkload {
        workload: String,
        node: String,
    },
    Budget(Box<Shortage>),
    // Room lifts these.
    Limit {
        pod: PodId,
        pool: String,
        resource: String,
    },
    Place {
        pod: PodId,
        because: String,
    },
    /// Nobody has looked yet where its pods would go.
    Consideration,
}

impl WaitFor {
    /// A word that scripts can rely on.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unlock { .. } => "Locked",
            Self::Resume { .. } => "Paused",
            Self::OtherHand { .. } => "OtherHand",
            Self::Image { .. } => "NoImage",
            Self::ProtectedNode { .. } => "ProtectedNode",
            Self::ProtectedPod { .. } => "ProtectedPod",
            Self::BarePod { .. } => "BarePod",
            Self::Pdb { .. } => "PodDisruptionBudget",
            Self::HomelessPod { .. } => "HomelessPod",
            Self::NextTry { .. } => "NextTry",
            Self::Capacity { .. } => "NoCapacity",
            Self::Lifetime { .. } => "MinimumLifetime",
            Self::Window { .. } => "Window",
            Self::Reach { .. } => "Reach",
            Self::SharedBudget { .. } => "SharedBudget",
            Self::SharedWorkload { .. } => "SharedWorkload",
            Self::Budget(_) => "Budget",
            Self::Limit { .. } => "Limit",
            Self::Place { .. } => "NoPlace",
            Self::Consideration => "Consideration",
        }
    }

    /// When time alone changes it, where that is known.
    pub fn ends_at(&self) -> Option<Timestamp> {
        match self {
            Self::ProtectedNode { protection } | Self::ProtectedPod { protection, .. } => {
                protection.until
            }
            Self::NextTry { at, .. } => Some(*at),
            Self::Capacity { until, .. } => *until,
            Self::Lifetime { until } => Some(*until),
            Self::Window { opens_at, .. } => *opens_at,
            Self::Budget(shortage) => shortage.opens_at,
            Self::Unlock { .. }
            | Self::Resume { .. }
            | Self::OtherHand { .. }
            | Self::Image { .. }
            | Self::BarePod { .. }
            | Self::Pdb { .. }
            | Self::HomelessPod { .. }
            | Self::Reach { .. }
            | Self::SharedBudget { .. }
            | Self::SharedWorkload { .. }
            | Self::Limit { .. }
            | Self::Place { .. }
            | Self::Consideration => None,
        }
    }

    /// It will have its turn when others are done.
    pub fn lifted_by_progress(&self) -> bool {
        match self {
            Self::SharedBudget { .. } | Self::SharedWorkload { .. } | Self::Consideration => true,
            Self::Budget(shortage) => shortage.allowed > 0,
            Self::Unlock { .. }
            | Self::Resume { .. }
            | Self::OtherHand { .. }
            | Self::Image { .. }
            | Self::ProtectedNode { .. }
            | Self::ProtectedPod { .. }
            | Self::BarePod { .. }
            | Self::Pdb { .. }
            | Self::HomelessPod { .. }
            | Self::NextTry { .. }
            | Self::Capacity { .. }
            | Self::Lifetime { .. }
            | Self::Window { .. }
            | Self::Reach { .. }
            | Self::Limit { .. }
            | Self::Place { .. } => false,
        }
    }
}

impl fmt::Display for WaitFor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlock { because } => write!(out, "`nodemolt unlock`: {because}"),
            Self::Resume { because } => write!(out, "`nodemolt resume`: paused, {because}"),
            Self::OtherHand { by } => write!(out, "{by}, which moves the nodes of this pool"),
            Self::Image { because } => write!(out, "an image for its successor: {because}"),
            Self::ProtectedNode { protection } => {
                write!(out, "a person: the node says `{}`", protection.annotation)
            }
            Self::ProtectedPod { pod, protection } => {
                write!(out, "a person: pod {pod} says `{}`", protection.annotation)
            }
            Self::BarePod { pod } => {
                write!(out, "a person: pod {pod} has no controller and would be lost")
            }
            Self::Pdb { pod, refused } => {
                write!(out, "pod {pod}: {refused}")?;
                match refused.pdb() {
                    Some(_) => write!(out, " (namespace {})", pod.namespace),
                    None => Ok(()),
                }
            }
            Self::HomelessPod { pod, since } => {
                write!(out, "pod {pod}, which was moved and is pending since {since}")
            }
            Self::NextTry { at, because } => write!(out, "its next try at {at}: {because}"),
            Self::Capacity { until, because } => match until {
                Some(until) => write!(out, "capacity, tried again at {until}: {because}"),
                None => write!(out, "capacity: {because}"),
            },
            Self::Lifetime { until } => write!(out, "its minimum lifetime, until {until}"),
            Self::Window { policy, opens_at, because } => {
                write!(out, "the windows of ImagePolicy `{policy}`, ")?;
                match opens_at {
                    Some(at) => write!(out, "open at {at}")?,
                    None => write!(out, "which do not open again")?,
                }
                because.as_ref().map_or(Ok(()), |it| write!(out, " ({it})"))
            }
            Self::Reach { because } => write!(out, "the rollout: {because}"),
            Self::SharedBudget { pdb, pod, node } => write!(
                out,
                "node {node}: PodDisruptionBudget `{pdb}` of pod {pod} is spoken for there"
            ),
            Self::SharedWorkload { workload, node } => {
                write!(out, "node {node}: the other pods of {workload} are moved from there")
            }
            Self::Budget(shortage) => budget(shortage, out),
            Self::Limit { pod, pool, resource } => {
                write!(out, "room in the limits of NodePool `{pool}` ({resource}) for pod {pod}")
            }
            Self::Place { pod, because } => write!(out, "a place for pod {pod}: {because}"),
            Self::Consideration => write!(out, "a look at where its pods would go"),
        }
    }
}

fn budget(shortage: &Shortage, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Shortage { id, unit, allowed, used, used_by, opens_at, resting, unreadable } = shortage;
    if let Some(unreadable) = unreadable {
        return write!(out, "{id}, which cannot be read and counts as zero: {}", unreadable.0);
    }
    if *resting {
        write!(out, "the cooldown of {id}")?;
    } else if *id == BudgetId::Serial {
        write!(out, "{id}: {used} of {allowed} in use")?;
    } else {
        match unit {
            Unit::Nodes => write!(out, "{id}: {used} of {allowed} nodes in use")?,
            Unit::Cpu => write!(out, "{id}: {used}m of {allowed}m processors in use")?,
        }
    }
    if let Some(at) = opens_at {
        write!(out, ", until {at}")?;
    }
    for (place, (node, by)) in used_by.iter().enumerate() {
        write!(out, "{}", if place == 0 { " by " } else { ", " })?;
        match by {
            UsedBy::Grant { since } => write!(out, "{node} (since {since})")?,
            UsedBy::Unavailable(why) => write!(out, "{node} ({})", why.as_str())?,
        }
    }
    Ok(())
}
