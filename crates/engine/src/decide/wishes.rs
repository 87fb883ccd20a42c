//! Who should go, and since when?
//!
//! Deleted by a person or taken away by EC2; asked for; drifted; expired. One wish for each node, the most
//! urgent. A wish is no permission: whether it may be granted is the plan's to say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::drift::{Divergence, Drift};
use nodemolt_core::image::ImageId;
use nodemolt_core::node::{Foreign, ImageRef};
use nodemolt_core::plan::{NextTry, Recurs, UnderWay, Wish};
use nodemolt_core::replace::{Cause, LIFE_MIN, next_try_at};
use nodemolt_core::seen::{Claim, ClassKey, Kind, Node, Stage};
use nodemolt_core::wanted::{NoImage, Replacing, Wanted};

use super::Sight;
use super::classes::{Boots, Resolved};
use super::fleet::{Readings, not_wanted, ours, same};
use crate::memory::{Listed, Memory, after};
use crate::port::{Machine, MachineState};
use crate::record::{Lasting, Recorded};

/// By then it is a day between two tries.
const RECURS_MAX: u32 = 6;

/// A day is the longest wait; who went later than that after it was made did not go for nothing.
const RECURS_WITHIN: SignedDuration = SignedDuration::from_hours(25);

pub(crate) struct Wished {
    /// When the next node expires.
    pub(crate) next_at: Option<Timestamp>,
}

/// What wishes of the turn before followed from, beside what was read of each node.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// By pool: since when its nodes are asked to be replaced.
    asked: BTreeMap<String, Option<Timestamp>>,
    machines: Option<Arc<Listed>>,
    /// Which images may boot. `None`: something could not be read, which may be about anybody.
    images: Option<Images>,
    /// Somebody was held for what others say of every node.
    recurred: bool,
    /// Nodes that records are about.
    recorded: BTreeSet<String>,
    /// By node: the claim's UID, where it has drifted, or nobody knows.
    doubted: BTreeMap<String, String>,
    /// Those of them of whom others say that they have drifted.
    said: BTreeSet<String>,
    /// When nodes expire, and by node.
    expiries: BTreeSet<(Timestamp, String)>,
    expires: BTreeMap<String, Timestamp>,
}

/// Whether a node that should go can be followed.
#[derive(Debug, PartialEq)]
struct Images {
    boots: Boots,
    /// Why a class boots none.
    refused: BTreeMap<ClassKey, NoImage>,
    remembered: BTreeSet<ImageId>,
}

impl Images {
    fn of(memory: &Memory, sight: &Sight<'_>) -> Option<Self> {
        let view = sight.view;
        let all_read = view.unreadable.is_empty() && sight.records.unreadable.is_empty();
        let refused = |(key, it): (&ClassKey, &Resolved)| {
            Some((key.clone(), it.outcome.as_ref().err()?.clone()))
        };
        all_read.then(|| Self {
            boots: Boots::of(memory),
            refused: memory.classes.iter().filter_map(refused).collect(),
            remembered: view.images.keys().cloned().collect(),
        })
    }
}

impl Known {
    fn expires(&mut self, name: &str, at: Option<Timestamp>) {
        if self.expires.get(name).copied() == at {
            return;
        }
        if let Some(before) = self.expires.remove(name) {
            self.expiries.remove(&(before, name.to_owned()));
        }
        if let Some(at) = at {
            self.expires.insert(name.to_owned(), at);
            self.expiries.insert((at, name.to_owned()));
        }
    }
}

