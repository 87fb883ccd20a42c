//! What holds for every object, however odd?
//!
//! Nobody panics and nobody takes long, whatever is sent; and what was stored is taken again, unchanged.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use nodemolt_api::admission::{Validator, coverage};
use nodemolt_api::file::{self, Source, raw};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

static VALIDATORS: LazyLock<Vec<(Validator, Value)>> = LazyLock::new(|| {
    nodemolt_api::crd::all()
        .iter()
        .map(|crd| {
            let definition = (crd.definition)();
            let version = definition.spec.versions.iter().find(|it| it.storage).unwrap();
            let object = json!({
                "apiVersion": format!("{}/{}", crd.group, version.name),
                "kind": crd.kind,
                "metadata": {"name": "one"},
                "spec": {},
            });
            (Validator::new(&definition).unwrap(), object)
        })
        .collect()
});

/// Words that some rule somewhere splits, parses or compares.
const WORDS: [&str; 24] = [
    "",
    "a",
    "al2023@latest",
    "@",
    "a@b@c",
    "In",
    "Gt",
    "1",
    "-1",
    "99999999999999999999",
    "10%",
    "5m",
    "1h30m",
    "Never",
    "é\u{301}",
    "\u{0}",
    "2026-01-01T00:00:00Z",
    "22:00",
    "* * * * *",
    "ami-0123456789abcdef0",
    "1Gi",
    "karpenter.sh/x",
    "kubernetes.io/hostname",
    "{{",
];

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3i64..120).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(WORDS.to_vec()).prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop_oneof![
            proptest::sample::select(WORDS.to_vec()).prop_map(str::to_owned),
            proptest::sample::select(vec![
                "key", "operator", "values", "id", "tags", "name", "alias"
            ])
            .prop_map(str::to_owned),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(key, inner, 0..6)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

/// A value somewhere in a spec: by the names that the schema has there.
fn put(object: &mut Value, path: &str, value: &Value) {
    let mut at = object;
    for name in path.replace("[*]", ".[*]").replace("[key]", ".k").split('.') {
        if name == "[*]" {
            if at.as_array().is_none_or(Vec::is_empty) {
                *at = json!([{}]);
            }
            at = &mut at[0];
            continue;
        }
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = at.as_object_mut().unwrap().entry(name).or_insert(Value::Null);
    }
    *at = value.clone();
}

fn paths(validator: &Validator) -> Vec<String> {
    let mut paths = Vec::new();
    let (_, root) = validator.versions().last().unwrap();
    root.walk(&mut |path, _| paths.push(path.to_owned()));
    paths.retain(|it| !it.is_empty() && it != "apiVersion" && it != "kind");
    paths
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_sent_is_answered_and_what_is_stored_is_taken_again(
        kind in 0usize..100,
        changes in proptest::collection::vec((0usize..10_000, anything()), 1..5),
    ) {
        let (validator, base) = &VALIDATORS[kind % VALIDATORS.len()];
        let paths = paths(validator);
        let mut object = base.clone();
        for (at, value) in &changes {
            put(&mut object, &paths[at % paths.len()], value);
        }
        let outcome = validator.create(&object);
        let _ = validator.update(&object, base);
        let _ = validator.update_status(base, &object);
        if let Ok(stored) = &outcome.verdict {
            let again = validator.update(stored, stored);
            prop_assert_eq!(again.verdict.as_ref(), Ok(stored), "unchanged means unchanged");
            prop_assert!(again.unknown.is_empty());
            let anew = validator.create(stored);
            prop_assert_eq!(anew.verdict.as_ref(), Ok(stored), "what was stored can be restored");
        }
        for cause in outcome.causes() {
            prop_assert!(!cause.message.is_empty());
        }
    }

    #[test]
    fn what_is_no_object_of_the_kind_is_refused(value in anything()) {
        for (validator, _) in VALIDATORS.iter() {
            prop_assert!(validator.create(&value).verdict.is_err());
        }
    }
}

/// A megabyte of text, items or keys in members of a spec, of the right type and of the wrong one.
#[test]
fn a_megabyte_is_judged_in_seconds() {
    let values = [
        json!("a".repeat(1_000_000)),
        Value::Array(vec![json!({"key": "a", "operator": "In", "values": ["1"]}); 20_000]),
        Value::Object((0..60_000).map(|it| (format!("key-{it}"), json!("v"))).collect()),
    ];
    for (validator, base) in VALIDATORS.iter() {
        let mut members = paths(validator);
        members.retain(|it| it.starts_with("spec.") && it.matches(['.', '[']).count() == 1);
        for (path, value) in members.iter().zip(values.iter().cycle()).take(values.len()) {
            let mut object = base.clone();
            put(&mut object, path, value);
            let start = Instant::now();
            let _ = validator.create(&object);
            let took = start.elapsed();
            assert!(took < Duration::from_secs(20), "{} {path}: {took:?}", validator.kind());
        }
    }
}

/// Rules over lists without a limit: the budget ends them, as the server's does.
#[test]
fn rules_that_would_run_for_hours_are_cut_off() {
    let crd = serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "loops.test.nodemolt.dev"},
        "spec": {
            "group": "test.nodemolt.dev",
            "scope": "Cluster",
            "names": {"kind": "Loop", "plural": "loops"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"list": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "x-kubernetes-validations": [
                        {"rule": "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))", "message": "a"},
                        {"rule": "self.map(x, self.map(y, x + y)).size() >= 0", "message": "b"},
                    ],
                }}}},
            }}}],
        },
    }))
    .unwrap();
    let validator = Validator::new(&crd).unwrap();
    let object = |length: usize| {
        json!({
            "apiVersion": "test.nodemolt.dev/v1", "kind": "Loop", "metadata": {"name": "one"},
            "spec": {"list": vec![1; length]},
        })
    };
    assert!(validator.create(&object(20)).verdict.is_ok());
    let start = Instant::now();
    let outcome = validator.create(&object(20_000));
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
    assert_eq!(outcome.causes().len(), 1);
    assert!(outcome.causes()[0].message.contains("running out of cost budget"), "{outcome:?}");
}

#[test]
fn depth_is_refused_and_not_walked() {
    let (validator, base) = &VALIDATORS[0];
    let mut deep = Value::Null;
    for _ in 0..1_000 {
        deep = Value::Object(Map::from_iter([("a".to_owned(), deep)]));
    }
    let mut object = base.clone();
    object["spec"] = deep;
    let outcome = validator.create(&object);
    assert!(outcome.causes()[0].message.contains("max depth"), "{:?}", outcome.causes());
}

#[test]
fn bombs_and_repeated_keys_never_reach_the_validator() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\nkind: NodePool\napiVersion: karpenter.sh/v1\n";
    for text in [
        bomb,
        "kind: NodePool\nkind: NodePool\napiVersion: karpenter.sh/v1\n",
        "a: [",
        "- a\n",
        "\u{0}",
        "&a [*a]",
    ] {
        let source = Source::from_bytes("x.yaml", text.as_bytes()).unwrap();
        assert!(raw::objects(&source).is_empty(), "{text}");
        let (sound, _) = file::read(&source);
        assert!(sound.is_empty());
    }
}

#[test]
fn every_kind_has_demands_that_cases_can_meet() {
    for (validator, _) in VALIDATORS.iter() {
        for (version, root) in validator.versions() {
            assert!(!coverage::demands(root).is_empty(), "{} {version}", validator.kind());
        }
    }
}
