//! How do calls travel, and what becomes of them on the way?

use jiff::SignedDuration;
use nodemolt_cluster::transport::{Answer, Refusal, Request, Resource, Verb};
use nodemolt_core::catalog::Outcome;
use nodemolt_engine::port::{CloudError, LaunchError};
use serde_json::{Value, json};

use super::{Event, World};
use crate::desk::{Call, CallId, Reply};
use crate::executor::ProcessId;
use crate::faults::{Counterpart, Moment};
use crate::replica::after;
use crate::trace::{Actor, Fact};

/// A call on its way to whom it is for.
#[derive(Debug)]
pub(super) struct Travelling {
    number: u8,
    process: ProcessId,
    call: Call,
}

/// An answer on its way back.
#[derive(Debug)]
pub(super) struct Coming {
    number: u8,
    process: ProcessId,
    wrote: bool,
    /// What was asked of EC2 or SSM, if that was a question.
    question: Option<String>,
    reply: Reply,
}

/// A client waits no longer than this for an answer.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// One way, in milliseconds: within a region, between a pod and an API server or an endpoint of AWS.
fn way(call: &Call) -> (i64, i64) {
    match call {
        Call::Kubernetes(_) => (1, 12),
        Call::Ask(_) | Call::Offered | Call::Network(_) | Call::Machines => (20, 200),
        Call::Prepare(_) | Call::Terminate(_) => (40, 300),
        Call::Launch(_) => (300, 2_000),
    }
}

/// What is asked, if it is a question that laws look at.
fn question(call: &Call) -> Option<String> {
    match call {
        Call::Ask(query) => Some(format!("{query:?}")),
        Call::Offered => Some("instance types".to_owned()),
        Call::Network(_) => Some("subnets and groups".to_owned()),
        Call::Machines => Some("machines".to_owned()),
        Call::Kubernetes(_) | Call::Prepare(_) | Call::Launch(_) | Call::Terminate(_) => None,
    }
}

fn complete(reply: &Reply) -> bool {
    match reply {
        Reply::Ask(seen) => seen.outcome == Outcome::Complete,
        Reply::Offered(answer) => answer.is_ok(),
        Reply::Network(answer) => answer.is_ok(),
        Reply::Machines(answer) => answer.is_ok(),
        Reply::Kubernetes(_) | Reply::Done(_) | Reply::Launch(_) | Reply::Lost(_) => false,
    }
}

impl World {
    pub(super) fn depart(&mut self, id: CallId, process: ProcessId, call: Call) {
        let now = self.now();
        let Some(number) = self.number_of(process) else { return };
        if call.writes() && self.strikes(number, Moment::BeforeSend) {
            return;
        }
        if self.weather.loses_request(&mut self.dice.weather) {
            let reply = Reply::Lost("no answer in time");
            let question = question(&call);
            self.coming.insert(id, Coming { number, process, wrote: false, question, reply });
            self.put(after(now, PATIENCE), Event::Returns(id));
            return;
        }
        let takes = self.takes(&call);
        self.travelling.insert(id, Travelling { number, process, call });
        self.put(after(now, takes), Event::Arrives(id));
    }

    /// A call that was sent is done, whatever has become of who sent it.
    pub(super) fn arrive(&mut self, id: CallId) {
        let Some(Travelling { number, process, call }) = self.travelling.remove(&id) else {
            return;
        };
        let now = self.now();
        let takes = self.takes(&call);
        let mut reply = self.answer(number, &call);
        let wrote = call.writes();
        if wrote && self.number_of(process).is_some() && self.strikes(number, Moment::AfterSend) {
            return;
        }
        let mut back = takes;
        if self.weather.loses_answer(&mut self.dice.weather) {
            reply = Reply::Lost("no answer in time");
            back = PATIENCE;
        } else if let Some(by) = self.weather.late_by(&mut self.dice.weather) {
            back += by;
            if back > PATIENCE {
                reply = Reply::Lost("no answer in time");
                back = PATIENCE;
            }
        }
        let question = question(&call);
        self.coming.insert(id, Coming { number, process, wrote, question, reply });
        self.put(after(now, back), Event::Returns(id));
    }

    pub(super) fn bring_back(&mut self, id: CallId) {
        let Some(Coming { number, process, wrote, question, reply }) = self.coming.remove(&id)
        else {
            return;
        };
        let Some(_) = self.number_of(process) else { return };
        if let Some(question) = question
            && self.desk.awaited(id)
        {
            let fact = Fact::Answered { question, complete: complete(&reply) };
            self.tell(Actor::Operator(number), fact);
        }
        if wrote && self.strikes(number, Moment::AfterAnswer) {
            return;
        }
        self.desk.answer(id, reply);
    }

