//! Where does this pod go?
//!
//! `kind of pod × state → a place, and the preferences that it does not meet`
//!
//! Nodes that exist come first: the scheduler will use them the moment the pod is pending, whatever
//! the pod would like better. Then the nodes that were opened, then one more; and for who shall not move
//! twice, nodes that are to be replaced themselves come last. All preferences are
//! asked for at once; where that cannot be had, each is taken up in the order of importance and given
//! up if no place meets it together with those kept before.

use smallvec::SmallVec;

use super::{
    answer::Preference,
    bits::{Bits, first, start, words},
    company::Company,
    measure::Needs,
    narrow::No,
    state::{Became, Domain, Stage, State},
    world::{Checks, Wished, World},
};

/// Room that is kept for who comes after, and domains that are passed over.
type Beside<'s> = (&'s [(usize, i64)], &'s [(usize, usize)]);

/// What a place must have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sought<'s> {
    pub(super) kind: usize,
    /// Preferences that are asked for, too: places in the kind's list.
    pub(super) wishes: &'s [usize],
    pub(super) stage: Stage,
    /// On a node that brings along a daemon that the pod must be near.
    pub(super) beside: bool,
    /// Room for those who have to follow it onto the same node.
    pub(super) company: &'s [(usize, i64)],
    /// Labels, and their domains where those who have to follow it would not find a place.
    pub(super) shun: &'s [(usize, usize)],
}

#[derive(Debug)]
pub(super) enum Found {
    Site(usize),
    Open(usize, Became),
    OneMore(Became),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All nodes that exist.
    Sites,
    /// Those that are not to be replaced, and those that are.
    Lasting,
    Fading,
    NewNodes,
}

