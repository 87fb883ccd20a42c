//! What is written down before it is done?
//!
//! Ledger, replacements and attempts. Each record carries the revision that it was read at: a write
//! against any other is a conflict, and whoever lost reads again and decides again.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use nodemolt_core::budget::Closed;
pub use nodemolt_core::budget::Granted;
use nodemolt_core::drain::PodId;
use nodemolt_core::drift::{Divergence, Sides};
use nodemolt_core::image::ImageId;
use nodemolt_core::node::said_by_others;
use nodemolt_core::replace::{Phase, Replacement};
use nodemolt_core::seen::Revision;

/// The one ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// `None`: there is none yet.
    pub revision: Option<Revision>,
    /// Counts leaders, and never goes back.
    pub epoch: u64,
    /// By holder: the UID of the old node's claim, which is the name of its Replacement.
    pub grants: BTreeMap<String, Granted>,
    /// What has ended lately, for cooldowns.
    pub closed: Vec<Closed>,
    /// What a person wrote: why everything is paused.
    pub pause: Option<Pause>,
    pub lock: Option<Lock>,
    /// What a person wrote: the lock that they have looked at.
    pub released_lock: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub reason: String,
    pub by: Option<String>,
}

/// Our own records contradict each other; a person has to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Tells one lock from the next.
    pub id: String,
    pub reason: String,
    pub since: Timestamp,
}

impl Ledger {
    /// The lock that holds: one that a person has released does not.
    pub fn locked(&self) -> Option<&Lock> {
        self.lock.as_ref().filter(|it| Some(&it.id) != self.released_lock.as_ref())
    }
}

/// A Replacement as it is recorded: what core decides on, and what people read beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The old claim's UID.
    pub name: String,
    /// `None`: it is not written yet, and writing it creates it.
    pub revision: Option<Revision>,
    pub pool: Option<String>,
    pub replacement: Replacement,
    /// The epoch that its grant was taken in, and when; `None` once given back.
    pub grant: Option<(u64, Timestamp)>,
    pub drain: Option<DrainRecord>,
    pub told: Told,
}

impl Recorded {
    /// Whether its old node was ever cordoned: until then it disturbs nobody.
    pub(crate) fn cordoned(&self) -> bool {
        self.drain.as_ref().is_some_and(|it| it.cordoned_at.is_some())
    }

    /// Whether the ledger lacks the grant of one for which something was done: nobody gives back such a one, so it was
    /// lost. One for which nothing was done yet may have come late, after its place was given to others.
    pub(crate) fn grant_lost(&self, ledger: &Ledger) -> bool {
        let Replacement { phase, successors, .. } = &self.replacement;
        let worked_on = match phase {
            Phase::Launching => successors.iter().any(|it| it.uid.is_some()),
            // One that goes first makes no successors: the cordon is the first that is done for it.
            Phase::Joining | Phase::Settling | Phase::Draining => {
                !self.replacement.deletes_first() || self.cordoned()
            }
            Phase::Terminating => true,
            Phase::Retreating
            | Phase::Done
            | Phase::Failed
            | Phase::Skipped
            | Phase::Kept
            | Phase::Cancelled => false,
        };
        self.grant.is_some() && worked_on && !ledger.grants.contains_key(&self.name)
    }
}

/// How far a drain is, in so far as it must be remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainRecord {
    pub cordoned_at: Option<Timestamp>,
    pub last_left_at: Option<Timestamp>,
    /// In whose epoch and since when pods are asked to leave without a break: limits count from here.
    /// `None` while none may leave.
    pub evicting: Option<(u64, Timestamp)>,
    pub pods: usize,
    pub pods_left: usize,
    /// Recorded before a pod is deleted past its budget or its protection.
    pub forced: Vec<(PodId, String)>,
    /// For people: who may not leave yet, and why.
    pub held: Vec<(PodId, String)>,
    /// By the UID of who starts them again: since when pods are asked to leave. Recorded before the first
    /// is, so that whoever leads next makes room for those that find none.
    pub moved: BTreeMap<String, Timestamp>,
}

/// For people. Nothing is decided by it, save that a lost ledger learns from it when a grant began, and that what a new node
/// cannot mend does not replace its successor for the same right away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    pub divergences: Vec<Divergence>,
    /// Of those, what a new node need not have mended.
    pub lasting: BTreeSet<Lasting>,
    pub running_image: Option<ImageId>,
    pub wanted_image: Option<ImageId>,
    pub started_at: Option<Timestamp>,
    /// What it waits for now, in a sentence.
    pub waits_for: Option<String>,
}

/// A difference that others say or make, and would say or make of the next node, too: what differs, what is, and what should
/// be. So it stands in a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lasting {
    of: String,
    from: Option<String>,
    to: Option<String>,
}

/// So much is kept of what differs, and of either side; more of it stands in no record.
const OF_MAX: usize = 60;
const SIDE_MAX: usize = 250;

/// As [`Divergence::sides`] calls a label that its pool asks for.
const LABEL: &str = "Label ";

impl Lasting {
    /// Of what others say of a node, and of labels that they write on it. Of all else EC2 and the claim of a new node decide.
    pub fn of(divergence: &Divergence) -> Option<Self> {
        match divergence {
            Divergence::Foreign(_) | Divergence::Requirement { .. } => {
                let Sides { of, from, to } = divergence.sides();
                Self::recorded(&of, from.as_deref(), to.as_deref())
            }
            Divergence::Image { .. }
            | Divergence::UserData { .. }
            | Divergence::Class { .. }
            | Divergence::PoolTemplate { .. }
            | Divergence::InstanceTypeGone { .. }
            | Divergence::SecurityGroups { .. }
            | Divergence::Subnet { .. }
            | Divergence::Reservation { .. }
            | Divergence::PlacementGroup { .. }
            | Divergence::KubernetesSkew { .. } => None,
        }
    }

    /// The same of what stands in a record.
    pub fn recorded(of: &str, from: Option<&str>, to: Option<&str>) -> Option<Self> {
        let others = from.is_some_and(said_by_others);
        let cut = |it: &str| it.chars().take(SIDE_MAX).collect::<String>();
        (others || of.starts_with(LABEL)).then(|| Self {
            of: of.chars().take(OF_MAX).collect(),
            from: from.map(cut),
            // What others say beside their reason is for people.
            to: to.filter(|_| !others).map(cut),
        })
    }
}
