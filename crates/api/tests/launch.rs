//! What does a class say of how its nodes are started? Every field arrives, and what cannot be read is
//! told by field.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use nodemolt_api::ec2nodeclass::EC2NodeClass;
use nodemolt_api::into_launch::Known;
use nodemolt_core::bootstrap::Placement;
use nodemolt_core::launch::{
    Identity, InstanceStorePolicy, Market, Metadata, PlacementGroup, SecurityGroupId, Settings,
    Switch, Tokens, VolumeSize, VolumeType, WrittenKind,
};
use nodemolt_fit::Family;
use serde_json::{Value, json};

fn class(spec: &Value) -> EC2NodeClass {
    let mut whole = json!({
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "node",
        "subnetSelectorTerms": [{"id": "subnet-0a"}],
        "securityGroupSelectorTerms": [{"tags": {"team": "web"}}],
    });
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    serde_json::from_value(json!({
        "apiVersion": "nodemolt.dev/v1alpha1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "general"},
        "spec": whole,
    }))
    .unwrap()
}

fn settings(spec: &Value) -> Settings {
    Settings::try_from(&class(spec)).unwrap()
}

fn fields(spec: &Value) -> Vec<String> {
    let found = Settings::try_from(&class(spec)).unwrap_err();
    assert!(found.iter().all(|it| it.hint.is_some()), "a finding without a remedy: {found:#?}");
    found.into_iter().map(|it| it.field).collect()
}

#[test]
fn a_class_that_says_nothing_has_the_defaults() {
    let expected = Settings::of("general", Family::Al2023, "node");
    assert_eq!(settings(&json!({})), expected);
    // Nothing, written out.
    let nothing = json!({
        "kubelet": {}, "metadataOptions": {}, "tags": {}, "blockDeviceMappings": [],
        "networkInterfaces": [], "cpuOptions": {}, "detailedMonitoring": false,
        "userDataPlacement": "BeforeBootstrap",
    });
    assert_eq!(settings(&nothing), expected);
    assert_eq!(expected.metadata, Metadata::default());
}

#[test]
fn every_field_arrives() {
    let settings = settings(&json!({
        "amiFamily": "AL2023",
        "role": null,
        "instanceProfile": "nodes",
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {
            "volumeSize": "20G", "volumeType": "gp3", "iops": 4000, "throughput": 200,
            "encrypted": true, "kmsKeyID": "alias/nodes", "snapshotID": "snap-0a",
            "deleteOnTermination": true, "volumeInitializationRate": 150,
        }}],
        "instanceStorePolicy": "RAID0",
        "metadataOptions": {"httpTokens": "optional", "httpProtocolIPv6": "enabled"},
        "networkInterfaces": [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": 1, "deviceIndex": 2, "interfaceType": "efa-only"},
        ],
        "associatePublicIPAddress": false,
        "ipPrefixCount": 3,
        "connectionTracking": {"udpTimeout": 30},
        "tags": {"team": "web"},
        "detailedMonitoring": true,
        "cpuOptions": {"coreCount": 2, "threadsPerCore": 1, "nestedVirtualization": "enabled"},
        "placementGroupSelector": {"id": "pg-0a"},
        "context": "c",
        "userData": "echo",
        "userDataPlacement": "BetweenBootstrapAndKubelet",
        "kubelet": {"maxPods": 20},
    }));
    let volume = settings.block_devices[0].volume.clone().unwrap();
    assert_eq!(volume.size, Some(VolumeSize { gib: 19 }));
    assert_eq!((volume.kind, volume.iops), (Some(VolumeType::Gp3), Some(4000)));
    assert_eq!((volume.throughput, volume.initialization_rate), (Some(200), Some(150)));
    assert_eq!((volume.encrypted, volume.delete_on_termination), (Some(true), Some(true)));
    assert_eq!(volume.kms_key.as_deref(), Some("alias/nodes"));
    assert_eq!(volume.snapshot.as_deref(), Some("snap-0a"));
    assert_eq!(settings.instance_store, Some(InstanceStorePolicy::Raid0));
    assert_eq!(
        settings.metadata,
        Metadata { tokens: Tokens::Optional, ipv6: Some(Switch::Enabled), ..Metadata::default() }
    );
    let last = settings.interfaces[1];
    assert_eq!((last.card, last.device, last.kind), (1, 2, WrittenKind::EfaOnly));
    assert_eq!((settings.public_ip, settings.ip_prefixes), (Some(false), Some(3)));
    assert_eq!(settings.connection_tracking.unwrap().udp, Some(30));
    assert_eq!(settings.tags["team"], "web");
    assert_eq!(settings.identity, Identity::InstanceProfile("nodes".to_owned()));
    assert!(settings.detailed_monitoring);
    assert_eq!((settings.cpu.cores, settings.cpu.threads_per_core), (Some(2), Some(1)));
    assert_eq!(settings.cpu.nested_virtualization, Some(Switch::Enabled));
    assert_eq!(settings.placement_group, Some(PlacementGroup::Id("pg-0a".parse().unwrap())));
    assert_eq!(settings.context.as_deref(), Some("c"));
    assert_eq!(settings.user_part.as_deref(), Some("echo"));
    assert_eq!(settings.user_part_placement, Placement::BetweenBootstrapAndKubelet);
    assert_eq!(settings.kubelet, json!({"maxPods": 20}));
}

