//! How are the shapes that all kinds share written in a schema?
//!
//! For `#[schemars(schema_with = "…")]`, where the struct's own type would say too little.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// An amount as the API server reads it: `4`, `500m`, `20Gi`, `1e3`.
pub const QUANTITY: &str = "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$";

/// A percentage with up to two decimals, or a [`QUANTITY`].
pub const THRESHOLD: &str = "^((\\d{1,2}(\\.\\d{1,2})?|100(\\.0{1,2})?)%||(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?)$";

/// A label's or a taint's key, with or without a domain.
pub const QUALIFIED_NAME: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";

/// A label's value, which may be empty.
pub const LABEL_VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";

/// Hours, minutes and seconds in any order: `1h30m`.
pub const DURATION: &str = "^([0-9]+(s|m|h))+$";

/// [`DURATION`], or the word for none.
pub const DURATION_OR_NEVER: &str = "^(([0-9]+(s|m|h))+|Never)$";

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

/// Labels that a pool gives to its nodes.
pub fn template_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 63, "pattern": LABEL_VALUE},
        "maxProperties": 100,
        "x-kubernetes-map-type": "atomic",
    })
}

/// The removals that a budget of a pool can be for.
pub fn disruption_reasons(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "string",
            "enum": ["Underutilized", "Empty", "Drifted"],
            "description": "Why a node is removed.",
        },
        "maxItems": 50,
        "x-kubernetes-list-type": "set",
    })
}

/// What nodes of a pool must be. The pool's own label is the pool's to give.
pub fn pool_requirements(_: &mut SchemaGenerator) -> Schema {
    let own_label = rule(
        r#"self != "karpenter.sh/nodepool""#,
        r#"label "karpenter.sh/nodepool" is restricted"#,
    );
    requirements(&[restricted_domain(), own_label, restricted_hostname(), restricted_aws_domain()])
}

/// What one node must be.
pub fn claim_requirements(_: &mut SchemaGenerator) -> Schema {
    requirements(&[restricted_domain(), restricted_hostname(), restricted_aws_domain()])
}

/// What nodes must be for an image to suit them. Ours, so the rules say what they mean where Karpenter's
/// fail: a missing value is told as such.
pub fn image_requirements(_: &mut SchemaGenerator) -> Schema {
    let mut schema = requirements(&[]);
    let rules = json!([
        rule(
            "self.all(x, x.operator == 'In' ? (has(x.values) && x.values.size() != 0) : true)",
            "requirements with operator 'In' must have a value defined",
        ),
        rule(
            "self.all(x, x.operator in ['Gt', 'Lt', 'Gte', 'Lte'] ? (has(x.values) && x.values.size() == 1 && x.values[0].matches('^[0-9]{1,18}$')) : true)",
            "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
        ),
        rule(
            "self.all(x, (x.operator == 'In' && has(x.minValues)) ? (has(x.values) && x.values.size() >= x.minValues) : true)",
            "requirements with 'minValues' must have at least that many values specified in the 'values' field",
        ),
    ]);
    schema.insert("x-kubernetes-validations".to_owned(), rules);
    if let Some(key) = schema.pointer_mut("/items/properties/key").and_then(Value::as_object_mut) {
        key.remove("x-kubernetes-validations");
    }
    if let Some(values) = schema.pointer_mut("/items/properties/values") {
        *values = json!({
            "type": "array",
            "description": "What the label is compared with. Numbers in quotes, too.",
            "items": {"type": "string", "maxLength": 63, "pattern": LABEL_VALUE},
            "maxItems": 1000,
            "x-kubernetes-list-type": "atomic",
        });
    }
    schema
}

/// What nodes must be, as a controller found out. Nobody has to be told what is wrong with it.
pub fn found_requirements(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "description": "One condition on a label of nodes.",
            "required": ["key", "operator"],
            "properties": {
                "key": {"type": "string", "description": "The label."},
                "operator": {"type": "string", "description": "How the label is compared."},
                "values": {
                    "type": "array",
                    "description": "What the label is compared with.",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "atomic",
                },
            },
        },
    })
}

/// Tags to select by.
pub fn selector_tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 1024},
        "maxProperties": 20,
    })
}

/// Tags to put on what is launched: EC2 takes 50, and values of 256 characters.
pub fn launch_tags(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 256},
        "maxProperties": 50,
    })
}

/// Amounts that are kept back, as strings.
pub fn reserved(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 256, "pattern": QUANTITY},
        "maxProperties": 20,
    })
}

