//! What is known before the first pod is placed?
//!
//! `pods × nodes × pools → kinds of pods, places, counters`, and nothing of it changes any more

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    answer::{Obstacle, Preference},
    bits::Bits,
    essence::{Essence, Mentioned},
    measure::{Needs, Scale},
    site::{Counted, Tally},
    template::{Fit, Reservations, Template},
    topology::{Concerning, Counters, Filter, Reach, TopologyKey, What},
};
use crate::{
    label,
    node::Node,
    pod::{Demand, HostPort, Namespace, Pod, PodTerm, Spread, Volume},
    pool::{Offering, Pool},
    selector::{Labels, NodeTerm},
    taint::{Taint, Toleration},
    vocabulary::Vocabulary,
};

/// More ways than these to combine the topologies of several volumes are not looked at.
const COMBINATIONS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) vocabulary: Vocabulary,
    pub(super) scale: Scale,
    pub(super) pods: &'a [Pod],
    /// Nodes that stay: those that are not to be replaced first, then those that are set up, then by name.
    pub(super) sites: Vec<&'a Node>,
    /// What each of them comes to.
    pub(super) tallies: Vec<&'a Tally>,
    /// So many of them are not to be replaced.
    pub(super) lasting: usize,
    pub(super) site_taints: Vec<Vec<Taint>>,
    /// Nodes that leave. Nobody goes there, but while they stand their domains are there to be spread over.
    pub(super) leaving: Vec<&'a Node>,
    pub(super) pools: Vec<Template<'a>>,
    /// Pools that launch nothing just now: what they would launch else.
    pub(super) idle: Vec<Hoped<'a>>,
    /// What pools would launch if more could be had. For who looks for reasons.
    hoped: OnceCell<Vec<Vec<Hoped<'a>>>>,
    pub(super) reservations: Reservations,
    pub(super) kinds: Vec<Kind<'a>>,
    pub(super) keys: Vec<TopologyKey>,
    pub(super) counters: Counters,
    pub(super) required: Vec<RequiredNodes>,
    pub(super) tolerances: Vec<Tolerance>,
    pub(super) ports: Vec<&'a HostPort>,
    /// How many different needs there are.
    pub(super) needs: usize,
    /// By what counts pods: the kinds that must be near one of those.
    pub(super) followers: BTreeMap<usize, Vec<usize>>,
}

/// What a pool would launch if more could be had.
#[derive(Debug)]
pub(super) struct Hoped<'a> {
    pub(super) template: Template<'a>,
    /// Why it cannot.
    pub(super) lacks: Obstacle,
}

impl<'a> Hoped<'a> {
    /// With capacity of all that is offered; then, where that is more, with an image for all of it, too.
    fn all(pool: &'a Pool, scale: &Scale, vocabulary: &Vocabulary) -> Vec<Self> {
        let with_image = |it: &Offering| !it.imageless;
        let template = Template::hoped(pool, scale, vocabulary, with_image);
        let mut hopes = vec![Self { template, lacks: Obstacle::NoCapacity }];
        if !pool.machines.iter().flat_map(|it| &it.offerings).all(with_image) {
            let template = Template::hoped(pool, scale, vocabulary, |_| true);
            hopes.push(Self { template, lacks: Obstacle::NoImage });
        }
        hopes
    }
}

/// Pods that differ in nothing but their names, and in what nobody asks for.
#[derive(Debug)]
pub(super) struct Kind<'a> {
    /// Those of a lower one have their places first.
    pub(super) order: u8,
    pub(super) moves_once: bool,
    /// The pool that it comes from, by its place among the pools.
    pub(super) from: Option<usize>,
    pub(super) namespace: &'a Namespace,
    /// That of the first of them.
    pub(super) demand: &'a Demand,
    /// Places in the list of pods, in the order of their ids.
    pub(super) pods: Vec<usize>,
    pub(super) needs: Needs,
    pub(super) needs_at: usize,
    pub(super) required: usize,
    pub(super) tolerance: usize,
    pub(super) ports: Vec<usize>,
    /// Per pool, where a daemon has one of its ports, or is not to be near it. Empty: no pool has a daemon.
    pub(super) barred: Vec<Barred>,
    /// Those that others may have attached.
    pub(super) volumes: Vec<(usize, Option<usize>)>,
    /// Where its volumes can be reached, by site; and if that is not everywhere, its ways per pool.
    pub(super) reached: Option<(Bits, Vec<Vec<Fit>>)>,
    pub(super) musts: Checks,
    /// What counts it for those who must be near such a pod: the first of them decides where the others can go.
    pub(super) starts: Vec<usize>,
    /// Per pool, the ways in which a new node gets a daemon that the pod must be near: the node brings it along.
    pub(super) brings: Vec<Vec<Fit>>,
    /// What must hold there.
    pub(super) musts_beside: Checks,
    /// The most important first.
    pub(super) wishes: Vec<Wish>,
    pub(super) counted_by: Vec<usize>,
    /// Labels that must be known of a node when such a pod is put there.
    pub(super) decides: Vec<usize>,
}

