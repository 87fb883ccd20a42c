//! How many volumes can be attached to a new node?
#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::BTreeMap;

use nodemolt_fit::attachments::{EBS_DRIVER, volume_limits};
use nodemolt_fit::capacity::NodeSettings;
use nodemolt_fit::{Family, Types};

fn limit(name: &str, family: Family) -> Option<u32> {
    let types = Types::shipped();
    let limits = volume_limits(types.find(name).unwrap(), &NodeSettings::of(family));
    limits.get(EBS_DRIVER).copied()
}

/// Worked by hand after `getVolumesLimit` of aws-ebs-csi-driver v1.62.0, whose table has the same numbers of
/// attachments: 27 for m5.large (shared), 32 for m7i.large (dedicated), 39 on Xen, 3 for d3.8xlarge (shared).
#[test]
fn a_node_attaches_what_its_driver_will_tell() {
    // 27, less the root volume, less the second interface.
    assert_eq!(limit("m5.large", Family::Al2023), Some(25));
    // Bottlerocket has a second volume of its own.
    assert_eq!(limit("m5.large", Family::Bottlerocket), Some(24));
    // Interfaces do not count here.
    assert_eq!(limit("m7i.large", Family::Al2023), Some(31));
    // Xen: the driver's own number.
    assert_eq!(limit("m4.large", Family::Al2023), Some(38));
    // Disks inside take most of it.
    assert_eq!(limit("d3.8xlarge", Family::Al2023), Some(1));
}

#[test]
fn every_shipped_type_has_a_limit_and_none_is_without_a_place() {
    let settings = NodeSettings::of(Family::Al2023);
    for it in Types::shipped().iter() {
        let limits: BTreeMap<String, u32> = volume_limits(it, &settings);
        assert!(limits.get(EBS_DRIVER).is_some_and(|it| (1..=127).contains(it)), "{}", it.name);
    }
}
