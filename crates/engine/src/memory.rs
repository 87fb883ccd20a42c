//! What do we know that would only cost time to learn again?
//!
//! Answers of EC2 with their times and outcomes, back-off, paces, and what was read of objects that have
//! not changed since. All of it may be lost at any moment: what would cost safety has an object of its own.

mod answer;
mod images;
mod last;
mod pace;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::Apart;
use nodemolt_core::drain::PodId;
use nodemolt_core::image::ImageId;
use nodemolt_core::seen::{ClassKey, MachineId, NetworkAsk};

pub(crate) use answer::{Answer, wait_after};
pub(crate) use images::Images;
pub(crate) use last::Last;
pub(crate) use pace::Pace;

use crate::act::{Act, Done, Errand, Question};
use crate::claims;
use crate::counted::Selected;
use crate::decide::classes::{Resolved, TypesByFamily, Words};
use crate::decide::fleet::Readings;
use crate::decide::going::Draft;
use crate::decide::placing::Verdicts;
use crate::decide::pools::Shelf;
use crate::decide::roll::Roll;
use crate::port::{EvictAnswer, Leadership, Machine, Network, NewClaim, Offered, Remedy, Status};
use crate::record::{Lock, Pause};

/// How long a pod that was asked to go is left in peace, before its eviction is asked for again: the
/// answer may be on its way to our eyes, and the API server counts an accepted eviction for two minutes.
const EVICTED_FOR: SignedDuration = SignedDuration::from_mins(2);

/// A budget that holds a pod is asked again after this, doubling: nothing tells us when it opens.
const HELD_FIRST: SignedDuration = SignedDuration::from_secs(5);
const HELD_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Who could not be asked for so long is in trouble of its own: from then on the drain limit counts.
const HINDERED_MAX: SignedDuration = SignedDuration::from_mins(30);

/// A lease is renewed every five seconds. Whoever has missed two was cut off, though it is the leader still.
const RENEWED_WITHIN: SignedDuration = SignedDuration::from_secs(15);

/// That we have made a claim is of interest until every watch has told it; that is minutes.
const MADE_FOR: SignedDuration = SignedDuration::from_hours(6);

/// May be lost at any time, which costs only delay.
#[derive(Debug, Default)]
pub struct Memory {
    term: Option<Term>,
    pub(crate) images: Images,
    pub(crate) offered: Answer<Offered>,
    pub(crate) networks: BTreeMap<NetworkAsk, Answer<Network>>,
    pub(crate) machines: Answer<Listed>,
    /// Marks where there was no capacity, refusals, rests.
    pub(crate) claims: claims::Memory,
    pub(crate) pace: Pace,
    pub(crate) classes: BTreeMap<ClassKey, Resolved>,
    pub(crate) types: TypesByFamily,
    /// What follows from the words of each class.
    pub(crate) words: BTreeMap<ClassKey, Words>,
    /// By pool.
    pub(crate) shelves: BTreeMap<String, Shelf>,
    pub(crate) readings: Readings,
    pub(crate) selected: Selected,
    pub(crate) roll: Arc<Roll>,
    pub(crate) loud: claims::Loud,
    pub(crate) verdicts: Verdicts,
    /// By the claim's UID: since when a node has drifted.
    pub(crate) drifted_since: BTreeMap<String, Timestamp>,
    /// Successors that were decided and perhaps not made yet, by name.
    pub(crate) drafts: BTreeMap<String, Draft>,
    /// Nodes for pods that we moved, from their decision until they are seen, by name; and since when.
    pub(crate) rooms: BTreeMap<String, (NewClaim, Timestamp)>,
    /// Claims that we have made and may not see yet, by name: UID, and when.
    pub(crate) made: BTreeMap<String, (String, Timestamp)>,
    /// Pods that were asked to go, by UID: not again before this, and how often in a row.
    pub(crate) evicted: BTreeMap<String, (Timestamp, u32)>,
    /// By Replacement: when a pod of it was asked to leave and the API server said something about it, and
    /// when that could not be asked and nobody else was answered.
    pub(crate) asked: BTreeMap<String, Asked>,
    /// Successors of nodes that are being emptied, by claim: since when they are now ready and now not.
    pub(crate) unsteady: BTreeMap<String, Timestamp>,
    /// We could not look since the last turn, or could not say that we lead.
    cut_off: bool,
    /// The first turn after that.
    back_at: Option<Timestamp>,
    /// The last turn that could.
    looked_at: Option<Timestamp>,
    /// When this memory began: whoever has just begun knows little yet.
    pub(crate) began_at: Option<Timestamp>,
    /// Images that could not be remembered: not again before this, and how often in a row.
    pub(crate) unremembered: BTreeMap<ImageId, (Timestamp, u32)>,
    /// What was written last of each object, by kind and name.
    pub(crate) told: BTreeMap<(&'static str, String), Status>,
    /// What held in the ledger that we read last: whoever deletes that has not taken it back.
    pub(crate) paused: Option<Pause>,
    pub(crate) locked: Option<Lock>,
    /// Our clock and the API server's, while they are too far apart.
    pub(crate) apart: Option<Apart>,
}

/// What became of asking the pods of one node to leave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    answered_at: Option<Timestamp>,
    hindered_since: Option<Timestamp>,
    hindered_at: Option<Timestamp>,
    /// Since when nobody was answered, and what was said last, for people.
    failing: Option<(Timestamp, String)>,
}

