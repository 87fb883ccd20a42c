//! The shipped table says what is true of real types, and names what it does not know.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::{BTreeMap, BTreeSet};

use nodemolt_fit::{
    family::Family,
    instance_type::{Gpu, InstanceType, NeuronDevice},
    label,
    type_labels::labels,
    types::{SHIPPED_TABLE, Types, table},
};
use sha2::{Digest, Sha256};

const MOTO_VERSION: &str = "5.2.5";
const WHEEL_SHA256: &str = "eef62cdcf3bfe73e0863743511ba042dfaba04ba3d5ecdcb896a196c693ad528";
const BODY_SHA256: &str = "ad5be617c32fed0d6a01be569142cfa118b179ca959b573bcf21717037b8fa16";
const COUNT: usize = 1395;

fn shipped(name: &str) -> &'static InstanceType {
    Types::shipped().find(name).unwrap()
}

/// The labels that a node has.
fn present(it: &InstanceType, family: Family) -> BTreeMap<&'static str, String> {
    labels(it, family).into_iter().filter_map(|it| Some((it.key, it.value?))).collect()
}

#[track_caller]
fn check(it: &InstanceType, family: Family, key: &str, expected: Option<&str>) {
    assert_eq!(present(it, family).get(key).map(String::as_str), expected, "{key} of {}", it.name);
}

#[track_caller]
fn check_linux(it: &InstanceType, key: &str, expected: Option<&str>) {
    check(it, Family::Al2023, key, expected);
}

#[test]
fn the_table_is_the_one_that_was_generated() {
    let header: Vec<&str> = SHIPPED_TABLE.lines().take_while(|it| it.starts_with('#')).collect();
    let body: String =
        SHIPPED_TABLE.split_inclusive('\n').filter(|it| !it.starts_with('#')).collect();
    assert!(header.iter().any(|it| it.starts_with(&format!("# source: moto {MOTO_VERSION} "))));
    assert!(header.contains(&format!("# wheel sha256: {WHEEL_SHA256}").as_str()));
    assert!(header.contains(&format!("# types: {COUNT}").as_str()));
    assert!(header.contains(&format!("# body sha256: {BODY_SHA256}").as_str()));
    assert_eq!(format!("{:x}", Sha256::digest(&body)), BODY_SHA256);
    assert_eq!(*header.last().unwrap(), format!("# {}", table::COLUMNS.join("\t")));
    assert_eq!(table::write(Types::shipped()).unwrap(), body);
    assert_eq!(Types::shipped().len(), COUNT);
}

#[test]
fn a_broken_row_is_named() {
    let row = SHIPPED_TABLE.lines().find(|it| it.starts_with("m5.large\t")).unwrap();
    let read = |text: &str| table::read(text).unwrap_err().to_string();
    assert_eq!(
        read(&format!("# a header\n{}\n", row.replace("\t8192\t", "\tmuch\t"))),
        "line 2 of the table of instance types: cannot read memory_mib `much`"
    );
    assert_eq!(
        read("m5.large\t2\n"),
        "line 1 of the table of instance types: cannot read the number of cells `2`"
    );
    // Free texts take anything, the other cells refuse; none may panic.
    for (column, name) in table::COLUMNS.iter().enumerate() {
        let mut cells: Vec<&str> = row.split('\t').collect();
        *cells.get_mut(column).unwrap() = "0-:,:-1:,,::::";
        if let Err(error) = table::read(&cells.join("\t")) {
            assert_eq!(error.column, *name);
        }
    }
}

#[test]
fn a_word_with_a_separator_is_not_written() {
    for name in ["a\tb", "a,b", "a:b", "a\nb", "#a", "-", ""] {
        let it = InstanceType { name: name.to_owned(), ..shipped("m5.large").clone() };
        assert!(table::write(&[it].into_iter().collect()).is_err(), "{name:?}");
    }
}

#[test]
fn an_ordinary_type() {
    let it = shipped("m5.large");
    assert_eq!((it.vcpus, it.memory_mib), (2, 8192));
    assert_eq!(it.architectures, ["x86_64"]);
    assert_eq!(it.kubernetes_arch(), Some("amd64"));
    assert_eq!(it.hypervisor.as_deref(), Some("nitro"));
    assert_eq!(it.bare_metal, Some(false));
    assert_eq!((it.network.cards.len(), it.network.ipv4_per_interface), (1, 10));
    assert_eq!(it.network.interfaces_max, Some(3));
    assert_eq!(it.network.ena.as_deref(), Some("required"));
    assert_eq!(it.network.efa_interfaces_max, Some(0));
    assert_eq!(it.ebs.nvme.as_deref(), Some("required"));
    assert_eq!(it.boot_modes, Some(vec!["legacy-bios".to_owned(), "uefi".to_owned()]));
    assert_eq!(it.root_devices, Some(vec!["ebs".to_owned()]));
    assert_eq!(it.virtualisation, Some(vec!["hvm".to_owned()]));
    assert_eq!(it.instance_store, None);
    assert!(it.gpus.is_empty() && it.neuron_devices.is_empty());
}

