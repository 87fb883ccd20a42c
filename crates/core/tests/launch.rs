//! How is a node started? Cases as tables, then the laws: equal content and equal name go together,
//! the static digest notices what only a new machine can honour and nothing else, and nothing panics.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nodemolt_core::bootstrap::{IpFamily, Placement};
use nodemolt_core::launch::{
    BlockDevice, Capacity, ConnectionTracking, Cpu, Identity, InstanceStorePolicy, InterfaceKind,
    Market, Occasion, PlacementGroup, Preference, Reservation, ReservationId, STATIC_VERSION,
    Settings, Specification, StaticDigest, Switch, Tagged, Tenancy, Tokens, Volume, VolumeSize,
    VolumeType, WrittenInterface, WrittenKind, specify,
};
use nodemolt_fit::Family;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::json;

fn settings() -> Settings {
    Settings::of("general", Family::Al2023, "node")
}

fn occasion() -> Occasion {
    Occasion {
        cluster: "blue".to_owned(),
        pool: "web".to_owned(),
        region: None,
        ip_family: IpFamily::V4,
        image: "ami-0123456789abcdef0".parse().unwrap(),
        instance_types: BTreeSet::from(["m7g.large".to_owned()]),
        zones: BTreeSet::from(["eu-west-1a".to_owned()]),
        capacity: Capacity::OnDemand { open: false },
        security_groups: groups(&["sg-0a"]),
        instance_profile: "nodes".to_owned(),
        user_data: Some("#!/bin/bash\n".to_owned()),
        efa: 0,
        tenancy: None,
        partition: None,
        enclave: false,
    }
}

fn groups(ids: &[&str]) -> BTreeSet<nodemolt_core::launch::SecurityGroupId> {
    ids.iter().map(|it| it.parse().unwrap()).collect()
}

fn specified(settings: &Settings, occasion: &Occasion) -> Specification {
    specify(settings, occasion).unwrap_or_else(|it| panic!("refused: {it:#?}"))
}

/// `field: message` of each finding.
fn refused(settings: &Settings) -> Vec<String> {
    settings.check().into_iter().map(|it| format!("{}: {}", it.field, it.message)).collect()
}

fn device(name: &str, volume: Volume) -> BlockDevice {
    BlockDevice { name: Some(name.to_owned()), volume: Some(volume) }
}

fn sized(text: &str) -> Volume {
    Volume { size: Some(text.parse().unwrap()), ..Volume::default() }
}

/// `/dev/xvda 20Gi gp3 encrypted`, one for each device.
fn shown(devices: &[BlockDevice]) -> String {
    let mut lines = Vec::new();
    for device in devices {
        let volume = device.volume.clone().unwrap_or_default();
        let mut words = vec![device.name.clone().unwrap_or_default()];
        words.extend(volume.size.map(|it| format!("{}Gi", it.gib)));
        words.extend(volume.kind.map(|it| it.to_string()));
        words.extend((volume.encrypted == Some(true)).then(|| "encrypted".to_owned()));
        lines.push(words.join(" "));
    }
    lines.join(", ")
}

#[test]
fn every_family_has_its_volumes() {
    for (family, expected) in [
        (Family::Al2, "/dev/xvda 20Gi gp3 encrypted"),
        (Family::Al2023, "/dev/xvda 20Gi gp3 encrypted"),
        (Family::Bottlerocket, "/dev/xvda 4Gi gp3 encrypted, /dev/xvdb 20Gi gp3 encrypted"),
        (Family::Windows2019, "/dev/sda1 50Gi gp3 encrypted"),
        (Family::Windows2022, "/dev/sda1 50Gi gp3 encrypted"),
        (Family::Windows2025, "/dev/sda1 50Gi gp3 encrypted"),
        (Family::Custom, ""),
    ] {
        let settings = Settings { family, ..settings() };
        let template = specified(&settings, &occasion()).template;
        assert_eq!(shown(&template.block_devices), expected, "{family}");
    }
}

#[test]
fn what_the_class_writes_replaces_all_volumes_of_the_family() {
    let settings = Settings {
        family: Family::Bottlerocket,
        block_devices: vec![device("/dev/xvdb", sized("100G"))],
        ..settings()
    };
    let template = specified(&settings, &occasion()).template;
    assert_eq!(shown(&template.block_devices), "/dev/xvdb 94Gi");
}

