//! Who is there, and what is known of them?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::spread::Burden;
use super::{Spread, WaitFor};
use crate::budget::Member;
use crate::drain::{AllPdbs, Homeless, Pod, PodId, Protection};
use crate::replace::{Because, Cause, Phase};
use crate::wanted::NoImage;

/// The nodes, and what is known around them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// By name.
    pub nodes: BTreeMap<String, Node>,
    /// Those that are not there any more and whose grant was not given back: until then they use it.
    pub gone: BTreeMap<String, Member>,
    pub pools: BTreeMap<String, PoolState>,
    pub pdbs: AllPdbs,
    /// By pool: pods that we moved and that have no place.
    pub homeless: BTreeMap<String, Homeless>,
    /// Pods that came in the place of those that we moved and are not ready yet, and from which node.
    pub unsettled: Vec<(Arc<Pod>, String)>,
    /// Of each workload of which pods were moved and nobody came in their place: one that it still has, and from which
    /// node they were moved.
    pub missing: Vec<(Arc<Pod>, String)>,
    /// All pods that no node has.
    pub pending: Vec<Pending>,
    /// How long each phase takes here, as measured.
    pub pace: BTreeMap<Phase, SignedDuration>,
    /// Where the pods of each workload are, for whoever keeps it: without it all pods are looked at.
    pub spread: Option<Spread>,
    /// Nodes with a wish, and those that are under way, for whoever keeps it: without it all nodes are looked at.
    pub astir: Option<BTreeSet<String>>,
}

impl Fleet {
    /// Everyone that budgets look at.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Member)> {
        let there = self.nodes.iter().map(|(name, it)| (name.as_str(), &it.member));
        let gone = self.gone.iter().filter(|(name, _)| !self.nodes.contains_key(*name));
        there.chain(gone.map(|(name, it)| (name.as_str(), it)))
    }

    /// Those that should go and those that are going, by name.
    pub(super) fn stirring(&self) -> Vec<Stirring<'_>> {
        match &self.astir {
            Some(astir) => {
                self.stirs(astir.iter().filter_map(|it| self.nodes.get_key_value(it))).collect()
            }
            None => self.stirs(self.nodes.iter()).collect(),
        }
    }

    fn stirs<'a>(
        &'a self,
        nodes: impl Iterator<Item = (&'a String, &'a Node)>,
    ) -> impl Iterator<Item = Stirring<'a>> {
        let nodes = nodes.filter(|(_, it)| it.wish.is_some() || it.under_way.is_some());
        nodes.map(|(name, node)| {
            let burden = self.spread.as_ref().and_then(|it| it.burden(name));
            Stirring { name, node, burden }
        })
    }
}

/// One that should go or is going, with what is known of its pods: found once, and asked for in every decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stirring<'a> {
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
    pub(super) burden: Option<&'a Burden>,
}

/// A pod that no node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub pod: PodId,
    pub since: Timestamp,
    /// The pool that we moved its like from, if we did.
    pub moved_from: Option<String>,
    /// The node that its like were moved from; those that it may have been, where several were emptied at the time.
    pub from_nodes: Vec<String>,
    /// Why it gets no node, as far as that is known.
    pub lacks: Vec<WaitFor>,
}

/// A node, as far as it decides whether it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub member: Member,
    pub zone: Option<String>,
    pub created_at: Timestamp,
    /// `None`: it is fine as it is.
    pub wish: Option<Wish>,
    /// Of the node itself.
    pub protection: Option<Protection>,
    /// Its claim, where that says so and the node does not.
    pub protected_by_claim: Option<String>,
    /// Shared with whoever saw them: pods are many.
    pub pods: Vec<Arc<Pod>>,
    /// A `terminationGracePeriod`: pods do not hold back the start then, they get a deadline.
    pub has_deadline: bool,
    /// Its last try failed.
    pub next_try: Option<NextTry>,
    /// Its replacement, while one is open.
    pub under_way: Option<UnderWay>,
    /// The old node whose replacement is open and counts on this one: until that is over it stays.
    pub succeeds: Option<String>,
    /// It runs a candidate that was halted.
    pub leads_back: bool,
}

