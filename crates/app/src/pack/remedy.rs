//! What would have to change for a pod to have a place?

use nodemolt_fit::capacity::PODS;
use nodemolt_fit::pack::{Miss, Obstacle, Place, Why};
use nodemolt_fit::taint::{Away, Taint};
use nodemolt_fit::{Operator, Quantity, label};

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
        Why::NoPlace { nearest: Some(miss) } if volumes_apart(miss).is_some() => {
            let volumes = volumes_apart(miss).unwrap_or_default();
            format!(
                "no node will ever do: its volumes {} cannot be reached from one node",
                volumes.join(" and ")
            )
        }
        Why::NoPlace { nearest: Some(miss) } if pools_asked_for(miss).is_some() => {
            let pools = pools_asked_for(miss).unwrap_or_default();
            format!("asks for a node of pool {}, and there is none", pools.join(" or "))
        }
        Why::NoPlace { nearest: Some(miss) } => {
            // Two taints may tell the same of a node.
            let mut told: Vec<String> = Vec::new();
            for it in changes(miss) {
                if !told.contains(&it) {
                    told.push(it);
                }
            }
            format!("would fit on {} if {}", place(&miss.place), told.join(" and "))
        }
    }
}

fn volumes_apart(miss: &Miss) -> Option<&[String]> {
    miss.obstacles.iter().find_map(|it| {
        if let Obstacle::VolumesApart { handles } = it { Some(handles.as_slice()) } else { None }
    })
}

/// The pools by name of which it asks for a node, where the nearest place is of another one: what is in the way there would
/// not be in the way of a node that may take it.
fn pools_asked_for(miss: &Miss) -> Option<Vec<&str>> {
    let labels = miss
        .obstacles
        .iter()
        .filter_map(|it| if let Obstacle::Label(it) = it { Some(it) } else { None });
    let asked = labels.into_iter().find(|it| label::normalise(&it.key) == label::NODEPOOL)?;
    (asked.operator == Operator::In).then(|| asked.values.iter().map(String::as_str).collect())
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
        Obstacle::Taint(taint) => match taint.away() {
            Some(away) if on_node => open_again(away, taint),
            // Its nodes would have it for good.
            Some(_) => format!("the pool did not give its nodes the taint {taint}"),
            None => format!("it tolerated {taint}"),
        },
        // No node can have another name or be of another pool, and no pool can promise what is not its to give.
        Obstacle::Label(asked) if !on_node && label::not_for_pools(&asked.key) => {
            format!("it did not ask for {asked}, which no pool can promise")
        }
        Obstacle::Label(asked) if label::not_for_pools(&asked.key) => {
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
            format!("its volumes {} could be reached from one node", handles.join(" and "))
        }
        Obstacle::TooSmall { resource, by } if *by >= Quantity::from_units(FAR_TOO_MUCH_UNITS) => {
            format!("it asked for far less {resource}")
        }
        Obstacle::TooSmall { resource, by } => {
            format!("it asked for {} less {resource} (that node is too small)", readable(*by))
        }
        Obstacle::TooLargeTogether { pods, requests, resource, by } => {
            let all = requests.get(resource).copied().unwrap_or_default();
            let (by, all) = (readable(*by), readable(all));
            format!(
                "a machine had {by} more {resource} for pods (the {pods} that must be on one node need {all})"
            )
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
        // What runs on a node that is still to come is a daemon.
        Obstacle::TooNear { key, who: Some(who) } if !on_node => {
            format!("DaemonSet {who}, which it must avoid, had no pod in that {key}")
        }
        Obstacle::Unwelcome { key, who: Some(who) } if !on_node => {
            format!("the pods of DaemonSet {who} in that {key} had not to avoid it")
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
            let noun = if *have == 1 { "value" } else { "different values" };
            format!("the pool demanded {have} {noun} of {key}, not {need}")
        }
        Obstacle::PoolLimit { resource, by } => {
            format!("the pool's limit of {resource} were {} higher", readable(*by))
        }
    }
}

/// Such a node is not for pods now, whatever they tolerate: what would have to be over.
fn open_again(away: Away, taint: &Taint) -> String {
    match away {
        Away::Cordoned => "that node were not cordoned".to_owned(),
        Away::Unwell => "that node were ready".to_owned(),
        Away::RunningOut { of } => format!("that node did not run out of {of} ({taint})"),
        Away::Unconnected => format!("that node's network were set up ({taint})"),
        Away::Down => format!("that node were in service ({taint})"),
        Away::Young => format!("that node were set up ({taint} were gone)"),
        Away::Going => format!("that node were not about to go ({taint})"),
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
        | Obstacle::TooLargeTogether { resource, by, .. }
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

/// Whether no machine will ever have so much.
pub(super) fn hopeless(miss: &Miss) -> bool {
    let far = Quantity::from_units(FAR_TOO_MUCH_UNITS);
    miss.obstacles.iter().filter_map(amount).any(|(_, by)| by >= far)
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
        Obstacle::TooLargeTogether { .. } => "TooLargeTogether",
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
