//! What does one turn do?
//!
//! `observe → decide → record`, and acts for the hands
//!
//! A turn touches Kubernetes only, and waits for no machine. What it decides stands in the records before
//! anything is done about it; a conflict ends the turn, and the next one decides again.

use std::collections::BTreeSet;

use jiff::Timestamp;
use nodemolt_core::seen::Kind;

use crate::Config;
use crate::act::Act;
use crate::memory::Memory;
use crate::picture::{Picture, look};
use crate::port::{Cluster, ClusterError, Remedy};

/// What a turn came to.
#[derive(Debug)]
pub struct Turn {
    pub acts: Vec<Act>,
    /// When something is due that no watch will tell.
    pub wake_at: Option<Timestamp>,
    pub picture: Picture,
    /// How often it wrote to Kubernetes. A world in sync is written to never.
    pub writes: u32,
}

/// Why a turn could not even look.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObserveError {
    #[error("not everything was listed yet: {}", names(.0))]
    Incomplete(BTreeSet<Kind>),
    #[error("could not read the records")]
    Records(#[source] ClusterError),
}

fn names(kinds: &BTreeSet<Kind>) -> String {
    kinds.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ")
}

impl ObserveError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Incomplete(_) => Remedy::TryAgain,
            Self::Records(error) => error.remedy(),
        }
    }
}

/// One turn. `now` is the lesser of local time and the API server's.
pub async fn turn(
    memory: &mut Memory,
    config: &Config,
    cluster: &impl Cluster,
    now: Timestamp,
) -> Result<Turn, ObserveError> {
    cluster.view().complete().map_err(ObserveError::Incomplete)?;
    let records = cluster.records().await.map_err(ObserveError::Records)?;
    let picture = look(memory, config, &cluster.view(), &records, now);
    Ok(Turn { acts: Vec::new(), wake_at: None, picture, writes: 0 })
}
