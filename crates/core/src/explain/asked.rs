//! Who did not answer, and which newer images may nobody boot?
//!
//! Not to have been answered is another thing than not to be there: what was said before stands, and if
//! nothing was ever said, nothing is known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use jiff::Timestamp;
use nodemolt_fit::label;

use super::World;
use super::story::{Cause, Named, Story, both};
use crate::drift::{Drift, Missing};
use crate::node::{ImageRef, Running};
use crate::plan::Node;
use crate::resolve::Refusal;
use crate::wanted::NoImage;

/// So many newer images are told.
const NEWER_MAX: usize = 3;

/// What is known of a class's images, and what is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassTold {
    /// Why nothing is concluded yet, if nothing is.
    pub unresolved: Option<NoImage>,
    /// Questions that were not answered when they were asked last.
    pub unanswered: Vec<Unanswered>,
    /// Where its terms lead nowhere.
    pub nowhere: Vec<NoImage>,
    /// Refused, and newer than what may boot; the newest first.
    pub newer: Vec<Newer>,
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// Who was asked.
    pub whom: &'static str,
    /// Of what was asked for.
    pub kind: &'static str,
    pub names: Vec<String>,
    /// What came instead of an answer.
    pub because: String,
    /// The first time that none came. `None`: it was never asked.
    pub since: Option<Timestamp>,
    pub again_at: Option<Timestamp>,
    /// The last answer. `None`: there was none.
    pub answered_at: Option<Timestamp>,
}

/// An image that a node could not be replaced with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newer {
    pub image: ImageRef,
    pub architecture: Option<String>,
    pub refusal: Refusal,
}

impl Newer {
    fn cause(&self, class: Option<&str>) -> Cause {
        let why = NoImage::held_back(&self.image.id, &self.refusal);
        Cause {
            reason: "NoImage",
            named: super::cause::no_image(&why, class),
            text: why.because,
            ends_at: why.until,
            used_by: Vec::new(),
        }
    }
}

/// Without times, so that it changes only when what it says does.
impl fmt::Display for Unanswered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} could not be asked", self.whom)?;
        match self.names.as_slice() {
            [] => {}
            [only] => write!(out, " for {only}")?,
            [first, more @ ..] => write!(out, " for {first} and {} more", more.len())?,
        }
        write!(out, ": {}", self.because)
    }
}

impl Unanswered {
    fn sentence(&self, now: Timestamp) -> String {
        let mut text = format!("{} could not be asked: {}", self.whom, self.because);
        if let Some(since) = self.since {
            let _ = write!(text, ", since {}", both(since, now));
        }
        let _ = match self.answered_at {
            Some(at) => write!(text, "; what it said at {} stands", both(at, now)),
            None => write!(text, "; it has not answered yet"),
        };
        text
    }

    /// What was asked for, so that two questions to the same are told apart.
    fn what(&self) -> String {
        match self.names.as_slice() {
            [] => self.kind.to_owned(),
            [only] => format!("{} {only}", self.kind),
            [first, more @ ..] => format!("{} {first} and {} more", self.kind, more.len()),
        }
    }

    fn next(&self, now: Timestamp) -> Option<String> {
        let at = self.again_at?;
        let when = if at <= now { "now".to_owned() } else { format!("at {}", both(at, now)) };
        Some(format!("{} is asked again {when}", self.whom))
    }

    fn causes(&self, now: Timestamp) -> impl Iterator<Item = Cause> {
        let text = self.sentence(now);
        self.names.iter().map(move |name| Cause {
            reason: "CouldNotAsk",
            named: Named::cluster(self.kind, name),
            text: text.clone(),
            ends_at: self.again_at,
            used_by: Vec::new(),
        })
    }
}

