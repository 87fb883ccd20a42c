//! Why is an object refused?
//!
//! What the API server puts into `details.causes`: the field, what kind of mistake it is, and a sentence.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::go;

/// One reason, in the API server's words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cause {
    /// As the server writes it: `spec.amiSelectorTerms[0].id`, `spec.tags[name]`, and `<nil>` where it
    /// names none.
    pub field: String,
    #[serde(rename = "reason")]
    pub kind: CauseKind,
    pub message: String,
}

/// What kind of mistake it is. The names are the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum CauseKind {
    #[serde(rename = "FieldValueRequired")]
    Required,
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    #[serde(rename = "FieldValueTypeInvalid")]
    TypeInvalid,
    #[serde(rename = "FieldValueNotSupported")]
    NotSupported,
    #[serde(rename = "FieldValueTooLong")]
    TooLong,
    #[serde(rename = "FieldValueTooMany")]
    TooMany,
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
    #[serde(rename = "FieldValueForbidden")]
    Forbidden,
    /// Not an object of this kind at all. The server answers 400 to those, and names no causes.
    #[serde(rename = "BadRequest")]
    Malformed,
}

/// The field of a cause that concerns no field.
pub const NO_FIELD: &str = "<nil>";

impl Cause {
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::told(field, CauseKind::Required, "Required value", None, detail)
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::told(field, CauseKind::Invalid, "Invalid value", Some(&go::bad_value(value)), detail)
    }

    /// Where the value would only fill the screen.
    pub(crate) fn invalid_unshown(field: impl Into<String>, detail: &str) -> Self {
        Self::told(field, CauseKind::Invalid, "Invalid value", None, detail)
    }

    pub(crate) fn type_invalid(field: impl Into<String>, found: &str, detail: &str) -> Self {
        let found = go::quote(found);
        Self::told(field, CauseKind::TypeInvalid, "Invalid value", Some(&found), detail)
    }

    pub(crate) fn not_supported(field: impl Into<String>, value: &Value, known: &[Value]) -> Self {
        let known: Vec<String> = known
            .iter()
            .map(|it| match it {
                Value::String(text) => go::quote(text),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => go::quote(&go::json(it)),
            })
            .collect();
        let detail = format!("supported values: {}", known.join(", "));
        let value = go::bad_value(value);
        Self::told(field, CauseKind::NotSupported, "Unsupported value", Some(&value), &detail)
    }

    pub(crate) fn too_long(field: impl Into<String>, most: i64) -> Self {
        let bytes = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {bytes}");
        Self::told(field, CauseKind::TooLong, "Too long", None, &detail)
    }

    pub(crate) fn too_many(field: impl Into<String>, found: usize, most: i64) -> Self {
        let items = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {items}");
        Self::told(field, CauseKind::TooMany, "Too many", Some(&found.to_string()), &detail)
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let value = go::bad_value(value);
        Self::told(field, CauseKind::Duplicate, "Duplicate value", Some(&value), "")
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::told(field, CauseKind::Forbidden, "Forbidden", None, detail)
    }

    pub(crate) fn malformed(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), kind: CauseKind::Malformed, message: message.into() }
    }

    fn told(
        field: impl Into<String>,
        kind: CauseKind,
        title: &str,
        value: Option<&str>,
        detail: &str,
    ) -> Self {
        let mut message = title.to_owned();
        for part in [value.unwrap_or_default(), detail] {
            if !part.is_empty() {
                message.push_str(": ");
                message.push_str(part);
            }
        }
        Self { field: field.into(), kind, message }
    }

    /// Whether rules are left out because of it: they could not rely on what they look at.
    pub(crate) fn blocks_rules(&self) -> bool {
        match self.kind {
            CauseKind::Required
            | CauseKind::TypeInvalid
            | CauseKind::NotSupported
            | CauseKind::TooLong
            | CauseKind::TooMany => true,
            CauseKind::Invalid
            | CauseKind::Duplicate
            | CauseKind::Forbidden
            | CauseKind::Malformed => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.field, self.message)
    }
}
