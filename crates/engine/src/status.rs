//! What do people read on their own objects?
//!
//! Written only when it has changed; nothing is decided by it. What was written last is remembered, so
//! a restart writes each once more at most.

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::{self, BudgetId};
use nodemolt_core::node::FOREIGN_ANNOTATION_PREFIX;
use nodemolt_core::replace::LIFE_MIN;
use nodemolt_core::resolve::Resolution;
use nodemolt_core::seen::{Class, ClassKey, Identity, Kind, Pool, Subject};

use crate::decide::fleet::bears;
use crate::decide::limits::rules;
use crate::decide::{Sight, pools};
use crate::memory::{Memory, after};
use crate::picture::Picture;
use crate::port::{ClassStatus, Condition, Status};

const READY: &str = "Ready";
/// Whether what was written can be read.
const ACCEPTED: &str = "Accepted";
const UNREADABLE: &str = "Unreadable";
const OVERLAP: &str = "PoliciesOverlap";
const SELECTS_NOTHING: &str = "SelectsNothing";

/// Whoever has just begun asks first. Until then what the one before has told stands.
const UNKNOWN_TOLD_AFTER: SignedDuration = SignedDuration::from_mins(2);

pub(crate) fn statuses(memory: &mut Memory, sight: &Sight<'_>, picture: &Picture) -> Vec<Status> {
    let mut all = Vec::new();
    let begun = *memory.began_at.get_or_insert(sight.now);
    let young = sight.now < after(begun, UNKNOWN_TOLD_AFTER);
    // Nothing is known yet of these, and we have said nothing of them. A policy that nobody can read is
    // known, and no answer will change what follows from it.
    let certain = !young || sight.unreadable(Kind::Policy).is_some();
    let unasked = |memory: &Memory, key: &ClassKey| {
        let class = sight.view.classes.get(key);
        let unknown = class.is_some_and(|it| matches!(readiness(memory, it), Err((None, _))));
        !certain && unknown && !memory.told.contains_key(&("class", key.to_string()))
    };
    for (_, class) in sight.classes().filter(|(key, _)| !unasked(memory, key)) {
        all.push(Status::Class(of_class(memory, sight, class)));
    }
    let mut used = pools::in_use(sight);
    for pool in sight.view.pools.values() {
        if unasked(memory, &pool.class) {
            continue;
        }
        let Some(ready) = pool_ready(memory, sight, &pool.class) else { continue };
        let mut resources = used.remove(pool.name.as_str()).unwrap_or_default();
        let nodes = resources.remove(nodemolt_fit::pool::NODES);
        let nodes = nodes.map_or(0, |it| u64::try_from(it.ceil_units()).unwrap_or(0));
        let status = Status::Pool {
            name: pool.name.clone(),
            uid: pool.uid.clone(),
            generation: pool.generation,
            nodes,
            resources,
            conditions: vec![ready, pool_accepted(pool, sight.now)],
        };
        all.push(status);
    }
    for room in picture.rooms.rooms() {
        let BudgetId::Disruption { name } = &room.id else { continue };
        let subject = Subject::DisruptionBudget(name.clone());
        let Some(Identity { uid, generation, .. }) = sight.view.subjects.get(&subject).cloned()
        else {
            continue;
        };
        let (name, conditions) = (name.clone(), vec![of_room(room, sight.now)]);
        let room = room.clone();
        all.push(Status::DisruptionBudget { name, uid, generation, room, conditions });
    }
    all.extend(policies(sight));
    all.extend(unreadable(sight));
    all.into_iter()
        .map(|it| (place_of(&it), it))
        .filter_map(|(place, status)| {
            let before = memory.told.get(&place);
            let status = match before {
                Some(before) => since_before(status, before),
                None => status,
            };
            (before != Some(&status)).then_some(status)
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
        Status::Unreadable { subject, .. } => match subject {
            Subject::Class(key) => ("class", key.to_string()),
            Subject::Pool(name) => ("pool", name.clone()),
            Subject::DisruptionBudget(name) => ("budget", name.clone()),
            Subject::Policy(name) => ("policy", name.clone()),
        },
    }
}

/// Of those that could not be read. A budget is not among them: it has its room, of nothing.
fn unreadable(sight: &Sight<'_>) -> Vec<Status> {
    let view = sight.view;
    let all = view.subjects.iter().filter_map(|(subject, identity)| {
        let complaint = view.unreadable.get(&subject.object())?.first();
        let why = complaint.map(ToString::to_string).unwrap_or_default();
        let not = |kind| condition(kind, Some(false), UNREADABLE, &why, sight.now);
        let conditions = match subject {
            // Somebody else's class or pool is somebody else's to complain about.
            Subject::Class(key) if !sight.ours(key) => return None,
            Subject::Class(_) => vec![not(READY), not(ACCEPTED)],
            Subject::Pool(_) => {
                identity.class.as_ref().filter(|it| sight.ours(it))?;
                vec![not(READY), not(ACCEPTED)]
            }
            Subject::Policy(_) => {
                let why =
                    format!("{why}; until it can be read no image is chosen and no node goes");
                vec![condition(READY, Some(false), UNREADABLE, &why, sight.now)]
            }
            Subject::DisruptionBudget(_) => return None,
        };
        let Identity { uid, generation, .. } = identity.clone();
        Some(Status::Unreadable { subject: subject.clone(), uid, generation, conditions })
    });
    all.collect()
}

fn policies(sight: &Sight<'_>) -> Vec<Status> {
    let view = sight.view;
    let all = view.policies.iter().filter_map(|(name, policy)| {
        let subject = Subject::Policy(name.clone());
        let Identity { uid, generation, .. } = view.subjects.get(&subject).cloned()?;
        let selects = |it: &&Class| policy.rule.classes.matches(&it.ask.labels);
        let classes: Vec<&Class> = view.classes.values().filter(selects).collect();
        let rollout = policy.rollout.as_ref();
        let wrong = rollout.and_then(|it| {
            let concurrency = it.concurrency.as_ref().and_then(|it| it.as_ref().err());
            let batch = it.batch_max.as_ref().and_then(|it| it.as_ref().err());
            let windows = it.windows.as_ref().and_then(|it| it.as_ref().err());
            concurrency.or(batch).or(windows)
        });
        let ready = match wrong {
            Some(why) => {
                let why = format!("it counts as zero: {}", why.0);
                condition(READY, Some(false), UNREADABLE, &why, sight.now)
            }
            None if classes.is_empty() => {
                let why = "its selector matches no class";
                condition(READY, Some(false), SELECTS_NOTHING, why, sight.now)
            }
            None => condition(READY, Some(true), READY, "", sight.now),
        };
        let overruled = rollout.and_then(|own| {
            classes.iter().find_map(|class| {
                let first = rules(sight, class).next()?.policy.clone();
                (first != own.policy).then(|| (first, class.key.clone()))
            })
        });
        let overlap = match overruled {
            Some((first, class)) => {
                let why = format!("class `{class}` follows the rollout of `{first}`");
                condition(OVERLAP, Some(true), "SeveralPolicies", &why, sight.now)
            }
            None => condition(OVERLAP, Some(false), "OnePolicy", "", sight.now),
        };
        let (name, classes) = (name.clone(), classes.len() as u64);
        let conditions = vec![ready, overlap];
        Some(Status::Policy { name, uid, generation, classes, conditions })
    });
    all.collect()
}

/// Policies that do not do what was meant, a sentence each: what their conditions say, for whoever looks at
/// the fleet.
pub(crate) fn idle_policies(sight: &Sight<'_>) -> Vec<String> {
    let mut told = Vec::new();
    for status in policies(sight) {
        let Status::Policy { name, conditions, .. } = status else { continue };
        for it in conditions {
            let idle = it.reason == SELECTS_NOTHING;
            if idle || (it.kind == OVERLAP && it.status == Some(true)) {
                told.push(format!("ImagePolicy `{name}`: {}", it.message));
            }
        }
    }
    told
}

/// `None` for a pool that somebody else looks after.
fn pool_ready(memory: &Memory, sight: &Sight<'_>, key: &ClassKey) -> Option<Condition> {
    let why = if let Some(class) = sight.view.classes.get(key) {
        match readiness(memory, class) {
            Ok(()) => return Some(condition(READY, Some(true), READY, "", sight.now)),
            Err((_, why)) => format!("class `{key}`: {why}"),
        }
    } else {
        let class = Subject::Class(key.clone());
        sight.view.subjects.get(&class)?;
        sight.view.why_unreadable(class.object().kind, &class.object().name)?
    };
    Some(condition(READY, Some(false), "NodeClassNotReady", &why, sight.now))
}

fn pool_accepted(pool: &Pool, now: Timestamp) -> Condition {
    if let Some(why) = pool.budgets.iter().find_map(|it| it.as_ref().err()) {
        let why = format!("its budgets count as zero: {}", why.0);
        return condition(ACCEPTED, Some(false), UNREADABLE, &why, now);
    }
    match short_lived(pool) {
        Some(why) => condition(ACCEPTED, Some(false), "ExpireAfterTooShort", &why, now),
        None => condition(ACCEPTED, Some(true), ACCEPTED, "", now),
    }
}

/// What is said of an `expireAfter` that would replace nodes for ever.
fn short_lived(pool: &Pool) -> Option<String> {
    let lives = pool.template.expire_after.filter(|it| *it < LIFE_MIN)?;
    Some(format!(
        "`expireAfter` of {lives:#} counts as `Never`: a successor takes {LIFE_MIN:#} to come"
    ))
}

/// Pools whose template says of each of their nodes that it has drifted.
pub(crate) fn pools_born_drifted(sight: &Sight<'_>) -> Vec<String> {
    let ours = sight.view.pools.values().filter(|it| sight.ours(&it.class));
    let all = ours.flat_map(|pool| {
        let says = |key: &&String| key.starts_with(FOREIGN_ANNOTATION_PREFIX) && bears(pool, key);
        pool.template.annotations.keys().filter(says).map(move |key| (pool, key))
    });
    let told = all.map(|(pool, key)| {
        format!(
            "NodePool `{}`: every node is born with {key} from its template, so that says nothing of \
             any of them and is not counted",
            pool.name
        )
    });
    told.collect()
}

/// Pools of ours whose nodes do not expire as was written, a sentence each.
pub(crate) fn short_lived_pools(sight: &Sight<'_>) -> Vec<String> {
    let ours = sight.view.pools.values().filter(|it| sight.ours(&it.class));
    ours.filter_map(|it| Some(format!("NodePool `{}`: {}", it.name, short_lived(it)?))).collect()
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
    conditions.push(condition(ACCEPTED, Some(true), ACCEPTED, "", sight.now));
    let policies: Vec<&str> = rules(sight, class).map(|it| it.policy.as_str()).collect();
    conditions.push(if let [first, _, ..] = policies.as_slice() {
        let why = format!(
            "{} say how a rollout goes; `{first}` is followed",
            policies.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
        );
        condition(OVERLAP, Some(true), "SeveralPolicies", &why, sight.now)
    } else {
        condition(OVERLAP, Some(false), "OnePolicy", "", sight.now)
    });
    ClassStatus {
        key: class.key.clone(),
        uid: class.uid.clone(),
        generation: class.generation,
        images: resolution.and_then(|it| images(memory, class, it)),
        subnets: network.map(|it| {
            let all = it.subnets.iter();
            all.map(|it| (it.id.clone(), it.zone.clone(), it.zone_id.clone())).collect()
        }),
        security_groups: network.map(|it| {
            it.security_groups.iter().map(|(id, name)| (id.clone(), name.clone())).collect()
        }),
        conditions,
    }
}

type Images = Vec<(nodemolt_core::image::ImageId, String, Vec<nodemolt_fit::Written>)>;

fn images(memory: &Memory, class: &Class, resolution: &Resolution) -> Option<Images> {
    let (_, machines) = memory.types.get(&class.ask.family)?;
    let written = |it: &nodemolt_fit::Requirements| it.written(&machines.vocabulary);
    let chosen = resolution.chosen.iter();
    Some(chosen.map(|it| (it.id.clone(), it.name.clone(), written(&it.requirements))).collect())
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
        // That it lets nobody go may be meant.
        None => {
            let kept = room.kept().map(|(keeps, of)| {
                format!("it allows none: it keeps at least {keeps} available, of {of}")
            });
            condition(READY, Some(true), READY, &kept.unwrap_or_default(), now)
        }
        Some(budget::Condition::SelectsNothing) => {
            condition(READY, Some(false), SELECTS_NOTHING, "its selectors match no node", now)
        }
        Some(budget::Condition::Unreadable(why)) => {
            let why = format!("it counts as zero: {}", why.0);
            condition(READY, Some(false), UNREADABLE, &why, now)
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
    let known = conditions(before);
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
        | Status::Policy { conditions, .. }
        | Status::Unreadable { conditions, .. } => conditions,
    }
}

fn conditions_mut(status: &mut Status) -> &mut [Condition] {
    match status {
        Status::Class(it) => &mut it.conditions,
        Status::Pool { conditions, .. }
        | Status::DisruptionBudget { conditions, .. }
        | Status::Policy { conditions, .. }
        | Status::Unreadable { conditions, .. } => conditions,
    }
}
