//! What would have to change for a pod to have a place?

use nodemolt_fit::capacity::PODS;
use nodemolt_fit::pack::{Miss, Obstacle, Place, Why};
use nodemolt_fit::taint::UNSCHEDULABLE;
use nodemolt_fit::{Quantity, label};

/// Taints of nodes that do not answer.
const UNWELL: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
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
        Obstacle::Taint(taint) => format!("it tolerated {taint}"),
        Obstacle::Label(asked) if on_node => format!("that node had {asked}"),
        // No pool can promise a name.
        Obstacle::Label(asked) if [label::HOSTNAME, NAME].contains(&asked.key.as_str()) => {
            format!("it did not ask for {asked}")
        }
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
        Obstacle::VolumesFull { driver, over } => format!("{driver} could attach {over} more"),
        Obstacle::Short { resource, by } if *by >= Quantity::from_units(FAR_TOO_MUCH_UNITS) => {
            format!("it asked for far less {resource}")
        }
        Obstacle::Short { resource, by } if resource == PODS => {
            let noun = if *by == Quantity::from_units(1) { "pod" } else { "pods" };
            let room = if on_node { "there were" } else { "a machine had" };
            format!("{room} room for {by} more {noun}")
        }
        Obstacle::Short { resource, by } if on_node => format!("{by} more {resource} were free"),
        Obstacle::Short { resource, by } => format!("a machine had {by} more {resource}"),
        Obstacle::HostPortTaken(port) if on_node => format!("host port {port} were free"),
        Obstacle::HostPortTaken(port) => format!("no DaemonSet had host port {port} there"),
        Obstacle::LacksTopology { key } => format!("there were a label {key}"),
        Obstacle::NobodyNear { key } => format!("a pod that it must be near were in that {key}"),
        Obstacle::TooNear { key } => format!("no pod that it must avoid were in that {key}"),
        Obstacle::Unwelcome { key } => format!("no pod in that {key} had to avoid it"),
        Obstacle::Skewed { key, skew, max } => {
            format!("a skew of {skew} over {key} were allowed, not {max}")
        }
        Obstacle::NoSuchMachine => "a machine had these labels and this room at once".to_owned(),
        Obstacle::NoCapacity => "a machine that would do could be had".to_owned(),
        Obstacle::MinValues { key, have, need } => {
            format!("the pool demanded {have} different values of {key}, not {need}")
        }
        Obstacle::PoolLimit { resource, by } => {
            format!("the pool's limit of {resource} were {by} higher")
        }
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
        Obstacle::Short { .. } => "Short",
        Obstacle::HostPortTaken(_) => "HostPortTaken",
        Obstacle::LacksTopology { .. } => "LacksTopology",
        Obstacle::NobodyNear { .. } => "NobodyNear",
        Obstacle::TooNear { .. } => "TooNear",
        Obstacle::Unwelcome { .. } => "Unwelcome",
        Obstacle::Skewed { .. } => "Skewed",
        Obstacle::NoSuchMachine => "NoSuchMachine",
        Obstacle::NoCapacity => "NoCapacity",
        Obstacle::MinValues { .. } => "MinValues",
        Obstacle::PoolLimit { .. } => "PoolLimit",
    }
}
