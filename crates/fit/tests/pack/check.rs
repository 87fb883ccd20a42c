//! Is this packing right? By brute force, from the words of the Kubernetes documentation, and without
//! a line of what did the packing: only the values of the model are shared.

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_fit::node::Node;
use nodemolt_fit::pack::{Home, NewNode, Packing};
use nodemolt_fit::pod::{Demand, Namespace, Pod, PodTerm, Spread};
use nodemolt_fit::pool::{Machine, Offering, Pool};
use nodemolt_fit::requirement::{Operator, Written};
use nodemolt_fit::selector::{NodeTerm, Selector};
use nodemolt_fit::taint::{Effect, Taint, Tolerated, Toleration};
use nodemolt_fit::{Quantity, label};

type Labels = BTreeMap<String, String>;

/// So many orders are tried where none is known.
const ORDERS: usize = 6;

/// A node as it stands: one that exists, or one of the machines that a new node may come to be.
#[derive(Clone)]
pub(crate) struct Standing<'a> {
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) taints: Vec<Taint>,
    pub(crate) allocatable: BTreeMap<String, Quantity>,
    pub(crate) taken: BTreeMap<String, Quantity>,
    pub(crate) volume_limits: BTreeMap<String, u32>,
    pub(crate) daemons: Vec<&'a Pod>,
    pub(crate) pods: Vec<&'a Pod>,
    pub(crate) set_up: bool,
}

/// A node that is drained: it stands, nobody is on it any more, and nobody may go there.
pub(crate) fn cordoned(node: &Node) -> Standing<'_> {
    let mut it = standing(node);
    it.pods.clear();
    let cordon = Taint::new("node.kubernetes.io/unschedulable", "", Effect::NoSchedule);
    if !it.taints.contains(&cordon) {
        it.taints.push(cordon);
    }
    it
}

pub(crate) fn standing(node: &Node) -> Standing<'_> {
    let mut taints: Vec<Taint> = node.taints.clone();
    if !node.initialised {
        let passing = [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
            "node.cloudprovider.kubernetes.io/uninitialized",
            "karpenter.sh/unregistered",
        ];
        taints.retain(|it| {
            !passing.contains(&it.key.as_str())
                && !it.key.starts_with("readiness.k8s.io/")
                && !node
                    .startup_taints
                    .iter()
                    .any(|other| (&other.key, other.effect) == (&it.key, it.effect))
        });
    }
    if node.unschedulable {
        taints.push(Taint::new("node.kubernetes.io/unschedulable", "", Effect::NoSchedule));
    }
    Standing {
        name: node.name.clone(),
        labels: node.labels.clone(),
        taints,
        allocatable: node.allocatable.clone(),
        taken: node.set_aside.clone(),
        volume_limits: node.volume_limits.clone(),
        daemons: Vec::new(),
        pods: node.pods.iter().collect(),
        set_up: node.initialised,
    }
}

/// One of the machines that a pool can launch, bought in one way.
pub(crate) fn launched<'a>(
    pool: &'a Pool,
    machine: &Machine,
    offering: &Offering,
    name: &str,
    more: &Labels,
) -> Standing<'a> {
    let mut labels = Labels::new();
    for (key, values) in &machine.labels {
        if let [only] = values.as_slice() {
            labels.insert(key.clone(), only.clone());
        }
    }
    labels.extend(offering.labels.clone());
    for it in &pool.requirements {
        if let (Operator::In, [only]) = (it.operator, it.values.as_slice()) {
            labels.entry(it.key.clone()).or_insert_with(|| only.clone());
        }
    }
    labels.extend(pool.labels.clone());
    labels.insert(label::NODEPOOL.to_owned(), pool.name.clone());
    labels.extend(more.clone());
    labels.insert(label::HOSTNAME.to_owned(), name.to_owned());
    let mut node = Standing {
        name: name.to_owned(),
        labels,
        taints: pool.taints.clone(),
        allocatable: machine.allocatable.clone(),
        taken: BTreeMap::new(),
        volume_limits: machine.volume_limits.clone(),
        daemons: Vec::new(),
        pods: Vec::new(),
        set_up: true,
    };
    for daemon in &pool.daemons {
        let demand = &daemon.demand;
        let tolerated = node.taints.iter().all(|it| soft(it) || tolerates(demand, it));
        if tolerated && selected(demand, &node) {
            for (name, amount) in &demand.requests {
                let sum = node.taken.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*amount);
            }
            let sum = node.taken.entry("pods".to_owned()).or_default();
            *sum = sum.saturating_add(Quantity::from_units(1));
            node.daemons.push(daemon);
        }
    }
    node
}

