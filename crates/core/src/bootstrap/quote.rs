//! How does a value stay a value, whatever it holds?
//!
//! `value → quoted word`, and `label or taint → refused, and why`
//!
//! Nothing is formatted into a script but through here. What Kubernetes would refuse is refused before
//! that: a label that no node can carry has no business in a boot text either.

use std::collections::BTreeMap;

use super::{Place, Remark, Taint};
use crate::image::shorten;

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

/// Labels as Kubernetes has them; the API server would refuse the node, or the kubelet its own flag.
pub fn check_labels(labels: &BTreeMap<String, String>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (key, value) in labels {
        let place = || Place::Field("labels".to_owned());
        if let Some(why) = refuse_key(key) {
            remarks.push(Remark::new(place(), format!("the key `{}` {why}", shorten(key))));
        }
        if let Some(why) = refuse_value(value) {
            let (key, value) = (shorten(key), shorten(value));
            remarks.push(Remark::new(place(), format!("the value `{value}` of `{key}` {why}")));
        }
    }
    remarks
}

/// Taints as Kubernetes has them. The kubelet stops at two of the same key and effect.
pub fn check_taints(taints: &[Taint]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut seen: BTreeMap<(&str, &str), &Taint> = BTreeMap::new();
    for taint in taints {
        let shown = shorten(&taint.to_string());
        let mut refuse = |why: String| {
            remarks.push(Remark::new(Place::Field("taints".to_owned()), why));
        };
        if let Some(why) = refuse_key(&taint.key) {
            refuse(format!("the key of `{shown}` {why}"));
        }
        if let Some(why) = taint.value.as_deref().and_then(refuse_value) {
            refuse(format!("the value of `{shown}` {why}"));
        }
        if !EFFECTS.contains(&taint.effect.as_str()) {
            refuse(format!("the effect of `{shown}` is none of {}", EFFECTS.join(", ")));
        }
        match seen.insert((&taint.key, &taint.effect), taint) {
            Some(other) if other.value != taint.value => {
                refuse(format!(
                    "`{}` and `{shown}` have one key and effect",
                    shorten(&other.to_string())
                ));
            }
            _ => {}
        }
    }
    remarks
}

pub const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Why Kubernetes would refuse this key of a label or a taint: a name of at most 63 characters, and
/// before it, if at all, a domain and a slash.
pub fn refuse_key(key: &str) -> Option<String> {
    let (domain, name) = match key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, key),
    };
    if let Some(domain) = domain
        && (domain.is_empty() || domain.len() > 253 || !domain.split('.').all(dns_label))
    {
        return Some(
            "has no domain before its `/`: lower-case letters, digits, `-` and `.`, at most 253"
                .to_owned(),
        );
    }
    if name.is_empty() { Some("has no name".to_owned()) } else { refuse_name(name) }
}

/// Why Kubernetes would refuse this value of a label or a taint. Empty is a value.
pub fn refuse_value(value: &str) -> Option<String> {
    if value.is_empty() { None } else { refuse_name(value) }
}

fn refuse_name(name: &str) -> Option<String> {
    let inner = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    let ends = |it: Option<u8>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    if name.len() > 63 {
        Some(format!("is {} characters long, and 63 are allowed", name.len()))
    } else if let Some(wrong) = name.chars().find(|it| !it.is_ascii() || !inner(*it as u8)) {
        Some(format!("has {wrong:?}; letters, digits, `-`, `_` and `.` are allowed"))
    } else if !ends(name.bytes().next()) || !ends(name.bytes().last()) {
        Some("must begin and end with a letter or a digit".to_owned())
    } else {
        None
    }
}

fn dns_label(text: &str) -> bool {
    let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
