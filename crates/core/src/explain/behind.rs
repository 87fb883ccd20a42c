//! What does the node wait for that has the slot?
//!
//! `drains × reason → the same reason, and what is behind it`
//!
//! Whoever waits for a place in a budget waits for what holds the nodes that have it. A drain that waits keeps its place
//! (decision 0040), so a person is told of the thing that can be lifted, and how to have another place.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;

use super::cause::causes;
use super::story::{Cause, Story, both};
use super::{World, tell_held};
use crate::budget::BudgetId;
use crate::drain::evictions;
use crate::plan::{WaitFor, Waiting};

/// What holds the drains that are under way, found once for all that wait behind them.
#[derive(Debug, Default)]
pub struct Behind {
    /// By node: the first thing in words, and all that is named.
    held: BTreeMap<String, (String, Vec<Cause>)>,
}

impl Behind {
    pub fn of(world: &World<'_>, now: Timestamp) -> Self {
        let (_, held) = evictions(world.drains, &world.fleet.pdbs, now);
        let told = world.drains.iter().filter_map(|drain| {
            let mut story = Story::about("node", &drain.node);
            tell_held(&mut story, world, &drain.node, &held, now);
            let first = story.facts.into_iter().next()?;
            Some((drain.node.clone(), (first.text, story.causes)))
        });
        let mut held: BTreeMap<String, (String, Vec<Cause>)> = told.collect();
        // Somebody has deleted it, and a budget that gates people does not let it go.
        let deleted = world.plan.waiting.iter().filter_map(|(name, waiting)| {
            let node = world.fleet.nodes.get(name)?;
            node.wish.as_ref().filter(|it| !it.cause.voluntary())?;
            let class = node.member.class.as_deref();
            let text = waiting.first.words(&|at| both(at, now));
            Some((name.clone(), (text, causes(world, &waiting.first, class, now))))
        });
        held.extend(deleted);
        Self { held }
    }

    /// All that one reason names, as [`causes`] has it, with what those wait for who use the budget.
    pub fn causes(
        &self,
        world: &World<'_>,
        reason: &WaitFor,
        class: Option<&str>,
        now: Timestamp,
    ) -> Vec<Cause> {
        let mut all = causes(world, reason, class, now);
        if !matches!(reason, WaitFor::Budget(_)) {
            return all;
        }
        for cause in &mut all {
            for user in &mut cause.used_by {
                let Some((text, causes)) = self.held.get(&user.node) else { continue };
                let _ = write!(cause.text, "; {} itself waits for {text}", user.node);
                user.waits_for.clone_from(causes);
            }
        }
        all
    }

    /// How a node gets a place of its own, where one that is held has the cluster's only one.
    pub(super) fn remedy(&self, waiting: &Waiting, class: Option<&str>) -> Option<String> {
        let held = |it: &&WaitFor| {
            let WaitFor::Budget(it) = it else { return false };
            let mut users = it.used_by.iter().map(|it| &it.0);
            it.id == BudgetId::Serial && users.any(|it| self.held.contains_key(it))
        };
        waiting.all().find(held)?;
        let class = class.map_or(String::new(), |it| format!(" for class `{it}`"));
        Some(format!(
            "a NodeDisruptionBudget that selects it, or `rollout.concurrency` in an ImagePolicy{class}, gives \
             it a place of its own"
        ))
    }
}
