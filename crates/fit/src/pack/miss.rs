//! What would have to change so that this pod has a place?
//!
//! `kind of pod × state → the place with the fewest obstacles`
//!
//! Slow and thorough: it runs once per kind of pod that has no place, after everything else.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    answer::{Account, Miss, Obstacle, Opened, Place},
    bits::Bits,
    measure::{Room, Scale},
    narrow::{No, apart_from},
    search::Sought,
    state::{Domain, Stage, State},
    template::{Fit, Template},
    topology::{Reach, What},
    world::{Checks, apart, reaches_node, same_port},
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
/// More ways than these to reach several volumes are not looked at.
const WAYS_MAX: usize = 64;
/// Taints of a node that is cordoned, does not answer or runs out of something.
const OF_KUBERNETES: &str = "node.kubernetes.io/";
/// Ends of taints that a node has until it is set up.
const OF_YOUNG_NODES: [&str; 4] =
    ["/uninitialized", "/agent-not-ready", "/unregistered", "/not-ready"];
/// Of nodes that somebody is about to remove.
const OF_GOING_NODES: [&str; 2] = ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"];

pub(super) fn nearest(state: &State<'_, '_>, kind: usize, kinds: usize) -> Option<Miss> {
    let places = (PLACES_MAX / kinds.max(1)).max(PLACES_MIN);
    let idle = state.world.idle.iter().map(|template| Miss {
        place: Place::Pool(template.pool.name.clone()),
        obstacles: at_idle(state, kind, template),
    });
    let mut nearest = misses(state, kind, places).chain(idle).min_by(|left, right| {
        let key = |it: &Miss| (weight(&it.obstacles), it.obstacles.len(), it.place.clone());
        key(left).cmp(&key(right))
    })?;
    by_name(state, kind, &mut nearest);
    Some(nearest)
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
            Obstacle::TooNear { key, who } => {
                *who = in_the_way(state, kind, site, key, |what, pod| match what {
                    What::Meant(it) => it.means(&pod.namespace, &pod.demand.labels),
                    What::Averse(_) | What::MeantByAll(_) | What::Spread(..) => false,
                });
            }
            Obstacle::Unwelcome { key, who } => {
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
            Obstacle::Taint(_)
            | Obstacle::Label(_)
            | Obstacle::NotOffered(_)
            | Obstacle::VolumeElsewhere { .. }
            | Obstacle::VolumesApart { .. }
            | Obstacle::VolumesFull { .. }
            | Obstacle::Short { .. }
            | Obstacle::TooSmall { .. }
            | Obstacle::Unread(_)
            | Obstacle::Idle(_)
            | Obstacle::HostPortTaken(_)
            | Obstacle::LacksTopology { .. }
            | Obstacle::Skewed { .. }
            | Obstacle::NoSuchMachine
            | Obstacle::NoCapacity
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
fn weight(obstacles: &[Obstacle]) -> u32 {
    let each = |it: &Obstacle| match it {
        Obstacle::PoolLimit { .. } => 1,
        Obstacle::Taint(taint)
            if taint.key.starts_with(OF_KUBERNETES)
                || OF_YOUNG_NODES.iter().any(|it| taint.key.ends_with(it))
                || OF_GOING_NODES.contains(&taint.key.as_str()) =>
        {
            3
        }
        Obstacle::Short { .. }
        | Obstacle::VolumesFull { .. }
        | Obstacle::Taint(_)
        | Obstacle::HostPortTaken(_)
        | Obstacle::Skewed { .. }
        | Obstacle::MinValues { .. }
        | Obstacle::NoCapacity => 2,
        Obstacle::TooSmall { .. }
        | Obstacle::Idle(_)
        | Obstacle::TooNear { .. }
        | Obstacle::Unwelcome { .. }
        | Obstacle::NobodyNear { .. }
        | Obstacle::LacksTopology { .. }
        | Obstacle::NoSuchMachine => 3,
        Obstacle::Label(_) | Obstacle::NotOffered(_) | Obstacle::VolumeElsewhere { .. } => 4,
        Obstacle::VolumesApart { .. } => 5,
        // Whatever else is in the way there.
        Obstacle::Unread(_) => 100,
    };
    obstacles.iter().map(each).sum()
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
        } else if free[place] < need {
            obstacles.push(short(&world.scale, place, need.saturating_sub(free[place])));
        }
    }
    obstacles.extend(state.port_taken(kind, site).cloned().map(Obstacle::HostPortTaken));
    for key in &world.kinds[kind].decides {
        let domain = state.keys[*key].of[site];
        obstacles.extend(by_topology(state, &world.kinds[kind].musts, *key, domain));
    }
    obstacles
}

