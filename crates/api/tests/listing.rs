//! What do pods, nodes and workloads ask for, as kubectl prints them and as people write them?

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use nodemolt_api::file::Source;
use nodemolt_api::listing::{Listing, World};
use nodemolt_api::problem::Severity;
use nodemolt_fit::label;
use nodemolt_fit::pack::pack;
use nodemolt_fit::pod::{Demand, Pod};
use nodemolt_fit::pool::Pool;
use nodemolt_fit::taint::{Effect, Taint};
use proptest::prelude::*;

/// The listing of these documents, and the errors in them.
fn listing(text: &str) -> (Listing, Vec<String>) {
    let mut listing = Listing::default();
    let source = Source { name: "all.yaml".to_owned(), text: text.to_owned() };
    let (_, problems) = listing.read(&source);
    let errors = problems.iter().filter(|it| it.severity == Severity::Error);
    let errors = errors.map(ToString::to_string).collect();
    (listing, errors)
}

fn world(text: &str, leaving: &[&str]) -> World {
    let (listing, errors) = listing(text);
    assert!(errors.is_empty(), "{errors:?}");
    let leaving: BTreeSet<String> = leaving.iter().map(|it| (*it).to_owned()).collect();
    World::new(&listing, &leaving, &[], &[]).unwrap()
}

fn only(text: &str) -> Demand {
    let world = world(text, &[]);
    let [Pod { demand, .. }] = world.pods.as_slice() else { panic!("{:?}", world.pods) };
    Demand::clone(demand)
}

/// A pod as a person writes it. `spec` is indented by two.
fn written(spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p, labels: {{app: p}}}}\nspec:\n{spec}")
}

/// The same after an API server has admitted it.
fn admitted(spec: &str) -> String {
    written(spec).replace("{name: p,", "{name: p, uid: u-1,")
}

const PLAIN: &str = "  containers: [{name: c, image: i}]\n";

fn requests(demand: &Demand) -> String {
    demand.requests.iter().fold(String::new(), |mut all, (name, amount)| {
        let _ = write!(all, "{name}={amount} ");
        all
    })
}

#[test]
fn requests_add_up_as_in_kubernetes() {
    for (spec, expected) in [
        ("  containers: [{name: c}]\n", ""),
        // A number needs no quotes.
        (
            "  containers: [{name: c, resources: {requests: {cpu: 2, memory: 1Gi}}}]\n",
            "cpu=2 memory=1Gi ",
        ),
        ("  containers: [{name: c, resources: {requests: {cpu: 0.5}}}]\n", "cpu=500m "),
        // What has a limit and no request, requests its limit; what has both, its request.
        (
            "  containers: [{name: c, resources: {requests: {cpu: 1}, limits: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 1}}}]\n",
            "cpu=1 memory=1Gi nvidia.com/gpu=1 ",
        ),
        // The largest init container, or all the others together.
        (
            "  initContainers: [{name: i, resources: {requests: {cpu: 3}}}]\n  containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {requests: {cpu: 1}}}]\n",
            "cpu=3 ",
        ),
        // A sidecar stays, and counts from its place on.
        (
            "  initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}, {name: i, resources: {requests: {cpu: 3}}}]\n  containers: [{name: a, resources: {requests: {cpu: 1}}}]\n",
            "cpu=4 ",
        ),
        (
            "  overhead: {cpu: 250m}\n  containers: [{name: a, resources: {requests: {cpu: 1}}}]\n",
            "cpu=1250m ",
        ),
        // What is said of the whole pod stands for its containers.
        (
            "  resources: {requests: {cpu: 3}}\n  containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]\n",
            "cpu=3 memory=1Gi ",
        ),
        ("  resources: {limits: {cpu: 3}}\n  containers: [{name: a}]\n", "cpu=3 "),
        (
            "  resources: {limits: {cpu: 3}}\n  containers: [{name: a, resources: {requests: {cpu: 1}}}]\n",
            "cpu=1 ",
        ),
    ] {
        assert_eq!(requests(&only(&written(spec))), expected, "{spec}");
    }
}

#[test]
fn a_container_that_is_being_resized_has_what_it_has() {
    let pod = admitted(
        "  nodeName: one\n  containers: [{name: c, resources: {requests: {cpu: 1}}}]\nstatus: {phase: Running, containerStatuses: [{name: c, ready: true, restartCount: 0, image: i, imageID: i, resources: {requests: {cpu: 3}}}]}\n",
    );
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {allocatable: {cpu: 4, pods: 10}}\n";
    let pending = |reason: &str| {
        format!("conditions: [{{type: PodResizePending, status: 'True', reason: {reason}}}], ")
    };
    let grows = pod.replace("requests: {cpu: 1}}}]", "requests: {cpu: 9}}}]");
    for (pod, conditions, expected) in [
        (&pod, String::new(), "cpu=3 "),
        (&grows, String::new(), "cpu=9 "),
        (&grows, pending("Deferred"), "cpu=9 "),
        // That will never come true, and the scheduler does not count it.
        (&grows, pending("Infeasible"), "cpu=3 "),
    ] {
        let pod = pod.replace("status: {", &format!("status: {{{conditions}"));
        let world = world(&format!("{pod}{node}"), &[]);
        assert_eq!(requests(&world.nodes[0].pods[0].demand), expected, "{conditions}");
    }
}

#[test]
fn the_api_server_adds_tolerations_once() {
    let not_ready = Taint::new("node.kubernetes.io/not-ready", "", Effect::NoExecute);
    assert!(not_ready.tolerated_by(&only(&written(PLAIN)).tolerations));
    // What it has admitted is taken as it is.
    assert!(only(&admitted(PLAIN)).tolerations.is_empty());
}

#[test]
fn daemons_put_up_with_more_than_others() {
    let set = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec:\n  selector: {}\n  template:\n    spec: {hostNetwork: true, containers: [{name: c}]}\n";
    let world = world(set, &[]);
    let tolerations = &world.daemons[0].demand.tolerations;
    for (key, effect, tolerated) in [
        ("node.kubernetes.io/unschedulable", Effect::NoSchedule, true),
        ("node.kubernetes.io/network-unavailable", Effect::NoSchedule, true),
        ("node.kubernetes.io/not-ready", Effect::NoExecute, true),
        ("node.kubernetes.io/not-ready", Effect::NoSchedule, false),
        ("team", Effect::NoSchedule, false),
    ] {
        assert_eq!(Taint::new(key, "", effect).tolerated_by(tolerations), tolerated, "{key}");
    }
}

