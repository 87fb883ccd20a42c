//! What is a node told at boot?
//!
//! `family × settings × user part → user data`
//!
//! The user's own part is merged with ours, one file per family, and nothing of theirs is lost. The same
//! input gives the same bytes. What cannot be merged is refused before anything launches, with its line.

mod said;
pub mod identity;
pub mod kubelet;
mod remark;
pub mod mime;
pub mod quote;
mod media_type;
pub mod base64;
mod quoted_printable;
mod cloud_config;
pub mod user_part;
pub mod flags;
pub mod al2;
mod toml_text;
pub mod bottlerocket;
mod yaml;
pub mod al2023;
pub mod windows;
pub mod custom;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use nodemolt_fit::Family;
use sha2::{Digest, Sha256};

pub use said::{OfClass, OfPool, settings};

/// EC2's limit on user data, before base64.
pub const USER_DATA_BYTES_MAX: usize = 16_384;

/// From here on a person is told how little room is left. Karpenter's number.
const USER_DATA_BYTES_NOTED: usize = USER_DATA_BYTES_MAX / 10 * 9;

/// What a node of this family is told, or everything that speaks against it.
pub fn render(
    family: Family,
    settings: &Settings,
    user: UserPart<'_>,
) -> Result<UserData, MergeConflict> {
    check_placement(family, settings.placement)?;
    let mut user_data = match family {
        Family::Al2 => al2::render(settings, user)?,
        Family::Al2023 => al2023::render(settings, user)?,
        Family::Bottlerocket => bottlerocket::render(settings, user)?,
        Family::Windows2019 | Family::Windows2022 | Family::Windows2025 => {
            windows::render(family, settings, user)?
        }
        Family::Custom => custom::render(settings, user)?,
    };
    let (bytes, theirs) = (user_data.text.len(), user.0.len());
    if bytes > USER_DATA_BYTES_MAX {
        let message = format!("is {bytes} bytes long, and EC2 takes {USER_DATA_BYTES_MAX}");
        let hint = format!(
            "{theirs} of them are yours: fetch what is long from elsewhere, and keep the command here"
        );
        let remarks = vec![Remark::new(Place::Whole, message).with_hint(hint)];
        return Err(MergeConflict { remarks, warnings: user_data.remarks });
    }
    if bytes >= USER_DATA_BYTES_NOTED {
        let message = format!("is {bytes} bytes long, of {USER_DATA_BYTES_MAX} that EC2 takes");
        user_data.remarks.push(Remark::new(Place::Whole, message));
    }
    Ok(user_data)
}

/// What of a class no node of this family can be told, whatever the user's part and the cluster are.
pub fn class_problems(family: Family, kubelet: &Kubelet, placement: Placement) -> Vec<Remark> {
    let placed = check_placement(family, placement).err();
    let configured = kubelet::check(kubelet, family).err();
    placed.into_iter().chain(configured).flat_map(|it| it.remarks).collect()
}

/// What speaks against sending this text to a node of the family, as it is. `Err` where it certainly does
/// not join by it, `Ok` with what is only strange.
pub fn sendable(family: Family, text: &str) -> Result<Vec<Remark>, Remark> {
    let start = Place::UserPart { line: 1, column: 1 };
    if let Some(inner) = user_part::looks_like_base64(text) {
        let message =
            format!("looks like base64 of {inner}, and is encoded once more when it is sent");
        let remark = Remark::new(start, message).with_hint("give the text itself");
        return if family == Family::Custom { Ok(vec![remark]) } else { Err(remark) };
    }
    let unlike = |what: &str| {
        let message = format!("is no {what}, which is what {} is told in", family.name());
        vec![Remark::new(start.clone(), message).with_hint("`nodemolt userdata render` writes it")]
    };
    match family {
        Family::Bottlerocket => toml_text::read(text).map(|_| Vec::new()),
        Family::Al2 | Family::Al2023 if mime::looks_like_mime(text) => {
            mime::read(text).map(|_| Vec::new())
        }
        Family::Al2 | Family::Al2023 => Ok(unlike("MIME")),
        Family::Windows2019 | Family::Windows2022 | Family::Windows2025
            if !text.to_ascii_lowercase().contains("<powershell>") =>
        {
            Ok(unlike("PowerShell in its tags"))
        }
        Family::Windows2019 | Family::Windows2022 | Family::Windows2025 | Family::Custom => {
            Ok(Vec::new())
        }
    }
}

fn check_placement(family: Family, placement: Placement) -> Result<(), MergeConflict> {
    if placement == Placement::BeforeBootstrap || family == Family::Al2 {
        return Ok(());
    }
    let why = match family {
        Family::Al2 => "",
        Family::Al2023 => "nodeadm configures the kubelet from one document; put settings there",
        Family::Bottlerocket => "it runs no scripts between its settings and the kubelet",
        Family::Windows2019 | Family::Windows2022 | Family::Windows2025 => {
            "its bootstrap script starts the kubelet itself"
        }
        Family::Custom => "there is no part of ours to stand between",
    };
    let message = format!("BetweenBootstrapAndKubelet is for AL2, not {}", family.name());
    Err(Remark::of_field("spec.userDataPlacement", message).with_hint(why).into())
}

