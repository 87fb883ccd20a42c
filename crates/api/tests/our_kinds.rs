//! Our kinds come back as they were written, and their examples are true.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::{fs, path::Path};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use nodemolt_api::{
    awsimage::{self, AwsImage},
    crd::Crd,
    disruptionledger::{self, DisruptionLedger},
    file::{Source, read},
    imagepolicy::{self, ImagePolicy},
    imagequarantine::{self, ImageQuarantine},
    nodedisruptionbudget::{self, NodeDisruptionBudget},
    replacement::{self, Replacement},
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

/// Words that YAML would take for something else, and whatever else people type.
fn text(max: i64) -> BoxedStrategy<Value> {
    let odd = select(vec![
        "yes",
        "null",
        "~",
        "1.20",
        "007",
        "0x1f",
        "12:30:45",
        "a: b",
        "# no",
        " led",
        "trail ",
        "- a",
        "{}",
        "é",
        "\u{1f98b}",
        "two\nlines",
        "tab\there",
        "'",
        "\"",
        "*",
        "&a",
        "2026-08-01",
    ]);
    let free = "[ -~äß€]{0,24}";
    let max = usize::try_from(max).unwrap();
    prop_oneof![odd.prop_map(str::to_owned), free]
        .prop_map(move |it| it.chars().take(max).collect::<String>().into())
        .boxed()
}

/// Whatever a schema admits by its types alone.
fn value(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    if let Some(words) = &schema.enum_ {
        return select(words.iter().map(|it| it.0.clone()).collect::<Vec<_>>()).boxed();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return prop_oneof![any::<i32>().prop_map(Value::from), text(20)].boxed();
    }
    match (schema.type_.as_deref().unwrap(), schema.format.as_deref()) {
        ("string", Some("date-time")) => Just(json!("2026-11-16T00:00:00Z")).boxed(),
        ("string", _) => text(schema.max_length.expect("every string has a limit")),
        ("integer", _) => any::<i64>().prop_map(Value::from).boxed(),
        ("boolean", _) => any::<bool>().prop_map(Value::from).boxed(),
        ("array", _) => {
            let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items else { panic!("items") };
            assert!(schema.max_items.is_some(), "every list has a limit");
            vec(value(item), 1..3).prop_map(Value::from).boxed()
        }
        ("object", _) => object(schema),
        other => panic!("{other:?}"),
    }
}

fn object(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    if let Some(JSONSchemaPropsOrBool::Schema(inner)) = &schema.additional_properties {
        assert!(schema.max_properties.is_some(), "every map has a limit");
        let entries = vec(("[a-z./]{1,9}", value(inner)), 1..3);
        return entries.prop_map(|it| it.into_iter().collect::<Map<_, _>>().into()).boxed();
    }
    let mut whole: BoxedStrategy<Map<String, Value>> = Just(Map::new()).boxed();
    for (name, inner) in schema.properties.iter().flatten() {
        let name = name.clone();
        let required = schema.required.iter().flatten().any(|it| *it == name);
        let field = if required {
            value(inner).prop_map(Some).boxed()
        } else {
            option::of(value(inner)).boxed()
        };
        whole = (whole, field)
            .prop_map(move |(mut map, field)| {
                map.extend(field.map(|it| (name.clone(), it)));
                map
            })
            .boxed();
    }
    whole.prop_map(Value::from).boxed()
}

fn schema(crd: &CustomResourceDefinition) -> &JSONSchemaProps {
    crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap()
}

/// An object of this kind with everything below its metadata.
fn whole(crd: &Crd) -> BoxedStrategy<Value> {
    let definition = (crd.definition)();
    let properties = schema(&definition).properties.clone().unwrap();
    let version = definition.spec.versions.last().unwrap().name.clone();
    let head = json!({
        "apiVersion": format!("{}/{version}", crd.group),
        "kind": crd.kind,
        "metadata": {"name": "a"},
    });
    (value(&properties["spec"]), value(&properties["status"]))
        .prop_map(move |(spec, status)| {
            let mut whole = head.clone();
            whole["spec"] = spec;
            whole["status"] = status;
            whole
        })
        .boxed()
}