/// New nodes that would get a daemon that does not go together with the pod.
#[derive(Debug, Default)]
pub(super) struct Barred {
    /// These machines, wherever they are bought.
    pub(super) machines: Bits,
    /// Nodes that can only be this.
    pub(super) somewhere: Vec<Fit>,
}

/// What must hold of the domains of the node that a pod is put on.
#[derive(Debug, Clone, Default)]
pub(super) struct Checks {
    /// None of those counted may be there.
    pub(super) away: Vec<usize>,
    /// Some of those counted must be there, by each of these.
    pub(super) near: Vec<usize>,
    /// It may be the first of its own.
    pub(super) first_of_its_own: bool,
    /// Unless some of those counted are anywhere: kube-scheduler takes them for its own.
    pub(super) mistaken: Vec<usize>,
    /// Somebody whom it must be near is there for sure.
    pub(super) beside: bool,
    pub(super) spreads: Vec<SpreadCheck>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SpreadCheck {
    pub(super) counter: usize,
    pub(super) max_skew: u32,
    pub(super) domains_min: usize,
    pub(super) counts_itself: bool,
}

#[derive(Debug)]
pub(super) struct Wish {
    pub(super) preference: Preference,
    pub(super) what: Wished,
    /// Whether it is worth another machine: one per domain may be, one per pod is not.
    pub(super) worth_a_node: bool,
}

#[derive(Debug)]
pub(super) enum Wished {
    Untainted,
    Checks(Checks),
    Nodes { sites: Bits, pools: Vec<Option<Fit>> },
}

/// A node selector and required affinity.
#[derive(Debug)]
pub(super) struct RequiredNodes {
    pub(super) sites: Bits,
    pub(super) leaving: Bits,
    /// Per pool, the ways to meet it.
    pub(super) pools: Vec<Vec<Fit>>,
}

#[derive(Debug)]
pub(super) struct Tolerance {
    pub(super) sites: Bits,
    pub(super) leaving: Bits,
    pub(super) pools: Bits,
    /// Those where not even a preference is hurt.
    pub(super) sites_gladly: Bits,
    pub(super) pools_gladly: Bits,
}

type VolumeNumbers<'a> = BTreeMap<(Option<&'a str>, &'a str), usize>;
type Asked<'a> = (&'a Labels, Option<&'a [NodeTerm]>);

impl<'a> World<'a> {
    pub(super) fn new(pods: &'a [Pod], nodes: Vec<Counted<'a>>, pools: &'a [Pool]) -> Self {
        let vocabulary = Vocabulary::new();
        let scale = Scale::new(pods, pools);
        let (leaving, mut stay): (Vec<Counted<'_>>, Vec<Counted<'_>>) =
            nodes.into_iter().partition(|(it, _)| it.leaving);
        // Most often they come by name.
        if !stay.is_sorted_by_key(|(it, _)| &it.name) {
            stay.sort_by_key(|(it, _)| &it.name);
        }
        stay.sort_by_key(|(it, _)| (it.fades, !it.initialised));
        let lasting = stay.partition_point(|(it, _)| !it.fades);
        let (sites, tallies): (Vec<&Node>, Vec<&Tally>) = stay.into_iter().unzip();
        let leaving = leaving.into_iter().map(|it| it.0).collect();
        let mut ordered: Vec<&Pool> = pools.iter().collect();
        ordered.sort_by(|left, right| (right.weight, &left.name).cmp(&(left.weight, &right.name)));
        let mut reservations = Reservations::default();
        let (mut pools, mut idle) = (Vec::new(), Vec::new());
        for pool in ordered {
            if pool.idle.is_none() {
                let template = Template::new(pool, &scale, &mut reservations, &vocabulary);
                if template.offers() {
                    pools.push(template);
                    continue;
                }
            }
            let mut hopes = Hoped::all(pool, &scale, &vocabulary);
            let offers = hopes.iter().position(|it| it.template.offers());
            if offers.is_some() || pool.idle.is_some() {
                idle.push(hopes.swap_remove(offers.unwrap_or(0)));
            }
        }
        let site_taints = sites.iter().map(|it| it.standing_taints()).collect();
        let mut world = Self {
            vocabulary,
            scale,
            pods,
            sites,
            tallies,
            lasting,
            site_taints,
            leaving,
            pools,
            idle,
            hoped: OnceCell::new(),
            reservations,
            kinds: Vec::new(),
            keys: Vec::new(),
            counters: Counters::default(),
            required: Vec::new(),
            tolerances: Vec::new(),
            ports: Vec::new(),
            needs: 0,
            followers: BTreeMap::new(),
        };
        let mentioned = {
            let templates: Vec<&Pool> = world.pools.iter().map(|it| it.pool).collect();
            Mentioned::new(pods, world.averse(), &templates)
        };
        world.gather_kinds(&mentioned);
        world.gather_counters();
        world.gather_domains();
        world
    }