#[test]
fn what_nothing_here_stands_for_is_said() {
    for (spec, expected) in [
        ("  schedulerName: volcano\n", "the scheduler `volcano`"),
        ("  resourceClaims: [{name: gpu}]\n", "the resource claim `gpu`"),
        (
            "  priorityClassName: gold\n",
            "the PriorityClass `gold`, which is not in the files: add what `kubectl get priorityclasses -o yaml` prints",
        ),
        (
            "  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]\n",
            "the claim `c`, which is not in the files: add what `kubectl get pvc -A -o yaml` prints",
        ),
        ("  volumes: [{name: v, rbd: {monitors: [a], image: i}}]\n", "the inline rbd volume `v`"),
        (
            "  tolerations: [{key: a, operator: Gt, value: '5'}]\n",
            "a toleration with the operator Gt",
        ),
        ("  workloadRef: {name: w, podGroup: g}\n", "the field `spec.workloadRef`"),
        // What an API server has admitted is not for a person to correct.
        (
            "  tolerations: [{key: a, effect: NoNonsense}]\n",
            "spec.tolerations[0].effect: `NoNonsense` is not an effect of a taint",
        ),
        (
            "  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: cores, operator: Gt, values: [abc]}]}}]}}\n",
            "the preference for cores Gt abc",
        ),
    ] {
        let demand = only(&admitted(&format!("{spec}{PLAIN}")));
        assert_eq!(demand.unmodelled, [expected], "{spec}");
    }
    let asks = |resource: &str| {
        admitted(&format!(
            "  containers: [{{name: c, resources: {{requests: {{cpu: 1, {resource}: 1}}}}}}]\n"
        ))
    };
    let class = |version: &str| {
        format!(
            "---\napiVersion: resource.k8s.io/{version}\nkind: DeviceClass\nmetadata: {{name: gpus, uid: u}}\nspec: {{extendedResourceName: example.com/gpu, selectors: []}}\n"
        )
    };
    for (text, devices) in [
        (asks("example.com/gpu"), 0),
        (asks("example.com/gpu") + &class("v1"), 1),
        (asks("example.com/gpu") + &class("v1beta2"), 1),
        (asks("example.com/other") + &class("v1"), 0),
        (asks("deviceclass.resource.kubernetes.io/gpus"), 1),
    ] {
        let unmodelled = only(&text).unmodelled;
        assert_eq!(unmodelled.len(), devices, "{text}\n{unmodelled:?}");
        assert!(unmodelled.iter().all(|it| it.ends_with("the DeviceClass `gpus` gives out")));
    }
    for harmless in [
        "  schedulerName: default-scheduler\n",
        "  hostnameOverride: h\n",
        "  priorityClassName: system-node-critical\n",
    ] {
        let demand = only(&admitted(&format!("{harmless}{PLAIN}")));
        assert!(demand.unmodelled.is_empty(), "{:?}", demand.unmodelled);
    }
}

#[test]
fn with_the_nodes_network_every_port_is_the_nodes() {
    let ports = |spec: &str| {
        let demand = only(&written(spec));
        demand.host_ports.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let container = "containers: [{name: c, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 8081, hostIP: 10.0.0.1, protocol: UDP}]}]\n";
    assert_eq!(ports(&format!("  {container}")), ["10.0.0.1:8081/UDP"]);
    let shared = container.replace("hostPort: 8081", "hostPort: 81");
    assert_eq!(ports(&format!("  hostNetwork: true\n  {shared}")).len(), 2);
}

#[test]
fn workloads_stand_for_the_pods_that_are_missing() {
    let workload = |api: &str, kind: &str, spec: &str| {
        format!(
            "apiVersion: {api}\nkind: {kind}\nmetadata: {{name: w, namespace: shop}}\nspec:\n{spec}  template: {{spec: {{containers: [{{name: c}}]}}}}\n---\n"
        )
    };
    let owned = |name: &str, kind: &str, owner: &str, more: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: shop\n  uid: u-{name}\n  ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: {owner}, uid: u, controller: true}}]\n{more}spec: {{containers: [{{name: c}}]}}\n---\n"
        )
    };
    let gone = "  deletionTimestamp: '2026-11-15T09:00:00Z'\n";
    for (text, expected) in [
        (workload("apps/v1", "Deployment", ""), vec!["w#1"]),
        (workload("apps/v1", "Deployment", "  replicas: 0\n"), vec![]),
        (workload("apps/v1", "Deployment", "  replicas: 2\n"), vec!["w#1", "w#2"]),
        // Its pods are known by the name of a ReplicaSet that is not in the files.
        (
            workload("apps/v1", "Deployment", "  replicas: 2\n")
                + &owned("w-5f-x", "ReplicaSet", "w-5f", ""),
            vec!["w#1", "w-5f-x"],
        ),
        // One that is on its way out is replaced.
        (
            workload("apps/v1", "Deployment", "") + &owned("w-5f-x", "ReplicaSet", "w-5f", gone),
            vec!["w#1"],
        ),
        // Another's pods count for nobody here.
        (
            workload("apps/v1", "Deployment", "") + &owned("o-5f-x", "ReplicaSet", "o-5f", ""),
            vec!["o-5f-x", "w#1"],
        ),
        (
            workload("apps/v1", "StatefulSet", "  replicas: 3\n  ordinals: {start: 5}\n")
                + &owned("w-6", "StatefulSet", "w", ""),
            vec!["w-5", "w-6", "w-7"],
        ),
        (workload("batch/v1", "Job", "  parallelism: 3\n  completions: 2\n"), vec!["w#1", "w#2"]),
        (workload("batch/v1", "Job", "  suspend: true\n"), vec![]),
        (workload("v1", "ReplicationController", "  replicas: 1\n"), vec!["w#1"]),
    ] {
        let world = world(&text, &[]);
        let mut names: Vec<String> = world.pods.iter().map(|it| it.name.to_string()).collect();
        names.sort();
        assert_eq!(names, expected, "{text}");
        assert!(world.pods.iter().all(|it| &*it.namespace.name == "shop"));
    }
}

#[test]
fn a_bound_volume_is_where_its_labels_and_affinity_say() {
    let volume = |labels: &str, affinity: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: pv, labels: {{{labels}}}}}\nspec:\n  csi: {{driver: ebs.csi.aws.com, volumeHandle: vol-1}}\n{affinity}---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: c}}\nspec: {{volumeName: pv}}\n---\n"
        )
    };
    let affinity = "  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.ebs.csi.aws.com/zone, operator: In, values: [a]}]}]}}\n";
    let pod = written(&format!(
        "  volumes: [{{name: v, persistentVolumeClaim: {{claimName: c}}}}]\n{PLAIN}"
    ));
    for (labels, affinity, expected) in [
        ("", "", "everywhere"),
        ("", affinity, "topology.ebs.csi.aws.com/zone In [a]"),
        (
            "failure-domain.beta.kubernetes.io/zone: a__b",
            "",
            "topology.kubernetes.io/zone In [a, b]",
        ),
        (
            "topology.kubernetes.io/zone: a",
            affinity,
            "topology.ebs.csi.aws.com/zone In [a] and topology.kubernetes.io/zone In [a]",
        ),
    ] {
        let demand = only(&(volume(labels, affinity) + &pod));
        let [volume] = demand.volumes.as_slice() else { panic!("{demand:?}") };
        let terms =
            volume.reach.iter().flatten().map(|it| {
                it.labels.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
            });
        let terms: Vec<String> = terms.collect();
        let told = if terms.is_empty() { "everywhere".to_owned() } else { terms.join(" or ") };
        assert_eq!(told, expected, "{labels} {affinity}");
        assert_eq!((&*volume.handle, volume.driver.as_deref()), ("vol-1", Some("ebs.csi.aws.com")));
    }
}

const WAITS: &str = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gp3}\nprovisioner: ebs.csi.aws.com\nvolumeBindingMode: WaitForFirstConsumer\n---\n";

fn waiting_claim(annotations: &str) -> String {
    format!(
        "{WAITS}apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: c, annotations: {{{annotations}}}}}\nspec: {{storageClassName: gp3}}\n---\n"
    )
}

