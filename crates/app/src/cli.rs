//! What can be typed?

mod world;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;
use nodemolt_core::ask::Age;
use nodemolt_core::catalog::{Outcome, Query};
use nodemolt_core::image::{AccountId, ImageId};
use nodemolt_core::launch::{CapacityType, ReservationId, SecurityGroupId, Tenancy};
use nodemolt_core::lookup::Minor;
use nodemolt_fit::Family;

pub(crate) use world::*;

/// Keeps every Kubernetes node on AWS on the right machine image.
///
/// This version needs no cluster, no AWS account and no network. It answers from plain files: which images
/// there are, which one a class would boot, on which instance types, and why not the others. And it replaces
/// nodes in a simulated world: `nodemolt demo` shows it, `nodemolt sim` lets you play.
#[derive(Debug, Parser)]
#[command(name = "nodemolt", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,

    /// Draw with ASCII characters only
    #[arg(long, global = true)]
    pub ascii: bool,

    /// When to use colours; NO_COLOR and CLICOLOR_FORCE are honoured too
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

const EXIT_CODES: &str = "\
Exit codes:
  0   done; for `resolve`: every instance type asked for has an image
  1   failed; for `resolve`: no image matches; for `userdata lint` and
      `validate`: something was found; for `pack`: a pod has no place;
      for `sim replay`: a law was broken
  2   with --detailed-exitcode, for `userdata diff`: there are differences;
      for `drift`: something has drifted; for `plan`: there is something
      to replace
  3   held back by policy, quarantine, age or withdrawal
  64  mistyped
";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Resolve(Resolve),
    Images(Images),
    Types(Types),
    Launch(Launch),
    Userdata(Userdata),
    Crds(Crds),
    Validate(Validate),
    Pack(Pack),
    Demo(Demo),
    Sim(Sim),
    Status(Status),
    Drift(Drift),
    Plan(Plan),
    Explain(Explain),
    Upgrade(Upgrade),
    Pause(Pause),
    Resume(Resume),
    Unlock(Unlock),
    Completion(Completion),
}

/// Where the images come from.
#[derive(Debug, Args)]
pub(crate) struct CatalogFiles {
    /// What is known of images: the JSON of `aws ec2 describe-images`, of `aws ssm get-parameter…`, or a
    /// lock file of `nodemolt images lock`; may be repeated, and `-` is standard input
    #[arg(long = "catalog", value_name = "FILE")]
    pub catalog: Vec<PathBuf>,
}

/// Where the instance types come from.
#[derive(Debug, Clone, Args)]
pub(crate) struct TypeFiles {
    /// More instance types: the JSON of `aws ec2 describe-instance-types`; it wins over the shipped table
    #[arg(long = "types", value_name = "FILE")]
    pub types: Vec<PathBuf>,

    /// Use only the types of `--types`, not the shipped table
    #[arg(long, requires = "types")]
    pub only_types: bool,
}

/// Say which image a class would boot, on which instance types, and why not the others
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # which image would these classes boot today, and why not the newer one?
  nodemolt resolve -f classes/ --catalog images.json --catalog parameters.json --kubernetes 1.35 --explain

  # what would a minimum age of a week mean?
  nodemolt resolve alias=al2023@latest --min-age 7d --kubernetes 1.35 --catalog catalog.lock

  # would these two types have an image on the first of October?
  nodemolt resolve -f class.yaml --catalog catalog.lock --at 2026-10-01 --instance-types m7g.large,g6.xlarge

What is asked:  alias=FAMILY@VERSION  id=ami-…  name=PATTERN  owner=…
                ssmParameter=NAME  tag:KEY=VALUE  family=NAME
Exit codes:     0 every type asked for has an image, 3 a rule holds one back,
                1 none matches, 64 mistyped
")]
pub(crate) struct Resolve {
    /// What to ask for, in place of a class: words that must all hold
    #[arg(value_name = "KEY=VALUE")]
    pub ask: Vec<String>,

