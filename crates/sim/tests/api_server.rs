//! The simulated API server's rules, as tables of cases. The same rules are compared with a real server in
//! the contract suite.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]
#![allow(clippy::wildcard_enum_match_arm, reason = "some facts are looked for among all")]
#![allow(clippy::needless_pass_by_value, reason = "cases read better without ampersands")]

use jiff::Timestamp;
use nodemolt_cluster::transport::{Answer, Refusal, Request, Resource, Subresource, Verb};
use nodemolt_sim::api_server::{ApiServer, Compacted, What};
use nodemolt_sim::kinds::{
    CLAIM, DEPLOYMENT, IMAGE, LEDGER, NAMESPACE, NODE, PDB, POD, REPLACEMENT,
};
use nodemolt_sim::trace::{Actor, Fact, Trace};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

struct Desk {
    server: ApiServer,
    trace: Trace,
    now: Timestamp,
}

impl Desk {
    fn new() -> Self {
        let trace = Trace::default();
        Self { server: ApiServer::new(trace.clone(), NOW), trace, now: NOW }
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, Refusal> {
        self.server.handle(Actor::Operator(0), request, self.now)
    }

    fn create(&mut self, resource: Resource, body: Value) -> Value {
        let namespace = body["metadata"]["namespace"].clone();
        let request = of(Verb::Create, resource, &namespace, None, Some(body));
        self.ask(&request).map(|it| Value::clone(&it.body)).unwrap()
    }

    fn patch(&mut self, resource: Resource, name: &str, body: Value) -> Result<Value, Refusal> {
        let request = of(Verb::MergePatch, resource, &Value::Null, Some(name), Some(body));
        self.ask(&request).map(|it| Value::clone(&it.body))
    }

    fn patch_status(
        &mut self,
        resource: Resource,
        name: &str,
        body: Value,
    ) -> Result<Value, Refusal> {
        let request = of(Verb::MergePatch, resource, &Value::Null, Some(name), Some(body));
        let request = Request { subresource: Some(Subresource::Status), ..request };
        self.ask(&request).map(|it| Value::clone(&it.body))
    }

    fn replace(&mut self, resource: Resource, body: &Value) -> Result<Value, Refusal> {
        let name = body["metadata"]["name"].as_str().unwrap();
        let namespace = &body["metadata"]["namespace"];
        let request = of(Verb::Replace, resource, namespace, Some(name), Some(body.clone()));
        self.ask(&request).map(|it| Value::clone(&it.body))
    }

    fn delete(&mut self, resource: Resource, name: &str, options: Value) -> Result<Value, Refusal> {
        let namespace = if resource.namespaced { json!("default") } else { Value::Null };
        let request = of(Verb::Delete, resource, &namespace, Some(name), Some(options));
        self.ask(&request).map(|it| Value::clone(&it.body))
    }

    fn get(&mut self, resource: Resource, name: &str) -> Result<Value, Refusal> {
        let namespace = if resource.namespaced { json!("default") } else { Value::Null };
        let request = of(Verb::Get, resource, &namespace, Some(name), None);
        self.ask(&request).map(|it| Value::clone(&it.body))
    }
}

fn of(
    verb: Verb,
    resource: Resource,
    namespace: &Value,
    name: Option<&str>,
    body: Option<Value>,
) -> Request {
    Request {
        verb,
        resource,
        subresource: None,
        namespace: namespace.as_str().map(str::to_owned),
        name: name.map(str::to_owned),
        body,
    }
}

/// Code, reason, and whether the sentence holds this.
#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Refusal>, code: u16, reason: &str, holds: &str) {
    let Err(Refusal::Status { code: found, reason: why, message, .. }) = &answer else {
        panic!("{answer:?} is no refusal with {code}");
    };
    assert_eq!((*found, why.as_str()), (code, reason), "{message}");
    assert!(message.contains(holds), "{message:?} does not hold {holds:?}");
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": name, "finalizers": ["karpenter.sh/termination"] },
        "spec": {
            "nodeClassRef": { "group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "general" },
            "requirements": [],
        },
    })
}

fn node(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } })
}

fn pod(name: &str, node: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "web" }], "nodeName": node },
    })
}

