//! Which names and parameters lead to images?
//!
//! `flavour × release → SSM path`, and back: `SSM path or image name → flavour and release`
//!
//! A flavour is one line of releases: family, processor, track and Kubernetes minor. Every release of a
//! flavour has a public SSM parameter of its own (Windows has only the moving one) and a name of a known
//! form. A name proves nothing about who published it; whoever reads names must check the owner.

mod queries;

use std::fmt;
use std::str::FromStr;

use nodemolt_fit::{Family, Operator, Written, label};

pub use queries::{pointed, queries, queries_for};

use crate::image::{Architecture, Image, shorten};

/// A Kubernetes minor version, such as 1.35.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minor {
    pub major: u16,
    pub minor: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Kubernetes version; write it like `1.35` or `v1.35.2`")]
pub struct ParseMinorError(pub String);

impl FromStr for Minor {
    type Err = ParseMinorError;

    /// Takes what people and API servers write: `1.35`, `v1.35.2`, `1.35+`, `v1.35.2-eks-a1b2c3`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseMinorError(shorten(text));
        let bare = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = bare.split_once('.').ok_or_else(error)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (minor, tail) = rest.split_at(digits);
        if !matches!(tail.as_bytes().first(), None | Some(b'.' | b'+' | b'-')) {
            return Err(error());
        }
        let number = |digits: &str| {
            if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
                return Err(error());
            }
            digits.parse().map_err(|_| error())
        };
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&format!("{}.{}", self.major, self.minor))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Processor {
    Amd64,
    Arm64,
}

impl Processor {
    pub fn kubernetes(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// As AL2023's and Bottlerocket's paths spell it.
    fn in_path(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "arm64",
        }
    }

    pub(crate) fn same_as(self, architecture: &Architecture) -> bool {
        architecture.kubernetes() == Some(self.kubernetes())
    }
}

/// One of the lines that a family publishes beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Track {
    Standard,
    Nvidia,
    Neuron,
    /// AL2's one image for NVIDIA and Neuron.
    Gpu,
}

impl Track {
    fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Nvidia => "nvidia",
            Self::Neuron => "neuron",
            Self::Gpu => "gpu",
        }
    }
}

/// What a track's image is for. One image may be for two: AL2's GPU image, Bottlerocket's plain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    Standard,
    Nvidia,
    Neuron,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flavour {
    pub family: Family,
    pub processor: Processor,
    pub track: Track,
    pub kubernetes: Minor,
}

impl fmt::Display for Flavour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}/{}",
            self.family.alias_name().unwrap_or("custom"),
            self.processor.in_path()
        )?;
        if self.track != Track::Standard {
            write!(out, "/{}", self.track.as_str())?;
        }
        Ok(())
    }
}

/// Which release of a flavour a path or a name speaks of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    Recommended,
    Version(String),
}

use Processor::{Amd64, Arm64};

/// What each family publishes.
fn lines(family: Family) -> &'static [(Processor, Track)] {
    match family {
        Family::Al2 => &[(Amd64, Track::Standard), (Arm64, Track::Standard), (Amd64, Track::Gpu)],
        Family::Al2023 => &[
            (Amd64, Track::Standard),
            (Arm64, Track::Standard),
            (Amd64, Track::Nvidia),
            (Arm64, Track::Nvidia),
            (Amd64, Track::Neuron),
        ],
        Family::Bottlerocket => &[
            (Amd64, Track::Standard),
            (Arm64, Track::Standard),
            (Amd64, Track::Nvidia),
            (Arm64, Track::Nvidia),
        ],
        Family::Windows2019 | Family::Windows2022 | Family::Windows2025 => {
            &[(Amd64, Track::Standard)]
        }
        Family::Custom => &[],
    }
}

/// All flavours of a family for one Kubernetes minor.
pub fn flavours(family: Family, kubernetes: Minor) -> impl Iterator<Item = Flavour> {
    lines(family).iter().map(move |(processor, track)| Flavour {
        family,
        processor: *processor,
        track: *track,
        kubernetes,
    })
}

