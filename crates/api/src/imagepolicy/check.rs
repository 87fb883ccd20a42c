//! What has to hold between the fields of a policy?

use crate::{
    meta::LabelSelectorRequirement,
    owner,
    problem::{Finding, nearest, quoted},
    time,
};

use super::{ImagePolicy, ImagePolicySpec, PolicyException};

const SELECTOR_OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

pub fn check(policy: &ImagePolicy) -> Vec<Finding> {
    let ImagePolicySpec { class_selector, owners, allowed_images, exceptions, rollout, .. } =
        &policy.spec;
    let mut found = Vec::new();
    for (index, requirement) in
        class_selector.iter().flat_map(|it| &it.match_expressions).enumerate()
    {
        found.extend(selector(
            &format!("spec.classSelector.matchExpressions[{index}]"),
            requirement,
        ));
    }
    // An empty list forbids every image, an absent one none: never the other way round.
    if let Some(owners) = owners {
        if owners.is_empty() {
            let message = "an empty list allows nobody's images";
            let hint = "name the owners you trust, or remove it to leave owners to the classes";
            found.push(Finding::warning("spec.owners", message).hint(hint));
        }
        for (index, it) in owners.iter().enumerate() {
            found.extend(owner::check(&format!("spec.owners[{index}]"), it));
        }
    }
    if let Some(allowed) = allowed_images {
        if allowed.ids.is_empty() && allowed.names.is_empty() {
            // A list that a template rendered empty must not open the fence.
            let message = "names no image, so none could boot";
            let hint = "name one under `ids` or `names`, or remove `allowedImages`";
            found.push(Finding::error("spec.allowedImages", message).hint(hint));
        }
        for (index, id) in allowed.ids.iter().enumerate() {
            if !id.starts_with("ami-") {
                let message = format!("{} is not the id of an image", quoted(id));
                let finding = Finding::error(format!("spec.allowedImages.ids[{index}]"), message);
                found.push(finding.hint("an id starts with `ami-`; patterns belong under `names`"));
            }
        }
        for (index, name) in allowed.names.iter().enumerate() {
            if name.trim().is_empty() {
                let field = format!("spec.allowedImages.names[{index}]");
                found.push(Finding::error(field, "cannot be empty"));
            }
        }
    }
    for (index, it) in exceptions.iter().enumerate() {
        found.extend(exception(&format!("spec.exceptions[{index}]"), it));
    }
    if let Some(rollout) = rollout {
        found.extend(super::rollout::check("spec.rollout", rollout));
    }
    found
}

fn exception(field: &str, exception: &PolicyException) -> Vec<Finding> {
    let PolicyException { image, reason, until } = exception;
    let mut found = Vec::new();
    if image.trim().is_empty() {
        found.push(Finding::error(format!("{field}.image"), "cannot be empty"));
    }
    if reason.trim().is_empty() {
        let finding = Finding::error(format!("{field}.reason"), "cannot be empty");
        found.push(finding.hint("say why this image may boot early: others will read it"));
    }
    found.extend(time::check(&format!("{field}.until"), until));
    found
}

fn selector(field: &str, requirement: &LabelSelectorRequirement) -> Option<Finding> {
    let LabelSelectorRequirement { key, operator, values } = requirement;
    if key.is_empty() {
        return Some(Finding::error(format!("{field}.key"), "cannot be empty"));
    }
    match operator.as_str() {
        "In" | "NotIn" if values.is_empty() => Some(Finding::error(
            format!("{field}.values"),
            format!("operator '{operator}' needs at least one value"),
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => Some(Finding::error(
            format!("{field}.values"),
            format!("operator '{operator}' takes no values"),
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
        other => {
            let hint = match nearest(other, &SELECTOR_OPERATORS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write one of {}", SELECTOR_OPERATORS.join(", ")),
            };
            let message = format!("{} is not an operator", quoted(other));
            Some(Finding::error(format!("{field}.operator"), message).hint(hint))
        }
    }
}
