//! Where would these pods go, and if nowhere, what would have to change?
//!
//! `files × leaving nodes × instance types × prices → packing → story`
//!
//! Everything is computed here and in [`story`]; the renderers in [`page`], [`data`] and
//! [`explained`] only print.

mod account;
mod advice;
mod data;
mod explained;
mod files;
mod machines;
mod market;
mod page;
mod remedy;
mod story;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nodemolt_api::listing::World;
use nodemolt_core::place::{Asked, Launchable, daemons, place_asking};
use nodemolt_fit::Types;
use nodemolt_fit::capacity::Amounts;
use nodemolt_fit::node::Node;
use nodemolt_fit::pack::{Account, Home, Miss, Packing, Place, Site, Why, explain, pack_onto};
use nodemolt_fit::pod::{Pod, PodId};
use nodemolt_fit::pool::Pool;

use crate::cli::{self, Format, PackFormat};
use crate::input;
use crate::output::{Answer, Exit, Failure, Look, serialize};
use account::Found;
use files::Files;
use machines::Pools;
use market::Market;
use story::{Answered, PodSaid, Story};

pub(crate) fn run(verb: &cli::Pack, look: Look) -> Result<Answer, Failure> {
    let mut talk = Talk::default();
    let files = Files::read(&verb.files, &mut talk)?;
    let leaving = leaving(&verb.leaving, &files)?;
    // A node that has no pods may be asked about: it is spare.
    if files.listing.without_pods() && leaving.is_empty() {
        return Err(Failure::usage(
            "the files hold neither pods nor anything that stands for pods",
        )
        .hint(
            "add what `kubectl get pods -A -o yaml` prints, or a Deployment, StatefulSet or Job",
        ));
    }
    let types = input::read_types(&verb.types, &mut talk.warnings)?;
    let mut world = World::new(&files.listing, &leaving, &files.bare_pools(), &files.claims)
        .map_err(|problems| files.failure(&problems))?;
    talk.notes.append(&mut world.notes);
    let market = Market::read(verb, &files, &world, &mut talk)?;
    talk.warnings.extend(market.marks_in_vain(&types));
    talk.warnings.extend(market.prices_in_vain(&types));
    let pools = machines::pools(verb, &files, &types, &market, &world, &mut talk);
    let nothing = pools.all().next().is_none() && world.nodes.iter().all(|it| it.leaving);
    if !world.pods.is_empty() && nothing {
        talk.warnings.push(
            "there are neither nodes that stay nor pools that launch any: nothing can be placed"
                .to_owned(),
        );
    }
    if let Some(named) = &verb.explain {
        talk.settle();
        return explained(verb, look, &world, &pools, (named, &types), market, &talk);
    }
    let Asked { of, unforeseen: strange, packing, told: _ } =
        asked(&world, &pools, None, |pods, nodes, able| {
            (pack_onto(pods, nodes, &pools.with_unable(able)), ())
        });
    talk.notes.extend(attach_limits(&packing, &world, &files, &pools));
    talk.notes.extend(unforeseen(&packing, &world));
    talk.notes.extend(preempting(&packing, &world));
    talk.settle();
    let answered = Answered { packing, of, unforeseen: strange };
    let mut story = Story::new(&world, &pools, answered, &types, market);
    trial::try_out(&mut story, &world, &pools, None);
    let exit = if story.unplaced.is_empty() { Exit::Done } else { Exit::Failed };
    let data = match verb.output {
        PackFormat::Table => look.plain(&page::page(&story, look, false, !verb.no_headers)),
        PackFormat::Wide => look.plain(&page::page(&story, look, true, !verb.no_headers)),
        PackFormat::Json => serialize(Format::Json, &data::packing(&story, &talk))?,
        PackFormat::Yaml => serialize(Format::Yaml, &data::packing(&story, &talk))?,
    };
    Ok(Answer { data, talk: look.plain(&talk.print()), exit })
}

/// The very question that the operator asks: what a person is told is what it would do.
/// `moved` is a pod that runs, and its node: as if it had to leave that, alone.
fn asked<T>(
    world: &World,
    pools: &Pools,
    moved: Option<(&Pod, &Node)>,
    ask: impl FnMut(&[Pod], &[Site], &[Pool]) -> (Packing, T),
) -> Asked<T> {
    asked_of(world, (&world.pods, world.nodes.clone()), pools, moved, ask)
}

