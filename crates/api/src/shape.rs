//! Which shapes do our own kinds share, and what may be written there?
//!
//! For `#[schemars(schema_with = "…")]`. Every length and list has a limit: without one the API
//! server reckons with the worst case, and refuses a definition whose rules could become costly.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::crd::schema;

// The patterns stand inside strings of CEL, where a backslash would need another one.
const LABEL_KEY: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                         ([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$";
const LABEL_VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
const IMAGE_ID: &str = "^ami-([0-9a-f]{8}|[0-9a-f]{17})$";
const IMAGE_ID_REMEDY: &str = "is not the id of an image: an id is `ami-` and 8 or 17 digits and \
                               letters from a to f, for example ami-0123456789abcdef0";

/// Longer is nothing that a person would read in a terminal.
pub(crate) const SENTENCE_LENGTH_MAX: u32 = 1024;

/// What a controller says about the object, at most this many entries.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = schema::conditions(generator);
    schema.insert("maxItems".to_owned(), 16.into());
    schema
}

/// A rule with its message, as the API server takes it.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

/// One of an enum's words. The field says what they mean; the enum's own description would hide that.
pub(crate) fn word<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    schema.remove("description");
    schema
}

/// A string of at most so many characters for which one rule holds.
fn string(max: u32, rules: &[Value]) -> Schema {
    json_schema!({"type": "string", "maxLength": max, "x-kubernetes-validations": rules})
}

/// Strings of one shape. Whoever writes such a list owns all of it.
fn list(items_max: u32, item: &Schema) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": items_max,
        "items": item,
        "x-kubernetes-list-type": "atomic",
    })
}

/// The id of one image.
pub(crate) fn image_id(_: &mut SchemaGenerator) -> Schema {
    string(21, &[rule(&format!("self.matches('{IMAGE_ID}')"), IMAGE_ID_REMEDY)])
}

/// The ids of images.
pub(crate) fn image_ids(generator: &mut SchemaGenerator) -> Schema {
    list(500, &image_id(generator))
}

/// A pattern of an image's name. EC2 allows 128 characters.
pub(crate) fn name_pattern(_: &mut SchemaGenerator) -> Schema {
    let message = "is empty: write a name, with `*` for any characters, or remove it";
    string(128, &[rule("self.trim() != ''", message)])
}

/// Patterns of images' names.
pub(crate) fn name_patterns(generator: &mut SchemaGenerator) -> Schema {
    list(100, &name_pattern(generator))
}

/// An id, or a pattern of a name.
pub(crate) fn id_or_name_pattern(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = name_pattern(generator);
    let id = rule(
        &format!("!self.startsWith('ami-') || self.matches('{IMAGE_ID}')"),
        "begins like an id and is none: an id is `ami-` and 8 or 17 digits and letters from a to f",
    );
    if let Some(Value::Array(rules)) = schema.get_mut("x-kubernetes-validations") {
        rules.push(id);
    }
    schema
}

/// Whose images.
pub(crate) fn owners(_: &mut SchemaGenerator) -> Schema {
    let message = "is not an owner: write an account as 12 digits in quotes, or `self`, `amazon`, \
                   `aws-marketplace` or `aws-backup-vault`";
    let known = "self.matches('^([0-9]{12}|self|amazon|aws-marketplace|aws-backup-vault)$')";
    list(100, &string(32, &[rule(known, message)]))
}

/// An account's number.
pub(crate) fn account(_: &mut SchemaGenerator) -> Schema {
    let message = "is not an account: write its 12 digits in quotes, for example \"012345678901\"";
    string(12, &[rule("self.matches('^[0-9]{12}$')", message)])
}

/// A sentence that must say something.
pub(crate) fn sentence(_: &mut SchemaGenerator) -> Schema {
    let message = "is empty: say why, others will read it";
    string(SENTENCE_LENGTH_MAX, &[rule("self.trim() != ''", message)])
}

/// `2w`, `7d`, `36h`, `1w3d12h`, as on a class.
pub(crate) fn age(_: &mut SchemaGenerator) -> Schema {
    let message = "is not a length of time: write weeks, days, hours and minutes in this order, \
                   each with its unit, for example 7d, 36h or 1w3d";
    let units = "self.matches('^([0-9]{1,9}w)?([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?$')";
    string(48, &[rule(&format!("self != '' && {units}"), message)])
}

