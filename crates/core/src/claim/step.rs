//! Which step does a claim take?
//!
//! What was made is looked for before any deadline: a machine that came late has come. And whatever is
//! deleted goes in the order node, pods, machine, node's finalizer, claim's finalizer.

use jiff::{SignedDuration, Timestamp};
use nodemolt_fit::Quantity;

use super::{
    ATTEMPTS_MAX, About, Because, CORDONED_WITHIN, CallSeen, ClaimStep, Command, DRAIN_AT_LEAST,
    Gate, LISTS_APART, Lacks, MachineSeen, NODE_LOST_AFTER, NodesSeen, Phase, SHOWN_AFTER, Seen,
    Wait, forced_at, launched_at, ready_by,
};
use crate::replace::JOIN_DEADLINE;
use crate::seen::{
    Attempt, Claim, DISRUPTED_TAINT, MachineId, Node, Readiness, Stage, UNREGISTERED_TAINT,
};

pub fn next(claim: &Claim, seen: &Seen<'_>, now: Timestamp) -> ClaimStep {
    let view = View { claim, seen, now };
    match claim.deleting_since {
        Some(since) => view.deleted(since),
        None => view.living(),
    }
}

#[derive(Clone, Copy)]
struct View<'a> {
    claim: &'a Claim,
    seen: &'a Seen<'a>,
    now: Timestamp,
}

fn ask(phase: Phase, command: Command) -> ClaimStep {
    ClaimStep { phase, because: Because::Next, asks: Some(command) }
}

fn condemn(because: Because) -> ClaimStep {
    ClaimStep { phase: Phase::Condemned, because, asks: Some(Command::DeleteClaim) }
}

fn stay(phase: Phase, because: Because) -> ClaimStep {
    ClaimStep { phase, because, asks: None }
}

fn wait(phase: Phase, wait: Wait) -> ClaimStep {
    stay(phase, Because::WaitsFor(wait))
}

fn unknown(phase: Phase, about: About) -> ClaimStep {
    wait(phase, Wait::Answer { about })
}

fn not_known(phase: Phase, about: &str) -> ClaimStep {
    stay(phase, Because::NotKnown { about: about.to_owned() })
}

fn after(since: Timestamp, length: SignedDuration) -> Timestamp {
    since.saturating_add(length).unwrap_or(Timestamp::MAX)
}

impl<'a> View<'a> {
    fn living(self) -> ClaimStep {
        if let NodesSeen::One(node) = &self.seen.nodes
            && node.deleting_since.is_some()
            && self.claim.machine.is_some()
        {
            return condemn(Because::NodeDeleted);
        }
        match &self.claim.machine {
            None => self.unlaunched(),
            Some(_) => self.launched(),
        }
    }

    fn unlaunched(self) -> ClaimStep {
        let attempt = self.claim.attempt.as_ref();
        // Whatever has our UID on it is ours, from whichever attempt: never a second one beside it.
        if let MachineSeen::Live(machine) = &self.seen.machine {
            return ask(Phase::Asking, Command::Adopt { machine: machine.clone() });
        }
        match attempt {
            None => self.attempt(1),
            Some(Attempt { number, ended: Some(why), .. }) if *number >= ATTEMPTS_MAX => {
                let because = Because::GaveUp { attempts: *number, why: why.clone() };
                // Whoever made a successor is told, and removes it.
                let asks = (!self.seen.successor).then_some(Command::DeleteClaim);
                ClaimStep { phase: Phase::GaveUp, because, asks }
            }
            Some(Attempt { number, ended: Some(_), .. }) => {
                if matches!(self.seen.machine, MachineSeen::Ending(_)) {
                    return wait(Phase::Asked, Wait::Termination);
                }
                self.attempt(number.saturating_add(1))
            }
            Some(attempt) => self.unanswered(attempt),
        }
    }

    fn attempt(self, number: u32) -> ClaimStep {
        match &self.seen.call {
            CallSeen::Withheld(why) => stay(Phase::Asked, Because::Withheld { why: why.clone() }),
            CallSeen::Unknown { about } => not_known(Phase::Asked, about),
            // What was refused was an attempt before this one.
            CallSeen::Free | CallSeen::Refused { .. } => {
                ask(Phase::Asked, Command::Attempt { number })
            }
        }
    }

