//! What is asked of the API server, and what does its answer mean?

use std::rc::Rc;

use nodemolt_core::seen::{Complaint, Revision};
use nodemolt_engine::port::ClusterError;
use serde_json::{Value, json};

use crate::transport::{Answer, Refusal, Request, Resource, Subresource, Transport, Verb};

use super::Adapter;

/// The schemas' limit of a sentence in a condition.
const MESSAGE_CHARS_MAX: usize = 32_768;

impl<T: Transport> Adapter<T> {
    pub(super) async fn send(&self, request: &Request) -> Result<Answer, Refusal> {
        let answer = self.transport.send(request).await?;
        if let Some(date) = answer.date {
            self.eyes.borrow_mut().server_time(date);
        }
        Ok(answer)
    }

    /// The same, where every refusal means what it means for any object.
    pub(super) async fn call(&self, request: &Request) -> Result<Answer, ClusterError> {
        self.send(request).await.map_err(|it| error(&told(request), it))
    }

    pub(super) async fn get(
        &self,
        resource: Resource,
        name: &str,
    ) -> Result<Rc<Value>, ClusterError> {
        self.call(&Request::of(Verb::Get, resource).named(name)).await.map(|it| it.body)
    }

    /// What is there under this name now, if it is still the one that was meant.
    pub(super) async fn get_same(
        &self,
        resource: Resource,
        name: &str,
        uid: &str,
    ) -> Result<Rc<Value>, ClusterError> {
        let found = self.get(resource, name).await?;
        if found["metadata"]["uid"].as_str() == Some(uid) {
            return Ok(found);
        }
        Err(ClusterError::Absent(format!("{} {name} with UID {uid}", resource.kind)))
    }

    /// A merge patch, of which at most one against one revision succeeds.
    pub(super) async fn patch(
        &self,
        resource: Resource,
        subresource: Option<Subresource>,
        name: &str,
        revision: &Revision,
        patch: Value,
    ) -> Result<Rc<Value>, ClusterError> {
        let mut patch = patch;
        patch["metadata"]["resourceVersion"] = revision.0.clone().into();
        let request = Request::of(Verb::MergePatch, resource).named(name).body(patch);
        self.call(&Request { subresource, ..request }).await.map(|it| it.body)
    }

    /// Asks for the end of exactly that object.
    pub(super) async fn delete(
        &self,
        request: Request,
        uid: &str,
        options: Value,
    ) -> Result<(), ClusterError> {
        let mut options = options;
        options["apiVersion"] = "v1".into();
        options["kind"] = "DeleteOptions".into();
        options["preconditions"]["uid"] = uid.into();
        let request = request.body(options);
        match self.send(&request).await {
            Ok(_) => Ok(()),
            // There is one of that name, and it is not the one that was meant.
            Err(Refusal::Status { code: 409, message, .. }) if of_another(&message) => {
                Err(ClusterError::Absent(format!("{} with UID {uid}", told(&request))))
            }
            Err(refusal) => Err(error(&told(&request), refusal)),
        }
    }
}

impl Request {
    pub(crate) fn of(verb: Verb, resource: Resource) -> Self {
        Self { verb, resource, subresource: None, namespace: None, name: None, body: None }
    }

    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    pub(crate) fn within(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    pub(crate) fn body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }
}

/// The API server's words for a UID that is not the object's.
pub(super) fn of_another(message: &str) -> bool {
    message.contains("UID in precondition") || message.contains("the UID in the precondition")
}

/// What people call the object of a request.
fn told(request: &Request) -> String {
    let written = || request.body.as_ref()?.pointer("/metadata/name")?.as_str();
    let name = request.name.as_deref().or_else(written).unwrap_or_default();
    match &request.namespace {
        Some(namespace) => format!("{} {namespace}/{name}", request.resource.kind),
        None if name.is_empty() => format!("the list of {}", request.resource),
        None => format!("{} {name}", request.resource.kind),
    }
}

pub(super) fn error(object: &str, refusal: Refusal) -> ClusterError {
    let (code, reason, message, retry_after) = match refusal {
        Refusal::NoAnswer(why) => return ClusterError::Unreachable(why),
        Refusal::Status { code, reason, message, retry_after, .. } => {
            (code, reason, message, retry_after)
        }
    };
    let object = object.to_owned();
    match (code, reason.as_str()) {
        (404, _) => ClusterError::Absent(object),
        (409, "AlreadyExists") => ClusterError::Exists(object),
        // What it was decided on has expired.
        (409 | 410, _) => ClusterError::Conflict(object),
        (401 | 403, _) => ClusterError::Forbidden(message),
        (429, _) => ClusterError::Throttled { retry_after },
        (400..=499, _) => ClusterError::Invalid { object, message },
        _ => ClusterError::Unreachable(format!("{code} {message}")),
    }
}

/// An object that came and says what we cannot read.
pub(super) fn unreadable(kind: &str, object: &Value, why: &[Complaint]) -> ClusterError {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let why: Vec<String> = why.iter().map(ToString::to_string).collect();
    let place = match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    };
    ClusterError::Unreadable { object: format!("{kind} {place}"), message: why.join("; ") }
}

pub(super) fn revision(object: &Value) -> Revision {
    Revision(object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

/// `apiVersion` and `kind`, and a name.
pub(super) fn object(resource: Resource, name: &str) -> Value {
    let version = if resource.group.is_empty() {
        resource.version.to_owned()
    } else {
        format!("{}/{}", resource.group, resource.version)
    };
    json!({"apiVersion": version, "kind": resource.kind, "metadata": {"name": name}})
}

/// What there is room for. What is cut was for people.
pub(super) fn sentence(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

/// A word that every schema takes as a reason.
pub(super) fn word(text: &str) -> String {
    let known = |it: &char| it.is_ascii_alphanumeric() || *it == '_';
    let word: String = text.chars().filter(known).take(1024).collect();
    if word.starts_with(|it: char| it.is_ascii_alphabetic()) { word } else { format!("R{word}") }
}
