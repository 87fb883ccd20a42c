//! What people write in classes and user data, case by case: refused, remarked, or taken without a word.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

use std::collections::BTreeMap;

use nodemolt_core::bootstrap::{
    Cluster, IpFamily, Kubelet, MergeConflict, Placement, Settings, Taint, UserData, UserPart,
    render,
};
use nodemolt_core::fit::Family;
use serde_json::{Map, Value, json};

/// What is expected to be said, as a piece of it.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Refused(&'static str),
    Remarked(&'static str),
    Silent,
}

use Expected::{Refused, Remarked, Silent};

fn settings(kubelet: Kubelet) -> Settings {
    Settings {
        cluster: Cluster {
            name: "blue".into(),
            endpoint: "https://blue.example.com".into(),
            certificate_authority: "Y2EtYnVuZGxlCg==".into(),
            service_cidr: Some("10.100.0.0/16".into()),
            dns: vec!["10.100.0.10".parse().unwrap()],
            ip_family: IpFamily::V4,
        },
        labels: BTreeMap::from([("team".into(), "web".into())]),
        taints: vec![Taint {
            key: "karpenter.sh/unregistered".into(),
            value: None,
            effect: "NoExecute".into(),
        }],
        kubelet,
        instance_store_raid0: false,
        placement: Placement::BeforeBootstrap,
        release: None,
    }
}

fn check(family: Family, settings: &Settings, user: &str, expected: Expected) {
    let rendered = render(family, settings, UserPart(user));
    let said = match &rendered {
        Ok(UserData { remarks, .. }) | Err(MergeConflict { remarks, .. }) => {
            remarks.iter().map(ToString::to_string).collect::<Vec<_>>()
        }
    };
    let told = |piece: &str| said.iter().any(|it| it.contains(piece));
    let holds = match expected {
        Refused(piece) => rendered.is_err() && told(piece),
        Remarked(piece) => rendered.is_ok() && told(piece),
        Silent => rendered.is_ok() && said.is_empty(),
    };
    let outcome = if rendered.is_ok() { "rendered" } else { "refused" };
    assert!(holds, "{family}: {user}\nexpected {expected:?}, {outcome} with {said:#?}");
}

fn check_all(family: Family, cases: &[(&str, Expected)]) {
    for (user, expected) in cases {
        check(family, &settings(Kubelet::default()), user, *expected);
    }
}

fn open(fields: &Value) -> Kubelet {
    Kubelet { rest: fields.as_object().cloned().unwrap_or_else(Map::new), ..Kubelet::default() }
}

/// One part with these headers, written as a person writes it.
fn mime(headers: &str, body: &str) -> String {
    format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\n{headers}\n\n{body}\n--B--\n"
    )
}

fn node_config(spec: &str) -> String {
    format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {spec}\n")
}

#[test]
fn a_class_cannot_set_what_is_not_its_own() {
    for (fields, expected) in [
        (json!({"providerID": "x"}), Refused("spec.kubelet.providerID: can't be set")),
        (json!({"registerNode": false}), Refused("spec.kubelet.registerNode: can't be set")),
        (json!({"registerNode": true}), Silent),
        (json!({"kind": "X"}), Refused("spec.kubelet.kind: can't be set")),
        (json!({"kind": "KubeletConfiguration"}), Silent),
        (json!({"apiVersion": "v1"}), Refused("spec.kubelet.apiVersion: can't be set")),
        (
            json!({"registerWithTaints": []}),
            Refused("spec.kubelet.registerWithTaints: can't be set"),
        ),
        (
            json!({"serializeImagePulls": "x"}),
            Refused("serializeImagePulls: must be true or false"),
        ),
        (
            json!({"authentication": {"anonymous": {"enabled": 0}}}),
            Refused("authentication: must have true or false as `anonymous.enabled`"),
        ),
        (json!({"brandNew": 1}), Remarked("spec.kubelet.brandNew: is no field")),
    ] {
        check(Family::Al2023, &settings(open(&fields)), "", expected);
    }
    let refused = render(Family::Al2, &settings(open(&json!({"providerID": "x"}))), UserPart(""));
    assert_eq!(refused.unwrap_err().remarks.len(), 1, "one cause, one error");
}

#[test]
fn reserved_values_count_for_custom_images_and_are_checked() {
    let kubelet = Kubelet {
        kube_reserved: BTreeMap::from([("cpu".to_owned(), "1' ; id".to_owned())]),
        ..Kubelet::default()
    };
    let expected = Refused("spec.kubelet.kubeReserved[cpu]: ");
    check(Family::Custom, &settings(kubelet), "anything", expected);
    check(Family::Custom, &settings(Kubelet::default()), "anything", Silent);
}

