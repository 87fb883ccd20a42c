//! What would the eviction API answer?
//!
//! `pod × the budgets that match it → evicted, or refused with a status code`
//!
//! Kubernetes' own order of questions. A pod that does not run yet, that has finished or that is on its
//! way out is never held by a budget; two budgets on one pod are an error that only a person can lift; a
//! pod that is not ready may pass a budget that is healthy without it; all others take one of what the
//! budget allows, if its controller has seen the newest spec.
//!
//! Who ends with a machine is asked in the same way, though no API server is: so nobody takes it from the budget for us.
//! What a budget says is held against how many of its pods really serve ([`AllPdbs::count`]).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::selecting::Places;
use super::{Pod, PodPhase, Selecting};
use crate::policy::LabelSelector;

/// How long the API server believes that an accepted eviction will still happen.
const DISRUPTED_FOR: SignedDuration = SignedDuration::from_mins(2);

/// More entries than this and it stops answering.
const DISRUPTED_MAX: usize = 2000;

/// What it tells clients to wait for a controller that lags.
const RETRY_STALE: SignedDuration = SignedDuration::from_secs(10);

/// One `PodDisruptionBudget`, as its controller left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdb {
    pub namespace: String,
    pub name: String,
    /// `None` matches nothing, an empty one all pods of the namespace.
    pub selector: Option<LabelSelector>,
    pub generation: i64,
    pub observed_generation: i64,
    pub disruptions_allowed: i32,
    pub current_healthy: i32,
    pub desired_healthy: i32,
    pub unhealthy_pods: UnhealthyPods,
    /// Pods by name whose eviction was accepted, and when.
    pub disrupted_pods: BTreeMap<String, Timestamp>,
}

impl Pdb {
    pub fn selects(&self, pod: &Pod) -> bool {
        let selector = self.selector.as_ref().filter(|_| self.namespace == pod.id.namespace);
        selector.is_some_and(|it| it.matches(&pod.labels))
    }

    /// Whether it has accepted a pod's eviction and still believes in it: such a one is not counted as healthy.
    pub fn lets_go(&self, pod: &Pod, now: Timestamp) -> bool {
        self.let_go_until(pod, now).is_some()
    }

    /// What it allows, or nothing where it refuses everybody who would take of it.
    pub(super) fn open(&self) -> i32 {
        let stale = self.observed_generation < self.generation;
        let refuses = stale || self.disrupted_pods.len() > DISRUPTED_MAX;
        if refuses { 0 } else { self.disruptions_allowed.max(0) }
    }

