//! What does one turn do?
//!
//! `observe → decide → record`, and acts for the hands
//!
//! A turn touches Kubernetes only, and waits for no machine. What it decides stands in the records before
//! anything is done about it; a conflict ends what depends on it, and the next turn decides again.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::replace::Old;
use nodemolt_core::seen::{Kind, View};

use crate::act::{Act, Errand, Intent};
use crate::clock;
use crate::decide::starting::Begun;
use crate::decide::{Decision, Sight, decide};
use crate::freshness::{GRANTING, unheard};
use crate::ledger::{self, Settled};
use crate::memory::{Memory, after, wait_after};
use crate::picture::{Picture, look};
use crate::port::{Cluster, ClusterError, NewMemory, Records, Remedy};
use crate::record::Ledger;
use crate::status::place_of;
use crate::{Clock, Config};

/// What EC2 may take to answer. `CreateFleet` with many choices takes tens of seconds at times.
const CLOUD_ALLOWED: SignedDuration = SignedDuration::from_mins(2);

/// What the API server may take; its own default limit is a minute.
const CLUSTER_ALLOWED: SignedDuration = SignedDuration::from_mins(1);

/// After a conflict or an answer that did not come.
const DECIDE_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// A turn that could not write tries again after this.
const WRITE_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// An image that cannot be remembered is tried again after this at the latest; the wait doubles.
const REMEMBER_AGAIN_MAX: SignedDuration = SignedDuration::from_mins(5);

/// What a turn came to.
#[derive(Debug)]
pub struct Turn {
    /// What counted as now.
    pub at: Timestamp,
    pub acts: Vec<Act>,
    /// When something is due that no watch will tell.
    pub wake_at: Option<Timestamp>,
    pub picture: Picture,
    /// How often it wrote to Kubernetes. A world in sync is written to never.
    pub writes: u32,
    /// What could not be written, for the log: the next turn tries again.
    pub failed: Vec<(String, ClusterError)>,
}

/// Why a turn could not even look.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObserveError {
    #[error("not everything was listed yet: {}", names(.0))]
    Incomplete(BTreeSet<Kind>),
    #[error("could not read the records")]
    Records(#[source] ClusterError),
}

fn names(kinds: &BTreeSet<Kind>) -> String {
    kinds.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ")
}

impl ObserveError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Incomplete(_) => Remedy::TryAgain,
            Self::Records(error) => error.remedy(),
        }
    }
}

