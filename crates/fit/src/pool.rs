//! Which nodes could be launched?
//!
//! `pool = what its nodes look like + the machines they can be + how much of it all may exist`

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    Family, Types,
    attachments::volume_limits,
    capacity::{Amounts, NodeSettings, offer},
    label,
    pod::Pod,
    requirement::Written,
    selector::{Labels, matches},
    taint::Taint,
    type_labels,
};

/// Nodes that do not exist yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    pub name: String,
    /// The heaviest pool is tried first.
    pub weight: u32,
    /// Labels of the template. Every node has them.
    pub labels: Labels,
    pub taints: Vec<Taint>,
    /// Removed when a node is set up: they keep nobody away here.
    pub startup_taints: Vec<Taint>,
    /// With `min_values` where the pool writes them.
    pub requirements: Vec<Written>,
    /// How much may exist in all: `cpu`, `memory`, … and `nodes`. What is not listed is unlimited.
    pub limits: Amounts,
    /// How much exists, in the same words: all of the pool's nodes, those that leave included.
    pub used: Amounts,
    /// Pods of `DaemonSet`s, one each: every node gets them that they tolerate and select.
    pub daemons: Vec<Pod>,
    pub machines: Arc<Vec<Machine>>,
    /// It launches no nodes for pods: why, in words. It can still be the place that was nearest.
    pub idle: Option<String>,
}

/// The resource under which `limits` and `used` count nodes.
pub const NODES: &str = "nodes";

/// An instance type as this pool would launch it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    pub name: String,
    /// What the type decides, by label. Usually one value each; a label that is not here is absent.
    pub labels: BTreeMap<String, Vec<String>>,
    /// What counts against the limits of the pool.
    pub capacity: Amounts,
    /// With `pods`, the number of pods it admits.
    pub allocatable: Amounts,
    /// How many volumes a CSI driver can attach. A driver that is not listed has no limit.
    pub volume_limits: BTreeMap<String, u32>,
    pub offerings: Vec<Offering>,
}

/// One way to buy a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offering {
    /// Zone, capacity type, and what else is decided by the purchase.
    pub labels: Labels,
    pub price: Option<Price>,
    /// No, if there is no capacity just now.
    pub available: bool,
    /// For reserved capacity: how many more can be launched. `None`: no such number.
    pub remaining: Option<u32>,
    /// It could be bought, and none of the images that there are would boot on it.
    pub imageless: bool,
}

/// Billionths of a dollar per hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(pub u64);

const NANODOLLARS: u64 = 1_000_000_000;

/// The first Graviton does not boot AL2023's kernel.
const NO_AL2023: &str = "a1.";

/// The machines that nodes with these settings can be, each with the ways in which it can be had. Those
/// that cannot be had at all are left out.
pub fn machines(
    types: &Types,
    settings: &NodeSettings,
    mut offerings: impl FnMut(&str) -> Vec<Offering>,
) -> Vec<Machine> {
    let family = settings.family;
    let bootable = types.iter().filter(|it| {
        it.kubernetes_arch().is_some()
            && !(family == Family::Al2023 && it.name.starts_with(NO_AL2023))
    });
    let with_offerings = bootable.map(|it| (it, offerings(&it.name)));
    with_offerings
        .filter(|(_, offerings)| !offerings.is_empty())
        .map(|(it, offerings)| {
            let node = offer(it, settings);
            let labels = type_labels::labels(it, family).into_iter();
            let labels = labels.filter_map(|it| Some((it.key.to_owned(), vec![it.value?])));
            Machine {
                name: it.name.clone(),
                labels: labels.collect(),
                capacity: node.capacity,
                allocatable: node.allocatable,
                volume_limits: volume_limits(it, settings),
                offerings,
            }
        })
        .collect()
}

impl Machine {
    /// Whether its type can have such labels. What the purchase decides, or the pool, does not rule it out.
    pub fn labelled(&self, asked: &Written) -> bool {
        let values = self.labels.get(label::normalise(&asked.key));
        values.is_none_or(|it| it.iter().any(|it| matches(asked, Some(it))))
    }

    /// Whether its type is what all of this asks for. A label that it does not have is known to be absent; the purchase
    /// is another question.
    pub fn is(&self, asked: &[Written]) -> bool {
        asked.iter().filter(|it| !label::by_offering(&it.key)).all(|it| {
            match self.labels.get(label::normalise(&it.key)) {
                Some(values) => values.iter().any(|value| matches(it, Some(value))),
                None => matches(it, None),
            }
        })
    }

    /// Whether it can be had now as all of this asks, by its type and by some way to buy it.
    pub fn may_be(&self, asked: &[Written]) -> bool {
        let bought = |offering: &Offering| {
            asked.iter().all(|it| {
                let has = offering.labels.get(label::normalise(&it.key));
                has.is_none_or(|has| matches(it, Some(has)))
            })
        };
        let mut open = self.offerings.iter().filter(|it| it.open());
        asked.iter().all(|it| self.labelled(it)) && open.any(bought)
    }
}

impl Offering {
    pub fn new(zone: &str, capacity_type: &str, price: Option<Price>) -> Self {
        let labels = [(label::ZONE, zone), (label::CAPACITY_TYPE, capacity_type)];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Self { labels: labels.into(), price, available: true, ..Self::default() }
    }

    /// Whether a machine can be had this way now.
    pub fn open(&self) -> bool {
        self.available && !self.imageless && self.remaining != Some(0)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / NANODOLLARS, self.0 % NANODOLLARS);
        let digits = format!("{rest:09}");
        let digits = digits.trim_end_matches('0');
        write!(f, "${whole}.{digits:0<4}")
    }
}
