//! What did we write down, and how is it written?
//!
//! `Replacement ↔ replacement`, `DisruptionLedger ↔ ledger`
//!
//! Both ways and without loss: what is decided next depends on nothing else. What a record holds for
//! people only (images, how far the drain is) is left as it stands.

use jiff::Timestamp;
use nodemolt_core::budget::{self, Closed, Granted, Grants, Ledger};
use nodemolt_core::drain::AtLimit;
use nodemolt_core::replace::{self, Because, Old, Order};

use crate::disruptionledger::{
    ClosedGrant, DisruptionLedger, DisruptionLedgerStatus, Grant, GrantKind, Lock,
};
use crate::imagepolicy::{DrainLimitAction, ReplacementOrder};
use crate::into_core::Reader;
use crate::problem::Finding;
use crate::replacement::{
    Cause, ClaimReference, Phase, PhaseReason, ReasonWord, Replacement, ReplacementSpec,
    ReplacementStatus, Successor,
};
use crate::shape::SENTENCE_LENGTH_MAX;

/// The schema's limits, in characters.
const NAME_MAX: u32 = 253;
const POD_MAX: u32 = 317;
const SUCCESSORS_MAX: usize = 100;
const CLOSED_MAX: usize = 1000;

/// And so many budgets of one grant.
const BUDGETS_MAX: usize = 100;

impl ReplacementSpec {
    /// Whose replacement it is. It never changes.
    pub fn of(old: &Old, pool: Option<&str>) -> Self {
        Self {
            claim: ClaimReference { name: old.claim.clone(), uid: old.claim_uid.clone() },
            node: (old.node != old.claim).then(|| old.node.clone()),
            pool: pool.map(ToOwned::to_owned),
        }
    }
}

impl ReplacementStatus {
    /// Write down where a replacement stands, and leave the rest as it is.
    pub fn record(&mut self, replacement: &replace::Replacement) {
        let replace::Replacement {
            old: _, // It stands in the spec.
            cause,
            order,
            at_limit,
            tries,
            failures,
            successors,
            phase,
            since,
            because,
        } = replacement;
        let tries = i64::from(*tries);
        if self.try_number != Some(tries) {
            self.started_at = Some(since.to_string());
            self.drain = None;
        }
        self.phase = Some((*phase).into());
        self.phase_since = Some(since.to_string());
        self.because = Some(cut(&because.to_string(), SENTENCE_LENGTH_MAX));
        self.reason = Some(because.into());
        self.cause = Some((*cause).into());
        self.order = Some((*order).into());
        self.drain_limit_action = Some((*at_limit).into());
        self.try_number = Some(tries);
        self.failures = Some(i64::from(*failures));
        self.ended_at = phase.ended().then(|| since.to_string());
        self.next_try_at = replacement.next_try_at().map(|it| it.to_string());
        let before = std::mem::take(&mut self.successors);
        self.successors = successors
            .iter()
            .map(|it| {
                let known = before.iter().find(|known| known.name == it.claim);
                Successor {
                    name: it.claim.clone(),
                    uid: it.uid.clone(),
                    try_number: Some(tries),
                    ..known.cloned().unwrap_or_default()
                }
            })
            .collect();
        let earlier = before.into_iter().filter(|it| {
            it.try_number.is_some_and(|it| it != tries)
                && !successors.iter().any(|new| new.claim == it.name)
        });
        self.successors.extend(earlier);
        self.successors.truncate(SUCCESSORS_MAX.max(successors.len()));
    }
}

impl TryFrom<&Replacement> for replace::Replacement {
    type Error = Vec<Finding>;

