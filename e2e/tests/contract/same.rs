//! What of an answer, of an object and of a view must be the same on two servers?

use nodemolt_cluster::resources::{
    CLAIM, CSI_NODE, DAEMON_SET, DISRUPTION_BUDGET, IMAGE, KARPENTER_CLASS, LEDGER, NAMESPACE,
    NODE, OWN_CLASS, PDB, POD, POLICY, POOL, QUARANTINE, REPLACEMENT, STORAGE_CLASS, VOLUME,
    VOLUME_CLAIM,
};
use nodemolt_cluster::transport::Resource;
use nodemolt_core::seen::View;
use serde_json::{Map, Value, json};

/// The kinds whose objects are compared: all that are watched.
pub(crate) const COMPARED: [Resource; 19] = [
    CLAIM,
    NODE,
    POD,
    PDB,
    POOL,
    IMAGE,
    REPLACEMENT,
    OWN_CLASS,
    KARPENTER_CLASS,
    DISRUPTION_BUDGET,
    POLICY,
    QUARANTINE,
    LEDGER,
    NAMESPACE,
    DAEMON_SET,
    VOLUME,
    VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
];

/// Words without UIDs, times and revisions.
pub(crate) fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(length) = uid(rest) {
            out.push_str("UID");
            rest = &rest[length..];
        } else if let Some(length) = time(rest) {
            out.push_str("TIME");
            rest = &rest[length..];
        } else if let Some(after) = rest.strip_prefix("Revision(\"") {
            out.push_str("Revision(\"");
            rest = after.trim_start_matches(|it: char| it.is_ascii_digit());
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

fn uid(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let shape = |(at, it): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *it == b'-',
        _ => it.is_ascii_hexdigit(),
    };
    (bytes.len() >= 36 && bytes[..36].iter().enumerate().all(shape)).then_some(36)
}

fn time(text: &str) -> Option<usize> {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let bytes = text.as_bytes();
    let shape = |(it, shape): (&u8, &u8)| match shape {
        b'0' => it.is_ascii_digit(),
        other => it == other,
    };
    if bytes.len() <= SHAPE.len() || !bytes.iter().zip(SHAPE).all(shape) {
        return None;
    }
    let fraction = bytes[SHAPE.len()..].iter();
    let more = fraction.take_while(|it| it.is_ascii_digit() || **it == b'.').count();
    (bytes.get(SHAPE.len() + more) == Some(&b'Z')).then_some(SHAPE.len() + more + 1)
}

/// An object without them. Of Kubernetes' own kinds what we write or read: the rest is defaults, of which
/// the simulator has few.
pub(crate) fn object(resource: Resource, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
        meta.remove("resourceVersion");
    }
    if resource == NODE {
        let spec = pick(&object["spec"], &["taints", "unschedulable", "providerID"]);
        object = json!({"metadata": object["metadata"], "spec": spec});
    } else if resource == POD {
        let spec =
            pick(&object["spec"], &["nodeName", "priority", "terminationGracePeriodSeconds"]);
        let status = pick(&object["status"], &["phase", "conditions"]);
        object = json!({"metadata": object["metadata"], "spec": spec, "status": status});
        // A server of today counts the changes of a pod's spec, and says so of conditions, too.
        object["metadata"].as_object_mut().map(|it| it.remove("generation"));
        for it in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
            it.as_object_mut()
                .map(|it| (it.remove("observedGeneration"), it.remove("lastProbeTime")));
        }
    }
    // Of these we only read, and all of it is compared where the eyes have read it. Finalizers and labels
    // of their own are given to them by controllers and plugins that the simulator does without.
    if [NAMESPACE, DAEMON_SET, VOLUME, VOLUME_CLAIM, STORAGE_CLASS, CSI_NODE].contains(&resource) {
        let mut meta = pick(&object["metadata"], &["name", "namespace", "uid", "annotations"]);
        meta["labels"] = object["metadata"]["labels"].clone();
        if let Some(labels) = meta["labels"].as_object_mut() {
            labels.remove("kubernetes.io/metadata.name");
        }
        meta["going"] = (!object["metadata"]["deletionTimestamp"].is_null()).into();
        // Of a template of pods the server counts the generations, and notes that it was deprecated once.
        if let Some(all) = meta["annotations"].as_object_mut() {
            all.retain(|key, _| !key.starts_with("deprecated."));
        }
        for empty in ["labels", "annotations"] {
            if meta[empty].as_object().is_none_or(Map::is_empty) {
                meta.as_object_mut().map(|it| it.remove(empty));
            }
        }
        object = json!({"metadata": meta});
    }
    let text = words(&object.to_string());
    serde_json::from_str(&text).unwrap()
}

