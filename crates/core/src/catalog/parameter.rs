//! What does an SSM parameter say, and what did it say before?
//!
//! A value is a plain image id, or JSON with `id` and `requirements`. It is read strictly: whatever is
//! not understood makes the whole value bad, and the last good one stands.

use jiff::Timestamp;
use nodemolt_fit::{Operator, Written, label};
use serde::Deserialize;

use crate::ask::Pick;
use crate::image::{Date, ImageId, shorten};

/// SSM's own limit for advanced parameters.
pub const VALUE_BYTES_MAX: usize = 8 * 1024;

/// More than anybody needs, little enough to look at.
const REQUIREMENTS_MAX: usize = 30;
const VALUES_MAX: usize = 50;

/// A parameter with all of its values that we have seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub arn: Option<String>,
    /// Oldest first.
    values: Vec<ParameterValue>,
    /// Values that were written after the moment we look at.
    later: Option<Timestamp>,
    /// Between the values before and after that moment there were others, which we have not seen.
    gap: bool,
    /// A complete answer lacked it.
    pub gone: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterValue {
    pub version: Option<u64>,
    pub modified: Date,
    pub text: String,
    pub labels: Vec<String>,
}

impl ParameterValue {
    /// The image it names, if it can be read at all.
    pub fn image(&self) -> Option<ImageId> {
        read_value(&self.text).ok().map(|it| it.id)
    }

    fn order(&self) -> (Option<u64>, Option<Timestamp>) {
        (self.version, self.modified.at())
    }

    pub(crate) fn follows(&self, other: &Self) -> bool {
        self.order() > other.order()
    }
}

impl Parameter {
    pub fn new(name: impl Into<String>, value: ParameterValue) -> Self {
        Self {
            name: name.into(),
            arn: None,
            values: vec![value],
            later: None,
            gap: false,
            gone: None,
        }
    }

    /// Oldest first.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &ParameterValue> + ExactSizeIterator {
        self.values.iter()
    }

    pub fn newest(&self) -> Option<&ParameterValue> {
        self.values.last()
    }

    pub fn pick(&self, pick: &Pick) -> Option<&ParameterValue> {
        match pick {
            Pick::Newest => self.newest(),
            Pick::Version(version) => self.values.iter().find(|it| it.version == Some(*version)),
            Pick::Label(label) => self.values.iter().rev().find(|it| it.labels.contains(label)),
        }
    }

    /// When the first value was written that lies behind the moment we look at.
    pub fn later(&self) -> Option<Timestamp> {
        self.later
    }

    /// Whether values are missing from what we know of it up to the moment we look at.
    pub fn gap(&self) -> bool {
        self.gap
    }

    /// Adds the values of another answer. True if they disagree about a version.
    pub fn learn(&mut self, other: Self) -> bool {
        let mut disagreed = false;
        for value in other.values {
            let known = self.values.iter_mut().find(|it| match (it.version, value.version) {
                (Some(a), Some(b)) => a == b,
                _ => it.modified == value.modified && it.text == value.text,
            });
            match known {
                None => self.values.push(value),
                Some(known) => {
                    disagreed |= known.text != value.text;
                    let labels = std::mem::take(&mut known.labels);
                    *known = value;
                    if known.labels.is_empty() {
                        known.labels = labels;
                    }
                }
            }
        }
        self.values.sort_by_cached_key(|it| (it.order(), it.text.clone()));
        self.arn = other.arn.or(self.arn.take());
        disagreed
    }

    /// Whether it was written after this moment, and so was there.
    pub(crate) fn written_after(&self, at: Timestamp) -> bool {
        self.values.iter().filter_map(|it| it.modified.at()).any(|it| it > at)
    }

    pub(crate) fn forget_after(&mut self, at: Timestamp) {
        let later: Vec<Timestamp> =
            self.values.iter().filter_map(|it| it.modified.at()).filter(|it| *it > at).collect();
        self.later = later.into_iter().min();
        let (before, after): (Vec<_>, Vec<_>) = std::mem::take(&mut self.values)
            .into_iter()
            .partition(|it| it.modified.at().is_none_or(|it| it <= at));
        let last = before.iter().filter_map(|it| it.version).max();
        let next = after.iter().filter_map(|it| it.version).min();
        self.gap =
            matches!((last, next), (Some(last), Some(next)) if next > last.saturating_add(1));
        self.values = before;
        self.gone = self.gone.filter(|it| *it <= at);
    }
}

/// What a good value says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    pub id: ImageId,
    pub requirements: Vec<Written>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadValueError {
    #[error("it has {0} bytes, and a parameter at most {VALUE_BYTES_MAX}")]
    TooLong(usize),
    #[error("`{0}` is neither an image id nor JSON with `id` and `requirements`")]
    NeitherIdNorJson(String),
    #[error("its JSON cannot be read: {0}")]
    Json(String),
    #[error("{0}")]
    Id(#[from] crate::image::ParseImageIdError),
    #[error("requirements[{0}]: {1}")]
    Requirement(usize, String),
    #[error("it has {0} requirements, at most {REQUIREMENTS_MAX} are read")]
    TooManyRequirements(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    id: String,
    #[serde(default)]
    requirements: Vec<WireRequirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireRequirement {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

/// Reads a parameter's value, strictly and as a whole.
pub fn read_value(text: &str) -> Result<Value, ReadValueError> {
    if text.len() > VALUE_BYTES_MAX {
        return Err(ReadValueError::TooLong(text.len()));
    }
    let trimmed = text.trim_matches([' ', '\t', '\r', '\n']);
    if trimmed.starts_with("ami-") {
        return Ok(Value { id: trimmed.parse()?, requirements: Vec::new() });
    }
    if !trimmed.starts_with('{') {
        return Err(ReadValueError::NeitherIdNorJson(shorten(trimmed)));
    }
    let wire: Wire =
        serde_json::from_str(trimmed).map_err(|it| ReadValueError::Json(it.to_string()))?;
    if wire.requirements.len() > REQUIREMENTS_MAX {
        return Err(ReadValueError::TooManyRequirements(wire.requirements.len()));
    }
    let mut requirements = Vec::new();
    for (at, wire) in wire.requirements.into_iter().enumerate() {
        let error = |text: String| ReadValueError::Requirement(at, text);
        let operator: Operator = wire.operator.parse().map_err(|it| error(format!("{it}")))?;
        if wire.values.len() > VALUES_MAX {
            return Err(error(format!(
                "it has {} values, at most {VALUES_MAX} are read",
                wire.values.len()
            )));
        }
        let written = Written { key: wire.key, operator, values: wire.values, min_values: None };
        check_image_requirement(&written).map_err(error)?;
        if requirements.contains(&written) {
            return Err(error(format!("`{}` stands there twice", written.key)));
        }
        requirements.push(written);
    }
    Ok(Value { id: wire.id.parse()?, requirements })
}

/// A requirement that an image may have: well formed, and about the node and not about where it was
/// bought.
pub fn check_image_requirement(written: &Written) -> Result<(), String> {
    written.check().map_err(|it| it.to_string())?;
    if label::by_offering(&written.key) {
        return Err(format!(
            "an image has no `{}`; zone, capacity type and the like belong into the NodePool's requirements",
            written.key
        ));
    }
    if written.min_values.is_some() {
        return Err(format!(
            "minValues of `{}` says nothing about an image; leave it out",
            written.key
        ));
    }
    Ok(())
}
