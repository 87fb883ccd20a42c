//! What could each pool launch, and how does it fare?
//!
//! `pool × class × what EC2 offers × subnets × images × marks → machines with their offerings`

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::budget::Limits;
use nodemolt_core::image::ImageId;
use nodemolt_core::plan::{Dry, Fleet, Hand, PoolState, Unable, Unasked, Unfollowed, UsedUp};
use nodemolt_core::replace::{Because, Order, Phase, Replacement};
use nodemolt_core::seen::{Claim, Class, Pool, Stage, View};
use nodemolt_core::wanted::{NoImage, Wanted};
use nodemolt_fit::capacity::Amounts;
use nodemolt_fit::pod::{Demand, Namespace, Pod};
use nodemolt_fit::pool::{self, Machine, NODES, Offering, machines};
use nodemolt_fit::{Key, Operator, Quantity, Requirements, Vocabulary, Written, label};

use super::Sight;
use super::classes;
use super::limits::foreign_pools;
use super::wishes::image_of;
use crate::claims::{Here, Mark, launches_nothing};
use crate::memory::{Memory, after, wait_after};
use crate::port::{Network, NewClaim, Offered, Subnet};
use crate::record::Recorded;

/// After a launch that found no capacity the pool rests, doubling: what EC2 lacks it lacks for minutes.
const BACK_OFF_FIRST: SignedDuration = SignedDuration::from_mins(5);
const BACK_OFF_MAX: SignedDuration = SignedDuration::from_hours(1);

/// Whoever has just begun asks EC2 first. After this somebody who waits for one of the answers has waited long enough.
pub(crate) const FIRST_ANSWERS_WITHIN: SignedDuration = SignedDuration::from_secs(30);

const ON_DEMAND: &str = "on-demand";
const SPOT: &str = "spot";
const RESERVED: &str = "reserved";

/// The machines of a pool, and from what they were made.
#[derive(Debug)]
pub(crate) struct Shelf {
    from: From,
    machines: Arc<Vec<Machine>>,
    /// Why there are none, where nothing of the class can be launched whatever it is.
    unable: Option<String>,
}

#[derive(Debug, PartialEq)]
struct From {
    class: (String, i64),
    pool: (String, i64),
    offered_at: Timestamp,
    network: Arc<Network>,
    wanted: Arc<Wanted>,
    remembered: usize,
    marks: BTreeSet<Mark>,
}

/// The pools that can launch a node now, complete.
#[derive(Debug, Default)]
pub(crate) struct Launching {
    /// By pool: what is used of it by claims that are seen.
    used: BTreeMap<String, Amounts>,
    /// For whichever pods.
    pub(crate) for_pods: Vec<pool::Pool>,
    /// Kept at a number: only in the place of those that go.
    pub(crate) kept: Vec<pool::Pool>,
}

pub(crate) fn launching(memory: &mut Memory, sight: &Sight<'_>) -> Launching {
    let daemons = daemons(sight);
    let mut pools = Launching::default();
    for it in sight.view.pools.values().filter(|it| !it.deleting) {
        let Some(machines) = could_launch(memory, sight, it) else { continue };
        let used = used(sight, it, &machines);
        pools.used.insert(it.name.clone(), used.clone());
        let pool = pool::Pool { used, daemons: daemons.clone(), machines, ..it.fit.clone() };
        if it.replicas.is_some() {
            pools.kept.push(pool);
        } else {
            pools.for_pods.push(pool);
        }
    }
    pools
}

/// The machines that a pool asks for, that are offered where it has subnets, and that have an image. `None`:
/// nobody knows.
pub(crate) fn could_launch(
    memory: &mut Memory,
    sight: &Sight<'_>,
    pool: &Pool,
) -> Option<Arc<Vec<Machine>>> {
    let class = sight.view.classes.get(&pool.class).filter(|it| !it.deleting)?;
    shelf(memory, sight, pool, class)
}

/// Whether EC2 has said what could be launched in the place of a node of this pool: by the pool itself; and, while
/// answers to the first questions may be on their way, by any other.
pub(crate) fn known(memory: &mut Memory, sight: &Sight<'_>, pool: Option<&str>) -> bool {
    let young = memory.began_at.is_none_or(|it| sight.now < after(it, FIRST_ANSWERS_WITHIN));
    let pools = sight.view.pools.values().filter(|it| {
        !it.deleting && sight.ours(&it.class) && (young || pool == Some(it.name.as_str()))
    });
    pools.into_iter().all(|it| could_launch(memory, sight, it).is_some())
}