#[test]
fn a_volume_that_is_still_to_be_made_cannot_be_in_two_places() {
    let mounts = "volumes: [{name: v, persistentVolumeClaim: {claimName: c}}, {name: again, persistentVolumeClaim: {claimName: c}}]";
    let pod = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c}}], {mounts}}}\n---\n"
        )
    };
    let deployment = |replicas: usize| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w}}\nspec:\n  replicas: {replicas}\n  template: {{spec: {{containers: [{{name: c}}], {mounts}}}}}\n---\n"
        )
    };
    let shared = "the unbound claim `c`, which it shares with other pods";
    for (text, foreseen) in [
        (pod("p0"), true),
        (deployment(1), true),
        (pod("p0") + &pod("p1"), false),
        (deployment(2), false),
        (pod("p0") + &deployment(1), false),
    ] {
        for pod in world(&(waiting_claim("") + &text), &[]).pods {
            let expected: &[&str] = if foreseen { &[] } else { &[shared] };
            assert_eq!(pod.demand.unmodelled, expected, "{text}");
        }
    }
    // Where the scheduler has decided, all of them are sent there.
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: b}\nstatus: {allocatable: {cpu: 4, pods: 10}}\n---\n";
    let chosen = waiting_claim("volume.kubernetes.io/selected-node: b") + &pod("p0") + &pod("p1");
    for pod in world(&format!("{chosen}{node}"), &[]).pods {
        let terms = pod.demand.volumes[0].reach.as_deref().unwrap();
        assert!(
            terms[0].admits("b", &pod.demand.labels) && !terms[0].admits("a", &pod.demand.labels)
        );
    }
    for pod in world(&chosen, &[]).pods {
        assert_eq!(
            pod.demand.unmodelled,
            [
                "the claim `c`, whose volume is being made for node `b`, which is not in the files: add what `kubectl get nodes -o yaml` prints"
            ]
        );
    }
}

#[test]
fn a_cron_job_stands_for_one_run_unless_one_is_under_way() {
    let cron = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec: {schedule: '* * * * *', jobTemplate: {spec: {parallelism: 3, template: {spec: {containers: [{name: c}]}}}}}\n";
    let job = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: c-123, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: c, uid: u, controller: true}]}\nspec: {parallelism: 2, template: {spec: {containers: [{name: c}]}}}\n";
    let done = format!("{job}status: {{conditions: [{{type: Complete, status: 'True'}}]}}\n");
    let pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: x, uid: u, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: c-123, uid: u, controller: true}]}\nspec: {containers: [{name: c}]}\n";
    for (text, expected) in [
        (cron.to_owned(), 3),
        (cron.replace("{schedule", "{suspend: true, schedule"), 0),
        (format!("{cron}{job}"), 2),
        (format!("{cron}{done}"), 3),
        (format!("{cron}{pod}"), 1),
        (format!("{cron}{job}{pod}"), 2),
    ] {
        assert_eq!(world(&text, &[]).pods.len(), expected, "{text}");
    }
}

#[test]
fn the_labels_of_a_namespace_are_not_guessed() {
    let there = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: q, namespace: o, labels: {a: b}}\nspec: {nodeName: one, containers: [{name: c}]}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {allocatable: {cpu: 4, pods: 10}}\n";
    let namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: o, labels: {t: x}}\n";
    let avoids = |label: &str, selector: &str, names: &str| {
        written(&format!(
            "  affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: kubernetes.io/hostname, labelSelector: {{matchLabels: {{a: {label}}}}}, namespaceSelector: {selector}{names}}}]}}}}\n{PLAIN}"
        ))
    };
    let missing = "the labels of the namespace `o`, which is not in the files";
    for (pod, around, expected) in [
        (avoids("b", "{matchLabels: {t: x}}", ""), there.to_owned(), vec![missing]),
        // Known, not asked, or nobody there whom the term could mean.
        (avoids("b", "{matchLabels: {t: x}}", ""), format!("{there}{namespace}"), vec![]),
        (avoids("b", "{}", ""), there.to_owned(), vec![]),
        (avoids("b", "{matchLabels: {t: x}}", ", namespaces: [o]"), there.to_owned(), vec![]),
        (
            avoids("b", "{matchLabels: {kubernetes.io/metadata.name: o}}", ""),
            there.to_owned(),
            vec![],
        ),
        (avoids("z", "{matchLabels: {t: x}}", ""), there.to_owned(), vec![]),
    ] {
        let world = world(&(pod.clone() + &around), &[]);
        assert_eq!(world.pods[0].demand.unmodelled, expected, "{pod}{around}");
        assert_eq!(world.notes.len(), expected.len(), "{:?}", world.notes);
    }
    // The other way round: one that stays may have to be away from the one that comes.
    let shuns =
        avoids("b", "{matchLabels: {t: x}}", "").replace("spec:\n", "spec:\n  nodeName: one\n");
    let comes = there.replace("nodeName: one, ", "");
    let world = world(&(shuns + &comes), &[]);
    assert_eq!(world.pods[0].demand.unmodelled, [missing]);
}

#[test]
fn who_must_avoid_a_daemon_is_not_sent_where_it_will_come() {
    let set = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec:\n  selector: {}\n  template: {metadata: {labels: {a: d}}, spec: {containers: [{name: c}]}}\n";
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: one, labels: {kubernetes.io/hostname: one, topology.kubernetes.io/zone: z}}\nstatus: {allocatable: {cpu: 4, pods: 10}}\n";
    let pools = [Pool { name: "default".to_owned(), ..Pool::default() }];
    let unforeseen = "the pods of the DaemonSet default/d, which it must avoid within topology.kubernetes.io/zone, on nodes that are still to come";
    for (key, avoided, pools, unmodelled, placed) in [
        // On its own node it is known what will be there.
        (label::HOSTNAME, "d", &pools[..], vec![], false),
        (label::HOSTNAME, "e", &pools[..], vec![], true),
        // Who else gets a node in the zone, and a daemon with it, is not.
        (label::ZONE, "d", &pools[..], vec![unforeseen], false),
        (label::ZONE, "d", &[], vec![], false),
        (label::ZONE, "e", &pools[..], vec![], true),
    ] {
        let pod = written(&format!(
            "  affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: {key}, labelSelector: {{matchLabels: {{a: {avoided}}}}}}}]}}}}\n{PLAIN}"
        ));
        let (listing, errors) = listing(&(pod + set + node));
        assert!(errors.is_empty(), "{errors:?}");
        let world = World::new(&listing, &BTreeSet::new(), pools, &[]).unwrap();
        assert_eq!(world.pods[0].demand.unmodelled, unmodelled, "{key} {avoided}");
        let packing = pack(&world.pods, &world.nodes, &[]);
        assert_eq!(packing.placed.len(), usize::from(placed), "{key} {avoided}");
    }
}

