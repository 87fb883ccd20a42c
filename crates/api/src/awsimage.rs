//! Which image is this, and what do we remember of it that EC2 does not tell?
//!
//! One object per image, named after its id. The spec says which, and holds the memory: when it was
//! first seen, whose it was then, that it was withdrawn. Backups and `clusterctl move` keep a spec and
//! drop a status, and nothing else remembers those. What EC2 tells again at any time is the status.

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    crd::{self, Crd},
    meta::Object,
    owner,
    problem::{Finding, quoted},
    shape::{self, rule},
    time,
};

pub use status::{AwsImageStatus, DescribedImage, State};

mod status;

/// The kind's name.
pub const KIND: &str = "AWSImage";
/// The group of Cluster API's infrastructure, and the versions of the proposal. They differ by name
/// alone; the last one is stored.
pub const VERSIONS: [&str; 3] = ["v1alpha3", "v1alpha4", "v1beta1"];
/// The same with their group, as they are written.
pub const API_VERSIONS: [&str; 3] = [
    "infrastructure.cluster.x-k8s.io/v1alpha3",
    "infrastructure.cluster.x-k8s.io/v1alpha4",
    "infrastructure.cluster.x-k8s.io/v1beta1",
];

/// Fields that are served and that this version does not act upon, with the reason.
pub const IGNORED_FIELDS: &[(&str, &str)] = &[(
    "spec",
    "this version keeps its memory of images in lock files (`nodemolt images lock`); these objects \
     count once it runs in a cluster",
)];

/// How the kind is declared to the API server.
pub const CRD: Crd = Crd {
    name: "awsimages.infrastructure.cluster.x-k8s.io",
    group: "infrastructure.cluster.x-k8s.io",
    kind: KIND,
    standalone_only: false,
    definition: || crd::in_versions(crd::finish(AwsImageObject::crd()), &VERSIONS, VERSIONS[2]),
};

/// One image of one account in one region.
pub type AwsImage = Object<AwsImageSpec, AwsImageStatus>;

/// Which image, and what is remembered of it.
#[derive(
    CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize,
)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "AWSImage",
    plural = "awsimages",
    root = "AwsImageObject",
    status = "AwsImageStatus",
    derive = "PartialEq",
    doc = "AWSImage is one machine image: what it is, what EC2 says of it, and what nodemolt remembers that EC2 does not tell. nodemolt writes one for each image that is chosen or in use, and for the newest ones of each ask.",
    category = "nodemolt",
    category = "cluster-api",
    shortname = "awsimg",
    label("clusterctl.cluster.x-k8s.io", ""),
    label("clusterctl.cluster.x-k8s.io/move-hierarchy", ""),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".status.image.name",
        description = "The image's name"
    ),
    printcolumn(
        name = "Arch",
        type_ = "string",
        json_path = ".status.image.architecture",
        description = "Its architecture"
    ),
    printcolumn(
        name = "Kubernetes",
        type_ = "string",
        json_path = ".spec.kubernetesVersion",
        description = "The Kubernetes version that it is made for"
    ),
    printcolumn(
        name = "Created",
        type_ = "date",
        json_path = ".status.image.creationDate",
        description = "How old the image is"
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.state",
        description = "Available, Deprecated, Disabled, NotVisible, Deregistered or Unready"
    ),
    printcolumn(
        name = "Nodes",
        type_ = "integer",
        json_path = ".status.nodes",
        description = "How many nodes run it"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether it may boot"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why not, in a word"
    )
)]
#[x_kube(validation = (
    "!has(self.region) || !has(self.image.ref.region) || self.region == self.image.ref.region",
    "`region` and `image.ref.region` differ: write one of them"
))]
#[x_kube(validation = (
    "!has(oldSelf.region) || (has(self.region) && self.region == oldSelf.region)",
    "`region` cannot be changed: an image lives in one region, create another AWSImage"
))]
#[x_kube(validation = (
    "!has(oldSelf.memory) || has(self.memory)",
    "`memory` cannot be removed: it protects nodes from images that were withdrawn; delete the object to forget it"
))]
#[serde(rename_all = "camelCase")]
pub struct AwsImageSpec {
    /// Which image.
    pub image: ImageSource,
    /// The region that the image is in, for example `eu-central-1`. May stand in `image.ref`, too.
    /// Absent, the region that nodemolt works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "region")]
    pub region: Option<String>,
    /// The Kubernetes version that the image is made for, in quotes, for example `"1.35.2"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "kubernetes_version")]
    pub kubernetes_version: Option<String>,
    /// The operating system and its release, for example `ubuntu-24.04` or `al2023`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub os: Option<String>,
    /// The account that the image must be of, as 12 digits in quotes. If EC2 says another, the image
    /// does not boot. Absent, whoever owned it when it was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::account")]
    pub owner_account: Option<String>,
    /// What nodemolt remembers. It writes this itself, once, before it uses the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// Which image.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageSource {
    /// Where EC2 has it.
    #[serde(rename = "ref")]
    pub reference: ImageReference,
}

