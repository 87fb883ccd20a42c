//! Which pods that we moved found no place, and who makes room for them?
//!
//! `records × pods that are pending → claims`
//!
//! Before a cordon every pod has a place on a ready node; but it is the scheduler that chooses, and it may
//! put others there. Whoever was moved and is pending gets a node of its own pool's making: an ordinary
//! claim, called after the pod, so that a second one is a conflict. Pods that are pending for any other
//! reason are not looked at here.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::drain::{self, KEEP_A_NUMBER, Moved, Owner, PodPhase};
use nodemolt_core::plan::{Fleet, Pending, WaitFor, in_the_way, lacks, not_followed};
use nodemolt_core::replace::{Phase, Replacement};
use nodemolt_core::seen::{Pod, PodKey};
use nodemolt_core::wanted::NoImage;
use nodemolt_fit::pack::Home;

use super::coming::UNSEEN_FOR;
use super::placing::Table;
use super::successors::{name_of, of_new_node};
use super::{Sight, Wake, pools};
use crate::act::{Errand, Intent};
use crate::memory::{Memory, after};
use crate::record::Recorded;

/// Pods that come so long after a replacement has ended did not come because of it.
const COMES_WITHIN: SignedDuration = SignedDuration::from_hours(6);

/// Of a workload that has more pods than this nobody asks whether one is missing: it has others.
const MISSED_AMONG_MAX: usize = 50;

/// The scheduler has its chance first, also while a pod that leaves still holds its room.
const ROOM_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Pods that took the place of those that we evicted and do not run yet, on a node or not. One that came
/// in time counts for as long as it is pending.
pub(crate) fn moved(sight: &Sight<'_>) -> Vec<Moved> {
    let waits = sight.view.pods.pending().filter(|it| it.drain.ends_at.is_none());
    let told = came_instead(sight, waits).into_iter().filter_map(|(pod, records)| {
        Some(Moved {
            pool: records.first()?.pool.clone()?,
            nodes: records.iter().map(|it| it.replacement.old.node.clone()).collect(),
            pod: pod.drain.id.clone(),
            pending_since: Some(pod.created_at),
        })
    });
    told.collect()
}

/// Those of them that are not ready, and from which node their like were moved: until they are, their
/// workload has not got over it, however long that takes and whatever the trouble is.
pub(crate) fn unsettled(sight: &Sight<'_>) -> Vec<(Arc<drain::Pod>, String)> {
    let waits = sight.view.pods.unready().filter(|it| it.drain.ends_at.is_none());
    let told = came_instead(sight, waits).into_iter();
    let told = told.filter_map(|(pod, records)| {
        Some((Arc::clone(&pod.drain), records.first()?.replacement.old.node.clone()))
    });
    told.collect()
}

/// Of each workload that keeps a number of pods, and of which none came since we moved some: one that it still has, and
/// from which node they were moved. How many it is to have we do not see, and it may have been told to have fewer:
/// so nobody is missed for longer than a pod that comes would be taken for one of those.
pub(crate) fn missing(sight: &Sight<'_>) -> Vec<(Arc<drain::Pod>, String)> {
    // By owner: since when those of the last node were asked to leave. Of one that has not been emptied somebody stays.
    let mut left: BTreeMap<&str, (Timestamp, &str)> = BTreeMap::new();
    for record in sight.records.replacements.values() {
        let Replacement { phase, since, old, .. } = &record.replacement;
        let Some(drain) = &record.drain else { continue };
        if *phase == Phase::Done && sight.now < after(*since, COMES_WITHIN) {
            for (owner, from) in &drain.moved {
                let last = left.entry(owner).or_insert((*from, &old.node));
                *last = (*last).max((*from, &old.node));
            }
        }
    }
    let pods = &sight.view.pods;
    let told = left.into_iter().filter_map(|(owner, (from, node))| {
        let there = pods.of_owner(owner);
        if there.len() > MISSED_AMONG_MAX {
            return None;
        }
        let there: Vec<&Pod> = there.filter_map(|it| pods.get(it)).collect();
        // API servers write whole seconds.
        let came = |it: &&Pod| after(it.created_at, SignedDuration::from_secs(1)) > from;
        let keeps = |it: &&Pod| match &it.drain.owner {
            Owner::Workload { kind, .. } => KEEP_A_NUMBER.contains(&kind.as_str()),
            Owner::Nobody | Owner::DaemonSet | Owner::Mirror => false,
        };
        let one = there.iter().copied().find(keeps).filter(|_| !there.iter().any(came))?;
        Some((Arc::clone(&one.drain), node.to_owned()))
    });
    told.collect()
}

