//! Which machines could a pool launch?
//!
//! `pool × class × instance types × market → machines with their offerings`

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_api::into_bootstrap::offered;
use nodemolt_api::listing::{World, class as status};
use nodemolt_api::nodepool::NodePool;
use nodemolt_api::v1beta1::KUBELET_ANNOTATION;
use nodemolt_fit::capacity::{Amounts, NodeSettings};
use nodemolt_fit::node::Node;
use nodemolt_fit::pack::{Obstacle, Why, pack};
use nodemolt_fit::pod::{Demand, Namespace, Pod};
use nodemolt_fit::pool::{Machine, NODES, Pool, machines};
use nodemolt_fit::taint::{Tolerated, Toleration};
use nodemolt_fit::{Family, Operator, Quantity, Types, Written, label};

use super::{Talk, files::ClassFile, files::Files, market::Market, market::OfClass};
use crate::cli;

/// Of classes whose nodes are known here: Karpenter's, and ours.
const CLASS_GROUPS: [&str; 2] = ["karpenter.k8s.aws", "nodemolt.dev"];

/// Why a pool launches none, where nothing that it writes is wrong.
pub(super) const OFFERS_NOTHING: &str =
    "no instance type that can be had in any zone meets its requirements";
const BOOTS_NOTHING: &str =
    "no image of its class boots on an instance type that meets its requirements";

const TENANCIES: [&str; 2] = ["default", "dedicated"];

/// The pools of the files, complete.
#[derive(Debug, Clone, Default)]
pub(super) struct Pools {
    pub able: Vec<Pool>,
    /// Kept at a number: they launch one in the place of each node that leaves, and none for pods.
    pub kept: Vec<Pool>,
    /// Those of the able ones that are kept at a number and have fewer nodes.
    pub filling: BTreeSet<String>,
    /// Those that launch no nodes for pods, and why.
    pub idle: Vec<(String, String)>,
    /// The same, as pools that can be the nearest place.
    pub unable: Vec<Pool>,
    /// Of each pool whose class is known here: what its nodes are made with.
    pub made_with: BTreeMap<String, MadeWith>,
}

#[derive(Debug, Clone)]
pub(super) struct MadeWith {
    /// By group and name, if it is in the files.
    pub class: Option<String>,
    pub settings: NodeSettings,
}

impl Pools {
    pub(super) fn all(&self) -> impl Iterator<Item = &Pool> {
        self.able.iter().chain(&self.kept)
    }

    /// These, and those that launch none, which can be the nearest place.
    pub(super) fn with_unable(&self, able: &[Pool]) -> Vec<Pool> {
        able.iter().chain(&self.unable).cloned().collect()
    }

    /// Whether the files have it.
    pub(super) fn knows(&self, pool: &str) -> bool {
        self.all().chain(&self.unable).any(|it| it.name == pool)
    }

    pub(super) fn keeps(&self, pool: &str) -> bool {
        self.kept.iter().any(|it| it.name == pool)
    }
}

