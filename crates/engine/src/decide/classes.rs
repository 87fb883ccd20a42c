//! What should the nodes of each class run?
//!
//! `classes × pools × policies × catalog × what EC2 offers → wanted, for each pool`
//!
//! Nothing is concluded before every question of a class was answered in full once: half an answer
//! would choose another image, and a fleet would drift to it. What has not changed is not decided again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::ask::Ask;
use nodemolt_core::catalog::{Query, Withdrawn};
use nodemolt_core::explain::{ClassTold, Newer, Unanswered};
use nodemolt_core::image::ImageId;
use nodemolt_core::launch::{PlacementGroup, Settings};
use nodemolt_core::lookup::{self, Minor};
use nodemolt_core::node::Stamp;
use nodemolt_core::policy::Policy;
use nodemolt_core::resolve::{Machines, Pool, Resolution, Setting, TypesAsked, resolve};
use nodemolt_core::seen::{Class, ClassKey, Kind, Looks};
use nodemolt_core::wanted::{Beside, Listed, NoImage, PoolTemplate, Purpose, Wanted, wanted};
use nodemolt_fit::Family;

use super::Sight;
use super::fleet::image_ref;
use super::questions::{IMAGES_EVERY, NETWORK_EVERY, OFFERED_EVERY};
use crate::memory::{Last, Memory, after};
use crate::port::{Network, NewMemory, Offered};

/// Ages, deprecations and quarantines end by themselves. Nobody is told when, so we look again.
const LOOK_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// What is asked of EC2 by each question, in the words of its permissions.
const OFFERED_CALLS: [&str; 1] = ["ec2:DescribeInstanceTypes"];
const NETWORK_CALLS: [&str; 2] = ["ec2:DescribeSecurityGroups", "ec2:DescribeSubnets"];

/// So many of what an ask matches are remembered, the newest.
const REMEMBERED_MAX: usize = 50;

/// What a class came to, and from what.
#[derive(Debug)]
pub(crate) struct Resolved {
    from: From,
    at: Timestamp,
    pub(crate) outcome: Result<Resolution, NoImage>,
    /// By pool.
    pub(crate) wanted: BTreeMap<String, Arc<Wanted>>,
    /// To be remembered: chosen, in use, and the newest of the others.
    keep: BTreeSet<ImageId>,
}

impl Resolved {
    pub(crate) fn network(&self) -> Option<&Arc<Network>> {
        self.from.network.as_ref()
    }
}

/// What is booted, by class and pool. Equal means the same pointers, so that asking costs nothing.
#[derive(Debug)]
pub(crate) struct Boots(BTreeMap<ClassKey, BTreeMap<String, Arc<Wanted>>>);

impl Boots {
    pub(crate) fn of(memory: &Memory) -> Self {
        Self(memory.classes.iter().map(|(key, it)| (key.clone(), it.wanted.clone())).collect())
    }

    pub(crate) fn of_pool(&self, class: &ClassKey, pool: &str) -> Option<&Arc<Wanted>> {
        self.0.get(class)?.get(pool)
    }
}

impl PartialEq for Boots {
    fn eq(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
            && self.0.values().zip(other.0.values()).all(|(pools, others)| {
                let mut both = pools.values().zip(others.values());
                pools.keys().eq(others.keys()) && both.all(|(one, other)| Arc::ptr_eq(one, other))
            })
    }
}

/// All that the answer depends on beside the time.
#[derive(Debug, Clone, PartialEq)]
struct From {
    class: (String, i64),
    ask: Arc<Ask>,
    pools: Vec<(String, String, i64)>,
    policy: Arc<Policy>,
    catalog: u64,
    offered_at: Option<Timestamp>,
    network: Option<Arc<Network>>,
    /// The answer before, long enough ago.
    network_before: Option<Arc<Network>>,
    kubernetes: Option<Minor>,
    in_use: BTreeSet<ImageId>,
    /// What its images were asked with.
    queries: Arc<BTreeSet<Query>>,
    hindrance: Option<NoImage>,
}

/// What is asked, of which Kubernetes, and how often the catalog had changed by then.
type Wording = (Arc<Ask>, Option<Minor>, u64);

/// What follows from a few words that rarely change.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// By what is asked, and by how often the catalog had changed: parameters lead to more queries.
    queries: Last<Wording, Arc<BTreeSet<Query>>>,
    ask: Option<Arc<Ask>>,
    stamp: Last<Settings, Stamp>,
    /// By pool.
    templates: BTreeMap<String, Last<PoolTemplate, Stamp>>,
    /// The instance types that EC2 has somewhere, by when it said so.
    somewhere: Last<Timestamp, Listed>,
}

