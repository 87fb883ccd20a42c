//! Do the eyes show what watches tell, whatever comes and in whatever order?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::sync::Arc;

use jiff::Timestamp;
use nodemolt_api::eyes::{Eyes, Watched};
use nodemolt_core::drain::{Owner, PodPhase, Tier};
use nodemolt_core::seen::{ClassKey, Kind, ObjectName, PodKey, Readiness, Stage, Subject};
use serde_json::{Value, json};

fn at() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

fn meta(name: &str) -> Value {
    json!({
        "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1",
        "creationTimestamp": "2026-11-16T06:00:00Z",
    })
}

fn pod(name: &str, node: Option<&str>) -> Value {
    let mut pod = json!({
        "metadata": meta(name),
        "spec": {"containers": [{"name": "a", "image": "a",
            "resources": {"requests": {"cpu": "100m"}}}], "priority": 0},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    pod["metadata"]["namespace"] = "web".into();
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

fn key(name: &str) -> PodKey {
    PodKey { namespace: "web".into(), name: name.into() }
}

#[test]
fn pods_are_seen_where_they_are_and_share_what_they_ask_for() {
    let mut eyes = Eyes::default();
    eyes.listed(Watched::Pod, &[pod("a", Some("n")), pod("b", Some("n")), pod("c", None)], at());
    let view = eyes.view();
    let on: Vec<&str> = view.pods.on("n").map(|it| &*it.fit.name).collect();
    assert_eq!(on, ["a", "b"]);
    assert_eq!(view.pods.nowhere().count(), 1);
    let demand = |name| Arc::clone(&view.pods.get(&key(name)).unwrap().fit.demand);
    assert!(Arc::ptr_eq(&demand("a"), &demand("b")));
    let seen = &view.pods.get(&key("a")).unwrap().drain;
    assert_eq!((seen.phase, seen.ready, seen.tier), (PodPhase::Running, true, Tier::Ordinary));
    assert_eq!(seen.owner, Owner::Nobody);
    assert_eq!(view.fresh[&Kind::Pod], at());

    // A list is all there is, and a deletion is one less.
    eyes.listed(Watched::Pod, &[pod("a", Some("n"))], at());
    assert_eq!(eyes.view().pods.len(), 1);
    eyes.deleted(Watched::Pod, &pod("a", Some("n")));
    assert!(eyes.view().pods.is_empty());
}

#[test]
fn what_a_pod_demands_follows_its_volumes() {
    let mut eyes = Eyes::default();
    let mut wire = pod("a", None);
    wire["spec"]["volumes"] =
        json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    eyes.applied(Watched::Pod, &wire);
    let unmodelled =
        |eyes: &Eyes| eyes.view().pods.get(&key("a")).unwrap().fit.demand.unmodelled.join("; ");
    assert_eq!(unmodelled(&eyes), "the claim `data`, which is not there");
    let mut claim = json!({"metadata": meta("data"), "spec": {"volumeName": "vol",
        "accessModes": ["ReadWriteOnce"]}});
    claim["metadata"]["namespace"] = "web".into();
    eyes.applied(Watched::VolumeClaim, &claim);
    assert!(unmodelled(&eyes).contains("the volume `vol`"));
    let volume = json!({"metadata": meta("vol"), "spec": {
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}}}});
    eyes.applied(Watched::Volume, &volume);
    assert_eq!(unmodelled(&eyes), "");
    let volumes = eyes.view().pods.get(&key("a")).unwrap().fit.demand.volumes.clone();
    assert_eq!(volumes[0].handle, "vol-1");
    eyes.deleted(Watched::Volume, &volume);
    assert!(unmodelled(&eyes).contains("the volume `vol`"));
}

/// Which drivers count their room stands in their `CSIDriver`, which is not watched: those of AWS are known not to.
#[test]
fn a_volume_that_a_driver_may_have_no_room_for_is_not_foreseen() {
    for (provisioner, foreseen) in [("ebs.csi.aws.com", true), ("topolvm.io", false)] {
        let mut eyes = Eyes::default();
        let class = json!({"metadata": meta("fast"), "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer"});
        eyes.applied(Watched::StorageClass, &class);
        let mut claim = json!({"metadata": meta("data"), "spec": {"storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"]}});
        claim["metadata"]["namespace"] = "web".into();
        eyes.applied(Watched::VolumeClaim, &claim);
        let mut wire = pod("a", None);
        wire["spec"]["volumes"] =
            json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
        eyes.applied(Watched::Pod, &wire);
        let unmodelled = &eyes.view().pods.get(&key("a")).unwrap().fit.demand.unmodelled;
        assert_eq!(unmodelled.is_empty(), foreseen, "{provisioner}: {unmodelled:?}");
    }
}

