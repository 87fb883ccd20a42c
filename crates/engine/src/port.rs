//! How does the engine touch the world?
//!
//! Two ports, as small as they can be. Each method says what is expected, what is guaranteed and what is
//! assumed; `docs/assumptions.md` has the assumptions with where they come from and which test holds them.
//! "Could not ask" and "is not there" are different answers everywhere.

mod cloud;
mod cluster;

pub use cloud::{
    Cloud, CloudError, LaunchError, LaunchRequest, Launched, Machine, MachineState, Network,
    Offered, Reservation, Subnet,
};
pub use cluster::{
    ClaimState, ClassStatus, Cluster, ClusterError, Condition, EvictAnswer, Leadership, NewClaim,
    NewMemory, NewNodeState, Object, Records, Status,
};

/// What the caller should do about an error. The only property of one that control flow may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// The same call again, later.
    TryAgain,
    /// Read again and decide again: what was decided on is not so any more.
    DecideAgain,
    /// Another choice may succeed where this one did not.
    TryElsewhere,
    AskPerson,
}