    /// What the pool would launch if more could be had. None: all can be had that is offered.
    pub(super) fn hoped(&self, pool: usize) -> &[Hoped<'a>] {
        let all = self.hoped.get_or_init(|| {
            let lacks = |it: &Pool| {
                it.machines.iter().flat_map(|it| &it.offerings).any(|offering| !offering.open())
            };
            let of_pool = |it: &Template<'a>| {
                let lacks = lacks(it.pool);
                let hopes = lacks.then(|| Hoped::all(it.pool, &self.scale, &self.vocabulary));
                hopes.unwrap_or_default()
            };
            self.pools.iter().map(of_pool).collect()
        });
        all.get(pool).map_or(&[], Vec::as_slice)
    }

    fn pool_called(&self, name: &str) -> Option<usize> {
        self.pools.iter().position(|it| it.pool.name == name)
    }

    /// In the order in which they are asked to launch a node for such a pod: the heaviest first, of those that are equally
    /// heavy the one that it comes from, then by name.
    pub(super) fn pools_for(&self, kind: usize) -> impl Iterator<Item = usize> {
        let from = self.kinds[kind].from;
        let weight = |at: usize| self.pools[at].pool.weight;
        let heavier =
            from.map_or(0, |from| (0..from).take_while(|it| weight(*it) > weight(from)).count());
        let others = (heavier..self.pools.len()).filter(move |it| Some(*it) != from);
        (0..heavier).chain(from).chain(others)
    }

