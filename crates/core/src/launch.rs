//! How is a node started?
//!
//! `what the class says × what this launch needs → specification`
//!
//! A specification is a value: the content of a launch template, and what the request for a fleet says
//! beside it. The template's name is a digest of its content, so a template is made once and never
//! changed. Nothing is filled in that nobody said: what the class does not know is asked of the caller.
//!
//! Elastic GPUs and elastic inference accelerators, which the seed lists, are not here on purpose:
//! `docs/decisions/0013`.

mod words;
mod device;
mod network;
mod tags;
mod check;
mod digest;

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_fit::Family;
use serde::Serialize;

use crate::bootstrap::{IpFamily, Placement};
use crate::image::ImageId;
use crate::node::Stamp;

pub use check::Finding;
pub use device::{BlockDevice, ParseVolumeSizeError, Volume, VolumeSize, family_devices};
pub use digest::{NAME_PREFIX, STATIC_VERSION, StaticDigest};
pub(crate) use digest::{fields, hex_sha256};
pub use network::{ConnectionTracking, Interface, Prefixes, WrittenInterface};
pub use tags::restricted;
pub use words::{
    CapacityType, InstanceStorePolicy, InterfaceKind, Market, ParseIdError, PlacementGroupId,
    Preference, ReservationId, SecurityGroupId, Switch, Tagged, Tenancy, Tokens, UnknownWord,
    VolumeType, WrittenKind,
};

/// Where the metadata service has no IPv6 and EC2 refuses the member, even if it says `disabled`.
const REGIONS_WITHOUT_METADATA_IPV6: [&str; 6] = [
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-south-1",
    "us-isof-east-1",
];

/// The whole of a launch, or everything that stands against it.
pub fn specify(settings: &Settings, occasion: &Occasion) -> Result<Specification, Vec<Finding>> {
    let mut found = settings.check();
    found.extend(check::check_occasion(settings, occasion));
    if !found.is_empty() {
        return Err(found);
    }
    let capacity = &occasion.capacity;
    let tags = tags::tags(&settings.tags, &occasion.cluster, &occasion.pool, &settings.class);
    let mut metadata = settings.metadata;
    if occasion.region.as_deref().is_some_and(|it| REGIONS_WITHOUT_METADATA_IPV6.contains(&it)) {
        metadata.ipv6 = None;
    }
    let template = Template {
        image: occasion.image.as_str().to_owned(),
        instance_profile: occasion.instance_profile.clone(),
        block_devices: device::devices(settings.family, &settings.block_devices),
        metadata,
        interfaces: network::interfaces(settings, occasion),
        detailed_monitoring: settings.detailed_monitoring,
        reservations: Reservations::of(capacity),
        market: capacity.market(),
        cpu: Some(settings.cpu).filter(|it| *it != Cpu::default()),
        enclave: occasion.enclave,
        placement: Where {
            tenancy: occasion.tenancy,
            group: settings.placement_group.clone(),
            partition: occasion.partition,
        },
        tagged: capacity.tagged(),
        tags,
        user_data: occasion.user_data.clone().filter(|it| !it.is_empty()),
    };
    let fleet = Fleet {
        instance_types: occasion.instance_types.clone(),
        zones: occasion.zones.clone(),
        capacity_type: capacity.kind(),
        context: settings.context.clone(),
    };
    Ok(Specification { template, fleet, static_digest: settings.static_digest() })
}

/// How a node is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Specification {
    pub template: Template,
    pub fleet: Fleet,
    pub static_digest: StaticDigest,
}

/// What `CreateLaunchTemplate` is told. Its lists are sorted or sets: EC2 does not care about their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Template {
    pub image: String,
    pub instance_profile: String,
    pub block_devices: Vec<BlockDevice>,
    /// `InstanceMetadataTags` is always disabled: tags may hold what pods should not read.
    pub metadata: Metadata,
    pub interfaces: Vec<Interface>,
    pub detailed_monitoring: bool,
    pub reservations: Reservations,
    pub market: Option<Market>,
    pub cpu: Option<Cpu>,
    pub enclave: bool,
    pub placement: Where,
    /// What else gets `tags`, beside the template itself.
    pub tagged: BTreeSet<Tagged>,
    pub tags: BTreeMap<String, String>,
    /// Plain text; EC2 wants it in base64.
    pub user_data: Option<String>,
}

impl Template {
    /// Equal content, equal name. Instance types and zones are no content: the same template serves all
    /// of them, and an account has room for a few thousand templates only.
    pub fn name(&self) -> String {
        digest::name(self)
    }
}

/// What `CreateFleet` is told beside the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    pub instance_types: BTreeSet<String>,
    pub zones: BTreeSet<String>,
    pub capacity_type: CapacityType,
    pub context: Option<String>,
}

/// What a class says of how its nodes are started. Numbers are as they were written; [`Settings::check`]
/// says which cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub class: String,
    pub family: Family,
    /// None means the family's own.
    pub block_devices: Vec<BlockDevice>,
    /// Tells the node what to do with local disks; the template has no member for it.
    pub instance_store: Option<InstanceStorePolicy>,
    pub metadata: Metadata,
    pub interfaces: Vec<WrittenInterface>,
    pub public_ip: Option<bool>,
    pub ip_prefixes: Option<i64>,
    pub connection_tracking: Option<ConnectionTracking>,
    pub tags: BTreeMap<String, String>,
    pub identity: Identity,
    pub detailed_monitoring: bool,
    pub cpu: Cpu,
    pub placement_group: Option<PlacementGroup>,
    pub context: Option<String>,
    /// `userData` as a person wrote it. The template gets the rendered text; this is for the digest.
    pub user_part: Option<String>,
    pub user_part_placement: Placement,
    /// `kubelet`, whole; null if there is none.
    pub kubelet: serde_json::Value,
}