/// Whether a machine can be what is asked for, by what its type decides and by some way to buy it. What
/// neither of them decides is written on whatever comes.
pub(crate) fn can_be(machine: &Machine, asked: &Requirements, vocabulary: &Vocabulary) -> bool {
    let text = |key: Key| vocabulary.key_text(key);
    let value = |it: &String| vocabulary.value(it);
    let bought = |offering: &Offering| {
        asked.iter().filter(|(key, _)| label::by_offering(&text(*key))).all(|(key, asked)| {
            let has = offering.labels.get(text(key).as_ref());
            has.is_none_or(|it| asked.admits(value(it)))
        })
    };
    of_kind(machine, asked, vocabulary) && machine.offerings.iter().any(bought)
}

/// The same by what its type decides alone, whether it can be had or not.
fn of_kind(machine: &Machine, asked: &Requirements, vocabulary: &Vocabulary) -> bool {
    let text = |key: Key| vocabulary.key_text(key);
    asked.iter().filter(|(key, _)| label::by_type(&text(*key))).all(|(key, asked)| {
        match machine.labels.get(text(key).as_ref()) {
            Some(values) => values.iter().any(|it| asked.admits(vocabulary.value(it))),
            None => asked.admits_absent(),
        }
    })
}

/// Why a pool launches nothing, where that is for want of its class or of an image for every machine that it asks for.
pub(crate) fn no_image(memory: &Memory, sight: &Sight<'_>, pool: &Pool) -> Option<NoImage> {
    let Some(class) = sight.view.classes.get(&pool.class).filter(|it| !it.deleting) else {
        let because = format!("EC2NodeClass `{}` is not there", pool.class.name);
        let object = Some(("EC2NodeClass", pool.class.name.clone()));
        return Some(NoImage { because, object, until: None });
    };
    let wanted = memory.classes.get(&class.key)?.wanted.get(&pool.name)?;
    let (offered, _) = memory.offered.last()?;
    // Whether they can be had otherwise is not asked here.
    let all = machines(&offered.types, &class.offers, |_| vec![Offering::new("", ON_DEMAND, None)]);
    let vocabulary = Vocabulary::new();
    let asked = Requirements::read(&pool.requirements, &vocabulary);
    let mut why = None;
    for it in all.iter().filter(|it| of_kind(it, &asked, &vocabulary)) {
        match image_of(wanted, Some(&pool.name), &it.name, sight) {
            Ok(_) => return None,
            // One that is held back says more than a machine for which there is none at all.
            Err(it) => why = why.filter(|it: &NoImage| it.object.is_some()).or(Some(it)),
        }
    }
    let own = || Some(("EC2NodeClass", pool.class.name.clone()));
    why.map(|it| NoImage { object: it.object.or_else(own), ..it })
}

/// Pools that have no address for a new node, and those whose old nodes go first and that nothing could follow.
pub(crate) fn tell_unable(
    memory: &mut Memory,
    sight: &Sight<'_>,
    limits: &Limits,
    fleet: &mut Fleet,
) {
    // While nobody needs a new node nobody asks.
    let needed = fleet.astir.as_ref().is_none_or(|it| !it.is_empty())
        || sight.view.pods.nowhere().next().is_some();
    let states = &mut fleet.pools;
    for pool in sight.view.pools.values() {
        if let Some(state) = states.get_mut(&pool.name) {
            state.dry = dry(memory, pool);
            if needed {
                state.unable = unable(memory, sight, pool);
                state.unasked = unasked(memory, sight, pool);
                state.used_up = used_up(memory, pool);
            }
        }
        let rule = limits.classes.get(&pool.class.to_string());
        if rule.is_none_or(|it| it.order != Order::DeleteFirst) {
            continue;
        }
        let Some(state) = states.get_mut(&pool.name) else { continue };
        let machines = could_launch(memory, sight, pool);
        let vocabulary = Vocabulary::new();
        let asked = Requirements::read(&pool.requirements, &vocabulary);
        let some = |it: &Vec<Machine>| it.iter().any(|it| can_be(it, &asked, &vocabulary));
        // What is not known is no reason to let one go.
        state.launches_nothing = !machines.as_ref().is_some_and(|it| some(it));
        let machines = machines.iter().flat_map(|it| it.iter());
        let launchable: Vec<&Machine> =
            machines.filter(|it| can_be(it, &asked, &vocabulary)).collect();
        state.over_limit = over_limit(sight, pool, &launchable);
        state.unfollowed = unfollowed(memory, sight, pool).map(|it| Unfollowed {
            node: it.replacement.old.node.clone(),
            member: super::gone_from(sight, Some(&pool.name), None),
            at: it.replacement.since,
            because: it.replacement.because.clone(),
        });
    }
}