/// Where EC2 has an image.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = (
    "!has(oldSelf.region) || (has(self.region) && self.region == oldSelf.region)",
    "`region` cannot be changed: an image lives in one region, create another AWSImage"
))]
#[serde(rename_all = "camelCase")]
pub struct ImageReference {
    /// The image's id, for example `ami-0123456789abcdef0`.
    #[schemars(schema_with = "immutable_image_id")]
    pub id: String,
    /// The region that the image is in, for example `eu-central-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "region")]
    pub region: Option<String>,
}

/// What EC2 does not tell, or does not tell any more. Written once and never forgotten: forgetting a
/// withdrawal would let the image boot again.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = (
    "!has(oldSelf.firstSeenAt) || (has(self.firstSeenAt) && self.firstSeenAt == oldSelf.firstSeenAt)",
    "`firstSeenAt` cannot be changed: ages count from it"
))]
#[x_kube(validation = (
    "!has(oldSelf.firstOwner) || (has(self.firstOwner) && self.firstOwner == oldSelf.firstOwner)",
    "`firstOwner` cannot be changed: an image that changes hands must be noticed"
))]
#[x_kube(validation = (
    "!has(oldSelf.appearedLater) || (has(self.appearedLater) && self.appearedLater == oldSelf.appearedLater)",
    "`appearedLater` cannot be changed: it says from when the age counts"
))]
#[x_kube(validation = (
    "!has(oldSelf.withdrawn) || has(self.withdrawn)",
    "`withdrawn` cannot be removed: to boot the image all the same, write an exception in an ImagePolicy"
))]
#[x_kube(validation = (
    "!has(oldSelf.withdrawn) || !has(self.withdrawn) || self.withdrawn == oldSelf.withdrawn || (has(oldSelf.returnedAt) && (!has(oldSelf.withdrawn.at) || oldSelf.withdrawn.at <= oldSelf.returnedAt))",
    "`withdrawn` cannot be changed unless it was taken back: it says what was noticed, and when"
))]
#[x_kube(validation = (
    "!has(oldSelf.returnedAt) || (has(self.returnedAt) && self.returnedAt >= oldSelf.returnedAt)",
    "`returnedAt` cannot be removed or set back: a withdrawal that was taken back would hold again"
))]
#[x_kube(validation = (
    "!has(oldSelf.name) || (has(self.name) && self.name == oldSelf.name)",
    "`name` cannot be changed: EC2 gives an image one name"
))]
#[x_kube(validation = (
    "!has(oldSelf.createdAt) || (has(self.createdAt) && self.createdAt == oldSelf.createdAt)",
    "`createdAt` cannot be changed: images are ordered by it"
))]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// When it was first seen here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub first_seen_at: Option<String>,
    /// Whether it appeared after the first complete answer to its query. Then its age counts from
    /// `firstSeenAt` if that is later than its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub appeared_later: Option<bool>,
    /// The account that owned it when it was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::account")]
    pub first_owner: Option<String>,
    /// That its publisher took it back. Being superseded by a newer image is no withdrawal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawn>,
    /// When a withdrawal was last taken back: one that was noticed before does not count any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub returned_at: Option<String>,
    /// Since when EC2 does not list it, in two answers and more. Taken away when it is listed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub not_listed_since: Option<String>,
    /// What it is called. By this and what follows it is known when EC2 does not list it any more: a parameter may
    /// go on naming it, and then the images before it are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub name: Option<String>,
    /// EC2's word for whose it is, for example `amazon`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub owner_alias: Option<String>,
    /// EC2's word for its processor, for example `arm64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub architecture: Option<String>,
    /// When it was created, as EC2 said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub created_at: Option<String>,
}

