//! What would have to change so that this pod has a place?
//!
//! `kind of pod × state → the place with the fewest obstacles`
//!
//! Slow and thorough: it runs once per kind of pod that has no place, after everything else.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    answer::{Account, Miss, Obstacle, Opened, Place},
    measure::{Scale, measured},
    narrow::No,
    prospect::{at_idle, at_pool},
    search::Sought,
    state::{Domain, Stage, State},
    topology::{Reach, What},
    world::{Checks, reaches_node},
};
use crate::{
    label,
    pod::{Pod, PodId, PodTerm, Volume},
    quantity::Quantity,
    requirement::{Operator, Written},
    selector::{NodeTerm, Selector, equal, matches},
    taint::{Effect, Taint, UNSCHEDULABLE},
};

/// So many places are looked at in all; the fewer kinds of pods are left over, the more for each.
const PLACES_MAX: usize = 1_000_000;
const PLACES_MIN: usize = 200;

pub(super) fn nearest(state: &State<'_, '_>, kind: usize, kinds: usize) -> Option<Miss> {
    let places = (PLACES_MAX / kinds.max(1)).max(PLACES_MIN);
    let idle = state.world.idle.iter().map(|hoped| Miss {
        place: Place::Pool(hoped.template.pool.name.clone()),
        obstacles: at_idle(state, kind, hoped),
    });
    let mut nearest = misses(state, kind, places).chain(idle).min_by(|left, right| {
        let key =
            |it: &Miss| (for_good(it), distance(state, kind, &it.obstacles), it.place.clone());
        key(left).cmp(&key(right))
    })?;
    by_name(state, kind, &mut nearest);
    Some(nearest)
}

/// How much of what a node lacks nobody can give it: where it is and what it is. A pool may launch another.
fn for_good(miss: &Miss) -> usize {
    let node = matches!(miss.place, Place::Node(_));
    let fixed = |key: &str| {
        label::not_for_pools(key) || node && (label::by_offering(key) || label::by_type(key))
    };
    let lacks = |it: &&Obstacle| {
        matches!(it, Obstacle::Label(asked) if fixed(&asked.key))
            || node && matches!(it, Obstacle::VolumeElsewhere { .. } | Obstacle::Unread(_))
    };
    miss.obstacles.iter().filter(lacks).count()
}

/// Say who is in the way. Looked for once, in the place that is told of.
fn by_name(state: &State<'_, '_>, kind: usize, miss: &mut Miss) {
    let world = state.world;
    let site = match &miss.place {
        Place::Node(name) => world.sites.iter().position(|it| it.name == *name),
        Place::Pool(_) => None,
    };
    for obstacle in &mut miss.obstacles {
        match obstacle {
            Obstacle::NobodyNear { whom, .. } => {
                *whom = Some(selected(&world.kinds[kind].demand.affinity));
            }
            Obstacle::TooNear { key, who: who @ None } => {
                *who = in_the_way(state, kind, site, key, |what, pod| match what {
                    What::Meant(it) => it.means(&pod.namespace, &pod.demand.labels),
                    What::Averse(_) | What::MeantByAll(_) | What::Spread(..) => false,
                });
            }
            Obstacle::Unwelcome { key, who: who @ None } => {
                *who = in_the_way(state, kind, site, key, |what, pod| {
                    let terms = &pod.demand.anti_affinity;
                    let averse = |it: &PodTerm| {
                        let reach = Reach::of_term(it, &pod.namespace, &pod.demand.labels);
                        *what == What::Averse(reach.clone())
                            || *what == What::Averse(reach.as_its_own())
                    };
                    terms.iter().any(averse)
                });
            }
            // Daemons of new nodes are named already.
            Obstacle::TooNear { who: Some(_), .. }
            | Obstacle::Unwelcome { who: Some(_), .. }
            | Obstacle::Taint(_)
            | Obstacle::Label(_)
            | Obstacle::NotOffered(_)
            | Obstacle::VolumeElsewhere { .. }
            | Obstacle::VolumesApart { .. }
            | Obstacle::VolumesFull { .. }
            | Obstacle::Short { .. }
            | Obstacle::TooSmall { .. }
            | Obstacle::TooLargeTogether { .. }
            | Obstacle::Unread(_)
            | Obstacle::Idle(_)
            | Obstacle::HostPortTaken(_)
            | Obstacle::LacksTopology { .. }
            | Obstacle::Skewed { .. }
            | Obstacle::NoSuchMachine
            | Obstacle::NoCapacity
            | Obstacle::NoImage
            | Obstacle::MinValues { .. }
            | Obstacle::PoolLimit { .. } => {}
        }
    }
}

