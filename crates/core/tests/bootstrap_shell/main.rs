//! What AL2, Windows and custom nodes are told, and what becomes of it when it is run.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "core is pure; its tests run what it wrote"
)]

#[path = "../../../fit/tests/support/fuzz.rs"]
mod fuzz;
mod cloud_init;
mod goldens;
mod mime;
mod quoting;
mod sandwich;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use nodemolt_core::bootstrap::{
    Cluster, IpFamily, Kubelet, Placement, Settings, Taint, UserData, UserPart, render,
};
use nodemolt_core::fit::Family;

/// As in Karpenter's own goldens.
fn settings() -> Settings {
    Settings {
        cluster: Cluster {
            name: "test-cluster".into(),
            endpoint: "https://test-cluster".into(),
            certificate_authority: "Y2EtYnVuZGxlCg==".into(),
            service_cidr: Some("10.100.0.0/16".into()),
            dns: vec!["10.0.100.10".parse().unwrap()],
            ip_family: IpFamily::V4,
        },
        labels: BTreeMap::from([
            ("karpenter.sh/capacity-type".into(), "on-demand".into()),
            ("karpenter.sh/nodepool".into(), "general".into()),
            ("kubernetes.io/arch".into(), "arm64".into()),
            ("testing/cluster".into(), "unspecified".into()),
        ]),
        taints: vec![Taint {
            key: "karpenter.sh/unregistered".into(),
            value: None,
            effect: "NoExecute".into(),
        }],
        kubelet: Kubelet { max_pods: Some(110), ..Kubelet::default() },
        instance_store_raid0: false,
        placement: Placement::BeforeBootstrap,
        release: None,
    }
}

fn between() -> Settings {
    Settings { placement: Placement::BetweenBootstrapAndKubelet, ..settings() }
}

fn al2(settings: &Settings, user: &str) -> UserData {
    render(Family::Al2, settings, UserPart(user)).unwrap()
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A folder of its own for each test, empty at first.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bootstrap-shell").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn text(&mut self, fragments: &[&str], length_max: usize) -> String {
        let length = self.below(length_max + 1);
        (0..length).map(|_| *self.of(fragments)).collect()
    }
}
