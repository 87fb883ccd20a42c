//! What would people ask about?
//!
//! `step → a line, or nothing`
//!
//! A life has thousands of steps: leases, heartbeats, statuses. Here is what changes a node, a pod's home
//! or somebody's mind, each once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use nodemolt_sim::kinds;
use nodemolt_sim::trace::{Actor, Fact, ReplicaState, Step};
use serde_json::Value;

/// What was told already.
#[derive(Debug, Default)]
pub(crate) struct News {
    day: Option<Date>,
    /// By whom it is about: said last.
    refused: BTreeMap<String, String>,
}

impl News {
    /// Somebody who has seen these steps.
    pub(crate) fn of(steps: &[Step]) -> Self {
        let mut news = Self::default();
        for step in steps {
            let _ = news.text(step);
        }
        news
    }

    /// With the time in front; the day where it is another than before.
    pub(crate) fn line(&mut self, step: &Step) -> Option<String> {
        let text = self.text(step)?;
        let day = civil(step.at).date();
        let new_day = self.day.replace(day) != Some(day);
        let head = if new_day { format!("{day}\n") } else { String::new() };
        Some(format!("{head}{}   {text}", civil(step.at).strftime("%H:%M:%S")))
    }

    /// Without its time.
    pub(crate) fn text(&mut self, step: &Step) -> Option<String> {
        match &step.fact {
            Fact::Stored { resource, object, old } => {
                let old = old.as_deref();
                if *resource == kinds::NODE {
                    node(object, old)
                } else if *resource == kinds::POD {
                    self.pod(object, old)
                } else if *resource == kinds::REPLACEMENT {
                    replacement(object, old)
                } else if *resource == kinds::LEDGER {
                    ledger(object, old)
                } else if *resource == kinds::CLAIM {
                    claim(object, old)
                } else {
                    None
                }
            }
            Fact::Removed { resource, last } if *resource == kinds::NODE => {
                Some(format!("node {} is gone", name(last)))
            }
            Fact::Evicted { namespace, pod, code, .. } => {
                let about = format!("{namespace}/{pod}");
                match code {
                    201 => {
                        self.refused.remove(&about);
                        Some(format!("pod {about} is evicted"))
                    }
                    404 => None,
                    code => self.once(
                        about.clone(),
                        format!("pod {about} may not leave: the API server says {code}"),
                    ),
                }
            }
            Fact::PodDeleted { namespace, pod, .. } => match step.by {
                Actor::Operator(_) => Some(format!("pod {namespace}/{pod} is deleted")),
                Actor::Person
                | Actor::Kubelet
                | Actor::Scheduler
                | Actor::Controllers
                | Actor::Cloud
                | Actor::Publisher
                | Actor::Fate => None,
            },
            Fact::LaunchAsked { machine, made, error, .. } => match (machine, error) {
                (Some(machine), _) if *made => {
                    self.refused.remove("EC2");
                    Some(format!("EC2 launches {machine}"))
                }
                (Some(machine), _) => {
                    Some(format!("EC2 is asked again with the same token: {machine} is there"))
                }
                (None, Some(error)) => {
                    self.once("EC2".to_owned(), format!("EC2 launches nothing: {error}"))
                }
                (None, None) => self.once("EC2".to_owned(), "EC2 launches nothing".to_owned()),
            },
            Fact::Machine(it) if it.state == "terminated" => {
                Some(format!("machine {} is terminated", it.id))
            }
            Fact::Published { what } => Some(what.clone()),
            Fact::Replica { number, state } => {
                let state = match state {
                    ReplicaState::Started => "starts",
                    ReplicaState::Leads => "leads",
                    ReplicaState::Follows => "does not lead any more",
                    ReplicaState::Crashed => "crashes",
                };
                Some(format!("operator-{number} {state}"))
            }
            Fact::Fault { what } => Some(format!("fault: {what}")),
            Fact::FaultsEnd => Some("nothing more goes wrong".to_owned()),
            Fact::Refused { what, .. } if what.starts_with(kinds::LEDGER.kind) => match step.by {
                Actor::Operator(number) => Some(format!(
                    "operator-{number} wants to write the ledger and is refused: another has written it"
                )),
                Actor::Person
                | Actor::Kubelet
                | Actor::Scheduler
                | Actor::Controllers
                | Actor::Cloud
                | Actor::Publisher
                | Actor::Fate => None,
            },
            Fact::Act { what } => {
                Some(format!("a person: {}", what.lines().next().unwrap_or_default()))
            }
            Fact::Machine(_)
            | Fact::TerminateAsked { .. }
            | Fact::Answered { .. }
            | Fact::Image(_)
            | Fact::Removed { .. }
            | Fact::HeldUp { .. }
            | Fact::Refused { .. }
            | Fact::Turned(_) => None,
        }
    }

