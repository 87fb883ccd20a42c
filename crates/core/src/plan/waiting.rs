//! What does a node wait for?
//!
//! Each has the name of what holds it, so that a person can go there.

use std::fmt;

use jiff::Timestamp;
use nodemolt_fit::Quantity;
use nodemolt_fit::pack::{Miss, Obstacle, Place, Why};
use nodemolt_fit::pod::PodId as Packed;
use nodemolt_fit::pool::NODES;

use super::{Dry, Node, PoolState, Recurs, Unable, Unasked, Unfollowed, UsedUp};
use crate::budget::{Apart, BudgetId, Shortage, Unit, UsedBy};
use crate::drain::{PodId, Protection, Refused};
use crate::replace::Because;
use crate::wanted::NoImage;

/// All that a node waits for: never nothing. First what only a person can lift, then what time does, then
/// what our own progress does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub first: WaitFor,
    pub more: Vec<WaitFor>,
}

impl Waiting {
    pub(super) fn of(mut reasons: Vec<WaitFor>) -> Option<Self> {
        reasons.sort_by_key(WaitFor::lifted_by);
        let mut reasons = reasons.into_iter();
        reasons.next().map(|first| Self { first, more: reasons.collect() })
    }

    /// What was found out later.
    pub fn add(&mut self, more: Vec<WaitFor>) {
        self.more.extend(more);
        let lifted_by = self.first.lifted_by();
        if let Some(earlier) = self.more.iter_mut().min_by_key(|it| it.lifted_by())
            && earlier.lifted_by() < lifted_by
        {
            std::mem::swap(earlier, &mut self.first);
        }
        self.more.sort_by_key(WaitFor::lifted_by);
    }

