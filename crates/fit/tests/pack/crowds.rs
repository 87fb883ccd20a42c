//! Which worlds are hardest? Few nodes, hardly room for all, and pods that must be near each other.

use std::sync::Arc;

use nodemolt_fit::Quantity;
use nodemolt_fit::label;
use nodemolt_fit::node::Node;
use nodemolt_fit::pod::{Demand, HostPort, Namespace, Pod, PodTerm, Spread};
use nodemolt_fit::pool::{Machine, Offering, Pool, Price};
use nodemolt_fit::selector::Selector;
use nodemolt_fit::taint::{Effect, Taint, Tolerated, Toleration};

use crate::worlds::{Dice, World, labels};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crowd {
    /// Of ten pods, six must be near others.
    Clinging,
    /// Those, and a pool whose machines are small.
    ClingingWithPool,
    /// Some of every kind.
    Mixed,
    /// All but those.
    Apart,
}

pub(crate) const ALL: [Crowd; 4] =
    [Crowd::Clinging, Crowd::ClingingWithPool, Crowd::Mixed, Crowd::Apart];
const APPS: [&str; 2] = ["x", "y"];

pub(crate) fn world(seed: u64, crowd: Crowd) -> World {
    let mut dice = Dice(seed.wrapping_mul(0x9e6c_63d0_876a_68ad) + 7);
    let nodes = (0..dice.from(2, 3)).map(|at| node(&mut dice, at)).collect();
    let space = Arc::new(Namespace::named("default"));
    let pods = (0..dice.from(3, 5))
        .map(|at| Pod::new(&space, &format!("p{at}"), &Arc::new(demand(&mut dice, crowd))))
        .collect();
    let pools = if crowd == Crowd::ClingingWithPool { vec![pool(&mut dice)] } else { Vec::new() };
    World { pods, nodes, pools }
}

/// The same, and each pod is more or less important.
pub(crate) fn ranked(seed: u64, crowd: Crowd) -> World {
    let mut world = world(seed, crowd);
    let mut dice = Dice(seed);
    for pod in &mut world.pods {
        Arc::make_mut(&mut pod.demand).priority = i32::try_from(dice.from(0, 2)).unwrap();
    }
    world
}

fn cpu(millis: i64) -> std::collections::BTreeMap<String, Quantity> {
    let many = Quantity::from_units(110);
    [("cpu".to_owned(), Quantity::from_millis(millis)), ("pods".to_owned(), many)].into()
}

fn node(dice: &mut Dice, at: i64) -> Node {
    let name = format!("n{at}");
    let mut own = labels(&[(label::HOSTNAME, &name), (label::ZONE, dice.pick(&["a", "b"]))]);
    if dice.percent(50) {
        own.insert("disk".to_owned(), "ssd".to_owned());
    }
    let allocatable = cpu([150, 250, 350, 500][dice.below(4)]);
    let mut it = Node { name, labels: own, allocatable, initialised: true, ..Node::default() };
    if dice.percent(20) {
        it.taints.push(Taint::new("t", "", Effect::NoSchedule));
    }
    it
}

fn pool(dice: &mut Dice) -> Pool {
    let name = "m.small".to_owned();
    let capacity = cpu([150, 250, 350][dice.below(3)]);
    let zones = ["a", "b"].iter().filter(|_| dice.percent(70));
    let offerings = zones.map(|zone| Offering::new(zone, "on-demand", Some(Price(1)))).collect();
    let machine = Machine {
        labels: [(label::INSTANCE_TYPE.to_owned(), vec![name.clone()])].into(),
        name,
        allocatable: capacity.clone(),
        capacity,
        volume_limits: std::collections::BTreeMap::new(),
        offerings,
    };
    let mut pool = Pool { name: "pool".to_owned(), ..Pool::default() };
    pool.machines = Arc::new(vec![machine]);
    pool.limits.insert("nodes".to_owned(), Quantity::from_units(dice.from(1, 2)));
    pool
}

fn demand(dice: &mut Dice, crowd: Crowd) -> Demand {
    let app = dice.pick(&APPS);
    let mut requests = cpu([100, 100, 150, 200][dice.below(4)]);
    requests.remove("pods");
    let mut it = Demand { labels: labels(&[("app", app)]), requests, ..Demand::default() };
    if dice.percent(50) {
        it.tolerations.push(Toleration { key: None, value: Tolerated::Any, effect: None });
    }
    let asks = dice.below(100);
    match (crowd, asks) {
        (Crowd::Clinging | Crowd::ClingingWithPool, ..60) | (Crowd::Mixed, 15..35) => {
            it.affinity = vec![term(dice)];
        }
        (Crowd::Clinging | Crowd::ClingingWithPool, _) => {}
        (Crowd::Mixed, ..15) | (Crowd::Apart, ..30) => {
            it.node_selector = labels(&[("disk", "ssd")]);
        }
        (Crowd::Mixed, 35..60) | (Crowd::Apart, 30..60) => it.anti_affinity = vec![term(dice)],
        (_, 60..80) => it.spread = vec![spread(dice, app)],
        (_, 80..90) => {
            let any = String::new;
            it.host_ports = vec![HostPort { address: any(), protocol: any(), port: 80 }];
        }
        _ => {}
    }
    it
}

fn term(dice: &mut Dice) -> PodTerm {
    PodTerm {
        topology_key: dice.pick(&[label::ZONE, label::HOSTNAME]).to_owned(),
        selector: Selector::labels([("app", dice.pick(&APPS))]),
        ..PodTerm::default()
    }
}

fn spread(dice: &mut Dice, app: &str) -> Spread {
    Spread {
        topology_key: dice.pick(&[label::ZONE, label::HOSTNAME]).to_owned(),
        max_skew: 1,
        required: true,
        selector: Selector::labels([("app", app)]),
        match_label_keys: Vec::new(),
        min_domains: None,
        honour_node_affinity: true,
        honour_taints: false,
    }
}
