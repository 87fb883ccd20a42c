//! Which machines are there, and how does one come by another?

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::image::Architecture;
use nodemolt_core::launch::{PlacementGroup, Template};
use nodemolt_core::seen::{Choice, FrozenRequest, MachineId};
use nodemolt_engine::port::{LaunchError, LaunchRequest, Launched, Machine, MachineState};

use super::{Due, HIDDEN_AT_MOST, Kept, Region, RegionEvent, SHOWN_AFTER_END};
use crate::dice::Dice;
use crate::faults::Counterpart;
use crate::trace::{self, Actor, Fact};

impl Region {
    /// `CreateFleet` for one machine.
    pub fn launch(
        &mut self,
        by: Actor,
        request: &LaunchRequest,
        now: Timestamp,
        dice: &mut Dice,
    ) -> (Result<Launched, LaunchError>, Due) {
        let LaunchRequest { token, request: asked } = request;
        let at = self.trace.len();
        let (answer, made, due) = match self.tokens.get(token) {
            // Assumption 1: what a token has answered it answers for ever, an empty fleet, too.
            Some((before, answer)) if before == asked => (answer.clone(), false, Vec::new()),
            Some(_) => (Err(LaunchError::OtherParameters), false, Vec::new()),
            None => {
                let (answer, due) = self.create(token, asked, now, dice);
                self.tokens.insert(token.clone(), (asked.clone(), answer.clone()));
                let made = answer.is_ok();
                (answer, made, due)
            }
        };
        let fact = Fact::LaunchAsked {
            token: token.clone(),
            machine: answer.as_ref().ok().map(|it| it.machine.0.clone()),
            made,
            error: answer.as_ref().err().map(ToString::to_string),
        };
        self.trace.insert(at, trace::Step { at: now, by, fact });
        (answer, due)
    }

    fn create(
        &mut self,
        token: &str,
        asked: &FrozenRequest,
        now: Timestamp,
        dice: &mut Dice,
    ) -> (Result<Launched, LaunchError>, Due) {
        let mut refused = Vec::new();
        let mut error = None;
        for choice in &asked.choices {
            match self.fits(choice, &asked.capacity_type) {
                Ok(template) => {
                    let reservation =
                        template.reservations.target.as_ref().map(|it| it.as_str().to_owned());
                    let groups = template
                        .interfaces
                        .iter()
                        .flat_map(|it| &it.security_groups)
                        .map(|it| it.as_str().to_owned())
                        .collect();
                    let group = template.placement.group.as_ref().map(|it| match it {
                        PlacementGroup::Name(name) => name.clone(),
                        PlacementGroup::Id(id) => id.as_str().to_owned(),
                    });
                    let mut tags = template.tags.clone();
                    tags.extend(asked.tags.clone());
                    let machine = NewMachine {
                        token,
                        choice,
                        capacity_type: &asked.capacity_type,
                        tags,
                        security_groups: groups,
                        reservation,
                        placement_group: group,
                    };
                    // Nobody is told of the second one: it stands in lists.
                    let twin = std::mem::take(&mut self.twins).then(|| machine.clone());
                    let launched = self.start(machine, now, dice);
                    let twin = twin.map(|it| self.start(it, now, dice));
                    let both = std::iter::once(&launched).chain(&twin);
                    let due = both.map(|it| self.runs(it, now, dice)).collect();
                    return (Ok(launched), due);
                }
                Err(Some(told)) => {
                    error.get_or_insert(told);
                }
                Err(None) => refused.push((choice.instance_type.clone(), choice.zone.clone())),
            }
        }
        // A fleet names the errors of every choice; what is no lack of capacity is what helps people.
        (Err(error.unwrap_or(LaunchError::NoCapacity(refused))), Vec::new())
    }

    /// When a machine that was made will run.
    fn runs(&self, it: &Launched, now: Timestamp, dice: &mut Dice) -> (Timestamp, RegionEvent) {
        let runs = dice.span(self.boot.runs / 2, self.boot.runs * 3 / 2);
        let slow = self.boot.later.get(&it.instance_type).copied();
        let runs = runs + slow.unwrap_or_default();
        (later(now, runs), RegionEvent::Runs { machine: it.machine.0.clone() })
    }

