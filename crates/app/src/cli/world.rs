//! What can be typed about a fleet, and about a simulated world?

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use nodemolt_core::image::{AccountId, ImageId};

/// Where the simulated world is kept.
#[derive(Debug, Args)]
pub(crate) struct WorldPath {
    /// The file of the simulated world; without FILE the one in your state folder,
    /// `$XDG_STATE_HOME/nodemolt/sim.json`, which is also meant where `--sim` is left out
    #[arg(
        id = "sim",
        long = "sim",
        value_name = "FILE",
        num_args = 0..=1,
        help_heading = "World"
    )]
    #[expect(clippy::option_option, reason = "absent, alone, or with a value: clap's own form")]
    pub file: Option<Option<PathBuf>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FleetFormat {
    Table,
    Wide,
    Json,
    Yaml,
}

/// Live in a simulated world: a cluster and a region in a file, with a clock of their own
///
/// A world is a scenario, a seed and what was done since. The same three give the same life, always.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt sim list                                   # what is there to play with?
  nodemolt sim load two-nodes-budget-one
  nodemolt sim publish amazon-eks-node-al2023-arm64-standard-1.33-v20260730
  nodemolt sim run 5m                                 # five minutes pass; what happened?
  nodemolt status
  nodemolt explain node-1                             # why is it not replaced yet?
")]
pub(crate) struct Sim {
    #[command(subcommand)]
    pub verb: SimVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimVerb {
    Load(SimLoad),
    List(SimList),
    Run(SimRun),
    Publish(SimPublish),
    Fault(SimFault),
    Apply(SimApply),
    Delete(SimDelete),
    /// Close a node for new pods, as `kubectl cordon` would
    Cordon(SimCordon),
    /// Open a node for new pods again, as `kubectl uncordon` would
    Uncordon(SimCordon),
    Untaint(SimUntaint),
    Annotate(SimAnnotate),
    Hold(SimHold),
    Release(SimRelease),
    Replay(SimReplay),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimFormat {
    Text,
    Json,
}

/// Begin a world: a scenario by its name, or a file of your own
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt sim load two-nodes-budget-one
  nodemolt sim load ./mine.yaml --seed 7 --sim mine.world

A world that is there already is replaced. docs/simulator.md says what a scenario is.
")]
pub(crate) struct SimLoad {
    /// A name that `nodemolt sim list` prints, or a YAML file; `-` is standard input
    pub scenario: String,

    /// What chance does: the same seed, the same life
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = super::whole::<u64, 0, { u64::MAX }>)]
    pub seed: u64,

    #[command(flatten)]
    pub world: WorldPath,
}

/// List the scenarios, and the world that is loaded
#[derive(Debug, Args)]
pub(crate) struct SimList {
    #[command(flatten)]
    pub world: WorldPath,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = SimFormat::Text)]
    pub output: SimFormat,

    /// Leave out the column headers
    #[arg(long)]
    pub no_headers: bool,
}

/// Let time pass, and tell what happened
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt sim run 5m
  nodemolt sim run 1h30m --all        # every step, as the laws see it
")]
pub(crate) struct SimRun {
    /// How long: `90s`, `1h30m`, `8d`
    #[arg(value_parser = length)]
    pub duration: SignedDuration,

    /// Tell every step, not only what people would ask about
    #[arg(long)]
    pub all: bool,

    /// How to print; `json` is one object a line, the last one of kind `SimulationEnd`
    #[arg(short = 'o', long, value_enum, default_value_t = SimFormat::Text)]
    pub output: SimFormat,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Publish an image, or change what was published
#[derive(Debug, Args)]
#[command(
    override_usage = "nodemolt sim publish [OPTIONS] NAME\n       nodemolt sim publish move PARAMETER IMAGE\n       nodemolt sim publish put PARAMETER VALUE\n       nodemolt sim publish deprecate|disable|enable|deregister|unshare IMAGE",
    after_help = "\
Examples:
  # a release of a known family: architecture, owner and parameters follow from its name
  nodemolt sim publish amazon-eks-node-al2023-arm64-standard-1.33-v20260730

  # an image of your own, on which no machine ever joins
  nodemolt sim publish golden-2 --arch arm64 --parameter /golden/latest --stillborn

  nodemolt sim publish move /golden/latest golden-1
  nodemolt sim publish deprecate golden-1
"
)]
pub(crate) struct SimPublish {
    /// The image's name; or one of `move`, `put`, `deprecate`, `disable`, `enable`, `deregister`,
    /// `unshare` with what it is about
    #[arg(required = true, value_name = "WORD")]
    pub words: Vec<String>,

    /// Its id; else one is made up
    #[arg(long, value_name = "AMI")]
    pub id: Option<ImageId>,

    /// Its processor, where the name does not tell: `x86_64` or `arm64`
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,