/// The other way round, too: whichever of the two comes first keeps the other away.
#[test]
fn whom_a_daemon_must_avoid_is_not_sent_where_it_will_come() {
    let set = |key: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: d}}\nspec:\n  selector: {{}}\n  template: {{metadata: {{labels: {{a: d}}}}, spec: {{affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: {key}, labelSelector: {{matchLabels: {{app: p}}}}}}]}}}}, containers: [{{name: c}}]}}}}\n"
        )
    };
    let pools = [Pool { name: "default".to_owned(), ..Pool::default() }];
    let unforeseen = "the pods of the DaemonSet default/d, which must avoid it within topology.kubernetes.io/zone, on nodes that are still to come";
    for (key, unmodelled) in [(label::ZONE, vec![unforeseen]), (label::HOSTNAME, vec![])] {
        let (listing, errors) = listing(&(written(PLAIN) + &set(key)));
        assert!(errors.is_empty(), "{errors:?}");
        let world = World::new(&listing, &BTreeSet::new(), &pools, &[]).unwrap();
        assert_eq!(world.pods[0].demand.unmodelled, unmodelled, "{key}");
    }
}

/// Whether the namespace of a daemon is meant is known where its labels are.
#[test]
fn a_daemon_of_a_namespace_that_is_not_meant_is_in_nobodys_way() {
    let set = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, namespace: sys}\nspec:\n  selector: {}\n  template: {metadata: {labels: {a: d}}, spec: {containers: [{name: c}]}}\n";
    let pod = written(&format!(
        "  affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: topology.kubernetes.io/zone, namespaceSelector: {{matchLabels: {{team: x}}}}, labelSelector: {{matchLabels: {{a: d}}}}}}]}}}}\n{PLAIN}"
    ));
    let pools = [Pool { name: "default".to_owned(), ..Pool::default() }];
    for (team, told) in [("x", 1), ("other", 0)] {
        let space = format!(
            "---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: sys, labels: {{team: {team}}}}}\n"
        );
        let (listing, errors) = listing(&(pod.clone() + set + &space));
        assert!(errors.is_empty(), "{errors:?}");
        let world = World::new(&listing, &BTreeSet::new(), &pools, &[]).unwrap();
        assert_eq!(world.pods[0].demand.unmodelled.len(), told, "{team}");
    }
}

/// As `LimitRanger` does: <https://kubernetes.io/docs/concepts/policy/limit-range/>.
#[test]
fn a_limit_range_gives_containers_what_they_do_not_ask_for() {
    let range = |items: &str| {
        format!(
            "---\napiVersion: v1\nkind: LimitRange\nmetadata: {{name: r}}\nspec: {{limits: [{items}]}}\n"
        )
    };
    let asks = |resources: &str| {
        written(&format!("  containers: [{{name: c, resources: {{{resources}}}}}]\n"))
    };
    for (items, resources, expected) in [
        ("{type: Container, defaultRequest: {cpu: 1}}", "", "cpu=1 "),
        ("{type: Container, defaultRequest: {cpu: 1}}", "requests: {cpu: 2}", "cpu=2 "),
        // The limit of a person is a request before anything is given.
        ("{type: Container, defaultRequest: {cpu: 1}}", "limits: {cpu: 2}", "cpu=2 "),
        ("{type: Container, default: {cpu: 3}, defaultRequest: {cpu: 1}}", "", "cpu=1 "),
        ("{type: Container, default: {cpu: 3}}", "", "cpu=3 "),
        ("{type: Container, max: {cpu: 4}}", "", "cpu=4 "),
        ("{type: Container, min: {cpu: 100m}}", "", "cpu=100m "),
        ("{type: Container, min: {cpu: 100m}, max: {cpu: 4}}", "", "cpu=4 "),
        ("{type: Pod, max: {cpu: 4}}", "", ""),
    ] {
        let text = asks(resources) + &range(items);
        assert_eq!(requests(&only(&text)), expected, "{items} {resources}");
        // A pod that exists has it behind it.
        let text = text.replace("{name: p,", "{name: p, uid: u-1,");
        let as_written = only(&text);
        assert_eq!(
            requests(&as_written),
            requests(&only(&asks(resources).replace("{name: p,", "{name: p, uid: u-1,")))
        );
    }
    for (items, resources, wrong) in [
        (
            "{type: Container, min: {cpu: 1}}",
            "requests: {cpu: 500m}",
            "500m is less than the 1 that the LimitRange `r` demands",
        ),
        (
            "{type: Container, max: {cpu: 1}}",
            "limits: {cpu: 2}",
            "2 is more than the 1 that the LimitRange `r` allows",
        ),
        (
            "{type: Container, default: {cpu: 1}}",
            "requests: {cpu: 2}",
            "2 is more than the limit of 1 that the LimitRange `r` gives it",
        ),
    ] {
        let (listing, errors) = listing(&(asks(resources) + &range(items)));
        assert!(errors.is_empty(), "{errors:?}");
        let problems = World::new(&listing, &BTreeSet::new(), &[], &[]).unwrap_err();
        assert!(problems.iter().any(|it| it.to_string().contains(wrong)), "{problems:?}");
    }
}

#[test]
fn a_pod_without_containers_is_a_mistake_of_whoever_wrote_it() {
    for text in [
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {}, template: {spec: {containers: []}}}\n",
    ] {
        let (listing, errors) = listing(text);
        assert!(errors.is_empty(), "{errors:?}");
        let problems = World::new(&listing, &BTreeSet::new(), &[], &[]).unwrap_err();
        assert!(problems[0].to_string().contains("containers: is missing"), "{problems:?}");
    }
}

#[test]
fn what_an_api_server_would_refuse_is_told_with_its_value() {
    let resources =
        |it: &str| format!("  containers: [{{name: c, image: i, resources: {{{it}}}}}]\n");
    let with = |it: &str| format!("{PLAIN}{it}\n");
    let spread = "topologyKey: z, maxSkew: 1, whenUnsatisfiable";
    for (spec, expected) in [
        (
            resources("requests: {cpu: 2}, limits: {cpu: 1}"),
            "requests.cpu: `2` is more than the limit, `1`",
        ),
        (resources("requests: {memory: -1Gi}"), "requests.memory: `-1Gi` is negative"),
        (resources("requests: {cpus: 1}"), "requests.cpus: `cpus` is not a resource of containers"),
        (
            resources("limits: {nvidia.com/gpu: 0.5}"),
            "limits[nvidia.com/gpu]: `0.5` is not a whole number",
        ),
        (
            resources("requests: {nvidia.com/gpu: 1}"),
            "requests[nvidia.com/gpu]: nvidia.com/gpu cannot be overcommitted",
        ),
        (
            resources("requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}"),
            "requests[nvidia.com/gpu]: `1` is not the limit, `2`",
        ),
        (
            "  containers: [{name: c, ports: [{containerPort: 80, hostPort: 99999}]}]\n".to_owned(),
            "spec.containers[0].ports[0].hostPort: `99999` is not a port",
        ),
        (
            "  containers: [{name: c}, {name: c}]\n".to_owned(),
            "containers[1].name: `c` is the name of another container",
        ),
        (
            with("  tolerations: [{key: a, operator: Exists, value: b}]"),
            "tolerations[0].value: `b` is not looked at",
        ),
        (
            with(&format!(
                "  topologySpreadConstraints: [{{{spread}: ScheduleAnyway, minDomains: 2}}]"
            )),
            "topologySpreadConstraints[0].minDomains: `2` means nothing",
        ),
        (
            with(&format!(
                "  topologySpreadConstraints: [{{{spread}: DoNotSchedule}}, {{{spread}: DoNotSchedule}}]"
            )),
            "topologySpreadConstraints[1]: `z` with `DoNotSchedule` is written twice",
        ),
        (
            with(&format!(
                "  topologySpreadConstraints: [{{{spread}: DoNotSchedule, matchLabelKeys: [a]}}]"
            )),
            "topologySpreadConstraints[0].matchLabelKeys: means nothing",
        ),
        (
            with(
                "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}",
            ),
            "nodeSelectorTerms: is empty",
        ),
        (
            with(
                "  affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, podAffinityTerm: {topologyKey: z}}]}}",
            ),
            "preferredDuringSchedulingIgnoredDuringExecution[0].weight: `0` is no weight",
        ),
    ] {
        let (listing, errors) = listing(&written(&spec));
        assert!(errors.is_empty(), "{errors:?}");
        let problems = World::new(&listing, &BTreeSet::new(), &[], &[]).unwrap_err();
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|it| it.contains(expected)), "{expected}: {told:?}");
        assert!(problems.iter().all(|it| it.hint.is_some()), "{problems:?}");
    }
    // What exists was admitted: nobody is told to correct it.
    let more = "requests: {cpu: 2}, limits: {cpu: 1}";
    assert!(only(&admitted(&resources(more))).unmodelled.is_empty());
    // An API server takes it, and half a byte was hardly meant.
    let odd = world(&written(&resources("requests: {memory: 512m}")), &[]);
    assert!(
        odd.notes[0].ends_with("`512m` is a fraction of a byte; did you mean `512Mi`?"),
        "{:?}",
        odd.notes
    );
}

