//! Where can an instance type be had, and where not just now?
//!
//! `aws ec2 describe-instance-type-offerings --location-type availability-zone → zones of each type`,
//! `aws ec2 describe-capacity-reservations → how many more each reservation takes`
//!
//! What AWS does not print, a person may write: under `Unavailable`, what there is no capacity of just
//! now, in the words of the offerings.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{BYTE_ORDER_MARK, ReadAnswerError, parse};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// By instance type. `None`: the file does not speak of it.
    pub zones: Option<BTreeMap<String, BTreeSet<String>>>,
    pub unavailable: BTreeSet<Unavailable>,
    /// How many more instances each reservation takes, by its id.
    pub reserved: BTreeMap<String, u32>,
    /// False if the answer has a `NextToken`: there were more, on a page that we were not given.
    pub complete: bool,
}

/// There is no capacity of it just now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(
    rename_all = "PascalCase",
    deny_unknown_fields,
    expecting = "what there is no capacity of: InstanceType, Location, CapacityType"
)]
pub struct Unavailable {
    pub instance_type: String,
    /// A zone.
    pub location: String,
    /// `on-demand`, `spot` or `reserved`. `None`: however it is bought.
    #[serde(default)]
    pub capacity_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "what an AWS command prints")]
struct Wire {
    #[serde(default)]
    instance_type_offerings: Option<Vec<WireOffering>>,
    #[serde(default)]
    capacity_reservations: Option<Vec<WireReservation>>,
    #[serde(default)]
    unavailable: Option<Vec<Unavailable>>,
    #[serde(default)]
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an offering of an instance type")]
struct WireOffering {
    instance_type: String,
    #[serde(default)]
    location_type: Option<String>,
    location: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "a capacity reservation")]
struct WireReservation {
    capacity_reservation_id: String,
    #[serde(default)]
    available_instance_count: u32,
    #[serde(default)]
    state: Option<String>,
}

const ZONES: &str = "availability-zone";
const CAPACITY_TYPES: [&str; 3] = ["on-demand", "spot", "reserved"];
const ACTIVE: &str = "active";

pub fn read(bytes: &[u8]) -> Result<Offered, ReadAnswerError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let wire: Wire = parse(bytes)?;
    let wrong = |field: String, message: String| ReadAnswerError::Member { field, message };
    if wire.instance_type_offerings.is_none()
        && wire.capacity_reservations.is_none()
        && wire.unavailable.is_none()
    {
        let message =
            "has neither `InstanceTypeOfferings` nor `CapacityReservations` nor `Unavailable`";
        return Err(wrong("the file".to_owned(), message.to_owned()));
    }
    let mut offered = Offered {
        zones: wire.instance_type_offerings.as_ref().map(|_| BTreeMap::new()),
        complete: wire.next_token.is_none_or(|it| it.is_empty()),
        ..Offered::default()
    };
    for (at, it) in wire.instance_type_offerings.into_iter().flatten().enumerate() {
        if let Some(other) = it.location_type.filter(|it| it != ZONES) {
            return Err(wrong(
                format!("InstanceTypeOfferings[{at}].LocationType"),
                format!("is `{other}`; ask with `--location-type {ZONES}`"),
            ));
        }
        let zones = offered.zones.get_or_insert_default();
        zones.entry(it.instance_type).or_default().insert(it.location);
    }
    for it in wire.capacity_reservations.into_iter().flatten() {
        let active = it.state.is_none_or(|it| it == ACTIVE);
        let count = if active { it.available_instance_count } else { 0 };
        offered.reserved.insert(it.capacity_reservation_id, count);
    }
    for (at, it) in wire.unavailable.into_iter().flatten().enumerate() {
        let odd = it.capacity_type.as_deref().filter(|it| !CAPACITY_TYPES.contains(it));
        if let Some(other) = odd {
            return Err(wrong(
                format!("Unavailable[{at}].CapacityType"),
                format!("is `{other}`; write one of {}", CAPACITY_TYPES.join(", ")),
            ));
        }
        offered.unavailable.insert(it);
    }
    Ok(offered)
}
