//! Which little world are claims tried in?
//!
//! Both ports, in memory, on the values themselves: every write shows in the view at once, and everything
//! that was asked is on record. The simulator has the real thing.

use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::ask::{Age, Ask};
use nodemolt_core::bootstrap::{self, IpFamily, Kubelet, OfClass, OfPool, Placement};
use nodemolt_core::catalog::{Observation, Query};
use nodemolt_core::drain::{self, Owner, PodId, PodPhase, Tier};
use nodemolt_core::image::ImageId;
use nodemolt_core::launch::{Settings, Template};
use nodemolt_core::node::{ImageRef, Stamp};
use nodemolt_core::seen::{
    Attempt, Claim, Class, ClassKey, Kind, MachineId, NetworkAsk, Node, Pod, Pool, Readiness,
    Revision, UNREGISTERED_TAINT, View,
};
use nodemolt_core::wanted::{Beside, PoolTemplate, Purpose, Wanted};
use nodemolt_fit::capacity::NodeSettings;
use nodemolt_fit::pod::{Demand, Namespace};
use nodemolt_fit::pool::Price;
use nodemolt_fit::taint::{Effect, Taint};
use nodemolt_fit::{self as fit, Family, Types, label};

use crate::claims::{self, ClaimAct, ClaimDone, Decided, Here, Known, Memory};
use crate::port::{
    ClaimState, Cloud, CloudError, Cluster, ClusterError, EvictAnswer, LaunchError, LaunchRequest,
    Launched, Leadership, Machine, MachineState, Network, NewClaim, NewMemory, NewNodeState,
    Object, Offered, Records, Reservation, Status, Subnet,
};
use crate::record::{Ledger, Recorded};

pub(super) const GOOD: &str = "ami-0000000a";
pub(super) const NEWER: &str = "ami-0000000b";

pub(super) fn at(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
}

pub(super) fn image(id: &str) -> ImageId {
    id.parse().unwrap()
}

pub(super) fn requirement(key: &str, values: &[&str]) -> fit::Written {
    fit::Written {
        key: key.to_owned(),
        operator: fit::Operator::In,
        values: values.iter().map(|it| (*it).to_owned()).collect(),
        min_values: None,
    }
}

/// Nothing here ever waits.
pub(super) fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("it waits"),
    }
}

/// What the next call for a machine does.
#[derive(Debug, Clone)]
pub(super) enum Next {
    /// Makes it, and the answer is lost.
    Lose,
    /// Nothing is made.
    Fail(LaunchError),
}

pub(super) struct World {
    pub view: RefCell<View>,
    pub now: Cell<Timestamp>,
    pub memory: Memory,
    pub here: Here,
    pub offered: Option<Offered>,
    pub network: Option<Network>,
    pub wanted: Option<Wanted>,
    pub open: BTreeMap<String, Purpose>,
    /// Complete lists, the oldest first.
    pub lists: Vec<(BTreeMap<MachineId, Arc<Machine>>, Timestamp)>,
    pub machines: RefCell<BTreeMap<MachineId, Machine>>,
    pub next: RefCell<VecDeque<Next>>,
    /// Refuses the next write of a claim's status.
    pub conflict: Cell<bool>,
    /// Another leads from here on.
    pub deposed: Cell<bool>,
    /// Pods and nodes that only the API server knows of: watches have not told of them, or tell otherwise.
    pub hidden: RefCell<View>,
    pub log: RefCell<Vec<String>>,
    revision: Cell<u64>,
}

impl World {
    pub(super) fn new() -> Self {
        let fresh = Kind::ALL.into_iter().map(|it| (it, at(0))).collect();
        let mut view = View { fresh, ..View::default() };
        view.classes.insert(ClassKey::own("web"), class());
        view.pools.insert("web".to_owned(), pool());
        let world = Self {
            view: RefCell::new(view),
            now: Cell::new(at(0)),
            memory: Memory::default(),
            here: here(),
            offered: Some(offered(&["m5.large", "m5.xlarge", "c5.large", "g5.2xlarge"])),
            network: Some(network()),
            wanted: Some(wants(GOOD)),
            open: BTreeMap::new(),
            lists: Vec::new(),
            machines: RefCell::default(),
            next: RefCell::default(),
            conflict: Cell::new(false),
            deposed: Cell::new(false),
            hidden: RefCell::default(),
            log: RefCell::default(),
            revision: Cell::new(1),
        };
        world.add(claim("web-1"));
        world
    }

