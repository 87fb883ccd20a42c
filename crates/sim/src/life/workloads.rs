//! What runs on the nodes of a random life?
//!
//! Pods that anybody may move and pods that nobody may; with budgets, volumes and wishes about their neighbours,
//! but never so many of them that they could not be met.

use serde_json::{Value, json};

use super::scenario::Drawing;

impl Drawing {
    pub(super) fn workloads(&mut self) {
        let pools = self.drawn.pools.clone();
        for pool in &pools {
            let room = self.room.get(pool).copied().unwrap_or_default();
            // More than half full, less than all: with room enough that some nodes are spare.
            let share = self.dice.between(30, 65);
            let mut left = (room.0 * share / 100, room.1 * share / 100);
            for at in 0..self.dice.between(2, 5) {
                self.workload(pool, at, &mut left);
            }
        }
        let storage = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer"});
        self.documents.push(storage);
        if self.dice.chance(500) {
            self.daemons();
        }
    }

    fn workload(&mut self, pool: &str, at: u64, left: &mut (u64, u64)) {
        let name = format!("{pool}-app-{at}");
        let stateful = self.dice.chance(250);
        let replicas = self.dice.between(1, 4);
        let (cpu, memory) = (100 * self.dice.between(2, 7), 128 * self.dice.between(2, 6));
        if cpu * replicas > left.0 || memory * replicas > left.1 {
            return;
        }
        *left = (left.0 - cpu * replicas, left.1 - memory * replicas);
        let mut metadata = json!({"labels": {"app": name}});
        if self.dice.chance(50) {
            metadata["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        }
        let mut pod = self.pod_spec(cpu, memory);
        if self.dice.chance(700) {
            pod["nodeSelector"] = json!({"karpenter.sh/nodepool": pool});
        }
        if self.dice.chance(60) {
            // It tolerates whatever happens to its node, our cordon included: it ends with the machine.
            let tolerations = [
                json!([{"operator": "Exists"}]),
                json!([{"key": "karpenter.sh/disrupted", "operator": "Exists"}]),
            ];
            pod["tolerations"] = self.one_of(&tolerations);
        }
        let selector = json!({"matchLabels": {"app": name}});
        self.keep_apart(pool, replicas, &selector, &mut pod);
        let called = json!({"name": name, "namespace": "apps"});
        if self.dice.chance(70) {
            // Nobody would start this one again.
            metadata["name"] = json!(name);
            metadata["namespace"] = json!("apps");
            self.document("v1", "Pod", &metadata, &pod);
            return;
        }
        let mut spec = json!({
            "replicas": replicas,
            "selector": selector,
            "template": {"metadata": metadata, "spec": pod},
        });
        if stateful {
            spec["serviceName"] = json!(name);
            if self.dice.chance(300) {
                // Bound where the first pod goes: from then on it lives in that zone.
                spec["volumeClaimTemplates"] = json!([{
                    "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"], "storageClassName": "gp3",
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }]);
            }
            self.document("apps/v1", "StatefulSet", &called, &spec);
        } else {
            self.document("apps/v1", "Deployment", &called, &spec);
        }
        if self.dice.chance(550) {
            let mut amounts = vec![json!({"maxUnavailable": 1}), json!({"maxUnavailable": "50%"})];
            if replicas > 1 {
                amounts.push(json!({"minAvailable": replicas - 1}));
            }
            let mut spec = self.one_of(&amounts);
            // A budget that never allows anything: its nodes wait for a person.
            if self.dice.chance(60) {
                spec = json!({"maxUnavailable": 0});
            }
            spec["selector"] = selector;
            self.document("policy/v1", "PodDisruptionBudget", &called, &spec);
            self.drawn.pdbs.push(("apps".to_owned(), name));
        }
    }

    /// Some pods keep away from each other, or spread; never so many that they could not.
    fn keep_apart(&mut self, pool: &str, replicas: u64, selector: &Value, pod: &mut Value) {
        let nodes = self.drawn.nodes.iter().filter(|(node, _)| node.starts_with(pool)).count();
        if self.dice.chance(120) && replicas * 2 <= u64::try_from(nodes).unwrap_or(0) {
            pod["affinity"] = json!({"podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector},
                ],
            }});
        }
        if self.dice.chance(120) {
            let keys = [json!("topology.kubernetes.io/zone"), json!("kubernetes.io/hostname")];
            let words = [json!("ScheduleAnyway"), json!("DoNotSchedule")];
            pod["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": self.one_of(&keys),
                "whenUnsatisfiable": self.one_of(&words), "labelSelector": selector,
            }]);
        }
    }

    fn pod_spec(&mut self, cpu: u64, memory: u64) -> Value {
        let requests = json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")});
        json!({
            "terminationGracePeriodSeconds": self.dice.between(2, 45),
            "containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}],
        })
    }

    fn daemons(&mut self) {
        let mut pod = self.pod_spec(50, 64);
        pod["tolerations"] = json!([{"operator": "Exists"}]);
        let labels = json!({"app": "agent"});
        let spec = json!({
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        });
        let called = json!({"name": "agent", "namespace": "kube-system"});
        self.document("apps/v1", "DaemonSet", &called, &spec);
    }
}