impl Flavour {
    /// What the image of this flavour is for.
    pub fn variants(self) -> &'static [Variant] {
        match (self.family, self.track, self.processor) {
            (_, Track::Nvidia, _) => &[Variant::Nvidia],
            (_, Track::Neuron, _) => &[Variant::Neuron],
            (_, Track::Gpu, _) => &[Variant::Neuron, Variant::Nvidia],
            (Family::Bottlerocket, Track::Standard, Amd64) => &[Variant::Standard, Variant::Neuron],
            (_, Track::Standard, _) => &[Variant::Standard],
        }
    }

    /// The parameter that names its recommended release.
    pub fn pointer(self) -> String {
        self.path(None).unwrap_or_default()
    }

    /// The parameter that names one release for ever. Windows has none.
    pub fn pinned(self, version: &str) -> Option<String> {
        self.path(Some(version))
    }

    fn path(self, version: Option<&str>) -> Option<String> {
        const EKS: &str = "/aws/service/eks/optimized-ami";
        let (k, cpu, track) = (self.kubernetes, self.processor.in_path(), self.track.as_str());
        Some(match self.family {
            Family::Al2 => {
                let infix = self.al2_infix();
                let folder = if infix.is_empty() { String::new() } else { format!("-{infix}") };
                let release = match version {
                    None => "recommended".to_owned(),
                    Some(version) => format!("{}{version}", self.al2_name_stem()),
                };
                format!("{EKS}/{k}/amazon-linux-2{folder}/{release}/image_id")
            }
            Family::Al2023 => {
                let release = match version {
                    None => "recommended".to_owned(),
                    Some(version) => {
                        format!("amazon-eks-node-al2023-{cpu}-{track}-{k}-{version}")
                    }
                };
                format!("{EKS}/{k}/amazon-linux-2023/{cpu}/{track}/{release}/image_id")
            }
            Family::Bottlerocket => {
                let nvidia = if self.track == Track::Nvidia { "-nvidia" } else { "" };
                let release = version.map_or("latest", |it| it.trim_start_matches('v'));
                format!("/aws/service/bottlerocket/aws-k8s-{k}{nvidia}/{cpu}/{release}/image_id")
            }
            Family::Windows2019 | Family::Windows2022 | Family::Windows2025 => {
                if version.is_some() {
                    return None;
                }
                let year = windows_year(self.family);
                format!(
                    "/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-{k}/image_id"
                )
            }
            Family::Custom => return None,
        })
    }

    fn al2_infix(self) -> &'static str {
        match (self.track, self.processor) {
            (Track::Gpu, _) => "gpu",
            (_, Arm64) => "arm64",
            (_, Amd64) => "",
        }
    }

    fn al2_name_stem(self) -> String {
        let k = self.kubernetes;
        match self.al2_infix() {
            "" => format!("amazon-eks-node-{k}-"),
            infix => format!("amazon-eks-{infix}-node-{k}-"),
        }
    }

    /// What nodes this image may become, as far as its variant says, for each of its variants.
    ///
    /// By manufacturer and not by count alone: an AMD GPU is a GPU too, and must not get NVIDIA's
    /// driver. See docs/decisions/0007.
    pub fn requirements(self, variant: Variant) -> Vec<Written> {
        let exists = |key: &str| written(key, Operator::Exists, &[]);
        let absent = |key: &str| written(key, Operator::DoesNotExist, &[]);
        let is = |key: &str, value: &str| written(key, Operator::In, &[value]);
        if let Some(build) = self.family.windows_build() {
            return vec![is(label::OS, "windows"), is(label::WINDOWS_BUILD, build)];
        }
        match variant {
            Variant::Standard => vec![absent(label::ACCELERATOR_COUNT), absent(label::GPU_COUNT)],
            Variant::Nvidia => {
                vec![exists(label::GPU_COUNT), is(label::GPU_MANUFACTURER, "nvidia")]
            }
            Variant::Neuron => {
                vec![exists(label::ACCELERATOR_COUNT), is(label::ACCELERATOR_MANUFACTURER, "aws")]
            }
        }
    }
}

fn written(key: &str, operator: Operator, values: &[&str]) -> Written {
    let values = values.iter().map(|it| (*it).to_owned()).collect();
    Written { key: key.to_owned(), operator, values, min_values: None }
}

fn windows_year(family: Family) -> &'static str {
    match family {
        Family::Windows2019 => "2019",
        Family::Windows2022 => "2022",
        Family::Windows2025 => "2025",
        Family::Al2 | Family::Al2023 | Family::Bottlerocket | Family::Custom => "",
    }
}

