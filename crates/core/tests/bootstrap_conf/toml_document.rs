//! Bottlerocket: every key of the user's that is not ours survives, and ours are ours.

use toml::{Table, Value as Toml};

use super::*;

/// Keys and values of any kind, none of which we know.
fn anything() -> impl Strategy<Value = Toml> {
    let leaf = prop_oneof![
        "\\PC{0,12}".prop_map(Toml::String),
        select(&["", "a\nb", "\"\"\"", "'''", "\\", "\u{7f}\u{1}", "\r\n"][..])
            .prop_map(|it| Toml::String(it.to_owned())),
        any::<i64>().prop_map(Toml::Integer),
        any::<bool>().prop_map(Toml::Boolean),
        (-1e9..1e9_f64).prop_map(Toml::Float),
        Just(Toml::Float(f64::INFINITY)),
        select(&["2026-08-01", "2026-08-01T10:00:00Z", "10:00:00.5"][..])
            .prop_map(|it| Toml::Datetime(it.parse().unwrap())),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Toml::Array),
            vec((key(), inner.clone()), 0..4).prop_map(|it| Toml::Table(it.into_iter().collect())),
            vec(vec((key(), inner), 0..3), 1..3).prop_map(|tables| {
                let tables = tables.into_iter().map(|it| Toml::Table(it.into_iter().collect()));
                Toml::Array(tables.collect())
            }),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z-]{1,6}", "[ -~]{0,5}", "\\PC{1,3}"]
}

fn text_table(map: BTreeMap<String, String>) -> Toml {
    Toml::Table(map.into_iter().map(|(key, value)| (key, Toml::String(value))).collect())
}

fn taint_table(taints: &[Taint], lone_as_text: bool) -> Toml {
    let mut table = Table::new();
    for taint in taints {
        let text = format!("{}:{}", taint.value.as_deref().unwrap_or_default(), taint.effect);
        let list = table.entry(taint.key.clone()).or_insert(Toml::Array(Vec::new()));
        list.as_array_mut().unwrap().push(text.into());
    }
    for (_, list) in table.iter_mut().filter(|_| lone_as_text) {
        if let [lone] = &list.as_array().unwrap()[..] {
            *list = lone.clone();
        }
    }
    Toml::Table(table)
}

/// A document with all that we merge with, and much that we do not know.
fn document() -> impl Strategy<Value = Table> {
    let known = (
        option::of(select(&["test-cluster", "other"][..])),
        option::of(0..200_i64),
        option::of(texts(&KEYS, &VALUES)),
        option::of((taints(), any::<bool>())),
        option::of(texts(&SIGNALS, &["7%", "1Gi"])),
        option::of(texts(&["cpu", "pid"], &AMOUNTS)),
        option::of(select(&["10.100.0.10", "10.0.0.2"][..])),
    );
    let unknown = || vec((key(), anything()), 0..3);
    (known, unknown(), unknown(), unknown(), any::<bool>()).prop_map(
        |(known, in_kubernetes, in_settings, at_root, commands)| {
            let (name, max_pods, labels, taints, eviction, reserved, dns) = known;
            let mut kubernetes = Table::from_iter(in_kubernetes);
            let mut set = |key: &str, value: Option<Toml>| {
                kubernetes.remove(key);
                kubernetes.extend(value.map(|it| (key.to_owned(), it)));
            };
            set("cluster-name", name.map(Toml::from));
            set("max-pods", max_pods.map(Toml::from));
            set("node-labels", labels.map(text_table));
            set("node-taints", taints.map(|(taints, lone)| taint_table(&taints, lone)));
            set("eviction-hard", eviction.map(text_table));
            set("kube-reserved", reserved.map(text_table));
            set("cluster-dns-ip", dns.map(Toml::from));
            let mut settings = Table::from_iter(in_settings);
            if !kubernetes.is_empty() {
                settings.insert("kubernetes".to_owned(), Toml::Table(kubernetes));
            }
            if commands {
                let mine = toml::toml! { 010-mine = { mode = "once", commands = [["x"]] } };
                settings.insert("bootstrap-commands".to_owned(), Toml::Table(mine));
            }
            let mut root = Table::from_iter(at_root);
            root.remove("settings");
            if !settings.is_empty() {
                root.insert("settings".to_owned(), Toml::Table(settings));
            }
            root
        },
    )
}

#[derive(Debug, Clone, Copy)]
enum Style {
    Headers,
    Inline,
    Dotted,
}

/// The same document as different people write it.
fn write(document: &Table, style: Style) -> String {
    let mut lines = Vec::new();
    match style {
        Style::Headers => return toml::to_string(document).unwrap(),
        Style::Inline => {
            for (key, value) in document {
                lines.push(format!("{} = {value}", quoted(key)));
            }
        }
        Style::Dotted => dotted(document, "", &mut lines),
    }
    let line =
        |(index, line): (usize, &String)| format!("# note {index}.\n{line} # end {index}.\n");
    lines.iter().enumerate().map(line).collect()
}

