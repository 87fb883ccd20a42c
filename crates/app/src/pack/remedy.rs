//! What would have to change for a pod to have a place?

use nodemolt_fit::capacity::PODS;
use nodemolt_fit::pack::{Miss, Obstacle, Place, Why};
use nodemolt_fit::taint::UNSCHEDULABLE;
use nodemolt_fit::{Quantity, label};

/// Taints of nodes that do not answer.
const UNWELL: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
/// Ends of taints that a node has until it is set up. They are not for a pod to tolerate.
const YOUNG: [&str; 3] = ["/uninitialized", "/agent-not-ready", "/unregistered"];
/// Taints of nodes that somebody is about to remove.
const GOING: [&str; 2] = ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"];
/// What a term of node affinity calls a node's name.
const NAME: &str = "metadata.name";

/// No machine is that large; sums of this size are no longer exact.
const FAR_TOO_MUCH_UNITS: i64 = 1 << 50;

/// In one sentence.
pub(super) fn sentence(why: &Why) -> String {
    match why {
        Why::Gated(gates) => {
            format!("it waits for whoever set the scheduling gates {}", gates.join(", "))
        }
        Why::Unmodelled(what) => format!("nobody here can foresee {}", what.join("; ")),
        Why::NoPlace { nearest: None } => {
            "there is neither a node that stays nor a pool that could launch one".to_owned()
        }
        Why::NoPlace { nearest: Some(miss) } if miss.obstacles.is_empty() => {
            "no node will ever do: a term of node affinity without expressions admits none"
                .to_owned()
        }
        Why::NoPlace { nearest: Some(miss) } => {
            format!("would fit on {} if {}", place(&miss.place), changes(miss).join(" and "))
        }
    }
}

/// Whether what would have to change was measured for one pod alone.
pub(super) fn helps_one(why: &Why) -> bool {
    let Why::NoPlace { nearest: Some(miss) } = why else { return false };
    miss.obstacles.iter().any(|it| {
        matches!(
            it,
            Obstacle::PoolLimit { .. } | Obstacle::Short { .. } | Obstacle::VolumesFull { .. }
        )
    })
}

pub(super) fn reason(why: &Why) -> &'static str {
    match why {
        Why::Gated(_) => "Gated",
        Why::Unmodelled(_) => "Unmodelled",
        Why::NoPlace { .. } => "NoPlace",
    }
}

pub(super) fn place(place: &Place) -> String {
    match place {
        Place::Node(name) => format!("node {name}"),
        Place::Pool(name) => format!("a new node of pool {name}"),
    }
}

/// Each a clause that can follow "if".
pub(super) fn changes(miss: &Miss) -> Vec<String> {
    miss.obstacles.iter().map(|it| change(it, &miss.place)).collect()
}

fn change(obstacle: &Obstacle, place: &Place) -> String {
    let on_node = matches!(place, Place::Node(_));
    match obstacle {
        Obstacle::Taint(taint) if taint.key == UNSCHEDULABLE => {
            "that node were not cordoned".to_owned()
        }
        Obstacle::Taint(taint) if UNWELL.contains(&taint.key.as_str()) => {
            "that node were ready".to_owned()
        }
        Obstacle::Taint(taint) if GOING.contains(&taint.key.as_str()) => {
            format!("that node were not about to go ({taint})")
        }
        Obstacle::Taint(taint) if YOUNG.iter().any(|it| taint.key.ends_with(it)) && on_node => {
            format!("that node were set up ({taint} were gone)")
        }
        Obstacle::Taint(taint) => format!("it tolerated {taint}"),
        // No node can have another name, and no pool can promise one.
        Obstacle::Label(asked) if [label::HOSTNAME, NAME].contains(&asked.key.as_str()) => {
            format!("it did not ask for {asked}")
        }
        Obstacle::Label(asked) if on_node => format!("that node had {asked}"),
        Obstacle::Label(asked) => format!("the pool allowed {asked}"),
        Obstacle::NotOffered(asked) => format!("a machine with {asked} could be had"),
        Obstacle::VolumeElsewhere { handle, asks } if asks.is_empty() => {
            format!("its volume {handle} were not elsewhere")
        }
        Obstacle::VolumeElsewhere { handle, asks } => {
            let asks: Vec<String> = asks.iter().map(ToString::to_string).collect();
            let whose = if on_node { "that node" } else { "such a node" };
            format!("{whose} had {}, where its volume {handle} is", asks.join(" and "))
        }
        Obstacle::VolumesApart { handles } => {
            let handles = handles.join(" and ");
            format!("its volumes {handles} could be reached from one node (no node will ever do)")
        }
        Obstacle::TooSmall { resource, by } if *by >= Quantity::from_units(FAR_TOO_MUCH_UNITS) => {
            format!("it asked for far less {resource}")
        }
        Obstacle::TooSmall { resource, by } => {
            format!("it asked for {} less {resource} (that node is too small)", readable(*by))
        }
        Obstacle::Unread(why) => format!("that node could be read ({why})"),
        Obstacle::Idle(why) => format!("the pool launched nodes for pods ({why})"),
        Obstacle::VolumesFull { driver, over } => format!("{driver} could attach {over} more"),
        Obstacle::Short { resource, by } if *by >= Quantity::from_units(FAR_TOO_MUCH_UNITS) => {
            format!("it asked for far less {resource}")
        }
        Obstacle::Short { resource, by } if resource == PODS => {
            let noun = if *by == Quantity::from_units(1) { "pod" } else { "pods" };
            let room = if on_node { "there were" } else { "a machine had" };
            format!("{room} room for {by} more {noun}")
        }
        Obstacle::Short { resource, by } if on_node => {
            format!("{} more {resource} were free", readable(*by))
        }
        Obstacle::Short { resource, by } => {
            format!("a machine had {} more {resource} for pods", readable(*by))
        }
        Obstacle::HostPortTaken(port) if on_node => format!("host port {port} were free"),
        Obstacle::HostPortTaken(port) => format!("no DaemonSet had host port {port} there"),
        Obstacle::LacksTopology { key } => format!("there were a label {key}"),
        Obstacle::NobodyNear { key, whom } => {
            let whom = whom.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
            format!("a pod that it must be near{whom} were in that {key}")
        }
        Obstacle::TooNear { key, who: None } => {
            format!("no pod that it must avoid were in that {key}")
        }
        Obstacle::TooNear { key, who: Some(who) } => {
            format!("no pod that it must avoid, such as {who}, were in that {key}")
        }
        Obstacle::Unwelcome { key, who: None } => format!("no pod in that {key} had to avoid it"),
        Obstacle::Unwelcome { key, who: Some(who) } => {
            format!("no pod in that {key}, such as {who}, had to avoid it")
        }
        Obstacle::Skewed { key, skew, max } => {
            format!("a skew of {skew} over {key} were allowed, not {max}")
        }
        Obstacle::NoSuchMachine => "a machine had these labels and this room at once".to_owned(),
        Obstacle::NoCapacity => "a machine that would do could be had".to_owned(),
        Obstacle::NoImage => "an image of the class booted on a machine that would do".to_owned(),
        Obstacle::MinValues { key, have, need } => {
            format!("the pool demanded {have} different values of {key}, not {need}")
        }
        Obstacle::PoolLimit { resource, by } => {
            format!("the pool's limit of {resource} were {} higher", readable(*by))
        }
    }
}