/// What a public parameter names, if it is one that we know.
pub fn read_path(path: &str) -> Option<(Flavour, Release)> {
    let (flavour, release) =
        if let Some(rest) = path.strip_prefix("/aws/service/eks/optimized-ami/") {
            read_eks_path(rest)?
        } else if let Some(rest) = path.strip_prefix("/aws/service/bottlerocket/aws-k8s-") {
            read_bottlerocket_path(rest)?
        } else {
            let rest =
                path.strip_prefix("/aws/service/ami-windows-latest/")?.strip_suffix("/image_id")?;
            (read_windows_name(rest)?.0, Release::Recommended)
        };
    // Reading is only the inverse of writing: whatever does not come out again is not ours.
    let again = match &release {
        Release::Recommended => Some(flavour.pointer()),
        Release::Version(version) => flavour.pinned(version),
    };
    (again.as_deref() == Some(path)).then_some((flavour, release))
}

fn read_eks_path(rest: &str) -> Option<(Flavour, Release)> {
    let parts: Vec<&str> = rest.split('/').collect();
    let (kubernetes, family, processor, track, release) = match parts.as_slice() {
        [k, folder, release, "image_id"] => {
            let (processor, track) = match *folder {
                "amazon-linux-2" => (Amd64, Track::Standard),
                "amazon-linux-2-arm64" => (Arm64, Track::Standard),
                "amazon-linux-2-gpu" => (Amd64, Track::Gpu),
                _ => return None,
            };
            (k, Family::Al2, processor, track, release)
        }
        [k, "amazon-linux-2023", cpu, track, release, "image_id"] => {
            let processor = match *cpu {
                "x86_64" => Amd64,
                "arm64" => Arm64,
                _ => return None,
            };
            let track = read_track(track)?;
            (k, Family::Al2023, processor, track, release)
        }
        _ => return None,
    };
    let flavour = Flavour { family, processor, track, kubernetes: read_minor(kubernetes)? };
    if *release == "recommended" {
        return Some((flavour, Release::Recommended));
    }
    let (named, version) = read_name(release)?;
    (named == flavour).then_some((flavour, Release::Version(version)))
}

fn read_bottlerocket_path(rest: &str) -> Option<(Flavour, Release)> {
    let parts: Vec<&str> = rest.split('/').collect();
    let [variant, cpu, release, "image_id"] = parts.as_slice() else { return None };
    let (kubernetes, track) = match variant.strip_suffix("-nvidia") {
        Some(kubernetes) => (kubernetes, Track::Nvidia),
        None => (*variant, Track::Standard),
    };
    let processor = match *cpu {
        "x86_64" => Amd64,
        "arm64" => Arm64,
        _ => return None,
    };
    let release = match *release {
        "latest" => Release::Recommended,
        "" => return None,
        version => Release::Version(version.to_owned()),
    };
    let kubernetes = read_minor(kubernetes)?;
    Some((Flavour { family: Family::Bottlerocket, processor, track, kubernetes }, release))
}

/// As names and paths spell it: `1.35` and nothing more, where people may write `v1.35.2`.
fn read_minor(text: &str) -> Option<Minor> {
    text.parse::<Minor>().ok().filter(|it| it.to_string() == text)
}

fn read_track(text: &str) -> Option<Track> {
    match text {
        "standard" => Some(Track::Standard),
        "nvidia" => Some(Track::Nvidia),
        "neuron" => Some(Track::Neuron),
        _ => None,
    }
}

/// Which release an image would be if its name tells the truth.
pub fn read_name(name: &str) -> Option<(Flavour, String)> {
    named(name).map(|(flavour, version)| (flavour, version.to_owned()))
}

/// `read_name`, for who only looks.
pub(crate) fn named(name: &str) -> Option<(Flavour, &str)> {
    if let Some(rest) = name.strip_prefix("amazon-eks-") {
        read_eks_name(rest)
    } else if let Some(rest) = name.strip_prefix("bottlerocket-aws-k8s-") {
        read_bottlerocket_name(rest)
    } else {
        let (flavour, version) = read_windows_name(name)?;
        Some((flavour, version.filter(|it| !it.is_empty())?))
    }
}

fn read_eks_name(rest: &str) -> Option<(Flavour, &str)> {
    let (parts, number) = parts::<6>(rest, '-')?;
    let (family, processor, track, kubernetes, version) = match &parts[..number] {
        ["node", "al2023", cpu, track, k, version] => {
            let processor = match *cpu {
                "x86_64" => Amd64,
                "arm64" => Arm64,
                _ => return None,
            };
            (Family::Al2023, processor, read_track(track)?, k, version)
        }
        ["node", k, version] => (Family::Al2, Amd64, Track::Standard, k, version),
        ["arm64", "node", k, version] => (Family::Al2, Arm64, Track::Standard, k, version),
        ["gpu", "node", k, version] => (Family::Al2, Amd64, Track::Gpu, k, version),
        _ => return None,
    };
    let dated = version.strip_prefix('v')?;
    if dated.is_empty() || !dated.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let kubernetes = read_minor(kubernetes)?;
    Some((Flavour { family, processor, track, kubernetes }, *version))
}

