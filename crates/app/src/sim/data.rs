//! What do programs read about a simulated world?
//!
//! Of what happens, one object a line: whoever reads need not wait for the end. The last line is the end,
//! and says so.

use std::borrow::Cow;

use jiff::Timestamp;
use nodemolt_sim::trace::Step;
use nodemolt_sim::world::who;
use nodemolt_sim::{World, WorldFile};
use serde::Serialize;

use super::scenarios::BuiltIn;
use crate::fleet::data::VERSION;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct List<'w> {
    api_version: &'static str,
    kind: &'static str,
    scenarios: Vec<Scenario>,
    /// The world that is loaded, if there is one.
    loaded: Option<Loaded<'w>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Scenario {
    name: &'static str,
    title: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Loaded<'w> {
    scenario: &'w str,
    seed: u64,
    start: Timestamp,
    now: Timestamp,
    acts: Vec<Done>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    at: Timestamp,
    act: String,
}

pub(super) fn list<'w>(scenarios: &[BuiltIn], loaded: Option<&'w WorldFile>) -> List<'w> {
    let scenario = |it: &BuiltIn| Scenario { name: it.name, title: it.title() };
    let done = |(at, act): &(Timestamp, nodemolt_sim::Act)| Done { at: *at, act: act.to_string() };
    List {
        api_version: VERSION,
        kind: "ScenarioList",
        scenarios: scenarios.iter().map(scenario).collect(),
        loaded: loaded.map(|it| Loaded {
            scenario: &it.name,
            seed: it.seed,
            start: it.scenario.simulation.start,
            now: it.until,
            acts: it.acts.iter().map(done).collect(),
        }),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'t> {
    api_version: &'static str,
    kind: &'static str,
    at: Timestamp,
    /// Whose deed it is: `operator-0`, `kubelet`, `EC2`, `a person`.
    by: Cow<'static, str>,
    text: &'t str,
}

/// A line.
pub(super) fn event(step: &Step, text: &str) -> anyhow::Result<String> {
    line(&Event { api_version: VERSION, kind: "Event", at: step.at, by: who(step.by), text })
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct End {
    api_version: &'static str,
    kind: &'static str,
    at: Timestamp,
    steps: u64,
    /// In hexadecimal digits: numbers of 64 bits are cut by many who read JSON.
    hash: String,
    /// The laws that were broken; only where laws were checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<Vec<String>>,
}

/// The last line.
pub(super) fn end(world: &World, laws_checked: bool) -> anyhow::Result<String> {
    let broken = || world.violations().iter().map(|it| it.violation.to_string()).collect();
    line(&End {
        api_version: VERSION,
        kind: "SimulationEnd",
        at: world.now(),
        steps: world.steps(),
        hash: format!("{:016x}", world.hash()),
        broken: laws_checked.then(broken),
    })
}

fn line(it: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string(it)?))
}