    pub(super) fn add(&self, claim: Claim) {
        self.view.borrow_mut().claims.insert(claim.name.clone(), claim);
    }

    pub(super) fn claim(&self) -> Claim {
        self.view.borrow().claims.get("web-1").cloned().unwrap()
    }

    pub(super) fn edit(&self, edit: impl FnOnce(&mut Claim)) {
        let revision = self.next_revision();
        let mut view = self.view.borrow_mut();
        let claim = view.claims.get_mut("web-1").unwrap();
        edit(claim);
        claim.revision = revision;
    }

    fn next_revision(&self) -> Revision {
        self.revision.set(self.revision.get() + 1);
        Revision(self.revision.get().to_string())
    }

    /// Time passes, and watches say that nothing else has.
    pub(super) fn pass(&self, length: SignedDuration) {
        self.now.set(self.now.get() + length);
        let now = self.now.get();
        self.view.borrow_mut().fresh.values_mut().for_each(|it| *it = now);
    }

    /// EC2 lists its machines.
    pub(super) fn list(&mut self) {
        let all = self.machines.borrow().values().cloned().map(Arc::new).collect::<Vec<_>>();
        let all = all.into_iter().map(|it| (it.id.clone(), it)).collect();
        self.lists.push((all, self.now.get()));
    }

    pub(super) fn decide(&mut self) -> Decided {
        let now = self.now.get();
        self.memory.look(&self.view.borrow(), now);
        let view = self.view.borrow();
        let key = ClassKey::own("web");
        let of = |purpose| (key.clone(), "web".to_owned(), purpose);
        let wanted =
            self.wanted.iter().flat_map(|it| [(of(Purpose::Wave), it), (of(Purpose::Other), it)]);
        let mut lists = self.lists.iter().rev().map(|(all, at)| (all, *at));
        let known = Known {
            here: &self.here,
            offered: self.offered.as_ref(),
            networks: self.network.iter().map(|it| (key.clone(), it)).collect(),
            machines: lists.next(),
            machines_before: lists.next(),
            wanted: wanted.collect(),
            open: self.open.clone(),
            counted_on: BTreeSet::new(),
            lingering: BTreeMap::new(),
            granted: BTreeMap::new(),
            memory: &self.memory,
        };
        let decided = claims::decide(&view, &known, now);
        drop(view);
        self.memory.withhold(&decided.withheld, now);
        decided
    }

    pub(super) fn perform(&mut self, act: &ClaimAct) -> ClaimDone {
        let answer =
            done(claims::perform(act, self, self, async || self.stands(), || self.now.get()));
        self.memory.learn(act, &answer, self.now.get());
        answer
    }

    fn stands(&self) -> Result<(), String> {
        if self.deposed.get() { Err("another leads".to_owned()) } else { Ok(()) }
    }

    /// One turn: decides, and performs all of it.
    pub(super) fn turn(&mut self) -> Vec<ClaimDone> {
        let acts = self.decide().acts;
        acts.iter().map(|it| self.perform(it)).collect()
    }

    /// What was asked of the world since the last time.
    pub(super) fn heard(&self) -> Vec<String> {
        self.log.take()
    }

    fn say(&self, what: impl Into<String>) {
        self.log.borrow_mut().push(what.into());
    }

    /// The node of a machine joins, with the taint that it was told at boot.
    pub(super) fn join(&self, name: &str, machine: &str) {
        let mut view = self.view.borrow_mut();
        view.nodes.insert(name.to_owned(), node(name, machine));
    }

    pub(super) fn edit_node(&self, name: &str, edit: impl FnOnce(&mut Node)) {
        edit(self.view.borrow_mut().nodes.get_mut(name).unwrap());
    }

