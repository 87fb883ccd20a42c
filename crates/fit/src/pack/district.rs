//! What room does each machine have for pods, wherever it is bought?
//!
//! `machines × daemons × slots → which machines have at least so much, in which slots`
//!
//! Daemons take their share of every node that they run on. One that runs in some zones only, or only on what was bought
//! in some way, takes it there and nowhere else: slots in which machines have the same room are one district.

use std::{borrow::Cow, collections::BTreeMap};

use smallvec::{SmallVec, smallvec};

use super::{
    bits::Bits,
    measure::{Needs, Room, take},
    template::Fit,
};

/// A daemon: what it takes, and in which ways a node gets it.
pub(super) type Share = (Needs, Vec<Fit>);

#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// What machines have in whichever slot they are bought: the least of all districts.
    anywhere: Vec<Steps>,
    /// Empty: in which slot makes no difference.
    districts: Vec<District>,
}

#[derive(Debug)]
struct District {
    slots: Bits,
    steps: Vec<Steps>,
}

/// Some of the slots that a node can be bought in, and the room that machines have there.
#[derive(Debug)]
pub(super) struct Part<'r> {
    pub(super) slots: Cow<'r, Bits>,
    steps: &'r [Steps],
}

/// Which machines have at least so much of one resource.
#[derive(Debug, Default)]
struct Steps {
    amounts: Vec<i64>,
    at_least: Vec<Bits>,
}

impl Rooms {
    /// `bare`: what each machine has while nobody is there.
    pub(super) fn new(bare: &[Room], shares: &[Share], machines: &Bits, slots: &Bits) -> Self {
        let less = |runs: &dyn Fn(&Fit) -> bool| {
            let mut rooms = bare.to_vec();
            for (needs, ways) in shares {
                let mut hosts = Bits::default();
                ways.iter().filter(|it| runs(it)).for_each(|it| hosts.or(&it.machines));
                hosts.iter().for_each(|at| take(&mut rooms[at], needs));
            }
            rooms
        };
        let steps = |rooms: &[Room]| Steps::of_all(rooms, machines);
        let by_slot = shares.iter().flat_map(|(_, ways)| ways).any(|it| !slots.inside(&it.slots));
        if !by_slot {
            return Self { anywhere: steps(&less(&|_| true)), districts: Vec::new() };
        }
        let mut alike: BTreeMap<Vec<Room>, Bits> = BTreeMap::new();
        for slot in slots.iter() {
            alike.entry(less(&|it| it.slots.has(slot))).or_default().insert(slot);
        }
        let mut least = bare.to_vec();
        for rooms in alike.keys() {
            let amounts = least.iter_mut().flatten().zip(rooms.iter().flatten());
            amounts.for_each(|(least, it)| *least = (*least).min(*it));
        }
        let anywhere = steps(&least);
        let districts =
            alike.into_iter().map(|(rooms, slots)| District { slots, steps: steps(&rooms) });
        Self { anywhere, districts: districts.collect() }
    }

    /// Everything that a node can be which may be bought in these slots: as a whole, and where the slots differ, district
    /// by district.
    pub(super) fn parts<'r>(&'r self, slots: &'r Bits) -> SmallVec<[Part<'r>; 1]> {
        let whole = Part { slots: Cow::Borrowed(slots), steps: &self.anywhere };
        if self.districts.is_empty() {
            return smallvec![whole];
        }
        let mut parts: SmallVec<[Part<'_>; 1]> = smallvec![whole];
        for it in self.districts.iter().filter(|it| it.slots.meets(slots)) {
            let mut within = slots.clone();
            within.and(&it.slots);
            parts.push(Part { slots: Cow::Owned(within), steps: &it.steps });
        }
        if parts.len() == 2 {
            // It cannot be anywhere else.
            parts.remove(0);
        }
        parts
    }

    /// The most that any machine has of it anywhere.
    pub(super) fn most(&self, place: usize) -> i64 {
        let districts = self.districts.iter().map(|it| &it.steps);
        let all = districts.chain([&self.anywhere]);
        all.filter_map(|it| it[place].amounts.last()).copied().max().unwrap_or(0)
    }
}

impl Part<'_> {
    /// The machines that have at least so much.
    pub(super) fn at_least(&self, place: usize, amount: i64) -> Option<&Bits> {
        let steps = &self.steps[place];
        steps.at_least.get(steps.amounts.partition_point(|it| *it < amount))
    }
}

impl Steps {
    /// One for each resource.
    fn of_all(rooms: &[Room], among: &Bits) -> Vec<Self> {
        let resources = rooms.first().map_or(0, Room::len);
        (0..resources).map(|place| Self::new(rooms.iter().map(|it| it[place]), among)).collect()
    }

    fn new(amounts: impl Iterator<Item = i64>, among: &Bits) -> Self {
        let mut all: Vec<(i64, usize)> =
            amounts.enumerate().filter(|(at, _)| among.has(*at)).map(|(at, it)| (it, at)).collect();
        all.sort_unstable();
        let mut steps = Self::default();
        let mut so_far = Bits::default();
        for (amount, at) in all.into_iter().rev() {
            so_far.insert(at);
            if steps.amounts.last() == Some(&amount) {
                steps.at_least.pop();
            } else {
                steps.amounts.push(amount);
            }
            steps.at_least.push(so_far.clone());
        }
        steps.amounts.reverse();
        steps.at_least.reverse();
        steps
    }
}
