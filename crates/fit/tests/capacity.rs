//! What a node of a type would offer: each formula by hand, on real types of the shipped table.
//!
//! A case's answer reads `capacity - what is kept back = allocatable`, and the comment above it has
//! the working of every number that is not copied from the table.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::{collections::BTreeMap, fmt::Write};

use nodemolt_fit::{
    Quantity,
    capacity::{
        BlockDevice, EPHEMERAL_STORAGE, NodeSettings, PODS, Threshold, WrittenInterfaces, offer,
    },
    family::Family,
    instance_type::{Gpu, InstanceType},
    types::Types,
};
use proptest::{collection, option, prelude::*, sample::select};

fn shipped(name: &str) -> InstanceType {
    Types::shipped().find(name).unwrap().clone()
}

fn al2023() -> NodeSettings {
    NodeSettings::of(Family::Al2023)
}

/// The lines of the answer must be those expected; if these end in `…`, there may be others.
#[track_caller]
fn check(it: &InstanceType, settings: &NodeSettings, expected: &str) {
    let rendered = render(it, settings);
    let rendered: Vec<&str> = rendered.lines().collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    if let Some((&"…", named)) = expected.split_last() {
        for line in named {
            assert!(rendered.contains(line), "no line\n{line}\nin\n{}", rendered.join("\n"));
        }
    } else {
        assert_eq!(rendered.join("\n"), expected.join("\n"));
    }
}

fn render(it: &InstanceType, settings: &NodeSettings) -> String {
    let offer = offer(it, settings);
    let kept = [
        ("kube", &offer.kube_reserved),
        ("system", &offer.system_reserved),
        ("eviction", &offer.eviction),
    ];
    let mut text = String::new();
    for (name, capacity) in &offer.capacity {
        let capacity = print(name, *capacity);
        let rest = print(name, *offer.allocatable.get(name).unwrap());
        write!(text, "{name} {capacity}").unwrap();
        for (part, amounts) in kept {
            if let Some(amount) = amounts.get(name) {
                write!(text, " - {part} {}", print(name, *amount)).unwrap();
            }
        }
        if kept.iter().any(|(_, amounts)| amounts.contains_key(name)) {
            write!(text, " = {rest}").unwrap();
        } else {
            assert_eq!(rest, capacity);
        }
        text.push('\n');
    }
    text
}

/// Cores in millicores, memory in Mi, storage in Gi or Mi; in bytes what is not whole in these.
fn print(name: &str, amount: Quantity) -> String {
    let units = amount.ceil_units();
    let whole = |bits: u32| units != 0 && units % (1 << bits) == 0;
    match name {
        "cpu" => format!("{}m", amount.ceil_millis()),
        "ephemeral-storage" if whole(30) => format!("{}Gi", units >> 30),
        "memory" | "ephemeral-storage" if whole(20) => format!("{}Mi", units >> 20),
        _ => units.to_string(),
    }
}

#[test]
fn a_class_that_sets_nothing() {
    // cpu      first core 6% of 1000 = 60, second 1% of 1000 = 10: 70
    // memory   8192 × 0.075 = 614.4, up to 615: 8192 - 615 = 7577
    // pods     3 interfaces × (10 - 1) addresses + 2 = 29
    // kube     11 × 29 + 255 = 319 + 255 = 574; 7577 - 574 - 100 = 6903
    // storage  20Gi - 1Gi - 10% of 20Gi = 17Gi
    check(
        &shipped("m5.large"),
        &al2023(),
        "
        cpu 2000m - kube 70m = 1930m
        ephemeral-storage 20Gi - kube 1Gi - eviction 2Gi = 17Gi
        memory 7577Mi - kube 574Mi - eviction 100Mi = 6903Mi
        pods 29
        vpc.amazonaws.com/pod-eni 9
        ",
    );
}

#[test]
fn al2_and_custom_images_count_as_al2023() {
    let of = |family| render(&shipped("m5.large"), &NodeSettings::of(family));
    assert_eq!(of(Family::Al2), of(Family::Al2023));
    assert_eq!(of(Family::Custom), of(Family::Al2023));
}

