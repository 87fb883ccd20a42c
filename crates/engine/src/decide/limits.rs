//! What did people write about how many and when?

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_core::budget::{ClassRule, DisruptionBudget, Limits, Unreadable};
use nodemolt_core::seen::{Class, Kind};

use super::Sight;

pub(crate) fn limits(sight: &Sight<'_>) -> Limits {
    let view = sight.view;
    let mut disruption_budgets: Vec<DisruptionBudget> = view.budgets.values().cloned().collect();
    for (object, complaints) in &view.unreadable {
        if object.kind == Kind::DisruptionBudget && !view.budgets.contains_key(&object.name) {
            let why = complaints.first().map_or("", |it| it.message.as_str());
            // Whom it selects is not known, so it is everybody.
            disruption_budgets.push(DisruptionBudget {
                name: object.name.clone(),
                selectors: vec![BTreeMap::new()],
                keep: Err(Unreadable(why.to_owned())),
                gates_controller: true,
                gates_people: false,
            });
        }
    }
    Limits {
        disruption_budgets,
        pools: view.pools.values().map(|it| (it.name.clone(), it.budgets.clone())).collect(),
        classes: view
            .classes
            .values()
            .filter_map(|it| Some((it.key.to_string(), rules(sight, it).next()?.clone())))
            .collect(),
    }
}

/// Of all policies that select a class and say how, in the order of their names. The first holds.
pub(crate) fn rules<'a>(
    sight: &'a Sight<'_>,
    class: &'a Class,
) -> impl Iterator<Item = &'a ClassRule> {
    let selecting =
        sight.view.policies.values().filter(|it| it.rule.classes.matches(&class.ask.labels));
    selecting.filter_map(|it| it.rollout.as_ref())
}

/// Pools whose class somebody else's controller looks after are named here, if there are any.
pub(crate) fn foreign_pools<'a>(sight: &'a Sight<'_>) -> BTreeSet<&'a str> {
    let foreign = sight.view.pools.values().filter(|it| {
        it.class.group != nodemolt_core::seen::OWN_CLASS_GROUP
            && !sight.view.classes.contains_key(&it.class)
    });
    foreign.map(|it| it.name.as_str()).collect()
}
