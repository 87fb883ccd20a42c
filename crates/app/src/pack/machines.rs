//! Which machines could a pool launch?
//!
//! `pool × class × instance types × market → machines with their offerings`

use std::collections::BTreeMap;
use std::sync::Arc;

use nodemolt_api::listing::World;
use nodemolt_api::nodeclaim::NodeClaim;
use nodemolt_api::nodepool::NodePool;
use nodemolt_fit::capacity::{Amounts, NodeSettings};
use nodemolt_fit::pack::{Why, pack};
use nodemolt_fit::pod::{Demand, Namespace, Pod};
use nodemolt_fit::pool::{Machine, NODES, Pool, machines};
use nodemolt_fit::taint::{Tolerated, Toleration};
use nodemolt_fit::{Family, Operator, Quantity, Types, label};

use super::{Talk, files::Files, market::Market, market::zones_of_class};
use crate::cli;

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
        if let Some(why) = launches_none(&file.wire) {
            talk.notes.push(format!("pool {name} launches no nodes: {why}"));
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
            Arc::new(machines(types, &settings, |it| market.offerings(it, &zones)))
        });
        let machines = Arc::clone(machines);
        warn_of_unknown_values(&file.pool, types, market, talk);
        let pool = Pool {
            used: used(file, files, world),
            daemons: world.daemons.iter().map(|it| Arc::clone(&it.demand)).collect(),
            machines,
            ..file.pool.clone()
        };
        if offers_nothing(&pool) {
            talk.warnings.push(format!(
                "pool {name} can launch nothing: no instance type in any zone meets its requirements"
            ));
        }
        pools.push(pool);
    }
    let on_their_way = files.claims.iter().filter(|it| on_its_way(it, world)).count();
    if on_their_way > 0 {
        talk.notes.push(format!(
            "NodeClaims whose node is not there yet count towards limits, and no pod is planned onto them: {on_their_way}"
        ));
    }
    pools
}

/// As Karpenter has it: neither a pool that goes nor one that is not ready.
fn launches_none(pool: &NodePool) -> Option<String> {
    if pool.metadata.deletion_timestamp.is_some() {
        return Some("it is being deleted".to_owned());
    }
    let conditions = pool.status.iter().flat_map(|it| it.conditions.iter().flatten());
    let not_ready = conditions.into_iter().find(|it| it.kind == "Ready" && it.status == "False")?;
    let why = not_ready.message.as_deref().or(not_ready.reason.as_deref());
    let why = why.filter(|it| !it.is_empty()).map(|it| format!(" ({it})"));
    Some(format!("its status says that it is not ready{}", why.unwrap_or_default()))
}

/// Names in a pool that nothing has: most often mistyped.
fn warn_of_unknown_values(pool: &Pool, types: &Types, market: &Market, talk: &mut Talk) {
    for written in pool.requirements.iter().filter(|it| it.operator == Operator::In) {
        let (what, unknown): (&str, Vec<&str>) = match label::normalise(&written.key) {
            label::INSTANCE_TYPE => {
                let values = written.values.iter().filter(|it| types.find(it).is_err());
                ("instance types that are not known here", values.map(String::as_str).collect())
            }
            label::ZONE => {
                let values = written.values.iter().filter(|it| !market.knows_zone(it));
                ("zones in which no node can be launched", values.map(String::as_str).collect())
            }
            _ => continue,
        };
        if !unknown.is_empty() {
            talk.warnings.push(format!("pool {} names {what}: {}", pool.name, unknown.join(", ")));
        }
    }
}

/// Whether not even a pod that asks for nothing would get a node of it.
fn offers_nothing(pool: &Pool) -> bool {
    let anything = Toleration { key: None, value: Tolerated::Any, effect: None };
    let demand = Demand { tolerations: vec![anything], ..Demand::default() };
    let pod = Pod::new(&Arc::new(Namespace::named("probe")), "probe", &Arc::new(demand));
    let found = pack(&[pod], &[], std::slice::from_ref(pool));
    // A pool that has machines at all is at least the nearest place.
    found.unplaced.iter().any(|it| matches!(it.why, Why::NoPlace { nearest: None }))
}

/// Launched or asked for, and not among the nodes.
fn on_its_way(claim: &NodeClaim, world: &World) -> bool {
    let node = claim.status.as_ref().and_then(|it| it.node_name.as_deref());
    !node.is_some_and(|node| world.nodes.iter().any(|it| it.name == node))
}

/// What the pool's nodes have: by the nodes and claims in the files, or by its status if that says more,
/// as it does where not all of them are in the files.
fn used(file: &super::files::PoolFile, files: &Files, world: &World) -> Amounts {
    let mut used = world.used.get(&file.pool.name).cloned().unwrap_or_default();
    let mut add = |name: &str, amount: Quantity| {
        let sum = used.entry(name.to_owned()).or_insert(Quantity::ZERO);
        *sum = sum.saturating_add(amount);
    };
    let of_pool =
        |it: &&NodeClaim| it.metadata.labels.get(label::NODEPOOL) == Some(&file.pool.name);
    for claim in files.claims.iter().filter(of_pool).filter(|it| on_its_way(it, world)) {
        add(NODES, Quantity::from_units(1));
        let capacity = claim.status.iter().flat_map(|it| it.capacity.iter().flatten());
        for (name, amount) in capacity {
            // What a controller wrote is not for a person to correct.
            if let Ok(amount) = amount.0.parse::<Quantity>() {
                add(name, amount);
            }
        }
    }
    let resources = file.wire.status.iter().flat_map(|it| it.resources.iter().flatten());
    for (name, amount) in resources {
        if let Ok(amount) = amount.0.parse::<Quantity>() {
            let most = used.entry(name.clone()).or_insert(amount);
            *most = (*most).max(amount);
        }
    }
    used
}