fn soft(taint: &Taint) -> bool {
    taint.effect == Effect::PreferNoSchedule
}

fn tolerates(demand: &Demand, taint: &Taint) -> bool {
    demand.tolerations.iter().any(|it: &Toleration| {
        it.effect.is_none_or(|it| it == taint.effect)
            && it.key.as_ref().is_none_or(|it| it.is_empty() || *it == taint.key)
            && match &it.value {
                Tolerated::Any => true,
                Tolerated::Equal(value) => *value == taint.value,
            }
    })
}

fn holds(asked: &Written, have: Option<&String>) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    let bound = asked.values.first().and_then(|it| number(it));
    let have_number = have.and_then(|it| number(it));
    match asked.operator {
        Operator::In => have.is_some_and(|it| asked.values.contains(it)),
        Operator::NotIn => have.is_none_or(|it| !asked.values.contains(it)),
        Operator::Exists => have.is_some(),
        Operator::DoesNotExist => have.is_none(),
        Operator::Gt => have_number.zip(bound).is_some_and(|(have, bound)| have > bound),
        Operator::Lt => have_number.zip(bound).is_some_and(|(have, bound)| have < bound),
        Operator::Gte => have_number.zip(bound).is_some_and(|(have, bound)| have >= bound),
        Operator::Lte => have_number.zip(bound).is_some_and(|(have, bound)| have <= bound),
    }
}

fn term_holds(term: &NodeTerm, name: &str, labels: &Labels) -> bool {
    if term.labels.is_empty() && term.fields.is_empty() {
        return false;
    }
    term.labels.iter().all(|it| holds(it, labels.get(&it.key)))
        && term.fields.iter().all(|it| holds(it, Some(&name.to_owned())))
}

/// Node selector and required node affinity.
fn selected(demand: &Demand, node: &Standing<'_>) -> bool {
    demand.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
        && match &demand.node_terms {
            None => true,
            Some(terms) => terms.iter().any(|it| term_holds(it, &node.name, &node.labels)),
        }
}

fn chosen(selector: &Selector, labels: &Labels) -> bool {
    match selector {
        Selector::Nothing => false,
        Selector::All(all) => all.iter().all(|it| holds(it, labels.get(&it.key))),
    }
}

fn same_and_other(same: &[String], other: &[String], own: &Labels, theirs: &Labels) -> bool {
    same.iter().all(|key| own.get(key).is_none_or(|it| theirs.get(key) == Some(it)))
        && other.iter().all(|key| own.get(key).is_none_or(|it| theirs.get(key) != Some(it)))
}

/// Whether the term, written by `owner`, means `other`.
fn means(term: &PodTerm, owner: &Pod, other: &Pod) -> bool {
    let namespace: &Namespace = &other.namespace;
    let own_only = term.namespaces.is_empty() && term.namespace_selector.is_none();
    let there = (own_only && namespace.name == owner.namespace.name)
        || term.namespaces.iter().any(|it| **it == *namespace.name)
        || term.namespace_selector.as_ref().is_some_and(|it| chosen(it, &namespace.labels));
    there
        && chosen(&term.selector, &other.demand.labels)
        && same_and_other(
            &term.match_label_keys,
            &term.mismatch_label_keys,
            &owner.demand.labels,
            &other.demand.labels,
        )
}

fn millis(name: &str, amount: Quantity) -> i128 {
    if name == "cpu" { amount.ceil_millis() } else { amount.ceil_units() }
}

