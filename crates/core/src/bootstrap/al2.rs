//! What is an AL2 node told?
//!
//! `user's parts · ours → MIME`, or `ours · user's parts · ours`
//!
//! Cloud-init runs scripts in the order of their file names, so ours carry names that sort last, or
//! first and last. In the sandwich a drop-in with a condition that is false holds the kubelet back:
//! bootstrap.sh knows no flag for that, and a mask would make it fail.

use super::identity::{self, shown};
use super::mime::{self, Found, Part};
use super::user_part::{self, Kind};
use super::{
    IpFamily, MergeConflict, Place, Placement, Provenance, Remark, Settings, Source, UserData,
    UserPart, cloud_config, flags, kubelet, quote,
};
use nodemolt_fit::Family;

/// After every name that a user is likely to choose, and after `part-001` and `runcmd`.
pub const BOOTSTRAP_LAST: &str = "zzzz-nodemolt-bootstrap.sh";
/// Before every name that begins with a letter or a digit.
pub const BOOTSTRAP_FIRST: &str = "0--nodemolt-bootstrap.sh";
pub const KUBELET_LAST: &str = "zzzz-nodemolt-kubelet.sh";

/// Keys of the kubelet's configuration that stay as bootstrap.sh wrote them, whatever the class says.
const OWNED_KEYS: [&str; 6] =
    ["apiVersion", "clusterDNS", "kind", "providerID", "registerNode", "registerWithTaints"];

/// And the flags that would say the same.
const OWNED_FLAGS: [&str; 8] = [
    "--bootstrap-kubeconfig",
    "--cluster-dns",
    "--config",
    "--config-dir",
    "--hostname-override",
    "--kubeconfig",
    "--provider-id",
    "--register-node",
];

const KUBELET_LAST_SCRIPT: &str = include_str!("al2/kubelet_last.sh");

const LOG: &str =
    "exec > >(tee /var/log/user-data.log | logger -t user-data -s 2> /dev/console) 2>&1";

pub fn render(settings: &Settings, user: UserPart<'_>) -> Result<UserData, MergeConflict> {
    let mut refused = identity::check(settings);
    let mut remarks = kubelet::check(&settings.kubelet, Family::Al2).unwrap_or_else(|conflict| {
        refused.extend(conflict.remarks);
        Vec::new()
    });
    flags::tell(&mut refused, quote::check_cluster(&settings.cluster));
    let ours = ours(settings).unwrap_or_else(|remarks| {
        flags::tell(&mut refused, remarks);
        Ours { before: None, after: Part::new(mime::SHELL, "") }
    });
    let mut theirs = Vec::new();
    if let Some(text) = user.text() {
        match user_part::read(text) {
            Ok(read) => {
                theirs = read.parts;
                refused.extend(read.refused);
                remarks.extend(read.remarks);
            }
            Err(remark) => refused.push(remark),
        }
    }
    // What we rendered ourselves is not repeated, so that rendering again changes nothing.
    theirs.retain(|it| it.part != ours.after && Some(&it.part) != ours.before.as_ref());
    check_parts(&theirs, settings.placement, &mut refused, &mut remarks);
    if !refused.is_empty() {
        return Err(MergeConflict { remarks: refused, warnings: remarks });
    }

    let (mut parts, mut provenance) = (Vec::new(), Vec::new());
    let theirs = theirs.into_iter().map(|it| (it.part, Source::User));
    let before = ours.before.map(|it| (it, Source::Nodemolt));
    for (part, source) in before.into_iter().chain(theirs).chain([(ours.after, Source::Nodemolt)]) {
        let (number, content_type) = (parts.len() + 1, part.content_type());
        provenance.push(Provenance { what: format!("part {number} ({content_type})"), source });
        parts.push(part);
    }
    Ok(UserData { text: mime::compose(&parts), provenance, remarks })
}

struct Ours {
    before: Option<Part>,
    after: Part,
}

fn ours(settings: &Settings) -> Result<Ours, Vec<Remark>> {
    let flags = flags::flags(settings)?;
    let call = bootstrap_call(settings, &flags).map_err(|it| vec![it])?;
    let script = |text: String, name: &str| {
        Part::new(&format!("{}; charset=\"us-ascii\"", mime::SHELL), text).named(name)
    };
    Ok(match settings.placement {
        Placement::BeforeBootstrap => Ours {
            before: None,
            after: script(format!("#!/bin/bash -xe\n{LOG}\n{call}\n"), BOOTSTRAP_LAST),
        },
        Placement::BetweenBootstrapAndKubelet => Ours {
            before: Some(script(bootstrap_first(&call), BOOTSTRAP_FIRST)),
            after: script(kubelet_last(&flags), KUBELET_LAST),
        },
    })
}