    pub(super) fn run_pod(&self, name: &str, node: &str) {
        self.view.borrow_mut().pods.insert(pod(name, node));
    }

    /// One that no watch has told of.
    pub(super) fn run_hidden_pod(&self, name: &str, node: &str) {
        self.hidden.borrow_mut().pods.insert(pod(name, node));
    }

    pub(super) fn end_machine(&self, id: &str) {
        let mut machines = self.machines.borrow_mut();
        machines.get_mut(&MachineId(id.to_owned())).unwrap().state = MachineState::Terminated;
    }
}

fn pod(name: &str, node: &str) -> Pod {
    let id =
        PodId { namespace: "shop".to_owned(), name: name.to_owned(), uid: format!("uid-{name}") };
    let drain = nodemolt_core::drain::Pod {
        id,
        labels: BTreeMap::new(),
        phase: PodPhase::Running,
        ready: true,
        owner: Owner::Workload { kind: "ReplicaSet".to_owned(), name: "shop".to_owned() },
        tier: Tier::Ordinary,
        tolerates_cordon: false,
        protection: None,
        grace: SignedDuration::from_secs(30),
        ends_at: None,
        namespace_terminating: false,
    };
    let namespace = Arc::new(Namespace::named("shop"));
    Pod {
        drain: Arc::new(drain),
        fit: fit::pod::Pod::new(&namespace, name, &Arc::new(Demand::default())),
        node: Some(node.to_owned()),
        created_at: at(0),
        owner_uid: None,
    }
}

pub(super) fn here() -> Here {
    Here {
        cluster: bootstrap::Cluster {
            name: "blue".to_owned(),
            endpoint: "https://example.com".to_owned(),
            certificate_authority: "Y2E=".to_owned(),
            service_cidr: Some("10.0.0.0/16".to_owned()),
            dns: Vec::new(),
            ip_family: IpFamily::V4,
        },
        region: "eu-west-1".to_owned(),
        profiles: BTreeMap::new(),
        groups: Vec::new(),
    }
}

fn class() -> Class {
    Class {
        key: ClassKey::own("web"),
        uid: "class-1".to_owned(),
        generation: 1,
        ask: Ask {
            class: "web".to_owned(),
            labels: BTreeMap::new(),
            family: Family::Al2023,
            terms: Vec::new(),
            minimum_age: Age::NONE,
        },
        launch: Settings::of("web", Family::Al2023, "nodes"),
        boot: OfClass {
            name: "web".to_owned(),
            label: "nodemolt.dev/ec2nodeclass".to_owned(),
            family: Family::Al2023,
            kubelet: Kubelet::default(),
            instance_store_raid0: false,
            placement: Placement::default(),
            user_part: String::new(),
            release: None,
        },
        offers: NodeSettings::of(Family::Al2023),
        network: NetworkAsk::default(),
        deleting: false,
    }
}

fn pool() -> Pool {
    Pool {
        name: "web".to_owned(),
        uid: "pool-1".to_owned(),
        generation: 1,
        class: ClassKey::own("web"),
        template: PoolTemplate::default(),
        requirements: Vec::new(),
        boot: OfPool {
            name: "web".to_owned(),
            class: ("web".to_owned(), "nodemolt.dev".to_owned()),
            labels: BTreeMap::from([("team".to_owned(), "web".to_owned())]),
            capacity_type: None,
            taints: Vec::new(),
            label_fields: BTreeMap::new(),
            taint_fields: Vec::new(),
        },
        fit: fit::pool::Pool::default(),
        budgets: Vec::new(),
        replicas: None,
        upgrade_asked_at: None,
        deleting: false,
    }
}

pub(super) fn stamp(digest: &str) -> Stamp {
    Stamp { digest: digest.to_owned(), fields: BTreeMap::new() }
}

