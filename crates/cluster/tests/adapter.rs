//! What does the adapter send, and what does it make of the answers?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use nodemolt_cluster::Adapter;
use nodemolt_cluster::resources::{self, WATCHED};
use nodemolt_cluster::transport::{Answer, Heard, Refusal, Request, Subresource, Transport, Verb};
use nodemolt_core::drain::{AtLimit, PodId};
use nodemolt_core::replace::{Cause, Old, Order, Replacement};
use nodemolt_core::seen::{Kind, Revision};
use nodemolt_engine::port::{Cluster as _, ClusterError, EvictAnswer, Leadership, Object};
use nodemolt_engine::record::{Recorded, Told};
use serde_json::{Value, json};

/// Answers in the order of the script, and keeps what it was asked.
#[derive(Clone, Default)]
struct Script {
    answers: Rc<RefCell<VecDeque<Result<Value, Refusal>>>>,
    asked: Rc<RefCell<Vec<Request>>>,
}

impl Transport for Script {
    async fn send(&self, request: &Request) -> Result<Answer, Refusal> {
        self.asked.borrow_mut().push(request.clone());
        let next = self.answers.borrow_mut().pop_front().expect("nobody expected that request");
        let date = "2026-11-16T06:15:00Z".parse().ok();
        next.map(|body| Answer::new(200, body, date))
    }
}

fn script(answers: impl IntoIterator<Item = Result<Value, Refusal>>) -> (Script, Adapter<Script>) {
    let script = Script {
        answers: Rc::new(RefCell::new(answers.into_iter().collect())),
        ..Script::default()
    };
    (script.clone(), Adapter::new(script))
}

/// Nothing in here ever waits.
fn now<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

fn status(code: u16, reason: &str, message: &str) -> Refusal {
    Refusal::Status {
        code,
        reason: reason.to_owned(),
        message: message.to_owned(),
        causes: Vec::new(),
        retry_after: None,
    }
}

fn caused(refusal: Refusal, cause: &str, seconds: Option<i64>) -> Refusal {
    match refusal {
        Refusal::Status { code, reason, message, .. } => Refusal::Status {
            code,
            reason,
            message,
            causes: vec![cause.to_owned()],
            retry_after: seconds.map(SignedDuration::from_secs),
        },
        Refusal::NoAnswer(_) => refusal,
    }
}

fn pod() -> PodId {
    PodId { namespace: "web".to_owned(), name: "a".to_owned(), uid: "uid-1".to_owned() }
}

#[test]
fn every_answer_of_the_eviction_api_means_one_thing() {
    const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
    let held =
        |seconds| caused(status(429, "TooManyRequests", VIOLATES), "DisruptionBudget", seconds);
    let message = VIOLATES.to_owned();
    let other = "Precondition failed: UID in precondition: uid-1, UID in object meta: uid-2";
    let several = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    let cases: Vec<(Refusal, Result<EvictAnswer, ClusterError>)> = vec![
        (status(404, "NotFound", "no"), Ok(EvictAnswer::Gone)),
        (status(409, "Conflict", other), Ok(EvictAnswer::Another)),
        (
            status(409, "Conflict", "the object has been modified"),
            Err(ClusterError::Conflict("Pod web/a".to_owned())),
        ),
        (held(None), Ok(EvictAnswer::Held { retry_after: None, message: message.clone() })),
        (
            held(Some(10)),
            Ok(EvictAnswer::Held { retry_after: Some(SignedDuration::from_secs(10)), message }),
        ),
        // A server that has too much to do says so in the same number, and means something else.
        (
            caused(status(429, "TooManyRequests", "later"), "", Some(1)),
            Err(ClusterError::Throttled { retry_after: Some(SignedDuration::from_secs(1)) }),
        ),
        (status(500, "", several), Ok(EvictAnswer::SeveralBudgets { message: several.to_owned() })),
        (
            status(500, "InternalError", "etcd"),
            Err(ClusterError::Unreachable("500 etcd".to_owned())),
        ),
        (
            status(403, "Forbidden", "negative"),
            Ok(EvictAnswer::Forbidden {
                namespace_terminating: false,
                message: "negative".to_owned(),
            }),
        ),
        (
            caused(status(403, "Forbidden", "it goes"), "NamespaceTerminating", None),
            Ok(EvictAnswer::Forbidden {
                namespace_terminating: true,
                message: "it goes".to_owned(),
            }),
        ),
        (
            status(504, "Timeout", "conflicts"),
            Err(ClusterError::Unreachable("504 conflicts".to_owned())),
        ),
        (Refusal::NoAnswer("gone".to_owned()), Err(ClusterError::Unreachable("gone".to_owned()))),
    ];
    for (refusal, expected) in cases {
        let (script, adapter) = script([Err(refusal.clone())]);
        assert_eq!(now(adapter.evict(&pod())), expected, "{refusal:?}");
        let asked = script.asked.borrow();
        assert_eq!(asked.len(), 1, "never again by itself");
        assert_eq!(asked[0].subresource, Some(Subresource::Eviction));
        let body = asked[0].body.as_ref().unwrap();
        assert_eq!(body["deleteOptions"], json!({"preconditions": {"uid": "uid-1"}}));
    }
    let (_, adapter) = script([Ok(json!({}))]);
    assert_eq!(now(adapter.evict(&pod())), Ok(EvictAnswer::Accepted));
}

