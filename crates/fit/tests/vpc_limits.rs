//! How many interfaces and addresses of their own have pods, by the shipped table?

use nodemolt_fit::vpc_limits::{SHIPPED_LIMITS, VpcLimits, write};
use sha2::{Digest, Sha256};

/// The pinned figures of the generator's last run: an edit by hand changes one of them.
const MODULE_SUM: &str = "h1:WGtIQTQcxpElYMdWfWuPwaF2+9muR+hYhPZsTtoY8Gs=";
const COUNT: usize = 1346;

#[test]
fn the_shipped_table_is_what_its_header_says() {
    let header: Vec<&str> = SHIPPED_LIMITS.lines().take_while(|it| it.starts_with('#')).collect();
    let body: String =
        SHIPPED_LIMITS.split_inclusive('\n').filter(|it| !it.starts_with('#')).collect();
    assert!(header.contains(&format!("# module sum: {MODULE_SUM}").as_str()));
    assert!(header.contains(&format!("# types: {COUNT}, as of 2026-05-18").as_str()));
    assert!(header.contains(&format!("# body sha256: {:x}", Sha256::digest(&body)).as_str()));
    assert_eq!(write(VpcLimits::shipped()), body);
    assert_eq!(VpcLimits::shipped().len(), COUNT);
}

#[test]
fn known_limits_are_there() {
    let of = |name: &str| {
        VpcLimits::of_type(name).map(|it| (it.branch_interfaces, it.ipv4_per_interface))
    };
    assert_eq!(of("m5.large"), Some((9, 10)));
    // It knows no trunk.
    assert_eq!(of("t3.large"), Some((0, 12)));
    assert_eq!(of("m99.large"), None);
}
