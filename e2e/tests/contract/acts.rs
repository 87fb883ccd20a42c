//! What is done, in words that mean the same on every server?

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::Adapter;
use nodemolt_cluster::resources::{
    CLAIM, CSI_NODE, DAEMON_SET, DISRUPTION_BUDGET, IMAGE, KARPENTER_CLASS,
    NAMESPACE as NAMESPACES, NODE, OWN_CLASS, PDB, POD, POLICY, POOL, QUARANTINE, REPLACEMENT,
    STORAGE_CLASS, VOLUME, VOLUME_CLAIM,
};
use nodemolt_cluster::transport::{
    Answer, Heard, Refusal, Request, Resource, Subresource, Transport, Verb,
};
use nodemolt_core::budget::{
    self, Amount, Closed, DisruptionBudget, GrantKind, Grants, Keep, Limits, Member, Room,
    Standing, Unavailable,
};
use nodemolt_core::catalog::{Appeared, Because, Withdrawn};
use nodemolt_core::drain::{AtLimit, PodId};
use nodemolt_core::image::Architecture;
use nodemolt_core::node::Stamp;
use nodemolt_core::replace::{Cause, Old, Order, Phase, Replacement, Successor};
use nodemolt_core::seen::{
    Attempt, Choice, ClassKey, FrozenRequest, Looks, MachineId, Remembered, Revision, Stage,
    Subject,
};
use nodemolt_engine::port::{
    ClaimState, ClassStatus, Cluster as _, ClusterError, Condition, NewClaim, NewMemory,
    NewNodeState, Object, Status,
};
use nodemolt_engine::record::{DrainRecord, Granted, Ledger, Lock, Recorded, Told};
use nodemolt_fit::taint::{Effect, Taint};
use nodemolt_fit::{Operator, Written};
use serde_json::{Value, json};

use crate::pair::{GOING, NAMESPACE};
use crate::same::{self, COMPARED};

const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

/// Which one is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// As it is now.
    Now,
    /// As it was when it was made.
    AsMade,
    /// One of the same name.
    Another,
}

/// Numbers tell objects of one kind apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    MakePool,
    MakeClaim(u8),
    Attempt(u8, Which, u8),
    TellClaim(u8, Which, u8),
    EndClaim(u8, Which),
    ReleaseClaim(u8, Which),
    MakeNode(u8),
    TouchNode(u8),
    Register(u8, Which),
    Cordon(u8, Which, u8),
    Uncordon(u8, Which, u8),
    EndNode(u8, Which),
    ReleaseNode(u8, Which),
    /// On a node, or nowhere; with labels, or without.
    MakePod(u8, bool, bool),
    RunPod(u8, bool),
    FinishPod(u8),
    FailPod(u8),
    KillPod(u8),
    /// Who is bound to the node that all pods are bound to.
    PodsOn,
    ReadNode(u8),
    Evict(u8, Which),
    EvictInGoing(u8),
    EndPod(u8, Which),
    MakePdb(u8, bool),
    /// Allowed, healthy and desired.
    JudgePdb(u8, i32, i32, i32),
    FloodPdb(u8),
    TouchPdb(u8),
    DropPdb(u8),
    Record(u8, Which, u8),
    Forget(u8, Which),
    Records,
    Ledger(u8),
    Remember(u8, u8),
    Lead(u8, i64),
    TellPool(bool, u8),
    MakeSubject(Of),
    /// People write something else.
    TouchSubject(Of),
    /// What we found out of it as it is now, or as it was; more of it by and by.
    TellSubject(Of, bool, u8),
    /// That it cannot be read.
    Complain(Of, bool),
    /// What others write and we only read: made, changed, and deleted.
    MakeOther(Other),
    TouchOther(Other),
    EndOther(Other),
    /// What eyes show of everything.
    View,
}

/// What is read, and never written by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Other {
    Quarantine,
    Namespace,
    DaemonSet,
    Volume,
    VolumeClaim,
    StorageClass,
    CsiNode,
}

impl Other {
    pub(crate) const ALL: [Self; 7] = [
        Self::Quarantine,
        Self::Namespace,
        Self::DaemonSet,
        Self::Volume,
        Self::VolumeClaim,
        Self::StorageClass,
        Self::CsiNode,
    ];

    fn resource(self) -> Resource {
        match self {
            Self::Quarantine => QUARANTINE,
            Self::Namespace => NAMESPACES,
            Self::DaemonSet => DAEMON_SET,
            Self::Volume => VOLUME,
            Self::VolumeClaim => VOLUME_CLAIM,
            Self::StorageClass => STORAGE_CLASS,
            Self::CsiNode => CSI_NODE,
        }
    }