#[test]
fn a_refusal_is_told_by_code_and_reason() {
    let cases = [
        (status(404, "NotFound", ""), ClusterError::Absent("NodeClaim a".to_owned())),
        (status(409, "AlreadyExists", ""), ClusterError::Exists("NodeClaim a".to_owned())),
        (status(409, "Conflict", ""), ClusterError::Conflict("NodeClaim a".to_owned())),
        (status(403, "Forbidden", "no"), ClusterError::Forbidden("no".to_owned())),
        (status(429, "TooManyRequests", ""), ClusterError::Throttled { retry_after: None }),
        (
            status(422, "Invalid", "bad"),
            ClusterError::Invalid { object: "NodeClaim a".to_owned(), message: "bad".to_owned() },
        ),
        (status(503, "", "down"), ClusterError::Unreachable("503 down".to_owned())),
        (Refusal::NoAnswer("cut".to_owned()), ClusterError::Unreachable("cut".to_owned())),
    ];
    for (refusal, expected) in cases {
        let (_, adapter) = script([Err(refusal)]);
        assert_eq!(now(adapter.delete_claim("a", "uid-1")), Err(expected));
    }
}

fn node(annotations: &Value, taints: &Value) -> Value {
    json!({
        "metadata": {"name": "n", "uid": "uid-1", "resourceVersion": "7", "annotations": annotations},
        "spec": {"taints": taints, "unschedulable": true},
    })
}

fn it() -> Object {
    Object { name: "n".to_owned(), uid: "uid-1".to_owned(), revision: Revision("5".to_owned()) }
}

const OURS: &str = "nodemolt.dev/cordoned-by";
const FOUND: &str = "nodemolt.dev/cordon-found";

#[test]
fn a_cordon_is_one_patch_that_keeps_what_others_wrote() {
    let theirs =
        json!({"key": "theirs", "effect": "NoExecute", "timeAdded": "2026-11-16T06:00:00Z"});
    let cordon = json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"});
    // What stands there; the patch, if there is one.
    let cases = [
        (
            node(&json!({}), &json!([theirs])),
            Some(json!({
                "metadata": {"resourceVersion": "7", "annotations": {OURS: "r", FOUND: null}},
                "spec": {"taints": [theirs, cordon]},
            })),
        ),
        (node(&json!({OURS: "r"}), &json!([cordon])), None),
        (
            node(&json!({}), &json!([cordon])),
            Some(json!({
                "metadata": {"resourceVersion": "7", "annotations": {OURS: "r", FOUND: "true"}},
                "spec": {"taints": [cordon]},
            })),
        ),
    ];
    for (found, expected) in cases {
        let (script, adapter) = script([Ok(found.clone()), Ok(json!({}))]);
        assert_eq!(now(adapter.cordon(&it(), "r")), Ok(()));
        assert_eq!(
            script.asked.borrow().get(1).and_then(|it| it.body.clone()),
            expected,
            "{found}"
        );
    }
}