/// A list of machines. What has not changed since the list before is the same value.
pub(crate) type Listed = BTreeMap<MachineId, Arc<Machine>>;

/// For as long as we lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Term {
    transitions: u64,
    until: Timestamp,
    /// Known once it was raised in the ledger.
    epoch: Option<u64>,
}

impl Memory {
    /// For whoever looks and must leave no mark: what was learned, without what was worked out from it.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self {
            term: self.term,
            images: self.images.clone(),
            offered: self.offered.clone(),
            networks: self.networks.clone(),
            machines: self.machines.clone(),
            claims: self.claims.clone(),
            pace: self.pace.clone(),
            classes: BTreeMap::new(),
            types: TypesByFamily::new(),
            words: BTreeMap::new(),
            shelves: BTreeMap::new(),
            readings: Readings::default(),
            selected: Selected::default(),
            roll: Arc::default(),
            loud: claims::Loud::default(),
            verdicts: self.verdicts.clone(),
            drifted_since: self.drifted_since.clone(),
            drafts: self.drafts.clone(),
            rooms: self.rooms.clone(),
            made: self.made.clone(),
            evicted: self.evicted.clone(),
            asked: self.asked.clone(),
            unsteady: self.unsteady.clone(),
            cut_off: self.cut_off,
            back_at: self.back_at,
            looked_at: self.looked_at,
            began_at: self.began_at,
            unremembered: self.unremembered.clone(),
            told: self.told.clone(),
            paused: self.paused.clone(),
            locked: self.locked.clone(),
            apart: self.apart,
        }
    }

    /// What the lease says. Who does not lead decides nothing and has no acts.
    pub fn lead(&mut self, leadership: &Leadership) {
        self.term = match leadership {
            Leadership::Follows { .. } => None,
            Leadership::Leads { until, transitions } => {
                self.cut_off |=
                    self.term.is_some_and(|it| until.duration_since(it.until) > RENEWED_WITHIN);
                // A lease that changed hands in between is another term, though it is ours again.
                let same = self.term.filter(|it| it.transitions == *transitions);
                let epoch = same.and_then(|it| it.epoch);
                Some(Term { transitions: *transitions, until: *until, epoch })
            }
        };
    }

    /// Nothing could be read: what was to be done meanwhile was not.
    pub(crate) fn cut_off(&mut self) {
        self.cut_off = true;
    }

    /// A turn that can look.
    pub(crate) fn looks(&mut self, now: Timestamp) {
        // One answer that was lost holds up nobody for long.
        let long = self.looked_at.is_none_or(|it| after(it, HELD_MAX) < now);
        if std::mem::take(&mut self.cut_off) && long {
            self.back_at = Some(now);
        }
        self.looked_at = Some(now);
    }

    /// When the pods of a Replacement could last not be asked to leave, as far as we remember.
    pub(crate) fn hindered_at(&self, replacement: &str) -> Option<Timestamp> {
        let asked = self.asked.get(replacement).and_then(|it| it.hindered_at);
        asked.max(self.back_at)
    }

    /// Since when the pods of a Replacement cannot be asked to leave, and why.
    pub(crate) fn hindered_by(&self, replacement: &str) -> Option<(Timestamp, String)> {
        self.asked.get(replacement)?.failing.clone()
    }

    /// Whether the lease is ours and has not run out, by our own clock.
    pub fn leads(&self, now: Timestamp) -> bool {
        self.term.is_some_and(|it| now < it.until)
    }

    /// The epoch that was raised in the ledger since we lead.
    pub fn epoch(&self) -> Option<u64> {
        self.term.and_then(|it| it.epoch)
    }

    /// When the lease ends, unless it is renewed.
    pub(crate) fn leads_until(&self) -> Timestamp {
        self.term.map_or(Timestamp::MIN, |it| it.until)
    }

    /// Another leader's epoch stands in the ledger.
    pub(crate) fn deposed(&mut self) {
        if let Some(term) = &mut self.term {
            term.epoch = None;
        }
    }

    /// A new term begins with what a new process would know: what was learned in an earlier one may be older than what
    /// others have done since.
    pub(crate) fn begin(&mut self) {
        let Self { term, pace, paused, locked, apart, .. } = std::mem::take(self);
        *self = Self { term, pace, paused, locked, apart, ..Self::default() };
    }

    pub(crate) fn raised(&mut self, epoch: u64) {
        if let Some(term) = &mut self.term {
            term.epoch = Some(epoch);
        }
    }

    /// What came of an act is one more observation.
    pub fn done(&mut self, act: &Act, done: Done, now: Timestamp) {
        match (&act.errand, done) {
            (Errand::Ask(question), done) => self.heard(question, done, act.decided_at, now),
            (Errand::Claim(act), Done::Claim(done)) => self.claims.learn(act, &done, now),
            (Errand::Claim(act), Done::Withheld(why)) => {
                self.claims.learn(act, &claims::ClaimDone::Withheld(why), now);
            }
            (Errand::Claim(act), _) => self.claims.learn(act, &claims::ClaimDone::Late, now),
            (Errand::MakeClaim { claim, .. } | Errand::MakeRoom { claim }, Done::Made(Ok(uid))) => {
                self.made.insert(claim.name.clone(), (uid, now));
            }
            (Errand::Evict { replacement, pod }, done) => {
                self.could_ask(replacement, &done, now);
                self.asked_to_go(pod, &done, now);
            }
            (Errand::DeletePod { pod, .. }, _) => {
                self.evicted.insert(pod.uid.clone(), (after(now, EVICTED_FOR), 0));
            }
            // What became of these is seen in the cluster, and nowhere else.
            (
                Errand::MakeClaim { .. }
                | Errand::MakeRoom { .. }
                | Errand::Cordon { .. }
                | Errand::Uncordon { .. }
                | Errand::DeleteOld { .. }
                | Errand::DeleteSuccessor { .. },
                _,
            ) => {}
        }
        self.forget_old(now);
    }

    /// A list of machines counts from when it was asked for: what came later need not be on it.
    fn heard(&mut self, question: &Question, done: Done, asked_at: Timestamp, now: Timestamp) {
        match (question, done) {
            (Question::Images(query), Done::Observed(observation)) => {
                self.images.observe(query, *observation, now);
            }
            (Question::Images(query), _) => self.images.missed(query, now),
            (Question::Offered, Done::Offered(answer)) => {
                self.offered.hear(answer.map(|it| *it), now);
            }
            (Question::Offered, _) => self.offered.missed(now),
            (Question::Network(ask), Done::Network(answer)) => {
                self.networks.entry(ask.clone()).or_default().hear(answer, now);
            }
            (Question::Network(ask), _) => {
                self.networks.entry(ask.clone()).or_default().missed(now);
            }
            (Question::Machines, Done::Machines(answer)) => {
                let known = self.machines.value().map(Arc::clone);
                // What has not changed stays the same value, so that nobody reads it again.
                let kept = |it: Machine| {
                    let before = known.as_ref().and_then(|all| all.get(&it.id));
                    match before.filter(|before| ***before == it) {
                        Some(before) => (it.id, Arc::clone(before)),
                        None => (it.id.clone(), Arc::new(it)),
                    }
                };
                let listed = answer.map(|all| all.into_iter().map(kept).collect());
                self.machines.hear(listed, asked_at.min(now));
            }
            (Question::Machines, _) => self.machines.missed(now),
        }
    }

    /// One pod alone that cannot be asked is that pod's trouble, and the limit is there for it.
    fn could_ask(&mut self, replacement: &str, done: &Done, now: Timestamp) {
        let asked = self.asked.entry(replacement.to_owned()).or_default();
        let answered = match done {
            Done::Evicted(Ok(_)) => true,
            Done::Evicted(Err(error)) => error.remedy() != Remedy::TryAgain,
            Done::Withheld(_)
            | Done::Late
            | Done::Observed(_)
            | Done::Offered(_)
            | Done::Network(_)
            | Done::Machines(_)
            | Done::Made(_)
            | Done::Claim(_)
            | Done::Written(_) => false,
        };
        let failed = match done {
            Done::Evicted(Ok(_)) => None,
            Done::Evicted(Err(error)) => Some(error.to_string()),
            Done::Withheld(why) => Some(why.clone()),
            Done::Late => Some("no answer came in time".to_owned()),
            Done::Observed(_)
            | Done::Offered(_)
            | Done::Network(_)
            | Done::Machines(_)
            | Done::Made(_)
            | Done::Claim(_)
            | Done::Written(_) => Some("it was not asked".to_owned()),
        };
        let since = asked.failing.as_ref().map_or(now, |it| it.0);
        asked.failing = failed.map(|it| (since, it));
        if answered {
            asked.answered_at = Some(now);
            asked.hindered_since = None;
        } else if asked.answered_at.is_none_or(|it| after(it, HELD_MAX) < now) {
            let since = *asked.hindered_since.get_or_insert(now);
            if now < after(since, HINDERED_MAX) {
                asked.hindered_at = Some(now);
            }
        }
    }

    fn asked_to_go(&mut self, pod: &PodId, done: &Done, now: Timestamp) {
        let times = self.evicted.get(&pod.uid).map_or(0, |(_, times)| *times);
        let (until, times) = match done {
            Done::Evicted(Ok(EvictAnswer::Accepted | EvictAnswer::Gone | EvictAnswer::Another)) => {
                (after(now, EVICTED_FOR), 0)
            }
            Done::Evicted(Ok(EvictAnswer::Held { retry_after, .. })) => {
                let wait = wait_after(times, HELD_FIRST, HELD_MAX);
                (after(now, retry_after.map_or(wait, |it| it.max(wait))), times + 1)
            }
            Done::Evicted(
                Ok(EvictAnswer::SeveralBudgets { .. } | EvictAnswer::Forbidden { .. }) | Err(_),
            )
            | Done::Withheld(_)
            | Done::Late
            | Done::Observed(_)
            | Done::Offered(_)
            | Done::Network(_)
            | Done::Machines(_)
            | Done::Made(_)
            | Done::Claim(_)
            | Done::Written(_) => (after(now, wait_after(times, HELD_FIRST, HELD_MAX)), times + 1),
        };
        self.evicted.insert(pod.uid.clone(), (until, times));
    }

    fn forget_old(&mut self, now: Timestamp) {
        self.evicted.retain(|_, (until, _)| now < after(*until, EVICTED_FOR));
        self.made.retain(|_, (_, at)| now < after(*at, MADE_FOR));
        let last = |it: &Asked| it.answered_at.max(it.hindered_at);
        self.asked.retain(|_, it| last(it).is_some_and(|it| now < after(it, MADE_FOR)));
    }
}

pub(crate) fn after(since: Timestamp, length: SignedDuration) -> Timestamp {
    since.saturating_add(length).unwrap_or(Timestamp::MAX)
}
