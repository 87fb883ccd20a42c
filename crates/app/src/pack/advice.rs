//! What else would help a pod that has no place?
//!
//! `pod × why × pools → instance types that its pool would have to allow, domains that are lacking`
//!
//! Asked of packing itself, for that pod alone: what is named here does hold it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_api::listing::World;
use nodemolt_fit::capacity::{
    Amounts, BlockDevice, EPHEMERAL_STORAGE, NodeOffer, NodeSettings, PODS, offer,
};
use nodemolt_fit::pack::{Miss, NewNode, Obstacle, Place, Why, pack};
use nodemolt_fit::pod::{Demand, Pod, Spread};
use nodemolt_fit::pool::{Machine, Offering, Pool};
use nodemolt_fit::selector::matches;
use nodemolt_fit::taint::{Tolerated, Toleration};
use nodemolt_fit::{Operator, Quantity, Types, Written, label};

use super::machines::Pools;
use super::remedy;

/// Asking packing takes its time; a thousand kinds of pods without a place have one cause most often.
const ASKED_MAX: usize = 64;
/// Each takes some fifteen questions.
const VOLUMES_ASKED_MAX: usize = 8;
/// Pools and types of which people are told.
const POOLS_SHOWN: usize = 3;
const TYPES_SHOWN: usize = 3;

/// EBS has no larger ones of the usual kind.
const VOLUME_MAX_GIB: u32 = 16_384;

/// By so many more pods a setting of the kubelet is tried.
const PODS_RAISED_MAX: u32 = 32;

/// Types that programs are told of, for each pod.
const TYPES_KEPT: usize = 12;

/// What a pool would have to allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Larger {
    pub pool: String,
    /// The cheapest first; where no price is known, the smallest first. None: nothing that is known has the room.
    pub types: Vec<String>,
    /// Requirements of the pool that rule the first of them out.
    pub ruled_out_by: Vec<String>,
    /// Not the pod alone, but all who must be on one node with it.
    pub together: bool,
}

impl Larger {
    pub(super) fn sentence(&self) -> String {
        let Self { pool, types, ruled_out_by, together } = self;
        let whom = if *together { "them" } else { "it" };
        if types.is_empty() {
            return format!("no instance type that could be had would hold {whom}");
        }
        let more = if types.len() > TYPES_SHOWN { ", …" } else { "" };
        let first: Vec<&str> = types.iter().take(TYPES_SHOWN).map(String::as_str).collect();
        let told =
            format!("{}{more} would hold {whom}, if pool {pool} allowed them", first.join(", "));
        if ruled_out_by.is_empty() {
            return told;
        }
        format!("{told} (it asks for {})", ruled_out_by.join(" and "))
    }
}

/// Whoever asks the same is answered once.
pub(super) struct Advice<'a> {
    pools: &'a Pools,
    types: &'a Types,
    known: BTreeMap<(*const Demand, &'a str), Option<Larger>>,
    volumes: BTreeMap<*const Demand, Option<String>>,
}

impl<'a> Advice<'a> {
    pub(super) fn new(pools: &'a Pools, types: &'a Types) -> Self {
        Self { pools, types, known: BTreeMap::new(), volumes: BTreeMap::new() }
    }

    /// Where a disk is too small: which would do.
    pub(super) fn volume(&mut self, pod: &Pod, why: &Why) -> Option<String> {
        let Why::NoPlace { nearest: Some(miss) } = why else { return None };
        let of_disk = |it: &Obstacle| {
            remedy::amount(it).is_some_and(|(resource, _)| resource == EPHEMERAL_STORAGE)
        };
        if !miss.obstacles.iter().any(of_disk) {
            return None;
        }
        let key = Arc::as_ptr(&pod.demand);
        if !self.volumes.contains_key(&key) {
            if self.volumes.len() >= VOLUMES_ASKED_MAX {
                return None;
            }
            self.volumes.insert(key, volume_needed(pod, miss, self.pools, self.types));
        }
        self.volumes.get(&key).cloned().flatten()
    }