    /// Valid on a server that checks everything.
    fn body(self, name: &str) -> Value {
        let Resource { group, version, kind, .. } = self.resource();
        let api_version =
            if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let mut body = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        match self {
            Self::Quarantine => {
                body["spec"] = json!({"id": "ami-0123456789abcdef0", "reason": "a test"});
            }
            Self::Namespace => body["metadata"]["labels"] = json!({"team": "web"}),
            Self::DaemonSet => {
                let labels = json!({"app": name});
                body["spec"] = json!({"selector": {"matchLabels": labels}, "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "a", "image": "a",
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]},
                }});
            }
            Self::Volume => {
                let on = json!([{"key": "topology.kubernetes.io/zone", "operator": "In",
                    "values": ["eu-central-1a"]}]);
                body["spec"] = json!({"capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "gp3",
                    "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": name},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": on}]}}});
            }
            Self::VolumeClaim => {
                body["spec"] = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "gp3",
                    "resources": {"requests": {"storage": "1Gi"}}});
            }
            Self::StorageClass => {
                body["provisioner"] = "ebs.csi.aws.com".into();
                body["volumeBindingMode"] = "WaitForFirstConsumer".into();
            }
            Self::CsiNode => {
                body["spec"] = json!({"drivers": [{"name": "ebs.csi.aws.com", "nodeID": "i-0123",
                    "topologyKeys": [], "allocatable": {"count": 25}}]});
            }
        }
        body
    }
}

/// What people read a status on, beside pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    OwnClass,
    KarpenterClass,
    DisruptionBudget,
    Policy,
}

impl Of {
    pub(crate) const ALL: [Self; 4] =
        [Self::OwnClass, Self::KarpenterClass, Self::DisruptionBudget, Self::Policy];

    fn resource(self) -> Resource {
        match self {
            Self::OwnClass => OWN_CLASS,
            Self::KarpenterClass => KARPENTER_CLASS,
            Self::DisruptionBudget => DISRUPTION_BUDGET,
            Self::Policy => POLICY,
        }
    }

    fn subject(self, name: &str) -> Subject {
        let name = name.to_owned();
        match self {
            Self::OwnClass | Self::KarpenterClass => {
                Subject::Class(ClassKey { group: self.resource().group.to_owned(), name })
            }
            Self::DisruptionBudget => Subject::DisruptionBudget(name),
            Self::Policy => Subject::Policy(name),
        }
    }
}

impl Act {
    /// The method of the port that it calls; `None` for what a person or a controller does.
    pub(crate) fn method(self) -> Option<&'static str> {
        Some(match self {
            Self::MakeClaim(..) => "create_claim",
            Self::Attempt(..) => "record_attempt",
            Self::TellClaim(..) => "write_claim",
            Self::EndClaim(..) => "delete_claim",
            Self::ReleaseClaim(..) => "release_claim",
            Self::Register(..) => "register_node",
            Self::Cordon(..) => "cordon",
            Self::Uncordon(..) => "uncordon",
            Self::EndNode(..) => "delete_node",
            Self::ReleaseNode(..) => "release_node",
            Self::PodsOn => "pods_on",
            Self::ReadNode(_) => "node",
            Self::Evict(..) | Self::EvictInGoing(_) => "evict",
            Self::EndPod(..) => "delete_pod",
            Self::Record(..) => "write_replacement",
            Self::Forget(..) => "delete_replacement",
            Self::Records => "records",
            Self::Ledger(_) => "write_ledger",
            Self::Remember(..) => "remember",
            Self::Lead(..) => "lead",
            Self::TellPool(..) | Self::TellSubject(..) | Self::Complain(..) => "write_status",
            Self::View => "view",
            Self::MakePool
            | Self::MakeNode(_)
            | Self::TouchNode(_)
            | Self::MakePod(..)
            | Self::RunPod(..)
            | Self::FinishPod(_)
            | Self::FailPod(_)
            | Self::KillPod(_)
            | Self::MakePdb(..)
            | Self::JudgePdb(..)
            | Self::FloodPdb(_)
            | Self::TouchPdb(_)
            | Self::DropPdb(_)
            | Self::MakeSubject(_)
            | Self::TouchSubject(_)
            | Self::MakeOther(_)
            | Self::TouchOther(_)
            | Self::EndOther(_) => return None,
        })
    }

    /// Whether it touches what all share.
    pub(crate) fn of_all(self) -> bool {
        matches!(self, Self::Ledger(_) | Self::Records)
    }
}

/// One server, as one sequence sees it.
pub(crate) struct Side<'a, T> {
    transport: &'a T,
    adapter: Adapter<&'a T>,
    prefix: String,
    /// Objects as they were made.
    made: RefCell<BTreeMap<(&'static str, String), Object>>,
}

impl<'a, T: Transport> Side<'a, T> {
    pub(crate) fn new(transport: &'a T, prefix: &str) -> Self {
        let adapter = Adapter::new(transport).leased(NAMESPACE, &format!("{prefix}-lease"));
        Self { transport, adapter, prefix: prefix.to_owned(), made: RefCell::default() }
    }

    fn name(&self, letter: char, number: u8) -> String {
        format!("{}-{letter}{number}", self.prefix)
    }

    /// As a person or a controller would.
    async fn send(&self, request: Request) -> Result<Value, Refusal> {
        self.transport.send(&request).await.map(|it| Value::clone(&it.body))
    }

