//! Which of the user's flags stand in our way?
//!
//! The kubelet lets a flag beat its configuration, whoever wrote either. Flags come from
//! `spec.kubelet.flags`, which nodeadm joins with spaces: one item may hold several.

use std::collections::BTreeMap;

use super::super::identity::{glimpse, shown};
use super::super::{Place, Remark, Source};
use super::Ours;

/// Flags that would take the node from us, and why.
const OWNED: [(&str, &str); 9] = [
    ("node-labels", "set labels in the template of the pool"),
    ("register-with-taints", "write `registerWithTaints` under `spec.kubelet.config` instead"),
    ("register-node", "a node that does not register never joins"),
    ("config", "write settings under `spec.kubelet.config` instead"),
    ("config-dir", "write settings under `spec.kubelet.config` instead"),
    ("kubeconfig", "nodeadm writes it"),
    ("bootstrap-kubeconfig", "nodeadm writes it"),
    ("provider-id", "nodeadm knows which machine it is"),
    ("hostname-override", "nodeadm gives the name by which the cluster lets the node in"),
];

/// Flags that may stand without a value. Any other takes the word behind it for its value, be that a flag
/// of ours.
const SWITCHES: [&str; 22] = [
    "alsologtostderr",
    "anonymous-auth",
    "authentication-token-webhook",
    "cgroups-per-qos",
    "contention-profiling",
    "cpu-cfs-quota",
    "enable-controller-attach-detach",
    "enable-debugging-handlers",
    "enable-server",
    "exit-on-lock-contention",
    "fail-swap-on",
    "kernel-memcg-notification",
    "local-storage-capacity-isolation",
    "logtostderr",
    "make-iptables-util-chains",
    "protect-kernel-defaults",
    "register-node",
    "rotate-certificates",
    "rotate-server-certificates",
    "runonce",
    "seccomp-default",
    "serialize-image-pulls",
];

/// Flags whose configuration has another name. The rest differ in case and dashes alone.
const RENAMED: [(&str, &str); 5] = [
    ("image-gc-high-threshold", "imageGCHighThresholdPercent"),
    ("image-gc-low-threshold", "imageGCLowThresholdPercent"),
    ("event-qps", "eventRecordQPS"),
    ("registry-qps", "registryPullQPS"),
    ("reserved-cpus", "reservedSystemCPUs"),
];

/// One flag, without its dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flag {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) place: Place,
}

/// All flags in the items of `spec.kubelet.flags`, and what would make the kubelet read others than meant.
pub(super) fn read(items: &[(&str, Place)]) -> (Vec<Flag>, Vec<Remark>) {
    let mut refused = Vec::new();
    let mut words = Vec::new();
    for (text, place) in items {
        match split(text) {
            Ok(found) => words.extend(found.into_iter().map(|it| (it, place.clone()))),
            Err(message) => {
                let hint = "write flags as plain words, `--name=value`";
                refused.push(Remark::new(place.clone(), message).with_hint(hint));
            }
        }
    }
    let mut flags: Vec<Flag> = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some((word, place)) = words.next() {
        let flag = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
        let Some(flag) = flag.filter(|it| !it.is_empty()) else {
            let message =
                format!("`{}` is no flag, and the kubelet does not start with it", glimpse(&word));
            refused.push(Remark::new(place, message).with_hint("write `--name=value`"));
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        // The kubelet takes an underscore for a dash.
        let name = name.replace('_', "-");
        let value = value.or_else(|| {
            if SWITCHES.contains(&name.as_str()) {
                return Some(String::new());
            }
            words.next_if(|(it, _)| !it.starts_with('-')).map(|(it, _)| it)
        });
        if value.is_none() {
            let message = format!(
                "the flag `--{}` has no value, and takes what follows for one",
                shown(&name)
            );
            let hint = "what follows may be ours; write `--name=value`";
            refused.push(Remark::new(place.clone(), message).with_hint(hint));
        }
        flags.push(Flag { name, value: value.unwrap_or_default(), place });
    }
    (flags, refused)
}

/// Words as systemd takes them: it removes quotes, wherever in a word they stand.
fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in text.chars() {
        match (quote, char) {
            (_, '\\') => return Err("has a backslash, and systemd would make another word of it"),
            (Some(open), it) if it == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, it) if it.is_whitespace() => words.extend(word.take()),
            (_, it) => word.get_or_insert_default().push(it),
        }
    }
    if quote.is_some() {
        return Err("opens a quote that never closes");
    }
    words.extend(word);
    Ok(words)
}