fn room(node: &Standing<'_>, pod: &Pod) -> Result<(), String> {
    let mut used: BTreeMap<&str, i128> = BTreeMap::new();
    for (name, amount) in &node.taken {
        *used.entry(name).or_default() += millis(name, *amount);
    }
    for it in &node.pods {
        for (name, amount) in &it.demand.requests {
            *used.entry(name).or_default() += millis(name, *amount);
        }
        *used.entry("pods").or_default() += 1;
    }
    let have = |name: &str| node.allocatable.get(name).map_or(0, |it| millis(name, *it));
    if used.get("pods").unwrap_or(&0) + 1 > have("pods") {
        return Err("too many pods".to_owned());
    }
    for (name, amount) in &pod.demand.requests {
        let asked = millis(name, *amount);
        if asked > 0 && asked > have(name) - used.get(name.as_str()).unwrap_or(&0) {
            return Err(format!("too little {name}"));
        }
    }
    Ok(())
}

fn ports(node: &Standing<'_>, pod: &Pod) -> Result<(), String> {
    let theirs = node.pods.iter().chain(&node.daemons);
    for other in theirs.map(|it| &it.demand) {
        for port in &pod.demand.host_ports {
            for it in &other.host_ports {
                let name = |it: &str| if it.is_empty() { "TCP".to_owned() } else { it.to_owned() };
                let all = |it: &str| it.is_empty() || it == "0.0.0.0";
                let meet = all(&port.address) || all(&it.address) || port.address == it.address;
                if meet && port.port == it.port && name(&port.protocol) == name(&it.protocol) {
                    return Err(format!("port {} is taken", port.port));
                }
            }
        }
    }
    Ok(())
}

fn volumes(node: &Standing<'_>, pod: &Pod, new: bool) -> Result<(), String> {
    let mut labels = node.labels.clone();
    if new || !node.set_up {
        // The driver will write its own label once it runs there.
        if let Some(zone) = node.labels.get(label::ZONE) {
            labels.insert("topology.ebs.csi.aws.com/zone".to_owned(), zone.clone());
        }
    }
    for it in &pod.demand.volumes {
        if let Some(terms) = &it.reach
            && !terms.iter().any(|it| term_holds(it, &node.name, &labels))
        {
            return Err(format!("volume {} is elsewhere", it.handle));
        }
    }
    // What is made for a pod alone is another one for each.
    let mut attached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut own: BTreeMap<&str, usize> = BTreeMap::new();
    for it in node.pods.iter().flat_map(|it| &it.demand.volumes) {
        match &it.driver {
            Some(driver) if it.own => *own.entry(driver).or_default() += 1,
            Some(driver) => drop(attached.entry(driver).or_default().insert(&it.handle)),
            None => {}
        }
    }
    // Only what it adds is judged: a node that is over its limit takes pods that add nothing.
    for (driver, limit) in &node.volume_limits {
        let there = attached.remove(driver.as_str()).unwrap_or_default();
        let own_there = own.remove(driver.as_str()).unwrap_or_default();
        let theirs = pod.demand.volumes.iter().filter(|it| it.driver.as_ref() == Some(driver));
        let (own, shared): (Vec<_>, Vec<_>) = theirs.partition(|it| it.own);
        let more: BTreeSet<&str> =
            shared.iter().map(|it| it.handle.as_str()).filter(|it| !there.contains(it)).collect();
        let more = more.len() + own.len();
        if more > 0 && there.len() + own_there + more > *limit as usize {
            return Err(format!("{driver} has too many volumes"));
        }
    }
    Ok(())
}

