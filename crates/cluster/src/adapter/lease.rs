//! Who leads?
//!
//! A lease that its holder has not renewed for its duration is free. How long that is we tell by looking at
//! it again and again: what the holder's clock says does not matter, no two clocks are ever compared, and a
//! clock of ours that jumps ahead between two looks counts for no more than the time between looks.

use std::cell::RefCell;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::seen::Revision;
use nodemolt_engine::port::{ClusterError, Leadership};
use serde_json::{Value, json};

use super::Adapter;
use super::call::{object, revision};
use crate::resources::LEASE;
use crate::transport::{Request, Transport, Verb};

/// How long a lease lasts if it is not renewed.
const DURATION: SignedDuration = SignedDuration::from_secs(15);

/// Whoever wants to lead looks this often. What our clock says beyond that was the clock, or a process that
/// stood still and cannot know what happened meanwhile.
const LOOKS_APART: SignedDuration = SignedDuration::from_secs(5);

#[derive(Debug)]
pub(super) struct Lease {
    namespace: String,
    name: String,
    seen: RefCell<Option<Unchanged>>,
}

/// The lease of another as it was last seen.
#[derive(Debug)]
struct Unchanged {
    revision: Revision,
    looked_at: Timestamp,
    /// For how long it has been so, as far as we have looked.
    lasted: SignedDuration,
}

impl Lease {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned(), seen: RefCell::new(None) }
    }

    fn request(&self, verb: Verb) -> Request {
        Request::of(verb, LEASE).within(&self.namespace)
    }

    /// How long it has been as it is, as far as we have watched.
    fn unchanged_for(&self, revision: &Revision, now: Timestamp) -> SignedDuration {
        let mut seen = self.seen.borrow_mut();
        match &mut *seen {
            Some(known) if known.revision == *revision => {
                let step = now.duration_since(known.looked_at);
                known.lasted += step.clamp(SignedDuration::ZERO, LOOKS_APART);
                known.looked_at = now;
                known.lasted
            }
            Some(_) | None => {
                let (revision, lasted) = (revision.clone(), SignedDuration::ZERO);
                *seen = Some(Unchanged { revision, looked_at: now, lasted });
                lasted
            }
        }
    }
}

impl<T: Transport> Adapter<T> {
    pub(super) async fn take_lead(
        &self,
        me: &str,
        now: Timestamp,
    ) -> Result<Leadership, ClusterError> {
        let read = self.call(&self.lease.request(Verb::Get).named(&self.lease.name)).await;
        let found = match read {
            Ok(found) => found.body,
            Err(ClusterError::Absent(_)) => {
                let mut lease = object(LEASE, &self.lease.name);
                lease["metadata"]["namespace"] = self.lease.namespace.clone().into();
                lease["spec"] = held(me, now, now, 1);
                self.call(&self.lease.request(Verb::Create).body(lease)).await?;
                return Ok(leads(now, 1));
            }
            Err(error) => return Err(error),
        };
        let spec = &found["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        let transitions = spec["leaseTransitions"].as_u64().unwrap_or_default();
        let mine = holder == me;
        if !mine && !holder.is_empty() {
            let lasts = spec["leaseDurationSeconds"].as_i64().filter(|it| *it > 0);
            let lasts = lasts.map_or(DURATION, SignedDuration::from_secs);
            if self.lease.unchanged_for(&revision(&found), now) < lasts {
                return Ok(Leadership::Follows { leader: holder.to_owned() });
            }
        }
        let since = spec["acquireTime"].as_str().and_then(|it| it.parse().ok());
        let (transitions, since) = match since {
            Some(since) if mine => (transitions, since),
            Some(_) | None => (transitions.saturating_add(1), now),
        };
        let mut lease = Value::clone(&found);
        if !lease.is_object() {
            return Err(ClusterError::Unreadable {
                object: format!("Lease {}/{}", self.lease.namespace, self.lease.name),
                message: "it is no object".to_owned(),
            });
        }
        lease["spec"] = held(me, now, since, transitions);
        let request = self.lease.request(Verb::Replace).named(&self.lease.name).body(lease);
        self.call(&request).await?;
        *self.lease.seen.borrow_mut() = None;
        Ok(leads(now, transitions))
    }
}

fn leads(now: Timestamp, transitions: u64) -> Leadership {
    Leadership::Leads { until: now.saturating_add(DURATION).unwrap_or(Timestamp::MAX), transitions }
}

fn held(me: &str, now: Timestamp, since: Timestamp, transitions: u64) -> Value {
    // Kubernetes' `MicroTime` has exactly six digits.
    let micros = |it: Timestamp| format!("{it:.6}");
    json!({
        "holderIdentity": me,
        "leaseDurationSeconds": DURATION.as_secs(),
        "acquireTime": micros(since),
        "renewTime": micros(now),
        "leaseTransitions": transitions,
    })
}
