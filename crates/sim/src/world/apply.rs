//! What becomes of a manifest?
//!
//! `what was applied last × what is there × manifest → what is there then`
//!
//! `kubectl apply` makes an object, or changes what the manifest says; what the last one said and this one
//! does not is taken away, and what others have filled in stays. A status is written by whoever keeps it. What the schemas refuse cannot come in by either, but may be there all the same: another
//! version of the definition has let it in.

use std::rc::Rc;

use nodemolt_api::file::builtin::Written;
use nodemolt_api::file::{Located, Source, raw, unknown_fields};
use nodemolt_cluster::transport::{Request, Resource, Subresource, Verb};
use serde_json::{Value, json};

use super::acts::told;
use super::{ActError, World};
use crate::act::Act;
use crate::json::{merge, remove, text};
use crate::kinds;
use crate::scenario::{PODS_MAX, door, pods_wanted};
use crate::trace::Actor;

/// Said of a status that nobody reads.
const IGNORED: &str =
    "its status was ignored, as an API server does: `--subresource status` writes it";

/// Which part of it, and past whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Whole,
    Status,
    Unchecked,
}

/// What a person has applied, and to which object of that name.
#[derive(Debug)]
pub(super) struct Applied {
    uid: String,
    written: Value,
}

/// Which object a manifest is about.
struct Meant {
    resource: Resource,
    namespace: Option<String>,
    name: String,
}

impl Meant {
    fn read(object: &Value) -> Result<Self, String> {
        let text = |at: &str| object.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let (Some(version), Some(kind)) = (text("/apiVersion"), text("/kind")) else {
            return Err("apiVersion or kind is missing; write both".to_owned());
        };
        let Some(resource) = kinds::of_object(&version, &kind) else {
            return Err(format!("{kind} of {version} is not served here"));
        };
        let name = text("/metadata/name").ok_or_else(|| format!("{kind} has no name"))?;
        let namespace = resource
            .namespaced
            .then(|| text("/metadata/namespace").unwrap_or_else(|| "default".to_owned()));
        Ok(Self { resource, namespace, name })
    }

    fn called(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.resource.kind, self.name),
            None => format!("{} {}", self.resource.kind, self.name),
        }
    }
}

impl World {
    pub(super) fn apply(
        &mut self,
        act: &Act,
        manifest: &str,
        how: How,
    ) -> Result<String, ActError> {
        let source = Source { name: "manifest".to_owned(), text: manifest.to_owned() };
        let problems = raw::problems(&source);
        if let Some(first) = problems.first() {
            return Err(first.to_string().into());
        }
        let objects = raw::objects(&source);
        let unknown = if how == How::Whole { unknown_fields(&source) } else { Vec::new() };
        let mut refused = Vec::new();
        for object in &objects {
            let written = if how == How::Status { Written::Status } else { Written::Whole };
            let mut problems = door::problems(object, written);
            let (first, last) = object.lines();
            problems.extend(unknown.iter().filter(|it| (first..=last).contains(&it.line)).cloned());
            if !problems.is_empty() {
                refused.push(refused_at_the_door(object, &door::told(&problems)));
            }
        }
        if !refused.is_empty() {
            return Err(refused.join("\n").into());
        }
        self.tell_act(act);
        let mut names = Vec::new();
        for object in objects {
            names.push(match how {
                How::Whole => {
                    let sent = object.value.get("status").cloned();
                    let name = self.apply_object(Actor::Person, object.value.clone())?;
                    let kept = self.stored(&object.value).and_then(|it| it.get("status").cloned());
                    if sent.is_some() && sent != kept {
                        format!("{name} ({IGNORED})")
                    } else {
                        name
                    }
                }
                How::Status => {
                    if self.stored(&object.value).is_none()
                        && let Ok(meant) = Meant::read(&object.value)
                    {
                        // A file names it, so nothing was mistyped.
                        let told = format!("there is no {}", meant.called());
                        return Err(ActError { mistyped: false, ..ActError::gone(told) });
                    }
                    self.apply_status(Actor::Person, &object.value)?
                }
                How::Unchecked => self.apply_unchecked(Actor::Person, object.value)?,
            });
        }
        if names.is_empty() {
            let told = "there is no object in it; write apiVersion, kind and metadata";
            return Err(told.to_owned().into());
        }
        Ok(format!("applied {}", names.join(", ")))
    }

