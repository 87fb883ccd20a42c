//! Is this the same launch as that?
//!
//! `value → canonical JSON → SHA-256`
//!
//! Two digests. The **name** of a template covers all that the template says: equal content, equal name,
//! so that nobody makes a template twice and none is ever changed. The **static digest** covers what a
//! class says about a machine and what can only change by replacing it; it is stamped on each node and
//! compared later. What changes by other ways is left out there, each with its reason.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::device::{BlockDevice, devices};
use super::network::{ConnectionTracking, WrittenInterface};
use super::words::InstanceStorePolicy;
use super::{Cpu, Identity, Metadata, PlacementGroup, Settings, Template};
use crate::bootstrap::Placement;

/// Goes before the hexadecimal digits of a template's name. EC2 admits `/` there.
pub const NAME_PREFIX: &str = "nodemolt/";

/// Changes when a default of a covered field changes, or when a field joins or leaves. Digests of two
/// versions are not compared: a node with another version is stamped anew, not replaced.
pub const STATIC_VERSION: &str = "nodemolt-static/v1:";

/// The name that a template's content gives it.
pub(super) fn name(template: &Template) -> String {
    format!("{NAME_PREFIX}{}", hex_sha256(template))
}

/// What a class says that only a new machine can honour. Two are comparable if both are of one version,
/// which stands at the front.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StaticDigest(String);

impl StaticDigest {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether another digest, from an annotation perhaps, can be compared with this one at all.
    pub fn comparable(written: &str) -> bool {
        written.strip_prefix(STATIC_VERSION).is_some_and(|it| {
            it.len() == 64 && it.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        })
    }
}

impl fmt::Display for StaticDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.0)
    }
}

/// All of it as it takes effect: `20Gi` written out is the same as the family's own 20Gi left out, and
/// `detailedMonitoring: false` the same as nothing. Karpenter hashes what was typed, so that either edit
/// replaces every node for nothing.
#[derive(Serialize)]
struct Static<'a> {
    family: &'static str,
    block_devices: Vec<BlockDevice>,
    instance_store: Option<InstanceStorePolicy>,
    metadata: Metadata,
    interfaces: Vec<WrittenInterface>,
    public_ip: Option<bool>,
    connection_tracking: Option<ConnectionTracking>,
    tags: &'a BTreeMap<String, String>,
    role: Option<&'a str>,
    instance_profile: Option<&'a str>,
    detailed_monitoring: bool,
    cpu: Cpu,
    placement_group: Option<&'a PlacementGroup>,
    context: Option<&'a str>,
    user_part: Option<&'a str>,
    after_bootstrap: bool,
    kubelet: &'a Value,
}

/// Not even asked for are those that differ from launch to launch: image (its drift is the resolution's
/// to say), instance type and zone (the pool's requirements), capacity type and reservation (the
/// offering's), security groups and subnets (compared with the instance itself), EFA count (a pod's
/// wish), the pool's labels and taints (the pool's own digest), and the rendered user data: what we
/// render may change from one version of ours to the next, and that must not replace a fleet. The
/// cluster's endpoint and certificate are the cluster's, not the class's.
pub(super) fn static_digest(settings: &Settings) -> StaticDigest {
    with_covered(settings, |it| StaticDigest(format!("{STATIC_VERSION}{}", hex_sha256(it))))
}

/// The same, field by field, so that drift can say which one it was. User data may hold secrets: of it,
/// and of what is too long for an annotation, there is a digest only.
pub(super) fn static_fields(settings: &Settings) -> BTreeMap<String, String> {
    with_covered(settings, |it| fields(it, &["user_part"]))
}

fn with_covered<T>(settings: &Settings, tell: impl FnOnce(&Static<'_>) -> T) -> T {
    let Settings {
        class: _, // A renamed class is another class; its nodes know it by the reference.
        family,
        block_devices,
        instance_store,
        metadata,
        interfaces,
        public_ip,
        ip_prefixes: _, // The network plugin adds and removes prefixes on running nodes.
        connection_tracking,
        tags,
        identity,
        detailed_monitoring,
        cpu,
        placement_group,
        context,
        user_part,
        user_part_placement,
        kubelet,
    } = settings;
    let mut interfaces = interfaces.clone();
    interfaces.sort();
    let (role, instance_profile) = match identity {
        Identity::Role(name) => (Some(name.as_str()), None),
        Identity::InstanceProfile(name) => (None, Some(name.as_str())),
    };
    let covered = Static {
        family: family.name(),
        block_devices: devices(*family, block_devices),
        instance_store: *instance_store,
        metadata: *metadata,
        interfaces,
        public_ip: *public_ip,
        connection_tracking: *connection_tracking,
        tags,
        role,
        instance_profile,
        detailed_monitoring: *detailed_monitoring,
        cpu: *cpu,
        placement_group: placement_group.as_ref(),
        context: context.as_deref(),
        // White space only is no user part, there as here.
        user_part: user_part.as_deref().filter(|it| !it.trim().is_empty()),
        after_bootstrap: *user_part_placement == Placement::BetweenBootstrapAndKubelet,
        kubelet,
    };
    tell(&covered)
}

/// Longer values are told by their digest.
const FIELD_LENGTH_MAX: usize = 200;

/// What a value says, by the names of its fields. What says nothing is left out.
pub(crate) fn fields(value: &impl Serialize, hidden: &[&str]) -> BTreeMap<String, String> {
    let value = serde_json::to_value(value).expect("plain data with text as keys is always JSON");
    let Value::Object(members) = value else { return BTreeMap::new() };
    let told = members.into_iter().filter(|(_, it)| !it.is_null()).map(|(name, value)| {
        let mut text = String::new();
        write_canonical(&value, &mut text);
        if hidden.contains(&name.as_str()) || text.len() > FIELD_LENGTH_MAX {
            text = format!("sha256:{:.16}", hex_sha256(&value));
        }
        (name, text)
    });
    told.collect()
}

pub(crate) fn hex_sha256(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("plain data with text as keys is always JSON");
    let mut text = String::new();
    write_canonical(&value, &mut text);
    let mut hex = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Keys sorted, no white space, and nothing that is null: a member that is absent and one that says
/// nothing are the same. So a field that joins later changes no digest where it is not used.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> =
                members.iter().filter(|(_, it)| !it.is_null()).collect();
            out.push('{');
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(out, "{value}");
        }
    }
}