#[test]
fn a_kind_that_was_misspelt_is_not_lost() {
    for (kind, expected) in [
        ("apiVersion: apps/v1\nkind: Deploymnet\n", "kind: `Deploymnet` is not a kind of apps/v1"),
        ("apiVersion: v1\nkind: pod\n", "kind: `pod` is not a kind of v1"),
        ("apiVersion: v1\nkind: Deployment\n", "apiVersion: `v1` is not a version of Deployment"),
        (
            "apiVersion: app/v1\nkind: Deployment\n",
            "apiVersion: `app/v1` is not a version of Deployment",
        ),
        (
            "apiVersion: karpenter.sh/v1\nkind: NodePol\n",
            "kind: `NodePol` is not a kind of karpenter.sh",
        ),
    ] {
        let (_, errors) = listing(&format!("{kind}metadata: {{name: a}}\n"));
        assert!(errors.len() == 1 && errors[0].contains(expected), "{errors:?}");
    }
    // A kind that makes pods is told of by itself.
    let (read, _) = listing(
        "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{image: i}]}}}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n",
    );
    assert_eq!(read.makers.keys().collect::<Vec<_>>(), ["Service of serving.knative.dev/v1"]);
    assert_eq!(read.ignored.keys().collect::<Vec<_>>(), ["Service"]);
    // Somebody else's kind may have such a name.
    for kind in [
        "batch.volcano.sh/v1alpha1\nkind: Job\n",
        "v1\nkind: Secret\n",
        "example.com/v1\nkind: Pods\n",
    ] {
        let (_, errors) = listing(&format!("apiVersion: {kind}metadata: {{name: a}}\n"));
        assert!(errors.is_empty(), "{errors:?}");
    }
    let unlike = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: e}}, spec: {containers: [{name: c}]}}}\n";
    let (_, errors) = listing(unlike);
    assert!(
        errors[0].ends_with("spec.selector.matchLabels.app: is `d`, and the template has `e`"),
        "{errors:?}"
    );
}

/// A list may say of what it is before its items or after them, or leave it to them.
#[test]
fn items_of_a_list_are_read_as_if_each_stood_alone() {
    let spec =
        "spec: {nodeSelector: {a: b}, containers: [{name: c, resources: {requests: {cpu: 1}}}]}";
    let bare = |name: &str| format!("metadata: {{name: {name}, uid: u-{name}}}\n  {spec}\n");
    let whole = |name: &str| format!("apiVersion: v1\n  kind: Pod\n  {}", bare(name));
    let alone = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, uid: u-{name}}}\n{spec}\n---\n"
        )
    };
    let expected = world(&(alone("a") + &alone("b") + &alone("c")), &[]).pods;
    assert_eq!(expected.len(), 3);
    let items = |item: &dyn Fn(&str) -> String| {
        format!("items:\n- {}- {}- {}", item("a"), item("b"), item("c"))
    };
    let anchored = items(&whole).replacen("{a: b}", "&selector {a: b}", 1).replacen(
        "nodeSelector: {a: b}",
        "nodeSelector: *selector",
        1,
    );
    for text in [
        format!("apiVersion: v1\nkind: List\n{}", items(&whole)),
        format!("apiVersion: v1\n{}kind: List\n", items(&whole)),
        format!("apiVersion: v1\nkind: PodList\n{}", items(&bare)),
        format!("apiVersion: v1\n{}kind: PodList\n", items(&bare)),
        // An item may refer to the one before it.
        format!("apiVersion: v1\n{anchored}kind: List\n"),
        // A list of lists.
        format!(
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - {}- {}- {}",
            whole("a").replace("\n  ", "\n    "),
            whole("b"),
            whole("c")
        ),
    ] {
        assert_eq!(world(&text, &[]).pods, expected, "{text}");
    }
    // What is wrong is told by its place in the list, wherever it stands.
    let wrong = items(&whole).replace("name: c, uid: u-c", "name: 3, uid: u-c");
    for text in [
        format!("kind: List\napiVersion: v1\n{wrong}"),
        format!("x: &a b\napiVersion: v1\n{wrong}kind: List\n"),
    ] {
        let (_, errors) = listing(&text);
        let expected =
            "all.yaml:14:20: items[2].metadata.name: expected a string, found the number `3`";
        assert_eq!(errors.first().map(String::as_str), Some(expected), "{text}");
    }
    let (_, errors) = listing(&format!("apiVersion: v1\n{}kind: Pods\n", items(&whole)));
    assert!(errors[0].contains("kind: there are items, and this is no List"), "{errors:?}");
}

/// Karpenter's taint is there before its labels are.
#[test]
fn a_node_that_karpenter_has_not_met_yet_is_not_set_up() {
    let node = |taint: &str| {
        format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: one, uid: u}}\nspec: {{taints: [{{key: {taint}, effect: NoExecute}}]}}\nstatus: {{allocatable: {{cpu: 4, pods: 10}}}}\n"
        )
    };
    for (taint, placed) in [("karpenter.sh/unregistered", 1), ("example.com/other", 0)] {
        let world = world(&(written(PLAIN) + &node(taint)), &[]);
        assert_eq!(pack(&world.pods, &world.nodes, &[]).placed.len(), placed, "{taint}");
    }
}

/// kube-scheduler says in the status that an extended resource was a device.
#[test]
fn who_was_given_a_device_is_not_foreseen() {
    let pod = admitted(
        "  containers: [{name: c, resources: {requests: {example.com/gpu: 1}}}]\nstatus: {extendedResourceClaimStatus: {resourceClaimName: x, requestMappings: []}}\n",
    );
    let what = "the device that it was given (status.extendedResourceClaimStatus)";
    assert_eq!(only(&pod).unmodelled, [what]);
}

