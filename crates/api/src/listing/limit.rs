//! What does a `LimitRange` do to the containers of its namespace?
//!
//! `limit range → what a container gets that asks for nothing, and what it may ask for`
//!
//! The API server does this to every pod that is created, so also to those that a controller makes from a template. Pods
//! that exist have it behind them.

use k8s_openapi::api::core::v1::{Container, LimitRange};
use nodemolt_fit::capacity::Amounts;

use super::{name, reader::Reader};
use crate::{file::path, problem::quoted};

const CONTAINER: &str = "Container";

/// What one item says of containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OfContainers {
    /// The name of the object.
    called: String,
    requests: Amounts,
    limits: Amounts,
    min: Amounts,
    max: Amounts,
}

/// What the object says of containers, and the types of its other items, and rules that are not looked at.
pub(super) fn read(range: &LimitRange, reader: &mut Reader) -> (Vec<OfContainers>, Vec<String>) {
    let (mut found, mut others) = (Vec::new(), Vec::new());
    let items = range.spec.iter().flat_map(|it| &it.limits);
    for (at, it) in items.enumerate() {
        if it.type_ != CONTAINER {
            others.push(it.type_.clone());
            continue;
        }
        if it.max_limit_request_ratio.as_ref().is_some_and(|it| !it.is_empty()) {
            others.push("maxLimitRequestRatio".to_owned());
        }
        let mut read =
            |field: &str, wire| reader.amounts(&format!("spec.limits[{at}].{field}"), wire);
        let min = read("min", it.min.as_ref());
        let max = read("max", it.max.as_ref());
        let mut limits = read("default", it.default.as_ref());
        let mut requests = read("defaultRequest", it.default_request.as_ref());
        // As the API server completes the object: the most is the limit, the limit is the request, and the least is, too.
        fill(&mut limits, &max);
        fill(&mut requests, &limits);
        fill(&mut requests, &min);
        found.push(OfContainers {
            called: name(&range.metadata).to_owned(),
            requests,
            limits,
            min,
            max,
        });
    }
    (found, others)
}

fn fill(amounts: &mut Amounts, from: &Amounts) {
    for (name, amount) in from {
        amounts.entry(name.clone()).or_insert(*amount);
    }
}

/// What the container requests once the limit ranges of its namespace have been applied.
pub(super) fn apply(
    ranges: &[OfContainers],
    field: &str,
    container: &Container,
    mut requests: Amounts,
    reader: &mut Reader,
) -> Amounts {
    // What is wrong with them was said when they were read.
    let written = container.resources.as_ref().and_then(|it| it.limits.as_ref());
    let mut limits = Reader::default().amounts("", written);
    for it in ranges {
        fill(&mut limits, &it.limits);
        fill(&mut requests, &it.requests);
    }
    let mut refuse = |of: &str, name: &str, message: String, range: &OfContainers| {
        let field = path::join(&format!("{field}.resources.{of}"), name);
        let hint = format!("change it, or the LimitRange {}", quoted(&range.called));
        reader.refuse_with(&field, message, hint);
    };
    for it in ranges {
        let called = quoted(&it.called);
        for (name, least) in &it.min {
            if let Some(asked) = requests.get(name).filter(|asked| *asked < least) {
                let message = format!(
                    "{asked} is less than the {least} that the LimitRange {called} demands"
                );
                refuse("requests", name, message, it);
            }
        }
        for (name, most) in &it.max {
            if let Some(asked) = limits.get(name).filter(|asked| *asked > most) {
                let message =
                    format!("{asked} is more than the {most} that the LimitRange {called} allows");
                refuse("limits", name, message, it);
            }
        }
        for (name, given) in &it.limits {
            let asked = requests.get(name).filter(|asked| *asked > given);
            if let Some(asked) = asked.filter(|_| limits.get(name) == Some(given)) {
                let message = format!(
                    "{asked} is more than the limit of {given} that the LimitRange {called} gives it"
                );
                refuse("requests", name, message, it);
            }
        }
    }
    requests
}
