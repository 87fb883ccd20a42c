//! What does an API server answer?
//!
//! `request × now → answer, or a refusal`, and every change as a fact
//!
//! Objects are JSON, by kind, namespace and name; one counter numbers all changes. Our own kinds and
//! Karpenter's pass the validator of `api`, so what a real server would prune, default or refuse is pruned,
//! defaulted or refused here. Kubernetes' own kinds are checked lightly. Nothing is lost or late in here:
//! that is put around it.

mod builtin;
mod delete;
mod eviction;
mod refuse;
mod shelf;
mod validators;
mod write;

use std::collections::BTreeSet;
use std::ops::Bound;
use std::rc::Rc;

use jiff::Timestamp;
use nodemolt_cluster::transport::{Answer, Refusal, Request, Resource, Subresource, Verb};
use serde_json::{Value, json};

pub(crate) use self::eviction::set_disruption_allowed;
use self::shelf::{Index, Shelf};
use self::validators::Validators;
use crate::json::{members, set, text, whole_second};
use crate::kinds;
use crate::selector::selects;
use crate::trace::{Actor, Fact, Step, Trace};

/// Every cluster has these.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Namespace (empty for what belongs to the whole cluster) and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Of an object that is stored.
    pub fn of(object: &Value) -> Self {
        Self::new(text(object, &["metadata", "namespace"]), text(object, &["metadata", "name"]))
    }
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
    /// The last change.
    revision: u64,
    /// How many UIDs and names were made up.
    made: u64,
    /// One per kind, in the order of [`kinds::ALL`].
    shelves: Vec<Shelf>,
    index: Index,
    validators: &'static Validators,
    /// As another version of the definitions would: nothing of custom kinds is refused, pruned or defaulted.
    unchecked: bool,
    /// What changed since the controllers last asked. `None`: there are none.
    feed: Option<Vec<Touched>>,
    /// The next eviction finds its budget changed each time that it is written.
    pub(crate) gives_up: bool,
}

/// What a change was, for controllers.
#[derive(Debug, Clone)]
pub(crate) struct Touched {
    pub(crate) resource: Resource,
    pub(crate) old: Option<Rc<Value>>,
    pub(crate) new: Option<Rc<Value>>,
}

/// Who asks what, and when.
#[derive(Debug, Clone, Copy)]
struct Call<'r> {
    by: Actor,
    now: Timestamp,
    /// Index into the shelves.
    kind: usize,
    /// As it is asked for: an older version of a kind is the same kind.
    resource: Resource,
    request: &'r Request,
}

impl ApiServer {
    /// With no object but the namespaces that every cluster has.
    pub fn new(trace: Trace, now: Timestamp) -> Self {
        let mut server = Self {
            trace,
            revision: 1,
            made: 0,
            shelves: kinds::ALL.iter().map(|_| Shelf::default()).collect(),
            index: Index::default(),
            validators: Validators::shared(),
            unchecked: false,
            feed: None,
            gives_up: false,
        };
        for name in NAMESPACES {
            let body =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            let request = request(Verb::Create, kinds::NAMESPACE, None, None, Some(body));
            let made = server.handle(Actor::Fate, &request, now);
            debug_assert!(made.is_ok(), "{made:?}");
        }
        server
    }

    /// From now on, or not any more: what custom kinds' schemas say does not count.
    pub(crate) fn check_nothing(&mut self, unchecked: bool) {
        self.unchecked = unchecked;
    }