    async fn told(&self, request: Request) -> String {
        match self.transport.send(&request).await {
            Ok(answer) => answer.code.to_string(),
            Err(Refusal::Status { code, reason, .. }) => format!("{code} {reason}"),
            Err(Refusal::NoAnswer(why)) => panic!("{request:?}: {why}"),
        }
    }

    pub(crate) async fn namespace(&self, name: &str) -> String {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let made = self.told(of(Verb::Create, NAMESPACES, None, None, Some(body))).await;
        if name == GOING && made == "201" {
            // With a pod in it, while that is possible.
            self.told(of(Verb::Create, POD, Some(GOING), None, Some(pod("stays", None, None))))
                .await;
            self.told(of(Verb::Delete, NAMESPACES, None, Some(name), None)).await;
        }
        made
    }

    async fn find(&self, resource: Resource, name: &str) -> Option<Value> {
        let namespace = resource.namespaced.then_some(NAMESPACE);
        self.send(of(Verb::Get, resource, namespace, Some(name), None)).await.ok()
    }

    async fn which(&self, resource: Resource, name: &str, which: Which) -> Object {
        let nobody = || Object {
            name: name.to_owned(),
            uid: NOBODY.to_owned(),
            revision: Revision("1".to_owned()),
        };
        let now = self.find(resource, name).await.map(|it| object(&it));
        match which {
            Which::Now => now.unwrap_or_else(nobody),
            Which::AsMade => {
                let made = self.made.borrow().get(&(resource.plural, name.to_owned())).cloned();
                made.or(now).unwrap_or_else(nobody)
            }
            Which::Another => Object { uid: NOBODY.to_owned(), ..now.unwrap_or_else(nobody) },
        }
    }

    async fn remember_made(&self, resource: Resource, name: &str) {
        if let Some(found) = self.find(resource, name).await {
            let key = (resource.plural, name.to_owned());
            self.made.borrow_mut().insert(key, object(&found));
        }
    }

    async fn make(&self, resource: Resource, name: &str, body: Value) -> String {
        let namespace = resource.namespaced.then_some(NAMESPACE);
        let told = self.told(of(Verb::Create, resource, namespace, None, Some(body))).await;
        if told == "201" {
            self.remember_made(resource, name).await;
        }
        told
    }

    async fn status(&self, resource: Resource, name: &str, status: Value) -> String {
        let namespace = resource.namespaced.then_some(NAMESPACE);
        let body = json!({"status": status});
        let request = of(Verb::MergePatch, resource, namespace, Some(name), Some(body));
        self.told(Request { subresource: Some(Subresource::Status), ..request }).await
    }

    async fn change(&self, resource: Resource, name: &str, patch: Value) -> String {
        let namespace = resource.namespaced.then_some(NAMESPACE);
        self.told(of(Verb::MergePatch, resource, namespace, Some(name), Some(patch))).await
    }

    async fn pod_id(&self, name: &str, which: Which) -> PodId {
        let uid = self.which(POD, name, which).await.uid;
        PodId { namespace: NAMESPACE.to_owned(), name: name.to_owned(), uid }
    }

