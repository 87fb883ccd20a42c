//! Who is where so far?
//!
//! `world + pods placed → room left, counts per domain`
//!
//! Places are numbered: first the nodes that exist, then the new ones in the order of opening. Placing
//! a pod touches its node and the counters that count it, and nothing else is copied or computed anew.

use std::{collections::BTreeMap, sync::Arc};

use smallvec::SmallVec;

use super::{
    answer::Preference,
    bits::Bits,
    measure::{Needs, Room, take},
    template::{Fit, Left},
    topology::{Counter, PoolKey, What},
    world::{Checks, SpreadCheck, World, pod_at},
};
use crate::{
    pod::{Demand, HostPort, Namespace, Pod},
    requirement::{Requirement, Requirements},
};

/// Labels with more domains than these are looked up node by node.
const MASKED_DOMAINS_MAX: usize = 64;
/// So many limits of one counter are remembered as sets of nodes.
const LIMITS_MAX: usize = 8;

/// In which domain a node is, by one label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    Lacking,
    Undecided,
    In(usize),
}

/// Over which domains the least count is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Domains in which a node could be launched count as well: pods shall be spread over them.
    Hopeful,
    /// Only domains with nodes count, as for the scheduler itself. The last resort, for where there
    /// is something in the way of launching in the others.
    Real,
}

#[derive(Debug, Clone)]
pub(super) struct State<'w, 'a> {
    pub(super) world: &'w World<'a>,
    free: Vec<Room>,
    pub(super) open: Vec<OpenNode>,
    ports: Vec<SmallVec<[&'a HostPort; 1]>>,
    volumes: Vec<Vec<usize>>,
    pub(super) keys: Vec<KeyState>,
    pub(super) counts: Vec<Count>,
    /// Per different needs: the places where there is no such room any more.
    pub(super) full: Vec<Bits>,
    /// Per kind of pods: the places where it cannot be put any more, whatever else happens.
    pub(super) never: Vec<Bits>,
    pub(super) left: Vec<Option<Left>>,
    pub(super) reserved: Vec<u32>,
    pub(super) placed: Vec<Step>,
    /// A domain came up after somebody had been placed by what was counted in those that there were.
    pub(super) late: bool,
    /// No new node is there yet: whoever is placed now goes to one that exists.
    pub(super) early: bool,
    /// Labels, and domains in which no new node is opened for who is spread over them.
    pub(super) spared: Vec<(usize, usize)>,
}

/// One pod was put in one place.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) pod: usize,
    pub(super) place: usize,
    pub(super) relaxed: Vec<Preference>,
}

/// A node to be launched.
#[derive(Debug, Clone)]
pub(super) struct OpenNode {
    pub(super) pool: usize,
    pub(super) fit: Fit,
    pub(super) used: Room,
    pub(super) pods: Vec<usize>,
    /// What it takes of the pool's limits at least, by the smallest machine that it can be.
    pub(super) floor: Option<usize>,
    pub(super) held: Room,
}

#[derive(Debug, Clone, Default)]
pub(super) struct KeyState {
    pub(super) of: Vec<Domain>,
    members: Vec<Vec<usize>>,
    /// The members again as sets, if there are not too many domains.
    pub(super) masks: Option<Vec<Bits>>,
    pub(super) undecided: Bits,
    pub(super) lacking: Bits,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Count {
    by_domain: Vec<u32>,
    pub(super) total: u64,
    /// How many domains have any.
    pub(super) taken_domains: u64,
    /// For spreads: the least over all possible domains, and over those that have nodes.
    hopeful: Least,
    real: Least,
    real_domains: Bits,
    /// Somebody was placed who could not have been with an empty domain more.
    ventured: bool,
    /// By limit: the places in domains with more than that.
    over: Vec<(u32, Bits)>,
}

/// The least count over some domains, and how many domains have no more than that.
#[derive(Debug, Clone, Copy, Default)]
struct Least {
    count: u32,
    domains: usize,
    domains_in_all: usize,
}

impl Count {
    pub(super) fn of(&self, domain: usize) -> u32 {
        self.by_domain.get(domain).copied().unwrap_or(0)
    }

    pub(super) fn over(&self, limit: u32) -> Option<&Bits> {
        self.over.iter().find(|(it, _)| *it == limit).map(|(_, bits)| bits)
    }