/// One turn. `now` is what [`crate::now`] says; the API server's word of it comes anew with the records. `clock` is asked
/// whether the lease still runs, before each write, and how far it is from the API server's.
pub async fn turn(
    memory: &mut Memory,
    config: &Config,
    cluster: &impl Cluster,
    clock: &impl Clock,
    now: Timestamp,
) -> Result<Turn, ObserveError> {
    cluster.view().complete().map_err(ObserveError::Incomplete)?;
    let asked_at = clock.now();
    let mut records = match cluster.records().await {
        Ok(records) => records,
        Err(error) => {
            memory.cut_off();
            return Err(ObserveError::Records(error));
        }
    };
    let now = records.server_time.map_or(now, |servers| {
        let heard_at = clock.now();
        memory.apart = clock::apart(asked_at, heard_at, servers, memory.apart);
        // Whoever began to look long ago, by a word that was old then, decides by this one.
        clock::now(heard_at, Some(servers)).max(now)
    });
    memory.looks(now);
    let mut pen = Pen { cluster, clock, writes: 0, failed: Vec::new(), again_at: None, now };
    if !pen.take_office(memory, &mut records).await {
        let picture = look(memory, config, &cluster.view(), &records, now);
        let Pen { writes, failed, again_at, .. } = pen;
        let acts = Vec::new();
        return Ok(Turn { at: now, acts, wake_at: again_at, picture, writes, failed });
    }
    let decision = {
        let view = cluster.view();
        let sight = Sight::new(memory, config, &view, &records, now);
        decide(memory, &sight)
    };
    let Decision { questions, remember, going, starts, forget, statuses, cooldown_max, .. } =
        decision;
    // Whoever took over while we were waiting has read the records as they are.
    let lease_ends = memory.leads_until();
    pen.remember(memory, &remember, lease_ends).await;
    let mut acts = Acts { memory, epoch: records.ledger.epoch, now, all: Vec::new() };
    for question in questions {
        acts.push(Intent::Ask(question.clone()), Errand::Ask(question), CLOUD_ALLOWED, false);
    }
    for it in decision.claims {
        let voluntary = it.voluntary();
        let intent = Intent::Claim(it.key.clone());
        acts.push(intent, Errand::Claim(Box::new(it)), CLOUD_ALLOWED, voluntary);
    }

    // Steps are recorded, then what has ended is given back and what begins is granted, then the
    // records of those are made; and only what is recorded is done.
    let mut after_steps = records;
    for it in going {
        let mut recorded = it.recorded.clone();
        if it.changed {
            if !pen.leads(lease_ends) {
                break;
            }
            let answer = cluster.write_replacement(&recorded).await;
            let Some(revision) = pen.wrote(&recorded.name, answer) else { continue };
            recorded.revision = Some(revision);
        }
        let voluntary = it.voluntary();
        after_steps.replacements.insert(recorded.name.clone(), recorded);
        for (intent, errand) in it.errands {
            let voluntary = voluntary && disturbs(&errand);
            acts.push(intent, errand, CLUSTER_ALLOWED, voluntary);
        }
    }
    for (intent, errand) in decision.abandoned.into_iter().chain(decision.rooms) {
        acts.push(intent, errand, CLUSTER_ALLOWED, false);
    }
    let starts = pen.seen_lately(starts);
    let granted = if pen.leads(lease_ends) {
        pen.settle(cluster, &mut after_steps, &starts, cooldown_max).await
    } else {
        None
    };
    if let Some(granted) = granted {
        for it in starts.into_iter().filter(|it| granted.contains(&it.recorded.name)) {
            if !pen.leads(lease_ends) {
                break;
            }
            let answer = cluster.write_replacement(&it.recorded).await;
            if pen.wrote(&it.recorded.name, answer).is_none() {
                continue;
            }
            if it.recorded.replacement.phase == nodemolt_core::replace::Phase::Launching {
                let replacement = &it.recorded.name;
                for claim in it.claims {
                    let intent = Intent::Claim(claim.name.clone());
                    let (replacement, claim) = (replacement.clone(), Box::new(claim));
                    let errand = Errand::MakeClaim { replacement, claim };
                    acts.push(intent, errand, CLUSTER_ALLOWED, false);
                }
            } else {
                pen.again(DECIDE_AGAIN_AFTER);
            }
        }
    }
    for it in forget {
        if !pen.leads(lease_ends) {
            break;
        }
        if let Some(revision) = &it.revision {
            let answer = cluster.delete_replacement(&it.name, revision).await;
            pen.wrote(&it.name, answer);
        }
    }
    let acts = acts.all;
    for it in statuses {
        if !pen.leads(lease_ends) {
            break;
        }
        let place = place_of(&it);
        if pen.wrote(&place.1, cluster.write_status(&it).await).is_some() {
            memory.told.insert(place, it);
        }
    }
    let Pen { writes, failed, again_at, .. } = pen;
    let wake_at = [decision.wake_at, again_at].into_iter().flatten().min();
    Ok(Turn { at: now, acts, wake_at, picture: decision.picture, writes, failed })
}

/// Whether a pause or a lock holds it back: what undoes, and what only makes, goes on.
fn disturbs(errand: &Errand) -> bool {
    match errand {
        Errand::Cordon { .. }
        | Errand::Evict { .. }
        | Errand::DeletePod { .. }
        | Errand::DeleteOld { .. } => true,
        Errand::Ask(_)
        | Errand::MakeClaim { .. }
        | Errand::MakeRoom { .. }
        | Errand::Uncordon { .. }
        | Errand::DeleteSuccessor { .. }
        | Errand::Claim(_) => false,
    }
}

/// What a turn asks of the hands.
struct Acts<'a> {
    memory: &'a Memory,
    epoch: u64,
    now: Timestamp,
    all: Vec<Act>,
}

impl Acts<'_> {
    fn push(&mut self, intent: Intent, errand: Errand, allowed: SignedDuration, voluntary: bool) {
        self.all.push(Act {
            intent,
            errand,
            epoch: self.epoch,
            decided_at: self.now,
            leads_until: self.memory.leads_until(),
            voluntary,
            allowed,
        });
    }
}

/// Whoever writes, counts and remembers what failed.
struct Pen<'a, C, K> {
    cluster: &'a C,
    clock: &'a K,
    writes: u32,
    failed: Vec<(String, ClusterError)>,
    again_at: Option<Timestamp>,
    now: Timestamp,
}

