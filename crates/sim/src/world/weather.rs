//! What goes wrong now?
//!
//! Faults that last, and how they bend what is sent, answered and told. Without any, calls take
//! milliseconds and watches lag a little: that is good weather, and not no weather.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::resources;
use nodemolt_cluster::transport::Resource;
use nodemolt_core::seen::Kind;
use serde_json::{Value, json};

use super::{ActError, Event, World};
use crate::act::Behaviour;
use crate::dice::Dice;
use crate::faults::{Counterpart, Fault, Moment, Side, Whom, Writing};
use crate::kinds;
use crate::kube::{Fate, KubeFault};
use crate::replica::{ProcessEvent, after};
use crate::trace::{Actor, Fact};

#[derive(Debug, Default)]
pub(super) struct Weather {
    next: u64,
    active: BTreeMap<u64, Active>,
    /// What waits for its moment.
    armed: Vec<Armed>,
    /// What the next list lacks that would have it.
    lacking: BTreeSet<String>,
    /// What the last list lacked that would have had it. The one after that has it again: what two of them lack is gone.
    lacked: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy)]
struct Armed {
    whom: Whom,
    side: Side,
    /// `None`: of whatever is written first.
    wrote: Option<Writing>,
    blow: Blow,
}

/// What can happen to a process at a write, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blow {
    Crash(SignedDuration),
    Freeze(SignedDuration),
}

#[derive(Debug)]
struct Active {
    fault: Fault,
    /// What it replaced, to be put back.
    before: Option<Value>,
}

/// From the API server to a watch that does not lag, in milliseconds.
const LAG: (i64, i64) = (2, 150);

