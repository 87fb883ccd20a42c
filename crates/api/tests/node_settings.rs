//! What a class says about capacity is read exactly, or refused by field.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::{collections::BTreeMap, fmt::Write as _};

use nodemolt_api::{
    ec2nodeclass::EC2NodeClass,
    file::{Object, Source, read},
};
use nodemolt_fit::{
    Family, Quantity,
    capacity::{BlockDevice, NodeSettings, Threshold, WrittenInterfaces},
};
use proptest::prelude::*;

/// A class whose spec is this, in YAML's flow style.
#[track_caller]
fn class(spec: &str) -> EC2NodeClass {
    let text = format!(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: c}}\nspec: {spec}\n"
    );
    let (objects, problems) = read(&Source { name: "f.yaml".to_owned(), text });
    assert!(problems.is_empty(), "{problems:?}");
    match objects.into_iter().map(|it| it.value).next() {
        Some(Object::Class(class)) => class,
        other => panic!("expected a class, found {other:?}"),
    }
}

#[track_caller]
fn settings(spec: &str) -> NodeSettings {
    NodeSettings::try_from(&class(spec)).unwrap()
}

/// With the beginning of a class that boots AL2023.
#[track_caller]
fn of_al2023(rest: &str) -> NodeSettings {
    settings(&format!("{{amiSelectorTerms: [{{alias: al2023@latest}}], {rest}}}"))
}

#[track_caller]
fn check_refused(rest: &str, expected: &str) {
    let class = class(&format!("{{amiFamily: AL2023, {rest}}}"));
    let findings = NodeSettings::try_from(&class).unwrap_err();
    let mut told = String::new();
    for it in findings {
        writeln!(told, "{}: {}", it.field, it.message).unwrap();
        if let Some(hint) = it.hint {
            writeln!(told, "  {hint}").unwrap();
        }
    }
    let expected: String = expected
        .lines()
        .map(|it| it.strip_prefix("        ").unwrap_or(it))
        .fold(String::new(), |all, it| if it.trim().is_empty() { all } else { all + it + "\n" });
    assert_eq!(told, expected);
}

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

fn quantities(all: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
    all.iter().map(|(key, text)| ((*key).to_owned(), quantity(text))).collect()
}

#[test]
fn a_class_that_says_nothing_has_the_defaults_of_its_family() {
    assert_eq!(of_al2023("role: r"), NodeSettings::of(Family::Al2023));
    assert_eq!(settings("{amiFamily: Bottlerocket}"), NodeSettings::of(Family::Bottlerocket));
    // The family beside an alias wins: a custom boot of a stock image.
    let custom = settings("{amiFamily: Custom, amiSelectorTerms: [{alias: al2@latest}]}");
    assert_eq!(custom, NodeSettings::of(Family::Custom));
    assert_eq!(of_al2023("kubelet: {}"), NodeSettings::of(Family::Al2023));
}

#[test]
fn pods_are_a_number_or_a_text_that_holds_one() {
    assert_eq!(of_al2023("kubelet: {maxPods: 58}").max_pods, Some(58));
    assert_eq!(of_al2023("kubelet: {maxPods: '58'}").max_pods, Some(58));
    assert_eq!(of_al2023("kubelet: {maxPods: 0, podsPerCore: 0}").pods_per_core, Some(0));
    assert_eq!(of_al2023("kubelet: {podsPerCore: 4}").pods_per_core, Some(4));
}

#[test]
fn reserved_parts_are_read_exactly() {
    let read = of_al2023(
        "kubelet: {kubeReserved: {cpu: 200m, memory: 1.5Gi, ephemeral-storage: 2G, pid: '1000'}, \
         systemReserved: {memory: 100Mi}}",
    );
    let expected = [
        ("cpu", "200m"),
        ("memory", "1536Mi"),
        ("ephemeral-storage", "2000000000"),
        ("pid", "1000"),
    ];
    assert_eq!(read.kube_reserved, quantities(&expected));
    assert_eq!(read.system_reserved, quantities(&[("memory", "100Mi")]));
}

#[test]
fn thresholds_are_shares_or_quantities() {
    let read = of_al2023(
        "kubelet: {evictionHard: {memory.available: 7.5%, nodefs.available: 3Gi, \
         nodefs.inodesFree: 5%, pid.available: '0'}}",
    );
    let expected = [
        ("memory.available", Threshold::Share { millionths: 75_000 }),
        ("nodefs.available", Threshold::Fixed(quantity("3Gi"))),
        ("nodefs.inodesFree", Threshold::Share { millionths: 50_000 }),
        ("pid.available", Threshold::Fixed(Quantity::ZERO)),
    ];
    let expected = expected.map(|(signal, it)| (signal.to_owned(), it));
    assert_eq!(read.eviction_hard, BTreeMap::from(expected));
}

