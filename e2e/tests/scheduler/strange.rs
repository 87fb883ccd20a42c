//! What do people write that the usual worlds do not have?
//!
//! Corners of the scheduler's rules: a selector for a label that is not there, a term that asks nothing, tolerations
//! of everything, empty values, numbers that are none, more than one host port.

use std::sync::Arc;

use nodemolt_fit::{
    Operator, Quantity, label,
    node::Node,
    pod::{Demand, HostPort, PodTerm},
    selector::{NodeTerm, Selector},
    taint::{Effect, Taint, Tolerated, Toleration},
};

use crate::generated::{Dice, World, asked};

/// Of a hundred: how often each of these is met.
const RARELY: usize = 8;
const STORAGE: &str = "ephemeral-storage";
const VERSION: &str = "pod-template-hash";

pub(crate) fn stretch(world: &mut World, seed: u64) {
    let mut dice = Dice(seed ^ 0x5742_4e47);
    world.nodes.iter_mut().for_each(|it| node(&mut dice, it));
    let names: Vec<String> = world.nodes.iter().map(|it| it.name.clone()).collect();
    let running = world.nodes.iter_mut().flat_map(|it| &mut it.pods);
    for pod in world.pods.iter_mut().chain(running) {
        // Replicas remain alike: their names begin with the number of their group.
        let group = pod.name.split('-').next().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        let mut dice = Dice(seed.rotate_left(17) ^ group);
        demand(&mut dice, Arc::make_mut(&mut pod.demand), &names);
    }
}

fn node(dice: &mut Dice, node: &mut Node) {
    if dice.percent(RARELY) {
        node.labels.insert("disk".to_owned(), String::new());
    }
    if dice.percent(RARELY) {
        node.labels.insert("cores".to_owned(), dice.pick(&["many", "0", "007"]).to_owned());
    }
    if dice.percent(RARELY) {
        node.labels.remove(label::HOSTNAME);
    }
    if dice.percent(RARELY) {
        node.volume_limits.values_mut().for_each(|it| *it = 0);
    }
    if dice.percent(50) {
        node.allocatable.insert(STORAGE.to_owned(), Quantity::from_gibibytes(dice.from(1, 4)));
    }
    if dice.percent(RARELY) {
        // The same key with another effect, and with another value.
        node.taints.push(Taint::new("dedicated", dice.pick(&["x", "y"]), Effect::NoExecute));
    }
}

fn demand(dice: &mut Dice, demand: &mut Demand, nodes: &[String]) {
    if dice.percent(RARELY) {
        demand.labels.remove(VERSION);
    }
    if dice.percent(30) {
        demand.labels.insert("track".to_owned(), dice.pick(&["beta", ""]).to_owned());
    }
    if dice.percent(RARELY) {
        demand.requests.insert(STORAGE.to_owned(), Quantity::from_gibibytes(dice.from(1, 2)));
    }
    if dice.percent(RARELY) && !nodes.is_empty() {
        let name = &nodes[dice.below(nodes.len())];
        let operator = if dice.percent(50) { Operator::In } else { Operator::NotIn };
        let mut term = NodeTerm::labels(Vec::new());
        term.fields = vec![asked("metadata.name", operator, &[name])];
        if dice.percent(40) {
            term.labels = vec![asked("disk", Operator::NotIn, &["ssd"])];
        }
        demand.node_terms.get_or_insert_default().push(term);
    }
    if dice.percent(RARELY) {
        let term = match dice.below(4) {
            0 => Vec::new(),
            1 => vec![asked("cores", Operator::Lt, &["5"]), asked("cores", Operator::Gt, &["0"])],
            2 => vec![asked("disk", Operator::In, &["", "ssd"])],
            _ => vec![asked("nobody-has-this", Operator::NotIn, &["a", "b"])],
        };
        demand.node_terms.get_or_insert_default().push(NodeTerm::labels(term));
    }
    if dice.percent(RARELY) {
        let effects = [None, Some(Effect::NoSchedule), Some(Effect::NoExecute)];
        let effect = effects[dice.below(effects.len())];
        demand.tolerations.push(Toleration { key: None, value: Tolerated::Any, effect });
    }
    if dice.percent(RARELY) {
        let value = Tolerated::Equal(String::new());
        demand.tolerations.push(Toleration { key: Some("broken".to_owned()), value, effect: None });
    }
    if !demand.host_ports.is_empty() && dice.percent(30) {
        let address = dice.pick(&["", "0.0.0.0", "10.0.0.1"]).to_owned();
        demand.host_ports.push(HostPort { address, protocol: "TCP".to_owned(), port: 81 });
    }
    let terms = demand.affinity.iter_mut().chain(&mut demand.anti_affinity);
    terms.for_each(|it| pod_term(dice, it));
    for term in &mut demand.anti_affinity {
        if dice.percent(2 * RARELY) {
            // A namespace without labels meets it, and the scheduler takes it for all of them.
            let others = dice.pick(&["x", "y"]);
            let by = [
                asked("team", Operator::NotIn, &[others]),
                asked("team", Operator::DoesNotExist, &[]),
            ];
            term.namespace_selector = Some(Selector::All(vec![by[dice.below(2)].clone()]));
        }
    }
    for spread in &mut demand.spread {
        if dice.percent(RARELY) {
            spread.selector = selector(dice);
        }
        if dice.percent(RARELY) {
            spread.match_label_keys = vec!["tier".to_owned(), "nobody-has-this".to_owned()];
            spread.selector = Selector::everything();
        }
    }
}

fn pod_term(dice: &mut Dice, term: &mut PodTerm) {
    if dice.percent(2 * RARELY) {
        term.selector = selector(dice);
    }
    if dice.percent(2 * RARELY) {
        // Both together mean either. Nothing that a namespace without labels meets: who must be near such: see `known`.
        term.namespaces = vec![dice.pick(&["one", "two"]).to_owned()];
        let by = [asked("team", Operator::In, &["y"]), asked("team", Operator::Exists, &[])];
        term.namespace_selector = Some(Selector::All(vec![by[dice.below(2)].clone()]));
    }
}

fn selector(dice: &mut Dice) -> Selector {
    Selector::All(vec![match dice.below(4) {
        0 => asked("track", Operator::DoesNotExist, &[]),
        1 => asked("app", Operator::In, &["web", "db", "job"]),
        2 => asked("nobody-has-this", Operator::NotIn, &["a"]),
        _ => asked("tier", Operator::NotIn, &["front"]),
    }])
}