#[test]
fn arm64_sets_64_mib_aside_first() {
    // memory  8192 - 64 = 8128; 8128 × 0.075 = 609.6, up to 610: 7518; 7518 - 574 - 100 = 6844
    check(
        &shipped("m7g.large"),
        &al2023(),
        "memory 7518Mi - kube 574Mi - eviction 100Mi = 6844Mi\n…",
    );
    // memory  4096 - 64 = 4032; 4032 × 0.075 = 302.4, up to 303: 3729
    // pods    2 × (4 - 1) + 2 = 8; kube 11 × 8 + 255 = 343; 3729 - 343 - 100 = 3286
    // cpu     one core: 60
    check(
        &shipped("m7g.medium"),
        &al2023(),
        "
        cpu 1000m - kube 60m = 940m
        memory 3729Mi - kube 343Mi - eviction 100Mi = 3286Mi
        pods 8
        …",
    );
}

#[test]
fn a_tiny_node_keeps_little() {
    // memory  1024 × 0.075 = 76.8, up to 77: 947
    // pods    2 × (2 - 1) + 2 = 4; kube 11 × 4 + 255 = 299; 947 - 299 - 100 = 548
    check(
        &shipped("t2.micro"),
        &al2023(),
        "
        cpu 1000m - kube 60m = 940m
        memory 947Mi - kube 299Mi - eviction 100Mi = 548Mi
        pods 4
        …",
    );
}

#[test]
fn an_nvidia_gpu_is_a_resource() {
    // cpu     60 + 10 + 0.5% of 2000 = 10: 80
    // memory  16384 × 0.075 = 1228.8, up to 1229: 15155; 15155 - 574 - 100 = 14481
    check(
        &shipped("g4dn.xlarge"),
        &al2023(),
        "
        cpu 4000m - kube 80m = 3920m
        ephemeral-storage 20Gi - kube 1Gi - eviction 2Gi = 17Gi
        memory 15155Mi - kube 574Mi - eviction 100Mi = 14481Mi
        nvidia.com/gpu 1
        pods 29
        vpc.amazonaws.com/pod-eni 39
        ",
    );
}

#[test]
fn a_fraction_of_a_gpu_is_no_resource() {
    // pods    2 × (10 - 1) + 2 = 20; kube 11 × 20 + 255 = 475; 7577 - 475 - 100 = 7002
    check(
        &shipped("g6f.large"),
        &al2023(),
        "
        cpu 2000m - kube 70m = 1930m
        ephemeral-storage 20Gi - kube 1Gi - eviction 2Gi = 17Gi
        memory 7577Mi - kube 475Mi - eviction 100Mi = 7002Mi
        pods 20
        vpc.amazonaws.com/pod-eni 10
        ",
    );
}

#[test]
fn amd_and_habana_have_resources_of_their_own() {
    let gpu = |manufacturer: &str, count| Gpu {
        name: None,
        manufacturer: Some(manufacturer.to_owned()),
        count,
        memory_mib: None,
    };
    // Two kinds of AMD's: 1 + 2 = 3. One that nobody has a plugin for is not offered.
    let mut it = shipped("m5.large");
    it.gpus = vec![gpu("AMD", 1), gpu("Habana", 8), gpu("AMD", 2), gpu("Acme", 4)];
    check(
        &it,
        &al2023(),
        "
        amd.com/gpu 3
        cpu 2000m - kube 70m = 1930m
        ephemeral-storage 20Gi - kube 1Gi - eviction 2Gi = 17Gi
        habana.ai/gaudi 8
        memory 7577Mi - kube 574Mi - eviction 100Mi = 6903Mi
        pods 29
        vpc.amazonaws.com/pod-eni 9
        ",
    );
}