    pub fn all(&self) -> impl Iterator<Item = &WaitFor> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

/// Who or what lifts a reason, in the order in which they are told: a person who reads of the slot first
/// waits for it, and then finds out that nothing would have come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lifted {
    Person,
    Time,
    Progress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitFor {
    // A person lifts these.
    /// Its Replacement cannot be read: nobody begins beside it.
    Record {
        name: String,
        because: String,
    },
    Unlock {
        because: String,
    },
    Resume {
        because: String,
    },
    /// That somebody puts a clock right: by a wrong one nothing begins.
    Clock(Apart),
    /// Another controller moves the nodes of this pool.
    OtherHand {
        by: String,
    },
    Image(NoImage),
    ProtectedNode {
        node: String,
        /// What says so, if the node itself does not.
        claim: Option<String>,
        protection: Protection,
    },
    ProtectedPod {
        pod: PodId,
        protection: Protection,
    },
    BarePod {
        pod: PodId,
    },
    Pdb {
        pod: PodId,
        refused: Refused,
    },
    /// A pod that we moved has no place.
    HomelessPod {
        pod: PodId,
        since: Timestamp,
    },
    // Time lifts these.
    /// Of a kind that says who may go, and that no watch has told of for too long.
    News {
        kind: &'static str,
        /// `None`: it was never listed.
        since: Option<Timestamp>,
    },
    /// Others say of a new node what they said of the one before it.
    Recurs(Recurs),
    NextTry {
        at: Timestamp,
        because: Because,
    },
    Capacity {
        pool: String,
        until: Option<Timestamp>,
        because: String,
    },
    Lifetime {
        policy: String,
        until: Timestamp,
    },
    Window {
        policy: String,
        opens_at: Option<Timestamp>,
        because: Option<String>,
    },
    // Our own progress lifts these.
    Reach {
        because: String,
    },
    /// Of an old node, which counts on this one.
    Succession {
        node: String,
    },
    SharedBudget {
        pdb: String,
        pod: PodId,
        node: String,
    },
    SharedWorkload {
        workload: String,
        node: String,
        /// The one that came in the place of another of that node and is not ready yet. `None`: the node is
        /// still being replaced, or `missing`.
        pod: Option<PodId>,
        /// Its pods have left that node, and nobody came in their place.
        missing: bool,
    },
    Budget(Box<Shortage>),
    // Room lifts these.
    Limit {
        /// Whom the new node would be for. `None`: for none; it follows the old one.
        pod: Option<PodId>,
        pool: String,
        resource: String,
        /// How much higher the limit would have to be, where that is known.
        by: Option<Quantity>,
        /// The `NodeDisruptionBudget` that counts on a successor, where no pod does.
        counted_by: Option<String>,
    },
    Place {
        pod: PodId,
        because: String,
    },
    /// A free address in a subnet of its class: without one no machine starts there.
    Addresses(Dry),
    /// That its class says something that can be launched.
    Class(Unable),
    /// What EC2 has for its class.
    Answer(Unasked),
    /// A place in a capacity reservation: its pool asks for nothing else.
    Reservation(UsedUp),
    /// Nobody has looked yet where its pods would go.
    Consideration,
}

impl WaitFor {
    /// A word that scripts can rely on.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Record { .. } => "UnreadableRecord",
            Self::Unlock { .. } => "Locked",
            Self::Resume { .. } => "Paused",
            Self::Clock(_) => "ClocksApart",
            Self::OtherHand { .. } => "OtherHand",
            Self::Image(_) => "NoImage",
            Self::ProtectedNode { .. } => "ProtectedNode",
            Self::ProtectedPod { .. } => "ProtectedPod",
            Self::BarePod { .. } => "BarePod",
            Self::Pdb { .. } => "PodDisruptionBudget",
            Self::HomelessPod { .. } => "HomelessPod",
            Self::News { .. } => "NoNews",
            Self::Recurs(_) => "DriftRecurs",
            Self::NextTry { .. } => "NextTry",
            Self::Capacity { .. } => "NoCapacity",
            Self::Lifetime { .. } => "MinimumLifetime",
            Self::Window { .. } => "Window",
            Self::Reach { .. } => "Reach",
            Self::Succession { .. } => "Succession",
            Self::SharedBudget { .. } => "SharedBudget",
            Self::SharedWorkload { .. } => "SharedWorkload",
            Self::Budget(_) => "Budget",
            Self::Limit { .. } => "Limit",
            Self::Place { .. } => "NoPlace",
            Self::Addresses(_) => "NoAddresses",
            Self::Class(_) => "ClassCannotLaunch",
            Self::Answer(_) => "CouldNotAsk",
            Self::Reservation(_) => "ReservationUsedUp",
            Self::Consideration => "Consideration",
        }
    }

    /// The pod that it is about, if it is about one.
    pub fn pod(&self) -> Option<&PodId> {
        match self {
            Self::ProtectedPod { pod, .. }
            | Self::BarePod { pod }
            | Self::Pdb { pod, .. }
            | Self::HomelessPod { pod, .. }
            | Self::SharedBudget { pod, .. }
            | Self::Place { pod, .. } => Some(pod),
            Self::Limit { pod, .. } | Self::SharedWorkload { pod, .. } => pod.as_ref(),
            Self::Record { .. }
            | Self::News { .. }
            | Self::Unlock { .. }
            | Self::Resume { .. }
            | Self::Clock(_)
            | Self::OtherHand { .. }
            | Self::Image(_)
            | Self::ProtectedNode { .. }
            | Self::Recurs(_)
            | Self::NextTry { .. }
            | Self::Capacity { .. }
            | Self::Lifetime { .. }
            | Self::Window { .. }
            | Self::Reach { .. }
            | Self::Succession { .. }
            | Self::Budget(_)
            | Self::Addresses(_)
            | Self::Class(_)
            | Self::Answer(_)
            | Self::Reservation(_)
            | Self::Consideration => None,
        }
    }

    /// When time alone changes it, where that is known.
    pub fn ends_at(&self) -> Option<Timestamp> {
        match self {
            Self::ProtectedNode { protection, .. } | Self::ProtectedPod { protection, .. } => {
                protection.until
            }
            Self::Recurs(recurs) => Some(recurs.until),
            Self::NextTry { at, .. } => Some(*at),
            Self::Capacity { until, .. } => *until,
            Self::Lifetime { until, .. } => Some(*until),
            Self::Image(why) => why.until,
            Self::Window { opens_at, .. } => *opens_at,
            Self::Budget(shortage) => shortage.opens_at,
            Self::Answer(unasked) => unasked.again_at,
            Self::Record { .. }
            | Self::News { .. }
            | Self::Unlock { .. }
            | Self::Resume { .. }
            | Self::Clock(_)
            | Self::OtherHand { .. }
            | Self::BarePod { .. }
            | Self::Pdb { .. }
            | Self::HomelessPod { .. }
            | Self::Reach { .. }
            | Self::Succession { .. }
            | Self::SharedBudget { .. }
            | Self::SharedWorkload { .. }
            | Self::Limit { .. }
            | Self::Place { .. }
            | Self::Addresses(_)
            | Self::Class(_)
            | Self::Reservation(_)
            | Self::Consideration => None,
        }
    }

    fn lifted_by(&self) -> Lifted {
        let unless =
            |at: Option<Timestamp>| if at.is_some() { Lifted::Time } else { Lifted::Person };
        match self {
            Self::Record { .. }
            | Self::Unlock { .. }
            | Self::Resume { .. }
            | Self::Clock(_)
            | Self::OtherHand { .. }
            | Self::Image(_)
            | Self::ProtectedNode { .. }
            | Self::ProtectedPod { .. }
            | Self::BarePod { .. }
            | Self::Pdb { .. }
            | Self::HomelessPod { .. }
            | Self::Limit { .. }
            | Self::Place { .. }
            | Self::Addresses(_)
            | Self::Class(_)
            | Self::Reservation(_) => Lifted::Person,
            Self::Answer(_) => Lifted::Time,
            Self::News { .. } | Self::Recurs(_) | Self::NextTry { .. } | Self::Lifetime { .. } => {
                Lifted::Time
            }
            Self::Capacity { until, .. } => unless(*until),
            Self::Window { opens_at, .. } => unless(*opens_at),
            Self::Budget(shortage) if shortage.resting => Lifted::Time,
            Self::Budget(shortage) if shortage.allowed == 0 => unless(shortage.opens_at),
            Self::Reach { .. }
            | Self::Succession { .. }
            | Self::SharedBudget { .. }
            | Self::SharedWorkload { .. }
            | Self::Budget(_)
            | Self::Consideration => Lifted::Progress,
        }
    }

    /// It will have its turn when others are done.
    pub fn lifted_by_progress(&self) -> bool {
        match self {
            Self::Succession { .. }
            | Self::SharedBudget { .. }
            | Self::SharedWorkload { .. }
            | Self::Consideration => true,
            Self::Budget(shortage) => shortage.allowed > 0,
            Self::Record { .. }
            | Self::News { .. }
            | Self::Unlock { .. }
            | Self::Resume { .. }
            | Self::Clock(_)
            | Self::OtherHand { .. }
            | Self::Image(_)
            | Self::ProtectedNode { .. }
            | Self::ProtectedPod { .. }
            | Self::BarePod { .. }
            | Self::Pdb { .. }
            | Self::HomelessPod { .. }
            | Self::Recurs(_)
            | Self::NextTry { .. }
            | Self::Capacity { .. }
            | Self::Lifetime { .. }
            | Self::Window { .. }
            | Self::Reach { .. }
            | Self::Limit { .. }
            | Self::Place { .. }
            | Self::Addresses(_)
            | Self::Class(_)
            | Self::Answer(_)
            | Self::Reservation(_) => false,
        }
    }
}