fn near_and_away(nodes: &[Standing<'_>], at: usize, pod: &Pod) -> Result<(), String> {
    let here = &nodes[at];
    for daemon in &here.daemons {
        let avoids = |one: &Pod, other: &Pod| {
            one.demand.anti_affinity.iter().any(|it| means(it, one, other))
        };
        if avoids(pod, daemon) || avoids(daemon, pod) {
            return Err(format!("near the daemon {}", daemon.name));
        }
    }
    let together = |key: &str, other: &Standing<'_>| matches!((here.labels.get(key), other.labels.get(key)), (Some(left), Some(right)) if left == right);
    // A scheduler may read more namespaces into the pod's own terms than are meant.
    let misread = |term: &PodTerm| match &term.namespace_selector {
        Some(it) if chosen(it, &Labels::new()) => {
            PodTerm { namespace_selector: Some(Selector::everything()), ..term.clone() }
        }
        Some(_) | None => term.clone(),
    };
    for term in pod.demand.anti_affinity.iter().map(misread) {
        for node in nodes.iter().filter(|it| together(&term.topology_key, it)) {
            if node.pods.iter().any(|it| means(&term, pod, it)) {
                return Err(format!("too near by {}", term.topology_key));
            }
        }
    }
    for node in nodes {
        for other in &node.pods {
            for term in &other.demand.anti_affinity {
                if together(&term.topology_key, node) && means(term, other, pod) {
                    return Err(format!("unwelcome to {} by {}", other.name, term.topology_key));
                }
            }
        }
    }
    let terms = &pod.demand.affinity;
    if terms.is_empty() {
        return Ok(());
    }
    let friend = |other: &Pod| terms.iter().all(|it| means(it, pod, other));
    let lacks = terms.iter().any(|it| !here.labels.contains_key(&it.topology_key));
    // Daemons come with their node.
    let friends = |it: &Standing<'_>| it.pods.iter().chain(&it.daemons).any(|it| friend(it));
    let satisfied = terms
        .iter()
        .all(|term| nodes.iter().any(|it| together(&term.topology_key, it) && friends(it)));
    let misread: Vec<PodTerm> = terms.iter().map(misread).collect();
    let taken_for = |other: &Pod| misread.iter().all(|it| means(it, pod, other));
    let somewhere = nodes.iter().any(|node| {
        terms.iter().any(|it| node.labels.contains_key(&it.topology_key))
            && node.pods.iter().chain(&node.daemons).any(|it| taken_for(it))
    });
    if lacks || !(satisfied || (!somewhere && friend(pod))) {
        return Err("nobody near".to_owned());
    }
    Ok(())
}

fn spread_over(nodes: &[Standing<'_>], at: usize, pod: &Pod) -> Result<(), String> {
    let required: Vec<&Spread> = pod.demand.spread.iter().filter(|it| it.required).collect();
    for spread in &required {
        let Some(own) = nodes[at].labels.get(&spread.topology_key) else {
            return Err(format!("no label {}", spread.topology_key));
        };
        let selects = |labels: &Labels| {
            chosen(&spread.selector, labels)
                && same_and_other(&spread.match_label_keys, &[], &pod.demand.labels, labels)
        };
        // With no label asked for, Kubernetes counts nobody.
        let of_labels = spread.match_label_keys.iter().any(|it| pod.demand.labels.contains_key(it));
        let counts = spread.selector != Selector::All(Vec::new()) || of_labels;
        let mut domains: BTreeMap<&String, u32> = BTreeMap::new();
        for node in nodes {
            if required.iter().any(|it| !node.labels.contains_key(&it.topology_key))
                || (spread.honour_node_affinity && !selected(&pod.demand, node))
                || (spread.honour_taints
                    && !node.taints.iter().all(|it| soft(it) || tolerates(&pod.demand, it)))
            {
                continue;
            }
            let there = node.pods.iter().filter(|it| {
                counts
                    && !it.terminating
                    && it.namespace.name == pod.namespace.name
                    && selects(&it.demand.labels)
            });
            *domains.entry(&node.labels[&spread.topology_key]).or_default() +=
                u32::try_from(there.count()).unwrap();
        }
        let enough = domains.len() >= spread.min_domains.unwrap_or(1) as usize;
        let least = domains.values().min().copied().filter(|_| enough).unwrap_or(0);
        let itself = u32::from(selects(&pod.demand.labels));
        let there = domains.get(own).copied().unwrap_or(0) + itself;
        if there > spread.max_skew + least {
            return Err(format!("skewed over {}: {there} above {least}", spread.topology_key));
        }
    }
    Ok(())
}

/// Whether the scheduler would put the pod there now.
pub(crate) fn admits(
    nodes: &[Standing<'_>],
    at: usize,
    pod: &Pod,
    new: bool,
) -> Result<(), String> {
    let node = &nodes[at];
    if let Some(taint) = node.taints.iter().find(|it| !soft(it) && !tolerates(&pod.demand, it)) {
        return Err(format!("taint {taint}"));
    }
    if !selected(&pod.demand, node) {
        return Err("not selected".to_owned());
    }
    room(node, pod)?;
    ports(node, pod)?;
    volumes(node, pod, new)?;
    near_and_away(nodes, at, pod)?;
    spread_over(nodes, at, pod)
}

/// The machines, and ways to buy them, that the claim of a new node leaves open.
fn realisations<'a>(node: &NewNode, pool: &'a Pool) -> Vec<(&'a Machine, &'a Offering)> {
    let mut all = Vec::new();
    for machine in pool.machines.iter() {
        for offering in &machine.offerings {
            let can_be_had = offering.available && offering.remaining != Some(0);
            let asked = node.requirements.iter().all(|it| match offering.labels.get(&it.key) {
                Some(value) => holds(it, Some(value)),
                None => match machine.labels.get(&it.key) {
                    Some(values) => values.iter().any(|value| holds(it, Some(value))),
                    None => true,
                },
            });
            if can_be_had && asked {
                all.push((machine, offering));
            }
        }
    }
    all
}

fn more_labels(node: &NewNode, pool: &Pool, roll: usize) -> Labels {
    let decided = |key: &str| {
        pool.machines.iter().any(|it| {
            it.labels.contains_key(key) || it.offerings.iter().any(|it| it.labels.contains_key(key))
        })
    };
    let open = node
        .requirements
        .iter()
        .filter(|it| it.operator == Operator::In && !it.values.is_empty() && !decided(&it.key));
    open.map(|it| (it.key.clone(), it.values[roll % it.values.len()].clone())).collect()
}

/// The nodes as they come up, each the machine that the roll has chosen.
struct Site<'a> {
    pools: &'a [Pool],
    packing: &'a Packing,
    possible: &'a [Vec<(&'a Machine, &'a Offering)>],
    roll: usize,
    existing: usize,
    standing: Vec<Standing<'a>>,
    opened: BTreeMap<usize, usize>,
}

impl<'a> Site<'a> {
    fn new(
        nodes: &'a [Node],
        pools: &'a [Pool],
        packing: &'a Packing,
        possible: &'a [Vec<(&'a Machine, &'a Offering)>],
        roll: usize,
    ) -> Self {
        let stay = nodes.iter().filter(|it| !it.leaving).map(standing);
        let leaving = nodes.iter().filter(|it| it.leaving).map(cordoned);
        let standing: Vec<Standing<'_>> = stay.chain(leaving).collect();
        let (existing, opened) = (standing.len(), BTreeMap::new());
        Self { pools, packing, possible, roll, existing, standing, opened }
    }

    /// Where a home stands. A new node comes up when it is first asked for.
    fn find(&mut self, home: &Home) -> usize {
        let new = match home {
            Home::Node(name) => {
                return self.standing.iter().position(|node| node.name == *name).unwrap();
            }
            Home::New(new) => *new,
        };
        if let Some(at) = self.opened.get(&new) {
            return *at;
        }
        let (node, found) = (&self.packing.new_nodes[new], &self.possible[new]);
        let roll = self.roll;
        let (machine, offering) = found[(roll * (new + 1) + roll / 2) % found.len()];
        let pool = self.pools.iter().find(|pool| pool.name == node.pool).unwrap();
        let more = more_labels(node, pool, roll);
        self.standing.push(launched(pool, machine, offering, &format!("new-{new}"), &more));
        self.opened.insert(new, self.standing.len() - 1);
        self.standing.len() - 1
    }

    fn admits(&self, at: usize, pod: &Pod) -> Result<(), String> {
        admits(&self.standing, at, pod, at >= self.existing)
    }

    /// Undoes the coming up of the node that came up last.
    fn close(&mut self) {
        self.standing.pop();
        let last = self.standing.len();
        self.opened.retain(|_, at| *at < last);
    }
}

/// When new nodes come up, each a domain to be spread over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "the comparison with Karpenter knows only one of them")]
pub(crate) enum Arrival {
    /// As the first is bound there.
    WhenAsked,
    /// All of them before anybody is bound.
    First,
    /// All of them once everybody is bound who could be without them.
    Awaited,
}

/// The pods that could not be bound where the packing has them, and why: none, if there is an order in
/// which the scheduler could have done so. For packings of which the homes are known and not the order.
/// Of the orders that are tried, that with the fewest.
pub(crate) fn stuck(
    pods: &[Pod],
    nodes: &[Node],
    pools: &[Pool],
    packing: &Packing,
    (roll, arrival): (usize, Arrival),
) -> Vec<String> {
    let by_id: BTreeMap<String, &Pod> = pods.iter().map(|it| (it.id().to_string(), it)).collect();
    let pool_of = |it: &NewNode| pools.iter().find(|pool| pool.name == it.pool).unwrap();
    let possible: Vec<_> =
        packing.new_nodes.iter().map(|it| realisations(it, pool_of(it))).collect();
    let mut order: Vec<(&Pod, &Home)> =
        packing.placed.iter().map(|it| (by_id[&it.pod.to_string()], &it.home)).collect();
    let mut fewest: Option<Vec<String>> = None;
    for _ in 0..ORDERS {
        let mut site = Site::new(nodes, pools, packing, &possible, roll);
        let mut pending = order.clone();
        if arrival == Arrival::Awaited {
            let exists = |it: &(&Pod, &Home)| matches!(it.1, Home::Node(_));
            let (now, later): (Vec<_>, Vec<_>) = pending.into_iter().partition(exists);
            let (left, _) = bind_all(&mut site, &now);
            let waits = |it: &(&Pod, &Home)| left.iter().any(|pod| std::ptr::eq(*pod, it.0));
            pending = now.into_iter().filter(waits).chain(later).collect();
        }
        for new in (0..packing.new_nodes.len()).filter(|_| arrival != Arrival::WhenAsked) {
            site.find(&Home::New(new));
        }
        let (left, why) = bind_all(&mut site, &pending);
        if fewest.as_ref().is_none_or(|it| why.len() < it.len()) {
            fewest = Some(why);
        }
        if left.is_empty() {
            break;
        }
        // Who was left comes first next time.
        let was_left = |it: &(&Pod, &Home)| left.iter().any(|pod| std::ptr::eq(*pod, it.0));
        order.sort_by_key(|it| !was_left(it));
    }
    fewest.unwrap_or_default()
}

/// Goes round as long as somebody can be bound. Who is left, and why.
fn bind_all<'a>(site: &mut Site<'a>, order: &[(&'a Pod, &'a Home)]) -> (Vec<&'a Pod>, Vec<String>) {
    let mut left = order.to_vec();
    loop {
        let (before, mut why) = (left.len(), Vec::new());
        left.retain(|(pod, home)| {
            let stood = site.standing.len();
            let at = site.find(home);
            let Err(told) = site.admits(at, pod) else {
                site.standing[at].pods.push(pod);
                return false;
            };
            if site.standing.len() > stood {
                site.close();
            }
            why.push(format!("roll {}: {} on {home:?}: {told}", site.roll, pod.id()));
            true
        });
        if left.len() == before {
            return (left.into_iter().map(|(pod, _)| pod).collect(), why);
        }
    }
}