#[test]
fn only_who_cordoned_uncordons_and_only_what_was_ours() {
    let cordon = json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"});
    let cases = [
        (node(&json!({}), &json!([cordon])), None),
        (node(&json!({OURS: "other"}), &json!([cordon])), None),
        (
            node(&json!({OURS: "r"}), &json!([cordon])),
            Some(json!({
                "metadata": {"resourceVersion": "7", "annotations": {OURS: null, FOUND: null}},
                "spec": {"taints": null},
            })),
        ),
        (
            node(&json!({OURS: "r", FOUND: "true"}), &json!([cordon])),
            Some(json!({
                "metadata": {"resourceVersion": "7", "annotations": {OURS: null, FOUND: null}},
            })),
        ),
    ];
    for (found, expected) in cases {
        let (script, adapter) = script([Ok(found.clone()), Ok(json!({}))]);
        assert_eq!(now(adapter.uncordon(&it(), "r")), Ok(()));
        assert_eq!(
            script.asked.borrow().get(1).and_then(|it| it.body.clone()),
            expected,
            "{found}"
        );
    }
}

#[test]
fn a_node_of_the_same_name_is_another_one() {
    let mut other = node(&json!({}), &json!([]));
    other["metadata"]["uid"] = "uid-2".into();
    let (script, adapter) = script([Ok(other)]);
    assert!(matches!(now(adapter.cordon(&it(), "r")), Err(ClusterError::Absent(_))));
    assert_eq!(script.asked.borrow().len(), 1);
}

#[test]
fn only_our_finalizer_is_taken_off() {
    let mut claim = node(&json!({}), &json!([]));
    claim["metadata"]["finalizers"] = json!(["theirs", "karpenter.sh/termination"]);
    let (script, adapter) = script([Ok(claim), Ok(json!({}))]);
    assert_eq!(now(adapter.release_claim(&it())), Ok(()));
    let asked = script.asked.borrow();
    let expected = json!({"metadata": {"resourceVersion": "7", "finalizers": ["theirs"]}});
    assert_eq!(asked[1].body, Some(expected));
}

#[test]
fn a_lease_is_taken_only_after_we_saw_it_unchanged_for_its_duration() {
    let at = |seconds: i64| Timestamp::from_second(1_790_000_000 + seconds).unwrap();
    let lease = |revision: &str| {
        // What the holder's clock says is far in the past, and must not matter.
        Ok(json!({
            "metadata": {"name": "nodemolt", "resourceVersion": revision},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": 15,
                "renewTime": "2001-01-01T00:00:00.000000Z", "leaseTransitions": 4},
        }))
    };
    let looks = ["1", "1", "1", "2", "2", "2", "2", "2"].map(lease);
    let (script, adapter) = script(looks.into_iter().chain([Ok(json!({}))]));
    let lead = |seconds| now(adapter.lead("me", at(seconds))).unwrap();
    let follows = Leadership::Follows { leader: "other".to_owned() };
    assert_eq!(lead(0), follows);
    assert_eq!(lead(86_400), follows, "our clock was set ahead");
    assert_eq!(lead(5), follows, "and back again");
    assert_eq!(lead(16), follows, "it was renewed");
    assert_eq!(lead(21), follows);
    assert_eq!(lead(26), follows);
    assert_eq!(lead(30), follows);
    assert_eq!(lead(31), Leadership::Leads { until: at(46), transitions: 5 });
    let asked = script.asked.borrow().len();
    assert_eq!(asked, 9);
    let asked = script.asked.borrow();
    let written = asked.last().unwrap();
    assert_eq!(written.verb, Verb::Replace);
    let body = written.body.as_ref().unwrap();
    assert_eq!(body["metadata"]["resourceVersion"], "2", "by compare and swap");
    assert_eq!(body["spec"]["renewTime"], "2026-09-21T14:13:51.000000Z");
}