/// A condition on places, a word at a time.
enum Mask<'s> {
    Not(&'s Bits),
    Only(&'s Bits),
    Either(&'s Bits, &'s Bits),
    AnyOf(SmallVec<[&'s Bits; 4]>, &'s Bits),
}

type Masks<'s> = SmallVec<[Mask<'s>; 12]>;

impl<'s> Sought<'s> {
    pub(super) fn checks<'w>(&self, world: &'w World<'_>) -> impl Iterator<Item = &'w Checks>
    where
        's: 'w,
    {
        let kind = &world.kinds[self.kind];
        let wished = self.wishes.iter().filter_map(|at| match &kind.wishes[*at].what {
            Wished::Checks(checks) => Some(checks),
            Wished::Untainted | Wished::Nodes { .. } => None,
        });
        let musts = if self.beside { &kind.musts_beside } else { &kind.musts };
        std::iter::once(musts).chain(wished)
    }

    /// The labels that a node's domain must be known of.
    pub(super) fn keys<'w>(&self, world: &'w World<'_>) -> impl Iterator<Item = usize>
    where
        's: 'w,
    {
        let kind = &world.kinds[self.kind];
        let of_wishes = self.checks(world).skip(1).flat_map(|it| {
            let spreads = it.spreads.iter().map(|it| it.counter);
            it.away.iter().chain(&it.near).copied().chain(spreads)
        });
        kind.decides.iter().copied().chain(of_wishes.map(|it| world.counters.all[it].key))
    }
}

impl State<'_, '_> {
    /// Find a place for one pod of the kind and put it there. Whether there was one.
    pub(super) fn place(
        &mut self,
        kind: usize,
        pod: usize,
        stage: Stage,
        company: Company,
    ) -> bool {
        let Some((found, relaxed)) = self.look_around(kind, stage, company) else { return false };
        if stage == Stage::Real || matches!(found, Found::Site(_)) {
            self.venture(kind);
        }
        match found {
            Found::Site(place) => self.put(kind, pod, place, relaxed),
            Found::Open(place, became) => self.put_new(kind, pod, Some(place), became, relaxed),
            Found::OneMore(became) => self.put_new(kind, pod, None, became, relaxed),
        }
        true
    }

    /// Where all of its company finds a place, too; else half of it, and so on.
    fn look_around(
        &mut self,
        kind: usize,
        stage: Stage,
        company: Company,
    ) -> Option<(Found, Vec<Preference>)> {
        let alone = self.anywhere(kind, stage, &[], &[])?;
        let Company { mut needs, shun } = company;
        while !needs.is_empty() {
            let found = self.anywhere(kind, stage, &needs, &shun);
            if found.is_some() {
                return found;
            }
            needs.iter_mut().for_each(|(_, amount)| *amount /= 2);
            needs.retain(|(_, amount)| *amount > 0);
        }
        let apart = (!shun.is_empty()).then(|| self.anywhere(kind, stage, &[], &shun)).flatten();
        apart.or(Some(alone))
    }

    fn anywhere(
        &mut self,
        kind: usize,
        stage: Stage,
        company: &[(usize, i64)],
        shun: &[(usize, usize)],
    ) -> Option<(Found, Vec<Preference>)> {
        let beside = (company, shun);
        let fading = self.world.lasting < self.world.sites.len();
        if !(fading && self.world.kinds[kind].moves_once) {
            let scopes = [Scope::Sites, Scope::NewNodes];
            return scopes.iter().find_map(|scope| self.best(kind, stage, *scope, beside));
        }
        let scopes = [Scope::Lasting, Scope::NewNodes];
        let found = scopes.iter().find_map(|scope| self.best(kind, stage, *scope, beside));
        // For whom there is a new node once less is asked of it waits for that.
        let waits = |state: &mut Self| {
            stage == Stage::Hopeful
                && state.best(kind, Stage::Real, Scope::NewNodes, beside).is_some()
        };
        if found.is_some() || waits(self) {
            return found;
        }
        self.best(kind, stage, Scope::Fading, beside)
    }

    /// The place that meets the most important preferences.
    fn best(
        &mut self,
        kind: usize,
        stage: Stage,
        scope: Scope,
        (company, shun): Beside<'_>,
    ) -> Option<(Found, Vec<Preference>)> {
        let wishes = &self.world.kinds[kind].wishes;
        // On nodes that exist the scheduler decides, and it sees nodes, not what could be launched.
        let stage = if scope == Scope::NewNodes { stage } else { Stage::Real };
        let none = Sought { kind, wishes: &[], stage, beside: false, company, shun };
        if wishes.is_empty() {
            return self.find(&none, scope, true).map(|it| (it, Vec::new()));
        }
        let all: SmallVec<[usize; 8]> = (0..wishes.len()).collect();
        let worth = wishes.iter().all(|it| it.worth_a_node);
        if let Some(found) = self.find(&Sought { wishes: &all, ..none }, scope, worth) {
            return Some((found, Vec::new()));
        }
        let mut best = self.find(&none, scope, true)?;
        let mut kept: SmallVec<[usize; 8]> = SmallVec::new();
        for at in all.iter().copied().filter(|_| wishes.len() > 1) {
            kept.push(at);
            let sought = Sought { wishes: &kept, ..none };
            match self.find(&sought, scope, wishes[at].worth_a_node) {
                Some(found) => best = found,
                None => {
                    kept.pop();
                }
            }
        }
        let lost = all.iter().filter(|it| !kept.contains(it)).map(|at| wishes[*at].preference);
        Some((best, lost.collect()))
    }

    fn find(&mut self, sought: &Sought<'_>, scope: Scope, may_open: bool) -> Option<Found> {
        for checks in sought.checks(self.world) {
            self.prepare(checks, sought.stage);
        }
        let sites = self.world.sites.len();
        let (mut from, to) = match scope {
            Scope::Sites => (0, sites),
            Scope::Lasting => (0, self.world.lasting),
            Scope::Fading => (self.world.lasting, sites),
            Scope::NewNodes => (sites, self.places()),
        };
        while let Some(place) = self.next(sought, scope, from, to) {
            let found = match scope {
                Scope::Sites | Scope::Lasting | Scope::Fading => {
                    self.hosts(place, sought).map(|()| Found::Site(place))
                }
                Scope::NewNodes => self.grown(place, sought).map(|it| Found::Open(place, it)),
            };
            match found {
                Ok(found) => return Some(found),
                // Alone it may have room.
                Err(_) if !sought.company.is_empty() => {}
                // Not of a pod with volumes, whose needs depend on the node.
                Err(No::Full) if self.world.kinds[sought.kind].volumes.is_empty() => {
                    self.full[self.world.kinds[sought.kind].needs_at].insert(place);
                }
                Err(No::Never) => self.never[sought.kind].insert(place),
                Err(No::Full | No::NotNow) => {}
            }
            from = place + 1;
        }
        if scope != Scope::NewNodes || !may_open {
            return None;
        }
        (self.world.pools_for(sought.kind))
            .find_map(|pool| self.one_more(pool, sought).ok().map(Found::OneMore))
    }

    /// The next place that could do, by what is known of it as a member of sets.
    fn next(&self, sought: &Sought<'_>, scope: Scope, from: usize, to: usize) -> Option<usize> {
        if from >= to {
            return None;
        }
        let masks = self.masks(sought, scope)?;
        for at in from / 64..words(to) {
            let mut word = masks.iter().fold(u64::MAX, |word, mask| word & mask.word(at));
            if start(at) < from {
                word &= u64::MAX << (from - start(at));
            }
            if let Some(place) = first(word).map(|it| start(at) + it) {
                return Some(place).filter(|it| *it < to);
            }
        }
        None
    }

    /// `None`: there is no such place.
    fn masks(&self, sought: &Sought<'_>, scope: Scope) -> Option<Masks<'_>> {
        let kind = &self.world.kinds[sought.kind];
        let mut masks = Masks::new();
        masks.push(Mask::Not(&self.full[kind.needs_at]));
        masks.push(Mask::Not(&self.never[sought.kind]));
        if scope != Scope::NewNodes {
            masks.push(Mask::Only(&self.world.required[kind.required].sites));
            let tolerance = &self.world.tolerances[kind.tolerance];
            masks.push(Mask::Only(&tolerance.sites));
            if let Some((sites, _)) = &kind.reached {
                masks.push(Mask::Only(sites));
            }
            for wish in sought.wishes.iter().map(|at| &kind.wishes[*at]) {
                match &wish.what {
                    Wished::Untainted => masks.push(Mask::Only(&tolerance.sites_gladly)),
                    Wished::Nodes { sites, pools: _ } => masks.push(Mask::Only(sites)),
                    Wished::Checks(_) => {}
                }
            }
        }
        for checks in sought.checks(self.world) {
            self.mask_checks(checks, sought.stage, &mut masks)?;
        }
        Some(masks)
    }

    fn mask_checks<'s>(
        &'s self,
        checks: &Checks,
        stage: Stage,
        masks: &mut Masks<'s>,
    ) -> Option<()> {
        for at in &checks.away {
            masks.extend(self.counts[*at].over(0).map(Mask::Not));
        }
        let first = self.first_of_its_own(checks);
        for at in &checks.near {
            let key = &self.keys[self.world.counters.all[*at].key];
            masks.push(Mask::Not(&key.lacking));
            if let (Some(there), false) = (self.counts[*at].over(0), first) {
                masks.push(Mask::Either(there, &key.undecided));
            }
        }
        for check in &checks.spreads {
            let key = &self.keys[self.world.counters.all[check.counter].key];
            let count = &self.counts[check.counter];
            masks.push(Mask::Not(&key.lacking));
            let limit = self.limit(check, stage)?;
            match &key.masks {
                None => masks.extend(count.over(limit).map(Mask::Not)),
                Some(domains) => {
                    let free = domains.iter().enumerate().filter(|(it, _)| count.of(*it) <= limit);
                    masks.push(Mask::AnyOf(free.map(|(_, mask)| mask).collect(), &key.undecided));
                }
            }
        }
        Some(())
    }

    /// What the pod needs here, and those who have to follow it.
    pub(super) fn room_for(&self, sought: &Sought<'_>, place: Option<usize>) -> Needs {
        let mut needs = self.needs(sought.kind, place);
        for (resource, more) in sought.company {
            match needs.iter_mut().find(|(it, _)| it == resource) {
                Some((_, amount)) => *amount = amount.saturating_add(*more),
                None => needs.push((*resource, *more)),
            }
        }
        needs
    }

    /// Whether the pod may be in this domain of the label.
    pub(super) fn suits(&self, sought: &Sought<'_>, key: usize, domain: Domain) -> bool {
        let shunned = |it: &(usize, usize)| it.0 == key && Domain::In(it.1) == domain;
        !sought.shun.iter().any(shunned)
            && sought.checks(self.world).all(|it| self.allows(it, key, domain, sought.stage))
    }

    /// Whether a node that exists can take the pod. Labels and taints were looked at before.
    fn hosts(&self, site: usize, sought: &Sought<'_>) -> Result<(), No> {
        let free = self.free(site);
        if self.room_for(sought, Some(site)).iter().any(|(place, need)| free[*place] < *need) {
            return Err(No::Full);
        }
        if self.port_taken(sought.kind, site) {
            return Err(No::Never);
        }
        let allowed = |key: usize| self.suits(sought, key, self.keys[key].of[site]);
        if sought.keys(self.world).all(allowed) { Ok(()) } else { Err(No::NotNow) }
    }
}

impl Mask<'_> {
    fn word(&self, at: usize) -> u64 {
        match self {
            Self::Not(bits) => !bits.word(at),
            Self::Only(bits) => bits.word(at),
            Self::Either(left, right) => left.word(at) | right.word(at),
            Self::AnyOf(bits, or) => bits.iter().fold(or.word(at), |all, it| all | it.word(at)),
        }
    }
}
