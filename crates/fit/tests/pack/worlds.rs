//! Which worlds are tried? Small ones, crowded, in which every kind of constraint gets in the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodemolt_fit::node::Node;
use nodemolt_fit::pod::{Demand, HostPort, Namespace, Pod, PodTerm, Spread, Volume, Weighted};
use nodemolt_fit::pool::{Machine, Offering, Pool, Price};
use nodemolt_fit::requirement::{Operator, Written};
use nodemolt_fit::selector::{NodeTerm, Selector};
use nodemolt_fit::taint::{Effect, Taint, Tolerated, Toleration};
use nodemolt_fit::{Quantity, label};

pub(crate) const ZONES: [&str; 3] = ["a", "b", "c"];
const APPS: [&str; 4] = ["web", "db", "cache", "job"];
const TIERS: [&str; 2] = ["front", "back"];
const GPU: &str = "example.com/gpu";
const DRIVER: &str = "ebs.csi.aws.com";
const EBS_ZONE: &str = "topology.ebs.csi.aws.com/zone";
const VERSION: &str = "pod-template-hash";
/// A daemon that runs in one zone only.
const ZONAL: &str = "zonal";

/// Splitmix64.
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` to `high`, both included.
    pub(crate) fn from(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.roll() % u64::try_from(high - low + 1).unwrap()).unwrap()
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    pub(crate) fn percent(&mut self, of_hundred: usize) -> bool {
        self.below(100) < of_hundred
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) pods: Vec<Pod>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pools: Vec<Pool>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) pods: i64,
    pub(crate) nodes: i64,
    pub(crate) pools: i64,
    pub(crate) machines: i64,
    /// Of a hundred: how often a pod asks for each thing.
    pub(crate) asks: usize,
}

pub(crate) const USUAL: Size = Size { pods: 60, nodes: 20, pools: 2, machines: 5, asks: 14 };
/// So small that every way to place the pods can be tried.
pub(crate) const TINY: Size = Size { pods: 5, nodes: 4, pools: 1, machines: 2, asks: 20 };

pub(crate) fn asked(key: &str, operator: Operator, values: &[&str]) -> Written {
    Written {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|it| (*it).to_owned()).collect(),
        min_values: None,
    }
}

pub(crate) fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn amounts(cpu_millis: i64, memory_mib: i64) -> BTreeMap<String, Quantity> {
    BTreeMap::from([
        ("cpu".to_owned(), Quantity::from_millis(cpu_millis)),
        ("memory".to_owned(), Quantity::from_mebibytes(memory_mib)),
    ])
}

pub(crate) fn world(seed: u64, size: Size) -> World {
    let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) + 1);
    let spaces: Vec<Arc<Namespace>> = [("one", "x"), ("two", "y")]
        .iter()
        .map(|(name, team)| Arc::new(Namespace::new(name, labels(&[("team", team)]))))
        .collect();
    let node_count = dice.from(0, size.nodes);
    let mut nodes: Vec<Node> = (0..node_count).map(|at| node(&mut dice, at)).collect();
    let pool_count = if node_count == 0 { 1 } else { dice.from(0, size.pools) };
    let pools = (0..pool_count).map(|at| pool(&mut dice, at, size.machines)).collect();
    let count = dice.from(1, size.pods);
    let mut pods = Vec::new();
    let mut group = 0;
    while i64::try_from(pods.len()).unwrap() < count {
        let space = &spaces[usize::from(dice.percent(25))];
        let demand = Arc::new(demand(&mut dice, group, size.asks));
        for replica in 0..dice.from(1, 6).min(size.pods) {
            let mut pod = Pod::new(space, &format!("{group}-{replica}"), &demand);
            if dice.percent(25) && !nodes.is_empty() {
                pod.terminating = dice.percent(10);
                let at = dice.below(nodes.len());
                nodes[at].pods.push(pod);
            } else {
                pods.push(pod);
            }
        }
        group += 1;
    }
    pods.truncate(usize::try_from(count).unwrap());
    World { pods, nodes, pools }
}

fn node(dice: &mut Dice, at: i64) -> Node {
    let name = format!("node-{at:02}");
    let zone = dice.pick(&ZONES);
    let mut own =
        labels(&[(label::HOSTNAME, &name), (label::ARCH, dice.pick(&["amd64", "arm64"]))]);
    if dice.percent(90) {
        own.insert(label::ZONE.to_owned(), zone.to_owned());
        own.insert(EBS_ZONE.to_owned(), zone.to_owned());
    }
    if dice.percent(50) {
        own.insert("disk".to_owned(), dice.pick(&["ssd", "hdd"]).to_owned());
    }
    if dice.percent(50) {
        own.insert("cores".to_owned(), dice.from(1, 8).to_string());
    }
    let mut allocatable = amounts(1000 * dice.from(1, 6), 1024 * dice.from(1, 8));
    allocatable.insert("pods".to_owned(), Quantity::from_units(dice.from(2, 9)));
    if dice.percent(30) {
        allocatable.insert(GPU.to_owned(), Quantity::from_units(dice.from(1, 2)));
    }
    let mut it = Node { name, labels: own, allocatable, initialised: true, ..Node::default() };
    it.taints = taints(dice);
    if dice.percent(20) {
        it.initialised = dice.percent(40);
        let startup = Taint::new("example.com/starting", "", Effect::NoSchedule);
        it.taints.push(startup.clone());
        it.startup_taints.push(startup);
        if dice.percent(50) {
            it.taints.push(Taint::new("node.kubernetes.io/not-ready", "", Effect::NoExecute));
        }
    }
    it.unschedulable = dice.percent(8);
    it.leaving = dice.percent(8);
    if dice.percent(20) {
        it.set_aside = amounts(500, 256);
    }
    if dice.percent(60) {
        it.volume_limits.insert(DRIVER.to_owned(), u32::try_from(dice.from(1, 2)).unwrap());
    }
    it
}

fn taints(dice: &mut Dice) -> Vec<Taint> {
    let mut all = Vec::new();
    if dice.percent(15) {
        all.push(Taint::new("dedicated", dice.pick(&["x", "y"]), Effect::NoSchedule));
    }
    if dice.percent(6) {
        all.push(Taint::new("broken", "", Effect::NoExecute));
    }
    if dice.percent(20) {
        all.push(Taint::new("old", "", Effect::PreferNoSchedule));
    }
    all
}

fn pool(dice: &mut Dice, at: i64, machines: i64) -> Pool {
    let machines: Vec<Machine> = (0..dice.from(1, machines)).map(|at| machine(dice, at)).collect();
    let mut it = Pool {
        name: format!("pool-{at}"),
        weight: u32::try_from(dice.from(0, 2)).unwrap(),
        taints: taints(dice),
        machines: Arc::new(machines),
        ..Pool::default()
    };
    if dice.percent(50) {
        it.labels = labels(&[("disk", dice.pick(&["ssd", "hdd"]))]);
    }
    if dice.percent(30) {
        let few = [
            asked(label::ZONE, Operator::In, &["a", "b"]),
            asked("rack", Operator::In, &["r1", "r2"]),
        ];
        it.requirements.push(few[dice.below(2)].clone());
    }
    if dice.percent(15) {
        let mut several = asked(label::INSTANCE_TYPE, Operator::Exists, &[]);
        several.min_values = Some(2);
        it.requirements.push(several);
    }
    if dice.percent(40) {
        it.limits.insert("cpu".to_owned(), Quantity::from_units(dice.from(2, 24)));
        it.used.insert("cpu".to_owned(), Quantity::from_units(dice.from(0, 4)));
    }
    if dice.percent(25) {
        it.limits.insert("nodes".to_owned(), Quantity::from_units(dice.from(0, 4)));
    }
    if dice.percent(30) {
        let mut daemon = Demand { requests: amounts(300, 128), ..Demand::default() };
        if dice.percent(40) {
            daemon.node_selector = labels(&[(label::ARCH, "amd64")]);
        }
        if dice.percent(30) {
            daemon.host_ports =
                vec![HostPort { address: String::new(), protocol: String::new(), port: 80 }];
        }
        // No dice: worlds that are known by their numbers stay what they are.
        daemon.labels = labels(&[("app", APPS[0]), ("tier", TIERS[0]), (VERSION, "1")]);
        daemon.anti_affinity = vec![PodTerm {
            topology_key: label::HOSTNAME.to_owned(),
            selector: Selector::labels([("app", APPS[1])]),
            ..PodTerm::default()
        }];
        let namespace = Arc::new(Namespace::new("one", labels(&[("team", "x")])));
        it.daemons = vec![Pod::new(&namespace, "daemon", &Arc::new(daemon))];
    }
    if it.weight == 1 {
        let daemon = Demand {
            requests: amounts(900, 512),
            node_selector: labels(&[(label::ZONE, ZONES[1])]),
            ..Demand::default()
        };
        let namespace = Arc::new(Namespace::named("kube-system"));
        it.daemons.push(Pod::new(&namespace, ZONAL, &Arc::new(daemon)));
    }
    it
}

fn machine(dice: &mut Dice, at: i64) -> Machine {
    let size = dice.from(1, 6);
    let name = format!("m{at}.{size}");
    let arch = dice.pick(&["amd64", "arm64"]);
    let own = [(label::INSTANCE_TYPE, name.as_str()), (label::ARCH, arch)];
    let mut allocatable = amounts(1000 * size - 100, 2048 * size - 100);
    allocatable.insert("pods".to_owned(), Quantity::from_units(dice.from(2, 9)));
    if dice.percent(25) {
        allocatable.insert(GPU.to_owned(), Quantity::from_units(dice.from(1, 2)));
    }
    let mut offerings = Vec::new();
    for zone in ZONES {
        for kind in ["on-demand", "spot"] {
            if dice.percent(60) {
                let price =
                    dice.percent(85).then(|| Price(u64::try_from(dice.from(1, 900)).unwrap()));
                let mut it = Offering::new(zone, kind, price);
                it.available = dice.percent(80);
                offerings.push(it);
            }
        }
        if dice.percent(12) {
            let mut it = Offering::new(zone, "reserved", Some(Price(0)));
            it.labels.insert(label::CAPACITY_RESERVATION_ID.to_owned(), format!("cr-{at}-{zone}"));
            it.remaining = Some(u32::try_from(dice.from(0, 2)).unwrap());
            offerings.push(it);
        }
    }
    Machine {
        labels: own
            .iter()
            .map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()]))
            .collect(),
        name,
        capacity: amounts(1000 * size, 2048 * size),
        allocatable,
        volume_limits: BTreeMap::from([(DRIVER.to_owned(), 2)]),
        offerings,
    }
}

fn selector(dice: &mut Dice, app: &str) -> Selector {
    let other = dice.pick(&APPS);
    match dice.below(8) {
        0 => Selector::labels([("app", other)]),
        1 => Selector::labels([("tier", dice.pick(&TIERS))]),
        2 => Selector::All(vec![asked("app", Operator::NotIn, &[other])]),
        3 => Selector::All(vec![asked("tier", Operator::Exists, &[])]),
        4 if dice.percent(20) => Selector::everything(),
        5 if dice.percent(20) => Selector::Nothing,
        _ => Selector::labels([("app", app)]),
    }
}

fn topology(dice: &mut Dice) -> String {
    let keys =
        [label::ZONE, label::ZONE, label::HOSTNAME, label::HOSTNAME, "disk", label::ARCH, "rack"];
    dice.pick(&keys).to_owned()
}

fn term(dice: &mut Dice, app: &str) -> PodTerm {
    let mut it = PodTerm {
        topology_key: topology(dice),
        selector: selector(dice, app),
        ..PodTerm::default()
    };
    match dice.below(6) {
        0 => it.namespaces = vec!["two".to_owned()],
        1 => it.namespace_selector = Some(Selector::labels([("team", dice.pick(&["x", "y"]))])),
        2 => it.namespace_selector = Some(Selector::everything()),
        _ => {}
    }
    match dice.below(4) {
        0 => it.match_label_keys = vec![VERSION.to_owned()],
        1 => it.mismatch_label_keys = vec![VERSION.to_owned()],
        _ => {}
    }
    it
}

fn node_term(dice: &mut Dice) -> NodeTerm {
    NodeTerm::labels(vec![match dice.below(6) {
        0 => asked(label::ZONE, Operator::In, &[dice.pick(&ZONES), dice.pick(&ZONES)]),
        1 => asked("disk", Operator::NotIn, &["hdd"]),
        2 => asked("cores", Operator::Gt, &["3"]),
        3 => asked("disk", Operator::Exists, &[]),
        4 => asked("cores", Operator::DoesNotExist, &[]),
        _ => asked(label::ARCH, Operator::In, &[dice.pick(&["amd64", "arm64"])]),
    }])
}

fn demand(dice: &mut Dice, group: usize, asks: usize) -> Demand {
    let app = dice.pick(&APPS);
    let mut it = Demand {
        labels: labels(&[
            ("app", app),
            ("tier", dice.pick(&TIERS)),
            (VERSION, &dice.from(1, 3).to_string()),
        ]),
        requests: amounts(100 * dice.from(0, 15), 128 * dice.from(0, 12)),
        ..Demand::default()
    };
    if dice.percent(asks) {
        it.priority = i32::try_from(dice.from(-1, 2)).unwrap();
    }
    if dice.percent(asks) {
        it.requests.insert(GPU.to_owned(), Quantity::from_units(1));
    }
    if dice.percent(asks) {
        let pairs = [("disk", "ssd"), (label::ZONE, "a"), (label::ARCH, "arm64")];
        it.node_selector = labels(&[pairs[dice.below(3)]]);
    }
    if dice.percent(asks) {
        it.node_terms = Some((0..dice.from(1, 2)).map(|_| node_term(dice)).collect());
    }
    if dice.percent(asks) {
        it.preferred_nodes = vec![Weighted { weight: 5, term: node_term(dice) }];
    }
    if dice.percent(3 * asks) {
        let value = if dice.percent(50) {
            Tolerated::Any
        } else {
            Tolerated::Equal(dice.pick(&["x", "y"]).to_owned())
        };
        let effect = dice.percent(50).then_some(Effect::NoSchedule);
        it.tolerations.push(Toleration { key: Some("dedicated".to_owned()), value, effect });
        if dice.percent(30) {
            let key = Some("node.kubernetes.io/unschedulable".to_owned());
            it.tolerations.push(Toleration { key, value: Tolerated::Any, effect: None });
        }
    }
    if dice.percent(asks) {
        it.affinity = vec![term(dice, app)];
        if dice.percent(25) {
            it.affinity.push(term(dice, app));
        }
    }
    if dice.percent(asks) {
        it.anti_affinity = vec![term(dice, app)];
    }
    if dice.percent(asks) {
        it.preferred_affinity = vec![Weighted { weight: 3, term: term(dice, app) }];
    }
    if dice.percent(asks) {
        it.preferred_anti_affinity = vec![Weighted { weight: 4, term: term(dice, app) }];
    }
    if dice.percent(2 * asks) {
        it.spread = (0..dice.from(1, 2)).map(|_| spread(dice, app)).collect();
    }
    if dice.percent(asks) {
        let address = dice.pick(&["", "", "10.0.0.1", "10.0.0.2"]).to_owned();
        let protocol = dice.pick(&["", "TCP", "UDP"]).to_owned();
        it.host_ports = vec![HostPort { address, protocol, port: 80 }];
    }
    if dice.percent(2 * asks) {
        it.volumes = (0..dice.from(1, 2)).map(|at| volume(dice, group, at)).collect();
    }
    if dice.percent(asks / 5) {
        it.gates = vec!["example.com/quota".to_owned()];
    }
    if dice.percent(asks / 5) {
        it.unmodelled = vec!["resource claim gpu".to_owned()];
    }
    it
}

fn spread(dice: &mut Dice, app: &str) -> Spread {
    Spread {
        topology_key: topology(dice),
        max_skew: u32::try_from(dice.from(1, 2)).unwrap(),
        required: dice.percent(70),
        selector: selector(dice, app),
        match_label_keys: if dice.percent(25) { vec![VERSION.to_owned()] } else { Vec::new() },
        min_domains: dice.percent(25).then(|| u32::try_from(dice.from(2, 4)).unwrap()),
        honour_node_affinity: dice.percent(70),
        honour_taints: dice.percent(40),
    }
}

fn volume(dice: &mut Dice, group: usize, at: i64) -> Volume {
    let zones = |dice: &mut Dice, key: &str| {
        let mut zones = vec![dice.pick(&ZONES)];
        if dice.percent(40) {
            zones.push(dice.pick(&ZONES));
        }
        Some(vec![NodeTerm::labels(vec![asked(key, Operator::In, &zones)])])
    };
    let reach = match dice.below(4) {
        0 => None,
        1 => zones(dice, EBS_ZONE),
        2 => {
            let one = zones(dice, label::ZONE).unwrap();
            let other = zones(dice, label::ZONE).unwrap();
            Some([one, other].concat())
        }
        _ => zones(dice, label::ZONE),
    };
    let shared = dice.percent(30);
    Volume {
        handle: if shared { format!("shared-{at}") } else { format!("vol-{group}-{at}") },
        driver: dice.percent(80).then(|| DRIVER.to_owned()),
        reach,
        // Some are made for each pod of their group.
        own: !shared && group.is_multiple_of(3),
    }
}

/// A way to take one kind of constraint out of a world.
pub(crate) type Without = (&'static str, fn(&mut World));

fn each_demand(world: &mut World, change: impl Fn(&mut Demand)) {
    let running = world.nodes.iter_mut().flat_map(|it| it.pods.iter_mut());
    for pod in world.pods.iter_mut().chain(running) {
        change(Arc::make_mut(&mut pod.demand));
    }
}

fn each_term(world: &mut World, change: impl Fn(&mut PodTerm)) {
    each_demand(world, |it| it.affinity.iter_mut().chain(&mut it.anti_affinity).for_each(&change));
}

fn each_spread(world: &mut World, change: impl Fn(&mut Spread)) {
    each_demand(world, |it| it.spread.iter_mut().for_each(&change));
}

fn each_machine(world: &mut World, change: impl Fn(&mut Machine)) {
    for pool in &mut world.pools {
        Arc::make_mut(&mut pool.machines).iter_mut().for_each(&change);
    }
}

pub(crate) const CONSTRAINTS: &[Without] = &[
    ("requests", |it| each_demand(it, |it| it.requests.retain(|name, _| name == GPU))),
    ("extended resources", |it| each_demand(it, |it| it.requests.retain(|name, _| name != GPU))),
    ("number of pods", |it| {
        let many = Quantity::from_units(1000);
        it.nodes.iter_mut().for_each(|it| it.allocatable.extend([("pods".to_owned(), many)]));
        each_machine(it, |it| it.allocatable.extend([("pods".to_owned(), many)]));
    }),
    ("node selector", |it| each_demand(it, |it| it.node_selector.clear())),
    ("node affinity", |it| each_demand(it, |it| it.node_terms = None)),
    ("preferred node affinity", |it| each_demand(it, |it| it.preferred_nodes.clear())),
    ("taints", |it| {
        it.nodes.iter_mut().for_each(|it| it.taints.retain(|it| !it.effect.binding()));
        it.pools.iter_mut().for_each(|it| it.taints.retain(|it| !it.effect.binding()));
    }),
    ("tolerations", |it| each_demand(it, |it| it.tolerations.clear())),
    ("taints to be avoided", |it| {
        it.nodes.iter_mut().for_each(|it| it.taints.retain(|it| it.effect.binding()));
        it.pools.iter_mut().for_each(|it| it.taints.retain(|it| it.effect.binding()));
    }),
    ("startup taints", |it| it.nodes.iter_mut().for_each(|it| it.startup_taints.clear())),
    ("set up or not", |it| it.nodes.iter_mut().for_each(|it| it.initialised = true)),
    ("cordons", |it| it.nodes.iter_mut().for_each(|it| it.unschedulable = false)),
    ("leaving", |it| it.nodes.iter_mut().for_each(|it| it.leaving = false)),
    ("room set aside", |it| it.nodes.iter_mut().for_each(|it| it.set_aside.clear())),
    ("pod affinity", |it| each_demand(it, |it| it.affinity.clear())),
    ("pod anti-affinity", |it| each_demand(it, |it| it.anti_affinity.clear())),
    ("anti-affinity of running pods", |it| {
        let running = it.nodes.iter_mut().flat_map(|it| it.pods.iter_mut());
        running.for_each(|it| Arc::make_mut(&mut it.demand).anti_affinity.clear());
    }),
    ("preferred pod affinity", |it| each_demand(it, |it| it.preferred_affinity.clear())),
    ("preferred pod anti-affinity", |it| each_demand(it, |it| it.preferred_anti_affinity.clear())),
    ("namespaces of terms", |it| each_term(it, |it| it.namespaces.clear())),
    ("namespace selectors", |it| each_term(it, |it| it.namespace_selector = None)),
    ("matchLabelKeys of terms", |it| each_term(it, |it| it.match_label_keys.clear())),
    ("mismatchLabelKeys", |it| each_term(it, |it| it.mismatch_label_keys.clear())),
    ("spread", |it| each_demand(it, |it| it.spread.retain(|it| !it.required))),
    ("preferred spread", |it| each_demand(it, |it| it.spread.retain(|it| it.required))),
    ("minDomains", |it| each_spread(it, |it| it.min_domains = None)),
    ("matchLabelKeys of spreads", |it| each_spread(it, |it| it.match_label_keys.clear())),
    ("nodeAffinityPolicy", |it| each_spread(it, |it| it.honour_node_affinity = true)),
    ("nodeTaintsPolicy", |it| each_spread(it, |it| it.honour_taints = false)),
    ("terminating pods", |it| {
        it.nodes.iter_mut().flat_map(|it| it.pods.iter_mut()).for_each(|it| it.terminating = false);
    }),
    ("host ports", |it| each_demand(it, |it| it.host_ports.clear())),
    ("topology of volumes", |it| {
        each_demand(it, |it| it.volumes.iter_mut().for_each(|it| it.reach = None));
    }),
    ("attach limits", |it| {
        it.nodes.iter_mut().for_each(|it| it.volume_limits.clear());
        each_machine(it, |it| it.volume_limits.clear());
    }),
    ("priority", |it| each_demand(it, |it| it.priority = 0)),
    ("gates", |it| each_demand(it, |it| it.gates.clear())),
    ("the unmodelled", |it| each_demand(it, |it| it.unmodelled.clear())),
    ("weights of pools", |it| it.pools.iter_mut().for_each(|it| it.weight = 0)),
    ("requirements of pools", |it| it.pools.iter_mut().for_each(|it| it.requirements.clear())),
    ("minValues", |it| {
        let all = it.pools.iter_mut().flat_map(|it| &mut it.requirements);
        all.for_each(|it| it.min_values = None);
    }),
    ("limits", |it| it.pools.iter_mut().for_each(|it| it.limits.clear())),
    ("use so far", |it| it.pools.iter_mut().for_each(|it| it.used.clear())),
    ("daemons to be avoided, or that avoid", |it| {
        let daemons = it.pools.iter_mut().flat_map(|it| &mut it.daemons);
        daemons.map(|it| Arc::make_mut(&mut it.demand)).for_each(|it| {
            it.labels.clear();
            it.anti_affinity.clear();
        });
    }),
    ("daemons of one zone", |it| {
        it.pools.iter_mut().for_each(|it| it.daemons.retain(|it| &*it.name != ZONAL));
    }),
    ("daemons", |it| it.pools.iter_mut().for_each(|it| it.daemons.clear())),
    ("lack of capacity", |it| {
        each_machine(it, |it| it.offerings.iter_mut().for_each(|it| it.available = true));
    }),
    ("reservations", |it| {
        each_machine(it, |it| it.offerings.iter_mut().for_each(|it| it.remaining = None));
    }),
];
