//! What is running: what does a claim say of it?
//!
//! `NodeClaim → running machine`, and stamps both ways
//!
//! What the claim does not say is not known yet and never a difference: the instance is EC2's to tell,
//! the kubelet the node's, an image's name and date the catalog's.

use std::collections::BTreeMap;

use nodemolt_core::node::{ImageRef, Running, Stamp, WrittenCondition, foreign_drift};
use nodemolt_fit::label;
use serde::{Deserialize, Serialize};

use crate::into_core::Reader;
use crate::nodeclaim::NodeClaim;
use crate::problem::Finding;

/// On a claim: what its class said at launch, as [`stamp_text`] writes it.
pub const CLASS_STAMP: &str = "nodemolt.dev/class-stamp";
/// On a claim: what its pool's template said at launch.
pub const TEMPLATE_STAMP: &str = "nodemolt.dev/template-stamp";

/// What Karpenter stamps, and with which version.
const KARPENTER_CLASS: [&str; 2] =
    ["karpenter.k8s.aws/ec2nodeclass-hash", "karpenter.k8s.aws/ec2nodeclass-hash-version"];
const KARPENTER_TEMPLATE: [&str; 2] =
    ["karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version"];

impl TryFrom<&NodeClaim> for Running {
    type Error = Vec<Finding>;

    fn try_from(claim: &NodeClaim) -> Result<Self, Self::Error> {
        let mut reader = Reader::new();
        let meta = &claim.metadata;
        let uid = reader.present("metadata.uid", meta.uid.as_deref().filter(|it| !it.is_empty()));
        let created = meta.creation_timestamp.as_deref();
        let created_at = reader
            .present("metadata.creationTimestamp", created)
            .and_then(|it| reader.time("metadata.creationTimestamp", it));
        let status = claim.status.as_ref();
        let image = status.and_then(|it| it.image_id.as_deref()).filter(|it| !it.is_empty());
        let image = image.and_then(|it| reader.parse("status.imageID", it));
        let conditions = status.and_then(|it| it.conditions.as_deref()).unwrap_or_default();
        let written = conditions.iter().map(|it| WrittenCondition {
            kind: &it.kind,
            status: &it.status,
            reason: it.reason.as_deref().unwrap_or_default(),
            message: it.message.as_deref().unwrap_or_default(),
            since: it.last_transition_time.as_deref().and_then(|it| it.parse().ok()),
        });
        let class_stamp = stamp(&mut reader, &meta.annotations, CLASS_STAMP, KARPENTER_CLASS);
        let template_stamp =
            stamp(&mut reader, &meta.annotations, TEMPLATE_STAMP, KARPENTER_TEMPLATE);
        let label = |key: &str| meta.labels.get(key).filter(|it| !it.is_empty()).cloned();
        let running = uid.zip(created_at).map(|(uid, created_at)| Self {
            pool: label(label::NODEPOOL),
            instance_type: label(label::INSTANCE_TYPE),
            image: image.map(|id| ImageRef { id, name: None, dated: None }),
            labels: meta.labels.clone(),
            class_stamp,
            template_stamp,
            foreign: foreign_drift(&meta.annotations, written),
            ..Self::of(&meta.name, uid, created_at)
        });
        reader.finish(running)
    }
}

/// Ours, or else Karpenter's with its version in front, which says that there is one of another version:
/// such a claim is stamped anew and not replaced.
fn stamp(
    reader: &mut Reader,
    annotations: &BTreeMap<String, String>,
    ours: &str,
    [hash, version]: [&str; 2],
) -> Option<Stamp> {
    if let Some(text) = annotations.get(ours) {
        let read = serde_json::from_str::<WrittenStamp>(text);
        if read.is_err() {
            let field = format!("metadata.annotations[{ours}]");
            let finding = Finding::error(field, "is not a stamp that nodemolt wrote");
            let hint = "remove the annotation; what it was launched with is not known then, and `nodemolt upgrade` replaces it";
            reader.found.push(finding.hint(hint));
        }
        return read.ok().map(|it| Stamp { digest: it.digest, fields: it.fields });
    }
    let (hash, version) = (annotations.get(hash)?, annotations.get(version)?);
    Some(Stamp { digest: format!("karpenter/{version}:{hash}"), fields: BTreeMap::new() })
}

#[derive(Serialize, Deserialize)]
struct WrittenStamp {
    digest: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, String>,
}

/// What is written into [`CLASS_STAMP`] or [`TEMPLATE_STAMP`].
pub fn stamp_text(stamp: &Stamp) -> String {
    let Stamp { digest, fields } = stamp;
    let fields: serde_json::Map<_, _> =
        fields.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    serde_json::json!({"digest": digest, "fields": fields}).to_string()
}
