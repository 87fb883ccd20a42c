//! How is an act on a claim performed?
//!
//! Record first, then call, then write what came. Each step can be the last one: whoever comes after finds
//! the record and asks again. Right before a call everything is looked at once more that may have changed
//! while others were awaited; and before one that takes a machine away, or makes one, the API server is
//! asked: whether the same leader leads, and who is on the node. What watches tell may be old.

use std::collections::BTreeSet;

use jiff::Timestamp;
use nodemolt_core::drain;
use nodemolt_core::seen::{Claim, MachineId, Node, View};

use super::act::{ClaimAct, ClaimDone, Deed, Launch, token};
use super::look::{nodes_of, own_name};
use super::orphans::serves;
use super::state::{self, CLAIM_UID_TAG};
use crate::port::{
    Cloud, CloudError, Cluster, ClusterError, LaunchError, LaunchRequest, Launched, Object,
};

/// Performs one act, if nothing speaks against it any more. `now` reads the time of this process; `stands`
/// asks whether whoever decided it still leads, right before what cannot be taken back.
pub async fn perform(
    act: &ClaimAct,
    cloud: &impl Cloud,
    cluster: &impl Cluster,
    stands: impl AsyncFn() -> Result<(), String>,
    now: impl Fn() -> Timestamp,
) -> ClaimDone {
    if let Err(why) = still(act, &cluster.view(), now()) {
        return ClaimDone::Withheld(why);
    }
    match &act.deed {
        Deed::Launch(launch) => launches(act, launch, cloud, cluster, stands, now).await,
        Deed::EndAttempt { claim, attempt } => {
            written(cluster.record_attempt(claim, attempt).await)
        }
        Deed::Write { claim, state } | Deed::Tell { claim, state, .. } => {
            written(cluster.write_claim(claim, state).await)
        }
        Deed::Register { claim, node, node_state, state } => {
            match cluster.register_node(node, node_state).await {
                Ok(()) => written(cluster.write_claim(claim, state).await),
                Err(error) => ClaimDone::Cluster(error),
            }
        }
        Deed::DeleteClaim { missing, idle, .. } => {
            let Some((name, uid)) = &act.claim else {
                return ClaimDone::Withheld("it is about no claim".to_owned());
            };
            if let Some(node) = missing
                && let Err(why) = missing_now(act, node, cluster).await
            {
                return ClaimDone::Withheld(why);
            }
            if *idle && let Err(why) = idle_now(act, cluster, now()).await {
                return ClaimDone::Withheld(why);
            }
            gone(cluster.delete_claim(name, uid).await)
        }
        Deed::DeleteNode { name, uid } => gone(cluster.delete_node(name, uid).await),
        Deed::Terminate { machine, .. } | Deed::RemoveOrphan { machine, .. } => {
            if let Err(why) = empty_now(act, machine, cluster, now()).await {
                return ClaimDone::Withheld(why);
            }
            if let Err(why) = stands().await {
                return ClaimDone::Withheld(why);
            }
            // Answers took their time.
            if let Err(why) = still(act, &cluster.view(), now()) {
                return ClaimDone::Withheld(why);
            }
            match cloud.terminate(machine).await {
                Ok(()) => ClaimDone::Done,
                Err(error) => ClaimDone::Cloud(error),
            }
        }
        Deed::ReleaseNode { node } => gone(cluster.release_node(node).await),
        Deed::ReleaseClaim { claim } => gone(cluster.release_claim(claim).await),
    }
}

fn written<T>(answer: Result<T, ClusterError>) -> ClaimDone {
    match answer {
        Ok(_) => ClaimDone::Done,
        Err(error) => ClaimDone::Cluster(error),
    }
}

/// What is not there any more has gone.
fn gone(answer: Result<(), ClusterError>) -> ClaimDone {
    match answer {
        Ok(()) | Err(ClusterError::Absent(_)) => ClaimDone::Done,
        Err(error) => ClaimDone::Cluster(error),
    }
}