/// The same with pods and nodes that may have been changed.
fn asked_of<T>(
    world: &World,
    (pods, mut nodes): (&[Pod], Vec<Node>),
    pools: &Pools,
    moved: Option<(&Pod, &Node)>,
    ask: impl FnMut(&[Pod], &[Site], &[Pool]) -> (Packing, T),
) -> Asked<T> {
    let mut by_name: BTreeMap<String, &mut Node> =
        nodes.iter_mut().map(|it| (it.name.clone(), it)).collect();
    let mut pending = Vec::new();
    for pod in pods {
        let leaves = world.origins.get(&pod.id()).and_then(|it| it.leaves.as_ref());
        match leaves.and_then(|it| by_name.get_mut(it)) {
            Some(node) => node.pods.push(pod.clone()),
            None => pending.push(pod.clone()),
        }
    }
    if let Some((pod, node)) = moved
        && let Some(node) = by_name.get_mut(&node.name)
    {
        node.pods.retain(|it| it.id() != pod.id());
        node.unschedulable = true;
        // As any other it would look for a place before nodes that come get their daemons.
        let daemons: &[Pod] = if pools.all().next().is_some() { &world.daemons } else { &[] };
        pending.push(daemons::judged(pod, daemons));
    }
    let (followed, heirs) = (BTreeMap::new(), BTreeSet::new());
    let launchable =
        Launchable { pools: &pools.able, kept: &pools.kept, followed: &followed, heirs: &heirs };
    let mut nodes: Vec<Site> = nodes.into_iter().map(Site::new).collect();
    place_asking(&mut nodes, launchable, &pending, ask)
}

/// The answer about one pod.
fn explained(
    verb: &cli::Pack,
    look: Look,
    world: &World,
    pools: &Pools,
    (named, types): (&str, &Types),
    market: Market,
    talk: &Talk,
) -> Result<Answer, Failure> {
    let found = account::find(world, named)?;
    let tied = world.origins.get(&found.id()).is_some_and(|it| it.tied);
    let moved = match &found {
        Found::Running { pod, node } if !tied => Some((*pod, *node)),
        Found::Running { .. } | Found::Packed(_) | Found::LeftOut { .. } => None,
    };
    let Asked { of, unforeseen, packing, mut told } =
        asked(world, pools, moved, |pods, nodes, able| {
            explain(pods, nodes, &pools.with_unable(able), &found.id())
        });
    // Of one that is bound before anybody leaves: what would be launched was not decided yet.
    let bound_now = |it: Account| Account { opened: Vec::new(), ..it };
    let account = told.pop().flatten().or_else(|| told.pop().flatten().map(bound_now));
    let account = account.map(|it| staying(it, world));
    let mut story = Story::new(world, pools, Answered { packing, of, unforeseen }, types, market);
    // Of one that runs it is asked as if it had to move: that is another question.
    if moved.is_none() {
        trial::try_out(&mut story, world, pools, Some(&found.id()));
    }
    let said = story.said(&found.id());
    let places = said.map(|it| account::places(account, it, (&found, world), pools, &story));
    let places = places.unwrap_or_default();
    let homeless = said.is_some_and(PodSaid::homeless) && moved.is_none();
    let exit = if homeless { Exit::Failed } else { Exit::Done };
    let about = (&found, world);
    let whole = || explained::account(&story, about, said, &places, talk);
    let data = match verb.output {
        PackFormat::Table | PackFormat::Wide => {
            let wide = verb.output == PackFormat::Wide;
            let headers = !verb.no_headers;
            look.plain(&explained::page(&story, about, said, &places, look, (wide, headers)))
        }
        PackFormat::Json => serialize(Format::Json, &whole())?,
        PackFormat::Yaml => serialize(Format::Yaml, &whole())?,
    };
    Ok(Answer { data, talk: look.plain(&talk.print()), exit })
}

/// Without nodes that leave: they are told of apart, and some stand there while others are looked for a place for. A pool is
/// one place, though it may launch nodes of more than one kind: what stands best of it is told.
fn staying(account: Account, world: &World) -> Account {
    let leaves = |it: &Place| match it {
        Place::Node(name) => world.nodes.iter().any(|it| it.leaving && it.name == *name),
        Place::Pool(_) => false,
    };
    let mut places: Vec<Miss> = Vec::new();
    for miss in account.places.into_iter().filter(|it| !leaves(&it.place)) {
        match places.iter_mut().find(|it| it.place == miss.place) {
            Some(known) if miss.obstacles.len() < known.obstacles.len() => *known = miss,
            Some(_) => {}
            None => places.push(miss),
        }
    }
    Account { places, opened: account.opened }
}