    /// As `kubectl apply` does: made, or changed where it is there.
    pub(super) fn apply_object(&mut self, by: Actor, object: Value) -> Result<String, String> {
        let meant = Meant::read(&object)?;
        let called = meant.called();
        if let Some((field, pods)) = pods_wanted(&object).filter(|it| it.1 > PODS_MAX) {
            return Err(format!("{called}: {field}: {pods} pods are more than {PODS_MAX}"));
        }
        let Meant { resource, namespace, name } = meant;
        if let Some(namespace) = &namespace {
            self.ensure_namespace(by, namespace);
        }
        let there = {
            let kube = self.kube.borrow();
            kube.server.get(resource, namespace.as_deref().unwrap_or_default(), &name).cloned()
        };
        let mut written = object;
        let answer = match there {
            None => {
                let mut object = written.clone();
                if let Some(namespace) = &namespace {
                    object["metadata"]["namespace"] = namespace.clone().into();
                }
                remove(&mut written, &["status"]);
                self.create(by, resource, namespace.as_deref(), object)
            }
            Some(there) => {
                remove(&mut written, &["status"]);
                let mut whole = Value::clone(&there);
                let last = self.applied.get(&called);
                if let Some(last) = last.filter(|it| it.uid == text(&there, &["metadata", "uid"])) {
                    take_away(&mut whole, &last.written, &written);
                }
                merge(&mut whole, &written);
                let request = Request {
                    verb: Verb::Replace,
                    resource,
                    subresource: None,
                    namespace: namespace.clone(),
                    name: Some(name.clone()),
                    body: Some(whole),
                };
                self.kubernetes(by, &request)
            }
        };
        let stored = answer.map_err(|it| format!("{called}: {}", told(&it)))?;
        let uid = text(&stored.body, &["metadata", "uid"]).to_owned();
        self.applied.insert(called.clone(), Applied { uid, written });
        Ok(called)
    }

    fn ensure_namespace(&mut self, by: Actor, namespace: &str) {
        if self.kube.borrow().server.get(kinds::NAMESPACE, "", namespace).is_some() {
            return;
        }
        let body = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        });
        // If it cannot be made, what should go into it says why.
        let _ = self.create(by, kinds::NAMESPACE, None, body);
    }

    fn stored(&self, object: &Value) -> Option<Rc<Value>> {
        let Meant { resource, namespace, name } = Meant::read(object).ok()?;
        let kube = self.kube.borrow();
        kube.server.get(resource, namespace.as_deref().unwrap_or_default(), &name).cloned()
    }

    /// Beside what stands there; conditions by their type, as server-side apply would.
    fn apply_status(&mut self, by: Actor, object: &Value) -> Result<String, String> {
        let meant = Meant::read(object)?;
        let called = meant.called();
        let written = object.get("status").filter(|it| it.is_object());
        let written = written.ok_or_else(|| format!("{called} has no status; write one"))?;
        let there = self.stored(object).ok_or_else(|| format!("there is no {called}"))?;
        let mut whole = Value::clone(&there);
        let mut rest = written.clone();
        let conditions = rest.as_object_mut().and_then(|it| it.remove("conditions"));
        if !whole["status"].is_object() {
            whole["status"] = json!({});
        }
        merge(&mut whole["status"], &rest);
        let now = self.now().to_string();
        for mut condition in
            conditions.as_ref().and_then(Value::as_array).cloned().unwrap_or_default()
        {
            // It changes now, unless it says when.
            if condition.is_object() && condition["lastTransitionTime"].is_null() {
                condition["lastTransitionTime"] = now.as_str().into();
            }
            if !whole["status"]["conditions"].is_array() {
                whole["status"]["conditions"] = json!([]);
            }
            let all = whole["status"]["conditions"].as_array_mut();
            let all = all.ok_or_else(|| format!("the conditions of {called} are no list"))?;
            match all.iter_mut().find(|it| it["type"] == condition["type"]) {
                Some(known) => *known = condition,
                None => all.push(condition),
            }
        }
        let request = Request {
            verb: Verb::Replace,
            resource: meant.resource,
            subresource: Some(Subresource::Status),
            namespace: meant.namespace,
            name: Some(meant.name),
            body: Some(whole),
        };
        self.kubernetes(by, &request).map_err(|it| format!("{called}: {}", told(&it)))?;
        Ok(format!("status of {called}"))
    }

    fn apply_unchecked(&mut self, by: Actor, object: Value) -> Result<String, String> {
        self.kube.borrow_mut().server.check_nothing(true);
        let applied = self.apply_object(by, object);
        self.kube.borrow_mut().server.check_nothing(false);
        Ok(format!("{}, unchecked", applied?))
    }
}

/// Which object it is, and why it does not get in.
fn refused_at_the_door(object: &Located<Value>, told: &str) -> String {
    match Meant::read(&object.value) {
        Ok(meant) => format!("{}: {told}", meant.called()),
        Err(_) => told.to_owned(),
    }
}

/// What was said the last time and is not said now goes; what nobody has said stays, whoever filled it in.
fn take_away(there: &mut Value, last: &Value, now: &Value) {
    let (Some(members), Some(said)) = (there.as_object_mut(), last.as_object()) else { return };
    for (key, was) in said {
        match (now.get(key), members.get_mut(key)) {
            (None, _) => {
                members.remove(key);
            }
            (Some(is), Some(member)) => take_away(member, was, is),
            (Some(_), None) => {}
        }
    }
}
