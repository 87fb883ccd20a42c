//! Can this condition on a label be understood?
//!
//! Karpenter's rules for a requirement, with its messages where it has them.

use crate::{
    meta::WireRequirement,
    problem::{Finding, nearest, quoted},
};

const OPERATORS: [&str; 8] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"];
/// From Karpenter's CRD.
const KEY_BYTES_MAX: usize = 316;
const VALUES_MIN_MAX: i64 = 50;

/// What is wrong with the requirement at `field`.
pub fn check(field: &str, requirement: &WireRequirement) -> Vec<Finding> {
    let WireRequirement { key, operator, values, min_values } = requirement;
    let mut found = Vec::new();
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let message = format!("{} is not a label's key", quoted(key));
        found.push(Finding::error(format!("{field}.key"), message));
    }
    let at_values = format!("{field}.values");
    match operator.as_str() {
        "In" if values.is_empty() => {
            let message = "requirements with operator 'In' must have a value defined";
            found.push(Finding::error(at_values, message));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            // Karpenter admits and ignores them.
            let message = format!("operator '{operator}' takes no values, these are ignored");
            found.push(Finding::warning(at_values, message).hint("remove them, or write `In`"));
        }
        "Gt" | "Lt" | "Gte" | "Lte" if !matches!(values.as_slice(), [one] if natural(one)) => {
            let message = "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single \
                           positive integer value";
            found.push(Finding::error(at_values, message));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" | "Gte" | "Lte" => {}
        other => {
            let hint = match nearest(other, &OPERATORS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write one of {}", OPERATORS.join(", ")),
            };
            let message = format!("{} is not an operator", quoted(other));
            found.push(Finding::error(format!("{field}.operator"), message).hint(hint));
        }
    }
    if let Some(min_values) = min_values {
        let at = format!("{field}.minValues");
        if !(1..=VALUES_MIN_MAX).contains(min_values) {
            let message = format!("{min_values} is not between 1 and {VALUES_MIN_MAX}");
            found.push(Finding::error(at, message));
        } else if operator == "In" && usize::try_from(*min_values).is_ok_and(|it| values.len() < it)
        {
            let message = "requirements with 'minValues' must have at least that many values \
                           specified in the 'values' field";
            found.push(Finding::error(at, message));
        }
    }
    found
}

/// As the API server's `int()` reads it.
fn natural(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|it| it >= 0)
}
