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
/// A watch that is over sooner, and told nothing, has failed without saying so.
const QUIET_MIN: Duration = Duration::from_secs(10);
/// A watch that fails so often in a row may be at a revision that the server does not like.
const FAILURES_MAX: u32 = 3;

/// One API server, over the network.
#[derive(Clone)]
pub struct Live {
    client: Client,
    /// See [`PAUSE`].
    pause: Duration,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Live").finish_non_exhaustive()
    }
}

/// A watch ended.
enum Ended {
    /// By itself, as every watch does: another goes on where it was.
    Over,
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
        Client::try_from(config).map(|client| Self { client, pause: PAUSE })
    }

    /// The API server's version.
    pub async fn kubernetes(&self) -> Result<Minor, Refusal> {
        let request = http::Request::get("/version").body(Vec::new()).map_err(no_answer)?;
        let said: Value = self.client.request(request).await.map_err(no_answer)?;
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        format!("{}.{}", text("major"), text("minor")).parse().map_err(no_answer)
    }

    /// Tells what happens to a kind, from now on and for as long as it is polled.
    ///
    /// ```text
    /// list ──whole──▶ follow ──410, or it fails again and again──▶ list
    ///  └─ not answered, or not whole: nothing is told, and it is asked again
    /// ```
    ///
    /// That something is gone is told by a `DELETED` or by a whole list, and by nothing else: not by a watch
    /// that was lost, and not by a list that failed after it.
    pub async fn watch(&self, resource: Resource, mut tell: impl FnMut(Heard)) {
        let mut pause = self.pause;
        loop {
            match self.list(resource).await {
                Ok((objects, revision)) => {
                    tell(Heard::Listed(objects));
                    if self.follow(resource, revision, &mut tell).await {
                        pause = self.pause;
                    }
                }
                // Where Karpenter's class is not installed there is none. Of everything else that would be
                // a strange thing to conclude.
                Err(Refusal::Status { code: 404, .. }) if resource == KARPENTER_CLASS => {
                    tell(Heard::Listed(Vec::new()));
                    pause = PAUSE_MAX;
                }
                Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = PAUSE_MAX.min(pause * 2);
        }
    }

    /// Until everything has to be listed again. Whether anything was heard.
    async fn follow(&self, resource: Resource, from: String, tell: &mut impl FnMut(Heard)) -> bool {
        let (mut at, mut heard, mut failures) = (from, false, 0_u32);
        loop {
            let (before, since) = (at.clone(), tokio::time::Instant::now());
            let ended = self.watch_once(resource, &mut at, tell).await;
            if at != before {
                (heard, failures) = (true, 0);
            }
            match ended {
                Ok(Ended::Lost) => return heard,
                Ok(Ended::Over) if at != before || since.elapsed() >= QUIET_MIN => failures = 0,
                Ok(Ended::Over) | Err(_) if failures >= FAILURES_MAX => return heard,
                Ok(Ended::Over) | Err(_) => {
                    failures += 1;
                    tokio::time::sleep(self.pause * failures).await;
                }
            }
        }
    }

    /// `at` goes on with everything that is told, also where the watch fails later: what is told twice
    /// would show the kind as it was before.
    async fn watch_once(
        &self,
        resource: Resource,
        at: &mut String,
        tell: &mut impl FnMut(Heard),
    ) -> Result<Ended, kube::Error> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={at}&timeoutSeconds={WATCH_SECONDS}",
            path(resource, None)
        );
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        let opened = self.client.request_events::<Value>(request).await;
        let events = match opened {
            Err(kube::Error::Api(status)) if status.code == 410 => return Ok(Ended::Lost),
            opened => opened?,
        };
        let mut events = pin!(events);
        // The server ends it in time; a connection that says nothing for longer is dead.
        let patience = Duration::from_secs(u64::from(WATCH_SECONDS) + 30);
        while let Ok(event) = tokio::time::timeout(patience, events.try_next()).await {
            let (revision, heard) = match event {
                Ok(None) => break,
                Ok(Some(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    (revision(&object), Heard::Applied(object))
                }
                Ok(Some(WatchEvent::Deleted(object))) => {
                    (revision(&object), Heard::Deleted(object))
                }
                Ok(Some(WatchEvent::Bookmark(bookmark))) => {
                    (bookmark.metadata.resource_version, Heard::Current)
                }
                Ok(Some(WatchEvent::Error(status))) if status.code == 410 => {
                    return Ok(Ended::Lost);
                }
                Err(kube::Error::Api(status)) if status.code == 410 => return Ok(Ended::Lost),
                Ok(Some(WatchEvent::Error(status))) => return Err(kube::Error::Api(status)),
                Err(error) => return Err(error),
            };
            if !revision.is_empty() {
                *at = revision;
            }
            tell(heard);
        }
        Ok(Ended::Over)
    }

    async fn list(&self, resource: Resource) -> Result<(Vec<Value>, String), Refusal> {
        let answer = self.send(&Request::of(Verb::List, resource)).await?;
        let (items, revision) = answer.whole_list()?;
        Ok((items.into_iter().map(Rc::unwrap_or_clone).collect(), revision))
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
        let mut body = request.body.as_ref().map(Value::to_string).unwrap_or_default();
        if request.verb == Verb::List {
            body.clear();
            let selector = request.body.as_ref().and_then(|it| it["fieldSelector"].as_str());
            if let Some(selector) = selector {
                // Names of nodes need no escape: they are DNS names.
                path.push_str("?fieldSelector=");
                path.push_str(&selector.replace('=', "%3D"));
            }
        }
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
mod tests;