    /// Classes, pools, ImagePolicies and ImageQuarantines, as YAML or JSON; a folder means the .yaml,
    /// .yml and .json files in it, and `-` is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub catalog: CatalogFiles,

    /// The account that `self` means
    #[arg(long, value_name = "ID")]
    pub account: Option<AccountId>,

    /// An image that nodes of the class run already; exempt from age, and from age only
    #[arg(long, value_name = "AMI")]
    pub in_use: Vec<ImageId>,

    /// The cluster's Kubernetes version
    #[arg(long, value_name = "VERSION")]
    pub kubernetes: Option<Minor>,

    /// Answer for this moment: RFC 3339, or a date, whose start in UTC is meant
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,

    /// What if the class asked for this minimum age? Overrides the class's own, not a policy's
    #[arg(long, value_name = "AGE")]
    pub min_age: Option<Age>,

    /// Account for every candidate, term by term
    #[arg(long)]
    pub explain: bool,

    /// The instance types that must have an image
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub instance_types: Vec<String>,

    #[command(flatten)]
    pub types: TypeFiles,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table)]
    pub output: Format,

    /// Leave out the column headers
    #[arg(long)]
    pub no_headers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Wide,
    Json,
    Yaml,
    Name,
}

/// Look at the catalog: list images, get one, write a lock file
#[derive(Debug, Args)]
pub(crate) struct Images {
    #[command(subcommand)]
    pub verb: ImagesVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImagesVerb {
    List(ImagesList),
    Get(ImagesGet),
    Lock(ImagesLock),
}

/// List the images of a catalog by flavour
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt images list --catalog images.json --catalog parameters.json
  nodemolt images list --catalog catalog.lock --kubernetes 1.35 --flavour al2023/x86_64
  nodemolt images list --catalog catalog.lock --flavour - --name 'golden-*' -o wide
")]
pub(crate) struct ImagesList {
    #[command(flatten)]
    pub catalog: CatalogFiles,

    /// Only releases for this Kubernetes version
    #[arg(long, value_name = "VERSION")]
    pub kubernetes: Option<Minor>,

    /// Only this flavour, such as `al2023/x86_64/nvidia`, or a family, such as `bottlerocket`; `-` means
    /// whatever is no release of a known family
    #[arg(long, value_name = "NAME")]
    pub flavour: Option<String>,

    /// Only images whose name matches, with EC2's `*` and `?`
    #[arg(long, value_name = "PATTERN")]
    pub name: Option<String>,

    /// Show the catalog of this moment
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table)]
    pub output: Format,

    /// Leave out the column headers
    #[arg(long)]
    pub no_headers: bool,
}

/// Show all that is known of an image: state, dates, and which parameters name it or have named it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt images get ami-081ff48028515f6db --catalog images.json --catalog parameters.json
  nodemolt images get ami-081ff48028515f6db --catalog catalog.lock --at 2026-11-09 -o json
")]
pub(crate) struct ImagesGet {
    /// The images
    #[arg(required = true, value_name = "AMI")]
    pub ids: Vec<ImageId>,

    #[command(flatten)]
    pub catalog: CatalogFiles,

    /// Show the catalog of this moment
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// Write a lock file: the catalog with what was asked, what became of it, and when
///
/// A file whose question is not told adds and never removes. With --asked, a complete answer also says
/// what is not there any more; a throttled or denied one changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt images lock --catalog images.json --catalog parameters.json > catalog.lock

  # a day later: what is new was first seen then, what is gone is remembered
  nodemolt images lock --previous catalog.lock --catalog today.json --asked owner=amazon,name='amazon-eks-node-*',include-deprecated > new.lock

