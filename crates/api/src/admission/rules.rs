//! Does the object keep the rules?
//!
//! `schema × object × what it was → causes`
//!
//! From the root down, each rule with `self` as its own part of the object. A rule that names the old
//! value is asked only where there is one; what a rule finds wrong in a part that did not change is
//! forgiven, as the server forgives it, unless the rule is about the change.

use serde_json::Value;

use super::{
    cause::Cause,
    cel::{Budget, Scope},
    correlate::{Before, Items, same},
    place::Place,
    rule::{Rule, Ruling},
    schema::Node,
};

/// Of which parts rules are asked, and the shape is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    All,
    /// What did not change has kept its rules before; those about changes are asked all the same.
    WhatChanged,
}

/// All rules that are broken, and those that are forgiven.
pub(crate) fn check(
    node: &Node,
    value: &Value,
    old: Before<'_>,
    asks: Asks,
) -> (Vec<Cause>, Vec<Cause>) {
    let mut walk = Walk {
        asks,
        causes: Vec::new(),
        forgiven: Vec::new(),
        budget: Budget::of_an_object(),
        spent: false,
    };
    let track = Track::Followed { node, value, old, root: true };
    walk.node(
        node,
        value,
        old,
        if old.is_some() { track } else { Track::Lost(false) },
        Place::Root,
        true,
    );
    (walk.causes, walk.forgiven)
}

struct Walk {
    asks: Asks,
    causes: Vec<Cause>,
    forgiven: Vec<Cause>,
    budget: Budget,
    spent: bool,
}

/// Where an old value would be, for forgiving. Rules see old values in more places than this.
#[derive(Clone, Copy)]
enum Track<'v> {
    Followed {
        node: &'v Node,
        value: &'v Value,
        old: Before<'v>,
        root: bool,
    },
    /// Not to be followed any further; the last that could be was unchanged, or not.
    Lost(bool),
}

impl<'v> Track<'v> {
    fn unchanged(self) -> bool {
        match self {
            Self::Followed { node, value, old, .. } => {
                old.is_some_and(|old| same(node, value, old))
            }
            Self::Lost(unchanged) => unchanged,
        }
    }

    fn lost(self) -> Self {
        Self::Lost(self.unchanged())
    }

    fn member(self, node: &'v Node, value: &'v Value, key: &str) -> Self {
        match self {
            Self::Lost(_) => self,
            Self::Followed { root: true, .. } if matches!(key, "apiVersion" | "kind") => {
                Self::Lost(false)
            }
            Self::Followed { old, .. } => match old.and_then(|it| it.get(key)) {
                Some(old) => Self::Followed { node, value, old: Some(old), root: false },
                None => self.lost(),
            },
        }
    }
}

impl Walk {
    fn node<'v>(
        &mut self,
        node: &'v Node,
        value: &'v Value,
        old: Before<'v>,
        track: Track<'v>,
        place: Place<'_>,
        resource: bool,
    ) {
        if value.is_null() || self.spent || !node.rules_within {
            return;
        }
        self.rules(node, node, value, old, track, place, resource);
        for more in &node.all_of {
            // The rules of an `allOf` look at the same value, by the same types.
            self.rules(more, node, value, old, track.lost(), place, resource);
        }
        match value {
            Value::Array(items) => {
                let Some(below) = &node.items else { return };
                let olds = Items::of(node, old);
                for (index, item) in items.iter().enumerate() {
                    let old = olds.before(item);
                    let track = match (track, old) {
                        (Track::Followed { .. }, Some(_)) => {
                            Track::Followed { node: below, value: item, old, root: false }
                        }
                        _ => track.lost(),
                    };
                    let at = Place::Item(&place, index);
                    self.node(below, item, old, track, at, below.embedded);
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    let (below, at) = if let Some(below) = node.properties.get(key) {
                        (below, Place::Member(&place, key))
                    } else if let Some(below) = node.member(key) {
                        (below, Place::Key(&place, key))
                    } else {
                        continue;
                    };
                    let before = old.and_then(|it| it.get(key)).filter(|it| !it.is_null());
                    let track = track.member(below, value, key);
                    self.node(below, value, before, track, at, below.embedded);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the place of a rule has that many sides")]
    fn rules<'v>(
        &mut self,
        of: &'v Node,
        shape: &'v Node,
        value: &'v Value,
        old: Before<'v>,
        track: Track<'v>,
        place: Place<'_>,
        resource: bool,
    ) {
        if of.rules.is_empty() || self.spent {
            return;
        }
        // An object that is as it was equals itself, however it is read.
        let unchanged = value.is_object() && old == Some(value);
        let kept = self.asks == Asks::WhatChanged && track.unchanged();
        let asked = |rule: &&Rule| {
            if self.asks == Asks::WhatChanged && rule.forbids_change && unchanged {
                return false;
            }
            if rule.transition { old.is_some() || rule.optional_old } else { !kept }
        };
        if !of.rules.iter().any(|it| asked(&it)) {
            return;
        }
        // Reading all of an object for a rule about its name costs more than asking the rule.
        let members = of.rules.iter().filter(asked).try_fold(Vec::new(), |mut all, rule| {
            all.extend(rule.members.as_ref()?.iter().map(String::as_str));
            Some(all)
        });
        let mut scope = Scope::new(shape, value, old, resource, members, &self.budget);
        for rule in of.rules.iter().filter(asked) {
            scope.turn_to(rule.transition, rule.optional_old);
            match rule.ask(&scope, value, shape.type_name(), place) {
                Ruling::Kept => {}
                Ruling::Broken(cause) if !rule.transition && track.unchanged() => {
                    self.forgiven.push(cause);
                }
                Ruling::Failed(cause) | Ruling::Broken(cause) => self.causes.push(cause),
                Ruling::OutOfBudget(cause) => {
                    self.causes.push(cause);
                    self.spent = true;
                    return;
                }
            }
        }
    }
}