/// Only nodes are looked at of which something may have changed: the node, its claim or its pods; a record that is
/// about it; the time, where it expires. Whoever has a wish is looked at, too, when other images may boot.
pub(crate) fn wish(memory: &mut Memory, sight: &Sight<'_>, readings: &mut Readings) -> Wished {
    let mut records: BTreeMap<&str, &Recorded> = BTreeMap::new();
    for it in sight.records.replacements.values() {
        // Of an open one and an ended one the open one counts; of two ended ones the last.
        let rank = |it: &Recorded| (!it.replacement.phase.ended(), it.replacement.since);
        let known = records.entry(it.replacement.old.node.as_str()).or_insert(it);
        if rank(it) > rank(known) {
            *known = it;
        }
    }
    let drifts = Arc::clone(readings.drifts());
    let surge = surge(sight);
    let mut known = std::mem::take(&mut readings.wishes);
    let names = to_look_at(memory, sight, readings, &mut known, (&records, &surge));
    for name in &names {
        let at = readings.place_of(name);
        let machine = at.and_then(|it| readings.machine(it)).cloned();
        let Some(node) = readings.fleet_mut().nodes.get_mut(name) else {
            known.doubted.remove(name);
            known.said.remove(name);
            known.expires(name, None);
            continue;
        };
        let surges = surge.contains(name.as_str());
        let mut another = std::mem::replace(&mut node.member.surge, surges) != surges;
        let claimed = sight.claim_of(name);
        let claim = claimed.filter(|it| ours(sight, it));
        let record = records
            .get(name.as_str())
            .copied()
            .filter(|it| claim.is_none_or(|claim| claim.uid == it.replacement.old.claim_uid));
        if claimed.is_none() {
            let class = record.and_then(|it| class_of(sight, it));
            another |= node.member.class != class;
            node.member.class = class;
        }
        node.under_way = record
            .map(|it| &it.replacement)
            .filter(|it| !it.phase.ended())
            .map(|it| UnderWay { phase: it.phase, since: it.since });
        node.next_try = record.and_then(|it| {
            let at = it.replacement.next_try_at()?;
            let because = it.replacement.because.clone();
            Some(NextTry { at, failed_at: it.replacement.since, because })
        });
        node.succeeds = claim.and_then(|it| succeeds(sight, it)).map(str::to_owned);
        node.wish = None;
        known.doubted.remove(name);
        known.said.remove(name);
        known.expires(name, claim.and_then(expires_at));
        if let Some(claim) = claim
            && let Some(seen) = sight.view.nodes.get(name)
        {
            let drift = drifts.get(name);
            if drift.is_some_and(Drift::drifted) {
                memory.drifted_since.entry(claim.uid.clone()).or_insert(sight.now);
            }
            // What is not known just now has not come back into line by that.
            if drift.is_some_and(|it| matches!(it, Drift::Drifted { .. } | Drift::Unknown(_))) {
                known.doubted.insert(name.clone(), claim.uid.clone());
            }
            if drift.is_some_and(|it| lasting(it).next().is_some()) {
                known.said.insert(name.clone());
            }
            let machine = machine_of(memory, claim, machine.as_ref());
            node.wish = of_node(memory, sight, seen, claim, machine, drift);
            if let Some(Wish { no_image: Some(why), .. }) = &mut node.wish
                && let Some(hidden) = sight.hidden(claim)
            {
                *why = hidden;
            }
            if let Some(wish) = &mut node.wish {
                let why = sight.records.unreadable.get(&claim.uid);
                wish.unread = why.map(|it| (claim.uid.clone(), it.clone()));
            }
        }
        let stirs = node.wish.is_some() || node.under_way.is_some();
        let fades = node.fades();
        readings.members += u64::from(another);
        // Whoever is moved is not sent to a node that is to be replaced as well, if it can be helped.
        if let Some(room) = at.and_then(|it| readings.rooms.get_mut(it)) {
            room.set_fades(fades);
        }
        let astir = readings.fleet_mut().astir.get_or_insert_default();
        if stirs {
            astir.insert(name.clone());
        } else {
            astir.remove(name);
        }
    }
    if !memory.drifted_since.is_empty() {
        let doubted: BTreeSet<&str> = known.doubted.values().map(String::as_str).collect();
        memory.drifted_since.retain(|uid, _| doubted.contains(uid.as_str()));
    }
    readings.fleet_mut().astir.get_or_insert_default();
    let mut to_come = known.expiries.iter().map(|it| it.0);
    let next_at = to_come.find(|it| *it > sight.now);
    readings.wishes = known;
    hold_what_recurs(sight, readings, &drifts);
    Wished { next_at }
}

/// The class of a node whose claim has gone while its replacement goes on, because others hold the node: its grant counts
/// where it was given, until somebody follows.
fn class_of(sight: &Sight<'_>, record: &Recorded) -> Option<String> {
    let pool = record.pool.as_ref().filter(|_| !record.replacement.phase.ended());
    pool.and_then(|it| sight.view.pools.get(it)).map(|it| it.class.to_string())
}

