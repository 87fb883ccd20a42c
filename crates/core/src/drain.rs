//! Which pods may leave?
//!
//! `drains × PodDisruptionBudgets × now → evict + held, every pod of every drain`
//!
//! One look at the whole fleet: budgets of pods know no replacements, so two nodes must not count on the
//! same disruption. Pods leave in two tiers, as with Karpenter: ordinary ones, and when those are gone
//! those of the system's own priority classes. Pods of a `DaemonSet`, mirror pods and finished ones stay
//! with the node. Those that tolerate the cordon are not asked to leave: evicted, they would come right back.
//! They end with the machine, when all others have left, and as if they were evicted then: what protects them
//! holds it, and they take from the same budgets.

mod eviction;
mod limit;
mod protection;
mod selecting;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

pub use eviction::{AllPdbs, Answer, Pdb, Pdbs, Refused, UnhealthyPods};
pub use limit::{LIMIT_FLOOR, limit_ends_at};
pub use protection::{DO_NOT_DISRUPT, DO_NOT_EVICT, Protection, protection};
pub(crate) use selecting::Places;
pub use selecting::Selecting;

/// Karpenter's patience with a pod that should be gone and is not; then its node does not wait for it.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// A pod that we moved and that nothing will run: its pool gets no more grants after this.
const HOMELESS_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// By its name and by the one thing that never comes again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodId {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl fmt::Display for PodId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// A pod on a node, as far as it decides whether it may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub id: PodId,
    pub labels: BTreeMap<String, String>,
    pub phase: PodPhase,
    pub ready: bool,
    pub owner: Owner,
    pub tier: Tier,
    pub tolerates_cordon: bool,
    pub protection: Option<Protection>,
    pub grace: SignedDuration,
    /// When its grace period ends, once somebody has asked it to go.
    pub ends_at: Option<Timestamp>,
    pub namespace_terminating: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    Pending,
    Running,
    Finished,
    /// The kubelet has not said anything for a while.
    Unknown,
}

/// Tiers leave one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Ordinary,
    /// Of the priority class `system-cluster-critical` or `system-node-critical`.
    System,
}

/// Who would start it again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    Nobody,
    DaemonSet,
    /// The kubelet itself, from a file.
    Mirror,
    Workload {
        kind: String,
        name: String,
    },
}

/// Kinds that start another pod for one that left, for as long as they are told to have so many. A `Job`'s may just have finished.
pub const KEEP_A_NUMBER: [&str; 3] = ["ReplicaSet", "ReplicationController", "StatefulSet"];

/// One node that is being emptied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    pub node: String,
    pub since: Timestamp,
    /// When the last pod left, if one has; or since when pods may leave again, after a pause or an outage.
    pub last_left_at: Option<Timestamp>,
    /// Shared with whoever saw them: pods are many.
    pub pods: Vec<Arc<Pod>>,
    /// What a policy wrote in place of the sum of grace periods.
    pub limit: Option<SignedDuration>,
    pub at_limit: AtLimit,
    /// When `terminationGracePeriod` ends, or an interruption takes the machine away.
    pub deadline: Option<Timestamp>,
    /// The machine ends then, whoever is left: somebody deleted it or takes it away. Else it waits for
    /// everybody's own grace period.
    pub machine_goes: bool,
    /// That its machine goes was decided: it comes to a budget before those of whom it was not.
    pub decided: bool,
    /// Nothing holds its machine any more: whoever is left ends with it, and takes from its budget before
    /// anybody else.
    pub ending: bool,
    pub bare_pods: BarePods,
    /// Since when its pods cannot be asked to leave, and what was answered instead.
    pub hindered: Option<(Timestamp, String)>,
}

/// What happens when no pod has left for as long as the drain limit says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AtLimit {
    /// The node is uncordoned and tried again later.
    Skip,
    /// It stays cordoned. So does a node that somebody deletes.
    Wait,
    /// What is left is deleted, whatever its budget says.
    Force,
}

