//! Which lives break which law?
//!
//! One for each place in the laws that can complain, and more where it complains of several things.

use jiff::SignedDuration;
use nodemolt_sim::laws::Law;
use nodemolt_sim::trace::{Actor, Fact, ReplicaState};
use serde_json::json;

use crate::tale::{NEW, OLD, Tale, US, begun, latest, sound};

/// What happens, which law that breaks, and the life up to there.
pub(crate) type Case = (&'static str, Law, fn() -> Tale);

pub(crate) const CASES: &[Case] = &[
    ("a node that should go is forgotten", Law::Partition, || {
        let mut tale = begun();
        tale.turn(&["n1", "n2"], |it| it.waits = vec![Tale::waits("n2")]);
        tale
    }),
    ("a node starts and waits", Law::Partition, || {
        let mut tale = begun();
        tale.turn(&["n1"], |it| {
            it.starts = vec!["n1".to_owned()];
            it.waits = vec![Tale::waits("n1")];
        });
        tale
    }),
    ("a node waits for nothing that has a name", Law::Partition, || {
        let mut tale = begun();
        tale.turn(&["n1"], |it| it.waits = vec![("n1".to_owned(), Vec::new())]);
        tale
    }),
    ("nothing is said of a node that runs another image than the newest", Law::Partition, || {
        let mut tale = latest();
        for _ in 0..2 {
            tale.turn(&[], |_| ());
            tale.wait(240);
        }
        tale
    }),
    ("nothing is said of a node that a person asked to replace", Law::Partition, || {
        let mut tale = begun();
        let asked = tale.now.to_string();
        tale.change(Actor::Person, "Node", "/n2", |it| {
            it["metadata"]["annotations"] = json!({"nodemolt.dev/upgrade-requested-at": asked});
        });
        for _ in 0..2 {
            tale.turn(&[], |_| ());
            tale.wait(240);
        }
        tale
    }),
    ("a node waits for a pod that is not there", Law::Partition, || {
        let mut tale = begun();
        tale.turn(&["n1"], |it| {
            it.waits = vec![Tale::waits_for("n1", "NoPlace", "Pod", "nobody")];
        });
        tale
    }),
    ("the ledger is written although all is in sync", Law::Quiet, || {
        let mut tale = sound();
        tale.ledger(&[], 1);
        tale.turn(&[], |_| ());
        tale
    }),
    ("a status is written again and again", Law::Quiet, || {
        let mut tale = sound();
        for round in 0..2 {
            tale.change(US, "NodePool", "/web", |it| it["status"] = json!({"nodes": round}));
            tale.turn(&[], |_| ());
        }
        tale
    }),
    ("an act is asked for although all is in sync", Law::Quiet, || {
        let mut tale = sound();
        tale.turn(&[], |it| it.commands = 1);
        tale
    }),
    ("decisions go to and fro", Law::Quiet, || {
        let mut tale = begun();
        tale.goes_to_and_fro();
        tale.turn(&[], |_| ());
        tale
    }),
    ("a node is granted that nobody knows enough of", Law::Doubt, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.turn(&[], |it| it.unknown = vec!["n1".to_owned()]);
        tale.record("n1", "Cancelled");
        tale.ledger(&[], 1);
        tale
    }),
    ("a node is cordoned that nobody knows enough of", Law::Doubt, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.turn(&["n1"], |it| it.under_way = vec!["n1".to_owned()]);
        tale.launched();
        tale.joined();
        tale.turn(&[], |it| it.unknown = vec!["n1".to_owned()]);
        tale.wait(61);
        tale.ledger(&[], 1);
        tale.cordoned("n1");
        tale.settle();
        tale
    }),
    ("a node is granted by a replica that was answered nothing", Law::Doubt, || {
        let mut tale = begun();
        tale.replica(0, ReplicaState::Started);
        tale.replica(0, ReplicaState::Leads);
        tale.answered("Parameters", false);
        tale.ledger(&[], 2);
        tale.ledger(&["n1"], 2);
        tale.ledger(&[], 2);
        tale
    }),
    ("a node is granted that runs what it should", Law::Doubt, || {
        let mut tale = latest();
        tale.answered("Parameters", false);
        tale.ledger(&["n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("two nodes are granted, and there is one slot", Law::Budget, || {
        let mut tale = begun();
        tale.ledger(&["n1", "n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the old node went first, and its successor is not there yet", Law::Budget, || {
        granted_after_the_end_of("DeleteFirst", false)
    }),
    ("a second node is granted after the ledger was rebuilt", Law::Budget, || {
        let mut tale = rebuilt();
        tale.ledger(&["n1", "n2"], 2);
        tale.ledger(&[], 2);
        tale
    }),
    ("a node is granted while another is not ready", Law::Budget, || {
        let mut tale = begun();
        tale.node(Actor::Kubelet, "n2", false, &json!([]));
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the selected nodes are to stay", Law::Budget, || {
        let mut tale = begun();
        let spec = json!({"labelSelectors": [{"team": "shop"}], "minAvailable": "70%"});
        let budget = json!({"metadata": {"name": "most"}, "spec": spec});
        tale.store(Actor::Person, "NodeDisruptionBudget", "", budget);
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the pool allows none at this time of the day", Law::Budget, || {
        let mut tale = begun();
        let budgets = json!([{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}]);
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["disruption"]["budgets"] = budgets;
        });
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the class has used up its share of processors", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] = json!({"concurrency": "40%", "unit": "CPU"});
        });
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&["n1", "n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("a share grew with its own surge", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] = json!({"concurrency": 9});
        });
        tale.wait(120);
        tale.granted("n1");
        tale.launched();
        tale.joined();
        // Half of three is one, although there are four now.
        tale.ledger(&["n1", "n2"], 1);
        tale.settle();
        tale
    }),
    ("the window is closed", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] =
                json!({"windows": {"allow": [{"from": "22:00", "to": "05:00"}]}});
        });
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the class rests", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] = json!({"cooldown": "1h"});
        });
        tale.wait(120);
        tale.granted("n1");
        tale.record("n1", "Done");
        tale.ledger(&[], 1);
        tale.wait(1200);
        tale.ledger(&["n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("the one before it went first and nobody followed", Law::Budget, || unfollowed("web")),
    ("one of another pool went first and its place in the slot is empty", Law::Budget, || {
        unfollowed("batch")
    }),
    ("everything is paused", Law::Budget, || {
        let mut tale = begun();
        tale.paused();
        tale.change(US, "DisruptionLedger", "/cluster", |it| {
            it["status"]["grants"] = json!([{"holder": "claim-n1", "nodeName": "n1", "kind": "Replacement", "epoch": 1}]);
        });
        tale.change(US, "DisruptionLedger", "/cluster", |it| it["status"]["grants"] = json!([]));
        tale
    }),
    ("the ledger is locked", Law::Budget, || {
        let mut tale = begun();
        tale.change(US, "DisruptionLedger", "/cluster", |it| {
            it["status"]["lock"] = json!({"id": "lock-1", "reason": "a record is broken"});
        });
        tale.change(US, "DisruptionLedger", "/cluster", |it| {
            it["status"]["grants"] = json!([{"holder": "claim-n1", "nodeName": "n1", "kind": "Replacement", "epoch": 1}]);
        });
        tale.change(US, "DisruptionLedger", "/cluster", |it| it["status"]["grants"] = json!([]));
        tale
    }),
    ("the class has used up its number of nodes", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] = json!({"concurrency": 1});
        });
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&["n1", "n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("a budget allows one of the selected nodes to be away", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["disruption"]["budgets"] = json!([{"nodes": "100%"}]);
        });
        let spec = json!({"labelSelectors": [{"team": "shop"}], "maxUnavailable": 1});
        let budget = json!({"metadata": {"name": "one"}, "spec": spec});
        tale.store(Actor::Person, "NodeDisruptionBudget", "", budget);
        tale.wait(120);
        tale.ledger(&["n1"], 1);
        tale.ledger(&["n1", "n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("a budget was lowered a moment ago, and both would have said no", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["disruption"]["budgets"] = json!([{"nodes": "0"}]);
        });
        tale.wait(120);
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["disruption"]["budgets"] = json!([{"nodes": "0%"}]);
        });
        tale.wait(2);
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("an annotation was touched a moment ago, and there is one slot", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["metadata"]["annotations"] = json!({"example.com/touched": "1"});
        });
        tale.wait(2);
        tale.ledger(&["n1", "n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("a person's node goes, and a budget that holds people allows no more", Law::Budget, || {
        let mut tale = begun();
        tale.budget(&json!(["Controller", "People"]));
        tale.grants(&[("n2", "Replacement")]);
        tale.grants(&[("n2", "Replacement"), ("n1", "Delete")]);
        tale.ledger(&[], 1);
        tale
    }),
    ("another node is away, and a budget that holds people allows no more", Law::Budget, || {
        let mut tale = begun();
        tale.budget(&json!(["People"]));
        tale.node(Actor::Kubelet, "n2", false, &json!([]));
        tale.wait(120);
        tale.grants(&[("n1", "Delete")]);
        tale.ledger(&[], 1);
        tale
    }),
    ("a machine ends without a grant, and a budget holds people", Law::Budget, || {
        let mut tale = begun();
        tale.budget(&json!(["People"]));
        tale.end_claim(Actor::Person, "n1");
        tale.gone("web-n1");
        tale.tell(US, Fact::TerminateAsked { machine: "i-n1".to_owned() });
        tale.machine("n1", OLD, "terminated");
        tale.remove(US, "NodeClaim", "/n1");
        tale.remove(US, "Node", "/n1");
        tale
    }),
    ("a budget that holds people only leaves us the one slot", Law::Budget, || {
        let mut tale = begun();
        tale.budget(&json!(["People"]));
        tale.ledger(&["n1", "n2"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("a protected node is granted", Law::Protection, || {
        let mut tale = begun();
        tale.annotated("Node", "/n1", "karpenter.sh/do-not-disrupt", "true");
        tale.ledger(&["n1"], 1);
        tale.ledger(&[], 1);
        tale
    }),
    ("a node is cordoned whose claim is protected meanwhile", Law::Protection, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.annotated("NodeClaim", "/n1", "karpenter.sh/do-not-disrupt", "24h");
        tale.cordoned("n1");
        tale.settle();
        tale
    }),
    ("a pod is evicted from a node that is protected meanwhile", Law::Protection, || {
        let mut tale = drained_until_eviction();
        tale.annotated("NodeClaim", "/n1", "karpenter.sh/do-not-disrupt", "true");
        tale.emptied();
        tale.settle();
        tale
    }),
    ("a node ends that is protected meanwhile", Law::Protection, || {
        let mut tale = drained_until_eviction();
        tale.emptied();
        tale.change(Actor::Person, "Node", "/n1", |it| {
            it["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = json!("true");
        });
        tale.wait(120);
        tale.ended();
        tale.rested();
        tale
    }),
    ("a node is cordoned in a pause", Law::Budget, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.paused();
        tale.wait(31);
        tale.cordoned("n1");
        tale.resumed();
        tale.settle();
        tale
    }),
    ("a node is cordoned while the ledger is locked", Law::Budget, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.change(US, "DisruptionLedger", "/cluster", |it| {
            it["status"]["lock"] = json!({"id": "lock-1", "reason": "a record is broken"});
        });
        tale.wait(31);
        tale.cordoned("n1");
        tale.settle();
        tale
    }),
    ("a cordon that is slow was sent in a pause", Law::Budget, || cordoned_late(29)),
    ("a node is cordoned without a grant", Law::Budget, || {
        let mut tale = begun();
        tale.record("n1", "Launching");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.emptied();
        tale.ended();
        tale
    }),
    ("the successor is not ready for long enough", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.node(Actor::Kubelet, "s1", false, &json!([]));
        tale.node(Actor::Kubelet, "s1", true, &json!([]));
        tale.wait(10);
        tale.cordoned("n1");
        tale.emptied();
        tale.ended();
        tale
    }),
    ("a node is cordoned for a Replacement that is not there", Law::Succession, || {
        let mut tale = begun();
        tale.ledger(&["n1"], 1);
        tale.cordon("n1");
        tale.change(US, "Node", "/n1", |it| it["spec"]["taints"] = json!([]));
        tale.ledger(&[], 1);
        tale
    }),
    ("the successor has no claim", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.pod("web-n1", None, false);
        tale.cordoned("n1");
        tale.settle();
        tale
    }),
    ("the successor is no node", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.pod("web-n1", None, false);
        tale.cordoned("n1");
        tale.settle();
        tale
    }),
    ("the successor never was ready", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.node(Actor::Kubelet, "s1", false, &json!([]));
        tale.pod("web-n1", None, false);
        tale.cordoned("n1");
        tale.settle();
        tale
    }),
    ("each pod fits somewhere, and all of them do not", Law::Succession, || {
        let mut tale = begun();
        tale.pod("web-too", Some("n1"), true);
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.settle();
        tale
    }),
    ("there is room for the pods of one node, and two are emptied", Law::Succession, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["rollout"] = json!({"concurrency": 2});
        });
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["disruption"]["budgets"] = json!([{"nodes": "100%"}]);
        });
        tale.wait(120);
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.ledger(&["n1", "n2"], 1);
        tale.record("n2", "Draining");
        tale.cordon("n2");
        tale.record("n2", "Skipped");
        tale.change(US, "Node", "/n2", |it| it["spec"]["taints"] = json!([]));
        tale.settle();
        tale
    }),
    ("the successor is not ready any more when it is asked for", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.node(Actor::Kubelet, "s1", false, &json!([]));
        tale.wait(20);
        tale.cordoned("n1");
        tale.settle();
        tale
    }),
    ("a pod came before it was asked who is there", Law::Succession, || {
        let mut tale = drained_until_eviction();
        tale.emptied();
        tale.other_pod(Some("ReplicaSet"));
        tale.wait(20);
        tale.end_claim(US, "n1");
        tale.remove(Actor::Kubelet, "Pod", "shop/other");
        tale.ended();
        tale
    }),
    ("a machine without a claim is ended while a pod is on its node", Law::Succession, || {
        let mut tale = begun();
        tale.remove(Actor::Person, "NodeClaim", "/n2");
        tale.machine("n2", OLD, "running");
        let Fact::Machine(machine) = &mut tale.steps.last_mut().unwrap().fact else {
            panic!("the last is a machine")
        };
        machine.node = Some("n2".to_owned());
        tale.tell(US, Fact::TerminateAsked { machine: "i-n2".to_owned() });
        tale.machine("n2", OLD, "terminated");
        tale
    }),
    ("a machine is ended while a pod is on its node", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.end_claim(Actor::Person, "n1");
        tale.tell(US, Fact::TerminateAsked { machine: "i-n1".to_owned() });
        tale.emptied();
        tale.ended();
        tale
    }),
    ("the pods that must move do not fit anywhere", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.change(Actor::Kubelet, "Node", "/s1", |it| {
            it["status"]["allocatable"]["cpu"] = json!("500m");
        });
        tale.cordoned("n1");
        tale.emptied();
        tale.ended();
        tale
    }),
    ("a claim ends while a pod is on its node", Law::Succession, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.end_claim(US, "n1");
        tale.emptied();
        tale.ended();
        tale
    }),
    ("a pod that ends with the machine fits nowhere else", Law::Succession, || {
        let mut tale = begun();
        tale.tolerant("web-n1");
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.change(Actor::Kubelet, "Node", "/s1", |it| {
            it["status"]["allocatable"]["cpu"] = json!("500m");
        });
        tale.cordoned("n1");
        tale.settle();
        tale
    }),
    ("two nodes are made where the limit of the pool is for one more", Law::Budget, || {
        let mut tale = begun();
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["spec"]["limits"] = json!({"nodes": "4"});
        });
        tale.wait(120);
        tale.granted("n1");
        tale.launched();
        tale.claim(US, "s2");
        tale.remove(US, "NodeClaim", "/s2");
        tale.settle();
        tale
    }),
    ("one claim has two machines", Law::NoOrphansNoTwins, || {
        let mut tale = sound();
        tale.machine_for("i-twin", "s1", NEW, "running");
        tale
    }),
    ("one token made two machines", Law::NoOrphansNoTwins, || {
        let mut tale = sound();
        tale.machine_for("i-twin", "s1", NEW, "terminated");
        let mut again = tale.steps.last().unwrap().clone();
        let Fact::Machine(machine) = &mut again.fact else { panic!("the last is a machine") };
        "i-second".clone_into(&mut machine.id);
        again.at += SignedDuration::from_secs(1);
        tale.steps.push(again);
        tale
    }),
    ("EC2 made two machines at once and both stay", Law::NoOrphansNoTwins, || {
        let mut tale = sound();
        tale.twin();
        tale
    }),
    ("a machine is left over", Law::NoOrphansNoTwins, || {
        let mut tale = sound();
        tale.machine_for("i-left", "nobody", NEW, "running");
        tale
    }),
    ("a replacement does not end", Law::Settling, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale
    }),
    ("a grant is never given back", Law::Settling, || {
        let mut tale = sound();
        tale.ledger(&["n2"], 1);
        tale
    }),
    ("a drain waits for people, and nobody holds its pod", Law::Settling, || {
        let mut tale = drained_until_eviction();
        tale.change(US, "Replacement", "/claim-n1", |it| {
            it["status"]["drainLimitAction"] = json!("Wait");
        });
        tale
    }),
    ("a node waits behind one that nobody holds", Law::Settling, || {
        let mut tale = held_for_people();
        tale.turn(&["n2"], |it| it.waits = vec![Tale::waits_behind("n2", "n3")]);
        tale.wait(120);
        tale
    }),
    ("nodes went that had to stay, and now none may go", Law::Settling, || {
        let mut tale = begun();
        tale.budget(&json!(["Controller"]));
        tale.change(Actor::Person, "NodeDisruptionBudget", "/one", |it| {
            it["spec"] = json!({"labelSelectors": [{"team": "shop"}], "minAvailable": 2});
        });
        tale.wait(120);
        tale.granted("n1");
        tale.gone("web-n1");
        tale.ended();
        tale.change(US, "Replacement", "/claim-n1", |it| it["status"]["successors"] = json!([]));
        tale.turn(&["n2"], |it| it.waits = vec![Tale::waits("n2")]);
        tale
    }),
    ("a claim is deleted and does not go", Law::Settling, || {
        let mut tale = sound();
        tale.end_claim(Actor::Person, "n2");
        tale
    }),
    ("a node is deleted and does not go", Law::Settling, || {
        let mut tale = sound();
        let now = tale.now.to_string();
        tale.change(Actor::Person, "Node", "/n2", |it| {
            it["metadata"]["deletionTimestamp"] = json!(now);
        });
        tale
    }),
    ("a node waits for what has room", Law::Settling, || {
        let mut tale = sound();
        tale.turn(&["n2"], |it| it.waits = vec![Tale::waits("n2")]);
        tale
    }),
    ("a node waits for a pod that nobody protects", Law::Settling, || {
        let mut tale = sound();
        tale.turn(&["n2"], |it| {
            it.waits = vec![Tale::waits_for("n2", "ProtectedPod", "Pod", "web-n2")];
        });
        tale
    }),
    ("a node waits for a place for a pod, and there is one", Law::Settling, || {
        let mut tale = sound();
        tale.turn(&["n2"], |it| {
            it.waits = vec![Tale::waits_for("n2", "NoPlace", "Pod", "web-n2")];
        });
        tale
    }),
    ("a node waits for a budget that would let its pod go", Law::Settling, || {
        let mut tale = sound();
        let (why, kind) = ("PodDisruptionBudget", "PodDisruptionBudget");
        tale.turn(&["n2"], |it| it.waits = vec![Tale::waits_for("n2", why, kind, "web")]);
        tale
    }),
    ("a node runs another image, and nothing is said of it", Law::Settling, || {
        let mut tale = sound();
        tale.claim_status(Actor::Fate, "n2", "ami-0000000c");
        tale
    }),
    ("an image is too young", Law::Image, || {
        let mut tale = begun();
        tale.image("ami-0000000c", "al2023-v3", 2);
        tale.launching("ami-0000000c");
        tale
    }),
    ("an image is in quarantine", Law::Image, || {
        let mut tale = begun();
        let spec = json!({"version": "v2", "reason": "crashes"});
        let quarantine = json!({"metadata": {"name": "bad"}, "spec": spec});
        tale.store(Actor::Person, "ImageQuarantine", "", quarantine);
        tale.wait(120);
        tale.launched();
        tale
    }),
    ("an image is somebody else's", Law::Image, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["owners"] = json!(["210987654321"]);
        });
        tale.wait(120);
        tale.launched();
        tale
    }),
    ("an image is none of those that are allowed", Law::Image, || {
        let mut tale = begun();
        tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
            it["spec"]["allowedImages"] = json!({"ids": [OLD], "names": ["al2023-v0*"]});
        });
        tale.wait(120);
        tale.launched();
        tale
    }),
    ("an image appeared later, and counts from then", Law::Image, || {
        let mut tale = begun();
        let memory = json!({"image": {"ref": {"id": OLD}}});
        tale.store(US, "AWSImage", "", json!({"metadata": {"name": OLD}, "spec": memory}));
        tale.image("ami-0000000c", "al2023-v3", 20);
        tale.wait(120);
        tale.launching("ami-0000000c");
        tale
    }),
    ("a pod is evicted without its UID", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.evict("web-n1", None, None);
        tale
    }),
    ("a pod gets less than its grace period", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.evict("web-n1", Some("pod-web-n1"), Some(1));
        tale
    }),
    ("an eviction leaves fewer than the budget wants", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.pod("web-n2", Some("n2"), false);
        tale.wait(120);
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale
    }),
    ("a protected pod is evicted", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.change(Actor::Person, "Pod", "shop/web-n1", |it| {
            it["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        });
        tale.wait(120);
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale
    }),
    ("a pod is evicted that is protected in a way that nobody can read", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.annotated("Pod", "shop/web-n1", "karpenter.sh/do-not-evict", "1h");
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale
    }),
    ("a pod is evicted that is protected for a while", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        let now = tale.now.to_string();
        tale.change(Actor::Kubelet, "Pod", "shop/web-n1", |it| {
            it["status"]["startTime"] = json!(now);
        });
        tale.annotated("Pod", "shop/web-n1", "karpenter.sh/do-not-disrupt", "1h");
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale
    }),
    ("a pod is deleted before the drain limit is reached", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.wait(200);
        tale.delete_now(Some("pod-web-n1"), 30, true);
        tale
    }),
    ("a pod is deleted when another has just left", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.other_pod(Some("ReplicaSet"));
        tale.wait(240);
        tale.gone("other");
        tale.wait(120);
        tale.delete_now(Some("pod-web-n1"), 30, true);
        tale
    }),
    ("a pod is deleted long before its node's time is over", Law::Eviction, || {
        let mut tale = begun();
        tale.change(Actor::Person, "NodeClaim", "/n1", |it| {
            it["spec"]["terminationGracePeriod"] = json!("10m");
        });
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.wait(400);
        tale.delete_now(Some("pod-web-n1"), 30, true);
        tale
    }),
    ("a pod is evicted from a node that nobody cordoned", Law::Eviction, || {
        let mut tale = begun();
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale
    }),
    ("a pod is evicted that nothing would start again", Law::Eviction, || {
        let mut tale = begun();
        tale.other_pod(None);
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.cordoned("n1");
        tale.evict("other", Some("pod-other"), None);
        tale
    }),
    ("a pod of a DaemonSet is evicted", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.other_pod(Some("DaemonSet"));
        tale.evict("other", Some("pod-other"), None);
        tale
    }),
    ("a pod is evicted in a pause", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.paused();
        tale.wait(31);
        tale.evict("web-n1", Some("pod-web-n1"), None);
        tale.resumed();
        tale
    }),
    ("an eviction that is slow was sent in a pause", Law::Eviction, || evicted_late(29)),
    ("a pod is deleted without its UID", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.delete(None, 30, true);
        tale
    }),
    ("a pod is deleted at once", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.delete(Some("pod-web-n1"), 0, true);
        tale
    }),
    ("a pod is deleted, and that was not recorded before", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.delete(Some("pod-web-n1"), 30, false);
        tale
    }),
    ("a pod is deleted, and nobody asked for force", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        let (pod, uid) = ("web-n1".to_owned(), Some("pod-web-n1".to_owned()));
        let namespace = "shop".to_owned();
        tale.tell(US, Fact::PodDeleted { namespace, pod, uid, grace_seconds: Some(30) });
        tale
    }),
    ("a pod goes, and nobody said how", Law::Eviction, || {
        let mut tale = drained_until_eviction();
        tale.remove(US, "Pod", "shop/web-n1");
        tale.pod("web-s1", Some("s1"), true);
        tale.wait(1);
        tale.turn(&[], |_| ());
        tale
    }),
    ("a pod ends with its machine, and leaves fewer than its budget wants", Law::Eviction, || {
        let mut tale = bound_to_its_machine();
        tale.pod("web-n2", Some("n2"), false);
        tale.wait(120);
        tale.end_claim(US, "n1");
        tale.machine("n1", OLD, "terminated");
        tale.remove(US, "NodeClaim", "/n1");
        tale
    }),
    ("a protected pod ends with its machine", Law::Eviction, || {
        let mut tale = bound_to_its_machine();
        tale.change(Actor::Person, "Pod", "shop/web-n1", |it| {
            it["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        });
        tale.wait(120);
        tale.end_claim(US, "n1");
        tale.machine("n1", OLD, "terminated");
        tale.remove(US, "NodeClaim", "/n1");
        tale
    }),
    ("we change a pool", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(US, "NodePool", "/web", |it| it["spec"]["weight"] = json!(10));
        tale
    }),
    ("we change the labels of a pool", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(US, "NodePool", "/web", |it| it["metadata"]["labels"] = json!({"a": "b"}));
        tale
    }),
    ("we take a person's request back", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(Actor::Person, "NodePool", "/web", |it| {
            it["metadata"]["annotations"] =
                json!({"nodemolt.dev/upgrade-requested-at": "2026-11-01T00:00:00Z"});
        });
        tale.change(US, "NodePool", "/web", |it| it["metadata"]["annotations"] = json!({}));
        tale
    }),
    ("we take somebody's finalizer off", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(Actor::Person, "EC2NodeClass", "/general", |it| {
            it["metadata"]["finalizers"] = json!(["example.com/keep"]);
        });
        tale.change(US, "EC2NodeClass", "/general", |it| {
            it["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
        });
        tale
    }),
    ("we make a policy", Law::UsersWords, || {
        let mut tale = begun();
        tale.store(
            US,
            "ImagePolicy",
            "",
            json!({"metadata": {"name": "zz"}, "spec": {"owners": ["123456789012"]}}),
        );
        tale
    }),
    ("we remove a quarantine", Law::UsersWords, || {
        let mut tale = begun();
        let quarantine = json!({"metadata": {"name": "bad"}, "spec": {"version": "v9"}});
        tale.store(Actor::Person, "ImageQuarantine", "", quarantine);
        tale.remove(US, "ImageQuarantine", "/bad");
        tale
    }),
    ("we change a label of a node", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(US, "Node", "/n1", |it| it["metadata"]["labels"]["team"] = json!("ours"));
        tale
    }),
    ("we take a protection off a node", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(Actor::Person, "Node", "/n1", |it| {
            it["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        });
        tale.change(US, "Node", "/n1", |it| it["metadata"]["annotations"] = json!({}));
        tale
    }),
    ("we take away a taint like ours that was there before", Law::UsersWords, || {
        let mut tale = begun();
        let taint = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
        tale.change(Actor::Person, "Node", "/n1", |it| it["spec"]["taints"] = taint);
        tale.change(US, "Node", "/n1", |it| it["spec"]["taints"] = json!([]));
        tale
    }),
    ("we set what belongs to people on a node", Law::UsersWords, || {
        let mut tale = begun();
        tale.change(US, "Node", "/n1", |it| it["spec"]["unschedulable"] = json!(true));
        tale
    }),
    ("we take somebody's taint away", Law::UsersWords, || {
        let mut tale = begun();
        let taint = json!([{"key": "gpu", "effect": "NoSchedule"}]);
        tale.change(Actor::Person, "Node", "/n1", |it| it["spec"]["taints"] = taint);
        tale.change(US, "Node", "/n1", |it| it["spec"]["taints"] = json!([]));
        tale
    }),
    ("we take a pause away", Law::UsersWords, || {
        let mut tale = begun();
        tale.paused();
        tale.change(US, "DisruptionLedger", "/cluster", |it| it["spec"] = json!({}));
        tale
    }),
    ("we remove a policy", Law::UsersWords, || {
        let mut tale = begun();
        tale.remove(US, "ImagePolicy", "/all");
        tale
    }),
    ("a pod that we moved does not run", Law::Home, || {
        let mut tale = sound();
        tale.pod("web-s1", Some("s1"), false);
        tale
    }),
    ("a pod that ended with its machine does not run again", Law::Home, || {
        let mut tale = bound_to_its_machine();
        tale.ended();
        tale.gone("web-n1");
        tale.pod("web-s1", None, false);
        tale
    }),
    ("a stranger's machine is ended", Law::OwnMachines, || {
        let mut tale = sound();
        tale.tell(US, Fact::TerminateAsked { machine: "i-stranger".to_owned() });
        tale
    }),
    ("EC2 made two machines, and the one is ended that the claim names", Law::OwnMachines, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.twin();
        tale.joined();
        tale.tell(US, Fact::TerminateAsked { machine: "i-s1".to_owned() });
        tale.machine_for("i-twin", "s1", NEW, "terminated");
        tale.record("n1", "Failed");
        tale.ledger(&[], 1);
        tale
    }),
    ("a machine is ended that its claim still wants", Law::OwnMachines, || {
        let mut tale = begun();
        tale.granted("n1");
        tale.launched();
        tale.joined();
        tale.tell(US, Fact::TerminateAsked { machine: "i-s1".to_owned() });
        tale.record("n1", "Failed");
        tale.ledger(&[], 1);
        tale
    }),
    ("a leader writes after a later one", Law::Epoch, || {
        let mut tale = begun();
        tale.ledger(&[], 3);
        tale.ledger(&[], 2);
        tale
    }),
    ("a grant is of another epoch", Law::Epoch, || {
        let mut tale = begun();
        tale.change(US, "DisruptionLedger", "/cluster", |it| {
            it["status"]["grants"] = json!([{"holder": "claim-n1", "nodeName": "n1", "kind": "Replacement", "epoch": 0}]);
        });
        tale.ledger(&[], 1);
        tale
    }),
    ("a leader tells something after a later one has begun", Law::Epoch, || {
        let mut tale = begun();
        tale.replica(1, ReplicaState::Started);
        tale.replica(1, ReplicaState::Leads);
        tale.ledger_by(Actor::Operator(1), &[], 2);
        tale.wait(16);
        tale.change(US, "NodePool", "/web", |it| it["status"] = json!({"nodes": 3}));
        tale
    }),
    ("what a leader tells late was sent after a later one had begun", Law::Epoch, || told_late(44)),
    ("who never led ends a machine", Law::Epoch, || {
        let mut tale = sound();
        tale.tell(Actor::Operator(1), Fact::TerminateAsked { machine: "i-n1".to_owned() });
        tale
    }),
    ("a cordon is left behind", Law::CordonUndone, || {
        let mut tale = drained_until_eviction();
        tale.record("n1", "Skipped");
        tale.ledger(&[], 1);
        tale
    }),
];

