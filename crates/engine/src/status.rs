//! What do people read on their own objects?
//!
//! Written only when it has changed; nothing is decided by it. What was written last is remembered, so
//! a restart writes each once more at most.

use jiff::Timestamp;
use nodemolt_core::budget::{self, BudgetId};
use nodemolt_core::resolve::Resolution;
use nodemolt_core::seen::{Class, Kind};

use crate::decide::limits::rules;
use crate::decide::{Sight, pools};
use crate::memory::Memory;
use crate::picture::Picture;
use crate::port::{ClassStatus, Condition, Status};

const READY: &str = "Ready";

pub(crate) fn statuses(memory: &mut Memory, sight: &Sight<'_>, picture: &Picture) -> Vec<Status> {
    let mut all = Vec::new();
    for class in sight.view.classes.values() {
        all.push((("class", class.key.to_string()), Status::Class(of_class(memory, sight, class))));
    }
    let mut used = pools::used(sight);
    for pool in sight.view.pools.values() {
        let Some(class) = sight.view.classes.get(&pool.class) else { continue };
        let ready = readiness(memory, class);
        let condition = match ready {
            Ok(()) => condition(READY, Some(true), READY, "", sight.now),
            Err((_, why)) => {
                let why = format!("class `{}`: {why}", class.key);
                condition(READY, Some(false), "NodeClassNotReady", &why, sight.now)
            }
        };
        let mut resources = used.remove(pool.name.as_str()).unwrap_or_default();
        let nodes = resources.remove(nodemolt_fit::pool::NODES);
        let nodes = nodes.map_or(0, |it| u64::try_from(it.ceil_units()).unwrap_or(0));
        let status = Status::Pool {
            name: pool.name.clone(),
            uid: pool.uid.clone(),
            generation: pool.generation,
            nodes,
            resources,
            conditions: vec![condition],
        };
        all.push((("pool", pool.name.clone()), status));
    }
    for room in picture.rooms.rooms() {
        let BudgetId::Disruption { name } = &room.id else { continue };
        let conditions = vec![of_room(room, sight.now)];
        let status =
            Status::DisruptionBudget { name: name.clone(), room: Some(room.clone()), conditions };
        all.push((("budget", name.clone()), status));
    }
    all.into_iter()
        .filter_map(|(place, status)| {
            let status = match memory.told.get(&place) {
                Some(before) => since_before(status, before),
                None => status,
            };
            (memory.told.get(&place) != Some(&status)).then_some(status)
        })
        .collect()
}

/// By which a status is remembered once it is written.
pub(crate) fn place_of(status: &Status) -> (&'static str, String) {
    match status {
        Status::Class(it) => ("class", it.key.to_string()),
        Status::Pool { name, .. } => ("pool", name.clone()),
        Status::DisruptionBudget { name, .. } => ("budget", name.clone()),
        Status::Policy { name, .. } => ("policy", name.clone()),
    }
}

fn of_class(memory: &Memory, sight: &Sight<'_>, class: &Class) -> ClassStatus {
    let resolved = memory.classes.get(&class.key);
    let resolution = resolved.and_then(|it| it.outcome.as_ref().ok());
    let network = resolved.and_then(|it| it.network());
    let mut conditions = vec![match readiness(memory, class) {
        Ok(()) => condition(READY, Some(true), READY, "", sight.now),
        Err((None, why)) => condition(READY, None, "NotKnownYet", &why, sight.now),
        Err((Some(reason), why)) => condition(READY, Some(false), reason, &why, sight.now),
    }];
    let complaints = sight
        .view
        .unreadable
        .iter()
        .find(|(it, _)| it.kind == Kind::Class && it.name == class.key.name);
    conditions.push(match complaints.and_then(|(_, it)| it.first()) {
        None => condition("Accepted", Some(true), "Accepted", "", sight.now),
        Some(it) => {
            let why = format!("{}: {}", it.field, it.message);
            condition("Accepted", Some(false), "Unreadable", &why, sight.now)
        }
    });
    let policies: Vec<&str> = rules(sight, class).map(|it| it.policy.as_str()).collect();
    if let [first, _, ..] = policies.as_slice() {
        let why = format!(
            "{} say how a rollout goes; `{first}` is followed",
            policies.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
        );
        conditions.push(condition(
            "PoliciesOverlap",
            Some(true),
            "SeveralPolicies",
            &why,
            sight.now,
        ));
    }
    ClassStatus {
        key: class.key.clone(),
        uid: class.uid.clone(),
        generation: class.generation,
        images: resolution.map_or_else(Vec::new, |it| images(memory, class, it)),
        subnets: network.map_or_else(Vec::new, |it| {
            let all = it.subnets.iter();
            all.map(|it| (it.id.clone(), it.zone.clone(), it.zone_id.clone())).collect()
        }),
        security_groups: network.map_or_else(Vec::new, |it| {
            it.security_groups.iter().map(|(id, name)| (id.clone(), name.clone())).collect()
        }),
        conditions,
    }
}

