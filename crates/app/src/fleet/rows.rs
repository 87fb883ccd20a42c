//! What is there to say about each node, and about each pool?

use std::collections::BTreeMap;

use nodemolt_core::budget::Unavailable;
use nodemolt_core::drift::{Divergence, Drift};
use nodemolt_core::explain::{Cause, away, causes, going, relative};
use nodemolt_core::node::ImageRef;
use nodemolt_engine::Picture;

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row<'p> {
    pub node: &'p str,
    pub pool: Option<&'p str>,
    pub class: Option<&'p str>,
    pub instance_type: Option<&'p str>,
    pub zone: Option<&'p str>,
    pub image: Option<&'p ImageRef>,
    pub up: String,
    pub drift: Option<&'p Drift>,
    /// Why it should be replaced.
    pub cause: Option<&'static str>,
    pub state: State<'p>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State<'p> {
    Fine,
    /// Fine, but others wait for it.
    Away(Unavailable),
    /// It has no claim, or one that others look after: nothing is compared.
    NotOurs,
    Unknown(String),
    /// And nobody has decided about it yet.
    Drifted,
    Starts(&'static str),
    Going {
        phase: &'static str,
        /// What it waits for now.
        because: String,
        successors: Vec<&'p str>,
        causes: Vec<Cause>,
    },
    /// For all of these: one reason may name several objects.
    Waits(Vec<Vec<Cause>>),
}

impl State<'_> {
    /// Nothing is to be told of it, unless somebody asks.
    pub(crate) fn quiet(&self) -> bool {
        matches!(self, Self::Fine | Self::NotOurs)
    }
}

/// The nodes of a pool in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pool<'p> {
    pub name: Option<&'p str>,
    pub class: Option<&'p str>,
    /// It is a node's and nobody has written it: it was deleted.
    pub gone: bool,
    pub nodes: usize,
    pub in_sync: usize,
    pub drifted: usize,
    pub unknown: usize,
    pub going: usize,
    pub waiting: usize,
}

impl Row<'_> {
    /// By its name without what all names of its kind begin with; by its id where it has none.
    pub(crate) fn image(&self) -> String {
        match self.image {
            None => "-".to_owned(),
            Some(image) => short(image),
        }
    }
}

/// `v20260730`, or the whole name where that is no release, or the id.
pub(crate) fn short(image: &ImageRef) -> String {
    let Some(name) = &image.name else { return image.id.to_string() };
    let release = name.rsplit_once("-v").map(|(_, it)| it);
    match release.filter(|it| it.starts_with(|it: char| it.is_ascii_digit())) {
        Some(release) => format!("v{release}"),
        None => name.clone(),
    }
}

/// With the names of images, which say more than their ids.
pub(crate) fn divergence(it: &Divergence) -> String {
    if let Divergence::Image { from, to, .. } = it
        && from.name.is_some()
        && to.name.is_some()
    {
        return format!("{it}: {} → {}", short(from), short(to));
    }
    it.to_string()
}

pub(crate) fn rows(picture: &Picture) -> Vec<Row<'_>> {
    picture.fleet.nodes.keys().filter_map(|it| row(picture, it)).collect()
}

/// Those that are replaced, then all others in the order in which the plan asks them.
pub(crate) fn in_order(picture: &Picture) -> Vec<Row<'_>> {
    let plan = &picture.plan;
    plan.under_way.iter().chain(&plan.order).filter_map(|it| row(picture, it)).collect()
}

fn row<'p>(picture: &'p Picture, name: &str) -> Option<Row<'p>> {
    let (name, node) = picture.fleet.nodes.get_key_value(name)?;
    let running = picture.running.get(name);
    let drift = picture.drifts.get(name);
    let replacement = picture.replacements.get(name).filter(|it| !it.phase.ended());
    let start = picture.plan.start.iter().find(|it| it.node == *name);
    let state = if let Some(it) = replacement {
        let now = going(&picture.world(), name, picture.at);
        let (because, causes) = match now {
            Some(it) => (it.because, it.causes),
            None => (it.because.to_string(), Vec::new()),
        };
        let successors = it.successors.iter().map(|it| it.claim.as_str()).collect();
        State::Going { phase: it.phase.as_str(), because, successors, causes }
    } else if let Some(it) = start {
        State::Starts(it.cause.as_str())
    } else if let Some(waiting) = picture.plan.waiting.get(name) {
        let class = node.member.class.as_deref();
        let world = picture.world();
        State::Waits(waiting.all().map(|it| causes(&world, it, class, picture.at)).collect())
    } else {
        match drift {
            Some(Drift::Unknown(missing)) => State::Unknown(missing.to_string()),
            Some(Drift::Drifted { .. }) => State::Drifted,
            Some(Drift::InSync) => match away(&picture.world(), name) {
                Some(why) => State::Away(why),
                None => State::Fine,
            },
            None => State::NotOurs,
        }
    };
    let cause = replacement
        .map(|it| it.cause.as_str())
        .or_else(|| node.wish.as_ref().map(|it| it.cause.as_str()));
    Some(Row {
        node: name,
        pool: node.member.pool.as_deref(),
        class: node.member.class.as_deref(),
        instance_type: running.and_then(|it| it.instance_type.as_deref()),
        zone: node.zone.as_deref(),
        image: running.and_then(|it| it.image.as_ref()),
        up: relative(picture.at.duration_since(node.created_at)),
        drift,
        cause,
        state,
    })
}

/// Those of the nodes, and those that are written, with their classes: one without nodes is there, too.
pub(crate) fn pools<'p>(
    rows: &[Row<'p>],
    written: &'p BTreeMap<String, Option<String>>,
    picture: &Picture,
) -> Vec<Pool<'p>> {
    // One that cannot be read is there, too, and has limits.
    let there =
        |it: &str| picture.fleet.pools.contains_key(it) || picture.limits.pools.contains_key(it);
    let mut pools: BTreeMap<Option<&str>, Pool<'p>> = BTreeMap::new();
    for (name, class) in written {
        let pool = pools.entry(Some(name)).or_default();
        pool.name = Some(name);
        pool.class = class.as_deref();
    }
    for row in rows {
        let pool = pools.entry(row.pool).or_default();
        pool.name = row.pool;
        pool.gone = row.pool.is_some_and(|it| !there(it));
        pool.class = row.class.or(pool.class);
        pool.nodes += 1;
        match row.drift {
            Some(Drift::InSync) => pool.in_sync += 1,
            Some(Drift::Drifted { .. }) => pool.drifted += 1,
            Some(Drift::Unknown(_)) | None => pool.unknown += 1,
        }
        match row.state {
            State::Going { .. } | State::Starts(_) => pool.going += 1,
            State::Waits(_) => pool.waiting += 1,
            State::Fine | State::Away(_) | State::NotOurs | State::Unknown(_) | State::Drifted => {}
        }
    }
    pools.into_values().collect()
}