/// Nodes whose wish may be another than in the turn before.
fn to_look_at(
    memory: &Memory,
    sight: &Sight<'_>,
    readings: &Readings,
    known: &mut Known,
    (records, surge): (&BTreeMap<&str, &Recorded>, &BTreeSet<&str>),
) -> BTreeSet<String> {
    let view = sight.view;
    let asked = view.pools.values().map(|it| (it.name.clone(), it.upgrade_asked_at)).collect();
    let machines = memory.machines.value();
    let same = known.asked == asked && same(known.machines.as_ref(), machines);
    let images = Images::of(memory, sight);
    let same_images = matches!((&known.images, &images), (Some(one), Some(it)) if one == it);
    (known.asked, known.machines, known.images) = (asked, machines.cloned(), images);
    let succeeding = sight.successors.keys().filter_map(|it| view.claims.get(*it)?.node.as_deref());
    let recorded = records.keys().chain(surge).copied().chain(succeeding).map(str::to_owned);
    let recorded: BTreeSet<String> = recorded.collect();
    let before = std::mem::replace(&mut known.recorded, recorded);
    let fleet = readings.fleet();
    let (Some(dirty), Some(astir), true) = (&readings.dirty, &fleet.astir, same) else {
        // Those that have gone are to be forgotten.
        let gone = known.doubted.keys().chain(known.expires.keys());
        return fleet.nodes.keys().chain(gone).cloned().collect();
    };
    let expired = known.expiries.iter().take_while(|it| it.0 <= sight.now).map(|it| &it.1);
    let wishing = (!same_images || known.recurred).then_some(astir).into_iter().flatten();
    let all = dirty.iter().chain(wishing).chain(&before).chain(&known.recorded).chain(expired);
    all.cloned().collect()
}

/// What others say of a new node as they said of the one that it took over from they would say of every node to come; and so it is
/// with a label that they write on it. So nobody of its pool is replaced for that alone before the new one is an hour old, then
/// two, up to a day.
fn hold_what_recurs(sight: &Sight<'_>, readings: &mut Readings, drifts: &BTreeMap<String, Drift>) {
    let mut recurring: BTreeMap<(String, Lasting), Recurs> = BTreeMap::new();
    for name in &readings.wishes.said {
        let Some(claim) = sight.claim_of(name) else { continue };
        let Some(pool) = &claim.pool else { continue };
        for (it, what) in drifts.get(name).into_iter().flat_map(lasting) {
            let Some(until) = recurs_until(sight, claim, &what).filter(|it| *it > sight.now) else {
                continue;
            };
            let key = (pool.clone(), what);
            let (by, reason) = if let Divergence::Foreign(it) = it {
                (Some(it.by.clone()), it.reason.clone())
            } else {
                (None, it.to_string())
            };
            let found = Recurs { by, reason, claim: claim.name.clone(), until };
            let known = recurring.entry(key).or_insert_with(|| found.clone());
            if known.until < found.until {
                *known = found;
            }
        }
    }
    readings.wishes.recurred = !recurring.is_empty();
    if recurring.is_empty() {
        return;
    }
    // Whoever has a wish is astir.
    let fleet = readings.fleet_mut();
    for name in fleet.astir.iter().flatten() {
        let Some(node) = fleet.nodes.get_mut(name) else { continue };
        let wish = node.wish.as_mut().filter(|it| it.cause == Cause::Drift);
        let Some((wish, drift)) = wish.zip(drifts.get(name)) else { continue };
        let Some(pool) = &node.member.pool else { continue };
        // Whatever else it has drifted in is a reason of its own.
        let all = lasting(drift).filter_map(|(_, it)| recurring.get(&(pool.clone(), it)));
        let all: Vec<&Recurs> = all.collect();
        if all.len() == drift.divergences().count() {
            wish.recurs = all.into_iter().max_by_key(|it| it.until).cloned();
        }
    }
}