#[test]
fn neuron_devices_and_their_cores() {
    // cpu     80 + 0.25% of (192000 - 4000) = 470: 550
    // memory  786432 × 0.075 = 58982.4, up to 58983: 727449
    // pods    15 × 49 + 2 = 737; kube 11 × 737 + 255 = 8107 + 255 = 8362
    //         727449 - 8362 - 100 = 718987
    // cores   12 devices × 2 = 24
    check(
        &shipped("inf2.48xlarge"),
        &al2023(),
        "
        aws.amazon.com/neuron 12
        aws.amazon.com/neuroncore 24
        cpu 192000m - kube 550m = 191450m
        ephemeral-storage 20Gi - kube 1Gi - eviction 2Gi = 17Gi
        memory 727449Mi - kube 8362Mi - eviction 100Mi = 718987Mi
        pods 737
        vpc.amazonaws.com/pod-eni 107
        ",
    );
    // cpu     80 + 0.25% of 124000 = 310: 390
    // memory  524288 × 0.075 = 39321.6, up to 39322: 484966
    // pods    5 × 49 + 2 = 247; kube 11 × 247 + 255 = 2717 + 255 = 2972
    //         484966 - 2972 - 100 = 481894
    // cores   16 × 2 = 32
    check(
        &shipped("trn1.32xlarge"),
        &al2023(),
        "
        aws.amazon.com/neuron 16
        aws.amazon.com/neuroncore 32
        cpu 128000m - kube 390m = 127610m
        ephemeral-storage 20Gi - kube 1Gi - eviction 2Gi = 17Gi
        memory 484966Mi - kube 2972Mi - eviction 100Mi = 481894Mi
        pods 247
        vpc.amazonaws.com/efa 8
        vpc.amazonaws.com/pod-eni 82
        ",
    );
}

#[test]
fn only_the_first_of_several_network_cards_carries_pods() {
    // cpu     80 + 0.25% of 92000 = 230: 310
    // memory  1179648 × 0.075 = 88473.6, up to 88474: 1091174
    // pods    four cards of 15, one counts: 15 × 49 + 2 = 737; kube 8362
    //         1091174 - 8362 - 100 = 1082712
    check(
        &shipped("p4d.24xlarge"),
        &al2023(),
        "
        cpu 96000m - kube 310m = 95690m
        ephemeral-storage 20Gi - kube 1Gi - eviction 2Gi = 17Gi
        memory 1091174Mi - kube 8362Mi - eviction 100Mi = 1082712Mi
        nvidia.com/gpu 8
        pods 737
        vpc.amazonaws.com/efa 4
        vpc.amazonaws.com/pod-eni 62
        ",
    );
    // memory  2097152 × 0.075 = 157286.4, up to 157287: 1939865
    // pods    32 cards of 2, one counts: 2 × 49 + 2 = 100; kube 11 × 100 + 255 = 1355
    //         1939865 - 1355 - 100 = 1938410
    check(
        &shipped("p5.48xlarge"),
        &al2023(),
        "
        memory 1939865Mi - kube 1355Mi - eviction 100Mi = 1938410Mi
        pods 100
        vpc.amazonaws.com/efa 32
        …",
    );
}

#[test]
fn another_default_card_counts_if_the_type_says_so() {
    let mut it = shipped("i7ie.48xlarge");
    it.network.ipv4_per_interface = 50;
    // Card 0 has 8 interfaces, card 1 has 7: 8 × 49 + 2 = 394, 7 × 49 + 2 = 345.
    check(&it, &al2023(), "pods 394\n…");
    it.network.default_card = 1;
    check(&it, &al2023(), "pods 345\n…");
    // A card that is not there has no addresses.
    it.network.default_card = 9;
    check(&it, &al2023(), "pods 0\n…");
}

#[test]
fn efa_only_interfaces_take_the_place_of_addresses_on_card_0() {
    let with = |efa_only, efa_only_on_card_0| NodeSettings {
        interfaces: Some(WrittenInterfaces { efa_only, efa_only_on_card_0 }),
        ..al2023()
    };
    // One on each of the 32 cards.
    // pods    (2 - 1) × 49 + 2 = 51; kube 11 × 51 + 255 = 561 + 255 = 816
    //         1939865 - 816 - 100 = 1938949
    check(
        &shipped("p5.48xlarge"),
        &with(32, 1),
        "
        memory 1939865Mi - kube 816Mi - eviction 100Mi = 1938949Mi
        pods 51
        vpc.amazonaws.com/efa 32
        …",
    );
    // None on card 0: 31, and the pods and what is kept for them as if nothing were written.
    check(
        &shipped("p5.48xlarge"),
        &with(31, 0),
        "
        memory 1939865Mi - kube 1355Mi - eviction 100Mi = 1938410Mi
        pods 100
        vpc.amazonaws.com/efa 31
        …",
    );
    // Both interfaces of card 0: no pods at all, not even the two on the host's network.
    check(&shipped("p5.48xlarge"), &with(2, 2), "pods 0\nvpc.amazonaws.com/efa 2\n…");
}

