//! How does a request reach an API server?

use std::fmt;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// One API server.
///
/// Sends a request once, and never again by itself: a 429 from the eviction API is an answer, and an
/// eviction that is tried again behind our back may come after a halt.
#[expect(async_fn_in_trait, reason = "the engine runs on one thread; its futures are never sent")]
pub trait Transport {
    async fn send(&self, request: &Request) -> Result<Answer, Refusal>;
}

impl<T: Transport> Transport for &T {
    async fn send(&self, request: &Request) -> Result<Answer, Refusal> {
        T::send(self, request).await
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub verb: Verb,
    pub resource: Resource,
    pub subresource: Option<Subresource>,
    /// `None` for what belongs to the whole cluster.
    pub namespace: Option<String>,
    /// `None` only for [`Verb::List`] and [`Verb::Create`].
    pub name: Option<String>,
    /// The object, the patch, or `DeleteOptions`; of a list its `ListOptions`, which go into the path. Of
    /// those only `fieldSelector` is ever said.
    pub body: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    /// All of it, or all that its `fieldSelector` selects, in one consistent answer.
    List,
    Create,
    /// The whole object, against the `resourceVersion` that it holds.
    Replace,
    /// `application/merge-patch+json`; with a `resourceVersion` in it, against that.
    MergePatch,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subresource {
    Status,
    /// Of a pod, to be created.
    Eviction,
}

/// A kind, as it stands in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(out, "{}", self.plural)
        } else {
            write!(out, "{}.{}", self.plural, self.group)
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub code: u16,
    /// Shared, as what is listed: who holds the objects need not copy them.
    pub body: Rc<Value>,
    /// What a list lists, if it is one, which then does not stand in `body`.
    pub items: Option<Vec<Rc<Value>>>,
    /// The server's clock.
    pub date: Option<Timestamp>,
}

impl Answer {
    /// Of a whole body, be it an object or a list.
    pub fn new(code: u16, mut body: Value, date: Option<Timestamp>) -> Self {
        let items = match body.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Some(items.into_iter().map(Rc::new).collect()),
            // Go's word for an empty one.
            Some(Value::Null) => Some(Vec::new()),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_))
            | None => None,
        };
        Self { code, body: Rc::new(body), items, date }
    }

    /// All of a list, and its revision. What a list lacks is taken for gone, so a part of one is no answer,
    /// and neither is something else that was answered in its place.
    pub fn whole_list(self) -> Result<(Vec<Rc<Value>>, String), Refusal> {
        let text = |key: &str| self.body["metadata"][key].as_str().unwrap_or_default().to_owned();
        let (revision, more) = (text("resourceVersion"), text("continue"));
        match self.items {
            Some(items) if !revision.is_empty() && more.is_empty() => Ok((items, revision)),
            Some(_) | None => Err(Refusal::NoAnswer("the list is not whole".to_owned())),
        }
    }
}

/// Why there is no answer to use.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// A `Status`: it was not done.
    Status {
        code: u16,
        /// `Conflict`, `NotFound`, `AlreadyExists`, `Invalid`, …
        reason: String,
        message: String,
        /// `details.causes[].reason`, such as `NamespaceTerminating`.
        causes: Vec<String>,
        retry_after: Option<SignedDuration>,
    },
    /// It may have been done.
    NoAnswer(String),
}

/// What a watch tells of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A whole list: what is not in it is not there. Also after the watch was lost.
    Listed(Vec<Value>),
    /// Made or changed.
    Applied(Value),
    /// Gone. As it was last.
    Deleted(Value),
    /// Nothing new up to now.
    Current,
}
