//! In which zones is an instance type offered?
//!
//! `aws ec2 describe-instance-type-offerings --location-type availability-zone → zones of each type`

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{BYTE_ORDER_MARK, ReadAnswerError, parse};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// By instance type.
    pub zones: BTreeMap<String, BTreeSet<String>>,
    /// False if the answer has a `NextToken`: there were more, on a page that we were not given.
    pub complete: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "what an AWS command prints")]
struct Wire {
    instance_type_offerings: Vec<WireOffering>,
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

const ZONES: &str = "availability-zone";

pub fn read(bytes: &[u8]) -> Result<Offered, ReadAnswerError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let wire: Wire = parse(bytes)?;
    let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (at, it) in wire.instance_type_offerings.into_iter().enumerate() {
        if let Some(other) = it.location_type.filter(|it| it != ZONES) {
            return Err(ReadAnswerError::Member {
                field: format!("InstanceTypeOfferings[{at}].LocationType"),
                message: format!("is `{other}`; ask with `--location-type {ZONES}`"),
            });
        }
        zones.entry(it.instance_type).or_default().insert(it.location);
    }
    Ok(Offered { zones, complete: wire.next_token.is_none_or(|it| it.is_empty()) })
}