#[test]
fn what_cannot_be_meant_is_told_by_field() {
    for (spec, expected) in [
        (json!({"role": null}), vec!["spec"]),
        (json!({"instanceProfile": "nodes"}), vec!["spec.instanceProfile"]),
        (json!({"role": ""}), vec!["spec.role"]),
        (json!({"instanceStorePolicy": "RAID1"}), vec!["spec.instanceStorePolicy"]),
        (json!({"userDataPlacement": "After"}), vec!["spec.userDataPlacement"]),
        (
            json!({"metadataOptions": {"httpEndpoint": "on", "httpPutResponseHopLimit": 65}}),
            vec![
                "spec.metadataOptions.httpEndpoint",
                "spec.metadataOptions.httpPutResponseHopLimit",
            ],
        ),
        (
            json!({"blockDeviceMappings": [{"ebs": {"volumeSize": "Ti", "volumeType": "gp4"}}]}),
            vec![
                "spec.blockDeviceMappings[0].ebs.volumeSize",
                "spec.blockDeviceMappings[0].ebs.volumeType",
                "spec.blockDeviceMappings[0].deviceName",
            ],
        ),
        (
            json!({"blockDeviceMappings": [
                {"deviceName": "a", "rootVolume": true, "ebs": {"volumeSize": "1Gi"}},
                {"deviceName": "b", "rootVolume": true, "ebs": {"volumeSize": "1Gi"}},
            ]}),
            vec!["spec.blockDeviceMappings"],
        ),
        (json!({"placementGroupSelector": {}}), vec!["spec.placementGroupSelector"]),
        (
            json!({"placementGroupSelector": {"name": "a", "id": "pg-0a"}}),
            vec!["spec.placementGroupSelector"],
        ),
        (json!({"placementGroupSelector": {"id": "a"}}), vec!["spec.placementGroupSelector.id"]),
        (json!({"subnetSelectorTerms": null}), vec!["spec.subnetSelectorTerms"]),
        (json!({"subnetSelectorTerms": [{}]}), vec!["spec.subnetSelectorTerms[0]"]),
        (
            // Karpenter lets this pass, because the other term is in order.
            json!({"subnetSelectorTerms": [{"id": "subnet-0a"}, {"id": "subnet-0b", "tags": {"a": "b"}}]}),
            vec!["spec.subnetSelectorTerms[1].id"],
        ),
        (
            json!({"securityGroupSelectorTerms": [{"name": "a", "tags": {"a": ""}}]}),
            vec![
                "spec.securityGroupSelectorTerms[0].tags",
                "spec.securityGroupSelectorTerms[0].name",
            ],
        ),
        (
            json!({"capacityReservationSelectorTerms": [{"ownerID": "1"}, {"instanceMatchCriteria": "any"}]}),
            vec![
                "spec.capacityReservationSelectorTerms[0]",
                "spec.capacityReservationSelectorTerms[0].ownerID",
                "spec.capacityReservationSelectorTerms[1].instanceMatchCriteria",
            ],
        ),
    ] {
        assert_eq!(fields(&spec), expected, "{spec}");
    }
}

#[test]
fn the_status_knows_what_the_selectors_found() {
    let mut class = class(&json!({}));
    assert_eq!(Known::of(&class), Known::default());
    class.status = serde_json::from_value(json!({
        "instanceProfile": "made",
        "securityGroups": [{"id": "sg-0b"}, {"id": "sg-0a", "name": "x"}, {"id": "?"}, {}],
        "capacityReservations": [
            {"id": "cr-0a", "reservationType": "default"},
            {"id": "cr-0b", "reservationType": "capacity-block"},
            {"id": "cr-0c", "reservationType": "default", "interruptible": true},
            {"id": "nonsense"},
        ],
    }))
    .unwrap();
    let known = Known::of(&class);
    assert_eq!(known.instance_profile.as_deref(), Some("made"));
    let groups: Vec<&str> = known.security_groups.iter().map(SecurityGroupId::as_str).collect();
    assert_eq!(groups, ["sg-0a", "sg-0b"]);
    let markets: Vec<Option<Market>> = known.reservations.values().map(|it| it.market).collect();
    assert_eq!(markets, [None, Some(Market::CapacityBlock), Some(Market::Interruptible)]);
}

#[test]
fn ids_in_the_selectors_need_no_status() {
    let known = |groups: Value| Known::of(&class(&json!({"securityGroupSelectorTerms": groups})));
    assert_eq!(known(json!([{"id": "sg-0a"}, {"id": "sg-0b"}])).security_groups.len(), 2);
    // Who also selects by tag means more groups than can be known here.
    let mixed = known(json!([{"id": "sg-0a"}, {"tags": {"a": "b"}}]));
    assert!(mixed.security_groups.is_empty());
}