    /// Sort the pods by what they demand, and look at each demand once.
    fn gather_kinds(&mut self, mentioned: &Mentioned<'_>) {
        let mut by_content: BTreeMap<Essence<'a>, Vec<usize>> = BTreeMap::new();
        let mut by_pointer: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, pod) in self.pods.iter().enumerate() {
            let (namespace, demand) = (Arc::as_ptr(&pod.namespace), Arc::as_ptr(&pod.demand));
            let pool = pod.pool.as_deref();
            let pointers = (pod.order, pod.moves_once, pool, namespace, demand);
            by_pointer.entry(pointers).or_default().push(at);
        }
        // Pointers only save comparing; the order of kinds is that of their content.
        for pods in by_pointer.into_values() {
            let Some(first) = pods.first().map(|at| &self.pods[*at]) else { continue };
            by_content.entry(Essence::new(first, mentioned)).or_default().extend(pods);
        }
        let mut required: BTreeMap<Asked<'a>, usize> = BTreeMap::new();
        let mut tolerated: BTreeMap<&'a [Toleration], usize> = BTreeMap::new();
        let mut needed: BTreeMap<Needs, usize> = BTreeMap::new();
        let mut ports: BTreeMap<&'a HostPort, usize> = BTreeMap::new();
        let volumes = self.volume_numbers();
        for mut pods in by_content.into_values() {
            pods.sort_by_key(|at| (&self.pods[*at].name, *at));
            let Some(first) = pods.first().map(|at| &self.pods[*at]) else { continue };
            let (namespace, demand): (&'a Namespace, &'a Demand) =
                (&first.namespace, &first.demand);
            let asked: Asked<'a> = (&demand.node_selector, demand.node_terms.as_deref());
            let required = *required.entry(asked).or_insert_with(|| {
                self.required.push(self.look_for(asked));
                self.required.len() - 1
            });
            let tolerance = *tolerated.entry(&demand.tolerations).or_insert_with(|| {
                self.tolerances.push(self.tolerance(&demand.tolerations));
                self.tolerances.len() - 1
            });
            let needs = self.scale.needs(demand);
            let count = needed.len();
            let needs_at = *needed.entry(needs.clone()).or_insert(count);
            let ports = demand
                .host_ports
                .iter()
                .map(|port| {
                    *ports.entry(port).or_insert_with(|| {
                        self.ports.push(port);
                        self.ports.len() - 1
                    })
                })
                .collect();
            let barred = self.barred(namespace, demand);
            let reached = self.reached(demand, required);
            let volumes = self.attached(&demand.volumes, &volumes);
            self.kinds.push(Kind {
                order: first.order,
                moves_once: first.moves_once,
                from: first.pool.as_deref().and_then(|it| self.pool_called(it)),
                namespace,
                demand,
                pods,
                needs,
                needs_at,
                required,
                tolerance,
                ports,
                barred,
                volumes,
                reached,
                musts: Checks::default(),
                starts: Vec::new(),
                brings: Vec::new(),
                musts_beside: Checks::default(),
                wishes: Vec::new(),
                counted_by: Vec::new(),
                decides: Vec::new(),
            });
        }
        self.needs = needed.len();
    }

    fn barred(&self, namespace: &Namespace, demand: &Demand) -> Vec<Barred> {
        if self.pools.iter().all(|it| it.pool.daemons.is_empty()) {
            return Vec::new();
        }
        let of_pool = |it: &Template<'_>| self.barred_in(it, namespace, demand);
        self.pools.iter().map(of_pool).collect()
    }

    /// Nodes of the pool that would get a daemon that does not go together with the pod.
    pub(super) fn barred_in(
        &self,
        pool: &Template<'_>,
        namespace: &Namespace,
        demand: &Demand,
    ) -> Barred {
        let conflict =
            |daemon: &&Pod| same_port(demand, daemon) || apart(namespace, demand, daemon);
        let mut barred = Barred::default();
        let daemons = pool.pool.daemons.iter().filter(conflict);
        for way in daemons.flat_map(|it| pool.ways_to_host(&it.demand, &self.vocabulary)) {
            if pool.wherever_bought(&way) {
                barred.machines.or(&way.machines);
            } else {
                barred.somewhere.push(way);
            }
        }
        barred
    }

    /// Those of the pods on nodes that stay who are in one of the lists of a tally.
    fn running(&self, list: impl Fn(&Tally) -> &[u32]) -> impl Iterator<Item = &'a Pod> {
        let sites = self.sites.iter().zip(&self.tallies);
        sites.flat_map(move |(node, tally)| list(tally).iter().filter_map(|it| pod_at(node, *it)))
    }

    /// Pods that run and keep others away.
    fn averse(&self) -> impl Iterator<Item = &'a Pod> {
        self.running(|it| &it.averse)
    }

    /// A volume that pods can share is known by its driver and its handle.
    fn volume_numbers(&self) -> VolumeNumbers<'a> {
        let running = self.running(|it| &it.with_volumes);
        let attached = self.sites.iter().flat_map(|it| &it.attached);
        let volumes: BTreeSet<(Option<&str>, &str)> = self
            .pods
            .iter()
            .chain(running)
            .flat_map(|it| &it.demand.volumes)
            .chain(attached)
            .filter(|it| !it.own)
            .map(|it| (it.driver.as_deref(), &*it.handle))
            .collect();
        volumes.into_iter().zip(0..).collect()
    }

    /// The ways in which a new node of the pool meets what the pod selects and reaches its volumes.
    pub(super) fn ways(&self, kind: usize, pool: usize) -> &[Fit] {
        let kind = &self.kinds[kind];
        match &kind.reached {
            None => &self.required[kind.required].pools[pool],
            Some((_, pools)) => &pools[pool],
        }
    }

    /// Each volume once, with the place where its driver's attachments are counted.
    fn attached(
        &self,
        volumes: &[Volume],
        numbers: &VolumeNumbers<'a>,
    ) -> Vec<(usize, Option<usize>)> {
        let place =
            |driver: &Option<String>| driver.as_deref().and_then(|it| self.scale.driver(it));
        let mut all: Vec<(usize, Option<usize>)> = volumes
            .iter()
            .filter(|it| !it.own)
            .filter_map(|it| {
                let number = numbers.get(&(it.driver.as_deref(), &*it.handle))?;
                Some((*number, place(&it.driver)))
            })
            .collect();
        all.sort_unstable();
        all.dedup_by_key(|(number, _)| *number);
        all
    }

    /// The volumes that running pods have attached or others have left attached, by site. Kept apart: only the state needs it.
    pub(super) fn attached_already(&self) -> Vec<Vec<(usize, Option<usize>)>> {
        let numbers = self.volume_numbers();
        if numbers.is_empty() {
            return vec![Vec::new(); self.sites.len()];
        }
        let on = |(node, tally): (&&'a Node, &&Tally)| {
            let with_volumes = tally.with_volumes.iter().filter_map(|it| pod_at(node, *it));
            let volumes = with_volumes.map(|it| &it.demand.volumes).chain([&node.attached]);
            let mut all: Vec<_> = volumes.flat_map(|it| self.attached(it, &numbers)).collect();
            all.sort_unstable();
            all.dedup_by_key(|(number, _)| *number);
            all
        };
        self.sites.iter().zip(&self.tallies).map(on).collect()
    }

    fn look_for(&self, (selector, terms): Asked<'a>) -> RequiredNodes {
        let selects = |node: &Node| {
            selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
                && terms.is_none_or(|all| all.iter().any(|it| it.admits(&node.name, &node.labels)))
        };
        RequiredNodes {
            sites: self.sites_where(selects),
            leaving: self.leaving_where(selects),
            pools: self.pools.iter().map(|it| it.fits(selector, terms, &self.vocabulary)).collect(),
        }
    }

    fn sites_where(&self, holds: impl Fn(&Node) -> bool) -> Bits {
        self.sites.iter().enumerate().filter(|(_, it)| holds(it)).map(|(at, _)| at).collect()
    }

    fn leaving_where(&self, holds: impl Fn(&Node) -> bool) -> Bits {
        self.leaving.iter().enumerate().filter(|(_, it)| holds(it)).map(|(at, _)| at).collect()
    }

    fn tolerance(&self, tolerations: &[Toleration]) -> Tolerance {
        let all = |taints: &[Taint], gladly: bool| {
            taints
                .iter()
                .all(|it| (!gladly && !it.effect.binding()) || it.tolerated_by(tolerations))
        };
        let sites = |gladly| {
            let taints = self.site_taints.iter().enumerate();
            let open = taints.filter(|(at, it)| !self.sites[*at].closed && all(it, gladly));
            open.map(|(at, _)| at).collect()
        };
        let pools = |gladly| {
            let pools = self.pools.iter().enumerate();
            pools.filter(|(_, it)| all(&it.pool.taints, gladly)).map(|(at, _)| at).collect()
        };
        Tolerance {
            sites: sites(false),
            leaving: self.leaving_where(|it| {
                // Whoever drains it has cordoned it.
                all(&it.taints_if(true), false)
            }),
            pools: pools(false),
            sites_gladly: sites(true),
            pools_gladly: pools(true),
        }
    }

    /// Where all volumes can be reached, if that is not everywhere.
    fn reached(&self, demand: &Demand, required: usize) -> Option<(Bits, Vec<Vec<Fit>>)> {
        let reaches: BTreeSet<&[NodeTerm]> =
            demand.volumes.iter().filter_map(|it| it.reach.as_deref()).collect();
        if reaches.is_empty() {
            return None;
        }
        let sites = self.sites_where(|node| {
            reaches.iter().all(|terms| terms.iter().any(|it| reaches_node(it, node)))
        });
        let pools = self.pools.iter().enumerate().map(|(at, pool)| {
            let mut ways = self.required[required].pools[at].clone();
            for terms in &reaches {
                let mut next = Vec::new();
                for way in &ways {
                    next.extend(terms.iter().filter_map(|it| pool.term(way, it, &self.vocabulary)));
                }
                next.truncate(COMBINATIONS_MAX);
                ways = next;
            }
            ways
        });
        Some((sites, pools.collect()))
    }

    fn key(&mut self, text: &str) -> usize {
        if let Some(at) = self.keys.iter().position(|it| it.text == text) {
            return at;
        }
        self.keys.push(TopologyKey::new(
            text,
            &self.sites,
            &self.leaving,
            &self.pools,
            &self.vocabulary,
        ));
        self.keys.len() - 1
    }

    /// Every question that a pod asks about others.
    fn gather_counters(&mut self) {
        for at in 0..self.kinds.len() {
            let (namespace, demand) = (self.kinds[at].namespace, self.kinds[at].demand);
            let (required, tolerance) = (self.kinds[at].required, self.kinds[at].tolerance);
            if !demand.placeable() {
                continue;
            }
            let mut musts = self.near(&demand.affinity, namespace, demand, true);
            for term in &demand.anti_affinity {
                let key = self.key(&term.topology_key);
                // Who is meant by the documentation is among those. Nobody knows who of the two will come first.
                let reach = Reach::of_term(term, namespace, &demand.labels).as_its_own();
                musts.away.push(self.counters.find(key, What::Meant(reach.clone()), true));
                let averse = self.counters.find(key, What::Averse(reach), true);
                self.kinds[at].counted_by.push(averse);
            }
            // A node counts only if it has the labels of all required spreads.
            let mut keys: Vec<usize> = Vec::new();
            for it in demand.spread.iter().filter(|it| it.required) {
                keys.push(self.key(&it.topology_key));
            }
            keys.sort_unstable();
            keys.dedup();
            for spread in demand.spread.iter().filter(|it| it.required) {
                let check = self.spread(spread, namespace, demand, &keys, (required, tolerance));
                musts.spreads.push(check);
            }
            let brings = self.brings(namespace, demand);
            // Daemons will be on nodes that are launched: then it is not the first.
            musts.first_of_its_own &= brings.iter().all(Vec::is_empty);
            // Who finds such a daemon on every new node depends on nobody.
            for counter in musts.near.iter().filter(|_| brings.iter().all(Vec::is_empty)) {
                self.followers.entry(*counter).or_default().push(at);
            }
            self.kinds[at].brings = brings;
            self.kinds[at].wishes = self.wishes(at);
            self.kinds[at].musts = musts;
        }
        let averse: Vec<&Pod> = self.averse().collect();
        for pod in averse {
            for term in &pod.demand.anti_affinity {
                let key = self.key(&term.topology_key);
                let reach = Reach::of_term(term, &pod.namespace, &pod.demand.labels);
                self.counters.find(key, What::Averse(reach), true);
            }
        }
        let mut looks: BTreeMap<(&Namespace, &Labels), Concerning> = BTreeMap::new();
        for at in 0..self.kinds.len() {
            let kind = &self.kinds[at];
            let concerning = looks
                .entry((kind.namespace, &kind.demand.labels))
                .or_insert_with(|| self.counters.concerning(kind.namespace, &kind.demand.labels));
            let kind = &mut self.kinds[at];
            kind.musts.away.extend(&concerning.shunned_by);
            kind.musts.away.sort_unstable();
            kind.musts.away.dedup();
            kind.counted_by.extend(&concerning.counted_by);
            kind.counted_by.sort_unstable();
            kind.counted_by.dedup();
            let leads = kind.counted_by.iter().filter(|it| self.followers.contains_key(it));
            kind.starts = leads.copied().collect();
            let spreads = kind.musts.spreads.iter().map(|it| it.counter);
            let own = kind.musts.away.iter().chain(&kind.musts.near).copied().chain(spreads);
            let counting = kind.counted_by.iter().copied().filter(|it| self.counters.all[*it].hard);
            let keys: BTreeSet<usize> =
                own.chain(counting).map(|it| self.counters.all[it].key).collect();
            kind.decides = keys.into_iter().collect();
            if kind.brings.iter().any(|it| !it.is_empty()) {
                kind.musts_beside = Checks { beside: true, ..kind.musts.clone() };
            }
        }
    }

    /// In which ways new nodes get a daemon that all of the pod's terms mean.
    fn brings(&self, namespace: &Namespace, demand: &Demand) -> Vec<Vec<Fit>> {
        if demand.affinity.is_empty() || self.pools.iter().all(|it| it.pool.daemons.is_empty()) {
            return Vec::new();
        }
        let terms = demand.affinity.iter();
        let reaches: Vec<Reach> =
            terms.map(|it| Reach::of_term(it, namespace, &demand.labels)).collect();
        let friend =
            |it: &&Pod| reaches.iter().all(|reach| reach.means(&it.namespace, &it.demand.labels));
        let of_pool = |pool: &Template<'_>| {
            let friends = pool.pool.daemons.iter().filter(friend);
            friends.flat_map(|it| pool.ways_to_host(&it.demand, &self.vocabulary)).collect()
        };
        self.pools.iter().map(of_pool).collect()
    }

    fn near(
        &mut self,
        terms: &[PodTerm],
        namespace: &Namespace,
        demand: &Demand,
        hard: bool,
    ) -> Checks {
        let mut reaches: Vec<Reach> =
            terms.iter().map(|it| Reach::of_term(it, namespace, &demand.labels)).collect();
        reaches.sort_unstable();
        reaches.dedup();
        let mut near = Vec::new();
        for term in terms {
            let key = self.key(&term.topology_key);
            near.push(self.counters.find(key, What::MeantByAll(reaches.clone()), hard));
        }
        near.sort_unstable();
        near.dedup();
        let mut misread: Vec<Reach> = reaches.iter().map(Reach::as_its_own).collect();
        misread.sort_unstable();
        misread.dedup();
        let mut mistaken = Vec::new();
        for term in terms.iter().filter(|_| misread != reaches) {
            let key = self.key(&term.topology_key);
            mistaken.push(self.counters.find(key, What::MeantByAll(misread.clone()), hard));
        }
        let first_of_its_own = reaches.iter().all(|it| it.means(namespace, &demand.labels));
        Checks { near, first_of_its_own, mistaken, ..Checks::default() }
    }

    fn spread(
        &mut self,
        spread: &Spread,
        namespace: &Namespace,
        demand: &Demand,
        keys: &[usize],
        (required, tolerance): (usize, usize),
    ) -> SpreadCheck {
        let key = self.key(&spread.topology_key);
        let reach = Reach::of_spread(spread, namespace, &demand.labels);
        let filter = Filter {
            keys: keys.to_vec(),
            required: spread.honour_node_affinity.then_some(required),
            tolerations: spread.honour_taints.then_some(tolerance),
        };
        let counts_itself = reach.means(namespace, &demand.labels);
        SpreadCheck {
            counter: self.counters.find(key, What::Spread(reach, filter), spread.required),
            max_skew: spread.max_skew,
            domains_min: spread.min_domains.and_then(|it| usize::try_from(it).ok()).unwrap_or(1),
            counts_itself,
        }
    }

    /// What the pod would like. The most important first: the reverse of the order in which
    /// preferences are given up.
    fn wishes(&mut self, at: usize) -> Vec<Wish> {
        let (namespace, demand) = (self.kinds[at].namespace, self.kinds[at].demand);
        let (required, tolerance) = (self.kinds[at].required, self.kinds[at].tolerance);
        let mut wishes = Vec::new();
        let here = &self.tolerances[tolerance];
        if here.sites != here.sites_gladly || here.pools != here.pools_gladly {
            let preference = Preference::UntaintedNode;
            wishes.push(Wish { preference, what: Wished::Untainted, worth_a_node: true });
        }
        for (at, spread) in demand.spread.iter().enumerate().filter(|(_, it)| !it.required) {
            let keys = [self.key(&spread.topology_key)];
            let check = self.spread(spread, namespace, demand, &keys, (required, tolerance));
            let checks = Checks { spreads: vec![check], ..Checks::default() };
            wishes.push(Wish {
                preference: Preference::Spread { at },
                what: Wished::Checks(checks),
                worth_a_node: coarse(&spread.topology_key),
            });
        }
        for at in heaviest_first(demand.preferred_nodes.iter().map(|it| it.weight)) {
            let term = &demand.preferred_nodes[at].term;
            let sites = self.sites_where(|it| term.admits(&it.name, &it.labels));
            let base = |it: &Template<'_>| it.term(&it.base, term, &self.vocabulary);
            let pools = self.pools.iter().map(base).collect();
            let what = Wished::Nodes { sites, pools };
            let preference = Preference::NodeAffinity { at };
            wishes.push(Wish { preference, what, worth_a_node: true });
        }
        for at in heaviest_first(demand.preferred_anti_affinity.iter().map(|it| it.weight)) {
            let term = &demand.preferred_anti_affinity[at].term;
            let key = self.key(&term.topology_key);
            let reach = Reach::of_term(term, namespace, &demand.labels);
            let away = vec![self.counters.find(key, What::Meant(reach), false)];
            wishes.push(Wish {
                preference: Preference::PodAntiAffinity { at },
                what: Wished::Checks(Checks { away, ..Checks::default() }),
                worth_a_node: coarse(&term.topology_key),
            });
        }
        for at in heaviest_first(demand.preferred_affinity.iter().map(|it| it.weight)) {
            let term = &demand.preferred_affinity[at].term;
            let checks = self.near(std::slice::from_ref(term), namespace, demand, false);
            wishes.push(Wish {
                preference: Preference::PodAffinity { at },
                what: Wished::Checks(checks),
                worth_a_node: coarse(&term.topology_key),
            });
        }
        wishes
    }

    /// Domains of nodes that leave. The scheduler sees them for as long as the nodes stand.
    fn domains_left(&self, filter: &Filter, key: &TopologyKey) -> Bits {
        let mut leaving = Bits::below(self.leaving.len());
        if let Some(required) = filter.required {
            leaving.and(&self.required[required].leaving);
        }
        if let Some(tolerance) = filter.tolerations {
            leaving.and(&self.tolerances[tolerance].leaving);
        }
        let labels = |at: usize| &self.leaving[at].labels;
        let labelled = |at: &usize| {
            filter.keys.iter().all(|it| labels(*at).contains_key(&self.keys[*it].text))
        };
        let domains = leaving.iter().filter(labelled).filter_map(|at| labels(at).get(&key.text));
        domains.filter_map(|it| key.find(it)).collect()
    }

    /// Over which domains each spread is measured.
    fn gather_domains(&mut self) {
        for at in 0..self.counters.all.len() {
            let counter = &self.counters.all[at];
            let What::Spread(_, filter) = &counter.what else { continue };
            let key = &self.keys[counter.key];
            let mut sites = Bits::below(self.sites.len());
            if let Some(required) = filter.required {
                sites.and(&self.required[required].sites);
            }
            if let Some(tolerance) = filter.tolerations {
                sites.and(&self.tolerances[tolerance].sites);
            }
            let labelled = |site: &usize| {
                filter.keys.iter().all(|key| self.keys[*key].by_site[*site].is_some())
            };
            let sites: Bits = sites.iter().filter(labelled).collect();
            let mut existing: Bits = sites.iter().filter_map(|it| key.by_site[it]).collect();
            existing.or(&self.domains_left(filter, key));
            let mut possible = existing.clone();
            let (mut endless, mut pools) = (false, Bits::default());
            for (at, pool) in self.pools.iter().enumerate() {
                let labelled = filter.keys.iter().all(|it| {
                    !matches!(self.keys[*it].by_pool[at], super::topology::PoolKey::Absent)
                });
                let tolerated =
                    filter.tolerations.is_none_or(|it| self.tolerances[it].pools.has(at));
                let everything = [pool.base.clone()];
                let ways =
                    filter.required.map_or(&everything[..], |it| &self.required[it].pools[at]);
                if !labelled || !tolerated || ways.is_empty() {
                    continue;
                }
                pools.insert(at);
                endless |= key.fine();
                for way in ways {
                    let values = pool.values_within(way, &key.text, &self.vocabulary);
                    possible.or(&values.iter().filter_map(|it| key.find(it)).collect());
                }
            }
            self.counters.all[at].domains =
                super::topology::Domains { sites, existing, possible, endless, pools };
        }
    }
}