#[test]
fn sizes_are_rounded_up_to_whole_gib() {
    for (written, gib) in [
        ("1Gi", 1),
        ("20Gi", 20),
        ("59000Gi", 59_000),
        ("1G", 1),
        ("20G", 19),
        ("64000G", 59_605),
        ("1Ti", 1_024),
        ("18Ti", 18_432),
        ("58Ti", 59_392),
        ("1T", 932),
        ("64T", 59_605),
    ] {
        assert_eq!(written.parse(), Ok(VolumeSize { gib }), "{written}");
    }
    for written in [
        "",
        "Gi",
        "Ti",
        "T",
        "G",
        "0Gi",
        "020Gi",
        "-1Gi",
        "+1Gi",
        "1.5Gi",
        "59001Gi",
        "59Ti",
        "65T",
        "64001G",
        "20",
        "20Mi",
        "20gi",
        " 20Gi",
        "20Gi ",
        "1e3Gi",
        "99999999999999999999Gi",
        "２Gi",
    ] {
        assert!(written.parse::<VolumeSize>().is_err(), "{written}");
    }
}

#[test]
fn a_mapping_may_lack_everything_and_is_refused() {
    let settings = Settings {
        block_devices: vec![
            BlockDevice::default(),
            BlockDevice { name: Some("/dev/xvda".to_owned()), volume: None },
            device("/dev/xvda", Volume::default()),
        ],
        ..settings()
    };
    assert_eq!(
        refused(&settings),
        [
            "spec.blockDeviceMappings[0].deviceName: no device is named",
            "spec.blockDeviceMappings[0].ebs: nothing says what the volume is",
            "spec.blockDeviceMappings[1].ebs: nothing says what the volume is",
            "spec.blockDeviceMappings[2].deviceName: `/dev/xvda` is mapped twice",
            "spec.blockDeviceMappings[2].ebs: snapshotID or volumeSize must be defined",
        ]
    );
    assert!(specify(&settings, &occasion()).is_err());
    settings.static_digest();
}

#[test]
fn volumes_keep_to_what_ec2_makes() {
    use VolumeType::{Gp2, Gp3, Io1, Io2, Sc1, Standard};

    type Case = (Option<VolumeType>, &'static str, Option<i64>, Option<i64>, &'static str);
    let cases: [Case; 20] = [
        (Some(Gp3), "20Gi", Some(3_000), Some(125), ""),
        (Some(Gp3), "20Gi", Some(80_000), Some(2_000), ""),
        (Some(Gp3), "20Gi", Some(2_999), None, "iops: `2999` is not between 3000 and 80000"),
        (Some(Gp3), "20Gi", Some(80_001), None, "iops: `80001` is not between 3000 and 80000"),
        (Some(Gp3), "20Gi", None, Some(124), "throughput: `124` is not between 125 and 2000"),
        (Some(Gp3), "20Gi", None, Some(2_001), "throughput: `2001` is not between 125 and 2000"),
        (Some(Gp2), "20Gi", Some(3_000), None, "iops: `3000` has no meaning for `gp2`"),
        (Some(Gp2), "20Gi", None, Some(125), "throughput: `125` has no meaning for `gp2`"),
        (Some(Gp2), "17Ti", None, None, "volumeSize: `17408Gi` is not a size that `gp2` can have"),
        (Some(Io1), "20Gi", Some(64_000), None, ""),
        (Some(Io1), "20Gi", None, None, "iops: `io1` needs its operations per second to be said"),
        (Some(Io1), "3Gi", Some(100), None, "volumeSize: `3Gi` is not a size that `io1` can have"),
        (Some(Io2), "20Gi", Some(256_000), None, ""),
        (Some(Io2), "20Gi", Some(99), None, "iops: `99` is not between 100 and 256000"),
        (Some(Io2), "20Gi", Some(100), Some(125), "throughput: `125` has no meaning for `io2`"),
        (Some(Sc1), "124Gi", None, None, "volumeSize: `124Gi` is not a size that `sc1` can have"),
        (Some(Standard), "1Ti", None, None, ""),
        (
            Some(Standard),
            "2Ti",
            None,
            None,
            "volumeSize: `2048Gi` is not a size that `standard` can have",
        ),
        (None, "20Gi", Some(100), Some(125), ""),
        (None, "20Gi", Some(-1), None, "iops: `-1` is not between 100 and 256000"),
    ];
    for (kind, size, iops, throughput, expected) in cases {
        let volume = Volume { kind, iops, throughput, ..sized(size) };
        let settings = Settings { block_devices: vec![device("/dev/xvda", volume)], ..settings() };
        let found = refused(&settings).join("; ");
        let expected = match expected {
            "" => String::new(),
            it => format!("spec.blockDeviceMappings[0].ebs.{it}"),
        };
        assert_eq!(found, expected, "{kind:?} {size} {iops:?} {throughput:?}");
    }
}

