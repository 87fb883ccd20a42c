//! What could a new node of this pool be?
//!
//! `machines × offerings × what the pool writes → sets to intersect`
//!
//! A node that does not exist yet is a set of machines and a set of slots (zone, capacity type and so
//! on, as they can be bought). What pods ask narrows both. Labels that are neither decided by the
//! machine nor by the purchase are kept as requirements.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    bits::Bits,
    district::{Rooms, Share},
    measure::{Room, Scale, measured},
};
use crate::{
    label,
    pod::Demand,
    pool::{Machine, NODES, Offering, Pool, Price},
    requirement::{Operator, Requirement, Requirements, Written},
    selector::{Labels, NodeTerm, equal, matches},
    vocabulary::Vocabulary,
};

/// No label has this value: it stands for the name that a node will have one day.
const NAME_TO_COME: &str = "\0";

/// A conjunction of label expressions, seen from one pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) machines: Bits,
    pub(super) slots: Bits,
    /// About labels that neither decides.
    pub(super) custom: Requirements,
}

/// A way to buy that several machines share.
#[derive(Debug)]
pub(super) struct Slot {
    /// By present names.
    pub(super) labels: Labels,
    /// The machines that can be had this way now.
    pub(super) machines: Bits,
    prices: BTreeMap<usize, Price>,
    pub(super) reservation: Option<usize>,
}

/// What a pool leaves open of a label that pods are spread or gathered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// Every node has its own.
    EachItsOwn,
    Fixed(String),
    BySlot,
    ByMachine,
    Custom,
    Absent,
}

#[derive(Debug)]
pub(super) struct MinValues {
    pub(super) key: String,
    pub(super) need: u32,
    by_slot: bool,
}

/// How much more may exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Left {
    /// In the order of the template's `limited`.
    pub(super) room: Room,
    pub(super) nodes: Option<i64>,
}

#[derive(Debug)]
pub(super) struct Template<'a> {
    pub(super) pool: &'a Pool,
    pub(super) machines: Vec<&'a Machine>,
    /// By present names; of labels that slots do not decide.
    machine_labels: Vec<BTreeMap<&'a str, &'a [String]>>,
    pub(super) slots: Vec<Slot>,
    pub(super) base: Fit,
    fixed: Labels,
    slot_keys: BTreeSet<String>,
    machine_keys: BTreeSet<String>,
    /// Labels of which some machine may have several values, and which therefore stay open.
    many_valued: BTreeSet<String>,
    pub(super) rooms: Rooms,
    /// Names of limited resources, and of each machine how much of them it takes.
    pub(super) limited: Vec<String>,
    pub(super) takes: Vec<Room>,
    takes_most: Room,
    pub(super) left: Option<Left>,
    /// The machines, those that take least of what is limited first.
    pub(super) by_size: Vec<usize>,
    pub(super) min_values: Vec<MinValues>,
    pub(super) price: Vec<Option<Price>>,
}

impl<'a> Template<'a> {
    pub(super) fn new(
        pool: &'a Pool,
        scale: &Scale,
        reservations: &mut Reservations,
        vocabulary: &Vocabulary,
    ) -> Self {
        let open = |it: &Offering| it.open();
        Self::offering(pool, scale, vocabulary, |machines| slots(machines, reservations, open))
    }

    /// The same if all of this could be had.
    pub(super) fn hoped(
        pool: &'a Pool,
        scale: &Scale,
        vocabulary: &Vocabulary,
        had: impl Fn(&Offering) -> bool,
    ) -> Self {
        let mut reservations = Reservations::default();
        Self::offering(pool, scale, vocabulary, |machines| slots(machines, &mut reservations, had))
    }