#[test]
fn a_node_config_is_what_a_node_can_start_with() {
    for (spec, expected) in [
        (
            "{kubelet: {config: {providerID: x}}}",
            Refused("`spec.kubelet.config.providerID` can't be set"),
        ),
        (
            "{kubelet: {config: {registerNode: false}}}",
            Refused("userData:3:41: `spec.kubelet.config.registerNode`"),
        ),
        ("{kubelet: {config: {registerNode: true}}}", Silent),
        ("{kubelet: {config: {kind: X}}}", Refused("`spec.kubelet.config.kind` can't be set")),
        ("{kubelet: {config: {nodeStatusUpdateFrequency: abc}}}", Refused("must be a duration")),
        ("{kubelet: {config: {serializeImagePulls: 'x'}}}", Refused("must be true or false")),
        ("{kubelet: {config: {serializeImagePulls: no}}}", Silent),
        (
            "{kubelet: {flags: ['--provider-id=x']}}",
            Refused("the flag `--provider-id` is for nodemolt"),
        ),
        (
            "{kubelet: {flags: ['--hostname-override=x']}}",
            Refused("the flag `--hostname-override`"),
        ),
        ("{kubelet: {flags: ['--config-dir=/x']}}", Refused("the flag `--config-dir`")),
        ("{kubelet: {flags: ['--root-dir']}}", Refused("has no value, and takes what follows")),
        ("{kubelet: {flags: ['--root-dir=/x']}}", Silent),
        (
            "{instance: {localStorage: {strategy: RAID5}}}",
            Refused("`RAID5` is not one of RAID0, RAID10, Mount"),
        ),
        ("{instance: {localStorage: {strategy: raid10}}}", Silent),
        ("{instance: {localStorage: {disabledMounts: [Foo]}}}", Remarked("`Foo` is not one of")),
        (
            "{containerd: {config: 'x = [1'}}",
            Refused("`spec.containerd.config` cannot be read as TOML"),
        ),
        ("{containerd: {config: 'version = 3'}}", Silent),
        ("{featureGates: {Foo: true}}", Remarked("`Foo` is none of nodeadm's")),
        ("{featureGates: {FastImagePull: true}}", Silent),
        (
            "{cluster: {enableOutpost: true}}",
            Refused("`spec.cluster.enableOutpost` needs `spec.cluster.id`"),
        ),
        ("{cluster: {enableOutpost: true, id: x}}", Silent),
        ("{cluster: {enableOutpost: false}}", Silent),
        ("{cluster: {certificateAuthority: '%'}}", Refused("must be base64")),
    ] {
        check(Family::Al2023, &settings(Kubelet::default()), &node_config(spec), expected);
    }
}

#[test]
fn two_node_configs_are_read_as_nodeadm_merges_them() {
    let both = |one: &str, other: &str| {
        let header = "Content-Type: application/node.eks.aws";
        let second = format!("{}--B\n{header}\n\n{}", node_config(one), node_config(other));
        mime(header, &second)
    };
    let taint = |key: &str| {
        format!(
            "{{kubelet: {{config: {{registerWithTaints: [{{key: {key}, effect: NoSchedule}}]}}}}}}"
        )
    };
    for (one, other, expected) in [
        (taint("a"), taint("b"), Remarked("the taint `a:NoSchedule` is lost")),
        (taint("a"), taint("a"), Silent),
        ("{cluster: {enableOutpost: true}}".to_owned(), "{cluster: {id: x}}".to_owned(), Silent),
    ] {
        check(Family::Al2023, &settings(Kubelet::default()), &both(&one, &other), expected);
    }
}

