//! How are ledger and replacements read and written?
//!
//! What is decided on is read and written without loss. What stands there for people only is kept where
//! nothing new is said, as far as this process has read it.

use jiff::Timestamp;
use nodemolt_api::disruptionledger::{self, DisruptionLedger, DisruptionLedgerStatus};
use nodemolt_api::imagepolicy::{DrainLimitAction, ReplacementOrder};
use nodemolt_api::into_record::cut;
use nodemolt_api::problem::Finding;
use nodemolt_api::replacement::{
    self as wire, Drain, ForcedPod, GrantTaken, HeldPod, MovedOwner, ReplacementSpec,
    ReplacementStatus,
};
use nodemolt_core::budget;
use nodemolt_core::drain::{AtLimit, PodId};
use nodemolt_core::drift::{Divergence, Sides};
use nodemolt_core::replace::{self, Order};
use nodemolt_core::seen::{PodKey, Revision};
use nodemolt_engine::port::{ClusterError, Records};
use nodemolt_engine::record::{DrainRecord, Lasting, Ledger, Lock, Pause, Recorded, Told};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Adapter;
use super::call::{error, object, revision};
use crate::resources::{LEDGER, REPLACEMENT};
use crate::transport::{Request, Resource, Subresource, Transport, Verb};

/// The schema's limits.
const SENTENCE_MAX: u32 = 1024;
const VALUE_MAX: u32 = 256;
const DIVERGENCES_MAX: usize = 50;
const HELD_MAX: usize = 50;
const FORCED_MAX: usize = 500;
const MOVED_MAX: usize = 500;

/// How it was begun, until its first status says so. Whoever finds it without one must not take a person's deed for
/// ours, which is counted against budgets, nor let a node go without the successors that were decided for it.
const CAUSE: &str = "nodemolt.dev/cause";
const ORDER: &str = "nodemolt.dev/order";
const DRAIN_LIMIT_ACTION: &str = "nodemolt.dev/drain-limit-action";

/// The names of their claims, which hold no comma.
const SUCCESSORS: &str = "nodemolt.dev/successors";

/// A status as it was last read or written, by revision.
#[derive(Debug)]
pub(super) struct Standing {
    revision: Revision,
    status: ReplacementStatus,
    /// Where it was read: what it says. The same revision says the same, and is not read again.
    record: Option<Recorded>,
}

impl<T: Transport> Adapter<T> {
    /// The ledger last (decision 0029): whoever takes over raises the epoch there before it writes a
    /// record, so one that finds its own epoch has seen no record of another's.
    pub(super) async fn read_records(&self) -> Result<Records, ClusterError> {
        let answer = self.call(&Request::of(Verb::List, REPLACEMENT)).await?;
        let listed_at = answer.date;
        let listed = answer.whole_list().map_err(|it| error("the list of replacements", it));
        let (items, _) = listed?;
        let request = Request::of(Verb::Get, LEDGER).named(disruptionledger::NAME);
        let (ledger, date) = match self.call(&request).await {
            Ok(answer) => (self.read_ledger(&answer.body)?, answer.date),
            Err(ClusterError::Absent(_)) => (Ledger::default(), None),
            Err(error) => return Err(error),
        };
        let server_time = date.max(listed_at);
        let mut records = Records { ledger, server_time, ..Records::default() };
        let mut told = self.told.borrow_mut();
        // Lists come in order, and a map that is made of them all at once moves nobody twice.
        let mut all = Vec::with_capacity(items.len());
        for item in &items {
            let name = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let revision = revision(item);
            let same = |it: &&Standing| it.revision == revision && !revision.0.is_empty();
            let known = told.get(&name).filter(same).and_then(|it| it.record.clone());
            if let Some(record) = known {
                all.push((name, record));
                continue;
            }
            match recorded(item) {
                Ok((mut record, status)) => {
                    self.meet_held(&mut record);
                    let standing = Standing { revision, status, record: Some(record.clone()) };
                    told.insert(name.clone(), standing);
                    all.push((name, record));
                }
                Err(why) => {
                    told.remove(&name);
                    records.unreadable.insert(name, why);
                }
            }
        }
        records.replacements = all.into_iter().collect();
        // Whoever is not listed any more.
        if told.len() > records.replacements.len() {
            told.retain(|name, _| records.replacements.contains_key(name));
        }
        Ok(records)
    }

