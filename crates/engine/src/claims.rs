//! Which machines are asked for, joined, ended?
//!
//! `view × what is known of EC2 × now → acts on claims`, and hands that perform them
//!
//! A claim is the only launch intent. Whoever makes one (a Replacement, a person, provisioning) makes a
//! machine: from here on all go the same way, which [`nodemolt_core::claim`] draws. What is decided here is
//! what a step says in detail: which machines to choose from, what the node is told, what is written.
//!
//! How it is used: [`Memory::look`] once in a turn, then [`decide`]; each of its acts goes to [`perform`],
//! one at a time for each [`ClaimAct::key`]; what came of it goes to [`Memory::learn`].
//!
//! Nobody is drained here. A claim that waits for [`Wait::Cordon`](nodemolt_core::claim::Wait) or for pods to
//! leave was deleted, by whomever, and needs a Replacement of its own that drains it; one that was a
//! successor, and has pods by now, needs one too.

mod act;
mod memory;
mod look;
mod loud;
mod choose;
mod request;
mod state;
mod orphans;
mod perform;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_core::bootstrap;
use nodemolt_core::claim::{self, Because, CallSeen, ClaimStep, Command, Phase};
use nodemolt_core::drift::restamps;
use nodemolt_core::seen::{Claim, ClassKey, MachineId, OWN_CLASS_GROUP, Stage, View};
use nodemolt_core::wanted::{Purpose, Wanted};
use nodemolt_fit::label;

pub use act::{ClaimAct, ClaimDone, Deed, Launch, OfType, Rules, token};
pub use choose::{CHOICES_MAX, TYPES_MAX};
pub(crate) use look::{gate, left_over, nodes_of, own_name, parted};
pub use look::{old_seen, pods_of, successor_seen};
pub(crate) use loud::Loud;
pub use memory::{MARKED_FOR, Mark, Memory};
pub use orphans::{ORPHAN_AGE, Orphans};
pub use perform::perform;
pub(crate) use request::launches_nothing;
pub use state::{CLAIM_TAG, CLAIM_UID_TAG, INITIALIZED_LABEL, REGISTERED_LABEL};

use crate::Config;
use crate::port::{Machine, Network, Object, Offered};
use look::Eyes;
use orphans::AT_ONCE_PERCENT;

/// A complete list of machines, and when it was asked for.
pub type Listed<'a> = (&'a BTreeMap<MachineId, Arc<Machine>>, Timestamp);

/// What is known beside the view. What is `None` or missing was not found out.
#[derive(Debug, Clone)]
pub struct Known<'a> {
    pub here: &'a Here,
    pub offered: Option<&'a Offered>,
    pub networks: BTreeMap<ClassKey, &'a Network>,
    /// The last one.
    pub machines: Option<Listed<'a>>,
    /// One before it, at least [`claim::LISTS_APART`] older: else nothing is proved by the two.
    pub machines_before: Option<Listed<'a>>,
    /// By class, pool and what a node is for. From this very view: its rules are what the hands compare
    /// with right before a call.
    pub wanted: BTreeMap<(ClassKey, String, Purpose), &'a Wanted>,
    /// Replacements that have not ended, by name, and what their successors are for.
    pub open: BTreeMap<String, Purpose>,
    /// Claims that those count on in their present try, by name.
    pub counted_on: BTreeSet<String>,
    /// By the claim's UID: how many pods end with the machine and may not end now.
    pub lingering: BTreeMap<String, usize>,
    /// By the claim's UID: since when its node may be disturbed.
    pub granted: BTreeMap<String, Timestamp>,
    pub memory: &'a Memory,
}

impl<'a> Known<'a> {
    /// What a claim should run. `None`: nobody could tell yet.
    fn wanted(&self, claim: &Claim) -> Option<&'a Wanted> {
        let open = claim.successor_of.as_ref().and_then(|it| self.open.get(it));
        let purpose = open.copied().unwrap_or(Purpose::Other);
        let pool = claim.pool.clone().unwrap_or_default();
        self.wanted.get(&(claim.class.clone(), pool, purpose)).copied()
    }
}