#[test]
fn a_new_object_gets_what_only_the_server_gives() {
    let mut desk = Desk::new();
    let made = desk.create(CLAIM, claim("a"));
    let metadata = &made["metadata"];
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["creationTimestamp"], "2027-01-15T08:00:00Z");
    assert_eq!(metadata["resourceVersion"], desk.server.revision().to_string());
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert_ne!(desk.create(CLAIM, claim("b"))["metadata"]["uid"], metadata["uid"]);
    assert_eq!(desk.get(CLAIM, "a").unwrap(), made);

    let named = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "generateName": "node-" },
    });
    let name = desk.create(NODE, named)["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(name.len(), "node-".len() + 5);
}

#[test]
fn what_cannot_be_created_is_refused_as_the_server_refuses_it() {
    let mut desk = Desk::new();
    desk.create(CLAIM, claim("a"));
    let create = |body: Value, resource: Resource, namespace: Value| {
        of(Verb::Create, resource, &namespace, None, Some(body))
    };
    let with = |mut body: Value, path: &str, value: Value| {
        *body.pointer_mut(path).unwrap() = value;
        body
    };
    let revision = {
        let mut body = claim("r");
        body["metadata"]["resourceVersion"] = json!("7");
        body
    };
    let elsewhere = with(pod("p", None), "/metadata/namespace", json!("nowhere"));
    let nowhere = Resource { plural: "nothings", ..CLAIM };
    for (request, code, reason, holds) in [
        (
            create(claim("a"), CLAIM, Value::Null),
            409,
            "AlreadyExists",
            "nodeclaims.karpenter.sh \"a\" already exists",
        ),
        (create(revision, CLAIM, Value::Null), 500, "", "resourceVersion should not be set"),
        (
            create(elsewhere.clone(), POD, json!("nowhere")),
            404,
            "NotFound",
            "namespaces \"nowhere\" not found",
        ),
        (
            create(elsewhere, POD, json!("default")),
            400,
            "BadRequest",
            "does not match the namespace",
        ),
        (
            create(with(claim("b"), "/kind", json!("NodePool")), CLAIM, Value::Null),
            400,
            "BadRequest",
            "kind",
        ),
        (
            create(
                with(claim("b"), "/apiVersion", json!("karpenter.sh/v1beta1")),
                CLAIM,
                Value::Null,
            ),
            400,
            "BadRequest",
            "API version",
        ),
        (create(json!({"kind": "NodeClaim"}), CLAIM, Value::Null), 400, "BadRequest", ""),
        (create(json!([]), CLAIM, Value::Null), 400, "BadRequest", ""),
        (of(Verb::Create, CLAIM, &Value::Null, None, None), 400, "BadRequest", ""),
        (
            create(with(claim("b"), "/metadata/name", json!("B_")), CLAIM, Value::Null),
            422,
            "Invalid",
            "NodeClaim.karpenter.sh \"B_\" is invalid: metadata.name",
        ),
        (
            create(with(node("b"), "/metadata/name", json!("B_")), NODE, Value::Null),
            422,
            "Invalid",
            "Node \"B_\" is invalid: metadata.name",
        ),
        (
            create(json!({"metadata": {}}), NODE, Value::Null),
            422,
            "Invalid",
            "name or generateName is required",
        ),
        (
            create(
                with(
                    claim("b"),
                    "/spec/requirements",
                    json!([{"key": "a", "operator": "Sometimes"}]),
                ),
                CLAIM,
                Value::Null,
            ),
            422,
            "Invalid",
            "spec.requirements[0].operator",
        ),
        (
            create(with(pod("p", None), "/spec/containers", json!([])), POD, json!("default")),
            422,
            "Invalid",
            "spec.containers: Required value",
        ),
        (
            create(claim("a"), nowhere, Value::Null),
            404,
            "NotFound",
            "could not find the requested resource",
        ),
        (create(claim("a"), Resource { version: "v9", ..CLAIM }, Value::Null), 404, "NotFound", ""),
        (create(pod("p", None), POD, Value::Null), 404, "NotFound", ""),
        (create(claim("a"), CLAIM, json!("default")), 404, "NotFound", ""),
    ] {
        let before = desk.server.revision();
        refused(desk.ask(&request), code, reason, holds);
        assert_eq!(desk.server.revision(), before, "{request:?}");
    }
}