    /// Pods that hold a drain are written for people, by name. Which ones they are is what we see.
    fn meet_held(&self, record: &mut Recorded) {
        let Some(drain) = record.drain.as_mut().filter(|it| !it.held.is_empty()) else { return };
        let eyes = self.eyes.borrow();
        for (pod, _) in &mut drain.held {
            let (namespace, name) = (pod.namespace.as_str().into(), pod.name.as_str().into());
            let key = PodKey { namespace, name };
            if let Some(seen) = eyes.view().pods.get(&key) {
                pod.uid.clone_from(&seen.drain.id.uid);
            }
        }
    }

    fn read_ledger(&self, object: &Value) -> Result<Ledger, ClusterError> {
        let revision = revision(object);
        let mut last = self.ledger.borrow_mut();
        if let Some(known) = &*last
            && known.revision.as_ref() == Some(&revision)
            && !revision.0.is_empty()
        {
            return Ok(known.clone());
        }
        let read = ledger(object)?;
        *last = Some(read.clone());
        Ok(read)
    }

    pub(super) async fn record_ledger(&self, ledger: &Ledger) -> Result<Revision, ClusterError> {
        let at = if let Some(revision) = &ledger.revision {
            revision.clone()
        } else {
            let mut new = object(LEDGER, disruptionledger::NAME);
            new["spec"] = json!({});
            revision(&self.call(&Request::of(Verb::Create, LEDGER).body(new)).await?.body)
        };
        let mut status = DisruptionLedgerStatus::default();
        status.record(&budget::Ledger {
            epoch: ledger.epoch,
            grants: ledger.grants.clone(),
            closed: ledger.closed.clone(),
            pause: None,
            lock: ledger.lock.as_ref().map(|it| budget::Lock {
                id: it.id.clone(),
                reason: it.reason.clone(),
                since: it.since,
            }),
        });
        self.replace_status(LEDGER, disruptionledger::NAME, &at, &status).await
    }

    pub(super) async fn record_replacement(
        &self,
        record: &Recorded,
    ) -> Result<Revision, ClusterError> {
        let name = &record.name;
        let at = if let Some(revision) = &record.revision {
            revision.clone()
        } else {
            let mut new = object(REPLACEMENT, name);
            let old = &record.replacement.old;
            new["spec"] = written(&ReplacementSpec::of(old, record.pool.as_deref()));
            new["metadata"]["annotations"] = beginning(&record.replacement);
            revision(&self.call(&Request::of(Verb::Create, REPLACEMENT).body(new)).await?.body)
        };
        let known = self.told.borrow_mut().remove(name).filter(|it| it.revision == at);
        let mut status = known.map(|it| it.status).unwrap_or_default();
        tell(&mut status, record);
        let revision = self.replace_status(REPLACEMENT, name, &at, &status).await?;
        let standing = Standing { revision: revision.clone(), status, record: None };
        self.told.borrow_mut().insert(name.clone(), standing);
        Ok(revision)
    }

    pub(super) async fn forget_replacement(
        &self,
        name: &str,
        revision: &Revision,
    ) -> Result<(), ClusterError> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"resourceVersion": revision.0},
        });
        let request = Request::of(Verb::Delete, REPLACEMENT).named(name).body(options);
        self.call(&request).await?;
        self.told.borrow_mut().remove(name);
        Ok(())
    }

    /// The whole status, against that revision: what is not in it any more goes.
    async fn replace_status(
        &self,
        resource: Resource,
        name: &str,
        at: &Revision,
        status: &impl Serialize,
    ) -> Result<Revision, ClusterError> {
        let mut body = object(resource, name);
        body["metadata"]["resourceVersion"] = at.0.clone().into();
        body["status"] = written(status);
        let request = Request::of(Verb::Replace, resource).named(name).body(body);
        let request = Request { subresource: Some(Subresource::Status), ..request };
        Ok(revision(&self.call(&request).await?.body))
    }
}

/// Wire structs of ours: there is nothing in them that JSON has no form for.
fn written(wire: &impl Serialize) -> Value {
    serde_json::to_value(wire).unwrap_or_default()
}

fn read<W: DeserializeOwned>(object: &Value) -> Result<W, String> {
    W::deserialize(object).map_err(|it| it.to_string())
}