pub(super) fn claim(name: &str) -> Claim {
    Claim {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        revision: Revision("1".to_owned()),
        pool: Some("web".to_owned()),
        class: ClassKey::own("web"),
        labels: BTreeMap::from([("team".to_owned(), "web".to_owned())]),
        annotations: BTreeMap::from([
            ("example.com/note".to_owned(), "kept".to_owned()),
            ("nodemolt.dev/attempt".to_owned(), "not for nodes".to_owned()),
        ]),
        created_at: at(0),
        deleting_since: None,
        held: true,
        finalizers: Vec::new(),
        requirements: vec![requirement(label::CAPACITY_TYPE, &["on-demand"])],
        taints: Vec::new(),
        startup_taints: Vec::new(),
        requests: BTreeMap::new(),
        termination_grace_period: None,
        expire_after: None,
        attempt: None,
        machine: None,
        node: None,
        image: None,
        capacity: BTreeMap::new(),
        allocatable: BTreeMap::new(),
        stages: BTreeMap::new(),
        class_stamp: None,
        template_stamp: None,
        foreign: Vec::new(),
        protection: None,
        upgrade_asked_at: None,
        successor_of: None,
    }
}

pub(super) fn offered(names: &[&str]) -> Offered {
    let types = names.iter().map(|it| Types::shipped().find(it).unwrap().clone());
    let zones = ["eu-west-1a", "eu-west-1b"].map(str::to_owned);
    Offered {
        types: types.collect(),
        zones: names.iter().map(|it| ((*it).to_owned(), zones.clone().into())).collect(),
        on_demand: BTreeMap::from([
            ("m5.large".to_owned(), Price(107)),
            ("m5.xlarge".to_owned(), Price(214)),
            ("c5.large".to_owned(), Price(96)),
            ("g5.2xlarge".to_owned(), Price(3305)),
        ]),
        spot: BTreeMap::from([
            (("m5.large".to_owned(), "eu-west-1a".to_owned()), Price(40)),
            (("m5.large".to_owned(), "eu-west-1b".to_owned()), Price(99)),
            (("c5.large".to_owned(), "eu-west-1b".to_owned()), Price(50)),
        ]),
    }
}

fn network() -> Network {
    let subnet = |id: &str, zone: &str, free_addresses| Subnet {
        id: id.to_owned(),
        zone: zone.to_owned(),
        zone_id: None,
        free_addresses,
    };
    Network {
        subnets: vec![
            subnet("subnet-a1", "eu-west-1a", 10),
            subnet("subnet-a2", "eu-west-1a", 90),
            subnet("subnet-b1", "eu-west-1b", 20),
            subnet("subnet-c1", "eu-west-1c", 0),
        ],
        security_groups: BTreeMap::from([("sg-0a".to_owned(), None)]),
        reservations: vec![Reservation {
            id: "cr-0a".to_owned(),
            instance_type: "m5.xlarge".to_owned(),
            zone: "eu-west-1b".to_owned(),
            remaining: 1,
        }],
    }
}

pub(super) fn wants(id: &str) -> Wanted {
    let wanted = ImageRef { id: image(id), name: None, dated: None };
    let types = Types::shipped().iter().map(|it| Arc::from(it.name.as_str()));
    Wanted::image(wanted, types).beside(Beside::default())
}

fn node(name: &str, machine: &str) -> Node {
    let amounts = [("cpu".to_owned(), fit::Quantity::from_units(2))];
    Node {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        revision: Revision("1".to_owned()),
        fit: fit::node::Node {
            name: name.to_owned(),
            taints: vec![Taint::new(UNREGISTERED_TAINT, "", Effect::NoExecute)],
            allocatable: amounts.into(),
            ..fit::node::Node::default()
        },
        created_at: at(0),
        deleting_since: None,
        held: false,
        finalizers: Vec::new(),
        machine: Some(MachineId(machine.to_owned())),
        ready: Readiness::NotReady,
        ready_since: None,
        kubelet: None,
        cordoned_by: None,
        protection: None,
        upgrade_asked_at: None,
    }
}

impl Cloud for World {
    async fn ask(&self, _: &Query) -> Observation {
        unreachable!("claims ask for no image")
    }

    async fn offered(&self) -> Result<Offered, CloudError> {
        unreachable!("claims are told")
    }

