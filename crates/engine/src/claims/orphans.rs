//! Which machines does no claim stand for?
//!
//! `machines × claims → those to end, or a report`
//!
//! A machine that our claims do not know may be one that nobody wants, or the claims may be wrong: a list
//! that is late, an object that could not be read, a cluster that was restored from yesterday. So it has
//! to be old enough, in two complete lists, against claims that are current. One whose node is ready, or
//! has pods, does somebody's work, and a person looks at it; so they do where there is more than one, or
//! where nothing else is left. A second machine of a claim that has one is no such doubt: both are there,
//! and the claim says which is its own. Nor is one of a claim that is deleted: all of them go, and the claim goes last.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::claim::LISTS_APART;
use nodemolt_core::drain;
use nodemolt_core::explain::{Kept, Orphan};
use nodemolt_core::seen::{
    Claim, Kind, MachineId, Node, ObjectName, Readiness, UNREGISTERED_TAINT, View,
};

use super::Known;
use super::act::{ClaimAct, Deed};
use super::look::Eyes;
use super::loud::{Loud, Strangers};
use super::state::{self, CLAIM_TAG, CLAIM_UID_TAG};
use crate::port::{Machine, MachineState};

/// No machine is an orphan before: its claim's record may be on its way.
pub const ORPHAN_AGE: SignedDuration = SignedDuration::from_mins(5);

/// Answers that are older say nothing about now.
const CURRENT_FOR: SignedDuration = SignedDuration::from_mins(2);

/// So many are removed without asking: a second one at the same time is no accident any more.
const AT_ONCE: usize = 1;

/// Of claims whose node is missing this share is believed at once, in a large fleet.
pub(super) const AT_ONCE_PERCENT: usize = 5;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Orphans {
    pub acts: Vec<ClaimAct>,
    /// Not removed: there are more than may be at once, or somebody works there. By machine. A person has
    /// to look.
    pub kept: BTreeMap<String, Orphan>,
}

pub(super) fn find(
    view: &View,
    known: &Known<'_>,
    eyes: &Eyes<'_>,
    loud: &mut Loud,
    now: Timestamp,
) -> Orphans {
    let mut orphans = Orphans::default();
    let Some((machines, last)) = known.machines else { return orphans };
    let Some((_, first)) = known.machines_before else { return orphans };
    let Some(claims) = view.fresh.get(&Kind::Claim).copied() else { return orphans };
    let current = |at: Timestamp| now.duration_since(at) <= CURRENT_FOR;
    let apart = last.duration_since(first) >= LISTS_APART;
    // Claims must be at least as new as the list that has the machine.
    if !apart || claims < first {
        return orphans;
    }
    // What is kept is told between two lists, too; nothing ends by an old one.
    let proved = current(last) && current(claims);
    let Strangers { live, nobodys } =
        &*loud.strangers.get_or_insert_with(|| strangers(view, eyes, machines));
    let claims = By::uid(view);
    let mut found: Vec<(&Machine, Nobodys)> = Vec::new();
    for machine in nobodys.iter().filter_map(|it| machines.get(it)) {
        let young = now.duration_since(machine.launched_at) < ORPHAN_AGE;
        if !young
            && let Some(why) = belongs_to_nobody(view, &claims, eyes, machine)
            && eyes.in_both(&machine.id)
        {
            found.push((machine.as_ref(), why));
        }
    }
    let claimless = found.iter().filter(|(_, it)| matches!(it, Nobodys::Claimless(_))).count();
    for (machine, why) in found {
        let nodes = view.nodes.values().filter(|it| it.machine.as_ref() == Some(&machine.id));
        let nodes: Vec<&Node> = nodes.collect();
        let (because, doubt) = match why {
            Nobodys::Claimless(because) if claimless > AT_ONCE => {
                (because, Some(Kept::Several(claimless)))
            }
            Nobodys::Claimless(because) if claimless == *live => (because, Some(Kept::NoOthers)),
            Nobodys::Claimless(because) | Nobodys::Second(because) => (because, None),
        };
        let works = nodes.iter().any(|it| works(view, it, now));
        match doubt.or_else(|| works.then_some(Kept::Works)) {
            Some(kept) => {
                let node = nodes.first().map(|it| it.name.clone());
                orphans.kept.insert(machine.id.0.clone(), Orphan { because, node, kept });
            }
            None if proved => {
                let deed = Deed::RemoveOrphan { machine: machine.id.clone(), because };
                orphans.add(&machine.id.0, deed, known, now);
            }
            None => {}
        }
    }
    if !proved {
        return orphans;
    }
    for node in left_behind(view, known, eyes, loud.leaving(view)) {
        let deed = Deed::ReleaseNode { node: state::node_object(node) };
        orphans.add(&node.name, deed, known, now);
    }
    orphans
}

fn strangers(
    view: &View,
    eyes: &Eyes<'_>,
    machines: &BTreeMap<MachineId, Arc<Machine>>,
) -> Strangers {
    let ours =
        machines.values().filter(|it| it.state.live() && it.tags.contains_key(CLAIM_UID_TAG));
    let claims = By::uid(view);
    let (mut live, mut nobodys) = (0, Vec::new());
    for machine in ours {
        live += 1;
        if belongs_to_nobody(view, &claims, eyes, machine).is_some() {
            nobodys.push(machine.id.clone());
        }
    }
    Strangers { live, nobodys }
}

