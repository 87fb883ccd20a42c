//! What do classes, pools, policies and memories say, whole?

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::ask::Ask;
use nodemolt_core::bootstrap::{self, OfClass, OfPool};
use nodemolt_core::budget::DisruptionBudget;
use nodemolt_core::catalog::{Appeared, Because, Withdrawn};
use nodemolt_core::image::Architecture;
use nodemolt_core::launch::Settings;
use nodemolt_core::policy::{Quarantine, Rule};
use nodemolt_core::seen::{
    Class, ClassKey, Looks, NetworkAsk, PolicySeen, Pool, Remembered, Selects,
};
use nodemolt_core::wanted::PoolTemplate;
use nodemolt_fit::go_duration;

use super::read::{Broken, complaints, revision, upgrade_asked_at};
use crate::awsimage::{self, AwsImage, WithdrawnBecause};
use crate::ec2nodeclass::{EC2NodeClass, EC2NodeClassSpec};
use crate::imagepolicy::ImagePolicy;
use crate::imagequarantine::ImageQuarantine;
use crate::into_bootstrap::offered;
use crate::into_budget::{class_rule, pool_budgets};
use crate::into_core::{PoolOfClass, Reader};
use crate::listing;
use crate::nodedisruptionbudget::NodeDisruptionBudget;
use crate::nodepool::{self, NodePool};
use crate::problem::{Finding, quoted};

/// The schema's own default, for what was never in a cluster.
const EXPIRE_AFTER: SignedDuration = SignedDuration::from_hours(720);

pub(super) fn class(wire: &EC2NodeClass) -> Result<Class, Broken> {
    let mut found = Vec::new();
    let ask = told(Ask::try_from(wire), &mut found);
    let launch = told(Settings::try_from(wire), &mut found);
    let boot = told(OfClass::try_from(wire), &mut found);
    let offers = told(offered(wire), &mut found).map(|(offers, _)| offers);
    let group = wire.api_version.split_once('/').map_or("", |(group, _)| group);
    let meta = &wire.metadata;
    let read = (|| {
        Some(Class {
            key: ClassKey { group: group.to_owned(), name: meta.name.clone() },
            uid: meta.uid.clone().unwrap_or_default(),
            generation: meta.generation.unwrap_or_default(),
            ask: ask?,
            launch: launch?,
            boot: boot?,
            offers: offers?,
            network: network(&wire.spec),
            deleting: meta.deletion_timestamp.is_some(),
        })
    })();
    finish(read, found)
}

fn told<T>(read: Result<T, Vec<Finding>>, found: &mut Vec<Finding>) -> Option<T> {
    read.map_err(|it| found.extend(it)).ok()
}

fn finish<T>(read: Option<T>, found: Vec<Finding>) -> Result<T, Broken> {
    let mut wrong = complaints(found);
    wrong.sort();
    wrong.dedup();
    match read {
        Some(read) if wrong.is_empty() => Ok(read),
        Some(_) | None => Err(wrong),
    }
}

fn network(spec: &EC2NodeClassSpec) -> NetworkAsk {
    let tags = |wire: &Option<BTreeMap<String, String>>| {
        let any =
            |(key, value): (&String, &String)| (key.clone(), (value != "*").then(|| value.clone()));
        wire.iter().flatten().map(any).collect()
    };
    let subnets = spec.subnet_selector_terms.iter().flatten();
    let groups = spec.security_group_selector_terms.iter().flatten();
    let reservations = spec.capacity_reservation_selector_terms.iter().flatten();
    NetworkAsk {
        subnets: subnets
            .map(|it| Selects { id: it.id.clone(), tags: tags(&it.tags), ..Selects::default() })
            .collect(),
        security_groups: groups
            .map(|it| Selects {
                id: it.id.clone(),
                name: it.name.clone(),
                tags: tags(&it.tags),
                owner: None,
            })
            .collect(),
        reservations: reservations
            .map(|it| Selects {
                id: it.id.clone(),
                owner: it.owner_id.clone(),
                tags: tags(&it.tags),
                name: None,
            })
            .collect(),
    }
}

pub(super) fn pool(wire: &NodePool) -> Result<Pool, Broken> {
    let mut found = Vec::new();
    let of_class = told(PoolOfClass::try_from(wire), &mut found);
    let fit = told(listing::pool(wire), &mut found);
    let mut reader = Reader::new();
    let template = template(wire, &mut reader);
    found.extend(reader.found);
    let meta = &wire.metadata;
    let replicas = wire.spec.replicas.map(|it| u32::try_from(it).unwrap_or_default());
    let read = of_class.zip(fit).map(|(of_class, fit)| Pool {
        name: meta.name.clone(),
        uid: meta.uid.clone().unwrap_or_default(),
        generation: meta.generation.unwrap_or_default(),
        class: ClassKey { group: of_class.class_group, name: of_class.class_name },
        template,
        requirements: of_class.pool.requirements,
        boot: OfPool::from(wire),
        fit,
        budgets: pool_budgets(wire),
        replicas,
        upgrade_asked_at: upgrade_asked_at(&meta.annotations),
        deleting: meta.deletion_timestamp.is_some(),
    });
    finish(read, found)
}

