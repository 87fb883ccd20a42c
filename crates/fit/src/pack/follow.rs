//! What if somebody did what is told?
//!
//! `pods × nodes × pools × what is in the way of some of them → the same, changed`
//!
//! What is said of a node or a pool is changed there, once; what is said of a pod is changed in all of them, as one template
//! has made them. What can be done in more ways than one, or by nobody, is not tried.

use std::{collections::BTreeSet, sync::Arc};

use super::answer::{Miss, Obstacle, Place};
use crate::{
    capacity::Amounts,
    label,
    node::Node,
    pod::{Demand, Pod, PodId},
    pool::{Machine, Pool},
    quantity::Quantity,
    requirement::{Operator, Written},
    taint::{Taint, Tolerated, Toleration},
};

/// The place that is told of.
enum Site<'s> {
    Node(&'s mut Node),
    Pool(&'s mut Pool),
}

/// Lifts everything that is in the way of these pods. `false`: something of it is not for anybody to do.
pub fn follow(
    miss: &Miss,
    who: &BTreeSet<PodId>,
    pods: &mut [Pod],
    nodes: &mut [Node],
    pools: &mut [Pool],
) -> bool {
    let site = match &miss.place {
        Place::Node(name) => nodes.iter_mut().find(|it| it.name == *name).map(Site::Node),
        Place::Pool(name) => pools.iter_mut().find(|it| it.name == *name).map(Site::Pool),
    };
    let Some(mut site) = site else { return false };
    let mut each = |change: &dyn Fn(&mut Demand)| {
        let meant = pods.iter_mut().filter(|it| who.contains(&it.id()));
        meant.for_each(|it| change(Arc::make_mut(&mut it.demand)));
        true
    };
    miss.obstacles.iter().all(|it| match (it, &mut site) {
        (Obstacle::Skewed { key, skew, .. }, _) => each(&|demand| {
            let meant = demand.spread.iter_mut();
            let meant = meant.filter(|it| it.required && it.topology_key == *key);
            meant.for_each(|it| it.max_skew = it.max_skew.max(*skew));
        }),
        (Obstacle::TooSmall { resource, by }, _) => each(&|demand| {
            if let Some(amount) = demand.requests.get_mut(resource) {
                *amount = amount.less(*by);
            }
        }),
        (Obstacle::Taint(taint), _) if taint.away().is_none() => each(&|demand| {
            let value = Tolerated::Equal(taint.value.clone());
            let (key, effect) = (Some(taint.key.clone()), Some(taint.effect));
            demand.tolerations.push(Toleration { key, value, effect });
        }),
        (Obstacle::Taint(taint), Site::Node(node)) => untaint(node, taint),
        (Obstacle::Taint(taint), Site::Pool(pool)) => {
            pool.taints.retain(|it| it != taint);
            true
        }
        (Obstacle::Label(asked), Site::Node(node)) => label_node(node, asked),
        (Obstacle::Label(asked), Site::Pool(pool)) => allow(pool, asked),
        (Obstacle::Short { resource, by }, Site::Node(node)) => {
            more(&mut node.allocatable, resource, *by)
        }
        (
            Obstacle::Short { resource, by } | Obstacle::TooLargeTogether { resource, by, .. },
            Site::Pool(pool),
        ) => each_machine(pool, |it| more(&mut it.allocatable, resource, *by)),
        (Obstacle::VolumesFull { driver, over }, Site::Node(node)) => {
            attach(node.volume_limits.get_mut(driver), *over)
        }
        (Obstacle::VolumesFull { driver, over }, Site::Pool(pool)) => {
            each_machine(pool, |it| attach(it.volume_limits.get_mut(driver), *over))
        }
        (Obstacle::MinValues { key, have, .. }, Site::Pool(pool)) => {
            let meant = pool.requirements.iter_mut().filter(|it| it.key == *key);
            meant.for_each(|it| it.min_values = it.min_values.map(|need| need.min(*have)));
            true
        }
        (Obstacle::PoolLimit { resource, by }, Site::Pool(pool)) => {
            more(&mut pool.limits, resource, *by)
        }
        (Obstacle::Idle(_), Site::Pool(pool)) => {
            pool.idle = None;
            true
        }
        // Another pod or machine would have to be there, or be gone: nobody knows what that would do besides.
        (_, _) => false,
    })
}

fn untaint(node: &mut Node, taint: &Taint) -> bool {
    node.taints.retain(|it| it != taint);
    node.unschedulable = false;
    node.closed = false;
    true
}

/// Not what pods are spread by: that would be another node.
fn label_node(node: &mut Node, asked: &Written) -> bool {
    let key = label::normalise(&asked.key);
    if label::by_offering(key) || label::by_type(key) || label::not_for_pools(key) {
        return false;
    }
    match (asked.operator, asked.values.first()) {
        (Operator::In, Some(value)) => {
            node.labels.insert(asked.key.clone(), value.clone());
        }
        (Operator::Exists, _) => {
            node.labels.insert(asked.key.clone(), String::new());
        }
        (Operator::NotIn | Operator::DoesNotExist, _) => {
            node.labels.remove(&asked.key);
        }
        (Operator::In | Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte, _) => {
            return false;
        }
    }
    true
}

/// One value more, where the pool lists them.
fn allow(pool: &mut Pool, asked: &Written) -> bool {
    let key = label::normalise(&asked.key);
    if asked.operator != Operator::In || label::not_for_pools(key) {
        return false;
    }
    let of_key = pool.requirements.iter_mut().filter(|it| label::normalise(&it.key) == key);
    let mut listed: Vec<&mut Written> = of_key.collect();
    if listed.is_empty() || listed.iter().any(|it| it.operator != Operator::In) {
        return false;
    }
    for it in &mut listed {
        it.values.extend(asked.values.iter().cloned());
    }
    true
}

fn more(amounts: &mut Amounts, name: &str, by: Quantity) -> bool {
    let amount = amounts.entry(name.to_owned()).or_default();
    *amount = amount.saturating_add(by);
    true
}

fn attach(limit: Option<&mut u32>, over: u64) -> bool {
    let Some(limit) = limit else { return true };
    *limit = limit.saturating_add(u32::try_from(over).unwrap_or(u32::MAX));
    true
}

fn each_machine(pool: &mut Pool, change: impl Fn(&mut Machine) -> bool) -> bool {
    Arc::make_mut(&mut pool.machines).iter_mut().all(change)
}
