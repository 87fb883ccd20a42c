//! What is said about a finished packing?
//!
//! `state → placed + new nodes + unplaced`

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    answer::{Choice, Home, NewNode, Packing, Placed, Unplaced, Why},
    bits::Bits,
    measure::Room,
    miss,
    state::{OpenNode, State},
    template::Template,
};
use crate::{
    capacity::{Amounts, PODS},
    label,
    requirement::{Operator, Requirement, Requirements, Written},
    selector::equal,
    vocabulary::Vocabulary,
};

/// The tenancy that all prices are of.
const SHARED: &str = "default";

pub(super) fn packing(state: &State<'_, '_>, left: &[Vec<usize>]) -> Packing {
    let world = state.world;
    let sites = world.sites.len();
    let placed = state
        .placed
        .iter()
        .map(|step| Placed {
            pod: world.pods[step.pod].id(),
            home: match world.sites.get(step.place) {
                Some(node) => Home::Node(node.name.clone()),
                None => Home::New(step.place - sites),
            },
            relaxed: step.relaxed.clone(),
        })
        .collect();
    let machines = within_limits(state);
    let mut said = BTreeMap::new();
    let kinds_of = kinds_of(state);
    let new_nodes = state
        .open
        .iter()
        .zip(&machines)
        .map(|(it, machines)| new_node(state, it, machines, &kinds_of, &mut said))
        .collect();
    let mut unplaced = Vec::new();
    let kinds = left.iter().filter(|it| !it.is_empty()).count();
    for (kind, pods) in left.iter().enumerate().filter(|(_, it)| !it.is_empty()) {
        let demand = world.kinds[kind].demand;
        let why = if !demand.unmodelled.is_empty() {
            Why::Unmodelled(demand.unmodelled.clone())
        } else if demand.gates.is_empty() {
            Why::NoPlace { nearest: miss::nearest(state, kind, kinds) }
        } else {
            Why::Gated(demand.gates.clone())
        };
        unplaced
            .extend(pods.iter().map(|it| Unplaced { pod: world.pods[*it].id(), why: why.clone() }));
    }
    unplaced.sort_by(|left, right| left.pod.cmp(&right.pod));
    Packing { placed, new_nodes, unplaced }
}

/// The machines of each new node such that the largest of all of them together stay within the
/// limits of the pool. While packing only the smallest were counted; what is left over goes to the
/// nodes in their order.
fn within_limits(state: &State<'_, '_>) -> Vec<Bits> {
    let mut slack: Vec<Option<Room>> =
        state.left.iter().map(|it| it.as_ref().map(|it| it.room.clone())).collect();
    let narrow = |node: &OpenNode| {
        let pool = &state.world.pools[node.pool];
        let Some(slack) = &mut slack[node.pool] else { return node.fit.machines.clone() };
        let affordable = |at: &usize| {
            let takes = pool.takes[*at].iter();
            takes
                .zip(node.held.iter().zip(slack.iter()))
                .all(|(it, (held, slack))| *it <= held + slack)
        };
        let kept: Bits = node.fit.machines.iter().filter(affordable).collect();
        for (slack, (most, held)) in
            slack.iter_mut().zip(pool.most_taken(&kept).iter().zip(&node.held))
        {
            *slack -= (most - held).max(0);
        }
        kept
    };
    state.open.iter().map(narrow).collect()
}

/// Of each pod, its kind.
fn kinds_of(state: &State<'_, '_>) -> Vec<usize> {
    let mut kinds = vec![0; state.world.pods.len()];
    for (at, kind) in state.world.kinds.iter().enumerate() {
        for pod in &kind.pods {
            kinds[*pod] = at;
        }
    }
    kinds
}

/// Nodes that can be the same are told of in the same words, and only once.
type Said<'s> = BTreeMap<
    (usize, &'s Bits, &'s Bits, &'s Requirements, BTreeSet<usize>),
    (Arc<Vec<Choice>>, Arc<Vec<Written>>),
>;

fn new_node<'s>(
    state: &'s State<'_, '_>,
    node: &'s OpenNode,
    machines: &'s Bits,
    kinds_of: &[usize],
    said: &mut Said<'s>,
) -> NewNode {
    let world = state.world;
    let (pool, slots) = (&world.pools[node.pool], &node.fit.slots);
    let asking = |pod: &usize| world.kinds[kinds_of[*pod]].required;
    let asked: BTreeSet<usize> = node.pods.iter().map(asking).collect();
    let key = (node.pool, machines, slots, &node.fit.custom, asked);
    let (choices, requirements) = said.entry(key).or_insert_with_key(|(.., asked)| {
        let demands = node.pods.iter().filter(|it| asked.contains(&asking(it)));
        let kinds: BTreeSet<usize> = demands.map(|it| kinds_of[*it]).collect();
        let requirements = requirements(state, node, pool, (machines, slots), &kinds);
        let mut choices = choices(pool, machines, slots);
        if dedicated(node, &world.vocabulary) {
            for it in &mut choices {
                it.price = None;
            }
        }
        (Arc::new(choices), Arc::new(requirements))
    });
    let mut requests: Amounts = node
        .used
        .iter()
        .enumerate()
        .filter(|(place, amount)| **amount > 0 && !world.scale.counts_volumes(*place))
        .map(|(place, amount)| {
            (world.scale.name(place).to_owned(), world.scale.quantity(place, *amount))
        })
        .collect();
    requests.remove(PODS);
    NewNode {
        pool: pool.pool.name.clone(),
        pods: node.pods.iter().map(|it| world.pods[*it].id()).collect(),
        machines: Arc::clone(choices),
        requirements: Arc::clone(requirements),
        requests,
    }
}

