//! Which cluster does the node join?
//!
//! `--cluster FILE × flags → cluster`, or what is missing, with the flag that tells it

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nodemolt_api::answers::cluster::{self, ClusterAnswer};
use nodemolt_core::bootstrap::OfClass;
use nodemolt_core::bootstrap::{Cluster, IpFamily, Remark};
use nodemolt_fit::Family;

use super::Cluster as Described;
use super::place::ClusterSource;
use crate::cli::{Boot, IpFamilyName};
use crate::input;
use crate::output::Failure;

/// An authority of EKS is some 1,100 bytes, in base64 this many; so that sizes come out right.
const AUTHORITY_CHARS: usize = 1_476;

/// Why there is no cluster.
#[derive(Debug)]
pub(crate) enum NoCluster {
    Unreadable(Failure),
    Missing(Vec<(&'static str, &'static str)>),
}

impl NoCluster {
    pub(crate) fn print(&self, class: &str, done: &str) -> String {
        let missing = match self {
            Self::Unreadable(failure) => return failure.talk.clone(),
            Self::Missing(missing) => missing,
        };
        let count = missing.len();
        let noun = if count == 1 { "thing is" } else { "things are" };
        let mut text =
            format!("error: class `{class}`: {count} {noun} missing; nothing was {done}\n");
        let width = missing.iter().map(|(it, _)| it.chars().count()).max().unwrap_or_default();
        for (flag, what) in missing {
            let _ = writeln!(text, "  {flag:width$}   {what}");
        }
        text.push_str(
            "hint: --cluster FILE tells all of it: the JSON of `aws eks describe-cluster`\n",
        );
        text
    }
}

pub(crate) fn cluster(
    boot: &Boot,
    class: &OfClass,
    family: Family,
    described: Described,
    talk: &mut String,
) -> Result<(Cluster, ClusterSource), NoCluster> {
    let (said, file) = read(boot).map_err(NoCluster::Unreadable)?;
    let mut typed = vec![
        ("cluster.name", "--cluster-name", boot.cluster_name.is_some()),
        ("cluster.endpoint", "--endpoint", boot.endpoint.is_some()),
        ("cluster.certificateAuthority", "--ca", boot.ca.is_some()),
        ("cluster.serviceCidr", "--service-cidr", boot.service_cidr.is_some()),
        ("cluster.dns", "--dns", !boot.dns.is_empty()),
        ("cluster.dns", "--service-cidr", boot.service_cidr.is_some()),
    ];
    typed.retain(|(_, _, given)| *given);
    let typed = typed.into_iter().map(|(field, flag, _)| (field, flag)).collect();
    let stand_in = described == Described::StoodInFor && family != Family::Custom;
    let instead = |text: &str| stand_in.then(|| text.to_owned());
    let name = boot.cluster_name.clone().or(said.name);
    let endpoint = boot.endpoint.clone().or(said.endpoint);
    let authority = boot.ca.clone().or(said.certificate_authority);
    let cidr = boot.service_cidr.clone().or(said.service_cidr);
    if stand_in && (name.is_none() || endpoint.is_none() || authority.is_none()) {
        talk.push_str("note: no cluster was given: one of the usual size stands in for it\n");
    }
    let name = name.or_else(|| instead("a-cluster"));
    let endpoint = endpoint.or_else(|| instead("https://a-cluster.eks.amazonaws.com"));
    let authority = authority.or_else(|| instead(&"A".repeat(AUTHORITY_CHARS)));
    let cidr = cidr.or_else(|| instead("10.100.0.0/16"));

    let derived = cidr.as_deref().and_then(tenth_address);
    let mut dns = boot.dns.clone();
    if dns.is_empty() && class.kubelet.cluster_dns.is_empty() {
        dns.extend(derived);
    }
    let mut missing = Vec::new();
    if family != Family::Custom {
        for (absent, flag, what) in [
            (name.is_none(), "--cluster-name NAME", "the cluster's name"),
            (endpoint.is_none(), "--endpoint URL", "the address of the API server"),
            (authority.is_none(), "--ca BASE64", "the cluster's certificate authority"),
            (
                family == Family::Al2023 && cidr.is_none(),
                "--service-cidr CIDR",
                "the addresses of services",
            ),
            (
                dns.is_empty() && class.kubelet.cluster_dns.is_empty() && cidr.is_none(),
                "--dns ADDRESS",
                "the cluster's DNS; --service-cidr tells it too",
            ),
            (
                // Where a range was given that cannot be read, core says what is wrong with it.
                dns.is_empty()
                    && class.kubelet.cluster_dns.is_empty()
                    && cidr.as_deref().is_some_and(|it| range(it).is_some()),
                "--dns ADDRESS",
                "the cluster's DNS; the address that ends in 10 is not among the services'",
            ),
        ] {
            if absent {
                missing.push((flag, what));
            }
        }
    }
    if !missing.is_empty() {
        return Err(NoCluster::Missing(missing));
    }
    let server = dns.first().copied();
    let server = server.or_else(|| class.kubelet.cluster_dns.first()?.parse().ok());
    let services = cidr.as_deref().and_then(address);
    let v6 = match (boot.ip_family, said.ip_family.as_deref()) {
        (Some(typed), _) => typed == IpFamilyName::Ipv6,
        // What was typed over the file stands over what the file says of it.
        (None, Some(said)) if boot.service_cidr.is_none() => said == "ipv6",
        (None, _) => services.or(server).is_some_and(|it| it.is_ipv6()),
    };
    let cluster = Cluster {
        name: name.unwrap_or_default(),
        endpoint: endpoint.unwrap_or_default(),
        certificate_authority: authority.unwrap_or_default(),
        service_cidr: cidr,
        dns,
        ip_family: if v6 { IpFamily::V6 } else { IpFamily::V4 },
    };
    Ok((cluster, ClusterSource { file, typed }))
}

