//! What of this would an API server refuse?
//!
//! `spec of a pod as a person wrote it → findings, each with the value and what to write`
//!
//! Only what bears on where a pod fits. A pod that will never be created must not be told that it has a place, and a slip
//! that the API server would take (`memory: 512m`, half a byte) is worth a word.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Affinity, Container, ResourceRequirements, Toleration, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use nodemolt_fit::{
    Quantity,
    capacity::{CPU, MEMORY},
};

use super::{pod::Asked, reader::Reader};
use crate::{
    file::path,
    problem::{Finding, nearest, quoted},
};

const STORAGE: &str = "ephemeral-storage";
const HUGE_PAGES: &str = "hugepages-";
/// What a container can ask for without naming a domain.
const STANDARD: [&str; 3] = [CPU, MEMORY, STORAGE];
/// What most people mean who ask for a GPU.
const GPU: &str = "nvidia.com/gpu";
/// An exbibyte. Amounts far beyond it are not held exactly.
const FAR_TOO_MUCH_UNITS: i64 = 1 << 60;
/// The API server takes weights up to this.
const WEIGHT_MAX: i32 = 100;

type Amounts = BTreeMap<String, WireQuantity>;

/// Everything that is wrong with the spec and was not found when it was read.
pub(super) fn check(asked: &Asked<'_>, reader: &mut Reader) {
    let (spec, field) = (asked.spec, asked.field);
    let mut names = BTreeSet::new();
    let init = spec.init_containers.iter().flatten().enumerate();
    let init = init.map(|(at, it)| (format!("{field}.initContainers[{at}]"), it));
    let main = spec.containers.iter().enumerate();
    let main = main.map(|(at, it)| (format!("{field}.containers[{at}]"), it));
    for (field, it) in init.chain(main) {
        container(&field, it, &mut names, reader);
    }
    if let Some(affinity) = &spec.affinity {
        check_affinity(&format!("{field}.affinity"), affinity, reader);
    }
    spreads(field, spec.topology_spread_constraints.as_deref().unwrap_or_default(), reader);
    for (at, it) in spec.tolerations.iter().flatten().enumerate() {
        toleration(&format!("{field}.tolerations[{at}]"), it, reader);
    }
}

fn container<'c>(
    field: &str,
    it: &'c Container,
    names: &mut BTreeSet<&'c str>,
    reader: &mut Reader,
) {
    if !it.name.is_empty() && !names.insert(&it.name) {
        let message = format!("{} is the name of another container, too", quoted(&it.name));
        reader.refuse_with(&format!("{field}.name"), message, "give each a name of its own");
    }
    if let Some(resources) = &it.resources {
        check_resources(&format!("{field}.resources"), resources, reader);
    }
}

fn check_resources(field: &str, written: &ResourceRequirements, reader: &mut Reader) {
    let empty = Amounts::new();
    let requests = written.requests.as_ref().unwrap_or(&empty);
    let limits = written.limits.as_ref().unwrap_or(&empty);
    for (of, amounts) in [("requests", requests), ("limits", limits)] {
        for (name, amount) in amounts {
            let field = path::join(&format!("{field}.{of}"), name);
            check_name(&field, name, reader);
            check_amount(&field, name, amount, reader);
        }
    }
    for (name, request) in requests {
        let field = path::join(&format!("{field}.requests"), name);
        let overcommitted = STANDARD.contains(&name.as_str());
        let Some(limit) = limits.get(name) else {
            if !overcommitted && known(name) {
                let message =
                    format!("{name} cannot be overcommitted, and there is no limit of it");
                let hint = format!("write the same, {}, under limits", quoted(&request.0));
                reader.refuse_with(&field, message, hint);
            }
            continue;
        };
        // What is no amount was told when it was read.
        let (Ok(asked), Ok(most)) = (request.0.parse::<Quantity>(), limit.0.parse::<Quantity>())
        else {
            continue;
        };
        let (asked_text, most_text) = (quoted(&request.0), quoted(&limit.0));
        if asked > most {
            let message = format!("{asked_text} is more than the limit, {most_text}");
            reader.refuse_with(&field, message, "raise the limit, or ask for less");
        } else if asked != most && !overcommitted && known(name) {
            let message = format!(
                "{asked_text} is not the limit, {most_text}, and {name} cannot be overcommitted"
            );
            reader.refuse_with(&field, message, "write the same twice");
        }
    }
}

/// Whether a container can ask for it.
fn known(name: &str) -> bool {
    name.contains('/') || STANDARD.contains(&name) || name.starts_with(HUGE_PAGES)
}

