//! Which nodes should go, by our own view?
//!
//! `world × now → a wish for each node, or that it cannot be told`
//!
//! Nothing here comes from the engine: people's words, what EC2 has, and the image that runs. Whoever decides
//! has to have been told of it, so what each replica was answered is kept as well.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use nodemolt_core::seen::Kind;
use serde_json::Value;

use super::image::Rules;
use super::read::{self, items, text};
use super::said::line_of;
use super::world::{Kept, POOL_LABEL, World, class_key, known};
use super::{KNOWN_AFTER, Setting};
use crate::trace::{Actor, Fact, Image, ReplicaState, Step};

const ASKED: &str = "nodemolt.dev/upgrade-requested-at";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// A person deleted it, or asked for another.
    Person,
    Expired,
    /// It runs another image than the newest that may boot.
    Image,
    /// Nothing says that it should go.
    None,
    /// Only whoever knows more than these laws could say.
    Untold,
}

/// What each replica was answered since it began, or began to lead.
#[derive(Debug, Default)]
pub(super) struct Answers {
    of: BTreeMap<u8, BTreeMap<String, Answer>>,
}

#[derive(Debug)]
struct Answer {
    at: Timestamp,
    /// When the last one that was.
    complete_at: Option<Timestamp>,
    /// When the first one that was.
    first_at: Option<Timestamp>,
    /// When the first one that was so much later.
    second_at: Option<Timestamp>,
    complete: bool,
}

/// Docs say: what one answer lacks is believed to be gone when another one, so much later, lacks it too.
const LACKED_FOR: SignedDuration = SignedDuration::from_mins(5);

/// What was not asked for so long is not asked any more: images are asked for every five minutes.
const ASKED_WITHIN: SignedDuration = SignedDuration::from_mins(12);

impl Answers {
    pub(super) fn see(&mut self, step: &Step) {
        match (&step.fact, step.by) {
            (Fact::Answered { question, complete, .. }, Actor::Operator(replica)) => {
                let answers = self.of.entry(replica).or_default();
                let before = answers.get(question);
                let now = complete.then_some(step.at);
                let first_at = before.and_then(|it| it.first_at).or(now);
                let later =
                    |it: &Timestamp| first_at.is_some_and(|at| it.duration_since(at) >= LACKED_FOR);
                let answer = Answer {
                    at: step.at,
                    complete_at: now.or(before.and_then(|it| it.complete_at)),
                    first_at,
                    second_at: before.and_then(|it| it.second_at).or(now.filter(later)),
                    complete: *complete,
                };
                answers.insert(question.clone(), answer);
            }
            // Who does not lead any more forgets. What it sent in its last moment arrives a little later, and was
            // decided by what it knew: that is kept until it begins anew.
            (Fact::Replica { number, state }, _) => match state {
                ReplicaState::Follows | ReplicaState::Crashed => {}
                ReplicaState::Started | ReplicaState::Leads => {
                    self.of.remove(number);
                }
            },
            _ => {}
        }
    }

    fn all(&self, replica: u8) -> impl Iterator<Item = (&String, &Answer)> {
        self.of.get(&replica).into_iter().flatten()
    }

    /// What it asks for now about images.
    fn current(&self, replica: u8, now: Timestamp) -> impl Iterator<Item = &Answer> {
        let all = self.all(replica).filter(|(question, _)| about_images(question));
        all.map(|it| it.1).filter(move |it| now.duration_since(it.at) <= ASKED_WITHIN)
    }

    /// It could not ask something, or was not answered in full.
    pub(super) fn in_doubt(&self, replica: u8, now: Timestamp) -> bool {
        self.current(replica, now).any(|it| !it.complete)
    }

    /// It was answered nothing in full since it began.
    pub(super) fn nothing(&self, replica: u8) -> bool {
        let mut images = self.all(replica).filter(|(question, _)| about_images(question));
        images.all(|(_, it)| it.complete_at.is_none())
    }

    /// It was answered twice, long enough apart and a while ago, so it knows what is gone.
    pub(super) fn twice(&self, replica: u8, now: Timestamp) -> bool {
        self.current(replica, now).all(|it| it.second_at.is_some_and(|it| known(it, now)))
    }

    /// Since when it knows all that it asked for, in the last answers that were complete.
    pub(super) fn since(&self, replica: u8, now: Timestamp) -> Option<Timestamp> {
        // Which machines and subnets there are it has to have heard once.
        if self.all(replica).any(|(_, it)| it.complete_at.is_none()) {
            return None;
        }
        let all: Option<Vec<Timestamp>> =
            self.current(replica, now).map(|it| it.complete_at).collect();
        all?.into_iter().min()
    }
}

/// Others are about machines and subnets, which choose no image.
fn about_images(question: &str) -> bool {
    question.starts_with("Images") || question.starts_with("Parameters")
}

/// What is wanted, by class and line of images: the same for all of their nodes.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    of: BTreeMap<(String, String), Option<String>>,
    /// Some newer image than one that runs is refused: it could boot, if nobody kept to that.
    pub(super) refused: bool,
}

impl Wanted {
    /// The newest image of a line that may boot; `None` where that cannot be told.
    fn of(
        &mut self,
        world: &World,
        setting: &Setting,
        class: &str,
        runs: &Image,
        now: Timestamp,
    ) -> Option<&str> {
        let key = (class.to_owned(), line_of(&runs.name).to_owned());
        let refused = &mut self.refused;
        let find = || newest(world, setting, class, runs, refused, now);
        self.of.entry(key).or_insert_with(find).as_deref()
    }
}

