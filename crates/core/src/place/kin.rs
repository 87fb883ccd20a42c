//! Who has to be followed by one of its own kind?
//!
//! `node that leaves × pools → one more of its kind, counted before other new nodes of its turn`
//!
//! One with a pod that nobody can foresee, as that will do for whatever ran there; every node of a pool that is kept
//! at a number; and one without which a budget would let nobody else go.
//!
//! What comes is what its pool launches now, and that may be less than what the old node is. So nobody goes with it
//! unseen: pods that are modelled are packed as all others are, with it among the places. For those that nobody can
//! foresee stands who asks for as much as is known of them, and goes there and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_fit::{
    Operator, Quantity, Requirements, Vocabulary, Written,
    capacity::{Amounts, MEMORY},
    label,
    node::Node,
    pack::{NewNode, Why, pack},
    pod::{Demand, Namespace, Pod, PodId},
    pool::{Machine, NODES, Pool},
    selector::{Labels, NODE_NAME_FIELD, NodeTerm},
};

use super::{Followed, Launchable, PENDING, Placement};

/// By this label those who stand for others find the node that comes for them. No node ever has it.
const IN_PLACE_OF: &str = "place.nodemolt.dev/in-place-of";

/// What is given up of a kind, in this order, until there is such a machine: nothing; its type and size;
/// its processor; and where and how it was bought.
const KEPT: [fn(&str) -> bool; 4] = [
    |_| true,
    |key| !label::by_type(key) || key == label::ARCH || key == label::OS,
    |key| !label::by_type(key),
    |key| !label::by_type(key) && !label::by_offering(key),
];

/// What one more of the kind of a node with these labels is asked to be: the same instance type, zone, capacity type and
/// labels, as far as its pool still asks for such a one and it can be had. What has drifted is not copied.
pub fn own_kind(
    asked: &[Written],
    labels: &Labels,
    to_be_had: impl Fn(&[Written]) -> bool,
) -> Vec<Written> {
    let own = own(asked, labels);
    let mut all = Vec::new();
    for keeps in KEPT {
        let kept = own.iter().filter(|(key, _)| keeps(key));
        all = kept.clone().map(|(_, it)| it.clone()).collect();
        // What the old node does not have, or not as the pool asks, is asked as the pool asks it.
        let kept: Vec<&String> = kept.map(|(key, _)| key).collect();
        let open = asked.iter();
        let open = open.filter(|it| !kept.iter().any(|key| *key == label::normalise(&it.key)));
        all.extend(open.cloned());
        if to_be_had(&all) {
            break;
        }
    }
    all
}

/// By which it is told from others, where its pool admits that.
fn own(asked: &[Written], labels: &Labels) -> BTreeMap<String, Written> {
    let vocabulary = Vocabulary::new();
    let admitted = Requirements::read(asked, &vocabulary);
    let of_pool = asked.iter().map(|it| it.key.as_str());
    let own = [label::INSTANCE_TYPE, label::ZONE, label::CAPACITY_TYPE, label::ARCH, label::OS];
    let mut all = BTreeMap::new();
    for key in own.into_iter().chain(of_pool).map(label::normalise) {
        let Some(value) = labels.get(key) else { continue };
        let asked = admitted.get(vocabulary.key(key));
        if asked.is_none_or(|it| it.admits(vocabulary.value(value))) {
            let (operator, values) = (Operator::In, vec![value.clone()]);
            let written = Written { key: key.to_owned(), operator, values, min_values: None };
            all.insert(key.to_owned(), written);
        }
    }
    all
}

/// Those that have to be followed by one of their own kind, and what that leaves for others.
pub(super) struct Kin<'a> {
    launchable: Launchable<'a>,
    /// What packing may open.
    pub(super) pools: Vec<Pool>,
    /// Of pools that are kept at a number.
    used: BTreeMap<&'a str, Amounts>,
    /// By pool, what those take who have their places before.
    before: BTreeMap<String, Amounts>,
}

/// Who nobody can foresee, and who stands for them.
pub(super) struct Trusted {
    pub(super) stand_ins: Vec<(Pod, PodId)>,
    /// The one that comes, if it is not there or on its way already.
    pub(super) kin: Option<Pool>,
}