#[test]
fn the_labels_of_an_ordinary_type() {
    let expected = [
        (label::ARCH, "amd64"),
        (label::OS, "linux"),
        (label::INSTANCE_TYPE, "m5.large"),
        (label::HYPERVISOR, "nitro"),
        (label::ENCRYPTION_IN_TRANSIT, "false"),
        (label::CATEGORY, "m"),
        (label::GENERATION, "5"),
        (label::FAMILY, "m5"),
        (label::SIZE, "large"),
        (label::CAPABILITY_FLEX, "false"),
        (label::CPU, "2"),
        (label::CPU_MANUFACTURER, "intel"),
        (label::CPU_CLOCK_MHZ, "3100"),
        (label::MEMORY, "8192"),
        (label::EBS_BANDWIDTH, "4750"),
        (label::NETWORK_BANDWIDTH, "750"),
    ];
    let expected: BTreeMap<&str, String> =
        expected.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
    assert_eq!(present(shipped("m5.large"), Family::Al2023), expected);
}

#[test]
fn every_label_of_a_type_is_answered_once() {
    for it in Types::shipped().iter() {
        for family in [Family::Al2023, Family::Windows2022] {
            let labels = labels(it, family);
            let keys: BTreeSet<&str> = labels.iter().map(|it| it.key).collect();
            assert_eq!((keys.len(), labels.len()), (25, 25));
            assert!(keys.into_iter().all(label::by_type));
        }
    }
}

#[test]
fn graviton_is_arm64_and_boots_by_uefi() {
    let it = shipped("m7g.large");
    assert_eq!(it.kubernetes_arch(), Some("arm64"));
    assert_eq!(it.boot_modes, Some(vec!["uefi".to_owned()]));
    assert_eq!(it.nitro_tpm, Some(true));
    assert_eq!(it.nitro_tpm_versions, ["2.0"]);
    check_linux(it, label::ARCH, Some("arm64"));
    check_linux(it, label::CPU_MANUFACTURER, Some("aws"));
    check_linux(it, label::ENCRYPTION_IN_TRANSIT, Some("true"));
}

#[test]
fn windows_has_a_build_and_no_arm64() {
    let builds = [
        (Family::Windows2019, "10.0.17763"),
        (Family::Windows2022, "10.0.20348"),
        (Family::Windows2025, "10.0.26100"),
    ];
    for (family, build) in builds {
        check(shipped("m5.large"), family, label::OS, Some("windows"));
        check(shipped("m5.large"), family, label::WINDOWS_BUILD, Some(build));
        // Karpenter leaves the build although no such node can exist, and so do we.
        check(shipped("m7g.large"), family, label::OS, None);
        check(shipped("m7g.large"), family, label::WINDOWS_BUILD, Some(build));
    }
    for family in [Family::Al2, Family::Al2023, Family::Bottlerocket, Family::Custom] {
        check(shipped("m7g.large"), family, label::OS, Some("linux"));
        check(shipped("m7g.large"), family, label::WINDOWS_BUILD, None);
    }
}

#[test]
fn a_fraction_of_a_gpu_is_a_gpu() {
    let fractional: Vec<&str> = Types::shipped()
        .iter()
        .filter(|it| !it.gpus.is_empty() && it.gpus.iter().all(|gpu| gpu.count == 0))
        .map(|it| it.name.as_str())
        .collect();
    let expected = ["g6f.2xlarge", "g6f.4xlarge", "g6f.large", "g6f.xlarge", "gr6f.4xlarge"];
    assert_eq!(fractional, expected);
    let it = shipped("g6f.large");
    check_linux(it, label::GPU_COUNT, Some("0"));
    check_linux(it, label::GPU_NAME, Some("l4"));
    check_linux(it, label::GPU_MANUFACTURER, Some("nvidia"));
    check_linux(it, label::GPU_MEMORY, Some("2861"));
    check_linux(it, label::ACCELERATOR_COUNT, None);
}

#[test]
fn a_gpu_with_spaces_in_its_name() {
    check_linux(shipped("g7.2xlarge"), label::GPU_NAME, Some("rtx-pro-4500"));
}