    /// Whether a crash was waiting for this moment.
    fn strikes(&mut self, number: u8, moment: Moment) -> bool {
        let leads = self.leader() == Some(number);
        match self.weather.strikes(number, leads, moment) {
            Some(down) => {
                self.crash(number, down);
                true
            }
            None => false,
        }
    }

    fn number_of(&self, process: ProcessId) -> Option<u8> {
        let mut alive = self.replicas.iter().filter_map(|it| it.process.as_ref());
        alive.find(|it| it.id == process).map(|it| it.number)
    }

    fn takes(&mut self, call: &Call) -> SignedDuration {
        let (least, most) = way(call);
        let millis = SignedDuration::from_millis;
        self.dice.travel.span(millis(least), millis(most))
    }

    fn answer(&mut self, number: u8, call: &Call) -> Reply {
        let now = self.now();
        let by = Actor::Operator(number);
        let throttled = self.weather.throttles(Counterpart::Ec2);
        let wait = || CloudError::Throttled { retry_after: None };
        match call {
            Call::Kubernetes(request) => Reply::Kubernetes(self.answer_kubernetes(by, request)),
            Call::Ask(query) => Reply::Ask(Box::new(self.region.ask(query, now))),
            Call::Offered if throttled => Reply::Offered(Err(wait())),
            Call::Offered => Reply::Offered(Ok(Box::new(self.region.offered()))),
            Call::Network(_) if throttled => Reply::Network(Err(wait())),
            Call::Network(ask) => Reply::Network(Ok(self.region.network(ask))),
            Call::Machines if throttled => Reply::Machines(Err(wait())),
            Call::Machines => {
                Reply::Machines(Ok(self.region.machines(&self.simulation.cluster, now)))
            }
            Call::Prepare(_) | Call::Terminate(_) if throttled => Reply::Done(Err(wait())),
            Call::Prepare(template) => {
                self.region.prepare(template);
                Reply::Done(Ok(()))
            }
            Call::Terminate(machine) => {
                let due = self.region.terminate(by, &machine.0, now, &mut self.dice.region);
                self.put_region(due);
                Reply::Done(Ok(()))
            }
            Call::Launch(_) if throttled => {
                Reply::Launch(Err(LaunchError::Throttled { retry_after: None }))
            }
            Call::Launch(request) => {
                let (answer, due) = self.region.launch(by, request, now, &mut self.dice.region);
                self.put_region(due);
                Reply::Launch(answer)
            }
        }
    }

    fn answer_kubernetes(&mut self, by: Actor, request: &Request) -> Result<Answer, Refusal> {
        if self.weather.throttles(Counterpart::Kubernetes) {
            return Err(Refusal::Status {
                code: 429,
                reason: "TooManyRequests".to_owned(),
                message: "the server has received too many requests".to_owned(),
                causes: Vec::new(),
                retry_after: Some(SignedDuration::from_secs(1)),
            });
        }
        if matches!(request.verb, Verb::Replace | Verb::MergePatch)
            && let Some(name) = &request.name
            && self.weather.conflicts(&mut self.dice.weather)
        {
            // Somebody else has just touched it: nothing that matters, but the revision is another.
            let touch = json!({"metadata": {"annotations": {
                "example.com/touched": format!("{}", self.trace.len()),
            }}});
            let namespace = request.namespace.as_deref();
            // That it is not there is no wonder, and no conflict.
            let _ = self.patch(Actor::Fate, request.resource, namespace, name, touch);
        }
        self.kubernetes(by, request)
    }

    /// One request that does not travel.
    pub(super) fn kubernetes(&mut self, by: Actor, request: &Request) -> Result<Answer, Refusal> {
        let now = self.now();
        let mut kube = self.kube.borrow_mut();
        let answer = kube.server.handle(by, request, now);
        let due = kube.heard(now, &mut self.dice.kube);
        drop(kube);
        self.put_kube(due);
        answer
    }

    pub(super) fn patch(
        &mut self,
        by: Actor,
        resource: Resource,
        namespace: Option<&str>,
        name: &str,
        patch: Value,
    ) -> Result<Answer, Refusal> {
        let request = Request {
            verb: Verb::MergePatch,
            resource,
            subresource: None,
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            body: Some(patch),
        };
        self.kubernetes(by, &request)
    }
}