#[test]
fn a_snapshot_and_a_key_have_their_conditions() {
    let check = |volume: Volume| {
        refused(&Settings { block_devices: vec![device("/dev/xvda", volume)], ..settings() })
    };
    let snapshot = Volume { snapshot: Some("snap-0a".to_owned()), ..Volume::default() };
    assert!(check(snapshot.clone()).is_empty());
    assert!(check(Volume { initialization_rate: Some(300), ..snapshot.clone() }).is_empty());
    assert_eq!(
        check(Volume { initialization_rate: Some(301), ..snapshot }),
        [
            "spec.blockDeviceMappings[0].ebs.volumeInitializationRate: `301` is not between 100 and 300"
        ]
    );
    assert_eq!(
        check(Volume { initialization_rate: Some(100), ..sized("20Gi") }),
        ["spec.blockDeviceMappings[0].ebs.volumeInitializationRate: snapshotID must be set when \
          volumeInitializationRate is set"]
    );
    let key = Volume { kms_key: Some("alias/nodes".to_owned()), ..sized("20Gi") };
    assert!(check(Volume { encrypted: Some(true), ..key.clone() }).is_empty());
    assert_eq!(
        check(key),
        ["spec.blockDeviceMappings[0].ebs.kmsKeyID: `alias/nodes` is a key for a volume that is \
          not encrypted"]
    );
}

#[test]
fn numbers_keep_to_the_ranges_of_the_schema() {
    let tracking = |tcp_established, udp_stream, udp| Settings {
        connection_tracking: Some(ConnectionTracking { tcp_established, udp_stream, udp }),
        ..settings()
    };
    let cpu = |cores, threads_per_core| Settings {
        cpu: Cpu { cores, threads_per_core, ..Cpu::default() },
        ..settings()
    };
    let hops = |hop_limit| {
        let mut settings = settings();
        settings.metadata.hop_limit = hop_limit;
        settings
    };
    let both = Cpu {
        amd_sev_snp: Some(Switch::Enabled),
        nested_virtualization: Some(Switch::Enabled),
        ..Cpu::default()
    };
    for (settings, expected) in [
        (tracking(Some(60), Some(60), Some(30)), ""),
        (tracking(Some(432_000), Some(180), Some(60)), ""),
        (
            tracking(Some(59), None, None),
            "spec.connectionTracking.tcpEstablishedTimeout: `59` is not between 60 and 432000",
        ),
        (
            tracking(Some(432_001), None, None),
            "spec.connectionTracking.tcpEstablishedTimeout: `432001` is not between 60 and 432000",
        ),
        (
            tracking(None, Some(181), None),
            "spec.connectionTracking.udpStreamTimeout: `181` is not between 60 and 180",
        ),
        (
            tracking(None, None, Some(29)),
            "spec.connectionTracking.udpTimeout: `29` is not between 30 and 60",
        ),
        (
            tracking(None, None, None),
            "spec.connectionTracking: at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",
        ),
        (cpu(Some(2), Some(1)), ""),
        (cpu(Some(0), Some(2)), "spec.cpuOptions.coreCount: `0` is not between 1 and 2147483647"),
        (cpu(Some(2), Some(3)), "spec.cpuOptions.threadsPerCore: `3` is not between 1 and 2"),
        (
            cpu(Some(2), None),
            "spec.cpuOptions.coreCount: `coreCount: 2` stands without threadsPerCore",
        ),
        (
            cpu(None, Some(1)),
            "spec.cpuOptions.threadsPerCore: `threadsPerCore: 1` stands without coreCount",
        ),
        (
            Settings { cpu: both, ..settings() },
            "spec.cpuOptions.nestedVirtualization: `enabled` together with amdSevSnp: no processor has both",
        ),
        (hops(64), ""),
        (hops(0), "spec.metadataOptions.httpPutResponseHopLimit: `0` is not between 1 and 64"),
        (hops(65), "spec.metadataOptions.httpPutResponseHopLimit: `65` is not between 1 and 64"),
        (
            Settings { ip_prefixes: Some(-1), ..settings() },
            "spec.ipPrefixCount: `-1` is not a number of prefixes",
        ),
        (
            Settings { identity: Identity::Role(String::new()), ..settings() },
            "spec.role: role cannot be empty",
        ),
        (
            Settings { identity: Identity::InstanceProfile(String::new()), ..settings() },
            "spec.instanceProfile: instanceProfile cannot be empty",
        ),
        (
            Settings { placement_group: Some(PlacementGroup::Name(String::new())), ..settings() },
            "spec.placementGroupSelector.name: `` is not the name of a placement group",
        ),
    ] {
        assert_eq!(refused(&settings).join("; "), expected);
    }
}

fn written(card: i64, device: i64, kind: WrittenKind) -> WrittenInterface {
    WrittenInterface { card, device, kind }
}