#[track_caller]
fn comes_back<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(written: &Value) {
    let object: T = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&object).unwrap(), *written, "a field was lost");
    let yaml = serde_saphyr::to_string(&object).unwrap();
    assert_eq!(serde_saphyr::from_str::<T>(&yaml).unwrap(), object, "{yaml}");
    // Whatever else the strict door has to say: it knows every field, with its type.
    let (_, problems) = read(&Source { name: "f.yaml".to_owned(), text: yaml.clone() });
    let strange: Vec<String> = problems
        .iter()
        .filter(|it| {
            it.message.starts_with("unknown field") || it.message.starts_with("expected a")
        })
        .map(ToString::to_string)
        .collect();
    assert!(strange.is_empty(), "{strange:?}\n{yaml}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Object → YAML → object; and the structs know every field of the schema, by its type.
    #[test]
    fn what_is_written_comes_back(
        policy in whole(&imagepolicy::CRD),
        quarantine in whole(&imagequarantine::CRD),
        budget in whole(&nodedisruptionbudget::CRD),
        replacement in whole(&replacement::CRD),
        ledger in whole(&disruptionledger::CRD),
        image in whole(&awsimage::CRD),
    ) {
        comes_back::<ImagePolicy>(&policy);
        comes_back::<ImageQuarantine>(&quarantine);
        comes_back::<NodeDisruptionBudget>(&budget);
        comes_back::<Replacement>(&replacement);
        comes_back::<DisruptionLedger>(&ledger);
        comes_back::<AwsImage>(&image);
    }
}

const OURS: [Crd; 6] = [
    imagepolicy::CRD,
    imagequarantine::CRD,
    nodedisruptionbudget::CRD,
    replacement::CRD,
    disruptionledger::CRD,
    awsimage::CRD,
];

