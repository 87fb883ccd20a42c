//! How does a request reach a real API server, and how do we hear of changes?
//!
//! By kube-rs, without its layer that tries again: a 429 of the eviction API is an answer, and what is
//! tried again behind our back may come after a halt. Objects stay JSON: one that our types cannot read
//! must not end a watch.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use http::{Method, header};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use kube::core::{Status, WatchEvent};
use kube::{Client, Config};
use nodemolt_core::lookup::Minor;
use serde_json::Value;

use crate::resources::KARPENTER_CLASS;
use crate::transport::{Answer, Heard, Refusal, Request, Resource, Subresource, Transport, Verb};

/// An answer that takes longer is a lost one.
const DEADLINE: Duration = Duration::from_secs(10);
/// A list of a large cluster takes longer.
const LIST_DEADLINE: Duration = Duration::from_mins(1);
/// Of a pod that no budget holds the server tries a conflict twenty times, every half a second, before it
/// says that the UID is another's.
const EVICTION_DEADLINE: Duration = Duration::from_secs(20);
/// After so long the server ends a watch, and we begin another where it ended.
const WATCH_SECONDS: u32 = 290;
/// The first wait after something went wrong; it doubles.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// One API server, over the network.
#[derive(Clone)]
pub struct Live {
    client: Client,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Live").finish_non_exhaustive()
    }
}

/// A watch ended.
enum Ended {
    /// Go on from this revision.
    At(String),
    /// What happened since is not known any more, and everything has to be listed again.
    Lost,
}

impl Live {
    /// For the runtime that this is called in.
    pub fn connect(mut config: Config) -> Result<Self, kube::Error> {
        // Two providers in one program would leave rustls without a default. An error says that there is
        // one already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        config.default_retry = false;
        Client::try_from(config).map(|client| Self { client })
    }

    /// The API server's version.
    pub async fn kubernetes(&self) -> Result<Minor, Refusal> {
        let request = http::Request::get("/version").body(Vec::new()).map_err(no_answer)?;
        let said: Value = self.client.request(request).await.map_err(no_answer)?;
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        format!("{}.{}", text("major"), text("minor")).parse().map_err(no_answer)
    }

    /// Tells what happens to a kind, from now on and for as long as it is polled.
    pub async fn watch(&self, resource: Resource, mut tell: impl FnMut(Heard)) {
        let mut pause = PAUSE;
        loop {
            match self.list(resource).await {
                Ok((objects, revision)) => {
                    pause = PAUSE;
                    tell(Heard::Listed(objects));
                    self.follow(resource, revision, &mut tell).await;
                }
                // Where Karpenter's class is not installed there is none. Of everything else that would be
                // a strange thing to conclude.
                Err(Refusal::Status { code: 404, .. }) if resource == KARPENTER_CLASS => {
                    tell(Heard::Listed(Vec::new()));
                    tokio::time::sleep(PAUSE_MAX).await;
                }
                Err(_) => {
                    tokio::time::sleep(pause).await;
                    pause = PAUSE_MAX.min(pause * 2);
                }
            }
        }
    }

    /// Until everything has to be listed again.
    async fn follow(&self, resource: Resource, from: String, tell: &mut impl FnMut(Heard)) {
        let mut from = from;
        let mut failures = 0_u32;
        loop {
            match self.watch_once(resource, &from, tell).await {
                Ok(Ended::At(revision)) => {
                    failures = 0;
                    from = revision;
                }
                Ok(Ended::Lost) => return,
                // Perhaps it is the revision that it does not like: then it is listed again.
                Err(_) if failures >= 3 => return,
                Err(_) => {
                    failures += 1;
                    tokio::time::sleep(PAUSE * failures).await;
                }
            }
        }
    }

