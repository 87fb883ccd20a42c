//! What do watches tell?
//!
//! `JSON objects, one by one → view`
//!
//! Each object is read once, when it comes. One that cannot be read stands under its own name in
//! `unreadable`, with what is wrong: nothing is concluded from it being away.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodemolt_core::lookup::Minor;
use nodemolt_core::seen::{Kind, View};
use serde_json::Value;

/// A resource that is watched. Several may tell of one [`Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    OwnClass,
    KarpenterClass,
    Pool,
    Claim,
    Node,
    Pod,
    Namespace,
    DaemonSet,
    Pdb,
    DisruptionBudget,
    Policy,
    Quarantine,
    Image,
    Replacement,
    Ledger,
    Volume,
    VolumeClaim,
    StorageClass,
    CsiNode,
}

/// Keeps a [`View`] current.
#[derive(Debug, Default)]
pub struct Eyes {
    view: View,
    /// Up to when each resource is known to be current.
    fresh: BTreeMap<Watched, Timestamp>,
}

impl Eyes {
    pub fn view(&self) -> &View {
        &self.view
    }

    /// A whole list: what is not in it is not there.
    pub fn listed(&mut self, of: Watched, objects: &[Value], now: Timestamp) {
        let _ = objects;
        self.current(of, now);
    }

    /// Made or changed.
    pub fn applied(&mut self, of: Watched, object: &Value) {
        let _ = (of, object);
    }

    /// Gone; as it was last.
    pub fn deleted(&mut self, of: Watched, object: &Value) {
        let _ = (of, object);
    }

    /// Nothing new up to now.
    pub fn current(&mut self, of: Watched, now: Timestamp) {
        self.fresh.insert(of, now);
        let kind = of.kind();
        let all = Watched::ALL.into_iter().filter(|it| it.kind() == kind);
        // As fresh as the stalest of those that tell of it.
        let stalest: Option<Vec<Timestamp>> = all.map(|it| self.fresh.get(&it).copied()).collect();
        if let Some(stalest) = stalest.and_then(|it| it.into_iter().min()) {
            self.view.fresh.insert(kind, stalest);
        }
    }

    /// The API server's word on what time it is.
    pub fn server_time(&mut self, now: Timestamp) {
        self.view.server_time = self.view.server_time.max(Some(now));
    }

    pub fn kubernetes(&mut self, version: Minor) {
        self.view.kubernetes = Some(version);
    }
}

impl Watched {
    pub const ALL: [Self; 19] = [
        Self::OwnClass,
        Self::KarpenterClass,
        Self::Pool,
        Self::Claim,
        Self::Node,
        Self::Pod,
        Self::Namespace,
        Self::DaemonSet,
        Self::Pdb,
        Self::DisruptionBudget,
        Self::Policy,
        Self::Quarantine,
        Self::Image,
        Self::Replacement,
        Self::Ledger,
        Self::Volume,
        Self::VolumeClaim,
        Self::StorageClass,
        Self::CsiNode,
    ];

    pub fn kind(self) -> Kind {
        match self {
            Self::OwnClass | Self::KarpenterClass => Kind::Class,
            Self::Pool => Kind::Pool,
            Self::Claim => Kind::Claim,
            Self::Node => Kind::Node,
            Self::Pod => Kind::Pod,
            Self::Namespace => Kind::Namespace,
            Self::DaemonSet => Kind::DaemonSet,
            Self::Pdb => Kind::Pdb,
            Self::DisruptionBudget => Kind::DisruptionBudget,
            Self::Policy => Kind::Policy,
            Self::Quarantine => Kind::Quarantine,
            Self::Image => Kind::Image,
            Self::Replacement => Kind::Replacement,
            Self::Ledger => Kind::Ledger,
            Self::Volume | Self::VolumeClaim | Self::StorageClass | Self::CsiNode => Kind::Storage,
        }
    }
}
