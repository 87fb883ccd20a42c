//! Which machines could a pool launch?
//!
//! `pool × class × instance types × market → machines with their offerings`

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_api::listing::World;
use nodemolt_fit::capacity::{Amounts, NodeSettings, offer};
use nodemolt_fit::pool::{Machine, Pool};
use nodemolt_fit::type_labels::labels;
use nodemolt_fit::{Family, Quantity, Types};

use super::{Talk, files::Files, market::Market, market::zones_of_class};
use crate::cli;

/// The first Graviton does not boot AL2023's kernel.
const NO_AL2023: &str = "a1.";

/// The pools that can launch nodes for pods, complete.
pub(super) fn pools(
    verb: &cli::Pack,
    files: &Files,
    types: &Types,
    market: &Market,
    world: &World,
    talk: &mut Talk,
) -> Vec<Pool> {
    let mut made: BTreeMap<String, Arc<Vec<Machine>>> = BTreeMap::new();
    let mut pools = Vec::new();
    for file in &files.pools {
        let name = &file.pool.name;
        if file.wire.spec.replicas.is_some() {
            talk.notes.push(format!(
                "pool {name} has a fixed number of nodes and launches none for pods"
            ));
            continue;
        }
        let class = &file.wire.spec.template.spec.node_class_ref;
        let key = format!("{}/{}", class.group, class.name);
        let known = files.classes.get(&key);
        if known.is_none() && !made.contains_key(&key) {
            talk.notes.push(format!(
                "class {key} is not in the files; its nodes are taken for AL2023 with the kubelet's defaults"
            ));
        }
        let machines = made.entry(key).or_insert_with(|| {
            let mut settings =
                known.map_or_else(|| NodeSettings::of(Family::Al2023), |it| it.settings.clone());
            settings.reserved_interfaces = verb.reserved_enis;
            settings.vm_memory_overhead_millionths = verb.vm_memory_overhead_percent;
            let zones = known.map(|it| zones_of_class(&it.wire)).unwrap_or_default();
            Arc::new(machines(types, &settings, market, &zones))
        });
        let machines = Arc::clone(machines);
        pools.push(Pool {
            used: used(file, world),
            daemons: world.daemons.iter().map(|it| Arc::clone(&it.demand)).collect(),
            machines,
            ..file.pool.clone()
        });
    }
    pools
}

fn machines(
    types: &Types,
    settings: &NodeSettings,
    market: &Market,
    zones: &BTreeSet<String>,
) -> Vec<Machine> {
    let family = settings.family;
    let bootable = types.iter().filter(|it| {
        it.kubernetes_arch().is_some()
            && !(family == Family::Al2023 && it.name.starts_with(NO_AL2023))
    });
    let machines = bootable.map(|it| {
        let node = offer(it, settings);
        let labels = labels(it, family).into_iter();
        let labels = labels.filter_map(|it| Some((it.key.to_owned(), vec![it.value?])));
        Machine {
            name: it.name.clone(),
            labels: labels.collect(),
            capacity: node.capacity,
            allocatable: node.allocatable,
            volume_limits: BTreeMap::new(),
            offerings: market.offerings(&it.name, zones),
        }
    });
    machines.filter(|it| !it.offerings.is_empty()).collect()
}

/// What the pool's nodes have, by the nodes in the files or, where none of them is there, by its status.
fn used(file: &super::files::PoolFile, world: &World) -> Amounts {
    if let Some(used) = world.used.get(&file.pool.name) {
        return used.clone();
    }
    let status = serde_json::to_value(&file.wire.status).unwrap_or_default();
    let resources = status["resources"].as_object().into_iter().flatten();
    let amounts = resources.filter_map(|(name, amount)| {
        Some((name.clone(), amount.as_str()?.parse::<Quantity>().ok()?))
    });
    amounts.collect()
}