/// Everything that is wrong with a packing, in words. `rolls` chooses which machine each new node
/// turns out to be.
pub(crate) fn faults(
    pods: &[Pod],
    nodes: &[Node],
    pools: &[Pool],
    packing: &Packing,
    rolls: &[usize],
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut answered: Vec<String> = packing.placed.iter().map(|it| it.pod.to_string()).collect();
    answered.extend(packing.unplaced.iter().map(|it| it.pod.to_string()));
    let mut asked: Vec<String> = pods.iter().map(|it| it.id().to_string()).collect();
    answered.sort();
    asked.sort();
    if answered != asked {
        faults.push(format!("no partition: asked {asked:?}, answered {answered:?}"));
    }
    let by_id: BTreeMap<String, &Pod> = pods.iter().map(|it| (it.id().to_string(), it)).collect();
    let pool_of = |it: &NewNode| pools.iter().find(|pool| pool.name == it.pool).unwrap();
    let mut possible = Vec::new();
    for (at, it) in packing.new_nodes.iter().enumerate() {
        let found = realisations(it, pool_of(it));
        let names: BTreeSet<&String> = found.iter().map(|(machine, _)| &machine.name).collect();
        let said: BTreeSet<&String> = it.machines.iter().map(|it| &it.machine).collect();
        if names != said || said.is_empty() {
            faults.push(format!("new node {at}: says {said:?}, could be {names:?}"));
        }
        if it.pods.is_empty() {
            faults.push(format!("new node {at} is for nobody"));
        }
        let prices: Vec<_> = it.machines.iter().map(|it| (it.price.is_none(), it.price)).collect();
        if !prices.is_sorted() {
            faults.push(format!("new node {at}: not the cheapest first: {prices:?}"));
        }
        possible.push(found);
    }
    faults.extend(beyond(pools, packing, &possible));
    if !faults.is_empty() {
        return faults;
    }
    for roll in rolls {
        let mut site = Site::new(nodes, pools, packing, &possible, *roll);
        for it in &packing.placed {
            let pod = by_id[&it.pod.to_string()];
            if !pod.demand.gates.is_empty() || !pod.demand.unmodelled.is_empty() {
                faults.push(format!("{} must not be placed", it.pod));
            }
            let at = site.find(&it.home);
            if let Err(why) = site.admits(at, pod) {
                let name = &site.standing[at].name;
                faults.push(format!("roll {roll}: {} on {name}: {why}", it.pod));
            }
            site.standing[at].pods.push(pod);
        }
    }
    // And whichever machine it is, all of its pods have room at once.
    for (at, node) in packing.new_nodes.iter().enumerate() {
        let more = more_labels(node, pool_of(node), 0);
        for (machine, offering) in &possible[at] {
            let mut alone = launched(pool_of(node), machine, offering, "alone", &more);
            for id in &node.pods {
                let pod = by_id[&id.to_string()];
                let fine = room(&alone, pod).and_then(|()| volumes(&alone, pod, true));
                let fine = fine.and_then(|()| ports(&alone, pod));
                let selected = selected(&pod.demand, &alone);
                if fine.is_err() || !selected {
                    faults.push(format!(
                        "new node {at} as {}: {id}: {fine:?}, {selected}",
                        machine.name
                    ));
                }
                alone.pods.push(pod);
            }
        }
    }
    faults
}

