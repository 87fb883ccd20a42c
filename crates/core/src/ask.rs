//! What did the user ask for?
//!
//! An ask is a class's `amiFamily`, `amiSelectorTerms` and minimum age, checked. Fields of one term
//! all hold, of the terms any may, and no field is ever silently ignored: what a term says narrows it, or the
//! class is refused at the door.

mod age;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use nodemolt_fit::{Family, Written};

pub use age::{Age, ParseAgeError};

use crate::image::{AccountId, Image, ImageId, NamePattern, shorten};
use crate::lookup::Release;

/// What a class demands of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The class, as people call it.
    pub class: String,
    /// For `ImagePolicy.classSelector`.
    pub labels: BTreeMap<String, String>,
    /// Decides what else a node offers (labels of the operating system) and how it boots.
    pub family: Family,
    pub terms: Vec<Term>,
    pub minimum_age: Age,
}

/// One of the terms, of which any may lead to an image. What is written in it must all hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Term {
    pub alias: Option<Alias>,
    pub id: Option<ImageId>,
    pub parameter: Option<ParameterName>,
    pub name: Option<NamePattern>,
    /// `None` as value means any value.
    pub tags: BTreeMap<String, Option<NamePattern>>,
    pub owner: Option<Owner>,
    pub requirements: Vec<Written>,
}

impl Term {
    pub fn of_alias(alias: Alias) -> Self {
        Self { alias: Some(alias), ..Self::default() }
    }

    /// Whether the image has all the tags that the term names.
    pub fn tags_match(&self, image: &Image) -> bool {
        self.tags.iter().all(|(key, wanted)| {
            image
                .tags
                .get(key)
                .is_some_and(|value| wanted.as_ref().is_none_or(|pattern| pattern.matches(value)))
        })
    }
}

impl fmt::Display for Term {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if let Some(alias) = &self.alias {
            words.push(format!("alias={alias}"));
        }
        if let Some(id) = &self.id {
            words.push(format!("id={id}"));
        }
        if let Some(parameter) = &self.parameter {
            words.push(format!("ssmParameter={parameter}"));
        }
        if let Some(name) = &self.name {
            words.push(format!("name={name}"));
        }
        for (key, value) in &self.tags {
            words.push(match value {
                None => format!("tag:{key}=*"),
                Some(value) => format!("tag:{key}={value}"),
            });
        }
        if let Some(owner) = &self.owner {
            words.push(format!("owner={owner}"));
        }
        out.pad(&words.join(" "))
    }
}

/// `family@version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    pub family: Family,
    pub version: AliasVersion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AliasVersion {
    /// `latest` is 0 releases back, `latest~1` is the one before.
    Latest {
        back: u32,
    },
    Pinned(String),
}

impl Alias {
    pub fn latest(family: Family) -> Self {
        Self { family, version: AliasVersion::Latest { back: 0 } }
    }
}

impl fmt::Display for Alias {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = self.family.alias_name().unwrap_or("custom");
        match &self.version {
            AliasVersion::Latest { back: 0 } => write!(out, "{family}@latest"),
            AliasVersion::Latest { back } => write!(out, "{family}@latest~{back}"),
            AliasVersion::Pinned(version) => write!(out, "{family}@{version}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseAliasError {
    #[error(
        "`{0}` is improperly formatted, must match the format 'family@version', for example `al2023@latest`"
    )]
    Form(String),
    #[error(
        "family `{0}` is not supported, must be one of the following: 'al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025'"
    )]
    Family(String),
    #[error("windows families may only specify version 'latest' (or `latest~N`), not `{0}`")]
    WindowsVersion(String),
    #[error("`{0}` does not say how many releases back; write it like `latest~1`")]
    Back(String),
    #[error("version `{0}` has the form of no release; write it like `{1}`")]
    Version(String, &'static str),
}

impl FromStr for Alias {
    type Err = ParseAliasError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (family, version) = text
            .split_once('@')
            .filter(|(family, version)| !family.is_empty() && !version.is_empty())
            .ok_or_else(|| ParseAliasError::Form(shorten(text)))?;
        let family = Family::from_alias_name(family)
            .map_err(|_| ParseAliasError::Family(shorten(family)))?;
        let version = match version.split_once('~') {
            None if version == "latest" => AliasVersion::Latest { back: 0 },
            Some(("latest", back)) => {
                let digits = !back.is_empty() && back.bytes().all(|it| it.is_ascii_digit());
                let back = back.parse().ok().filter(|_| digits);
                AliasVersion::Latest {
                    back: back.ok_or_else(|| ParseAliasError::Back(shorten(version)))?,
                }
            }
            None | Some(_) => pinned(family, version)?,
        };
        Ok(Self { family, version })
    }
}

