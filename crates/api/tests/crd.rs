//! The definitions say what the API server needs, and nothing that it would refuse.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use nodemolt_api::{
    crd::{
        self,
        digest::{Difference, Digest},
        schema,
    },
    ec2nodeclass,
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
                other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                    panic!("{path} leads into {other}")
                }
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
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return vec![path.to_owned()];
        }
    };
    inside.into_iter().flat_map(|(key, value)| leaves(value, &format!("{path}/{key}"))).collect()
}

#[test]
fn what_is_no_definition_has_no_digest() {
    for text in ["", "[]", "a: b", "spec: 3", "spec: {versions: [3, {schema: []}]}"] {
        assert!(Digest::of_yaml(text).is_err(), "{text}");
    }
}

/// The places in the tables of the page on differences, between backticks, at the beginning of a row.
fn told_differences() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/karpenter-differences.md");
    let text = std::fs::read_to_string(page).unwrap();
    text.lines()
        .filter_map(|it| it.strip_prefix("| `")?.split_once("` |"))
        .map(|(place, _)| format!("v1 {place}"))
        .collect()
}

/// Whether the pattern stands for the place. A `*` is anything.
fn stands_for(pattern: &str, place: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == place,
        Some((before, after)) => place.strip_prefix(before).is_some_and(|rest| {
            let mut starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            starts.any(|at| stands_for(after, &rest[at..]))
        }),
    }
}

#[test]
fn every_difference_of_the_class_is_on_its_page_and_nothing_else() {
    let found =
        Digest::differences(&theirs("ec2nodeclasses"), &ours("ec2nodeclasses.karpenter.k8s.aws"));
    let place = |it: &Difference| match it.place.strip_prefix("names ") {
        Some(_) => format!("v1 {}", it.place),
        None => it.place.clone(),
    };
    let told = told_differences();
    let silent: Vec<String> = found
        .iter()
        .filter(|it| !told.iter().any(|row| stands_for(row, &place(it))))
        .map(ToString::to_string)
        .collect();
    let idle: Vec<&String> =
        told.iter().filter(|row| !found.iter().any(|it| stands_for(row, &place(it)))).collect();
    assert!(silent.is_empty(), "not on the page:\n{}", silent.join("\n"));
    assert!(idle.is_empty(), "no difference: {idle:#?}");
}

#[test]
fn both_groups_have_the_same_class() {
    let (ours, karpenters) =
        ((ec2nodeclass::CRD.definition)(), (ec2nodeclass::KARPENTER_CRD.definition)());
    assert_eq!(ours.spec.names, karpenters.spec.names);
    assert_eq!(ours.spec.versions[0].schema, karpenters.spec.versions[0].schema);
    assert_eq!(karpenters.spec.versions[0].name, "v1");
    assert_eq!(karpenters.metadata.name.as_deref(), Some(ec2nodeclass::KARPENTER_CRD.name));
}

/// `kubectl explain` must teach: every field says what it is.
#[test]
fn every_field_is_described() {
    let mut silent = Vec::new();
    for it in crd::all() {
        let whole = crd::to_value(&(it.definition)()).unwrap();
        for version in whole["spec"]["versions"].as_array().unwrap() {
            undescribed(it.name, &version["schema"]["openAPIV3Schema"], &mut silent);
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}

fn undescribed(path: &str, schema: &Value, silent: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let described = field["description"].as_str().is_some_and(|it| it.ends_with(['.', '`']));
        if !described && name != "metadata" {
            silent.push(path.clone());
        }
        undescribed(&path, field, silent);
        undescribed(&path, &field["items"], silent);
        undescribed(&path, &field["additionalProperties"], silent);
    }
}
