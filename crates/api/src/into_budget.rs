//! How many at once, and when: what do the wire types say of it?
//!
//! `NodeDisruptionBudgets, pools, policies → limits`
//!
//! Reading does not fail. What cannot be read counts as nothing allowed and says so with the field's
//! path; the checks of each kind give the same findings for its condition.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use nodemolt_core::budget::{
    Amount, ClassRule, DisruptionBudget, Keep, Limits, PoolBudget, Reason, Schedule, Unreadable,
};
use nodemolt_core::policy::LabelSelector;
use nodemolt_fit::go_duration;

use crate::ec2nodeclass::EC2NodeClass;
use crate::imagepolicy::{ImagePolicy, read_rollout, read_schedule, unreadable};
use crate::into_core::{Reader, read_selector};
use crate::nodedisruptionbudget::{Gate, NodeDisruptionBudget, amount};
use crate::nodepool::{Budget, NodePool, ten_percent};
use crate::problem::{Finding, quoted};

impl From<&NodeDisruptionBudget> for DisruptionBudget {
    fn from(wire: &NodeDisruptionBudget) -> Self {
        let spec = &wire.spec;
        let keep = match (&spec.min_available, &spec.max_unavailable) {
            (Some(least), None) => amount("spec.minAvailable", least).map(Keep::MinAvailable),
            (None, Some(most)) => amount("spec.maxUnavailable", most).map(Keep::MaxUnavailable),
            (Some(_), Some(_)) | (None, None) => {
                let message = "expected exactly one of minAvailable and maxUnavailable";
                Err(Finding::error("spec", message))
            }
        };
        // Nobody writes a budget for nobody: an empty list is refused, and meanwhile holds as an absent one.
        let gates = spec.gates.as_ref().filter(|it| !it.is_empty());
        let gates = |gate| gates.map(|it| it.contains(&gate));
        Self {
            name: wire.metadata.name.clone(),
            selectors: spec.label_selectors.clone(),
            keep: keep.map_err(|it| unreadable(&it)),
            gates_controller: gates(Gate::Controller).unwrap_or(true),
            gates_people: gates(Gate::People).unwrap_or(false),
        }
    }
}

/// Where a pool says nothing a tenth may go: the schema's own default, for objects that were never in
/// a cluster. An empty list is no limit.
pub fn pool_budgets(pool: &NodePool) -> Vec<Result<PoolBudget, Unreadable>> {
    let written = pool.spec.disruption.as_ref().and_then(|it| it.budgets.as_ref());
    let default = [Budget { nodes: ten_percent(), ..Budget::default() }];
    let budgets = written.map_or(&default[..], Vec::as_slice);
    let read = |(at, it)| pool_budget(&format!("spec.disruption.budgets[{at}]"), it);
    budgets.iter().enumerate().map(|it| read(it).map_err(|it| unreadable(&it))).collect()
}

fn pool_budget(field: &str, wire: &Budget) -> Result<PoolBudget, Finding> {
    let Budget { nodes, schedule, duration, reasons } = wire;
    let nodes: Amount = nodes.parse().map_err(|_| {
        let message =
            format!("{} is neither a number nor a percentage from 0% to 100%", quoted(nodes));
        let hint = "write a number such as \"3\", or a share such as \"10%\"";
        Finding::error(format!("{field}.nodes"), message).hint(hint)
    })?;
    let schedule = match (schedule, duration) {
        (None, None) => None,
        (Some(cron), Some(text)) => {
            let cron = read_schedule(&format!("{field}.schedule"), cron)?;
            let nanos = go_duration(text).filter(|it| *it > 0).ok_or_else(|| {
                let message = format!("{} is not a length of time", quoted(text));
                Finding::error(format!("{field}.duration"), message).hint("write it like 8h or 90m")
            })?;
            Some(Schedule { cron, duration: SignedDuration::from_nanos(nanos) })
        }
        (Some(_), None) | (None, Some(_)) => {
            let finding = Finding::error(field, "`schedule` and `duration` belong together");
            return Err(finding.hint("write both"));
        }
    };
    let mut read = BTreeSet::new();
    for (at, reason) in reasons.iter().flatten().enumerate() {
        read.insert(match reason.as_str() {
            "Drifted" => Reason::Drifted,
            "Empty" => Reason::Empty,
            "Underutilized" => Reason::Underutilized,
            other => {
                let message = format!("{} is not a reason", quoted(other));
                let finding = Finding::error(format!("{field}.reasons[{at}]"), message);
                return Err(finding.hint("write Drifted, Empty or Underutilized"));
            }
        });
    }
    Ok(PoolBudget { nodes, schedule, reasons: reasons.is_some().then_some(read) })
}

/// What a policy says of how nodes are replaced. `None`: nothing.
pub fn class_rule(policy: &ImagePolicy) -> Option<ClassRule> {
    let rollout = policy.spec.rollout.as_ref()?;
    Some(read_rollout("spec.rollout", &policy.metadata.name, rollout, &mut Vec::new()))
}

/// What everybody wrote together. Of the policies that select a class and say `rollout` the first by
/// name counts. One whose selector cannot be read might mean any class, and lets none of them start.
pub fn limits<'a>(
    budgets: impl IntoIterator<Item = &'a NodeDisruptionBudget>,
    pools: impl IntoIterator<Item = &'a NodePool>,
    policies: impl IntoIterator<Item = &'a ImagePolicy>,
    classes: impl IntoIterator<Item = &'a EC2NodeClass>,
) -> Limits {
    let mut rules: Vec<(LabelSelector, ClassRule)> = policies
        .into_iter()
        .filter_map(|policy| {
            let mut rule = class_rule(policy)?;
            let mut reader = Reader::new();
            let wire = policy.spec.class_selector.as_ref();
            let selector = wire.map(|it| read_selector(&mut reader, "spec.classSelector", it));
            if let Some(finding) = reader.found.first() {
                rule.concurrency = Some(Err(unreadable(finding)));
                return Some((LabelSelector::default(), rule));
            }
            Some((selector.unwrap_or_default(), rule))
        })
        .collect();
    rules.sort_by(|(_, one), (_, other)| one.policy.cmp(&other.policy));
    let rule_of = |class: &EC2NodeClass| {
        let labels = &class.metadata.labels;
        rules.iter().find(|(selector, _)| selector.matches(labels)).map(|(_, rule)| rule.clone())
    };
    Limits {
        disruption_budgets: budgets.into_iter().map(DisruptionBudget::from).collect(),
        pools: pools.into_iter().map(|it| (it.metadata.name.clone(), pool_budgets(it))).collect(),
        classes: classes
            .into_iter()
            .filter_map(|it| Some((it.metadata.name.clone(), rule_of(it)?)))
            .collect(),
    }
}
