//! The definitions say what the API server needs, and nothing that it would refuse.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use nodemolt_api::{
    crd::{self, schema},
    meta::Condition,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

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
