//! What is there to say about each node, and about each pool?

use std::collections::BTreeMap;

use jiff::SignedDuration;
use nodemolt_core::budget::Unavailable;
use nodemolt_core::drift::{Divergence, Drift};
use nodemolt_core::explain::{Behind, Cause, away, going, relative};
use nodemolt_core::node::ImageRef;
use nodemolt_core::plan::Pending;
use nodemolt_core::replace::Replacement;
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
    /// The same for programs; of one that is gone nothing.
    pub up_for: Option<SignedDuration>,
    pub drift: Option<&'p Drift>,
    /// Why it should be replaced.
    pub cause: Option<&'static str>,
    pub state: State<'p>,
    /// The old node is there no more, and its replacement is not over; or nothing of it but the object is there.
    pub gone: bool,
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
    /// Its machine has ended, and others keep the object.
    LeftOver(String),
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
    /// Pods that were moved from it and have no node.
    pub pending: usize,
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

/// Of nodes; then of those that have gone and are not followed yet.
pub(crate) fn rows(picture: &Picture) -> Vec<Row<'_>> {
    let behind = Behind::of(&picture.world(), picture.at);
    let there = picture.fleet.nodes.keys().filter_map(|it| row(picture, &behind, it));
    there.chain(gone(picture)).collect()
}

/// Those that are replaced, then all others in the order in which the plan asks them.
pub(crate) fn in_order(picture: &Picture) -> Vec<Row<'_>> {
    let plan = &picture.plan;
    let behind = Behind::of(&picture.world(), picture.at);
    let under_way = plan.under_way.iter().filter_map(|it| row(picture, &behind, it));
    let asked = plan.order.iter().filter_map(|it| row(picture, &behind, it));
    under_way.chain(gone(picture)).chain(asked).collect()
}

/// Where the old node goes first its replacement is open when it has gone.
fn gone(picture: &Picture) -> impl Iterator<Item = Row<'_>> {
    let there = |it: &str| picture.fleet.nodes.contains_key(it);
    let open =
        picture.replacements.iter().filter(move |(name, it)| !it.phase.ended() && !there(name));
    open.map(|(name, it)| Row {
        node: name,
        pool: picture.records.get(name).and_then(|it| it.pool.as_deref()),
        class: picture.fleet.gone.get(name).and_then(|it| it.class.as_deref()),
        instance_type: None,
        zone: None,
        image: None,
        up: "gone".to_owned(),
        up_for: None,
        drift: None,
        cause: Some(it.cause.as_str()),
        state: under_way(picture, name, it),
        gone: true,
    })
}

fn under_way<'p>(picture: &'p Picture, name: &str, it: &'p Replacement) -> State<'p> {
    let (because, causes) = match going(&picture.world(), name, picture.at) {
        Some(it) => (it.because, it.causes),
        None => (it.because.to_string(), Vec::new()),
    };
    let successors = it.successors.iter().map(|it| it.claim.as_str()).collect();
    State::Going { phase: it.phase.as_str(), because, successors, causes }
}

fn row<'p>(picture: &'p Picture, behind: &Behind, name: &str) -> Option<Row<'p>> {
    let (name, node) = picture.fleet.nodes.get_key_value(name)?;
    let running = picture.running.get(name);
    let drift = picture.drifts.get(name);
    let replacement = picture.replacements.get(name).filter(|it| !it.phase.ended());
    let start = picture.plan.start.iter().find(|it| it.node == *name);
    let keeps = picture.records.get(name).map_or(&[][..], |it| it.node_finalizers.as_slice());
    let left_over = replacement.is_none() && !keeps.is_empty();
    let state = if left_over {
        State::LeftOver(keeps.join("`, `"))
    } else if let Some(it) = replacement {
        under_way(picture, name, it)
    } else if let Some(it) = start {
        State::Starts(it.cause.as_str())
    } else if let Some(waiting) = picture.plan.waiting.get(name) {
        let class = node.member.class.as_deref();
        let world = picture.world();
        State::Waits(waiting.all().map(|it| behind.causes(&world, it, class, picture.at)).collect())
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
    let up = picture.at.duration_since(node.created_at);
    Some(Row {
        node: name,
        pool: node.member.pool.as_deref(),
        class: node.member.class.as_deref(),
        instance_type: running.and_then(|it| it.instance_type.as_deref()),
        zone: node.zone.as_deref(),
        image: running.and_then(|it| it.image.as_ref()),
        up: relative(up),
        up_for: Some(up),
        drift,
        cause,
        state,
        gone: left_over,
    })
}

/// Pods that were moved and for which the scheduler has found no node for a while.
pub(crate) fn homeless(picture: &Picture) -> Vec<&Pending> {
    let moved = picture.fleet.pending.iter().filter(|it| it.moved_from.is_some());
    moved.filter(|it| picture.at.duration_since(it.since) >= FINDS_A_NODE_WITHIN).collect()
}

/// As long as the engine leaves it to the scheduler.
const FINDS_A_NODE_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Those of the nodes, and those that are written, with their classes: one without nodes is there, too.
pub(crate) fn pools<'p>(
    rows: &[Row<'p>],
    homeless: &[&'p Pending],
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
        pool.nodes += usize::from(!row.gone);
        match row.drift {
            _ if row.gone => {}
            Some(Drift::InSync) => pool.in_sync += 1,
            Some(Drift::Drifted { .. }) => pool.drifted += 1,
            Some(Drift::Unknown(_)) | None => pool.unknown += 1,
        }
        match row.state {
            State::Going { .. } | State::Starts(_) => pool.going += 1,
            State::Waits(_) => pool.waiting += 1,
            State::Fine
            | State::Away(_)
            | State::NotOurs
            | State::LeftOver(_)
            | State::Unknown(_)
            | State::Drifted => {}
        }
    }
    for pod in homeless {
        let from = pod.moved_from.as_deref();
        let pool = pools.entry(from).or_default();
        pool.name = from;
        pool.pending += 1;
    }
    pools.into_values().collect()
}