/// What the class says and what the user says must fit together: the kubelet does not start otherwise.
#[test]
fn thresholds_pair_over_class_and_user() {
    let signal = |value: &str| BTreeMap::from([("memory.available".to_owned(), value.to_owned())]);
    let soft = Kubelet { eviction_soft: signal("1Gi"), ..Kubelet::default() };
    let paired = Kubelet { eviction_soft_grace_period: signal("1m"), ..soft.clone() };
    let high = Kubelet { image_gc_high_threshold_percent: Some(80), ..Kubelet::default() };
    let none = Kubelet::default;
    let toml = |text: &str| format!("[settings.kubernetes]\n{text}\n");
    let nc = |text: &str| node_config(&format!("{{kubelet: {{config: {{{text}}}}}}}"));
    let user_soft = "evictionSoft: {nodefs.available: 10%}";
    let user_pair =
        "evictionSoft: {nodefs.available: 10%}, evictionSoftGracePeriod: {nodefs.available: 1m}";
    for (family, kubelet, user, expected) in [
        (Family::Al2023, none(), nc(user_soft), Refused("has no matching evictionSoftGracePeriod")),
        (Family::Al2023, none(), nc(user_pair), Silent),
        (Family::Al2023, paired.clone(), nc(user_soft), Refused("evictionSoft[nodefs.available]")),
        (
            Family::Al2023,
            paired.clone(),
            nc("evictionSoft: {memory.available: 2Gi}"),
            Remarked("yours is not used"),
        ),
        (
            Family::Al2023,
            high.clone(),
            nc("imageGCLowThresholdPercent: 90"),
            Refused("(80) must be greater than"),
        ),
        (Family::Al2023, high.clone(), nc("imageGCLowThresholdPercent: 70"), Silent),
        (
            Family::Bottlerocket,
            none(),
            toml("[settings.kubernetes.eviction-soft]\n\"memory.available\" = \"1Gi\""),
            Refused("has no matching evictionSoftGracePeriod"),
        ),
        (
            Family::Bottlerocket,
            none(),
            toml(
                "eviction-soft-grace-period = { \"memory.available\" = \"1m\" }\neviction-soft = { \"memory.available\" = \"1Gi\" }",
            ),
            Silent,
        ),
        (
            Family::Bottlerocket,
            high.clone(),
            toml("image-gc-low-threshold-percent = \"90\""),
            Refused("(80) must be greater than"),
        ),
        (Family::Bottlerocket, high, toml("image-gc-low-threshold-percent = \"70\""), Silent),
    ] {
        check(family, &settings(kubelet), &user, expected);
    }
    // The class alone is judged with its own fields; the user may complete it nowhere else.
    check(
        Family::Al2023,
        &settings(soft),
        "",
        Refused("spec.kubelet.evictionSoft[memory.available]"),
    );
}

#[test]
fn a_node_config_may_be_encoded_as_far_as_nodeadm_undoes_it() {
    let header = "Content-Type: application/node.eks.aws";
    let plain = "YXBpVmVyc2lvbjogbm9kZS5la3MuYXdzL3YxYWxwaGExCmtpbmQ6IE5vZGVDb25maWcKc3BlYzoge30K";
    let wrong = "YXBpVmVyc2lvbjogbm9kZS5la3MuYXdzL3YxYWxwaGExCmtpbmQ6IE90aGVyCg==";
    let gzip =
        "H4sIAAAAAAAAA0ssyAxLLSrOzM+zUsjLT0nVS80u1kssL9YvM0zMKchINORKzczMS7FScM5PSU0FAHUq4mQsAAAA";
    check_all(
        Family::Al2023,
        &[
            (&mime(header, plain), Remarked("is base64, which only images since May 2024 read")),
            (&mime(header, wrong), Refused("`kind` must be `NodeConfig`")),
            (&mime(header, gzip), Refused("is gzip, and cannot be checked here")),
            (
                &mime(
                    &format!("{header}\nContent-Transfer-Encoding: quoted-printable"),
                    "apiVersion: node.eks.aws/v1alpha1\nkind: =\nNodeConfig\nspec: =7B=7D",
                ),
                Silent,
            ),
            (
                &mime(
                    &format!("{header}\nContent-Transfer-Encoding: quoted-printable"),
                    "kind: =ZZ",
                ),
                Refused("is not quoted-printable"),
            ),
            (
                &mime(header, "#!/bin/bash\necho hi"),
                Refused("is a script, and its type says that it is a NodeConfig"),
            ),
            (&mime(header, "# nothing"), Refused("the NodeConfig is empty")),
            (
                &format!("# ours\n{}", mime(header, &node_config("{}"))),
                Refused("userData:2:1: is MIME behind a comment"),
            ),
            (
                &mime("Content-Type: text/x-shellscript\nContent-Transfer-Encoding: base64", "@@@"),
                Refused("userData:8:1: is not base64"),
            ),
        ],
    );
}