pub(super) fn pools(
    verb: &cli::Pack,
    files: &Files,
    types: &Types,
    market: &Market,
    world: &World,
    talk: &mut Talk,
) -> Pools {
    let mut made: BTreeMap<String, (NodeSettings, Arc<Vec<Machine>>)> = BTreeMap::new();
    let seen = attached_by_type(world);
    let mut pools = Pools::default();
    for file in &files.pools {
        let name = &file.pool.name;
        let kept = file.wire.spec.replicas.is_some();
        let class = &file.wire.spec.template.spec.node_class_ref;
        let foreign = !CLASS_GROUPS.contains(&class.group.as_str());
        let key = format!("{}/{}", class.group, class.name);
        let known = files.classes.get(&key);
        let idle = if foreign {
            let told = "whose machines are not known here";
            Some(format!("its class is a {} of {}, {told}", class.kind, class.group))
        } else {
            let by_class = known.and_then(|it| status::launches_none(&it.wire));
            launches_none(&file.wire).or(by_class.map(|it| format!("its class {key} {it}")))
        };
        if let Some(why) = &idle {
            talk.notes.push(format!("pool {name} launches no nodes: {why}"));
            pools.idle.push((name.clone(), why.clone()));
        }
        if foreign {
            pools.unable.push(Pool { idle, ..file.pool.clone() });
            continue;
        }
        // In v1beta1 the pool has the settings of the kubelet, which v1 has in the class.
        let kubelet = file.wire.metadata.annotations.get(KUBELET_ANNOTATION);
        let made_as = kubelet.map_or_else(|| key.clone(), |it| format!("{key} {it}"));
        if known.is_none() && idle.is_none() && !made.contains_key(&made_as) {
            let settings = match kubelet {
                Some(_) => format!("the kubelet's settings of pool {name}"),
                None => "the kubelet's defaults".to_owned(),
            };
            talk.notes.push(format!(
                "class {key} is not in the files; its nodes are taken for AL2023 with {settings}"
            ));
        }
        let (settings, machines) = made.entry(made_as).or_insert_with(|| {
            let mut settings =
                known.map_or_else(|| NodeSettings::of(Family::Al2023), |it| it.settings.clone());
            if let Some(kubelet) = kubelet {
                match with_kubelet(known, kubelet) {
                    Some(with_kubelet) => settings = with_kubelet,
                    None => talk.warnings.push(format!(
                        "pool {name}: its settings of the kubelet cannot be read, and do not count"
                    )),
                }
            }
            settings.reserved_interfaces = verb.reserved_enis;
            settings.vm_memory_overhead_millionths = verb.vm_memory_overhead_percent;
            let of_class = known.map(|it| OfClass::new(&it.wire, settings.family.windows()));
            let of_class = of_class.unwrap_or_default();
            note_class(&key, &of_class, verb, market, talk);
            let mut machines = machines(types, &settings, |it| market.offerings(it, &of_class));
            for machine in &mut machines {
                // As Karpenter has it: any machine can be bought either way.
                let tenancies = TENANCIES.map(str::to_owned).to_vec();
                machine.labels.insert(label::TENANCY.to_owned(), tenancies);
                // What drivers have told of such machines is better than a rule.
                machine.volume_limits.extend(seen.get(&machine.name).cloned().unwrap_or_default());
            }
            if let Some(images) = known.and_then(|it| status::images(&it.wire)) {
                leave_without_image(&mut machines, &images);
            }
            (settings, Arc::new(machines))
        });
        let class = known.is_some().then(|| key.clone());
        let made_with = MadeWith { class, settings: settings.clone() };
        pools.made_with.insert(name.clone(), made_with);
        let machines = Arc::clone(machines);
        if idle.is_some() {
            pools.unable.push(Pool { idle, machines, ..file.pool.clone() });
            continue;
        }
        warn_of_unknown_values(&file.pool, types, market, talk);
        let pool = Pool {
            used: used(file, world, &machines),
            daemons: world.daemons.clone(),
            machines,
            ..file.pool.clone()
        };
        if let Some(why) = offers_nothing(&pool) {
            talk.warnings.push(format!("pool {name} can launch nothing: {why}"));
        }
        let to_come = to_come(&pool, file.wire.spec.replicas, world);
        if let Some((all, more)) = to_come {
            let come = if more == 1 { "1 comes".to_owned() } else { format!("{more} come") };
            talk.notes.push(format!(
                "pool {name} has fewer nodes than the {all} of its replicas: {come}, needed or not, and pods may go there"
            ));
            pools.able.push(filling(pool, all));
            pools.filling.insert(name.clone());
        } else if kept {
            let why = "it has a fixed number of nodes";
            talk.notes.push(format!("pool {name} launches no nodes for pods: {why}"));
            pools.idle.push((name.clone(), why.to_owned()));
            pools.unable.push(Pool { idle: Some(why.to_owned()), ..pool.clone() });
            pools.kept.push(pool);
        } else {
            pools.able.push(pool);
        }
    }
    pools
}

/// Of a pool that is kept at a number and has fewer: the number, and how many are to come. Not while one of its nodes leaves: then one
/// comes in its place, which is reckoned with elsewhere.
fn to_come(pool: &Pool, replicas: Option<i64>, world: &World) -> Option<(i64, i64)> {
    let of_pool = |it: &Node| it.pool.as_ref() == Some(&pool.name);
    if world.nodes.iter().any(|it| it.leaving && of_pool(it)) {
        return None;
    }
    let units = |it: &Quantity| i64::try_from(it.ceil_units()).unwrap_or(i64::MAX);
    let there = pool.used.get(NODES).map_or(0, units);
    let all = match pool.limits.get(NODES) {
        Some(limit) => replicas?.min(units(limit)),
        None => replicas?,
    };
    Some((all, all.saturating_sub(there))).filter(|(_, more)| *more > 0)
}

/// As a pool that launches up to so many. They come in any case, so that pods go there before others are launched.
fn filling(mut pool: Pool, nodes: i64) -> Pool {
    pool.limits.insert(NODES.to_owned(), Quantity::from_units(nodes));
    pool.weight = u32::MAX;
    pool
}