    /// An attempt is recorded, and nobody has written down what became of it.
    fn unanswered(self, attempt: &Attempt) -> ClaimStep {
        let number = attempt.number;
        match &self.seen.machine {
            MachineSeen::Ending(_) => return wait(Phase::Asking, Wait::Termination),
            MachineSeen::Gone => {
                let why = "its machine ended before it was written down".to_owned();
                return ask(Phase::Asking, Command::EndAttempt { number, why });
            }
            MachineSeen::Unknown | MachineSeen::Absent { .. } | MachineSeen::Live(_) => {}
        }
        let (why, since) = match &self.seen.call {
            CallSeen::Free => return ask(Phase::Asking, Command::Call { number }),
            CallSeen::Unknown { about } => return not_known(Phase::Asking, about),
            // The same attempt may have been called again at any time until it was withheld.
            CallSeen::Withheld(why) => match self.seen.withheld_since {
                Some(at) => (why.clone(), attempt.since.max(at)),
                None => return stay(Phase::Asking, Because::Unproved { why: why.clone() }),
            },
            CallSeen::Refused { why, at } => (why.clone(), attempt.since.max(*at)),
        };
        if self.absent_since(since) {
            return ask(Phase::Asking, Command::EndAttempt { number, why });
        }
        stay(Phase::Asking, Because::Unproved { why })
    }

    fn launched(self) -> ClaimStep {
        let phase = self.stage();
        if self.gone_under_us() {
            return condemn(Because::MachineGone);
        }
        if matches!(self.seen.machine, MachineSeen::Ending(_)) {
            return wait(phase, Wait::Termination);
        }
        match phase {
            Phase::Joining => self.joining(),
            Phase::Starting => self.starting(),
            Phase::Running
            | Phase::Asked
            | Phase::Asking
            | Phase::GaveUp
            | Phase::Condemned
            | Phase::Emptying
            | Phase::Ending
            | Phase::Parting => self.running(),
        }
    }

    fn stage(self) -> Phase {
        let stages = &self.claim.stages;
        match (stages.contains_key(&Stage::Registered), stages.contains_key(&Stage::Initialized)) {
            (false, _) => Phase::Joining,
            (true, false) => Phase::Starting,
            (true, true) => Phase::Running,
        }
    }

    /// By EC2's own word; or by two lists, unless a ready node says otherwise.
    fn gone_under_us(self) -> bool {
        match &self.seen.machine {
            MachineSeen::Gone => true,
            MachineSeen::Absent { .. } => {
                self.absent_since(launched_at(self.claim)) && !self.node_ready()
            }
            MachineSeen::Unknown | MachineSeen::Live(_) | MachineSeen::Ending(_) => false,
        }
    }

    fn absent_since(self, asked_for: Timestamp) -> bool {
        match self.seen.machine {
            MachineSeen::Absent { first, last } => {
                first >= after(asked_for, SHOWN_AFTER) && last >= after(first, LISTS_APART)
            }
            MachineSeen::Unknown
            | MachineSeen::Live(_)
            | MachineSeen::Ending(_)
            | MachineSeen::Gone => false,
        }
    }

    fn node_ready(self) -> bool {
        self.nodes().any(|it| it.ready == Readiness::Ready)
    }