/// `kubectl explain` has something to say everywhere.
#[test]
fn every_field_is_explained() {
    fn unexplained(path: &str, schema: &JSONSchemaProps, found: &mut Vec<String>) {
        for (name, inner) in schema.properties.iter().flatten() {
            let path = format!("{path}.{name}");
            if inner.description.as_deref().unwrap_or_default().is_empty() && name != "metadata" {
                found.push(path.clone());
            }
            unexplained(&path, inner, found);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
            unexplained(&format!("{path}[]"), item, found);
        }
    }
    let mut found = Vec::new();
    for crd in OURS {
        unexplained(crd.kind, schema(&(crd.definition)()), &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn each_of_our_kinds_is_found_by_category_and_tells_whether_it_is_ready() {
    for crd in OURS {
        let definition = (crd.definition)();
        let names = &definition.spec.names;
        assert!(names.categories.iter().flatten().any(|it| it == "nodemolt"), "{}", crd.name);
        assert!(names.short_names.iter().flatten().count() > 0, "{}", crd.name);
        assert_eq!(definition.metadata.name.as_deref(), Some(crd.name));
        assert_eq!(definition.spec.scope, "Cluster", "{}", crd.name);
        for version in &definition.spec.versions {
            let columns = version.additional_printer_columns.as_ref().unwrap();
            assert!(columns.iter().any(|it| it.name == "Ready"), "{}", crd.name);
            assert!(columns.iter().all(|it| it.priority.is_none()), "{}: -o wide", crd.name);
            assert!(version.subresources.as_ref().unwrap().status.is_some(), "{}", crd.name);
        }
    }
}

/// The proposal mixes versions; ours differ by name alone.
#[test]
fn an_awsimage_is_served_in_the_proposals_versions_and_stored_in_one() {
    let crd = (awsimage::CRD.definition)();
    let served: Vec<_> =
        crd.spec.versions.iter().map(|it| (it.name.as_str(), it.served, it.storage)).collect();
    assert_eq!(
        served,
        [("v1alpha3", true, false), ("v1alpha4", true, false), ("v1beta1", true, true)]
    );
    assert!(crd.spec.versions.iter().all(|it| it.schema == crd.spec.versions[0].schema));
}

#[test]
fn the_examples_are_read_without_a_word() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut kinds = Vec::new();
    for folder in ["policies", "budgets", "images", "records"] {
        for file in fs::read_dir(examples.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let (objects, problems) = read(&Source { name: path.display().to_string(), text });
            assert_eq!(problems, [], "{}", path.display());
            kinds.extend(objects.iter().map(|it| it.value.kind()));
        }
    }
    for crd in OURS {
        assert!(kinds.contains(&crd.kind), "no example of {}", crd.kind);
    }
}

/// A path that does not exist warns of nothing.
#[test]
fn what_is_ignored_is_served() {
    for (crd, ignored) in [
        (imagepolicy::CRD, imagepolicy::IGNORED_FIELDS),
        (nodedisruptionbudget::CRD, nodedisruptionbudget::IGNORED_FIELDS),
        (disruptionledger::CRD, disruptionledger::IGNORED_FIELDS),
        (awsimage::CRD, awsimage::IGNORED_FIELDS),
    ] {
        let definition = (crd.definition)();
        for (path, why) in ignored {
            let mut at = schema(&definition);
            for name in path.split('.') {
                at = &at.properties.as_ref().unwrap()[name];
            }
            assert!(!why.is_empty());
        }
    }
}

/// The file door says of a rollout what the API server would, and what only a calendar knows.
#[test]
fn a_rollout_that_cannot_come_true_is_told_with_its_line() {
    let text = "\
apiVersion: nodemolt.dev/v1alpha1
kind: ImagePolicy
metadata: {name: p}
spec:
  rollout:
    concurrency: many
    batchMaximum: -1
    cooldown: 10
    windows:
      timeZone: Europe/Atlantis
      allow:
        - {from: '9:00', to: '24:00'}
        - {schedule: 61 * * * *, duration: 1h}
        - {schedule: '@daily', duration: 1h, days: [Mon]}
        - {firstDate: 2026-02-30}
        - {firstDate: 2026-03-01, lastDate: 2026-02-01}
        - {from: '09:00'}
        - {}
---
apiVersion: nodemolt.dev/v1alpha1
kind: ImagePolicy
metadata: {name: q}
spec:
  rollout:
    concurrency: many
    batchMaximum: -1
    cooldown: '10'
    drainLimit: 5m1h
    windows:
      timeZone: Europe/Atlantis
      allow:
        - {from: '9:00', to: '24:00'}
        - {schedule: 61 * * * *, duration: 1h}
        - {schedule: '@daily', duration: 1h, days: [Mon]}
        - {firstDate: 2026-02-30}
        - {firstDate: 2026-03-01, lastDate: 2026-02-01}
        - {from: '09:00'}
        - {}
---
apiVersion: nodemolt.dev/v1alpha1
kind: ImagePolicy
metadata: {name: r}
spec:
  rollout: {unit: CPU, concurrency: 3, windows: {timeZone: UTC}}
";
    let source = Source { name: "f.yaml".to_owned(), text: text.to_owned() };
    let told: Vec<String> = read(&source).1.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "f.yaml:8:15: spec.rollout.cooldown: expected a string, found the number `10`",
            "f.yaml:25:5: spec.rollout.concurrency: `many` is neither a number nor a percentage from 0% to 100%",
            "f.yaml:26:5: spec.rollout.batchMaximum: `-1` is neither a number nor a percentage from 0% to 100%",
            "f.yaml:27:5: spec.rollout.cooldown: `10` is not a length of time",
            "f.yaml:28:5: spec.rollout.drainLimit: `5m1h` is not a length of time",
            "f.yaml:30:7: spec.rollout.windows.timeZone: `Europe/Atlantis` is not a time zone",
            "f.yaml:32:12: spec.rollout.windows.allow[0].from: `9:00` is not a time of the day",
            "f.yaml:33:12: spec.rollout.windows.allow[1].schedule: `61 * * * *` is not a schedule",
            "f.yaml:34:11: spec.rollout.windows.allow[2]: `schedule` already says when",
            "f.yaml:35:12: spec.rollout.windows.allow[3].firstDate: `2026-02-30` is not a date",
            "f.yaml:36:11: spec.rollout.windows.allow[4]: `lastDate` is before `firstDate`",
            "f.yaml:37:11: spec.rollout.windows.allow[5]: `from` and `to` belong together",
            "f.yaml:38:11: spec.rollout.windows.allow[6]: says no time",
            "f.yaml:44:24: spec.rollout.concurrency: is not a share, as `unit: CPU` needs",
            "f.yaml:44:40: spec.rollout.windows: names no window",
        ]
    );
}