/// Whether a node that watches do not tell of is not there.
async fn missing_now(act: &ClaimAct, node: &str, cluster: &impl Cluster) -> Result<(), String> {
    let found = match cluster.node(node).await {
        Ok(found) => found,
        Err(error) => return Err(format!("could not ask for node {node}: {error}")),
    };
    let view = cluster.view();
    let claim = act.claim.as_ref().and_then(|(name, _)| view.claims.get(name));
    let machine = claim.and_then(|it| it.machine.as_ref());
    match found {
        // One of that name with another machine is another node.
        Some(it) if it.machine.is_none() || it.machine.as_ref() == machine => {
            Err(format!("node {node} is there, though no watch has told of it"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether nobody is on a claim's node who would have to move, by the API server's word of now: pods may have come that a
/// late watch has not told of.
async fn idle_now(act: &ClaimAct, cluster: &impl Cluster, now: Timestamp) -> Result<(), String> {
    let (names, now) = {
        let view = cluster.view();
        let claim = act.claim.as_ref().and_then(|(name, _)| view.claims.get(name));
        let Some(claim) = claim else { return Err("its claim is not seen any more".to_owned()) };
        let now = view.server_time.map_or(now, |it| it.min(now));
        (nodes_of(&view, claim), now)
    };
    for name in names {
        let pods = match cluster.pods_on(&name).await {
            Ok(pods) => pods,
            Err(error) => return Err(format!("could not list the pods on node {name}: {error}")),
        };
        let there = drain::moving(&pods, now).count();
        if there > 0 {
            return Err(format!("{there} pods run on {name}"));
        }
    }
    Ok(())
}

/// Whether nobody is on a machine who must leave first, by the API server's word of now: a watch may lag,
/// and that something was heard of pods does not say that everything was.
async fn empty_now(
    act: &ClaimAct,
    machine: &MachineId,
    cluster: &impl Cluster,
    now: Timestamp,
) -> Result<(), String> {
    let (names, now) = {
        let view = cluster.view();
        let claim = act.claim.as_ref().and_then(|(name, _)| view.claims.get(name));
        let now = view.server_time.map_or(now, |it| it.min(now));
        if elapsed(&act.deed, now) {
            return Ok(());
        }
        let nodes = view.nodes.values().filter(|it| it.machine.as_ref() == Some(machine));
        let mut names: BTreeSet<String> = nodes.map(|it| it.name.clone()).collect();
        names.extend(claim.and_then(|it| own_name(&view, it)).map(str::to_owned));
        (names, now)
    };
    for name in names {
        let pods = match cluster.pods_on(&name).await {
            Ok(pods) => pods,
            Err(error) => return Err(format!("could not list the pods on node {name}: {error}")),
        };
        let left = drain::remaining(&pods, now).count();
        if left > 0 {
            return Err(still_to_leave(left));
        }
    }
    Ok(())
}

fn still_to_leave(pods: usize) -> String {
    format!("{pods} pods are still to leave")
}

/// Whether the time that a deleted claim gives its pods is over.
fn elapsed(deed: &Deed, now: Timestamp) -> bool {
    matches!(deed, Deed::Terminate { forced_at: Some(at), .. } if *at <= now)
}

/// Whether what an act was decided on still holds, as far as watches have told.
fn still(act: &ClaimAct, view: &View, now: Timestamp) -> Result<(), String> {
    let Some((name, uid)) = &act.claim else {
        return still_orphan(act, view);
    };
    let claim = view.claims.get(name).filter(|it| it.uid == *uid);
    let Some(claim) = claim else {
        return Err(format!("NodeClaim {name} is not there any more"));
    };
    let deleting = claim.deleting_since.is_some();
    match &act.deed {
        Deed::Launch(launch) => still_launches(claim, launch, view),
        Deed::EndAttempt { .. } | Deed::Tell { .. } if claim.machine.is_some() => {
            Err(format!("NodeClaim {name} has a machine"))
        }
        Deed::Terminate { machine, .. } => still_ends(claim, &act.deed, machine, view, now),
        Deed::ReleaseClaim { .. } | Deed::ReleaseNode { .. } | Deed::DeleteNode { .. }
            if !deleting =>
        {
            Err(format!("NodeClaim {name} is not being deleted"))
        }
        Deed::EndAttempt { .. }
        | Deed::Tell { .. }
        | Deed::Write { .. }
        | Deed::Register { .. }
        | Deed::DeleteClaim { .. }
        | Deed::DeleteNode { .. }
        | Deed::ReleaseNode { .. }
        | Deed::ReleaseClaim { .. }
        | Deed::RemoveOrphan { .. } => Ok(()),
    }
}

fn still_orphan(act: &ClaimAct, view: &View) -> Result<(), String> {
    let machine = match &act.deed {
        Deed::RemoveOrphan { machine, .. } => Some(machine),
        Deed::ReleaseNode { node } => view
            .nodes
            .get(&node.name)
            .filter(|it| it.uid == node.uid)
            .and_then(|it| it.machine.as_ref()),
        Deed::Launch(_)
        | Deed::EndAttempt { .. }
        | Deed::Write { .. }
        | Deed::Tell { .. }
        | Deed::Register { .. }
        | Deed::DeleteClaim { .. }
        | Deed::DeleteNode { .. }
        | Deed::Terminate { .. }
        | Deed::ReleaseClaim { .. } => None,
    };
    let Some(machine) = machine else { return Err("it is about no claim".to_owned()) };
    let ready = |it: &&Node| it.machine.as_ref() == Some(machine) && serves(it);
    if let (Deed::RemoveOrphan { .. }, Some(node)) = (&act.deed, view.nodes.values().find(ready)) {
        return Err(format!("node {} is ready", node.name));
    }
    match view.claims.values().find(|it| it.machine.as_ref() == Some(machine)) {
        Some(claim) => Err(format!("NodeClaim {} has this machine", claim.name)),
        None => Ok(()),
    }
}

/// Which images may boot is decided by rules; other rules, another decision.
fn still_launches(claim: &Claim, launch: &Launch, view: &View) -> Result<(), String> {
    let name = &claim.name;
    if claim.deleting_since.is_some() {
        return Err(format!("NodeClaim {name} is being deleted"));
    }
    if claim.machine.is_some() {
        return Err(format!("NodeClaim {name} has a machine"));
    }
    let last = claim.attempt.as_ref();
    let number = launch.attempt.number;
    if last.is_some_and(|it| it.number > number || (it.number == number && it.ended.is_some())) {
        return Err(format!("another attempt was made for NodeClaim {name}"));
    }
    if !launch.rules.same_for(&launch.class, view) {
        return Err(format!("what may boot for EC2NodeClass {} has changed", launch.class));
    }
    Ok(())
}

/// No machine ends while pods are on it that must leave, unless its time is over. The API server is asked
/// as well: what is seen here is the cheaper half.
fn still_ends(
    claim: &Claim,
    deed: &Deed,
    machine: &MachineId,
    view: &View,
    now: Timestamp,
) -> Result<(), String> {
    if claim.deleting_since.is_none() {
        return Err(format!("NodeClaim {} is not being deleted", claim.name));
    }
    if claim.machine.as_ref().is_some_and(|it| it != machine) {
        return Err(format!("NodeClaim {} has another machine", claim.name));
    }
    // No clock of ours may be ahead where time takes something away.
    let now = view.server_time.map_or(now, |it| it.min(now));
    let stays = |it: &&nodemolt_core::seen::Pod| drain::stays(&it.drain, now).is_none();
    let left = own_name(view, claim).map_or(0, |it| view.pods.on(it).filter(stays).count());
    if left > 0 && !elapsed(deed, now) {
        return Err(still_to_leave(left));
    }
    Ok(())
}

async fn launches(
    act: &ClaimAct,
    launch: &Launch,
    cloud: &impl Cloud,
    cluster: &impl Cluster,
    stands: impl AsyncFn() -> Result<(), String>,
    now: impl Fn() -> Timestamp,
) -> ClaimDone {
    let mut claim = launch.claim.clone();
    if !launch.recorded {
        match cluster.record_attempt(&claim, &launch.attempt).await {
            Ok(revision) => claim.revision = revision,
            Err(error) => return ClaimDone::Cluster(error),
        }
    }
    if let Err(done) = prepare(launch, cloud).await {
        return done;
    }
    let request = LaunchRequest {
        token: token(&claim.uid, launch.attempt.number),
        request: launch.attempt.request.clone(),
    };
    // Records and templates took their time: who leads and what may boot is asked for the last time.
    if let Err(why) = may_call(act, cluster, &stands, now()).await {
        return ClaimDone::Withheld(why);
    }
    let error = match cloud.launch(&request).await {
        Ok(answer) => return write(launch, &claim, answer, cluster, now()).await,
        Err(error) => error,
    };
    if makes(launch, &error) {
        // Somebody removed a template: it is made again, once.
        if let Err(done) = prepare(launch, cloud).await {
            return done;
        }
    } else if !proves(launch, &error) {
        return unproved(launch, error);
    }
    if let Err(why) = may_call(act, cluster, &stands, now()).await {
        return ClaimDone::Withheld(why);
    }
    // The same token again: an empty fleet stays empty, and a machine would be told here.
    match cloud.launch(&request).await {
        Ok(answer) => write(launch, &claim, answer, cluster, now()).await,
        Err(again) if proves(launch, &again) => empty(launch, &claim, error, cloud, cluster).await,
        Err(again) => unproved(launch, again),
    }
}

/// Right before a machine is asked for.
async fn may_call(
    act: &ClaimAct,
    cluster: &impl Cluster,
    stands: &impl AsyncFn() -> Result<(), String>,
    now: Timestamp,
) -> Result<(), String> {
    stands().await?;
    still(act, &cluster.view(), now)
}

/// Makes the launch templates. Those that are there stay as they are.
async fn prepare(launch: &Launch, cloud: &impl Cloud) -> Result<(), ClaimDone> {
    for template in &launch.templates {
        cloud.prepare(template).await.map_err(|error| match error {
            CloudError::Unreachable(_) | CloudError::Throttled { .. } => ClaimDone::Cloud(error),
            CloudError::Denied(_) | CloudError::Refused(_) => refused(launch, &error),
        })?;
    }
    Ok(())
}

/// Whether what is missing is a template that we can make.
fn makes(launch: &Launch, error: &LaunchError) -> bool {
    matches!(error, LaunchError::NoSuchTemplate(name)
        if launch.templates.iter().any(|it| it.name() == *name))
}

/// Whether the answer says that this token made nothing. An empty fleet says so; a refusal says it of this
/// very call, which is enough if it was the first.
fn proves(launch: &Launch, error: &LaunchError) -> bool {
    match error {
        LaunchError::NoCapacity(_) => true,
        LaunchError::NoSuchImage(_) | LaunchError::NoSuchTemplate(_) | LaunchError::Refused(_) => {
            !launch.recorded
        }
        LaunchError::OtherParameters
        | LaunchError::Unanswered(_)
        | LaunchError::Throttled { .. } => false,
    }
}

fn unproved(launch: &Launch, error: LaunchError) -> ClaimDone {
    match &error {
        LaunchError::Unanswered(_) | LaunchError::Throttled { .. } | LaunchError::NoCapacity(_) => {
            ClaimDone::Launch(error)
        }
        LaunchError::NoSuchTemplate(_)
        | LaunchError::NoSuchImage(_)
        | LaunchError::OtherParameters
        | LaunchError::Refused(_) => refused(launch, &error),
    }
}

fn refused(launch: &Launch, error: &impl ToString) -> ClaimDone {
    ClaimDone::Refused { attempt: launch.attempt.number, why: error.to_string() }
}

async fn write(
    launch: &Launch,
    claim: &Object,
    answer: Launched,
    cluster: &impl Cluster,
    now: Timestamp,
) -> ClaimDone {
    // Deadlines count from what is written here, so no clock of ours may be ahead.
    let server_time = cluster.view().server_time;
    let mut state = state::launched(launch, &answer, server_time.map_or(now, |it| it.min(now)));
    // Labels that people wrote stay as they are.
    if let Some(it) = cluster.view().claims.get(&claim.name) {
        state.labels.retain(|key, _| !it.labels.contains_key(key));
    }
    match cluster.write_claim(claim, &state).await {
        Ok(_) => ClaimDone::Launched(answer),
        // The machine is found again by its token or by its tags.
        Err(error) => ClaimDone::Cluster(error),
    }
}

/// Twice nothing by the token: if no machine has the claim's UID either, the attempt made nothing.
async fn empty(
    launch: &Launch,
    claim: &Object,
    error: LaunchError,
    cloud: &impl Cloud,
    cluster: &impl Cluster,
) -> ClaimDone {
    let machines = match cloud.machines().await {
        Ok(machines) => machines,
        Err(error) => return ClaimDone::Cloud(error),
    };
    let ours = |uid: Option<&String>| uid == Some(&claim.uid);
    if machines.iter().any(|it| ours(it.tags.get(CLAIM_UID_TAG)) && it.state.live()) {
        return ClaimDone::Withheld("a machine has the claim's UID on it".to_owned());
    }
    let mut attempt = launch.attempt.clone();
    attempt.ended = Some(error.to_string());
    let capacity_type = attempt.request.capacity_type.clone();
    match (cluster.record_attempt(claim, &attempt).await, error) {
        (Err(error), _) => ClaimDone::Cluster(error),
        (Ok(_), LaunchError::NoCapacity(choices)) => {
            ClaimDone::NoCapacity { capacity_type, choices }
        }
        (Ok(_), error) => ClaimDone::Nothing(error.to_string()),
    }
}
