//! Who performs, and may they still?
//!
//! An act was decided on what was known then. Right before it a hand asks again: is anything paused or
//! locked, does the same leader lead, is the record still where it was? Have watches told lately, are those
//! ready that take over, has everybody left? No destructive call is ever made twice by a hand; whether it
//! is needed again is the next turn's to see.

use std::collections::BTreeSet;

use jiff::Timestamp;
use nodemolt_core::claim::Gate;
use nodemolt_core::drain::{self, PodId};
use nodemolt_core::replace::{Old, Order, Phase, Replacement};
use nodemolt_core::seen::{Claim, DISRUPTED_TAINT, Kind, Node, Readiness, View};

use crate::act::{Act, Done, Errand, Intent, Question};
use crate::claims::{ClaimAct, Deed};
use crate::freshness::{DISTURBING, ENDING, GRANTING, LAUNCHING, silent};
use crate::port::{Cloud, Cluster, Object, Records};
use crate::record::Recorded;
use crate::{Clock, Config, claims, clock, counted};

/// Who is in flight, and who has come back since the last turn began.
///
/// How it is used: [`Hands::turn`] when a turn begins, [`Hands::begin`] for each of its acts, and
/// [`Hands::finish`] when one comes back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hands {
    busy: BTreeSet<Intent>,
    /// A turn that began before did not know what came of these when it decided.
    back: BTreeSet<Intent>,
}

impl Hands {
    /// A turn begins, that knows what came of every act so far.
    pub fn turn(&mut self) {
        self.back.clear();
    }

    /// Whether an act of this intent may begin: not if one is in flight, nor if one has come back while this
    /// act was being decided. The next turn decides about it again, and knows the answer.
    pub fn begin(&mut self, intent: &Intent) -> bool {
        !self.back.contains(intent) && self.busy.insert(intent.clone())
    }