fn selected(terms: &[PodTerm]) -> String {
    let texts = terms.iter().map(|it| match &it.selector {
        Selector::Nothing => "nobody".to_owned(),
        Selector::All(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "),
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// The first pod in the site's domain of the label whom one of the counters that keep the kind away counts.
fn in_the_way(
    state: &State<'_, '_>,
    kind: usize,
    site: Option<usize>,
    key: &str,
    counted: impl Fn(&What, &Pod) -> bool,
) -> Option<PodId> {
    let world = state.world;
    let at = world.keys.iter().position(|it| it.text == key)?;
    let domain = state.keys[at].of[site?];
    let away = world.kinds[kind].musts.away.iter().map(|it| &world.counters.all[*it]);
    let away: Vec<&What> = away.filter(|it| it.key == at).map(|it| &it.what).collect();
    let here = |place: usize| state.keys[at].of.get(place) == Some(&domain);
    let sites = world.sites.iter().enumerate().filter(|(place, _)| here(*place));
    let running = sites.flat_map(|(_, node)| &node.pods);
    let placed = state.placed.iter().filter(|it| here(it.place)).map(|it| &world.pods[it.pod]);
    let found = running.chain(placed).filter(|pod| away.iter().any(|it| counted(it, pod)));
    found.map(Pod::id).min()
}

/// Every place, and what is in the way there.
pub(super) fn account(state: &State<'_, '_>, kind: usize) -> Account {
    let sought =
        Sought { kind, wishes: &[], stage: Stage::Real, beside: false, company: &[], shun: &[] };
    let sites = state.world.sites.len();
    let opened = (sites..state.places()).map(|place| {
        let opened = match state.grown(place, &sought) {
            Ok(_) => Opened::WouldDo,
            Err(No::Full) => Opened::Full,
            Err(No::Never | No::NotNow) => Opened::Unsuited,
        };
        (place - sites, opened)
    });
    Account { places: misses(state, kind, usize::MAX).collect(), opened: opened.collect() }
}

fn misses(state: &State<'_, '_>, kind: usize, sites_max: usize) -> impl Iterator<Item = Miss> {
    let world = state.world;
    let sites = (0..world.sites.len().min(sites_max)).map(move |site| Miss {
        place: Place::Node(world.sites[site].name.clone()),
        obstacles: at_site(state, kind, site),
    });
    let pools = (0..world.pools.len()).map(move |pool| Miss {
        place: Place::Pool(world.pools[pool].pool.name.clone()),
        obstacles: at_pool(state, kind, pool),
    });
    sites.chain(pools)
}

/// What somebody can change at once is nearer than what takes another node or another pod. What was
/// put on a node to keep everybody away is not for a pod to tolerate.
pub(super) fn weight(obstacles: &[Obstacle]) -> u32 {
    let each = |it: &Obstacle| match it {
        Obstacle::PoolLimit { .. } => 1,
        Obstacle::Taint(taint) if taint.away().is_some() => 3,
        Obstacle::Short { .. }
        | Obstacle::TooLargeTogether { .. }
        | Obstacle::VolumesFull { .. }
        | Obstacle::Taint(_)
        | Obstacle::HostPortTaken(_)
        | Obstacle::Skewed { .. }
        | Obstacle::MinValues { .. }
        | Obstacle::NoCapacity
        | Obstacle::NoImage => 2,
        Obstacle::TooSmall { .. }
        | Obstacle::Idle(_)
        | Obstacle::TooNear { .. }
        | Obstacle::Unwelcome { .. }
        | Obstacle::NobodyNear { .. }
        | Obstacle::LacksTopology { .. }
        | Obstacle::NoSuchMachine => 3,
        // Another place would have to be there.
        Obstacle::Label(asked) if label::not_for_pools(&asked.key) => 50,
        Obstacle::Label(_) | Obstacle::NotOffered(_) | Obstacle::VolumeElsewhere { .. } => 4,
        Obstacle::VolumesApart { .. } => 5,
        // Whatever else is in the way there.
        Obstacle::Unread(_) => 100,
    };
    obstacles.iter().map(each).sum()
}

/// How far a place is from taking the pod: by what is in the way there, then by how much of it.
pub(super) fn distance(
    state: &State<'_, '_>,
    kind: usize,
    obstacles: &[Obstacle],
) -> (u32, usize, u64) {
    (weight(obstacles), obstacles.len(), extent(state, kind, obstacles))
}

/// How much would have to change, in thousandths: of what the pod asks for, or of one of what is counted.
fn extent(state: &State<'_, '_>, kind: usize, obstacles: &[Obstacle]) -> u64 {
    let (scale, kind) = (&state.world.scale, &state.world.kinds[kind]);
    let amount = |resource: &str, by: Quantity| {
        let Some(place) = scale.place(resource) else {
            return u64::try_from(by.ceil_units()).unwrap_or(u64::MAX).saturating_mul(1000);
        };
        let need = kind.needs.iter().find(|(it, _)| *it == place).map_or(1, |(_, it)| *it);
        let share = i128::from(measured(place, by)).saturating_mul(1000) / i128::from(need.max(1));
        u64::try_from(share).unwrap_or(0)
    };
    let each = |it: &Obstacle| match it {
        Obstacle::Short { resource, by }
        | Obstacle::TooSmall { resource, by }
        | Obstacle::TooLargeTogether { resource, by, .. }
        | Obstacle::PoolLimit { resource, by } => amount(resource, *by),
        Obstacle::VolumesFull { over, .. } => over.saturating_mul(1000),
        Obstacle::Skewed { skew, max, .. } => u64::from(skew.saturating_sub(*max)) * 1000,
        Obstacle::MinValues { have, need, .. } => u64::from(need.saturating_sub(*have)) * 1000,
        Obstacle::Taint(_)
        | Obstacle::Label(_)
        | Obstacle::NotOffered(_)
        | Obstacle::VolumeElsewhere { .. }
        | Obstacle::VolumesApart { .. }
        | Obstacle::Unread(_)
        | Obstacle::Idle(_)
        | Obstacle::HostPortTaken(_)
        | Obstacle::LacksTopology { .. }
        | Obstacle::NobodyNear { .. }
        | Obstacle::TooNear { .. }
        | Obstacle::Unwelcome { .. }
        | Obstacle::NoSuchMachine
        | Obstacle::NoCapacity
        | Obstacle::NoImage => 0,
    };
    obstacles.iter().map(each).fold(0, u64::saturating_add)
}

fn at_site(state: &State<'_, '_>, kind: usize, site: usize) -> Vec<Obstacle> {
    let world = state.world;
    let (node, demand) = (world.sites[site], world.kinds[kind].demand);
    if let Some(why) = &node.unread {
        return vec![Obstacle::Unread(why.clone())];
    }
    let mut obstacles = taints(&world.site_taints[site], demand);
    if obstacles.is_empty() && world.sites[site].closed {
        obstacles.push(Obstacle::Taint(Taint::new(UNSCHEDULABLE, "", Effect::NoSchedule)));
    }
    let have = |it: &Written| node.labels.get(&it.key).map(String::as_str);
    let selector = demand.node_selector.iter().map(|(key, value)| equal(key, value));
    obstacles.extend(selector.filter(|it| !matches(it, have(it))).map(Obstacle::Label));
    if let Some(terms) = &demand.node_terms {
        obstacles.extend(of_terms(terms, |term| {
            let fields = term.fields.iter().filter(|it| !matches(it, Some(&node.name)));
            term.labels.iter().filter(|it| !matches(it, have(it))).chain(fields).cloned().collect()
        }));
    }
    let out_of_reach = |it: &&Volume| {
        it.reach.as_ref().is_some_and(|it| !it.iter().any(|it| reaches_node(it, node)))
    };
    obstacles.extend(elsewhere(demand.volumes.iter().filter(out_of_reach), &demand.volumes));
    let free = state.free(site);
    let whole = world.scale.room(&node.allocatable, &node.volume_limits);
    for (place, need) in state.needs(kind, Some(site)) {
        let all = whole[place];
        if all > 0 && all < need && !world.scale.counts_volumes(place) {
            let resource = world.scale.name(place).to_owned();
            let by = world.scale.quantity(place, need.saturating_sub(all));
            obstacles.push(Obstacle::TooSmall { resource, by });
            // A larger one would do, and this one if it were larger and nobody was there.
            if free[place] < all {
                obstacles.push(short(&world.scale, place, all.saturating_sub(free[place])));
            }
        } else if free[place] < need {
            obstacles.push(short(&world.scale, place, need.saturating_sub(free[place])));
        }
    }
    obstacles.extend(state.ports_taken(kind, site).cloned().map(Obstacle::HostPortTaken));
    for key in &world.kinds[kind].decides {
        let domain = state.keys[*key].of[site];
        obstacles.extend(by_topology(state, &world.kinds[kind].musts, *key, domain));
    }
    obstacles
}

/// Volumes that cannot be reached. If no node can reach all of the pod's, nothing else helps.
pub(super) fn elsewhere<'v>(
    missed: impl Iterator<Item = &'v Volume>,
    all: &[Volume],
) -> Vec<Obstacle> {
    let missed: Vec<&Volume> = missed.collect();
    if missed.is_empty() {
        return Vec::new();
    }
    if let Some(handles) = apart_for_good(all) {
        return vec![Obstacle::VolumesApart { handles }];
    }
    let asks = |it: &Volume| it.reach.iter().flatten().next().map(|it| it.labels.clone());
    let missed = missed.into_iter().map(|it| Obstacle::VolumeElsewhere {
        handle: it.handle.clone(),
        asks: asks(it).unwrap_or_default(),
    });
    missed.collect()
}

/// Two volumes, each of which can be reached only with values of one label that the other does not have.
fn apart_for_good(volumes: &[Volume]) -> Option<Vec<String>> {
    let values = |volume: &Volume| -> Option<BTreeMap<String, BTreeSet<String>>> {
        let mut by_key: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for term in volume.reach.as_ref()? {
            let [only] = term.labels.as_slice() else { return None };
            if only.operator != Operator::In {
                return None;
            }
            let key = label::normalise(&only.key).to_owned();
            by_key.entry(key).or_default().extend(only.values.iter().cloned());
        }
        (by_key.len() == 1).then_some(by_key)
    };
    for (at, one) in volumes.iter().enumerate() {
        let Some(near) = values(one) else { continue };
        for other in &volumes[at + 1..] {
            let Some(far) = values(other) else { continue };
            let shared = near.iter().zip(&far).all(|((key, these), (other_key, those))| {
                key != other_key || these.intersection(those).next().is_some()
            });
            if !shared {
                return Some(vec![one.handle.clone(), other.handle.clone()]);
            }
        }
    }
    None
}

pub(super) fn taints(taints: &[Taint], demand: &crate::pod::Demand) -> Vec<Obstacle> {
    let stands = |it: &&Taint| it.effect.binding() && !it.tolerated_by(&demand.tolerations);
    taints.iter().filter(stands).cloned().map(Obstacle::Taint).collect()
}

/// Of the term that lacks least, what it lacks. One that asks nothing admits no node, whatever that node has.
fn of_terms(terms: &[NodeTerm], lacks: impl Fn(&NodeTerm) -> Vec<Written>) -> Vec<Obstacle> {
    let asking = terms.iter().filter(|it| !it.labels.is_empty() || !it.fields.is_empty());
    let lacking = asking.map(lacks).min_by_key(Vec::len).unwrap_or_default();
    lacking.into_iter().map(Obstacle::Label).collect()
}

pub(super) fn short(scale: &Scale, place: usize, by: i64) -> Obstacle {
    let name = scale.name(place).to_owned();
    if scale.counts_volumes(place) {
        return Obstacle::VolumesFull { driver: name, over: u64::try_from(by).unwrap_or(0) };
    }
    Obstacle::Short { resource: name, by: scale.quantity(place, by) }
}

pub(super) fn by_topology(
    state: &State<'_, '_>,
    checks: &Checks,
    key: usize,
    domain: Domain,
) -> Vec<Obstacle> {
    let world = state.world;
    let text = || world.keys[key].text.clone();
    let of_key = |at: &&usize| world.counters.all[**at].key == key;
    let Domain::In(domain) = domain else {
        let spread = checks.spreads.iter().any(|it| world.counters.all[it.counter].key == key);
        let needed = spread || checks.near.iter().any(|it| of_key(&it));
        let lacks = needed && domain == Domain::Lacking;
        return lacks.then(|| Obstacle::LacksTopology { key: text() }).into_iter().collect();
    };
    let mut obstacles = Vec::new();
    for at in checks.away.iter().filter(of_key) {
        if state.counts[*at].of(domain) > 0 {
            obstacles.push(match world.counters.all[*at].what {
                What::Averse(_) => Obstacle::Unwelcome { key: text(), who: None },
                What::Meant(_) | What::MeantByAll(_) | What::Spread(..) => {
                    Obstacle::TooNear { key: text(), who: None }
                }
            });
        }
    }
    if !state.first_of_its_own(checks) {
        let nobody = |at: &&usize| state.counts[**at].of(domain) == 0;
        let alone = checks.near.iter().filter(of_key).filter(nobody);
        obstacles.extend(alone.map(|_| Obstacle::NobodyNear { key: text(), whom: None }));
    }
    for check in checks.spreads.iter().filter(|it| world.counters.all[it.counter].key == key) {
        let there = state.counts[check.counter].of(domain) + u32::from(check.counts_itself);
        let skew = there.saturating_sub(state.least(check, Stage::Real));
        if skew > check.max_skew {
            obstacles.push(Obstacle::Skewed { key: text(), skew, max: check.max_skew });
        }
    }
    obstacles.sort_unstable();
    obstacles.dedup();
    obstacles
}