type Images = Vec<(nodemolt_core::image::ImageId, String, Vec<nodemolt_fit::Written>)>;

fn images(memory: &Memory, class: &Class, resolution: &Resolution) -> Images {
    let Some((_, machines)) = memory.types.get(&class.ask.family) else { return Vec::new() };
    let written = |it: &nodemolt_fit::Requirements| it.written(&machines.vocabulary);
    let chosen = resolution.chosen.iter();
    chosen.map(|it| (it.id.clone(), it.name.clone(), written(&it.requirements))).collect()
}

/// Whether nodes of the class can be launched; if not, the reason unless it is not known, and why.
fn readiness(memory: &Memory, class: &Class) -> Result<(), (Option<&'static str>, String)> {
    let Some(resolved) = memory.classes.get(&class.key) else {
        return Err((None, "it was not looked at yet".to_owned()));
    };
    let resolution = match &resolved.outcome {
        Ok(resolution) => resolution,
        Err(why) => return Err((None, why.to_string())),
    };
    if resolution.chosen.is_empty() {
        let why = match resolution.held.first() {
            Some(held) => format!("{} is held back: {}", held.id, held.refusal),
            None => "no image matches".to_owned(),
        };
        return Err((Some("ImagesNotReady"), why));
    }
    let Some(network) = resolved.network() else {
        return Err((None, "EC2 has not said yet which subnets and groups it selects".to_owned()));
    };
    if network.subnets.is_empty() {
        return Err((Some("SubnetsNotFound"), "its terms select no subnet".to_owned()));
    }
    if network.security_groups.is_empty() {
        return Err((
            Some("SecurityGroupsNotFound"),
            "its terms select no security group".to_owned(),
        ));
    }
    Ok(())
}

fn of_room(room: &budget::Room, now: Timestamp) -> Condition {
    match &room.condition {
        None => condition(READY, Some(true), READY, "", now),
        Some(budget::Condition::SelectsNothing) => {
            condition(READY, Some(false), "SelectsNothing", "its selectors match no node", now)
        }
        Some(budget::Condition::Unreadable(why)) => {
            let why = format!("it counts as zero: {}", why.0);
            condition(READY, Some(false), "Unreadable", &why, now)
        }
    }
}

fn condition(
    kind: &str,
    status: Option<bool>,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        since: now,
    }
}

/// A condition is since when its status is what it is.
fn since_before(status: Status, before: &Status) -> Status {
    let known: Vec<Condition> = conditions(before).to_vec();
    let mut status = status;
    for it in conditions_mut(&mut status) {
        let same = known.iter().find(|other| other.kind == it.kind && other.status == it.status);
        if let Some(same) = same {
            it.since = same.since;
        }
    }
    status
}

fn conditions(status: &Status) -> &[Condition] {
    match status {
        Status::Class(it) => &it.conditions,
        Status::Pool { conditions, .. }
        | Status::DisruptionBudget { conditions, .. }
        | Status::Policy { conditions, .. } => conditions,
    }
}

fn conditions_mut(status: &mut Status) -> &mut [Condition] {
    match status {
        Status::Class(it) => &mut it.conditions,
        Status::Pool { conditions, .. }
        | Status::DisruptionBudget { conditions, .. }
        | Status::Policy { conditions, .. } => conditions,
    }
}