/// What is not read whole is not read: a machine ends on the strength of it.
#[test]
fn the_pods_of_a_node_are_all_of_them_or_an_error() {
    let pod = |name: &str| {
        json!({"metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}")},
            "spec": {"containers": [], "nodeName": "n1"}})
    };
    let broken = json!({"metadata": {"namespace": "shop", "name": "odd"}, "spec": 7});
    let list = |items: &[Value], more: &str| {
        Ok(json!({"metadata": {"resourceVersion": "9", "continue": more}, "items": items}))
    };
    let cases = [
        (list(&[pod("a"), pod("b")], ""), Ok(2)),
        (list(&[], ""), Ok(0)),
        (list(&[pod("a")], "more"), Err("not whole")),
        (list(&[pod("a"), broken], ""), Err("Pod shop/odd")),
        (Ok(json!({"kind": "Status"})), Err("not whole")),
        (Err(status(429, "TooManyRequests", "")), Err("wait")),
    ];
    for (said, expected) in cases {
        let (script, adapter) = script([said]);
        let answer = now(adapter.pods_on("n1")).map(|it| it.len()).map_err(|it| it.to_string());
        match (&answer, expected) {
            (Ok(count), Ok(wanted)) => assert_eq!(*count, wanted),
            (Err(why), Err(wanted)) => assert!(why.contains(wanted), "{why}"),
            (answer, wanted) => panic!("{answer:?} and not {wanted:?}"),
        }
        let asked = script.asked.borrow();
        let options = asked[0].body.as_ref().unwrap();
        assert_eq!(options["fieldSelector"], "spec.nodeName=n1");
    }
}

/// A proxy answers 200 with whatever it likes.
#[test]
fn a_lease_that_is_no_object_is_an_error_and_no_end() {
    for said in [json!("ok"), json!([]), json!(7)] {
        let (_, adapter) = script([Ok(said)]);
        let at = Timestamp::from_second(1_790_000_000).unwrap();
        let answer = now(adapter.lead("me", at));
        assert!(matches!(answer, Err(ClusterError::Unreadable { .. })), "{answer:?}");
    }
}

/// Our own words come back as they were written: a record that was not changed is not written again.
#[test]
fn a_pod_that_holds_a_drain_is_read_back_as_the_one_that_is_seen() {
    let record = json!({"apiVersion": "nodemolt.dev/v1alpha1", "kind": "Replacement",
        "metadata": {"name": "uid-1", "resourceVersion": "3"},
        "spec": {"nodeClaim": {"name": "c", "uid": "uid-1"}},
        "status": {"phase": "Draining", "phaseSince": "2026-11-16T06:00:00Z", "cause": "Drift",
            "try": 1, "reason": {"word": "PlacementHolds"}, "order": "SuccessorFirst",
            "drainLimitAction": "Skip",
            "drain": {"held": [{"namespace": "shop", "name": "web-1", "because": "a budget"}]}}});
    let (_, adapter) = script([
        Ok(json!({"metadata": {"resourceVersion": "9"}, "items": [record]})),
        Err(status(404, "NotFound", "")),
    ]);
    let pod = json!({"metadata": {"namespace": "shop", "name": "web-1", "uid": "uid-web-1"},
        "spec": {"containers": []}});
    let at = Timestamp::from_second(1_790_000_000).unwrap();
    adapter.hear(resources::POD, &Heard::Listed(vec![pod]), at);
    let records = now(adapter.records()).unwrap();
    assert_eq!(records.unreadable, BTreeMap::new());
    let drain = records.replacements["uid-1"].drain.as_ref().unwrap();
    assert_eq!(drain.held[0].0.uid, "uid-web-1");
}

#[test]
fn a_broken_record_is_named_and_hides_no_other() {
    let good = json!({"apiVersion": "nodemolt.dev/v1alpha1", "kind": "Replacement",
        "metadata": {"name": "uid-1", "resourceVersion": "3", "creationTimestamp": "2026-11-16T06:00:00Z"},
        "spec": {"nodeClaim": {"name": "c", "uid": "uid-1"}}});
    let mut bad = good.clone();
    bad["metadata"]["name"] = "uid-2".into();
    bad["status"] = json!({"phase": "Draining"});
    let (_, adapter) = script([
        Ok(json!({"metadata": {"resourceVersion": "9"}, "items": [good, bad]})),
        Err(status(404, "NotFound", "")),
    ]);
    let records = now(adapter.records()).unwrap();
    assert_eq!(records.ledger.revision, None);
    assert!(records.replacements["uid-1"].grant.is_none(), "begun, and not granted");
    assert!(records.unreadable["uid-2"].contains("status.phaseSince"));
    assert_eq!(records.server_time, "2026-11-16T06:15:00Z".parse().ok());
    assert_eq!(adapter.seen().server_time, records.server_time);
}

