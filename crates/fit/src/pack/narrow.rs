//! Could this new node take one more pod, and what would it become?
//!
//! `machines and slots it can be × what the pod asks → those it could still be`
//!
//! A label by which somebody is spread, gathered or kept apart has to be known once a pod is there
//! that is counted by it: only then are the counts right whatever the cloud launches in the end.

use smallvec::{SmallVec, smallvec};

use super::{
    bits::Bits,
    district::Part,
    measure::{Needs, Room},
    search::Sought,
    state::{Became, Domain, OpenNode, State, within},
    template::{Fit, Left, Template},
    topology::{PoolKey, What},
    world::Wished,
};
use crate::requirement::Requirement;

/// Why not, and for how long: the first is the most final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum No {
    /// There is no such room here any more.
    Full,
    /// This kind of pod cannot come here any more.
    Never,
    /// Not as things stand.
    NotNow,
}

type Decided = SmallVec<[usize; 4]>;

/// Machines and slots without those that are both in one of the ways: without its slots, or without its machines.
/// Either is more than need be, and one of them is what a person would choose.
pub(super) fn apart_from(
    ways: &[Fit],
    machines: &Bits,
    slots: &Bits,
) -> SmallVec<[(Bits, Bits); 2]> {
    let others = machines.iter().filter(|it| !ways.iter().any(|way| way.machines.has(*it)));
    let elsewhere = slots.iter().filter(|it| !ways.iter().any(|way| way.slots.has(*it)));
    let mut all = smallvec![(machines.clone(), elsewhere.collect())];
    if !ways.is_empty() {
        all.push((others.collect(), slots.clone()));
    }
    all
}

impl State<'_, '_> {
    /// What one more node of the pool would become.
    pub(super) fn one_more(&self, pool: usize, sought: &Sought<'_>) -> Result<Became, No> {
        let exhausted = |it: &Left| it.nodes.is_some_and(|it| it < 1);
        if self.early || self.left[pool].as_ref().is_some_and(exhausted) {
            return Err(No::NotNow);
        }
        let template = &self.world.pools[pool];
        let node = OpenNode {
            pool,
            fit: self.fresh(pool),
            used: SmallVec::from_elem(0, self.world.scale.len()),
            pods: Vec::new(),
            floor: None,
            held: SmallVec::from_elem(0, template.limited.len()),
        };
        self.becomes(&node, self.places(), &self.room_for(sought, None), sought)
    }

    /// What the open node at this place would become.
    pub(super) fn grown(&self, place: usize, sought: &Sought<'_>) -> Result<Became, No> {
        let node = self.opened(place).ok_or(No::Never)?;
        if self.port_taken(sought.kind, place) {
            return Err(No::Never);
        }
        self.becomes(node, place, &self.room_for(sought, Some(place)), sought)
    }

    fn becomes(
        &self,
        node: &OpenNode,
        place: usize,
        needs: &Needs,
        sought: &Sought<'_>,
    ) -> Result<Became, No> {
        let tolerance = self.world.kinds[sought.kind].tolerance;
        if !self.world.tolerances[tolerance].pools.has(node.pool) {
            return Err(No::Never);
        }
        let mut no = No::Full;
        for part in self.world.pools[node.pool].rooms.parts(&node.fit.slots) {
            match self.becomes_in(&part, node, place, needs, sought) {
                Ok(became) => return Ok(became),
                Err(why) => no = no.max(why),
            }
        }
        Err(no)
    }