fn check_name(field: &str, name: &str, reader: &mut Reader) {
    if known(name) {
        return;
    }
    let hint = match nearest(name, &STANDARD) {
        _ if name.contains("gpu") => format!("did you mean `{GPU}`?"),
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            format!("write one of {}, or a name with its domain, as `{GPU}`", STANDARD.join(", "))
        }
    };
    reader.refuse_with(field, format!("{} is not a resource of containers", quoted(name)), hint);
}

fn check_amount(field: &str, name: &str, amount: &WireQuantity, reader: &mut Reader) {
    let Ok(parsed) = amount.0.parse::<Quantity>() else { return };
    if parsed >= Quantity::from_units(FAR_TOO_MUCH_UNITS) {
        let message = format!("{} is more than can be reckoned with", quoted(&amount.0));
        let hint = "no machine has so much: look at the unit";
        reader.found.push(Finding::warning(field, message).hint(hint));
        return;
    }
    let whole = parsed.ceil_millis() == parsed.ceil_units().saturating_mul(1000);
    if whole {
        return;
    }
    if name.contains('/') {
        let message =
            format!("{} is not a whole number, and {name} comes in whole ones", quoted(&amount.0));
        reader.refuse_with(field, message, "write a whole number");
    } else if name == MEMORY || name == STORAGE {
        let message = format!("{} is a fraction of a byte", quoted(&amount.0));
        let meant = amount.0.strip_suffix('m').map(|it| format!("did you mean `{it}Mi`?"));
        let finding = Finding::warning(field, message);
        reader.found.push(finding.hint(meant.unwrap_or_else(|| "write whole bytes".to_owned())));
    }
}

fn check_affinity(field: &str, affinity: &Affinity, reader: &mut Reader) {
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let mut weight = |of: &str, at: usize, weight: i32| {
        if !(1..=WEIGHT_MAX).contains(&weight) {
            let field = format!("{field}.{of}.{PREFERRED}[{at}].weight");
            let hint = format!("write a number from 1 to {WEIGHT_MAX}");
            reader.refuse_with(&field, format!("`{weight}` is no weight"), hint);
        }
    };
    if let Some(nodes) = &affinity.node_affinity {
        let preferred = nodes.preferred_during_scheduling_ignored_during_execution.iter();
        for (at, it) in preferred.flatten().enumerate() {
            weight("nodeAffinity", at, it.weight);
        }
    }
    let near = affinity.pod_affinity.iter();
    let near = near.flat_map(|it| &it.preferred_during_scheduling_ignored_during_execution);
    for (at, it) in near.flatten().enumerate() {
        weight("podAffinity", at, it.weight);
    }
    let away = affinity.pod_anti_affinity.iter();
    let away = away.flat_map(|it| &it.preferred_during_scheduling_ignored_during_execution);
    for (at, it) in away.flatten().enumerate() {
        weight("podAntiAffinity", at, it.weight);
    }
    let required = affinity.node_affinity.as_ref();
    let required =
        required.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
    if required.is_some_and(|it| it.node_selector_terms.is_empty()) {
        let field = format!(
            "{field}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        );
        reader.refuse_with(
            &field,
            "is empty, and admits no node".to_owned(),
            "write a term, or leave the affinity out",
        );
    }
}

fn spreads(field: &str, all: &[TopologySpreadConstraint], reader: &mut Reader) {
    let mut seen = BTreeSet::new();
    for (at, it) in all.iter().enumerate() {
        let field = format!("{field}.topologySpreadConstraints[{at}]");
        if !seen.insert((&it.topology_key, &it.when_unsatisfiable)) {
            let message = format!(
                "{} with {} is written twice",
                quoted(&it.topology_key),
                quoted(&it.when_unsatisfiable)
            );
            reader.refuse_with(&field, message, "keep one of the two");
        }
        if let Some(least) = it.min_domains.filter(|_| it.when_unsatisfiable != "DoNotSchedule") {
            let message =
                format!("`{least}` means nothing unless whenUnsatisfiable is DoNotSchedule");
            let hint = "write whenUnsatisfiable: DoNotSchedule, or leave minDomains out";
            reader.refuse_with(&format!("{field}.minDomains"), message, hint);
        }
        let keys = it.match_label_keys.as_ref().is_some_and(|it| !it.is_empty());
        if keys && it.label_selector.is_none() {
            let message = "means nothing without a labelSelector".to_owned();
            let hint = "write a labelSelector, or leave matchLabelKeys out";
            reader.refuse_with(&format!("{field}.matchLabelKeys"), message, hint);
        }
    }
}

fn toleration(field: &str, it: &Toleration, reader: &mut Reader) {
    let value = it.value.as_deref().filter(|it| !it.is_empty());
    if let (Some("Exists"), Some(value)) = (it.operator.as_deref(), value) {
        let message = format!("{} is not looked at by the operator Exists", quoted(value));
        let hint = "leave the value out, or write operator: Equal";
        reader.refuse_with(&format!("{field}.value"), message, hint);
    }
}