    fn add(&mut self, domain: usize) -> u32 {
        if domain >= self.by_domain.len() {
            self.by_domain.resize(domain + 1, 0);
        }
        self.by_domain[domain] += 1;
        self.total += 1;
        self.taken_domains += u64::from(self.by_domain[domain] == 1);
        self.by_domain[domain]
    }

    fn least(&self, among: &Bits) -> Least {
        let count = among.iter().map(|it| self.of(it)).min().unwrap_or(0);
        let domains = among.iter().filter(|it| self.of(*it) == count).count();
        Least { count, domains, domains_in_all: among.iter().count() }
    }

    /// The domain has one more: whether that leaves no domain with the least.
    fn rises(least: &mut Least, many: u32) -> bool {
        if many.checked_sub(1) != Some(least.count) {
            return false;
        }
        least.domains -= 1;
        least.domains == 0
    }

    /// There is a node in this domain, or may be. One that turns out to be elsewhere stays counted:
    /// a least that is too low is safe. Whether somebody counted on there being none.
    fn meet(&mut self, domain: usize) -> bool {
        if self.real_domains.has(domain) {
            return false;
        }
        self.real_domains.insert(domain);
        let many = self.of(domain);
        let least = &mut self.real;
        let late = self.ventured && many < least.count;
        if least.domains_in_all == 0 || many < least.count {
            (least.count, least.domains) = (many, 1);
        } else if many == least.count {
            least.domains += 1;
        }
        least.domains_in_all += 1;
        late
    }
}

impl KeyState {
    fn join(&mut self, place: usize, domain: Domain) {
        if place >= self.of.len() {
            self.of.resize(place + 1, Domain::Lacking);
        }
        self.of[place] = domain;
        match domain {
            Domain::Lacking => self.lacking.insert(place),
            Domain::Undecided => self.undecided.insert(place),
            Domain::In(domain) => {
                self.undecided.remove(place);
                if domain >= self.members.len() {
                    self.members.resize(domain + 1, Vec::new());
                }
                self.members[domain].push(place);
                if let Some(mask) = self.masks.as_mut().and_then(|it| it.get_mut(domain)) {
                    mask.insert(place);
                }
            }
        }
    }
}

impl<'w, 'a> State<'w, 'a> {
    pub(super) fn new(world: &'w World<'a>) -> Self {
        let mut keys: Vec<KeyState> = Vec::new();
        for key in &world.keys {
            let masked = !key.fine() && key.domains.len() <= MASKED_DOMAINS_MAX;
            let mut state = KeyState {
                masks: masked.then(|| vec![Bits::default(); key.domains.len()]),
                ..KeyState::default()
            };
            for (site, domain) in key.by_site.iter().enumerate() {
                state.join(site, domain.map_or(Domain::Lacking, Domain::In));
            }
            keys.push(state);
        }
        let mut state = Self {
            world,
            free: Vec::new(),
            open: Vec::new(),
            ports: Vec::new(),
            volumes: Vec::new(),
            keys,
            counts: vec![Count::default(); world.counters.all.len()],
            full: vec![Bits::default(); world.needs],
            never: vec![Bits::default(); world.kinds.len()],
            left: world.pools.iter().map(|it| it.left.clone()).collect(),
            reserved: world.reservations.left.clone(),
            placed: Vec::new(),
            late: false,
            early: false,
            spared: Vec::new(),
        };
        let attached = world.attached_already();
        for ((node, tally), attached) in world.sites.iter().zip(&world.tallies).zip(attached) {
            let mut free = world.scale.left(tally, &node.volume_limits);
            for place in attached.iter().filter_map(|it| it.1) {
                take(&mut free, &[(place, 1)]);
            }
            let with_ports = tally.with_ports.iter().filter_map(|it| pod_at(node, *it));
            state.free.push(free);
            state.ports.push(with_ports.flat_map(|it| &it.demand.host_ports).collect());
            state.volumes.push(attached.iter().map(|(number, _)| *number).collect());
        }
        state.count_all_running();
        for (at, counter) in world.counters.all.iter().enumerate() {
            let count = &mut state.counts[at];
            count.real_domains = counter.domains.existing.clone();
            count.real = count.least(&counter.domains.existing);
            count.hopeful = count.least(&counter.domains.possible);
        }
        state
    }

