//! What is the whole answer?
//!
//! `packing × where pods come from × prices → groups of pods, nodes, a sum`

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use nodemolt_api::listing::{Origin, World};
use nodemolt_core::place::Placement;
use nodemolt_fit::capacity::Amounts;
use nodemolt_fit::pack::{Choice, Home, Miss, NewNode, Obstacle, Packing, Place, Why};
use nodemolt_fit::pod::{Demand, Pod, PodId};
use nodemolt_fit::pool::{NODES, Price};
use nodemolt_fit::{InstanceType, Operator, Types, Written, label};

use super::advice::{
    Advice, Larger, contradicts_itself, lacking_domains, pods_needed, ports_of_daemons,
    reservations, subnet_needed, zones_to_be_had,
};
use super::machines::Pools;
use super::market::{Known, Market};
use super::remedy;

const ON_DEMAND: &str = "on-demand";
const SPOT: &str = "spot";
const RESERVED: &str = "reserved";

/// What placing said.
pub(super) struct Answered {
    pub packing: Packing,
    /// Of each node that leaves.
    pub of: BTreeMap<String, Placement>,
    /// Of those that have to be followed by their own kind for a pod's sake: the pod, and what nobody can foresee.
    pub unforeseen: BTreeMap<String, (PodId, Vec<String>)>,
}

#[derive(Debug)]
pub(super) struct Story {
    /// In the order of their ids.
    pub pods: Vec<PodSaid>,
    /// Pods of one owner that have no place for one reason.
    pub unplaced: Vec<Unplaced>,
    pub new_nodes: Vec<New>,
    /// Nodes that stay and get pods.
    pub stays: Vec<Stays>,
    pub leaving: Vec<String>,
    /// What becomes of each node that leaves.
    pub placements: Vec<Leaves>,
    pub region: Option<String>,
    pub prices: Known,
    /// Of all new nodes, if each has a price.
    pub total: Option<Price>,
    /// Some new node may be bought on the spot market, for which there are no prices.
    pub spot_unpriced: bool,
    /// Some new node may be bought on the spot market of a zone of which no price is known.
    pub spot_gaps: bool,
    /// Some new node may use capacity that is reserved, and paid for already.
    pub reserved: bool,
    pub zones: Zones,
}

#[derive(Debug)]
pub(super) struct Zones {
    /// Of nodes that exist, where they have one.
    of_node: BTreeMap<String, String>,
    /// Somebody asks where in a region it is, or new nodes are to come up in different zones.
    pub matter: bool,
}

#[derive(Debug)]
pub(super) struct PodSaid {
    pub id: PodId,
    pub origin: Origin,
    pub home: Option<Home>,
    /// Preferences that its home does not meet.
    pub relaxed: Vec<String>,
    pub why: Option<Why>,
    pub requests: Amounts,
    /// What its nearest pool would have to allow.
    pub larger: Option<Larger>,
    /// What else is worth knowing: of what there is too little to spread over, where nodes can come up.
    more: Vec<String>,
    /// Why nothing that could be told would help: it would go with the successor of its node and there can be none, or it asks
    /// for what no node has at once.
    pub stranded: Option<String>,
    /// What was tried: how many of its like it would help to do what is told, where that is not all of them.
    pub caveat: Option<String>,
}

impl PodSaid {
    /// Why it has no place, and what would have to change, in one sentence.
    pub(super) fn no_place(&self) -> Option<String> {
        let why = self.why.as_ref()?;
        let mut sentence = self.stranded.clone().unwrap_or_else(|| remedy::sentence(why));
        let larger = self.larger.as_ref().map(Larger::sentence);
        for more in self.more.iter().cloned().chain(larger).chain(self.caveat.clone()) {
            let _ = write!(sentence, "; {more}");
        }
        Some(sentence)
    }

    pub(super) fn homeless(&self) -> bool {
        self.why.is_some()
    }
}