#[test]
fn interfaces_that_are_written_without_efa_have_none() {
    let written = NodeSettings { interfaces: Some(WrittenInterfaces::default()), ..al2023() };
    assert!(!render(&shipped("p4d.24xlarge"), &written).contains("efa"));
}

#[test]
fn raid0_offers_the_disks_inside() {
    let raid0 = NodeSettings { instance_store_raid0: true, ..al2023() };
    // 75 GB = 75 000 000 000; 10% = 7 500 000 000; 1Gi = 1 073 741 824
    // 75 000 000 000 - 1 073 741 824 - 7 500 000 000 = 66 426 258 176
    check(
        &shipped("m5d.large"),
        &raid0,
        "ephemeral-storage 75000000000 - kube 1Gi - eviction 7500000000 = 66426258176\n…",
    );
    // c3.large has 32 GB that are not NVMe; they have no label, and count here all the same.
    // 32 000 000 000 - 1 073 741 824 - 3 200 000 000 = 27 726 258 176
    check(
        &shipped("c3.large"),
        &raid0,
        "ephemeral-storage 32000000000 - kube 1Gi - eviction 3200000000 = 27726258176\n…",
    );
    // No disks: the volume.
    check(
        &shipped("m5.large"),
        &raid0,
        "ephemeral-storage 20Gi - kube 1Gi - eviction 2Gi = 17Gi\n…",
    );
}

#[test]
fn windows_runs_110_pods_and_keeps_memory_for_them() {
    // kube     11 × 110 + 255 = 1210 + 255 = 1465; 7577 - 1465 - 100 = 6012
    // storage  50Gi - 1Gi - 5Gi = 44Gi
    // Reserved interfaces do not matter to it.
    for family in [Family::Windows2019, Family::Windows2022, Family::Windows2025] {
        check(
            &shipped("m5.large"),
            &NodeSettings { reserved_interfaces: 1, ..NodeSettings::of(family) },
            "
            cpu 2000m - kube 70m = 1930m
            ephemeral-storage 50Gi - kube 1Gi - eviction 5Gi = 44Gi
            memory 7577Mi - kube 1465Mi - eviction 100Mi = 6012Mi
            pods 110
            vpc.amazonaws.com/PrivateIPv4Address 9
            vpc.amazonaws.com/pod-eni 9
            ",
        );
    }
    // podsPerCore 10: 10 × 2 = 20 < 110; kube 11 × 20 + 255 = 475; 7577 - 475 - 100 = 7002
    check(
        &shipped("m5.large"),
        &NodeSettings { pods_per_core: Some(10), ..NodeSettings::of(Family::Windows2022) },
        "memory 7577Mi - kube 475Mi - eviction 100Mi = 7002Mi\npods 20\n…",
    );
}

#[test]
fn bottlerocket_keeps_memory_for_the_pods_it_runs() {
    let bottlerocket = NodeSettings::of(Family::Bottlerocket);
    check(
        &shipped("m5.large"),
        &bottlerocket,
        "memory 7577Mi - kube 574Mi - eviction 100Mi = 6903Mi\npods 29\n…",
    );
    // maxPods 50: 11 × 50 + 255 = 805; 7577 - 805 - 100 = 6672. It does not know podsPerCore.
    check(
        &shipped("m5.large"),
        &NodeSettings { max_pods: Some(50), pods_per_core: Some(5), ..bottlerocket.clone() },
        "memory 7577Mi - kube 805Mi - eviction 100Mi = 6672Mi\npods 50\n…",
    );
    // One interface reserved: 2 × 9 + 2 = 20 pods; 11 × 20 + 255 = 475; 7577 - 475 - 100 = 7002
    check(
        &shipped("m5.large"),
        &NodeSettings { reserved_interfaces: 1, ..bottlerocket.clone() },
        "memory 7577Mi - kube 475Mi - eviction 100Mi = 7002Mi\npods 20\n…",
    );
    // All three reserved: no pods; 255 for the kubelet; 7577 - 255 - 100 = 7222
    check(
        &shipped("m5.large"),
        &NodeSettings { reserved_interfaces: 3, ..bottlerocket },
        "memory 7577Mi - kube 255Mi - eviction 100Mi = 7222Mi\npods 0\n…",
    );
}