/// What is the same for every machine that is launched here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    pub cluster: bootstrap::Cluster,
    pub region: String,
    /// By role: the instance profile that was made for it. A role that is not listed has one of its own
    /// name, as the console makes it.
    pub profiles: BTreeMap<String, String>,
    /// Of classes that are ours to launch, beside our own: `karpenter.k8s.aws` where no Karpenter runs.
    pub groups: Vec<String>,
}

impl Here {
    pub fn of(config: &Config) -> Self {
        Self {
            cluster: config.cluster.clone(),
            region: config.region.clone(),
            profiles: BTreeMap::new(),
            groups: config.groups.iter().cloned().collect(),
        }
    }

    pub fn owns(&self, class: &ClassKey) -> bool {
        class.group == OWN_CLASS_GROUP || self.groups.contains(&class.group)
    }

    /// Whether a claim's machine is ours to ask for and to end: by its class, or because it was we who asked.
    pub(crate) fn owns_claim(&self, claim: &Claim) -> bool {
        self.owns(&claim.class) || claim.attempt.is_some()
    }

    /// Whether this label of a node names a class of ours.
    fn names_class(&self, key: &str) -> bool {
        let group = key.strip_suffix("/ec2nodeclass").unwrap_or_default();
        group == OWN_CLASS_GROUP || self.groups.iter().any(|it| it == group)
    }
}

/// What is to be done about claims now.
#[derive(Debug, Default)]
pub struct Decided {
    pub acts: Vec<ClaimAct>,
    /// By the claim's name: where it is. Without those at rest.
    pub steps: BTreeMap<String, ClaimStep>,
    pub orphans: Orphans,
    /// By the claim's UID: the recorded attempt whose call is withheld now. For [`Memory::withhold`].
    pub withheld: BTreeMap<String, u32>,
    /// By the claim's UID: those of which an attempt has ended, and of whose choices none is left to try now.
    pub nowhere: BTreeSet<String>,
    /// By claim: its node, which is missing. There are too many at once for that to be believed, so a
    /// person has to look.
    pub missing: BTreeMap<String, String>,
    /// When something is due that nobody will tell us.
    pub wake_at: Option<Timestamp>,
}

impl Decided {
    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |it| it.min(at)));
    }
}

pub fn decide(view: &View, known: &Known<'_>, now: Timestamp) -> Decided {
    decide_loud(view, known, &mut Loud::default(), now)
}

/// The same for whoever remembers which claims are at rest.
pub(crate) fn decide_loud(
    view: &View,
    known: &Known<'_>,
    loud: &mut Loud,
    now: Timestamp,
) -> Decided {
    let eyes = Eyes::new(view, known);
    let rules = Arc::new(Rules::of(view));
    let turn = Turn { view, known, eyes: &eyes, rules: &rules, now };
    let mut decided = Decided::default();
    let mut stay = BTreeSet::new();
    for (name, claim) in loud.claims(view) {
        if !known.here.owns_claim(claim) || !turn.decide_one(claim, &mut decided) {
            stay.insert(name.clone());
        }
    }
    loud.stay(stay);
    doubt_missing(view, &mut decided);
    decided.orphans = orphans::find(view, known, &eyes, loud, now);
    decided.acts.extend(decided.orphans.acts.iter().cloned());
    decided
}

/// A node that is missing was deleted past its finalizer, which people do to one at a time. Many at once
/// are a list that is not whole, or a cluster that was restored.
fn doubt_missing(view: &View, decided: &mut Decided) {
    let missing = |it: &ClaimAct| match &it.deed {
        Deed::DeleteClaim { missing: Some(node), .. } => Some((it.key.clone(), node.clone())),
        Deed::DeleteClaim { missing: None, .. }
        | Deed::Launch(_)
        | Deed::EndAttempt { .. }
        | Deed::Write { .. }
        | Deed::Tell { .. }
        | Deed::Register { .. }
        | Deed::DeleteNode { .. }
        | Deed::Terminate { .. }
        | Deed::RemoveOrphan { .. }
        | Deed::ReleaseNode { .. }
        | Deed::ReleaseClaim { .. } => None,
    };
    let there = view.claims.len();
    let doubted: BTreeMap<String, String> = decided.acts.iter().filter_map(missing).collect();
    let found = doubted.len();
    if found > (there.saturating_mul(AT_ONCE_PERCENT) / 100).max(1) || (found == there && found > 1)
    {
        decided.acts.retain(|it| missing(it).is_none());
        decided.missing = doubted;
    }
}