    fn nodes(self) -> impl Iterator<Item = &'a Node> {
        let (one, several) = match &self.seen.nodes {
            NodesSeen::One(node) => (Some(*node), &[][..]),
            NodesSeen::Several(nodes) => (None, nodes.as_slice()),
            NodesSeen::Unknown | NodesSeen::None { .. } => (None, &[][..]),
        };
        one.into_iter().chain(several.iter().copied())
    }

    fn joining(self) -> ClaimStep {
        let waits = match &self.seen.nodes {
            NodesSeen::One(node) => {
                return ask(Phase::Joining, Command::Register { node: node.name.clone() });
            }
            NodesSeen::Unknown => return unknown(Phase::Joining, About::Nodes),
            NodesSeen::None { .. } => Wait::Node,
            NodesSeen::Several(nodes) => {
                Wait::SeveralNodes { nodes: nodes.iter().map(|it| it.name.clone()).collect() }
            }
        };
        let late = self.now > after(launched_at(self.claim), JOIN_DEADLINE);
        if !late || self.seen.successor {
            return wait(Phase::Joining, waits);
        }
        if self.seen.machine == MachineSeen::Unknown {
            return unknown(Phase::Joining, About::Machine);
        }
        condemn(Because::NeverJoined)
    }

    fn starting(self) -> ClaimStep {
        match &self.seen.nodes {
            NodesSeen::One(node) => match initialised(self.claim, node) {
                Ok(()) => ask(Phase::Starting, Command::Initialise { node: node.name.clone() }),
                Err(lacks) if self.given_up() => condemn(Because::NeverReady { lacks }),
                Err(lacks) => wait(Phase::Starting, Wait::Start { lacks }),
            },
            NodesSeen::Unknown | NodesSeen::None { .. } | NodesSeen::Several(_) => {
                self.without_its_node(Phase::Starting)
            }
        }
    }

    /// Whether it had its time to be set up, and nobody is on it: whoever was to run there gets another one. With pods it
    /// may be slow, and is somebody's.
    fn given_up(self) -> bool {
        let late = ready_by(self.claim).is_some_and(|it| self.now > it);
        late && !self.seen.successor
            && self.seen.machine != MachineSeen::Unknown
            && self.seen.pods_left == Some(0)
    }

    fn running(self) -> ClaimStep {
        match &self.seen.nodes {
            NodesSeen::One(_) => stay(Phase::Running, Because::AtRest),
            NodesSeen::Unknown | NodesSeen::None { .. } | NodesSeen::Several(_) => {
                self.without_its_node(Phase::Running)
            }
        }
    }

    /// It had a node. That it is missing is a suspicion: whoever deletes the claim for it asks the API
    /// server first, and pods that are bound to it by name speak against it.
    fn without_its_node(self, phase: Phase) -> ClaimStep {
        match &self.seen.nodes {
            NodesSeen::None { missing_since: Some(since) }
                if self.now >= after(*since, NODE_LOST_AFTER) =>
            {
                match self.seen.pods_left {
                    _ if self.seen.machine == MachineSeen::Unknown => {
                        unknown(phase, About::Machine)
                    }
                    Some(0) => condemn(Because::NodeMissing),
                    Some(pods) => wait(phase, Wait::PodsToLeave { pods }),
                    None => unknown(phase, About::Pods),
                }
            }
            NodesSeen::Several(nodes) => {
                let nodes = nodes.iter().map(|it| it.name.clone()).collect();
                wait(phase, Wait::SeveralNodes { nodes })
            }
            NodesSeen::Unknown | NodesSeen::None { .. } | NodesSeen::One(_) => {
                unknown(phase, About::Nodes)
            }
        }
    }

    fn deleted(self, since: Timestamp) -> ClaimStep {
        if !self.claim.held {
            return stay(Phase::Parting, Because::WaitsFor(Wait::Nothing));
        }
        match self.ended(since) {
            Ended::Yes => self.parting(),
            Ended::Unknown => unknown(Phase::Ending, About::Machine),
            Ended::Soon => wait(Phase::Ending, Wait::Termination),
            Ended::No(machine) => self.ending(machine, since),
        }
    }

    fn ended(self, deleted: Timestamp) -> Ended {
        let asked_for = match (&self.claim.machine, &self.claim.attempt) {
            (Some(_), _) => Some(launched_at(self.claim)),
            // The call may have been under way when the claim was deleted.
            (None, Some(attempt)) if attempt.ended.is_none() => Some(attempt.since.max(deleted)),
            (None, _) => None,
        };
        match &self.seen.machine {
            MachineSeen::Live(machine) => Ended::No(machine.clone()),
            MachineSeen::Ending(_) => Ended::Soon,
            MachineSeen::Gone => Ended::Yes,
            MachineSeen::Unknown => match asked_for {
                None => Ended::Yes,
                Some(_) => Ended::Unknown,
            },
            MachineSeen::Absent { .. } => match asked_for {
                None => Ended::Yes,
                Some(since) if self.absent_since(since) => match &self.claim.machine {
                    // Lists that lack it are wrong: its node says that it lives.
                    Some(machine) if self.node_ready() => Ended::No(machine.clone()),
                    Some(_) | None => Ended::Yes,
                },
                Some(_) => Ended::Unknown,
            },
        }
    }

    /// The machine is there: pods leave first, and then it goes.
    fn ending(self, machine: MachineId, since: Timestamp) -> ClaimStep {
        if matches!(self.seen.nodes, NodesSeen::Unknown) {
            return unknown(Phase::Emptying, About::Nodes);
        }
        if let Some(node) = self.nodes().find(|it| it.held && it.deleting_since.is_none()) {
            return ask(Phase::Emptying, delete(node));
        }
        if let Gate::Closed { budget } = &self.seen.gate {
            return wait(Phase::Emptying, Wait::Budget { budget: budget.clone() });
        }
        let terminate = ask(Phase::Ending, Command::Terminate { machine });
        if forced_at(self.claim, &self.seen.gate).is_some_and(|it| it <= self.now) {
            return terminate;
        }
        // A successor that nobody needs is empty: its own Replacement, if it gets one, need not hold this up. And a claim that
        // was deleted before it knew its node gets none: nobody would ever cordon that.
        let replaced = !self.seen.successor && self.claim.node.is_some();
        let cordon = replaced || self.now < after(since, CORDONED_WITHIN);
        if let Some(node) = self.nodes().find(|it| cordon && takes_pods(it)) {
            return wait(Phase::Emptying, Wait::Cordon { node: node.name.clone() });
        }
        match self.seen.pods_left {
            None => unknown(Phase::Emptying, About::Pods),
            Some(0) if self.now < after(since, DRAIN_AT_LEAST) => {
                wait(Phase::Emptying, Wait::PodsToLeave { pods: 0 })
            }
            Some(0) => terminate,
            Some(pods) => wait(Phase::Emptying, Wait::PodsToLeave { pods }),
        }
    }

    /// The machine is gone: nodes first, so that no claim goes before its node's finalizer.
    fn parting(self) -> ClaimStep {
        if matches!(self.seen.nodes, NodesSeen::Unknown) {
            return unknown(Phase::Parting, About::Nodes);
        }
        if let Some(node) = self.nodes().find(|it| it.deleting_since.is_none()) {
            return ask(Phase::Parting, delete(node));
        }
        if let Some(node) = self.nodes().find(|it| it.held) {
            let command = Command::ReleaseNode { node: node.name.clone(), uid: node.uid.clone() };
            return ask(Phase::Parting, command);
        }
        // Without its claim it would be a stranger's, and of several such nobody ends one without asking.
        if let Some(machine) = &self.seen.second {
            return wait(Phase::Parting, Wait::SecondMachine { machine: machine.clone() });
        }
        ask(Phase::Parting, Command::ReleaseClaim)
    }
}