    fn offering(
        pool: &'a Pool,
        scale: &Scale,
        vocabulary: &Vocabulary,
        slots: impl FnOnce(&[&Machine]) -> Vec<Slot>,
    ) -> Self {
        let mut machines: Vec<&Machine> = pool.machines.iter().collect();
        machines.sort_by(|left, right| left.name.cmp(&right.name));
        let slots = slots(&machines);
        let slot_keys: BTreeSet<String> =
            slots.iter().flat_map(|it| it.labels.keys().cloned()).collect();
        let machine_labels: Vec<BTreeMap<&str, &[String]>> = machines
            .iter()
            .map(|machine| {
                let labels = machine.labels.iter();
                labels
                    .map(|(key, values)| (label::normalise(key), values.as_slice()))
                    .filter(|(key, values)| !slot_keys.contains(*key) && !values.is_empty())
                    .collect()
            })
            .collect();
        let machine_keys: BTreeSet<String> =
            machine_labels.iter().flat_map(|it| it.keys().map(|it| (*it).to_owned())).collect();
        let many_valued = machine_labels
            .iter()
            .flat_map(|it| it.iter().filter(|(_, values)| values.len() > 1))
            .map(|(key, _)| (*key).to_owned())
            .collect();
        let mut template = Self {
            pool,
            base: Fit::default(),
            fixed: Labels::new(),
            machine_labels,
            slot_keys,
            machine_keys,
            many_valued,
            rooms: Rooms::default(),
            limited: Vec::new(),
            takes: Vec::new(),
            takes_most: Room::new(),
            left: None,
            by_size: (0..machines.len()).collect(),
            min_values: Vec::new(),
            price: Vec::new(),
            machines,
            slots,
        };
        template.narrow_to_pool(vocabulary);
        template.limit();
        template.measure(scale, vocabulary);
        let prices = |at| template.cheapest(at, &template.base.slots);
        template.price = (0..template.machines.len()).map(prices).collect();
        template
    }

    /// What the pool writes: labels and requirements.
    fn narrow_to_pool(&mut self, vocabulary: &Vocabulary) {
        let own_name = equal(label::NODEPOOL, &self.pool.name);
        let labels = self.pool.labels.iter().map(|(key, value)| equal(key, value));
        let written: Vec<Written> =
            labels.chain([own_name]).chain(self.pool.requirements.iter().cloned()).collect();
        // First what nodes will have whatever the machine: later requirements may ask for it.
        for it in &written {
            let key = label::normalise(&it.key);
            let decided = self.slot_keys.contains(key) || self.machine_keys.contains(key);
            if let (Operator::In, [only], false) = (it.operator, it.values.as_slice(), decided) {
                self.fixed.insert(key.to_owned(), only.clone());
            }
        }
        let mut base = Fit {
            machines: Bits::below(self.machines.len()),
            slots: Bits::below(self.slots.len()),
            custom: Requirements::new(),
        };
        let mut possible = true;
        for it in &written {
            let key = label::normalise(&it.key);
            let custom = !self.fixed.contains_key(key)
                && !self.slot_keys.contains(key)
                && !self.machine_keys.contains(key);
            if custom {
                base.custom.add(vocabulary.key(key), &Requirement::read(it, vocabulary));
            } else {
                possible &= self.apply(it, &mut base, vocabulary);
            }
            if let Some(need) = it.min_values {
                let by_slot = self.slot_keys.contains(key);
                self.min_values.push(MinValues { key: key.to_owned(), need, by_slot });
            }
        }
        if !possible || base.custom.nothing() || !self.tidy(&mut base, vocabulary) {
            base.machines.clear();
            base.slots.clear();
        }
        self.base = base;
    }

    /// How much more of everything may exist.
    fn limit(&mut self) {
        let limits = &self.pool.limits;
        if limits.is_empty() {
            return;
        }
        let rest = |name: &str| {
            let limit = limits.get(name)?;
            Some(limit.saturating_sub(self.pool.used.get(name).copied().unwrap_or_default()))
        };
        self.limited = limits.keys().filter(|it| *it != NODES).cloned().collect();
        let measure = |name: &str, amount| {
            // Only the CPU is counted in thousandths.
            measured(usize::from(name != crate::capacity::CPU), amount)
        };
        self.takes = self
            .machines
            .iter()
            .map(|machine| {
                let amount = |name: &String| {
                    measure(name, machine.capacity.get(name).copied().unwrap_or_default()).max(0)
                };
                self.limited.iter().map(amount).collect()
            })
            .collect();
        self.takes_most = self.most_taken(&self.base.machines);
        self.left = Some(Left {
            room: self
                .limited
                .iter()
                .map(|name| measure(name, rest(name).unwrap_or_default()))
                .collect(),
            nodes: rest(NODES).map(|it| measured(1, it)),
        });
        self.by_size
            .sort_by(|left, right| (&self.takes[*left], *left).cmp(&(&self.takes[*right], *right)));
    }