    /// Where its size or a label of instance types is in the way: the types that would hold the pod.
    pub(super) fn larger(&mut self, pod: &Pod, why: &Why) -> Option<Larger> {
        let Why::NoPlace { nearest: Some(miss) } = why else { return None };
        let by_size = |it: &Obstacle| {
            matches!(
                it,
                Obstacle::Short { .. }
                    | Obstacle::TooSmall { .. }
                    | Obstacle::TooLargeTogether { .. }
                    | Obstacle::VolumesFull { .. }
                    | Obstacle::NoSuchMachine
            )
        };
        let by_label = |it: &Obstacle| matches!(it, Obstacle::Label(_) | Obstacle::NotOffered(_));
        if !miss.obstacles.iter().any(|it| by_size(it) || by_label(it)) {
            return None;
        }
        // That nothing has the room is known only where nothing else is in the way.
        let of_pool = matches!(miss.place, Place::Pool(_));
        let size_alone = of_pool && miss.obstacles.iter().all(by_size);
        let pools = self.pools.able.iter().filter(|it| match &miss.place {
            Place::Pool(name) => it.name == *name,
            Place::Node(_) => true,
        });
        let pools = heaviest_first(pools);
        let mut found = None;
        for pool in pools {
            let key = (Arc::as_ptr(&pod.demand), pool.name.as_str());
            if !self.known.contains_key(&key) {
                if self.known.len() >= ASKED_MAX {
                    return None;
                }
                self.known.insert(key, larger(pod, miss, pool, self.types));
            }
            let larger = self.known.get(&key).cloned().flatten();
            if larger.as_ref().is_some_and(|it| !it.types.is_empty()) {
                return larger;
            }
            found = found.or(larger.filter(|_| size_alone));
        }
        found
    }
}

/// As they are tried.
fn heaviest_first<'p>(pools: impl Iterator<Item = &'p Pool>) -> Vec<&'p Pool> {
    let mut pools: Vec<&Pool> = pools.collect();
    pools.sort_by(|left, right| {
        right.weight.cmp(&left.weight).then_with(|| left.name.cmp(&right.name))
    });
    pools
}

/// What all of them ask for who must be on one node, where that is what is too large.
fn of_all(miss: &Miss) -> Option<&Amounts> {
    miss.obstacles.iter().find_map(|it| {
        if let Obstacle::TooLargeTogether { requests, .. } = it { Some(requests) } else { None }
    })
}

/// `None` where its size is not what keeps the pod from the pool's nodes.
fn larger(pod: &Pod, miss: &Miss, pool: &Pool, types: &Types) -> Option<Larger> {
    let requests = of_all(miss).unwrap_or(&pod.demand.requests);
    if !holding(pod, requests, pool, &pool.requirements).is_empty() {
        return None;
    }
    let mut found = Vec::new();
    for wider in widened(pool) {
        found = holding(pod, requests, pool, &wider);
        if !found.is_empty() {
            break;
        }
    }
    if found.iter().all(|(_, priced)| !priced) {
        let size = |it: &(String, bool)| {
            types.find(&it.0).map_or((u32::MAX, u64::MAX), |it| (it.vcpus, it.memory_mib))
        };
        found.sort_by_cached_key(|it| (size(it), it.0.clone()));
    }
    let names: Vec<String> = found.into_iter().map(|(name, _)| name).take(TYPES_KEPT).collect();
    let first = names.first().and_then(|name| pool.machines.iter().find(|it| it.name == *name));
    let rules_out = |machine: &Machine| -> Vec<String> {
        let out = pool.requirements.iter().filter(|it| !machine.labelled(it));
        out.map(|it| Written { min_values: None, ..it.clone() }.to_string()).collect()
    };
    let ruled_out_by = first.map(rules_out).unwrap_or_default();
    let together = of_all(miss).is_some();
    Some(Larger { pool: pool.name.clone(), types: names, ruled_out_by, together })
}

/// What the pool could ask for instead: all but one of what it says of instance types, then nothing of that.
fn widened(pool: &Pool) -> Vec<Vec<Written>> {
    let decided: BTreeSet<&String> = pool.machines.iter().flat_map(|it| it.labels.keys()).collect();
    // A pool of another processor or system would be another pool.
    let of_type = |it: &Written| {
        let key = label::normalise(&it.key);
        ![label::ARCH, label::OS].contains(&key) && decided.iter().any(|it| it.as_str() == key)
    };
    let without = |left_out: &dyn Fn(&Written) -> bool| -> Vec<Written> {
        let kept = pool.requirements.iter().filter(|it| !left_out(it)).cloned();
        kept.chain(processors(pool)).collect()
    };
    let keys: BTreeSet<&str> = pool
        .requirements
        .iter()
        .filter(|it| of_type(it))
        .map(|it| label::normalise(&it.key))
        .collect();
    let all_but_one = keys.iter().map(|key| without(&|it| label::normalise(&it.key) == *key));
    let nothing = (keys.len() > 1).then(|| without(&of_type));
    all_but_one.chain(nothing).collect()
}

