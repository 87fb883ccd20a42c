//! Whose is this machine?
//!
//! `cluster, pool, class, the user's tags → tags`
//!
//! The four of ours say to whom a machine belongs; permissions and the search for orphans stand on
//! them. So the user's tags may not use those keys, and where one did it would lose.

use std::collections::BTreeMap;

const CLUSTER: &str = "eks:eks-cluster-name";
const CLUSTER_PREFIX: &str = "kubernetes.io/cluster";
const POOL: &str = "karpenter.sh/nodepool";
const CLAIM: &str = "karpenter.sh/nodeclaim";
const CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";

/// The key, or the beginning of keys, that a user's tag may not have.
pub fn restricted(key: &str) -> Option<&'static str> {
    if key.starts_with(CLUSTER_PREFIX) {
        return Some("kubernetes.io/cluster/");
    }
    [CLUSTER, POOL, CLAIM, CLASS].into_iter().find(|it| *it == key)
}

pub(super) fn tags(
    written: &BTreeMap<String, String>,
    cluster: &str,
    pool: &str,
    class: &str,
) -> BTreeMap<String, String> {
    let mut tags = written.clone();
    for (key, value) in [
        (format!("{CLUSTER_PREFIX}/{cluster}"), "owned"),
        (CLUSTER.to_owned(), cluster),
        (POOL.to_owned(), pool),
        (CLASS.to_owned(), class),
    ] {
        tags.insert(key, value.to_owned());
    }
    tags
}
