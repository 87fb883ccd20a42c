//! How many at once, and when?
//!
//! `nodes × limits × grants × now → rooms`, and a room answers: how many, who uses it, when it opens
//!
//! Replacing is serial over the cluster unless somebody wrote otherwise. Nodes that `NodeDisruptionBudgets`
//! select use those instead, all that select them; a class whose `ImagePolicy` says `concurrency` has that
//! many of its own; where both are written both hold. A `NodePool`'s budgets only ever tighten. What cannot
//! be read counts as zero, and says so.

mod amount;
mod ledger;
mod room;
mod schedule;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

pub use amount::{Amount, ParseAmountError, Percent};
pub use ledger::{Granted, Ledger, Lock, Pause};
pub use room::{Condition, Counted, Measured, Room, Shortage, Use, UsedBy, measure};
pub use schedule::{Activity, Cron, Dates, ParseCronError, Schedule};
pub use window::{Days, Hours, Opening, ParseZoneError, When, Window, Windows, zone};

use crate::drain::{AtLimit, BarePods};
use crate::replace::Order;

/// What Karpenter calls a pool on nodes, and what it called it when seed 3 was written.
const POOL_LABEL: &str = "karpenter.sh/nodepool";
const POOL_LABEL_OF_OLD: &str = "karpenter.sh/provisioner-name";

/// What people wrote about how many and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    pub disruption_budgets: Vec<DisruptionBudget>,
    /// By the name of the pool.
    pub pools: BTreeMap<String, Vec<Result<PoolBudget, Unreadable>>>,
    /// By the name of the class: the first policy by name that selects it and says `rollout`.
    pub classes: BTreeMap<String, ClassRule>,
}

/// What somebody wrote and nobody can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(pub String);

/// One `NodeDisruptionBudget`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionBudget {
    pub name: String,
    /// A node is selected by any of them.
    pub selectors: Vec<BTreeMap<String, String>>,
    pub keep: Result<Keep, Unreadable>,
    /// We wait for it. If not, it leaves the nodes to the other budgets, and only counts.
    pub gates_controller: bool,
    /// People who delete a node wait for it too.
    pub gates_people: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    MinAvailable(Amount),
    MaxUnavailable(Amount),
}

impl DisruptionBudget {
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selectors.iter().any(|it| {
            it.iter().all(|(key, value)| {
                labels.get(key) == Some(value)
                    || (key == POOL_LABEL_OF_OLD && labels.get(POOL_LABEL) == Some(value))
            })
        })
    }
}

/// One of a `NodePool`'s `disruption.budgets`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolBudget {
    pub nodes: Amount,
    /// `None`: always. In UTC.
    pub schedule: Option<Schedule>,
    /// `None`: for every reason.
    pub reasons: Option<BTreeSet<Reason>>,
}

/// Karpenter's words for why a node is disrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Drifted,
    Empty,
    Underutilized,
}

/// What is about to be done to nodes. All of them ask the same rooms, so that they cannot add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// For drift, for expiry, or because a person asked: they share their slots.
    Replace,
    /// Of nodes without pods. It takes no slot.
    RemoveEmpty,
    /// Of nodes that fewer could do the work of. It takes no slot either.
    Consolidate,
}

impl Act {
    /// Expiry is no word of Karpenter's budgets; it is held by what holds drift.
    fn reason(self) -> Reason {
        match self {
            Self::Replace => Reason::Drifted,
            Self::RemoveEmpty => Reason::Empty,
            Self::Consolidate => Reason::Underutilized,
        }
    }

    fn takes_slots(self) -> bool {
        self == Self::Replace
    }
}

/// What an `ImagePolicy`'s `rollout` says of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassRule {
    /// The policy's name.
    pub policy: String,
    /// `None` leaves the class with the cluster's one slot.
    pub concurrency: Option<Result<Concurrency, Unreadable>>,
    pub unit: Unit,
    /// How many may start before a cooldown.
    pub batch_max: Option<Result<Amount, Unreadable>>,
    pub cooldown: SignedDuration,
    pub minimum_lifetime: SignedDuration,
    pub windows: Option<Result<Windows, Unreadable>>,
    pub drain_limit: Option<SignedDuration>,
    pub at_limit: AtLimit,
    pub order: Order,
    pub bare_pods: BarePods,
}

impl ClassRule {
    /// A policy that says nothing of how.
    pub fn of(policy: &str) -> Self {
        Self {
            policy: policy.to_owned(),
            concurrency: None,
            unit: Unit::Nodes,
            batch_max: None,
            cooldown: SignedDuration::ZERO,
            minimum_lifetime: SignedDuration::ZERO,
            windows: None,
            drain_limit: None,
            at_limit: AtLimit::Skip,
            order: Order::SuccessorFirst,
            bare_pods: BarePods::Wait,
        }
    }

    /// Whether the windows let a replacement start. What cannot be read lets none.
    pub fn opening(&self, now: Timestamp) -> Opening {
        match &self.windows {
            None => Opening::Open { until: None },
            Some(Ok(windows)) => windows.at(now),
            Some(Err(Unreadable(why))) => Opening::Closed {
                opens_at: None,
                because: Some(format!("they cannot be read: {why}")),
            },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// So many.
    Of(Amount),
    /// As many as a batch may have: 5 % and at least one, where nobody gives a figure.
    Parallel,
}

/// What is counted. Nodes mislead where their sizes differ: two of four may be all of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    Nodes,
    /// Thousandths of a processor.
    Cpu,
}

/// A node, as far as budgets look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub pool: Option<String>,
    pub class: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub cpu_millis: u64,
    pub standing: Standing,
    /// It takes over from a node that is still there. A share is one of the fleet without it: else every
    /// successor would let another node go.
    pub surge: bool,
    /// `NodeDisruptionBudgets` that it takes a place in, whatever its labels: those of one that is gone are
    /// not all known.
    pub taken_from: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Not yet in the cluster, and bears nothing; or its machine is gone: nobody counts on it.
    Outside,
    Available,
    Unavailable(Unavailable),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unavailable {
    NotReady,
    /// It is not ready since it runs a candidate: going back is not held by it.
    BrokenByCandidate,
    Cordoned,
    Deleting,
}

impl Unavailable {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotReady => "not ready",
            Self::BrokenByCandidate => "not ready, on the candidate image",
            Self::Cordoned => "cordoned",
            Self::Deleting => "being deleted",
        }
    }
}

