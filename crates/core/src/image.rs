//! What is an image?
//!
//! An image is what EC2 says of one AMI, as far as it decides anything. A date that EC2 left out or that
//! cannot be read is a value of its own: nothing here falls back to "very old" or to "now".

mod pattern;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

pub use pattern::NamePattern;

/// `ami-` and then 8 or 17 lower-case hexadecimal digits. Holding one means it was checked.
///
/// Kept in place: every answer holds thousands of them. The shorter form ends in zeros, which come
/// before every digit, so the order is that of the texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId([u8; ImageId::LENGTH_MAX]);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an image id; write `ami-` and 8 or 17 of the digits 0-9 and a-f")]
pub struct ParseImageIdError(pub String);

impl ImageId {
    const LENGTH_MAX: usize = "ami-".len() + 17;

    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|it| *it == 0).unwrap_or(Self::LENGTH_MAX);
        // It was checked when it was read: ASCII, always.
        str::from_utf8(&self.0[..length]).unwrap_or_default()
    }
}

impl fmt::Debug for ImageId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("ImageId").field(&self.as_str()).finish()
    }
}

impl FromStr for ImageId {
    type Err = ParseImageIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("ami-").unwrap_or("");
        let well_formed = matches!(digits.len(), 8 | 17)
            && digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        if !well_formed {
            return Err(ParseImageIdError(shorten(text)));
        }
        let mut bytes = [0; Self::LENGTH_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(bytes))
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

/// Twelve digits, as they are written: the leading zeros count. Kept in place, like an image's id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId([u8; 12]);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an AWS account; write its 12 digits, leading zeros included")]
pub struct ParseAccountIdError(pub String);

impl AccountId {
    pub fn as_str(&self) -> &str {
        // It was checked when it was read: digits, always.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for AccountId {
    type Err = ParseAccountIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.as_bytes().try_into() {
            Ok(digits) if text.bytes().all(|it| it.is_ascii_digit()) => Ok(Self(digits)),
            _ => Err(ParseAccountIdError(shorten(text))),
        }
    }
}

impl fmt::Debug for AccountId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("AccountId").field(&self.as_str()).finish()
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

/// Error messages quote what was typed, but not a megabyte of it.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A moment as the cloud told it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Date {
    At(Timestamp),
    #[default]
    Missing,
    Unreadable(String),
}

impl Date {
    pub fn read(text: Option<&str>) -> Self {
        match text {
            None => Self::Missing,
            Some(text) => text.parse().map_or_else(|_| Self::Unreadable(shorten(text)), Self::At),
        }
    }

    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(*at),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }
}

/// What EC2 says of an image's life.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Available,
    Disabled,
    Deregistered,
    /// `pending`, `failed`, `invalid`, `transient`, `error`, or a word we do not know: none of them boots.
    Other(String),
}

impl State {
    pub fn read(text: &str) -> Self {
        match text {
            "available" => Self::Available,
            "disabled" => Self::Disabled,
            "deregistered" => Self::Deregistered,
            other => Self::Other(shorten(other)),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Available => "available",
            Self::Disabled => "disabled",
            Self::Deregistered => "deregistered",
            Self::Other(text) => text,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Architecture {
    X86_64,
    Arm64,
    /// i386, the Mac ones, or a word we do not know: no node of ours boots them.
    Other(String),
}

impl Architecture {
    pub fn read(text: &str) -> Self {
        match text {
            "x86_64" => Self::X86_64,
            "arm64" => Self::Arm64,
            other => Self::Other(shorten(other)),
        }
    }

    /// EC2's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "arm64",
            Self::Other(text) => text,
        }
    }

    /// Kubernetes' word, for what Kubernetes runs on.
    pub fn kubernetes(&self) -> Option<&'static str> {
        match self {
            Self::X86_64 => Some("amd64"),
            Self::Arm64 => Some("arm64"),
            Self::Other(_) => None,
        }
    }
}

/// What the image needs of the firmware. EC2 leaves it out where the architecture's default is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BootMode {
    LegacyBios,
    Uefi,
    UefiPreferred,
    Other(String),
}

impl BootMode {
    pub fn read(text: &str) -> Self {
        match text {
            "legacy-bios" => Self::LegacyBios,
            "uefi" => Self::Uefi,
            "uefi-preferred" => Self::UefiPreferred,
            other => Self::Other(shorten(other)),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::LegacyBios => "legacy-bios",
            Self::Uefi => "uefi",
            Self::UefiPreferred => "uefi-preferred",
            Self::Other(text) => text,
        }
    }
}

/// One AMI: what EC2 says of it, as far as it decides anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub id: ImageId,
    pub name: String,
    pub description: Option<String>,
    /// Unknown where the answer left it out; an unknown owner satisfies no rule about owners.
    pub owner: Option<AccountId>,
    /// `amazon`, `aws-marketplace`, `aws-backup-vault`: EC2's word for whole groups of accounts.
    pub owner_alias: Option<String>,
    pub state: State,
    pub created: Date,
    /// When it counts as deprecated. Missing means never.
    pub deprecated: Date,
    pub architecture: Architecture,
    pub boot_mode: Option<BootMode>,
    /// `v2.0` where the image needs a TPM.
    pub tpm: Option<String>,
    pub virtualization: Option<String>,
    pub root_device: Option<String>,
    pub ena: Option<bool>,
    pub platform: Option<String>,
    pub public: Option<bool>,
    pub tags: BTreeMap<String, String>,
    pub product_codes: BTreeSet<String>,
    /// The account's Allowed AMIs setting; false means that EC2 refuses to launch it, or would.
    pub allowed: Option<bool>,
    pub source: Option<ImageId>,
    pub source_region: Option<String>,
    /// Public SSM parameters that name it or have named it, as EC2 reports them.
    pub public_parameters: BTreeSet<String>,
    /// Instance types that its owner allows or excludes, with wildcards.
    pub supported_types: Vec<NamePattern>,
    pub unsupported_types: Vec<NamePattern>,
}

impl Image {
    /// An image of which nothing is known but what it is called.
    pub fn new(id: ImageId, name: impl Into<String>) -> Self {
        Self {
            id,
            name: name.into(),
            description: None,
            owner: None,
            owner_alias: None,
            state: State::Available,
            created: Date::Missing,
            deprecated: Date::Missing,
            architecture: Architecture::X86_64,
            boot_mode: None,
            tpm: None,
            virtualization: None,
            root_device: None,
            ena: None,
            platform: None,
            public: None,
            tags: BTreeMap::new(),
            product_codes: BTreeSet::new(),
            allowed: None,
            source: None,
            source_region: None,
            public_parameters: BTreeSet::new(),
            supported_types: Vec::new(),
            unsupported_types: Vec::new(),
        }
    }

    /// Deprecated by now? A date that cannot be read might have passed, so it counts as passed.
    pub fn deprecated_by(&self, now: Timestamp) -> bool {
        match &self.deprecated {
            Date::At(at) => *at <= now,
            Date::Missing => false,
            Date::Unreadable(_) => true,
        }
    }
}
