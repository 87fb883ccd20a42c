//! How does a simulated world begin?
//!
//! `YAML → scenario`
//!
//! The objects are what people write: classes, pools, policies, budgets, workloads. One document more,
//! of kind `Simulation`, says what no cluster knows of itself: the time, the images there are, and the
//! nodes that run already. Nothing is read that is not understood.

pub(crate) mod door;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use nodemolt_api::ec2nodeclass;
use nodemolt_api::file::builtin::Written;
use nodemolt_api::file::{self, Located, Source, raw};
use nodemolt_api::problem::{Finding, Problem, Severity};
use nodemolt_core::image::AccountId;
use nodemolt_core::lookup::Minor;
use serde_json::Value;

use crate::act::{ImageName, Publication};

pub const API_VERSION: &str = "nodemolt.dev/sim";
pub const KIND: &str = "Simulation";

/// How a world begins. Holding one means that it was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// As it was written; a world file keeps it.
    pub text: String,
    /// In the order of the text, without the simulation itself.
    pub objects: Vec<Value>,
    /// Where each of them stands, as `file:line`.
    pub places: Vec<String>,
    pub simulation: Simulation,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    pub start: Timestamp,
    pub kubernetes: Minor,
    pub region: String,
    pub account: AccountId,
    /// The cluster's name.
    pub cluster: String,
    pub zones: Vec<String>,
    /// Instance types that EC2 offers here.
    pub types: BTreeSet<String>,
    pub images: Vec<Publication>,
    pub fleet: Vec<Group>,
    pub subnets: Vec<Subnet>,
    pub security_groups: Vec<SecurityGroup>,
    pub reservations: Vec<Reservation>,
    /// How many of us there are, one of which leads.
    pub replicas: u8,
    pub boot: Boot,
}

/// Nodes that run already when it begins, as if we had launched them.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub pool: String,
    pub nodes: u32,
    pub instance_type: String,
    /// In turns. Never empty.
    pub zones: Vec<String>,
    pub image: ImageName,
    pub age: SignedDuration,
    /// Of the first nodes; the others are called by their addresses.
    pub names: Vec<String>,
    pub capacity_type: String,
    pub reservation: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    pub id: String,
    pub zone: String,
    pub tags: BTreeMap<String, String>,
    pub free_addresses: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityGroup {
    pub id: String,
    pub name: String,
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub id: String,
    pub instance_type: String,
    pub zone: String,
    pub count: u32,
    pub tags: BTreeMap<String, String>,
}

/// How long the steps of a machine's youth take, more or less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// From the launch until EC2 says `running`.
    pub runs: SignedDuration,
    /// From then until there is a node. `None`: as in an ordinary cluster.
    pub joins: Option<SignedDuration>,
    /// From then until it is ready.
    pub ready: Option<SignedDuration>,
    /// By instance type: how much later than others it runs.
    pub later: BTreeMap<String, SignedDuration>,
}

/// A small machine with a plain image, on a good day.
impl Default for Boot {
    fn default() -> Self {
        Self {
            runs: SignedDuration::from_secs(12),
            joins: None,
            ready: None,
            later: BTreeMap::new(),
        }
    }
}

/// More pods are not lived with: twenty on each of as many nodes as there may be.
pub(crate) const PODS_MAX: u64 = 200_000;

/// Of a workload: where it says how many pods it wants, and how many.
pub(crate) fn pods_wanted(object: &Value) -> Option<(&'static str, u64)> {
    let number = |at: &str| object.pointer(at).and_then(Value::as_u64);
    match object.get("kind").and_then(Value::as_str)? {
        "Deployment" | "ReplicaSet" | "StatefulSet" => {
            Some(("spec.replicas", number("/spec/replicas")?))
        }
        "Job" => Some(("spec.parallelism", number("/spec/parallelism")?)),
        _ => None,
    }
}

/// Whether a text says that it is a scenario, whatever else may be wrong with it.
pub(crate) fn simulates(text: &str) -> bool {
    let source = Source { name: String::new(), text: text.to_owned() };
    let kind = |it: &Value| it.get("kind").and_then(Value::as_str) == Some(KIND);
    raw::objects(&source).iter().any(|it| kind(&it.value))
}