    /// What it was answered.
    pub(crate) async fn act(&self, act: &Act) -> String {
        match *act {
            Act::MakePool => {
                let name = self.name('w', 0);
                self.make(POOL, &name, pool(&name)).await
            }
            Act::MakeClaim(number) => {
                let name = self.name('c', number);
                let pool = self.which(POOL, &self.name('w', 0), Which::Now).await;
                let answer = self.adapter.create_claim(&claim(&name, &pool, number)).await;
                if answer.is_ok() {
                    self.remember_made(CLAIM, &name).await;
                }
                say(&answer)
            }
            Act::Attempt(number, which, tries) => {
                let claim = self.which(CLAIM, &self.name('c', number), which).await;
                say(&self.adapter.record_attempt(&claim, &attempt(tries)).await)
            }
            Act::TellClaim(number, which, how) => {
                let claim = self.which(CLAIM, &self.name('c', number), which).await;
                say(&self.adapter.write_claim(&claim, &claim_state(how)).await)
            }
            Act::EndClaim(number, which) => {
                let claim = self.which(CLAIM, &self.name('c', number), which).await;
                say(&self.adapter.delete_claim(&claim.name, &claim.uid).await)
            }
            Act::ReleaseClaim(number, which) => {
                let claim = self.which(CLAIM, &self.name('c', number), which).await;
                say(&self.adapter.release_claim(&claim).await)
            }
            Act::MakeNode(number) => {
                let name = self.name('n', number);
                self.make(NODE, &name, node(&name, number)).await
            }
            Act::TouchNode(number) => {
                let mark = json!({"metadata": {"labels": {"touched": "yes"}},
                    "spec": {"unschedulable": true}});
                self.change(NODE, &self.name('n', number), mark).await
            }
            Act::Register(number, which) => {
                let node = self.which(NODE, &self.name('n', number), which).await;
                let claim = self.which(CLAIM, &self.name('c', number), Which::Now).await;
                let state = NewNodeState {
                    labels: strings(&[("team", "web"), ("said", "by-claim")]),
                    annotations: strings(&[("note", "joined")]),
                    taints: vec![Taint::new("dedicated", "web", Effect::NoSchedule)],
                    owner: (claim.name, claim.uid),
                };
                say(&self.adapter.register_node(&node, &state).await)
            }
            Act::Cordon(number, which, by) => {
                let node = self.which(NODE, &self.name('n', number), which).await;
                say(&self.adapter.cordon(&node, &self.name('r', by)).await)
            }
            Act::Uncordon(number, which, by) => {
                let node = self.which(NODE, &self.name('n', number), which).await;
                say(&self.adapter.uncordon(&node, &self.name('r', by)).await)
            }
            Act::EndNode(number, which) => {
                let node = self.which(NODE, &self.name('n', number), which).await;
                say(&self.adapter.delete_node(&node.name, &node.uid).await)
            }
            Act::ReleaseNode(number, which) => {
                let node = self.which(NODE, &self.name('n', number), which).await;
                say(&self.adapter.release_node(&node).await)
            }
            Act::MakePod(number, bound, labelled) => {
                let name = self.name('p', number);
                let node = bound.then(|| self.name('n', 0));
                let app = labelled.then_some(self.prefix.as_str());
                self.make(POD, &name, pod(&name, node.as_deref(), app)).await
            }
            Act::RunPod(number, ready) => {
                let status = if ready { "True" } else { "False" };
                let at = "2026-11-16T06:00:00Z";
                let ready = json!([{"type": "Ready", "status": status, "lastTransitionTime": at}]);
                let running = json!({"phase": "Running", "conditions": ready});
                self.status(POD, &self.name('p', number), running).await
            }
            Act::FinishPod(number) => {
                self.status(POD, &self.name('p', number), json!({"phase": "Succeeded"})).await
            }
            Act::FailPod(number) => {
                self.status(POD, &self.name('p', number), json!({"phase": "Failed"})).await
            }
            Act::KillPod(number) => {
                let now = json!({"apiVersion": "v1", "kind": "DeleteOptions",
                    "gracePeriodSeconds": 0});
                let name = self.name('p', number);
                self.told(of(Verb::Delete, POD, Some(NAMESPACE), Some(&name), Some(now))).await
            }
            Act::PodsOn => {
                let there = self.adapter.pods_on(&self.name('n', 0)).await;
                say(&there.map(|all| {
                    let mut names: Vec<String> = all
                        .iter()
                        .map(|it| it.id.name.trim_start_matches(&self.prefix).to_owned())
                        .collect();
                    names.sort();
                    names
                }))
            }
            Act::ReadNode(number) => {
                let found = self.adapter.node(&self.name('n', number)).await;
                say(&found.map(|it| it.map(|it| (it.ready, it.cordoned_by, it.held))))
            }
            Act::Evict(number, which) => {
                let pod = self.pod_id(&self.name('p', number), which).await;
                say(&self.adapter.evict(&pod).await)
            }
            Act::EvictInGoing(_) => {
                let namespace = GOING.to_owned();
                let uid = NOBODY.to_owned();
                let pod = PodId { namespace, name: "stays".to_owned(), uid };
                say(&self.adapter.evict(&pod).await)
            }
            Act::EndPod(number, which) => {
                let pod = self.pod_id(&self.name('p', number), which).await;
                say(&self.adapter.delete_pod(&pod, 0).await)
            }
            Act::MakePdb(number, always) => {
                let name = self.name('b', number);
                self.make(PDB, &name, pdb(&name, &self.prefix, always)).await
            }
            Act::JudgePdb(number, allowed, healthy, desired) => {
                let name = self.name('b', number);
                let found = self.find(PDB, &name).await.unwrap_or_default();
                let status = json!({
                    "observedGeneration": found["metadata"]["generation"],
                    "disruptionsAllowed": allowed, "currentHealthy": healthy,
                    "desiredHealthy": desired, "expectedPods": healthy,
                });
                self.status(PDB, &name, status).await
            }
            Act::FloodPdb(number) => {
                let gone =
                    (0..=2000).map(|it| (format!("gone{it}"), "2026-11-16T06:00:00Z".into()));
                let all: serde_json::Map<String, Value> = gone.collect();
                self.status(PDB, &self.name('b', number), json!({"disruptedPods": all})).await
            }
            Act::TouchPdb(number) => {
                let change = json!({"spec": {"minAvailable": 2}});
                self.change(PDB, &self.name('b', number), change).await
            }
            Act::DropPdb(number) => {
                let name = self.name('b', number);
                self.told(of(Verb::Delete, PDB, Some(NAMESPACE), Some(&name), None)).await
            }
            Act::Record(number, which, how) => self.record(number, which, how).await,
            Act::Forget(number, which) => {
                let record = self.which(REPLACEMENT, &self.name('r', number), which).await;
                say(&self.adapter.delete_replacement(&record.name, &record.revision).await)
            }
            Act::Records => {
                let answer = self.adapter.records().await.map(|mut it| {
                    it.replacements.retain(|name, _| name.contains(&self.prefix));
                    it.unreadable.retain(|name, _| name.contains(&self.prefix));
                    it.server_time = it.server_time.map(|_| Timestamp::UNIX_EPOCH);
                    it
                });
                say(&answer)
            }
            Act::Ledger(how) => self.ledger(how).await,
            Act::Remember(number, how) => self.remember(number, how).await,
            Act::Lead(me, seconds) => {
                let now = Timestamp::from_second(1_790_000_000 + seconds).unwrap();
                say(&self.adapter.lead(&format!("replica-{me}"), now).await)
            }
            Act::TellPool(current, how) => {
                let name = self.name('w', 0);
                let pool = self.which(POOL, &name, Which::Now).await;
                let status = Status::Pool {
                    name,
                    uid: pool.uid,
                    generation: if current { 1 } else { 7 },
                    nodes: u64::from(how),
                    resources: amounts(&[("cpu", "4"), ("memory", "8Gi")]),
                    conditions: vec![condition("Ready", how.is_multiple_of(2))],
                };
                say(&self.adapter.write_status(&status).await)
            }
            Act::MakeSubject(of) => {
                let name = self.name('s', 0);
                self.make(of.resource(), &name, subject(of, &name)).await
            }
            Act::TouchSubject(of) => {
                let change = match of {
                    Of::OwnClass | Of::KarpenterClass => json!({"spec": {"role": "others"}}),
                    Of::DisruptionBudget => json!({"spec": {"maxUnavailable": 2}}),
                    Of::Policy => json!({"spec": {"minimumAge": "9d"}}),
                };
                self.change(of.resource(), &self.name('s', 0), change).await
            }
            Act::TellSubject(of, current, how) => {
                let (uid, generation) = self.identity(of, current).await;
                let status = subject_status(of, &self.name('s', 0), uid, generation, how);
                say(&self.adapter.write_status(&status).await)
            }
            Act::Complain(of, current) => {
                let (uid, generation) = self.identity(of, current).await;
                let subject = of.subject(&self.name('s', 0));
                let conditions = vec![condition("Ready", false), condition("Accepted", false)];
                let status = Status::Unreadable { subject, uid, generation, conditions };
                say(&self.adapter.write_status(&status).await)
            }
            Act::MakeOther(other) => {
                let name = self.name('o', 0);
                self.make(other.resource(), &name, other.body(&name)).await
            }
            Act::TouchOther(other) => {
                let change = json!({"metadata": {"labels": {"touched": "yes"}}});
                self.change(other.resource(), &self.name('o', 0), change).await
            }
            Act::EndOther(other) => {
                let resource = other.resource();
                let namespace = resource.namespaced.then_some(NAMESPACE);
                let name = self.name('o', 0);
                self.told(of(Verb::Delete, resource, namespace, Some(&name), None)).await
            }
            Act::View => self.view().await,
        }
    }