/// What becomes of pods that nobody would start again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BarePods {
    Wait,
    Evict,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Evict {
    pub node: String,
    pub pod: PodId,
    pub how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Through the eviction API, with its UID and its own grace period.
    Evict,
    /// Past its budget and its protection, after this was recorded.
    Delete { grace_seconds: i64, because: Forced },
    /// Nobody asks it: it may end with the machine. By force, only after this was recorded.
    WithMachine { forced: Option<Forced> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Forced {
    Deadline,
    DrainLimit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub node: String,
    pub pod: PodId,
    pub why: Hold,
    /// What else would hold it, were that lifted: a person lifts these too, and had better know all of them.
    pub also: Vec<Hold>,
    /// When time alone may change it; else something must happen first.
    pub again_at: Option<Timestamp>,
}

/// Why a pod does not leave now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// It never leaves; the drain does not wait for it.
    Stays(Stays),
    /// It is on its way out.
    Terminating,
    /// Its eviction was accepted, and nothing has come of it yet.
    UnderWay {
        pdb: String,
    },
    Protected(Protection),
    Bare,
    /// Pods of the system leave when all others have.
    AfterOthers,
    Refused(Refused),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stays {
    DaemonSet,
    Mirror,
    Finished,
    ToleratesCordon,
    /// It should have been gone a minute ago; with the machine it will be.
    Stuck,
}

/// Which pods of which drains leave now, and why each of the others does not. Older drains come first to
/// a budget, so that one of two nodes gets done.
pub fn evictions(drains: &[Drain], pdbs: &AllPdbs, now: Timestamp) -> (Vec<Evict>, Vec<Held>) {
    let mut ledger = Pdbs::new(pdbs);
    let mut order: Vec<&Drain> = drains.iter().collect();
    order.sort_by_key(|it| (!it.ending, !it.decided, it.since, &it.node));
    let (mut evict, mut held) = (Vec::new(), Vec::new());
    let mut asked = BTreeSet::new();
    for drain in order {
        let mut pods: Vec<&Pod> = drain.pods.iter().map(AsRef::as_ref).collect();
        pods.sort_by_key(|it| (it.tier, &it.id));
        let ordinary_left =
            pods.iter().any(|it| it.tier == Tier::Ordinary && stays(it, now).is_none());
        let others_left = remaining(&pods, now).next().is_some();
        let past_limit = drain.at_limit == AtLimit::Force
            && limit_ends_at(drain, now).is_some_and(|it| it <= now);
        let together = !drain.ending && !others_left && pods.iter().any(|it| with_machine(it, now));
        let before = together.then(|| ledger.clone());
        let mut stuck = false;
        for pod in pods {
            let told = |why, again_at| Held {
                node: drain.node.clone(),
                pod: pod.id.clone(),
                also: also(pod, drain, &why, pdbs),
                why,
                again_at,
            };
            if !asked.insert(&pod.id.uid) {
                // Two drains of one node, or a list that repeats itself: once is enough.
                held.push(told(Hold::Terminating, None));
                continue;
            }
            let circumstances = Circumstances { ordinary_left, others_left, past_limit };
            match leave(pod, drain, &mut ledger, circumstances, now) {
                Ok(how) => {
                    evict.push(Evict { node: drain.node.clone(), pod: pod.id.clone(), how });
                }
                Err((why, again_at)) => {
                    stuck |= lingers(pod, &why, now);
                    held.push(told(why, again_at));
                }
            }
        }
        // Those that end with one machine end together or not at all: while one of them is held the others take
        // nothing that somebody else could use.
        if let Some(before) = before.filter(|_| stuck) {
            ledger = before;
        }
    }
    (evict, held)
}

#[derive(Clone, Copy)]
struct Circumstances {
    ordinary_left: bool,
    others_left: bool,
    past_limit: bool,
}

/// The reasons are ordered by who can lift them: nobody, time, a person, others' progress.
fn leave(
    pod: &Pod,
    drain: &Drain,
    ledger: &mut Pdbs<'_>,
    circumstances: Circumstances,
    now: Timestamp,
) -> Result<How, (Hold, Option<Timestamp>)> {
    let with_machine = match stays(pod, now) {
        Some(Stays::ToleratesCordon) => true,
        Some(stays) => return Err((Hold::Stays(stays), None)),
        None => false,
    };
    if with_machine && drain.ending {
        ledger.evict(pod);
        return Ok(How::WithMachine { forced: None });
    }
    if with_machine && circumstances.others_left {
        return Err((Hold::Stays(Stays::ToleratesCordon), None));
    }
    if let Some(ends_at) = pod.ends_at.filter(|_| !with_machine) {
        return Err((Hold::Terminating, ends_at.saturating_add(STUCK_AFTER).ok()));
    }
    let overdue = |it: Timestamp| now.duration_since(it) > STUCK_AFTER;
    if with_machine && pod.ends_at.is_some_and(overdue) {
        return Ok(How::WithMachine { forced: None }); // It was told to go, and nobody is there to end it.
    }
    match forced(pod, drain, circumstances.past_limit, now) {
        Some(How::Delete { because, .. }) if with_machine => {
            return Ok(How::WithMachine { forced: Some(because) });
        }
        Some(forced) => return Ok(forced),
        None => {}
    }
    // Force deletes later what is held now; so time alone changes it.
    let forced_at = forced_at(pod, drain);
    let hold = |why, again_at: Option<Timestamp>| {
        let first = match (again_at, forced_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Err((why, first))
    };
    if let Some(protection) = pod.protection.as_ref().filter(|it| it.holds(now)) {
        return hold(Hold::Protected(protection.clone()), protection.until);
    }
    if pod.owner == Owner::Nobody && drain.bare_pods == BarePods::Wait {
        return hold(Hold::Bare, None);
    }
    if pod.tier == Tier::System && circumstances.ordinary_left {
        return hold(Hold::AfterOthers, None);
    }
    if let Some((pdb, until)) = ledger.under_way(pod, now) {
        return hold(Hold::UnderWay { pdb: pdb.to_owned() }, Some(until));
    }
    match ledger.evict(pod) {
        Answer::Evicted if with_machine => Ok(How::WithMachine { forced: None }),
        Answer::Evicted => Ok(How::Evict),
        Answer::Refused(Refused::NoneAllowed { pdb }) if with_machine => {
            let allowed = ledger.allowed(pod);
            hold(
                Hold::Refused(match allowed {
                    1.. => Refused::NotAll { pdb, allowed },
                    _ => Refused::NoneAllowed { pdb },
                }),
                None,
            )
        }
        Answer::Refused(refused) => {
            let again_at = refused.retry_after().and_then(|it| now.saturating_add(it).ok());
            hold(Hold::Refused(refused), again_at)
        }
    }
}

/// What a person would have to lift after what holds a pod first. What a budget says is read as it stands, whoever
/// else takes from it now.
fn also(pod: &Pod, drain: &Drain, why: &Hold, pdbs: &AllPdbs) -> Vec<Hold> {
    let bare = match why {
        Hold::Protected(_) => pod.owner == Owner::Nobody && drain.bare_pods == BarePods::Wait,
        Hold::Bare => false,
        Hold::Stays(_)
        | Hold::Terminating
        | Hold::UnderWay { .. }
        | Hold::AfterOthers
        | Hold::Refused(_) => return Vec::new(),
    };
    let refused = match Pdbs::new(pdbs).answer(pod) {
        Answer::Refused(refused) => Some(Hold::Refused(refused)),
        Answer::Evicted => None,
    };
    bare.then_some(Hold::Bare).into_iter().chain(refused).collect()
}

/// When a pod that is still there is deleted, whatever holds it: its grace period ends with the deadline.
pub fn forced_at(pod: &Pod, drain: &Drain) -> Option<Timestamp> {
    drain.deadline.and_then(|it| it.saturating_sub(pod.grace.max(ZERO)).ok())
}

const ZERO: SignedDuration = SignedDuration::ZERO;

fn forced(pod: &Pod, drain: &Drain, past_limit: bool, now: Timestamp) -> Option<How> {
    let own = pod.grace.as_secs().max(1);
    if let Some(deadline) = drain.deadline {
        let left = deadline.duration_since(now);
        // Its grace period fits just before the end; later it gets what is left of it, if the machine ends.
        let grace_seconds = if drain.machine_goes { left.as_secs().clamp(1, own) } else { own };
        return (left <= pod.grace)
            .then_some(How::Delete { grace_seconds, because: Forced::Deadline });
    }
    past_limit.then_some(How::Delete { grace_seconds: own, because: Forced::DrainLimit })
}

/// Whether its node never waits for a pod, whatever time it is and whoever tolerates what.
pub fn stays_for_good(pod: &Pod) -> bool {
    matches!(pod.owner, Owner::DaemonSet | Owner::Mirror) || pod.phase == PodPhase::Finished
}

/// Why its node does not wait for a pod, if it does not.
pub fn stays(pod: &Pod, now: Timestamp) -> Option<Stays> {
    match pod.owner {
        Owner::DaemonSet => return Some(Stays::DaemonSet),
        Owner::Mirror => return Some(Stays::Mirror),
        Owner::Nobody | Owner::Workload { .. } => {}
    }
    if pod.phase == PodPhase::Finished {
        return Some(Stays::Finished);
    }
    // One that nobody would start again does not come back.
    if pod.tolerates_cordon && pod.owner != Owner::Nobody {
        return Some(Stays::ToleratesCordon);
    }
    let stuck = |it: Timestamp| now.duration_since(it) > STUCK_AFTER;
    pod.ends_at.is_some_and(stuck).then_some(Stays::Stuck)
}

/// Whether it is not evicted, and ends with its machine.
pub fn with_machine(pod: &Pod, now: Timestamp) -> bool {
    stays(pod, now) == Some(Stays::ToleratesCordon)
}

/// Those that must leave before the node may go.
pub fn remaining<P: Borrow<Pod>>(pods: &[P], now: Timestamp) -> impl Iterator<Item = &Pod> {
    pods.iter().map(Borrow::borrow).filter(move |it| stays(it, now).is_none())
}

/// Those that need another place when the node goes: they leave before, or end with it.
pub fn moving<P: Borrow<Pod>>(pods: &[P], now: Timestamp) -> impl Iterator<Item = &Pod> {
    pods.iter().map(Borrow::borrow).filter(move |it| moves(it, now))
}

pub fn moves(pod: &Pod, now: Timestamp) -> bool {
    match stays(pod, now) {
        None | Some(Stays::ToleratesCordon) => true,
        Some(Stays::DaemonSet | Stays::Mirror | Stays::Finished | Stays::Stuck) => false,
    }
}

/// Whether a pod that is held holds its machine, too: nobody evicts it, and it may not end now.
pub fn lingers(pod: &Pod, why: &Hold, now: Timestamp) -> bool {
    let held = match why {
        Hold::Protected(_) | Hold::Refused(_) | Hold::UnderWay { .. } | Hold::Bare => true,
        Hold::Stays(_) | Hold::Terminating | Hold::AfterOthers => false,
    };
    held && with_machine(pod, now)
}

/// A pod that took the place of one that we evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Of the node that the old one ran on.
    pub pool: String,
    /// That node; or those that it may have been, where several were emptied at the time. Never none.
    pub nodes: Vec<String>,
    pub pod: PodId,
    /// `None` once it runs.
    pub pending_since: Option<Timestamp>,
}

/// A moved pod that has no place, and whose pool gets no grants before it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Homeless {
    pub pod: PodId,
    pub since: Timestamp,
}

/// By pool, the one that waits longest.
pub fn homeless(moved: &[Moved], now: Timestamp) -> BTreeMap<String, Homeless> {
    let mut found: BTreeMap<String, Homeless> = BTreeMap::new();
    for it in moved {
        let Some(since) = it.pending_since else { continue };
        if now.duration_since(since) < HOMELESS_AFTER {
            continue;
        }
        let worse = |other: &Homeless| (since, &it.pod) < (other.since, &other.pod);
        if found.get(&it.pool).is_none_or(worse) {
            found.insert(it.pool.clone(), Homeless { pod: it.pod.clone(), since });
        }
    }
    found
}