/// Those of the machines that the pool allows now: images for others there may be none.
fn processors(pool: &Pool) -> Option<Written> {
    let allowed = pool.machines.iter().filter(|it| it.may_be(&pool.requirements));
    let values: BTreeSet<&String> =
        allowed.filter_map(|it| it.labels.get(label::ARCH)).flatten().collect();
    let values: Vec<String> = values.into_iter().cloned().collect();
    let written =
        Written { key: label::ARCH.to_owned(), operator: Operator::In, values, min_values: None };
    (!written.values.is_empty()).then_some(written)
}

/// The machines that would hold the pod if it were alone, and whether each has a price.
fn holding(
    pod: &Pod,
    requests: &Amounts,
    pool: &Pool,
    requirements: &[Written],
) -> Vec<(String, bool)> {
    let anything = Toleration { key: None, value: Tolerated::Any, effect: None };
    let demand = Demand {
        requests: requests.clone(),
        node_selector: pod.demand.node_selector.clone(),
        node_terms: pod.demand.node_terms.clone(),
        volumes: pod.demand.volumes.clone(),
        tolerations: vec![anything],
        ..Demand::default()
    };
    let alone = Pod { demand: Arc::new(demand), ..pod.clone() };
    let pool = Pool {
        requirements: requirements.to_vec(),
        limits: BTreeMap::new(),
        used: BTreeMap::new(),
        ..pool.clone()
    };
    let packing = pack(&[alone], &[], &[pool]);
    let machines = packing.new_nodes.first().map(|it| Arc::clone(&it.machines));
    let machines = machines.iter().flat_map(|it| it.iter());
    machines.map(|it| (it.machine.clone(), it.price.is_some())).collect()
}

/// Where its pool's nodes have too small a disk: the smallest volume with which some of them would hold it.
fn volume_needed(pod: &Pod, miss: &Miss, pools: &Pools, types: &Types) -> Option<String> {
    let Place::Pool(name) = &miss.place else { return None };
    let pool = pools.able.iter().find(|it| it.name == *name)?;
    let made_with = pools.made_with.get(name)?;
    let requests = of_all(miss).unwrap_or(&pod.demand.requests);
    let holds = |gib: u32| {
        let settings = with_volume(&made_with.settings, gib);
        let machines = pool.machines.iter().map(|machine| {
            let Ok(kind) = types.find(&machine.name) else { return machine.clone() };
            let NodeOffer { capacity, allocatable, .. } = offer(kind, &settings);
            Machine { capacity, allocatable, ..machine.clone() }
        });
        let larger = Pool { machines: Arc::new(machines.collect()), ..pool.clone() };
        !holding(pod, requests, &larger, &pool.requirements).is_empty()
    };
    // Half of what may still be too little, again and again.
    let (mut too_small, mut enough) = (0, VOLUME_MAX_GIB);
    if !holds(enough) {
        return None;
    }
    while enough - too_small > 1 {
        let between = too_small + (enough - too_small) / 2;
        if holds(between) {
            enough = between;
        } else {
            too_small = between;
        }
    }
    let class = made_with.class.as_ref().map_or("its class".to_owned(), |it| format!("class {it}"));
    let device = made_with.settings.family.ephemeral_device();
    let device = device.map(|it| format!(" at {it}")).unwrap_or_default();
    Some(format!("a volume of {enough}Gi{device} in blockDeviceMappings of {class} would do"))
}

/// The same class with a volume of this size for what pods write.
fn with_volume(settings: &NodeSettings, gib: u32) -> NodeSettings {
    let size = Some(Quantity::from_gibibytes(gib.into()));
    let mut settings = settings.clone();
    let device = settings.family.ephemeral_device();
    let root = settings.block_devices.iter().position(|it| it.root_volume && it.size.is_some());
    let of_family = match device {
        Some(_) => settings.block_devices.iter().position(|it| it.device_name.as_deref() == device),
        None => settings.block_devices.len().checked_sub(1),
    };
    match root.or(of_family).and_then(|at| settings.block_devices.get_mut(at)) {
        Some(it) => it.size = size,
        None => settings.block_devices.push(BlockDevice {
            device_name: device.map(str::to_owned),
            root_volume: false,
            size,
        }),
    }
    settings
}