#[test]
fn written_interfaces_keep_their_rules() {
    use WrittenKind::{EfaOnly, Interface};

    const PRIMARY: &str = "spec.networkInterfaces: networkInterfaces must include a primary \
                           interface with interfaceType='interface'";
    const PLACES: &str = "networkInterfaces must not have duplicate networkCardIndex and \
                          deviceIndex pairs, and can have at most one efa device per network card";
    for (interfaces, expected) in [
        (vec![], vec![]),
        (vec![written(0, 0, Interface)], vec![]),
        (vec![written(0, 0, Interface), written(0, 1, EfaOnly), written(1, 0, EfaOnly)], vec![]),
        (vec![written(0, 0, EfaOnly)], vec![PRIMARY.to_owned()]),
        (vec![written(0, 1, Interface)], vec![PRIMARY.to_owned()]),
        (
            vec![written(0, 0, Interface), written(0, 0, Interface)],
            vec![format!("spec.networkInterfaces[1]: {PLACES}")],
        ),
        (
            vec![written(0, 0, Interface), written(1, 1, EfaOnly), written(1, 2, EfaOnly)],
            vec![format!("spec.networkInterfaces[2]: {PLACES}")],
        ),
        (
            vec![written(0, 0, Interface), written(-1, 0, Interface)],
            vec!["spec.networkInterfaces[1].networkCardIndex: `-1` is not an index".to_owned()],
        ),
        (
            (0..151).map(|it| written(it, 0, Interface)).collect(),
            vec!["spec.networkInterfaces: has 151 items, must have at most 150".to_owned()],
        ),
    ] {
        assert_eq!(refused(&Settings { interfaces, ..settings() }), expected);
    }
}

/// `card/device kind`, and what else an interface has.
fn nics(settings: &Settings, occasion: &Occasion) -> Vec<String> {
    let template = specified(settings, occasion).template;
    let mut lines = Vec::new();
    for it in &template.interfaces {
        let card = it.card.map_or_else(|| "-".to_owned(), |it| it.to_string());
        let mut line = format!("{card}/{} {}", it.device, it.kind);
        if let Some(public) = it.public_ip {
            line.push_str(if public { " public" } else { " private" });
        }
        if it.ipv6 {
            line.push_str(" ipv6");
        }
        if let Some(prefixes) = it.prefixes {
            let family = if prefixes.ipv6 { "v6" } else { "v4" };
            let _ = write!(line, " {}x{family}", prefixes.count);
        }
        if it.connection_tracking.is_some() {
            line.push_str(" tracking");
        }
        assert_eq!(it.security_groups, occasion.security_groups);
        lines.push(line);
    }
    lines
}

#[test]
fn interfaces_come_from_the_class_else_from_efa_else_there_is_one() {
    use WrittenKind::{EfaOnly, Interface};

    let six = Occasion { ip_family: IpFamily::V6, ..occasion() };
    let efa = |efa| Occasion { efa, ..occasion() };
    let full = Settings {
        interfaces: vec![
            written(1, 1, EfaOnly),
            written(0, 0, Interface),
            written(0, 1, EfaOnly),
            written(2, 0, Interface),
        ],
        public_ip: Some(false),
        ip_prefixes: Some(2),
        connection_tracking: Some(ConnectionTracking { udp: Some(30), ..Default::default() }),
        ..settings()
    };
    assert_eq!(nics(&settings(), &occasion()), ["-/0 interface"]);
    assert_eq!(nics(&settings(), &six), ["-/0 interface ipv6"]);
    assert_eq!(nics(&settings(), &efa(1)), ["0/0 efa"]);
    assert_eq!(nics(&settings(), &efa(3)), ["0/0 efa", "1/1 efa", "2/1 efa"]);
    let prefixed = Settings { ip_prefixes: Some(4), ..settings() };
    assert_eq!(nics(&prefixed, &occasion()), ["-/0 interface 4xv4"]);
    assert_eq!(nics(&prefixed, &six), ["-/0 interface ipv6 4xv6"]);
    let none = Settings { ip_prefixes: Some(0), ..settings() };
    assert_eq!(nics(&none, &six), ["-/0 interface ipv6"]);
    let public = Settings { public_ip: Some(true), ..settings() };
    assert_eq!(nics(&public, &occasion()), ["-/0 interface public"]);
    assert_eq!(nics(&public, &efa(1)), ["0/0 efa public"]);
    let expected = [
        "0/0 interface private ipv6 2xv6 tracking",
        "0/1 efa-only",
        "1/1 efa-only",
        "2/0 interface ipv6 2xv6 tracking",
    ];
    assert_eq!(nics(&full, &Occasion { efa: 8, ..six }), expected);
}

#[test]
fn what_does_not_go_together_is_refused_before_any_call() {
    let check = |settings: &Settings, occasion: &Occasion| -> Vec<String> {
        let found = specify(settings, occasion).unwrap_err();
        found.into_iter().map(|it| format!("{}: {}", it.field, it.message)).collect()
    };
    let public = Settings { public_ip: Some(true), ..settings() };
    assert_eq!(
        check(&public, &Occasion { efa: 4, ..occasion() }),
        ["spec.associatePublicIPAddress: `true` on a node with 4 interfaces (one for each EFA)"]
    );
    assert_eq!(
        check(&settings(), &Occasion { partition: Some(2), ..occasion() }),
        ["spec.placementGroupSelector: partition `2` of no placement group"]
    );
    let sized = |bytes| Occasion { user_data: Some("x".repeat(bytes)), ..occasion() };
    assert!(specify(&settings(), &sized(16_384)).is_ok());
    assert_eq!(
        check(&settings(), &sized(16_385)),
        ["spec.userData: the rendered user data has 16385 bytes"]
    );
    assert_eq!(
        check(&settings(), &Occasion { security_groups: BTreeSet::new(), ..occasion() }),
        ["spec.securityGroupSelectorTerms: no security group is known"]
    );
}

