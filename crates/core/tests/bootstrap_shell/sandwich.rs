//! The parts are run, as cloud-init runs them, against stand-ins for systemctl and bootstrap.sh.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nodemolt_core::bootstrap::al2::{BOOTSTRAP_FIRST, BOOTSTRAP_LAST, KUBELET_LAST};
use nodemolt_core::bootstrap::mime::{self, SHELL};
use nodemolt_core::bootstrap::{Kubelet, Settings, UserPart, render, user_part};
use nodemolt_core::fit::Family;
use serde_json::{Map, Value, json};

use crate::{Dice, al2, between, map, scratch, settings};

/// An AL2 machine, as far as its files go, below a folder.
struct Machine {
    root: PathBuf,
    /// What cloud-init would run, in its order.
    scripts: BTreeMap<String, PathBuf>,
}

impl Machine {
    fn boot(name: &str, user_data: &str) -> Self {
        let root = scratch(name);
        for folder in [
            "bin",
            "dev",
            "etc/eks",
            "etc/kubernetes/kubelet",
            "etc/systemd/system",
            "run",
            "scripts",
            "state",
            "var/log",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("etc/systemd/system/kubelet.service"), "[Service]\n").unwrap();
        fs::write(root.join("state/calls"), "").unwrap();
        executable(&root.join("bin/systemctl"), include_str!("stand-ins/systemctl"));
        executable(&root.join("bin/logger"), "#!/bin/sh\ncat > /dev/null\n");
        executable(&root.join("etc/eks/bootstrap.sh"), include_str!("stand-ins/bootstrap.sh"));

        let mut scripts = BTreeMap::new();
        for (number, found) in (1..).zip(mime::read(user_data).unwrap().parts) {
            if found.part.content_type() != SHELL {
                continue;
            }
            let name = found.part.filename().unwrap_or_else(|| format!("part-{number:03}"));
            let text = String::from_utf8(user_part::decoded(&found.part).unwrap()).unwrap();
            let file = root.join("scripts").join(&name);
            executable(&file, &below(&root, &text));
            scripts.insert(name, file);
        }
        Self { root, scripts }
    }

    /// The scripts in the order of their names, whatever each returns.
    fn run(&self, fail: &str) -> BTreeMap<&str, i32> {
        self.scripts.keys().map(|name| (name.as_str(), self.run_one(name, fail))).collect()
    }

    fn run_one(&self, name: &str, fail: &str) -> i32 {
        let path = format!("{}:/usr/bin:/bin", self.root.join("bin").display());
        let mut command = Command::new(&self.scripts[name]);
        command.env_clear().env("PATH", path).env("ROOT", &self.root).env("FAIL", fail);
        command.output().unwrap().status.code().unwrap()
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(file)).unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.root.join(file), text).unwrap();
    }

    fn running(&self) -> bool {
        self.root.join("state/running").exists()
    }

    fn words(&self) -> Vec<String> {
        self.read("state/words").split_terminator('\0').map(ToOwned::to_owned).collect()
    }

    fn config(&self) -> Value {
        serde_json::from_str(&self.read("state/started-config.json")).unwrap()
    }

    /// What happened, in order, without what says nothing.
    fn story(&self) -> Vec<String> {
        self.read("state/calls")
            .lines()
            .filter(|it| *it != "systemctl daemon-reload" && !it.contains("is-enabled"))
            .map(ToOwned::to_owned)
            .collect()
    }
}

/// AL2's paths, below the folder.
fn below(root: &Path, text: &str) -> String {
    ["etc", "run", "var/log", "dev/console"].iter().fold(text.to_owned(), |text, path| {
        let there = format!("{}/{path}", root.display());
        text.replace(&format!(" /{path}"), &format!(" {there}"))
            .replace(&format!("=/{path}"), &format!("={there}"))
            .replace(&format!("\n/{path}"), &format!("\n{there}"))
    })
}