/// What the pod asks for and no node can have at once, in a sentence: its selector and its affinity are asked for together.
pub(super) fn contradicts_itself(demand: &Demand) -> Option<String> {
    let selector = demand.node_selector.iter().map(|(key, value)| Written {
        key: key.clone(),
        operator: Operator::In,
        values: vec![value.clone()],
        min_values: None,
    });
    let selector: Vec<Written> = selector.collect();
    // Texts that one label cannot have at once. Of the rest nothing is claimed.
    let apart = |one: &Written, other: &Written| {
        let same = label::normalise(&one.key) == label::normalise(&other.key);
        let listed = one.operator == Operator::In;
        same && listed && !one.values.iter().any(|it| matches(other, Some(it)))
    };
    let asking = demand.node_terms.iter().flatten();
    let mut found = None;
    for term in asking.filter(|it| !it.labels.is_empty() || !it.fields.is_empty()) {
        let by_selector = selector.iter().flat_map(|one| {
            let theirs = term.labels.iter().filter(|other| apart(one, other));
            theirs.map(move |other| (format!("nodeSelector asks for {one}"), other))
        });
        let within = term.labels.iter().flat_map(|one| {
            let others = term.labels.iter().filter(|other| apart(one, other));
            others.map(move |other| (format!("node affinity asks for {one}"), other))
        });
        // One term that can be met is enough.
        let (one, other) = by_selector.chain(within).next()?;
        found.get_or_insert_with(|| {
            format!("no node will ever do: its {one} and its node affinity for {other}")
        });
    }
    found
}

/// A field of the kubelet's, what it is, and the class with another value.
type Setting<'s> = (&'s str, Option<u32>, &'s dyn Fn(u32) -> NodeSettings);

/// Where the kubelet takes too few pods because its class says so: which setting would do.
pub(super) fn pods_needed(pod: &Pod, why: &Why, pools: &Pools, types: &Types) -> Option<String> {
    let Why::NoPlace { nearest: Some(Miss { place: Place::Pool(name), obstacles }) } = why else {
        return None;
    };
    let of_pods =
        |it: &Obstacle| matches!(it, Obstacle::Short { resource, .. } if resource == PODS);
    if !obstacles.iter().any(of_pods) {
        return None;
    }
    let pool = pools.able.iter().find(|it| it.name == *name)?;
    let made_with = pools.made_with.get(name)?;
    let settings = &made_with.settings;
    let holds = |settings: &NodeSettings| {
        let machines = pool.machines.iter().map(|machine| {
            let Ok(kind) = types.find(&machine.name) else { return machine.clone() };
            let NodeOffer { capacity, allocatable, .. } = offer(kind, settings);
            Machine { capacity, allocatable, ..machine.clone() }
        });
        let changed = Pool { machines: Arc::new(machines.collect()), ..pool.clone() };
        !holding(pod, &pod.demand.requests, &changed, &pool.requirements).is_empty()
    };
    let class = made_with.class.as_ref().map_or("its class".to_owned(), |it| format!("class {it}"));
    let max_pods = |it: u32| NodeSettings { max_pods: Some(it), ..settings.clone() };
    let per_core = |it: u32| NodeSettings { pods_per_core: Some(it), ..settings.clone() };
    let fields: [Setting<'_>; 2] = [
        ("maxPods", settings.max_pods, &max_pods),
        ("podsPerCore", settings.pods_per_core.filter(|it| *it > 0), &per_core),
    ];
    fields.into_iter().find_map(|(field, now, with)| {
        let now = now?;
        // All that is asked about is one pod beside the daemons.
        let most = now.saturating_add(PODS_RAISED_MAX);
        let enough = (now..=most).skip(1).find(|it| holds(&with(*it)))?;
        Some(format!("{field} {enough} in kubelet of {class} would do, not {now}"))
    })
}

