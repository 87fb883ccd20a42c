//! What does the engine ask of AWS?

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::catalog::{Observation, Query};
use nodemolt_core::image::ImageId;
use nodemolt_core::launch::Template;
use nodemolt_core::seen::{FrozenRequest, MachineId, NetworkAsk};
use nodemolt_fit::Types;
use nodemolt_fit::pool::Price;

use super::Remedy;

/// One region of one account.
///
/// Nothing here is tried twice by itself, and no method waits longer than its caller's deadline.
#[expect(async_fn_in_trait, reason = "the engine runs on one thread; its futures are never sent")]
pub trait Cloud {
    /// Images or parameters. What became of the question is part of the answer: a throttled one is an
    /// [`Observation`], and says so.
    async fn ask(&self, query: &Query) -> Observation;

    /// Which machines can be had here, where and for how much.
    async fn offered(&self) -> Result<Offered, CloudError>;

    /// What a class's terms select.
    async fn network(&self, ask: &NetworkAsk) -> Result<Network, CloudError>;

    /// Makes the launch template, whose name is the digest of its content, if it is not there. Repeating
    /// it changes nothing.
    async fn prepare(&self, template: &Template) -> Result<(), CloudError>;

    /// Asks for one machine.
    ///
    /// Guarantee: one token, one machine at most, however often it is asked; the same token with other
    /// parameters is [`LaunchError::OtherParameters`].
    /// Assumption 1: the same token after an empty fleet gives the same empty answer, and not a machine.
    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, LaunchError>;

    /// Every machine with the tag of our cluster, those that ended lately included.
    ///
    /// Assumption: a machine may be missing for some seconds after its launch was answered. So absence
    /// is proof only some time after; see the assumptions.
    async fn machines(&self) -> Result<Vec<Machine>, CloudError>;

    /// Asks for the end of a machine. One that is ending or gone is no error.
    async fn terminate(&self, machine: &MachineId) -> Result<(), CloudError>;
}

/// Which machines can be had.
#[derive(Debug, Clone)]
pub struct Offered {
    pub types: Types,
    /// By instance type: the zones that have it.
    pub zones: BTreeMap<String, BTreeSet<String>>,
    /// By instance type; by instance type and zone for spot.
    pub on_demand: BTreeMap<String, Price>,
    pub spot: BTreeMap<(String, String), Price>,
}

/// What a class's terms select.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    pub subnets: Vec<Subnet>,
    /// Id and name.
    pub security_groups: BTreeMap<String, Option<String>>,
    pub reservations: Vec<Reservation>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subnet {
    pub id: String,
    pub zone: String,
    pub zone_id: Option<String>,
    pub free_addresses: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reservation {
    pub id: String,
    pub instance_type: String,
    pub zone: String,
    pub remaining: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchRequest {
    /// Of the claim's UID and the attempt's number.
    pub token: String,
    pub request: FrozenRequest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    pub machine: MachineId,
    pub instance_type: String,
    pub zone: String,
    pub image: ImageId,
    pub capacity_type: String,
}

/// A machine, as EC2 describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub id: MachineId,
    pub state: MachineState,
    pub launched_at: Timestamp,
    pub token: Option<String>,
    pub tags: BTreeMap<String, String>,
    pub image: ImageId,
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub subnet: Option<String>,
    pub security_groups: BTreeSet<String>,
    pub reservation: Option<String>,
    pub placement_group: Option<String>,
    /// The name that its node will have.
    pub private_dns: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineState {
    Pending,
    Running,
    ShuttingDown,
    Stopped,
    Terminated,
}

impl MachineState {
    /// Whether it costs money or may come back.
    pub fn live(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::Stopped => true,
            Self::ShuttingDown | Self::Terminated => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    #[error("EC2 did not answer: {0}")]
    Unreachable(String),
    #[error("EC2 asks to wait")]
    Throttled { retry_after: Option<SignedDuration> },
    #[error("not allowed: {0}")]
    Denied(String),
    #[error("EC2 refuses: {0}")]
    Refused(String),
}

impl CloudError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable(_) | Self::Throttled { .. } => Remedy::TryAgain,
            Self::Denied(_) | Self::Refused(_) => Remedy::AskPerson,
        }
    }
}

/// Why there is no machine. Only some of these prove that there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The answer says so: nothing was made with this token.
    #[error("no capacity: {}", describe(.0))]
    NoCapacity(Vec<(String, String)>),
    #[error("the image {0} cannot be launched any more")]
    NoSuchImage(ImageId),
    #[error("the launch template `{0}` is not there")]
    NoSuchTemplate(String),
    #[error("the token was used with other parameters")]
    OtherParameters,
    /// A quota, a missing right, a parameter that EC2 does not take: nothing was made.
    #[error("EC2 refuses: {0}")]
    Refused(String),
    /// It may have been made all the same.
    #[error("no answer: {0}")]
    Unanswered(String),
    /// Nothing was made.
    #[error("EC2 asks to wait")]
    Throttled { retry_after: Option<SignedDuration> },
}

/// Instance type and zone of each choice that had none.
fn describe(choices: &[(String, String)]) -> String {
    let all: Vec<String> = choices.iter().map(|(kind, zone)| format!("{kind} in {zone}")).collect();
    all.join(", ")
}

impl LaunchError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unanswered(_) | Self::Throttled { .. } => Remedy::TryAgain,
            Self::NoSuchTemplate(_) | Self::OtherParameters => Remedy::DecideAgain,
            Self::NoCapacity(_) | Self::NoSuchImage(_) => Remedy::TryElsewhere,
            Self::Refused(_) => Remedy::AskPerson,
        }
    }
}
