//! Would a node start with these values of a `NodeConfig`?
//!
//! nodeadm decodes them without a word and hands them on: to the script that sets up disks, to containerd.
//! Those fail, and with them the boot. What nodeadm itself passes over is remarked. As of nodeadm's state of
//! 13 February 2026.

use super::super::identity::shown;
use super::super::toml_text;
use super::super::yaml::{Content, Node};
use super::node_config::Checked;

/// In any case: nodeadm makes them lower case.
const STRATEGIES: [&str; 3] = ["RAID0", "RAID10", "Mount"];
const MOUNTS: [&str; 3] = ["Containerd", "PodLogs", "SOCI"];
const FEATURES: [&str; 2] = ["InstanceIdNodeName", "FastImagePull"];

pub(super) fn check(root: &Node, checked: &mut Checked) {
    let Some(spec) = root.get("spec") else { return };
    let storage = spec.at_path(&["instance", "localStorage"]);
    if let Some((node, text)) = storage.and_then(|it| it.get("strategy")).and_then(texted)
        && !STRATEGIES.iter().any(|it| it.eq_ignore_ascii_case(text))
        && !text.is_empty()
    {
        let message = format!(
            "`spec.instance.localStorage.strategy`: `{}` is not one of {}",
            shown(text),
            STRATEGIES.join(", ")
        );
        let hint = "the node would fail to set up its disks, and not join";
        checked.refused.push(checked.remark(node, message).with_hint(hint));
    }
    let mounts = storage.and_then(|it| it.get("disabledMounts")).map_or(&[][..], Node::items);
    for (node, text) in mounts.iter().filter_map(texted) {
        if !MOUNTS.contains(&text) {
            let message = format!(
                "`spec.instance.localStorage.disabledMounts`: `{}` is not one of {}",
                shown(text),
                MOUNTS.join(", ")
            );
            checked.remarks.push(checked.remark(node, message));
        }
    }
    for entry in spec.get("featureGates").map_or(&[][..], Node::entries) {
        if !FEATURES.contains(&entry.key.as_str()) {
            let message = format!(
                "`spec.featureGates`: `{}` is none of nodeadm's, which are {}",
                shown(&entry.key),
                FEATURES.join(", ")
            );
            let hint = "the kubelet's stand in `spec.kubelet.config.featureGates`";
            checked.remarks.push(checked.remark(&entry.value, message).with_hint(hint));
        }
    }
    let containerd = spec.at_path(&["containerd", "config"]);
    if let Some((node, text)) = containerd.and_then(texted)
        && let Err(problem) = toml_text::read(text)
    {
        let message = format!("`spec.containerd.config` {}", problem.message);
        let hint = "containerd would not start with it; it is TOML 1.0";
        checked.refused.push(checked.remark(node, message).with_hint(hint));
    }
}

fn texted(node: &Node) -> Option<(&Node, &str)> {
    match &node.content {
        Content::Text(text) => Some((node, text)),
        Content::Null
        | Content::Bool(_)
        | Content::Number(_)
        | Content::List(_)
        | Content::Map(_) => None,
    }
}
