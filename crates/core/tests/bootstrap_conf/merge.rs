//! The laws of merging, against models that share no code with it.

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;

mod node_config;
mod toml_document;

/// Words that labels, taints and keys are made of: ours and the user's meet often.
const KEYS: [&str; 4] = ["team", "karpenter.sh/nodepool", "dedicated", "x.y/z"];
const VALUES: [&str; 4] = ["", "a", "b-1", "web"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const SIGNALS: [&str; 3] = ["memory.available", "nodefs.available", "pid.available"];
const AMOUNTS: [&str; 3] = ["100m", "1Gi", "2"];

fn texts(
    keys: &'static [&'static str],
    values: &'static [&'static str],
) -> impl Strategy<Value = BTreeMap<String, String>> {
    vec((select(keys), select(values)), 0..3).prop_map(|pairs| {
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    })
}

/// At most one for each key and effect.
fn taints() -> impl Strategy<Value = Vec<Taint>> {
    vec((select(&KEYS[..]), option::of(select(&VALUES[..])), select(&EFFECTS[..])), 0..4).prop_map(
        |items| {
            let mut taints: Vec<Taint> = Vec::new();
            for (key, value, effect) in items {
                if !taints.iter().any(|it| it.key == key && it.effect == effect) {
                    taints.push(Taint {
                        key: key.to_owned(),
                        value: value.map(str::to_owned),
                        effect: effect.to_owned(),
                    });
                }
            }
            taints
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let kubelet = (
        option::of(1..200_u32),
        texts(&["cpu", "memory"], &AMOUNTS),
        texts(&SIGNALS, &["5%", "100Mi"]),
        option::of(any::<bool>()),
        option::of(0..100_i32),
    );
    let release = option::of(select(vec!["1.45.0".to_owned(), "v1.46.1".to_owned()]));
    (texts(&KEYS, &VALUES), taints(), kubelet, any::<bool>(), release, any::<bool>()).prop_map(
        |(labels, taints, kubelet, raid0, release, dns)| {
            let (max_pods, kube_reserved, eviction_hard, cpu_cfs_quota, percent) = kubelet;
            let mut settings = read_settings("{\"cidr\": \"10.100.0.0/16\"}");
            settings.labels = labels;
            settings.taints = taints;
            settings.kubelet = Kubelet {
                max_pods,
                kube_reserved,
                eviction_hard,
                cpu_cfs_quota,
                image_gc_high_threshold_percent: percent,
                ..Kubelet::default()
            };
            settings.instance_store_raid0 = raid0;
            settings.release = release;
            settings.cluster.dns =
                dns.then(|| "10.100.0.10".parse().unwrap()).into_iter().collect();
            settings
        },
    )
}

/// Text that is nearly something.
fn scraps(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        4 => vec(select(words), 0..14).prop_map(|it| it.concat()),
        1 => "\\PC{0,40}",
        1 => any::<String>(),
        1 => (vec(select(words), 0..10), any::<String>(), vec(select(words), 0..10))
            .prop_map(|(before, middle, after)| before.concat() + &middle + &after.concat()),
    ]
}

/// What breaks out of quotes, lines, documents and parts, elsewhere.
const HOSTILE: [&str; 14] = [
    "'",
    "\"",
    "\"\"\"",
    "'''",
    "$(reboot)",
    "`id`",
    "a\nb",
    "a\r\nb",
    "--nodemolt-",
    "]]>",
    "# x",
    "a: b",
    "\u{2028}",
    "\0",
];

#[test]
fn hostile_labels_and_taints_are_refused() {
    for family in [Family::Bottlerocket, Family::Al2023] {
        for text in HOSTILE {
            for (key, value) in [(text, "a"), ("a", text)] {
                let mut settings = read_settings("{\"cidr\": \"10.100.0.0/16\"}");
                settings.labels.insert(key.to_owned(), value.to_owned());
                assert!(render(family, &settings, "").is_err(), "label {key:?}={value:?}");
                settings.labels.clear();
                settings.taints.push(Taint {
                    key: key.to_owned(),
                    value: Some(value.to_owned()),
                    effect: "NoSchedule".to_owned(),
                });
                assert!(render(family, &settings, "").is_err(), "taint {key:?}={value:?}");
            }
        }
    }
}

/// The open map takes any text: it must come out as that text.
#[test]
fn hostile_kubelet_settings_come_out_as_data() {
    for text in HOSTILE {
        let mut settings = read_settings("{\"cidr\": \"10.100.0.0/16\"}");
        settings.kubelet.rest.insert("clusterDomain".to_owned(), text.into());
        settings.kubelet.rest.insert(text.to_owned(), json!({ text: [text, [text]] }));
        let rendered = render(Family::Al2023, &settings, "").unwrap();
        let configs = node_config::node_configs(&rendered.text);
        let expected = json!({"clusterDomain": text, text: { text: [text, [text]] }});
        assert_eq!(configs[0]["spec"]["kubelet"]["config"], expected, "{}", rendered.text);
    }
}
