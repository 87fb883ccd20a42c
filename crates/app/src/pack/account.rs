//! How does every node and every pool stand to one pod?
//!
//! `world × packing × name → the pod's answer + each place, grouped for people`

use std::collections::BTreeMap;

use nodemolt_api::listing::World;
use nodemolt_fit::Quantity;
use nodemolt_fit::node::Node;
use nodemolt_fit::pack::{Account, Home, Miss, Obstacle, Opened, Place};
use nodemolt_fit::pod::{Demand, Pod, PodId};

use super::machines::Pools;
use super::remedy;
use super::story::{PodSaid, Story, name_volumes};
use crate::output::Failure;

/// Where the pod that was named is.
#[derive(Debug)]
pub(super) enum Found<'w> {
    /// It is packed.
    Packed(&'w Pod),
    Running {
        pod: &'w Pod,
        node: &'w Node,
    },
    LeftOut {
        id: &'w PodId,
        why: &'w str,
    },
}

impl Found<'_> {
    pub(super) fn id(&self) -> PodId {
        match self {
            Self::Packed(pod) | Self::Running { pod, .. } => pod.id(),
            Self::LeftOut { id, .. } => (*id).clone(),
        }
    }

    pub(super) fn demand(&self) -> Option<&Demand> {
        match self {
            Self::Packed(pod) | Self::Running { pod, .. } => Some(&pod.demand),
            Self::LeftOut { .. } => None,
        }
    }
}

/// By namespace and name, or by name alone where that is enough.
pub(super) fn find<'w>(world: &'w World, named: &str) -> Result<Found<'w>, Failure> {
    // `kubectl get pods -o name` writes them so. A namespace may be called so, too.
    let bare = named.strip_prefix("pod/").filter(|_| {
        let packed = world.pods.iter().map(Pod::id);
        let running = world.nodes.iter().flat_map(|it| it.pods.iter().map(Pod::id));
        let left_out = world.left_out.keys().cloned();
        !packed.chain(running).chain(left_out).any(|it| &*it.namespace == "pod")
    });
    let named = bare.unwrap_or(named);
    let meant = |id: &PodId| *id.name == *named || id.to_string() == named;
    let packed = world.pods.iter().map(Found::Packed);
    let running = world.nodes.iter().filter(|it| !it.leaving).flat_map(|node| {
        // Daemons that have not come yet have no pod to ask about.
        node.pods.iter().filter(|it| !it.tied).map(|pod| Found::Running { pod, node })
    });
    let left_out = world.left_out.iter().map(|(id, why)| Found::LeftOut { id, why });
    let found = packed.chain(running).chain(left_out).filter(|it| meant(&it.id()));
    // A pod that is being deleted has the name of the one that comes after it. Who needs a place is asked about.
    let mut by_id: BTreeMap<PodId, Found<'_>> = BTreeMap::new();
    for it in found {
        by_id.entry(it.id()).or_insert(it);
    }
    let mut found = by_id.into_values();
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(one), Some(other)) => Err(Failure::usage(format!(
            "several pods are called `{named}`"
        ))
        .hint(format!("write `{}` or `{}`", one.id(), other.id()))),
        (None, _) => {
            let near = world
                .pods
                .iter()
                .map(|it| it.id().to_string())
                .map(|it| {
                    // Who leaves the namespace out means the name.
                    let name = it.split_once('/').map_or(it.as_str(), |(_, name)| name);
                    let meant = if named.contains('/') { it.as_str() } else { name };
                    (strsim::damerau_levenshtein(meant, named), it)
                })
                .filter(|(distance, it)| *distance <= 1.max(it.len() / 3))
                .min();
            let failure = Failure::usage(format!("the files hold no pod `{named}`"));
            Err(match near {
                Some((_, near)) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(
                    "pods that a workload stands for have its name and a number, such as `web#1`",
                ),
            })
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    Node(String),
    Pool(String),
    /// A new node that was opened for others before.
    New(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stands {
    Home,
    RunsThere,
    WouldDo,
    InTheWay(Miss),
    Full,
    Unsuited,
    Leaves,
    LaunchesNone(String),
}

#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub place: Named,
    pub stands: Stands,
}

impl Stands {
    /// One word for programs.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Home => "Home",
            Self::RunsThere => "RunsThere",
            Self::WouldDo => "WouldDo",
            Self::InTheWay(_) => "InTheWay",
            Self::Full => "Full",
            Self::Unsuited => "Unsuited",
            Self::Leaves => "Leaves",
            Self::LaunchesNone(_) => "LaunchesNone",
        }
    }

    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Home => "it goes there".to_owned(),
            Self::RunsThere => "it runs there".to_owned(),
            Self::WouldDo => "would do, too".to_owned(),
            Self::InTheWay(miss) => {
                format!("would do if {}", remedy::changes(miss).join(" and "))
            }
            Self::Full => "no machine that it could be has the room".to_owned(),
            Self::Unsuited => "does not suit it, or who is there does not".to_owned(),
            Self::Leaves => "leaves".to_owned(),
            Self::LaunchesNone(why) => format!("launches no node: {why}"),
        }
    }

    /// Places that differ in amounts only stand alike.
    fn alike(&self) -> String {
        let Self::InTheWay(miss) = self else { return self.sentence() };
        let each = miss.obstacles.iter().zip(remedy::changes(miss));
        let each = each.map(|(it, text)| match (it, remedy::amount(it)) {
            (Obstacle::Skewed { key: of, .. }, _) => format!("{} {of}", remedy::kind(it)),
            (_, Some((of, _))) => format!("{} {of}", remedy::kind(it)),
            (_, None) => text,
        });
        each.collect::<Vec<String>>().join("; ")
    }

    fn amounts(&self) -> Vec<Quantity> {
        let Self::InTheWay(miss) = self else { return Vec::new() };
        let each = miss.obstacles.iter().filter_map(|it| {
            if let Obstacle::Skewed { skew, .. } = it {
                return Some(Quantity::from_units(i64::from(*skew)));
            }
            remedy::amount(it).map(|(_, amount)| amount)
        });
        each.collect()
    }
}