#[derive(Debug)]
pub(super) struct Unplaced {
    /// By their places in `Story::pods`.
    pub pods: Vec<usize>,
    pub workload: Option<String>,
    pub sentence: String,
}

#[derive(Debug)]
pub(super) struct New {
    /// `new-1`.
    pub name: String,
    pub pool: String,
    pub pods: Vec<PodId>,
    pub requests: Amounts,
    pub requirements: Arc<Vec<Written>>,
    /// The cheapest first; where no price is known, the smallest first.
    pub machines: Arc<Vec<Choice>>,
    pub price: Option<Price>,
    /// How many of the machines have no price.
    pub unpriced: usize,
    /// The node that leaves and in whose place it comes, whatever its pods need.
    pub follows: Option<String>,
}

#[derive(Debug)]
pub(super) struct Leaves {
    pub node: String,
    pub pool: Option<String>,
    pub pods: usize,
    pub placement: Placement,
    /// Its pool is kept at a number, so that one comes in its place in any case.
    pub kept: bool,
    /// How many nodes of other pools its pods need.
    others: usize,
    /// The first of its pods that nobody can foresee.
    pub strange: Option<PodId>,
    /// What nobody can foresee of it.
    pub what: Vec<String>,
    /// The pod itself is not told of as one that cannot be foreseen.
    untold: bool,
    /// Its pool launches none, and has to: why it does not.
    idle: Option<String>,
    /// Nobody knows what its pool can launch.
    pool_unknown: bool,
    /// What it is, and in which zone.
    kind: Option<String>,
    zone: Option<String>,
}

impl Leaves {
    fn all(world: &World, pools: &Pools, answered: &mut Answered) -> Vec<Self> {
        let mut pods: BTreeMap<&str, usize> = BTreeMap::new();
        let mut strange: BTreeMap<&str, PodId> = BTreeMap::new();
        for pod in &world.pods {
            let origin = world.origins.get(&pod.id());
            let Some(node) = origin.and_then(|it| it.leaves.as_deref()) else { continue };
            *pods.entry(node).or_default() += 1;
            if !pod.demand.unmodelled.is_empty() {
                let first = strange.entry(node).or_insert_with(|| pod.id());
                *first = pod.id().min(first.clone());
            }
        }
        let leaving = world.nodes.iter().filter(|it| it.leaving);
        let all = leaving.filter_map(|node| {
            let placement = answered.of.remove(&node.name)?;
            let new_nodes = &answered.packing.new_nodes;
            let elsewhere =
                |at: &&usize| new_nodes.get(**at).map(|it| &it.pool) != node.pool.as_ref();
            let others = match &placement {
                Placement::Successors { new } => new.iter().filter(elsewhere).count(),
                Placement::Spare { .. }
                | Placement::Unplaced { .. }
                | Placement::Unmodelled { .. }
                | Placement::NoKin { .. } => 0,
            };
            let unforeseen = match &placement {
                Placement::Unmodelled { .. } | Placement::NoKin { .. } => {
                    answered.unforeseen.remove(&node.name)
                }
                Placement::Spare { .. }
                | Placement::Successors { .. }
                | Placement::Unplaced { .. } => None,
            };
            let (unforeseen, what) = unforeseen.unzip();
            let strange = strange.remove(node.name.as_str());
            let needed = matches!(placement, Placement::NoKin { limit: None, .. });
            let idle = node.pool.as_ref().filter(|it| needed && !pools.keeps(it));
            let idle = idle.and_then(|pool| pools.idle.iter().find(|(name, _)| name == pool));
            let idle = idle.map(|(_, why)| why.clone());
            Some(Self {
                node: node.name.clone(),
                pool: node.pool.clone(),
                pods: pods.remove(node.name.as_str()).unwrap_or_default(),
                placement,
                kept: node.pool.as_ref().is_some_and(|it| pools.keeps(it)),
                others,
                untold: strange.is_none(),
                strange: strange.or(unforeseen),
                what: what.unwrap_or_default(),
                idle,
                pool_unknown: node.pool.as_ref().is_some_and(|it| !pools.knows(it)),
                kind: node.labels.get(label::INSTANCE_TYPE).cloned(),
                zone: node.labels.get(label::ZONE).cloned(),
            })
        });
        all.collect()
    }

