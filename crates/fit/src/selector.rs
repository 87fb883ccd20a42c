//! Which objects does a selector mean?
//!
//! `labels × written expressions → yes or no`, in Kubernetes' own reading
//!
//! This is the reading of objects that exist. It compares texts: `beta.kubernetes.io/arch` and
//! `kubernetes.io/arch` are two labels here, because they are two to the scheduler.

use std::collections::BTreeMap;

use crate::requirement::{Operator, Written};

pub type Labels = BTreeMap<String, String>;

/// The field by which a node is named in a term.
pub const NODE_NAME_FIELD: &str = "metadata.name";

/// A label selector.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// No selector was written: nothing is selected.
    #[default]
    Nothing,
    /// All of these hold. Of none of them: everything is selected.
    All(Vec<Written>),
}

/// One of several ways to say which nodes will do. Without any expression it means no node.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeTerm {
    /// `matchExpressions`.
    pub labels: Vec<Written>,
    /// `matchFields`; Kubernetes knows `metadata.name` only.
    pub fields: Vec<Written>,
}

impl Selector {
    pub fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// `matchLabels`.
    pub fn labels<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self::All(pairs.into_iter().map(|(key, value)| equal(key, value)).collect())
    }

    pub fn selects(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(all) => all.iter().all(|it| matches(it, labels.get(&it.key).map(|it| &**it))),
        }
    }

    /// Whether it selects everything by not asking anything. Topology spread counts nobody then.
    pub fn asks_nothing(&self) -> bool {
        matches!(self, Self::All(all) if all.is_empty())
    }

    /// Besides, the label must be the same as (or other than) that of whoever wrote the selector.
    /// That is how `matchLabelKeys` and `mismatchLabelKeys` are defined; a label that the pod itself
    /// does not have asks nothing.
    #[must_use]
    pub fn with_own(&self, same: &[String], other: &[String], own: &Labels) -> Self {
        let Self::All(written) = self else { return Self::Nothing };
        let mut all = written.clone();
        for key in same {
            if let Some(value) = own.get(key) {
                all.push(equal(key, value));
            }
        }
        for key in other {
            if let Some(value) = own.get(key) {
                all.push(Written { operator: Operator::NotIn, ..equal(key, value) });
            }
        }
        all.sort_unstable();
        all.dedup();
        Self::All(all)
    }
}

impl NodeTerm {
    pub fn labels(labels: Vec<Written>) -> Self {
        Self { labels, fields: Vec::new() }
    }

    pub fn admits(&self, name: &str, labels: &Labels) -> bool {
        let asks = !self.labels.is_empty() || !self.fields.is_empty();
        asks && self.labels.iter().all(|it| matches(it, labels.get(&it.key).map(|it| &**it)))
            && self.fields.iter().all(|it| it.key == NODE_NAME_FIELD && matches(it, Some(name)))
    }
}

pub(crate) fn equal(key: &str, value: &str) -> Written {
    Written {
        key: key.to_owned(),
        operator: Operator::In,
        values: vec![value.to_owned()],
        min_values: None,
    }
}

/// Whether a label that is absent or has this value will do.
pub fn matches(asked: &Written, have: Option<&str>) -> bool {
    let listed = |have: &str| asked.values.iter().any(|it| it == have);
    match asked.operator {
        Operator::In => have.is_some_and(listed),
        Operator::NotIn => !have.is_some_and(listed),
        Operator::Exists => have.is_some(),
        Operator::DoesNotExist => have.is_none(),
        Operator::Gt => compared(asked, have, |have, bound| have > bound),
        Operator::Gte => compared(asked, have, |have, bound| have >= bound),
        Operator::Lt => compared(asked, have, |have, bound| have < bound),
        Operator::Lte => compared(asked, have, |have, bound| have <= bound),
    }
}

/// Kubernetes reads both sides as decimal numbers of 64 bits, `+5` and `05` included.
fn compared(asked: &Written, have: Option<&str>, holds: impl Fn(i64, i64) -> bool) -> bool {
    let [bound] = asked.values.as_slice() else { return false };
    match (have.map(str::parse::<i64>), bound.parse::<i64>()) {
        (Some(Ok(have)), Ok(bound)) => holds(have, bound),
        (Some(Ok(_) | Err(_)) | None, Ok(_) | Err(_)) => false,
    }
}
