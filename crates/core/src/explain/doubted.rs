//! What is left for a person to look at?
//!
//! A machine that no claim stands for, and a claim whose node is missing, may be rests of something that went
//! wrong; or our eyes are wrong, or a cluster was restored from yesterday. Where ending them could hurt
//! somebody they are left alone, and told until somebody has looked.

use std::collections::BTreeMap;

use super::World;
use super::story::{Cause, Named, Story};

/// So many are told in words, of each kind. Programs read all of them.
const TOLD_MAX: usize = 12;

/// What does not fit together and is left as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubted {
    /// By machine.
    pub machines: BTreeMap<String, Orphan>,
    /// By claim: its node, which is missing.
    pub missing: BTreeMap<String, String>,
    /// By claim: why it cannot be read. Whose node it is stands in it, so nobody knows.
    pub unread: BTreeMap<String, String>,
}

/// A machine that no claim stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Why it is one.
    pub because: String,
    pub node: Option<String>,
    pub kept: Kept,
}

/// Why it does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Its node is ready or has pods: somebody works there.
    Works,
    /// There are so many at once.
    Several(usize),
    /// Every machine of the cluster is one.
    NoOthers,
}

impl Orphan {
    fn cause(&self, machine: &str) -> Cause {
        let node = self.node.as_ref().map_or(String::new(), |it| format!(" (node {it})"));
        let kept = match self.kept {
            Kept::Works => "its node is ready or has pods".to_owned(),
            Kept::Several(all) => format!("there are {all} of them at once"),
            Kept::NoOthers => "there are no other machines".to_owned(),
        };
        Cause {
            reason: "Orphan",
            named: Named::cluster("Machine", machine),
            text: format!("{machine}{node}: {}; it is not ended: {kept}", self.because),
            ends_at: None,
            used_by: Vec::new(),
        }
    }

    fn next(&self, machine: &str) -> String {
        let end = format!("`aws ec2 terminate-instances --instance-ids {machine}`");
        match &self.node {
            Some(node) => format!("a person looks; to end it: `kubectl drain {node}`, then {end}"),
            None => format!("a person looks; to end it: {end}"),
        }
    }
}

fn missing(claim: &str, node: &str, all: usize) -> Cause {
    Cause {
        reason: "NodeMissing",
        named: Named::cluster("NodeClaim", claim),
        text: format!(
            "{claim}: its node {node} is missing; it is not deleted: {all} are missing at once"
        ),
        ends_at: None,
        used_by: Vec::new(),
    }
}

fn after_missing(claim: &str) -> String {
    format!(
        "a person looks; if the node is gone for good: `kubectl delete nodeclaim {claim}`, which ends \
         its machine"
    )
}

/// A node of a pool that no claim is about, while there are claims that cannot be read: each may be its own. Returns
/// whether there are.
pub(super) fn tell_unread(story: &mut Story, world: &World<'_>) -> bool {
    let unread = &world.doubted.unread;
    let Some(first) = unread.keys().next() else { return false };
    story.fact("drift", "unknown: no NodeClaim that can be read is about it");
    for (claim, why) in unread.iter().take(TOLD_MAX) {
        story.fact("", why.clone());
        story.causes.push(Cause {
            reason: "UnreadableClaim",
            named: Named::cluster("NodeClaim", claim),
            text: why.clone(),
            ends_at: None,
            used_by: Vec::new(),
        });
    }
    story.next = match unread.len() {
        1 => format!("nothing, until NodeClaim `{first}` can be read"),
        _ => "nothing, until its NodeClaim can be read".to_owned(),
    };
    true
}

impl Doubted {
    /// The names of nodes that are missing.
    pub fn missing_nodes(&self) -> impl Iterator<Item = &str> {
        self.missing.values().map(String::as_str)
    }

    fn lost(&self, node: &str) -> Option<(&str, Cause)> {
        let (claim, node) = self.missing.iter().find(|(_, it)| *it == node)?;
        Some((claim, missing(claim, node, self.missing.len())))
    }
}

/// One story for all machines that no claim stands for, one for all claims without their node; none where
/// there are none.
pub fn doubted(doubted: &Doubted) -> Vec<Story> {
    let machines = doubted.machines.iter().map(|(id, it)| (it.cause(id), it.next(id)));
    let all = doubted.missing.len();
    let claims = doubted.missing.iter();
    let claims = claims.map(|(it, node)| (missing(it, node, all), after_missing(it)));
    let machines = many("machines", "orphan", machines.collect());
    machines.into_iter().chain(many("claims", "missing", claims.collect())).collect()
}

fn many(about: &'static str, label: &'static str, all: Vec<(Cause, String)>) -> Option<Story> {
    let mut story = Story::about(about, "");
    story.next.clone_from(&all.first()?.1);
    for (at, (cause, _)) in all.iter().take(TOLD_MAX).enumerate() {
        story.fact(if at == 0 { label } else { "" }, cause.text.clone());
    }
    let more = all.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        story.fact("", format!("and {more} more: `nodemolt status -o json` has them all"));
    }
    story.causes = all.into_iter().map(|it| it.0).collect();
    Some(story)
}

/// Told of the fleet.
pub(super) fn tell_all(story: &mut Story, world: &World<'_>) {
    for it in doubted(world.doubted) {
        story.facts.extend(it.facts);
        story.causes.extend(it.causes);
        if story.next == super::NOTHING_TO_DO {
            story.next = it.next;
        }
    }
}

/// Told of a node that is there, and whose machine no claim stands for.
pub(super) fn tell(story: &mut Story, world: &World<'_>, node: &str) {
    let of = |it: &&(&String, &Orphan)| it.1.node.as_deref() == Some(node);
    let machines: Vec<(&String, &Orphan)> = world.doubted.machines.iter().collect();
    for (machine, orphan) in machines.iter().filter(of) {
        let cause = orphan.cause(machine);
        story.fact("orphan", cause.text.clone());
        story.causes.push(cause);
        story.next = orphan.next(machine);
    }
}

/// Of a node that is missing. `None`: nobody misses one of that name.
pub(super) fn lost(world: &World<'_>, node: &str) -> Option<Story> {
    let (claim, cause) = world.doubted.lost(node)?;
    let mut story = Story::about("node", node);
    story.fact("node", format!("{node}   missing"));
    story.fact("missing", cause.text.clone());
    story.causes.push(cause);
    story.next = after_missing(claim);
    Some(story)
}
