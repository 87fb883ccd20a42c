//! What do people do, and publishers?

use jiff::Timestamp;
use nodemolt_api::disruptionledger;
use nodemolt_cluster::transport::{Answer, Refusal, Request, Resource, Verb};
use nodemolt_core::image::ImageId;
use nodemolt_core::seen::{DISRUPTED_TAINT, UPGRADE_ANNOTATION};
use serde_json::{Value, json};

use super::apply::How;
use super::{ActError, World};
use crate::act::{Act, ImageName, Target};
use crate::kube::unreadable_word;
use crate::region::Region;
use crate::trace::{Actor, Fact};
use crate::{kinds, length};

/// Somebody else's, whoever that is.
const HOLD: &str = "example.com/hold";

/// What publishers do to an image. It fails only with one that is not there any more.
type Change = fn(&mut Region, &ImageName, Timestamp) -> Result<ImageId, String>;

impl World {
    /// Does it now. What came of it, in a sentence for people.
    pub fn act(&mut self, act: &Act) -> Result<String, ActError> {
        let told = self.done(act)?;
        self.settle();
        Ok(told)
    }

    fn done(&mut self, act: &Act) -> Result<String, ActError> {
        let now = self.now();
        let act = &self.named(act)?;
        let image = |world: &mut Self, name: &ImageName, change: Change, what: &str| {
            world.region.find_image(name).map_err(ActError::unknown)?;
            let id = change(&mut world.region, name, now).map_err(ActError::gone)?;
            Ok(format!("{id} is {what}"))
        };
        match act {
            Act::Run(length) => {
                let last = length::LAST;
                if now.checked_add(*length).is_ok_and(|it| it <= last) {
                    self.run(*length);
                } else {
                    let told = format!(
                        "`{}` from {now} on leads past {last}, where time ends here; write less",
                        length::write(*length)
                    );
                    return Err(told.into());
                }
                Ok(format!("it is {}", self.now()))
            }
            Act::Fault(fault) => self.fault(fault),
            Act::Publish(it) => {
                let id = self.region.publish(it, now)?;
                Ok(format!("{} is published as {id}", it.name))
            }
            Act::Move { parameter, to } => {
                let moved = self.region.move_parameter(parameter, to, now);
                let id = moved.map_err(ActError::unknown)?;
                Ok(format!("{parameter} names {id}"))
            }
            Act::Put { parameter, value } => {
                self.region.put(parameter, value, now, now);
                Ok(format!("{parameter} says {value}"))
            }
            Act::Deprecate(it) => image(self, it, Region::deprecate, "deprecated"),
            Act::Disable(it) => image(self, it, Region::disable, "disabled"),
            Act::Enable(it) => image(self, it, Region::enable, "enabled"),
            Act::Deregister(it) => image(self, it, Region::deregister, "deregistered"),
            Act::Unshare(it) => image(self, it, Region::unshare, "not shared any more"),
            Act::Upgrade(target) => self.upgrade(act, target),
            Act::Pause { reason } => {
                let pause = json!({"reason": reason, "by": "person", "since": now.to_string()});
                self.write_ledger(act, json!({"pause": pause}))?;
                Ok("paused".to_owned())
            }
            Act::Resume => {
                self.write_ledger(act, json!({"pause": null}))?;
                Ok("resumed".to_owned())
            }
            Act::Unlock => self.unlock(act),
            Act::Apply { manifest } => self.apply(act, manifest, How::Whole),
            Act::ApplyStatus { manifest } => self.apply(act, manifest, How::Status),
            Act::ApplyUnchecked { manifest } => self.apply(act, manifest, How::Unchecked),
            Act::Delete { kind, namespace, name } => {
                self.delete(act, kind, namespace.as_deref(), name)
            }
            Act::Cordon { node } | Act::Uncordon { node } => {
                let closed = matches!(act, Act::Cordon { .. });
                let patch = json!({"spec": {"unschedulable": closed.then_some(true)}});
                self.tell_act(act);
                self.patch(Actor::Person, kinds::NODE, None, node, patch)
                    .map_err(|it| refused(&it))?;
                Ok(format!("node {node} is {}", if closed { "cordoned" } else { "uncordoned" }))
            }
            Act::Untaint { node } => self.untaint(act, node),
            Act::Annotate { kind, namespace, name, key, value } => {
                self.annotate(act, kind, (namespace.as_deref(), name), key, value.as_deref())
            }
            Act::Hold { kind, name } => self.hold(act, called(kind)?, name),
            Act::Release => Ok(self.release(act)),
        }
    }