/// A person deletes the ledger while `n1` is replaced: it is made, and then filled from the records.
pub(crate) fn rebuilt() -> Tale {
    let mut tale = begun();
    tale.granted("n1");
    tale.wait(2);
    tale.remove(Actor::Person, "DisruptionLedger", "/cluster");
    tale.wait(2);
    tale.store(US, "DisruptionLedger", "", json!({"metadata": {"name": "cluster"}, "spec": {}}));
    tale.ledger(&["n1"], 2);
    tale.record("n1", "Cancelled");
    tale
}

/// People paused everything a minute ago, when `n1` was about to be cordoned.
pub(crate) fn paused_before_cordon() -> Tale {
    let mut tale = begun();
    tale.granted("n1");
    tale.launched();
    tale.joined();
    tale.record("n1", "Draining");
    tale.paused();
    tale.wait(60);
    tale
}

/// A minute after people paused everything a cordon arrives that was sent so long before.
pub(crate) fn cordoned_late(by_seconds: i64) -> Tale {
    let mut tale = paused_before_cordon();
    tale.held_up(by_seconds);
    tale.cordon("n1");
    tale.resumed();
    tale.settle();
    tale
}

/// A minute after people paused everything an eviction arrives that was sent so long before.
pub(crate) fn evicted_late(by_seconds: i64) -> Tale {
    let mut tale = drained_until_eviction();
    tale.paused();
    tale.wait(60);
    tale.held_up(by_seconds);
    tale.evict("web-n1", Some("pod-web-n1"), None);
    tale.resumed();
    tale
}