/// What EC2 did not answer, where it is not known for that what a pool could launch.
fn unasked(memory: &mut Memory, sight: &Sight<'_>, pool: &Pool) -> Option<Unasked> {
    let class = sight.view.classes.get(&pool.class).filter(|it| !it.deleting)?;
    if could_launch(memory, sight, pool).is_some() {
        return None;
    }
    let it = classes::unanswered(memory, class).next()?;
    let class = pool.class.name.clone();
    Some(Unasked { class, calls: it.names, because: it.because, again_at: it.again_at })
}

/// The reservations of a pool that asks for reserved capacity alone, where nothing is left of any.
fn used_up(memory: &Memory, pool: &Pool) -> Option<UsedUp> {
    // Asked in every turn in which somebody should go: nothing else of what it asks for is read.
    let asked = pool.requirements.iter();
    let mut asked = asked.filter(|it| label::normalise(&it.key) == label::CAPACITY_TYPE);
    let only = |it: &Written| it.operator == Operator::In && it.values == [RESERVED];
    if !asked.any(only) {
        return None;
    }
    let all = &memory.classes.get(&pool.class)?.network()?.reservations;
    let full = !all.is_empty() && all.iter().all(|it| it.remaining == 0);
    let reservations = all.iter().map(|it| it.id.clone()).collect();
    full.then(|| UsedUp { class: pool.class.name.clone(), reservations })
}

/// The subnets of a pool's class, in zones that it asks for, that have no address left; or that there are none.
fn dry(memory: &Memory, pool: &Pool) -> Option<Dry> {
    let network = memory.classes.get(&pool.class)?.network()?;
    // Asked in every turn, of which nearly all find addresses: nothing but the zones is read.
    let zones: Vec<_> = pool
        .requirements
        .iter()
        .filter(|it| label::normalise(&it.key) == label::ZONE)
        .cloned()
        .collect();
    let vocabulary = Vocabulary::new();
    let zones = (!zones.is_empty()).then(|| Requirements::read(&zones, &vocabulary));
    let asked_for = |it: &&Subnet| {
        let zones = zones.as_ref().and_then(|it| it.iter().next());
        zones.is_none_or(|(_, zones)| zones.admits(vocabulary.value(&it.zone)))
    };
    let subnets = network.subnets.iter().filter(asked_for);
    let (full, free): (Vec<&Subnet>, Vec<&Subnet>) = subnets.partition(|it| it.free_addresses == 0);
    // Another subnet of its zone serves as well.
    let served = |it: &&Subnet| !free.iter().any(|free| free.zone == it.zone);
    let full: Vec<(String, String)> =
        full.into_iter().filter(served).map(|it| (it.id.clone(), it.zone.clone())).collect();
    let everywhere = free.is_empty();
    let class = pool.class.name.clone();
    (everywhere || !full.is_empty()).then_some(Dry { class, subnets: full, everywhere })
}

/// The last of a pool that went first and whose successor did not come, if nobody of the pool has come up since, and it
/// would boot the same image.
pub(crate) fn unfollowed<'a>(
    memory: &Memory,
    sight: &Sight<'a>,
    pool: &Pool,
) -> Option<&'a Recorded> {
    let of_pool = |it: &&Recorded| it.pool.as_ref() == Some(&pool.name);
    let ended = |it: &&Recorded| {
        let Replacement { old, phase, .. } = &it.replacement;
        *phase == Phase::Failed
            && it.replacement.deletes_first()
            && sight.claim(&old.claim, &old.claim_uid).is_none()
    };
    let records = sight.records.replacements.values().filter(of_pool).filter(ended);
    let last = records.max_by_key(|it| it.replacement.since)?;
    let came = |it: &Claim| {
        it.pool.as_ref() == Some(&pool.name)
            && it.deleting_since.is_none()
            && it.stages.get(&Stage::Initialized).is_some_and(|at| *at > last.replacement.since)
    };
    let wanted = memory.classes.get(&pool.class).and_then(|it| it.wanted.get(&pool.name));
    let same_image = |image: &ImageId| {
        wanted.is_none_or(|it| it.bootable(Some(&pool.name)).any(|it| it.id == *image))
    };
    let same = last.told.wanted_image.as_ref().is_none_or(same_image);
    (same && !sight.view.claims.values().any(came)).then_some(last)
}