#[test]
fn several_kinds_of_gpus_are_never_none() {
    let gpu = |manufacturer: &str| Gpu {
        name: Some("X 1".to_owned()),
        manufacturer: Some(manufacturer.to_owned()),
        count: 2,
        memory_mib: Some(1024),
    };
    let mut it = shipped("m5.large").clone();
    it.gpus = vec![gpu("NVIDIA"), gpu("NVIDIA")];
    check_linux(&it, label::GPU_COUNT, Some("4"));
    check_linux(&it, label::GPU_MANUFACTURER, Some("nvidia"));
    check_linux(&it, label::GPU_NAME, None);
    check_linux(&it, label::GPU_MEMORY, None);
    it.gpus = vec![gpu("NVIDIA"), gpu("AMD")];
    check_linux(&it, label::GPU_COUNT, Some("4"));
    check_linux(&it, label::GPU_MANUFACTURER, None);
}

#[test]
fn neuron_devices_are_accelerators() {
    let device = |name: &str, count| NeuronDevice {
        name: Some(name.to_owned()),
        count,
        cores_per_device: Some(2),
        memory_mib: Some(32768),
    };
    assert_eq!(shipped("trn1.32xlarge").neuron_devices, [device("Trainium", 16)]);
    // EC2 lists Inferentia twice; it is counted once.
    let it = shipped("inf2.48xlarge");
    assert_eq!(it.neuron_devices, [device("Inferentia2", 12)]);
    assert_eq!(it.inference_accelerators.len(), 1);
    check_linux(it, label::ACCELERATOR_COUNT, Some("12"));
    check_linux(it, label::ACCELERATOR_NAME, Some("inferentia2"));
    check_linux(it, label::ACCELERATOR_MANUFACTURER, Some("aws"));
    check_linux(it, label::GPU_COUNT, None);
}

#[test]
fn several_kinds_of_accelerators_are_never_none() {
    let mut it = shipped("trn1.32xlarge").clone();
    it.neuron_devices.push(NeuronDevice { count: 2, ..it.neuron_devices.first().unwrap().clone() });
    check_linux(&it, label::ACCELERATOR_COUNT, Some("18"));
    check_linux(&it, label::ACCELERATOR_MANUFACTURER, Some("aws"));
    check_linux(&it, label::ACCELERATOR_NAME, None);
}

#[test]
fn qualcomm_is_an_accelerator_and_not_neuron() {
    let it = shipped("dl2q.24xlarge");
    assert!(it.neuron_devices.is_empty());
    check_linux(it, label::ACCELERATOR_COUNT, Some("8"));
    check_linux(it, label::ACCELERATOR_NAME, Some("qualcomm-ai100"));
    check_linux(it, label::ACCELERATOR_MANUFACTURER, Some("qualcomm"));
}

#[test]
fn transcoders_and_fpgas_are_known_and_have_no_label() {
    assert_eq!(shipped("vt1.3xlarge").media_accelerators.len(), 1);
    assert_eq!(shipped("f2.6xlarge").fpgas.len(), 1);
    for name in ["vt1.3xlarge", "f2.6xlarge"] {
        check_linux(shipped(name), label::GPU_COUNT, None);
        check_linux(shipped(name), label::ACCELERATOR_COUNT, None);
    }
}

#[test]
fn several_network_cards() {
    let p4d = &shipped("p4d.24xlarge").network;
    assert_eq!((p4d.cards.len(), p4d.efa_interfaces_max), (4, Some(4)));
    assert_eq!((p4d.interfaces_max, p4d.card_of_pods().unwrap().interfaces_max), (Some(60), 15));
    let p5 = &shipped("p5.48xlarge").network;
    assert_eq!((p5.cards.len(), p5.efa_interfaces_max), (32, Some(32)));
    assert!(p5.cards.iter().map(|it| it.index).eq(0..32));
    assert!(p5.cards.iter().all(|it| it.interfaces_max == 2));
}

#[test]
fn bandwidth_is_said_only_without_doubt() {
    let cases = [
        ("m5.large", Some("750")),         // one card: its baseline
        ("m5.metal", Some("25000")),       // one card, no burst
        ("t2.micro", None),                // `Low to Moderate`
        ("p4d.24xlarge", Some("400000")),  // `4x 100 Gigabit`
        ("p5.48xlarge", Some("3200000")),  // `3200 Gigabit`
        ("c6in.32xlarge", Some("200000")), // two cards of 200 share 200
        ("c8gn.48xlarge", Some("600000")), // two cards of 300 do not
    ];
    for (name, expected) in cases {
        check_linux(shipped(name), label::NETWORK_BANDWIDTH, expected);
    }
    // A source that says nothing gets no label.
    let mut it = shipped("m5.large").clone();
    it.network.cards.iter_mut().for_each(|it| it.baseline_mbps = None);
    check_linux(&it, label::NETWORK_BANDWIDTH, None);
}

#[test]
fn bare_metal_has_an_empty_hypervisor() {
    let metal: Vec<&InstanceType> =
        Types::shipped().iter().filter(|it| it.bare_metal == Some(true)).collect();
    assert_eq!(metal.len(), 154);
    for it in metal {
        check_linux(it, label::HYPERVISOR, Some(""));
    }
}