/// `/etc/eks/bootstrap.sh` and its words. It takes any word that it does not know for the cluster's name.
fn bootstrap_call(settings: &Settings, flags: &[flags::Flag]) -> Result<String, Remark> {
    let cluster = &settings.cluster;
    let quoted = |field: &str, value: &str| {
        quote::shell(value).map_err(|why| Remark::of_field(field, why.to_string()))
    };
    let mut lines = vec![format!(
        "/etc/eks/bootstrap.sh {} --apiserver-endpoint {} --b64-cluster-ca {}",
        quoted("cluster.name", &cluster.name)?,
        quoted("cluster.endpoint", &cluster.endpoint)?,
        quoted("cluster.certificateAuthority", &cluster.certificate_authority)?,
    )];
    let dns = flags::cluster_dns(settings);
    if cluster.ip_family == IpFamily::V6 || dns.is_some_and(|it| it.is_ipv6()) {
        lines.push("--ip-family ipv6".to_owned());
        if dns.is_none() {
            let Some(cidr) = &cluster.service_cidr else {
                return Err(Remark::of_field("cluster.dns", "is missing")
                    .with_hint("name the cluster's DNS or its service CIDR: IPv6 needs one"));
            };
            lines.push(format!("--service-ipv6-cidr {}", quoted("cluster.serviceCidr", cidr)?));
        }
    }
    lines.extend(dns.map(|it| format!("--dns-cluster-ip '{it}'")));
    lines.extend(settings.kubelet.max_pods.map(|_| "--use-max-pods false".to_owned()));
    let extra = quoted("spec.kubelet", &flags::joined(flags))?;
    lines.push(format!("--kubelet-extra-args {extra}"));
    if settings.instance_store_raid0 {
        lines.push("--local-disks raid0".to_owned());
    }
    Ok(lines.join(" \\\n  "))
}

fn bootstrap_first(call: &str) -> String {
    format!(
        "\
#!/bin/bash
# nodemolt: joins the cluster, and holds the kubelet back until the parts between have run.
set -o errexit
{LOG}
mkdir -p /run/nodemolt /run/systemd/system/kubelet.service.d
cat > /run/systemd/system/kubelet.service.d/00-nodemolt-hold.conf << 'END'
[Unit]
ConditionPathExists=/run/nodemolt/kubelet-may-start
END
systemctl daemon-reload
failed=0
{call} || failed=$?
# It enables the kubelet near its end. What fails after that (clocks of a GPU) stops no node.
if systemctl is-enabled --quiet kubelet; then
  touch /run/nodemolt/bootstrapped
  cp /etc/kubernetes/kubelet/kubelet-config.json /run/nodemolt/kubelet-config.json
fi
exit \"$failed\"
"
    )
}

fn kubelet_last(flags: &[flags::Flag]) -> String {
    // A kubelet joins the labels of several flags; so a user's labels may stand before ours.
    let owned = || flags.iter().filter(|it| it.name != "--node-labels");
    let mut keys: Vec<&str> = OWNED_KEYS.to_vec();
    keys.extend(owned().map(|it| it.field));
    keys.sort_unstable();
    keys.dedup();
    let keys: Vec<String> = keys.iter().map(|it| format!("\"{it}\"")).collect();
    let names: Vec<&str> = OWNED_FLAGS.into_iter().chain(owned().map(|it| it.name)).collect();
    // Both hold names of our own only: no quote can occur in them.
    KUBELET_LAST_SCRIPT
        .replace("@OWNED_KEYS@", &format!("'[{}]'", keys.join(",")))
        .replace("@OWNED_FLAGS@", &format!("'{}'", names.join(" ")))
}

/// Would cloud-init run the user's parts where they stand?
fn check_parts(
    theirs: &[Found],
    placement: Placement,
    refused: &mut Vec<Remark>,
    remarks: &mut Vec<Remark>,
) {
    let mut all = Vec::new();
    for found in theirs {
        match user_part::leaves(found) {
            Ok(leaves) => all.extend(leaves),
            Err(remark) => refused.push(remark),
        }
    }
    for leaf in &all {
        remarks.extend(untimely(leaf, placement));
        // Ours are scripts: a node on which none runs does not join.
        refused.extend(cloud_config::all(leaf).into_iter().filter_map(|it| it.stops_scripts));
        if leaf.part.content_type().starts_with("message/") {
            let message = "is a message within a message, which cloud-init takes apart";
            let hint = "put its parts beside the others: their names cannot be checked there";
            refused.push(at(leaf, message).with_hint(hint));
        }
        match user_part::file_name(&leaf.part) {
            Err(why) => refused.push(at(leaf, why)),
            Ok(Some(name)) if may_be_script(&leaf.part) => {
                refused.extend(outside(leaf, &name, placement));
            }
            Ok(_) => {}
        }
        if Kind::of_part(&leaf.part) == Kind::CloudConfigArchive {
            refused.extend(outside_in_archive(leaf, placement));
        }
    }
    let before = usize::from(placement == Placement::BetweenBootstrapAndKubelet);
    remarks.extend(user_part::same_names(&all, before));
}