/// Found by an attack: what a pod cannot ask for, and what nobody can count or call so.
#[test]
fn values_that_the_server_cannot_take_are_named_with_their_field() {
    type Refusal = Option<(u16, String)>;
    let asking = |cpu: Value| {
        let mut body = pod("p", None);
        body["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": cpu } });
        body
    };
    let noted = |field: &str, key: &str, value: &str| {
        let mut body = pod("p", None);
        body["metadata"][field] = json!({ key: value });
        body
    };
    let written = |path: &[&str], value: Value| {
        let mut body = pod("p", None);
        let place = path.iter().fold(&mut body["metadata"], |it, step| &mut it[*step]);
        *place = value;
        body
    };
    let unquoted =
        |holds: &str| Some((400, format!("{holds}: must be a text: write it in quotes")));
    let of_many = |replicas: i64, pod: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "d", "namespace": "default" },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": { "app": "web" } },
                "template": { "metadata": pod["metadata"], "spec": pod["spec"] },
            },
        })
    };
    let budget = |field: &str, value: Value| {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": "b", "namespace": "default" },
            "spec": { field: value, "selector": {} },
        })
    };
    let (name, value) = ("name part must consist of alphanumeric", "a valid label must be");
    let nought = "must be greater than or equal to 0";
    let cases: Vec<(Resource, Value, Refusal)> = vec![
        (POD, asking(json!("500m")), None),
        (POD, asking(json!(1)), None),
        (
            POD,
            asking(json!("banana")),
            Some((
                400,
                "Pod in version \"v1\" cannot be handled as a Pod: \
                 spec.containers[0].resources.requests[cpu]: \"banana\": quantities must match"
                    .to_owned(),
            )),
        ),
        (
            POD,
            asking(json!("-1")),
            Some((422, format!("requests[cpu]: Invalid value: \"-1\": {nought}"))),
        ),
        (
            DEPLOYMENT,
            of_many(1, asking(json!("-1"))),
            Some((422, "spec.template.spec.containers[0].resources.requests[cpu]".to_owned())),
        ),
        (
            DEPLOYMENT,
            of_many(-1, pod("p", None)),
            Some((422, format!("spec.replicas: Invalid value: -1: {nought}"))),
        ),
        (
            DEPLOYMENT,
            of_many(1, noted("annotations", "bad key!", "")),
            Some((422, format!("spec.template.annotations: Invalid value: \"bad key!\": {name}"))),
        ),
        (DEPLOYMENT, of_many(1, noted("labels", "app", "web")), None),
        (POD, written(&["labels", "version"], json!(2)), unquoted("metadata.labels[version]: 2")),
        (
            DEPLOYMENT,
            of_many(1, written(&["annotations", "karpenter.sh/do-not-disrupt"], json!(true))),
            unquoted("spec.template.metadata.annotations[karpenter.sh/do-not-disrupt]: true"),
        ),
        (POD, written(&["namespace"], json!(5)), unquoted("metadata.namespace: 5")),
        (
            DEPLOYMENT,
            of_many(1, noted("labels", "app", "other")),
            Some((
                422,
                "spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does \
                 not match template `labels`"
                    .to_owned(),
            )),
        ),
        (POD, noted("annotations", "Example.com/Fine_1", "any thing!"), None),
        (
            POD,
            noted("annotations", "bad key!", ""),
            Some((422, format!("metadata.annotations: Invalid value: \"bad key!\": {name}"))),
        ),
        (
            POD,
            noted("labels", "bad key!", ""),
            Some((422, format!("metadata.labels: Invalid value: \"bad key!\": {name}"))),
        ),
        (
            POD,
            noted("labels", "app", "any thing"),
            Some((422, format!("metadata.labels: Invalid value: \"any thing\": {value}"))),
        ),
        (PDB, budget("minAvailable", json!("100%")), None),
        (
            PDB,
            budget("minAvailable", json!(-1)),
            Some((422, format!("spec.minAvailable: Invalid value: -1: {nought}"))),
        ),
        (
            PDB,
            budget("maxUnavailable", json!("200%")),
            Some((422, "Invalid value: \"200%\": must not be greater than 100%".to_owned())),
        ),
        (
            PDB,
            budget("minAvailable", json!("some")),
            Some((422, "Invalid value: \"some\": a valid percent string".to_owned())),
        ),
    ];
    for (resource, body, expected) in cases {
        let mut desk = Desk::new();
        let create = of(Verb::Create, resource, &json!("default"), None, Some(body.clone()));
        match expected {
            None => assert!(desk.ask(&create).is_ok(), "{body}"),
            Some((code, holds)) => {
                let reason = if code == 400 { "BadRequest" } else { "Invalid" };
                refused(desk.ask(&create), code, reason, &holds);
            }
        }
    }
    let mut desk = Desk::new();
    desk.create(NODE, node("n"));
    let changed =
        desk.patch(NODE, "n", json!({ "metadata": { "annotations": { "bad key!": "" } } }));
    refused(changed, 422, "Invalid", "metadata.annotations");
}