/// Machines on which no image of the class boots are offered, and cannot be had.
fn leave_without_image(machines: &mut [Machine], images: &[Vec<Written>]) {
    for machine in machines {
        if images.iter().any(|it| machine.is(it)) {
            continue;
        }
        for it in &mut machine.offerings {
            it.imageless = true;
        }
    }
}

/// How many volumes nodes of an instance type attach, by their `CSINode`s: the least of each type and driver.
fn attached_by_type(world: &World) -> BTreeMap<String, BTreeMap<String, u32>> {
    let mut seen: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    for node in &world.nodes {
        let Some(name) = node.labels.get(label::INSTANCE_TYPE) else { continue };
        for (driver, limit) in &node.volume_limits {
            let of_type = seen.entry(name.clone()).or_default();
            let least = of_type.entry(driver.clone()).or_insert(*limit);
            *least = (*least).min(*limit);
        }
    }
    seen
}

fn note_class(key: &str, of_class: &OfClass, verb: &cli::Pack, market: &Market, talk: &mut Talk) {
    let typed: BTreeSet<String> = verb.zones.iter().cloned().collect();
    if !typed.is_empty() && !of_class.zones.is_empty() && typed != of_class.zones {
        let zones: Vec<&str> = of_class.zones.iter().map(String::as_str).collect();
        talk.notes.push(format!(
            "--zones is not used for class {key}: its subnets are in {}",
            zones.join(", ")
        ));
    }
    if of_class.windows && market.lacks_windows() {
        talk.notes.push(format!(
            "nodes of class {key} have no price: those that are known are of Linux; pass what `aws pricing get-products` prints of Windows with --prices"
        ));
    }
    let uncounted = market.uncounted(of_class);
    if !uncounted.is_empty() {
        talk.notes.push(format!(
            "how many more instances capacity reservations of class {key} take is not known, so none is counted upon: pass what `aws ec2 describe-capacity-reservations` prints with --offerings: {}",
            uncounted.join(", ")
        ));
    }
}

/// The class as if it had these settings of the kubelet, if they can be read. A class that is not known is one of AL2023.
fn with_kubelet(class: Option<&ClassFile>, kubelet: &str) -> Option<NodeSettings> {
    let mut wire = match class {
        Some(class) => class.wire.clone(),
        None => serde_json::from_value(serde_json::json!({
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": {"name": "unknown"},
            "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}]},
        }))
        .ok()?,
    };
    wire.spec.kubelet = Some(serde_json::from_str(kubelet).ok()?);
    offered(&wire).ok().map(|(settings, _)| settings)
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

/// Why not even a pod that asks for nothing would get a node of it.
fn offers_nothing(pool: &Pool) -> Option<&'static str> {
    let anything = Toleration { key: None, value: Tolerated::Any, effect: None };
    let demand = Demand { tolerations: vec![anything], ..Demand::default() };
    let pod = Pod::new(&Arc::new(Namespace::named("probe")), "probe", &Arc::new(demand));
    let found = pack(&[pod], &[], std::slice::from_ref(pool));
    // A pool that has machines at all is at least the nearest place.
    found.unplaced.iter().find_map(|it| match &it.why {
        Why::NoPlace { nearest: None } => Some(OFFERS_NOTHING),
        Why::NoPlace { nearest: Some(miss) } if miss.obstacles.contains(&Obstacle::NoImage) => {
            Some(BOOTS_NOTHING)
        }
        Why::NoPlace { nearest: Some(miss) } => {
            let not_now = |it: &Obstacle| matches!(it, Obstacle::NoCapacity | Obstacle::Idle(_));
            miss.obstacles.iter().any(not_now).then_some(OFFERS_NOTHING)
        }
        Why::Gated(_) | Why::Unmodelled(_) => None,
    })
}

/// What the pool's nodes have: by the nodes and claims in the files, or by its status if that says more,
/// as it does where not all of them are in the files. A claim that is not launched yet may become the largest machine
/// that it allows.
fn used(file: &super::files::PoolFile, world: &World, machines: &[Machine]) -> Amounts {
    let mut used = world.used.get(&file.pool.name).cloned().unwrap_or_default();
    for asked in world.unlaunched.get(&file.pool.name).into_iter().flatten() {
        let mut most = Amounts::new();
        let all = asked.iter().chain(&file.pool.requirements);
        let may_be = |it: &&Machine| all.clone().all(|asked| it.labelled(asked));
        for (name, amount) in machines.iter().filter(may_be).flat_map(|it| &it.capacity) {
            let most = most.entry(name.clone()).or_insert(*amount);
            *most = (*most).max(*amount);
        }
        for (name, amount) in most {
            let sum = used.entry(name).or_default();
            *sum = sum.saturating_add(amount);
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