struct Turn<'a> {
    view: &'a View,
    known: &'a Known<'a>,
    eyes: &'a Eyes<'a>,
    rules: &'a Arc<Rules>,
    now: Timestamp,
}

impl Turn<'_> {
    /// Whether it is at rest until something changes.
    fn decide_one(&self, claim: &Claim, decided: &mut Decided) -> bool {
        let mut seen = self.eyes.seen(claim, self.now);
        let mut step = claim::next(claim, &seen, self.now);
        let mut deed = None;
        match &step.asks {
            None => {}
            Some(command @ (Command::Attempt { .. } | Command::Call { .. })) => {
                match self.launch(claim, command) {
                    Ok(launch) => deed = Some(Deed::Launch(Box::new(launch))),
                    Err(call) => {
                        if let (CallSeen::Withheld(_), Command::Call { number }) = (&call, command)
                        {
                            decided.withheld.insert(claim.uid.clone(), *number);
                        }
                        if let (CallSeen::Withheld(_), Command::Attempt { number: 2.. }) =
                            (&call, command)
                        {
                            decided.nowhere.insert(claim.uid.clone());
                        }
                        seen.call = call;
                        step = claim::next(claim, &seen, self.now);
                        deed = step.asks.as_ref().and_then(|it| self.deed(claim, it, &step));
                    }
                }
            }
            Some(command) => deed = self.deed(claim, command, &step),
        }
        // A node gets its labels when it is registered: they stand on the claim by then.
        if matches!(deed, Some(Deed::Register { .. }))
            && let Some(write) = self.completes(claim)
        {
            deed = Some(write);
        }
        let deed = deed.or_else(|| self.completes(claim)).or_else(|| self.tells(claim, &step));
        let rests = deed.is_none() && self.rests(claim, &step);
        for at in self.eyes.due(claim, &step, self.now) {
            decided.wake(at);
        }
        if matches!(step.because, Because::Withheld { .. }) {
            let tried = claim.attempt.as_ref().filter(|it| it.ended.is_some());
            let tried = tried.and_then(|it| it.since.checked_add(MARKED_FOR).ok());
            let marks = self.known.memory.next_mark_ends(self.now);
            for at in [tried, marks].into_iter().flatten().filter(|it| *it > self.now) {
                decided.wake(at);
            }
        }
        if let Some(deed) = deed {
            match self.known.memory.rests_until(&claim.name, &deed, self.now) {
                Some(at) => decided.wake(at),
                None => decided.acts.push(ClaimAct::of(claim, deed)),
            }
        }
        if step.because != Because::AtRest {
            decided.steps.insert(claim.name.clone(), step);
        }
        rests
    }

    /// Whether nothing but the claim, its node or its machine could change what follows: see [`loud`].
    fn rests(&self, claim: &Claim, step: &ClaimStep) -> bool {
        step.because == Because::AtRest
            && step.asks.is_none()
            && claim.deleting_since.is_none()
            && claim.stages.contains_key(&Stage::Registered)
            && !claim.capacity.is_empty()
            && claim.labels.contains_key(label::INSTANCE_TYPE)
            && !state::stale_stamps(claim)
            && look::settled(self.view, claim).is_some()
    }

    fn launch(&self, claim: &Claim, command: &Command) -> Result<Launch, CallSeen> {
        request::Asking {
            view: self.view,
            known: self.known,
            rules: self.rules,
            claim,
            now: self.now,
        }
        .launch(command)
    }

    fn deed(&self, claim: &Claim, command: &Command, step: &ClaimStep) -> Option<Deed> {
        let object = object(claim);
        let node = |name: &str| self.view.nodes.get(name);
        match command {
            // Both were tried, and something spoke against them.
            Command::Attempt { .. } | Command::Call { .. } => None,
            Command::EndAttempt { why, .. } => {
                let mut attempt = claim.attempt.clone()?;
                attempt.ended = Some(why.clone());
                Some(Deed::EndAttempt { claim: object, attempt: Box::new(attempt) })
            }
            Command::Adopt { machine } => {
                let machine = self.eyes.machine(machine)?;
                let state = state::of_machine(self.view, self.known, claim, machine, self.now);
                Some(Deed::Write { claim: object, state: Box::new(state) })
            }
            Command::Register { node: name } => {
                let node = node(name)?;
                Some(Deed::Register {
                    claim: object,
                    node: state::node_object(node),
                    node_state: Box::new(state::registered_node(claim)),
                    state: Box::new(state::registered(claim, node, self.now)),
                })
            }
            Command::Initialise { node: name } => {
                let node = node(name)?;
                Some(Deed::Register {
                    claim: object,
                    node: state::node_object(node),
                    node_state: Box::new(state::initialised_node(claim)),
                    state: Box::new(state::initialised(claim, node, self.now)),
                })
            }
            Command::DeleteClaim => Some(Deed::DeleteClaim {
                because: step.because.to_string(),
                missing: claim.node.clone().filter(|_| step.because == Because::NodeMissing),
                idle: matches!(step.because, Because::NeverReady { .. }),
            }),
            Command::DeleteNode { node, uid } => {
                Some(Deed::DeleteNode { name: node.clone(), uid: uid.clone() })
            }
            Command::Terminate { machine } => Some(Deed::Terminate {
                machine: machine.clone(),
                forced_at: claim::forced_at(claim, &self.eyes.gate(claim, self.now)),
            }),
            Command::ReleaseNode { node: name, .. } => {
                Some(Deed::ReleaseNode { node: state::node_object(node(name)?) })
            }
            Command::ReleaseClaim => Some(Deed::ReleaseClaim { claim: object }),
        }
    }

    /// What should stand on a claim that has its machine, and does not: what the type offers, and stamps
    /// of this version of ours.
    fn completes(&self, claim: &Claim) -> Option<Deed> {
        let machine = claim.machine.as_ref().filter(|_| claim.deleting_since.is_none())?;
        let mut state = None;
        // Status and labels are two writes, and somebody may have stopped between them. One that is
        // registered has passed here with all of them.
        let registered = claim.stages.contains_key(&Stage::Registered);
        if claim.capacity.is_empty()
            || !claim.labels.contains_key(label::INSTANCE_TYPE)
            || !registered
        {
            let machine = self.eyes.machine(machine)?;
            let all = state::of_machine(self.view, self.known, claim, machine, self.now);
            let lacks = claim.capacity.is_empty() || !all.labels.is_empty();
            state = Some(all).filter(|it| lacks && !it.capacity.is_empty());
        } else if state::stale_stamps(claim) {
            let wanted = self.known.wanted(claim)?;
            let running = state::running(claim, self.eyes.machine(machine));
            let anew = restamps(&running, wanted);
            if anew.class.is_some() || anew.template.is_some() {
                state = Some(crate::port::ClaimState {
                    class_stamp: anew.class,
                    template_stamp: anew.template,
                    ..Default::default()
                });
            }
        }
        state.map(|it| Deed::Write { claim: object(claim), state: Box::new(it) })
    }

    /// Why there is no machine yet stands on the claim, once.
    fn tells(&self, claim: &Claim, step: &ClaimStep) -> Option<Deed> {
        let waits = matches!(step.phase, Phase::Asked | Phase::Asking | Phase::GaveUp);
        if !waits || claim.deleting_since.is_some() || claim.machine.is_some() {
            return None;
        }
        let state = state::not_launched(&step.because, self.now)?;
        let said = state.conditions.first().map(|it| it.message.clone())?;
        (!self.known.memory.told(&claim.uid, &said)).then(|| Deed::Tell {
            claim: object(claim),
            state: Box::new(state),
            said,
        })
    }
}

fn object(claim: &Claim) -> Object {
    Object { name: claim.name.clone(), uid: claim.uid.clone(), revision: claim.revision.clone() }
}
