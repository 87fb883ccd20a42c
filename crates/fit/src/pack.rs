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
mod site;
mod district;
mod template;
mod topology;
mod essence;
mod world;
mod state;
mod company;
mod narrow;
mod search;
mod settle;
mod finish;
mod miss;
mod prospect;
mod follow;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

pub use self::answer::{
    Account, Choice, Home, Miss, NewNode, Obstacle, Opened, Packing, Place, Placed, Preference,
    Unplaced, Why,
};
pub use self::follow::follow;
pub use self::site::Site;
use self::{
    company::InVain,
    measure::{CPU_AT, MEMORY_AT},
    settle::{Foreseen, PENDING},
    site::Tally,
    state::{Stage, State},
    topology::Domains,
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
/// Few pods are packed more often: it takes no time, and a person would find the way, too.
const ATTEMPTS_OF_FEW_MAX: usize = 96;
const FEW_PODS: usize = 16;
/// So many times it is packed again with fewer domains to be spread over.
const SPARING_MAX: usize = 6;
/// From this attempt on, what was learnt is varied: to do more of the same did not help.
const VARIED_FROM: u64 = 4;
/// And from this one on, every other one lets who was left over come before who is more important.
const DARING_FROM: u64 = 2;

pub fn pack(pods: &[Pod], nodes: &[Node], pools: &[Pool]) -> Packing {
    let tallies: Vec<Tally> = nodes.iter().map(Tally::of).collect();
    packed(&World::new(pods, nodes.iter().zip(&tallies).collect(), pools))
}

/// The same for whoever packs onto nodes again and again, and keeps what they come to.
pub fn pack_onto(pods: &[Pod], nodes: &[Site], pools: &[Pool]) -> Packing {
    packed(&World::new(pods, nodes.iter().map(Site::counted).collect(), pools))
}

fn packed(world: &World<'_>) -> Packing {
    let best = best(&State::new(world));
    finish::packing(&best.state, &best.left)
}

/// The same, and how every place stood to one of the pods. No account, if it is not one of them or
/// if nothing could place it.
pub fn explain(
    pods: &[Pod],
    nodes: &[Site],
    pools: &[Pool],
    pod: &PodId,
) -> (Packing, Option<Account>) {
    let world = World::new(pods, nodes.iter().map(Site::counted).collect(), pools);
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
        attempt(&start, &best.plan, |state, it| {
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
    let pods = start.world.pods.len();
    let most = if pods <= FEW_PODS { ATTEMPTS_OF_FEW_MAX } else { ATTEMPTS_MAX };
    let attempts = (EFFORT_PODS / pods.max(1)).clamp(2, most);
    let plan = Plan { blame: vec![0; start.world.kinds.len()], ..Plan::default() };
    let mut best = attempt(start, &plan, |_, _| {});
    let mut next = best.another(start);
    for _ in 1..attempts {
        let Some(plan) = next else { break };
        let tried = attempt(start, &plan, |_, _| {});
        next = tried.another(start);
        if tried.rank() < best.rank() {
            best = tried;
        }
    }
    for spared in best.spare() {
        let tried = attempt(start, &Plan { spared, ..best.plan.clone() }, |_, _| {});
        if tried.rank() < best.rank() {
            best = tried;
        }
    }
    best
}

/// What was learnt from the attempts before.
#[derive(Debug, Clone, Default)]
struct Plan {
    /// How many attempts there were.
    before: u64,
    /// Per kind, how often it had been left over.
    blame: Vec<u32>,
    /// Where groups were started whose others could not follow.
    vain: InVain,
    /// The first turn of which somebody was left over: before it nothing is varied.
    turn: u8,
    /// Domains that new nodes came to be in, too late for somebody.
    foreseen: Foreseen,
    /// Labels, and domains in which new nodes are opened last: where not all can be served, fewer may do for more pods.
    spared: Vec<(usize, usize)>,
}

impl Plan {
    /// How early a kind comes.
    fn blame(&self, kind: usize, order: u8) -> u64 {
        let blame = u64::from(self.blame[kind]);
        if self.before < VARIED_FROM || order < self.turn {
            return blame;
        }
        blame + self.noise(kind) % (self.before + 1)
    }

    /// Whether those of this turn who were left over come before others who are more important. It is only a try: where one
    /// of those loses its place, the packing is worse than the one before.
    fn daring(&self, order: u8) -> bool {
        self.before >= DARING_FROM && self.before % 2 == 1 && order >= self.turn
    }

    /// Where groups are not to be started this time.
    fn shut(&self) -> InVain {
        let kept = |it: &&(usize, usize)| {
            self.before < VARIED_FROM || self.noise(it.0 * 64 + it.1).is_multiple_of(2)
        };
        self.vain.iter().filter(kept).copied().collect()
    }

    /// Not by chance: the same world is packed the same way. Splitmix64.
    fn noise(&self, of: usize) -> u64 {
        let seed = self.before.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (of as u64);
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Whose turn and how important, and how many of them.
type Left = ((u8, Reverse<i32>), usize);

struct Attempt<'w, 'a> {
    state: State<'w, 'a>,
    /// Per kind, the pods without a place.
    left: Vec<Vec<usize>>,
    /// Per kind, how many have one that they could not come to.
    unsettled: Vec<usize>,
    plan: Plan,
}

/// `watch` sees the state before each try to place a pod.
fn attempt<'w, 'a>(
    begin: &State<'w, 'a>,
    plan: &Plan,
    mut watch: impl FnMut(&State<'w, 'a>, usize),
) -> Attempt<'w, 'a> {
    let mut state = begin.clone();
    state.spared.clone_from(&plan.spared);
    let kinds = &state.world.kinds;
    let mut order: Vec<usize> =
        (0..kinds.len()).filter(|at| kinds[*at].demand.placeable()).collect();
    order.sort_by_cached_key(|at| {
        let it = &kinds[*at];
        let priority = Reverse(it.demand.priority);
        let first = (!plan.daring(it.order)).then_some(priority);
        let (blame, cpu, memory) = urgency(it, plan.blame(*at, it.order));
        (it.order, first, blame, priority, cpu, memory, *at)
    });
    let mut left: Vec<Vec<usize>> = kinds.iter().map(|it| it.pods.clone()).collect();
    for kind in &mut left {
        kind.reverse(); // The first is taken from the end.
    }
    // Placing a pod can make room for another that has to be near it, or level a spread: go round
    // until nothing moves any more. Only then ask for less.
    let mut measured_over = Stage::Hopeful;
    let shut = plan.shut();
    let mut tried: Vec<Option<u64>> = vec![None; kinds.len()];
    let mut foreseen = plan.foreseen.iter().peekable();
    if foreseen.peek().is_some_and(|it| it.0 == PENDING) {
        // Who is pending and can be bound before the new nodes are there does not have to reckon with them.
        state.early = true;
        loop {
            let before = state.placed.len();
            for kind in order.iter().filter(|it| kinds[**it].order == PENDING) {
                while let Some(pod) = left[*kind].last().copied() {
                    watch(&state, pod);
                    let company = state.company(*kind, &left, &shut, begin);
                    if !state.place(*kind, pod, Stage::Real, company) {
                        break;
                    }
                    left[*kind].pop();
                }
            }
            if state.placed.len() == before {
                break;
            }
        }
        state.early = false;
    }
    loop {
        let before = state.placed.len();
        for kind in &order {
            while let Some((_, at, domain)) = foreseen.next_if(|it| it.0 <= kinds[*kind].order) {
                state.foresee(*at, *domain);
            }
            while let Some(pod) = left[*kind].last().copied() {
                watch(&state, pod);
                let company = state.company(*kind, &left, &shut, begin);
                if !state.place(*kind, pod, measured_over, company) {
                    break;
                }
                left[*kind].pop();
                for follower in waiting(&state, *kind, plan) {
                    // Who could not come finds no more room where nobody new has begun.
                    let domains = state.begun(follower);
                    if tried[follower].replace(domains) == Some(domains) {
                        continue;
                    }
                    while let Some(pod) = left[follower].last().copied() {
                        watch(&state, pod);
                        let company = state.company(follower, &left, &shut, begin);
                        if !state.place(follower, pod, measured_over, company) {
                            break;
                        }
                        left[follower].pop();
                    }
                }
            }
        }
        let moved = state.placed.len() > before;
        let all = order.iter().all(|it| left[*it].is_empty());
        match (all, moved, measured_over) {
            (false, false, Stage::Real) if !state.spared.is_empty() => {
                state.spared.clear();
                measured_over = Stage::Hopeful;
            }
            (true, _, _) | (false, false, Stage::Real) => break,
            (false, true, _) => measured_over = Stage::Hopeful,
            (false, false, Stage::Hopeful) => measured_over = Stage::Real,
        }
    }
    for kind in &mut left {
        kind.reverse();
    }
    let unsettled = state.unsettled(begin);
    Attempt { state, left, unsettled, plan: plan.clone() }
}

/// Kinds that were left over before and may follow this one: they come at once, before others take their room.
fn waiting(state: &State<'_, '_>, kind: usize, plan: &Plan) -> Vec<usize> {
    let world = state.world;
    if plan.before == 0 {
        return Vec::new();
    }
    let starts = world.kinds[kind].starts.iter();
    let followers = starts.filter_map(|it| world.followers.get(it)).flatten().copied();
    let leader = &world.kinds[kind];
    let important = |it: &usize| {
        // Whose turn is later takes nothing from those before.
        world.kinds[*it].order <= leader.order
            && (world.kinds[*it].demand.priority >= leader.demand.priority
                || plan.daring(leader.order))
            && plan.blame[*it] > 0
            && *it != kind
    };
    let mut all: Vec<usize> = followers.filter(important).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Who was blamed most for being left, then who needs most, comes first.
fn urgency(kind: &Kind<'_>, blame: u64) -> (Reverse<u64>, Reverse<i64>, Reverse<i64>) {
    let need = |place| {
        let found = kind.needs.iter().find(|(it, _)| *it == place);
        Reverse(found.map_or(0, |(_, amount)| *amount))
    };
    (Reverse(blame), need(CPU_AT), need(MEMORY_AT))
}

impl<'w, 'a> Attempt<'w, 'a> {
    /// Who was left over comes earlier next time, and who could not follow finds others elsewhere. `None`: nobody was
    /// left over.
    fn another(&self, start: &State<'w, 'a>) -> Option<Plan> {
        let mut plan = Plan { before: self.plan.before + 1, turn: u8::MAX, ..self.plan.clone() };
        let mut anybody = false;
        for (at, left) in self.left.iter().enumerate() {
            if left.is_empty() || !self.state.world.kinds[at].demand.placeable() {
                continue;
            }
            plan.blame[at] += 1;
            plan.turn = plan.turn.min(self.state.world.kinds[at].order);
            anybody = true;
            plan.vain.extend(self.state.started_in_vain(at, start));
        }
        for (at, _) in self.unsettled.iter().enumerate().filter(|(_, many)| **many > 0) {
            plan.turn = plan.turn.min(self.state.world.kinds[at].order);
            anybody = true;
        }
        if self.unsettled.iter().any(|it| *it > 0) {
            plan.foreseen.extend(self.state.foreseen());
        }
        anybody.then_some(plan)
    }

    /// What if those who are spread were spread over less? A domain counts as soon as it has a node: where the limits of a pool
    /// or what can be had leave one of them with little room, all others wait for it. Each time the domain that has the
    /// fewest of them is spared, too, of those that have no node yet, until one is left.
    fn spare(&self) -> Vec<Vec<(usize, usize)>> {
        let world = self.state.world;
        let left = self.left.iter().zip(&world.kinds).filter(|(it, _)| !it.is_empty());
        let spreads = left.flat_map(|(_, kind)| &kind.musts.spreads).map(|it| it.counter);
        let counters: BTreeSet<usize> =
            spreads.filter(|it| !world.keys[world.counters.all[*it].key].fine()).collect();
        let mut all: Vec<Vec<(usize, usize)>> = Vec::new();
        for at in counters {
            let counter = &world.counters.all[at];
            let Domains { existing, possible, .. } = &counter.domains;
            let mut open: Vec<usize> = possible.iter().filter(|it| !existing.has(*it)).collect();
            open.sort_by_key(|it| (self.state.counts[at].of(*it), Reverse(*it)));
            let kept = usize::from(existing.empty());
            let most = open.len().saturating_sub(kept);
            all.extend(
                (1..=most)
                    .map(|many| open[..many].iter().map(|domain| (counter.key, *domain)).collect()),
            );
        }
        all.dedup();
        all.truncate(SPARING_MAX);
        all
    }

    /// Fewer left of those whose turn is first; of the most important; then fewer who would have to move again, then
    /// fewer new nodes. Better left than sent where it cannot go.
    fn rank(&self) -> (Vec<Left>, usize, usize, usize) {
        let mut left: BTreeMap<(u8, Reverse<i32>), usize> = BTreeMap::new();
        let lost = self.left.iter().map(Vec::len).zip(&self.unsettled);
        for (kind, (left_over, unsettled)) in self.state.world.kinds.iter().zip(lost) {
            let at = (kind.order, Reverse(kind.demand.priority));
            *left.entry(at).or_default() += left_over + unsettled;
        }
        let unsettled = self.unsettled.iter().sum();
        (left.into_iter().collect(), unsettled, self.state.to_move_again(), self.state.open.len())
    }
}