fn found(findings: &[Finding]) -> String {
    let told = findings.iter().map(|it| format!("{}: {}", it.field, it.message));
    told.collect::<Vec<_>>().join("; ")
}

fn ledger(object: &Value) -> Result<Ledger, ClusterError> {
    let unreadable = |message| ClusterError::Unreadable {
        object: format!("DisruptionLedger {}", disruptionledger::NAME),
        message,
    };
    let wire: DisruptionLedger = read(object).map_err(unreadable)?;
    let read = budget::Ledger::try_from(&wire).map_err(|it| unreadable(found(&it)))?;
    // Released or not, it stands in the status until the next one.
    let lock = wire.status.as_ref().and_then(|it| it.lock.as_ref()).map(|it| Lock {
        id: it.id.clone(),
        reason: it.reason.clone(),
        since: it.since.parse().unwrap_or(Timestamp::MIN),
    });
    Ok(Ledger {
        revision: Some(revision(object)),
        epoch: read.epoch,
        grants: read.grants,
        closed: read.closed,
        pause: read.pause.map(|it| Pause { reason: it.reason, by: it.by }),
        lock,
        released_lock: wire.spec.released_lock,
    })
}

fn recorded(object: &Value) -> Result<(Recorded, ReplacementStatus), String> {
    let wire: wire::Replacement = read(object)?;
    let name = wire.metadata.name.clone();
    let (replacement, status) = match &wire.status {
        // Created, and its first status not yet written: begun, and not granted.
        None => {
            let created = wire.metadata.creation_timestamp.as_deref();
            let created = created.and_then(|it| it.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH);
            (begun(&wire, created), ReplacementStatus::default())
        }
        Some(status) => {
            let read = replace::Replacement::try_from(&wire).map_err(|it| found(&it))?;
            (read, status.clone())
        }
    };
    let time = |it: &Option<String>| it.as_deref().and_then(|it| it.parse::<Timestamp>().ok());
    let grant = match &status.grant {
        None => None,
        Some(it) => Some((
            u64::try_from(it.epoch).map_err(|_| format!("status.grant.epoch: {}", it.epoch))?,
            it.since.parse().map_err(|_| format!("status.grant.since: {}", it.since))?,
        )),
    };
    let drain = status.drain.as_ref().map(|it| DrainRecord {
        cordoned_at: time(&it.cordoned_at),
        last_left_at: time(&it.last_left_at),
        evicting: it
            .evicting_epoch
            .and_then(|it| u64::try_from(it).ok())
            .zip(time(&it.evicting_since)),
        pods: it.pods.and_then(|it| usize::try_from(it).ok()).unwrap_or_default(),
        pods_left: it.pods_left.and_then(|it| usize::try_from(it).ok()).unwrap_or_default(),
        forced: it
            .forced
            .iter()
            .map(|it| (id(&it.namespace, &it.name, &it.uid), it.because.clone()))
            .collect(),
        held: it
            .held
            .iter()
            .map(|it| (id(&it.namespace, &it.name, ""), it.because.clone()))
            .collect(),
        moved: it
            .moved
            .iter()
            .filter_map(|it| Some((it.uid.clone(), it.since.parse().ok()?)))
            .collect(),
    });
    let image = |it: &Option<String>| it.as_deref().and_then(|it| it.parse().ok());
    let phase_began = replacement.because.to_string();
    let lasting = status
        .divergences
        .iter()
        .filter_map(|it| Lasting::recorded(&it.of, it.from.as_deref(), it.to.as_deref()));
    let told = Told {
        divergences: Vec::new(), // Words for people; what stands there is kept.
        lasting: lasting.collect(),
        running_image: image(&status.running_image),
        wanted_image: image(&status.wanted_image),
        started_at: time(&status.started_at),
        waits_for: status.because.clone().filter(|it| *it != cut(&phase_began, SENTENCE_MAX)),
    };
    let revision = Some(revision(object));
    let pool = wire.spec.pool.clone();
    Ok((Recorded { name, revision, pool, replacement, grant, drain, told }, status))
}

fn beginning(replacement: &replace::Replacement) -> Value {
    let successors: Vec<&str> = replacement.successors.iter().map(|it| it.claim.as_str()).collect();
    json!({
        (CAUSE): written(&wire::Cause::from(replacement.cause)),
        (ORDER): written(&ReplacementOrder::from(replacement.order)),
        (DRAIN_LIMIT_ACTION): written(&DrainLimitAction::from(replacement.at_limit)),
        (SUCCESSORS): successors.join(","),
    })
}

