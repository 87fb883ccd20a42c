//! What is a Windows node told?
//!
//! `<powershell> user's lines · ours </powershell>`
//!
//! EC2 runs one PowerShell script, so the user's lines and ours become one. The agent finds it by its
//! tags wherever they stand, in strings and comments too; so a tag within is refused.

mod open;

use nodemolt_fit::Family;
use open::Unbalanced;

use super::identity;
use super::user_part::Kind;
use super::{
    MergeConflict, Place, Provenance, Remark, Settings, Source, UserData, UserPart, flags, kubelet,
    quote,
};

const OPEN: &str = "<powershell>";
const CLOSE: &str = "</powershell>";
/// The agent's other tags. Ours would be read with them.
const OTHER_TAGS: [&str; 4] = ["<script>", "<persist>", "<powershellarguments>", "<detach>"];

pub fn render(
    family: Family,
    settings: &Settings,
    user: UserPart<'_>,
) -> Result<UserData, MergeConflict> {
    let mut refused = identity::check(settings);
    let mut remarks = kubelet::check(&settings.kubelet, family).unwrap_or_else(|conflict| {
        refused.extend(conflict.remarks);
        Vec::new()
    });
    flags::tell(&mut refused, quote::check_cluster(&settings.cluster));
    let call = bootstrap_call(settings).unwrap_or_else(|remarks| {
        flags::tell(&mut refused, remarks);
        String::new()
    });
    let theirs = user.text().map(|text| {
        check_user(text, &mut refused, &mut remarks);
        unwrap(text).1
    });
    if settings.instance_store_raid0 {
        let message = "RAID0 has no effect on Windows";
        remarks.push(Remark::of_field("spec.instanceStorePolicy", message));
    }
    if !refused.is_empty() {
        return Err(MergeConflict { remarks: refused, warnings: remarks });
    }

    let mut text = format!("{OPEN}\n");
    let mut provenance = Vec::new();
    // What we rendered ourselves is not repeated, so that rendering again changes nothing.
    let theirs = theirs.map(|it| it.strip_suffix(&call).unwrap_or(it)).filter(|it| !it.is_empty());
    if let Some(theirs) = theirs {
        text.push_str(theirs);
        if !theirs.ends_with('\n') {
            text.push('\n');
        }
        provenance
            .push(Provenance { what: "the lines before ours".to_owned(), source: Source::User });
    }
    text.push_str(&call);
    let what = "Start-EKSBootstrap.ps1".to_owned();
    provenance.push(Provenance { what, source: Source::Nodemolt });
    text.push_str(CLOSE);
    text.push('\n');
    Ok(UserData { text, provenance, remarks })
}

fn bootstrap_call(settings: &Settings) -> Result<String, Vec<Remark>> {
    let flags = flags::flags(settings)?;
    let quoted = |field: &str, value: &str| {
        quote::powershell(value).map_err(|why| vec![Remark::of_field(field, why.to_string())])
    };
    let cluster = &settings.cluster;
    let mut call = format!(
        "[string]$EKSBootstrapScriptFile = \
         \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n\
         & $EKSBootstrapScriptFile -EKSClusterName {} -APIServerEndpoint {} -Base64ClusterCA {} \
         -KubeletExtraArgs {}",
        quoted("cluster.name", &cluster.name)?,
        quoted("cluster.endpoint", &cluster.endpoint)?,
        quoted("cluster.certificateAuthority", &cluster.certificate_authority)?,
        quoted("spec.kubelet", &flags::joined(&flags))?,
    );
    if let Some(dns) = flags::cluster_dns(settings) {
        call.push_str(" -DNSClusterIP ");
        call.push_str(&quoted("cluster.dns", &dns.to_string())?);
    }
    call.push('\n');
    Ok(call)
}