/// Of these pods, those that came after we began to move their like; each with the records of that. A workload does
/// not say for whom a new pod is: where its pods were asked to leave several nodes at the time, it may be any of them.
fn came_instead<'a>(
    sight: &Sight<'a>,
    pods: impl Iterator<Item = &'a Pod>,
) -> Vec<(&'a Pod, Vec<&'a Recorded>)> {
    let mut of_owner: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        if let Some(owner) = &pod.owner_uid {
            of_owner.entry(owner).or_default().push(pod);
        }
    }
    // By the pod's UID: how late it came, since when its like are asked to leave, and where.
    let mut came: BTreeMap<&str, (&Pod, Vec<Whence<'a>>)> = BTreeMap::new();
    for record in sight.records.replacements.values().filter(|_| !of_owner.is_empty()) {
        let Some(drain) = record.drain.as_ref().filter(|_| record.pool.is_some()) else { continue };
        let Replacement { phase, since, .. } = &record.replacement;
        let until = if phase.ended() { after(*since, COMES_WITHIN) } else { Timestamp::MAX };
        for (owner, from) in &drain.moved {
            let pods = of_owner.get(owner.as_str()).into_iter().flatten().copied();
            for pod in pods.filter(|it| (*from..until).contains(&it.created_at)) {
                let known = came.entry(&pod.drain.id.uid).or_insert_with(|| (pod, Vec::new()));
                known.1.push((Came::of(pod, &record.replacement), *from, record));
            }
        }
    }
    let likely = |(pod, mut records): (_, Vec<Whence<'a>>)| {
        records.sort_by_key(|(came, from, it)| (*came, *from, &it.replacement.old.node));
        let first = records.first().map(|it| it.0);
        records.retain(|it| Some(it.0) == first);
        (pod, records.into_iter().map(|it| it.2).collect())
    };
    came.into_values().map(likely).collect()
}

/// How late it came, since when its like are asked to leave, and the record of that.
type Whence<'a> = (Came, Timestamp, &'a Recorded);

/// When a pod came, of whoever is replaced: a workload makes a new pod as soon as one leaves, so that what came while
/// one node was replaced did not come because of another that was done by then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    InTime,
    /// So long after; what is nearest is likeliest.
    Later(SignedDuration),
}

impl Came {
    fn of(pod: &Pod, Replacement { phase, since, .. }: &Replacement) -> Self {
        let later = pod.created_at.duration_since(*since);
        if phase.ended() && later.is_positive() { Self::Later(later) } else { Self::InTime }
    }
}

/// Every pod that no node has, for whoever asks about it.
pub(crate) fn pending(sight: &Sight<'_>, moved: &[Moved]) -> Vec<Pending> {
    let from: BTreeMap<&str, &Moved> = moved.iter().map(|it| (it.pod.uid.as_str(), it)).collect();
    let nowhere = sight.view.pods.nowhere().filter(|it| it.drain.phase == PodPhase::Pending);
    let told = nowhere.map(|it| {
        let moved = from.get(it.drain.id.uid.as_str());
        Pending {
            pod: it.drain.id.clone(),
            since: it.created_at,
            moved_from: moved.map(|it| it.pool.clone()),
            from_nodes: moved.map_or_else(Vec::new, |it| it.nodes.clone()),
            lacks: Vec::new(),
        }
    });
    told.collect()
}

/// Nodes for those who have waited long enough, and why there is none for the others.
#[derive(Default)]
pub(crate) struct Rooms {
    pub(crate) made: Vec<(Intent, Errand)>,
    /// By the pod's UID.
    lacks: BTreeMap<String, WaitFor>,
}