/// Limits, reservations and numbers of different machines.
fn beyond(
    pools: &[Pool],
    packing: &Packing,
    possible: &[Vec<(&Machine, &Offering)>],
) -> Vec<String> {
    let mut faults = Vec::new();
    for pool in pools {
        let own: Vec<usize> = (0..packing.new_nodes.len())
            .filter(|at| packing.new_nodes[*at].pool == pool.name)
            .collect();
        for (name, limit) in pool.limits.iter().filter(|_| !own.is_empty()) {
            let mut total = pool.used.get(name).copied().unwrap_or_default();
            for at in &own {
                let most = possible[*at].iter().map(|(machine, _)| match name.as_str() {
                    "nodes" => Quantity::from_units(1),
                    _ => machine.capacity.get(name).copied().unwrap_or_default(),
                });
                total = total.saturating_add(most.max().unwrap_or_default());
            }
            if total > *limit {
                faults.push(format!("pool {}: {total} of {name}, limit {limit}", pool.name));
            }
        }
        for it in pool.requirements.iter().filter(|it| it.min_values.is_some()) {
            for at in &own {
                let values: BTreeSet<&String> = possible[*at]
                    .iter()
                    .flat_map(|(machine, offering)| {
                        let of_machine = machine.labels.get(&it.key).into_iter().flatten();
                        offering.labels.get(&it.key).into_iter().chain(of_machine)
                    })
                    .collect();
                if values.len() < it.min_values.unwrap() as usize {
                    faults.push(format!("new node {at}: too few of {}: {values:?}", it.key));
                }
            }
        }
    }
    let mut reserved: BTreeMap<&String, (usize, u32)> = BTreeMap::new();
    for found in possible {
        let ids: BTreeMap<&String, u32> = found
            .iter()
            .filter_map(|(_, it)| it.labels.get(label::CAPACITY_RESERVATION_ID).zip(it.remaining))
            .collect();
        for (id, remaining) in ids {
            let entry = reserved.entry(id).or_insert((0, remaining));
            *entry = (entry.0 + 1, entry.1.min(remaining));
        }
    }
    for (id, (used, remaining)) in reserved {
        if used > remaining as usize {
            faults.push(format!("reservation {id}: {used} of {remaining}"));
        }
    }
    faults
}
