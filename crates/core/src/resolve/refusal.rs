//! Why may an image not boot?
//!
//! The gates stand in a fixed order, from what nobody here can change to what time will change by itself.
//! An image may be stopped by several; the first one is the answer, the others are told beside it.

use std::fmt;

use jiff::Timestamp;

use crate::ask::Age;
use crate::catalog::{Because, Standing, Withdrawn};
use crate::image::{AccountId, Date, ImageId};
use crate::lookup::Minor;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    WrongOwner {
        owner: Option<AccountId>,
        alias: Option<String>,
        rule: OwnerRule,
    },
    NotAllowedByAccount,
    NotBootable(Standing),
    UnsupportedArchitecture(String),
    /// A Windows image in a class of a Linux family.
    WrongPlatform {
        platform: String,
        family: &'static str,
    },
    NotAllowedByPolicy {
        policy: String,
    },
    Quarantined {
        by: String,
        because: String,
        until: Option<Timestamp>,
    },
    KubeletTooNew {
        kubelet: Minor,
        api_server: Minor,
    },
    Withdrawn(Withdrawn),
    Deprecated {
        since: Option<Timestamp>,
        because: DeprecatedRule,
    },
    AgeUnknown {
        minimum: Age,
        date: UnknownDate,
    },
    TooYoung {
        minimum: Age,
        policy: Option<String>,
        from: Timestamp,
        counted: Counted,
        ripe_at: Timestamp,
    },
    /// A release that the pointer does not name, and that is newer than the one it does.
    NotRecommended {
        recommended: Option<ImageId>,
    },
    /// The parameter has named it before, and names another one now.
    NoLongerNamed {
        parameter: String,
        now: ImageId,
    },
    /// `latest~1` asks for an older one.
    NewerThanAsked {
        asked: String,
        version: Option<String>,
    },
    Superseded {
        by: ImageId,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerRule {
    /// The term says whose.
    Term {
        owner: String,
    },
    /// A term with a name and without an owner means one's own images and Amazon's.
    Default {
        account_known: bool,
    },
    Policy {
        name: String,
        owners: Vec<String>,
    },
    /// No public parameter of the family has ever named an image of this owner.
    Publisher {
        family: &'static str,
        publishers: Vec<AccountId>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeprecatedRule {
    Policy {
        name: String,
    },
    /// The fallback of an alias is never a deprecated image.
    Fallback,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownDate {
    Missing,
    Unreadable(String),
    InTheFuture(Timestamp),
}

impl UnknownDate {
    pub(super) fn of(date: &Date, from_the_future: bool) -> Self {
        match date {
            Date::At(at) if from_the_future => Self::InTheFuture(*at),
            Date::Unreadable(text) => Self::Unreadable(text.clone()),
            Date::At(_) | Date::Missing => Self::Missing,
        }
    }
}

/// Which clock an age was counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    FromCreation,
    FromSourceCreation,
    FromFirstSeen,
}

impl Refusal {
    /// A word that scripts can rely on.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::WrongOwner { .. } => "WrongOwner",
            Self::NotAllowedByAccount => "NotAllowedByAccount",
            Self::NotBootable(standing) => standing.as_str(),
            Self::UnsupportedArchitecture(_) => "UnsupportedArchitecture",
            Self::WrongPlatform { .. } => "WrongPlatform",
            Self::NotAllowedByPolicy { .. } => "NotAllowedByPolicy",
            Self::Quarantined { .. } => "Quarantined",
            Self::KubeletTooNew { .. } => "KubeletTooNew",
            Self::Withdrawn(_) => "Withdrawn",
            Self::Deprecated { .. } => "Deprecated",
            Self::AgeUnknown { .. } => "AgeUnknown",
            Self::TooYoung { .. } => "TooYoung",
            Self::NotRecommended { .. } => "NotRecommended",
            Self::NoLongerNamed { .. } => "NoLongerNamed",
            Self::NewerThanAsked { .. } => "NewerThanAsked",
            Self::Superseded { .. } => "Superseded",
        }
    }

    /// Kind and name of the object whose word it is; no name: the class that asks. `None`: it is a fact
    /// about the image.
    pub fn object(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Quarantined { by, .. } => Some(("ImageQuarantine", by)),
            Self::NotAllowedByPolicy { policy }
            | Self::WrongOwner { rule: OwnerRule::Policy { name: policy, .. }, .. }
            | Self::Deprecated { because: DeprecatedRule::Policy { name: policy }, .. }
            | Self::TooYoung { policy: Some(policy), .. } => Some(("ImagePolicy", policy)),
            Self::TooYoung { policy: None, .. } | Self::NewerThanAsked { .. } => {
                Some(("EC2NodeClass", ""))
            }
            Self::WrongOwner { .. }
            | Self::Deprecated { .. }
            | Self::NotAllowedByAccount
            | Self::NotBootable(_)
            | Self::UnsupportedArchitecture(_)
            | Self::WrongPlatform { .. }
            | Self::KubeletTooNew { .. }
            | Self::Withdrawn(_)
            | Self::AgeUnknown { .. }
            | Self::NotRecommended { .. }
            | Self::NoLongerNamed { .. }
            | Self::Superseded { .. } => None,
        }
    }

    /// When it ends by itself, if it does.
    pub fn ends_at(&self) -> Option<Timestamp> {
        match self {
            Self::TooYoung { ripe_at, .. } => Some(*ripe_at),
            Self::Quarantined { until, .. } => *until,
            Self::AgeUnknown { date: UnknownDate::InTheFuture(at), minimum } => {
                Some(minimum.after(*at))
            }
            Self::AgeUnknown { .. }
            | Self::WrongOwner { .. }
            | Self::NotAllowedByAccount
            | Self::NotBootable(_)
            | Self::UnsupportedArchitecture(_)
            | Self::WrongPlatform { .. }
            | Self::NotAllowedByPolicy { .. }
            | Self::KubeletTooNew { .. }
            | Self::Withdrawn(_)
            | Self::Deprecated { .. }
            | Self::NotRecommended { .. }
            | Self::NoLongerNamed { .. }
            | Self::NewerThanAsked { .. }
            | Self::Superseded { .. } => None,
        }
    }

    /// Whether a rule holds back an image that was asked for and could boot.
    pub fn held(&self) -> bool {
        match self {
            Self::NotAllowedByAccount
            | Self::NotAllowedByPolicy { .. }
            | Self::Quarantined { .. }
            | Self::KubeletTooNew { .. }
            | Self::Withdrawn(_)
            | Self::Deprecated { .. }
            | Self::AgeUnknown { .. }
            | Self::TooYoung { .. }
            | Self::WrongOwner { rule: OwnerRule::Policy { .. }, .. } => true,
            Self::WrongOwner { .. }
            | Self::NotBootable(_)
            | Self::UnsupportedArchitecture(_)
            | Self::WrongPlatform { .. }
            | Self::NotRecommended { .. }
            | Self::NoLongerNamed { .. }
            | Self::NewerThanAsked { .. }
            | Self::Superseded { .. } => false,
        }
    }

    /// Whether somebody who finds no image at all should hear of it: it was asked for, and is not there any more. What
    /// else refuses one follows from something that is told by itself.
    pub(super) fn worth_naming(&self) -> bool {
        matches!(self, Self::NotBootable(_))
    }

    /// Whether it is about age and about nothing else: what an image in use is exempt from.
    pub fn about_age(&self) -> bool {
        matches!(self, Self::TooYoung { .. } | Self::AgeUnknown { .. })
    }

    /// Whether an image in use stays in spite of it, while nothing else may boot.
    pub(super) fn spares_what_is_in_use(&self) -> bool {
        self.about_age() || matches!(self, Self::NoLongerNamed { .. })
    }

    /// How near to booting: of an image that several terms refuse, the last gate it reached is told.
    pub(super) fn gate(&self) -> u8 {
        match self {
            Self::WrongOwner { .. } => 0,
            Self::NotAllowedByAccount => 1,
            Self::NotBootable(_) => 2,
            Self::UnsupportedArchitecture(_) | Self::WrongPlatform { .. } => 3,
            Self::NotAllowedByPolicy { .. } => 4,
            Self::Quarantined { .. } => 5,
            Self::KubeletTooNew { .. } => 6,
            Self::Withdrawn(_) => 7,
            Self::NotRecommended { .. } => 8,
            Self::NewerThanAsked { .. } => 9,
            Self::Deprecated { .. } => 10,
            Self::NoLongerNamed { .. } => 11,
            Self::AgeUnknown { .. } => 12,
            Self::TooYoung { .. } => 13,
            Self::Superseded { .. } => 14,
        }
    }
}

