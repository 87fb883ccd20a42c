//! What the API server admits, the file door reads, and nothing is lost on the way.
//!
//! Objects are made from the definitions themselves: every field that a schema has turns up sooner or
//! later, so a field that the structs forgot is found.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::cell::Cell;

use nodemolt_api::{
    admission::Validator,
    crd::{self, Crd},
    file::{Object, Source, read},
    problem::Severity,
};
use proptest::{
    prelude::*,
    sample::select,
    string::string_regex,
    test_runner::{Config, TestRunner},
};
use serde_json::{Map, Value, json};

/// Texts that say something somewhere, and texts that YAML could take for something else.
const TEXTS: [&str; 22] = [
    "",
    "a",
    "nodes",
    "al2023@latest",
    "bottlerocket@v1.44.0",
    "self",
    "123456789012",
    "2w",
    "1w3d12h",
    "/dev/xvda",
    "two words",
    "#!/bin/bash\necho hello\n",
    "trailing \n\n",
    "~",
    "yes",
    "null",
    "0x10",
    "1e3",
    "- dash",
    "key: value",
    "größe 🦀",
    "'quoted' \"twice\"",
];

const KEYS: [&str; 10] = [
    "a",
    "team",
    "cpu",
    "memory",
    "ephemeral-storage",
    "memory.available",
    "nodefs.available",
    "karpenter.sh/capacity-type",
    "example.org/key",
    "yes",
];

/// Texts for fields of this name: some that their rules let pass, and the empty one.
fn texts(name: &str) -> &'static [&'static str] {
    match name {
        "alias" => {
            &["al2023@latest", "al2@v20240625", "bottlerocket@v1.44.0", "windows2022@latest~1"]
        }
        "owner" => &["", "self", "amazon", "123456789012"],
        "amiMinimumAge" => &["2w", "7d", "1w3d12h30m"],
        "name" | "ssmParameter" => &["", "golden-*", "/golden", "~"],
        "group" | "kind" | "role" | "instanceProfile" => &["a", "two words", "yes"],
        _ => &TEXTS,
    }
}

/// A value of this schema for a field of this name. Rules between fields are not looked at.
fn value(name: &str, schema: &Value) -> BoxedStrategy<Value> {
    if let Some(words) = schema["enum"].as_array() {
        return select(words.clone()).boxed();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return match schema["pattern"].as_str() {
            // As structs write it: amounts are kept as texts.
            Some(pattern) => text(pattern),
            None => prop_oneof![
                (0i64..1000).prop_map(Value::from),
                select(&TEXTS[1..]).prop_map(Value::from)
            ]
            .boxed(),
        };
    }
    match schema["type"].as_str().unwrap() {
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "integer" => {
            let low = schema["minimum"].as_i64().unwrap_or(0);
            (low..=schema["maximum"].as_i64().unwrap_or(low + 1000)).prop_map(Value::from).boxed()
        }
        "string" if schema["format"] == "date-time" => {
            select(&["2026-11-15T09:00:00Z", "2026-11-15T10:00:00.5+01:00"][..])
                .prop_map(Value::from)
                .boxed()
        }
        "string" => match schema["pattern"].as_str() {
            Some(pattern) => text(pattern),
            None => select(texts(name)).prop_map(Value::from).boxed(),
        },
        "array" => {
            let few = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).unwrap();
            prop::collection::vec(value("", &schema["items"]), few..few + 3)
                .prop_map(Value::from)
                .boxed()
        }
        "object" if schema["additionalProperties"].is_object() => {
            let entry = (select(&KEYS[..]), value("", &schema["additionalProperties"]));
            prop::collection::vec(entry, 0..3)
                .prop_map(|all| all.into_iter().map(|(key, it)| (key.to_owned(), it)).collect())
                .prop_map(Value::Object)
                .boxed()
        }
        "object" => object(schema, 0.4),
        other => panic!("a value of type {other}"),
    }
}

