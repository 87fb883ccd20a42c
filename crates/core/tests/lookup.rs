//! Which names and parameters lead to images? Every path of the families, and what names say.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

mod support;

use nodemolt_core::fit::Family;
use nodemolt_core::image::{Architecture, Image};
use nodemolt_core::lookup::{
    Flavour, Minor, Processor, Release, Track, Variant, flavours, kubelet_of, read_name, read_path,
    release_of,
};
use proptest::prelude::*;
use support::{flavour, id};

const MINOR: Minor = Minor { major: 1, minor: 31 };

/// `<k>` is 1.31, `<ver>` the version; the part before `…` is the one above it.
const PATHS: &str = "
al2                  v20260722 /aws/service/eks/optimized-ami/1.31/amazon-linux-2/recommended/image_id
                               /aws/service/eks/optimized-ami/1.31/amazon-linux-2/amazon-eks-node-1.31-v20260722/image_id
al2/arm64            v20260722 /aws/service/eks/optimized-ami/1.31/amazon-linux-2-arm64/recommended/image_id
                               /aws/service/eks/optimized-ami/1.31/amazon-linux-2-arm64/amazon-eks-arm64-node-1.31-v20260722/image_id
al2/gpu              v20260722 /aws/service/eks/optimized-ami/1.31/amazon-linux-2-gpu/recommended/image_id
                               /aws/service/eks/optimized-ami/1.31/amazon-linux-2-gpu/amazon-eks-gpu-node-1.31-v20260722/image_id
al2023               v20260722 /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/standard/recommended/image_id
                               /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.31-v20260722/image_id
al2023/nvidia        v20260722 /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/nvidia/recommended/image_id
                               /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.31-v20260722/image_id
al2023/neuron        v20260722 /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/neuron/recommended/image_id
                               /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.31-v20260722/image_id
al2023/arm64         v20260722 /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/arm64/standard/recommended/image_id
                               /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.31-v20260722/image_id
al2023/arm64/nvidia  v20260722 /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/arm64/nvidia/recommended/image_id
                               /aws/service/eks/optimized-ami/1.31/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.31-v20260722/image_id
br                   1.20.4    /aws/service/bottlerocket/aws-k8s-1.31/x86_64/latest/image_id
                               /aws/service/bottlerocket/aws-k8s-1.31/x86_64/1.20.4/image_id
br/arm64             1.20.4    /aws/service/bottlerocket/aws-k8s-1.31/arm64/latest/image_id
                               /aws/service/bottlerocket/aws-k8s-1.31/arm64/1.20.4/image_id
br/nvidia            1.20.4    /aws/service/bottlerocket/aws-k8s-1.31-nvidia/x86_64/latest/image_id
                               /aws/service/bottlerocket/aws-k8s-1.31-nvidia/x86_64/1.20.4/image_id
br/arm64/nvidia      1.20.4    /aws/service/bottlerocket/aws-k8s-1.31-nvidia/arm64/latest/image_id
                               /aws/service/bottlerocket/aws-k8s-1.31-nvidia/arm64/1.20.4/image_id
";

fn windows() -> impl Iterator<Item = (Family, &'static str)> {
    [(Family::Windows2019, "2019"), (Family::Windows2022, "2022"), (Family::Windows2025, "2025")]
        .into_iter()
}

