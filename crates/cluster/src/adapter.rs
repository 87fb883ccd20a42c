//! How do the engine's words become Kubernetes' verbs?
//!
//! Every write names what it was decided on. Lists that others write to, such as taints and finalizers,
//! are read right before, and written against what was read: nothing of theirs is lost. Nothing is tried
//! again here.

mod call;
mod claims;
mod images;
mod lease;
mod nodes;
mod pods;
mod records;
mod status;

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;

use jiff::Timestamp;
use nodemolt_api::eyes::Eyes;
use nodemolt_core::drain::{self, PodId};
use nodemolt_core::lookup::Minor;
use nodemolt_core::seen::{Attempt, Node, Revision, View};
use nodemolt_engine::port::{
    ClaimState, Cluster, ClusterError, EvictAnswer, Leadership, NewClaim, NewMemory, NewNodeState,
    Object, Records, Status,
};
use nodemolt_engine::record::{Ledger, Recorded};
use serde_json::Value;

use crate::resources;
use crate::transport::{Heard, Resource, Transport};

/// Where the lease is, unless somebody says otherwise.
const LEASE_NAMESPACE: &str = "kube-system";
const LEASE_NAME: &str = "nodemolt";

/// The port, over one API server. Whoever runs it feeds it what watches tell: [`Adapter::hear`], for each
/// of [`resources::WATCHED`].
#[derive(Debug)]
pub struct Adapter<T> {
    transport: T,
    eyes: RefCell<Eyes>,
    /// What records say for people, as it was last read or written: it is kept where nothing new is said.
    told: RefCell<BTreeMap<String, records::Standing>>,
    /// As it was last read.
    ledger: RefCell<Option<Ledger>>,
    lease: lease::Lease,
}

impl<T> Adapter<T> {
    pub fn new(transport: T) -> Self {
        Self {
            transport,
            eyes: RefCell::new(Eyes::default()),
            told: RefCell::new(BTreeMap::new()),
            ledger: RefCell::new(None),
            lease: lease::Lease::new(LEASE_NAMESPACE, LEASE_NAME),
        }
    }

    /// With the lease elsewhere than in `kube-system`.
    #[must_use]
    pub fn leased(self, namespace: &str, name: &str) -> Self {
        Self { lease: lease::Lease::new(namespace, name), ..self }
    }

    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// What a watch told, and when by our own clock. Resources that are not watched are not heard.
    pub fn hear(&self, resource: Resource, heard: &Heard, now: Timestamp) {
        match heard {
            Heard::Listed(objects) => self.hear_all(resource, objects, now),
            Heard::Applied(object) => self.hear_applied(resource, object, now),
            Heard::Deleted(object) => self.hear_deleted(resource, object, now),
            Heard::Current => {
                if let Some(of) = resources::watched(resource) {
                    self.eyes.borrow_mut().current(of, now);
                }
            }
        }
    }

    /// [`Heard::Listed`], for whoever keeps the objects.
    pub fn hear_all<'o>(
        &self,
        resource: Resource,
        objects: impl IntoIterator<Item = &'o Value>,
        now: Timestamp,
    ) {
        let Some(of) = resources::watched(resource) else { return };
        self.eyes.borrow_mut().listed(of, objects, now);
    }

    /// [`Heard::Applied`], likewise.
    pub fn hear_applied(&self, resource: Resource, object: &Value, now: Timestamp) {
        let Some(of) = resources::watched(resource) else { return };
        let mut eyes = self.eyes.borrow_mut();
        eyes.applied(of, object);
        eyes.current(of, now);
    }

    /// [`Heard::Deleted`], likewise.
    pub fn hear_deleted(&self, resource: Resource, object: &Value, now: Timestamp) {
        let Some(of) = resources::watched(resource) else { return };
        let mut eyes = self.eyes.borrow_mut();
        eyes.deleted(of, object);
        eyes.current(of, now);
    }

    /// What watches have told so far.
    pub fn seen(&self) -> Ref<'_, View> {
        Ref::map(self.eyes.borrow(), Eyes::view)
    }

    /// The API server's version.
    pub fn kubernetes(&self, version: Minor) {
        self.eyes.borrow_mut().kubernetes(version);
    }
}

impl<T: Transport> Cluster for Adapter<T> {
    fn view(&self) -> impl Deref<Target = View> {
        self.seen()
    }

    async fn records(&self) -> Result<Records, ClusterError> {
        self.read_records().await
    }

    async fn pods_on(&self, node: &str) -> Result<Vec<drain::Pod>, ClusterError> {
        self.list_pods(node).await
    }

    async fn node(&self, name: &str) -> Result<Option<Node>, ClusterError> {
        self.read_node(name).await
    }

    async fn write_ledger(&self, ledger: &Ledger) -> Result<Revision, ClusterError> {
        self.record_ledger(ledger).await
    }

    async fn write_replacement(&self, record: &Recorded) -> Result<Revision, ClusterError> {
        self.record_replacement(record).await
    }

    async fn delete_replacement(
        &self,
        name: &str,
        revision: &Revision,
    ) -> Result<(), ClusterError> {
        self.forget_replacement(name, revision).await
    }

    async fn create_claim(&self, claim: &NewClaim) -> Result<String, ClusterError> {
        self.make_claim(claim).await
    }

    async fn record_attempt(
        &self,
        claim: &Object,
        attempt: &Attempt,
    ) -> Result<Revision, ClusterError> {
        self.note_attempt(claim, attempt).await
    }

    async fn write_claim(
        &self,
        claim: &Object,
        state: &ClaimState,
    ) -> Result<Revision, ClusterError> {
        self.note_claim(claim, state).await
    }

    async fn delete_claim(&self, name: &str, uid: &str) -> Result<(), ClusterError> {
        self.end_claim(name, uid).await
    }

    async fn release_claim(&self, claim: &Object) -> Result<(), ClusterError> {
        self.release(resources::CLAIM, claim).await
    }

    async fn register_node(&self, node: &Object, state: &NewNodeState) -> Result<(), ClusterError> {
        self.register(node, state).await
    }

    async fn cordon(&self, node: &Object, replacement: &str) -> Result<(), ClusterError> {
        self.close(node, replacement).await
    }

    async fn uncordon(&self, node: &Object, replacement: &str) -> Result<(), ClusterError> {
        self.open(node, replacement).await
    }

    async fn delete_node(&self, name: &str, uid: &str) -> Result<(), ClusterError> {
        self.end_node(name, uid).await
    }

    async fn release_node(&self, node: &Object) -> Result<(), ClusterError> {
        self.release(resources::NODE, node).await
    }

    async fn evict(&self, pod: &PodId) -> Result<EvictAnswer, ClusterError> {
        self.ask_to_leave(pod).await
    }

    async fn delete_pod(&self, pod: &PodId, grace_seconds: i64) -> Result<(), ClusterError> {
        self.end_pod(pod, grace_seconds).await
    }

    async fn remember(&self, image: &NewMemory) -> Result<(), ClusterError> {
        self.note_image(image).await
    }

    async fn write_status(&self, status: &Status) -> Result<(), ClusterError> {
        self.tell(status).await
    }

    async fn lead(&self, me: &str, now: Timestamp) -> Result<Leadership, ClusterError> {
        self.take_lead(me, now).await
    }
}
