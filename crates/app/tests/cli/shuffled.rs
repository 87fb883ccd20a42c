//! Is the answer the same, whatever stands first in the files?

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

fn node(name: &str, zone: &str, pool: &str, ready: &str) -> Value {
    let labels = json!({
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": zone,
        "node.kubernetes.io/instance-type": "m5.large",
        "karpenter.sh/nodepool": pool,
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    });
    let amounts = json!({"cpu": "2", "memory": "8Gi", "pods": "29"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": ready}],
        },
    })
}

fn pool(name: &str, zones: &[&str], ready: &str) -> Value {
    let requirements = json!([
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": zones},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]},
    ]);
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name});
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "uid": name},
        "spec": {
            "limits": {"cpu": "4"},
            "template": {"spec": {"nodeClassRef": class, "requirements": requirements}},
        },
        "status": {"conditions": [{"type": "Ready", "status": ready, "message": "no subnets"}]},
    })
}

/// It runs on a node, and has to be in a zone of its own.
fn pod(name: &str, app: &str, on: Option<&str>, priority: i32) -> Value {
    let spread = json!([{
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }]);
    let requests = json!({"cpu": "900m", "memory": "1Gi"});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": app}},
        "spec": {
            "nodeName": on,
            "priority": priority,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "topologySpreadConstraints": spread,
        },
    })
}

fn objects() -> Vec<Value> {
    let zones = ["us-east-1a", "us-east-1b", "us-east-1c"];
    let mut all = vec![
        pool("spot", &zones[..2], "True"),
        pool("general", &zones, "True"),
        pool("later", &zones, "False"),
        pool("anew", &zones, "False"),
    ];
    for at in 0..6 {
        let (name, zone) = (format!("n{at}"), zones[at % 3]);
        let ready = if at % 2 == 0 { "False" } else { "True" };
        all.push(node(&name, zone, ["general", "spot"][at % 2], ready));
        all.push(pod(&format!("a{at}"), "a", Some(&format!("n{}", at / 2)), 0));
    }
    for at in 0..8 {
        all.push(pod(&format!("w{at}"), ["a", "b"][at % 2], None, 5));
    }
    let mut large = pod("large", "large", None, 5);
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("3");
    all.push(large);
    all
}

#[test]
fn the_same_files_in_another_order_have_the_same_answer() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shuffled");
    std::fs::create_dir_all(&folder).unwrap();
    let answer = |objects: &[Value], typed: &[&str]| {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        std::fs::write(folder.join("all.json"), list.to_string()).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
            .args(["pack", "-f", "all.json", "--leaving", "n0", "n4"])
            .args(typed)
            .current_dir(&folder)
            .output()
            .unwrap();
        let texts = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        format!("{}\n{}{}", output.status, texts[0], texts[1])
    };
    for typed in [&["-o", "wide"][..], &["-o", "json"], &["--explain", "large"]] {
        let mut objects = objects();
        let first = answer(&objects, typed);
        assert!(first.contains("says Ready=False"), "{first}");
        assert!(first.contains("launches no nodes"), "{first}");
        objects.reverse();
        assert_eq!(answer(&objects, typed), first, "reversed, {typed:?}");
        for by in [3, 7, 11] {
            objects.rotate_left(by);
            let (evens, odds): (Vec<_>, Vec<_>) =
                objects.drain(..).enumerate().partition(|(at, _)| at % 2 == 0);
            objects = evens.into_iter().chain(odds).map(|(_, it)| it).collect();
            assert_eq!(answer(&objects, typed), first, "shuffled, {typed:?}");
        }
    }
}
