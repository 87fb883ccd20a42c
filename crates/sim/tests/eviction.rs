//! Every answer of the eviction API, as `kubernetes/pkg/registry/core/pod/storage/eviction.go` gives it.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::transport::{Refusal, Request, Resource, Subresource, Verb};
use nodemolt_sim::api_server::ApiServer;
use nodemolt_sim::kinds::{NAMESPACE, PDB, POD};
use nodemolt_sim::trace::{Actor, Fact, Trace};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// A pod `web-1` on a node, and whatever budgets there are.
struct Case {
    name: &'static str,
    pod: Pod,
    /// The spec and the status of each.
    budgets: Vec<(Value, Value)>,
    options: Value,
    answer: Answer,
    /// What the first budget allows afterwards.
    allowed: Option<i64>,
    gone: Gone,
}

#[derive(Clone, Copy, PartialEq)]
enum Pod {
    Ready,
    Unready,
    Phase(&'static str),
    Unbound,
    Deleting,
    Absent,
    WithoutLabels,
    InTerminatingNamespace,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    /// Code, what its causes say, seconds to wait.
    No(u16, &'static [&'static str], Option<i64>),
}

#[derive(Debug, PartialEq)]
enum Gone {
    Stays,
    Leaves,
    AtOnce,
}

const WAIT: Answer = Answer::No(429, &["DisruptionBudget"], Some(10));
const NOT_NOW: Answer = Answer::No(429, &["DisruptionBudget"], None);

fn send(
    server: &mut ApiServer,
    verb: Verb,
    resource: Resource,
    name: Option<&str>,
    subresource: Option<Subresource>,
    body: Value,
) -> Result<Value, Refusal> {
    let request = Request {
        verb,
        resource,
        subresource,
        namespace: resource.namespaced.then(|| "shop".to_owned()),
        name: name.map(str::to_owned),
        body: Some(body),
    };
    server.handle(Actor::Operator(0), &request, NOW).map(|it| Value::clone(&it.body))
}

fn world(case: &Case) -> (ApiServer, Trace, Option<String>) {
    let trace = Trace::default();
    let mut server = ApiServer::new(trace.clone(), NOW);
    let namespace = json!({ "metadata": { "name": "shop" } });
    send(&mut server, Verb::Create, NAMESPACE, None, None, namespace).unwrap();
    for (number, (spec, status)) in case.budgets.iter().enumerate() {
        let name = format!("budget-{number}");
        let mut spec = spec.clone();
        if spec.get("selector").is_none() {
            spec["selector"] = json!({ "matchLabels": { "app": "web" } });
        }
        let body = json!({ "metadata": { "name": name }, "spec": spec });
        send(&mut server, Verb::Create, PDB, None, None, body).unwrap();
        let status = json!({ "status": status });
        send(&mut server, Verb::MergePatch, PDB, Some(&name), Some(Subresource::Status), status)
            .unwrap();
    }
    if case.pod == Pod::Absent {
        trace.take();
        return (server, trace, None);
    }
    let labels = if case.pod == Pod::WithoutLabels { json!({}) } else { json!({ "app": "web" }) };
    let node = (case.pod != Pod::Unbound).then_some("node");
    let body = json!({
        "metadata": { "name": "web-1", "labels": labels },
        "spec": { "containers": [{ "name": "main" }], "nodeName": node },
    });
    let made = send(&mut server, Verb::Create, POD, None, None, body).unwrap();
    let phase = match case.pod {
        Pod::Phase(phase) => phase,
        Pod::Unbound => "Pending",
        Pod::Ready
        | Pod::Unready
        | Pod::Deleting
        | Pod::Absent
        | Pod::WithoutLabels
        | Pod::InTerminatingNamespace => "Running",
    };
    let ready = if case.pod == Pod::Unready { "False" } else { "True" };
    let status = json!({ "status": {
        "phase": phase, "conditions": [{ "type": "Ready", "status": ready }],
    } });
    send(&mut server, Verb::MergePatch, POD, Some("web-1"), Some(Subresource::Status), status)
        .unwrap();
    if case.pod == Pod::Deleting {
        send(&mut server, Verb::Delete, POD, Some("web-1"), None, json!({})).unwrap();
    }
    if case.pod == Pod::InTerminatingNamespace {
        send(&mut server, Verb::Delete, NAMESPACE, Some("shop"), None, json!({})).unwrap();
    }
    trace.take();
    (server, trace, made["metadata"]["uid"].as_str().map(str::to_owned))
}

