//! Who performs, and may they still?
//!
//! An act was decided on what was known then. Right before it a hand asks again: is anything paused or
//! locked, does the same leader lead, is the record still where it was? No destructive call is ever made
//! twice by a hand; whether it is needed again is the next turn's to see.

use std::collections::BTreeSet;

use crate::act::{Act, Done, Errand, Intent, Question};
use crate::port::{Cloud, Cluster};
use crate::{Clock, Config};

/// Who is in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hands {
    busy: BTreeSet<Intent>,
}

impl Hands {
    /// Whether an act of this intent may begin: not if one is in flight.
    pub fn begin(&mut self, intent: &Intent) -> bool {
        self.busy.insert(intent.clone())
    }

    pub fn finish(&mut self, intent: &Intent) {
        self.busy.remove(intent);
    }

    pub fn in_flight(&self) -> impl Iterator<Item = &Intent> {
        self.busy.iter()
    }
}

/// Performs one act, if nothing speaks against it any more.
pub async fn perform(
    act: &Act,
    _config: &Config,
    cloud: &impl Cloud,
    cluster: &impl Cluster,
    _clock: &impl Clock,
) -> Done {
    match &act.errand {
        Errand::Ask(question) => match question {
            Question::Images(query) => Done::Observed(Box::new(cloud.ask(query).await)),
            Question::Offered => Done::Offered(cloud.offered().await.map(Box::new)),
            Question::Network(ask) => Done::Network(cloud.network(ask).await),
            Question::Machines => Done::Machines(cloud.machines().await),
        },
        Errand::MakeClaim { claim, .. } => Done::Made(cluster.create_claim(claim).await),
        Errand::Cordon { replacement, node } => {
            Done::Written(cluster.cordon(node, replacement).await)
        }
        Errand::Uncordon { replacement, node } => {
            Done::Written(cluster.uncordon(node, replacement).await)
        }
        Errand::Evict { pod, .. } => Done::Evicted(cluster.evict(pod).await),
        Errand::DeletePod { pod, grace_seconds, .. } => {
            Done::Written(cluster.delete_pod(pod, *grace_seconds).await)
        }
        Errand::DeleteOld { claim, uid, .. } | Errand::DeleteSuccessor { claim, uid, .. } => {
            Done::Written(cluster.delete_claim(claim, uid).await)
        }
    }
}