  # the question could not be asked: nothing shrinks
  nodemolt images lock --previous catalog.lock --asked owner=amazon,name='amazon-eks-node-*' --outcome throttled > new.lock

A query:  owner=… name=… id=… tag:KEY=… public-ssm-parameter-name=… region=…
          include-deprecated include-disabled, or parameter=… path=…
          Words are separated by commas, and a word may be repeated.
")]
pub(crate) struct ImagesLock {
    #[command(flatten)]
    pub catalog: CatalogFiles,

    /// The lock file to go on from; first seen and withdrawn are kept
    #[arg(long, value_name = "LOCK")]
    pub previous: Option<PathBuf>,

    /// The question that the catalog files answer
    #[arg(long, value_name = "QUERY")]
    pub asked: Option<Query>,

    /// What became of the question: complete, incomplete, throttled, denied or failed
    #[arg(long, value_name = "OUTCOME")]
    pub outcome: Option<Outcome>,

    /// When it was asked; now, if not given
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub seen: Option<Timestamp>,

    /// The account that asked, for `owner=self`
    #[arg(long, value_name = "ID")]
    pub account: Option<AccountId>,
}

/// Say what a node of an instance type would offer: labels, capacity, each reserved part, allocatable
#[derive(Debug, Args)]
pub(crate) struct Types {
    #[command(subcommand)]
    pub verb: TypesVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TypesVerb {
    List(TypesList),
    Get(TypesGet),
}

/// What a class and a catalog say about a type.
#[derive(Debug, Args)]
pub(crate) struct UnderClass {
    /// The class whose kubelet, volumes and family count; with policies and pools beside it
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Which class, where the files hold several
    #[arg(long, value_name = "NAME", requires = "files")]
    pub class: Option<String>,

    #[command(flatten)]
    pub catalog: CatalogFiles,

    /// The account that `self` means
    #[arg(long, value_name = "ID")]
    pub account: Option<AccountId>,

    /// The cluster's Kubernetes version
    #[arg(long, value_name = "VERSION")]
    pub kubernetes: Option<Minor>,

    /// Answer for this moment
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,

    /// Network interfaces that pods may not use, as Karpenter's --reserved-enis
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = whole::<u32, 0, 4_294_967_295>)]
    pub reserved_enis: u32,

    /// The share of memory that the hypervisor takes, as Karpenter's --vm-memory-overhead-percent
    #[arg(long, value_name = "SHARE", default_value = "0.075", value_parser = share)]
    pub vm_memory_overhead_percent: u32,

    #[command(flatten)]
    pub types: TypeFiles,
}

/// List instance types
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt types list
  nodemolt types list -l 'kubernetes.io/arch=arm64,instance-cpu>=4,instance-cpu<=16'
  nodemolt types list -l 'instance-gpu-manufacturer in (nvidia,amd)' -o wide
  nodemolt types list -f class.yaml --catalog catalog.lock --kubernetes 1.35

A selector:  key=value  key!=value  key  !key  key>n  key<n  key in (a,b)  key notin (a,b)
             Commas mean and. `instance-cpu` is short for `karpenter.k8s.aws/instance-cpu`.
")]
pub(crate) struct TypesList {
    #[command(flatten)]
    pub under: UnderClass,

    /// Only types that satisfy this, such as `kubernetes.io/arch=arm64` or `instance-gpu-count>0`
    #[arg(short = 'l', long, value_name = "LABEL=VALUE")]
    pub selector: Vec<String>,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table)]
    pub output: Format,

    /// Leave out the column headers
    #[arg(long)]
    pub no_headers: bool,
}

/// Show one instance type, or several
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt types get m7g.large
  nodemolt types get m7g.large -f class.yaml --catalog catalog.lock --kubernetes 1.35
  nodemolt types get g4ad.xlarge --types examples/types/amd-and-gaudi.json -o json

Exit codes:  0 done; with a catalog: 3 a rule holds an image back, 1 a type has none; 64 mistyped
")]
pub(crate) struct TypesGet {
    /// The instance types
    #[arg(required = true, value_name = "TYPE")]
    pub names: Vec<String>,