#[test]
fn custom_kinds_pass_the_schema_on_every_write() {
    let mut desk = Desk::new();
    let mut body = claim("a");
    body["spec"]["nonsense"] = json!(1);
    body["status"] = json!({ "nodeName": "written-too-early" });
    let made = desk.create(CLAIM, body);
    assert_eq!(made["spec"].get("nonsense"), None);
    assert_eq!(made.get("status"), None);
    // Karpenter's schema defaults it.
    assert_eq!(made["spec"]["expireAfter"], "720h");

    // The spec is immutable, by a rule of the schema.
    let change = json!({ "spec": { "expireAfter": "10h" } });
    refused(desk.patch(CLAIM, "a", change), 422, "Invalid", "spec is immutable");

    // Status is written apart, and alone.
    let written = json!({ "status": { "nodeName": "n" }, "metadata": { "labels": { "a": "b" } } });
    let after = desk.patch_status(CLAIM, "a", written).unwrap();
    assert_eq!(after["status"]["nodeName"], "n");
    assert_eq!(after["metadata"].get("labels"), None);
    assert_eq!(after["metadata"]["generation"], 1);
    let mut whole = after.clone();
    whole["status"]["nodeName"] = json!("other");
    whole["metadata"]["labels"] = json!({ "a": "b" });
    let after = desk.replace(CLAIM, &whole).unwrap();
    assert_eq!(after["status"]["nodeName"], "n");
    assert_eq!(after["metadata"]["labels"]["a"], "b");
    assert_eq!(after["metadata"]["generation"], 1);
}

#[test]
fn a_change_of_the_spec_counts_and_a_change_of_nothing_is_none() {
    let mut desk = Desk::new();
    let ledger = json!({
        "apiVersion": "nodemolt.dev/v1alpha1", "kind": "DisruptionLedger",
        "metadata": { "name": "cluster" }, "spec": {},
    });
    desk.create(LEDGER, ledger);
    let before = desk.server.revision();
    let again = json!({ "metadata": { "name": "cluster" } });
    desk.patch(LEDGER, "cluster", again).unwrap();
    assert_eq!(desk.server.revision(), before);
    let paused = json!({ "spec": { "pause": { "reason": "a test" } } });
    let after = desk.patch(LEDGER, "cluster", paused).unwrap();
    assert_eq!(after["metadata"]["generation"], 2);
    assert_eq!(after["metadata"]["resourceVersion"], desk.server.revision().to_string());
}

