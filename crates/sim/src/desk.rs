//! How do calls leave a process, and how do answers come back?
//!
//! A call is put on the desk; the world takes it from there, lets it travel, and puts the answer back when
//! it has arrived. Whoever gives up waiting takes the answer's place away, and the call travels on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use nodemolt_cluster::transport::{Answer, Refusal, Request, Transport, Verb};
use nodemolt_core::catalog::{Observation, Outcome, Query};
use nodemolt_core::launch::Template;
use nodemolt_core::seen::{CORDONED_BY_ANNOTATION, MachineId, NetworkAsk};
use nodemolt_engine::port::{
    Cloud, CloudError, LaunchError, LaunchRequest, Launched, Machine, Network, Offered,
};
use serde_json::Value;

use crate::executor::ProcessId;
use crate::faults::Writing;
use crate::kinds;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(u64);

#[derive(Debug, Clone)]
pub enum Call {
    Kubernetes(Box<Request>),
    Ask(Box<Query>),
    Offered,
    Network(NetworkAsk),
    Prepare(Box<Template>),
    Launch(Box<LaunchRequest>),
    Machines,
    Terminate(MachineId),
}

impl Call {
    /// What it writes, if it writes. What merely asks can be asked again, and the lease is renewed apart.
    pub fn writing(&self) -> Option<Writing> {
        match self {
            Self::Kubernetes(request) => match request.verb {
                Verb::Get | Verb::List => None,
                Verb::Create | Verb::Replace | Verb::MergePatch | Verb::Delete => written(request),
            },
            Self::Prepare(_) => Some(Writing::Template),
            Self::Launch(_) => Some(Writing::Launch),
            Self::Terminate(_) => Some(Writing::Terminate),
            Self::Ask(_) | Self::Offered | Self::Network(_) | Self::Machines => None,
        }
    }
}

fn written(request: &Request) -> Option<Writing> {
    let taints = || request.body.as_ref().is_some_and(cordons);
    Some(match request.resource {
        kinds::LEASE => return None,
        kinds::LEDGER => Writing::Ledger,
        kinds::REPLACEMENT => Writing::Record,
        kinds::CLAIM => Writing::Claim,
        kinds::POD => Writing::Evict,
        kinds::NODE if taints() => Writing::Cordon,
        kinds::NODE => Writing::Node,
        kinds::IMAGE => Writing::Image,
        _ => Writing::Status,
    })
}

/// Whether a patch of a node closes or opens it: only then the name of a record is written or taken off.
fn cordons(patch: &Value) -> bool {
    patch["metadata"]["annotations"].get(CORDONED_BY_ANNOTATION).is_some()
}

#[derive(Debug, Clone)]
pub enum Reply {
    Kubernetes(Result<Answer, Refusal>),
    Ask(Box<Observation>),
    Offered(Result<Box<Offered>, CloudError>),
    Network(Result<Network, CloudError>),
    Done(Result<(), CloudError>),
    Launch(Result<Launched, LaunchError>),
    Machines(Result<Vec<Machine>, CloudError>),
    /// None came in time.
    Lost(&'static str),
}

/// Where calls lie until they travel. A clone is the same desk.
#[derive(Debug, Clone, Default)]
pub struct Desk(Rc<RefCell<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    sent: Vec<(CallId, ProcessId, Call)>,
    waiting: BTreeMap<CallId, Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    reply: Option<Reply>,
    waker: Option<Waker>,
}

impl Desk {
    /// What was put there since it was last asked.
    pub fn take(&self) -> Vec<(CallId, ProcessId, Call)> {
        std::mem::take(&mut self.0.borrow_mut().sent)
    }

    /// False if nobody waits for it any more.
    pub fn answer(&self, call: CallId, reply: Reply) -> bool {
        let mut inner = self.0.borrow_mut();
        let Some(slot) = inner.waiting.get_mut(&call) else { return false };
        slot.reply = Some(reply);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        true
    }

