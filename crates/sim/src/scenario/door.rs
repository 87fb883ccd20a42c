//! What of what people wrote does not even reach the API server?
//!
//! `object with its places → everything that is wrong with it`
//!
//! `kubectl` refuses fields that there are not, and the server what it cannot read. Only people meet this
//! door, in scenarios and by `apply`: what controllers write is well formed, and looking at it would cost.

use nodemolt_api::ec2nodeclass;
use nodemolt_api::file::Located;
use nodemolt_api::file::builtin::{self, Written};
use nodemolt_api::problem::{Finding, Problem};
use serde_json::Value;

use crate::kinds;
use crate::kube::unreadable_pace;

pub(crate) fn problems(object: &Located<Value>, written: Written) -> Vec<Problem> {
    let value = &object.value;
    let mut findings = Vec::new();
    findings.extend(kind(value));
    if findings.is_empty() {
        findings.extend(name(value));
        findings.extend(class(value));
        findings.extend(unreadable_pace(value).map(|(field, told)| Finding::error(field, told)));
    }
    let mut problems: Vec<Problem> = findings.into_iter().map(|it| object.problem(it)).collect();
    problems.extend(builtin::problems(object, written));
    problems
}

/// The same in one sentence, for an object that has no file around it.
pub(crate) fn told(problems: &[Problem]) -> String {
    let each = problems.iter().map(|it| {
        let field = if it.field.is_empty() { String::new() } else { format!("{}: ", it.field) };
        match &it.hint {
            Some(hint) => format!("{field}{}; {hint}", it.message),
            None => format!("{field}{}", it.message),
        }
    });
    each.collect::<Vec<_>>().join("\n")
}

/// A kind that is not served, or not in this version.
fn kind(object: &Value) -> Option<Finding> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let (Some(version), Some(kind)) = (text("apiVersion"), text("kind")) else {
        let field = if text("apiVersion").is_none() { "apiVersion" } else { "kind" };
        return Some(Finding::error(field, "is missing").hint("write `apiVersion` and `kind`"));
    };
    let Some(resource) = kinds::of_object(version, kind) else {
        let message = format!("{kind} of {version} is not served here");
        let served = || kinds::ALL.map(|it| it.kind).join(", ");
        let hint = match kinds::ALL.iter().find(|it| it.kind == kind) {
            Some(known) => format!("{kind} is of `apiVersion: {}`", kinds::api_version(*known)),
            None => format!("served are {}", served()),
        };
        return Some(Finding::error("kind", message).hint(hint));
    };
    let known = kinds::api_version(resource);
    if kinds::is_built_in(resource) && version != known {
        let message = format!("{kind} of {version} is not served here");
        return Some(Finding::error("apiVersion", message).hint(format!("write `{known}`")));
    }
    None
}

/// Names of other types than text are told where types are.
fn name(object: &Value) -> Option<Finding> {
    let missing = object.pointer("/metadata/name").is_none_or(Value::is_null);
    missing.then(|| Finding::error("metadata.name", "is missing").hint("give it a name"))
}

/// Where pools and claims name a class of our groups by another kind.
fn class(object: &Value) -> Option<Finding> {
    let field = match object.get("kind").and_then(Value::as_str)? {
        "NodePool" => "spec.template.spec.nodeClassRef",
        "NodeClaim" => "spec.nodeClassRef",
        _ => return None,
    };
    let class = object.pointer(&format!("/{}", field.replace('.', "/")))?;
    let text = |key: &str| class.get(key).and_then(Value::as_str);
    let (group, kind) = (text("group")?, text("kind")?);
    let ours = [kinds::CLASS, kinds::KARPENTER_CLASS].iter().any(|it| it.group == group);
    (ours && kind != ec2nodeclass::KIND).then(|| {
        let message = format!("{group} has no kind `{kind}` of classes");
        let hint = format!("write `kind: {}`", ec2nodeclass::KIND);
        Finding::error(format!("{field}.kind"), message).hint(hint)
    })
}