/// The resource of which a pool's limits have no room for the smallest that it could launch, though the
/// largest that it has would go for it.
fn over_limit(sight: &Sight<'_>, pool: &Pool, launchable: &[&Machine]) -> Option<String> {
    if pool.fit.limits.is_empty() || launchable.is_empty() {
        return None;
    }
    let claims = sight.view.claims.values().filter(|it| it.pool.as_ref() == Some(&pool.name));
    let claims: Vec<&Claim> = claims.collect();
    let mut used = Amounts::new();
    for it in &claims {
        add_one(&mut used, if it.capacity.is_empty() { &it.requests } else { &it.capacity });
    }
    let of = |amounts: &Amounts, name: &str| match name {
        NODES => Quantity::from_units(1),
        _ => amounts.get(name).copied().unwrap_or_default(),
    };
    let over = |name: &str, limit: Quantity| {
        let goes = claims.iter().map(|it| of(&it.capacity, name)).max().unwrap_or_default();
        let comes = launchable.iter().map(|it| of(&it.capacity, name)).min().unwrap_or_default();
        let used = used.get(name).copied().unwrap_or_default();
        used.saturating_sub(goes).saturating_add(comes) > limit
    };
    pool.fit.limits.iter().find(|(name, limit)| over(name, **limit)).map(|it| it.0.clone())
}

/// One pod of every `DaemonSet`, as each node gets it.
pub(crate) fn daemons(sight: &Sight<'_>) -> Vec<Pod> {
    let of = |((namespace, name), demand): (&(String, String), &Arc<Demand>)| {
        let known = sight.view.namespaces.get(namespace).cloned();
        let namespace = known.unwrap_or_else(|| Arc::new(Namespace::named(namespace)));
        Pod::new(&namespace, name, demand)
    };
    sight.view.daemons.iter().map(of).collect()
}

fn shelf(
    memory: &mut Memory,
    sight: &Sight<'_>,
    pool: &Pool,
    class: &Class,
) -> Option<Arc<Vec<Machine>>> {
    let (offered, offered_at) = memory.offered.last()?;
    let resolved = memory.classes.get(&class.key)?;
    let from = From {
        class: (class.uid.clone(), class.generation),
        pool: (pool.uid.clone(), pool.generation),
        offered_at,
        network: Arc::clone(resolved.network()?),
        wanted: Arc::clone(resolved.wanted.get(&pool.name)?),
        remembered: sight.view.images.len(),
        marks: memory.claims.marked(sight.now),
    };
    if let Some(shelf) = memory.shelves.get(&pool.name).filter(|it| it.from == from) {
        return Some(Arc::clone(&shelf.machines));
    }
    let unable = from.wanted.bootable(Some(&pool.name)).next().and_then(|image| {
        let (here, told) = (Here::of(sight.config), (class, from.network.as_ref()));
        launches_nothing(&here, told, &pool.boot, &image.id)
    });
    let may_boot = |kind: &str| {
        unable.is_none() && image_of(&from.wanted, Some(&pool.name), kind, sight).is_ok()
    };
    let ways = |kind: &str| {
        if may_boot(kind) { offerings(&from, sight, offered, kind) } else { Vec::new() }
    };
    let machines = Arc::new(machines(&offered.types, &class.offers, ways));
    let shelf = Shelf { from, machines: Arc::clone(&machines), unable };
    memory.shelves.insert(pool.name.clone(), shelf);
    Some(machines)
}

/// Why nothing of a pool's class can be launched for it, as far as anybody has looked.
fn unable(memory: &mut Memory, sight: &Sight<'_>, pool: &Pool) -> Option<Unable> {
    could_launch(memory, sight, pool)?;
    let because = memory.shelves.get(&pool.name)?.unable.clone()?;
    Some(Unable { class: pool.class.name.clone(), because })
}

