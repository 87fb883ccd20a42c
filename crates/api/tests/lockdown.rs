//! The policies that lock classes down refuse what they should, and nothing else.
//!
//! The API server evaluates the same text; here kube's evaluator does.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use kube::core::cel::{AdmissionRequest, VapEvaluator, VapExpression};
use nodemolt_api::lockdown::POLICIES;
use serde_json::{Value, json};

/// The policy of a file, with its variables written out where they are used.
struct Policy {
    conditions: Vec<VapExpression>,
    validations: Vec<VapExpression>,
}

fn policy(file: &str) -> Policy {
    let (_, text) = POLICIES.iter().find(|(name, _)| *name == file).unwrap();
    let document = text.split("\n---\n").next().unwrap();
    let object: Value = serde_saphyr::from_str(document).unwrap();
    let spec = &object["spec"];
    let mut variables: Vec<(String, String)> = Vec::new();
    let written_out = |text: &str, variables: &[(String, String)]| {
        let fold = |text: String, (name, meaning): &(String, String)| {
            let name = format!("variables.{name}");
            // `variables.options` must not be found in `variables.optionsOfOld`.
            let parts: Vec<&str> = text.split(name.as_str()).collect();
            let mut whole = parts[0].to_owned();
            for part in &parts[1..] {
                if part.starts_with(|it: char| it.is_ascii_alphanumeric()) {
                    whole.extend([name.as_str(), part]);
                } else {
                    whole.extend(["(", meaning.as_str(), ")", part]);
                }
            }
            whole
        };
        variables.iter().fold(text.to_owned(), fold)
    };
    for it in spec["variables"].as_array().unwrap() {
        let meaning = written_out(it["expression"].as_str().unwrap(), &variables);
        variables.push((it["name"].as_str().unwrap().to_owned(), meaning));
    }
    let expressions = |field: &str| -> Vec<VapExpression> {
        spec[field]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| VapExpression {
                expression: written_out(it["expression"].as_str().unwrap(), &variables),
                message: it["message"].as_str().map(str::to_owned),
                message_expression: it["messageExpression"]
                    .as_str()
                    .map(|it| written_out(it, &variables)),
            })
            .collect()
    };
    Policy { conditions: expressions("matchConditions"), validations: expressions("validations") }
}

/// What is said against a write; nothing if it passes.
fn refusals(file: &str, params: Option<&Value>, old: Option<&Value>, new: &Value) -> Vec<String> {
    let Policy { conditions, validations } = policy(file);
    let mut evaluator = VapEvaluator::builder().object(new.clone()).request(AdmissionRequest {
        operation: if old.is_some() { "UPDATE" } else { "CREATE" }.to_owned(),
        ..AdmissionRequest::default()
    });
    if let Some(old) = old {
        evaluator = evaluator.old_object(old.clone());
    }
    if let Some(params) = params {
        evaluator = evaluator.params(params.clone());
    }
    let evaluator = evaluator.build();
    if !evaluator.evaluate(&conditions).iter().all(|it| it.passed) {
        return Vec::new();
    }
    let results = evaluator.evaluate(&validations);
    results.into_iter().filter(|it| !it.passed).map(|it| it.message.unwrap()).collect()
}

fn class(labels: &Value, terms: &Value) -> Value {
    json!({"metadata": {"name": "c", "labels": labels}, "spec": {"amiSelectorTerms": terms}})
}

fn image_policy(spec: &Value) -> Value {
    json!({"metadata": {"name": "prod"}, "spec": spec})
}

#[test]
fn an_owner_or_an_image_that_no_policy_allows_is_refused() {
    let owners = json!({"owners": ["self", "amazon"]});
    let nobody = json!({"owners": []});
    let ids = json!({"allowedImages": {"ids": ["ami-1"]}});
    let ids_and_names = json!({"allowedImages": {"ids": ["ami-1"], "names": ["al2023-*"]}});
    let silent = json!({"minimumAge": "7d"});
    let emptied = json!({"allowedImages": {"ids": []}});
    let unnamed = json!({"allowedImages": {}});
    let foreign = json!([{"name": "x", "owner": "999988887777"}]);
    let both = json!([{"id": "ami-1"}, {"id": "ami-2"}, {"alias": "al2023@latest"}]);
    for (spec, terms, expected) in [
        (&owners, &json!([{"name": "x", "owner": "amazon"}]), None),
        (
            &owners,
            &json!([{"alias": "al2023@latest"}, {"tags": {"a": "b"}}, {"id": "ami-2"}]),
            None,
        ),
        (&owners, &json!([]), None),
        (
            &owners,
            &foreign,
            Some(
                "owner 999988887777 is not allowed by ImagePolicy prod, which allows self, amazon",
            ),
        ),
        (&nobody, &foreign, Some("which allows nobody")),
        (&ids, &json!([{"id": "ami-1"}]), None),
        (&ids, &both, Some("image ami-2 is not allowed by ImagePolicy prod")),
        (&ids_and_names, &both, None),
        (&emptied, &both, Some("image ami-1, ami-2 is not allowed by ImagePolicy prod")),
        (&unnamed, &both, Some("image ami-1, ami-2 is not allowed by ImagePolicy prod")),
        (&silent, &both, None),
        (&silent, &foreign, None),
    ] {
        let told = refusals(
            "allowed-images.yaml",
            Some(&image_policy(spec)),
            None,
            &class(&json!({}), terms),
        );
        match expected {
            None => assert_eq!(told, Vec::<String>::new(), "{spec} {terms}"),
            Some(part) => {
                assert!(told.len() == 1 && told[0].contains(part), "{spec} {terms}: {told:?}");
            }
        }
    }
}