    /// What eyes show that missed all but the beginning, and then were told a whole list.
    pub(crate) async fn after_a_loss(&self, beginning: &[(Resource, Value)]) -> String {
        let eyes = Adapter::new(self.transport);
        for (resource, object) in beginning {
            eyes.hear(*resource, &Heard::Applied(object.clone()), Timestamp::now());
        }
        self.list_into(&eyes).await;
        same::shown(&eyes.view(), &self.prefix).join("\n")
    }

    async fn list_into(&self, eyes: &Adapter<&T>) {
        for resource in COMPARED {
            let listed = self.transport.send(&of(Verb::List, resource, None, None, None)).await;
            let (objects, _) = listed.and_then(Answer::whole_list).unwrap();
            let objects = objects.into_iter().map(Rc::unwrap_or_clone).collect();
            eyes.hear(resource, &Heard::Listed(objects), Timestamp::now());
        }
    }

    /// Of what people read a status on: as it is now, or one version later.
    async fn identity(&self, of: Of, current: bool) -> (String, i64) {
        let found = self.find(of.resource(), &self.name('s', 0)).await.unwrap_or_default();
        let generation = found["metadata"]["generation"].as_i64().unwrap_or_default();
        let uid = found["metadata"]["uid"].as_str().unwrap_or(NOBODY).to_owned();
        (uid, if current { generation } else { generation + 1 })
    }

    /// What the port shows to whoever was told everything, by whole lists.
    async fn view(&self) -> String {
        let eyes = Adapter::new(self.transport);
        self.list_into(&eyes).await;
        let view = eyes.view();
        same::shown(&view, &self.prefix).join("; ")
    }

    async fn record(&self, number: u8, which: Which, how: u8) -> String {
        let name = self.name('r', number);
        let found = self.find(REPLACEMENT, &name).await;
        let revision = match which {
            // A second one of that name is a conflict.
            Which::Another => None,
            Which::Now => found.as_ref().map(|it| object(it).revision),
            Which::AsMade => Some(self.which(REPLACEMENT, &name, which).await.revision)
                .filter(|_| found.is_some()),
        };
        let answer = self.adapter.write_replacement(&recorded(&name, revision, how)).await;
        if found.is_none() {
            self.remember_made(REPLACEMENT, &name).await;
        }
        say(&answer)
    }