/// Services and DNS are of the cluster's own family of addresses: a node of the other one never joins.
pub(crate) fn contradictions(cluster: &Cluster) -> Vec<Remark> {
    let v6 = cluster.ip_family == IpFamily::V6;
    let services = cluster.service_cidr.as_deref().and_then(address);
    let services = services.map(|it| ("cluster.serviceCidr", it));
    let told = |(field, it): (&str, IpAddr)| {
        let (have, want) = if v6 { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
        let message = format!("`{it}` is of {have}, and the cluster of {want}");
        let hint = "a cluster is of one family; give services, DNS and --ip-family alike";
        Remark::of_field(field, message).with_hint(hint)
    };
    let all = services.into_iter().chain(cluster.dns.iter().map(|it| ("cluster.dns", *it)));
    all.filter(|(_, it)| it.is_ipv6() != v6).map(told).collect()
}

/// The first address of a range.
fn address(cidr: &str) -> Option<IpAddr> {
    cidr.split('/').next()?.parse().ok()
}

/// What the file says, its name and its text.
fn read(boot: &Boot) -> Result<(ClusterAnswer, Option<(String, String)>), Failure> {
    let Some(path) = &boot.cluster else { return Ok((ClusterAnswer::default(), None)) };
    let bytes = input::read_bytes(path)?;
    let name = path.display().to_string();
    let answer = cluster::read(&bytes).map_err(|error| {
        let (line, column) = error.place();
        Failure::new(format!("{name}:{line}:{column}: {error}"))
            .hint("--cluster takes the JSON of `aws eks describe-cluster`")
    })?;
    Ok((answer, Some((name, String::from_utf8_lossy(&bytes).into_owned()))))
}

/// An address, and how many of its bits are those of the range.
fn range(cidr: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = cidr.split_once('/')?;
    let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    (bits <= bits_max).then_some((address, bits))
}

/// Where EKS puts the cluster's DNS: `x.x.x.10`, or `…::a`. Its bootstrap.sh and nodeadm derive it so too,
/// whether it is in the range or not; where it is not, nobody answers there.
fn tenth_address(cidr: &str) -> Option<IpAddr> {
    match range(cidr)? {
        (IpAddr::V4(it), bits) => {
            let [a, b, c, _] = it.octets();
            let tenth = Ipv4Addr::new(a, b, c, 10);
            let outside = u32::MAX.checked_shr(bits.into()).unwrap_or_default();
            ((tenth.to_bits() ^ it.to_bits()) & !outside == 0).then_some(tenth.into())
        }
        (IpAddr::V6(it), bits) => {
            (bits <= 124).then(|| Ipv6Addr::from_bits(it.to_bits() & !0xf | 0xa).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tenth_address;

    #[test]
    fn the_dns_is_the_tenth_address_of_the_services() {
        for (cidr, dns) in [
            ("10.100.0.0/16", Some("10.100.0.10")),
            ("172.20.0.0/16", Some("172.20.0.10")),
            ("10.0.100.0/24", Some("10.0.100.10")),
            ("fd30:1c53:5f8a::/108", Some("fd30:1c53:5f8a::a")),
            ("10.100.0.0", None),
            ("10.100.0.0/28", Some("10.100.0.10")),
            ("10.100.0.0/30", None),
            ("10.100.0.64/26", None),
            ("10.100.0.0/33", None),
            ("0.0.0.0/0", Some("0.0.0.10")),
            ("10.100.0.10/32", Some("10.100.0.10")),
            ("fd30::/125", None),
            ("services", None),
        ] {
            assert_eq!(tenth_address(cidr).map(|it| it.to_string()).as_deref(), dns, "{cidr}");
        }
    }
}
