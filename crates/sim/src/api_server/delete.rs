//! When is an object gone?
//!
//! At once, unless a finalizer holds it; a pod on a node when its kubelet says so, or when it is given no
//! time. What is asked twice is done once, and a second time may only shorten the first.

use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::transport::{Refusal, Resource};
use serde_json::{Value, json};

use super::{ApiServer, Call, finalizers, refuse};
use crate::json::{at, set, stamp, text, time, whole};
use crate::kinds;
use crate::trace::Fact;

/// Without them there is no cluster.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Kinds whose last state is the answer when they are gone.
const ANSWERED_WITH: [Resource; 5] =
    [kinds::POD, kinds::VOLUME, kinds::VOLUME_CLAIM, kinds::STORAGE_CLASS, kinds::CSI_NODE];

/// `DeleteOptions`, as far as they matter here. Who depends on what is deleted goes afterwards, always:
/// there is no other `propagationPolicy`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) uid: Option<String>,
    pub(super) revision: Option<String>,
    pub(super) grace_seconds: Option<i64>,
    pub(super) dry_run: bool,
}

/// What a deletion comes to.
enum Comes {
    /// Nothing changes.
    Already,
    /// It is marked, and waits for somebody.
    Marked(Value),
    /// It is marked, and then it is gone: what has a grace period of none.
    Ends(Value),
    Gone,
}

impl Options {
    pub(super) fn read(body: Option<&Value>) -> Self {
        let Some(body) = body else { return Self::default() };
        let text_at =
            |path: &[&str]| Some(text(body, path)).filter(|it| !it.is_empty()).map(str::to_owned);
        Self {
            uid: text_at(&["preconditions", "uid"]),
            revision: text_at(&["preconditions", "resourceVersion"]),
            grace_seconds: whole(body, &["gracePeriodSeconds"]),
            dry_run: crate::json::items(body, &["dryRun"]).iter().any(|it| it == "All"),
        }
    }

    /// What was meant is what is there.
    pub(super) fn check(&self, call: &Call<'_>, object: &Value) -> Result<(), Refusal> {
        let kind = refuse::qualified_kind(call.resource);
        if let Some(uid) = &self.uid {
            let there = text(object, &["metadata", "uid"]);
            if uid != there {
                let why = format!(
                    "the UID in the precondition ({uid}) does not match the UID in record ({there}). The object might have been deleted and then recreated"
                );
                return Err(refuse::conflict(kind, call.name(), &why));
            }
        }
        if let Some(revision) = &self.revision {
            let there = text(object, &["metadata", "resourceVersion"]);
            if revision != there {
                let why = format!(
                    "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({there}). The object might have been modified"
                );
                return Err(refuse::conflict(kind, call.name(), &why));
            }
        }
        Ok(())
    }
}

impl ApiServer {
    pub(super) fn delete(&mut self, call: &Call<'_>) -> Result<Rc<Value>, Refusal> {
        let options = Options::read(call.request.body.as_ref());
        let begun = self.trace.len();
        let answer = self.delete_with(call, &options)?;
        if call.resource == kinds::POD && !options.dry_run {
            let fact = Fact::PodDeleted {
                namespace: call.namespace().to_owned(),
                pod: call.name().to_owned(),
                uid: options.uid,
                grace_seconds: options.grace_seconds,
            };
            self.trace.insert(begun, call.step(fact));
        }
        Ok(answer)
    }

    pub(super) fn delete_with(
        &mut self,
        call: &Call<'_>,
        options: &Options,
    ) -> Result<Rc<Value>, Refusal> {
        let object = self.current(call)?;
        options.check(call, &object)?;
        let comes = if call.resource == kinds::POD {
            pod(&object, options, call.now)
        } else if call.resource == kinds::NAMESPACE {
            namespace(call, &object)?
        } else {
            plain(&object, call.now)
        };
        match comes {
            Comes::Already => Ok(call.shared(&object)),
            Comes::Marked(marked) | Comes::Ends(marked) if options.dry_run => {
                Ok(Rc::new(call.shown(&marked)))
            }
            Comes::Marked(marked) => {
                let stored = self.put(call.by, call.kind, marked, call.now);
                Ok(call.shared(&stored))
            }
            Comes::Ends(marked) => {
                // Two writes, of which watches tell both.
                let stored = self.put(call.by, call.kind, marked, call.now);
                let last = self.take(call.by, call.kind, (*stored).clone(), call.now);
                Ok(call.shared(&last))
            }
            Comes::Gone => {
                let uid = text(&object, &["metadata", "uid"]).to_owned();
                let last = if options.dry_run {
                    object
                } else {
                    self.take(call.by, call.kind, (*object).clone(), call.now)
                };
                if ANSWERED_WITH.contains(&call.resource) {
                    return Ok(call.shared(&last));
                }
                Ok(Rc::new(json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": {
                        "name": call.name(), "group": call.resource.group,
                        "kind": call.resource.plural, "uid": uid,
                    },
                })))
            }
        }
    }

    /// A namespace whose content is gone goes, too. Whether it is, its controller says.
    pub(crate) fn end_namespace(&mut self, name: &str, by: crate::trace::Actor, now: Timestamp) {
        let Some(kind) = super::kind_of(kinds::NAMESPACE) else { return };
        let Some(last) = self.get(kinds::NAMESPACE, "", name).cloned() else { return };
        if at(&last, &["metadata", "deletionTimestamp"]).is_some() && finalizers(&last).is_empty() {
            self.take(by, kind, (*last).clone(), now);
        }
    }
}

