//! A cluster that remembers what is written to it, and a fleet, by hand and with as few words as possible.
//!
//! It is no simulator: nothing happens by itself. The simulator tests what follows from what.
#![allow(dead_code, reason = "each user takes its own part of it")]
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::ask::{Age, Ask, Owner, Term};
use nodemolt_core::bootstrap::{self, IpFamily, OfClass, OfPool, Placement};
use nodemolt_core::catalog::{Observation, Outcome, Query};
use nodemolt_core::drain::{self, PodId, PodPhase, Tier};
use nodemolt_core::image::{AccountId, Architecture, Date, Image, ImageId};
use nodemolt_core::launch::Settings;
use nodemolt_core::lookup::Minor;
use nodemolt_core::replace::{self, Replacement};
use nodemolt_core::seen::{
    Attempt, Claim, Class, ClassKey, FrozenRequest, Kind, MachineId, NetworkAsk, Node, Pod, Pool,
    Readiness, Remembered, Revision, Stage, View,
};
use nodemolt_core::wanted::PoolTemplate;
use nodemolt_engine::port::{
    ClaimState, Cluster, ClusterError, EvictAnswer, Leadership, Machine, MachineState, Network,
    NewClaim, NewMemory, NewNodeState, Object, Offered, Records, Status, Subnet,
};
use nodemolt_engine::record::{DrainRecord, Ledger, Recorded, Told};
use nodemolt_engine::{
    Act, Clock, Config, Done, Errand, Memory, ObserveError, Question, Turn, turn,
};
use nodemolt_fit::capacity::{Amounts, NodeSettings};
use nodemolt_fit::pod::{Demand, Namespace};
use nodemolt_fit::{self as fit, Family, Quantity, Types, label};

pub(crate) const POOL: &str = "general";
pub(crate) const ZONE: &str = "eu-central-1a";
pub(crate) const TYPE: &str = "m7g.xlarge";
pub(crate) const OTHER_TYPE: &str = "m7g.2xlarge";
pub(crate) const OLD_IMAGE: &str = "ami-00000000000000001";
pub(crate) const NEW_IMAGE: &str = "ami-00000000000000002";

pub(crate) fn start() -> Timestamp {
    "2026-08-03T12:00:00Z".parse().unwrap()
}

pub(crate) fn id(text: &str) -> ImageId {
    text.parse().unwrap()
}

fn account() -> AccountId {
    "111122223333".parse().unwrap()
}

/// Polls a future that never waits.
pub(crate) fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing waits here"),
    }
}

pub(crate) fn config() -> Config {
    Config {
        me: "operator-0".to_owned(),
        cluster: bootstrap::Cluster {
            name: "test".to_owned(),
            endpoint: "https://example.com".to_owned(),
            certificate_authority: "dGVzdA==".to_owned(),
            service_cidr: Some("10.100.0.0/16".to_owned()),
            dns: Vec::new(),
            ip_family: IpFamily::V4,
        },
        region: "eu-central-1".to_owned(),
        account: Some(account()),
        groups: BTreeSet::new(),
    }
}

/// What was written, in words.
pub(crate) type Written = Vec<String>;

#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) view: RefCell<View>,
    pub(crate) records: RefCell<Records>,
    pub(crate) written: RefCell<Written>,
    pub(crate) told: RefCell<Vec<Status>>,
    /// The next write of a grant loses.
    pub(crate) conflict: RefCell<bool>,
    /// Records cannot be read.
    pub(crate) silent: RefCell<bool>,
    /// What somebody else writes right before the next ledger is written.
    pub(crate) meanwhile: RefCell<Option<fn(&mut Records)>>,
    /// Every image has an object already, which no watch tells of.
    pub(crate) forgets: RefCell<bool>,
    revisions: RefCell<u64>,
}

impl Fake {
    fn revision(&self) -> Revision {
        *self.revisions.borrow_mut() += 1;
        Revision(self.revisions.borrow().to_string())
    }

    fn note(&self, what: impl Into<String>) {
        self.written.borrow_mut().push(what.into());
    }
}

impl Cluster for Fake {
    fn view(&self) -> impl Deref<Target = View> {
        self.view.borrow()
    }

