//! What does a claim say, whole?

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodemolt_core::node::Running;
use nodemolt_core::seen::{Claim, ClassKey, FINALIZER, Stage};
use nodemolt_fit::Quantity;
use nodemolt_fit::capacity::Amounts;

use super::ours::{expiry, length};
use super::read::{Broken, complaints, machine, protected, revision, upgrade_asked_at};
use crate::attempt::{self, ATTEMPT, SUCCESSOR_OF};
use crate::file::path;
use crate::into_core::{Reader, read_time};
use crate::listing::pool::taints;
use crate::listing::reader;
use crate::meta;
use crate::nodeclaim::{NodeClaim, NodeClaimStatus};
use crate::problem::Finding;

pub(super) fn claim(wire: &NodeClaim) -> Result<Claim, Broken> {
    let running = Running::try_from(wire);
    let mut reader = Reader::new();
    let meta = &wire.metadata;
    let spec = &wire.spec;
    let empty = NodeClaimStatus::default();
    let status = wire.status.as_ref().unwrap_or(&empty);
    let attempt = meta.annotations.get(ATTEMPT).and_then(|text| {
        let read = attempt::read(text);
        if let Err(why) = &read {
            let field = path::join("metadata.annotations", ATTEMPT);
            reader.found.push(Finding::error(field, why.clone()));
        }
        read.ok()
    });
    let mut requirements = Vec::new();
    for (at, it) in spec.requirements.iter().enumerate() {
        requirements.extend(reader.requirement(&format!("spec.requirements[{at}]"), it));
    }
    let mut of_list = reader::Reader::default();
    let staying = taints("spec.taints", spec.taints.as_ref(), &mut of_list);
    let startup = taints("spec.startupTaints", spec.startup_taints.as_ref(), &mut of_list);
    reader.found.extend(of_list.found);
    let requests = spec.resources.as_ref().and_then(|it| it.requests.as_ref());
    let requests = amounts(&mut reader, "spec.resources.requests", requests);
    let capacity = amounts(&mut reader, "status.capacity", status.capacity.as_ref());
    let allocatable = amounts(&mut reader, "status.allocatable", status.allocatable.as_ref());
    let termination_grace_period = length(
        &mut reader,
        "spec.terminationGracePeriod",
        spec.termination_grace_period.as_deref(),
    );
    let expire_after = expiry(&mut reader, "spec.expireAfter", spec.expire_after.as_deref());
    let deleting = meta.deletion_timestamp.as_deref();
    let deleting_since = deleting.and_then(|it| reader.time("metadata.deletionTimestamp", it));
    let running = match running {
        Ok(running) if reader.found.is_empty() => running,
        Ok(_) => return Err(complaints(reader.found)),
        Err(found) => return Err(complaints(found.into_iter().chain(reader.found))),
    };
    let (ours, finalizers): (Vec<String>, Vec<String>) =
        meta.finalizers.iter().flatten().cloned().partition(|it| it == FINALIZER);
    Ok(Claim {
        name: meta.name.clone(),
        uid: running.claim_uid,
        revision: revision(meta),
        pool: running.pool,
        class: ClassKey {
            group: spec.node_class_ref.group.clone(),
            name: spec.node_class_ref.name.clone(),
        },
        labels: meta.labels.clone(),
        annotations: meta.annotations.clone(),
        created_at: running.created_at,
        deleting_since,
        held: !ours.is_empty(),
        finalizers,
        requirements,
        taints: staying,
        startup_taints: startup,
        requests,
        termination_grace_period,
        expire_after,
        attempt,
        machine: machine(status.provider_id.as_deref()),
        node: status.node_name.clone().filter(|it| !it.is_empty()),
        image: running.image.map(|it| it.id),
        capacity,
        allocatable,
        stages: stages(status, running.created_at),
        class_stamp: running.class_stamp,
        template_stamp: running.template_stamp,
        foreign: running.foreign,
        protection: protected(&meta.annotations, Some(running.created_at)),
        upgrade_asked_at: upgrade_asked_at(&meta.annotations),
        successor_of: meta.annotations.get(SUCCESSOR_OF).cloned(),
    })
}

fn stages(status: &NodeClaimStatus, created_at: Timestamp) -> BTreeMap<Stage, Timestamp> {
    let mut stages = BTreeMap::new();
    for it in status.conditions.iter().flatten().filter(|it| it.status == "True") {
        let stage = match it.kind.as_str() {
            "Launched" => Stage::Launched,
            "Registered" => Stage::Registered,
            "Initialized" => Stage::Initialized,
            _ => continue,
        };
        let since = it.last_transition_time.as_deref().and_then(read_time);
        stages.insert(stage, since.unwrap_or(created_at));
    }
    stages
}

fn amounts(
    reader: &mut Reader,
    field: &str,
    wire: Option<&BTreeMap<String, meta::Quantity>>,
) -> Amounts {
    let mut amounts = Amounts::new();
    for (name, written) in wire.into_iter().flatten() {
        match written.0.parse::<Quantity>() {
            Ok(amount) => drop(amounts.insert(name.clone(), amount)),
            Err(error) => {
                reader.found.push(Finding::error(path::join(field, name), error.to_string()));
            }
        }
    }
    amounts
}