/// What others say of a node.
fn foreign(drift: &Drift) -> impl Iterator<Item = &Foreign> {
    drift
        .divergences()
        .filter_map(|it| if let Divergence::Foreign(it) = it { Some(it) } else { None })
}

/// What others say of it or have made of it, and how that is told from all else.
fn lasting(drift: &Drift) -> impl Iterator<Item = (&Divergence, Lasting)> {
    drift.divergences().filter_map(|it| Some((it, Lasting::of(it)?)))
}

/// Until when a claim is not replaced for what others say or do, if the same was so of the node that it took over from: an hour
/// from its birth, twice as long for each before that which went for it within a day.
fn recurs_until(sight: &Sight<'_>, claim: &Claim, what: &Lasting) -> Option<Timestamp> {
    let records = &sight.records.replacements;
    let same = |it: &&Recorded| it.told.lasting.contains(what);
    let mut record = records.get(claim.successor_of.as_ref()?).filter(same)?;
    let mut times = 1;
    while times < RECURS_MAX {
        let uid = Some(&record.replacement.old.claim_uid);
        let made =
            |it: &&Recorded| it.replacement.successors.iter().any(|it| it.uid.as_ref() == uid);
        let Some(before) = records.values().filter(same).find(made) else { break };
        let went_at = record.told.started_at.unwrap_or(record.replacement.since);
        if went_at > after(before.replacement.since, RECURS_WITHIN) {
            break;
        }
        (record, times) = (before, times + 1);
    }
    let born = claim.stages.get(&Stage::Initialized).copied().unwrap_or(claim.created_at);
    Some(next_try_at(times, born))
}

/// Nodes that take over from one that is still there.
fn surge<'a>(sight: &Sight<'a>) -> BTreeSet<&'a str> {
    let view = sight.view;
    let beside = sight.successors.iter().filter(|(_, record)| {
        let record = sight.records.replacements.get(**record);
        record.is_some_and(|it| view.nodes.contains_key(&it.replacement.old.node))
    });
    let claims: Vec<&Claim> = beside.filter_map(|(claim, _)| view.claims.get(*claim)).collect();
    // Its node may be seen before its claim says so; the machine is known long before both.
    let machines: BTreeSet<_> = claims.iter().filter_map(|it| it.machine.as_ref()).collect();
    let joined = view.nodes.values().filter(|it| {
        !machines.is_empty() && it.machine.as_ref().is_some_and(|it| machines.contains(it))
    });
    let named = claims.iter().filter_map(|it| it.node.as_deref());
    named.chain(joined.map(|it| it.name.as_str())).collect()
}

fn expires_at(claim: &Claim) -> Option<Timestamp> {
    let lives = claim.expire_after.filter(|it| *it >= LIFE_MIN);
    lives.map(|it| after(claim.created_at, it))
}

/// The old node whose replacement is open and counts on this claim.
fn succeeds<'a>(sight: &Sight<'a>, claim: &Claim) -> Option<&'a str> {
    let replacement = sight.successors.get(claim.name.as_str())?;
    let record = sight.records.replacements.get(*replacement)?;
    Some(&record.replacement.old.node)
}

/// A claim's machine: mostly the one that its node was read with.
fn machine_of<'a>(
    memory: &'a Memory,
    claim: &Claim,
    read: Option<&'a Arc<Machine>>,
) -> Option<&'a Arc<Machine>> {
    let id = claim.machine.as_ref()?;
    read.filter(|it| it.id == *id).or_else(|| memory.machines.value()?.get(id))
}