    async fn records(&self) -> Result<Records, ClusterError> {
        if *self.silent.borrow() {
            return Err(ClusterError::Unreachable("503".to_owned()));
        }
        Ok(self.records.borrow().clone())
    }

    async fn pods_on(&self, node: &str) -> Result<Vec<drain::Pod>, ClusterError> {
        Ok(self.view.borrow().pods.on(node).map(|it| (*it.drain).clone()).collect())
    }

    async fn node(&self, name: &str) -> Result<Option<Node>, ClusterError> {
        Ok(self.view.borrow().nodes.get(name).cloned())
    }

    async fn write_ledger(&self, ledger: &Ledger) -> Result<Revision, ClusterError> {
        let mut records = self.records.borrow_mut();
        if let Some(writes) = self.meanwhile.take() {
            writes(&mut records);
        }
        let loses = !ledger.grants.is_empty() && self.conflict.take();
        if loses || ledger.revision != records.ledger.revision {
            return Err(ClusterError::Conflict("ledger".to_owned()));
        }
        // As the schema has it.
        let held = records.ledger.locked().map(|it| &it.id);
        if ledger.grants.len() > 2000
            || held.is_some_and(|it| ledger.lock.as_ref().map(|it| &it.id) != Some(it))
        {
            let object = "ledger".to_owned();
            return Err(ClusterError::Invalid { object, message: "422".to_owned() });
        }
        self.note(format!("ledger of epoch {} with {}", ledger.epoch, ledger.grants.len()));
        let revision = self.revision();
        records.ledger = Ledger { revision: Some(revision.clone()), ..ledger.clone() };
        Ok(revision)
    }

    async fn write_replacement(&self, record: &Recorded) -> Result<Revision, ClusterError> {
        let mut records = self.records.borrow_mut();
        let known = records.replacements.get(&record.name).and_then(|it| it.revision.clone());
        if known != record.revision {
            return Err(ClusterError::Conflict(record.name.clone()));
        }
        self.note(format!("{} {}", record.name, record.replacement.phase.as_str()));
        let revision = self.revision();
        let written = Recorded { revision: Some(revision.clone()), ..record.clone() };
        records.replacements.insert(record.name.clone(), written);
        Ok(revision)
    }

    async fn delete_replacement(&self, name: &str, _: &Revision) -> Result<(), ClusterError> {
        self.note(format!("{name} forgotten"));
        self.records.borrow_mut().replacements.remove(name);
        Ok(())
    }

    async fn create_claim(&self, claim: &NewClaim) -> Result<String, ClusterError> {
        self.note(format!("claim {}", claim.name));
        Ok(format!("uid-{}", claim.name))
    }

    async fn record_attempt(&self, _: &Object, _: &Attempt) -> Result<Revision, ClusterError> {
        Ok(self.revision())
    }

    async fn write_claim(&self, _: &Object, _: &ClaimState) -> Result<Revision, ClusterError> {
        Ok(self.revision())
    }

    async fn delete_claim(&self, name: &str, _: &str) -> Result<(), ClusterError> {
        self.note(format!("delete claim {name}"));
        Ok(())
    }

    async fn release_claim(&self, _: &Object) -> Result<(), ClusterError> {
        Ok(())
    }

    async fn register_node(&self, _: &Object, _: &NewNodeState) -> Result<(), ClusterError> {
        Ok(())
    }

    async fn cordon(&self, node: &Object, _: &str) -> Result<(), ClusterError> {
        self.note(format!("cordon {}", node.name));
        Ok(())
    }

    async fn uncordon(&self, node: &Object, _: &str) -> Result<(), ClusterError> {
        self.note(format!("uncordon {}", node.name));
        Ok(())
    }

    async fn delete_node(&self, _: &str, _: &str) -> Result<(), ClusterError> {
        Ok(())
    }

    async fn release_node(&self, _: &Object) -> Result<(), ClusterError> {
        Ok(())
    }

    async fn evict(&self, pod: &PodId) -> Result<EvictAnswer, ClusterError> {
        self.note(format!("evict {pod}"));
        Ok(EvictAnswer::Accepted)
    }