    #[command(flatten)]
    pub under: UnderClass,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// Say how nodes would be started: the launch template of a class
#[derive(Debug, Args)]
pub(crate) struct Launch {
    #[command(subcommand)]
    pub verb: LaunchVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LaunchVerb {
    Render(LaunchRender),
}

/// Print what `aws ec2 create-launch-template --cli-input-json` takes
///
/// What the class or its status knows is taken from there. What they do not know is a flag; what is then
/// still missing is listed, and nothing is rendered. Equal content has an equal name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # the template of a class; what it does not know is asked for
  nodemolt launch render -f class.yaml --image ami-0123456789abcdef0 --instance-profile nodes \\
      --security-group sg-0a --cluster-name blue --nodepool web \\
      --user-data user-data.txt > template.json
  aws ec2 create-launch-template --cli-input-json file://template.json

  # a node in a capacity block
  nodemolt launch render -f class.yaml … --capacity-type reserved --capacity-reservation cr-0a --capacity-reservation-type capacity-block

Exit codes:     0 rendered, 1 something is missing or refused, 64 mistyped
")]
pub(crate) struct LaunchRender {
    /// The class, as YAML or JSON; a pool beside it that refers to it gives its name; `-` is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Which class, where the files hold several
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,

    /// The image to boot
    #[arg(long, value_name = "AMI")]
    pub image: Option<ImageId>,

    /// The instance profile, where the class names a role and its status no profile
    #[arg(long, value_name = "NAME")]
    pub instance_profile: Option<String>,

    /// The security groups, where the class selects them by tag or name and its status lists none
    #[arg(long = "security-group", value_name = "SG")]
    pub security_groups: Vec<SecurityGroupId>,

    /// What the node is told at boot, already rendered; a Custom class has its own
    #[arg(long, value_name = "FILE")]
    pub user_data: Option<PathBuf>,

    /// The cluster's name, for the tags
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,

    /// The pool's name, for the tags
    #[arg(long, value_name = "NAME")]
    pub nodepool: Option<String>,

    /// on-demand, spot or reserved
    #[arg(long, value_name = "TYPE", default_value_t = CapacityType::OnDemand)]
    pub capacity_type: CapacityType,

    /// The reservation to start in, for reserved capacity
    #[arg(long, value_name = "CR")]
    pub capacity_reservation: Option<ReservationId>,

    /// What kind of reservation it is, where the class's status does not say
    #[arg(long, value_enum, value_name = "TYPE")]
    pub capacity_reservation_type: Option<ReservationType>,

    /// Let on-demand nodes use open reservations that match; they keep off them otherwise
    #[arg(long)]
    pub open_reservations: bool,

    /// How many EFA interfaces; spec.networkInterfaces stands over it
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = whole::<u32, 0, 32>)]
    pub efa: u32,

    /// The cluster uses IPv6
    #[arg(long)]
    pub ipv6: bool,

    /// default or dedicated; not given, the network decides
    #[arg(long, value_name = "TENANCY")]
    pub tenancy: Option<Tenancy>,

    /// The partition of the placement group
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u32, 1, 7>)]
    pub partition: Option<u32>,

    /// Nodes run Nitro enclaves
    #[arg(long)]
    pub enclave: bool,

    /// The region, for what some regions do not know
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,

    /// How to print; digest is the class's static digest alone, which needs nothing but the class
    #[arg(short = 'o', long, value_enum, default_value_t = DocumentFormat::Json)]
    pub output: DocumentFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReservationType {
    Default,
    CapacityBlock,
    Interruptible,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    Json,
    Yaml,
    Digest,
}

/// Say what nodes are told at boot: render it, compare it, look for mistakes
#[derive(Debug, Args)]
pub(crate) struct Userdata {
    #[command(subcommand)]
    pub verb: UserdataVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserdataVerb {
    Render(UserdataRender),
    Diff(UserdataDiff),
    Lint(UserdataLint),
}

/// What a class does not know of the node and its cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct Boot {
    /// The pool whose labels and taints the node has
    #[arg(long = "pool", value_name = "FILE")]
    pub pools: Vec<PathBuf>,