#[test]
fn what_a_person_misspells_is_an_error_and_what_a_newer_kubernetes_says_is_not() {
    let (_, errors) = listing(&written(&format!("  nodeSelectr: {{a: b}}\n{PLAIN}")));
    assert_eq!(errors, ["all.yaml:5:3: spec.nodeSelectr: unknown field"]);
    let (_, errors) = listing(&admitted(&format!("  brandNew: {{a: b}}\n{PLAIN}")));
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn a_long_listing_is_read_to_its_end() {
    // Longer than a file of classes may be: a live pod has some kilobytes.
    let padding = "x".repeat(4000);
    let mut text = "apiVersion: v1\nkind: PodList\nitems:\n".to_owned();
    for at in 0..1500 {
        let _ = write!(
            text,
            "- metadata: {{name: p{at}, uid: u{at}, annotations: {{a: {padding}}}}}\n  apiVersion: v1\n  kind: Pod\n  spec: {{containers: [{{name: c}}]}}\n"
        );
    }
    assert!(text.len() > nodemolt_api::file::FILE_BYTES_MAX);
    assert_eq!(world(&text, &[]).pods.len(), 1500);
}

const SEED: &str = include_str!("listing/everything.yaml");

#[test]
fn everything_there_is_can_be_read() {
    let world = world(SEED, &["node-a"]);
    assert_eq!(world.nodes.len(), 2);
    assert!(world.pods.iter().any(|it| &*it.name == "web-7-x" && it.demand.spread.len() == 1));
}

proptest! {
    /// Whatever stands in a file, the answer is objects or problems.
    #[test]
    fn no_text_makes_it_fall_over(
        at in 0..SEED.len(),
        length in 0_usize..60,
        junk in prop_oneof![
            Just(String::new()), Just("-1".to_owned()), Just("[]".to_owned()), Just("{}".to_owned()),
            Just("null".to_owned()), Just("99999999999999999999".to_owned()), Just("é\u{1F980}".to_owned()),
            Just("!!binary x".to_owned()), Just("\"\"".to_owned()), "[ -~]{0,12}",
        ],
    ) {
        let (mut start, mut end) = (at, (at + length).min(SEED.len()));
        while !SEED.is_char_boundary(start) { start -= 1; }
        while !SEED.is_char_boundary(end) { end += 1; }
        let text = format!("{}{junk}{}", &SEED[..start], &SEED[end..]);
        let (listing, _) = listing(&text);
        let leaving = BTreeSet::from(["node-a".to_owned()]);
        let _ = World::new(&listing, &leaving, &[], &[]);
    }
}

#[test]
fn a_volume_that_is_made_for_each_copy_is_one_for_each() {
    let class = |more: &str| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: gp3}}\nprovisioner: {more}\nvolumeBindingMode: WaitForFirstConsumer\n"
        )
    };
    let scratch = "ephemeral: {volumeClaimTemplate: {spec: {storageClassName: gp3, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}";
    let deployment = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w}}\nspec:\n  replicas: 9\n  selector: {{}}\n  template: {{spec: {{containers: [{{name: c}}], volumes: [{{name: scratch, {scratch}}}]}}}}\n"
    );
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: w}\nspec:\n  replicas: 9\n  serviceName: w\n  selector: {}\n  volumeClaimTemplates: [{metadata: {name: scratch}, spec: {storageClassName: gp3, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n  template: {spec: {containers: [{name: c}]}}\n".to_owned();
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {allocatable: {cpu: 4, pods: 100}}\n---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: one}\nspec: {drivers: [{name: ebs.csi.aws.com, nodeID: i, allocatable: {count: 5}}]}\n";
    // Not that of the Deployment's pods, whose names nobody knows.
    let strangers = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: w-scratch}\nspec: {volumeName: somewhere}\n";
    for text in [&deployment, &set, &(deployment.clone() + strangers)] {
        let world = world(&format!("{text}{}{node}", class("ebs.csi.aws.com")), &[]);
        let volumes: Vec<_> = world.pods.iter().flat_map(|it| &it.demand.volumes).collect();
        assert!(volumes.iter().all(|it| it.own && it.handle == "scratch"), "{volumes:?}");
        let packing = pack(&world.pods, &world.nodes, &[]);
        assert_eq!(packing.placed.len(), 5, "{text}");
    }
    // Where a driver says how much room it has where, the scheduler asks for that.
    let driver = "---\napiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: local.example.com}\nspec: {storageCapacity: true}\n";
    for (driver, foreseen) in [(driver, false), ("", true)] {
        let world = world(&format!("{set}{}{driver}", class("local.example.com")), &[]);
        assert!(world.pods.iter().all(|it| it.demand.unmodelled.is_empty() == foreseen));
    }
}

#[test]
fn what_is_attached_to_a_node_counts_though_no_pod_has_it() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {allocatable: {cpu: 4, pods: 100}}\n---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: one}\nspec: {drivers: [{name: ebs.csi.aws.com, nodeID: i, allocatable: {count: 2}}]}\n";
    let volume = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec: {{csi: {{driver: ebs.csi.aws.com, volumeHandle: vol-{name}}}}}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: {{volumeName: {name}}}\nstatus: {{phase: Bound}}\n"
        )
    };
    let pod = |name: &str, node: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{node}containers: [{{name: c}}], volumes: [{{name: v, persistentVolumeClaim: {{claimName: {name}}}}}]}}\n"
        )
    };
    let attached = |source: &str, node: &str| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {{name: csi-{}}}\nspec: {{attacher: ebs.csi.aws.com, nodeName: {node}, source: {{{source}}}}}\n",
            source.len() + node.len()
        )
    };
    let text = [
        node.to_owned(),
        volume("runs"),
        volume("comes"),
        volume("left"),
        pod("runs", "nodeName: one, "),
        pod("comes", ""),
    ];
    let text = text.concat();
    for (attachments, placed) in [
        (String::new(), 1),
        (attached("persistentVolumeName: runs", "one"), 1),
        (attached("persistentVolumeName: comes", "one"), 1),
        (attached("persistentVolumeName: left", "one"), 0),
        (attached("persistentVolumeName: left", "another"), 1),
        // Neither says which volume it is.
        (attached("persistentVolumeName: unknown", "one"), 1),
        (attached("inlineVolumeSpec: {}", "one"), 1),
    ] {
        let world = world(&format!("{text}{attachments}"), &[]);
        let packing = pack(&world.pods, &world.nodes, &[]);
        assert_eq!(packing.placed.len(), placed, "{attachments}");
    }
}

#[test]
fn a_term_says_what_the_api_server_lets_it_say() {
    let required = |term: &str| {
        format!(
            "  affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{term}]}}}}}}\n{PLAIN}"
        )
    };
    let named = |values: &str| {
        required(&format!(
            "{{matchFields: [{{key: metadata.name, operator: In, values: {values}}}]}}"
        ))
    };
    let long = format!("[{}.ec2.internal]", ["a"; 60].join("."));
    let cores = |value| {
        required(&format!(
            "{{matchExpressions: [{{key: cores, operator: Gt, values: ['{value}']}}]}}"
        ))
    };
    for (spec, error) in [
        (named("[ip-10-0-0-1.ec2.internal]"), None),
        (named(&long), None),
        (named("[Node_1]"), Some("cannot be the name of a node")),
        (named("[a, b]"), Some("must be the name of one node")),
        (named("[]"), Some("must be the name of one node")),
        (named("[a]").replace("In,", "Exists,"), Some("is not an operator here")),
        (cores("4"), None),
        // It admits no node, and nobody says so.
        (cores("abc"), None),
        (cores("4").replace("Gt", "Above"), Some("is not an operator here")),
    ] {
        let (listing, errors) = listing(&written(&spec));
        assert!(errors.is_empty(), "{errors:?}");
        let world = World::new(&listing, &BTreeSet::new(), &[], &[]);
        let told: Vec<String> =
            world.err().into_iter().flatten().map(|it| it.to_string()).collect();
        match error {
            None => assert!(told.is_empty(), "{spec}: {told:?}"),
            Some(error) => assert!(told.concat().contains(error), "{spec}: {told:?}"),
        }
    }
}