#[test]
fn max_pods_does_not_change_what_amazon_linux_keeps() {
    // Still 11 × 29 + 255 = 574.
    for family in [Family::Al2, Family::Al2023, Family::Custom] {
        check(
            &shipped("m5.large"),
            &NodeSettings { max_pods: Some(110), ..NodeSettings::of(family) },
            "memory 7577Mi - kube 574Mi - eviction 100Mi = 6903Mi\npods 110\n…",
        );
    }
}

#[test]
fn reserved_interfaces_lower_the_pods_and_not_what_is_kept() {
    // (3 - 1) × 9 + 2 = 20 pods; kube still 11 × 29 + 255 = 574.
    check(
        &shipped("m5.large"),
        &NodeSettings { reserved_interfaces: 1, ..al2023() },
        "memory 7577Mi - kube 574Mi - eviction 100Mi = 6903Mi\npods 20\n…",
    );
    check(
        &shipped("m5.large"),
        &NodeSettings { reserved_interfaces: 9, ..al2023() },
        "memory 7577Mi - kube 574Mi - eviction 100Mi = 6903Mi\npods 0\n…",
    );
}

#[test]
fn pods_per_core_is_a_ceiling() {
    let m5 = shipped("m5.large");
    let with = |max_pods, pods_per_core| NodeSettings { max_pods, pods_per_core, ..al2023() };
    // 5 × 2 = 10 < 29; kube still 574
    check(
        &m5,
        &with(None, Some(5)),
        "memory 7577Mi - kube 574Mi - eviction 100Mi = 6903Mi\npods 10\n…",
    );
    // 100 × 2 = 200 > 29
    check(&m5, &with(None, Some(100)), "pods 29\n…");
    // 20 × 2 = 40 < 110, and maxPods is no way around it
    check(&m5, &with(Some(110), Some(20)), "pods 40\n…");
    // 0 means not set.
    check(&m5, &with(None, Some(0)), "pods 29\n…");
    check(&m5, &with(Some(0), None), "pods 0\n…");
}

#[test]
fn eviction_in_percent() {
    let with = |memory: &str, nodefs: &str| NodeSettings {
        eviction_hard: [("memory.available", memory), ("nodefs.available", nodefs)]
            .map(|(signal, text)| (signal.to_owned(), Threshold::from_percent(text).unwrap()))
            .into(),
        ..al2023()
    };
    // 7577Mi = 7577 × 1 048 576 = 7 945 060 352; 5% = 397 253 017.6, up to 397 253 018
    // 574Mi = 601 882 624; 7 945 060 352 - 601 882 624 - 397 253 018 = 6 945 924 710
    // 15% of 20Gi = 3Gi
    check(
        &shipped("m5.large"),
        &with("5%", "15%"),
        "
        ephemeral-storage 20Gi - kube 1Gi - eviction 3Gi = 16Gi
        memory 7577Mi - kube 574Mi - eviction 397253018 = 6945924710
        …",
    );
    // 7.5% of 20Gi = 1.5Gi = 1536Mi; 20480 - 1024 - 1536 = 17920
    // 0% is none: 7577 - 574 = 7003
    check(
        &shipped("m5.large"),
        &with("0%", "7.5%"),
        "
        ephemeral-storage 20Gi - kube 1Gi - eviction 1536Mi = 17920Mi
        memory 7577Mi - kube 574Mi - eviction 0 = 7003Mi
        …",
    );
    // 100% switches a threshold off.
    check(
        &shipped("m5.large"),
        &with("100%", "100%"),
        "
        ephemeral-storage 20Gi - kube 1Gi - eviction 0 = 19Gi
        memory 7577Mi - kube 574Mi - eviction 0 = 7003Mi
        …",
    );
}

#[test]
fn eviction_in_bytes() {
    // 7577 - 574 - 500 = 6503; 20 - 1 - 3 = 16. Signals that keep nothing back are passed over.
    let eviction_hard = [
        ("memory.available", Quantity::from_mebibytes(500)),
        ("nodefs.available", Quantity::from_gibibytes(3)),
        ("imagefs.available", Quantity::from_gibibytes(9)),
        ("pid.available", Quantity::from_units(1000)),
    ]
    .map(|(signal, amount)| (signal.to_owned(), Threshold::Fixed(amount)));
    check(
        &shipped("m5.large"),
        &NodeSettings { eviction_hard: eviction_hard.into(), ..al2023() },
        "
        cpu 2000m - kube 70m = 1930m
        ephemeral-storage 20Gi - kube 1Gi - eviction 3Gi = 16Gi
        memory 7577Mi - kube 574Mi - eviction 500Mi = 6503Mi
        pods 29
        vpc.amazonaws.com/pod-eni 9
        ",
    );
}