    /// Why its pods have no place, where it has to be followed by one of its own kind and cannot be.
    fn stranded(&self) -> Why {
        let (pool, obstacle) = match &self.placement {
            Placement::NoKin { pool, limit: Some((resource, by)) } => {
                (pool, Obstacle::PoolLimit { resource: resource.clone(), by: *by })
            }
            Placement::NoKin { pool, limit: None } => {
                (pool, self.idle.clone().map_or(Obstacle::NoCapacity, Obstacle::Idle))
            }
            Placement::Unplaced { why, .. } => return why.clone(),
            Placement::Spare { .. }
            | Placement::Successors { .. }
            | Placement::Unmodelled { .. } => {
                return Why::NoPlace { nearest: None };
            }
        };
        let nearest = Miss { place: Place::Pool(pool.clone()), obstacles: vec![obstacle] };
        Why::NoPlace { nearest: Some(nearest) }
    }

    /// The same in words. Such a pod might fit elsewhere; where is not looked at, as its node is followed by its own kind.
    fn stranded_with(&self) -> Option<String> {
        let lacking = self.no_kin()?;
        Some(format!("goes with the successor of node {}, which cannot come: {lacking}", self.node))
    }

    /// Why no node of its own kind can come, where one has to.
    fn no_kin(&self) -> Option<String> {
        match (&self.placement, &self.idle) {
            (Placement::NoKin { pool, limit: Some((resource, by)) }, _) => {
                Some(format!("the limit of {resource} of pool {pool} would have to be {by} higher"))
            }
            (Placement::NoKin { pool, .. }, Some(idle)) => {
                Some(format!("pool {pool} launches no nodes: {idle}"))
            }
            (Placement::NoKin { pool, .. }, None) if self.pool_unknown => {
                Some(format!("what pool {pool} can launch is not known, as it is not in the files"))
            }
            (Placement::NoKin { pool, .. }, None) => {
                Some(format!("nothing that pool {pool} asks for is to be had"))
            }
            (Placement::Unplaced { .. }, _) if self.pool.is_none() && self.unfollowed() => {
                Some("it is of no pool, so nobody launches one".to_owned())
            }
            (_, _) => None,
        }
    }

    /// Whether it would have to be followed by one of its own kind, and the pod for whose sake has no place there.
    fn unfollowed(&self) -> bool {
        match &self.placement {
            Placement::Unplaced { pod, why } => {
                let no_pool = self.pool.is_none() && *why == Why::NoPlace { nearest: None };
                self.strange.as_ref() == Some(pod) || no_pool
            }
            Placement::Spare { .. }
            | Placement::Successors { .. }
            | Placement::Unmodelled { .. }
            | Placement::NoKin { .. } => false,
        }
    }

