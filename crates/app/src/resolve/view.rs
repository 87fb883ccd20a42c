//! What is there to tell about a resolution?
//!
//! One value, printed as text or as JSON. Nothing is decided where it is printed.

use jiff::Timestamp;
use nodemolt_core::ask::Ask;
use nodemolt_core::catalog::{Index, Kept};
use nodemolt_core::policy::Policy;
use nodemolt_core::resolve::{
    Answer, Boots, Miss, Next, Problem, Refusal, Resolution, Setting, TypeAnswer, TypesAsked,
    Verdict, shown,
};
use nodemolt_fit::{Requirements, Vocabulary, Written, label};
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResolutionList {
    api_version: &'static str,
    kind: &'static str,
    pub at: Timestamp,
    pub items: Vec<ClassView>,
}

impl ResolutionList {
    pub(super) fn new(at: Timestamp, items: Vec<ClassView>) -> Self {
        Self { api_version: "nodemolt.dev/cli/v1", kind: "ResolutionList", at, items }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClassView {
    pub class: String,
    pub family: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
    pub minimum_age: AgeView,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_use: Vec<String>,
    pub answer: &'static str,
    pub chosen: Vec<ChosenView>,
    pub held: Vec<HeldView>,
    pub refused: Vec<RefusedView>,
    pub terms: Vec<TermView>,
    pub types_asked_by_name: bool,
    pub instance_types: Vec<TypeView>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgeView {
    pub age: String,
    /// `class`, `--min-age` or the policy's name.
    pub from: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChosenView {
    #[serde(flatten)]
    pub image: ImageView,
    pub requirements: Vec<Written>,
    /// The same in few words, without the architecture.
    #[serde(skip)]
    pub for_what: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<String>,
    pub terms: Vec<usize>,
    pub deprecated: bool,
    pub only_in_use: bool,
    /// A policy's exception speaks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exception: Option<ExceptionView>,
    /// How many of the instance types asked for boot it.
    pub instance_type_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExceptionView {
    pub reason: String,
    pub until: Timestamp,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageView {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavour: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    pub architecture: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The date by which it is ordered and ages: its source's, for a copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NextView {
    pub id: String,
    pub name: String,
    pub eligible_at: Timestamp,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeldView {
    #[serde(flatten)]
    pub image: ImageView,
    pub requirements: Vec<Written>,
    #[serde(skip)]
    pub for_what: String,
    #[serde(flatten)]
    pub refusal: RefusalView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefusedView {
    #[serde(flatten)]
    pub image: ImageView,
    #[serde(flatten)]
    pub refusal: RefusalView,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<RefusalView>,
    pub in_use: bool,
    pub terms: Vec<usize>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefusalView {
    pub reason: &'static str,
    pub message: String,
    /// When it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(skip)]
    pub held: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TermView {
    pub term: usize,
    pub asks: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    pub candidates: Vec<CandidateView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CandidateView {
    #[serde(flatten)]
    pub image: ImageView,
    pub chosen: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<RefusalView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<RefusalView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TypeView {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// What it boots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    /// What it would boot, were it not for a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBackView>,
    /// The chosen image that comes nearest, and what stands between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NearestView>,
    /// It was asked for by name, and no pool of the class would launch it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_no_pool: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeldBackView {
    pub image: String,
    #[serde(flatten)]
    pub refusal: RefusalView,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NearestView {
    pub image: String,
    pub misses: Vec<MissView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MissView {
    pub what: String,
    pub needs: String,
    pub has: String,
}

/// All that the answer was found from.
pub(super) struct Question<'a> {
    pub ask: &'a Ask,
    pub policy: &'a Policy,
    pub setting: &'a Setting<'a>,
    pub index: &'a Index<'a>,
    pub overridden: bool,
    /// Types that were asked for by name and that no pool would launch.
    pub in_no_pool: Vec<String>,
    pub answer: Answer,
}

pub(super) fn view(question: &Question<'_>, resolution: &Resolution) -> ClassView {
    let vocabulary = &question.setting.machines.vocabulary;
    let image = |id: &nodemolt_core::image::ImageId, version: Option<&String>| {
        question.index.get(id).map(|kept| image_view(kept, version))
    };
    let ruling = question.policy.for_class(&question.ask.labels);
    let floor = &resolution.minimum_age;
    let from = match (&floor.policy, question.overridden) {
        (Some(policy), _) => format!("policy {policy}"),
        (None, true) => "--min-age".to_owned(),
        (None, false) => "class".to_owned(),
    };
    let mut refused: Vec<_> = resolution.refused.iter().collect();
    refused.sort_by_key(|(id, it)| (std::cmp::Reverse(it.dated), std::cmp::Reverse(&it.name), *id));
    ClassView {
        class: question.ask.class.clone(),
        family: question.ask.family.name(),
        kubernetes: question.setting.kubernetes.map(|it| it.to_string()),
        minimum_age: AgeView { age: floor.age.to_string(), from },
        policies: ruling.rules.iter().map(|it| it.name.clone()).collect(),
        in_use: question.setting.in_use.iter().map(ToString::to_string).collect(),
        answer: match question.answer {
            Answer::Found => "Found",
            Answer::HeldBack => "HeldBack",
            Answer::NoMatch => "NoMatch",
        },
        chosen: resolution
            .chosen
            .iter()
            .enumerate()
            .filter_map(|(at, it)| {
                Some(ChosenView {
                    image: image(&it.id, it.version.as_ref())?,
                    requirements: it.requirements.written(vocabulary),
                    for_what: for_what(&it.requirements, vocabulary),
                    hardware: it.hardware.needs(),
                    terms: numbered(&it.terms),
                    deprecated: it.deprecated,
                    only_in_use: it.only_in_use,
                    exception: question.index.get(&it.id).and_then(|kept| {
                        let found = ruling.exception(&kept.sighting.image, question.index.now)?;
                        Some(ExceptionView { reason: found.reason.clone(), until: found.until })
                    }),
                    instance_type_count: resolution
                        .types
                        .iter()
                        .filter(|answer| answer.boots == Boots::Image(at))
                        .count(),
                    next: it.next.as_ref().map(next_view),
                })
            })
            .collect(),
        held: resolution
            .held
            .iter()
            .filter_map(|it| {
                Some(HeldView {
                    image: image(&it.id, None)?,
                    requirements: it.requirements.written(vocabulary),
                    for_what: for_what(&it.requirements, vocabulary),
                    refusal: refusal_view(&it.refusal),
                    next: it.next.as_ref().map(next_view),
                })
            })
            .collect(),
        refused: refused
            .into_iter()
            .filter_map(|(id, it)| {
                Some(RefusedView {
                    image: image(id, it.version.as_ref())?,
                    refusal: refusal_view(&it.refusal),
                    also: it.also.iter().map(refusal_view).collect(),
                    in_use: it.in_use,
                    terms: numbered(&it.terms),
                })
            })
            .collect(),
        terms: resolution
            .terms
            .iter()
            .enumerate()
            .map(|(at, it)| TermView {
                term: at + 1,
                asks: it.text.clone(),
                problems: problems(&it.problems),
                candidates: it
                    .verdicts
                    .iter()
                    .filter_map(|(id, verdict)| {
                        let (refusal, also) = match verdict {
                            Verdict::Chosen => (None, Vec::new()),
                            Verdict::Refused(refusal, also) => (
                                Some(refusal_view(refusal)),
                                also.iter().map(refusal_view).collect(),
                            ),
                        };
                        let chosen = refusal.is_none();
                        Some(CandidateView { image: image(id, None)?, chosen, refusal, also })
                    })
                    .collect(),
            })
            .collect(),
        types_asked_by_name: matches!(question.setting.types, TypesAsked::Named(_)),
        instance_types: resolution
            .types
            .iter()
            .map(|it| type_view(it, resolution))
            .chain(question.in_no_pool.iter().map(|it| TypeView {
                name: it.clone(),
                pool: None,
                image: None,
                image_name: None,
                held_back: None,
                nearest: None,
                in_no_pool: true,
            }))
            .collect(),
        warnings: resolution.warnings.iter().map(ToString::to_string).collect(),
    }
}

/// Parameters that the catalog lacks are told together: one command brings them all.
fn problems(all: &[Problem]) -> Vec<String> {
    let missing: Vec<&str> = all
        .iter()
        .filter_map(|it| match it {
            Problem::NotInCatalog { path } => Some(path.as_str()),
            Problem::KubernetesUnknown
            | Problem::UnsupportedAlias(_)
            | Problem::CouldNotAsk { .. }
            | Problem::NotThere { .. }
            | Problem::NeedsHistory { .. }
            | Problem::BadValue { .. }
            | Problem::ImageUnknown { .. }
            | Problem::ReleaseUnknown { .. }
            | Problem::MatchedNothing => None,
        })
        .collect();
    let mut told: Vec<String> = all
        .iter()
        .filter(|it| missing.len() < 2 || !matches!(it, Problem::NotInCatalog { .. }))
        .map(ToString::to_string)
        .collect();
    if missing.len() > 1 {
        told.push(format!(
            "the catalog lacks {} parameters; add the output of `aws ssm get-parameters --names {}`",
            missing.len(),
            missing.join(" ")
        ));
    }
    told
}

/// People count terms from one.
fn numbered(terms: &[usize]) -> Vec<usize> {
    terms.iter().map(|it| it + 1).collect()
}

fn image_view(kept: &Kept<'_>, version: Option<&String>) -> ImageView {
    let image = &kept.sighting.image;
    let release = kept.release.as_ref();
    ImageView {
        id: image.id.to_string(),
        name: image.name.clone(),
        flavour: release.map(|(flavour, _)| flavour.to_string()),
        release: version.or(release.map(|(_, version)| version)).cloned(),
        architecture: image.architecture.as_str().to_owned(),
        owner: image.owner.as_ref().map(ToString::to_string),
        created: kept.dated.or(image.created.at()),
        first_seen: kept.sighting.first_seen,
    }
}

fn next_view(next: &Next) -> NextView {
    NextView { id: next.id.to_string(), name: next.name.clone(), eligible_at: next.at }
}

fn refusal_view(refusal: &Refusal) -> RefusalView {
    RefusalView {
        reason: refusal.reason(),
        message: refusal.to_string(),
        until: refusal.ends_at(),
        held: refusal.held(),
    }
}

fn type_view(answer: &TypeAnswer, resolution: &Resolution) -> TypeView {
    let mut view = TypeView {
        name: answer.instance_type.to_string(),
        pool: answer.pool.clone(),
        image: None,
        image_name: None,
        held_back: None,
        nearest: None,
        in_no_pool: false,
    };
    match &answer.boots {
        Boots::Image(at) => {
            let chosen = resolution.chosen.get(*at);
            view.image = chosen.map(|it| it.id.to_string());
            view.image_name = chosen.map(|it| it.name.clone());
        }
        Boots::HeldBack(at) => {
            view.held_back = resolution.held.get(*at).map(|it| HeldBackView {
                image: it.id.to_string(),
                refusal: refusal_view(&it.refusal),
            });
        }
        Boots::Nothing { nearest, .. } => {
            view.nearest = nearest.as_ref().map(|(id, misses)| NearestView {
                image: id.to_string(),
                misses: misses.iter().map(miss_view).collect(),
            });
        }
    }
    view
}

fn miss_view(miss: &Miss) -> MissView {
    MissView { what: miss.what.clone(), needs: miss.needs.clone(), has: miss.has.clone() }
}

/// `gpu-count any, gpu-manufacturer nvidia`: what tells the sets of a class apart.
fn for_what(requirements: &Requirements, vocabulary: &Vocabulary) -> String {
    let mut words: Vec<String> = requirements
        .iter()
        .map(|(key, requirement)| (vocabulary.key_text(key), requirement))
        .filter(|(key, _)| &**key != label::ARCH)
        .map(|(key, requirement)| {
            let short = short_key(&key);
            format!("{short} {}", shown(requirement, vocabulary))
        })
        .collect();
    words.sort();
    if words.is_empty() { "anything".to_owned() } else { words.join(", ") }
}

pub(super) fn short_key(key: &str) -> &str {
    key.strip_prefix("karpenter.k8s.aws/instance-").unwrap_or(key)
}
