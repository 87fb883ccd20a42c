//! What should it run now?
//!
//! `resolution × rollout × purpose → the image of each instance type`, and what class, pool and cluster
//! say beside it
//!
//! Drift, launch and the class's status read this, never the resolution itself: while a candidate
//! spreads only its own slots get it, and everything else gets the last good image. A halt means the last
//! good one for all, so going back is ordinary drift.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use nodemolt_fit::{Operator, Requirement, Requirements, Vocabulary, Written, label};
use serde::Serialize;

use crate::bootstrap::Taint;
use crate::image::ImageId;
use crate::launch::{fields, hex_sha256};
use crate::lookup::Minor;
use crate::node::{ImageRef, Stamp};
use crate::resolve::{Boots, Problem, Refusal, Refused, Resolution};

/// Stands in front of the digest of a pool's template, like the class's own version.
pub const TEMPLATE_VERSION: &str = "nodemolt-template/v1:";

/// What a node of a class should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    images: Vec<ImageRef>,
    /// By pool, if pools were asked about, and by instance type.
    boots: BTreeMap<Option<String>, BTreeMap<Arc<str>, Boot>>,
    /// Too young for a new node, and fine on one that runs them already.
    pub in_sync: BTreeSet<ImageId>,
    pub beside: Beside,
}

/// What is wanted of a machine beside its image. `None` is what we could not find out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beside {
    pub class_stamp: Option<Stamp>,
    pub template_stamp: Option<Stamp>,
    pub requirements: Vec<Written>,
    /// All that EC2 offers here.
    pub instance_types: Option<Listed>,
    pub security_groups: Option<Listed>,
    pub subnets: Option<Listed>,
    pub reservations: Option<Listed>,
    /// The class's placement group; `Some(None)` if it wants none.
    pub placement_group: Option<Option<String>>,
    pub control_plane: Option<Minor>,
}

/// What EC2 has listed. One list may lack what is there; two, a while apart, do not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    pub last: Arc<BTreeSet<String>>,
    /// The list before, if there was one long enough ago.
    pub before: Option<Arc<BTreeSet<String>>>,
}

impl Listed {
    /// Two lists that say the same.
    pub fn twice(all: BTreeSet<String>) -> Self {
        let last = Arc::new(all);
        Self { before: Some(Arc::clone(&last)), last }
    }

    /// `None`: nobody knows yet.
    pub fn has(&self, it: &str) -> Option<bool> {
        if self.last.contains(it) {
            return Some(true);
        }
        self.before.as_ref().filter(|before| !before.contains(it)).map(|_| false)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Boot {
    Image(usize),
    HeldBack(NoImage),
    Nothing,
}

/// What an instance type of a pool would boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replacing<'a> {
    Image(&'a ImageRef),
    /// A rule holds its image back, or it cannot be used at all.
    HeldBack(&'a NoImage),
    /// No image fits it.
    NoImageFits,
    /// Nobody has asked about such a type.
    NotResolved,
}

/// Why there is no image for a new node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoImage {
    pub because: String,
    /// Kind and name of whatever says so, where there is such a thing; no name: its class.
    pub object: Option<(&'static str, String)>,
    /// When it ends by itself, if it does.
    pub until: Option<Timestamp>,
}

impl NoImage {
    pub fn because(why: impl Into<String>) -> Self {
        Self { because: why.into(), object: None, until: None }
    }

    /// Of one that no rule of ours holds back: it is the image itself that a person has to look at.
    fn lost(image: &ImageId, refusal: &Refusal) -> Self {
        let because = format!("{image} cannot be used: {refusal}");
        Self { because, ..Self::held_back(image, refusal) }
    }

    pub fn held_back(image: &ImageId, refusal: &Refusal) -> Self {
        let object = refusal.object().map(|(kind, name)| (kind, name.to_owned()));
        Self {
            because: format!("{image} is held back: {refusal}"),
            object: Some(object.unwrap_or_else(|| ("Image", image.to_string()))),
            until: refusal.ends_at(),
        }
    }
}

impl NoImage {
    /// Why a term of the class leads nowhere, where it should lead somewhere.
    pub fn nowhere(problem: &Problem) -> Option<Self> {
        let (because, object) = match problem {
            Problem::ImageUnknown { id, via } => {
                let via = via.as_deref().unwrap_or("the class");
                let because = format!("{via} names {id}, which Amazon EC2 does not have");
                (because, ("Image", id.to_string()))
            }
            Problem::BadValue { parameter, error } => (
                format!("the value of SSM parameter {parameter} is refused: {error}"),
                ("SSMParameter", parameter.clone()),
            ),
            Problem::NotThere { what, .. } => {
                let name = what.split_whitespace().last().unwrap_or_default().to_owned();
                (format!("{what} is not there"), ("SSMParameter", name))
            }
            // Told by whoever asked, or a matter of files.
            Problem::KubernetesUnknown
            | Problem::UnsupportedAlias(_)
            | Problem::CouldNotAsk { .. }
            | Problem::NotInCatalog { .. }
            | Problem::NeedsHistory { .. }
            | Problem::ReleaseUnknown { .. }
            | Problem::MatchedNothing => return None,
        };
        Some(Self { because, object: Some(object), until: None })
    }
}

impl fmt::Display for NoImage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.because)
    }
}