fn dotted(table: &Table, path: &str, lines: &mut Vec<String>) {
    for (key, value) in table {
        let path = format!("{path}{}", quoted(key));
        match value.as_table().filter(|it| !it.is_empty()) {
            Some(table) => dotted(table, &format!("{path}."), lines),
            None => lines.push(format!("{path} = {value}")),
        }
    }
}

fn quoted(key: &str) -> String {
    let escaped = key.chars().map(|it| format!("\\U{:08X}", u32::from(it)));
    format!("\"{}\"", escaped.collect::<String>())
}

/// What must come out, computed on plain tables.
fn model(user: &Table, settings: &Settings) -> Table {
    let mut root = user.clone();
    let cluster = &settings.cluster;
    let kubelet = &settings.kubelet;
    let mut set = |path: &[&str], value: Toml| {
        let (last, tables) = path.split_last().unwrap();
        let table = tables.iter().fold(&mut root, |table, key| {
            let inner = table.entry(*key).or_insert(Toml::Table(Table::new()));
            inner.as_table_mut().unwrap()
        });
        table.insert((*last).to_owned(), value);
    };
    let mut kubernetes = |path: &[&str], value: Toml| {
        set(&[&["settings", "kubernetes"], path].concat(), value);
    };
    kubernetes(&["cluster-name"], cluster.name.clone().into());
    kubernetes(&["api-server"], cluster.endpoint.clone().into());
    kubernetes(&["cluster-certificate"], cluster.certificate_authority.clone().into());
    for address in &cluster.dns {
        kubernetes(&["cluster-dns-ip"], address.to_string().into());
    }
    for (key, value) in &settings.labels {
        kubernetes(&["node-labels", key], value.clone().into());
    }
    for (key, value) in &kubelet.eviction_hard {
        kubernetes(&["eviction-hard", key], value.clone().into());
    }
    for (key, value) in &kubelet.kube_reserved {
        kubernetes(&["kube-reserved", key], value.clone().into());
    }
    if let Some(count) = kubelet.max_pods {
        kubernetes(&["max-pods"], i64::from(count).into());
    }
    if let Some(it) = kubelet.cpu_cfs_quota {
        kubernetes(&["cpu-cfs-quota-enforced"], it.into());
    }
    if let Some(percent) = kubelet.image_gc_high_threshold_percent {
        kubernetes(&["image-gc-high-threshold-percent"], percent.to_string().into());
    }
    if settings.instance_store_raid0 {
        let mut bind = "apiclient ephemeral-storage bind".to_owned();
        if settings.release.as_deref() != Some("v1.46.1") {
            bind += " --dirs /var/lib/containerd /var/lib/kubelet /var/log/pods";
        }
        let words = |it: &str| it.split(' ').map(Toml::from).collect::<Vec<_>>();
        let commands = vec![words("apiclient ephemeral-storage init"), words(&bind)];
        let path = ["settings", "bootstrap-commands", "000-mount-instance-storage"];
        set(&[&path[..], &["commands"]].concat(), commands.into());
        set(&[&path[..], &["essential"]].concat(), true.into());
        set(&[&path[..], &["mode"]].concat(), "always".into());
    }
    root
}

/// Taints as a set of `key=value:Effect`, whichever way they are written.
fn taken_taints(root: &mut Table) -> Vec<(String, String, String)> {
    let kubernetes = root.get_mut("settings").and_then(|it| it.get_mut("kubernetes"));
    let table = kubernetes.and_then(|it| it.as_table_mut()?.remove("node-taints"));
    let mut found = Vec::new();
    for (key, value) in table.as_ref().and_then(Toml::as_table).into_iter().flatten() {
        let items = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        for item in items {
            let (value, effect) = item.as_str().unwrap().rsplit_once(':').unwrap();
            found.push((key.clone(), effect.to_owned(), value.to_owned()));
        }
    }
    found.sort();
    found
}