/// A minute after another has begun to lead arrives what the leader before it sent so long before.
pub(crate) fn told_late(by_seconds: i64) -> Tale {
    let mut tale = begun();
    tale.replica(1, ReplicaState::Started);
    tale.replica(1, ReplicaState::Leads);
    tale.ledger_by(Actor::Operator(1), &[], 2);
    tale.wait(60);
    tale.held_up(by_seconds);
    tale.change(US, "NodePool", "/web", |it| it["status"] = json!({"nodes": 3}));
    tale
}

/// Everything is as it should be, and the pods of `n1` are about to go. What comes of it is told as kept.
fn drained_until_eviction() -> Tale {
    let mut tale = begun();
    tale.granted("n1");
    tale.launched();
    tale.joined();
    tale.cordoned("n1");
    tale.wait(1);
    tale
}

/// `n1` is emptied and waits for people, whose budget lets its pod not go.
pub(crate) fn held_for_people() -> Tale {
    let mut tale = drained_until_eviction();
    tale.change(US, "Replacement", "/claim-n1", |it| {
        it["status"]["drainLimitAction"] = json!("Wait");
    });
    tale.change(Actor::Person, "PodDisruptionBudget", "shop/web", |it| {
        it["spec"]["maxUnavailable"] = json!(0);
        it["status"]["desiredHealthy"] = json!(3);
    });
    // It takes no slot from the others.
    tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
        it["spec"]["rollout"] = json!({"concurrency": 3});
    });
    tale.change(Actor::Person, "NodePool", "/web", |it| {
        it["spec"]["disruption"]["budgets"] = json!([{"nodes": "100%"}]);
    });
    tale.wait(120);
    tale
}

