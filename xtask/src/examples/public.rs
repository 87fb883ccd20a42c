//! What did Amazon publish?
//!
//! `family × Kubernetes minor × architecture × variant × release → image and its two names in SSM`

use std::collections::BTreeMap;

use jiff::civil::{DateTime, datetime};

use super::{
    dice::Dice,
    wire::{BlockDevice, Image, during, ec2_time},
};

/// An image, the parameter that points to the newest of its kind, and the one that names it.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) image: Image,
    pub(crate) created_at: DateTime,
    pub(crate) latest: String,
    /// Windows has none.
    pub(crate) pinned: Option<String>,
    pub(crate) recalled_at: Option<DateTime>,
}

/// The accounts that publish, and nobody else's images are releases.
const EKS: &str = "602401143452";
const BOTTLEROCKET: &str = "092701018921";
const WINDOWS: &str = "801119661308";

/// What EKS supports at the time of the examples, with the kubelet that is built in.
const KUBERNETES: [(&str, &str); 3] = [("1.33", "1.33.5"), ("1.34", "1.34.3"), ("1.35", "1.35.2")];

/// Up to July 2026 the real days of the public changelog, not all of them; from then on invented
/// at the same pace. 3 April made pods fail and was never withdrawn.
const AL2023_RELEASES: [&str; 17] = [
    "20260318", "20260403", "20260409", "20260505", "20260610", "20260625", "20260714", "20260730",
    "20260813", "20260827", "20260911", "20260925", "20261008", "20261021", "20261103", RECALLED,
    "20261112",
];

/// This release was taken back the morning after.
const RECALLED: &str = "20261107";
const RECALLED_AT: DateTime = datetime(2026, 11, 8, 6, 30, 0, 0);

const AL2023_VARIANTS: [(&str, &str); 5] = [
    ("x86_64", "standard"),
    ("x86_64", "nvidia"),
    ("x86_64", "neuron"),
    ("arm64", "standard"),
    ("arm64", "nvidia"),
];

/// Amazon stopped publishing images on Amazon Linux 2 in November 2025: all real days.
const AL2_RELEASES: [(&str, &str, &[&str]); 2] = [
    ("1.32", "1.32.9", &["20250920", "20251016", "20251029", "20251108", "20251112", "20251120"]),
    // Their two years are over: deprecated in October 2026.
    ("1.30", "1.30.4", &["20241011", "20241024"]),
];

/// Architecture, the folder in SSM, the beginning of the name.
const AL2_VARIANTS: [(&str, &str, &str); 3] = [
    ("x86_64", "amazon-linux-2", "amazon-eks-node"),
    ("arm64", "amazon-linux-2-arm64", "amazon-eks-arm64-node"),
    ("x86_64", "amazon-linux-2-gpu", "amazon-eks-gpu-node"),
];

const BOTTLEROCKET_RELEASES: [(&str, &str); 6] = [
    ("1.48.0", "20260707"),
    ("1.49.0", "20260804"),
    ("1.50.0", "20260901"),
    ("1.51.0", "20260929"),
    ("1.51.1", "20261014"),
    ("1.52.0", "20261110"),
];

/// Architecture as EC2 and SSM say it, as the name says it; and the flavour.
const BOTTLEROCKET_VARIANTS: [(&str, &str, &str); 4] = [
    ("x86_64", "x86_64", ""),
    ("arm64", "aarch64", ""),
    ("x86_64", "x86_64", "-nvidia"),
    ("arm64", "aarch64", "-nvidia"),
];

/// A few days after, or on, each month's second Tuesday.
const WINDOWS_RELEASES: [&str; 5] = ["20260716", "20260813", "20260910", "20261015", "20261110"];

pub(crate) fn published() -> Vec<Published> {
    let mut published = Vec::new();
    al2023(&mut published);
    al2(&mut published);
    bottlerocket(&mut published);
    windows(&mut published);
    name_the_newest(&mut published);
    published
}

fn al2023(published: &mut Vec<Published>) {
    for (minor, kubelet) in KUBERNETES {
        for (architecture, variant) in AL2023_VARIANTS {
            let folder = format!(
                "/aws/service/eks/optimized-ami/{minor}/amazon-linux-2023/{architecture}/{variant}"
            );
            for day in AL2023_RELEASES {
                let name =
                    format!("amazon-eks-node-al2023-{architecture}-{variant}-{minor}-v{day}");
                let created_at = during(day, &name);
                let pinned = Some(format!("{folder}/{name}/image_id"));
                let mut image = Image::linux(EKS, name, architecture, created_at)
                    .public_as("amazon", created_at);
                image.description = Some(format!(
                    "EKS-optimized Kubernetes node based on Amazon Linux 2023, \
                     (k8s: {kubelet}, containerd: 2.1.*)"
                ));
                image.boot_mode =
                    Some(if architecture == "arm64" { "uefi" } else { "uefi-preferred" });
                let recalled_at = (day == RECALLED).then_some(RECALLED_AT);
                if recalled_at.is_some() {
                    image.deprecation_time = Some(ec2_time(RECALLED_AT));
                }
                let latest = format!("{folder}/recommended/image_id");
                published.push(Published { image, created_at, latest, pinned, recalled_at });
            }
        }
    }
}