/// What has no grace period: it goes, or waits for its finalizers.
fn plain(object: &Value, now: Timestamp) -> Comes {
    if finalizers(object).is_empty() {
        return Comes::Gone;
    }
    if at(object, &["metadata", "deletionTimestamp"]).is_some() {
        return Comes::Already;
    }
    Comes::Marked(marked(object, now, 0))
}

/// A namespace goes when it is empty, and some never.
fn namespace(call: &Call<'_>, object: &Value) -> Result<Comes, Refusal> {
    if IMMORTAL.contains(&call.name()) {
        let why = "this namespace may not be deleted";
        return Err(refuse::forbidden(call.resource, call.name(), why));
    }
    if at(object, &["metadata", "deletionTimestamp"]).is_some() {
        return Ok(Comes::Already);
    }
    let mut marked = object.clone();
    set(&mut marked, &["metadata", "deletionTimestamp"], stamp(call.now));
    set(&mut marked, &["status", "phase"], json!("Terminating"));
    Ok(Comes::Marked(marked))
}

/// A pod stops in its own time, which is none where it does not run.
fn pod(object: &Value, options: &Options, now: Timestamp) -> Comes {
    let held = !finalizers(object).is_empty();
    let end = |it: Value| if held { Comes::Marked(it) } else { Comes::Ends(it) };
    if at(object, &["metadata", "deletionTimestamp"]).is_some() {
        let given = whole(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
        if given == 0 {
            return if held { Comes::Already } else { Comes::Gone };
        }
        let Some(mut asked) = options.grace_seconds.map(|it| if it < 0 { 1 } else { it }) else {
            return Comes::Already;
        };
        if asked >= given {
            return Comes::Already;
        }
        let mut shorter = object.clone();
        if let Some(until) = time(object, &["metadata", "deletionTimestamp"]) {
            let sooner = SignedDuration::from_secs(given.saturating_sub(asked));
            let mut until = until.checked_sub(sooner).unwrap_or(until);
            // Nothing ends in the past; who was asked to end gently still has to say that it has.
            if until < now {
                until = now;
                asked = asked.min(1);
            }
            set(&mut shorter, &["metadata", "deletionTimestamp"], stamp(until));
        }
        set(&mut shorter, &["metadata", "deletionGracePeriodSeconds"], json!(asked));
        return if asked == 0 { end(shorter) } else { Comes::Marked(shorter) };
    }
    let own = whole(object, &["spec", "terminationGracePeriodSeconds"]).unwrap_or(0);
    let asked = options.grace_seconds.unwrap_or(own);
    let runs = !text(object, &["spec", "nodeName"]).is_empty()
        && !["Succeeded", "Failed"].contains(&text(object, &["status", "phase"]));
    let grace = match asked {
        _ if !runs => 0,
        asked if asked < 0 => 1,
        asked => asked,
    };
    let marked = marked(object, now, grace);
    if grace == 0 { end(marked) } else { Comes::Marked(marked) }
}

/// From now on it is going. That counts as a change of what is wanted of it.
fn marked(object: &Value, now: Timestamp, grace_seconds: i64) -> Value {
    let mut marked = object.clone();
    let grace = SignedDuration::from_secs(grace_seconds);
    // A grace period beyond all times ends at the last one.
    let until = now.checked_add(grace).unwrap_or(Timestamp::MAX);
    set(&mut marked, &["metadata", "deletionTimestamp"], stamp(until));
    set(&mut marked, &["metadata", "deletionGracePeriodSeconds"], json!(grace_seconds));
    if let Some(generation) = whole(object, &["metadata", "generation"]).filter(|it| *it > 0) {
        set(&mut marked, &["metadata", "generation"], json!(generation + 1));
    }
    marked
}