impl<'a> Kin<'a> {
    pub(super) fn new(launchable: Launchable<'a>) -> Self {
        let used = launchable.kept.iter().map(|it| (it.name.as_str(), it.used.clone()));
        let pools = launchable.pools.to_vec();
        Self { launchable, pools, used: used.collect(), before: BTreeMap::new() }
    }

    /// Whether limits decide if such a node can be followed.
    pub(super) fn limited(&self, node: &Node, strange: bool) -> bool {
        let own = |it: &&Pool| Some(&it.name) == node.pool.as_ref();
        let needs_one = strange || self.launchable.heirs.contains(&node.name);
        let limited = |it: &Pool| !it.limits.is_empty();
        needs_one && self.to_come(node) && self.pools.iter().find(own).is_some_and(limited)
    }

    /// Others come before: what they take of limits is not there for one of a kind.
    pub(super) fn after(&mut self, new_nodes: &[NewNode]) {
        for it in new_nodes {
            let Some(pool) = self.pools.iter().find(|pool| pool.name == it.pool) else { continue };
            let known = pool.machines.iter();
            let could_be = known.filter(|one| it.machines.iter().any(|it| it.machine == one.name));
            let least = could_be.min_by_key(|it| takes(pool, it));
            let least = least.map(|it| it.capacity.clone()).unwrap_or_default();
            add_one(self.before.entry(it.pool.clone()).or_default(), &least);
        }
    }

    /// Whether what follows it is still to be decided.
    fn to_come(&self, node: &Node) -> bool {
        self.launchable.followed.get(&node.name).is_none_or(|it| it.by.is_none())
    }

    /// Count one more of its kind, if it needs one, all of its pods being modelled. The answer, if there can be none.
    pub(super) fn follow(&mut self, node: &Node) -> Option<Placement> {
        if !self.to_come(node) {
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
            self.pools.push(one_more(pool, used, &machines));
            add_one(used, takes);
            return None;
        }
        if !self.launchable.heirs.contains(&node.name) {
            return None;
        }
        let Some(pool) = self.pools.iter_mut().find(|it| own(it)) else {
            return Some(Placement::NoKin { pool: node.pool.clone()?, limit: None });
        };
        let machines = of_kind(pool, node);
        let used = with(&pool.used, self.before.get(&pool.name));
        let takes = match affordable(pool, &used, &machines) {
            Ok(machine) => machine.capacity.clone(),
            Err(limit) => return Some(Placement::NoKin { pool: pool.name.clone(), limit }),
        };
        let open = one_more(pool, &pool.used, &machines);
        add_one(&mut pool.used, &takes);
        self.pools.push(open);
        None
    }

    /// Count one more of the kind of a node, for pods of it that nobody can foresee; `others` of its pods may go there as
    /// well. The answer, if it cannot come, or is no place for one of them as far as is known of him.
    pub(super) fn trust(
        &mut self,
        node: &Node,
        (strange, others): (&[Pod], &[Pod]),
        pod: &PodId,
        order: u8,
    ) -> Result<Trusted, Placement> {
        if let Some(Followed { by: Some(by), .. }) = self.launchable.followed.get(&node.name) {
            // Who is not followed by anybody is told as such.
            let strange = strange.iter().filter(|_| !by.is_empty());
            let stand_ins = strange.map(|it| (beside(stand_in(it, node, order), by), it.id()));
            return Ok(Trusted { stand_ins: stand_ins.collect(), kin: None });
        }
        let Some(own) = &node.pool else {
            let why = Why::NoPlace { nearest: None };
            return Err(Placement::Unplaced { pod: pod.clone(), why });
        };
        let no_kin = |limit| Placement::NoKin { pool: own.clone(), limit };
        let kept = self.launchable.kept.iter().find(|it| it.name == *own);
        let mut ordinary = self.pools.iter().take(self.launchable.pools.len());
        let at = ordinary.position(|it| it.name == *own);
        let Some(pool) = at.map(|at| &self.pools[at]).or(kept) else {
            return Err(no_kin(None));
        };
        let so_far =
            kept.map_or(&pool.used, |it| self.used.get(it.name.as_str()).unwrap_or(&it.used));
        let used = with(so_far, self.before.get(own));
        let had = |asked: &[Written]| pool.machines.iter().any(|it| it.may_be(asked));
        let asked = own_kind(&pool.requirements, &node.labels, had);
        let machines = pool.machines.iter().filter(|it| it.may_be(&asked));
        let machines: Vec<&Machine> = machines.collect();
        affordable(pool, &used, &machines).map_err(no_kin)?;
        let machines = machines.into_iter().filter(|it| over(pool, &used, it).is_none());
        let machines: Vec<Machine> = machines.map(|it| trusting(it, node, strange)).collect();
        let mut kin = one_more(pool, so_far, &machines.iter().collect::<Vec<_>>());
        kin.requirements = asked;
        kin.labels.insert(IN_PLACE_OF.to_owned(), node.name.clone());
        // What comes for them in any case is not for who would be there sooner.
        let stand_ins: Vec<(Pod, PodId)> =
            strange.iter().map(|it| (pinned(stand_in(it, node, PENDING), node), it.id())).collect();
        let alone: Vec<Pod> = stand_ins.iter().map(|(it, _)| it.clone()).collect();
        let tried = pack(&alone, &[], std::slice::from_ref(&kin));
        if let Some(lost) = tried.unplaced.into_iter().next() {
            let meant = stand_ins.iter().find(|(it, _)| it.id() == lost.pod);
            let pod = meant.map_or_else(|| pod.clone(), |(_, it)| it.clone());
            return Err(Placement::Unplaced { pod, why: lost.why });
        }
        let takes = frugal(&mut kin, &alone, others);
        if let Some(pool) = kept {
            add_one(self.used.entry(&pool.name).or_default(), &takes);
        } else {
            let pool = at.and_then(|at| self.pools.get_mut(at));
            add_one(&mut pool.ok_or_else(|| no_kin(None))?.used, &takes);
        }
        self.pools.push(kin.clone());
        Ok(Trusted { stand_ins, kin: Some(kin) })
    }
}