    /// One request, done at once or not at all.
    pub fn handle(
        &mut self,
        by: Actor,
        request: &Request,
        now: Timestamp,
    ) -> Result<Answer, Refusal> {
        let kind = kind_of(request.resource).ok_or_else(refuse::no_such_resource)?;
        let call = Call { by, now, kind, resource: request.resource, request };
        call.check_place()?;
        let mut items = None;
        let (code, body) = match (request.verb, request.subresource) {
            (Verb::Get, _) => (200, self.asked_for(&call)?),
            (Verb::List, None) => {
                items = Some(self.listed(&call)?);
                (200, Rc::new(self.list_of(&call)))
            }
            (Verb::Create, None) => (201, self.create(&call)?),
            (Verb::Create, Some(Subresource::Eviction)) => {
                let begun = self.trace.len();
                let asked = eviction::Asked::read(&call)?;
                let answer = self.evict(&call, &asked);
                if !asked.dry_run {
                    self.trace.insert(begun, call.step(asked.fact(&answer)));
                }
                answer?;
                let body = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {},
                    "status": "Success", "code": 201,
                });
                (201, Rc::new(body))
            }
            (Verb::Replace | Verb::MergePatch, None) => (200, self.update(&call, false)?),
            (Verb::Replace | Verb::MergePatch, Some(Subresource::Status)) => {
                (200, self.update(&call, true)?)
            }
            (Verb::Delete, None) => (200, self.delete(&call)?),
            (Verb::List | Verb::Create | Verb::Delete, Some(_))
            | (Verb::Replace | Verb::MergePatch, Some(Subresource::Eviction)) => {
                return Err(refuse::no_such_resource());
            }
        };
        Ok(Answer { code, body, items, date: Some(whole_second(now)) })
    }

    /// The number of the last change of any kind.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// All changes of a kind after a revision, in order.
    pub fn changes(
        &self,
        resource: Resource,
        since: u64,
    ) -> Result<impl Iterator<Item = &Change>, Compacted> {
        let stock = kind_of(resource).and_then(|it| self.shelves.get(it)).ok_or(Compacted)?;
        stock.since(since)
    }

    /// Forgets the changes of a kind up to now, so that watches that lag have to list again.
    pub fn compact(&mut self, resource: Resource) {
        if let Some(shelf) = kind_of(resource).and_then(|it| self.shelves.get_mut(it)) {
            shelf.forget();
        }
    }

    /// Forgets the changes of a kind that everybody who watches was told of: nobody notices.
    pub(crate) fn forget_until(&mut self, resource: Resource, revision: u64) {
        if let Some(shelf) = kind_of(resource).and_then(|it| self.shelves.get_mut(it)) {
            shelf.forget_until(revision);
        }
    }

    pub fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<&Rc<Value>> {
        self.shelves.get(kind_of(resource)?)?.objects.get(&Key::new(namespace, name))
    }

    /// All of a kind, by namespace and name.
    pub fn all(&self, resource: Resource) -> impl Iterator<Item = (&Key, &Rc<Value>)> {
        kind_of(resource).and_then(|it| self.shelves.get(it)).into_iter().flat_map(|it| &it.objects)
    }

    /// All of a kind in one namespace.
    pub fn all_in<'s>(
        &'s self,
        resource: Resource,
        namespace: &'s str,
    ) -> impl Iterator<Item = (&'s Key, &'s Rc<Value>)> {
        let stock = kind_of(resource).and_then(|it| self.shelves.get(it));
        let first = Bound::Included(Key::new(namespace, ""));
        stock
            .into_iter()
            .flat_map(move |it| it.objects.range((first.clone(), Bound::Unbounded)))
            .take_while(move |(key, _)| key.namespace == namespace)
    }

    /// The pods that are on a node, going or not.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &Rc<Value>> {
        let pods = self.shelf_of(kinds::POD);
        self.index.on.get(node).into_iter().flatten().filter_map(move |it| pods?.objects.get(it))
    }

    /// The pods of a namespace that a `LabelSelector` means.
    pub(crate) fn pods_selected<'s>(
        &'s self,
        namespace: &'s str,
        selector: Option<&'s Value>,
    ) -> impl Iterator<Item = &'s Rc<Value>> {
        let pods = self.shelf_of(kinds::POD);
        let label = selector.and_then(|it| {
            let (label, value) = members(it, &["matchLabels"]).next()?;
            Some((label, value.as_str()?))
        });
        let by_label = label.into_iter().flat_map(move |(label, value)| {
            let all = self.index.labelled(label, value);
            all.filter(move |it| it.namespace == namespace)
                .filter_map(move |it| pods?.objects.get(it))
        });
        // Without a label to go by everybody is looked at.
        let others = label.is_none().then(|| self.all_in(kinds::POD, namespace));
        let others = others.into_iter().flatten().map(|it| it.1);
        by_label.chain(others).filter(move |it| selects(selector, it))
    }

    /// The pods that no node has.
    pub fn pods_nowhere(&self) -> impl Iterator<Item = (&Key, &Rc<Value>)> {
        let pods = self.shelf_of(kinds::POD);
        self.index.nowhere.iter().filter_map(move |it| Some((it, pods?.objects.get(it)?)))
    }

    /// The pods whose owner has this UID.
    pub fn pods_of<'s>(&'s self, owner: &str) -> impl Iterator<Item = &'s Rc<Value>> {
        let pods = kind_of(kinds::POD);
        let theirs = self.index.owned.get(owner).into_iter().flatten();
        theirs.filter(move |(kind, _)| Some(*kind) == pods).filter_map(|it| self.find(it))
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// For those who may write everything: what `change` makes of an object of Kubernetes' own kinds, stored
    /// if that is something else.
    pub(crate) fn alter(
        &mut self,
        by: Actor,
        resource: Resource,
        key: &Key,
        now: Timestamp,
        change: impl FnOnce(&mut Value),
    ) {
        let Some(kind) = kind_of(resource) else { return };
        let found = self.shelves.get(kind).and_then(|it| it.objects.get(key)).cloned();
        let Some(old) = found else { return };
        let mut new = (*old).clone();
        change(&mut new);
        if new != *old {
            self.put_or_end(by, kind, new, now);
        }
    }

    /// Whatever has this UID.
    pub(crate) fn with_uid(&self, uid: &str) -> Option<(Resource, &Rc<Value>)> {
        let place = self.index.known.get(uid)?;
        Some((kinds::ALL.get(place.0).copied()?, self.find(place)?))
    }

    /// Whatever names this UID as its owner.
    pub(crate) fn owned_by(&self, uid: &str) -> Vec<(Resource, Rc<Value>)> {
        let owned = self.index.owned.get(uid).into_iter().flatten();
        owned
            .filter_map(|it| Some((kinds::ALL.get(it.0).copied()?, Rc::clone(self.find(it)?))))
            .collect()
    }

    /// From here on what changes is kept for [`Self::take_touched`].
    pub(crate) fn begin_feed(&mut self) {
        let mut all = Vec::new();
        for (resource, shelf) in kinds::ALL.iter().zip(&self.shelves) {
            let there = shelf.objects.values();
            all.extend(there.map(|it| Touched {
                resource: *resource,
                old: None,
                new: Some(Rc::clone(it)),
            }));
        }
        self.feed = Some(all);
    }

    pub(crate) fn take_touched(&mut self) -> Vec<Touched> {
        self.feed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn find(&self, place: &(usize, Key)) -> Option<&Rc<Value>> {
        self.shelves.get(place.0)?.objects.get(&place.1)
    }

    fn shelf_of(&self, resource: Resource) -> Option<&Shelf> {
        self.shelves.get(kind_of(resource)?)
    }

    fn current(&self, call: &Call<'_>) -> Result<Rc<Value>, Refusal> {
        let found = self.shelves.get(call.kind).and_then(|it| it.objects.get(&call.key()));
        found.cloned().ok_or_else(|| refuse::not_found(call.resource, call.name()))
    }

    fn asked_for(&self, call: &Call<'_>) -> Result<Rc<Value>, Refusal> {
        Ok(call.shared(&self.current(call)?))
    }

    fn listed(&self, call: &Call<'_>) -> Result<Vec<Rc<Value>>, Refusal> {
        let namespace = call.request.namespace.as_deref();
        if let Some(node) = call.on_node()? {
            let there = self.pods_on(node).filter(|it| {
                namespace.is_none_or(|wanted| wanted == text(it, &["metadata", "namespace"]))
            });
            let mut there: Vec<Rc<Value>> = there.map(Rc::clone).collect();
            there.sort_by_key(|it| Key::of(it));
            return Ok(there);
        }
        let all = self.shelves.get(call.kind).into_iter().flat_map(|it| &it.objects);
        let all = all
            .filter(|(key, _)| namespace.is_none_or(|it| it == key.namespace))
            .map(|(_, object)| call.shared(object));
        Ok(all.collect())
    }

    /// All of a list but what it lists.
    fn list_of(&self, call: &Call<'_>) -> Value {
        json!({
            "apiVersion": kinds::api_version(call.resource),
            "kind": format!("{}List", call.resource.kind),
            "metadata": { "resourceVersion": self.revision.to_string() },
        })
    }

    /// Puts an object in its place, with a revision of its own.
    fn put(&mut self, by: Actor, kind: usize, mut object: Value, now: Timestamp) -> Rc<Value> {
        self.revision += 1;
        set(
            &mut object,
            &["metadata", "resourceVersion"],
            Value::String(self.revision.to_string()),
        );
        let (key, object) = (Key::of(&object), Rc::new(object));
        let Some(stock) = self.shelves.get_mut(kind) else { return object };
        let old = stock.objects.insert(key.clone(), Rc::clone(&object));
        let what = if old.is_some() { What::Modified } else { What::Added };
        stock.note(self.revision, what, Rc::clone(&object));
        let resource = kinds::ALL[kind];
        let pods = resource == kinds::POD;
        self.index.replace(kind, pods, &key, old.as_deref(), Some(&object));
        if let Some(feed) = &mut self.feed {
            feed.push(Touched { resource, old: old.clone(), new: Some(Rc::clone(&object)) });
        }
        let fact = Fact::Stored { resource, object: Rc::clone(&object), old };
        self.trace.push(Step { at: now, by, fact });
        object
    }

    /// Takes an object away. `last` is what it was at its end.
    fn take(&mut self, by: Actor, kind: usize, mut last: Value, now: Timestamp) -> Rc<Value> {
        self.revision += 1;
        set(&mut last, &["metadata", "resourceVersion"], Value::String(self.revision.to_string()));
        let (key, last) = (Key::of(&last), Rc::new(last));
        let Some(stock) = self.shelves.get_mut(kind) else { return last };
        let old = stock.objects.remove(&key);
        stock.note(self.revision, What::Deleted, Rc::clone(&last));
        let resource = kinds::ALL[kind];
        self.index.replace(kind, resource == kinds::POD, &key, old.as_deref(), None);
        if let Some(feed) = &mut self.feed {
            feed.push(Touched { resource, old, new: None });
        }
        let fact = Fact::Removed { resource, last: Rc::clone(&last) };
        self.trace.push(Step { at: now, by, fact });
        last
    }

    /// The namespaces that take nothing new.
    fn namespace_open(&self, call: &Call<'_>, name: &str) -> Result<(), Refusal> {
        let namespace = call.namespace();
        if !call.resource.namespaced {
            return Ok(());
        }
        let Some(found) = self.get(kinds::NAMESPACE, "", namespace) else {
            return Err(refuse::not_found(kinds::NAMESPACE, namespace));
        };
        if text(found, &["metadata", "deletionTimestamp"]).is_empty() {
            return Ok(());
        }
        Err(refuse::namespace_terminating(call.resource, name, namespace))
    }

    fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Every object has another, and another run has the same.
    fn new_uid(&mut self) -> String {
        let number = self.number();
        format!("00000000-0000-4000-8000-{number:012x}")
    }
}