fn newest(
    world: &World,
    setting: &Setting,
    class: &str,
    runs: &Image,
    refused: &mut bool,
    now: Timestamp,
) -> Option<String> {
    let kept = world.others.get("EC2NodeClass").and_then(|it| it.get(class))?;
    let latest = |it: &Value| text(it, &["alias"]).is_some_and(|it| it.ends_with("@latest"));
    let mut terms = items(&kept.object, &["spec", "amiSelectorTerms"]).peekable();
    if world.pointer_moved || terms.peek().is_none() || !terms.all(latest) {
        return None;
    }
    let policies: Vec<(&str, &Kept)> = world.policies_of(class).collect();
    let quarantines: Vec<(&str, &Kept)> = world.all("ImageQuarantine").collect();
    let rules = Rules {
        class,
        kept: Some(kept),
        policies: &policies,
        quarantines: &quarantines,
        used_is_old_enough: false,
        as_remembered: true,
    };
    let mut newest: Option<&Image> = None;
    // An alias means the releases of its publisher, whatever strangers call theirs.
    let same = |it: &&Image| line_of(&it.name) == line_of(&runs.name) && it.owner == runs.owner;
    for image in world.images.values().filter(same) {
        // What its publisher has taken back is not ours to judge here.
        if !image.launchable || image.deprecated {
            return None;
        }
        let rank = |it: &Image| (it.created_at, it.name.clone(), it.id.clone());
        if newest.is_some_and(|it| rank(image) <= rank(it)) {
            continue;
        }
        if rules.refusal(world, setting, image, now).is_none() {
            newest = Some(image);
        } else {
            *refused |= rank(image) > rank(runs);
        }
    }
    // What runs and is refused for its age alone may stay.
    let young = rules.refusal(world, setting, runs, now).is_some();
    newest.filter(|_| !young || rules.held(runs, now)).map(|it| it.id.clone())
}

pub(super) fn of_node(
    world: &World,
    setting: &Setting,
    wanted: &mut Wanted,
    name: &str,
    now: Timestamp,
) -> Wish {
    let (Some(node), Some(claim)) = (world.nodes.get(name), world.claim_of(name)) else {
        return Wish::Untold;
    };
    if claim.deleting_since.is_some() || read::deleting(&node.object).is_some() {
        return Wish::Person;
    }
    if !read::condition(&claim.object, "Initialized") {
        return Wish::Untold;
    }
    let made = read::time(&claim.object, &["metadata", "creationTimestamp"]);
    let Some(made) = made else { return Wish::Untold };
    let pool = read::label(&claim.object, POOL_LABEL);
    let pool = pool.and_then(|it| world.others.get("NodePool")?.get(it));
    let class = class_key(&claim.object, &["spec", "nodeClassRef"]);
    let kept = world.others.get("EC2NodeClass").and_then(|it| it.get(&class));
    let (Some(pool), Some(kept)) = (pool, kept) else { return Wish::Untold };
    let asked = [&node.object, &claim.object, &pool.object]
        .into_iter()
        .filter_map(|it| read::time(it, &["metadata", "annotations", ASKED]))
        .any(|it| it > made);
    if asked {
        return Wish::Person;
    }
    let age = text(&claim.object, &["spec", "expireAfter"])
        .and_then(read::duration)
        .filter(|it| *it >= LIFE_MIN);
    if age.is_some_and(|age| now.duration_since(made) >= age) {
        return Wish::Expired;
    }
    // What class and pool say beside images is compared by nobody here.
    let changed = kept.since > made || pool.since > made;
    let runs = text(&claim.object, &["status", "imageID"]).and_then(|it| world.images.get(it));
    let Some(runs) = runs.filter(|_| !changed && !foreign(&claim.object)) else {
        return Wish::Untold;
    };
    // Whoever made it may not have heard by then what they say since a moment before: it was born different, and has
    // drifted.
    let heard = |kind: Kind, it: &Kept| {
        let late = world.hearing.late_by(kind, it.since);
        made.duration_since(it.since) > KNOWN_AFTER.saturating_add(late)
    };
    let born_alike = heard(Kind::Class, kept) && heard(Kind::Pool, pool);
    match wanted.of(world, setting, &class, runs, now) {
        None => Wish::Untold,
        Some(it) if it == runs.id && !born_alike => Wish::Untold,
        Some(it) if it == runs.id => Wish::None,
        Some(_) => Wish::Image,
    }
}

/// Docs say: whoever is to live for less than a successor may take to come does not expire.
pub(super) const LIFE_MIN: SignedDuration = SignedDuration::from_mins(5);

/// Somebody else says that it has drifted.
fn foreign(claim: &Value) -> bool {
    let annotations = read::at(claim, &["metadata", "annotations"]).and_then(Value::as_object);
    let annotated =
        annotations.is_some_and(|it| it.keys().any(|it| it.starts_with("drift.nodemolt.dev/")));
    let mut conditions = items(claim, &["status", "conditions"]);
    annotated || conditions.any(|it| text(it, &["type"]).is_some_and(|it| it.ends_with("/Drifted")))
}
