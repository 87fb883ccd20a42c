//! What keeps one more node of a pool from being launched for this pod?
//!
//! `kind of pod × what the pool could launch → everything that is in the way, one behind the other`
//!
//! Whatever is found is taken for lifted, and the next thing is looked for: somebody who has tolerated the taint, only to be told
//! then that the limit is reached, was told half. Of the ways in which a node could be launched, that with the least in the way.

use std::collections::BTreeSet;

use super::{
    answer::Obstacle,
    bits::Bits,
    measure::{Needs, PODS_AT, Room},
    miss::{by_topology, distance, elsewhere, short, taints, weight},
    narrow::apart_from,
    search::Sought,
    state::{Domain, Stage, State},
    template::{Fit, Left, Source, Template},
    world::{Hoped, avoided_within},
};
use crate::{
    capacity::Amounts,
    pod::{Demand, Volume},
    pool::NODES,
    quantity::Quantity,
    requirement::Written,
    selector::{NodeTerm, equal},
};

/// More ways than these are not followed to their end; of those that are, the ones with the least in the way.
const WAYS_MAX: usize = 64;
/// A domain that nobody is in yet: of a node that is still to come.
const NEW_DOMAIN: usize = usize::MAX;
/// How much nearer it must be if there were capacity, so that capacity is what is lacking.
const WORTH_OF_CAPACITY: u32 = 2;

/// What could be launched, from the point of view of one kind of pod.
struct Prospect<'p, 'w, 'a> {
    state: &'p State<'w, 'a>,
    kind: usize,
    template: &'p Template<'a>,
    /// What one more node could be.
    fresh: Fit,
    left: Option<&'p Left>,
    /// In which ways it would bring along a daemon that the pod must be near.
    brings: &'p [Fit],
}

/// A way that is followed: what the node would be, and what was in the way so far.
#[derive(Debug, Clone)]
struct Followed {
    fit: Fit,
    told: Vec<Obstacle>,
}

pub(super) fn at_pool(state: &State<'_, '_>, kind: usize, pool: usize) -> Vec<Obstacle> {
    let world = state.world;
    let sought =
        Sought { kind, wishes: &[], stage: Stage::Real, beside: false, company: &[], shun: &[] };
    if state.one_more(pool, &sought).is_ok() {
        return Vec::new();
    }
    let together = too_large_together(state, kind, pool);
    if !together.is_empty() {
        return together;
    }
    let template = &world.pools[pool];
    let brings = world.kinds[kind].brings.get(pool).map_or(&[][..], Vec::as_slice);
    let (fresh, left) = (state.fresh(pool), state.left[pool].as_ref());
    let mut now = Prospect { state, kind, template, fresh, left, brings }.obstacles();
    if now.is_empty() {
        now.push(Obstacle::NoSuchMachine);
    }
    // Where less would be in the way if there were capacity of all that is offered, or an image for it, that is what is
    // lacking.
    for Hoped { template, lacks } in world.hoped(pool) {
        let fresh = template.base.clone();
        let mut then = Prospect { state, kind, template, fresh, left, brings: &[] }.obstacles();
        if then.len() < now.len() && weight(&then) + WORTH_OF_CAPACITY <= weight(&now) {
            then.push(lacks.clone());
            return then;
        }
    }
    now
}

