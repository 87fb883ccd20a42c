//! Which operating system does a class bring, and what follows from that before any node runs?
//!
//! `family → how pods are counted, what is kept back, where pods' files go`
//!
//! The family is what users write as `amiFamily`, or what the alias (`al2023@latest`) implies. The
//! tables below are Karpenter's, so that we expect of a node what Karpenter expects of it.

use std::{fmt, str::FromStr};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    Al2,
    Al2023,
    Bottlerocket,
    Windows2019,
    Windows2022,
    Windows2025,
    Custom,
}

impl Family {
    pub const ALL: [Self; 7] = [
        Self::Al2,
        Self::Al2023,
        Self::Bottlerocket,
        Self::Windows2019,
        Self::Windows2022,
        Self::Windows2025,
        Self::Custom,
    ];

    /// As written in `amiFamily`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Al2 => "AL2",
            Self::Al2023 => "AL2023",
            Self::Bottlerocket => "Bottlerocket",
            Self::Windows2019 => "Windows2019",
            Self::Windows2022 => "Windows2022",
            Self::Windows2025 => "Windows2025",
            Self::Custom => "Custom",
        }
    }

    /// As written before the `@` of an alias. Custom images have no alias.
    pub fn alias_name(self) -> Option<&'static str> {
        match self {
            Self::Al2 => Some("al2"),
            Self::Al2023 => Some("al2023"),
            Self::Bottlerocket => Some("bottlerocket"),
            Self::Windows2019 => Some("windows2019"),
            Self::Windows2022 => Some("windows2022"),
            Self::Windows2025 => Some("windows2025"),
            Self::Custom => None,
        }
    }

    /// The family of an alias' first half.
    pub fn from_alias_name(text: &str) -> Result<Self, UnknownFamily> {
        Self::ALL.into_iter().find(|it| it.alias_name() == Some(text)).ok_or_else(|| {
            UnknownFamily::of(text, Self::ALL.iter().filter_map(|it| it.alias_name()))
        })
    }

    pub fn windows(self) -> bool {
        self.windows_build().is_some()
    }

    /// The value of the label `node.kubernetes.io/windows-build`.
    pub fn windows_build(self) -> Option<&'static str> {
        match self {
            Self::Windows2019 => Some("10.0.17763"),
            Self::Windows2022 => Some("10.0.20348"),
            Self::Windows2025 => Some("10.0.26100"),
            Self::Al2 | Self::Al2023 | Self::Bottlerocket | Self::Custom => None,
        }
    }

    /// Whether the kubelet's share of memory is counted by the network interfaces of the type, even
    /// if `maxPods` says otherwise. Bottlerocket and Windows count the pods they will really run.
    pub fn reserves_memory_by_interfaces(self) -> bool {
        match self {
            Self::Al2 | Self::Al2023 | Self::Custom => true,
            Self::Bottlerocket | Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => false,
        }
    }

    /// Whether `podsPerCore` has a meaning here.
    pub fn honours_pods_per_core(self) -> bool {
        match self {
            Self::Bottlerocket => false,
            Self::Al2
            | Self::Al2023
            | Self::Windows2019
            | Self::Windows2022
            | Self::Windows2025
            | Self::Custom => true,
        }
    }

    /// Whether the network interfaces limit the pods. Where they do not, 110 do.
    pub fn limits_pods_by_interfaces(self) -> bool {
        !self.windows()
    }

    /// Whether the node gets kubelet settings that Karpenter does not know. A custom image brings its
    /// own boot, so nobody can tell.
    pub fn takes_any_kubelet_setting(self) -> Option<bool> {
        match self {
            Self::Al2023 => Some(true),
            Self::Al2
            | Self::Bottlerocket
            | Self::Windows2019
            | Self::Windows2022
            | Self::Windows2025 => Some(false),
            Self::Custom => None,
        }
    }

    /// The device that holds images, logs and `emptyDir`s.
    pub fn ephemeral_device(self) -> Option<&'static str> {
        match self {
            Self::Al2 | Self::Al2023 => Some("/dev/xvda"),
            Self::Bottlerocket => Some("/dev/xvdb"),
            Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => Some("/dev/sda1"),
            Self::Custom => None,
        }
    }

    /// The size of that device if the class does not give one.
    pub fn default_volume_gib(self) -> u32 {
        if self.windows() { 50 } else { 20 }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|it| it.name() == text)
            .ok_or_else(|| UnknownFamily::of(text, Self::ALL.iter().map(|it| it.name())))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFamily {
    pub written: String,
    pub nearest: Option<&'static str>,
    pub known: Vec<&'static str>,
}

impl UnknownFamily {
    fn of(written: &str, known: impl Iterator<Item = &'static str>) -> Self {
        let known: Vec<&'static str> = known.collect();
        let nearest = crate::nearest::nearest(written, known.iter().copied()).first().copied();
        Self { written: written.to_owned(), nearest, known }
    }
}

impl fmt::Display for UnknownFamily {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` is not an image family", self.written)?;
        if let Some(nearest) = self.nearest {
            write!(out, "; did you mean `{nearest}`?")?;
        }
        write!(out, " (one of {})", self.known.join(", "))
    }
}

impl std::error::Error for UnknownFamily {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_read_as_it_is_written() {
        for family in Family::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
            if let Some(alias) = family.alias_name() {
                assert_eq!(Family::from_alias_name(alias), Ok(family));
            }
        }
    }

    #[test]
    fn a_misspelt_family_is_told_the_nearest_and_all() {
        let error = "AL2032".parse::<Family>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`AL2032` is not an image family; did you mean `AL2023`? (one of AL2, AL2023, \
             Bottlerocket, Windows2019, Windows2022, Windows2025, Custom)"
        );
        let error = Family::from_alias_name("ubuntu").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`ubuntu` is not an image family (one of al2, al2023, bottlerocket, windows2019, \
             windows2022, windows2025)"
        );
        assert_eq!("bottlerocket".parse::<Family>().unwrap_err().nearest, Some("Bottlerocket"));
        assert_eq!(Family::from_alias_name("custom").unwrap_err().nearest, None);
    }
}