    /// One word for programs.
    pub(super) fn answer(&self) -> &'static str {
        match self.placement {
            // That no successor can be promised, as nobody told of its pool, does not make the pod any better understood.
            Placement::NoKin { .. } if self.pool_untold() => "Unmodelled",
            Placement::Unplaced { .. } if self.pool.is_none() && self.unfollowed() => "Unmodelled",
            Placement::Spare { .. } => "Spare",
            Placement::Successors { .. } => "Successors",
            Placement::Unplaced { .. } => "Unplaced",
            Placement::Unmodelled { .. } => "Unmodelled",
            Placement::NoKin { .. } => "NoKin",
        }
    }

    /// How many nodes have to come before it may go. `None`: that would not help its pods.
    pub(super) fn successors(&self) -> Option<usize> {
        match &self.placement {
            Placement::Spare { .. } | Placement::Successors { .. } if self.kept => {
                Some(1 + self.others)
            }
            Placement::Spare { .. } => Some(0),
            Placement::Successors { new } => Some(new.len()),
            // One of its own kind, whatever the others need.
            Placement::Unmodelled { new, .. } => Some(1 + new.len()),
            Placement::NoKin { .. } if self.pool_untold() => Some(1),
            Placement::Unplaced { .. } | Placement::NoKin { .. } => None,
        }
    }

    /// A pod of it cannot be foreseen, and what its pool can launch is not known.
    fn pool_untold(&self) -> bool {
        self.pool_unknown && self.strange.is_some() && !self.kept
    }

    pub(super) fn sentence(&self, story: &Story) -> String {
        let why = self.why(story);
        match (&self.placement, &self.pool) {
            (Placement::Spare { .. }, Some(pool)) if self.kept => {
                format!("{why}; pool {pool} is kept at its number, so a node like it comes")
            }
            _ => why,
        }
    }

    /// What it is about the pod, where that is not told of the pod itself.
    fn that(&self) -> String {
        if self.what.is_empty() || !self.untold {
            return String::new();
        }
        format!(" ({})", self.what.join("; "))
    }

    fn without_kin(&self) -> String {
        let cause = match &self.strange {
            Some(pod) if !self.kept => format!("nobody can foresee {pod}{}, so ", self.that()),
            Some(_) | None => String::new(),
        };
        let lacking = self.no_kin().unwrap_or_default();
        format!("{cause}a node like it has to come, and {lacking}")
    }

    fn why(&self, story: &Story) -> String {
        match &self.placement {
            Placement::Spare { on } if on.is_empty() => {
                "it has no pods that have to move".to_owned()
            }
            Placement::Spare { on } => {
                let on: Vec<&str> = on.iter().map(String::as_str).collect();
                format!("its pods fit on {}", on.join(", "))
            }
            Placement::Successors { new } => {
                let new: Vec<String> = new.iter().map(|it| story.home(&Home::New(*it))).collect();
                format!("its pods need {}", new.join(", "))
            }
            Placement::NoKin { .. } => self.without_kin(),
            Placement::Unplaced { pod, .. } if self.unfollowed() && self.pool.is_none() => {
                let lacking = self.no_kin().unwrap_or_default();
                format!("nobody can foresee {pod}, so a node like it has to come, and {lacking}")
            }
            Placement::Unplaced { pod, why } if self.unfollowed() => {
                let lacking = remedy::sentence(why);
                format!(
                    "nobody can foresee {pod}, and what would come in its place will not do: it {lacking}"
                )
            }
            Placement::Unplaced { pod, .. } => format!("{pod} would have no place"),
            Placement::Unmodelled { pod, kin, new, .. } => {
                let home = |at: &usize| story.home(&Home::New(*at));
                let comes = kin.as_ref().map(home).map_or_else(String::new, |it| format!(", {it}"));
                let pool = self.pool.as_deref().unwrap_or_default();
                let other = kin.map_or_else(String::new, |it| self.unlike(story, it));
                let new: Vec<String> = new.iter().map(home).collect();
                let others = match new.as_slice() {
                    [] => String::new(),
                    new => format!("; other pods need {}", new.join(", ")),
                };
                let that = self.that();
                format!(
                    "nobody can foresee {pod}{that}: it needs a node of pool {pool} like it{comes}{other}{others}"
                )
            }
        }
    }

    /// Where that one will be less like it than they would wish who are not foreseen.
    fn unlike(&self, story: &Story, kin: usize) -> String {
        let Some(new) = story.new_nodes.get(kin) else { return String::new() };
        let kind =
            self.kind.iter().find(|kind| !new.machines.iter().any(|it| it.machine == **kind));
        let zones = new.zones();
        let zone = self.zone.iter().find(|zone| !zones.is_empty() && !zones.contains(zone));
        match (kind, zone) {
            (None, None) => String::new(),
            (Some(kind), None) => format!(", though no {kind} is to be had"),
            (None, Some(zone)) => format!(", though not in {zone}, where none is to be had"),
            (Some(kind), Some(zone)) => {
                format!(", though neither as {kind} nor in {zone}, as none is to be had")
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Stays {
    pub name: String,
    pub zone: Option<String>,
    pub pods: Vec<PodId>,
}

impl Story {
    pub(super) fn new(
        world: &World,
        pools: &Pools,
        mut answered: Answered,
        types: &Types,
        market: Market,
    ) -> Self {
        let placements = Leaves::all(world, pools, &mut answered);
        let Packing { placed, new_nodes, unplaced } = answered.packing;
        let on_nodes = world.nodes.iter().flat_map(|it| &it.pods);
        let by_id: BTreeMap<PodId, &Pod> =
            on_nodes.chain(&world.pods).map(|it| (it.id(), it)).collect();
        let requests =
            |id: &PodId| by_id.get(id).map(|it| it.demand.requests.clone()).unwrap_or_default();
        let mut advice = Advice::new(pools, types);
        let mut stays: BTreeMap<String, Vec<PodId>> = BTreeMap::new();
        let mut pods = Vec::new();
        let origin = |id: &PodId| world.origins.get(id).cloned().unwrap_or_default();
        for it in placed {
            if let Home::Node(node) = &it.home {
                stays.entry(node.clone()).or_default().push(it.pod.clone());
            }
            pods.push(PodSaid {
                origin: origin(&it.pod),
                id: it.pod,
                home: Some(it.home),
                relaxed: it.relaxed.iter().map(ToString::to_string).collect(),
                why: None,
                requests: Amounts::new(),
                larger: None,
                more: Vec::new(),
                stranded: None,
                caveat: None,
            });
        }
        for it in unplaced {
            let pod = by_id.get(&it.pod);
            let volume = pod.and_then(|pod| advice.volume(pod, &it.why));
            let larger = pod.and_then(|pod| advice.larger(pod, &it.why));
            let pods_max = pod.and_then(|pod| pods_needed(pod, &it.why, pools, types));
            // What would be nearest asks somebody to do what cannot be done.
            let unmeetable = matches!(it.why, Why::NoPlace { .. });
            let contradiction =
                pod.filter(|_| unmeetable).and_then(|it| contradicts_itself(&it.demand));
            let why = match &contradiction {
                Some(_) => Why::NoPlace { nearest: None },
                None => kept_at_a_number(it.why.clone(), pools),
            };
            pods.push(PodSaid {
                origin: origin(&it.pod),
                requests: requests(&it.pod),
                id: it.pod,
                home: None,
                relaxed: Vec::new(),
                // That no type would do is true only while the disk is as small as it is, or the kubelet takes as few.
                larger: larger
                    .filter(|it| (volume.is_none() && pods_max.is_none()) || !it.types.is_empty())
                    .filter(|_| contradiction.is_none()),
                more: pod
                    .and_then(|pod| lacking_domains(pod, &it.why, world, &new_nodes))
                    .into_iter()
                    .chain(zones_to_be_had(&it.why, pools))
                    .chain(pod.and_then(|pod| reservations(pod, &it.why, pools)))
                    .chain(ports_of_daemons(&it.why, pools))
                    .chain(volume)
                    .chain(pods_max)
                    .chain(subnet_needed(&it.why, pools))
                    .filter(|_| contradiction.is_none())
                    .collect(),
                stranded: contradiction,
                caveat: None,
                why: Some(with_claims(why, world)),
            });
        }
        let packed: BTreeSet<PodId> = pods.iter().map(|it| it.id.clone()).collect();
        for pod in world.pods.iter().filter(|it| !packed.contains(&it.id())) {
            // Nobody can say where such a pod goes, only that its node's own kind will do.
            let what = &pod.demand.unmodelled;
            let unmodelled = (!what.is_empty()).then(|| Why::Unmodelled(what.clone()));
            let origin = origin(&pod.id());
            let left = placements.iter().find(|it| Some(&it.node) == origin.leaves.as_ref());
            let stranded = left.filter(|_| unmodelled.is_none()).and_then(Leaves::stranded_with);
            let nowhere = || Why::NoPlace { nearest: None };
            let why = unmodelled.unwrap_or_else(|| left.map_or_else(nowhere, Leaves::stranded));
            pods.push(PodSaid {
                origin,
                id: pod.id(),
                home: None,
                relaxed: Vec::new(),
                why: Some(why),
                requests: pod.demand.requests.clone(),
                larger: None,
                more: Vec::new(),
                stranded,
                caveat: None,
            });
        }
        pods.sort_by(|left, right| natural(&left.id).cmp(&natural(&right.id)));
        let spot = |it: &NewNode| admits(&it.requirements, SPOT);
        let reserved = |it: &NewNode| {
            it.machines.first().is_some_and(|it| it.price == Some(Price(0)))
                && admits(&it.requirements, RESERVED)
        };
        let reserved = new_nodes.iter().any(reserved);
        let spot_unpriced = market.without_spot_prices() && new_nodes.iter().any(spot);
        let mut sorted = Sorted { types, done: BTreeMap::new() };
        let mut new_nodes: Vec<New> = new_nodes
            .into_iter()
            .enumerate()
            .map(|(at, it)| New::of(at, it, &mut sorted))
            .collect();
        for it in &placements {
            if let Placement::Unmodelled { kin: Some(kin), .. } = it.placement
                && let Some(new) = new_nodes.get_mut(kin)
            {
                new.follows = Some(it.node.clone());
            }
        }
        let spot_gaps = new_nodes.iter().any(|it| {
            let zones = listed(&it.requirements, label::ZONE);
            let first = it.machines.first();
            admits(&it.requirements, SPOT)
                && first.is_some_and(|it| market.spot_unpriced_somewhere(&it.machine, zones))
        });
        let of_node: BTreeMap<String, String> = world
            .nodes
            .iter()
            .filter_map(|it| Some((it.name.clone(), it.labels.get(label::ZONE)?.clone())))
            .collect();
        let apart =
            new_nodes.iter().any(|it| Some(it.zones()) != new_nodes.first().map(New::zones));
        let matter = apart || world.pods.iter().any(|it| asks_for_zones(&it.demand));
        let stays = stays.into_iter().map(|(name, pods)| {
            let zone = of_node.get(&name).cloned();
            Stays { name, zone, pods }
        });
        let stays = stays.collect();
        let total = new_nodes
            .iter()
            .try_fold(0_u64, |sum, it| sum.checked_add(it.price?.0))
            .map(Price)
            .filter(|_| !new_nodes.is_empty());
        Self {
            unplaced: groups(&pods),
            pods,
            new_nodes,
            stays,
            leaving: world.nodes.iter().filter(|it| it.leaving).map(|it| it.name.clone()).collect(),
            placements,
            region: market.region.clone(),
            prices: market.prices,
            total,
            spot_unpriced,
            spot_gaps,
            reserved,
            zones: Zones { of_node, matter },
        }
    }

    /// Whether a new node may be bought otherwise than on demand.
    pub(super) fn ways_matter(&self) -> bool {
        self.new_nodes.iter().flat_map(New::ways).any(|it| it != ON_DEMAND)
    }

    /// What the sum of prices leaves open.
    pub(super) fn price_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.total.is_none() {
            return notes;
        }
        let unpriced = self.new_nodes.iter().map(|it| it.unpriced).max().unwrap_or(0);
        if unpriced > 0 {
            notes.push(format!(
                "up to {unpriced} of a node's types have no price here, and may be cheaper"
            ));
        }
        let told = [
            (
                self.spot_unpriced,
                "these are prices on demand; spot is allowed too, and its prices are not known",
            ),
            (
                self.spot_gaps,
                "not every zone that is allowed has a spot price here: a node may cost more",
            ),
            (self.reserved, "reserved capacity is paid for already, and counts as 0"),
        ];
        notes.extend(told.into_iter().filter(|(it, _)| *it).map(|(_, note)| note.to_owned()));
        notes
    }

    pub(super) fn unplaced_count(&self) -> usize {
        self.unplaced.iter().map(|it| it.pods.len()).sum()
    }

    /// What is said of a pod that was packed.
    pub(super) fn said(&self, id: &PodId) -> Option<&PodSaid> {
        self.pods.iter().find(|it| it.id == *id)
    }

    /// Of a pod's home, where it can be in one zone only.
    pub(super) fn zone(&self, home: &Home) -> Option<&str> {
        match home {
            Home::Node(name) => self.zones.of_node.get(name).map(String::as_str),
            Home::New(at) => match self.new_nodes.get(*at)?.zones() {
                [only] => Some(only),
                [] | [_, ..] => None,
            },
        }
    }

    /// What people call the home of a pod.
    pub(super) fn home(&self, home: &Home) -> String {
        match home {
            Home::Node(name) => name.clone(),
            Home::New(at) => self.new_nodes.get(*at).map(|it| it.name.clone()).unwrap_or_default(),
        }
    }
}

/// Whether it decides where in a region the pod is.
fn asks_for_zones(demand: &Demand) -> bool {
    let of_zone = |key: &str| label::normalise(key) == label::ZONE;
    let near = demand.affinity.iter().chain(&demand.anti_affinity);
    let prefers = demand.preferred_affinity.iter().chain(&demand.preferred_anti_affinity);
    let terms = demand.node_terms.iter().flatten();
    let mut terms = terms.chain(demand.preferred_nodes.iter().map(|it| &it.term));
    near.chain(prefers.map(|it| &it.term)).any(|it| of_zone(&it.topology_key))
        || demand.spread.iter().any(|it| of_zone(&it.topology_key))
        || demand.volumes.iter().any(|it| it.reach.is_some())
        || demand.node_selector.keys().any(|it| of_zone(it))
        || terms.any(|it| it.labels.iter().any(|it| of_zone(&it.key)))
}

/// Of a pool that has a number of nodes it is not a limit that is in the way of more.
fn kept_at_a_number(why: Why, pools: &Pools) -> Why {
    let Why::NoPlace { nearest: Some(mut miss) } = why else { return why };
    if matches!(&miss.place, Place::Pool(name) if pools.filling.contains(name)) {
        for it in &mut miss.obstacles {
            if matches!(it, Obstacle::PoolLimit { resource, .. } if resource == NODES) {
                *it = Obstacle::Idle(
                    "it has a fixed number of nodes, and is counted on for all".to_owned(),
                );
            }
        }
    }
    Why::NoPlace { nearest: Some(miss) }
}

/// The same, with bound volumes called as people know them: by claim and object, and not only as AWS does.
fn with_claims(why: Why, world: &World) -> Why {
    let Why::NoPlace { nearest: Some(mut miss) } = why else { return why };
    name_volumes(&mut miss, world);
    Why::NoPlace { nearest: Some(miss) }
}

pub(super) fn name_volumes(miss: &mut Miss, world: &World) {
    for obstacle in &mut miss.obstacles {
        if let Obstacle::VolumeElsewhere { handle, .. } = obstacle {
            *handle = volume(handle, world);
        }
        if let Obstacle::VolumesApart { handles } = obstacle {
            *handles = handles.iter().map(|it| volume(it, world)).collect();
        }
    }
}

/// `vol-0a (claim shop/data, PersistentVolume pv-1)`.
pub(super) fn volume(handle: &str, world: &World) -> String {
    match world.volumes.get(handle) {
        Some(told) => format!("{handle} ({told})"),
        None => handle.to_owned(),
    }
}

/// `web#2` before `web#10`.
fn natural(id: &PodId) -> (&str, &str, u64, &str) {
    let (start, number) = id.name.rsplit_once(['#', '-']).unwrap_or((&id.name, ""));
    match number.parse() {
        Ok(number) => (&id.namespace, start, number, &id.name),
        Err(_) => (&id.namespace, &id.name, 0, &id.name),
    }
}

fn groups(pods: &[PodSaid]) -> Vec<Unplaced> {
    let mut groups: Vec<Unplaced> = Vec::new();
    let mut known: BTreeMap<(String, Option<String>, String, bool), usize> = BTreeMap::new();
    for (at, pod) in pods.iter().enumerate() {
        let Some(sentence) = pod.no_place() else { continue };
        let workload = pod.origin.workload.clone();
        let (whose, alone) = match &workload {
            Some(it) => (format!("{}/{it}", pod.id.namespace), None),
            // Pods of nobody stand alone.
            None => (pod.id.to_string(), Some(pod.id.to_string())),
        };
        // Who is pending leaves no node.
        let key = (whose, alone, sentence.clone(), pod.origin.leaves.is_some());
        if let Some(group) = known.get(&key) {
            groups[*group].pods.push(at);
        } else {
            known.insert(key, groups.len());
            groups.push(Unplaced { pods: vec![at], workload, sentence });
        }
    }
    groups
}

/// Whether it may be bought this way.
fn admits(requirements: &[Written], way: &str) -> bool {
    let of_key = requirements.iter().filter(|it| it.key == label::CAPACITY_TYPE);
    of_key.into_iter().all(|it| match it.operator {
        Operator::In => it.values.iter().any(|it| it == way),
        Operator::NotIn => !it.values.iter().any(|it| it == way),
        Operator::DoesNotExist => false,
        Operator::Exists | Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => true,
    })
}

/// The values that the label may have, where they are listed.
fn listed<'r>(requirements: &'r [Written], key: &str) -> &'r [String] {
    let of_key = requirements.iter().find(|it| it.key == key && it.operator == Operator::In);
    of_key.map_or(&[], |it| &it.values)
}