/// The pod at this place on a node.
pub(super) fn pod_at(node: &Node, at: u32) -> Option<&Pod> {
    usize::try_from(at).ok().and_then(|it| node.pods.get(it))
}

/// Whether the daemon has a port of the pod.
fn same_port(demand: &Demand, daemon: &Pod) -> bool {
    let taken = &daemon.demand.host_ports;
    demand.host_ports.iter().any(|port| taken.iter().any(|it| it.conflicts(port)))
}

/// Whether one of the two must avoid the other. They would be on one node, and therefore together in
/// whatever domain it is in.
fn apart(namespace: &Namespace, demand: &Demand, daemon: &Pod) -> bool {
    let (own, theirs) = ((namespace, demand), (&*daemon.namespace, &*daemon.demand));
    avoided_within(own, (theirs.0, &theirs.1.labels)).next().is_some()
        || avoided_within(theirs, (own.0, &own.1.labels)).next().is_some()
}

/// The labels within which the first must avoid the second.
pub(super) fn avoided_within<'d>(
    (own, it): (&Namespace, &'d Demand),
    (other, labels): (&Namespace, &Labels),
) -> impl Iterator<Item = &'d String> {
    let means = move |term: &&PodTerm| {
        Reach::of_term(term, own, &it.labels).as_its_own().means(other, labels)
    };
    it.anti_affinity.iter().filter(means).map(|it| &it.topology_key)
}