/// Where those whom the pod must be near are on a node that is to come: what all of them need together, if no machine has that
/// much. Another node would not help, and nobody can be in two places.
fn too_large_together(state: &State<'_, '_>, kind: usize, pool: usize) -> Vec<Obstacle> {
    let world = state.world;
    let near = world.kinds[kind].musts.near.iter().copied();
    let near: Vec<usize> =
        near.filter(|it| world.keys[world.counters.all[*it].key].fine()).collect();
    let there = |place: usize, at: &usize| {
        let domain = state.keys[world.counters.all[*at].key].of.get(place);
        matches!(domain, Some(Domain::In(domain)) if state.counts[*at].of(*domain) > 0)
    };
    let mut opened = (world.sites.len()..state.places()).filter(|_| !near.is_empty());
    let begun = opened.find_map(|place| {
        let node = state.opened(place).filter(|it| it.pool == pool)?;
        near.iter().all(|it| there(place, it)).then_some(node)
    });
    let Some(begun) = begun else { return Vec::new() };
    let placed: BTreeSet<usize> = state.placed.iter().map(|it| it.pod).collect();
    let (mut pods, mut needs) = (0, Room::from_elem(0, world.scale.len()));
    for other in &world.kinds {
        let meant = near.iter().all(|it| other.counted_by.contains(it));
        let follows = near.iter().any(|it| other.musts.near.contains(it));
        let here = |it: &&usize| {
            (meant || follows) && begun.pods.contains(it) || follows && !placed.contains(it)
        };
        let many = other.pods.iter().filter(here).count();
        pods += many;
        let many = i64::try_from(many).unwrap_or(i64::MAX);
        for (place, need) in &other.needs {
            needs[*place] = needs[*place].saturating_add(need.saturating_mul(many));
        }
    }
    let amounts = needs.iter().enumerate().filter(|(place, need)| {
        **need > 0 && *place != PODS_AT && !world.scale.counts_volumes(*place)
    });
    let requests: Amounts = amounts
        .clone()
        .map(|(at, need)| (world.scale.name(at).to_owned(), world.scale.quantity(at, *need)))
        .collect();
    let over = amounts.filter_map(|(place, need)| {
        let by = need.saturating_sub(world.pools[pool].rooms.most(place));
        let resource = world.scale.name(place).to_owned();
        let (by, requests) = (Some(by).filter(|it| *it > 0)?, requests.clone());
        let by = world.scale.quantity(place, by);
        Some(Obstacle::TooLargeTogether { pods, requests, resource, by })
    });
    over.collect()
}

/// What keeps a pool from launching a node for this pod that launches none at all.
pub(super) fn at_idle<'a>(
    state: &State<'_, 'a>,
    kind: usize,
    Hoped { template, lacks }: &Hoped<'a>,
) -> Vec<Obstacle> {
    let why = template.pool.idle.clone().map_or_else(|| lacks.clone(), Obstacle::Idle);
    // Nobody knows what it would launch.
    let mut obstacles = if template.machines.is_empty() {
        taints(&template.pool.taints, state.world.kinds[kind].demand)
    } else {
        let (fresh, left) = (template.base.clone(), template.left.as_ref());
        Prospect { state, kind, template, fresh, left, brings: &[] }.obstacles()
    };
    obstacles.push(why);
    obstacles
}