/// An [`age`] that may be shorter than a minute: `90s`, `1h30m`.
pub(crate) fn length(_: &mut SchemaGenerator) -> Schema {
    let message = "is not a length of time: write weeks, days, hours, minutes and seconds in this \
                   order, each with its unit, for example 90s, 30m or 1h30m";
    let units =
        "self.matches('^([0-9]{1,9}w)?([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?$')";
    string(48, &[rule(&format!("self != '' && {units}"), message)])
}

/// A date, or a time with its zone.
pub(crate) fn moment(_: &mut SchemaGenerator) -> Schema {
    let message = "is not a date or a time with its zone: write it as 2026-08-01 or \
                   2026-08-01T12:00:00Z";
    string(40, &[rule(&format!("self.matches('^{DATE}({TIME})?$')"), message)])
}

/// A date of any year, with as many days as its month may have. Only the calendar knows which years have
/// a 29th of February.
pub(crate) const DATE: &str = "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])\
                               |(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))";
const TIME: &str = "[Tt ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?\
                    ([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)";

/// A time that a program wrote.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time", "maxLength": 40})
}

/// How many: a number, or a share of them all.
pub(crate) fn number_or_percent(_: &mut SchemaGenerator) -> Schema {
    let message = "is neither a number nor a share: write a number such as 3, or a percentage from 0% to \
                   100%";
    int_or_string("^([0-9]{1,9}|(100|[0-9]{1,2})%)$", message)
}

/// What Kubernetes' own number-or-string holds.
const INT32_MAX: i32 = i32::MAX;

/// A number that is not negative, or a string that matches. A number in quotes should match, too:
/// templates write it so.
pub(crate) fn int_or_string(pattern: &str, message: &str) -> Schema {
    let rule = rule(
        &format!(
            "type(self) == int ? self >= 0 && self <= {INT32_MAX} : \
             (type(self) == string && self.matches('{pattern}'))"
        ),
        message,
    );
    json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
        "x-kubernetes-validations": [rule],
    })
}

/// Labels and their values.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 20,
        "additionalProperties": {
            "type": "string",
            "maxLength": 63,
            "x-kubernetes-validations": [rule(
                &format!("self.matches('{LABEL_VALUE}')"),
                "is not the value of a label: write letters, digits, `-`, `_` and `.`, with a letter \
                 or a digit at both ends",
            )],
        },
        "x-kubernetes-validations": [rule(
            &format!("self.all(key, size(key) <= 316 && key.matches('{LABEL_KEY}'))"),
            "has a key that is not the name of a label: write it as `name` or `domain/name`",
        )],
        "x-kubernetes-map-type": "atomic",
    })
}

/// Which objects, by their labels.
pub(crate) fn label_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut match_labels = labels(generator);
    match_labels.insert("description".to_owned(), "Labels with exactly these values.".into());
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": match_labels,
            "matchExpressions": {
                "type": "array",
                "description": "Labels by operator. All of them must hold.",
                "maxItems": 20,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "description": "One condition on one label.",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {
                            "type": "string",
                            "description": "The label.",
                            "maxLength": 316,
                            "x-kubernetes-validations": [rule(
                                &format!("self.matches('{LABEL_KEY}')"),
                                "is not the name of a label: write it as `name` or `domain/name`",
                            )],
                        },
                        "operator": {
                            "type": "string",
                            "description": "How the label is compared.",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "type": "array",
                            "description": "What `In` and `NotIn` compare with.",
                            "maxItems": 50,
                            "items": {"type": "string", "maxLength": 63},
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                    "x-kubernetes-validations": [
                        rule(
                            "!(self.operator in ['In', 'NotIn']) || \
                             (has(self.values) && size(self.values) > 0)",
                            "the operators In and NotIn need at least one value: write `values`, or \
                             Exists and DoesNotExist",
                        ),
                        rule(
                            "!(self.operator in ['Exists', 'DoesNotExist']) || \
                             !has(self.values) || size(self.values) == 0",
                            "the operators Exists and DoesNotExist take no values: remove `values`, \
                             or write In or NotIn",
                        ),
                    ],
                },
            },
        },
        "x-kubernetes-map-type": "atomic",
    })
}