    /// Who owns it, where the name does not tell
    #[arg(long, value_name = "ACCOUNT")]
    pub owner: Option<AccountId>,

    /// When it was created; else now
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    pub created: Option<Timestamp>,

    /// A parameter that names it from now on; may be repeated
    #[arg(long, value_name = "NAME")]
    pub parameter: Vec<String>,

    /// May be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub tag: Vec<String>,

    /// Its machines never become nodes
    #[arg(long, conflicts_with_all = ["never_ready", "flapping"])]
    pub stillborn: bool,

    /// Its nodes are never ready
    #[arg(long, conflicts_with = "flapping")]
    pub never_ready: bool,

    /// Its nodes are ready and not ready, in turns
    #[arg(long)]
    pub flapping: bool,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Let something go wrong
#[derive(Debug, Args)]
#[command(after_help = faults_help())]
pub(crate) struct SimFault {
    /// What goes wrong, in the words below
    #[arg(required = true, value_name = "WORD", allow_negative_numbers = true)]
    pub words: Vec<String>,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Apply manifests, as `kubectl apply` would
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt sim apply -f budget.yaml
  nodemolt sim apply -f drifted.yaml --subresource status   # a condition on a NodeClaim, as another controller writes it
  nodemolt sim apply -f newer.yaml --unchecked              # what this version cannot read
")]
pub(crate) struct SimApply {
    /// Manifests, as YAML or JSON; `-` is standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub file: PathBuf,

    /// Write only the status of what is there; conditions are told apart by their type
    #[arg(long, value_name = "NAME", value_enum)]
    pub subresource: Option<SimSubresource>,

    /// Past the schemas, as another version of the definitions would have let it in
    #[arg(long, conflicts_with = "subresource")]
    pub unchecked: bool,

    #[command(flatten)]
    pub world: WorldPath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimSubresource {
    Status,
}

/// Delete an object, as `kubectl delete` would
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt sim delete node node-0
  nodemolt sim delete pod shop/cart-0
")]
pub(crate) struct SimDelete {
    /// Node, NodeClaim, Pod, PodDisruptionBudget, …
    pub kind: String,

    /// With its namespace, where that is not `default`
    #[arg(value_name = "[NAMESPACE/]NAME")]
    pub name: String,

    #[command(flatten)]
    pub world: WorldPath,
}

/// For both ways: each verb says itself which it is.
#[derive(Debug, Args)]
pub(crate) struct SimCordon {
    /// Its name; `@any`, `@successor` and `@leaving` stand for one who is there then
    pub node: String,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Take nodemolt's own taint off a node, as a person might
#[derive(Debug, Args)]
pub(crate) struct SimUntaint {
    /// Its name; `@any`, `@successor` and `@leaving` stand for one who is there then
    pub node: String,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Write an annotation or take it away, as `kubectl annotate` would
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt sim annotate node node-0 karpenter.sh/do-not-disrupt=true
  nodemolt sim annotate node node-0 karpenter.sh/do-not-disrupt-
")]
pub(crate) struct SimAnnotate {
    /// Node, NodeClaim, Pod, …
    pub kind: String,

    /// Its name, with its namespace where that is not `default`; `@any`, `@successor` and `@leaving`
    /// stand for one without a namespace who is there then
    #[arg(value_name = "[NAMESPACE/]NAME")]
    pub name: String,

    /// The annotation with its value; with a `-` behind its key it is taken away
    #[arg(value_name = "KEY=VALUE|KEY-")]
    pub annotation: String,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Put another controller's finalizer onto an object: it stays when it is deleted, until `sim release`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt sim hold nodeclaim web-0
")]
pub(crate) struct SimHold {
    /// Node, NodeClaim, …: kinds without a namespace
    pub kind: String,

    /// Its name; `@any`, `@successor` and `@leaving` stand for one who is there then
    pub name: String,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Take the finalizers of `sim hold` off everything
#[derive(Debug, Args)]
pub(crate) struct SimRelease {
    #[command(flatten)]
    pub world: WorldPath,
}

/// Live the loaded world again and print every step; or a random life, by its seed
///
/// All laws are checked. Where one is broken the last events before it are printed, and the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt sim replay                       # the loaded world, from its beginning
  nodemolt sim replay --until 2026-08-01T00:20:00Z
  nodemolt sim replay --seed 4711           # the random life that a test complained about
")]
pub(crate) struct SimReplay {
    /// A random life in place of the loaded world
    #[arg(long, value_name = "NUMBER", value_parser = super::whole::<u64, 0, { u64::MAX }>, conflicts_with = "sim")]
    pub seed: Option<u64>,

    /// Stop there
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    pub until: Option<Timestamp>,

