//! Where do these pods go: on nodes that exist, on new ones, or nowhere?
//!
//! `pods × nodes × pools → packing`, and every pod is accounted for
//!
//! The most important pods first, then the largest, each on the first node that can take it: greedy,
//! and therefore fast. When pods are left over, those that were left are tried earlier and the rest
//! again, a few times, and the best packing is kept. Who may be where is decided as kube-scheduler
//! decides it; how new nodes come about follows Karpenter. See docs/packing.md.

mod answer;
mod bits;
mod measure;
mod template;
mod topology;
mod essence;
mod world;
mod state;
mod narrow;
mod search;
mod finish;
mod miss;

use std::{cmp::Reverse, collections::BTreeMap};

pub use self::answer::{
    Account, Choice, Home, Miss, NewNode, Obstacle, Opened, Packing, Place, Placed, Preference,
    Unplaced, Why,
};
use self::{
    measure::{CPU_AT, MEMORY_AT},
    state::{Stage, State},
    world::{Kind, World},
};
use crate::{
    node::Node,
    pod::{Pod, PodId},
    pool::Pool,
};

/// In all attempts together about so many pods are placed, so that a large world is not packed more
/// often than a person would wait for.
const EFFORT_PODS: usize = 60_000;
const ATTEMPTS_MAX: usize = 24;

pub fn pack(pods: &[Pod], nodes: &[Node], pools: &[Pool]) -> Packing {
    let world = World::new(pods, nodes, pools);
    let best = best(&State::new(&world));
    finish::packing(&best.state, &best.left)
}

/// The same, and how every place stood to one of the pods. No account, if it is not one of them or
/// if nothing could place it.
pub fn explain(
    pods: &[Pod],
    nodes: &[Node],
    pools: &[Pool],
    pod: &PodId,
) -> (Packing, Option<Account>) {
    let world = World::new(pods, nodes, pools);
    let start = State::new(&world);
    let best = best(&start);
    let packing = finish::packing(&best.state, &best.left);
    let of = |kind: &Kind<'_>| kind.pods.iter().copied().find(|at| world.pods[*at].id() == *pod);
    let kinds = world.kinds.iter().enumerate();
    let mut placeable = kinds.filter(|(_, it)| it.demand.placeable());
    let watched = placeable.find_map(|(at, it)| Some((at, of(it)?)));
    let account = watched.map(|(kind, pod)| {
        if best.left[kind].contains(&pod) {
            return miss::account(&best.state, kind);
        }
        // Once more, and look around when its turn comes.
        let mut seen = None;
        attempt(&start, &best.blame, |state, it| {
            if it == pod {
                seen = Some(miss::account(state, kind));
            }
        });
        seen.unwrap_or_default()
    });
    (packing, account)
}

/// Packs several times, and keeps what left the fewest over.
fn best<'w, 'a>(start: &State<'w, 'a>) -> Attempt<'w, 'a> {
    let attempts = (EFFORT_PODS / start.world.pods.len().max(1)).clamp(2, ATTEMPTS_MAX);
    let mut blame: Vec<u32> = vec![0; start.world.kinds.len()];
    let mut best = attempt(start, &blame, |_, _| {});
    let mut done = !best.lays_blame(&mut blame);
    for _ in 1..attempts {
        if done {
            break;
        }
        let next = attempt(start, &blame, |_, _| {});
        done = !next.lays_blame(&mut blame);
        if next.rank() < best.rank() {
            best = next;
        }
    }
    best
}

/// Whose turn and how important, and how many of them.
type Left = ((u8, Reverse<i32>), usize);

struct Attempt<'w, 'a> {
    state: State<'w, 'a>,
    /// Per kind, the pods without a place.
    left: Vec<Vec<usize>>,
    /// Per kind, how often it had been left over before.
    blame: Vec<u32>,
}

/// `watch` sees the state before each try to place a pod.
fn attempt<'w, 'a>(
    begin: &State<'w, 'a>,
    blame: &[u32],
    mut watch: impl FnMut(&State<'w, 'a>, usize),
) -> Attempt<'w, 'a> {
    let mut state = begin.clone();
    let kinds = &state.world.kinds;
    let mut order: Vec<usize> =
        (0..kinds.len()).filter(|at| kinds[*at].demand.placeable()).collect();
    order.sort_by_cached_key(|at| {
        let it = &kinds[*at];
        (it.order, Reverse(it.demand.priority), urgency(it, blame[*at]), *at)
    });
    let mut left: Vec<Vec<usize>> = kinds.iter().map(|it| it.pods.clone()).collect();
    for kind in &mut left {
        kind.reverse(); // The first is taken from the end.
    }
    // Placing a pod can make room for another that has to be near it, or level a spread: go round
    // until nothing moves any more. Only then ask for less.
    let mut measured_over = Stage::Hopeful;
    loop {
        let before = state.placed.len();
        for kind in &order {
            while let Some(pod) = left[*kind].last().copied() {
                watch(&state, pod);
                if !state.place(*kind, pod, measured_over) {
                    break;
                }
                left[*kind].pop();
            }
        }
        let moved = state.placed.len() > before;
        let all = order.iter().all(|it| left[*it].is_empty());
        match (all, moved, measured_over) {
            (true, _, _) | (false, false, Stage::Real) => break,
            (false, true, _) => measured_over = Stage::Hopeful,
            (false, false, Stage::Hopeful) => measured_over = Stage::Real,
        }
    }
    for kind in &mut left {
        kind.reverse();
    }
    Attempt { state, left, blame: blame.to_vec() }
}

/// Who was blamed most for being left, then who needs most, comes first.
fn urgency(kind: &Kind<'_>, blame: u32) -> (Reverse<u32>, Reverse<i64>, Reverse<i64>) {
    let need = |place| {
        let found = kind.needs.iter().find(|(it, _)| *it == place);
        Reverse(found.map_or(0, |(_, amount)| *amount))
    };
    (Reverse(blame), need(CPU_AT), need(MEMORY_AT))
}

impl Attempt<'_, '_> {
    /// Who was left over comes earlier next time. Whether anybody was.
    fn lays_blame(&self, blame: &mut [u32]) -> bool {
        let mut anybody = false;
        for (at, left) in self.left.iter().enumerate() {
            if !left.is_empty() && self.state.world.kinds[at].demand.placeable() {
                blame[at] += 1;
                anybody = true;
            }
        }
        anybody
    }

    /// Fewer left of those whose turn is first; of the most important; then fewer new nodes.
    fn rank(&self) -> (Vec<Left>, usize) {
        let mut left: BTreeMap<(u8, Reverse<i32>), usize> = BTreeMap::new();
        for (kind, pods) in self.state.world.kinds.iter().zip(&self.left) {
            *left.entry((kind.order, Reverse(kind.demand.priority))).or_default() += pods.len();
        }
        (left.into_iter().collect(), self.state.open.len())
    }
}