/// Dates as tickets want them; people get "in 4d" beside them from whoever prints.
impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongOwner { owner, alias, rule } => {
                match (owner, alias) {
                    (Some(owner), Some(alias)) => write!(out, "owner {owner} ({alias}) ")?,
                    (Some(owner), None) => write!(out, "owner {owner} ")?,
                    (None, _) => write!(out, "its owner is unknown and ")?,
                }
                match rule {
                    OwnerRule::Term { owner } => write!(out, "is not the term's owner `{owner}`"),
                    OwnerRule::Default { account_known: true } => write!(
                        out,
                        "is neither `self` nor `amazon`, which a name without an owner means"
                    ),
                    OwnerRule::Default { account_known: false } => write!(
                        out,
                        "is not `amazon`, and whether it is `self` is unknown; pass --account ID"
                    ),
                    OwnerRule::Policy { name, owners } if owners.is_empty() => {
                        write!(
                            out,
                            "is not allowed by policy `{name}`, whose list of owners is empty"
                        )
                    }
                    OwnerRule::Policy { name, owners } => {
                        write!(out, "is not among policy `{name}`'s owners: {}", owners.join(", "))
                    }
                    OwnerRule::Publisher { family, publishers } if publishers.is_empty() => write!(
                        out,
                        "may not be {family}'s publisher: the catalog holds no public parameter of {family}"
                    ),
                    OwnerRule::Publisher { family, publishers } => {
                        let all: Vec<&str> = publishers.iter().map(AccountId::as_str).collect();
                        write!(
                            out,
                            "is not {family}'s publisher: its public parameters name images of {}",
                            all.join(", ")
                        )
                    }
                }
            }
            Self::NotAllowedByAccount => {
                write!(out, "the account's Allowed AMIs setting refuses it (imageAllowed=false)")
            }
            Self::NotBootable(standing) => match standing {
                Standing::Disabled => write!(out, "its owner has disabled it"),
                Standing::NotVisible { since } => write!(
                    out,
                    "not listed any more since {since}: unshared, disallowed or deregistered"
                ),
                Standing::Deregistered { since: Some(since) } => {
                    write!(out, "deregistered, gone since {since}")
                }
                Standing::Deregistered { since: None } => write!(out, "deregistered"),
                Standing::Unready(word) => write!(out, "EC2 says its state is `{word}`"),
                Standing::Available | Standing::Deprecated { .. } => write!(out, "not bootable"),
            },
            Self::UnsupportedArchitecture(word) => {
                write!(out, "architecture `{word}` is none that Kubernetes nodes have")
            }
            Self::WrongPlatform { platform, family } => {
                write!(out, "its platform is {platform}, and the class bootstraps {family}")
            }
            Self::NotAllowedByPolicy { policy } => {
                write!(out, "not among the allowed images of policy `{policy}`")
            }
            Self::Quarantined { by, because, until } => {
                write!(out, "quarantined by `{by}`: {because}")?;
                until.map_or(Ok(()), |until| write!(out, "; until {until}"))
            }
            Self::KubeletTooNew { kubelet, api_server } => {
                write!(out, "its kubelet {kubelet} is newer than the API server {api_server}")
            }
            Self::Withdrawn(Withdrawn { at, because }) => {
                match because {
                    Because::PointerMovedBack { parameter, to } => {
                        write!(out, "withdrawn: {parameter} moved back to the older {to}")?;
                    }
                    Because::DeprecatedEarly => {
                        write!(out, "withdrawn: deprecated within 90 days of its creation")?;
                    }
                    Because::DisabledEarly => {
                        write!(out, "withdrawn: disabled within 90 days of its creation")?;
                    }
                    Because::Recalled => {
                        write!(out, "withdrawn: it stands on a list of recalls")?;
                    }
                    Because::UnsharedEarly => {
                        write!(out, "withdrawn: unshared within 90 days of its creation")?;
                    }
                }
                at.map_or(Ok(()), |at| write!(out, ", on {at}"))
            }
            Self::Deprecated { since, because } => {
                match since {
                    Some(since) => write!(out, "deprecated since {since}")?,
                    None => write!(out, "deprecated, or will be: its date cannot be read")?,
                }
                match because {
                    DeprecatedRule::Policy { name } => {
                        write!(out, ", which policy `{name}` forbids")
                    }
                    DeprecatedRule::Fallback => {
                        write!(out, ", and an alias never falls back to a deprecated release")
                    }
                }
            }
            Self::AgeUnknown { minimum, date } => match date {
                UnknownDate::Missing => {
                    write!(out, "its age is unknown: no creation date, and {minimum} is required")
                }
                UnknownDate::Unreadable(text) => write!(
                    out,
                    "its age is unknown: creation date `{text}` cannot be read, and {minimum} is required"
                ),
                UnknownDate::InTheFuture(at) => {
                    write!(
                        out,
                        "its creation date {at} lies in the future, and {minimum} is required"
                    )
                }
            },
            Self::TooYoung { minimum, policy, from, counted, ripe_at } => {
                write!(out, "too young until {ripe_at}: {minimum} after ")?;
                match counted {
                    Counted::FromCreation => write!(out, "its creation on {from}")?,
                    Counted::FromSourceCreation => write!(out, "its source's creation on {from}")?,
                    Counted::FromFirstSeen => write!(out, "it was first seen on {from}")?,
                }
                policy.as_ref().map_or(Ok(()), |it| write!(out, ", by policy `{it}`"))
            }
            Self::NotRecommended { recommended: Some(id) } => {
                write!(out, "newer than the recommended release {id}, and not recommended yet")
            }
            Self::NotRecommended { recommended: None } => {
                write!(out, "which release is recommended is not known")
            }
            Self::NoLongerNamed { parameter, now } => {
                write!(out, "{parameter} named it before, and names {now} now")
            }
            Self::NewerThanAsked { asked, version: Some(version) } => {
                write!(out, "newer than the release asked for: {asked} is {version}")
            }
            Self::NewerThanAsked { asked, version: None } => {
                write!(out, "newer than the release asked for: there is no {asked}")
            }
            Self::Superseded { by } => write!(out, "superseded by {by}"),
        }
    }
}
