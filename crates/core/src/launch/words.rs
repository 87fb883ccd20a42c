//! Which words does EC2 know here?
//!
//! `text ⇄ word`, and ids that were checked. A word that is not listed is refused with the list.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::image::shorten;

/// A word that is none of those that are known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{written}` is not one of {}", known.join(", "))]
pub struct UnknownWord {
    pub written: String,
    pub known: Vec<&'static str>,
}

macro_rules! words {
    ($($(#[$about:meta])* pub enum $name:ident { $($(#[$about_word:meta])* $word:ident = $text:literal,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$about_word])* $word,)*
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$word,)*];

            /// As EC2 and the class write it.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.pad(self.word())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|it| it.word() == text).ok_or_else(|| UnknownWord {
                    written: shorten(text),
                    known: Self::ALL.iter().map(|it| it.word()).collect(),
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    )*};
}

words! {
    pub enum VolumeType {
        Standard = "standard",
        Io1 = "io1",
        Io2 = "io2",
        Gp2 = "gp2",
        Sc1 = "sc1",
        St1 = "st1",
        Gp3 = "gp3",
    }

    /// `spec.instanceStorePolicy`.
    pub enum InstanceStorePolicy {
        Raid0 = "RAID0",
    }

    pub enum Switch {
        Enabled = "enabled",
        Disabled = "disabled",
    }

    /// Whether the metadata service answers only those who fetched a token (version 2).
    pub enum Tokens {
        Required = "required",
        Optional = "optional",
    }

    /// What a class may write in `networkInterfaces`.
    pub enum WrittenKind {
        Interface = "interface",
        EfaOnly = "efa-only",
    }

    pub enum InterfaceKind {
        Interface = "interface",
        Efa = "efa",
        EfaOnly = "efa-only",
    }

    /// EC2 knows `host` too. It needs a host, which no class names.
    pub enum Tenancy {
        Default = "default",
        Dedicated = "dedicated",
    }

    pub enum CapacityType {
        OnDemand = "on-demand",
        Spot = "spot",
        Reserved = "reserved",
    }

    /// `CapacityReservationPreference`.
    pub enum Preference {
        None = "none",
        Open = "open",
        Only = "capacity-reservations-only",
    }

    /// `MarketType`, where the template has to say it: spot is said by the fleet.
    pub enum Market {
        CapacityBlock = "capacity-block",
        Interruptible = "interruptible-capacity-reservation",
    }

    /// What the template tags when it is used. Instances, volumes and the fleet get theirs from the
    /// fleet's request, where a claim's own tags join them.
    pub enum Tagged {
        NetworkInterface = "network-interface",
        SpotInstancesRequest = "spot-instances-request",
    }
}

/// An id that does not look like one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{written}` is not {what}; write `{prefix}` and then digits and lower-case letters")]
pub struct ParseIdError {
    pub written: String,
    pub what: &'static str,
    pub prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$about:meta])* pub struct $name:ident = $prefix:literal, $what:literal;)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let rest = text.strip_prefix($prefix).unwrap_or("");
                if !rest.is_empty() && rest.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'z'))
                {
                    return Ok(Self(text.to_owned()));
                }
                Err(ParseIdError { written: shorten(text), what: $what, prefix: $prefix })
            }
        }
    )*};
}

ids! {
    /// Stricter than Karpenter's unanchored pattern, as EC2 is.
    pub struct SecurityGroupId = "sg-", "the id of a security group";
    pub struct ReservationId = "cr-", "the id of a capacity reservation";
    pub struct PlacementGroupId = "pg-", "the id of a placement group";
}