/// Whoever made it died before its first status: what was decided stands in it all the same.
#[test]
fn a_record_without_a_status_is_read_as_it_was_begun() {
    let old = Old { node: "n".to_owned(), claim: "c".to_owned(), claim_uid: "uid-1".to_owned() };
    let successors = [vec![], vec!["web-1".to_owned()], vec!["web-1".to_owned(), "b-2".to_owned()]];
    for (cause, order, at_limit, successors) in [
        (Cause::Drift, Order::SuccessorFirst, AtLimit::Skip, &successors[0]),
        (Cause::Expiry, Order::SuccessorFirst, AtLimit::Force, &successors[1]),
        (Cause::Asked, Order::DeleteFirst, AtLimit::Wait, &successors[1]),
        (Cause::Deleted, Order::SuccessorFirst, AtLimit::Wait, &successors[2]),
    ] {
        let since = "2026-11-16T06:00:00Z".parse().unwrap();
        let successors = successors.clone();
        let begun = Replacement::begin(old.clone(), cause, order, at_limit, successors, since);
        let record = Recorded {
            name: "uid-1".to_owned(),
            revision: None,
            pool: Some("web".to_owned()),
            replacement: begun.clone(),
            grant: Some((1, since)),
            drain: None,
            told: Told::default(),
        };
        let made = json!({"metadata": {"resourceVersion": "3"}});
        let (asked, adapter) = script([Ok(made), Err(Refusal::NoAnswer("lost".to_owned()))]);
        assert!(now(adapter.write_replacement(&record)).is_err());
        let mut made = asked.asked.borrow()[0].body.clone().unwrap();
        made["metadata"]["creationTimestamp"] = "2026-11-16T06:00:00Z".into();
        let (_, adapter) = script([
            Ok(json!({"metadata": {"resourceVersion": "9"}, "items": [made]})),
            Err(status(404, "NotFound", "")),
        ]);
        let records = now(adapter.records()).unwrap();
        assert_eq!(records.replacements["uid-1"].replacement, begun);
        assert_eq!(records.replacements["uid-1"].grant, None);
    }
}

/// Whoever took over has raised the epoch before it wrote a record: who reads its record reads its epoch.
#[test]
fn the_ledger_is_read_after_the_records() {
    let (script, adapter) = script([
        Ok(json!({"metadata": {"resourceVersion": "9"}, "items": []})),
        Err(status(404, "NotFound", "")),
    ]);
    now(adapter.records()).unwrap();
    let asked = script.asked.borrow();
    let asked: Vec<&str> = asked.iter().map(|it| it.resource.kind).collect();
    assert_eq!(asked, ["Replacement", "DisruptionLedger"]);
}

#[test]
fn a_view_is_complete_when_every_kind_was_listed() {
    let (_, adapter) = script([]);
    let at = Timestamp::from_second(1_790_000_000).unwrap();
    for (count, (resource, _)) in WATCHED.iter().enumerate() {
        assert!(adapter.seen().complete().is_err(), "after {count}");
        adapter.hear(*resource, &Heard::Listed(Vec::new()), at);
    }
    assert_eq!(adapter.seen().complete(), Ok(()));
    let later = at + SignedDuration::from_secs(5);
    adapter.hear(resources::OWN_CLASS, &Heard::Current, later);
    assert_eq!(adapter.seen().fresh[&Kind::Class], at, "as fresh as the stalest of two");
    adapter.hear(resources::KARPENTER_CLASS, &Heard::Current, later);
    assert_eq!(adapter.seen().fresh[&Kind::Class], later);
}
