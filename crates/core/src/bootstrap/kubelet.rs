//! May the kubelet be told this?
//!
//! `kubelet settings × family → what is wrong, or what a person should know`
//!
//! The rules and their words are Karpenter's. All violations come together: nobody should have to
//! apply a class five times to learn five things.

use std::collections::BTreeMap;
use std::net::IpAddr;

use nodemolt_fit::{Family, Quantity, capacity::Threshold, go_duration};
use serde_json::Value;

use super::identity::shown;
use super::{Kubelet, MergeConflict, Place, Remark};

mod fields;

pub(crate) use fields::type_problem;
pub use fields::{FIELDS, MANAGED};

pub const EVICTION_SIGNALS: [&str; 6] = [
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];

pub const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];

/// What a person should know, or everything that is wrong.
pub fn check(kubelet: &Kubelet, family: Family) -> Result<Vec<Remark>, MergeConflict> {
    let mut refused = Vec::new();
    semantics(kubelet, &mut refused);
    family_support(kubelet, family, &mut refused);
    if !refused.is_empty() {
        return Err(refused.into());
    }
    Ok(unknown_fields(kubelet, family))
}

/// What holds for every family.
fn semantics(kubelet: &Kubelet, refused: &mut Vec<Remark>) {
    let Kubelet {
        cluster_dns,
        max_pods,
        pods_per_core,
        system_reserved,
        kube_reserved,
        eviction_hard,
        eviction_soft,
        eviction_soft_grace_period,
        eviction_max_pod_grace_period,
        image_gc_high_threshold_percent,
        image_gc_low_threshold_percent,
        cpu_cfs_quota: _,
        rest,
    } = kubelet;
    let mut refuse = |field: &str, problem: Option<String>| {
        if let Some(problem) = problem {
            refused.push(Remark::of_field(format!("spec.kubelet{field}"), problem));
        }
    };

    for (name, value) in rest {
        // Its parts are told one by one below.
        let typed =
            || (name != "evictionMinimumReclaim").then(|| type_problem(name, value)).flatten();
        let problem = owned_or_misread(name).or_else(|| owned(name, value)).or_else(typed);
        refuse(&format!(".{}", shown(name)), problem);
    }
    for (name, count) in [("maxPods", max_pods), ("podsPerCore", pods_per_core)] {
        let large = count.filter(|it| i32::try_from(*it).is_err());
        let problem = large.map(|it| format!("`{it}` is more than {}", i32::MAX));
        refuse(&format!(".{name}"), problem);
    }
    for (index, address) in cluster_dns.iter().enumerate() {
        let problem = address
            .parse::<IpAddr>()
            .is_err()
            .then(|| format!("\"{}\" must be an IP address", shown(address)));
        refuse(&format!(".clusterDNS[{index}]"), problem);
    }
    for (field, map) in [("kubeReserved", kube_reserved), ("systemReserved", system_reserved)] {
        for (resource, value) in map {
            refuse(&format!(".{field}"), resource_problem(resource));
            let place = format!(".{field}[{}]", shown(resource));
            refuse(&place, reserved_value_problem(value));
        }
    }
    let reclaim = minimum_reclaim(rest, &mut refuse);
    for (field, map) in [
        ("evictionHard", eviction_hard),
        ("evictionSoft", eviction_soft),
        ("evictionMinimumReclaim", &reclaim),
    ] {
        for (signal, value) in map {
            refuse(&format!(".{field}"), signal_problem(signal));
            refuse(&format!(".{field}[{}]", shown(signal)), threshold_problem(value));
        }
    }
    for (signal, value) in eviction_soft_grace_period {
        refuse(".evictionSoftGracePeriod", signal_problem(signal));
        let place = format!(".evictionSoftGracePeriod[{}]", shown(signal));
        refuse(&place, grace_problem(value));
    }
    for ((field, map), (other, counterpart)) in pairs(eviction_soft, eviction_soft_grace_period) {
        for signal in map.keys().filter(|it| !counterpart.contains_key(*it)) {
            let problem = format!("has no matching {other}");
            refuse(&format!(".{field}[{}]", shown(signal)), Some(problem));
        }
    }
    let (high, low) = (*image_gc_high_threshold_percent, *image_gc_low_threshold_percent);
    for (field, percent) in
        [("imageGCHighThresholdPercent", high), ("imageGCLowThresholdPercent", low)]
    {
        let problem = percent
            .filter(|it| !(0..=100).contains(it))
            .map(|_| "must be between 0 and 100".to_owned());
        refuse(&format!(".{field}"), problem);
    }
    if let (Some(high), Some(low)) = (high, low)
        && high <= low
    {
        let message = format!(
            "imageGCHighThresholdPercent ({high}) must be greater than \
             imageGCLowThresholdPercent ({low})"
        );
        refuse("", Some(message));
    }
    let negative = eviction_max_pod_grace_period.filter(|it| *it < 0);
    refuse(".evictionMaxPodGracePeriod", negative.map(|_| "can't be negative".to_owned()));
}