impl Node {
    /// Whoever is moved there has to move again before long. Not one that takes over from another now: that it goes itself is
    /// looked at when that is done.
    pub fn fades(&self) -> bool {
        self.succeeds.is_none() && self.wish.as_ref().is_some_and(|it| it.cause.voluntary())
    }
}

/// Why a node should be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub cause: Cause,
    /// Drifted, expired or asked for since then.
    pub since: Timestamp,
    /// Asked for by its own name, and not with its whole pool.
    pub by_name: bool,
    /// Why there is no image for its successor now, if there is none.
    pub no_image: Option<NoImage>,
    /// Its Replacement, by name, and why it cannot be read, if it cannot. It holds what it held.
    pub unread: Option<(String, String)>,
    /// Its successor would carry the candidate of a rollout.
    pub to_candidate: bool,
    /// What others say of it, or make of it, they said of the node before it, too, and would say of the next.
    pub recurs: Option<Recurs>,
}

/// Drift that others found again on a node that was made because of it, or made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recurs {
    /// The condition or annotation. `None`: nobody says so; it differs.
    pub by: Option<String>,
    /// Their reason, or what differs.
    pub reason: String,
    /// The new node's.
    pub claim: String,
    /// Nobody is replaced for it before.
    pub until: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextTry {
    pub at: Timestamp,
    pub failed_at: Timestamp,
    pub because: Because,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderWay {
    pub phase: Phase,
    pub since: Timestamp,
}

/// What is true of a pool as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolState {
    pub hand: Hand,
    /// At a number of nodes: one node is followed by one, whatever its pods would need.
    pub kept: bool,
    /// Replacements that failed since one was done, and whose nodes are not tried again yet.
    pub failures: u32,
    /// No capacity: no launch before this, and what EC2 said.
    pub back_off: Option<(Timestamp, String)>,
    /// Nothing that it asks for can be launched, as far as anybody knows: an old node that goes first would
    /// be followed by none.
    pub launches_nothing: bool,
    /// Where an old node goes first: the last that went and that nobody has followed yet, though that was tried. Until
    /// somebody has come, the next would go for nothing.
    pub unfollowed: Option<Unfollowed>,
    /// Where an old node goes first: the resource of which the pool's limits have no room for one in its
    /// place, though it has gone. They were lowered, then.
    pub over_limit: Option<String>,
    /// Subnets of its class in which nothing can be launched.
    pub dry: Option<Dry>,
    /// Nothing at all can be launched of its class.
    pub unable: Option<Unable>,
    /// What could be launched is not known.
    pub unasked: Option<Unasked>,
    /// It asks for nothing but reserved capacity, and these are all used.
    pub used_up: Option<UsedUp>,
}

/// What EC2 has of a class could not be found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unasked {
    pub class: String,
    pub calls: Vec<String>,
    pub because: String,
    pub again_at: Option<Timestamp>,
}

/// Capacity reservations of which nothing is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedUp {
    pub class: String,
    /// By id.
    pub reservations: Vec<String>,
}

/// Why no machine can be launched of a class, whatever it would be: its user data, say, or no security group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unable {
    pub class: String,
    pub because: String,
}

/// Where a pool can launch nothing for want of an address, whatever EC2 has otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dry {
    pub class: String,
    /// Id and zone of those that have no free address, in the zones that the pool asks for.
    pub subnets: Vec<(String, String)>,
    /// No subnet is left beside these; with none at all the class selects none there.
    pub everywhere: bool,
}

/// A node that went first, and whose successor did not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfollowed {
    pub node: String,
    /// As budgets looked at it: its place in them is empty until somebody follows.
    pub member: Member,
    /// When it was given up.
    pub at: Timestamp,
    pub because: Because,
}

/// Who moves the nodes of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Hand {
    #[default]
    Own,
    /// We write one pointer, and another controller replaces.
    Promote { by: String },
    /// We only look.
    Watch { by: String },
}