    /// Which pool, where the files hold several
    #[arg(long, value_name = "NAME")]
    pub nodepool: Option<String>,

    /// Which class, where the files hold several
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,

    /// The cluster: the JSON of `aws eks describe-cluster`; the flags below stand over it
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,

    /// The cluster's name
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,

    /// The address of the API server, `https://…`
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,

    /// The cluster's certificate authority, in base64
    #[arg(long, value_name = "BASE64")]
    pub ca: Option<String>,

    /// The addresses of services, such as `10.100.0.0/16`
    #[arg(long, value_name = "CIDR")]
    pub service_cidr: Option<String>,

    /// The cluster's DNS; not given, the tenth address of the services, where EKS puts it
    #[arg(long, value_name = "ADDRESS")]
    pub dns: Vec<IpAddr>,

    /// ipv4 or ipv6; not given, as the services' addresses are
    #[arg(long, value_enum, value_name = "FAMILY")]
    pub ip_family: Option<IpFamilyName>,

    /// The instance type, for the number of pods where the class names none
    #[arg(long, value_name = "NAME")]
    pub instance_type: Option<String>,

    #[command(flatten)]
    pub types: TypeFiles,

    /// What if the class were of this family? AL2, AL2023, Bottlerocket, Windows2019, Windows2022,
    /// Windows2025 or Custom
    #[arg(long, value_name = "NAME")]
    pub family: Option<Family>,

    /// on-demand, spot or reserved, for the node's label
    #[arg(long, value_name = "TYPE")]
    pub capacity_type: Option<CapacityType>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IpFamilyName {
    Ipv4,
    Ipv6,
}

/// Print what a node of a class is told: the class's user data merged with ours
///
/// What is missing is listed with its flag; what cannot be merged is refused with its line. Nothing is
/// printed then.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  aws eks describe-cluster --name blue > cluster.json
  nodemolt userdata render -f class.yaml --pool pool.yaml --cluster cluster.json --instance-type m7g.large

  # who said what?
  nodemolt userdata render -f class.yaml --cluster cluster.json --provenance

  # what if it were Bottlerocket?
  nodemolt userdata render -f class.yaml --cluster cluster.json --family Bottlerocket

Exit codes:     0 rendered, 1 something is missing or refused, 64 mistyped
")]
pub(crate) struct UserdataRender {
    /// The class, as YAML or JSON; a pool beside it that refers to it is taken; `-` is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub boot: Boot,

    /// Print each part or key with who said it, in place of the text
    #[arg(long)]
    pub provenance: bool,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = TextFormat::Text)]
    pub output: TextFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    Text,
    Base64,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    Text,
    Json,
}

/// Say what differs between what two nodes are told: parts and keys first, then the text
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # two classes, rendered with the same flags
  nodemolt userdata diff before.yaml after.yaml --cluster cluster.json

  # two texts that were rendered before
  nodemolt userdata diff running.txt wanted.txt --detailed-exitcode

Exit codes:     0 compared, 1 one of the two cannot be rendered,
                2 they differ and --detailed-exitcode, 64 mistyped
")]
pub(crate) struct UserdataDiff {
    /// A class, or a rendered text: as it is, in base64, or as JSON of `render`
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,

    /// The same
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,

    #[command(flatten)]
    pub boot: Boot,

    /// Exit with 2 where they differ
    #[arg(long)]
    pub detailed_exitcode: bool,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = PlainFormat::Text)]
    pub output: PlainFormat,
}

/// Look for mistakes in a class's user data: what rendering would refuse or remark, and secrets
///
/// Without a cluster, one of the usual size stands in for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt userdata lint -f class.yaml
  nodemolt userdata lint -f class.yaml --pool pool.yaml --cluster cluster.json

  # every class in a folder
  nodemolt userdata lint -f manifests/