/// An object with what it must have, and of the rest what comes.
fn object(schema: &Value, share: f64) -> BoxedStrategy<Value> {
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|it| it.contains(&name.into()));
    let mut made = Just(Map::new()).boxed();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let field = if required(name) {
            value(name, field).prop_map(Some).boxed()
        } else {
            prop::option::weighted(share, value(name, field)).boxed()
        };
        let name = name.clone();
        made = (made, field)
            .prop_map(move |(mut made, field)| {
                made.extend(field.map(|it| (name.clone(), it)));
                made
            })
            .boxed();
    }
    let open = schema["x-kubernetes-preserve-unknown-fields"] == true;
    (made, prop::bool::weighted(0.3))
        .prop_map(move |(mut made, more)| {
            if open && more {
                made.insert("topologyManagerPolicy".to_owned(), "single-numa-node".into());
            }
            Value::Object(made)
        })
        .boxed()
}

fn text(pattern: &str) -> BoxedStrategy<Value> {
    let inside = pattern.strip_prefix('^').unwrap_or(pattern);
    let inside = inside.strip_suffix('$').unwrap_or(inside);
    // `\d` and `.` are every digit and character that there is; these are enough.
    let inside =
        inside.replace("\\d", "[0-9]").replace("(.+)\\s", "[a-z0-9*]+ ").replace("\\/", "/");
    string_regex(&inside.replace("(.+)", "[a-z0-9*]+"))
        .unwrap()
        .prop_filter("short", |it| it.len() <= 63)
        .prop_map(Value::from)
        .boxed()
}

/// What structs do not write, for it says the same as nothing.
fn normal(value: &mut Value, inside_term: bool) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, it| {
                let empty = it.as_array().is_some_and(Vec::is_empty)
                    || it.as_object().is_some_and(Map::is_empty);
                let silent = ["values", "labels", "annotations"].contains(&key.as_str())
                    || (inside_term && key == "requirements");
                !(empty && silent)
            });
            for (key, it) in fields {
                normal(it, key == "amiSelectorTerms");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|it| normal(it, inside_term)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The smallest object of each kind that is admitted.
fn smallest(kind: &str) -> Value {
    match kind {
        "EC2NodeClass" => json!({
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"id": "subnet-0123"}],
            "securityGroupSelectorTerms": [{"id": "sg-0123"}],
        }),
        "NodePool" => json!({"template": {"spec": {
            "nodeClassRef": {"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "general"},
            "requirements": [],
        }}}),
        "NodeClaim" => json!({
            "nodeClassRef": {"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "general"},
            "requirements": [],
        }),
        other => panic!("no smallest {other}"),
    }
}

#[track_caller]
fn through_the_door(object: &Value) -> Object {
    let text = serde_saphyr::to_string(object).unwrap();
    let source = Source { name: "f.yaml".to_owned(), text };
    let (objects, problems) = read(&source);
    let errors: Vec<String> = problems
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .map(ToString::to_string)
        .collect();
    assert!(errors.is_empty(), "{}\n{}", source.text, errors.join("\n"));
    objects.into_iter().next().unwrap().value
}

/// Objects of a kind that the API server admits, of these specs beside the smallest.
struct Kind {
    crd: Crd,
    validator: Validator,
    /// The schemas of spec and status.
    schema: Value,
    api_version: String,
}

impl Kind {
    fn new(name: &str) -> Self {
        let crd = crd::all().into_iter().find(|it| it.name == name).unwrap();
        let definition = (crd.definition)();
        let version = &definition.spec.versions[0].name;
        let api_version = format!("{}/{version}", crd.group);
        let whole = crd::to_value(&definition).unwrap();
        let schema = whole.pointer("/spec/versions/0/schema/openAPIV3Schema/properties").unwrap();
        Self {
            crd,
            validator: Validator::new(&definition).unwrap(),
            schema: schema.clone(),
            api_version,
        }
    }

    /// Runs so many objects of this sort through the door, and says how many were admitted.
    fn hold(&self, cases: u32, said: BoxedStrategy<Value>) -> u32 {
        let strategy = (said, object(&self.schema["status"], 0.5));
        let admitted = Cell::new(0);
        let mut runner =
            TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) });
        let outcome = runner.run(&strategy, |(said, status)| {
            let mut spec = smallest(self.crd.kind);
            spec.as_object_mut().unwrap().extend(said.as_object().cloned().unwrap());
            let object = json!({
                "apiVersion": self.api_version,
                "kind": self.crd.kind,
                "metadata": {"name": "a"},
                "spec": spec,
            });
            let Ok(mut stored) = self.validator.create(&object).verdict else { return Ok(()) };
            admitted.set(admitted.get() + 1);
            stored["metadata"] = json!({"name": "a"});
            stored["status"] = status;

            let read = through_the_door(&stored);
            let mut written = serde_json::to_value(&read).unwrap();
            normal(&mut written, false);
            normal(&mut stored, false);
            prop_assert_eq!(&written, &stored);
            // And once more: what we write is what we read.
            prop_assert_eq!(through_the_door(&written), read);
            Ok(())
        });
        assert!(outcome.is_ok(), "{}: {}", self.crd.name, outcome.unwrap_err());
        admitted.get()
    }
}

