//! What is stored of what was sent?
//!
//! In the server's order: is it the object that the path names, against the revision that it names, with
//! what only the server may write, and is it well-formed. A write that changes nothing is none.

use std::rc::Rc;

use jiff::Timestamp;
use nodemolt_api::admission::Outcome;
use nodemolt_cluster::transport::{Refusal, Request, Resource, Verb};
use serde_json::Value;

use super::refuse::{self, Wrong};
use super::{ApiServer, Call, Key, builtin, finalizers};
use crate::json::{at, merge, remove, set, stamp, text, whole};
use crate::kinds;
use crate::trace::Actor;

/// What may follow a name that somebody else makes up: no vowels, and nothing that looks like another.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const NAME_LETTERS_LENGTH: usize = 5;

impl ApiServer {
    pub(super) fn create(&mut self, call: &Call<'_>) -> Result<Rc<Value>, Refusal> {
        let mut object = body(call)?.clone();
        check_type(call, &mut object)?;
        check_texts(call, &object)?;
        self.name_it(call, &mut object)?;
        let name = text(&object, &["metadata", "name"]).to_owned();
        self.namespace_open(call, &name)?;
        let revision = text(&object, &["metadata", "resourceVersion"]);
        if !revision.is_empty() && revision != "0" {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(refuse::status(500, "", message));
        }
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "uid"] {
            remove(&mut object, &["metadata", field]);
        }
        let uid = self.new_uid();
        set(&mut object, &["metadata", "uid"], Value::String(uid));
        set(&mut object, &["metadata", "creationTimestamp"], stamp(call.now));
        let object = self.admit_new(call, &name, object)?;
        if self.shelves.get(call.kind).is_some_and(|it| it.objects.contains_key(&Key::of(&object)))
        {
            return Err(refuse::already_exists(call.resource, &name));
        }
        let stored = self.put(call.by, call.kind, object, call.now);
        Ok(call.shared(&stored))
    }

    /// A whole object, or a patch of one; of its status only, or of all but that.
    pub(super) fn update(&mut self, call: &Call<'_>, status: bool) -> Result<Rc<Value>, Refusal> {
        let old = self.current(call)?;
        let sent = body(call)?;
        let new = match call.request.verb {
            Verb::MergePatch => {
                if !sent.is_object() {
                    return Err(refuse::bad_request(
                        "json: cannot unmarshal into Go value of type map[string]interface {}",
                    ));
                }
                let mut new = call.shown(&old);
                merge(&mut new, sent);
                new
            }
            Verb::Get | Verb::List | Verb::Create | Verb::Replace | Verb::Delete => sent.clone(),
        };
        let mut new = new;
        check_type(call, &mut new)?;
        check_texts(call, &new)?;
        check_name(call, &mut new)?;
        let uid = text(&new, &["metadata", "uid"]);
        let known = text(&old, &["metadata", "uid"]);
        if call.request.verb == Verb::Replace && !uid.is_empty() && uid != known {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {known}",
                storage_key(call),
            );
            return Err(refuse::conflict(call.resource, call.name(), &why));
        }
        let revision = text(&new, &["metadata", "resourceVersion"]);
        if revision.is_empty() || revision == "0" {
            if !builtin::takes_unconditional_updates(call.resource) {
                let wrong = Wrong::invalid(
                    "metadata.resourceVersion",
                    "0",
                    "must be specified for an update",
                );
                // The server calls the kind by its plural here.
                let plural = Resource { kind: call.resource.plural, ..call.resource };
                return Err(refuse::invalid(plural, call.name(), &[wrong]));
            }
        } else if revision.parse::<u64>().is_err() {
            let wrong = Wrong::invalid("metadata.resourceVersion", &format!("{revision:?}"), "");
            return Err(refuse::invalid(call.resource, call.name(), &[wrong]));
        } else if revision != text(&old, &["metadata", "resourceVersion"]) {
            return Err(refuse::modified(call.resource, call.name()));
        }
        self.change(call, &old, new, status).map(|it| call.shared(&it))
    }

    /// Stores another state of an object that is there, if it is one.
    pub(super) fn change(
        &mut self,
        call: &Call<'_>,
        old: &Rc<Value>,
        mut new: Value,
        status: bool,
    ) -> Result<Rc<Value>, Refusal> {
        // The status of our own kinds is all that is read of what was sent.
        if !status || self.validators.of(call.kind).is_none() {
            let wrong = dated(old, &new);
            if !wrong.is_empty() {
                return Err(refuse::invalid(call.resource, call.name(), &wrong));
            }
        }
        settle_metadata(old, &mut new);
        let stored_version = text(old, &["apiVersion"]).to_owned();
        let mut new = match (self.validators.of(call.kind), status) {
            (Some(_), _) if self.unchecked => {
                let generation = whole(old, &["metadata", "generation"]).unwrap_or(0) + 1;
                set(&mut new, &["metadata", "generation"], generation.into());
                new
            }
            (Some(validator), false) => verdict(call, validator.update(old, &new))?,
            (Some(validator), true) => verdict(call, validator.update_status(old, &new))?,
            (None, _) => {
                let wrong = if status {
                    builtin::settle_status(call.resource, old, &mut new)
                } else {
                    builtin::settle(call.resource, old, &mut new)
                };
                if !wrong.is_empty() {
                    return Err(refuse::invalid(call.resource, call.name(), &wrong));
                }
                new
            }
        };
        set(&mut new, &["apiVersion"], Value::String(stored_version));
        // The validator writes as Go does and leaves out a nought. This one is a pointer in Go, and stays.
        if let Some(grace) = at(old, &["metadata", "deletionGracePeriodSeconds"]) {
            set(&mut new, &["metadata", "deletionGracePeriodSeconds"], grace.clone());
        }
        if new == **old {
            return Ok(Rc::clone(old));
        }
        Ok(self.put_or_end(call.by, call.kind, new, call.now))
    }

    /// What is being deleted ends with its last finalizer.
    pub(super) fn put_or_end(
        &mut self,
        by: Actor,
        kind: usize,
        object: Value,
        now: Timestamp,
    ) -> Rc<Value> {
        let deleting = at(&object, &["metadata", "deletionTimestamp"]).is_some();
        let grace = whole(&object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        // A namespace waits for what is in it.
        let waits = grace > 0 || kinds::ALL[kind] == kinds::NAMESPACE;
        if deleting && !waits && finalizers(&object).is_empty() {
            // The store takes away what it has: watches see it with the finalizer that was its last.
            let stored = self.shelves.get(kind).and_then(|it| it.objects.get(&Key::of(&object)));
            let last = stored.map_or(object, |it| (**it).clone());
            return self.take(by, kind, last, now);
        }
        self.put(by, kind, object, now)
    }

    /// The name that is in the object, or one that is made up.
    fn name_it(&mut self, call: &Call<'_>, object: &mut Value) -> Result<(), Refusal> {
        let prefix = text(object, &["metadata", "generateName"]).to_owned();
        if text(object, &["metadata", "name"]).is_empty() && !prefix.is_empty() {
            let mut number = self.number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let mut name = prefix;
            for _ in 0..NAME_LETTERS_LENGTH {
                let letters = u64::try_from(NAME_LETTERS.len()).unwrap_or(1);
                let letter = usize::try_from(number % letters).unwrap_or(0);
                name.push(char::from(NAME_LETTERS[letter]));
                number /= letters;
            }
            set(object, &["metadata", "name"], Value::String(name));
        }
        check_namespace(call, object)
    }

    fn admit_new(
        &mut self,
        call: &Call<'_>,
        name: &str,
        mut object: Value,
    ) -> Result<Value, Refusal> {
        let Some(validator) = self.validators.of(call.kind) else {
            let wrong = builtin::admit(self, call.resource, &mut object);
            if !wrong.is_empty() {
                return Err(refuse::invalid(call.resource, name, &wrong));
            }
            return Ok(object);
        };
        let mut object = if self.unchecked {
            set(&mut object, &["metadata", "generation"], 1.into());
            object
        } else {
            let outcome = validator.create(&object);
            outcome.verdict.map_err(|causes| refuse::inadmissible(call.resource, name, &causes))?
        };
        let version = kinds::api_version(kinds::ALL[call.kind]);
        set(&mut object, &["apiVersion"], Value::String(version));
        Ok(object)
    }
}

