//! Turns: observe, decide, record; hands perform.
//!
//! One loop over the whole fleet, because a budget is a property of the fleet and not of an object. It
//! sees the world through two ports and runs unchanged against the real one and the simulated one.
//! Everything runs on one thread: futures need not be `Send`, and nothing here spawns.

pub mod claims;
pub mod port;
pub mod record;
mod act;
mod clock;
mod decide;
mod counted;
mod freshness;
mod hands;
mod ledger;
mod memory;
mod picture;
mod status;
mod turn;

use std::collections::BTreeSet;

use jiff::Timestamp;
use nodemolt_core::bootstrap;
use nodemolt_core::image::AccountId;

pub use act::{Act, Done, Errand, Intent, Question};
pub use clock::{APART_MAX, now};
pub use hands::{Hands, perform};
pub use memory::Memory;
pub use picture::{Picture, lacks, look};
pub use turn::{ObserveError, Turn, turn};

/// What a process is told when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Tells replicas apart.
    pub me: String,
    pub cluster: bootstrap::Cluster,
    pub region: String,
    /// Ours, for images of `self`.
    pub account: Option<AccountId>,
    /// Groups of classes whose nodes are ours to launch and to move, beside `nodemolt.dev`:
    /// `karpenter.k8s.aws` where no Karpenter runs in the cluster. That such classes can be seen says
    /// nothing: beside Karpenter they are Karpenter's.
    pub groups: BTreeSet<String>,
}

/// The group of Karpenter's classes, which are ours only standalone.
pub const KARPENTER_CLASS_GROUP: &str = "karpenter.k8s.aws";

/// What time it is here.
pub trait Clock {
    fn now(&self) -> Timestamp;
}