    /// The template to launch it with; `Err(None)` where there is no capacity.
    fn fits(&self, choice: &Choice, capacity_type: &str) -> Result<&Template, Option<LaunchError>> {
        let template = self
            .templates
            .get(&choice.template)
            .ok_or_else(|| Some(LaunchError::NoSuchTemplate(choice.template.clone())))?;
        if !self.launchable(&choice.image) {
            return Err(Some(LaunchError::NoSuchImage(choice.image.clone())));
        }
        let refuse = |told: String| Err(Some(LaunchError::Refused(told)));
        if template.image != choice.image.as_str() {
            return refuse(format!("the template boots {}, not {}", template.image, choice.image));
        }
        let Ok(instance_type) = self.types.find(&choice.instance_type) else {
            return refuse(format!("InvalidInstanceType: {}", choice.instance_type));
        };
        let architecture = self.image(&choice.image).map(|it| &it.architecture);
        let boots = architecture.is_some_and(|it| {
            instance_type.architectures.iter().any(|have| Architecture::read(have) == *it)
        });
        if !boots {
            return refuse(format!(
                "Unsupported: {} has another architecture than {}",
                choice.image, choice.instance_type
            ));
        }
        let Some(subnet) = self.subnets.iter().find(|it| it.id == choice.subnet) else {
            return refuse(format!("InvalidSubnetID.NotFound: {}", choice.subnet));
        };
        if subnet.zone != choice.zone {
            return refuse(format!("{} is not in {}", subnet.id, choice.zone));
        }
        if self.free_addresses(subnet) == 0 {
            return refuse(format!("InsufficientFreeAddressesInSubnet: {}", subnet.id));
        }
        if capacity_type == "reserved" {
            let target = template.reservations.target.as_ref();
            let reservation = self
                .reservations
                .iter()
                .find(|it| target.is_some_and(|target| target.as_str() == it.id));
            let room = reservation.is_some_and(|it| {
                it.instance_type == choice.instance_type
                    && it.zone == choice.zone
                    && self.remaining(it) > 0
            });
            return if room { Ok(template) } else { Err(None) };
        }
        let lacking = self.no_capacity.iter().any(|(instance_type, zone)| {
            instance_type.as_ref().is_none_or(|it| *it == choice.instance_type)
                && zone.as_ref().is_none_or(|it| *it == choice.zone)
        });
        if lacking { Err(None) } else { Ok(template) }
    }

    pub(crate) fn start(
        &mut self,
        new: NewMachine<'_>,
        now: Timestamp,
        dice: &mut Dice,
    ) -> Launched {
        let NewMachine {
            token,
            choice,
            capacity_type,
            tags,
            security_groups,
            reservation,
            placement_group,
        } = new;
        self.made = self.made.saturating_add(1);
        let number = self.made;
        let id = format!("i-{:017x}", u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4);
        let zone = self.zones.iter().position(|it| *it == choice.zone).unwrap_or(0);
        // A subnet's first four addresses are AWS's own.
        let host = number.saturating_add(3);
        let name = format!("ip-10-{zone}-{}-{}", host / 256, host % 256);
        let machine = Machine {
            id: MachineId(id.clone()),
            state: MachineState::Pending,
            launched_at: now,
            token: Some(token.to_owned()),
            tags,
            image: choice.image.clone(),
            instance_type: choice.instance_type.clone(),
            zone: choice.zone.clone(),
            capacity_type: capacity_type.to_owned(),
            subnet: Some(choice.subnet.clone()),
            security_groups,
            reservation,
            placement_group,
            private_dns: Some(name),
        };
        let hidden = dice.span(SignedDuration::ZERO, HIDDEN_AT_MOST);
        let was = vec![(now, machine.state)];
        let kept = Kept { machine, shown_from: later(now, hidden), was };
        let launched = Launched {
            machine: MachineId(id.clone()),
            instance_type: choice.instance_type.clone(),
            zone: choice.zone.clone(),
            image: choice.image.clone(),
            capacity_type: capacity_type.to_owned(),
        };
        self.machines.insert(id.clone(), kept);
        self.tell_machine(&id, now);
        launched
    }

    /// `DescribeInstances`.
    pub fn machines(&self, cluster: &str, now: Timestamp) -> Vec<Machine> {
        let tag = format!("kubernetes.io/cluster/{cluster}");
        let then = self.as_of(Counterpart::Ec2, now);
        self.machines
            .values()
            .filter(|it| it.shown_from <= then && it.machine.tags.contains_key(&tag))
            .map(|it| {
                let state = it.was.iter().rev().find(|(since, _)| *since <= then);
                let state = state.map_or(it.machine.state, |(_, state)| *state);
                Machine { state, ..it.machine.clone() }
            })
            .collect()
    }

