//! What people wrote about how many and when reaches core, and what nobody can read allows nothing.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::fmt::Debug;

use jiff::SignedDuration;
use nodemolt_api::ec2nodeclass::EC2NodeClass;
use nodemolt_api::imagepolicy::{self, ImagePolicy};
use nodemolt_api::into_budget::{class_rule, limits, pool_budgets};
use nodemolt_api::into_node::{CLASS_STAMP, stamp_text};
use nodemolt_api::nodeclaim::NodeClaim;
use nodemolt_api::nodedisruptionbudget::NodeDisruptionBudget;
use nodemolt_api::nodepool::NodePool;
use nodemolt_core::budget::{Concurrency, DisruptionBudget, Keep, Opening, Unit, Unreadable};
use nodemolt_core::drain::{AtLimit, BarePods};
use nodemolt_core::node::{Running, Stamp};
use nodemolt_core::replace::Order;
use serde_json::{Value, json};

fn object<T: serde::de::DeserializeOwned>(name: &str, spec: &Value) -> T {
    let object = json!({"apiVersion": "v", "kind": "k", "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

fn told<T: Debug>(read: &Result<T, Unreadable>) -> String {
    match read {
        Ok(value) => format!("{value:?}"),
        Err(Unreadable(why)) => why.clone(),
    }
}

#[test]
fn a_disruption_budget_keeps_or_lets_go_or_allows_nothing() {
    for (spec, keep, controller, people) in [
        (json!({"minAvailable": 3}), "MinAvailable(Count(3))", true, false),
        (json!({"minAvailable": "70%"}), "MinAvailable(Percent(Percent(70)))", true, false),
        (json!({"maxUnavailable": "2"}), "MaxUnavailable(Count(2))", true, false),
        (
            json!({"maxUnavailable": 0, "gates": ["People"]}),
            "MaxUnavailable(Count(0))",
            false,
            true,
        ),
        (
            json!({"maxUnavailable": 1, "gates": ["Controller", "People"]}),
            "MaxUnavailable(Count(1))",
            true,
            true,
        ),
        (
            json!({"maxUnavailable": 1, "minAvailable": 1}),
            "spec: expected exactly one of minAvailable and maxUnavailable",
            true,
            false,
        ),
        (json!({}), "spec: expected exactly one of minAvailable and maxUnavailable", true, false),
        (
            json!({"maxUnavailable": "many", "gates": []}),
            "spec.maxUnavailable: `many` is neither a number nor a percentage from 0% to 100%; write a number such \
             as 3, or a share such as 10%",
            true,
            false,
        ),
    ] {
        let mut spec = spec;
        spec["labelSelectors"] = json!([{"team": "a"}, {}]);
        let read = DisruptionBudget::from(&object::<NodeDisruptionBudget>("db", &spec));
        assert_eq!(told(&read.keep), keep, "{spec}");
        assert_eq!((read.gates_controller, read.gates_people), (controller, people), "{spec}");
        assert_eq!((read.name.as_str(), read.selectors.len()), ("db", 2));
    }
}

#[test]
fn a_pools_budgets_are_those_of_its_schema() {
    let read = |disruption: Value| {
        let class = json!({"group": "g", "kind": "k", "name": "n"});
        let mut spec = json!({"template": {"spec": {"requirements": [], "nodeClassRef": class}}});
        if !disruption.is_null() {
            spec["disruption"] = disruption;
        }
        pool_budgets(&object::<NodePool>("web", &spec))
    };
    let budgets = |it: Value| read(json!({"consolidateAfter": "0s", "budgets": it}));
    for unset in [Value::Null, json!({"consolidateAfter": "0s"})] {
        let all = read(unset);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].as_ref().unwrap().nodes.to_string(), "10%");
    }
    assert!(budgets(json!([])).is_empty(), "an empty list is no limit");
    let all = budgets(json!([
        {"nodes": "5", "schedule": "0 9 * * mon-fri", "duration": "8h30m", "reasons": ["Drifted"]},
        {"nodes": "0", "reasons": []},
    ]));
    let first = all[0].as_ref().unwrap();
    assert_eq!(first.nodes.to_string(), "5");
    assert_eq!(first.schedule.as_ref().unwrap().duration, SignedDuration::from_mins(510));
    assert_eq!(format!("{:?}", first.reasons), "Some({Drifted})");
    assert_eq!(format!("{:?}", all[1].as_ref().unwrap().reasons), "Some({})");
    for (budget, expected) in [
        (json!({"nodes": "99999999999"}), "spec.disruption.budgets[0].nodes: "),
        (
            json!({"nodes": "1", "schedule": "99 99 * * *", "duration": "1h"}),
            "spec.disruption.budgets[0].schedule: ",
        ),
        (
            json!({"nodes": "1", "schedule": "@daily", "duration": "0m"}),
            "spec.disruption.budgets[0].duration: ",
        ),
        (json!({"nodes": "1", "schedule": "@daily"}), "spec.disruption.budgets[0]: "),
        (json!({"nodes": "1", "reasons": ["Old"]}), "spec.disruption.budgets[0].reasons[0]: "),
    ] {
        let read = budgets(json!([budget]));
        assert!(told(&read[0]).starts_with(expected), "{}", told(&read[0]));
    }
}

fn policy(name: &str, spec: &Value) -> ImagePolicy {
    object(name, spec)
}

#[test]
fn every_word_about_a_rollout_reaches_core() {
    let rollout = json!({
        "concurrency": "10%", "unit": "CPU", "batchMaximum": "5%", "cooldown": "10m",
        "minimumNodeLifetime": "1d12h", "drainLimit": "90s", "drainLimitAction": "Force",
        "replacement": "DeleteFirst", "barePods": "Evict",
        "windows": {
            "timeZone": "Europe/Berlin",
            "allow": [
                {"days": ["Mon"], "from": "22:00", "to": "24:00"},
                {"schedule": "0 3 * * *", "duration": "1h"},
            ],
            "forbid": [{"firstDate": "2026-12-20", "lastDate": "2026-12-27", "reason": "freeze"}],
        },
    });
    let rule = class_rule(&policy("all", &json!({"rollout": rollout}))).unwrap();
    assert_eq!(rule.policy, "all");
    assert_eq!(rule.concurrency, Some(Ok(Concurrency::Of("10%".parse().unwrap()))));
    assert_eq!(rule.unit, Unit::Cpu);
    assert_eq!(rule.batch_max, Some(Ok("5%".parse().unwrap())));
    assert_eq!(rule.cooldown, SignedDuration::from_mins(10));
    assert_eq!(rule.minimum_lifetime, SignedDuration::from_hours(36));
    assert_eq!(rule.drain_limit, Some(SignedDuration::from_secs(90)));
    assert_eq!(rule.at_limit, AtLimit::Force);
    assert_eq!(rule.order, Order::DeleteFirst);
    assert_eq!(rule.bare_pods, BarePods::Evict);
    for (now, expected) in [
        // Monday, by the wall in Berlin.
        ("2026-08-03T20:30:00Z", "open until 2026-08-03T22:00:00Z"),
        ("2026-08-04T01:30:00Z", "open until 2026-08-04T02:00:00Z"),
        ("2026-08-04T03:00:00Z", "closed"),
        ("2026-12-21T21:30:00Z", "closed: freeze"),
    ] {
        let said = match rule.opening(now.parse().unwrap()) {
            Opening::Open { until } => format!("open until {}", until.unwrap()),
            Opening::Closed { because: None, .. } => "closed".to_owned(),
            Opening::Closed { because: Some(why), .. } => format!("closed: {why}"),
        };
        assert_eq!(said, expected, "{now}");
    }
    assert_eq!(class_rule(&policy("all", &json!({}))), None);
    let plain =
        class_rule(&policy("all", &json!({"rollout": {"concurrency": "Parallel"}}))).unwrap();
    assert_eq!(plain.concurrency, Some(Ok(Concurrency::Parallel)));
    assert_eq!((plain.at_limit, plain.order), (AtLimit::Skip, Order::SuccessorFirst));
}

/// The rule allows nothing, or no time, and the check says the same of the same field.
#[test]
fn what_cannot_be_read_about_a_rollout_starts_nothing() {
    for (rollout, field) in [
        (json!({"concurrency": "many"}), "spec.rollout.concurrency"),
        (json!({"concurrency": -1}), "spec.rollout.concurrency"),
        (json!({"concurrency": 3, "unit": "CPU"}), "spec.rollout.concurrency"),
        (json!({"batchMaximum": "101%"}), "spec.rollout.batchMaximum"),
        (json!({"cooldown": "soon"}), "spec.rollout.cooldown"),
        (
            json!({"concurrency": 3, "minimumNodeLifetime": "1h1d"}),
            "spec.rollout.minimumNodeLifetime",
        ),
        (json!({"drainLimit": ""}), "spec.rollout.drainLimit"),
        (json!({"windows": {}}), "spec.rollout.windows"),
        (json!({"windows": {"timeZone": "Mars", "allow": []}}), "spec.rollout.windows.timeZone"),
        (json!({"windows": {"allow": [{}]}}), "spec.rollout.windows.allow[0]"),
        (json!({"windows": {"allow": [{"days": []}]}}), "spec.rollout.windows.allow[0].days"),
        (json!({"windows": {"allow": [{"from": "22:00"}]}}), "spec.rollout.windows.allow[0]"),
        (
            json!({"windows": {"allow": [{"from": "25:00", "to": "01:00"}]}}),
            "spec.rollout.windows.allow[0].from",
        ),
        (
            json!({"windows": {"forbid": [{"schedule": "0 0 30 2 *", "duration": "1h"}]}}),
            "spec.rollout.windows.forbid[0].schedule",
        ),
        (
            json!({"windows": {"forbid": [{"firstDate": "2026-02-30"}]}}),
            "spec.rollout.windows.forbid[0].firstDate",
        ),
        (
            json!({"windows": {"forbid": [{"firstDate": "2026-03-02", "lastDate": "2026-03-01"}]}}),
            "spec.rollout.windows.forbid[0]",
        ),
    ] {
        let policy = policy("all", &json!({"rollout": rollout}));
        let rule = class_rule(&policy).unwrap();
        let why = [
            rule.concurrency.and_then(Result::err),
            rule.batch_max.and_then(Result::err),
            rule.windows.and_then(Result::err),
        ];
        let [Unreadable(why)] = &why.into_iter().flatten().collect::<Vec<_>>()[..] else {
            panic!("{rollout}: it counts as readable");
        };
        assert!(why.starts_with(&format!("{field}: ")), "{rollout}: {why}");
        let found = imagepolicy::check(&policy);
        assert!(found.iter().any(|it| it.field == field), "{rollout}: {found:?}");
    }
}

#[test]
fn the_first_policy_by_name_that_says_rollout_counts() {
    let class = |name: &str, tier: &str| {
        let mut class: EC2NodeClass = object(name, &json!({}));
        class.metadata.labels.insert("tier".to_owned(), tier.to_owned());
        class
    };
    let classes = [class("web", "front"), class("db", "back"), class("other", "none")];
    let of = |tier: &str| json!({"matchLabels": {"tier": tier}});
    let policies = [
        policy("c", &json!({"classSelector": of("front"), "rollout": {"concurrency": 3}})),
        policy("b", &json!({"classSelector": of("front"), "rollout": {"concurrency": 2}})),
        policy("a", &json!({"minimumAge": "7d"})),
        policy("d", &json!({"classSelector": of("back"), "rollout": {"concurrency": 4}})),
    ];
    let budget: NodeDisruptionBudget =
        object("all", &json!({"labelSelectors": [{}], "maxUnavailable": 1}));
    let read = limits([&budget], [], &policies, &classes);
    let by: Vec<(&str, &str)> =
        read.classes.iter().map(|(class, it)| (class.as_str(), it.policy.as_str())).collect();
    assert_eq!(by, [("db", "d"), ("web", "b")]);
    assert!(matches!(read.disruption_budgets[0].keep, Ok(Keep::MaxUnavailable(_))));
    // Nobody knows which classes it means, so none of them starts.
    let broken =
        json!({"matchExpressions": [{"key": "tier", "operator": "Like", "values": ["f"]}]});
    let broken = policy("0", &json!({"classSelector": broken, "rollout": {"concurrency": 9}}));
    let read = limits([], [], policies.iter().chain([&broken]), &classes);
    assert_eq!(read.classes.len(), 3);
    for rule in read.classes.values() {
        let Some(Err(Unreadable(why))) = &rule.concurrency else { panic!("{rule:?}") };
        assert!(why.starts_with("spec.classSelector.matchExpressions[0].operator: "), "{why}");
    }
}

#[test]
fn a_claim_says_what_runs_and_no_more() {
    let claim = |metadata: Value, status: Value| -> NodeClaim {
        let class = json!({"group": "g", "kind": "k", "name": "n"});
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata,
            "spec": {"requirements": [], "nodeClassRef": class}, "status": status,
        }))
        .unwrap()
    };
    let stamp = Stamp {
        digest: "nodemolt-static/v1:00".to_owned(),
        fields: [("role".to_owned(), "\"a\"".to_owned())].into(),
    };
    let read = Running::try_from(&claim(
        json!({
            "name": "web-1", "uid": "u1", "creationTimestamp": "2026-08-01T00:00:00Z",
            "labels": {"karpenter.sh/nodepool": "web", "node.kubernetes.io/instance-type": "m5.large"},
            "annotations": {
                CLASS_STAMP: stamp_text(&stamp),
                "karpenter.sh/nodepool-hash": "7", "karpenter.sh/nodepool-hash-version": "v3",
                "drift.nodemolt.dev/kernel": "CVE",
            },
        }),
        json!({
            "imageID": "ami-0123456789abcdef0",
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "security.example.com/Drifted", "status": "True", "reason": "Audit"},
            ],
        }),
    ))
    .unwrap();
    assert_eq!((read.claim.as_str(), read.claim_uid.as_str()), ("web-1", "u1"));
    assert_eq!(read.pool.as_deref(), Some("web"));
    assert_eq!(read.instance_type.as_deref(), Some("m5.large"));
    assert_eq!(read.image.unwrap().id.to_string(), "ami-0123456789abcdef0");
    assert_eq!(read.class_stamp, Some(stamp));
    assert_eq!(read.template_stamp.unwrap().digest, "karpenter/v3:7");
    assert_eq!(read.foreign.len(), 2);
    assert_eq!(read.created_at.to_string(), "2026-08-01T00:00:00Z");
    assert_eq!((read.instance, read.kubelet), (None, None));

    let fresh = json!({"name": "a", "uid": "u", "creationTimestamp": "2026-08-01T00:00:00Z"});
    let read = Running::try_from(&claim(fresh, Value::Null)).unwrap();
    assert_eq!((read.pool, read.image, read.class_stamp), (None, None, None));

    for (metadata, status, fields) in [
        (json!({"name": "a"}), Value::Null, "metadata.uid metadata.creationTimestamp"),
        (
            json!({
                "name": "a", "uid": "u", "creationTimestamp": "soon",
                "annotations": {CLASS_STAMP: "x"},
            }),
            json!({"imageID": "ami-x"}),
            "metadata.creationTimestamp status.imageID \
             metadata.annotations[nodemolt.dev/class-stamp]",
        ),
    ] {
        let found = Running::try_from(&claim(metadata, status)).unwrap_err();
        let said: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(said.join(" "), fields);
    }
}
