//! What does the server add to Kubernetes' own kinds, and what does it refuse?
//!
//! Light: what the simulated controllers and nodemolt rely on. Everything else is stored as it came.

use nodemolt_cluster::transport::Resource;
use nodemolt_fit::Quantity;
use serde_json::{Value, json};

use super::ApiServer;
use super::refuse::Wrong;
use crate::json::{at, items, members, remove, set, set_default, text, whole};
use crate::kinds;
use crate::selector::selects_labels;

/// Whether it is one of Kubernetes' own.
pub(super) fn is(resource: Resource) -> bool {
    kinds::is_built_in(resource)
}

/// Whether a write may leave out the revision that it was decided on.
pub(super) fn takes_unconditional_updates(resource: Resource) -> bool {
    is(resource) && ![kinds::PDB, kinds::LEASE, kinds::CSI_NODE].contains(&resource)
}

/// Whether a change of the spec is counted.
fn has_generation(resource: Resource) -> bool {
    [
        kinds::POD,
        kinds::PDB,
        kinds::DAEMON_SET,
        kinds::DEPLOYMENT,
        kinds::REPLICA_SET,
        kinds::STATEFUL_SET,
        kinds::JOB,
    ]
    .contains(&resource)
}

/// What the API server and its default admission add to a new object; then, what is wrong with it.
pub(super) fn admit(server: &ApiServer, resource: Resource, object: &mut Value) -> Vec<Wrong> {
    tidy(object);
    remove(object, &["metadata", "generation"]);
    if has_generation(resource) {
        set(object, &["metadata", "generation"], json!(1));
    }
    if resource == kinds::NODE {
        // Nothing is scheduled there before the node says that it is ready.
        add_taint(object, "node.kubernetes.io/not-ready", "NoSchedule");
        set_default(object, &["spec"], json!({}));
    } else if resource == kinds::POD {
        admit_pod(server, object);
    } else if resource == kinds::NAMESPACE {
        let name = text(object, &["metadata", "name"]).to_owned();
        set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], json!(name));
        set(object, &["spec"], json!({ "finalizers": ["kubernetes"] }));
        set(object, &["status"], json!({ "phase": "Active" }));
    } else if resource == kinds::PDB {
        let none = json!({
            "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
        });
        set(object, &["status"], none);
    } else if [kinds::DEPLOYMENT, kinds::REPLICA_SET, kinds::STATEFUL_SET].contains(&resource) {
        remove(object, &["status"]);
        set_default(object, &["spec", "replicas"], json!(1));
    } else if resource == kinds::JOB {
        remove(object, &["status"]);
        set_default(object, &["spec", "parallelism"], json!(1));
        set_default(object, &["spec", "completions"], json!(1));
    } else if resource == kinds::DAEMON_SET {
        remove(object, &["status"]);
    }
    let mut wrong = check_name(object);
    wrong.extend(check_words(object));
    wrong.extend(check(resource, object));
    wrong.extend(check_pods(resource, object));
    wrong
}

/// A pod as it comes out of admission: defaults, tolerations and the value of its priority.
fn admit_pod(server: &ApiServer, pod: &mut Value) {
    let class = text(pod, &["spec", "priorityClassName"]);
    let priority = match class {
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        "" => server
            .all(kinds::PRIORITY_CLASS)
            .filter(|(_, it)| at(it, &["globalDefault"]) == Some(&Value::Bool(true)))
            .filter_map(|(_, it)| whole(it, &["value"]))
            .min()
            .unwrap_or(0),
        named => server
            .get(kinds::PRIORITY_CLASS, "", named)
            .and_then(|it| whole(it, &["value"]))
            .unwrap_or(0),
    };
    set_default(pod, &["spec", "priority"], json!(priority));
    set_default(pod, &["spec", "restartPolicy"], json!("Always"));
    set_default(pod, &["spec", "terminationGracePeriodSeconds"], json!(30));
    set_default(pod, &["spec", "schedulerName"], json!("default-scheduler"));
    tolerate_for_a_while(pod);
    set(pod, &["status"], json!({ "phase": "Pending" }));
}