impl WaitFor {
    /// In words, with each time as `time` writes it: people want it relative too, and what is stored must
    /// not change by itself.
    pub fn words(&self, time: &dyn Fn(Timestamp) -> String) -> String {
        match self {
            Self::Record { name, because } => {
                format!("a person: Replacement `{name}` cannot be read: {because}")
            }
            Self::News { kind, since: Some(since) } => {
                format!("news of {kind}: no watch has told of that since {}", time(*since))
            }
            Self::News { kind, since: None } => format!("a first list of {kind}"),
            Self::Recurs(Recurs { by: None, reason, claim, until }) => format!(
                "whoever makes it so that {reason}: NodeClaim {claim} took over from a node that differed in the same; mend \
                 that, or `nodemolt upgrade` the node; else {}",
                time(*until)
            ),
            Self::Recurs(Recurs { by: Some(by), reason, claim, until }) => format!(
                "whoever says {reason} by {by}: NodeClaim {claim} took over from a node of which the \
                 same was said; mend what says so, or `nodemolt upgrade` the node; else {}",
                time(*until)
            ),
            Self::Unlock { because } => format!("`nodemolt unlock`: {because}"),
            Self::Resume { because } => format!("`nodemolt resume`: paused, {because}"),
            Self::Clock(apart) => format!("a person: {}", apart.words()),
            Self::OtherHand { by } => format!("{by}, which moves the nodes of this pool"),
            Self::Image(why) => {
                format!("an image for its successor: {why}{}", until(why.until, time))
            }
            Self::ProtectedNode { node, claim, protection } => {
                let who = match claim {
                    Some(claim) => format!("NodeClaim {claim}"),
                    None => format!("node {node}"),
                };
                format!("a person: {who} says {}", protected(protection, time))
            }
            Self::ProtectedPod { pod, protection } => {
                format!("a person: pod {pod} says {}", protected(protection, time))
            }
            Self::BarePod { pod } => {
                format!("a person: pod {pod} has no controller and would be lost")
            }
            Self::Pdb { pod, refused } => match refused.pdb() {
                Some(_) => format!("pod {pod}: {refused} (namespace {})", pod.namespace),
                None => format!("pod {pod}: {refused}"),
            },
            Self::HomelessPod { pod, since } => {
                format!("pod {pod}, which was moved and is pending since {}", time(*since))
            }
            Self::NextTry { at, because } => format!("its next try at {}: {because}", time(*at)),
            Self::Capacity { pool, until, because } => match until {
                Some(until) => format!(
                    "capacity for NodePool `{pool}`, tried again at {}: {because}",
                    time(*until)
                ),
                None => format!("capacity for NodePool `{pool}`: {because}"),
            },
            Self::Lifetime { policy, until } => {
                format!("its minimum lifetime (ImagePolicy `{policy}`), until {}", time(*until))
            }
            Self::Window { policy, opens_at, because } => {
                let opens = match opens_at {
                    Some(at) => format!("open at {}", time(*at)),
                    None => "which do not open again".to_owned(),
                };
                let because = because.as_ref().map_or(String::new(), |it| format!(" ({it})"));
                format!("the windows of ImagePolicy `{policy}`, {opens}{because}")
            }
            Self::Reach { because } => format!("the rollout: {because}"),
            Self::Succession { node } => {
                format!("node {node}: its replacement is not over and counts on this one")
            }
            Self::SharedBudget { pdb, pod, node } => {
                format!("node {node}: PodDisruptionBudget `{pdb}` of pod {pod} is spoken for there")
            }
            Self::SharedWorkload { workload, node, pod: None, missing: false } => {
                format!("node {node}: the other pods of {workload} are moved from there")
            }
            Self::SharedWorkload { workload, node, pod: None, missing: true } => format!(
                "a pod of {workload} to come back: none came in the place of what left node {node}, and it \
                 has no other that is ready elsewhere"
            ),
            Self::SharedWorkload { workload, node, pod: Some(pod), .. } => format!(
                "pod {pod} to be ready: it came in the place of one on node {node}, and {workload} has no \
                 other that is ready elsewhere"
            ),
            Self::Budget(shortage) => budget(shortage, time),
            Self::Limit { pod, pool, resource, by, counted_by } => {
                let counts = counted_by.as_ref().map_or(String::new(), |it| {
                    format!(", on which NodeDisruptionBudget `{it}` counts")
                });
                let successor = || format!("its successor{counts}");
                let whom = pod.as_ref().map_or_else(successor, |it| format!("pod {it}"));
                let by = by.map_or(String::new(), |it| format!(", {it} more"));
                format!("room in the limits of NodePool `{pool}` ({resource}{by}) for {whom}")
            }
            Self::Place { pod, because } => format!("a place for pod {pod}: {because}"),
            Self::Addresses(dry) => addresses(dry),
            Self::Class(Unable { class, because }) => {
                format!("a person: nothing can be launched of EC2NodeClass `{class}`: {because}")
            }
            Self::Answer(Unasked { class, calls, because, again_at: _ }) => format!(
                "an answer of Amazon EC2 about EC2NodeClass `{class}` ({}): {because}",
                calls.join(", ")
            ),
            Self::Reservation(UsedUp { class, reservations }) => format!(
                "a place in a capacity reservation of EC2NodeClass `{class}`: nothing is left of {}; \
                 with `replacement: DeleteFirst` in an ImagePolicy the old node goes first",
                reservations.join(", ")
            ),
            Self::Consideration => "a look at where its pods would go".to_owned(),
        }
    }
}