fn verdict(call: &Call<'_>, outcome: Outcome) -> Result<Value, Refusal> {
    outcome.verdict.map_err(|causes| refuse::inadmissible(call.resource, call.name(), &causes))
}

fn body<'r>(call: &Call<'r>) -> Result<&'r Value, Refusal> {
    let Request { body, .. } = call.request;
    body.as_ref().ok_or_else(|| refuse::bad_request("an empty body is no object"))
}

/// Names, labels and annotations of Kubernetes' own kinds are texts: YAML takes `2`, `true` or `no` for something else, and
/// a server cannot read that. What our own kinds may hold is their schema's.
fn check_texts(call: &Call<'_>, object: &Value) -> Result<(), Refusal> {
    if !builtin::is(call.resource) {
        return Ok(());
    }
    for place in [&["metadata"][..], &["spec", "template", "metadata"]] {
        let Some(metadata) = at(object, place) else { continue };
        let named =
            ["name", "generateName", "namespace"].map(|it| (it.to_owned(), metadata.get(it)));
        let said = ["labels", "annotations"].into_iter().flat_map(|map| {
            let words = metadata.get(map).and_then(Value::as_object).into_iter().flatten();
            words.map(move |(key, it)| (format!("{map}[{key}]"), Some(it)))
        });
        for (field, value) in named.into_iter().chain(said) {
            let Some(value) = value.filter(|it| !it.is_string() && !it.is_null()) else { continue };
            let field = format!("{}.{field}", place.join("."));
            let wrong =
                Wrong::unreadable(&field, &value.to_string(), "must be a text: write it in quotes");
            return Err(refuse::invalid(call.resource, call.name(), &[wrong]));
        }
    }
    Ok(())
}