    /// Pods of one controller share their demand: they are counted by the same.
    fn count_all_running(&mut self) {
        let world = self.world;
        if world.counters.all.is_empty() {
            return;
        }
        let mut known: BTreeMap<(*const Namespace, *const Demand), usize> = BTreeMap::new();
        let mut demands: Vec<Vec<usize>> = Vec::new();
        let mut before = None;
        for (site, node) in world.sites.iter().enumerate() {
            for pod in &node.pods {
                let pointers = (Arc::as_ptr(&pod.namespace), Arc::as_ptr(&pod.demand));
                // Most often it is the one before once more.
                let at = match before {
                    Some((it, at)) if it == pointers => at,
                    Some(_) | None => *known.entry(pointers).or_insert_with(|| {
                        demands.push(world.counting(pod));
                        demands.len() - 1
                    }),
                };
                before = Some((pointers, at));
                self.count_running(site, pod, &demands[at]);
            }
        }
    }

    /// A pod that runs already counts like one that was placed.
    fn count_running(&mut self, site: usize, pod: &Pod, counted_by: &[usize]) {
        for at in counted_by {
            let counter = &self.world.counters.all[*at];
            let spread = matches!(counter.what, What::Spread(..));
            if spread && (pod.terminating || !counter.domains.sites.has(site)) {
                continue;
            }
            if let Domain::In(domain) = self.keys[counter.key].of[site] {
                self.counts[*at].add(domain);
            }
        }
    }

    /// How many who shall move once are on nodes that are to be replaced.
    pub(super) fn to_move_again(&self) -> usize {
        let fading = self.world.lasting..self.world.sites.len();
        if fading.is_empty() {
            return 0;
        }
        let again = |it: &&Step| fading.contains(&it.place) && self.world.pods[it.pod].moves_once;
        self.placed.iter().filter(again).count()
    }

    pub(super) fn places(&self) -> usize {
        self.world.sites.len() + self.open.len()
    }

    /// The open node at a place, if it is not one that exists.
    pub(super) fn opened(&self, place: usize) -> Option<&OpenNode> {
        place.checked_sub(self.world.sites.len()).and_then(|at| self.open.get(at))
    }

    pub(super) fn free(&self, site: usize) -> &Room {
        &self.free[site]
    }

    /// What the pod needs here, with those of its volumes that are not attached yet.
    pub(super) fn needs(&self, kind: usize, place: Option<usize>) -> Needs {
        let kind = &self.world.kinds[kind];
        let mut needs = kind.needs.clone();
        for (number, driver) in &kind.volumes {
            let attached = place.is_some_and(|it| self.volumes[it].contains(number));
            if let (Some(driver), false) = (driver, attached) {
                match needs.iter_mut().find(|(it, _)| it == driver) {
                    Some((_, count)) => *count += 1,
                    None => needs.push((*driver, 1)),
                }
            }
        }
        needs
    }

    /// Those of the pod's ports that somebody has here.
    pub(super) fn ports_taken(
        &self,
        kind: usize,
        place: usize,
    ) -> impl Iterator<Item = &'a HostPort> {
        let ports = self.world.kinds[kind].ports.iter().map(|it| self.world.ports[*it]);
        ports.filter(move |port| self.ports[place].iter().any(|it| it.conflicts(port)))
    }

    pub(super) fn port_taken(&self, kind: usize, place: usize) -> bool {
        self.ports_taken(kind, place).next().is_some()
    }

    /// The least count over the domains that are looked at.
    pub(super) fn least(&self, check: &SpreadCheck, stage: Stage) -> u32 {
        let count = &self.counts[check.counter];
        let least = match stage {
            Stage::Hopeful if self.world.counters.all[check.counter].domains.endless => return 0,
            Stage::Hopeful => count.hopeful,
            Stage::Real => count.real,
        };
        if least.domains_in_all < check.domains_min { 0 } else { least.count }
    }

    /// The domains that a new node can be in, ascending.
    pub(super) fn options(&self, key: usize, pool: usize, fit: &Fit) -> SmallVec<[usize; 4]> {
        let mut options: SmallVec<[usize; 4]> = match &self.world.keys[key].by_pool[pool] {
            PoolKey::EachItsOwn | PoolKey::Absent => SmallVec::new(),
            PoolKey::Fixed(domain) => SmallVec::from_elem(*domain, 1),
            PoolKey::BySlot(domains) => fit.slots.iter().filter_map(|at| domains[at]).collect(),
            PoolKey::ByMachine(domains) => {
                fit.machines.iter().filter_map(|at| domains[at]).collect()
            }
            PoolKey::Custom { key, values } => {
                let asked = fit.custom.get(*key);
                let admitted = |value| asked.is_none_or(|it: &Requirement| it.admits(value));
                let possible = values.iter().filter(|(value, _)| admitted(*value));
                possible.map(|(_, domain)| *domain).collect()
            }
        };
        options.sort_unstable();
        options.dedup();
        options
    }