/// Cloud-init names scripts by more than shell parts, and runs them by those names.
#[test]
fn every_name_that_becomes_a_scripts_is_checked_on_al2() {
    let named = |kind: &str, name: &str| {
        format!("Content-Type: {kind}\nContent-Disposition: attachment; filename=\"{name}\"")
    };
    let jinja = "## template: jinja\n#!/bin/bash\necho";
    let archive = |name: &str| {
        format!(
            "#cloud-config-archive\n- type: text/x-shellscript\n  filename: {name}\n  content: |\n    #!/bin/bash\n"
        )
    };
    let gzip = "H4sIAAAAAAAAA1NW1E/KzNMvzuBKTc7IBwAvKQgZDwAAAA==";
    let packed =
        format!("{}\nContent-Transfer-Encoding: base64", named("application/gzip", "zzzzz.sh"));
    let packed_fine =
        format!("{}\nContent-Transfer-Encoding: base64", named("application/gzip", "a.sh"));
    let message = format!("{}\n\n#!/bin/bash\n", named("text/x-shellscript", "zzzzz.sh"));
    for (user, expected) in [
        (
            mime(&named("text/jinja2", "zzzz-nodemolt-kubelet.sh"), jinja),
            Refused("is the name of a part of ours"),
        ),
        (mime(&named("text/jinja2", "zzzzz.sh"), jinja), Refused("`zzzzz.sh` sorts after")),
        (mime(&named("text/jinja2", "a.sh"), jinja), Remarked("known on the node only")),
        (
            archive("zzzz-nodemolt-bootstrap.sh"),
            Refused("userData:3:1: `zzzz-nodemolt-bootstrap.sh` is the name"),
        ),
        (archive("zzzzz.sh"), Refused("`zzzzz.sh` sorts after")),
        (archive("a.sh"), Silent),
        (mime(&packed, gzip), Refused("`zzzzz.sh` sorts after")),
        (mime(&packed_fine, gzip), Remarked("what it unpacks to is known on the node only")),
        (mime("Content-Type: message/rfc822", &message), Refused("is a message within a message")),
        (mime(&named("text/x-shellscript", "a.sh"), "#!/bin/bash"), Silent),
    ] {
        check(Family::Al2, &settings(Kubelet::default()), &user, expected);
    }
    let between = Settings {
        placement: Placement::BetweenBootstrapAndKubelet,
        ..settings(Kubelet::default())
    };
    let early = mime(&named("text/jinja2", "0"), jinja);
    check(Family::Al2, &between, &early, Refused("`0` sorts before"));
}

#[test]
fn a_cloud_config_is_read_as_cloud_init_reads_it() {
    let without = "#cloud-config\ncloud_final_modules: [final-message]\n";
    let archive = "#cloud-config-archive\n- '#!/bin/sh'\n- type: text/cloud-config\n  content: |\n    cloud_final_modules: []\n";
    let nested = mime(
        "Content-Type: multipart/mixed; boundary=\"C\"",
        "--C\nContent-Type: text/cloud-config\n\npower_state: {mode: reboot}\n--C--",
    );
    for family in [Family::Al2, Family::Al2023] {
        check_all(
            family,
            &[
                ("#cloud-config\npackages: [jq]\n", Silent),
                (
                    "#cloud-config\nfoo: [\n",
                    Remarked("cloud-init drops a `#cloud-config` that it cannot read"),
                ),
                ("#cloud-config\n- a\n", Remarked("userData:2:1: a `#cloud-config` is a map")),
                (
                    "#cloud-config\npower_state: {mode: reboot}\n",
                    Remarked("userData:2:14: `power_state` turns the machine off"),
                ),
                (
                    "#cloud-config\ncloud_init_modules: []\n",
                    Remarked("`cloud_init_modules` decides"),
                ),
                ("#cloud-config\ncloud_final_modules: [scripts-user]\n", Silent),
                ("#cloud-config\ncloud_final_modules: [[scripts_user, always]]\n", Silent),
                (&nested, Remarked("userData:10:14: `power_state`")),
            ],
        );
    }
    check_all(
        Family::Al2,
        &[
            (without, Refused("userData:2:22: `cloud_final_modules` has no `scripts-user`")),
            (archive, Refused("userData:3:1: `cloud_final_modules` has no `scripts-user`")),
            ("#cloud-config\nruncmd: [ls]\n", Remarked("its `runcmd` runs as a script")),
            ("#cloud-config-archive\n- '#!/bin/sh'\n", Silent),
        ],
    );
    check_all(
        Family::Al2023,
        &[
            (without, Remarked("has no `scripts-user`")),
            (archive, Remarked("has no `scripts-user`")),
        ],
    );
}