#[test]
fn every_flavour_has_its_paths() {
    let mut words = PATHS.split_whitespace();
    let mut seen = Vec::new();
    while let Some(name) = words.next() {
        let flavour = flavour(name, MINOR);
        let (version, latest, pinned) =
            (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        assert_eq!(flavour.pointer(), latest, "{name}");
        assert_eq!(flavour.pinned(version).as_deref(), Some(pinned), "{name}");
        assert_eq!(read_path(latest), Some((flavour, Release::Recommended)), "{latest}");
        let release = Release::Version(version.to_owned());
        assert_eq!(read_path(pinned), Some((flavour, release)), "{pinned}");
        seen.push(flavour);
    }
    for (family, year) in windows() {
        let only: Vec<Flavour> = flavours(family, MINOR).collect();
        let path = format!(
            "/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-1.31/image_id"
        );
        assert_eq!(only.len(), 1);
        assert_eq!(only[0].pointer(), path);
        assert_eq!(only[0].pinned("2026.07.14"), None);
        assert_eq!(read_path(&path), Some((only[0], Release::Recommended)));
        seen.push(only[0]);
    }
    let mut all: Vec<Flavour> =
        Family::ALL.into_iter().flat_map(|it| flavours(it, MINOR)).collect();
    all.sort();
    seen.sort();
    assert_eq!(seen, all, "no flavour without a path in this table");
}

#[test]
fn both_spellings_of_a_bottlerocket_version_are_one_path() {
    let flavour = flavour("br", MINOR);
    assert_eq!(flavour.pinned("v1.20.4"), flavour.pinned("1.20.4"));
}

#[test]
fn what_each_flavour_is_for() {
    for (family, expected) in [
        (Family::Al2, 4),
        (Family::Al2023, 5),
        (Family::Bottlerocket, 5),
        (Family::Windows2019, 1),
        (Family::Windows2022, 1),
        (Family::Windows2025, 1),
        (Family::Custom, 0),
    ] {
        let sets: usize = flavours(family, MINOR).map(|it| it.variants().len()).sum();
        assert_eq!(sets, expected, "{family:?}");
    }
    for (name, variant, expected) in [
        (
            "al2",
            Variant::Standard,
            "aws/accelerator-count DoesNotExist; aws/gpu-count DoesNotExist",
        ),
        ("al2023/nvidia", Variant::Nvidia, "aws/gpu-count Exists; aws/gpu-manufacturer In nvidia"),
        (
            "br",
            Variant::Neuron,
            "aws/accelerator-count Exists; aws/accelerator-manufacturer In aws",
        ),
        (
            "win2022",
            Variant::Standard,
            "kubernetes.io/os In windows; node.kubernetes.io/windows-build In 10.0.20348",
        ),
    ] {
        let written = flavour(name, MINOR).requirements(variant);
        assert_eq!(support::written(&written), expected, "{name}");
    }
}

#[test]
fn other_paths_are_nobody_s() {
    for path in [
        "",
        "/",
        "/my-org/amis/golden",
        "/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/standard/recommended",
        "/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/standard/recommended/release_version",
        "/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/fips/recommended/image_id",
        "/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/riscv/standard/recommended/image_id",
        "/aws/service/eks/optimized-ami/v1.31/amazon-linux-2/recommended/image_id",
        "/aws/service/eks/optimized-ami/1.31.2/amazon-linux-2/recommended/image_id",
        "/aws/service/eks/optimized-ami/01.31/amazon-linux-2/recommended/image_id",
        "/aws/service/eks/optimized-ami/1.31/amazon-linux-2/recommended/image_id/",
        "/aws/service/eks/optimized-ami/1.31/amazon-linux-2/amazon-eks-node-1.30-v20260722/image_id",
        "/aws/service/eks/optimized-ami/1.31/amazon-linux-2/amazon-eks-gpu-node-1.31-v20260722/image_id",
        "/aws/service/bottlerocket/aws-k8s-1.31-fips/x86_64/latest/image_id",
        "/aws/service/bottlerocket/aws-k8s-1.31/x86_64/v1.20.4/image_id",
        "/aws/service/bottlerocket/aws-k8s-1.31/aarch64/latest/image_id",
        "/aws/service/bottlerocket/aws-ecs-2/x86_64/latest/image_id",
        "/aws/service/bottlerocket/aws-k8s-1.31/x86_64//image_id",
        "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-Base/image_id",
        "/aws/service/ami-windows-latest/Windows_Server-2022-English-Full-EKS_Optimized-1.31/image_id",
        "/aws/service/ami-windows-latest/Windows_Server-2016-English-Core-EKS_Optimized-1.31/image_id",
    ] {
        assert_eq!(read_path(path), None, "{path}");
    }
}

#[test]
fn names_say_which_release_an_image_would_be() {
    for (name, expected) in [
        ("amazon-eks-node-1.31-v20260722", Some(("al2", "v20260722"))),
        ("amazon-eks-arm64-node-1.31-v20260722", Some(("al2/arm64", "v20260722"))),
        ("amazon-eks-gpu-node-1.31-v20260722", Some(("al2/gpu", "v20260722"))),
        ("amazon-eks-node-al2023-x86_64-standard-1.31-v20260722", Some(("al2023", "v20260722"))),
        (
            "amazon-eks-node-al2023-arm64-nvidia-1.31-v20260722",
            Some(("al2023/arm64/nvidia", "v20260722")),
        ),
        (
            "amazon-eks-node-al2023-x86_64-neuron-1.31-v20260722",
            Some(("al2023/neuron", "v20260722")),
        ),
        ("bottlerocket-aws-k8s-1.31-x86_64-v1.20.4-b6163b2a", Some(("br", "1.20.4"))),
        ("bottlerocket-aws-k8s-1.31-aarch64-v1.20.4-b6163b2a", Some(("br/arm64", "1.20.4"))),
        ("bottlerocket-aws-k8s-1.31-nvidia-x86_64-v1.20.4-b6163b2a", Some(("br/nvidia", "1.20.4"))),
        (
            "Windows_Server-2022-English-Core-EKS_Optimized-1.31-2026.07.14",
            Some(("win2022", "2026.07.14")),
        ),
        ("Windows_Server-2022-English-Core-EKS_Optimized-1.31", None),
        ("amazon-eks-node-1.31", None),
        ("amazon-eks-node-1.31-latest", None),
        ("amazon-eks-node-1.31-v20260722-test", None),
        ("amazon-eks-node-1.31-v", None),
        ("amazon-eks-node-1.31-v2026x", None),
        ("amazon-eks-node-v1.31-v20260722", None),
        ("amazon-eks-node-1.31.2-v20260722", None),
        ("amazon-eks-node-al2023-x86_64-fips-1.31-v20260722", None),
        ("my-amazon-eks-node-1.31-v20260722", None),
        ("bottlerocket-aws-k8s-1.31-fips-x86_64-v1.20.4-b6163b2a", None),
        ("bottlerocket-aws-k8s-1.31-x86_64-1.20.4-b6163b2a", None),
        ("bottlerocket-aws-k8s-1.31-x86_64-v-b6163b2a", None),
        ("bottlerocket-aws-k8s-1.31-x86_64-v1.20.4", None),
        ("bottlerocket-aws-ecs-2-x86_64-v1.20.4-b6163b2a", None),
        ("Windows_Server-2022-English-Core-EKS_Optimized-1.31-", None),
        ("", None),
    ] {
        let expected = expected.map(|(name, version)| (flavour(name, MINOR), version.to_owned()));
        assert_eq!(read_name(name), expected, "{name}");
    }
}

#[test]
fn a_name_that_lies_about_the_processor_is_no_release() {
    let mut image = Image::new(id("0a"), "amazon-eks-node-al2023-x86_64-standard-1.31-v20260722");
    assert!(release_of(&image).is_some());
    image.architecture = Architecture::Arm64;
    assert_eq!(release_of(&image), None);
    image.architecture = Architecture::Other("i386".to_owned());
    assert_eq!(release_of(&image), None);
}

#[test]
fn the_kubelet_s_version_is_known_where_the_image_says_it() {
    for (name, tag, expected) in [
        ("amazon-eks-node-1.31-v20260722", "", Some("1.31")),
        ("bottlerocket-aws-k8s-1.33-nvidia-x86_64-v1.20.4-b6163b2a", "", Some("1.33")),
        ("bottlerocket-aws-k8s-1.33-fips-x86_64-v1.20.4-b6163b2a", "", Some("1.33")),
        ("Windows_Server-2022-English-Core-EKS_Optimized-1.32-2026.07.14", "", Some("1.32")),
        ("ubuntu-eks/k8s_1.29/images/hvm-ssd/ubuntu-jammy-22.04-amd64-server", "", Some("1.29")),
        ("capa-ami-ubuntu-22.04-v1.31.2", "", None),
        ("capa-kubernetes-v1.31.2-ubuntu", "", Some("1.31")),
        ("golden-1.35", "", Some("1.35")),
        ("golden-v1.35", "", None),
        ("golden-k8s-v1.35", "", Some("1.35")),
        ("golden-1.35.2", "", None),
        ("golden-1.2", "", None),
        ("golden-1.99", "", None),
        ("golden-2026.07", "", None),
        ("golden", "1.34.1", Some("1.34")),
        ("golden-1.35", "v1.34.1-eks-1a2b3c", Some("1.34")),
        ("golden-1.35", "owned", Some("1.35")),
        ("golden", "", None),
    ] {
        let mut image = Image::new(id("0a"), name);
        if !tag.is_empty() {
            image.tags.insert("kubernetes_version".to_owned(), tag.to_owned());
        }
        let expected = expected.map(|it| it.parse::<Minor>().unwrap());
        assert_eq!(kubelet_of(&image), expected, "{name} {tag}");
    }
}

#[test]
fn versions_of_kubernetes_are_read_as_people_and_servers_write_them() {
    for (text, expected) in [
        ("1.35", Some("1.35")),
        ("v1.35", Some("1.35")),
        ("v1.35.2", Some("1.35")),
        ("1.35+", Some("1.35")),
        ("v1.35.2-eks-a1b2c3", Some("1.35")),
        ("v1.35.0-rc.1+build", Some("1.35")),
        ("1", None),
        ("", None),
        ("1.", None),
        (".35", None),
        ("1.x", None),
        ("1.35x", None),
        ("vv1.35", None),
        ("1,35", None),
        ("-1.35", None),
        ("+1.35", None),
        ("1.+35", None),
        ("1.99999", None),
        ("١.٣٥", None),
        (" 1.35", None),
    ] {
        let read = text.parse::<Minor>().ok().map(|it| it.to_string());
        assert_eq!(read.as_deref(), expected, "{text}");
    }
}

fn any_flavour() -> impl Strategy<Value = Flavour> {
    (0..Family::ALL.len(), 0..5_usize, 0..3_u16, 0..70_u16)
        .prop_filter_map("a family has so many", |(family, at, major, minor)| {
            flavours(Family::ALL[family], Minor { major, minor }).nth(at)
        })
}

proptest! {
    #[test]
    fn a_path_is_read_as_it_is_written(flavour in any_flavour(), date in 20_200_101..20_991_231_u32) {
        prop_assert_eq!(read_path(&flavour.pointer()), Some((flavour, Release::Recommended)));
        let version = match flavour.family {
            Family::Bottlerocket => format!("1.{}.{}", date % 60, date % 7),
            Family::Al2
            | Family::Al2023
            | Family::Windows2019
            | Family::Windows2022
            | Family::Windows2025
            | Family::Custom => format!("v{date}"),
        };
        if let Some(path) = flavour.pinned(&version) {
            prop_assert_eq!(read_path(&path), Some((flavour, Release::Version(version))));
        }
    }

    #[test]
    fn whatever_path_is_read_is_written_the_same(path in "/aws/service/(eks/optimized-ami|bottlerocket|ami-windows-latest)(/[a-z0-9._-]{0,12}){0,6}(/image_id)?|/aws/service/bottlerocket/aws-k8s-1\\.[0-9+.-]{1,4}(-nvidia)?/(x86_64|arm64)/[v0-9.latesx/-]{0,8}/image_id") {
        if let Some((flavour, release)) = read_path(&path) {
            let again = match &release {
                Release::Recommended => flavour.pointer(),
                Release::Version(version) => flavour.pinned(version).unwrap(),
            };
            prop_assert_eq!(again, path);
            prop_assert!(flavours(flavour.family, flavour.kubernetes).any(|it| it == flavour));
        }
    }

    #[test]
    fn no_name_or_path_panics(text in "\\PC{0,60}", stem in 0..4_usize) {
        let stem = ["amazon-eks-", "bottlerocket-aws-k8s-", "Windows_Server-2022-English-Core-EKS_Optimized-", "/aws/service/eks/optimized-ami/"][stem];
        let text = format!("{stem}{text}");
        let _ = (read_path(&text), read_name(&text), text.parse::<Minor>());
        let _ = kubelet_of(&Image::new(id("0a"), text));
    }

    #[test]
    fn a_minor_is_read_as_it_is_shown(major in any::<u16>(), minor in any::<u16>()) {
        let it = Minor { major, minor };
        prop_assert_eq!(it.to_string().parse::<Minor>(), Ok(it));
    }
}

#[test]
fn a_processor_has_kubernetes_word() {
    assert_eq!(Processor::Amd64.kubernetes(), "amd64");
    assert_eq!(Processor::Arm64.kubernetes(), "arm64");
    assert_eq!(flavour("al2/gpu", MINOR).track, Track::Gpu);
}