/// With absolute times, which stay as they are.
impl fmt::Display for WaitFor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.words(&|it| it.to_string()))
    }
}

fn until(at: Option<Timestamp>, time: &dyn Fn(Timestamp) -> String) -> String {
    at.map_or(String::new(), |at| format!(", until {}", time(at)))
}

fn protected(protection: &Protection, time: &dyn Fn(Timestamp) -> String) -> String {
    format!("{protection}{}", until(protection.until, time))
}

fn budget(shortage: &Shortage, time: &dyn Fn(Timestamp) -> String) -> String {
    let Shortage { id, unit, allowed, keeps, used, used_by, opens_at, resting, unreadable } =
        shortage;
    if let Some(unreadable) = unreadable {
        return format!("{id}, which cannot be read and counts as zero: {}", unreadable.0);
    }
    // Who else is away does not matter then.
    if *allowed == 0 && !*resting {
        let keeps = keeps.map_or(String::new(), |(keeps, there)| {
            format!(": it keeps at least {keeps} available, of {there}")
        });
        return format!("{id}, which allows none{keeps}{}", until(*opens_at, time));
    }
    let mut text = if *resting {
        format!("the cooldown of {id}")
    } else if *id == BudgetId::Serial {
        format!("{id}: {used} of {allowed} in use")
    } else {
        match unit {
            Unit::Nodes => format!("{id}: {used} of {allowed} nodes in use"),
            Unit::Cpu => format!("{id}: {used}m of {allowed}m processors in use"),
        }
    };
    text.push_str(&until(*opens_at, time));
    let users = used_by.iter().map(|(node, by)| match by {
        UsedBy::Grant { since } => format!("{node} since {}", time(*since)),
        UsedBy::Unavailable(why) => format!("{node} ({})", why.as_str()),
    });
    let users: Vec<String> = users.collect();
    if !users.is_empty() {
        text.push_str(" by ");
        text.push_str(&users.join(", "));
    }
    text
}