fn check(case: &Case) {
    let name = case.name;
    let (mut server, trace, uid) = world(case);
    let mut options = case.options.clone();
    if options["preconditions"]["uid"] == "its own" {
        options["preconditions"]["uid"] = json!(uid);
    }
    let body = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": { "name": "web-1", "namespace": "shop" }, "deleteOptions": options,
    });
    let answer =
        send(&mut server, Verb::Create, POD, Some("web-1"), Some(Subresource::Eviction), body);
    let code = match (&answer, &case.answer) {
        (Ok(_), Answer::Done) => 201,
        (
            Err(Refusal::Status { code, causes, retry_after, .. }),
            Answer::No(expected, why, wait),
        ) => {
            assert_eq!(code, expected, "{name}");
            assert_eq!(causes, why, "{name}");
            assert_eq!(*retry_after, wait.map(SignedDuration::from_secs), "{name}");
            *code
        }
        (other, expected) => panic!("{name}: {other:?}, expected {expected:?}"),
    };
    let left = server.get(POD, "shop", "web-1");
    let gone = match left {
        None if case.pod == Pod::Absent => Gone::Stays,
        None => Gone::AtOnce,
        Some(pod) if pod["metadata"].get("deletionTimestamp").is_some() => Gone::Leaves,
        Some(_) => Gone::Stays,
    };
    assert_eq!(gone, case.gone, "{name}");
    if let Some(allowed) = case.allowed {
        let budget = server.get(PDB, "shop", "budget-0").unwrap();
        assert_eq!(budget["status"]["disruptionsAllowed"], allowed, "{name}");
        let noted = budget["status"]["disruptedPods"].get("web-1").is_some();
        let taken = case.budgets[0].1["disruptionsAllowed"] != allowed;
        assert_eq!(noted, taken, "{name}: a place that is taken is noted");
    }
    let dry = !options["dryRun"].is_null();
    let asked = trace.take().into_iter().next().map(|it| it.fact);
    match asked {
        Some(Fact::Evicted { code: told, uid, .. }) => {
            assert_eq!(told, code, "{name}");
            assert_eq!(json!(uid), options["preconditions"]["uid"], "{name}");
        }
        other => assert!(dry && other.is_none(), "{name}: {other:?}"),
    }
}

fn status(allowed: i64, healthy: i64, desired: i64) -> Value {
    json!({
        "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired,
        "expectedPods": 3, "observedGeneration": 1,
    })
}

fn plain() -> Value {
    json!({ "minAvailable": 1 })
}

fn case(name: &'static str, pod: Pod, answer: Answer, gone: Gone) -> Case {
    Case { name, pod, budgets: Vec::new(), options: Value::Null, answer, allowed: None, gone }
}

#[test]
fn without_a_budget_a_pod_leaves() {
    check(&case("no budget", Pod::Ready, Answer::Done, Gone::Leaves));
    check(&case("no labels", Pod::WithoutLabels, Answer::Done, Gone::Leaves));
    check(&case("no pod", Pod::Absent, Answer::No(404, &[], None), Gone::Stays));
    let other = (json!({ "selector": { "matchLabels": { "app": "db" } } }), status(0, 0, 0));
    let nobody = (json!({ "selector": null }), status(0, 0, 0));
    for budgets in [vec![other], vec![nobody]] {
        check(&Case {
            budgets,
            ..case("a budget of others", Pod::Ready, Answer::Done, Gone::Leaves)
        });
    }
    let everybody = (json!({ "selector": {} }), status(0, 0, 0));
    check(&Case {
        budgets: vec![everybody.clone()],
        ..case("an empty selector", Pod::Ready, NOT_NOW, Gone::Stays)
    });
    check(&Case {
        budgets: vec![everybody],
        ..case("no labels, everybody's budget", Pod::WithoutLabels, NOT_NOW, Gone::Stays)
    });
}

#[test]
fn a_budget_gives_places_until_there_are_none() {
    let with = |status: Value| vec![(plain(), status)];
    let stale = {
        let mut stale = status(2, 3, 1);
        stale["observedGeneration"] = json!(0);
        stale
    };
    let full = {
        let mut full = status(1, 3, 1);
        let pods = (0..2001).map(|it| (format!("p{it}"), json!("2027-01-15T08:00:00Z")));
        full["disruptedPods"] = Value::Object(pods.collect());
        full
    };
    for (name, budgets, answer, allowed, gone) in [
        ("two places", with(status(2, 3, 1)), Answer::Done, 1, Gone::Leaves),
        ("the last place", with(status(1, 2, 1)), Answer::Done, 0, Gone::Leaves),
        ("no place", with(status(0, 1, 1)), NOT_NOW, 0, Gone::Stays),
        ("its controller lags", with(stale), WAIT, 2, Gone::Stays),
        ("too many at once", with(full), Answer::No(403, &[], None), 1, Gone::Stays),
    ] {
        let allowed = Some(allowed);
        check(&Case { budgets, allowed, ..case(name, Pod::Ready, answer, gone) });
    }
    let two = vec![(plain(), status(2, 3, 1)), (plain(), status(2, 3, 1))];
    check(&Case {
        budgets: two,
        allowed: Some(2),
        ..case("two budgets", Pod::Ready, Answer::No(500, &[], None), Gone::Stays)
    });
}