/// Amounts or percentages below which pods are evicted.
pub fn thresholds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 256, "pattern": THRESHOLD},
        "maxProperties": 20,
    })
}

/// Lengths of time by eviction signal.
pub fn grace_periods(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": 256},
        "maxProperties": 20,
    })
}

/// How many of each.
pub fn counts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "integer", "format": "int64", "minimum": 0},
        "maxProperties": 100,
    })
}

fn restricted_domain() -> Value {
    rule(
        r#"self in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !self.find("^([^/]+)").endsWith("karpenter.sh")"#,
        r#"label domain "karpenter.sh" is restricted"#,
    )
}

/// The labels of that domain that nodes on AWS have, as Karpenter's CRD lists them.
pub const AWS_LABELS: [&str; 28] = [
    "karpenter.k8s.aws/instance-tenancy",
    "karpenter.k8s.aws/capacity-reservation-type",
    "karpenter.k8s.aws/capacity-reservation-id",
    "karpenter.k8s.aws/capacity-reservation-interruptible",
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.k8s.aws/instance-encryption-in-transit-supported",
    "karpenter.k8s.aws/instance-category",
    "karpenter.k8s.aws/instance-hypervisor",
    "karpenter.k8s.aws/instance-family",
    "karpenter.k8s.aws/instance-generation",
    "karpenter.k8s.aws/instance-local-nvme",
    "karpenter.k8s.aws/instance-size",
    "karpenter.k8s.aws/instance-cpu",
    "karpenter.k8s.aws/instance-cpu-manufacturer",
    "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
    "karpenter.k8s.aws/instance-memory",
    "karpenter.k8s.aws/instance-ebs-bandwidth",
    "karpenter.k8s.aws/instance-network-bandwidth",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-gpu-manufacturer",
    "karpenter.k8s.aws/instance-gpu-count",
    "karpenter.k8s.aws/instance-gpu-memory",
    "karpenter.k8s.aws/instance-accelerator-name",
    "karpenter.k8s.aws/instance-accelerator-manufacturer",
    "karpenter.k8s.aws/instance-accelerator-count",
    "karpenter.k8s.aws/instance-capability-flex",
    "karpenter.k8s.aws/placement-group-id",
    "karpenter.k8s.aws/placement-group-partition",
];

/// The labels that nodes on AWS have. Another of that domain is misspelt: no node would ever have it.
fn restricted_aws_domain() -> Value {
    let known = format!("{AWS_LABELS:?}");
    rule(
        &format!(r#"self in {known} || !self.find("^([^/]+)").endsWith("karpenter.k8s.aws")"#),
        r#"label domain "karpenter.k8s.aws" is restricted"#,
    )
}

fn restricted_hostname() -> Value {
    rule(r#"self != "kubernetes.io/hostname""#, r#"label "kubernetes.io/hostname" is restricted"#)
}

fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

fn requirements(key_rules: &[Value]) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 100,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "description": "One condition on a label of nodes.",
            "required": ["key", "operator"],
            "properties": {
                "key": {
                    "type": "string",
                    "description": "The label, for example `kubernetes.io/arch`.",
                    "maxLength": 316,
                    "pattern": QUALIFIED_NAME,
                    "x-kubernetes-validations": key_rules,
                },
                "minValues": {
                    "type": "integer",
                    "description": "How many different values must stay possible, 1 to 50, so that \
                                    a shortage of one does not stop everything.",
                    "minimum": 1,
                    "maximum": 50,
                },
                "operator": {
                    "type": "string",
                    "description": "How the label is compared. `In`, `NotIn`: with the values. \
                                    `Exists`, `DoesNotExist`: whether it is there. `Gt`, `Lt`, \
                                    `Gte`, `Lte`: as a number with the one value.",
                    "enum": ["Gte", "Lte", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"],
                },
                // Length and pattern have no effect on a list. They stand where Karpenter has them.
                "values": {
                    "type": "array",
                    "description": "What the label is compared with. Numbers in quotes, too.",
                    "items": {"type": "string"},
                    "maxLength": 63,
                    "pattern": LABEL_VALUE,
                    "x-kubernetes-list-type": "atomic",
                },
            },
        },
        "x-kubernetes-validations": [
            rule(
                "self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)",
                "requirements with operator 'In' must have a value defined",
            ),
            rule(
                "self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)",
                "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",
            ),
            rule(
                "self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)",
                "requirements with 'minValues' must have at least that many values specified in the 'values' field",
            ),
        ],
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

fn condition(reason_pattern: &str, reason_length_min: Option<u32>, required: &[&str]) -> Value {
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
