//! How many pods would it help to do what is told?
//!
//! `pods without a place for one reason × what would have to change → how many have one then`
//!
//! It is measured for one pod. A template is changed for all of its pods, a limit is raised once: who of them has a place
//! then, placing itself is asked.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use nodemolt_api::listing::World;
use nodemolt_core::place::Asked;
use nodemolt_fit::pack::{Miss, Packing, Place, Why, follow, pack_onto};
use nodemolt_fit::pod::PodId;
use nodemolt_fit::pool::Pool;

use super::asked_of;
use super::machines::Pools;
use super::remedy;
use super::story::Story;

/// So many groups are tried, and so many pods in all of these trials together: then nothing is said of how many it helps.
const TRIALS_MAX: usize = 32;
const PODS_MAX: usize = 100_000;

/// `only`: nobody else is asked about.
pub(super) fn try_out(story: &mut Story, world: &World, pools: &Pools, only: Option<&PodId>) {
    let running: usize = world.nodes.iter().map(|it| it.pods.len()).sum();
    let each = (world.pods.len() + world.nodes.len() + running).max(1);
    let placed = story.pods.iter().filter(|it| it.home.is_some()).count();
    let mut left = TRIALS_MAX.min(PODS_MAX / each);
    for group in &mut story.unplaced {
        let pods = group.pods.iter().map(|it| &story.pods[*it]);
        if only.is_some_and(|only| !pods.clone().any(|it| it.id == *only)) {
            continue;
        }
        let Some(first) = pods.clone().next().filter(|it| it.stranded.is_none()) else { continue };
        let Some(Why::NoPlace { nearest: Some(miss) }) = &first.why else { continue };
        if left == 0 {
            return;
        }
        let who: BTreeSet<PodId> = pods.map(|it| it.id.clone()).collect();
        let Some(packing) = tried(miss, &who, world, pools) else { continue };
        left -= 1;
        let helped = packing.placed.iter().filter(|it| who.contains(&it.pod)).count();
        let told = match (helped, who.len()) {
            (helped, all) if helped == all => continue,
            (0, _) if packing.placed.len() > placed => "others would come first".to_owned(),
            (0, _) => "as things stand that alone is not enough".to_owned(),
            (1, all) => format!("that helps one of these {all}"),
            (helped, all) => format!("that helps {helped} of these {all}"),
        };
        let _ = write!(group.sentence, "; {told}");
        for at in &group.pods {
            story.pods[*at].caveat = Some(told.clone());
        }
    }
}

/// Where everybody would go. `None`: it is not for anybody to do, or there is more than one way.
fn tried(miss: &Miss, who: &BTreeSet<PodId>, world: &World, pools: &Pools) -> Option<Packing> {
    let (mut pods, mut nodes) = (world.pods.clone(), world.nodes.clone());
    let mut changed = pools.clone();
    let mut all = changed.with_unable(&changed.able);
    // What a foreign pool would launch nobody knows.
    let unknown = |it: &Pool| it.machines.is_empty() && miss.place == Place::Pool(it.name.clone());
    // A fixed number is not a limit that is raised.
    let kept = matches!(&miss.place, Place::Pool(name) if pools.filling.contains(name));
    if miss.obstacles.is_empty() || kept || remedy::hopeless(miss) || all.iter().any(unknown) {
        return None;
    }
    if !follow(miss, who, &mut pods, &mut nodes, &mut all) {
        return None;
    }
    for kept in &mut changed.kept {
        if let Some(same) = all.iter().find(|it| it.name == kept.name) {
            *kept = Pool { idle: None, ..same.clone() };
        }
    }
    (changed.able, changed.unable) = all.into_iter().partition(|it| it.idle.is_none());
    let Asked { packing, .. } =
        asked_of(world, (&pods, nodes), &changed, None, |pods, nodes, able| {
            (pack_onto(pods, nodes, &changed.with_unable(able)), ())
        });
    Some(packing)
}