    fn try_from(wire: &Replacement) -> Result<Self, Self::Error> {
        let mut reader = Reader::new();
        let ReplacementSpec { claim, node, pool: _ } = &wire.spec;
        let old = Old {
            node: node.as_ref().unwrap_or(&claim.name).clone(),
            claim: claim.name.clone(),
            claim_uid: claim.uid.clone(),
        };
        let empty = ReplacementStatus::default();
        let status = wire.status.as_ref().unwrap_or(&empty);
        let phase = reader.present("status.phase", status.phase);
        let since = reader
            .present("status.phaseSince", status.phase_since.as_ref())
            .and_then(|it| reader.time("status.phaseSince", it));
        let cause = reader.present("status.cause", status.cause);
        let order = reader.present("status.order", status.order);
        let at_limit = reader.present("status.drainLimitAction", status.drain_limit_action);
        let tries = reader.present("status.try", status.try_number).and_then(|it| {
            let read = u32::try_from(it).ok().filter(|it| *it > 0);
            if read.is_none() {
                let message = format!("{it} is not the number of a try; tries count from 1");
                reader.found.push(Finding::error("status.try", message));
            }
            read
        });
        let failures = status.failures.map(|it| u32::try_from(it).unwrap_or_default());
        // Of a record that does not say it: as if every try before had failed.
        let failures = failures.or_else(|| {
            let failed = phase.is_some_and(|it| replace::Phase::from(it).failed());
            tries.map(|it| it.saturating_sub(u32::from(!failed)))
        });
        let reason = reader.present("status.reason", status.reason.as_ref());
        let because = reason.and_then(|it| because(&mut reader, it));
        let of_this_try =
            |it: &&Successor| it.try_number.is_none() || it.try_number == status.try_number;
        let successors = status.successors.iter().filter(of_this_try).map(|it| {
            let Successor { name, uid, .. } = it;
            replace::Successor { claim: name.clone(), uid: uid.clone() }
        });
        let successors = successors.collect();
        let read = (|| {
            Some(Self {
                old,
                cause: cause?.into(),
                order: order?.into(),
                at_limit: at_limit?.into(),
                tries: tries?,
                failures: failures?,
                successors,
                phase: phase?.into(),
                since: since?,
                because: because?,
            })
        })();
        reader.finish(read)
    }
}

/// Enums of the same members on both sides.
macro_rules! same_words {
    ($wire:ty, $core:ty: $($word:ident = $other:ident),* $(,)?) => {
        impl From<$core> for $wire {
            fn from(it: $core) -> Self {
                match it {
                    $(<$core>::$other => Self::$word,)*
                }
            }
        }

        impl From<$wire> for $core {
            fn from(it: $wire) -> Self {
                match it {
                    $(<$wire>::$word => Self::$other,)*
                }
            }
        }
    };
}

same_words!(Phase, replace::Phase:
    Launching = Launching, Joining = Joining, Settling = Settling, Draining = Draining,
    Terminating = Terminating, Retreating = Retreating, Done = Done, Failed = Failed,
    Skipped = Skipped, Kept = Kept, Cancelled = Cancelled,
);
same_words!(Cause, replace::Cause:
    Drift = Drift, Expiry = Expiry, Upgrade = Asked, Delete = Deleted, Interruption = Interrupted,
);
same_words!(GrantKind, budget::GrantKind:
    Replacement = Replacement, Delete = Deleted, Interruption = Interrupted, Emptiness = Empty,
    Consolidation = Consolidation,
);
same_words!(ReplacementOrder, Order:
    SuccessorFirst = SuccessorFirst, DeleteFirst = DeleteFirst,
);
same_words!(DrainLimitAction, AtLimit: Skip = Skip, Wait = Wait, Force = Force);

impl From<&Because> for PhaseReason {
    fn from(because: &Because) -> Self {
        let plain = |word| Self { word, claim: None, pod: None, pods: None, detail: None };
        let about = |word, claim: &str| Self { claim: Some(cut(claim, NAME_MAX)), ..plain(word) };
        let say = |detail: &str| Some(cut(detail, SENTENCE_LENGTH_MAX));
        match because {
            // A step that waits changes no phase, so none begins because of one.
            Because::Begun | Because::WaitsFor(_) => plain(ReasonWord::Begun),
            Because::SuccessorsLaunched => plain(ReasonWord::SuccessorsLaunched),
            Because::SuccessorsReady => plain(ReasonWord::SuccessorsReady),
            Because::PlacementHolds => plain(ReasonWord::PlacementHolds),
            Because::DecideAgain => plain(ReasonWord::DecideAgain),
            Because::Drained => plain(ReasonWord::Drained),
            Because::OldGone => plain(ReasonWord::OldGone),
            Because::OldDeleted => plain(ReasonWord::OldDeleted),
            Because::PodsCameBack { pods } => Self {
                pods: Some(i64::try_from(*pods).unwrap_or(i64::MAX)),
                ..plain(ReasonWord::PodsCameBack)
            },
            Because::NoLongerWanted => plain(ReasonWord::NoLongerWanted),
            Because::NotGranted => plain(ReasonWord::NotGranted),
            Because::LaunchGaveUp { claim, why } => {
                Self { detail: say(why), ..about(ReasonWord::LaunchGaveUp, claim) }
            }
            Because::LaunchTooSlow { claim } => about(ReasonWord::LaunchTooSlow, claim),
            Because::NeverRegistered { claim } => about(ReasonWord::NeverRegistered, claim),
            Because::NeverReady { claim } => about(ReasonWord::NeverReady, claim),
            Because::Flapping { claim } => about(ReasonWord::Flapping, claim),
            Because::SuccessorGone { claim } => about(ReasonWord::SuccessorGone, claim),
            Because::SuccessorLost { claim } => about(ReasonWord::SuccessorLost, claim),
            Because::SuccessorDied { claim, node } => {
                Self { detail: say(node), ..about(ReasonWord::SuccessorDied, claim) }
            }
            Because::NoPlaceAnyMore { pod, because } => Self {
                pod: Some(cut(pod, POD_MAX)),
                detail: say(because),
                ..plain(ReasonWord::NoPlaceAnyMore)
            },
            Because::SuccessorCordoned { pod, claim, node } => Self {
                pod: Some(cut(pod, POD_MAX)),
                detail: say(node),
                ..about(ReasonWord::SuccessorCordoned, claim)
            },
            Because::HeldBack { pod, why } => Self {
                pod: pod.as_ref().map(|it| cut(it, POD_MAX)),
                detail: say(why),
                ..plain(ReasonWord::HeldBack)
            },
            Because::Protected { why } => Self { detail: say(why), ..plain(ReasonWord::Protected) },
            Because::DrainLimit { pod } => {
                Self { pod: Some(cut(pod, POD_MAX)), ..plain(ReasonWord::DrainLimit) }
            }
        }
    }
}

