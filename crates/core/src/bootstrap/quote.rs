//! How does a value stay a value, whatever it holds?
//!
//! `value → quoted word`, or refused
//!
//! Nothing is formatted into a script but through here. Labels and taints come checked (`identity`); the
//! cluster's own words are checked here, because AL2's bootstrap.sh hands them on to `sed` without quotes.

use super::identity::shown;
use super::{Cluster, Remark};

/// Neither shell nor PowerShell can hold it in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("has a NUL character, which no script can hold")]
pub struct HasNul;

/// One word for a POSIX shell: in single quotes nothing is special but the quote itself.
pub fn shell(text: &str) -> Result<String, HasNul> {
    without_nul(text).map(|it| format!("'{}'", it.replace('\'', r"'\''")))
}

/// One string for PowerShell. It takes the four typographic single quotes for quotes too.
pub fn powershell(text: &str) -> Result<String, HasNul> {
    let mut quoted = String::from("'");
    for char in without_nul(text)?.chars() {
        if matches!(char, '\'' | '\u{2018}'..='\u{201b}') {
            quoted.push(char);
        }
        quoted.push(char);
    }
    quoted.push('\'');
    Ok(quoted)
}

fn without_nul(text: &str) -> Result<&str, HasNul> {
    if text.contains('\0') { Err(HasNul) } else { Ok(text) }
}

/// What in the cluster's own words no bootstrap script could be told.
pub fn check_cluster(cluster: &Cluster) -> Vec<Remark> {
    let word = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    let name = &cluster.name;
    let endpoint = &cluster.endpoint;
    let host = endpoint.strip_prefix("https://").unwrap_or_default();
    let host_begins = |it: char| it.is_ascii_alphanumeric() || it == '[';
    let address = |it: char| word(it) || ":/[]".contains(it);
    let base64 = |it: char| it.is_ascii_alphanumeric() || "+/=".contains(it);
    let authority = &cluster.certificate_authority;
    let mut refused = Vec::new();
    if !name.starts_with(|it: char| it.is_ascii_alphanumeric()) || !name.chars().all(word) {
        let message = format!("`{}` is no name of a cluster", shown(name));
        refused.push(
            Remark::of_field("cluster.name", message)
                .with_hint("letters, digits, `-`, `_` and `.`, beginning with a letter or digit"),
        );
    }
    if !host.starts_with(host_begins) || !host.chars().all(address) {
        let message = format!("`{}` is no address of an API server", shown(endpoint));
        refused.push(
            Remark::of_field("cluster.endpoint", message)
                .with_hint("write it as `aws eks describe-cluster` prints it: `https://…`"),
        );
    }
    if authority.is_empty() || !authority.chars().all(base64) {
        refused.push(
            Remark::of_field("cluster.certificateAuthority", "is not base64")
                .with_hint("write it as `aws eks describe-cluster` prints it, on one line"),
        );
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::IpFamily;

    #[test]
    fn a_quote_ends_nothing() {
        assert_eq!(shell("a'b; $(c)").unwrap(), r"'a'\''b; $(c)'");
        assert_eq!(powershell("a'b’c$d").unwrap(), "'a''b’’c$d'");
        assert_eq!(shell("\0"), Err(HasNul));
        assert_eq!(powershell("a\0"), Err(HasNul));
    }

    #[test]
    fn a_clusters_words_cannot_reach_sed() {
        let sound = Cluster {
            name: "prod-1".into(),
            endpoint: "https://ABC.gr7.eu-west-1.eks.amazonaws.com".into(),
            certificate_authority: "Y2EtYnVuZGxlCg==".into(),
            service_cidr: None,
            dns: vec![],
            ip_family: IpFamily::V4,
        };
        assert_eq!(check_cluster(&sound), []);
        for name in ["", "-x", "--help", "a,e", "a b", "a\n", "a&b"] {
            assert_eq!(
                check_cluster(&Cluster { name: name.into(), ..sound.clone() }).len(),
                1,
                "{name}"
            );
        }
        for endpoint in [
            "",
            "https://",
            "https://-x",
            "http://x",
            "https://x,e",
            "https://x y",
            "https://x&",
            "https://x\n",
        ] {
            let cluster = Cluster { endpoint: endpoint.into(), ..sound.clone() };
            assert_eq!(check_cluster(&cluster).len(), 1, "{endpoint}");
        }
        for authority in ["", "a b", "-----BEGIN"] {
            let cluster = Cluster { certificate_authority: authority.into(), ..sound.clone() };
            assert_eq!(check_cluster(&cluster).len(), 1, "{authority}");
        }
    }
}