#[test]
fn the_metadata_service_is_safe_unless_told_otherwise() {
    let template = specified(&settings(), &occasion()).template;
    let metadata = template.metadata;
    assert_eq!(metadata.endpoint, Switch::Enabled);
    assert_eq!(metadata.ipv6, Some(Switch::Disabled));
    assert_eq!((metadata.hop_limit, metadata.tokens), (1, Tokens::Required));
    let isolated = Occasion { region: Some("us-iso-east-1".to_owned()), ..occasion() };
    assert_eq!(specified(&settings(), &isolated).template.metadata.ipv6, None);
    let ordinary = Occasion { region: Some("eu-west-1".to_owned()), ..occasion() };
    assert_eq!(specified(&settings(), &ordinary).template, template);
}

#[test]
fn capacity_says_which_reservations_and_which_market() {
    let reserved =
        |market| Capacity::Reserved(Reservation { id: "cr-0a".parse().unwrap(), market });
    let nic = BTreeSet::from([Tagged::NetworkInterface]);
    let spot = BTreeSet::from([Tagged::NetworkInterface, Tagged::SpotInstancesRequest]);
    for (capacity, preference, target, market, tagged) in [
        (Capacity::OnDemand { open: false }, Preference::None, None, None, &nic),
        (Capacity::OnDemand { open: true }, Preference::Open, None, None, &nic),
        (Capacity::Spot, Preference::None, None, None, &spot),
        (reserved(None), Preference::Only, Some("cr-0a"), None, &nic),
        (
            reserved(Some(Market::CapacityBlock)),
            Preference::Only,
            Some("cr-0a"),
            Some(Market::CapacityBlock),
            &nic,
        ),
        (
            reserved(Some(Market::Interruptible)),
            Preference::Only,
            Some("cr-0a"),
            Some(Market::Interruptible),
            &nic,
        ),
    ] {
        let template = specified(&settings(), &Occasion { capacity, ..occasion() }).template;
        assert_eq!(template.reservations.preference, preference);
        assert_eq!(template.reservations.target.as_ref().map(ReservationId::as_str), target);
        assert_eq!(template.market, market);
        assert_eq!(template.tagged, *tagged);
    }
}

#[test]
fn our_tags_are_protected() {
    let tag = |key: &str, value: &str| Settings {
        tags: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        ..settings()
    };
    let long_key = "k".repeat(129);
    let long_value = "v".repeat(257);
    for (key, value, expected) in [
        ("team", "platform", ""),
        ("kubernetes.io/role", "x", ""),
        ("karpenter.sh/nodepool-owner", "x", ""),
        ("", "x", "spec.tags: empty tag keys aren't supported"),
        (
            "eks:eks-cluster-name",
            "x",
            "spec.tags[eks:eks-cluster-name]: tag contains a restricted tag matching eks:eks-cluster-name",
        ),
        (
            "kubernetes.io/cluster/other",
            "owned",
            "spec.tags[kubernetes.io/cluster/other]: tag contains a restricted tag matching kubernetes.io/cluster/",
        ),
        (
            "kubernetes.io/cluster",
            "x",
            "spec.tags[kubernetes.io/cluster]: tag contains a restricted tag matching kubernetes.io/cluster/",
        ),
        (
            "karpenter.sh/nodepool",
            "x",
            "spec.tags[karpenter.sh/nodepool]: tag contains a restricted tag matching karpenter.sh/nodepool",
        ),
        (
            "karpenter.sh/nodeclaim",
            "x",
            "spec.tags[karpenter.sh/nodeclaim]: tag contains a restricted tag matching karpenter.sh/nodeclaim",
        ),
        (
            "karpenter.k8s.aws/ec2nodeclass",
            "x",
            "spec.tags[karpenter.k8s.aws/ec2nodeclass]: tag contains a restricted tag matching karpenter.k8s.aws/ec2nodeclass",
        ),
        ("AWS:x", "x", "spec.tags[AWS:x]: `AWS:x` is a key that only AWS may write"),
    ] {
        assert_eq!(refused(&tag(key, value)).join("; "), expected);
    }
    assert_eq!(refused(&tag(&long_key, "x")).len(), 1);
    assert_eq!(refused(&tag("long", &long_value)).len(), 1);
    let many = |count| (0..count).map(|it| (format!("tag-{it}"), String::new())).collect();
    assert!(refused(&Settings { tags: many(44), ..settings() }).is_empty());
    assert_eq!(
        refused(&Settings { tags: many(45), ..settings() }),
        ["spec.tags: has 45 tags, must have at most 44"]
    );

    let template = specified(&tag("team", "platform"), &occasion()).template;
    let tags: Vec<String> = template.tags.iter().map(|(key, it)| format!("{key}={it}")).collect();
    assert_eq!(
        tags,
        [
            "eks:eks-cluster-name=blue",
            "karpenter.k8s.aws/ec2nodeclass=general",
            "karpenter.sh/nodepool=web",
            "kubernetes.io/cluster/blue=owned",
            "team=platform",
        ]
    );
}