    async fn delete_pod(&self, pod: &PodId, _: i64) -> Result<(), ClusterError> {
        self.note(format!("delete pod {pod}"));
        Ok(())
    }

    async fn remember(&self, image: &NewMemory) -> Result<(), ClusterError> {
        self.note(format!("remember {}", image.image));
        if *self.forgets.borrow() {
            return Err(ClusterError::Exists(image.image.to_string()));
        }
        let known = self.view.borrow().images.get(&image.image).cloned();
        let remembered = Remembered {
            image: image.image.clone(),
            revision: self.revision(),
            first_seen: image.first_seen,
            appeared: image.appeared,
            first_owner: image.first_owner.clone(),
            looks: image.looks.clone(),
            withdrawn: image.withdrawn.clone(),
            returned: image.returned.or(known.and_then(|it| it.returned)),
            not_listed_since: image.not_listed_since,
        };
        self.view.borrow_mut().images.insert(image.image.clone(), remembered);
        Ok(())
    }

    async fn write_status(&self, status: &Status) -> Result<(), ClusterError> {
        self.note(match status {
            Status::Class(it) => format!("status of class {}", it.key),
            Status::Pool { name, .. } => format!("status of pool {name}"),
            Status::DisruptionBudget { name, .. } => format!("status of budget {name}"),
            Status::Policy { name, .. } => format!("status of policy {name}"),
            Status::Unreadable { subject, .. } => format!("status of unreadable {subject:?}"),
        });
        self.told.borrow_mut().push(status.clone());
        Ok(())
    }

    async fn lead(&self, _: &str, now: Timestamp) -> Result<Leadership, ClusterError> {
        Ok(Leadership::Leads { until: now + SignedDuration::from_secs(15), transitions: 1 })
    }
}

/// A clock that stands still.
pub(crate) struct Still(pub(crate) Timestamp);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// A fleet of one pool, all on the old image, and what EC2 says.
pub(crate) struct World {
    pub(crate) cluster: Fake,
    pub(crate) memory: Memory,
    pub(crate) now: Timestamp,
    pub(crate) images: Vec<Image>,
    pub(crate) machines: Vec<Machine>,
    /// What EC2 offers.
    pub(crate) offered: Vec<&'static str>,
}

fn amounts(cpu: i64, gibibytes: i64) -> Amounts {
    [
        ("cpu".to_owned(), Quantity::from_millis(cpu)),
        ("memory".to_owned(), Quantity::from_gibibytes(gibibytes)),
        ("pods".to_owned(), Quantity::from_units(110)),
    ]
    .into()
}

fn image(text: &str, name: &str, age_days: i64) -> Image {
    let created = start() - SignedDuration::from_hours(24 * age_days);
    Image {
        owner: Some(account()),
        created: Date::At(created),
        architecture: Architecture::Arm64,
        ..Image::new(id(text), name)
    }
}