/// How a type can be had: in the zones of the class's subnets, where a subnet has an address left.
fn offerings(from: &From, sight: &Sight<'_>, offered: &Offered, kind: &str) -> Vec<Offering> {
    let network = &from.network;
    let marked = |capacity_type: &str, zone: &str| {
        from.marks.contains(&Mark {
            capacity_type: capacity_type.to_owned(),
            instance_type: kind.to_owned(),
            zone: zone.to_owned(),
        })
    };
    let Some(zones) = offered.zones.get(kind) else { return Vec::new() };
    let mut ways = Vec::new();
    let with_address = network.subnets.iter().filter(|it| it.free_addresses > 0);
    let subnets: BTreeMap<&str, Option<&str>> =
        with_address.map(|it| (it.zone.as_str(), it.zone_id.as_deref())).collect();
    for (zone, zone_id) in subnets.into_iter().filter(|(zone, _)| zones.contains(*zone)) {
        let place = |mut offering: Offering| {
            offering.labels.insert(label::REGION.to_owned(), sight.config.region.clone());
            if let Some(id) = zone_id {
                offering.labels.insert(label::ZONE_ID.to_owned(), id.to_owned());
            }
            offering
        };
        for capacity_type in [ON_DEMAND, SPOT] {
            let price = match capacity_type {
                SPOT => offered.spot.get(&(kind.to_owned(), zone.to_owned())),
                _ => offered.on_demand.get(kind),
            };
            let offering = Offering::new(zone, capacity_type, price.copied());
            let available = !marked(capacity_type, zone);
            ways.push(place(Offering { available, ..offering }));
        }
        let reserved =
            network.reservations.iter().filter(|it| it.instance_type == kind && it.zone == zone);
        for it in reserved {
            // What is paid for costs nothing more.
            let mut offering = Offering::new(zone, RESERVED, Some(pool::Price(0)));
            let key = label::CAPACITY_RESERVATION_ID.to_owned();
            offering.labels.insert(key, it.id.clone());
            offering.remaining = Some(it.remaining);
            offering.available = !marked(RESERVED, zone);
            ways.push(place(offering));
        }
    }
    ways
}

impl Launching {
    /// Whether a claim that was decided before is still within the limits of its pool, beside those that are
    /// seen and these. Not before it is known what the pool launches, and so how large the claim may become.
    pub(crate) fn affords(&self, claim: &NewClaim, beside: &[NewClaim]) -> bool {
        let mut pools = self.for_pods.iter().chain(&self.kept);
        let Some(pool) = pools.find(|it| it.name == claim.pool) else { return false };
        let mut used = self.used.get(&pool.name).cloned().unwrap_or_default();
        for it in beside.iter().filter(|it| it.pool == pool.name).chain([claim]) {
            add_one(&mut used, &most(&pool.limits, &pool.machines, &it.requirements, &it.requests));
        }
        let within = |name: &String, limit: &Quantity| used.get(name).is_none_or(|it| it <= limit);
        pool.limits.iter().all(|(name, limit)| within(name, limit))
    }

    /// Beside claims that are seen these count, which were decided.
    pub(crate) fn count(&mut self, coming: &[&NewClaim]) {
        for pool in self.for_pods.iter_mut().chain(&mut self.kept) {
            pool.used = self.used.get(&pool.name).cloned().unwrap_or_default();
            for it in coming.iter().filter(|it| it.pool == pool.name) {
                let most = most(&pool.limits, &pool.machines, &it.requirements, &it.requests);
                add_one(&mut pool.used, &most);
            }
        }
    }
}

/// What exists of each pool, for people to read: a claim without a machine with what it was made for.
pub(crate) fn in_use<'a>(sight: &'a Sight<'_>) -> BTreeMap<&'a str, Amounts> {
    let launched = sight.roll.launched(sight.view).iter();
    let mut used: BTreeMap<&str, Amounts> =
        launched.map(|(pool, it)| (pool.as_str(), it.clone())).collect();
    for claim in sight.roll.bare(sight.view) {
        let Some(pool) = claim.pool.as_deref() else { continue };
        add_one(used.entry(pool).or_default(), &claim.requests);
    }
    used
}