#[test]
fn a_write_against_another_revision_or_object_is_a_conflict() {
    let mut desk = Desk::new();
    let first = desk.create(CLAIM, claim("a"));
    let labelled = json!({ "metadata": { "labels": { "a": "1" } } });
    let second = desk.patch(CLAIM, "a", labelled).unwrap();
    refused(desk.replace(CLAIM, &first), 409, "Conflict", "the object has been modified");
    let stale = json!({ "metadata": {
        "resourceVersion": first["metadata"]["resourceVersion"], "labels": { "a": "2" },
    } });
    refused(desk.patch(CLAIM, "a", stale.clone()), 409, "Conflict", "the object has been modified");
    refused(desk.patch_status(CLAIM, "a", stale), 409, "Conflict", "the object has been modified");
    let mut other = second.clone();
    other["metadata"]["uid"] = json!("another");
    refused(desk.replace(CLAIM, &other), 409, "Conflict", "UID in precondition: another");
    let mut blind = second.clone();
    blind["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    refused(
        desk.replace(CLAIM, &blind),
        422,
        "Invalid",
        "nodeclaims.karpenter.sh \"a\" is invalid: metadata.resourceVersion",
    );
    let mut renamed = second.clone();
    renamed["metadata"]["name"] = json!("b");
    let request = of(Verb::Replace, CLAIM, &Value::Null, Some("a"), Some(renamed));
    refused(desk.ask(&request), 400, "BadRequest", "does not match the name on the URL");
    refused(desk.patch(CLAIM, "none", json!({})), 404, "NotFound", "\"none\" not found");
    assert_eq!(desk.get(CLAIM, "a").unwrap(), second);

    // Nodes may be written blindly; PodDisruptionBudgets may not.
    desk.create(NODE, node("n"));
    let mut blind = desk.get(NODE, "n").unwrap();
    blind["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    blind["metadata"]["labels"] = json!({ "a": "b" });
    desk.replace(NODE, &blind).unwrap();
}

#[test]
fn finalizers_hold_what_is_being_deleted_and_nobody_adds_one() {
    let mut desk = Desk::new();
    for (resource, body) in [
        (CLAIM, claim("a")),
        (NODE, {
            let mut body = node("a");
            body["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
            body
        }),
    ] {
        desk.create(resource, body);
        let going = desk.delete(resource, "a", json!({})).unwrap();
        assert_eq!(going["metadata"]["deletionTimestamp"], "2027-01-15T08:00:00Z");
        assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 0);
        let revision = desk.server.revision();
        desk.delete(resource, "a", json!({})).unwrap();
        assert_eq!(desk.server.revision(), revision, "the second time changes nothing");
        let more = json!({ "metadata": { "finalizers": ["karpenter.sh/termination", "a.b/c"] } });
        refused(desk.patch(resource, "a", more), 422, "Invalid", "no new finalizers can be added");
        let dated = json!({ "metadata": { "deletionTimestamp": "2027-01-15T08:00:00Z" } });
        let other = if resource == NODE { node("other") } else { claim("other") };
        desk.create(resource, other);
        refused(desk.patch(resource, "other", dated), 422, "Invalid", "field is immutable");
        let back = json!({ "metadata": { "deletionTimestamp": null } });
        assert!(
            desk.patch(resource, "a", back).unwrap()["metadata"].get("deletionTimestamp").is_some()
        );
        let released = json!({ "metadata": { "finalizers": null } });
        desk.patch(resource, "a", released).unwrap();
        refused(desk.get(resource, "a"), 404, "NotFound", "\"a\" not found");
        let last = desk.server.changes(resource, 0).unwrap().last().unwrap();
        assert_eq!(last.what, What::Deleted);
    }
    desk.create(NODE, node("b"));
    let status = desk.delete(NODE, "b", json!({})).unwrap();
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    refused(desk.delete(NODE, "b", json!({})), 404, "NotFound", "");
}

#[test]
fn a_deletion_may_say_whom_it_means() {
    let mut desk = Desk::new();
    let made = desk.create(NODE, node("n"));
    let (uid, revision) = (&made["metadata"]["uid"], &made["metadata"]["resourceVersion"]);
    let only = |field: &str, value: &Value| json!({ "preconditions": { field: value } });
    refused(
        desk.delete(NODE, "n", only("uid", &json!("x"))),
        409,
        "Conflict",
        "the UID in the precondition (x)",
    );
    refused(
        desk.delete(NODE, "n", only("resourceVersion", &json!("1"))),
        409,
        "Conflict",
        "the ResourceVersion in the precondition (1)",
    );
    let both = json!({ "preconditions": { "uid": uid, "resourceVersion": revision } });
    let mut dry = both.clone();
    dry["dryRun"] = json!(["All"]);
    desk.delete(NODE, "n", dry).unwrap();
    desk.get(NODE, "n").unwrap();
    desk.delete(NODE, "n", both).unwrap();
    refused(desk.get(NODE, "n"), 404, "NotFound", "");
}

/// Node, phase, own grace period, grace period asked for, what is given; `None`: it is gone at once.
#[test]
fn a_pod_leaves_in_its_own_time() {
    for (on, phase, own, asked, given) in [
        (Some("n"), "Running", Some(30), None, Some(30)),
        (Some("n"), "Running", None, None, Some(30)),
        (Some("n"), "Running", Some(30), Some(5), Some(5)),
        (Some("n"), "Running", Some(30), Some(60), Some(60)),
        (Some("n"), "Running", Some(30), Some(0), None),
        (Some("n"), "Running", Some(0), None, None),
        (Some("n"), "Running", Some(30), Some(-1), Some(1)),
        (Some("n"), "Pending", Some(30), None, Some(30)),
        (Some("n"), "Succeeded", Some(30), None, None),
        (Some("n"), "Failed", Some(30), Some(60), None),
        (None, "Pending", Some(30), None, None),
        (Some("n"), "Running", Some(i64::MAX), None, Some(i64::MAX)),
    ] {
        let mut desk = Desk::new();
        let mut body = pod("p", on);
        body["spec"]["terminationGracePeriodSeconds"] = json!(own);
        desk.create(POD, body);
        let request = of(
            Verb::MergePatch,
            POD,
            &json!("default"),
            Some("p"),
            Some(json!({ "status": { "phase": phase } })),
        );
        desk.ask(&Request { subresource: Some(Subresource::Status), ..request }).unwrap();
        let options = match asked {
            Some(asked) => json!({ "gracePeriodSeconds": asked }),
            None => json!({}),
        };
        desk.delete(POD, "p", options).unwrap();
        let left = desk.get(POD, "p").ok();
        let found =
            left.as_ref().and_then(|it| it["metadata"]["deletionGracePeriodSeconds"].as_i64());
        assert_eq!(found, given, "{on:?} {phase} {own:?} {asked:?}");
        if given == Some(30) {
            assert_eq!(left.unwrap()["metadata"]["deletionTimestamp"], "2027-01-15T08:00:30Z");
        }
    }
}

#[test]
fn a_second_deletion_of_a_pod_only_shortens_the_first() {
    let mut desk = Desk::new();
    desk.create(POD, pod("p", Some("n")));
    desk.delete(POD, "p", json!({})).unwrap();
    let grace = |desk: &mut Desk| {
        desk.get(POD, "p").unwrap()["metadata"]["deletionGracePeriodSeconds"].as_i64()
    };
    for (asked, left) in [
        (json!({}), 30),
        (json!({ "gracePeriodSeconds": 60 }), 30),
        (json!({ "gracePeriodSeconds": 10 }), 10),
    ] {
        desk.delete(POD, "p", asked).unwrap();
        assert_eq!(grace(&mut desk), Some(left));
    }
    let until = desk.get(POD, "p").unwrap()["metadata"]["deletionTimestamp"].clone();
    assert_eq!(until, "2027-01-15T08:00:10Z");
    // The kubelet confirms.
    desk.delete(POD, "p", json!({ "gracePeriodSeconds": 0 })).unwrap();
    refused(desk.get(POD, "p"), 404, "NotFound", "pods \"p\" not found");
}

#[test]
fn a_pod_with_a_finalizer_stays_after_its_kubelet_has_confirmed() {
    let mut desk = Desk::new();
    let mut body = pod("p", Some("n"));
    body["metadata"]["finalizers"] = json!(["example.com/held"]);
    desk.create(POD, body);
    desk.delete(POD, "p", json!({})).unwrap();
    desk.delete(POD, "p", json!({ "gracePeriodSeconds": 0 })).unwrap();
    assert_eq!(desk.get(POD, "p").unwrap()["metadata"]["deletionGracePeriodSeconds"], 0);
    let released = json!({ "metadata": { "finalizers": [] } });
    let request = of(Verb::MergePatch, POD, &json!("default"), Some("p"), Some(released));
    desk.ask(&request).unwrap();
    refused(desk.get(POD, "p"), 404, "NotFound", "");
}

#[test]
fn what_kubernetes_fixes_of_its_own_kinds_stays_fixed() {
    let mut desk = Desk::new();
    let made = desk.create(NODE, node("n"));
    assert_eq!(
        made["spec"]["taints"],
        json!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }])
    );
    desk.patch(NODE, "n", json!({ "spec": { "providerID": "aws:///a/i-1" } })).unwrap();
    refused(
        desk.patch(NODE, "n", json!({ "spec": { "providerID": "aws:///a/i-2" } })),
        422,
        "Invalid",
        "may not change providerID",
    );
    let taint = json!({ "key": "a", "effect": "NoSchedule" });
    for (taints, holds) in [
        (json!([{ "key": "a", "effect": "Never" }]), "Unsupported value: \"Never\""),
        (json!([taint, taint]), "taints must be unique"),
    ] {
        refused(
            desk.patch(NODE, "n", json!({ "spec": { "taints": taints } })),
            422,
            "Invalid",
            holds,
        );
    }
    let made = desk.create(POD, pod("p", Some("n")));
    assert_eq!(made["status"]["phase"], "Pending");
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 2);
    let moved = json!({ "spec": { "nodeName": "m" } });
    let request = of(Verb::MergePatch, POD, &json!("default"), Some("p"), Some(moved));
    refused(desk.ask(&request), 422, "Invalid", "pod updates may not change fields");
    // The status is written apart from the spec, and carries labels along.
    let after = desk.patch_status(NODE, "n", json!({
        "spec": { "unschedulable": true }, "status": { "phase": "x" }, "metadata": { "labels": { "a": "b" } },
    })).unwrap();
    assert_eq!(
        (after["spec"].get("unschedulable"), &after["metadata"]["labels"]["a"]),
        (None, &json!("b"))
    );
    let both = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "b", "namespace": "default" },
        "spec": { "minAvailable": 1, "maxUnavailable": 1 },
    });
    let request = of(Verb::Create, PDB, &json!("default"), None, Some(both));
    refused(desk.ask(&request), 422, "Invalid", "cannot be both set");
}