impl Words {
    /// The same value for as long as the class says the same.
    fn ask(&mut self, ask: &Ask) -> Arc<Ask> {
        let known = self.ask.take().filter(|it| **it == *ask);
        let ask = known.unwrap_or_else(|| Arc::new(ask.clone()));
        self.ask = Some(Arc::clone(&ask));
        ask
    }
}

/// What all classes ask.
pub(crate) struct Asked {
    pub(crate) queries: Arc<BTreeSet<Query>>,
    pub(crate) look_again_at: Option<Timestamp>,
}

pub(crate) fn resolve_all(memory: &mut Memory, sight: &Sight<'_>) -> Asked {
    let view = sight.view;
    let policy = Arc::new(Policy {
        rules: view.policies.values().map(|it| it.rule.clone()).collect(),
        quarantines: view.quarantines.values().cloned().collect(),
    });
    let in_use: BTreeMap<&ClassKey, BTreeSet<&ImageId>> =
        sight.roll.images().map(|(class, images)| (class, images.collect())).collect();
    // A rule that we cannot read may forbid anything.
    let blind = sight.unreadable(Kind::Policy).or_else(|| sight.unreadable(Kind::Quarantine));
    let mut queries: Option<Arc<BTreeSet<Query>>> = None;
    memory.classes.retain(|it, _| view.classes.contains_key(it));
    let mut types = std::mem::take(&mut memory.types);
    let mut words = std::mem::take(&mut memory.words);
    words.retain(|it, _| view.classes.contains_key(it));
    for (key, class) in sight.classes() {
        let (account, region) = (sight.config.account.as_ref(), &sight.config.region);
        let words = words.entry(key.clone()).or_default();
        let (ask, version) = (words.ask(&class.ask), memory.images.version);
        let asked = (Arc::clone(&ask), view.kubernetes, version);
        let own = words.queries.answer(&asked, |(ask, kubernetes, _)| {
            let catalog = &memory.images.catalog;
            let mut own = lookup::queries(ask, *kubernetes, region);
            let pointed = lookup::pointed(catalog, &own);
            own.extend(lookup::queries_for(&pointed, catalog, &own, account, region));
            Arc::new(own)
        });
        let used = in_use.get(key).cloned().unwrap_or_default();
        let hindrance = hindrance(memory, sight, class, &own, &used, blind.as_ref());
        let from = From {
            class: (class.uid.clone(), class.generation),
            ask,
            pools: pools_of(sight, key)
                .map(|it| (it.name.clone(), it.uid.clone(), it.generation))
                .collect(),
            policy: Arc::clone(&policy),
            catalog: version,
            offered_at: memory.offered.last().map(|(_, at)| at),
            network: memory.networks.get(&class.network).and_then(|it| it.value()).cloned(),
            network_before: memory
                .networks
                .get(&class.network)
                .and_then(|it| it.before_by(NETWORK_EVERY))
                .cloned(),
            kubernetes: view.kubernetes,
            in_use: used.into_iter().cloned().collect(),
            queries: own,
            hindrance,
        };
        match &mut queries {
            None => queries = Some(Arc::clone(&from.queries)),
            Some(all) => add(all, from.queries.iter().cloned().collect()),
        }
        let known = memory.classes.get(key);
        let same =
            known.is_some_and(|it| it.from == from && sight.now < after(it.at, LOOK_AGAIN_AFTER));
        if !same {
            let before = memory.classes.remove(key);
            let resolved = resolve_one(memory, sight, class, from, before, &mut types, words);
            memory.classes.insert(key.clone(), resolved);
        }
    }
    memory.types = types;
    memory.words = words;
    let running = in_use.into_values().flatten();
    let catalog = &memory.images.catalog;
    let (account, region) = (sight.config.account.as_ref(), &sight.config.region);
    let mut queries = queries.unwrap_or_default();
    let more = lookup::queries_for(running, catalog, &queries, account, region);
    add(&mut queries, more);
    let look_again_at = memory.classes.values().map(|it| after(it.at, LOOK_AGAIN_AFTER)).min();
    Asked { queries, look_again_at }
}

/// Copies nothing where nothing is added, as in nearly all turns.
fn add(queries: &mut Arc<BTreeSet<Query>>, more: BTreeSet<Query>) {
    if !more.is_empty() {
        Arc::make_mut(queries).extend(more);
    }
}

