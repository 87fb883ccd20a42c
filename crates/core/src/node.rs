//! What is running?
//!
//! A node as it was seen: its claim, its machine, what was stamped on it when it was launched. What was
//! not seen is `None`, and is never taken for a difference.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::image::ImageId;
use crate::lookup::Minor;

/// Others tell drift with it: an annotation `drift.nodemolt.dev/REASON` on a `NodeClaim`, whose value is
/// for people to read.
pub const FOREIGN_ANNOTATION_PREFIX: &str = "drift.nodemolt.dev/";

/// Or with a condition of this type under their own domain, such as `security.example.com/Drifted`.
/// Without a domain it is Karpenter's word, and ours.
pub const FOREIGN_CONDITION_SUFFIX: &str = "/Drifted";

/// A machine that has a claim, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub claim: String,
    pub claim_uid: String,
    pub pool: Option<String>,
    pub instance_type: Option<String>,
    pub image: Option<ImageRef>,
    /// Of the claim, or of the node once there is one.
    pub labels: BTreeMap<String, String>,
    /// What the class said at launch.
    pub class_stamp: Option<Stamp>,
    /// What the pool's template said at launch.
    pub template_stamp: Option<Stamp>,
    /// What EC2 says of it. `None` if we could not ask.
    pub instance: Option<Instance>,
    pub kubelet: Option<Minor>,
    /// What others say about it.
    pub foreign: Vec<Foreign>,
    pub created_at: Timestamp,
}

impl Running {
    /// A machine of which nothing is known but its claim.
    pub fn of(claim: &str, claim_uid: &str, created_at: Timestamp) -> Self {
        Self {
            claim: claim.to_owned(),
            claim_uid: claim_uid.to_owned(),
            pool: None,
            instance_type: None,
            image: None,
            labels: BTreeMap::new(),
            class_stamp: None,
            template_stamp: None,
            instance: None,
            kubelet: None,
            foreign: Vec::new(),
            created_at,
        }
    }
}

/// An image by its id, with what orders it among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRef {
    pub id: ImageId,
    /// `None` if the catalog does not know it any more.
    pub name: Option<String>,
    pub dated: Option<Timestamp>,
}

/// What can only be compared with the machine itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    pub security_groups: BTreeSet<String>,
    pub subnet: Option<String>,
    pub reservation: Option<String>,
    pub placement_group: Option<String>,
}

/// What was said at launch, as a digest with its version in front, and by field where that was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamp {
    pub digest: String,
    pub fields: BTreeMap<String, String>,
}

impl Stamp {
    /// Digests of two versions say nothing about each other.
    pub fn version(&self) -> &str {
        self.digest.split_once(':').map_or("", |(version, _)| version)
    }
}

/// Drift that somebody else has found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Foreign {
    /// The type of the condition, or the annotation.
    pub by: String,
    pub reason: String,
    pub message: String,
    /// Since when, where that was written.
    pub since: Option<Timestamp>,
}

/// Whether a condition of this type, or an annotation of this name, says that somebody else found drift.
pub fn said_by_others(by: &str) -> bool {
    let domain = by.strip_suffix(FOREIGN_CONDITION_SUFFIX).unwrap_or("");
    let reason = by.strip_prefix(FOREIGN_ANNOTATION_PREFIX).unwrap_or("");
    !domain.is_empty() || !reason.is_empty()
}

/// A condition of a `NodeClaim`, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenCondition<'a> {
    pub kind: &'a str,
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
    pub since: Option<Timestamp>,
}

/// Drift that others found, in the two forms that are documented. Only `True` counts: `Unknown` is no
/// reason to act.
pub fn foreign_drift<'a>(
    annotations: &BTreeMap<String, String>,
    conditions: impl IntoIterator<Item = WrittenCondition<'a>>,
) -> Vec<Foreign> {
    let mut found: Vec<Foreign> = annotations
        .iter()
        .filter_map(|(key, value)| {
            let reason = key.strip_prefix(FOREIGN_ANNOTATION_PREFIX)?;
            // Whoever takes it back may write so in place of removing it.
            (!reason.is_empty() && value != "false").then(|| Foreign {
                by: key.clone(),
                reason: reason.to_owned(),
                message: if value == "true" { String::new() } else { value.clone() },
                since: None,
            })
        })
        .collect();
    for it in conditions {
        let domain = it.kind.strip_suffix(FOREIGN_CONDITION_SUFFIX).unwrap_or("");
        if !domain.is_empty() && it.status == "True" {
            found.push(Foreign {
                by: it.kind.to_owned(),
                reason: it.reason.to_owned(),
                message: it.message.to_owned(),
                since: it.since,
            });
        }
    }
    found.sort();
    found.dedup();
    found
}
