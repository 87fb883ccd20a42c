//! The answer for programs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodemolt_core::place::Placement;
use nodemolt_fit::pack::{Choice, Home, Miss, Place, Why};
use nodemolt_fit::prices::decimal;
use nodemolt_fit::{Quantity, Written};
use serde::Serialize;

use super::Talk;
use super::advice::Larger;
use super::market::Known;
use super::remedy;
use super::story::{self, PodSaid, Story};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Packing<'s> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'s str>,
    summary: Summary<'s>,
    leaving: &'s [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    placements: Vec<Leaves<'s>>,
    unplaced: Vec<Unplaced<'s>>,
    new_nodes: Vec<New<'s>>,
    /// What new nodes can be. Thousands of them share a few.
    choices: Vec<Choices<'s>>,
    placed: Vec<Placed<'s>>,
    #[serde(flatten)]
    caveats: Caveats<'s>,
}

/// What has to be known to read the answer rightly, as it stands on stderr.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Caveats<'s> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'s str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'s [String],
}

impl<'s> Caveats<'s> {
    pub(super) fn of(talk: &'s Talk) -> Self {
        let warnings = talk.told.iter().chain(&talk.warnings).map(String::as_str);
        Self { warnings: warnings.collect(), notes: &talk.notes }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'s> {
    pods: usize,
    placed: usize,
    unplaced: usize,
    new_nodes: usize,
    /// Of all new nodes. Absent if one of them has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    price_per_hour: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'static str>,
    /// Whence the prices are, or why there are none.
    prices: &'s str,
    /// What the sum leaves open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    price_notes: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Leaves<'s> {
    node: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'s str>,
    pods: usize,
    /// `Spare`, `Successors`, `Unplaced` or `Unmodelled`.
    answer: &'static str,
    /// How many nodes have to come before it may go.
    #[serde(skip_serializing_if = "Option::is_none")]
    successors: Option<usize>,
    /// Where its pods go, new nodes among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<String>,
    /// The pod that stands in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    /// What nobody can foresee of it.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    what: &'s [String],
    message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pod<'s> {
    namespace: &'s str,
    name: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'s str>,
    /// The node that it has to leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    leaves: Option<&'s str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Unplaced<'s> {
    pod: Pod<'s>,
    /// `Gated`, `Unmodelled` or `NoPlace`.
    reason: &'static str,
    message: String,
    /// Of the whole pod, with the overhead of its runtime class.
    requests: &'s BTreeMap<String, Quantity>,
    /// Gates, or what is not modelled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<Nearest<'s>>,
    /// Instance types that would hold it and that its nearest pool does not allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_hold: Option<WouldHold<'s>>,
    /// What was tried: how many of its like it would help to do what is told, where that is not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    caveat: Option<&'s str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WouldHold<'s> {
    pool: &'s str,
    /// The cheapest first; where no price is known, the smallest first. Empty: no type that is known has the room.
    instance_types: &'s [String],
    /// Requirements of the pool that rule the first of them out.
    ruled_out_by: &'s [String],
}

impl<'s> WouldHold<'s> {
    fn of(larger: &'s Larger) -> Self {
        Self {
            pool: &larger.pool,
            instance_types: &larger.types,
            ruled_out_by: &larger.ruled_out_by,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Nearest<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'s str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'s str>,
    obstacles: Vec<Obstacle>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Obstacle {
    kind: &'static str,
    message: String,
    /// What there is too little of, where it is an amount, and how much.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<Quantity>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct New<'s> {
    name: &'s str,
    pool: &'s str,
    /// In which it may come up.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    zones: &'s [String],
    /// The node that leaves and in whose place it comes, whatever its pods need.
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<&'s str>,
    pods: Vec<String>,
    requests: &'s BTreeMap<String, Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price_per_hour: Option<String>,
    /// By name, one of `choices`.
    choice: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Choices<'s> {
    name: String,
    /// The cheapest first; where no price is known, the smallest first.
    instance_types: Vec<Type<'s>>,
    requirements: &'s [Written],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Type<'s> {
    name: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    price_per_hour: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Placed<'s> {
    pod: Pod<'s>,
    /// A node that stays, or the name of a new one.
    node: String,
    new: bool,
    /// Of that node, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'s str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    does_without: &'s [String],
}

pub(super) fn packing<'s>(story: &'s Story, talk: &'s Talk) -> Packing<'s> {
    let left = story.unplaced_count();
    let (currency, prices) = match &story.prices {
        Known::Priced { currency, whence } => (Some(currency.code()), whence),
        Known::Unpriced(why) => (None, why),
    };
    let (choices, of_node) = choices(story);
    Packing {
        api_version: "nodemolt.dev/cli/v1",
        kind: "Packing",
        region: story.region.as_deref(),
        summary: Summary {
            pods: story.pods.len(),
            placed: story.pods.len() - left,
            unplaced: left,
            new_nodes: story.new_nodes.len(),
            price_per_hour: story.total.map(decimal),
            currency,
            prices,
            price_notes: story.price_notes(),
        },
        leaving: &story.leaving,
        placements: story.placements.iter().map(|it| leaves(story, it)).collect(),
        unplaced: story.pods.iter().filter_map(|it| Some(unplaced(it, it.why.as_ref()?))).collect(),
        new_nodes: story
            .new_nodes
            .iter()
            .zip(of_node)
            .map(|(it, choice)| New {
                name: &it.name,
                pool: &it.pool,
                zones: it.zones(),
                follows: it.follows.as_deref(),
                pods: it.pods.iter().map(ToString::to_string).collect(),
                requests: &it.requests,
                price_per_hour: it.price.map(decimal),
                choice,
            })
            .collect(),
        choices,
        placed: story
            .pods
            .iter()
            .filter_map(|it| {
                let home = it.home.as_ref()?;
                Some(Placed {
                    pod: pod(it),
                    node: story.home(home),
                    new: matches!(home, Home::New(_)),
                    zone: story.zone(home),
                    does_without: &it.relaxed,
                })
            })
            .collect(),
        caveats: Caveats::of(talk),
    }
}

/// Each different choice once, and which of them every new node has.
fn choices(story: &Story) -> (Vec<Choices<'_>>, Vec<String>) {
    let mut known: BTreeMap<(*const Vec<Choice>, *const Vec<Written>), usize> = BTreeMap::new();
    let (mut choices, mut of_node) = (Vec::new(), Vec::new());
    for node in &story.new_nodes {
        let pointers = (Arc::as_ptr(&node.machines), Arc::as_ptr(&node.requirements));
        let at = *known.entry(pointers).or_insert_with(|| {
            let types = node.machines.iter();
            choices.push(Choices {
                name: format!("choice-{}", choices.len() + 1),
                instance_types: types
                    .map(|it| Type { name: &it.machine, price_per_hour: it.price.map(decimal) })
                    .collect(),
                requirements: &node.requirements,
            });
            choices.len() - 1
        });
        of_node.push(choices[at].name.clone());
    }
    (choices, of_node)
}

fn leaves<'s>(story: &'s Story, said: &'s story::Leaves) -> Leaves<'s> {
    let (nodes, pod) = match &said.placement {
        Placement::Spare { on } => (on.iter().cloned().collect(), None),
        Placement::Successors { .. } => (homes(story, said, None), None),
        Placement::Unmodelled { pod, kin, .. } => (homes(story, said, *kin), Some(pod.to_string())),
        Placement::Unplaced { pod, .. } => (Vec::new(), Some(pod.to_string())),
        Placement::NoKin { .. } => (Vec::new(), said.strange.as_ref().map(ToString::to_string)),
    };
    Leaves {
        node: &said.node,
        pool: said.pool.as_deref(),
        pods: said.pods,
        answer: said.answer(),
        successors: said.successors(),
        nodes,
        pod,
        what: &said.what,
        message: said.sentence(story),
    }
}

/// Where its pods go, and which one comes in its place in any case.
fn homes(story: &Story, said: &story::Leaves, kin: Option<usize>) -> Vec<String> {
    let own = story.pods.iter().filter(|it| it.origin.leaves.as_ref() == Some(&said.node));
    let own = own.filter_map(|it| it.home.clone()).chain(kin.map(Home::New));
    let homes: BTreeSet<Home> = own.collect();
    homes.iter().map(|it| story.home(it)).collect()
}

fn pod(said: &PodSaid) -> Pod<'_> {
    Pod {
        namespace: &said.id.namespace,
        name: &said.id.name,
        owner: said.origin.workload.as_deref(),
        leaves: said.origin.leaves.as_deref(),
    }
}

fn unplaced<'s>(said: &'s PodSaid, why: &'s Why) -> Unplaced<'s> {
    let (details, nearest): (&[String], _) = match why {
        Why::Gated(what) | Why::Unmodelled(what) => (what, None),
        Why::NoPlace { nearest } => (&[], nearest.as_ref()),
    };
    Unplaced {
        pod: pod(said),
        reason: remedy::reason(why),
        message: said.no_place().unwrap_or_default(),
        requests: &said.requests,
        details: details.iter().map(String::as_str).collect(),
        nearest: nearest.map(|miss| {
            let (node, pool) = match &miss.place {
                Place::Node(name) => (Some(name.as_str()), None),
                Place::Pool(name) => (None, Some(name.as_str())),
            };
            Nearest { node, pool, obstacles: obstacles(miss) }
        }),
        would_hold: said.larger.as_ref().map(WouldHold::of),
        caveat: said.caveat.as_deref(),
    }
}

pub(super) fn obstacles(miss: &Miss) -> Vec<Obstacle> {
    let kinds = miss.obstacles.iter().map(remedy::kind);
    let all = kinds.zip(remedy::changes(miss));
    let amounts = miss.obstacles.iter().map(remedy::amount);
    all.zip(amounts)
        .map(|((kind, message), amount)| {
            let (resource, by) = amount.unzip();
            Obstacle { kind, message, resource, by }
        })
        .collect()
}