/// Nodes that are lost, for five minutes, unless the pod says how long.
fn tolerate_for_a_while(pod: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = items(pod, &["spec", "tolerations"]).iter().any(|it| {
            let (said, effect) = (text(it, &["key"]), text(it, &["effect"]));
            (said == key || (said.is_empty() && text(it, &["operator"]) == "Exists"))
                && (effect.is_empty() || effect == "NoExecute")
        });
        if !tolerated {
            let toleration = json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            });
            push(pod, &["spec", "tolerations"], toleration);
        }
    }
}

/// What of a change of an object's spec stands: the status stays; a change of the spec is counted.
pub(super) fn settle(resource: Resource, old: &Value, new: &mut Value) -> Vec<Wrong> {
    tidy(new);
    if resource != kinds::PRIORITY_CLASS && resource != kinds::STORAGE_CLASS {
        match at(old, &["status"]) {
            Some(status) => set(new, &["status"], status.clone()),
            None => {
                remove(new, &["status"]);
            }
        }
    }
    if resource == kinds::POD
        && at(old, &["spec", "tolerations"]) != at(new, &["spec", "tolerations"])
    {
        // Admission looks at changes, too.
        tolerate_for_a_while(new);
    }
    if has_generation(resource) && at(old, &["spec"]) != at(new, &["spec"]) {
        let generation = whole(old, &["metadata", "generation"]).unwrap_or(1);
        set(new, &["metadata", "generation"], json!(generation + 1));
    }
    let mut wrong = check_change(resource, old, new);
    wrong.extend(check(resource, new));
    if at(old, &["spec"]) != at(new, &["spec"]) {
        wrong.extend(check_pods(resource, new));
    }
    wrong
}

/// What of a change of its status stands: the spec stays, and labels and annotations may be written along.
pub(super) fn settle_status(resource: Resource, old: &Value, new: &mut Value) -> Vec<Wrong> {
    tidy(new);
    match at(old, &["spec"]) {
        Some(spec) => set(new, &["spec"], spec.clone()),
        None => {
            remove(new, &["spec"]);
        }
    }
    let mut wrong = check_change(resource, old, new);
    if resource == kinds::PDB {
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            let count = whole(new, &["status", field]).unwrap_or(0);
            if count < 0 {
                let detail = "must be greater than or equal to 0";
                let field = format!("status.{field}");
                wrong.push(Wrong::invalid(&field, &count.to_string(), detail));
            }
        }
    }
    wrong
}

/// What Go would leave out when it writes an object.
fn tidy(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
            let empty = match metadata.get(field) {
                Some(Value::Object(fields)) => fields.is_empty(),
                Some(Value::Array(listed)) => listed.is_empty(),
                Some(Value::Null) => true,
                None | Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
            };
            if empty {
                metadata.remove(field);
            }
        }
    }
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        if spec.get("taints").is_some_and(|it| it.as_array().is_none_or(Vec::is_empty)) {
            spec.remove("taints");
        }
        if spec.get("unschedulable") == Some(&Value::Bool(false)) {
            spec.remove("unschedulable");
        }
    }
}

fn check_name(object: &Value) -> Vec<Wrong> {
    let name = text(object, &["metadata", "name"]);
    if name.is_empty() {
        let detail = "name or generateName is required";
        return vec![Wrong::required("metadata.name", detail)];
    }
    let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let label = |it: &str| {
        let bytes = it.as_bytes();
        bytes.first().copied().is_some_and(inner)
            && bytes.last().copied().is_some_and(inner)
            && bytes.iter().all(|it| inner(*it) || *it == b'-')
    };
    if name.len() <= 253 && name.split('.').all(label) {
        return Vec::new();
    }
    let detail = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    vec![Wrong::invalid("metadata.name", &format!("{name:?}"), detail)]
}

