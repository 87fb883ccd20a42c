//! Which flags is a kubelet started with, where flags are all it is given?
//!
//! `settings → flags, in one order`
//!
//! AL2 and Windows paste them into a service's command line. So a flag is made of few characters, and
//! what has others is refused: a newline would become a line of a systemd unit.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::identity::{registered_labels, shown};
use super::{Kubelet, Place, Remark, Settings, Source, Taint};

/// One flag of the kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// `--max-pods`
    pub name: &'static str,
    /// What it is called in the kubelet's configuration, and in `spec.kubelet`.
    pub field: &'static str,
    pub text: String,
    pub source: Source,
}

/// In Karpenter's order, and the keys of each sorted: Karpenter leaves that to chance.
pub fn flags(settings: &Settings) -> Result<Vec<Flag>, Vec<Remark>> {
    let Kubelet {
        cluster_dns: _,
        max_pods,
        pods_per_core,
        system_reserved,
        kube_reserved,
        eviction_hard,
        eviction_soft,
        eviction_soft_grace_period,
        eviction_max_pod_grace_period,
        image_gc_high_threshold_percent,
        image_gc_low_threshold_percent,
        cpu_cfs_quota,
        rest: _,
    } = &settings.kubelet;
    let labels = registered_labels(&settings.labels);
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let taints: Vec<String> = taints(settings).iter().map(ToString::to_string).collect();
    let taints = Some(format!("\"{}\"", taints.join(",")));
    let labels = (!labels.is_empty()).then(|| format!("\"{}\"", labels.join(",")));
    let number = |it: &Option<i32>| it.map(|it| it.to_string());
    let count = |it: &Option<u32>| it.map(|it| it.to_string());
    let (ours, class) = (Source::Nodemolt, Source::Class);

    let all = [
        ("--node-labels", "nodeLabels", labels, ours),
        ("--register-with-taints", "registerWithTaints", taints, ours),
        ("--max-pods", "maxPods", count(max_pods), class),
        ("--pods-per-core", "podsPerCore", count(pods_per_core), class),
        ("--system-reserved", "systemReserved", pairs(system_reserved, '='), class),
        ("--kube-reserved", "kubeReserved", pairs(kube_reserved, '='), class),
        ("--eviction-hard", "evictionHard", pairs(eviction_hard, '<'), class),
        ("--eviction-soft", "evictionSoft", pairs(eviction_soft, '<'), class),
        (
            "--eviction-soft-grace-period",
            "evictionSoftGracePeriod",
            pairs(eviction_soft_grace_period, '='),
            class,
        ),
        (
            "--eviction-max-pod-grace-period",
            "evictionMaxPodGracePeriod",
            number(eviction_max_pod_grace_period),
            class,
        ),
        (
            "--image-gc-high-threshold",
            "imageGCHighThresholdPercent",
            number(image_gc_high_threshold_percent),
            class,
        ),
        (
            "--image-gc-low-threshold",
            "imageGCLowThresholdPercent",
            number(image_gc_low_threshold_percent),
            class,
        ),
        ("--cpu-cfs-quota", "cpuCFSQuota", cpu_cfs_quota.map(|it| it.to_string()), class),
    ];
    let mut flags = Vec::new();
    let mut refused = Vec::new();
    for (name, field, value, source) in all {
        let Some(value) = value else { continue };
        if let Some(wrong) = value.chars().find(|it| !plain(*it)) {
            let field = format!("spec.kubelet.{field}");
            refused.push(Remark::of_field(
                field,
                format!("has {wrong:?} in `{}`, which cannot stand in a flag", shown(&value)),
            ));
        }
        flags.push(Flag { name, field, text: format!("{name}={value}"), source });
    }
    if refused.is_empty() { Ok(flags) } else { Err(refused) }
}

/// What cannot stand in a flag, where nobody has said more of it already: a label that is none is told
/// with its key, and what a kubelet cannot be told with its signal or resource.
pub(super) fn tell(refused: &mut Vec<Remark>, more: Vec<Remark>) {
    let told: Vec<Place> = refused.iter().map(|it| it.place.clone()).collect();
    let told = |it: &Remark| {
        let Place::Field(field) = &it.place else { return false };
        told.iter().any(|place| match place {
            Place::Label(_) => field == "spec.kubelet.nodeLabels",
            Place::Taint(_) => field == "spec.kubelet.registerWithTaints",
            Place::Field(other) => other
                .strip_prefix(field)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('[')),
            Place::UserPart { .. } | Place::Whole => false,
        })
    };
    refused.extend(more.into_iter().filter(|it| !told(it)));
}

/// All of them in one word, as bootstrap scripts take them.
pub fn joined(flags: &[Flag]) -> String {
    flags.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Sorted and each once: their order means nothing, and must not change the text.
pub fn taints(settings: &Settings) -> Vec<&Taint> {
    let mut taints: Vec<&Taint> = settings.taints.iter().collect();
    taints.sort_by_key(|it| (&it.key, &it.effect, it.worth()));
    taints.dedup_by_key(|it| (&it.key, &it.effect, it.worth()));
    taints
}

/// The address that pods ask for names: the class's first, else the cluster's first.
pub fn cluster_dns(settings: &Settings) -> Option<IpAddr> {
    match settings.kubelet.cluster_dns.first() {
        Some(address) => address.parse().ok(),
        None => settings.cluster.dns.first().copied(),
    }
}

fn pairs(map: &BTreeMap<String, String>, between: char) -> Option<String> {
    let pairs: Vec<String> =
        map.iter().map(|(key, value)| format!("{key}{between}{value}")).collect();
    (!map.is_empty()).then(|| format!("\"{}\"", pairs.join(",")))
}

/// No white space, no quote but those that we set, no backslash, nothing that a shell or systemd reads.
fn plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || "-_./=:,<%+\"".contains(char)
}
