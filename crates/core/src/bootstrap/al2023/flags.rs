//! Which of the user's flags stand in our way?
//!
//! The kubelet lets a flag beat its configuration, whoever wrote either. Flags come from
//! `spec.kubelet.flags`, which nodeadm joins with spaces: one item may hold several.

use std::collections::BTreeMap;

use super::super::identity::shown;
use super::super::{Place, Remark};
use super::Ours;

/// Flags that would take the node from us, and why.
const OWNED: [(&str, &str); 6] = [
    ("node-labels", "set labels in the template of the pool"),
    ("register-with-taints", "write `registerWithTaints` under `spec.kubelet.config` instead"),
    ("register-node", "a node that does not register never joins"),
    ("config", "write settings under `spec.kubelet.config` instead"),
    ("kubeconfig", "nodeadm writes it"),
    ("bootstrap-kubeconfig", "nodeadm writes it"),
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

/// All flags in the items of `spec.kubelet.flags`.
pub(super) fn read(items: &[(&str, Place)]) -> Vec<Flag> {
    let words = items.iter().flat_map(|(text, place)| {
        text.split_whitespace().map(move |word| (word.trim_matches(['"', '\'']), place))
    });
    let mut flags: Vec<Flag> = Vec::new();
    let mut open = false;
    for (word, place) in words {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            // The value of the flag before, if that has none yet.
            if let Some(last) = flags.last_mut().filter(|_| open) {
                word.clone_into(&mut last.value);
            }
            open = false;
            continue;
        };
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        open = !flag.contains('=');
        flags.push(Flag {
            // The kubelet takes an underscore for a dash.
            name: name.replace('_', "-"),
            value: value.trim_matches(['"', '\'']).to_owned(),
            place: place.clone(),
        });
    }
    flags
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
        if let Some((path, _, _)) = beaten {
            let field = path.get(2).map_or("", String::as_str);
            let message = format!("the flag `--{name}` beats `spec.kubelet.{field}` of the class");
            let hint = "a kubelet's flags beat its configuration; remove one of the two";
            remarks.push(Remark::new(flag.place.clone(), message).with_hint(hint));
        }
    }
}

/// `--max-pods` sets `maxPods`.
pub(super) fn sets(flag: &str, field: &str) -> bool {
    match RENAMED.iter().find(|(it, _)| *it == flag) {
        Some((_, renamed)) => *renamed == field,
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

    #[test]
    fn flags_are_found_however_they_are_written() {
        let items = ["--a=1 -b 2", "--c_d=\"x=y\"", "--e", "f", "g"].map(|it| (it, Place::Whole));
        let read = read(&items);
        let found = read.iter().map(|it| (it.name.as_str(), it.value.as_str()));
        assert_eq!(found.collect::<Vec<_>>(), [("a", "1"), ("b", "2"), ("c-d", "x=y"), ("e", "f")]);
    }

    #[test]
    fn flags_and_fields_that_mean_the_same_are_known() {
        assert!(sets("max-pods", "maxPods") && sets("cpu-cfs-quota", "cpuCFSQuota"));
        assert!(sets("image-gc-high-threshold", "imageGCHighThresholdPercent"));
        assert!(!sets("max-pods", "podsPerCore"));
    }
}