    async fn watch_once(
        &self,
        resource: Resource,
        from: &str,
        tell: &mut impl FnMut(Heard),
    ) -> Result<Ended, kube::Error> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={from}&timeoutSeconds={WATCH_SECONDS}",
            path(resource, None)
        );
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let opened = self.client.request_events::<Value>(request).await;
        let events = match opened {
            Err(kube::Error::Api(status)) if status.code == 410 => return Ok(Ended::Lost),
            opened => opened?,
        };
        let mut events = pin!(events);
        let mut at = from.to_owned();
        // The server ends it in time; a connection that says nothing for longer is dead.
        let patience = Duration::from_secs(u64::from(WATCH_SECONDS) + 30);
        while let Ok(event) = tokio::time::timeout(patience, events.try_next()).await {
            match event {
                Ok(None) => break,
                Ok(Some(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    at = revision(&object);
                    tell(Heard::Applied(object));
                }
                Ok(Some(WatchEvent::Deleted(object))) => {
                    at = revision(&object);
                    tell(Heard::Deleted(object));
                }
                Ok(Some(WatchEvent::Bookmark(bookmark))) => {
                    at = bookmark.metadata.resource_version;
                    tell(Heard::Current);
                }
                Ok(Some(WatchEvent::Error(status))) if status.code == 410 => {
                    return Ok(Ended::Lost);
                }
                Err(kube::Error::Api(status)) if status.code == 410 => return Ok(Ended::Lost),
                Ok(Some(WatchEvent::Error(status))) => return Err(kube::Error::Api(status)),
                Err(error) => return Err(error),
            }
        }
        Ok(Ended::At(at))
    }

    async fn list(&self, resource: Resource) -> Result<(Vec<Value>, String), Refusal> {
        let request = Request::of(Verb::List, resource);
        let answer = self.send(&request).await?;
        let items = answer.items.into_iter().map(Rc::unwrap_or_clone).collect();
        Ok((items, revision(&answer.body)))
    }

    async fn ask(&self, request: &Request) -> Result<Answer, Refusal> {
        let method = match request.verb {
            Verb::Get | Verb::List => Method::GET,
            Verb::Create => Method::POST,
            Verb::Replace => Method::PUT,
            Verb::MergePatch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let content = match request.verb {
            Verb::MergePatch => "application/merge-patch+json",
            Verb::Get | Verb::List | Verb::Create | Verb::Replace | Verb::Delete => {
                "application/json"
            }
        };
        let mut path = path(request.resource, request.namespace.as_deref());
        for part in [
            request.name.as_deref(),
            request.subresource.map(|it| match it {
                Subresource::Status => "status",
                Subresource::Eviction => "eviction",
            }),
        ]
        .into_iter()
        .flatten()
        {
            path.push('/');
            path.push_str(part);
        }
        let body = request.body.as_ref().map(Value::to_string).unwrap_or_default();
        let sent = http::Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content)
            .header(header::ACCEPT, "application/json")
            .body(Body::from(body.into_bytes()))
            .map_err(no_answer)?;
        let answer = self.client.send(sent).await.map_err(no_answer)?;
        let code = answer.status().as_u16();
        let said = |name| answer.headers().get(name).and_then(|it| it.to_str().ok());
        let date = said(header::DATE).and_then(read_date);
        let asked_to_wait = said(header::RETRY_AFTER).and_then(|it| it.parse::<i64>().ok());
        let bytes = answer.into_body().collect_bytes().await.map_err(no_answer)?;
        if (200..300).contains(&code) {
            // What is no JSON was cut off on its way: it may have been done.
            let body = serde_json::from_slice(&bytes).map_err(no_answer)?;
            return Ok(Answer::new(code, body, date));
        }
        Err(refusal(code, &bytes, asked_to_wait))
    }
}

impl Transport for Live {
    async fn send(&self, request: &Request) -> Result<Answer, Refusal> {
        let patience = match (request.verb, request.subresource) {
            (Verb::List, _) => LIST_DEADLINE,
            (_, Some(Subresource::Eviction)) => EVICTION_DEADLINE,
            (Verb::Get | Verb::Create | Verb::Replace | Verb::MergePatch | Verb::Delete, _) => {
                DEADLINE
            }
        };
        match tokio::time::timeout(patience, self.ask(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(Refusal::NoAnswer(format!("none within {} s", patience.as_secs()))),
        }
    }
}

fn refusal(code: u16, bytes: &[u8], asked_to_wait: Option<i64>) -> Refusal {
    let status: Status = serde_json::from_slice(bytes).unwrap_or_default();
    let details = status.details.as_ref();
    let causes = details.map(|it| it.causes.iter().map(|it| it.reason.clone()).collect());
    let seconds = details.map(|it| i64::from(it.retry_after_seconds)).filter(|it| *it > 0);
    let message = if status.message.is_empty() {
        String::from_utf8_lossy(bytes).trim().to_owned()
    } else {
        status.message.clone()
    };
    Refusal::Status {
        code,
        reason: status.reason.clone(),
        message,
        causes: causes.unwrap_or_default(),
        retry_after: asked_to_wait.filter(|it| *it > 0).or(seconds).map(SignedDuration::from_secs),
    }
}

fn no_answer(error: impl std::error::Error) -> Refusal {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told.push_str(": ");
        told.push_str(&error.to_string());
        cause = error.source();
    }
    Refusal::NoAnswer(told)
}

/// `Mon, 16 Nov 2026 06:15:00 GMT`.
fn read_date(text: &str) -> Option<Timestamp> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_timestamp(text).ok()
}

fn revision(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}

fn path(resource: Resource, namespace: Option<&str>) -> String {
    let Resource { group, version, plural, .. } = resource;
    let root = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{LEASE, NODE, POD};

    #[test]
    fn paths_are_those_of_kubernetes() {
        assert_eq!(path(NODE, None), "/api/v1/nodes");
        assert_eq!(path(POD, Some("default")), "/api/v1/namespaces/default/pods");
        assert_eq!(
            path(LEASE, Some("kube-system")),
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        );
    }

    #[test]
    fn a_date_of_http_is_read() {
        let read = read_date("Mon, 16 Nov 2026 06:15:00 GMT");
        assert_eq!(read, "2026-11-16T06:15:00Z".parse().ok());
        assert_eq!(read_date("yesterday"), None);
    }

    #[test]
    fn a_refusal_without_a_status_is_told_in_its_own_words() {
        let Refusal::Status { code, message, retry_after, .. } =
            refusal(502, b"bad gateway\n", Some(1))
        else {
            panic!("it was answered")
        };
        assert_eq!((code, message.as_str()), (502, "bad gateway"));
        assert_eq!(retry_after, Some(SignedDuration::from_secs(1)));
    }
}
