//! What does an API server answer?
//!
//! `request × now → answer, or a refusal`, and every change as a fact
//!
//! Objects are JSON, by kind, namespace and name; one counter numbers all changes. Our own kinds and
//! Karpenter's pass the validator of `api`, so what a real server would prune, default or refuse is pruned,
//! defaulted or refused here. Kubernetes' own kinds are checked lightly. Nothing is lost or late in here:
//! that is put around it.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use nodemolt_cluster::transport::{Answer, Refusal, Request, Resource};
use serde_json::Value;

use crate::trace::{Actor, Trace};

/// Namespace (empty for what belongs to the whole cluster) and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

/// One change of one object, as a watch tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub revision: u64,
    pub what: What,
    /// As it is now; for what was deleted, as it was last, with the revision of its end.
    pub object: Rc<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Added,
    Modified,
    Deleted,
}

/// 410: what happened since then is not known any more, and everything has to be listed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted;

#[derive(Debug)]
pub struct ApiServer {
    trace: Trace,
    shelves: BTreeMap<Resource, BTreeMap<Key, Rc<Value>>>,
}

impl ApiServer {
    /// With no object but the namespaces that every cluster has.
    pub fn new(trace: Trace, _now: Timestamp) -> Self {
        Self { trace, shelves: BTreeMap::new() }
    }

    /// One request, done at once or not at all.
    pub fn handle(
        &mut self,
        _by: Actor,
        _request: &Request,
        _now: Timestamp,
    ) -> Result<Answer, Refusal> {
        Err(Refusal::NoAnswer(String::new()))
    }

    /// The number of the last change of any kind.
    pub fn revision(&self) -> u64 {
        0
    }

    /// All changes of a kind after a revision, in order.
    pub fn changes(
        &self,
        _resource: Resource,
        _since: u64,
    ) -> Result<impl Iterator<Item = &Change>, Compacted> {
        Ok(std::iter::empty())
    }

    /// Forgets the changes of a kind up to now, so that watches that lag have to list again.
    pub fn compact(&mut self, _resource: Resource) {}

    pub fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<&Rc<Value>> {
        let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
        self.shelves.get(&resource)?.get(&key)
    }

    /// All of a kind, by namespace and name.
    pub fn all(&self, resource: Resource) -> impl Iterator<Item = (&Key, &Rc<Value>)> {
        self.shelves.get(&resource).into_iter().flatten()
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }
}