/// That a publisher took an image back.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Withdrawn {
    /// How it was told.
    #[schemars(schema_with = "shape::word::<WithdrawnBecause>")]
    pub because: WithdrawnBecause,
    /// When it was noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::time")]
    pub at: Option<String>,
    /// The SSM parameter that was moved back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1011))] // SSM's limit for a name, with its path.
    pub parameter: Option<String>,
    /// The older image that the parameter names since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::image_id")]
    pub moved_back_to: Option<String>,
}

/// How a withdrawal was told.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WithdrawnBecause {
    /// A parameter that named it was moved to an older image.
    PointerMovedBack,
    /// It was deprecated within 90 days of its creation.
    DeprecatedEarly,
    /// It was disabled within 90 days of its creation.
    DisabledEarly,
    /// It was unshared within 90 days of its creation.
    UnsharedEarly,
    /// It stands on a recall list.
    Recalled,
}

fn immutable_image_id(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = shape::image_id(generator);
    let immutable = "cannot be changed: create another AWSImage for another image";
    if let Some(serde_json::Value::Array(rules)) = schema.get_mut("x-kubernetes-validations") {
        rules.push(rule("self == oldSelf", immutable));
    }
    schema
}

fn region(_: &mut SchemaGenerator) -> Schema {
    let message = "is not a region: write its code, for example eu-central-1";
    json_schema!({
        "type": "string",
        "maxLength": 32,
        "x-kubernetes-validations": [rule("self.matches('^[a-z]+(-[a-z]+)+-[0-9]+$')", message)],
    })
}

fn kubernetes_version(_: &mut SchemaGenerator) -> Schema {
    let message =
        "is not a Kubernetes version: write it in quotes, for example \"1.35\" or \"1.35.2\"";
    let shape = "self.matches('^v?[0-9]+[.][0-9]+([.][0-9]+)?([-+][0-9A-Za-z.+-]+)?$')";
    json_schema!({
        "type": "string",
        "maxLength": 63,
        "x-kubernetes-validations": [rule(shape, message)],
    })
}

/// What has to hold between the fields.
pub fn check(image: &AwsImage) -> Vec<Finding> {
    let AwsImageSpec { image: source, region, owner_account, memory, .. } = &image.spec;
    let ImageReference { id, region: inner } = &source.reference;
    let mut found = Vec::new();
    if id.parse::<nodemolt_core::image::ImageId>().is_err() {
        let message = format!("{} is not the id of an image", quoted(id));
        let finding = Finding::error("spec.image.ref.id", message);
        found.push(finding.hint("an id is `ami-` and 8 or 17 digits and letters from a to f"));
    } else if image.metadata.name != *id {
        let message = format!("is not the image's id {}", quoted(id));
        let finding = Finding::warning("metadata.name", message);
        found.push(finding.hint("name it after the image, so that there is one object for each"));
    }
    if let (Some(outer), Some(inner)) = (region, inner)
        && outer != inner
    {
        let message = format!("{} and {} in image.ref differ", quoted(outer), quoted(inner));
        found.push(Finding::error("spec.region", message).hint("write one of them"));
    }
    if let Some(account) = owner_account {
        found.extend(account_check("spec.ownerAccount", account));
    }
    if let Some(Memory {
        first_seen_at,
        first_owner,
        withdrawn,
        returned_at,
        not_listed_since,
        created_at,
        appeared_later: _,
        name: _,
        owner_alias: _,
        architecture: _,
    }) = memory
    {
        let dates = [
            ("firstSeenAt", first_seen_at.as_ref()),
            ("withdrawn.at", withdrawn.as_ref().and_then(|it| it.at.as_ref())),
            ("returnedAt", returned_at.as_ref()),
            ("notListedSince", not_listed_since.as_ref()),
            ("createdAt", created_at.as_ref()),
        ];
        for (field, text) in dates {
            found.extend(text.and_then(|it| time::check(&format!("spec.memory.{field}"), it)));
        }
        if let Some(account) = first_owner {
            found.extend(account_check("spec.memory.firstOwner", account));
        }
    }
    found
}

/// An account by its number, not by one of EC2's words.
fn account_check(field: &str, account: &str) -> Option<Finding> {
    if account.bytes().all(|it| it.is_ascii_digit()) {
        return owner::check(field, account);
    }
    let message = format!("{} is not the number of an account", quoted(account));
    Some(Finding::error(field, message).hint("write its 12 digits in quotes"))
}