    async fn network(&self, _: &NetworkAsk) -> Result<Network, CloudError> {
        unreachable!("claims are told")
    }

    async fn prepare(&self, template: &Template) -> Result<(), CloudError> {
        self.say(format!("prepare for {}", template.image));
        Ok(())
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, LaunchError> {
        let LaunchRequest { token, request } = request;
        self.say(format!("launch {token}"));
        let answer = |it: &Machine| Launched {
            machine: it.id.clone(),
            instance_type: it.instance_type.clone(),
            zone: it.zone.clone(),
            image: it.image.clone(),
            capacity_type: it.capacity_type.clone(),
        };
        let mut machines = self.machines.borrow_mut();
        if let Some(made) = machines.values().find(|it| it.token.as_ref() == Some(token)) {
            return Ok(answer(made));
        }
        let next = self.next.borrow_mut().pop_front();
        if let Some(Next::Fail(error)) = next {
            return Err(error);
        }
        let choice = request.choices.first().unwrap();
        let machine = Machine {
            id: MachineId(format!("i-{}", machines.len() + 1)),
            state: MachineState::Pending,
            launched_at: self.now.get(),
            token: Some(token.clone()),
            tags: request.tags.clone(),
            image: choice.image.clone(),
            instance_type: choice.instance_type.clone(),
            zone: choice.zone.clone(),
            capacity_type: request.capacity_type.clone(),
            subnet: Some(choice.subnet.clone()),
            security_groups: ["sg-0a".to_owned()].into(),
            reservation: None,
            placement_group: None,
            private_dns: None,
        };
        machines.insert(machine.id.clone(), machine.clone());
        match next {
            Some(Next::Lose) => Err(LaunchError::Unanswered("timed out".to_owned())),
            Some(Next::Fail(_)) | None => Ok(answer(&machine)),
        }
    }

    async fn machines(&self) -> Result<Vec<Machine>, CloudError> {
        self.say("list machines");
        Ok(self.machines.borrow().values().cloned().collect())
    }

    async fn terminate(&self, machine: &MachineId) -> Result<(), CloudError> {
        self.say(format!("terminate {}", machine.0));
        if let Some(it) = self.machines.borrow_mut().get_mut(machine) {
            it.state = MachineState::ShuttingDown;
        }
        Ok(())
    }
}

impl Cluster for World {
    fn view(&self) -> impl Deref<Target = View> {
        Ref::map(self.view.borrow(), |it| it)
    }

    async fn records(&self) -> Result<Records, ClusterError> {
        unreachable!("claims read no records")
    }

    async fn pods_on(&self, node: &str) -> Result<Vec<drain::Pod>, ClusterError> {
        let (told, hidden) = (self.view.borrow(), self.hidden.borrow());
        let all = told.pods.on(node).chain(hidden.pods.on(node));
        Ok(all.map(|it| (*it.drain).clone()).collect())
    }

    async fn node(&self, name: &str) -> Result<Option<Node>, ClusterError> {
        let (told, hidden) = (self.view.borrow(), self.hidden.borrow());
        Ok(told.nodes.get(name).or_else(|| hidden.nodes.get(name)).cloned())
    }

    async fn write_ledger(&self, _: &Ledger) -> Result<Revision, ClusterError> {
        unreachable!("claims have no ledger")
    }

    async fn write_replacement(&self, _: &Recorded) -> Result<Revision, ClusterError> {
        unreachable!("claims write no replacement")
    }

    async fn delete_replacement(&self, _: &str, _: &Revision) -> Result<(), ClusterError> {
        unreachable!("claims delete no replacement")
    }

    async fn create_claim(&self, _: &NewClaim) -> Result<String, ClusterError> {
        unreachable!("claims make no claims")
    }

    async fn record_attempt(
        &self,
        claim: &Object,
        attempt: &Attempt,
    ) -> Result<Revision, ClusterError> {
        if self.claim().revision != claim.revision {
            return Err(ClusterError::Conflict(claim.name.clone()));
        }
        self.say(match &attempt.ended {
            None => format!("record attempt {}", attempt.number),
            Some(why) => format!("attempt {} ended: {why}", attempt.number),
        });
        self.edit(|it| {
            it.attempt = Some(attempt.clone());
            it.held = true;
        });
        Ok(self.claim().revision)
    }