    /// What each machine has for pods, the share of daemons taken off.
    fn measure(&mut self, scale: &Scale, vocabulary: &Vocabulary) {
        let bare: Vec<Room> =
            self.machines.iter().map(|it| scale.room(&it.allocatable, &it.volume_limits)).collect();
        let daemons = self.pool.daemons.iter().map(|it| &*it.demand);
        let shares: Vec<Share> =
            daemons.map(|it| (scale.needs(it), self.ways_to_host(it, vocabulary))).collect();
        self.rooms = Rooms::new(&bare, &shares, &self.base.machines, &self.base.slots);
    }

    /// Whether each of these machines can be had in these slots only.
    pub(super) fn wherever_bought(&self, way: &Fit) -> bool {
        let mut others = self.base.slots.iter().filter(|it| !way.slots.has(*it));
        !others.any(|it| self.slots[it].machines.meets(&way.machines))
    }

    /// In which ways a node would get the daemon.
    pub(super) fn ways_to_host(&self, daemon: &Demand, vocabulary: &Vocabulary) -> Vec<Fit> {
        let tolerated = |it: &&crate::taint::Taint| {
            !it.effect.binding() || it.tolerated_by(&daemon.tolerations)
        };
        if self.pool.taints.iter().filter(tolerated).count() < self.pool.taints.len() {
            return Vec::new();
        }
        self.fits(&daemon.node_selector, daemon.node_terms.as_deref(), vocabulary)
    }

    /// In which ways a node could meet the selector and one of the terms. None: not at all.
    pub(super) fn fits(
        &self,
        selector: &Labels,
        terms: Option<&[NodeTerm]>,
        vocabulary: &Vocabulary,
    ) -> Vec<Fit> {
        let selector: Vec<Written> =
            selector.iter().map(|(key, value)| equal(key, value)).collect();
        let Some(base) = self.narrowed(&self.base, &selector, vocabulary) else {
            return Vec::new();
        };
        match terms {
            None => vec![base],
            Some(terms) => terms.iter().filter_map(|it| self.term(&base, it, vocabulary)).collect(),
        }
    }

    pub(super) fn term(&self, from: &Fit, term: &NodeTerm, vocabulary: &Vocabulary) -> Option<Fit> {
        let asks = !term.labels.is_empty() || !term.fields.is_empty();
        let nameless = term.fields.iter().all(|it| matches(it, Some(NAME_TO_COME)));
        (asks && nameless).then(|| self.narrowed(from, &term.labels, vocabulary)).flatten()
    }

    fn narrowed(&self, from: &Fit, asked: &[Written], vocabulary: &Vocabulary) -> Option<Fit> {
        let mut fit = from.clone();
        let possible = asked.iter().all(|it| self.apply(it, &mut fit, vocabulary));
        (possible && self.tidy(&mut fit, vocabulary)).then_some(fit)
    }

    fn apply(&self, asked: &Written, fit: &mut Fit, vocabulary: &Vocabulary) -> bool {
        let key = label::normalise(&asked.key);
        if key == label::HOSTNAME {
            return matches(asked, Some(NAME_TO_COME));
        }
        if let Some(value) = self.fixed.get(key) {
            return matches(asked, Some(value));
        }
        if self.slot_keys.contains(key) {
            fit.slots = fit
                .slots
                .iter()
                .filter(|at| matches(asked, self.slots[*at].labels.get(key).map(|it| &**it)))
                .collect();
            return true;
        }
        if self.machine_keys.contains(key) && !self.many_valued.contains(key) {
            fit.machines =
                fit.machines.iter().filter(|at| matches(asked, self.value(*at, key))).collect();
            return true;
        }
        let name = vocabulary.key(key);
        if self.many_valued.contains(key) || fit.custom.get(name).is_some() {
            fit.custom.add(name, &Requirement::read(asked, vocabulary));
            return !fit.custom.nothing()
                && !fit.custom.get(name).is_some_and(Requirement::negative);
        }
        matches(asked, None)
    }