/// One image that spreads in place of another, as far as it decides what a node should run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    pub candidate: ImageId,
    pub last_good: ImageRef,
    pub halted: bool,
}

/// What a node is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A slot of the canary or of a wave; and whether a running node matches.
    Wave,
    /// Everything else that launches a node: scaling up, expiry.
    Other,
}

pub fn wanted(resolution: &Resolution, rollout: Option<&Rollout>, purpose: Purpose) -> Wanted {
    let back = rollout.filter(|it| it.halted || purpose == Purpose::Other);
    let images = resolution
        .chosen
        .iter()
        .map(|it| match back {
            Some(rollout) if rollout.candidate == it.id => rollout.last_good.clone(),
            Some(_) | None => {
                ImageRef { id: it.id.clone(), name: Some(it.name.clone()), dated: it.dated }
            }
        })
        .collect();
    let mut boots: BTreeMap<Option<String>, BTreeMap<Arc<str>, Boot>> = BTreeMap::new();
    for answer in &resolution.types {
        let boot = match &answer.boots {
            Boots::Image(at) => Boot::Image(*at),
            Boots::HeldBack(at) => Boot::HeldBack(resolution.held.get(*at).map_or_else(
                || NoImage::because("its image is held back"),
                |it| NoImage::held_back(&it.id, &it.refusal),
            )),
            Boots::Nothing { lost, .. } => {
                let lost = lost.and_then(|it| resolution.lost.get(it));
                lost.map_or(Boot::Nothing, |it| Boot::HeldBack(NoImage::lost(&it.id, &it.refusal)))
            }
        };
        boots.entry(answer.pool.clone()).or_default().insert(answer.instance_type.clone(), boot);
    }
    let fine = resolution.refused.iter().filter(|(_, it)| only_age(it)).map(|(id, _)| id.clone());
    let in_sync = fine.filter(|it| back.is_none_or(|rollout| rollout.candidate != *it)).collect();
    Wanted { images, boots, in_sync, beside: Beside::default() }
}

/// Nodes run it, and nothing but its age speaks against it.
fn only_age(refused: &Refused) -> bool {
    let age = |it: &Refusal| matches!(it, Refusal::TooYoung { .. } | Refusal::AgeUnknown { .. });
    refused.in_use && age(&refused.refusal) && refused.also.iter().all(age)
}

impl Wanted {
    /// One image for all instance types, and nothing else known. For whoever has no catalog.
    pub fn image(image: ImageRef, instance_types: impl IntoIterator<Item = Arc<str>>) -> Self {
        let all = instance_types.into_iter().map(|it| (it, Boot::Image(0))).collect();
        Self {
            images: vec![image],
            boots: BTreeMap::from([(None, all)]),
            in_sync: BTreeSet::new(),
            beside: Beside::default(),
        }
    }

    #[must_use]
    pub fn beside(self, beside: Beside) -> Self {
        Self { beside, ..self }
    }

    fn of_pool(&self, pool: Option<&str>) -> Option<&BTreeMap<Arc<str>, Boot>> {
        let of_pool = pool.and_then(|it| self.boots.get(&Some(it.to_owned())));
        of_pool.or_else(|| self.boots.get(&None))
    }

    /// Whatever some machine of the pool would boot, once for each machine.
    pub fn bootable(&self, pool: Option<&str>) -> impl Iterator<Item = &ImageRef> {
        let boots = self.of_pool(pool).into_iter().flat_map(BTreeMap::values);
        boots.filter_map(|it| match it {
            Boot::Image(at) => self.images.get(*at),
            Boot::HeldBack(_) | Boot::Nothing => None,
        })
    }