fn executable(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

const SAY: &str = "#!/bin/bash\necho user >> $ROOT/state/calls\n";

#[test]
fn by_default_the_users_part_runs_before_bootstrap() {
    let machine = Machine::boot("default", &al2(&settings(), SAY).text);
    assert_eq!(machine.run(""), BTreeMap::from([("part-001", 0), (BOOTSTRAP_LAST, 0)]));
    assert_eq!(
        machine.story(),
        [
            "user",
            "bootstrap.sh",
            "systemctl enable kubelet",
            "systemctl start kubelet",
            "kubelet: started"
        ]
    );
    assert_eq!(machine.read("state/cluster"), "test-cluster\n");
}

#[test]
fn in_the_sandwich_the_kubelet_starts_last_and_once() {
    let user = format!(
        "{SAY}systemctl start kubelet\nsystemctl enable --now kubelet\nsystemctl restart kubelet\nexit 3\n"
    );
    let machine = Machine::boot("sandwich", &al2(&between(), &user).text);
    assert_eq!(
        machine.run(""),
        BTreeMap::from([(BOOTSTRAP_FIRST, 0), ("part-002", 3), (KUBELET_LAST, 0)])
    );
    assert_eq!(
        machine.story(),
        [
            "bootstrap.sh",
            "systemctl enable kubelet",
            "systemctl start kubelet",
            "kubelet: condition failed",
            "user",
            "systemctl start kubelet",
            "kubelet: condition failed",
            "systemctl enable --now kubelet",
            "kubelet: condition failed",
            "systemctl restart kubelet",
            "kubelet: condition failed",
            "systemctl enable kubelet",
            "systemctl start kubelet",
            "kubelet: started",
        ]
    );
    assert_eq!(machine.read("state/cluster"), "test-cluster\n");
    assert!(
        !machine.root.join("run/systemd/system/kubelet.service.d/00-nodemolt-hold.conf").exists()
    );
}

#[test]
fn without_a_users_part_the_sandwich_starts_the_kubelet_all_the_same() {
    let machine = Machine::boot("sandwich-alone", &al2(&between(), " \n").text);
    machine.run("");
    assert!(machine.running());
}

#[test]
fn names_between_ours_run_between() {
    let part = |name: &str| {
        format!(
            "--//\nContent-Type: text/x-shellscript\nContent-Disposition: attachment; filename=\"{name}\"\n\n#!/bin/bash\necho {name} >> $ROOT/state/calls\n"
        )
    };
    let user = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n{}{}{}--//--\n",
        part("zz.sh"),
        part("00-first.sh"),
        part("setup.sh")
    );
    let machine = Machine::boot("names", &al2(&between(), &user).text);
    machine.run("");
    let ran: Vec<String> = machine.story().into_iter().filter(|it| !it.contains(' ')).collect();
    assert_eq!(ran, ["bootstrap.sh", "00-first.sh", "setup.sh", "zz.sh"]);
    assert!(machine.running());
}

#[test]
fn a_user_may_hold_the_kubelet_and_let_it_go() {
    let user = "#!/bin/bash\ntouch /run/nodemolt/hold-kubelet\n";
    let machine = Machine::boot("hold", &al2(&between(), user).text);
    machine.run("");
    assert!(!machine.running());
    fs::remove_file(machine.root.join("run/nodemolt/hold-kubelet")).unwrap();
    assert_eq!(machine.run_one(KUBELET_LAST, ""), 0);
    assert!(machine.running());
}

#[test]
fn a_bootstrap_that_failed_starts_no_kubelet_unless_it_failed_after_it() {
    let machine = Machine::boot("early", &al2(&between(), SAY).text);
    let returned = machine.run("early");
    assert_eq!((returned[BOOTSTRAP_FIRST], returned[KUBELET_LAST]), (7, 1));
    assert!(!machine.running());
    assert!(machine.story().contains(&"user".to_owned()));

    let machine = Machine::boot("late", &al2(&between(), SAY).text);
    let returned = machine.run("late");
    assert_eq!((returned[BOOTSTRAP_FIRST], returned[KUBELET_LAST]), (9, 0));
    assert!(machine.running());
}

#[test]
fn bootstrap_gets_each_word_as_it_was() {
    let mut full = settings();
    full.instance_store_raid0 = true;
    full.cluster.dns = vec!["fd00::a".parse().unwrap()];
    full.kubelet = Kubelet {
        pods_per_core: Some(10),
        system_reserved: map(&[("memory", "100Mi"), ("cpu", "100m")]),
        kube_reserved: map(&[("cpu", "200m")]),
        eviction_hard: map(&[("nodefs.available", "10%"), ("memory.available", "5%")]),
        eviction_soft: map(&[("memory.available", "6%")]),
        eviction_soft_grace_period: map(&[("memory.available", "1m30s")]),
        eviction_max_pod_grace_period: Some(60),
        image_gc_high_threshold_percent: Some(85),
        image_gc_low_threshold_percent: Some(80),
        cpu_cfs_quota: Some(false),
        ..full.kubelet
    };
    let machine = Machine::boot("words", &al2(&full, "").text);
    machine.run("");
    let flags = "--node-labels=\"karpenter.sh/capacity-type=on-demand,karpenter.sh/nodepool=general,\
        testing/cluster=unspecified\" --register-with-taints=\"karpenter.sh/unregistered:NoExecute\" \
        --max-pods=110 --pods-per-core=10 --system-reserved=\"cpu=100m,memory=100Mi\" \
        --kube-reserved=\"cpu=200m\" --eviction-hard=\"memory.available<5%,nodefs.available<10%\" \
        --eviction-soft=\"memory.available<6%\" --eviction-soft-grace-period=\"memory.available=1m30s\" \
        --eviction-max-pod-grace-period=60 --image-gc-high-threshold=85 --image-gc-low-threshold=80 \
        --cpu-cfs-quota=false";
    assert_eq!(
        machine.words(),
        [
            "test-cluster",
            "--apiserver-endpoint",
            "https://test-cluster",
            "--b64-cluster-ca",
            "Y2EtYnVuZGxlCg==",
            "--ip-family",
            "ipv6",
            "--dns-cluster-ip",
            "fd00::a",
            "--use-max-pods",
            "false",
            "--kubelet-extra-args",
            flags,
            "--local-disks",
            "raid0"
        ]
    );
    assert_eq!(machine.read("state/started-args").trim_end(), flags);
}