/// Where a new node would have to be in a zone that the pool allows and its class has no subnet in.
pub(super) fn subnet_needed(why: &Why, pools: &Pools) -> Option<String> {
    let Why::NoPlace { nearest: Some(Miss { place: Place::Pool(name), obstacles }) } = why else {
        return None;
    };
    let pool = pools.able.iter().find(|it| it.name == *name)?;
    let class = pools.made_with.get(name)?.class.as_ref()?;
    let asked = obstacles.iter().flat_map(|it| {
        if let Obstacle::VolumeElsewhere { asks, .. } = it {
            asks.as_slice()
        } else if let Obstacle::NotOffered(asked) = it {
            std::slice::from_ref(asked)
        } else {
            &[]
        }
    });
    let mut of_zone = asked.filter(|it| label::normalise(&it.key) == label::ZONE);
    let zones = of_zone.find(|it| it.operator == Operator::In)?;
    let offered = |zone: &String| {
        let mut offerings = pool.machines.iter().flat_map(|it| &it.offerings);
        offerings.any(|it| it.labels.get(label::ZONE) == Some(zone))
    };
    let own = pool.requirements.iter().filter(|it| label::normalise(&it.key) == label::ZONE);
    let allowed = |zone: &String| own.clone().all(|it| matches(it, Some(zone)));
    let lacking: Vec<&str> =
        zones.values.iter().filter(|it| allowed(it) && !offered(it)).map(String::as_str).collect();
    (!lacking.is_empty() && lacking.len() == zones.values.len())
        .then(|| format!("class {class} would need a subnet in {}", lacking.join(" or ")))
}

