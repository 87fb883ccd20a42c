//! What does EC2 answer?
//!
//! `request × now → answer`, and every change as a fact
//!
//! One region of one account: images and the parameters that name them, a network, and machines. Nothing
//! is lost or late in here; that is put around it. What EC2 itself is vague about is modelled: a new
//! machine is not shown at once, an ended one is shown for a while, and a client token answers for ever
//! what it answered once.

mod images;
mod machines;
mod network;

pub(crate) use images::id_of;
pub use machines::Happened;
pub(crate) use machines::NewMachine;
pub use network::Written;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::catalog::ParameterValue;
use nodemolt_core::image::{AccountId, Image, ImageId};
use nodemolt_core::launch::Template;
use nodemolt_core::seen::FrozenRequest;
use nodemolt_engine::port::{LaunchError, Launched, Machine, MachineState, Offered};
use nodemolt_fit::Types;
use nodemolt_fit::pool::Price;
use nodemolt_fit::prices::Prices;

use crate::act::Behaviour;
use crate::faults::Counterpart;
use crate::scenario::{self, Simulation};
use crate::trace::{Actor, Fact, Step, Trace};

/// What is due in the region, and when.
pub type Due = Vec<(Timestamp, RegionEvent)>;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RegionEvent {
    /// A pending machine runs.
    Runs { machine: String },
    /// A machine that was told to go is gone.
    Ended { machine: String },
    /// EC2 does not show an ended machine any more.
    Forgotten { machine: String },
}

/// One region of one account.
#[derive(Debug)]
pub struct Region {
    trace: Trace,
    name: String,
    account: AccountId,
    zones: Vec<String>,
    types: Types,
    on_demand: BTreeMap<String, Price>,
    images: BTreeMap<ImageId, Held>,
    /// How they were since when: for lists that lag.
    past_images: Vec<(Timestamp, BTreeMap<ImageId, Held>)>,
    /// By name, oldest value first, each with when it was put there.
    parameters: BTreeMap<String, Vec<(Timestamp, ParameterValue)>>,
    subnets: Vec<scenario::Subnet>,
    security_groups: Vec<scenario::SecurityGroup>,
    reservations: Vec<scenario::Reservation>,
    templates: BTreeMap<String, Template>,
    /// By client token: what was asked with it and what was answered, for ever.
    tokens: BTreeMap<String, (FrozenRequest, Result<Launched, LaunchError>)>,
    machines: BTreeMap<String, Kept>,
    /// How many there have ever been: their ids and addresses.
    made: u32,
    boot: scenario::Boot,
    /// What there is none of: an instance type and a zone, or any.
    pub(crate) no_capacity: Vec<(Option<String>, Option<String>)>,
    pub(crate) throttled: BTreeSet<Counterpart>,
    /// The next machine comes twice.
    pub(crate) twins: bool,
    /// How old the lists are that are answered.
    pub(crate) stale: BTreeMap<Counterpart, SignedDuration>,
}

/// An image, and what only its publisher knows.
#[derive(Debug, Clone)]
struct Held {
    image: Image,
    behaviour: Behaviour,
    shared: bool,
    deregistered: bool,
}

/// A machine, and what EC2 does not show.
#[derive(Debug, Clone)]
struct Kept {
    machine: Machine,
    /// Before that, lists do not have it.
    shown_from: Timestamp,
    /// Its states, and since when.
    was: Vec<(Timestamp, MachineState)>,
}

/// How long EC2 still shows what has ended.
const SHOWN_AFTER_END: SignedDuration = SignedDuration::from_hours(1);

/// A new machine may be missing from lists for this long. EC2's guide says that it should become visible
/// within seconds and may take minutes; the fault `stale ec2` makes it longer.
const HIDDEN_AT_MOST: SignedDuration = SignedDuration::from_secs(15);

impl Region {
    pub fn new(simulation: &Simulation, trace: Trace) -> Self {
        let offered = |it: &&nodemolt_fit::InstanceType| simulation.types.contains(&it.name);
        let types: Types = Types::shipped().iter().filter(offered).cloned().collect();
        let listed = Prices::shipped().regions.get(&simulation.region);
        let on_demand = types
            .iter()
            .map(|it| {
                // A region that we have no prices of costs by the core, which orders them well enough.
                let usual = Price(u64::from(it.vcpus).saturating_mul(50_000_000));
                (
                    it.name.clone(),
                    listed.and_then(|all| all.get(&it.name)).copied().unwrap_or(usual),
                )
            })
            .collect();
        Self {
            trace,
            name: simulation.region.clone(),
            account: simulation.account.clone(),
            zones: simulation.zones.clone(),
            types,
            on_demand,
            images: BTreeMap::new(),
            past_images: Vec::new(),
            parameters: BTreeMap::new(),
            subnets: simulation.subnets.clone(),
            security_groups: simulation.security_groups.clone(),
            reservations: simulation.reservations.clone(),
            templates: BTreeMap::new(),
            tokens: BTreeMap::new(),
            machines: BTreeMap::new(),
            made: 0,
            boot: simulation.boot.clone(),
            no_capacity: Vec::new(),
            throttled: BTreeSet::new(),
            twins: false,
            stale: BTreeMap::new(),
        }
    }

    /// Which machines can be had here.
    pub fn offered(&self) -> Offered {
        let everywhere: BTreeSet<String> = self.zones.iter().cloned().collect();
        let zones = self.types.iter().map(|it| (it.name.clone(), everywhere.clone())).collect();
        let mut spot = BTreeMap::new();
        for (name, price) in &self.on_demand {
            for (at, zone) in self.zones.iter().enumerate() {
                // A third, and a little more from zone to zone.
                let share = 33 + u64::try_from(at).unwrap_or(0);
                let price = Price(price.0.saturating_mul(share) / 100);
                spot.insert((name.clone(), zone.clone()), price);
            }
        }
        Offered { types: self.types.clone(), zones, on_demand: self.on_demand.clone(), spot }
    }

    /// As of when lists are answered now.
    fn as_of(&self, service: Counterpart, now: Timestamp) -> Timestamp {
        let by = self.stale.get(&service).copied().unwrap_or_default();
        now.saturating_sub(by).unwrap_or(now)
    }

    pub fn types(&self) -> &Types {
        &self.types
    }

    /// Makes a launch template, if there is none of its name.
    pub fn prepare(&mut self, template: &Template) {
        self.templates.entry(template.name()).or_insert_with(|| template.clone());
    }

    fn tell(&self, now: Timestamp, by: Actor, fact: Fact) {
        self.trace.push(Step { at: now, by, fact });
    }
}

#[cfg(test)]
mod tests;