/// RFC 7396, written down once more.
fn patched(target: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut target = if let Value::Object(it) = target { it } else { Map::new() };
    for (key, value) in patch {
        let old = target.remove(key).unwrap_or(Value::Null);
        if !value.is_null() {
            target.insert(key.clone(), patched(old, value));
        }
    }
    Value::Object(target)
}

fn any_json(dice: &mut Dice, depth: usize) -> Value {
    let keys = [
        "featureGates",
        "authentication",
        "webhook",
        "anonymous",
        "enabled",
        "a\"b",
        "ü",
        "maxPods",
        "clusterDNS",
    ];
    match dice.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(dice.below(2) == 0),
        2 => json!(dice.below(100)),
        3 => json!(dice.text(&["a", "'", "\"", "\\", "$(id)", "\n", "ü", "%"], 4)),
        4 => json!([1, null, {"a": null}]),
        5 => json!({}),
        _ => Value::Object(
            (0..dice.below(4))
                .map(|_| ((*dice.of(&keys)).to_owned(), any_json(dice, depth - 1)))
                .collect(),
        ),
    }
}

#[test]
fn a_patch_is_merged_and_our_keys_stay_ours() {
    const CUSTOM: &str = "etc/kubernetes/kubelet/kubelet-config-custom.json";
    const CONFIG: &str = "etc/kubernetes/kubelet/kubelet-config.json";
    let kubelet = Kubelet { kube_reserved: map(&[("cpu", "1")]), ..between().kubelet };
    let machine = Machine::boot("patch", &al2(&Settings { kubelet, ..between() }, "").text);
    machine.run_one(BOOTSTRAP_FIRST, "");
    let saved: Value = serde_json::from_str(&machine.read(CONFIG)).unwrap();
    let owned = [
        "apiVersion",
        "clusterDNS",
        "kind",
        "providerID",
        "registerNode",
        "registerWithTaints",
        "maxPods",
        "kubeReserved",
    ];
    let mut dice = Dice(7396);
    for round in 0..60 {
        let mut patch = json!({});
        for key in ["authentication", "featureGates", "evictionHard", "containerLogMaxSize"]
            .iter()
            .chain(&owned)
        {
            if dice.below(2) == 0 {
                patch[*key] = any_json(&mut dice, 3);
            }
        }
        let mut expected = patched(saved.clone(), &patch);
        for key in owned {
            match saved.get(key) {
                Some(value) => expected[key] = value.clone(),
                None => drop(expected.as_object_mut().unwrap().remove(key)),
            }
        }
        machine.write(CONFIG, &saved.to_string());
        machine.write(CUSTOM, &patch.to_string());
        let _ = fs::remove_file(machine.root.join("state/running"));
        assert_eq!(machine.run_one(KUBELET_LAST, ""), 0);
        assert_eq!(machine.config(), expected, "round {round}: {patch}");
    }
    // What is no patch is left out, and the kubelet starts.
    for broken in ["", "{", "[]", "{} {}", "null", "\u{0}"] {
        machine.write(CONFIG, &saved.to_string());
        machine.write(CUSTOM, broken);
        let _ = fs::remove_file(machine.root.join("state/running"));
        machine.run_one(KUBELET_LAST, "");
        assert!(machine.running());
        assert_eq!(machine.config(), saved, "{broken:?}");
    }
    // Edits in place count too; a file that was left broken is as before again.
    let mut edited = saved.clone();
    edited["serializeImagePulls"] = json!(true);
    edited["maxPods"] = json!(250);
    for (left, expected) in [(edited.to_string(), true), ("{".to_owned(), false)] {
        machine.write(CONFIG, &left);
        machine.write(CUSTOM, "{}");
        let _ = fs::remove_file(machine.root.join("state/running"));
        machine.run_one(KUBELET_LAST, "");
        assert_eq!(machine.config()["serializeImagePulls"], json!(expected));
        assert_eq!(machine.config().get("maxPods"), None);
    }
}