#[test]
fn whoever_is_not_ready_counts_for_nothing_by_default_if_the_others_are_enough() {
    let always = json!({ "minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow" });
    let healthy = json!({ "minAvailable": 1, "unhealthyPodEvictionPolicy": "IfHealthyBudget" });
    for (name, spec, status, answer, gone) in [
        ("enough", plain(), status(0, 2, 2), Answer::Done, Gone::Leaves),
        ("enough, by name", healthy, status(0, 2, 2), Answer::Done, Gone::Leaves),
        ("not enough", plain(), status(0, 1, 2), NOT_NOW, Gone::Stays),
        ("nothing desired", plain(), status(0, 0, 0), NOT_NOW, Gone::Stays),
        ("always", always, status(0, 0, 2), Answer::Done, Gone::Leaves),
    ] {
        let budgets = vec![(spec, status)];
        check(&Case { budgets, allowed: Some(0), ..case(name, Pod::Unready, answer, gone) });
    }
    // Whoever leaves so takes no place.
    check(&Case {
        budgets: vec![(plain(), status(1, 2, 1))],
        allowed: Some(1),
        ..case("no place is taken", Pod::Unready, Answer::Done, Gone::Leaves)
    });
}

#[test]
fn whoever_does_not_run_asks_no_budget() {
    let none = || vec![(plain(), status(0, 0, 3))];
    for (name, pod, gone) in [
        ("pending on a node", Pod::Phase("Pending"), Gone::Leaves),
        ("pending nowhere", Pod::Unbound, Gone::AtOnce),
        ("done", Pod::Phase("Succeeded"), Gone::AtOnce),
        ("failed", Pod::Phase("Failed"), Gone::AtOnce),
        ("leaving already", Pod::Deleting, Gone::Leaves),
    ] {
        let allowed = Some(0);
        check(&Case { budgets: none(), allowed, ..case(name, pod, Answer::Done, gone) });
    }
    let two = vec![(plain(), status(0, 0, 0)), (plain(), status(0, 0, 0))];
    check(&Case { budgets: two, ..case("two budgets", Pod::Deleting, Answer::Done, Gone::Leaves) });
}

#[test]
fn an_eviction_may_say_whom_it_means_and_how_long_to_wait() {
    let conflict = || Answer::No(409, &[], None);
    let (own, other) = (
        json!({ "preconditions": { "uid": "its own" } }),
        json!({ "preconditions": { "uid": "x" } }),
    );
    let budget = || vec![(plain(), status(2, 3, 1))];
    let own_case = case("its own UID", Pod::Ready, Answer::Done, Gone::Leaves);
    check(&Case { options: own, budgets: budget(), allowed: Some(1), ..own_case });
    check(&Case {
        options: other.clone(),
        ..case("another's UID", Pod::Ready, conflict(), Gone::Stays)
    });
    check(&Case {
        options: other.clone(),
        ..case("another's UID, pending", Pod::Unbound, conflict(), Gone::Stays)
    });
    // The budget is asked first, and the place is lost until its controller counts again.
    check(&Case {
        options: other.clone(),
        budgets: budget(),
        allowed: Some(1),
        ..case("another's UID costs a place", Pod::Ready, conflict(), Gone::Stays)
    });
    check(&Case {
        options: other,
        budgets: vec![(plain(), status(0, 2, 2))],
        ..case("another's UID, not ready", Pod::Unready, WAIT, Gone::Stays)
    });
    check(&Case {
        options: json!({ "gracePeriodSeconds": 0 }),
        ..case("no grace", Pod::Ready, Answer::Done, Gone::AtOnce)
    });
    for (name, status, answer) in
        [("dry", status(2, 3, 1), Answer::Done), ("dry, no place", status(0, 1, 1), NOT_NOW)]
    {
        let allowed = status["disruptionsAllowed"].as_i64();
        check(&Case {
            options: json!({ "dryRun": ["All"] }),
            budgets: vec![(plain(), status)],
            allowed,
            ..case(name, Pod::Ready, answer, Gone::Stays)
        });
    }
}

#[test]
fn nobody_is_evicted_from_a_namespace_that_goes() {
    let answer = Answer::No(403, &["NamespaceTerminating"], None);
    check(&case("terminating", Pod::InTerminatingNamespace, answer, Gone::Stays));
}

#[test]
fn an_eviction_that_names_another_pod_is_none() {
    let (mut server, trace, _) = world(&case("misnamed", Pod::Ready, Answer::Done, Gone::Leaves));
    let body = json!({ "kind": "Eviction", "metadata": { "name": "web-2" } });
    let answer =
        send(&mut server, Verb::Create, POD, Some("web-1"), Some(Subresource::Eviction), body);
    let Err(Refusal::Status { code, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(code, 400);
    assert!(trace.is_empty());
}

#[test]
fn the_pod_is_told_why_it_leaves() {
    let (mut server, _, _) = world(&case("told", Pod::Ready, Answer::Done, Gone::Leaves));
    let body = json!({ "kind": "Eviction", "metadata": { "name": "web-1" } });
    send(&mut server, Verb::Create, POD, Some("web-1"), Some(Subresource::Eviction), body).unwrap();
    let pod = server.get(POD, "shop", "web-1").unwrap();
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|it| it["type"] == "DisruptionTarget" && it["status"] == "True"));
}
