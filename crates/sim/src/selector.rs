//! Does this selector mean that object? Is this pod well?
//!
//! The simulator's own reading, apart from `fit`'s, so that the two can disagree.

use serde_json::Value;

use crate::json::{at, items, members, text};

/// A `LabelSelector` against an object's labels. None at all selects nothing, an empty one everything.
pub(crate) fn selects(selector: Option<&Value>, object: &Value) -> bool {
    let labels = at(object, &["metadata", "labels"]).unwrap_or(&Value::Null);
    selects_labels(selector, labels)
}

pub(crate) fn selects_labels(selector: Option<&Value>, labels: &Value) -> bool {
    let Some(selector) = selector else { return false };
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    members(selector, &["matchLabels"]).all(|(key, value)| label(key) == value.as_str())
        && items(selector, &["matchExpressions"])
            .iter()
            .all(|it| expression(it, label(text(it, &["key"]))))
}

/// One of `matchExpressions`. An operator that nobody knows matches nothing.
pub(crate) fn expression(asked: &Value, have: Option<&str>) -> bool {
    let listed = || items(asked, &["values"]).iter().any(|it| it.as_str() == have);
    let number = |text: Option<&str>| text.and_then(|it| it.parse::<i64>().ok());
    let bound = || number(items(asked, &["values"]).first().and_then(Value::as_str));
    match text(asked, &["operator"]) {
        "In" => have.is_some() && listed(),
        "NotIn" => have.is_none() || !listed(),
        "Exists" => have.is_some(),
        "DoesNotExist" => have.is_none(),
        "Gt" => number(have).zip(bound()).is_some_and(|(have, bound)| have > bound),
        "Lt" => number(have).zip(bound()).is_some_and(|(have, bound)| have < bound),
        _ => false,
    }
}

/// Whether a toleration puts up with a taint.
pub(crate) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let (key, effect) = (text(toleration, &["key"]), text(toleration, &["effect"]));
    let any_value = text(toleration, &["operator"]) == "Exists";
    (effect.is_empty() || effect == text(taint, &["effect"]))
        && if key.is_empty() { any_value } else { key == text(taint, &["key"]) }
        && (any_value || text(toleration, &["value"]) == text(taint, &["value"]))
}

/// The status of one of its conditions: `True`, `False`, `Unknown`, or empty.
pub(crate) fn condition<'v>(object: &'v Value, kind: &str) -> &'v str {
    items(object, &["status", "conditions"])
        .iter()
        .find(|it| text(it, &["type"]) == kind)
        .map_or("", |it| text(it, &["status"]))
}

pub(crate) fn ready(object: &Value) -> bool {
    condition(object, "Ready") == "True"
}
