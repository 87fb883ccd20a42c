//! AL2023: what nodeadm will make of the document is what the user and we said.

use super::*;

/// The `NodeConfig`s of a document, found by hand and read by serde.
pub(super) fn node_configs(text: &str) -> Vec<Value> {
    let boundary = text.split("boundary=\"").nth(1).unwrap().split('"').next().unwrap();
    let delimiter = format!("\n--{boundary}");
    let parts = text.split(delimiter.as_str()).skip(1);
    let heads = parts.filter_map(|it| it.strip_prefix('\n')?.split_once("\n\n"));
    heads
        .filter(|(head, _)| head.lines().any(|it| it == "Content-Type: application/node.eks.aws"))
        .map(|(_, body)| serde_saphyr::from_str(body).unwrap())
        .collect()
}

/// As nodeadm merges: maps per key at every depth, lists replaced, and flags appended.
fn nodeadm(into: &mut Value, from: &Value, path: &str) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                nodeadm(into.entry(key).or_insert(json!(null)), value, &format!("{path}.{key}"));
            }
        }
        (Value::Array(into), Value::Array(from)) if path == ".spec.kubelet.flags" => {
            into.extend(from.iter().cloned());
        }
        (into, from) => *into = from.clone(),
    }
}

fn user_config() -> impl Strategy<Value = Value> {
    let config = (
        option::of(0..200_u32),
        option::of(texts(&["cpu", "pid"], &AMOUNTS)),
        option::of(texts(&SIGNALS, &["7%", "1Gi"])),
        option::of(taints()),
        option::of(any::<bool>()),
        option::of("\\PC{0,10}"),
    );
    (config, any::<bool>(), option::of(select(&["other", "test-cluster"][..]))).prop_map(
        |((max_pods, reserved, eviction, taints, quota, anything), flags, name)| {
            let mut config = json!({});
            let mut set = |key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    config[key] = value;
                }
            };
            set("maxPods", max_pods.map(Value::from));
            set("kubeReserved", reserved.map(|it| json!(it)));
            set("evictionHard", eviction.map(|it| json!(it)));
            set("registerWithTaints", taints.map(|it| it.iter().map(taint).collect()));
            set("cpuCFSQuota", quota.map(Value::from));
            set("clusterDomain", anything.map(Value::from));
            let mut spec = json!({ "kubelet": { "config": config } });
            if flags {
                spec["kubelet"]["flags"] = json!(["--v=2"]);
            }
            if let Some(name) = name {
                spec["cluster"] = json!({ "name": name });
            }
            json!({ "apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec })
        },
    )
}

fn taint(it: &Taint) -> Value {
    match &it.value {
        Some(value) => json!({ "key": it.key, "effect": it.effect, "value": value }),
        None => json!({ "key": it.key, "effect": it.effect }),
    }
}

/// One as it is, several as MIME; as JSON or YAML.
fn write(configs: &[Value], as_json: bool) -> String {
    let body = |it: &Value| {
        if as_json { it.to_string() } else { serde_saphyr::to_string(it).unwrap() }
    };
    if let [lone] = configs {
        return body(lone);
    }
    let mut text = "Content-Type: multipart/mixed; boundary=\"=x=\"\n\n".to_owned();
    for config in configs {
        let head = "--=x=\nContent-Type: application/node.eks.aws\n";
        writeln!(text, "{head}\n{}", body(config)).unwrap();
    }
    text + "--=x=--\n"
}

/// What we say, in nodeadm's words.
fn ours(settings: &Settings) -> Value {
    let cluster = &settings.cluster;
    let mut it = json!({
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": { "cluster": {
            "name": cluster.name, "apiServerEndpoint": cluster.endpoint,
            "certificateAuthority": cluster.certificate_authority, "cidr": cluster.service_cidr,
        } },
    });
    let kubelet = &settings.kubelet;
    let mut set = |key: &str, value: Value| it["spec"]["kubelet"]["config"][key] = value;
    if let Some(count) = kubelet.max_pods {
        set("maxPods", count.into());
    }
    if let Some(quota) = kubelet.cpu_cfs_quota {
        set("cpuCFSQuota", quota.into());
    }
    if let Some(percent) = kubelet.image_gc_high_threshold_percent {
        set("imageGCHighThresholdPercent", percent.into());
    }
    if !kubelet.kube_reserved.is_empty() {
        set("kubeReserved", json!(kubelet.kube_reserved));
    }
    if !kubelet.eviction_hard.is_empty() {
        set("evictionHard", json!(kubelet.eviction_hard));
    }
    if !cluster.dns.is_empty() {
        set("clusterDNS", json!(["10.100.0.10"]));
    }
    if settings.instance_store_raid0 {
        it["spec"]["instance"]["localStorage"]["strategy"] = "RAID0".into();
    }
    if !settings.labels.is_empty() {
        let labels = settings.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let labels = labels.collect::<Vec<_>>().join(",");
        it["spec"]["kubelet"]["flags"] = json!([format!("--node-labels={labels}")]);
    }
    it
}