fn al2(published: &mut Vec<Published>) {
    for (minor, kubelet, days) in AL2_RELEASES {
        for (architecture, folder, prefix) in AL2_VARIANTS {
            let folder = format!("/aws/service/eks/optimized-ami/{minor}/{folder}");
            for day in days {
                let name = format!("{prefix}-{minor}-v{day}");
                let created_at = during(day, &name);
                let pinned = Some(format!("{folder}/{name}/image_id"));
                let mut image = Image::linux(EKS, name, architecture, created_at)
                    .public_as("amazon", created_at);
                image.description = Some(format!(
                    "EKS Kubernetes Worker AMI with AmazonLinux2 image, \
                     (k8s: {kubelet}, containerd: 1.7.*)"
                ));
                image.imds_support = None;
                let latest = format!("{folder}/recommended/image_id");
                published.push(Published { image, created_at, latest, pinned, recalled_at: None });
            }
        }
    }
}

fn bottlerocket(published: &mut Vec<Published>) {
    for (minor, _) in KUBERNETES {
        for (architecture, spelled, flavour) in BOTTLEROCKET_VARIANTS {
            let folder =
                format!("/aws/service/bottlerocket/aws-k8s-{minor}{flavour}/{architecture}");
            for (version, day) in BOTTLEROCKET_RELEASES {
                let commit = commit_of(version);
                let name =
                    format!("bottlerocket-aws-k8s-{minor}{flavour}-{spelled}-v{version}-{commit}");
                let created_at = during(day, &name);
                let of = format!("{BOTTLEROCKET}/{name}");
                let mut image = Image::linux(BOTTLEROCKET, name.clone(), architecture, created_at)
                    .public_as("amazon", created_at);
                image.description = Some(name);
                image.boot_mode = Some("uefi-preferred");
                // The system is 2 GiB and read-only; containers live on the second disk.
                image.block_device_mappings = vec![
                    BlockDevice::of(&of, "/dev/xvda", 2, "gp3"),
                    BlockDevice::of(&of, "/dev/xvdb", 20, "gp3"),
                ];
                published.push(Published {
                    image,
                    created_at,
                    latest: format!("{folder}/latest/image_id"),
                    pinned: Some(format!("{folder}/{version}/image_id")),
                    recalled_at: None,
                });
            }
        }
    }
}

fn commit_of(version: &str) -> String {
    if version == "1.52.0" {
        return "5ed15786".to_owned();
    }
    format!("{:08x}", Dice::of(version).roll() >> 32)
}

fn windows(published: &mut Vec<Published>) {
    for (minor, _) in KUBERNETES {
        for year in ["2019", "2022", "2025"] {
            // EKS has no Windows Server 2025 before Kubernetes 1.35.
            if year == "2025" && minor != "1.35" {
                continue;
            }
            let prefix = format!("Windows_Server-{year}-English-Core-EKS_Optimized-{minor}");
            for day in WINDOWS_RELEASES {
                let name = format!("{prefix}-{}.{}.{}", &day[..4], &day[4..6], &day[6..]);
                let created_at = during(day, &name);
                let of = format!("{WINDOWS}/{name}");
                let mut image = Image::linux(WINDOWS, name, "x86_64", created_at)
                    .public_as("amazon", created_at);
                image.platform = Some("windows");
                image.platform_details = "Windows";
                image.usage_operation = "RunInstances:0002";
                image.description = Some(format!(
                    "Microsoft Windows Server {year} core edition optimized for EKS, \
                     provided by Amazon"
                ));
                image.root_device_name = "/dev/sda1";
                image.block_device_mappings = vec![BlockDevice::of(&of, "/dev/sda1", 50, "gp3")];
                image.imds_support = (year == "2025").then_some("v2.0");
                image.boot_mode = (year == "2025").then_some("uefi-preferred");
                published.push(Published {
                    image,
                    created_at,
                    latest: format!("/aws/service/ami-windows-latest/{prefix}/image_id"),
                    pinned: None,
                    recalled_at: None,
                });
            }
        }
    }
}

/// EC2 tells the public parameter of an image; of ours only for the newest of each kind, so that
/// older releases must be found by their names.
fn name_the_newest(published: &mut [Published]) {
    let mut newest_at: BTreeMap<String, DateTime> = BTreeMap::new();
    for it in &*published {
        let at = newest_at.entry(it.latest.clone()).or_insert(it.created_at);
        *at = it.created_at.max(*at);
    }
    for it in published {
        if newest_at[&it.latest] == it.created_at {
            it.image.public_ssm_parameter_name =
                Some(it.pinned.clone().unwrap_or_else(|| it.latest.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use nodemolt_core::lookup::{Release, read_name, read_path};

    use super::*;

    #[test]
    fn names_and_paths_are_those_that_core_reads() {
        for it in published() {
            let name = &it.image.name;
            let (flavour, version) = read_name(name).expect(name);
            assert_eq!(read_path(&it.latest), Some((flavour, Release::Recommended)), "{name}");
            if let Some(pinned) = it.pinned {
                let (of_path, release) = read_path(&pinned).expect(&pinned);
                assert_eq!(of_path, flavour);
                let Release::Version(of_path) = release else { panic!("{pinned} is no version") };
                assert!(version.ends_with(&of_path), "{pinned} is not {version}");
            }
        }
    }
}
