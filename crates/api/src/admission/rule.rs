//! What does one rule of a schema say?
//!
//! `x-kubernetes-validations → expressions ready to run`

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;
use serde_json::Value;

use super::{
    cause::Cause,
    cel::{self, Expression, Scope},
    place::Place,
};

/// What the server takes of a `messageExpression`.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// One rule.
#[derive(Debug)]
pub struct Rule {
    pub(crate) text: String,
    pub(crate) message: Option<String>,
    expression: Expression,
    message_expression: Option<Expression>,
    reason: Option<String>,
    /// Below the rule's own place.
    field_path: Option<String>,
    /// What it looks at of an object, if not at all of it.
    pub(crate) members: Option<BTreeSet<String>>,
    /// It looks at the old value too.
    pub(crate) transition: bool,
    /// It says that nothing may change, and no more than that.
    pub(crate) forbids_change: bool,
    /// It wants to be asked even where there is no old value.
    pub(crate) optional_old: bool,
}

/// What came of asking.
#[derive(Debug)]
pub(crate) enum Ruling {
    Kept,
    Broken(Cause),
    /// The rule itself failed; this is never forgiven.
    Failed(Cause),
    /// Looking further would take too long.
    OutOfBudget(Cause),
}

impl Rule {
    pub(crate) fn compile(rule: &ValidationRule) -> Result<Self, String> {
        let expression = cel::compile(&rule.rule)
            .map_err(|error| format!("rule `{}`: {error}", rule.rule.trim()))?;
        let message_expression = match rule.message_expression.as_deref() {
            None | Some("") => None,
            Some(text) => Some(
                cel::compile(text)
                    .map_err(|error| format!("messageExpression `{text}`: {error}"))?,
            ),
        };
        Ok(Self {
            members: cel::members(std::iter::once(&expression).chain(&message_expression)),
            transition: cel::mentions(&expression, "oldSelf"),
            forbids_change: rule.rule.trim() == "self == oldSelf"
                && rule.optional_old_self != Some(true),
            text: rule.rule.trim().to_owned(),
            message: rule
                .message
                .as_deref()
                .map(|it| it.trim().to_owned())
                .filter(|it| !it.is_empty()),
            expression,
            message_expression,
            reason: rule.reason.clone(),
            field_path: rule.field_path.as_deref().filter(|it| !it.is_empty()).map(normalized),
            optional_old: rule.optional_old_self == Some(true),
        })
    }

    pub(crate) fn ask(
        &self,
        scope: &Scope<'_>,
        value: &Value,
        kind: &str,
        place: Place<'_>,
    ) -> Ruling {
        let shown = Value::String(kind.to_owned());
        let failed = |detail: String| Cause::invalid(place.field(), &shown, &detail);
        let told = match scope.evaluate(&self.expression) {
            Ok(told) => told,
            Err(cel::Failure::OutOfBudget) => {
                return Ruling::OutOfBudget(failed(
                    "validation failed due to running out of cost budget, no further validation rules will be run"
                        .to_owned(),
                ));
            }
            Err(cel::Failure::NoOverload) => {
                return Ruling::Failed(failed(format!(
                    "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {}",
                    self.called()
                )));
            }
            Err(cel::Failure::Error(error)) => {
                return Ruling::Failed(failed(format!(
                    "{error} evaluating rule: {}",
                    self.called()
                )));
            }
        };
        if told == cel::Value::Bool(true) {
            return Ruling::Kept;
        }
        let field = match &self.field_path {
            None => place.field(),
            Some(below) => match place {
                Place::Root => below.clone(),
                Place::Member(..) | Place::Key(..) | Place::Item(..) => format!("{place}.{below}"),
            },
        };
        let detail = self.spoken(scope);
        Ruling::Broken(match self.reason.as_deref() {
            Some("FieldValueForbidden") => Cause::forbidden(field, &detail),
            Some("FieldValueRequired") => Cause::required(field, &detail),
            Some("FieldValueDuplicate") => Cause::duplicate(field, value),
            Some(_) | None if matches!(kind, "object" | "array") => {
                Cause::invalid_unshown(field, &detail)
            }
            Some(_) | None => Cause::invalid(field, value, &detail),
        })
    }

    /// The message as written, as computed, or the rule itself.
    fn spoken(&self, scope: &Scope<'_>) -> String {
        let computed = self.message_expression.as_ref().and_then(|it| {
            let Ok(cel::Value::String(text)) = scope.evaluate(it) else { return None };
            let text = text.trim().to_owned();
            let fit = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
            fit.then_some(text)
        });
        computed
            .or_else(|| self.message.clone())
            .unwrap_or_else(|| format!("failed rule: {}", self.text))
    }

    fn called(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.text)
    }
}

/// `.a['b.c']` as `a.b.c`, which is how the server writes it.
fn normalized(path: &str) -> String {
    let mut out = String::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let name;
        if let Some(quoted) = rest.strip_prefix("['") {
            let end = quoted.find("']").unwrap_or(quoted.len());
            (name, rest) = (&quoted[..end], quoted.get(end + 2..).unwrap_or(""));
        } else {
            let start = usize::from(first == '.');
            let after = &rest[start..];
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 && start == 0 {
                break;
            }
            (name, rest) = after.split_at(end);
        }
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_paths_are_written_as_the_server_writes_them() {
        for (path, written) in [
            (".a", "a"),
            (".a.b", "a.b"),
            (".a['b.c']", "a.b.c"),
            ("['x'].y", "x.y"),
            ("[", ""),
            ("['", ""),
        ] {
            assert_eq!(normalized(path), written);
        }
    }
}