    pub fn finish(&mut self, intent: &Intent) {
        self.busy.remove(intent);
        self.back.insert(intent.clone());
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
    let holds = match stands(act, cluster, clock).await {
        Ok(records) => {
            let now = clock::now(clock.now(), cluster.view().server_time);
            holds(act, &records, cluster, now).await
        }
        Err(why) => Err(why),
    };
    // Reading took time.
    if let Err(why) = holds.and_then(|()| leads(act, clock)) {
        return Done::Withheld(why);
    }
    match &act.errand {
        Errand::Ask(question) => ask(question, cloud).await,
        Errand::MakeClaim { claim, .. } | Errand::MakeRoom { claim } => {
            Done::Made(cluster.create_claim(claim).await)
        }
        Errand::Cordon { replacement, node, .. } => {
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
            let stands = async || stands(act, cluster, clock).await.map(drop);
            let now = || clock::now(clock.now(), cluster.view().server_time);
            Done::Claim(claims::perform(claim, cloud, cluster, stands, now).await)
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

fn leads(act: &Act, clock: &impl Clock) -> Result<(), String> {
    if clock.now() < act.leads_until { Ok(()) } else { Err("our lease has run out".to_owned()) }
}

/// Whether whoever decided this still leads and nobody has stopped it since, by the records of now.
async fn stands(act: &Act, cluster: &impl Cluster, clock: &impl Clock) -> Result<Records, String> {
    leads(act, clock)?;
    let records = cluster.records().await;
    let records = records.map_err(|error| format!("could not read the records: {error}"))?;
    may(act, &records)?;
    leads(act, clock)?;
    Ok(records)
}

/// Whether the world is still as it was decided on: by what watches have told, if they have told lately,
/// and for what cannot be taken back by the API server's word of now.
async fn holds(
    act: &Act,
    records: &Records,
    cluster: &impl Cluster,
    now: Timestamp,
) -> Result<(), String> {
    let rests_on: &[Kind] = match &act.errand {
        Errand::Claim(it) => match &it.deed {
            Deed::Launch(_) => &LAUNCHING,
            Deed::RemoveOrphan { .. } => &DISTURBING,
            Deed::EndAttempt { .. }
            | Deed::Write { .. }
            | Deed::Tell { .. }
            | Deed::Register { .. }
            | Deed::DeleteClaim { .. }
            | Deed::DeleteNode { .. }
            | Deed::Terminate { .. }
            | Deed::ReleaseNode { .. }
            | Deed::ReleaseClaim { .. } => &[],
        },
        Errand::Cordon { .. } if act.voluntary => &GRANTING,
        Errand::Evict { .. } | Errand::DeletePod { .. } if act.voluntary => &DISTURBING,
        Errand::DeleteOld { .. } if act.voluntary => &ENDING,
        // Nobody has asked for it, and pods may have come to it.
        Errand::DeleteSuccessor { .. } => &DISTURBING,
        Errand::Ask(_)
        | Errand::MakeClaim { .. }
        | Errand::MakeRoom { .. }
        | Errand::Cordon { .. }
        | Errand::Uncordon { .. }
        | Errand::Evict { .. }
        | Errand::DeletePod { .. }
        | Errand::DeleteOld { .. } => &[],
    };
    let silent = {
        let view = cluster.view();
        // A clock that was set back would make old news of the future.
        let ahead = |kind: &&Kind| view.fresh.get(kind).is_some_and(|it| *it > now);
        let ahead = rests_on.iter().find(ahead).map(|it| {
            format!("when a watch has told of {} last is not known any more", it.as_str())
        });
        ahead.or_else(|| silent(&view, rests_on, now))
    };
    if let Some(why) = silent {
        return Err(why);
    }
    let record = |name: &str| records.replacements.get(name);
    match &act.errand {
        Errand::Cordon { replacement, node, homes } => match record(replacement) {
            Some(record) => cordons(act, record, node, homes, cluster).await,
            None => Ok(()),
        },
        Errand::Evict { replacement, pod } => match record(replacement) {
            Some(record) => evicts(act, record, pod, cluster, now).await,
            None => Ok(()),
        },
        // The machine of one that goes anyway ends at that time, cordoned or not.
        Errand::DeletePod { replacement, pod, .. } if act.voluntary => match record(replacement) {
            Some(record) => evicts(act, record, pod, cluster, now).await,
            None => Ok(()),
        },
        Errand::DeleteOld { replacement, .. } => match record(replacement) {
            Some(record) => {
                // Whoever goes anyway is cordoned beside that.
                if act.voluntary {
                    still_cordoned(act, record, cluster, now).await?;
                }
                empty(record, records, cluster, now).await
            }
            None => Ok(()),
        },
        Errand::Claim(it) => gated(it, records, &cluster.view(), now),
        Errand::Ask(_)
        | Errand::MakeClaim { .. }
        | Errand::MakeRoom { .. }
        | Errand::Uncordon { .. }
        | Errand::DeletePod { .. } => Ok(()),
        Errand::DeleteSuccessor { claim, uid, .. } => runs_nobody(claim, uid, cluster, now).await,
    }
}

/// Whether nobody is on a successor whom somebody would have to move a second time, by the API server's word of now.
async fn runs_nobody(
    claim: &str,
    uid: &str,
    cluster: &impl Cluster,
    now: Timestamp,
) -> Result<(), String> {
    let names = {
        let view = cluster.view();
        let found = view.claims.get(claim).filter(|it| it.uid == uid);
        let found = found.ok_or_else(|| format!("NodeClaim {claim} is not there any more"))?;
        claims::nodes_of(&view, found)
    };
    for name in names {
        let pods = pods_now(cluster, &name).await?;
        let there = drain::moving(&pods, now).count();
        if there > 0 {
            return Err(format!("{there} pods run on {name}"));
        }
    }
    Ok(())
}

async fn pods_now(cluster: &impl Cluster, node: &str) -> Result<Vec<drain::Pod>, String> {
    let pods = cluster.pods_on(node).await;
    pods.map_err(|error| format!("could not list the pods on node {node}: {error}"))
}

/// Where a budget holds people, too, no machine ends before it is granted; whatever its `terminationGracePeriod`.
fn gated(act: &ClaimAct, records: &Records, view: &View, now: Timestamp) -> Result<(), String> {
    let (Deed::Terminate { .. }, Some((name, uid))) = (&act.deed, &act.claim) else {
        return Ok(());
    };
    let Some(claim) = view.claims.get(name).filter(|it| it.uid == *uid) else { return Ok(()) };
    let counted_on = records.replacements.values().map(|it| &it.replacement).any(|it| {
        !it.phase.ended() && it.successors.iter().any(|successor| successor.claim == *name)
    });
    let granted = records.ledger.grants.get(uid).map(|it| it.since);
    let idle = counted_on && claims::pods_of(view, claim, now) == 0;
    match claims::gate(view, claim, granted, idle) {
        Gate::None | Gate::Open { .. } => Ok(()),
        Gate::Closed { budget } => {
            Err(format!("NodeDisruptionBudget {budget} holds people, and has not let it go"))
        }
    }
}

fn old_claim<'a>(view: &'a View, old: &Old) -> Result<&'a Claim, String> {
    let claim = view.claims.get(&old.claim).filter(|it| it.uid == old.claim_uid);
    claim.ok_or_else(|| format!("NodeClaim {} is not there any more", old.claim))
}

/// Names are given again: that it is the machine's node is asked, and so is whether those that take over
/// are ready at this moment.
async fn cordons(
    act: &Act,
    record: &Recorded,
    node: &Object,
    homes: &BTreeSet<String>,
    cluster: &impl Cluster,
) -> Result<(), String> {
    let Replacement { old, order, successors, .. } = &record.replacement;
    let (machine, claim_goes) = {
        let view = cluster.view();
        let claim = old_claim(&view, old)?;
        (claim.machine.clone(), claim.deleting_since.is_some())
    };
    let found = node_now(cluster, &node.name).await?;
    let same = |it: &Node| it.uid == node.uid && (it.machine.is_none() || it.machine == machine);
    let Some(found) = found.filter(same) else {
        return Err(format!("node {} is another one by now", node.name));
    };
    let goes = claim_goes || found.deleting_since.is_some();
    if !act.voluntary || goes || *order != Order::SuccessorFirst {
        return Ok(());
    }
    for successor in successors {
        let (name, machine) = {
            let view = cluster.view();
            let claim = view.claims.get(&successor.claim);
            let node = claim.and_then(|it| it.node.clone());
            (node, claim.and_then(|it| it.machine.clone()))
        };
        let Some(name) = name else {
            return Err(format!("successor {} has no node", successor.claim));
        };
        let found = node_now(cluster, &name).await?;
        let takes = |it: &Node| {
            it.machine == machine && it.ready == Readiness::Ready && it.deleting_since.is_none()
        };
        if !found.as_ref().is_some_and(takes) {
            return Err(format!("successor {name} is not ready"));
        }
    }
    // What was there before takes pods as successors do.
    for name in homes {
        let found = node_now(cluster, name).await?;
        let cordoned = |it: &Node| {
            it.fit.unschedulable || it.fit.taints.iter().any(|it| it.key == DISRUPTED_TAINT)
        };
        let takes = |it: &Node| {
            it.ready == Readiness::Ready && it.deleting_since.is_none() && !cordoned(it)
        };
        if !found.as_ref().is_some_and(takes) {
            return Err(format!("node {name} takes no pods now, and some are to go there"));
        }
    }
    Ok(())
}

async fn node_now(cluster: &impl Cluster, name: &str) -> Result<Option<Node>, String> {
    cluster.node(name).await.map_err(|error| format!("could not ask for node {name}: {error}"))
}

/// A pod on a later node of the same name is nobody that we have to move; and from a node that takes pods it would
/// come right back.
async fn evicts(
    act: &Act,
    record: &Recorded,
    pod: &PodId,
    cluster: &impl Cluster,
    now: Timestamp,
) -> Result<(), String> {
    match still_cordoned(act, record, cluster, now).await? {
        Whose::Another => {
            Err(format!("pod {pod} is on a later node {}", record.replacement.old.node))
        }
        Whose::Ours | Whose::Nobodys => Ok(()),
    }
}

/// Whose node has the old node's name now.
enum Whose {
    Ours,
    /// A later one's.
    Another,
    /// There is none.
    Nobodys,
}

/// Whether the old node takes no pods, and nobody has said since that it must not be disturbed, by the API server's word of
/// now: a watch that is late may tell of a cordon that was taken back, by others or by ourselves.
async fn still_cordoned(
    act: &Act,
    record: &Recorded,
    cluster: &impl Cluster,
    now: Timestamp,
) -> Result<Whose, String> {
    let old = &record.replacement.old;
    let machine = old_claim(&cluster.view(), old)?.machine.clone();
    let Some(node) = node_now(cluster, &old.node).await? else { return Ok(Whose::Nobodys) };
    if node.machine.is_some() && node.machine != machine {
        return Ok(Whose::Another);
    }
    if !node.cordoned_for(&record.name) {
        return Err(format!("node {} is not cordoned any more", node.name));
    }
    match node.protection.filter(|it| act.voluntary && it.holds(now)) {
        Some(protection) => Err(format!("node {} says {protection}", node.name)),
        None => Ok(Whose::Ours),
    }
}

/// Whether everybody has left who had to, by the API server's word of now; and whether those may end who end
/// with the machine.
async fn empty(
    record: &Recorded,
    records: &Records,
    cluster: &impl Cluster,
    now: Timestamp,
) -> Result<(), String> {
    let old = &record.replacement.old;
    let name = {
        let view = cluster.view();
        let claim = old_claim(&view, old)?;
        let named = view.nodes.get(&old.node);
        let another = |it: &&Node| it.machine.is_some() && it.machine != claim.machine;
        named.is_none_or(|it| !another(&it)).then(|| old.node.clone())
    };
    let Some(name) = name else { return Ok(()) };
    let pods = pods_now(cluster, &name).await?;
    let left = drain::remaining(&pods, now).count();
    if left > 0 {
        return Err(format!("{left} pods are still to leave"));
    }
    let view = cluster.view();
    let pdbs = counted::pdbs(&view, pods.iter(), now);
    let mut ledger = drain::Pdbs::new(&pdbs);
    for pod in ending_beside(record, records, &view, now) {
        ledger.evict(pod);
    }
    let forced = |it: &&drain::Pod| recorded_force(record, &it.id).is_ok();
    for pod in drain::moving(&pods, now).filter(|it| !forced(it)) {
        if pod.ends_at.is_none() && pod.protection.as_ref().is_some_and(|it| it.holds(now)) {
            return Err(format!("pod {} may not end now: it is protected", pod.id));
        }
        if let drain::Answer::Refused(why) = ledger.evict(pod) {
            return Err(format!("pod {} may not end now: {why}", pod.id));
        }
    }
    Ok(())
}

/// Pods that end with other machines, of which that was decided, too, and that are still there.
fn ending_beside<'v>(
    record: &Recorded,
    records: &Records,
    view: &'v View,
    now: Timestamp,
) -> Vec<&'v drain::Pod> {
    let others = records.replacements.values().filter(|it| it.name != record.name);
    let others = others.filter(|it| it.replacement.phase == Phase::Terminating);
    let pods = others.flat_map(|it| view.pods.on(&it.replacement.old.node));
    let there = pods.filter(|it| drain::with_machine(&it.drain, now) && !counted::ended(view, it));
    there.map(|it| it.drain.as_ref()).collect()
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
            granted(records, replacement)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An eviction was accepted while a turn was under way: what that turn decided about the pod it decided
    /// without knowing so.
    #[test]
    fn what_was_decided_before_its_answer_came_is_not_done_twice() {
        let pod = Intent::Pod("uid-1".to_owned());
        let mut hands = Hands::default();
        hands.turn();
        assert!(hands.begin(&pod));
        assert!(!hands.begin(&pod), "one is in flight");
        hands.turn();
        hands.finish(&pod);
        assert!(!hands.begin(&pod), "this turn began before the answer came");
        hands.turn();
        assert!(hands.begin(&pod));
    }
}