/// `96.08`, not `96080m`.
fn readable(amount: Quantity) -> String {
    let text = amount.to_string();
    let thousandths = text.strip_suffix('m').and_then(|it| it.parse::<i64>().ok());
    match thousandths.filter(|it| *it > 1000) {
        None => text,
        Some(it) => {
            let digits = format!("{}.{:03}", it / 1000, it % 1000);
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// What there is too little of, and how much, where it is an amount.
pub(super) fn amount(obstacle: &Obstacle) -> Option<(String, Quantity)> {
    match obstacle {
        Obstacle::Short { resource, by }
        | Obstacle::TooSmall { resource, by }
        | Obstacle::PoolLimit { resource, by } => Some((resource.clone(), *by)),
        Obstacle::VolumesFull { driver, over } => {
            let over = i64::try_from(*over).unwrap_or(i64::MAX);
            Some((driver.clone(), Quantity::from_units(over)))
        }
        Obstacle::Taint(_)
        | Obstacle::Label(_)
        | Obstacle::NotOffered(_)
        | Obstacle::VolumeElsewhere { .. }
        | Obstacle::VolumesApart { .. }
        | Obstacle::Unread(_)
        | Obstacle::Idle(_)
        | Obstacle::HostPortTaken(_)
        | Obstacle::LacksTopology { .. }
        | Obstacle::NobodyNear { .. }
        | Obstacle::TooNear { .. }
        | Obstacle::Unwelcome { .. }
        | Obstacle::Skewed { .. }
        | Obstacle::NoSuchMachine
        | Obstacle::NoCapacity
        | Obstacle::NoImage
        | Obstacle::MinValues { .. } => None,
    }
}

/// One word for programs.
pub(super) fn kind(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Taint(_) => "Taint",
        Obstacle::Label(_) => "Label",
        Obstacle::NotOffered(_) => "NotOffered",
        Obstacle::VolumeElsewhere { .. } => "VolumeElsewhere",
        Obstacle::VolumesFull { .. } => "VolumesFull",
        Obstacle::VolumesApart { .. } => "VolumesApart",
        Obstacle::TooSmall { .. } => "TooSmall",
        Obstacle::Unread(_) => "NodeUnread",
        Obstacle::Idle(_) => "PoolIdle",
        Obstacle::Short { .. } => "Short",
        Obstacle::HostPortTaken(_) => "HostPortTaken",
        Obstacle::LacksTopology { .. } => "LacksTopology",
        Obstacle::NobodyNear { .. } => "NobodyNear",
        Obstacle::TooNear { .. } => "TooNear",
        Obstacle::Unwelcome { .. } => "Unwelcome",
        Obstacle::Skewed { .. } => "Skewed",
        Obstacle::NoSuchMachine => "NoSuchMachine",
        Obstacle::NoCapacity => "NoCapacity",
        Obstacle::NoImage => "NoImage",
        Obstacle::MinValues { .. } => "MinValues",
        Obstacle::PoolLimit { .. } => "PoolLimit",
    }
}