#[test]
fn a_namespace_that_goes_takes_nothing_new() {
    let mut desk = Desk::new();
    desk.create(NAMESPACE, json!({ "metadata": { "name": "going" } }));
    desk.delete(NAMESPACE, "going", json!({})).unwrap();
    let mut body = pod("p", None);
    body["metadata"]["namespace"] = json!("going");
    let request = of(Verb::Create, POD, &json!("going"), None, Some(body));
    let answer = desk.ask(&request);
    let Err(Refusal::Status { causes, .. }) = &answer else { panic!("{answer:?}") };
    assert_eq!(causes, &["NamespaceTerminating"]);
    refused(
        answer,
        403,
        "Forbidden",
        "pods \"p\" is forbidden: unable to create new content in namespace going",
    );
    let revision = desk.server.revision();
    desk.delete(NAMESPACE, "going", json!({})).unwrap();
    assert_eq!(desk.server.revision(), revision, "it is going already");
    let never = desk.delete(NAMESPACE, "default", json!({}));
    refused(never, 403, "Forbidden", "this namespace may not be deleted");
}

#[test]
fn one_image_is_read_and_written_in_every_version() {
    let mut desk = Desk::new();
    let in_version = |version: &'static str| Resource { version, ..IMAGE };
    let body = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha3", "kind": "AWSImage",
        "metadata": { "name": "ami-0123456789abcdef0" },
        "spec": { "image": { "ref": { "id": "ami-0123456789abcdef0" } } },
    });
    let request = of(Verb::Create, in_version("v1alpha3"), &Value::Null, None, Some(body));
    let made = desk.ask(&request);
    let made = made.unwrap().body;
    assert_eq!(made["apiVersion"], "infrastructure.cluster.x-k8s.io/v1alpha3");
    let read = desk.get(IMAGE, "ami-0123456789abcdef0").unwrap();
    assert_eq!(read["apiVersion"], "infrastructure.cluster.x-k8s.io/v1beta1");
    assert_eq!(read["spec"], made["spec"]);
    refused(desk.get(in_version("v1"), "ami-0123456789abcdef0"), 404, "NotFound", "");
}