impl Weather {
    fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.active.values().map(|it| &it.fault)
    }

    /// The worst of those that are on.
    fn percent(&self, of: impl Fn(&Fault) -> Option<u8>) -> u64 {
        u64::from(self.faults().filter_map(of).max().unwrap_or(0))
    }

    pub(super) fn loses_request(&self, dice: &mut Dice) -> bool {
        let percent = self.percent(|it| {
            if let Fault::LoseRequests { percent, .. } = it { Some(*percent) } else { None }
        });
        percent > 0 && dice.chance(percent * 10)
    }

    pub(super) fn loses_answer(&self, dice: &mut Dice) -> bool {
        let percent = self.percent(|it| {
            if let Fault::LoseAnswers { percent, .. } = it { Some(*percent) } else { None }
        });
        percent > 0 && dice.chance(percent * 10)
    }

    pub(super) fn conflicts(&self, dice: &mut Dice) -> bool {
        let percent = self.percent(|it| {
            if let Fault::Conflicts { percent, .. } = it { Some(*percent) } else { None }
        });
        percent > 0 && dice.chance(percent * 10)
    }

    /// Whether the API server gives up an eviction for conflicts over its budget.
    pub(super) fn gives_up(&self, dice: &mut Dice) -> bool {
        let percent = self.percent(|it| {
            if let Fault::EvictionsGiveUp { percent, .. } = it { Some(*percent) } else { None }
        });
        percent > 0 && dice.chance(percent * 10)
    }

    /// Whether EC2 makes two machines where one was asked for.
    pub(super) fn makes_twins(&self, dice: &mut Dice) -> bool {
        let percent =
            self.percent(
                |it| if let Fault::Twins { percent, .. } = it { Some(*percent) } else { None },
            );
        percent > 0 && dice.chance(percent * 10)
    }

    pub(super) fn request_late_by(&self, dice: &mut Dice) -> Option<SignedDuration> {
        let (percent, by) = self
            .faults()
            .filter_map(|it| {
                let Fault::LateRequests { percent, by, .. } = it else { return None };
                Some((*percent, *by))
            })
            .max()?;
        dice.chance(u64::from(percent) * 10).then_some(by)
    }

    /// How old its lists are.
    fn stale_by(&self, service: Counterpart) -> SignedDuration {
        let all = self.faults().filter_map(|it| {
            let Fault::Stale { whom, by, .. } = it else { return None };
            (*whom == service).then_some(*by)
        });
        all.max().unwrap_or_default()
    }

    pub(super) fn late_by(&self, dice: &mut Dice) -> Option<SignedDuration> {
        let (percent, by) = self
            .faults()
            .filter_map(|it| {
                let Fault::LateAnswers { percent, by, .. } = it else { return None };
                Some((*percent, *by))
            })
            .max()?;
        dice.chance(u64::from(percent) * 10).then_some(by)
    }

    pub(super) fn throttles(&self, service: Counterpart) -> bool {
        self.faults().any(|it| matches!(it, Fault::Throttle { whom, .. } if *whom == service))
    }

    /// How much is still to be left out.
    pub(super) fn lacking(&self) -> usize {
        self.lacking.len()
    }

    /// Whether this is left out, once, and not twice in a row.
    pub(super) fn lacks(&mut self, id: &str) -> bool {
        let lacks = !self.lacked.remove(id) && self.lacking.remove(id);
        if lacks {
            self.lacked.insert(id.to_owned());
        }
        lacks
    }

    /// What becomes of a machine that runs now.
    pub(super) fn fate(&self, image: Behaviour) -> Fate {
        let any = |of: fn(&Fault) -> bool| self.faults().any(of);
        match image {
            Behaviour::Stillborn => Fate::NeverJoins,
            _ if any(|it| matches!(it, Fault::NeverJoins { .. })) => Fate::NeverJoins,
            Behaviour::NeverReady => Fate::NeverReady,
            _ if any(|it| matches!(it, Fault::NeverReady { .. })) => Fate::NeverReady,
            Behaviour::Flapping => Fate::Flaps,
            Behaviour::Good => Fate::Well,
        }
    }

    /// When a watch tells of what has just happened.
    pub(super) fn hears_at(
        &self,
        resource: Resource,
        now: Timestamp,
        dice: &mut Dice,
    ) -> Timestamp {
        let usual =
            dice.span(SignedDuration::from_millis(LAG.0), SignedDuration::from_millis(LAG.1));
        let kind = resources::watched(resource).map(nodemolt_api::eyes::Watched::kind);
        let lags = self.faults().filter_map(|it| {
            let Fault::WatchLag { kind: of, by, .. } = it else { return None };
            concerns(*of, kind).then_some(*by)
        });
        after(now, usual + lags.max().unwrap_or(SignedDuration::ZERO))
    }

    /// What waits for this moment of this replica, if anything does.
    pub(super) fn strikes(
        &mut self,
        number: u8,
        leads: bool,
        side: Side,
        wrote: Writing,
    ) -> Option<Blow> {
        let meant = |whom: Whom| match whom {
            Whom::Replica(it) => it == number,
            Whom::Leader => leads,
        };
        let at = self.armed.iter().position(|it| {
            meant(it.whom) && it.side == side && it.wrote.is_none_or(|it| it == wrote)
        })?;
        Some(self.armed.remove(at).blow)
    }
}

fn concerns(of: Option<Kind>, kind: Option<Kind>) -> bool {
    of.is_none() || of == kind
}