fn of_node(
    memory: &Memory,
    sight: &Sight<'_>,
    node: &Node,
    claim: &Claim,
    machine: Option<&Arc<Machine>>,
    drift: Option<&Drift>,
) -> Option<Wish> {
    let plain = |cause, since| Wish {
        cause,
        since,
        by_name: false,
        no_image: None,
        unread: None,
        to_candidate: false,
        recurs: None,
    };
    let set_up = claim.stages.contains_key(&Stage::Initialized);
    let deleted_at = claim.deleting_since.or(node.deleting_since);
    // What a dead successor means its own replacement decides, until that has ended.
    let ended_at = machine
        .filter(|it| matches!(it.state, MachineState::ShuttingDown | MachineState::Terminated))
        .filter(|_| set_up && succeeds(sight, claim).is_none())
        .map(|_| memory.machines.last().map_or(sight.now, |(_, at)| at));
    // Whoever is deleted has to be emptied, a successor that nobody needs any more included. What was
    // deleted after EC2 had said that its machine has ended was deleted because of it.
    if let Some(since) = deleted_at.filter(|it| ended_at.is_none_or(|ended| *it <= ended)) {
        return Some(plain(Cause::Deleted, since));
    }
    if !set_up {
        return None;
    }
    if let Some(since) = ended_at {
        return Some(plain(Cause::Interrupted, since));
    }
    let pool = claim.pool.as_ref().and_then(|it| sight.view.pools.get(it));
    let of_pool = pool.and_then(|it| it.upgrade_asked_at);
    // Whoever came after the asking is what was asked for.
    let counts = |it: &Timestamp| *it > claim.created_at;
    let by_name = claim.upgrade_asked_at.max(node.upgrade_asked_at).filter(counts);
    // The last one counts: who asks again after a failure means it.
    let asked = by_name.max(of_pool.filter(counts));
    let expired = expires_at(claim).filter(|it| *it <= sight.now);
    let drifted = drift.is_some_and(Drift::drifted);
    let (cause, since) = match (asked, drifted, expired) {
        (Some(at), _, _) => (Cause::Asked, at),
        (None, true, _) => {
            let since = memory.drifted_since.get(&claim.uid).copied().unwrap_or(sight.now);
            // Others may have known it before us; no longer than the node is there.
            let said = drift.into_iter().flat_map(foreign).filter_map(|it| it.since).min();
            let said = said.map_or(since, |it| it.max(claim.created_at));
            (Cause::Drift, since.min(said))
        }
        (None, false, Some(at)) => (Cause::Expiry, at),
        (None, false, None) => return None,
    };
    let no_image = no_image(memory, sight, claim, node);
    Some(Wish { by_name: by_name.is_some(), no_image, ..plain(cause, since) })
}

/// Why its successor would have no image now. One that is not remembered yet is about to be.
fn no_image(memory: &Memory, sight: &Sight<'_>, claim: &Claim, node: &Node) -> Option<NoImage> {
    let Some(resolved) = memory.classes.get(&claim.class) else {
        return Some(not_wanted(memory, sight, claim));
    };
    if let Err(why) = &resolved.outcome {
        return Some(why.clone());
    }
    let pool = claim.pool.as_ref();
    let Some(wanted) = pool.and_then(|it| resolved.wanted.get(it)) else {
        return Some(not_wanted(memory, sight, claim));
    };
    let labels = &node.fit.labels;
    let instance_type = labels.get(nodemolt_fit::label::INSTANCE_TYPE)?;
    let pool = pool.map(String::as_str);
    // The pool asks for other machines by now: one of those takes over.
    let remembered = |it: &ImageRef| sight.view.images.contains_key(&it.id);
    if wanted.replacing(pool, instance_type) == Replacing::NotResolved
        && wanted.bootable(pool).any(remembered)
    {
        return None;
    }
    image_of(wanted, pool, instance_type, sight).err()
}

/// The image that a machine of this type would boot, if it may be used already.
pub(crate) fn image_of(
    wanted: &Wanted,
    pool: Option<&str>,
    instance_type: &str,
    sight: &Sight<'_>,
) -> Result<nodemolt_core::image::ImageId, NoImage> {
    match wanted.replacing(pool, instance_type) {
        Replacing::Image(image) if sight.view.images.contains_key(&image.id) => {
            Ok(image.id.clone())
        }
        // An object of its name that cannot be read remembers nothing, and no other can be made.
        Replacing::Image(image) => {
            Err(sight.unread(Kind::Image, image.id.as_str()).unwrap_or_else(|| {
                NoImage::because(format!("{} is about to be remembered", image.id))
            }))
        }
        Replacing::HeldBack(why) => Err(why.clone()),
        Replacing::NoImageFits => Err(NoImage::because(format!("no image fits {instance_type}"))),
        Replacing::NotResolved => {
            Err(NoImage::because(format!("no image was looked up for {instance_type}")))
        }
    }
}