/// Asks for as much as is known of a pod that nobody can foresee. What it wants of other pods is taken on trust; until
/// it is gone it keeps them away where it is, too.
fn stand_in(pod: &Pod, node: &Node, order: u8) -> Pod {
    let known = Demand::clone(&pod.demand);
    let demand = Demand {
        labels: known.labels,
        // The node that comes for it is there before others look for room.
        priority: i32::MAX,
        requests: known.requests,
        node_selector: known.node_selector,
        node_terms: known.node_terms,
        tolerations: known.tolerations,
        host_ports: known.host_ports,
        volumes: known.volumes,
        ..Demand::default()
    };
    // No pod is called so.
    let called = format!("{} of {}", pod.name, node.name);
    Pod { order, ..Pod::new(&pod.namespace, &called, &Arc::new(demand)) }
}

/// The same, with a place on the one that comes for this node and nowhere else.
fn pinned(stand_in: Pod, node: &Node) -> Pod {
    let mut demand = Demand::clone(&stand_in.demand);
    demand.node_selector.insert(IN_PLACE_OF.to_owned(), node.name.clone());
    Pod { demand: Arc::new(demand), ..stand_in }
}

/// The same, with a place on one of these nodes and nowhere else.
fn beside(stand_in: Pod, nodes: &BTreeSet<String>) -> Pod {
    let mut demand = Demand::clone(&stand_in.demand);
    let values = nodes.iter().cloned().collect();
    let (key, operator) = (NODE_NAME_FIELD.to_owned(), Operator::In);
    let named = Written { key, operator, values, min_values: None };
    let written = demand.node_terms.take();
    // A term without expressions admits no node, and would with one.
    let asks = |it: &NodeTerm| !it.labels.is_empty() || !it.fields.is_empty();
    let mut terms = written
        .map_or_else(|| vec![NodeTerm::default()], |all| all.into_iter().filter(asks).collect());
    for term in &mut terms {
        term.fields.push(named.clone());
    }
    demand.node_terms = Some(terms);
    Pod { demand: Arc::new(demand), ..stand_in }
}

/// Of its own type it has the memory that they have where they are, whatever is reckoned of it beforehand.
fn trusting(machine: &Machine, node: &Node, strange: &[Pod]) -> Machine {
    let mut machine = machine.clone();
    if strange.is_empty() || node.labels.get(label::INSTANCE_TYPE) != Some(&machine.name) {
        return machine;
    }
    let daemons = node.pods.iter().filter(|it| it.tied);
    let there = daemons.chain(strange).filter_map(|it| it.demand.requests.get(MEMORY));
    let there = there.fold(Quantity::ZERO, |sum, it| sum.saturating_add(*it));
    let has = node.allocatable.get(MEMORY).copied().unwrap_or_default();
    let reckoned = machine.allocatable.entry(MEMORY.to_owned()).or_default();
    *reckoned = (*reckoned).max(there.min(has));
    machine
}