/// The same with a pod that nobody evicts, since it would come right back.
pub(crate) fn bound_to_its_machine() -> Tale {
    let mut tale = begun();
    tale.tolerant("web-n1");
    tale.granted("n1");
    tale.launched();
    tale.joined();
    tale.cordoned("n1");
    tale.wait(1);
    tale
}

/// The machine of `n1` is gone, its grant is not given back yet, and `n2` is granted.
pub(crate) fn granted_after_the_end_of(order: &str, awaits: bool) -> Tale {
    let mut tale = begun();
    tale.granted("n1");
    tale.change(US, "Replacement", "/claim-n1", |it| {
        it["status"]["order"] = json!(order);
        if !awaits {
            it["status"]["successors"] = json!([]);
        }
    });
    tale.machine("n1", OLD, "terminated");
    tale.ledger(&["n1", "n2"], 1);
    tale.record("n1", "Done");
    tale.ledger(&[], 1);
    tale
}

/// A node of this pool went first and nobody has followed it, and `n2` is to go first as well.
fn unfollowed(pool: &str) -> Tale {
    let mut tale = begun();
    tale.change(Actor::Person, "ImagePolicy", "/all", |it| {
        it["spec"]["rollout"] = json!({"replacement": "DeleteFirst"});
    });
    tale.wait(120);
    tale.record("gone", "Failed");
    let now = tale.now.to_string();
    tale.change(US, "Replacement", "/claim-gone", |it| {
        it["spec"]["nodePool"] = json!(pool);
        it["status"]["order"] = json!("DeleteFirst");
        it["status"]["phaseSince"] = json!(now);
    });
    tale.wait(120);
    tale.ledger(&["n2"], 1);
    tale.ledger(&[], 1);
    tale
}