/// A volume's terms are about labels that a driver writes once the node is set up.
pub(super) fn reaches_node(term: &NodeTerm, node: &Node) -> bool {
    if node.initialised || term.admits(&node.name, &node.labels) {
        return term.admits(&node.name, &node.labels);
    }
    let mut labels = node.labels.clone();
    for it in &term.labels {
        if let Some(value) = node.labels.get(label::normalise(&it.key)) {
            labels.entry(it.key.clone()).or_insert_with(|| value.clone());
        }
    }
    term.admits(&node.name, &labels)
}

fn coarse(key: &str) -> bool {
    label::normalise(key) != label::HOSTNAME
}

fn heaviest_first(weights: impl Iterator<Item = i32>) -> Vec<usize> {
    let mut all: Vec<(std::cmp::Reverse<i32>, usize)> =
        weights.map(std::cmp::Reverse).zip(0..).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, at)| at).collect()
}

impl World<'_> {
    /// The counters that count a pod that runs already.
    pub(super) fn counting(&self, pod: &Pod) -> Vec<usize> {
        let mut counting = self.counters.concerning(&pod.namespace, &pod.demand.labels).counted_by;
        for term in &pod.demand.anti_affinity {
            let reach = Reach::of_term(term, &pod.namespace, &pod.demand.labels);
            let key = self.keys.iter().position(|it| it.text == term.topology_key);
            counting.extend(key.and_then(|it| self.counters.known(it, What::Averse(reach))));
        }
        counting.sort_unstable();
        counting.dedup();
        counting
    }
}