fn because(reader: &mut Reader, reason: &PhaseReason) -> Option<Because> {
    let PhaseReason { word, claim, pod, pods, detail } = reason;
    let mut claim = || reader.present("status.reason.claim", claim.clone());
    let detail = || detail.clone().unwrap_or_default();
    Some(match word {
        ReasonWord::Begun => Because::Begun,
        ReasonWord::SuccessorsLaunched => Because::SuccessorsLaunched,
        ReasonWord::SuccessorsReady => Because::SuccessorsReady,
        ReasonWord::PlacementHolds => Because::PlacementHolds,
        ReasonWord::DecideAgain => Because::DecideAgain,
        ReasonWord::Drained => Because::Drained,
        ReasonWord::OldGone => Because::OldGone,
        ReasonWord::OldDeleted => Because::OldDeleted,
        ReasonWord::PodsCameBack => {
            let pods = reader.present("status.reason.pods", *pods)?;
            Because::PodsCameBack { pods: usize::try_from(pods).unwrap_or_default() }
        }
        ReasonWord::NoLongerWanted => Because::NoLongerWanted,
        ReasonWord::NotGranted => Because::NotGranted,
        ReasonWord::LaunchGaveUp => Because::LaunchGaveUp { claim: claim()?, why: detail() },
        ReasonWord::LaunchTooSlow => Because::LaunchTooSlow { claim: claim()? },
        ReasonWord::NeverRegistered => Because::NeverRegistered { claim: claim()? },
        ReasonWord::NeverReady => Because::NeverReady { claim: claim()? },
        ReasonWord::Flapping => Because::Flapping { claim: claim()? },
        ReasonWord::SuccessorGone => Because::SuccessorGone { claim: claim()? },
        ReasonWord::SuccessorLost => Because::SuccessorLost { claim: claim()? },
        ReasonWord::SuccessorDied => Because::SuccessorDied { claim: claim()?, node: detail() },
        ReasonWord::NoPlaceAnyMore => Because::NoPlaceAnyMore {
            pod: reader.present("status.reason.pod", pod.clone())?,
            because: detail(),
        },
        ReasonWord::SuccessorCordoned => Because::SuccessorCordoned {
            claim: claim()?,
            pod: reader.present("status.reason.pod", pod.clone())?,
            node: detail(),
        },
        ReasonWord::Protected => Because::Protected { why: detail() },
        ReasonWord::HeldBack => Because::HeldBack { pod: pod.clone(), why: detail() },
        ReasonWord::DrainLimit => {
            Because::DrainLimit { pod: reader.present("status.reason.pod", pod.clone())? }
        }
    })
}

