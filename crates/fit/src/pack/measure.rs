//! How is room measured while packing?
//!
//! `amounts by name → whole numbers by place`
//!
//! In the units in which kube-scheduler counts: thousandths of a CPU, and whole units of everything
//! else, each rounded up. The volumes that a CSI driver has attached are counted as one more resource.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::site::Tally;
use crate::{
    capacity::{Amounts, CPU, MEMORY, PODS},
    pod::{Demand, Pod},
    pool::Pool,
    quantity::Quantity,
};

pub(super) const CPU_AT: usize = 0;
pub(super) const MEMORY_AT: usize = 1;
pub(super) const PODS_AT: usize = 2;

/// Resources that are counted in bytes, beside memory.
const STORAGE: &str = "ephemeral-storage";
const HUGE_PAGES: &str = "hugepages-";

/// An amount of each resource.
pub(super) type Room = SmallVec<[i64; 4]>;
/// The resources that are asked for at all, and how much: more than nothing.
pub(super) type Needs = SmallVec<[(usize, i64); 4]>;

/// Which place stands for which resource.
#[derive(Debug, Default)]
pub(super) struct Scale {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
    drivers: BTreeMap<String, usize>,
}

impl Scale {
    /// Of every resource and driver that somebody asks for who is to be placed, or comes along with a new node. What
    /// nobody of those asks for nobody misses.
    pub(super) fn new(pods: &[Pod], pools: &[Pool]) -> Self {
        let (mut names, mut drivers) = (BTreeSet::new(), BTreeSet::new());
        let mut seen: Option<&Demand> = None;
        let daemons = pools.iter().flat_map(|it| &it.daemons);
        for demand in pods.iter().chain(daemons).map(|it| &*it.demand) {
            if seen.is_some_and(|it| std::ptr::eq(it, demand)) {
                continue;
            }
            seen = Some(demand);
            names.extend(demand.requests.keys().map(String::as_str));
            drivers.extend(demand.volumes.iter().filter_map(|it| it.driver.as_deref()));
        }
        let mut scale = Self::default();
        let first = [CPU, MEMORY, PODS];
        for name in first.into_iter().chain(names.into_iter().filter(|it| !first.contains(it))) {
            scale.places.insert(name.to_owned(), scale.names.len());
            scale.names.push(name.to_owned());
        }
        for driver in drivers {
            scale.drivers.insert(driver.to_owned(), scale.names.len());
            scale.names.push(driver.to_owned());
        }
        scale
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn place(&self, resource: &str) -> Option<usize> {
        self.places.get(resource).copied()
    }

    pub(super) fn driver(&self, name: &str) -> Option<usize> {
        self.drivers.get(name).copied()
    }

    pub(super) fn name(&self, place: usize) -> &str {
        self.names.get(place).map_or("?", |it| it)
    }

    /// Whether the place counts the volumes of a driver.
    pub(super) fn counts_volumes(&self, place: usize) -> bool {
        place >= self.places.len()
    }

    pub(super) fn quantity(&self, place: usize, amount: i64) -> Quantity {
        let name = self.name(place);
        match place {
            CPU_AT => Quantity::from_millis(amount),
            MEMORY_AT => Quantity::from_bytes(amount),
            _ if name == STORAGE || name.starts_with(HUGE_PAGES) => Quantity::from_bytes(amount),
            _ => Quantity::from_units(amount),
        }
    }

    /// What there is. Of what is not listed there is nothing, save attachments without a limit.
    pub(super) fn room(&self, amounts: &Amounts, volume_limits: &BTreeMap<String, u32>) -> Room {
        let mut room: Room = SmallVec::from_elem(0, self.len());
        for (name, amount) in amounts {
            if let Some(place) = self.place(name) {
                room[place] = measured(place, *amount);
            }
        }
        for (driver, place) in &self.drivers {
            room[*place] = volume_limits.get(driver).map_or(i64::MAX, |it| i64::from(*it));
        }
        room
    }

    /// What pods leave of a node that exists. Volumes that can be shared are not taken off yet.
    pub(super) fn left(&self, tally: &Tally, volume_limits: &BTreeMap<String, u32>) -> Room {
        let mut room: Room = SmallVec::from_slice(&tally.left);
        let others = self.names.iter().take(self.places.len()).skip(room.len());
        room.extend(others.map(|it| tally.left_of(it)));
        // They follow in the order of their places.
        room.extend(self.drivers.keys().map(|driver| {
            let limit = volume_limits.get(driver).map_or(i64::MAX, |it| i64::from(*it));
            limit.saturating_sub(tally.own_volumes_of(driver))
        }));
        room
    }

    /// What a pod needs, itself and the volumes of its own included. The others depend on those that are attached
    /// already.
    pub(super) fn needs(&self, demand: &Demand) -> Needs {
        let mut needs = self.more_than_nothing(&demand.requests);
        match needs.iter_mut().find(|(place, _)| *place == PODS_AT) {
            Some((_, count)) => *count = 1,
            None => needs.push((PODS_AT, 1)),
        }
        for volume in demand.volumes.iter().filter(|it| it.own) {
            let Some(place) = volume.driver.as_deref().and_then(|it| self.driver(it)) else {
                continue;
            };
            match needs.iter_mut().find(|(it, _)| *it == place) {
                Some((_, count)) => *count += 1,
                None => needs.push((place, 1)),
            }
        }
        needs.sort_unstable();
        needs
    }

    pub(super) fn more_than_nothing(&self, amounts: &Amounts) -> Needs {
        amounts
            .iter()
            .filter_map(|(name, amount)| {
                let place = self.place(name)?;
                Some((place, measured(place, *amount))).filter(|(_, amount)| *amount > 0)
            })
            .collect()
    }
}

/// Far from the ends, so that sums of a few do not wrap around.
const MOST: i64 = i64::MAX / 4;

/// What is beyond every machine is as good as the most that can be held.
pub(super) fn measured(place: usize, amount: Quantity) -> i64 {
    let whole = if place == CPU_AT { amount.ceil_millis() } else { amount.ceil_units() };
    i64::try_from(whole).unwrap_or(if whole > 0 { MOST } else { -MOST }).clamp(-MOST, MOST)
}

/// Take it, or give it back with a negative sign. Never wraps around.
pub(super) fn take(room: &mut Room, needs: &[(usize, i64)]) {
    for (place, amount) in needs {
        room[*place] = room[*place].saturating_sub(*amount);
    }
}