    fn becomes_in(
        &self,
        part: &Part<'_>,
        node: &OpenNode,
        place: usize,
        needs: &Needs,
        sought: &Sought<'_>,
    ) -> Result<Became, No> {
        let kind = &self.world.kinds[sought.kind];
        let template = &self.world.pools[node.pool];
        let mut roomy = node.fit.machines.clone();
        for (resource, amount) in needs {
            let total = node.used[*resource].saturating_add(*amount);
            roomy.and(part.at_least(*resource, total).ok_or(No::Full)?);
        }
        if roomy.empty() {
            return Err(No::Full);
        }
        let barred = kind.barred.get(node.pool);
        if let Some(barred) = barred.map(|it| &it.machines).filter(|it| !it.empty()) {
            roomy = roomy.iter().filter(|it| !barred.has(*it)).collect();
        }
        let mut no = No::Never;
        if let Some(left) = &self.left[node.pool]
            && !template.takes_most().iter().zip(&left.room).all(|(most, left)| most <= left)
        {
            let affordable = |machine: &usize| {
                let takes = template.takes[*machine].iter();
                let rest = left.room.iter().zip(&node.held);
                takes.zip(rest).all(|(it, (left, had))| *it <= left + had)
            };
            let within_limits: Bits = roomy.iter().filter(affordable).collect();
            if within_limits != roomy {
                // Other nodes may turn out smaller than they could be, and give back what they held.
                no = No::NotNow;
            }
            roomy = within_limits;
        }
        let ways = self.world.ways(sought.kind, node.pool);
        let parts = barred
            .filter(|it| !it.somewhere.is_empty())
            .map(|it| apart_from(&it.somewhere, &roomy, &part.slots));
        let from: SmallVec<[(&Bits, &Bits); 2]> = match &parts {
            None => smallvec![(&roomy, part.slots.as_ref())],
            Some(parts) => parts.iter().map(|(machines, slots)| (machines, slots)).collect(),
        };
        let from = ways.iter().flat_map(|way| from.iter().map(move |it| (way, *it)));
        for (way, (roomy, slots)) in from {
            let Some(fit) = self.within_way(node, roomy, slots, way, template) else { continue };
            // From here on it may be otherwise another time.
            no = No::NotNow;
            let brings = kind.brings.get(node.pool).filter(|it| !it.is_empty());
            let again = brings.map(|it| (it, fit.clone()));
            if let Some(became) = self.would_be(fit, node, place, sought) {
                return Ok(became);
            }
            let Some((brings, fit)) = again else { continue };
            for brings in brings {
                let (mut fit, beside) = (fit.clone(), Sought { beside: true, ..*sought });
                if self.intersect(&mut fit, brings, template)
                    && let Some(became) = self.would_be(fit, node, place, &beside)
                {
                    return Ok(Became { beside: true, ..became });
                }
            }
        }
        Err(no)
    }

    fn would_be(
        &self,
        fit: Fit,
        node: &OpenNode,
        place: usize,
        sought: &Sought<'_>,
    ) -> Option<Became> {
        let fit = self.with_wishes(fit, node.pool, sought)?;
        let fit = self.decide(fit, node.pool, place, sought, &mut Decided::new())?;
        let fit = self.sparing(fit, node.pool);
        self.afford(self.clear_filters(fit, node.pool, sought), node)
    }

    /// Not in a domain that is spared, where there are others: whoever is on it, others who are spread would have to reckon
    /// with a domain that has none of them.
    fn sparing(&self, mut fit: Fit, pool: usize) -> Fit {
        for (key, spared) in &self.spared {
            let PoolKey::BySlot(domains) = &self.world.keys[*key].by_pool[pool] else { continue };
            let elsewhere = |at: &usize| domains[*at] != Some(*spared);
            let mut narrower =
                Fit { slots: fit.slots.iter().filter(elsewhere).collect(), ..fit.clone() };
            let Fit { machines, slots, .. } = &mut narrower;
            if !slots.empty() && self.world.pools[pool].tidy_slots(machines, slots) {
                fit = narrower;
            }
        }
        fit
    }

    fn within_way(
        &self,
        node: &OpenNode,
        roomy: &Bits,
        slots: &Bits,
        way: &Fit,
        template: &Template<'_>,
    ) -> Option<Fit> {
        let mut fit =
            Fit { machines: roomy.clone(), slots: slots.clone(), custom: node.fit.custom.clone() };
        self.intersect(&mut fit, way, template).then_some(fit)
    }

    /// Narrow to what both can be. Whether anything remains.
    pub(super) fn intersect(&self, fit: &mut Fit, way: &Fit, template: &Template<'_>) -> bool {
        fit.machines.and(&way.machines);
        fit.slots.and(&way.slots);
        if way.custom == template.base.custom || way.custom == fit.custom {
            return template.tidy_slots(&mut fit.machines, &mut fit.slots);
        }
        fit.custom = fit.custom.intersect(&way.custom);
        !fit.custom.nothing() && template.tidy(fit, &self.world.vocabulary)
    }

    fn with_wishes(&self, mut fit: Fit, pool: usize, sought: &Sought<'_>) -> Option<Fit> {
        let kind = &self.world.kinds[sought.kind];
        for wish in sought.wishes.iter().map(|at| &kind.wishes[*at]) {
            let met = match &wish.what {
                Wished::Untainted => self.world.tolerances[kind.tolerance].pools_gladly.has(pool),
                Wished::Checks(_) => true,
                Wished::Nodes { sites: _, pools } => pools[pool]
                    .as_ref()
                    .is_some_and(|way| self.intersect(&mut fit, way, &self.world.pools[pool])),
            };
            if !met {
                return None;
            }
        }
        Some(fit)
    }