impl Prospect<'_, '_, '_> {
    fn demand(&self) -> &Demand {
        self.state.world.kinds[self.kind].demand
    }

    fn obstacles(&self) -> Vec<Obstacle> {
        let mut told = taints(&self.template.pool.taints, self.demand());
        let ways = self.labelled(&mut told);
        let ways = self.reaching(ways, &mut told);
        let needs = self.needs(&mut told);
        let fits = self.roomy(&ways, &needs, &mut told);
        let fits = self.without_daemons(fits, &mut told);
        let ends = self.in_domains(fits).into_iter().map(|it| {
            let Followed { fit, mut told } = it;
            told.extend(self.limits(&fit));
            told.extend(self.too_few(&fit));
            told
        });
        let least = ends.min_by_key(|it| (distance(self.state, self.kind, it), it.clone()));
        told.extend(least.unwrap_or_default());
        told
    }

    /// In which ways a node has the labels that the pod asks for.
    fn labelled(&self, told: &mut Vec<Obstacle>) -> Vec<Fit> {
        let (template, vocabulary) = (self.template, &self.state.world.vocabulary);
        let Demand { node_selector: selector, node_terms: terms, .. } = self.demand();
        let ways = template.fits(selector, terms.as_deref(), vocabulary);
        if !ways.is_empty() {
            return ways;
        }
        let vain = |it: &Written| {
            let term = NodeTerm::labels(vec![it.clone()]);
            template.term(&template.base, &term, vocabulary).is_none()
        };
        let selector = selector.iter().map(|(key, value)| equal(key, value));
        let (mut lacking, mut met): (Vec<Written>, Vec<Written>) = selector.partition(vain);
        // Of the term that lacks least, what it lacks. One that asks nothing admits no node, whatever that node has.
        let asking = terms.iter().flatten();
        let asking = asking.filter(|it| !it.labels.is_empty() || !it.fields.is_empty());
        let lacks = asking.map(|term| {
            let (mut lacking, met): (Vec<_>, Vec<_>) = term.labels.iter().cloned().partition(vain);
            lacking.extend(term.fields.iter().cloned());
            (lacking, met)
        });
        if let Some((lacks, rest)) = lacks.min_by_key(|(lacking, _)| lacking.len()) {
            lacking.extend(lacks);
            met.extend(rest);
        }
        if lacking.is_empty() {
            told.push(Obstacle::NoSuchMachine);
            return vec![template.base.clone()];
        }
        told.extend(lacking.into_iter().map(|it| {
            let allowed = template.allows(&it, vocabulary);
            if allowed { Obstacle::NotOffered(it) } else { Obstacle::Label(it) }
        }));
        if met.is_empty() {
            return vec![template.base.clone()];
        }
        let rest = template.term(&template.base, &NodeTerm::labels(met), vocabulary);
        if rest.is_none() {
            told.push(Obstacle::NoSuchMachine);
        }
        vec![rest.unwrap_or_else(|| template.base.clone())]
    }

    /// In which of them it reaches the pod's volumes.
    fn reaching(&self, ways: Vec<Fit>, told: &mut Vec<Obstacle>) -> Vec<Fit> {
        let volumes = &self.demand().volumes;
        let within = |ways: &[Fit], reach: &[NodeTerm]| -> Vec<Fit> {
            let vocabulary = &self.state.world.vocabulary;
            let terms =
                |from| reach.iter().filter_map(move |it| self.template.term(from, it, vocabulary));
            ways.iter().flat_map(terms).take(WAYS_MAX).collect()
        };
        let reaching = |it: &&Volume| it.reach.is_some();
        let mut all = ways.clone();
        for reach in volumes.iter().filter_map(|it| it.reach.as_deref()) {
            all = within(&all, reach);
        }
        if !all.is_empty() {
            return all;
        }
        let missed =
            |it: &&Volume| it.reach.as_deref().is_some_and(|it| within(&ways, it).is_empty());
        if !volumes.iter().any(|it| missed(&it)) {
            told.extend(elsewhere(volumes.iter().filter(reaching), volumes));
            return ways;
        }
        told.extend(elsewhere(volumes.iter().filter(missed), volumes));
        let mut others = ways.clone();
        for volume in volumes.iter().filter(|it| !missed(it)) {
            if let Some(reach) = volume.reach.as_deref() {
                others = within(&others, reach);
            }
        }
        if others.is_empty() { ways } else { others }
    }

    /// What the pod needs, as far as any machine has it.
    fn needs(&self, told: &mut Vec<Obstacle>) -> Needs {
        let mut needs = self.state.needs(self.kind, None);
        for (place, need) in &mut needs {
            let most = self.template.rooms.most(*place);
            if most < *need {
                told.push(short(&self.state.world.scale, *place, need.saturating_sub(most)));
                *need = most;
            }
        }
        needs
    }

    /// Machines that have the room, bought where the pod may go.
    fn roomy(&self, ways: &[Fit], needs: &Needs, told: &mut Vec<Obstacle>) -> Vec<Fit> {
        let template = self.template;
        let within = |from: &Fit| -> Vec<Fit> {
            let narrowed = ways.iter().map(|way| {
                let mut fit = from.clone();
                self.state.intersect(&mut fit, way, template).then_some(fit)
            });
            narrowed.flatten().collect()
        };
        let open = within(&self.fresh);
        let mut fits = Vec::new();
        for fit in &open {
            for part in template.rooms.parts(&fit.slots) {
                let mut fit = Fit { slots: part.slots.as_ref().clone(), ..fit.clone() };
                for (place, need) in needs {
                    match part.at_least(*place, *need) {
                        Some(roomy) => fit.machines.and(roomy),
                        None => fit.machines.clear(),
                    }
                }
                if template.tidy_slots(&mut fit.machines, &mut fit.slots) {
                    fits.push(fit);
                }
            }
        }
        if !fits.is_empty() {
            return fits;
        }
        if !told.contains(&Obstacle::NoSuchMachine) {
            told.push(if open.is_empty() { Obstacle::NoCapacity } else { Obstacle::NoSuchMachine });
        }
        if open.is_empty() { within(&template.base) } else { open }
    }

    /// Those that would not get a daemon that does not go together with the pod.
    fn without_daemons(&self, fits: Vec<Fit>, told: &mut Vec<Obstacle>) -> Vec<Fit> {
        let what = &self.state.world.kinds[self.kind];
        let barred = self.state.world.barred_in(self.template, what.namespace, what.demand);
        let clear = |fit: &Fit| {
            let machines: Bits =
                fit.machines.iter().filter(|it| !barred.machines.has(*it)).collect();
            let parts = apart_from(&barred.somewhere, &machines, &fit.slots).into_iter();
            let custom = fit.custom.clone();
            let fits =
                parts.map(move |(machines, slots)| Fit { machines, slots, custom: custom.clone() });
            fits.filter(|it| {
                let (mut machines, mut slots) = (it.machines.clone(), it.slots.clone());
                self.template.tidy_slots(&mut machines, &mut slots)
            })
            .collect::<Vec<_>>()
        };
        let all: Vec<Fit> = fits.iter().flat_map(clear).collect();
        if !all.is_empty() || fits.is_empty() {
            return all;
        }
        told.extend(self.daemons_in_the_way());
        fits
    }

    /// What the pod and daemons cannot share.
    fn daemons_in_the_way(&self) -> Vec<Obstacle> {
        let world = self.state.world;
        let what = &world.kinds[self.kind];
        let mut told = Vec::new();
        for daemon in &self.template.pool.daemons {
            if self.template.ways_to_host(&daemon.demand, &world.vocabulary).is_empty() {
                continue;
            }
            let taken = &daemon.demand.host_ports;
            let ports = what.demand.host_ports.iter();
            let ports = ports.filter(|port| taken.iter().any(|it| it.conflicts(port)));
            told.extend(ports.cloned().map(Obstacle::HostPortTaken));
            let (own, theirs) = (what.namespace, &*daemon.namespace);
            let avoided = avoided_within((own, what.demand), (theirs, &daemon.demand.labels));
            let who = Some(daemon.id());
            told.extend(
                avoided.map(|key| Obstacle::TooNear { key: key.clone(), who: who.clone() }),
            );
            let avoiding = avoided_within((theirs, &daemon.demand), (own, &what.demand.labels));
            told.extend(
                avoiding.map(|key| Obstacle::Unwelcome { key: key.clone(), who: who.clone() }),
            );
        }
        told.sort_unstable();
        told.dedup();
        if told.is_empty() {
            told.push(Obstacle::NoSuchMachine);
        }
        told
    }

    /// What is in the way in each of the domains in which a node could be, by all labels that have to be known.
    fn in_domains(&self, fits: Vec<Fit>) -> Vec<Followed> {
        let what = &self.state.world.kinds[self.kind];
        let mut all: Vec<Followed> =
            fits.into_iter().map(|fit| Followed { fit, told: Vec::new() }).collect();
        for key in &what.decides {
            let mut next = Vec::new();
            for Followed { fit, told } in all {
                let brought =
                    |way: &Fit| self.state.intersect(&mut fit.clone(), way, self.template);
                let beside = self.brings.iter().any(brought);
                let checks = if beside { &what.musts_beside } else { &what.musts };
                for (domain, fit) in self.options(*key, &fit) {
                    let mut told = told.clone();
                    told.extend(by_topology(self.state, checks, *key, domain));
                    next.push(Followed { fit, told });
                }
            }
            next.sort_by_cached_key(|it| distance(self.state, self.kind, &it.told));
            next.truncate(WAYS_MAX);
            all = next;
        }
        all
    }

    /// The domains that a node could be in, and what it would be there.
    fn options(&self, key: usize, fit: &Fit) -> Vec<(Domain, Fit)> {
        let world = self.state.world;
        let (key, vocabulary) = (&world.keys[key], &world.vocabulary);
        let values = match self.template.source(&key.text, vocabulary) {
            Source::EachItsOwn => return vec![(Domain::In(NEW_DOMAIN), fit.clone())],
            Source::Absent => return vec![(Domain::Lacking, fit.clone())],
            Source::Fixed(_) | Source::BySlot | Source::ByMachine | Source::Custom => {
                self.template.values_within(fit, &key.text, vocabulary)
            }
        };
        let pinned = |value: &String| {
            let term = NodeTerm::labels(vec![equal(&key.text, value)]);
            let fit = self.template.term(fit, &term, vocabulary)?;
            Some((Domain::In(key.find(value).unwrap_or(NEW_DOMAIN)), fit))
        };
        let all: Vec<(Domain, Fit)> = values.iter().filter_map(pinned).collect();
        // Nobody can say what it will be, so it is no place for who has to know.
        if all.is_empty() { vec![(Domain::Lacking, fit.clone())] } else { all }
    }

    /// How much higher the pool's limits would have to be.
    fn limits(&self, fit: &Fit) -> Vec<Obstacle> {
        let Some(left) = self.left else { return Vec::new() };
        let mut told = Vec::new();
        if let Some(nodes) = left.nodes.filter(|it| *it < 1) {
            let by = Quantity::from_units(1 - nodes);
            told.push(Obstacle::PoolLimit { resource: NODES.to_owned(), by });
        }
        told.extend(self.takes_beyond(fit));
        told
    }

    /// By how much a node that can be this exceeds what is left of amounts.
    fn takes_beyond(&self, fit: &Fit) -> Vec<Obstacle> {
        let (template, scale) = (self.template, &self.state.world.scale);
        let Some(left) = self.left else { return Vec::new() };
        let takes = self.takes_least(fit);
        let over = takes.iter().zip(&left.room).map(|(takes, left)| takes.saturating_sub(*left));
        let over = template.limited.iter().zip(over).filter(|(_, by)| *by > 0);
        over.map(|(resource, by)| {
            let by = scale.quantity(scale.place(resource).unwrap_or(usize::MAX), by);
            Obstacle::PoolLimit { resource: resource.clone(), by }
        })
        .collect()
    }

    /// What a node that can be this takes at least: of its smallest machine, or of as many as the pool demands.
    fn takes_least(&self, fit: &Fit) -> Room {
        let template = self.template;
        if template.min_values.is_empty() {
            let could_be = template.by_size.iter().filter(|it| fit.machines.has(**it));
            // Of all limits together: the least of processors may be the most of memory.
            let least = could_be.min_by_key(|it| self.beyond(&template.takes[**it]));
            return least.map(|it| template.takes[*it].clone()).unwrap_or_default();
        }
        let mut smallest = Bits::default();
        for machine in template.by_size.iter().copied().filter(|it| fit.machines.has(*it)) {
            smallest.insert(machine);
            let enough = |it: &_| {
                let most = template.different(it, &fit.machines);
                template.different(it, &smallest) >= it.need.min(most)
            };
            if template.min_values.iter().all(enough) {
                break;
            }
        }
        template.most_taken(&smallest)
    }

    /// How many limits are exceeded, and by how much in thousandths of what is taken.
    fn beyond(&self, takes: &Room) -> (usize, i128) {
        let room = self.left.map(|it| &it.room).into_iter().flatten();
        let over = takes.iter().zip(room).filter(|(takes, left)| takes > left);
        over.fold((0, 0), |(many, sum), (takes, left)| {
            let by = i128::from(*takes) - i128::from(*left);
            (many + 1, sum + by.saturating_mul(1000) / i128::from(*takes).max(1))
        })
    }

    /// Fewer different machines than the pool demands.
    fn too_few(&self, fit: &Fit) -> Vec<Obstacle> {
        let short = self.template.min_values.iter().filter_map(|it| {
            let have = self.template.different(it, &fit.machines);
            let (key, need) = (it.key.clone(), it.need);
            (have < need).then_some(Obstacle::MinValues { key, have, need })
        });
        short.collect()
    }
}