#[test]
fn who_was_given_a_device_is_not_foreseen() {
    let mut eyes = Eyes::default();
    let mut wire = pod("a", Some("n"));
    wire["status"]["extendedResourceClaimStatus"] = json!({"resourceClaimName": "x"});
    eyes.applied(Watched::Pod, &wire);
    let demand = &eyes.view().pods.get(&key("a")).unwrap().fit.demand;
    let what = "the device that it was given (status.extendedResourceClaimStatus)";
    assert_eq!(demand.unmodelled, [what]);
}

#[test]
fn a_field_that_nobody_knows_may_decide_where_a_pod_goes() {
    let mut eyes = Eyes::default();
    let mut wire = pod("a", None);
    wire["spec"]["orbit"] = "low".into();
    eyes.applied(Watched::Pod, &wire);
    let demand = &eyes.view().pods.get(&key("a")).unwrap().fit.demand;
    assert_eq!(demand.unmodelled, ["the field `spec.orbit`"]);
    // And one that cannot be read is no reason not to see the pod.
    wire["spec"]["tolerations"] = json!([{"key": "a", "operator": "Perhaps"}]);
    eyes.applied(Watched::Pod, &wire);
    let demand = &eyes.view().pods.get(&key("a")).unwrap().fit.demand;
    assert!(demand.unmodelled.iter().any(|it| it.starts_with("spec.tolerations[0]")));
    assert!(eyes.view().unreadable.is_empty());
}

#[test]
fn namespaces_reach_the_pods_that_came_before_them() {
    let mut eyes = Eyes::default();
    eyes.applied(Watched::Pod, &pod("a", None));
    let mut namespace = json!({"metadata": meta("web")});
    namespace["metadata"]["labels"] = json!({"team": "web"});
    eyes.applied(Watched::Namespace, &namespace);
    let seen = |eyes: &Eyes| eyes.view().pods.get(&key("a")).unwrap().clone();
    assert_eq!(seen(&eyes).fit.namespace.labels["team"], "web");
    assert!(!seen(&eyes).drain.namespace_terminating);
    namespace["metadata"]["deletionTimestamp"] = "2026-11-16T06:00:00Z".into();
    eyes.applied(Watched::Namespace, &namespace);
    assert!(seen(&eyes).drain.namespace_terminating);
}

fn claim() -> Value {
    let mut claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta("c"),
        "spec": {
            "nodeClassRef": {"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "web"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
            "expireAfter": "Never",
            "resources": {"requests": {"cpu": "1500m"}},
        },
        "status": {
            "providerID": "aws:///eu-central-1a/i-0123", "nodeName": "n",
            "imageID": "ami-0123456789abcdef0",
            "conditions": [{"type": "Launched", "status": "True",
                "lastTransitionTime": "2026-11-16T06:01:00Z"},
                {"type": "Registered", "status": "Unknown"}],
        },
    });
    claim["metadata"]["labels"] = json!({"karpenter.sh/nodepool": "web"});
    claim["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    claim["metadata"]["annotations"] = json!({"nodemolt.dev/successor-of": "uid-old"});
    claim
}

#[test]
fn a_claim_says_how_far_its_machine_has_come() {
    let mut eyes = Eyes::default();
    eyes.applied(Watched::Claim, &claim());
    let seen = &eyes.view().claims["c"];
    assert_eq!(seen.machine.as_ref().unwrap().0, "i-0123");
    assert_eq!(seen.stages.keys().copied().collect::<Vec<_>>(), [Stage::Launched]);
    assert!(seen.held && seen.expire_after.is_none() && seen.attempt.is_none());
    assert_eq!(seen.pool.as_deref(), Some("web"));
    assert_eq!(seen.successor_of.as_deref(), Some("uid-old"));
}

#[test]
fn what_cannot_be_read_is_named_and_not_shown_and_comes_back() {
    let mut eyes = Eyes::default();
    let name = ObjectName { kind: Kind::Claim, namespace: String::new(), name: "c".to_owned() };
    for (pointer, broken) in [
        ("/metadata/annotations", json!({"nodemolt.dev/attempt": "{"})),
        ("/spec/requirements", json!([{"key": "a", "operator": "Perhaps"}])),
        ("/spec/requirements", json!("none")),
        ("/metadata/uid", Value::Null),
        ("/status/imageID", json!("no image")),
    ] {
        eyes.applied(Watched::Claim, &claim());
        assert!(eyes.view().unreadable.is_empty() && eyes.view().claims.contains_key("c"));
        let mut object = claim();
        *object.pointer_mut(pointer).unwrap() = broken;
        eyes.applied(Watched::Claim, &object);
        assert!(!eyes.view().unreadable[&name].is_empty(), "{pointer}");
        assert!(eyes.view().claims.is_empty(), "its last reading says nothing about now");
    }
    eyes.listed(Watched::Claim, &[], at());
    assert!(eyes.view().unreadable.is_empty());
}