    /// Read and write, so that both servers begin with the same.
    async fn ledger(&self, how: u8) -> String {
        let read = match self.adapter.records().await {
            Ok(records) => records.ledger,
            Err(error) => return format!("{error:?}"),
        };
        let at = Timestamp::from_second(1_790_000_000).unwrap();
        let holder = self.name('c', how % 3);
        let mut next = Ledger { epoch: read.epoch + 1, ..read.clone() };
        match how {
            0..=2 => {
                let epoch = next.epoch;
                let grant = Granted {
                    node: holder.clone(),
                    pool: Some("w".to_owned()),
                    cpu_millis: (how > 0).then_some(1930),
                    taken_from: (how > 1).then(|| "slow".to_owned()).into_iter().collect(),
                    kind: GrantKind::Replacement,
                    epoch,
                    since: at,
                };
                next.grants.insert(holder, grant);
            }
            3 => {
                next.grants.remove(&holder);
                next.closed =
                    vec![Closed { node: holder, class: "web".to_owned(), since: at, ended_at: at }];
            }
            // Back: of a leader that is none any more.
            4 => next.epoch = read.epoch.saturating_sub(1),
            // Against what is not there any more.
            5 => next.revision = Some(Revision("1".to_owned())),
            6 => next.revision = None,
            _ => {
                next.lock = next.lock.or_else(|| {
                    Some(Lock { id: "one".to_owned(), reason: "a test".to_owned(), since: at })
                });
            }
        }
        let first = self.adapter.write_ledger(&next).await;
        // Of two writes against one revision at most one succeeds.
        let second = self.adapter.write_ledger(&next).await;
        format!("{} then {}", say(&first), say(&second))
    }

    async fn remember(&self, number: u8, how: u8) -> String {
        let image = format!("ami-{}{number:09}", self.prefix).parse().unwrap();
        let at = Timestamp::from_second(1_790_000_000).unwrap();
        let name = format!("{image}");
        let found = self.find(IMAGE, &name).await;
        let eyes = Adapter::new(());
        if let Some(found) = found {
            let heard = Heard::Applied(found);
            eyes.hear(IMAGE, &heard, at);
        }
        let known: Option<Remembered> = eyes.seen().images.get(&image).cloned();
        let known = if how == 4 { None } else { known };
        let withdrawn = (how % 2 == 1).then(|| Withdrawn {
            at: Some(at),
            because: Because::PointerMovedBack {
                parameter: if how < 5 { "/images/current" } else { "/images/next" }.to_owned(),
                to: "ami-00000000000000001".parse().unwrap(),
            },
        });
        let looks = Looks {
            name: "golden-7".to_owned(),
            owner_alias: None,
            architecture: Architecture::Arm64,
            created: Some(at),
        };
        let new = NewMemory {
            known,
            image,
            region: Some("eu-central-1".to_owned()),
            first_seen: Some(at),
            appeared: (how > 1).then_some(Appeared::Later),
            first_owner: Some("012345678901".parse().unwrap()),
            looks: (how > 2).then_some(looks),
            withdrawn,
            returned: (how == 6).then_some(at),
            not_listed_since: (how == 2 || how == 6).then_some(at),
        };
        say(&self.adapter.remember(&new).await)
    }

    /// Records are listed whole: others should not have to read ours.
    pub(crate) async fn clean(&self) {
        for number in 0..3 {
            let name = self.name('r', number);
            self.told(of(Verb::Delete, REPLACEMENT, None, Some(&name), None)).await;
        }
    }
}

fn say<V: Debug>(answer: &Result<V, ClusterError>) -> String {
    match answer {
        // The sentence of a refusal is the server's own; which field it is about is in it.
        Err(ClusterError::Invalid { object, message }) => {
            format!("Invalid {object}: {}", message.split(": Invalid value").next().unwrap_or(""))
        }
        Ok(_) | Err(_) => format!("{answer:?}"),
    }
}

fn of(
    verb: Verb,
    resource: Resource,
    namespace: Option<&str>,
    name: Option<&str>,
    body: Option<Value>,
) -> Request {
    Request {
        verb,
        resource,
        subresource: None,
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        body,
    }
}

fn object(found: &Value) -> Object {
    let text = |key: &str| found["metadata"][key].as_str().unwrap_or_default().to_owned();
    Object { name: text("name"), uid: text("uid"), revision: Revision(text("resourceVersion")) }
}

fn strings(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn amounts(all: &[(&str, &str)]) -> nodemolt_fit::capacity::Amounts {
    all.iter().map(|(name, it)| ((*name).to_owned(), it.parse().unwrap())).collect()
}

fn condition(kind: &str, holds: bool) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: Some(holds),
        reason: if holds { "Fine" } else { "NotFine" }.to_owned(),
        message: "because of a test".to_owned(),
        since: Timestamp::from_second(1_790_000_000).unwrap(),
    }
}

fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "web"},
            "requirements": [],
        }}},
    })
}