fn template(wire: &NodePool, reader: &mut Reader) -> PoolTemplate {
    let template = &wire.spec.template;
    let spec = &template.spec;
    let taints = |all: &Option<Vec<nodepool::Taint>>| {
        let taint = |it: &nodepool::Taint| bootstrap::Taint {
            key: it.key.clone(),
            value: it.value.clone(),
            effect: it.effect.clone(),
        };
        all.iter().flatten().map(taint).collect()
    };
    let field = "spec.template.spec";
    let class = &spec.node_class_ref;
    PoolTemplate {
        labels: template.metadata.as_ref().map(|it| it.labels.clone()).unwrap_or_default(),
        annotations: template
            .metadata
            .as_ref()
            .map(|it| it.annotations.clone())
            .unwrap_or_default(),
        taints: taints(&spec.taints),
        startup_taints: taints(&spec.startup_taints),
        class: (class.group.clone(), class.kind.clone(), class.name.clone()),
        termination_grace_period: length(
            reader,
            &format!("{field}.terminationGracePeriod"),
            spec.termination_grace_period.as_deref(),
        ),
        expire_after: expiry(reader, &format!("{field}.expireAfter"), spec.expire_after.as_deref()),
    }
}

pub(super) fn length(
    reader: &mut Reader,
    field: &str,
    written: Option<&str>,
) -> Option<SignedDuration> {
    let written = written?;
    let read = go_duration(written).filter(|it| *it >= 0).map(SignedDuration::from_nanos);
    if read.is_none() {
        let message = format!("{} is not a length of time", quoted(written));
        reader.found.push(Finding::error(field, message).hint("write it like 8h or 90m"));
    }
    read
}

/// `None`: never.
pub(super) fn expiry(
    reader: &mut Reader,
    field: &str,
    written: Option<&str>,
) -> Option<SignedDuration> {
    match written {
        None => Some(EXPIRE_AFTER),
        Some("Never") => None,
        Some(text) => length(reader, field, Some(text)),
    }
}

pub(super) fn budget(wire: &NodeDisruptionBudget) -> DisruptionBudget {
    DisruptionBudget::from(wire)
}

pub(super) fn policy(wire: &ImagePolicy) -> Result<PolicySeen, Broken> {
    let rule = Rule::try_from(wire).map_err(complaints)?;
    Ok(PolicySeen { rule, rollout: class_rule(wire) })
}

pub(super) fn quarantine(wire: &ImageQuarantine) -> Result<Quarantine, Broken> {
    Quarantine::try_from(wire).map_err(complaints)
}

pub(super) fn image(wire: &AwsImage) -> Result<Remembered, Broken> {
    let mut reader = Reader::new();
    let image = reader.parse("spec.image.ref.id", &wire.spec.image.reference.id);
    let empty = awsimage::Memory::default();
    let memory = wire.spec.memory.as_ref().unwrap_or(&empty);
    let first_seen =
        memory.first_seen_at.as_ref().and_then(|it| reader.time("spec.memory.firstSeenAt", it));
    // A person may say whose it must be, before anybody has seen it.
    let (field, owner) = match (&memory.first_owner, &wire.spec.owner_account) {
        (Some(owner), _) => ("spec.memory.firstOwner", Some(owner)),
        (None, owner) => ("spec.ownerAccount", owner.as_ref()),
    };
    let first_owner = owner.and_then(|it| reader.parse(field, it));
    let withdrawn = memory.withdrawn.as_ref().and_then(|it| withdrawn(&mut reader, it));
    let mut time = |name: &str, text: &Option<String>| {
        text.as_ref().and_then(|it| reader.time(&format!("spec.memory.{name}"), it))
    };
    let returned = time("returnedAt", &memory.returned_at);
    let not_listed_since = time("notListedSince", &memory.not_listed_since);
    let created = time("createdAt", &memory.created_at);
    let architecture = memory.architecture.as_deref().map(Architecture::read);
    let looks = memory.name.clone().zip(architecture).map(|(name, architecture)| Looks {
        name,
        owner_alias: memory.owner_alias.clone(),
        architecture,
        created,
    });
    // Whoever withdraws it once more writes another one.
    let taken_back =
        |it: &Withdrawn| returned.is_some_and(|returned| it.at.is_none_or(|at| at <= returned));
    let later = |it| if it { Appeared::Later } else { Appeared::WithFirstAnswer };
    let appeared = memory.appeared_later.map(later);
    let read = image.map(|image| Remembered {
        image,
        revision: revision(&wire.metadata),
        first_seen,
        appeared,
        first_owner,
        looks,
        withdrawn: withdrawn.filter(|it| !taken_back(it)),
        returned,
        not_listed_since,
    });
    reader.finish(read).map_err(complaints)
}

fn withdrawn(reader: &mut Reader, wire: &awsimage::Withdrawn) -> Option<Withdrawn> {
    let field = "spec.memory.withdrawn";
    let at: Option<Timestamp> =
        wire.at.as_ref().and_then(|it| reader.time(&format!("{field}.at"), it));
    let because = match wire.because {
        WithdrawnBecause::PointerMovedBack => {
            let to =
                reader.present(&format!("{field}.movedBackTo"), wire.moved_back_to.as_ref())?;
            Because::PointerMovedBack {
                parameter: wire.parameter.clone().unwrap_or_default(),
                to: reader.parse(&format!("{field}.movedBackTo"), to)?,
            }
        }
        WithdrawnBecause::DeprecatedEarly => Because::DeprecatedEarly,
        WithdrawnBecause::DisabledEarly => Because::DisabledEarly,
        WithdrawnBecause::Recalled => Because::Recalled,
        WithdrawnBecause::UnsharedEarly => Because::UnsharedEarly,
    };
    Some(Withdrawn { at, because })
}