    /// Choose a domain for every label that has to be known, the emptiest first.
    fn decide(
        &self,
        fit: Fit,
        pool: usize,
        place: usize,
        sought: &Sought<'_>,
        decided: &mut Decided,
    ) -> Option<Fit> {
        let open = |key: &usize| !decided.contains(key);
        let Some(key) = sought.keys(self.world).find(open) else { return Some(fit) };
        let spared = |domain| matches!(domain, Domain::In(it) if self.spared.contains(&(key, it)));
        let allowed = |domain| !spared(domain) && self.suits(sought, key, domain);
        let domain = self.domain(key, pool, &fit, place);
        if domain != Domain::Undecided {
            if !allowed(domain) {
                return None;
            }
            decided.push(key);
            let found = self.decide(fit, pool, place, sought, decided);
            decided.pop();
            return found;
        }
        let mut options = self.options(key, pool, &fit);
        if options.is_empty() {
            // Nobody can say what it will be, so it is no place for who has to know.
            if !allowed(Domain::Lacking) {
                return None;
            }
            decided.push(key);
            let found = self.decide(fit, pool, place, sought, decided);
            decided.pop();
            return found;
        }
        options.retain(|it| allowed(Domain::In(*it)));
        options.sort_by_cached_key(|domain| (self.crowd(key, *domain, sought), *domain));
        decided.push(key);
        for domain in options {
            let found = self
                .pin(&fit, key, domain, pool)
                .and_then(|it| self.decide(it, pool, place, sought, decided));
            if found.is_some() {
                return found;
            }
        }
        decided.pop();
        None
    }

    /// How many are there already, of those among whom the pod wants to be spread; then of those
    /// who are spread and count it.
    fn crowd(&self, key: usize, domain: usize, sought: &Sought<'_>) -> (u32, u32) {
        let of_key = |at: &usize| self.world.counters.all[*at].key == key;
        let spreads = sought.checks(self.world).flat_map(|it| &it.spreads).map(|it| it.counter);
        let own = spreads.filter(of_key).map(|it| self.counts[it].of(domain)).sum();
        let counted_by = &self.world.kinds[sought.kind].counted_by;
        let spread = |at: &usize| matches!(self.world.counters.all[*at].what, What::Spread(..));
        let others = counted_by.iter().copied().filter(of_key).filter(spread);
        (own, others.map(|it| self.counts[it].of(domain)).sum())
    }

    fn pin(&self, fit: &Fit, key: usize, domain: usize, pool: usize) -> Option<Fit> {
        let template = &self.world.pools[pool];
        let mut fit = fit.clone();
        match &self.world.keys[key].by_pool[pool] {
            PoolKey::EachItsOwn | PoolKey::Absent | PoolKey::Fixed(_) => return Some(fit),
            PoolKey::BySlot(domains) => {
                fit.slots = fit.slots.iter().filter(|at| domains[*at] == Some(domain)).collect();
            }
            PoolKey::ByMachine(domains) => {
                fit.machines =
                    fit.machines.iter().filter(|at| domains[*at] == Some(domain)).collect();
            }
            PoolKey::Custom { key, values } => {
                let (value, _) = values.iter().find(|(_, it)| *it == domain)?;
                fit.custom.add(*key, &Requirement::exactly(*value));
                return template.tidy(&mut fit, &self.world.vocabulary).then_some(fit);
            }
        }
        template.tidy_slots(&mut fit.machines, &mut fit.slots).then_some(fit)
    }

    /// Whether the node counts for those who are spread must not stay open either: make it so, or let
    /// it be known that it cannot be.
    fn clear_filters(&self, mut fit: Fit, pool: usize, sought: &Sought<'_>) -> Fit {
        let kind = &self.world.kinds[sought.kind];
        for at in &kind.counted_by {
            let counter = &self.world.counters.all[*at];
            let What::Spread(_, filter) = &counter.what else { continue };
            let Some(required) = filter.required.filter(|it| *it != kind.required) else {
                continue;
            };
            if !counter.hard || !counter.domains.pools.has(pool) {
                continue;
            }
            let ways = &self.world.required[required].pools[pool];
            if ways.iter().any(|way| within(&fit, way)) {
                continue;
            }
            for way in ways {
                let mut narrower = fit.clone();
                if self.intersect(&mut narrower, way, &self.world.pools[pool]) {
                    fit = narrower;
                    break;
                }
            }
        }
        fit
    }

    /// What it takes of the pool's limits, if as many different machines remain as the pool demands.
    fn afford(&self, fit: Fit, node: &OpenNode) -> Option<Became> {
        let template = &self.world.pools[node.pool];
        let (mut floor, mut held) = (None, Room::new());
        if self.left[node.pool].is_some() {
            if template.min_values.is_empty() {
                let same = node.floor.filter(|it| fit.machines.has(*it));
                let least = || template.by_size.iter().copied().find(|it| fit.machines.has(*it));
                floor = same.or_else(least);
                held = floor.map(|it| template.takes[it].clone())?;
            } else {
                held = template.most_taken(&fit.machines);
            }
        }
        let short = |it: &_| template.different(it, &fit.machines) < it.need;
        if template.min_values.iter().any(short) {
            return None;
        }
        Some(Became { pool: node.pool, fit, floor, held, beside: false })
    }
}