/// Told of a node, which may stay only because of this.
pub(super) fn tell(
    story: &mut Story,
    (class, told): (Option<&str>, &ClassTold),
    running: Option<&Running>,
    drift: Option<&Drift>,
    now: Timestamp,
) {
    // Who knows that it has to go does not go for want of an answer.
    let waits = drift.is_none_or(|it| !it.drifted());
    let unknown = matches!(drift, Some(Drift::Unknown(_)));
    for newer in told.newer.iter().filter(|it| concerns(it, running)).take(NEWER_MAX) {
        let name = newer.image.name.as_deref().unwrap_or_default();
        let text = format!("{}   {name}   refused: {}", newer.image.id, newer.refusal);
        story.fact("newer", text);
        if waits {
            let cause = newer.cause(class);
            if let Some(at) = cause.ends_at
                && story.next == super::NOTHING_TO_DO
            {
                story.next = format!("{} may be used from {} on", newer.image.id, both(at, now));
            }
            story.causes.push(cause);
        }
    }
    for cause in leads_nowhere(told, running).filter(|_| unknown) {
        story.fact("asked", cause.text);
    }
    for it in &told.unanswered {
        tell_unanswered(story, it, now);
        if waits {
            story.causes.extend(it.causes(now));
        }
    }
    // Whatever is known first may change what becomes of it.
    let first = told.unanswered.iter().filter(|it| it.again_at.is_some());
    let first = first.min_by_key(|it| it.again_at).filter(|_| waits);
    if let Some(next) = first.and_then(|it| it.next(now)) {
        story.next = format!("{next}; until then it stays as it is");
    }
}

fn tell_unanswered(story: &mut Story, it: &Unanswered, now: Timestamp) {
    story.fact("asked", it.sentence(now));
    for name in &it.names {
        story.fact("", format!("{} {name}", it.kind));
    }
}

/// What holds a node of which it is not known what it should run.
pub(super) fn unknown(
    missing: &Missing,
    (class, told): (Option<&str>, Option<&ClassTold>),
    running: Option<&Running>,
) -> Vec<Cause> {
    let because = match missing {
        Missing::ReplacementImage { because, .. } => because,
        Missing::SelectsNothing { .. } => {
            let named = class.map_or_else(Named::nothing, super::cause::of_class);
            let (reason, text) = ("SelectsNothing", missing.to_string());
            return vec![Cause { reason, named, text, ends_at: None, used_by: Vec::new() }];
        }
        Missing::RunningImage
        | Missing::InstanceType
        | Missing::ClassStamp
        | Missing::TemplateStamp
        | Missing::Instance
        | Missing::SecurityGroups
        | Missing::Subnets
        | Missing::Reservations
        | Missing::InstanceTypes
        | Missing::PlacementGroup
        | Missing::Kubelet
        | Missing::ControlPlane => return Vec::new(),
    };
    let nowhere: Vec<Cause> = told.into_iter().flat_map(|it| leads_nowhere(it, running)).collect();
    // That no image fits is what comes of it.
    if because.object.is_none() && !nowhere.is_empty() {
        return nowhere;
    }
    vec![Cause {
        reason: "NoImage",
        named: super::cause::no_image(because, class),
        text: missing.to_string(),
        ends_at: because.until,
        used_by: Vec::new(),
    }]
}