fn begun(record: &wire::Replacement, created: Timestamp) -> replace::Replacement {
    let wire::Replacement { metadata, spec, .. } = record;
    let old = replace::Old {
        node: spec.node.clone().unwrap_or_else(|| spec.claim.name.clone()),
        claim: spec.claim.name.clone(),
        claim_uid: spec.claim.uid.clone(),
    };
    let said = |key: &str| metadata.annotations.get(key).map(String::as_str);
    let cause = word::<wire::Cause>(said(CAUSE)).map_or(replace::Cause::Drift, Into::into);
    let order = word::<ReplacementOrder>(said(ORDER)).map_or(Order::SuccessorFirst, Into::into);
    // What goes without us has nothing to go back to.
    let usual = if cause.voluntary() { AtLimit::Skip } else { AtLimit::Wait };
    let at_limit = word::<DrainLimitAction>(said(DRAIN_LIMIT_ACTION)).map_or(usual, Into::into);
    let successors = said(SUCCESSORS).unwrap_or_default().split(',').filter(|it| !it.is_empty());
    let successors = successors.map(str::to_owned).collect();
    replace::Replacement::begin(old, cause, order, at_limit, successors, created)
}

/// A word of ours, where there is one and we know it.
fn word<W: DeserializeOwned>(said: Option<&str>) -> Option<W> {
    W::deserialize(Value::from(said?)).ok()
}

fn id(namespace: &str, name: &str, uid: &str) -> PodId {
    PodId { namespace: namespace.to_owned(), name: name.to_owned(), uid: uid.to_owned() }
}

fn tell(status: &mut ReplacementStatus, record: &Recorded) {
    let Recorded { name: _, revision: _, pool: _, replacement, grant, drain, told } = record;
    status.record(replacement);
    status.grant = grant.map(|(epoch, since)| GrantTaken {
        epoch: i64::try_from(epoch).unwrap_or(i64::MAX),
        since: since.to_string(),
    });
    let time = |it: Option<Timestamp>| it.map(|it| it.to_string());
    let count = |it: usize| Some(i64::try_from(it).unwrap_or(i64::MAX));
    status.drain = drain.as_ref().map(|it| Drain {
        cordoned_at: time(it.cordoned_at),
        last_left_at: time(it.last_left_at),
        evicting_since: time(it.evicting.map(|it| it.1)),
        evicting_epoch: it.evicting.map(|it| i64::try_from(it.0).unwrap_or(i64::MAX)),
        limit_at: None,
        pods: count(it.pods),
        pods_left: count(it.pods_left),
        held: it
            .held
            .iter()
            .take(HELD_MAX)
            .map(|(pod, because)| HeldPod {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                because: cut(because, SENTENCE_MAX),
            })
            .collect(),
        forced: it
            .forced
            .iter()
            .take(FORCED_MAX)
            .map(|(pod, because)| ForcedPod {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                uid: pod.uid.clone(),
                because: cut(because, SENTENCE_MAX),
            })
            .collect(),
        moved: it
            .moved
            .iter()
            .take(MOVED_MAX)
            .map(|(uid, since)| MovedOwner { uid: uid.clone(), since: since.to_string() })
            .collect(),
    });
    if !told.divergences.is_empty() {
        let all = told.divergences.iter().take(DIVERGENCES_MAX);
        status.divergences = all.map(divergence).collect();
    }
    let image = |it: &Option<_>| it.as_ref().map(ToString::to_string);
    status.running_image = image(&told.running_image).or(status.running_image.take());
    status.wanted_image = image(&told.wanted_image).or(status.wanted_image.take());
    status.started_at = time(told.started_at).or(status.started_at.take());
    if let Some(waits) = &told.waits_for {
        status.because = Some(cut(waits, SENTENCE_MAX));
    }
}

fn divergence(it: &Divergence) -> wire::Divergence {
    let Sides { of, from, to } = it.sides();
    wire::Divergence {
        of: cut(&of, 63),
        from: from.map(|it| cut(&it, VALUE_MAX)),
        to: to.map(|it| cut(&it, VALUE_MAX)),
    }
}