/// Whether nobody else may be on the same hardware, which has another price than those that are known.
fn dedicated(node: &OpenNode, vocabulary: &Vocabulary) -> bool {
    let tenancy = node.custom().get(vocabulary.key(label::TENANCY));
    tenancy.is_some_and(|it| !it.admits(vocabulary.value(SHARED)))
}

fn choices(pool: &Template<'_>, machines: &Bits, slots: &Bits) -> Vec<Choice> {
    let mut choices: Vec<Choice> = machines
        .iter()
        .map(|at| Choice {
            machine: pool.machines[at].name.clone(),
            price: pool.cheapest(at, slots),
        })
        .collect();
    choices.sort_by(|left, right| {
        let rank = |it: &Choice| (it.price.is_none(), it.price);
        rank(left).cmp(&rank(right)).then_with(|| left.machine.cmp(&right.machine))
    });
    choices
}

/// The pool's words, and what has become narrower: the machines, where they are bought, and labels
/// that only the pods decided.
fn requirements(
    state: &State<'_, '_>,
    node: &OpenNode,
    pool: &Template<'_>,
    (machines, slots): (&Bits, &Bits),
    kinds: &BTreeSet<usize>,
) -> Vec<Written> {
    let vocabulary = &state.world.vocabulary;
    let mut all = Requirements::read(&pool.pool.requirements, vocabulary);
    for (key, value) in pool.fixed() {
        all.add(vocabulary.key(key), &Requirement::exactly(vocabulary.value(value)));
    }
    for (key, requirement) in node.custom().iter() {
        all.add(key, requirement);
    }
    for asked in kinds.iter().flat_map(|it| asked_of_machines(state, *it, pool)) {
        all.add(vocabulary.key(&asked.key), &Requirement::read(&asked, vocabulary));
    }
    let names = machines.iter().map(|at| pool.machines[at].name.clone()).collect();
    let mut narrowed = vec![(label::INSTANCE_TYPE, Operator::In, names)];
    for key in pool.slot_keys() {
        let of = |slots: &Bits| -> BTreeSet<Option<&String>> {
            slots.iter().map(|at| pool.slots[at].labels.get(key)).collect()
        };
        let (now, once) = (of(slots), of(&Bits::below(pool.slots.len())));
        let texts = |all: BTreeSet<Option<&String>>| all.into_iter().flatten().cloned().collect();
        if now.contains(&None) {
            // Some way of buying does not have the label, so none of its values can be demanded.
            // What is not to be had (a reservation that others count on) is ruled out instead.
            let gone: Vec<String> = texts(once.difference(&now).copied().collect());
            if !gone.is_empty() {
                narrowed.push((key, Operator::NotIn, gone));
            }
        } else {
            narrowed.push((key, Operator::In, texts(now)));
        }
    }
    for (key, operator, values) in narrowed {
        let written = Written { key: key.to_owned(), operator, values, min_values: None };
        all.add(vocabulary.key(key), &Requirement::read(&written, vocabulary));
    }
    all.written(vocabulary)
}

/// What a pod asks of the machine itself, where that is plain: of several terms nobody knows which one led it here.
fn asked_of_machines(state: &State<'_, '_>, kind: usize, pool: &Template<'_>) -> Vec<Written> {
    let demand = state.world.kinds[kind].demand;
    let selector = demand.node_selector.iter().map(|(key, value)| equal(key, value));
    let term = match demand.node_terms.as_deref() {
        Some([only]) => only.labels.clone(),
        Some(_) | None => Vec::new(),
    };
    let all = selector.chain(term).map(|it| {
        let key = label::normalise(&it.key).to_owned();
        Written { key, min_values: None, ..it }
    });
    all.filter(|it| it.key != label::INSTANCE_TYPE && pool.decided_by_machine(&it.key)).collect()
}
