//! What does a class say on the wire?
//!
//! Karpenter's `EC2NodeClass` v1, whole, and four things of ours: `amiMinimumAge`, `requirements` of
//! a selector term, `userDataPlacement`, and the rest of `cpuOptions`.
//!
//! Values are kept as they were written. What has to hold between them is said twice: to the API server
//! as rules beside the fields, with Karpenter's messages where it has them, and in [`check`] for files.
//! What they mean is for the core to say.
//!
//! Where a rule is stricter than Karpenter's, nothing could have worked beyond it:
//! docs/decisions/0014. What is wider is in docs/decisions/0015.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::{
    crd::{self, Crd, schema},
    meta::Object,
};

pub use check::check;
pub use kubelet::Kubelet;
pub use machine::{
    BlockDeviceMapping, ConnectionTracking, CpuOptions, Ebs, MetadataOptions, NetworkInterface,
};
pub use status::{
    EC2NodeClassStatus, RefusedImage, StatusAmi, StatusCapacityReservation, StatusSecurityGroup,
    StatusSubnet,
};
pub use terms::{
    AmiSelectorTerm, CapacityReservationSelectorTerm, PlacementGroupSelector,
    SecurityGroupSelectorTerm, SubnetSelectorTerm,
};

mod terms;
mod machine;
mod kubelet;
mod status;
mod check;
mod node_settings;

/// The kind's name.
pub const KIND: &str = "EC2NodeClass";
/// Karpenter's group and version; also what v1beta1 is shown as.
pub const KARPENTER_V1: &str = "karpenter.k8s.aws/v1";
/// Our group and version, with the same fields.
pub const NODEMOLT_V1ALPHA1: &str = "nodemolt.dev/v1alpha1";

/// In our group: always.
pub const CRD: Crd = Crd {
    name: "ec2nodeclasses.nodemolt.dev",
    group: "nodemolt.dev",
    kind: KIND,
    standalone_only: false,
    definition: || crd::finish(EC2NodeClassObject::crd()),
};
/// In Karpenter's group: the same, where there is no Karpenter.
pub const KARPENTER_CRD: Crd = Crd {
    name: "ec2nodeclasses.karpenter.k8s.aws",
    group: "karpenter.k8s.aws",
    kind: KIND,
    standalone_only: true,
    definition: karpenter_definition,
};

fn karpenter_definition() -> CustomResourceDefinition {
    crd::in_group((CRD.definition)(), "karpenter.k8s.aws", "v1")
}

/// What new nodes boot, and with which settings.
pub type EC2NodeClass = Object<EC2NodeClassSpec, EC2NodeClassStatus>;

/// Which image new nodes boot, where they are, and with which settings.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "nodemolt.dev",
    version = "v1alpha1",
    kind = "EC2NodeClass",
    plural = "ec2nodeclasses",
    root = "EC2NodeClassObject",
    status = "EC2NodeClassStatus",
    derive = "PartialEq",
    doc = "Which image new nodes boot, where they are, and with which settings. Pools refer to it.",
    category = "karpenter",
    category = "nodemolt",
    shortname = "ec2nc",
    shortname = "ec2ncs",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Role", type_ = "string", json_path = ".spec.role", priority = 1),
    printcolumn(
        name = "Image",
        type_ = "string",
        description = "The newest image that new nodes boot.",
        json_path = ".status.amis[0].name"
    ),
    printcolumn(
        name = "Image-Age",
        type_ = "date",
        description = "How long ago that image was made.",
        json_path = ".status.amis[0].createdAt"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        description = "Why it is ready or not, in one word.",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        description = "Why it is ready or not, in a sentence.",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["securityGroupSelectorTerms", "subnetSelectorTerms"]))]
