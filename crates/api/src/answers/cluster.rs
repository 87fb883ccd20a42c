//! Which cluster does an answer of `aws eks describe-cluster` describe?
//!
//! `{"cluster": {…}} → what a node must know of it`
//!
//! Whatever is missing stays unsaid: it may be typed, and whoever needs it says so.

use serde_json::Value;

use crate::file;

/// What a node must know of its cluster, as far as it was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterAnswer {
    pub name: Option<String>,
    pub endpoint: Option<String>,
    /// Base64.
    pub certificate_authority: Option<String>,
    /// The one of the cluster's own IP family, else the only one.
    pub service_cidr: Option<String>,
    /// `ipv4` or `ipv6`.
    pub ip_family: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadClusterError {
    #[error("is no JSON: {0}")]
    NotJson(serde_json::Error),

    #[error("is no answer of `aws eks describe-cluster`: no object `cluster`")]
    NoCluster,
}

/// Windows shells put one before everything they save.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub fn read(bytes: &[u8]) -> Result<ClusterAnswer, ReadClusterError> {
    let json = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let answer: Value = serde_json::from_slice(json).map_err(ReadClusterError::NotJson)?;
    let cluster = answer.get("cluster").filter(|it| it.is_object());
    let cluster = cluster.ok_or(ReadClusterError::NoCluster)?;
    let text = |path: &[&str]| {
        let found = path.iter().try_fold(cluster, |value, key| value.get(key));
        found.and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned)
    };
    let network = "kubernetesNetworkConfig";
    let ip_family = text(&[network, "ipFamily"]);
    let v4 = text(&[network, "serviceIpv4Cidr"]);
    let v6 = text(&[network, "serviceIpv6Cidr"]);
    Ok(ClusterAnswer {
        name: text(&["name"]),
        endpoint: text(&["endpoint"]),
        certificate_authority: text(&["certificateAuthority", "data"]),
        service_cidr: if ip_family.as_deref() == Some("ipv6") { v6 } else { v4.or(v6) },
        ip_family,
    })
}

impl ReadClusterError {
    /// Line and column in the text, from one.
    pub fn place(&self) -> (usize, usize) {
        match self {
            // Counted from nought where a line ends.
            Self::NotJson(error) => (error.line().max(1), error.column().max(1)),
            Self::NoCluster => (1, 1),
        }
    }
}

/// Where the answer says what the settings of a node call `field`: the field's name here, with its line
/// and column. Nothing where it says nothing of it.
pub fn locate(text: &str, field: &str) -> Option<(&'static str, usize, usize)> {
    let names: &[&str] = match field {
        "cluster.name" => &["cluster.name"],
        "cluster.endpoint" => &["cluster.endpoint"],
        "cluster.certificateAuthority" => &["cluster.certificateAuthority.data"],
        // The DNS is derived from the services.
        "cluster.serviceCidr" | "cluster.dns" => &[
            "cluster.kubernetesNetworkConfig.serviceIpv4Cidr",
            "cluster.kubernetesNetworkConfig.serviceIpv6Cidr",
        ],
        _ => return None,
    };
    let text = text.trim_start_matches('\u{feff}');
    let answer: Value = serde_json::from_str(text).ok()?;
    let read = read(text.as_bytes()).ok()?;
    names.iter().find_map(|name| {
        let value = name.split('.').try_fold(&answer, |value, key| value.get(key))?;
        // Of the two ranges, the one that was taken.
        if names.len() > 1 && value.as_str() != read.service_cidr.as_deref() {
            return None;
        }
        let at = file::locate(text, name)?;
        Some((*name, at.line, at.column))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

    use super::*;

    #[test]
    fn an_ipv6_cluster_has_its_own_range() {
        let answer = br#"{"cluster": {"name": "blue", "endpoint": "", "kubernetesNetworkConfig":
            {"serviceIpv4Cidr": "10.100.0.0/16", "serviceIpv6Cidr": "fd00::/108", "ipFamily": "ipv6"}}}"#;
        let read = read(answer).unwrap();
        assert_eq!(read.service_cidr.as_deref(), Some("fd00::/108"));
        assert_eq!((read.name.as_deref(), read.endpoint), (Some("blue"), None));
    }

    #[test]
    fn what_it_says_is_found_again() {
        let text = "{\"cluster\": {\n\t\"name\": \"a,b\",\n  \"kubernetesNetworkConfig\": {\n    \
                    \"serviceIpv4Cidr\": \"10.0.0.0/8\", \"serviceIpv6Cidr\": \"fd00::/108\", \
                    \"ipFamily\": \"ipv6\"}}}";
        assert_eq!(locate(text, "cluster.name"), Some(("cluster.name", 2, 2)));
        let v6 = "cluster.kubernetesNetworkConfig.serviceIpv6Cidr";
        assert_eq!(locate(text, "cluster.serviceCidr"), Some((v6, 4, 38)));
        assert_eq!(locate(text, "cluster.endpoint"), None);
        assert_eq!(read(b"{\n  x").unwrap_err().place(), (2, 3));
    }

    #[test]
    fn another_answer_is_refused() {
        assert!(matches!(read(b"{}"), Err(ReadClusterError::NoCluster)));
        assert!(matches!(read(b"cluster:"), Err(ReadClusterError::NotJson(_))));
    }
}