fn check_merge(user: &Table, settings: &Settings, style: Style) -> Result<(), TestCaseError> {
    let text = write(user, style);
    prop_assert_eq!(&text.parse::<Table>().unwrap(), user, "the fixture's own writer");
    let rendered = render(Family::Bottlerocket, settings, &text)
        .map_err(|it| TestCaseError::fail(format!("{it}\n{text}")))?;

    // The parser of the node sees the user's keys with value and type, ours, and nothing else.
    let mut seen = rendered.text.parse::<Table>().unwrap();
    let mut expected = model(user, settings);
    let mut taints = taken_taints(&mut expected);
    for taint in &settings.taints {
        let Taint { key, value, effect } = taint;
        taints.retain(|(its_key, its_effect, _)| (its_key, its_effect) != (key, effect));
        taints.push((key.clone(), effect.clone(), value.clone().unwrap_or_default()));
    }
    taints.sort();
    prop_assert_eq!(taken_taints(&mut seen), taints, "{}", rendered.text);
    prop_assert_eq!(seen, expected, "{}\n----\n{}", text, rendered.text);

    for index in 0..text.matches("# note ").count() {
        for comment in [format!("# note {index}."), format!("# end {index}.")] {
            prop_assert!(rendered.text.contains(&comment), "{comment} is lost:\n{}", rendered.text);
        }
    }
    // Merging again changes no byte, and finds nothing to say about what is ours.
    let again = render(Family::Bottlerocket, settings, &rendered.text).unwrap();
    prop_assert_eq!(again.text, rendered.text);
    prop_assert!(again.remarks.iter().all(|it| !it.message.contains("is set by")));
    Ok(())
}

proptest! {
    #![proptest_config(fuzz::config(700))]

    #[test]
    fn merged_toml_is_what_the_model_says(
        user in document(),
        settings in settings(),
        style in select(&[Style::Headers, Style::Inline, Style::Dotted][..]),
    ) {
        check_merge(&user, &settings, style)?;
    }
}

/// Whole lines: these often make a document.
const LINES: [&str; 24] = [
    "[settings]\n",
    "[settings.kubernetes]\n",
    "[settings.kubernetes.node-labels]\n",
    "[settings.kubernetes.node-taints]\n",
    "[settings.bootstrap-commands.000-mount-instance-storage]\n",
    "[[settings.x]]\n",
    "[[settings.x.y]]\n",
    "[settings.x.y]\n",
    "[other]\n",
    "settings.kubernetes.max-pods = 3 # c\n",
    "settings.kubernetes = { max-pods = 3 }\n",
    "settings = { kubernetes.node-labels.a = 'c' }\n",
    "kubernetes.node-taints.a = 'x:NoSchedule'\r\n",
    "kubernetes = {}\n",
    "max-pods = 0x1F\n",
    "node-labels = { a = 'b' }\n",
    "node-labels.c = \"\"\"d\"\"\"\n",
    "a = [ # c\n  'x:NoExecute', 'x:NoSchedule', # c\n]\n",
    "cluster-name = '\'\n",
    "x = [{ y = 1 }, { y.z = 2 }]\n",
    "mode = 'off'\n",
    "\n",
    "  # c\n",
    "\t\"\" = 1979-05-27T07:32:00Z\n",
];

const SCRAPS: [&str; 40] = [
    "[settings]\n",
    "[settings.kubernetes]\n",
    "[settings.kubernetes.node-labels]\n",
    "[[settings]]\n",
    "[[settings.x]]\n",
    "[settings.kubernetes.node-taints]\n",
    "settings.",
    "kubernetes.",
    "settings = ",
    "node-labels",
    "node-taints",
    "max-pods = ",
    "cluster-name",
    " = ",
    "{ ",
    " }",
    "[",
    "]",
    ", ",
    "\n",
    "\r\n",
    "\"a\"",
    "'b'",
    "\"\"\"x\ny\"\"\"",
    "'''",
    "5",
    "-1",
    "1.5",
    "true",
    "2026-08-01",
    "# c\n",
    "a",
    ".b",
    "\"c/d\"",
    "\u{feff}",
    "bootstrap-commands",
    "[settings.bootstrap-commands]\n",
    "\"x:NoSchedule\"",
    "\\",
    "\"",
];

proptest! {
    #![proptest_config(fuzz::config(20_000))]

    #[test]
    fn no_text_makes_bottlerocket_stumble(
        text in prop_oneof![7 => scraps(&SCRAPS), 1 => vec(select(&LINES[..]), 0..7).prop_map(|it| it.concat())],
    ) {
        let settings = read_settings(
            r#"{"raid0": true, "labels": {"a": "b"}, "taints": ["a:NoSchedule"], "kubelet": {"maxPods": 9}}"#,
        );
        if let Ok(rendered) = render(Family::Bottlerocket, &settings, &text) {
            let seen = rendered.text.parse::<Table>().unwrap();
            let kubernetes = &seen["settings"]["kubernetes"];
            prop_assert_eq!(kubernetes["max-pods"].as_integer(), Some(9));
            prop_assert_eq!(kubernetes["cluster-name"].as_str(), Some("test-cluster"));
            let again = render(Family::Bottlerocket, &settings, &rendered.text).unwrap();
            prop_assert_eq!(again.text, rendered.text);
        }
        let _ = effective_reservations(Family::Bottlerocket, &settings.kubelet, UserPart(&text));
    }
}