/// The parts of a text and how many they are, if they are not more than that.
fn parts<const MOST: usize>(text: &str, between: char) -> Option<([&str; MOST], usize)> {
    let mut parts = [""; MOST];
    let mut number = 0;
    for part in text.split(between) {
        *parts.get_mut(number)? = part;
        number += 1;
    }
    Some((parts, number))
}

fn read_bottlerocket_name(rest: &str) -> Option<(Flavour, &str)> {
    let (parts, number) = parts::<5>(rest, '-')?;
    let (kubernetes, track, cpu, version) = match &parts[..number] {
        [k, "nvidia", cpu, version, _build] => (k, Track::Nvidia, cpu, version),
        [k, cpu, version, _build] => (k, Track::Standard, cpu, version),
        _ => return None,
    };
    let processor = match *cpu {
        "x86_64" => Amd64,
        "aarch64" | "arm64" => Arm64,
        _ => return None,
    };
    let version = version.strip_prefix('v').filter(|it| !it.is_empty())?;
    let kubernetes = read_minor(kubernetes)?;
    let flavour = Flavour { family: Family::Bottlerocket, processor, track, kubernetes };
    Some((flavour, version))
}

/// The version is absent in the parameter's path and present in the image's name.
fn read_windows_name(name: &str) -> Option<(Flavour, Option<&str>)> {
    let rest = name.strip_prefix("Windows_Server-")?;
    let (year, rest) = rest.split_once("-English-Core-EKS_Optimized-")?;
    let family = match year {
        "2019" => Family::Windows2019,
        "2022" => Family::Windows2022,
        "2025" => Family::Windows2025,
        _ => return None,
    };
    let (kubernetes, version) = match rest.split_once('-') {
        Some((kubernetes, version)) => (kubernetes, Some(version)),
        None => (rest, None),
    };
    let kubernetes = read_minor(kubernetes)?;
    Some((Flavour { family, processor: Amd64, track: Track::Standard, kubernetes }, version))
}

/// The release that an image's name claims, where the image is also of that processor.
pub fn release_of(image: &Image) -> Option<(Flavour, String)> {
    read_name(&image.name).filter(|(flavour, _)| flavour.processor.same_as(&image.architecture))
}

/// The kubelet's minor, where the image says it: by a tag, by a release name of a known family, or by a
/// part of the name that can hardly mean anything else.
pub fn kubelet_of(image: &Image) -> Option<Minor> {
    const TAGS: [&str; 5] = [
        "kubernetes_version",
        "kubernetes-version",
        "kubernetesVersion",
        "KubernetesVersion",
        "kubernetes",
    ];
    if let Some(minor) =
        TAGS.iter().filter_map(|it| image.tags.get(*it)).find_map(|it| it.parse().ok())
    {
        return Some(minor);
    }
    if let Some((flavour, _)) = named(&image.name) {
        return Some(flavour.kubernetes);
    }
    kubelet_in_name(&image.name)
}

/// `k8s-1.31`, `k8s_1.29`, `kubernetes-v1.31.2`, `eks-1.30`, and a bare `1.35` between separators. A
/// version of three numbers counts only after one of those words: it may be anybody's.
fn kubelet_in_name(name: &str) -> Option<Minor> {
    // Versions that kubelets of this decade have; 1.2 and 1.99 are somebody else's.
    const LIKELY: std::ops::RangeInclusive<u16> = 16..=59;
    let mut before = "";
    for part in name.split(['-', '_', '/', ' ', ':']) {
        let announced = matches!(before, "k8s" | "kubernetes" | "kube" | "eks" | "kubelet");
        before = part;
        let bare = part.strip_prefix('v').unwrap_or(part);
        let Some((numbers, number)) = parts::<3>(bare, '.') else { continue };
        let numbers = &numbers[..number];
        let numeric = numbers
            .iter()
            .all(|it| !it.is_empty() && it.len() <= 3 && it.bytes().all(|it| it.is_ascii_digit()));
        if !numeric || numbers.first() != Some(&"1") {
            continue;
        }
        let plausible = match numbers.len() {
            2 => announced || !part.starts_with('v'),
            3 => announced,
            _ => false,
        };
        if !plausible {
            continue;
        }
        if let Ok(minor) = bare.parse::<Minor>()
            && LIKELY.contains(&minor.minor)
        {
            return Some(minor);
        }
    }
    None
}