/// Where reserved capacity is all that would do: how much of it there is.
pub(super) fn reservations(pod: &Pod, why: &Why, pools: &Pools) -> Option<String> {
    let Why::NoPlace { nearest: Some(Miss { place: Place::Pool(name), obstacles }) } = why else {
        return None;
    };
    if !obstacles.contains(&Obstacle::NoCapacity) {
        return None;
    }
    let pool = pools.able.iter().find(|it| it.name == *name)?;
    let selector = pod.demand.node_selector.iter().map(|(key, value)| Written {
        key: key.clone(),
        operator: Operator::In,
        values: vec![value.clone()],
        min_values: None,
    });
    let asked: Vec<Written> = pool.requirements.iter().cloned().chain(selector).collect();
    let bought = |offering: &&Offering| {
        asked.iter().all(|it| {
            let has = offering.labels.get(label::normalise(&it.key));
            has.is_none_or(|has| matches(it, Some(has)))
        })
    };
    let meant = pool.machines.iter().filter(|it| asked.iter().all(|asked| it.labelled(asked)));
    let mut told = BTreeMap::new();
    for offering in meant.flat_map(|it| it.offerings.iter().filter(bought)) {
        // What can be bought, too, is not told by a reservation.
        let id = offering.labels.get(label::CAPACITY_RESERVATION_ID)?;
        told.insert(id, offering.remaining.unwrap_or_default());
    }
    let told: Vec<String> = told
        .into_iter()
        .map(|(id, more)| match more {
            0 => format!("capacity reservation {id} takes no more instances"),
            1 => format!("capacity reservation {id} takes 1 more instance, which another gets"),
            more => {
                format!("capacity reservation {id} takes {more} more instances, which others get")
            }
        })
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// Whose host port it is, where every new node would have it taken.
pub(super) fn ports_of_daemons(why: &Why, pools: &Pools) -> Option<String> {
    let Why::NoPlace { nearest: Some(Miss { place: Place::Pool(name), obstacles }) } = why else {
        return None;
    };
    let pool = pools.all().chain(&pools.unable).find(|it| it.name == *name)?;
    let taken = obstacles
        .iter()
        .filter_map(|it| if let Obstacle::HostPortTaken(it) = it { Some(it) } else { None });
    let told: Vec<String> = taken
        .flat_map(|port| {
            let has = |it: &&Pod| it.demand.host_ports.iter().any(|it| it.conflicts(port));
            let daemons = pool.daemons.iter().filter(has);
            daemons.map(move |it| format!("DaemonSet {} has host port {port}", it.id()))
        })
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// Where its zone is in the way: those in which nodes could come up.
pub(super) fn zones_to_be_had(why: &Why, pools: &Pools) -> Option<String> {
    let Why::NoPlace { nearest: Some(miss) } = why else { return None };
    let of_zone = |key: &String| label::normalise(key) == label::ZONE;
    let by_zone = miss.obstacles.iter().any(|it| match it {
        Obstacle::TooNear { key, .. }
        | Obstacle::Unwelcome { key, .. }
        | Obstacle::NobodyNear { key, .. }
        | Obstacle::Skewed { key, .. } => of_zone(key),
        Obstacle::Label(asked) | Obstacle::NotOffered(asked) => of_zone(&asked.key),
        Obstacle::VolumeElsewhere { .. } => true,
        Obstacle::Taint(_)
        | Obstacle::VolumesApart { .. }
        | Obstacle::VolumesFull { .. }
        | Obstacle::Short { .. }
        | Obstacle::TooSmall { .. }
        | Obstacle::TooLargeTogether { .. }
        | Obstacle::Unread(_)
        | Obstacle::Idle(_)
        | Obstacle::HostPortTaken(_)
        | Obstacle::LacksTopology { .. }
        | Obstacle::NoSuchMachine
        | Obstacle::NoCapacity
        | Obstacle::NoImage
        | Obstacle::MinValues { .. }
        | Obstacle::PoolLimit { .. } => false,
    });
    if !by_zone {
        return None;
    }
    let meant = pools.able.iter().filter(|it| match &miss.place {
        Place::Pool(name) => it.name == *name,
        Place::Node(_) => true,
    });
    let meant = heaviest_first(meant).into_iter();
    let told: Vec<String> = meant.take(POOLS_SHOWN).filter_map(launches_in).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn launches_in(pool: &Pool) -> Option<String> {
    let of_zone = |it: &&Written| label::normalise(&it.key) == label::ZONE;
    let asked: Vec<&Written> = pool.requirements.iter().filter(of_zone).collect();
    let machines = pool.machines.iter().filter(|it| it.may_be(&pool.requirements));
    let offerings = machines.flat_map(|it| &it.offerings).filter(|it| it.open());
    let zones: BTreeSet<&str> = offerings
        .filter_map(|it| it.labels.get(label::ZONE).map(String::as_str))
        .filter(|zone| asked.iter().all(|it| matches(it, Some(zone))))
        .collect();
    let zones: Vec<&str> = zones.into_iter().collect();
    (!zones.is_empty()).then(|| format!("pool {} launches in {}", pool.name, zones.join(" and ")))
}

/// Where there are fewer domains than a spread asks for, which is as if one of them were empty.
pub(super) fn lacking_domains(
    pod: &Pod,
    why: &Why,
    world: &World,
    new_nodes: &[NewNode],
) -> Option<String> {
    let Why::NoPlace { nearest: Some(miss) } = why else { return None };
    let skewed = |key: &String| {
        miss.obstacles
            .iter()
            .any(|it| matches!(it, Obstacle::Skewed { key: other, .. } if other == key))
    };
    let spreads = pod.demand.spread.iter().enumerate().filter(|(_, it)| it.required);
    let mut spreads = spreads.filter(|(_, it)| skewed(&it.topology_key));
    spreads.find_map(|(at, spread)| {
        let least = usize::try_from(spread.min_domains?).ok()?;
        let there = domains(pod, spread, world, new_nodes).len();
        (there < least).then(|| {
            format!(
                "topologySpreadConstraints[{at}] has minDomains {least}, and there are {there} of {}",
                spread.topology_key
            )
        })
    })
}

/// The values of the label over which the spread is measured.
fn domains<'w>(
    pod: &Pod,
    spread: &'w Spread,
    world: &'w World,
    new_nodes: &'w [NewNode],
) -> BTreeSet<&'w str> {
    let demand = &pod.demand;
    let counts = world.nodes.iter().filter(|node| {
        let selected =
            demand.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
        let terms = demand.node_terms.as_ref();
        let admitted =
            terms.is_none_or(|it| it.iter().any(|it| it.admits(&node.name, &node.labels)));
        let standing = node.standing_taints();
        let mut taints = standing.iter().filter(|it| it.effect.binding());
        (!spread.honour_node_affinity || (selected && admitted))
            && (!spread.honour_taints || taints.all(|it| it.tolerated_by(&demand.tolerations)))
    });
    let there = counts.filter_map(|it| it.labels.get(&spread.topology_key));
    let to_come = new_nodes.iter().filter_map(|it| {
        let of_key = it.requirements.iter().find(|it| it.key == spread.topology_key);
        let of_key = of_key.filter(|it| it.operator == Operator::In && it.values.len() == 1);
        of_key.and_then(|it| it.values.first())
    });
    there.chain(to_come).map(String::as_str).collect()
}