    /// How to print; `json` is one object a line, the last one of kind `SimulationEnd`
    #[arg(short = 'o', long, value_enum, default_value_t = SimFormat::Text)]
    pub output: SimFormat,

    /// Only what people would ask about, as `sim run` prints it
    #[arg(long)]
    pub short: bool,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Show the fleet at a glance: pools, what has drifted, what is under way, who waits and for what
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt status
  nodemolt status -o wide             # every node
")]
pub(crate) struct Status {
    #[command(flatten)]
    pub world: WorldPath,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = FleetFormat::Table)]
    pub output: FleetFormat,

    /// Leave out the column headers
    #[arg(long)]
    pub no_headers: bool,
}

/// Show how nodes differ from what they should be: every difference, old and new
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:     0 shown, 2 something has drifted and --detailed-exitcode, 64 mistyped
")]
pub(crate) struct Drift {
    /// Only this node, or the nodes of this pool
    #[arg(value_name = "NODE|POOL")]
    pub about: Option<String>,

    /// Exit with 2 where something has drifted
    #[arg(long)]
    pub detailed_exitcode: bool,

    #[command(flatten)]
    pub world: WorldPath,

    /// How to print; `wide` also lists what is in sync
    #[arg(short = 'o', long, value_enum, default_value_t = FleetFormat::Table)]
    pub output: FleetFormat,

    /// Leave out the column headers
    #[arg(long)]
    pub no_headers: bool,
}

/// Show who is replaced, who starts next, who waits and for what, and how long it will take
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:     0 shown, 2 there is something to replace and --detailed-exitcode, 64 mistyped
")]
pub(crate) struct Plan {
    /// Exit with 2 where there is something to replace
    #[arg(long)]
    pub detailed_exitcode: bool,

    #[command(flatten)]
    pub world: WorldPath,

    /// How to print; `wide` tells all that a node waits for
    #[arg(short = 'o', long, value_enum, default_value_t = FleetFormat::Table)]
    pub output: FleetFormat,

    /// Leave out the column headers
    #[arg(long)]
    pub no_headers: bool,
}

/// Say why a node is not replaced yet; or how far a pool is, or what a pod does to its node
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodemolt explain node-1
  nodemolt explain shop/cart-0
  nodemolt explain pool/web           # where a node has the same name
  nodemolt explain                    # the whole fleet
")]
pub(crate) struct Explain {
    /// A node, a pool, or a pod with its namespace; `node/NAME`, `pool/NAME` and `pod/NAMESPACE/NAME`
    /// say which of them is meant
    #[arg(value_name = "NODE|POOL|POD")]
    pub about: Option<String>,

    #[command(flatten)]
    pub world: WorldPath,

    /// How to print
    #[arg(short = 'o', long, value_enum, default_value_t = StoryFormat::Text)]
    pub output: StoryFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoryFormat {
    Text,
    Json,
    Yaml,
}

/// Ask that a node, or every node of a pool, be replaced, drifted or not
///
/// Budgets, windows and protections hold all the same.
#[derive(Debug, Args)]
pub(crate) struct Upgrade {
    /// A node or a pool; `node/NAME` and `pool/NAME` say which is meant. `@any`, `@successor` and
    /// `@leaving` stand for a node who is there then
    #[arg(value_name = "NODE|POOL")]
    pub about: String,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Stop all replacing; what has begun goes on to where it is safe
#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// Why; whoever waits is told
    #[arg(long, value_name = "TEXT", default_value = "a person asked for it")]
    pub reason: String,

    #[command(flatten)]
    pub world: WorldPath,
}

/// Go on after `pause`
#[derive(Debug, Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    pub world: WorldPath,
}

/// Release the lock with which nodemolt has stopped itself
#[derive(Debug, Args)]
pub(crate) struct Unlock {
    #[command(flatten)]
    pub world: WorldPath,
}

/// Watch a fleet being replaced on the simulator: no cluster, no account, no network, no files left
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// What chance does: the same seed, the same life
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = super::whole::<u64, 0, { u64::MAX }>)]
    pub seed: u64,

    /// Print lines and do not wait, as without a terminal
    #[arg(long)]
    pub lines: bool,
}

fn length(text: &str) -> Result<SignedDuration, String> {
    nodemolt_sim::length::read(text)
}

fn faults_help() -> String {
    let mut text = "Faults:\n".to_owned();
    for words in nodemolt_sim::Fault::WORDS {
        text.push_str("  ");
        text.push_str(words);
        text.push('\n');
    }
    let starts_again = nodemolt_sim::length::write(nodemolt_sim::faults::DOWN);
    format!(
        "{text}\nWHOM is `leader`, `operator-0` or so on.\nWithout a length a fault lasts until `nodemolt sim fault end`;\nonly who crashes starts again by itself, after {starts_again}.\n"
    )
}
