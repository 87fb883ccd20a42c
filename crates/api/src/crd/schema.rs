//! How are the shapes that all kinds share written in a schema?
//!
//! For `#[schemars(schema_with = "…")]`, where the struct's own type would say too little.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

/// An amount as the API server reads it: `4`, `500m`, `20Gi`, `1e3`.
pub const QUANTITY: &str = "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$";

/// A label's or a taint's key, with or without a domain.
pub const QUALIFIED_NAME: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";

/// A label's value, which may be empty.
pub const LABEL_VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";

/// Resources and how much of each.
pub fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": quantity(generator)})
}

/// One amount, as a number or a string.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": true,
    })
}

/// What a controller says about the object, one entry per type. `Ready` sums up the others.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "description": "What the controller found out about this object, one entry per type. `Ready` \
                        sums up the others: wait for it with `kubectl wait --for=condition=Ready`.",
        "items": condition(
            "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            Some(1),
            &["lastTransitionTime", "message", "reason", "status", "type"],
        ),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// [`conditions`], where neither reason nor message need be there.
pub fn terse_conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = conditions(generator);
    let item = condition(
        "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$",
        None,
        &["lastTransitionTime", "status", "type"],
    );
    schema.insert("items".to_owned(), item);
    schema
}

fn condition(
    reason_pattern: &str,
    reason_length_min: Option<u32>,
    required: &[&str],
) -> serde_json::Value {
    let mut reason = json!({
        "type": "string",
        "description": "Why, in one word that programs can rely on, for example `ImageHeld`.",
        "maxLength": 1024,
        "pattern": reason_pattern,
    });
    if let Some(min) = reason_length_min {
        reason["minLength"] = min.into();
    }
    json!({
        "type": "object",
        "description": "One thing that holds, does not hold, or is not known.",
        "required": required,
        "properties": {
            "lastTransitionTime": {
                "type": "string",
                "format": "date-time",
                "description": "When `status` last changed.",
            },
            "message": {
                "type": "string",
                "maxLength": 32768,
                "description": "Why, in a sentence for people, with values and dates.",
            },
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "minimum": 0,
                "description": "The `metadata.generation` that this was found out for. Where it is \
                                less than the object's, this is old news.",
            },
            "reason": reason,
            "status": {
                "type": "string",
                "enum": ["True", "False", "Unknown"],
                "description": "Whether it holds.",
            },
            "type": {
                "type": "string",
                "maxLength": 316,
                "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                "description": "What it is about, for example `Ready`.",
            },
        },
    })
}
