//! What did people write about how many and when?

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_core::budget::{ClassRule, DisruptionBudget, Limits, Unreadable};
use nodemolt_core::seen::{Class, Kind, ObjectName};

use super::Sight;

pub(crate) fn limits(sight: &Sight<'_>) -> Limits {
    let view = sight.view;
    let why = |it: &ObjectName| {
        let complaint = view.unreadable.get(it).and_then(|it| it.first());
        Unreadable(complaint.map(ToString::to_string).unwrap_or_default())
    };
    let mut disruption_budgets: Vec<DisruptionBudget> = view.budgets.values().cloned().collect();
    for object in view.unreadable.keys() {
        if object.kind == Kind::DisruptionBudget && !view.budgets.contains_key(&object.name) {
            // Whom it selects is not known, so it is everybody.
            disruption_budgets.push(DisruptionBudget {
                name: object.name.clone(),
                selectors: vec![BTreeMap::new()],
                keep: Err(why(object)),
                gates_controller: true,
                gates_people: false,
            });
        }
    }
    let mut pools: BTreeMap<_, _> =
        view.pools.values().map(|it| (it.name.clone(), it.budgets.clone())).collect();
    for it in view.unreadable.keys().filter(|it| it.kind == Kind::Pool) {
        // Its budgets are in there, too.
        pools.insert(it.name.clone(), vec![Err(why(it))]);
    }
    let hidden = view.unreadable.keys().find(|it| it.kind == Kind::Policy);
    let classes = view.classes.values().filter_map(|class| {
        let rule = rules(sight, class).next().cloned();
        // Which classes it selects is not known, so it is all of them.
        let rule = match hidden {
            Some(policy) => {
                let rule = rule.unwrap_or_else(|| ClassRule::of(&policy.name));
                let (hidden, policy) = (why(policy), policy.name.clone());
                Some(ClassRule { policy, concurrency: Some(Err(hidden)), ..rule })
            }
            None => rule,
        };
        Some((class.key.to_string(), rule?))
    });
    Limits { disruption_budgets, pools, classes: classes.collect() }
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
    let foreign = sight.view.pools.values().filter(|it| !sight.ours(&it.class));
    foreign.map(|it| it.name.as_str()).collect()
}