#[test]
fn what_would_take_our_lines_in_on_windows_is_told() {
    check_all(
        Family::Windows2022,
        &[
            ("Write-Host hi\n", Silent),
            ("<powershell>\nif ($true) { 'x' }\n</powershell>", Silent),
            ("Write-Host `\n", Remarked("userData:1:12: ends in a backtick")),
            ("<# open\n", Remarked("userData:1:1: `<#` is never closed")),
            ("$x = @\"\nabc\n", Remarked("`@\"` is never closed")),
            ("Write-Host 'a\n", Remarked("userData:1:12: `'` is never closed")),
            (
                "<powershell>\nif ($true) {\n</powershell>",
                Remarked("userData:2:12: `{` is never closed"),
            ),
            ("Write-Host }\n", Remarked("`}` closes what was never opened")),
            ("#!/bin/bash\n", Remarked("is a script for a shell")),
            ("version: 1.1\ntasks:\n- task: x\n", Remarked("looks like YAML of EC2Launch")),
            ("exit 0\n", Remarked("`exit` ends the script before ours")),
        ],
    );
}

#[test]
fn a_bottlerocket_node_is_told_what_it_can_start_with() {
    let kubernetes = |text: &str| format!("[settings.kubernetes]\n{text}\n");
    for (text, expected) in [
        ("max-pods = -7", Refused("must be a whole number from 0, not -7")),
        ("max-pods = \"7\"", Refused("must be a whole number from 0, not text")),
        (
            "node-labels = { \"kubernetes.io/role\" = \"x\" }",
            Refused("is in a domain of Kubernetes"),
        ),
        (
            "node-labels = { \"node-restriction.kubernetes.io/a\" = \"x\" }",
            Refused("is in a domain of Kubernetes"),
        ),
        ("node-labels = { \"node.kubernetes.io/a\" = \"x\" }", Silent),
        ("node-labels = { \"kubernetes.io/os\" = \"linux\" }", Silent),
        ("hostname-override = \"x\"", Remarked("hostname-override` gives the node a name")),
        ("provider-id = \"x\"", Remarked("provider-id` stands over")),
        ("standalone-mode = true", Remarked("standalone-mode` decides")),
        ("standalone-mode = false", Silent),
    ] {
        check(Family::Bottlerocket, &settings(Kubelet::default()), &kubernetes(text), expected);
    }
}

#[test]
fn comments_stay_where_they_were_written() {
    let settings = settings(Kubelet::default());
    let rendered =
        |user: &str| render(Family::Bottlerocket, &settings, UserPart(user)).unwrap().text;
    let key = "\"karpenter.sh/unregistered\"";
    for (user, expected) in [
        (
            format!(
                "[settings.kubernetes.node-taints]\n{key} = [\n  \"x:NoSchedule\", # keep\n]\n"
            ),
            format!("{key} = [\n  \"x:NoSchedule\", # keep\n  \":NoExecute\",\n]\n"),
        ),
        (
            format!("[settings.kubernetes.node-taints]\n{key} = [\"x:NoSchedule\"] # keep\n"),
            format!("{key} = [\"x:NoSchedule\", \":NoExecute\"] # keep\n"),
        ),
        (
            format!(
                "[settings.kubernetes.node-taints]\n{key} = [\n  # why\n  \"x:NoExecute\" # keep\n]\n"
            ),
            format!("{key} = [\n  # why\n  \":NoExecute\" # keep\n]\n"),
        ),
        (
            "# mine alone\n\n# and this".to_owned(),
            "# mine alone\n\n# and this\n[settings".to_owned(),
        ),
    ] {
        let text = rendered(&user);
        assert!(text.contains(&expected), "{user}\nbecame\n{text}");
        assert_eq!(rendered(&text), text, "merging again changes nothing");
    }
    assert!(rendered("# mine alone\n").starts_with("# mine alone\n[settings"));
}

#[test]
fn an_authority_stands_on_one_line() {
    for (authority, expected) in [
        ("Y2Et\nYnVuZGxlCg==", Refused("cluster.certificateAuthority")),
        ("Y2Et\r\nYnVuZGxlCg==", Refused("cluster.certificateAuthority")),
        ("", Refused("cluster.certificateAuthority")),
        ("Y2EtYnVuZGxlCg==", Silent),
    ] {
        for family in [Family::Al2, Family::Al2023, Family::Bottlerocket, Family::Windows2022] {
            let mut settings = settings(Kubelet::default());
            authority.clone_into(&mut settings.cluster.certificate_authority);
            check(family, &settings, "", expected);
        }
    }
}