    /// Where no machine that the pool asks for can boot: the first of those, how many others there are, and why.
    pub fn none_boots(&self, pool: Option<&str>) -> Option<(&str, usize, NoImage)> {
        let boots = self.of_pool(pool)?;
        if self.bootable(pool).next().is_some() {
            return None;
        }
        let (first, boot) = boots.first_key_value()?;
        let because = match boot {
            Boot::HeldBack(why) => why.clone(),
            Boot::Image(_) | Boot::Nothing => NoImage::because("no image fits it"),
        };
        Some((first, boots.len() - 1, because))
    }

    pub fn replacing(&self, pool: Option<&str>, instance_type: &str) -> Replacing<'_> {
        match self.of_pool(pool).and_then(|it| it.get(instance_type)) {
            None => Replacing::NotResolved,
            Some(Boot::Nothing) => Replacing::NoImageFits,
            Some(Boot::HeldBack(why)) => Replacing::HeldBack(why),
            Some(Boot::Image(at)) => {
                self.images.get(*at).map_or(Replacing::NoImageFits, Replacing::Image)
            }
        }
    }
}

/// The labels that a new node has because its claim asks for them: what leaves one value, and one value of
/// each label that neither its machine nor how it is bought decides. Whoever asks for such a label and gets
/// a node without it would replace that node for ever.
pub fn pinned(requirements: &[Written]) -> BTreeMap<String, String> {
    let vocabulary = Vocabulary::new();
    let mut all = BTreeMap::new();
    for (key, requirement) in Requirements::read(requirements, &vocabulary).iter() {
        let key = vocabulary.key_text(key).as_ref().to_owned();
        let decided = label::by_type(&key) || label::by_offering(&key);
        let value = match requirement.written(&key, &vocabulary).as_slice() {
            [it] if it.operator == Operator::In && it.values.len() == 1 => {
                it.values.first().cloned()
            }
            written if !decided => one_of(requirement, written, &vocabulary),
            _ => None,
        };
        if let Some(value) = value {
            all.insert(key, value);
        }
    }
    all
}

/// The first by name, the least number, or a word that says no more than that it is there. `None` where it
/// may be absent, and where no label can be what is asked.
fn one_of(
    requirement: &Requirement,
    written: &[Written],
    vocabulary: &Vocabulary,
) -> Option<String> {
    if requirement.admits_absent() {
        return None;
    }
    // Both ends of a range are allowed, and a label cannot begin with a minus.
    let listed =
        written.iter().filter(|it| it.operator != Operator::NotIn).flat_map(|it| &it.values);
    let number = || (0_u32..=NUMBERS_TRIED).map(|it| it.to_string());
    let mut values = listed.cloned().chain(["true".to_owned()]).chain(number());
    values.find(|it| !it.starts_with('-') && requirement.admits(vocabulary.value(it)))
}

/// More than any pool excludes by name.
const NUMBERS_TRIED: u32 = 100;

/// What a pool says of its nodes that only a new node can honour: Karpenter's choice of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolTemplate {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
    /// Group, kind and name of the class.
    pub class: (String, String, String),
    pub termination_grace_period: Option<SignedDuration>,
    /// `None`: never.
    pub expire_after: Option<SignedDuration>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Covered<'a> {
    labels: Option<&'a BTreeMap<String, String>>,
    annotations: Option<&'a BTreeMap<String, String>>,
    taints: Option<Vec<String>>,
    startup_taints: Option<Vec<String>>,
    node_class_ref: &'a (String, String, String),
    termination_grace_period: Option<String>,
    expire_after: Option<String>,
}

impl PoolTemplate {
    /// As it takes effect: the order of taints is no difference, and `24h` is the same as `1440m`.
    pub fn stamp(&self) -> Stamp {
        let sorted = |taints: &[Taint]| {
            let mut all: Vec<String> = taints.iter().map(ToString::to_string).collect();
            all.sort_unstable();
            all.dedup();
            Some(all).filter(|it| !it.is_empty())
        };
        // Our own form: how a library writes it may change, and must not replace a fleet.
        let length = |it: SignedDuration| format!("{}s", it.as_secs());
        let covered = Covered {
            labels: Some(&self.labels).filter(|it| !it.is_empty()),
            annotations: Some(&self.annotations).filter(|it| !it.is_empty()),
            taints: sorted(&self.taints),
            startup_taints: sorted(&self.startup_taints),
            node_class_ref: &self.class,
            termination_grace_period: self.termination_grace_period.map(length),
            expire_after: self.expire_after.map(length),
        };
        let digest = format!("{TEMPLATE_VERSION}{}", hex_sha256(&covered));
        Stamp { digest, fields: fields(&covered, &[]) }
    }
}
