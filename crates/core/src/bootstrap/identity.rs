//! Which labels and taints may a node register with?
//!
//! `labels, taints → those that the API server lets a kubelet set`
//!
//! A label or taint that Kubernetes would refuse is refused here. So every value that is rendered later
//! is made of letters, digits, `-`, `_`, `.` and `/` alone, and none can break out of its place.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::{Cluster, Place, Remark, Settings, Taint, base64};

/// Domains in which a kubelet may not label its own node. Karpenter leaves all of them out.
const RESTRICTED_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];

pub const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The labels that a node may register with; the others are set by a controller.
pub fn registered_labels(labels: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    labels
        .iter()
        .filter(|(key, _)| !restricted(key))
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

/// Whether the label's domain is one of those that `NodeRestriction` guards.
pub fn restricted(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    RESTRICTED_DOMAINS.iter().any(|it| within(domain, it))
}

/// The domain itself, or one below it.
fn within(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|it| it.is_empty() || it.ends_with('.'))
}

/// Labels in Kubernetes' domains that a kubelet may be told, and domains in which it may be told any; with
/// another it does not start (`k8s.io/kubelet` v0.36.4, `pkg/apis/well_known_labels.go`).
const KUBELET_LABELS: [&str; 10] = [
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Whether a kubelet that is told to set this label does not start.
pub fn stops_kubelet(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let free = KUBELET_DOMAINS.iter().any(|it| within(domain, it));
    restricted(key) && !free && !KUBELET_LABELS.contains(&key)
}

/// Every label and taint of ours that Kubernetes would refuse, and what cannot be a cluster's.
pub fn check(settings: &Settings) -> Vec<Remark> {
    let mut refused = cluster_problems(&settings.cluster);
    for (key, value) in &settings.labels {
        if let Some(problem) = label_key_problem(key).or_else(|| label_value_problem(value)) {
            refused.push(Remark::new(Place::Label(key.clone()), problem));
        }
    }
    for (index, taint) in settings.taints.iter().enumerate() {
        let place = Place::Taint(index);
        if let Some(problem) = taint_problem(taint) {
            refused.push(Remark::new(place, problem));
        } else if let Some(other) = settings.taints[..index].iter().find(|it| it.clashes(taint)) {
            let message = format!("`{taint}` and `{other}` have the same key and effect");
            refused.push(Remark::new(place, message).with_hint("keep one of the two"));
        }
    }
    refused
}

fn cluster_problems(cluster: &Cluster) -> Vec<Remark> {
    let name_fits = cluster.name.len() <= 100
        && cluster.name.starts_with(|it: char| it.is_ascii_alphanumeric())
        && cluster.name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'));
    let endpoint = &cluster.endpoint;
    let host = endpoint.strip_prefix("https://").or_else(|| endpoint.strip_prefix("http://"));
    let endpoint_fits = host.is_some_and(|it| {
        let plain = |it: u8| it.is_ascii_alphanumeric() || b"-._:/[]~%".contains(&it);
        !it.is_empty() && it.bytes().all(plain)
    });
    let certificate = &cluster.certificate_authority;
    // Readers on the node differ in whether a line may break in it; nobody minds that it does not.
    let certificate_fits = !certificate.is_empty()
        && !certificate.contains(['\r', '\n'])
        && base64::decode(certificate).is_some();
    [
        ("cluster.name", name_fits, cluster.name.as_str(), "no name of a cluster"),
        ("cluster.endpoint", endpoint_fits, endpoint, "no address of an API server"),
        ("cluster.certificateAuthority", certificate_fits, certificate, "no base64"),
    ]
    .into_iter()
    .filter(|(_, fits, _, _)| !fits)
    .map(|(field, _, text, what)| {
        let message = match text {
            "" => "is missing".to_owned(),
            _ => format!("`{}` is {what}", shown(text)),
        };
        Remark::of_field(field, message)
    })
    .chain(services_problem(cluster))
    .collect()
}

/// Empty is missing, which matters to AL2023 alone.
fn services_problem(cluster: &Cluster) -> Option<Remark> {
    let cidr = cluster.service_cidr.as_deref().filter(|it| !it.is_empty())?;
    let message = format!("`{}` is no range of addresses", shown(cidr));
    let hint = "write it as `10.100.0.0/16` or `fd30:1c53:5f8a::/108`";
    (!range(cidr)).then(|| Remark::of_field("cluster.serviceCidr", message).with_hint(hint))
}

/// `10.100.0.0/16`.
fn range(cidr: &str) -> bool {
    let Some((address, bits)) = cidr.split_once('/') else { return false };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    // `+8` parses as a number, and is none here.
    let digits = !bits.is_empty() && bits.bytes().all(|it| it.is_ascii_digit());
    digits && bits.parse::<u8>().is_ok_and(|it| it <= bits_max)
}

impl Taint {
    /// A node cannot have both.
    pub fn clashes(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect && self.worth() != other.worth()
    }

    /// No value and an empty one are the same to Kubernetes.
    pub fn worth(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }
}

pub fn taint_problem(taint: &Taint) -> Option<String> {
    label_key_problem(&taint.key).or_else(|| label_value_problem(taint.worth())).or_else(|| {
        (!EFFECTS.contains(&taint.effect.as_str())).then(|| {
            format!(
                "`{}` is no effect, must be one of {}",
                shown(&taint.effect),
                EFFECTS.join(", ")
            )
        })
    })
}

/// `name`, or `domain/name`.
pub fn label_key_problem(key: &str) -> Option<String> {
    let (domain, name) = match key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, key),
    };
    let domain_fits = domain.is_none_or(|it| {
        it.len() <= 253
            && it.split('.').all(|part| {
                part.bytes().all(|it| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'-'))
                    && !part.is_empty()
                    && !part.starts_with('-')
                    && !part.ends_with('-')
            })
    });
    let fits = domain_fits && !name.is_empty() && word(name);
    (!fits).then(|| format!("`{}` is not a valid key for a label or taint", shown(key)))
}