/// Every node, every pool and every new node, each once: its home first.
pub(super) fn places(
    account: Option<Account>,
    pod: &PodSaid,
    (found, world): (&Found<'_>, &World),
    pools: &Pools,
    story: &Story,
) -> Vec<Seen> {
    // Who is not looked for a place for has no account.
    let Some(account) = account else { return Vec::new() };
    let home = pod.home.as_ref();
    let runs_on = match found {
        Found::Running { node, .. } => Some(Named::Node(node.name.clone())),
        Found::Packed(_) | Found::LeftOut { .. } => None,
    };
    let mut all = Vec::new();
    let mut looked_at = Vec::new();
    for mut miss in account.places {
        name_volumes(&mut miss, world);
        let (place, at_home) = match &miss.place {
            Place::Node(name) => {
                (Named::Node(name.clone()), home == Some(&Home::Node(name.clone())))
            }
            Place::Pool(name) => {
                looked_at.push(name.clone());
                (Named::Pool(name.clone()), false)
            }
        };
        let stands = match (at_home, miss.obstacles.is_empty()) {
            _ if runs_on.as_ref() == Some(&place) => Stands::RunsThere,
            (true, _) => Stands::Home,
            (false, true) if hopeless(&miss, pod) => Stands::Unsuited,
            (false, true) => Stands::WouldDo,
            (false, false) => Stands::InTheWay(miss),
        };
        all.push(Seen { place, stands });
    }
    let mut home_opened = false;
    for (at, opened) in account.opened {
        let at_home = home == Some(&Home::New(at));
        home_opened |= at_home;
        let stands = match opened {
            Opened::WouldDo if at_home => Stands::Home,
            Opened::WouldDo => Stands::WouldDo,
            Opened::Full => Stands::Full,
            Opened::Unsuited => Stands::Unsuited,
        };
        all.push(Seen { place: Named::New(story.home(&Home::New(at))), stands });
    }
    if let (Some(home @ Home::New(_)), false) = (home, home_opened) {
        all.push(Seen { place: Named::New(story.home(home)), stands: Stands::Home });
    }
    let leave = world.nodes.iter().filter(|it| it.leaving);
    all.extend(
        leave.map(|it| Seen { place: Named::Node(it.name.clone()), stands: Stands::Leaves }),
    );
    let without = pools.able.iter().filter(|it| !looked_at.contains(&it.name));
    let without = without.map(|it| (&it.name, super::machines::OFFERS_NOTHING));
    // One that is kept at a number may have been looked at all the same, in the place of a node that leaves.
    let idle = pools.idle.iter().filter(|(name, _)| !looked_at.contains(name));
    let idle = idle.map(|(name, why)| (name, why.as_str()));
    all.extend(without.chain(idle).map(|(name, why)| Seen {
        place: Named::Pool(name.clone()),
        stands: Stands::LaunchesNone(why.to_owned()),
    }));
    all.sort_by_key(|it| it.stands != Stands::Home);
    all
}

/// Nothing in the way of a pod that has no place: no node will ever do.
fn hopeless(miss: &Miss, pod: &PodSaid) -> bool {
    miss.obstacles.is_empty() && pod.home.is_none()
}

/// Places that stand alike.
#[derive(Debug)]
pub(super) struct Group {
    pub what: &'static str,
    pub names: Vec<String>,
    pub sentence: String,
}

/// Its home first, then what would do, then the places in the order in which they were looked at.
pub(super) fn groups(places: &[Seen]) -> Vec<Group> {
    let mut order: Vec<(&'static str, String)> = Vec::new();
    let mut members: BTreeMap<(&'static str, String), Vec<&Seen>> = BTreeMap::new();
    for seen in places {
        let what = match seen.place {
            Named::Node(_) => "node",
            Named::Pool(_) => "pool",
            Named::New(_) => "new node",
        };
        let key = (what, seen.stands.alike());
        let group = members.entry(key.clone()).or_default();
        if group.is_empty() {
            order.push(key);
        }
        group.push(seen);
    }
    let group = |key: (&'static str, String)| {
        let mut seen = members.remove(&key).unwrap_or_default();
        seen.sort_by_key(|it| it.stands.amounts());
        let first = seen.first().map(|it| it.stands.sentence()).unwrap_or_default();
        let differ = seen.iter().any(|it| it.stands.sentence() != first);
        let sentence = if differ { format!("{first}; the first of them at best") } else { first };
        let name = |it: &&Seen| match &it.place {
            Named::Node(name) | Named::Pool(name) | Named::New(name) => name.clone(),
        };
        Group { what: key.0, names: seen.iter().map(name).collect(), sentence }
    };
    order.into_iter().map(group).collect()
}