/// What class and user say together, each with its place. What only the class says was judged before.
#[derive(Debug, Default)]
pub(crate) struct Together {
    pub(crate) soft: BTreeMap<String, Place>,
    pub(crate) grace: BTreeMap<String, Place>,
    pub(crate) high: Option<(i64, Place)>,
    pub(crate) low: Option<(i64, Place)>,
}

impl Together {
    /// The class's part of it.
    pub(crate) fn of_class(class: &Kubelet) -> Self {
        let places = |field: &str, map: &BTreeMap<String, String>| {
            let place = |it: &String| Place::Field(format!("spec.kubelet.{field}[{}]", shown(it)));
            map.keys().map(|it| (it.clone(), place(it))).collect()
        };
        let percent = |field: &str, it: Option<i32>| {
            it.map(|it| (it.into(), Place::Field(format!("spec.kubelet.{field}"))))
        };
        Self {
            soft: places("evictionSoft", &class.eviction_soft),
            grace: places("evictionSoftGracePeriod", &class.eviction_soft_grace_period),
            high: percent("imageGCHighThresholdPercent", class.image_gc_high_threshold_percent),
            low: percent("imageGCLowThresholdPercent", class.image_gc_low_threshold_percent),
        }
    }

    /// A kubelet does not start where a soft threshold has no grace period or the other way round, nor
    /// where it would stop collecting images above where it begins.
    pub(crate) fn problems(&self) -> Vec<Remark> {
        let of_class = |it: &Place| matches!(it, Place::Field(_));
        let mut refused = Vec::new();
        for (field, map, other, counterpart) in [
            ("evictionSoft", &self.soft, "evictionSoftGracePeriod", &self.grace),
            ("evictionSoftGracePeriod", &self.grace, "evictionSoft", &self.soft),
        ] {
            for (signal, place) in map {
                if !counterpart.contains_key(signal) && !of_class(place) {
                    let message = format!("{field}[{}]: has no matching {other}", shown(signal));
                    let hint = "the kubelet wants both, of one signal; the class may say either";
                    refused.push(Remark::new(place.clone(), message).with_hint(hint));
                }
            }
        }
        if let (Some((high, at_high)), Some((low, at_low))) = (&self.high, &self.low)
            && high <= low
            && !(of_class(at_high) && of_class(at_low))
        {
            let place = if of_class(at_high) { at_low } else { at_high };
            let message = format!(
                "imageGCHighThresholdPercent ({high}) must be greater than \
                 imageGCLowThresholdPercent ({low})"
            );
            refused.push(Remark::new(place.clone(), message));
        }
        refused
    }
}

type Named<'a> = (&'static str, &'a BTreeMap<String, String>);

fn pairs<'a>(
    soft: &'a BTreeMap<String, String>,
    grace: &'a BTreeMap<String, String>,
) -> [(Named<'a>, Named<'a>); 2] {
    let (soft, grace) = (("evictionSoft", soft), ("evictionSoftGracePeriod", grace));
    [(soft, grace), (grace, soft)]
}

fn owned_or_misread(name: &str) -> Option<String> {
    if name == "registerWithTaints" {
        return Some(
            "can't be set, nodemolt sets it from the NodeClaim's taints so the node registers \
             unschedulable until it's ready"
                .to_owned(),
        );
    }
    MANAGED.contains(&name).then(|| "is not of the type that the kubelet reads".to_owned())
}

/// What the node's own bootstrap sets, and a kubelet that is told otherwise never joins: the values that
/// agree with it, and why no other may stand. A provider id is known on the machine only.
const OWNED: [(&str, Option<&str>, &str); 4] = [
    ("apiVersion", Some("\"kubelet.config.k8s.io/v1beta1\""), "the node's own bootstrap sets it"),
    ("kind", Some("\"KubeletConfiguration\""), "the node's own bootstrap sets it"),
    ("providerID", None, "the node's own bootstrap knows which machine it is"),
    ("registerNode", Some("true"), "a node that does not register never joins"),
];

/// Why a field of the kubelet's configuration may not have this value, where that is not for people to set.
pub(crate) fn owned(name: &str, value: &Value) -> Option<String> {
    let (_, agreeing, why) = OWNED.iter().find(|(it, _, _)| *it == name)?;
    let written = value.to_string();
    let agrees = value.is_null() || *agreeing == Some(written.as_str());
    (!agrees).then(|| format!("can't be set, {why}"))
}