/// A pinned version in the spelling that names and paths use.
fn pinned(family: Family, version: &str) -> Result<AliasVersion, ParseAliasError> {
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '.' || it == '-' || it == '_';
    match family {
        Family::Windows2019 | Family::Windows2022 | Family::Windows2025 => {
            Err(ParseAliasError::WindowsVersion(shorten(version)))
        }
        Family::Bottlerocket => {
            // `v1.20.4` and `1.20.4` are the same release.
            let bare = version.trim_start_matches('v');
            if bare.is_empty() || !bare.chars().all(plain) {
                return Err(ParseAliasError::Version(shorten(version), "v1.52.0"));
            }
            Ok(AliasVersion::Pinned(bare.to_owned()))
        }
        Family::Al2 | Family::Al2023 | Family::Custom => {
            if !version.chars().all(plain) {
                return Err(ParseAliasError::Version(shorten(version), "v20261103"));
            }
            Ok(AliasVersion::Pinned(version.to_owned()))
        }
    }
}

/// Whose images, in the words that EC2 takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The account that asks.
    Own,
    /// EC2's name for a group of accounts: `amazon`, `aws-marketplace`, `aws-backup-vault`.
    Group(String),
    Account(AccountId),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an owner; write 12 digits (quoted), `self`, `amazon`, `aws-marketplace` or `aws-backup-vault`"
)]
pub struct ParseOwnerError(pub String);

impl FromStr for Owner {
    type Err = ParseOwnerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "self" => Ok(Self::Own),
            "amazon" | "aws-marketplace" | "aws-backup-vault" => Ok(Self::Group(text.to_owned())),
            account => {
                account.parse().map(Self::Account).map_err(|_| ParseOwnerError(shorten(text)))
            }
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => out.pad("self"),
            Self::Group(group) => out.pad(group),
            Self::Account(account) => out.pad(account.as_str()),
        }
    }
}

impl Owner {
    /// Whether the image is this owner's, by what the answer says and not by what was asked.
    pub fn owns(&self, image: &Image, account: Option<&AccountId>) -> bool {
        self.is(image.owner.as_ref(), image.owner_alias.as_deref(), account)
    }

    /// The same, of an image's owner and of EC2's name for the owner's group.
    pub(crate) fn is(
        &self,
        owner: Option<&AccountId>,
        group: Option<&str>,
        account: Option<&AccountId>,
    ) -> bool {
        match self {
            Self::Own => account.is_some() && owner == account,
            Self::Group(wanted) => group == Some(wanted),
            Self::Account(wanted) => owner == Some(wanted),
        }
    }
}

/// A parameter's name or ARN, with the version or label behind a colon taken apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParameterName {
    text: String,
    /// The name inside, where the text is an ARN.
    name: String,
    account: Option<String>,
    pub pick: Pick,
}

/// Which value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pick {
    Newest,
    Version(u64),
    Label(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of an SSM parameter; write it like `/my-org/amis/golden`")]
pub struct ParseParameterNameError(pub String);

impl FromStr for ParameterName {
    type Err = ParseParameterNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseParameterNameError(shorten(text));
        let (account, rest) = match text.strip_prefix("arn:") {
            None => (None, text),
            Some(arn) => {
                // arn:partition:ssm:region:account:parameter/name
                let parts: Vec<&str> = arn.splitn(5, ':').collect();
                let [_, "ssm", _, account, resource] = parts.as_slice() else {
                    return Err(error());
                };
                let name = resource.strip_prefix("parameter/").ok_or_else(error)?;
                let account = (!account.is_empty()).then(|| (*account).to_owned());
                (account, &resource[resource.len() - name.len() - 1..])
            }
        };
        // An ARN cannot tell `/golden` from `golden`; names with a folder begin with a slash.
        let rest = match rest.strip_prefix('/') {
            Some(bare) if text.starts_with("arn:") && !bare.contains('/') => bare,
            _ => rest,
        };
        let (name, pick) = match rest.split_once(':') {
            None => (rest, Pick::Newest),
            Some((name, pick)) => match pick.parse() {
                Ok(version) => (name, Pick::Version(version)),
                Err(_) if !pick.is_empty() => (name, Pick::Label(pick.to_owned())),
                Err(_) => return Err(error()),
            },
        };
        let plain = |it: char| it.is_ascii_alphanumeric() || "/._-".contains(it);
        if name.is_empty() || name.len() > 2048 || !name.chars().all(plain) {
            return Err(error());
        }
        Ok(Self { text: text.to_owned(), name: name.to_owned(), account, pick })
    }
}

impl ParameterName {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The account in the ARN: a parameter that somebody shared.
    pub fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }
}

impl fmt::Display for ParameterName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.text)
    }
}

/// How an alias says which release it means.
impl From<&AliasVersion> for Release {
    fn from(version: &AliasVersion) -> Self {
        match version {
            AliasVersion::Latest { .. } => Self::Recommended,
            AliasVersion::Pinned(version) => Self::Version(version.clone()),
        }
    }
}