impl World {
    /// Something goes wrong from now on.
    pub(super) fn fault(&mut self, fault: &Fault) -> Result<String, ActError> {
        let now = self.now();
        if *fault == Fault::End {
            self.end_faults();
            return Ok("nothing more goes wrong".to_owned());
        }
        let fault = &self.aimed(fault)?;
        let whom = self.check(fault)?;
        self.tell(Actor::Fate, Fact::Fault { what: fault.to_string() });
        // What waits for its moment has not struck yet, and what finds nobody never does.
        let armed = matches!(
            fault,
            Fault::Crash { when: Moment::At(..), .. } | Fault::Freeze { when: Moment::At(..), .. }
        );
        let nobody = whom.is_none()
            && matches!(fault, Fault::Crash { .. } | Fault::Freeze { .. } | Fault::Skew { .. });
        self.struck.faults += usize::from(!armed && !nobody);
        let mut before = None;
        match fault {
            Fault::Crash { whom: meant, when, down } => {
                match (when, whom) {
                    (Moment::Now, Some(number)) => self.crash(number, *down),
                    (Moment::Now, None) => {}
                    (Moment::At(side, wrote), _) => {
                        self.arm(*meant, *side, *wrote, Blow::Crash(*down));
                    }
                }
                return Ok(String::new());
            }
            Fault::Freeze { whom: meant, when, lasts } => {
                match (when, whom) {
                    (Moment::Now, Some(number)) => self.freeze(number, *lasts),
                    (Moment::Now, None) => {}
                    (Moment::At(side, wrote), _) => {
                        self.arm(*meant, *side, *wrote, Blow::Freeze(*lasts));
                    }
                }
                return Ok(String::new());
            }
            Fault::Skew { seconds, .. } => {
                if let Some(number) = whom {
                    self.skew(number, SignedDuration::from_secs(*seconds));
                }
                return Ok(String::new());
            }
            Fault::NodeDies { node } => {
                let id = self.region.machine_of_node(node).map(|it| it.id.0.clone());
                if let Some(id) = id {
                    let due = self.region.end(&id, now, &mut self.dice.region);
                    self.put_region(due);
                }
                return Ok(String::new());
            }
            Fault::WatchDrop { kind } => {
                self.drop_watches(*kind);
                return Ok(String::new());
            }
            Fault::ListsLack { id } => {
                self.weather.lacking.insert(id.clone());
                return Ok(String::new());
            }
            Fault::Throttle { whom, .. } => {
                self.region.throttled.insert(*whom);
            }
            Fault::NoCapacity { instance_type, zone, .. } => {
                self.region.no_capacity.push((instance_type.clone(), zone.clone()));
            }
            Fault::NodeFlaps { node, .. } => self.change_fate(node, Fate::Flaps),
            Fault::PdbNever { namespace, name, .. } => {
                let none = json!({"maxUnavailable": 0, "minAvailable": null});
                before = self.change_pdb(namespace, name, &none);
            }
            Fault::LoseRequests { .. }
            | Fault::LoseAnswers { .. }
            | Fault::LateRequests { .. }
            | Fault::LateAnswers { .. }
            | Fault::Stale { .. }
            | Fault::Conflicts { .. }
            | Fault::EvictionsGiveUp { .. }
            | Fault::Twins { .. }
            | Fault::NeverJoins { .. }
            | Fault::NeverReady { .. }
            | Fault::WatchLag { .. }
            | Fault::End => {}
        }
        self.weather.next += 1;
        let number = self.weather.next;
        self.weather.active.insert(number, Active { fault: fault.clone(), before });
        self.grow_stale();
        if let Some(lasts) = fault.lasts() {
            self.put(after(now, lasts), Event::FaultEnds(number));
        }
        Ok(String::new())
    }

    fn arm(&mut self, whom: Whom, side: Side, wrote: Option<Writing>, blow: Blow) {
        self.weather.armed.push(Armed { whom, side, wrote, blow });
    }

    /// It stands still, and goes on where it was.
    pub(super) fn freeze(&mut self, number: u8, lasts: SignedDuration) {
        let until = after(self.now(), lasts);
        self.replicas[usize::from(number)].frozen_until = Some(until);
        self.put(until, Event::Thaws(number));
    }

    fn grow_stale(&mut self) {
        for service in [Counterpart::Ec2, Counterpart::Ssm] {
            let by = self.weather.stale_by(service);
            self.region.stale.insert(service, by);
        }
    }

    /// The same fault with names for `@successor` and the like.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others name no node")]
    fn aimed(&mut self, fault: &Fault) -> Result<Fault, ActError> {
        let mut fault = fault.clone();
        match &mut fault {
            Fault::NodeDies { node } | Fault::NodeFlaps { node, .. } => {
                *node = self.resolved(kinds::NODE, node)?;
            }
            _ => {}
        }
        Ok(fault)
    }

