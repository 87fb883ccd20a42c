//! Who performs, and may they still?
//!
//! An act was decided on what was known then. Right before it a hand asks again: is anything paused or
//! locked, does the same leader lead, is the record still where it was? No destructive call is ever made
//! twice by a hand; whether it is needed again is the next turn's to see.

use std::collections::BTreeSet;

use nodemolt_core::drain::PodId;
use nodemolt_core::replace::Phase;

use crate::act::{Act, Done, Errand, Intent, Question};
use crate::port::{Cloud, Cluster, Records};
use crate::record::Recorded;
use crate::{Clock, Config, claims};

/// Who is in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hands {
    busy: BTreeSet<Intent>,
}

impl Hands {
    /// Whether an act of this intent may begin: not if one is in flight.
    pub fn begin(&mut self, intent: &Intent) -> bool {
        self.busy.insert(intent.clone())
    }

    pub fn finish(&mut self, intent: &Intent) {
        self.busy.remove(intent);
    }

    pub fn in_flight(&self) -> impl Iterator<Item = &Intent> {
        self.busy.iter()
    }
}

/// Performs one act, if nothing speaks against it any more.
pub async fn perform(
    act: &Act,
    _config: &Config,
    cloud: &impl Cloud,
    cluster: &impl Cluster,
    clock: &impl Clock,
) -> Done {
    if let Errand::Ask(question) = &act.errand {
        return ask(question, cloud).await;
    }
    if clock.now() >= act.leads_until {
        return Done::Withheld("our lease has run out".to_owned());
    }
    let records = match cluster.records().await {
        Ok(records) => records,
        Err(error) => return Done::Withheld(format!("could not read the records: {error}")),
    };
    if let Err(why) = may(act, &records) {
        return Done::Withheld(why);
    }
    // Reading took time.
    if clock.now() >= act.leads_until {
        return Done::Withheld("our lease has run out".to_owned());
    }
    match &act.errand {
        Errand::Ask(question) => ask(question, cloud).await,
        Errand::MakeClaim { claim, .. } | Errand::MakeRoom { claim } => {
            Done::Made(cluster.create_claim(claim).await)
        }
        Errand::Cordon { replacement, node } => {
            Done::Written(cluster.cordon(node, replacement).await)
        }
        Errand::Uncordon { replacement, node } => {
            Done::Written(cluster.uncordon(node, replacement).await)
        }
        Errand::Evict { pod, .. } => Done::Evicted(cluster.evict(pod).await),
        Errand::DeletePod { pod, grace_seconds, .. } => {
            Done::Written(cluster.delete_pod(pod, *grace_seconds).await)
        }
        Errand::DeleteOld { claim, uid, .. } | Errand::DeleteSuccessor { claim, uid, .. } => {
            Done::Written(cluster.delete_claim(claim, uid).await)
        }
        Errand::Claim(claim) => {
            Done::Claim(claims::perform(claim, cloud, cluster, || clock.now()).await)
        }
    }
}

async fn ask(question: &Question, cloud: &impl Cloud) -> Done {
    match question {
        Question::Images(query) => Done::Observed(Box::new(cloud.ask(query).await)),
        Question::Offered => Done::Offered(cloud.offered().await.map(Box::new)),
        Question::Network(ask) => Done::Network(cloud.network(ask).await),
        Question::Machines => Done::Machines(cloud.machines().await),
    }
}

/// Whether an act may still be performed, by what stands in the records now.
fn may(act: &Act, records: &Records) -> Result<(), String> {
    let ledger = &records.ledger;
    if ledger.epoch != act.epoch {
        return Err(format!("epoch {} has begun since epoch {}", ledger.epoch, act.epoch));
    }
    if act.voluntary
        && let Some(pause) = &ledger.pause
    {
        return Err(format!("paused: {}", pause.reason));
    }
    if act.voluntary
        && let Some(lock) = ledger.locked()
    {
        return Err(format!("locked: {}", lock.reason));
    }
    let find = |name: &str| {
        records.replacements.get(name).ok_or_else(|| format!("Replacement {name} is not there"))
    };
    match &act.errand {
        Errand::Ask(_) | Errand::Claim(_) | Errand::MakeRoom { .. } => Ok(()),
        Errand::MakeClaim { replacement, claim } => {
            let record = find(replacement)?;
            let listed = record.replacement.successors.iter().any(|it| it.claim == claim.name);
            if !listed {
                return Err(format!("Replacement {replacement} has other successors"));
            }
            in_phase(record, &[Phase::Launching, Phase::Joining, Phase::Draining])
        }
        Errand::Cordon { replacement, .. } => {
            granted(records, replacement)?;
            in_phase(find(replacement)?, &[Phase::Draining, Phase::Terminating])
        }
        Errand::Evict { replacement, .. } => {
            granted(records, replacement)?;
            in_phase(find(replacement)?, &[Phase::Draining])
        }
        Errand::DeletePod { replacement, pod, .. } => {
            let record = find(replacement)?;
            in_phase(record, &[Phase::Draining])?;
            recorded_force(record, pod)
        }
        Errand::DeleteOld { replacement, .. } => {
            granted(records, replacement)?;
            in_phase(find(replacement)?, &[Phase::Terminating])
        }
        Errand::Uncordon { replacement, .. } => match given_up(records, replacement)? {
            // Ended or deleted: then nobody counts on the cordon.
            None => Ok(()),
            Some(it) if it.replacement.phase.ended() => Ok(()),
            Some(it) => in_phase(
                it,
                &[Phase::Launching, Phase::Joining, Phase::Settling, Phase::Retreating],
            ),
        },
        Errand::DeleteSuccessor { replacement, claim, .. } => {
            let Some(record) = given_up(records, replacement)? else { return Ok(()) };
            let phase = record.replacement.phase;
            let listed = record.replacement.successors.iter().any(|it| it.claim == *claim);
            let given_up = matches!(
                phase,
                Phase::Retreating | Phase::Failed | Phase::Skipped | Phase::Cancelled
            );
            if given_up || !listed {
                Ok(())
            } else {
                Err(format!("Replacement {replacement} is {} and counts on it", phase.as_str()))
            }
        }
    }
}

/// The record, if there is one. One that cannot be read holds what it held.
fn given_up<'r>(records: &'r Records, name: &str) -> Result<Option<&'r Recorded>, String> {
    match records.unreadable.get(name) {
        Some(why) => Err(format!("Replacement {name} cannot be read: {why}")),
        None => Ok(records.replacements.get(name)),
    }
}

fn granted(records: &Records, replacement: &str) -> Result<(), String> {
    if records.ledger.grants.contains_key(replacement) {
        Ok(())
    } else {
        Err(format!("Replacement {replacement} is not granted"))
    }
}

fn in_phase(record: &Recorded, phases: &[Phase]) -> Result<(), String> {
    let phase = record.replacement.phase;
    if phases.contains(&phase) {
        Ok(())
    } else {
        Err(format!("Replacement {} is {}", record.name, phase.as_str()))
    }
}

fn recorded_force(record: &Recorded, pod: &PodId) -> Result<(), String> {
    let forced = record.drain.as_ref().is_some_and(|it| it.forced.iter().any(|(id, _)| id == pod));
    if forced { Ok(()) } else { Err(format!("that pod {pod} is forced is not recorded")) }
}
