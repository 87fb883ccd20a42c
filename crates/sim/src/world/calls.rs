//! How do calls travel, and what becomes of them on the way?

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::transport::{Answer, Refusal, Request, Resource, Subresource, Verb};
use nodemolt_core::catalog::Outcome;
use nodemolt_engine::port::{CloudError, LaunchError};
use serde_json::{Value, json};

use super::weather::Blow;
use super::{Event, World, tell};
use crate::desk::{Call, CallId, Reply};
use crate::executor::ProcessId;
use crate::faults::{Counterpart, Side, Writing};
use crate::kinds;
use crate::replica::after;
use crate::trace::{Actor, Fact};

/// A call on its way to whom it is for.
#[derive(Debug)]
pub(super) struct Travelling {
    number: u8,
    process: ProcessId,
    call: Call,
    /// It arrives so late that nobody waits for its answer any more.
    in_vain: bool,
    /// When it should have left and arrived, if it does so later.
    held_up_since: Option<Timestamp>,
}

/// An answer on its way back.
#[derive(Debug)]
pub(super) struct Coming {
    number: u8,
    process: ProcessId,
    wrote: Option<Writing>,
    /// What was asked of EC2 or SSM, if that was a question.
    question: Option<Asked>,
    /// Something is left out of it, which whoever asked cannot see.
    lacks: bool,
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

/// A question: what tells it from others, and what people read of it.
#[derive(Debug)]
struct Asked {
    question: String,
    about: String,
}

/// What is asked, if it is a question that laws look at.
fn question(call: &Call) -> Option<Asked> {
    let plain = |it: &str| Asked { question: it.to_owned(), about: it.to_owned() };
    match call {
        Call::Ask(query) => {
            Some(Asked { question: format!("{query:?}"), about: tell::about(query) })
        }
        Call::Offered => Some(plain("instance types")),
        Call::Network(_) => Some(plain("subnets and groups")),
        Call::Machines => Some(plain("machines")),
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
        // Who is frozen now has looked whether it may, and sends when it goes on.
        let leaves_at = match self.strikes(number, Side::BeforeSend, call.writing()) {
            Some(Blow::Crash(_)) => return,
            Some(Blow::Freeze(lasts)) => after(now, lasts),
            None => now,
        };
        let lost = || Reply::Lost("no answer in time");
        if self.weather.loses_request(&mut self.dice.weather) {
            let question = question(&call);
            self.coming.insert(
                id,
                Coming { number, process, wrote: None, question, lacks: false, reply: lost() },
            );
            self.put(after(leaves_at, PATIENCE), Event::Returns(id));
            return;
        }
        let takes = self.takes(&call);
        let late = self.weather.request_late_by(&mut self.dice.weather).unwrap_or_default();
        let in_vain = late >= PATIENCE;
        if in_vain {
            let question = question(&call);
            self.coming.insert(
                id,
                Coming { number, process, wrote: None, question, lacks: false, reply: lost() },
            );
            self.put(after(leaves_at, PATIENCE), Event::Returns(id));
        }
        let held_up_since = (leaves_at > now || late > SignedDuration::ZERO).then_some(now);
        let travelling = Travelling { number, process, call, in_vain, held_up_since };
        self.travelling.insert(id, travelling);
        self.put(after(leaves_at, takes + late), Event::Arrives(id));
    }

    /// A call that was sent is done, whatever has become of who sent it.
    pub(super) fn arrive(&mut self, id: CallId) {
        let Some(Travelling { number, process, call, in_vain, held_up_since }) =
            self.travelling.remove(&id)
        else {
            return;
        };
        let now = self.now();
        if let Some(since) = held_up_since.filter(|_| call.writing().is_some()) {
            self.tell(Actor::Operator(number), Fact::HeldUp { since });
        }
        let takes = self.takes(&call);
        let lacking = self.weather.lacking();
        let mut reply = self.answer(number, &call);
        let lacks = self.weather.lacking() < lacking;
        let wrote = call.writing();
        if in_vain {
            return;
        }
        if self.number_of(process).is_some()
            && let Some(Blow::Crash(_)) = self.strikes(number, Side::AfterSend, wrote)
        {
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
        self.coming.insert(id, Coming { number, process, wrote, question, lacks, reply });
        self.put(after(now, back), Event::Returns(id));
    }

    pub(super) fn bring_back(&mut self, id: CallId) {
        let Some(Coming { number, process, wrote, question, lacks, reply }) =
            self.coming.remove(&id)
        else {
            return;
        };
        let Some(_) = self.number_of(process) else { return };
        if let Some(Asked { question, about }) = question
            && self.desk.awaited(id)
        {
            let complete = complete(&reply) && !lacks;
            let fact = Fact::Answered { question, about, complete };
            self.tell(Actor::Operator(number), fact);
        }
        if let Some(Blow::Crash(_)) = self.strikes(number, Side::AfterAnswer, wrote) {
            return;
        }
        self.desk.answer(id, reply);
    }

    /// What was waiting for this moment, and has now happened.
    fn strikes(&mut self, number: u8, side: Side, wrote: Option<Writing>) -> Option<Blow> {
        let wrote = wrote?;
        let leads = self.leader() == Some(number);
        let blow = self.weather.strikes(number, leads, side, wrote)?;
        self.struck.faults += 1;
        *self.struck.writes.entry((wrote, side)).or_default() += 1;
        match blow {
            Blow::Crash(down) => self.crash(number, down),
            Blow::Freeze(lasts) => self.freeze(number, lasts),
        }
        Some(blow)
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
            Call::Ask(query) => {
                let mut seen = self.region.ask(query, now);
                seen.images.retain(|it| !self.weather.lacks(it.id.as_str()));
                Reply::Ask(Box::new(seen))
            }
            Call::Offered if throttled => Reply::Offered(Err(wait())),
            Call::Offered => Reply::Offered(Ok(Box::new(self.region.offered()))),
            Call::Network(_) if throttled => Reply::Network(Err(wait())),
            Call::Network(ask) => {
                let mut network = self.region.network(ask);
                network.subnets.retain(|it| !self.weather.lacks(&it.id));
                network.security_groups.retain(|id, _| !self.weather.lacks(id));
                Reply::Network(Ok(network))
            }
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
                self.region.twins = self.weather.makes_twins(&mut self.dice.weather);
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
                "example.com/touched": format!("{}", self.next_step()),
            }}});
            let namespace = request.namespace.as_deref();
            // That it is not there is no wonder, and no conflict.
            let _ = self.patch(Actor::Fate, request.resource, namespace, name, touch);
        }
        if request.subresource == Some(Subresource::Eviction) {
            let gives_up = self.weather.gives_up(&mut self.dice.weather);
            self.kube.borrow_mut().server.gives_up = gives_up;
        }
        let answer = self.kubernetes(by, request);
        if let Err(Refusal::Status { code: 409, message, .. }) = &answer
            && request.resource != kinds::LEASE
            && request.subresource != Some(Subresource::Eviction)
        {
            let name = request.name.as_deref().unwrap_or_default();
            let what = format!("{} {name}", request.resource.kind).trim_end().to_owned();
            self.tell(by, Fact::Refused { what, why: message.clone() });
        }
        answer
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