#[test]
fn percents_are_read_exactly_or_not_at_all() {
    let millionths = |text| match Threshold::from_percent(text) {
        Some(Threshold::Share { millionths }) => Some(millionths),
        Some(Threshold::Fixed(_)) | None => None,
    };
    assert_eq!(millionths("5%"), Some(50_000));
    assert_eq!(millionths("0.125%"), Some(1_250));
    assert_eq!(millionths(".5%"), Some(5_000));
    assert_eq!(millionths("100%"), Some(1_000_000));
    for text in ["", "%", ".%", "5", "-5%", "101%", "1e1%", "5 %", "100.0001%", "99999999999999%"] {
        assert_eq!(millionths(text), None, "{text}");
    }
}

#[test]
fn kube_reserved_replaces_single_keys() {
    let with = |key: &str, amount| NodeSettings {
        kube_reserved: [(key.to_owned(), amount)].into(),
        ..al2023()
    };
    let m5 = shipped("m5.large");
    check(
        &m5,
        &with("cpu", Quantity::from_millis(200)),
        "
        cpu 2000m - kube 200m = 1800m
        memory 7577Mi - kube 574Mi - eviction 100Mi = 6903Mi
        …",
    );
    // 7577 - 1024 - 100 = 6453
    check(
        &m5,
        &with("memory", Quantity::from_gibibytes(1)),
        "
        cpu 2000m - kube 70m = 1930m
        memory 7577Mi - kube 1024Mi - eviction 100Mi = 6453Mi
        …",
    );
    // 20 - 2 - 2 = 16
    check(
        &m5,
        &with("ephemeral-storage", Quantity::from_gibibytes(2)),
        "ephemeral-storage 20Gi - kube 2Gi - eviction 2Gi = 16Gi\n…",
    );
    // Process ids are kept back, but no node offers them as a resource.
    let offer = offer(&m5, &with("pid", Quantity::from_units(1000)));
    assert_eq!(offer.kube_reserved.get("pid"), Some(&Quantity::from_units(1000)));
    assert!(!offer.allocatable.contains_key("pid"));
}

#[test]
fn system_reserved_comes_on_top() {
    // 2000 - 70 - 100 = 1830; 7577 - 574 - 200 - 100 = 6703; 20 - 1 - 1 - 2 = 16
    let system_reserved = [
        ("cpu", Quantity::from_millis(100)),
        ("memory", Quantity::from_mebibytes(200)),
        ("ephemeral-storage", Quantity::from_gibibytes(1)),
    ]
    .map(|(key, amount)| (key.to_owned(), amount));
    check(
        &shipped("m5.large"),
        &NodeSettings { system_reserved: system_reserved.into(), ..al2023() },
        "
        cpu 2000m - kube 70m - system 100m = 1830m
        ephemeral-storage 20Gi - kube 1Gi - system 1Gi - eviction 2Gi = 16Gi
        memory 7577Mi - kube 574Mi - system 200Mi - eviction 100Mi = 6703Mi
        pods 29
        vpc.amazonaws.com/pod-eni 9
        ",
    );
}

#[test]
fn the_kubelet_takes_less_of_each_further_core() {
    let cases = [
        (1, 60),          // 6% of 1000
        (2, 60 + 10),     // + 1% of 1000
        (3, 70 + 5),      // + 0.5% of 1000
        (4, 70 + 10),     // + 0.5% of 2000
        (5, 80 + 2),      // + 0.25% of 1000 = 2.5, cut to 2
        (6, 80 + 5),      // + 0.25% of 2000
        (8, 80 + 10),     // + 0.25% of 4000
        (96, 80 + 230),   // + 0.25% of 92000
        (448, 80 + 1110), // + 0.25% of 444000
    ];
    for (vcpus, millicores) in cases {
        let it = InstanceType { vcpus, ..shipped("m5.large") };
        let kept = offer(&it, &al2023()).kube_reserved.get("cpu").copied();
        assert_eq!(kept, Some(Quantity::from_millis(millicores)), "{vcpus} cores");
    }
}

