//! What would somebody see who sees everything?

use std::cell::RefCell;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::Adapter;
use nodemolt_cluster::resources::WATCHED;
use nodemolt_cluster::transport::{Answer, Refusal, Request, Resource, Transport, Verb};
use nodemolt_core::catalog::{Observation, Query};
use nodemolt_core::launch::Template;
use nodemolt_core::seen::{MachineId, NetworkAsk};
use nodemolt_engine::port::{
    Cloud, CloudError, Cluster as _, LaunchError, LaunchRequest, Launched, Machine, Network,
    Offered,
};
use nodemolt_engine::{Act, Errand, Intent, Picture};
use serde_json::Value;

use super::{World, config};
use crate::executor::at_once;
use crate::faults::Counterpart;
use crate::kube::Kube;
use crate::region::Region;
use crate::replica::LocalClock;
use crate::trace::Actor;

/// The API server without a way between.
#[derive(Debug)]
pub(super) struct Direct {
    kube: Rc<RefCell<Kube>>,
    /// `None`: who only looks.
    by: Option<Actor>,
    now: Timestamp,
}

impl Direct {
    pub(super) fn writing(kube: Rc<RefCell<Kube>>, by: Actor, now: Timestamp) -> Self {
        Self { kube, by: Some(by), now }
    }
}

impl Transport for Direct {
    async fn send(&self, request: &Request) -> Result<Answer, Refusal> {
        let reads = matches!(request.verb, Verb::Get | Verb::List);
        let by = match (self.by, reads) {
            (Some(by), _) => by,
            (None, true) => Actor::Person,
            (None, false) => return Err(Refusal::NoAnswer("who looks does not write".to_owned())),
        };
        self.kube.borrow_mut().server.handle(by, request, self.now)
    }
}

/// EC2 for who only looks.
struct Window<'a> {
    region: &'a Region,
    cluster: &'a str,
    now: Timestamp,
}

impl Window<'_> {
    /// Who looks is answered no better than who acts.
    fn unless_throttled(&self) -> Result<(), CloudError> {
        if self.region.throttled.contains(&Counterpart::Ec2) {
            return Err(CloudError::Throttled { retry_after: None });
        }
        Ok(())
    }
}

const LOOKING: &str = "who looks does not act";

impl Cloud for Window<'_> {
    async fn ask(&self, query: &Query) -> Observation {
        self.region.ask(query, self.now)
    }

    async fn offered(&self) -> Result<Offered, CloudError> {
        self.unless_throttled().map(|()| self.region.offered())
    }

    async fn network(&self, ask: &NetworkAsk) -> Result<Network, CloudError> {
        self.unless_throttled().map(|()| self.region.network(ask))
    }

    async fn prepare(&self, _: &Template) -> Result<(), CloudError> {
        Err(CloudError::Refused(LOOKING.to_owned()))
    }

    async fn launch(&self, _: &LaunchRequest) -> Result<Launched, LaunchError> {
        Err(LaunchError::Refused(LOOKING.to_owned()))
    }

    async fn machines(&self) -> Result<Vec<Machine>, CloudError> {
        self.unless_throttled().map(|()| self.region.machines(self.cluster, self.now))
    }

    async fn terminate(&self, _: &MachineId) -> Result<(), CloudError> {
        Err(CloudError::Refused(LOOKING.to_owned()))
    }
}

/// So often somebody who looks asks EC2 again: an answer leads to a question at most so many times.
const ROUNDS: usize = 5;

impl World {
    /// An adapter whose eyes see everything as it is now, and that writes nothing.
    pub(super) fn onlooker(&self) -> Adapter<Direct> {
        let now = self.now();
        let adapter = Adapter::new(Direct { kube: Rc::clone(&self.kube), by: None, now });
        adapter.kubernetes(self.simulation.kubernetes);
        let kube = self.kube.borrow();
        for (resource, _) in WATCHED {
            adapter.hear_all(resource, kube.server.all(resource).map(|(_, it)| &**it), now);
        }
        adapter
    }

    /// What an engine would see now, were its watches complete: whoever leads and what it remembers, or
    /// somebody new who has asked all questions.
    pub fn picture(&self) -> Result<Picture, String> {
        let now = self.now();
        let adapter = self.onlooker();
        let records = at_once(adapter.records()).ok_or("the API server did not answer")?;
        let records = records.map_err(|it| it.to_string())?;
        let config = config(&self.simulation, 0);
        // A copy: looking must leave no mark on whoever leads.
        let leader = self.leader().and_then(|it| self.replicas.get(usize::from(it)));
        let remembered = leader.and_then(|it| it.process.as_ref()?.memory());
        let mut memory = remembered.map(nodemolt_engine::Memory::copied).unwrap_or_default();
        let cloud = Window { region: &self.region, cluster: &self.simulation.cluster, now };
        let clock = LocalClock::new(Rc::clone(&self.clock), SignedDuration::ZERO);
        for _ in 0..ROUNDS {
            let questions =
                nodemolt_engine::lacks(&mut memory, &config, &adapter.view(), &records, now);
            if questions.is_empty() {
                break;
            }
            for question in questions {
                let act = Act {
                    intent: Intent::Ask(question.clone()),
                    errand: Errand::Ask(question),
                    epoch: records.ledger.epoch,
                    decided_at: now,
                    leads_until: Timestamp::MAX,
                    voluntary: false,
                    allowed: SignedDuration::from_secs(1),
                };
                let done = nodemolt_engine::perform(&act, &config, &cloud, &adapter, &clock);
                if let Some(done) = at_once(done) {
                    memory.done(&act, done, now);
                }
            }
        }
        Ok(nodemolt_engine::look(&mut memory, &config, &adapter.view(), &records, now))
    }

    /// By how much the clock of one of us is wrong: what it wrote of times is wrong by as much.
    pub fn clock_wrong_by(&self, operator: &str) -> SignedDuration {
        let number = operator.strip_prefix("operator-").and_then(|it| it.parse::<usize>().ok());
        number.and_then(|it| self.replicas.get(it)).map_or(SignedDuration::ZERO, |it| it.wrong_by)
    }

    /// All objects of a kind, as they are stored.
    pub fn objects(&self, resource: Resource) -> Vec<Rc<Value>> {
        self.kube.borrow().server.all(resource).map(|(_, it)| Rc::clone(it)).collect()
    }
}