/// Everything that we tell a node, whatever its family.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub cluster: Cluster,
    /// Ours and the pool's. Those that `NodeRestriction` would refuse are left out when rendering.
    pub labels: BTreeMap<String, String>,
    /// Ours, the pool's and the pool's startup taints.
    pub taints: Vec<Taint>,
    pub kubelet: Kubelet,
    /// `instanceStorePolicy: RAID0`.
    pub instance_store_raid0: bool,
    /// Where the user's part stands beside ours (AL2).
    pub placement: Placement,
    /// The image's release, where it is known: Bottlerocket's commands depend on it.
    pub release: Option<String>,
}

/// How to find and to trust the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub name: String,
    pub endpoint: String,
    /// Base64, as EKS prints it.
    pub certificate_authority: String,
    /// Needed by AL2023.
    pub service_cidr: Option<String>,
    /// The cluster's own DNS, where the class names none.
    pub dns: Vec<IpAddr>,
    pub ip_family: IpFamily,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpFamily {
    V4,
    V6,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    pub key: String,
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// `key=value:effect`, or `key:effect`.
impl fmt::Display for Taint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(out, "{}={value}:{}", self.key, self.effect),
            None => write!(out, "{}:{}", self.key, self.effect),
        }
    }
}

/// The class's kubelet settings: the twelve that every family knows, and the others as they came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kubelet {
    pub cluster_dns: Vec<String>,
    pub max_pods: Option<u32>,
    pub pods_per_core: Option<u32>,
    pub system_reserved: BTreeMap<String, String>,
    pub kube_reserved: BTreeMap<String, String>,
    pub eviction_hard: BTreeMap<String, String>,
    pub eviction_soft: BTreeMap<String, String>,
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    pub eviction_max_pod_grace_period: Option<i32>,
    pub image_gc_high_threshold_percent: Option<i32>,
    pub image_gc_low_threshold_percent: Option<i32>,
    pub cpu_cfs_quota: Option<bool>,
    /// What only AL2023 passes through.
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// `userDataPlacement` of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// The user's part, then ours. What today's users rely on.
    #[default]
    BeforeBootstrap,
    /// Ours, the user's, ours: the kubelet starts last.
    BetweenBootstrapAndKubelet,
}

/// What a person wrote as `userData`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserPart<'a>(pub &'a str);

impl<'a> UserPart<'a> {
    /// White space only is no user part.
    pub fn text(self) -> Option<&'a str> {
        (!self.0.trim().is_empty()).then_some(self.0)
    }
}

/// What a node is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserData {
    pub text: String,
    /// Each part or key, and who wrote it, in the order of the text.
    pub provenance: Vec<Provenance>,
    /// What a person should know although it was rendered.
    pub remarks: Vec<Remark>,
}

impl UserData {
    /// Equal text, equal digest. The version changes with the way it is made.
    pub fn digest(&self) -> String {
        format!("nodemolt-userdata/v1:{}", hex(&Sha256::digest(&self.text)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// `part 2 (text/x-shellscript)`, `settings.kubernetes.max-pods`, `spec.kubelet.config.maxPods`.
    pub what: String,
    pub source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    User,
    Class,
    Nodemolt,
}

/// Something about the user's part, or about a setting. Line and column count from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    pub place: Place,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the user's part.
    UserPart { line: usize, column: usize },
    /// A field of the class or of the cluster, for example `spec.kubelet.evictionHard`.
    Field(String),
    /// The label of this key.
    Label(String),
    /// The taint at this place in the list.
    Taint(usize),
    /// The whole document.
    Whole,
}

impl Remark {
    pub fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), hint: None }
    }

    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::UserPart { line, column } => write!(out, "userData:{line}:{column}: ")?,
            Place::Field(field) => write!(out, "{field}: ")?,
            Place::Label(key) => write!(out, "labels[{}]: ", identity::shown(key))?,
            Place::Taint(index) => write!(out, "taints[{index}]: ")?,
            Place::Whole => write!(out, "userData: ")?,
        }
        out.write_str(&self.message)
    }
}

/// Why nothing was rendered: all of it at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    pub remarks: Vec<Remark>,
    /// What would have been remarked all the same, as far as it was found.
    pub warnings: Vec<Remark>,
}

impl From<Remark> for MergeConflict {
    fn from(remark: Remark) -> Self {
        vec![remark].into()
    }
}

impl From<Vec<Remark>> for MergeConflict {
    fn from(remarks: Vec<Remark>) -> Self {
        Self { remarks, warnings: Vec::new() }
    }
}

/// The class's kubelet settings as they will be on the node: where the class leaves reserved resources,
/// eviction thresholds or the number of pods open, the user's own part may say them. What a node can
/// allocate follows from these. Only Bottlerocket's and AL2023's user data can be read so.
pub fn effective_reservations(
    family: Family,
    class: &Kubelet,
    user: UserPart<'_>,
) -> Result<Kubelet, MergeConflict> {
    match family {
        Family::Bottlerocket => bottlerocket::reservations(class, user),
        Family::Al2023 => al2023::reservations(class, user),
        Family::Al2
        | Family::Windows2019
        | Family::Windows2022
        | Family::Windows2025
        | Family::Custom => Ok(class.clone()),
    }
}

/// Two digits for each byte.
fn hex(bytes: &[u8]) -> String {
    let digit = |it: u8| char::from_digit(it.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|it| [digit(it >> 4), digit(it & 15)]).collect()
}