/// A script, or what may become one on the node under the same name.
fn may_be_script(part: &Part) -> bool {
    let packed = |it: &str| it.contains("gzip") || it.contains("gunzip") || it.contains("compress");
    match Kind::of_part(part) {
        Kind::Shell | Kind::Jinja => true,
        Kind::Plain => {
            let content_type = part.content_type();
            content_type.strip_prefix("application/").is_some_and(packed)
        }
        Kind::Mime
        | Kind::CloudConfig
        | Kind::CloudConfigArchive
        | Kind::CloudConfigJsonp
        | Kind::Include
        | Kind::IncludeOnce
        | Kind::PartHandler
        | Kind::Boothook => false,
    }
}

fn outside_in_archive(found: &Found, placement: Placement) -> Vec<Remark> {
    let body = user_part::decoded(&found.part).and_then(|it| String::from_utf8(it).ok());
    let names = cloud_config::names_in_archive(&body.unwrap_or_default());
    let check = |(written, line): (String, usize)| {
        let entry = Found { line: found.body_line + line, ..found.clone() };
        match user_part::kept_name(&written) {
            Ok(name) => outside(&entry, &name, placement),
            Err(why) => Some(at(&entry, why)),
        }
    };
    names.into_iter().filter_map(check).collect()
}

fn at(found: &Found, message: impl Into<String>) -> Remark {
    Remark::new(Place::UserPart { line: found.line, column: 1 }, message)
}

/// A script's name that would run outside of its place.
fn outside(found: &Found, name: &str, placement: Placement) -> Option<Remark> {
    let shown_name = shown(name);
    if [BOOTSTRAP_FIRST, BOOTSTRAP_LAST, KUBELET_LAST].contains(&name) {
        let message = format!("`{shown_name}` is the name of a part of ours");
        return Some(at(found, message).with_hint("leave out what nodemolt rendered"));
    }
    let hint = "cloud-init runs scripts in the order of their names; choose one between, or none";
    let (first, last) = match placement {
        Placement::BeforeBootstrap => (None, BOOTSTRAP_LAST),
        Placement::BetweenBootstrapAndKubelet => (Some(BOOTSTRAP_FIRST), KUBELET_LAST),
    };
    if name >= last {
        let message =
            format!("`{shown_name}` sorts after `{last}`, and would run after the kubelet started");
        return Some(at(found, message).with_hint(hint));
    }
    let first = first.filter(|first| name <= *first)?;
    let message =
        format!("`{shown_name}` sorts before `{first}`, and would run before bootstrap.sh");
    Some(at(found, message).with_hint(hint))
}

/// What runs at another time than its place says.
fn untimely(found: &Found, placement: Placement) -> Option<Remark> {
    let between = placement == Placement::BetweenBootstrapAndKubelet;
    let message = match Kind::of_part(&found.part) {
        Kind::CloudConfig | Kind::CloudConfigArchive | Kind::CloudConfigJsonp => {
            if !has_runcmd(found) {
                return None;
            }
            "its `runcmd` runs as a script named `runcmd`: not where the part stands, but after every \
             script whose name sorts before that, and before our last part"
        }
        Kind::Jinja => "what it becomes is known on the node only, and so is when it runs",
        Kind::Include | Kind::IncludeOnce => {
            "what it includes is fetched on the node; its file names cannot be checked here"
        }
        Kind::Boothook if between => {
            "a boothook runs at every boot before all scripts, so before bootstrap.sh"
        }
        Kind::PartHandler if between => {
            "a part handler runs before all scripts, so before bootstrap.sh"
        }
        Kind::Plain if may_be_script(&found.part) => {
            "what it unpacks to is known on the node only, and so is when it runs"
        }
        Kind::Mime | Kind::Shell | Kind::Plain | Kind::Boothook | Kind::PartHandler => return None,
    };
    Some(at(found, message))
}

/// Where it cannot be read as a map of its own, the word decides.
fn has_runcmd(found: &Found) -> bool {
    if Kind::of_part(&found.part) == Kind::CloudConfigJsonp {
        let body = user_part::decoded(&found.part).and_then(|it| String::from_utf8(it).ok());
        return body.unwrap_or_default().contains("runcmd");
    }
    cloud_config::all(found).iter().any(|it| it.runcmd)
}