/// What may not change.
fn check_change(resource: Resource, old: &Value, new: &Value) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    // What was let in once is as it was.
    if ["labels", "annotations"]
        .iter()
        .any(|it| at(old, &["metadata", it]) != at(new, &["metadata", it]))
    {
        wrong.extend(check_words(new));
    }
    let uid = text(new, &["metadata", "uid"]);
    if uid != text(old, &["metadata", "uid"]) {
        wrong.push(Wrong::invalid("metadata.uid", &format!("{uid:?}"), "field is immutable"));
    }
    if at(old, &["metadata", "deletionTimestamp"]).is_some() {
        let known = super::finalizers(old);
        let added: Vec<String> = super::finalizers(new)
            .into_iter()
            .filter(|it| !known.contains(it))
            .map(|it| format!("{it:?}"))
            .collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            wrong.push(Wrong::forbidden("metadata.finalizers", &detail));
        }
    }
    if resource == kinds::NODE {
        let (was, is) = (text(old, &["spec", "providerID"]), text(new, &["spec", "providerID"]));
        if !was.is_empty() && was != is {
            let detail = "node updates may not change providerID except from \"\" to valid";
            wrong.push(Wrong::forbidden("spec.providerID", detail));
        }
    } else if resource == kinds::POD && fixed_of_pod(old) != fixed_of_pod(new) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        wrong.push(Wrong::forbidden("spec", detail));
    }
    wrong
}

/// What of a pod never changes.
fn fixed_of_pod(pod: &Value) -> Vec<(&String, &Value)> {
    const MOVABLE: [&str; 6] = [
        "containers",
        "initContainers",
        "activeDeadlineSeconds",
        "tolerations",
        "schedulingGates",
        "ephemeralContainers",
    ];
    members(pod, &["spec"]).filter(|(key, _)| !MOVABLE.contains(&key.as_str())).collect()
}

fn check(resource: Resource, object: &Value) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    if resource == kinds::POD && items(object, &["spec", "containers"]).is_empty() {
        wrong.push(Wrong::required("spec.containers", ""));
    }
    if resource == kinds::NODE {
        wrong.extend(check_taints(items(object, &["spec", "taints"])));
    }
    if resource == kinds::PDB
        && at(object, &["spec", "minAvailable"]).is_some()
        && at(object, &["spec", "maxUnavailable"]).is_some()
    {
        let spec = at(object, &["spec"]).map(Value::to_string).unwrap_or_default();
        let detail = "minAvailable and maxUnavailable cannot be both set";
        wrong.push(Wrong::invalid("spec", &spec, detail));
    }
    let selects = [kinds::DEPLOYMENT, kinds::REPLICA_SET, kinds::STATEFUL_SET, kinds::DAEMON_SET];
    if selects.contains(&resource) {
        let labels = at(object, &["spec", "template", "metadata", "labels"]);
        let labels = labels.unwrap_or(&Value::Null);
        match at(object, &["spec", "selector"]) {
            None => wrong.push(Wrong::required("spec.selector", "")),
            // Its pods would not be its own, and it would make more of them for ever.
            Some(selector) if !selects_labels(Some(selector), labels) => {
                let detail = "`selector` does not match template `labels`";
                let field = "spec.template.metadata.labels";
                wrong.push(Wrong::invalid(field, &labels.to_string(), detail));
            }
            Some(_) => {}
        }
    }
    wrong
}

fn check_words(object: &Value) -> Vec<Wrong> {
    let causes = nodemolt_api::admission::check_words(at(object, &["metadata"]), "metadata");
    causes.iter().map(Wrong::from).collect()
}