    /// Drop what has lost its counterpart: machines that cannot be bought in any of the slots, and
    /// slots that offer none of the machines. Whether anything remains.
    pub(super) fn tidy(&self, fit: &mut Fit, vocabulary: &Vocabulary) -> bool {
        for key in &self.many_valued {
            let name = vocabulary.key(key);
            let Some(asked) = fit.custom.get(name) else { continue };
            let possible = |at: &usize| match self.machine_labels[*at].get(key.as_str()) {
                None => asked.admits_absent(),
                Some(values) => values.iter().any(|it| asked.admits(vocabulary.value(it))),
            };
            fit.machines = fit.machines.iter().filter(possible).collect();
        }
        self.tidy_slots(&mut fit.machines, &mut fit.slots)
    }

    /// The same, where no label that stays open has changed.
    pub(super) fn tidy_slots(&self, machines: &mut Bits, slots: &mut Bits) -> bool {
        let mut had = Bits::default();
        let mut without = Bits::default();
        for at in slots.iter() {
            if machines.meets(&self.slots[at].machines) {
                had.or(&self.slots[at].machines);
            } else {
                without.insert(at);
            }
        }
        for at in without.iter() {
            slots.remove(at);
        }
        machines.and(&had);
        !machines.empty()
    }

    /// Whether nothing that the pool writes rules the label out: it is up to machines and offerings.
    pub(super) fn allows(&self, asked: &Written, vocabulary: &Vocabulary) -> bool {
        let key = label::normalise(&asked.key);
        if !self.slot_keys.contains(key) && !self.machine_keys.contains(key) {
            return false;
        }
        let of_key = |it: &&Written| label::normalise(&it.key) == key;
        let mut both = Requirement::read(asked, vocabulary);
        for it in self.pool.requirements.iter().filter(of_key) {
            both = both.intersect(&Requirement::read(it, vocabulary));
        }
        let labels = self.pool.labels.iter().map(|(key, value)| equal(key, value));
        for it in labels.filter(|it| label::normalise(&it.key) == key) {
            both = both.intersect(&Requirement::read(&it, vocabulary));
        }
        !both.nothing()
    }

    /// The only value that the machine can have. `None`: absent, or one of several.
    pub(super) fn value(&self, machine: usize, key: &str) -> Option<&str> {
        match self.machine_labels[machine].get(key) {
            Some([only]) => Some(only),
            Some(_) | None => None,
        }
    }

    pub(super) fn source(&self, key: &str, vocabulary: &Vocabulary) -> Source {
        let key = label::normalise(key);
        if key == label::HOSTNAME {
            Source::EachItsOwn
        } else if let Some(value) = self.fixed.get(key) {
            Source::Fixed(value.clone())
        } else if self.slot_keys.contains(key) {
            Source::BySlot
        } else if self.many_valued.contains(key)
            || self.base.custom.get(vocabulary.key(key)).is_some()
        {
            Source::Custom
        } else if self.machine_keys.contains(key) {
            Source::ByMachine
        } else {
            Source::Absent
        }
    }

    /// Every value that a node of the pool could have.
    pub(super) fn values(&self, key: &str, vocabulary: &Vocabulary) -> BTreeSet<String> {
        self.values_within(&self.base, key, vocabulary)
    }

    pub(super) fn values_within(
        &self,
        fit: &Fit,
        key: &str,
        vocabulary: &Vocabulary,
    ) -> BTreeSet<String> {
        let source = self.source(key, vocabulary);
        let key = label::normalise(key);
        match source {
            Source::EachItsOwn | Source::Absent => BTreeSet::new(),
            Source::Fixed(value) => BTreeSet::from([value]),
            Source::BySlot => {
                fit.slots.iter().filter_map(|at| self.slots[at].labels.get(key).cloned()).collect()
            }
            Source::ByMachine => fit
                .machines
                .iter()
                .filter_map(|at| self.value(at, key).map(str::to_owned))
                .collect(),
            Source::Custom => {
                let asked = fit.custom.get(vocabulary.key(key));
                if let Some(listed) = asked.and_then(Requirement::listed) {
                    let text = |it: &_| vocabulary.value_text(*it).as_ref().to_owned();
                    return listed.iter().map(text).collect();
                }
                let values =
                    |at: usize| self.machine_labels[at].get(key).copied().unwrap_or_default();
                let wanted =
                    |it: &&String| asked.is_none_or(|all| all.admits(vocabulary.value(it)));
                fit.machines.iter().flat_map(values).filter(wanted).cloned().collect()
            }
        }
    }

