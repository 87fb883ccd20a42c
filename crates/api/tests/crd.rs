//! The definitions say what the API server needs, and nothing that it would refuse.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use nodemolt_api::{
    crd::{self, digest::Digest, schema},
    meta::Condition,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How a kind is written; also the example of the documentation.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "nodemolt.dev",
    version = "v1alpha1",
    kind = "Sample",
    plural = "samples",
    root = "SampleObject",
    status = "SampleStatus",
    derive = "PartialEq",
    doc = "One sample.",
    category = "nodemolt",
    shortname = "smp",
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size")
)]
#[serde(rename_all = "camelCase")]
struct SampleSpec {
    /// How many.
    #[schemars(range(min = 1, max = 64))]
    size: u32,
    /// Its colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["red", "green"]), length(max = 9))]
    #[x_kube(validation = ("self != 'red'", "colour `red` is taken: write `green`"))]
    colour: Option<String>,
}

/// What was found out.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SampleStatus {
    /// What was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::conditions")]
    conditions: Option<Vec<Condition>>,
}

#[test]
fn a_finished_definition_has_no_habits_of_the_generator() {
    let crd = crd::to_value(&crd::finish(SampleObject::crd())).unwrap();
    let version = &crd["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(crd["spec"]["names"]["listKind"], "SampleList");
    assert_eq!(
        schema["properties"]["spec"],
        json!({
            "type": "object",
            "description": "How a kind is written; also the example of the documentation.",
            "required": ["size"],
            "properties": {
                "size": {
                    "type": "integer", "minimum": 1, "maximum": 64, "description": "How many."
                },
                "colour": {
                    "type": "string", "enum": ["red", "green"], "maxLength": 9,
                    "description": "Its colour.",
                    "x-kubernetes-validations": [{
                        "rule": "self != 'red'",
                        "message": "colour `red` is taken: write `green`",
                    }],
                },
            },
        })
    );
    let conditions = &schema["properties"]["status"]["properties"]["conditions"];
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    assert_eq!(schema["properties"]["metadata"], json!({"type": "object"}));
}

#[test]
fn one_schema_is_served_in_several_groups_and_versions() {
    let there = crd::in_group(crd::finish(SampleObject::crd()), "example.org", "v1");
    assert_eq!(there.metadata.name.as_deref(), Some("samples.example.org"));
    let many = crd::in_versions(there, &["v1alpha3", "v1beta1"], "v1beta1");
    let said: Vec<_> = many.spec.versions.iter().map(|it| (&*it.name, it.storage)).collect();
    assert_eq!(said, [("v1alpha3", false), ("v1beta1", true)]);
    assert_eq!(many.spec.versions[0].schema, many.spec.versions[1].schema);
}

fn ours(name: &str) -> Digest {
    let crd = crd::all().into_iter().find(|it| it.name == name).unwrap();
    Digest::of(&crd::to_value(&(crd.definition)()).unwrap())
}

/// What Karpenter publishes, as `cargo xtask generate karpenter` found it.
fn theirs(name: &str) -> Digest {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/karpenter");
    Digest::from_text(&std::fs::read_to_string(format!("{folder}/{name}.digest")).unwrap())
}

#[test]
fn pools_and_claims_are_exactly_karpenters() {
    for name in ["nodepools", "nodeclaims"] {
        let theirs = theirs(name);
        let ours = ours(&format!("{name}.karpenter.sh"));
        let found: Vec<String> =
            Digest::differences(&theirs, &ours).iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{name}, theirs → ours:\n{}", found.join("\n"));
    }
}

#[test]
fn a_digest_sees_every_difference_and_survives_being_written_down() {
    for it in crd::all() {
        let whole = crd::to_value(&(it.definition)()).unwrap();
        let digest = Digest::of(&whole);
        assert_eq!(Digest::from_text(&digest.to_text()), digest, "{}", it.name);

        // Take away any one keyword of the schema: the digest must differ, save for descriptions.
        let schema = whole.pointer("/spec/versions/0/schema").unwrap();
        for path in leaves(schema, "/spec/versions/0/schema") {
            let mut less = whole.clone();
            let (parent, key) = path.rsplit_once('/').unwrap();
            let key = key.replace("~1", "/").replace("~0", "~");
            match less.pointer_mut(parent).unwrap() {
                Value::Object(fields) => drop(fields.remove(&key)),
                Value::Array(items) => drop(items.remove(key.parse().unwrap())),
                other => panic!("{path} leads into {other}"),
            }
            assert_ne!(Digest::of(&less), digest, "{} without {path}", it.name);
        }
    }
}

/// JSON pointers to everything that is said, save descriptions.
fn leaves(value: &Value, path: &str) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, value)| !(*key == "description" && value.is_string()))
            .map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, it)| (at.to_string(), it)).collect()
        }
        _ => return vec![path.to_owned()],
    };
    inside.into_iter().flat_map(|(key, value)| leaves(value, &format!("{path}/{key}"))).collect()
}

#[test]
fn what_is_no_definition_has_no_digest() {
    for text in ["", "[]", "a: b", "spec: 3", "spec: {versions: [3, {schema: []}]}"] {
        assert!(Digest::of_yaml(text).is_err(), "{text}");
    }
}
