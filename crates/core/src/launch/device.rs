//! Which volumes does a node have?
//!
//! `family × what the class writes → block devices`
//!
//! What the class writes replaces the family's own, all of it, as Karpenter does: two lists that are
//! merged by device name would surprise whoever meant to leave one out.

use std::str::FromStr;

use nodemolt_fit::{Family, Quantity};
use serde::Serialize;

use crate::image::shorten;

use super::words::VolumeType;

/// One volume. Neither member is required by the schema; a class without them is refused in `check`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct BlockDevice {
    /// As the image calls it.
    pub name: Option<String>,
    pub volume: Option<Volume>,
}

/// `ebs` of a mapping. What is not said is EC2's, or the image's, to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Volume {
    pub size: Option<VolumeSize>,
    pub kind: Option<VolumeType>,
    pub encrypted: Option<bool>,
    pub delete_on_termination: Option<bool>,
    /// Operations per second.
    pub iops: Option<i64>,
    /// MiB per second.
    pub throughput: Option<i64>,
    pub kms_key: Option<String>,
    pub snapshot: Option<String>,
    /// MiB per second while it is filled from its snapshot.
    pub initialization_rate: Option<i64>,
}

/// EC2 counts whole GiB. `20G` is 18.6 GiB and becomes 19.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct VolumeSize {
    pub gib: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the size of a volume")]
pub struct ParseVolumeSizeError(pub String);

/// The largest number that the schema of the class admits for each unit.
const UNITS: [(&str, u32); 4] = [("Gi", 59_000), ("Ti", 58), ("G", 64_000), ("T", 64)];

/// The pattern of the schema without its two slips: it forgets that `Ti` and `T` need a number, and it
/// refuses 18Ti, 19Ti, 28Ti and so on.
impl FromStr for VolumeSize {
    type Err = ParseVolumeSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseVolumeSizeError(shorten(text));
        let (digits, max) = UNITS
            .iter()
            .find_map(|(unit, max)| text.strip_suffix(unit).map(|it| (it, *max)))
            .ok_or_else(error)?;
        let written = !digits.starts_with('0') && digits.bytes().all(|it| it.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|it| written && *it <= max).ok_or_else(error)?;
        let bytes = text.parse::<Quantity>().map_err(|_| error())?.ceil_units();
        let gib = bytes.div_euclid(1 << 30) + i128::from(bytes.rem_euclid(1 << 30) != 0);
        Ok(Self { gib: u32::try_from(gib).map_err(|_| error())? })
    }
}

/// What a family boots with if the class says nothing.
pub fn family_devices(family: Family) -> Vec<BlockDevice> {
    let gp3 = |name: &str, gib: u32| BlockDevice {
        name: Some(name.to_owned()),
        volume: Some(Volume {
            size: Some(VolumeSize { gib }),
            kind: Some(VolumeType::Gp3),
            encrypted: Some(true),
            ..Volume::default()
        }),
    };
    // Bottlerocket's first volume holds the system, which is read-only and needs no more.
    let system = match family {
        Family::Bottlerocket => vec![gp3("/dev/xvda", 4)],
        Family::Al2
        | Family::Al2023
        | Family::Windows2019
        | Family::Windows2022
        | Family::Windows2025
        | Family::Custom => Vec::new(),
    };
    // A custom image brings its own mapping, and nobody knows its names.
    let pods = family.ephemeral_device().map(|it| gp3(it, family.default_volume_gib()));
    system.into_iter().chain(pods).collect()
}

/// Sorted, because EC2 does not care about the order and equal content must have an equal name.
pub(super) fn devices(family: Family, written: &[BlockDevice]) -> Vec<BlockDevice> {
    let mut devices = if written.is_empty() { family_devices(family) } else { written.to_vec() };
    devices.sort();
    devices
}