/// Pods of other schedulers and the like will take room somewhere, and nobody knows where.
fn unforeseen(packing: &Packing, world: &World) -> Option<String> {
    let strange: BTreeSet<&PodId> = packing
        .unplaced
        .iter()
        .filter(|it| matches!(it.why, Why::Unmodelled(_)))
        .map(|it| &it.pod)
        .collect();
    let first = strange.first().filter(|_| !packing.placed.is_empty())?;
    let mut total = Amounts::new();
    for pod in world.pods.iter().filter(|it| strange.contains(&it.id())) {
        for (name, amount) in &pod.demand.requests {
            let sum = total.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }
    let total: Vec<String> = total.iter().map(|(name, it)| format!("{name} {it}")).collect();
    let total = if total.is_empty() { String::new() } else { format!(" ({})", total.join(", ")) };
    Some(format!(
        "no room is kept for pods that nobody here can foresee, such as {first}: {}{total}",
        strange.len()
    ))
}

/// The scheduler makes room for important pods by evicting others, which is not reckoned with.
fn preempting(packing: &Packing, world: &World) -> Option<String> {
    let running = world.nodes.iter().filter(|it| !it.leaving).flat_map(|it| &it.pods);
    let least = running.filter(|it| !it.tied).map(|it| it.demand.priority).min()?;
    let homeless: BTreeSet<&PodId> = packing
        .unplaced
        .iter()
        .filter(|it| matches!(it.why, Why::NoPlace { .. }))
        .map(|it| &it.pod)
        .collect();
    let important = |it: &&Pod| it.demand.priority > least && homeless.contains(&it.id());
    let count = world.pods.iter().filter(important).count();
    let first = world.pods.iter().filter(important).map(Pod::id).min()?;
    Some(format!(
        "the scheduler may evict pods of lower priority for pods that have no place, such as {first}: {count}; that is not reckoned with"
    ))
}

/// How many volumes a node can attach is often not told, and then nothing is held back.
fn attach_limits(packing: &Packing, world: &World, files: &Files, pools: &Pools) -> Vec<String> {
    let drivers = |pod: &Pod| -> BTreeSet<String> {
        pod.demand.volumes.iter().filter_map(|it| it.driver.clone()).collect()
    };
    let attach: BTreeMap<PodId, BTreeSet<String>> = world
        .pods
        .iter()
        .map(|it| (it.id(), drivers(it)))
        .filter(|(_, drivers)| !drivers.is_empty())
        .collect();
    let limited: BTreeSet<&String> = pools
        .all()
        .flat_map(|it| it.machines.iter())
        .flat_map(|it| it.volume_limits.keys())
        .collect();
    let (mut unlimited, mut drivers_unlimited) = (BTreeSet::new(), BTreeSet::new());
    for it in &packing.placed {
        let Some(drivers) = attach.get(&it.pod) else { continue };
        match &it.home {
            Home::Node(name) if !files.listing.knows_volume_limits(name) => {
                unlimited.insert(name.as_str());
            }
            Home::Node(_) => {}
            Home::New(_) => {
                let open = drivers.iter().filter(|it| !limited.contains(it));
                drivers_unlimited.extend(open.map(String::as_str));
            }
        }
    }
    let mut notes = Vec::new();
    if let Some(first) = unlimited.first() {
        notes.push(format!(
            "how many volumes a node can attach is not known where its CSINode is not in the files, such as of {first}: add what `kubectl get csinodes -o yaml` prints"
        ));
    }
    if !drivers_unlimited.is_empty() {
        let drivers: Vec<&str> = drivers_unlimited.into_iter().collect();
        notes.push(format!(
            "how many volumes of {} a new node can attach is not known: no limit is reckoned with",
            drivers.join(", ")
        ));
    }
    notes
}

/// All of them are in the files, or it was a typing mistake.
fn leaving(typed: &[String], files: &Files) -> Result<BTreeSet<String>, Failure> {
    let known = files.listing.node_names();
    // `kubectl get nodes -o name` writes them so.
    let typed = typed.iter().map(|it| it.strip_prefix("node/").unwrap_or(it));
    // `a, b` has nothing behind its comma.
    let typed = typed.filter(|it| !it.is_empty());
    let typed: Vec<&str> = typed.collect();
    for name in &typed {
        if !known.contains(name) {
            let failure = Failure::usage(format!("the files hold no node `{name}`"));
            let near = known
                .iter()
                .map(|it| (strsim::damerau_levenshtein(it, name), *it))
                .filter(|(distance, it)| *distance <= 1.max(it.len().min(name.len()) / 3))
                .min();
            return Err(match near {
                Some((_, near)) => failure.hint(format!("did you mean `{near}`?")),
                None => {
                    failure.hint("add the node with -f, as `kubectl get nodes -o yaml` prints it")
                }
            });
        }
    }
    Ok(typed.into_iter().map(str::to_owned).collect())
}

/// What goes to stderr.
#[derive(Debug, Default)]
struct Talk {
    /// Ready to print.
    text: String,
    /// The same for programs, each in a line.
    told: Vec<String>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

impl Talk {
    /// The same files in any order are told of in one order.
    fn settle(&mut self) {
        self.warnings.sort_unstable();
        self.notes.sort_unstable();
    }

    fn print(&self) -> String {
        let mut text = self.text.clone();
        for warning in &self.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}