Exit codes:     0 clean, 1 something was found, 64 mistyped
")]
pub(crate) struct UserdataLint {
    /// The class or several, as YAML or JSON; a folder means the manifests in it; `-` is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub boot: Boot,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = PlainFormat::Text)]
    pub output: PlainFormat,
}

/// Say what the API server would refuse, and what the controller could not use
///
/// Every object is asked about twice: would the API server take it (by schema and rules of the definitions
/// that `nodemolt crds --standalone` prints), and could the controller do what it says? Objects of other
/// kinds are passed over with a note. Classes are held to the ImagePolicies that are given along with them, as
/// the admission policies of `nodemolt crds --policies` would. No cluster is needed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # before a merge, in CI
  nodemolt validate -R -f manifests/

  # may these classes name these owners and images?
  nodemolt validate -f policies/ -f classes/

  # what a template renders
  helm template . | nodemolt validate -f -

  # would this change be taken? Fields that may not change are compared with what is there
  kubectl get nodepool general -o yaml > old.yaml
  nodemolt validate -f general.yaml --old old.yaml

Exit codes:  0 nothing found, or warnings only, 1 something would be refused or
             cannot be read, 64 mistyped
")]
pub(crate) struct Validate {
    /// Manifests, as YAML or JSON; a folder means the .yaml, .yml and .json files in it, and `-` is
    /// standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Look into the folders of a folder, too
    #[arg(short = 'R', long)]
    pub recursive: bool,

    /// What is in the cluster now: objects with the same kind and name are changed, not created
    #[arg(long, value_name = "FILE")]
    pub old: Option<PathBuf>,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = ValidateFormat::Text)]
    pub output: ValidateFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ValidateFormat {
    Text,
    Json,
}

/// Print the definitions of our kinds, for `kubectl apply`
///
/// What is printed is what stands in `deploy/crds`. Where Karpenter is installed, its own kinds are its;
/// without it, --standalone brings them along.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # a cluster with Karpenter
  nodemolt crds | kubectl apply --server-side -f -

  # a cluster without Karpenter: today's NodePools and EC2NodeClasses apply unchanged
  nodemolt crds --standalone | kubectl apply --server-side -f -

  # lock down what classes may ask for; see docs/lockdown.md
  nodemolt crds --policies | kubectl apply --server-side -f -
")]
pub(crate) struct Crds {
    /// Only these: kinds, plurals, short names or whole names such as imagepolicies.nodemolt.dev
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Also Karpenter's classes, pools and claims, for a cluster without Karpenter
    #[arg(long)]
    pub standalone: bool,

    /// Print the admission policies that lock classes down, in place of the definitions
    #[arg(long, conflicts_with_all = ["only", "standalone"])]
    pub policies: bool,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = CrdFormat::Yaml)]
    pub output: CrdFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CrdFormat {
    Yaml,
    Json,
}

/// Say where pods would fit: on which nodes, on what new ones, at which price, and if not, why
///
/// Reads what `kubectl get pods,nodes,nodepools,ec2nodeclasses,… -o yaml` prints, and plain manifests: a
/// Deployment stands for its replicas, daemons are a part of every new node.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # would this fit, and on what?
  nodemolt pack -f deployment.yaml -f pools/ --region us-east-1

  # all that is pending in a cluster
  kubectl get pods,nodes,nodepools,nodeclaims,ec2nodeclasses,daemonsets,deployments,replicasets,statefulsets,jobs,namespaces,limitranges,pv,pvc,storageclasses,csinodes,csidrivers,volumeattachments,priorityclasses,runtimeclasses -A -o yaml > cluster.yaml
  nodemolt pack -f cluster.yaml

  # where would the pods of two nodes go, if both left?
  nodemolt pack -f cluster.yaml --leaving ip-10-0-1-4.ec2.internal --leaving ip-10-0-2-9.ec2.internal

  # why has this pod no place?
  nodemolt pack -f cluster.yaml --explain shop/cart-0