    /// The same act with names for `@successor` and the like.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others name nobody who may be gone")]
    fn named(&mut self, act: &Act) -> Result<Act, ActError> {
        let mut act = act.clone();
        match &mut act {
            Act::Upgrade(Target::Node(node))
            | Act::Cordon { node }
            | Act::Uncordon { node }
            | Act::Untaint { node } => *node = self.resolved(kinds::NODE, node)?,
            Act::Upgrade(Target::Pool(pool)) => *pool = self.resolved(kinds::POOL, pool)?,
            Act::Annotate { kind, namespace: None, name, .. }
            | Act::Hold { kind, name }
            | Act::Delete { kind, namespace: None, name } => {
                let resource = kinds::called(kind).next();
                if let Some(resource) = resource {
                    *name = self.resolved(resource, name)?;
                }
            }
            _ => {}
        }
        Ok(act)
    }

    /// A person takes our own taint off a node, and leaves what else we wrote there.
    fn untaint(&mut self, act: &Act, node: &str) -> Result<String, ActError> {
        let found = self.kube.borrow().server.get(kinds::NODE, "", node).cloned();
        let found = found.ok_or_else(|| ActError::gone(format!("there is no node `{node}`")))?;
        let taints = found.pointer("/spec/taints").and_then(Value::as_array);
        let left: Vec<&Value> =
            taints.into_iter().flatten().filter(|it| it["key"] != DISRUPTED_TAINT).collect();
        let left = if left.is_empty() { Value::Null } else { json!(left) };
        self.tell_act(act);
        let patch = json!({"spec": {"taints": left}});
        self.patch(Actor::Person, kinds::NODE, None, node, patch).map_err(|it| refused(&it))?;
        Ok(format!("node {node} has no taint of ours"))
    }

    /// Another controller has something to do before this goes.
    fn hold(&mut self, act: &Act, resource: Resource, name: &str) -> Result<String, ActError> {
        let found = self.kube.borrow().server.get(resource, "", name).cloned();
        let told = || ActError::gone(format!("there is no {} `{name}`", resource.kind));
        let found = found.ok_or_else(told)?;
        // Nothing takes hold of what goes already.
        if found.pointer("/metadata/deletionTimestamp").is_some() {
            let told = format!("{} {name} is going already", resource.kind);
            return Err(ActError { mistyped: false, ..ActError::gone(told) });
        }
        let mut finalizers = finalizers(&found);
        finalizers.push(HOLD.to_owned());
        self.tell_act(act);
        let patch = json!({"metadata": {"finalizers": finalizers}});
        self.patch(Actor::Person, resource, None, name, patch).map_err(|it| refused(&it))?;
        Ok(format!("{} {name} is held", resource.kind))
    }

    fn release(&mut self, act: &Act) -> String {
        self.tell_act(act);
        let mut released = Vec::new();
        for resource in kinds::ALL.into_iter().filter(|it| !it.namespaced) {
            let held: Vec<(String, Vec<String>)> = {
                let kube = self.kube.borrow();
                let all = kube.server.all(resource).map(|(key, it)| (&key.name, finalizers(it)));
                let held = all.filter(|(_, it)| it.iter().any(|it| it == HOLD));
                held.map(|(name, it)| (name.clone(), it)).collect()
            };
            for (name, finalizers) in held {
                let left: Vec<String> = finalizers.into_iter().filter(|it| it != HOLD).collect();
                let patch = json!({"metadata": {"finalizers": left}});
                if self.patch(Actor::Person, resource, None, &name, patch).is_ok() {
                    released.push(format!("{} {name}", resource.kind));
                }
            }
        }
        if released.is_empty() {
            return "nothing is held".to_owned();
        }
        format!("released {}", released.join(", "))
    }

    pub(super) fn tell_act(&mut self, act: &Act) {
        self.tell(Actor::Person, Fact::Act { what: act.to_string() });
    }

    fn upgrade(&mut self, act: &Act, target: &Target) -> Result<String, ActError> {
        let now = self.now();
        let (resource, name) = match target {
            Target::Pool(name) => (kinds::POOL, name.clone()),
            Target::Node(node) => {
                let kube = self.kube.borrow();
                let claim = kube
                    .server
                    .all(kinds::CLAIM)
                    .find(|(_, it)| it["status"]["nodeName"].as_str() == Some(node));
                let claim = claim.map(|(key, _)| key.name.clone());
                let there = kube.server.get(kinds::NODE, "", node).is_some();
                let told = format!("no NodeClaim is of node `{node}`");
                let error = ActError { mistyped: !there, ..ActError::gone(told) };
                (kinds::CLAIM, claim.ok_or(error)?)
            }
        };
        self.tell_act(act);
        let patch = json!({"metadata": {"annotations": {UPGRADE_ANNOTATION: now.to_string()}}});
        self.patch(Actor::Person, resource, None, &name, patch).map_err(|it| refused(&it))?;
        Ok(format!("{} {name} is asked to be replaced", resource.kind))
    }