enum Ended {
    Yes,
    No(MachineId),
    Soon,
    Unknown,
}

fn delete(node: &Node) -> Command {
    Command::DeleteNode { node: node.name.clone(), uid: node.uid.clone() }
}

/// Whether the scheduler may still send pods there. One that is not registered keeps them away itself.
fn takes_pods(node: &Node) -> bool {
    let keeps_away = |key: &str| key == DISRUPTED_TAINT || key == UNREGISTERED_TAINT;
    !node.fit.taints.iter().any(|it| keeps_away(&it.key) && it.effect.binding())
}

/// Whether a registered node is set up: ready, without taints that somebody will take away, and with
/// everything that its pods ask for.
pub fn initialised(claim: &Claim, node: &Node) -> Result<(), Lacks> {
    if node.ready != Readiness::Ready {
        return Err(Lacks::Readiness);
    }
    let startup = |key: &str, effect| {
        claim.startup_taints.iter().any(|it| it.key == key && it.effect == effect)
    };
    let passing = node.fit.taints.iter().find(|it| it.passing() || startup(&it.key, it.effect));
    if let Some(taint) = passing {
        return Err(Lacks::Taint(taint.key.clone()));
    }
    let offered =
        |name: &str| node.fit.allocatable.get(name).is_some_and(|it| *it > Quantity::ZERO);
    let asked = claim.requests.iter().filter(|(_, amount)| **amount > Quantity::ZERO);
    match asked.map(|(name, _)| name).find(|it| !offered(it)) {
        Some(name) => Err(Lacks::Resource(name.clone())),
        None => Ok(()),
    }
}
