//! `nodemolt crds` as a user sees it: what stands in `deploy`, all of it or what was asked for.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_nodemolt"))
        .arg("crds")
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// The files of a folder, by name, without the line that says where they come from.
fn files(folder: &str) -> String {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.is_file())
        .collect();
    paths.sort();
    let text = paths.iter().map(|it| std::fs::read_to_string(it).unwrap());
    text.map(|it| it.split_once('\n').unwrap().1.to_owned()).collect()
}

fn names(text: &str) -> Vec<&str> {
    let names = text.lines().filter_map(|it| it.strip_prefix("  name: "));
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names
}

const OURS: [&str; 7] = [
    "awsimages.infrastructure.cluster.x-k8s.io",
    "disruptionledgers.nodemolt.dev",
    "ec2nodeclasses.nodemolt.dev",
    "imagepolicies.nodemolt.dev",
    "imagequarantines.nodemolt.dev",
    "nodedisruptionbudgets.karpenter.sh",
    "replacements.nodemolt.dev",
];

#[test]
fn what_is_printed_is_what_is_committed() {
    let (code, ours, talk) = run(&[]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    assert_eq!(names(&ours), OURS);
    // Files are sorted by group, definitions by name; the documents are the same.
    let documents = |text: &str| {
        let mut all: Vec<String> = text.split("---\n").map(str::to_owned).collect();
        all.sort();
        all
    };
    assert_eq!(documents(&ours), documents(&files("deploy/crds")));

    let (code, all, _) = run(&["--standalone"]);
    assert_eq!(code, Some(0));
    let standalone = all.strip_prefix(&ours).expect("ours come first");
    assert_eq!(
        names(standalone),
        ["ec2nodeclasses.karpenter.k8s.aws", "nodeclaims.karpenter.sh", "nodepools.karpenter.sh"]
    );
    assert_eq!(documents(standalone), documents(&files("deploy/crds/standalone")));
}

#[test]
fn only_some_of_them_by_any_of_their_names() {
    let chosen = |words: &str| run(&["--only", words]).1;
    let two = ["imagepolicies.nodemolt.dev", "nodedisruptionbudgets.karpenter.sh"];
    for words in [
        "ImagePolicy,NodeDisruptionBudget",
        "ndb,imgpol",
        "imagepolicies,nodedisruptionbudgets.karpenter.sh,ndb",
        "imagepolicy,ndb",
    ] {
        assert_eq!(names(&chosen(words)), two, "{words}");
    }
    assert_eq!(names(&chosen("EC2NodeClass")), ["ec2nodeclasses.nodemolt.dev"]);
    let (_, both, _) = run(&["--only", "EC2NodeClass", "--standalone"]);
    assert_eq!(names(&both), ["ec2nodeclasses.karpenter.k8s.aws", "ec2nodeclasses.nodemolt.dev"]);
}

#[test]
fn what_cannot_be_meant_is_said() {
    for (arguments, said) in [
        (
            ["--only", "Deployment"],
            "`Deployment` is not a kind that is served\nhint: served are AWSImage, ",
        ),
        (
            ["--only", "NodePool"],
            "`NodePool` is Karpenter's where it is installed\nhint: pass --standalone",
        ),
        (["--policies", "--standalone"], "cannot be used with"),
        (["-o", "table"], "invalid value 'table'"),
    ] {
        let (code, data, talk) = run(&arguments);
        assert_eq!((code, data.as_str()), (Some(64), ""), "{arguments:?}");
        assert!(talk.contains(said), "{arguments:?}: {talk}");
    }
}

#[test]
fn json_is_one_list_that_kubectl_takes() {
    let (code, data, _) = run(&["-o", "json"]);
    assert_eq!(code, Some(0));
    let list: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(list["kind"], "List");
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, OURS);
    // Limits are whole numbers, as the API server writes them.
    assert!(!data.contains(".0,"), "{data}");
}

#[test]
fn the_policies_are_those_that_are_committed() {
    let (code, data, talk) = run(&["--policies"]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    for file in ["allowed-images.yaml", "metadata-options.yaml"] {
        let text = std::fs::read_to_string(root().join("deploy/policies").join(file)).unwrap();
        assert!(data.contains(&format!("---\n{text}")), "{file}");
    }
    let (code, data, _) = run(&["--policies", "-o", "json"]);
    assert_eq!(code, Some(0));
    let list: Value = serde_json::from_str(&data).unwrap();
    let kinds: Vec<String> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{}/{}", it["kind"], it["metadata"]["name"]).replace('"', ""))
        .collect();
    assert_eq!(
        kinds,
        [
            "ValidatingAdmissionPolicy/allowed-images.nodemolt.dev",
            "ValidatingAdmissionPolicyBinding/allowed-images.nodemolt.dev",
            "ValidatingAdmissionPolicy/metadata-options.nodemolt.dev",
            "ValidatingAdmissionPolicyBinding/metadata-options.nodemolt.dev",
        ]
    );
}
