//! What the user's part reserves is known before the node runs.

use super::*;

fn check(family: Family, class: &Value, user: &str, expected: &Value) {
    let class = read_kubelet(class);
    let effective = effective_reservations(family, &class, UserPart(user)).unwrap();
    assert_eq!(effective, read_kubelet(expected), "{user}");
}

#[test]
fn the_seeds_example_is_read_back() {
    check(
        Family::Bottlerocket,
        &json!({"kubeReserved": {"cpu": "100m"}}),
        "[settings.kubernetes]\nmax-pods = 20\neviction-hard.\"memory.available\" = \"15%\"\n\
         kube-reserved = { cpu = \"1\", memory = \"1Gi\" }\n",
        &json!({"maxPods": 20, "evictionHard": {"memory.available": "15%"},
                "kubeReserved": {"cpu": "100m", "memory": "1Gi"}}),
    );
}

#[test]
fn a_node_config_is_read_back_and_flags_beat_all() {
    let user = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      \
                maxPods: 20\n      systemReserved: {cpu: 50m}\n      kubeReserved: {memory: 2Gi}\n    \
                flags: ['--kube-reserved=cpu=1,pid=100', '--eviction-hard', 'memory.available<5%']\n";
    check(
        Family::Al2023,
        &json!({"kubeReserved": {"cpu": "100m"}, "systemReserved": {"memory": "1Gi"}}),
        user,
        &json!({"maxPods": 20, "kubeReserved": {"cpu": "1", "pid": "100"},
                "systemReserved": {"cpu": "50m", "memory": "1Gi"},
                "evictionHard": {"memory.available": "5%"}}),
    );
}

#[test]
fn several_node_configs_merge_in_their_order() {
    let part = |spec: &str| {
        format!(
            "--x\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\n\
             kind: NodeConfig\nspec: {{kubelet: {{config: {spec}}}}}\n"
        )
    };
    let user = format!(
        "Content-Type: multipart/mixed; boundary=x\n\n{}{}--x--\n",
        part("{maxPods: 1, kubeReserved: {cpu: 1m, pid: '5'}}"),
        part("{maxPods: 2, kubeReserved: {cpu: 2m}}"),
    );
    let expected = json!({"maxPods": 2, "kubeReserved": {"cpu": "2m", "pid": "5"}});
    check(Family::Al2023, &json!({}), &user, &expected);
}

#[test]
fn what_is_wrong_there_is_refused_with_its_place() {
    let class = Kubelet::default();
    let refused = |family, user| {
        effective_reservations(family, &class, UserPart(user)).unwrap_err().to_string()
    };
    let toml = "settings.kubernetes.kube-reserved.cpu = \"much\"\n";
    assert!(refused(Family::Bottlerocket, toml).starts_with("userData:1:"));
    let yaml = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n\
                spec: {kubelet: {flags: [--kube-reserved=cpu=much]}}\n";
    assert!(refused(Family::Al2023, yaml).starts_with("userData:3:"));
    // Nobody can read a script.
    check(Family::Al2, &json!({"maxPods": 5}), "#!/bin/sh\n", &json!({"maxPods": 5}));
}
