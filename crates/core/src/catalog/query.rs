//! What was asked, and what became of it?
//!
//! A query knows which images it would have listed. Only those can be missing from its answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::ask::Owner;
use crate::image::{AccountId, Image, ImageId, NamePattern, State, shorten};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Query {
    /// A file that holds an answer and not the question.
    Untold,
    Images(ImageQuery),
    Parameters(ParameterQuery),
}

/// `DescribeImages`, as far as we ask.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ImageQuery {
    pub region: Option<String>,
    pub owners: BTreeSet<Owner>,
    pub names: BTreeSet<NamePattern>,
    pub ids: BTreeSet<ImageId>,
    /// `None` as value means any value.
    pub tags: BTreeMap<String, Option<NamePattern>>,
    pub public_parameters: BTreeSet<String>,
    pub include_deprecated: bool,
    pub include_disabled: bool,
}

/// `GetParameters` or `GetParametersByPath`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ParameterQuery {
    pub region: Option<String>,
    pub names: BTreeSet<String>,
    pub paths: BTreeSet<String>,
}

/// Whether the answer can be believed in what it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Complete,
    /// There were more pages.
    Incomplete,
    Throttled,
    Denied,
    Failed,
}

impl Outcome {
    pub const ALL: [Self; 5] =
        [Self::Complete, Self::Incomplete, Self::Throttled, Self::Denied, Self::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Throttled => "throttled",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an outcome; write one of complete, incomplete, throttled, denied, failed")]
pub struct ParseOutcomeError(pub String);

impl FromStr for Outcome {
    type Err = ParseOutcomeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|it| it.as_str() == text)
            .ok_or_else(|| ParseOutcomeError(shorten(text)))
    }
}

impl Query {
    /// Where it was asked, if it says so.
    pub fn region(&self) -> Option<&str> {
        match self {
            Self::Untold => None,
            Self::Images(query) => query.region.as_deref(),
            Self::Parameters(query) => query.region.as_deref(),
        }
    }
}

impl ImageQuery {
    /// Whether the question is about this image at all.
    pub fn asks_for(&self, image: &Image, account: Option<&AccountId>) -> bool {
        (self.owners.is_empty() || self.owners.iter().any(|it| it.owns(image, account)))
            && (self.names.is_empty() || self.names.iter().any(|it| it.matches(&image.name)))
            && (self.ids.is_empty() || self.ids.contains(&image.id))
            && self.tags.iter().all(|(key, wanted)| {
                image
                    .tags
                    .get(key)
                    .is_some_and(|it| wanted.as_ref().is_none_or(|wanted| wanted.matches(it)))
            })
            && (self.public_parameters.is_empty()
                || !self.public_parameters.is_disjoint(&image.public_parameters))
    }

    /// Whether a complete answer would contain it, were it still as we know it.
    pub fn would_list(&self, image: &Image, account: Option<&AccountId>, at: Timestamp) -> bool {
        let own = account.is_some() && image.owner.as_ref() == account;
        let hidden = image.deprecated_by(at) && !self.include_deprecated && !own
            || image.state == State::Disabled && !self.include_disabled;
        self.asks_for(image, account) && !hidden
    }
}

impl ParameterQuery {
    pub fn would_list(&self, name: &str) -> bool {
        self.names.contains(name)
            || self.paths.iter().any(|path| {
                name.strip_prefix(path.trim_end_matches('/'))
                    .is_some_and(|rest| rest.starts_with('/'))
            })
    }
}

/// `owner=amazon,name=amazon-eks-node-*,include-deprecated`, in a fixed order.
impl fmt::Display for Query {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        let region =
            |it: &Option<String>| it.iter().map(|it| format!("region={}", escape(it))).collect();
        match self {
            Self::Untold => return out.pad("untold"),
            Self::Images(query) => {
                let found: Vec<String> = region(&query.region);
                words.extend(found);
                words.extend(query.owners.iter().map(|it| format!("owner={it}")));
                words.extend(query.names.iter().map(|it| format!("name={}", escape(it.as_str()))));
                words.extend(query.ids.iter().map(|it| format!("id={it}")));
                words.extend(query.tags.iter().map(|(key, value)| {
                    let value = value.as_ref().map_or("*", NamePattern::as_str);
                    format!("tag:{}={}", escape_key(key), escape(value))
                }));
                words.extend(
                    query
                        .public_parameters
                        .iter()
                        .map(|it| format!("public-ssm-parameter-name={}", escape(it))),
                );
                words.extend(query.include_deprecated.then(|| "include-deprecated".to_owned()));
                words.extend(query.include_disabled.then(|| "include-disabled".to_owned()));
            }
            Self::Parameters(query) => {
                let found: Vec<String> = region(&query.region);
                words.extend(found);
                words.extend(query.names.iter().map(|it| format!("parameter={}", escape(it))));
                words.extend(query.paths.iter().map(|it| format!("path={}", escape(it))));
            }
        }
        out.pad(&words.join(","))
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace(',', "\\,")
}