    async fn write_claim(
        &self,
        claim: &Object,
        state: &ClaimState,
    ) -> Result<Revision, ClusterError> {
        if self.conflict.replace(false) || self.claim().revision != claim.revision {
            return Err(ClusterError::Conflict(claim.name.clone()));
        }
        let stages: Vec<&str> = state.stages.values().map(|it| it.kind.as_str()).collect();
        let told: Vec<&str> = state.conditions.iter().map(|it| it.message.as_str()).collect();
        let stamps = state.class_stamp.iter().chain(&state.template_stamp);
        let stamps: Vec<&str> = stamps.map(|it| it.digest.as_str()).collect();
        let said: Vec<&str> = [stages, told, stamps].concat();
        self.say(format!("write {}", said.join(" ").trim()).trim());
        self.edit(|it| {
            it.machine = state.machine.clone().or(it.machine.take());
            it.image = state.image.clone().or(it.image.take());
            it.node = state.node.clone().or(it.node.take());
            it.labels.extend(state.labels.clone());
            if !state.capacity.is_empty() {
                it.capacity = state.capacity.clone();
            }
            it.stages.extend(state.stages.iter().map(|(stage, it)| (*stage, it.since)));
            it.class_stamp = state.class_stamp.clone().or(it.class_stamp.take());
        });
        Ok(self.claim().revision)
    }

    async fn delete_claim(&self, name: &str, _: &str) -> Result<(), ClusterError> {
        self.say(format!("delete claim {name}"));
        let now = self.now.get();
        self.edit(|it| it.deleting_since = Some(now));
        Ok(())
    }

    async fn release_claim(&self, claim: &Object) -> Result<(), ClusterError> {
        self.say(format!("release claim {}", claim.name));
        self.view.borrow_mut().claims.remove(&claim.name);
        Ok(())
    }

    async fn register_node(&self, node: &Object, state: &NewNodeState) -> Result<(), ClusterError> {
        let annotations: Vec<&str> = state.annotations.keys().map(String::as_str).collect();
        self.say(format!("register {} {}", node.name, annotations.join(" ")).trim());
        self.edit_node(&node.name, |it| {
            it.fit.taints.retain(|it| it.key != UNREGISTERED_TAINT);
            it.fit.labels.extend(state.labels.clone());
            it.held = true;
        });
        Ok(())
    }

    async fn cordon(&self, _: &Object, _: &str) -> Result<(), ClusterError> {
        unreachable!("claims cordon nothing")
    }

    async fn uncordon(&self, _: &Object, _: &str) -> Result<(), ClusterError> {
        unreachable!("claims uncordon nothing")
    }

    async fn delete_node(&self, name: &str, _: &str) -> Result<(), ClusterError> {
        self.say(format!("delete node {name}"));
        let now = self.now.get();
        self.edit_node(name, |it| it.deleting_since = Some(now));
        Ok(())
    }

    async fn release_node(&self, node: &Object) -> Result<(), ClusterError> {
        self.say(format!("release node {}", node.name));
        self.view.borrow_mut().nodes.remove(&node.name);
        Ok(())
    }

    async fn evict(&self, _: &PodId) -> Result<EvictAnswer, ClusterError> {
        unreachable!("claims evict nobody")
    }

    async fn delete_pod(&self, _: &PodId, _: i64) -> Result<(), ClusterError> {
        unreachable!("claims delete no pod")
    }

    async fn remember(&self, _: &NewMemory) -> Result<(), ClusterError> {
        unreachable!("claims remember no image")
    }

    async fn write_status(&self, _: &Status) -> Result<(), ClusterError> {
        unreachable!("claims write no status but their own")
    }

    async fn lead(&self, _: &str, _: Timestamp) -> Result<Leadership, ClusterError> {
        unreachable!("claims lead nobody")
    }
}