#[x_kube(
    validation = (
        "(has(self.role) && !has(self.instanceProfile)) || (!has(self.role) && has(self.instanceProfile))",
        "must specify exactly one of ['role', 'instanceProfile']",
    ),
    validation = (
        "!has(self.amiFamily) || !has(self.amiSelectorTerms) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2') ? (self.amiFamily == 'Custom' || self.amiFamily == 'AL2') : true)",
        "if set, amiFamily must be 'AL2' or 'Custom' when using an AL2 alias",
    ),
    validation = (
        "!has(self.amiFamily) || !has(self.amiSelectorTerms) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'al2023') ? (self.amiFamily == 'Custom' || self.amiFamily == 'AL2023') : true)",
        "if set, amiFamily must be 'AL2023' or 'Custom' when using an AL2023 alias",
    ),
    validation = (
        "!has(self.amiFamily) || !has(self.amiSelectorTerms) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'bottlerocket') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Bottlerocket') : true)",
        "if set, amiFamily must be 'Bottlerocket' or 'Custom' when using a Bottlerocket alias",
    ),
    validation = (
        "!has(self.amiFamily) || !has(self.amiSelectorTerms) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2019') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2019') : true)",
        "if set, amiFamily must be 'Windows2019' or 'Custom' when using a Windows2019 alias",
    ),
    validation = (
        "!has(self.amiFamily) || !has(self.amiSelectorTerms) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2022') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2022') : true)",
        "if set, amiFamily must be 'Windows2022' or 'Custom' when using a Windows2022 alias",
    ),
    validation = (
        "!has(self.amiFamily) || !has(self.amiSelectorTerms) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == 'windows2025') ? (self.amiFamily == 'Custom' || self.amiFamily == 'Windows2025') : true)",
        "if set, amiFamily must be 'Windows2025' or 'Custom' when using a Windows2025 alias",
    ),
    validation = (
        "has(self.amiFamily) || (has(self.amiSelectorTerms) && self.amiSelectorTerms.exists(x, has(x.alias)))",
        "must specify amiFamily if amiSelectorTerms does not contain an alias",
    ),
    validation = (
        "has(self.amiSelectorTerms) || !has(self.amiFamily) || self.amiFamily != 'Custom'",
        "amiSelectorTerms is required when amiFamily == 'Custom', which has no images of its own",
    ),
)]
pub struct EC2NodeClassSpec {
    /// Where nodes may be: every subnet that any of these terms matches, at most 30 terms. Example:
    /// `[{tags: {kubernetes.io/role/internal-elb: "1"}}]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = ("self.size() != 0", "subnetSelectorTerms cannot be empty"),
        validation = (
            "self.all(x, has(x.tags) || has(x.id))",
            "expected at least one, got none, ['tags', 'id']",
        ),
        validation = (
            "self.size() == 0 || !self.all(x, has(x.id) && has(x.tags))",
            "'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term",
        ),
    )]
    pub subnet_selector_terms: Option<Vec<SubnetSelectorTerm>>,
    /// Which security groups nodes have: all that any of these terms matches, at most 30 terms.
    /// Example: `[{tags: {team: platform}}, {name: nodes}]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = ("self.size() != 0", "securityGroupSelectorTerms cannot be empty"),
        validation = (
            "self.all(x, has(x.tags) || has(x.id) || has(x.name))",
            "expected at least one, got none, ['tags', 'id', 'name']",
        ),
        validation = (
            "self.size() == 0 || !self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",
            "'id' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
        ),
        validation = (
            "self.size() == 0 || !self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",
            "'name' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
        ),
    )]
    pub security_group_selector_terms: Option<Vec<SecurityGroupSelectorTerm>>,
    /// Which capacity reservations nodes may use: all that any of these terms matches, at most 30
    /// terms. Unset, none. Example: `[{tags: {team: training}}]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    #[x_kube(
        validation = (
            "self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",
            "expected at least one, got none, ['tags', 'id', 'instanceMatchCriteria']",
        ),
        validation = (
            "self.size() == 0 || !self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",
            "'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term",
        ),
    )]
    pub capacity_reservation_selector_terms: Option<Vec<CapacityReservationSelectorTerm>>,
    /// The placement group that nodes start in, by its name or its id. Unset, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = (
            "has(self.name) || has(self.id)",
            "expected at least one, got none, ['name', 'id']",
        ),
        validation = (
            "!(has(self.name) && has(self.id))",
            "'name' and 'id' are mutually exclusive",
        ),
    )]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether nodes have a public IPv4 address. Unset, the subnet decides.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "associatePublicIPAddress")]
    pub associate_public_ip_address: Option<bool>,
    /// How many prefixes of addresses (/28 of IPv4, /80 of IPv6) the first network interface has.
    /// Unset, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ip_prefix_count: Option<i32>,
    /// Which images nodes may boot: those that any of these terms matches; of several that suit an
    /// instance type the newest. At most 30 terms. Left out, the newest release of `amiFamily`, as
    /// `alias: al2023@latest` would be for `AL2023`. Example: `[{alias: bottlerocket@v1.44.0}]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 30))]
    #[x_kube(
        validation = (
            "self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))",
            "expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']",
        ),
        validation = (
            "self.all(x, has(x.id) || has(x.alias) || (has(x.owner) && x.owner != '') || (has(x.tags) && x.tags.size() != 0) || (has(x.name) && x.name != '') || (has(x.ssmParameter) && x.ssmParameter != '') || !(has(x.tags) || has(x.name) || has(x.ssmParameter)))",
            "a term with an empty name, empty tags or an empty ssmParameter and nothing else selects every image that Amazon ever published: give it a value",
        ),
        validation = (
            "!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))",
            "'id' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
        ),
        validation = (
            "!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))",
            "'alias' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
        ),
        validation = (
            "!(self.exists(x, has(x.alias)) && self.size() != 1)",
            "'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
        ),
    )]
    pub ami_selector_terms: Option<Vec<AmiSelectorTerm>>,
    /// How old an image must be before nodes boot it: weeks, days, hours and minutes, in this order.
    /// Unset, images are used as soon as they are published. Examples: `2w`, `7d`, `36h`, `1w3d12h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = (
        "self.matches('^([0-9]{1,3}w)?([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?$') && self != ''",
        "amiMinimumAge must be weeks, days, hours and minutes, in this order and each at most once: write for example 2w, 7d, 36h or 1w3d12h",
    ))]
    pub ami_minimum_age: Option<String>,
    /// Who built the image, hence how a node is told to join the cluster. `Custom` is told nothing
    /// but `userData`. Unset, as the alias says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [
        "AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025",
    ]))]
    pub ami_family: Option<String>,
    /// What nodes run or read at their first boot, beside what we tell them: a script or a MIME
    /// document (AL2, AL2023), a `NodeConfig` (AL2023), TOML (Bottlerocket), `PowerShell` (Windows). EC2
    /// takes 16 KiB when all of it is put together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub user_data: Option<String>,
    /// When `userData` runs. `BeforeBootstrap`, the default: before the node is told how to join.
    /// `BetweenBootstrapAndKubelet`: after it is set up and before its kubelet starts, where the
    /// family can do that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["BeforeBootstrap", "BetweenBootstrapAndKubelet"]))]
    pub user_data_placement: Option<String>,
    /// The name of the IAM role that nodes have; an instance profile is made for it. Stands in place
    /// of `instanceProfile`. Example: `KarpenterNodeRole-my-cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = ("self != ''", "role cannot be empty"))]
    pub role: Option<String>,
    /// The name of the instance profile that nodes have. Stands in place of `role`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = ("self != ''", "instanceProfile cannot be empty"))]
    pub instance_profile: Option<String>,
    /// Tags on every machine, volume and network interface that is launched, at most 50. Keys that
    /// say whose a machine is are ours to write. Example: `{team: payments}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::launch_tags")]
    #[x_kube(
        validation = ("self.all(k, k != '')", "empty tag keys aren't supported"),
        validation = (
            "self.all(k, k !='eks:eks-cluster-name')",
            "tag contains a restricted tag matching eks:eks-cluster-name",
        ),
        validation = (
            "self.all(k, !k.startsWith('kubernetes.io/cluster') )",
            "tag contains a restricted tag matching kubernetes.io/cluster/",
        ),
        validation = (
            "self.all(k, k != 'karpenter.sh/nodepool')",
            "tag contains a restricted tag matching karpenter.sh/nodepool",
        ),
        validation = (
            "self.all(k, k !='karpenter.sh/nodeclaim')",
            "tag contains a restricted tag matching karpenter.sh/nodeclaim",
        ),
        validation = (
            "self.all(k, k !='karpenter.k8s.aws/ec2nodeclass')",
            "tag contains a restricted tag matching karpenter.k8s.aws/ec2nodeclass",
        ),
        validation = (
            "self.all(k, !k.matches('^[aA][wW][sS]:'))",
            "tag contains a key that begins with aws: which only AWS may write: choose another key",
        ),
        validation = (
            "self.all(k, k.size() <= 128)",
            "tag contains a key of more than 128 characters, which is all that EC2 takes: shorten it",
        ),
    )]
    pub tags: Option<BTreeMap<String, String>>,
    /// Settings of the kubelet. The fields that are listed are understood here; others are passed on
    /// to the kubelet of AL2023 as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<Kubelet>,
    /// The volumes of nodes, at most 50. Unset, those of the family: one of 20Gi, and for
    /// Bottlerocket and Windows as they need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    #[x_kube(validation = (
        "self.filter(x, has(x.rootVolume)?x.rootVolume==true:false).size() <= 1",
        "must have only one blockDeviceMappings with rootVolume",
    ))]
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// What becomes of local disks. `RAID0`: one array of all of them, which is where pods' files and
    /// container images go. Unset, they are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["RAID0"]))]
    pub instance_store_policy: Option<String>,
    /// The network interfaces of nodes, at most 150. Unset, one, and one for each EFA that pods ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 150))]
    #[x_kube(
        validation = (
            "self.size() == 0 || self.exists(x, x.deviceIndex == 0 && x.networkCardIndex == 0 && x.interfaceType == 'interface')",
            "networkInterfaces must include a primary interface with interfaceType='interface'",
        ),
        validation = (
            "self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex).size() == 1 && (x.interfaceType != 'efa-only' || self.filter(y, x.networkCardIndex == y.networkCardIndex && y.interfaceType == 'efa-only').size() == 1))",
            "networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs, and can have at most one efa device per network card",
        ),
    )]
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// Whether `CloudWatch` gets metrics of nodes every minute, which costs, and not every five. Unset, no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// How pods and processes reach the instance metadata service. By default only with a token, and
    /// not from pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }))]
    pub metadata_options: Option<MetadataOptions>,
    /// When idle connections are forgotten. Unset, as EC2 does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
        "at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",
    ))]
    pub connection_tracking: Option<ConnectionTracking>,
    /// What of the processor is switched on. Unset, as the instance type has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = (
            "has(self.coreCount) == has(self.threadsPerCore)",
            "coreCount and threadsPerCore go together: EC2 takes both or neither, write the other too",
        ),
        validation = (
            "!(has(self.amdSevSnp) && self.amdSevSnp == 'enabled' && has(self.nestedVirtualization) && self.nestedVirtualization == 'enabled')",
            "amdSevSnp and nestedVirtualization cannot both be enabled, no processor has both: keep one",
        ),
    )]
    pub cpu_options: Option<CpuOptions>,
    /// A context that EC2 Fleet takes along, unread. Most people need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub context: Option<String>,
}

impl EC2NodeClassSpec {
    /// The terms that were written, if any.
    pub fn terms(&self) -> &[AmiSelectorTerm] {
        self.ami_selector_terms.as_deref().unwrap_or_default()
    }

    /// The alias that a family without terms stands for, for example `al2@latest`.
    pub fn implied_alias(&self) -> Option<String> {
        let family = self.ami_family.as_deref()?;
        let known = FAMILIES.iter().find(|(_, name)| *name == family);
        match &self.ami_selector_terms {
            Some(_) => None,
            None => known.map(|(alias, _)| format!("{alias}@latest")),
        }
    }
}

/// The families that have an alias: as an alias says it, and as `amiFamily` says it.
pub(crate) const FAMILIES: [(&str, &str); 6] = [
    ("al2", "AL2"),
    ("al2023", "AL2023"),
    ("bottlerocket", "Bottlerocket"),
    ("windows2019", "Windows2019"),
    ("windows2022", "Windows2022"),
    ("windows2025", "Windows2025"),
];
