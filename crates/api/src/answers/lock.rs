//! What does a lock file remember?
//!
//! Images and parameters together, with what was asked, what became of it and when; and what no answer
//! of AWS tells: when an image was first seen, and that it was withdrawn. Sorted and stable, so that it
//! can be committed and its changes read.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use nodemolt_core::catalog::{
    Answered, Appeared, Because, Catalog, Outcome, Parameter, ParameterValue, Presence, Query,
    Sighting, Withdrawn,
};
use nodemolt_core::image::ImageId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ReadAnswerError;
use super::images::{WireImage, date, undate};

pub const KIND: &str = "CatalogLock";
const API_VERSION: &str = "nodemolt.dev/cli/v1";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireLock {
    api_version: String,
    kind: String,
    #[serde(default)]
    answers: Vec<WireAnswered>,
    #[serde(default)]
    images: Vec<WireSighting>,
    #[serde(default)]
    parameters: Vec<WireLocked>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireAnswered {
    asked: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_complete: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_complete: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireSighting {
    image: WireImage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_seen: Option<Timestamp>,
    /// Present where the image came before our eyes, after the first complete answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    appeared_later: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_seen: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    seen_by: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_listed_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    withdrawn: Option<WireWithdrawn>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireWithdrawn {
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moved_back_to: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireLocked {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone_since: Option<Timestamp>,
    values: Vec<WireValue>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireValue {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<Value>,
    value: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
}

pub(super) fn read(bytes: &[u8]) -> Result<Catalog, ReadAnswerError> {
    let lock: WireLock = super::parse(bytes)?;
    if lock.api_version != API_VERSION {
        return Err(ReadAnswerError::Member {
            field: "apiVersion".to_owned(),
            message: format!(
                "`{}` is not known; this version reads `{API_VERSION}`",
                lock.api_version
            ),
        });
    }
    let mut catalog = Catalog::default();
    for (at, wire) in lock.answers.into_iter().enumerate() {
        let (query, answered) = read_answered(&wire, at)?;
        let twice = || stands_twice(format!("answers[{at}].asked"), &wire.asked);
        if catalog.answers.insert(query, answered).is_some() {
            return Err(twice());
        }
    }
    for (at, wire) in lock.images.into_iter().enumerate() {
        let sighting = read_sighting(wire, at)?;
        let id = sighting.image.id.clone();
        if catalog.images.insert(id.clone(), sighting).is_some() {
            return Err(stands_twice(format!("images[{at}].image.ImageId"), id.as_str()));
        }
    }
    for (at, wire) in lock.parameters.into_iter().enumerate() {
        let parameter = read_locked(wire, at)?;
        let name = parameter.name.clone();
        if catalog.parameters.insert(name.clone(), parameter).is_some() {
            return Err(stands_twice(format!("parameters[{at}].name"), &name));
        }
    }
    Ok(catalog)
}

/// We write everything once; whoever merged two lock files by hand must say which half counts.
fn stands_twice(field: String, what: &str) -> ReadAnswerError {
    ReadAnswerError::Member {
        field,
        message: format!(
            "`{what}` stands twice; write the lock file anew, with both as --catalog files"
        ),
    }
}

fn read_answered(wire: &WireAnswered, at: usize) -> Result<(Query, Answered), ReadAnswerError> {
    let error = |member: &str, message: String| ReadAnswerError::Member {
        field: format!("answers[{at}].{member}"),
        message,
    };
    let query: Query = wire.asked.parse().map_err(|it| error("asked", format!("{it}")))?;
    let last = match (&wire.outcome, wire.at) {
        (None, None) => None,
        (None, Some(_)) => return Err(error("outcome", "it is missing beside `at`".to_owned())),
        (Some(_), None) => return Err(error("at", "it is missing beside `outcome`".to_owned())),
        (Some(text), Some(when)) => {
            let outcome: Outcome = text.parse().map_err(|it| error("outcome", format!("{it}")))?;
            Some((outcome, when))
        }
    };
    let (first_complete, last_complete) = (wire.first_complete, wire.last_complete);
    Ok((query, Answered { first_complete, last_complete, last }))
}

fn read_sighting(wire: WireSighting, at: usize) -> Result<Sighting, ReadAnswerError> {
    let withdrawn = match wire.withdrawn {
        None => None,
        Some(mark) => {
            let because = read_because(&mark).map_err(|message| ReadAnswerError::Member {
                field: format!("images[{at}].withdrawn"),
                message,
            })?;
            Some(Withdrawn { at: mark.at, because })
        }
    };
    let presence = match (wire.gone_since, wire.not_listed_since) {
        (Some(_), Some(_)) => {
            return Err(ReadAnswerError::Member {
                field: format!("images[{at}].goneSince"),
                message: "it stands beside `notListedSince`; an image is either gone or not listed"
                    .to_owned(),
            });
        }
        (Some(since), None) => Presence::Gone { since },
        (None, Some(since)) => Presence::NotListed { since },
        (None, None) => Presence::Listed,
    };
    Ok(Sighting {
        image: wire.image.read(&format!("images[{at}].image"))?,
        first_seen: wire.first_seen,
        seen_by: wire.seen_by,
        appeared: if wire.appeared_later { Appeared::Later } else { Appeared::WithFirstAnswer },
        last_seen: wire.last_seen,
        presence,
        withdrawn,
    })
}

fn read_because(mark: &WireWithdrawn) -> Result<Because, String> {
    match (mark.reason.as_str(), &mark.parameter, &mark.moved_back_to) {
        ("PointerMovedBack", Some(parameter), Some(to)) => {
            let to: ImageId = to.parse().map_err(|it| format!("{it}"))?;
            Ok(Because::PointerMovedBack { parameter: parameter.clone(), to })
        }
        ("DeprecatedEarly", _, _) => Ok(Because::DeprecatedEarly),
        ("DisabledEarly", _, _) => Ok(Because::DisabledEarly),
        ("UnsharedEarly", _, _) => Ok(Because::UnsharedEarly),
        ("Recalled", _, _) => Ok(Because::Recalled),
        (other, _, _) => Err(format!(
            "`{other}` is no reason; known are PointerMovedBack (with parameter and movedBackTo), DeprecatedEarly, DisabledEarly and UnsharedEarly"
        )),
    }
}

fn read_locked(wire: WireLocked, at: usize) -> Result<Parameter, ReadAnswerError> {
    if wire.name.is_empty() {
        return Err(ReadAnswerError::Member {
            field: format!("parameters[{at}].name"),
            message: "it is empty; a parameter has a name".to_owned(),
        });
    }
    let mut values = wire.values.into_iter().map(|it| ParameterValue {
        version: it.version,
        modified: date(it.modified),
        text: it.value,
        labels: it.labels,
    });
    let Some(first) = values.next() else {
        return Err(ReadAnswerError::Member {
            field: format!("parameters[{at}].values"),
            message: "it is empty; a parameter has at least one value".to_owned(),
        });
    };
    let mut parameter = Parameter::new(wire.name, first);
    for value in values {
        let name = parameter.name.clone();
        parameter.learn(Parameter::new(name, value));
    }
    parameter.arn = wire.arn;
    parameter.gone = wire.gone_since;
    Ok(parameter)
}

/// The lock file of a catalog: sorted, and the same bytes for the same catalog.
#[expect(clippy::missing_panics_doc, reason = "it cannot: there is no map with odd keys in it")]
pub fn write(catalog: &Catalog) -> String {
    let answers = catalog.answers.iter().map(|(query, answered)| WireAnswered {
        asked: query.to_string(),
        outcome: answered.last.as_ref().map(|(outcome, _)| outcome.to_string()),
        at: answered.last.as_ref().map(|(_, at)| *at),
        first_complete: answered.first_complete,
        last_complete: answered.last_complete,
    });
    let images = catalog.images.values().map(write_sighting);
    let parameters = catalog.parameters.values().map(|it| WireLocked {
        name: it.name.clone(),
        arn: it.arn.clone(),
        gone_since: it.gone,
        values: it
            .values()
            .map(|it| WireValue {
                version: it.version,
                modified: undate(&it.modified),
                value: it.text.clone(),
                labels: it.labels.clone(),
            })
            .collect(),
    });
    // Sorted by what a reader sees, not by how a query is stored.
    let answers: BTreeMap<String, WireAnswered> =
        answers.map(|it| (it.asked.clone(), it)).collect();
    let lock = WireLock {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        answers: answers.into_values().collect(),
        images: images.collect(),
        parameters: parameters.collect(),
    };
    let mut text = serde_json::to_string_pretty(&lock)
        .expect("strings, numbers and lists can always be written as JSON");
    text.push('\n');
    text
}

fn write_sighting(sighting: &Sighting) -> WireSighting {
    let (gone_since, not_listed_since) = match &sighting.presence {
        Presence::Listed => (None, None),
        Presence::NotListed { since } => (None, Some(*since)),
        Presence::Gone { since } => (Some(*since), None),
    };
    WireSighting {
        image: WireImage::write(&sighting.image),
        first_seen: sighting.first_seen,
        appeared_later: sighting.appeared == Appeared::Later,
        last_seen: sighting.last_seen,
        seen_by: sighting.seen_by.clone(),
        not_listed_since,
        gone_since,
        withdrawn: sighting.withdrawn.as_ref().map(|mark| {
            let (reason, parameter, to) = match &mark.because {
                Because::PointerMovedBack { parameter, to } => {
                    ("PointerMovedBack", Some(parameter.clone()), Some(to.to_string()))
                }
                Because::DeprecatedEarly => ("DeprecatedEarly", None, None),
                Because::DisabledEarly => ("DisabledEarly", None, None),
                Because::UnsharedEarly => ("UnsharedEarly", None, None),
                Because::Recalled => ("Recalled", None, None),
            };
            WireWithdrawn { reason: reason.to_owned(), at: mark.at, parameter, moved_back_to: to }
        }),
    }
}