impl Orphans {
    fn add(&mut self, key: &str, deed: Deed, known: &Known<'_>, now: Timestamp) {
        if known.memory.rests_until(key, &deed, now).is_none() {
            self.acts.push(ClaimAct { key: key.to_owned(), claim: None, deed });
        }
    }
}

/// Why a machine belongs to nobody.
enum Nobodys {
    Claimless(String),
    /// Its claim has another one.
    Second(String),
}

/// Whether somebody works on one of the nodes that say they are this machine.
pub(super) fn works_on(view: &View, machine: &MachineId, now: Timestamp) -> bool {
    let mut nodes = view.nodes.values().filter(|it| it.machine.as_ref() == Some(machine));
    nodes.any(|it| works(view, it, now))
}

/// Whether a node takes pods, or anybody is on it who would have to leave first.
fn works(view: &View, node: &Node, now: Timestamp) -> bool {
    let mut pods = view.pods.on(&node.name);
    serves(node) || pods.any(|pod| drain::moves(&pod.drain, now))
}

/// Whether a node is ready, and no claim has to register it first: until then it keeps all pods away.
pub(super) fn serves(node: &Node) -> bool {
    let joining = node.fit.taints.iter().any(|it| it.key == UNREGISTERED_TAINT);
    node.ready == Readiness::Ready && !joining
}

/// Claims by their UID, once somebody has to look for one that its machine does not name.
struct By<'a> {
    view: &'a View,
    uid: OnceCell<BTreeMap<&'a str, &'a Claim>>,
}

impl<'a> By<'a> {
    fn uid(view: &'a View) -> Self {
        Self { view, uid: OnceCell::new() }
    }

    fn get(&self, uid: &str) -> Option<&'a Claim> {
        let claims = || self.view.claims.values().map(|it| (it.uid.as_str(), it)).collect();
        self.uid.get_or_init(claims).get(uid).copied()
    }
}

/// Why it does, if it does.
fn belongs_to_nobody(
    view: &View,
    claims: &By<'_>,
    eyes: &Eyes<'_>,
    machine: &Machine,
) -> Option<Nobodys> {
    let name = machine.tags.get(CLAIM_TAG).map_or("", String::as_str);
    let uid = machine.tags.get(CLAIM_UID_TAG).map_or("", String::as_str);
    let named = view.claims.get(name).filter(|it| it.uid == uid);
    let Some(claim) = named.or_else(|| claims.get(uid)) else {
        let name = name.to_owned();
        let hidden = ObjectName { kind: Kind::Claim, namespace: String::new(), name };
        let known = !view.unreadable.contains_key(&hidden);
        let why = || format!("no NodeClaim `{}` has the UID {uid}", hidden.name);
        return known.then(why).map(Nobodys::Claimless);
    };
    second(claim, eyes, machine).map(Nobodys::Second)
}

/// Nodes with our finalizer whose claim was taken away by force, and whose machine is gone.
fn left_behind<'a>(
    view: &'a View,
    known: &'a Known<'_>,
    eyes: &'a Eyes<'_>,
    leaving: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'a Node> {
    let leaving = leaving.iter().filter_map(|it| view.nodes.get(it));
    let leaving = leaving.filter(|it| it.held && it.deleting_since.is_some());
    leaving.filter(move |node| {
        let Some(machine) = &node.machine else { return false };
        let claimed = view.claims.values().any(|it| it.machine.as_ref() == Some(machine));
        let blind = view.unreadable.keys().any(|it| it.kind == Kind::Claim);
        let ended = |it: &Machine| {
            it.state == MachineState::Terminated && it.tags.contains_key(CLAIM_UID_TAG)
        };
        // Others have the same finalizer: a machine that no list has must have been one of ours.
        let ours = node.fit.labels.keys().any(|it| known.here.names_class(it));
        let forgotten = ours && node.ready != Readiness::Ready && eyes.in_neither(machine);
        !claimed && !blind && (eyes.machine(machine).is_some_and(ended) || forgotten)
    })
}

/// A second machine for one claim: made by a call that was answered after its attempt was proved empty, or by
/// EC2 itself, which gave two where one was asked for. Which of them is the claim's stands on the claim, once
/// and for all; as long as that one lives, the other is nobody's. And so it is once the claim is deleted, whatever became
/// of the first.
fn second(claim: &Claim, eyes: &Eyes<'_>, machine: &Machine) -> Option<String> {
    let has = claim.machine.as_ref().filter(|it| **it != machine.id)?;
    if claim.deleting_since.is_some() {
        return Some(format!("NodeClaim {} is deleted, and its machine is {}", claim.name, has.0));
    }
    let lives = eyes.in_both(has) && eyes.machine(has).is_some_and(|it| it.state.live());
    lives.then(|| format!("NodeClaim {} has machine {}", claim.name, has.0))
}
