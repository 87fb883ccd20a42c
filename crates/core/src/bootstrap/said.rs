//! What do a class and a pool say of what a node is told at boot?
//!
//! `class × pool × cluster → settings`
//!
//! Whoever reads manifests makes the two pieces; whoever renders puts them together.

use std::collections::BTreeMap;

use nodemolt_fit::{Family, label};

use super::{Cluster, Kubelet, Placement, Settings, Taint};
use crate::launch::CapacityType;

/// A node has its taints from what it is told at boot; no controller need bring them.
const TAINTS_ARE_THERE: (&str, &str) = ("karpenter.sh/do-not-sync-taints", "true");

/// A node has it until its controller has seen it.
const UNREGISTERED: (&str, &str) = ("karpenter.sh/unregistered", "NoExecute");

/// What a class says.
#[derive(Debug, Clone, PartialEq)]
pub struct OfClass {
    pub name: String,
    /// The label that names the class on a node: under the class's own group, as Karpenter has it, so
    /// that one name in both groups is two classes.
    pub label: String,
    pub family: Family,
    pub kubelet: Kubelet,
    pub instance_store_raid0: bool,
    pub placement: Placement,
    /// `userData`, empty where there is none.
    pub user_part: String,
    /// The version in the alias, if there is one.
    pub release: Option<String>,
}

/// What a pool says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfPool {
    pub name: String,
    /// The class that it refers to, and the group of that.
    pub class: (String, String),
    /// Of the template; and of each requirement that leaves one value, which every node then has.
    pub labels: BTreeMap<String, String>,
    /// Where the requirements leave but one.
    pub capacity_type: Option<String>,
    /// Those that stay, then those that something takes away.
    pub taints: Vec<Taint>,
    /// The field of the pool that says a label.
    pub label_fields: BTreeMap<String, String>,
    /// And those that say the taints.
    pub taint_fields: Vec<String>,
}

/// All of it together. Without a pool its labels and taints are left out.
pub fn settings(
    cluster: Cluster,
    class: &OfClass,
    pool: Option<&OfPool>,
    capacity_type: Option<CapacityType>,
) -> Settings {
    let mut labels = pool.map(|it| it.labels.clone()).unwrap_or_default();
    let capacity_type = capacity_type
        .map(|it| it.to_string())
        .or_else(|| pool.and_then(|it| it.capacity_type.clone()));
    labels.insert(class.label.clone(), class.name.clone());
    labels.extend(pool.map(|it| (label::NODEPOOL.to_owned(), it.name.clone())));
    labels.extend(capacity_type.map(|it| (label::CAPACITY_TYPE.to_owned(), it)));
    let (key, value) = TAINTS_ARE_THERE;
    labels.insert(key.to_owned(), value.to_owned());
    let mut taints = pool.map(|it| it.taints.clone()).unwrap_or_default();
    let (key, effect) = UNREGISTERED;
    if !taints.iter().any(|it| it.key == key && it.effect == effect) {
        taints.push(Taint { key: key.to_owned(), value: None, effect: effect.to_owned() });
    }
    Settings {
        cluster,
        labels,
        taints,
        kubelet: class.kubelet.clone(),
        instance_store_raid0: class.instance_store_raid0,
        placement: class.placement,
        release: class.release.clone(),
    }
}