#[test]
fn a_node_knows_its_startup_taints_and_volume_limits_whoever_comes_first() {
    let mut eyes = Eyes::default();
    let mut node = json!({
        "metadata": meta("n"),
        "spec": {"providerID": "aws:///eu-central-1a/i-0123"},
        "status": {"allocatable": {"cpu": "2"}, "nodeInfo": {"kubeletVersion": "v1.35.1",
            "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
            "kubeProxyVersion": "", "machineID": "", "operatingSystem": "", "osImage": "",
            "systemUUID": ""},
            "conditions": [{"type": "Ready", "status": "Unknown"}]},
    });
    node["metadata"]["labels"] = json!({"karpenter.sh/nodepool": "web"});
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": meta("web"),
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "web"},
            "startupTaints": [{"key": "net", "effect": "NoExecute"}], "requirements": [],
        }}},
    });
    let csi = json!({"metadata": meta("n"), "spec": {"drivers": [
        {"name": "ebs.csi.aws.com", "nodeID": "i-0123", "allocatable": {"count": 25}}]}});
    let told = [(Watched::Node, &node), (Watched::Pool, &pool), (Watched::CsiNode, &csi)];
    for first in 0..told.len() {
        for at in 0..told.len() {
            let (of, object) = told[(first + at) % told.len()];
            eyes.applied(of, object);
        }
        let seen = &eyes.view().nodes["n"];
        assert_eq!(seen.fit.startup_taints.len(), 1);
        assert_eq!(seen.fit.volume_limits["ebs.csi.aws.com"], 25);
        assert_eq!(seen.ready, Readiness::Unknown);
        assert_eq!(seen.kubelet.unwrap().minor, 35);
        for (of, object) in told {
            eyes.deleted(of, object);
        }
        assert!(eyes.view().nodes.is_empty() && eyes.view().pools.is_empty());
    }
}

#[test]
fn nothing_that_comes_makes_it_fall_over() {
    let mut eyes = Eyes::default();
    let named = |spec: &Value| {
        json!({"metadata": {"name": "x", "namespace": "y"}, "spec": spec,
        "status": spec})
    };
    let odd = [json!(null), json!(1), json!("x"), json!([]), json!({}), json!({"a": {"b": [1]}})];
    for of in Watched::ALL {
        for it in &odd {
            eyes.applied(of, it);
            eyes.applied(of, &named(it));
            eyes.deleted(of, it);
        }
        eyes.listed(of, &odd, at());
        eyes.deleted(of, &named(&json!({})));
    }
    assert!(eyes.view().unreadable.is_empty(), "{:?}", eyes.view().unreadable);
}

#[test]
fn what_cannot_be_read_is_still_known_by_name_and_version() {
    let mut eyes = Eyes::default();
    let object = |generation: i64| {
        let class = json!({"group": "nodemolt.dev", "kind": "EC2NodeClass", "name": "web"});
        json!({"metadata": {"name": "x", "uid": "uid-x", "generation": generation},
            "spec": {"template": {"spec": {"nodeClassRef": class, "requirements": 7}},
                "amiSelectorTerms": 7, "labelSelectors": 7, "classSelector": 7}})
    };
    let (own, theirs) = (ClassKey::own("x"), "karpenter.k8s.aws".to_owned());
    let subjects = [
        (Watched::OwnClass, Subject::Class(own)),
        (Watched::KarpenterClass, Subject::Class(ClassKey { group: theirs, name: "x".to_owned() })),
        (Watched::Pool, Subject::Pool("x".to_owned())),
        (Watched::DisruptionBudget, Subject::DisruptionBudget("x".to_owned())),
        (Watched::Policy, Subject::Policy("x".to_owned())),
    ];
    for (of, subject) in &subjects {
        eyes.applied(*of, &object(3));
        eyes.applied(*of, &object(4));
        let complaints = &eyes.view().unreadable[&subject.object()];
        assert!(complaints[0].to_string().starts_with("spec."), "{of:?}: {complaints:?}");
        let identity = &eyes.view().subjects[subject];
        assert_eq!((identity.uid.as_str(), identity.generation), ("uid-x", 4));
        assert_eq!(identity.class, Some(ClassKey::own("web")));
    }
    assert_eq!(eyes.view().subjects.len(), subjects.len());
    for (of, _) in subjects {
        eyes.listed(of, &[], at());
    }
    assert!(eyes.view().subjects.is_empty() && eyes.view().unreadable.is_empty());
}