/// The ledger: what is granted, and what was a short while ago.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// By the name of the node.
    pub open: BTreeMap<String, Grant>,
    /// Of replacements that have ended, as far back as the longest cooldown.
    pub closed: Vec<Closed>,
    /// Who paused the whole cluster, and why.
    pub paused: Option<String>,
    /// The law that our own records break.
    pub locked: Option<String>,
    /// What says who may go, and is not known any more.
    pub unheard: Option<Unheard>,
    /// Our clock and the API server's, where they are too far apart for both to be right.
    pub apart: Option<Apart>,
}

/// Two clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Apart {
    pub ours: Timestamp,
    pub servers: Timestamp,
}

impl Apart {
    /// By how much ours is ahead; less than nothing where it is behind.
    pub fn ahead(self) -> SignedDuration {
        self.ours.duration_since(self.servers)
    }

    /// For people. Times are as both clocks showed them.
    pub fn words(self) -> String {
        let ahead = self.ahead();
        let (length, way) =
            if ahead.is_negative() { (ahead.abs(), "behind") } else { (ahead, "ahead of") };
        format!(
            "the clock of the operator that leads is {:#} {way} the API server's: it said {:.0} when \
             that said {:.0}",
            SignedDuration::from_secs(length.as_secs()),
            self.ours,
            self.servers
        )
    }
}

/// A kind of objects that no watch has told of for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unheard {
    pub kind: &'static str,
    /// `None`: it was never listed.
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub kind: GrantKind,
    pub since: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantKind {
    Replacement,
    /// A person deleted the node: it passes budgets and counts against them.
    Deleted,
    Interrupted,
    Empty,
    Consolidation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub node: String,
    pub class: String,
    pub since: Timestamp,
    pub ended_at: Timestamp,
}

/// Which budget it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetId {
    /// One at a time over the whole cluster.
    Serial,
    Disruption {
        name: String,
    },
    Class {
        policy: String,
        class: String,
    },
    Pool {
        name: String,
    },
}

impl BudgetId {
    /// The name of the `NodeDisruptionBudget`, if it is one.
    pub fn disruption(&self) -> Option<&str> {
        match self {
            Self::Disruption { name } => Some(name),
            Self::Serial | Self::Class { .. } | Self::Pool { .. } => None,
        }
    }
}

impl fmt::Display for BudgetId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serial => write!(out, "the cluster's one slot"),
            Self::Disruption { name } => write!(out, "NodeDisruptionBudget `{name}`"),
            Self::Class { policy, class } => {
                write!(out, "ImagePolicy `{policy}` for class `{class}`")
            }
            Self::Pool { name } => write!(out, "the budgets of NodePool `{name}`"),
        }
    }
}

/// Schedules that follow each other are looked through so far; after that they count as never over.
const FOLLOWED_MAX: usize = 32;

/// What a pool's budgets allow for a reason, and until when they allow no more. `None`: anything.
pub(crate) fn pool_allows(
    budgets: &[Result<PoolBudget, Unreadable>],
    act: Act,
    total: u64,
    now: Timestamp,
) -> Option<(u64, Option<Timestamp>, Option<Unreadable>)> {
    if let Some(Err(unreadable)) = budgets.iter().find(|it| it.is_err()) {
        return Some((0, None, Some(unreadable.clone())));
    }
    let (allowed, mut until) = pool_allows_at(budgets, act, total, now)?;
    // Where one ends another may have begun, and allow as little.
    for _ in 0..FOLLOWED_MAX {
        let Some(at) = until else { break };
        match pool_allows_at(budgets, act, total, at) {
            Some((then, later)) if then <= allowed => until = later.filter(|it| *it > at),
            Some(_) | None => return Some((allowed, until, None)),
        }
    }
    Some((allowed, None, None))
}

/// The same at one moment, until the schedule ends that says so.
fn pool_allows_at(
    budgets: &[Result<PoolBudget, Unreadable>],
    act: Act,
    total: u64,
    now: Timestamp,
) -> Option<(u64, Option<Timestamp>)> {
    let mut least: Option<(u64, Option<Timestamp>)> = None;
    for budget in budgets.iter().flatten() {
        if budget.reasons.as_ref().is_some_and(|it| !it.contains(&act.reason())) {
            continue;
        }
        let until = match &budget.schedule {
            None => None,
            Some(schedule) => match schedule.at(&TimeZone::UTC, Dates::default(), now) {
                Activity::Active { until } => until,
                Activity::Inactive { .. } => continue,
            },
        };
        let allowed = budget.nodes.at_most(total);
        least = match least {
            Some((other, since)) if other < allowed => Some((other, since)),
            // The longer of two equal ones is what holds.
            Some((other, since)) if other == allowed => {
                Some((allowed, since.zip(until).map(|(a, b)| a.max(b))))
            }
            Some(_) | None => Some((allowed, until)),
        };
    }
    least
}