/// The first `=` ends a key.
fn escape_key(text: &str) -> String {
    escape(text).replace('=', "\\=")
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseQueryError {
    #[error(
        "`{0}` is no part of a query; write owner=, name=, id=, tag:KEY=, public-ssm-parameter-name=, region=, include-deprecated, include-disabled, or parameter= and path="
    )]
    Word(String),
    #[error("`{0}` has no value")]
    NoValue(String),
    #[error("{0}")]
    Value(String),
    #[error("a query is about images or about parameters, not both: `{0}`")]
    Mixed(String),
    #[error("the query says nothing; write for example `owner=amazon,name=amazon-eks-node-*`")]
    Empty,
}

impl FromStr for Query {
    type Err = ParseQueryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "untold" {
            return Ok(Self::Untold);
        }
        let mut images = ImageQuery::default();
        let mut parameters = ParameterQuery::default();
        let mut region = None;
        for (word, key, value) in split_words(text) {
            let (key, value) = (key.as_str(), value.as_deref());
            let needed = || {
                value
                    .filter(|it| !it.is_empty())
                    .ok_or_else(|| ParseQueryError::NoValue(shorten(key)))
            };
            match key {
                "region" => region = Some(needed()?.to_owned()),
                "owner" => {
                    let owner = needed()?.parse::<Owner>();
                    images
                        .owners
                        .insert(owner.map_err(|it| ParseQueryError::Value(it.to_string()))?);
                }
                "name" => {
                    images.names.insert(NamePattern::new(needed()?));
                }
                "id" => {
                    let id = needed()?.parse::<ImageId>();
                    images.ids.insert(id.map_err(|it| ParseQueryError::Value(it.to_string()))?);
                }
                "public-ssm-parameter-name" => {
                    images.public_parameters.insert(needed()?.to_owned());
                }
                "include-deprecated" if matches!(value, None | Some("true")) => {
                    images.include_deprecated = true;
                }
                "include-disabled" if matches!(value, None | Some("true")) => {
                    images.include_disabled = true;
                }
                "parameter" => {
                    parameters.names.insert(needed()?.to_owned());
                }
                "path" => {
                    parameters.paths.insert(needed()?.to_owned());
                }
                tag if tag.starts_with("tag:") => {
                    let Some(value) = value else {
                        return Err(ParseQueryError::NoValue(shorten(key)));
                    };
                    let value = (value != "*").then(|| NamePattern::new(value));
                    images.tags.insert(tag["tag:".len()..].to_owned(), value);
                }
                _ => return Err(ParseQueryError::Word(shorten(&word))),
            }
        }
        let about_images = images != ImageQuery::default();
        let about_parameters = parameters != ParameterQuery::default();
        images.region.clone_from(&region);
        parameters.region = region;
        match (about_images, about_parameters) {
            (true, true) => Err(ParseQueryError::Mixed(shorten(text))),
            (true, false) => Ok(Self::Images(images)),
            (false, true) => Ok(Self::Parameters(parameters)),
            (false, false) => Err(ParseQueryError::Empty),
        }
    }
}

/// Words between commas, each whole and as its key and value. A backslash takes away the meaning of a
/// comma, of the `=` behind a key, and of another backslash; before anything else it is itself.
fn split_words(text: &str) -> Vec<(String, String, Option<String>)> {
    let mut words = Vec::new();
    let mut whole = String::new();
    let mut key = String::new();
    let mut value: Option<String> = None;
    let mut characters = text.chars().chain([',']).peekable();
    while let Some(character) = characters.next() {
        let mut read = character;
        match character {
            '\\' => {
                // The comma that we put at the end is nobody's.
                let last = characters.clone().nth(1).is_none();
                if let Some(next) = characters.next_if(|it| matches!(it, ',' | '=' | '\\') && !last)
                {
                    whole.push(character);
                    read = next;
                }
            }
            ',' => {
                let word = (std::mem::take(&mut whole), std::mem::take(&mut key), value.take());
                if !word.0.is_empty() {
                    words.push(word);
                }
                continue;
            }
            '=' if value.is_none() => {
                whole.push('=');
                value = Some(String::new());
                continue;
            }
            _ => {}
        }
        whole.push(read);
        value.as_mut().unwrap_or(&mut key).push(read);
    }
    words
}