impl Call<'_> {
    fn namespace(&self) -> &str {
        self.request.namespace.as_deref().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.request.name.as_deref().unwrap_or_default()
    }

    fn key(&self) -> Key {
        Key::new(self.namespace(), self.name())
    }

    fn step(&self, fact: Fact) -> Step {
        Step { at: self.now, by: self.by, fact }
    }

    /// Whether there is such a path at all.
    fn check_place(&self) -> Result<(), Refusal> {
        let Request { verb, subresource, namespace, name, .. } = self.request;
        let named = name.as_deref().is_some_and(|it| !it.is_empty());
        let needs_name = match verb {
            Verb::List => false,
            Verb::Create => subresource.is_some(),
            Verb::Get | Verb::Replace | Verb::MergePatch | Verb::Delete => true,
        };
        let all_namespaces = *verb == Verb::List;
        let placed = match (self.resource.namespaced, namespace) {
            (true, Some(namespace)) => !namespace.is_empty(),
            (true, None) => all_namespaces,
            (false, namespace) => namespace.is_none(),
        };
        if (needs_name && !named) || !placed {
            return Err(refuse::no_such_resource());
        }
        if *subresource == Some(Subresource::Eviction) && self.resource != kinds::POD {
            return Err(refuse::no_such_resource());
        }
        Ok(())
    }

    /// The node whose pods are asked for, of a list that selects by it. No other field selects here.
    fn on_node(&self) -> Result<Option<&str>, Refusal> {
        let options = self.request.body.as_ref().and_then(|it| it.get("fieldSelector"));
        let Some(selector) = options.and_then(Value::as_str).filter(|it| !it.is_empty()) else {
            return Ok(None);
        };
        match selector.split_once('=') {
            Some(("spec.nodeName", node)) if self.resource == kinds::POD => Ok(Some(node)),
            Some((field, _)) => {
                Err(refuse::bad_request(format!("field label not supported: {field}")))
            }
            None => Err(refuse::bad_request(format!("invalid selector: '{selector}'"))),
        }
    }

    /// Whether it is asked for in the version that is stored.
    fn as_stored(&self) -> bool {
        self.resource.version == kinds::ALL[self.kind].version
    }

    /// The same, not copied where nothing has to be written into it.
    fn shared(&self, object: &Rc<Value>) -> Rc<Value> {
        if self.as_stored() { Rc::clone(object) } else { Rc::new(self.shown(object)) }
    }

    /// In the version that was asked for.
    fn shown(&self, object: &Value) -> Value {
        let mut shown = object.clone();
        if !self.as_stored() {
            let version = kinds::api_version(self.resource);
            set(&mut shown, &["apiVersion"], Value::String(version));
        }
        shown
    }
}

/// A request, for those in here who make some.
pub(crate) fn request(
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
        namespace: namespace.filter(|it| !it.is_empty()).map(str::to_owned),
        name: name.map(str::to_owned),
        body,
    }
}

/// Where its shelf is. A version that is not served has none.
fn kind_of(resource: Resource) -> Option<usize> {
    let found = kinds::ALL
        .iter()
        .position(|it| it.plural == resource.plural && it.group == resource.group)?;
    let served = kinds::ALL[found].version == resource.version
        || (kinds::ALL[found] == kinds::IMAGE && kinds::IMAGE_VERSIONS.contains(&resource.version));
    served.then_some(found)
}

/// The finalizers that hold an object.
fn finalizers(object: &Value) -> BTreeSet<&str> {
    let listed = crate::json::items(object, &["metadata", "finalizers"]);
    listed.iter().filter_map(Value::as_str).collect()
}