/// Where a kind says how many, and of what pods.
fn check_pods(resource: Resource, object: &Value) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let counts: &[&str] = match resource {
        kinds::DEPLOYMENT | kinds::REPLICA_SET | kinds::STATEFUL_SET => &["replicas"],
        kinds::JOB => &["parallelism", "completions"],
        _ => &[],
    };
    for field in counts {
        let count = whole(object, &["spec", field]).filter(|it| *it < 0);
        wrong.extend(count.map(|it| negative(&format!("spec.{field}"), &it.to_string())));
    }
    if resource == kinds::PDB {
        wrong.extend(["minAvailable", "maxUnavailable"].iter().filter_map(|field| {
            check_share(&format!("spec.{field}"), at(object, &["spec", field])?)
        }));
    }
    if resource == kinds::POD {
        wrong.extend(check_demands(at(object, &["spec"]), "spec"));
    } else if let Some(template) = at(object, &["spec", "template"]) {
        let metadata = at(template, &["metadata"]);
        let causes = nodemolt_api::admission::check_words(metadata, "spec.template");
        wrong.extend(causes.iter().map(Wrong::from));
        wrong.extend(check_demands(at(template, &["spec"]), "spec.template.spec"));
    }
    wrong
}

fn negative(field: &str, value: &str) -> Wrong {
    Wrong::invalid(field, value, "must be greater than or equal to 0")
}

/// A number of pods, or a share of them.
fn check_share(field: &str, value: &Value) -> Option<Wrong> {
    let said = value.to_string();
    let Some(share) = value.as_str() else {
        return value.as_i64().filter(|it| *it < 0).map(|_| negative(field, &said));
    };
    let digits = share.strip_suffix('%').unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
        let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
        return Some(Wrong::invalid(field, &said, detail));
    }
    let more = !digits.parse::<u32>().is_ok_and(|it| it <= 100);
    more.then(|| Wrong::invalid(field, &said, "must not be greater than 100%"))
}

/// What containers ask for, and what they are held to.
fn check_demands(spec: Option<&Value>, at_spec: &str) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for list in ["initContainers", "containers"] {
        let containers = spec.map_or(&[][..], |it| items(it, &[list]));
        for (index, container) in containers.iter().enumerate() {
            for part in ["limits", "requests"] {
                for (resource, value) in members(container, &["resources", part]) {
                    let field = format!("{at_spec}.{list}[{index}].resources.{part}[{resource}]");
                    let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let said = format!("{written:?}");
                    match written.parse::<Quantity>() {
                        Ok(quantity) if quantity.negative() => wrong.push(negative(&field, &said)),
                        Ok(_) => {}
                        Err(_) => wrong.push(Wrong::unreadable(&field, &said, NO_QUANTITY)),
                    }
                }
            }
        }
    }
    wrong
}

const NO_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

fn check_taints(taints: &[Value]) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    for (index, taint) in taints.iter().enumerate() {
        let (key, effect) = (text(taint, &["key"]), text(taint, &["effect"]));
        let field = format!("metadata.taints[{index}]");
        if key.is_empty() {
            let detail = "name part must be non-empty";
            wrong.push(Wrong::invalid(&format!("{field}.key"), "\"\"", detail));
        }
        if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
            let sentence = format!(
                "{field}.effect: Unsupported value: {effect:?}: supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""
            );
            wrong.push(Wrong { reason: "FieldValueNotSupported", sentence });
        }
        let same = |it: &Value| text(it, &["key"]) == key && text(it, &["effect"]) == effect;
        if taints.iter().take(index).any(same) {
            let mut sentence = format!("{field}: Duplicate value: {taint}: taints must be unique");
            sentence.push_str(" by key and effect pair");
            wrong.push(Wrong { reason: "FieldValueDuplicate", sentence });
        }
    }
    wrong
}

fn add_taint(node: &mut Value, key: &str, effect: &str) {
    let there = items(node, &["spec", "taints"])
        .iter()
        .any(|it| text(it, &["key"]) == key && text(it, &["effect"]) == effect);
    if !there {
        push(node, &["spec", "taints"], json!({ "key": key, "effect": effect }));
    }
}

fn push(object: &mut Value, path: &[&str], item: Value) {
    let mut listed = items(object, path).to_vec();
    listed.push(item);
    set(object, path, Value::Array(listed));
}