impl<C: Cluster, K: Clock> Pen<'_, C, K> {
    /// Whether our lease has not run out while we were waiting for answers.
    fn leads(&mut self, until: Timestamp) -> bool {
        let leads = self.clock.now() < until;
        if !leads {
            self.again(DECIDE_AGAIN_AFTER);
        }
        leads
    }

    /// Those that may begin on what we see: nothing voluntary while a watch is silent.
    fn seen_lately(&mut self, starts: Vec<Begun>) -> Vec<Begun> {
        let silent = unheard(&self.cluster.view(), &GRANTING, self.now).is_some();
        let (kept, withheld): (Vec<Begun>, Vec<Begun>) = starts
            .into_iter()
            .partition(|it| !silent || !it.recorded.replacement.cause.voluntary());
        if !withheld.is_empty() {
            self.again(WRITE_AGAIN_AFTER);
        }
        kept
    }

    fn again(&mut self, wait: SignedDuration) {
        let at = after(self.now, wait);
        self.again_at = Some(self.again_at.map_or(at, |it| it.min(at)));
    }

    fn wrote<T>(&mut self, what: &str, answer: Result<T, ClusterError>) -> Option<T> {
        self.writes = self.writes.saturating_add(1);
        match answer {
            Ok(value) => Some(value),
            Err(error) => {
                self.again(match error.remedy() {
                    Remedy::DecideAgain => DECIDE_AGAIN_AFTER,
                    Remedy::TryAgain | Remedy::TryElsewhere | Remedy::AskPerson => {
                        WRITE_AGAIN_AFTER
                    }
                });
                self.failed.push((what.to_owned(), error));
                None
            }
        }
    }

    /// Images, before they are used. One that could not be remembered is tried again more and more rarely: an
    /// object of its name that cannot be read is a person's to mend.
    async fn remember(&mut self, memory: &mut Memory, images: &[NewMemory], lease_ends: Timestamp) {
        let tried = std::mem::take(&mut memory.unremembered);
        for it in images {
            let (until, times) = tried.get(&it.image).copied().unwrap_or((self.now, 0));
            let again = if self.now < until {
                self.again(until.duration_since(self.now));
                (until, times)
            } else if !self.leads(lease_ends) {
                (until, times)
            } else {
                let answer = self.cluster.remember(it).await;
                if self.wrote(it.image.as_str(), answer).is_some() {
                    continue;
                }
                let wait = wait_after(times, DECIDE_AGAIN_AFTER, REMEMBER_AGAIN_MAX);
                (after(self.now, wait), times.saturating_add(1))
            };
            memory.unremembered.insert(it.image.clone(), again);
        }
    }

    /// Whether we lead, in an epoch that stands in the ledger. On becoming leader it is raised there
    /// before anything is decided.
    async fn take_office(&mut self, memory: &mut Memory, records: &mut Records) -> bool {
        if !memory.leads(self.clock.now()) {
            // The lease may have been renewed while the records were read, and this memory was not told yet.
            self.again(DECIDE_AGAIN_AFTER);
            return false;
        }
        let ours = memory.epoch();
        let stands = records.ledger.revision.is_some() && ours == Some(records.ledger.epoch);
        if stands {
            memory.paused.clone_from(&records.ledger.pause);
            memory.locked = records.ledger.locked().cloned();
            return true;
        }
        if ours.is_some_and(|it| it < records.ledger.epoch) {
            // Somebody took over. If the lease says that it is us again, it is another term.
            memory.deposed();
            self.again(DECIDE_AGAIN_AFTER);
            return false;
        }
        let raised = {
            let view = self.cluster.view();
            let halted = (memory.paused.as_ref(), memory.locked.as_ref());
            ledger::raised(records, ours, halted, class_of_pool(&view), self.now)
        };
        let answer = self.cluster.write_ledger(&raised).await;
        if self.wrote("ledger", answer).is_none() {
            return false;
        }
        if ours.is_none() {
            memory.begin();
        }
        memory.raised(raised.epoch);
        // Until now somebody else may have written records.
        match self.cluster.records().await {
            Ok(read) => *records = read,
            Err(error) => {
                memory.cut_off();
                self.failed.push(("records".to_owned(), error));
                self.again(DECIDE_AGAIN_AFTER);
                return false;
            }
        }
        records.ledger.revision.is_some() && records.ledger.epoch == raised.epoch
    }

    /// One compare-and-swap for all grants of the turn: who of those that begin is granted, by name. `None`
    /// if it lost.
    async fn settle(
        &mut self,
        cluster: &C,
        records: &mut Records,
        begun: &[Begun],
        cooldown_max: SignedDuration,
    ) -> Option<BTreeSet<String>> {
        let Settled { ledger, granted } = {
            let view = cluster.view();
            let there =
                |old: &Old| view.claims.get(&old.claim).is_some_and(|it| it.uid == old.claim_uid);
            let class_of_pool = class_of_pool(&view);
            ledger::settled(records, begun, cooldown_max, class_of_pool, there, self.now)
        };
        if ledger == records.ledger {
            return Some(granted);
        }
        let answer = cluster.write_ledger(&ledger).await;
        let revision = self.wrote("ledger", answer)?;
        records.ledger = Ledger { revision: Some(revision), ..ledger };
        Some(granted)
    }
}

/// Nothing where there is no such pool.
fn class_of_pool(view: &View) -> impl Fn(Option<&str>) -> String {
    move |pool: Option<&str>| {
        let pool = pool.and_then(|it| view.pools.get(it));
        pool.map(|it| it.class.to_string()).unwrap_or_default()
    }
}