    /// Writes into the spec of the ledger, and makes the ledger if there is none.
    fn write_ledger(&mut self, act: &Act, spec: Value) -> Result<(), ActError> {
        self.tell_act(act);
        let name = disruptionledger::NAME;
        let there = self.kube.borrow().server.get(kinds::LEDGER, "", name).is_some();
        let answer = if there {
            self.patch(Actor::Person, kinds::LEDGER, None, name, json!({"spec": spec}))
        } else {
            let body = json!({
                "apiVersion": disruptionledger::NODEMOLT_V1ALPHA1,
                "kind": disruptionledger::KIND,
                "metadata": {"name": name},
                "spec": without_nulls(spec),
            });
            self.create(Actor::Person, kinds::LEDGER, None, body)
        };
        answer.map(|_| ()).map_err(|it| refused(&it))
    }

    fn unlock(&mut self, act: &Act) -> Result<String, ActError> {
        let name = disruptionledger::NAME;
        let ledger = self.kube.borrow().server.get(kinds::LEDGER, "", name).cloned();
        let lock = ledger.as_ref().and_then(|it| it.pointer("/status/lock/id")?.as_str());
        let Some(lock) = lock.map(str::to_owned) else {
            return Ok("nothing is locked".to_owned());
        };
        self.write_ledger(act, json!({"releasedLock": lock}))?;
        Ok(format!("lock {lock} is released"))
    }

    pub(super) fn create(
        &mut self,
        by: Actor,
        resource: Resource,
        namespace: Option<&str>,
        body: Value,
    ) -> Result<Answer, Refusal> {
        let request = Request {
            verb: Verb::Create,
            resource,
            subresource: None,
            namespace: namespace.map(str::to_owned),
            name: None,
            body: Some(body),
        };
        self.kubernetes(by, &request)
    }

    fn delete(
        &mut self,
        act: &Act,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<String, ActError> {
        let resource = self.meant(kind, namespace, name)?;
        self.tell_act(act);
        let request = Request {
            verb: Verb::Delete,
            resource,
            subresource: None,
            namespace: placed(resource, namespace).map(str::to_owned),
            name: Some(name.to_owned()),
            body: None,
        };
        self.kubernetes(Actor::Person, &request).map_err(|it| refused(&it))?;
        Ok(format!("{} {name} is deleted", resource.kind))
    }

    /// The kind that this word means: of several the one that has such an object.
    fn meant(&self, kind: &str, namespace: Option<&str>, name: &str) -> Result<Resource, ActError> {
        let kube = self.kube.borrow();
        let there = |it: &Resource| {
            kube.server.get(*it, placed(*it, namespace).unwrap_or_default(), name).is_some()
        };
        let found = kinds::called(kind).find(there).or_else(|| kinds::called(kind).next());
        found.ok_or_else(|| ActError::unknown(format!("`{kind}` is no kind that is served here")))
    }

    fn annotate(
        &mut self,
        act: &Act,
        kind: &str,
        (namespace, name): (Option<&str>, &str),
        key: &str,
        value: Option<&str>,
    ) -> Result<String, ActError> {
        let resource = self.meant(kind, namespace, name)?;
        if let Some(told) = value.and_then(|it| unreadable_word(key, it)) {
            return Err(format!("{key}: {told}").into());
        }
        let there = {
            let kube = self.kube.borrow();
            let place = placed(resource, namespace).unwrap_or_default();
            let found = kube.server.get(resource, place, name);
            found.map(|it| it["metadata"]["annotations"].get(key).is_some())
        };
        self.tell_act(act);
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.patch(Actor::Person, resource, placed(resource, namespace), name, patch)
            .map_err(|it| refused(&it))?;
        Ok(match (value, there) {
            (Some(_), _) => format!("{} {name} is annotated", resource.kind),
            (None, Some(false)) => {
                format!("{} {name} has no annotation {key}: nothing is changed", resource.kind)
            }
            (None, Some(true) | None) => {
                format!("{} {name} has no annotation {key} any more", resource.kind)
            }
        })
    }
}

/// Where an object of this kind is, `default` where nobody says.
fn placed(resource: Resource, namespace: Option<&str>) -> Option<&str> {
    resource.namespaced.then(|| namespace.unwrap_or("default"))
}

fn finalizers(object: &Value) -> Vec<String> {
    let all = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// What people call a kind without a namespace.
fn called(word: &str) -> Result<Resource, ActError> {
    let found = kinds::called(word).find(|it| !it.namespaced);
    found.ok_or_else(|| ActError::unknown(format!("`{word}` is no kind without a namespace")))
}

fn without_nulls(value: Value) -> Value {
    let Value::Object(members) = value else { return value };
    Value::Object(members.into_iter().filter(|(_, it)| !it.is_null()).collect())
}

/// What is not found is gone; whatever else was refused should not have been asked.
fn refused(refusal: &Refusal) -> ActError {
    let gone = matches!(refusal, Refusal::Status { code: 404, .. });
    ActError { told: told(refusal), gone, mistyped: gone }
}

/// Why the API server refused, for people.
pub(super) fn told(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Status { message, .. } => message.clone(),
        Refusal::NoAnswer(why) => format!("no answer: {why}"),
    }
}