impl New {
    /// In which it may come up, where that is known.
    pub(super) fn zones(&self) -> &[String] {
        listed(&self.requirements, label::ZONE)
    }

    /// How it may be bought, where that is known.
    pub(super) fn ways(&self) -> &[String] {
        listed(&self.requirements, label::CAPACITY_TYPE)
    }

    fn of(at: usize, node: NewNode, sorted: &mut Sorted<'_>) -> Self {
        let machines = sorted.by_size_without_prices(node.machines);
        Self {
            name: format!("new-{}", at + 1),
            pool: node.pool,
            pods: node.pods,
            requests: node.requests,
            requirements: node.requirements,
            price: machines.first().and_then(|it| it.price),
            unpriced: machines.iter().filter(|it| it.price.is_none()).count(),
            machines,
            follows: None,
        }
    }
}

/// Thousands of nodes share a few lists of machines; each is put in order once.
struct Sorted<'t> {
    types: &'t Types,
    /// The list as it came is held, so that no other takes its place in memory.
    done: BTreeMap<*const Vec<Choice>, [Arc<Vec<Choice>>; 2]>,
}

impl Sorted<'_> {
    fn by_size_without_prices(&mut self, machines: Arc<Vec<Choice>>) -> Arc<Vec<Choice>> {
        if machines.iter().any(|it| it.price.is_some()) {
            return machines;
        }
        let types = self.types;
        let entry = self.done.entry(Arc::as_ptr(&machines)).or_insert_with(|| {
            let size = |it: &Choice| {
                let found: Option<&InstanceType> = types.find(&it.machine).ok();
                found.map_or((u32::MAX, u64::MAX), |it| (it.vcpus, it.memory_mib))
            };
            let mut sorted = machines.to_vec();
            sorted.sort_by_cached_key(|it| (size(it), it.machine.clone()));
            [machines, Arc::new(sorted)]
        });
        Arc::clone(&entry[1])
    }
}