#[test]
fn volumes_need_neither_a_name_nor_a_size() {
    let read = of_al2023(
        "blockDeviceMappings: [{}, {deviceName: /dev/xvda}, {ebs: {volumeSize: 30Gi}}, \
         {deviceName: /dev/xvdb, rootVolume: true, ebs: {snapshotID: snap-1}}]",
    );
    let device = |name: Option<&str>, root_volume, size: Option<&str>| BlockDevice {
        device_name: name.map(str::to_owned),
        root_volume,
        size: size.map(quantity),
    };
    let expected = [
        device(None, false, None),
        device(Some("/dev/xvda"), false, None),
        device(None, false, Some("30Gi")),
        device(Some("/dev/xvdb"), true, None),
    ];
    assert_eq!(read.block_devices, expected);
    assert!(of_al2023("instanceStorePolicy: RAID0").instance_store_raid0);
}

#[test]
fn interfaces_that_were_written_count_even_if_there_are_none() {
    assert_eq!(of_al2023("role: r").interfaces, None);
    let none = WrittenInterfaces { efa_only: 0, efa_only_on_card_0: 0 };
    assert_eq!(of_al2023("networkInterfaces: []").interfaces, Some(none));
    let read = of_al2023(
        "networkInterfaces: [\
         {networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, \
         {networkCardIndex: 0, deviceIndex: 1, interfaceType: efa-only}, \
         {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}]",
    );
    let expected = WrittenInterfaces { efa_only: 2, efa_only_on_card_0: 1 };
    assert_eq!(read.interfaces, Some(expected));
}

#[test]
fn expressions_are_refused_by_name() {
    check_refused(
        "kubelet: {maxPods: 'min(vcpus * 10, 110)', \
         kubeReserved: {memory: 255 + 11 * max_pods, cpu: 10 * vcpus}}",
        "
        spec.kubelet.maxPods: `min(vcpus * 10, 110)` is an expression, and expressions are not evaluated in this version
          write a whole number, such as `110`
        spec.kubelet.kubeReserved.cpu: `10 * vcpus` is an expression, and expressions are not evaluated in this version
          write a quantity, such as `500Mi`
        spec.kubelet.kubeReserved.memory: `255 + 11 * max_pods` is an expression, and expressions are not evaluated in this version
          write a quantity, such as `500Mi`
        ",
    );
}

#[test]
fn what_cannot_be_meant_is_told_all_at_once() {
    check_refused(
        "kubelet: {maxPods: -1, podsPerCore: -2, kubeReserved: {cpu: -100m, memroy: 1Gi}, \
         systemReserved: {memory: 1GB}, \
         evictionHard: {memory.available: 110%, nodefs.available: some, \
         imagefs.available: -1Gi, memory.free: 5%}}",
        "
        spec.kubelet.maxPods: `-1` can't be negative
        spec.kubelet.podsPerCore: `-2` can't be negative
        spec.kubelet.kubeReserved.cpu: `-100m` can't be a negative resource quantity
        spec.kubelet.kubeReserved.memroy: `memroy` isn't a reservable resource, must be one of cpu, memory, ephemeral-storage, pid
          did you mean `memory`?
        spec.kubelet.systemReserved.memory: `1GB` is not a quantity: there is no unit `GB`, write `G` or `Gi`
        spec.kubelet.evictionHard[imagefs.available]: `-1Gi` can't be a negative resource quantity
        spec.kubelet.evictionHard[memory.available]: `110%` must be a percentage from 0 to 100
          write it like `5%` or `7.5%`
        spec.kubelet.evictionHard[memory.free]: `memory.free` isn't a valid eviction signal, must be one of memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available
        spec.kubelet.evictionHard[nodefs.available]: `some` must be a percentage or a resource quantity
          `some` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`
        ",
    );
    check_refused(
        "instanceStorePolicy: raid0, \
         blockDeviceMappings: [{rootVolume: true, ebs: {volumeSize: Ti}}, \
         {rootVolume: true, ebs: {volumeSize: 0Gi}}], \
         networkInterfaces: [{networkCardIndex: -1, deviceIndex: 0, interfaceType: efa}]",
        "
        spec.instanceStorePolicy: `raid0` is not a policy for local disks
          write `RAID0` or remove it
        spec.blockDeviceMappings: must have only one blockDeviceMappings with rootVolume
        spec.blockDeviceMappings[0].ebs.volumeSize: `Ti` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`
        spec.blockDeviceMappings[1].ebs.volumeSize: `0Gi` is no size for a volume
          write a size such as `20Gi`
        spec.networkInterfaces[0].networkCardIndex: `-1` can't be negative
        spec.networkInterfaces[0].interfaceType: `efa` is not a type of interface
          write `interface` or `efa-only`
        ",
    );
}

proptest! {
    /// Whatever stands in the texts, it is read or refused.
    #[test]
    fn no_text_stops_the_reader(text in ".{0,40}", signal in "[a-z.%]{0,20}") {
        let mut class = class("{amiFamily: AL2023, kubelet: {maxPods: 1}}");
        let kubelet = class.spec.kubelet.as_mut().unwrap();
        let map = |key: &str| Some(BTreeMap::from([(key.to_owned(), text.clone())]));
        kubelet.max_pods = Some(nodemolt_api::meta::IntOrString::String(text.clone()));
        kubelet.kube_reserved = map("cpu");
        kubelet.system_reserved = map(&signal);
        kubelet.eviction_hard = map("memory.available");
        class.spec.instance_store_policy = Some(text.clone());
        let _ = NodeSettings::try_from(&class);
    }
}