fn class() -> Class {
    let term = Term { name: Some("golden-*".into()), owner: Some(Owner::Own), ..Term::default() };
    Class {
        key: ClassKey::own(POOL),
        uid: "uid-class".to_owned(),
        generation: 1,
        ask: Ask {
            class: POOL.to_owned(),
            labels: BTreeMap::new(),
            family: Family::Al2023,
            terms: vec![term],
            minimum_age: Age::NONE,
        },
        launch: Settings::of(POOL, Family::Al2023, "nodes"),
        boot: OfClass {
            name: POOL.to_owned(),
            label: "nodemolt.dev/ec2nodeclass".to_owned(),
            family: Family::Al2023,
            kubelet: bootstrap::Kubelet::default(),
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
        name: POOL.to_owned(),
        uid: "uid-pool".to_owned(),
        generation: 1,
        class: ClassKey::own(POOL),
        template: PoolTemplate::default(),
        requirements: Vec::new(),
        boot: OfPool {
            name: POOL.to_owned(),
            class: (POOL.to_owned(), "nodemolt.dev".to_owned()),
            labels: BTreeMap::new(),
            capacity_type: None,
            taints: Vec::new(),
            label_fields: BTreeMap::new(),
            taint_fields: Vec::new(),
        },
        fit: fit::pool::Pool { name: POOL.to_owned(), ..fit::pool::Pool::default() },
        budgets: Vec::new(),
        replicas: None,
        upgrade_asked_at: None,
        deleting: false,
    }
}

fn labels() -> BTreeMap<String, String> {
    [
        (label::INSTANCE_TYPE, TYPE),
        (label::ZONE, ZONE),
        (label::ARCH, "arm64"),
        (label::OS, "linux"),
        (label::CAPACITY_TYPE, "on-demand"),
        (label::NODEPOOL, POOL),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

impl World {
    /// So many nodes with so many pods each, on these images in turn. All pods belong to one workload.
    pub(crate) fn new(nodes: usize, pods: usize, images: &[&str]) -> Self {
        Self::with_workloads(nodes, pods, images, |_| "web".to_owned())
    }

    /// The same, with the workload that each pod belongs to, by its number.
    pub(crate) fn with_workloads(
        nodes: usize,
        pods: usize,
        images: &[&str],
        workload: impl Fn(usize) -> String,
    ) -> Self {
        let now = start();
        let mut view = View { kubernetes: Some(Minor { major: 1, minor: 35 }), ..View::default() };
        view.fresh = Kind::ALL.into_iter().map(|it| (it, now)).collect();
        view.classes.insert(ClassKey::own(POOL), class());
        view.pools.insert(POOL.to_owned(), pool());
        let mut world = Self {
            cluster: Fake::default(),
            memory: Memory::default(),
            now,
            images: vec![image(OLD_IMAGE, "golden-1", 60), image(NEW_IMAGE, "golden-2", 30)],
            machines: Vec::new(),
            offered: vec![TYPE],
        };
        let namespace = Arc::new(Namespace::named("shop"));
        let demand = Arc::new(Demand {
            requests: [("cpu".to_owned(), Quantity::from_millis(100))].into(),
            ..Demand::default()
        });
        for at in 0..nodes {
            let image = images[at % images.len()];
            let name = format!("node-{at:05}");
            world.add(&mut view, &name, image);
            for number in at * pods..(at + 1) * pods {
                let workload = workload(number);
                let pod = format!("{workload}-{at:05}-{}", number - at * pods);
                let of = (workload.as_str(), pod.as_str());
                add_pod(&mut view, &namespace, &demand, Some(&name), of, now);
            }
        }
        *world.cluster.view.borrow_mut() = view;
        world.memory.lead(&Leadership::Leads {
            until: now + SignedDuration::from_hours(1000),
            transitions: 1,
        });
        world
    }

    /// A pod of the workload that all belong to, that comes now and finds no place.
    pub(crate) fn add_pending(&mut self, name: &str, cpu_millis: i64) {
        let namespace = Arc::new(Namespace::named("shop"));
        let requests = [("cpu".to_owned(), Quantity::from_millis(cpu_millis))].into();
        let demand = Arc::new(Demand { requests, ..Demand::default() });
        let mut view = self.cluster.view.borrow_mut();
        add_pod(&mut view, &namespace, &demand, None, ("web", name), self.now);
    }

    /// As if we had moved pods of this owner from the first node, long enough ago that it has ended.
    pub(crate) fn has_moved(&mut self, owner: &str, since: Timestamp) {
        let old = replace::Old {
            node: "node-gone".to_owned(),
            claim: "claim-gone".to_owned(),
            claim_uid: "uid-gone".to_owned(),
        };
        let (cause, order) = (replace::Cause::Drift, replace::Order::SuccessorFirst);
        let begun = Replacement::begin(old, cause, order, drain::AtLimit::Skip, Vec::new(), since);
        let recorded = Recorded {
            name: "uid-gone".to_owned(),
            revision: Some(Revision("1".to_owned())),
            pool: Some(POOL.to_owned()),
            replacement: Replacement { phase: replace::Phase::Done, ..begun },
            grant: None,
            drain: Some(DrainRecord {
                moved: [(owner.to_owned(), since)].into(),
                ..DrainRecord::default()
            }),
            told: Told::default(),
        };
        let mut records = self.cluster.records.borrow_mut();
        records.replacements.insert(recorded.name.clone(), recorded);
    }

    fn add(&mut self, view: &mut View, name: &str, image: &str) {
        let machine = MachineId(format!("i-{name}"));
        let since = start() - SignedDuration::from_hours(100);
        let stages = [Stage::Launched, Stage::Registered, Stage::Initialized];
        let claim = Claim {
            name: format!("claim-{name}"),
            uid: format!("uid-{name}"),
            revision: Revision("1".to_owned()),
            pool: Some(POOL.to_owned()),
            class: ClassKey::own(POOL),
            labels: labels(),
            annotations: BTreeMap::new(),
            created_at: since,
            deleting_since: None,
            held: true,
            finalizers: Vec::new(),
            requirements: Vec::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            requests: Amounts::new(),
            termination_grace_period: None,
            expire_after: None,
            attempt: Some(Attempt {
                number: 1,
                since,
                request: FrozenRequest::default(),
                last_ended: None,
                ended: None,
            }),
            machine: Some(machine.clone()),
            node: Some(name.to_owned()),
            image: Some(id(image)),
            capacity: amounts(4000, 16),
            allocatable: amounts(3900, 15),
            stages: stages.into_iter().map(|it| (it, since)).collect(),
            class_stamp: Some(class().launch.static_stamp()),
            template_stamp: Some(PoolTemplate::default().stamp()),
            foreign: Vec::new(),
            protection: None,
            upgrade_asked_at: None,
            successor_of: None,
        };
        let mut own = labels();
        own.insert(label::HOSTNAME.to_owned(), name.to_owned());
        let node = Node {
            name: name.to_owned(),
            uid: format!("uid-node-{name}"),
            revision: Revision("1".to_owned()),
            fit: fit::node::Node {
                name: name.to_owned(),
                pool: Some(POOL.to_owned()),
                labels: own,
                initialised: true,
                allocatable: amounts(3900, 15),
                ..fit::node::Node::default()
            },
            created_at: since,
            deleting_since: None,
            held: true,
            finalizers: Vec::new(),
            machine: Some(machine.clone()),
            ready: Readiness::Ready,
            ready_since: Some(since),
            kubelet: Some(Minor { major: 1, minor: 35 }),
            cordoned_by: None,
            protection: None,
            upgrade_asked_at: None,
        };
        self.machines.push(Machine {
            id: machine,
            state: MachineState::Running,
            launched_at: since,
            token: None,
            tags: [("nodemolt.dev/nodeclaim-uid".to_owned(), claim.uid.clone())].into(),
            image: id(image),
            instance_type: TYPE.to_owned(),
            zone: ZONE.to_owned(),
            capacity_type: "on-demand".to_owned(),
            subnet: Some("subnet-1".to_owned()),
            security_groups: ["sg-1".to_owned()].into(),
            reservation: None,
            placement_group: None,
            private_dns: None,
        });
        view.claims.insert(claim.name.clone(), claim);
        view.nodes.insert(name.to_owned(), node);
    }

    /// One turn, whose questions are answered and whose other acts are given back.
    pub(crate) fn turn(&mut self) -> Turn {
        let turn = self.turn_alone();
        self.answer_all(&turn);
        turn
    }

    /// What it asks is not answered yet.
    pub(crate) fn turn_alone(&mut self) -> Turn {
        self.try_turn().unwrap_or_else(|it| panic!("{it}"))
    }

    /// The same, where the API server may not answer.
    pub(crate) fn try_turn(&mut self) -> Result<Turn, ObserveError> {
        let (config, clock) = (config(), Still(self.now));
        now_or_never(turn(&mut self.memory, &config, &self.cluster, &clock, self.now))
    }

    pub(crate) fn answer_all(&mut self, turn: &Turn) {
        for act in &turn.acts {
            if let Errand::Ask(question) = &act.errand {
                let answer = self.answer(question);
                self.memory.done(act, answer, self.now);
            }
        }
    }

    /// Until nothing is asked and nothing is written any more.
    pub(crate) fn settle(&mut self) -> Turn {
        for _ in 0..10 {
            let turn = self.turn();
            let asks = turn.acts.iter().any(|it| matches!(it.errand, Errand::Ask(_)));
            if turn.writes == 0 && !asks {
                return turn;
            }
            self.pass(1);
        }
        panic!("it does not settle: {:?}", self.cluster.written.borrow());
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
        for at in self.cluster.view.borrow_mut().fresh.values_mut() {
            *at = self.now;
        }
    }

    pub(crate) fn written(&self) -> Written {
        std::mem::take(&mut self.cluster.written.borrow_mut())
    }

    fn answer(&self, question: &Question) -> Done {
        match question {
            Question::Images(query) => Done::Observed(Box::new(self.observed(query))),
            Question::Offered => {
                let names = self.offered.iter().map(|it| (*it).to_owned());
                let types =
                    self.offered.iter().map(|it| Types::shipped().find(it).unwrap().clone());
                Done::Offered(Ok(Box::new(Offered {
                    types: types.collect(),
                    zones: names
                        .clone()
                        .map(|it| (it, BTreeSet::from([ZONE.to_owned()])))
                        .collect(),
                    on_demand: names.map(|it| (it, fit::pool::Price(163_200_000))).collect(),
                    spot: BTreeMap::new(),
                })))
            }
            Question::Network(_) => Done::Network(Ok(Network {
                subnets: vec![Subnet {
                    id: "subnet-1".to_owned(),
                    zone: ZONE.to_owned(),
                    zone_id: None,
                    free_addresses: 1000,
                }],
                security_groups: [("sg-1".to_owned(), None)].into(),
                reservations: Vec::new(),
            })),
            Question::Machines => Done::Machines(Ok(self.machines.clone())),
        }
    }

    fn observed(&self, query: &Query) -> Observation {
        let listed = |it: &&Image| match query {
            Query::Images(query) => query.asks_for(it, Some(&account())),
            Query::Parameters(_) | Query::Untold => false,
        };
        Observation {
            asked: query.clone(),
            outcome: Outcome::Complete,
            seen_at: Some(self.now),
            account: Some(account()),
            images: self.images.iter().filter(listed).cloned().collect(),
            parameters: Vec::new(),
        }
    }
}

fn add_pod(
    view: &mut View,
    namespace: &Arc<Namespace>,
    demand: &Arc<Demand>,
    node: Option<&str>,
    (workload, name): (&str, &str),
    created_at: Timestamp,
) {
    view.pods.insert(Pod {
        drain: Arc::new(drain::Pod {
            id: PodId {
                namespace: "shop".to_owned(),
                name: name.to_owned(),
                uid: format!("uid-{name}"),
            },
            labels: [("app".to_owned(), workload.to_owned())].into(),
            phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
            ready: node.is_some(),
            owner: drain::Owner::Workload {
                kind: "ReplicaSet".to_owned(),
                name: workload.to_owned(),
            },
            tier: Tier::Ordinary,
            tolerates_cordon: false,
            protection: None,
            grace: SignedDuration::from_secs(30),
            ends_at: None,
            namespace_terminating: false,
        }),
        fit: fit::pod::Pod::new(namespace, name, demand),
        node: node.map(str::to_owned),
        created_at,
        owner_uid: Some(format!("uid-{workload}")),
    });
}

/// What a turn wants done beside its questions, in words.
pub(crate) fn errands(turn: &Turn) -> Vec<String> {
    let told = |it: &Act| match &it.errand {
        Errand::Ask(_) => None,
        Errand::MakeClaim { .. } => Some("make a claim".to_owned()),
        Errand::MakeRoom { .. } => Some("make room".to_owned()),
        Errand::Cordon { node, .. } => Some(format!("cordon {}", node.name)),
        Errand::Uncordon { node, .. } => Some(format!("uncordon {}", node.name)),
        Errand::Evict { pod, .. } => Some(format!("evict {pod}")),
        Errand::DeletePod { pod, .. } => Some(format!("delete {pod}")),
        Errand::DeleteOld { claim, .. } => Some(format!("delete old {claim}")),
        Errand::DeleteSuccessor { claim, .. } => Some(format!("delete successor {claim}")),
        Errand::Claim(it) => Some(format!("claim {}", it.key)),
    };
    turn.acts.iter().filter_map(told).collect()
}