#[test]
fn old_types_keep_all_they_can_boot() {
    let it = shipped("t2.micro");
    assert_eq!(it.architectures, ["i386", "x86_64"]);
    assert_eq!(it.boot_modes, Some(vec!["legacy-bios".to_owned()]));
    assert_eq!(it.nitro_tpm, Some(false));
    assert_eq!(it.network.ena.as_deref(), Some("unsupported"));
    check_linux(it, label::ARCH, Some("amd64"));
    let it = shipped("t1.micro");
    assert_eq!(it.virtualisation, Some(vec!["hvm".to_owned(), "paravirtual".to_owned()]));
    assert_eq!(it.clock_mhz, None);
    check_linux(it, label::CPU_CLOCK_MHZ, Some("0"));
    check_linux(it, label::EBS_BANDWIDTH, None);
    assert_eq!(Types::shipped().iter().filter(|it| it.clock_mhz.is_none()).count(), 10);
}

#[test]
fn names_are_taken_apart_as_karpenter_does() {
    let cases = [
        ("c7i-flex.large", Some("c"), Some("7"), "c7i-flex", "large", "true"),
        ("u-6tb1.56xlarge", Some("u"), Some("1"), "u-6tb1", "56xlarge", "false"),
        ("u7in-16tb.224xlarge", Some("u"), Some("7"), "u7in-16tb", "224xlarge", "false"),
        ("p6-b200.48xlarge", Some("p"), Some("6"), "p6-b200", "48xlarge", "false"),
        ("hpc7a.96xlarge", Some("hpc"), Some("7"), "hpc7a", "96xlarge", "false"),
        ("c8gn.metal-48xl", Some("c"), Some("8"), "c8gn", "metal-48xl", "false"),
        ("mac-m4.metal", None, None, "mac-m4", "metal", "false"),
    ];
    for (name, category, generation, family, size, flex) in cases {
        let it = shipped(name);
        check_linux(it, label::CATEGORY, category);
        check_linux(it, label::GENERATION, generation);
        check_linux(it, label::FAMILY, Some(family));
        check_linux(it, label::SIZE, Some(size));
        check_linux(it, label::CAPABILITY_FLEX, Some(flex));
    }
    for (name, category) in [("", None), ("m5", None), ("5.large", None), ("m5.a.b", Some("m"))] {
        let it = InstanceType { name: name.to_owned(), ..shipped("m5.large").clone() };
        check_linux(&it, label::CATEGORY, category);
    }
    let it = InstanceType { name: "m5.a.b".to_owned(), ..shipped("m5.large").clone() };
    check_linux(&it, label::FAMILY, None);
    check_linux(&it, label::SIZE, None);
}

#[test]
fn disks_inside_have_a_label_only_as_nvme() {
    check_linux(shipped("m5d.large"), label::LOCAL_NVME, Some("75"));
    check_linux(shipped("c3.large"), label::LOCAL_NVME, None);
    let without = Types::shipped()
        .iter()
        .filter(|it| it.instance_store.is_some())
        .filter(|it| !present(it, Family::Al2023).contains_key(label::LOCAL_NVME));
    assert_eq!(without.count(), 43);
}

#[test]
fn macs_have_no_architecture_of_kubernetes() {
    check_linux(shipped("mac-m4.metal"), label::ARCH, None);
    check_linux(shipped("mac1.metal"), label::ARCH, None);
}

#[test]
fn an_unknown_type_is_told_the_nearest() {
    let error = Types::shipped().find("m5.lrage").unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot find instance type `m5.lrage`; did you mean `m5.large`? a type that is not in the \
         shipped table can be described with `--types FILE`, the output of `aws ec2 \
         describe-instance-types`"
    );
    assert_eq!(Types::shipped().find("M5.Large").unwrap_err().nearest, ["m5.large"]);
    let many = Types::shipped().find("m0.large").unwrap_err().nearest;
    assert_eq!(many, ["m1.large", "m3.large", "m4.large"]);
    for name in ["", "completely different", &"m5.large".repeat(10_000)] {
        let error = Types::shipped().find(name).unwrap_err();
        assert!(error.nearest.is_empty());
        assert!(error.to_string().ends_with("`aws ec2 describe-instance-types`"));
    }
}

#[test]
fn what_the_user_brings_wins_and_is_named() {
    let same = shipped("m5.large").clone();
    let changed = InstanceType { vcpus: 3, ..shipped("m5.xlarge").clone() };
    let new = InstanceType { name: "m99.large".to_owned(), ..same.clone() };
    let with = Types::shipped().with([same, changed, new]);
    assert_eq!(with.changed, ["m5.xlarge"]);
    assert_eq!(with.types.len(), COUNT + 1);
    assert_eq!(with.types.find("m5.xlarge").unwrap().vcpus, 3);
    assert!(with.types.find("m99.large").is_ok());
}