/// The one eviction map that is not managed.
fn minimum_reclaim(
    rest: &serde_json::Map<String, Value>,
    refuse: &mut impl FnMut(&str, Option<String>),
) -> BTreeMap<String, String> {
    let field = "evictionMinimumReclaim";
    let mut map = BTreeMap::new();
    match rest.get(field) {
        None | Some(Value::Null) => {}
        Some(Value::Object(entries)) => {
            for (signal, value) in entries {
                if let Value::String(value) = value {
                    map.insert(signal.clone(), value.clone());
                } else {
                    let place = format!(".{field}[{}]", shown(signal));
                    refuse(&place, Some("must be a string".to_owned()));
                }
            }
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            refuse(&format!(".{field}"), Some("must be a map of signals".to_owned()));
        }
    }
    map
}

pub(crate) fn resource_problem(resource: &str) -> Option<String> {
    (!RESERVABLE.contains(&resource)).then(|| {
        let (resource, all) = (shown(resource), RESERVABLE.join(", "));
        format!("\"{resource}\" isn't a reservable resource, must be one of {all}")
    })
}

pub(crate) fn reserved_value_problem(value: &str) -> Option<String> {
    if value.starts_with('-') {
        return Some("can't be a negative resource quantity".to_owned());
    }
    // Karpenter would take anything else for an expression, behind a gate that is off.
    (value.parse::<Quantity>().is_err())
        .then(|| format!("\"{}\" must be a resource quantity", shown(value)))
}

pub(crate) fn signal_problem(signal: &str) -> Option<String> {
    (!EVICTION_SIGNALS.contains(&signal)).then(|| {
        let (signal, all) = (shown(signal), EVICTION_SIGNALS.join(", "));
        format!("\"{signal}\" isn't a valid eviction signal, must be one of {all}")
    })
}

pub(crate) fn threshold_problem(value: &str) -> Option<String> {
    if Threshold::from_percent(value).is_some() {
        return None;
    }
    match value.parse::<Quantity>() {
        Ok(quantity) if quantity.negative() => {
            Some("can't be a negative resource quantity".to_owned())
        }
        Ok(_) => None,
        Err(_) => Some(format!("\"{}\" must be a percentage or a resource quantity", shown(value))),
    }
}

pub(crate) fn grace_problem(value: &str) -> Option<String> {
    match go_duration(value) {
        None => Some(format!("\"{}\" must be a duration", shown(value))),
        Some(nanos) if nanos < 0 => Some("can't be a negative duration".to_owned()),
        Some(_) => None,
    }
}

/// Whether it is a length of time, in Go's words.
fn duration(text: &str) -> bool {
    go_duration(text).is_some()
}

/// What the family would drop without a word.
fn family_support(kubelet: &Kubelet, family: Family, refused: &mut Vec<Remark>) {
    if family.takes_any_kubelet_setting() != Some(false) {
        return;
    }
    let dropped = kubelet
        .rest
        .iter()
        .filter(|(name, value)| owned_or_misread(name).or_else(|| owned(name, value)).is_none())
        .map(|(name, _)| shown(name))
        .chain(
            (kubelet.pods_per_core.is_some() && !family.honours_pods_per_core())
                .then(|| "podsPerCore".to_owned()),
        )
        .collect::<Vec<_>>();
    if !dropped.is_empty() {
        let message = format!(
            "has fields not applied by the {family} AMI family that would be silently dropped: {}",
            dropped.join(", ")
        );
        refused.push(Remark::of_field("spec.kubelet", message));
    }
    let count = kubelet.cluster_dns.len();
    if count > 1 {
        let message = format!(
            "the {family} AMI family doesn't accept multiple entries, only one, but {count} were set"
        );
        refused.push(Remark::of_field("spec.kubelet.clusterDNS", message));
    }
}

/// AL2023 passes on what it does not know, and a newer kubelet may know it. So this only warns.
fn unknown_fields(kubelet: &Kubelet, family: Family) -> Vec<Remark> {
    if family.takes_any_kubelet_setting() != Some(true) {
        return Vec::new();
    }
    let unknown = kubelet.rest.keys().filter(|it| !FIELDS.contains(&it.as_str()));
    unknown.map(|it| unknown_field(format!("spec.kubelet.{}", shown(it)), it)).collect()
}

fn unknown_field(field: String, name: &str) -> Remark {
    let remark = Remark::of_field(field, "is no field of KubeletConfiguration that we know");
    match nearest(name, FIELDS) {
        Some(near) => remark.with_hint(format!("did you mean `{near}`?")),
        None => remark,
    }
}

/// The known name that a mistyped one most likely meant.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // Two thirds of the letters must agree; below that a guess is noise.
    let distance_max = name.chars().count() / 3;
    known
        .iter()
        .map(|it| (strsim::damerau_levenshtein(&name.to_lowercase(), &it.to_lowercase()), *it))
        .filter(|(distance, _)| *distance <= distance_max)
        .min()
        .map(|(_, it)| it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_agree() {
        assert!(FIELDS.is_sorted() && MANAGED.iter().all(|it| FIELDS.contains(it)));
        assert_eq!(nearest("maxpod", FIELDS), Some("maxPods"));
        assert_eq!(nearest("zzz", FIELDS), None);
    }
}