/// Whether the object is of the kind that the path says. Of Kubernetes' own kinds it need not say so.
fn check_type(call: &Call<'_>, object: &mut Value) -> Result<(), Refusal> {
    if !object.is_object() {
        return Err(refuse::bad_request("the object provided is unrecognized: expected an object"));
    }
    let (api_version, kind) = (kinds::api_version(call.resource), call.resource.kind);
    let said = text(object, &["apiVersion"]).to_owned();
    let said_kind = text(object, &["kind"]).to_owned();
    if (said.is_empty() || said_kind.is_empty()) && builtin::is(call.resource) {
        set(object, &["apiVersion"], Value::String(api_version));
        set(object, &["kind"], Value::String(kind.to_owned()));
        return Ok(());
    }
    if said_kind.is_empty() {
        return Err(refuse::bad_request("Object 'Kind' is missing"));
    }
    if said != api_version {
        let message = format!(
            "the API version in the data ({said}) does not match the expected API version ({api_version})"
        );
        return Err(refuse::bad_request(message));
    }
    if said_kind != kind {
        let message =
            format!("the kind in the data ({said_kind}) does not match the expected kind ({kind})");
        return Err(refuse::bad_request(message));
    }
    Ok(())
}

fn check_name(call: &Call<'_>, object: &mut Value) -> Result<(), Refusal> {
    let said = text(object, &["metadata", "name"]);
    if said != call.name() {
        let message = if said.is_empty() {
            "name must be provided".to_owned()
        } else {
            format!(
                "the name of the object ({said}) does not match the name on the URL ({})",
                call.name()
            )
        };
        return Err(refuse::bad_request(message));
    }
    check_namespace(call, object)
}

fn check_namespace(call: &Call<'_>, object: &mut Value) -> Result<(), Refusal> {
    let said = text(object, &["metadata", "namespace"]);
    if !call.resource.namespaced {
        remove(object, &["metadata", "namespace"]);
        return Ok(());
    }
    if said.is_empty() {
        let namespace = Value::String(call.namespace().to_owned());
        set(object, &["metadata", "namespace"], namespace);
    } else if said != call.namespace() {
        let message =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(refuse::bad_request(message));
    }
    Ok(())
}

/// Nobody deletes by writing a time.
fn dated(old: &Value, new: &Value) -> Vec<Wrong> {
    let added = |field: &&str| {
        at(old, &["metadata", field]).is_none() && at(new, &["metadata", field]).is_some()
    };
    ["deletionTimestamp", "deletionGracePeriodSeconds"]
        .into_iter()
        .filter(added)
        .map(|field| {
            let said = at(new, &["metadata", field]).map(Value::to_string).unwrap_or_default();
            Wrong::invalid(&format!("metadata.{field}"), &said, "field is immutable")
        })
        .collect()
}

/// What only the server writes stays as it is.
fn settle_metadata(old: &Value, new: &mut Value) {
    for field in [
        "creationTimestamp",
        "resourceVersion",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        match at(old, &["metadata", field]) {
            Some(value) => set(new, &["metadata", field], value.clone()),
            None => {
                remove(new, &["metadata", field]);
            }
        }
    }
    if text(new, &["metadata", "uid"]).is_empty() {
        let uid = text(old, &["metadata", "uid"]).to_owned();
        set(new, &["metadata", "uid"], Value::String(uid));
    }
}

/// Where etcd would have it, which stands in some refusals.
pub(super) fn storage_key(call: &Call<'_>) -> String {
    let mut key = String::from("/registry/");
    if !builtin::is(call.resource) {
        key.push_str(call.resource.group);
        key.push('/');
    }
    key.push_str(call.resource.plural);
    for part in [call.namespace(), call.name()].into_iter().filter(|it| !it.is_empty()) {
        key.push('/');
        key.push_str(part);
    }
    key
}