fn addresses(Dry { class, subnets, everywhere: _ }: &Dry) -> String {
    let told: Vec<String> = subnets.iter().map(|(id, zone)| format!("{id} ({zone})")).collect();
    match told.as_slice() {
        [] => format!("a subnet: EC2NodeClass `{class}` selects none where its pool may launch"),
        [one] => format!("a free address in subnet {one} of EC2NodeClass `{class}`"),
        all => format!(
            "free addresses in the subnets of EC2NodeClass `{class}`: {} have none",
            all.join(", ")
        ),
    }
}

pub(super) fn no_place(
    name: &str,
    (node, kept): (&Node, bool),
    pod: &Packed,
    why: &Why,
) -> WaitFor {
    let known = node.pods.iter().map(|it| &it.id);
    let pod = known
        .into_iter()
        .find(|it| it.namespace == *pod.namespace && it.name == *pod.name)
        .cloned()
        .unwrap_or_else(|| PodId {
            namespace: pod.namespace.to_string(),
            name: pod.name.to_string(),
            uid: String::new(),
        });
    match (lacks(pod, why), &node.member.pool) {
        // Not the limit that people wrote: where that is in the way, there is no node to follow at all.
        (WaitFor::Limit { pod: Some(pod), resource, .. }, Some(pool))
            if kept && resource == NODES =>
        {
            let because = format!(
                "NodePool `{pool}` is kept at a number (`replicas`), so that one node follows {name}, and not all of its pods fit there \
                 and on the other nodes; a policy that says `DeleteFirst`, or whoever deletes {name}, does without that"
            );
            WaitFor::Place { pod, because }
        }
        (lacks, _) => lacks,
    }
}