#[test]
fn the_share_of_the_hypervisor_can_be_set() {
    let with =
        |vm_memory_overhead_millionths| NodeSettings { vm_memory_overhead_millionths, ..al2023() };
    let m5 = shipped("m5.large");
    // 8192 - 574 - 100 = 7518
    check(&m5, &with(0), "memory 8192Mi - kube 574Mi - eviction 100Mi = 7518Mi\n…");
    // 8192 × 0.1 = 819.2, up to 820: 7372; 7372 - 574 - 100 = 6698
    check(&m5, &with(100_000), "memory 7372Mi - kube 574Mi - eviction 100Mi = 6698Mi\n…");
    // 8192 × 0.0625 = 512 and not a MiB more: 7680; 7680 - 574 - 100 = 7006
    check(&m5, &with(62_500), "memory 7680Mi - kube 574Mi - eviction 100Mi = 7006Mi\n…");
    // All of it, and more than all of it, is nothing.
    check(&m5, &with(1_000_000), "memory 0 - kube 574Mi - eviction 100Mi = 0\n…");
    check(&m5, &with(u32::MAX), "memory 0 - kube 574Mi - eviction 100Mi = 0\n…");
}

fn volume(name: &str, root_volume: bool, gib: Option<i64>) -> BlockDevice {
    BlockDevice {
        device_name: (!name.is_empty()).then(|| name.to_owned()),
        root_volume,
        size: gib.map(Quantity::from_gibibytes),
    }
}

#[track_caller]
fn check_storage(family: Family, block_devices: &[BlockDevice], gib: i64) {
    let block_devices = block_devices.to_vec();
    let settings = NodeSettings { block_devices, ..NodeSettings::of(family) };
    let offer = offer(&shipped("m5.large"), &settings);
    assert_eq!(
        offer.capacity.get(EPHEMERAL_STORAGE),
        Some(&Quantity::from_gibibytes(gib)),
        "{family}"
    );
}

#[test]
fn the_root_volume_holds_the_files_of_pods() {
    let devices = [volume("/dev/xvda", false, Some(30)), volume("/dev/xvdz", true, Some(70))];
    for family in Family::ALL {
        check_storage(family, &devices, 70);
    }
    // 70Gi - 1Gi - 7Gi
    check(
        &shipped("m5.large"),
        &NodeSettings { block_devices: devices.to_vec(), ..al2023() },
        "ephemeral-storage 70Gi - kube 1Gi - eviction 7Gi = 62Gi\n…",
    );
    // One without a size (a snapshot's) says nothing, and the family's device does.
    let devices = [volume("/dev/xvda", false, Some(30)), volume("/dev/xvdz", true, None)];
    check_storage(Family::Al2023, &devices, 30);
    // On Bottlerocket the family's device is another one and is not written: 20Gi.
    check_storage(Family::Bottlerocket, &devices, 20);
}

#[test]
fn without_a_root_volume_the_family_knows_the_device() {
    let devices = [
        volume("/dev/xvda", false, Some(30)),
        volume("/dev/xvdb", false, Some(40)),
        volume("/dev/sda1", false, Some(60)),
        volume("", false, Some(90)),
    ];
    check_storage(Family::Al2, &devices, 30);
    check_storage(Family::Al2023, &devices, 30);
    check_storage(Family::Bottlerocket, &devices, 40);
    check_storage(Family::Windows2019, &devices, 60);
    // A custom image: the last one.
    check_storage(Family::Custom, &devices, 90);
}

#[test]
fn without_a_size_the_family_has_one() {
    check_storage(Family::Custom, &[], 20);
    let last_without = [volume("/dev/xvda", false, Some(30)), volume("", false, None)];
    check_storage(Family::Custom, &last_without, 20);
    check_storage(Family::Windows2025, &[volume("/dev/sda1", false, None)], 50);
    check_storage(Family::Al2023, &[volume("/dev/xvdb", false, Some(40))], 20);
}