/// Where there are limits and it may be one of several machines: let it be none larger than it has to be. What it takes.
fn frugal(kin: &mut Pool, alone: &[Pod], others: &[Pod]) -> Amounts {
    let resources = kin.limits.keys().filter(|it| *it != NODES).count();
    if resources > 0 && kin.machines.len() > 1 {
        let all: Vec<Pod> = alone.iter().chain(others).cloned().collect();
        let opened = pack(&all, &[], std::slice::from_ref(kin)).new_nodes.into_iter().next();
        let will_do = |it: &&Machine| {
            let choices = opened.as_ref().map(|it| &it.machines);
            choices.is_none_or(|all| all.iter().any(|one| one.machine == it.name))
        };
        let least = kin.machines.iter().filter(will_do).min_by_key(|it| takes(kin, it));
        if let Some(least) = least.map(|it| takes(kin, it)) {
            let no_more =
                |it: &&Machine| takes(kin, it).iter().zip(&least).all(|(it, least)| it <= least);
            kin.machines = Arc::new(kin.machines.iter().filter(no_more).cloned().collect());
        }
    }
    let all = kin.machines.iter();
    all.max_by_key(|it| takes(kin, it)).map(|it| it.capacity.clone()).unwrap_or_default()
}

/// What a machine takes of limited resources.
fn takes(pool: &Pool, machine: &Machine) -> Vec<Quantity> {
    let limited = pool.limits.keys().filter(|it| *it != NODES);
    limited.map(|it| machine.capacity.get(it).copied().unwrap_or_default()).collect()
}

/// What the one that comes for a node will be, where nobody is sent there.
pub(super) fn vacant(kin: &Pool, node: &str) -> Option<NewNode> {
    let selector = Labels::from([(IN_PLACE_OF.to_owned(), node.to_owned())]);
    let demand = Arc::new(Demand { node_selector: selector, ..Demand::default() });
    let anybody = Pod::new(&Arc::new(Namespace::named("")), "", &demand);
    let untainted = Pool { taints: Vec::new(), ..kin.clone() };
    let opened = pack(&[anybody], &[], &[untainted]).new_nodes.into_iter().next()?;
    Some(NewNode { pods: Vec::new(), requests: Amounts::new(), ..opened })
}

/// For which node it comes, if for one. That is then not said of it any more.
pub(super) fn comes_for(new: &mut NewNode) -> Option<String> {
    let said = new.requirements.iter().find(|it| it.key == IN_PLACE_OF)?;
    let node = said.values.first()?.clone();
    let others = new.requirements.iter().filter(|it| it.key != IN_PLACE_OF);
    new.requirements = Arc::new(others.cloned().collect());
    Some(node)
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
    let mut first = None;
    for machine in machines {
        match over(pool, used, machine) {
            None => return Ok(machine),
            Some(limit) => first = first.or(Some(limit)),
        }
    }
    Err(first)
}

/// The limit that one more such machine would be over, and by how much.
fn over(pool: &Pool, used: &Amounts, machine: &Machine) -> Option<(String, Quantity)> {
    pool.limits.iter().find_map(|(name, limit)| {
        let one = if *name == NODES { Some(Quantity::from_units(1)) } else { None };
        let takes = one.or_else(|| machine.capacity.get(name).copied()).unwrap_or_default();
        let total = used.get(name).copied().unwrap_or_default().saturating_add(takes);
        (total > *limit).then(|| (name.clone(), total.saturating_sub(*limit)))
    })
}

fn with(used: &Amounts, more: Option<&Amounts>) -> Amounts {
    let mut sum = used.clone();
    for (name, amount) in more.into_iter().flatten() {
        let used = sum.entry(name.clone()).or_default();
        *used = used.saturating_add(*amount);
    }
    sum
}

fn add_one(used: &mut Amounts, takes: &Amounts) {
    let one = (NODES.to_owned(), Quantity::from_units(1));
    for (name, amount) in takes.iter().map(|(name, it)| (name.clone(), *it)).chain([one]) {
        let used = used.entry(name).or_default();
        *used = used.saturating_add(amount);
    }
}