fn subject(of: Of, name: &str) -> Value {
    let Resource { group, version, kind, .. } = of.resource();
    let spec = match of {
        Of::OwnClass | Of::KarpenterClass => {
            let terms = json!([{"tags": {"discovery": "blue"}}]);
            json!({"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes",
                "subnetSelectorTerms": terms, "securityGroupSelectorTerms": terms})
        }
        Of::DisruptionBudget => {
            json!({"labelSelectors": [{"team": "web"}], "maxUnavailable": 1})
        }
        Of::Policy => {
            let selector = json!({"matchLabels": {"team": "web"}});
            json!({"classSelector": selector, "minimumAge": "7d", "rollout": {"concurrency": 2}})
        }
    };
    let api_version = format!("{group}/{version}");
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn subject_status(of: Of, name: &str, uid: String, generation: i64, how: u8) -> Status {
    let conditions = vec![
        condition("Ready", how.is_multiple_of(2)),
        condition("PoliciesOverlap", !how.is_multiple_of(2)),
    ];
    let name = name.to_owned();
    match of {
        Of::OwnClass | Of::KarpenterClass => {
            let group = of.resource().group.to_owned();
            Status::Class(class_status(ClassKey { group, name }, uid, generation, how, conditions))
        }
        Of::DisruptionBudget => {
            Status::DisruptionBudget { room: room(how), name, uid, generation, conditions }
        }
        Of::Policy => Status::Policy { name, uid, generation, classes: how.into(), conditions },
    }
}

/// Nothing is known at first; then something; then that there is nothing.
fn class_status(
    key: ClassKey,
    uid: String,
    generation: i64,
    how: u8,
    conditions: Vec<Condition>,
) -> ClassStatus {
    let requirement = Written {
        key: "kubernetes.io/arch".to_owned(),
        operator: Operator::In,
        values: vec!["amd64".to_owned()],
        min_values: None,
    };
    let id = "ami-0123456789abcdef0".parse().unwrap();
    let images = vec![(id, "an-image".to_owned(), vec![requirement])];
    let subnets = vec![
        ("subnet-1".to_owned(), "eu-central-1a".to_owned(), Some("euc1-az2".to_owned())),
        ("subnet-2".to_owned(), "eu-central-1b".to_owned(), None),
    ];
    let groups = vec![("sg-1".to_owned(), Some("nodes".to_owned())), ("sg-2".to_owned(), None)];
    ClassStatus {
        key,
        uid,
        generation,
        images: (how > 0).then(|| if how > 2 { Vec::new() } else { images }),
        subnets: (how > 1).then(|| if how > 2 { Vec::new() } else { subnets }),
        security_groups: (how > 1).then(|| if how > 2 { Vec::new() } else { groups }),
        conditions,
    }
}

/// A budget of two over four nodes, of which so many cannot be counted on.
fn room(unavailable: u8) -> Room {
    let budget = DisruptionBudget {
        name: "b".to_owned(),
        selectors: vec![BTreeMap::new()],
        keep: Ok(Keep::MaxUnavailable(Amount::Count(2))),
        gates_controller: true,
        gates_people: false,
    };
    let members = (0..4).map(|it| {
        let gone = Standing::Unavailable(Unavailable::NotReady);
        let standing = if it < unavailable { gone } else { Standing::Available };
        let (labels, taken_from) = (BTreeMap::new(), BTreeSet::new());
        let member = Member {
            pool: None,
            class: None,
            labels,
            cpu_millis: 0,
            standing,
            surge: false,
            taken_from,
        };
        (format!("node-{it}"), member)
    });
    let members: BTreeMap<String, Member> = members.collect();
    let limits = Limits { disruption_budgets: vec![budget], ..Limits::default() };
    let named = members.iter().map(|(name, it)| (name.as_str(), it));
    let now = Timestamp::UNIX_EPOCH;
    let measured = budget::measure(named, &limits, &Grants::default(), budget::Act::Replace, now);
    measured.rooms()[0].clone()
}

fn node(name: &str, number: u8) -> Value {
    let mut taints = vec![json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})];
    if number == 1 {
        // Of somebody else.
        taints.push(json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}));
    }
    taints.push(json!({"key": "karpenter.sh/unregistered", "effect": "NoExecute"}));
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"said": "by-node"}},
        "spec": {"taints": taints, "providerID": format!("aws:///eu-central-1a/i-{name}")},
    })
}

fn pod(name: &str, node: Option<&str>, app: Option<&str>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "a", "image": "a"}],
        },
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    if let Some(app) = app {
        pod["metadata"]["labels"] = json!({"app": app});
    }
    pod
}

fn pdb(name: &str, app: &str, always: bool) -> Value {
    let policy = if always { "AlwaysAllow" } else { "IfHealthyBudget" };
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {
            "minAvailable": 1, "selector": {"matchLabels": {"app": app}},
            "unhealthyPodEvictionPolicy": policy,
        },
    })
}