#[test]
fn more_than_all_cannot_be_taken() {
    let much = |key: &str| (key.to_owned(), Quantity::from_gibibytes(1 << 40));
    let all_memory = Threshold::Fixed(Quantity::from_gibibytes(90));
    let settings = NodeSettings {
        kube_reserved: [much("cpu"), much("memory")].into(),
        system_reserved: [("ephemeral-storage".to_owned(), Quantity::from_gibibytes(18))].into(),
        eviction_hard: [("memory.available".to_owned(), all_memory)].into(),
        ..al2023()
    };
    let offer = offer(&shipped("m5.large"), &settings);
    for key in ["cpu", "memory", "ephemeral-storage"] {
        assert_eq!(offer.allocatable.get(key), Some(&Quantity::ZERO), "{key}");
    }
    assert_eq!(offer.allocatable.get(PODS), Some(&Quantity::from_units(29)));
}

fn any_amount() -> impl Strategy<Value = Quantity> {
    prop_oneof![any::<i128>(), 0..1i128 << 70, Just(i128::MAX), Just(i128::MIN)]
        .prop_map(|nanos| format!("{nanos}n").parse().unwrap())
}

fn any_reserved() -> impl Strategy<Value = BTreeMap<String, Quantity>> {
    let key = select(vec!["cpu", "memory", "ephemeral-storage", "pid", "pods"]);
    collection::btree_map(key.prop_map(str::to_owned), any_amount(), 0..4)
}

fn any_eviction() -> impl Strategy<Value = BTreeMap<String, Threshold>> {
    let signal = select(vec!["memory.available", "nodefs.available"]).prop_map(str::to_owned);
    let threshold = prop_oneof![
        any::<u32>().prop_map(|millionths| Threshold::Share { millionths }),
        any_amount().prop_map(Threshold::Fixed),
    ];
    collection::btree_map(signal, threshold, 0..3)
}

prop_compose! {
    fn any_device()(
        name in option::of(select(vec!["/dev/xvda", "/dev/xvdb", "/dev/sda1"])),
        root_volume in any::<bool>(),
        size in option::of(any_amount()),
    ) -> BlockDevice {
        BlockDevice { device_name: name.map(str::to_owned), root_volume, size }
    }
}

prop_compose! {
    fn any_settings()(
        family in select(Family::ALL.to_vec()),
        (max_pods, pods_per_core) in any::<(Option<u32>, Option<u32>)>(),
        kube_reserved in any_reserved(),
        system_reserved in any_reserved(),
        eviction_hard in any_eviction(),
        instance_store_raid0 in any::<bool>(),
        block_devices in collection::vec(any_device(), 0..3),
        interfaces in any::<Option<(u32, u32)>>(),
        (reserved_interfaces, vm_memory_overhead_millionths) in any::<(u32, u32)>(),
    ) -> NodeSettings {
        let interfaces = interfaces.map(|(efa_only, efa_only_on_card_0)| {
            WrittenInterfaces { efa_only, efa_only_on_card_0 }
        });
        NodeSettings {
            family,
            max_pods,
            pods_per_core,
            kube_reserved,
            system_reserved,
            eviction_hard,
            instance_store_raid0,
            block_devices,
            interfaces,
            reserved_interfaces,
            vm_memory_overhead_millionths,
        }
    }
}

fn any_type() -> impl Strategy<Value = InstanceType> {
    let known: Vec<InstanceType> = Types::shipped().iter().cloned().collect();
    // Users bring types of their own, and nobody keeps these from being absurd.
    let absurd = (select(known.clone()), any::<(u32, u64, u32, u32)>()).prop_map(
        |(mut it, (vcpus, memory_mib, ipv4_per_interface, interfaces_max))| {
            (it.vcpus, it.memory_mib) = (vcpus, memory_mib);
            it.network.ipv4_per_interface = ipv4_per_interface;
            for card in &mut it.network.cards {
                card.interfaces_max = interfaces_max;
            }
            it
        },
    );
    prop_oneof![select(known), absurd]
}

proptest! {
    /// Whatever a class says, pods get no more than there is and no less than nothing.
    #[test]
    fn allocatable_lies_between_nothing_and_the_capacity(
        it in any_type(),
        settings in any_settings(),
    ) {
        let offer = offer(&it, &settings);
        prop_assert!(offer.allocatable.keys().eq(offer.capacity.keys()));
        for (name, rest) in &offer.allocatable {
            prop_assert!(*rest >= Quantity::ZERO, "{name}");
            prop_assert!(*rest <= *offer.capacity.get(name).unwrap(), "{name}");
        }
    }
}
