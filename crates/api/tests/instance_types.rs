//! Answers of `aws ec2 describe-instance-types` are read as AWS prints them, or refused by name.
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::error::Error;

use nodemolt_api::answers::instance_types::{InstanceTypesAnswer, read};
use nodemolt_fit::{
    Quantity,
    capacity::{NodeSettings, offer},
    family::Family,
    instance_type::InstanceType,
    label,
    type_labels::labels,
    types::Types,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const EXAMPLE: &[u8] = include_bytes!("../../../examples/types/amd-and-gaudi.json");

/// As little as a type can be described with.
fn least() -> Value {
    json!({
        "InstanceType": "m99.large",
        "VCpuInfo": { "DefaultVCpus": 2 },
        "MemoryInfo": { "SizeInMiB": 8192 },
        "ProcessorInfo": { "SupportedArchitectures": ["x86_64"] },
        "NetworkInfo": {
            "Ipv4AddressesPerInterface": 10,
            "NetworkCards": [{ "NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3 }],
        },
    })
}

fn answer(entries: &[Value]) -> Vec<u8> {
    serde_json::to_vec(&json!({ "InstanceTypes": entries })).unwrap()
}

/// `least`, with the member at the JSON pointer's place set to something else.
fn with(parent: &str, member: &str, value: Value) -> Value {
    let mut entry = least();
    let parent = entry.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    parent.insert(member.to_owned(), value);
    entry
}

#[track_caller]
fn check_refused(entry: Value, expected: &str) {
    let error = read(&answer(&[least(), entry])).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

fn example(name: &str) -> InstanceType {
    let types: Types = read(EXAMPLE).unwrap().types.into_iter().collect();
    types.find(name).unwrap().clone()
}

fn offered(name: &str, resource: &str) -> Option<Quantity> {
    let offer = offer(&example(name), &NodeSettings::of(Family::Al2023));
    offer.allocatable.get(resource).copied()
}

fn labelled(name: &str, key: &str) -> Option<String> {
    labels(&example(name), Family::Al2023).into_iter().find(|it| it.key == key)?.value
}

#[test]
fn the_example_brings_what_the_shipped_table_lacks() {
    let InstanceTypesAnswer { types, complete } = read(EXAMPLE).unwrap();
    assert!(complete);
    let names: Vec<&str> = types.iter().map(|it| it.name.as_str()).collect();
    let expected = [
        "g4ad.xlarge",
        "g4ad.2xlarge",
        "g4ad.4xlarge",
        "g4ad.8xlarge",
        "g4ad.16xlarge",
        "dl1.24xlarge",
    ];
    assert_eq!(names, expected);
    let with = Types::shipped().with(types);
    assert!(with.changed.is_empty());
    assert_eq!(with.types.len(), Types::shipped().len() + 6);
}

#[test]
fn amd_is_told_from_nvidia() {
    assert_eq!(labelled("g4ad.xlarge", label::GPU_COUNT).as_deref(), Some("1"));
    assert_eq!(labelled("g4ad.xlarge", label::GPU_MANUFACTURER).as_deref(), Some("amd"));
    assert_eq!(labelled("g4ad.xlarge", label::GPU_NAME).as_deref(), Some("radeon-pro-v520"));
    assert_eq!(labelled("g4ad.xlarge", label::LOCAL_NVME).as_deref(), Some("150"));
    assert_eq!(labelled("g4ad.2xlarge", label::NETWORK_BANDWIDTH).as_deref(), Some("4167"));
    assert_eq!(offered("g4ad.16xlarge", "amd.com/gpu"), Some(Quantity::from_units(4)));
    assert_eq!(offered("g4ad.16xlarge", "nvidia.com/gpu"), None);
    // 2 × (4 - 1) + 2 and 8 × (30 - 1) + 2
    assert_eq!(offered("g4ad.xlarge", "pods"), Some(Quantity::from_units(8)));
    assert_eq!(offered("g4ad.16xlarge", "pods"), Some(Quantity::from_units(234)));
}

#[test]
fn gaudi_has_its_own_resource() {
    assert_eq!(labelled("dl1.24xlarge", label::GPU_MANUFACTURER).as_deref(), Some("habana"));
    assert_eq!(labelled("dl1.24xlarge", label::GPU_NAME).as_deref(), Some("gaudi-hl-205"));
    assert_eq!(labelled("dl1.24xlarge", label::ACCELERATOR_COUNT), None);
    assert_eq!(offered("dl1.24xlarge", "habana.ai/gaudi"), Some(Quantity::from_units(8)));
    assert_eq!(offered("dl1.24xlarge", "vpc.amazonaws.com/efa"), Some(Quantity::from_units(4)));
    // 15 × 49 + 2
    assert_eq!(offered("dl1.24xlarge", "pods"), Some(Quantity::from_units(737)));
}

#[test]
fn what_an_answer_does_not_say_stays_unsaid() {
    let types = read(&answer(&[least()])).unwrap().types;
    let it = types.first().unwrap();
    assert_eq!(it.boot_modes, None);
    assert_eq!(it.nitro_tpm, None);
    assert_eq!(it.bare_metal, None);
    assert_eq!(it.clock_mhz, None);
    assert_eq!(it.network.efa_interfaces_max, None);
    assert_eq!(it.network.ena, None);
    assert_eq!(it.instance_store, None);
    // `--query` prints what it did not find as null.
    for member in ["Hypervisor", "EbsInfo", "GpuInfo", "SupportedBootModes", "NitroTpmInfo"] {
        let nulled = read(&answer(&[with("", member, Value::Null)])).unwrap().types;
        assert_eq!(nulled, types);
    }
}

#[test]
fn members_that_we_do_not_know_are_ignored() {
    let entry = with("/NetworkInfo", "Telepathy", json!({ "Supported": [1, null] }));
    assert_eq!(read(&answer(&[entry])).unwrap(), read(&answer(&[least()])).unwrap());
}

#[test]
fn decimal_numbers_keep_their_digits() {
    for (ghz, mhz) in
        [(json!(3.1), 3100), (json!(3), 3000), (json!(0.0625), 63), (json!(2.0833), 2083)]
    {
        let entry = with("/ProcessorInfo", "SustainedClockSpeedInGhz", ghz);
        let types = read(&answer(&[entry])).unwrap().types;
        assert_eq!(types.first().unwrap().clock_mhz, Some(mhz));
    }
}

#[test]
fn a_page_of_many_says_so() {
    let page = json!({ "InstanceTypes": [least()], "NextToken": "eyJ2IjoiMiJ9" });
    let page = read(&serde_json::to_vec(&page).unwrap()).unwrap();
    assert_eq!((page.types.len(), page.complete), (1, false));
    let last = json!({ "InstanceTypes": [], "NextToken": null });
    assert!(read(&serde_json::to_vec(&last).unwrap()).unwrap().complete);
}

#[test]
fn a_byte_order_mark_is_no_harm() {
    let marked = [b"\xef\xbb\xbf".as_slice(), &answer(&[least()])].concat();
    assert_eq!(read(&marked).unwrap().types.len(), 1);
}

#[test]
fn an_entry_that_cannot_be_read_is_named() {
    let mut nameless = least();
    nameless.as_object_mut().unwrap().remove("InstanceType");
    check_refused(nameless, "InstanceTypes[1]: `InstanceType` is missing");
    check_refused(
        with("", "InstanceType", json!(5)),
        "InstanceTypes[1]: `InstanceType` is `5` and not a text",
    );
    check_refused(
        with("", "InstanceType", json!("m5 large")),
        "InstanceTypes[1]: `InstanceType` is `\"m5 large\"` and not a name such as \
         `m5.large`",
    );
    check_refused(json!("m5.large"), "InstanceTypes[1]: is `\"m5.large\"` and not an object");
    check_refused(
        with("/VCpuInfo", "DefaultVCpus", json!("two")),
        "InstanceTypes[1] (m99.large): `VCpuInfo.DefaultVCpus` is `\"two\"` and not a whole number \
         in its range",
    );
    check_refused(
        with("/VCpuInfo", "DefaultVCpus", json!(1u64 << 40)),
        "InstanceTypes[1] (m99.large): `VCpuInfo.DefaultVCpus` is `1099511627776` and not a whole \
         number in its range",
    );
    check_refused(
        with("", "MemoryInfo", json!({})),
        "InstanceTypes[1] (m99.large): `MemoryInfo.SizeInMiB` is missing",
    );
    check_refused(
        with("", "MemoryInfo", json!("8 GiB")),
        "InstanceTypes[1] (m99.large): `MemoryInfo` is `\"8 GiB\"` and not an object",
    );
    check_refused(
        with("", "NetworkInfo", Value::Null),
        "InstanceTypes[1] (m99.large): `NetworkInfo.NetworkCards` is missing",
    );
    check_refused(
        with("", "GpuInfo", json!({ "Gpus": [{ "Count": 1 }, { "Count": -1 }] })),
        "InstanceTypes[1] (m99.large): `GpuInfo.Gpus[1].Count` is `-1` and not a whole number in \
         its range",
    );
    check_refused(
        with("", "SupportedBootModes", json!(["uefi", "u".repeat(99), 3])),
        "InstanceTypes[1] (m99.large): `SupportedBootModes` is \
         `[\"uefi\",\"uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu…` and not a list of texts",
    );
    check_refused(
        with("", "NitroTpmSupport", json!("perhaps")),
        "InstanceTypes[1] (m99.large): `NitroTpmSupport` is `\"perhaps\"` and not `supported` or \
         `unsupported`",
    );
    check_refused(
        with("/ProcessorInfo", "SustainedClockSpeedInGhz", json!(1e300)),
        "InstanceTypes[1] (m99.large): `ProcessorInfo.SustainedClockSpeedInGhz` is `1e+300` and \
         not a number in its range",
    );
}

#[test]
fn what_is_no_answer_at_all_is_told_so() {
    let error = read(b"{\"InstanceTypes\": [").unwrap_err();
    assert_eq!(error.to_string(), "instance types are not JSON");
    assert!(error.source().unwrap().to_string().starts_with("EOF"));
    for other in ["[]", "{}", "null", "{\"InstanceTypes\": {}}", "{\"Images\": []}"] {
        assert_eq!(
            read(other.as_bytes()).unwrap_err().to_string(),
            "instance types are not an answer of `aws ec2 describe-instance-types`: no list \
             `InstanceTypes`"
        );
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("Count|Name|Gpus|[A-Z]", inner, 0..3)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

/// All places in a description, as JSON pointers.
fn places(json: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_owned());
    let inside: Vec<(String, &Value)> = match json {
        Value::Object(members) => members.iter().map(|(key, it)| (key.clone(), it)).collect(),
        Value::Array(entries) => {
            entries.iter().enumerate().map(|(index, it)| (index.to_string(), it)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (key, it) in inside {
        places(it, &format!("{at}/{key}"), into);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    /// A whole description with one place replaced by anything, or cut off anywhere.
    #[test]
    fn no_damage_makes_it_panic(place in any::<prop::sample::Index>(), other in any_json(), cut in any::<prop::sample::Index>()) {
        let mut json: Value = serde_json::from_slice(EXAMPLE).unwrap();
        let mut all = Vec::new();
        places(&json, "", &mut all);
        let place: &String = place.get(&all);
        *json.pointer_mut(place).unwrap() = other;
        let bytes = serde_json::to_vec(&json).unwrap();
        if let Ok(answer) = read(&bytes) {
            for it in &answer.types {
                labels(it, Family::Windows2022);
                offer(it, &NodeSettings::of(Family::Bottlerocket));
            }
        }
        let _ = read(bytes.get(..cut.index(bytes.len())).unwrap());
    }
}