    /// Whom it strikes, or why it cannot.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others name nobody")]
    fn check(&self, fault: &Fault) -> Result<Option<u8>, ActError> {
        match fault {
            // At its next write: whoever leads then.
            Fault::Crash { whom: Whom::Leader, when, .. }
            | Fault::Freeze { whom: Whom::Leader, when, .. }
                if *when != Moment::Now =>
            {
                Ok(self.leader())
            }
            Fault::Crash { whom, .. } | Fault::Freeze { whom, .. } | Fault::Skew { whom, .. } => {
                match whom {
                    Whom::Replica(number) if usize::from(*number) < self.replicas.len() => {
                        Ok(Some(*number))
                    }
                    Whom::Replica(number) => Err(ActError::unknown(match self.replicas.len() {
                        0 | 1 => format!("there is no operator-{number}; operator-0 is the only one"),
                        all => format!(
                            "there is no operator-{number}; there are operator-0 to operator-{}",
                            all - 1
                        ),
                    })),
                    Whom::Leader => match self.leader() {
                        Some(number) => Ok(Some(number)),
                        None => Err(ActError {
                            told: "nobody leads now; name one of us, such as operator-0, or let time pass until one leads".to_owned(),
                            gone: true,
                            mistyped: true,
                        }),
                    },
                }
            }
            Fault::NoCapacity { instance_type, zone, .. } => {
                self.offered(instance_type.as_deref(), zone.as_deref()).map_err(ActError::unknown)?;
                Ok(None)
            }
            Fault::NodeDies { node } | Fault::NodeFlaps { node, .. } => {
                if self.region.machine_of_node(node).is_some() {
                    return Ok(None);
                }
                let there = self.kube.borrow().server.get(kinds::NODE, "", node).is_some();
                let told = format!("no machine that runs is node `{node}`");
                Err(ActError { mistyped: !there, ..ActError::gone(told) })
            }
            Fault::ListsLack { id } if !self.region.has(id) => {
                Err(ActError::gone(format!("there is no image, subnet or security group `{id}`")))
            }
            Fault::PdbNever { namespace, name, .. } => {
                match self.kube.borrow().server.get(kinds::PDB, namespace, name) {
                    Some(_) => Ok(None),
                    None => Err(ActError::gone(format!(
                        "there is no PodDisruptionBudget {namespace}/{name}"
                    ))),
                }
            }
            _ => Ok(None),
        }
    }

    /// What EC2 never offers cannot run out: whoever names it has mistyped.
    fn offered(&self, instance_type: Option<&str>, zone: Option<&str>) -> Result<(), String> {
        if let Some(name) = instance_type
            && self.region.types().iter().all(|it| it.name != name)
        {
            let all: Vec<&str> = self.region.types().iter().map(|it| it.name.as_str()).collect();
            return Err(format!(
                "EC2 offers no instance type `{name}` here; it offers {}",
                all.join(", ")
            ));
        }
        if let Some(zone) = zone
            && !self.simulation.zones.iter().any(|it| it == zone)
        {
            return Err(format!(
                "`{zone}` is no zone of {}; there are {}",
                self.simulation.region,
                self.simulation.zones.join(", ")
            ));
        }
        Ok(())
    }

    /// Who leads, by their own belief: the one whose lease runs longest.
    pub(super) fn leader(&self) -> Option<u8> {
        let processes = self.replicas.iter().filter_map(|it| it.process.as_ref());
        processes.filter(|it| it.leads()).map(|it| it.number).next()
    }

    pub(super) fn skew(&mut self, number: u8, wrong_by: SignedDuration) {
        let Some(replica) = self.replicas.get_mut(usize::from(number)) else { return };
        replica.wrong_by = wrong_by;
        if let Some(process) = &replica.process {
            process.clock.set_wrong_by(wrong_by);
        }
    }