#[test]
fn a_policy_speaks_only_of_the_classes_that_it_selects() {
    let expression = |operator: &str| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": ["gold"]}]});
    let bare =
        |operator: &str| json!({"matchExpressions": [{"key": "tier", "operator": operator}]});
    for (selector, labels, selected) in [
        (json!({}), json!({}), true),
        (json!({"matchLabels": {"env": "prod"}}), json!({"env": "prod", "a": "b"}), true),
        (json!({"matchLabels": {"env": "prod"}}), json!({"env": "dev"}), false),
        (json!({"matchLabels": {"env": "prod"}}), json!({}), false),
        (expression("In"), json!({"tier": "gold"}), true),
        (expression("In"), json!({"tier": "tin"}), false),
        (expression("In"), json!({}), false),
        (expression("NotIn"), json!({"tier": "gold"}), false),
        (expression("NotIn"), json!({"tier": "tin"}), true),
        (expression("NotIn"), json!({}), true),
        (bare("Exists"), json!({"tier": "tin"}), true),
        (bare("Exists"), json!({}), false),
        (bare("DoesNotExist"), json!({"tier": "tin"}), false),
        (bare("DoesNotExist"), json!({}), true),
    ] {
        let policy = image_policy(&json!({"owners": ["self"], "classSelector": selector}));
        let class = class(&labels, &json!([{"name": "x", "owner": "amazon"}]));
        let told = refusals("allowed-images.yaml", Some(&policy), None, &class);
        assert_eq!(told.len(), usize::from(selected), "{selector} {labels}: {told:?}");
    }
}

/// A policy that became stricter must not stop controllers from writing on a class, or its deletion.
#[test]
fn only_a_write_that_changes_what_is_judged_is_judged() {
    let policy = image_policy(&json!({"owners": ["self"]}));
    let old = class(&json!({"env": "prod"}), &json!([{"name": "x", "owner": "amazon"}]));
    let mut annotated = old.clone();
    annotated["metadata"]["annotations"] = json!({"a": "b"});
    annotated["spec"]["role"] = json!("other");
    let mut relabelled = old.clone();
    relabelled["metadata"]["labels"] = json!({"env": "test"});
    let changed = class(&json!({"env": "prod"}), &json!([{"name": "y", "owner": "amazon"}]));
    for (new, judged) in [(&old, false), (&annotated, false), (&relabelled, true), (&changed, true)]
    {
        let told = refusals("allowed-images.yaml", Some(&policy), Some(&old), new);
        assert_eq!(told.len(), usize::from(judged), "{new}: {told:?}");
    }
}

#[test]
fn metadata_options_are_not_lowered() {
    let class = |options: Option<Value>| match options {
        None => json!({"metadata": {"name": "c"}, "spec": {}}),
        Some(it) => json!({"metadata": {"name": "c"}, "spec": {"metadataOptions": it}}),
    };
    let safe = json!({"httpTokens": "required", "httpPutResponseHopLimit": 1});
    let no_tokens = json!({"httpTokens": "optional"});
    let two_hops = json!({"httpPutResponseHopLimit": 2});
    let three_hops = json!({"httpPutResponseHopLimit": 3});
    let both = json!({"httpTokens": "optional", "httpPutResponseHopLimit": 2});
    for (old, new, expected) in [
        (None, None, 0),
        (None, Some(&safe), 0),
        (None, Some(&json!({"httpEndpoint": "disabled"})), 0),
        (None, Some(&no_tokens), 1),
        (None, Some(&two_hops), 1),
        (None, Some(&both), 2),
        (Some(&safe), Some(&both), 2),
        // What was lowered before there was a policy may stay, and may not go further down.
        (Some(&both), Some(&both), 0),
        (Some(&both), Some(&safe), 0),
        (Some(&three_hops), Some(&two_hops), 0),
        (Some(&two_hops), Some(&three_hops), 1),
        (Some(&two_hops), Some(&no_tokens), 1),
    ] {
        let before = old.map(|it| class(Some(it.clone())));
        let told = refusals("metadata-options.yaml", None, before.as_ref(), &class(new.cloned()));
        assert_eq!(told.len(), expected, "{old:?} {new:?}: {told:?}");
    }
}

/// Both groups, and writing as well as creating: a policy that looks the other way is none.
#[test]
fn both_groups_of_classes_are_watched() {
    for (file, text) in POLICIES {
        let object: Value = serde_saphyr::from_str(text.split("\n---\n").next().unwrap()).unwrap();
        assert_eq!(object["spec"]["failurePolicy"], "Fail", "{file}");
        assert_eq!(
            object["spec"]["matchConstraints"]["resourceRules"],
            json!([{
                "apiGroups": ["nodemolt.dev", "karpenter.k8s.aws"],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["ec2nodeclasses"],
            }]),
            "{file}"
        );
        let binding: Value = serde_saphyr::from_str(text.split("\n---\n").nth(1).unwrap()).unwrap();
        assert_eq!(binding["spec"]["policyName"], object["metadata"]["name"], "{file}");
        assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]), "{file}");
    }
}