fn pick(from: &Value, fields: &[&str]) -> Value {
    let picked = fields.iter().filter(|it| !from[**it].is_null());
    picked.map(|it| ((*it).to_owned(), from[*it].clone())).collect::<Map<_, _>>().into()
}

/// What eyes show of the objects with this in their names.
pub(crate) fn shown(view: &View, prefix: &str) -> Vec<String> {
    let ours = |name: &str| name.contains(prefix);
    let mut all = Vec::new();
    all.extend(view.claims.values().filter(|it| ours(&it.name)).map(|it| format!("{it:?}")));
    all.extend(view.nodes.values().filter(|it| ours(&it.name)).map(|it| format!("{it:?}")));
    all.extend(view.pools.values().filter(|it| ours(&it.name)).map(|it| format!("{it:?}")));
    all.extend(view.pods.iter().filter(|it| ours(&it.fit.name)).map(|it| format!("{it:?}")));
    let images = view.images.values().filter(|it| ours(&it.image.to_string()));
    all.extend(images.map(|it| format!("{it:?}")));
    all.extend(view.pdbs.values().filter(|it| ours(&it.name)).map(|it| format!("{it:?}")));
    all.extend(view.classes.values().filter(|it| ours(&it.key.name)).map(|it| format!("{it:?}")));
    all.extend(view.budgets.values().filter(|it| ours(&it.name)).map(|it| format!("{it:?}")));
    let policies = view.policies.iter().filter(|(name, _)| ours(name));
    all.extend(policies.map(|it| format!("{it:?}")));
    let quarantines = view.quarantines.iter().filter(|(name, _)| ours(name));
    all.extend(quarantines.map(|it| format!("{it:?}")));
    let daemons = view.daemons.iter().filter(|((_, name), _)| ours(name));
    all.extend(daemons.map(|it| format!("{it:?}")));
    let namespaces = view.namespaces.iter().filter(|(name, _)| ours(name));
    all.extend(namespaces.map(|it| format!("{it:?}")));
    let subjects = view.subjects.iter().filter(|(it, _)| ours(&it.object().name));
    all.extend(subjects.map(|it| format!("{it:?}")));
    all.extend(view.unreadable.iter().filter(|(it, _)| ours(&it.name)).map(|it| format!("{it:?}")));
    all.iter().map(|it| words(it)).collect()
}

/// Where two texts differ, line by line; `None` if they do not.
pub(crate) fn differs(what: &str, real: &str, simulated: &str) -> Option<String> {
    if real == simulated {
        return None;
    }
    let (left, right): (Vec<&str>, Vec<&str>) =
        (real.lines().collect(), simulated.lines().collect());
    let same = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
    let from = same.saturating_sub(12);
    let part =
        |all: &[&str]| all.iter().skip(from).take(24).copied().collect::<Vec<_>>().join("\n");
    let (left, right) = (part(&left), part(&right));
    Some(format!(
        "{what}\n  the real one, from line {from}:\n{left}\n  the simulated one:\n{right}"
    ))
}

#[test]
fn what_differs_on_every_server_is_left_out() {
    let said =
        "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f at 2026-11-16T06:15:00.25Z in Revision(\"17\"), 2026";
    assert_eq!(words(said), "UID at TIME in Revision(\"\"), 2026");
}
