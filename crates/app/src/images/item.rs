//! What do programs get to read about an image?

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use nodemolt_core::catalog::{Appeared, Because, Kept, Standing, Withdrawn};
use nodemolt_core::image::{Date, NamePattern};
use serde::Serialize;

use super::shelf::{Naming, Publisher, Role, Shelf};

const API_VERSION: &str = "nodemolt.dev/cli/v1";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageList {
    api_version: &'static str,
    kind: &'static str,
    /// The moment that the states and ages are of.
    at: Timestamp,
    items: Vec<Item>,
}

impl ImageList {
    pub(super) fn new(items: Vec<Item>, at: Timestamp) -> Self {
        Self { api_version: API_VERSION, kind: "ImageList", at, items }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flavour: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    publisher: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_alias: Option<String>,
    architecture: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_unreadable: Option<String>,
    /// The date by which it is ordered and ages: its source's, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    ordered_by: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated_unreadable: Option<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_since: Option<Timestamp>,
    /// EC2's own word.
    ec2_state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawn: Option<ItemWithdrawn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_seen: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<Timestamp>,
    /// It came after the first complete answer, so first seen counts for its age.
    appeared_later: bool,
    seen_by: BTreeSet<String>,
    recommended_by: Vec<String>,
    /// All parameters that name it or have named it.
    parameters: Vec<ItemNaming>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tpm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    virtualization: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ena: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    public: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<bool>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    product_codes: BTreeSet<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    supported_instance_types: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unsupported_instance_types: Vec<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    public_ssm_parameter_names: BTreeSet<String>,
    tags: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ItemWithdrawn {
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_back_to: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ItemNaming {
    name: String,
    recommends: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Timestamp>,
    current: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_to: Option<String>,
}

impl Item {
    pub(super) fn of(kept: &Kept<'_>, shelf: &Shelf<'_>) -> Self {
        let sighting = kept.sighting;
        let image = sighting.image.clone();
        let release = shelf.release(&image.id);
        let standing = sighting.standing(shelf.index.now);
        let texts = |all: &[NamePattern]| all.iter().map(|it| it.as_str().to_owned()).collect();
        Self {
            flavour: release.map(|(flavour, _)| flavour.to_string()),
            kubernetes: shelf.kubernetes(kept).map(|it| it.to_string()),
            release: release.map(|(_, version)| version.clone()),
            publisher: shelf.publisher(kept).map(|it| match it {
                Publisher::Known => "Known",
                Publisher::Stranger => "Stranger",
                Publisher::Untold => "Untold",
            }),
            owner: image.owner.map(|it| it.to_string()),
            owner_alias: image.owner_alias,
            architecture: image.architecture.as_str().to_owned(),
            created: image.created.at(),
            created_unreadable: unreadable(&image.created),
            ordered_by: kept.dated,
            deprecated: image.deprecated.at(),
            deprecated_unreadable: unreadable(&image.deprecated),
            state: standing.as_str(),
            state_since: since(&standing),
            ec2_state: image.state.as_str().to_owned(),
            withdrawn: kept.withdrawn.as_ref().map(ItemWithdrawn::of),
            first_seen: sighting.first_seen,
            last_seen: sighting.last_seen,
            appeared_later: sighting.appeared == Appeared::Later,
            seen_by: sighting.seen_by.clone(),
            recommended_by: shelf
                .named_by(&image.id, Role::Recommends)
                .map(str::to_owned)
                .collect(),
            parameters: shelf.namings(&image.id).iter().map(ItemNaming::of).collect(),
            source: image.source.map(|it| it.to_string()),
            source_region: image.source_region,
            boot_mode: image.boot_mode.map(|it| it.as_str().to_owned()),
            tpm: image.tpm,
            virtualization: image.virtualization,
            root_device: image.root_device,
            ena: image.ena,
            platform: image.platform,
            public: image.public,
            allowed: image.allowed,
            product_codes: image.product_codes,
            supported_instance_types: texts(&image.supported_types),
            unsupported_instance_types: texts(&image.unsupported_types),
            public_ssm_parameter_names: image.public_parameters,
            tags: image.tags,
            description: image.description,
            name: image.name,
            id: image.id.to_string(),
        }
    }
}

fn unreadable(date: &Date) -> Option<String> {
    match date {
        Date::Unreadable(text) => Some(text.clone()),
        Date::At(_) | Date::Missing => None,
    }
}

fn since(standing: &Standing) -> Option<Timestamp> {
    match standing {
        Standing::NotVisible { since } => Some(*since),
        Standing::Deprecated { since } | Standing::Deregistered { since } => *since,
        Standing::Available | Standing::Disabled | Standing::Unready(_) => None,
    }
}

impl ItemWithdrawn {
    fn of(mark: &Withdrawn) -> Self {
        let (reason, parameter, to) = match &mark.because {
            Because::PointerMovedBack { parameter, to } => {
                ("PointerMovedBack", Some(parameter.clone()), Some(to.to_string()))
            }
            Because::DeprecatedEarly => ("DeprecatedEarly", None, None),
            Because::DisabledEarly => ("DisabledEarly", None, None),
            Because::UnsharedEarly => ("UnsharedEarly", None, None),
            Because::Recalled => ("Recalled", None, None),
        };
        Self { reason, at: mark.at, parameter, moved_back_to: to }
    }
}

impl ItemNaming {
    fn of(naming: &Naming) -> Self {
        let ended = naming.ended.as_ref();
        Self {
            name: naming.parameter.clone(),
            recommends: naming.role == Role::Recommends,
            version: naming.version,
            from: naming.from,
            current: ended.is_none(),
            until: ended.and_then(|it| it.at),
            moved_to: ended.and_then(|it| it.to.as_ref()).map(ToString::to_string),
        }
    }
}