    /// In which domain a node is that can be this.
    pub(super) fn domain(&self, key: usize, pool: usize, fit: &Fit, place: usize) -> Domain {
        match &self.world.keys[key].by_pool[pool] {
            PoolKey::EachItsOwn => {
                // After the names of the nodes that exist.
                let known = self.world.keys[key].domains.len();
                Domain::In(known + place - self.world.sites.len())
            }
            PoolKey::Absent => Domain::Lacking,
            PoolKey::Fixed(domain) => Domain::In(*domain),
            PoolKey::BySlot(domains) => agreed(fit.slots.iter().map(|at| domains[at])),
            PoolKey::ByMachine(domains) => agreed(fit.machines.iter().map(|at| domains[at])),
            PoolKey::Custom { key: name, .. } => {
                match fit.custom.get(*name).and_then(Requirement::listed) {
                    Some([_]) => match self.options(key, pool, fit).as_slice() {
                        [only] => Domain::In(*only),
                        _ => Domain::Lacking,
                    },
                    Some(_) | None => Domain::Undecided,
                }
            }
        }
    }

    /// Whether the pod may be in this domain of the label, as far as other pods are concerned.
    pub(super) fn allows(&self, checks: &Checks, key: usize, domain: Domain, stage: Stage) -> bool {
        let of_key = |at: &&usize| self.world.counters.all[**at].key == key;
        let Domain::In(domain) = domain else {
            let spread = |it: &SpreadCheck| self.world.counters.all[it.counter].key == key;
            return domain == Domain::Undecided
                || !checks.near.iter().any(|it| of_key(&it)) && !checks.spreads.iter().any(spread);
        };
        checks.away.iter().filter(of_key).all(|it| self.counts[*it].of(domain) == 0)
            && (checks.beside
                || self.first_of_its_own(checks)
                || checks.near.iter().filter(of_key).all(|it| self.counts[*it].of(domain) > 0))
            && checks
                .spreads
                .iter()
                .filter(|it| self.world.counters.all[it.counter].key == key)
                .all(|it| {
                    let there = self.counts[it.counter].of(domain);
                    self.limit(it, stage).is_some_and(|limit| there <= limit)
                })
    }

    /// How many may be in a domain so that one more is allowed. `None`: not even with nobody there.
    pub(super) fn limit(&self, check: &SpreadCheck, stage: Stage) -> Option<u32> {
        let most = check.max_skew.saturating_add(self.least(check, stage));
        most.checked_sub(u32::from(check.counts_itself))
    }

    /// Nobody whom it must be near is anywhere, and it is one of them itself.
    pub(super) fn first_of_its_own(&self, checks: &Checks) -> bool {
        let mut others = checks.near.iter().chain(&checks.mistaken);
        checks.first_of_its_own && others.all(|it| self.counts[*it].total == 0)
    }

    /// Have the sets at hand that a search will look at.
    pub(super) fn prepare(&mut self, checks: &Checks, stage: Stage) {
        for at in checks.away.iter().chain(&checks.near) {
            self.remember_over(*at, 0);
        }
        for check in &checks.spreads {
            let key = self.world.counters.all[check.counter].key;
            if let (None, Some(limit)) = (&self.keys[key].masks, self.limit(check, stage)) {
                self.remember_over(check.counter, limit);
            }
        }
    }

    fn remember_over(&mut self, counter: usize, limit: u32) {
        let key = &self.keys[self.world.counters.all[counter].key];
        let count = &mut self.counts[counter];
        if count.over(limit).is_some() {
            return;
        }
        if count.over.len() >= LIMITS_MAX {
            count.over.remove(0);
        }
        let mut over = Bits::default();
        for (domain, many) in count.by_domain.iter().enumerate() {
            if *many > limit {
                for place in key.members.get(domain).into_iter().flatten() {
                    over.insert(*place);
                }
            }
        }
        count.over.push((limit, over));
    }

