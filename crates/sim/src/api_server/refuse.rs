//! How does an API server say no?
//!
//! Codes, reasons and sentences are those of Kubernetes' `api/errors`.

use jiff::SignedDuration;
use nodemolt_api::admission::{Cause, CauseKind};
use nodemolt_cluster::transport::{Refusal, Resource};

/// What a write against an old revision is told.
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Of what is no object at all.
const UNREADABLE: &str = "BadRequest";

pub(super) fn status(code: u16, reason: &str, message: impl Into<String>) -> Refusal {
    Refusal::Status {
        code,
        reason: reason.to_owned(),
        message: message.into(),
        causes: Vec::new(),
        retry_after: None,
    }
}

/// The same with what is in its details.
pub(super) fn with(mut refusal: Refusal, cause: &str, retry_after: i64) -> Refusal {
    if let Refusal::Status { causes, retry_after: after, .. } = &mut refusal {
        causes.push(cause.to_owned());
        if retry_after > 0 {
            *after = Some(SignedDuration::from_secs(retry_after));
        }
    }
    refusal
}

pub(super) fn bad_request(message: impl Into<String>) -> Refusal {
    status(400, "BadRequest", message)
}

pub(super) fn no_such_resource() -> Refusal {
    status(404, "NotFound", "the server could not find the requested resource")
}

pub(super) fn not_found(resource: Resource, name: &str) -> Refusal {
    status(404, "NotFound", format!("{resource} \"{name}\" not found"))
}

pub(super) fn already_exists(resource: Resource, name: &str) -> Refusal {
    status(409, "AlreadyExists", format!("{resource} \"{name}\" already exists"))
}

pub(super) fn conflict(resource: impl std::fmt::Display, name: &str, why: &str) -> Refusal {
    let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
    status(409, "Conflict", message)
}

pub(super) fn modified(resource: Resource, name: &str) -> Refusal {
    conflict(resource, name, MODIFIED)
}

pub(super) fn forbidden(resource: impl std::fmt::Display, name: &str, why: &str) -> Refusal {
    status(403, "Forbidden", format!("{resource} \"{name}\" is forbidden: {why}"))
}

/// A namespace that is being deleted takes nothing new.
pub(super) fn namespace_terminating(resource: Resource, name: &str, namespace: &str) -> Refusal {
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    with(forbidden(resource, name, &why), "NamespaceTerminating", 0)
}

/// `NodeClaim.karpenter.sh`, as refusals of what is in an object call it.
pub(super) fn qualified_kind(resource: Resource) -> String {
    if resource.group.is_empty() {
        resource.kind.to_owned()
    } else {
        format!("{}.{}", resource.kind, resource.group)
    }
}

/// One thing that is wrong with an object of Kubernetes' own kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) reason: &'static str,
    /// With the field.
    pub(super) sentence: String,
}

impl Wrong {
    pub(super) fn invalid(field: &str, value: &str, detail: &str) -> Self {
        let sentence = format!("{field}: Invalid value: {value}: {detail}");
        Self { reason: "FieldValueInvalid", sentence }
    }

    /// What cannot even be read: then nothing else is looked at.
    pub(super) fn unreadable(field: &str, value: &str, detail: &str) -> Self {
        Self { reason: UNREADABLE, sentence: format!("{field}: {value}: {detail}") }
    }

    pub(super) fn required(field: &str, detail: &str) -> Self {
        let colon = if detail.is_empty() { "" } else { ": " };
        let sentence = format!("{field}: Required value{colon}{detail}");
        Self { reason: "FieldValueRequired", sentence }
    }

    pub(super) fn forbidden(field: &str, detail: &str) -> Self {
        let sentence = format!("{field}: Forbidden: {detail}");
        Self { reason: "FieldValueForbidden", sentence }
    }
}

pub(super) fn invalid(resource: Resource, name: &str, wrong: &[Wrong]) -> Refusal {
    if let Some(Wrong { sentence, .. }) = wrong.iter().find(|it| it.reason == UNREADABLE) {
        let Resource { kind, version, .. } = resource;
        let message =
            format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {sentence}");
        return bad_request(message);
    }
    let sentences: Vec<&str> = wrong.iter().map(|it| it.sentence.as_str()).collect();
    let said = match sentences.as_slice() {
        [one] => (*one).to_owned(),
        all => format!("[{}]", all.join(", ")),
    };
    let message = format!("{} \"{name}\" is invalid: {said}", qualified_kind(resource));
    Refusal::Status {
        code: 422,
        reason: "Invalid".to_owned(),
        message,
        causes: wrong.iter().map(|it| it.reason.to_owned()).collect(),
        retry_after: None,
    }
}

impl From<&Cause> for Wrong {
    fn from(cause: &Cause) -> Self {
        Self { reason: reason(cause.kind), sentence: cause.to_string() }
    }
}

/// What the validator of custom kinds says.
pub(super) fn inadmissible(resource: Resource, name: &str, causes: &[Cause]) -> Refusal {
    if let Some(malformed) = causes.iter().find(|it| it.kind == CauseKind::Malformed) {
        return bad_request(malformed.message.clone());
    }
    let wrong: Vec<Wrong> = causes.iter().map(Wrong::from).collect();
    invalid(resource, name, &wrong)
}

fn reason(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::Required => "FieldValueRequired",
        CauseKind::Invalid => "FieldValueInvalid",
        CauseKind::TypeInvalid => "FieldValueTypeInvalid",
        CauseKind::NotSupported => "FieldValueNotSupported",
        CauseKind::TooLong => "FieldValueTooLong",
        CauseKind::TooMany => "FieldValueTooMany",
        CauseKind::Duplicate => "FieldValueDuplicate",
        CauseKind::Forbidden => "FieldValueForbidden",
        CauseKind::Malformed => UNREADABLE,
    }
}
