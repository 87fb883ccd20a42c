//! Can this be read, and if not, what is said?
//!
//! What an object says is read to the end, so that all that is wrong with it is told at once.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use nodemolt_fit::{
    Quantity,
    capacity::Amounts,
    taint::{Effect, Taint},
};

use crate::{
    file::path,
    problem::{Finding, nearest, quoted},
};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What is wrong with one object.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) found: Vec<Finding>,
}

impl Reader {
    pub(crate) fn refuse(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.found.push(Finding::error(field, message));
    }

    pub(super) fn refuse_with(&mut self, field: &str, message: String, hint: impl Into<String>) {
        self.found.push(Finding::error(field, message).hint(hint));
    }

    pub(crate) fn amounts(
        &mut self,
        field: &str,
        wire: Option<&BTreeMap<String, WireQuantity>>,
    ) -> Amounts {
        let mut amounts = Amounts::new();
        for (name, amount) in wire.into_iter().flatten() {
            match amount.0.parse::<Quantity>() {
                Ok(parsed) if parsed.negative() => {
                    let message = format!("{} is negative", quoted(&amount.0));
                    self.refuse_with(&path::join(field, name), message, "write 0 or more");
                }
                Ok(parsed) => {
                    amounts.insert(name.clone(), parsed);
                }
                Err(error) => self.refuse(path::join(field, name), error.to_string()),
            }
        }
        amounts
    }

    pub(crate) fn effect(&mut self, field: &str, text: &str) -> Option<Effect> {
        match text {
            "NoSchedule" => Some(Effect::NoSchedule),
            "PreferNoSchedule" => Some(Effect::PreferNoSchedule),
            "NoExecute" => Some(Effect::NoExecute),
            other => {
                let hint = match nearest(other, &EFFECTS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("write one of {}", EFFECTS.join(", ")),
                };
                let message = format!("{} is not an effect of a taint", quoted(other));
                self.refuse_with(&format!("{field}.effect"), message, hint);
                None
            }
        }
    }

    pub(crate) fn taint(
        &mut self,
        field: &str,
        key: &str,
        value: Option<&str>,
        effect: &str,
    ) -> Option<Taint> {
        let effect = self.effect(field, effect)?;
        Some(Taint::new(key, value.unwrap_or_default(), effect))
    }
}
