//! What room does a node have?
//!
//! `node = what it offers + who is on it`

use std::collections::BTreeMap;

use crate::{
    capacity::Amounts,
    pod::{Pod, Volume},
    selector::Labels,
    taint::{Effect, Taint, UNSCHEDULABLE},
};

/// A node that exists, or that was asked for and has not come up yet.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a node can be all of these at once, or none; none follows from another"
)]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    /// The pool that it belongs to, if any.
    pub pool: Option<String>,
    pub labels: Labels,
    pub taints: Vec<Taint>,
    /// Taints that somebody will remove when the node is set up.
    pub startup_taints: Vec<Taint>,
    /// Set up: from then on a startup taint is a taint like any other.
    pub initialised: bool,
    /// A person has cordoned it.
    pub unschedulable: bool,
    /// Nobody is sent there, whatever he tolerates: it does not answer, it goes, or it is kept for others. Like
    /// a cordon to those who tolerate none.
    pub closed: bool,
    /// It is to be replaced itself. Who moves once is sent there only if nothing else can take it: it would have to
    /// move again.
    pub fades: bool,
    /// It will not be there: neither its room nor its pods count. Until it is gone its zone, and
    /// whatever else pods are spread over, counts as a domain without them.
    pub leaving: bool,
    /// With `pods`, the number of pods it admits.
    pub allocatable: Amounts,
    /// For pods of `DaemonSet`s that are still to come.
    pub set_aside: Amounts,
    /// How many volumes a CSI driver can attach. A driver that is not listed has no limit.
    pub volume_limits: BTreeMap<String, u32>,
    /// Volumes that are attached, whether or not a pod here has them: one that is gone may have left some.
    pub attached: Vec<Volume>,
    pub pods: Vec<Pod>,
    /// What it says cannot be read, so nobody is sent there: why, in words.
    pub unread: Option<String>,
}

impl Node {
    /// The taints that count: on a node that is not set up yet, all but those that will go away.
    pub fn standing_taints(&self) -> Vec<Taint> {
        self.taints_if(self.unschedulable || self.closed)
    }

    /// The same with a cordon, or without.
    pub(crate) fn taints_if(&self, cordoned: bool) -> Vec<Taint> {
        let goes = |it: &Taint| {
            let startup = self
                .startup_taints
                .iter()
                .any(|other| other.key == it.key && other.effect == it.effect);
            !self.initialised && (startup || it.passing())
        };
        let mut standing: Vec<Taint> = self.taints.iter().filter(|it| !goes(it)).cloned().collect();
        if cordoned && !standing.iter().any(|it| it.key == UNSCHEDULABLE) {
            standing.push(Taint::new(UNSCHEDULABLE, "", Effect::NoSchedule));
        }
        standing
    }
}