/// What is launched, by class, pool and purpose. What is not remembered yet is missing. A rollout will tell
/// the purposes apart.
pub(crate) fn for_launch<'a>(
    memory: &'a Memory,
    sight: &Sight<'_>,
) -> BTreeMap<(ClassKey, String, Purpose), &'a Wanted> {
    let mut all = BTreeMap::new();
    for (key, resolved) in &memory.classes {
        let Ok(resolution) = &resolved.outcome else { continue };
        if !resolution.chosen.iter().all(|it| sight.view.images.contains_key(&it.id)) {
            continue;
        }
        for (pool, wanted) in &resolved.wanted {
            for purpose in [Purpose::Wave, Purpose::Other] {
                all.insert((key.clone(), pool.clone(), purpose), wanted.as_ref());
            }
        }
    }
    all
}

/// Why nothing can be concluded, if nothing can.
fn hindrance(
    memory: &Memory,
    sight: &Sight<'_>,
    class: &Class,
    queries: &BTreeSet<Query>,
    used: &BTreeSet<&ImageId>,
    blind: Option<&NoImage>,
) -> Option<NoImage> {
    if let Some(blind) = blind {
        return Some(blind.clone());
    }
    if sight.view.kubernetes.is_none() {
        return Some(NoImage::because("the version of Kubernetes is not known"));
    }
    if memory.offered.value().is_none() {
        let why = memory.offered.failure().map(|it| format!(": {it}")).unwrap_or_default();
        let because = format!("Amazon EC2 has not said yet which instance types it offers{why}");
        let object = Some(("AWSCall", OFFERED_CALLS[0].to_owned()));
        return Some(NoImage { because, object, until: None });
    }
    if queries.is_empty() && !class.ask.terms.is_empty() {
        return Some(NoImage::because("nothing can be asked for it"));
    }
    let Some(unanswered) = queries.iter().find(|it| !memory.images.answered(it)) else {
        return lacked(memory, sight, queries, used);
    };
    let told = memory.images.unanswered(unanswered, IMAGES_EVERY);
    Some(match told {
        Some(it) => NoImage {
            because: it.to_string(),
            object: it.names.first().map(|name| (it.kind, name.clone())),
            until: None,
        },
        None => NoImage::because(format!("{unanswered} was not answered yet")),
    })
}

/// An image that was there or that nodes run, and that too few answers have lacked: without it another one would be
/// wanted.
fn lacked(
    memory: &Memory,
    sight: &Sight<'_>,
    queries: &BTreeSet<Query>,
    used: &BTreeSet<&ImageId>,
) -> Option<NoImage> {
    let images = &memory.images;
    let strange = used
        .iter()
        .find(|it| !images.catalog.images.contains_key(**it) && !images.known_absent(it));
    let account = sight.config.account.as_ref();
    let lacked = images.in_doubt(queries, account, sight.now).or(strange.copied())?;
    let because = format!(
        "Amazon EC2 has not listed {lacked} yet, and one answer does not tell that it is gone"
    );
    Some(NoImage { because, object: Some(("Image", lacked.to_string())), until: None })
}

fn pools_of<'a>(
    sight: &'a Sight<'_>,
    class: &ClassKey,
) -> impl Iterator<Item = &'a nodemolt_core::seen::Pool> {
    let class = class.clone();
    sight.view.pools.values().filter(move |it| it.class == class)
}

/// The instance types of a region, read for a family of images.
pub(crate) type TypesByFamily = BTreeMap<Family, (Timestamp, Machines)>;

