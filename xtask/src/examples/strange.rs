//! What else is out there?
//!
//! Images that must be refused, or must rank last, or must not be taken for what they look like.
//! Each has a name that one of the example classes would match if it were careless.

use jiff::civil::DateTime;

use super::{
    private::golden_image,
    wire::{Image, OWN_ACCOUNT, ProductCode, during},
};

/// Somebody else's account, with public images named like ours.
const STRANGER: &str = "123456789099";
/// Amazon Linux itself: also `amazon`, and never a publisher of EKS nodes.
const OTHER_AMAZON: &str = "137112412989";
const MACOS: &str = "628277914472";
const CANONICAL: &str = "099720109477";
const MARKETPLACE: &str = "679593333241";

pub(crate) fn images() -> Vec<Image> {
    let mut images = look_alikes();
    images.extend(pre_releases());
    images.extend(wrong_dates());
    images.extend(not_for_use());
    images.extend(other_machines());
    images
}

/// Right name, wrong owner, and newer than the real one.
fn look_alikes() -> Vec<Image> {
    let eks = |owner, day: &str| {
        let name = format!("amazon-eks-node-al2023-x86_64-standard-1.35-v{day}");
        Image::linux(owner, name.clone(), "x86_64", during(day, &name))
    };
    let public = |mut image: Image| {
        image.public = true;
        image
    };
    let other_amazon = eks(OTHER_AMAZON, "20261105");
    let created_at = during("20261105", &other_amazon.name);
    let my_ami =
        Image::linux(STRANGER, "my-ami".to_owned(), "x86_64", during("20261001", "my-ami"));
    vec![
        public(eks(STRANGER, "20261106")),
        other_amazon.public_as("amazon", created_at),
        public(my_ami),
        // With the tags of the real one: this catalog was merged from the answers of two accounts.
        public(golden_image(STRANGER, "v20261104", "20261106", "stable")),
    ]
}

/// What a wildcard takes for the newest.
fn pre_releases() -> [Image; 2] {
    [
        golden_image(OWN_ACCOUNT, "v20261105-rc1", "20261105", "canary"),
        golden_image(OWN_ACCOUNT, "v20261106-nightly", "20261106", "canary"),
    ]
}

fn wrong_dates() -> [Image; 4] {
    let golden = |release| golden_image(OWN_ACCOUNT, release, "20261101", "stable");
    let dated = |release, date: Option<&str>| {
        let mut image = golden(release);
        image.creation_date = date.map(str::to_owned);
        image
    };
    [
        dated("imported", None),
        dated("restored", Some("last Tuesday")),
        dated("v20261131", Some("2026-11-31T08:12:44.000Z")),
        dated("v20270104", Some("2027-01-04T09:00:00.000Z")),
    ]
}

fn not_for_use() -> [Image; 3] {
    let mut disabled = golden_image(OWN_ACCOUNT, "v20261029", "20261029", "stable");
    disabled.state = "disabled";

    // The account's Allowed AMIs setting names no such provider.
    let ubuntu = "ubuntu-eks/k8s_1.35/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20261020";
    let mut disallowed =
        Image::linux(CANONICAL, ubuntu.to_owned(), "x86_64", during("20261020", ubuntu));
    disallowed.public = true;
    disallowed.image_allowed = Some(false);
    disallowed.root_device_name = "/dev/sda1";

    let hardened = "hardened-al2023-x86_64-1.35-v20261012-prod-7h2kq";
    let created_at = during("20261012", hardened);
    let mut marketplace = Image::linux(MARKETPLACE, hardened.to_owned(), "x86_64", created_at)
        .public_as("aws-marketplace", created_at);
    marketplace.product_codes = vec![ProductCode {
        product_code_id: "4t2n8yq0v6hd1rzxw9c3bm5kf",
        product_code_type: "marketplace",
    }];
    [disabled, disallowed, marketplace]
}

/// Machines that no node of ours is, or that few types can be.
fn other_machines() -> Vec<Image> {
    let mut secure_boot =
        golden_image(OWN_ACCOUNT, "secureboot-v20261023", "20261023", "secureboot");
    secure_boot.boot_mode = Some("uefi");
    secure_boot.tpm_support = Some("v2.0");

    let amazon = |owner, name: &str, architecture, created_at: DateTime| {
        Image::linux(owner, name.to_owned(), architecture, created_at)
            .public_as("amazon", created_at)
    };
    let mac = |name: &str, architecture, day| {
        let mut image = amazon(MACOS, name, architecture, during(day, name));
        image.root_device_name = "/dev/sda1";
        image.imds_support = None;
        image
    };
    let old = "amzn-ami-pv-2015.03.0.i386-ebs";
    let mut i386 = amazon(OTHER_AMAZON, old, "i386", during("20150319", old));
    i386.virtualization_type = "paravirtual";
    i386.ena_support = false;
    i386.sriov_net_support = None;
    i386.imds_support = None;
    i386.root_device_name = "/dev/sda1";

    vec![
        secure_boot,
        mac("amzn-ec2-macos-15.6.1-20260820-183412", "x86_64_mac", "20260820"),
        mac("amzn-ec2-macos-15.6.1-20260820-183412-arm64", "arm64_mac", "20260820"),
        i386,
    ]
}