#[test]
fn extra_flags_come_before_ours_and_only_as_flags() {
    let user = "#!/bin/bash
cat > /etc/kubernetes/kubelet/kubelet-extra-args-custom << 'END'
# mine
--v=4
--node-labels=team=web

--max-pods=250
--register-with-taints=
--cluster-dns=1.1.1.1
--feature-gates=A=true,B=false
--x='$(touch pwned)'
--x=a b
--x=50%n
--root-dir
--config=/tmp/mine.json
--config-dir=/tmp/mine.d
--kubeconfig=/tmp/mine
--hostname-override=me
v=3
--topology-manager-policy=best-effort
END
printf -- '--y=1' >> /etc/kubernetes/kubelet/kubelet-extra-args-custom
";
    let machine = Machine::boot("extra", &al2(&between(), user).text);
    machine.run("");
    let ours =
        machine.words().into_iter().skip_while(|it| it != "--kubelet-extra-args").nth(1).unwrap();
    assert_eq!(
        machine.read("state/started-args").trim_end(),
        format!(
            "--v=4 --node-labels=team=web --feature-gates=A=true,B=false \
             --topology-manager-policy=best-effort --y=1 {ours}"
        )
    );
    let log = machine.read("var/log/user-data.log");
    assert!(log.contains("--max-pods belongs to the class"), "{log}");
    assert!(log.contains("no --name=value that can be passed on: --root-dir"), "{log}");
}

/// Every script that we write is one that bash can read.
#[test]
fn bash_reads_every_script_of_ours() {
    let folder = scratch("syntax");
    let mut files = Vec::new();
    for (number, base) in (0..).zip([settings(), between()]) {
        for raid in [false, true] {
            for kubelet in [
                Kubelet::default(),
                base.kubelet.clone(),
                Kubelet { cpu_cfs_quota: Some(true), ..Kubelet::default() },
            ] {
                for user in [
                    "",
                    SAY,
                    "#cloud-config\nruncmd: []\n",
                    "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--b--\n",
                ] {
                    let settings = Settings {
                        instance_store_raid0: raid,
                        kubelet: kubelet.clone(),
                        ..base.clone()
                    };
                    let text = al2(&settings, user).text;
                    for found in mime::read(&text).unwrap().parts {
                        if found.part.content_type() == SHELL {
                            let file = folder.join(format!("{number}-{}.sh", files.len()));
                            fs::write(&file, &found.part.body).unwrap();
                            files.push(file);
                        }
                    }
                }
            }
        }
    }
    assert!(files.len() > 50);
    let out = Command::new("bash")
        .args(["-c", "for file; do bash -n \"$file\" || exit 1; done", "bash"])
        .args(&files)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// A hostile value is refused, or it is data; in no case does anything of it run.
#[test]
fn nothing_hostile_becomes_a_command() {
    let hostile = [
        "'; touch pwned; '",
        "$(touch pwned)",
        "`touch pwned`",
        "a\nExecStartPre=/bin/touch pwned",
        "a' b",
        "\"",
        "a b",
        "x]]>",
        "--//",
        "a,e",
        "\u{2028}",
        "%n",
        "\\x27",
        "",
    ];
    for value in hostile {
        let mut attempts = vec![settings(); 9];
        attempts[0].labels.insert("x".into(), value.into());
        attempts[1].labels.insert(value.into(), "x".into());
        attempts[2].taints[0].key = value.into();
        attempts[3].taints[0].value = Some(value.into());
        attempts[4].taints[0].effect = value.into();
        attempts[5].cluster.name = value.into();
        attempts[6].cluster.endpoint = format!("https://{value}");
        attempts[7].cluster.certificate_authority = value.into();
        attempts[8].kubelet.kube_reserved = map(&[("cpu", value)]);
        for (which, attempt) in attempts.iter().enumerate() {
            for family in [Family::Al2, Family::Windows2022] {
                // An empty value is a value.
                let harmless = value.is_empty() && matches!(which, 0 | 3);
                let refused = render(family, attempt, UserPart("")).is_err();
                assert!(refused || harmless, "{which} {value:?}");
            }
        }
        // As a user's part it stays in its part: the scripts that run are that one and ours.
        let user = format!(
            "#!/bin/true\n{value}\n\n--nodemolt-0\nContent-Type: text/x-shellscript\n\n#!/bin/bash\ntouch pwned\n"
        );
        let parts = mime::read(&al2(&between(), &user).text).unwrap().parts;
        assert_eq!(parts.len(), 3, "{value:?}");
        assert_eq!(user_part::decoded(&parts[1].part), Some(user.into_bytes()));
    }
}