/// "Would this change fit?"
#[test]
fn a_manifest_stands_in_for_the_live_object() {
    let deployment = |meta: &str, replicas: usize, cpu: usize| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w{meta}}}\nspec:\n  replicas: {replicas}\n  selector: {{}}\n  template: {{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}\n"
        )
    };
    let live = |uid: &str, replicas, cpu| deployment(&format!(", uid: {uid}"), replicas, cpu);
    let pod = "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: w-5f-x\n  uid: u-x\n  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: w-5f, uid: u, controller: true}]\nspec: {nodeName: one, containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n";
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: one, uid: u-n}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n";
    let around = format!("{pod}{node}");
    for (text, expected) in [
        // The same object twice.
        (live("u-1", 2, 1) + &live("u-1", 5, 1), Ok((1, 1))),
        // More of the same: what runs counts.
        (live("u-1", 1, 1) + &deployment("", 3, 1), Ok((2, 1))),
        (deployment("", 3, 1) + &live("u-1", 1, 1), Ok((2, 1))),
        // Others: what runs gives way.
        (live("u-1", 1, 1) + &deployment("", 3, 2), Ok((3, 0))),
        (deployment("", 3, 2) + &live("u-1", 1, 1), Ok((3, 0))),
        // Of two clusters, and twice by hand.
        (live("u-1", 1, 1) + &live("u-2", 1, 1), Err("Deployment `w` was read before")),
        (deployment("", 1, 1) + &deployment("", 1, 1), Err("Deployment `w` was read before")),
    ] {
        let (listing, errors) = listing(&format!("{text}{around}"));
        match expected {
            Ok(expected) => {
                assert!(errors.is_empty(), "{errors:?}");
                let world = World::new(&listing, &BTreeSet::new(), &[], &[]).unwrap();
                assert_eq!((world.pods.len(), world.nodes[0].pods.len()), expected, "{text}");
            }
            Err(error) => assert!(errors.concat().contains(error), "{errors:?}"),
        }
    }
}

#[test]
fn a_live_object_that_cannot_be_read_in_full_does_not_stop_the_others() {
    let text = "apiVersion: v1\nkind: Node\nmetadata: {name: odd, uid: u-1}\nspec: {taints: [{key: a, effect: NewEffect}]}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: young, uid: u-2}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: well, uid: u-3}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n---\n";
    let world = world(&format!("{text}{}", admitted(PLAIN)), &[]);
    assert_eq!(world.notes.len(), 2, "{:?}", world.notes);
    let packing = pack(&world.pods, &world.nodes, &[]);
    assert_eq!(format!("{:?}", packing.placed[0].home), "Node(\"well\")");
}

#[test]
fn there_is_an_end_to_the_pods_that_workloads_stand_for() {
    let deployment = |name: &str, replicas: usize| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec: {{replicas: {replicas}, selector: {{}}, template: {{spec: {{containers: [{{name: c}}]}}}}}}\n"
        )
    };
    let set = "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {replicas: 2, serviceName: s, ordinals: {start: 2000000}, selector: {}, template: {spec: {containers: [{name: c}]}}}\n";
    assert_eq!(&*world(set, &[]).pods[1].name, "s-2000001");
    assert!(listing(&deployment("a", 200_001)).1.concat().contains("more than 200000 pods"));
    let (both, errors) = listing(&(deployment("a", 150_000) + &deployment("b", 150_000)));
    assert!(errors.is_empty(), "{errors:?}");
    let told = World::new(&both, &BTreeSet::new(), &[], &[]).unwrap_err();
    assert!(told[0].to_string().contains("300000 pods to be made"), "{told:?}");
}

/// The same where only the pods that run are in the files.
#[test]
fn a_pod_that_its_workload_would_not_make_so_gives_way() {
    let workload = |kind: &str, spec: &str| {
        format!(
            "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: w}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: w}}}}\n  template: {{metadata: {{labels: {{app: w}}}}, spec: {{{spec}containers: [{{name: c, resources: {{requests: {{cpu: 500m}}}}}}]}}}}\n"
        )
    };
    let pod = |kind: &str, owner: &str, labels: &str, spec: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: w-0\n  uid: u-x\n  labels: {{{labels}}}\n  ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: {owner}, uid: u, controller: true}}]\nspec: {{nodeName: one, {spec}}}\n"
        )
    };
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: one, uid: u-n}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n";
    let of_deployment = |labels: &str, spec: &str| pod("ReplicaSet", "w-5f", labels, spec);
    let plain = "containers: [{name: c, resources: {requests: {cpu: 0.5}}}]";
    let injected = "tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}], containers: [{name: c, resources: {requests: {cpu: 500m}}}, {name: proxy, resources: {requests: {cpu: 100m}}}]";
    let larger = "containers: [{name: c, resources: {requests: {cpu: 2}}}]";
    let selecting =
        "nodeSelector: {disk: ssd}, containers: [{name: c, resources: {requests: {cpu: 500m}}}]";
    let own = "app: w, pod-template-hash: 5f";
    // How many need a place, and how many stay.
    for (text, expected) in [
        (workload("Deployment", "") + &of_deployment(own, plain), (1, 1)),
        (workload("Deployment", "") + &of_deployment(own, injected), (1, 1)),
        (workload("Deployment", "") + &of_deployment(own, larger), (2, 0)),
        (workload("Deployment", "") + &of_deployment(own, selecting), (2, 0)),
        (
            workload("Deployment", "nodeSelector: {disk: ssd}, ") + &of_deployment(own, plain),
            (2, 0),
        ),
        (
            workload("Deployment", "nodeSelector: {disk: ssd}, ") + &of_deployment(own, selecting),
            (1, 1),
        ),
        // Not one of its pods, whatever its name.
        (workload("Deployment", "") + &of_deployment("app: other", plain), (2, 1)),
        (workload("StatefulSet", "") + &pod("StatefulSet", "w", "app: w", plain), (1, 1)),
        (workload("StatefulSet", "") + &pod("StatefulSet", "w", "app: w", larger), (2, 0)),
        (workload("ReplicaSet", "") + &pod("ReplicaSet", "w", "app: w", larger), (2, 0)),
    ] {
        let world = world(&format!("{text}{node}"), &[]);
        assert_eq!((world.pods.len(), world.nodes[0].pods.len()), expected, "{text}");
    }
}

/// The value of a label of every pod that is to be packed.
fn labels_of(world: &World, key: &str) -> Vec<String> {
    let of = |it: &Pod| it.demand.labels.get(key).cloned().unwrap_or_default();
    world.pods.iter().map(of).collect()
}

