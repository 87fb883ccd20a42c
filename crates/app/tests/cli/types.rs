//! `nodemolt types` as a user sees it: stdout, stderr and exit code, against goldens.
//!
//! `SNAPSHOTS=overwrite cargo test --test cli` writes the goldens anew; read the difference.

use std::path::Path;

use snapbox::cmd::Command;
use snapbox::{Data, assert_data_eq};

const CATALOG: [&str; 8] = [
    "--catalog",
    "examples/catalog/images.json",
    "--catalog",
    "examples/catalog/parameters.json",
    "--kubernetes",
    "1.35",
    "--at",
    "2026-11-15",
];

/// Runs in the repository's root, so that paths read as in its examples.
fn run(arguments: &[&str]) -> snapbox::cmd::OutputAssert {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_nodemolt"))
        .current_dir(root)
        .env_remove("CLICOLOR_FORCE")
        .env("NO_COLOR", "1")
        .arg("types")
        .args(arguments)
        .assert()
}

/// Compares with `NAME.stdout` and `NAME.stderr`; one that should be empty has no file.
#[track_caller]
fn check(name: &str, exit: i32, arguments: &[&str]) {
    let assert = run(arguments).code(exit);
    let output = assert.get_output();
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/goldens/types")
            .join(format!("{name}.{stream}"));
        let text = String::from_utf8_lossy(bytes).into_owned();
        if text.is_empty() && !golden.exists() {
            continue;
        }
        assert_data_eq!(Data::text(text), Data::read_from(&golden, None).raw());
    }
}

fn with_catalog<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    arguments.iter().copied().chain(CATALOG).collect()
}

#[test]
fn a_type_by_itself() {
    check("get-m7g", 0, &["get", "m7g.large"]);
}

#[test]
fn a_class_with_settings_of_the_kubelet() {
    let class = "crates/app/tests/goldens/types/tuned.yaml";
    check("get-tuned", 0, &["get", "m5.large", "m5d.large", "-f", class]);
}

#[test]
fn settings_that_cannot_be_understood_are_told_with_their_lines() {
    let class = "crates/app/tests/goldens/types/untold.yaml";
    check("get-untold", 1, &["get", "m5.large", "-f", class]);
}

#[test]
fn a_fraction_of_a_gpu_is_a_gpu() {
    check("get-g6f", 0, &with_catalog(&["get", "g6f.large"]));
}

#[test]
fn an_amd_gpu_has_no_image_where_there_are_only_nvidias() {
    let types = "examples/types/amd-and-gaudi.json";
    check("get-g4ad", 1, &with_catalog(&["get", "g4ad.xlarge", "--types", types]));
}

#[test]
fn an_image_that_waits_its_age_out_is_told_as_next() {
    let class = "examples/classes/general.yaml";
    check("get-general", 0, &with_catalog(&["get", "m7g.large", "-f", class]));
}

#[test]
fn an_image_that_a_rule_holds_back_has_its_own_exit_code() {
    let class = "examples/classes/pinned.yaml";
    check("get-held-back", 3, &with_catalog(&["get", "m7g.large", "-f", class]));
}

#[test]
fn a_type_that_no_pool_launches_says_so() {
    let files = ["-f", "examples/classes/general.yaml", "-f", "examples/pools/general.yaml"];
    let arguments = [&["get", "p5.48xlarge"], &files[..]].concat();
    check("get-in-no-pool", 1, &with_catalog(&arguments));
}

#[test]
fn pools_that_differ_are_told_apart() {
    let files = "crates/app/tests/goldens/types/two-pools.yaml";
    check("get-two-pools", 1, &with_catalog(&["get", "m5.large", "-f", files]));
    check("json-two-pools", 1, &with_catalog(&["get", "m5.large", "-f", files, "-o", "json"]));
    let list = ["list", "-l", "instance-type in (m5.large, m7g.large)", "-f", files];
    check("list-two-pools", 0, &with_catalog(&list));
}

#[test]
fn unknown_types_are_told_the_nearest() {
    check("get-unknown", 64, &["get", "m7g.lrge", "m5.large", "m55.large"]);
}

#[test]
fn of_several_classes_one_must_be_named() {
    check("get-several-classes", 64, &["get", "m5.large", "-f", "examples/classes"]);
    let misspelt = ["get", "m5.large", "-f", "examples/classes", "--class", "genral"];
    check("get-no-such-class", 64, &misspelt);
    let named = ["get", "m5.large", "-f", "examples/classes", "--class", "golden", "-o", "name"];
    check("get-named-class", 0, &named);
    let no_class = ["get", "m5.large", "-f", "examples/policies"];
    check("get-no-class", 64, &no_class);
    check("get-class-without-files", 64, &["get", "m5.large", "--class", "general"]);
}

#[test]
fn what_an_alias_or_self_needs_is_asked_for_by_its_flag() {
    let catalog = ["--catalog", "examples/catalog/images.json"];
    let alias = [&["get", "m5.large"][..], &catalog].concat();
    check("get-no-kubernetes", 64, &alias);
    let golden = with_catalog(&["get", "m5.large", "-f", "examples/classes/golden.yaml"]);
    check("get-no-account", 64, &golden);
    let files = ["-f", "examples/classes/general.yaml", "-f", "examples/policies/prod.yaml"];
    let policy = with_catalog(&[&["get", "m5.large"], &files[..]].concat());
    check("get-no-account-for-policy", 64, &policy);
}

#[test]
fn a_list_by_labels() {
    let selector = "instance-family in (g6f, m7g, inf2), instance-cpu<=8, instance-size!=medium";
    check("list", 0, &["list", "-l", selector]);
    let class = "examples/classes/general.yaml";
    check("list-images", 0, &with_catalog(&["list", "-l", selector, "-f", class]));
    check("list-wide", 0, &with_catalog(&["list", "-o", "wide", "-l", selector, "-f", class]));
    check("list-name", 0, &["list", "-o", "name", "-l", selector, "-f", class]);
    check("list-nothing", 0, &["list", "-l", "arch=arm46", "-f", class]);
    check("list-no-such-label", 64, &["list", "-l", "instance-gpu-cuont>0"]);
}

#[test]
fn data_for_programs() {
    let class = "examples/classes/general.yaml";
    check("json", 0, &with_catalog(&["get", "m7g.large", "-f", class, "-o", "json"]));
    let pinned = "examples/classes/pinned.yaml";
    check("yaml", 3, &with_catalog(&["get", "g6f.large", "-f", pinned, "-o", "yaml"]));
    let types = "examples/types/amd-and-gaudi.json";
    let none = with_catalog(&["get", "dl1.24xlarge", "--types", types, "-o", "json"]);
    check("json-none", 1, &none);
}

#[test]
fn ascii_means_ascii() {
    let types = "examples/types/amd-and-gaudi.json";
    let page = ["get", "g4ad.xlarge", "g6f.large", "m5.large", "--types", types, "--ascii"];
    let selector = "instance-gpu-count";
    let list = ["list", "-l", selector, "--types", types, "-o", "wide", "--ascii"];
    for arguments in [with_catalog(&page), with_catalog(&list)] {
        let assert = run(&arguments);
        let output = assert.get_output();
        assert!(!output.stdout.is_empty());
        assert!(output.stdout.is_ascii() && output.stderr.is_ascii(), "{arguments:?}");
    }
}