    /// `TerminateInstances`. One that is ending or gone is no error.
    pub fn terminate(&mut self, by: Actor, id: &str, now: Timestamp, dice: &mut Dice) -> Due {
        self.tell(now, by, Fact::TerminateAsked { machine: id.to_owned() });
        self.end(id, now, dice)
    }

    /// It goes, asked for or not.
    pub fn end(&mut self, id: &str, now: Timestamp, dice: &mut Dice) -> Due {
        let Some(kept) = self.machines.get_mut(id) else { return Vec::new() };
        if !kept.machine.state.live() {
            return Vec::new();
        }
        kept.becomes(MachineState::ShuttingDown, now);
        self.tell_machine(id, now);
        let takes = dice.span(SignedDuration::from_secs(15), SignedDuration::from_secs(90));
        vec![(later(now, takes), RegionEvent::Ended { machine: id.to_owned() })]
    }

    /// What is due happens. True if the machine is now running.
    pub fn on(&mut self, event: &RegionEvent, now: Timestamp) -> (Option<Happened>, Due) {
        match event {
            RegionEvent::Runs { machine } => {
                let Some(kept) = self.machines.get_mut(machine) else { return (None, Vec::new()) };
                if kept.machine.state != MachineState::Pending {
                    return (None, Vec::new());
                }
                kept.becomes(MachineState::Running, now);
                self.tell_machine(machine, now);
                (Some(Happened::Runs(machine.clone())), Vec::new())
            }
            RegionEvent::Ended { machine } => {
                let Some(kept) = self.machines.get_mut(machine) else { return (None, Vec::new()) };
                kept.becomes(MachineState::Terminated, now);
                self.tell_machine(machine, now);
                let event = RegionEvent::Forgotten { machine: machine.clone() };
                let due = vec![(later(now, SHOWN_AFTER_END), event)];
                (Some(Happened::Ended(machine.clone())), due)
            }
            RegionEvent::Forgotten { machine } => {
                self.machines.remove(machine);
                (None, Vec::new())
            }
        }
    }

    pub fn machine(&self, id: &str) -> Option<&Machine> {
        self.machines.get(id).map(|it| &it.machine)
    }

    /// The machine whose node is called so.
    pub fn machine_of_node(&self, node: &str) -> Option<&Machine> {
        self.machines
            .values()
            .map(|it| &it.machine)
            .find(|it| it.private_dns.as_deref() == Some(node) && it.state.live())
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &Machine> {
        self.machines.values().map(|it| &it.machine).filter(|it| it.state.live())
    }

    /// For the fleet at the beginning: it has been there for long.
    pub(crate) fn settle(
        &mut self,
        id: &str,
        name: Option<&str>,
        launched_at: Timestamp,
        tags: &BTreeMap<String, String>,
        now: Timestamp,
    ) {
        if let Some(kept) = self.machines.get_mut(id) {
            kept.becomes(MachineState::Running, launched_at);
            kept.machine.launched_at = launched_at;
            kept.shown_from = launched_at;
            kept.machine.tags.extend(tags.clone());
            if let Some(name) = name {
                kept.machine.private_dns = Some(name.to_owned());
            }
        }
        self.tell_machine(id, now);
    }

    fn tell_machine(&self, id: &str, now: Timestamp) {
        let Some(Kept { machine, .. }) = self.machines.get(id) else { return };
        let fact = Fact::Machine(trace::Machine {
            id: machine.id.0.clone(),
            token: machine.token.clone().unwrap_or_default(),
            state: match machine.state {
                MachineState::Pending => "pending",
                MachineState::Running => "running",
                MachineState::ShuttingDown => "shutting-down",
                MachineState::Stopped => "stopped",
                MachineState::Terminated => "terminated",
            },
            image: machine.image.to_string(),
            instance_type: machine.instance_type.clone(),
            zone: machine.zone.clone(),
            tags: machine.tags.clone(),
            node: machine.private_dns.clone(),
        });
        self.tell(now, Actor::Cloud, fact);
    }
}

impl Kept {
    fn becomes(&mut self, state: MachineState, now: Timestamp) {
        self.machine.state = state;
        self.was.push((now, state));
    }
}

/// What the rest of the world must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    Runs(String),
    Ended(String),
}

/// A machine to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewMachine<'a> {
    pub(crate) token: &'a str,
    pub(crate) choice: &'a Choice,
    pub(crate) capacity_type: &'a str,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) security_groups: BTreeSet<String>,
    pub(crate) reservation: Option<String>,
    pub(crate) placement_group: Option<String>,
}

pub(super) fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}
