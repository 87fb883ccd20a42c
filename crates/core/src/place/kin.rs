//! Who has to be followed by one of its own kind?
//!
//! `node that leaves × pools → one more of its kind, counted before any other new node`
//!
//! One with a pod that nobody can foresee, as that will do for whatever ran there; every node of a pool that is kept
//! at a number; and one without which a budget would let nobody else go.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodemolt_fit::{
    Quantity,
    capacity::Amounts,
    label,
    node::Node,
    pool::{Machine, NODES, Pool},
};

use super::{Launchable, Placement};

/// Those that have to be followed by one of their own kind, and what that leaves for others.
pub(super) struct Kin<'a> {
    launchable: Launchable<'a>,
    /// What packing may open.
    pub(super) pools: Vec<Pool>,
    /// Of pools that are kept at a number.
    used: BTreeMap<&'a str, Amounts>,
}

impl<'a> Kin<'a> {
    pub(super) fn new(launchable: Launchable<'a>) -> Self {
        let used = launchable.kept.iter().map(|it| (it.name.as_str(), it.used.clone()));
        Self { launchable, pools: launchable.pools.to_vec(), used: used.collect() }
    }

    /// Count one more of its kind, if it needs one. The answer, if there can be none.
    pub(super) fn follow(&mut self, node: &Node, strange: bool) -> Option<Placement> {
        if self.launchable.followed.contains_key(&node.name) {
            return None;
        }
        let own = |it: &Pool| Some(&it.name) == node.pool.as_ref();
        if let Some(pool) = self.launchable.kept.iter().find(|it| own(it)) {
            let used = self.used.entry(&pool.name).or_default();
            let machines = of_kind(pool, node);
            let takes = match affordable(pool, used, &machines) {
                Ok(machine) => &machine.capacity,
                Err(limit) => return Some(Placement::NoKin { pool: pool.name.clone(), limit }),
            };
            if !strange {
                self.pools.push(one_more(pool, used, &machines));
            }
            add_one(used, takes);
            return None;
        }
        let heir = self.launchable.heirs.contains(&node.name);
        if !strange && !heir {
            return None;
        }
        let Some(pool) = self.pools.iter_mut().find(|it| own(it)) else {
            // Of a pod that nobody can foresee it is told as such.
            let pool = node.pool.clone().filter(|_| !strange)?;
            return Some(Placement::NoKin { pool, limit: None });
        };
        let machines = of_kind(pool, node);
        let takes = match affordable(pool, &pool.used, &machines) {
            Ok(machine) => machine.capacity.clone(),
            Err(limit) => return Some(Placement::NoKin { pool: pool.name.clone(), limit }),
        };
        let open = (!strange).then(|| one_more(pool, &pool.used, &machines));
        add_one(&mut pool.used, &takes);
        self.pools.extend(open);
        None
    }
}

/// It comes in any case, so that pods go there before another one is launched for them.
fn one_more(pool: &Pool, used: &Amounts, machines: &[&Machine]) -> Pool {
    let mut limits = pool.limits.clone();
    let nodes = used.get(NODES).copied().unwrap_or_default();
    limits.insert(NODES.to_owned(), nodes.saturating_add(Quantity::from_units(1)));
    let machines = Arc::new(machines.iter().copied().cloned().collect());
    Pool { limits, used: used.clone(), machines, weight: u32::MAX, ..pool.clone() }
}

/// Machines of its own type, or whatever its pool asks for where that cannot be had any more.
fn of_kind<'p>(pool: &'p Pool, node: &Node) -> Vec<&'p Machine> {
    let kind = node.labels.get(label::INSTANCE_TYPE);
    let to_be_had = pool.machines.iter().filter(|it| it.may_be(&pool.requirements));
    let all: Vec<&Machine> = to_be_had.collect();
    match all.iter().find(|it| Some(&it.name) == kind) {
        Some(own) => vec![own],
        None => all,
    }
}

/// The first that the limits have room for, or by how much that of the first is too low; nothing, if there is no machine.
fn affordable<'m>(
    pool: &Pool,
    used: &Amounts,
    machines: &[&'m Machine],
) -> Result<&'m Machine, Option<(String, Quantity)>> {
    let over = |machine: &Machine| {
        pool.limits.iter().find_map(|(name, limit)| {
            let one = if *name == NODES { Some(Quantity::from_units(1)) } else { None };
            let takes = one.or_else(|| machine.capacity.get(name).copied()).unwrap_or_default();
            let total = used.get(name).copied().unwrap_or_default().saturating_add(takes);
            (total > *limit).then(|| (name.clone(), total.saturating_sub(*limit)))
        })
    };
    let mut first = None;
    for machine in machines {
        match over(machine) {
            None => return Ok(machine),
            Some(limit) => first = first.or(Some(limit)),
        }
    }
    Err(first)
}

fn add_one(used: &mut Amounts, takes: &Amounts) {
    let one = (NODES.to_owned(), Quantity::from_units(1));
    for (name, amount) in takes.iter().map(|(name, it)| (name.clone(), *it)).chain([one]) {
        let used = used.entry(name).or_default();
        *used = used.saturating_add(amount);
    }
}