    fn let_go_until(&self, pod: &Pod, now: Timestamp) -> Option<Timestamp> {
        let since = self.disrupted_pods.get(&pod.id.name)?;
        since.saturating_add(DISRUPTED_FOR).ok().filter(|until| now < *until)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnhealthyPods {
    #[default]
    IfHealthyBudget,
    AlwaysAllow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Evicted,
    Refused(Refused),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Nothing can be made in a namespace that goes; its pods go with it.
    NamespaceTerminating,
    /// 500, until a person takes one away.
    SeveralBudgets { pdbs: Vec<String> },
    /// 429: the controller has not seen the newest spec.
    Stale { pdb: String },
    /// 429.
    NoneAllowed { pdb: String },
    /// Fewer than have to go at once: those that end with one machine, or that find no room before it is empty.
    NotAll { pdb: String, allowed: i32 },
    /// 403: its status makes no sense.
    Negative { pdb: String },
    /// 403: too many evictions were accepted that nothing came of.
    TooManyDisrupted { pdb: String },
}

impl Refused {
    /// The status code of the API server.
    pub fn code(&self) -> u16 {
        match self {
            Self::SeveralBudgets { .. } => 500,
            Self::Stale { .. } | Self::NoneAllowed { .. } | Self::NotAll { .. } => 429,
            Self::Negative { .. } | Self::TooManyDisrupted { .. } | Self::NamespaceTerminating => {
                403
            }
        }
    }

    /// What it says in `Retry-After`.
    pub fn retry_after(&self) -> Option<SignedDuration> {
        matches!(self, Self::Stale { .. }).then_some(RETRY_STALE)
    }

    /// The budget to look at, or the first of several.
    pub fn pdb(&self) -> Option<&str> {
        match self {
            Self::NamespaceTerminating => None,
            Self::SeveralBudgets { pdbs } => pdbs.first().map(String::as_str),
            Self::Stale { pdb }
            | Self::NoneAllowed { pdb }
            | Self::NotAll { pdb, .. }
            | Self::Negative { pdb }
            | Self::TooManyDisrupted { pdb } => Some(pdb),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NamespaceTerminating => write!(out, "its namespace is being deleted"),
            Self::SeveralBudgets { pdbs } => {
                write!(out, "several PodDisruptionBudgets match it: `{}`", pdbs.join("`, `"))
            }
            Self::Stale { pdb } => {
                write!(out, "PodDisruptionBudget `{pdb}` was changed and not yet counted anew")
            }
            Self::NoneAllowed { pdb } => {
                write!(out, "PodDisruptionBudget `{pdb}` allows no disruption now")
            }
            Self::NotAll { pdb, allowed } => {
                write!(
                    out,
                    "PodDisruptionBudget `{pdb}` lets {allowed} go now, and more of its pods have to go at once"
                )
            }
            Self::Negative { pdb } => {
                write!(out, "PodDisruptionBudget `{pdb}` allows less than none")
            }
            Self::TooManyDisrupted { pdb } => {
                write!(out, "PodDisruptionBudget `{pdb}` has too many evictions under way")
            }
        }
    }
}

/// All budgets, by what they select; and how many of the pods of some really serve.
#[derive(Debug, Clone, Default)]
pub struct AllPdbs {
    selecting: Arc<Selecting>,
    /// By the place in [`Selecting::all`]: what one allows by that, where it is less than it says.
    counted: BTreeMap<usize, i32>,
}

impl PartialEq for AllPdbs {
    fn eq(&self, other: &Self) -> bool {
        let same = Arc::ptr_eq(&self.selecting, &other.selecting);
        (same || self.selecting.all() == other.selecting.all()) && self.counted == other.counted
    }
}

impl Eq for AllPdbs {}

impl From<Vec<Pdb>> for AllPdbs {
    fn from(pdbs: Vec<Pdb>) -> Self {
        Self::new(Arc::new(Selecting::new(pdbs.into_iter().map(Arc::new))))
    }
}

impl AllPdbs {
    pub fn new(selecting: Arc<Selecting>) -> Self {
        Self { selecting, counted: BTreeMap::new() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Pdb> {
        self.selecting.all().iter().map(AsRef::as_ref)
    }

    /// As one will stand once its controller has seen what we see: so many of its pods serve. It never allows more
    /// by that.
    pub fn count(&mut self, at: usize, serve: usize) {
        let Some(pdb) = self.selecting.all().get(at) else { return };
        let serve = i32::try_from(serve).unwrap_or(i32::MAX);
        let left = serve.saturating_sub(pdb.desired_healthy).max(0);
        if left < pdb.disruptions_allowed {
            self.counted.insert(at, left);
        } else {
            self.counted.remove(&at);
        }
    }

    /// The same as long as no budget has come, has gone or selects others.
    pub(crate) fn places(&self) -> &Arc<Places> {
        self.selecting.places()
    }

    fn allowed(&self, at: usize) -> Option<i32> {
        let pdb = self.selecting.all().get(at)?;
        Some(self.counted.get(&at).copied().unwrap_or(pdb.disruptions_allowed))
    }
}

/// What is left of each budget: one ledger for the whole fleet.
#[derive(Debug, Clone)]
pub struct Pdbs<'a> {
    all: &'a AllPdbs,
    /// By the place in [`Selecting::all`]: how many were taken.
    taken: BTreeMap<usize, i32>,
}

impl<'a> Pdbs<'a> {
    pub fn new(all: &'a AllPdbs) -> Self {
        Self { all, taken: BTreeMap::new() }
    }

    /// Those that select a pod, in the order of their names, and what is left of each.
    pub fn matching(&self, pod: &Pod) -> impl Iterator<Item = (&'a Pdb, i32)> {
        let found = self.all.selecting.of(pod).into_iter();
        found.filter_map(|at| Some((self.all.selecting.all().get(at)?.as_ref(), self.left(at)?)))
    }

    /// The same, by their places: those are theirs as long as [`AllPdbs::places`] is the same.
    pub(crate) fn places_of(&self, pod: &Pod) -> Vec<usize> {
        self.all.selecting.of(pod)
    }

    pub(crate) fn places(&self) -> &Arc<Places> {
        self.all.places()
    }

    /// Whether a budget lets any pod go that no other budget selects, whatever that pod is like.
    pub(crate) fn lets_one_go(&self, at: usize) -> bool {
        let says = self.all.selecting.open(at);
        let allowed = self.all.counted.get(&at).map_or(says, |it| says.min(*it));
        allowed > self.taken.get(&at).copied().unwrap_or(0)
    }

    pub(crate) fn get(&self, at: usize) -> Option<&'a Pdb> {
        self.all.selecting.all().get(at).map(AsRef::as_ref)
    }

    pub(crate) fn left(&self, at: usize) -> Option<i32> {
        let taken = self.taken.get(&at).copied().unwrap_or(0);
        Some(self.all.allowed(at)?.saturating_sub(taken))
    }

    /// What the budget of a pod allowed before anybody took of it.
    pub(super) fn allowed(&self, pod: &Pod) -> i32 {
        let first = self.all.selecting.of(pod).into_iter().next();
        first.and_then(|it| self.all.allowed(it)).unwrap_or(0)
    }

    /// The budget that has accepted a pod's eviction, and until when it believes in that.
    pub fn under_way(&self, pod: &Pod, now: Timestamp) -> Option<(&'a str, Timestamp)> {
        self.matching(pod)
            .find_map(|(pdb, _)| Some((pdb.name.as_str(), pdb.let_go_until(pod, now)?)))
    }

    /// Of pods that would each be let go, the first that is not if all of them go at once.
    pub fn not_all<'p>(&self, pods: impl Iterator<Item = &'p Pod>) -> Option<(&'p Pod, Refused)> {
        let mut taken: BTreeMap<(&str, &str), i32> = BTreeMap::new();
        for pod in pods {
            let (Answer::Evicted, Some((pdb, left))) = self.ask(pod) else { continue };
            let taken = taken.entry((&pdb.namespace, &pdb.name)).or_default();
            *taken = taken.saturating_add(1);
            if *taken > left {
                return Some((pod, Refused::NotAll { pdb: pdb.name.clone(), allowed: left }));
            }
        }
        None
    }

    /// What the API would answer; nothing is taken.
    pub fn answer(&self, pod: &Pod) -> Answer {
        self.ask(pod).0
    }

    /// The same, and one is taken of what the budget allows.
    pub fn evict(&mut self, pod: &Pod) -> Answer {
        let (answer, taken) = self.ask(pod);
        if taken.is_some() {
            for at in self.all.selecting.of(pod) {
                let taken = self.taken.entry(at).or_default();
                *taken = taken.saturating_add(1);
            }
        }
        answer
    }

    /// And the budget that one is taken of, with what is left of it.
    fn ask(&self, pod: &Pod) -> (Answer, Option<(&'a Pdb, i32)>) {
        let refuse = |why| (Answer::Refused(why), None);
        if pod.namespace_terminating {
            return refuse(Refused::NamespaceTerminating);
        }
        let past_budgets = match pod.phase {
            PodPhase::Pending | PodPhase::Finished => true,
            PodPhase::Running | PodPhase::Unknown => pod.ends_at.is_some(),
        };
        if past_budgets {
            return (Answer::Evicted, None);
        }
        let mut matching = self.matching(pod);
        let Some((pdb, left)) = matching.next() else { return (Answer::Evicted, None) };
        let others: Vec<&str> = matching.map(|(it, _)| it.name.as_str()).collect();
        if !others.is_empty() {
            let pdbs = std::iter::once(pdb.name.as_str()).chain(others).map(str::to_owned);
            return refuse(Refused::SeveralBudgets { pdbs: pdbs.collect() });
        }
        if !pod.ready {
            let healthy = pdb.current_healthy >= pdb.desired_healthy && pdb.desired_healthy > 0;
            if healthy || pdb.unhealthy_pods == UnhealthyPods::AlwaysAllow {
                return (Answer::Evicted, None);
            }
        }
        let name = pdb.name.clone();
        if pdb.observed_generation < pdb.generation {
            return refuse(Refused::Stale { pdb: name });
        }
        if pdb.disruptions_allowed < 0 {
            return refuse(Refused::Negative { pdb: name });
        }
        if pdb.disrupted_pods.len() > DISRUPTED_MAX {
            return refuse(Refused::TooManyDisrupted { pdb: name });
        }
        if left <= 0 {
            return refuse(Refused::NoneAllowed { pdb: name });
        }
        (Answer::Evicted, Some((pdb, left)))
    }
}
