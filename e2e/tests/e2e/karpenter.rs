//! Are Karpenter's own resources here, as it published them?

use nodemolt_rig::karpenter;

#[test]
fn karpenters_own_crds_are_served() {
    let crds = karpenter::crds().unwrap();
    let files: Vec<&str> = crds.iter().map(|it| it.file.as_str()).collect();
    let expected = [
        "autoscaling.x-k8s.io_capacitybuffers.yaml",
        "karpenter.k8s.aws_ec2nodeclasses.yaml",
        "karpenter.sh_nodeclaims.yaml",
        "karpenter.sh_nodeoverlays.yaml",
        "karpenter.sh_nodepools.yaml",
    ];
    assert_eq!(files, expected);
    // On a control plane of their own: others install ours of the same names.
    let rig = nodemolt_rig::Rig::start(nodemolt_rig::Parts::default()).unwrap();
    for crd in &crds {
        rig.apply_crds(&crd.yaml).unwrap_or_else(|error| panic!("{}: {error}", crd.file));
    }
    let output = rig.kubectl(&["explain", "nodepool.spec.disruption.budgets"]).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn upstream_has_no_class_of_aws() {
    let crds = karpenter::core_crds().unwrap();
    assert!(crds.iter().any(|it| it.file == "karpenter.sh_nodepools.yaml"));
    assert!(crds.iter().all(|it| !it.file.contains("ec2nodeclasses")));
    let aws = karpenter::crds().unwrap();
    let nodepool = |it: &[karpenter::Crd]| {
        it.iter().find(|it| it.file == "karpenter.sh_nodepools.yaml").unwrap().yaml.clone()
    };
    assert!(nodepool(&aws).contains("karpenter.k8s.aws/instance-family"));
    assert!(!nodepool(&crds).contains("karpenter.k8s.aws/instance-family"));
}