    /// The node at this place is in this domain from now on.
    fn join(&mut self, key: usize, place: usize, domain: Domain) {
        self.keys[key].join(place, domain);
        let Domain::In(domain) = domain else { return };
        for at in 0..self.counts.len() {
            if self.world.counters.all[at].key == key {
                let many = self.counts[at].of(domain);
                for (limit, over) in &mut self.counts[at].over {
                    if many > *limit {
                        over.insert(place);
                    }
                }
            }
        }
    }

    fn count(&mut self, counter: usize, domain: usize) {
        let key = self.world.counters.all[counter].key;
        let possible = &self.world.counters.all[counter].domains.possible;
        let count = &mut self.counts[counter];
        let many = count.add(domain);
        for (limit, over) in &mut count.over {
            if many.checked_sub(1) == Some(*limit) {
                for place in &self.keys[key].members[domain] {
                    over.insert(*place);
                }
            }
        }
        if possible.has(domain) && Count::rises(&mut count.hopeful, many) {
            count.hopeful = count.least(possible);
        }
        if count.real_domains.has(domain) && Count::rises(&mut count.real, many) {
            count.real = count.least(&count.real_domains);
        }
    }

    /// Put the pod on a node that exists.
    pub(super) fn put(&mut self, kind: usize, pod: usize, place: usize, relaxed: Vec<Preference>) {
        let needs = self.needs(kind, Some(place));
        take(&mut self.free[place], &needs);
        self.settle(kind, pod, place, relaxed);
    }

    /// Put the pod on a new node, which thereby becomes what `fit` says. `None`: on one more.
    pub(super) fn put_new(
        &mut self,
        kind: usize,
        pod: usize,
        place: Option<usize>,
        became: Became,
        relaxed: Vec<Preference>,
    ) {
        let opened = place.is_none();
        let place = place.unwrap_or_else(|| self.open_one(became.pool));
        let needs = self.needs(kind, Some(place));
        let at = place - self.world.sites.len();
        let pool = &self.world.pools[became.pool];
        let node = &mut self.open[at];
        for (slot, gone) in node.fit.slots.iter().map(|it| (it, !became.fit.slots.has(it))) {
            if let (Some(reservation), true) = (pool.slots[slot].reservation, gone) {
                self.reserved[reservation] += 1;
            }
        }
        if let Some(left) = &mut self.left[became.pool] {
            for (it, (now, before)) in left.room.iter_mut().zip(became.held.iter().zip(&node.held))
            {
                *it -= now - before;
            }
        }
        node.fit = became.fit;
        node.floor = became.floor;
        node.held = became.held;
        node.pods.push(pod);
        for (resource, amount) in &needs {
            node.used[*resource] = node.used[*resource].saturating_add(*amount);
        }
        for key in 0..self.keys.len() {
            if self.keys[key].of[place] == Domain::Undecided {
                let node = &self.open[at];
                let domain = self.domain(key, node.pool, &node.fit, place);
                if domain != Domain::Undecided {
                    self.join(key, place, domain);
                }
            }
        }
        if opened {
            self.meet(place);
        }
        if became.beside {
            // The daemon that came along: others who must be near it may follow.
            for at in &self.world.kinds[kind].musts.near {
                if let Domain::In(domain) = self.keys[self.world.counters.all[*at].key].of[place] {
                    self.count(*at, domain);
                }
            }
        }
        self.settle(kind, pod, place, relaxed);
    }

    /// From now on there is a node in the domains that this one is in, or may come to be in.
    fn meet(&mut self, place: usize) {
        for (counter, domain) in self.met_by(place) {
            self.foresee(counter, domain);
        }
    }

    /// From now on there is a node in this domain, or will be.
    pub(super) fn foresee(&mut self, counter: usize, domain: usize) {
        self.late |= self.counts[counter].meet(domain);
    }

    /// What is counted by spread, and the domains in which a new node is or may come to be.
    pub(super) fn met_by(&self, place: usize) -> SmallVec<[(usize, usize); 4]> {
        let mut met = SmallVec::new();
        let Some(node) = self.opened(place) else { return met };
        for (at, counter) in self.world.counters.all.iter().enumerate() {
            if !counter.domains.pools.has(node.pool) {
                continue;
            }
            match self.keys[counter.key].of[place] {
                Domain::Lacking => {}
                Domain::In(domain) => met.push((at, domain)),
                Domain::Undecided => {
                    let options = self.options(counter.key, node.pool, &node.fit);
                    met.extend(options.into_iter().map(|domain| (at, domain)));
                }
            }
        }
        met
    }

