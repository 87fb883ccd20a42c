//! How is a difference said?

use std::collections::BTreeSet;
use std::fmt;

use super::{Direction, Divergence, Missing};
use crate::node::Foreign;

impl Direction {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade",
            Self::Downgrade => "downgrade",
            Self::Sideways => "sideways",
        }
    }
}

/// The field of a class as people write it. A stamp has names of its own, which stand on claims and stay.
fn as_written(field: &str) -> &str {
    match field {
        "family" => "amiFamily",
        "block_devices" => "blockDeviceMappings",
        "instance_store" => "instanceStorePolicy",
        "metadata" => "metadataOptions",
        "interfaces" => "networkInterfaces",
        "public_ip" => "associatePublicIPAddress",
        "connection_tracking" => "connectionTracking",
        "instance_profile" => "instanceProfile",
        "detailed_monitoring" => "detailedMonitoring",
        "cpu" => "cpuOptions",
        "placement_group" => "placementGroupSelector",
        "user_part" => "userData",
        "after_bootstrap" => "userDataPlacement",
        same => same,
    }
}

impl Divergence {
    /// A word that scripts can rely on.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Image { .. } => "Image",
            Self::UserData { .. } => "UserData",
            Self::Class { .. } => "Class",
            Self::PoolTemplate { .. } => "PoolTemplate",
            Self::Requirement { .. } => "Requirements",
            Self::InstanceTypeGone { .. } => "InstanceTypeGone",
            Self::SecurityGroups { .. } => "SecurityGroups",
            Self::Subnet { .. } => "Subnets",
            Self::Reservation { .. } => "CapacityReservation",
            Self::PlacementGroup { .. } => "PlacementGroup",
            Self::KubernetesSkew { .. } => "KubernetesSkew",
            Self::Foreign(_) => "Foreign",
        }
    }

    /// For programs, and for records.
    pub fn sides(&self) -> Sides {
        let plain = |of: &str, from: Option<String>, to: Option<String>| Sides {
            of: if of.is_empty() { "Other".to_owned() } else { of.to_owned() },
            from,
            to,
        };
        let set = |all: &BTreeSet<String>| {
            Some(all.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
        };
        let field = |of: &str, field: &Option<String>| match field {
            Some(field) => format!("{of} {field}"),
            None => of.to_owned(),
        };
        match self {
            Self::Image { from, to, direction: _ } => {
                plain("Image", Some(from.id.to_string()), Some(to.id.to_string()))
            }
            Self::UserData { from, to } => plain("UserData", Some(from.clone()), Some(to.clone())),
            Self::Class { field: name, from, to } => {
                plain(&field("Class", name), Some(from.clone()), Some(to.clone()))
            }
            Self::PoolTemplate { field: name, from, to } => {
                plain(&field("Pool", name), Some(from.clone()), Some(to.clone()))
            }
            Self::Requirement { key, from, to } => {
                plain(&format!("Label {key}"), from.clone(), Some(to.to_string()))
            }
            Self::InstanceTypeGone { instance_type } => {
                plain("InstanceType", Some(instance_type.clone()), None)
            }
            Self::SecurityGroups { from, to } => plain("SecurityGroups", set(from), set(to)),
            Self::Subnet { from, to } => plain("Subnet", Some(from.clone()), set(to)),
            Self::Reservation { from, to } => {
                plain("CapacityReservation", Some(from.clone()), set(to))
            }
            Self::PlacementGroup { from, to } => plain("PlacementGroup", from.clone(), to.clone()),
            Self::KubernetesSkew { kubelet, control_plane } => {
                plain("Kubernetes", Some(kubelet.to_string()), Some(control_plane.to_string()))
            }
            Self::Foreign(Foreign { by, reason, message, since: _ }) => {
                plain(reason, Some(by.clone()), Some(message.clone()))
            }
        }
    }
}

/// What differs, what is, and what should be, each on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// `Image`, `Class` with the field, `Label` with the key, and so on; of others their own word.
    pub of: String,
    pub from: Option<String>,
    pub to: Option<String>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |all: &BTreeSet<String>| {
            if all.is_empty() {
                "none".to_owned()
            } else {
                all.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            }
        };
        let or_none = |it: &Option<String>| it.clone().unwrap_or_else(|| "none".to_owned());
        match self {
            Self::Image { from, to, direction } => {
                write!(out, "image {} → {} ({})", from.id, to.id, direction.as_str())
            }
            Self::UserData { from, to } => write!(out, "user data {from} → {to}"),
            Self::Class { field, from, to } => match field {
                Some(field) => write!(out, "class: {} {from} → {to}", as_written(field)),
                None => write!(out, "class {from} → {to}"),
            },
            Self::PoolTemplate { field, from, to } => match field {
                Some(field) => write!(out, "pool: {field} {from} → {to}"),
                None => write!(out, "pool {from} → {to}"),
            },
            Self::Requirement { key, from, to } => {
                write!(out, "label {key} is {}, the pool asks for {to}", or_none(from))
            }
            Self::InstanceTypeGone { instance_type } => {
                write!(out, "instance type {instance_type} is not offered any more")
            }
            Self::SecurityGroups { from, to } => {
                write!(out, "security groups {} → {}", set(from), set(to))
            }
            Self::Subnet { from, to } => write!(out, "subnet {from} is none of {}", set(to)),
            Self::Reservation { from, to } => {
                write!(out, "capacity reservation {from} is none of {}", set(to))
            }
            Self::PlacementGroup { from, to } => {
                write!(out, "placement group {} → {}", or_none(from), or_none(to))
            }
            Self::KubernetesSkew { kubelet, control_plane } => write!(
                out,
                "kubelet {kubelet} is outside of what an API server {control_plane} supports"
            ),
            Self::Foreign(Foreign { by, reason, message, since: _ }) => {
                write!(out, "{by} says {reason}")?;
                if message.is_empty() { Ok(()) } else { write!(out, ": {message}") }
            }
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunningImage => write!(out, "which image it runs"),
            Self::InstanceType => write!(out, "which instance type it is"),
            Self::ReplacementImage { instance_type, because } => {
                write!(out, "an image for {instance_type}: {because}")
            }
            Self::ClassStamp => write!(out, "what its class said when it was launched"),
            Self::TemplateStamp => write!(out, "what its pool said when it was launched"),
            Self::Instance => write!(out, "what EC2 says of its instance"),
            Self::SecurityGroups => write!(out, "which security groups the class selects"),
            Self::Subnets => write!(out, "which subnets the class selects"),
            Self::SelectsNothing { of } => {
                write!(out, "which {of} it should have: its class selects none that there is")
            }
            Self::Reservations => write!(out, "which capacity reservations the class selects"),
            Self::InstanceTypes => write!(out, "which instance types EC2 offers"),
            Self::PlacementGroup => write!(out, "the name of the class's placement group"),
            Self::Kubelet => write!(out, "the version of its kubelet"),
            Self::ControlPlane => write!(out, "the version of the API server"),
        }
    }
}