/// The other kinds, too.
#[test]
fn our_other_kinds_are_checked_at_the_door() {
    let text = "\
apiVersion: karpenter.sh/v1alpha1
kind: NodeDisruptionBudget
metadata: {name: seed}
spec:
  labelSelectors: [{karpenter.sh/provisioner-name: default}]
  minAvailable: 10%
  maxUnavailable: 101%
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeDisruptionBudget
metadata: {name: empty}
spec: {labelSelectors: [], gates: []}
---
apiVersion: nodemolt.dev/v1alpha1
kind: Replacement
metadata: {name: a}
spec: {nodeClaim: {name: web, uid: u}}
---
apiVersion: nodemolt.dev/v1alpha1
kind: DisruptionLedger
metadata: {name: mine}
spec: {pause: {reason: ' ', since: 2026-02-29}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha3
kind: AWSImage
metadata: {name: ubuntu}
spec:
  region: eu-west-1
  ownerAccount: amazon
  image: {ref: {id: ami-0f2e5eec7ae0a1986, region: eu-central-1}}
  memory: {firstSeenAt: once, firstOwner: '12'}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSImage
metadata: {name: ubuntu}
spec: {image: {ref: {id: ubuntu}}, kubernetesVersion: 1.20}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AWSImage
metadata: {name: ubuntu}
spec: {image: {ref: {id: ubuntu}}}
---
apiVersion: nodemolt.dev/v1alpha1
kind: ImageQuarantine
metadata: {name: all}
spec: {name: '*?', reason: panic}
---
apiVersion: nodemolt.dev/v1alpha1
kind: ImageQuarantine
metadata: {name: some}
spec: {version: 'v2*', reason: recalled}
";
    let source = Source { name: "f.yaml".to_owned(), text: text.to_owned() };
    let told: Vec<String> = read(&source).1.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "f.yaml:4:1: spec: expected exactly one of minAvailable and maxUnavailable, got both",
            "f.yaml:5:20: spec.labelSelectors[0]: `karpenter.sh/provisioner-name` is read as `karpenter.sh/nodepool`",
            "f.yaml:7:3: spec.maxUnavailable: `101%` is neither a number nor a percentage from 0% to 100%",
            "f.yaml:12:1: spec: expected exactly one of minAvailable and maxUnavailable, got none",
            "f.yaml:12:8: spec.labelSelectors: selects no nodes",
            "f.yaml:12:28: spec.gates: holds nobody back",
            "f.yaml:16:12: metadata.name: is not the UID of the old claim",
            "f.yaml:21:12: metadata.name: `mine` is not the ledger: there is one for the cluster",
            "f.yaml:22:16: spec.pause.reason: cannot be empty",
            "f.yaml:22:29: spec.pause.since: `2026-02-29` is not a date or a time with its zone",
            "f.yaml:26:12: metadata.name: is not the image's id `ami-0f2e5eec7ae0a1986`",
            "f.yaml:28:3: spec.region: `eu-west-1` and `eu-central-1` in image.ref differ",
            "f.yaml:29:3: spec.ownerAccount: `amazon` is not the number of an account",
            "f.yaml:31:12: spec.memory.firstSeenAt: `once` is not a date or a time with its zone",
            "f.yaml:31:31: spec.memory.firstOwner: `12` is not an owner",
            "f.yaml:36:55: spec.kubernetesVersion: expected a string, found the number `1.20`",
            "f.yaml:41:22: spec.image.ref.id: `ubuntu` is not the id of an image",
            "f.yaml:46:8: spec.name: is the name of every image: no node could be launched",
        ]
    );
}