#[test]
fn lists_are_whole_and_watches_are_in_order_until_they_are_compacted() {
    let mut desk = Desk::new();
    let begun = desk.server.revision();
    desk.create(NODE, node("b"));
    desk.create(NODE, node("a"));
    desk.create(POD, pod("p", None));
    desk.patch(NODE, "b", json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    desk.delete(NODE, "a", json!({})).unwrap();
    let answer = desk.ask(&of(Verb::List, NODE, &Value::Null, None, None)).unwrap();
    let list = answer.body;
    assert_eq!(list["kind"], "NodeList");
    assert_eq!(list["metadata"]["resourceVersion"], desk.server.revision().to_string());
    assert_eq!(answer.items.as_deref().map(<[_]>::len), Some(1));
    let told: Vec<(What, String)> = desk
        .server
        .changes(NODE, begun)
        .unwrap()
        .map(|it| (it.what, it.object["metadata"]["name"].as_str().unwrap().to_owned()))
        .collect();
    let expected =
        [(What::Added, "b"), (What::Added, "a"), (What::Modified, "b"), (What::Deleted, "a")];
    assert_eq!(told, expected.map(|(what, name)| (what, name.to_owned())));
    let middle = desk.server.changes(NODE, begun).unwrap().nth(1).unwrap().revision;
    assert_eq!(desk.server.changes(NODE, middle).unwrap().count(), 2);
    desk.server.compact(NODE);
    assert_eq!(desk.server.changes(NODE, middle).map(Iterator::count), Err(Compacted));
    assert_eq!(desk.server.changes(NODE, desk.server.revision()).map(Iterator::count), Ok(0));
    assert_eq!(desk.server.changes(POD, begun).map(Iterator::count), Ok(1));
}

#[test]
fn pods_are_listed_by_their_node_and_by_no_other_field() {
    let mut desk = Desk::new();
    desk.create(NODE, node("n1"));
    desk.create(NODE, node("n2"));
    for (name, node) in [("b", Some("n1")), ("c", Some("n2")), ("d", None), ("a", Some("n1"))] {
        desk.create(POD, pod(name, node));
    }
    let mut list = |resource, selector: &str| {
        let options = json!({ "fieldSelector": selector });
        let answer = desk.ask(&of(Verb::List, resource, &Value::Null, None, Some(options)))?;
        let names = answer.items.unwrap_or_default();
        let name = |it: &std::rc::Rc<Value>| it["metadata"]["name"].as_str().unwrap().to_owned();
        Ok::<_, Refusal>(names.iter().map(name).collect::<Vec<_>>())
    };
    assert_eq!(list(POD, "spec.nodeName=n1").unwrap(), ["a", "b"]);
    assert_eq!(list(POD, "spec.nodeName=n3").unwrap(), Vec::<String>::new());
    refused(list(POD, "spec.colour=red"), 400, "BadRequest", "field label not supported");
    refused(list(NODE, "spec.nodeName=n1"), 400, "BadRequest", "field label not supported");
}

#[test]
fn every_change_leaves_a_fact_and_nothing_else_does() {
    let mut desk = Desk::new();
    desk.trace.take();
    desk.create(NODE, node("n"));
    desk.get(NODE, "n").unwrap();
    refused(desk.get(NODE, "m"), 404, "NotFound", "");
    desk.patch(NODE, "n", json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    desk.create(POD, pod("p", None));
    desk.delete(POD, "p", json!({ "preconditions": {} })).unwrap();
    let facts: Vec<String> = desk
        .trace
        .take()
        .into_iter()
        .map(|it| {
            assert_eq!((it.at, it.by), (NOW, Actor::Operator(0)));
            match it.fact {
                Fact::Stored { resource, old, .. } => {
                    format!("stored {resource} {}", old.is_some())
                }
                Fact::Removed { resource, .. } => format!("removed {resource}"),
                Fact::PodDeleted { pod, .. } => format!("deleted {pod}"),
                other => format!("{other:?}"),
            }
        })
        .collect();
    let expected = [
        "stored nodes false",
        "stored nodes true",
        "stored pods false",
        "deleted p",
        "stored pods true",
        "removed pods",
    ];
    assert_eq!(facts, expected);
}

#[test]
fn a_replacement_never_changes_its_identity() {
    let mut desk = Desk::new();
    let body = json!({
        "apiVersion": "nodemolt.dev/v1alpha1", "kind": "Replacement", "metadata": { "name": "u-1" },
        "spec": { "nodeClaim": { "name": "a", "uid": "u-1" }, "nodeName": "n" },
    });
    let mut misnamed = body.clone();
    misnamed["metadata"]["name"] = json!("u-2");
    let request = of(Verb::Create, REPLACEMENT, &Value::Null, None, Some(misnamed));
    refused(desk.ask(&request), 422, "Invalid", "is not named after the old claim");
    desk.create(REPLACEMENT, body);
    let other = json!({ "spec": { "nodeName": "m" } });
    refused(desk.patch(REPLACEMENT, "u-1", other), 422, "Invalid", "cannot be changed");
}
