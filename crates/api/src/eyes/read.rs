//! How is one object read, and what is said of one that cannot be?

use jiff::Timestamp;
use nodemolt_core::drain::{Protection, protection};
use nodemolt_core::seen::{ClassKey, Complaint, Identity, MachineId, Revision, UPGRADE_ANNOTATION};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::into_core::read_time;
use crate::meta::ObjectMeta;
use crate::problem::{Finding, Severity};

/// What is wrong with an object.
pub(super) type Broken = Vec<Complaint>;

/// The wire type. The field is found out only when something is wrong, which is rare.
pub(super) fn decode<T: DeserializeOwned>(object: &Value) -> Result<T, Broken> {
    T::deserialize(object).map_err(|error| {
        let told = match serde_path_to_error::deserialize::<_, T>(object) {
            Ok(_) => Complaint { field: String::new(), message: error.to_string() },
            Err(error) => Complaint {
                field: error.path().to_string(),
                message: error.into_inner().to_string(),
            },
        };
        vec![told]
    })
}

/// Which object it is. Of the object as it came: it may be one that cannot be read.
pub(super) fn identity(object: &Value) -> Identity {
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let meta = &object["metadata"];
    let class = &object["spec"]["template"]["spec"]["nodeClassRef"];
    let class = ClassKey { group: text(&class["group"]), name: text(&class["name"]) };
    Identity {
        uid: text(&meta["uid"]),
        generation: meta["generation"].as_i64().unwrap_or_default(),
        class: Some(class).filter(|it| !it.name.is_empty()),
    }
}

/// Only errors keep an object out.
pub(super) fn complaints(found: impl IntoIterator<Item = Finding>) -> Broken {
    let errors = found.into_iter().filter(|it| it.severity == Severity::Error);
    errors.map(|it| Complaint { field: it.field, message: it.message }).collect()
}

/// `i-0123` of `aws:///eu-central-1a/i-0123`.
pub(super) fn machine(provider_id: Option<&str>) -> Option<MachineId> {
    let id = provider_id?.strip_prefix("aws://")?.rsplit('/').next()?;
    (!id.is_empty()).then(|| MachineId(id.to_owned()))
}

pub(super) fn revision(meta: &ObjectMeta) -> Revision {
    Revision(meta.resource_version.clone().unwrap_or_default())
}

pub(super) fn upgrade_asked_at(
    annotations: &std::collections::BTreeMap<String, String>,
) -> Option<Timestamp> {
    annotations.get(UPGRADE_ANNOTATION).and_then(|it| read_time(it))
}

pub(super) fn protected(
    annotations: &std::collections::BTreeMap<String, String>,
    since: Option<Timestamp>,
) -> Option<Protection> {
    protection(annotations, since)
}
