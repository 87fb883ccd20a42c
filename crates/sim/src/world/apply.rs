//! What becomes of a manifest?
//!
//! `kubectl apply` makes an object, or changes all of it but its status; a status is written by whoever
//! keeps it. What the schemas refuse cannot come in by either, but may be there all the same: another
//! version of the definition has let it in.

use std::rc::Rc;

use nodemolt_api::file::{Source, raw};
use nodemolt_cluster::transport::{Request, Resource, Subresource, Verb};
use serde_json::{Value, json};

use super::acts::told;
use super::{ActError, World};
use crate::act::Act;
use crate::json::merge;
use crate::kinds;
use crate::kube::unreadable_pace;
use crate::scenario::{PODS_MAX, pods_wanted};
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
        self.tell_act(act);
        let mut names = Vec::new();
        for object in raw::objects(&source) {
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
                        return Err(ActError::gone(format!("there is no {}", meant.called())));
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
        if let Some((field, told)) = unreadable_pace(&object) {
            return Err(format!("{called}: {field}: {told}"));
        }
        let Meant { resource, namespace, name } = meant;
        if let Some(namespace) = &namespace {
            self.ensure_namespace(by, namespace);
        }
        let there = {
            let kube = self.kube.borrow();
            kube.server.get(resource, namespace.as_deref().unwrap_or_default(), &name).cloned()
        };
        let answer = match there {
            None => {
                let mut object = object;
                if let Some(namespace) = &namespace {
                    object["metadata"]["namespace"] = namespace.clone().into();
                }
                self.create(by, resource, namespace.as_deref(), object)
            }
            Some(there) => {
                let mut whole = Value::clone(&there);
                for (key, value) in object.as_object().into_iter().flatten() {
                    match key.as_str() {
                        "metadata" => merge_metadata(&mut whole["metadata"], value),
                        "status" => {}
                        _ => whole[key] = value.clone(),
                    }
                }
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
        answer.map_err(|it| format!("{called}: {}", told(&it)))?;
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

fn merge_metadata(there: &mut Value, written: &Value) {
    for (key, value) in written.as_object().into_iter().flatten() {
        match (key.as_str(), value.as_object()) {
            ("labels" | "annotations", Some(members)) => {
                for (name, value) in members {
                    there[key][name] = value.clone();
                }
            }
            _ => there[key] = value.clone(),
        }
    }
}