const KINDS: [&str; 3] =
    ["ec2nodeclasses.karpenter.k8s.aws", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh"];

#[test]
fn what_the_api_server_admits_comes_through_the_file_door_and_nothing_is_lost() {
    for kind in KINDS.map(Kind::new) {
        let mut open = kind.schema["spec"].clone();
        open.as_object_mut().unwrap().remove("required");
        // A class has five times as many fields, each with its rules.
        let share = if kind.crd.kind == "EC2NodeClass" { 0.1 } else { 0.5 };
        let admitted = kind.hold(200, object(&open, share));
        assert!(admitted > 20, "{}: only {admitted} admitted", kind.crd.name);
    }
}

#[test]
fn each_field_alone_comes_through_the_file_door() {
    for kind in KINDS.map(Kind::new) {
        for (name, field) in kind.schema["spec"]["properties"].as_object().unwrap() {
            let named = name.clone();
            let field = value(name, field).prop_map(move |it| json!({&named: it})).boxed();
            // Terms without an alias need the family.
            let field = if name == "amiSelectorTerms" {
                let with_family = |(mut said, family): (Value, &str)| {
                    said["amiFamily"] = family.into();
                    said
                };
                (field, select(&["AL2023", "Custom"][..])).prop_map(with_family).boxed()
            } else {
                field
            };
            let cases = if field_is_rich(name) { 400 } else { 20 };
            let admitted = kind.hold(cases, field);
            let must_fail = kind.crd.kind == "EC2NodeClass" && name == "instanceProfile";
            assert!(admitted > 0 || must_fail, "{} {name}: none admitted", kind.crd.name);
        }
    }
}

/// Where the door has rules of its own beside the schema's.
fn field_is_rich(name: &str) -> bool {
    ["amiSelectorTerms", "requirements", "template", "kubelet"].contains(&name)
}

/// The law of the smallest, and of what is said beside it: an unknown field is named, wherever it is.
#[test]
fn an_unknown_field_is_named_wherever_it_stands() {
    for (kind, api_version) in [
        ("EC2NodeClass", "karpenter.k8s.aws/v1"),
        ("NodePool", "karpenter.sh/v1"),
        ("NodeClaim", "karpenter.sh/v1"),
    ] {
        let object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": smallest(kind),
        });
        for place in objects_in(&object["spec"], "/spec") {
            let mut odd = object.clone();
            odd.pointer_mut(&place).unwrap()["surprise"] = 1.into();
            let text = serde_saphyr::to_string(&odd).unwrap();
            let (_, problems) = read(&Source { name: "f.yaml".to_owned(), text });
            let named = problems.iter().any(|it| it.field.ends_with("surprise"));
            assert!(named, "{kind} {place}: {problems:?}");
        }
    }
}

/// JSON pointers to every object.
fn objects_in(value: &Value, path: &str) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, it)| (key.clone(), it)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, it)| (at.to_string(), it)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Vec::new(),
    };
    let own = value.is_object().then(|| path.to_owned());
    own.into_iter()
        .chain(inside.into_iter().flat_map(|(key, it)| objects_in(it, &format!("{path}/{key}"))))
        .collect()
}