/// Nodes in the field carry these. A change here makes templates anew, and for the second one needs a
/// new version, or it replaces every fleet.
#[test]
fn digests_stay_what_they_are() {
    let specification = specified(&settings(), &occasion());
    assert_eq!(specification.template.name(), NAME_OF_THE_PLAIN_ONE);
    assert_eq!(specification.static_digest.as_str(), DIGEST_OF_THE_PLAIN_ONE);
    assert!(StaticDigest::comparable(DIGEST_OF_THE_PLAIN_ONE));
    let other = DIGEST_OF_THE_PLAIN_ONE.replace("v1:", "v2:");
    for written in ["", "v6", "11148166120438674859", STATIC_VERSION, other.as_str()] {
        assert!(!StaticDigest::comparable(written), "{written}");
    }
}

const NAME_OF_THE_PLAIN_ONE: &str =
    "nodemolt/d74b0be77d187916c1e7ba4c88f7d1da99e8dabbdc70537aeca3e222a2eeb1b7";
const DIGEST_OF_THE_PLAIN_ONE: &str =
    "nodemolt-static/v1:e9ad9715cbe6913ee7a29e8d8e30d49ddfd1ae7d64d45ee489da88682d037620";

/// What is changed, whether that is noticed, and how.
type Change<T> = (&'static str, bool, fn(&mut T));

/// One change to a class each, and whether nodes must be replaced for it.
fn class_changes() -> Vec<Change<Settings>> {
    vec![
        ("class", false, |it| it.class = "other".into()),
        ("family", true, |it| it.family = Family::Al2),
        ("block device", true, |it| it.block_devices = vec![device("/dev/xvda", sized("30Gi"))]),
        ("the family's own volume, written out", false, |it| {
            let volume =
                Volume { kind: Some(VolumeType::Gp3), encrypted: Some(true), ..sized("20Gi") };
            it.block_devices = vec![device("/dev/xvda", volume)];
        }),
        ("instance store", true, |it| it.instance_store = Some(InstanceStorePolicy::Raid0)),
        ("endpoint", true, |it| it.metadata.endpoint = Switch::Disabled),
        ("metadata ipv6", true, |it| it.metadata.ipv6 = Some(Switch::Enabled)),
        ("hop limit", true, |it| it.metadata.hop_limit = 2),
        ("tokens", true, |it| it.metadata.tokens = Tokens::Optional),
        ("interfaces", true, |it| it.interfaces = vec![written(0, 0, WrittenKind::Interface)]),
        ("public address", true, |it| it.public_ip = Some(true)),
        ("no public address", true, |it| it.public_ip = Some(false)),
        ("prefixes", false, |it| it.ip_prefixes = Some(2)),
        ("tracking", true, |it| {
            it.connection_tracking =
                Some(ConnectionTracking { udp: Some(30), ..ConnectionTracking::default() });
        }),
        ("tags", true, |it| {
            it.tags.insert("team".to_owned(), "platform".to_owned());
        }),
        ("role", true, |it| it.identity = Identity::Role("other".to_owned())),
        ("profile", true, |it| it.identity = Identity::InstanceProfile("node".to_owned())),
        ("monitoring", true, |it| it.detailed_monitoring = true),
        ("cores", true, |it| {
            it.cpu = Cpu { cores: Some(2), threads_per_core: Some(1), ..Cpu::default() };
        }),
        ("sev-snp", true, |it| it.cpu.amd_sev_snp = Some(Switch::Enabled)),
        ("nested", true, |it| it.cpu.nested_virtualization = Some(Switch::Enabled)),
        ("group by name", true, |it| {
            it.placement_group = Some(PlacementGroup::Name("pg-0a".to_owned()));
        }),
        ("group by id", true, |it| {
            it.placement_group = Some(PlacementGroup::Id("pg-0a".parse().unwrap()));
        }),
        ("context", true, |it| it.context = Some("x".to_owned())),
        ("user part", true, |it| it.user_part = Some("echo".to_owned())),
        ("white space as user part", false, |it| it.user_part = Some(" \n".to_owned())),
        ("placement", true, |it| {
            it.user_part_placement = Placement::BetweenBootstrapAndKubelet;
        }),
        ("kubelet", true, |it| it.kubelet = json!({"maxPods": 20})),
    ]
}

/// One change to a launch each. None of them is the class's doing.
fn occasion_changes() -> Vec<Change<Occasion>> {
    vec![
        ("cluster", true, |it| it.cluster = "green".into()),
        ("pool", true, |it| it.pool = "batch".into()),
        ("region", true, |it| it.region = Some("us-isob-east-1".to_owned())),
        ("ip family", true, |it| it.ip_family = IpFamily::V6),
        ("image", true, |it| it.image = "ami-0123456789abcdef1".parse().unwrap()),
        ("instance types", false, |it| it.instance_types.clear()),
        ("zones", false, |it| it.zones.clear()),
        ("open reservations", true, |it| it.capacity = Capacity::OnDemand { open: true }),
        ("spot", true, |it| it.capacity = Capacity::Spot),
        ("reservation", true, |it| {
            let id = "cr-0a".parse().unwrap();
            it.capacity = Capacity::Reserved(Reservation { id, market: None });
        }),
        ("security groups", true, |it| it.security_groups = groups(&["sg-0b"])),
        ("profile", true, |it| it.instance_profile = "other".into()),
        ("user data", true, |it| it.user_data = Some("echo".to_owned())),
        ("no user data", true, |it| it.user_data = None),
        ("efa", true, |it| it.efa = 1),
        ("tenancy", true, |it| it.tenancy = Some(Tenancy::Default)),
        ("dedicated", true, |it| it.tenancy = Some(Tenancy::Dedicated)),
        ("enclave", true, |it| it.enclave = true),
    ]
}

#[test]
fn the_static_digest_notices_what_only_a_new_machine_can_honour() {
    let before = settings().static_digest();
    let mut seen = BTreeSet::from([before.clone()]);
    for (what, noticed, change) in class_changes() {
        let mut settings = settings();
        change(&mut settings);
        let after = settings.static_digest();
        assert_eq!(after != before, noticed, "{what}");
        assert_eq!(seen.insert(after), noticed, "{what} has the digest of another change");
    }
    for (what, _, change) in occasion_changes() {
        let mut occasion = occasion();
        change(&mut occasion);
        assert_eq!(specified(&settings(), &occasion).static_digest, before, "{what}");
    }
}

#[test]
fn the_name_follows_the_content_of_the_template_and_nothing_else() {
    let before = specified(&settings(), &occasion()).template.name();
    let mut seen = BTreeSet::from([before.clone()]);
    for (what, changes, change) in occasion_changes() {
        let mut occasion = occasion();
        change(&mut occasion);
        let after = specified(&settings(), &occasion).template.name();
        assert_eq!(after != before, changes, "{what}");
        assert_eq!(seen.insert(after), changes, "{what} has the name of another change");
    }
    for (what, _, change) in class_changes() {
        let mut settings = settings();
        change(&mut settings);
        let template = specified(&settings, &occasion()).template;
        let same = template == specified(&self::settings(), &occasion()).template;
        assert_eq!(template.name() == before, same, "{what}");
    }
}

#[test]
fn a_name_is_one_that_ec2_admits() {
    let name = specified(&settings(), &occasion()).template.name();
    assert!((3..=128).contains(&name.len()));
    assert!(name.bytes().all(|it| it.is_ascii_alphanumeric() || b"().-/_".contains(&it)));
}

prop_compose! {
    fn any_volume()(
        size in option::of(0u32..70_000),
        kind in option::of(select(VolumeType::ALL.to_vec())),
        encrypted in any::<Option<bool>>(),
        delete_on_termination in any::<Option<bool>>(),
        iops in any::<Option<i64>>(),
        throughput in any::<Option<i64>>(),
        kms_key in option::of(".{0,9}"),
        snapshot in option::of("snap-[a-f]{1,3}"),
        initialization_rate in any::<Option<i64>>(),
    ) -> Volume {
        Volume {
            size: size.map(|gib| VolumeSize { gib }), kind, encrypted, delete_on_termination, iops,
            throughput, kms_key, snapshot, initialization_rate,
        }
    }
}

prop_compose! {
    fn any_device()(name in option::of("(/dev/)?[a-z]{0,3}"), volume in option::of(any_volume()))
        -> BlockDevice
    {
        BlockDevice { name, volume }
    }
}

prop_compose! {
    /// Mostly nonsense.
    fn any_settings()(
        family in select(Family::ALL.to_vec()),
        block_devices in vec(any_device(), 0..5),
        hop_limit in any::<i64>(),
        interfaces in vec((any::<i64>(), -1i64..3, select(WrittenKind::ALL.to_vec())), 0..5),
        public_ip in any::<Option<bool>>(),
        ip_prefixes in any::<Option<i64>>(),
        tracking in option::of((any::<Option<i64>>(), any::<Option<i64>>(), any::<Option<i64>>())),
        tags in proptest::collection::btree_map(".{0,5}|aws:.|kubernetes.io/cluster.", ".*", 0..5),
        role in ".{0,3}",
        cpu in (any::<Option<i64>>(), any::<Option<i64>>()),
    ) -> Settings {
        let mut settings = Settings::of("general", family, &role);
        settings.block_devices = block_devices;
        settings.metadata.hop_limit = hop_limit;
        settings.interfaces =
            interfaces.into_iter().map(|(card, device, kind)| written(card, device, kind)).collect();
        settings.public_ip = public_ip;
        settings.ip_prefixes = ip_prefixes;
        settings.connection_tracking = tracking.map(|(tcp_established, udp_stream, udp)| {
            ConnectionTracking { tcp_established, udp_stream, udp }
        });
        settings.tags = tags;
        (settings.cpu.cores, settings.cpu.threads_per_core) = cpu;
        settings
    }
}

prop_compose! {
    /// Passes every check.
    fn good_settings()(
        family in select(Family::ALL.to_vec()),
        sizes in proptest::collection::btree_map("/dev/sd[b-z]", 4u32..16_000, 0..6),
        cards in proptest::collection::btree_set(1i64..20, 0..6),
        prefixes in option::of(0i64..9),
        tags in proptest::collection::btree_map("[a-z]{1,8}", "[a-z]{0,8}", 0..6),
    ) -> Settings {
        let mut settings = Settings::of("general", family, "node");
        settings.block_devices = sizes
            .into_iter()
            .map(|(name, gib)| device(&name, sized(&format!("{gib}Gi"))))
            .collect();
        if !cards.is_empty() {
            settings.interfaces = std::iter::once(written(0, 0, WrittenKind::Interface))
                .chain(cards.into_iter().map(|it| written(it, 0, WrittenKind::EfaOnly)))
                .collect();
        }
        settings.ip_prefixes = prefixes;
        settings.tags = tags;
        settings
    }
}

prop_compose! {
    fn any_occasion()(
        ids in proptest::collection::btree_set("sg-[0-9a-f]{1,4}", 1..4),
        spot in any::<bool>(),
        six in any::<bool>(),
        efa in 0u32..5,
        user_data in option::of("[ -~]{0,40}"),
    ) -> Occasion {
        Occasion {
            security_groups: ids.iter().map(|it| it.parse().unwrap()).collect(),
            capacity: if spot { Capacity::Spot } else { Capacity::OnDemand { open: false } },
            ip_family: if six { IpFamily::V6 } else { IpFamily::V4 },
            efa,
            user_data,
            ..occasion()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Whatever a class holds, there is an answer: a specification or findings, each with its remedy.
    #[test]
    fn nothing_panics(settings in any_settings(), occasion in any_occasion()) {
        settings.static_digest();
        if let Err(found) = specify(&settings, &occasion) {
            prop_assert!(!found.is_empty());
            for it in found {
                prop_assert!(it.field.starts_with("spec"));
                prop_assert!(!it.message.is_empty() && !it.remedy.is_empty());
            }
        }
    }

    /// The order in which a class lists things is no content.
    #[test]
    fn shuffled_lists_change_neither_name_nor_digest(
        (settings, shuffled) in good_settings().prop_flat_map(|it| {
            let devices = Just(it.block_devices.clone()).prop_shuffle();
            let interfaces = Just(it.interfaces.clone()).prop_shuffle();
            (Just(it), devices, interfaces).prop_map(|(it, block_devices, interfaces)| {
                (it.clone(), Settings { block_devices, interfaces, ..it })
            })
        }),
        occasion in any_occasion(),
    ) {
        let (one, other) = (specified(&settings, &occasion), specified(&shuffled, &occasion));
        prop_assert_eq!(one.template.name(), other.template.name());
        prop_assert_eq!(&one, &other);
    }

    /// Equal content ⇔ equal name.
    #[test]
    fn content_and_name_are_equal_together(
        left in good_settings(), right in good_settings(),
        here in any_occasion(), there in any_occasion(),
    ) {
        let one = specified(&left, &here).template;
        let again = specified(&left.clone(), &here.clone()).template;
        let other = specified(&right, &there).template;
        prop_assert_eq!(one.name(), again.name());
        prop_assert_eq!(one == other, one.name() == other.name());
    }

    /// An interface without addresses has nothing that goes with one; there is always a first one.
    #[test]
    fn interfaces_are_whole(settings in good_settings(), occasion in any_occasion()) {
        let template = specified(&settings, &occasion).template;
        prop_assert!(template.interfaces.iter().any(|it| it.device == 0 && it.card.unwrap_or(0) == 0));
        for it in &template.interfaces {
            prop_assert!(!it.security_groups.is_empty());
            if it.kind == InterfaceKind::EfaOnly {
                prop_assert!(it.public_ip.is_none() && !it.ipv6 && it.prefixes.is_none());
            }
        }
    }
}