    fn pod(&mut self, object: &Value, old: Option<&Value>) -> Option<String> {
        let place = object.pointer("/spec/nodeName").and_then(Value::as_str);
        let before = old.and_then(|it| it.pointer("/spec/nodeName")?.as_str());
        let about = full_name(object);
        match place {
            Some(node) if before.is_none() => {
                self.refused.remove(&about);
                // A DaemonSet's pod says nothing that its node did not say.
                let daemon = owner_kind(object) == Some("DaemonSet");
                (!daemon).then(|| format!("pod {about} goes to {node}"))
            }
            Some(_) => None,
            None => {
                let scheduled = condition(object, "PodScheduled");
                (scheduled == Some("False")).then_some(())?;
                self.once(about.clone(), format!("pod {about} finds no place"))
            }
        }
    }

    fn once(&mut self, about: String, text: String) -> Option<String> {
        let said = self.refused.insert(about, text.clone());
        (said.as_ref() != Some(&text)).then_some(text)
    }
}

fn node(object: &Value, old: Option<&Value>) -> Option<String> {
    let name = name(object);
    let Some(old) = old else { return Some(format!("node {name} joins")) };
    let ready = |it: &Value| condition(it, "Ready") == Some("True");
    let closed = |it: &Value| {
        let taints = it.pointer("/spec/taints").and_then(Value::as_array);
        let ours = taints.into_iter().flatten().any(|it| it["key"] == "karpenter.sh/disrupted");
        ours || it.pointer("/spec/unschedulable") == Some(&Value::Bool(true))
    };
    if deleted(object) && !deleted(old) {
        Some(format!("node {name} is being deleted"))
    } else if ready(object) != ready(old) {
        Some(format!("node {name} is {}", if ready(object) { "ready" } else { "not ready" }))
    } else if closed(object) != closed(old) {
        Some(format!("node {name} is {}", if closed(object) { "cordoned" } else { "uncordoned" }))
    } else {
        None
    }
}

fn claim(object: &Value, old: Option<&Value>) -> Option<String> {
    let name = name(object);
    match old {
        None => Some(format!("NodeClaim {name} is made")),
        Some(old) if deleted(object) && !deleted(old) => {
            Some(format!("NodeClaim {name} is being deleted"))
        }
        Some(_) => None,
    }
}

fn replacement(object: &Value, old: Option<&Value>) -> Option<String> {
    let phase = |it: &Value| it.pointer("/status/phase").and_then(Value::as_str).map(str::to_owned);
    let now = phase(object)?;
    if old.and_then(phase).as_ref() == Some(&now) {
        return None;
    }
    // Where the node is called like its claim, only the claim is written.
    let text = |at: &str| object.pointer(at).and_then(Value::as_str);
    let node = text("/spec/nodeName").or_else(|| text("/spec/nodeClaim/name")).unwrap_or("?");
    let because = object.pointer("/status/because").and_then(Value::as_str);
    let because = because.map(|it| format!(": {it}")).unwrap_or_default();
    Some(format!("replacement of {node} is {}{because}", now.to_lowercase()))
}

fn ledger(object: &Value, old: Option<&Value>) -> Option<String> {
    let text = |it: Option<&Value>, at: &str| {
        it.and_then(|it| it.pointer(at)?.as_str()).map(str::to_owned)
    };
    for (at, begins, ends) in [
        ("/status/lock/reason", "nodemolt has locked itself", "nodemolt is unlocked"),
        ("/spec/pause/reason", "paused", "resumed"),
    ] {
        match (text(old, at), text(Some(object), at)) {
            (None, Some(why)) => return Some(format!("{begins}: {why}")),
            (Some(_), None) => return Some(ends.to_owned()),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    None
}

fn condition<'o>(object: &'o Value, kind: &str) -> Option<&'o str> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|it| it["type"] == kind)?["status"].as_str()
}

fn owner_kind(object: &Value) -> Option<&str> {
    object.pointer("/metadata/ownerReferences/0/kind")?.as_str()
}

fn deleted(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("?")
}

fn full_name(object: &Value) -> String {
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("?");
    format!("{namespace}/{}", name(object))
}

fn civil(at: Timestamp) -> jiff::civil::DateTime {
    at.to_zoned(jiff::tz::TimeZone::UTC).datetime()
}