    /// The cheapest way to have the machine in one of the slots, where a price is known.
    pub(super) fn cheapest(&self, machine: usize, slots: &Bits) -> Option<Price> {
        let prices = slots.iter().filter(|at| self.slots[*at].machines.has(machine));
        prices.filter_map(|at| self.slots[at].prices.get(&machine).copied()).min()
    }

    /// How many different values these machines have of a label whose number the pool demands. Of zones and the like all that
    /// the pool admits, whichever of them a pod asks for.
    pub(super) fn different(&self, demanded: &MinValues, machines: &Bits) -> u32 {
        let key = demanded.key.as_str();
        let different: BTreeSet<&str> = if demanded.by_slot {
            let slots = self.base.slots.iter().map(|at| &self.slots[at]);
            let slots = slots.filter(|it| machines.iter().any(|at| it.machines.has(at)));
            slots.filter_map(|it| it.labels.get(key).map(|it| &**it)).collect()
        } else {
            let values = |at: usize| self.machine_labels[at].get(key).copied().unwrap_or_default();
            machines.iter().flat_map(values).map(|it| &**it).collect()
        };
        u32::try_from(different.len()).unwrap_or(u32::MAX)
    }

    /// The most that one of these machines takes of each limited resource.
    pub(super) fn most_taken(&self, machines: &Bits) -> Room {
        let mut most: Room = self.limited.iter().map(|_| 0).collect();
        for at in machines.iter() {
            for (most, it) in most.iter_mut().zip(&self.takes[at]) {
                *most = (*most).max(*it);
            }
        }
        most
    }

    /// The same of all machines.
    pub(super) fn takes_most(&self) -> &Room {
        &self.takes_most
    }

    pub(super) fn offers(&self) -> bool {
        !self.base.machines.empty()
    }

    /// Whether the label is the machine's own, with one value.
    pub(super) fn decided_by_machine(&self, key: &str) -> bool {
        self.machine_keys.contains(key)
            && !self.many_valued.contains(key)
            && !self.fixed.contains_key(key)
    }

    pub(super) fn fixed(&self) -> &Labels {
        &self.fixed
    }

    pub(super) fn slot_keys(&self) -> &BTreeSet<String> {
        &self.slot_keys
    }
}

/// Reserved capacity, by its own name: pools may share it.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    by_name: BTreeMap<String, usize>,
    pub(super) left: Vec<u32>,
}

impl Reservations {
    fn find(&mut self, machine: &Machine, offering: &Offering) -> Option<usize> {
        let remaining = offering.remaining?;
        let named = offering.labels.get(label::CAPACITY_RESERVATION_ID);
        let name =
            named.map_or_else(|| format!("{} {:?}", machine.name, offering.labels), String::clone);
        let at = *self.by_name.entry(name).or_insert(self.left.len());
        match self.left.get_mut(at) {
            Some(left) => *left = (*left).min(remaining),
            None => self.left.push(remaining),
        }
        Some(at)
    }
}

fn slots(
    machines: &[&Machine],
    reservations: &mut Reservations,
    had: impl Fn(&Offering) -> bool,
) -> Vec<Slot> {
    let mut found: BTreeMap<(Labels, Option<usize>), Slot> = BTreeMap::new();
    for (at, machine) in machines.iter().enumerate() {
        for offering in machine.offerings.iter().filter(|it| had(it)) {
            let reservation = reservations.find(machine, offering);
            let labels: Labels = offering
                .labels
                .iter()
                .map(|(key, value)| (label::normalise(key).to_owned(), value.clone()))
                .collect();
            let slot = found.entry((labels.clone(), reservation)).or_insert_with(|| Slot {
                labels,
                machines: Bits::default(),
                prices: BTreeMap::new(),
                reservation,
            });
            slot.machines.insert(at);
            if let Some(price) = offering.price {
                let least = slot.prices.entry(at).or_insert(price);
                *least = (*least).min(price);
            }
        }
    }
    found.into_values().collect()
}