impl Scenario {
    /// Everything that is wrong with the text, or what it says. `name` is what problems call it.
    pub fn read(name: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let source = Source { name: name.to_owned(), text: text.to_owned() };
        let mut problems = raw::problems(&source);
        let (_, of_ours) = file::read_as_applied(&source);
        let known = problems.clone();
        problems.extend(
            of_ours.into_iter().filter(|it| it.severity == Severity::Error && !known.contains(it)),
        );
        let mut objects = Vec::new();
        let mut simulations = Vec::new();
        for object in raw::objects(&source) {
            let text = |key: &str| object.value.get(key).and_then(Value::as_str);
            match (text("apiVersion"), text("kind")) {
                (Some(API_VERSION), Some(KIND)) => simulations.push(object),
                (version, Some(KIND)) => {
                    let message = match version {
                        Some(version) => format!("`{version}` is no version of a {KIND}"),
                        None => "is missing".to_owned(),
                    };
                    let hint = format!("write `apiVersion: {API_VERSION}`");
                    let finding = Finding::error("apiVersion", message).hint(hint);
                    instead(&mut problems, object.problem(finding));
                }
                (Some(_), Some(_)) => {
                    for problem in door::problems(&object, Written::Whole) {
                        if !problems.contains(&problem) {
                            problems.push(problem);
                        }
                    }
                    objects.push(object);
                }
                (version, _) => {
                    let field = if version.is_none() { "apiVersion" } else { "kind" };
                    let finding = Finding::error(field, "is missing");
                    let finding = finding.hint("write `apiVersion` and `kind`");
                    instead(&mut problems, object.problem(finding));
                }
            }
        }
        let mut pods = 0_u64;
        for object in &objects {
            let Some((field, wanted)) = pods_wanted(&object.value) else { continue };
            let before = pods;
            pods = pods.saturating_add(wanted);
            if before <= PODS_MAX && pods > PODS_MAX {
                let message = format!("makes {pods} pods in all, more than {PODS_MAX}");
                problems.push(object.problem(Finding::error(field, message).hint("write fewer")));
            }
        }
        let pools: BTreeSet<String> = objects
            .iter()
            .filter(|it| it.value.get("kind").and_then(Value::as_str) == Some("NodePool"))
            .filter_map(|it| it.value.pointer("/metadata/name").and_then(Value::as_str))
            .map(str::to_owned)
            .collect();
        let simulation = match simulations.as_slice() {
            // It may be in what could not be read.
            [] if problems.iter().any(|it| it.severity == Severity::Error) => None,
            [] => {
                problems.push(Problem {
                    severity: Severity::Error,
                    file: name.to_owned(),
                    line: 1,
                    column: 1,
                    span: None,
                    field: String::new(),
                    message: format!("there is no document of kind {KIND}"),
                    hint: Some(format!(
                        "add one with `apiVersion: {API_VERSION}`, `start`, `images` and `fleet`"
                    )),
                });
                None
            }
            [one] => match wire::read(&one.value, &pools) {
                Ok(simulation) => {
                    if problems.is_empty() {
                        problems.extend(lacks_class(&objects, &simulation));
                    }
                    Some(simulation)
                }
                Err(findings) => {
                    problems.extend(findings.into_iter().map(|it| one.problem(it)));
                    None
                }
            },
            [_, second, ..] => {
                let finding = Finding::error("kind", format!("is a second {KIND}"));
                problems.push(second.problem(finding.hint("keep one of them")));
                None
            }
        };
        match simulation {
            Some(simulation) if problems.is_empty() => Ok(Self {
                text: text.to_owned(),
                places: objects.iter().map(|it| format!("{name}:{}", it.lines().0)).collect(),
                objects: objects.into_iter().map(|it| it.value).collect(),
                simulation,
            }),
            Some(_) | None => {
                problems.sort_by_key(|it| (it.line, it.column));
                problems.dedup();
                Err(problems)
            }
        }
    }
}

/// Pools of the fleet whose class is not written: nodes of theirs cannot have been launched.
fn lacks_class(objects: &[Located<Value>], simulation: &Simulation) -> Vec<Problem> {
    let text = |it: &Value, at: &str| it.pointer(at).and_then(Value::as_str).map(str::to_owned);
    let is = |it: &Value, kind: &str| text(it, "/kind").as_deref() == Some(kind);
    let group =
        |it: &Value| text(it, "/apiVersion").and_then(|it| Some(it.split_once('/')?.0.to_owned()));
    let pools: BTreeSet<&str> = simulation.fleet.iter().map(|it| it.pool.as_str()).collect();
    let mut problems = Vec::new();
    for pool in objects.iter().filter(|it| is(&it.value, "NodePool")) {
        let named = text(&pool.value, "/metadata/name");
        if !named.is_some_and(|it| pools.contains(it.as_str())) {
            continue;
        }
        let of = |key: &str| text(&pool.value, &format!("/spec/template/spec/nodeClassRef/{key}"));
        let (Some(of_group), Some(name)) = (of("group"), of("name")) else { continue };
        let written = objects.iter().any(|it| {
            is(&it.value, ec2nodeclass::KIND)
                && group(&it.value).as_deref() == Some(of_group.as_str())
                && text(&it.value, "/metadata/name").as_deref() == Some(name.as_str())
        });
        if !written {
            let message = format!("there is no EC2NodeClass `{name}` of {of_group}");
            let field = "spec.template.spec.nodeClassRef.name";
            let hint = "write the EC2NodeClass into this file: nodes of this pool run already";
            problems.push(pool.problem(Finding::error(field, message).hint(hint)));
        }
    }
    problems
}

/// Said once, and in the words of whoever knows what is meant.
fn instead(problems: &mut Vec<Problem>, problem: Problem) {
    let same = |it: &Problem| {
        (it.line, it.column, &it.field) == (problem.line, problem.column, &problem.field)
    };
    problems.retain(|it| !same(it));
    problems.push(problem);
}