/// Where it begins, and what is left without one enclosing pair of tags and the line break behind the
/// first.
fn unwrap(text: &str) -> (usize, &str) {
    let trimmed = text.trim();
    let Some(inner) = strip_tag(trimmed, OPEN).and_then(|it| strip_end_tag(it, CLOSE)) else {
        return (0, text);
    };
    let outer = text.len() - text.trim_start().len() + OPEN.len();
    let line_break = ["\r\n", "\n"].into_iter().find(|it| inner.starts_with(it)).unwrap_or("");
    let inner = &inner[line_break.len()..];
    (outer + line_break.len(), if inner.trim().is_empty() { "" } else { inner })
}

fn strip_tag<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(tag.len())?;
    head.eq_ignore_ascii_case(tag).then_some(rest)
}

fn strip_end_tag<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (rest, tail) = text.split_at_checked(text.len().checked_sub(tag.len())?)?;
    tail.eq_ignore_ascii_case(tag).then_some(rest)
}

/// What would make our lines part of theirs, or is no PowerShell at all.
fn swallowing(text: &str, start: usize, inner: &str) -> Vec<Remark> {
    let mut found = Vec::new();
    let end = inner.trim_end().len();
    let mut tell = |byte: usize, message: &str, hint: &str| {
        found.push(Remark::new(Place::of_byte(text, start + byte), message).with_hint(hint));
    };
    if inner[..end].ends_with('`') {
        let message = "ends in a backtick, which continues the command into ours";
        tell(end - 1, message, "end the command; a node would not join");
    }
    if let Some(Unbalanced { at, sign, opens }) = open::unbalanced(inner).first() {
        let message = if *opens {
            format!("`{sign}` is never closed, and takes our lines in")
        } else {
            format!("`{sign}` closes what was never opened, and PowerShell runs none of it")
        };
        let hint = if *opens { "close it; a node would not join" } else { "remove it" };
        tell(*at, &message, hint);
    }
    if inner.trim_start().starts_with("#!") {
        tell(0, "is a script for a shell, which Windows does not run", "write PowerShell");
    }
    let key = |name: &str| inner.lines().any(|it| it.starts_with(name));
    if key("version:") && key("tasks:") {
        let message = "looks like YAML of EC2Launch, which is not read beside PowerShell";
        tell(0, message, "write PowerShell");
    }
    found
}

fn check_user(text: &str, refused: &mut Vec<Remark>, remarks: &mut Vec<Remark>) {
    if Kind::of(text) == Kind::Mime {
        refused.push(
            Remark::new(
                Place::UserPart { line: 1, column: 1 },
                "is MIME, which Windows does not read",
            )
            .with_hint("write PowerShell alone"),
        );
        return;
    }
    if text.contains('\0') {
        refused.push(Remark::new(Place::Whole, quote::HasNul.to_string()));
    }
    let (start, inner) = unwrap(text);
    let lower = inner.to_ascii_lowercase();
    for tag in ["<powershell", "</powershell"] {
        if let Some(byte) = lower.find(tag) {
            refused.push(
                Remark::new(Place::of_byte(text, start + byte), format!("has `{tag}` within"))
                    .with_hint(
                        "write PowerShell without the tags, or with one pair around all of it",
                    ),
            );
        }
    }
    for tag in OTHER_TAGS {
        if let Some(byte) = lower.find(tag) {
            let place = Place::of_byte(text, start + byte);
            let message = format!("has `{tag}`, which EC2's agent may read as its own");
            if lower.trim_start().starts_with(tag) {
                refused.push(Remark::new(place, message).with_hint("write PowerShell alone"));
            } else {
                remarks.push(Remark::new(place, message));
            }
        }
    }
    remarks.extend(swallowing(text, start, inner));
    for (number, line) in (1..).zip(inner.lines()) {
        let word = line.trim_start().split([' ', ';', '\t']).next().unwrap_or_default();
        if word.eq_ignore_ascii_case("exit") && line.starts_with(['e', 'E']) {
            let Place::UserPart { line, .. } = Place::of_byte(text, start) else { break };
            let place = Place::UserPart { line: line + number - 1, column: 1 };
            let message = "`exit` ends the script before ours, and the node would not join";
            remarks.push(Remark::new(place, message).with_hint("let the script run to its end"));
        }
    }
}
