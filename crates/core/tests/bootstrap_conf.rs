//! What Bottlerocket and AL2023 are told: cases as files, laws as properties.
//!
//! `SNAPSHOTS=overwrite cargo test -p nodemolt-core --test bootstrap_conf` writes the goldens anew.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use nodemolt_core::bootstrap::{
    self, Cluster, IpFamily, Kubelet, MergeConflict, Placement, Remark, Settings, Taint, UserData,
    UserPart, effective_reservations,
};
use nodemolt_fit::Family;
use serde_json::{Value, json};

#[path = "../../fit/tests/support/fuzz.rs"]
mod fuzz;
#[path = "bootstrap_conf/merge.rs"]
mod merge;
#[path = "bootstrap_conf/reservations.rs"]
mod reservations;

macro_rules! golden {
    ($($test:ident $case:literal)*) => {$(
        #[test]
        fn $test() {
            let settings = include_str!(concat!("bootstrap/", $case, "/settings.json"));
            let user = include_str!(concat!("bootstrap/", $case, "/user.txt"));
            let family = if $case.starts_with("al2023") { Family::Al2023 } else { Family::Bottlerocket };
            let (text, said) = shown(render(family, &read_settings(settings), user));
            check($case, "out.txt", &text);
            check($case, "said.txt", &said);
        }
    )*};
}

golden! {
    bottlerocket_without_a_user_part "bottlerocket-none"
    bottlerocket_keeps_what_the_user_wrote "bottlerocket-plain"
    bottlerocket_takes_dotted_and_inline_keys "bottlerocket-dotted"
    bottlerocket_names_the_line_of_broken_toml "bottlerocket-bad-toml"
    bottlerocket_takes_no_script "bottlerocket-bad-script"
    bottlerocket_takes_no_toml_1_1 "bottlerocket-bad-toml-1.1"
    bottlerocket_names_keys_of_the_wrong_type "bottlerocket-bad-type"
    bottlerocket_names_all_that_is_wrong_with_the_class "bottlerocket-bad-class"
    al2023_without_a_user_part "al2023-none"
    al2023_takes_a_script "al2023-script"
    al2023_sends_what_is_not_ascii_as_base64 "al2023-not-ascii"
    al2023_takes_cloud_config "al2023-cloud-config"
    al2023_merges_a_node_config "al2023-node-config"
    al2023_keeps_all_headers_of_mime "al2023-mime"
    al2023_names_what_nodeadm_would_not_take "al2023-bad-node-config"
    al2023_names_the_line_of_broken_yaml "al2023-bad-yaml"
    al2023_takes_one_document "al2023-bad-two"
}

fn check(case: &str, file: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bootstrap").join(case).join(file);
    let expected = snapbox::Data::read_from(&path, None).raw();
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(actual.to_owned(), expected);
}

fn render(family: Family, settings: &Settings, user: &str) -> Result<UserData, MergeConflict> {
    bootstrap::render(family, settings, UserPart(user))
}

/// What is rendered, and what is said about it.
fn shown(rendered: Result<UserData, MergeConflict>) -> (String, String) {
    match rendered {
        Ok(UserData { text, provenance, remarks }) => {
            let mut said = said(&remarks, "remark");
            for it in provenance {
                let source = format!("{:?}", it.source);
                writeln!(said, "{source:9} {}", it.what).unwrap();
            }
            (text, said)
        }
        Err(conflict) => (String::new(), said(&conflict.remarks, "refused")),
    }
}

fn said(remarks: &[Remark], word: &str) -> String {
    let mut said = String::new();
    for remark in remarks {
        writeln!(said, "{word}: {remark}").unwrap();
        if let Some(hint) = &remark.hint {
            writeln!(said, "  hint: {hint}").unwrap();
        }
    }
    said
}

/// Small words for settings: what is not said is that of Karpenter's own goldens.
fn read_settings(text: &str) -> Settings {
    let it: Value = serde_json::from_str(text).unwrap();
    let text = |key: &str, default: &str| it[key].as_str().unwrap_or(default).to_owned();
    let texts = |key: &str| {
        let items = it[key].as_array().cloned().unwrap_or_default();
        items.iter().map(|it| it.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    Settings {
        cluster: Cluster {
            name: text("name", "test-cluster"),
            endpoint: "https://test-cluster".to_owned(),
            certificate_authority: text("certificate", "Y2EtYnVuZGxlCg=="),
            service_cidr: it["cidr"].as_str().map(str::to_owned),
            dns: texts("dns").iter().map(|it| it.parse().unwrap()).collect(),
            ip_family: IpFamily::V4,
        },
        labels: serde_json::from_value(it["labels"].clone()).unwrap_or_default(),
        taints: texts("taints").iter().map(|it| read_taint(it)).collect(),
        kubelet: read_kubelet(&it["kubelet"]),
        instance_store_raid0: it["raid0"].as_bool().unwrap_or_default(),
        placement: Placement::default(),
        release: it["release"].as_str().map(str::to_owned),
    }
}

/// `key=value:Effect`, `key:Effect`.
fn read_taint(text: &str) -> Taint {
    let (key, effect) = text.rsplit_once(':').unwrap();
    let (key, value) = match key.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (key, None),
    };
    Taint { key: key.to_owned(), value, effect: effect.to_owned() }
}

fn read_kubelet(it: &Value) -> Kubelet {
    fn into<T: serde::de::DeserializeOwned>(it: Value) -> T {
        serde_json::from_value(it).unwrap()
    }
    fn map(it: Value) -> BTreeMap<String, String> {
        serde_json::from_value::<Option<_>>(it).unwrap().unwrap_or_default()
    }
    let mut rest = it.as_object().cloned().unwrap_or_default();
    let mut take = |key: &str| rest.remove(key).unwrap_or(json!(null));
    Kubelet {
        cluster_dns: into::<Option<_>>(take("clusterDNS")).unwrap_or_default(),
        max_pods: into(take("maxPods")),
        pods_per_core: into(take("podsPerCore")),
        system_reserved: map(take("systemReserved")),
        kube_reserved: map(take("kubeReserved")),
        eviction_hard: map(take("evictionHard")),
        eviction_soft: map(take("evictionSoft")),
        eviction_soft_grace_period: map(take("evictionSoftGracePeriod")),
        eviction_max_pod_grace_period: into(take("evictionMaxPodGracePeriod")),
        image_gc_high_threshold_percent: into(take("imageGCHighThresholdPercent")),
        image_gc_low_threshold_percent: into(take("imageGCLowThresholdPercent")),
        cpu_cfs_quota: into(take("cpuCFSQuota")),
        rest,
    }
}