pub(super) fn judge(
    flags: &[Flag],
    ours: &Ours,
    refused: &mut Vec<Remark>,
    remarks: &mut Vec<Remark>,
) {
    for flag in flags {
        let name = shown(&flag.name);
        if let Some((owned, hint)) = OWNED.iter().find(|(it, _)| *it == flag.name) {
            // To say what we say is no conflict.
            let agrees = *owned == "node-labels" && ours.labels.as_deref() == Some(&flag.value);
            if !agrees {
                let message = format!("the flag `--{name}` is for nodemolt to set");
                refused.push(Remark::new(flag.place.clone(), message).with_hint(*hint));
            }
            continue;
        }
        let beaten = ours.config.iter().find(|(path, _, _)| {
            matches!(path.as_slice(), [kubelet, config, field, ..]
                if kubelet == "kubelet" && config == "config" && sets(&flag.name, field))
        });
        let Some((path, value, source)) = beaten else { continue };
        let field = path.get(2).map_or("", String::as_str);
        let place = flag.place.clone();
        match source {
            Source::Nodemolt | Source::User => {
                let value = shown(&value.to_string());
                let message =
                    format!("the flag `--{name}` beats `{field}`, which nodemolt sets to {value}");
                let hint = format!("write `spec.kubelet.{field}` of the class instead");
                refused.push(Remark::new(place, message).with_hint(hint));
            }
            Source::Class => {
                let message =
                    format!("the flag `--{name}` beats `spec.kubelet.{field}` of the class");
                let hint = "a kubelet's flags beat its configuration; remove one of the two";
                remarks.push(Remark::new(place, message).with_hint(hint));
            }
        }
    }
}

/// `--max-pods` sets `maxPods`.
pub(super) fn sets(flag: &str, field: &str) -> bool {
    match RENAMED.iter().find(|(it, _)| *it == flag) {
        Some((_, renamed)) => *renamed == field,
        None if flag == "v" => field == "logging",
        None => flag.replace('-', "").eq_ignore_ascii_case(field),
    }
}

/// `cpu=100m,memory=1Gi`, or with `<` as evictions have it.
pub(super) fn map(value: &str, separator: char) -> BTreeMap<String, String> {
    let pairs = value.split(',').filter_map(|it| it.split_once(separator));
    pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items<'a>(texts: &[&'a str]) -> Vec<(&'a str, Place)> {
        texts.iter().map(|it| (*it, Place::Whole)).collect()
    }

    #[test]
    fn flags_are_found_however_they_are_written() {
        let texts = [
            "--a=1 -b 2",
            "--c_d=\"x=y\"",
            "--e",
            "f",
            "--re\"gister\"='a b'",
            "--seccomp-default",
        ];
        let (read, refused) = read(&items(&texts));
        let found = read.iter().map(|it| (it.name.as_str(), it.value.as_str()));
        let expected = [
            ("a", "1"),
            ("b", "2"),
            ("c-d", "x=y"),
            ("e", "f"),
            ("register", "a b"),
            ("seccomp-default", ""),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(refused, []);
    }

    #[test]
    fn what_would_swallow_the_flags_behind_it_is_refused() {
        for texts in [
            &["--root-dir"][..],
            &["--root-dir=/a --hostname"],
            &["--a", "--b=c"],
            &["--"],
            &["-"],
            &["foo"],
            &["--a=1", "x"],
            &["--seccomp-default true"],
            &["--a\\x2d=1"],
            &["--a=\"1"],
        ] {
            assert_eq!(read(&items(texts)).1.len(), 1, "{texts:?}");
        }
    }

    #[test]
    fn flags_and_fields_that_mean_the_same_are_known() {
        assert!(sets("max-pods", "maxPods") && sets("cpu-cfs-quota", "cpuCFSQuota"));
        assert!(sets("image-gc-high-threshold", "imageGCHighThresholdPercent"));
        assert!(!sets("max-pods", "podsPerCore"));
    }
}