    fn open_one(&mut self, pool: usize) -> usize {
        let place = self.places();
        let fit = self.fresh(pool);
        for slot in fit.slots.iter() {
            if let Some(reservation) = self.world.pools[pool].slots[slot].reservation {
                self.reserved[reservation] = self.reserved[reservation].saturating_sub(1);
            }
        }
        if let Some(nodes) = self.left[pool].as_mut().and_then(|it| it.nodes.as_mut()) {
            *nodes -= 1;
        }
        self.ports.push(SmallVec::new());
        self.volumes.push(Vec::new());
        for key in 0..self.keys.len() {
            let domain = self.domain(key, pool, &fit, place);
            self.join(key, place, domain);
        }
        self.open.push(OpenNode {
            pool,
            fit,
            used: SmallVec::from_elem(0, self.world.scale.len()),
            pods: Vec::new(),
            floor: None,
            held: SmallVec::from_elem(0, self.world.pools[pool].limited.len()),
        });
        place
    }

    /// What a new node of the pool can be. Reservations that are spoken for are left out.
    pub(super) fn fresh(&self, pool: usize) -> Fit {
        let template = &self.world.pools[pool];
        let mut fit = template.base.clone();
        let spent =
            |at: &usize| template.slots[*at].reservation.is_some_and(|it| self.reserved[it] == 0);
        for at in template.base.slots.iter().filter(spent) {
            fit.slots.remove(at);
        }
        template.tidy_slots(&mut fit.machines, &mut fit.slots);
        fit
    }

    fn settle(&mut self, kind: usize, pod: usize, place: usize, relaxed: Vec<Preference>) {
        let world = self.world;
        let what = &world.kinds[kind];
        self.ports[place].extend(what.ports.iter().map(|it| world.ports[*it]));
        for (number, _) in &what.volumes {
            if !self.volumes[place].contains(number) {
                self.volumes[place].push(*number);
            }
        }
        self.count_in(kind, place);
        self.placed.push(Step { pod, place, relaxed });
    }

    /// One more of the kind is there.
    pub(super) fn count_in(&mut self, kind: usize, place: usize) {
        let world = self.world;
        for at in &world.kinds[kind].counted_by {
            let counter = &world.counters.all[*at];
            if let Domain::In(domain) = self.keys[counter.key].of[place]
                && self.eligible(counter, place)
            {
                self.count(*at, domain);
            }
        }
    }

    /// A pod of the kind is placed by what is counted in the domains that have nodes, and in no other.
    pub(super) fn venture(&mut self, kind: usize) {
        for check in &self.world.kinds[kind].musts.spreads {
            if self.least(check, Stage::Real) > 0 {
                self.counts[check.counter].ventured = true;
            }
        }
    }

    /// The same nodes, and nobody placed.
    pub(super) fn counting_from(&self, begin: &Self) -> Self {
        Self { counts: begin.counts.clone(), ..self.clone() }
    }

    /// Whether pods on this node count. That was settled when the first of them came.
    fn eligible(&self, counter: &Counter, place: usize) -> bool {
        let What::Spread(_, filter) = &counter.what else { return true };
        let Some(node) = self.opened(place) else { return counter.domains.sites.has(place) };
        counter.domains.pools.has(node.pool)
            && filter.required.is_none_or(|it| {
                let ways = &self.world.required[it].pools[node.pool];
                ways.iter().any(|way| within(&node.fit, way))
            })
    }
}

/// What a new node becomes when a pod is put on it.
#[derive(Debug, Clone)]
pub(super) struct Became {
    pub(super) pool: usize,
    pub(super) fit: Fit,
    pub(super) floor: Option<usize>,
    pub(super) held: Room,
    /// Only because a daemon comes along.
    pub(super) beside: bool,
}

/// Whether a node that can be this must turn out to be that.
pub(super) fn within(fit: &Fit, way: &Fit) -> bool {
    fit.machines.inside(&way.machines)
        && fit.slots.inside(&way.slots)
        && fit.custom.within(&way.custom)
}

/// The one domain that all have, if so.
fn agreed(mut domains: impl Iterator<Item = Option<usize>>) -> Domain {
    let Some(first) = domains.next() else { return Domain::Undecided };
    if domains.any(|it| it != first) {
        return Domain::Undecided;
    }
    first.map_or(Domain::Lacking, Domain::In)
}

impl OpenNode {
    pub(super) fn custom(&self) -> &Requirements {
        &self.fit.custom
    }
}