#[test]
fn pods_of_a_job_have_its_name_and_those_of_an_indexed_one_a_number() {
    let template = "template: {spec: {containers: [{name: c, image: i}]}}";
    let job = |meta: &str, spec: &str, status: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j{meta}}}\nspec: {{parallelism: 3, {spec}{template}}}\nstatus: {{{status}}}\n---\n"
        )
    };
    let index = "batch.kubernetes.io/job-completion-index";
    let written = world(&job("", "", ""), &[]);
    for key in ["job-name", "batch.kubernetes.io/job-name"] {
        assert_eq!(labels_of(&written, key), ["j", "j", "j"]);
    }
    let uids = labels_of(&written, "controller-uid");
    assert_eq!(uids, labels_of(&written, "batch.kubernetes.io/controller-uid"));
    assert!(uids[0].contains('#') && uids[0] == uids[2], "{uids:?}");
    assert_eq!(labels_of(&written, index), ["", "", ""]);
    // What a person selects by himself gets none; what lives has them in its template.
    for text in [job("", "manualSelector: true, ", ""), job(", uid: u-j", "", "")] {
        assert_eq!(labels_of(&world(&text, &[]), "job-name"), ["", "", ""]);
    }
    let indexed = "completionMode: Indexed, completions: 9, ";
    assert_eq!(labels_of(&world(&job("", indexed, ""), &[]), index), ["0", "1", "2"]);
    // One runs, and some are done.
    let done = "succeeded: 4, completedIndexes: '0,2-4'";
    let runs = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: j-1-x\n  uid: u-1\n  labels: {batch.kubernetes.io/job-completion-index: '1'}\n  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: u-j, controller: true}]\nspec: {nodeName: one, containers: [{name: c}]}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: one, uid: u-n}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n";
    let text = job(", uid: u-j", indexed, done) + runs;
    assert_eq!(labels_of(&world(&text, &[]), index), ["5", "6"]);
    // A run of a CronJob has a name that nobody knows yet.
    let cron = format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: c}}\nspec: {{schedule: '* * * * *', jobTemplate: {{spec: {{{template}}}}}}}\n"
    );
    assert_eq!(labels_of(&world(&cron, &[]), "job-name"), ["c#"]);
}

#[test]
fn pods_of_a_deployment_have_the_hash_of_their_own_revision() {
    let template = |image: &str, hash: &str| {
        format!(
            "{{metadata: {{labels: {{app: w{hash}}}}}, spec: {{containers: [{{name: c, image: {image}}}]}}}}"
        )
    };
    let deployment = |uid: &str, image: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w{uid}}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: w}}}}\n  template: {}\n---\n",
            template(image, "")
        )
    };
    let set = |hash: &str, revision: u8, image: &str| {
        format!(
            "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata:\n  name: w-{hash}\n  uid: u-{hash}\n  annotations: {{deployment.kubernetes.io/revision: '{revision}'}}\n  ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: w, uid: u, controller: true}}]\nspec:\n  replicas: 0\n  selector: {{matchLabels: {{app: w}}}}\n  template: {}\n---\n",
            template(image, &format!(", pod-template-hash: {hash}"))
        )
    };
    let sets = set("aa", 7, "old") + &set("bb", 8, "new");
    for (text, expected) in [
        // Nobody knows it, and nobody has it.
        (deployment("", "new"), "default#w"),
        (deployment(", uid: u", "new"), "default#w"),
        // That of its template, be it an old one again; what is new has none yet.
        (deployment(", uid: u", "new") + &sets, "bb"),
        (deployment(", uid: u", "old") + &sets, "aa"),
        (deployment(", uid: u", "newest") + &sets, "default#w"),
        (deployment("", "new") + &sets, "bb"),
        (deployment("", "newest") + &sets, "default#w"),
    ] {
        let hashes = labels_of(&world(&text, &[]), "pod-template-hash");
        assert_eq!(hashes, [expected, expected], "{text}");
    }
}

#[test]
fn a_pod_of_a_stateful_set_that_is_being_deleted_is_not_in_its_own_way() {
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, uid: u-db}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: db}}\n  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c}]}}\n---\n";
    let pod = |called: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {called}\n  uid: u-{called}\n  deletionTimestamp: '2026-11-10T00:00:00Z'\n  ownerReferences: [{{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u-db, controller: true}}]\nspec: {{nodeName: one, containers: [{{name: c}}]}}\n---\n"
        )
    };
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: one, uid: u-n}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n";
    let found = world(&format!("{set}{}{}{node}", pod("db-0"), pod("db-1")), &[]);
    let called = |pods: &[Pod]| pods.iter().map(|it| it.name.to_string()).collect::<Vec<_>>();
    assert_eq!(called(&found.pods), ["db-0"]);
    // Nobody comes after the other one.
    assert_eq!(called(&found.nodes[0].pods), ["db-1"]);
    assert!(found.notes.iter().any(|it| it.contains("such as db-0: 1;")), "{:?}", found.notes);
}

#[test]
fn pods_beyond_the_number_that_was_written_give_way() {
    let workload = |kind: &str, replicas: &str| {
        format!(
            "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: w}}\nspec:\n  {replicas}selector: {{matchLabels: {{app: w}}}}\n  template: {{metadata: {{labels: {{app: w}}}}, spec: {{containers: [{{name: c}}]}}}}\n---\n"
        )
    };
    let pod = |called: &str, kind: &str, owner: &str, day: u8, node: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {called}\n  uid: u-{called}\n  creationTimestamp: '2026-11-{day:02}T00:00:00Z'\n  labels: {{app: w}}\n  ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: {owner}, uid: u, controller: true}}]\nspec: {{{node}containers: [{{name: c}}]}}\nstatus: {{phase: Running}}\n---\n"
        )
    };
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: one, uid: u-n}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n";
    let three = |kind: &str, owner: &str| {
        pod("w-2", kind, owner, 3, "nodeName: one, ")
            + &pod("w-1", kind, owner, 4, "nodeName: one, ")
            + &pod("w-0", kind, owner, 2, "")
    };
    // Who is left: waiting, and on the node.
    for (kind, replicas, expected) in [
        ("Deployment", "replicas: 4\n  ", "w#1 w-0 / w-1 w-2"),
        ("Deployment", "replicas: 3\n  ", "w-0 / w-1 w-2"),
        // Who has no node goes first, then the youngest.
        ("Deployment", "replicas: 2\n  ", " / w-1 w-2"),
        ("Deployment", "replicas: 1\n  ", " / w-2"),
        ("Deployment", "replicas: 0\n  ", " / "),
        // Not a word about how many.
        ("Deployment", "", "w-0 / w-1 w-2"),
        ("StatefulSet", "replicas: 2\n  ", "w-0 / w-1"),
    ] {
        let owner = if kind == "Deployment" { ("ReplicaSet", "w-5f") } else { (kind, "w") };
        let text = workload(kind, replicas) + &three(owner.0, owner.1) + node;
        let found = world(&text, &[]);
        let called = |pods: &[Pod]| {
            let mut names: Vec<String> = pods.iter().map(|it| it.name.to_string()).collect();
            names.sort();
            names.join(" ")
        };
        let left = format!("{} / {}", called(&found.pods), called(&found.nodes[0].pods));
        assert_eq!(left, expected, "{kind} {replicas}");
        let told = found.notes.iter().any(|it| it.contains("which of them will go is not known"));
        let guessed =
            kind == "Deployment" && ["2", "1", "0"].iter().any(|it| replicas.contains(*it));
        assert_eq!(told, guessed, "{kind} {replicas}: {:?}", found.notes);
    }
}