fn claim(name: &str, pool: &Object, number: u8) -> NewClaim {
    let stamp = |version: &str| Stamp {
        digest: format!("{version}:0a1b"),
        fields: strings(&[("role", "nodes")]),
    };
    let requirement = |key: &str, values: &[&str]| Written {
        key: key.to_owned(),
        operator: Operator::In,
        values: values.iter().map(|it| (*it).to_owned()).collect(),
        min_values: None,
    };
    NewClaim {
        name: name.to_owned(),
        pool: pool.name.clone(),
        pool_uid: pool.uid.clone(),
        class: ClassKey::own("web"),
        labels: strings(&[("team", "web")]),
        annotations: strings(&[("note", "a test")]),
        requirements: vec![
            requirement("kubernetes.io/arch", &["amd64"]),
            requirement("node.kubernetes.io/instance-type", &["m6i.large", "m6a.large"]),
        ],
        taints: vec![Taint::new("dedicated", "web", Effect::NoSchedule)],
        startup_taints: vec![Taint::new("net", "", Effect::NoExecute)],
        requests: amounts(&[("cpu", "1500m"), ("memory", "3Gi"), ("pods", "7")]),
        termination_grace_period: (number == 1).then(|| SignedDuration::from_mins(30)),
        expire_after: (number != 1).then(|| SignedDuration::from_hours(720)),
        class_stamp: stamp("class/v1"),
        template_stamp: stamp("template/v1"),
        successor_of: (number > 0).then(|| "somebody".to_owned()),
    }
}

fn attempt(number: u8) -> Attempt {
    Attempt {
        number: u32::from(number),
        since: Timestamp::from_second(1_790_000_000).unwrap(),
        request: FrozenRequest {
            capacity_type: "on-demand".to_owned(),
            choices: vec![Choice {
                template: "nodemolt-0a1b".to_owned(),
                image: "ami-0123456789abcdef0".parse().unwrap(),
                instance_type: "m6i.large".to_owned(),
                zone: "eu-central-1a".to_owned(),
                subnet: "subnet-1".to_owned(),
            }],
            context: None,
            tags: strings(&[("team", "web")]),
        },
        last_ended: (number > 1).then(|| "no capacity".to_owned()),
        ended: None,
    }
}

fn claim_state(how: u8) -> ClaimState {
    let mut state = ClaimState {
        machine: Some(MachineId("i-0123".to_owned())),
        zone: Some("eu-central-1a".to_owned()),
        image: Some("ami-0123456789abcdef0".parse().unwrap()),
        capacity: amounts(&[("cpu", "2")]),
        allocatable: amounts(&[("cpu", "1900m")]),
        labels: strings(&[("topology.kubernetes.io/zone", "eu-central-1a")]),
        ..ClaimState::default()
    };
    state.stages.insert(Stage::Launched, condition("Launched", true));
    if how > 0 {
        state.node = Some("a-node".to_owned());
        state.stages.insert(Stage::Registered, condition("Registered", true));
        state.class_stamp = Some(Stamp { digest: "class/v2:0a1b".to_owned(), ..Stamp::default() });
    }
    if how > 1 {
        state.conditions.push(condition("Ready", how.is_multiple_of(2)));
    }
    if how > 2 {
        // Longer than any schema takes.
        state.conditions.push(Condition {
            message: "x".repeat(40_000),
            reason: "Not a word!".to_owned(),
            ..condition("Drifted", true)
        });
    }
    state
}

fn recorded(name: &str, revision: Option<Revision>, how: u8) -> Recorded {
    let at = Timestamp::from_second(1_790_000_000 + i64::from(how)).unwrap();
    let phase = Phase::ALL[usize::from(how) % Phase::ALL.len()];
    let old = Old {
        node: "old-node".to_owned(),
        claim: "old-claim".to_owned(),
        claim_uid: name.to_owned(),
    };
    let mut replacement =
        Replacement::begin(old, Cause::Drift, Order::SuccessorFirst, AtLimit::Skip, Vec::new(), at);
    replacement.phase = phase;
    replacement.tries = 1 + u32::from(how) / 4;
    replacement.successors = (0..how % 3)
        .map(|it| Successor {
            claim: format!("new-{it}"),
            uid: (it > 0).then(|| format!("uid-{it}")),
        })
        .collect();
    let pod = |uid: &str| PodId {
        namespace: "default".to_owned(),
        name: "web-0".to_owned(),
        uid: uid.to_owned(),
    };
    Recorded {
        name: name.to_owned(),
        revision,
        pool: Some("w".to_owned()),
        replacement,
        grant: (!phase.ended()).then_some((u64::from(how), at)),
        drain: (how > 3).then(|| DrainRecord {
            cordoned_at: Some(at),
            last_left_at: None,
            evicting: (how > 4).then_some((u64::from(how), at)),
            pods: 3,
            pods_left: 1,
            forced: vec![(pod("uid-7"), "its time is over".to_owned())],
            held: vec![(pod(""), "x".repeat(3000))],
            moved: [("uid-8".to_owned(), at)].into(),
        }),
        told: Told {
            running_image: Some("ami-0123456789abcdef0".parse().unwrap()),
            waits_for: (how.is_multiple_of(2)).then(|| "waits for ".to_owned() + &"y".repeat(3000)),
            ..Told::default()
        },
    }
}