/// Nodes of a pool or the fleet that stay for want of an image, by what holds it.
pub(super) fn tell_staying(story: &mut Story, world: &World<'_>, nodes: &BTreeMap<&String, &Node>) {
    let mut staying: BTreeMap<(&'static str, Named), (usize, &String, Cause)> = BTreeMap::new();
    // Whoever goes, whatever for, does not stay.
    let staying_nodes = nodes.iter().filter(|(name, _)| !world.plan.under_way.contains(**name));
    for (name, node) in staying_nodes {
        let class = node.member.class.as_deref();
        let told = class.and_then(|it| world.classes.get(it));
        let running = world.running.get(*name);
        let own = match world.drifts.get(*name) {
            Some(Drift::Drifted { .. }) => continue,
            Some(Drift::Unknown(missing)) => unknown(missing, (class, told), running),
            Some(Drift::InSync) | None => Vec::new(),
        };
        let newer = told.into_iter().flat_map(|it| &it.newer);
        let newer = newer.filter(|it| concerns(it, running)).take(NEWER_MAX);
        // One object may hold several images back; a node counts once for each object.
        let mut counted = BTreeSet::new();
        for cause in own.into_iter().chain(newer.map(|it| it.cause(class))) {
            let key = (cause.reason, cause.named.clone());
            if counted.insert(key.clone()) {
                staying.entry(key).or_insert((0, *name, cause)).0 += 1;
            }
        }
    }
    for (count, name, cause) in staying.into_values() {
        story.fact("staying", format!("{count}, for example {name}: {}", cause.text));
        story.causes.push(cause);
    }
}

/// In short, for a table.
pub(super) fn lines(class: &str, told: &ClassTold, now: Timestamp) -> Vec<String> {
    let unanswered = told.unanswered.iter().map(|it| {
        let next = it.next(now).map_or(String::new(), |it| format!("; {it}"));
        format!("class {class}: {}: {}{next}", it.what(), it.sentence(now))
    });
    let mut lines: Vec<String> = unanswered.collect();
    if let Some(why) = told.unresolved.as_ref().filter(|_| lines.is_empty()) {
        lines.push(format!("class {class}: {why}"));
    }
    lines
}

/// Told of a pool or the fleet.
pub(super) fn tell_class(story: &mut Story, class: &str, told: &ClassTold, now: Timestamp) {
    if let Some(why) = told.unresolved.as_ref().filter(|_| told.unanswered.is_empty()) {
        story.fact("class", format!("{class}: {why}"));
        story.causes.push(Cause {
            reason: "NoImage",
            named: super::cause::no_image(why, Some(class)),
            text: why.because.clone(),
            ends_at: why.until,
            used_by: Vec::new(),
        });
    }
    for it in &told.unanswered {
        let text = format!("{class}: {}", it.sentence(now));
        if story.facts.iter().any(|it| it.text == text) {
            continue;
        }
        story.fact("class", text);
        for name in &it.names {
            story.fact("", format!("{} {name}", it.kind));
        }
        story.causes.extend(it.causes(now));
        if let Some(next) = it.next(now)
            && story.next.is_empty()
        {
            story.next = next;
        }
    }
}

/// Where the class's terms lead nowhere, as far as it is about this node's processor.
fn leads_nowhere(told: &ClassTold, running: Option<&Running>) -> impl Iterator<Item = Cause> {
    let ours = running.and_then(arch);
    let others: Vec<&str> =
        ["arm64", "x86_64"].into_iter().filter(|it| ours.is_some_and(|ours| ours != *it)).collect();
    let about = move |it: &&NoImage| !others.iter().any(|arch| it.because.contains(arch));
    told.nowhere.iter().filter(about).map(|it| Cause {
        reason: "NoImage",
        named: super::cause::no_image(it, None),
        text: it.because.clone(),
        ends_at: None,
        used_by: Vec::new(),
    })
}

/// In the word that images use.
fn arch(running: &Running) -> Option<&str> {
    let arch = running.labels.get(label::ARCH).map(String::as_str);
    arch.map(|it| if it == "amd64" { "x86_64" } else { it })
}

/// Whether a node could have been replaced with it: for its processor, of the same kind, and newer than
/// what it runs.
fn concerns(newer: &Newer, running: Option<&Running>) -> bool {
    let Some(running) = running else { return false };
    match &newer.refusal {
        Refusal::Superseded { .. }
        | Refusal::NewerThanAsked { .. }
        | Refusal::UnsupportedArchitecture(_)
        | Refusal::WrongPlatform { .. } => return false,
        Refusal::WrongOwner { .. }
        | Refusal::NotAllowedByAccount
        | Refusal::NotBootable(_)
        | Refusal::NotAllowedByPolicy { .. }
        | Refusal::Quarantined { .. }
        | Refusal::KubeletTooNew { .. }
        | Refusal::Withdrawn(_)
        | Refusal::Deprecated { .. }
        | Refusal::AgeUnknown { .. }
        | Refusal::TooYoung { .. }
        | Refusal::NotRecommended { .. }
        | Refusal::NoLongerNamed { .. } => {}
    }
    let arch = arch(running);
    let same_arch =
        newer.architecture.as_deref().is_none_or(|it| arch.is_none_or(|arch| arch == it));
    let Some(runs) = &running.image else { return same_arch };
    let kind = |it: &ImageRef| {
        let name = it.name.as_deref()?;
        name.rsplit_once("-v").map(|(kind, _)| kind.to_owned())
    };
    let same_kind = match (kind(runs), kind(&newer.image)) {
        (Some(ours), Some(theirs)) => ours == theirs,
        (Some(_) | None, Some(_) | None) => true,
    };
    same_arch && same_kind && newer.image.dated > runs.dated
}