    fn drop_watches(&mut self, kind: Option<Kind>) {
        let now = self.now();
        let revision = self.kube.borrow().server.revision();
        let mut due = Vec::new();
        for process in self.replicas.iter_mut().filter_map(|it| it.process.as_mut()) {
            for (resource, watched) in resources::WATCHED {
                if !concerns(kind, Some(watched.kind())) {
                    continue;
                }
                process.lose_watch(resource);
                if process.hears_of(resource, revision) {
                    let at = self.weather.hears_at(resource, now, &mut self.dice.watch);
                    due.push((at, Event::Process(process.id, ProcessEvent::Deliver(resource))));
                }
            }
        }
        for (at, event) in due {
            self.put(at, event);
        }
    }

    fn change_fate(&mut self, node: &str, fate: Fate) {
        let Some(id) = self.region.machine_of_node(node).map(|it| it.id.0.clone()) else { return };
        let fault = KubeFault::Machine { id, fate };
        let now = self.now();
        let due = self.kube.borrow_mut().fault(&fault, now, &mut self.dice.kube);
        self.put_kube(due);
    }

    /// What it said before.
    fn change_pdb(&mut self, namespace: &str, name: &str, spec: &Value) -> Option<Value> {
        let found = self.kube.borrow().server.get(kinds::PDB, namespace, name).cloned()?;
        let old = json!({
            "maxUnavailable": found["spec"].get("maxUnavailable").cloned(),
            "minAvailable": found["spec"].get("minAvailable").cloned(),
        });
        self.patch(Actor::Fate, kinds::PDB, Some(namespace), name, json!({"spec": spec})).ok()?;
        Some(old)
    }

    /// One fault is over.
    pub(super) fn lift(&mut self, number: u64) {
        let Some(Active { fault, before }) = self.weather.active.remove(&number) else { return };
        match &fault {
            Fault::Throttle { whom, .. } => {
                if !self.weather.throttles(*whom) {
                    self.region.throttled.remove(whom);
                }
            }
            Fault::NoCapacity { instance_type, zone, .. } => {
                let lack = (instance_type.clone(), zone.clone());
                if let Some(at) = self.region.no_capacity.iter().position(|it| *it == lack) {
                    self.region.no_capacity.remove(at);
                }
            }
            Fault::NodeFlaps { node, .. } => self.change_fate(node, Fate::Well),
            Fault::PdbNever { namespace, name, .. } => {
                if let Some(before) = &before {
                    self.change_pdb(namespace, name, before);
                }
            }
            Fault::Stale { .. } => self.grow_stale(),
            Fault::Crash { .. }
            | Fault::Freeze { .. }
            | Fault::Skew { .. }
            | Fault::LoseRequests { .. }
            | Fault::LoseAnswers { .. }
            | Fault::LateRequests { .. }
            | Fault::LateAnswers { .. }
            | Fault::Conflicts { .. }
            | Fault::EvictionsGiveUp { .. }
            | Fault::Twins { .. }
            | Fault::NeverJoins { .. }
            | Fault::NeverReady { .. }
            | Fault::NodeDies { .. }
            | Fault::WatchLag { .. }
            | Fault::WatchDrop { .. }
            | Fault::ListsLack { .. }
            | Fault::End => {}
        }
    }

    /// From here on nothing more goes wrong.
    fn end_faults(&mut self) {
        let now = self.now();
        let numbers: Vec<u64> = self.weather.active.keys().copied().collect();
        for number in numbers {
            self.lift(number);
        }
        self.weather.armed.clear();
        self.weather.lacking.clear();
        for number in 0..self.replicas.len() {
            let number = u8::try_from(number).unwrap_or(u8::MAX);
            self.skew(number, SignedDuration::ZERO);
            if self.replicas[usize::from(number)].frozen_until.is_some() {
                self.replicas[usize::from(number)].frozen_until = Some(now);
                self.put(now, Event::Thaws(number));
            }
        }
        let due = self.kube.borrow_mut().fault(&KubeFault::Over, now, &mut self.dice.kube);
        self.put_kube(due);
        self.tell(Actor::Fate, Fact::FaultsEnd);
    }
}