/// By pool: what the machines of its claims have, where claims say so.
pub(crate) fn launched(view: &View) -> BTreeMap<String, Amounts> {
    let mut used: BTreeMap<&str, Amounts> = BTreeMap::new();
    for claim in view.claims.values().filter(|it| !it.capacity.is_empty()) {
        let Some(pool) = claim.pool.as_deref() else { continue };
        add_one(used.entry(pool).or_default(), &claim.capacity);
    }
    used.into_iter().map(|(pool, it)| (pool.to_owned(), it)).collect()
}

/// What counts against the limits of a pool: its claims, those that are on their way included.
fn used(sight: &Sight<'_>, pool: &Pool, machines: &[Machine]) -> Amounts {
    let launched = sight.roll.launched(sight.view).get(&pool.name);
    let mut used = launched.cloned().unwrap_or_default();
    let bare = sight.roll.bare(sight.view).filter(|it| it.pool.as_ref() == Some(&pool.name));
    for claim in bare {
        add_one(&mut used, &most(&pool.fit.limits, machines, &claim.requirements, &claim.requests));
    }
    used
}

/// What a claim may come to that has no machine yet: of each resource that its pool limits, the most that any
/// machine has which it could be. Nobody knows better before EC2 has answered.
fn most(
    limits: &Amounts,
    machines: &[Machine],
    requirements: &[Written],
    requests: &Amounts,
) -> Amounts {
    let mut most = requests.clone();
    if limits.keys().all(|it| it == NODES) {
        return most;
    }
    let vocabulary = Vocabulary::new();
    let asked = Requirements::read(requirements, &vocabulary);
    for machine in machines.iter().filter(|it| can_be(it, &asked, &vocabulary)) {
        for (name, amount) in &machine.capacity {
            let known = most.entry(name.clone()).or_default();
            *known = (*known).max(*amount);
        }
    }
    most
}

fn add_one(used: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        add(used, name, *amount);
    }
    add(used, NODES, Quantity::from_units(1));
}

pub(super) fn take_one(used: &mut Amounts, amounts: &Amounts) {
    for (name, used) in used {
        let amount = match name.as_str() {
            NODES => Quantity::from_units(1),
            name => amounts.get(name).copied().unwrap_or_default(),
        };
        *used = used.saturating_sub(amount);
    }
}

/// All claims of a fleet are added up, and few resources have a name: it is written once.
fn add(used: &mut Amounts, name: &str, amount: Quantity) {
    match used.get_mut(name) {
        Some(sum) => *sum = sum.saturating_add(amount),
        None => {
            used.insert(name.to_owned(), amount);
        }
    }
}

/// Who moves the nodes of each pool, and how its replacements went.
pub(crate) fn states(sight: &Sight<'_>) -> BTreeMap<String, PoolState> {
    let foreign = foreign_pools(sight);
    let mut states: BTreeMap<String, PoolState> = BTreeMap::new();
    for pool in sight.view.pools.values() {
        let hand = if foreign.contains(pool.name.as_str()) {
            Hand::Watch { by: format!("the controller of {}", pool.class.group) }
        } else {
            Hand::Own
        };
        let kept = pool.replicas.is_some();
        states.insert(pool.name.clone(), PoolState { hand, kept, ..PoolState::default() });
    }
    let ended = sight.records.replacements.values().filter(|it| it.replacement.phase.ended());
    let mut ended: Vec<_> = ended.collect();
    ended.sort_by_key(|it| (it.replacement.since, &it.name));
    let mut in_a_row: BTreeMap<&str, u32> = BTreeMap::new();
    for it in ended {
        let Some(pool) = it.pool.as_deref() else { continue };
        let Some(state) = states.get_mut(pool) else { continue };
        let in_a_row = in_a_row.entry(pool).or_default();
        let replacement = &it.replacement;
        if replacement.phase == Phase::Done {
            (state.failures, *in_a_row) = (0, 0);
            state.back_off = None;
        } else if replacement.phase.failed() {
            if let Because::LaunchGaveUp { why, .. } = &replacement.because {
                let wait = wait_after(*in_a_row, BACK_OFF_FIRST, BACK_OFF_MAX);
                state.back_off = Some((after(replacement.since, wait), why.clone()));
            }
            *in_a_row = in_a_row.saturating_add(1);
            // Whoever is to be tried again is no reason to pass over the others of its pool any more.
            if replacement.next_try_at().is_some_and(|it| sight.now < it) {
                state.failures = state.failures.saturating_add(1);
            }
        }
    }
    states
}