fn merged(configs: &[Value]) -> Value {
    let mut merged = json!({});
    for config in configs {
        nodeadm(&mut merged, config, "");
    }
    merged
}

/// Takes the taints out, in order of key and effect.
fn taken_taints(config: &mut Value) -> BTreeMap<(String, String), Value> {
    let taints = config
        .pointer_mut("/spec/kubelet/config")
        .and_then(|it| it.as_object_mut()?.remove("registerWithTaints"));
    let taints = taints.and_then(|it| it.as_array().cloned()).unwrap_or_default();
    let named = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    taints.into_iter().map(|it| ((named(&it, "key"), named(&it, "effect")), it)).collect()
}

fn tidy(config: &mut Value) {
    // An empty map or none is the same to nodeadm.
    if config.pointer("/spec/kubelet/config") == Some(&json!({})) {
        config["spec"]["kubelet"].as_object_mut().unwrap().remove("config");
    }
    if config.pointer("/spec/kubelet") == Some(&json!({})) {
        config["spec"].as_object_mut().unwrap().remove("kubelet");
    }
}

proptest! {
    #![proptest_config(fuzz::config(500))]

    #[test]
    fn nodeadm_sees_what_the_model_says(
        user in vec(user_config(), 1..3),
        settings in settings(),
        as_json in any::<bool>(),
    ) {
        let text = write(&user, as_json);
        let rendered = render(Family::Al2023, &settings, &text)
            .map_err(|it| TestCaseError::fail(format!("{it}\n{text}")))?;
        let seen = node_configs(&rendered.text);
        prop_assert_eq!(&seen[..user.len()], &user[..], "{}", rendered.text);

        let mut expected = merged(&user);
        let mut taints = taken_taints(&mut expected);
        nodeadm(&mut expected, &ours(&settings), "");
        for it in &settings.taints {
            let value = taint(it);
            let known = taints.entry((it.key.clone(), it.effect.clone())).or_insert(value.clone());
            if known["value"].as_str().unwrap_or("") != it.value.as_deref().unwrap_or("") {
                *known = value;
            }
        }
        let mut together = merged(&seen);
        let found = taken_taints(&mut together);
        prop_assert_eq!(
            found.keys().collect::<Vec<_>>(), taints.keys().collect::<Vec<_>>(), "{}", rendered.text
        );
        for (key, taint) in &found {
            prop_assert_eq!(taint["value"].as_str().unwrap_or(""), taints[key]["value"].as_str().unwrap_or(""));
        }
        tidy(&mut expected);
        tidy(&mut together);
        prop_assert_eq!(&together, &expected, "{}", rendered.text);

        let again = render(Family::Al2023, &settings, &rendered.text).unwrap();
        prop_assert_eq!(&again.text, &rendered.text, "merging again changes nothing");
        prop_assert_eq!(again.digest(), rendered.digest());
    }
}

const SCRAPS: [&str; 44] = [
    "apiVersion: node.eks.aws/v1alpha1\n",
    "kind: NodeConfig\n",
    "spec:\n",
    "  kubelet:\n",
    "    config:\n",
    "      maxPods: ",
    "    flags:\n",
    "    - --node-labels=a=b\n",
    "      registerWithTaints:\n",
    "      - key: a\n",
    "        effect: NoSchedule\n",
    "  cluster:\n",
    "    certificateAuthority: ",
    "---\n",
    "...\n",
    "&a ",
    "*a",
    "<<: ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ": ",
    "- ",
    "? ",
    "| \n",
    "> \n",
    "\n",
    "  ",
    "\t",
    "\"",
    "'",
    "!!str ",
    "5",
    "yes",
    "~",
    "# c\n",
    "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"x\"\n\n",
    "--x\n",
    "--x--\n",
    "Content-Type: application/node.eks.aws\n\n",
    "#!/bin/sh\n",
    "Content-Transfer-Encoding: base64\n",
];

proptest! {
    #![proptest_config(fuzz::config(10_000))]

    #[test]
    fn no_text_makes_al2023_stumble(text in scraps(&SCRAPS)) {
        let settings = read_settings(
            r#"{"cidr": "10.100.0.0/16", "labels": {"a": "b"}, "taints": ["a:NoSchedule"], "kubelet": {"maxPods": 9}}"#,
        );
        if let Ok(rendered) = render(Family::Al2023, &settings, &text) {
            let configs = rendered.text.matches("# NodeConfig by nodemolt\n").count();
            prop_assert_eq!(configs, 1);
            if let Some(user) = UserPart(&text).text().filter(|it| it.starts_with('#') && it.is_ascii()) {
                prop_assert!(rendered.text.contains(user), "the user's text is lost");
            }
        }
        let _ = effective_reservations(Family::Al2023, &settings.kubelet, UserPart(&text));
    }
}