/// What the schema has room for. What is cut was for people.
pub fn cut(text: &str, chars_max: u32) -> String {
    match text.char_indices().nth(chars_max as usize) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

impl TryFrom<&DisruptionLedger> for Ledger {
    type Error = Vec<Finding>;

    fn try_from(wire: &DisruptionLedger) -> Result<Self, Self::Error> {
        let mut reader = Reader::new();
        let empty = DisruptionLedgerStatus::default();
        let status = wire.status.as_ref().unwrap_or(&empty);
        let mut ledger = Self {
            epoch: epoch(&mut reader, "status.epoch", status.epoch.unwrap_or_default()),
            ..Self::default()
        };
        for (at, grant) in status.grants.iter().enumerate() {
            let field = format!("status.grants[{at}]");
            let Some(since) = reader.time(&format!("{field}.since"), &grant.since) else {
                continue;
            };
            let granted = Granted {
                node: grant.node_name.clone(),
                pool: grant.node_pool.clone(),
                cpu_millis: grant.node_cpu_millis.and_then(|it| u64::try_from(it).ok()),
                taken_from: grant.disruption_budgets.iter().cloned().collect(),
                kind: grant.kind.into(),
                epoch: epoch(&mut reader, &format!("{field}.epoch"), grant.epoch),
                since,
            };
            if ledger.grants.insert(grant.holder.clone(), granted).is_some() {
                let message = format!("`{}` holds a grant already", grant.holder);
                reader.found.push(Finding::error(format!("{field}.holder"), message));
            }
        }
        for (at, closed) in status.closed.iter().enumerate() {
            let field = format!("status.closed[{at}]");
            let since = reader.time(&format!("{field}.since"), &closed.since);
            let ended_at = reader.time(&format!("{field}.endedAt"), &closed.ended_at);
            ledger.closed.extend(since.zip(ended_at).map(|(since, ended_at)| Closed {
                node: closed.node_name.clone(),
                class: closed.node_class.clone(),
                since,
                ended_at,
            }));
        }
        // When it began is for people: what cannot be read there must not end a pause.
        ledger.pause = wire.spec.pause.as_ref().map(|it| budget::Pause {
            reason: it.reason.clone(),
            by: it.by.clone(),
            since: it.since.as_deref().and_then(crate::into_core::read_time),
        });
        let lock = status.lock.as_ref();
        ledger.lock =
            lock.filter(|it| wire.spec.released_lock.as_ref() != Some(&it.id)).map(|it| {
                let since = reader.time("status.lock.since", &it.since).unwrap_or(Timestamp::MIN);
                budget::Lock { id: it.id.clone(), reason: it.reason.clone(), since }
            });
        reader.finish(Some(ledger))
    }
}

impl TryFrom<&DisruptionLedger> for Grants {
    type Error = Vec<Finding>;

    fn try_from(wire: &DisruptionLedger) -> Result<Self, Self::Error> {
        Ledger::try_from(wire).map(|it| it.grants())
    }
}

fn epoch(reader: &mut Reader, field: &str, written: i64) -> u64 {
    u64::try_from(written).unwrap_or_else(|_| {
        reader.found.push(Finding::error(field, format!("{written} is not an epoch")));
        0
    })
}

impl DisruptionLedgerStatus {
    /// Write down what is granted, and leave conditions as they are. The pause is people's to write.
    pub fn record(&mut self, ledger: &Ledger) {
        let Ledger { epoch, grants, closed, pause: _, lock } = ledger;
        let wide = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
        self.epoch = Some(wide(*epoch));
        self.granted = Some(i64::try_from(grants.len()).unwrap_or(i64::MAX));
        self.grants = grants
            .iter()
            .map(|(holder, it)| Grant {
                holder: holder.clone(),
                kind: it.kind.into(),
                epoch: wide(it.epoch),
                since: it.since.to_string(),
                node_name: it.node.clone(),
                node_pool: it.pool.clone(),
                node_cpu_millis: it.cpu_millis.and_then(|it| i64::try_from(it).ok()),
                disruption_budgets: it.taken_from.iter().take(BUDGETS_MAX).cloned().collect(),
            })
            .collect();
        let mut newest: Vec<&Closed> = closed.iter().collect();
        if newest.len() > CLOSED_MAX {
            newest.sort_by_key(|it| (it.ended_at, it.since, &it.node));
            newest.drain(..newest.len() - CLOSED_MAX);
        }
        self.closed = newest
            .into_iter()
            .map(|it| ClosedGrant {
                node_name: it.node.clone(),
                node_class: it.class.clone(),
                since: it.since.to_string(),
                ended_at: it.ended_at.to_string(),
            })
            .collect();
        self.lock = lock.as_ref().map(|it| Lock {
            id: it.id.clone(),
            reason: cut(&it.reason, SENTENCE_LENGTH_MAX),
            since: it.since.to_string(),
        });
    }
}