fn resolve_one(
    memory: &Memory,
    sight: &Sight<'_>,
    class: &Class,
    from: From,
    before: Option<Resolved>,
    types: &mut TypesByFamily,
    words: &mut Words,
) -> Resolved {
    let now = sight.now;
    let unresolved = |from: From, why: NoImage| Resolved {
        from,
        at: now,
        outcome: Err(why),
        wanted: BTreeMap::new(),
        keep: BTreeSet::new(),
    };
    if let Some(why) = from.hindrance.clone() {
        // What was concluded before stands: a question that fails takes nothing away.
        let stands = before.filter(|it| {
            it.outcome.is_ok()
                && it.from.ask == from.ask
                && it.from.policy == from.policy
                && it.from.kubernetes == from.kubernetes
        });
        return match stands {
            Some(it) => Resolved { from, at: now, ..it },
            None => unresolved(from, why),
        };
    }
    let Some((offered, offered_at)) = memory.offered.last() else {
        let why = "Amazon EC2 has not said yet which instance types it offers";
        return unresolved(from, NoImage::because(why));
    };
    let family = class.ask.family;
    if types.get(&family).is_none_or(|(at, _)| *at != offered_at) {
        types.insert(family, (offered_at, Machines::new(&offered.types, family)));
    }
    let Some((_, machines)) = types.get(&family) else {
        return unresolved(from, NoImage::because("no instance types were read"));
    };
    let pools = pools_of(sight, &class.key).map(|it| Pool {
        name: it.name.clone(),
        labels: it.template.labels.clone(),
        requirements: it.requirements.clone(),
    });
    let setting = Setting {
        kubernetes: sight.view.kubernetes,
        account: sight.config.account.clone(),
        machines,
        types: TypesAsked::Any,
        pools: pools.collect(),
        in_use: from.in_use.clone(),
    };
    let index = memory.images.catalog.index(now);
    let resolution = resolve(&index, &class.ask, &from.policy, &setting);
    let plain = wanted(&resolution, None, Purpose::Wave);
    let mut before = before.map(|it| it.wanted).unwrap_or_default();
    let class_stamp = words.stamp.answer(&class.launch, Settings::static_stamp);
    let somewhere = words.somewhere.answer(&offered_at, |_| {
        let somewhere = |it: &Arc<Offered>| {
            let zones = it.zones.iter().filter(|(_, zones)| !zones.is_empty());
            Arc::new(zones.map(|(name, _)| name.clone()).collect())
        };
        let before = memory.offered.before_by(OFFERED_EVERY).map(somewhere);
        Listed { last: somewhere(offered), before }
    });
    words.templates.retain(|it, _| sight.view.pools.contains_key(it));
    let of_pools = pools_of(sight, &class.key).map(|pool| {
        let template = words.templates.entry(pool.name.clone()).or_default();
        let stamps = (class_stamp.clone(), template.answer(&pool.template, PoolTemplate::stamp));
        let now_wanted =
            plain.clone().beside(beside(sight, class, pool, stamps, &from, &somewhere));
        // The same as before is the same value, so that no node is compared again.
        let same = before.remove(&pool.name).filter(|it| **it == now_wanted);
        (pool.name.clone(), same.unwrap_or_else(|| Arc::new(now_wanted)))
    });
    let wanted = of_pools.collect();
    let keep = to_keep(&resolution, &from.in_use);
    Resolved { outcome: Ok(resolution), from, at: now, wanted, keep }
}

fn beside(
    sight: &Sight<'_>,
    class: &Class,
    pool: &nodemolt_core::seen::Pool,
    (class_stamp, template_stamp): (Stamp, Stamp),
    from: &From,
    somewhere: &Listed,
) -> Beside {
    let listed = |names: fn(&Network) -> BTreeSet<String>| {
        let last = Arc::new(names(from.network.as_ref()?));
        let before = from.network_before.as_ref().map(|it| Arc::new(names(it)));
        Some(Listed { last, before })
    };
    Beside {
        class_stamp: Some(class_stamp),
        template_stamp: Some(template_stamp),
        requirements: pool.requirements.clone(),
        instance_types: Some(somewhere.clone()),
        security_groups: listed(|it| it.security_groups.keys().cloned().collect()),
        subnets: listed(|it| it.subnets.iter().map(|it| it.id.clone()).collect()),
        reservations: listed(|it| it.reservations.iter().map(|it| it.id.clone()).collect()),
        placement_group: match &class.launch.placement_group {
            None => Some(None),
            Some(PlacementGroup::Name(name)) => Some(Some(name.clone())),
            // EC2 tells a machine's group by its name.
            Some(PlacementGroup::Id(_)) => None,
        },
        control_plane: sight.view.kubernetes,
    }
}

fn to_keep(resolution: &Resolution, in_use: &BTreeSet<ImageId>) -> BTreeSet<ImageId> {
    let mut dated: Vec<(Option<Timestamp>, &ImageId)> =
        resolution.refused.iter().map(|(id, it)| (it.dated, id)).collect();
    dated.sort_by(|a, b| b.cmp(a));
    let newest = dated.into_iter().take(REMEMBERED_MAX).map(|(_, id)| id);
    let chosen = resolution.chosen.iter().map(|it| &it.id);
    chosen.chain(in_use).chain(newest).cloned().collect()
}