Prices are what these print, or a table: a line `type,REGION`, then `m5.large,0.096`
  aws pricing get-products --service-code AmazonEC2 …
  aws ec2 describe-spot-price-history

Offerings are what these print, and what cannot be had now, as docs/pack.md shows
  aws ec2 describe-instance-type-offerings --location-type availability-zone
  aws ec2 describe-capacity-reservations

Exit codes:     0 every pod has a place, 1 some have none, 64 mistyped
")]
pub(crate) struct Pack {
    /// Pods, nodes, workloads, pools, classes, volumes, …, as YAML or JSON; a folder means the .yaml, .yml
    /// and .json files in it, and `-` is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,

    /// A node that leaves: its pods need another place, together with all that wait for one
    #[arg(long, value_name = "NODE", value_delimiter = ',', num_args = 1..)]
    pub leaving: Vec<String>,

    #[command(flatten)]
    pub types: TypeFiles,

    /// What machines cost; it wins over the shipped table. May be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub prices: Vec<PathBuf>,

    /// In which zones instance types are offered, and what can be had there just now. May be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub offerings: Vec<PathBuf>,

    /// The region, for prices; else that of the zones that are known
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,

    /// Zones in which nodes can be launched, where neither class, offerings nor nodes tell them
    #[arg(long, value_name = "ZONE,…", value_delimiter = ',', num_args = 1..)]
    pub zones: Vec<String>,

    /// Network interfaces that pods may not use, as Karpenter's --reserved-enis
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = whole::<u32, 0, 4_294_967_295>)]
    pub reserved_enis: u32,

    /// The share of memory that the hypervisor takes, as Karpenter's --vm-memory-overhead-percent
    #[arg(long, value_name = "SHARE", default_value = "0.075", value_parser = share)]
    pub vm_memory_overhead_percent: u32,

    /// Account for one pod: what it asks, where it goes or runs, what stands in its way on every node and pool
    #[arg(long, value_name = "NAMESPACE/POD")]
    pub explain: Option<String>,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = PackFormat::Table)]
    pub output: PackFormat,

    /// Leave out the column headers
    #[arg(long)]
    pub no_headers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PackFormat {
    Table,
    Wide,
    Json,
    Yaml,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(nodemolt completion bash)
  nodemolt completion zsh > \"${fpath[1]}/_nodemolt\"
")]
pub(crate) struct Completion {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

fn time(text: &str) -> Result<Timestamp, String> {
    nodemolt_api::into_core::read_time(text).ok_or_else(|| {
        "write a date such as `2026-11-15`, or a time with its zone such as `2026-11-15T09:00:00Z`"
            .to_owned()
    })
}

/// A whole number, in words that say what may be written: not how it is kept.
fn whole<N: TryFrom<u64>, const MIN: u64, const MAX: u64>(text: &str) -> Result<N, String> {
    let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let number = text.parse().ok().filter(|it| digits && (MIN..=MAX).contains(it));
    number
        .and_then(|it: u64| N::try_from(it).ok())
        .ok_or_else(|| format!("write a whole number from {MIN} to {MAX}"))
}

/// `0.075` as millionths.
fn share(text: &str) -> Result<u32, String> {
    let error = || "write a share from 0 to 1, such as `0.075`".to_owned();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    if !digits(whole)
        || !digits(fraction)
        || whole.len() + fraction.len() == 0
        || fraction.len() > 6
    {
        return Err(error());
    }
    let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| error())? };
    let fraction: u32 = format!("{fraction:0<6}").parse().map_err(|_| error())?;
    let millionths = whole.checked_mul(1_000_000).and_then(|it| it.checked_add(fraction));
    millionths.filter(|it| *it <= 1_000_000).ok_or_else(error)
}