    pub fn awaited(&self, call: CallId) -> bool {
        self.0.borrow().waiting.contains_key(&call)
    }

    fn send(&self, process: ProcessId, call: Call) -> Waiting {
        let mut inner = self.0.borrow_mut();
        inner.next += 1;
        let id = CallId(inner.next);
        inner.waiting.insert(id, Slot::default());
        inner.sent.push((id, process, call));
        Waiting { desk: self.clone(), call: id }
    }
}

struct Waiting {
    desk: Desk,
    call: CallId,
}

impl Future for Waiting {
    type Output = Reply;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reply> {
        let mut inner = self.desk.0.borrow_mut();
        let Some(slot) = inner.waiting.get_mut(&self.call) else { return Poll::Pending };
        if let Some(reply) = slot.reply.take() {
            return Poll::Ready(reply);
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.desk.0.borrow_mut().waiting.remove(&self.call);
    }
}

/// A process's way out, to Kubernetes and to AWS.
#[derive(Debug, Clone)]
pub struct Wire {
    pub desk: Desk,
    pub process: ProcessId,
}

/// The world answers each call in its own kind; this is for the compiler.
const ANOTHER_KIND: &str = "the answer was of another kind";

impl Transport for Wire {
    async fn send(&self, request: &Request) -> Result<Answer, Refusal> {
        let call = Call::Kubernetes(Box::new(request.clone()));
        let reply = self.desk.send(self.process, call).await;
        if let Reply::Kubernetes(answer) = reply {
            answer
        } else {
            Err(Refusal::NoAnswer(why_none(&reply).to_owned()))
        }
    }
}

fn why_none(reply: &Reply) -> &'static str {
    if let Reply::Lost(why) = reply { why } else { ANOTHER_KIND }
}

fn unreachable_cloud<T>(reply: &Reply) -> Result<T, CloudError> {
    Err(CloudError::Unreachable(why_none(reply).to_owned()))
}

impl Cloud for Wire {
    async fn ask(&self, query: &Query) -> Observation {
        let call = Call::Ask(Box::new(query.clone()));
        if let Reply::Ask(seen) = self.desk.send(self.process, call).await {
            return *seen;
        }
        Observation {
            asked: query.clone(),
            outcome: Outcome::Failed,
            seen_at: None,
            account: None,
            images: Vec::new(),
            parameters: Vec::new(),
        }
    }

    async fn offered(&self) -> Result<Offered, CloudError> {
        let reply = self.desk.send(self.process, Call::Offered).await;
        if let Reply::Offered(answer) = reply {
            answer.map(|it| *it)
        } else {
            unreachable_cloud(&reply)
        }
    }

    async fn network(&self, ask: &NetworkAsk) -> Result<Network, CloudError> {
        let reply = self.desk.send(self.process, Call::Network(ask.clone())).await;
        if let Reply::Network(answer) = reply { answer } else { unreachable_cloud(&reply) }
    }

    async fn prepare(&self, template: &Template) -> Result<(), CloudError> {
        let reply = self.desk.send(self.process, Call::Prepare(Box::new(template.clone()))).await;
        if let Reply::Done(answer) = reply { answer } else { unreachable_cloud(&reply) }
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, LaunchError> {
        let call = Call::Launch(Box::new(request.clone()));
        let reply = self.desk.send(self.process, call).await;
        if let Reply::Launch(answer) = reply {
            answer
        } else {
            Err(LaunchError::Unanswered(why_none(&reply).to_owned()))
        }
    }

    async fn machines(&self) -> Result<Vec<Machine>, CloudError> {
        let reply = self.desk.send(self.process, Call::Machines).await;
        if let Reply::Machines(answer) = reply { answer } else { unreachable_cloud(&reply) }
    }

    async fn terminate(&self, machine: &MachineId) -> Result<(), CloudError> {
        let reply = self.desk.send(self.process, Call::Terminate(machine.clone())).await;
        if let Reply::Done(answer) = reply { answer } else { unreachable_cloud(&reply) }
    }
}
