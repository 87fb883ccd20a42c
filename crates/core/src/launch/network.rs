//! Which network interfaces does a node have?
//!
//! `what the class writes, else one per EFA, else one → interfaces`
//!
//! They are always written down, because security groups stand on them.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::bootstrap::IpFamily;

use super::words::{InterfaceKind, SecurityGroupId, WrittenKind};
use super::{Occasion, Settings};

/// One of `spec.networkInterfaces`, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WrittenInterface {
    pub card: i64,
    pub device: i64,
    pub kind: WrittenKind,
}

/// Seconds after which idle connections are forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ConnectionTracking {
    pub tcp_established: Option<i64>,
    pub udp_stream: Option<i64>,
    pub udp: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Interface {
    /// Absent for the one that every node has: not every type can be told about cards.
    pub card: Option<i64>,
    pub device: i64,
    pub kind: InterfaceKind,
    pub security_groups: BTreeSet<SecurityGroupId>,
    /// Absent, the subnet decides.
    pub public_ip: Option<bool>,
    /// One IPv6 address, which is the primary one.
    pub ipv6: bool,
    pub prefixes: Option<Prefixes>,
    pub connection_tracking: Option<ConnectionTracking>,
}

/// Blocks of addresses for pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Prefixes {
    pub ipv6: bool,
    pub count: i64,
}

pub(super) fn interfaces(settings: &Settings, occasion: &Occasion) -> Vec<Interface> {
    let make = |card, device, kind| interface(settings, occasion, card, device, kind);
    let mut all: Vec<Interface> = if !settings.interfaces.is_empty() {
        let written = settings.interfaces.iter();
        written.map(|it| make(Some(it.card), it.device, kind(it.kind))).collect()
    } else if occasion.efa > 0 {
        // Only the first card has a device 0; on all others it is taken by the card itself.
        let cards = 0..i64::from(occasion.efa);
        cards.map(|it| make(Some(it), i64::from(it > 0), InterfaceKind::Efa)).collect()
    } else {
        vec![make(None, 0, InterfaceKind::Interface)]
    };
    all.sort();
    all
}

fn kind(written: WrittenKind) -> InterfaceKind {
    match written {
        WrittenKind::Interface => InterfaceKind::Interface,
        WrittenKind::EfaOnly => InterfaceKind::EfaOnly,
    }
}

fn interface(
    settings: &Settings,
    occasion: &Occasion,
    card: Option<i64>,
    device: i64,
    kind: InterfaceKind,
) -> Interface {
    // An efa-only interface has no address, so nothing that goes with one.
    let addressed = kind != InterfaceKind::EfaOnly;
    // EC2 gives a public address to the first interface and to no other.
    let first = device == 0 && card.unwrap_or(0) == 0;
    let ipv6 = occasion.ip_family == IpFamily::V6;
    let count = settings.ip_prefixes.filter(|it| *it > 0 && addressed);
    Interface {
        card,
        device,
        kind,
        security_groups: occasion.security_groups.clone(),
        public_ip: settings.public_ip.filter(|_| first && addressed),
        ipv6: ipv6 && addressed,
        prefixes: count.map(|count| Prefixes { ipv6, count }),
        connection_tracking: settings.connection_tracking.filter(|_| addressed),
    }
}