pub fn label_value_problem(value: &str) -> Option<String> {
    (!word(value)).then(|| format!("`{}` is not a valid value for a label or taint", shown(value)))
}

/// At most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends; or nothing.
fn word(text: &str) -> bool {
    let alphanumeric = |it: Option<char>| it.is_none_or(|it| it.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'))
        && alphanumeric(text.chars().next())
        && alphanumeric(text.chars().next_back())
}

/// As much of a user's line as tells which one is meant. It may hold a secret, so it is not shown: a word
/// up to where a value would begin, and little of that.
pub(crate) fn glimpse(line: &str) -> String {
    const CHARS_MAX: usize = 12;
    let line = line.trim();
    let ends = |it: char| it.is_whitespace() || "=:\"'".contains(it);
    let word = line.split(ends).next().unwrap_or_default();
    let cut: String = word.chars().take(CHARS_MAX).collect();
    if cut.len() == line.len() { shown(&cut) } else { format!("{}…", shown(&cut)) }
}

/// What a person typed, fit for one line of a message.
pub(crate) fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let mut shown = String::new();
    for char in text.chars().take(CHARS_MAX) {
        match char {
            '"' | '\'' | '\\' => shown.push(char),
            _ => shown.extend(char.escape_debug()),
        }
    }
    if text.chars().nth(CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_may_not_set_labels_of_kubernetes() {
        for key in ["kubernetes.io/arch", "node.kubernetes.io/x", "k8s.io/x", "topology.k8s.io/x"] {
            assert!(restricted(key), "{key}");
        }
        for key in ["arch", "karpenter.k8s.aws/x", "mykubernetes.io/x", "x/kubernetes.io"] {
            assert!(!restricted(key), "{key}");
        }
    }

    #[test]
    fn what_kubernetes_would_refuse_is_refused() {
        for key in ["a", "a.b/c", "A_b.c", "x-y.z/Q"] {
            assert_eq!(label_key_problem(key), None, "{key}");
        }
        for key in ["", "/a", "a/", "a/b/c", "-a", "A.b/c", "a..b/c", "a b", "a\nb", "ü"] {
            assert!(label_key_problem(key).is_some(), "{key:?}");
        }
        for value in ["", "a", "1.2-3_4"] {
            assert_eq!(label_value_problem(value), None, "{value}");
        }
        for value in ["'", "$(x)", "a\n", "-a", "a.", "\u{2028}", &"a".repeat(64)] {
            assert!(label_value_problem(value).is_some(), "{value:?}");
        }
    }
}