/// Volumes that cannot be reached. If no node can reach all of the pod's, nothing else helps.
fn elsewhere<'v>(missed: impl Iterator<Item = &'v Volume>, all: &[Volume]) -> Vec<Obstacle> {
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

fn taints(taints: &[Taint], demand: &crate::pod::Demand) -> Vec<Obstacle> {
    let stands = |it: &&Taint| it.effect.binding() && !it.tolerated_by(&demand.tolerations);
    taints.iter().filter(stands).cloned().map(Obstacle::Taint).collect()
}

/// Of the term that lacks least, what it lacks. One that asks nothing admits no node, whatever that node has.
fn of_terms(terms: &[NodeTerm], lacks: impl Fn(&NodeTerm) -> Vec<Written>) -> Vec<Obstacle> {
    let asking = terms.iter().filter(|it| !it.labels.is_empty() || !it.fields.is_empty());
    let lacking = asking.map(lacks).min_by_key(Vec::len).unwrap_or_default();
    lacking.into_iter().map(Obstacle::Label).collect()
}

fn short(scale: &Scale, place: usize, by: i64) -> Obstacle {
    let name = scale.name(place).to_owned();
    if scale.counts_volumes(place) {
        return Obstacle::VolumesFull { driver: name, over: u64::try_from(by).unwrap_or(0) };
    }
    Obstacle::Short { resource: name, by: scale.quantity(place, by) }
}

fn by_topology(
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

/// What keeps one more node of the pool from being opened for this pod. Looked for in the order in
/// which they can be lifted: as soon as there is an answer it is given.
fn at_pool(state: &State<'_, '_>, kind: usize, pool: usize) -> Vec<Obstacle> {
    let world = state.world;
    let (template, what) = (&world.pools[pool], &world.kinds[kind]);
    let mut obstacles = taints(&template.pool.taints, what.demand);
    if world.required[what.required].pools[pool].is_empty() {
        let labels = asked_in_vain(state, kind, template);
        obstacles.extend(labels);
    } else if what.reached.as_ref().is_some_and(|(_, pools)| pools[pool].is_empty()) {
        let reaching = what.demand.volumes.iter().filter(|it| it.reach.is_some());
        obstacles.extend(elsewhere(reaching, &what.demand.volumes));
    }
    for (place, need) in state.needs(kind, None) {
        let most = template.rooms.most(place);
        if most < need {
            obstacles.push(short(&world.scale, place, need.saturating_sub(most)));
        }
    }
    if !obstacles.is_empty() {
        return if_all_could_be_had(state, kind, pool, obstacles);
    }
    let (fits, open) = fits(state, kind, pool);
    if fits.is_empty() {
        let obstacle = if open { Obstacle::NoSuchMachine } else { Obstacle::NoCapacity };
        return if_all_could_be_had(state, kind, pool, vec![obstacle]);
    }
    let clear: Vec<Fit> =
        fits.iter().flat_map(|it| without_daemons(state, kind, pool, it)).collect();
    if clear.is_empty() {
        return vec![daemon_in_the_way(state, kind, pool)];
    }
    obstacles = limits(state, pool, &clear);
    if !obstacles.is_empty() {
        return obstacles;
    }
    let sought =
        Sought { kind, wishes: &[], stage: Stage::Real, beside: false, company: &[], shun: &[] };
    if state.one_more(pool, &sought).is_ok() {
        return Vec::new();
    }
    let of_fit = |fit: &Fit| {
        let keys = what.decides.iter();
        let mut obstacles: Vec<Obstacle> =
            keys.flat_map(|key| everywhere(state, &what.musts, *key, pool, fit)).collect();
        obstacles.extend(template.min_values.iter().filter_map(|it| {
            let have = template.different(it, &fit.machines, &fit.slots);
            let obstacle = Obstacle::MinValues { key: it.key.clone(), have, need: it.need };
            (have < it.need).then_some(obstacle)
        }));
        obstacles
    };
    let told = clear.iter().map(of_fit).filter(|it| !it.is_empty());
    told.min_by_key(|it| (weight(it), it.len())).unwrap_or_else(|| vec![Obstacle::NoSuchMachine])
}

/// Where less would be in the way if there were capacity of all that is offered, that is what is lacking.
fn if_all_could_be_had(
    state: &State<'_, '_>,
    kind: usize,
    pool: usize,
    now: Vec<Obstacle>,
) -> Vec<Obstacle> {
    let Some(hoped) = state.world.hoped(pool) else { return now };
    let mut then = plainly(state, kind, hoped);
    if then.len() >= now.len() {
        return now;
    }
    then.push(Obstacle::NoCapacity);
    then
}

/// What keeps a pool from launching a node for this pod that launches none at all.
fn at_idle(state: &State<'_, '_>, kind: usize, template: &Template<'_>) -> Vec<Obstacle> {
    let why = template.pool.idle.clone().map_or(Obstacle::NoCapacity, Obstacle::Idle);
    // Nobody knows what it would launch.
    let mut obstacles = if template.machines.is_empty() {
        taints(&template.pool.taints, state.world.kinds[kind].demand)
    } else {
        plainly(state, kind, template)
    };
    obstacles.push(why);
    obstacles
}

/// What of a pod's own demands no node of the pool meets.
fn plainly(state: &State<'_, '_>, kind: usize, template: &Template<'_>) -> Vec<Obstacle> {
    let world = state.world;
    let demand = world.kinds[kind].demand;
    let mut obstacles = taints(&template.pool.taints, demand);
    let terms = demand.node_terms.as_deref();
    let mut ways = template.fits(&demand.node_selector, terms, &world.vocabulary);
    if ways.is_empty() {
        obstacles.extend(asked_in_vain(state, kind, template));
        return obstacles;
    }
    for reach in demand.volumes.iter().filter_map(|it| it.reach.as_ref()) {
        let way = |from: &Fit| -> Vec<Fit> {
            reach.iter().filter_map(|it| template.term(from, it, &world.vocabulary)).collect()
        };
        ways = ways.iter().flat_map(way).take(WAYS_MAX).collect();
    }
    if ways.is_empty() {
        let reaching = demand.volumes.iter().filter(|it| it.reach.is_some());
        obstacles.extend(elsewhere(reaching, &demand.volumes));
    }
    let needs = state.needs(kind, None);
    for (place, need) in &needs {
        let most = template.rooms.most(*place);
        if most < *need {
            obstacles.push(short(&world.scale, *place, need.saturating_sub(most)));
        }
    }
    let roomy = |way: &Fit| {
        template.rooms.parts(&way.slots).iter().any(|part| {
            let mut machines = way.machines.clone();
            for (place, need) in &needs {
                match part.at_least(*place, *need) {
                    Some(roomy) => machines.and(roomy),
                    None => machines.clear(),
                }
            }
            template.tidy_slots(&mut machines, &mut part.slots.as_ref().clone())
        })
    };
    if obstacles.is_empty() && !ways.iter().any(roomy) {
        obstacles.push(Obstacle::NoSuchMachine);
    }
    obstacles
}

/// What a new node for the pod could be, in each of its ways: machines that have the room, bought where the pod may go.
/// And whether it could be anything, were there room.
fn fits(state: &State<'_, '_>, kind: usize, pool: usize) -> (Vec<Fit>, bool) {
    let world = state.world;
    let template = &world.pools[pool];
    let (mut fits, mut open) = (Vec::new(), false);
    for way in world.ways(kind, pool) {
        let mut fit = state.fresh(pool);
        if !state.intersect(&mut fit, way, template) {
            continue;
        }
        open = true;
        for part in template.rooms.parts(&fit.slots) {
            let mut fit = Fit { slots: part.slots.as_ref().clone(), ..fit.clone() };
            for (place, need) in state.needs(kind, None) {
                match part.at_least(place, need) {
                    Some(roomy) => fit.machines.and(roomy),
                    None => fit.machines.clear(),
                }
            }
            if template.tidy_slots(&mut fit.machines, &mut fit.slots) {
                fits.push(fit);
            }
        }
    }
    (fits, open)
}

/// The same without nodes that would get a daemon that does not go together with the pod.
fn without_daemons(state: &State<'_, '_>, kind: usize, pool: usize, fit: &Fit) -> Vec<Fit> {
    let Some(barred) = state.world.kinds[kind].barred.get(pool) else { return vec![fit.clone()] };
    let machines: Bits = fit.machines.iter().filter(|it| !barred.machines.has(*it)).collect();
    let parts = apart_from(&barred.somewhere, &machines, &fit.slots).into_iter();
    let fits = parts.map(|(machines, slots)| Fit { machines, slots, custom: fit.custom.clone() });
    let template = &state.world.pools[pool];
    fits.filter_map(|mut it| template.tidy_slots(&mut it.machines, &mut it.slots).then_some(it))
        .collect()
}

/// What the pod and a daemon cannot share, where every machine that would do otherwise has that daemon.
fn daemon_in_the_way(state: &State<'_, '_>, kind: usize, pool: usize) -> Obstacle {
    let world = state.world;
    let (template, what) = (&world.pools[pool], &world.kinds[kind]);
    let hosted = |it: &&Pod| !template.ways_to_host(&it.demand, &world.vocabulary).is_empty();
    let mut daemons = template.pool.daemons.iter().filter(hosted);
    let port = daemons.clone().find_map(|it| same_port(what.demand, it));
    let mut near = || daemons.any(|it| apart(what.namespace, what.demand, it));
    match port {
        Some(port) => Obstacle::HostPortTaken(port.clone()),
        None if near() => Obstacle::TooNear { key: label::HOSTNAME.to_owned(), who: None },
        None => Obstacle::NoSuchMachine,
    }
}

/// Every domain that a new node could be in has something in the way: what, in the first.
fn everywhere(
    state: &State<'_, '_>,
    checks: &Checks,
    key: usize,
    pool: usize,
    fit: &Fit,
) -> Vec<Obstacle> {
    let place = state.places();
    let domain = state.domain(key, pool, fit, place);
    if domain != Domain::Undecided {
        return by_topology(state, checks, key, domain);
    }
    let options = state.options(key, pool, fit);
    let each = options.iter().map(|it| by_topology(state, checks, key, Domain::In(*it)));
    each.min_by_key(Vec::len).unwrap_or_default()
}

fn asked_in_vain(state: &State<'_, '_>, kind: usize, template: &Template<'_>) -> Vec<Obstacle> {
    let demand = state.world.kinds[kind].demand;
    let vocabulary = &state.world.vocabulary;
    let vain = |it: &Written| {
        let term = NodeTerm::labels(vec![it.clone()]);
        template.term(&template.base, &term, vocabulary).is_none()
    };
    let selector = demand.node_selector.iter().map(|(key, value)| equal(key, value));
    let mut obstacles: Vec<Obstacle> = selector.filter(vain).map(Obstacle::Label).collect();
    if let Some(terms) = &demand.node_terms {
        obstacles.extend(of_terms(terms, |term| {
            let fields = term.fields.iter();
            term.labels.iter().filter(|it| vain(it)).chain(fields).cloned().collect()
        }));
    }
    for it in &mut obstacles {
        if let Obstacle::Label(asked) = it
            && template.allows(asked, vocabulary)
        {
            *it = Obstacle::NotOffered(asked.clone());
        }
    }
    if obstacles.is_empty() {
        obstacles.push(Obstacle::NoSuchMachine);
    }
    obstacles
}

/// How much higher the pool's limits would have to be, so that one of these could be launched.
fn limits(state: &State<'_, '_>, pool: usize, fits: &[Fit]) -> Vec<Obstacle> {
    let template = &state.world.pools[pool];
    let Some(left) = &state.left[pool] else { return Vec::new() };
    let mut obstacles = Vec::new();
    if left.nodes.is_some_and(|it| it < 1) {
        let by = Quantity::from_units(1 - left.nodes.unwrap_or(0));
        obstacles.push(Obstacle::PoolLimit { resource: crate::pool::NODES.to_owned(), by });
    }
    let over = |takes: &Room| -> Vec<(usize, i64)> {
        let over = takes.iter().zip(&left.room).map(|(takes, left)| takes - left);
        over.enumerate().filter(|(_, it)| *it > 0).collect()
    };
    let least = fits.iter().filter_map(|it| takes_least(template, it)).map(|it| over(&it));
    let Some(least) = least.min_by_key(|it| (it.len(), it.clone())) else { return obstacles };
    for (at, by) in least {
        let resource = template.limited[at].clone();
        let place = state.world.scale.place(&resource);
        let by = state.world.scale.quantity(place.unwrap_or(usize::MAX), by);
        obstacles.push(Obstacle::PoolLimit { resource, by });
    }
    obstacles
}

/// What a node that can be this takes at least: of its smallest machine, or of as many as the pool demands.
fn takes_least(template: &Template<'_>, fit: &Fit) -> Option<Room> {
    let by_size = template.by_size.iter().copied().filter(|it| fit.machines.has(*it));
    let mut smallest = Bits::default();
    for machine in by_size {
        smallest.insert(machine);
        let enough = |it: &_| template.different(it, &smallest, &fit.slots) >= it.need;
        if template.min_values.iter().all(enough) {
            return Some(template.most_taken(&smallest));
        }
    }
    // It is not the limit that keeps it from being launched.
    None
}