impl Rooms {
    /// Whoever asks about a pod that has no place is told what it lacks, an address too where no subnet has one.
    pub(crate) fn tell(&mut self, fleet: &mut Fleet) {
        for it in &mut fleet.pending {
            let pool = it.moved_from.as_ref().and_then(|it| fleet.pools.get(it));
            // It has no node whose zone it could be bound to.
            let lacks = self.lacks.remove(&it.pod.uid).map(|it| in_the_way(it, pool, None));
            let last = || {
                let last = pool.and_then(|it| it.unfollowed.as_ref());
                it.moved_from.as_ref().zip(last).map(|(pool, last)| vec![not_followed(pool, last)])
            };
            it.lacks = lacks.or_else(last).unwrap_or_default();
        }
    }
}

/// Claims for those who have waited long enough, where no node that is there or on its way has room.
pub(crate) fn make_room(
    memory: &mut Memory,
    sight: &Sight<'_>,
    table: &mut Table<'_>,
    moved: &[Moved],
    wake: &mut Wake,
) -> Rooms {
    let mut waiting: BTreeMap<(&str, &str), &Moved> = BTreeMap::new();
    // Whoever has a node already needs no other.
    let nowhere = |it: &&Moved| {
        let (namespace, name) = (it.pod.namespace.as_str().into(), it.pod.name.as_str().into());
        let pod = sight.view.pods.get(&PodKey { namespace, name });
        pod.is_some_and(|it| it.node.is_none())
    };
    for it in moved.iter().filter(nowhere) {
        let Some(since) = it.pending_since else { continue };
        let due = after(since, ROOM_AFTER);
        if sight.now < due {
            wake.at(Some(due));
        } else {
            waiting.insert((&it.pod.namespace, &it.pod.name), it);
        }
    }
    if waiting.is_empty() || unseen(memory, sight, wake) {
        return Rooms::default();
    }
    let placements = table.place_pending(memory, sight);
    // By the place of the new node: the first of the pods that are to run there.
    let mut rooms: BTreeMap<usize, &Moved> = BTreeMap::new();
    for (pod, home) in &placements.homes {
        let moved = waiting.get(&(&*pod.namespace, &*pod.name));
        if let (Home::New(at), Some(it)) = (home, moved) {
            rooms.entry(*at).or_insert(it);
        }
    }
    // Where its pool has nothing that may boot, that is what it lacks, and not the room of others.
    let mut without: BTreeMap<&str, Option<NoImage>> = BTreeMap::new();
    let mut told = BTreeMap::new();
    for (pod, why) in &placements.homeless {
        let Some(moved) = waiting.get(&(&*pod.namespace, &*pod.name)) else { continue };
        let no_image = without.entry(&moved.pool).or_insert_with(|| {
            let pool = sight.view.pools.get(&moved.pool)?;
            pools::no_image(memory, sight, pool)
        });
        let lacks = match no_image {
            Some(it) => WaitFor::Image(it.clone()),
            None => lacks(moved.pod.clone(), why),
        };
        told.insert(moved.pod.uid.clone(), lacks);
    }
    let lacks = told;
    let mut made = Vec::new();
    for (at, first) in rooms {
        let new = placements.new_nodes.get(at).and_then(|it| of_new_node(sight, it));
        let Some(mut claim) = new else { continue };
        claim.name = name_of(&claim.pool, &first.pod.uid, 0, 0);
        memory.rooms.insert(claim.name.clone(), (claim.clone(), sight.now));
        let intent = Intent::Claim(claim.name.clone());
        made.push((intent, Errand::MakeRoom { claim: Box::new(claim) }));
    }
    Rooms { made, lacks }
}

/// Whether one that we made is not in sight yet: a second one would be for the same pods.
fn unseen(memory: &Memory, sight: &Sight<'_>, wake: &mut Wake) -> bool {
    let unseen = memory.made.iter().filter(|(name, _)| !sight.view.claims.contains_key(*name));
    let until =
        unseen.map(|(_, (_, at))| after(*at, UNSEEN_FOR)).filter(|it| sight.now < *it).max();
    wake.at(until);
    until.is_some()
}