/// What the objects that remember images do not say yet.
pub(crate) fn to_remember(memory: &Memory, sight: &Sight<'_>) -> Vec<NewMemory> {
    let now = sight.now;
    let mut keep: BTreeSet<&ImageId> = memory.classes.values().flat_map(|it| &it.keep).collect();
    // What becomes of one that we have written down is of interest for as long as that stands.
    let ours = sight.view.images.iter().filter(|(_, it)| it.first_seen.is_some());
    keep.extend(ours.map(|(id, _)| id));
    let mut missing = Vec::new();
    for id in keep {
        let Some(sighting) = memory.images.catalog.images.get(id) else { continue };
        let known = sight.view.images.get(id);
        let withdrawn = sighting.withdrawn_by(now);
        let not_listed_since = sighting.presence.absent_since();
        let said = known.is_some_and(|it| {
            (it.first_seen.is_some() || sighting.first_seen.is_none())
                && it.looks.is_some()
                && it.withdrawn.is_some() == withdrawn.is_some()
                && it.not_listed_since.is_some() == not_listed_since.is_some()
        });
        if said {
            continue;
        }
        // What is remembered was put back by now, unless it was taken back.
        let stands = known.and_then(|it| it.withdrawn.as_ref());
        let returned = stands.filter(|_| withdrawn.is_none());
        missing.push(NewMemory {
            known: known.cloned(),
            image: id.clone(),
            region: Some(sight.config.region.clone()),
            first_seen: sighting.first_seen,
            appeared: Some(sighting.appeared),
            first_owner: sighting.image.owner.clone(),
            looks: Some(Looks::of(&sighting.image)),
            // It may be taken back and come again: so it has a time.
            withdrawn: withdrawn.map(|it| Withdrawn { at: it.at.or(Some(now)), ..it }),
            returned: returned.map(|it| it.at.map_or(now, |at| at.max(now))),
            not_listed_since,
        });
    }
    missing
}

/// What there is to tell of the images of each class: what is not known, who was not answered, and which
/// images nobody may boot though they are newer.
pub(crate) fn told(memory: &Memory, sight: &Sight<'_>) -> BTreeMap<String, ClassTold> {
    let told = sight.classes().map(|(key, _)| {
        let Some(resolved) = memory.classes.get(key) else {
            return (key.to_string(), ClassTold::default());
        };
        let queries = resolved.from.queries.iter();
        let images = queries.filter_map(|it| memory.images.unanswered(it, IMAGES_EVERY));
        let machines = sight.view.classes.get(key).into_iter();
        let machines = machines.flat_map(|it| unanswered(memory, it));
        let unanswered = machines.chain(images).collect();
        let resolution = resolved.outcome.as_ref().ok();
        let newer = resolution.map_or_else(Vec::new, |it| newer(memory, it));
        let problems = resolution.into_iter().flat_map(|it| &it.terms).flat_map(|it| &it.problems);
        let nowhere = problems.filter_map(NoImage::nowhere).collect();
        let unresolved = resolved.outcome.as_ref().err().cloned();
        (key.to_string(), ClassTold { unresolved, unanswered, nowhere, newer })
    });
    told.collect()
}

/// Of what could be launched of a class: what was not answered when it was asked last.
pub(super) fn unanswered(memory: &Memory, class: &Class) -> impl Iterator<Item = Unanswered> {
    let network = memory.networks.get(&class.network);
    let network = network.and_then(|it| it.unanswered(&NETWORK_CALLS, NETWORK_EVERY));
    let offered = memory.offered.unanswered(&OFFERED_CALLS, OFFERED_EVERY);
    offered.into_iter().chain(network)
}

/// Refused ones that are younger than any that was chosen for the same processor.
fn newer(memory: &Memory, resolution: &Resolution) -> Vec<Newer> {
    let images = &memory.images.catalog.images;
    let processor = |id: &ImageId| images.get(id).map(|it| it.image.architecture.as_str());
    let mut chosen: BTreeMap<Option<&str>, Timestamp> = BTreeMap::new();
    for it in &resolution.chosen {
        if let Some(dated) = it.dated {
            let newest = chosen.entry(processor(&it.id)).or_insert(dated);
            *newest = dated.max(*newest);
        }
    }
    let refused = resolution.refused.iter().filter(|(id, it)| {
        let newest = chosen.get(&processor(id));
        it.dated.is_some_and(|dated| newest.is_none_or(|newest| dated > *newest))
    });
    let mut newer: Vec<Newer> = refused
        .map(|(id, it)| Newer {
            image: image_ref(memory, id),
            architecture: processor(id).map(str::to_owned),
            refusal: it.refusal.clone(),
        })
        .collect();
    newer.sort_by(|a, b| (b.image.dated, &b.image.id).cmp(&(a.image.dated, &a.image.id)));
    newer
}