/// A pod that was moved, of a pool whose last node that went first was followed by none.
pub fn not_followed(pool: &str, last: &Unfollowed) -> WaitFor {
    let Unfollowed { node, because, .. } = last;
    let because = format!(
        "what was to follow {node} did not come: {because}; a node is tried again for as long as the pod is pending"
    );
    WaitFor::Capacity { pool: pool.to_owned(), until: None, because }
}

/// What a pod lacks that has no place. The limit of a pool and missing capacity have names of their own; the
/// rest is a place.
pub fn lacks(pod: PodId, why: &Why) -> WaitFor {
    let because = why.to_string();
    if let Why::NoPlace { nearest: Some(Miss { place, obstacles }) } = why {
        for obstacle in obstacles {
            match (obstacle, place) {
                (Obstacle::PoolLimit { resource, by }, Place::Pool(pool)) => {
                    let (pod, pool, by) = (Some(pod), pool.clone(), Some(*by));
                    let resource = resource.clone();
                    return WaitFor::Limit { pod, pool, resource, by, counted_by: None };
                }
                (Obstacle::NoCapacity, Place::Pool(pool)) => {
                    return WaitFor::Capacity { pool: pool.clone(), until: None, because };
                }
                _ => {}
            }
        }
    }
    WaitFor::Place { pod, because }
}

/// What is lacking, or what is in the way of every new node of the pool: with such a one there may be a place. Limits and
/// images of the pool stay what they are.
pub fn in_the_way(
    lacks: WaitFor,
    state: Option<&PoolState>,
    zone: Option<&String>,
) -> Vec<WaitFor> {
    let Some(state) = state else { return vec![lacks] };
    let first = match (&state.unasked, &state.unable, &state.used_up) {
        (Some(unasked), _, _) => WaitFor::Answer(unasked.clone()),
        (None, Some(unable), _) => WaitFor::Class(unable.clone()),
        (None, None, Some(used_up)) if state.dry.is_none() => WaitFor::Reservation(used_up.clone()),
        (None, None, _) => return with_dry(lacks, state.dry.as_ref(), zone),
    };
    let stays = matches!(lacks, WaitFor::Limit { .. } | WaitFor::Image(_)).then_some(lacks);
    std::iter::once(first).chain(stays).collect()
}

/// What is lacking, or the subnets without an address, where they may be why. Where no subnet has one it is that, and
/// nothing else but a limit or a missing image is known to be in the way. One that is full beside others matters to
/// pods that cannot leave the zone of their node.
fn with_dry(lacks: WaitFor, dry: Option<&Dry>, zone: Option<&String>) -> Vec<WaitFor> {
    let Some(dry) = dry else { return vec![lacks] };
    if dry.everywhere {
        // With one there may be a place; limits and images of the pool stay what they are.
        let stays = matches!(lacks, WaitFor::Limit { .. } | WaitFor::Image(_)).then_some(lacks);
        return std::iter::once(WaitFor::Addresses(dry.clone())).chain(stays).collect();
    }
    let mut here = dry.clone();
    here.subnets.retain(|it| Some(&it.1) == zone);
    if here.subnets.is_empty() || matches!(lacks, WaitFor::Limit { .. }) {
        return vec![lacks];
    }
    vec![lacks, WaitFor::Addresses(here)]
}

/// It needs one of its own kind, and its pool cannot launch one.
pub(super) fn no_kin(pool: &str, limit: Option<&String>, counted_by: Option<String>) -> WaitFor {
    let pool = pool.to_owned();
    match limit {
        Some(resource) => {
            WaitFor::Limit { pod: None, pool, resource: resource.clone(), by: None, counted_by }
        }
        None => WaitFor::Capacity { pool, until: None, because: NOTHING_OFFERED.to_owned() },
    }
}

/// One like it has gone first, and its successor did not come: neither might its own.
pub(super) fn unfollowed(pool: &str, last: &Unfollowed) -> WaitFor {
    let Unfollowed { node, because, .. } = last;
    let because = format!(
        "{node} went first and nobody has followed it: {because}; the others that would go first do so when a node of NodePool \
         {pool} has come up, or may boot another image; `nodemolt upgrade node/NAME` tries one of them all the same"
    );
    WaitFor::Capacity { pool: pool.to_owned(), until: None, because }
}

const NOTHING_OFFERED: &str = "nothing that it asks for is offered and has an image";