impl Settings {
    /// A class that says nothing but its name, its family and its role.
    pub fn of(class: &str, family: Family, role: &str) -> Self {
        Self {
            class: class.to_owned(),
            family,
            block_devices: Vec::new(),
            instance_store: None,
            metadata: Metadata::default(),
            interfaces: Vec::new(),
            public_ip: None,
            ip_prefixes: None,
            connection_tracking: None,
            tags: BTreeMap::new(),
            identity: Identity::Role(role.to_owned()),
            detailed_monitoring: false,
            cpu: Cpu::default(),
            placement_group: None,
            context: None,
            user_part: None,
            user_part_placement: Placement::default(),
            kubelet: serde_json::Value::Null,
        }
    }

    /// Everything that the schema of the class, or EC2, would refuse.
    pub fn check(&self) -> Vec<Finding> {
        check::check(self)
    }

    /// What EC2 would refuse although each number is one that it knows: a volume's operations for its size,
    /// its throughput for its operations.
    pub fn proportions(&self) -> Vec<Finding> {
        check::proportions(self)
    }

    /// What is stamped on a node, and compared with the class later.
    pub fn static_digest(&self) -> StaticDigest {
        digest::static_digest(self)
    }

    /// The same with each field, so that a difference can be told by its name.
    pub fn static_stamp(&self) -> Stamp {
        let digest = self.static_digest().as_str().to_owned();
        Stamp { digest, fields: digest::static_fields(self) }
    }
}

/// Who nodes are, to AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A profile is made for it, whose name the class does not know.
    Role(String),
    InstanceProfile(String),
}

/// How the instance metadata service answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Metadata {
    pub endpoint: Switch,
    pub ipv6: Option<Switch>,
    /// Two reach pods.
    pub hop_limit: i64,
    pub tokens: Tokens,
}

/// The safe ones: whoever asks needs a token, and a pod's request does not get that far.
impl Default for Metadata {
    fn default() -> Self {
        Self {
            endpoint: Switch::Enabled,
            ipv6: Some(Switch::Disabled),
            hop_limit: 1,
            tokens: Tokens::Required,
        }
    }
}

/// What of the processor is switched on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cpu {
    pub cores: Option<i64>,
    pub threads_per_core: Option<i64>,
    pub amd_sev_snp: Option<Switch>,
    pub nested_virtualization: Option<Switch>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum PlacementGroup {
    Name(String),
    Id(PlacementGroupId),
}

/// Where a node runs, within its zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Where {
    /// Absent, the network decides.
    pub tenancy: Option<Tenancy>,
    pub group: Option<PlacementGroup>,
    pub partition: Option<u32>,
}

/// What is known only when a node is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occasion {
    pub cluster: String,
    pub pool: String,
    pub region: Option<String>,
    pub ip_family: IpFamily,
    pub image: ImageId,
    pub instance_types: BTreeSet<String>,
    pub zones: BTreeSet<String>,
    pub capacity: Capacity,
    pub security_groups: BTreeSet<SecurityGroupId>,
    pub instance_profile: String,
    /// What `bootstrap` rendered, not yet in base64.
    pub user_data: Option<String>,
    /// How many EFA interfaces the pods want. What the class writes about interfaces stands over it.
    pub efa: u32,
    pub tenancy: Option<Tenancy>,
    pub partition: Option<u32>,
    /// Whether nodes run Nitro enclaves.
    pub enclave: bool,
}

/// From which capacity a node comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capacity {
    /// Without `open` a node keeps off reservations, as in Karpenter: else it would use up one that
    /// is counted elsewhere.
    OnDemand {
        open: bool,
    },
    Spot,
    Reserved(Reservation),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub id: ReservationId,
    /// Present where the reservation is a market of its own.
    pub market: Option<Market>,
}

impl Capacity {
    pub fn kind(&self) -> CapacityType {
        match self {
            Self::OnDemand { .. } => CapacityType::OnDemand,
            Self::Spot => CapacityType::Spot,
            Self::Reserved(_) => CapacityType::Reserved,
        }
    }

    fn market(&self) -> Option<Market> {
        match self {
            Self::OnDemand { .. } | Self::Spot => None,
            Self::Reserved(reservation) => reservation.market,
        }
    }

    fn tagged(&self) -> BTreeSet<Tagged> {
        let mut tagged = BTreeSet::from([Tagged::NetworkInterface]);
        if *self == Self::Spot {
            tagged.insert(Tagged::SpotInstancesRequest);
        }
        tagged
    }
}

/// Which reservations a node may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reservations {
    pub preference: Preference,
    pub target: Option<ReservationId>,
}

impl Reservations {
    fn of(capacity: &Capacity) -> Self {
        match capacity {
            Capacity::OnDemand { open: true } => {
                Self { preference: Preference::Open, target: None }
            }
            Capacity::OnDemand { open: false } | Capacity::Spot => {
                Self { preference: Preference::None, target: None }
            }
            Capacity::Reserved(reservation) => {
                Self { preference: Preference::Only, target: Some(reservation.id.clone()) }
            }
        }
    }
}
